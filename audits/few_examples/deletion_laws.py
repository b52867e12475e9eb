"""Algorithm 1 on bits: distributions given R_1, and an enumeration of the stable sets."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import hypergeom

from algorithms.few_examples.deletion import Budget
from algorithms.few_examples.items import (
    Symmetric,
)
from audits.few_examples.private_tests import sticks
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
SHARE = Interval(0.0, 1.0)
WHOLE = {"epsilon": Interval(1.5, 9.0), "delta": Interval(1e-4, 0.9, log=True)}
FREE = {"more": Integer(0, 25), "ones": SHARE, "weights": Array(SHARE, (26,)),
        "steep": SHARE, "examples": 60, **WHOLE}  # fmt: skip


class Table(Symmetric):
    """Algorithm whose probability of the answer 1 depends on the number of ones among the bits."""

    universe, n_outcomes = 2, 2

    def __init__(self, p):
        self.p = np.asarray(p)

    def pmf_of_counts(self, counts):
        """Return the row of the table."""
        p = self.p[np.asarray(counts)[..., 1]]
        return np.stack([1 - p, p], axis=-1)


class Kinds(Symmetric):
    """Algorithm with a row of probabilities for each kind of item.

    For several items, the algorithm takes the mean of the rows.
    """

    def __init__(self, p):
        self.p = np.stack([1 - np.asarray(p), p], axis=-1)
        self.universe, self.n_outcomes = self.p.shape

    def pmf_of_counts(self, counts):
        """Return the mean of the rows of the items."""
        counts = np.asarray(counts, dtype=float)
        return counts @ self.p / np.maximum(counts.sum(axis=-1, keepdims=True), 1)


def noise(part, kappa):
    """Return the distribution TDLap with this kappa."""
    weights = np.exp(-part * np.abs(np.arange(-kappa, kappa + 1)))
    return weights / weights.sum()


def answers(p, n, ones, total, part, share, reach, *, tested=True, inside=True):
    """Return the distributions of the output given R_1 = 0, ..., reach.

    Each distribution consists of Pr[0], Pr[1] and Pr[bot]. Algorithm 1 produces the output, for one
    bit per user and an algorithm A that counts the ones. The entries of p are the probabilities
    that A answers 1, and `total` is 4 kappa. If `tested` is false, all sets are stable. If `inside`
    is false, T need not contain S.
    """
    keep, found = n - total, []
    count = np.arange(keep + 1)
    far = np.maximum(sticks(p[:, None], p[None], part), sticks(p[None], p[:, None], part)) > share
    for r in range(reach + 1):
        removed = np.arange(max(0, r - n + ones), min(r, ones) + 1)  # number of ones among r users
        left = ones - removed
        low, high = np.maximum(0, keep - (n - r) + left), np.minimum(keep, left)
        met = (count >= low[:, None]) & (count <= high[:, None])
        stable = ~((met @ far) & met).any(axis=1) | (not tested)
        if not stable.any():
            found.append([0.0, 0.0, 1.0])
            continue
        ways = np.array([math.comb(ones, s) * math.comb(n - ones, r - s) for s in removed[stable]],
                        dtype=float)  # fmt: skip
        rest, chosen = (n - r, left[stable]) if inside else (n, np.full(stable.sum(), ones))
        one = float(ways / ways.sum() @ hypergeom.pmf(count, rest, chosen[:, None], keep) @ p)
        found.append([1 - one, one, 0.0])
    return np.array(found)


def sized(more, ones, weights, steep, budget):
    """Return the number of users, the number of ones, and the probabilities of the answer 1.

    The probabilities may have a steep step.
    """
    n = budget.deleted + more
    step = np.arange(more + 1) > (more + 1) * weights[0]
    return n, min(round(ones * n), n - 1), steep * step + (1 - steep) * weights[: more + 1]


STEP = {"more": 25, "ones": 0.47, "weights": np.full(26, 0.5), "steep": 1.0, "epsilon": 3.0,
        "delta": 0.01}  # fmt: skip
FIRST = {**STEP, "ones": 0.0, "weights": np.concatenate([[0.0], np.ones(25)]), "steep": 0.0}
"""Case in which the answer depends on whether there is a one. STEP has a step at one half."""


def pair_of(more, ones, weights, steep, epsilon, delta):
    """Return the distributions given R_1 on two neighbours.

    The second neighbour has one more user with a 1.
    """
    budget = Budget(epsilon, delta)
    n, ones, p = sized(more, ones, weights, steep, budget)
    args = (budget.deleted, budget.part_epsilon, budget.part_delta, 2 * budget.kappa)
    return budget, answers(p, n, ones, *args), answers(p, n, ones + 1, *args)


def stable_sets(n, total, r, far, rests):
    """Return the stable sets of r users.

    A set is stable if no two rests outside the set are far apart. A rest consists of n - total
    users.
    """
    found = []
    for s in itertools.combinations(range(n), r):
        inside = np.array([not set(s) & set(rest) for rest in rests])
        if not far[np.ix_(inside, inside)].any():
            found.append(set(s))
    return found


def far_rests(data, weights, total, part, share, shown):
    """Return the rests, their probabilities, and which rests are far apart.

    The algorithm A depends on the order.
    """
    n = data.size
    rests = list(itertools.combinations(range(n), n - total))
    code = [int(data[list(rest)] @ (1 << np.arange(n - total))) for rest in rests]
    p = weights[np.array(code) % weights.size] if shown else np.array(code) * 0.1
    both = np.maximum(sticks(p[:, None], p[None], part), sticks(p[None], p[:, None], part))
    return rests, p, both > share


ORDERED = {"data": Array(SHARE, (6,)), "user": Integer(0, 5), "total": Choice((3, 4, 5)),
           "weights": Array(SHARE, (8,)), "part": Interval(0.05, 1.0),
           "share": Interval(1e-3, 0.3)}  # fmt: skip


def alone(total):
    """Return a case in which the algorithm A reveals one user of x, who differs from all others.

    The input x' is stable at r_1 = 0, and the input x is stable at r_1 = 1.
    """
    return {"data": np.array([0.0, 0, 0, 1, 0, 0]), "user": 3, "total": total, "part": 0.1,
            "weights": np.array([0.1] + [0.9] * 7), "share": 0.01}  # fmt: skip
