"""Write a page for each paper of the reference run, with counts, mistakes and premises.

The pages are written from a stored run when the site is built, so they agree with the run. The
run's own pages (every statement, and the errata) are copied next to the site and linked
here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from html import escape
from pathlib import Path

from dpaudit.ledger import LedgerVerdict, StatementResult
from dpaudit.ledger.erratum import by_harm, heading
from dpaudit.ledger.section import premises_picture
from dpaudit.store import load_record

RUN = "../reference-run"
"""Path of the pages of the run, from the pages of papers."""
_COMMON = (LedgerVerdict.HOLDS, LedgerVerdict.HOLDS_PROOF_BROKEN, LedgerVerdict.REFUTED)


def write(root: Path, out: Path) -> None:
    """Write `out/index.md` and a page for each paper; remove old pages."""
    stored = stored_run(root)
    run = json.loads((stored / "results.json").read_text(encoding="utf-8"))["run"]
    rows = [_row(path) for path in sorted((stored / "statements").glob("*.json"))]
    rows = [row for row in rows if row.kind != "function"]
    papers = sorted(run["facts"]["statement"], key=lambda paper: paper["title"])
    pages = {"index.md": _index(papers, rows)}
    for paper in papers:
        own = [row for row in rows if row.paper == paper["name"]]
        has_sheet = (stored / f"erratum-{paper['name']}.html").exists()
        pages[f"{paper['name']}.md"] = _page(paper, own, has_sheet=has_sheet)
    out.mkdir(exist_ok=True)
    for old in out.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        file = out / name
        # An unchanged page keeps its time, so that Sphinx does not read the page again.
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def stored_run(root: Path) -> Path:
    """Return a directory with the run of `make reference`, or else of `make audit`."""
    for stored in (root / "reports" / "reference", root / "reports"):
        if (stored / "statements").is_dir():
            return stored
    raise FileNotFoundError(
        "The site shows a stored run, but none was found. Make one with `make audit`."
    )


def _row(path: Path) -> StatementResult:
    record, problems = load_record(path)
    if problems or not isinstance(record, StatementResult):
        raise ValueError(f"{path}: {problems or 'no row of the ledger'}")
    return record


def _link(target: str, words: str) -> str:
    """Return a link to a page of the run, which Sphinx does not know."""
    return f'<a href="{escape(RUN)}/{escape(target)}">{escape(words)}</a>'


def _name(title: str) -> tuple[str, str]:
    """Split a title into the name of the paper and the rest."""
    name, parenthesis, rest = title.partition(" (")
    return name, parenthesis.strip() + rest


def _plain(words: str) -> str:
    """Return words in a form that MyST does not change."""
    return re.sub(r"([\\`*_{}\[\]<>$|#~])", r"\\\1", " ".join(words.split()))


def _index(papers: Iterable[dict[str, str]], rows: Iterable[StatementResult]) -> str:
    lines = [
        "# Papers",
        "",
        "Every numbered statement of these papers has an executable verdict. A refuted statement",
        "comes with a counterexample that can be pasted, and with a corrected statement that was",
        "attacked too.",
        "",
        "| paper | statements | hold | proof broken | refuted | other |",
        "|---|---|---|---|---|---|",
    ]
    names = []
    for paper in papers:
        names.append(paper["name"])
        found = Counter(row.verdict for row in rows if row.paper == paper["name"])
        everything = found.total()
        shown = [found.pop(verdict, 0) for verdict in _COMMON]
        name, rest = _name(paper["title"])
        authors = rest.partition("):")[0].removesuffix(")") + ")" * bool(rest)
        cells = [f"[{_plain(name)}]({paper['name']}.md) {_plain(authors)}", everything, *shown]
        lines.append("| " + " | ".join(map(str, [*cells, found.total()])) + " |")
    lines += [
        "",
        f"The pages of the run: {_link('index.html', 'all audits')}, "
        f"{_link('ledger.html', 'all statements')}. How a statement gets its verdict: "
        "[a paper of your own in the ledger](../guides/ledger.md).",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *names,
        "```",
        "",
    ]
    return "\n".join(lines)


def _page(paper: dict[str, str], rows: list[StatementResult], *, has_sheet: bool) -> str:
    name, rest = _name(paper["title"])
    found = Counter(row.verdict for row in rows)
    order = [verdict for verdict in LedgerVerdict if found[verdict]]
    lines = [f"# {_plain(name)}", ""]
    if rest:
        lines += [_plain(rest.strip()), ""]
    lines += [f"The paper has {len(rows)} statements:", "", "| verdict | statements | meaning |"]
    lines += ["|---|---|---|"]
    lines += [f"| {verdict.words} | {found[verdict]} | {verdict.meaning} |" for verdict in order]
    sheet = _link(f"erratum-{paper['name']}.html", "the erratum")
    lines += [
        "",
        (f"Mistakes, with counterexamples and corrections: {sheet}. " * has_sheet)
        + f"Every statement, and the attempts to refute it: {_link('ledger.html', 'the ledger')}.",
        "",
    ]
    wrong = [r for r in rows if r.verdict in (LedgerVerdict.REFUTED, _COMMON[1])]
    if wrong:
        lines += ["## Mistakes", "", "| statement | verdict | harms |", "|---|---|---|"]
        lines += [
            f"| {_link('ledger.html#' + row.id, heading(row))} | {row.verdict.words} "
            f"| {'' if row.harm is None else row.harm.value} |"
            for row in sorted(wrong, key=by_harm)
        ]
        lines += [""]
    graphs = _graphs(rows)
    if graphs:
        lines += [
            "## Premises of the statements",
            "",
            "Each statement is to the right of its premises and links to its row.",
            "Colours show the verdicts: red is refuted, blue has a broken proof.",
            "",
            *graphs,
        ]
    return "\n".join(lines)


def _graphs(rows: list[StatementResult]) -> list[str]:
    """Return a graph for each short name of the paper, or of a version of it."""
    lines = []
    for short in dict.fromkeys(row.id.partition(".")[0] for row in rows):
        own = [row for row in rows if row.id.partition(".")[0] == short]
        picture = str(premises_picture(own, {row.id: row.id for row in own}))
        if not picture:
            continue
        picture = picture.replace('href="#', f'href="{RUN}/ledger.html#')
        picture = picture.replace(
            '"Premises of the statements"', f'"Premises of the statements: {short}"', 1
        )
        box = f'<div class="premises" role="region" tabindex="0" aria-label="Graph of {short}">'
        lines += ["```{raw} html", f"{box}{picture}</div>", "```", ""]
    return lines
