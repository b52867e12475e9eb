"""Local mechanisms: one client's value, distances, reports over time, and streams."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpaudit import LocalDP, Longitudinal, LongitudinalDP, MetricDP, PureDP, Relation
from dpaudit import neighbors as nb

EPSILON = 1.0
WORDS = ["never", "rarely", "monthly", "weekly", "daily"]
PLACES = list(itertools.product([0.0, 1.0, 3.0], repeat=2))


def kary_response(value, size, *, rng):
    """Return the true word with probability e / (e + k - 1), and otherwise another word."""
    k = len(WORDS)
    keep = rng.random(size) < math.exp(EPSILON) / (math.exp(EPSILON) + k - 1)
    others = (WORDS.index(value) + rng.integers(1, k, size=size)) % k
    return np.where(keep, value, np.array(WORDS)[others])


def audit_kary_response(auditor):
    auditor.check(
        kary_response, LocalDP(EPSILON, domain=WORDS, source="Kairouz, Bonawitz, Ramage 2016")
    )


def unary_encoding(value, size, *, rng, keep, lie):
    """Return one bit for each word, each with a probability of its own."""
    truth = np.arange(8) == value
    return (rng.random((size, 8)) < np.where(truth, keep, lie)).astype(int)


def optimised_unary_encoding(value, size, *, rng):
    return unary_encoding(value, size, rng=rng, keep=0.5, lie=1 / (math.exp(EPSILON) + 1))


def audit_optimised_unary_encoding(auditor):
    auditor.check(
        optimised_unary_encoding,
        LocalDP(EPSILON, domain=range(8), source="Wang, Blocki, Li, Jha 2017"),
    )


def one_budget_for_each_bit(value, size, *, rng):
    """Spend the whole budget on each bit, although two bits change with the value."""
    keep = math.exp(EPSILON) / (math.exp(EPSILON) + 1)
    return unary_encoding(value, size, rng=rng, keep=keep, lie=1 - keep)


@pytest.mark.known_violation("two bits change, and each spends the whole budget")
def audit_one_budget_for_each_bit(auditor):
    auditor.check(one_budget_for_each_bit, LocalDP(EPSILON, domain=range(8)))


def planar_laplace(place, size, *, rng):
    """Return a place at a random distance, whose density falls by a factor e per unit."""
    radius, angle = rng.gamma(2.0, 1 / EPSILON, size=size), rng.uniform(0, 2 * np.pi, size=size)
    return np.array(place) + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


GEO = MetricDP(EPSILON, math.dist, domain=PLACES, source="Andres et al. 2013, Theorem 4.1")


@pytest.mark.nightly
def audit_planar_laplace(auditor):
    auditor.check(planar_laplace, GEO)


def exponential_radius(place, size, *, rng):
    """Draw the radius as in one dimension; the density has a pole at the true place."""
    radius, angle = rng.exponential(1 / EPSILON, size=size), rng.uniform(0, 2 * np.pi, size=size)
    return np.array(place) + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.nightly
@pytest.mark.known_violation("the radius must have a gamma distribution in the plane")
def audit_exponential_radius(auditor):
    auditor.check(exponential_radius, GEO)


REPORTS = 4
EACH, TOTAL = math.log(0.625 / 0.375), math.log(3)


def memoised_reports(value, size, *, rng):
    """Flip the value once and keep the result, then flip each report again (as RAPPOR does)."""
    kept = np.where(rng.random(size) < 0.75, value, 1 - value)[:, None]
    return np.where(rng.random((size, REPORTS)) < 0.75, kept, 1 - kept)


def fresh_reports(value, size, *, rng):
    """Forget the kept result, so that an average of many reports reveals the value."""
    once = np.where(rng.random((size, REPORTS)) < 0.75, value, 1 - value)
    return np.where(rng.random((size, REPORTS)) < 0.75, once, 1 - once)


OVER_TIME = LongitudinalDP(
    EACH, TOTAL, reports=REPORTS, domain=[0, 1], source="Erlingsson, Pihur, Korolova 2014"
)


def audit_memoised_reports(auditor):
    auditor.check(Longitudinal(memoised_reports), OVER_TIME)


@pytest.mark.known_violation("each report is private, but many of them reveal the value")
def audit_fresh_reports(auditor):
    auditor.check(Longitudinal(fresh_reports), OVER_TIME)


STEPS = 8


def tree_counts(stream, size, *, rng, scale):
    """Return all running sums of a stream, from noisy sums of the blocks of a binary tree."""
    total = np.zeros((size, STEPS))
    for level in range(STEPS.bit_length()):
        width = 2**level
        blocks = stream.reshape(-1, width).sum(axis=1)
        noisy = blocks + rng.laplace(scale=scale, size=(size, len(blocks)))
        for step in range(1, STEPS + 1):
            if step & width:
                total[:, step - 1] += noisy[:, (step >> (level + 1) << 1)]
    return total


def counts_at_all_levels(stream, size, *, rng):
    return tree_counts(stream, size, rng=rng, scale=STEPS.bit_length() / EPSILON)


@pytest.mark.nightly
def audit_counts_at_all_levels(auditor):
    auditor.check(
        counts_at_all_levels,
        PureDP(EPSILON, Relation.REPLACE_USER, "Chan, Shi, Song 2011"),
        nb.streams(STEPS),
    )


def counts_at_one_level(stream, size, *, rng):
    """Add noise for one level, although an event is in one block of every level."""
    return tree_counts(stream, size, rng=rng, scale=1 / EPSILON)


@pytest.mark.nightly
@pytest.mark.known_violation("an event changes one block of each level")
def audit_counts_at_one_level(auditor):
    auditor.check(counts_at_one_level, PureDP(EPSILON, Relation.REPLACE_USER), nb.streams(STEPS))
