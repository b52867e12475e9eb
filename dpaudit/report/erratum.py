"""The erratum of a paper: only what is wrong, most harmful first, as a page and to be mailed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.ledger import Attempt, Harm, LedgerVerdict, Paper, Role, StatementResult
from dpaudit.report.mathematics import mathml
from dpaudit.report.page import fill
from dpaudit.report.statements import case_line, exact
from dpaudit.results import short, words
from dpaudit.store import Run, write_atomic

_WRONG = (LedgerVerdict.REFUTED, LedgerVerdict.HOLDS_PROOF_BROKEN)
_CASE = 300
_FILES = (".html", ".md")
_KINDS = ("theorem", "lemma", "corollary", "algorithm")


@dataclass(frozen=True)
class Erratum:
    """What is wrong in one paper.

    Parameters
    ----------
    paper : Paper
        Its title and conventions.
    entries : tuple of StatementResult
        Refuted statements and broken proofs, the most harmful first.
    unclear : tuple of StatementResult
        Statements of which some readings fail.
    edges : tuple of (StatementResult, Attempt)
        What fails outside the conventions only.
    loose : tuple of (StatementResult, Attempt)
        Constants that could be better.
    """

    paper: Paper
    entries: tuple[StatementResult, ...]
    unclear: tuple[StatementResult, ...]
    edges: tuple[tuple[StatementResult, Attempt], ...]
    loose: tuple[tuple[StatementResult, Attempt], ...]


def errata(run: Run, rows: Sequence[StatementResult]) -> list[Erratum]:
    """Return an erratum for each paper in which something is wrong."""
    known = {paper.name: paper for paper in run.papers}
    found = []
    for name in dict.fromkeys(row.paper for row in rows):
        own = [row for row in rows if row.paper == name and row.kind != "function"]
        wrong = sorted((row for row in own if row.verdict in _WRONG), key=by_harm)
        unclear = tuple(row for row in own if row.verdict is LedgerVerdict.AMBIGUOUS)
        edges = tuple((row, edge) for row in own for edge in row.edges)
        sharper = tuple(
            (row, a) for row in own for a in row.made_on(Role.SHARPER) if not a.violated
        )
        if wrong or unclear or edges:
            paper = known.get(name, Paper(name, name))
            found.append(Erratum(paper, tuple(wrong), unclear, edges, sharper))
    return found


def by_harm(row: StatementResult) -> tuple[int, bool, int]:
    """Order what is wrong: the most harmful first; of equals refuted ones, then theorems."""
    order = list(Harm)
    if row.verdict not in _WRONG:
        return 0, False, 0
    harm = len(order) if row.harm is None else order.index(row.harm)
    kind = next((at for at, kind in enumerate(_KINDS) if kind in row.kind), len(_KINDS))
    return harm, row.verdict is not LedgerVerdict.REFUTED, kind


def heading(row: StatementResult) -> str:
    """Return where a statement stands in its paper, or its id where nobody says."""
    place = row.stated.place or row.id
    return place[:1].upper() + place[1:] if row.stated.place else place


def better(attempt: Attempt) -> str:
    """Return what a sharper claim is, in words."""
    return ": ".join(dict.fromkeys(filter(None, (attempt.subject, attempt.claim))))


def failures(row: StatementResult) -> list[Attempt]:
    """Return what broke: attempts on the statement, or the steps of its proof."""
    on_it = [attempt for attempt in row.on_statement if attempt.violated]
    return on_it or list(row.broken_steps)


def readings(row: StatementResult) -> list[tuple[str, bool]]:
    """Return how the words of a statement can be read, and whether it holds so."""
    found: dict[str, bool] = {}
    for attempt in row.made_on(Role.READING):
        found[attempt.subject] = found.get(attempt.subject, True) and not attempt.violated
    return list(found.items())


def write_errata(out: Path, run: Run, rows: Sequence[StatementResult]) -> list[str]:
    """Write ``erratum-PAPER.html`` and ``.md`` for each paper; return the names of the pages.

    Those of earlier runs, of which nothing is left, are removed.
    """
    names = []
    found = errata(run, rows)
    written = {f"erratum-{erratum.paper.name}{end}" for erratum in found for end in _FILES}
    for old in out.glob("erratum-*"):
        if old.suffix in _FILES and old.name not in written:
            old.unlink()
    for erratum in found:
        name = f"erratum-{erratum.paper.name}"
        write_atomic(out / f"{name}.md", markdown(erratum))
        page = fill(
            "erratum.html.j2",
            "report.css",
            "ledger.css",
            run=run,
            erratum=erratum,
            failures=failures,
            heading=heading,
            better=better,
            readings=readings,
            mathml=mathml,
            markdown=f"{name}.md",
            started=words.moment(run.started),
        )
        write_atomic(out / f"{name}.html", page)
        names.append(f"{name}.html")
    return names


def markdown(erratum: Erratum) -> str:
    """Return an erratum as Markdown."""
    lines = [f"# Erratum: {erratum.paper.title}", ""]
    for number, row in enumerate(erratum.entries, 1):
        lines += [f"## {number}. {_heading(row)}", "", *_entry(row)]
    if erratum.unclear:
        lines += ["## Appendix: words that can be read in several ways", ""]
        for row in erratum.unclear:
            lines += [f"### {_heading(row)}", "", f"**Printed.** {row.statement}", ""]
            lines += [
                f"- {subject}: {'holds' if holds else 'fails'}" for subject, holds in readings(row)
            ]
            lines += ["", f"**Found.** {row.note}", ""]
    if erratum.edges:
        lines += ["## Appendix: edge cases", ""]
        lines += [
            "What fails only outside the conventions that a reader takes for granted; a "
            "hypothesis would say so.",
            "",
        ]
        lines += [
            f"- {_heading(row)}: needs {edge.subject}. {_broken(edge)}"
            for row, edge in erratum.edges
        ]
        lines.append("")
    if erratum.loose:
        lines += ["## Appendix: constants that could be better", ""]
        lines += [f"- {_heading(row)}: {better(loose)}" for row, loose in erratum.loose]
        lines.append("")
    return "\n".join(lines)


def _heading(row: StatementResult) -> str:
    return f"{heading(row)} ({row.id})" if row.stated.place else row.id


def _entry(row: StatementResult) -> list[str]:
    harm = f", harms {row.harm.value}" if row.harm is not None else ""
    said = "Implied" if row.stated.kind == "derived" else "Printed"
    lines = [f"*{row.verdict.words.capitalize()}{harm}.*", "", f"**{said}.** {row.statement}", ""]
    if row.stated.latex:
        lines += [f"$${row.stated.latex}$$", ""]
    if row.stated.quote:
        lines += [f"> {row.stated.quote}", ""]
    lines += [f"**Found.** {row.note}", ""] if row.note else []
    for attempt in failures(row):
        if attempt.role is Role.STEP:
            lines += [f"**Step that fails.** {attempt.subject}", ""]
        lines += [f"**Counterexample.** {attempt.claim}: {_broken(attempt)}", ""]
        if attempt.counterexample is not None and attempt.counterexample.snippet:
            lines += ["```python", attempt.counterexample.snippet, "```", ""]
        if attempt.mends:
            lines += [f"**What mends it.** {attempt.mends}", ""]
    lines += [f"**Correction.** {row.repair}", ""] if row.repair else []
    lines += [f"**Consequence.** {row.consequence}", ""] if row.consequence else []
    return lines


def _broken(attempt: Attempt) -> str:
    found: Any = attempt.counterexample
    if found is None:
        return ""
    left, right = (attempt.lhs or "the left side"), (attempt.rhs or "the right side")
    where = f", at {short(case_line(found.case), _CASE)}" if found.case else ""
    return f"{left} is {_rounded(found.lhs)}, {right} is {_rounded(found.rhs)}{where}."


def _rounded(value: float) -> str:
    return exact(float(f"{value:.8g}"))
