"""Domains that the checks share; their conventions stand in ``statements.md``."""

from __future__ import annotations

from dpaudit.neighbors import Choice, Integer, Interval

EPSILON = Interval(1e-3, 3.0, log=True)
DELTA = Interval(1e-12, 0.5, log=True)
"""Of privacy, within the convention delta <= 1/2."""

USERS = Integer(1, 1000)
"""n, where nothing is enumerated."""

ITEMS = Integer(1, 100)
"""m, likewise."""

FEW = Choice((1, 2, 3))
"""n or m of what is enumerated."""

ACCURACY = Interval(1e-4, 0.5, log=True)
"""alpha of the tasks."""

FAILURE = Interval(1e-9, 0.5, log=True)
"""beta, as a probability."""

SHARE = Interval(0.0, 1.0)
"""Probabilities, and what is scaled to them."""

UNIT = Interval(-1.0, 1.0)
"""Values of comparison functions."""
