"""Time of whole audits, and the share of the true epsilon that they certify.

asv run --quick --python=same      # this checkout, in this environment
asv run v0.1.0..main               # a history, each revision in its own environment
"""

from __future__ import annotations

import numpy as np

from dpaudit import ApproxDP, NeighborPair, PureDP, audit

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))


def laplace(data, size, *, rng):
    """Add Laplace noise of scale 1/2 to a sum, which is 2-DP."""
    return data.sum() + rng.laplace(scale=0.5, size=size)


def gaussian(data, size, *, rng):
    """Add Gaussian noise to ten coordinates, one of which shifts by 1."""
    shift = np.zeros(10)
    shift[0] = data.sum()
    return shift + rng.standard_normal((size, 10))


class Audits:
    """An audit by counts, without mutants."""

    params = ([10_000, 100_000, 1_000_000],)
    param_names = ("draws",)

    def time_scalar(self, draws):
        """Time an audit of one number."""
        audit(laplace, PureDP(1.0), PAIR, draws=draws, mutants=None)

    def time_ten_coordinates(self, draws):
        """Time an audit of ten numbers."""
        audit(gaussian, ApproxDP(1.0, 1e-5), PAIR, draws=draws, mutants=None)

    def track_share_of_epsilon(self, draws):
        """Return the certified epsilon as a share of the true epsilon."""
        return audit(laplace, PureDP(1.0), PAIR, draws=draws, mutants=None).certified_epsilon / 2.0

    track_share_of_epsilon.unit = "of the true epsilon"


class Searches:
    """An audit with mutants and without a named pair."""

    timeout = 300

    def time_default(self):
        """Time the default audit with 20,000 draws."""
        audit(laplace, PureDP(4.0), draws=20_000)
