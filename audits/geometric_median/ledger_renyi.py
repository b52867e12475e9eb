"""Private geometric median: Section 2.2, Renyi differential privacy."""

from __future__ import annotations

import math

import numpy as np

from dpaudit.ledger import Array, Domain, Method, statement
from dpaudit.search import Choice, Interval
from dpaudit.stats import hockey_stick, oracles, renyi_divergence

ROUNDING = 1e-12


def gaussian_renyi(alpha, shift):
    """D_alpha of N(0, 1) against N(shift, 1), from its definition, on a fine grid."""
    x = np.linspace(-40.0, 40.0, 400_001)
    log_p, log_q = -(x**2) / 2, -((x - shift) ** 2) / 2
    log_terms = alpha * log_p + (1 - alpha) * log_q - math.log(2 * math.pi) / 2
    top = log_terms.max()
    return (top + math.log(np.exp(log_terms - top).sum() * (x[1] - x[0]))) / (alpha - 1)


@statement("gm.def2")
def renyi_privacy(ledger):
    ledger.identity(
        [{"alpha": a, "shift": s} for a in (1.5, 2.0, 4.0, 8.0) for s in (0.3, 1.0, 2.5)],
        lambda alpha, shift: (gaussian_renyi(alpha, shift), alpha * shift**2 / 2),
        claim="the definition, integrated, against the closed form of Gaussians",
        method=Method.NUMERIC,
        tolerance=1e-8,
    )
    ledger.note(
        "Definition 2 takes alpha >= 1, but D_alpha is defined for alpha > 1 only: at 1 its limit, "
        "the Kullback-Leibler divergence, is meant. (alpha, rho)-RDP here bounds by alpha rho, "
        "not by rho as in Mironov (2017)."
    )


@statement("gm.fact4.1")
def renyi_composition(ledger):
    def inequality(distributions, alpha, over=max):
        """Distributions on two outcomes: of the first mechanism, and of the second after each."""
        (p, *p_then), (q, *q_then) = distributions / distributions.sum(axis=2, keepdims=True)
        joint = [distribution[:, None] * then for distribution, then in ((p, p_then), (q, q_then))]
        parts = [renyi_divergence(*pair, alpha) for pair in zip(p_then, q_then, strict=True)]
        return (
            renyi_divergence(joint[0].ravel(), joint[1].ravel(), alpha),
            renyi_divergence(p, q, alpha) + over(parts) + ROUNDING,
        )

    def average(distributions, alpha):
        """The mean of the divergences for their largest."""
        p = distributions[0, 0] / distributions[0, 0].sum()
        return inequality(distributions, alpha, over=lambda parts: float(p @ parts))

    ledger.falsify(
        Domain(
            distributions=Array(Interval(1e-3, 1.0), (2, 3, 2)), alpha=Choice((1.1, 2.0, 5.0, 20.0))
        ),
        inequality,
        claim="the second mechanism may depend on the first output",
        extremal=[
            {
                "distributions": np.array([[[1, 1], [1, 9], [1, 1]], [[1, 1], [9, 1], [1, 1]]])
                / 9.0,
                "alpha": 2.0,
            }
        ],
        mutant=average,
    )


@statement("gm.fact4.2")
def renyi_to_approximate(ledger):
    def inequality(distributions, alpha, delta, divisor=None):
        if not distributions[0].any():
            return None
        p, q = (
            distributions[0] / distributions[0].sum(),
            (distributions[1] + 1e-8) / (distributions[1] + 1e-8).sum(),
        )
        bound = renyi_divergence(p, q, alpha) + math.log(1 / delta) / (divisor or alpha - 1)
        return hockey_stick(p, q, bound), delta

    rare = {
        "distributions": np.array([[0.98, 0.02, 0.0], [1.0, 0.0, 0.0]]),
        "alpha": 1.5,
        "delta": 0.01,
    }
    ledger.falsify(
        Domain(
            distributions=Array(Interval(0.0, 1.0), (2, 3)),
            alpha=Interval(1.01, 50.0),
            delta=Interval(1e-9, 0.999, log=True),
        ),
        inequality,
        claim="finite distributions",
        extremal=[rare],
        mutant=lambda **case: inequality(**case, divisor=case["alpha"]),
    )

    def gaussian(rho, alpha, delta, divisor=None):
        epsilon = alpha * rho + math.log(1 / delta) / (divisor or alpha - 1)
        return float(oracles.gaussian(math.sqrt(2 * rho), 1.0).delta(epsilon)), delta

    ledger.falsify(
        Domain(
            rho=Interval(1e-4, 10.0, log=True),
            alpha=Interval(1.001, 1000.0, log=True),
            delta=Interval(1e-12, 0.999, log=True),
        ),
        gaussian,
        claim="Gaussian mechanisms",
        extremal=[{"rho": 0.1, "alpha": 1.5, "delta": 1e-3}],
        mutant=lambda **case: gaussian(**case, divisor=case["alpha"]),
    )
    ledger.note(
        "Needs alpha > 1; at alpha = 1, which Definition 2 allows, it divides by 0. The mutants "
        "divide log(1 / delta) by alpha."
    )


@statement("gm.fact4.3")
def gaussian_renyi_privacy(ledger):
    ledger.identity(
        [
            {"alpha": a, "shift": s, "sigma": sigma}
            for a in (1.5, 3.0)
            for s in (0.5, 1.0)
            for sigma in (0.5, 2.0)
        ],
        lambda alpha, shift, sigma: (
            gaussian_renyi(alpha, shift / sigma) / alpha,
            shift**2 / (2 * sigma**2),
        ),
        method=Method.NUMERIC,
        tolerance=1e-8,
    )


FORMER = True
