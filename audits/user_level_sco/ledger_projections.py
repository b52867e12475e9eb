"""User-level DP-SCO: projections on balls around robust statistics, and the geometric median."""

from __future__ import annotations

import math

import numpy as np

from algorithms.geometric_median.reference import geometric_median
from audits.user_level_sco.conventions import UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Interval
from dpaudit.properties import Array

ROUNDING = 1e-12


# --- Lemma 31 ---


def clipped(x, center, r):
    return max(center - r, min(center + r, x))


def printed_case(a, b, c, d, r, unit):
    """Return the distance of c' and d', and the proof's bound for the case of these points."""
    if abs(a - b) > unit or abs(c - d) > unit:
        return None
    if a > b:
        a, b, c, d = b, a, d, c
    if abs(c - a) <= r < abs(d - b):
        a, b, c, d = -b, -a, -d, -c  # the second "without loss of generality"
    near, far, apart = clipped(c, a, r), clipped(d, b, r), abs(c - d)
    if abs(c - a) <= r:  # (I)
        bound = apart
    elif abs(d - b) <= r:  # (II)
        if c < a:
            bound = apart if d >= a - r else -1
        else:
            bound = abs(a - b) if a + r <= b or d > a + r else apart
    elif (c < a) == (d < b):  # (III)
        bound = abs(a - b)
    else:
        bound = abs(a - b) if c > a and a + r <= b else apart
    return abs(near - far), bound


@statement("sco2.lemma31")
def projections_of_reals(ledger):
    """Consider four real numbers a, b, c, d with abs(a - b) <= 1 and abs(c - d) <= 1. Let c' be the
    projection of c on B(a, r) and d' that of d on B(b, r) for any r >= 0. Then abs(c' - d') <= 1.

    The bound is tight. The case analysis of the proof is complete. The second "without loss of
    generality" of the proof exchanges the two pairs and all signs. A short proof uses that clip is
    monotone in point and center and commutes with shifts. So d' <= clip(c + 1; a + 1, r) = c' + 1.
    In the same way, c' <= d' + 1. The same proof works for any bound instead of 1.
    """
    domain = {"a": Interval(-1.0, 1.0), "b": Interval(-1.0, 1.0), "r": Interval(0.0, 2.0)}
    domain |= {"c": Interval(-4.0, 4.0), "move": Interval(-1.0, 1.0), "most": 1.0}
    domain["extremal"] = [{"a": 0.0, "b": 1.0, "r": 1.0, "c": 4.0, "move": 1.0}]

    @ledger.falsify("random reals", mutant={"most": 0.9}, **domain)
    def together(a, b, c, move, r, most):
        if abs(a - b) > 1:
            return None
        return abs(clipped(c, a, r) - clipped(c + move, b, r)), most + ROUNDING

    ledger.step("the bounds of all cases of the proof").sweep(
        "all multiples of 1/3", a=0, b=range(-3, 4), c=range(-6, 7), d=range(-9, 10), r=range(5),
        unit=3,
    )(printed_case)  # fmt: skip


@statement("sco2.lemma31.l2")
def projections_in_the_plane(ledger):
    """Lemma 31 does not hold in high dimensions either: in R^d under the l_2-norm there are points
    with norm(a - b) <= 1 and norm(c - d) <= 1 whose projections on B(a, r) and B(b, r) are more
    than 1 apart.

    The claim is true in two and more dimensions. The distance can be up to sqrt(2) instead of 1. In
    every dimension, no larger distance is possible. The upper limit holds because the projection p
    of a move w lies in the ball whose diameter is w.
    """

    @ledger.sweep("two balls of radius 100: more than 1.41 apart", r=100.0, plane=1.0, lhs="1.41",
                  rhs="norm(c' - d')", mutant={"plane": 0.0})  # fmt: skip
    def apart(r, plane):
        """Compare 1.41 with the distance of two projected points.

        Without the second coordinates, all points lie on a line, and the projected points stay
        within 1.
        """
        s = math.sqrt(0.5)
        b, normal, along = np.zeros(2), np.array([-s, s * plane]), np.array([s, s * plane]) / 2
        a, d = np.array([s, -s * plane]), r * normal - along
        c = a + d + np.array([0.0, 2 * s * plane])
        if max(np.linalg.norm(a - b), np.linalg.norm(c - d)) > 1 + ROUNDING:
            return None
        ends = [z + (x - z) / max(1, np.linalg.norm(x - z) / r) for x, z in ((c, a), (d, b))]
        return 1.41, np.linalg.norm(ends[0] - ends[1])

    s = math.sqrt(0.5)
    far = {"centers": np.array([s, -s]), "points": np.array([s, s]), "r": 100.0}
    far["d"] = np.array([-100 * s - s / 2, 100 * s - s / 2])

    @ledger.sharper("never more than sqrt(2) apart").falsify(
        "in the plane", centers=Array(UNIT, (2,)), points=Array(UNIT, (2,)), r=Interval(0.0, 100.0),
        d=Array(Interval(-100.0, 100.0), (2,)), most=2.0, mutant={"most": 1.9}, extremal=[far],
    )  # fmt: skip
    def bounded(centers, points, d, r, most):
        """Use b = 0, and use a and c - d of length at most 1."""
        a, move = (x / max(1.0, np.linalg.norm(x)) for x in (centers, points))
        ends = [x / max(1.0, np.linalg.norm(x) / max(r, 1e-9)) for x in (d + move - a, d)]
        return np.linalg.norm(a + ends[0] - ends[1]), math.sqrt(most) + ROUNDING


# --- the geometric median ---


def mean(points):
    return points.mean(axis=0)


def median(points):
    return geometric_median(points).point


@statement("sco2.D2")
def unstable_median(ledger):
    """Let P = {(0, 0), (0, 0), (1, 0), (1, alpha)} and P' = {(0, 0), (0, alpha), (1, 0), (1, 0)}
    with alpha > 0 a very small perturbation. Then their geometric medians are M(P) = (0, 0) and
    M(P') = (1, 0): the geometric median is unstable in two dimensions.

    The claim is exact for every alpha > 0, small or not. The unit vectors to the other points sum
    to less than 2, while the dataset contains the median twice. No Lipschitz constant exists,
    because no point moves by more than alpha while the median moves by 1. At alpha = 0, each point
    between 0 and (1, 0) is a median of both datasets.
    """

    @ledger.falsify(
        "optimality at the double point", alpha=Interval(1e-6, 10.0, log=True), copies=2,
        mutant={"copies": 1}, extremal=[{"alpha": 1e-6}],
    )  # fmt: skip
    def optimal(alpha, copies):
        """Test the claim for P.

        By symmetry, the claim for P' is equivalent.
        """
        unit = np.array([1.0, alpha]) / math.hypot(1.0, alpha)
        return np.linalg.norm(unit + np.array([1.0, 0.0])), copies

    @ledger.identity("by the reference solver", alpha=[0.05, 0.3, 1.0, 3.0], tolerance=1e-5,
                     floor=1.0, solve=median, mutant={"solve": mean})  # fmt: skip
    def solved(alpha, solve):
        first = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, alpha]])
        second = np.array([[0.0, 0.0], [0.0, alpha], [1.0, 0.0], [1.0, 0.0]])
        found = [solve(points) for points in (first, second)]
        return np.array(found), np.array([[0.0, 0.0], [1.0, 0.0]])
