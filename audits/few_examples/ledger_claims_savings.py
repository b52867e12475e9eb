"""Few examples per user: claims about the number of users that more examples save."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import binom

from algorithms.few_examples.deletion import Budget
from algorithms.few_examples.items import ExponentialLearner, Subsampled
from algorithms.few_examples.pipeline import pipeline
from audits.few_examples.conventions import SHARE
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

EPSILON = Interval(1e-3, 1.0, log=True)
DELTA = Interval(1e-12, 0.1, log=True)
ITEMS = Interval(1.0, 1e9, log=True)
SIZE = Interval(1.0, 1e9, log=True)
ALPHA = Interval(1e-6, 0.4, log=True)
ROUNDING = 1e-9


def planned_users(epsilon, delta, m, n1):
    """Return the users of our pipeline for Theorem 11, with the constant 1 in Lemma 19."""
    return pipeline(Budget(epsilon, delta), m, sample=round(n1), base_epsilon=epsilon).n_users


# --- the savings ---


@statement("few.sec1.1-small-m", expected="ambiguous")
def small_m(ledger):
    """Is there a generic transformation from item-level to user-level DP algorithms for small m? We
    answer this question by showing a generic way to transform any item-level DP algorithm into a
    user-level DP algorithm such that the latter saves roughly sqrt(m) in terms of the number of
    users required.

    For fixed epsilon and delta, the number of users decreases like 1/sqrt(m). So the answer is
    correct about the dependence on m. But the transformation also multiplies the number of users by
    log(1/delta)^1.5/epsilon (Theorem 11). One example per user needs n_1 users (Observation 28).
    Without constants and logarithms of m, the transformation needs fewer users only if m >=
    log(1/delta)^3/epsilon^2. For epsilon = 1 and delta = 10^-6, this number is 2640, and for
    epsilon = .1 it is 264000. Let epsilon = 1 and delta = 10^-6. The bound of Theorem 11 without
    its first term is 51 n_1 for m = 1, 16 n_1 for m = 10, and 5.1 n_1 for m = 100.

    Our pipeline with the constant 1 in Lemma 19 was run too. This constant is not proved, and is
    too favourable. For n_1 = 10^6, the pipeline needs 489 n_1 users for m = 1 and 51 n_1 users for
    m = 100. It needs fewer than n_1 users if m = 256 log(1/delta)^3/epsilon^2. The paper states no
    least m. With min{n_1, log(1/delta)/epsilon + log(1/delta)^1.5 n_1/(epsilon sqrt(m))}, the bound
    holds for every m.
    """
    fixed = ledger.reading("for fixed epsilon and delta, as m grows")

    @fixed.sweep("our pipeline, n_1 = 10^7: users at m, and 1.2/sqrt(m) of the users at m = 1",
                 cases=[{"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 0.1, "delta": 1e-6},
                        {"epsilon": 0.5, "delta": 1e-5}], m=[16, 256, 4096, 2**16, 2**20],
                 half=0.5, mutant={"half": 0.6}, method=Method.NUMERIC,
                 shared="the claim compares two runs", end_to_end=True)  # fmt: skip
    def falls(epsilon, delta, m, half):
        alone = planned_users(epsilon, delta, 1, 1e7)
        return planned_users(epsilon, delta, m, 1e7), 1.2 * alone * m**-half

    @ledger.reading("for m >= 256 log(1/delta)^3/epsilon^2, fewer users than with one example")\
        .sweep("our pipeline against n_1 = 10^6, which are the users with one example", cases=[
            {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 0.1, "delta": 1e-6},
            {"epsilon": 0.5, "delta": 1e-5}, {"epsilon": 0.3, "delta": 1e-9}], power=3.0, n1=10**6,
            mutant={"power": 1.0}, method=Method.NUMERIC, end_to_end=True)  # fmt: skip
    def better(epsilon, delta, power, n1):
        m = round(256 * math.log(1 / delta) ** power / epsilon**2)
        return planned_users(epsilon, delta, m, n1), n1

    @ledger.reading("for small m, such as m = 10, fewer users than with one example", fails=True)\
        .sweep("Theorem 11 without constants, logarithms of m and its first term; one example each",
               m=[10, 100], epsilon=1.0, delta=1e-6, n1=10**6,
               lhs="users by Theorem 11", rhs="users with one example each")  # fmt: skip
    def few_examples(m, epsilon, delta, n1):
        return math.log(1 / delta) ** 1.5 / (epsilon * math.sqrt(m)) * n1, n1

    ledger.consequence(
        "For few examples per user and usual epsilon and delta, one example per user needs fewer "
        "users than the bound of the transformation.",
        harm="the wording",
    )


@statement("few.abstract-savings", expected="ambiguous")
def savings(ledger):
    """For approximate-DP, we give a generic transformation of any item-level DP algorithm to a
    user-level DP algorithm. Roughly speaking, the latter gives a (multiplicative) savings of
    O_(epsilon, delta)(sqrt(m)) in terms of the number of users required for achieving the same
    utility, where m is the number of examples per user.

    If sqrt(m) <= n_1, the savings are at least of the order of sqrt(m), up to a factor that depends
    on epsilon and delta. For epsilon = 1 and delta = 10^-6, our pipeline with the constant 1 in
    Lemma 19 needs at most 700 n_1/sqrt(m) users. For larger m, the number of users stays at least 4
    kappa, and no algorithm saves more than the factor n_1. So the savings are not of the order of
    sqrt(m) for all m. An upper bound O(sqrt(m)) is not meant. It fails where n_stat is the larger
    part, because the savings are then of the order of m (Corollary 3). Take k = 2, alpha = 10^-6,
    epsilon = 1, delta = 10^-6 and m = 10^8. One example per user needs 2.0 10^12 users, and
    Corollary 3 gives 30300 users. The savings are 6600 sqrt(m). For small m, see
    few.sec1.1-small-m.
    """
    usual = ledger.reading("at least of the order of sqrt(m), as long as sqrt(m) <= n_1")

    @usual.sweep("our pipeline at epsilon = 1, delta = 10^-6, against 700 n_1/sqrt(m)", half=0.5,
                 n1=[100, 10**4, 10**6], log_m=[0, 2, 4, 8, 12, 13, 16, 20, 26], epsilon=1.0,
                 delta=1e-6, mutant={"half": 0.55}, method=Method.NUMERIC,
                 end_to_end=True)  # fmt: skip
    def order(n1, log_m, epsilon, delta, half):
        m = 2**log_m
        if math.sqrt(m) > n1:
            return None
        return planned_users(epsilon, delta, m, n1), 700 * n1 * m**-half

    @ledger.reading("at least of the order of sqrt(m), for every m", fails=True).sweep(
        "n_1 = 10^4: the savings of any algorithm, which needs at least one user", n1=10**4,
        log_m=120, lhs="sqrt(m)/10^6", rhs="savings with a single user",
    )  # fmt: skip
    def saturated(n1, log_m):
        return 1e-6 * 2 ** (log_m / 2), n1 / 1

    @ledger.reading("at most of the order of sqrt(m)", fails=True).sweep(
        "discrete distributions: savings of Corollary 3, over 1000 sqrt(m)", k=2, alpha=1e-6,
        epsilon=1.0, delta=1e-6, m=10**8, lhs="savings", rhs="1000 sqrt(m)",
    )  # fmt: skip
    def more(k, alpha, epsilon, delta, m):
        log = math.log(1 / delta)
        item = k / (epsilon * alpha) + k / alpha**2
        user = k * log**1.5 / (epsilon**2 * alpha * math.sqrt(m)) + k / (alpha**2 * m)
        return item / (user + log / epsilon), 1000 * math.sqrt(m)

    ledger.consequence(
        "None for the theorems. The abstract omits that sqrt(m) must be at most n_1.",
        harm="the wording",
    )


@statement("few.cor3.decreases")
def decreases(ledger):
    """The corollary below shows that the privacy-dependent term decreases by a factor of roughly
    sqrt(m) whereas the privacy-independent term decreases by a factor of m.

    For fixed epsilon and delta, both halves hold. By substitution into Theorem 10, the
    privacy-dependent term at m is sqrt(1 + log m/log(1/delta))/sqrt(m) of the term at m = 1. The
    sentence compares with the item-level term log(1/delta)^c n_priv/epsilon. Against this term, the
    factor is not sqrt(m) but epsilon sqrt(m)/log(1/delta)^1.5, without logarithms of m. At epsilon
    = 1, delta = 10^-6 and m = 10^4, this factor is 1.9. At epsilon = .1, the factor is .19, so the
    term increases. The paper says two paragraphs later that the dependence on epsilon and delta is
    not tight. The caption of Table 2 has the loss log(1/delta)^O(1)/epsilon. So we read "roughly"
    as in the abstract, for fixed epsilon and delta. The second half is exact.
    """
    domain = {"c": Interval(0.0, 6.0), "priv": SIZE, "stat": SIZE, "epsilon": EPSILON,
              "delta": DELTA, "m": ITEMS}  # fmt: skip

    @ledger.identity("both terms of Theorem 10 at m, over those at m = 1", half=0.5,
                     mutant={"half": 0.6}, **domain)  # fmt: skip
    def terms(c, priv, stat, epsilon, delta, m, half):
        log, found = math.log(1 / delta), []
        for items in (m, 1.0):
            tiny = epsilon**2 / (log * math.sqrt(items * math.log(items / delta)))
            found.append([log**c / tiny * priv / items, stat / items])
        hidden = math.sqrt(1 + math.log(m) / log)
        return np.divide(*found), np.array([hidden * m**-half, 1 / m])

    @ledger.sharper("against item level, the factor is epsilon sqrt(m)/log(1/delta)^1.5").identity(
        "without logarithms of m", power=1.5, mutant={"power": 0.5}, **domain)  # fmt: skip
    def factor(c, priv, stat, epsilon, delta, m, power):
        log = math.log(1 / delta)
        item = log**c / epsilon * priv
        user = math.log(1 / delta) ** (c + 3 / 2) / epsilon**2 * priv / math.sqrt(m)
        return item / user, epsilon * math.sqrt(m) / log**power


@statement("few.sec3-delta-gap")
def delta_gap(ledger):
    """We remark that the delta values are still different on the two sides of Theorem 11; however,
    if we assume that the dependence on 1/delta is only polylogarithmic, this results in at most a
    small gap of at most polylogarithmic factor in 1/delta.

    Let n_1 be proportional to log(1/delta)^c. The gap is the c-th power of
    log(1/delta')/log(1/delta). Suppose that m <= delta^-a and epsilon >= delta, as in Table 2
    (delta << epsilon). In this case, the gap is at most (3 + a)^c. So the gap is a constant if m is
    at most a power of 1/delta. For fixed delta, the gap grows with log m. Let delta = 10^-6 and
    epsilon = 1. The base of the power is 1.19 for m = 1, 1.69 for m = 1000, 3.19 for m = 10^12, and
    17.9 for m = 10^100. Theorem 11 is for all m. So the exact words are "polylogarithmic factor in
    m/(epsilon delta)". The paper hides other logarithms of m too (convention).
    """

    @ledger.falsify("m <= delta^-a, epsilon >= delta: the gap is at most (3 + a)^c", more=3.0,
                    c=Interval(0.0, 6.0), a=Interval(0.0, 10.0), size=SHARE, small=SHARE,
                    delta=DELTA, mutant={"more": 1.0}, extremal=[
                        {"c": 6.0, "a": a, "size": 1.0, "small": 1.0, "delta": 0.1}
                        for a in (0.0, 10.0)])  # fmt: skip
    def gap(c, a, size, small, delta, more):
        """Use the constant 1 in delta' = Theta(delta epsilon/(m log(1/delta)))."""
        log, epsilon, m = math.log(1 / delta), delta**small, delta ** (-a * size)
        other = delta * epsilon / (m * log)
        return math.log(1 / other) ** c, ((more + a) * log) ** c

    @ledger.edge("Otilde hides logarithms of all parameters").sweep(
        "log m = 10^9: log(1/delta')/log(1/delta), and 10 log(1/delta)^5", log_m=1e9, delta=1e-6,
        lhs="gap", rhs="10 log(1/delta)^5",
    )  # fmt: skip
    def many(log_m, delta):
        """Use epsilon = 1 and c = 1."""
        log = math.log(1 / delta)
        return (log + log_m + math.log(log)) / log, 10 * log**5


@statement("few.sec1.1-tight")
def not_tight(ledger):
    """While our result is very general, it, perhaps inevitably, comes at a cost: the dependence on
    epsilon (and delta) is not tight.

    At m = 1, Observation 28 gives n_1 users, but Theorem 11 has the factor log(1/delta)^1.5/epsilon
    before n_1. So both powers are lost for every task with n_1 >= log(1/delta)/epsilon. Our
    pipeline at m = 1 needs at least 4 times this factor for n_1 >= 10^4, with the constant 1 in
    Lemma 19. For large m, Table 2 shows a loss of 1/epsilon for discrete distributions. With k =
    100, alpha = .1 and m = 10^4, the bound is 9.1 times the known bound at epsilon = .1, and 91
    times at epsilon = .01. Table 2 hides the powers of log(1/delta), so no comparison of these
    powers is given.
    """

    @ledger.falsify("m = 1: 4 log(1/delta)^1.5/epsilon n_1, against the users of our pipeline",
                    n1=Integer(10**4, 10**6), epsilon=EPSILON, delta=DELTA, power=1.5,
                    mutant={"power": 2.5}, extremal=[
                        {"n1": 10**6, "epsilon": 1e-3, "delta": 1e-12}])  # fmt: skip
    def one_example(n1, epsilon, delta, power):
        lost = 4 * math.log(1 / delta) ** power / epsilon
        return lost * n1, planned_users(epsilon, delta, 1, n1)

    @ledger.sweep("discrete distributions, k = 100, alpha = .1, m = 10^4: .9/epsilon times the "
                  "known bound", epsilon=[0.1, 0.01, 0.001], lost=1.0,
                  mutant={"lost": 2.0})  # fmt: skip
    def discrete(epsilon, lost):
        k, alpha, m = 100, 0.1, 10**4
        known = 1 / epsilon + k / (epsilon * alpha * math.sqrt(m)) + k / (alpha**2 * m)
        ours = 1 / epsilon + k / (epsilon**2 * alpha * math.sqrt(m)) + k / (alpha**2 * m)
        return 0.9 * epsilon**-lost * known, ours


# --- previous work ---


@statement("few.table1-prev")
def previous(ledger):
    """Previous work achieves the tight sample complexity of PAC learning only for large m (>> d^2).
    In Tables 1 and 2, this is for m >= Thetatilde(d^2/(epsilon^2 alpha^2)) and m >=
    Thetatilde(d_L^12/(epsilon^2 alpha^4)), where the item-level DP bounds are d/(epsilon alpha) and
    d_L^6/(epsilon alpha^2); for an item-level sample complexity of n, the generic bound of previous
    work needs m >= Omegatilde(n^2).

    The tables and Section 1 agree: both numbers are squares of the item-level bounds. The words ">>
    d^2" drop the factor 1/(epsilon alpha)^2. At d = 10 and epsilon = alpha = .1, the number d^2 is
    100, but Table 1 has 10^6. The bound of Theorem 4 is at most 2 d/epsilon from m = 1/alpha on,
    which is 10. So the improvement is larger than these words suggest. The bounds of previous work
    are cited, and were not run. The transformation of previous work needs O(log(1/delta)/epsilon)
    users. This number is infinite at delta = 0, and the text does not say how Table 1 uses it for
    pure DP.
    """
    domain = {"d": Integer(1, 10**4), "epsilon": EPSILON, "alpha": ALPHA}

    @ledger.identity("the least m of the tables are squares", power=2, mutant={"power": 1},
                     **domain)  # fmt: skip
    def squares(d, epsilon, alpha, power):
        tables = [d**2 / (epsilon**2 * alpha**2), d**12 / (epsilon**2 * alpha**4)]
        return tables, np.array([d / (epsilon * alpha), d**6 / (epsilon * alpha**2)]) ** power

    @ledger.falsify("Theorem 4 from m = ceil(1/alpha) on: at most 2 d/epsilon", power=1.0,
                    mutant={"power": 0.9}, extremal=[
                        {"d": 1, "epsilon": 1.0, "alpha": a} for a in (1e-6, 0.25)],
                    **domain)  # fmt: skip
    def earlier(d, epsilon, alpha, power):
        m = math.ceil(alpha**-power)
        return d / epsilon + d / (epsilon * alpha * m), 2 * d / epsilon * (1 + ROUNDING)


@statement("few.sec1-learn-alone")
def learn_alone(ledger):
    """However, their focus was on the example-rich regime, where the users have so many examples
    that each user could themselves solve the problem. Due to the nature of the reduction, it
    requires each user to have enough samples to learn by themselves.

    The requirement m >= n^2 of previous work implies that a user has the n items of an item-level
    DP learner. The converse is false. So there is a third regime, n <= m < n^2, in which each user
    could solve the problem alone, but the reduction of previous work does not apply. For PAC
    learning with d_L = 2, epsilon = 1 and alpha = .1, n is 6400 and n^2 is 4.1 10^7 (Table 2
    without logarithms). The regime contains a factor of n in m, and Theorem 10 covers it too. The
    requirement of previous work is cited, and was not run.
    """

    @ledger.falsify("PAC learning, Table 2: items of the item-level learner, against the least m",
                    d=Integer(1, 100), epsilon=EPSILON, alpha=ALPHA, power=12,
                    mutant={"power": 5}, extremal=[
                        {"d": 1, "epsilon": 1.0, "alpha": 0.4},
                        {"d": 100, "epsilon": 1.0, "alpha": 0.4}])  # fmt: skip
    def alone(d, epsilon, alpha, power):
        return d**6 / (epsilon * alpha**2), d**power / (epsilon**2 * alpha**4)


# --- the same distribution ---

MAJORITY = ExponentialLearner(np.eye(2), 0.7)


@statement("few.c2-same")
def same_distribution(ledger):
    """Let A be an algorithm on N samples defined as follows: randomly sample (without replacement)
    n_1 out of N samples, then run A_0 on this subsample. It is also obvious that the output
    distribution of this algorithm is the same as that of A_0 on n_1 examples, and this algorithm is
    thus also gamma-useful.

    The two distributions agree exactly if the samples are i.i.d., also for an A_0 that depends on
    the order of the items. The subsample may be in the order of the input or in random order. For a
    fixed input the claim is false, because A mixes over subsamples. Usefulness is about i.i.d.
    samples (convention). The claim needs N >= n_1, which holds for epsilon <= .577 (few.c2-claim).
    """

    @ledger.identity("two of four items, any A_0 with one bit of output, in both orders",
                     answers=Array(SHARE, (4,)), p=SHARE, again=False, mutant={"again": True},
                     end_to_end=True)  # fmt: skip
    def enumerated(answers, p, again):
        """Add 1 to all values, so that differences are not relative to small values.

        The mutant samples with replacement.
        """
        places = list(itertools.product(range(4), repeat=2)) if again else None
        found = []
        for chosen in (itertools.combinations, itertools.permutations):
            total = 0.0
            parts = places or list(chosen(range(4), 2))
            for x in itertools.product((0, 1), repeat=4):
                chance = p ** sum(x) * (1 - p) ** (4 - sum(x))
                total += chance * np.mean([answers[2 * x[i] + x[j]] for i, j in parts])
            found.append(1 + total)
        pairs = itertools.product((0, 1), repeat=2)
        alone = sum(p ** (a + b) * (1 - p) ** (2 - a - b) * answers[2 * a + b] for a, b in pairs)
        return found, np.full(2, 1 + alone)

    @ledger.identity("our subsampled majority on N bits, against the majority of n_1 bits",
                     cases=[{"n1": 3, "N": 3}, {"n1": 5, "N": 12}, {"n1": 10, "N": 40}],
                     p=[0.2, 0.5, 0.9], more=0, mutant={"more": 1}, tolerance=1e-9)  # fmt: skip
    def ours(n1, N, p, more):
        sides = []
        for learner, size in ((Subsampled(MAJORITY, n1), N), (MAJORITY, n1 + more)):
            k = np.arange(size + 1)
            laws = learner.pmf_of_counts(np.stack([size - k, k], axis=1))
            sides.append(binom.pmf(k, size, p) @ laws)
        return sides[0], sides[1]
