"""Few examples per user: differential privacy implies sample perfect generalization."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog
from scipy.stats import binom

from audits.few_examples.private_tests import (
    DELTA,
    HALF,
    ROUNDING,
    SHARE,
    SMALL,
    SUMS,
    WEIGHT,
    least,
    moved_laplace,
    not_close,
    steepest_test,
    sticks,
    sums,
)  # fmt: skip
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method


@statement("few.def12")
def sample_perfect_generalization(ledger):
    """For beta, epsilon, delta > 0 an algorithm A: Z^n -> O is said to be (beta, epsilon,
    delta)-sample perfectly generalizing iff, for any distribution D over Z, Pr_(x, x' ~ D^n)[A(x)
    ~_(epsilon, delta) A(x')] >= 1 - beta.

    In this definition, the two inputs are new samples, and the distribution D is arbitrary. For a
    point mass D, every algorithm satisfies the condition. Every algorithm, private or not,
    satisfies the definition with beta = 1 - sum of D(x)^2 over inputs x. The identity does not
    satisfy the definition for a smaller beta. So the claim is informative only if beta is small.
    Post-processing keeps the property. For an algorithm that depends only on a sum, the check needs
    only pairs of sums.
    """

    @ledger.identity("a test of the sum: over all pairs of inputs, and over pairs of sums", n=4,
                     p=SHARE, epsilon=Interval(0.01, 1.0), larger=Interval(0.0, 2.0), value=SHARE,
                     delta=Interval(1e-3, 0.3), at=Integer(0, 4), floor=1e-9, weigh=True,
                     mutant={"weigh": False})  # fmt: skip
    def enumerated(n, p, epsilon, larger, value, delta, at, weigh):
        f = steepest_test(n, epsilon, delta, at, value)
        d = sticks(f[:, None], f[None], larger)
        bad = np.maximum(d, d.T) > delta
        inputs = np.array(list(itertools.product((0, 1), repeat=n))).sum(axis=1)
        law = p**inputs * (1 - p) ** (n - inputs)
        k = np.arange(n + 1)
        binomial = binom.pmf(k, n, p) if weigh else np.full(n + 1, 1 / (n + 1))
        return law @ bad[np.ix_(inputs, inputs)] @ law, binomial @ bad @ binomial

    @ledger.falsify("no algorithm does worse than the identity", law=Array(WEIGHT, (5,)), least=1.0,
                    laws=Array(WEIGHT, (5, 3)), mutant={"least": 0.5},
                    epsilon=Interval(0.0, 1.0), delta=Interval(1e-6, 0.5),
                    extremal=[{"law": np.ones(5), "laws": np.eye(5), "epsilon": 1.0,
                               "delta": 0.1}])  # fmt: skip
    def identity_is_worst(law, laws, epsilon, delta, least):
        law, laws = law / law.sum(), laws / laws.sum(axis=1, keepdims=True)
        return not_close(law, laws, epsilon, delta), least * (1 - law @ law) + 1e-9

    @ledger.falsify("post-processing", law=Array(WEIGHT, (4,)), laws=Array(WEIGHT, (4, 3)),
                    kernel=Array(WEIGHT, (3, 2)), epsilon=Interval(0.0, 1.0), slack=0.0,
                    delta=Interval(1e-6, 0.5), mutant={"slack": -0.2})  # fmt: skip
    def processed(law, laws, kernel, epsilon, delta, slack):
        law = law / law.sum()
        laws, kernel = (w / w.sum(axis=1, keepdims=True) for w in (laws, kernel))
        after = not_close(law, laws @ kernel, epsilon, delta + ROUNDING)
        return after, not_close(law, laws, epsilon, delta) + slack + 1e-9


@statement("few.thm13")
def private_generalizes(ledger):
    """Suppose that A: Z^n -> O is (epsilon, delta)-item-level DP, and assume that epsilon, delta,
    beta, epsilon sqrt(n log(1/(beta delta))) > 0 are sufficiently small. Then A is (beta, epsilon',
    delta')-sample perfectly generalizing, where epsilon' <= O(epsilon sqrt(n log(1/(beta delta))))
    and delta' = O(n delta).

    No counterexample was found with eps' = 2 eps sqrt(n log(1/(beta delta))) <= 2 and delta' = 2 n
    delta. In all tested cases, half of this eps' was enough. The tested algorithms are tests as
    steep as (eps, delta)-DP allows, and sums with discrete Laplace noise. The tested sums have up
    to 60 items, in any order and with any signs. The least eps' is computed exactly. The proof
    gives the bound 40 eps sqrt(n log(1/delta)) + t eps, where t = sqrt(8 n log(1/(2 beta))). The
    proof uses 2 t instead of t. But Theorem 15 bounds the distance of the pair (x, x'), which is
    the sum of both distances. The value delta' = n delta is needed. An example is an algorithm that
    releases item i with probability delta for each i, where all n items differ. The case n = 1
    falls into the case beta < 2^-n. For a pure-DP algorithm, some delta > 0 has to be chosen.
    """

    @ledger.falsify("tests of sums: the least eps' over eps sqrt(n log(1/(beta delta)))", c=2.0,
                    factor=2.0, mutant={"c": 0.2}, beta=Interval(1e-9, 0.1, log=True),
                    extremal=[{"n": 60, "delta": d, "beta": b, "small": 0.5, **HALF}
                              for d, b in ((1e-3, 1e-9), (1e-6, 1e-6), (1e-9, 1e-2))],
                    lhs="least constant", rhs="the constant 2", **SUMS)  # fmt: skip
    @ledger.sharper("1 for 2 in eps'").falsify("tests of sums", c=1.0, factor=2.0,
                    mutant={"c": 0.2}, beta=Interval(1e-9, 0.1, log=True),
                    extremal=[{"n": 60, "delta": 1e-6, "beta": 1e-6, "small": 0.5, **HALF}],
                    **SUMS)  # fmt: skip
    def tests(n, p, signs, delta, small, at, value, beta, c, factor):
        law = sums(n, p, signs)
        root = math.sqrt(n * math.log(1 / (beta * delta)))
        f = steepest_test(n, small / root, delta, round(at * n), value)
        p, q, allowed = f[:, None], f[None], factor * n * delta
        with np.errstate(divide="ignore", invalid="ignore"):
            one = np.where(p > allowed, np.log((p - allowed) / q), 0)
            other = np.where(1 - p > allowed, np.log((1 - p - allowed) / (1 - q)), 0)
        needed = np.nan_to_num(np.maximum(one, other), nan=0.0, neginf=0.0)
        needed = np.maximum(np.maximum(needed, needed.T), 0).ravel()
        order = np.argsort(needed)
        covered = np.searchsorted(np.cumsum(np.outer(law, law).ravel()[order]), 1 - beta)
        return needed[order][min(covered, needed.size - 1)] / small, c

    @ledger.falsify("discrete Laplace noise on a sum, and each item released with delta", c=2.0,
                    factor=2.0, mutant={"c": 0.2}, beta=Interval(1e-9, 0.1, log=True),
                    extremal=[{"n": 60, "delta": 1e-9, "beta": b, "small": 1.0, **HALF}
                              for b in (1e-2, 1e-9)], **SUMS)  # fmt: skip
    @ledger.sharper("1 for 2").falsify(
        "discrete Laplace noise on a sum, each item released with half of delta", c=1.0,
        factor=1.5, mutant={"c": 0.2}, beta=Interval(1e-9, 0.1, log=True),
        extremal=[{"n": 60, "delta": 1e-9, "beta": 1e-9, "small": 1.0, **HALF}], **SUMS,
    )  # fmt: skip
    def noisy(n, p, signs, delta, small, at, value, beta, c, factor):
        law = sums(n, p, signs)
        root = math.sqrt(n * math.log(1 / (beta * delta)))
        shifts = np.correlate(law, law, "full")
        far = np.cumsum((shifts + shifts[::-1])[n + 1 :][::-1])[
            ::-1
        ]  # probabilities of distances of at least 1, ..., n
        shift = int((far > beta).sum())  # distance that has to be covered
        allowed = (factor - 1) * n * delta

        def holds(larger):
            return moved_laplace(shift, small / root, larger) <= allowed

        return least(holds, 4 * small) / small, c

    ledger.step("the radius t of Theorem 15 is O(n) if beta >= 2^-n").falsify(
        "sqrt(8 n log(1/(2 beta))) <= 2.4 n",
        n=Integer(1, 400),
        share=SHARE,
        most=2.4,
        mutant={"most": 2.0},
        extremal=[{"n": 400, "share": 1.0}],
    )(radius)
    step = ledger.step("eps' = eps'' + 2 t eps = O(eps sqrt(n log(1/(beta delta))))")

    @step.falsify("constant 46", beta=Interval(1e-300, 0.1, log=True), delta=DELTA, most=46.0,
                  mutant={"most": 39.0},
                  extremal=[{"beta": 0.1, "delta": 1e-9}])  # fmt: skip
    def summed(beta, delta, most):
        """Use eps = n = 1, so that eps'' is 40 sqrt(log(1/delta)).

        Theorem 15 on 2 n items gives t.
        """
        t = math.sqrt(8 * math.log(1 / (2 * beta)))
        whole = math.sqrt(math.log(1 / (beta * delta)))
        return 40 * math.sqrt(math.log(1 / delta)) + 2 * t, most * whole


def radius(n, share, most):
    """Use beta from 1/2 down to 2^-n.

    If t < 1, no item moves.
    """
    return math.sqrt(8 * n * max(share * n - 1, 0) * math.log(2)), most * n


@statement("few.thm13-case2")
def all_items_change(ledger):
    """For the case beta < 2^-n, since any x, x' ~ D^n satisfy norm(x - x')_0 <= n, group privacy
    (Lemma 6) gives A(x) ~_(epsilon', delta') A(x') for epsilon' = n epsilon and delta' = O(n
    delta): A is (beta, epsilon', delta')-sample perfectly generalizing, in fact (0, epsilon',
    delta').

    The closed form of delta' is (e^(n eps) - 1)/(e^eps - 1) delta. The steepest test that starts at
    the probability 0 attains the closed form. Let eps sqrt(n log(1/(beta delta))) = s. The closed
    form is at most (e^x - 1)/x n delta for x = s/sqrt(ln 2). For s <= 1/2, this value is at most
    1.4 n delta. Also, n eps is at most 1.21 s. The condition on beta is needed only for n eps <=
    1.21 s. So the claim with (0, n eps, delta') holds for every beta. If n = 1 and beta < 1/2, the
    condition beta < 2^-n always holds.
    """
    domain = {"n": Integer(1, 200), "beta": SHARE, "delta": DELTA, "at": SHARE, "value": SHARE,
              "small": Interval(1e-3, 0.5, log=True)}  # fmt: skip
    steep = [{"n": 200, "beta": 1.0, "delta": 0.1, "at": 0.0, "value": 0.0, "small": 0.5}]

    @ledger.falsify("tests of sums, from any level", factor=1.4, mutant={"factor": 1.2},
                    extremal=steep, end_to_end=True, **domain)  # fmt: skip
    def grouped(n, beta, delta, at, value, small, factor):
        """Use log(1/beta) from n ln 2 to 10 times this value, and all pairs of inputs."""
        epsilon = small / math.sqrt(n * (n * math.log(2) * (10 - 9 * beta) + math.log(1 / delta)))
        f = steepest_test(n, epsilon, delta, round(at * n), value)
        return sticks(f[:, None], f[None], n * epsilon).max(), factor * n * delta

    @ledger.falsify("n eps = O(eps sqrt(n log(1/(beta delta))))", factor=1.21, extremal=steep,
                    mutant={"factor": 1.15}, **domain)  # fmt: skip
    def total(n, beta, delta, at, value, small, factor):
        root = math.sqrt(n * (n * math.log(2) * (10 - 9 * beta) + math.log(1 / delta)))
        return n * small / root, factor * small


@statement("few.lemma14")
def expected_divergence(ledger):
    """Suppose that A: Z^n -> O is an (epsilon, delta)-item-level DP algorithm. Further, assume that
    epsilon, delta and epsilon sqrt(n log(1/delta)) > 0 are sufficiently small. Then, for epsilon' =
    O(epsilon sqrt(n log(1/delta))), E_(x, x' ~ D^n)[d_epsilon'(A(x) || A(x'))] <= O(n delta).

    No counterexample was found with eps' = 2 eps sqrt(n log(1/delta)) and 2 n delta. In all tested
    cases, 1 was enough for both constants. The proof gives the constant 40 and the term 2
    e^(eps'/2) delta + 4 e^eps' n delta. The sharper forms of Lemmas 33 and 35 give the constant 4
    sqrt(2) and the term (1 + e^eps') n delta. The constant cannot be below 0.7, because tests of a
    sum of 100 fair bits need 0.7 at delta = 1e-12. For pure-DP algorithms, McDiarmid's inequality
    gives the constant 1 as delta -> 0. The term n delta is attained if item i is released with
    probability delta for each i and all items are different. For n <= log(1/delta), group privacy
    alone is enough. The order of the items does not matter.
    """
    ledger.misprint("variance, after the lemma", "standard deviation")

    @ledger.falsify("tests of sums", c=2.0, factor=2.0, mutant={"c": 0.1}, extremal=[
                        {"n": 60, "delta": d, "small": 0.5, **HALF} for d in (1e-3, 1e-6, 1e-9)
                    ], end_to_end=True, **SUMS)  # fmt: skip
    @ledger.sharper("1 for 2").falsify("tests of sums", c=1.0, factor=1.0, mutant={"c": 0.3},
                    extremal=[{"n": 60, "delta": 1e-9, "small": 0.5, **HALF}], **SUMS)  # fmt: skip
    def tests(n, p, signs, delta, small, at, value, c, factor):
        law = sums(n, p, signs)
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        f = steepest_test(n, epsilon, delta, round(at * n), value)
        return law @ sticks(f[:, None], f[None], c * small) @ law, factor * n * delta

    @ledger.falsify("noise on a sum, each item released with delta", n=Integer(1, 300), p=SHARE,
                    signs=Array(SHARE, (2,)), delta=DELTA, small=SMALL, symbols=Integer(2, 10**6),
                    c=2.0, factor=2.0, mutant={"c": 0.2}, end_to_end=True, extremal=[
                        {"n": 300, "p": 0.5, "signs": np.ones(2), "delta": 1e-9, "small": 1.0,
                         "symbols": 10**6},
                    ])  # fmt: skip
    def noisy(n, p, signs, delta, small, symbols, c, factor):
        """Add the divergences, because released items come from a separate part of the output."""
        law = sums(n, p, signs)
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        shifts = np.correlate(law, law, "full")
        found = shifts @ moved_laplace(np.abs(np.arange(-n, n + 1)), epsilon, c * small)
        share = min(n * delta, 1)
        return (1 - share) * found + share * (1 - 1 / symbols), factor * n * delta

    @ledger.sharper("the worst of all tests on few items, in any order: 1 for 2").sweep(
        "climbing by linear programs", cases=[
            {"n": 2, "symbols": 2, "p": 0.5}, {"n": 4, "symbols": 2, "p": 0.5},
            {"n": 2, "symbols": 3, "p": 0.4}, {"n": 3, "symbols": 2, "p": 0.9},
        ], method=Method.NUMERIC, delta=1e-4, small=0.1, c=1.0, mutant={"c": 0.3},
    )  # fmt: skip
    def climbed(n, symbols, p, delta, small, c):
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        marginal = np.array([p] + [(1 - p) / (symbols - 1)] * (symbols - 1))
        return worst_test(n, marginal, epsilon, delta, c * small), n * delta

    ledger.step("each of the n terms of Lemma 32, summed over outputs, is at most delta").falsify(
        "one item released with delta", delta=DELTA, small=SMALL, most=1.0, mutant={"most": 0.9},
        symbols=Integer(2, 10**6), extremal=[{"delta": 0.1, "small": 0.1, "symbols": 10**6}],
    )(one_term)  # fmt: skip


def one_term(delta, small, most, symbols):
    """Use outputs that are one symbol or nothing.

    The new item equals the old item with probability 1/symbols.
    """
    return delta * (1 - 1 / symbols), most * delta


def worst_test(n, marginal, epsilon, delta, larger, starts=6):
    """Return the largest E d_larger(A(x) || A(x')) over (eps, delta)-DP tests.

    The search begins at some starting points.
    """
    inputs = np.array(list(itertools.product(range(len(marginal)), repeat=n)))
    law, e, far = marginal[inputs].prod(axis=1), math.exp(epsilon), math.exp(larger)
    left, right = np.nonzero((inputs[:, None] != inputs[None]).sum(axis=-1) == 1)
    at = np.arange(len(left))
    rows = np.zeros((len(left), len(inputs)))
    rows[at, left], rows[at, right] = 1, -e
    bounds = np.r_[np.full(len(left), delta), np.full(len(left), delta + e - 1)]
    best, rng, pairs = 0.0, np.random.default_rng(0), np.outer(law, law)
    for start in range(starts):
        f, before = rng.random(len(inputs)) * (3 * delta if start % 2 else 1), -1.0
        for _ in range(20):
            one = pairs * (f[:, None] > far * f[None])
            other = pairs * (1 - f[:, None] > far * (1 - f[None]))
            slope = (one - other).sum(axis=1) - far * (one - other).sum(axis=0)
            f = linprog(-slope, A_ub=np.vstack([rows, -rows]), b_ub=bounds, bounds=(0, 1)).x
            found = law @ sticks(f[:, None], f[None], larger) @ law
            if found <= before * (1 + 1e-9):
                break
            before = found
        best = max(best, before)
    return best


def half_events(p, n):
    """Return all events of probability at least 1/2 in a small product space."""
    points = np.array(list(itertools.product(range(len(p)), repeat=n)))
    law = np.asarray(p)[points].prod(axis=1)
    events = np.arange(1, 2 ** len(points))
    return points, events[measures(events, law) >= 0.5 - ROUNDING], law


def measures(events, law):
    return sum(w * (events >> j & 1) for j, w in enumerate(law))


def farthest(p, n, t):
    """Return the largest probability of a distance above t from an event of probability >= 1/2."""
    points, events, law = half_events(np.asarray(p) / np.sum(p), n)
    near = np.zeros_like(events)
    for j, point in enumerate(points):
        ball = ((points != point).sum(axis=1) <= t) @ (1 << np.arange(len(points)))
        near |= (events >> j & 1) * ball
    return 1 - measures(near, law).min()


TINY = [
    {"p": np.array(p), "n": n, "t": t}
    for p, sizes in (
        ((0.5, 0.5), (1, 2, 3, 4)), ((0.3, 0.7), (2, 3, 4)), ((0.1591, 0.8409), (4,)),
        ((0.2929, 0.7071), (2, 3)), ((0.25, 0.25, 0.25, 0.25), (2,)), ((0.4, 0.3, 0.2, 0.1), (2,)),
    )
    for n in sizes for t in range(1, n + 1)
]  # fmt: skip


@statement("few.thm15")
def talagrand(ledger):
    """For any distribution D over Z, E subset of Z^n and t > 0, if Pr_(x ~ D^n)[x in E] >= 1/2,
    then Pr_(x ~ D^n)[x in E_(<= t)] >= 1 - 0.5 exp(-t^2/(4 n)), where E_(<= t) is the set of x' in
    Z^n for which there exists x in E with norm(x' - x)_0 <= t.

    The bound holds for all real t >= 1, including the factor 0.5, for which no proof is cited.
    Talagrand states the bound 2 e^(-t^2/(4n)), which has the factor 2. This bound follows from
    Pr[E] Pr[far] <= e^(-t^2/(4n)). A proof of the factor 0.5 follows. Let q be the probability of a
    distance above t. Such a distance is at least s = floor(t) + 1 >= 2. Let g = min(distance, s)/s.
    By the inequality of Efron and Stein, Pr[E] q <= Var g <= n Pr[0 < distance < s]/s^2. So q <=
    0.5/(1 + s^2/(2n)), which is enough for s^2 <= 5 n. By Marton's inequality, q <= exp(-(s
    sqrt(2/n) - sqrt(ln 2))^2), which is enough for s^2 >= 1.9 n. For t < 1, the bound fails.

    The bound is far from tight. All events of all spaces of 16 inputs satisfy a stronger bound with
    e^(-2 t^2/n), which has 8 times the exponent. Threshold sets up to n = 400 also satisfy this
    stronger bound. The true exponent is not much larger than 2 t^2/n. Sums of bits of probability
    0.38 allow at most the factor 2.12 in the exponent at n = 383.
    """

    @ledger.sweep("every event of small spaces", cases=TINY, half=0.5, rate=0.25,
                  mutant={"half": 0.125}, end_to_end=True)  # fmt: skip
    @ledger.sharper("e^(-2 t^2/n)").sweep("every event of small spaces", cases=TINY, half=0.5,
                                          rate=2.0, mutant={"rate": 4.3})  # fmt: skip
    def every_event(p, n, t, half, rate):
        return farthest(p, n, t), half * math.exp(-rate * t * t / n) + ROUNDING

    @ledger.falsify("every event of three bits or of two items of three kinds, any D",
                    weights=Array(Interval(0.01, 1.0), (3,)), three=Choice((True, False)),
                    half=0.5, mutant={"half": 0.1}, end_to_end=True,
                    extremal=[{"weights": np.ones(3), "three": True}])  # fmt: skip
    def any_law(weights, three, half):
        p, n = (weights[:2], 3) if three else (weights, 2)
        return farthest(p, n, 1), half * math.exp(-1 / (4 * n)) + ROUNDING

    bits = {"n": Integer(1, 400), "p": Interval(0.001, 0.999), "share": SHARE}
    known = [{"n": 383, "p": 0.38, "share": 130 / 383}]

    @ledger.falsify("sums of bits, threshold sets", rate=0.25, mutant={"rate": 2.2},
                    extremal=known, end_to_end=True, **bits)  # fmt: skip
    @ledger.sharper("e^(-2 t^2/n)").falsify("sums of bits, threshold sets", rate=2.0,
                                            mutant={"rate": 2.2}, extremal=known,
                                            **bits)  # fmt: skip
    def thresholds(n, p, share, rate):
        t = max(round(share * n), 1)
        median = binom.ppf(0.5, n, p)
        return binom.sf(median + t, n, p), 0.5 * math.exp(-rate * t * t / n)

    proof = ledger.sharper("the proof above")

    @proof.sweep("both bounds, every event of small spaces", cases=TINY, push=1,
                 mutant={"push": 5})  # fmt: skip
    def stronger(p, n, t, push):
        r = (t + push) ** 2 / n
        marton = math.exp(-(max(math.sqrt(2 * r) - math.sqrt(math.log(2)), 0) ** 2))
        return farthest(p, n, t), min(0.5 / (1 + r / 2), marton) + ROUNDING

    @proof.sweep("one of the two bounds is enough, by r = s^2/n",
        r=[i / 50 for i in range(1, 5000)],
                 method=Method.NUMERIC, second=True, mutant={"second": False})  # fmt: skip
    def enough(r, second):
        root = max(math.sqrt(2 * r) - math.sqrt(math.log(2)), 0)
        return min(0.5 / (1 + r / 2), math.exp(-(root**2)) if second else 1), 0.5 * math.exp(-r / 4)

    ledger.edge("t >= 1 in Theorem 15").sweep(
        "one fair bit, E = {0}", t=[0.5, 0.99], lhs="Pr[not in E_(<= t)]",
        rhs="0.5 e^(-t^2/(4 n))",
    )(one_bit)  # fmt: skip


def one_bit(t):
    """Use the fact that the distance to the other bit is 1."""
    return 0.5 * (t < 1), 0.5 * math.exp(-t * t / 4)


@statement("few.thm13-markov")
def markov(ledger):
    """Let delta'' be the bound O(n delta) of Lemma 14 on E_(x, x' ~ D^n)[d_epsilon''(A(x) ||
    A(x'))], and let E be the set of (x, x') such that A(x) ~_(epsilon'', 4 delta'') A(x'). By
    Markov's inequality Pr[d_epsilon''(A(x) || A(x')) <= 4 delta''] >= 3/4 and Pr[d_epsilon''(A(x')
    || A(x)) <= 4 delta''] >= 3/4, and hence Pr_(x, x' ~ D^n)[(x, x') in E] >= 1/2.

    The bound 1/2 is attained in the limit. Consider an algorithm A that outputs "one" with a tiny
    probability on an item of probability p, and never on other items. Let p be close to 1/2, but
    not equal to 1/2. Each of the two inequalities fails on a share p (1 - p) of the pairs. A
    symmetric divergence would give the bound 3/4. If 3 replaced 4, the bound would be only 1/3.
    """

    @ledger.falsify("Pr[A = one] by the kind of the item", law=Array(WEIGHT, (4,)), times=4.0,
                    rates=Array(SHARE, (4,)), epsilon=Interval(1e-3, 1.0), mutant={"times": 2.5},
                    extremal=[
                        {"law": np.array([0.499, 0.501, 0, 0]), "epsilon": 0.5,
                         "rates": np.array([0.0, 1.0, 0.0, 0.0])},
                        {"law": np.ones(4), "epsilon": 1e-3, "rates": np.array([0, 1e-4, 0.1, 1])},
                    ])  # fmt: skip
    def closeness(law, rates, epsilon, times):
        law, rates = law / law.sum(), 1e-3 * rates
        d = sticks(rates[:, None], rates[None], epsilon)
        close = np.maximum(d, d.T) <= times * (law @ d @ law) * (1 + 1e-9)
        return 0.5, law @ close @ law + 1e-9
