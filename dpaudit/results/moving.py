"""Whether two results of one audit show different epsilons, beyond what chance explains.

Certified epsilons are lower bounds, each by the luck of its own draws and of the event that was
learnt for it. That one lies above another says nothing: neither is the epsilon that the mechanism
needs. So they are never subtracted. Two questions have an answer, and only on one pair:

**Bounds that exclude one another.** Where a result knows an upper bound of the epsilon that is
needed (what was computed does; draws never do) and the other's certified lower bound lies above it,
at the same delta, the epsilon moved. With no upper bound on either side, this finds nothing.

**What one region of outputs shows.** Both results hold how many certifying draws of either side
fell where, along an axis. Where that axis is one cell of the output, which no draw had a part in
choosing, the regions in which either result's witness fires can be looked up in the counts of both.
The epsilon that a region shows has an interval in each: by Clopper-Pearson bounds of its rates, of
its inner and outer hull where an edge of bins lies beside its cut. Intervals that do not touch are
a change of what *the region* shows. The epsilon that the mechanism needs may have moved otherwise.

**The false-alarm rate.** It is the probability that a change is told of a mechanism that has not
changed on that pair: that some interval misses the truth, at most. Half of it pays for either
result. No independence of the two results is asked for, which runs of one seed lack; that is why
intervals are compared, and not counts by a two-sample test, which would be sharper. Within a
result the half is divided over every bound that might have been read: over the events that
might have become the witness (one for each epsilon of the profile, the primary one and two by
rank), over the edges of bins or the sets of values of either result, both sides and both ends.

**What is not comparable**, and said to be so: other pairs; events that lie along scores which were
learnt; bets, whose last batch was chosen by when they stopped; guesses by rank.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.results.estimates import BY_RANK, Histogram
from dpaudit.results.result import AuditResult
from dpaudit.stats import loss_of_rates, lower_rates, upper_rates

Interval = tuple[float, float]
Integers = NDArray[np.int64]

_CELL = re.compile(r"output|coordinate (\d+|\(\d+(, \d+)*\))")
_OTHERS = frozenset({"no answer or any other", "any other label"})
_BY_CHANCE_TOO = 3  # witnesses beside those of the profile: the primary one, two by rank
_LEARNT = "the events differ, and lie along scores that were learnt"
_ROUNDING = 1e-9


class Movement(StrEnum):
    """What became of the epsilon of an audit between two results."""

    ROSE = "rose"
    FELL = "fell"
    BOTH_WAYS = "moved"
    """One region shows more than it did, another one less."""

    WITHIN_CHANCE = "within chance"
    NOT_COMPARABLE = "not comparable"
    NOT_WITH_VERDICT = "not with the verdict"
    """The verdict changed, and the counts show no move of the epsilon in that direction."""


@dataclass(frozen=True)
class RegionShown:
    """What one region of outputs shows in two results.

    Parameters
    ----------
    region : str
        In words.
    old, new : (float, float)
        Between which epsilons it lies, at one delta.
    """

    region: str
    old: Interval
    new: Interval

    @property
    def movement(self) -> Movement:
        """Whether the intervals exclude one another."""
        if self.new[0] > self.old[1]:
            return Movement.ROSE
        return Movement.FELL if self.new[1] < self.old[0] else Movement.WITHIN_CHANCE


@dataclass(frozen=True)
class Shift:
    """What became of the epsilon of one audit, and how that is known.

    Parameters
    ----------
    movement : Movement
    reason : str
        In one sentence.
    false_alarm : float
        Probability, at most, that a change is told where there is none.
    delta : float
        At which epsilon is looked at.
    shown : tuple of RegionShown
        The regions that were compared.
    """

    movement: Movement
    reason: str
    false_alarm: float
    delta: float
    shown: tuple[RegionShown, ...] = ()

    @property
    def is_beyond_chance(self) -> bool:
        """Whether a change is told."""
        return self.movement in (Movement.ROSE, Movement.FELL, Movement.BOTH_WAYS)


def shift_of(old: AuditResult, new: AuditResult, false_alarm: float, *, same_pair: bool) -> Shift:
    """Tell whether the epsilon of an audit moved beyond chance between two results.

    Parameters
    ----------
    old, new : AuditResult
        Of one audit.
    false_alarm : float
        Of this one comparison, in (0, 1).
    same_pair : bool
        Whether both speak of the same two datasets.

    Returns
    -------
    Shift
        Its delta is the one at which `new` compares with its claim.
    """
    _validate.failure_prob(false_alarm=false_alarm)
    delta = new.claimed_delta

    def told(movement: Movement, reason: str, shown: tuple[RegionShown, ...] = ()) -> Shift:
        return Shift(movement, reason, false_alarm, delta, shown)

    if not same_pair:
        return told(Movement.NOT_COMPARABLE, "the pairs differ, or were not stored")
    has_upper = [result.epsilon.upper < math.inf or _is_exact(result) for result in (old, new)]
    if any(has_upper):
        return told(*_by_bounds(old, new, false_alarm))
    counted = _counted(old), _counted(new)
    if reason := counted[0] or counted[1]:
        return told(Movement.NOT_COMPARABLE, f"{reason}; no upper bound is known")
    if old.diagnostics.histogram.label != new.diagnostics.histogram.label or not _CELL.fullmatch(
        old.diagnostics.histogram.label
    ):
        return told(Movement.NOT_COMPARABLE, f"{_LEARNT}; no upper bound is known")
    shown = _regions_of(old, new, false_alarm)
    if not shown:
        words = "the events differ, and the counts of one do not tell of the other"
        return told(Movement.NOT_COMPARABLE, f"{words}; no upper bound is known")
    found = {one.movement for one in shown} - {Movement.WITHIN_CHANCE}
    movement = Movement.BOTH_WAYS if len(found) > 1 else Movement.WITHIN_CHANCE
    movement = found.pop() if len(found) == 1 else movement
    words = {
        Movement.ROSE: "a region of outputs shows more than it did",
        Movement.FELL: "a region of outputs shows less than it did",
        Movement.BOTH_WAYS: "one region of outputs shows more than it did, another one less",
        Movement.WITHIN_CHANCE: "the regions of both witnesses may show what they did",
    }[movement]
    return told(movement, f"{words}; no upper bound is known of what is needed", shown)


# --- bounds that exclude one another ------------------------------------------------------------


def _is_exact(result: AuditResult) -> bool:
    return result.epsilon.failure_prob == 0 and result.epsilon.lower == result.epsilon.upper


def _by_bounds(old: AuditResult, new: AuditResult, false_alarm: float) -> tuple[Movement, str]:
    """Compare where an upper bound is known."""
    if old.claimed_delta != new.claimed_delta:
        words = f"epsilon at delta = {old.claimed_delta:g} and at {new.claimed_delta:g}"
        return Movement.NOT_COMPARABLE, words
    spent = old.epsilon.failure_prob + new.epsilon.failure_prob
    if spent > false_alarm:
        words = f"their bounds are wrong with probability up to {spent:.2g}, more than is allowed"
        return Movement.NOT_COMPARABLE, words
    both = _is_exact(old) and _is_exact(new)
    if _exceeds(new.epsilon.lower, old.epsilon.upper):
        words = "the lower bound lies above the upper bound of before"
        return Movement.ROSE, "both were computed exactly" if both else words
    if _exceeds(old.epsilon.lower, new.epsilon.upper):
        words = "the upper bound lies below what was certified before"
        return Movement.FELL, "both were computed exactly" if both else words
    if both:
        return Movement.WITHIN_CHANCE, "both were computed exactly, and are equal up to rounding"
    which = "before" if new.epsilon.upper < math.inf else "now"
    return Movement.WITHIN_CHANCE, f"the bounds overlap; {which} there is no upper bound"


def _exceeds(low: float, high: float) -> bool:
    return low > high * (1 + _ROUNDING) + 1e-12


# --- what one region shows ----------------------------------------------------------------------


def _counted(result: AuditResult) -> str:
    """Say why the counts of a result are not those of frozen events; nothing where they are."""
    if result.diagnostics.sequential is not None:
        return "bets were made, which stop by what they see"
    if result.epsilon.counts is None:
        return "no event was counted"
    return "guesses by rank have no fixed event" if result.epsilon.method == BY_RANK else ""


@dataclass(frozen=True)
class _Ray:
    """Outputs on one side of a cut."""

    cut: float
    above: bool

    def words(self, label: str) -> str:
        return f"{label} {'>' if self.above else '<='} {self.cut:.4g}"


@dataclass(frozen=True)
class _Values:
    """Some of the values that were seen, by their words."""

    values: frozenset[str]

    def words(self, label: str) -> str:
        shown = sorted(self.values)[:8]
        return f"{label} in {{{', '.join(shown)}{', ...' * (len(self.values) > 8)}}}"


_Part = _Ray | _Values


@dataclass(frozen=True)
class _Region:
    """Where a witness fires; of a guess, where left is guessed, and where right is."""

    parts: tuple[_Part, ...]
    likelier: str
    label: str

    @property
    def words(self) -> str:
        words = [part.words(self.label) for part in self.parts]
        return words[0] if len(words) == 1 else f"left where {words[0]}, right where {words[1]}"

    def interval(self, rates: Callable[[_Part, str], Interval], delta: float) -> Interval:
        """Return between which epsilons the region shows, from intervals of its rates."""
        other = "right" if self.likelier == "left" else "left"
        first = self.parts[0]
        likely, rare = rates(first, self.likelier), rates(first, other)
        if len(self.parts) > 1:  # of a guess: of its being right and of its being wrong
            second = self.parts[1]
            likely = _mean(likely, rates(second, other))
            rare = _mean(rare, rates(second, self.likelier))
        ends = ((likely[0], rare[1]), (likely[1], rare[0]))
        low, high = (float(loss_of_rates(p, q, delta)) for p, q in ends)
        return low, high


def _mean(a: Interval, b: Interval) -> Interval:
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def _regions_of(old: AuditResult, new: AuditResult, false_alarm: float) -> tuple[RegionShown, ...]:
    """Return what the regions of both witnesses show; none where they cannot be looked up."""
    pictures = old.diagnostics.histogram, new.diagnostics.histogram
    if len({picture.edges is None for picture in pictures}) > 1 or any(map(_is_unclear, pictures)):
        return ()
    regions = dict.fromkeys(
        region for result in (old, new) if (region := _region(result)) is not None
    )
    witnesses = [len(result.profile.epsilon) + _BY_CHANCE_TOO for result in (old, new)]

    def shown(region: _Region) -> RegionShown:
        before, now = (
            region.interval(
                partial(_rates, picture, _level(picture, false_alarm / 2, own, sum(witnesses))),
                new.claimed_delta,
            )
            for picture, own in zip(pictures, witnesses, strict=True)
        )
        return RegionShown(region.words, before, now)

    return tuple(shown(region) for region in regions)


def _is_unclear(picture: Histogram) -> bool:
    """Whether two values of a picture have the same words, in four digits."""
    return picture.edges is None and len(set(picture.bins)) < len(picture.bins)


def _level(picture: Histogram, failure_prob: float, own: int, all_: int) -> float:
    """Divide a probability over every bound that might be read off a picture.

    Parameters
    ----------
    picture : Histogram
    failure_prob : float
        Of all of them together.
    own, all_ : int
        Events that might have become the witness of this result, and of both.
    """
    sets = 2 * all_  # of values: of either result, of a guess two
    rays = 0 if picture.edges is None else 2 * own * max(len(picture.edges) - 2, 1)  # either way
    return failure_prob / ((rays or sets) * 2 * 2)  # on both sides, from below and from above


def _region(result: AuditResult) -> _Region | None:
    """Return where the witness of a result fires, along the axis of its picture."""
    picture = result.diagnostics.histogram
    masks = [picture.inside, *([picture.inside_right] if picture.inside_right else [])]
    parts = []
    for mask in masks:
        part = _values(picture, mask) if picture.edges is None else _ray(picture.edges, mask)
        if part is None:
            return None
        parts.append(part)
    likelier = "left" if len(parts) > 1 else result.witness.likelier
    return _Region(tuple(parts), likelier, picture.label)


def _values(picture: Histogram, inside: tuple[bool, ...]) -> _Values | None:
    marked = {word for word, is_in in zip(picture.bins, inside, strict=True) if is_in}
    return _Values(frozenset(marked - _OTHERS)) if marked - _OTHERS else None


def _ray(edges: tuple[float, ...], inside: tuple[bool, ...]) -> _Ray | None:
    """Return the ray that the marked bins make, without those of no answer; None for others."""
    marked = inside[: len(edges) - 1]
    turns = [i for i in range(1, len(marked)) if marked[i] != marked[i - 1]]
    return _Ray(edges[turns[0]], marked[-1]) if len(turns) == 1 else None


def _rates(picture: Histogram, level: float, part: _Part, side: str) -> Interval:
    """Bound the probability of a part on one side; either end is wrong with at most `level`."""
    counts = np.array(picture.left if side == "left" else picture.right)
    total = int(counts.sum())
    if total == 0:
        return 0.0, 1.0
    look = _hull(picture, part, counts) if isinstance(part, _Ray) else _named(picture, part, counts)
    inner, outer = look
    low = 0.0 if inner is None else float(lower_rates(inner, total, level))
    high = 1.0 if outer is None else float(upper_rates(outer, total, level))
    return low, high


def _hull(picture: Histogram, ray: _Ray, counts: Integers) -> tuple[int | None, int | None]:
    """Count the draws between inner edges inside a ray, and around it; None where there is none.

    The outermost bins hold what lies beyond the outermost edges too.
    """
    assert picture.edges is not None
    edges, bins = np.array(picture.edges[1:-1]), len(picture.edges) - 1
    below = np.cumsum(counts[:bins])[:-1]  # up to each inner edge
    upto = below if not ray.above else int(counts[:bins].sum()) - below
    lesser, greater = np.flatnonzero(edges <= ray.cut), np.flatnonzero(edges >= ray.cut)
    before = int(upto[lesser[-1]]) if len(lesser) else None
    after = int(upto[greater[0]]) if len(greater) else None
    return (after, before) if ray.above else (before, after)


def _named(picture: Histogram, part: _Values, counts: Integers) -> tuple[int, int]:
    """Count the draws of some values; at most those of no name too, where one has none here."""
    has = np.array([word in part.values for word in picture.bins])
    rest = np.array([word in _OTHERS for word in picture.bins])
    inner = int(counts[has].sum())
    unnamed = not part.values <= set(picture.bins)
    return inner, inner + int(counts[rest].sum()) * unnamed
