"""Private geometric median: Section 3.2, privacy of FastCenter."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.stats import binom

from algorithms.common.noise import bounded_laplace_delta
from algorithms.geometric_median.center import center_weights, fast_center, fast_center_sigma
from audits.geometric_median.audit_algorithms import (
    groups,
    moved,
)
from audits.geometric_median.conventions import ANY_DELTA, EPSILON
from audits.geometric_median.ledger_center import (
    CHAIN,
    LONG_CHAIN,
    bounded_laplace_tail,
    largest_weights,
    samples,
    split,
)
from audits.geometric_median.ledger_warm_start import log_tail
from dpaudit import ApproxDP, Relation
from dpaudit.ledger import statement
from dpaudit.mutants import quieter
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array
from dpaudit.stats import oracles

DELTA_AND_EPSILON = {"epsilon": EPSILON, "delta": ANY_DELTA}
CLOUDS = {
    "places": Array(Interval(-6.0, 6.0), ("m", "d")),
    "copies": Array(Interval(0.0, 1.0), ("m",)),
    "m": Choice((3, 4, 5)),
    "d": Choice((1, 2)),
}


@statement("gm.lemma9.Z")
def sensitivity_of_the_weights(ledger):
    """Let D and D' differ in the nth entry. In Algorithm 3 on equal samples, in which n occurs at
    most 2k times among those of i in [n - 1], abs(Z - Z') <= 12, and even (9), sum_i abs(p_i -
    p'_i) <= 12.

    The constant 9 is sharp for n >= 9, because the weight of the replaced point moves by 1, not by
    4. So the scale of the noise on line 8 could be 18 / epsilon.
    """

    def worst(rows):
        """Return data for k = 8 in which k / 4 copies of n move `rows` weights from 1 to 0."""
        n = rows + 2
        table = np.full((n, 8), 1)
        table[1 : rows + 1] = [n - 1, n - 1, 1, 1, 1, 1, 0, 0]
        points = np.zeros((n, 1))
        points[0] = 50.0  # not a neighbour of any other point
        return {"points": points, "other": np.array([9.0]), "table": (table + 0.5) / n}

    domain = {
        "points": Array(Interval(-3.0, 3.0), ("n", 1)),
        "other": Array(Interval(-6.0, 6.0), (1,)),
        "table": Array(Interval(0.0, 1.0), ("n", 4)),
        "n": Choice((1, 2, 6, 10)),
    }
    some = {**domain, "extremal": [worst(8), worst(12), worst(16)], "bound": 12.0, "limit": 2}

    @ledger.falsify("|Z - Z'| <= 12", total=True, mutant={"limit": 3}, **some)
    @ledger.falsify("(9), sum of |p - p'| <= 12", total=False, mutant={"limit": 3}, **some)
    @ledger.sharper().falsify(
        "9 for 12, for the sum of |p - p'|",
        total=False,
        mutant={"bound": 8.0},
        **{**some, "bound": 9.0},
    )
    def change(points, other, table, limit, bound, total):
        n, k = len(points), table.shape[1]
        chosen = np.minimum((table * n).astype(int), n - 1)
        if (chosen[:-1] == n - 1).sum() > limit * k:
            return None
        replaced = points.copy()
        replaced[-1] = other
        moved = center_weights(points, chosen, 1.0) - center_weights(replaced, chosen, 1.0)
        return abs(float(moved.sum())) if total else float(np.abs(moved).sum()), bound


def filled(room, total):
    """Take as much weight as possible from the first places, up to the given total."""
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    return np.clip(total - before, 0.0, room)


def displacement(places, copies, n=1000):
    """Return n times the largest move of the mean, in units of r_hat, at the worst weights.

    The replaced point moves to a survivor `a`. Before the move, the replaced point is at the
    survivor farthest from `a`. The other points receive as much weight far from `a` as (8) allows,
    until Z > .55 n. Then an additional weight of 8 is put next to `a`.
    """
    places, times = split(places, copies, n)
    top, _ = largest_weights(places, times)
    alive = np.flatnonzero(top > 0)
    worst = None
    for a in alive:
        away = np.linalg.norm(places - places[a], axis=1)
        b = alive[np.argmax(away[alive])]
        others, replaced = times.copy(), times.copy()
        others[b] -= 1
        replaced[b] -= 1
        replaced[a] += 1
        other_top, _ = largest_weights(places, replaced)
        room = np.minimum(top, other_top) * others
        order = np.argsort(-away)
        first = np.empty(len(room))
        first[order] = filled(room[order], 0.55 * n + 1e-6 - top[b])
        second = first.copy()
        second[order[::-1]] += filled((room - first)[order[::-1]], 8.0)
        first[b] += top[b]
        second[a] += other_top[a]
        if min(first.sum(), second.sum()) <= 0.55 * n:
            continue
        means = [w @ places / w.sum() for w in (first, second)]
        moved = n * float(np.linalg.norm(means[0] - means[1]))
        worst = moved if worst is None else max(moved, worst)
    return worst


FARTHEST = {
    "places": np.array([[0.0], [2.0], [4.0], [6.0]]),
    "copies": np.array([0.001, 0.548, 0.224, 0.227]),
}


@statement("gm.lemma9.400")
def sensitivity_of_the_mean(ledger):
    """Let D and D' differ in the nth entry. In Algorithm 3 on equal samples, in which n occurs at
    most 2k times among those of i in [n - 1], under (8) and for Z, Z' > 0.55 n, the weighted
    averages satisfy norm(xbar - xbar') <= (96 + 104 + 16) r_hat / (0.55 n) <= 400 r_hat / n.

    The bound is loose. The largest move that was found is 62 r_hat / n for n = 1000. The largest
    move found is 31 r_hat / n for n = 20, and 63 r_hat / n for n = 10^5. In the example for n =
    1000, .1 % of the points lie at 0, 55 % at 2, 22 % at 4 and 23 % at 6 r_hat. A short proof gives
    211 r_hat / n. The vector Z' (xbar - xbar') is the sum of (p_i - p_i') (x_i - xbar) over the
    other points, plus two terms for the replaced point. For the balls of Lemma 8, any two centers
    are within 4 r_hat of one another. The constant 400 determines the noise of line 13.
    """

    @ledger.falsify(
        "adversarial weights, all within (8), (9) and Z > .55 n",
        extremal=[FARTHEST, CHAIN, LONG_CHAIN],
        bound=400.0,
        mutant={"bound": 27 / 0.55},  # omits the 8 r_hat between survivors
        **CLOUDS,
    )
    def far(places, copies, bound):
        found = displacement(places, copies)
        return None if found is None else (found, bound)

    step = ledger.step("the arithmetic of the last line")
    half = {"least": Fraction(1, 2)}

    @step.sweep("(8 12 + 8 (1 + 12) + 16) / .55 = 392.7", parts=216, bound=400, mutant=half)
    @ledger.sharper().sweep(
        "211 for 400: a weight of 8 within 12 r_hat, and a weight of 1 within 8 and 12",
        parts=116,
        bound=211,
        mutant=half,
    )
    def arithmetic(parts, bound, least=Fraction(11, 20)):
        return parts / least, Fraction(bound)


@statement("gm.lemma9.n20")
def common_survivors(ledger):
    """For n >= 20, where at least 0.55 n indices have p_i > 0 for D and at least 0.55 n for D', at
    least two indices survive in both, and one of them stands for the same point.

    The condition n >= 10 is enough. At n = 9, the two runs may have only one common index. For n <=
    20, the condition is not needed, because line 9 passes with probability at most delta / 100. If
    line 9 does not pass, the answer is 0, which is private.
    """

    @ledger.sweep(
        "beyond 2000 by 2 * .55 n - n = .1 n", n=range(20, 2000), mutant={"least": Fraction(1, 2)}
    )
    @ledger.sharper().sweep("n >= 10 for 20", n=range(10, 20), mutant={"least": Fraction(1, 2)})
    def common(n, least=Fraction(11, 20)):
        """Return 2 and the least number of common survivors if over .55 n survive each run."""
        return 2, 2 * (math.floor(least * n) + 1) - n

    @ledger.sharper().falsify(
        "for n <= 20 line 9 passes with probability at most delta, for all data",
        n=Integer(1, 20),
        extremal=[{"n": 20, "epsilon": 1.0, "delta": 0.999}],
        offset=True,
        mutant={"offset": False},
        **DELTA_AND_EPSILON,
    )
    def passes(n, epsilon, delta, offset):
        """Return the probability of line 9 at Z = n, the largest value."""
        short = offset * 24 / epsilon * math.log(24 / delta) - 0.45 * n
        return bounded_laplace_tail(max(short, 0.0), 24 / epsilon, delta), delta


@statement("gm.lemma9", expected="holds_proof_broken")
def privacy_of_fast_center(ledger):
    """If n >= 20, Algorithm 3 is (epsilon, delta)-DP.

    In fact, the lemma holds with (epsilon, 11 delta / 18) instead of (epsilon, delta). In one
    place, the proof counts copies of n over i in [n], but the proof means [n - 1]. The 'Line 19' of
    the proof is line 14.
    """
    options = {"radius": 1.0, "epsilon": 1.0, "delta": 0.1}
    laplace = "algorithms.geometric_median.center.bounded_laplace_mechanism"
    alone = groups((293, 0.0))
    edge = alone.copy()
    edge[-1] = 2.0
    for pair, given in (
        (moved(alone, 1e3, "Z = .55 n + 24 log(24 / delta), or one less"), (0.0, 0.01, 0.03, 0.5)),
        (moved(edge, -2.0, "a survivor on either edge"), ()),
    ):
        ledger.audit(
            partial(fast_center, **options),
            ApproxDP(1.0, 0.1, Relation.REPLACE_USER),
            pair,
            draws=1_500,
            mutants=[quieter(laplace, factor) for factor in given],
            survivors="Halved noise is not detected, and may stay undetected. On these data Z "
            "moves by 1, and on any data by at most 9, but line 8 has noise for 12. The mean moves "
            "by 4 r_hat / n, and by at most 62 r_hat / n on all data that were found, but line 13 "
            "has noise for 400. Privacy does not need the samples of line 3 as noise.",
        )

    @ledger.step("Fact 1 on the copies of n").falsify(
        "more than 2 k of them with probability delta / 18, exactly",
        n=Integer(4, 10**9),
        delta=Interval(1e-290, 0.999, log=True),
        extremal=[{"n": 20, "delta": 0.999}, {"n": 10**9, "delta": 1e-290}],
        limit=2,
        mutant={"limit": 1},
    )
    def copies(n, delta, limit):
        """Return both sides as -log, because the probability is below the smallest float."""
        k = samples(n, delta)
        return math.log(18 / delta), -log_tail(limit * k, (n - 1) * k, 1 / n)

    @ledger.step("the budget").falsify(
        "without conditioning: exact deltas of lines 9 and 14, and both bad events",
        extremal=[{"epsilon": 1.0, "delta": delta} for delta in (0.999, 1e-3)],
        factor=1.0,
        mutant={"factor": 0.5},
        **DELTA_AND_EPSILON,
    )
    def spent(epsilon, delta, factor):
        noise = 1600 * factor * math.sqrt(math.log(12 / delta)) / epsilon
        laplace = bounded_laplace_delta(epsilon / 2, math.log(24 / delta))
        gauss = float(oracles.gaussian(400.0, noise).delta(epsilon / 2))
        return laplace + gauss + delta / 18 + 2 * delta / 9, 11 * delta / 18

    furthest = displacement(**FARTHEST, n=1000)

    @ledger.step("the noise of line 13").falsify(
        "at the largest move of the mean that was found: exact delta",
        extremal=[{"epsilon": 1.0, "delta": 0.01}],
        moved=furthest,
        sensitivity=400.0,
        mutant={"sensitivity": 8.0},  # the sensitivity of one moved survivor
        **DELTA_AND_EPSILON,
    )
    def line_14(epsilon, delta, moved, sensitivity):
        sigma = 1000 * fast_center_sigma(1000, 1.0, epsilon, delta) * sensitivity / 400
        return float(oracles.gaussian(moved, sigma).delta(epsilon / 2)), delta / 6

    conditioning = ledger.step(
        "both runs are conditioned on (8), and still coupled by their samples",
        fix="bound P[A(D) in E] on the event that (8) holds for both datasets, and add 2 delta / "
        "9 for its complement. Then nothing is conditioned",
    )

    @conditioning.sweep(
        "11 of 20 points in one place, the others apart; one of the 11 leaves; delta = 1/2",
        n=20,
        k=3948,
        lhs="total variation distance between the samples of the two runs, each given its (8)",
        rhs="the distance that the coupling needs",
    )
    def apart(n, k):
        stays, leaves = (binom.sf(3 * k // 5, k, together / n) for together in (11, 10))
        # (8) requires f <= .6 k for the 11 points with f* = .55 k, and for 10 points with f* = .5
        # k.
        return 1 - (1 - stays) ** 11 / (1 - leaves) ** 10, 0.0

    branch = ledger.step(
        "'Z > .55 n (and similarly Z' > .55 n)', both at once, for coupled runs",
        fix="if Z' <= .55 n the other run never enters it. The probability that this run does is "
        "part of the delta / 6 of Fact 3, as the noise is bounded",
    )

    @branch.sweep(
        "12 of 21 points in one place, the others apart; one of the 12 leaves. All 12 have f = "
        ".75 k and so Z = 12. In each row .18 k samples are copies of the point that leaves",
        n=21,
        copies=0.18,
        lhs=".55 n",
        rhs="Z', although (8) holds for both and the others sample n less than 2 k times",
    )
    def other_weights(n, copies):
        f = 0.75 - copies  # in units of k, for the 11 points that stay; (8) requires at most .6
        assert 11 * copies <= 2
        return 0.55 * n, 11 * (f - 0.5) / 0.25
