"""What else may have been meant by something that is no mechanism, or returns no draws."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

KEYS_DIFFER = (
    "; which keys there are is an outcome: declare all that there may be with keys=[...], and "
    "absent ones are told from others"
)


def needs_care(draw: Any) -> bool:
    """Whether a draw is nothing that numpy makes a number or a text of."""
    return draw is None or isinstance(draw, Mapping) or hasattr(draw, "columns")


def no_array(outputs: Any) -> str | None:
    """Say what was returned instead of an array, and what to do about it; None for an array."""
    if outputs is None:
        return "None: is there a return missing?"
    if inspect.iscoroutine(outputs):
        outputs.close()  # nobody will await it
        return "a coroutine: a mechanism must be an ordinary function, not async"
    if inspect.isgenerator(outputs):
        return "a generator: return np.array([...]) of all draws instead of yielding them"
    if isinstance(outputs, Mapping):
        return (
            f"a dict with the keys {', '.join(map(repr, list(outputs)[:5]))}: its values must be "
            "arrays [size, ...], or return a list of dicts, one for each draw"
        )
    if hasattr(outputs, "columns"):
        return (
            f"a {type(outputs).__name__} of {len(outputs)} rows: return one row for each draw, or "
            "a list of frames"
        )
    if not isinstance(outputs, np.ndarray | list | tuple) and np.ndim(outputs) == 0:
        return f"one value, {outputs!r}: draw noise of shape [size, ...], one draw for each row"
    return None


def hint(mechanism: Any) -> str:
    """Say what else may have been meant by a function that takes the data and no more."""
    try:
        signature = inspect.signature(mechanism)
        signature.bind(None)
    except (TypeError, ValueError):  # takes more than the data, or tells nothing
        return ""
    try:
        signature.bind(None, 1, rng=None)
    except TypeError:
        return (
            "; a mechanism is f(data, size, *, rng), and a function of the data alone, before its "
            'noise, is audited with AdditiveNoise(f, "gaussian", scale=...)'
        )
    return ""


def slow_words(name: str, each: float, size: int, total: int, seconds: float) -> str:
    """Say that an audit will take long, and what would be faster."""
    draws = "a draw" if size == 1 else f"{size} draws"
    return (
        f"{name} takes {each:.2g} s for {draws}: this audit of {total:,} would take about "
        f"{seconds / 60:.0f} minutes. A sequential audit (sequential=True, dpaudit run "
        "--sequential) stops as soon as evidence is in; draws=, max_seconds= and timeout= bound "
        "it, and keep= loses nothing of it"
    )
