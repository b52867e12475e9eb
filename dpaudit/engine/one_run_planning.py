"""Planning of one-run audits for scores of a known shape, by computation without simulation.

The model assumes that the scores of all canaries are independent, and that the scores of included
canaries are shifted by one fixed distance. The model also assumes that guesses between two tests
are correct independently, at the mean rate of their ranks. In fact, ranks depend on each other, but
this effect has the order 1 / canaries. The power is that of the best test of the plan, because the
other tests rarely refute if this test does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import Claim, GaussianDP
from dpaudit.engine.one_run import COINS, SIDES, GuessTest
from dpaudit.engine.task import PRIMARY_SHARE, divide
from dpaudit.errors import ArgumentError
from dpaudit.stats import Allowance, GuessPlanner, refutes, wrong_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CANARIES = (100, 300, 1000, 3000)
"""Default numbers of canaries of a plan."""

MAX_CANARIES = 50_000
_UNLIKELY = 1e-9  # probability of sums that are not searched
_SHARES = 2001  # points at which expected counts are computed
_FAR = 40.0  # no scores of this scale lie beyond it


@dataclass(frozen=True)
class OneRunPlan:
    """Expected results of one run, by its number of canaries.

    Parameters
    ----------
    claim : str
        The claim in words.
    model : str
        Model of the scores, in words.
    delta : float
        Delta at which epsilon is certified.
    canaries : tuple of int
        Numbers of canaries, as requested.
    certified_epsilon : tuple of float
        Certified epsilon for the expected number of correct guesses.
    power : tuple of float
        Probability that the claim is refuted.
    needed : int or None
        Number of canaries that refutes the claim with probability `wanted`; None if this number
        exceeds 50,000.
    wanted, failure_prob : float
        The requested power and failure probability.
    """

    claim: str
    model: str
    delta: float
    canaries: tuple[int, ...]
    certified_epsilon: tuple[float, ...]
    power: tuple[float, ...]
    needed: int | None
    wanted: float
    failure_prob: float

    def __str__(self) -> str:
        if self.needed is None:
            first = f"Even {MAX_CANARIES:,} canaries do not refute the claim {self.claim}"
        else:
            first = f"{self.needed:,} canaries in one run refute the claim {self.claim}"
        rows = [
            f"  {m:>8,}  {epsilon:>17.3f}  {power:.3f}"
            for m, epsilon, power in zip(
                self.canaries, self.certified_epsilon, self.power, strict=True
            )
        ]
        advice = "A larger failure_prob, such as 0.05, needs fewer canaries."
        return "\n".join(
            [
                f"{first} with probability {self.wanted:g}",
                f"(failure_prob {self.failure_prob:g}), for {self.model}.",
                *[advice] * (self.needed is None and self.failure_prob < 0.01),
                f"  canaries  epsilon certified  power   (at delta = {self.delta:g}, as expected)",
                *rows,
            ]
        )


def plan_one_run(
    claim: Claim,
    true_epsilon: float | None = None,
    *,
    mu: float | None = None,
    canaries: Sequence[int] = CANARIES,
    side: str = "both",
    coins: str = "fair",
    power: float = 0.9,
    failure_prob: float = DEFAULT_FAILURE_PROB,
) -> OneRunPlan:
    """Return how many canaries refute a claim in one run, and what they are expected to certify.

    Parameters
    ----------
    claim : Claim
        Claim that should be refuted.
    true_epsilon : float, optional
        Epsilon that the mechanism really needs at the claimed delta (1e-5 for a curve). This
        epsilon must be above the claimed epsilon. Scores are assumed to be Gaussian, or to have
        Laplace noise if delta = 0, and to reveal all of this epsilon. The scores of one training
        with Poisson samples reveal much less; pass `mu` for them.
    mu : float, optional
        Distance of the scores in standard deviations, > 0, instead of `true_epsilon`. The scores
        are Gaussian, and the scores of included canaries are `mu` standard deviations higher.
    canaries : sequence of int, optional
        Numbers of canaries to evaluate, each at least 2.
    side : {"both", "top"}, optional
        As in :func:`audit_one_run`.
    coins : {"fair", "half"}, optional
        As in :func:`audit_one_run`. The default is "fair".
    power, failure_prob : float, optional
        Wanted power and failure probability, in (0, 1). The defaults are 0.9 and 1e-6.

    Returns
    -------
    OneRunPlan

    Raises
    ------
    ValueError
        If an argument is out of range, for example a `true_epsilon` that the claim allows. Also if
        both or neither of `mu` and `true_epsilon` are given.

    Examples
    --------
    >>> from dpaudit import PureDP
    >>> found = plan_one_run(PureDP(1.0), mu=2.0, canaries=[1000], failure_prob=0.05)
    >>> 3.4 < found.certified_epsilon[0] < 3.6, 20 < found.needed < 60
    (True, True)
    """
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    if (mu is None) == (true_epsilon is None):
        raise ArgumentError("exactly one of mu and true_epsilon must be given")
    one_sided = _validate.choice(SIDES, side=side) == "top"
    _validate.choice(COINS, coins=coins)
    wanted = _validate.failure_prob(power=power)
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    at = claim.point[1] if claim.point is not None else 1e-5
    if true_epsilon is not None:
        _validate.positive(true_epsilon=true_epsilon)
    if true_epsilon is not None and true_epsilon <= (allowed := claim.epsilon(at)):
        raise ArgumentError(
            f"true_epsilon must be a number > {allowed:.4g}, which the claim {claim} "
            f"allows at delta = {at:g}, got {true_epsilon!r}. Pass a larger value, "
            "because otherwise there is no violation"
        )
    beyond, model = _model(mu, true_epsilon, at)
    held = _validate.items("a sequence of integers >= 2", canaries=canaries)
    numbers = tuple(_validate.integer(2, MAX_CANARIES, canaries=m) for m in held)

    share = divide(failure_prob, [PRIMARY_SHARE])[0]  # share of the claim in an audit

    def planner(m: int) -> GuessPlanner:
        return GuessTest.of(m, one_sided=one_sided, failure_prob=share, coins=coins).planner

    def power_of(m: int) -> float:
        tool = planner(m)
        plan, allowance = tool.plan(claim), tool.allowance(claim)
        powers = []
        for numbers, part in zip(plan.tests, plan.shares, strict=True):
            rates = _rates(np.array(numbers) / m, beyond, one_sided)
            masses = wrong_sums(numbers, rates, sum(numbers))
            level = part * tool.failure_prob
            powers.append(_probability_of_refuting(masses, numbers, allowance, level))
        return min(max(powers), 1.0)

    def certified(m: int) -> float:
        tool, numbers = planner(m), np.arange(m + 1)
        shares = np.linspace(0.0, 1.0, _SHARES)[1:]
        rates = _rates(shares, beyond, one_sided)
        expected = np.concatenate([[0.0], np.cumsum(rates) / len(shares)])
        right = np.floor(m * np.interp(numbers / m, [0.0, *shares], expected) + 0.5)
        right = np.minimum.accumulate((numbers - right)[::-1])[::-1]  # wrong guesses, monotone
        return tool.epsilon((numbers - right).astype(np.int64), at)

    return OneRunPlan(
        claim=str(claim),
        model=model,
        delta=at,
        canaries=numbers,
        certified_epsilon=tuple(certified(m) for m in numbers),
        power=tuple(power_of(m) for m in numbers),
        needed=_smallest(lambda m: power_of(m) >= wanted),
        wanted=wanted,
        failure_prob=failure_prob,
    )


def _model(
    mu: float | None, true_epsilon: float | None, delta: float
) -> tuple[Callable[[float], tuple[float, float]], str]:
    """Return the model of the scores, as a function of t and as a description.

    The function returns the probabilities that a score lies more than t beyond the middle between
    the two distributions. The first probability is for the side of the score (a correct guess), and
    the second probability is for the other side.
    """
    if true_epsilon is not None:
        true_epsilon = _validate.positive(true_epsilon=true_epsilon)
        if delta == 0.0:
            scale = 1 / true_epsilon
            noise = scipy.stats.laplace(scale=scale)
            return (
                lambda t: (float(noise.sf(t - 0.5)), float(noise.sf(t + 0.5))),
                f"scores with Laplace noise that need epsilon = {true_epsilon:g}",
            )
        if GaussianDP(_FAR).epsilon(delta) <= true_epsilon:
            raise ArgumentError(
                "true_epsilon must be smaller, because otherwise the scores are too far apart, "
                f"got {true_epsilon!r}"
            )
        mu = float(
            scipy.optimize.brentq(lambda x: GaussianDP(x).epsilon(delta) - true_epsilon, 1e-6, _FAR)
        )
    assert mu is not None
    distance = _validate.positive(mu=mu)
    if distance > _FAR:
        raise ArgumentError(
            f"mu must be at most {_FAR:g}, because no guess is wrong for larger values, got {mu!r}"
        )
    return (
        lambda t: (float(special.ndtr(distance / 2 - t)), float(special.ndtr(-distance / 2 - t))),
        f"Gaussian scores {distance:.4g} standard deviations apart",
    )


def _rates(
    shares: Floats, beyond: Callable[[float], tuple[float, float]], one_sided: bool
) -> Floats:
    """Return the rates of correct guesses between tests at these shares of the ranks."""
    low = -_FAR if one_sided else 0.0

    def guessed(t: float) -> float:
        right, wrong = beyond(t)
        return (right + wrong) / 2 if one_sided else right + wrong

    right, total = [0.0], [0.0]
    for share in shares.tolist():
        if share >= guessed(low):
            t = low
        else:
            t = float(scipy.optimize.brentq(lambda t, s=share: guessed(t) - s, low, _FAR))
        right.append(beyond(t)[0] / (2 if one_sided else 1))
        total.append(share)
    steps = np.diff(total)
    rates = np.divide(np.diff(right), steps, out=np.zeros_like(steps), where=steps > 0)
    return np.asarray(np.clip(rates, 0.0, 1.0))


def _probability_of_refuting(
    masses: Floats, numbers: Sequence[int], allowance: Allowance, level: float
) -> float:
    """Return the probability of the sums of wrong guesses that refute a claim at a level."""
    low, high = -1, len(masses) - 1  # `low` refutes, or is -1, and `high` does not refute
    below = np.cumsum(masses)
    high = min(high, int(np.searchsorted(below, 1 - _UNLIKELY)))
    if refutes(high, numbers, allowance, level):
        return float(below[high])
    while high - low > 1:
        middle = (low + high) // 2
        if below[middle] < _UNLIKELY or refutes(middle, numbers, allowance, level):
            low = middle
        else:
            high = middle
    return float(below[low]) if low >= 0 else 0.0


def _smallest(enough: Callable[[int], bool]) -> int | None:
    """Return the smallest sufficient number of canaries, to one twentieth, or None."""
    low, high = 4, 16
    while not enough(high):
        if high == MAX_CANARIES:
            return None
        low, high = high, min(high * 2, MAX_CANARIES)
    while high - low > max(low // 20, 1):
        middle = math.isqrt(low * high) if high > 2 * low else (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
