"""Domains that the checks share.

`statements.md` lists the conventions of these checks.
"""

from __future__ import annotations

from dpaudit.neighbors import Choice, Integer, Interval

LIPSCHITZ = Interval(1e-3, 1e3, log=True)
"""L."""

RADIUS = Interval(1e-3, 1e3, log=True)
"""The delta of smoothing and of Goldstein stationarity."""

RHO = Interval(1e-2, 1e2, log=True)
"""The rho of (alpha, alpha rho^2 / 2)-RDP."""

ORDER = Interval(1.001, 100.0, log=True)
"""The alpha of RDP."""

DIMENSION = Integer(1, 1000)
FEW = Choice((1, 2, 3))
"""Dimensions of small cases."""

ROUNDS = Integer(2, 10**6)
"""T of Algorithm 3 and n of the tree, within the conventions T >= 2 and n >= 2."""

SHARE = Interval(0.0, 1.0)
UNIT = Interval(-1.0, 1.0)
"""Coordinates of points, for checks in which only ratios of the coordinates matter."""
