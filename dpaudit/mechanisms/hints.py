"""What else may have been meant by something that is no mechanism, or returns no draws."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

_SHOWN_KEYS = 40


def keys_differ(*names: tuple[str, ...] | None) -> str:
    """Return what to declare where draws hold different keys; empty where they hold the same."""
    if None in names or len(set(names)) < 2:
        return ""
    known = dict.fromkeys(name for some in names for name in some or ())
    shown = ", ".join(map(_as_code, list(known)[:_SHOWN_KEYS])) + ", ..." * (
        len(known) > _SHOWN_KEYS
    )
    return (
        "; the presence of a key is an outcome. Declare every key that there may be: "
        f"Outcomes(f, keys=[{shown}])"
    )


def _as_code(name: str) -> str:
    """Return a key as it is written in code; numbers and (row, column) pairs are no texts."""
    try:
        ast.literal_eval(name)
    except (SyntaxError, ValueError):
        return repr(name)
    return name


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
    """Say what else may have been meant by a function with other parameters than a mechanism."""
    if _takes(mechanism, None, 1, rng=None):
        return ""
    if _takes(mechanism, None, rng=None):
        return "; a function that returns one draw becomes a mechanism by one_draw(f)"
    if seeded := by_its_seed(mechanism):
        return f"; a mechanism is f(data, size, *, rng), and {seeded}"
    if _takes(mechanism, None, size=1):
        return (
            "; it takes no rng: a mechanism is f(data, size, *, rng), and draws from that generator"
        )
    if _takes(mechanism, None):
        return (
            "; a mechanism is f(data, size, *, rng). A function that returns one draw, with noise "
            'of global generators, becomes one by one_draw(f, randomness="legacy"); one of the '
            'data alone, before its noise, is audited with AdditiveNoise(f, "gaussian", scale=...)'
        )
    return ""


def by_its_seed(function: Any) -> str:
    """Return how a function that takes a seed becomes a mechanism; empty where it takes none."""
    if lacks(function, "seed") or not lacks(function, "rng") or not _takes(function, None):
        return ""
    called = getattr(function, "__name__", "f")
    called = called if called.isidentifier() else "f"
    return f'a function that takes seed becomes one by one_draw({called}, randomness="integer")'


def takes_another(mechanism: Any) -> str:
    """Say what `size` was given to, where a second parameter has a default and another name."""
    try:
        _, second, *_ = inspect.signature(mechanism).parameters.values()
    except (TypeError, ValueError):
        return ""
    if (
        second.name == "size"
        or second.kind is second.KEYWORD_ONLY
        or second.default is second.empty
    ):
        return ""
    return (
        f"; its second parameter is {second.name}={second.default!r}, which was given size: a "
        "function that returns one draw becomes a mechanism by one_draw(f)"
    )


def _takes(function: Any, *arguments: Any, **named: Any) -> bool:
    """Whether a function may be called so; False for one that does not tell."""
    try:
        inspect.signature(function).bind(*arguments, **named)
    except (TypeError, ValueError):
        return False
    return True


def lacks(function: Any, name: str) -> bool:
    """Whether a function is known not to take an argument by name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return name not in parameters and not takes_all


def slow_words(name: str, each: float, size: int, total: int, seconds: float) -> str:
    """Say that an audit will take long, and what would be faster."""
    draws = "a draw" if size == 1 else f"{size} draws"
    return (
        f"{name} takes {each:.2g} s for {draws}: this audit of {total:,} would take up to "
        f'{seconds / 60:.0f} minutes. method="sequential" (dpaudit run --sequential) stops as soon '
        "as the evidence is in; draws= and Settings(max_seconds=...) bound the time; "
        "Settings(cache_dir=...) lets an interrupted audit resume"
    )
