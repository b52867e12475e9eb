"""Events as source code, which needs only numpy and the outputs `x`."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Encoder
from dpaudit.events.event import Event
from dpaudit.events.features import all_features
from dpaudit.events.scores import FeatureScore, OutcomeScore, Score, TableScore, runs_of
from dpaudit.stats import Counts, Target

MAX_PARTS = 8
"""Largest number of intervals, values or outcomes in the code of one event."""

_WHOLE_BELOW = 1e15  # Beyond this number, doubles have no halves.
_CUTS = 48  # Thresholds of one score that are tried.
_ERRORS = 3.0  # Standard errors by which rates are moved in the conservative direction.
_TEXT = 60  # Largest length of a text in the code.


def event_code(event: Event) -> str:
    """Return a numpy expression that is True for each output of `x` in an event.

    Parameters
    ----------
    event : Event
        The event. Its code may differ from the event on values that were not seen, such as
        fractions if all seen values were integers.

    Returns
    -------
    str
        The expression. Its value has shape ``[size]``. The variable `x` is the outputs as an array,
        as a record array or as a dict of arrays. Empty if the event is learnt from many features,
        has more than `MAX_PARTS` parts, or belongs to a feature without code.
    """
    score: Score = event.score
    if isinstance(score, FeatureScore):
        column = score.feature.column
        return _of_feature(score, event) if column.code and column.labels is None else ""
    if isinstance(score, TableScore):
        return _of_table(score, event)
    return _of_outcomes(score, event) if isinstance(score, OutcomeScore) else ""


def best_event_with_code(
    left: NDArray[Any], right: NDArray[Any], delta: float
) -> tuple[Event, Counts] | None:
    """Return the event with code that needs the largest epsilon, with counts on other draws.

    Parameters
    ----------
    left, right : ndarray, shape [size, ...]
        Exploration draws of both sides. The event is learnt on the first half of the draws and
        counted on the second half.
    delta : float
        The delta at which epsilon is needed.

    Returns
    -------
    tuple of Event and Counts, or None
        None if no event with code differs between the sides.
    """
    half = min(len(left), len(right)) // 2
    first = left[:half], right[:half]
    encoder = Encoder.learn(*first, sides=first)
    a, b = (encoder(side) for side in first)
    scores: list[Score] = []
    for feature in all_features(encoder, a, b):
        if feature.column.code:
            both = feature(np.concatenate([a, b]))
            scores += FeatureScore.learn(feature, both) if feature.ordered else []
            scores.append(TableScore.learn(feature, feature(a), feature(b)))
    outcomes = OutcomeScore.learn(encoder, a, b)
    scores += [] if outcomes is None else [outcomes]
    found: tuple[float, Event] | None = None
    for score in scores:
        of_left, of_right = score(a), score(b)
        for at in _thresholds(np.concatenate([of_left, of_right])):
            above = [float((side >= at).mean()) for side in (of_left, of_right)]
            for is_above, likelier in itertools.product((True, False), ("left", "right")):
                p, q = above if is_above else [1 - rate for rate in above]
                p, q = (p, q) if likelier == "left" else (q, p)
                needs = _needed(p, q, half, delta)
                if needs > (0.0 if found is None else found[0]):
                    event = Event(score, at, is_above, likelier, encoder, Target(delta=delta))
                    found = (needs, event) if event_code(event) else found
    if found is None:
        return None
    event = found[1]
    hits = [int(event(side[half:]).sum()) for side in (left, right)]
    return event, Counts(hits[0], len(left) - half, hits[1], len(right) - half)


def _thresholds(values: NDArray[np.float64]) -> list[float]:
    known = np.unique(values[np.isfinite(values)])
    places = np.unique(np.linspace(0, len(known) - 1, _CUTS).astype(int))
    return [float(value) for value in known[places]]


def _needed(p: float, q: float, draws: int, delta: float) -> float:
    """Return the epsilon that two rates need, moved in the conservative direction."""
    low = p - _ERRORS * math.sqrt(p * (1 - p) / draws) - delta
    high = q + _ERRORS * math.sqrt(q * (1 - q) / draws) + _ERRORS / draws
    return math.log(low / high) if low > 0 else 0.0


def _of_feature(score: FeatureScore, event: Event) -> str:
    v, at = _operand(score.feature.column.code), event.threshold
    if score.gaps and score.separates_answers(at):
        return f"{'~' if event.above else ''}np.isnan({score.feature.column.code})"
    if score.whole and abs(at) < _WHOLE_BELOW:
        at = math.ceil(at)
    if score.falling:
        inside = f"{v} <= {_number(-at)}"
    elif event.above or score.gaps:
        inside = f"{v} >= {_number(at)}"
    else:
        return f"{v} < {_number(at)}"
    return inside if event.above else f"~({inside})"  # no answer lies outside, and NaN fails too


def _of_table(score: TableScore, event: Event) -> str:
    code, inside = score.feature.column.code, (score.log_ratios >= event.threshold) == event.above
    if not code:
        return ""
    parts: list[str] | None
    if score.atoms:
        parts = _of_values(code, score.edges, inside, score.feature.column.labels)
    else:
        runs = list(runs_of(inside[:-1]))
        parts = [_interval(code, score.edges, *run) for run in runs]
        parts = None if len(runs) > MAX_PARTS else parts
    if parts is None:
        return ""
    if inside[-1] and score.gaps:
        parts.append(f"np.isnan({code})")
    return parts[0] if len(parts) == 1 else " | ".join(f"({part})" for part in parts)


def _of_values(
    code: str, edges: NDArray[np.float64], inside: NDArray[np.bool_], labels: tuple[str, ...] | None
) -> list[str] | None:
    """Return the code of a set of values, or of the complement if values not seen are inside."""
    others = bool(inside[-2])
    listed = edges[inside[:-2] != others].tolist()
    if labels is not None:
        if any(not 0 <= value < len(labels) for value in listed):
            return None
        names = [labels[int(value)] for value in listed]
        values = [repr(name) for name in names]
        if any(len(name) > _TEXT or name.startswith("<") for name in names):
            return None  # a label such as <None> stands for an output that is no text
    else:
        values = [_number(value) for value in listed]
    if len(values) > MAX_PARTS or (others and not values):
        return None
    if not values:
        return []
    if len(values) == 1:
        return [f"{_operand(code)} {'!=' if others else '=='} {values[0]}"]
    return [f"{'~' if others else ''}np.isin({code}, [{', '.join(values)}])"]


def _interval(code: str, edges: NDArray[np.float64], low: int, high: int) -> str:
    v = _operand(code)
    above = f"{v} > {_number(edges[low])}" if low >= 0 else ""
    below = f"{v} <= {_number(edges[high])}" if high < len(edges) else ""
    if above and below:
        if math.nextafter(float(edges[low]), math.inf) == edges[high]:
            return f"{v} == {_number(edges[high])}"
        return f"({above}) & ({below})"
    return above or below or f"~np.isnan({code})"


def _of_outcomes(score: OutcomeScore, event: Event) -> str:
    if not score.encoder.is_matrix:
        return ""
    others = (score.other >= event.threshold) == event.above
    inside = (score.log_ratios >= event.threshold) == event.above
    rows = score.examples[inside != others]
    if not len(rows) or len(rows) > MAX_PARTS or np.isnan(rows).any():
        return ""
    listed = [f"(x == [{', '.join(map(_number, row))}]).all(axis=1)" for row in rows.tolist()]
    union = " | ".join(listed)
    return f"~({union})" if others else union


def _operand(code: str) -> str:
    return f"({code})" if " " in code.replace(", ", ",") and not code.startswith("np.") else code


def _number(value: float) -> str:
    value = float(value)
    if math.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return str(int(value)) if value == int(value) and abs(value) < _WHOLE_BELOW else repr(value)
