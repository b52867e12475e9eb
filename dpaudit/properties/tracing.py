"""What a search saw, for a picture: the ratio over one or two coordinates of the cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpaudit.properties.attempt import Counterexample, Trace

_LEAST = 20  # points of a picture
_WIDE = 100.0  # from which ratio of its ends a positive coordinate is shown on a logarithmic scale


def trace_of(
    seen: Sequence[tuple[Mapping[str, float], float]],
    counterexample: Counterexample | None,
    logarithmic: frozenset[str] = frozenset(),
) -> Trace | None:
    """Return the ratio over those coordinates that tell most of it; None where there is none.

    Parameters
    ----------
    seen : sequence of (numbers by name, ratio)
        The cases.
    counterexample : Counterexample or None
        Its case is one more point.
    logarithmic : frozenset of str
        Coordinates that were searched on a logarithmic scale.
    """
    points = [(case, ratio) for case, ratio in seen if math.isfinite(ratio)]
    if counterexample is not None and _finite(counterexample):
        case = {k: float(v) for k, v in counterexample.case.items() if isinstance(v, int | float)}
        points.append((case, counterexample.lhs / counterexample.rhs))
    names = [n for n in points[0][0] if all(n in case for case, _ in points)] if points else []
    columns = {name: np.array([case[name] for case, _ in points]) for name in names}
    ratios = np.array([ratio for _, ratio in points])
    varying = [name for name in names if len(np.unique(columns[name])) > 2]
    if len(points) < _LEAST or not varying:
        return None
    varying.sort(key=lambda name: -_association(columns[name], ratios))
    shown = tuple(sorted(varying[:2], key=names.index))
    rows = zip(*(columns[name].tolist() for name in shown), ratios.tolist(), strict=True)
    return Trace(shown, tuple(_is_log(columns[n], n in logarithmic) for n in shown), tuple(rows))


def _finite(counterexample: Counterexample) -> bool:
    return math.isfinite(counterexample.lhs) and 0 < counterexample.rhs < math.inf


def _association(column: NDArray[np.float64], ratios: NDArray[np.float64]) -> float:
    """How much the ratio follows a coordinate, up or down; 0 where it never moves."""
    if len(np.unique(ratios)) < 2:
        return 0.0
    return abs(float(stats.spearmanr(column, ratios).statistic))


def _is_log(column: Any, searched_so: bool) -> bool:
    low, high = float(column.min()), float(column.max())
    return low > 0 and (searched_so or high / low > _WIDE)
