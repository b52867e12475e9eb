"""Few examples per user: the inequality of Fano under pure differential privacy, Appendix E.2."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from algorithms.few_examples.covers import simplex_grid
from algorithms.few_examples.hypotheses import scheffe_comparison, total_variation
from algorithms.few_examples.pairwise import clipped_pairwise_pmf, pairwise_users
from audits.few_examples.conventions import ACCURACY, ITEMS, SHARE
from audits.few_examples.hard_instances import best_success, binary_kl, diameters, users_law
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-7  # error of the linear programs
LEVEL = Interval(0.02, 8.0, log=True)
SUCCESS = 2 / 3

FAR = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
COINS = [[0.75, 0.25], [0.25, 0.75]]
THREE = [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]]
RARE = [[0.9, 0.1, 0.0], [0.9, 0.0, 0.1]]


def fewest(laws, epsilon, most):
    """Return the least n with success 2/3, or most + 1 if `most` users are not enough."""
    found = (n for n in range(1, most + 1) if best_success(laws, n, epsilon) >= SUCCESS)
    return next(found, most + 1)


@statement("few.thm38")
def item_level(ledger):
    """Let T be any task. Suppose that there exist D_1, ..., D_W such that, for all distinct i, j in
    [W], Psi_T(D_i) and Psi_T(D_j) are disjoint, d_KL(D_i, D_j) <= beta, and d_tv(D_i, D_j) <=
    gamma. Then n_1^T(epsilon, delta = 0) >= Omega(log W/(gamma epsilon) + log W/beta).

    The theorem holds with explicit constants, for all W >= 2 and all epsilon, beta, gamma > 0. The
    explicit bounds are n >= (2/3) ln W/(gamma epsilon) and n >= (1/3) ln W/beta. So n is at least
    (2/9) of the sum of both bounds. For the first bound, let b(x) = Pr[A(x) in Psi(D_j)]. Couple n
    samples of D_j with n samples of D_1, so that K samples differ and E K <= gamma n. Jensen's
    inequality gives Pr_1[Psi_j] >= E[e^(-epsilon K) b] >= s e^(-epsilon gamma n/s), where s = E b
    >= 2/3. The sum of these probabilities over j is at most 1 - s. So n >= s ln((W - 1) s/(1 -
    s))/(gamma epsilon). By linear programs over all algorithms, 99 percent of this bound is
    attained. For the second bound, Pr_i[Psi_j] <= (1 - s)/(W - 1) for some i. By data processing,
    the binary divergence is at most n beta. So W = 2 is no exception. In Fano's inequality, W = 2
    is an exception because of the term ln 2.

    Using sums instead of maxima loses the factor 3. The value epsilon is arbitrary. If there is
    only one source (W = 1), the bound is 0. For all W and n, the theorem depends on this argument.
    We computed the constants for all W, and the best algorithms for two and three sources and up to
    six items. If six items are not enough, seven is used as the least n.
    """
    cases = [{"laws": FAR}, {"laws": FAR[:2]}, {"laws": COINS}, {"laws": THREE}, {"laws": RARE}]

    @ledger.sweep(
        "least n of the best algorithm, by linear programs", cases=cases,
        epsilon=[0.25, 1.0, 5.0], constant=2 / 9, mutant={"constant": 0.7}, end_to_end=True,
    )  # fmt: skip
    def bound(laws, epsilon, constant):
        kl, tv = diameters(laws)
        most = 6
        n = fewest(laws, epsilon, most)
        return constant * math.log(len(laws)) * (1 / (tv * epsilon) + 1 / kl), n

    sharper = ledger.sharper("n >= s ln((W - 1) s/(1 - s))/(gamma epsilon) for success s")

    @sharper.sweep(
        "success of the best algorithm, by linear programs", cases=cases, n=[1, 2, 4],
        epsilon=[0.1, 1.0, 5.0], factor=1.0, mutant={"factor": 0.9}, end_to_end=True,
    )  # fmt: skip
    def coupling(laws, n, epsilon, factor):
        s, (_, tv), W = best_success(laws, n, epsilon), diameters(laws), len(laws)
        return math.log((W - 1) * s / max(1 - s, 1e-12)) * s, factor * epsilon * tv * n + ROUNDING

    data = ledger.sharper("the binary divergence of s from (1 - s)/(W - 1) is at most n beta")

    @data.sweep(
        "success of the best algorithm, by linear programs", cases=cases[2:4], n=[1, 2, 4],
        epsilon=[1.0, 8.0], factor=1.0, mutant={"factor": 0.5}, end_to_end=True,
    )  # fmt: skip
    def processing(laws, n, epsilon, factor):
        s, (kl, _), W = best_success(laws, n, epsilon), diameters(laws), len(laws)
        return binary_kl(s, (1 - s) / (W - 1)), factor * n * kl + ROUNDING

    sizes = {"W": Integer(2, 10**9), "extremal": [{"W": 2}]}

    @ledger.falsify("success 2/3 gives the constants: 2/3", part=2 / 3, mutant={"part": 0.7},
                    **sizes)  # fmt: skip
    def first(W, part):
        return part * math.log(W), SUCCESS * math.log(2 * (W - 1))

    @ledger.falsify("success 2/3 gives the constants: 1/3", part=1 / 3, mutant={"part": 0.34},
                    **sizes)  # fmt: skip
    def second(W, part):
        return part * math.log(W), binary_kl(2 / 3, 1 / 3 / (W - 1))

    @ledger.falsify(
        "any three sources of two items", weights=Array(Interval(0.02, 1.0), (3, 3)),
        epsilon=LEVEL, n=2, factor=1.0, examples=60, mutant={"factor": 0.5}, end_to_end=True,
        extremal=[{"weights": np.eye(3) + 1e-9, "epsilon": 1.0}],
    )  # fmt: skip
    def drawn(weights, epsilon, n, factor):
        laws = weights / weights.sum(axis=1, keepdims=True)
        return coupling(laws, n, epsilon, factor)


@statement("few.lemma39")
def user_level(ledger):
    """Let T be any task. Suppose that there exist D_1, ..., D_W such that, for all distinct i, j in
    [W], Psi_T(D_i) and Psi_T(D_j) are disjoint, and d_KL(D_i, D_j) <= beta. Then n_m^T(epsilon,
    delta = 0) >= Omega(log W/epsilon + log W/(epsilon sqrt(m beta)) + log W/(m beta)).

    The lemma holds with the constant 1/6 for all W >= 2, m, epsilon and beta. By few.thm38 with
    gamma = min(1, sqrt(m beta/2)), n is at least (2/3) ln W/(gamma epsilon). By the same statement,
    n is at least (1/3) ln W/(m beta). The bound was computed by linear programs over all user-level
    DP algorithms on up to three items each. If one user distinguishes two sources, 2
    ln(1.5)/epsilon users are enough. By the argument, ln 2/epsilon users are needed. For epsilon
    above about 1/sqrt(m beta), the last term is the largest. The proof's n_m(T) = n_1(T') is an
    inequality, because T may have more valid distributions. For all W and m, the lemma depends on
    few.thm38. If the largest tested number (three or four users) is not enough, this number plus
    one is used as the least n.
    """
    cases = [{"laws": laws, "m": m} for laws in (COINS, THREE, FAR) for m in (1, 2, 3)]
    cases = [c for c in cases if len(c["laws"][0]) == 2 or c["m"] < 3]

    @ledger.sweep(
        "least n of the best algorithm, by linear programs", cases=cases, epsilon=[0.5, 2.0, 8.0],
        constant=1 / 6, mutant={"constant": 0.5}, end_to_end=True,
    )  # fmt: skip
    def bound(laws, m, epsilon, constant):
        kl = diameters(laws)[0]
        n = fewest([users_law(law, m) for law in laws], epsilon, 4 if m == 1 else 3)
        terms = 1 / epsilon + 1 / (epsilon * math.sqrt(m * kl)) + 1 / (m * kl)
        return constant * math.log(len(laws)) * terms, n

    @ledger.falsify(
        "from few.thm38 with its constants", m=ITEMS, epsilon=LEVEL, first=2 / 3,
        beta=Interval(1e-6, 100.0, log=True), mutant={"first": 0.2}, extremal=[
            {"m": 1, "epsilon": 8.0, "beta": 2.0}, {"m": 1, "epsilon": 0.01, "beta": 2.0},
        ],
    )  # fmt: skip
    def terms(m, epsilon, beta, first):
        """Return both sides in units of ln W."""
        reach = min(1.0, math.sqrt(m * beta / 2))
        sum_ = 1 / epsilon + 1 / (epsilon * math.sqrt(m * beta)) + 1 / (m * beta)
        return sum_ / 6, max(first / (reach * epsilon), 1 / 3 / (m * beta))

    @ledger.step("dtv(D_i^m, D_j^m) <= min(1, sqrt(m beta/2))").falsify(
        "exactly, any two laws on three symbols", weights=Array(Interval(0.02, 1.0), (2, 3)),
        m=Choice((1, 2, 3, 6)), half=0.5, mutant={"half": 0.45},
        extremal=[{"weights": np.array([[0.505, 0.495, 1e-12], [0.495, 0.505, 1e-12]]), "m": 1}],
    )  # fmt: skip
    def pinsker(weights, m, half):
        laws = weights / weights.sum(axis=1, keepdims=True)
        kl = diameters(laws)[0]
        tv = diameters([users_law(law, m) for law in laws])[1]
        return tv, min(1.0, math.sqrt(half * m * kl)) + 1e-12

    @ledger.misprint("n_m(T) = n_1(T')", "n_m(T) >= n_1(T')").sweep(
        "T names three far sources, T' two of them", epsilon=0.1, lhs="n_m(T), at least",
        rhs="n_1(T')",
    )  # fmt: skip
    def more(epsilon):
        return math.ceil(math.log(4) / epsilon), math.ceil(2 * math.log(1.5) / epsilon)


def selection_success(n, p, alpha, parts, epsilon):
    """Return the exact success of Scheffe selection on a grid of coins, with m = 1 and tau = 1."""
    grid = simplex_grid(2, parts)
    psi = np.asarray(scheffe_comparison(grid).psi)
    ones = np.arange(n + 1)
    likely = binom.pmf(ones, n, p)
    ones, likely = ones[likely > 1e-14], likely[likely > 1e-14]
    sums = (n - ones)[:, None, None] * psi[None, :, :, 0] + ones[:, None, None] * psi[None, :, :, 1]
    sums[:, range(len(grid)), range(len(grid))] = -np.inf
    logits = -epsilon * sums.max(axis=2) / 4
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    good = total_variation(grid, [1 - p, p]) <= alpha + 1e-12
    return likely @ (weights[:, good].sum(axis=1) / weights.sum(axis=1))


@statement("few.thm42")
def arbitrary_family(ledger):
    """Let frakP be any family of distributions, and let alpha, beta, epsilon > 0 be sufficiently
    small. If there exists a 0.1 alpha-cover of frakP under the TV distance of size L, then
    n_m^(dlearn(frakP; alpha))(epsilon, delta = 0) <= Otilde(L/epsilon + L/(alpha epsilon sqrt(m)) +
    L/(alpha^2 m)). Furthermore, if there exists a family frakQ of size L that is a 3 alpha-packing
    of frakP under the TV distance and has diameter at most beta under the KL-divergence, then
    n_m^(dlearn(frakP; alpha))(epsilon, delta = 0) >= Omegatilde(L/epsilon + L/(epsilon sqrt(m
    beta)) + L/(m beta)).

    The theorem holds with explicit constants. If there is a 0.1 alpha-cover of size L, then
    pairwise_users(e^L, ...) users are enough. If there is a packing, (1/6)(L/epsilon + ...) users
    are needed (few.lemma39). The upper bound is computed exactly for coins that Scheffe's
    comparison selects from a grid. The success is at least .9999, and the theorem requires 2/3. A
    hundredth of this number of users would be enough. If an answer is within alpha of two members
    of a packing, these members are within 2 alpha. So the distance 3 alpha in the theorem is more
    than enough. The size L is a logarithm. If L = 0, the theorem requires nothing (convention). The
    lower bound with L = ln 2 is satisfied. For a general family, the upper bound and the lower
    bound depend on few.thm41 and few.lemma39. The upper bound was computed only for coins with m =
    1. The lower bound was computed for two coins with up to six users.
    """

    @ledger.sweep(
        "coins from a grid, exactly, with explicit constants", p=[0.5, 0.37, 0.013, 0.0],
        alpha=[0.45, 0.3], epsilon=[0.2, 0.5], share=1.0, mutant={"share": 1e-4}, end_to_end=True,
        method=Method.NUMERIC,
    )  # fmt: skip
    def enough(p, alpha, epsilon, share):
        parts = math.ceil(5 / alpha)  # at most 0.1 alpha apart
        n = pairwise_users(parts + 1, alpha=alpha, beta=0.1, epsilon=epsilon, m=1, threshold=1.0)
        return SUCCESS, selection_success(math.ceil(share * n), p, alpha, parts, epsilon)

    @ledger.identity("this is ClippedPairwiseEM", ones=[0, 2, 5], epsilon=[0.5, 2.0], tau=1.0,
                     mutant={"tau": 0.2})  # fmt: skip
    def ours(ones, epsilon, tau):
        comparison = scheffe_comparison(simplex_grid(2, 4))
        data = [[1]] * ones + [[0]] * (5 - ones)
        pmf = clipped_pairwise_pmf(data, comparison=comparison, threshold=tau, epsilon=epsilon)
        psi = np.asarray(comparison.psi)
        sums = (5 - ones) * psi[:, :, 0] + ones * psi[:, :, 1]
        np.fill_diagonal(sums, -np.inf)
        weights = np.exp(-epsilon * sums.max(axis=1) / 4)
        return pmf, weights / weights.sum()

    @ledger.falsify("no answer is within alpha of two of a 3 alpha-packing",
                    laws=Array(SHARE, (3, 4)), alpha=ACCURACY, apart=3.0, extremal=[
                        {"laws": np.array([[0, 0.2, 0, 0.8], [0.2, 0, 0, 0.8], [0.1, 0.1, 0, 0.8]]),
                         "alpha": 0.099},
                        {"laws": np.array([[0, 0.2, 0, 0.8], [0.2, 0, 0, 0.8], [0.1, 0.1, 0, 0.8]]),
                         "alpha": 0.11},
                    ], mutant={"apart": 1.5})  # fmt: skip
    def disjoint(laws, alpha, apart):
        """Use the last of the three distributions as the answer."""
        if not (laws.sum(axis=1) > 0).all():
            return None
        p, q, answer = laws / laws.sum(axis=1, keepdims=True)
        if total_variation(p, q) < apart * alpha:
            return None
        return alpha, max(total_variation(answer, p), total_variation(answer, q)) - 1e-12

    @ledger.sweep("a packing of two coins, 3 alpha apart, by linear programs: least n",
                  bias=[0.3, 0.6, 0.9], epsilon=[0.5, 2.0], m=[1, 2], constant=1 / 6,
                  mutant={"constant": 0.7}, end_to_end=True)  # fmt: skip
    def needed(bias, epsilon, m, constant):
        laws = [[(1 + bias) / 2, (1 - bias) / 2], [(1 - bias) / 2, (1 + bias) / 2]]
        n = fewest([users_law(law, m) for law in laws], epsilon, 6)
        beta = diameters(laws)[0]
        terms = 1 / epsilon + 1 / (epsilon * math.sqrt(m * beta)) + 1 / (m * beta)
        return constant * math.log(2) * terms, n
