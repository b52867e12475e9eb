"""Exact distributions for tests, from their definitions, without code of the package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def laplace_cdf(x: ArrayLike, scale: float) -> Floats:
    """Return P(Lap(scale) <= x), also for x = +-inf. Scale 0 gives the point mass at 0."""
    x = np.asarray(x, dtype=float)
    if scale == 0:
        return np.where(x >= 0, 1.0, 0.0)
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0) / scale), 1 - laplace_tail(x, scale))


def laplace_tail(x: ArrayLike, scale: float) -> Floats:
    """Return P(Lap(scale) >= x)."""
    x = np.asarray(x, dtype=float)
    if scale == 0:
        return np.where(x <= 0, 1.0, 0.0)
    half = 0.5 * np.exp(-np.abs(x) / scale)
    return np.where(x > 0, half, 1 - half)


def laplace_panels(kinks: ArrayLike, scale: float, finest: float) -> tuple[Floats, Floats]:
    """Return the nodes and weights of a quadrature for the density of Lap(scale).

    The mean of g under Lap(scale) is sum(weights * g(nodes)). The sum is exact to about 1e-13 if g
    is smooth on the scale `finest` between the kinks of g.
    """
    reach = 45 * scale
    inner = np.asarray(kinks, dtype=float)
    edges = np.unique(np.concatenate([[-reach, 0.0, reach], inner[np.abs(inner) < reach]]))
    nodes, weights = [], []
    for low, high in itertools.pairwise(edges):
        n_panels = max(1, math.ceil((high - low) / (2 * finest)))
        cuts = np.linspace(low, high, n_panels + 1)
        half = np.diff(cuts)[:, None] / 2
        points = ((cuts[:-1] + cuts[1:])[:, None] / 2 + half * _NODES).ravel()
        nodes.append(points)
        weights.append((half * _WEIGHTS).ravel() * np.exp(-np.abs(points) / scale) / (2 * scale))
    return np.concatenate(nodes), np.concatenate(weights)


def pattern_probability(
    queries: ArrayLike,
    pattern: Sequence[int],
    *,
    threshold: float = 0.0,
    threshold_scale: float,
    query_scale: float,
    redraw: bool = False,
) -> float:
    """Return the probability that the first answers equal `pattern`.

    Answer i is yes if ``q_i + nu_i >= threshold + rho``. The noise rho has the distribution
    Lap(threshold_scale), and a scale of 0 means no noise. If `redraw` is True, rho is drawn anew
    after each yes.
    """
    gaps = np.asarray(queries, dtype=float)[: len(pattern)] - threshold
    if redraw:
        total, start = 1.0, 0
        for stop in [i + 1 for i, yes in enumerate(pattern) if yes] + [len(pattern)]:
            if stop > start:
                total *= pattern_probability(
                    gaps[start:stop],
                    pattern[start:stop],
                    threshold_scale=threshold_scale,
                    query_scale=query_scale,
                )
            start = stop
        return total
    if threshold_scale == 0:
        rho, weights = np.zeros(1), np.ones(1)
    else:
        finest = min(threshold_scale, query_scale or threshold_scale)
        rho, weights = laplace_panels(gaps, threshold_scale, finest)
    product = weights.copy()
    for gap, yes in zip(gaps, pattern, strict=True):
        if yes:
            product *= laplace_tail(rho - gap, query_scale)
        else:
            product *= laplace_cdf(rho - gap, query_scale) if query_scale else rho > gap
    return float(product.sum())


def release_probability(
    queries: ArrayLike,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    threshold: float = 0.0,
    threshold_scale: float,
    query_scale: float,
) -> float:
    """Return P(every answer but the last is no, and the last releases a value in [low, high])."""
    values = np.asarray(queries, dtype=float)
    *refused, last = values
    kinks = np.concatenate([values - threshold, [low - threshold, high - threshold]])
    rho, weights = laplace_panels(
        kinks[np.isfinite(kinks)], threshold_scale, min(threshold_scale, query_scale)
    )
    product = weights.copy()
    for value in refused:
        product *= laplace_cdf(threshold + rho - value, query_scale)
    floor = np.maximum(low, threshold + rho)
    inside = laplace_tail(floor - last, query_scale) - laplace_tail(high - last, query_scale)
    product *= np.where(floor < high, inside, 0.0)
    return float(product.sum())


def halting_patterns(n_queries: int, cutoff: int | None, halting_answer: int = 1) -> list[tuple]:
    """Return all answer streams, up to the cutoff-th `halting_answer` or to the last query."""
    found: list[tuple] = []

    def extend(prefix: tuple) -> None:
        halted = cutoff is not None and prefix.count(halting_answer) >= cutoff
        if halted or len(prefix) == n_queries:
            found.append(prefix)
            return
        extend((*prefix, 0))
        extend((*prefix, 1))

    extend(())
    return found


def pattern_counts(answers: Floats, patterns: Sequence[tuple]) -> NDArray[np.int64]:
    """Return how many rows [size, T] consist of each pattern followed only by NaN."""
    counts = []
    for pattern in patterns:
        padded = np.full(answers.shape[1], np.nan)
        padded[: len(pattern)] = pattern
        same = (answers == padded) | (np.isnan(answers) & np.isnan(padded))
        counts.append(int(same.all(axis=1).sum()))
    assert sum(counts) == len(answers), "a stream outside the range of the mechanism"
    return np.array(counts)
