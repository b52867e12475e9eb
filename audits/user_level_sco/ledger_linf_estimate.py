"""User-level DP-SCO: robust statistics in l_inf, Assumption 28 and Algorithm 7."""

from __future__ import annotations

import math
import statistics

import numpy as np

from algorithms.user_level_sco.coordinatewise import (
    robust_gradient,
    robust_statistic,
)
from audits.user_level_sco import transcribed
from audits.user_level_sco.conventions import FEW, SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
FAR = Interval(-50.0, 50.0)
BATCHES = Choice((1, 2, 4, 5, 8, 11))
POINTS = {"points": Array(Interval(-5.0, 5.0), ("b", "d")), "b": BATCHES, "d": FEW}
TRIMMED = {"share": Choice((0.0, 0.5, 1.0))}
"""Fraction that is trimmed at either end: none, half of the possible, or all but the median."""

ALIKE = {"points": np.zeros((5, 2)), "moves": np.ones((5, 2))}


def middle(points, share):
    """Return a mean, a trimmed mean, or the median."""
    if share == 1:
        return robust_statistic(points)
    trim = int(share * ((len(points) - 1) // 2))
    return robust_statistic(points, statistic="trimmed_mean", trim=trim)


def lower_median(points, share):
    return np.sort(points, axis=0)[(len(points) - 1) // 2]


def doubled(points, share):
    return 2 * middle(points, share)


# --- robust statistics ---


@statement("sco2.C1.lip")
def lipschitz_statistics(ledger):
    """If each data point is perturbed by at most iota in l_inf norm, coordinate-wise robust
    statistics shift by at most iota. If x_t - x'_t is bounded coordinate-wise, then
    norm_inf(q_t(Z_i) - q'_t(Z_i)) <= beta norm_inf(x_t - x'_t) by smoothness, and the robust
    statistic of the gradients moves by at most beta norm_inf(x_t - x'_t).

    The bounds are attained if all points move in the same way and all gradients have the same
    Hessian. The bounds hold for every statistic that is monotone in each point and commutes with
    shifts, including the mean. So the 1-Lipschitz property is not what makes a statistic robust. We
    read "remains bounded by" as "moves by at most", for two points x_t and x'_t and the same users.
    """

    @ledger.falsify(
        "moved points", moves=Array(UNIT, ("b", "d")), iota=Interval(0.0, 2.0), part=1.0,
        extremal=[ALIKE | {"iota": 1.0, "share": 1.0}],
        mutant={"part": 0.9}, **POINTS, **TRIMMED,
    )  # fmt: skip
    def moved(points, moves, iota, share, part):
        apart = middle(points + iota * moves, share) - middle(points, share)
        return np.abs(apart).max(), part * iota + ROUNDING

    @ledger.falsify(
        "gradients of convex quadratics with diagonally dominant Hessians, at two points",
        own=Array(SHARE, ("b", 2)), cross=Array(UNIT, ("b",)), b=BATCHES, x=Array(UNIT, (2,)),
        z=Array(UNIT, ("b", 2)), part=1.0, mutant={"part": 0.9}, **TRIMMED, extremal=[
            {
                "own": np.ones((5, 2)), "cross": np.zeros(5), "x": np.ones(2),
                "z": np.zeros((5, 2)), "share": 1.0,
            }
        ],
    )  # fmt: skip
    def gradients(own, cross, x, z, share, part):
        """Compare the statistics at x and at 0.

        A Hessian has `cross` off the diagonal and `own + abs(cross)` on the diagonal.
        """
        c = np.abs(cross)[:, None]
        at_0 = -((own + c) * z + cross[:, None] * z[:, ::-1])
        at_x = at_0 + (own + c) * x + cross[:, None] * x[::-1]
        beta = (own + 2 * c).max()
        apart = middle(at_x, share) - middle(at_0, share)
        return np.abs(apart).max(), part * beta * np.abs(x).max() + ROUNDING


@statement("sco2.ass28")
def robust_statistics(ledger):
    """Of B vectors X_i let X_rs be any robust statistic such that: (i) for any rho >= 0, if more
    than B/2 points lie within B_inf(X', rho) for a point X', then X_rs lies in it; (ii) if Y_i =
    X_i + iota_i with norm_inf(iota_i) <= Delta for any Delta >= 0, then norm_inf(X_rs - Y_rs) <=
    Delta; (iii) for any real numbers a and b, if Z_i = a X_i + b for each i, then Z_rs = a X_rs +
    b.

    The coordinate-wise median satisfies the assumption. For even B, the median must be the mean of
    the middle two points. No trimmed mean that trims fewer values than the median satisfies the
    assumption (Remark 29). Property (i) is sharp, because (i) fails if B is even and only B/2
    points are in the ball. Lemma 33 needs property (iii) for negative values of `a`, but the lower
    median violates (iii) for these values. Lemma 33 also needs a vector `b`, although the paper
    prints "real numbers". For a statistic that treats each coordinate separately, as in Algorithm
    7, property (iii) is the same for a vector `b` and for a real number `b`. The mean also
    satisfies (ii) and (iii). Only property
    (i) expresses robustness.
    """

    @ledger.falsify(
        "(i)", inner=Array(UNIT, ("b", "d")), outer=Array(FAR, ("b", "d")), center=FAR,
        rho=Interval(0.0, 3.0), b=BATCHES, d=FEW, extra=1, mutant={"extra": 0}, extremal=[
            {"inner": np.ones((4, 1)), "outer": np.full((4, 1), 9.0), "center": 0.0, "rho": 1.0},
            {"inner": np.ones((5, 1)), "outer": np.full((5, 1), 9.0), "center": 0.0, "rho": 1.0},
        ],
    )  # fmt: skip
    def inside(inner, outer, center, rho, extra):
        points, most = center + outer, len(inner) // 2 + extra
        points[:most] = center + rho * inner[:most]
        return np.abs(robust_statistic(points) - center).max(), rho + ROUNDING

    @ledger.falsify(
        "(ii)", moves=Array(UNIT, ("b", "d")), reach=Interval(0.0, 9.0), part=1.0,
        mutant={"part": 0.9}, **POINTS,
        extremal=[ALIKE | {"reach": 1.0}],
    )  # fmt: skip
    def moved(points, moves, reach, part):
        apart = robust_statistic(points + reach * moves) - robust_statistic(points)
        return np.abs(apart).max(), part * reach + ROUNDING

    @ledger.identity(
        "(iii), with b a vector", a=Interval(-3.0, 3.0), shift=Array(FAR, ("d",)), floor=1.0,
        tolerance=1e-9, choose=middle, mutant={"choose": lower_median}, **POINTS,
        extremal=[{"points": np.array([[0.0], [1.0]]), "shift": np.zeros(1), "a": -1.0}],
        shared="the assumption compares two values of the statistic",
    )  # fmt: skip
    def linear(points, a, shift, choose):
        return choose(a * points + shift, 1.0), a * choose(points, 1.0) + shift


@statement("sco2.remark29", expected="refuted")
def median_and_trimmed_mean(ledger):
    """Common robust statistics, such as the (coordinate-wise) median and trimmed mean, satisfy
    Assumption 28.

    The claim is true for the median if, for an even number of points, the median is the mean of the
    middle two points. (The lower median fails (iii) for negative `a`.) A trimmed mean satisfies
    (ii) and (iii). A trimmed mean satisfies (i) only if (B - 1)//2 points are trimmed at either
    end. Such a trimmed mean is the median. Take six points at 1 and five points at 10. The
    statistic is 5 if 10% are trimmed, 4.86 if 25% are trimmed, and 4.6 if a third is trimmed. Lemma
    32 uses (i) only for 2B/3 points, so Lemma 32 holds if a third is trimmed.
    """

    @ledger.sweep(
        "six points at 1, five at 10", inside=6, outside=5, cases=[{"h": 1}, {"h": 2}, {"h": 3}],
        lhs="the trimmed mean, with h points trimmed at either end", rhs="rho, around X' = 0",
    )  # fmt: skip
    def trimmed(inside, outside, h):
        points = np.sort(np.r_[np.ones(inside), np.full(outside, 10.0)])
        return points[h : len(points) - h].mean(), 1.0

    repair = ledger.repair(
        "The coordinate-wise median satisfies Assumption 28. A trimmed mean that trims h points "
        "at either end satisfies (ii) and (iii). It satisfies (i) if at most h points lie outside "
        "of the ball, which is enough for Lemma 32 if h >= B/3"
    )

    @repair.falsify(
        "(i), with h points anywhere", inner=Array(UNIT, ("b",)), outer=Array(FAR, ("b",)),
        b=BATCHES, share=SHARE, more=0, mutant={"more": 1}, extremal=[
            {"inner": np.ones(11), "outer": np.full(11, 9.0), "share": share} for share in (0.2, 1)
        ],
    )  # fmt: skip
    def inside(inner, outer, share, more):
        h = int(share * ((len(inner) - 1) // 2))
        points = np.r_[inner[h + more :], outer[: h + more]][:, None]
        return abs(robust_statistic(points, statistic="trimmed_mean", trim=h)[0]), 1.0 + ROUNDING

    @repair.falsify(
        "(ii) and (iii)", a=Interval(-3.0, 3.0), moves=Array(UNIT, ("b", "d")), choose=middle,
        mutant={"choose": doubled}, **POINTS, **TRIMMED,
        extremal=[{"points": np.ones((5, 1)), "moves": np.ones((5, 1)), "a": 1.0, "share": 0.5}],
    )  # fmt: skip
    def moved(points, moves, a, share, choose):
        apart = choose(a * points + moves, share) - a * middle(points, share)
        return np.abs(apart).max(), 1.0 + ROUNDING

    ledger.consequence(
        "With a trimmed mean that trims less than a third, the estimates of 1/tau-aligned "
        "neighbours may be 2 G/(B - 2h) + 2/tau apart. Lemma 32 has 6/tau.",
        harm="privacy",
    )


@statement("sco2.remark30", expected="not_executable")
def euclidean_analogue(ledger):
    """It is interesting to see whether any robust statistic satisfies the l_2 analogue of
    Assumption 28, even with a mild relaxation such as norm(X_rs - Y_rs) <= (1 + r) Delta for some r
    = o(1).

    The text asks a question and claims nothing. If (i) is read literally, the answer is simple. For
    B >= 3 and d >= 2, no statistic satisfies the l_2 analogue of (i), even without (ii). The
    intersection of all balls that contain two given points is the segment between these points. The
    three edges of a triangle have no common point. For larger B, put a third of the points at each
    corner. By Helly's theorem, (i) can be satisfied if (i) is required only for more than d/(d + 1)
    of the points. The question is open for this weaker version of (i).
    """

    @ledger.sharper("no statistic satisfies the l_2 analogue of (i)").sweep(
        "an equilateral triangle of side 1: any point is outside of some ball that contains two "
        "corners, at least as far as the centroid, which is optimal by symmetry and convexity",
        radius=[1.0, 2.0, 10.0, 1e3], gap=0.05, mutant={"gap": 0.3},
    )  # fmt: skip
    def outside(radius, gap):
        """Return how far the centroid is outside of balls with two corners on the boundary."""
        corners = np.exp(2j * np.pi * np.arange(3) / 3) / math.sqrt(3)
        mids = (corners + np.roll(corners, 1)) / 2
        centers = mids + mids / abs(mids) * math.sqrt(radius**2 - 0.25)
        return gap, (abs(centers) - radius).max()

    ledger.conclude("not_executable", "A question is neither true nor false.")


# --- Algorithm 7 ---


@statement("sco2.alg7")
def gradient_estimate(ledger):
    """Gradient estimation based on robust statistics computes for each coordinate j the robust
    statistic X_rs[j] and the mean xbar[j] of the B vectors. If they are at least varsigma apart,
    X_est[j] is the projection of xbar[j] on the ball of radius varsigma around Y_j, and else
    xbar[j].

    The implementation gives the same result as the printed lines. The printed Y_j is not defined,
    so we use X_rs[j] for Y_j. The printed condition has no effect. If a mean is closer than
    varsigma, the projection of the mean is the mean itself. In Algorithm 7, the ball is an
    interval, so the estimate is the clipped mean.
    """
    domain = {**POINTS, "clip": Interval(0.0, 3.0), "ball": 1.0, "always": False}
    aside = [{"points": np.array([[0.0], [0.0], [0.0], [4.0]]), "clip": 0.3}]

    @ledger.identity("line by line", floor=1.0, mutant={"ball": 0.9}, extremal=aside, **domain)
    def lines(points, clip, ball, always):
        found = transcribed.robust_gradient(points, ball * clip)
        if always:  # the projection without the condition
            center = np.array([statistics.median(column) for column in points.T.tolist()])
            mean = points.mean(axis=0)
            found = np.maximum(center - ball * clip, np.minimum(mean, center + ball * clip))
        return robust_gradient(points, clip=clip), found

    ledger.identity(
        "without the condition", floor=1.0, extremal=aside, mutant={"ball": 0.9},
        **{**domain, "always": True},
    )(lines)  # fmt: skip

    @ledger.identity(
        "with a trimmed mean, in several draws", points=Array(Interval(-5.0, 5.0), (2, "b", "d")),
        b=BATCHES, d=FEW, clip=Interval(0.0, 3.0), share=SHARE, less=0, mutant={"less": 1},
        floor=1.0, extremal=[{"points": np.arange(16.0).reshape(2, 8, 1) ** 2, "clip": 0.1,
                              "share": 0.7}],
    )  # fmt: skip
    def trimmed(points, clip, share, less):
        trim = round(share * ((points.shape[1] - 1) // 2))
        options = {"statistic": "trimmed_mean", "trim": trim}
        kept = [transcribed.robust_gradient(x, clip, max(0, trim - less)) for x in points]
        middles = [[transcribed.middle(c, max(0, trim - less)) for c in x.T] for x in points]
        found = robust_gradient(points, clip=clip, **options), robust_statistic(points, **options)
        return np.array(found), np.array([kept, middles])

    @ledger.identity(
        "the statistic without options", points=Array(Interval(-5.0, 5.0), ("b", "d")), b=BATCHES,
        d=FEW, floor=1.0, less=0, mutant={"less": 1}, examples=60,
    )  # fmt: skip
    def default(points, less):
        columns = points.T.tolist()
        means = [statistics.fmean(sorted(c)[less:]) if len(c) > less else 9.0 for c in columns]
        found = [robust_statistic(points), robust_statistic(points, statistic="trimmed_mean")]
        found.append(robust_gradient(points, clip=0.0, statistic="trimmed_mean"))
        return np.array(found), np.array([[statistics.median(c) for c in columns], means, means])
