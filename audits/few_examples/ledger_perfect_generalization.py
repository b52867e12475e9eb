"""Few examples per user: perfect generalization, Appendix C.1."""

from __future__ import annotations

import math

import numpy as np

from audits.few_examples.private_tests import (
    DELTA,
    HALF,
    ROUNDING,
    SHARE,
    SUMS,
    WEIGHT,
    least,
    not_close,
    steepest_test,
    sticks,
    sums,
)  # fmt: skip
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array


@statement("few.def29")
def perfect_generalization(ledger):
    """For beta, epsilon, delta > 0 an algorithm A: Z^n -> O is said to be (beta, epsilon,
    delta)-perfectly generalizing iff, for any distribution D over Z, there exists a distribution
    SIM_D such that Pr_(x ~ D^n)[A(x) ~_(epsilon, delta) SIM_D] >= 1 - beta.

    The simulator SIM_D is arbitrary, so SIM_D is not always the distribution of A(x). The indicator
    of x = (0, 1) is (1/4, 0, 0)-perfectly generalizing with SIM = 0. But at p = 1/2, the
    distribution of the indicator is 1/4 away from both outputs, in one direction or the other. A
    fixed A(x') is also a possible SIM_D. For a sample perfectly generalizing algorithm, the best x'
    is at least as good as a random x'. So the algorithm is perfectly generalizing with the same
    beta, epsilon and delta (see Lemma 30).
    """

    @ledger.sweep("the indicator of (0, 1): SIM = 0 is close with probability 3/4",
                  p=[i / 100 for i in range(1, 100)], own=False, mutant={"own": True})  # fmt: skip
    def indicator(p, own):
        """Return the mass of inputs that are far from SIM, and the bound 1/4.

        The parameters are delta = 0.1 and epsilon = 0.1.
        """
        one = p * (1 - p)
        sim = one if own else 0.0
        far = [max(sticks(o, sim, 0.1), sticks(sim, o, 0.1)) > 0.1 for o in (0.0, 1.0)]
        return (1 - one) * far[0] + one * far[1], 0.25

    @ledger.falsify("tests of sums: group privacy bounds the distance from A(x') for any x'",
                    n=Integer(1, 40), epsilon=Interval(1e-3, 0.5), delta=DELTA, at=SHARE, k=SHARE,
                    value=SHARE, reach=1, mutant={"reach": 0},
                    extremal=[{"n": 9, "epsilon": 0.1, "delta": 0.01, "at": 0.0, "k": 0.0,
                               "value": 0.0}])  # fmt: skip
    def simulated(n, epsilon, delta, at, k, value, reach):
        f = steepest_test(n, epsilon, delta, round(at * n), value)
        sim = f[round(k * n)]
        far = np.maximum(sticks(f, sim, n * epsilon), sticks(sim, f, n * epsilon)).max()
        return far, delta * math.expm1((n - 1 + reach) * epsilon) / math.expm1(epsilon) + ROUNDING


@statement("few.lemma30.1", expected="refuted")
def to_sample_perfect(ledger):
    """Any (beta, epsilon, delta)-perfectly generalizing algorithm is also (beta, 2 epsilon, 3
    delta)-sample perfectly generalizing.

    The two printed constants fail. Two inputs have to be close to SIM, so beta becomes 1 - (1 -
    beta)^2 <= 2 beta. For n = 2, consider the indicator of x = (0, 1). This algorithm is (1/4,
    epsilon, delta)-perfectly generalizing for all epsilon, delta > 0. The reason is that Pr[x = (0,
    1)] <= p (1 - p) for every D. The simulator is SIM = 0. But at p = 1/2, two outputs agree only
    with probability 5/8 < 3/4. The counterexample does not need the order. For example, "exactly
    one 1 among three bits" has beta = 4/9, and outputs agree with probability 0.506 < 5/9.

    The value delta becomes (1 + e^epsilon) delta, which is above 3 delta if epsilon > ln 2. With
    Lemma 5 as printed, delta becomes 2 e^epsilon delta. Take an algorithm A whose Pr[1] is either 0
    or (1 + e^epsilon) delta. Both distributions are (epsilon, delta)-close to SIM with Pr[1] =
    delta, so every beta > 0 is possible. But half of all pairs are not (2 epsilon, 3 delta)-close.
    An algorithm on many symbols attains both constants of the repair. If x_1 > x_2, this algorithm
    outputs both x_1 and x_2.
    """

    @ledger.falsify("beta: the indicator of (0, 1)", p=SHARE, beta=0.25, extremal=[{"p": 0.5}],
                    lhs="Pr[A(x), A(x') not close]", rhs="beta", end_to_end=True)  # fmt: skip
    def ordered(p, beta):
        law = np.array([(1 - p) ** 2, (1 - p) * p, p * (1 - p), p * p])  # of 00, 01, 10, 11
        output = np.array([0, 1, 0, 0])
        if law @ (output != 0) > beta + 1e-12:  # SIM = 0, for every epsilon, delta > 0
            return None
        return law @ (output[:, None] != output[None]) @ law, beta

    @ledger.falsify("beta: exactly one 1 among three bits", p=SHARE, beta=4 / 9, end_to_end=True,
                    lhs="Pr[A(x), A(x') not close]", rhs="beta",
                    extremal=[{"p": 1 / 3}])  # fmt: skip
    def symmetric(p, beta):
        one = 3 * p * (1 - p) ** 2  # at most 4/9, for every D: SIM = 0
        return 2 * one * (1 - one), beta

    @ledger.falsify("delta: Pr[1] = 0 or (1 + e^epsilon) delta, n = 1", delta=DELTA,
                    epsilon=Interval(0.7, 2.0), extremal=[{"epsilon": 1.0, "delta": 0.01}],
                    lhs="d_(2 epsilon)(A(1) || A(0))", rhs="3 delta", end_to_end=True)  # fmt: skip
    def bits(epsilon, delta):
        p, e = {0: 0.0, "SIM": delta, 1: (1 + math.exp(epsilon)) * delta}, math.exp(epsilon)
        for i, j in ((0, "SIM"), ("SIM", 0), (1, "SIM"), ("SIM", 1)):
            if max(p[i] - e * p[j], 0) + max(1 - p[i] - e * (1 - p[j]), 0) > delta * (1 + 1e-9):
                return None  # not perfectly generalizing, for any beta
        return max(p[1] - e**2 * p[0], 0) + max(1 - p[1] - e**2 * (1 - p[0]), 0), 3 * delta

    repair = ledger.repair(
        "Any (beta, epsilon, delta)-perfectly generalizing algorithm is also (1 - (1 - beta)^2, "
        "2 epsilon, (1 + e^epsilon) delta)-sample perfectly generalizing; for epsilon <= ln 2, "
        "(2 beta, 2 epsilon, 3 delta)."
    )

    @repair.falsify("any laws, any SIM", law=Array(WEIGHT, (4,)), laws=Array(WEIGHT, (4, 3)),
                    sim=Array(WEIGHT, (3,)), epsilon=Interval(0.0, 2.0), delta=Interval(1e-3, 0.3),
                    near=Array(SHARE, (4,)), factor=1.0, mutant={"factor": 0.4}, extremal=[
                        {"law": np.array([0.5, 0.5, 0, 0]), "sim": np.array([0.9, 0.1, 0]),
                         "laws": np.array([[1.0, 0, 0], [0.63, 0.37, 0], [1, 0, 0], [1, 0, 0]]),
                         "epsilon": 1.0, "delta": 0.1001, "near": np.zeros(4)},
                    ])  # fmt: skip
    def any_laws(law, laws, sim, epsilon, delta, near, factor):
        """Move some distributions towards SIM.

        The value beta is the least beta for this D and this SIM.
        """
        law, sim = law / law.sum(), sim / sim.sum()
        laws = laws / laws.sum(axis=1, keepdims=True)
        laws = near[:, None] * sim + (1 - near[:, None]) * laws
        e = math.exp(epsilon)
        d = [np.maximum(a - e * b, 0).sum(axis=1) for a, b in ((laws, sim), (sim, laws))]
        beta = law @ (np.maximum(*d) > delta)
        far = not_close(law, laws, 2 * epsilon, factor * (1 + e) * delta + ROUNDING)
        return far, 1 - (1 - beta) ** 2 + 1e-9

    @repair.falsify("beta: x_1 > x_2 among symbols, then output both", symbols=Integer(2, 10**6),
                    extremal=[{"symbols": 10**6}], both=2, mutant={"both": 1})  # fmt: skip
    def uniform(symbols, both):
        beta = (1 - 1 / symbols) / 2  # at most 1/2 for every D
        pairs = symbols * (symbols - 1) / 2
        return 1 - (1 - beta) ** 2 - pairs / symbols**4, 1 - (1 - beta) ** both

    ledger.consequence(
        "Nothing depends on the first sentence of Lemma 30. Theorem 31 uses the second sentence "
        "of Lemma 30. A reader who infers sample perfect generalization from this claim has "
        "twice the failure probability.",
        harm="a constant",
    )


@statement("few.lemma30.2")
def to_perfect(ledger):
    """Any (beta, epsilon, delta)-sample perfectly generalizing algorithm is also (sqrt(beta),
    epsilon, delta + sqrt(beta))-perfectly generalizing; furthermore, this holds even when we set
    SIM_D to be the distribution of A(x) where x ~ D^n.

    The claim follows by Markov's inequality and convexity. The bound is nearly attained only for
    beta close to 1. Suppose that all outputs are different on a set whose probability q tends to 1.
    In this case, the probability q is attained, and sqrt(2 q - q^2) is allowed. For small beta, the
    largest value found is a quarter of sqrt(beta). The first half of the claim is true without any
    loss. Pr_x[A(x) close to A(x*)] >= 1 - beta for some x*, so SIM_D = A(x*) makes the algorithm
    (beta, epsilon, delta)-perfectly generalizing. The loss sqrt(beta) is needed only if SIM_D is
    the distribution of A(x). The paper prints "x ~ D^m" instead of "x ~ D^n", although A takes n
    items.
    """
    ledger.misprint("D^m", "D^n")
    domain = {"law": Array(WEIGHT, (6,)), "laws": Array(WEIGHT, (6, 4)), "sharp": Integer(1, 9),
              "epsilon": Interval(0.0, 1.0), "delta": Interval(1e-6, 0.6)}  # fmt: skip
    apart = {"law": np.array([0.19] * 5 + [0.05]), "sharp": 1, "epsilon": 0.0, "delta": 1e-6}
    rare = {"law": np.array([0.01, 0.1, 0.89, 0, 0, 0]), "sharp": 1, "epsilon": 0.0, "delta": 0.5}
    ends = np.array([[2.0, 0, 0, 0], [0, 2, 0, 0]] + [[1, 1, 0, 0]] * 4)

    @ledger.falsify("SIM = the distribution of A(x)", power=0.5, mutant={"power": 2.5}, extremal=[
                        {**apart, "laws": np.eye(6)[:, :4] + 1e-9},
                        {**rare, "laws": ends},
                    ], **domain)  # fmt: skip
    def own_law(law, laws, sharp, epsilon, delta, power):
        law, laws = sharpened(law, laws, sharp)
        e, beta = math.exp(epsilon), not_close(law, laws, epsilon, delta)
        sim = law @ laws
        d = [np.maximum(a - e * b, 0).sum(axis=1) for a, b in ((laws, sim), (sim, laws))]
        slack = beta**power
        return law @ (np.maximum(*d) > delta + slack + ROUNDING), slack + 1e-9

    @ledger.sweep("outputs are all different on a set of probability q, and the same elsewhere",
                  q=[i / 100 for i in range(1, 100)], power=0.5, mutant={"power": 2.0})  # fmt: skip
    def scattered(q, power):
        """Use n = 1, delta -> 0, infinitely many items and beta = 1 - (1 - q)^2."""
        beta = 1 - (1 - q) ** 2
        slack = beta**power
        return q * (slack < 1) + (1 - q) * (q > slack), slack

    @ledger.sharper("beta for sqrt(beta), and delta alone, with SIM = A(x*)").falsify(
        "the best x*", best=True, mutant={"best": False}, **domain
    )  # fmt: skip
    def fixed(law, laws, sharp, epsilon, delta, best):
        law, laws = sharpened(law, laws, sharp)
        d = np.maximum(laws[:, None] - math.exp(epsilon) * laws[None], 0).sum(axis=-1)
        far = law @ (np.maximum(d, d.T) > delta)
        return far.min() if best else far.max(), not_close(law, laws, epsilon, delta) + 1e-9


def sharpened(law, laws, sharp):
    """Return rows of probabilities.

    High powers bring the rows close to corners.
    """
    laws = laws**sharp
    return law / law.sum(), laws / laws.sum(axis=1, keepdims=True)


@statement("few.thm31")
def private_perfectly_generalizes(ledger):
    """Suppose that A is an (epsilon, delta)-item-level DP algorithm. Further, assume that epsilon,
    delta, beta and epsilon sqrt(n log(1/(beta delta))) are sufficiently small. Then A is (beta,
    epsilon', delta')-perfectly generalizing, where epsilon' <= O(epsilon sqrt(n log(1/(beta
    delta)))) and delta' = O(n delta). Furthermore, this holds even when we set SIM_D to be the
    distribution of A(x) where x ~ D^n.

    No counterexample was found with 2 eps sqrt(n log(1/(beta delta))) and 2 n delta, for the
    distribution of A(x) as SIM_D. This SIM_D costs delta' + sqrt(beta) in Lemma 30. Substituting
    min(beta, n delta)^2 gives O(n delta), but substituting the beta of the theorem does not. With
    this value, 2 log(1/beta) + 3 log(1/delta) under the root is at most 3 times the original. For
    some SIM_D, the theorem follows from Theorem 13 without any loss (see Lemma 30).
    """

    @ledger.falsify("tests of sums: the least eps' over eps sqrt(n log(1/(beta delta)))", c=2.0,
                    factor=2.0, mutant={"c": 0.15}, beta=Interval(1e-9, 0.1, log=True),
                    extremal=[{"n": 60, "delta": d, "beta": b, "small": 0.5, **HALF}
                              for d, b in ((1e-6, 1e-6), (1e-9, 1e-2))],
                    lhs="least constant", rhs="the constant 2",
                    end_to_end=True, **SUMS)  # fmt: skip
    def tests(n, p, signs, delta, small, at, value, beta, c, factor):
        law = sums(n, p, signs)
        root = math.sqrt(n * math.log(1 / (beta * delta)))
        f = steepest_test(n, small / root, delta, round(at * n), value)
        sim = law @ f

        def holds(larger):
            d = np.maximum(sticks(f, sim, larger), sticks(sim, f, larger))
            return law @ (d > factor * n * delta) <= beta

        return least(holds, 4 * small) / small, c

    step = ledger.step("Lemma 30 applied to Theorem 13, with min(beta, n delta)^2 for beta")

    @step.falsify("the logarithm grows at most threefold", n=Integer(1, 10**4), delta=DELTA,
                  beta=Interval(1e-100, 0.5, log=True), most=3.0, mutant={"most": 2.5},
                  extremal=[{"n": 1, "delta": 1e-9, "beta": 0.5}])  # fmt: skip
    def plugged(n, beta, delta, most):
        smaller = min(beta, n * delta) ** 2
        return math.log(1 / (smaller * delta)), most * math.log(1 / (beta * delta))

    @step.falsify("beta and delta' are the required ones", n=Integer(1, 10**4), delta=DELTA,
                  beta=Interval(1e-9, 0.5, log=True), right=True, mutant={"right": False},
                  extremal=[{"n": 1, "delta": 1e-9, "beta": 0.5}])  # fmt: skip
    def allowed(n, beta, delta, right):
        """Use 2 n delta for O(n delta), where Theorem 13 contributes half.

        The mutant substitutes beta.
        """
        root = min(beta, n * delta) if right else math.sqrt(beta)
        return max(root / beta, (n * delta + root) / (2 * n * delta)), 1.0 + ROUNDING


@statement("few.thm13.remark")
def by_markov(ledger):
    """While Lemma 14 bounds the expectation of the hockey stick divergence, it is insufficient to
    get an arbitrarily high probability bound (i.e., for any beta as in Theorem 13); for example,
    using Markov's inequality would only be able to handle beta > delta'.

    If the mean is at most delta', Markov's inequality gives Pr[d > delta'/beta] <= beta. So two
    outputs are at most delta'/beta apart, except with probability beta. For beta <= delta', this
    bound is at least 1 and gives no information. The mean implies no stronger bound. Suppose that d
    = 1 with probability delta', and d = 0 otherwise. In this case, the mean is delta', and Pr[d >
    t] = delta' for every t < 1. Strictly speaking, the delta'' of Theorem 13 would have to be
    delta'/beta. For the same delta' up to a constant, Markov's inequality covers only constant
    beta. So the printed condition is generous.
    """
    domain = {"weights": Array(WEIGHT, (5,)), "d": Array(SHARE, (5,))}

    @ledger.falsify("Pr[d > mean/beta] <= beta", beta=Interval(1e-3, 1.0), part=1.0,
                    mutant={"part": 0.5}, extremal=[
                        {"weights": np.array([0.1, 0.9, 1e-6, 1e-6, 1e-6]), "beta": 0.11,
                         "d": np.array([1.0, 0, 0, 0, 0])}], **domain)  # fmt: skip
    def markov(weights, d, beta, part):
        law = weights / weights.sum()
        return law[d > law @ d / beta * (1 + ROUNDING)].sum(), part * beta

    @ledger.identity("a divergence with mean delta' and Pr[d > t] = delta' for all t < 1",
                     bound=[0.5, 1e-3, 1e-9], t=[0.0, 0.5, 0.999], top=1.0,
                     mutant={"top": 0.4})  # fmt: skip
    def attained(bound, t, top):
        d, law = np.array([top, 0.0]), np.array([bound, 1 - bound])
        return [d @ law, law[d > t].sum()], [bound, bound]
