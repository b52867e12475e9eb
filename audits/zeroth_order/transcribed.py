"""Algorithms, parameters and bounds as the paper prints them, in plain loops.

The checks compare these functions with `algorithms.zeroth_order`, from which nothing is imported
here. Letters are those of the paper.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np


def estimate(f, items, radius, u, x, y=None):
    """Evaluate line 3 of Algorithm 1 at x, or of Algorithm 2 at x and y, with written-out sums.

    The directions u have the shape [b, j, d].
    """
    b, n, d = u.shape
    total = np.zeros(d)
    for i in range(b):
        for j in range(n):
            ahead = x + radius * u[i, j]
            behind = x - radius * u[i, j] if y is None else y + radius * u[i, j]
            half = 2 if y is None else 1
            gap = f(ahead, items[i]) - f(behind, items[i])
            total += (1 / b) * (1 / n) * (d / (half * radius)) * gap * u[i, j]
    return total


def node(t, ceil=math.ceil):
    """Return Node(t) of Algorithm 5, with floating-point logarithms."""
    k, S, depth = 0, [], ceil(math.log2(t))  # line 6
    for i in range(depth + 1):  # line 7
        if not k < t:
            break
        end = k + 2 ** (depth - i)  # line 8
        if end <= t:
            S.append((k + 1, end))
            k = end
    return S


def variance_reduced(f, path, items, B_1, B_2, radius, u, sigma, rng):
    """Return g~_1, ..., g~_T of Algorithm 4 at w_1, ..., w_T, with g_t in line 9."""
    g, xi, found, used = None, {}, [], 0
    for t in range(1, len(path) + 1):
        size = B_1 if t == 1 else B_2
        own = slice(used, used + size)
        used += size
        w = path[t - 1]
        if t == 1:
            g = estimate(f, items[own], radius, u[own], w)  # line 5
        else:
            g = g + estimate(f, items[own], radius, u[own], w, path[t - 2])  # lines 7 and 8
        xi[t] = rng.normal(scale=sigma, size=(1, len(w)))[0]  # line 3 of Algorithm 5
        found.append(g + sum(xi[end] for _, end in node(t)))
    return np.array(found)


def naive(f, path, items, B, radius, u, sigma, rng):
    """Return g~_1, ..., g~_T of Algorithm 6 at w_1, ..., w_T."""
    found, d = [], path.shape[1]
    for t, w in enumerate(path):
        g = np.zeros(d)
        for i in range(B):
            z, v = items[B * t + i], u[B * t + i, 0]
            g += d / (2 * radius) * (f(w + radius * v, z) - f(w - radius * v, z)) * v / B  # line 5
        found.append(g + rng.normal(scale=sigma, size=(1, d))[0])  # line 6
    return np.array(found)


def sensitivity(T, d, L, B_1, B_2, radius, moves):
    """Return s_1, ..., s_T of the proof of Corollary 4.4, for the lengths of w_t - w_(t-1)."""
    return [2 * d * L / B_1, *(2 * d * L / (B_2 * radius) * moves[t - 2] for t in range(2, T + 1))]


def tree_parameter(s, sigma, T):
    """Return the largest mu of an item: each node that contains its time has noise sigma."""
    nodes = {part for t in range(1, T + 1) for part in node(t)}
    most = 0.0
    for q in range(1, T + 1):
        inside = sum(first <= q <= last for first, last in nodes)
        most = max(most, s[q - 1] * math.sqrt(inside) / sigma)
    return most


def corollary_4_4_sigma(T, B_2, d, L, rho):
    return math.sqrt(2 * math.log(T)) * 4 * d * L / (B_2 * T * rho)


class Parameters(NamedTuple):
    """T, K, D, sigma, and the sizes of batches."""

    T: int
    K: int
    D: float
    sigma: float
    batches: tuple[int, ...]


def theorem_4_9(M, d, delta, rho, L, F):
    """Return the parameters of Theorem 4.9 for F* = F, rounded down; None if T < 2 or K < 1."""
    T = min(
        (math.sqrt(d) * L * delta * M / (F + L * delta)) ** (2 / 3),
        (d ** (3 / 2) * L * delta * M / ((F + L * delta) * rho)) ** (1 / 2),
    )
    T = math.floor(T)
    if T < 2 or M < 2 * T:
        return None
    return Parameters(
        T, math.floor(M / (2 * T)), delta / T, corollary_4_4_sigma(T, 1, d, L, rho), (T + 1, 1)
    )


def appendix_e(M, d, delta, rho, L, F):
    """Return the parameters of Appendix E with B = 1, rounded down; None if T < 1 or K < 1."""
    T = min(
        (math.sqrt(d) * L * delta * M / (F + L * delta)) ** (2 / 3),
        (d ** (3 / 2) * L * delta * M / ((F + L * delta) * rho)) ** (2 / 3),
    )
    T = math.floor(T)
    if not 1 <= T <= M:
        return None
    return Parameters(T, math.floor(M / T), delta / T, d * L / (1 * rho), (1,))


def squared_error(d, L, T, D, delta, B_1, B_2):
    """Return the sum in the proof of Lemma 4.8: one Grad, and T - 1 Diffs that move by 2 D."""
    total = 16 * d * L**2 / B_1
    for _ in range(2, T + 1):
        total += 16 * d * L**2 / (B_2 * delta**2) * (2 * D) ** 2
    return total


def tree_variance(d, T, sigma):
    """Return the largest E norm(Tree(t))^2 of Corollary 4.5, with the exact number of nodes."""
    return max(len(node(t)) for t in range(1, T + 1)) * d * sigma**2


def corollary_4_7(F, L, delta, D, K, T, eta, moment, error, noise):
    """Return the three terms of Corollary 4.7 for OSD with step eta.

    Here norm(Delta - uhat) <= 2 D and E norm(g~_t)^2 <= moment. The numbers `error` and `noise`
    bound the root mean squares of g_t - grad Fhat and of the noise.
    """
    optimality = (F + 2 * L * delta) / (D * K * T)
    regret = K * (D**2 / (2 * eta) + eta / 2 * T * moment) / (D * K * T)
    inner = K * T * 2 * D * (error + noise) / (D * K * T)
    return optimality, regret, inner
