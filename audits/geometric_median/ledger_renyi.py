"""Private geometric median: Section 2.2, Renyi differential privacy."""

from __future__ import annotations

import math

import numpy as np

from algorithms.common.noise import gaussian_mechanism
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array
from dpaudit.stats import hockey_stick, oracles, renyi_divergence

ROUNDING = 1e-12


@statement("gm.def2")
def renyi_privacy(ledger):
    """Let alpha >= 1 and rho >= 0. A is (alpha, rho)-RDP if the Renyi divergence D_alpha(A(D) ||
    A(D')) is at most alpha rho for all neighbouring D, D', and rho-CDP if this holds for all alpha
    >= 1.

    The bound is alpha rho, not rho as in Mironov (2017). D_alpha is defined only for alpha > 1. At
    alpha = 1, the limit of D_alpha is intended, which is the Kullback-Leibler divergence.
    """

    @ledger.identity(
        "the divergence with which other rows are judged",
        distributions=Array(Interval(1e-3, 1.0), (2, 4)),
        alpha=Interval(1.01, 20.0), tolerance=1e-7, power=1, mutant={"power": 0},
    )  # fmt: skip
    def divergence(distributions, alpha, power):
        p, q = distributions / distributions.sum(axis=1, keepdims=True)
        defined = math.log(((p / q) ** alpha * q**power).sum()) / (alpha - 1)
        return 1 + renyi_divergence(p, q, alpha), 1 + defined

    @ledger.edge("Renyi orders exceed 1").sweep(
        "two outcomes", p=0.75, q=0.25, lhs="the limit of D_alpha at alpha = 1",
        rhs="the logarithm in D_1, which is divided by 0",
    )  # fmt: skip
    def at_one(p, q):
        limit = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
        return limit, math.log(p + 1 - p)


@statement("gm.fact4.1")
def renyi_composition(ledger):
    """If A_1 is (alpha, rho_1)-RDP and A_2 is (alpha, rho_2)-RDP for any fixed output of A_1, then
    the composition of A_2 and A_1 is (alpha, rho_1 + rho_2)-RDP.

    The bound is an equality for independent runs. The second mechanism may depend on the output of
    the first mechanism.
    """
    swapped = np.array([[[5, 5], [1, 9], [5, 5]], [[5, 5], [9, 1], [5, 5]]]) / 10.0
    distributions = {
        "distributions": Array(Interval(1e-3, 1.0), (2, 3, 2)),
        "alpha": Interval(1.01, 20.0),
    }
    distributions["extremal"] = [{"distributions": swapped, "alpha": 2.0}]

    @ledger.falsify(over=np.max, mutant={"over": np.mean}, **distributions)
    def composed(distributions, alpha, over):
        """Take distributions on two outcomes of the first mechanism and of the second mechanism."""
        (p, *p_then), (q, *q_then) = distributions / distributions.sum(axis=2, keepdims=True)
        joint = [
            (distribution[:, None] * then).ravel()
            for distribution, then in ((p, p_then), (q, q_then))
        ]
        parts = [renyi_divergence(*pair, alpha) for pair in zip(p_then, q_then, strict=True)]
        found = renyi_divergence(*joint, alpha)
        return found, renyi_divergence(p, q, alpha) + over(parts) + ROUNDING


@statement("gm.fact4.2")
def renyi_to_approximate(ledger):
    """If A is (alpha, rho)-RDP, it is also (alpha rho + log(1/delta) / (alpha - 1), delta)-DP for
    all delta in (0, 1).

    The conversion holds for alpha > 1. The conversion is tight only near alpha = 1. The conversion
    also holds if delta / alpha (1 - 1 / alpha)^(alpha - 1) replaces the second delta (Canonne,
    Kamath and Steinke 2020).
    """

    def promised(divergence, alpha, delta, less, gain):
        better = (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)
        return divergence + (math.log(1 / delta) + gain * better) / (alpha - less)

    domain = {"alpha": Interval(1.001, 50.0), "delta": Interval(1e-9, 0.5, log=True), "less": 1.0}
    rare = {
        "distributions": np.array([[0.43, 0.57, 0.0], [1e-261, 1.0, 0.0]]),
        "alpha": 1.05,
        "delta": 0.5,
    }
    finite = {**domain, "distributions": Array(Interval(0.0, 1.0), (2, 3)), "extremal": [rare]}
    normal = {**domain, "rho": Interval(1e-4, 10.0, log=True)}
    normal["extremal"] = [{"rho": 0.1, "alpha": 1.5, "delta": 1e-3}]

    @ledger.falsify("finite distributions", gain=0.0, mutant={"less": 0.0}, **finite)
    @ledger.sharper("the conversion of Canonne, Kamath and Steinke").falsify(
        gain=1.0, mutant={"gain": 1.1}, **finite
    )
    def of_distributions(distributions, alpha, delta, less, gain):
        p, q = (distributions + 1e-300) / (distributions + 1e-300).sum(axis=1, keepdims=True)
        bound = promised(renyi_divergence(p, q, alpha), alpha, delta, less, gain)
        return hockey_stick(p, q, max(bound, 0.0)), delta

    @ledger.falsify("Gaussian noise", gain=0.0, mutant={"less": 0.0}, **normal)
    def of_noise(rho, alpha, delta, less, gain):
        epsilon = promised(alpha * rho, alpha, delta, less, gain)
        return float(oracles.gaussian(math.sqrt(2 * rho), 1.0).delta(epsilon)), delta


@statement("gm.fact4.3")
def gaussian_renyi_privacy(ledger):
    """Let v map datasets to R^k with sensitivity Delta. Then, for any sigma > 0, a draw from
    N(v(D), sigma^2 I_k) is Delta^2 / (2 sigma^2)-CDP.

    The bound is an equality if v moves by Delta.
    """
    domain = {"shift": Interval(0.1, 2.0), "sigma": Interval(1.0, 9.0), "tolerance": 1e-6}

    @ledger.falsify(
        "by quadrature", alpha=Interval(1.01, 5.0), factor=0.5, mutant={"factor": 0.48}, **domain
    )
    def integrated(alpha, shift, sigma, factor):
        x = np.arange(-25.0, 25.0, 0.05)
        p, q = np.exp(-(x**2) / 2), np.exp(-((x - shift / sigma) ** 2) / 2)
        found = renyi_divergence(p / p.sum(), q / q.sum(), alpha)
        return found, alpha * factor * shift**2 / sigma**2

    @ledger.identity(
        "the drawn values", seed=Integer(0, 2**32), less=1.0, mutant={"less": 0.9}, **domain
    )
    def drawn(shift, sigma, seed, less):
        values, rngs = np.array([shift, 0.0]), [np.random.default_rng(seed) for _ in range(2)]
        found = gaussian_mechanism(values, 5, sigma=sigma, rng=rngs[0])
        return found, values + less * sigma * rngs[1].standard_normal((5, 2))
