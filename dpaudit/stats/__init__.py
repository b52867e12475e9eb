"""Bounds from counts, divergences, curves, and exact probabilities with noise.

All numbers that dpaudit certifies are computed in this package. The bounds of the package are
one-sided, and their names say which side. No bound is asymptotic, and no option selects an
asymptotic bound. The subpackage `oracles` holds exact privacy losses.
"""

from dpaudit.stats import oracles
from dpaudit.stats.composition import ComposedLoss, Mixture, StepPair
from dpaudit.stats.curves import TYPE_I_ERRORS, Curves, curves_of, tradeoff_of_profile
from dpaudit.stats.divergence import (
    hockey_stick,
    hockey_stick_density,
    hockey_stick_inverse,
    renyi_divergence,
)
from dpaudit.stats.joint import (
    Counts,
    Target,
    joint_region,
    lower_proportion,
    lower_rates,
    refutation_prob,
    upper_rates,
)
from dpaudit.stats.noise import Ball, Box, HalfSpace, Noise, Region, Slab
from dpaudit.stats.one_run import (
    Allowance,
    guess_p_value,
    half_probability,
    refutes,
    sum_bound,
    tail_bound,
    wrong_sums,
)
from dpaudit.stats.paired import PairedBet, expected_bound
from dpaudit.stats.planned_guesses import LARGEST_MU, GuessPlan, GuessPlanner
from dpaudit.stats.ranked import (
    ranked_epsilon,
    ranked_heights,
    ranked_p_value,
    ranked_stages,
)
from dpaudit.stats.rates import (
    SHARE_OF_GUESSING,
    GuessCounts,
    RateBounds,
    excess_of_rates,
    guess_bounds,
    guess_refutation_prob,
    loss_of_rates,
)
from dpaudit.stats.wagers import LEFT, NEITHER, RIGHT, Wager, rates_at, wager
from dpaudit.stats.walks import Stages, crossing_prob

__all__ = [
    "LARGEST_MU",
    "LEFT",
    "NEITHER",
    "RIGHT",
    "SHARE_OF_GUESSING",
    "TYPE_I_ERRORS",
    "Allowance",
    "Ball",
    "Box",
    "ComposedLoss",
    "Counts",
    "Curves",
    "GuessCounts",
    "GuessPlan",
    "GuessPlanner",
    "HalfSpace",
    "Mixture",
    "Noise",
    "PairedBet",
    "RateBounds",
    "Region",
    "Slab",
    "Stages",
    "StepPair",
    "Target",
    "Wager",
    "crossing_prob",
    "curves_of",
    "excess_of_rates",
    "expected_bound",
    "guess_bounds",
    "guess_p_value",
    "guess_refutation_prob",
    "half_probability",
    "hockey_stick",
    "hockey_stick_density",
    "hockey_stick_inverse",
    "joint_region",
    "loss_of_rates",
    "lower_proportion",
    "lower_rates",
    "oracles",
    "ranked_epsilon",
    "ranked_heights",
    "ranked_p_value",
    "ranked_stages",
    "rates_at",
    "refutation_prob",
    "refutes",
    "renyi_divergence",
    "sum_bound",
    "tail_bound",
    "tradeoff_of_profile",
    "upper_rates",
    "wager",
    "wrong_sums",
]
