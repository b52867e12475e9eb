"""Zeroth-order optimization: claims of Sections 1, 3 and 4.1 on rates and on the estimators."""

from __future__ import annotations

import math

import numpy as np

from algorithms.zeroth_order.baselines import gradient_free_descent
from algorithms.zeroth_order.estimators import gradient_estimate
from algorithms.zeroth_order.losses import FunctionLoss, Linear
from algorithms.zeroth_order.oracles import oracle_gradients
from algorithms.zeroth_order.plans import VarianceReduced
from audits.zeroth_order.conventions import DIMENSION, FEW, LIPSCHITZ, RADIUS, ROUNDS, SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-12
SMALL = Interval(1e-6, 1.0, log=True)
"""epsilon, in units of L."""
BUDGET = Interval(1e-4, 1e4, log=True)
"""rho."""


# --- rates ---


def complexity(d, epsilon, delta, rho):
    """Return the data size of the abstract, without constant and logarithms, for F* = L = 1."""
    return d / (delta * epsilon**3), d**1.5 / (rho * delta * epsilon**2)


def guarantee(M, d, delta, rho, longer=True):
    """Return the bound of the proof of Theorem 4.9 at (delta, epsilon), with its constants and K.

    The function assumes F* = L = 1 and delta <= 1. The radius of smoothing is delta / 2, because
    the final radius in the proof is twice the radius of smoothing. The number T is the larger of
    the two printed terms, or the smaller term.
    """
    r = delta / 2
    share = r * M / (1 + r)
    terms = (math.sqrt(d) * share) ** (2 / 3), math.sqrt(d**1.5 * share / rho)
    T = max(2, math.ceil(max(terms) if longer else min(terms)))
    K = M // (2 * T)
    if K < 1:
        return math.inf
    noise = 8 * math.log(T) * d**1.5 / (T * rho)
    regret = math.sqrt((240 * d / T + 3 + 3 * noise**2) / T)
    return (1 + 2 * r) / (r * K) + regret + 2 * (math.sqrt(80 * d / T) + noise)


def decades(d, delta, rho, epsilon, longer):
    """Return the growth of M in decades if epsilon / 10 replaces the bound epsilon.

    The parameters are F* = L = 1.
    """

    def needed(goal):
        low, high = -5.0, 80.0  # of log10(M)
        for _ in range(60):
            share = delta * 10 ** ((low + high) / 2) / (1 + delta)
            T = (np.sqrt(d) * share) ** (2 / 3), np.sqrt(d**1.5 * share / rho)
            T = max(T) if longer else min(T)
            enough = T / share + np.sqrt(d / T) + d**1.5 / (T * rho) <= goal
            low, high = (low, (low + high) / 2) if enough else ((low + high) / 2, high)
        return high

    return needed(epsilon / 10) - needed(epsilon), 3 + 0.001


@statement("zoo.abs.1", expected="holds_proof_broken")
def data_complexity(ledger):
    """Given a dataset of size M, the algorithm ensures (alpha, alpha rho^2/2)-Renyi differential
    privacy and finds a (delta, epsilon)-stationary point so long as M = Omegatilde(d/(delta
    epsilon^3) + d^(3/2)/(rho delta epsilon^2)). This matches the optimal complexity of its
    non-private zeroth-order analog.

    The claim holds for the bound in which T is the maximum of the two terms of Theorem 4.9. For
    this T, M = 10^5 (1 + log)^2 times the formula is enough for a guarantee of epsilon. This value
    includes constants, rounding and half the radius. For the printed minimum, M must grow like
    sqrt(d) rho/(delta epsilon^4). So dividing epsilon by 10 multiplies the needed data by 10^4, not
    by 10^3. So the theorem needs more data if the privacy is weaker. "Stationary" is read as
    stationary in expectation. The complexity counts data, not values of f. Each item costs 2 d
    values of f. The non-private algorithm of Kornowski and Shamir (2023) uses 2 values for each
    item. So the private algorithm needs d times as many values of f. The paper does not show that
    the non-private rate d/(delta epsilon^3) is optimal. Section 5 describes the optimality of this
    rate as uncertain. The minimum is the only mistake behind zoo.thm4.9.T, zoo.thm4.9.conv and
    zoo.thm4.9.int.
    """

    @ledger.falsify(
        "the explicit bound at M = C (1 + log)^2 (...)", d=DIMENSION, epsilon=SMALL,
        delta=Interval(1e-3, 1.0, log=True), rho=BUDGET, constant=1e5, longer=True,
        mutant={"longer": False},
        extremal=[{"d": 1, "epsilon": 1e-6, "delta": 1.0, "rho": 1e4},
                  {"d": 1000, "epsilon": 1.0, "delta": 1.0, "rho": 1e-4}],
    )  # fmt: skip
    def enough(d, epsilon, delta, rho, constant, longer):
        asked = sum(complexity(d, epsilon, delta, rho))
        M = constant * (1 + math.log(1 + asked)) ** 2 * asked
        return guarantee(M, d, delta, rho, longer), epsilon

    few = {"d": [1, 100], "delta": [0.1], "rho": [0.1, 1.0, 10.0], "epsilon": [1e-9]}
    ledger.step(
        "T is the minimum of the two terms",
        fix="T = max{...}: the term that grows with T is at most the sum of the two, and each of "
        "the others falls",
    ).sweep("growth of M for a tenth of epsilon", longer=False, method=Method.NUMERIC,
            lhs="decades by which M grows", rhs="the 3 of epsilon^-3", **few)(decades)  # fmt: skip
    ledger.step("with the maximum of the two terms instead").sweep(
        "growth of M for a tenth of epsilon", longer=True, mutant={"longer": False},
        method=Method.NUMERIC, **few,
    )(decades)  # fmt: skip
    ledger.consequence(
        "Let c = 1/epsilon times rho/sqrt(d). A user who runs Theorem 4.9 as printed needs c "
        "times as much data as the abstract says, if c is above 1.",
        harm="accuracy",
    )


@statement("zoo.sec1.free")
def privacy_for_free(ledger):
    """Privacy is "for free" whenever rho >= sqrt(d) epsilon: then the non-private term d/(delta
    epsilon^3) of the data complexity dominates the private term d^(3/2)/(rho delta epsilon^2).

    The ratio of the two terms is sqrt(d) epsilon/rho. So the claim is exact, and also holds with
    "if and only if". With the L of Theorem 4.9, the condition is rho L >= sqrt(d) epsilon. The
    condition is the same for the F* terms and the L delta terms. The logarithms of Omegatilde
    multiply only the private term. For the printed T of Theorem 4.9, the opposite is true. For rho
    > sqrt(d) epsilon, T is the second term, and M grows with rho.
    """
    domain = {"d": Integer(1, 10**6), "epsilon": SMALL, "delta": RADIUS}

    @ledger.falsify("the terms as printed", more=Interval(1.0, 1e6, log=True), least=1.0,
                    mutant={"least": 0.9}, extremal=[
                        {"d": 3, "epsilon": 0.1, "delta": 1.0, "more": 1.0},
                    ], **domain)  # fmt: skip
    def dominated(d, epsilon, delta, more, least):
        """The value rho is `more` times `least` times sqrt(d) epsilon."""
        main, private = complexity(d, epsilon, delta, more * least * math.sqrt(d) * epsilon)
        return private, main

    @ledger.sharper("the terms of Theorem 4.9 have the ratio sqrt(d) epsilon/(rho L)").identity(
        lipschitz=LIPSCHITZ, rho=BUDGET, initial=LIPSCHITZ, power=1.0, mutant={"power": 0.0},
        **domain,
    )  # fmt: skip
    def four_terms(d, epsilon, delta, lipschitz, rho, initial, power):
        main = d * (initial * lipschitz**2 / delta + lipschitz**3) / epsilon**3
        private = d**1.5 * (initial * lipschitz / delta + lipschitz**2) / (rho * epsilon**2)
        return private / main, math.sqrt(d) * epsilon / (rho * lipschitz**power)


def naive(d, epsilon, delta, rho, B):
    """Return M at which each term of the Appendix E bound is epsilon / 2.

    The parameters are F* + L delta = L = 1.
    """
    spread = math.sqrt(d / B) + 1 + d**1.5 / (B * rho)
    return B * (2 / epsilon) * (2 * spread / epsilon) ** 2 / delta


def batch(d, rho):
    return max(1, math.ceil(d**1.5 / rho))


@statement("zoo.sec4.1.rate", expected="refuted")
def naive_noise(ledger):
    """Adding Gaussian noise of variance O(d^2 L^2/rho^2) directly to that estimator results in the
    rate O(d^(3/2)/(rho delta epsilon^3)), which is worse by a factor of 1/epsilon than the proposed
    algorithm and does not admit any value of rho for which the non-private convergence rate is
    obtained. Variance-reduced SGD with zeroth-order estimators only achieves O(d^(3/2)/(delta
    epsilon^3)) (Chen et al., 2023).

    The paper describes the estimator with B = 1. At rho = d, the noise of this estimator multiplies
    the needed data by at most four. On a line, the noise multiplies the needed data by 2.25. So the
    rate is the non-private rate for some values of rho. For rho >= sqrt(d), the printed rate equals
    the non-private rate. Algorithm 6 attains this rate with B = d^(3/2)/rho between 1 and d. The
    values of rho in Theorem 4.9 begin at sqrt(d) epsilon. For B = 1, the analysis of Appendix E
    gives d^3/(rho^2 delta epsilon^3), not d^(3/2)/(rho delta epsilon^3). The rate d^(3/2)/(delta
    epsilon^3) of variance-reduced SGD is quoted (Chen et al., 2023), and not judged here.
    """
    for words, B, rho in (("B = 1, rho = d", "1", "d"), ("B = d, rho = sqrt(d)", "d", "d**0.5")):
        ledger.sweep(
            f"{words}: ten times the data needed without noise", B=B, rho=rho, times=10.0,
            d=[1, 100, 10**4], epsilon=[1e-8, 1e-4, 0.1], delta=0.1,
            lhs="ten times the data without noise, B = 1", rhs="the data with noise",
        )(never_free)  # fmt: skip

    ledger.step(
        "the rate with B = 1, as Appendix E sets it",
        fix="B = max{1, d^(3/2)/rho}, which adds at most a constant to the term of the variance",
    ).sweep(
        "a thousand times the printed rate", rho=1e-6, d=1, epsilon=[0.1, 1e-3], delta=0.1,
        lhs="the data of the bound of Appendix E with B = 1",
        rhs="1000 (d + d^(3/2)/rho)/(delta epsilon^3)",
    )(single)  # fmt: skip

    repair = ledger.repair(
        "with B = max{1, d^(3/2)/rho} the naive algorithm needs O(d/(delta epsilon^3) + "
        "d^(3/2)/(rho delta epsilon^3)): privacy is free from rho = sqrt(d) on, and for the "
        "proposed algorithm from sqrt(d) epsilon on"
    )

    @repair.falsify("144 (...)", d=DIMENSION, epsilon=SMALL, delta=RADIUS, rho=BUDGET, best=True,
                    mutant={"best": False},
                    extremal=[{"d": 1, "epsilon": 0.1, "delta": 1.0, "rho": 1e-4}])  # fmt: skip
    def attained(d, epsilon, delta, rho, best):
        found = naive(d, epsilon, delta, rho, batch(d, rho) if best else 1)
        return found, 144 * (d + d**1.5 / rho) / (delta * epsilon**3)

    ledger.consequence(
        "The gap between the naive and the proposed algorithm is a factor of 1/epsilon in the rho "
        "from which privacy is free. Both algorithms have such a rho.",
        harm="the wording",
    )

    @ledger.part("the lines of the method of Chen et al. as it is built here").identity(
        "two draws: every point, and the outputs", items=Array(Interval(-2.0, 2.0), (9, 2)),
        start=Array(Interval(-2.0, 2.0), (2,)), radius=Interval(0.5, 2.0), seed=Integer(0, 1000),
        step=Interval(0.05, 0.2), period=Integer(1, 4), large=Integer(1, 4), small=Integer(1, 3),
        kept=1.0, mutant={"kept": 0.9}, tolerance=1e-9,
    )  # fmt: skip
    def recursion(items, start, radius, seed, kept, **plan):
        loss = FunctionLoss(lambda x, z: ((x - z) ** 2 * BENT).sum(axis=-1), lipschitz=1e4)
        given = {
            "loss": loss, "start": start, "radius": radius, "step": plan["step"],
            "period": plan["period"], "large_batch": plan["large"], "small_batch": plan["small"],
        }  # fmt: skip
        found = [
            gradient_free_descent(
                items, 2, transcript=whole, rng=np.random.default_rng(seed), **given
            ).ravel()
            for whole in (True, False)
        ]
        return np.concatenate(found), by_loops(items, start, kept, seed, **plan)


BENT = np.array([1.0, 0.5])
"""Half the second derivatives of the loss that follows."""


def by_loops(items, start, kept, seed, step, period, large, small):
    """Return all points of two draws, and then one point of each.

    The loss is the sum of BENT (x - z)^2. Its estimate along u is d <grad f(x, z), u> u at every
    radius.
    """
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(2):
        points, x, before, v, left, t = [], start, None, None, list(items), 0
        while len(left) >= (n := small if t % period else large):
            points.append(x)
            directions = [u / math.hypot(*u) for u in rng.standard_normal((n, 2))]
            now, old = np.zeros(2), np.zeros(2)
            for z, u in zip(left[:n], directions, strict=True):
                now = now + 2 * (2 * BENT * (x - z) @ u) * u / n
                if t % period:
                    old = old + 2 * (2 * BENT * (before - z) @ u) * u / n
            v = kept * v + now - old if t % period else now
            before, x, left, t = x, x - step * v, left[n:], t + 1
        draws.append(points)
    chosen = rng.integers(len(draws[0]), size=2)
    return np.concatenate([*draws[0], *draws[1], draws[0][chosen[0]], draws[1][chosen[1]]])


def never_free(d, epsilon, times, delta, B, rho):
    """Return M at which (F* + L delta) B T / (delta M) + spread L / sqrt(T) is epsilon.

    The constant L is 1.
    """
    B, rho = {"1": 1, "d": d}[B], {"d": d, "d**0.5": d**0.5}[rho]
    found = []
    for batch, noise in ((1, 0.0), (B, d**1.5 / (B * rho))):
        spread = math.sqrt(d / batch) + 1 + noise
        found.append(batch * (2 / epsilon) * (2 * spread / epsilon) ** 2 / delta)
    return times * found[0], found[1]


def single(rho, d, epsilon, delta):
    """Return M at which (F* + L delta) T / (delta M) + spread L / sqrt(T) is epsilon.

    The constant L is 1.
    """
    spread = math.sqrt(d) + 1 + d**1.5 / rho
    found = (2 / epsilon) * (2 * spread / epsilon) ** 2 / delta
    return found, 1000 * (d + d**1.5 / rho) / (delta * epsilon**3)


# --- the estimators, in words ---


@statement("zoo.sec3.decomp")
def decomposition(ledger):
    """The gradient oracles exploit the decomposition grad Fhat_delta(x_t) = grad Fhat_delta(x_1) +
    sum_(i=1..t) (grad Fhat_delta(x_i) - grad Fhat_delta(x_(i-1))), which is estimated by
    Grad_(f,delta)(x_1, z) + sum_(i=1..t) Diff_(f,delta)(x_i, x_(i-1), z).

    The printed start of the sum is a misprint. The sum must begin at i = 2, as in Algorithm 4. If
    the sum begins at i = 1, its value is grad Fhat(x_t) - grad Fhat(x_0). But the paper defines no
    x_0. The display is correct if x_0 is defined as x_1. In the proof of Lemma 4.8, the sum begins
    at 2, but the index is printed as t instead of i. The check computes the mean of the estimate
    that Algorithm 4 makes of every grad Fhat(x_t).
    """

    @ledger.identity("from i = 2 on: the mean of the estimate of Algorithm 4, for abs on a line",
                     points=Array(Interval(-2.0, 2.0), (6,)), late=0, floor=1.0, tolerance=1e-9,
                     mutant={"late": 1}, end_to_end=True)  # fmt: skip
    def corrected(points, late):
        """Use delta = 1, so that grad Fhat is y on [-1, 1].

        On a line, both directions together give the mean.
        """
        absolute = FunctionLoss(lambda x, z: np.abs(x[..., 0] - z[..., 0]), lipschitz=1.0)
        found = oracle_gradients(
            np.zeros((6, 1)), 1, loss=absolute, oracle=VarianceReduced(1, 1, 0.0), radius=1.0,
            points=points[:, None], directions=np.broadcast_to([[1.0], [-1.0]], (6, 2, 1)),
            rng=np.random.default_rng(0),
        )[0, :, 0]  # fmt: skip
        return found[late:], np.clip(points, -1, 1)[: 6 - late]

    @ledger.misprint("the sum over i = 1, ..., t", "i = 2, ..., t").sweep(
        "as printed, Fhat of abs on a line, t = 3, x_0 = -1, x_1 = x_2 = x_3 = 1", start=-1.0,
        lhs="abs(right side - grad Fhat(x_t))", rhs="0",
    )  # fmt: skip
    def printed(start):
        """Use delta = 1, so that the gradient of the smoothing is y on [-1, 1]."""
        gradients = [start, 1.0, 1.0, 1.0]  # at x_0, ..., x_3
        right = gradients[1] + sum(gradients[i] - gradients[i - 1] for i in (1, 2, 3))
        return abs(right - gradients[3]), 1e-12


def path(moves, shares):
    """Return points x_t and w_t of Algorithm 3 for Delta_t in the unit ball, where D = 1."""
    moves = moves / np.maximum(1, np.linalg.norm(moves, axis=1, keepdims=True))
    x = np.vstack([np.zeros(moves.shape[1]), np.cumsum(moves, axis=0)])
    return x, x[:-1] + shares[:, None] * moves


def longest(points):
    return np.linalg.norm(np.diff(points, axis=0), axis=1).max()


@statement("zoo.sec3.dist", expected="ambiguous")
def successive_points(ledger):
    """In the final algorithm the distance between the parameters x, y of Diff in two successive
    iterations is controlled by delta/T. As a result, the variance in Lemma 3.2 is bounded by O(d
    L^2/(b T^2)) and its sensitivity by O(d L/(b T)).

    The points x_t, which Section 3 uses in its decomposition, move by at most delta/T. But
    Algorithm 4 queries Diff at w_t, which moves by up to 2 delta/T, as Remark 4.1 says. This
    distance is attained if Delta_t = Delta_(t+1), in the limit s_t -> 0 and s_(t+1) -> 1. The
    bounds O(d L^2/(b T^2)) and O(d L/(b T)) hold with constants 64 and 4. For moves of at most
    delta/T, the constants would be 16 and 2. Corollary 4.4 also holds, because its proof uses 2
    delta/T.
    """
    steps = {"moves": Array(UNIT, (5, 2)), "shares": Array(SHARE, (5,))}
    straight = {"moves": np.tile([0.6, 0.8], (5, 1)), "shares": np.array([0.01, 0.99] * 2 + [0.5])}

    @ledger.reading("the iterates x_t of Section 3, in units of delta/T").falsify(
        "two successive iterates", extremal=[straight], mutant={"most": 0.99}, most=1.0, **steps
    )
    def iterates(moves, shares, most):
        return longest(path(moves, shares)[0]), most + ROUNDING

    handed = "the w_t that Algorithm 4 hands to Diff, in units of delta/T"

    @ledger.reading(handed, fails=True).sweep(
        "Delta_t = Delta_(t+1) = D, s_t = .01, s_(t+1) = .99", first=0.01, second=0.99, radius=1.0,
        lhs="norm(w_(t+1) - w_t)", rhs="delta/T = D",
    )  # fmt: skip
    def queried(first, second, radius):
        x = np.array([0.0, radius])  # x_t, x_(t+1)
        w = x + np.array([first, second]) * radius
        return abs(w[1] - w[0]), radius

    @ledger.reading("up to a constant: variance at most 64 d L^2/(b T^2)").falsify(
        "the bound of Lemma 3.2 at the distances of w_t", extremal=[
            {**straight, "d": 3, "lipschitz": 1.0, "T": 10, "b": 1},
        ], d=FEW, lipschitz=LIPSCHITZ, T=ROUNDS, b=Integer(1, 100), constant=64.0,
        mutant={"constant": 60.0}, **steps,
    )  # fmt: skip
    def variance(moves, shares, d, lipschitz, T, b, constant):
        distance = longest(path(moves, shares)[1]) / T  # in units of delta
        return 16 * d * (lipschitz * distance) ** 2 / b, constant * d * (lipschitz / T) ** 2 / b

    ledger.consequence(
        "The sensitivity of Diff changes by a factor of 2. Corollary 4.4 has this factor.",
        harm="a constant",
    )


@statement("zoo.sec4.1.ks")
def two_points(ledger):
    """In the algorithm of Kornowski and Shamir (2023) the gradient oracle is simply the
    zeroth-order gradient estimator gtilde_t^k = (d/(2 delta)) (f(w_t^k + delta u, z_t^k) - f(w_t^k
    + delta u, z_t^k)) u, whose sensitivity is O(d L).

    The display contains a misprint. The two terms are the same, so the display is 0. The second
    term must be f(w - delta u, z), as in Algorithms 1 and 6. With this second term, the estimator
    is unbiased. This property is checked exactly for linear f. The sensitivity of the estimator is
    2 d L at fixed directions. The two losses f = L <u, .> and f = -L <u, .> attain this
    sensitivity.
    """

    @ledger.misprint("f(w + delta u) - f(w + delta u)", "f(w + delta u) - f(w - delta u)").sweep(
        "as printed, f(x, z) = <z, x> in the plane", angle=[0.0, 0.7, 2.0], delta=[0.1, 1.0],
        lhs="norm(grad fhat(w) - E of the estimator)", rhs="0",
    )  # fmt: skip
    def printed(angle, delta):
        """The directions of a regular pentagon have the same needed moments as the circle."""
        z, w, d = np.array([np.cos(angle), np.sin(angle)]), np.array([0.3, -1.0]), 2
        turns = 2 * np.pi * np.arange(5) / 5
        u = np.stack([np.cos(turns), np.sin(turns)], axis=1)
        g = d / (2 * delta) * ((w + delta * u) @ z - (w + delta * u) @ z)[:, None] * u
        return np.linalg.norm(g.mean(axis=0) - z), 1e-9

    @ledger.identity("f(x, z) = <z, x> in the plane", z=Array(UNIT, (2,)), w=Array(UNIT, (2,)),
                     delta=RADIUS, back=-1.0, floor=1.0, mutant={"back": 0.0})  # fmt: skip
    def unbiased(z, w, delta, back):
        """Compare rounded values, because floats lose digits if delta is small compared with w."""
        turns = 2 * np.pi * np.arange(5) / 5
        u = np.stack([np.cos(turns), np.sin(turns)], axis=1)
        g = ((w + delta * u) @ z - (w + back * delta * u) @ z)[:, None] * u / delta
        return np.round(g.mean(axis=0), 9), np.round(z, 9)

    @ledger.falsify("sensitivity at a fixed direction", d=FEW, lipschitz=LIPSCHITZ, delta=RADIUS,
                    left=UNIT, right=UNIT, two=2.0, mutant={"two": 1.9}, extremal=[
                        {"d": 3, "lipschitz": 1.0, "delta": 1.0, "left": 1.0, "right": -1.0},
                    ])  # fmt: skip
    def sensitivity(d, lipschitz, delta, left, right, two):
        """Compute the sensitivity of the implementation for f(x, z) = L <z, x>.

        The item z is parallel to the direction.
        """
        u = np.full((1, 1, d), d**-0.5)
        found = [
            gradient_estimate(
                side * u[0], 1, loss=Linear(lipschitz), radius=delta, point=np.zeros(d),
                directions=u, rng=np.random.default_rng(0),
            ) for side in (left, right)
        ]  # fmt: skip
        return np.linalg.norm(found[0] - found[1]), two * d * lipschitz
