"""The algorithms, definitions and parameters of the paper, transcribed line by line.

The functions are slow loops, and they call no function of ``algorithms/``. Letters are those of the
paper. An algorithm that draws random numbers makes `size` runs side by side. The runs draw from one
generator in the order of the implementation, so that both get the same numbers. The argument
`noise` multiplies the noise, and is 1 in the paper.
"""

from __future__ import annotations

import bisect
import math

import numpy as np

# --- Section 2 ---


def objective(points, z):
    """Return f(z) of (3)."""
    return math.fsum(math.dist(x, z) for x in points) / len(points)


def certificate(points, z):
    """Return f(z), the norm of the smallest subgradient of f at z, and a bound on f(z) - f(x_star).

    A point at z adds any vector of norm at most 1 / n to the gradient of the others. The function f
    is convex. So f(z) - f(x_star) is at most this norm times norm(z - x_star). The median lies in
    the convex hull of the data, and f(x_star) <= f(z). So the distance is at most the distance of
    the farthest point, and at most f(z) + f(x_star) <= 2 f(z).
    """
    n, here, gradient = len(points), 0, np.zeros(len(z))
    for x in points:
        length = math.dist(x, z)
        if length == 0:
            here += 1
        else:
            gradient += (z - x) / length / n
    slope = max(0.0, math.hypot(*gradient) - here / n)
    value = objective(points, z)
    return value, slope, slope * min(max(math.dist(x, z) for x in points), 2 * value)


def middle(numbers):
    """Return the median of numbers, which minimises the sum of distances on a line."""
    ordered, n = sorted(numbers), len(numbers)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2


def quantile_radius(points, tau, z, rounded=math.ceil):
    """Return r^(tau)(D; z) of (4), for a Fraction tau."""
    lengths = [math.dist(x, z) for x in points]
    need = rounded(tau * len(points))
    return min(r for r in [0.0, *lengths] if sum(length <= r for length in lengths) >= need)


def bounded_laplace(scale, tau, shape, rng):
    """Draw Laplace noise that is conditioned on an absolute value of at most tau, Fact 3.

    A sign and a uniform number u are drawn. P[abs(xi) <= x] is (1 - e^(-x / scale)) divided by (1 -
    e^(-tau / scale)), and xi is the solution for P = u.
    """
    signs = rng.integers(2, size=shape)
    u = rng.random(shape)
    return np.where(signs == 0, 1, -1) * -scale * np.log(1 - u * (1 - math.exp(-tau / scale)))


def bounded_laplace_below(x, tau):
    """Return P[xi <= x] for the same noise with scale 1, from its density on [-tau, tau]."""
    half = (math.exp(-min(abs(x), tau)) - math.exp(-tau)) / (2 * (1 - math.exp(-tau)))
    return half if x < 0 else 1 - half


def above_threshold(queries, tau, sensitivity, epsilon, size, rng, *, noise=1.0, first=2, each=4):
    """Return the answers of Algorithm 1, which are 0 (bottom), 1 (top) and nan (not asked)."""
    scale = noise * sensitivity / epsilon
    levels = tau + rng.laplace(0, first * scale, size)  # line 1
    nu = rng.laplace(0, each * scale, (size, len(queries)))  # line 3
    answers = np.full(nu.shape, math.nan)
    for run in range(size):
        for t in range(len(queries)):  # line 2
            if queries[t] + nu[run, t] >= levels[run]:  # line 4
                answers[run, t] = 1.0  # line 5
                break  # line 6
            answers[run, t] = 0.0  # line 8
    return answers


# --- Section 3 ---


def near(points, radius):
    """Return a table that says which points lie within the radius of which points."""
    return np.array([[math.dist(x, y) <= radius for y in points] for x in points])


def sampled(points, radius, k, size, rng):
    """Draw k indices for each point and run, and return the numbers of neighbours [size, n]."""
    n, table, hits = len(points), near(points, radius), np.zeros((size, len(points)), dtype=int)
    for run in range(size):
        samples = rng.integers(n, size=(n, k), dtype=np.int32)
        for i in range(n):
            hits[run, i] = np.count_nonzero(table[i, samples[i]])
    return hits


def counted(points, radius, k, size, rng):
    """Return the same numbers [size, n] as binomials of the exact numbers of neighbours.

    Points with equal numbers are drawn together.
    """
    counts = near(points, radius).sum(axis=1)
    hits = np.zeros((size, len(points)), dtype=int)
    for count in sorted(set(counts)):
        rows = [i for i in range(len(points)) if counts[i] == count]
        hits[:, rows] = rng.binomial(k, count / len(points), size=(len(rows), size)).T
    return hits


def counted_together(points, radius, k, size, rng):
    """Return sums over the points [size, 1] of the same numbers, with one binomial per count."""
    counts = list(near(points, radius).sum(axis=1))
    total = np.zeros((size, 1), dtype=int)
    for count in sorted(set(counts)):
        draws = counts.count(count) * k
        total[:, 0] += rng.binomial(draws, count / len(points), size=size)
    return total


def fast_radius(
    points, size, r, R, epsilon, delta, rng, *, hits=sampled, noise=1.0, share=0.775, first=6,
    each=12,
):  # fmt: skip
    """Return the radii that Algorithm 2 returns, and R if there is no radius to try."""
    n = len(points)
    T = math.ceil(math.log2(R / r))  # line 1
    found = [R] * size  # line 17
    if T == 0:
        return found
    k = math.ceil(3 * math.log(4 * T / delta))  # line 2, rounded up
    tau = share * n  # line 3
    levels = tau + rng.laplace(0, noise * first / epsilon, size)  # line 4
    running = list(range(size))
    for t in range(1, T + 1):  # line 5
        if not running:
            break
        r_t = r * 2 ** (t - 1)  # line 6
        f = hits(points, r_t, k, len(running), rng)  # line 8
        nu = rng.laplace(0, noise * each / epsilon, len(running))  # line 12
        still = []
        for run, row, noise_of_run in zip(running, f, nu, strict=True):
            q = sum(n / k * hit for hit in row) / n  # lines 9 and 11
            if q + noise_of_run >= levels[run]:  # line 13
                found[run] = r_t  # line 14
            else:
                still.append(run)
        running = still
    return found


def weight(f, k):
    """Return p_i of line 5 of Algorithm 3."""
    return min(max(0.0, (f - 0.5 * k) / (0.25 * k)), 1.0)


def center_sigma(n, r_hat, epsilon, delta, constant=1600):
    """Return sigma of line 13 of Algorithm 3."""
    return constant * r_hat / (n * epsilon) * math.sqrt(math.log(12 / delta))


def centers(
    points, size, r_hat, epsilon, delta, rng, *, hits=sampled, noise=1.0, least=0.55, reach=2
):
    """Return x-bar of line 12 of Algorithm 3 for each run, or None if line 9 fails."""
    n, d = points.shape
    k = math.ceil(600 * math.log(18 * n / delta))  # line 1, rounded up
    scale = noise * 24 / epsilon
    xi = bounded_laplace(scale, scale * math.log(24 / delta), size, rng)  # line 8
    found = []
    for run, f in enumerate(hits(points, reach * r_hat, k, size, rng)):  # lines 3 and 4
        p = [weight(hit, k) for hit in f]  # line 5
        Z = sum(p)  # line 7
        if Z + xi[run] - scale * math.log(24 / delta) <= least * n:  # line 9
            found.append(None)
            continue
        found.append(np.array([sum(p[i] * points[i, c] for i in range(n)) / Z for c in range(d)]))
    return found


def fast_center(points, size, r_hat, epsilon, delta, rng, *, noise=1.0, constant=1600, **options):
    """Return the outputs of Algorithm 3 [size, d]."""
    n, d = points.shape
    found = centers(points, size, r_hat, epsilon, delta, rng, noise=noise, **options)
    sigma = noise * center_sigma(n, r_hat, epsilon, delta, constant)
    xi = rng.normal(0.0, sigma, size=(size, d))  # line 13
    return np.array([
        np.zeros(d) if center is None else center + xi[run]  # lines 10 and 14
        for run, center in enumerate(found)
    ])  # fmt: skip


def warm_start(points, size, r, R, epsilon, delta, rng, *, hits, total_hits, noise=1.0, parts=2):
    """Return (x_hat, r_hat) of Theorem 3 for each run [size, d + 1].

    Algorithms 2 and 3 have half of the budget each. Runs with equal radii continue together, and
    the smallest radius comes first.
    """
    half = epsilon / parts, delta / parts
    radii = np.array(fast_radius(points, size, r, R, *half, rng, hits=total_hits, noise=noise))
    found = np.zeros((size, points.shape[1] + 1))
    found[:, -1] = radii
    for radius in sorted(set(radii)):
        runs = np.flatnonzero(radii == radius)
        found[runs, :-1] = fast_center(
            points, len(runs), radius, *half, rng, hits=hits, noise=noise
        )
    return found


def is_enough_for_theorem_3(n, T, epsilon, delta):
    """Return whether n satisfies the conditions of Lemmas 6 and 9, and line 9 passes surely.

    Lemma 7 shows Z >= 0.6 n. Then line 9 passes for all noise if 0.05 n > 2 (24 / epsilon) log(24 /
    delta). Each algorithm has half of epsilon and delta.
    """
    epsilon, delta = epsilon / 2, delta / 2
    lemma_6 = n >= 2400 / epsilon * math.log(4 * T / delta)
    line_9 = 0.05 * n > 2 * (24 / epsilon) * math.log(24 / delta)
    return lemma_6 and n >= 20 and line_9


def c_prime(n, d, epsilon, delta):
    """Return C' of the repaired Theorem 3: survivors lie within 6 r_hat of the median.

    The noise of Algorithm 3, at half of the budget, is at most 3 sigma sqrt(d log(4 / (delta / 2)))
    with probability 1 - delta / 8.
    """
    sigma = center_sigma(n, 1.0, epsilon / 2, delta / 2)
    return 6 + 3 * sigma * math.sqrt(d * math.log(4 / (delta / 2)))


def least(is_enough, most=10**15):
    """Return the least n >= 1 that is enough, if every larger n is enough too."""
    return 1 + bisect.bisect_left(range(1, most), True, key=is_enough)


# --- Section 4 ---


def accesses(n, K, delta, *, order="random", each_phase=False, constant=3.0):
    """Return m for each phase: line 1 of Algorithm 4, or ceil(T / n) of Remark 1.

    If `each_phase` is true, m is ceil(T^(k) / n), which is all that the privacy proof needs.
    """
    T = 2**K - 1
    if order == "random":
        return [constant * (T / n + math.log(8 / delta))] * K
    if each_phase:
        return [math.ceil(2 ** (K - k) / n) for k in range(1, K + 1)]
    return [math.ceil(T / n)] * K


def phases(m, K, d, r_hat, rho, delta, eta, *, repaired=False, decay=3.0, shrink=4.0):
    """Return (T^(k), eta^(k), sigma^(k)) of line 3 of Algorithm 4, and the radius of K^(k).

    If `repaired` is true, the radius has sigma^(k-1) instead of sigma^(k).
    """
    T, found, before = 2**K - 1, [], 0.0
    for k in range(1, K + 1):
        length, step = 2**-k * (T + 1), shrink**-k * eta  # line 3
        sigma = decay**-k * (2 * m[k - 1] + 1) * eta / math.sqrt(rho)  # line 3
        used = before if repaired else sigma
        reach = r_hat if k == 1 else 2 * used * math.sqrt(d * math.log(4 * K / delta))
        found.append((round(length), step, sigma, reach))  # lines 6 and 9
        before = sigma
    return found


def descend(z, x, step, center, reach):
    """Return the next iterate of lines 12 and 13 of Algorithm 4, and no projection for None."""
    length = math.dist(z, x)
    if length > 0:  # by footnote 5, the gradient is 0 at x
        z = z - step * (z - x) / length
    away = math.dist(z, center)
    if reach is not None and away > reach:
        z = center + reach / away * (z - center)
    return z


def stable_dpsgd(points, starts, plan, rows, rng, *, project="all", noise=1.0, averaged=0):
    """Return x-bar^(k) and x-hat^(k) of Algorithm 4 for all phases and runs [K, size, d].

    The rows of `starts` are the first iterates of the runs. The function `rows` returns the indices
    of a phase [T^(k), size]. `project` names the phases that project.
    """
    z, found, first = starts, [], 0
    for k, (length, step, sigma, reach) in enumerate(plan, 1):  # line 2
        projects = project == "all" or (project == "first" and k == 1)
        chosen, iterates = rows(first, length, len(z)), [z]
        for t in range(length):  # line 11
            at = iterates[-1]
            iterates.append(np.array([
                descend(at[run], points[chosen[t][run]], step, z[run], reach if projects else None)
                for run in range(len(z))
            ]))  # fmt: skip
        mean = sum(iterates[averaged : length + averaged]) / length  # line 15
        z = mean + rng.normal(0.0, noise * sigma, size=z.shape)  # lines 16 and 17
        found.append((mean, z))
        first += length
    return np.array(found).transpose(1, 0, 2, 3)


def random_rows(n, rng):
    """Return a function that draws the indices of line 12."""
    return lambda first, length, size: rng.integers(n, size=(length, size))


def fixed_rows(order):
    """Return a function that continues with passes over one order, Remark 1."""
    return lambda first, length, size: [
        [order[(first + t) % len(order)]] * size for t in range(length)
    ]


def lemma_14(plan, d, r_hat, delta, before=1):
    """Return the bound on f(x_hat) - f(x_star): Lemma 13 for all phases, and the last noise.

    The noise of the phase before is inserted for phase k >= 2 (gm.lemma13). The bound is the sum of
    the three returned numbers, which are multiples of 1 / eta, eta and 1.
    """
    K = len(plan)
    level = math.log(4 * K / delta)
    length, step = plan[0][:2]
    inverse = r_hat**2 / (2 * step * length)
    constant = 4 * r_hat * math.sqrt(2 * level / length)
    linear = step / 2
    for k in range(2, K + 1):
        length, step = plan[k - 1][:2]
        sigma = plan[k - 1 - before][2]
        linear += 2 * sigma**2 * d * level / (step * length) + step / 2
        linear += 8 * sigma * level * math.sqrt(2 * d / length)
    linear += 2 * plan[-1][2] * math.sqrt(d * math.log(2 / delta))
    return inverse, linear, constant


def budget(plan, m):
    """Return the sum over the phases of the costs of Lemma 12: the zCDP parameter of a run."""
    return sum(
        ((2 * visits + 1) * step) ** 2 / (2 * sigma**2)
        for visits, (_, step, sigma, _) in zip(m, plan, strict=True)
    )


def rho_of_theorem_4(epsilon, delta):
    return epsilon**2 / (32 * math.log(4 / delta))


def boosting(n, d, K, r_hat, epsilon, delta, eta, *, repaired=False, **order):
    """Return the phases of Algorithm 4 in the proof of Theorem 4: with delta / 2 for delta."""
    m = accesses(n, K, delta / 2, **order)
    rho = rho_of_theorem_4(epsilon, delta)
    return phases(m, K, d, r_hat, rho, delta / 2, eta, repaired=repaired)


# --- the baselines, HSU24 ---


def radius_finder_queries(points, radii, gamma):
    """Average the ceil(gamma n) largest numbers of neighbours, for a Fraction gamma."""
    m = math.ceil(gamma * len(points))
    counts = [sorted(near(points, radius).sum(axis=1), reverse=True) for radius in radii]
    return [sum(largest[:m]) / m for largest in counts]


def radius_finder(points, size, r, R, epsilon, beta, gamma, rng, *, noise=1.0, each=12):
    """Return the radii of RadiusFinder: the first of r, 2 r, ..., 2 R that passes, or R."""
    radii = [r]
    while 2 * radii[-1] <= 2 * R:
        radii.append(2 * radii[-1])
    queries = radius_finder_queries(points, radii, gamma)
    tau = math.ceil(gamma * len(points)) + 18 / epsilon * math.log(2 * len(radii) / beta)
    answers = above_threshold(
        queries, tau, 1.0, epsilon, size, rng, noise=noise, first=6, each=each
    )
    return [radii[list(row).index(1.0)] if 1.0 in row else R for row in answers]


def dpgd(points, size, start, center, radius, rho, eta, T, rng, *, noise=1.0):
    """Return the average of the iterates theta_1, ..., theta_T of DPGD for each run."""
    n, d = points.shape
    sigma = noise * 2 / n * math.sqrt(T / (2 * rho))
    theta, total = np.tile(start, (size, 1)), np.zeros((size, d))
    for _ in range(T):
        xi = rng.normal(0.0, sigma, size=(size, d))
        for run in range(size):
            gradient = np.zeros(d)
            for x in points:
                length = math.dist(theta[run], x)
                if length > 0:
                    gradient += (theta[run] - x) / length / n
            z = theta[run] - eta * (gradient + xi[run])
            away = math.dist(z, center)
            theta[run] = center + (z - center) * min(1.0, radius / away) if away > 0 else z
            total[run] += theta[run]
    return total / T
