"""Domains that the checks of this paper share.

The file ``statements.md`` lists the conventions of this paper.
"""

from __future__ import annotations

from dpaudit.neighbors import Integer, Interval

EPSILON = Interval(1e-3, 1.0, log=True)
DELTA = Interval(1e-12, 0.5, log=True)
"""The convention is delta <= 1/2."""

ANY_DELTA = Interval(1e-12, 0.999, log=True)
"""For statements that hold for every delta, and are tested for every delta."""

USERS = Integer(2, 10**9)
UNIT = Interval(-1.0, 1.0)
"""Coordinates of points, if only their ratios matter."""

RADII = Integer(1, 400)
"""T, the number of radii that FastRadius tries. The ratio R / r is up to 2^400."""
