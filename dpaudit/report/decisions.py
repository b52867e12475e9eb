"""The head of the report: which claims are violated, by how much, and what to do next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dpaudit.results import (
    STATUSES,
    AuditResult,
    datasets,
    least,
    number,
    severity,
    short,
    words,
)

CARDS = 6
"""Number of audits with a card; other audits get a line and their row of the table."""

LINES = 24
_REASON = 120

_IN_FULL = ("refuted", "history", "lost", "no_power")
_IN_A_LINE = ("powerless", "open")


@dataclass(frozen=True)
class Card:
    """The card of an audit that needs attention.

    Parameters
    ----------
    result : AuditResult
        The result.
    anchor : str
        Anchor of the full text of the audit on the page.
    sentence : str
        The claimed and the certified number, in one sentence.
    scale : Markup
        Bar that shows the certified number relative to the claim.
    differs : str
        The smallest pair, or what the differing user holds. Empty if no pair is stored.
    next : str
        What to do next.
    """

    result: AuditResult
    anchor: str
    sentence: str
    scale: Markup
    differs: str
    next: str


@dataclass(frozen=True)
class Decisions:
    """The head of the page.

    Parameters
    ----------
    tone : str
        Key of the most urgent status.
    sentence, more : str
        Summary of the run, and remarks on the run.
    cards : tuple of Card
        The most urgent audits, in order of urgency.
    lines : tuple of (AuditResult, str, str)
        Further audits: each result with its anchor and the distance of its number from the claim.
    left_out : int
        Number of audits that are not listed for lack of space.
    """

    tone: str
    sentence: str
    more: str
    cards: tuple[Card, ...]
    lines: tuple[tuple[AuditResult, str, str], ...]
    left_out: int


def by_concern(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return results sorted by urgency, with the most urgent first."""
    order = list(STATUSES)
    return sorted(results, key=lambda r: (order.index(r.status.key), -severity.severity(r)))


def decisions(results: Sequence[AuditResult], anchors: Sequence[str]) -> Decisions:
    """Return the head of the page for `results`, which :func:`by_concern` has sorted."""
    placed = list(zip(results, anchors, strict=True))
    full = [(result, anchor) for result, anchor in placed if result.status.key in _IN_FULL]
    brief = [(result, anchor) for result, anchor in placed if result.status.key in _IN_A_LINE]
    lines = full[CARDS:] + brief
    tone, sentence, more = _whole(results)
    return Decisions(
        tone,
        sentence,
        more,
        tuple(_card(result, anchor) for result, anchor in full[:CARDS]),
        tuple((r, anchor, close_words(r)) for r, anchor in lines[:LINES]),
        max(len(lines) - LINES, 0),
    )


def _card(result: AuditResult, anchor: str) -> Card:
    differs = "" if result.pair is None else datasets.who_differs(result.pair)
    if result.smallest is not None:
        differs = result.smallest.words
    scale = Markup(severity.scale(result))
    return Card(result, anchor, how_badly(result), scale, differs, next_step(result))


def close_words(result: AuditResult) -> str:
    """Return how far the number is from the claim; for a declared verdict, add its reason."""
    reason = str(result.origin.get("reason", "")) if result.expected is not None else ""
    close = severity.closeness(result)
    return f"{close}: {short(reason, _REASON)}" if reason else close


def _whole(results: Sequence[AuditResult]) -> tuple[str, str, str]:
    """Return the tone, the summary and the remarks of a run."""
    found = Counter(result.status.key for result in results)
    powerless = found["no_power"] + found["powerless"]
    refuted, rest = found["refuted"] + found["history"], found["not_refuted"]
    known = found["open"] + (found["known"] if refuted else 0)  # else, the sentence counts them
    more = []
    if refuted and (chance := max(result.failure_prob for result in results)):
        more.append(f"Each certified number is wrong with probability at most {number(chance)}.")
    if found["lost"]:
        more.append(f"{_audits(found['lost'])} of a known violation did not find it.")
    if powerless:
        more.append(f"{_audits(powerless)} had no power and say{'s' * (powerless == 1)} nothing.")
    if known:
        more.append(f"{_audits(known)} cover{'s' * (known == 1)} a known violation.")
    if rest:
        more.append(
            f"{_audits(rest)} found no violation, although planted mistakes were found; this does "
            "not prove privacy."
        )
    if refuted:
        claims = "1 claim" if len(results) == 1 else f"{len(results)} claims"
        sentence = f"{refuted} of {claims} {'is' if refuted == 1 else 'are'} refuted."
        worst = next((result for result in results if result.status.key == "refuted"), None)
        them = "it" if refuted == 1 else "them"
        together = f"All runs of the history together refute {them}."
        words = together if worst is None else _worst(worst)
        return "refuted", f"{sentence} {words}", " ".join(more)
    sentence = "No claim is refuted"
    if found["known"]:
        sentence = f"No new violation. {_known(found['known'])} reproduced"
    tone = next((key for key in STATUSES if found[key]), "not_refuted")
    if not results:
        return tone, "Nothing was audited.", ""
    if not rest and powerless == len(results):
        sentence = "This run says nothing about privacy"
    return tone, f"{sentence}.", " ".join(more)


def _worst(result: AuditResult) -> str:
    bound = words.beside(result.certified_epsilon, result.claimed_epsilon)
    if result.certified_epsilon == math.inf:
        return "The worst of them holds for no finite epsilon."
    if bound.startswith(">"):
        return (
            f"The worst of them needs more than its claimed epsilon of {bound.removeprefix('> ')}."
        )
    return (
        f"The worst of them claims epsilon = {number(result.claimed_epsilon)} and needs at least "
        f"{bound}."
    )


def _known(count: int) -> str:
    return "1 known violation was" if count == 1 else f"{count} known violations were"


def _audits(count: int) -> str:
    return "1 audit" if count == 1 else f"{count} audits"


def how_badly(result: AuditResult) -> str:
    """Return claimed and certified number in one sentence."""
    bound = words.beside(result.certified_epsilon, result.claimed_epsilon, sign="≥ ")
    words_of_both = (
        f"ε {bound} is certified and ε = {number(result.claimed_epsilon)} is claimed, at "
        f"δ = {number(result.claimed_delta)}"
    )
    if result.claimed_epsilon > 0:
        return f"{words_of_both}: {severity.closeness(result)}."
    delta = least(result.certified_delta)
    return f"{words_of_both}; δ ≥ {delta} at ε = 0."


def next_step(result: AuditResult) -> str:
    """Return advice on what to do about an audit, or ""."""
    if result.status.key == "lost":
        return "Remove the mark if the mechanism was fixed. Otherwise, fix the audit."
    return result.advice
