"""Domains that the checks share.

``statements.md`` lists the conventions of these checks.
"""

from __future__ import annotations

from dpaudit.neighbors import Choice, Integer, Interval

EPSILON = Interval(1e-3, 3.0, log=True)
DELTA = Interval(1e-12, 0.5, log=True)
"""Delta of a privacy guarantee, within the convention delta <= 1/2."""

USERS = Integer(1, 1000)
"""Range of n, if nothing is enumerated."""

ITEMS = Integer(1, 100)
"""Range of m, if nothing is enumerated."""

FEW = Choice((1, 2, 3))
"""Range of n or m in enumerations."""

ACCURACY = Interval(1e-4, 0.5, log=True)
"""Range of the accuracy alpha of the tasks."""

FAILURE = Interval(1e-9, 0.5, log=True)
"""Range of the failure probability beta."""

SHARE = Interval(0.0, 1.0)
"""Probabilities, and values that are scaled to them."""

UNIT = Interval(-1.0, 1.0)
"""Values of comparison functions."""
