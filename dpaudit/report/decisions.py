"""What the page says first, to whoever decides: what is violated, how badly, what to do next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dpaudit.results import (
    STATUSES,
    AuditResult,
    Verdict,
    datasets,
    least,
    number,
    severity,
    short,
    words,
)

CARDS = 6
"""Audits that are told in full; the others are named in a line each, and stand in the table."""

LINES = 24
_REASON = 120

_IN_FULL = ("refuted", "lost", "no_power")
_IN_A_LINE = ("powerless", "open", "known")


@dataclass(frozen=True)
class Card:
    """One audit that somebody has to look at.

    Parameters
    ----------
    result : AuditResult
        The certificate of the mechanism.
    anchor : str
        Where the page tells all of it.
    sentence : str
        How badly, in one sentence.
    scale : Markup
        Certified over claimed, as a bar.
    differs : str
        Where the two datasets differ; empty where none are stored.
    next : str
        What to do.
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
        Key of the worst status.
    sentence, more : str
        What the whole run says, and what it does not say.
    cards : tuple of Card
        What to look at first, the worst first.
    lines : tuple of (AuditResult, str, str)
        What needs less than a card, or did not find room: the audit, its anchor, and how badly.
    left_out : int
        How many did not find room in the lines either.
    """

    tone: str
    sentence: str
    more: str
    cards: tuple[Card, ...]
    lines: tuple[tuple[AuditResult, str, str], ...]
    left_out: int


def by_concern(results: Sequence[AuditResult]) -> list[AuditResult]:
    """Return results in the order in which one should look at them, the worst first."""
    order = list(STATUSES)
    return sorted(results, key=lambda r: (order.index(r.status.key), -severity.severity(r)))


def decisions(results: Sequence[AuditResult], anchors: Sequence[str]) -> Decisions:
    """Return what the page says first; `results` as :func:`by_concern` orders them."""
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
        tuple((r, anchor, _close(r)) for r, anchor in lines[:LINES]),
        max(len(lines) - LINES, 0),
    )


def _card(result: AuditResult, anchor: str) -> Card:
    differs = "" if result.pair is None else datasets.who_differs(result.pair)
    scale = Markup(severity.scale(result))
    return Card(result, anchor, how_badly(result), scale, differs, next_step(result))


def _close(result: AuditResult) -> str:
    """Say how badly, and of a known violation why it is one."""
    reason = str(result.origin.get("reason", "")) if result.expected is not None else ""
    close = severity.closeness(result)
    return f"{close}: {short(reason, _REASON)}" if reason else close


def _whole(results: Sequence[AuditResult]) -> tuple[str, str, str]:
    """Return tone, sentence and caveat of a run."""
    found = Counter(result.status.key for result in results)
    silent = found["no_power"] + found["powerless"]
    known, rest = found["known"] + found["open"], found["not_refuted"]
    more = []
    if found["lost"]:
        more.append(f"{_audits(found['lost'])} of a known violation did not find it again.")
    if silent:
        more.append(f"{_audits(silent)} had no power: their silence means nothing.")
    if known:
        more.append(f"{_audits(known)} demonstrate{'s' * (known == 1)} a known violation.")
    if rest:
        more.append(f"{_audits(rest)} found nothing and killed mutants, which proves no privacy.")
    if count := found["refuted"]:
        claims = "1 claim" if len(results) == 1 else f"{len(results)} claims"
        sentence = f"{count} of {claims} {'is' if count == 1 else 'are'} refuted."
        worst = next(result for result in results if result.status.key == "refuted")
        return "refuted", f"{sentence} {_worst(worst)}", " ".join(more)
    sentence = "No claim is refuted" + ("" if not found["known"] else ", but for known violations")
    tone = next((key for key in STATUSES if found[key]), "not_refuted")
    if not results:
        return tone, "Nothing was audited.", ""
    if not rest and silent == len(results):
        sentence = "This run says nothing about privacy"
    return tone, f"{sentence}.", " ".join(more)


def _worst(result: AuditResult) -> str:
    bound = words.beside(result.certified_epsilon, result.claimed_epsilon)
    if result.certified_epsilon == math.inf:
        return "The worst holds for no epsilon at its delta."
    if bound.startswith(">"):
        return f"The worst needs more than its claimed epsilon of {bound.removeprefix('> ')}."
    return (
        f"The worst needs epsilon = {bound} at least, where {number(result.claimed_epsilon)} "
        "is claimed."
    )


def _audits(count: int) -> str:
    return "1 audit" if count == 1 else f"{count} audits"


def how_badly(result: AuditResult) -> str:
    """Say in one sentence how far the certified number lies from the claim."""
    bound = words.beside(result.certified_epsilon, result.claimed_epsilon, sign="≥ ")
    said = (
        f"ε {bound} is certified where {number(result.claimed_epsilon)} is claimed, at "
        f"δ = {number(result.claimed_delta)}"
    )
    if result.claimed_epsilon > 0:
        return f"{said}: {severity.closeness(result)}."
    delta = least(result.certified_delta)
    return f"{said}; δ ≥ {delta} at ε = 0."


def next_step(result: AuditResult) -> str:
    """Say what to do about an audit: its own advice, else what its status asks for."""
    if result.advice:
        text = result.advice[:1].upper() + result.advice[1:]
        return text if text.endswith((".", "!", "?")) else f"{text}."
    key = result.status.key
    if key == "lost":
        return "If the mechanism was mended, take the mark away; else the audit itself is broken."
    if result.verdict is Verdict.NO_POWER:
        return "More draws, a pair from a search, or more items per user, until a mutant is killed."
    if result.certified_epsilon == math.inf:
        return (
            "Look for a value that is returned without noise: outputs of one dataset cannot come "
            "from the other."
        )
    return (
        "Mend the noise where the event points, or claim at least "
        f"ε = {least(result.certified_epsilon)} at this δ: a lower bound, the true one may be "
        "larger."
    )
