"""Counts of where outputs fall along an event, for the picture of the witness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events import Column, Event, OutcomeScore, TableScore, number_words, row_words
from dpaudit.results import Histogram

Floats = NDArray[np.float64]

MAX_BARS = 24
_BINS = 48
_FARTHEST = 1e100  # so that the bins of a picture stay finite


@dataclass
class OutputHistogram:
    """Bins fixed before the certifying draws, filled chunk by chunk."""

    label: str
    bins: list[str]
    edges: Floats | None
    inside: list[bool]
    counts: dict[str, NDArray[np.int64]]
    _event: Event
    _values: Floats | None

    @classmethod
    def plan(cls, event: Event, outputs: NDArray[Any]) -> OutputHistogram:
        """Choose bins from a sample of outputs of both sides."""
        encoded = event.encoder(outputs)
        if isinstance(event.score, OutcomeScore):
            return cls._outcomes(event, event.score, encoded)
        axis = event.score.axis
        along = axis(encoded) if axis is not None else event.score(encoded)
        column = axis.column if axis is not None else Column(event.score.name)
        seen = np.unique(along[~np.isnan(along)])
        if len(seen) <= MAX_BARS:
            return cls._values_of(event, column, seen, encoded, along)
        along = np.clip(along, -_FARTHEST, _FARTHEST)
        threshold = min(max(event.threshold, -_FARTHEST), _FARTHEST)
        low, high = map(float, np.quantile(along[~np.isnan(along)], [0.002, 0.998]))
        if not isinstance(event.score, TableScore):
            margin = (high - low) / _BINS
            low = min(low, threshold - 2 * margin)
            high = max(high, threshold + 2 * margin)
        if low == high:
            margin = max(abs(low), 1.0) * 1e-3
            low, high = low - margin, high + margin
        edges = np.linspace(low, high, _BINS + 1)
        if not isinstance(event.score, TableScore):
            # The score is cut on this axis: let a bin begin there.
            edges[np.abs(edges - threshold)[1:-1].argmin() + 1] = threshold
        names = [f"up to {number_words(e)}" for e in edges[1:]] + ["no answer"]
        picture = cls(column.name, names, edges, [], _zeros(len(names)), event, None)
        picture._mark(encoded, along)
        return picture

    @classmethod
    def _values_of(
        cls, event: Event, column: Column, seen: Floats, encoded: Floats, along: Floats
    ) -> OutputHistogram:
        names = [column.words(v) for v in seen.tolist()] + ["no answer or any other"]
        picture = cls(column.name, names, None, [], _zeros(len(names)), event, seen)
        picture._mark(encoded, along)
        return picture

    @classmethod
    def _outcomes(cls, event: Event, score: OutcomeScore, encoded: Floats) -> OutputHistogram:
        index = score.index(encoded)
        index = index[index < len(score.examples)]
        common = np.argsort(-np.bincount(index, minlength=len(score.examples)), kind="stable")
        shown = np.sort(common[:MAX_BARS])
        names = [row_words(score.encoder, row) for row in score.examples[shown]] + ["any other"]
        inside = [*event.fires(score.log_ratios[shown]).tolist(), False]
        return cls("outcome", names, None, inside, _zeros(len(names)), event, shown.astype(float))

    def _mark(self, encoded: Floats, along: Floats) -> None:
        """Call a bin inside when the event fires for most of the sample that falls there."""
        index = self._bin(along)
        fires = self._event.fires(self._event.score(encoded))
        size = len(self.bins)
        hits = np.bincount(index[fires], minlength=size)
        self.inside = (2 * hits > np.bincount(index, minlength=size)).tolist()

    def _bin(self, along: Floats) -> NDArray[np.intp]:
        last = len(self.bins) - 1
        if self.edges is not None:
            index = np.clip(np.searchsorted(self.edges, along, side="left") - 1, 0, last - 1)
            return np.where(np.isnan(along), last, index)
        values = self._values if self._values is not None else np.empty(0)
        if len(values) == 0:
            return np.full(len(along), last)
        index = np.minimum(np.searchsorted(values, along), len(values) - 1)
        return np.where(values[index] == along, index, last)

    def add(
        self, side: str, encoded: Floats, scores: Floats, axes: dict[int, Floats] | None = None
    ) -> None:
        """Count a chunk of certifying draws of one side; `axes` remembers what others read off."""
        score = self._event.score
        if isinstance(score, OutcomeScore):
            along = score.index(encoded).astype(float)
        else:
            along = scores
            if score.axis is not None:
                known = {} if axes is None else axes
                key = id(score.axis)
                if key not in known:
                    known[key] = score.axis(encoded)
                along = known[key]
        self.counts[side] += np.bincount(self._bin(along), minlength=len(self.bins))

    def done(self) -> Histogram:
        """Return the counts as plain data; an empty last bin is left out."""
        keep = len(self.bins)
        if not (self.counts["left"][-1] or self.counts["right"][-1]):
            keep -= 1
        return Histogram(
            self.label,
            tuple(self.bins[:keep]),
            None if self.edges is None else tuple(self.edges.tolist()),
            tuple(self.counts["left"][:keep].tolist()),
            tuple(self.counts["right"][:keep].tolist()),
            tuple(self.inside[:keep]),
        )


def _zeros(bins: int) -> dict[str, NDArray[np.int64]]:
    return {side: np.zeros(bins, dtype=np.int64) for side in ("left", "right")}
