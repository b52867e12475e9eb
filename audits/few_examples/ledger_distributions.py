"""Few examples per user: distribution learning, Appendix E.3.3."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np

from algorithms.few_examples.covers import (
    nearest_in_grid,
    printed_parts,
    product_cover,
    simplex_grid,
    sufficient_parts,
)
from algorithms.few_examples.hypotheses import flat_items, total_variation
from algorithms.few_examples.packings import discrete_packing, greedy_code, product_packing
from audits.few_examples.conventions import SHARE
from audits.few_examples.hard_instances import best_success, diameters, users_law
from audits.few_examples.transcribed import discrete_masses, least, products
from audits.few_examples.transcribed import multiples as multiples_of
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-9
ALPHA = Interval(1e-6, 0.1, log=True)
BEST = 2 / 3


def log_binomial(n, k):
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def log_cover(k, alpha):
    """Return the logarithm of the size of the cover of Theorem 43.

    The cover uses multiples of 1/floor(10 k/alpha).
    """
    return log_binomial(printed_parts(k, alpha) + k - 1, k - 1)


# --- discrete distributions ---


@statement("few.thm43-cover")
def discrete_cover(ledger):
    """There exists a 0.1 alpha-cover of the family of all distributions over [k] of size O(k
    log(k/alpha)): we simply let the cover contain all distributions whose probability mass at each
    point is a multiple of floor(10 k/alpha).

    The claim holds with multiples of 1/floor(10 k/alpha). With careful rounding, the largest mass
    that moves is exactly k/(4 floor(10 k/alpha)) <= .03 alpha. A mass of .1 alpha is allowed. So
    multiples of 1/ceil(2.5 k/alpha) are enough. The size is at most 1.2 k ln(k/alpha) for k >= 2,
    alpha <= 1/10. The printed floor(10 k/alpha) is a misprint. The only multiple of this number
    that is a probability is 0.
    """
    uneven = np.array([0.5, 0.5, 1e-9, 1e-9, 1e-9])
    domain = {"weights": Array(SHARE, (5,)), "k": Integer(2, 5), "alpha": Interval(0.01, 0.1)}

    @ledger.falsify("any distribution, up to five symbols", most=0.1, mutant={"most": 0.005},
                    end_to_end=True, extremal=[{"weights": uneven, "k": 5, "alpha": 0.1}],
                    **domain)  # fmt: skip
    def covered(weights, k, alpha, most):
        if weights[:k].sum() == 0:
            return None
        p = weights[:k] / weights[:k].sum()
        return total_variation(p, nearest_in_grid(p, printed_parts(k, alpha))), most * alpha

    @ledger.sharper("ceil(2.5 k/alpha) parts").falsify(
        "any distribution", share=1.0, mutant={"share": 0.2}, extremal=[
            {"weights": np.array([1, 1, 1, 1, 4]) / 8, "k": 2, "alpha": 0.1}], **domain
    )  # fmt: skip
    def fewer(weights, k, alpha, share):
        if weights[:k].sum() == 0:
            return None
        p = weights[:k] / weights[:k].sum()
        parts = max(1, math.ceil(share * sufficient_parts(k, 0.1 * alpha)))
        return total_variation(p, nearest_in_grid(p, parts)), 0.1 * alpha + ROUNDING

    @ledger.identity("our numbers of parts: floor(10 k/alpha), and the least above k/(4 radius)",
                     k=[1, 2, 3, 7], alpha=[0.037, 0.071, 0.113, 0.93], less=0,
                     mutant={"less": 1})  # fmt: skip
    def numbers(k, alpha, less):
        """Find both numbers by trial."""
        printed = least(lambda n: (n + 1) * alpha > 10 * k)
        enough = least(lambda n: 4 * alpha * n >= k)
        return [printed_parts(k, alpha), sufficient_parts(k, alpha)], [printed - less, enough]

    @ledger.identity("our grid holds all multiples", k=[1, 2, 3, 4], parts=[1, 3, 6], more=0,
                     mutant={"more": 1})  # fmt: skip
    def grid(k, parts, more):
        meant = multiples_of(k, parts)
        return np.array(sorted(simplex_grid(k, parts).tolist())), np.array(sorted(meant)) + more

    @ledger.identity("the nearest point is in the grid", k=[2, 3], parts=[4, 7],
                     mutant=None)  # fmt: skip
    def inside(k, parts):
        p = np.arange(1.0, k + 1) ** 1.5
        near = nearest_in_grid(p / p.sum(), parts)
        return abs(simplex_grid(k, parts) - near).sum(axis=1).min() + 1, 1.0

    @ledger.falsify("the size", k=Integer(2, 10**5), alpha=ALPHA, most=1.2, mutant={"most": 1.0},
                    extremal=[{"k": 2, "alpha": 0.1}, {"k": 3, "alpha": 0.1}])  # fmt: skip
    def size(k, alpha, most):
        return log_cover(k, alpha), most * k * math.log(k / alpha)

    @ledger.misprint("multiples of floor(10 k/alpha)", "multiples of 1/floor(10 k/alpha)").sweep(
        "multiples of floor(10 k/alpha), as printed", k=4, alpha=0.1, lhs="mass of a distribution",
        rhs="largest multiple that is a mass"
    )  # fmt: skip
    def multiples(k, alpha):
        step = math.floor(10 * k / alpha)
        return 1, max(step * j for j in range(k + 1) if step * j <= 1)


@statement("few.thm43-pack", expected="refuted")
def discrete_hard(ledger):
    """Let k be even, and let u_1, ..., u_W in {0,1}^(k/2), W = 2^Omega(k), be such that norm(u_i -
    u_j)_0 >= kappa k for some constant kappa. For any sufficiently small alpha < kappa/16 the
    distributions D_i(2 l - 1) = (1/(2k)) (1 + (8 alpha/kappa) 1[(u_i)_l = 0]), D_i(2 l) = (1/(2k))
    (1 - (8 alpha/kappa) 1[(u_i)_l = 0]), for all l in [k/2], are a (3 alpha)-packing under TV
    distance, and its diameter under KL-divergence is at most O(alpha^2).

    The masses sum to 1/2, so 1/(2 k) has to be 1/k. If 1/k replaces 1/(2 k), all claims hold
    exactly, where b = 8 alpha/kappa < 1/2. The distance d_tv is b/k for each place in which words
    differ. So the distance is at least 8 alpha, while only 3 alpha is required. The divergence is
    at most .58 b^2 = 37 (alpha/kappa)^2. If k is odd, the packing leaves out one symbol.
    """

    @ledger.sweep("masses, as printed", k=[2, 8], alpha=0.01, kappa=0.25,
                  lhs="mass of a distribution", rhs="their sum")  # fmt: skip
    def masses(k, alpha, kappa):
        bias = 8 * alpha / kappa
        word = [l % 2 for l in range(k // 2)]  # noqa: E741
        pairs = [(1 + bias * (u == 0), 1 - bias * (u == 0)) for u in word]
        return 1, sum(x + y for x, y in pairs) / (2 * k)

    repair = ledger.repair("1/k for 1/(2 k)")
    domain = {"length": [1, 2, 4, 8], "share": [0.1, 0.5, 0.9]}

    @repair.sweep("a packing of distributions, on greedy codes", more=1.0, mutant={"more": 3.0},
                  end_to_end=True, **domain)  # fmt: skip
    def packing(length, share, more):
        """Use a code with the distance kappa k, where k = 2 * length."""
        D, alpha, _ = packed(length, share)
        apart = min(total_variation(p, q) for p, q in itertools.combinations(D, 2))
        return more * 3 * alpha + abs(D.sum(axis=1) - 1).max(), apart

    @repair.identity("our packing: the masses", alpha=[0.001, 0.01], kappa=[0.25, 0.5], shift=0.0,
                     mutant={"shift": 0.01})  # fmt: skip
    def printed_masses(alpha, kappa, shift):
        code = [(0, 1, 1), (1, 0, 1), (0, 0, 0)]
        meant = [discrete_masses(u, alpha + shift, kappa) for u in code]
        return discrete_packing(code, 8 * alpha / kappa), np.array(meant)

    @repair.sweep("the divergence", most=37.0, mutant={"most": 10.0}, **domain)
    def diameter(length, share, most):
        D, alpha, kappa = packed(length, share)
        return diameters(D)[0], most * (alpha / kappa) ** 2

    ledger.consequence("The printed masses do not form distributions.", harm="the wording")


def packed(length, share):
    distance = max(1, length // 4)
    kappa = distance / (2 * length)
    alpha = share * kappa / 16
    return discrete_packing(greedy_code(length, distance)[:24], 8 * alpha / kappa), alpha, kappa


def coins_needed(bias, epsilon, m, constant):
    """Return the bound of few.lemma39 and the least n for two coins, by linear programs.

    The least n is set to 6 if no smaller n is enough.
    """
    laws = [[(1 + bias) / 2, (1 - bias) / 2], [(1 - bias) / 2, (1 + bias) / 2]]
    users = [users_law(law, m) for law in laws]
    n = next((n for n in range(1, 6) if best_success(users, n, epsilon) >= BEST), 6)
    beta = bias * math.log((1 + bias) / (1 - bias))
    terms = 1 / epsilon + 1 / (epsilon * math.sqrt(m * beta)) + 1 / (m * beta)
    return constant * math.log(2) * terms, n


COINS = {"bias": [0.3, 0.6, 0.9], "epsilon": [0.5, 2.0], "m": [1, 2], "constant": 1 / 6,
         "mutant": {"constant": 0.7}}  # fmt: skip


@statement("few.thm43")
def discrete(ledger):
    """For any sufficiently small alpha, epsilon > 0 and for all m in N, n_m^(DDk(alpha))(epsilon,
    delta = 0) = Thetatilde(k/epsilon + k/(alpha epsilon sqrt(m)) + k/(alpha^2 m)).

    The theorem holds with the repaired packing (few.thm43-pack), for k >= 2 (convention). The
    theorem follows from few.thm42. The cover has size 1.2 k ln(k/alpha), and the packing has W >=
    2^(.456 floor(k/2)) words with beta = 37 (alpha/kappa)^2. For k = 2, linear programs computed
    the best algorithm for two coins that are 3 alpha apart. The lower bound was compared with this
    algorithm. The row few.thm42 computes the upper bound for k = 2. For k = 1, the lower bound is
    false because nothing has to be learned. The Thetatilde hides the factor ln(1/alpha) of the
    cover and the factor sqrt(ln(1/alpha)) in tau. For larger k, the upper bound and the lower bound
    depend on few.thm42. The sizes of cover and packing were computed for all k. Learning was run
    only for k = 2, with up to five users.
    """
    ledger.sweep("k = 2: two coins, the best algorithm: least n", end_to_end=True, **COINS)(
        coins_needed
    )

    @ledger.falsify("both sizes are of order k up to logarithms", k=Integer(2, 10**4), alpha=ALPHA,
                    most=9.0, mutant={"most": 3.0}, extremal=[{"k": 2, "alpha": 0.1}])  # fmt: skip
    def sizes(k, alpha, most):
        """Use the fact that the packing has at least max(2, 2^(.456 floor(k/2))) words."""
        return log_cover(k, alpha), most * math.log(k / alpha) * max(
            math.log(2), 0.456 * math.log(2) * (k // 2)
        )

    @ledger.edge("at least two candidates").sweep(
        "k = 1", epsilon=0.01, lhs="(1/6) ln 2 k/epsilon", rhs="users that are needed"
    )  # fmt: skip
    def trivial(epsilon):
        return math.log(2) / 6 / epsilon, 0


@statement("few.thm43.remark")
def against_approximate(ledger):
    """The user complexity of Theorem 43 matches those achieved via approximate-DP algorithms,
    except for the first term (k/epsilon), whereas the best known (epsilon, delta)-DP algorithm
    works even with log(1/delta)/epsilon instead. In other words, when m is intermediate, the user
    complexity between the pure-DP and approximate-DP cases are the same. Only for large m does
    approximate-DP help.

    We read the statement with hidden logarithms. For m <= 1/alpha^2, the first term is at most the
    second term. So omitting the first term divides the sum by at most 2. As m grows, the pure bound
    tends to k/epsilon. The bound for approximate DP tends to log(1/delta)/epsilon. If delta > e^-k,
    the bound for approximate DP is smaller than the pure bound. If delta < e^-k, the pure bound is
    smaller. Pure DP is also a stronger guarantee than approximate DP.
    """
    domain = {"k": Integer(2, 10**6), "alpha": ALPHA, "epsilon": Interval(1e-3, 1.0, log=True),
              "share": SHARE, "log": Interval(0.7, 50.0)}  # fmt: skip

    @ledger.falsify("intermediate m: 1 <= m <= 1/alpha^2", reach=1.0, mutant={"reach": 10.0},
                    extremal=[{"k": 10**6, "alpha": 1e-6, "epsilon": 1e-3, "share": 1.0,
                               "log": 0.7}], **domain)  # fmt: skip
    def same(k, alpha, epsilon, share, log, reach):
        m = (reach / alpha) ** (2 * share)
        both = k / (alpha * epsilon * math.sqrt(m)) + k / (alpha**2 * m)
        return k / epsilon + both, 2 * (log / epsilon + both) * (1 + ROUNDING)

    @ledger.falsify("large m: the ratio reaches k/log(1/delta) up to 2", reach=1e5,
                    mutant={"reach": 1e-5}, extremal=[{"k": 10**6, "alpha": 1e-6, "epsilon": 1.0,
                                                       "share": 1.0, "log": 0.7}],
                    **domain)  # fmt: skip
    def large(k, alpha, epsilon, share, log, reach):
        m = (reach * k / alpha) ** 2
        both = k / (alpha * epsilon * math.sqrt(m)) + k / (alpha**2 * m)
        return k / log, 2 * (k / epsilon + both) / (log / epsilon + both)


# --- product distributions ---


def in_order(rows):
    """Return rows in lexicographic order, up to rounding."""
    return np.array(sorted(np.round(rows, 9).tolist()))


def sums_apart(steps, bias):
    """Return the total variation of two product distributions, from decisions of the coordinates.

    Each coordinate decides for the first product, for the second product, or for neither. Each
    coordinate decides with the probability in `steps`, and its decision is correct with probability
    (1 + bias)/2. The logarithm of the likelihood ratio is proportional to the sum of the decisions.
    So the total variation of the products equals the total variation of the sums.
    """
    laws = []
    for sign in (1, -1):
        law = np.ones(1)
        for s in steps:
            law = np.convolve(law, [s * (1 - sign * bias) / 2, 1 - s, s * (1 + sign * bias) / 2])
        laws.append(law)
    return abs(laws[0] - laws[1]).sum() / 2


@statement("few.thm44")
def product(ledger):
    """Let PD(k, d; alpha) be the task of learning product distributions over [k]^d. For any
    sufficiently small alpha, epsilon > 0 and for all m in N, n_m^(PD(k, d; alpha))(epsilon, delta =
    0) = Thetatilde(kd/epsilon + kd/(alpha epsilon sqrt(m)) + kd/(alpha^2 m)).

    The cover consists of products of grids. The grids are those of few.thm43-cover for the distance
    .1 alpha/d. The distances d_tv of the coordinates add up, so the log size is at most 2 k d ln(k
    d/alpha). For every k >= 2, a code on the (k/2) d pairs of symbols gives an explicit packing.
    The packing biases all pairs by +b or -b, where b = 24 alpha/sqrt(d). The d_tv of two products
    equals the d_tv of two sums of d decisions, which can be computed exactly. The d_tv is at least
    3 alpha for every set of differing places. The divergence is at most 2.2 d b^2 = 1270 alpha^2,
    for alpha <= 1/48. So the sizes Omega(k d) and O(alpha^2), which the paper cites, are correct.
    For d = 1, the theorem is few.thm43.

    For larger k and d, the upper bound and the lower bound depend on few.thm42. We computed a cover
    of [2]^2 and the sizes of cover and packing. For k <= 3 and d <= 3, our cover was compared with
    a loop over all products. We computed the distance and divergence of the packing for the spreads
    1/8, 1/2 and 1. Learning was run only for k = 2, d = 1.
    """

    @ledger.falsify("a product cover of [2]^2, any product", p=SHARE, q=SHARE, radius=0.1,
                    parts=10, mutant={"parts": 2}, end_to_end=True, examples=100, extremal=[
                        {"p": 0.05, "q": 0.05}])  # fmt: skip
    def covered(p, q, radius, parts):
        both = np.outer([1 - p, p], [1 - q, q]).ravel()
        return total_variation(product_cover(2, 2, parts), both).min(), radius

    @ledger.identity("our cover holds all products of grids, in all coordinates", parts=[1, 2, 3],
                     k=[2, 3], d=[1, 2, 3], first=False, mutant={"first": True})  # fmt: skip
    def all_products(k, d, parts, first):
        """Compare the masses of all items; our code numbers the items of [k]^d.

        The mutant ignores all coordinates but the first.
        """
        found, items = product_cover(k, d, parts), list(itertools.product(range(k), repeat=d))
        places = flat_items([items], k)[0]
        meant = [[law[z[:1] * d if first else z] for z in items] for law in products(k, d, parts)]
        return in_order(found[:, places]), in_order(meant)

    @ledger.identity("our numbers of the items of [k]^d are 0, ..., k^d - 1, each once",
                     k=[1, 2, 5], d=[1, 2, 3], start=0, mutant={"start": 1})  # fmt: skip
    def numbered(k, d, start):
        items = list(itertools.product(range(k), repeat=d))
        found = flat_items(np.reshape(items, (-1, 1, d)), k)
        return [*found.shape, *np.sort(found.ravel())], [k**d, 1, *range(start, start + k**d)]

    @ledger.falsify("the size", k=Integer(2, 10**4), d=Integer(1, 10**4), alpha=ALPHA, most=2.0,
                    mutant={"most": 0.5}, extremal=[{"k": 2, "d": 1, "alpha": 0.1}])  # fmt: skip
    def size(k, d, alpha, most):
        return d * log_cover(k, alpha / d), most * k * d * math.log(k * d / alpha)

    domain = {"d": [1, 2, 5, 20, 100], "alpha": [1 / 48, 1e-3, 1e-5], "spread": [0.125, 0.5, 1.0]}

    @ledger.sweep("the packing: d_tv, exactly", scale=24.0, mutant={"scale": 10.0},
                  method=Method.NUMERIC, **domain)  # fmt: skip
    def apart(d, alpha, spread, scale):
        """Use words that differ in an eighth of all places.

        Either the words differ in all places of some coordinates, or in some places of all
        coordinates.
        """
        bias = scale * alpha / math.sqrt(d)
        steps = np.full(math.ceil(d / 8 / spread), spread)
        return 3 * alpha, sums_apart(steps, bias)

    @ledger.identity("our packing: the masses of each symbol", shape=[(1, 1), (3, 2), (2, 4)],
                     bias=[0.0, 0.2, 0.9], sign=1.0, mutant={"sign": -1.0})  # fmt: skip
    def masses(shape, bias, sign):
        d, half = shape
        code = np.random.default_rng(0).integers(2, size=(5, d, half))
        meant = [[[(1 + s * (bias if code[i, j, l] else -bias)) / (2 * half)
                   for l in range(half) for s in (sign, -sign)]  # noqa: E741
                  for j in range(d)] for i in range(5)]  # fmt: skip
        return product_packing(code, bias), np.array(meant)

    @ledger.sweep("our packing on a greedy code of [4]^2 and [2]^4: d_tv, by enumeration",
                  shape=[(2, 2), (4, 1), (1, 4)], alpha=[1 / 48, 1e-3], scale=24.0,
                  mutant={"scale": 6.0}, end_to_end=True)  # fmt: skip
    def packed_products(shape, alpha, scale):
        code = greedy_code(4, 1).reshape(-1, *shape)
        laws = product_packing(code, scale * alpha / math.sqrt(shape[0]))
        wholes = [functools.reduce(np.multiply.outer, law).ravel() for law in laws]
        return 3 * alpha, min(total_variation(p, q) for p, q in itertools.combinations(wholes, 2))

    @ledger.sweep("the packing: divergence", most=1270.0, mutant={"most": 500.0}, **domain)
    def diameter(d, alpha, spread, most):
        bias = 24 * alpha / math.sqrt(d)
        return d * bias * math.log((1 + bias) / (1 - bias)), most * alpha**2

    ledger.sweep("k = 2, d = 1: two coins, the best algorithm: least n", end_to_end=True, **COINS)(
        coins_needed
    )
