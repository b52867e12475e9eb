"""Run an algorithm on a random subsample, and compute the amplified privacy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import IntArray


def on_subsample(
    data: ArrayLike,
    size: int,
    *,
    pmf: Callable[[IntArray], ArrayLike],
    sample: int,
    rng: np.random.Generator,
) -> IntArray:
    """Run an algorithm with a known distribution on a random subsample without replacement.

    The source is few_examples, Theorem 7 (Balle, Barthe & Gaboardi, 2018).

    **Guarantee** (`amplified_epsilon`, sample / n * delta)-DP for neighbours that replace one item,
    if the algorithm is (epsilon, delta)-DP.

    **Requires** that `pmf` returns the distribution of an (epsilon, delta)-DP algorithm.

    **Departs** "Randomly chooses n out of n' samples" does not say in which order the algorithm
    receives the samples. In this function, the order is random. So every algorithm becomes
    symmetric, as Theorem 17 requires.

    **Symbols** n' = the number of items, n = `sample`.

    Parameters
    ----------
    data : array_like of int, [n]
        Items.
    size : int
        Number of independent draws.
    pmf : callable
        Function that maps items [sample] to the distribution of the outcome.
    sample : int
        From 1 to n.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Outcomes.
    """
    rng, size = _validate.generator(rng), _validate.draws(size)
    items = _validate.integers("data", data, ndims=(1,))
    _, sample = _sizes(items.size, sample)
    order = rng.permuted(np.tile(np.arange(items.size), (size, 1)), axis=1)[:, :sample]
    rows, places = np.unique(items[order], axis=0, return_inverse=True)
    outcomes, uniforms = np.empty(size, dtype=np.int64), rng.random(size)
    for place, row in enumerate(rows):
        found = _validate.floats("the value of pmf", pmf(row), ndims=(1,))
        if (found < 0).any() or abs(found.sum() - 1) > 1e-9:
            raise ValueError(f"pmf must return a probability distribution, got {found}")
        cumulative = np.cumsum(found)
        here = places.reshape(-1) == place
        outcomes[here] = np.searchsorted(cumulative, uniforms[here] * cumulative[-1], side="right")
    return outcomes


def amplified_epsilon(epsilon: float, population: int, sample: int) -> float:
    """Return ln(1 + sample / population * (exp(epsilon) - 1)), few_examples, Theorem 7.

    Parameters
    ----------
    epsilon : float
        Parameter of the algorithm on the subsample, at least 0.
    population, sample : int
        Sizes, where 1 <= sample <= population.

    Returns
    -------
    float
        Epsilon of the algorithm on the population. The delta is sample / population times delta.
    """
    population, sample = _sizes(population, sample)
    epsilon, rate = _validate.nonnegative("epsilon", epsilon), sample / population
    if epsilon > 700:  # exp overflows, so the summand 1 does not matter
        return epsilon + math.log(rate)
    return math.log1p(rate * math.expm1(epsilon))


def population_for(epsilon: float, target: float, sample: int) -> int:
    """Return the smallest population size at which `amplified_epsilon` is at most `target`.

    By few_examples, Appendix C.2, the result is the smallest N such that (exp(epsilon) - 1) n / N
    <= exp(target) - 1.

    **Departs** N is at least n, because otherwise there is no subsample. The paper does not state
    this condition.

    Parameters
    ----------
    epsilon : float
        Parameter of the algorithm on the subsample, positive, at most 700.
    target : float
        Positive.
    sample : int
        Size n of the subsample, at least 1.

    Returns
    -------
    int
        Population size N.
    """
    epsilon, target = _validate.positive("epsilon", epsilon), _validate.positive("target", target)
    sample = _validate.integer("sample", sample, at_least=1)
    if epsilon > 700:
        raise ValueError(f"epsilon must be at most 700, got {epsilon!r}")
    if target >= epsilon:
        return sample
    needed = sample * (math.expm1(epsilon) / math.expm1(target))
    if needed > _validate.LARGEST_INTEGER:
        raise ValueError(
            f"epsilon must be larger for sample = {sample} and target = {target!r}, "
            f"because the population must be at most 2**53, got {epsilon!r}"
        )
    return max(sample, math.ceil(needed))


def _sizes(population: int, sample: int) -> tuple[int, int]:
    population = _validate.integer("population", population, at_least=1)
    sample = _validate.integer("sample", sample, at_least=1)
    if sample > population:
        raise ValueError(f"sample must be at most population = {population}, got {sample}")
    return population, sample
