"""Few examples per user: agnostic learning and hypothesis selection, Appendices E.3.1 and E.3.2."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import expit

from algorithms.few_examples.hypotheses import scheffe_comparison, total_variation
from algorithms.few_examples.learning import agnostic_learner as our_agnostic_learner
from algorithms.few_examples.learning import agnostic_pmf
from algorithms.few_examples.packings import greedy_code, labelled_packing
from algorithms.few_examples.pairwise import (
    ErrorComparison,
    clipped_pairwise_pmf,
    pairwise_threshold,
    pairwise_users,
)
from algorithms.few_examples.representations import Representation, thresholds
from audits.few_examples.conventions import EPSILON, SHARE
from audits.few_examples.hard_instances import (
    best_success,
    clipped_sum,
    compatible,
    diameters,
    users_law,
)
from audits.few_examples.transcribed import agnostic_learner, labelled_mass, scheffe_psi
from audits.few_examples.transcribed import total_variation as total_variation_of
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-9
LAST = 0.999999
POINTS = np.array(list(itertools.product((0, 1), repeat=3)))
"""All hypotheses on three points."""

ALPHA = Interval(1e-6, 0.4, log=True)


@statement("few.eq14", expected="refuted")
def sign(ledger):
    """Let psi_(c, c')((x, y)) = 1[c(x) = y] - 1[c'(x) = y]. Then pscr^psi_(c, c')(D) = err_D(c) -
    err_D(c').

    The sign is wrong, because 1[c(x) = y] - 1[c'(x) = y] has the mean err_D(c') - err_D(c). The
    mechanism minimises scores. With psi as printed, the mechanism therefore selects a hypothesis
    with the most errors. Take a concept that is always correct and a concept that is always wrong.
    If epsilon = 1 and 40 users have one example each, the mechanism selects the wrong concept with
    probability 1 - e^-20. Privacy is not affected. If != replaces = in the display, the display
    becomes an identity. The implementation uses this repair.
    """

    @ledger.sweep("c always correct, c' always wrong", right=[1.0, 0.8], end_to_end=True,
                  lhs="err_D(c') - err_D(c)", rhs="-pscr, as printed")  # fmt: skip
    def printed(right):
        agrees = {
            "c": 1,
            "other": 0,
        }  # agreement with y if c is correct; otherwise, the two values are swapped
        psi = [agrees["c"] - agrees["other"], agrees["other"] - agrees["c"]]
        return right - (1 - right), -(right * psi[0] + (1 - right) * psi[1])

    @ledger.sweep("expected error of the selected hypothesis, against the error of the best",
        n=[40, 10],
                  epsilon=1.0, lhs="expected error as printed", rhs="error of the best + 1/4",
                  end_to_end=True)  # fmt: skip
    def selected(n, epsilon):
        errors = np.array([0.0, 1.0])  # errors on each example, for n users of one example, tau = 1
        psi = (1 - errors)[:, None] - (1 - errors)[None]
        scores = n * np.array([psi[0, 1], psi[1, 0]])
        weights = np.exp(-epsilon * (scores - scores.min()) / 4)
        return errors @ weights / weights.sum(), 0.25

    repair = ledger.repair("psi_(c, c')((x, y)) = 1[c(x) != y] - 1[c'(x) != y]")

    @repair.falsify("all pairs of hypotheses on three points", weights=Array(SHARE, (3, 2)),
                    one=Integer(0, 7), other=Integer(0, 7), wrong=1, mutant={"wrong": 0},
                    end_to_end=True, extremal=[{"weights": np.ones((3, 2)) * [1, 0], "one": 0,
                                                "other": 7}])  # fmt: skip
    def mended(weights, one, other, wrong):
        """Return one plus the distance between both sides, and the allowed value."""
        if weights.sum() == 0:
            return None
        D = weights / weights.sum()
        bad = POINTS[[one, other]][:, :, None] != np.arange(2)  # [c, x, y]
        psi = (bad[0] * 1.0 - bad[1]) if wrong else ((~bad[0]) * 1.0 - ~bad[1])
        errors = (bad * D).sum(axis=(1, 2))
        return 1 + abs((D * psi).sum() - (errors[0] - errors[1])), 1.0 + ROUNDING

    @repair.falsify("the implementation uses this psi",
        item=Integer(0, 5), one=Integer(0, 7), other=Integer(0, 7),
                    sign=1.0, mutant={"sign": -1.0})  # fmt: skip
    def ours(item, one, other, sign):
        x, y = divmod(item, 2)
        comparison = ErrorComparison(POINTS[[one, other]])
        found = comparison.of_users(comparison.users_of([[[x, y]]]))[0, 0, 1]
        c, d = POINTS[one][x], POINTS[other][x]
        return 1 + abs(sign * found - (float(c != y) - float(d != y))), 1.0

    ledger.consequence(
        "As printed, the agnostic learner of Theorem 40 outputs a hypothesis with the most errors.",
        harm="accuracy",
    )


def agnostic_failure(n, m, alpha, tau, candidates, epsilon):
    """Return the exact failure probability with one best hypothesis and many worse hypotheses.

    The error of every worse hypothesis exceeds the error of the best hypothesis by slightly more
    than alpha. All worse hypotheses err on the same examples. The comparisons psi have opposite
    signs. So the score of every worse hypothesis is the negative of the score of the best
    hypothesis.
    """
    law, values = clipped_sum(n, m, alpha, tau)
    return law @ expit(-2 * epsilon * values / (4 * min(tau, m)) + math.log(candidates - 1))


@statement("few.thm40.upper", expected="holds_proof_broken")
def agnostic(ledger):
    """Let C be any concept class with probabilistic representation dimension d (PRDim(C) = d).
    Then, for any sufficiently small alpha, epsilon > 0 and for all m in N, n_m^(agn(C;
    alpha))(epsilon, delta = 0) <= Otilde(d/epsilon + d/(alpha epsilon sqrt(m)) + d/(alpha^2 m)),
    where the task agn(C; alpha) seeks an output c: X -> {0,1} such that err_D(c) <= min_(c' in C)
    err_D(c') + alpha.

    With the repaired sign (few.eq14) and explicit constants, the theorem holds for beta = .01. The
    success probability is 3/4 * .99 = .7425. A union bound gives the success probability 1 - .26 =
    .74. The output is within .51 alpha of the best concept. The success was computed exactly for
    one best hypothesis and many worse hypotheses. In this case, a twentieth of the stated number of
    users is enough. The proof applies the representation to the concept c = argmin err and to the
    marginal distribution of D. D need not be realizable, because err_D(h) <= err_D(c) + Pr[h != c].
    With psi as printed, the algorithm fails because the sign is wrong.
    """

    @ledger.sweep(
        "success with explicit constants, one best and many other hypotheses", cases=[
            {"m": 1, "alpha": 0.5}, {"m": 1, "alpha": 0.3}, {"m": 3, "alpha": 0.4}],
        epsilon=[0.5, 0.2], candidates=[2, 1000], share=1.0, mutant={"share": 1e-3},
        method=Method.NUMERIC, end_to_end=True,
    )  # fmt: skip
    def success(m, alpha, epsilon, candidates, share):
        """Use the bound 0.5 alpha of Theorem 37, as the proof does."""
        tau = math.ceil(pairwise_threshold(alpha, m))
        n = pairwise_users(candidates, alpha=alpha, beta=0.01, epsilon=epsilon, m=m, threshold=tau)
        return 2 / 3, 0.75 * (
            1 - agnostic_failure(math.ceil(share * n), m, alpha, tau, candidates, epsilon)
        )

    kinds = [[x, y] for x in range(3) for y in range(2)]

    @ledger.falsify("privacy of all outcomes", items=Array(SHARE, (4, 2)), other=Array(SHARE, (2,)),
                    tau=Interval(0.5, 2.0), epsilon=EPSILON, part=1.0, mutant={"part": 0.5},
                    end_to_end=True, extremal=[{"items": np.zeros((4, 2)), "tau": 1.0,
                                                "other": np.full(2, 0.2), "epsilon": 3.0}],
                    )  # fmt: skip
    def private(items, other, tau, epsilon, part):
        both = Representation((POINTS[[0, 7]], POINTS[1:4]))
        one = np.array(kinds)[np.floor(6 * np.minimum(items, LAST)).astype(int)]
        two = one.copy()
        two[0] = np.array(kinds)[np.floor(6 * np.minimum(other, LAST)).astype(int)]
        laws = [agnostic_pmf(z, representation=both, threshold=tau, epsilon=epsilon)
                for z in (one, two)]  # fmt: skip
        return np.abs(np.log(laws[0] / laws[1])).max(), part * epsilon + ROUNDING

    @ledger.identity(
        "our algorithm: all hypotheses of two classes", data=Array(SHARE, (3, 2, 2)), chance=SHARE,
        epsilon=EPSILON, size=Integer(1, 3), tau=Interval(0.3, 2.0), grow=1.0,
        mutant={"grow": 2.0}, examples=60,
    )  # fmt: skip
    def ours(data, chance, epsilon, size, tau, grow):
        points = np.minimum(np.floor(3 * data[:, :, 0]), 2).astype(int)
        z = np.stack([points, (data[:, :, 1] > 0.5).astype(int)], axis=2).tolist()
        P, classes = [chance, 1 - chance], (POINTS[1 : 2 + size], POINTS[[0, 7, 5]])
        found = agnostic_pmf(z, representation=Representation(classes, P), threshold=tau,
                             epsilon=epsilon)  # fmt: skip
        return found, agnostic_learner(classes, P, z, tau, grow * epsilon)

    meant = agnostic_learner(TWO_CLASSES, (0.3, 0.7), USERS, 1.5, 2.0)
    for place in range(5):
        ledger.monte_carlo(
            f"our draws: outcome {place} of two classes",
            allowed=meant[place],
            draws=20_000,
            mutant=0.7,
            place=place,
        )(drawn)

    @ledger.step("err_D(h) <= err_D(c) + Pr[h != c]").falsify(
        "all labels and hypotheses on three points", weights=Array(SHARE, (3, 2)),
        one=Integer(0, 7), other=Integer(0, 7), part=1.0, mutant={"part": 0.9},
        extremal=[{"weights": np.ones((3, 2)) * [1, 0], "one": 0, "other": 7}],
    )  # fmt: skip
    def near(weights, one, other, part):
        if weights.sum() == 0:
            return None
        D, c, h = weights / weights.sum(), POINTS[one], POINTS[other]
        errors = [(D * (z[:, None] != np.arange(2))).sum() for z in (c, h)]
        return errors[1] - errors[0], part * D[c != h].sum() + ROUNDING

    @ledger.step("success, multiplied out").sweep("3/4 and .99", theorem=0.99,
                                                  mutant={"theorem": 0.8})  # fmt: skip
    def union(theorem):
        return 2 / 3, 1 - (1 / 4 + 1 - theorem)

    fix = "1[c(x) != y] - 1[c'(x) != y]"
    ledger.step("(14) with psi as printed: the best has a score of at most 0", fix=fix).sweep(
        "an always correct and an always wrong hypothesis",
        right=[1.0, 0.9],
        lhs="score of the best",
        rhs="bound of the proof: 0",
    )(printed_score)
    ledger.consequence(
        "As printed, the algorithm fails. Reversing one sign repairs it.", harm="accuracy"
    )


TWO_CLASSES = (POINTS[[1, 3]], POINTS[[0, 7, 5]])
USERS = [[[0, 0], [1, 1]], [[2, 1], [1, 1]], [[0, 1], [2, 0]]]


def drawn(size, *, rng, place):
    """Run the learner for two classes with probabilities .3 and .7."""
    both = Representation(TWO_CLASSES, (0.3, 0.7))
    found = our_agnostic_learner(USERS, size, representation=both, threshold=1.5, epsilon=2.0,
                                 rng=rng)  # fmt: skip
    return found == place


def printed_score(right):
    psi = [1 - 0, 0 - 1]  # psi where the first hypothesis is correct, and where it is wrong
    return right * psi[0] + (1 - right) * psi[1], 0.0


@statement("few.thm40.lower")
def agnostic_lower(ledger):
    """Let C be any concept class with probabilistic representation dimension d and let d_VC be its
    VC dimension. Then, for any sufficiently small alpha, epsilon > 0 and for all m in N,
    n_m^(agn(C; alpha))(epsilon, delta = 0) >= Omegatilde(d/epsilon + d_VC/(alpha epsilon sqrt(m)) +
    d_VC/(alpha^2 m)).

    The bound holds with explicit constants. By few.thm24, a code of distance d/8 has W >= 2^(.456
    d_VC) words. The bias is b = 4 alpha/kappa < 1/2. The divergence is at most b ln((1 + b)/(1 -
    b)) <= 2.2 b^2 = 36 (alpha/kappa)^2. The number n is at least a sixth of the sum in few.lemma39.
    The bound was computed exactly on greedy codes. Linear programs computed the bound for the best
    learners of one point. The term d/epsilon comes from few.thm4, because every agnostic learner is
    a learner. If two errors sum to at least 2 t, then the larger error is at least t. The proof
    prints > instead of >=. Take a hypothesis h that agrees with each of two concepts on half of the
    places where the concepts differ. Both errors of this h are equal to t. But t = (the best error)
    + 2 alpha is enough. The index l of the packing should be in [d_VC]. The printed [W] is a
    misprint.
    """
    ledger.misprint("l in [W]", "l in [d_VC]")
    domain = {"d": [1, 2, 5, 8], "share": [0.2, 0.9]}

    @ledger.sweep("any hypothesis is bad for one of two distributions, exactly", more=2.0,
                  mutant={"more": 2.5}, **domain)  # fmt: skip
    def bad(d, share, more):
        """Use the best hypothesis for the two closest words, where kappa = distance/d."""
        code = greedy_code(d, max(1, d // 4))
        distance = min((u != v).sum() for u, v in itertools.combinations(code, 2))
        kappa = distance / d
        alpha = share * kappa / 8
        D = labelled_packing(code, 4 * alpha / kappa)
        u, v = next(p for p in itertools.combinations(range(len(code)), 2)
                    if (code[p[0]] != code[p[1]]).sum() == distance)  # fmt: skip
        both = D[u] + D[v]
        return (1 - 4 * alpha / kappa) + more * 2 * alpha, both.min(axis=1).sum() + 1e-12

    @ledger.identity("our packing: the masses", alpha=[0.01, 0.1], kappa=[0.5, 1.0], shift=0.0,
                     mutant={"shift": 0.01})  # fmt: skip
    def masses(alpha, kappa, shift):
        code = [(0, 1, 1), (1, 0, 1), (0, 0, 0)]
        meant = [[[labelled_mass(u, place, y, alpha + shift, kappa) for y in (0, 1)]
                  for place in range(3)] for u in code]  # fmt: skip
        return labelled_packing(code, 4 * alpha / kappa), np.array(meant)

    @ledger.sweep("the divergence is at most 36 (alpha/kappa)^2", most=36.0, mutant={"most": 10.0},
                  **domain)  # fmt: skip
    def diameter(d, share, most):
        code = greedy_code(d, max(1, d // 4))
        bias = share / 2
        D = labelled_packing(code, bias)
        return diameters(D.reshape(len(code), -1)[:24])[0], most * (bias / 4) ** 2

    @ledger.sweep("the best algorithm on one point: least n, by linear programs",
                  bias=[0.3, 0.5, 0.9], epsilon=[0.5, 2.0], m=[1, 2], constant=1 / 6,
                  mutant={"constant": 0.7}, end_to_end=True)  # fmt: skip
    def needed(bias, epsilon, m, constant):
        laws = [[(1 + bias) / 2, (1 - bias) / 2], [(1 - bias) / 2, (1 + bias) / 2]]
        users = [users_law(law, m) for law in laws]
        n = next((n for n in range(1, 6) if best_success(users, n, epsilon) >= 2 / 3), None)
        if n is None:
            return None
        beta = bias * math.log((1 + bias) / (1 - bias))
        terms = 1 / epsilon + 1 / (epsilon * math.sqrt(m * beta)) + 1 / (m * beta)
        return constant * math.log(2) * terms, n

    ledger.misprint("larger error > its best + 2 alpha", "at least best + 2 alpha").sweep(
        "one of the two errors is larger than its best + 2 alpha: it may be equal",
        alpha=0.01, kappa=1.0, lhs="best + 2 alpha + 1e-9", rhs="larger error",
    )(between)  # fmt: skip


def between(alpha, kappa):
    bias = 4 * alpha / kappa  # words 00 and 11, d = 2, and h = 01 is correct on one of two places
    error = (1 - bias) / 2 / 2 + (1 + bias) / 2 / 2
    return (1 - bias) / 2 + 2 * alpha + 1e-9, error


def shattered(hypotheses):
    """Return the VC dimension."""
    n = hypotheses.shape[1]
    sizes = [s for s in range(n + 1) for x in itertools.combinations(range(n), s)
             if len({tuple(row) for row in hypotheses[:, x]}) == 2**s]  # fmt: skip
    return max(sizes)


def fits(hypothesis, levels, errors):
    """Count how many of 2^levels thresholds a hypothesis fits.

    A hypothesis fits a threshold if the hypothesis fails on at most `errors` points of the search
    path.
    """
    t, wrong = np.arange(2**levels), np.zeros(2**levels, dtype=int)
    for level in range(levels):
        step = 2 ** (levels - level)
        x = t // step * step + step // 2 - 1
        wrong += hypothesis[x] != (x >= t)
    return int((wrong <= errors).sum())


@statement("few.thm40-vc", expected="ambiguous")
def thresholds_vc(ledger):
    """The ratio d/d_VC is not always bounded; e.g., for thresholds, d_VC = 2 while d =
    Theta(log(card Z)).

    The dimension d_VC is 1 for thresholds 1[x >= t], and d_VC is 2 for thresholds of both signs.
    The text does not say which thresholds are meant. The choice does not matter, because d =
    Theta(log card X) for both kinds of thresholds. The constants of this bound are explicit. Every
    class represents itself, so d <= ln(card X + 1). Now take 2^b thresholds, and let D_X be uniform
    on the b points of the binary search for t. For exactly sum_(i <= b/4) C(b, i) thresholds t, a
    hypothesis errs on at most a quarter of these points. The number of these t is at most 2^(.811
    b). Therefore, card H is at least (3/4) 2^(.189 b), and d is at least .13 b - .29. The set Z of
    labelled points has card Z = 2 card X.
    """

    @ledger.reading("one sign", fails=True).sweep(
        "by enumeration", n=[3, 5], lhs="as printed", rhs="VC dimension"
    )
    def one_sign(n):
        labels = np.arange(n) >= np.arange(n + 1)[:, None]
        pairs = [labels[:, x] for x in itertools.combinations(range(n), 2)]
        return 2, 1 + any(len({tuple(row) for row in pair}) == 4 for pair in pairs)

    @ledger.identity("our thresholds are 1[x >= t] for t = 0, ..., n", n=[1, 2, 5], shift=0,
                     mutant={"shift": 1})  # fmt: skip
    def all_thresholds(n, shift):
        meant = [[int(x >= t + shift) for x in range(n)] for t in range(n + 1)]
        return np.array(sorted(thresholds(n).tolist())), np.array(sorted(meant))

    @ledger.reading("both signs").identity("by enumeration", n=[3, 5], both=True,
                                           mutant={"both": False})  # fmt: skip
    def two(n, both):
        up = thresholds(n)
        return shattered(np.concatenate([up, 1 - up]) if both else up), 2

    @ledger.falsify("a hypothesis fits exactly this number of thresholds", levels=Integer(1, 8),
                    labels=Array(SHARE, (256,)), errors=Integer(0, 3), less=0, mutant={"less": 1},
                    extremal=[{"levels": 8, "labels": np.zeros(256), "errors": 2}])  # fmt: skip
    def exactly(levels, labels, errors, less):
        found = fits((labels > 0.5)[: 2**levels], levels, errors)
        return found, compatible(levels, min(errors, levels) - less)

    @ledger.sweep("the entropy bounds this number", levels=range(1, 300), rate=0.8113,
                  mutant={"rate": 0.7}, method=Method.NUMERIC)  # fmt: skip
    def entropy(levels, rate):
        return math.log2(compatible(levels, levels // 4)), rate * levels


def needed_for_thresholds(b, alpha, epsilon, m):
    """Return a lower bound for the users of every learner of 2^b thresholds, for m <= 1/alpha.

    The bound follows from `compatible`.
    """
    return (0.1308 * b - math.log(1.5)) / (6 * epsilon * alpha * m)


@statement("few.thm40.remark", expected="refuted")
def gap(ledger):
    """A more careful argument can show that d in the last two terms in the upper bound can be
    replaced by the (maximum) VC dimension of the probabilistic representation (which is potentially
    smaller); this actually closes the gap in the particular case of thresholds. However, in the
    general case, the VC dimension of C and the VC dimension of its probabilistic representation are
    not necessarily equal.

    The paper's own Theorem 4 contradicts the second term of the remark. Every agnostic learner is a
    learner, so every agnostic learner needs d/(epsilon alpha m) users. But the class of thresholds
    represents itself, and its VC dimension is 1. At m = 1, the remark gives the bound d/epsilon +
    1/(alpha epsilon) + 1/alpha^2. For an explicit example, put mass 1 - 4 alpha on a point of known
    label. Put mass 4 alpha on the search path of t. Give the algorithm A only the known point. For
    every t, A then outputs a hypothesis that fits t with probability at least (2/3) e^(-6 epsilon
    alpha m n). By few.thm40-vc, this probability is at most 2^(-.189 b) on average over t. For b >>
    1/alpha, this number exceeds the bound of the remark by more than any fixed power of logarithms.

    The last term may be replaced because uniform convergence depends on the VC dimension. But the
    exponential mechanism depends on the size of the class. For thresholds, a gap between d and d_VC
    then remains in the second term. The contradiction occurs for m < 1/alpha. For m >= 1/alpha,
    Theorem 4 requires only d/epsilon users, and the remark also contains this term. So the remark
    is neither proved nor refuted for m >= 1/alpha.
    """

    @ledger.sweep(
        "2^b thresholds, m = 1, against the promise times logarithms to a power", b=1e60,
        alpha=1e-30, epsilon=0.1, power=[10, 5], end_to_end=True, lhs="users that are needed",
        rhs="users that are promised",
    )  # fmt: skip
    def promised(b, alpha, epsilon, power):
        needed = (0.1308 * b - 0.41) / (6 * epsilon * alpha)
        terms = b / epsilon + 1 / (alpha * epsilon) + 1 / alpha**2  # VC dimension 1
        return needed, terms * math.log(terms * b / alpha) ** power

    repair = ledger.repair(
        "d/epsilon + d/(alpha epsilon sqrt(m)) + d_VC(P)/(alpha^2 m), which is needed for "
        "m < 1/alpha and open beyond"
    )

    @repair.falsify(
        "for thresholds, m = 1, by the exponential mechanism: excess alpha with 2/3", b=Integer(
            1, 10**6), alpha=ALPHA, epsilon=Interval(1e-3, 1.0, log=True), most=600.0,
        mutant={"most": 300.0}, extremal=[{"b": 1, "alpha": 0.01, "epsilon": 1.0}],
    )  # fmt: skip
    def enough(b, alpha, epsilon, most):
        """Use an n for which each of two steps succeeds with probability .9.

        Two empirical distribution functions are within alpha/16, by the inequality of Dvoretzky,
        Kiefer, Wolfowitz and Massart. The mechanism needs 4 ln(2^b/.1)/(epsilon alpha) examples.
        """
        n = max(math.log(40) * 128 / alpha**2, 4 * (b * math.log(2) + 2.31) / (epsilon * alpha))
        return n, most * (b / epsilon + b / (alpha * epsilon) + 1 / alpha**2)

    @repair.falsify("the repair does not contradict Theorem 4", b=Integer(1, 10**9), alpha=ALPHA,
                    epsilon=Interval(1e-3, 1.0, log=True), share=SHARE, times=1.0,
                    mutant={"times": 100.0}, extremal=[
                        {"b": 10**9, "alpha": 1e-3, "epsilon": 0.1, "share": 0.0}])  # fmt: skip
    def consistent(b, alpha, epsilon, share, times):
        m = max(1, math.floor(share / alpha))
        terms = b / epsilon + b / (alpha * epsilon * math.sqrt(m)) + 1 / alpha**2 / m
        return times * needed_for_thresholds(b, alpha, epsilon, m), terms

    ledger.consequence(
        "For m < 1/alpha, the gap of Theorem 40 is not closed for thresholds. With the number of "
        "users that the remark promises, nothing is learned for these m. For m >= 1/alpha, the "
        "question is open.",
        harm="accuracy",
    )


@statement("few.thm41", expected="holds_proof_broken")
def selection(ledger):
    """Let alpha, beta in (0, 0.1). Then, for any epsilon > 0, there exists an epsilon-DP algorithm
    for Hypothesis Selection that, when each user has m samples and min_(P' in frakP) d_tv(P', D) <=
    0.1 alpha, with probability 1 - beta outputs P in frakP such that d_tv(P, D) <= alpha as long as
    n >= Thetatilde(log(card frakP/beta)/epsilon + log(card frakP/beta)/(alpha epsilon sqrt(m)) +
    log(card frakP/beta)/(alpha^2 m)).

    The theorem holds with the comparison P(W) - 1[z in W] and the constants of few.thm37, for every
    epsilon > 0. The last step is wrong as printed. A score of at most .5 alpha gives d_tv(P, P*) <=
    .6 alpha. By the triangle inequality, d_tv(P, D) <= .7 alpha. The paper claims the bound .6
    alpha for d_tv(P, D). Two candidates on five symbols attain the distance .7 alpha, which is
    still below alpha. So a score of at most .8 alpha in Theorem 37 would be enough. Any
    distribution D is allowed, because the set W of P and P* does not depend on D. Candidates may be
    equal. If two candidates are equal, W is empty and psi = 0.
    """

    @ledger.falsify("scores at most .5 alpha put d_tv at .7 alpha", laws=Array(SHARE, (3, 4)),
                    more=0.0, mutant={"more": -0.5}, end_to_end=True, extremal=[
                        {"laws": np.array([[6, 0, 4, 10.0], [0, 0, 10, 10], [0, 0, 10, 10]])}],
                    )  # fmt: skip
    def implied(laws, more):
        """Use the smallest alpha for which the assumptions on P, P* and D hold."""
        if not (laws.sum(axis=1) > 0).all():
            return None
        p, best, D = laws / laws.sum(axis=1, keepdims=True)
        psi = np.asarray(scheffe_comparison([p, best]).psi)
        alpha = max((psi[0, 1] @ D) / 0.5, np.abs(best - D).sum() / 2 / 0.1)
        return total_variation(p, D), (0.7 + more) * alpha + 1e-12

    @ledger.identity(
        "our psi is P(W) - 1[z in W], also for equal masses", laws=Array(SHARE, (3, 4)), sign=1.0,
        mutant={"sign": -1.0}, floor=1e-6, examples=60, extremal=[
            {"laws": np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0.0]])}])  # fmt: skip
    def ours(laws, sign):
        """Use masses that are multiples of a third before they are normalised."""
        laws = np.round(3 * laws)
        if not (laws.sum(axis=1) > 0).all():
            return None
        P = laws / laws.sum(axis=1, keepdims=True)
        psi = scheffe_psi(P.tolist())
        meant = [[[psi(H, other, z) for z in range(4)] for other in range(3)] for H in range(3)]
        return scheffe_comparison(P).psi, sign * np.array(meant)

    @ledger.identity("P(W) - 1[z in W] is at most 1, if masses sum to one up to rounding",
                     excess=[0.0, 9e-10], most=1.0, mutant={"most": 0.5})  # fmt: skip
    def bounded(excess, most):
        psi = scheffe_comparison([[0.5, 0.5 + excess, 0], [0, 0, 1]]).psi
        return np.asarray(psi)[0, 1, 2], most

    @ledger.identity("our d_tv is the largest difference of an event", laws=Array(SHARE, (2, 4)),
                     half=1.0, mutant={"half": 0.5}, floor=1e-9)  # fmt: skip
    def distance(laws, half):
        if not (laws.sum(axis=1) > 0).all():
            return None
        p, q = laws / laws.sum(axis=1, keepdims=True)
        return total_variation(p, q), half * total_variation_of(p, q)

    @ledger.falsify("the score of P* is at most d_tv(P*, D)", laws=Array(SHARE, (3, 4)), part=1.0,
                    mutant={"part": 0.5}, extremal=[
                        {"laws": np.array([[0, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0.0]])}],
                    )  # fmt: skip
    def best_score(laws, part):
        if not (laws.sum(axis=1) > 0).all():
            return None
        p, best, D = laws / laws.sum(axis=1, keepdims=True)
        psi = np.asarray(scheffe_comparison([p, best]).psi)
        return psi[1, 0] @ D, part * total_variation(best, D) + 1e-12

    @ledger.falsify("privacy of all outcomes", laws=Array(SHARE, (3, 2)), epsilon=EPSILON,
                    ones=Integer(0, 5), part=1.0, mutant={"part": 0.5}, end_to_end=True,
                    tau=Choice((0.5, 1.0)), extremal=[
                        {"laws": np.array([[1, 0], [0, 1], [0, 1.0]]), "epsilon": 3.0, "ones": 5,
                         "tau": 1.0}])  # fmt: skip
    def private(laws, epsilon, ones, part, tau):
        rows = (laws + 1e-9) / (laws + 1e-9).sum(axis=1, keepdims=True)
        comparison = scheffe_comparison(rows)
        pmfs = [clipped_pairwise_pmf([[1]] * k + [[0]] * (6 - k), comparison=comparison,
                                     threshold=tau, epsilon=epsilon)
                for k in (ones, ones + 1)]  # fmt: skip
        return np.abs(np.log(pmfs[0] / pmfs[1])).max(), part * epsilon + ROUNDING

    fix = ".7 alpha, which is below alpha as well"
    ledger.step("d_tv(P, D) <= .5 alpha + .1 alpha", fix=fix).sweep(
        "two candidates on five symbols", alpha=0.1, lhs="d_tv(P, D)", rhs=".6 alpha + 1e-6"
    )(attained)
    ledger.consequence("None. The theorem does not need the exact constant.", harm="the wording")


def attained(alpha):
    a, tiny = alpha, 1e-9
    best = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
    p = best + np.array([0.6 * a, tiny, -0.6 * a - tiny, 0, 0])
    D = best + np.array([0, 0.1 * a, 0, -0.1 * a, 0])
    larger = p > best
    assert p[larger].sum() - D[larger].sum() <= 0.5 * a + 1e-8  # the score of P
    return abs(p - D).sum() / 2, 0.6 * a + 1e-6
