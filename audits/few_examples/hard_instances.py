"""Exact values for a few sources: the best pure-DP algorithm, its bounds, and sums of coins."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.special import rel_entr
from scipy.stats import binom, multinomial


def users_law(law, m):
    """Return the distribution of the kind of a user with m items.

    A kind is a count of each symbol.
    """
    kinds = [k for k in itertools.product(range(m + 1), repeat=len(law)) if sum(k) == m]
    return multinomial.pmf(np.array(kinds), m, law)


def best_success(laws, n, epsilon):
    """Return the largest worst-case success in identifying the source of n items.

    A linear program computes the maximum over all (epsilon, 0)-DP algorithms A. The algorithm A may
    ignore the order, because averaging over orders keeps the guarantee.
    """
    laws = np.asarray(laws, dtype=float)
    W, symbols = laws.shape
    states = [s for s in itertools.product(range(n + 1), repeat=symbols) if sum(s) == n]
    place = {s: i for i, s in enumerate(states)}
    size = len(states) * W + 1
    rows, columns, values, row = [], [], [], 0
    for s in states:
        for a, b in itertools.permutations(range(symbols), 2):
            if s[a]:
                t = tuple(c - (i == a) + (i == b) for i, c in enumerate(s))
                for w in range(W):
                    rows += [row, row]
                    columns += [place[s] * W + w, place[t] * W + w]
                    values += [1.0, -math.exp(epsilon)]
                    row += 1
    for w, law in enumerate(laws):
        chance = multinomial.pmf(np.array(states), n, law)
        rows += [row] * (len(states) + 1)
        columns += [*(i * W + w for i in range(len(states))), size - 1]
        values += [*-chance, 1.0]
        row += 1
    most = coo_array((values, (rows, columns)), shape=(row, size)).tocsr()
    whole = coo_array((np.ones(size - 1), (np.repeat(np.arange(len(states)), W),
                       np.arange(size - 1))), shape=(len(states), size)).tocsr()  # fmt: skip
    found = linprog([0.0] * (size - 1) + [-1.0], A_ub=most, b_ub=np.zeros(row), A_eq=whole,
                    b_eq=np.ones(len(states)), bounds=(0, 1))  # fmt: skip
    return -found.fun


def diameters(laws):
    """Return the largest KL divergence and the largest total variation of two distributions."""
    pairs = list(itertools.permutations(np.asarray(laws, dtype=float), 2))
    kl = max(rel_entr(p, q).sum() for p, q in pairs)
    return kl, max(abs(p - q).sum() / 2 for p, q in pairs)


def binary_kl(p, q):
    """Return the KL divergence of two coins."""
    return float(rel_entr(p, q) + rel_entr(1 - p, 1 - q))


def clipped_sum(n, m, mean, tau):
    """Return the distribution and the values of a sum over n users.

    Each user adds a clipped sum of m signs. The signs have the given mean, and each user's sum is
    clipped to [-tau, tau]. The threshold tau must be at least m, or an integer with the same parity
    as m.
    """
    tau = min(tau, m)
    user = np.zeros(2 * tau + 1)
    sums = np.clip(2 * np.arange(m + 1) - m, -tau, tau)
    np.add.at(user, sums + tau, binom.pmf(np.arange(m + 1), m, (1 + mean) / 2))
    length = 2 * tau * n + 1
    wide = 1 << (length - 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(user, wide) ** n, wide)[:length]
    return np.maximum(law, 0), np.arange(length) - tau * n


def compatible(levels, errors):
    """Return how many of 2^levels thresholds a hypothesis fits.

    A hypothesis fits a threshold if the hypothesis fails on at most `errors` points of the search
    path.
    """
    return sum(math.comb(levels, i) for i in range(errors + 1))
