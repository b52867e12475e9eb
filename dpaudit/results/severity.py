"""Severity of a result, which is the certified number divided by the claimed number.

The bar is linear in epsilon and ends at twice the claim, so the claim has the same place in every
row. A bound beyond the end gets an arrow; the words beside the bar say how far beyond it lies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpaudit.results.charts import Axis, Chart, Panel, Series
from dpaudit.results.svg import coordinate, svg_of
from dpaudit.results.verdicts import Verdict
from dpaudit.results.words import LARGEST_RATIO, least, most, number

if TYPE_CHECKING:
    from dpaudit.results import AuditResult

CLAIM = 0.5
"""Position of the claim on the bar, which ends at ``1 / CLAIM`` times the claim."""

_ARROW = 12.0  # length of the arrow at the end of a bar of length 400


def severity(result: AuditResult) -> float:
    """Return certified epsilon divided by claimed epsilon.

    The ratio is above 1 for a violated claim. A claim of epsilon = 0 limits only delta, so for this
    claim the deltas are compared.

    Returns
    -------
    float
        The ratio is ``inf`` if the claimed number is 0 and the certified number is not.
    """
    if result.claimed_epsilon > 0:
        certified, claimed = result.certified_epsilon, result.claimed_epsilon
        return 0.0 if claimed == math.inf else certified / claimed
    if result.claimed_delta > 0:
        return result.certified_delta / result.claimed_delta
    return math.inf if result.certified_epsilon > 0 else 0.0


def place(ratio: float) -> float:
    """Return the position of a ratio on the bar, from 0 to 1.

    Examples
    --------
    >>> place(0.0), place(0.5), place(1.0), place(10.0)
    (0.0, 0.25, 0.5, 1.0)
    """
    return min(CLAIM * max(ratio, 0.0), 1.0)


def closeness(result: AuditResult) -> str:
    """Return the certified number relative to the claim in words, rounded down.

    Examples are "2.5 times the claim", "98 % of the claim", "unbounded" and "nothing certified".
    """
    ratio = severity(result)
    if result.certified_epsilon == math.inf:
        return "unbounded"
    if ratio == math.inf:
        return "above the claim of 0"
    if ratio > LARGEST_RATIO:
        return f"more than {LARGEST_RATIO:,.0f} times the claim"
    if ratio > 1:
        words = least(ratio)
        if result.claimed_epsilon == 0:
            return f"{words} times the claimed delta"
        return f"{words} times the claim" if float(words) > 1 else "barely above the claim"
    if ratio <= 0:
        return "nothing certified"
    percent = math.floor(100 * ratio)
    return f"{percent} % of the claim" if percent else "under 1 % of the claim"


def detectable_words(result: AuditResult) -> str:
    """Return the smallest epsilon that the audit detects, in words; "" if it is unknown."""
    detectable = result.detectable_epsilon
    if detectable is None:
        return ""
    if detectable == math.inf:
        return "detects no violation of any size"
    return f"detectable: ε = {most(detectable)}"


def bar(result: AuditResult) -> str:
    """Return the bar for a table, without text and stretched to the width of its cell."""
    ratio, refuted = severity(result), result.verdict is Verdict.REFUTED
    length = coordinate(400 * place(ratio))
    kind = "over" if refuted else "under"
    shape = f'<rect class="{kind}" y="2" width="{length}" height="6"/>'
    if ratio * CLAIM > 1:
        start = coordinate(400 - _ARROW)
        shape = f'<path class="{kind}" d="M0 2H{start}V0L400 5L{start} 10V8H0Z"/>'
    parts = [
        '<rect class="track" y="2" width="400" height="6"/>',
        shape,
        f'<rect class="mark" x="{coordinate(400 * CLAIM - 2)}" width="4" height="10"/>',
    ]
    if (seen := _detectable_place(result)) is not None:
        parts.append(f'<path class="reach" d="M{coordinate(400 * seen)} 0v10"/>')
    return (
        '<svg class="bar" viewBox="0 0 400 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(parts)}</svg>"
    )


def scale(result: AuditResult) -> str:
    """Return the bar with ticks and words, for use outside a table."""
    ratio, colour = severity(result), "certified"
    if result.verdict is Verdict.REFUTED:
        colour = "violation"
    name, claimed = "epsilon", result.claimed_epsilon
    if claimed == 0 < result.claimed_delta:
        name, claimed = "delta", result.claimed_delta
    ticks = [(0.0, "0"), (CLAIM, f"claimed {name} = {number(claimed)}")]
    if 0 < claimed < math.inf:
        ticks.append((1.0, number(claimed / CLAIM)))
    series = [
        Series("bars", "event", [(0.0, 0.1)], ends=[(1.0, 0.9)]),
        Series("bars", colour, [(0.0, 0.1)], ends=[(place(ratio), 0.9)]),
        Series("line", "claimed", [(CLAIM, 0.0), (CLAIM, 1.0)], size=2.5),
    ]
    if ratio * CLAIM > 1:
        arrow = [(0.975, 0.0), (1.0, 0.5), (0.975, 1.0)]
        series.append(Series("line", "claimed", arrow, size=2.5))
    if (seen := _detectable_place(result)) is not None:
        series.append(Series("line", "muted", [(seen, 0.0), (seen, 1.0)], size=1.5, dash=(3, 2)))
    panel = Panel(Axis(-0.02, 1.02, ticks=ticks), Axis(0.0, 1.0, ticks=()), series)
    title = f"Certified over claimed: {closeness(result)}"
    return f'<div class="scale">{svg_of(Chart(title, [panel], height=50.0))}</div>'


def _detectable_place(result: AuditResult) -> float | None:
    """Return the position of the detectable epsilon on the bar, or None if there is no position."""
    detectable = result.detectable_epsilon
    if detectable is None or detectable == math.inf or not 0 < result.claimed_epsilon < math.inf:
        return None
    ratio = detectable / result.claimed_epsilon
    return place(ratio) if ratio * CLAIM <= 1 else None
