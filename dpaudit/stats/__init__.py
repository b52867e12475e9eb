"""What is true of counts and distributions: bounds, divergences, curves, noise in closed form.

Everything that dpaudit certifies rests on this room. Its bounds are one-sided and say so in their
names; none is asymptotic, and no option selects one that is. `oracles` holds exact truth.
"""

from dpaudit.stats.curves import ERRORS, Curves, curves_of, tradeoff_of_profile
from dpaudit.stats.divergence import (
    hockey_stick,
    hockey_stick_density,
    hockey_stick_density_inverse,
    hockey_stick_inverse,
    renyi_divergence,
)
from dpaudit.stats.joint import joint_region, refutation_prob
from dpaudit.stats.noise import Ball, Box, HalfSpace, Noise, Region, Slab
from dpaudit.stats.paired import PairedBet, expected_bound
from dpaudit.stats.proportions import (
    Counts,
    lower_proportion,
    lower_rates,
    upper_rates,
)
from dpaudit.stats.rates import RateBounds, excess_of_rates, loss_of_rates
from dpaudit.stats.target import Target

__all__ = [
    "ERRORS",
    "Ball",
    "Box",
    "Counts",
    "Curves",
    "HalfSpace",
    "Noise",
    "PairedBet",
    "RateBounds",
    "Region",
    "Slab",
    "Target",
    "curves_of",
    "excess_of_rates",
    "expected_bound",
    "hockey_stick",
    "hockey_stick_density",
    "hockey_stick_density_inverse",
    "hockey_stick_inverse",
    "joint_region",
    "loss_of_rates",
    "lower_proportion",
    "lower_rates",
    "refutation_prob",
    "renyi_divergence",
    "tradeoff_of_profile",
    "upper_rates",
]
