"""Private zeroth-order optimization: uniform smoothing (Lemma 2.2), Lemmas A.1 and A.2."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from scipy.special import betainc, gammaln, roots_jacobi, roots_legendre

from algorithms.zeroth_order.losses import CappedAbsolute, Linear
from algorithms.zeroth_order.smoothing import (
    estimated_smoothing,
    smoothed_gradients,
    smoothed_values,
)
from audits.zeroth_order.conventions import DIMENSION, FEW, LIPSCHITZ, RADIUS, SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array

ROUNDING = 1e-11
SIGNS = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
RIDGES = {"slopes": Array(UNIT, (3, "d")), "kinks": Array(UNIT, (3,)), "d": FEW}
RIDGES |= {"at": Array(UNIT, ("d",)), "radius": Interval(0.05, 5.0, log=True)}
MOVED = {**RIDGES, "move": Array(UNIT, ("d",))}
APART = Interval(1e-4, 5.0, log=True)
"""norm(x - y) / delta."""


# --- functions with kinks, smoothed in closed form ---


def ball_share(t, d):
    """Return P[v_1 <= t] for v uniform on the unit ball of R^d."""
    return betainc((d + 1) / 2, (d + 1) / 2, (1 + np.clip(t, -1, 1)) / 2)


def slab(d):
    """Return the constant of Lemma A.1 for small moves, which is twice the density of v_1 at 0."""
    return 2 * math.exp(gammaln(d / 2 + 1) - gammaln((d + 1) / 2)) / math.sqrt(math.pi)


def lipschitz(slopes):
    """Bound the constant of h(x) = sum_k abs(<a_k, x> - b_k) by the longest sum of +-a_k."""
    return np.linalg.norm(SIGNS @ slopes, axis=1).max()


def value(slopes, kinks, x):
    return np.abs(slopes @ x - kinks).sum()


def smoothed(slopes, kinks, x, radius):
    """Return hhat(x) exactly.

    For each ridge, the value is E abs(s + v_1), in units of the length of the ridge * radius.
    """
    d, sizes = len(x), radius * np.linalg.norm(slopes, axis=1) + 1e-300
    s = np.clip((slopes @ x - kinks) / sizes, -1, 1)
    inside = s * (2 * ball_share(s, d) - 1) + slab(d) * (1 - s**2) ** ((d + 1) / 2) / (d + 1)
    beyond = np.abs(slopes @ x - kinks) > sizes
    return np.where(beyond, np.abs(slopes @ x - kinks), sizes * inside).sum()


def gradient(slopes, kinks, x, radius):
    """Return the gradient of hhat, exactly."""
    sizes = radius * np.linalg.norm(slopes, axis=1) + 1e-300
    return slopes.T @ (2 * ball_share((slopes @ x - kinks) / sizes, len(x)) - 1)


def capped(a, x, b, radius, cap, n):
    """Return E 2 min(abs(<a, x + radius v> - b), cap), by quadrature on the sphere in R^n."""
    a = a / max(1.0, math.hypot(*a))
    s, width = a @ x - b, radius * math.hypot(*a)
    kinks = [k for k in ((p - s) / max(width, 1e-12) for p in (-cap, 0.0, cap)) if abs(k) < 1]
    return 2 * on_sphere(n, lambda t: np.minimum(np.abs(s + width * t), cap), *kinks)


def slope_at(d, kink):
    """Return h(x) = abs(x_1 - kink)."""
    return {"slopes": np.eye(3, d) * np.eye(3)[:, :1], "kinks": np.array([kink, 0.0, 0.0])}


def ridge(d, kink=0.0, **more):
    """Return a case with h(x) = abs(x_1 - kink)."""
    return {**slope_at(d, kink), "at": np.zeros(d), "radius": 1.0, **more}


# --- Lemma 2.2 ---


@statement("zoo.lem2.2.i")
def smoothing_keeps_lipschitz(ledger):
    """Suppose h: R^d -> R is L-Lipschitz. Then its uniform smoothing hhat_delta(x) = E h(x + delta
    v), v uniform on the unit ball, is L-Lipschitz.

    Every linear function attains the constant, for every d and delta. The proof uses Jensen's
    inequality under one common v. So the lemma holds for any distribution of v.
    """
    linear = {**ridge(2, kink=-9.0), "move": np.array([0.5, 0.0])}

    @ledger.falsify("sums of kinked ridges, smoothed in closed form", most=1.0, extremal=[linear],
                    mutant={"most": 0.9}, **MOVED)  # fmt: skip
    def lipschitz_again(slopes, kinks, at, move, radius, most):
        near, far = (smoothed(slopes, kinks, x, radius) for x in (at, at + move))
        bound = most * lipschitz(slopes) * np.linalg.norm(move)
        return abs(near - far), bound + ROUNDING

    @ledger.identity("the closed form against quadrature", d=[1, 2, 3, 10], kink=[-0.9, 0.0, 0.6],
                     radius=[0.5, 2.0], more=2, tolerance=1e-8, mutant={"more": 1})  # fmt: skip
    def closed_form(d, kink, radius, more):
        """Use the fact that a coordinate of the ball is distributed as on the sphere in R^(d+2)."""
        found = smoothed(**slope_at(d, kink * radius), x=np.zeros(d), radius=radius)
        return found, radius * on_sphere(d + more, lambda t: np.abs(t - kink), kink)

    exact = {"a": Array(UNIT, ("d",)), "x": Array(UNIT, ("d",)), "b": UNIT, "d": FEW}
    exact |= {"radius": Interval(0.1, 3.0), "cap": Choice((0.3, 1.0, math.inf)), "floor": 1.0}
    exact |= {"more": 2, "mutant": {"more": 1}, "tolerance": 1e-6, "examples": 60}

    @ledger.identity("2 min(abs(<a, x> - b), cap), by `smoothing` and by quadrature", **exact)
    def by_smoothing(a, x, b, radius, cap, d, more):
        found = smoothed_values(
            [[*a, b]], loss=CappedAbsolute(2.0, cap), radius=radius, points=x[None]
        )
        return found[0, 0], capped(a, x, b, radius, cap, d + more)

    @ledger.identity("its gradient, against quotients of differences, which are wrong by 1e-3",
                     **{**exact, "tolerance": 5e-3})  # fmt: skip
    def gradients(a, x, b, radius, cap, d, more):
        found = smoothed_gradients(
            [[*a, b]], loss=CappedAbsolute(2.0, cap), radius=radius, points=x[None]
        )[0, 0]
        if math.hypot(*a) > 1 or radius * math.hypot(*a) < 1e-2:
            return None  # longer features are scaled
        steps = 1e-5 * np.eye(d)
        ends = [[capped(a, x + s * step, b, radius, cap, d + more) for s in (1, -1)]
                for step in steps]  # fmt: skip
        return found, [(p - q) / 2e-5 for p, q in ends]

    @ledger.identity("a linear loss is its own smoothing", e=Array(UNIT, (2,)), x=Array(UNIT, (2,)),
                     part=1.0, mutant={"part": 0.5}, floor=1.0)  # fmt: skip
    def of_linear(e, x, part):
        given = {"loss": Linear(2.0), "radius": 0.5, "points": x[None]}
        e = e / max(1.0, math.hypot(*e))
        found = [
            smoothed_values(e[None], **given)[0, 0],
            *smoothed_gradients(e[None], **given)[0, 0],
        ]
        return found, [part * 2 * e @ x, *(2 * e)]

    @ledger.sweep("the mean loss of two items that cancel", least=0.0, mutant={"least": 1.0})
    def cancels(least):
        draws = estimated_smoothing([[1.0], [-1.0]], 9, loss=Linear(1.0), radius=2.0, point=[0.5],
                                    rng=np.random.default_rng(0))  # fmt: skip
        return least + np.abs(draws).max(), 1e-12

    for d, t in ((1, 0.6), (2, 0.4), (3, -0.2)):

        @ledger.monte_carlo("x + delta v, v uniform on the ball: the share beyond a plane",
                            allowed=float(1 - ball_share(t, d)), draws=20_000, mutant=0.85, d=d,
                            t=t)  # fmt: skip
        def beyond(size, *, rng, d, t):
            draws = estimated_smoothing(
                np.eye(1, d), size, loss=Linear(1.0), radius=2.0, point=np.full(d, 0.25), rng=rng
            )
            return draws >= 0.25 + 2.0 * t

        @ledger.monte_carlo("the share on the other side", allowed=float(ball_share(t, d)),
                            draws=20_000, mutant=0.85, d=d, t=t)  # fmt: skip
        def before(size, *, rng, d, t):
            return ~beyond(size, rng=rng, d=d, t=t)

    domain = {"weights": Array(SHARE, (5,)), "places": Array(UNIT, (5, 2)), **MOVED, "d": 2}
    domain |= {"extremal": [{**linear, "weights": np.ones(5), "places": np.zeros((5, 2))}]}

    @ledger.step("Jensen's inequality, with the same v at x and y").falsify(
        "any distribution of v on five points", most=1.0, mutant={"most": 0.9}, **domain
    )
    def averaged(slopes, kinks, at, move, radius, weights, places, most):
        gaps = [value(slopes, kinks, at + radius * v) - value(slopes, kinks, at + move + radius * v)
                for v in places]  # fmt: skip
        bound = most * weights.sum() * lipschitz(slopes) * np.linalg.norm(move)
        return abs(weights @ np.array(gaps)), bound + ROUNDING


@statement("zoo.lem2.2.ii")
def smoothing_moves_little(ledger):
    """Suppose h: R^d -> R is L-Lipschitz. Then norm(hhat_delta(x) - h(x)) <= L delta for all x.

    The bound is never attained. As d grows, the bound becomes the best possible bound. The exact
    bound is L delta E norm(v) = L delta d / (d + 1). At d = 1, the exact bound is half of the
    printed bound. The function L norm(y - x) attains the exact bound in every dimension. (Both
    sides are numbers, so the printed norm on the left is an absolute value.)
    """

    @ledger.falsify("the distance to x, in closed form", L=LIPSCHITZ, radius=RADIUS, d=DIMENSION,
                    less=1.0, extremal=[{"L": 1.0, "radius": 1.0, "d": 1000}],
                    mutant={"less": 0.99})  # fmt: skip
    def distance(L, radius, d, less):
        return L * radius * d / (d + 1), less * L * radius

    domain = {**RIDGES, "extremal": [ridge(1)]}

    @ledger.sharper("d / (d + 1) times L delta").falsify(
        "sums of kinked ridges", less=1, mutant={"less": 1.1}, **domain
    )
    @ledger.falsify("sums of kinked ridges", less=0, mutant={"less": 1.3}, **domain)
    def moved(slopes, kinks, at, radius, less):
        change = smoothed(slopes, kinks, at, radius) - value(slopes, kinks, at)
        d = len(at)
        return abs(change), (d / (d + less)) * lipschitz(slopes) * radius + ROUNDING


@statement("zoo.lem2.2.iii")
def smoothing_is_smooth(ledger):
    """Suppose h: R^d -> R is L-Lipschitz. Then hhat_delta is differentiable and (sqrt(d)
    L/delta)-smooth.

    At d = 1, the constant is attained for every move up to 2 delta. For larger d, the constant is
    loose. As d grows, the constant tends to sqrt(pi/2) = 1.2533 times the exact constant. The exact
    constant is 2 Gamma(d/2 + 1) / (sqrt(pi) Gamma((d + 1)/2)). The function h = L abs(<e, x>)
    attains the exact constant. At d = 2, the exact constant is 4/pi instead of sqrt(2). The proof
    shows only that hhat is differentiable almost everywhere. Differentiability everywhere follows,
    because the gradient of hhat is equal to E grad h(x + delta v). This mean is continuous by the
    same display. This display is exact for ridges. The last step of the display is Lemma A.1, whose
    proof is wrong.
    """
    domain = {"L": LIPSCHITZ, "radius": RADIUS, "d": DIMENSION, "apart": APART, "power": 0.5}
    domain["extremal"] = [{"L": 1.0, "radius": 1.0, "d": d, "apart": 1e-2} for d in (1, 1000)]

    @ledger.falsify("h = L abs(<e, x>), in closed form", mutant={"power": 0.45}, **domain)
    def ridge_alone(L, radius, d, apart, power):
        """Compare the gradients of hhat at +-(apart / 2) delta e."""
        change = 2 * L * (2 * ball_share(apart / 2, d) - 1)
        return change, d**power * L / radius * (apart * radius)

    ends = [ridge(d, move=np.eye(d)[0] * 1e-3) for d in (1, 2, 3)]

    @ledger.falsify("sums of kinked ridges, exact gradients", most=1.0, mutant={"most": 0.9},
                    extremal=ends, **MOVED)  # fmt: skip
    def sums(slopes, kinks, at, move, radius, most):
        near, far = (gradient(slopes, kinks, x, radius) for x in (at, at + move))
        bound = math.sqrt(len(at)) * lipschitz(slopes) * np.linalg.norm(move) / radius
        return np.linalg.norm(near - far), most * bound + ROUNDING

    @ledger.falsify("differentiable at kinks too: hhat differs from its tangent quadratically",
                    extremal=ends, smooth=True, mutant={"smooth": False}, **MOVED)  # fmt: skip
    def tangent(slopes, kinks, at, move, radius, smooth):
        """The mutant is h itself."""
        near, far = (
            smoothed(slopes, kinks, x, radius) if smooth else value(slopes, kinks, x)
            for x in (at, at + move)
        )
        left = far - near - gradient(slopes, kinks, at, radius) @ move
        bound = math.sqrt(len(at)) * lipschitz(slopes) * (move @ move) / radius / 2
        return abs(left), bound + ROUNDING

    exact = ledger.sharper("2 Gamma(d/2 + 1) / (sqrt(pi) Gamma((d + 1)/2)) for sqrt(d), attained")

    @exact.falsify("sums of kinked ridges", most=1.0, mutant={"most": 0.99}, extremal=ends,
                   **MOVED)  # fmt: skip
    def best(slopes, kinks, at, move, radius, most):
        near, far = (gradient(slopes, kinks, x, radius) for x in (at, at + move))
        bound = slab(len(at)) * lipschitz(slopes) * np.linalg.norm(move) / radius
        return np.linalg.norm(near - far), most * bound + ROUNDING

    @exact.identity("attained by h = L abs(<e, x>) as x - y shrinks along e", d=range(1, 400),
                    apart=1e-5, tolerance=1e-6, mutant={"apart": 0.5})  # fmt: skip
    def attained(d, apart):
        return 2 * (2 * ball_share(apart / 2, d) - 1) / apart, slab(d)

    @ledger.step("the integral over S: at most L vol(S) / vol").falsify(
        "sums of kinked ridges", extremal=ends, most=1.0, mutant={"most": 0.99}, **MOVED
    )
    def over_the_difference(slopes, kinks, at, move, radius, most):
        near, far = (gradient(slopes, kinks, x, radius) for x in (at, at + move))
        share = symmetric_difference(len(at), np.linalg.norm(move) / radius)
        return np.linalg.norm(near - far), most * lipschitz(slopes) * share + ROUNDING


def symmetric_difference(d, apart):
    """Return vol(B(x, delta) symdiff B(y, delta)) / vol(delta B), for norm(x - y) = apart delta."""
    return 2 * (2 * ball_share(apart / 2, d) - 1)


@statement("zoo.lem2.2.iv", expected="holds_proof_broken")
def gradient_by_finite_differences(ledger):
    """Suppose h: R^d -> R is L-Lipschitz. Then, for u uniform on the unit sphere, grad
    hhat_delta(x) = E[(d/delta) h(x + delta u) u] = E[(d/(2 delta)) (h(x + delta u) - h(x - delta
    u)) u].

    The two forms are exact. The proof makes two errors that cancel. The gradient of h(x + delta v)
    is taken in x. But the proof applies Stokes' theorem without the factor 1 / delta of the chain
    rule. In addition, the ratio vol(B) / vol(S) of the unit ball and sphere is 1 / d, not delta /
    d. The proof also writes f instead of h, and u instead of u' in its last line.
    """
    waves = {"d": [1, 2, 3, 4, 10, 100], "frequency": [0.1, 1.0, 3.0, 10.0]}

    @ledger.identity("every plane wave: quadrature of one coordinate on sphere and ball",
                     radius=[0.3, 2.0], dims=0, tolerance=1e-10, floor=1e-6, mutant={"dims": 1},
                     **waves)  # fmt: skip
    def plane_wave(d, frequency, radius, dims):
        """Use h(x + y) = sin(<k, y> + a).

        Such waves span all h, and the two sides are linear in h.
        """
        t, w = roots_jacobi(60, (d - 1) / 2, (d - 1) / 2)
        inside = frequency * (np.cos(frequency * radius * t) @ w) / w.sum()
        outside = on_sphere(d, lambda t: np.sin(frequency * radius * t) * t)
        return inside, (d + dims) / radius * outside

    @ledger.identity("kinks: h = abs(x_1 - kink)", d=[1, 2, 3, 4, 10, 100], dims=0,
                     radius=[0.3, 2.0], kink=[-0.9, 0.0, 0.2, 0.7], two=[False, True],
                     tolerance=1e-9, floor=1e-6, mutant={"dims": 1})  # fmt: skip
    def kinked(d, kink, radius, two, dims):
        """The kink is in units of delta.

        The second form also follows from two function values.
        """
        left, right = ((lambda t, s=s: np.abs(s * t - kink) * radius * t) for s in (1, -1))
        found = on_sphere(d, left, kink)
        if two:
            found = (found - on_sphere(d, right, -kink)) / 2
        exact = gradient(**slope_at(d, kink * radius), x=np.zeros(d), radius=radius)[0]
        return exact, (d + dims) / radius * found

    @ledger.identity("a line: (h(x + delta) - h(x - delta)) / (2 delta)", wide=2.0, floor=1.0,
                     mutant={"wide": 2.1}, **{**RIDGES, "d": 1})  # fmt: skip
    def line(slopes, kinks, at, radius, wide):
        ends = [value(slopes, kinks, at + s * radius) for s in (1, -1)]
        return gradient(slopes, kinks, at, radius)[0], (ends[0] - ends[1]) / (wide * radius)

    fix = "1 / delta in Stokes' theorem and 1 / d for delta / d: the two errors cancel"

    @ledger.step("Stokes' theorem as printed, without 1 / delta", fix=fix).sweep(
        "h = x_1", radius=0.5, d=2, lhs="first coordinate of the left side, in vol(B)",
        rhs="first coordinate of the right side",
    )  # fmt: skip
    def stokes_printed(radius, d):
        return 1.0, d * (radius / d)  # vol(S) = d vol(B), E u_1^2 = 1 / d

    @ledger.step("vol(B) / vol(S) = delta / d", fix=fix).sweep(
        "the unit disc and circle", radius=0.5, d=2, lhs="vol(B) / vol(S)", rhs="delta / d"
    )
    def volumes(radius, d):
        return math.pi / (2 * math.pi), radius / d

    ledger.consequence(
        "None. The two errors cancel, and (iv) is what Algorithms 1 and 2 need.", "the wording"
    )


def on_sphere(d, function, *breaks):
    """Return E function(u_1) for u uniform on the unit sphere of R^d.

    The function is smooth between breaks.
    """
    if d == 1:
        return (function(np.array(1.0)) + function(np.array(-1.0))) / 2
    cuts = [0.0, *sorted(math.acos(b) for b in breaks), math.pi]
    nodes, weights = roots_legendre(80)
    total = 0.0
    for low, high in itertools.pairwise(cuts):
        angle = low + (high - low) * (1 + nodes) / 2
        part = function(np.cos(angle)) * np.sin(angle) ** (d - 2)
        total += (high - low) / 2 * (weights @ part)
    return total * math.exp(gammaln(d / 2) - gammaln((d - 1) / 2)) / math.sqrt(math.pi)


# --- Lemmas A.1 and A.2 ---


@statement("zoo.lemA.1", expected="holds_proof_broken")
def volume_between_balls(ledger):
    """Let x, y in R^d and S = B(x, delta) symdiff B(y, delta). Then vol(S)/vol(delta
    B) <= (sqrt(d)/delta) norm(x - y).

    At d = 1, the bound is attained for every move up to 2 delta. For large d and small moves, the
    bound is sqrt(pi/2) = 1.2533 times too large. The proof loses a factor 2 between its first and
    second display. The printed Lemma A.2 cannot compensate for the lost factor 2. With the factor
    2, Lemma A.2 gives 2 sqrt(2 d / pi) = 1.596 sqrt(d). The exact constant of Lemma A.2, sqrt(pi n)
    / 2, gives sqrt(d) exactly. The proof omits moves above 2 delta. For such moves, the claim is
    trivial, because the ratio is 2. In the volume of the ball, r^n should be r^d.
    """
    domain = {"d": DIMENSION, "apart": Interval(1e-6, 10.0, log=True), "power": 0.5}
    domain["extremal"] = [{"d": 1, "apart": 2.0}, {"d": 1000, "apart": 1e-3}]

    @ledger.falsify("by incomplete beta functions", mutant={"power": 0.45}, **domain)
    def volume(d, apart, power):
        return symmetric_difference(d, apart), d**power * apart + ROUNDING

    @ledger.sweep("every d up to 3000, for small moves", d=range(1, 3001), less=1.0,
                  mutant={"less": 0.9})  # fmt: skip
    def small_moves(d, less):
        """Use small moves.

        The density of v_1 is largest at 0, so a larger move has no larger ratio.
        """
        return slab(d), less * math.sqrt(d)

    @ledger.identity("lens of two discs and of two balls, in elementary terms", d=[2, 3],
                     apart=[1e-3, 0.3, 1.0, 1.9, 2.0], tolerance=1e-9, floor=1e-3)  # fmt: skip
    def lens(d, apart):
        common = 2 * math.acos(apart / 2) - apart / 2 * math.sqrt(4 - apart**2)
        disc, ball = 2 - 2 * common / math.pi, 2 - (4 + apart) * (2 - apart) ** 2 / 8
        return symmetric_difference(d, apart), disc if d == 2 else ball

    ledger.sharper("2 Gamma(d/2 + 1) / (sqrt(pi) Gamma((d + 1)/2)) for sqrt(d)").falsify(
        "by incomplete beta functions", less=1.0, mutant={"less": 0.999},
        **{**domain, "power": 0.5},
    )(slab_bound)  # fmt: skip

    fix = "the factor 2, with sqrt(pi n) / 2 for sqrt(2 n) in Lemma A.2, which holds"

    @ledger.step("the second display, without the factor 2 of the first", fix=fix).sweep(
        "the plane", d=2, apart=1.0, lhs="vol(S) / vol(delta B)", rhs="the second display"
    )
    def second_display(d, apart):
        u = 1 - apart / 2 + apart * (np.arange(20000) + 0.5) / 20000
        integral = apart * ((2 * u - u**2) ** ((d - 1) / 2)).mean()
        front = math.gamma(d / 2 + 1) / (math.sqrt(math.pi) * math.gamma((d - 1) / 2 + 1))
        common = 2 * math.acos(apart / 2) - apart / 2 * math.sqrt(4 - apart**2)
        return 2 - 2 * common / math.pi, front * integral

    @ledger.step("the first display, with the caps").identity(
        "caps by quadrature, up to move 2 delta", d=[1, 2, 3, 5, 20], apart=[0.1, 1.0, 2.0],
        twice=2.0, tolerance=1e-6, mutant={"twice": 1.0},
    )  # fmt: skip
    def first_display(d, apart, twice):
        cosine, w = roots_legendre(200)
        heights = [1 + apart / 2, 1 - apart / 2]
        t = [h * (1 + np.sin(math.pi / 2 * cosine)) / 2 for h in heights]
        slope = [h * math.pi / 4 * np.cos(math.pi / 2 * cosine) for h in heights]
        caps = [w @ (s * (2 * x - x**2) ** ((d - 1) / 2)) for x, s in zip(t, slope, strict=True)]
        return symmetric_difference(d, apart), twice * (caps[0] - caps[1]) * slab(d) / 2

    ledger.consequence(
        "None. The printed sqrt(d) is correct, and no smaller constant holds at d = 1.",
        "the wording",
    )


def slab_bound(d, apart, power, less):
    return symmetric_difference(d, apart), less * slab(d) * apart + ROUNDING


def gamma_ratio(n):
    return math.exp(gammaln(n / 2 + 1) - gammaln((n - 1) / 2 + 1))


@statement("zoo.lemA.2")
def ratio_of_gammas(ledger):
    """For all n in N, Gamma(n/2 + 1)/Gamma((n - 1)/2 + 1) <= sqrt(2n).

    The bound is loose. At n = 1, the ratio is .627 of the bound. For large n, the ratio is half of
    the bound. The bound sqrt(pi n) / 2 also holds. The bound sqrt(pi n) / 2 is attained at n = 1,
    and Lemma A.1 needs this bound. The induction is sound. At the base case n = 2, the double
    factorials give an equality. The induction uses 0!! = 1. The printed gamma(n) should be
    Gamma(n). At n = 0, the bound fails, because .564 > 0.
    """

    @ledger.sweep("every n up to 5000", n=range(1, 5001), two=2.0, mutant={"two": 0.7})
    def printed(n, two):
        """Use these n, because the ratio over sqrt(n) falls from sqrt(pi) / 2 to sqrt(1/2)."""
        return gamma_ratio(n), math.sqrt(two * n)

    @ledger.sharper("sqrt(pi n) / 2, attained at n = 1").sweep(
        "every n up to 5000", n=range(1, 5001), less=1.0, mutant={"less": 0.999}
    )
    def best(n, less):
        return gamma_ratio(n), less * math.sqrt(math.pi * n) / 2

    @ledger.step("n!! / (n - 1)!! <= sqrt(2 n), squared, with its base cases").sweep(
        "every n up to 300, in fractions", n=range(1, 301), two=2,
        mutant={"two": Fraction(199, 100)},
    )  # fmt: skip
    def double_factorials(n, two):
        """The two sides are equal at n = 2."""
        return double_ratio(n) ** 2, two * n

    @ledger.step("the ratio of Gammas by double factorials").identity(
        "both parities", n=range(1, 200), tolerance=1e-12, swap=0, mutant={"swap": 1}
    )
    def by_double_factorials(n, swap):
        front = math.sqrt(math.pi) / 2 if (n + swap) % 2 else 1 / math.sqrt(math.pi)
        return gamma_ratio(n), front * float(double_ratio(n))

    @ledger.step("the induction, from n - 1 to n + 1").sweep(
        "squared", n=range(2, 301), two=2, mutant={"two": Fraction(3, 2)}
    )
    def induction(n, two):
        """Compare the assumption at n - 1, times ((n + 1) / n)^2, with the claim at n + 1."""
        return Fraction(n + 1, n) ** 2 * 2 * (n - 1), two * (n + 1)

    @ledger.edge("natural N begins at 1").sweep("n = 0", n=0, lhs="the ratio", rhs="sqrt(2 n)")
    def zero(n):
        return math.gamma(n / 2 + 1) / math.gamma((n - 1) / 2 + 1), math.sqrt(2 * n)


def double_ratio(n):
    """Return n!! / (n - 1)!!."""
    found = Fraction(1)
    for k in range(2 - n % 2, n + 1, 2):
        found *= Fraction(k, max(k - 1, 1))
    return found
