"""Few examples per user: claims of Theorems 10 and 11, Corollary 3, Table 2 and Section 5."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from algorithms.common.subsampling import amplified_epsilon
from algorithms.few_examples.deletion import Budget
from algorithms.few_examples.items import noisy_majority
from algorithms.few_examples.pipeline import (
    Pipeline,
    pipeline,
    pipeline_pmf,
    run_pipeline,
    stable_epsilon,
    theorem_10_epsilon,
)
from audits.few_examples.deletion_laws import Tabled
from audits.few_examples.transcribed import (
    delstab_by_kinds,
    lemma_19_epsilon,
    parameters,
    subsample,
    theorem_10_users,
)
from audits.few_examples.transcribed import theorem_10_epsilon as theorem_10_epsilon_of
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval

EPSILON = Interval(1e-3, 1.0, log=True)
DELTA = Interval(1e-12, 0.1, log=True)
"""Sufficiently small delta. The constants below hold for these values."""
SIZE = Interval(1.0, 1e12, log=True)
ITEMS = Interval(1.0, 1e9, log=True)
BOTH = {"epsilon": EPSILON, "delta": DELTA, "m": ITEMS}
WORST = [{"epsilon": 1.0, "delta": 0.1, "m": 1.0}, {"epsilon": 1e-3, "delta": 1e-12, "m": 1.0},
         {"epsilon": 1.0, "delta": 0.1, "m": 1e9}]  # fmt: skip


def less(epsilon, delta, m):
    """Return epsilon'' of Theorem 10, for any real m."""
    log = math.log(1 / delta)
    return epsilon**2 / (log * math.sqrt(m * (math.log(m) + log)))


def planned(epsilon, delta, m, n1, *, same=False):
    budget, m = Budget(epsilon, delta), round(m)
    base = epsilon if same else theorem_10_epsilon(budget, m)
    return pipeline(budget, m, sample=round(n1), base_epsilon=base)


def real_users(epsilon, delta, m, n1, constant):
    """Return the users of the pipeline, for sizes of any magnitude.

    The number N is not rounded.
    """
    budget, items, base = Budget(epsilon, delta), n1, less(epsilon, delta, m)
    for _ in range(100):
        n = items / m + budget.deleted
        target = constant * epsilon / (budget.kappa * math.sqrt(m * math.log(n * m / delta)))
        items = max(n1, n1 * math.expm1(base) / math.expm1(target))
    return items / m + budget.deleted


# --- Theorem 10 ---


@statement("few.thm10-N")
def population(ledger):
    """With epsilon'(n), delta' as in Lemma 19 and epsilon'' = epsilon^2/(log(1/delta) sqrt(m
    log(m/delta))), epsilon'(n)/epsilon'' <= (log n)^O(1). Let N be the smallest number such that N
    is divisible by m and (e^epsilon'' - 1) n_1(epsilon'', delta')/N <= e^(epsilon'(N/m + 4 kappa))
    - 1. Then N <= Otilde(m kappa + n_1(epsilon'', delta')).

    Suppose that the constant of Lemma 19 is 1, epsilon <= 1 and delta <= 0.1. In this case, the
    bound holds with N <= 8 (m kappa + n_1) sqrt(1 + log n/log(m/delta)). A smaller constant of
    Lemma 19 divides the bound. The proof needs epsilon''/epsilon'(n) <= (log n)^O(1), the inverse
    of the printed ratio. This inverse ratio is at most 6.6 sqrt(1 + log n/log(m/delta)). The
    printed claim is true, because the ratio is at most 1/3. But the printed claim is not useful.
    From epsilon'(n) <= epsilon''/3, it also follows that N >= 3 n_1, and therefore N >= n_1. If N <
    n_1, there is no subsample. A smallest N exists, because epsilon'(n) decreases only like
    1/sqrt(log n). Our pipeline finds this smallest N.
    """

    @ledger.falsify("N, with the constant 1 in Lemma 19", n1=SIZE, most=8.0, mutant={"most": 3.0},
                    extremal=[{**c, "n1": 1e12} for c in WORST], **BOTH)  # fmt: skip
    def bounded(epsilon, delta, m, n1, most):
        plan = planned(epsilon, delta, m, n1)
        root = math.sqrt(1 + math.log(plan.n_users) / math.log(plan.m / delta))
        return plan.n_items, most * (plan.m * plan.budget.kappa + plan.sample) * root

    inverse = ledger.step("epsilon''/epsilon'(n) <= (log n)^O(1), the meant ratio")

    @inverse.falsify("6.6 sqrt(1 + log n/log(m/delta))", n=SIZE, most=6.6, mutant={"most": 6.0},
                     extremal=[{**c, "n": 1.0} for c in WORST], **BOTH)  # fmt: skip
    def ratio(epsilon, delta, m, n, most):
        m, n = round(m), round(n)
        found = less(epsilon, delta, m) / stable_epsilon(Budget(epsilon, delta), n, m)
        return found, most * math.sqrt(1 + math.log(n) / math.log(m / delta))

    @ledger.step("N >= n_1: epsilon'(n) <= epsilon''").falsify(
        "epsilon'(n) <= epsilon''/3", n=SIZE, third=3.0, mutant={"third": 6.0},
        extremal=[{**c, "n": 1.0} for c in WORST], **BOTH,
    )  # fmt: skip
    def smaller(epsilon, delta, m, n, third):
        m, n = round(m), round(n)
        return third * stable_epsilon(Budget(epsilon, delta), n, m), less(epsilon, delta, m)

    @ledger.identity("our N is the smallest, by trial", epsilon=[0.3, 1.0], delta=[1e-3, 0.1],
                     m=[1, 7], n1=[1, 40], less=0, mutant={"less": 1})  # fmt: skip
    def smallest(epsilon, delta, m, n1, less):
        plan = planned(epsilon, delta, m, n1)
        for users in range(1, 10**5):
            target = stable_epsilon(plan.budget, users + plan.budget.deleted, m)
            if math.expm1(plan.base_epsilon) * n1 / (users * m) <= math.expm1(target):
                break
        return plan.n_items, (users - less) * m

    small = {"epsilon": EPSILON, "delta": DELTA, "m": Integer(1, 10**6)}

    @ledger.identity("our epsilon'' and our epsilon' of Lemma 19", n=Integer(1, 10**9), c=SIZE,
                     grow=1.0, mutant={"grow": 1.01}, **small)  # fmt: skip
    def levels(epsilon, delta, m, n, c, grow):
        """Use the constant 1, which is our default, and any other constant."""
        budget = Budget(epsilon, delta)
        found = [theorem_10_epsilon(budget, m), stable_epsilon(budget, n, m),
                 stable_epsilon(budget, n, m, constant=c)]  # fmt: skip
        return found, [theorem_10_epsilon_of(epsilon, delta, m),
                       lemma_19_epsilon(epsilon, delta, n, m),
                       lemma_19_epsilon(epsilon, delta, n, m, grow * c)]  # fmt: skip

    @ledger.identity("our pipeline: its numbers, by trial", epsilon=[0.5, 3.0], delta=[1e-3, 0.1],
                     m=[1, 3], n1=[1, 2, 50], base=[0.01, 1.0], c=[None, 3.0], less=0,
                     mutant={"less": 1})  # fmt: skip
    def numbers(epsilon, delta, m, n1, base, c, less):
        """Compare n, N, the constant, and the epsilon of the subsampled algorithm."""
        given = {} if c is None else {"constant": c}
        plan = pipeline(Budget(epsilon, delta), m, sample=n1, base_epsilon=base, **given)
        n = theorem_10_users(epsilon, delta, m, n1, base, c or 1.0) - less
        N = (n - 4 * parameters(epsilon, delta)[2]) * m
        level = math.log(1 + (math.exp(base) - 1) * n1 / max(N, 1))
        found = [plan.n_users, plan.n_items, plan.constant, plan.item_epsilon]
        return found, [n, N, c or 1.0, level]

    @ledger.misprint("epsilon'(n)/epsilon''", "epsilon''/epsilon'(n)").sweep(
        "with epsilon'(n) a millionth of epsilon'' the printed ratio is bounded, and N is not",
        n1=1000, lhs="N", rhs="1000 n_1",
    )  # fmt: skip
    def inverted(n1):
        return math.ceil(n1 * math.expm1(0.1) / math.expm1(0.1e-6)), 1000 * n1


def bits_of(numbers, m):
    """Return an array of users, given the number of users with 0, ..., m ones."""
    sizes = np.repeat(np.arange(m + 1), numbers)
    return (np.arange(m) < sizes[:, None]).astype(int)


@statement("few.thm10")
def main_theorem(ledger):
    """Let T be any task and gamma > 0 be a parameter. Then, for any sufficiently small epsilon,
    delta > 0 and m in N, there exists epsilon' = epsilon^2/(log(1/delta) sqrt(m log(m/delta))) and
    delta' = Theta(delta epsilon/(m log(1/delta))) such that n_m(epsilon, delta; gamma - o(1)) <=
    Otilde(log(1/delta)/epsilon + (1/m) n_1(epsilon', delta'; gamma)).

    If the constant of Lemma 19 is 1, the theorem holds with n <= 30 f sqrt(log f). The number f is
    the sum in Otilde. The constant 1 is not proved. A smaller constant divides the bound. For bits,
    the constant is 1/30. The proof gives the constant 1/(12 sqrt(6) 46). No logarithm of m is
    hidden. The proof cites Lemma 19 for an algorithm that does not depend on the order. A subsample
    in random order gives such an algorithm. With a random order, A is symmetric, and Theorem 7
    holds too. Every task has such an A_0. The text does not say in which order the subsample is. We
    do not show that a subsample in the order of the input breaks the theorem. If N >= 3 n_1
    (few.thm10-N), the sums with alternating signs, on which Lemma 19 fails, lose nearly all
    dependence on the order. The losses of these sums were computed by hand, not in this ledger. The
    losses are between .0004 and .027, and a loss of .0345 is allowed.

    The whole pipeline was computed exactly on bits. The pipeline is private at delta = .1 for
    epsilon = 3 with 101 users, and for epsilon = 9. The usefulness was computed at epsilon = 3 and
    delta = .1. The computation used n = 226 with the constant .6, and n = 270 with the constant .5.
    The pipeline loses 2 10^-5 (n = 226) and 3 10^-5 (n = 270) of A_0's usefulness on n_1 = 3 items.
    Pr[no answer] is equally large, and the allowed value is 0.1/(n m). At this size, the constant 1
    is too large, because the probability of no answer is .46 (n = 139, p = .8). The delta' of Lemma
    19 equals the printed delta' up to a constant, because kappa epsilon/log(1/delta) is between 3
    and 6.6.

    The comparison with one example per user was computed for n_1 = a/epsilon at epsilon = 1 and
    delta = 10^-6. The values of `a` are 10^6, 10^9 and 10^12. With the constant 1, the pipeline is
    better than one example per user if m >= 2^17. With the constant 1/30, the pipeline is better
    than one example per user if m >= 2^27. With the constant of the proof, the pipeline is better
    than one example per user if m >= 2^39. For smaller `a`, the pipeline is already better at a
    smaller m. The pipeline needs n >= 4 kappa = 196 users. Any number n_1 is possible for any
    epsilon'', because n_1 is a minimum.
    """

    @ledger.falsify("n against f = log(1/delta)/epsilon + n_1/m", n1=SIZE, most=30.0,
                    mutant={"most": 15.0}, extremal=[{**c, "n1": n} for c in WORST
                                                    for n in (1.0, 1e12)], **BOTH)  # fmt: skip
    def users(epsilon, delta, m, n1, most):
        plan = planned(epsilon, delta, m, n1)
        f = math.log(1 / delta) / epsilon + plan.sample / plan.m
        return plan.n_users, most * f * math.sqrt(max(1.0, math.log(f)))

    @ledger.sweep("privacy of the whole, on all pairs of users' bits, with delta/100", cases=[
        {"epsilon": 3.0, "m": 1, "sample": 2, "base": 2.0},
        {"epsilon": 9.0, "m": 2, "sample": 3, "base": 0.4}], delta=0.1, whole=1.0,
        mutant={"whole": 0.2}, end_to_end=True)  # fmt: skip
    def private(epsilon, m, sample, base, delta, whole):
        """Use all datasets of users with equal bits, where one user changes all bits."""
        plan = pipeline(Budget(epsilon, delta), m, sample=sample, base_epsilon=base)
        n, learner = plan.n_users, noisy_majority(base)
        laws = []
        for k in range(n + 1):
            numbers = np.zeros(m + 1, dtype=int)
            numbers[0], numbers[m] = n - k, k
            laws.append(pipeline_pmf(bits_of(numbers, m), base=learner, plan=plan))
        p, q = np.array(laws[:-1]), np.array(laws[1:])
        e = math.exp(whole * epsilon)
        left = np.maximum(np.maximum(p - e * q, 0).sum(1), np.maximum(q - e * p, 0).sum(1)).max()
        return left, delta / 100

    @ledger.identity("the whole pipeline, three items: DelStab on a random subsample", extra=0,
                     sharp=[False, True], numbers=[(9, 7, 6), (20, 2, 0)], mutant={"extra": 1},
                     end_to_end=True)  # fmt: skip
    def piped(sharp, numbers, extra):
        """The mutant runs A_0 on a larger subsample."""
        plan = Pipeline(Budget(9.0, 0.9, sharp), 2, sample=2, base_epsilon=1.0, n_items=4,
                        constant=1.0)  # fmt: skip
        data, base = np.repeat(THREE, numbers, axis=0), BASE
        found = pipeline_pmf(data, base=base, plan=plan)
        meant = delstab_by_kinds(lambda z: subsample(base.slowly, z, 2 + extra), THREE, numbers,
                                 9.0, 0.9, 3, sharp=sharp)  # fmt: skip
        return found, meant

    meant = delstab_by_kinds(lambda z: subsample(BASE.slowly, z, 2), THREE, (9, 7, 6), 9.0,
                             0.9, 3)  # fmt: skip
    for outcome in range(4):
        ledger.monte_carlo(
            f"our draws of the pipeline: outcome {outcome}",
            draws=20_000,
            allowed=meant[outcome],
            mutant=0.7,
            outcome=outcome,
        )(drawn)

    @ledger.sweep(
        "usefulness of the whole, unfair bits, exactly; epsilon = 3, delta = .1", cases=[
            {"p": 0.8, "constant": 0.6}, {"p": 0.9, "constant": 0.5}], epsilon=3.0, delta=0.1,
        sample=3, base=2.0, larger=1.0, mutant={"larger": 2.0}, end_to_end=True,
    )  # fmt: skip
    def useful(p, constant, epsilon, delta, sample, base, larger):
        """Use m = 1 and the correct answer 1.

        The value gamma is the success of A_0 on `sample` items, minus 0.1/n. The mutant uses a
        constant in Lemma 19 that is too large. Users of probability below 10^-8 are omitted. If the
        event "no answer" had probability 0, the check would test nothing.
        """
        plan = pipeline(Budget(epsilon, delta), 1, sample=sample, base_epsilon=base,
                        constant=larger * constant)  # fmt: skip
        n, learner, k = plan.n_users, noisy_majority(base), np.arange(sample + 1)
        counts = np.stack([sample - k, k], axis=1)
        alone = binom.pmf(k, sample, p) @ learner.pmf_of_counts(counts)[:, 1]
        ways, law = binom.pmf(np.arange(n + 1), n, p), np.zeros(3)
        for ones in np.flatnonzero(ways > 1e-8):
            law += ways[ones] * pipeline_pmf(bits_of([n - ones, ones], 1), base=learner, plan=plan)
        return alone - 0.1 / n, law[1] if law[2] > 1e-5 else 0.0

    @ledger.sharper("fewer users than with one example per user, at epsilon = 1, delta = 10^-6")\
        .sweep("n_1 = a/epsilon: users of the pipeline over a/epsilon", a=[1e6, 1e9, 1e12], cases=[
            {"constant": 1.0, "log_m": 17}, {"constant": 1 / 30, "log_m": 27},
            {"constant": 1 / (12 * math.sqrt(6) * 46), "log_m": 39}], less_m=0,
            mutant={"less_m": 1})  # fmt: skip
    def better(a, constant, log_m, less_m):
        m = 2 ** (log_m - less_m)
        return real_users(1.0, 1e-6, m, a / less(1.0, 1e-6, m), constant) / a, 1.0

    @ledger.falsify("epsilon'' and delta' are as Lemma 19 needs: kappa = Theta(log(1/delta)/eps)",
                    low=3.0, high=6.6, mutant={"high": 5.0}, extremal=WORST, **BOTH)  # fmt: skip
    def theta(epsilon, delta, m, low, high):
        found = Budget(epsilon, delta).kappa * epsilon / math.log(1 / delta)
        return max(low / found, found / high), 1.0

    @ledger.step("in random order it is as Lemma 19 needs").sweep(
        "two of three items, A_0 logistic in y_1 - y_2: users 1 and 4 of (1, 0, 0, 1) are alike",
        epsilon=[1.0, 0.1], shuffled=True, mutant={"shuffled": False},
    )  # fmt: skip
    def shuffled(epsilon, shuffled):
        ways = itertools.permutations if shuffled else itertools.combinations
        laws = [np.mean([expit(epsilon * (a - b)) for a, b in ways(x, 2)])
                for x in ((0, 0, 1), (1, 0, 0))]  # fmt: skip
        return abs(laws[0] - laws[1]), 1e-12


THREE = [(0, 0), (0, 1), (2, 2)]
BASE = Tabled(
    [[0.8, 0.15, 0.05], [0.15, 0.8, 0.05], [0.1, 0.0, 0.9]], [0, 0, 0, 1, 1, 2, 1, 0, 0, 2, 0, 1, 0]
)
"""A_0, whose first two rows are close at epsilon = 9; its third row is close to none of them."""


def drawn(size, *, rng, outcome):
    """Run the pipeline on 22 users of three kinds."""
    plan = Pipeline(Budget(9.0, 0.9), 2, sample=2, base_epsilon=1.0, n_items=4, constant=1.0)
    data = np.repeat(THREE, (9, 7, 6), axis=0)
    return run_pipeline(data, size, base=BASE, plan=plan, rng=rng) == outcome


@statement("few.cor3")
def simplified(ledger):
    """Let T be any task and gamma > 0 be a parameter. Suppose that for any sufficiently small
    epsilon, delta > 0 there is an (epsilon, delta)-item-level DP algorithm that is gamma-useful for
    T with sample complexity Otilde((log(1/delta)^c/epsilon) n_priv + n_stat) for some constant c.
    Then, for any sufficiently small epsilon, delta > 0 there exists an (epsilon, delta)-user-level
    DP algorithm that is (gamma - o(1))-useful for T and has user complexity Otilde(m^(-1/2)
    (log(1/delta)^(c + 3/2)/epsilon^2) n_priv + n_stat/m + log(1/delta)/epsilon).

    The corollary follows by substitution, with logarithms of all parameters hidden. The hidden
    factor is at most H^(c + 1/2), because log(1/delta') contains m. The number H is 1 + (log m +
    log(1/epsilon) + log log(1/delta))/log(1/delta). For small delta, the exponent c + 3/2 is exact.
    Section 2 defines Otilde(f), which hides only logarithms of f. With this definition, the
    substituted bound does not have the stated form for huge m. The reason is that n_priv = sqrt(m)
    makes f constant in m. The corollary assumes one algorithm for each epsilon and delta, so
    epsilon'' and delta' may be substituted.
    """
    terms = {"c": Interval(0.0, 6.0), "priv": SIZE, "stat": SIZE, **BOTH}
    worst = [{"c": 1.0, "priv": 1e12, "stat": 1.0, "epsilon": 1.0, "delta": 1e-12, "m": m}
             for m in (1.0, 1e9)]  # fmt: skip

    @ledger.falsify("Theorem 10 with the n_1 of the assumption", extra=1.5, mutant={"extra": 1.0},
                    extremal=worst, **terms)  # fmt: skip
    def plugged(c, priv, stat, epsilon, delta, m, extra):
        log = math.log(1 / delta)
        tiny = delta * epsilon / (m * log)
        n1 = math.log(1 / tiny) ** c / less(epsilon, delta, m) * priv + stat
        hidden = 1 + (math.log(m) + math.log(1 / epsilon) + math.log(log)) / log
        f = log ** (c + extra) / epsilon**2 * priv / math.sqrt(m) + stat / m + log / epsilon
        return log / epsilon + n1 / m, f * hidden ** (c + 0.5) * (1 + 1e-12)

    @ledger.edge("Otilde hides logarithms of all parameters").sweep(
        "n_priv = sqrt(m), c = 0, log m = 10^7: the bound of Theorem 10, and 10 f (log f)^3",
        log_m=1e7, log=math.log(10), lhs="bound", rhs="10 f (log f)^3",
    )  # fmt: skip
    def strict(log_m, log):
        """Use epsilon = 1 and delta = 0.1."""
        f = log**1.5 + log
        return log * math.sqrt(log_m + log) + log, 10 * f * math.log(f) ** 3


# --- Theorem 11 ---


@statement("few.c2-claim")
def same_epsilon(ledger):
    """With epsilon'' = epsilon^2/(log(1/delta) sqrt(m log(m/delta))), n_1(epsilon'', delta') <=
    n_1(epsilon, delta') O(epsilon/epsilon''): the smallest number N such that (e^epsilon - 1)
    n_1(epsilon, delta')/N <= e^epsilon'' - 1 satisfies N <= n_1(epsilon, delta')
    O(epsilon/epsilon''), and running an algorithm on n_1(epsilon, delta') out of N samples is
    (epsilon'', delta')-item-level DP.

    The claim holds with the constant 2.3 for epsilon <= 1/2. With this constant, N is at most n_1
    (e^epsilon - 1)/epsilon'' + 1. The claim needs epsilon'' <= epsilon, which holds for epsilon <=
    ln(2)^1.5 = .577 and delta <= 1/2 for every m. For larger epsilon, epsilon'' <= epsilon may
    fail, and N may then be less than n_1. The condition "sufficiently small" excludes this case. As
    epsilon -> 0 for fixed m, the constant tends to 1. The subsample is in random order (Theorem 7).
    """
    small = {"epsilon": Interval(1e-6, 0.5, log=True), "delta": Interval(1e-12, 0.5, log=True),
             "m": ITEMS, "n1": SIZE}  # fmt: skip
    ends = [{"epsilon": 0.5, "delta": 0.5, "m": 1.0, "n1": n} for n in (1.0, 1e6)]

    @ledger.falsify("N against 2.3 n_1 epsilon/epsilon''", most=2.3, mutant={"most": 1.1},
                    extremal=ends, **small)  # fmt: skip
    def enough(epsilon, delta, m, n1, most):
        n1, target = math.ceil(n1), less(epsilon, delta, m)
        return math.ceil(
            n1 * math.expm1(epsilon) / math.expm1(target)
        ), most * n1 * epsilon / target

    @ledger.falsify("N is large enough for Theorem 7, and at least n_1", part=1,
                    mutant={"part": 2}, extremal=ends, end_to_end=True, **small)  # fmt: skip
    def private(epsilon, delta, m, n1, part):
        n1, target = math.ceil(n1), less(epsilon, delta, m)
        found = math.ceil(n1 * math.expm1(epsilon) / math.expm1(target)) // part
        if found < n1:
            return 2.0, 1.0
        return amplified_epsilon(epsilon, found, n1), target * (1 + 1e-9)

    @ledger.falsify("epsilon'' <= epsilon up to epsilon = ln(2)^1.5", share=Interval(0.0, 1.0),
                    delta=Interval(1e-12, 0.5, log=True), m=ITEMS, end=1.0, mutant={"end": 1.1},
                    extremal=[{"share": 1.0, "delta": 0.5, "m": 1.0}])  # fmt: skip
    def below(share, delta, m, end):
        epsilon = max(share, 1e-6) * end * math.log(2) ** 1.5
        return less(epsilon, delta, m), epsilon


@statement("few.thm11")
def same_version(ledger):
    """Let T be any task and gamma > 0 be a parameter. Then, for any sufficiently small epsilon,
    delta > 0 and m in N, there exists delta' = Theta(delta epsilon/(m log(1/delta))) such that
    n_m(epsilon, delta; gamma - o(1)) <= Otilde(log(1/delta)/epsilon + m^(-1/2)
    (log(1/delta)^1.5/epsilon) n_1(epsilon, delta'; gamma)).

    The theorem follows from Theorem 10 with the factor 2.3 sqrt(1 + log m/log(1/delta)) (epsilon <=
    1/2), which contains a hidden sqrt(log m). Our pipeline with one subsample instead of two has n
    <= 20 f sqrt(log f) sqrt(log m) users. Suppose that n_1 is of the order of sqrt(m) and m is
    huge. In this case, Section 2's Otilde(f) = O(f log^c f) does not hide the sqrt(log m) of the
    proof. The abstract also hides this sqrt(log m). Theorem 11 does not give fewer users than
    Theorem 10. With n_1 = a/epsilon, Theorems 10 and 11 are better than one example per user from
    the same m on.
    """
    small = {"epsilon": Interval(1e-3, 0.5, log=True), "delta": DELTA, "m": ITEMS, "n1": SIZE}
    ends = [{"epsilon": 0.5, "delta": 0.1, "m": m, "n1": 1e12} for m in (1.0, 2.0, 1e9)]

    @ledger.falsify("Theorem 10 with n_1(epsilon'') = 2.3 n_1 epsilon/epsilon''", power=1.5,
                    mutant={"power": 0.5}, extremal=[
                        {"epsilon": 0.5, "delta": 1e-12, "m": 1.0, "n1": 1e12}], **small,
                    )  # fmt: skip
    def plugged(epsilon, delta, m, n1, power):
        log = math.log(1 / delta)
        inner = 2.3 * n1 * epsilon / less(epsilon, delta, m) / m
        hidden = 2.3 * math.sqrt(1 + math.log(m) / log)
        return inner, hidden * log**power / epsilon * n1 / math.sqrt(m) * (1 + 1e-12)

    @ledger.falsify("our pipeline at epsilon, with the constant 1 in Lemma 19", most=20.0,
                    mutant={"most": 2.0}, extremal=ends, end_to_end=True, **small)  # fmt: skip
    def users(epsilon, delta, m, n1, most):
        """Limit n_1 so that there are fewer than 2^52 items."""
        log = math.log(1 / delta)
        least = stable_epsilon(Budget(epsilon, delta), max(1, 2**52 // round(m)), round(m))
        n1 = max(1.0, min(n1, 2**52 * least / math.expm1(epsilon)))
        plan = planned(epsilon, delta, m, n1, same=True)
        f = log / epsilon + log**1.5 / epsilon * plan.sample / math.sqrt(plan.m)
        hidden = math.sqrt(max(1.0, math.log(f)) * max(1.0, math.log(m)))
        return plan.n_users, most * f * hidden

    @ledger.edge("Otilde hides logarithms of all parameters").sweep(
        "n_1 = sqrt(m), log m = 10^7: the bound of the proof, and 10 f (log f)^3",
        log_m=1e7, log=math.log(10), lhs="bound", rhs="10 f (log f)^3",
    )  # fmt: skip
    def strict(log_m, log):
        """Use epsilon = 1 and delta = 0.1.

        For every m, f is log + log^1.5.
        """
        f = log + log**1.5
        return log + log * math.sqrt(log_m + log), 10 * f * math.log(f) ** 3


@statement("few.thm11.remark")
def compared(ledger):
    """If Theorem 11 is used under the assumption in Corollary 3, then the privacy-independent part
    would be m^(-1/2) (log(1/delta)^1.5/epsilon) n_stat instead of n_stat/m implied by Theorem 10,
    and the privacy-dependent part is the same.

    Both claims follow by substitution. The privacy-dependent part is the same up to logarithms of
    m. These logarithms are in log(1/delta') and in Theorem 10's sqrt(log(m/delta)), which Theorem
    11 hides. The privacy-independent part is sqrt(m) log(1/delta)^1.5/epsilon times as large.
    """
    terms = {"c": Interval(0.0, 6.0), "priv": SIZE, "stat": SIZE, **BOTH}

    @ledger.identity("Theorem 11 with n_1(epsilon) = log^c/epsilon n_priv + n_stat", half=0.5,
                     mutant={"half": 1.0}, **terms)  # fmt: skip
    def parts(c, priv, stat, epsilon, delta, m, half):
        log = math.log(1 / delta)
        outer = log**1.5 / epsilon / math.sqrt(m)
        private, rest = outer * log**c / epsilon * priv, outer * stat
        corollary = log ** (c + 1.5) / epsilon**2 * priv * m**-half
        return [private, rest], [corollary, m**half * log**1.5 / epsilon * stat / m]

    @ledger.falsify("it is never less than that of Theorem 10", power=0.5, mutant={"power": 1.5},
                    extremal=[{"c": 1.0, "priv": 1.0, "stat": 1.0, **c} for c in WORST],
                    **terms)  # fmt: skip
    def more(c, priv, stat, epsilon, delta, m, power):
        log = math.log(1 / delta)
        return stat / m, m**-power * log**1.5 / epsilon * stat


# --- Section 5 ---


@statement("few.sec5-frontier")
def frontier(ledger):
    """The transformation for approximate-DP (Theorem 10) has an item-level privacy loss (roughly)
    of the form epsilon^2/sqrt(m log(1/delta)^3), while it seems plausible that epsilon/sqrt(m
    log(1/delta)) can be achieved. The extra factor of log(1/delta)/epsilon comes from the fact that
    Algorithm 1 uses LDDP with distance O(kappa) = O(log(1/delta)/epsilon).

    The privacy loss epsilon'' of Theorem 10 is the stated value divided by sqrt(1 + log
    m/log(1/delta)). The extra factor log(1/delta)/epsilon comes from the distance 4 kappa. For
    epsilon <= 1 and delta <= 0.1, the distance 4 kappa is between 12 and 26 times the factor. The
    phrase "it seems plausible" marks a conjecture. Another analysis of Algorithm 1 does not prove
    this conjecture. Let m >= log n, and let n be far above kappa. Up to a constant, 4 kappa users
    with extreme sums move a count of bits by the amount in Theorem 17.
    """

    @ledger.falsify("epsilon'' and epsilon^2/sqrt(m log(1/delta)^3)", one=1.0,
                    mutant={"one": 0.5}, extremal=WORST, **BOTH)  # fmt: skip
    def roughly(epsilon, delta, m, one):
        log = math.log(1 / delta)
        said, found = epsilon**2 / math.sqrt(m * log**3), less(epsilon, delta, m)
        return max(found / said, said / found / math.sqrt(1 + math.log(m) / log)), one + 1e-9

    @ledger.identity("the factor between the two", half=0.5, mutant={"half": 0.4}, **BOTH)
    def factor(epsilon, delta, m, half):
        log = math.log(1 / delta)
        plausible = epsilon / (m * log) ** half
        return epsilon**2 / math.sqrt(m * log**3), plausible * epsilon / log

    @ledger.falsify("the distance 4 kappa against log(1/delta)/epsilon", most=26.0,
                    mutant={"most": 20.0}, extremal=WORST, **BOTH)  # fmt: skip
    def distance(epsilon, delta, m, most):
        found = Budget(epsilon, delta).deleted * epsilon / math.log(1 / delta)
        return max(12 / found, found / most), 1.0

    rest = ledger.sharper(
        "4 kappa users at a distance cost the loss of Theorem 17, up to a constant"
    )

    @rest.sweep(
        "fair bits: the difference of the sums without the least and without the largest users",
        n=[10**4, 10**6], m=[100, 1000], kappa=[20, 50], constant=0.5, mutant={"constant": 4.0},
    )  # fmt: skip
    def moved(n, m, kappa, constant):
        """Use quantiles of the sums instead of order statistics."""
        ranks = (np.arange(4 * kappa) + 0.5) / n
        gap = (binom.isf(ranks, m, 0.5) - binom.ppf(ranks, m, 0.5)).sum()
        return constant * 4 * kappa * math.sqrt(m * math.log(n / (4 * kappa))), gap
