"""Bounds and parameters that `accounts`, `scaled` and `baselines` derive, computed again.

The paper prints none of these. Each function follows the proof or the rule in the docstring of the
function that it checks, and nothing is imported from `algorithms`.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr
from scipy.stats import binom

LOUDEST = 8.0
"""Largest parameter of one decision for which the accounts compute a bound."""

TAILS = [10.0**-i for i in range(2, 19)]
"""Tails among which the account of a filter is minimised, next to delta / 8."""


def gaussian_delta(epsilon, mu):
    """Return Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) for each epsilon."""
    if mu == 0:
        return np.maximum(0.0, 1 - np.exp(np.minimum(epsilon, 1.0)))
    upper = np.exp(log_ndtr(mu / 2 - epsilon / mu))
    return np.maximum(0.0, upper - np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu)))


def composed(epsilon, calls, epsilon0, epsilon1, mu):
    """Return delta for `calls` responses at epsilon0, one at epsilon1 and Gaussian noise.

    A randomised response has the loss epsilon0 with probability e^epsilon0 / (1 + e^epsilon0), and
    the loss -epsilon0 otherwise. The Gaussian is applied to what is left of epsilon.
    """
    ups = np.arange(calls + 1)
    chances = binom.pmf(ups, calls, expit(epsilon0))  # e^x / (1 + e^x)
    likely, total = expit(epsilon1), 0.0
    for chance, loss in ((likely, epsilon1), (1 - likely, -epsilon1)):
        left = epsilon - loss - epsilon0 * (ups - (calls - ups))
        total += chance * float(chances @ gaussian_delta(left, mu))
    return min(1.0, total)


def noise_ratio(epsilon, delta, calls=0, epsilon0=0.0, epsilon1=0.0):
    """Return the largest mu of the Gaussian noise for which the composition has this delta."""

    def excess(log_mu):
        return composed(epsilon, calls, epsilon0, epsilon1, math.exp(log_mu)) - delta

    return math.exp(brentq(excess, -18.0, 9.0, xtol=1e-12))


def loudest_answers(epsilon, delta, calls):
    """Return the largest epsilon0 for which the composition of answers has this delta."""
    return brentq(lambda e: composed(epsilon, calls, e, 0.0, 0.0) - delta, 1e-9, 40.0, xtol=1e-13)


def two_laplace_tail(x, a, b):
    """Return P[a X + b Y >= x] for independent Laplace variables of scale 1, by quadrature."""

    def above(y):  # P[a X >= x - b y]
        z = (x - b * y) / a
        return math.exp(-z) / 2 if z > 0 else 1 - math.exp(z) / 2

    edges = sorted({-60.0, 0.0, max(-60.0, min(60.0, x / b)), 60.0})
    parts = itertools.pairwise(edges)
    return sum(
        quad(lambda y: math.exp(-abs(y)) / 2 * above(y), *part, epsabs=0, epsrel=1e-11)[0]
        for part in parts
        if part[1] > part[0]
    )


def fewest_calls(targets, epsilon0, failure):
    """Return the smallest k with P[Bin(k, q) < targets] <= failure, q = 1 / (1 + e^epsilon0)."""
    q = 1 / (1 + math.exp(epsilon0))
    most = 4 * targets + 100
    while binom.cdf(targets - 1, most, q) > failure:
        most *= 2
    enough = binom.cdf(targets - 1, np.arange(targets, most + 1), q) <= failure
    return targets + int(np.argmax(enough))


# --- the filter -----------------------------------------------------------------------------------


def decision(b, sensitivity, p=None):
    """Return the privacy parameter of one decision with Laplace noise of scale b.

    In batch t, scores move by 1; with samples of a share p, they move by 1 / p with probability p.
    Later scores move by `sensitivity`.
    """
    first = 1 / b if p is None else math.log(1 + p * (math.exp(min(700.0, 1 / (p * b))) - 1))
    return max(first, sensitivity / b)


def overestimate(B, k, tail):
    """Return t with (B + 1) exp(-2 k t^2 / B^2) = tail, or 0 if all users are used."""
    return 0.0 if k is None else math.sqrt(B**2 / (2 * k) * math.log((B + 1) / tail))


def filter_account(B, G, beta, eta, sigma, rule, epsilon, tail):
    """Return the cost of a phase by steps 1 to 7 of the proof, with three or four tails."""
    k = rule.samples
    theta = rule.scale * math.log(B / 2 / tail) + overestimate(B, k, tail)  # step 2
    closeness = (2 * rule.threshold - 2 * theta - 1) / B - 1  # exp(-r)
    r = math.inf if closeness <= 0 else max(0.0, -math.log(closeness))
    C = math.ceil(rule.cutoff + rule.cutoff_scale * max(0.0, -math.log(2 * tail)))  # step 6
    shift = eta * min(2 * r / rule.temperature, 2 * G) / max(1, B - C + 1)  # step 3
    later = (B if k else B - 1) * (1 - math.exp(-beta * rule.temperature * shift))  # step 4
    epsilon0 = decision(rule.scale, later, k and k / B)  # step 5
    tails = (4 if k else 3) * tail
    found = SimpleNamespace(
        shift=shift, spread=r / rule.temperature, mu=shift / sigma, later_sensitivity=later,
        targets=C, epsilon0=epsilon0, tails=tails, delta=1.0, calls=0, epsilon1=0.0,
    )  # fmt: skip
    if eta * beta > 2 or C >= B or epsilon0 > LOUDEST:
        return found
    found.calls, found.epsilon1 = fewest_calls(C, epsilon0, tail), 1 / rule.cutoff_scale
    spent = composed(epsilon, found.calls, epsilon0, found.epsilon1, found.mu)
    found.delta = min(1.0, spent + tails)
    return found


def least_noise(B, epsilon, cutoff_epsilon, tail, sensitivity, k):
    """Return the smallest scale b for which C decisions spend at most (epsilon, 2 tail)."""
    room = math.ceil(math.log(1 / (2 * tail)) / cutoff_epsilon)

    def spent(b):
        epsilon0 = decision(b, sensitivity, k and k / B)
        if epsilon0 > LOUDEST:
            return 1.0
        calls = fewest_calls(2 * room, epsilon0, tail)
        return composed(epsilon, calls, epsilon0, 0.0, 0.0)

    low, high = 1e-2, 2.0 * B
    for _ in range(50):
        b = math.sqrt(low * high)
        low, high = (low, b) if spent(b) <= 2 * tail else (b, high)
    return room, high


def batch_suffices(n, B, epsilon, delta, keep, filter_share, cutoff_share, sensitivity, k):
    """Return whether a batch of B users is large enough for the proof and for utility, and b."""
    tail = delta / 8
    room, b = least_noise(B, epsilon * filter_share, epsilon * cutoff_share, tail, sensitivity, k)
    theta = b * math.log(B / 2 / tail) + overestimate(B, k, tail)
    close = 2 * keep * B - 2 * theta - 1 >= 1.2 * B
    score = (1 - keep) / 2 * B  # score of an honest user, above the threshold
    filtered = n // 2 * math.exp(-score / b) / 2 <= room / 4
    return 2 * room <= B / 2 and b < 2 * B and close and filtered, room, b


def scaled_euclidean(
    n, m, d, epsilon, delta, G, D, beta=0.0, B=None, step=None, spread=None, keep=0.8,
    filter_share=0.5, cutoff_share=0.1, decay=4.0, sensitivity=1.0, k=None,
):  # fmt: skip
    """Return the filter and the phases of `scaled_euclidean`, for a given batch size B."""
    tail, shares = delta / 8, (keep, filter_share, cutoff_share, sensitivity, k)
    _, room, b = batch_suffices(n, B, epsilon, delta, *shares)
    distance = 4 * G / math.sqrt(m) if spread is None else spread
    rule = SimpleNamespace(
        temperature=math.log(2 / (1 + keep)) / distance, threshold=keep * B, scale=b,
        cutoff=float(room), cutoff_scale=1 / (epsilon * cutoff_share), samples=k,
    )  # fmt: skip
    T = n // 2 // B
    unit = filter_account(B, G, 0.0, 1.0, 1.0, rule, epsilon, tail)
    epsilon0 = max(unit.epsilon0, sensitivity / b)
    calls = fewest_calls(unit.targets, epsilon0, tail)
    mu = noise_ratio(epsilon, delta - unit.tails, calls, epsilon0, unit.epsilon1)
    if step is None:
        sizes = [D / G * math.sqrt(B * m / T), D * mu / unit.shift / math.sqrt(d)]
        if beta > 0:
            sizes.append(1 / beta)
            others = B if k else B - 1
            if sensitivity < others:  # others (1 - exp(-beta tau eta shift)) = sensitivity
                largest = math.log(others / (others - sensitivity))
                sizes.append(largest / (beta * rule.temperature * unit.shift))
        step = min(sizes)
    phases = []
    for s in range(max(1, math.floor(math.log2(n / B)))):
        T_s, eta = n // 2 ** (s + 1) // B, step / decay**s
        if T_s >= 1:
            phases.append((T_s * B, T_s, eta, unit.shift * eta / mu))
    return rule, phases


# --- the test -------------------------------------------------------------------------------------


def aligned_spread(B, theta, h):
    """Return r: if a row sums to theta B, all but h - 1 users are within r / tau of one user.

    N users within r / tau and B - N farther away have the sum at most N + (B - N) e^-r.
    """
    inside = B - h + 1
    if inside >= B or theta * B <= inside:
        return math.inf
    return math.log((B - inside) / (theta * B - inside))


def estimate_move(B, G, reach, clip):
    """Return Delta, the largest move of the estimate in each coordinate."""
    return min(2 * reach + 2 * clip, max(2 * reach, 2 * G / B), 2 * G)


def coordinatewise_account(B, G, beta, eta, sigma, rule, d, epsilon, theta):
    """Return the cost of a phase by the two cases of the proof, for a score of theta B."""
    h = (B - 1) // 2 if rule.statistic == "median" else rule.trim
    reach = aligned_spread(B, theta, h) / rule.temperature
    shift = eta * estimate_move(B, G, reach, rule.clip)
    later = (B - 1) * (1 - math.exp(-2 * beta * rule.temperature * shift))
    epsilon1 = rule.epsilon * max(2 * (B - 1) / B, later) / rule.sensitivity
    unit = rule.sensitivity / rule.epsilon
    missed = two_laplace_tail((rule.threshold - theta * B) / unit, 4.0, 2.0)
    mu = math.sqrt(d) * shift / sigma
    delta = 1.0
    if eta * beta <= 2:
        spent = composed(epsilon, 0, 0.0, epsilon1, mu)
        delta = min(1.0, max(spent, missed))
    return SimpleNamespace(
        delta=delta, tails=missed, shift=math.sqrt(d) * shift, spread=reach, mu=mu,
        later_sensitivity=later, targets=0, calls=0, epsilon0=0.0, epsilon1=epsilon1,
    )  # fmt: skip


def scaled_coordinatewise(
    n, m, d, epsilon, delta, G, D, beta=0.0, B=None, step=None, spread=None, theta=0.75,
    margin=0.1, clip=None, test_share=0.3, decay=4.0, statistic="median",
):  # fmt: skip
    """Return the test and the phases of `scaled_coordinatewise`, for a given batch size B."""
    distance = 4 * G * math.sqrt(math.log(2 * d) / m) if spread is None else spread
    clip = distance / 2 if clip is None else clip
    rule = SimpleNamespace(
        temperature=math.log(2 / (2 - margin)) / distance, threshold=(1 - margin) * B,
        epsilon=epsilon * test_share, sensitivity=2.0, clip=clip, statistic=statistic,
        trim=(2 * B - 2) // 5 if statistic == "trimmed_mean" else 0,
    )  # fmt: skip
    h = (B - 1) // 2 if statistic == "median" else rule.trim
    move = estimate_move(B, G, aligned_spread(B, theta, h) / rule.temperature, clip)
    mu = noise_ratio(epsilon, delta, epsilon1=rule.epsilon)
    if step is None:
        sizes = [D / G * math.sqrt(B * m / (n // 2 // B)), D * mu / move / math.sqrt(d)]
        if beta > 0:  # (B - 1) (1 - exp(-2 beta tau eta move)) = 2
            largest = math.log((B - 1) / (B - 3)) / (2 * beta * rule.temperature)
            sizes += [1 / beta, largest / move]
        step = min(sizes)
    later = (B - 1) * (1 - math.exp(-2 * beta * rule.temperature * step * move))
    rule.sensitivity = max(2.0, later)
    phases = []
    for s in range(max(1, math.floor(math.log2(n / B)))):
        T_s, eta = n // 2 ** (s + 1) // B, step / decay**s
        if T_s >= 1:
            phases.append((T_s * B, T_s, eta, math.sqrt(d) * eta * move / mu))
    return rule, phases


# --- baselines ------------------------------------------------------------------------------------


def dp_sgd_noise(n, B, T, epsilon, delta, *, moves, calls=0, epsilon0=0.0, failure=0.0):
    """Return sigma: a user is in at most ceil(T / (n / B)) batches, and moves each by `moves`."""
    visits = -(-T // (n // B))
    spent = {"calls": visits * calls, "epsilon0": epsilon0}
    return math.sqrt(visits) * moves / noise_ratio(epsilon, delta - visits * failure, **spent)


def dp_sgd(users, x_0, *, gradient, project, B, T, eta, mean, sigma, normal):
    """Run projected SGD on noisy means of gradients, and return the average iterate.

    A mean of None leaves the iterate where it is.
    """
    x, found = np.asarray(x_0, dtype=float), []
    batches = [users[i : i + B] for i in range(0, len(users) - B + 1, B)]
    for t in range(T):
        q = [sum(gradient(x, z) for z in Z) / len(Z) for Z in batches[t % len(batches)]]
        center, noise = mean(np.array(q), t), normal(sigma, len(x))
        x = x if center is None else project(x - eta * (center + noise))
        found.append(x)
    return sum(found) / T


def unit(v):
    """Return a vector divided by its length."""
    return v / np.linalg.norm(v)


def clipped_mean(q, C):
    """Return the mean of vectors that are clipped to length C."""
    return sum(v * C / max(C, float(np.linalg.norm(v))) for v in q) / len(q)


def power_of_two(d):
    """Return the smallest power of two that is at least d."""
    P = 1
    while d > P:
        P *= 2
    return P


def winsorized_width(B, d, tau, miss):
    """Return the distance that P coordinates of B rotated vectors keep, by Hoeffding."""
    P = power_of_two(d)
    return min(tau, tau * math.sqrt(2 * math.log(2 * P * B / miss) / P))


def winsorized_mean(q, *, tau, G, epsilon0, miss, signs, gumbel):
    """Clip each rotated coordinate around an interval that the exponential mechanism chooses."""
    B, d = q.shape
    P, w = power_of_two(d), winsorized_width(B, d, tau, miss)
    intervals, found = max(1, math.ceil(2 * G / w)), np.zeros(d)
    for k in range(P):
        row = [(-1) ** (j & k).bit_count() * signs[j] / math.sqrt(P) for j in range(d)]
        y = [sum(row[j] * v[j] for j in range(d)) for v in q]
        own = [min(max(math.floor((v + G) / w), 0), intervals - 1) for v in y]
        quality = [
            gumbel[k][i] - epsilon0 * max(sum(o < i for o in own), sum(o > i for o in own)) / 2
            for i in range(intervals)
        ]
        middle = (int(np.argmax(quality)) + 1 / 2) * w - G
        kept = sum(min(max(v, middle - 2.5 * w), middle + 2.5 * w) for v in y) / B
        found += [entry * kept for entry in row]
    return found


def concentration(q, tau):
    """Return the weights of vectors: 0 with B/2 + 1 neighbours within 2 tau, 1 with B."""
    B = len(q)
    close = [sum(float(np.linalg.norm(u - v)) <= 2 * tau for v in q) for u in q]
    return [max(0.0, (f - B / 2 - 1) / (B / 2 - 1)) for f in close]


def concentrated_mean(q, *, tau, share, noise):
    """Return the weighted mean, or None if the noisy total weight is too small."""
    weights = concentration(q, tau)
    if sum(weights) + noise < share * len(q):
        return None
    return sum(p * v for p, v in zip(weights, q, strict=True)) / sum(weights)


def concentrated_bounds(B, tau, epsilon0, failure, share):
    """Return the change of the total weight by one user, the least weight, and the moved mean."""
    change = 2 * (B - 1) / (B - 2) + 1
    least = share * B - change / epsilon0 * math.log(1 / (2 * failure))
    return change, least, 4 * tau * (change + 1) / least


def sgd(users, x_0, *, gradient, project, B, eta):
    """Run one pass of projected SGD over batches of B items, and return the average iterate."""
    items = [z for Z in users for z in Z]
    x, found = np.asarray(x_0, dtype=float), []
    for t in range(len(items) // B):
        own = items[t * B : (t + 1) * B]
        x = project(x - eta * sum(gradient(x, z) for z in own) / B)
        found.append(x)
    return sum(found) / len(found)
