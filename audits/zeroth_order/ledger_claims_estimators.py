"""Zeroth-order optimization: claims in the text about the estimators and their noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import ndtr
from scipy.stats import ortho_group

from algorithms.zeroth_order.estimators import difference_estimate, gradient_estimate
from algorithms.zeroth_order.losses import FunctionLoss, Linear
from algorithms.zeroth_order.oracles import oracle_gradients
from algorithms.zeroth_order.plans import VarianceReduced
from audits.zeroth_order import transcribed
from audits.zeroth_order.conventions import FEW, LIPSCHITZ, RADIUS, RHO, UNIT
from dpaudit import GaussianDP
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

SEED = Integer(0, 10**6)


def steepest(d):
    """Return a loss that is L-Lipschitz for L = 1 and as steep as possible along the axes.

    On the unit sphere, the value is z/sqrt(2) at each e_j, and -z/sqrt(2) at each -e_j.
    """

    def values(x, z):
        squares = np.sum(x**2, axis=-1, keepdims=True) + 1
        up = np.sqrt(np.maximum(0, squares - 2 * x)).min(axis=-1) + math.sqrt(0.5)
        down = np.sqrt(np.maximum(0, squares + 2 * x)).min(axis=-1) - math.sqrt(0.5)
        return z[..., 0] * np.minimum(up, down)

    return FunctionLoss(values, lipschitz=1.0, n_dimensions=d)


def moved(d, loss, basis):
    """Return norm(Grad(z) - Grad(z')) for z = 1, z' = -1, b = 1 and given directions."""
    found = [
        gradient_estimate(
            np.array([[side]]), 1, loss=loss, radius=1.0, point=np.zeros(d),
            directions=basis[None], rng=np.random.default_rng(0),
        )[0] for side in (1.0, -1.0)
    ]  # fmt: skip
    return np.linalg.norm(found[0] - found[1])


@statement("zoo.sec1.iid", expected="refuted")
def independent_directions(ledger):
    """Sampling d i.i.d. estimators for each data point is required to achieve the optimal dimension
    dependence.

    Several directions are needed, but not independent ones. Let u_1, ..., u_d be a random
    orthonormal basis for each item. Each u_j is still uniform on the sphere, so Grad and Diff stay
    unbiased. By Pythagoras, the sensitivity of Grad is at most 2 sqrt(d) L/b, not 2 d L/b. The
    sensitivity of Diff is at most 2 sqrt(d) L norm(x - y)/(b delta). The second moments do not
    grow. For d >= 2, the largest sensitivity of Grad is sqrt(2 d) L/b. The same proofs then give
    the private term d/(rho delta epsilon^2) in place of d^(3/2)/(rho delta epsilon^2). The number
    of values of f stays the same (zoo.sec1.optimal).
    """

    @ledger.sweep(
        "the sensitivity 2 d L/b of i.i.d. directions is at most five times that of a basis",
        d=[100, 400], lhs="2 d L/b", rhs="five times the sensitivity with a basis",
    )  # fmt: skip
    def no_better(d):
        """Use the largest slopes (f(u_j) - f(-u_j))/2 of a loss along all directions of a basis."""
        slopes = np.full(d, math.sqrt(0.5))
        return 2.0 * d, 5 * np.linalg.norm(2 * slopes)

    repair = ledger.repair(
        "d orthonormal directions for each item keep the bias and the second moments, and have "
        "the sensitivities 2 sqrt(d) L/b and 2 sqrt(d) L norm(x - y)/(b delta)"
    )

    @repair.falsify(
        "Grad, random bases and the steepest loss", d=Choice((1, 2, 3, 8)), seed=SEED, two=2.0,
        mutant={"two": 1.4}, extremal=[{"d": 1, "seed": 0}],
    )  # fmt: skip
    def gradient(d, seed, two):
        basis = ortho_group.rvs(d, random_state=seed) if d > 1 and seed else np.eye(d)
        return moved(d, steepest(d), basis), two * math.sqrt(d) * (1 + 1e-12)

    @repair.falsify(
        "Diff, random bases, any values", d=Choice((2, 3, 8)), seed=SEED, two=2.0,
        mutant={"two": 1.9}, extremal=[{"d": 3, "seed": 0}],
    )  # fmt: skip
    def difference(d, seed, two):
        """Let f be 0 near y, and z times the distance to y near x, where delta = L = 1.

        Each difference of two values has the largest size norm(x - y).
        """
        y, x = np.full(d, 1e3), np.zeros(d)
        loss = FunctionLoss(lambda at, z: z[..., 0] * (np.linalg.norm(at, axis=-1) < 500), 1.0, d)
        basis = ortho_group.rvs(d, random_state=seed) if seed else np.eye(d)
        found = [
            difference_estimate(
                np.array([[side * np.linalg.norm(x - y)]]), 1, loss=loss, radius=1.0, point=x,
                previous=y, directions=basis[None], rng=np.random.default_rng(0),
            )[0] for side in (1, -1)
        ]  # fmt: skip
        moves = np.linalg.norm(x - y)
        return np.linalg.norm(found[0] - found[1]), two * math.sqrt(d) * moves * (1 + 1e-12)

    @repair.falsify(
        "the second moment of Diff for linear losses is at most d L^2 norm(x - y)^2/delta^2",
        d=Choice((2, 3, 8)), seed=SEED, power=1.0, mutant={"power": 0.5},
        extremal=[{"d": 8, "seed": 1}],
    )  # fmt: skip
    def second_moment(d, seed, power):
        """For a basis, the norm of Diff does not depend on the rotation."""
        x = np.zeros(d)
        x[0] = 0.5
        found = difference_estimate(
            x[None] * 2, 1, loss=Linear(), radius=1.0, point=x, previous=np.zeros(d),
            directions=ortho_group.rvs(d, random_state=seed)[None], rng=np.random.default_rng(0),
        )  # fmt: skip
        return np.sum(found**2), d**power * 0.25 * (1 + 1e-9)

    ledger.consequence(
        "The private term of the rate, and the noise, are sqrt(d) times larger than needed.",
        harm="accuracy",
    )


@statement("zoo.sec4.2.minimal", expected="refuted")
def minimal_noise(ledger):
    """With Theorem 4.3, Corollary 4.4 determines the minimal noise required to ensure privacy for
    Algorithm 3.

    The printed noise is enough, but it is not minimal. At B_1 = T B_2/2 and for all learners, the
    factor sqrt(floor(log2(T - 1)) + 1) is exactly enough in place of sqrt(2 ln T). The quotient
    tends to .85. For T = 1000, the printed noise is 1.18 times the noise that is enough. With a
    basis in place of i.i.d. directions, 1/sqrt(d) of the noise is enough (zoo.sec1.iid).
    """

    @ledger.sweep(
        "sigma is at most 1.1 times the noise that is enough", T=[100, 1000, 10**5], d=3, L=2.0,
        rho=0.7, lhs="sigma of Corollary 4.4", rhs="1.1 times the noise that is enough",
    )  # fmt: skip
    def least(T, d, L, rho):
        s = 4 * d * L / T  # of every round, at B_1 = T/2 and B_2 = 1
        enough = s * math.sqrt(math.floor(math.log2(T - 1)) + 1) / rho
        return transcribed.corollary_4_4_sigma(T, 1, d, L, rho), 1.1 * enough

    repair = ledger.repair("the noise of Corollary 4.4 is sufficient; the least is 0.85 times it")

    @repair.sweep("sqrt(floor(log2(T - 1)) + 1) in place of sqrt(2 ln T)", T=range(2, 200), d=3,
                  L=2.0, rho=0.7, factor=1.0, mutant={"factor": 0.99})  # fmt: skip
    def enough(T, d, L, rho, factor):
        s = [4 * d * L / T] * (T - 1)
        sigma = factor * s[0] * math.sqrt(math.floor(math.log2(T - 1)) + 1) / rho if T > 1 else 1
        return transcribed.tree_parameter(s, sigma, T - 1), rho * (1 + 1e-12)

    ledger.consequence("The noise is 18% larger than needed at T = 1000.", "a constant")


@statement("zoo.sec1.votes", expected="refuted")
def votes(ledger):
    """Users report the performance of a model in the form of upvotes or downvotes. Corollary 4.4
    makes updates from such feedback private.

    The first sentence is the motivation of the paper, the second is our consequence. A vote
    f(x, z) in {0, 1} is not L-Lipschitz in x for any L. Then Diff does not shrink with norm(x - y):
    for two users whose thresholds differ, it moves by 1/delta on a line. The noise of Corollary 4.4
    counts on L norm(x - y)/delta. So the algorithm as printed is not private for votes. Either each
    user's f must be Lipschitz, for example a rating on a scale, or the difference of two values
    must be clipped to L norm(x - y). Our implementation clips.
    """

    @ledger.sweep(
        "one user's vote 1{x >= z}, the neighbour always votes 0, d = 1, L = delta = 1",
        gap=[0.1, 0.01], lhs="how much Diff moves", rhs="2 d L norm(x - y)/(b delta)",
    )  # fmt: skip
    def moves(gap):
        """Use x = gap, y = 0 and the direction 1."""
        found = [float(gap + 1 >= z) - float(z <= 0 + 1) for z in (1 + gap / 2, 9.0)]
        return abs(found[0] - found[1]), 2 * gap

    repair = ledger.repair("differences of two values are clipped to L norm(x - y)")

    @repair.falsify(
        "any votes, with clipped differences", gap=Interval(1e-4, 1.0), first=UNIT, second=UNIT,
        two=2.0, mutant={"two": 0.5}, extremal=[{"gap": 0.1, "first": 0.3, "second": -0.3}],
    )  # fmt: skip
    def clipped(gap, first, second, two):
        loss = FunctionLoss(lambda x, z: (x[..., 0] >= 1 + z[..., 0]) * 1.0, 1.0)
        found = [
            difference_estimate(
                np.array([[z * gap]]), 1, loss=loss, radius=1.0, point=np.array([gap]),
                previous=np.zeros(1), directions=np.ones((1, 1, 1)), rng=np.random.default_rng(0),
            )[0, 0] for z in (first, second)
        ]  # fmt: skip
        return abs(found[0] - found[1]), two * gap

    ledger.consequence(
        "An implementation that takes votes without clipping is not private.", harm="privacy"
    )


@statement("zoo.sec1.reduced", expected="ambiguous")
def reduced_sensitivity(ledger):
    """Our approach incorporates two zeroth-order estimators: one for the gradient and another for
    its difference between two points, with d i.i.d. estimators for each data point. Both estimators
    exhibit reduced sensitivity.

    Per item, the d directions do not reduce the sensitivity of Grad. It is 2 d L/b with one
    direction and with d directions, because all directions may agree. As the algorithm uses it,
    Grad has the batch B_1 > T, and its sensitivity is T times smaller than that of the naive oracle
    with B = 1. Diff is smaller in both readings, by norm(x - y)/delta, which is at most 2/T.
    """

    def sensitivity(d, L, b, n_directions):
        """Run Grad for f = L <e, x> and -L <e, x> with all directions equal to e."""
        items, e = np.zeros((b, d)), np.eye(d)[0]
        found = []
        for side in (1, -1):
            items[0] = side * e
            found.append(
                gradient_estimate(
                    items, 1, loss=Linear(L), radius=1.0, point=np.zeros(d),
                    directions=np.broadcast_to(e, (b, n_directions, d)),
                    rng=np.random.default_rng(0),
                )[0]
            )  # fmt: skip
        return np.linalg.norm(found[0] - found[1])

    @ledger.reading("Grad at the same b: less than with one direction", fails=True).sweep(
        "f = L <e, x> and -L <e, x>, all directions e", d=[2, 10], b=[2, 5],
        lhs="sensitivity with d directions", rhs="0.99 of the sensitivity with one direction",
    )  # fmt: skip
    def same_batch(d, b):
        """With all directions equal to e, each of the d directions adds d/(b d) in both runs."""
        left = 2 * sum(d / (b * d) for _ in range(d))
        return left, 0.99 * 2 * d / b

    @ledger.reading("Grad with B_1 = T, against the naive oracle with B = 1").sweep(
        "f = L <e, x> and -L <e, x>, all directions e", d=[1, 2, 10], T=[2, 5, 20], batch=1,
        mutant={"batch": 2},
    )  # fmt: skip
    def as_used(d, T, batch):
        return batch * sensitivity(d, 2.0, T, d), 2 * d * 2.0 / T * (1 + 1e-12)

    ledger.consequence("None: Corollary 4.4 uses the right sensitivities.", harm="the wording")


@statement("zoo.sec3.factord")
def fewer_dimensions(ledger):
    """We need to sample d i.i.d. uniform vectors to reduce the dimension dependence of the variance
    of Diff by a factor of d, from d^2 L^2 norm(x - y)^2/delta^2. While a more efficient analysis
    that avoids sampling d uniform vectors might exist, we are currently unaware of it.

    For one direction and a linear loss, the variance is exactly d^2 L^2 norm(x - y)^2/delta^2. So
    no analysis of this estimator avoids the factor. For d directions and a linear loss, the
    variance is exactly d L^2 norm(x - y)^2/delta^2. For the worst loss, the reduction is by a
    factor of .61 d for large d (zoo.lem3.2.var). More than d directions reduce nothing in order,
    because the variance over z remains. The directions need not be independent (zoo.sec1.iid).
    """
    turns = 2 * np.pi * np.arange(5) / 5
    pentagon = np.stack([np.cos(turns), np.sin(turns)], axis=1)  # has the moments of the circle

    @ledger.identity("n directions, linear f in the plane: exactly d^2/n", n=FEW,
                     power=2, slope=Interval(0.1, 5.0), step=Interval(0.01, 1.0), tolerance=1e-9,
                     mutant={"power": 1})  # fmt: skip
    def variance(n, slope, step, power):
        """Average over all directions of a pentagon, for z = e or -e with equal probability."""
        total, count = 0.0, 0
        for chosen in itertools.product(range(5), repeat=n):
            found = difference_estimate(
                np.array([[1.0, 0.0]]), 1, loss=Linear(slope), radius=1.0,
                point=np.array([step, 0.0]), previous=np.zeros(2),
                directions=pentagon[list(chosen)][None], rng=np.random.default_rng(0),
            )[0]  # fmt: skip
            mean = np.array([0.0, 0.0])  # grad Fhat is the same at x and y
            total, count = total + np.sum((found - mean) ** 2), count + 1
        return total / count, 2**power / n * (slope * step) ** 2


@statement("zoo.sec4.1.sens")
def sensitivities(ledger):
    """Setting B_1 = T, B_2 = 1 and using Remark 4.1 with D = delta/T, both g_1^l and d_t^k have
    sensitivity O(d L/T).

    The constants are 2 and 4. Both are attained by f = L <e, x> and -L <e, x> if all directions are
    e. The l is a misprint of k. An item is in one batch only, so g_t^k also moves by at most
    4 d L/T, but each of g_1^k, ..., g_T^k is released.
    """
    ledger.misprint("g_1^l", "g_1^k")

    @ledger.falsify(
        "run with B_1 = T, B_2 = 1 along a straight path", d=FEW, T=Integer(2, 8), L=LIPSCHITZ,
        radius=RADIUS, at=Interval(0.0, 1.0), four=4.0, mutant={"four": 3.9},
        extremal=[{"d": 2, "T": 4, "L": 1.0, "radius": 1.0, "at": 1.0}],
    )  # fmt: skip
    def moved_gradient(d, T, L, radius, at, four):
        """Replace one item, and take the largest move of g_1, ..., g_T; the w_t move by 2 D."""
        e, n = np.eye(d)[0], 2 * T - 1
        items = np.zeros((n, d))
        found = []
        for side in (1, -1):
            items[min(n - 1, int(at * n))] = side * e
            found.append(
                oracle_gradients(
                    items, 1, loss=Linear(L), oracle=VarianceReduced(T, 1, 0.0), radius=radius,
                    points=np.arange(T)[:, None] * 2 * radius / T * e,
                    directions=np.broadcast_to(e, (n, d, d)), rng=np.random.default_rng(0),
                )[0]
            )  # fmt: skip
        most = np.linalg.norm(found[0] - found[1], axis=1).max()
        return most, four * d * L / T * (1 + 1e-9)


@statement("zoo.appC.rsens")
def sensitivity_of_a_node(ledger):
    """For fixed y_(c,d) with (c,d) < (a,b), the mechanism R^(a,b) has sensitivity bounded by
    s_(a,b) := max_(i in [a,b]) s_i.

    The batches Z_i are disjoint, so one item changes one summand. If an item were in two batches,
    the sum of their s_i would be needed. For an item of Z_q, the bound s_q is enough. This is
    sharper if s_1 is much smaller than s_2 (zoo.lemC.1).
    """

    @ledger.falsify(
        "sums of clipped items", items=Array(UNIT, ("n",)), n=Integer(1, 5), other=UNIT,
        q=Integer(0, 4), scales=Array(Interval(0.1, 2.0), (5,)), share=1.0, mutant={"share": 0.5},
        extremal=[{"items": np.array([1.0, 0.0]), "other": -1.0, "q": 0, "scales": np.ones(5)}],
    )  # fmt: skip
    def bounded(items, other, q, scales, share):
        """M^(i) is s_i/2 times its item, so that its sensitivity is s_i."""
        n, q = len(items), q % len(items)
        left = sum(scales[i] / 2 * items[i] for i in range(n))
        right = sum(scales[i] / 2 * (other if i == q else items[i]) for i in range(n))
        return abs(left - right), share * max(scales[:n]) + 1e-12


@statement("zoo.appD.cross")
def cross_terms(ledger):
    """If E[v_i | F_(i-1)] = 0, then for all cross terms i <= j, v_i is in F_(j-1) and thus
    E <v_i, v_j> = 0, so that E norm(sum v_i)^2 = sum E norm(v_i)^2.

    The cross terms are those with i < j. For i = j, the claim would say that every v_i is 0. The
    identity is the orthogonality of martingale differences. The paper calls it a concentration
    bound.
    """
    ledger.misprint("i <= j", "i < j")

    @ledger.identity(
        "four signs, where each step depends on the signs before it",
        steps=Array(UNIT, (15,)), start=0.0, mutant={"start": 0.5}, tolerance=1e-9, floor=1.0,
    )  # fmt: skip
    def orthogonal(steps, start):
        """Step t has the size of a node of the binary tree of signs, times a fair sign."""
        total, squares = 0.0, 0.0
        for signs in itertools.product((0, 1), repeat=4):
            node, found = 0, []
            for sign in signs:
                found.append((2 * sign - 1) * steps[node] + start)
                node = 2 * node + 1 + sign
            total += sum(found) ** 2 / 16
            squares += sum(v**2 for v in found) / 16
        return total, squares


@statement("zoo.sec1.approxdp", expected="ambiguous")
def approximate_dp(ledger):
    """The guarantee is (alpha, alpha rho^2/2)-Renyi differential privacy, which is approximately
    (rho, gamma)-DP.

    The guarantee for all alpha gives (rho^2/2 + rho sqrt(2 ln(1/gamma)), gamma)-DP. So epsilon is
    rho only up to a factor of order sqrt(ln(1/gamma)). At epsilon = rho, the Gaussian mechanism has
    gamma = .052, .127 and .332 for rho = .5, 1 and 2. The difference matters where the paper
    compares its rho with the rho of a (rho, gamma)-DP algorithm (Arora et al., 2023).
    """

    @ledger.reading("epsilon = rho with a small gamma", fails=True).sweep(
        "the Gaussian mechanism at epsilon = rho", rho=[0.5, 1.0, 2.0], method=Method.NUMERIC,
        lhs="the least gamma", rhs="gamma = .01",
    )  # fmt: skip
    def equal(rho):
        return ndtr(rho / 2 - 1) - math.exp(rho) * ndtr(-rho / 2 - 1), 0.01

    @ledger.reading("up to the factor rho/2 + sqrt(2 ln(1/gamma))").falsify(
        "the Gaussian mechanism", rho=RHO, gamma=Interval(1e-12, 0.5, log=True), factor=1.0,
        mutant={"factor": 0.5},
        extremal=[{"rho": 1.0, "gamma": 1e-9}],
    )  # fmt: skip
    def logarithm(rho, gamma, factor):
        epsilon = factor * (rho**2 / 2 + rho * math.sqrt(2 * math.log(1 / gamma)))
        return GaussianDP(rho).delta(epsilon), gamma

    ledger.consequence(
        "A reader who takes rho for epsilon gets gamma = .127 at rho = 1.", harm="the wording"
    )
