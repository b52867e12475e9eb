"""Few examples per user: pure-DP PAC learning, Section 4 and Appendix D, and Table 1."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from algorithms.few_examples.learning import clipped_errors, pac_pmf, pac_users, used_examples
from algorithms.few_examples.learning import pac_learner as our_pac_learner
from algorithms.few_examples.representations import (
    Representation,
    boosting_rounds,
    hashed_points,
    is_representation,
    point_functions,
    thresholds,
)
from algorithms.few_examples.representations import boost as our_boost
from audits.few_examples import transcribed
from audits.few_examples.bounded_ratios import WEIGHT
from audits.few_examples.conventions import EPSILON, SHARE
from audits.few_examples.hard_instances import best_success, users_law
from audits.few_examples.transcribed import failure as failure_of
from audits.few_examples.transcribed import pac_learner, size_of
from audits.few_examples.transcribed import pac_users as pac_users_of
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-9
SIZE = Integer(2, 10**12)
"""Range of the number of hypotheses of a class."""

ALPHA = Interval(1e-6, 0.5, log=True)
LAST = 0.999999


def examples(items, other):
    """Return users' examples (x, y) of two points, before and after the first user is replaced."""
    kinds = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    one = kinds[np.floor(4 * np.minimum(items, LAST)).astype(int)]
    changed = one.copy()
    changed[0] = kinds[np.floor(4 * np.minimum(other, LAST)).astype(int)]
    return one, changed


ALL = np.array(list(itertools.product((0, 1), repeat=2)))
ALL3 = np.array(list(itertools.product((0, 1), repeat=3)))
"""All hypotheses on two points, and on three points."""

DATA = {"items": Array(SHARE, (5, 3)), "other": Array(SHARE, (3,))}
MOVED = {"items": np.zeros((5, 3)), "other": np.full(3, LAST)}


@statement("few.sens-pac")
def sensitivity(ledger):
    """The sensitivity of scr_h(z) = sum_(i in [n]) 1[z_i is not realizable by h] is one; a standard
    item-level step would sum up the error across all the samples, resulting in the sensitivity as
    large as m.

    The sensitivity is one. A user who had no error and then has one error attains the bound. The
    sum of errors over all samples can move by m, and never moves by more than m.
    """

    @ledger.falsify("all hypotheses on two points", cap=1.0, mutant={"cap": 3.0}, end_to_end=True,
                    extremal=[MOVED], **DATA)  # fmt: skip
    def moved(items, other, cap):
        one, two = (clipped_errors(z, ALL, cap=cap) for z in examples(items, other))
        return np.abs(one - two).max(), 1.0

    @ledger.falsify("the sum of all errors moves by at most m", m=3.0, mutant={"m": 2.9},
                    extremal=[MOVED], **DATA)  # fmt: skip
    def summed(items, other, m):
        one, two = (clipped_errors(z, ALL, cap=3.0) for z in examples(items, other))
        return np.abs(one - two).max(), m


# --- representations ---


@statement("few.def20")
def representation(ledger):
    """A distribution P on concept classes is an (alpha, beta)-probabilistic representation ((alpha,
    beta)-PR) of a concept class C if for every c in C and for every distribution D_X on X, with
    probability 1 - beta over H ~ P there exists h in H such that Pr_(x ~ D_X)[c(x) != h(x)] <=
    alpha. The (alpha, beta)-PR dimension PRDim_(alpha, beta)(C) is the minimum of size(P) over all
    (alpha, beta)-PR P of C, where size(P) is the maximum of log(card H) over H in supp(P), and
    PRDim(C) = PRDim_(1/4, 1/4)(C).

    The statement is a definition. The minimum exists, because abs(H) is a number or infinite. A
    class represents itself, so PRDim(C) <= ln card C. PRDim(C) is 0 only for a class of one
    concept. If PRDim(C) were 0 for two concepts, a point on which the concepts differ would need
    both labels with probability 3/4. So PRDim(C) is 0 or at least ln 2. PRDim(C) need not grow with
    the domain. By Markov's inequality, points are represented by 16 buckets of a hash function. For
    7 points, 5 buckets are enough. For thresholds, PRDim(C) does grow, because card H >= (3/4)
    2^(.189 b) for 2^b thresholds (see few.thm40-vc). The checks use a mixed-integer program over
    all D_X. By the words "for every D_X", H and c are fixed before D_X is. The paper calls sets of
    hypotheses "concept classes", which is a misprint.
    """
    hashed = hashed_points(5, 2)

    @ledger.falsify("no distribution of points is worse than the program's", alpha=0.25,
                    weights=Array(SHARE, (5,)), concept=Choice((0, 1, 2, 3, 4)), examples=40,
                    looser=0.25, mutant={"looser": 0.6}, extremal=[
                        {"weights": np.eye(5)[0] + np.eye(5)[1], "concept": 2}])  # fmt: skip
    def worst(weights, concept, alpha, looser):
        if weights.sum() == 0:
            return None
        D, labels = weights / weights.sum(), np.eye(5, dtype=int)[concept]
        least = [((h != labels) @ D).min() for h in hashed.classes]
        found = (np.array(least) > alpha + 2e-5).mean()
        return found, hashed.failure(labels, looser)[0] + ROUNDING

    classes = [ALL3[[0, 7]], ALL3[[1, 2, 4]], ALL3[[6]], ALL3[[0, 3, 5, 6, 7]]]

    @ledger.identity("size(P) is the largest logarithm", log=1.0,
                     order=list(itertools.permutations(range(4))),
                     mutant={"log": math.log(2)})  # fmt: skip
    def size(order, log):
        chosen = [classes[i] for i in order]
        return Representation(tuple(chosen)).size, size_of(chosen) / log

    @ledger.identity("our failure probability, by linear programs over all sets of classes",
                     weights=Array(SHARE, (4,)), concept=Integer(0, 7), alpha=SHARE, more=0.0,
                     mutant={"more": 0.3}, floor=1e-3, examples=10, extremal=[
                         {"weights": np.array([0.1, 0.2, 0.3, 0.4]), "concept": c, "alpha": a}
                         for c, a in ((1, 0.0), (3, 0.25), (6, 1 / 3), (3, 0.45), (1, 0.9))],
                     )  # fmt: skip
    def failures(weights, concept, alpha, more):
        """Return the probability, and the probability for the distribution that attains it.

        Errors exceed alpha only if they do so by 1e-5, the accuracy of our program.
        """
        if weights.sum() < 0.1 or alpha > 0.95:
            return None
        P, c = weights / weights.sum(), ALL3[concept]
        ours, D = Representation(tuple(classes), P).failure(c, alpha)
        least = [min((h != c) @ D for h in H) for H in classes]
        at_worst = sum(p for p, error in zip(P, least, strict=True) if error > alpha + 5e-6)
        return [ours, at_worst], [failure_of(classes, P, c, alpha + more, 1e-5)] * 2

    @ledger.identity("our failure probability for six random classes on four points", more=0.0,
                     seed=[2, 3, 7], alpha=0.4, mutant={"more": 0.3},
                     floor=1e-3)  # fmt: skip
    def random_classes(seed, alpha, more):
        rng = np.random.default_rng(seed)
        six = [rng.integers(0, 2, (int(rng.integers(1, 5)), 4)) for _ in range(6)]
        P, c = rng.dirichlet(np.ones(6)), rng.integers(0, 2, 4)
        found = Representation(tuple(six), P).failure(c, alpha)[0]
        return found, failure_of(six, P, c, alpha + more, 1e-5)

    @ledger.identity("our test of an (alpha, beta)-representation, near its beta and elsewhere",
                     concepts=[[0], [0, 7, 3], [3, 0]], alpha=[0.3, 0.6], part=[0.7, 1.0],
                     more=[-2e-5, -5e-6, 0.0, 0.2], extra=0, mutant={"extra": 0.5})  # fmt: skip
    def tested(concepts, alpha, part, more, extra):
        """Errors and failures exceed their bounds only if they do so by 1e-5."""
        two = [classes[0], classes[1]]
        worst = max(failure_of(two, [0.5, 0.5], ALL3[c], alpha, 1e-5) for c in concepts)
        beta = max(0.0, part * worst + more)
        found = is_representation(Representation(tuple(two)), ALL3[concepts], alpha, beta)
        return float(found), float(worst - (beta + extra) < 1e-5)

    @ledger.identity("points by buckets, by a loop over all hash functions", p=[2, 5, 7],
                     buckets=[1, 3, 5], shift=0, mutant={"shift": 1})  # fmt: skip
    def hashed_by_loops(p, buckets, shift):
        """Compare the classes in any order."""
        found = [np.asarray(one).tolist() for one in hashed_points(p, buckets).classes]
        meant = [[[int((a * x + b) % p % buckets == bucket + shift) for x in range(p)]
                  for bucket in range(buckets)] for a in range(1, p) for b in range(p)]  # fmt: skip
        return np.array(sorted(found)), np.array(sorted(meant))

    @ledger.identity("point functions are 1 at one point", n=[1, 4], one=1, mutant={"one": 2})
    def single_points(n, one):
        return point_functions(n), np.array([[one * (x == t) for x in range(n)] for t in range(n)])

    @ledger.sweep("points by buckets: a (1/4, 1/4)-representation", p=[5, 7], buckets=5,
                  end_to_end=True, mutant={"buckets": 1})  # fmt: skip
    def points(p, buckets):
        """Return the failure probability for the point 1 at the worst D_X."""
        return hashed_points(p, buckets).failure(np.eye(p, dtype=int)[1], 0.25)[0], 0.25

    @ledger.falsify("one of two labels of a point has at most one half, which is below 3/4",
                    chance=SHARE, half=0.5, mutant={"half": 0.4},
                    extremal=[{"chance": 0.5}])  # fmt: skip
    def single(chance, half):
        return min(chance, 1 - chance), half

    @ledger.identity("a class represents itself", n=[1, 2, 4], alpha=0.0, mutant=None)
    def itself(n, alpha):
        own = Representation((thresholds(n),))
        return float(is_representation(own, thresholds(n), alpha, 0.0)), 1.0


def boosted(rounds, factor):
    """Return a bound on the share of points where a majority errs.

    Each vote errs on a quarter of the points.
    """
    return factor ** (rounds / 2)


@statement("few.lemma21")
def boosting(ledger):
    """For any C and alpha in (0, 1/2), PRDim_(alpha, 1/4)(C) <= Otilde(PRDim(C) log(1/alpha)).

    The lemma follows by boosting, with explicit constants. The result is PRDim_(alpha, 1/4)(C) <= T
    (PRDim(C) + ln r). The number T = ceil(7 ln(1/alpha)) is the number of rounds. In each round, r
    = ceil(log_4(4 T)) classes are joined. So all T rounds find a hypothesis of error 1/4 with
    probability 3/4, by a union bound. In every round, the step is (1/2) ln 3 for all D and c. So
    each set of T hypotheses has one majority, and the count is correct. Each round multiplies the
    errors by at most sqrt(3)/2. The bound is at most 17 PRDim(C) ln(1/alpha) (1 + ln(1 +
    ln(1/alpha))), because PRDim(C) >= ln 2 unless both sides are 0. So the Otilde hides log
    log(1/alpha). For alpha >= 1/4, no boosting is needed. For points, ln(4/alpha) is enough
    (few.def20). The union bound is proved by hand.
    """

    @ledger.falsify(
        "majority of any hypotheses of weighted error at most 1/4, step (1/2) ln 3, on 8 points",
        weights=Array(SHARE, (8,)), order=Array(SHARE, (6, 8)), rounds=Integer(1, 6),
        power=1.0, mutant={"power": 12.0}, extremal=[{"weights": np.ones(8), "rounds": 1,
                                                                  "order": np.ones((6, 8))}],
    )  # fmt: skip
    def majority(weights, order, rounds, power):
        """Use rounds that each err on a maximal set of points, within a quarter of the weight."""
        if weights.sum() == 0:
            return None
        D = weights / weights.sum()
        now, votes = D.copy(), np.zeros(8)
        for t in range(rounds):
            wrong = np.zeros(8, dtype=bool)
            for x in np.argsort(order[t]):
                wrong[x] = now[wrong].sum() + now[x] <= 0.25 + 1e-12
            votes += np.where(wrong, -1, 1)
            now = now * np.where(wrong, math.sqrt(3), 1 / math.sqrt(3))
            now /= now.sum()
        return D[votes <= 0].sum(), boosted(rounds * power, 0.75) + 1e-12

    rows = [[1.0, 1, 0, 0, 1, 1], [0.0, 1, 1, 1, 1, 1], [0.0, 1, 1, 1, 1, 0]]
    repeated = {"labels": np.array([rows] * 4), "concept": np.ones(6),
                "weights": np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5])}  # fmt: skip

    @ledger.identity("our choice of the hypotheses, by loops", labels=Array(SHARE, (4, 3, 6)),
                     concept=Array(SHARE, (6,)), weights=Array(WEIGHT, (6,)), times=3.0,
                     mutant={"times": 1.0}, extremal=[repeated])  # fmt: skip
    def chosen(labels, concept, weights, times):
        classes, c = (labels > 0.5).astype(int), (concept > 0.5).astype(int)
        return our_boost(classes, c, weights), transcribed.boost(classes, c, weights, times)

    @ledger.falsify("our majority, where each class holds a hypothesis of error at most 1/4",
                    labels=Array(SHARE, (5, 8, 8)), concept=Array(SHARE, (8,)),
                    weights=Array(WEIGHT, (8,)), rounds=Integer(1, 5), power=1.0,
                    mutant={"power": 12.0}, end_to_end=True,
                    extremal=[{"labels": np.broadcast_to(1.0 - np.eye(8), (5, 8, 8)), "rounds": 1,
                               "concept": np.ones(8), "weights": np.ones(8)}])  # fmt: skip
    def our_majority(labels, concept, weights, rounds, power):
        classes, c = (labels > 0.5).astype(int)[:rounds], (concept > 0.5).astype(int)
        found = our_boost(classes, c, weights)
        if any(error > 0.25 for error in transcribed.boosting_errors(found, c, weights)):
            return None
        wrong = 2 * np.sum(found == c, axis=0) <= rounds
        return weights[wrong].sum() / weights.sum(), boosted(rounds * power, 0.75) + 1e-12

    @ledger.identity("our number of rounds", alpha=[0.25, 0.1, 1e-3, 1e-12], seven=7,
                     mutant={"seven": 8})  # fmt: skip
    def rounds_of(alpha, seven):
        return boosting_rounds(alpha), math.ceil(seven * math.log(1 / alpha))

    alphas = {"alpha": Interval(1e-30, 0.25, log=True), "extremal": [{"alpha": 0.25}]}

    @ledger.falsify("7 ln(1/alpha) rounds are enough", seven=7.0, mutant={"seven": 6.5}, **alphas)
    def enough(alpha, seven):
        return boosted(seven * math.log(1 / alpha), 0.75), alpha

    @ledger.falsify("the size of the union of all rounds", most=17.0, mutant={"most": 9.0},
                    size=Interval(math.log(2), 1e6, log=True), **{**alphas, "extremal": [
                        {"alpha": 0.25, "size": math.log(2)}]})  # fmt: skip
    def size(alpha, size, most):
        log = math.log(1 / alpha)
        T = math.ceil(7 * log)
        r = math.ceil(math.log(4 * T, 4) - 1e-12)
        return T * (size + math.log(r)), most * size * log * (1 + math.log(1 + log))


# --- concentration ---


@statement("few.lemma22-p")
def indicators(ledger):
    """The indicators 1[z_i is not realizable by h] are independent Bernoulli random variables with
    success probability p_h = 1 - (1 - err_D(h))^m. If err_D(h) <= 0.01 alpha, then p_h <= 1 - (1 -
    0.01 alpha)^m <= 0.01 alpha m. If err_D(h) > alpha, then p_h >= 1 - (1 - alpha)^m >= 1 -
    e^(-alpha m) >= 0.2 alpha m, using that alpha m <= 1.

    The claims hold exactly. Claim (i) is attained as alpha m -> 0. The last step is loose, because
    1 - e^(-alpha m) >= .632 alpha m for alpha m <= 1. This stronger bound is needed, because the
    proof continues with Pr[scr_h <= 0.2 alpha n m]. The bound p_h >= 0.2 alpha m alone would only
    bound the probability Pr[scr_h <= 0.2 alpha n m] by one half. If err > alpha, then p_h > 1 - (1
    - alpha)^m.
    """

    @ledger.falsify("by all samples of a user", error=SHARE, m=Integer(1, 8), one=1.0,
                    mutant={"one": 0.9}, extremal=[{"error": 0.5, "m": 3}])  # fmt: skip
    def chance(error, m, one):
        none = sum(math.prod(error if z else 1 - error for z in word) * (not any(word))
                   for word in itertools.product((0, 1), repeat=m))  # fmt: skip
        return 1 + abs(1 - none - (one - (1 - error) ** m)), 1.0 + ROUNDING

    ends = [{"alpha": 1e-6, "share": 0.0}, {"alpha": 0.5, "share": 1.0}]
    domain = {"alpha": Interval(1e-6, 1.0, log=True), "share": SHARE, "extremal": ends}

    @ledger.falsify("(i)", part=0.01, mutant={"part": 0.0099}, **domain)
    def good(alpha, share, part):
        m = max(1, math.floor(share / alpha))
        return -math.expm1(m * math.log1p(-0.01 * alpha)), part * alpha * m * (1 + ROUNDING)

    @ledger.falsify("(ii), both inequalities", part=0.2, mutant={"part": 0.7}, **domain)
    @ledger.sharper(".632 for .2").falsify("(ii)", part=0.632, mutant={"part": 0.64}, **domain)
    def bad(alpha, share, part):
        m = max(1, math.floor(share / alpha + 1e-9))
        if alpha == 1:
            return None
        middle = -math.expm1(-alpha * m)
        above = -math.expm1(m * math.log1p(-alpha))
        return max(part * alpha * m, middle), min(middle, above) * (1 + 1e-12)


@statement("few.lemma22", expected="holds_proof_broken")
def both_cases(ledger):
    """Let m <= 1/alpha and n >= kappa size(P)/(epsilon alpha m) for a sufficiently large constant
    kappa. With probability 0.9 (over the input), the following hold for all h in H: (i) if err_D(h)
    <= 0.01 alpha, then scr_h(z) <= 0.05 alpha n m; (ii) if err_D(h) > alpha, then scr_h(z) > 0.1
    alpha n m.

    By exact binomials and a union bound, the lemma holds with kappa = 60. The bound covers all card
    H >= 2, epsilon <= 1 and m <= 1/alpha. The proof has the failure probability 0.01 instead of
    0.1, and 0.01 needs kappa = 120. Part (i) is the decisive part. Chernoff's bounds give alpha n m
    >= 37.5 (size + ln 100). One step of the proof does not follow. From p_h >= .2 alpha m alone,
    Lemma 25 gives no bound for Pr[scr_h <= .2 alpha n m]. At p_h = .2 alpha m, this probability is
    about 1/2. If the threshold has .1 instead of .2, as in the lemma, the step follows with
    exp(-alpha n m/40). The step also follows if the bound of p_h has 1 - 1/e instead of .2. The
    proof uses only alpha n m >= kappa size. For epsilon > kappa, the hypothesis requires too few
    users. The step exp(-10 size) <= 0.01/exp(size) of the proof needs card H >= 2. For one
    hypothesis, only n >= 0 is required.
    """
    domain = {"size": SIZE, "alpha": Interval(1e-4, 0.5, log=True), "share": SHARE,
              "extremal": [{"size": 2, "alpha": 0.01, "share": 0.0},
                           {"size": 2, "alpha": 0.01, "share": 1.0},
                           {"size": 3, "alpha": 0.5, "share": 1.0}]}  # fmt: skip

    @ledger.falsify("exact binomials, at errors 0.01 alpha and alpha", kappa=60.0, most=0.1,
                    mutant={"kappa": 30.0}, end_to_end=True, **domain)  # fmt: skip
    @ledger.sharper("failure 0.01 with kappa = 120").falsify(
        "the same", kappa=120.0, most=0.01, mutant={"kappa": 60.0}, **domain
    )  # fmt: skip
    def fails(size, alpha, share, kappa, most):
        """Use epsilon = 1, and the worse case for all hypotheses."""
        m = max(1, math.floor(share / alpha + 1e-9))
        n = math.ceil(kappa * math.log(size) / (alpha * m))
        good = binom.sf(math.floor(0.05 * alpha * n * m), n, 1 - (1 - 0.01 * alpha) ** m)
        bad = binom.cdf(math.floor(0.1 * alpha * n * m), n, 1 - (1 - alpha) ** m)
        return size * max(good, bad), most

    from_p = ledger.step(
        "from p_h >= 0.2 alpha m: Pr[scr_h <= 0.2 alpha n m] <= exp(-Theta(n alpha m)) by Lemma 25",
        fix="0.1 alpha n m, as in the lemma: exp(-alpha n m/40); or p_h >= (1 - 1/e) alpha m",
    )

    @from_p.sweep(
        "p_h = 0.2 alpha m, alpha m = 1/2", n=[10**6, 10**4], rate=0.001,
        lhs="Pr[scr_h <= 0.2 alpha n m]", rhs="exp(-0.001 alpha n m)",
    )  # fmt: skip
    def at_the_mean(n, rate):
        return binom.cdf(n // 10, n, 0.1), math.exp(-rate * n / 2)

    @ledger.step("with 0.1 alpha n m: exp(-alpha n m/40)").falsify(
        "exact binomials, any p_h >= 0.2 alpha m", share=Interval(1e-4, 1.0, log=True),
        n=Integer(1, 10**6), more=SHARE, rate=1 / 40, mutant={"rate": 1 / 10}, extremal=[
            {"share": 1e-4, "n": 10**5, "more": 0.0}, {"share": 1.0, "n": 500, "more": 0.0}],
    )  # fmt: skip
    def mended(share, n, more, rate):
        """Use alpha m = share."""
        p = 0.2 * share + more * (1 - 0.2 * share)
        return binom.cdf(math.floor(0.1 * share * n), n, p), math.exp(-rate * share * n)

    @ledger.step("with p_h of errors above alpha itself: 0.2 alpha n m").falsify(
        "exact binomials, Theta = 0.14", alpha=Interval(1e-4, 0.5, log=True), share=SHARE,
        n=Integer(1, 10**6), rate=0.14, mutant={"rate": 0.6}, extremal=[
            {"alpha": 0.01, "share": 1.0, "n": 300}],
    )  # fmt: skip
    def second(alpha, share, n, rate):
        m = max(1, math.floor(share / alpha + 1e-9))
        tail = binom.cdf(math.floor(0.2 * alpha * n * m), n, 1 - (1 - alpha) ** m)
        return tail, math.exp(-min(700, rate * n * alpha * m))

    @ledger.edge("at least two candidates").sweep(
        "exp(-10 size) for one hypothesis", size=0.0, lhs="exp(-10 size)", rhs="0.01/exp(size)"
    )  # fmt: skip
    def single(size):
        return math.exp(-10 * size), 0.01 / math.exp(size)

    ledger.consequence(
        "None. The lemma has 0.1 in place of the 0.2 of the step.", harm="a constant"
    )


# --- the theorem ---


def failure(n, m, alpha, candidates, epsilon):
    """Return the exact failure of the exponential mechanism with one good hypothesis.

    The error of the good hypothesis is 0.01 alpha. All other hypotheses have errors just above
    alpha, on the same examples.
    """
    p, q = 1 - (1 - 0.01 * alpha) ** m, 1 - (1 - alpha) ** m
    spread = np.arange(n + 1)
    good, bad = binom.pmf(spread, n, p), binom.pmf(spread, n, q)
    good, bad = good[: (good > 1e-15).nonzero()[0].max() + 1], bad
    lead = -epsilon / 2 * (spread[:, None] - spread[None, : good.size])
    return bad @ expit(lead + math.log(candidates - 1)) @ good


def learned(n, alpha, epsilon, m):
    """Return the best success in finding y, by a linear program.

    Examples are (x_0, 1) and, with probability alpha, (x_1, y).
    """
    laws = [[1 - alpha, alpha, 0.0], [1 - alpha, 0.0, alpha]]
    return best_success([users_law(law, m) for law in laws], n, epsilon)


@statement("few.thm4", expected="holds_proof_broken")
def pac(ledger):
    """Let C be any concept class with probabilistic representation dimension d, PRDim(C) = d. Then,
    for any sufficiently small alpha, epsilon > 0 and for all m in N, n_m^(PAC(C; alpha))(epsilon,
    delta = 0) = Thetatilde(d/epsilon + d/(epsilon alpha m)), where the task PAC(C; alpha) is, for
    any distribution D over X x {0,1} that has zero error on some concept c* in C, to output c: X ->
    {0,1} with err_D(c) = Pr_((x,y) ~ D)[c(x) != y] <= alpha.

    The upper bound was computed with all constants (pac_users), exactly on one good hypothesis and
    many bad hypotheses. In this case, 3/4 times the success of the exponential mechanism is above
    2/3, even with a tenth of the users. The proof multiplies 3/4 of the representation, 0.9 of
    Lemma 22 and 2/3 of Theorem 9. The product is 0.45. The proof of Lemma 22 gives 0.99 instead of
    0.9. With 0.99, and with 0.9 for Theorem 9, the product is 0.668.

    The lower bound holds for every class and every learner of success 2/3. Let q be the probability
    that a user has an example that a fixed dataset lacks. On this dataset, A outputs a good answer
    for (c, D) with probability at least e^(-1.5 epsilon n q) 2/3. So ln 4 times the inverse of this
    probability is a number of draws that represents C. Therefore, d is at most 1.5 epsilon n q +
    0.74. The value q = 1 gives d/epsilon. The distribution (1 - 4 alpha) x_0 + 4 alpha D gives q <=
    4 alpha m. The labels of x_0 add one more ln 2. This bound on q gives d/(epsilon alpha m). For
    two labels of one point, the least n is 2 ln(1.5)/epsilon = .81/epsilon, and d/epsilon is
    .69/epsilon. If d = 0, there is only one concept.
    """
    cases = [{"alpha": 0.3, "m": 1}, {"alpha": 0.3, "m": 3}, {"alpha": 0.1, "m": 10},
             {"alpha": 0.1, "m": 1000}]  # fmt: skip

    @ledger.sweep("success with explicit constants, one good and many bad hypotheses", cases=cases,
                  epsilon=[1.0, 0.3], candidates=[2, 1000], share=1.0, mutant={"share": 0.01},
                  end_to_end=True)  # fmt: skip
    def upper(alpha, m, epsilon, candidates, share):
        n = pac_users(math.log(candidates), alpha=alpha, epsilon=epsilon, m=m)
        used = min(m, math.floor(1 / alpha))
        lost = failure(math.ceil(share * n), used, alpha, candidates, epsilon)
        return 2 / 3, 0.75 * (1 - lost)

    @ledger.falsify("our algorithm: privacy of all outcomes", epsilon=EPSILON, cap=1.0, m=1.0,
                    mutant={"m": 0.5}, end_to_end=True, extremal=[{**MOVED, "epsilon": 3.0}],
                    **DATA)  # fmt: skip
    def private(items, other, epsilon, cap, m):
        both = Representation((ALL[:3], ALL[1:]))
        one, two = (pac_pmf(z, representation=both, epsilon=epsilon, cap=cap)
                    for z in examples(items, other))  # fmt: skip
        return np.abs(np.log(one / two)).max(), m * epsilon + ROUNDING

    @ledger.identity(
        "our algorithm: all hypotheses of two classes", data=Array(SHARE, (3, 2, 2)), chance=SHARE,
        epsilon=EPSILON, size=Integer(1, 3), grow=1.0, mutant={"grow": 2.0}, examples=60,
    )  # fmt: skip
    def ours(data, chance, epsilon, size, grow):
        z, P, classes = labelled(data), [chance, 1 - chance], (ALL3[1 : 1 + size], ALL3[[0, 7, 5]])
        found = pac_pmf(z, representation=Representation(classes, P), epsilon=epsilon)
        return found, pac_learner(classes, P, z, grow * epsilon)

    meant = pac_learner(THREE_CLASSES, (0.3, 0.5, 0.2), USERS, 1.5)
    for place in range(6):
        ledger.monte_carlo(
            f"our draws: outcome {place} of three classes", allowed=meant[place], draws=20_000,
            mutant=0.7, place=place,
        )(drawn)  # fmt: skip

    @ledger.identity("no draws of one class are an empty array", size=0, mutant={"size": 1})
    def no_draws(size):
        both = Representation((ALL3,))
        rng = np.random.default_rng(0)
        found = our_pac_learner(USERS, 0, representation=both, epsilon=1.0, rng=rng)
        return found.size, size

    @ledger.identity("a user has at most 1/alpha examples that are used", m=[1, 2, 3, 10, 1000],
                     alpha=[0.9, 0.5, 0.3, 0.25, 0.01], one=1.0, mutant={"one": 0.5})  # fmt: skip
    def used(m, alpha, one):
        most = max(k for k in range(1001) if k * alpha <= one)
        return used_examples(m, alpha), min(m, most)

    @ledger.identity("the number of users is the least for both conditions", size=[0.0, 2.0, 9.0],
                     alpha=[0.3, 0.02], epsilon=[0.3, 1.0, 8.0], m=[1, 3, 1000], less=0,
                     beta=[None, 0.1, 1e-3], mutant={"less": 1})  # fmt: skip
    def least(size, alpha, epsilon, m, beta, less):
        """Without a given beta, beta is 0.1, as the success of the theorem needs."""
        given = {} if beta is None else {"beta": beta}
        found = pac_users(size, alpha=alpha, epsilon=epsilon, m=m, **given)
        most = max(k for k in range(1001) if k * alpha <= 1)
        return found, pac_users_of(size, alpha, epsilon, min(m, most), beta or 0.1) - less

    @ledger.falsify(
        "the numbers of users are in Otilde(size/epsilon + size/(epsilon alpha m))",
        size=SIZE, alpha=ALPHA, m=Integer(1, 10**7), epsilon=Interval(1e-3, 1.0, log=True),
        most=600.0, mutant={"most": 30.0}, extremal=[{"size": 2, "alpha": 0.4, "m": 2,
                                                      "epsilon": 1.0}],
    )  # fmt: skip
    def order(size, alpha, m, epsilon, most):
        size = math.log(size)
        n = pac_users(size, alpha=alpha, epsilon=epsilon, m=m)
        return n - 1, most * (size / epsilon + size / (epsilon * alpha * m))

    @ledger.sweep("the best algorithm for two labels of one point: least n", alpha=[1.0, 0.6, 0.3],
                  m=[1, 2], n=[1, 2, 3], epsilon=[0.3, 1.0, 3.0], slow=1.5, mutant={"slow": 0.3},
                  end_to_end=True)  # fmt: skip
    def lower(alpha, m, n, epsilon, slow):
        """Use s <= 1 - e^(-epsilon n q/..)/2, which follows from a dataset of x_0 alone."""
        s, q = learned(n, alpha, epsilon, m), 1 - (1 - alpha) ** m
        return s * math.exp(-epsilon * n * q * slow / 1.5 / s), 0.5 + 1e-7

    @ledger.falsify("draws on a fixed dataset represent: d <= 1.5 epsilon n q + 0.74",
                    loss=Interval(1e-3, 50.0), extra=0.74, mutant={"extra": 0.6},
                    extremal=[{"loss": 50.0}])  # fmt: skip
    def draws(loss, extra):
        """Use loss = 1.5 epsilon n q, and real numbers of draws k with (1 - s)^k = 1/4."""
        s = math.exp(-loss) * 2 / 3
        return math.log(math.log(1 / 4) / math.log1p(-s)), loss + extra

    fix = "0.99, which Lemma 22's proof gives, and beta = 0.1 in Theorem 9: 0.668"
    ledger.step("3/4, 0.9 and 2/3 give success 2/3", fix=fix).sweep(
        "the product", lemma=0.9, theorem=2 / 3, lhs="claimed", rhs="3/4 * 0.9 * 2/3"
    )(product)
    ledger.step("with 0.99 and 0.9").sweep("the product", lemma=0.99, theorem=0.9,
                                           mutant={"lemma": 0.9})(product)  # fmt: skip
    ledger.consequence("The constant in the number of users must be larger.", harm="a constant")


def labelled(data):
    """Return users' examples (x, y) of three points, from numbers in [0, 1]."""
    points = np.minimum(np.floor(3 * data[:, :, 0]), 2).astype(int)
    labels = (data[:, :, 1] > 0.5).astype(int)
    return np.stack([points, labels], axis=2).tolist()


THREE_CLASSES = (ALL3[[1, 3]], ALL3[[0, 7, 5]], ALL3[[2]])
USERS = [[[0, 0], [1, 1]], [[2, 1], [1, 1]], [[0, 1], [2, 0]]]


def drawn(size, *, rng, place):
    """Run the learner for three classes with probabilities .3, .5 and .2."""
    given = Representation(THREE_CLASSES, (0.3, 0.5, 0.2))
    return our_pac_learner(USERS, size, representation=given, epsilon=1.5, rng=rng) == place


def product(lemma, theorem):
    return 2 / 3, 3 / 4 * lemma * theorem


@statement("few.boost")
def boost(ledger):
    """The standard techniques can boost the success probability from 2/3 to an arbitrary
    probability 1 - beta with a multiplicative factor of log(1/beta) cost.

    Two proofs give explicit constants. The first proof is direct. The first proof joins r =
    ceil(log_4(3/beta)) classes. With these classes, alpha n m is at least 37.5 (size + ln(3
    r/beta)). Also, alpha n m is at least 40/epsilon times size + ln(3 r/beta). For beta <= 1/3,
    this number is at most 3 ln(1/beta) times the number for the success probability 2/3. The term
    log(1/beta) is added to the size, and does not multiply the size. The second proof works for any
    learner. Run the learner r times on separate users. All runs fail with probability 3^-r. After
    these runs, choose among the r answers by the exponential mechanism on new users. The choice
    costs ln(r/beta)/(epsilon alpha m), which is of the order of the lower bound if d >= ln 2. The
    value of alpha grows by a constant factor. Without new users, epsilon would grow.
    """
    domain = {"size": SIZE, "beta": Interval(1e-12, 1 / 3, log=True),
              "epsilon": Interval(1e-3, 1.0, log=True), "extremal": [
                  {"size": 2, "beta": 1 / 3, "epsilon": 1.0},
                  {"size": 2, "beta": 1e-12, "epsilon": 1e-3}]}  # fmt: skip

    @ledger.falsify("joined classes: the number of users", most=3.0, mutant={"most": 0.3}, **domain)
    def direct(size, beta, epsilon, most):
        """Return both numbers in units of alpha m."""
        size, r = math.log(size), math.ceil(math.log(3 / beta, 4) - 1e-12)
        new = max(37.5, 40 / epsilon) * (size + math.log(3 * r / beta))
        old = max(37.5 * (size + math.log(100)), 40 / epsilon * (size + math.log(10)))
        return new, most * math.log(1 / beta) * old

    @ledger.falsify("classes joined: all r are bad", base=4.0, mutant={"base": 6.0},
                    **domain)  # fmt: skip
    def joined(size, beta, epsilon, base):
        r = math.ceil(math.log(3 / beta, base) - 1e-12)
        return 0.25**r, beta / 3 * (1 + ROUNDING)

    @ledger.falsify("runs: all r fail", base=3.0, mutant={"base": 5.0}, **domain)
    def runs(size, beta, epsilon, base):
        r = math.ceil(math.log(2 / beta, base) - 1e-12)
        return (1 / 3) ** r, beta / 2 * (1 + ROUNDING)
