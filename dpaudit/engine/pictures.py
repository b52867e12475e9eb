"""Counts of where outputs fall along events and guesses, for the pictures of witnesses."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.certificate import parts_of
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
        self._frames = [_plan(one, outputs) for one in chosen]
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
    """The bins of one picture: between edges or one for each value, and one for other outputs.

    `inside` flags the bins in which the event fires for most of the sample; for a guess, the bins
    of left, and `inside_right` those of right.
    """

    event: Event
    label: str
    bins: tuple[str, ...]
    marks: Floats
    are_edges: bool
    inside: tuple[bool, ...] = ()
    inside_right: tuple[bool, ...] = ()

    @property
    def axis_id(self) -> Hashable:
        """The identity of its axis; events that are cut on one axis share it."""
        score = self.event.score
        return id(score if score.axis is None else score.axis)

    def flags(self, along: Floats, fires: NDArray[np.bool_]) -> tuple[bool, ...]:
        """Return for each bin whether an event fires for most of the sample in it."""
        axis = _Axis([self])
        axis.count("all", along)
        axis.count("hits", along[fires])
        seen = axis.of("all", self)
        inside = 2 * axis.of("hits", self) > seen
        if self.are_edges and seen[:-1].any():
            # A bin without any sample gets the flag of the nearest one before it, or of the first.
            known = np.flatnonzero(seen[:-1])
            before = np.searchsorted(known, np.arange(len(seen) - 1), side="right") - 1
            inside[:-1] = inside[known[np.maximum(before, 0)]]
        return tuple(inside.tolist())


def _plan(chosen: Event | Guess, outputs: NDArray[Any]) -> _Frame:
    """Choose the bins of one picture from a sample of outputs of both sides."""
    parts = parts_of(chosen)
    event, score = parts[0], parts[0].score
    encoded = event.encoder(outputs)
    if isinstance(score, OutcomeScore):
        index, known = score.index(encoded), len(score.examples)
        common = np.bincount(index[index < known], minlength=known)
        shown = np.sort(np.argsort(-common, kind="stable")[:MAX_BARS])
        bins = (*(row_words(score.encoder, row) for row in score.examples[shown]), "any other")
        ratios = score.log_ratios[shown]
        inside = [(*part.fires(ratios).tolist(), False) for part in parts]
        return _Frame(event, "outcome", bins, shown.astype(float), False, *inside)
    column = Column(score.name) if score.axis is None else score.axis.column
    along = _along(event, encoded, {})
    numbers = along[~np.isnan(along)]
    marks = np.unique(numbers)
    if are_edges := len(marks) > MAX_BARS:
        cuts = [] if isinstance(score, TableScore) else [part.threshold for part in parts]
        marks = _edges(numbers, cuts)
        bins = (*(f"up to {number_words(edge)}" for edge in marks[1:]), "no answer")
    else:
        bins = (*(column.words(value) for value in marks.tolist()), "no answer or any other")
    frame, scores = _Frame(event, column.name, bins, marks, are_edges), score(encoded)
    inside = [frame.flags(along, part.fires(scores)) for part in parts]
    return _Frame(event, column.name, bins, marks, are_edges, *inside)


def _edges(along: Floats, cuts: Sequence[float]) -> Floats:
    """Return edges of bins of one width, such that a bin begins at each cut.

    If two cuts are nearer than half a bin, then only at the first.
    """
    cuts = np.clip(cuts, -_FARTHEST, _FARTHEST).tolist()
    low, high = np.quantile(np.clip(along, -_FARTHEST, _FARTHEST), [0.002, 0.998]).tolist()
    if cuts:
        margin = (high - low) / _BINS
        low, high = min(low, min(cuts) - 2 * margin), max(high, max(cuts) + 2 * margin)
    if low == high:
        margin = max(abs(low), 1.0) * 1e-3
        low, high = low - margin, high + margin
    gap, width = max(cuts, default=0.0) - min(cuts, default=0.0), (high - low) / _BINS
    if 2 * gap >= width:
        first, last = min(cuts), max(cuts)
        between = max(round(gap / width), 1)
        width = gap / between
        below, above = (max(math.ceil(far / width - 1e-9), 1) for far in (first - low, high - last))
        edges = first + width * np.arange(-below, between + above + 1)
        edges[[below, below + between]] = first, last
        return np.asarray(edges)
    edges = np.linspace(low, high, _BINS + 1)
    if cuts:
        nearest = np.abs(edges - cuts[0])[1:-1].argmin() + 1
        edges += cuts[0] - edges[nearest]
        edges[nearest] = cuts[0]
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
