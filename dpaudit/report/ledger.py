"""The page of the ledger: every statement, what became of it, and how it was attacked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dpaudit.ledger import LedgerVerdict, Power, Shaken, StatementResult, shaken
from dpaudit.report.erratum import by_harm, write_errata
from dpaudit.report.mathematics import mathml
from dpaudit.report.page import fill, kept, typed
from dpaudit.report.pictures import premises_picture, ratio_pictures
from dpaudit.report.statements import is_powerless, method_words, tally
from dpaudit.report.terminal import statement_replay
from dpaudit.results import words
from dpaudit.store import LEDGER, Run, place_of, write_atomic

_ALWAYS = (LedgerVerdict.REFUTED, LedgerVerdict.OPEN, LedgerVerdict.HOLDS)


def write_ledger(out: Path, run: Run, rows: Sequence[StatementResult]) -> Path:
    """Write ``out/ledger.html`` and the errata atomically; without rows, remove an old page."""
    path = Path(out) / LEDGER
    errata = write_errata(Path(out), run, rows)
    if rows:
        write_atomic(path, render(Path(out), run, rows, errata))
    elif path.is_file():
        path.unlink()
    return path


def render(out: Path, run: Run, rows: Sequence[StatementResult], errata: Sequence[str] = ()) -> str:
    """Return the page as text.

    Parameters
    ----------
    out : Path
        Directory of the results, for the commands that replay them.
    run : Run
        What was asked for.
    rows : sequence of StatementResult
        In the order of their papers.
    errata : sequence of str
        Names of the pages of errata beside it.
    """
    order = list(LedgerVerdict)
    older = kept(run, "statement")
    rows_in_order = sorted(rows, key=lambda row: (order.index(row.verdict), by_harm(row)))
    shaky = shaken(rows)
    shown = [{**_row(out, row, shaky[row.id]), "older": older.get(row.id)} for row in rows_in_order]
    anchors: set[str] = set()
    for row in shown:  # an id that occurs in two papers must not break the links
        while row["anchor"] in anchors:
            row["anchor"] += "-again"
        anchors.add(row["anchor"])
    return fill(
        "ledger.html.j2",
        "report.css",
        "ledger.css",
        run=run,
        rows=shown,
        errata=errata,
        mathml=mathml,
        conventions=[paper for paper in run.papers if paper.conventions],
        premises=_premises(rows, {row["result"].id: row["anchor"] for row in shown}),
        mismatches=[row for row in shown if row["mismatch"]],
        started=words.moment(run.started),
        **counts(rows),
    )


def _premises(rows: Sequence[StatementResult], anchors: Mapping[str, str]) -> dict[str, Markup]:
    """Return a graph for each short name of a paper, or of a version of it."""
    by_name: dict[str, list[StatementResult]] = {}
    for row in rows:
        by_name.setdefault(row.id.partition(".")[0], []).append(row)
    drawn = {name: premises_picture(own, anchors) for name, own in by_name.items()}
    return {name: picture for name, picture in drawn.items() if picture}


def counts(rows: Sequence[StatementResult]) -> dict[str, Any]:
    """Return what both pages say of the whole ledger."""
    found = tally(rows)
    return {
        "tally": found,
        "verdicts": [v for v in LedgerVerdict if v in found.verdicts or v in _ALWAYS],
        "papers": list(dict.fromkeys(row.paper for row in rows)),
    }


def _row(out: Path, result: StatementResult, shaky: Sequence[Shaken]) -> dict[str, Any]:
    """Gather what the template shows of one row."""
    tightest = next(
        (
            a
            for a in result.on_statement
            if a.tightest is not None and a.tightest == result.tightest
        ),
        None,
    )
    broken = [attempt for attempt in result.attempts if attempt.violated and attempt.trace]
    pictured = next((a for a in [*broken, tightest] if a is not None and a.trace), None)
    found = result.counterexample
    if tightest is not None and (not tightest.where or (found and tightest.where == found.case)):
        tightest = None  # nothing to tell that does not stand elsewhere
    return {
        "result": result,
        "anchor": re.sub(r"\s+", "-", result.id),
        "method": method_words(result),
        "power": _power(result),
        "tightest": tightest,
        "mismatch": result.mismatch,
        "shaken": shaky,
        "pictures": [] if pictured is None else ratio_pictures(pictured),
        "pictured": "" if pictured is None else pictured.claim,
        "file": place_of(result) if result.origin else "",
        "replay": statement_replay(result, typed(out)),
        "alone": statement_replay(result),
    }


def _power(result: StatementResult) -> str:
    """Return the power where it says something: not of what was refuted or argued."""
    if result.power is not Power.NONE:
        return result.power.value
    return "no mutant" if is_powerless(result) else ""
