"""The erratum of a paper, which lists its mistakes as a page and as Markdown for mail."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

from dpaudit._files import file_stem
from dpaudit.ledger.coverage import papers_of
from dpaudit.ledger.paper import Paper
from dpaudit.ledger.rows import DERIVED, Harm, LedgerVerdict, StatementResult
from dpaudit.ledger.words import as_python, case_line, exact, parts_of, ratio_words
from dpaudit.properties import Attempt, Role
from dpaudit.report import fill
from dpaudit.results import short, words
from dpaudit.store import StoredRun, write_atomic

_WRONG = (LedgerVerdict.REFUTED, LedgerVerdict.HOLDS_PROOF_BROKEN)
_CASE = 300
_FILES = (".html", ".md")
_KINDS = ("theorem", "lemma", "corollary", "algorithm")
_MATHML = "http://www.w3.org/1998/Math/MathML"
_ATTRIBUTES = {
    "accent", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle",
    "fence", "form", "height", "linebreak", "linethickness", "lspace", "mathsize", "mathvariant",
    "maxsize", "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rspace",
    "scriptlevel", "separator", "stretchy", "voffset", "width",
}  # fmt: skip
"""Attributes that a formula keeps: none of them links, styles or runs anything."""


@dataclass(frozen=True)
class Erratum:
    """Mistakes of one paper.

    Parameters
    ----------
    paper : Paper
        The paper, with its title and conventions.
    entries : tuple of StatementResult
        Refuted statements and broken proofs, with the most harmful first.
    unclear : tuple of StatementResult
        Statements for which some readings fail.
    edges : tuple of (StatementResult, Attempt)
        Statements that fail only outside the conventions.
    loose : tuple of (StatementResult, Attempt)
        Constants that could be better.
    misprints : tuple of (StatementResult, str, str)
        Misprints with an evident meaning, as printed and as meant.
    """

    paper: Paper
    entries: tuple[StatementResult, ...]
    unclear: tuple[StatementResult, ...]
    edges: tuple[tuple[StatementResult, Attempt], ...]
    loose: tuple[tuple[StatementResult, Attempt], ...]
    misprints: tuple[tuple[StatementResult, str, str], ...]


def fill_page(template: str, run: StoredRun, **values: Any) -> str:
    """Return a page about statements, or a part of the page, as text."""
    return fill(
        template,
        "report.css",
        "ledger.css",
        assets=Path(__file__).parent / "assets",
        run=run,
        started=words.moment(run.started),
        mathml=mathml,
        ratio=ratio_words,
        exact=exact,
        parts=parts_of,
        python=as_python,
        **values,
    )


def errata(run: StoredRun, rows: Sequence[StatementResult]) -> list[Erratum]:
    """Return an erratum for each paper that has mistakes."""
    known = {paper.name: paper for paper in papers_of(run)}
    found = []
    for name in dict.fromkeys(row.paper for row in rows):
        own = [row for row in rows if row.paper == name and row.kind not in ("function", DERIVED)]
        wrong = sorted((row for row in own if row.verdict in _WRONG), key=by_harm)
        unclear = tuple(row for row in own if row.verdict is LedgerVerdict.AMBIGUOUS)
        edges = tuple((row, edge) for row in own for edge in row.edges)
        sharper = tuple(
            (row, a) for row in own for a in row.made_on(Role.SHARPER) if not a.violated
        )
        misprints = tuple((row, *misprint) for row in own for misprint in row.misprints)
        if wrong or unclear or edges or misprints:
            paper = known.get(name, Paper(name, name))
            found.append(Erratum(paper, tuple(wrong), unclear, edges, sharper, misprints))
    return found


def by_harm(row: StatementResult) -> tuple[int, bool, int]:
    """Return a sort key: by harm, then refuted before broken, then theorems before others."""
    order = list(Harm)
    if row.verdict not in _WRONG:
        return 0, False, 0
    harm = len(order) if row.harm is None else order.index(row.harm)
    kind = next((at for at, kind in enumerate(_KINDS) if kind in row.kind), len(_KINDS))
    return harm, row.verdict is not LedgerVerdict.REFUTED, kind


def heading(row: StatementResult) -> str:
    """Return the place of a statement in its paper, or its id if no place is given."""
    place = row.stated.place or row.id
    return place[:1].upper() + place[1:] if row.stated.place else place


def better(attempt: Attempt) -> str:
    """Return a description of a sharper claim."""
    return ": ".join(dict.fromkeys(filter(None, (attempt.subject, attempt.claim))))


def failures(row: StatementResult) -> list[Attempt]:
    """Return the attempts with violations: on the statement, or on steps of its proof."""
    on_it = [attempt for attempt in row.on_statement if attempt.violated]
    return on_it or list(row.broken_steps)


def readings(row: StatementResult) -> list[tuple[str, bool]]:
    """Return the readings of a statement, and whether each reading holds."""
    found: dict[str, bool] = {}
    for attempt in row.made_on(Role.READING):
        found[attempt.subject] = found.get(attempt.subject, True) and not attempt.violated
    return list(found.items())


def write_errata(out: Path, run: StoredRun, rows: Sequence[StatementResult]) -> list[str]:
    """Write ``erratum-PAPER.html`` and ``.md`` for each paper, and return the names of the pages.

    Errata of earlier runs are removed if they are no longer needed.
    """
    names = []
    found = errata(run, rows)
    stems = {erratum.paper.name: file_stem(f"erratum-{erratum.paper.name}") for erratum in found}
    written = {f"{stem}{end}" for stem in stems.values() for end in _FILES}
    for old in out.glob("erratum-*"):
        if old.suffix in _FILES and old.name not in written:
            old.unlink()
    for erratum in found:
        name = stems[erratum.paper.name]
        write_atomic(out / f"{name}.md", markdown(erratum))
        page = fill_page(
            "erratum.html.j2",
            run,
            erratum=erratum,
            failures=failures,
            heading=heading,
            better=better,
            readings=readings,
            markdown=f"{name}.md",
        )
        write_atomic(out / f"{name}.html", page)
        names.append(f"{name}.html")
    return names


def markdown(erratum: Erratum) -> str:
    """Return an erratum as Markdown in which text of results is never interpreted as markup."""
    lines = [f"# Erratum: {_plain(erratum.paper.title)}", ""]
    for number, row in enumerate(erratum.entries, 1):
        lines += [f"## {number}. {_heading(row)}", "", *_entry(row)]
    if erratum.unclear:
        lines += ["## Appendix: words that can be read in several ways", ""]
        for row in erratum.unclear:
            lines += [f"### {_heading(row)}", "", f"**Printed.** {_plain(row.statement)}", ""]
            lines += [
                f"- {_plain(subject)}: {'holds' if holds else 'fails'}"
                for subject, holds in readings(row)
            ]
            lines += ["", f"**Found.** {_plain(row.note)}", ""]
    if erratum.edges:
        lines += ["## Appendix: edge cases", ""]
        lines += [
            "These statements fail only outside the conventions that a reader takes for granted. "
            "A hypothesis could state the convention.",
            "",
        ]
        lines += [
            f"- {_heading(row)}: needs {_plain(edge.subject)}. {_plain(_broken(edge))}"
            for row, edge in erratum.edges
        ]
        lines.append("")
    if erratum.misprints:
        lines += ["## Appendix: misprints", ""]
        lines += [
            f"- {_heading(row)}: {_plain(printed)}, read as {_plain(meant)}"
            for row, printed, meant in erratum.misprints
        ]
        lines.append("")
    if erratum.loose:
        lines += ["## Appendix: constants that could be better", ""]
        lines += [f"- {_heading(row)}: {_plain(better(loose))}" for row, loose in erratum.loose]
        lines.append("")
    return "\n".join(lines)


_MARKUP = re.compile(
    r"""\\(?=[!-/:-@[-`{-~])  # an escape
    | [`~$@]                    # code, strikethrough, mathematics, names of users
    | (?<![A-Za-z0-9])_ | \*(?=\S)  # emphasis
    | <(?=[A-Za-z/!?]) | &(?=\#?\w+;)  # HTML
    | \](?=[(:\[]) | (?<=\[)\^ | :(?=//) | (?<=www)\.  # links and footnotes
    | ^[#>+=-] | (?<=^\d)[.)]    # headings, quotes and lists
    """,
    re.VERBOSE,
)


def _plain(text: str) -> str:
    """Return one line of Markdown that displays a text unchanged."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))


def _fenced(text: str, kind: str) -> list[str]:
    """Return a block of code, with a fence that is longer than any fence in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return [f"{fence}{kind}", text, fence, ""]


def _heading(row: StatementResult) -> str:
    return _plain(f"{heading(row)} ({row.id})" if row.stated.place else row.id)


def _entry(row: StatementResult) -> list[str]:
    harm = f", harms {row.harm.value}" if row.harm is not None else ""
    words = f"*{row.verdict.words.capitalize()}{harm}.*"
    lines = [words, "", f"**Printed.** {_plain(row.statement)}", ""]
    if row.stated.latex:
        lines += _fenced(row.stated.latex, "math")
    if row.stated.quote:
        lines += [f"> {_plain(row.stated.quote)}", ""]
    lines += [f"**Found.** {_plain(row.note)}", ""] if row.note else []
    for attempt in failures(row):
        if attempt.role is Role.STEP:
            lines += [f"**Step that fails.** {_plain(attempt.subject)}", ""]
        lines += [f"**Counterexample.** {_plain(f'{attempt.claim}: {_broken(attempt)}')}", ""]
        if attempt.counterexample is not None and attempt.counterexample.snippet:
            lines += _fenced(attempt.counterexample.snippet, "python")
        if attempt.fix:
            lines += [f"**Repair of the proof.** {_plain(attempt.fix)}", ""]
    lines += [f"**Correction.** {_plain(row.repair)}", ""] if row.repair else []
    lines += [f"**Consequence.** {_plain(row.consequence)}", ""] if row.consequence else []
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


# --- mathematics: LaTeX as MathML, which browsers display without a script or a font -------------


@functools.lru_cache(maxsize=1024)
def mathml(latex: str) -> Markup:
    """Return a formula as displayed MathML, or as its source if the conversion fails.

    Parameters
    ----------
    latex : str
        The formula, without dollar signs.
    """
    try:
        from latex2mathml.converter import convert

        # The converter would turn angle brackets in a formula into elements.
        found = convert(latex.replace("<", r"\lt ").replace(">", r"\gt "), display="block")
        return Markup(_without_links(found))
    except Exception:  # the converter is an extra package and may raise any exception
        return Markup("<code>") + escape(latex) + Markup("</code>")


def _without_links(found: str) -> str:
    """Return MathML without the attributes that come from commands such as href and style."""
    root = ElementTree.fromstring(found)
    for element in root.iter():
        if not element.tag.startswith(f"{{{_MATHML}}}m"):
            raise ValueError(f"elements must be elements of MathML, got {element.tag}")
        element.tag = element.tag.removeprefix(f"{{{_MATHML}}}")
        for name in set(element.attrib) - _ATTRIBUTES:
            del element.attrib[name]
    root.set("xmlns", _MATHML)
    return ElementTree.tostring(root, encoding="unicode")
