"""Few examples per user: the robust McDiarmid inequality, Lemma 32 of Appendix C.3.1."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from algorithms.few_examples.couplings import adjusted_function
from audits.few_examples.bounded_ratios import (
    DELTA,
    EPSILON,
    ROUNDING,
    SHARE,
    VALUE,
    WEIGHT,
    excess,
    worst,
)
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array


def prefix_means(f, p):
    """Return the means of f given each prefix, from the empty prefix to whole inputs.

    The array f has an axis for each item.
    """
    means = [f]
    while means[0].ndim:
        means.insert(0, means[0] @ p)
    return means


def mean_of(f, p):
    return prefix_means(f, p)[0].item()


def violations(f, p, epsilon):
    """Return sum_i E[f(x) - e^eps f(x~^(i))]_+."""
    total = 0.0
    for i in range(f.ndim):
        rows = np.moveaxis(f, i, -1)
        gaps = np.maximum(rows[..., :, None] - math.exp(epsilon) * rows[..., None, :], 0)
        total += mean_of(gaps @ p @ p, p) if f.ndim > 1 else p @ gaps @ p
    return total


def robust(f, p, larger):
    """Return E[f(x) - e^larger f(x')]_+ for independent x and x'."""
    law = np.ones(1)
    for _ in range(f.ndim):
        law = np.outer(law, p).ravel()
    f = f.ravel()
    return law @ np.maximum(f[:, None] - math.exp(larger) * f[None], 0) @ law


BITS = {"f": Array(Interval(1e-6, 1.0, log=True), (2, 2, 2, 2)), "p": Interval(0.01, 0.99),
        "epsilon": Interval(1e-3, 1.0, log=True), "n": Integer(1, 4)}  # fmt: skip


def first(f, n):
    """Return f as a function of n items."""
    return f[(...,) + (0,) * (4 - n)]


def dictator(n, rest=0.0):
    """Return a function that is 1 if the first item is 0, and `rest` otherwise."""
    f = np.full((2, 2, 2, 2), rest)
    f[0] = 1.0
    return {"f": f, "n": n}


@statement("few.eq5")
def adjustment(ledger):
    """For the function g that is constructed from f by Lemma 33 and rho = 2 (1 + e^(-epsilon)),
    E_(x ~ D^n)[abs(g(x) - f(x))] <= rho sum_(i = 1..n) E_(x, x~ ~ D^n)[f(x) - e^epsilon
    f(x~^(i))]_+.

    The construction was executed, and g was built from functions of up to four bits, in the order
    of the items. By Lemma 33 with 2 instead of 2 (1 + e^(-epsilon)), rho can be 2. The value 2 is
    attained for n = 1 and a function that is 1 with a small probability and 0 otherwise. The loop
    "for i = 1, ..., n - 1" must end at n. If the loop ends at n - 1, g is not defined on whole
    inputs.
    """
    rare = [{**dictator(n), "p": q, "epsilon": 0.3} for n, q in ((1, 0.01), (3, 0.99), (4, 0.5))]

    @ledger.falsify("functions of up to four bits", best=False, mutant={"best": 0.3},
                    extremal=rare, end_to_end=True, **BITS)  # fmt: skip
    @ledger.sharper("rho = 2").falsify("functions of up to four bits", best=2.0, extremal=rare,
                                       mutant={"best": 1.9}, **BITS)  # fmt: skip
    def adjusted_by(f, p, epsilon, n, best):
        f, p = first(f, n), np.array([p, 1 - p])
        rho = best or 2 * (1 + math.exp(-epsilon))
        moves = mean_of(np.abs(adjusted_function(f, p, epsilon=epsilon) - f), p)
        return moves, rho * violations(f, p, epsilon) * (1 + ROUNDING) + 1e-12

    @ledger.falsify("functions of two items of three kinds", weights=Array(WEIGHT, (3,)),
                    f=Array(SHARE, (3, 3)), epsilon=EPSILON, part=1.0, mutant={"part": 0.3},
                    end_to_end=True)  # fmt: skip
    def three_kinds(weights, f, epsilon, part):
        p = weights / weights.sum()
        rho = part * 2 * (1 + math.exp(-epsilon))
        moves = mean_of(np.abs(adjusted_function(f, p, epsilon=epsilon) - f), p)
        return moves, rho * violations(f, p, epsilon) * (1 + ROUNDING) + 1e-12

    ledger.misprint("the loop over i = 1, ..., n - 1", "i = 1, ..., n").sweep(
        "n = 1, f = 1 or e^epsilon, and g the mean: the loop ends before the last item", p=0.5,
        epsilon=0.1, lhs="E abs(g - f)", rhs="rho times the violation",
    )(unfinished)  # fmt: skip

    @ledger.step("convexity: prefix means violate less than f").falsify(
        "functions of up to four bits", part=1.0, mutant={"part": 0.5},
        extremal=[{**dictator(4), "p": 0.5, "epsilon": 0.3}], **BITS,
    )  # fmt: skip
    def convexity(f, p, epsilon, n, part):
        f, p = first(f, n), np.array([p, 1 - p])
        total = 0.0
        for i, mean in enumerate(prefix_means(f, p)[1:], start=1):
            rows = mean.reshape(-1, 2)
            gaps = np.array([excess(p, z, epsilon) for z in rows]).reshape((2,) * (i - 1))
            total += mean_of(gaps, p)
        return total, part * violations(f, p, epsilon) + 1e-12


def unfinished(p, epsilon):
    """Use rho = 4, which is more than enough."""
    one, e = 1.0, math.exp(epsilon)
    mean = p * one + (1 - p) * e
    return p * (mean - one) + (1 - p) * (e - mean), 4 * p * (1 - p) * max(e - e * one, 0)


@statement("few.eq6")
def adjusted_concentrates(ledger):
    """For the function g that is constructed from f by Lemma 33, E_(x ~ D^n)[[g(x) - e^(epsilon'/2)
    mu]_+ + [mu - e^(epsilon'/2) g(x)]_+] <= O(mu delta) for epsilon' = O(epsilon sqrt(n
    log(1/delta))).

    No counterexample was found with eps' = 4 sqrt(2) eps sqrt(n log(1/delta)) and mu delta, for eps
    sqrt(n log(1/delta)) <= 1/2. This bound is Lemma 35 with 2 epsilon, which is exact for all
    martingales. The proof has the constants 40 and 2 mu delta. The values Y_i = g(x_1, ..., x_i)
    form the martingale. The check confirms that the constructed g never exceed the worst case of
    Lemma 35.
    """

    @ledger.falsify("the worst of all martingales with ratios e^(2 eps)", n=Integer(1, 2000),
                    small=Interval(1e-3, 0.5, log=True), delta=DELTA, mutant={"c": 4.0},
                    c=4 * math.sqrt(2),
                    extremal=[{"n": 2000, "small": 0.5, "delta": d} for d in (0.01, 1e-12)],
                    end_to_end=True)  # fmt: skip
    def concentrated(n, small, delta, c):
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        return worst(n, 2 * epsilon, c * small / 2), delta

    tilted = np.einsum("i,j,k,l->ijkl", *[np.array([1.0, math.exp(0.5)])] * 4)

    @ledger.falsify("g of functions of up to four bits", larger=Interval(0.0, 2.0), width=2.0,
                    mutant={"width": 0.5}, end_to_end=True, extremal=[
                        {"f": tilted, "n": n, "p": 0.5, "epsilon": 0.25, "larger": 0.1}
                        for n in (1, 4)
                    ], **BITS)  # fmt: skip
    def built(f, p, epsilon, n, larger, width):
        f, p = first(f, n), np.array([p, 1 - p])
        g, mean, e = adjusted_function(f, p, epsilon=epsilon), mean_of(f, p), math.exp(larger)
        found = mean_of(np.maximum(g - e * mean, 0) + np.maximum(mean - e * g, 0), p)
        return found / mean, worst(n, width * epsilon, larger) + 1e-9


@statement("few.lemma32", expected="holds_proof_broken")
def robust_mcdiarmid(ledger):
    """Let f: Z^n -> R_(>= 0) be any function and D any distribution on Z. Assume that epsilon,
    delta > 0 and epsilon sqrt(n log(1/delta)) > 0 are sufficiently small. Then, for epsilon' =
    O(epsilon sqrt(n log(1/delta))), E_(x, x' ~ D^n)[f(x) - e^epsilon' f(x')]_+ <= O(mu_(D^n)(f)
    delta) + O(sum_(i = 1..n) E_(x, x~ ~ D^n)[f(x) - e^epsilon f(x~^(i))]_+), where x~^(i) is x with
    x_i replaced by x~_i.

    No counterexample was found with eps' = 2 eps sqrt(n log(1/delta)), mu delta and 2 for the
    constants of O, including n = 1. After its slips are repaired, the proof gives the constants 40,
    2 e^(eps'/2) and (1 + e^-eps)(1 + e^eps'). The sharper forms of Lemmas 33 and 35 give 4 sqrt(2),
    e^(eps'/2) and 1 + e^eps'. An f that depends on one item shows that the last constant must be at
    least 1.

    The last display of the proof drops e^eps' from E[e^eps' (g(x') - f(x'))]_+. As printed, the
    last display is false for arbitrarily small eps'. Let f be a walk in prefixes. The walk may fall
    to e^(-eps'/2) mu, where the walk is stopped. The walk can fall to this value if n is at least
    400 log(1/delta). After the walk, the last item makes f 0 with a small probability.
    """
    ledger.misprint("x~_n ~ D^n", "x~_n ~ D")
    domain = {**BITS, "epsilon": Interval(1e-3, 0.2, log=True),
              "delta": Interval(1e-9, 0.1, log=True)}  # fmt: skip
    looks = [{**dictator(n), "p": 0.5, "epsilon": 0.01, "delta": 1e-9} for n in (1, 4)]

    @ledger.falsify("functions of up to four bits, in any order", c=2.0, factor=2.0,
                    mutant={"factor": 0.9}, extremal=looks, end_to_end=True, **domain)  # fmt: skip
    def few_bits(f, p, epsilon, n, delta, c, factor):
        larger = c * epsilon * math.sqrt(n * math.log(1 / delta))
        if larger > 1:
            return None
        f, p = first(f, n), np.array([p, 1 - p])
        return robust(f, p, larger), mean_of(f, p) * delta + factor * violations(f, p, epsilon)

    @ledger.falsify("functions of a sum of up to 60 bits, with jumps", n=Integer(1, 60), p=SHARE,
                    small=Interval(1e-3, 0.5, log=True), delta=DELTA, slopes=Array(SHARE, (60,)),
                    jump=Integer(0, 60), size=Interval(0.0, 3.0), c=2.0, factor=2.0,
                    mutant={"c": 0.3}, end_to_end=True, extremal=[
                        {"n": 60, "p": 0.5, "small": s, "delta": 1e-9, "slopes": np.ones(60),
                         "jump": 60, "size": 0.0} for s in (0.5, 0.05)
                    ])  # fmt: skip
    def of_a_sum(n, p, small, delta, slopes, jump, size, c, factor):
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        k = np.arange(n + 1)
        steps = epsilon * (2 * slopes[:n] - 1) + size * (np.arange(n) == jump)
        f = np.exp(np.r_[0, np.cumsum(steps)])
        law, e = binom.pmf(k, n, p), math.exp(epsilon)
        up = np.maximum(f[:-1] - e * f[1:], 0) @ (law[:-1] * (n - k[:-1])) * p
        down = np.maximum(f[1:] - e * f[:-1], 0) @ (law[1:] * k[1:]) * (1 - p)
        found = law @ np.maximum(f[:, None] - math.exp(c * small) * f[None], 0) @ law
        return found, law @ f * delta + factor * (up + down)

    step = ledger.step(
        "the last display: E[g(x') - f(x')]_+, while the line above has e^eps' times this term",
        fix="keep e^eps' before the last term: at most a constant, since eps' is small",
    )

    @step.sweep("a stopped walk, and a last item that may make f = 0", n=1000, delta=0.1,
                small=0.0125, w=1e-3, q=1e-6, lhs="E[f(x) - e^eps' f(x')]_+/r",
                rhs="the printed second line, over r")  # fmt: skip
    def dropped(n, delta, small, w, q):
        eps, half = small / math.sqrt(n * math.log(1 / delta)), 20 * small  # eps' = 40 small
        steps, h = math.ceil(half / eps), math.exp(-half)  # fewer than n steps, from 1 to h
        down = h ** (1 / steps)  # at least e^-eps; the walk goes down with 1/2 each, else it stops
        f = np.r_[down ** np.arange(steps) * (2 - down), h, 0, h * (1 + w / q)]
        g = np.r_[f[:-2], h * (1 - q / w * math.expm1(eps)), h * math.exp(eps)]  # by Lemma 33
        law = np.r_[0.5 ** np.arange(1, steps + 1), 0.5**steps * np.array([1 - w - q, w, q])]
        gaps = np.maximum(f[:, None] - math.exp(2 * half) * f, 0)
        printed = np.abs(f - g) + np.maximum(g - 1 / h, 0) + np.maximum(1 - g / h, 0) / h
        return law @ gaps @ law * 2.0**steps, law @ printed * 2.0**steps

    @ledger.sharper("the last display with e^eps' before its last term").falsify(
        "any f and g on four points", law=Array(WEIGHT, (4,)), f=Array(VALUE, (4,)), kept=1.0,
        g=Array(VALUE, (4,)), half=Interval(0.0, 1.0), mutant={"kept": 0.0}, extremal=[
            {"law": np.array([0.998999, 1e-3, 1e-6, 0]), "f": np.array([1.0, 0, 369, 0]),
             "g": np.array([1.0, math.exp(-1), 1, 0]), "half": 1.0},
        ],
    )  # fmt: skip
    def display(law, f, g, half, kept):
        law, e = law / law.sum(), math.exp(half)
        f, g = f / (law @ f), g / (law @ g)
        low, high = law @ np.maximum(g - f, 0), law @ np.maximum(f - g, 0)
        beyond = law @ np.maximum(g - e, 0) + e * (law @ np.maximum(1 - e * g, 0))
        gaps = law @ np.maximum(f[:, None] - e * e * f[None], 0) @ law
        return gaps, (high + beyond + e ** (2 * kept) * low) * (1 + ROUNDING) + 1e-12

    ledger.consequence(
        "None for the results, because O hides the lost factor, which is at most a constant.",
        harm="a constant",
    )


@statement("few.lemma32.remark")
def lipschitz(ledger):
    """When the second term in the right-hand side of Lemma 32, O(sum_(i = 1..n) E_(x, x~ ~
    D^n)[f(x) - e^epsilon f(x~^(i))]_+), is zero, the lemma is (essentially) the same as McDiarmid's
    inequality for multiplicative-Lipschitz functions.

    The second term is 0 if and only if f(x) <= e^epsilon f(x~^(i)) on the whole support. The
    condition says that ln f moves by at most epsilon with one item. McDiarmid's inequality for ln f
    says that ln f is farther than t from its mean with probability at most 2 exp(-2 t^2/(n
    epsilon^2)). Both inequalities were tested on the steepest function of up to 60 bits, and on
    other functions. For eps' = 2 epsilon sqrt(n log(1/delta)), the value f(x) exceeds e^eps' f(x')
    by at most mu delta on average. The function ln f satisfies McDiarmid's inequality. The tail of
    ln f implies the form of the lemma, with another constant. The lemma is about an excess, but
    McDiarmid's inequality is about a probability. The word "essentially" refers to this difference.
    """
    domain = {"n": Integer(1, 60), "p": SHARE, "slopes": Array(SHARE, (60,)),
              "small": Interval(1e-3, 0.5, log=True)}  # fmt: skip
    steep = {"n": 60, "p": 0.5, "slopes": np.ones(60), "small": 0.5}

    def multiplicative(n, slopes, epsilon):
        return np.exp(np.r_[0, np.cumsum(epsilon * (2 * slopes[:n] - 1))])

    @ledger.falsify("the lemma without its second term", delta=DELTA, c=2.0, mutant={"c": 0.5},
                    extremal=[{**steep, "delta": 1e-6}], **domain)  # fmt: skip
    def lemma(n, p, slopes, small, delta, c):
        epsilon = small / math.sqrt(n * math.log(1 / delta))
        f, law = multiplicative(n, slopes, epsilon), binom.pmf(np.arange(n + 1), n, p)
        return law @ np.maximum(f[:, None] - math.exp(c * small) * f, 0) @ law, law @ f * delta

    @ledger.falsify("McDiarmid's inequality for ln f", t=Interval(0.01, 5.0), c=2.0,
                    mutant={"c": 4.0}, extremal=[{**steep, "t": t} for t in (0.5, 1.0, 1.5, 2.0)],
                    **domain)  # fmt: skip
    def logarithm(n, p, slopes, small, t, c):
        """Use t in units of epsilon sqrt(n)."""
        epsilon = small / math.sqrt(n)
        values = np.log(multiplicative(n, slopes, epsilon))
        law = binom.pmf(np.arange(n + 1), n, p)
        far = np.abs(values - law @ values) > t * small + 1e-9
        return law[far].sum(), 2 * math.exp(-c * t * t) + 1e-12
