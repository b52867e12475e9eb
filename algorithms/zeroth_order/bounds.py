"""Upper bounds on the stationarity of the output, by Theorem 4.9 and Appendix E.

All bounds are for E norm(grad F(w-bar))_{2 delta}, the stationarity at twice the smoothing radius.
The proof of Theorem 4.9 shows a bound at the radius 2 delta. The theorem itself states the radius
delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from algorithms.common import _validate
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced
from algorithms.zeroth_order.smoothing import smoothness_constant

CONSTANTS = ("printed", "sharp")


@dataclass(frozen=True)
class StationarityBound:
    """Terms of a bound on the expected stationarity at 2 delta.

    Attributes
    ----------
    optimality : float
        The largest possible decrease (F* plus the effect of smoothing), divided by D K T.
    regret : float
        Regret of the online learner, divided by D T.
    error : float
        Error of the estimates before noise, compared with the smoothed gradients.
    noise : float
        Error that the noise adds.
    """

    optimality: float
    regret: float
    error: float
    noise: float

    @property
    def total(self) -> float:
        """The sum of all terms of the bound.

        The bound gives information if it is below the Lipschitz constant.
        """
        return self.optimality + self.regret + self.error + self.noise


def stationarity_bound(
    plan: Plan, dimension: int, *, lipschitz: float, gap: float, constants: str = "sharp"
) -> StationarityBound:
    """Return the bound of Corollary 4.7 for a plan, with projected subgradient descent.

    **Guarantee** E norm(grad F(w-bar))_{2 delta} <= total, for i.i.d. items. The bound follows from
    zeroth_order, Corollary 4.7, Lemmas 3.1, 3.2 and 4.8, Corollary 4.5, and the proof of Theorem
    4.9 (or Appendix E).

    **Requires** that F is differentiable and `lipschitz`-Lipschitz, F(x_1) - inf F <= `gap`, and
    `plan.domain` times T is at most delta.

    **Departs** With "printed" constants, the squared errors are those of Lemmas 3.1 and 3.2. These
    squared errors are 16 d L^2 / b and 16 d L^2 r^2 / (b delta^2) with r = 2 D. Three squares are
    added with a factor 3, as in the proof of Theorem 4.9. With "printed" constants, smoothing adds
    2 L delta.

    With "sharp" constants, the first error is (d / (d - 1) + 1 - 1 / d) L^2 / b (L^2 / b for d =
    1). By Poincare's inequality on the sphere, an estimate in one direction has second moment at
    most d^2 L^2 / (d - 1). The second error is (d + (1 - 1 / d) c_d^2) L^2 r^2 / (b delta^2), where
    c_d is `smoothing.smoothness_constant`. For fresh s_t, E r^2 <= 7/6 D^2. The sum adds norms, not
    squared norms. Smoothing adds L delta d / (d + 1), because smoothing raises F(x_1) by at most
    this amount and never lowers inf F.

    The regret is D^2 / (2 eta) + eta / 2 sum_t E norm(g~_t)^2, for every eta.

    **Symbols** F* = `gap`, L = `lipschitz`.

    Parameters
    ----------
    plan : Plan
    dimension : int
        Dimension d.
    lipschitz : float
        Positive Lipschitz constant L.
    gap : float
        Gap F*, at least 0.
    constants : {"sharp", "printed"}

    Returns
    -------
    StationarityBound
    """
    d = _validate.integer("dimension", dimension, at_least=1)
    lipschitz = _validate.positive("lipschitz", lipschitz)
    gap = _validate.nonnegative("gap", gap)
    if plan.domain * plan.rounds > plan.radius * (1 + 1e-9):
        raise ValueError(
            f"domain * rounds must be at most radius = {plan.radius!r}, got "
            f"{plan.domain!r} * {plan.rounds!r}"
        )
    T, D = plan.rounds, plan.domain
    error = math.sqrt(squared_error(plan, d, lipschitz=lipschitz, constants=constants))
    noise = math.sqrt(_noise_terms(plan) * d) * plan.oracle.sigma
    moment = gradient_moment(plan, d, lipschitz=lipschitz, constants=constants)
    # Fresh errors are orthogonal to everything that was played before. The errors of a sum persist
    # and cost 2 D per round.
    factor = 1 / math.sqrt(T) if isinstance(plan.oracle, Naive) else 2.0
    regret = D / (2 * plan.step * T) + plan.step * moment / (2 * D)
    raised = 2.0 if constants == "printed" else d / (d + 1)  # cost of smoothing over L delta
    return StationarityBound(
        optimality=(gap + raised * lipschitz * plan.radius) / (D * plan.epochs * T),
        regret=regret,
        error=factor * error,
        noise=factor * noise,
    )


def squared_error(
    plan: Plan, dimension: int, *, lipschitz: float, constants: str = "sharp"
) -> float:
    """Return a bound on E norm(g_t - grad F^_delta(w_t))**2 before noise, for all t (Lemma 4.8)."""
    if constants not in CONSTANTS:
        raise ValueError(f"constants must be one of {', '.join(CONSTANTS)}, got {constants!r}")
    lipschitz = _validate.positive("lipschitz", lipschitz)
    d, oracle = _validate.integer("dimension", dimension, at_least=1), plan.oracle
    single = d * d / (d - 1) if d > 1 else 1.0  # second moment of one direction, over L**2
    if isinstance(oracle, Naive):
        return single * lipschitz**2 / oracle.batch
    moves = (plan.rounds - 1) * (plan.domain / plan.radius) ** 2
    if constants == "printed":
        first, later = 16.0 * d, 16 * d * 4.0
    else:
        first = single / d + 1 - 1 / d
        later = (d + (1 - 1 / d) * smoothness_constant(d) ** 2) * 7 / 6
    return lipschitz**2 * (first / oracle.first_batch + later * moves / oracle.batch)


def learning_step(domain: float, rounds: int, moment: float) -> float:
    """Return eta = D / sqrt(T G**2) for E norm(g~_t)**2 <= G**2.

    With this eta, the regret is D G sqrt(T).
    """
    return domain / math.sqrt(rounds * moment)


def gradient_moment(
    plan: Plan, dimension: int, *, lipschitz: float, constants: str = "sharp"
) -> float:
    """Return a bound on E norm(g~_t)**2, as in the first display of the proof of Theorem 4.9."""
    squared = squared_error(plan, dimension, lipschitz=lipschitz, constants=constants)
    noise = math.sqrt(_noise_terms(plan) * dimension) * plan.oracle.sigma
    if isinstance(plan.oracle, Naive):
        return squared + lipschitz**2 + noise**2
    if constants == "printed":
        return 3 * (squared + lipschitz**2 + noise**2)
    return (math.sqrt(squared) + lipschitz + noise) ** 2


def _noise_terms(plan: Plan) -> int:
    """Return the largest number of noises in a noisy gradient.

    This number is the largest number of binary digits 1 of a round up to T.
    """
    if isinstance(plan.oracle, VarianceReduced):
        return (plan.rounds + 1).bit_length() - 1  # floor(log2(T + 1))
    return 1
