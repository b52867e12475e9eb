"""Zeroth-order optimization: the naive oracle, Algorithm 6 of Appendix E."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import logsumexp

from algorithms.zeroth_order import accounts
from algorithms.zeroth_order.bounds import gradient_moment
from algorithms.zeroth_order.plans import Naive, Plan
from algorithms.zeroth_order.printed import with_learning_step
from algorithms.zeroth_order.scaled import calibrated
from audits.zeroth_order.conventions import DIMENSION, RHO, SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-9
BATCH = Integer(1, 10**4)


# --- the estimator ---


@statement("zoo.appE.moment")
def second_moment(ledger):
    """The g_t^k of Algorithm 6 is an unbiased estimator, and E norm(g_t^k)^2 <~ L^2 (d/B + 1).

    The estimate is an unbiased estimator of grad Fhat_delta(w_t^k), given w_t^k (Lemma 2.2 (iv)).
    For f = L <e, x>, the second moment is exactly L^2 ((d - 1)/B + 1). For every f and d >= 2, the
    second moment is at most L^2 (d^2/((d - 1) B) + 1). By Poincare's inequality on the sphere, odd
    1-Lipschitz functions have second moment at most 1/(d - 1). For d = 1, the second moment is at
    most L^2. So the constant is at most 2 in general. For B = 1, the constant is at most 4/3. As d
    -> infinity, the constant tends to 1.
    """
    domain = {"d": DIMENSION, "B": BATCH}

    @ledger.falsify("Poincare's inequality and the mean, constant 2", most=2.0, mutant={"most": 1.},
                    extremal=[{"d": 2, "B": 1}], **domain)  # fmt: skip
    def bounded(d, B, most):
        single = d * d / (d - 1) if d > 1 else 1.0
        return single / B + (1 - 1 / B), most * (d / B + 1)

    @ledger.identity("E norm(g~_t)^2 and the step of OSD, by `bounds`", T=Integer(1, 100),
                     noise=1.0, mutant={"noise": 1.1}, tolerance=1e-9, examples=60,
                     L=Interval(0.1, 10.0), **domain)  # fmt: skip
    def by_bounds(d, B, T, L, noise):
        """The mean has norm at most L, and the variance of B items is at most d^2 L^2/(d - 1)/B."""
        single = d * d / (d - 1) if d > 1 else 1.0
        moment = single * L**2 / B + L**2 + d * (0.3 * noise) ** 2
        plan = Plan(T, 1, 2.0, 2.0 / T, 1.0, Naive(B, 0.3))
        plan = with_learning_step(plan, d, lipschitz=L, constants="sharp")
        found = gradient_moment(plan, d, lipschitz=L)
        return [found, plan.step], [moment, 2.0 / T / math.sqrt(T * moment)]

    @ledger.identity("linear f, by a design of the sphere", d=[1, 2, 3, 5], B=[1, 2, 3],
                     one=1, mutant={"one": 0})  # fmt: skip
    def linear(d, B, one):
        """Use directions +-e_j and a generic f, because each pair +-e_j has the needed moments."""
        z = np.arange(1.0, d + 1) / np.linalg.norm(np.arange(1.0, d + 1))
        singles = np.array([d * z[j] * np.eye(d)[j] for j in range(d)])
        all_of = [np.mean(c, axis=0) for c in itertools.product(singles, repeat=B)]
        return np.mean([g @ g for g in all_of]), (d - one) / B + one

    @ledger.identity("unbiased in the plane, f piecewise linear", p=Array(UNIT, (3, 2)), even=1.0,
                     w=Array(UNIT, (2,)), floor=1.0, tolerance=2e-3, examples=40,
                     mutant={"even": 0.5})  # fmt: skip
    def unbiased(p, w, even):
        """Compare with the gradient of the smoothing, by a sum over the disc of radius 1."""
        angle = 2 * np.pi * (np.arange(720) + 0.5) / 720
        u = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        f = ((w + u) @ p.T).max(axis=1), ((w - u) @ p.T).max(axis=1)
        g = ((f[0] - f[1])[:, None] * u).mean(axis=0)
        r = np.sqrt((np.arange(60) + 0.5) / 60)
        inside = w + (r[:, None, None] * u).reshape(-1, 2)
        return even * g, p[(inside @ p.T).argmax(axis=1)].mean(axis=0)


def plane(rho, alpha, scale, sign=-1.0):
    """Return the divergence of +-<e, x> with hidden directions, by quadrature.

    The parameters are B = 1 and d = 2.
    """
    sigma = scale * 2 / rho
    angle = 2 * np.pi * np.arange(32) / 32
    ring = np.stack([1 + np.cos(angle), np.sin(angle)], axis=1)  # 2 <e, u> u
    far = 2 + 7 * sigma + 2 * alpha
    x = np.linspace(-far, far, 121)
    points = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)[..., None, :]
    p, q = (-((points - s * ring) ** 2).sum(axis=-1) / (2 * sigma**2) for s in (1.0, sign))
    p, q = (logsumexp(part, axis=-1) for part in (p, q))
    p, q = p - logsumexp(p), q - logsumexp(q)
    return logsumexp(alpha * p + (1 - alpha) * q) / (alpha - 1)


@statement("zoo.appE.sigma", expected="ambiguous")
def noise(ledger):
    """Following the same argument as the sensitivity bound in Lemma 3.1, the sensitivity of g_t^k
    of Algorithm 6 is bounded by O(d L/B). Consequently, with sigma = d L/(B rho), each gtilde_t^k
    achieves (alpha, alpha rho^2/2)-RDP.

    After a bound O(d L/B), the paper writes "if we set sigma = d L/B rho". This phrase has two
    readings. The sensitivity is 2 d L/B. In the first reading, sigma is d L/(B rho) up to the
    constant of O. In this reading, the claim holds for sigma = 2 d L/(B rho). In the second
    reading, sigma is as printed, so mu is 2 rho. So the Renyi divergence is 4 times as large as
    claimed. For d = 1, the pair f = L x and f = -L x attains this divergence at every alpha, B and
    rho. The argument by sensitivity gives no smaller bound in any dimension. For d >= 2, the
    directions are hidden. The search found no counterexample for linear losses. In the plane, the
    divergence of linear losses is at most alpha rho^2/2. For small rho, the divergence approaches
    this value. The reason is that 2 <e, u> u lies on a circle, and this circle moves by only d L =
    2. For d >= 3, the directions can be coupled so that no centre moves by more than d L. For other
    losses and d >= 2, we know no result.
    """
    reading = ledger.reading("sigma up to the constant of O: sigma = 2 d L/(B rho)")

    @reading.identity(
        "by `accounts` and `scaled`",
        d=DIMENSION,
        B=BATCH,
        rho=RHO,
        L=RHO,
        T=Integer(2, 50),
        two=2.0,
        mutant={"two": 1.9},
        tolerance=1e-9,
        examples=60,
    )
    def accounted(d, B, rho, L, T, two):
        made = Plan(T, 3, 1.0, 1.0 / T, 1.0, Naive(B, 0.0))
        made = calibrated(made, d, rho=rho, lipschitz=L, covers="transcript")
        path = np.zeros((T, d))
        sizes = {"radius": 1.0, "lipschitz": L}
        found = [made.oracle.sigma, accounts.path_gdp(made.oracle, points=path, **sizes)]
        found += list(accounts.epoch_sensitivities(made, d, L))
        return found, [two * d * L / (B * rho), rho * two / 2, *[two * d * L / B] * T]

    @reading.falsify("centres at fixed directions", d=DIMENSION, B=BATCH, rho=RHO, left=UNIT,
                     right=UNIT, two=2.0, mutant={"two": 1.9}, extremal=[
                         {"d": 3, "B": 5, "rho": 1.0, "left": 1.0, "right": -1.0},
                     ])  # fmt: skip
    def shifted(d, B, rho, left, right, two):
        """Use alpha = 2 and L = 1.

        The difference f(w + delta u) - f(w - delta u) is 2 delta times `left` or `right`.
        """
        sigma = two * d / (B * rho)
        return (d / B * abs(left - right) / sigma) ** 2, rho**2 * (1 + ROUNDING)

    @ledger.reading("sigma = d L/(B rho) as printed", fails=True).sweep(
        "d = 1, f = L x against -L x", alpha=2.0, rho=[1.0, 0.1, 10.0], B=4,
        lhs="Renyi divergence", rhs="alpha rho^2/2",
    )  # fmt: skip
    def on_a_line(alpha, rho, B):
        sigma = 1 / (B * rho)  # L = d = 1
        return alpha * (2 / B / sigma) ** 2 / 2, alpha * rho**2 / 2

    ledger.sharper("in the plane, for linear losses, the printed sigma is enough").sweep(
        "by quadrature", rho=[0.3, 1.0, 3.0], alpha=[1.5, 5.0], scale=1.0,
        method=Method.NUMERIC, mutant={"scale": 0.7},
    )(in_the_plane)  # fmt: skip
    ledger.consequence(
        "With sigma as printed, Algorithm 6 in d = 1 has twice the rho that was required. "
        "Algorithm 6 is the baseline of the paper, not the algorithm that the paper proposes.",
        harm="privacy",
    )


def in_the_plane(rho, alpha, scale):
    return plane(rho, alpha, scale), alpha * rho**2 / 2 * (1 + 1e-6)


# --- the sum of inner products ---


def rounds(h, shares, noise, fresh):
    """Return errors, Delta and slopes of all epochs of T = 3 rounds on a line.

    The parameters are B = L = delta = 1.
    """
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=6))).T
    z, xi = signs[:3] if fresh else signs[[0, 0, 0]], noise * signs[3:]
    D = 1 / 3
    x, Delta, out = np.zeros(64), np.zeros(64), []
    for t in range(3):
        w, x = x + shares[t] * Delta, x + Delta
        slope = h * (np.abs(w + 1.1) - np.abs(w - 0.9)) / 2  # slope of h abs(x + .1), smoothed
        g = slope + (1 - h) * z[t] + xi[t]
        out.append((slope - g, Delta, slope))
        Delta = np.clip(Delta - 0.2 * g, -D, D)
    return np.array(out).transpose(1, 0, 2)


@statement("zoo.appE.inner")
def inner_products(ledger):
    """E <grad Fhat_delta(w_t^k) - gtilde_t^k, Delta_t^k> = 0 because Delta_t^k is independent of
    Z_t^k. Therefore sum_(t=1..T) E <grad Fhat_delta(w_t^k) - gtilde_t^k, Delta_t^k - uhat^k> = E
    <sum_(t=1..T) grad Fhat_delta(w_t^k) - gtilde_t^k, -uhat^k> <= D sqrt(sum_(t=1..T) E norm(grad
    Fhat_delta(w_t^k) - g_t^k)^2 + E norm(xi_t^k)^2) <~ D L sqrt(T) (sqrt(d)/sqrt(B) + 1 +
    d^(3/2)/(B rho)).

    On a line, the check is exact over all outcomes. The errors are uncorrelated with all earlier
    values. If uhat^k has the best sign, the bound is attained, except for the step E abs <= sqrt(E
    ()^2). By zoo.appE.moment, the constant of the bound is at most sqrt(2). With sigma = 2 d L/(B
    rho), which privacy needs, the constant is at most 2. In the last display, the summand 1 is not
    needed. The reason is that the error has no part of size L, although g has such a part.
    """
    domain = {"h": SHARE, "shares": Array(SHARE, (3,)), "noise": Interval(0.0, 3.0), "fresh": True}

    @ledger.identity("E of the sum of <error, Delta> is 0", floor=1.0, mutant={"fresh": False},
                     end_to_end=True, **domain)  # fmt: skip
    def orthogonal(h, shares, noise, fresh):
        error, Delta, _ = rounds(h, shares, noise, fresh)
        return (error * Delta).sum(axis=0).mean(), 0.0

    far = {"h": 0.0, "shares": np.zeros(3), "noise": 0.0}

    @ledger.falsify("the bound, for every comparator that may see all", mutant={"fresh": False},
                    extremal=[far], end_to_end=True, **domain)  # fmt: skip
    def all_knowing(h, shares, noise, fresh):
        error, Delta, _ = rounds(h, shares, noise, fresh)
        left = (error * Delta).sum(axis=0) + abs(error.sum(axis=0)) / 3
        z = (1 - h) ** 2 + noise**2  # E error^2
        return left.mean(), math.sqrt(3 * z) / 3 * (1 + ROUNDING) + 1e-12

    @ledger.falsify("the bound, for uhat^k", part=1.0, mutant={"part": 0.2}, extremal=[far],
                    end_to_end=True, **domain)  # fmt: skip
    def own(h, shares, noise, fresh, part):
        error, Delta, slope = rounds(h, shares, noise, fresh)
        left = (error * (Delta + np.where(slope.sum(axis=0) >= 0, 1, -1) / 3)).sum(axis=0)
        return left.mean(), part * math.sqrt(3 * ((1 - h) ** 2 + noise**2)) / 3 + 1e-12

    @ledger.falsify("the last step, constant sqrt(2)", d=DIMENSION, B=BATCH, rho=RHO,
                    most=math.sqrt(2), mutant={"most": 1.0},
                    extremal=[{"d": 2, "B": 1, "rho": r} for r in (1e2, 1e-2)])  # fmt: skip
    def last(d, B, rho, most):
        variance = (d * d / (d - 1) if d > 1 else 1.0) / B
        printed = math.sqrt(d / B) + d**1.5 / (B * rho)
        return math.sqrt(variance + d * (d / (B * rho)) ** 2), most * printed * (1 + ROUNDING)
