"""Events as source code, which needs only numpy and the outputs `x`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.event import Event
from dpaudit.events.scores import FeatureScore, OutcomeScore, Score, TableScore, runs_of

MAX_PARTS = 8
"""Largest number of intervals, values or outcomes in the code of one event."""

_WHOLE_BELOW = 1e15  # Beyond this number, doubles have no halves.
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
