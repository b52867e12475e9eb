"""Audits of mechanisms that run once: many canary users, each included by a coin of its own.

How many guesses are evaluated is settled before the coins are looked at, or follows them in a way
that is paid for; `dpaudit.stats.one_run` and `one_run_walk` hold the proofs. Ties count against us:
among canaries of equal score those that would be guessed wrong come first, so that no way to break
ties, and no order in which the canaries are given, helps to refute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import ApproxDP, Claim, GaussianDP
from dpaudit.engine.one_run_input import hints, read_coins
from dpaudit.engine.provenance import versions
from dpaudit.errors import ArgumentError
from dpaudit.results import OneRunResult, Verdict, at_least, beyond
from dpaudit.stats import (
    Allowance,
    Looks,
    guess_epsilon,
    guess_mu,
    half_probability,
    tail_bound,
    walk_epsilon,
    walk_p_value,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIDES = ("both", "top")
COINS = ("fair", "half")
DELTAS = (0.0, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3)
"""At which epsilon is certified besides the claimed delta."""

WALK_ROOM = 10.0
"""Times failure_prob: a larger budget of delta is too dear for the walk."""

_CURVE_DELTA = 1e-5  # of claims that are curves, where none is named
_HOPELESS = 100.0


@dataclass(frozen=True)
class Instrument:
    """How guesses are judged; settled by everything but the coins.

    Parameters
    ----------
    looks : Looks
        With weights (of the walk) or with shares of failure_prob.
    walk : bool
        Whether the number of guesses follows the guesses.
    canaries : int
        Coins.
    one_sided : bool
        Whether all guesses are "included".
    failure_prob : float
        Of everything that is certified with it, in terms of fair coins.
    price : float
        By which probabilities under fair coins are divided; it is part of `failure_prob` already.
    """

    looks: Looks
    walk: bool
    canaries: int
    one_sided: bool
    failure_prob: float
    price: float

    @classmethod
    def of(
        cls,
        claim: Claim,
        canaries: int,
        *,
        guesses: int | None = None,
        one_sided: bool = False,
        failure_prob: float = DEFAULT_FAILURE_PROB,
        coins: str = "fair",
    ) -> Instrument:
        """Return the instrument that suits a claim."""
        price = half_probability(canaries) if coins == "half" else 1.0
        failure_prob *= price
        settled = (canaries, one_sided, failure_prob, price)
        if guesses is not None:
            return cls(Looks((guesses,), (1.0,)), False, *settled)
        point = claim.point
        if point is not None and canaries * point[1] <= WALK_ROOM * failure_prob:
            return cls(Looks.of(canaries, failure_prob), True, *settled)
        return cls(Looks.few(canaries, failure_prob), False, *settled)

    def p_value(self, correct: Ints, claim: Claim) -> float:
        """P-value of a claim from the right guesses at each look."""
        if self.walk:
            assert claim.point is not None
            epsilon, delta = claim.point
            found = walk_p_value(
                correct.tolist(),
                self.looks,
                self.canaries,
                epsilon=epsilon,
                delta=delta,
                one_sided=self.one_sided,
            )
        else:
            allowance = Allowance.of_claim(claim, self.canaries, one_sided=self.one_sided)
            found = min(tail_bound(c, k, allowance) / w for c, k, w in self._of_looks(correct))
        return min(1.0, found / self.price)

    def epsilon(self, correct: Ints, delta: float, claimed: float = 0.0) -> float:
        """Certified epsilon at a delta."""
        if self.walk:
            return walk_epsilon(
                correct.tolist(),
                self.looks,
                self.canaries,
                delta=delta,
                failure_prob=self.failure_prob,
                one_sided=self.one_sided,
                claimed=claimed,
            )
        return max(
            guess_epsilon(
                c,
                k,
                self.canaries,
                delta=delta,
                failure_prob=share * self.failure_prob,
                one_sided=self.one_sided,
            )
            for c, k, share in self._of_looks(correct)
        )

    def mu(self, correct: Ints) -> float:
        """Certified mu, if the mechanism is Gaussian-DP."""
        return max(
            guess_mu(
                c,
                k,
                self.canaries,
                failure_prob=share * self.failure_prob,
                one_sided=self.one_sided,
            )
            for c, k, share in self._of_looks(correct)
        )

    def _of_looks(self, correct: Ints) -> list[tuple[int, int, float]]:
        looks = self.looks
        return list(zip(correct.tolist(), looks.guesses, looks.weights, strict=True))

    def telling(self, correct: Ints, epsilon: float) -> int:
        """Index of the look that shows most against epsilon-DP."""
        k, rate = np.array(self.looks.guesses), special.expit(epsilon)
        tails = np.where(correct > 0, special.bdtrc(np.maximum(correct - 1, 0), k, rate), 1.0)
        return int(np.argmin(tails / np.array(self.looks.weights)))

    def words(self) -> str:
        """How the number of guesses was chosen."""
        looks = self.looks.guesses
        if self.walk:
            return (
                f"their number follows the guesses, at {len(looks)} looks from {looks[0]} to "
                f"{looks[-1]}, and that is paid for"
            )
        if len(looks) == 1:
            return "their number was fixed beforehand"
        return f"at {len(looks)} looks that share failure_prob, fixed beforehand"


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    claim: Claim,
    *,
    guesses: int | None = None,
    side: str = "both",
    coins: str | None = None,
    delta: float | None = None,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    id: str | None = None,
) -> OneRunResult:
    """Audit a mechanism that ran once, by guessing which canary users it saw.

    Throw a fair coin for each of m canary users (or include a random half of them, with
    ``coins="half"``) and run the mechanism once with those that are included. Give each canary a
    score from the output alone: the higher, the more it looks included, such as the negative loss.
    Nothing is drawn here.

    Parameters
    ----------
    scores : array_like, shape (m,)
        Finite. They may depend on the output and on all canaries, but on no coin otherwise.
    included : array_like, shape (m,)
        The coins: bool, or 0 and 1.
    claim : Claim
        What the mechanism promises, such as ``ApproxDP(1.0, 1e-6)`` or ``GaussianDP(1.0)``.
    guesses : int, optional
        Number of guesses, from 1 to m, where it was fixed before the coins were looked at. By
        default it follows the guesses (for small m delta) or is taken at a few fixed looks.
    side : {"both", "top"}, optional
        "both" guesses the highest scores "included" and the lowest "excluded", by turns; "top"
        guesses "included" only, which is better where only presence shows, and gets along with
        half the delta. To be settled beforehand. Default "both".
    coins : {"fair", "half"}, optional
        "fair" (the default) takes every coin to be thrown by itself. "half" takes the included
        canaries to be a set of exactly half, each such set with the same probability: what is
        certified then is less, because the number of the others tells of each coin. For an odd m,
        half is rounded either way. A reason says so where exactly half are included and nothing
        was given.
    delta : float, optional
        In [0, 1], at which to certify epsilon: the claimed one by default, 1e-5 for curves.
    failure_prob : float, optional
        In (0, 1), of the verdict and of each certified number, each by itself. Any of several is
        wrong with probability at most their number times this. Default 1e-6.
    id : str, optional
        Name of the audit.

    Returns
    -------
    OneRunResult
        The verdict is REFUTED or NO_POWER. Its reason says where scores look as if their sign were
        reversed, and where many of them are equal; what is certified depends on neither hint.

    Raises
    ------
    ValueError
        For NaN, lengths that differ, coins that are not 0 and 1, all of one kind, or so uneven that
        fair coins come up like that with probability below 1e-9, and arguments out of range.
    TypeError
        For arguments of a wrong type.

    Notes
    -----
    Canaries of equal score show nothing unless a look counts all of them; where scores take few
    values, add a little independent noise to them.

    References
    ----------
    Steinke, Nasr and Jagielski (2023), "Privacy auditing with one (1) training run".

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import PureDP, audit_one_run
    >>> rng = np.random.default_rng(1)
    >>> coins = rng.random(1000) < 0.5
    >>> noisy = coins + rng.laplace(scale=0.4, size=1000)  # needs epsilon = 2.5
    >>> found = audit_one_run(noisy, coins, PureDP(1.0), failure_prob=0.05)
    >>> found.verdict == "refuted", found.certified_epsilon
    (True, 2.36)
    """
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    one_sided = _validate.choice(SIDES, side=side) == "top"
    design = "fair" if coins is None else _validate.choice(COINS, coins=coins)
    point, thrown = read_coins(scores, included)
    m = len(thrown)
    if design == "half" and int(thrown.sum()) not in (m // 2, m - m // 2):
        raise ArgumentError(
            f"included must hold half of the {m} canaries for coins='half', got {thrown.sum()}."
        )
    if guesses is not None and _validate.integer(1, guesses=guesses) > m:
        raise ArgumentError(f"guesses must be an integer from 1 to {m} canaries, got {guesses}")
    name = "one run" if id is None else id
    _validate.text(id=name)
    at = _validate.delta(delta=delta) if delta is not None else _CURVE_DELTA
    if claim.point is not None and delta is None:
        at = claim.point[1]

    def instrument(claim: Claim) -> Instrument:
        return Instrument.of(
            claim,
            m,
            guesses=guesses,
            one_sided=one_sided,
            failure_prob=failure_prob,
            coins=design,
        )

    def right(chosen: Instrument) -> Ints:
        return right_guesses(point, thrown, np.array(chosen.looks.guesses), one_sided=one_sided)

    chosen = instrument(claim)
    correct = right(chosen)
    p_value = chosen.p_value(correct, claim)
    claimed = claim.epsilon(at)
    deltas = sorted({*DELTAS, at})
    certified = {}
    for d in deltas:
        tool = instrument(ApproxDP(0.0, d))
        mark = claim.point[0] if claim.point is not None and d == claim.point[1] else 0.0
        certified[d] = tool.epsilon(right(tool), d, mark)
    refuted = p_value <= failure_prob
    if claim.point is not None and at == claim.point[1]:  # one event for verdict and number
        refuted &= certified[at] >= claimed
    mu = chosen.mu(correct) if isinstance(claim, GaussianDP) else None
    look = chosen.telling(correct, certified[at])
    return OneRunResult(
        id=name,
        claim=_claim_words(claim, claimed, at),
        verdict=Verdict.REFUTED if refuted else Verdict.NO_POWER,
        reason=_reason(refuted, claim, certified, at, p_value)
        + _hopeless(refuted, m * at, failure_prob)
        + "".join(f"; {hint}" for hint in hints(point, thrown, is_design_given=coins is not None)),
        canaries=m,
        included=int(thrown.sum()),
        side=side,
        chosen=chosen.words(),
        looks=chosen.looks.guesses,
        correct=tuple(correct.tolist()),
        weights=chosen.looks.weights,
        guesses=chosen.looks.guesses[look],
        guessed_right=int(correct[look]),
        failure_prob=failure_prob,
        p_value=p_value,
        delta=at,
        certified_epsilon=certified[at],
        deltas=tuple(deltas),
        certified_epsilons=tuple(certified.values()),
        certified_mu=mu,
        conditional_epsilon=GaussianDP(mu).epsilon(at) if mu and at > 0 else None,
        assumptions=_assumptions(claim, guesses, side, design),
        advice="" if refuted else _ADVICE,
        versions=versions(),
    )


# Its name reads like an audit's, which pytest would collect wherever it is imported.


def right_guesses(
    scores: Floats, included: NDArray[np.bool_], looks: Ints, *, one_sided: bool
) -> Ints:
    """Return how many of the most confident guesses are right, after each of the looks.

    Guesses alternate between the highest score left, "included", and the lowest, "excluded"; among
    equal scores wrong ones come first, so that no count exceeds that of any way to break ties.
    """
    highest = included[np.lexsort((included, -scores))]
    top = np.concatenate([[0], np.cumsum(highest)])
    if one_sided:
        return np.asarray(top[looks], dtype=np.int64)
    lowest = included[np.lexsort((~included, scores))]
    bottom = np.concatenate([[0], np.cumsum(~lowest)])
    return np.asarray(top[(looks + 1) // 2] + bottom[looks // 2], dtype=np.int64)


def _claim_words(claim: Claim, epsilon: float, delta: float) -> dict[str, Any]:
    return {
        "notion": claim.notion,
        "epsilon": epsilon,
        "delta": delta,
        "relation": str(claim.relation or "of the coins"),
        "source": claim.source,
        "words": str(claim),
        "parameters": claim.to_json(),
    }


_ADVICE = (
    "more canaries, or a score that tells included canaries from others better; "
    "plan_one_run(claim, true_epsilon=...) says how many canaries refute which violation"
)


def _reason(
    refuted: bool, claim: Claim, certified: dict[float, float], at: float, p_value: float
) -> str:
    if not refuted:
        return (
            f"no violation found (epsilon >= {at_least(certified[at])} is certified at delta = "
            f"{at:g}), and one run has no mutant to show power"
        )
    claimed = claim.epsilon(at)
    if certified[at] > claimed:
        words = beyond(certified[at], claimed, ("at least", "more than"))
        return f"epsilon is {words} at delta = {at:g}, where {claimed:.4g} was claimed"
    # The verdict is that on the whole curve; a point that is picked from several shows where.
    where = max(certified, key=lambda delta: certified[delta] - claim.epsilon(delta))
    excess = certified[where] > claim.epsilon(where)
    return (
        "the claimed curve is refuted as a whole: under it, so many right guesses have "
        f"probability at most {p_value:.3g}. "
        + ("It shows most" if excess else "No single point shows it; the closest is")
        + f" at delta = {where:g}, where epsilon >= {at_least(certified[where])} by itself and the "
        f"curve allows {claim.epsilon(where):.4g}"
    )


def _hopeless(refuted: bool, budget: float, failure_prob: float) -> str:
    """Say when delta alone would explain everything."""
    if refuted or budget <= _HOPELESS * failure_prob:
        return ""
    return (
        "; delta lets a mechanism tell many coins at once with a probability of the order of "
        f"canaries * delta = {budget:.2g}, far above failure_prob = {failure_prob:g}: choose a "
        "larger failure_prob"
    )


def _assumptions(claim: Claim, guesses: int | None, side: str, design: str) -> tuple[str, ...]:
    relation = (
        "the claimed relation" if claim.relation is None else f"the relation {claim.relation}"
    )
    coins = {
        "fair": "each canary was included by a fair coin of its own, thrown independently of all "
        "else",
        "half": "the included canaries were drawn uniformly among all sets of exactly half of them",
    }
    said = [
        coins[design],
        f"to turn one coin changes the input to a neighbour under {relation}",
        "the scores saw the coins only through the output of that one run",
        "claim and failure_prob were settled before the coins were looked at",
    ]
    if side == "top":
        said.append("so was the choice to guess the top only")
    if guesses is not None:
        said.append(f"so was the number of guesses, {guesses:,}")
    return tuple(said)
