"""Algorithms A for Algorithm 1, its domains, and an enumeration of the stable sets."""

from __future__ import annotations

import itertools

import numpy as np

from algorithms.few_examples.deletion import Budget
from algorithms.few_examples.items import FunctionAlgorithm, Symmetric
from audits.few_examples.private_tests import sticks
from audits.few_examples.transcribed import bits_given
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

    For several items, the algorithm takes the mean of the rows. Without items, the algorithm takes
    the first row.
    """

    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=float)
        self.universe, self.n_outcomes = self.rows.shape

    @classmethod
    def of_two(cls, p):
        """Return an algorithm with two outcomes, which answers 1 with the probabilities p."""
        return cls(np.stack([1 - np.asarray(p), p], axis=-1))

    def pmf_of_counts(self, counts):
        """Return the mean of the rows of the items."""
        counts = np.asarray(counts, dtype=float)
        total = counts.sum(axis=-1, keepdims=True)
        return np.where(total > 0, counts @ self.rows / np.maximum(total, 1), self.rows[0])

    def slowly(self, items):
        """Return the same distribution, as a list that is computed in a loop."""
        if not items:
            return list(self.rows[0])
        return [sum(self.rows[z][o] for z in items) / len(items) for o in range(self.n_outcomes)]


class Tabled(Symmetric):
    """Algorithm whose distribution is one of the given rows.

    `table` chooses the row, by the sum of 3**item over the items.
    """

    universe = 3

    def __init__(self, rows, table):
        self.rows, self.table = np.asarray(rows, dtype=float), np.asarray(table)
        self.n_outcomes = self.rows.shape[1]

    def pmf_of_counts(self, counts):
        """Return the row for these counts."""
        return self.rows[self.table[np.asarray(counts) @ [1, 3, 9] % self.table.size]]

    def slowly(self, items):
        """Return the same distribution for items in a tuple."""
        return list(self.rows[self.table[sum(3**z for z in items) % self.table.size]])


def ordered(rows, table):
    """Return an algorithm whose row depends on the order of the items, and a slow version of it."""
    rows = np.asarray(rows, dtype=float)

    def slowly(items):
        place = sum((z + 1) * 4**i for i, z in enumerate(items))
        return list(rows[table[place % len(table)]])

    return FunctionAlgorithm(slowly, 3, rows.shape[1]), slowly


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
    return budget, bits_given(p, n, ones, *args), bits_given(p, n, ones + 1, *args)


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


def six_users(order, items, m, rows, table):
    """Return six users with m of three items, an algorithm, and a slow version of it."""
    rows, table = (rows + 0.3) / (rows + 0.3).sum(axis=1, keepdims=True), (3 * table).astype(int)
    learner = None if order else Tabled(rows, table)
    learner, slowly = ordered(rows, table) if order else (learner, learner.slowly)
    return np.minimum(3 * items[:, :m], 2).astype(int), learner, slowly


SIX = {"items": Array(SHARE, (6, 2)), "m": Integer(1, 2), "rows": Array(SHARE, (3, 3)),
       "table": Array(Interval(0.0, 0.999999), (13,)), "total": Choice((2, 3, 4)),
       "r": Integer(0, 2), "part": Interval(0.05, 1.5), "share": Interval(1e-3, 0.2),
       "cells": Choice((1, 40, 2**22))}  # fmt: skip
LATE = {"items": np.array([[0, 0], [0, 0], [0.4, 0], [0.4, 0], [0.7, 0], [0.7, 0]]), "m": 1,
        "rows": np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1.0]]), "total": 4, "r": 2, "part": 0.4,
        "share": 0.1, "cells": 1,
        "table": np.array([0, 0, 0, 0, 0, 0, 0.4, 0, 0, 0, 0.7, 0, 0])}  # fmt: skip
"""Case in which only some of the sets S are stable, and the first of these sets is not stable."""

MIDDLE = {**LATE, "items": np.array([[0, 0], [0, 0], [0.4, 0], [0.4, 0], [0, 0], [0.7, 0]]),
          "rows": np.array([[1, 0, 0], [0.55, 0.45, 0], [0, 1, 0.0]]), "r": 1, "part": 1.0,
          "share": 0.1,
          "table": np.array([0.4, 0.4, 0, 0, 0, 0, 0.4, 0, 0, 0.4, 0.7, 0, 0])}  # fmt: skip
"""Case in which no two rests that contain the last user are far apart, but other rests are."""
