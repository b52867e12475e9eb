"""How much the noise of a mechanism could shrink before an audit would refute its claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import Claim
from dpaudit.engine.auditing import (
    MIN_DRAWS,
    Settings,
    apart,
    check_kind,
    checked_settings,
    checked_task,
    classifier,
    may_fail_late,
    scored,
)
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.task import divide
from dpaudit.errors import ArgumentError
from dpaudit.mechanisms import working
from dpaudit.neighbors import NeighborPair
from dpaudit.results import AuditResult, MarginPoint, NoiseMargin


def noise_margin(
    result: AuditResult,
    claim: Claim,
    variants: Mapping[float, Any],
    *,
    pair: NeighborPair | None = None,
    draws: int | None = None,
    score: Callable[[Any], Any] | Any | None = None,
    settings: Settings | None = None,
) -> NoiseMargin:
    """Audit a mechanism with less noise, and find how far the noise could shrink.

    Parameters
    ----------
    result : AuditResult
        Audit of the mechanism. The seed and the `failure_prob` of this audit are used again.
    claim : Claim
        The claim that is audited.
    variants : mapping of float to mechanism
        The same mechanism with its noise multiplied by each of several numbers, > 0. A variant
        makes each draw in a separate call if exceptions are outcomes and a call makes many draws.
    pair : NeighborPair, optional
        The pair to audit. The default is the pair of the result.
    draws : int, optional
        Number of draws per dataset for each variant. The default is the number of draws of the
        result.
    score : callable or classifier, optional
        As in :func:`dpaudit.audit`.
    settings : Settings, optional
        Settings of the audits of the variants. `max_seconds` must not be set, because variants are
        audited by ``method="fixed"``.

    Returns
    -------
    NoiseMargin
        Certified bounds of each variant. The probability that any of these bounds is wrong is at
        most `failure_prob`.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, or if the result has no pair.
    """
    if not isinstance(result, AuditResult):
        raise TypeError(f"result must be an AuditResult, got {_validate.describe(result)}")
    if not isinstance(variants, Mapping) or not variants:
        raise TypeError(
            "variants must be a dict from multipliers to mechanisms, got "
            + _validate.describe(variants)
        )
    for multiplier in variants:
        _validate.positive(**{"each key of variants": multiplier})
    by_multiplier = sorted(variants.items(), key=lambda item: -item[0])
    wrapped = [(float(multiplier), scored(score, one)) for multiplier, one in by_multiplier]
    ordered = [(m, apart(one) if may_fail_late(one) else one) for m, one in wrapped]
    first = ordered[0][1]
    for _, variant in ordered:
        check_kind("variants", variant, first)
    if pair is not None:
        _validate.instance(NeighborPair, "a NeighborPair", pair=pair)
    where = result.pair if pair is None else pair
    if where is None:
        raise ArgumentError("pair must be given, because the datasets of the result are lost")
    settings = checked_settings(settings)
    if settings.max_seconds is not None:
        raise ArgumentError(
            'max_seconds must be None, because a noise margin uses method="fixed", got '
            f"{settings.max_seconds:g}"
        )
    share = divide(result.failure_prob or DEFAULT_FAILURE_PROB, len(ordered))[0]
    task = checked_task(
        first,
        claim,
        where,
        draws=_budget(result) if draws is None else draws,
        seed=result.seed,
        failure_prob=share,
        id=result.id,
    )
    points = []
    with (
        working(settings.workers, settings.executor) as workers,
        settings.watching(task.name) as watch,
    ):
        watch.total = 2 * task.draws * len(ordered)
        task = replace(
            task,
            watch=watch,
            workers=workers,
            cache_dir=settings.cache_dir,
            estimator=classifier(score),
        )
        for multiplier, variant in ordered:
            watch.begin(f"auditing with {multiplier:g} times the noise")
            found = certificate_of(task, variant, f"slack {multiplier!r}")
            points.append(MarginPoint(multiplier, found.epsilon.lower, found.refuted))
        watch.finish()
    return NoiseMargin(tuple(points), where.describe(), share if result.failure_prob else 0.0)


def _budget(result: AuditResult) -> int:
    if result.diagnostics.sequential is not None:
        return result.diagnostics.sequential.budget
    return max(sum(result.draws.values()), MIN_DRAWS)
