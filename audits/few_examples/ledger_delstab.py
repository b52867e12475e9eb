"""Few examples per user: Algorithm 1 and its privacy, Section 3.2.2 and Appendix C.4."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import hypergeom

from algorithms.few_examples.deletion import Budget, delstab, delstab_pmf
from algorithms.few_examples.items import (
    AlternatingMajority,
    FunctionAlgorithm,
    Symmetric,
    noisy_majority,
)
from audits.few_examples.private_tests import sticks
from dpaudit.ledger import Array, statement
from dpaudit.search import Choice, Integer, Interval

ROUNDING = 1e-12
SHARE = Interval(0.0, 1.0)
WHOLE = {"epsilon": Interval(1.5, 9.0), "delta": Interval(1e-4, 0.9, log=True)}
FREE = {"more": Integer(0, 25), "ones": SHARE, "weights": Array(SHARE, (26,)),
        "steep": SHARE, "examples": 60, **WHOLE}  # fmt: skip


class Table(Symmetric):
    """Any probabilities of the answer 1, by the number of ones among bits."""

    universe, n_outcomes = 2, 2

    def __init__(self, p):
        self.p = np.asarray(p)

    def pmf_of_counts(self, counts):
        """Return the table's row."""
        p = self.p[np.asarray(counts)[..., 1]]
        return np.stack([1 - p, p], axis=-1)


class Kinds(Symmetric):
    """A table by the kind of the only item; of more items, the mean."""

    def __init__(self, p):
        self.p = np.stack([1 - np.asarray(p), p], axis=-1)
        self.universe, self.n_outcomes = self.p.shape

    def pmf_of_counts(self, counts):
        """Return the mean of the items' rows."""
        counts = np.asarray(counts, dtype=float)
        return counts @ self.p / np.maximum(counts.sum(axis=-1, keepdims=True), 1)


def noise(part, kappa):
    """TDLap with this kappa."""
    weights = np.exp(-part * np.abs(np.arange(-kappa, kappa + 1)))
    return weights / weights.sum()


def answers(p, n, ones, total, part, share, reach, *, tested=True, inside=True):
    """Laws of the output given R_1 = 0, ..., reach: Pr[0], Pr[1], Pr[no answer].

    Algorithm 1 for one bit per user and an A that counts, of which p are the probabilities of 1;
    4 kappa is `total`. Untested, all sets are stable; unless `inside`, T need not contain S.
    """
    keep, found = n - total, []
    count = np.arange(keep + 1)
    far = np.maximum(sticks(p[:, None], p[None], part), sticks(p[None], p[:, None], part)) > share
    for r in range(reach + 1):
        removed = np.arange(max(0, r - n + ones), min(r, ones) + 1)  # ones among r users
        left = ones - removed
        low, high = np.maximum(0, keep - (n - r) + left), np.minimum(keep, left)
        met = (count >= low[:, None]) & (count <= high[:, None])
        stable = ~((met @ far) & met).any(axis=1) | (not tested)
        if not stable.any():
            found.append([0.0, 0.0, 1.0])
            continue
        ways = np.array([math.comb(ones, s) * math.comb(n - ones, r - s) for s in removed[stable]],
                        dtype=float)  # fmt: skip
        rest, chosen = (n - r, left[stable]) if inside else (n, np.full(stable.sum(), ones))
        one = float(ways / ways.sum() @ hypergeom.pmf(count, rest, chosen[:, None], keep) @ p)
        found.append([1 - one, one, 0.0])
    return np.array(found)


def sized(more, ones, weights, steep, budget):
    """Users, ones, and a table of probabilities of 1 that may have a steep step."""
    n = budget.deleted + more
    step = np.arange(more + 1) > (more + 1) * weights[0]
    return n, min(round(ones * n), n - 1), steep * step + (1 - steep) * weights[: more + 1]


STEP = {"more": 25, "ones": 0.47, "weights": np.full(26, 0.5), "steep": 1.0, "epsilon": 3.0,
        "delta": 0.01}  # fmt: skip
FIRST = {**STEP, "ones": 0.0, "weights": np.concatenate([[0.0], np.ones(25)]), "steep": 0.0}
"""Steep at one half; whether there is a one."""


@statement("few.alg1")
def algorithm(ledger):
    """DelStab_(epsilon, delta, A)(x), for A: Z^((n - 4 kappa) m) -> O and n >= 4 kappa, takes
    epsilon-bar = epsilon/3, delta-bar = delta/(e^(2 epsilon-bar) + e^epsilon + 2) and kappa =
    kappa(epsilon-bar, delta-bar), samples R_1 ~ TDLap(epsilon-bar, delta-bar) and lets
    X_stable^(R_1) be the set of S subset of [n] with card S = R_1 such that A is (4 kappa - R_1,
    epsilon-bar, delta-bar)-LDDP at x_(-S). If X_stable^(R_1) is empty, it returns bot. Else it
    chooses S in X_stable^(R_1) uniformly at random and T superset of S of size 4 kappa uniformly at
    random, and returns A(x_(-T)).

    Our code is this, against a second version that counts, for every table of probabilities of 1,
    and its draws have its distribution. n = 4 kappa is allowed, and gives A an empty input: the
    answer is then one constant. The smallest kappa is 5, n = 20, for every epsilon and delta < 1,
    as delta-bar has e^epsilon (with e^epsilon-bar it is 4, n = 16); at epsilon = 1, delta = 10^-6
    it is kappa = 49, n = 196. The test counts S as deleted: it is about rests of n - 4 kappa users
    within the complement of S. Whether A sees the order of x_-T is left open and does not matter
    for privacy (see Lemma 18), but for answers (see Theorem 17). For an A with finitely many
    outputs all of it can be computed; sets are binom(n, 4 kappa) many.
    """
    twice = {"quarter": 4, "mutant": {"quarter": 3}, "tolerance": 1e-7, "floor": 1e-6}

    @ledger.identity("our distribution against a count", extremal=[STEP, FIRST],
                     end_to_end=True, **twice, **FREE)  # fmt: skip
    def counted(more, ones, weights, steep, epsilon, delta, quarter):
        budget = Budget(epsilon, delta)
        n, ones, p = sized(more, ones, weights, steep, budget)
        data = (np.arange(n) < ones).astype(int)[:, None]
        kappa, share = budget.kappa, budget.part_delta
        total = quarter * kappa
        table = np.concatenate([p, np.zeros(n - total - more)])
        rows = answers(table, n, ones, total, epsilon / 3, share, 2 * kappa)
        found = delstab_pmf(data, algorithm=Table(p), epsilon=epsilon, delta=delta)
        return found, noise(epsilon / 3, kappa) @ rows

    budget = Budget(9.0, 0.9)

    @ledger.monte_carlo("our draws: an answer, n = 30, 11 ones, a steep test: R_1 >= 6",
                        allowed=float(budget.noise[6:].sum()), draws=20_000, ones=11,
                        mutant={"ones": 10})  # fmt: skip
    @ledger.monte_carlo("our draws: no answer, R_1 <= 5", allowed=float(budget.noise[:6].sum()),
                        draws=20_000, ones=11, none=True, mutant={"ones": 12})  # fmt: skip
    def drawn(size, *, rng, ones, none=False):
        """One of the ten users that remain is enough: all but 5 ones have to be deleted."""
        learner = Table((np.arange(11) > 5) * 1.0)
        data = (np.arange(30) < ones).astype(int)[:, None]
        found = delstab(data, size, algorithm=learner, epsilon=9.0, delta=0.9, rng=rng)
        return (found == 2) == none

    @ledger.sharper("kappa >= 5").falsify(
        "kappa of Algorithm 1", least=5, mutant={"least": 6}, extremal=[
            {"epsilon": 9.0, "delta": 0.9}, {"epsilon": 100.0, "delta": 0.999}],
        epsilon=Interval(1e-2, 300.0, log=True), delta=Interval(1e-9, 0.999, log=True),
    )  # fmt: skip
    def smallest(epsilon, delta, least):
        return least, Budget(epsilon, delta).kappa


@statement("few.delta-bar")
def shares(ledger):
    """With epsilon-bar = epsilon/3 and delta-bar = delta/(e^(2 epsilon-bar) + e^epsilon + 2), for
    every probability p, (e^(2 epsilon-bar) + e^epsilon-bar + 2) delta-bar + e^(3 epsilon-bar) p <=
    delta + e^epsilon p.

    With equality in e^(3 epsilon-bar) = e^epsilon. delta-bar has room: e^epsilon-bar is enough for
    the e^epsilon in it, and then it is an equality for all epsilon and p. What is lost is a factor
    (e^epsilon + e^(2 epsilon/3) + 2)/(e^(2 epsilon/3) + e^(epsilon/3) + 2): 1 as epsilon -> 0, 1.41
    at epsilon = 1, 13 at epsilon = 9. So delta-bar is delta/4 for small epsilon.
    """
    domain = {"epsilon": Interval(1e-3, 20.0, log=True), "delta": Interval(1e-12, 0.5, log=True),
              "p": SHARE}  # fmt: skip

    @ledger.falsify("as printed", power=3.0, two=2.0, mutant={"two": 1.0},
                    extremal=[{"epsilon": 1e-3, "delta": 0.5, "p": 0.0}], **domain)  # fmt: skip
    @ledger.sharper("e^epsilon-bar for e^epsilon").falsify(
        power=1.0, two=2.0, mutant={"power": 0.0},
        extremal=[{"epsilon": 9.0, "delta": 0.5, "p": 0.0}], **domain,
    )  # fmt: skip
    def fits(epsilon, delta, p, power, two):
        part = epsilon / 3
        share = delta / (math.exp(2 * part) + math.exp(power * part) + two)
        owed = math.exp(2 * part) + math.exp(part) + 2
        return owed * share + math.exp(3 * part) * p, delta + math.exp(epsilon) * p


# --- Appendix C.4 ---


def pair_of(more, ones, weights, steep, epsilon, delta):
    """Laws given R_1 on neighbours: one more user has a 1 in the second."""
    budget = Budget(epsilon, delta)
    n, ones, p = sized(more, ones, weights, steep, budget)
    args = (budget.deleted, budget.part_epsilon, budget.part_delta, 2 * budget.kappa)
    return budget, answers(p, n, ones, *args), answers(p, n, ones + 1, *args)


def stable_sets(n, total, r, far, rests):
    """Sets of r users such that no two rests of n - total users among the others are far."""
    found = []
    for s in itertools.combinations(range(n), r):
        inside = np.array([not set(s) & set(rest) for rest in rests])
        if not far[np.ix_(inside, inside)].any():
            found.append(set(s))
    return found


def far_rests(data, weights, total, part, share, shown):
    """Which rests are far, for an A that reads the bits in their order."""
    n = data.size
    rests = list(itertools.combinations(range(n), n - total))
    code = [int(data[list(rest)] @ (1 << np.arange(n - total))) for rest in rests]
    p = weights[np.array(code) % weights.size] if shown else np.array(code) * 0.1
    both = np.maximum(sticks(p[:, None], p[None], part), sticks(p[None], p[:, None], part))
    return rests, p, both > share


ORDERED = {"data": Array(SHARE, (6,)), "user": Integer(0, 5), "total": Choice((3, 4, 5)),
           "weights": Array(SHARE, (8,)), "part": Interval(0.05, 1.0),
           "share": Interval(1e-3, 0.3)}  # fmt: skip


def alone(total):
    """One user differs from all others in x, and A shows it: x' is stable at 0, x at 1."""
    return {"data": np.array([0.0, 0, 0, 1, 0, 0]), "user": 3, "total": total, "part": 0.1,
            "weights": np.array([0.1] + [0.9] * 7), "share": 0.01}  # fmt: skip


@statement("few.obs36")
def grows(ledger):
    """For user-level neighboring datasets x, x' and all r_1 in {0, ..., n - 1}, if
    X_stable^(r_1)(x') is not empty, then X_stable^(r_1 + 1)(x) is not empty.

    Holds for every A, even one that sees the order, and for x = x' too: with S' every S of r_1 + 1
    users that contains S' and i is stable (if i is in S', any other user is added). The r_1 + 1
    cannot be r_1: one user that alone matters makes x stable at 1 and x' at 0. X_stable^r is about
    LDDP at a distance of 4 kappa - r and stops at r = 4 kappa: at r_1 = 4 kappa, which r_1 in {0,
    ..., n - 1} contains, there is no r_1 + 1. R_1 <= 2 kappa never gets there.
    """

    @ledger.falsify("six users, any A, by enumeration", step=1, mutant={"step": 0}, examples=50,
                    end_to_end=True, extremal=[alone(3), alone(5)], **ORDERED)  # fmt: skip
    def next_one(data, user, total, weights, part, share, step):
        """The number of r_1 < 4 kappa with a stable set at x', but none of r_1 + 1 users at x."""
        x = (data > 0.5).astype(int)
        y = x.copy()
        y[user] = 1 - y[user]
        kept = [far_rests(d, weights, total, part, share, True) for d in (x, y)]
        at_x, at_y = (
            [bool(stable_sets(6, total, r, far, rests)) for r in range(total + 1)]
            for rests, _, far in kept
        )
        return sum(at_y[r] and not at_x[r + step] for r in range(total)), 0

    ledger.step("S contains S' and i: then S is stable at x").falsify(
        "six users, any A: every such S", within=True, mutant={"within": False}, examples=40,
        extremal=[alone(3)], **ORDERED,
    )(contained)  # fmt: skip

    @ledger.falsify("bits, any A that counts: up to 25 users more than 4 kappa", back=0, step=1,
                    mutant={"step": 0}, extremal=[STEP, FIRST], **FREE)  # fmt: skip
    def counted(more, ones, weights, steep, epsilon, delta, back, step):
        _, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        one, other = x[:, 2] == 0, y[:, 2] == 0
        last = len(one) - 1
        bad = (other[:last] & ~one[step : last + step]) | (one[:last] & ~other[step : last + step])
        return bad.sum(), back

    @ledger.edge("n >= 4 kappa").sweep("r_1 = 4 kappa: the distance at r_1 + 1", kappa=5, lhs="0",
                                       rhs="4 kappa - (r_1 + 1)")  # fmt: skip
    def beyond(kappa):
        return 0, 4 * kappa - (4 * kappa + 1)


def contained(data, user, total, weights, part, share, within):
    x = (data > 0.5).astype(int)
    y = x.copy()
    y[user] = 1 - y[user]
    rests, _, far = far_rests(x, weights, total, part, share, True)
    others, _, other = far_rests(y, weights, total, part, share, True)
    bad = 0
    for r in range(total):
        good = stable_sets(6, total, r + 1, far, rests)
        for s in stable_sets(6, total, r, other, others):
            for extra in range(6):
                bigger = s | {user, extra} if within else s | {(user + 1) % 6, extra}
                bad += len(bigger) == r + 1 and bigger not in good
    return bad, 0


@statement("few.eq7")
def no_answer(ledger):
    """For user-level neighboring x, x' and calA = DelStab_(epsilon, delta, A), Pr[calA(x) = bot] <=
    delta-bar + e^epsilon-bar Pr[calA(x') = bot].

    Exact: X_stable^r is empty for r below some s, which moves by at most 1 between neighbours, so
    that (7) is Pr[R_1 <= s] <= delta-bar + e^epsilon-bar Pr[R_1 <= s - 1]. For s <= kappa both
    sides differ by delta-bar - Pr[R_1 = 0] only: e^epsilon-bar is attained, and delta-bar may be
    Pr[R_1 = 0] <= delta-bar/5 (Definition 8). A steep count attains it in Algorithm 1.
    """

    @ledger.falsify("all thresholds s", s=SHARE, fifth=1.0, grow=1.0, mutant={"grow": 0.9},
                    extremal=[{"s": 0.5, "epsilon": 3.0, "delta": 0.01}], **WHOLE)  # fmt: skip
    @ledger.sharper("delta-bar/5").falsify("all thresholds s", s=SHARE, fifth=0.2, grow=1.0,
                    extremal=[{"s": 0.5, "epsilon": 3.0, "delta": 0.01}], mutant={"grow": 0.99},
                    **WHOLE)  # fmt: skip
    def threshold(s, epsilon, delta, fifth, grow):
        budget = Budget(epsilon, delta)
        s = round(s * 2 * budget.kappa)
        law = np.cumsum(budget.noise)
        less = law[s - 1] if s else 0.0
        bound = fifth * budget.part_delta + math.exp(grow * budget.part_epsilon) * less
        return min(law[s], 1.0), bound * (1 + 1e-12)

    @ledger.falsify("Algorithm 1 on bits, any A that counts", grow=1.0, mutant={"grow": 0.9},
                    extremal=[STEP, FIRST], end_to_end=True, **FREE)  # fmt: skip
    def run(more, ones, weights, steep, epsilon, delta, grow):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        one, other = budget.noise @ x[:, 2], budget.noise @ y[:, 2]
        e = math.exp(grow * budget.part_epsilon)
        return max(one - e * other, other - e * one), budget.part_delta


@statement("few.eq8")
def shifted(ledger):
    """For any U_0 subset of O, Pr[calA(x) in U_0] <= delta-bar + e^epsilon-bar sum_(r_1 = 0..2
    kappa - 1) Pr[calA(x) in U_0 | R_1 = r_1] Pr[R_1 = r_1 + 1].

    A property of the noise alone: Pr[R_1 = r] <= e^epsilon-bar Pr[R_1 = r + 1], with equality for r
    >= kappa, and Pr[R_1 = 2 kappa] <= delta-bar/5. Tight up to delta-bar for answers that come at r
    >= kappa only; for those that come at r < kappa the right side is e^(2 epsilon-bar) times the
    left. The first step is printed with <= and is an equality.
    """
    late = {"chances": np.concatenate([np.zeros(100), np.ones(100)]), "epsilon": 3.0, "delta": 0.01}

    @ledger.falsify("any chances of an answer in U_0", chances=Array(SHARE, (200,)), share=1.0,
                    grow=1.0, mutant={"grow": 0.9}, extremal=[late], **WHOLE)  # fmt: skip
    @ledger.sharper("delta-bar/5").falsify("any chances", chances=Array(SHARE, (200,)), share=0.2,
                                           grow=1.0, mutant={"grow": 0.99}, extremal=[late],
                                           **WHOLE)  # fmt: skip
    def moved(chances, epsilon, delta, share, grow):
        budget = Budget(epsilon, delta)
        law, size = budget.noise, 2 * budget.kappa
        f = chances[np.linspace(0, 199, size + 1).astype(int)]
        right = math.exp(grow * budget.part_epsilon) * (f[:-1] @ law[1:])
        return f @ law, (share * budget.part_delta + right) * (1 + 1e-12)

    @ledger.falsify("Algorithm 1 on bits, any A that counts", grow=1.0, mutant={"grow": 0.0},
                    extremal=[STEP, FIRST], end_to_end=True, **FREE)  # fmt: skip
    def run(more, ones, weights, steep, epsilon, delta, grow):
        budget, x, _ = pair_of(more, ones, weights, steep, epsilon, delta)
        part, law = math.exp(grow * budget.part_epsilon), budget.noise
        gaps = [x[:, u] @ law - part * (x[:-1, u] @ law[1:]) for u in (0, 1)]
        return max(gaps), budget.part_delta


@statement("few.eq9")
def answered(ledger):
    """For user-level neighboring x, x' and r_1 < 2 kappa, if Pr[calA(x) in U_0 | R_1 = r_1] is not
    0, it is at most e^(2 epsilon-bar) Pr[calA(x') in U_0 | R_1 = r_1 + 1] + (e^epsilon-bar + 1)
    delta-bar; thus Pr[calA(x) in U_0] <= (e^(2 epsilon-bar) + e^epsilon-bar + 1) delta-bar + e^(3
    epsilon-bar) Pr[calA(x') in U_0].

    Holds given R_1 and as a whole, for every A. The proof makes two hops, J to J* to J'; that both
    are lost in full was not found. Three kinds of users a, b, c come close, of whom only a, b and
    b, c are close: x is stable without its c, and x' also without its a. J* has n - 4 kappa users
    of neither S nor S', and not user i, who is another one in x' (the sentence before says so);
    there are at least n - 2 r_1 - 2 of them, which is just enough at r_1 = 2 kappa - 1: 4 kappa
    cannot be less. The coupling is any, as every J and every J' is close to the same J* of its
    pair. Pr[A(x') in U_0] on the right is that of Algorithm 1. As a whole up to .62 epsilon of the
    3 epsilon-bar was reached, and .33 by counts of bits.
    """

    @ledger.falsify("given R_1, bits, any A that counts", two=2.0, mutant={"two": 0.0},
                    extremal=[STEP, FIRST], **FREE)  # fmt: skip
    def given(more, ones, weights, steep, epsilon, delta, two):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        part = budget.part_epsilon
        worst = 0.0
        for one, other in ((x, y), (y, x)):
            found = one[:-1, :2] - math.exp(two * part) * other[1:, :2]
            found = found[one[:-1, 2] == 0]
            worst = max([worst, *found.ravel()])
        return worst, (math.exp(part) + 1) * budget.part_delta + ROUNDING

    @ledger.falsify("as a whole, bits, any A that counts", three=3.0, mutant={"three": 0.5},
                    extremal=[STEP, FIRST], end_to_end=True, **FREE)  # fmt: skip
    def whole(more, ones, weights, steep, epsilon, delta, three):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        part, law = budget.part_epsilon, budget.noise
        one, other, e = law @ x[:, :2], law @ y[:, :2], math.exp(three * part)
        left = max(*(one - e * other), *(other - e * one))
        return left, (math.exp(2 * part) + math.exp(part) + 1) * budget.part_delta

    @ledger.falsify("six users, given R_1, any A that sees the order, by enumeration", step=1,
                    mutant={"step": 0}, examples=30, extremal=[alone(4)], end_to_end=True,
                    **{**ORDERED, "total": Choice((2, 4))})  # fmt: skip
    def ordered(data, user, total, weights, part, share, step):
        """4 kappa = total, r_1 < total/2; without the step, x' has no answer where x has one."""
        x = (data > 0.5).astype(int)
        y = x.copy()
        y[user] = 1 - y[user]
        worst = -1.0
        for d, other in ((x, y), (y, x)):
            one, two = (far_rests(z, weights, total, part, share, True) for z in (d, other))
            for r in range(total // 2):
                first = stable_sets(6, total, r, one[2], one[0])
                second = stable_sets(6, total, r + step, two[2], two[0])
                if first:
                    p = mean_answer(first, one[0], one[1])
                    q = mean_answer(second, two[0], two[1]) if second else (0.0, 0.0)
                    gaps = [a - math.exp(2 * part) * b for a, b in zip(p, q, strict=True)]
                    worst = max(worst, *gaps)
        return worst, (math.exp(part) + 1) * share + ROUNDING

    @ledger.step("J* exists, without S, S' and i").sweep(
        "users that are left, in the worst case", kappa=range(1, 60), four=4,
        mutant={"four": 3},
    )  # fmt: skip
    def room(kappa, four):
        n, r = 1000, 2 * kappa - 1
        return n - four * kappa, n - (r + (r + 1) + 1)

    @ledger.step("plugging into (8): the sum of the masses is at most 1").falsify(
        "delta-bar + e^epsilon-bar (e^epsilon-bar + 1) delta-bar, of the three terms", one=1.0,
        mutant={"one": 0.5}, extremal=[{"epsilon": 1.0, "delta": 0.01}], **WHOLE,
    )  # fmt: skip
    def plugged(epsilon, delta, one):
        budget = Budget(epsilon, delta)
        e, mass = math.exp(budget.part_epsilon), budget.noise[1:].sum()
        return 1 + e * (e + 1) * mass, one * (e**2 + e + 1)


def mean_answer(sets, rests, p):
    """Pr[0] and Pr[1] for a uniform stable set, and a uniform rest among the others."""
    inside = [[not s & set(rest) for rest in rests] for s in sets]
    one = np.mean([p[np.array(row)].mean() for row in inside])
    return 1 - one, one


@statement("few.lemma18")
def private(ledger):
    """DelStab_(epsilon, delta, A) is (epsilon, delta)-user-level DP.

    Stands all that was tried, exactly: any A that counts, with up to 25 users beyond 4 kappa; three
    kinds of users; an A that sees the order of 21 users. Of epsilon, counts of bits use a third: no
    answer against an answer. Three kinds of users with A close between the first two and the last
    two use .62 at delta -> 0 and .54 at delta/1000 (n = 4 kappa + 1, epsilon = 3, delta = .1, kappa
    = 7); that 3 epsilon-bar are attained was not found. Of delta at most Pr[R_1 = 0] is used where
    nothing else is: 1.7 percent at epsilon = 1. All parts of the algorithm are needed: it fails
    without the test, with kappa = 1, with 2 kappa deletions for 4 kappa, and if T need not contain
    S. That R_1 is truncated does not matter for privacy: beyond 2 kappa lies a mass below
    delta-bar, which has to be no answer. The order in which A reads is no matter, so long as x_-T
    keeps that of x. n may be known.
    """
    full = {"tested": True, "inside": True, "quarter": 4, "small": False}

    def outputs(more, ones, weights, steep, epsilon, delta, tested, inside, quarter, small):
        budget = Budget(epsilon, delta)
        n, ones, p = sized(more, ones, weights, steep, budget)
        kappa = 1 if small else budget.kappa
        total = quarter * kappa
        if n - total != more:  # a table for other sizes: the last value goes on
            p = np.concatenate([p, np.full(n - total - more, p[-1])])
        args = (total, budget.part_epsilon, budget.part_delta, 2 * kappa)
        rows = (answers(p, n, k, *args, tested=tested, inside=inside) for k in (ones, ones + 1))
        one, other = (noise(budget.part_epsilon, kappa) @ row for row in rows)
        e = math.exp(epsilon)
        left = max(np.maximum(one - e * other, 0).sum(), np.maximum(other - e * one, 0).sum())
        return left, delta

    for words, mutant, case in (
        ("any A that counts; the mutant does not test", {"tested": False}, FIRST),
        ("any A that counts; in the mutant T need not contain S", {"inside": False}, FIRST),
        (
            "any A that counts; the mutant has kappa = 1, without ln(1/delta)",
            {"small": True},
            FIRST,
        ),
    ):
        ledger.falsify(words, mutant=mutant, extremal=[case], end_to_end=True,
                       **full, **FREE)(outputs)  # fmt: skip

    @ledger.falsify("two kinds, one user more than are deleted; the mutant deletes 2 kappa",
                    quarter=4, mutant={"quarter": 2}, extremal=[{"epsilon": 3.0, "delta": 0.01}],
                    end_to_end=True, **WHOLE)  # fmt: skip
    def halves(epsilon, delta, quarter):
        """A shows its only user: x answers 0 after kappa or more deletions, x' answers 1."""
        budget, p = Budget(epsilon, delta), np.array([0.0, 1.0])
        total = quarter * budget.kappa
        args = (total, budget.part_epsilon, budget.part_delta, 2 * budget.kappa)
        rows = (answers(p, total + 1, k, *args) for k in (total // 2, total // 2 + 1))
        one, other = (budget.noise @ row for row in rows)
        e = math.exp(epsilon)
        left = max(np.maximum(one - e * other, 0).sum(), np.maximum(other - e * one, 0).sum())
        return left, delta

    @ledger.falsify("events of answers and no answer: (7) and (9) together", cube=3.0,
                    mutant={"cube": 0.5}, extremal=[STEP], **FREE)  # fmt: skip
    def together(more, ones, weights, steep, epsilon, delta, cube):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        e, one, other = math.exp(budget.part_epsilon), budget.noise @ x, budget.noise @ y
        gaps = one - e**cube * other, other - e**cube * one
        left = max(np.maximum(gap, 0).sum() for gap in gaps)
        return left, (e**2 + e + 2) * budget.part_delta

    chain = [{"users": (r + 2, 4 * k - 2 * r - 1, r), "epsilon": e, "delta": d, "scale": s}
             for e, d, k in ((9.0, 0.9, 5), (6.0, 0.5, 5), (3.0, 0.1, 7))
             for r in (5, 2 * k - 1) for s in (0.01, 0.3) if 4 * k > 2 * r]  # fmt: skip

    ledger.sweep("three kinds of users, our code: a, b and b, c are close; whole epsilon",
                 cases=chain, whole=1.0, share=1e-3, mutant={"whole": 0.5},
                 end_to_end=True)(kinds)  # fmt: skip
    ledger.sharper("two thirds of epsilon, for these").sweep(
        "three kinds of users, our code", cases=chain, whole=2 / 3, share=1e-3,
        mutant={"whole": 0.4},
    )(kinds)  # fmt: skip

    @ledger.sweep(
        "A sees the order of 21 users, our code", cases=[
            {"ones": ones, "user": user} for ones, user in (((3, 4, 9, 15), 4), ((0,), 0))],
        epsilon=9.0, delta=0.9, third=1.0, mutant={"third": 0.0}, end_to_end=True,
    )  # fmt: skip
    def ordered(ones, user, epsilon, delta, third):
        """Two items each, A looks at the first of its only user; epsilon = 9, kappa = 5."""
        data = np.zeros((21, 2), dtype=int)
        data[list(ones), 0] = 1
        other = data.copy()
        other[user, 0] = 0
        learner = FunctionAlgorithm(lambda items: [0.99, 0.01] if items[0] else [0.01, 0.99], 2, 2)
        p, q = (delstab_pmf(d, algorithm=learner, epsilon=epsilon, delta=delta)
                for d in (data, other))  # fmt: skip
        e = math.exp(third * epsilon)
        return max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum()), 0.001

    @ledger.sweep("a majority of many bits each, and an alternating one, our code",
                  steep=3.0, n=21, m=4, epsilon=9.0, delta=0.9, grow=1.0,
                  mutant={"grow": 0.0}, end_to_end=True)  # fmt: skip
    def majorities(steep, n, m, epsilon, delta, grow):
        worst = 0.0
        data = (np.arange(m) < np.array([0] * 6 + [m] * (n - 6))[:, None]).astype(int)
        other = data.copy()
        other[-1] = 0
        for learner in (noisy_majority(steep), AlternatingMajority(steep)):
            p, q = (delstab_pmf(d, algorithm=learner, epsilon=epsilon, delta=delta)
                    for d in (data, other))  # fmt: skip
            e = math.exp(grow * epsilon)
            worst = max(worst, np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum())
        return worst, 1e-3


def kinds(users, epsilon, delta, scale, whole, share):
    """n = 4 kappa + 1; a user of the first kind becomes one of the third."""
    a, b, c = users
    e = math.exp(epsilon / 3)
    learner = Kinds([scale, scale / e, scale / e**2])
    p, q = (
        delstab_pmf(np.repeat([0, 1, 2], size)[:, None], algorithm=learner, epsilon=epsilon,
                    delta=delta)
        for size in ((a, b, c), (a - 1, b, c + 1))
    )  # fmt: skip
    e = math.exp(whole * epsilon)
    return max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum()), share * delta
