"""Audits of a mechanism that runs only once.

Many canary users are each included by a fair coin. The numbers of evaluated guesses are fixed
before the coins are used. The user fixes one number, or a plan fixes the numbers for each claim.
:mod:`dpaudit.stats.one_run` and :mod:`dpaudit.stats.planned_guesses` contain the proofs. Ties
count against the audit. Among canaries with equal scores, the canaries that would be guessed wrong
come first. So neither the rule for ties nor the order of the canaries can help to refute.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import Claim, GaussianDP, custom_relation
from dpaudit.engine.certificate import Bound, Certificate, rates_seen
from dpaudit.engine.concluding import conclude
from dpaudit.engine.driver import drive
from dpaudit.engine.mutation import MutantRuns
from dpaudit.engine.pictures import FARTHEST
from dpaudit.engine.task import PRIMARY_SHARE, Run, Task, check_same_at_all_pairs, divide
from dpaudit.errors import ArgumentError
from dpaudit.neighbors import NeighborPair, family
from dpaudit.results import AuditResult, CanaryGuesses, Histogram, Witness, at_least
from dpaudit.stats import (
    LARGEST_MU,
    Counts,
    GuessCounts,
    GuessPlanner,
    RateBounds,
    half_probability,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIDES = ("both", "top")
COINS = ("fair", "half")
DELTAS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3)
"""Deltas at which epsilon is certified, in addition to the claimed delta."""

_LARGE_DELTAS = (0.01, 0.1, 0.5, 1.0)  # one is added for a curve that bounds epsilon at no other
_CURVE_DELTA = 1e-5  # delta that is reported for a curve if nothing is certified
_TINY = 1e-300
_HOPELESS = 100.0
_BINS = 30
_UNFAIR = 1e-9  # Probability with which fair coins are refused.
_REVERSED = 1e-3  # Probability with which uninformative scores are reported as reversed.
_MANY_TIES = 0.1  # Share of the canaries.


@dataclass(frozen=True)
class GuessTest:
    """Evaluation of guesses, which does not depend on the coins.

    Parameters
    ----------
    planner : GuessPlanner
        Rule that plans the numbers of guesses for each claim. Its `failure_prob` is that of
        everything that is certified with this test, if coins are fair.
    price : float
        Divisor of probabilities under fair coins, already applied to `failure_prob`.
    """

    planner: GuessPlanner
    price: float

    @classmethod
    def of(
        cls,
        canaries: int,
        *,
        guesses: int | None = None,
        one_sided: bool = False,
        failure_prob: float = DEFAULT_FAILURE_PROB,
        coins: str = "fair",
    ) -> GuessTest:
        """Return the test of a number of canaries."""
        price = half_probability(canaries) if coins == "half" else 1.0
        failure_prob = divide(failure_prob, [price])[0]
        return cls(GuessPlanner(canaries, failure_prob, one_sided, guesses), price)

    def p_value(self, right: Ints, claim: Claim) -> float:
        """Return the p-value of a claim from the numbers of correct guesses."""
        return min(1.0, self.planner.p_value(right, claim) / self.price)

    def words(self, claim: Claim) -> str:
        """Return in words how the numbers of guesses were chosen."""
        if self.planner.guesses is not None:
            return "the number of guesses was fixed beforehand"
        main = self.planner.plan(claim).tests[0]
        if len(main) == 1:
            return f"the main test uses {main[0]} guesses, a number planned for the claim"
        return (
            f"the main test adds {len(main)} numbers of guesses from {main[0]} to {main[-1]}, "
            "planned for the claim"
        )


@dataclass(frozen=True)
class FrozenGuesses:
    """The choices that are made before the coins are used.

    Parameters
    ----------
    deltas : tuple of float
        Deltas at which epsilon is certified, in addition to the claimed delta.
    weights : list of float
        Weight of the claim, followed by the weight of each delta.
    """

    deltas: tuple[float, ...]
    weights: list[float]


@dataclass(frozen=True, eq=False)
class OneRun:
    """Instrument that guesses from scores which canaries were included in one run.

    Parameters
    ----------
    scores : ndarray, shape (m,)
        Finite scores of the canaries.
    included : ndarray of bool, shape (m,)
        The coins of the canaries.
    guesses : int or None
        Number of guesses if it is fixed.
    one_sided : bool
        Whether all guesses are "included".
    coins : {"fair", "half"}
        How the coins chose the included canaries.
    """

    scores: Floats
    included: NDArray[np.bool_]
    guesses: int | None
    one_sided: bool
    coins: str

    def explore(self, run: Run) -> FrozenGuesses:
        """Choose the deltas at which epsilon is certified; the choice uses no coin."""
        claim = run.task.claim
        deltas = tuple(delta for delta in DELTAS if claim.point is None or delta != claim.point[1])
        if claim.point is None and not any(math.isfinite(claim.epsilon(d)) for d in deltas):
            deltas += (next(d for d in _LARGE_DELTAS if math.isfinite(claim.epsilon(d))),)
        rest = (1 - PRIMARY_SHARE) / len(deltas)
        return FrozenGuesses(deltas, [PRIMARY_SHARE] + [rest] * len(deltas))

    def certify(self, frozen: FrozenGuesses, run: Run) -> Certificate:
        """Count correct guesses, and bound epsilon at each delta."""
        claim, (primary, *shares) = run.task.claim, run.failure_probs
        m = len(self.scores)
        right = right_guesses(self.scores, self.included, one_sided=self.one_sided)
        test = self._test(primary)
        p_value = min(test.p_value(right, claim) / frozen.weights[0], 1.0)
        refuted = p_value <= run.task.failure_prob
        mu = 0.0
        certified, bounds = {}, []
        for delta, share in zip(frozen.deltas, shares, strict=True):
            certified[delta] = self._test(share).planner.epsilon(right, delta)
            bounds.append(RateBounds.from_excess(certified[delta], delta, share))
        if claim.point is not None:  # one event determines both the verdict and this number
            epsilon, delta = point = claim.point
            certified[delta] = test.planner.epsilon(right, delta, epsilon)
            bounds.append(RateBounds.from_excess(certified[delta], delta, primary))
            refuted &= certified[delta] >= epsilon
        elif isinstance(claim, GaussianDP):  # likewise for mu
            mu = test.planner.mu(right, claim.mu)
            refuted &= mu >= min(claim.mu, LARGEST_MU)
        deltas = sorted(certified)
        for larger, smaller in itertools.pairwise(deltas[::-1]):  # a smaller delta needs no less
            certified[smaller] = max(certified[smaller], certified[larger])
        if claim.point is None:
            bounded = {d: e for d in deltas if math.isfinite(e := claim.epsilon(d))}
            ratios = {d: certified[d] / max(e, _TINY) for d, e in bounded.items()}
            delta = max(ratios, key=lambda d: (ratios[d], d == _CURVE_DELTA))
            point = bounded[delta], delta
        if certified[delta] > point[0]:  # from its own test, or from the test of a larger delta
            refuted, p_value = True, min(p_value, run.task.failure_prob)
        numbers = test.planner.plan(claim).numbers
        correct = right[list(numbers)].tolist()
        at = strongest(correct, numbers, certified[delta])
        guesses, hits = numbers[at], correct[at]
        seen = rates_seen(GuessCounts(hits, guesses - hits, guesses).as_counts(), "left")
        lower = max(bound.lower_delta(point[0]) for bound in bounds)
        witness, histogram = self._pictures(guesses, seen.worst_case(delta))
        return Certificate.of(
            run.task,
            next(iter(run.task.pairs)),
            point,
            epsilon=Bound(
                seen.lower_epsilon(delta),
                certified[delta],
                GuessCounts(hits, guesses - hits, m).as_counts(),
            ),
            delta=Bound(seen.lower_delta(point[0]), lower),
            certified=[max(b.lower_delta(float(e)) for b in bounds) for e in run.task.grid],
            estimated=[seen.lower_delta(float(e)) for e in run.task.grid],
            method="test of right guesses in one run",
            certifying=1,
            refuted=bool(refuted),
            reason=_reason_of_a_curve(claim, point, certified[delta], p_value),
            p_value=p_value,
            mu=mu,
            bounds=tuple(bounds),
            witness=witness,
            histogram=histogram,
            mechanism_seconds=0.0,
            advice=_ADVICE,
            canaries=CanaryGuesses(
                m,
                int(self.included.sum()),
                test.words(claim),
                numbers,
                tuple(correct),
                guesses,
                hits,
                tuple(deltas),
                tuple(certified[d] for d in deltas),
            ),
        )

    def _test(self, failure_prob: float) -> GuessTest:
        return GuessTest.of(
            len(self.scores),
            guesses=self.guesses,
            one_sided=self.one_sided,
            failure_prob=failure_prob,
            coins=self.coins,
        )

    def _pictures(self, guesses: int, worst: tuple[float, float]) -> tuple[Witness, Histogram]:
        """Return the guesses as a description with counts, and the histogram of the scores."""
        tops = guesses if self.one_sided else (guesses + 1) // 2
        order = np.lexsort((self.included, -self.scores))  # among equal scores, wrong guesses first
        lows = np.lexsort((~self.included, self.scores))[: guesses - tops]
        sides = int(self.included.sum()), int((~self.included).sum())
        counts = [
            Counts(
                int(self.included[at].sum()), sides[0], int((~self.included[at]).sum()), sides[1]
            )
            for at in (order[:tops], lows)
        ]
        high = self.scores[order[tops - 1]]
        words = f"included where score >= {high:.3g}"
        if len(lows):
            words += f"; excluded where score <= {self.scores[lows[-1]]:.3g}"
        shown = np.clip(self.scores, -FARTHEST, FARTHEST)
        edge, end = float(shown.min()), float(shown.max())
        size = max(abs(edge), abs(end))
        if end - edge <= 1e-9 * size:  # too close for bins of their own
            edge, end = edge - 1e-3 * max(size, 1.0), end + 1e-3 * max(size, 1.0)
        edges = np.linspace(edge, end, _BINS + 1)
        low = max(self.scores[lows[-1]], -FARTHEST) if len(lows) else -math.inf
        left, right = (
            tuple(np.histogram(shown[own], edges)[0].tolist())
            for own in (self.included, ~self.included)
        )
        histogram = Histogram(
            "score (left: included canaries, right: excluded ones)",
            tuple(f"[{a:.4g}, {b:.4g})" for a, b in itertools.pairwise(edges)),
            tuple(edges.tolist()),
            left,
            right,
            (*(edges[1:-1] > high).tolist(), True),  # the last bin holds its right edge
            tuple((edges[:-1] <= low).tolist()),
        )
        return Witness(words, "left", counts[0], *worst, right=counts[1]), histogram


def audit_one_run(
    scores: ArrayLike,
    included: ArrayLike,
    claim: Claim,
    *,
    guesses: int | None = None,
    side: str = "both",
    coins: str | None = None,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    id: str | None = None,
) -> AuditResult:
    """Audit a mechanism that ran once, by guessing which canary users it included.

    Toss a fair coin for each of m canary users (or, for ``coins="half"``, include a random half of
    them). Then run the mechanism once with the included canaries. Give each canary a score that is
    computed from the output alone. A higher score must suggest more strongly that the canary was
    included; an example is a negative loss. The function makes no draws.

    Parameters
    ----------
    scores : array_like, shape (m,)
        Score of each canary, finite. Scores may depend on the output and on all canaries. Scores
        must not depend on a coin in any other way.
    included : array_like, shape (m,)
        The coins, as booleans or as 0 and 1.
    claim : Claim
        What the mechanism promises, such as ``ApproxDP(1.0, 1e-6)`` or ``GaussianDP(1.0)``.
    guesses : int, optional
        Number of guesses, from 1 to m, if it was fixed before anybody saw the coins. By default,
        the numbers of guesses are planned for each claim and each certified number. They depend on
        m, `side` and `failure_prob`, but not on the coins and scores.
    side : {"both", "top"}, optional
        With "both", the highest scores are guessed "included" and the lowest scores "excluded",
        alternately. With "top", all guesses are "included". "top" is better than "both" if only the
        presence of a canary is visible. "top" needs only delta / 2. Choose `side` before you see
        the coins. The default is "both".
    coins : {"fair", "half"}, optional
        "fair" (the default) assumes that every coin was tossed independently. "half" assumes that
        the included canaries are a set of exactly half, each such set with the same probability.
        With "half", less is certified than with "fair", because the number of other included
        canaries reveals something about each coin. For an odd m, the half is rounded up or down. If
        exactly half of the canaries are included and `coins` was not given, a note says so.
    failure_prob : float, optional
        Probability that any certified number of the result is wrong, in (0, 1). The claim gets 0.9
        of this probability, and the epsilons at other deltas share the rest. The default is 1e-6.
    id : str, optional
        Name of the audit.

    Returns
    -------
    AuditResult
        The verdict is REFUTED or NO_POWER. NOT_REFUTED is impossible, because one run has no
        mutants. For a claim that is a curve, `epsilon` is given at the delta at which the curve is
        exceeded most. `canaries` holds the guesses, and epsilon at further deltas. The notes state
        the assumptions. The notes also say if the sign of the scores looks reversed, or if many
        scores are equal. No certified number depends on these two hints.

    Raises
    ------
    ValueError
        If a value is NaN, if lengths differ, or if an argument is out of range. Also if coins are
        not 0 and 1, or if all coins are equal. Also if coins are so uneven that fair coins would be
        as uneven with probability below 1e-9.
    TypeError
        If an argument has a wrong type.

    Notes
    -----
    Canaries with equal scores show nothing unless a test counts all of them. If the scores have
    only a few different values, add a little independent noise to them.

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
    >>> result = audit_one_run(noisy, coins, PureDP(1.0), failure_prob=0.05)
    >>> result.verdict == "refuted", round(result.certified_epsilon, 2)
    (True, 2.27)
    """
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    one_sided = _validate.choice(SIDES, side=side) == "top"
    design = "fair" if coins is None else _validate.choice(COINS, coins=coins)
    values, thrown = read_coins(scores, included)
    m = len(thrown)
    if design == "half" and int(thrown.sum()) not in (m // 2, m - m // 2):
        raise ArgumentError(
            f"included must select exactly half of the {m} canaries for coins='half', got "
            f"{thrown.sum()}"
        )
    if guesses is not None and _validate.integer(1, guesses=guesses) > m:
        raise ArgumentError(
            f"guesses must be an integer from 1 to the number of canaries, {m}, got {guesses}"
        )
    name = "one run" if id is None else id
    _validate.text(id=name)
    check_same_at_all_pairs(claim)
    instrument = OneRun(values, thrown, guesses, one_sided, design)
    task = Task(claim, family(_PAIR), 1, failure_prob, 0, name, instrument=instrument)
    certificate = drive(instrument, Run(task, None, name))
    notes = (
        *hints(values, thrown, is_design_given=coins is not None),
        *_hopeless(certificate, failure_prob),
        *_conditional(certificate),
        *_assumptions(claim, guesses, side, design),
    )
    return conclude(
        task,
        certificate,
        MutantRuns(unseen="one run has none"),
        mechanism="one run",
        pair_words=f"{m:,} canary users, of whom the run saw {thrown.sum():,}",
        notes=notes,
    )


_PAIR = NeighborPair(
    np.zeros((1, 1)),
    np.ones((1, 1)),
    relation=custom_relation("one canary in or out", lambda left, right: True),
    recipe="canary users of one run",
)
"""Stands for the datasets of the run, which are not available."""


def right_guesses(scores: Floats, included: NDArray[np.bool_], *, one_sided: bool) -> Ints:
    """Return how many of the 0, 1, .. m most confident guesses are correct.

    Guesses alternate between the highest remaining score (guessed "included") and the lowest
    (guessed "excluded"). Among equal scores, wrong guesses come first. So any other rule for ties
    gives counts that are at least as large.
    """
    numbers = np.arange(len(scores) + 1)
    highest = included[np.lexsort((included, -scores))]
    top = np.concatenate([[0], np.cumsum(highest)])
    if one_sided:
        return np.asarray(top, dtype=np.int64)
    lowest = included[np.lexsort((~included, scores))]
    bottom = np.concatenate([[0], np.cumsum(~lowest)])
    return np.asarray(top[(numbers + 1) // 2] + bottom[numbers // 2], dtype=np.int64)


def strongest(correct: Sequence[int], numbers: Sequence[int], epsilon: float) -> int:
    """Return the index of the number of guesses with the strongest evidence against epsilon-DP."""
    counts = np.array(correct)
    tails = special.bdtrc(np.maximum(counts - 1, 0), np.array(numbers), special.expit(epsilon))
    return int(np.argmin(np.where(counts > 0, tails, 1.0)))


_ADVICE = (
    "Use more canaries, or a score that separates included canaries better from excluded ones. "
    "plan_one_run(claim, true_epsilon) returns how many canaries refute a given violation."
)


def _reason_of_a_curve(
    claim: Claim, point: tuple[float, float], certified: float, p_value: float
) -> str:
    """Return the reason if a curve is refuted as a whole but not at any single point."""
    if claim.point is not None or certified > point[0]:
        return ""
    return (
        "the claimed curve fails as a whole, since so many right guesses have probability at "
        f"most {p_value:.3g} under it. No single point shows this: at delta = {point[1]:g}, "
        f"epsilon >= {at_least(certified)} is certified, and the curve allows {point[0]:.3g}"
    )


def _hopeless(certificate: Certificate, failure_prob: float) -> list[str]:
    """Return a note if delta alone could explain any number of correct guesses."""
    assert certificate.canaries is not None
    budget = certificate.canaries.canaries * certificate.point[1]
    if certificate.refuted or budget <= _HOPELESS * failure_prob:
        return []
    return [
        "The claimed delta allows a mechanism to reveal many canaries at once, with a probability "
        f"of the order of canaries * delta = {budget:.2g}. This is far above failure_prob = "
        f"{failure_prob:g}. Choose a larger failure_prob."
    ]


def _conditional(certificate: Certificate) -> list[str]:
    """Return what the guesses imply under the assumption that the mechanism is Gaussian-DP."""
    mu, delta = certificate.mu, certificate.point[1] or _CURVE_DELTA
    if not 0 < mu < math.inf:
        return []
    return [
        f"If the mechanism satisfies Gaussian DP for some mu, then mu >= {at_least(mu)} and "
        f"epsilon >= {at_least(GaussianDP(mu).epsilon(delta))} at delta = {delta:g}. This is "
        "conditional, not certified."
    ]


def _assumptions(claim: Claim, guesses: int | None, side: str, design: str) -> list[str]:
    relation = (
        "the claimed relation" if claim.relation is None else f"the relation {claim.relation}"
    )
    coins = {
        "fair": "each canary was included by its own fair coin, independent of everything else",
        "half": "the included canaries were drawn uniformly among all sets of half of the canaries",
    }
    fixed = ["claim", "failure_prob"]
    fixed += ["side='top'"] * (side == "top")
    fixed += [f"guesses={guesses}"] * (guesses is not None)
    stated = [
        coins[design],
        f"flipping one coin gives a neighbour under {relation}",
        "the scores depend on the coins only through the output of that one run",
        f"{', '.join(fixed[:-1])} and {fixed[-1]} were fixed before anybody saw the coins",
    ]
    return [f"Assumption: {words}." for words in stated]


def read_coins(scores: ArrayLike, included: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return scores and coins as arrays of equal length.

    Raises
    ------
    ValueError
        As described in :func:`dpaudit.audit_one_run`.
    """
    _refuse_other_index(scores, included)
    point, coins = _scores(scores), _coins(included)
    if len(point) != len(coins):
        raise ArgumentError(
            f"scores and included must have the same length, got lengths {len(point)} and "
            f"{len(coins)}"
        )
    return point, coins


def hints(
    scores: Floats, included: NDArray[np.bool_], *, is_design_given: bool = True
) -> list[str]:
    """Return hints if the sign looks reversed, many scores are equal, or half are included.

    No certified number may depend on these hints, because they use the coins.

    Parameters
    ----------
    scores : ndarray, shape (m,)
        Finite scores.
    included : ndarray of bool, shape (m,)
        The coins. Both values must occur.
    is_design_given : bool, optional
        Whether the caller said how the canaries were included. The default is True.

    Examples
    --------
    >>> coins = np.arange(100) < 50
    >>> hints(np.arange(100.0), coins)[0][:65]
    'Included canaries have lower scores than excluded ones in 100% of'
    >>> hints(np.arange(100.0), ~coins)
    []
    """
    found = []
    n, m = int(included.sum()), len(included)
    if 2 * n == m and not is_design_given:
        found.append(
            "Exactly half of the canaries are included, which has probability "
            f"{half_probability(m):.2g} under fair coins. The certified numbers assume fair coins. "
            "Pass coins='half' if the number of included canaries was fixed, else coins='fair'."
        )
    ranks = scipy.stats.rankdata(scores)
    pairs = n * (m - n)
    higher = float(ranks[included].sum()) - n * (n + 1) / 2  # pairs; equal scores count one half
    _, sizes = np.unique(scores, return_counts=True)
    equal = float((sizes.astype(float) ** 3 - sizes).sum()) / (m * (m - 1))
    deviation = math.sqrt(pairs * max(m + 1 - equal, 0.0) / 12)
    if deviation > 0 and special.ndtr((higher - pairs / 2) / deviation) < _REVERSED:
        found.append(
            f"Included canaries have lower scores than excluded ones in {1 - higher / pairs:.0%} "
            "of the pairs. Is the sign of the scores reversed? A high score, such as a negative "
            "loss, is guessed included. Choose the sign without looking at the coins; if you try "
            "both signs, double failure_prob."
        )
    tied = int(sizes[sizes > 1].sum())
    if tied > _MANY_TIES * m:
        found.append(
            f"{tied:,} of {m:,} canaries share their score with others ({len(sizes):,} distinct "
            "values). Among equal scores wrong guesses count first, which costs power. Break the "
            "ties: add a little noise to the scores, independent of the coins."
        )
    return found


def _refuse_masked(name: str, values: ArrayLike) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise ArgumentError(f"{name} must be a plain array, got a masked array")


def _refuse_other_index(scores: Any, included: Any) -> None:
    """Raise if two pandas Series have different indices, because rows are paired by position."""
    first, second = (getattr(values, "index", None) for values in (scores, included))
    if first is None or not (hasattr(first, "equals") and hasattr(second, "equals")):
        return  # for a list, `index` is a method
    if not first.equals(second):
        raise ArgumentError(
            "scores and included must have the same index, got two Series with different "
            "indices. Align the two, or pass arrays"
        )


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    _refuse_masked(name, values)
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        raise ArgumentError(f"{name} must be one-dimensional, got a ragged list") from None


def _scores(scores: ArrayLike) -> Floats:
    found = _array("scores", scores)
    if found.dtype.kind not in "fiub" or found.ndim != 1 or found.size == 0:
        raise ArgumentError(
            "scores must be a nonempty one-dimensional array of numbers, got shape "
            f"{found.shape} of {found.dtype}"
        )
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        wrong = int(np.flatnonzero(~np.isfinite(found))[0])
        raise ArgumentError(f"scores must be finite, got {found[wrong]} at index {wrong}")
    return np.asarray(found)


def _coins(included: ArrayLike) -> NDArray[np.bool_]:
    found = _array("included", included)
    if found.dtype == object and found.ndim == 1:  # a data frame with missing values gives this
        for at, value in enumerate(found):
            if not isinstance(value, bool | np.bool_):
                raise ArgumentError(
                    f"included must hold booleans, or 0 and 1, got {value!r} at {at}"
                )
        found = found.astype(bool)
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "biuf":
        raise ArgumentError(
            "included must be a nonempty one-dimensional array of booleans, or of 0 and "
            f"1, got shape {found.shape} of {found.dtype}"
        )
    if not np.isin(found, (0, 1)).all():
        wrong = int(np.flatnonzero(~np.isin(found, (0, 1)))[0])
        raise ArgumentError(
            f"included must hold booleans, or 0 and 1, got {found[wrong]} at {wrong}"
        )
    coins = found.astype(bool)
    heads, m = int(coins.sum()), len(coins)
    if heads in (0, m):
        raise ArgumentError(
            f"included must mark some canaries as included and some as excluded, got {m} "
            f"that are all {'included' if heads else 'excluded'}"
        )
    tail = 2 * float(special.bdtr(min(heads, m - heads), m, 0.5))
    if tail < _UNFAIR:
        raise ArgumentError(
            "included must be a plausible result of fair coins, but fair coins include "
            f"{heads} of {m} canaries with probability {tail:.2g}"
        )
    return coins
