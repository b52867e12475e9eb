"""One page for a whole run.

The page contains everything: styles, script and figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dpaudit.report.decisions import by_concern, close_words, decisions, next_step
from dpaudit.report.page import fill, kept, typed
from dpaudit.report.sections import by_section, counted, replay_command, sections
from dpaudit.results import (
    STATUSES,
    AuditResult,
    Estimate,
    charts,
    datasets,
    least,
    mutation_score,
    number,
    score_words,
    severity,
    surviving_code,
    svg,
    tables,
    undetected_words,
    words,
)
from dpaudit.store import AUDIT, Record, StoredRun, by_kind, place_of, write_atomic

_RENYI_ORDER = 2.0
NEEDS_WORK = ("refuted", "lost", "no_power", "powerless")
_COMMON = ("refuted", "no_power", "not_refuted")
"""Keys of statuses that the page shows even if no audit has this status."""
PLAIN = 100
"""Number of findings that are plain HTML, the most urgent first; a script unpacks the others."""


def write_report(out: Path, run: StoredRun, records: Sequence[Record]) -> Path:
    """Write ``out/index.html``: one page that needs no other file.

    The details of the first hundred audits are plain HTML. The details of the other audits are
    compressed inside the page. The page's script unpacks them when a reader opens them.

    Other kinds of records write separate pages, such as ``out/ledger.html``, which the first page
    links. If a run has no such records, the corresponding page of an earlier run is removed.

    Parameters
    ----------
    out : Path
        Directory of the run; created if it is missing.
    run : StoredRun
        The run and its settings.
    records : sequence of Record
        The records of the run; may be empty.

    Returns
    -------
    Path
        Path of the written page.

    Raises
    ------
    StoreError
        If the page cannot be written. An existing page stays unchanged.
    """
    out = Path(out)
    for name, own in by_kind(records).items():
        sections()[name].write_pages(out, run, own)
    path = out / AUDIT.page
    write_atomic(path, render(out, run, records))
    return path


def render(out: Path, run: StoredRun, records: Sequence[Record]) -> str:
    """Return the first page of a run as text.

    The arguments are those of :func:`write_report`. The page shows audits in full. Other kinds of
    records have a card on this page and pages of their own.
    """
    results = by_concern(by_kind(records)[AUDIT.name])
    audits: list[dict[str, Any]] = []
    anchors: set[str] = set()
    for place, result in enumerate(results):
        audits.append({**_audit(out, run, result), "place": place})
        while audits[-1]["anchor"] in anchors:  # an id that occurs twice must not break the links
            audits[-1]["anchor"] += "-again"
        anchors.add(audits[-1]["anchor"])
    tally = {key: sum(audit["kind"].key == key for audit in audits) for key in STATUSES}
    return fill(
        "report.html.j2",
        "report.css",
        run=run,
        started=words.moment(run.started),
        audits=audits,
        new=[audit for audit in audits if audit["kind"].key != "known"],
        known=[audit for audit in audits if audit["kind"].key == "known"],
        plain=PLAIN,
        first=decisions(results, [audit["anchor"] for audit in audits]),
        older=sum(audit["older"] is not None for audit in audits),
        kinds=[kind for kind in STATUSES.values() if tally[kind.key] or kind.key in _COMMON],
        tally=tally,
        cards=list(filter(None, (section.card(run, own) for section, own in by_section(records)))),
        subjects=counted(records),
    )


def _audit(out: Path, run: StoredRun, result: AuditResult) -> dict[str, Any]:
    """Return the data about one audit that the template shows."""
    file, chance = place_of(result), number(result.failure_prob)
    pictures = [(c, Markup(svg.svg_of(c))) for c in charts.charts_of(result)]
    about_pair = len(charts.pair_charts(result))
    pair = None if result.pair is None else datasets.datasets(result.pair)
    smallest = _smallest(result)
    is_drawn = charts.differing_user(result) is not None
    return {
        "result": result,
        "kind": result.status,
        "anchor": f"audit-{Path(file).stem}",
        "file": file,
        "replay": replay_command(result, typed(out)),
        "alone": replay_command(result) if "path" in result.origin else "",
        "note": _note(result),
        "certified": result.certified_text(("", ">")).replace("inf", "∞"),
        "bound": result.certified_text(("≥", ">")).replace("inf", "∞"),
        "killed": mutation_score(result.mutants),
        "mutants": [
            {
                "bound": words.beside(m.certified_epsilon, result.claimed_epsilon, sign="≥ "),
                "mutant": m,
            }
            for m in result.mutants
        ],
        "score": score_words(result.mutants),
        "undetected": undetected_words(result.mutants) if result.verdict == "not_refuted" else [],
        "surviving": surviving_code(result.mutants, brief=False)
        if result.verdict == "not_refuted"
        else [],
        "bar": Markup(severity.bar(result)),
        "ratio": severity.severity(result),
        "close": close_words(result),
        "reach": severity.detectable_words(result),
        "next": next_step(result),
        "older": kept(run, "audit").get(result.id),
        "datasets": pair,
        "smallest": smallest,
        # A pair that cannot be drawn is shown as a table, in the place of its picture.
        "shown": None if is_drawn else pair if smallest is None else smallest["datasets"],
        "probability": f"Any of these numbers is wrong with probability at most {chance}."
        if result.failure_prob
        else "Computed, not sampled.",
        "upper": _upper,
        "pair_charts": pictures[:about_pair],
        "charts": pictures[about_pair:],
        "languages": _languages(result),
        "search": result.diagnostics.search and tables.search_table(result.diagnostics.search),
    }


def _smallest(result: AuditResult) -> dict[str, Any] | None:
    """Return the smallest pair for the template, or None."""
    smallest = result.smallest
    if smallest is None:
        return None
    needs = words.beyond(smallest.epsilon.lower, result.claimed_epsilon, ("≥ ", "> "))
    shown = None if smallest.pair is None else datasets.datasets(smallest.pair)
    return {"words": smallest.words, "needs": needs, "of": smallest, "datasets": shown}


def _note(result: AuditResult) -> str | None:
    """Return the meaning of a declared status, and its declared reason."""
    if result.status.key not in ("known", "lost", "open"):
        return None
    reason = result.origin.get("reason", "")
    return result.status.meaning + (f" Declared reason: {reason}" if reason else "")


def _languages(result: AuditResult) -> list[tuple[str, str]]:
    """Return certified bounds for other notions of privacy, each with the name of its notion."""
    curves = result.diagnostics.curves
    if curves is None or curves.certified_mu <= 0:
        return []
    mu = result.claim.get("parameters", {}).get("mu")
    claimed = "" if mu is None else f" (claimed {number(mu)})"
    rows = [(f"mu ≥ {least(curves.certified_mu)}", f"of Gaussian DP{claimed}")]
    for order, bound in zip(curves.order, curves.certified_renyi, strict=True):
        if order == _RENYI_ORDER:
            rows.append(
                (f"Rényi divergence ≥ {least(bound)}", f"of order {number(order)}, in nats")
            )
    return rows


def _upper(estimate: Estimate) -> str | None:
    """Return the upper bound as text, or None if the audit has no upper bound."""
    nothing_known = estimate.upper == math.inf or estimate.upper >= 1.0 > estimate.lower
    return None if nothing_known or estimate.failure_prob == 0 else number(estimate.upper)
