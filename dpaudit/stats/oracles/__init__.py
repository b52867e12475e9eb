"""Exact privacy losses of mechanisms on one pair of neighbouring inputs, for checking audits.

An `Oracle` is the exact distribution of the privacy loss ``log dP/dQ`` of one pair. P is the
distribution of the output on the left input, and Q the distribution on the right input. No number
is estimated from draws. Every number is a closed form, a finite sum, or a quadrature with the
accuracy that its docstring states.
"""

from __future__ import annotations

from dpaudit.stats.oracles._core import DiscreteOracle, Oracle, discrete
from dpaudit.stats.oracles._limits import (
    NearestPrivatePair,
    nearest_private_pair,
    reachable_epsilon,
)
from dpaudit.stats.oracles._noise import (
    GaussianOracle,
    LaplaceOracle,
    discrete_laplace,
    gaussian,
    laplace,
)
from dpaudit.stats.oracles._selection import (
    exponential_mechanism,
    randomized_response,
    report_noisy_max,
)
from dpaudit.stats.oracles._sparse_vector import (
    PatternDistribution,
    above_threshold,
    fixed_threshold_sparse_vector,
    sparse_vector_patterns,
)
from dpaudit.stats.oracles._vector import LaplaceVectorOracle, laplace_vector

__all__ = [
    "DiscreteOracle",
    "GaussianOracle",
    "LaplaceOracle",
    "LaplaceVectorOracle",
    "NearestPrivatePair",
    "Oracle",
    "PatternDistribution",
    "above_threshold",
    "discrete",
    "discrete_laplace",
    "exponential_mechanism",
    "fixed_threshold_sparse_vector",
    "gaussian",
    "laplace",
    "laplace_vector",
    "nearest_private_pair",
    "randomized_response",
    "reachable_epsilon",
    "report_noisy_max",
    "sparse_vector_patterns",
]
