"""A badge for a README, as SVG: the most urgent status of a run, with its number of audits."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import escape

from dpaudit.results import AuditResult, worst
from dpaudit.store import Record, StoredRun

_LABEL = "dpaudit"
_RED, _YELLOW, _GREEN, _GREY = "#b3261e", "#7a5c00", "#1e6e3a", "#555555"
_WORDS = {
    "refuted": ("refuted", _RED),
    "history": ("refuted by history", _RED),
    "lost": ("not found again", _RED),
    "no_power": ("without power", _RED),
    "powerless": ("without power", _YELLOW),
    "open": ("open", _YELLOW),
    "not_refuted": ("not refuted", _GREEN),
    "known": ("known", _GREY),
}
_BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" \
aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{width}" height="20" rx="3" fill="#333333"/>
<path d="M{left} 0h{inner}a3 3 0 0 1 3 3v14a3 3 0 0 1 -3 3h-{inner}z" fill="{colour}"/>
<g fill="#ffffff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
<text x="{label_x}" y="14" textLength="{label_length}">{label}</text>
<text x="{message_x}" y="14" textLength="{message_length}">{message}</text>
</g>
</svg>
"""


def badge(run: StoredRun, records: Sequence[Record]) -> str:
    """Return the badge of a run as SVG.

    A known violation that was found again counts only if no other status does. A run that failed or
    was interrupted says so.

    Parameters
    ----------
    run : StoredRun
        The run.
    records : sequence of Record
        The records of the run. Only audits are counted, but a statement that is not as declared
        makes the run fail.
    """
    message, colour = _message(run, records)
    left, right = (round(6.2 * len(text)) + 10 for text in (_LABEL, message))
    return _BADGE.format(
        label=_LABEL,
        message=escape(message),
        colour=colour,
        width=left + right,
        left=left,
        inner=right - 3,
        label_x=left / 2,
        label_length=left - 10,
        message_x=left + right / 2,
        message_length=right - 10,
    )


def _message(run: StoredRun, records: Sequence[Record]) -> tuple[str, str]:
    statuses = [record.status for record in records if isinstance(record, AuditResult)]
    first = worst(statuses) if statuses else None
    words, colour = _WORDS[first.key] if first else ("no audits", _GREY)
    if colour != _RED:
        # An audit that makes the run fail is red by itself, unlike a statement.
        if run.problems or any(record.mismatch for record in records):
            return "failed", _RED
        if not run.complete:
            return "interrupted", _RED
    number = sum(_WORDS[status.key][0] == words for status in statuses)
    return f"{number} {words}" if first else words, colour
