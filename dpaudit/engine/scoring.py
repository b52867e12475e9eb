"""Wrap a mechanism, and its mutants in the same way.

A score or a conversion of outputs is fixed before the first draw. It is post-processing, so
whatever is certified of the wrapped mechanism holds for the mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dpaudit.engine.request import kind_of
from dpaudit.mechanisms import (
    AdditiveNoise,
    ExactMechanism,
    Outcomes,
    Scored,
    mechanism_name,
)
from dpaudit.mutants import Change


def scored(score: Any, mechanism: Any) -> Any:
    """Return a mechanism followed by a score; without one, as it is.

    Raises
    ------
    TypeError
        When `score` is no function, or the mechanism draws no outputs to score.
    """
    if score is None:
        return mechanism
    if not callable(score):
        raise TypeError(f"score must be a function score(outputs) -> [size], got {score!r}")
    if isinstance(mechanism, AdditiveNoise | ExactMechanism):
        raise TypeError(
            "score needs a mechanism that draws its outputs; "
            f"{mechanism_name(mechanism)} {kind_of(mechanism)}"
        )
    return Scored(mechanism, score)


def wrapped_alike(variants: Any, mechanism: Any) -> Any:
    """Wrap variants of a mechanism as it is wrapped; leave what is no list as it is.

    Changes need no wrapping: they act inside. What cannot be wrapped is refused elsewhere.
    """
    if not isinstance(variants, Iterable) or isinstance(variants, str | Mapping):
        return variants
    return [_alike(one, mechanism) for one in variants]


def _alike(variant: Any, mechanism: Any) -> Any:
    fits = callable(variant) and not isinstance(variant, Change | AdditiveNoise | ExactMechanism)
    if not fits or not isinstance(mechanism, Outcomes | Scored):
        return variant
    inner = _alike(variant, mechanism.mechanism)
    is_wrapped = isinstance(mechanism, Outcomes) and isinstance(variant, Outcomes)
    return inner if is_wrapped else mechanism.of(inner)


def may_fail_late(mechanism: Any) -> bool:
    """Whether a call may fail after trial calls passed, so that :func:`apart` is needed."""
    while isinstance(mechanism, Scored):
        mechanism = mechanism.mechanism
    return isinstance(mechanism, Outcomes) and mechanism.may_fail_late


def apart(mechanism: Any) -> Any:
    """Return a mechanism of which each draw is a call of its own."""
    if isinstance(mechanism, Scored):
        return mechanism.of(apart(mechanism.mechanism))
    return mechanism.of(mechanism.mechanism, apart=True)
