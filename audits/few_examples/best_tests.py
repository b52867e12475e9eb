"""The best private test that distinguishes two coins, computed exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog


def move(x, epsilon, delta):
    """Return the largest probability of an event under any distribution close to a given one.

    Under the given distribution, the event has probability x.
    """
    up = math.exp(epsilon) * x + delta
    return max(0.0, min(1.0, up, 1 - math.exp(-epsilon) * (1 - x - delta)))


def best_test(n, m, bias, epsilon, delta, symmetric=True):
    """Return the best worst-case success of a private test that identifies the bias of a coin.

    There are n users with m coin flips each. The bias is either `bias` or 1 - `bias`. The linear
    program ranges over all (epsilon, delta)-user-level DP algorithms. If `symmetric` is true, the
    program ranges over the algorithms that ignore the order of users and items. Each algorithm
    answers with one bit. The last variable of the program is the success probability.
    """
    if symmetric:
        states = [s for s in itertools.product(range(n + 1), repeat=m + 1) if sum(s) == n]
        weights = [math.comb(m, k) for k in range(m + 1)]
        ways = [math.factorial(n) * math.prod(w**k / math.factorial(k)
                for w, k in zip(weights, s, strict=True)) for s in states]  # fmt: skip
        ones = [sum(k * number for k, number in enumerate(s)) for s in states]
    else:
        states = list(itertools.product(itertools.product((0, 1), repeat=m), repeat=n))
        ways, ones = np.ones(len(states)), [sum(map(sum, s)) for s in states]
    place = {s: i for i, s in enumerate(states)}
    rows, bounds, size = [], [], len(states) + 1
    for s, t in [(state, other) for state in states for other in near(state, symmetric, m)]:
        for sign, most in ((1.0, delta), (-1.0, delta + math.exp(epsilon) - 1)):
            row = np.zeros(size)
            row[place[s]], row[place[t]] = sign, -sign * math.exp(epsilon)
            rows.append(row)
            bounds.append(most)
    ones, ways = np.array(ones), np.array(ways)
    for p, sign in ((bias, 1.0), (1 - bias, -1.0)):
        law = ways * p**ones * (1 - p) ** (n * m - ones)
        rows.append(np.append(-sign * law, 1.0))  # success <= P[1] and success <= 1 - P[1]
        bounds.append(0.0 if sign > 0 else 1.0)
    found = linprog([0.0] * (size - 1) + [-1.0], A_ub=np.array(rows), b_ub=bounds, bounds=(0, 1))
    return -found.fun


def near(state, symmetric, m):
    """Yield the neighbours of a state, which lists the users or counts the users of each kind."""
    if not symmetric:
        for i, user in enumerate(state):
            for other in itertools.product((0, 1), repeat=m):
                if other != user:
                    yield (*state[:i], other, *state[i + 1 :])
        return
    for i, j in itertools.permutations(range(len(state)), 2):
        if state[i]:
            yield tuple(k - (c == i) + (c == j) for c, k in enumerate(state))


def least_users(epsilon, delta, success=2 / 3):
    """Return the least number of users that distinguish two constant sources with a given success.

    The result is exact. In the best test, a probability changes from one dataset to the next as
    fast as privacy allows.
    """
    here, n = 1 - success, 0
    while here < success:
        here, n = move(here, epsilon, delta), n + 1
    return n
