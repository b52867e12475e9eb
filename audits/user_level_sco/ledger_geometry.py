"""User-level DP-SCO: the l_inf geometry of Appendices C and D and of Section 1.2 of version 1."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from audits.user_level_sco.conventions import FEW, UNIT, USERS
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
REALS = Array(Interval(-2.0, 2.0), ("d",))
ORDERS = Choice((1.0, 1.5, 2.0, 3.0, 10.0, math.inf))


def dual(p):
    """Return q with 1 / p + 1 / q = 1."""
    return {1.0: math.inf, math.inf: 1.0}.get(p) or p / (p - 1)


# --- Lipschitz and smooth in other norms ---


def attack_lipschitz(ledger, orders):
    """Attack "abs(f(x) - f(y)) <= G norm_p(x - y) means norm_q(grad f) <= G"."""
    domain = {"slope": REALS, "d": FEW, "p": orders}
    ones = {"slope": np.array([1.0, -1.0]), "move": np.array([1.0, -1.0]), "p": 1.0}

    @ledger.falsify(
        "a bound on the gradient bounds the differences", move=REALS, extremal=[ones], **domain
    )
    def differences(slope, move, p):
        bound = np.linalg.norm(slope, dual(p)) * np.linalg.norm(move, p)
        return abs(slope @ move), bound + ROUNDING

    @ledger.falsify(
        "a bound on the differences bounds the gradient: some direction attains it", of=dual,
        mutant={"of": lambda p: 1.0}, **domain,
    )  # fmt: skip
    def gradients(slope, p, of):
        """Use the direction for which Hoelder's inequality is an equality."""
        if p == 1:
            move = np.eye(len(slope))[np.argmax(np.abs(slope))]
        else:
            move = np.abs(slope) ** (dual(p) - 1)
        if (length := np.linalg.norm(move, p)) < 1e-6:
            return None
        return np.linalg.norm(slope, of(p)), np.abs(slope) @ move / length + ROUNDING


@statement("sco1.def2.1")
def lipschitz_in_a_norm(ledger):
    """A function f on X is G-Lipschitz with respect to the l_p-norm if abs(f(x) - f(y)) <= G
    norm_p(x - y) for any x, y in X. This means norm_q(grad f(x)) <= G for any x in X, where 1/p +
    1/q = 1.

    By Hoelder's inequality, both directions hold for all p in [1, inf] on domains with interior
    points. On flat domains, the text means the gradient along the domain.
    """
    attack_lipschitz(ledger, ORDERS)


@statement("sco2.def24")
def lipschitz_in_l1(ledger):
    """A function f on X is G-Lipschitz with respect to the l_1-norm if abs(f(x) - f(y)) <= G
    norm_1(x - y) for any x, y in X. This means norm_inf(grad f(x)) <= G for any x in X.

    Both directions hold. The heading says "Lipschitz in l_inf", but the function is Lipschitz with
    respect to l_1. The gradient is the quantity that is bounded in l_inf.
    """
    attack_lipschitz(ledger, Choice((1.0,)))


CORNER = np.array([[1.0, 1.0], [1.0, 0.0]])


def row_sum(matrix):
    return np.abs(matrix).sum(axis=1).max()


def spectral(matrix):
    return np.linalg.norm(matrix, 2)


def logistic_sum(features, x):
    """Return gradient and Hessian of the sum of log(1 + exp(a x)), with `features` as rows `a`."""
    likely = expit(features @ x)
    return features.T @ likely, features.T @ (features * (likely * (1 - likely))[:, None])


@statement("sco2.def25")
def smooth_in_linf(ledger):
    """A function f is beta-smooth if norm_inf(Hessian of f at x) <= beta for all x in X, where
    norm_inf(A) is the maximum over i of sum_j abs(A_(i,j)). This implies norm_inf(grad f(x) - grad
    f(y)) <= beta norm_inf(x - y) for any x, y in X.

    The implication holds. Equality holds for quadratic functions and for moves along vectors of
    signs. If a Hessian varies, the proof averages the Hessian over the segment. So the domain has
    to be convex. In other papers, smoothness with respect to l_inf bounds the l_1-norm of the
    change of the gradient, which is a stronger condition.
    """
    domain = {"x": Array(UNIT, (2,)), "y": Array(UNIT, (2,)), "mutant": {"norm": spectral}}
    domain["norm"] = row_sum

    @ledger.falsify(
        "quadratics", matrix=Array(UNIT, (2, 2)), **domain,
        extremal=[{"matrix": CORNER, "x": np.ones(2), "y": -np.ones(2)}],
    )  # fmt: skip
    def quadratic(matrix, x, y, norm):
        hessian = (matrix + matrix.T) / 2
        return row_sum((hessian @ (x - y))[:, None]), norm(hessian) * abs(x - y).max() + ROUNDING

    steep = {"features": CORNER, "x": np.full(2, 0.1)}

    @ledger.falsify(
        "sums of logistic losses, whose Hessians are largest at 0", **domain,
        features=Array(Interval(0.0, 2.0), (2, 2)), extremal=[{**steep, "y": -np.full(2, 0.1)}],
    )  # fmt: skip
    def logistic(features, x, y, norm):
        change = logistic_sum(features, x)[0] - logistic_sum(features, y)[0]
        beta = norm(logistic_sum(features, np.zeros(2))[1])
        return np.abs(change).max(), beta * np.abs(x - y).max() + ROUNDING


@statement("sco2.def26")
def diagonal_dominance(ledger):
    """A d x d matrix A is diagonally dominant if abs(A_(i,i)) >= sum over j != i of abs(A_(i,j))
    for all i in [d].

    This statement is a definition. Averages of diagonally dominant Hessians, for example the
    Hessians of F and q_t, are also diagonally dominant. The functions are convex, so the diagonals
    are not negative. Without convexity, an average may not be diagonally dominant. For a symmetric
    matrix without negative diagonal entries, dominance is stronger than convexity (Gershgorin).
    Dominance depends on the choice of coordinates.
    """
    pair = {"off": Array(UNIT, (2,)), "more": Array(Interval(0.0, 1.0), (2, 2))}

    @ledger.falsify("averages", sign=1.0, mutant={"sign": -1.0}, **pair)
    def average(off, more, sign):
        diagonals = (np.abs(off)[:, None] + more) * np.array([[1.0], [sign]])
        return abs(off.mean()), np.abs(diagonals.mean(axis=0)).min() + ROUNDING

    @ledger.falsify(
        "a diagonal that is not negative makes such a matrix positive semidefinite", part=1.0,
        matrix=Array(UNIT, (3, 3)), mutant={"part": 0.7},
        extremal=[{"matrix": -np.ones((3, 3))}],
    )  # fmt: skip
    def positive(matrix, part):
        hessian = dominant(matrix, part)
        return -np.linalg.eigvalsh(hessian)[0], ROUNDING


def dominant(matrix, part=1.0):
    """Return a symmetric matrix with the smallest diagonal that is still dominant.

    Mutants use only the share `part` of this diagonal.
    """
    off = (matrix + matrix.T) / 2 * (1 - np.eye(len(matrix)))
    return off + part * np.diag(np.abs(off).sum(axis=1))


# --- Assumptions 21 and 22, Lemma 27 ---


def bent(t):
    """Return the second derivative, between 0 and 1, of a smooth convex function on the line."""
    return 1 / (1 + t * t)


@statement("sco2.ass21")
def assumption_in_linf(ledger):
    """Let X = B_inf(0, D). Each function f(.; z) on X in the universe is convex, G-Lipschitz with
    respect to the l_1-norm (Definition 24) and beta-smooth in l_inf-norm (Definition 25).

    Losses log(1 + exp(<x, z>)) with norm_inf(z) <= G satisfy the assumption with beta = norm_inf(z)
    norm_1(z) / 4. These losses attain the stated beta. For these losses, beta is at most d G^2 / 4.
    The losses of the lower bound satisfy the assumption with beta = 0. The l_2 diameter of the
    domain is 2 sqrt(d) D.
    """

    @ledger.falsify(
        "logistic losses", x=REALS, z=REALS, d=FEW, slope=Choice((True, False)), fourth=0.25,
        mutant={"fourth": 0.2}, extremal=[{"x": np.zeros(2), "z": np.ones(2), "slope": False}],
    )  # fmt: skip
    def logistic(x, z, slope, fourth):
        gradient, hessian = logistic_sum(z[None, :], x)
        if slope:
            return np.abs(gradient).max(), np.abs(z).max()
        return row_sum(hessian), fourth * np.abs(z).max() * np.abs(z).sum() + ROUNDING


@statement("sco2.ass22")
def assumption_of_dominance(ledger):
    """The Hessian of each function f(.; z) in the universe is diagonally dominant (Definition 26).

    The assumption can be satisfied. Consider sums of convex functions of single coordinates and of
    differences of two coordinates. These sums have diagonally dominant Hessians. Functions of
    differences attain equality. Logistic and linear regression do not satisfy the assumption. The
    diagonal of a Hessian c z z^T is dominant only if z has at most two nonzero entries. Two nonzero
    entries must have equal size.
    """

    @ledger.falsify(
        "functions of differences, with equality", x=Array(UNIT, ("d",)), d=Choice((2, 3, 4)),
        single=0.0, mutant={"single": -0.01},
    )  # fmt: skip
    def pairs(x, single):
        """Use the Hessian of a sum of phi(x_i - x_j).

        Functions of one coordinate add to the diagonal of the Hessian.
        """
        off = bent(np.subtract.outer(x, x)) * (1 - np.eye(len(x)))
        return (off.sum(axis=1) / (off.sum(axis=1) + single)).max(), 1 + ROUNDING

    @ledger.identity(
        "z z^T: at most two entries, of equal size", z=REALS, d=Choice((1, 2, 3)), most=2,
        mutant={"most": 3}, extremal=[
            {"z": np.array(z)} for z in ([1.0, -1.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 2.0])
        ],
    )  # fmt: skip
    def regression(z, most):
        sizes = np.abs(np.rint(5 * z))  # integers, so that all sums are exact
        meets = (sizes**2 >= sizes * (sizes.sum() - sizes)).all()
        some = sizes[sizes > 0]
        return meets, len(some) <= most and (len(some) < 2 or np.ptp(some) == 0)


@statement("sco2.lemma27", expected="holds_proof_broken")
def contractivity(ledger):
    """Suppose f on X is a convex and beta-smooth function satisfying Assumption 22. For any two
    points x, y in X and step size eta <= 2/beta, norm_inf((x - eta grad f(x)) - (y - eta grad
    f(y))) <= norm_inf(x - y).

    The bound is tight at eta = 2 / beta and at every smaller step size. The proof uses one z on the
    segment for a vector-valued function. The mean-value theorem does not provide such a z. For
    x_1^3 / 6 + x_2^4 / 12, no such z exists. The display has a wrong sign and lacks a factor eta.
    In this lemma, smoothness is the smoothness of Definition 25. The spectral norm of Definition 4
    would not be enough.
    """
    domain = {"share": Interval(0.0, 1.0), "most": 2.0, "mutant": {"most": 2.2}}
    domain |= {"x": Array(UNIT, (3,)), "y": Array(UNIT, (3,))}
    ends = {"x": np.ones(3), "y": -np.ones(3), "share": 1.0}
    flat = {**ends, "matrix": np.ones((3, 3))}

    @ledger.falsify(
        "quadratics", matrix=Array(UNIT, (3, 3)), norm=row_sum, extremal=[flat], **domain
    )
    @ledger.falsify(
        "the norm has to be that of Definition 25", matrix=Array(UNIT, (3, 3)), norm=row_sum,
        extremal=[{**flat, "matrix": np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0.0]])}],
        **{**domain, "mutant": {"norm": spectral}},
    )  # fmt: skip
    def quadratic(matrix, x, y, share, most, norm):
        hessian = dominant(matrix)
        eta = share * most / max(norm(hessian), 1e-9)
        return np.abs(x - y - eta * hessian @ (x - y)).max(), np.abs(x - y).max() + ROUNDING

    close = {"x": np.full(3, 0.01), "y": -np.full(3, 0.01), "share": 1.0}

    @ledger.falsify("functions of coordinates and of sums", extremal=[close], **domain)
    def varying(x, y, share, most):
        """Compute both sides for a sum of phi(x_i) and phi(x_i + x_j), phi'' = 1 / (1 + t^2).

        The smoothness is beta = 5, which the Hessian attains at 0.
        """

        def gradient(x):
            sums = np.arctan(np.add.outer(x, x))
            return np.arctan(x) + sums.sum(axis=1) - np.diag(sums)

        moved = x - y - share * most / 5 * (gradient(x) - gradient(y))
        return np.abs(moved).max(), np.abs(x - y).max() + ROUNDING

    step = ledger.step(
        "one z on the segment with grad f(x) - grad f(y) = Hessian(z) (x - y)",
        fix="Use the average of the Hessian over the segment. It is diagonally dominant with "
        "norm_inf at most beta, because each Hessian is, so the first display applies to "
        "it.",
    )

    @step.sweep(
        "x_1^3 / 6 + x_2^4 / 12 between (1, 1) and 0",
        points=10_001,
        rhs="0",
        lhs="least distance from Hessian(z) (x - y) to the difference of the gradients",
    )
    def one_point(points):
        s = np.linspace(0, 1, points)  # z = (s, s)
        gaps = np.maximum(abs(s - 1 / 2), abs(s**2 - 1 / 3))
        return (
            gaps.min() - 2 / points,
            0.0,
        )  # the subtracted `2 / points` covers the gaps between neighbouring points

    ledger.step("norm_inf(I - eta H) <= 1").falsify(
        "random", matrix=Array(UNIT, (3, 3)), share=Interval(0.0, 1.0), part=1.0,
        mutant={"part": 0.8}, extremal=[{"matrix": np.ones((3, 3)), "share": 1.0}],
    )(first_display)  # fmt: skip
    ledger.consequence("None. A repair of the step takes one line.", harm="the wording")


def first_display(matrix, share, part):
    hessian = dominant(matrix, part)
    eta = 2 * share / max(row_sum(hessian), 1e-9)
    return row_sum(np.eye(3) - eta * hessian), 1 + ROUNDING


# --- claims of version 1 ---


@statement("sco1.sec1.2.ball")
def largest_ball(ledger):
    """The l_inf-ball is the largest among all l_p-balls, and Lipschitz continuity in the l_1-norm
    implies that the l_inf-norm of the gradient is bounded, which is the weakest possible assumption
    on gradient norms.

    Both claims hold, because norms are monotone in p. So these assumptions are weak. The text calls
    these assumptions "strong in terms of the properties of the norm". Diagonal dominance and
    smoothness in l_inf are not weak.
    """

    @ledger.falsify(
        "norm_inf <= norm_p, of points and of gradients", x=REALS, d=FEW, p=ORDERS, least=np.inf,
        mutant={"least": 2}, extremal=[{"x": np.array([1.0, 1.0]), "p": math.inf}],
    )  # fmt: skip
    def norms(x, p, least):
        return np.linalg.norm(x, least), np.linalg.norm(x, p) + ROUNDING

    attack_lipschitz(ledger, Choice((1.0,)))


def smoothed(x):
    return np.exp(-x)


def indicator(x):
    return float(x <= 1)


@statement("sco1.sec1.2.smooth")
def smoothed_score(ledger):
    """Prior tests count concentrated pairs by the indicator 1(norm(q_t(Z_i) - q_t(Z_j)) <= 1/tau),
    which is non-smooth and prone to instability; exp(-tau norm(q_t(Z_i) - q_t(Z_j))) in its place
    is smoother, a continuous measure of closeness, and allows a more stable concentration test.

    Each summand is tau-Lipschitz in the distance, and each summand attains the slope tau near 0.
    The indicator jumps by 1 at 1 / tau. In this text, "smoother" can only refer to continuity,
    because exp(-tau norm(.)) has a kink at 0.
    """

    @ledger.falsify(
        "Lipschitz in the distance", one=Interval(0.0, 3.0), other=Interval(0.0, 3.0),
        tau=Interval(0.1, 10.0), score=smoothed, mutant={"score": indicator},
        extremal=[{"one": 0.0, "other": 1e-6, "tau": 1.0}, {"one": 1.0, "other": 1.1, "tau": 1.0}],
    )  # fmt: skip
    def lipschitz(one, other, tau, score):
        return abs(score(tau * one) - score(tau * other)), tau * abs(one - other) + ROUNDING


RATES = {"n": USERS, "m": USERS, "d": USERS, "epsilon": Interval(1e-6, 1.0, log=True)}


@statement("sco1.sec1.2.rate")
def rate_of_euclidean_algorithms(ledger):
    """As the l_2 diameter of an l_inf ball is sqrt(d), applying existing linear-time algorithms to
    this setting yields a suboptimal rate O(d^(3/2)/(sqrt(nm) epsilon)).

    The factor sqrt(d) occurs three times, but the text mentions only one occurrence. The factor
    sqrt(d) occurs in the rate G D sqrt(d) / (sqrt(nm) epsilon), in the radius sqrt(d) D, and in
    gradients of norm sqrt(d) G.
    """

    @ledger.identity("the arithmetic", gradient=0.5, mutant={"gradient": 0.0}, **RATES)
    def arithmetic(n, m, d, epsilon, gradient):
        euclidean = d**gradient * math.sqrt(d) * math.sqrt(d) / (math.sqrt(n * m) * epsilon)
        return euclidean, d**1.5 / (math.sqrt(n * m) * epsilon)

    @ledger.falsify("norm_2 <= sqrt(d) norm_inf", x=REALS, d=FEW, power=0.5, mutant={"power": 0.4},
                    extremal=[{"x": np.ones(3)}])  # fmt: skip
    def norms(x, power):
        return np.linalg.norm(x), len(x) ** power * np.abs(x).max() + ROUNDING


@statement("sco1.sec1.2.afkt")
def item_level_rate(ledger):
    """The best-known item-level rate for functions that are Lipschitz in the l_1-norm over an
    l_inf-ball is O(d/sqrt(n) + d^(3/2)/(n epsilon)), as established by Asi, Feldman, Koren and
    Talwar (2021).

    Take the Euclidean rate (1 / sqrt(n) + sqrt(d) / (n epsilon)) G D. If sqrt(d) G replaces G and
    sqrt(d) D replaces D, the result is the printed rate. So the rate needs no algorithm for this
    geometry. Judging by its title, the cited paper is about l_1 geometry. The claim that no better
    rate is known cannot be tested.
    """

    @ledger.identity("the arithmetic", radius=0.5, mutant={"radius": 0.0}, **RATES)
    def arithmetic(n, m, d, epsilon, radius):
        euclidean = 1 / math.sqrt(n) + math.sqrt(d) / (n * epsilon)
        return d**radius * math.sqrt(d) * euclidean, d / math.sqrt(n) + d**1.5 / (n * epsilon)
