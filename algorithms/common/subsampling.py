"""Running an algorithm on a random part of its input, and how much more private that is."""

from __future__ import annotations

import math

import numpy as np

from algorithms.common import _validate
from algorithms.common._validate import IntArray


def subsample(population: int, sample: int, size: int, *, rng: np.random.Generator) -> IntArray:
    """Draw indices without replacement, in random order.

    **Guarantee** An (epsilon, delta)-DP algorithm on the subsample is (`amplified_epsilon`, sample
    / population * delta)-DP on the population, for neighbours that replace one element
    (few_examples, Theorem 7, which is Balle, Barthe & Gaboardi, 2018).

    **Departs** "Randomly chooses n out of n' samples" does not say in which order they are handed
    on. In random order every algorithm on the subsample becomes symmetric, which Theorem 17 needs.

    Parameters
    ----------
    population : int
        Number of elements, at least 1.
    sample : int
        Number of elements to draw, from 1 to `population`.
    size : int
        Number of independent draws.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size, sample]
    """
    rng = _validate.generator(rng)
    population, sample = _sizes(population, sample)
    order = rng.permuted(np.tile(np.arange(population), (_validate.draws(size), 1)), axis=1)
    return order[:, :sample]


def amplified_epsilon(epsilon: float, population: int, sample: int) -> float:
    """Return ln(1 + sample / population * (exp(epsilon) - 1)), few_examples, Theorem 7.

    Parameters
    ----------
    epsilon : float
        Of the algorithm on the subsample, at least 0.
    population, sample : int
        Sizes; 1 <= sample <= population.

    Returns
    -------
    float
        Epsilon of the algorithm on the population; its delta is sample / population times delta.
    """
    population, sample = _sizes(population, sample)
    epsilon, rate = _validate.nonnegative("epsilon", epsilon), sample / population
    if epsilon > 700:  # exp overflows, and the 1 does not matter
        return epsilon + math.log(rate)
    return math.log1p(rate * math.expm1(epsilon))


def population_for(epsilon: float, target: float, sample: int) -> int:
    """Return the smallest population of which a subsample has `amplified_epsilon` <= `target`.

    few_examples, Appendix C.2: the smallest N with (exp(epsilon) - 1) n / N <= exp(target) - 1.

    **Departs** N is at least n, without which there is no subsample; the paper does not say so.

    Parameters
    ----------
    epsilon : float
        Of the algorithm on the subsample, positive, at most 700.
    target : float
        Positive.
    sample : int
        n, at least 1.

    Returns
    -------
    int
        N.
    """
    epsilon, target = _validate.positive("epsilon", epsilon), _validate.positive("target", target)
    sample = _validate.integer("sample", sample, at_least=1)
    if epsilon > 700:
        raise ValueError(f"epsilon must be at most 700, got {epsilon!r}")
    if target >= epsilon:
        return sample
    return max(sample, math.ceil(sample * (math.expm1(epsilon) / math.expm1(target))))


def _sizes(population: int, sample: int) -> tuple[int, int]:
    population = _validate.integer("population", population, at_least=1)
    sample = _validate.integer("sample", sample, at_least=1)
    if sample > population:
        raise ValueError(f"sample must be at most population = {population}, got {sample}")
    return population, sample
