"""Planning of the number of draws that certify a violation of a given size.

:mod:`dpaudit.engine.chances` computes the power for a known distribution. This module solves for
the number of draws. The only assumption is the distribution of the outputs. The assumed
distribution is that on the worst pair of a mechanism that needs exactly the true epsilon.
Alternatively, the user gives the rates of an event.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import LARGEST_EPSILON, Claim
from dpaudit.engine.chances import (
    BY_EVENT,
    BY_RANK,
    MAX_DRAWS,
    USUAL_POWER,
    Chances,
    by_event,
    events_of,
    smallest,
)
from dpaudit.engine.task import EXPLORE_SHARE, RANKED_DRAWS
from dpaudit.errors import ArgumentError
from dpaudit.stats import oracles
from dpaudit.stats.oracles import Oracle

_LARGEST_EPSILON = 20.0  # beyond it no number of draws distinguishes an event's rate from 0
_CURVE_POINTS = 25


@dataclass(frozen=True)
class Plan:
    """The number of draws that an audit needs.

    Parameters
    ----------
    draws : int
        Draws per dataset, including exploration, that refute the claim with probability `power`.
    power : float
        The requested power.
    claimed_epsilon, claimed_delta, true_epsilon : float
        The claim, and the epsilon that the mechanism really needs at the claimed delta.
    likely, rare : float
        Assumed rates: of an event, or of correct and wrong guesses.
    failure_prob : float
        Failure probability of the audit.
    model : str
        Origin of the rates, in words.
    curve_draws, curve_power : tuple of float
        Power for a range of numbers of draws.
    instrument : str
        Assumed instrument: counts of one event, guesses in two tails, or guesses by rank.
    draws_without_ranks : int or None
        Draws per dataset if the plan assumes guesses by rank but such guesses cannot be made.
        Guesses by rank cannot be made if an output is not one number, or if the pair must be
        searched for. None if the plan does not assume guesses by rank.
    """

    draws: int
    power: float
    claimed_epsilon: float
    claimed_delta: float
    true_epsilon: float
    likely: float
    rare: float
    failure_prob: float
    model: str
    curve_draws: tuple[int, ...]
    curve_power: tuple[float, ...]
    instrument: str = BY_EVENT
    draws_without_ranks: int | None = None

    def __str__(self) -> str:
        claim = f"epsilon = {self.claimed_epsilon:g}, delta = {self.claimed_delta:g}"
        rows = [
            f"  {draws:>14,}  {power:.3f}"
            for draws, power in zip(self.curve_draws[::3], self.curve_power[::3], strict=True)
        ]
        by_rank = self.instrument == BY_RANK
        explored = "no draws are" if by_rank else f"{EXPLORE_SHARE:.0%} of the draws are"
        rates = "rates" if self.instrument == BY_EVENT else "right and wrong guesses at rates"
        ranked = [
            f"Guesses by rank need {RANKED_DRAWS[0]} to {RANKED_DRAWS[1]:,} draws of one number on "
            f"a named pair. Otherwise, {self.draws_without_ranks or 0:,} draws are needed."
        ]
        return "\n".join(
            [
                f"{self.draws:,} draws per dataset refute the claim {claim} with probability "
                f"{self.power:g}",
                f"if the mechanism really needs epsilon = {self.true_epsilon:g} "
                f"(failure_prob {self.failure_prob:g}; {explored} used to explore).",
                f"Assumed: {self.instrument}, {self.model}, with {rates} {self.likely:.3g} and "
                f"{self.rare:.3g}.",
                *ranked * by_rank,
                f"  {'draws per dataset':>14}  power",
                *rows,
            ]
        )


def plan(
    claim: Claim,
    true_epsilon: float,
    *,
    power: float = USUAL_POWER,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    oracle: Oracle | None = None,
    rates: tuple[float, float] | None = None,
) -> Plan:
    """Return how many draws certify a violation of a given size.

    Parameters
    ----------
    claim : PureDP or ApproxDP
        Claim that should be refuted.
    true_epsilon : float
        Epsilon that the mechanism really needs at the claimed delta, above the claimed epsilon.
    power : float, optional
        Wanted probability of a refutation, in (0, 1). The default is 0.9.
    failure_prob : float, optional
        Failure probability of the audit, in (0, 1). The default is 1e-6.
    oracle : Oracle, optional
        Distribution of the outputs on the worst pair. The plan assumes that the audit finds the
        best event or guess for this distribution. For Laplace and Gaussian noise, the plan assumes
        outputs that are one number, on a given pair. The default is Laplace noise for delta = 0 and
        Gaussian noise for delta > 0, with a scale that needs exactly `true_epsilon`.
    rates : (float, float), optional
        Rates of an event on the likelier side and on the other side, instead of `oracle`. If rates
        are given, guesses by rank are not considered, because the ranks are unknown.

    Returns
    -------
    Plan
        Draws per dataset, including exploration, and the power curve.

    Raises
    ------
    ValueError
        If an argument is out of range, or if even 10 billion draws would miss the violation.
    TypeError
        If the claim is a curve. For a curve, pass the violated point as an `ApproxDP`.

    Notes
    -----
    The plan assumes that the audit uses the best pair. The plan assumes the instrument with the
    largest power. This instrument is an event, guesses in two tails, or (for a small number of
    draws of one number) guesses by rank. The plan allows for the fact that learnt events and
    guesses are slightly worse than the best events and guesses. Guesses by rank need no learning.
    In an audit, guesses by rank and learnt events get half of failure_prob each. The plan relies on
    only one of the two.

    The page docs/measured.md on detectable epsilons shows how often audits of the planned size
    refuted.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> found = plan(PureDP(1.0), 1.2)
    >>> 6_500 < found.draws < 8_000, found.instrument
    (True, 'guesses in two tails')
    """
    point = getattr(claim, "point", None)
    if not isinstance(claim, Claim) or point is None:
        raise TypeError(
            f"claim must be a PureDP or an ApproxDP, got {_validate.describe(claim)}. Pass the "
            "violated point of a curve: ApproxDP(claim.epsilon(delta), delta)"
        )
    epsilon, delta = point
    true_epsilon = _validate.positive(true_epsilon=true_epsilon)
    if true_epsilon > LARGEST_EPSILON:
        raise ArgumentError(
            f"true_epsilon must be a number in (0, {LARGEST_EPSILON:g}], got {true_epsilon!r}"
        )
    if true_epsilon <= epsilon:
        raise ArgumentError(
            f"true_epsilon must be a number > {epsilon!r}, the claimed epsilon, got "
            f"{true_epsilon!r}. Pass a larger value: otherwise there is no violation to plan for"
        )
    power = _validate.failure_prob(power=power)
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    if epsilon > _LARGEST_EPSILON:
        raise ArgumentError(
            f"claim must have an epsilon of at most {_LARGEST_EPSILON:g} for a plan, got {claim}"
        )
    if rates is not None and oracle is not None:
        raise ArgumentError("only one of oracle and rates must be given, got both")
    if oracle is not None and not isinstance(oracle, Oracle):
        raise TypeError(f"oracle must be one of dpaudit.oracles, got {oracle!r}")
    if rates is not None:
        model = "as given"
        known = _given(rates, epsilon, true_epsilon, delta)
        chances = Chances.of_rates(known, point, failure_prob)
    else:
        distribution = oracle or needing(true_epsilon, delta)
        model = f"the best of {type(distribution).__name__.lower()}"
        if oracle is None:
            noise = "Gaussian" if delta > 0 else "Laplace"
            model = f"the best of {noise} noise that just needs the true epsilon"
        chances = Chances.of(distribution, point, failure_prob)
    high = chances.draws_for(power)
    if high is None:
        raise ArgumentError(
            f"true_epsilon = {true_epsilon!r} must be farther above epsilon = {epsilon!r}, got a "
            f"violation that needs more than {MAX_DRAWS:,} draws per dataset"
        )
    best = chances.best(high)
    by_events = None
    if best.instrument == BY_RANK:
        by_events = replace(chances, is_number=False).draws_for(power)
    curve = np.unique(np.geomspace(max(high / 30, 1), high * 3, _CURVE_POINTS).astype(int))
    return Plan(
        draws=high,
        power=power,
        claimed_epsilon=epsilon,
        claimed_delta=delta,
        true_epsilon=true_epsilon,
        likely=best.likely,
        rare=best.rare,
        failure_prob=failure_prob,
        model=model,
        curve_draws=tuple(curve.tolist()),
        curve_power=tuple(chances.best(int(n)).power for n in curve),
        instrument=best.instrument,
        draws_without_ranks=by_events,
    )


def draws_to_refute(
    distribution: Oracle, *, epsilon: float, delta: float, power: float, failure_prob: float
) -> int | None:
    """Return the smallest number of draws at which the best event refutes with this probability.

    No audit with one event and the joint bound can need fewer draws, because this number includes
    no exploration and no learning. Return None if more than 10 billion draws would be needed.
    """
    candidates = events_of(*distribution.curve())
    return smallest(
        lambda draws: by_event(*candidates, draws, epsilon, delta, failure_prob).power >= power
    )


def _given(
    rates: tuple[float, float], epsilon: float, true_epsilon: float, delta: float
) -> tuple[float, float]:
    if not isinstance(rates, Sequence) or isinstance(rates, str) or len(rates) != 2:
        raise TypeError(f"rates must be two numbers, (likely, rare), got {rates!r}")
    p, q = (_validate.delta(rates=rate) for rate in rates)
    if p <= math.exp(epsilon) * q + delta:
        raise ArgumentError(
            f"rates must violate the claim, likely > e^epsilon rare + delta, got {rates!r}"
        )
    if q == 0 or math.log((p - delta) / q) > true_epsilon * (1 + 1e-9):
        raise ArgumentError(
            f"rates must be possible with true_epsilon = {true_epsilon:g}, got {rates!r}, which "
            f"need {math.inf if q == 0 else math.log((p - delta) / q):.4g}"
        )
    return p, q


def needing(epsilon: float, delta: float) -> Oracle:
    """Return Laplace noise (delta = 0) or Gaussian noise that needs exactly epsilon at delta."""
    if delta == 0:
        return oracles.laplace(1.0, 1 / epsilon)
    if delta >= 1:
        raise ArgumentError("delta must be < 1, because nothing violates delta = 1, got 1.0")

    def excess(log_sigma: float) -> float:
        return float(oracles.gaussian(1.0, math.exp(log_sigma)).delta(epsilon)) - delta

    return oracles.gaussian(1.0, math.exp(scipy.optimize.brentq(excess, -12.0, 25.0)))
