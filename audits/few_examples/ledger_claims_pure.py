"""Few examples per user: claims about running times, PAC learning and hypothesis selection."""

from __future__ import annotations

import math

import numpy as np

from algorithms.few_examples.deletion import is_locally_private
from algorithms.few_examples.hypotheses import scheffe_comparison
from algorithms.few_examples.items import FunctionAlgorithm
from algorithms.few_examples.learning import clipped_errors, pac_users
from algorithms.few_examples.pairwise import (
    TableComparison,
    clipped_pairwise_pmf,
    clipped_scores,
)
from audits.few_examples.conventions import SHARE, UNIT
from audits.few_examples.hard_instances import best_success
from dpaudit.ledger import statement
from dpaudit.neighbors import Interval
from dpaudit.properties import Array

ROUNDING = 1e-9
ALPHA = Interval(1e-6, 0.4, log=True)
EPSILON = Interval(1e-3, 1.0, log=True)


# --- running times, Section 5 ---


def values_read(candidates, pairwise):
    """Return how many values of the candidates change the scores, by changing each value.

    For the learner of Section 4, a value is a label. For ClippedPairwiseEM, it is a value of psi.
    """
    if pairwise:
        values = np.full((candidates, candidates), -1.0)
        places = [(i, j) for i in range(candidates) for j in range(candidates) if i != j]
    else:
        values = np.zeros((candidates, 1), dtype=int)
        places = [(i, 0) for i in range(candidates)]

    def scores(table):
        if not pairwise:
            return clipped_errors([[(0, 0)]], table)
        return clipped_scores([[0]], comparison=TableComparison(table[:, :, None]), threshold=1.0)

    before, changed = scores(values), 0
    for place in places:
        other = values.copy()
        other[place] = 1
        changed += bool((scores(other) != before).any())
    return changed


@statement("few.sec5-linear", expected="ambiguous")
def running_time(ledger):
    """Another limitation of our algorithms is their computational inefficiency, as their running
    time grows linearly with the size of the possible outputs.

    As a limitation, the sentence holds: the running time grows at least linearly, because every
    candidate has a score. For the learner of Section 4 and fixed data, the time is linear. But
    ClippedPairwiseEM (Theorems 37 and 40 to 46) compares all pairs. For a general psi, all card(H)
    (card(H) - 1) values can change the scores, so every implementation must read them. So the time
    of ClippedPairwiseEM is quadratic in the number of candidates. For the cover of Theorem 43, this
    squares the factor e^(k log(k/alpha)). The corrected words are "linearly (Section 4) or
    quadratically (Appendix E)". For Algorithm 1, see few.sec5-lddp.
    """
    ledger.reading("at least linearly").sweep(
        "values that change the scores, by changing each value: at least one for each candidate",
        size=[2, 5, 10, 20], pairwise=[False, True], power=1, mutant={"power": 2},
        end_to_end=True,
    )(at_least)  # fmt: skip

    ledger.reading("linearly, for the learner of Section 4").sweep(
        "values of 2 card(H) candidates, against twice those of card(H)", size=[2, 5, 10],
        pairwise=False, factor=2.0, mutant={"factor": 1.9}, end_to_end=True,
    )(doubled)  # fmt: skip

    ledger.reading("quadratically, for ClippedPairwiseEM").identity(
        "values that change the scores", size=[2, 5, 10, 20], less=1, mutant={"less": 0},
        end_to_end=True,
    )(squared)  # fmt: skip

    @ledger.reading("linearly, for ClippedPairwiseEM", fails=True).sweep(
        "values that change the scores: 2 card(H) candidates, and twice those of card(H)", size=10,
        lhs="values for 2 card(H)", rhs="twice the values for card(H)",
    )  # fmt: skip
    def pairs(size):
        changed = []
        for H in (size, 2 * size):
            psi = np.full((H, H), -1.0)  # one user with one item
            np.fill_diagonal(psi, -np.inf)
            places = [(i, j) for i in range(H) for j in range(H) if i != j]
            raised = [np.where(np.arange(H) == j, 1.0, psi[i]).max() for i, j in places]
            changed.append(sum(r != psi[i].max() for r, (i, _) in zip(raised, places)))  # noqa: B905
        return changed[1], 2 * changed[0]

    ledger.consequence(
        "The algorithms of Appendix E are slower than Section 5 says: quadratic in the number of "
        "candidates.",
        harm="running time",
    )


def at_least(size, pairwise, power):
    return size**power, values_read(size, pairwise)


def doubled(size, pairwise, factor):
    changed = [values_read(n, pairwise) for n in (2 * size, size)]
    return changed[0], factor * changed[1]


def squared(size, less):
    return values_read(size, True), size * (size - less)


@statement("few.sec5-lddp")
def slow_test(ledger):
    """In fact, the approximate-DP algorithm could even be slower than this since we need to check
    whether A is LDDP at a certain input x (which involves computing d_epsilon(A(x_(-S)) ||
    A(x_(-S')))).

    The sentence is an understatement. The test needs the distributions of A on all binom(n, 4
    kappa) sets of users, whatever the number of outputs is. This number is 6.5 10^7 for n = 200 and
    kappa = 49 (epsilon = 1, delta = 10^-6), and 4 10^116 for n = 392. For a fixed kappa, the time
    is n^Theta(log(1/delta)/epsilon). If A does not depend on the order of the items, counts of
    items are enough, and the test is much faster. The distribution of A must be known, because
    draws of A cannot decide the test. The paper prints A_(-S) for A(x_(-S)), a misprint.
    """

    @ledger.identity("sets of users on which our test runs an A that depends on the order",
                     n=[5, 8, 10], r=[1, 2, 4], deleted=0, mutant={"deleted": 1},
                     end_to_end=True)  # fmt: skip
    def sets(n, r, deleted):
        calls = []

        def called(items):
            calls.append(tuple(items))
            return [0.5, 0.5]

        algorithm = FunctionAlgorithm(called, universe=n, n_outcomes=2)
        data = np.arange(n)[:, None]
        is_locally_private(data, algorithm=algorithm, removed=r, epsilon=1.0, delta=0.1)
        return len(set(calls)), math.comb(n, r - deleted)


# --- PAC learning ---


@statement("few.fn7")
def extra_examples(ledger):
    """If m is larger (than 1/alpha), then we can simply disregard the extra examples (as the first
    term dominates the bound).

    The remark holds, but 1/alpha need not be an integer. The learner uses floor(1/alpha) examples
    of each user. For alpha <= 1/2, the number of users is then at most 1.5 times the number for m =
    1/alpha. The worst alpha is just above 1/3. The bound d/epsilon + d/(epsilon alpha m') with m' =
    floor(1/alpha) is at most 2.5 d/epsilon.
    """
    domain = {"alpha": Interval(1e-9, 0.5, log=True),
              "extremal": [{"alpha": 1 / 3 + 1e-6, **c} for c in (
                  {"size": 1000.0, "epsilon": 0.01, "more": 7.0},
                  {"size": 1.0, "epsilon": 1.0, "more": 1.0})],
              "size": Interval(0.7, 1e6, log=True), "epsilon": EPSILON,
              "more": Interval(1.0, 1e3, log=True)}  # fmt: skip

    @ledger.falsify("our number of users for m >= 1/alpha", most=1.5, mutant={"most": 1.4},
                    **domain)  # fmt: skip
    def users(alpha, size, epsilon, more, most):
        """Compare with the two conditions of the proof, which are for alpha m = 1."""
        needed = max(37.5 * (size + math.log(100)), 40 / epsilon * (size + math.log(10)))
        found = pac_users(size, alpha=alpha, epsilon=epsilon, m=math.ceil(more / alpha))
        return found, most * needed + 1

    @ledger.falsify("the bound of Theorem 4 with floor(1/alpha) examples", most=2.5,
                    mutant={"most": 2.4}, **domain)  # fmt: skip
    def bound(alpha, size, epsilon, more, most):
        used = min(math.ceil(more / alpha), math.floor(1 / alpha))
        return size / epsilon + size / (epsilon * alpha * used), most * size / epsilon


@statement("few.thm40-same")
def same_bounds(ledger):
    """Observe that our bounds (of Theorem 40) are (up to polylogarithmic factors) the same except
    for the d vs d_VC in the last two terms.

    The quotient of the two sums is between 1 and max(1, d/d_VC). The first terms are equal, so the
    bounds agree if the first term is the largest. This is so for m >= 1/alpha^2, also if d is much
    larger than d_VC.
    """
    domain = {"d": Interval(1.0, 1e6, log=True), "part": SHARE, "alpha": ALPHA, "epsilon": EPSILON,
              "m": Interval(1.0, 1e15, log=True)}  # fmt: skip
    worst = [{"d": 100.0, "part": 1.0, "alpha": 1e-4, "epsilon": 0.1, "m": 1.0}]

    @ledger.falsify("upper bound, against d/d_VC times the lower bound", power=1.0,
                    mutant={"power": 0.5}, extremal=worst, **domain)  # fmt: skip
    def quotient(d, part, alpha, epsilon, m, power):
        vc = d ** (1 - part)
        rates = 1 / (alpha * epsilon * math.sqrt(m)) + 1 / (alpha**2 * m)
        upper, lower = d / epsilon + d * rates, d / epsilon + vc * rates
        return max(upper / lower, lower / upper), (d / vc) ** power * (1 + ROUNDING)

    @ledger.falsify("m >= 1/alpha^2: upper bound, against three times the lower bound", reach=1.0,
                    mutant={"reach": 1e-3}, extremal=worst, **domain)  # fmt: skip
    def many(d, part, alpha, epsilon, m, reach):
        m, vc = m * reach / alpha**2, d ** (1 - part)
        rates = 1 / (alpha * epsilon * math.sqrt(m)) + 1 / (alpha**2 * m)
        return d / epsilon + d * rates, 3 * (d / epsilon + vc * rates)


@statement("few.lower-d-eps")
def lower_bound(ledger):
    """The lower bound Omegatilde(d/epsilon) was shown in [GKM21] (for any value of m). (Theorem 40:
    The lower bound Omega(d/epsilon) was shown in [19] (and holds even for realizable PAC
    learning).)

    The paper cites the same result with and without a logarithm. The bound holds without a
    logarithm, for every m and for realizable PAC learning. If n users are enough, then d <= 1.5
    epsilon n + .74 (few.thm4). Two concepts need n >= .81/epsilon users. If d is not 0, it is at
    least ln 2. So n is at least .4 d/epsilon. The cited paper was not checked.
    """

    @ledger.falsify(".4 d/epsilon, against the larger of the two bounds, in units of 1/epsilon",
                    d=Interval(math.log(2), 1e6, log=True), part=0.4, mutant={"part": 0.43},
                    extremal=[{"d": 1.955}, {"d": math.log(2)}])  # fmt: skip
    def both(d, part):
        return part * d, max((d - 0.74) / 1.5, 2 * math.log(1.5))

    @ledger.sweep("one item tells the concept: .81/epsilon, against the least n by linear programs",
                  epsilon=[0.25, 0.3, 0.5, 1.0], two=2.0, mutant={"two": 4.0},
                  end_to_end=True)  # fmt: skip
    def two_concepts(epsilon, two):
        fewest = next(n for n in range(1, 9) if best_success(np.eye(2), n, epsilon) >= 2 / 3)
        return two * math.log(1.5) / epsilon, fewest


# --- hypothesis selection ---


@statement("few.e1-normalized")
def normalized(ledger):
    """Note that these distributional scores are normalized, so they are in [-1, 1].

    The scores of a distribution are means and maxima of values of psi. The ends are attained by psi
    = 1 and psi = -1. The scores of a dataset are in [-n m, n m], and the clipped scores are in [-n
    min{tau, m}, n min{tau, m}].
    """
    domain = {"psi": Array(UNIT, (3, 3, 2)), "p": SHARE, "extremal": [
        {"psi": np.full((3, 3, 2), v), "p": 0.5} for v in (1.0, -1.0)]}  # fmt: skip

    @ledger.falsify("three candidates and two items: the largest absolute score", size=1.0,
                    mutant={"size": 2.0}, **domain)  # fmt: skip
    def scores(psi, p, size):
        pairs = size * psi @ np.array([1 - p, p])
        np.fill_diagonal(pairs, -np.inf)
        return np.abs(pairs.max(axis=1)).max(), 1.0 + ROUNDING

    @ledger.falsify("our scores of three users with four items", tau=Interval(0.1, 8.0), items=4,
                    mutant={"items": 3}, **{**domain, "extremal": [
                        {**c, "tau": 8.0} for c in domain["extremal"]]})  # fmt: skip
    def datasets(psi, p, tau, items):
        data = (np.arange(12).reshape(3, 4) % 5 < 5 * p).astype(int)
        found = clipped_scores(data, comparison=TableComparison(psi), threshold=tau)
        return np.abs(found).max(), 3 * min(tau, items) + ROUNDING


def distance(p, q):
    """Return the total variation distance."""
    return np.abs(p - q).sum() / 2


def population_scores(hypotheses, D):
    """Return the Scheffe score of each hypothesis: the largest P(W) - D(W), Theorem 41."""
    found = []
    for P in hypotheses:
        others = (Q for Q in hypotheses if Q is not P)
        found.append(max((P - D)[P > Q].sum() for Q in others))
    return np.array(found)


def three_laws(s, t, u):
    """Return P_1, P_2 and D, where P_1 is closer to D and P_2 has the better score."""
    step, far = np.array([s, t / 2, -s, -t / 2]), s + t + u
    return 0.25 + step, 0.25 - step, 0.25 + step + np.array([0, -far, 0, far])


@statement("few.hs-goal")
def closest(ledger):
    """The goal (of Hypothesis Selection) is, for the underlying distribution D, to output P* in
    frakP that is the closest (in TV distance) to D. We state below the guarantee one can get from
    our approach.

    Theorem 41 states the guarantee, and the guarantee is weaker than the goal. The approach finds a
    candidate within 3 times the least distance, plus the error of the scores. However many users
    there are, it need not find the closest candidate. Take four symbols, v = (s, t/2, -s, -t/2) and
    w = s + t + u. Let P_1 = 1/4 + v, P_2 = 1/4 - v and D = P_1 + (0, -w, 0, w). For s = .02 and t =
    u = .001, the distances from D are .022 for P_1 and .061 for P_2. The scores of D are .022 for
    P_1 and .019 for P_2. The mechanism returns P_2 with probability .9994 for 10^4 users with one
    item and epsilon = 1. As t and u tend to 0, the ratio of the distances tends to 3. Theorem 41 is
    not affected, because .061 <= alpha if .022 <= 0.1 alpha. So the goal is "to output P with
    d_tv(P, D) <= alpha if the closest candidate is within 0.1 alpha".
    """

    @ledger.falsify("the candidate with the best score, against 3 times the least distance",
                    weights=Array(SHARE, (4, 4)), factor=3.0, mutant={"factor": 1.0}, extremal=[
                        {"weights": np.array(three_laws(0.02, 1e-3, 1e-3))[[0, 1, 0, 2]]}],
                    )  # fmt: skip
    def best(weights, factor):
        """Use three candidates and D; the mutant is the claim that the closest is found."""
        if (weights.sum(axis=1) == 0).any():
            return None
        *hypotheses, D = weights / weights.sum(axis=1, keepdims=True)
        chosen = hypotheses[population_scores(hypotheses, D).argmin()]
        least = min(distance(P, D) for P in hypotheses)
        return distance(chosen, D), factor * least + ROUNDING

    @ledger.sharper("the factor 3 cannot be smaller: the farther candidate is returned").sweep(
        "our mechanism on n users with the frequencies of D: Pr[P_2]", n=[10**4, 10**5], s=0.02,
        t=1e-3, u=1e-3, mutant={"n": 100}, end_to_end=True,
    )  # fmt: skip
    def returned(n, s, t, u):
        P1, P2, D = three_laws(s, t, u)
        data = np.repeat(np.arange(4), np.round(n * D).astype(int))[:, None]
        found = clipped_pairwise_pmf(data, comparison=scheffe_comparison(np.array([P1, P2])),
                                     threshold=1.0, epsilon=1.0)  # fmt: skip
        return 0.999, found[1] if distance(P1, D) < distance(P2, D) / 2.7 else 0.0


@statement("few.thm41-item")
def at_one_item(ledger):
    """For m = 1, the above theorem (Theorem 41) essentially matches the item-level DP sample
    complexity bound from [8].

    Without logarithms, the item-level bound is log(card P)/alpha^2 + log(card P)/(alpha epsilon).
    At m = 1, Theorem 41 has the additional term log(card P)/epsilon. This term is at most alpha
    times the second term. So for alpha < 0.1, the bound is at most 1.1 times the item-level bound.
    The item-level bound is cited, and was not run.
    """

    @ledger.falsify("Theorem 41 at m = 1, against 1.1 times the item-level bound", most=1.1,
                    alpha=Interval(1e-6, 0.1, log=True), epsilon=Interval(1e-3, 100.0, log=True),
                    size=Interval(0.7, 1e6, log=True), mutant={"most": 1.05}, extremal=[
                        {"alpha": 0.0999, "epsilon": 1e-3, "size": 1.0}])  # fmt: skip
    def sums(alpha, epsilon, size, most):
        m = 1
        ours = size / epsilon + size / (alpha * epsilon * math.sqrt(m)) + size / (alpha**2 * m)
        return ours, most * (size / alpha**2 + size / (alpha * epsilon))
