"""Counts of where outputs fall along events and guesses, for the pictures of witnesses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.tally import parts_of
from dpaudit.events import Column, Event, Guess, OutcomeScore, TableScore, number_words, row_words
from dpaudit.results import Histogram

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_BARS = 24
_BINS = 48
_FARTHEST = 1e100  # so that the bins of a picture stay finite


class Pictures:
    """One picture for each event or guess, with bins fixed beforehand, filled chunk by chunk.

    What lies along one axis is looked up once, between the edges of all of its pictures.

    Parameters
    ----------
    chosen : sequence of Event or Guess
        With one encoder.
    outputs : ndarray
        A sample of both sides, by which the bins are chosen.
    """

    def __init__(self, chosen: Sequence[Event | Guess], outputs: NDArray[Any]) -> None:
        self._frames = [_Frame.plan(one, outputs) for one in chosen]
        along: dict[Hashable, list[_Frame]] = {}
        for frame in self._frames:
            along.setdefault(frame.axis_id, []).append(frame)
        self._axes = {key: _Axis(frames) for key, frames in along.items()}

    def add(self, side: str, encoded: Floats, scores: Mapping[int, Floats] | None = None) -> None:
        """Count draws of one side; `scores` holds those that are known, by the score's identity."""
        for axis in self._axes.values():
            axis.count(side, _along(axis.event, encoded, scores or {}))

    def done(self) -> tuple[Histogram, ...]:
        """Return the counts as plain data, in the order of what was chosen."""
        return tuple(self._axes[frame.axis_id].histogram(frame) for frame in self._frames)


@dataclass(frozen=True, eq=False)
class _Frame:
    """The bins of one picture: between `edges`, or one for each of `values`; and one for the rest.

    Those inside are the ones in which the event fires for most of the sample: of a guess, `inside`
    is for left and `inside_right` for right, which is empty for an event.
    """

    parts: tuple[Event, ...]
    label: str
    bins: tuple[str, ...]
    marks: Floats
    are_edges: bool
    inside: tuple[bool, ...] = ()
    inside_right: tuple[bool, ...] = ()

    @property
    def event(self) -> Event:
        """The event; of a guess, where left is guessed."""
        return self.parts[0]

    @property
    def axis_id(self) -> Hashable:
        """What tells axes apart: events that are cut on one axis share it."""
        score = self.event.score
        return id(score if score.axis is None else score.axis)

    @classmethod
    def plan(cls, chosen: Event | Guess, outputs: NDArray[Any]) -> _Frame:
        """Choose bins from a sample of outputs of both sides."""
        parts = parts_of(chosen)
        event = parts[0]
        encoded = event.encoder(outputs)
        if isinstance(event.score, OutcomeScore):
            return cls._outcomes(parts, event.score, encoded)
        axis = event.score.axis
        along = _along(event, encoded, {})
        column = axis.column if axis is not None else Column(event.score.name)
        seen = np.unique(along[~np.isnan(along)])
        if len(seen) <= MAX_BARS:
            names = (*(column.words(v) for v in seen.tolist()), "no answer or any other")
            return cls(parts, column.name, names, seen, False)._marked(encoded, along)
        cuts = [] if isinstance(event.score, TableScore) else [part.threshold for part in parts]
        edges = _edges(along[~np.isnan(along)], cuts)
        names = (*(f"up to {number_words(e)}" for e in edges[1:]), "no answer")
        return cls(parts, column.name, names, edges, True)._marked(encoded, along)

    @classmethod
    def _outcomes(cls, parts: tuple[Event, ...], score: OutcomeScore, encoded: Floats) -> _Frame:
        index = score.index(encoded)
        index = index[index < len(score.examples)]
        common = np.argsort(-np.bincount(index, minlength=len(score.examples)), kind="stable")
        shown = np.sort(common[:MAX_BARS])
        names = (*(row_words(score.encoder, row) for row in score.examples[shown]), "any other")
        frame = cls(parts, "outcome", names, shown.astype(float), False)
        ratios = score.log_ratios[shown]
        return frame._shaded([(*part.fires(ratios).tolist(), False) for part in parts])

    def _shaded(self, inside: Sequence[tuple[bool, ...]]) -> _Frame:
        """Return the frame with the bins inside of each part."""
        return replace(self, inside=inside[0], inside_right=inside[1] if inside[1:] else ())

    def _marked(self, encoded: Floats, along: Floats) -> _Frame:
        scores = self.event.score(encoded)
        return self._shaded([self._where(along, part.fires(scores)) for part in self.parts])

    def _where(self, along: Floats, fires: NDArray[np.bool_]) -> tuple[bool, ...]:
        """Tell of each bin whether an event fires for most of the sample in it."""
        axis = _Axis([self])
        axis.count("all", along)
        axis.count("hits", along[fires])
        seen = axis.of("all", self)
        inside = 2 * axis.of("hits", self) > seen
        if self.are_edges and seen[:-1].any():
            # Of a bin that the sample left empty, the nearest one before it tells, or the first.
            known = np.flatnonzero(seen[:-1])
            nearest = known[np.searchsorted(known, np.arange(len(seen) - 1), side="right") - 1]
            before = np.arange(len(seen) - 1) < known[0]
            inside[:-1] = inside[np.where(before, known[0], nearest)]
        return tuple(inside.tolist())


def _edges(along: Floats, cuts: Sequence[float]) -> Floats:
    """Edges of bins of one width, such that a bin begins at each cut.

    At the first cut alone, where the next one is nearer to it than half a bin.
    """
    along = np.clip(along, -_FARTHEST, _FARTHEST)
    places = sorted({min(max(cut, -_FARTHEST), _FARTHEST) for cut in cuts})
    low, high = map(float, np.quantile(along, [0.002, 0.998]))
    if places:
        margin = (high - low) / _BINS
        low, high = min(low, places[0] - 2 * margin), max(high, places[-1] + 2 * margin)
    if low == high:
        margin = max(abs(low), 1.0) * 1e-3
        low, high = low - margin, high + margin
    gap, width = places[-1] - places[0] if places else 0.0, (high - low) / _BINS
    if 2 * gap >= width:
        between = max(round(gap / width), 1)
        width = gap / between
        below, above = (
            max(math.ceil(far / width - 1e-9), 1) for far in (places[0] - low, high - places[-1])
        )
        edges = places[0] + width * np.arange(-below, between + above + 1)
        edges[[below, below + between]] = places
        return np.asarray(edges)
    edges = np.linspace(low, high, _BINS + 1)
    if places:
        cut = min(max(cuts[0], -_FARTHEST), _FARTHEST)
        nearest = np.abs(edges - cut)[1:-1].argmin() + 1
        edges += cut - edges[nearest]
        edges[nearest] = cut
    return edges


class _Axis:
    """Counts of where draws fall between the marks of all frames along one axis.

    Frames along one axis have one kind of marks, and where they are values the very same.
    """

    def __init__(self, frames: Sequence[_Frame]) -> None:
        self.event, self._are_edges = frames[0].event, frames[0].are_edges
        self._marks = np.unique(np.concatenate([frame.marks for frame in frames]))
        self._counts: dict[str, Integers] = {}

    def count(self, side: str, along: Floats) -> None:
        """Count the draws of one side by the first mark that is not below them."""
        marks = self._marks
        at = np.searchsorted(marks, along, side="left")
        other = np.isnan(along) if self._are_edges else np.append(marks, np.nan)[at] != along
        at[other] = len(marks) + 1
        seen = np.bincount(at, minlength=len(marks) + 2)
        self._counts[side] = self._counts[side] + seen if side in self._counts else seen

    def of(self, side: str, frame: _Frame) -> Integers:
        """Return the counts of one side in the bins of one frame."""
        counts = self._counts.get(side, np.zeros(len(self._marks) + 2, dtype=np.int64))
        bins = np.zeros(len(frame.bins), dtype=np.int64)
        bins[-1] = counts[-1]
        if not self._are_edges:
            bins[:-1] = counts[: len(self._marks)]
            return bins
        # Beyond the outermost edges, draws count as in the outermost bins.
        below = np.searchsorted(frame.marks, self._marks, side="right") - 1
        last = len(frame.bins) - 2
        np.add.at(bins, np.clip(np.append(0, below), 0, last), counts[:-1])
        return bins

    def histogram(self, frame: _Frame) -> Histogram:
        """Return the picture of one frame; an empty last bin is left out."""
        left, right = self.of("left", frame), self.of("right", frame)
        keep = len(frame.bins) - (left[-1] == right[-1] == 0)
        return Histogram(
            frame.label,
            frame.bins[:keep],
            tuple(frame.marks.tolist()) if frame.are_edges else None,
            tuple(left[:keep].tolist()),
            tuple(right[:keep].tolist()),
            frame.inside[:keep],
            frame.inside_right[:keep],
        )


def _along(event: Event, encoded: Floats, scores: Mapping[int, Floats]) -> Floats:
    """Return where encoded outputs lie along the axis on which an event is shown."""
    score = event.score
    if isinstance(score, OutcomeScore):
        return score.index(encoded).astype(float)
    if score.axis is not None:
        return score.axis(encoded)
    return scores[id(score)] if id(score) in scores else score(encoded)
