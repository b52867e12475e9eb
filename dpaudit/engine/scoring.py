"""A fixed score of the outputs: it is the scores that are audited, of mutants and variants too.

A score is settled before the first draw, and post-processing costs no privacy: what is certified of
the scores holds of the outputs. It saves the audit from learning where a long output is best looked
at.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from dpaudit.engine.request import kind_of
from dpaudit.mechanisms import (
    AdditiveNoise,
    ExactMechanism,
    OneDraw,
    Outcomes,
    Scored,
    mechanism_name,
)
from dpaudit.mutants import Change


def scored(
    score: Callable[[Any], Any] | None, mechanism: Any, mutants: Any, slack: Any
) -> tuple[Any, Any, Any]:
    """Return a mechanism, its mutants and its variants, each seen through one score.

    Parameters
    ----------
    score : callable or None
        ``score(outputs) -> [size]``; None changes nothing.
    mechanism, mutants, slack
        As in :func:`dpaudit.audit`; what is none of these is left as it is, to be refused there.

    Raises
    ------
    TypeError
        When `score` is no function, or the mechanism draws no outputs to score.
    """
    if score is None:
        return mechanism, mutants, slack
    if not callable(score):
        raise TypeError(f"score must be a function score(outputs) -> [size], got {score!r}")
    if isinstance(mechanism, AdditiveNoise | ExactMechanism):
        raise TypeError(
            "score needs a mechanism that draws its outputs; "
            f"{mechanism_name(mechanism)} {kind_of(mechanism)}"
        )

    return _each(lambda one: Scored(one, score), mechanism, mutants, slack)


def as_outcomes(
    mechanism: Any,
    mutants: Any,
    slack: Any,
    *,
    errors: str,
    keys: Sequence[Hashable] | None,
    apart: bool,
) -> tuple[Any, Any, Any]:
    """Return a mechanism, its mutants and its variants with outputs made arrays.

    Parameters
    ----------
    mechanism, mutants, slack
        As of :func:`scored`.
    errors, keys, apart
        See :class:`Outcomes`.

    Raises
    ------
    TypeError
        When the mechanism draws no outputs.
    """
    if isinstance(mechanism, AdditiveNoise | ExactMechanism):
        raise TypeError(
            "errors and keys are for mechanisms that draw; "
            f"{mechanism_name(mechanism)} {kind_of(mechanism)}"
        )

    def wrapped(inner: Any) -> Outcomes:
        if isinstance(inner, functools.partial) and isinstance(inner.func, OneDraw):
            inner = inner.func.of(functools.partial(inner.func.function, **inner.keywords))
        if keys is not None and isinstance(inner, OneDraw) and inner.keys is None:
            inner = inner.declaring(keys)
        return Outcomes(inner, errors=errors, keys=keys, apart=apart)

    return _each(wrapped, mechanism, mutants, slack)


def _each(
    wrap: Callable[[Any], Any], mechanism: Any, mutants: Any, slack: Any
) -> tuple[Any, Any, Any]:
    """Put something around a mechanism, its mutants, changes of it, and its variants."""

    def seen(one: Any) -> Any:
        if isinstance(one, Change):
            return Change(one.name, lambda whole: wrap(one(whole.mechanism)))
        is_drawn = callable(one) and not isinstance(one, AdditiveNoise | ExactMechanism)
        return wrap(one) if is_drawn else one

    if isinstance(mutants, Iterable) and not isinstance(mutants, str) and not callable(mutants):
        mutants = [seen(one) for one in mutants]
    if isinstance(slack, Mapping):
        slack = {multiplier: seen(variant) for multiplier, variant in slack.items()}
    return seen(mechanism), mutants, slack
