"""Cut every score at many thresholds, judge each cut, and choose the events to certify.

Every cut is judged by what it is *expected to certify*. The rates of a cut are first moved in the
conservative direction by their selection uncertainty. The reason is that the best of thousands of
cuts looks better than it is. Then the joint bound is approximated. The approximation uses the
number of certifying draws and the failure probability of the cut.

The joint bound of :mod:`dpaudit.stats.joint` is approximated by recovering variances from one-sided
limits (Zou and Donner 2008, "MOVER"). Let p' be the limit of p, and q' the limit of q, at the full
failure probability. If p is replaced by p', the loss ``log((p - delta) / q)`` declines. If q is
replaced by q', the loss declines, too. The certified loss is expected to lie below the loss by the
root of the sum of the squares of these two declines. The same rule applies to the excess ``p -
e^epsilon q``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.events.encoding import Encoder, row_words
from dpaudit.events.event import Event, Goal, Guess, Selection, trivial_event
from dpaudit.events.features import Feature
from dpaudit.events.scores import FeatureScore, ModelScore, Score
from dpaudit.stats import SHARE_OF_GUESSING, Target, excess_of_rates

# --- approximations of what an event is expected to certify, for choosing and planning only -----


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ExpectedBounds:
    """Rates of many events, and the expected limits from `draws` fresh draws.

    Parameters
    ----------
    p, q : ndarray, shape (k,)
        Assumed rates on the likelier side and on the other side.
    p_low, q_high : ndarray, shape (k,)
        One-sided limits, each at the full failure probability.
    """

    p: Floats
    q: Floats
    p_low: Floats
    q_high: Floats

    @classmethod
    def of(cls, p: Floats, q: Floats, draws: int, failure_prob: float) -> ExpectedBounds:
        """Return the limits for `draws` draws per dataset that show exactly the rates p and q."""
        return cls(
            p,
            q,
            approximate_lower(p * draws, draws, failure_prob),
            approximate_upper(q * draws, draws, failure_prob),
        )

    def losses(self, delta: float) -> tuple[Floats, Floats]:
        """Return the expected epsilons at `delta`, for events and for their swapped complements.

        A value <= 0 means that nothing is expected.
        """
        return (
            _loss(self.p, self.q, self.p_low, self.q_high, delta),
            _loss(1 - self.q, 1 - self.p, 1 - self.q_high, 1 - self.p_low, delta),
        )

    def excesses(self, epsilon: float) -> tuple[Floats, Floats]:
        """Return the expected deltas at `epsilon`, for events and for their swapped complements."""
        factor = np.exp(min(epsilon, 700.0))
        decline_p, decline_q = self.p - self.p_low, self.q_high - self.q
        direct = self.p - factor * self.q - np.hypot(decline_p, factor * decline_q)
        mirrored = (1 - self.q) - factor * (1 - self.p)
        return direct, mirrored - np.hypot(decline_q, factor * decline_p)


def _loss(p: Floats, q: Floats, p_low: Floats, q_high: Floats, delta: float) -> Floats:
    known = (p_low > delta) & (q_high > 0)
    tiny = 1e-300
    with np.errstate(divide="ignore", invalid="ignore"):
        top, low = np.log(np.maximum(p - delta, tiny)), np.log(np.maximum(p_low - delta, tiny))
        # A rate of exactly 0 has no logarithm, so the limit of the rate is used.
        bottom, high = np.log(np.where(q > 0, q, q_high)), np.log(np.maximum(q_high, tiny))
        loss = top - bottom - np.hypot(top - low, high - bottom)
    return np.where(known, loss, -np.inf)


def approximate_upper(hits: Any, draws: Any, failure_prob: Any) -> Floats:
    """Return the Clopper-Pearson upper bound by Pratt's formula; counts may be fractional.

    All arguments may be arrays of one shape.

    The formula is 30 times faster than the exact bound. The result is within about 15% of the exact
    bound, even for no hits and tiny failure probabilities (Blyth 1986, "Approximate binomial
    confidence limits", after Pratt 1968). The formula is used only for planning; no certificate
    uses it.
    """
    x = np.minimum(np.asarray(hits, dtype=float), draws * (1 - 1e-14))
    z = -special.ndtri(failure_prob)
    more, rest = x + 1, draws - x
    product = more * rest
    # The root is negative where the formula is useless. If there are fewer draws than z^2 / 9,
    # nothing is known.
    root = np.sqrt(np.maximum(product * (9 * (9 * draws + 5 - z * z)) + (draws + 1), 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = (81 * product - (9 * draws + 8) - 3 * z * root) / (
            (81 * more - 9 * (2 + z * z)) * more + 1
        )
        odds = more / rest
        bound = 1 / (1 + odds * odds * (ratio * ratio * ratio))  # a power is ten times as slow
        sensible = (bound >= x / draws) & (bound <= 1)
    return np.where(sensible, bound, 1.0)


def approximate_lower(hits: Any, draws: Any, failure_prob: Any) -> Floats:
    """Return the Clopper-Pearson lower bound by Pratt's formula; see :func:`approximate_upper`."""
    x = np.asarray(hits, dtype=float)
    bound = 1 - approximate_upper(draws - x, draws, failure_prob)
    return np.where(x > 0, bound, 0.0)


# --- choosing a guess: two cuts of one score, by what both tails are expected to certify --------


Counts = NDArray[np.intp]

_COARSE = 24  # number of cuts that are paired with each other at first
_FINE = 12  # number of cuts that are paired around the best of these pairs


def scalar_score(encoder: Encoder, encoded: Floats) -> Score:
    """Return the output itself as the score, for outputs that are one number each.

    The encoded outputs only show whether all numbers are whole, and whether some are missing.
    """
    (column,) = encoder.columns
    feature = Feature(column, lambda x: x[:, 0], coordinate=True)
    return FeatureScore.learn(feature, encoded[:, 0])[0]


@dataclass(frozen=True)
class ExpectedGuess:
    """Rates of correct and wrong guesses, and the limits expected from fresh randomised draws.

    Parameters
    ----------
    correct, wrong : ndarray, shape (k,)
        Probabilities of a correct and of a wrong guess.
    share_low, rate_low : ndarray, shape (k,)
        Expected limits of two rates: correct guesses among all guesses, and guesses among all
        draws.
    """

    correct: Floats
    wrong: Floats
    share_low: Floats
    rate_low: Floats

    @classmethod
    def of(cls, correct: Floats, wrong: Floats, draws: int, failure_prob: float) -> ExpectedGuess:
        """Return the limits for `draws` draws in total, with exactly these rates."""
        rate = np.minimum(correct + wrong, 1.0)
        guesses = np.maximum(rate * draws, 1e-9)
        main, little = failure_prob * (1 - SHARE_OF_GUESSING), failure_prob * SHARE_OF_GUESSING
        share_low = approximate_lower(np.minimum(correct * draws, guesses), guesses, main)
        return cls(correct, wrong, share_low, approximate_lower(guesses, draws, little))

    def loss(self, delta: float) -> Floats:
        """Return the expected epsilon at `delta`.

        A value <= 0 means that nothing is expected.
        """
        top = self.rate_low * self.share_low - delta
        bottom = self.rate_low * (1 - self.share_low)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(top > 0, np.log(np.maximum(top, 1e-300) / bottom), -np.inf)

    def excess(self, epsilon: float) -> Floats:
        """Return the expected delta at `epsilon`."""
        factor = np.exp(min(epsilon, 700.0))
        return np.asarray(self.rate_low * (self.share_low * (1 + factor) - factor))


@dataclass(frozen=True)
class TwoCuts:
    """Pairs of cuts of one score.

    The guess is left above the upper cut and right below the lower cut.

    Parameters
    ----------
    upper, lower : ndarray of int, shape (k,)
        Indices of the thresholds, ``upper >= lower``. Between the two cuts, there is no guess.
    correct, wrong : ndarray, shape (k,)
        Rates, after they are moved in the conservative direction by their selection uncertainty.
    starts : ndarray of int, shape (s + 1,)
        Where the pairs of each of s scores start, and where the last ones end.
    """

    upper: NDArray[np.intp]
    lower: NDArray[np.intp]
    correct: Floats
    wrong: Floats
    starts: NDArray[np.intp]


def pairs_of_cuts(
    cuts: Sequence[Cuts],
    sides: Sequence[str],
    near: Sequence[tuple[int, int] | None],
    careful: bool,
) -> TwoCuts:
    """Pair the cuts of each score with each other, for several scores at once.

    Parameters
    ----------
    cuts : sequence of Cuts
        Cuts of each score.
    sides : sequence of {"left", "right"}
        For each score, the side that is guessed above a threshold.
    near : sequence of ((int, int) or None)
        For each score, the pair of cuts around which further pairs are tried. If None, a coarse set
        of pairs is tried everywhere.
    """
    upper, lower, correct, wrong = zip(
        *(_paired(c, side, at) for c, side, at in zip(cuts, sides, near, strict=True)), strict=True
    )
    # Learnt scores are cut on fewer draws than plain ones.
    both = np.repeat([sum(c.draws.values()) for c in cuts], [len(side) for side in upper])
    right, false = np.concatenate(correct), np.concatenate(wrong)
    level = selection_level(np.minimum(right + false, 0.5), careful)
    return TwoCuts(
        np.concatenate(upper),
        np.concatenate(lower),
        approximate_lower(right * both, both, level),
        approximate_upper(false * both, both, level),
        np.cumsum([0, *map(len, upper)]),
    )


def _paired(
    cuts: Cuts, side: str, near: tuple[int, int] | None
) -> tuple[Counts, Counts, Floats, Floats]:
    """Return the upper and lower cut of each pair, and its rates of correct and wrong guesses."""
    k = len(cuts.thresholds)
    if near is None:
        upper, lower = _coarse_pairs(k)
    else:
        around = _fine_offsets(max(k // _COARSE, 1))
        upper, lower = (np.clip(at + by, 0, k - 1) for at, by in zip(near, around, strict=True))
        keep = upper >= lower
        upper, lower = upper[keep], lower[keep]
    # One side has n draws and the other side has m draws. Fair coins would give both sides equal
    # weight.
    likely, rare = (cuts.hits[one] / cuts.draws[one] for one in (side, OTHER[side]))
    correct, wrong = (likely[upper] + 1 - rare[lower]) / 2, (rare[upper] + 1 - likely[lower]) / 2
    return upper, lower, correct, wrong


@functools.lru_cache(maxsize=512)
def _coarse_pairs(k: int) -> tuple[Counts, Counts]:
    some = np.unique(np.linspace(0, k - 1, min(k, _COARSE)).astype(np.intp))
    upper, lower = (side.ravel() for side in np.meshgrid(some, some))
    return upper[upper >= lower], lower[upper >= lower]


@functools.lru_cache(maxsize=64)
def _fine_offsets(step: int) -> tuple[Counts, Counts]:
    around = np.unique(np.linspace(-step, step, _FINE).astype(np.intp))
    upper, lower = (side.ravel() for side in np.meshgrid(around, around))
    return upper, lower


SELECTION_LEVEL = 0.1
"""One-sided level of the bounds by which cuts are judged before they are certified."""

_TRIFLE = 0.003
MAX_CUTS = 240

_GUESSED = 4  # number of scores whose cuts are paired

OTHER = {"left": "right", "right": "left"}


@dataclass(frozen=True)
class Cuts:
    """All cuts of one score, with the draws at or above each threshold.

    Parameters
    ----------
    score : Score
        The score that is cut.
    thresholds : ndarray, shape (k,)
        Thresholds in increasing order.
    hits : dict of str to ndarray of int, shape (k,)
        Number of draws of each side at or above each threshold.
    draws : dict of str to int
        Number of draws of each side.
    """

    score: Score
    thresholds: Floats
    hits: dict[str, NDArray[np.intp]]
    draws: dict[str, int]


def conservative_rates(
    cuts: Sequence[Cuts], sides: Sequence[str], careful: bool
) -> tuple[Floats, Floats]:
    """Return conservative rates of all cuts on the likelier side and on the less likely side.

    Parameters
    ----------
    cuts : sequence of Cuts
        Cuts of each score.
    sides : sequence of {"left", "right"}
        For each score, the likelier side.
    careful : bool
        Whether the level allows for the choice among many cuts.
    """
    sizes = [len(c.thresholds) for c in cuts]
    others = [OTHER[side] for side in sides]
    (hits, draws), (other_hits, other_draws) = (
        (
            np.concatenate([c.hits[side] for c, side in zip(cuts, of, strict=True)]),
            np.repeat([c.draws[side] for c, side in zip(cuts, of, strict=True)], sizes),
        )
        for of in (sides, others)
    )
    pooled = (hits + other_hits) / (draws + other_draws)
    level = selection_level(np.minimum(pooled, 1 - pooled), careful)
    return (
        approximate_lower(hits, draws, level),
        approximate_upper(other_hits, other_draws, level),
    )


def is_plain(score: Score) -> bool:
    """Return whether a score was chosen without using any draw."""
    return isinstance(score, FeatureScore) and not score.feature.learnt


def cut(score: Score, left: Floats, right: Floats) -> Cuts | None:
    """Count the event "score >= threshold" at well-spaced thresholds on either side."""
    left, right = np.sort(left), np.sort(right)
    values = np.concatenate([left, right])
    values.sort(kind="stable")  # merges two sorted parts, in place
    is_new = np.concatenate([[True], values[1:] != values[:-1]])
    values = values if is_new.all() else values[is_new]
    if len(values) < 2:
        return None
    index = _spread_indices(len(values))
    # "No answer" is below all numbers, so the threshold above "no answer" must be a number.
    below, at = np.maximum(values[index - 1], -np.finfo(np.float64).max), values[index]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = below / 2 + at / 2
    thresholds = np.where((middle > below) & (middle <= at), middle, at)
    sides = {"left": left, "right": right}
    hits = {
        side: len(drawn) - np.searchsorted(drawn, thresholds, side="left")
        for side, drawn in sides.items()
    }
    return Cuts(score, thresholds, hits, {side: len(drawn) for side, drawn in sides.items()})


def lower(hits: NDArray[Any], draws: int) -> Floats:
    """Return lower confidence bounds on the rates, at the level used for selection."""
    return approximate_lower(hits, draws, SELECTION_LEVEL)


def upper(hits: NDArray[Any], draws: int) -> Floats:
    """Return upper confidence bounds on the rates, at the level used for selection."""
    return approximate_upper(hits, draws, SELECTION_LEVEL)


def selection_level(rate: Floats, careful: bool) -> float | Floats:
    """Return the level of the bounds by which events of these rates are judged.

    There are about ``1 / rate`` disjoint events of one rate, and the best of them looks better than
    it is. A careful judgement therefore divides the level by the root of ``0.5 / rate``. The root
    is a rule of thumb.
    """
    return SELECTION_LEVEL * np.sqrt(np.clip(2 * rate, 1e-12, 1.0)) if careful else SELECTION_LEVEL


def _spread_indices(n: int) -> NDArray[np.intp]:
    """Return 1..n-1, or a part that is evenly spaced in rank and geometric towards both ends."""
    if n - 1 <= MAX_CUTS:
        return np.arange(1, n)
    tail = np.geomspace(1, n / 20, MAX_CUTS // 3).astype(np.intp)
    even = np.linspace(1, n - 1, MAX_CUTS // 3).astype(np.intp)
    return np.unique(np.clip(np.concatenate([tail, even, n - tail]), 1, n - 1))


def choose(encoder: Encoder, cuts: Sequence[Cuts], goal: Goal) -> Selection:
    """Return the primary event or guess, and one event for each epsilon of the grid.

    If the goal says which value is enough, simple events come before better events: first events of
    one coordinate, then other plain features, then learnt scores, then guesses.
    """
    if goal.enough is not None:
        for kind in range(_KINDS):
            simple = _best(encoder, [c for c in cuts if _kind(c.score) <= kind], goal, [])
            if simple.objective[0] > goal.enough:
                return simple
    return _best(encoder, cuts, goal, cuts)


_KINDS = 3


def _kind(score: Score) -> int:
    """Return how complicated a score is: 0 for a coordinate, 1 for a plain feature, or 2."""
    if not is_plain(score):
        return _KINDS - 1
    return int(not score.feature.coordinate)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class _Judged:
    """The best cut of one score on one side, and the best cut for each epsilon of a profile.

    `order` is the index of the score. `value`, `separation` and `point` belong to the cut `top`.
    `deltas` has shape (e,), and `excesses` has shape (2, e, k): the expected deltas of k cuts and
    of their swapped complements. Both are empty if no profile is wanted.
    """

    order: int
    side: str
    value: float
    separation: float
    top: int
    as_is: bool
    point: int
    deltas: Floats
    excesses: Floats

    def at(self, i: int) -> tuple[int, bool]:
        """Return the best cut at epsilon i, and whether it is better than its complement."""
        direct, mirrored = self.excesses[:, i]
        top = int(np.maximum(direct, mirrored).argmax())
        return top, bool(direct[top] >= mirrored[top])


_AT_ONCE = 4096
"""Number of cuts that are judged by one call of numpy."""


def _judged(cuts: Sequence[Cuts], goal: Goal) -> Iterator[_Judged]:
    """Judge all cuts of all scores on both sides, many scores at once."""
    held: list[tuple[int, str, Cuts]] = []
    for order, c in enumerate(cuts):
        held += [(order, side, c) for side in OTHER]
        if sum(len(c.thresholds) for _, _, c in held) >= _AT_ONCE:
            yield from _judged_at_once(held, goal)
            held = []
    if held:
        yield from _judged_at_once(held, goal)


def _judged_at_once(held: Sequence[tuple[int, str, Cuts]], goal: Goal) -> Iterator[_Judged]:
    likely, rare = conservative_rates(
        [c for _, _, c in held], [side for _, side, _ in held], goal.careful
    )
    # The selection uncertainty already moved the rates. Now the cost of certification is added.
    sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
    (direct, mirrored), where = primary_values(sure, goal)
    value = np.maximum(direct, mirrored)
    separation = excess_of_rates(likely, rare, 0.0)
    excesses = np.empty((2, 0, len(likely)))
    if goal.wants_profile:
        sure = ExpectedBounds.of(likely, rare, goal.draws, goal.profile_failure_prob)
        excesses = np.stack([sure.excesses(epsilon) for epsilon in goal.epsilons], axis=1)
    starts = np.cumsum([0, *(len(c.thresholds) for _, _, c in held)])
    deltas = np.maximum.reduceat(excesses.max(axis=0), starts[:-1], axis=1)
    for i, (order, side, _) in enumerate(held):
        part = slice(starts[i], starts[i + 1])
        ties = np.flatnonzero(value[part] == value[part].max())
        top = int(ties[separation[part][ties].argmax()])
        at = part.start + top
        yield _Judged(
            order,
            side,
            float(value[at]),
            float(separation[at]),
            top,
            bool(direct[at] >= mirrored[at]),
            int(where[at]),
            deltas[:, i],
            excesses[:, :, part],
        )


def _best(encoder: Encoder, cuts: Sequence[Cuts], goal: Goal, guessed: Sequence[Cuts]) -> Selection:
    """Return the best event of some cuts, or the best guess of the cuts in `guessed`."""
    best: tuple[float, float] = (-np.inf, -np.inf)
    primary: Event | Guess = trivial_event(encoder)
    point = None
    worth: list[tuple[float, float, int, str]] = []
    best_delta = np.zeros(len(goal.epsilons))
    chosen: list[Event | None] = [None] * len(goal.epsilons)
    for judged in _judged(cuts, goal):
        c, side = cuts[judged.order], judged.side
        worth.append((judged.value, judged.separation, -judged.order, side))
        # The simplest scores come first. A later score must be clearly better to be chosen.
        if (judged.value - _TRIFLE * abs(best[0]), judged.separation) > best:
            best = judged.value, judged.separation
            if goal.delta is None:
                point = judged.point
                target = Target(epsilon=float(goal.epsilons[point]))
            else:
                target = Target(delta=goal.delta)
            primary = _event(encoder, c, judged.top, side, judged.as_is, target, goal.learn_share)
        if not goal.wants_profile:
            continue
        for i in np.flatnonzero(judged.deltas > best_delta * (1 + _TRIFLE)):
            best_delta[i] = judged.deltas[i]
            top, as_is = judged.at(int(i))
            target = Target(epsilon=float(goal.epsilons[i]))
            chosen[i] = _event(encoder, c, top, side, as_is, target, goal.learn_share)
    pairable = sorted(worth, reverse=True)[:_GUESSED] if guessed else []
    guess = _best_guess(encoder, cuts, pairable, goal)
    if guess is not None and guess.value > max(best[0], 0.0) * (1 + _TRIFLE):
        best = (guess.value, max(guess.separation, best[1]))
        primary, point = guess.guess, guess.point
    profile: list[Event] = []
    for event in chosen:
        known = [e for e in (primary, *profile) if isinstance(e, Event)]
        if event is not None and not any(_same_cut(event, e) for e in known):
            profile.append(event)
    index = point if point is not None else len(goal.epsilons) // 2
    at = (float(goal.epsilons[index]), float(goal.claimed_deltas[index]))
    return Selection(primary, tuple(profile), best, at)


def primary_values(
    sure: ExpectedBounds, goal: Goal
) -> tuple[tuple[Floats, Floats], NDArray[np.intp]]:
    """Return the value of each cut and of each mirrored cut; for curves, also the best point."""
    if goal.delta is not None:
        direct, mirrored = (np.maximum(loss, 0.0) for loss in sure.losses(goal.delta))
        return (direct, mirrored), np.zeros(len(direct), np.intp)
    allowed = np.maximum(goal.claimed_deltas, 1e-300)[:, None]
    both = np.stack([sure.excesses(e) for e in goal.epsilons], axis=1) / allowed  # [2, e, cuts]
    both[:, 0] = -1.0  # at epsilon = 0 the comparison means little, so other points are used
    where = both.max(axis=0).argmax(axis=0)
    direct, mirrored = both[:, where, np.arange(both.shape[2])]
    return (direct, mirrored), where


@dataclass(frozen=True)
class _ChosenGuess:
    value: float
    separation: float
    guess: Guess
    point: int | None


def _best_guess(
    encoder: Encoder,
    cuts: Sequence[Cuts],
    worth: Sequence[tuple[float, float, int, str]],
    goal: Goal,
) -> _ChosenGuess | None:
    """Pair the cuts of the most valuable scores, and return the most valuable pair."""
    if not worth:
        return None
    scores, sides = [cuts[-order] for _, _, order, _ in worth], [side for *_, side in worth]
    near: list[tuple[int, int] | None] = [None] * len(worth)
    for _ in ("coarsely", "around the best"):
        pairs = pairs_of_cuts(scores, sides, near, goal.careful)
        sure = ExpectedGuess.of(
            pairs.correct, pairs.wrong, 2 * goal.draws, goal.primary_failure_prob
        )
        values, where = guess_values(sure, goal)
        parts = itertools.pairwise(pairs.starts)
        tops = [first + int(values[first:last].argmax()) for first, last in parts]
        near = [(int(pairs.upper[top]), int(pairs.lower[top])) for top in tops]
    best: _ChosenGuess | None = None
    for c, side, top in zip(scores, sides, tops, strict=True):
        if best is not None and values[top] <= best.value * (1 + _TRIFLE):
            continue
        point = None if goal.delta is not None else int(where[top])
        target = (
            Target(delta=goal.delta)
            if point is None
            else Target(epsilon=float(goal.epsilons[point]))
        )
        above, below = (
            replace(
                _event(encoder, c, at, side, True, target, goal.learn_share),
                above=is_above,
                likelier=likelier,
            )
            for at, is_above, likelier in (
                (pairs.upper[top], True, side),
                (pairs.lower[top], False, OTHER[side]),
            )
        )
        left, right = (above, below) if side == "left" else (below, above)
        separation = float(pairs.correct[top] - pairs.wrong[top])
        best = _ChosenGuess(float(values[top]), separation, Guess(left, right), point)
    return best


def guess_values(sure: ExpectedGuess, goal: Goal) -> tuple[Floats, NDArray[np.intp]]:
    """Return the value of each pair of cuts; for curves, also the best point of each pair."""
    if goal.delta is not None:
        values = np.maximum(sure.loss(goal.delta), 0.0)
        return values, np.zeros(len(values), np.intp)
    allowed = np.maximum(goal.claimed_deltas, 1e-300)[:, None]
    ratios = np.stack([sure.excess(e) for e in goal.epsilons]) / allowed
    ratios[0] = -1.0
    where = ratios.argmax(axis=0)
    return ratios[where, np.arange(ratios.shape[1])], where


def _event(
    encoder: Encoder,
    cuts: Cuts,
    at: int,
    side: str,
    as_is: bool,
    target: Target,
    learn_share: float,
) -> Event:
    """Return a cut as a frozen event, or its complement if swapped sides certify more."""
    return Event(
        cuts.score,
        float(cuts.thresholds[at]),
        above=as_is,
        likelier=side if as_is else OTHER[side],
        encoder=encoder,
        target=target,
        learnt_share=0.0 if is_plain(cuts.score) else learn_share,
    )


def _same_cut(a: Event, b: Event) -> bool:
    """Return whether two events use the same counts and the same pair of bounds."""
    same_bounds = (a.above == b.above) == (a.likelier == b.likelier)
    return a.score is b.score and a.threshold == b.threshold and same_bounds


# --- descriptions of a frozen event or guess: its expected value, and an example of it ----------


def expectation(
    chosen: Event | Guess, left: NDArray[Any], right: NDArray[Any], goal: Goal
) -> tuple[float, float]:
    """Judge a frozen event on draws that did not choose it.

    Nothing was chosen on these draws, so the rates are not moved by their selection uncertainty.
    Half a draw is added to the count on the less likely side, so that its rate is positive. It is
    also added to the wrong guesses, which has no effect if every draw is guessed correctly.
    """
    draws = {"left": len(left), "right": len(right)}
    if isinstance(chosen, Guess):
        seen = {"left": chosen(left), "right": chosen(right)}
        share = {
            (side, guess): np.array([(seen[side] == sign).mean()])
            for side in OTHER
            for guess, sign in (("left", 1), ("right", -1))
        }
        both = draws["left"] + draws["right"]
        correct = (share["left", "left"] + share["right", "right"]) / 2
        wrong = (share["left", "right"] + share["right", "left"]) / 2
        wrong = wrong + 0.5 / both
        sure_guess = ExpectedGuess.of(correct, wrong, 2 * goal.draws, goal.primary_failure_prob)
        return float(guess_values(sure_guess, goal)[0][0]), float((correct - wrong)[0])
    hits = {"left": int(chosen(left).sum()), "right": int(chosen(right).sum())}
    other = OTHER[chosen.likelier]
    likely = np.array([hits[chosen.likelier] / draws[chosen.likelier]])
    rare = np.array([(hits[other] + 0.5) / (draws[other] + 0.5)])
    sure = ExpectedBounds.of(likely, rare, goal.draws, goal.primary_failure_prob)
    (direct, mirrored), _ = primary_values(sure, goal)
    value = float(np.maximum(direct, mirrored)[0])
    return value, float(excess_of_rates(likely, rare, 0.0)[0])


def with_examples(
    primary: Event | Guess, profile: Sequence[Event], left: Floats, right: Floats
) -> tuple[Event | Guess, tuple[Event, ...]]:
    """Add typical outputs from encoded draws to events whose score is hard to understand."""
    known: dict[tuple[int, str], Floats] = {}  # the events of a profile share only a few scores

    def described(event: Event) -> Event:
        if not isinstance(event.score, ModelScore):
            return event
        encoded = left if event.likelier == "left" else right
        key = id(event.score), event.likelier
        if key not in known:
            known[key] = event.score(encoded)
        return _with_example(event, encoded, known[key])

    if isinstance(primary, Guess):
        primary = Guess(described(primary.left), described(primary.right))
    else:
        primary = described(primary)
    return primary, tuple(described(event) for event in profile)


def _with_example(event: Event, encoded: Floats, scores: Floats) -> Event:
    """Add the median output of the draws in the event, if there are any."""
    inside = np.flatnonzero(event.fires(scores))
    if len(inside) == 0:
        return event
    middle = inside[np.argsort(scores[inside], kind="stable")[len(inside) // 2]]
    return replace(event, example=row_words(event.encoder, encoded[middle]))
