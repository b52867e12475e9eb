"""Private zeroth-order optimization: sensitivities of Grad and Diff, the claims of Section 3."""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy.special import betainc, logsumexp

from algorithms.zeroth_order.estimators import difference_estimate, gradient_estimate
from audits.zeroth_order.conventions import DIMENSION, SHARE, UNIT
from audits.zeroth_order.kinked_losses import (
    COARSE,
    MOVED,
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
)
from audits.zeroth_order.ledger_smoothing import lipschitz, on_sphere
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

ORDER = Interval(1.1, 20.0, log=True)

# --- Lemmas 3.1 and 3.2: sensitivity ---

FIXED = {"raw": Array(UNIT, (3, "d", "d"))}
FIXED |= {"share": 1.0}


def estimate(slopes, kinks, items, radius, u, at, move=None):
    given = {"loss": as_loss(slopes, kinks), "radius": radius, "point": at, "directions": u}
    given["rng"] = np.random.default_rng(0)
    items = np.array(items, dtype=float)[:, None]
    if move is None:
        return gradient_estimate(items, 1, **given)[0]
    return difference_estimate(items, 1, previous=at + move, **given)[0]


def same_directions(slopes, kinks, raw, at, radius, share, move=None):
    """Return the change if the second of three items is replaced, and the bound of this change."""
    u, d = unit(raw), len(at)
    if u is None:
        return None
    one, two = (estimate(slopes, kinks, z, radius, u, at, move) for z in ([0, 0, 1], [0, 1, 1]))
    scale = 1.0 if move is None else np.linalg.norm(move) / radius
    bound = share * 2 * d * constant_of(slopes) / 3 * scale
    return np.linalg.norm(one - two), bound + ROUNDING


def worst(d, kink, **more):
    """Return a case in which all directions are equal to e_1."""
    raw = np.zeros((3, d, d))
    raw[..., 0] = 1.0
    return opposite(d, kink, raw=raw, **more)


@statement("zoo.lem3.1.sens")
def grad_moves_little(ledger):
    """If f(x, z) is differentiable and L-Lipschitz in x, then norm(Grad_(f,delta)(x, z_(1:b)) -
    Grad_(f,delta)(x, z'_(1:b))) <= 2 d L/b for any delta > 0, x in R^d and neighbouring data
    batches z_(1:b), z'_(1:b) of size b.

    For every d, the losses +-L <e, x> attain the bound if all directions are e. For d >= 2, such
    directions have probability 0. Let s be the largest singular value of the directions u_k1, ...,
    u_kd of the replaced item. With this s, the bound 2 L sqrt(d) s/b is enough. The value s is at
    most sqrt(d). For random directions, s is about 2. So the noise of the paper is about sqrt(d)/2
    times the noise that typical directions need. But RDP has to cover the worst directions. The
    lemma does not mention random directions, but its proof takes the same u in both runs. If each
    run has fresh directions, linear losses attain (b + 1) d L/b for d >= 2. For b >= 2, this
    difference is above 2 d L/b.
    """
    domain = {**TWO, **FIXED}
    domain["extremal"] = [worst(d, 9.0) for d in (1, 2, 3)]
    ledger.falsify("the implementation, three items with kinks", mutant={"share": 0.95},
                   **domain)(same_directions)  # fmt: skip

    @ledger.sharper("2 L sqrt(d) s/b, s the largest singular value of the directions").falsify(
        "the implementation, three items with kinks", mutant={"share": 0.95}, **domain
    )
    def singular(slopes, kinks, raw, at, radius, share):
        u = unit(raw)
        if u is None:
            return None
        found, bound = same_directions(slopes, kinks, raw, at, radius, share)
        return found, bound * np.linalg.svd(u[1], compute_uv=False)[0] / math.sqrt(len(at)) + 1e-9

    @ledger.edge("the same directions in both runs").sweep(
        "b = d = 2, f = z x_1, z = (1, 1) and (-1, 1), L = delta = 1", b=2, d=2,
        lhs="norm(Grad - Grad'), at separate directions", rhs="2 d L / b",
    )  # fmt: skip
    def fresh(b, d):
        e, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        runs = [[(1, e), (1, e)], [(-1, e), (1, other)]]  # (z_i, u_i1 = u_i2)
        means = [sum(d * z * u[0] * u for z, u in run) / b for run in runs]
        return np.linalg.norm(means[0] - means[1]), 2 * d / b

    rng = np.random.default_rng(0)
    u = unit(rng.standard_normal((3, 100, 100)))
    typical = np.linalg.svd(u, compute_uv=False)[:, 0].mean()
    ledger.note(f"At d = 100 the singular value is {typical:.2f} on average, against 10.")


@statement("zoo.lem3.2.sens")
def diff_moves_little(ledger):
    """If f(x, z) is differentiable and L-Lipschitz in x, then norm(Diff_f(x, y, z_(1:b)) -
    Diff_f(x, y, z'_(1:b))) <= (2 d L/(b delta)) norm(x - y) for any delta > 0, x, y in R^d and
    neighbouring data batches z_(1:b), z'_(1:b) of size b.

    For every d, the losses +-L <e, x> attain the bound if all directions are equal and x - y is
    parallel to e. The losses +-L abs(<e, x>) across the kink also attain the bound. The printed
    Diff lacks the index delta. If each run has fresh directions, the bound fails for b >= 2 and
    every d, including d = 1. Let r = norm(x - y). For a linear loss, u = 1 and u = -1 give the
    estimates +-L r/delta, which differ by 2 L r/delta on the same data.
    """
    domain = {**MOVED, **FIXED}
    domain["extremal"] = [worst(d, 9.0, move=0.1 * np.eye(d)[0]) for d in (1, 2, 3)]
    ledger.falsify("the implementation, three items with kinks", mutant={"share": 0.95},
                   **domain)(same_directions)  # fmt: skip

    @ledger.edge("the same directions in both runs").sweep(
        "d = 1, f = x for all b = 2 items, x - y = 0.1, L = delta = 1", b=2, r=0.1,
        lhs="abs(Diff - Diff'), at u = 1 and u = -1", rhs="2 d L r / (b delta)",
    )  # fmt: skip
    def fresh(b, r):
        runs = [sum(((r + u) - (0.0 + u)) * u for _ in range(b)) / b for u in (1, -1)]
        return abs(runs[0] - runs[1]), 2 * r / b


# --- the same with hidden directions ---


def renyi(log_p, log_q, alpha, cell):
    return (logsumexp(alpha * log_p + (1 - alpha) * log_q) + math.log(cell)) / (alpha - 1)


def mixture_divergence(kink, n_angles, rho, alpha, quiet, moved=False):
    """Return the divergence of noisy Grad or Diff, mixed over u.

    The parameters are d = 2 and b = 1, and the two items have opposite signs.
    """
    case = opposite(2, kink)
    u = sphere(2, n_angles)[0]
    x, y = (np.array([0.05, 0.0]), np.array([-0.05, 0.0])) if moved else (case["at"], None)
    c = single(lambda p: kinked(case["slopes"][0], case["kinks"][0], p), 1.0, u, x, y)
    g = c[:, None] * u
    means = ((g[:, None] + g) / 2).reshape(-1, 2)
    s = 4.0 * (0.1 if moved else 1.0)
    sigma = quiet * s / rho
    axis = np.linspace(-1, 1, 141) * (s * alpha + 7 * sigma)
    part = [-((axis - m[:, None]) ** 2) / (2 * sigma**2) for m in means.T]
    top = [each.max(axis=0) for each in part]
    both = np.exp(part[0] - top[0]).T @ np.exp(part[1] - top[1])
    log_p = np.log(np.maximum(both, 1e-300)) + top[0][:, None] + top[1]
    log_p -= math.log(len(means) * 2 * math.pi * sigma**2)
    found = renyi(log_p, log_p[::-1, ::-1], alpha, (axis[1] - axis[0]) ** 2)
    return found, alpha * rho**2 / 2


@statement("zoo.lem3.1.priv")
def hidden_directions(ledger):
    """The directions u of Grad are drawn independently of the data and are not released. So Grad
    plus N(0, sigma^2 I) with sigma = s/rho, where s = 2 d L/b is the sensitivity at fixed
    directions, is (alpha, alpha rho^2/2)-RDP: a mixture over the directions is no worse than the
    worst of them. The same holds of Diff with s = (2 d L/(b delta)) norm(x - y).

    Renyi divergences of one order are jointly quasi-convex in both arguments. So the divergence of
    a mixture over a data-independent variable is at most the largest divergence of the mixed parts.
    The bound is attained at d = 1, where Grad of +-L x does not depend on u. For d = 2 and b = 1, a
    quadrature mixes the directions. In this case, the divergence for Grad of +-L <e, x> is .24 to
    .25 of the bound. The divergence for Diff of +-L abs(<e, x>) across the kink is .38 to .41 of
    the bound. Diff of +-L <e, x> reveals nothing, because the distribution of u is symmetric. The
    directions must not depend on the data. Publishing the directions is harmless.
    """
    parts = {"p": Array(UNIT, (4,)), "apart": Array(UNIT, (4,)), "weights": Array(SHARE, (4,))}
    parts |= {"rho": Interval(0.1, 3.0, log=True), "alpha": ORDER, "quiet": 1.0}
    same = {"p": np.zeros(4), "apart": np.ones(4), "weights": np.ones(4), "rho": 1.0, "alpha": 2.0}

    @ledger.falsify("mixtures of four shifted Gaussians, d = 1", extremal=[same],
                    mutant={"quiet": 0.9}, **parts)  # fmt: skip
    def mixed(p, apart, weights, rho, alpha, quiet):
        """At direction k, use the mean p_k or p_k + s apart_k, where s = 1 and sigma = 1 / rho."""
        if weights.sum() < 1e-3:
            return None
        sigma, weights = quiet / rho, weights / weights.sum()
        axis = np.linspace(-1, 1, 1201) * (2 + alpha + 9 * sigma)
        logs = [
            logsumexp(-((axis[:, None] - m) ** 2) / (2 * sigma**2), axis=1, b=weights)
            - math.log(sigma * math.sqrt(2 * math.pi))
            for m in (p, p + apart)
        ]
        return renyi(*logs, alpha, axis[1] - axis[0]), alpha * rho**2 / 2 + 1e-6

    plane = {"kink": [9.0, 0.3], "rho": [0.5, 1.0, 2.0], "alpha": [1.5, 2.0, 5.0], "quiet": 1.0}
    plane |= {"method": Method.NUMERIC, "mutant": {"quiet": 0.3}, "n_angles": [1, 12]}
    ledger.sweep("Grad in the plane, over separate directions", moved=False,
                 **plane)(mixture_divergence)  # fmt: skip
    ledger.sweep("Diff in the plane, over separate directions", moved=True,
                 **plane | {"kink": [9.0, 0.0]})(mixture_divergence)  # fmt: skip
    ratios = [np.divide(*mixture_divergence(9.0, 24, rho, 2.0, 1.0)) for rho in (0.5, 1.0, 2.0)]
    words = ", ".join(f"{r:.3f}" for r in ratios)
    ledger.note(f"Mixed over 24 angles for each direction, Grad of +-x_1 has {words} of the bound "
                "at alpha = 2 and rho = .5, 1, 2.")  # fmt: skip


# --- Section 3, on single estimators ---


def four(d):
    return 4.0


def poincare(d):
    return d / (d - 1) if d > 1 else 1.0


def below_linear(d):
    return 0.99


@statement("zoo.sec3.2mom")
def second_moment_of_one(ledger):
    """A single two-point estimator g_i = (d/(2 delta)) (f(x + delta u, z_i) - f(x - delta u, z_i))
    u, u uniform on the unit sphere, of an L-Lipschitz f satisfies E norm(g_i)^2 = O(d L^2).

    By Poincare's inequality on the sphere, the claim holds with d^2 L^2/(d - 1) for d >= 2. This
    value is at most 2 d L^2. For d = 1, the claim holds with L^2. Integrating the concentration
    inequality of this section gives 4 d L^2. For linear losses, the value is d L^2. So the constant
    lies between 1 and d/(d - 1). With one direction for each item, Grad has the variance O(d L^2/b)
    of Lemma 3.1, as Section 3 says. With d directions, Grad has the variance O(L^2/b).
    """
    domain = {**TWO, "extremal": [opposite(d, 9.0) for d in (1, 2, 3)]}

    @ledger.sharper("d^2 L^2/(d - 1) for d >= 2, L^2 for d = 1").falsify(
        "two kinked items", constant=poincare,
        mutant={"constant": below_linear}, **domain
    )  # fmt: skip
    @ledger.falsify("the constant 4 of the quoted argument", constant=four,
                    mutant={"constant": below_linear}, **domain)  # fmt: skip
    def second(slopes, kinks, at, radius, constant):
        d, (u, w) = len(at), sphere(len(at))
        found = moments(slopes, kinks, u, w, radius, at)[0].max()
        return found, COARSE * constant(d) * d * constant_of(slopes) ** 2 + ROUNDING

    @ledger.falsify("+-abs(<e, x> - kink), d up to 200", d=Integer(1, 200), kink=UNIT, constant=4.0,
                    extremal=[{"d": d, "kink": 1.0} for d in (1, 30, 200)],
                    mutant={"constant": 0.99})  # fmt: skip
    def ridges(d, kink, constant):
        cuts = sorted({c for c in (kink, -kink) if -1 < c < 1})
        found = on_sphere(d, lambda t: (np.abs(t - kink) - np.abs(-t - kink)) ** 2 / 4, *cuts)
        return d**2 * found, constant * d * (1 + 1e-6)

    @ledger.step("the tail, integrated: E (h - E h)^2 <= 4 L^2 / d").identity(
        "by quadrature", d=[1, 2, 10, 100], four=4.0, tolerance=1e-6, mutant={"four": 2.0}
    )
    def integrated(d, four):
        t = (np.arange(200_000) + 0.5) / 200_000 * 20 / math.sqrt(d)
        return (2 * t * 2 * np.exp(-d * t**2 / 2)).sum() * (t[1] - t[0]), four / d


@functools.cache
def polar(d):
    """Return angles from the pole and the probabilities of these angles."""
    n = 600
    angles = math.pi * (np.arange(n) + 0.5) / n
    weights = np.sin(angles) ** (d - 2.0)
    return angles, weights / weights.sum()


def cap(d, angle):
    """Return the probability of the cap with a given angle."""
    return float(betainc((d - 1) / 2, (d - 1) / 2, (1 - math.cos(angle)) / 2))


def worst_of_caps(d, low, high, chordal=True):
    """Return t and P for the worst 1-Lipschitz h with two caps, and with one cap.

    The function h is c on a cap of angle `low`, and h is at least c + 2 t beyond the angle `high`.
    The value t is the largest value that E h allows on either side. The result is None if the caps
    overlap.
    """
    if high <= low or high - low < 1e-6:
        return None
    distance = (lambda a: 2 * np.sin(a / 2)) if chordal else (lambda a: a)
    angles, w = polar(d)
    gap = float(distance(high - low))
    above = w @ np.minimum(gap, distance(np.clip(high - angles, 0, None)))
    below = w @ np.minimum(gap, distance(np.clip(angles - low, 0, None)))
    outside = 1 - cap(d, high)
    one_sided = float(w @ distance(np.clip(high - angles, 0, None))), outside
    return (min(gap / 2, above, below), cap(d, low) + outside), one_sided


@statement("zoo.sec3.conc")
def concentration(ledger):
    """If h is L-Lipschitz on u and u is uniform on the unit sphere, then P{abs(h(u) - E h(u)) >= t}
    <= 2 exp(-d t^2/(2 L^2)).

    The bound holds in all tested cases. These cases use deviations from the mean. The exponent has
    d, not d - 1. By Levy's isoperimetric inequality, some monotone Lipschitz function of the angle
    from a pole has the same distribution as h. So the worst case is two caps or one cap. For d from
    2 to 100, the check searches the angles of these caps. At d = 1, the largest probability is .824
    of the bound. The function h = L u attains this probability at t = L. For d >= 2, the factor 2
    is not needed for the chordal distance. The function f(x + delta u) uses the chordal distance.
    Distances along the sphere are larger than chordal distances. If d >= 2, the bound also holds
    for distances along the sphere. At d = 2, the largest probability is .503 of the bound. The
    paper does not specify the distance.
    """
    domain = {"d": Integer(2, 100), "low": Interval(0.0, math.pi), "high": Interval(0.0, math.pi)}
    domain |= {"two": 2.0, "times": 1.0, "chordal": True}
    wide = [{"d": d, "low": math.acos(2.2 / math.sqrt(d))} for d in (20, 60, 100)]
    wide = [{**case, "high": math.pi - case["low"]} for case in wide]
    circle = {"d": 2, "low": 0.437, "high": 2.704}
    along = ledger.sharper("for Lipschitz constants along the sphere, d >= 2")

    @ledger.sharper("without the factor 2, for d >= 2").falsify(
        "two caps, and one", extremal=wide, mutant={"times": 1.6}, **{**domain, "two": 1.0}
    )
    @along.falsify("two caps, and one", mutant={"times": 2.0}, extremal=[circle, *wide],
                   **{**domain, "chordal": False})  # fmt: skip
    @ledger.falsify("two caps, and one", extremal=wide, mutant={"times": 2.0}, **domain)
    def caps(d, low, high, two, times, chordal):
        found = worst_of_caps(d, low, high, chordal)
        if found is None:
            return None
        least = max(p / (two * math.exp(-times * d * t**2 / 2)) for t, p in found)
        return least, 1.0 + 1e-6

    @ledger.sweep("d = 1: h = L u at t = L, and every smaller t", t=[0.25, 0.5, 0.9, 1.0],
                  two=2.0, mutant={"two": 1.6})  # fmt: skip
    def two_points(t, two):
        return 1.0, two * math.exp(-(t**2) / 2)

    some = {k: v for k, v in TWO.items() if k not in ("slopes", "kinks")}
    some |= {"slopes": Array(UNIT, (3, "d")), "kinks": Array(UNIT, (3,)), "t": SHARE, "two": 2.0}
    line = {"slopes": np.eye(3, 1), "kinks": np.array([9.0, 0, 0]), "at": np.zeros(1)}

    @ledger.falsify("sums of kinked ridges on the sphere, d <= 3", mutant={"two": 1.6},
                    extremal=[{**line, "radius": 1.0, "t": 1.0}], **some)  # fmt: skip
    def ridges(slopes, kinks, at, radius, t, two):
        u, w = sphere(len(at))
        h, most = kinked(slopes, kinks, at + radius * u), radius * lipschitz(slopes)
        share = w @ (np.abs(h - w @ h) >= t * most - 1e-9)
        return share, two * math.exp(-len(at) * t**2 / 2) * COARSE**10


@statement("zoo.sec3.lip2")
def difference_on_the_sphere(ledger):
    """For an L-Lipschitz f the function h(u) = f(x + delta u) - f(y + delta u) is indeed 2 L
    delta-Lipschitz, but using this would bound the variance at O(d L^2), which does not match the
    target of O(d L^2/T^2).

    The constant 2 L delta is attained. An example is a kink between x + delta u and y + delta u
    with norm(x - y) >= delta norm(u - u'). For smaller r = norm(x - y), the difference is at most 2
    L r for all u and u'. The variance that follows from the concentration inequality, 16 d L^2,
    contains no T. So the argument is correct. But the argument is a remark on a method, not a lower
    bound.
    """
    domain = {**MOVED, "pair": Array(UNIT, (2, "d"))}
    vee = opposite(1, 0.0, at=np.array([1.0]), move=np.array([-2.0]), radius=0.5)
    vee["pair"] = np.array([[1.0], [-1.0]])
    domain["extremal"] = [vee]

    @ledger.falsify("kinked ridges, attained", two=2.0, mutant={"two": 1.9}, **domain)
    def constant(slopes, kinks, at, move, radius, pair, two):
        u = unit(pair)
        if u is None:
            return None
        h = kinked(slopes[0], kinks[0], at + radius * u)
        h = h - kinked(slopes[0], kinks[0], at + move + radius * u)
        bound = two * lipschitz(slopes[0]) * radius * np.linalg.norm(u[0] - u[1])
        return abs(h[0] - h[1]), bound + ROUNDING

    @ledger.identity("d^2 / delta^2 times 4 (2 L delta)^2 / d is 16 d L^2, without T", d=[1, 5, 50],
                     radius=[0.1, 2.0], L=[0.5, 3.0])  # fmt: skip
    def variance_from_it(d, radius, L):
        return d**2 / radius**2 * 4 * (2 * L * radius) ** 2 / d, 16 * d * L**2


@statement("zoo.sec3.diff2mom")
def second_moment_of_a_difference(ledger):
    """Directly using the Lipschitzness of f bounds E norm((d/delta) (f(x + delta u, z_i) - f(y +
    delta u, z_i)) u)^2 <= ((d L/delta) norm(x - y))^2 = O(d^2 L^2/T^2).

    For every d and delta, the loss L <e, x> attains the first bound if x - y is parallel to e. So
    the Lipschitz condition alone gives no smaller bound. By Remark 4.1, norm(x - y) is at most 2
    delta/T. So the constant in O is 4, and this constant is attained. The distance delta/T in
    Section 3 is the distance of the points x, not of the points w.
    """
    domain = {**MOVED}
    domain["extremal"] = [opposite(d, 9.0, move=0.1 * np.eye(d)[0]) for d in (1, 2, 3)]

    @ledger.falsify("kinked ridges, attained", less=1.0, mutant={"less": 0.99}, **domain)
    def second(slopes, kinks, at, move, radius, less):
        d, (u, w) = len(at), sphere(len(at))
        found = moments(slopes, kinks, u, w, radius, at, at + move)[0].max()
        bound = (d * constant_of(slopes) * np.linalg.norm(move) / radius) ** 2
        return found, less * bound * (1 + 1e-9) + ROUNDING

    @ledger.falsify("the O, with constant 4", d=DIMENSION, rounds=Choice((1, 2, 5, 100)),
                    stay=SHARE, leave=SHARE, four=4.0, mutant={"four": 3.9},
                    extremal=[{"d": 3, "rounds": 5, "stay": 0.0, "leave": 1.0}])  # fmt: skip
    def along_the_path(d, rounds, stay, leave, four):
        """Use L = delta = 1, a linear loss, and a straight path with steps D = delta / T."""
        r = (1 - stay + leave) / rounds
        return (d * r) ** 2, four * d**2 / rounds**2
