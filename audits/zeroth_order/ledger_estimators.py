"""Private zeroth-order optimization: the estimators Grad and Diff, Section 3 and Appendix B."""

from __future__ import annotations

import functools
import itertools
import math
from fractions import Fraction

import numpy as np

from algorithms.zeroth_order.estimators import difference_estimate, gradient_estimate
from algorithms.zeroth_order.losses import FunctionLoss, Linear
from audits.zeroth_order.conventions import FEW, SHARE, UNIT
from audits.zeroth_order.kinked_losses import (
    APART,
    COARSE,
    MOVED,
    RADII,
    ROUNDING,
    TWO,
    as_loss,
    constant_of,
    kinked,
    moments,
    opposite,
    single,
    sphere,
    unit,
    variance,
    wave,
)
from audits.zeroth_order.ledger_smoothing import gradient, on_sphere, slab
from audits.zeroth_order.transcribed import estimate
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array

# --- Algorithms 1 and 2 ---

DRAWN = {"items": Array(UNIT, (3, "d")), "raw": Array(UNIT, (3, "d", "d")), "radius": RADII}
DRAWN |= {"at": Array(UNIT, ("d",)), "move": Array(UNIT, ("d",)), "d": FEW}


def against_transcript(items, raw, at, move, radius, moved, factor):
    u = unit(raw)
    if u is None:
        return None
    x, y = at, (at + move if moved else None)
    loss, rng = FunctionLoss(wave, lipschitz=9.0), np.random.default_rng(0)
    given = {"loss": loss, "radius": radius, "point": x, "directions": u, "rng": rng}
    if moved:
        found = difference_estimate(items, 1, previous=y, **given)[0]
    else:
        found = gradient_estimate(items, 1, **given)[0]
    return found, factor * estimate(wave, items, radius, u, x, y)


@statement("zoo.alg1")
def grad(ledger):
    """The zeroth-order gradient oracle Grad_(f,delta)(x, z_(1:b)) draws directions u_11, ..., u_bd
    i.i.d. uniform on the unit sphere and returns (1/b) sum_(i=1..b) (1/d) sum_(j=1..d) (d/(2
    delta)) (f(x + delta u_ij, z_i) - f(x - delta u_ij, z_i)) u_ij.

    Up to rounding, the implementation agrees with a transcription of the printed line as loops. The
    directions of the implementation are normalised Gaussians. For a linear loss in the plane,
    random draws test two angles and the independence of two items. One estimate needs 2 b d values
    of f.
    """
    domain = {**DRAWN, "moved": False, "tolerance": 1e-9, "floor": 1.0, "factor": 1.0}
    ledger.identity("three items, waves", mutant={"factor": 2.0}, **domain)(against_transcript)
    plane = {"loss": Linear(1.0), "radius": 0.5, "n_directions": 1, "point": np.zeros(2)}

    @ledger.monte_carlo("abs(<e, u>) >= cos(pi / 8) has probability 1/4", allowed=0.25,
                        draws=20_000, mutant=0.8)  # fmt: skip
    def near_the_axis(size, *, rng):
        """For this loss, <Grad, e> is 2 <e, u>^2."""
        g = gradient_estimate(np.array([[1.0, 0.0]]), size, rng=rng, **plane)
        return g[:, 0] >= 2 * math.cos(math.pi / 8) ** 2

    @ledger.monte_carlo("two items: the upper 1/16 of the sum, if they are independent",
                        allowed=1 / 16, draws=20_000, mutant=0.7)  # fmt: skip
    def both(size, *, rng):
        """Compare <Grad, e> = <e, u_1>^2 + <e, u_2>^2 with its quantile 15/16, by quadrature."""
        g = gradient_estimate(np.array([[1.0, 0.0]] * 2), size, rng=rng, **plane)
        squares = np.cos(math.pi * (np.arange(400) + 0.5) / 400) ** 2
        return g[:, 0] >= np.quantile(squares[:, None] + squares, 15 / 16)


@statement("zoo.alg2")
def diff(ledger):
    """The zeroth-order gradient difference oracle Diff_(f,delta)(x, y, z_(1:b)) draws directions
    u_11, ..., u_bd i.i.d. uniform on the unit sphere and returns (1/b) sum_(i=1..b) (1/d)
    sum_(j=1..d) (d/delta) (f(x + delta u_ij, z_i) - f(y + delta u_ij, z_i)) u_ij.

    Up to rounding, the implementation agrees with a transcription of the printed line as loops. The
    loss f is evaluated only at x + delta u and y + delta u. The loss is not evaluated at x - delta
    u and y - delta u. So replacing u by -u changes d_ij, but does not change g_ij. One estimate of
    Diff needs 2 b d values of f, like one estimate of Grad.
    """
    domain = {**DRAWN, "moved": True, "tolerance": 1e-9, "floor": 1.0, "factor": 1.0}
    ledger.identity("three items, waves", mutant={"factor": 0.5}, **domain)(against_transcript)
    plane = {"loss": Linear(1.0), "radius": 1.0, "n_directions": 1, "point": np.array([0.5, 0.0])}

    for sign in (1, -1):

        @ledger.monte_carlo("an octant of directions on either side has probability 1/8",
                            allowed=1 / 8, draws=20_000, mutant=0.8, sign=sign)  # fmt: skip
        def octant(size, *, rng, sign):
            """For f = x_1, Diff is 2 r u / delta, which reveals u."""
            g = difference_estimate(np.array([[1.0, 0.0]]), size, previous=np.zeros(2), rng=rng,
                                    **plane)  # fmt: skip
            return (sign * g[:, 0] > np.abs(g[:, 1])) & (g[:, 1] > 0)


# --- Lemmas 3.1 and 3.2: unbiased ---


def exact_mean(slopes, kinks, at, radius):
    return sum(s * gradient(a, b, at, radius) for s, a, b in zip((1, -1), slopes, kinks,
                                                                 strict=True)) / 2  # fmt: skip


def quadrature_mean(slopes, kinks, at, move, radius, moved, missing):
    """Use all directions of a quadrature and a batch that equals the population."""
    d = len(at)
    u = np.broadcast_to(sphere(d, 1000)[0], (2, *sphere(d, 1000)[0].shape))
    loss, items = as_loss(slopes, kinks), np.array([[0.0], [1.0]])
    given = {"loss": loss, "radius": radius, "point": at, "directions": u}
    given["rng"] = np.random.default_rng(0)
    exact = exact_mean(slopes, kinks, at, radius)
    if moved:
        found = difference_estimate(items, 1, previous=at + move, **given)[0]
        exact = exact - exact_mean(slopes, kinks, at + move, radius)
    else:
        found = gradient_estimate(items, 1, **given)[0]
    return found / constant_of(slopes), exact / constant_of(slopes) / d**missing


BIAS = {**MOVED, "d": Integer(1, 2), "missing": 0, "mutant": {"missing": 1}, "tolerance": 2e-4}
BIAS |= {"floor": 1.0}


@functools.cache
def outcomes(moved):
    """Return all outcomes of Grad or Diff in d = 2, b = 2, with two items and three angles."""
    slopes = np.array([[[1.0, 0.2], [0.3, -0.5], [0, 0.1]], [[0.4, 1.0], [-0.6, 0.2], [0.2, 0]]])
    kinks = np.array([[0.1, -0.3, 0.0], [0.2, 0.4, -0.1]])
    at, move, radius = np.array([0.2, -0.1]), np.array([0.5, 0.3]), 0.7
    u = sphere(2, 3)[0]
    x, y = at, (at + move if moved else None)
    rng, loss, found = np.random.default_rng(0), as_loss(slopes, kinks), []
    pairs = list(itertools.product(range(3), repeat=2))
    for z in itertools.product((0.0, 1.0), repeat=2):
        for one, two in itertools.product(pairs, repeat=2):
            given = {"loss": loss, "radius": radius, "point": x, "rng": rng}
            given["directions"] = u[[one, two]]
            items = np.array(z)[:, None]
            if moved:
                found.append(difference_estimate(items, 1, previous=y, **given)[0])
            else:
                found.append(gradient_estimate(items, 1, **given)[0])
    w = np.full(3, 1 / 3)
    return np.array(found), (slopes, kinks, u, w, radius, x, y)


def enumerated_mean(moved):
    found, case = outcomes(moved)
    return found.mean(axis=0), moments(*case)[1].mean(axis=0)


def enumerated_variance(moved, b):
    found, case = outcomes(moved)
    return ((found - found.mean(axis=0)) ** 2).sum(axis=1).mean(), variance(*case) / b


@statement("zoo.lem3.1.bias")
def grad_is_unbiased(ledger):
    """If f(x, z) is differentiable and L-Lipschitz in x, then E[Grad_(f,delta)(x, z_(1:b))] = grad
    Fhat_delta(x) for any delta > 0 and x in R^d.

    The implementation is checked with a quadrature over directions in d = 1 (exact) and 2, for a
    population of two items with kinks. The implementation is also checked over all outcomes of a
    finite model. The items need not be independent, but each item must have the distribution of the
    population. The directions need not be independent, and f need not be differentiable.
    """
    ledger.identity("two kinked items, against the closed form", moved=False, **BIAS)(
        quadrature_mean
    )
    ledger.identity("all 324 outcomes of two items and four directions", moved=False,
                    tolerance=1e-10)(enumerated_mean)  # fmt: skip


@statement("zoo.lem3.2.bias")
def diff_is_unbiased(ledger):
    """If f(x, z) is differentiable and L-Lipschitz in x, then E[Diff_(f,delta)(x, y, z_(1:b))] =
    grad Fhat_delta(x) - grad Fhat_delta(y) for any delta > 0 and x, y in R^d.

    The implementation is checked as for Lemma 3.1. The check uses a quadrature over directions in d
    = 1 (exact) and d = 2, and all outcomes of a finite model. Unbiasedness does not need the same u
    at x and at y. The same u at x and at y only reduces the variance. In the proof, a bracket is
    missing after F(y + delta u_ij).
    """
    ledger.identity("two kinked items, against the closed form", moved=True, **BIAS)(
        quadrature_mean
    )
    ledger.identity("all 324 outcomes of two items and four directions", moved=True,
                    tolerance=1e-10)(enumerated_mean)  # fmt: skip


# --- Lemmas 3.1 and 3.2: variance ---


def grad_variance(slopes, kinks, at, radius, b, constant):
    u, w = sphere(len(at))
    bound = constant(len(at)) * constant_of(slopes) ** 2 / b
    return variance(slopes, kinks, u, w, radius, at) / b, COARSE * bound + ROUNDING


def grad_constant(d):
    """Use Poincare's inequality on the sphere, E norm(g_ij)^2 <= d^2 L^2 / (d - 1)."""
    return d / (d - 1) + 1 - 1 / d if d > 1 else 1.0


def sixteen(d):
    return 16 * d


def less_than_attained(d):
    return 0.99 * (2 - 1 / d)


@statement("zoo.lem3.1.var")
def grad_varies_little(ledger):
    """If f(x, z) is differentiable and L-Lipschitz in x, then E norm(Grad_(f,delta)(x, z_(1:b)) -
    grad Fhat_delta(x))^2 <= 16 d L^2/b for any delta > 0 and x in R^d.

    The bound is loose by a factor of order d. For d >= 2, the bound (d/(d - 1) + 1 - 1/d) L^2/b is
    enough. This bound is at most 2.5 L^2/b. For d = 1, the bound L^2/b is enough. By Poincare's
    inequality on the sphere, E norm(g_ij)^2 <= d^2 L^2/(d - 1), which implies these bounds. For
    linear losses +-L <e, x>, the variance is (2 - 1/d) L^2/b. So the true constant lies between 1.5
    and 2.5 at d = 2. As d grows, the true constant tends to 2. At d = 1, the printed bound is 16
    times too large. At d = 2, the printed bound is at least 12.8 times too large. For large d, the
    printed bound is 8 d times too large. The proof bounds norm(g_ij) by d L. So the proof does not
    use the concentration that Section 3 quotes. The last step of the proof is an equality at d = 1.
    The lemma needs independent items.
    """
    attempt = {**TWO, "b": Integer(1, 50)}
    attempt["extremal"] = [opposite(d, 9.0, b=1) for d in (1, 2, 3)]
    ledger.identity("all 324 outcomes of two items and four directions", moved=False, b=2,
                    tolerance=1e-10, mutant={"b": 1})(enumerated_variance)  # fmt: skip
    ledger.falsify("two kinked items, all directions", constant=sixteen,
                   mutant={"constant": less_than_attained}, **attempt)(grad_variance)  # fmt: skip
    sharper = ledger.sharper("(d/(d - 1) + 1 - 1/d) L^2/b for d >= 2, L^2/b for d = 1")
    sharper.falsify("two kinked items, all directions", constant=grad_constant,
                    mutant={"constant": less_than_attained}, **attempt)(grad_variance)  # fmt: skip

    @sharper.identity("+-L <e, x> has 2 - 1/d", d=[1, 2, 3, 4, 10, 100], tolerance=1e-9)
    def linear(d):
        second = d**2 * on_sphere(d, lambda t: t**2)
        return second / d + (1 - 1 / d), 2 - 1 / d

    @sharper.falsify("E norm(g_ij)^2 <= d^2 L^2/(d - 1), distances from p, capped",
                     d=Integer(2, 50), far=Interval(0.01, 20.0, log=True), low=SHARE, high=SHARE,
                     most=1.0, mutant={"most": 0.6},
                     extremal=[{"d": d, "far": 20.0, "low": 0.0, "high": 1.0} for d in (2, 50)],
                     )  # fmt: skip
    def distances(d, far, low, high, most):
        """Clip f(y) = norm(y - far e) between two values of f on the sphere."""
        least, span = abs(far - 1), far + 1 - abs(far - 1)
        ends = least + span * min(low, high), least + span * max(low, high)

        def phi(t):
            near, opposite = (np.sqrt(1 + far**2 - 2 * far * s * t) for s in (1, -1))
            return (np.clip(near, *ends) - np.clip(opposite, *ends)) / 2

        return d**2 * on_sphere(d, lambda t: phi(t) ** 2), most * d**2 / (d - 1) * (1 + 1e-3)

    @ledger.step("norm(g_ij) <= d L").falsify("kinked items, attained", less=1.0,
                                              mutant={"less": 0.9}, **attempt)  # fmt: skip
    def bounded(slopes, kinks, at, radius, b, less):
        u = sphere(len(at), 16)[0]
        c = single(lambda p: kinked(slopes[0], kinks[0], p), radius, u, at)
        bound = less * len(at) * constant_of(slopes)
        return np.abs(c).max(), bound * (1 if len(at) < 3 else COARSE) + ROUNDING

    @ledger.step("(d + 1)^2 / d + 4 <= 8 d").sweep(
        "in fractions, equal at d = 1", d=range(1, 3000), most=Fraction(8),
        mutant={"most": Fraction(79, 10)},
    )  # fmt: skip
    def arithmetic(d, most):
        return Fraction((d + 1) ** 2, d) + 4, most * d

    @ledger.edge("data points are i.i.d.").sweep(
        "d = 1, f = z x, z = +-1 the same for all b items", b=17,
        lhs="E abs(Grad - grad Fhat)^2, exactly", rhs="16 d L^2 / b",
    )  # fmt: skip
    def all_the_same(b):
        grads = [sum(z * (1.0 - -1.0) / 2 for _ in range(b)) / b for z in (1, -1)]
        return sum(g**2 for g in grads) / 2, 16 / b


def diff_variance(slopes, kinks, at, move, radius, b, constant):
    u, w = sphere(len(at))
    length = np.linalg.norm(move)
    bound = constant(len(at)) * constant_of(slopes) ** 2 * length**2 / (b * radius**2)
    return variance(slopes, kinks, u, w, radius, at, at + move) / b, COARSE * bound + ROUNDING


def diff_constant(d):
    """Use the exact smoothness c_d L / delta of fhat.

    The constant is at most 2 d, because c_d^2 <= d.
    """
    return d + (1 - 1 / d) * slab(d) ** 2


def slightly_less(d):
    return 0.98 * diff_constant(d)


def below_dimension(d):
    return 0.99 * d


def linear_variance(d, constant):
    """Return d, the variance of one direction after the mean over d, in units of (L r/delta)^2."""
    return float(d * d) / d, constant(d)


@statement("zoo.lem3.2.var")
def diff_varies_little(ledger):
    """If f(x, z) is differentiable and L-Lipschitz in x, then E norm(Diff_(f,delta)(x, y, z_(1:b))
    - [grad Fhat_delta(x) - grad Fhat_delta(y)])^2 <= (16 d L^2/(b delta^2)) norm(x - y)^2 for any
    delta > 0 and x, y in R^d.

    The factor d is needed. The exact constant is d + (1 - 1/d) c_d^2. The number c_d = 2 Gamma(d/2
    + 1) / (sqrt(pi) Gamma((d + 1)/2)) is the exact constant of Lemma 2.2 (iii). The losses +-L
    abs(<e, x>) attain the exact constant in the limit in which x - y shrinks along e at the kink.
    The exact constant is at most 2 d. The exact constant is 1 at d = 1, 2.81 at d = 2, and (1 +
    2/pi) d for large d. So the printed constant 16 d is 16 times too large at d = 1, and the
    constant is 9.8 times too large for large d. For a linear loss alone, the constant is d. The
    proof has two typos. The printed d L / b should be d L / delta. The printed (1/k) sum over k
    should be (1/d) sum over d. The constants of the proof add up to exactly 8 d at d = 1.
    """
    attempt = {**MOVED, "b": Integer(1, 50)}
    attempt["extremal"] = [
        opposite(d, 0.0, b=1, at=-5e-4 * np.eye(d)[0], move=1e-3 * np.eye(d)[0]) for d in (1, 2)
    ]
    ledger.identity("all 324 outcomes of two items and four directions", moved=True, b=2,
                    tolerance=1e-10, mutant={"b": 1})(enumerated_variance)  # fmt: skip
    ledger.falsify("two kinked items, all directions", constant=sixteen,
                   mutant={"constant": slightly_less}, **attempt)(diff_variance)  # fmt: skip
    ledger.sweep("a linear loss in d dimensions, exactly", d=[1, 30, 1000], constant=sixteen,
                 mutant={"constant": below_dimension})(linear_variance)  # fmt: skip
    sharper = ledger.sharper("d + (1 - 1/d) c_d^2 for 16 d; it is at most 2 d, and attained")
    sharper.falsify("two kinked items, all directions", constant=diff_constant,
                    mutant={"constant": slightly_less}, **attempt)(diff_variance)  # fmt: skip

    @sharper.sweep("at most 2 d", d=range(1, 2000), two=2.0, mutant={"two": 1.3})
    def at_most(d, two):
        return diff_constant(d), two * d

    @sharper.falsify("+-abs(<e, x> - kink), d up to 200", d=Integer(1, 200), apart=APART, kink=UNIT,
                     less=1.0, mutant={"less": 0.9},
                     extremal=[{"d": d, "apart": 1e-3, "kink": 0.0} for d in (1, 2, 30, 200)],
                     )  # fmt: skip
    def ridges(d, apart, kink, less):
        """Use delta = 1, and use x = -apart/2 and y = apart/2 on e."""
        second, mean = ridge_moments(d, apart, kink)
        bound = less * diff_constant(d) * apart**2
        return second / d + (1 - 1 / d) * mean**2, bound * (1 + 1e-3)

    @ledger.step("(2 d^2 + 2 d) / d + 4 d <= 8 d").sweep(
        "in fractions, equal at d = 1", d=range(1, 3000), most=Fraction(8),
        mutant={"most": Fraction(79, 10)},
    )  # fmt: skip
    def arithmetic(d, most):
        return Fraction(2 * d**2 + 2 * d, d) + 4 * d, most * d

    @ledger.step("norm(d_ij) <= d L norm(x - y) / delta").falsify(
        "kinked items, attained", less=1.0, mutant={"less": 0.9}, **attempt
    )
    def bounded(slopes, kinks, at, move, radius, b, less):
        u = sphere(len(at), 16)[0]
        c = single(lambda p: kinked(slopes[0], kinks[0], p), radius, u, at, at + move)
        bound = less * len(at) * constant_of(slopes) * np.linalg.norm(move) / radius
        return np.abs(c).max(), bound + ROUNDING

    @ledger.edge("data points are i.i.d.").sweep(
        "d = 1, the kink of the row above with one sign for all b items", b=17,
        lhs="E abs(Diff - difference of gradients)^2 over (r / delta)^2", rhs="16 d L^2 / b",
    )  # fmt: skip
    def all_the_same(b):
        diffs = [sum(z * (abs(1.5) - abs(0.5)) for _ in range(b)) / b for z in (1, -1)]
        return sum(g**2 for g in diffs) / 2, 16 / b


def ridge_moments(d, apart, kink):
    """Return E norm(d_ij)^2 and norm(E d_ij) for abs(<e, x> - kink) at x, y = -+apart/2 e."""

    def gap(t):
        return np.abs(apart / 2 + t - kink) - np.abs(-apart / 2 + t - kink)

    cuts = [c for c in (kink + apart / 2, kink - apart / 2) if -1 < c < 1]
    second = on_sphere(d, lambda t: (d * gap(t)) ** 2, *cuts)
    return second, on_sphere(d, lambda t: d * gap(t) * t, *cuts)
