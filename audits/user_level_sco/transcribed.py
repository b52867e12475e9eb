"""The algorithms and parameters of both versions as the papers print them, in plain loops.

The checks compare these functions with `algorithms.user_level_sco`, from which nothing is imported
here. Letters are those of the papers. Numbers of algorithms are those of v2: Algorithms 3, 5, 6, 7
and 8 are Algorithms 4, 5, 1, 2 and 3 of v1.

A stream of noise is a function: `laplace(b)` returns the next sample of Lap(b), and `normal(sigma,
d)` returns the next vector of N(0, sigma^2 I_d). So both sides of a check use the same numbers.
"""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

import numpy as np


def log(value):
    """Return the logarithm, read by the conventions as natural and at least 1."""
    return max(1.0, math.log(value))


# --- domains and gradients ------------------------------------------------------------------------


def onto_ball(radius):
    """Return the projection on the Euclidean ball of a radius around 0."""
    return lambda x: x * (radius / max(radius, math.sqrt(sum(float(c) ** 2 for c in x))))


def onto_box(radius):
    """Return the projection on the l_inf ball of a radius around 0."""
    return lambda x: np.array([max(-radius, min(radius, float(c))) for c in x])


def huber_gradient(x, z):
    """Return the gradient at x of the Huber loss with threshold 1."""
    return (x - z) / max(1.0, float(np.linalg.norm(x - z)))


def bent_gradient(x, z):
    """Return the gradient at x of (h / 2) norm(x - y)^2, for the item z = (y, h)."""
    return z[-1] * (x - z[:-1])


def mean_gradient(gradient, x, Z):
    """Return q_t(Z), the mean of the gradients of a user's m items."""
    return sum(gradient(x, z) for z in Z) / len(Z)


# --- v2, Section 3 and Algorithms 1 and 2 ---------------------------------------------------------


class Euclidean(NamedTuple):
    """Parameters of v2, Section 3, and of the first lines of Algorithms 1 and 2."""

    B: int
    eta: float
    tau: float
    S: int
    c: float
    cutoff_noise: float
    F: float


def fewest_users(m, epsilon, delta):
    """Return the smallest integer n from which n >= 300 log^3(mn/delta) / epsilon^(3/2) holds.

    n / log^3(mn/delta) increases for log(mn/delta) >= 3, so the condition holds from there on.
    """

    def holds(n):
        return n >= 300 * log(m * n / delta) ** 3 / epsilon ** (3 / 2)

    n = 1e9
    for _ in range(200):  # the fixed point of the condition
        n = 300 * log(m * n / delta) ** 3 / epsilon ** (3 / 2)
    found = round(n)
    while holds(found - 1):
        found -= 1
    while not holds(found):
        found += 1
    return found


def euclidean(n, m, d, epsilon, delta, G, D):
    """Return the parameters of Section 3. B is rounded up."""
    B = math.ceil(300 * log(m * n / delta) ** 2 / epsilon ** (3 / 2))
    eta = D / G * B * math.sqrt(m)
    eta *= min(1 / math.sqrt(n), epsilon / math.sqrt(d * log(1 / delta) * log(n * m * d)))
    tau = math.sqrt(m) / (20 * G * log(n * m * d))
    S = math.ceil(math.log(n / B))  # Algorithm 1
    c = 10 * log(n * m / delta) / epsilon  # Algorithm 2: chat = c + Lap(4/epsilon)
    return Euclidean(B, eta, tau, S, c, 4 / epsilon, 3 * B / 4)


def sigma_of_scores(chat, epsilon, delta):
    """Return sigma = 4 sqrt(32 chat log(1/delta)) / epsilon of Algorithm 2."""
    return 4 * math.sqrt(32 * max(chat, 0.0) * log(1 / delta)) / epsilon


def euclidean_phases(n, m, d, epsilon, delta, G, D, constant=1.0):
    """Return n_s, eta_s and sigma_s of Algorithm 1 for s = 1, ..., S."""
    B, eta, _, S, *_ = euclidean(n, m, d, epsilon, delta, G, D)
    found = []
    for s in range(1, S + 1):
        eta_s = eta / log(m) ** s
        sigma_s = eta_s * G * math.sqrt(log(1 / delta) * log(n * m * d))
        sigma_s *= constant / (B * math.sqrt(m) * epsilon)
        found.append((n / 2**s, eta_s, sigma_s))
    return found


def batches(n_s, B):
    """Return T = n_s / B, rounded down."""
    return math.floor(n_s / B)


def localised(users, x_0, phases, B, run, normal, project, factor=1.0):
    """Run Algorithm 1 or Algorithm 5, and return xbar_s and x_s of each phase.

    `run(users, eta_s, x, s)` is Algorithm 2 or 6. A phase without a whole batch is omitted. The
    noisy iterate x_s is projected to the domain.
    """
    x, used, found = np.asarray(x_0, dtype=float), 0, []
    for s, (n_s, eta_s, sigma_s) in enumerate(phases, 1):
        size = batches(n_s, B) * B
        if size == 0:
            break
        own = users[used : used + size]  # unused users
        used += size
        average = run(own, eta_s, x, s)
        x = project(average + normal(factor * sigma_s, len(x)))
        found.append((average, x))
    return found


def distance(x, y):
    """Return norm(x - y)_2."""
    return math.sqrt(sum((x - y) ** 2))


def concentration(tau, q, i):
    """Return kappa_(t,i), the sum over the batch of exp(-tau norm(q_t(Z_(t,i)) - q_t(Z))_2)."""
    return sum(math.exp(-tau * distance(q[i], other)) for other in q)


def filtered_sgd(
    users, x_0, *, gradient, project, B, eta, tau, F, c, cutoff_noise, score_noise, laplace,
    score=concentration,
):  # fmt: skip
    """Run Algorithm 2, and return xbar (x_0 on halt) and the decisions until the halt.

    `score_noise(chat)` is 2 sigma, the scale of the noise on the scores. `score(tau, q, i)` is
    kappa_(t,i).
    """
    x = x_0 = np.asarray(x_0, dtype=float)
    T = len(users) // B
    chat = c + laplace(cutoff_noise)
    two_sigma, count = score_noise(chat), 0
    decisions, iterates = [], []
    for t in range(T):
        D_t = users[t * B : (t + 1) * B]
        kept = list(range(B))
        q = [mean_gradient(gradient, x, Z) for Z in D_t]
        for i in range(B):
            kappa = score(tau, q, i)
            nu = laplace(two_sigma)
            if kappa + nu <= F:
                kept.remove(i)
                count += 1
                decisions.append(0.0)
            else:
                decisions.append(1.0)
            if count >= chat or not kept:
                return x_0, decisions  # halt
        g = sum(q[i] for i in kept) / len(kept)
        x = project(x - eta * g)
        iterates.append(x)
    return sum(iterates) / T, decisions


# --- v2, Appendix A.1: Algorithms 3 and 4 ---------------------------------------------------------


def above_threshold(queries, threshold, epsilon, laplace):
    """Run Algorithm 3 (v1, Algorithm 4), and return the answers until the halt."""
    noisy = threshold - laplace(2 / epsilon)
    answers = []
    for q in queries:
        nu = laplace(4 / epsilon)
        if q + nu < noisy:
            answers.append(0.0)
            break
        answers.append(1.0)
    return answers


def dwork_roth(queries, threshold, epsilon, laplace):
    """Run Algorithm 1 of Dwork and Roth (2014), of which Algorithm 3 is the mirror image."""
    noisy = threshold + laplace(2 / epsilon)
    answers = []
    for q in queries:
        nu = laplace(4 / epsilon)
        if q + nu >= noisy:
            answers.append(1.0)
            break
        answers.append(0.0)
    return answers


def target_charging(queries, thresholds, cutoff, epsilon, laplace):
    """Run Algorithm 4, and return the answers until the break."""
    c_b, answers = 0, []
    for q, level in zip(queries, thresholds, strict=True):
        nu = laplace(1 / epsilon)
        if q + nu >= level:
            answers.append(1.0)
            c_b += 1
            if c_b >= cutoff:
                break
        else:
            answers.append(0.0)
    return answers


# --- v2, Appendix C.2 and D: Algorithms 5 to 8 (v1: 5, 1, 2, 3) -----------------------------------


class Coordinatewise(NamedTuple):
    """Parameters of v2, Theorem C.2 (v1, Theorem 3.1)."""

    B: int
    eta: float
    deviation: float
    S: int
    v: float


def coordinatewise(n, m, d, epsilon, delta, G, D):
    """Return the parameters of Theorem C.2. B is rounded up, and S is at least 1.

    `deviation` is G log(nmd) / sqrt(m), which the theorem prints for tau with a hidden constant.
    The T in v belongs to the first phase.
    """
    B = math.ceil(100 * log(m * n * d / delta) / epsilon)
    eta = min(
        B * math.sqrt(m) / math.sqrt(n),
        math.sqrt(m) * epsilon / math.sqrt(d * log(1 / delta) * log(n * m * d)),
    )
    deviation = G * log(n * m * d) / math.sqrt(m)
    S = max(1, math.ceil(math.log(n / B)))
    v = 0.9 * B + 2 * log(batches(n / 2, B) / delta) / epsilon
    return Coordinatewise(B, D / G * eta, deviation, S, v)


def coordinatewise_phases(n, m, d, epsilon, delta, G, D, constant=1.0):
    """Return n_s, eta_s and sigma_s of Algorithm 5 for s = 1, ..., S."""
    _, eta, _, S, _ = coordinatewise(n, m, d, epsilon, delta, G, D)
    found = []
    for s in range(1, S + 1):
        eta_s = log(m) ** (-s) * eta
        square = d * math.log(math.exp(epsilon) / delta) * log(n * m * d)
        found.append((n / 2**s, eta_s, constant * eta_s * G * math.sqrt(square / m) / epsilon))
    return found


def middle(column, trim=None):
    """Return the median, or the mean without the `trim` smallest and `trim` largest values."""
    if trim is None:
        return statistics.median(column)
    return statistics.fmean(sorted(column)[trim : len(column) - trim])


def robust_gradient(X, varsigma, trim=None):
    """Run Algorithm 7 (v1, Algorithm 2) with X_rs[j] for the undefined Y_j."""
    X_est = []
    for column in np.asarray(X).T.tolist():
        X_rs, mean = middle(column, trim), statistics.fmean(column)
        if abs(X_rs - mean) >= varsigma:
            X_est.append(max(X_rs - varsigma, min(mean, X_rs + varsigma)))
        else:
            X_est.append(mean)
    return np.array(X_est)


def concentration_of_batch(q, tau):
    """Return the score (15) of a batch ((3) of v1), by the printed double sum."""
    return sum(math.exp(-tau * max(abs(a - b))) for a in q for b in q) / len(q)


def concentration_test(scores, epsilon, v, laplace, *, per_step=False):
    """Run Algorithm 8 (v1, Algorithm 3) on the scores, and return whether each answer is top.

    One AboveThreshold receives the stream of scores. If `per_step` is True, each score gets an
    AboveThreshold of its own, which is the literal reading of the printed loop.
    """
    if per_step:
        return [above_threshold([s], v, epsilon / 2, laplace) == [1.0] for s in scores]
    answers = above_threshold(scores, v, epsilon / 2, laplace)
    return [a == 1.0 for a in answers] + [False] * (len(scores) - len(answers))


def robust_sgd(
    users, x_0, *, gradient, project, B, eta, tau, varsigma, v, epsilon, laplace, trim=None,
    sensitivity=1.0, per_step=False,
):  # fmt: skip
    """Run Algorithm 6 (v1, Algorithm 1), and return its output, x_1 to x_T and the scores.

    `epsilon` is the parameter of the whole algorithm. The noise of the test is multiplied by
    `sensitivity`, which is 1 in the paper. `varsigma` is printed as 1 / tau.
    """
    x = x_0 = np.asarray(x_0, dtype=float)
    T = len(users) // B
    iterates, scores = [], []
    for t in range(T):
        q = [mean_gradient(gradient, x, Z) for Z in users[t * B : (t + 1) * B]]
        g = robust_gradient(q, varsigma, trim)
        x = project(x - eta * g)
        iterates.append(x)
        scores.append(concentration_of_batch(q, tau))
    answers = concentration_test(scores, epsilon / sensitivity, v, laplace, per_step=per_step)
    return (sum(iterates) / T if all(answers) else x_0), iterates, scores


# --- streams of noise -----------------------------------------------------------------------------


def streams(units):
    """Return for each row of standard noise a function that scales the next number of the row."""

    def stream(row):
        rest = iter(row)
        return lambda scale: scale * float(next(rest))

    return [stream(row) for row in np.asarray(units)]


def filtered_sgd_on_groups(places, x_0, *, project, B, eta, tau, F, chat, score_noise, units):
    """Run Algorithm 2 on linear losses f(x; z) = -<x, z> in one dimension, batch by batch.

    `places` are the users' mean items, with few different values, so kappa is a sum over these
    values. `units` is standard Laplace noise for each user.
    """
    x, total, count, T = x_0, 0.0, 0, len(places) // B
    for t in range(T):
        own = slice(t * B, (t + 1) * B)
        values, group, sizes = np.unique(-places[own], return_inverse=True, return_counts=True)
        kappa = np.exp(-tau * abs(values[:, None] - values)) @ sizes
        kept = ~(kappa[group] + score_noise(chat) * units[own] <= F)
        count += int((~kept).sum())
        if count >= chat or not kept.any():
            return x_0
        x = project(x - eta * values[group][kept].sum() / kept.sum())
        total += x
    return total / T
