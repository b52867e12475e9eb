"""Leaks that no single coordinate, norm or difference of means reveals.

Each mechanism reveals its secret in one feature of its output only. All other features of its
output are noise. The secret is one bit. The secret is reported correctly with probability .9,
unless the name says otherwise. Therefore, the best event and its two rates are known exactly.
:mod:`benchmarks.tightness` audits all these mechanisms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import stats

from algorithms.common import sparse_vector_variants as variants
from dpaudit import NeighborPair, Relation
from dpaudit.stats import oracles

RIGHT = 0.9
"""Probability with which the secret is reported correctly."""

LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
MIXED = np.random.default_rng(0).permutation(10_000)
BIT = NeighborPair(np.array([1]), np.array([0]))
QUERIES = Relation.WITHIN_SENSITIVITY


def told(data, size, rng):
    """Return the secret bit, flipped in each draw with probability .1."""
    return data[0] ^ (rng.random(size) >= RIGHT).astype(np.int64)


def residue(data, size, *, rng, modulus, scale):
    """Hide everything except the residue, which is the secret residue or any other residue."""
    others = rng.integers(1, modulus, size)
    value = (3 if modulus > 2 else 1) * data[0] + np.where(rng.random(size) < RIGHT, 0, others)
    return modulus * np.rint(rng.laplace(scale=scale, size=size)).astype(np.int64) + value % modulus


def many_labels(data, size, *, rng, text=False):
    """Return one of 10,000 labels, where the secret decides which half is likelier."""
    label = MIXED[5_000 * told(data, size, rng) + rng.integers(5_000, size=size)]
    return np.char.add("user", label.astype(str)) if text else label


def letters(size, count, rng):
    """Return random words."""
    return LETTERS[rng.integers(26, size=(size, count))].view(f"U{count}")[:, 0]


def secret_end(data, size, *, rng, front=False):
    """Return a random word with a secret end, or with a secret beginning."""
    word, end = letters(size, 9, rng), np.array(["xq", "kz"])[told(data, size, rng)]
    return np.char.add(end, word) if front else np.char.add(word, end)


def secret_length(data, size, *, rng):
    """Return a random word of odd or even length, where the parity is secret."""
    length = 4 + 2 * rng.integers(4, size=size) + told(data, size, rng)
    words = np.char.add(letters(size, 11, rng), "")
    return np.array([w[:n] for w, n in zip(words.tolist(), length.tolist(), strict=True)])


def comb(data, size, *, rng, period):
    """Hide everything except whether the fractional part, in periods, is above one half."""
    whole = np.rint(rng.normal(size=size) / period)
    return period * (whole + (rng.random(size) + told(data, size, rng)) / 2)


def twin_coordinates(data, size, *, rng):
    """Return 15 numbers. On the left, two of the numbers are equal with probability .3."""
    x = rng.normal(size=(size, 15))
    same = (rng.random(size) < 0.3) & (data[0] == 1)
    x[same, 11] = x[same, 4]
    return x


def unit_direction(dim):
    """Return a direction that is not close to any axis."""
    u = np.cos(1.0 + 2.0 * np.arange(dim))
    return u / np.linalg.norm(u)


def spread_direction(data, size, *, rng, dim, variance):
    """Return standard Gaussian noise with a larger variance in one direction on the left."""
    x, u = rng.normal(size=(size, dim)), unit_direction(dim)
    return x + data[0] * (np.sqrt(variance) - 1) * (x @ u)[:, None] * u


def correlated(data, size, *, rng, dim, correlation, count=None):
    """Return standard Gaussian noise. On the left, the last coordinates are equally correlated."""
    x, rho = rng.normal(size=(size, dim)), correlation * data[0]
    part = x[:, dim - (count or dim) :]
    part *= np.sqrt(1 - rho)
    part += np.sqrt(rho) * rng.normal(size=(size, 1))
    return x


def shape_that_tells(data, size, *, rng):
    """Return noise with three coordinates on the left and four on the right."""
    return rng.normal(size=(size, 3 if data[0] else 4))


def length_that_tells(data, size, *, rng):
    """Return lists of noise whose lengths reveal the secret."""
    lengths = 1 + 2 * rng.integers(3, size=size) + told(data, size, rng)
    return [rng.normal(size=length) for length in lengths.tolist()]


@dataclass(frozen=True)
class Curve:
    """Rates (p, q) of events likelier on the left, and of events likelier on the right."""

    left: tuple[np.ndarray, np.ndarray]
    right: tuple[np.ndarray, np.ndarray]

    def curve(self):
        """Return p and q."""
        return self.left

    def swapped(self):
        """Return the same curve with the sides exchanged."""
        return Curve(self.right, self.left)

    def epsilon(self, delta):
        """Return the true epsilon. The epsilon is infinite, because the ratio has no bound."""
        return np.inf


def of_two_gaussians(large, small, count):
    """Return the oracle of two Gaussians with different variances.

    One Gaussian has variances (large, small, ..., small), where small occurs `count` times. All
    variances of the other Gaussian are 1. Up to the variances, the loss is a u^2 + b w. The
    variable u is standard Gaussian, and w is chi-square with `count` degrees of freedom. The
    distribution of the loss is computed by one integral over u.
    """
    grid = np.linspace(-14, 14, 3_001)
    weight = stats.norm.pdf(grid) * (grid[1] - grid[0])
    a, b = (1 - 1 / large) / 2, (1 / small - 1) / 2

    def above(t, large, small):
        if count == 0:
            return 2 * stats.norm.sf(np.sqrt(np.maximum(t, 0) / a / large))
        inside = [stats.chi2.cdf((a * large * grid**2 - x) / (b * small), count) for x in t]
        return np.array(inside) @ weight

    top = 60.0 if count == 0 else 40.0
    bottom = 0.0 if count == 0 else -40.0 * count * b
    t = np.sinh(np.linspace(np.arcsinh(bottom), np.arcsinh(top), 800))
    p, q = above(t, large, small), above(t, 1.0, 1.0)
    return Curve((p, q), (1 - q, 1 - p))


def patterns(pair, threshold_scale, query_scale, cutoff):
    """Return the oracle of a sparse vector on a pair of queries."""
    sides = [
        oracles.sparse_vector_patterns(
            side,
            thresholds=0.0,
            threshold_scale=threshold_scale,
            query_scale=query_scale,
            cutoff=cutoff,
        ).probabilities
        for side in (pair.left, pair.right)
    ]
    return oracles.discrete(*sides)


def streams():
    """Yield sparse vector variants on pairs that reveal only a small part of their loss."""
    above = NeighborPair(np.ones(8), np.zeros(8), relation=QUERIES)
    crossing = NeighborPair(np.array([1.0, 0.0]), np.array([0.0, 1.0]), relation=QUERIES)
    rise = np.repeat([-0.5, 0.5], 5)
    rising = NeighborPair(rise, -rise, relation=QUERIES)
    slowly = NeighborPair(rise / 4, -rise / 4, relation=QUERIES)
    ask = {"thresholds": 0.0, "epsilon": 1.0, "sensitivity": 1.0}
    for name, pair, mechanism, cutoff, scales in (
        ("variant 4, all above", above, variants.svt4, 5, (4.0, 4 / 3)),
        ("variant 1, all above", above, variants.svt1, 1, (2.0, 4.0)),
        ("variant 6, all above", above, variants.svt6, None, (2.0, 2.0)),
        ("variant 1, five of them", above, variants.svt1, 5, (2.0, 20.0)),
        ("variant 1, five that rise", rising, variants.svt1, 5, (2.0, 20.0)),
        ("variant 1, crossing", crossing, variants.svt1, 1, (2.0, 4.0)),
        ("variant 1, crossing, cutoff 5", crossing, variants.svt1, 5, (2.0, 20.0)),
        ("variant 2, all above", above, variants.svt2, 1, (2.0, 4.0)),
        ("variant 4, that rise", slowly, variants.svt4, 5, (4.0, 4 / 3)),
    ):
        of = {} if cutoff is None else {"cutoff": cutoff}
        yield (
            f"sparse vector {name}",
            partial(mechanism, **ask, **of),
            pair,
            partial(patterns, pair, *scales, cutoff),
        )


def cases():
    """Yield name, mechanism, pair, and a function that computes the oracle in a few seconds."""
    flip = partial(oracles.discrete, [RIGHT, 1 - RIGHT], [1 - RIGHT, RIGHT])
    for scale in (1e3, 1e6):
        bit = partial(residue, modulus=2, scale=scale)
        yield f"parity, noise of scale {scale:,.0f}", bit, BIT, flip
    rates = np.full((2, 7), (1 - RIGHT) / 6)
    rates[0, 3] = rates[1, 0] = RIGHT
    seven = partial(oracles.discrete, *rates)
    yield "value mod 7", partial(residue, modulus=7, scale=1e3), BIT, seven
    yield "10,000 labels, integers", many_labels, BIT, flip
    yield "10,000 labels, texts", partial(many_labels, text=True), BIT, flip
    yield "text with a secret suffix", secret_end, BIT, flip
    yield "text with a secret prefix", partial(secret_end, front=True), BIT, flip
    yield "text of secret length", secret_length, BIT, flip
    yield "comb of period .01", partial(comb, period=0.01), BIT, flip
    yield "comb of period .0372", partial(comb, period=0.0372), BIT, flip
    equal = partial(oracles.discrete, [0.3, 0.7], [0.0, 1.0])
    yield "two of 15 coordinates equal", twin_coordinates, BIT, equal
    yield (
        "variance 2.25 in one direction of 50",
        partial(spread_direction, dim=50, variance=2.25),
        BIT,
        partial(of_two_gaussians, 2.25, 1.0, 0),
    )
    yield (
        "correlation .9 in 10 dimensions",
        partial(correlated, dim=10, correlation=0.9),
        BIT,
        partial(of_two_gaussians, 9.1, 0.1, 9),
    )
    yield (
        "correlation .9 of two of 10",
        partial(correlated, dim=10, correlation=0.9, count=2),
        BIT,
        partial(of_two_gaussians, 1.9, 0.1, 1),
    )
    certain = partial(oracles.discrete, [1.0, 0.0], [0.0, 1.0])
    yield "shape (3,) or (4,)", shape_that_tells, BIT, certain
    yield "lists of secret length", length_that_tells, BIT, flip
    yield from streams()
