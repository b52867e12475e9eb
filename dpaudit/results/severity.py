"""How badly a claim is violated, or how close an audit came: certified over claimed.

The scale of the bars is linear from nothing to the claim, so that a bound of 0 and one of 0.98 of
the claim look different, and logarithmic from there to infinity, so that twice, ten times and a
hundred times the claim do too.
"""

from __future__ import annotations

import math
from typing import Protocol

from dpaudit.results.status import STATUSES
from dpaudit.results.svg import WIDTH, Palette, coordinate, themed
from dpaudit.results.verdicts import Verdict
from dpaudit.results.words import least, most, number

CLAIM = 0.36
"""Where on the bar the claim stands; its end is infinity."""

ORDER = tuple(STATUSES)
"""Keys of what may become of an audit, in the order in which a reader should look."""

TICKS = (1.0, 2.0, 5.0, 10.0, 100.0, math.inf)
_DECADES = 3.0
_LAST_FINITE = 0.97


class Judged(Protocol):
    """What a bar shows of an audit."""

    @property
    def verdict(self) -> Verdict:
        """What was concluded."""

    @property
    def claimed_epsilon(self) -> float:
        """At the point of comparison."""

    @property
    def claimed_delta(self) -> float:
        """At the point of comparison."""

    @property
    def certified_epsilon(self) -> float:
        """At the claimed delta."""

    @property
    def certified_delta(self) -> float:
        """At the claimed epsilon."""

    @property
    def detectable_epsilon(self) -> float | None:
        """What this event would have shown."""


def severity(result: Judged) -> float:
    """Return certified over claimed epsilon: above 1 where the claim is violated.

    A claim of epsilon = 0 promises no more than its delta; there, deltas are compared.

    Returns
    -------
    float
        May be ``inf``: anything is infinitely more than nothing.
    """
    if result.claimed_epsilon > 0:
        return _ratio(result.certified_epsilon, result.claimed_epsilon)
    if result.claimed_delta > 0:
        return _ratio(result.certified_delta, result.claimed_delta)
    return math.inf if result.certified_epsilon > 0 else 0.0


def _ratio(certified: float, claimed: float) -> float:
    if claimed == math.inf:
        return 0.0
    return certified / claimed


def place(ratio: float) -> float:
    """Return where on the bar a ratio stands, from 0 to 1.

    Examples
    --------
    >>> place(0.0), place(0.5), place(1.0), round(place(10.0), 3), place(math.inf)
    (0.0, 0.18, 0.36, 0.573, 1.0)
    """
    if ratio <= 1:
        return CLAIM * max(ratio, 0.0)
    if ratio == math.inf:
        return 1.0
    return min(CLAIM + (1 - CLAIM) * math.log10(ratio) / _DECADES, _LAST_FINITE)


def closeness(result: Judged) -> str:
    """Say how far the certified number lies from the claim, rounded so that it was certified.

    Examples are "2.5 times the claim", "98 % of the claim" and "nothing certified".
    """
    ratio = severity(result)
    if ratio == math.inf:
        return "infinitely more than the claim"
    if ratio > 1:
        words = least(ratio, 3)
        return f"{words} times the claim" if float(words) > 1 else "barely above the claim"
    if ratio <= 0:
        return "nothing certified"
    percent = math.floor(100 * ratio)
    return f"{percent} % of the claim" if percent else "under 1 % of the claim"


def reach(result: Judged) -> str:
    """Say from which epsilon on the audit would have refuted; empty if unknown."""
    detectable = result.detectable_epsilon
    if detectable is None:
        return ""
    if detectable == math.inf:
        return "sees no violation of any size"
    return f"sees from ε = {most(detectable, 3)}"


def bar(result: Judged) -> str:
    """Return the bar of a table: no text, stretched to the width of its cell."""
    ratio, refuted = severity(result), result.verdict is Verdict.REFUTED
    length = coordinate(400 * place(ratio))
    marks = "".join(f"M{coordinate(400 * place(tick))} 2v6" for tick in TICKS[1:-1])
    parts = [
        '<rect class="track" y="2" width="400" height="6"/>',
        f'<rect class="{"over" if refuted else "under"}" y="2" width="{length}" height="6"/>',
        f'<path class="ticks" d="{marks}"/>',
        f'<rect class="mark" x="{coordinate(400 * CLAIM - 2)}" width="4" height="10"/>',
    ]
    if (seen := _reach_place(result)) is not None:
        parts.append(f'<path class="reach" d="M{coordinate(400 * seen)} 0v10"/>')
    return (
        '<svg class="bar" viewBox="0 0 400 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def scale(result: Judged, palette: Palette = themed) -> str:
    """Return the bar with its ticks and words, to stand alone."""
    ratio, refuted = severity(result), result.verdict is Verdict.REFUTED
    left, span = 6.0, WIDTH - 18.0
    colour = palette("violation" if refuted else "certified")
    at = [(tick, coordinate(left + span * place(tick))) for tick in TICKS]
    words = "".join(
        f'<text x="{x}" y="38" text-anchor="middle">{number(tick)}</text>' for tick, x in at
    )
    marks = "".join(f"M{x} 22v4" for _, x in at)
    claim = coordinate(left + span * CLAIM)
    parts = [
        f'<rect fill="{palette("event")}" x="{coordinate(left)}" y="8" '
        f'width="{coordinate(span)}" height="14" rx="2"/>',
        f'<rect fill="{colour}" x="{coordinate(left)}" y="8" '
        f'width="{coordinate(span * place(ratio))}" height="14" rx="2"/>',
        f'<path fill="none" stroke="{palette("rule")}" d="{marks}"/>',
        f'<path stroke="{palette("claimed")}" stroke-width="2.5" d="M{claim} 4v22"/>',
    ]
    if (seen := _reach_place(result)) is not None:
        x = coordinate(left + span * seen)
        pen = f'stroke="{palette("muted")}" stroke-width="1.5" stroke-dasharray="3 2"'
        parts.append(f'<path {pen} d="M{x} 4v22"/>')
    muted = palette("muted")
    unit = f'<text x="{coordinate(left)}" y="38">0</text>'
    middle = coordinate(left + span * CLAIM / 2)
    note = f'<text x="{middle}" y="38" text-anchor="middle">of the claim</text>'
    said = f"Certified over claimed: {closeness(result)}"
    return (
        f'<svg class="scale" viewBox="0 0 {coordinate(WIDTH)} 42" role="img" '
        f'aria-label="{said}" font-family="system-ui,sans-serif" font-size="10.5">'
        f'{"".join(parts)}<g fill="{muted}">{unit}{note}{words}</g></svg>'
    )


def _reach_place(result: Judged) -> float | None:
    """Where the audit would have begun to see; None where that is unknown or no better."""
    detectable = result.detectable_epsilon
    if detectable is None or detectable == math.inf or result.claimed_epsilon <= 0:
        return None
    return place(_ratio(detectable, result.claimed_epsilon))
