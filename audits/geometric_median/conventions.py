"""Domains that the checks of this paper share.

The file ``statements.md`` lists the conventions of this paper.
"""

from __future__ import annotations

from dpaudit.neighbors import Choice, Integer, Interval

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

NOISE = Choice((None, 0.3, 2.0))
"""Factor on the noise. None stands for the default, which is 1 as in the paper."""


def noise_option(factor):
    """Return the arguments of an algorithm for a factor on its noise."""
    return {} if factor is None else {"noise_multiplier": factor}
