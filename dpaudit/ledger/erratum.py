"""The erratum of a paper: the text that a person wrote, or else a draft from the rows.

An erratum is Markdown. It is also written as a page and, if dpaudit[pdf] is installed, as PDF.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
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

_CASE = 300
_PAGES = (".html", ".md", ".pdf", ".py")
_KINDS = ("theorem", "lemma", "corollary", "algorithm")
_READ = "commonmark+tex_math_dollars+pipe_tables"
_LOOK = """\
#set page(paper: "a4", margin: (x: 2.2cm, y: 1.9cm), numbering: "1")
#set text(size: 10pt)
#set par(justify: true, leading: 0.58em)
#show heading.where(level: 1): set text(size: 15pt)
#show heading.where(level: 2): set text(size: 12pt)
#show heading.where(level: 3): set text(size: 10.5pt)
#let horizontalrule = line(length: 100%)
"""
_FORMULA = re.compile(r"(?<!\$)\${1,2}(?![\s$])(?P<latex>[^$\n]+?)(?<!\s)\${1,2}(?![\d$])|`[^`]*`")
_MATHML = "http://www.w3.org/1998/Math/MathML"
_ATTRIBUTES = {
    "accent", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle",
    "fence", "form", "height", "linebreak", "linethickness", "lspace", "mathsize", "mathvariant",
    "maxsize", "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rspace",
    "scriptlevel", "separator", "stretchy", "voffset", "width",
}  # fmt: skip
"""Attributes that a formula keeps: none of them links, styles or runs anything."""


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
        with_formulas=with_formulas,
        ratio=ratio_words,
        exact=exact,
        parts=parts_of,
        python=as_python,
        **values,
    )


def by_harm(row: StatementResult) -> tuple[int, bool, int]:
    """Return a sort key: by harm, then refuted before broken, then theorems before others."""
    order = list(Harm)
    if not row.is_wrong:
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
    """Write the erratum of each paper that has mistakes, and return the names of the pages.

    The files are ``erratum-PAPER.md``, ``.html``, ``.pdf`` and, for the programs, ``.py``. Files of
    earlier runs are removed if they are no longer needed.
    """
    known = {paper.name: paper for paper in papers_of(run)}
    files: dict[str, str | bytes] = {}
    for name in dict.fromkeys(row.paper for row in rows):
        own = [row for row in rows if row.paper == name and row.kind not in ("function", DERIVED)]
        paper = known.get(name, Paper(name, name))
        written = paper.erratum
        text = written.text or draft(paper, own)
        if not (text and own):
            continue
        stem = file_stem(f"erratum-{name}")
        files[f"{stem}.md"] = text
        printed = pdf(text) if written.text else None
        if printed is not None:
            files[f"{stem}.pdf"] = printed
        if written.programs:
            files[f"{stem}.py"] = written.programs
        files[f"{stem}.html"] = fill_page(
            "erratum.html.j2",
            run,
            paper=paper,
            body=html(written.linked("ledger.html") if written.text else text),
            stem=stem,
            others=[end for end in _PAGES[1:] if f"{stem}{end}" in files],
        )
    for old in out.glob("erratum-*"):
        if old.suffix in _PAGES and old.name not in files:
            old.unlink()
    for file, content in files.items():
        write_atomic(out / file, content)
    return [file for file in files if file.endswith(".html")]


# --- a draft from the rows ------------------------------------------------------------------


def draft(paper: Paper, rows: Sequence[StatementResult]) -> str:
    """Return Markdown that lists the mistakes of a paper, or "" if there are none.

    Text of results is never interpreted as markup. The most harmful mistakes come first.
    """
    wrong = sorted((row for row in rows if row.is_wrong), key=by_harm)
    entries = [
        line
        for number, row in enumerate(wrong, 1)
        for line in (f"## {number}. {_heading(row)}", "", *_entry(row))
    ]
    parts = [entries, *_appendices(rows)]
    if not any(parts[:-1]):  # better constants alone are no mistakes
        return ""
    return "\n".join([f"# Erratum: {_plain(paper.title)}", "", *itertools.chain(*parts)])


def _appendices(rows: Sequence[StatementResult]) -> Iterator[list[str]]:
    """Yield the lines of each appendix, without lines if an appendix is empty."""
    unclear = [row for row in rows if row.verdict is LedgerVerdict.AMBIGUOUS]
    lines = ["## Appendix: words that can be read in several ways", ""] if unclear else []
    for row in unclear:
        lines += [f"### {_heading(row)}", "", f"**Printed.** {_plain(row.statement)}", ""]
        lines += [
            f"- {_plain(subject)}: {'holds' if holds else 'fails'}"
            for subject, holds in readings(row)
        ]
        lines += ["", f"**Found.** {_plain(row.note)}"] if row.note else []
        lines += [""]
        for attempt in row.made_on(Role.READING):
            lines += _counterexample(attempt) if attempt.violated else []
    yield lines
    edges = [
        f"- {_heading(row)}: needs {_plain(edge.subject)}. {_plain(_broken(edge))}"
        for row in rows
        for edge in row.edges
    ]
    misprints = [
        f"- {_heading(row)}: {_plain(printed)}, read as {_plain(meant)}"
        for row in rows
        for printed, meant in row.misprints
    ]
    sharper = [
        f"- {_heading(row)}: {_plain(better(attempt))}"
        for row in rows
        for attempt in row.made_on(Role.SHARPER)
        if not attempt.violated
    ]
    outside = "These statements fail only outside the conventions that a reader takes for granted. "
    outside += "A hypothesis could state the convention."
    yield ["## Appendix: edge cases", "", outside, "", *edges, ""] if edges else []
    yield ["## Appendix: misprints", "", *misprints, ""] if misprints else []
    title = "## Appendix: constants that could be better"
    yield [title, "", *sharper, ""] if sharper else []


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
        lines += _counterexample(attempt)
        if attempt.fix:
            lines += [f"**Repair of the proof.** {_plain(attempt.fix)}", ""]
    lines += [f"**Correction.** {_plain(row.repair)}", ""] if row.repair else []
    lines += [f"**Consequence.** {_plain(row.consequence)}", ""] if row.consequence else []
    return lines


def _counterexample(attempt: Attempt) -> list[str]:
    lines = [f"**Counterexample.** {_plain(f'{attempt.claim}: {_broken(attempt)}')}", ""]
    if (found := attempt.counterexample) is not None:
        is_cut = len(case_line(found.case)) > _CASE
        program = found.snippet or (as_python(found.case) if is_cut else "")
        lines += _fenced(program, "python") if program else []
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


# --- pages ----------------------------------------------------------------------------------


def html(text: str) -> Markup:
    """Return Markdown as HTML, in which neither HTML nor an image of the text has an effect."""
    try:
        from markdown_it import MarkdownIt
        from mdit_py_plugins.dollarmath import dollarmath_plugin
    except ImportError:  # a stored run can be displayed without the extra package
        return Markup("<pre>") + escape(text) + Markup("</pre>")

    def formula(latex: str, options: dict[str, Any]) -> str:
        return str(mathml(latex, "block" if options["display_mode"] else "inline"))

    def fence(tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
        if tokens[at].info == "math":
            return f'<div class="formula" tabindex="0">{mathml(tokens[at].content)}</div>\n'
        return f"<pre><code>{escape(tokens[at].content)}</code></pre>\n"

    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    reader.use(dollarmath_plugin, renderer=formula, double_inline=True)
    reader.renderer.rules["fence"] = fence  # type: ignore[attr-defined]
    return Markup(reader.render(text))


def pdf(text: str) -> bytes | None:
    """Return Markdown as PDF, or None if dpaudit[pdf] is not installed."""
    try:
        import typst

        source = as_typst(text)
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:  # the text can read no other file
        path = Path(folder) / "erratum.typ"
        path.write_bytes(source)
        printed: bytes = typst.compile(path, root=Path(folder))
    return printed


def as_typst(text: str) -> bytes:
    """Return Markdown as a document of typst, in which images are links."""
    import pypandoc

    tree = json.loads(pypandoc.convert_text(text, "json", format=_READ), object_hook=_linked)
    found: str = pypandoc.convert_text(json.dumps(tree), "typst", format="json")
    return (_LOOK + found).encode()


def _linked(node: dict[str, Any]) -> dict[str, Any]:
    """Return a node of pandoc's tree, and a link in place of an image, which would open a file."""
    return {**node, "t": "Link"} if node.get("t") == "Image" else node


# --- mathematics: LaTeX as MathML, which browsers display without a script or a font -------------


@functools.lru_cache(maxsize=1024)
def mathml(latex: str, display: str = "block") -> Markup:
    """Return a formula as MathML, or as its source if the conversion fails.

    Parameters
    ----------
    latex : str
        The formula, without dollar signs.
    display : str
        "block" or "inline".
    """
    try:
        from latex2mathml.converter import convert

        # The converter would turn angle brackets in a formula into elements.
        found = convert(latex.replace("<", r"\lt ").replace(">", r"\gt "), display=display)
        return Markup(_without_links(found))
    except Exception:  # the converter is an extra package and may raise any exception
        return Markup("<code>") + escape(latex) + Markup("</code>")


def with_formulas(text: str) -> Markup:
    """Return a text in which each formula between dollar signs is MathML.

    As in Markdown, no formula begins or ends with a space, no digit follows it, and code between
    backticks has none. So prices and names of variables stay as they are.
    """
    found, at = Markup(""), 0
    for match in _FORMULA.finditer(text):
        is_code = match["latex"] is None
        found += escape(text[at : match.start()])
        found += escape(match[0]) if is_code else mathml(match["latex"], "inline")
        at = match.end()
    return found + escape(text[at:])


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
