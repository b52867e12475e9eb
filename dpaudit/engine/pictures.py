"""Histograms of outputs along the axis of an event or guess, for pictures of witnesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.certificate import parts_of
from dpaudit.events import Column, Event, Guess, OutcomeScore, TableScore, number_words, row_words
from dpaudit.mechanisms import joined
from dpaudit.results import Histogram

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MAX_BARS = 24
_BINS = 48
_SAMPLE = 5000  # outputs of each side that determine the bins
FARTHEST = 1e100  # limit of the axis, so that the bins stay finite


@dataclass(frozen=True, eq=False)
class _Frame:
    """The bins of a picture: intervals or single values, and one bin for other outputs."""

    event: Event
    label: str
    bins: tuple[str, ...]
    marks: Floats
    are_edges: bool

    def count(self, along: Floats) -> Integers:
        """Count draws in each bin, by their position along the axis of the picture.

        Draws beyond an outermost edge are counted in the outermost bin.
        """
        marks, last = self.marks, len(self.bins) - 1
        at = np.searchsorted(marks, along, side="left")
        if self.are_edges:
            other, at = np.isnan(along), np.clip(at - 1, 0, last - 1)
        else:
            other = np.append(marks, np.nan)[at] != along
        at[other] = last
        return np.bincount(at, minlength=len(self.bins))

    def flags(self, along: Floats, fires: NDArray[np.bool_]) -> tuple[bool, ...]:
        """Return whether an event fires for most of the sample in each bin."""
        seen = self.count(along)
        inside = 2 * self.count(along[fires]) > seen
        if self.are_edges and seen[:-1].any():
            # A bin without any sample gets the flag of the nearest bin on its left, or else of the
            # first bin with a sample.
            known = np.flatnonzero(seen[:-1])
            before = np.searchsorted(known, np.arange(len(seen) - 1), side="right") - 1
            inside[:-1] = inside[known[np.maximum(before, 0)]]
        return tuple(inside.tolist())


def picture(chosen: Event | Guess, left: NDArray[Any], right: NDArray[Any]) -> Histogram:
    """Count the outputs along the axis of an event or a guess.

    The first outputs of both sides determine the bins. The last bin is for outputs that fit no
    other bin. The last bin is omitted if it is empty.
    """
    frame, inside = _plan(chosen, joined([left[:_SAMPLE], right[:_SAMPLE]]))
    counts = [frame.count(_along(frame.event, frame.event.encoder(side))) for side in (left, right)]
    keep = len(frame.bins) - (not any(side[-1] for side in counts))
    of_left, of_right = (tuple(side[:keep].tolist()) for side in counts)
    edges = tuple(frame.marks.tolist()) if frame.are_edges else None
    flags = [flags[:keep] for flags in inside]
    return Histogram(frame.label, frame.bins[:keep], edges, of_left, of_right, *flags)


def _plan(chosen: Event | Guess, outputs: NDArray[Any]) -> tuple[_Frame, list[tuple[bool, ...]]]:
    """Choose the bins from a sample of both sides, and flag the bins in which each event fires."""
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
        return _Frame(event, "outcome", bins, shown.astype(float), False), inside
    column = Column(score.name) if score.axis is None else score.axis.column
    along = _along(event, encoded)
    numbers = along[~np.isnan(along)]
    marks = np.unique(numbers)
    if are_edges := len(marks) > MAX_BARS:
        cuts = [] if isinstance(score, TableScore) else [part.threshold for part in parts]
        marks = _edges(numbers, cuts)
        bins = (*(f"up to {number_words(edge)}" for edge in marks[1:]), "no answer")
    else:
        bins = (*(column.words(value) for value in marks.tolist()), "no answer or any other")
    frame, scores = _Frame(event, column.name, bins, marks, are_edges), score(encoded)
    return frame, [frame.flags(along, part.fires(scores)) for part in parts]


def _edges(along: Floats, cuts: Sequence[float]) -> Floats:
    """Return edges of bins of equal width, with an edge at each threshold.

    If two thresholds are closer than half a bin, only the first threshold is an edge.
    """
    cuts = np.clip(cuts, -FARTHEST, FARTHEST).tolist()
    low, high = np.quantile(np.clip(along, -FARTHEST, FARTHEST), [0.002, 0.998]).tolist()
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


def _along(event: Event, encoded: Floats) -> Floats:
    """Return the positions of encoded outputs along the axis of an event."""
    score = event.score
    if isinstance(score, OutcomeScore):
        return score.index(encoded).astype(float)
    return (score if score.axis is None else score.axis)(encoded)
