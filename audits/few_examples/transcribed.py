"""The algorithms, definitions and parameters of the paper, transcribed line by line.

The functions are slow loops over all cases. They call no function of ``algorithms/``. An algorithm
A is a function that maps a tuple of items to a list of probabilities. A dataset is a list of users,
and a user is a tuple of items.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from statistics import NormalDist

import numpy as np
from scipy.optimize import linprog
from scipy.stats import hypergeom, multivariate_normal


def least(is_enough):
    """Return the least n >= 1 that is enough, if every larger n is enough too."""
    return 1 + bisect.bisect_left(range(1, 10**12), True, key=is_enough)


# --- Section 2: noise and selection ---


def kappa_of(epsilon, delta):
    """Return kappa(epsilon, delta) of Definition 8."""
    return 1 + math.ceil(math.log(1 / delta) / epsilon)


def noise(epsilon, kappa):
    """Return the distribution TDLap of Definition 8 over 0, ..., 2 kappa."""
    weights = [math.exp(-epsilon * abs(x - kappa)) for x in range(2 * kappa + 1)]
    return np.array([weight / math.fsum(weights) for weight in weights])


def exponential_mechanism(scores, sensitivity, epsilon):
    """Return probabilities proportional to exp(-epsilon scr_h/(2 Delta)), Theorem 9."""
    weights = [math.exp(-epsilon * (s - min(scores)) / (2 * sensitivity)) for s in scores]
    return np.array([weight / math.fsum(weights) for weight in weights])


def noisy_majority(items, epsilon, delta):
    """Return Pr[noisy number of ones > half of the items], for noise TDLap(epsilon, delta)."""
    kappa, one = kappa_of(epsilon, delta), 0.0
    for r, chance in enumerate(noise(epsilon, kappa)):
        one += chance * (2 * (sum(items) + r - kappa) > len(items))
    return [1 - one, one]


def subsample(algorithm, items, sample):
    """Return the distribution of A on a random subsample in random order, Theorem 7."""
    laws = [algorithm(part) for part in itertools.permutations(items, sample)]
    return np.mean(laws, axis=0)


# --- item-level algorithms of other papers, which Algorithm 1 calls ---


def permute_and_flip(counts, epsilon):
    """Return the distribution of permute-and-flip (McKenna & Sheldon 2020, Algorithm 1).

    The score of an item is its count, so the sensitivity is 1.
    """
    coins = [math.exp(epsilon / 2 * (c - max(counts))) for c in counts]
    found, orders = np.zeros(len(counts)), list(itertools.permutations(range(len(counts))))
    for order in orders:
        still = 1.0  # probability that all earlier coins were tails
        for r in order:
            found[r] += still * coins[r] / len(orders)
            still *= 1 - coins[r]
    return found


def geometric_tail(epsilon, least):
    """Return Pr[X >= least] for two-sided geometric noise, Pr[X = k] ~ e^(-epsilon abs(k))."""
    a = math.exp(-epsilon)
    return sum((1 - a) / (1 + a) * a ** abs(k) for k in range(max(least, -2000), 2000))


def heavy_items(counts, epsilon, share, of):
    """Return the distribution of the set of items whose noisy count is at least share/of of all.

    The noise of each count is for epsilon/2. Item i is in the sets whose number has the bit 2**i.
    """
    needed = [math.ceil((share * sum(counts) - of * c) / of - 1e-9) for c in counts]
    in_set = [geometric_tail(epsilon / 2, k) for k in needed]
    return np.array([
        math.prod(p if number >> i & 1 else 1 - p for i, p in enumerate(in_set))
        for number in range(2 ** len(counts))
    ])  # fmt: skip


def alternating_majority(items, epsilon):
    """Return the distribution that is logistic in epsilon (x_1 - x_2 + x_3 - ...)."""
    lead = sum(x if i % 2 == 0 else -x for i, x in enumerate(items))
    one = 1 / (1 + math.exp(-epsilon * lead))
    return [1 - one, one]


# --- Section 3: local deletion and Algorithm 1 ---


def divergence(p, q, epsilon):
    """Return the hockey stick divergence d_epsilon(P || Q) of Section 2."""
    grow = math.exp(epsilon) if epsilon < 700 else math.inf
    return sum(x if y == 0 else max(x - grow * y, 0.0) for x, y in zip(p, q, strict=True))


def are_close(p, q, epsilon, delta):
    """Return whether P ~_(epsilon, delta) Q."""
    return divergence(p, q, epsilon) <= delta and divergence(q, p, epsilon) <= delta


def without(x, deleted):
    """Return the items of x_(-S), in the order of the remaining users."""
    return tuple(item for i, user in enumerate(x) if i not in deleted for item in user)


def is_lddp(algorithm, x, r, epsilon, delta):
    """Return whether A is (r, epsilon, delta)-LDDP at x, Definition 16."""
    laws = [algorithm(without(x, S)) for S in itertools.combinations(range(len(x)), r)]
    return all(are_close(p, q, epsilon, delta) for p, q in itertools.combinations(laws, 2))


def parameters(epsilon, delta, *, sharp=False):
    """Return epsilon-bar, delta-bar and kappa of Algorithm 1.

    If `sharp` is true, delta-bar contains e^epsilon-bar instead of the printed e^epsilon.
    """
    part = epsilon / 3  # line 3
    share = delta / (math.exp(2 * part) + math.exp(part if sharp else epsilon) + 2)
    return part, share, kappa_of(part, share)


def stable_sets(algorithm, x, r, total, epsilon, delta):
    """Return X_stable^r for 4 kappa = `total`, where epsilon and delta are those of LDDP."""
    found = []
    for S in itertools.combinations(range(len(x)), r):  # line 5
        rest = [user for i, user in enumerate(x) if i not in S]
        if is_lddp(algorithm, rest, total - r, epsilon, delta):
            found.append(S)
    return found


def rests_given(algorithm, x, r, total, epsilon, delta):
    """Return the probability of each set of users on which A finally runs, given R_1 = r.

    If no set is stable, no set has a probability.
    """
    stable = stable_sets(algorithm, x, r, total, epsilon, delta)  # line 5
    found = {}
    for S in stable:  # line 8
        around = [T for T in itertools.combinations(range(len(x)), total) if set(S) <= set(T)]
        for T in around:  # line 9
            rest = tuple(i for i in range(len(x)) if i not in T)
            found[rest] = found.get(rest, 0.0) + 1 / len(stable) / len(around)
    return found


def delstab_given(algorithm, x, r, total, epsilon, delta, outcomes):
    """Return the distribution of the output of Algorithm 1 given R_1 = r; the last is bot."""
    rests = rests_given(algorithm, x, r, total, epsilon, delta)
    if not rests:  # line 6
        return np.append(np.zeros(outcomes), 1.0)  # line 7
    found = np.zeros(outcomes + 1)
    for rest, chance in rests.items():
        law = algorithm(tuple(item for i in rest for item in x[i]))  # line 10
        found[:outcomes] += chance * np.asarray(law)
    return found


def vectors(total, most):
    """Return all vectors of integers between 0 and `most` whose sum is `total`."""
    every = itertools.product(*[range(min(total, cap) + 1) for cap in most])
    return [vector for vector in every if sum(vector) == total]


def ways(numbers, chosen):
    """Return the number of sets with `chosen` users of each kind."""
    return math.prod(math.comb(a, b) for a, b in zip(numbers, chosen, strict=True))


def delstab_by_kinds(algorithm, kinds, numbers, epsilon, delta, outcomes, *, sharp=False):
    """Return the distribution of Algorithm 1 for an A that does not depend on the order.

    There are ``numbers[i]`` users with the items ``kinds[i]``, and sets of users are counted by the
    number of users of each kind.
    """
    part, share, kappa = parameters(epsilon, delta, sharp=sharp)  # line 3
    keep, found = sum(numbers) - 4 * kappa, np.zeros(outcomes + 1)

    @functools.cache
    def law(rest):
        items = [kind * number for kind, number in zip(kinds, rest, strict=True)]
        return algorithm(tuple(itertools.chain(*items)))

    for r, chance in enumerate(noise(part, kappa)):  # line 4
        stable = []
        for S in vectors(r, numbers):  # line 5
            left = tuple(a - b for a, b in zip(numbers, S, strict=True))
            laws = [law(rest) for rest in vectors(keep, left)]
            if all(are_close(p, q, part, share) for p, q in itertools.combinations(laws, 2)):
                stable.append((ways(numbers, S), left))
        if not stable:  # line 6
            found[outcomes] += chance  # line 7
        for number, left in stable:  # line 8
            share_of_s = number / sum(n for n, _ in stable)
            for rest in vectors(keep, left):  # line 9
                weight = chance * share_of_s * ways(left, rest) / math.comb(sum(left), keep)
                found[:outcomes] += weight * np.asarray(law(rest))  # line 10
    return found


def bits_given(p, n, ones, total, part, share, reach, *, tested=True, inside=True):
    """Return the distributions of the output of Algorithm 1 given R_1 = 0, ..., reach.

    Each distribution consists of Pr[0], Pr[1] and Pr[bot]. There is one bit for each user, and A
    counts the ones. The entries of p are the probabilities that A answers 1, and `total` is 4
    kappa. If `tested` is false, all sets are stable. If `inside` is false, T need not contain S.
    """
    keep, found = n - total, []
    count, e = np.arange(keep + 1), math.exp(part)
    one_way = np.maximum(p[:, None] - e * p[None], 0)
    one_way = one_way + np.maximum(1 - p[:, None] - e * (1 - p[None]), 0)
    far = np.maximum(one_way, one_way.T) > share
    for r in range(reach + 1):
        removed = np.arange(max(0, r - n + ones), min(r, ones) + 1)  # number of ones among r users
        left = ones - removed
        low, high = np.maximum(0, keep - (n - r) + left), np.minimum(keep, left)
        met = (count >= low[:, None]) & (count <= high[:, None])
        stable = ~((met @ far) & met).any(axis=1) | (not tested)  # line 5
        if not stable.any():  # line 6
            found.append([0.0, 0.0, 1.0])  # line 7
            continue
        sets = np.array([math.comb(ones, s) * math.comb(n - ones, r - s) for s in removed[stable]],
                        dtype=float)  # fmt: skip
        rest, chosen = (n - r, left[stable]) if inside else (n, np.full(stable.sum(), ones))
        one = float(sets / sets.sum() @ hypergeom.pmf(count, rest, chosen[:, None], keep) @ p)
        found.append([1 - one, one, 0.0])  # lines 8 to 10
    return np.array(found)


# --- Section 3: Lemma 19 and Theorem 10 ---


def lemma_19_epsilon(epsilon, delta, n, m, constant=1.0):
    """Return epsilon' = Theta(epsilon/(kappa sqrt(m log(n m/delta)))), with a given constant."""
    kappa = parameters(epsilon, delta)[2]
    return constant * epsilon / (kappa * math.sqrt(m * math.log(n * m / delta)))


def theorem_10_epsilon(epsilon, delta, m):
    """Return epsilon'' = epsilon^2/(log(1/delta) sqrt(m log(m/delta)))."""
    return epsilon**2 / (math.log(1 / delta) * math.sqrt(m * math.log(m / delta)))


def theorem_10_users(epsilon, delta, m, n1, base, constant=1.0):
    """Return n = N/m + 4 kappa for the smallest multiple N of m that the proof allows.

    The subsample must also fit into N.
    """
    kappa = parameters(epsilon, delta)[2]

    def is_enough(users):
        target = lemma_19_epsilon(epsilon, delta, users + 4 * kappa, m, constant)
        return (math.exp(base) - 1) * n1 / (users * m) <= math.exp(target) - 1

    every = range(math.ceil(n1 / m), 10**6)
    return 4 * kappa + next(users for users in every if is_enough(users))


# --- Section 4: PAC learning ---


def pac_score(h, z):
    """Return scr_h(z), the number of users whose examples are not realizable by h."""
    return sum(any(h[x] != y for x, y in user) for user in z)


def pac_learner(classes, probabilities, z, epsilon):
    """Return the distribution of the learner of Theorem 4, over all hypotheses of all classes."""
    found = []
    for H, chance in zip(classes, probabilities, strict=True):  # sample H ~ P
        scores = [pac_score(h, z) for h in H]
        found += [chance * p for p in exponential_mechanism(scores, 1, epsilon)]
    return np.array(found)


def pac_users(size, alpha, epsilon, m, beta):
    """Return the least n for the conditions of Lemma 22 and Theorem 9, for m <= 1/alpha.

    The conditions are alpha n m >= 37.5 (size + ln 100), and a 2 Delta log(card H/beta)/epsilon of
    at most 0.05 alpha n m.
    """

    def is_enough(n):
        lemma = alpha * n * m >= 37.5 * (size + math.log(100))
        return lemma and 2 * (size + math.log(1 / beta)) / epsilon <= 0.05 * alpha * n * m

    return least(is_enough)


def size_of(classes):
    """Return size(P), the largest log(card H), Definition 20."""
    return max(math.log(len(H)) for H in classes)


def failure(classes, probabilities, concept, alpha, margin):
    """Return the largest Pr[no h in H is alpha-good] over all D_X, Definition 20.

    For each set of classes, a linear program finds the D_X for which the best of all hypotheses is
    worst. The classes fail together if this error exceeds alpha by at least `margin`.
    """
    points, every = len(concept), range(len(classes))
    sets = [bad for size in every for bad in itertools.combinations(every, size + 1)]

    def chance(bad):
        return sum(probabilities[i] for i in bad)

    for bad in sorted(sets, key=chance, reverse=True):
        rows = [[-float(a != b) for a, b in zip(h, concept, strict=True)] + [1.0]
                for i in bad for h in classes[i]]  # fmt: skip
        found = linprog([0.0] * points + [-1.0], A_ub=rows, b_ub=[0.0] * len(rows),
                        A_eq=[[1.0] * points + [0.0]], b_eq=[1.0], bounds=(0, 1))  # fmt: skip
        if -found.fun >= alpha + margin:
            return chance(bad)
    return 0.0


# --- Appendix E.1: ClippedPairwiseEM ---


def clip(low, high, x):
    """Return clip_(low, high)(x)."""
    return low if x < low else high if x > high else x


def clipped_score(psi, candidates, H, x, tau):
    """Return scr_H^(psi, tau)(x), where ``psi(H, other, item)`` is the comparison function."""
    scores = []
    for other in range(candidates):
        if other != H:
            sums = [sum(psi(H, other, item) for item in user) for user in x]
            scores.append(sum(clip(-tau, tau, one) for one in sums))
    return max(scores)


def clipped_pairwise_em(psi, candidates, x, tau, epsilon):
    """Return the distribution of ClippedPairwiseEM: EM with Delta = 2 tau."""
    scores = [clipped_score(psi, candidates, H, x, tau) for H in range(candidates)]
    return exponential_mechanism(scores, 2 * tau, epsilon)


def tau_of(alpha, m, constant):
    """Return tau = C (alpha m + sqrt(m log(1/alpha))), proof of Theorem 37."""
    return constant * (alpha * m + math.sqrt(m * math.log(1 / alpha)))


def tau_constant():
    """Return the least C for which C sqrt(m log(1/alpha)) alone satisfies equation (12).

    The condition is 2 exp(-0.5 C^2 log(1/alpha)) <= 10^-4 alpha^2. The hardest case is alpha = 1/2.
    """
    return math.sqrt(2 * math.log(2 / (1e-4 * 0.5**2)) / math.log(2))


def pairwise_users(candidates, alpha, beta, epsilon, m, tau):
    """Return the least n for which E_1 and equation (10) hold, each with probability beta/3.

    E_1 needs a 2 Delta log(3 card H/beta)/epsilon of at most 0.1 alpha n m, where Delta = 2 tau.
    Equation (10) needs 2 exp(-0.00125 alpha^2 n m) <= beta/(3 card H^2) (see few.eq10).
    """
    rare = beta / (3 * candidates**2)

    def is_enough(n):
        first = 2 * 2 * tau * math.log(3 * candidates / beta) / epsilon <= 0.1 * alpha * n * m
        return first and 2 * math.exp(-0.00125 * alpha**2 * n * m) <= rare

    return least(is_enough)


# --- Appendix E.3: comparisons, covers and packings ---


def error_psi(concepts):
    """Return psi of equation (14) with the repaired sign, for items (x, y)."""
    return lambda c, other, z: (
        float(concepts[c][z[0]] != z[1]) - float(concepts[other][z[0]] != z[1])
    )


def agnostic_learner(classes, probabilities, z, tau, epsilon):
    """Return the distribution of the learner of Theorem 40, over all hypotheses of all classes."""
    found = []
    for H, chance in zip(classes, probabilities, strict=True):  # sample H ~ P
        law = clipped_pairwise_em(error_psi(H), len(H), z, tau, epsilon)
        found += [chance * p for p in law]
    return np.array(found)


def scheffe_psi(P):
    """Return psi of Theorem 41: P(W) - 1[z in W], where W = {z : P(z) > P'(z)}."""

    def psi(H, other, z):
        W = [w for w in range(len(P[H])) if P[H][w] > P[other][w]]
        return sum(P[H][w] for w in W) - float(z in W)

    return psi


def multiples(k, parts):
    """Return all distributions over [k] whose masses are multiples of 1/parts, Theorem 43."""
    every = itertools.product(range(parts + 1), repeat=k)
    return [[j / parts for j in masses] for masses in every if sum(masses) == parts]


def products(k, d, parts):
    """Return the product distributions of Theorem 44, as maps from items of [k]^d to masses."""
    return [
        {z: math.prod(law[j] for law, j in zip(laws, z, strict=True))
         for z in itertools.product(range(k), repeat=d)}
        for laws in itertools.product(multiples(k, parts), repeat=d)
    ]  # fmt: skip


def labelled_mass(word, place, y, alpha, kappa):
    """Return D_i((x_l, y)) of the lower bound of Theorem 40."""
    return (1 + 4 * alpha / kappa * (2 * (word[place] == y) - 1)) / (2 * len(word))


def discrete_masses(word, alpha, kappa):
    """Return D_i of the lower bound of Theorem 43, with the repaired factor 1/k."""
    found, k = [], 2 * len(word)
    for bit in word:
        found.append((1 + 8 * alpha / kappa * (bit == 0)) / k)  # D_i(2 l - 1)
        found.append((1 - 8 * alpha / kappa * (bit == 0)) / k)  # D_i(2 l)
    return found


def total_variation(p, q):
    """Return the largest P(W) - Q(W) over all events W."""
    events = itertools.product((0, 1), repeat=len(p))
    return max(sum(w * (a - b) for w, a, b in zip(W, p, q, strict=True)) for W in events)


# --- Appendix E.3: Gaussians ---


def distance_of(radius):
    """Return the distance of the means of N(mu, I) and N(mu', I) with this total variation.

    The total variation is 2 Phi(distance/2) - 1.
    """
    return 2 * NormalDist().inv_cdf((1 + radius) / 2)


def ball_cover(bound, d, radius):
    """Return the means of the cover of Theorem 45, which is a cubic grid.

    The corners of a cell are within the distance of the radius from its center. The grid holds all
    cells that meet the cube of side 2 R, if their centers come close enough to the ball.
    """
    reach = distance_of(radius)
    side, found = 2 * reach / math.sqrt(d), []
    most = math.ceil(bound / side) + 1
    for cell in itertools.product(range(-most, most + 1), repeat=d):
        center = [side * j for j in cell]
        meets = all(abs(x) - side / 2 < bound for x in center)
        if meets and math.hypot(*center) <= bound + reach:
            found.append(center)
    return np.array(found)


def covariance_cover(d, condition, radius):
    """Return the covariances of the cover of Theorem 46, within a radius in Frobenius norm.

    Each entry lies on a grid, whose step lets d^2 entries be off by half a step each. A diagonal
    entry is between 1 and `condition`. An entry off the diagonal is at most (condition - 1)/2 in
    absolute value. Matrices that are not between I and condition I are projected if they are within
    the radius of this range.
    """
    steps = math.ceil((condition - 1) * d / (2 * radius))
    if steps == 0:
        return np.eye(d)[None]
    step, most = (condition - 1) / steps, -(-steps // 2)
    found = []
    places = [(i, j) for i in range(d) for j in range(i + 1, d)]
    for diagonal in itertools.product(range(steps + 1), repeat=d):
        for others in itertools.product(range(-most, most + 1), repeat=len(places)):
            matrix = np.zeros((d, d))
            for i, number in enumerate(diagonal):
                matrix[i, i] = 1 + number * step
            for (i, j), number in zip(places, others, strict=True):
                matrix[i, j] = matrix[j, i] = number * step
            values, vectors = np.linalg.eigh(matrix)
            changed = [clip(1, condition, value) for value in values]
            if math.dist(values, changed) <= radius + 1e-9:
                found.append(
                    sum(c * np.outer(v, v) for c, v in zip(changed, vectors.T, strict=True))
                )
    return np.unique(np.round(found, 8), axis=0)


def in_w(z, means, covariances, h, other):
    """Return whether the density of a Gaussian at z is larger than that of another one."""
    laws = [multivariate_normal(means[i], covariances[i]) for i in (h, other)]
    return float(laws[0].logpdf(z) > laws[1].logpdf(z))


def mass_of_w(means, variance, h, other):
    """Return P(W) for two Gaussians on a line, by the interval on which P is larger."""
    (a, s), (b, t) = ((means[i], variance[i]) for i in (h, other))
    P = NormalDist(a, math.sqrt(s))
    if s == t:
        inside = P.cdf((a + b) / 2)
        return 0.0 if a == b else inside if a < b else 1 - inside
    # log P(z) - log Q(z) = A z^2 + 2 B z + C
    A, B = (1 / t - 1 / s) / 2, (a / s - b / t) / 2
    C = (b * b / t - a * a / s + math.log(t / s)) / 2
    root = math.sqrt(B * B - A * C)
    low, high = sorted(((-B - root) / A, (-B + root) / A))
    between = P.cdf(high) - P.cdf(low)
    return between if A < 0 else 1 - between


def boost(classes, concept, weights, times=3.0):
    """Return the hypothesis of least weighted error of each class; errors then weigh more."""
    weights, found = [float(w) for w in weights], []
    for rows in classes:
        errors = [sum(w for w, h, c in zip(weights, row, concept, strict=True) if h != c)
                  for row in rows]  # fmt: skip
        best = rows[errors.index(min(errors))]
        weights = [w * (times if h != c else 1) for w, h, c in zip(weights, best, concept,
                                                                   strict=True)]  # fmt: skip
        found.append(best)
    return np.array(found)


def boosting_errors(chosen, concept, weights):
    """Return the weighted error of each chosen hypothesis in its own round."""
    weights, errors = [float(w) for w in weights], []
    for row in chosen:
        wrong = [h != c for h, c in zip(row, concept, strict=True)]
        errors.append(sum(w for w, bad in zip(weights, wrong, strict=True) if bad) / sum(weights))
        weights = [w * (3 if bad else 1) for w, bad in zip(weights, wrong, strict=True)]
    return errors
