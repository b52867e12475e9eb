"""Few examples per user: bounds of pure DP and other bounds, Tables 1 and 2 and footnote 8."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from audits.few_examples.conventions import SHARE
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval

ROUNDING = 1e-9
ALPHA = Interval(1e-6, 0.4, log=True)
SMALL = Interval(1e-3, 1.0, log=True)


@statement("few.table1", expected="refuted")
def table(ledger):
    """Summary of results on pure-DP: item-level DP and user-level DP for PAC learning
    Thetatilde(d/(epsilon alpha)) and Thetatilde(d/epsilon + d/(epsilon alpha m)), for agnostic PAC
    learning Thetatilde(d/alpha^2 + d/(epsilon alpha)) and Otilde(d/epsilon + d/(epsilon alpha
    sqrt(m)) + d/(alpha^2 m)), for learning discrete distributions, product distributions, Gaussians
    with known and with bounded covariance Thetatilde(s/(epsilon alpha) + s/alpha^2) and
    Thetatilde(s/epsilon + s/(epsilon alpha sqrt(m)) + s/(alpha^2 m)) with s = k, kd, d and d^2. For
    (agnostic) PAC learning, d denotes the probabilistic representation dimension of the concept
    class. PAC learning took Thetatilde(d/epsilon) in previous work when m >=
    Thetatilde(d^2/(epsilon^2 alpha^2)).

    The cell for item-level agnostic PAC learning is wrong. The correct lower bound in this cell is
    d_VC/alpha^2, not d/alpha^2. Take 2^b thresholds. Thresholds have d >= .13 b - .29
    (few.thm40-vc) and VC dimension 1. The exponential mechanism learns thresholds with 128 ln
    40/alpha^2 + 4 (b ln 2 + ln 10)/(epsilon alpha) examples. This number of examples follows from
    the uniform convergence of distribution functions and from Theorem 9. For b >> 1/alpha, this
    number is smaller than d/alpha^2 by more than any fixed power of logarithms. The cell describes
    previous work. The lower bound of Theorem 40 has d_VC instead of d.

    All other user-level cells agree with their theorems. At m = 1, the user-level cells agree with
    the item-level cells up to a factor of 2. The first term, s/epsilon, matters only for large m.
    For PAC learning, the term matters if m > 1/alpha. For the other tasks, the term matters if m >
    1/alpha^2. The bound for PAC learning is Thetatilde(d/epsilon) for m >= 1/alpha. The value
    d^2/(epsilon^2 alpha^2) of m is much larger than 1/alpha.
    """

    @ledger.sweep(
        "agnostic, item-level: d/alpha^2 over logarithms to a power, for 2^b thresholds", b=1e60,
        alpha=1e-30, epsilon=0.1, power=[10, 5], end_to_end=True,
        lhs="examples that are said to be needed", rhs="examples that are enough",
    )  # fmt: skip
    def thresholds(b, alpha, epsilon, power):
        d = 0.1308 * b - 0.29
        needed = d / alpha**2 + d / (epsilon * alpha)
        enough = 128 * math.log(40) / alpha**2 + 4 * (b + math.log(10)) / (epsilon * alpha)
        return needed / math.log(needed) ** power, enough

    domain = {"s": Integer(1, 10**6), "alpha": ALPHA, "epsilon": SMALL,
              "extremal": [{"s": 1, "alpha": 0.4, "epsilon": 1.0}]}  # fmt: skip

    rest = ledger.part("the other cells")

    @rest.falsify("distributions: at m = 1 both cells agree up to 2", factor=2.0,
                    mutant={"factor": 1.1}, **domain)  # fmt: skip
    def at_one(s, alpha, epsilon, factor):
        item = s / (epsilon * alpha) + s / alpha**2
        user = s / epsilon + s / (epsilon * alpha) + s / alpha**2
        return max(user, item), factor * min(user, item)

    @rest.falsify("PAC learning: at m = 1 both agree, and from m = 1/alpha on it is d/epsilon",
                    factor=2.0, mutant={"factor": 1.1}, **domain)  # fmt: skip
    def realizable(s, alpha, epsilon, factor):
        once = s / epsilon + s / (epsilon * alpha)
        many = s / epsilon + s / (epsilon * alpha * math.ceil(1 / alpha))
        return max(once * epsilon * alpha / s, many * epsilon / s), factor

    repair = ledger.repair(
        "agnostic, item-level: O~(d_VC/alpha^2 + d/(epsilon alpha)) for thresholds"
    )

    @repair.falsify("this number is enough", b=Integer(1, 10**6), alpha=ALPHA, epsilon=SMALL,
                    most=600.0, mutant={"most": 300.0}, extremal=[
                        {"b": 1, "alpha": 0.01, "epsilon": 1.0}])  # fmt: skip
    def enough(b, alpha, epsilon, most):
        n = 128 * math.log(40) / alpha**2 + 4 * (b + math.log(10)) / (epsilon * alpha)
        return n, most * (1 / alpha**2 + b / (epsilon * alpha))

    @repair.sweep(
        "one best threshold and 2^b - 1 others, alpha worse on the same examples: success", b=[
            1, 10, 40], alpha=[0.3, 0.1], epsilon=[1.0, 0.1], share=1.0, mutant={"share": 0.001},
        end_to_end=True,
    )  # fmt: skip
    def success(b, alpha, epsilon, share):
        """Use labels of one point that have the bias alpha.

        The success of the exponential mechanism on errors is computed exactly.
        """
        n = math.ceil(share * (128 * math.log(40) / alpha**2 + 4 * (b + 2.31) / (epsilon * alpha)))
        wrong = np.arange(n + 1)
        law = binom.pmf(wrong, n, (1 - alpha) / 2)
        lead = -epsilon / 2 * (n - 2 * wrong) + b * math.log(2)
        return 2 / 3, law @ expit(-lead)

    ledger.consequence(
        "For classes of small VC dimension, the saving of the user-level bound over the "
        "item-level bound is overstated.",
        harm="the wording",
    )


@statement("few.sec5-fn8")
def regime(ledger):
    """For PAC learning, Theorem 4 provides a better user complexity than applying the
    approximate-DP transformation (Theorem 10) to item-level approximate-DP learners for a large
    regime of parameters and concept classes; the former has user complexity that decreases with 1/m
    whereas the latter decreases with 1/sqrt(m).

    If logarithms are hidden and d = d_L, the regime consists of all m <= d^10/(epsilon^2 alpha^4).
    In this regime, the bound of Theorem 4 is at most twice the other bound. A term 1/epsilon is
    counted in both bounds. For thresholds, d = d_L up to a constant, because d >= .13 b - .29
    (few.thm40-vc) and d_L = b. If d is larger than d_L, the regime requires d <= 1 + d_L^6/(epsilon
    alpha^2 sqrt(m)) up to constants. Beyond the regime, only the term 1/epsilon of the other bound
    remains. Theorem 4 still has the term d/epsilon, which is d times as large as 1/epsilon.
    "Decreases with 1/m" describes the second term for m up to 1/alpha.
    """
    domain = {"d": Integer(1, 10**4), "alpha": ALPHA, "epsilon": SMALL, "share": SHARE,
              "extremal": [{"d": 1, "alpha": 0.4, "epsilon": 1.0, "share": 1.0},
                           {"d": 100, "alpha": 0.1, "epsilon": 1.0, "share": 1.0}]}  # fmt: skip

    @ledger.falsify("m up to d^10/(epsilon^2 alpha^4)", reach=1.0, mutant={"reach": 1e6}, **domain)
    def smaller(d, alpha, epsilon, share, reach):
        m = max(1.0, (reach * d**10 / (epsilon**2 * alpha**4)) ** share)
        pure = d / epsilon + d / (epsilon * alpha * m)
        other = 1 / epsilon + d**6 / (epsilon**2 * alpha**2 * math.sqrt(m))
        return pure, 2 * other

    @ledger.falsify("beyond this regime the transformation is better, by up to d", reach=1e3,
                    mutant={"reach": 1e-3}, **{**domain, "share": 1.0, "extremal": [
                        {"d": 100, "alpha": 0.1, "epsilon": 1.0}]})  # fmt: skip
    def larger(d, alpha, epsilon, share, reach):
        m = (reach * d**6 / (epsilon * alpha**2)) ** 2
        pure = d / epsilon + d / (epsilon * alpha * m)
        other = 1 / epsilon + d**6 / (epsilon**2 * alpha**2 * math.sqrt(m))
        return other, 1.01 * pure


PARTS = {
    "mean": lambda s, alpha: (math.sqrt(s) / alpha, 1 / alpha**2),
    "SCO": lambda s, alpha: (math.sqrt(s) / alpha, 1 / alpha**2),
    "discrete": lambda s, alpha: (s / alpha, s / alpha**2),
}
"""n_priv and n_stat, where s is the dimension, or k. A mean is of items in the unit ball of l_2."""


@statement("few.sec1.1-recovers")
def recovered(ledger):
    """Up to polylogarithmic terms and the dependency on epsilon, Corollary 3 recovers all the
    aforementioned user complexity bounds for mean estimation, SCO, and discrete distribution
    learning.

    The claim follows by substitution if logarithms are hidden. The item-level bounds have n_priv =
    sqrt(d)/alpha and n_stat = 1/alpha^2 for SCO and for a mean in the unit ball of l_2. For
    discrete distributions, n_priv is k/alpha and n_stat is k/alpha^2. Corollary 3 then gives
    n_priv/(epsilon^2 sqrt(m)) + n_stat/m + 1/epsilon. The known bound is n_priv/(epsilon sqrt(m)) +
    n_stat/m. The first term of Corollary 3 has an additional factor of 1/epsilon. The remark
    excludes this dependence on epsilon. Corollary 3 also has a term 1/epsilon, which the known
    bounds have too (few.disp-DD). So Corollary 3 is at most 1/epsilon times as large as these
    bounds. At constant epsilon, Corollary 3 agrees with these bounds. The paper cites the known
    bounds without the number of a theorem. The known bounds come from the literature. We did not
    execute the algorithms of these bounds.
    """
    domain = {"task": Choice(tuple(PARTS)), "s": Integer(1, 10**6), "alpha": ALPHA,
              "m": Interval(1.0, 1e12, log=True)}  # fmt: skip

    @ledger.falsify("Corollary 3 over the known bound, at most 1/epsilon", epsilon=SMALL, power=1.0,
                    mutant={"power": 0.5}, extremal=[{"task": t, "s": 10**6, "alpha": 0.01,
                    "m": 1.0, "epsilon": 1e-3} for t in PARTS], **domain)  # fmt: skip
    def dependence(task, s, alpha, m, epsilon, power):
        priv, stat = PARTS[task](s, alpha)
        found = priv / (epsilon**2 * math.sqrt(m)) + stat / m + 1 / epsilon
        known = priv / (epsilon * math.sqrt(m)) + stat / m + 1 / epsilon
        return found, known * epsilon**-power * (1 + ROUNDING)

    @ledger.identity("at epsilon = 1 they are the same: sqrt(m) and m are saved", half=0.5,
                     mutant={"half": 0.4}, **domain)  # fmt: skip
    def constant(task, s, alpha, m, half):
        priv, stat = PARTS[task](s, alpha)
        return priv / math.sqrt(m) + stat / m + 1, priv * m**-half + stat / m + 1


# --- Table 2 ---

PROBLEMS = ("PAC", "discrete", "product")


def parts_of(problem, k, alpha):
    """Return n_priv and n_stat of the item-level bounds, where the size is d_L, k, or k d."""
    if problem == "PAC":
        return k**6 / alpha**2, 0.0
    return k / alpha, k / alpha**2


def ours_of(problem, k, alpha, epsilon, m):
    """Return the last column of Table 2."""
    if problem == "PAC":
        return 1 / epsilon + k**6 / (epsilon**2 * alpha**2 * math.sqrt(m))
    return 1 / epsilon + k / (epsilon**2 * alpha * math.sqrt(m)) + k / (alpha**2 * m)


def known_of(problem, k, alpha, epsilon, m):
    """Return the best bound of the earlier columns.

    These columns are for one example per user, and for user-level DP.
    """
    priv, stat = parts_of(problem, k, alpha)
    item = priv / epsilon + stat
    if problem == "PAC":
        return 1 / epsilon if m >= k**12 / (epsilon**2 * alpha**4) else item
    if problem == "discrete":
        return min(item, 1 / epsilon + k / (epsilon * alpha * math.sqrt(m)) + k / (alpha**2 * m))
    return item


@statement("few.table2")
def examples(ledger):
    """Example results on approximate-DP, each a combination of Theorem 10 and the previously known
    item-level DP bound: for PAC learning Otilde(d_L^6/(epsilon alpha^2)) becomes Otilde(1/epsilon +
    d_L^6/(epsilon^2 alpha^2 sqrt(m))), for learning discrete distributions Thetatilde(k/(epsilon
    alpha) + k/alpha^2) becomes Otilde(1/epsilon + k/(epsilon^2 alpha sqrt(m)) + k/(alpha^2 m)), and
    for learning product distributions the same with kd for k. In all cases, previous results are
    improved upon or matched up to a log(1/delta)^O(1)/epsilon factor for all values of m. We assume
    that delta << epsilon and use Otilde, Thetatilde to also hide polylogarithmic factors in
    1/delta.

    All three bounds are Corollary 3 with the item-level bound of the same row. The comparison is
    with the best previous bound for the same m, including one example per user. No bound exceeds
    the best previous bound by more than the factor 2/epsilon. At small m, a factor 1/epsilon is
    lost. The same factor is lost in the privacy term, which is k/(epsilon^2 alpha sqrt(m)) instead
    of k/(epsilon alpha sqrt(m)). In PAC learning, a factor 2 is lost for m >= d_L^12/(epsilon^2
    alpha^4), because another bound exists for these m. So the privacy term is smaller than the
    privacy term of one example per user only for m > 1/epsilon^2. The factor log(1/epsilon) is
    hidden too, because delta is much smaller than epsilon. The item-level bounds are cited, not
    checked.
    """
    sizes = {"problem": Choice(PROBLEMS), "k": Interval(1.0, 1e4, log=True), "epsilon": SMALL,
             "alpha": Interval(1e-3, 0.5, log=True), "m": Interval(1.0, 1e9, log=True)}  # fmt: skip

    @ledger.identity("Corollary 3 by substitution, without logarithms", square=2.0,
                     mutant={"square": 1.0}, **sizes)  # fmt: skip
    def plugged(problem, k, alpha, epsilon, m, square):
        priv, stat = parts_of(problem, k, alpha)
        found = priv / (math.sqrt(m) * epsilon**square) + stat / m + 1 / epsilon
        return found, ours_of(problem, k, alpha, epsilon, m)

    @ledger.falsify(
        "at most 2/epsilon times the known bound", power=1.0, mutant={"power": 0.0}, extremal=[
            {"problem": p, "k": 2.0, "alpha": 0.1, "epsilon": 0.01, "m": 1.0} for p in PROBLEMS],
        **sizes,
    )  # fmt: skip
    def matched(problem, k, alpha, epsilon, m, power):
        known = known_of(problem, k, alpha, epsilon, m)
        return ours_of(problem, k, alpha, epsilon, m), 2 * epsilon**-power * known

    @ledger.sharper("PAC learning, many examples: within a factor of 2 of the known bound").falsify(
        k=Interval(1.0, 100.0, log=True), alpha=Interval(1e-3, 0.5, log=True), epsilon=SMALL,
        many=Interval(1.0, 1e6, log=True), two=2.0, mutant={"two": 1.9},
        extremal=[{"k": 2.0, "alpha": 0.1, "epsilon": 0.1, "many": 1.0}],
    )  # fmt: skip
    def rich(k, alpha, epsilon, many, two):
        m = many * k**12 / (epsilon**2 * alpha**4)
        return ours_of("PAC", k, alpha, epsilon, m), two / epsilon * (1 + 1e-12)
