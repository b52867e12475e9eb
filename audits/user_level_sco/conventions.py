"""Domains that the checks of both versions share.

The file ``statements.md`` lists the conventions of both versions.
"""

from __future__ import annotations

from dpaudit.neighbors import Choice, Integer, Interval

EPSILON = Interval(1e-3, 1.0, log=True)
"""Range of epsilon within the convention epsilon <= 1."""

DELTA = Interval(1e-12, 0.5, log=True)
"""Range of delta within the convention delta <= 1/2."""

SHARE = Interval(0.0, 1.0)
UNIT = Interval(-1.0, 1.0)
"""Coordinates of points, for checks in which only ratios of the coordinates matter."""

USERS = Integer(2, 10**9)
FEW = Choice((1, 2, 3))
"""T of Algorithm 3 and n of the tree, within the conventions T >= 2 and n >= 2."""
