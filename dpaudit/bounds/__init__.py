"""Finite-sample confidence bounds: one proportion, two proportions jointly, means of bounded draws.

Everything that dpaudit certifies rests on this room. Its bounds are one-sided and say so in their
names; there is no asymptotic method and no option that selects one.
"""

from dpaudit.bounds.aim import Aim
from dpaudit.bounds.joint import joint_region, refutation_prob
from dpaudit.bounds.proportions import (
    Counts,
    lower_proportion,
    lower_rates,
    upper_proportion,
    upper_rates,
)

__all__ = [
    "Aim",
    "Counts",
    "joint_region",
    "lower_proportion",
    "lower_rates",
    "refutation_prob",
    "upper_proportion",
    "upper_rates",
]
