"""The statements in reports: lines of text, cases for CI systems, and the page of the ledger."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from markupsafe import Markup, escape

from dpaudit.ledger import words
from dpaudit.ledger.coverage import BROKE_OFF, STATEMENT, papers_of
from dpaudit.ledger.erratum import by_harm, fill_page, write_errata
from dpaudit.ledger.paper import Paper
from dpaudit.ledger.rows import LedgerVerdict, Shaken, StatementResult, shaken
from dpaudit.properties import Attempt, Power, Role
from dpaudit.report import (
    Alert,
    Section,
    VerdictChange,
    What,
    kept,
    typed,
)
from dpaudit.results import LARGEST_RATIO, charts, short, svg
from dpaudit.store import StoredRun, place_of, write_atomic

_CASE = 400
_SMALLER = (("full", "quick"), ("release", "quick"), ("release", "full"))
"""Profiles before and now, if there are fewer cases now."""
_ALWAYS = (LedgerVerdict.REFUTED, LedgerVerdict.OPEN, LedgerVerdict.HOLDS)
_DECADES = 100.0  # ratio of values above which the scale is logarithmic
_LEAST_RATIO = 1e-6
_LETTERS = 12.0  # size of the letters in a graph of premises, in pixels
_HEIGHT, _GAP, _LINE = 20.0, 30.0, 27.0
_SWEEPS = 6


class StatementSection(Section[StatementResult]):
    """Section of the statements, with its own page and an erratum for each paper."""

    noun = "statement"
    rules: ClassVar = {
        "dpaudit/statement": ("Statement", "A statement of the ledger is not as declared.")
    }

    def facts(self, record: StatementResult) -> list[str]:
        """Return method, ratio, number of cases, power and seconds."""
        if record.method is None:
            return [record.note]
        parts = [words.method_words(record)]
        if record.is_narrow:
            parts.append("by less than 1%")
        if record.tightest is not None:
            parts.append(f"ratio {words.ratio_words(record.tightest)}")
        if record.examples:
            parts.append(words.cases_words(record))
        power = {
            "survived": "a mutant survived",
            "partly": "partly without a mutant",
            "no mutant": "no mutant",
            "weak": "weak",
        }
        parts += [power[word] for word in words.power_words(record).split(", ") if word in power]
        return [*parts, f"{record.seconds:.1f} s"]

    def finding(
        self, record: StatementResult, out: Path | None = None, *, verbose: bool = False
    ) -> str:
        """Return a row with its counterexample and the command that replays the row."""
        lines = [f"{record.status.word}  {record.id}", f"  statement  {record.statement}"]
        lines.append(f"  attacked   {', '.join(self.facts(record))}")
        if record.repair_verdict is not None:
            lines.append(f"  repair     {record.repair_verdict.words}: {record.repair}")
        attempts = [*record.on_statement, *record.broken_steps, *record.made_on(Role.SHARPER)]
        if record.verdict is record.expected:  # in that case, the refuted repair is the new finding
            attempts = [*record.made_on(Role.REPAIR), *attempts]
        for attempt in attempts:
            if (counterexample := attempt.counterexample) is not None:
                lines.append(f"  broken     {attempt.claim}")
                lines.append(f"  found      {words.counterexample_words(attempt)}")
                lines.append(f"  where      {short(words.case_line(counterexample.case), _CASE)}")
                break
        if record.note:
            lines.append(f"  note       {record.note}")
        if command := words.replay_words(record, out):
            lines.append(f"  replay     {command}")
        return "\n".join(lines)

    def numbers(self, record: StatementResult) -> str:
        """Return the verdict, the tightest ratio, the number of cases, and the counterexample."""
        parts = [f"{record.verdict.words}: ratio {record.tightest!r}", words.cases_words(record)]
        if record.broken is not None:
            parts.append(words.counterexample_words(record.broken))
        return ", ".join(parts)

    def is_judged(self, record: StatementResult) -> bool:
        """Return whether the row has a verdict.

        If a check was interrupted, its row has no verdict.
        """
        return record.verdict is not LedgerVerdict.OPEN

    def tally(self, records: Sequence[StatementResult]) -> list[str]:
        """Return the counts of verdicts, and of verdicts with weaknesses."""
        return words.tally_lines(records)

    def summary(
        self, records: Sequence[StatementResult], *, verbose: bool = False
    ) -> tuple[str, str]:
        """Return the rows whose verdicts are not as declared, and the counts."""
        found = [self.finding(row) + "\n" for row in records if self.is_shown(row)]
        return "ledger", "\n".join([*found, *words.tally_lines(records)])

    def card(self, run: StoredRun, records: Sequence[StatementResult]) -> Markup:
        """Return counts and a link to the page of the ledger."""
        return Markup(fill_page("ledger_card.html.j2", run, **counts(records)))

    def write_pages(self, out: Path, run: StoredRun, records: Sequence[StatementResult]) -> None:
        """Write ``ledger.html`` and the errata.

        Without rows, remove the pages of an earlier run.
        """
        errata = write_errata(out, run, records)
        if records:
            write_atomic(out / STATEMENT.page, render(out, run, records, errata))
        elif (out / STATEMENT.page).is_file():
            (out / STATEMENT.page).unlink()

    def page_lines(self, out: Path, records: Sequence[StatementResult]) -> list[str]:
        """Return a line for the page of the ledger and a line for each erratum."""
        errata = (out / f"erratum-{paper}.md" for paper in dict.fromkeys(r.paper for r in records))
        lines = [f"erratum: {erratum}" for erratum in errata if erratum.is_file()]
        return [f"ledger: {out / STATEMENT.page}", *lines]

    def alert(self, record: StatementResult) -> Alert | None:
        """Return an alert for a row that is not as declared.

        An interrupted check gives no alert.
        """
        if record.mismatch is None or record.note.startswith(BROKE_OFF):
            return None
        facts = {"verdict": record.verdict.value, "declared": record.expected.value}
        text = f"{record.mismatch}\n{self.finding(record)}"
        return Alert("dpaudit/statement", "error", text, facts)

    def is_compared(self, record: StatementResult) -> bool:
        """Return whether the check of the row was run."""
        return not words.is_left_out(record)

    def changes(self, old: StatementResult, new: StatementResult) -> Iterator[VerdictChange]:
        """Yield the change of a statement's verdict."""
        both = old.status.word, new.status.word
        if old.verdict is not new.verdict:
            reason = new.mismatch or new.note or new.verdict.meaning
            reason += " (its words changed)" * (old.stated.text != new.stated.text)
            what = What.STATEMENT
            profiles = old.origin.get("profile"), new.origin.get("profile")
            if old.verdict is LedgerVerdict.OPEN and new.mismatch is None:
                what, reason = What.NEW, "it was open, and is checked now"
            elif old.verdict is LedgerVerdict.REFUTED and profiles in _SMALLER:
                what, reason = What.OTHER, f"profile {profiles[0]} before, {profiles[1]} now"
        elif old.mismatch is None and new.mismatch is not None:
            what, reason = What.UNDECLARED, new.mismatch
        elif old.mismatch is not None and new.mismatch is None:
            what, reason = What.FIXED, "it is as declared now"
        elif old.stated.text != new.stated.text:
            what, reason = What.OTHER, "its words changed"
        else:
            return
        yield VerdictChange(STATEMENT.name, new.id, what, *both, reason)


STATEMENTS = StatementSection()


# --- the page ---------------------------------------------------------------------------------


def render(
    out: Path, run: StoredRun, rows: Sequence[StatementResult], errata: Sequence[str] = ()
) -> str:
    """Return the page as text.

    Parameters
    ----------
    out : Path
        Directory of the results, which is part of the commands that replay them.
    run : StoredRun
        The run and its settings.
    rows : sequence of StatementResult
        Rows in the order of their papers.
    errata : sequence of str
        Names of the erratum pages, which are next to the page.
    """
    order = list(LedgerVerdict)
    older = kept(run, STATEMENT.name)
    in_order = sorted(rows, key=lambda row: (order.index(row.verdict), by_harm(row)))
    shaky = shaken(rows)
    papers = {paper.name: paper for paper in papers_of(run)}
    entries = [
        {
            **_row(out, row, shaky[row.id]),
            "older": older.get(row.id),
            "survivors": papers[row.paper].mutants.of_row(row.id) if row.paper in papers else (),
        }
        for row in in_order
    ]
    anchors: set[str] = set()
    for row in entries:  # if two papers use the same id, the links must still work
        while row["anchor"] in anchors:
            row["anchor"] += "-again"
        anchors.add(row["anchor"])
    places = {row["result"].id: row["anchor"] for row in entries}
    return fill_page(
        "ledger.html.j2",
        run,
        rows=entries,
        errata=errata,
        about=[
            _about(name, [row for row in rows if row.paper == name], papers, places)
            for name in dict.fromkeys(row.paper for row in rows)
        ],
        mismatches=[row for row in entries if row["mismatch"]],
        **counts(rows),
    )


def _about(
    name: str,
    rows: Sequence[StatementResult],
    papers: Mapping[str, Paper],
    places: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the page says of one paper: conventions, graphs of premises, and mutants."""
    by_name: dict[str, list[StatementResult]] = {}  # one name for each version of the paper
    for row in rows:
        by_name.setdefault(row.id.partition(".")[0], []).append(row)
    graphs = {version: premises_picture(own, places) for version, own in by_name.items()}
    paper = papers.get(name, Paper(name))
    return {
        "paper": paper,
        "title": paper.title or name,
        "graphs": {version: graph for version, graph in graphs.items() if graph},
    }


def counts(rows: Sequence[StatementResult]) -> dict[str, Any]:
    """Return the numbers about the whole ledger that both pages show."""
    found = words.tally(rows)
    return {
        "tally": found,
        "verdicts": [v for v in LedgerVerdict if v in found.verdicts or v in _ALWAYS],
        "papers": list(dict.fromkeys(row.paper for row in rows)),
    }


def _row(out: Path, result: StatementResult, shaky: Sequence[Shaken]) -> dict[str, Any]:
    """Return the values of one row that the template needs."""
    held = [attempt for attempt in result.on_statement if attempt.tightest is not None]
    tightest = max(held, key=lambda attempt: attempt.tightest or 0.0, default=None)
    broken = [attempt for attempt in result.attempts if attempt.violated and attempt.trace]
    pictured = next((a for a in [*broken, tightest] if a is not None and a.trace), None)
    found = result.counterexample
    if tightest is not None and (not tightest.where or (found and tightest.where == found.case)):
        tightest = None  # already shown elsewhere
    return {
        "result": result,
        "anchor": re.sub(r"\s+", "-", result.id),
        "method": words.method_words(result),
        "power": _power(result),
        "tightest": tightest,
        "mismatch": result.mismatch,
        "shaken": shaky,
        "pictures": [] if pictured is None else ratio_pictures(pictured),
        "pictured": "" if pictured is None else pictured.claim,
        "file": place_of(result) if result.origin else "",
        "replay": words.replay_words(result, typed(out)),
        "alone": words.replay_words(result),
    }


def _power(result: StatementResult) -> str:
    """Return the power if it is meaningful.

    The power is not meaningful for refuted and argued statements.
    """
    if result.power is not Power.NONE:
        return result.power.value
    return "no mutant" if words.is_powerless(result) else ""


# --- pictures ----------------------------------------------------------------------------------


def ratio_pictures(attempt: Attempt) -> list[Markup]:
    """Return lhs / rhs as a function of each of one or two coordinates, for the judged cases."""
    trace, pictures = attempt.trace, list[Markup]()
    if trace is None:
        return pictures
    raw = [point[-1] for point in trace.points]
    positive, high = [ratio for ratio in raw if ratio > 0], max([1.0, *raw])
    log = bool(positive) and max(positive) / min(positive) > _DECADES
    most, label = LARGEST_RATIO, "lhs / rhs"
    if high > most:
        high, label = most, f"{label}, at most {most:,.0f} shown"
    low = min(max(min(positive), _LEAST_RATIO * high), high / 2) if log else min([0.0, *raw])
    y = charts.Axis(low, 1.08 * high, label, log=log)
    for at, name in enumerate(trace.names):
        points = [(point[at], min(max(point[-1], low), high)) for point in trace.points]
        first, last = min(points)[0], max(points)[0]
        x = charts.Axis(first, last, name, log=trace.log[at])
        if first == last:
            x = charts.Axis(first - 1.0, last + 1.0, name, [(first, f"{first:.4g}")])
        # Rounding may move a ratio above 1, so only a violation has dots of its own colour.
        over = [point for point in points if point[1] > 1] if attempt.violated else []
        rest = [point for point in points if point not in over]
        series = [
            charts.level("muted", x, 1.0, "lhs = rhs"),
            charts.Series("dots", "certified", rest, size=1.8),
            charts.Series("dots", "violation", over, size=1.8),
        ]
        if attempt.violated:
            last_point, label = points[-1:], "counterexample"
            series.append(charts.Series("rings", "violation", last_point, label, size=4.5))
        panel, title = charts.Panel(x, y, series), f"Ratio against {name}"
        chart = charts.Chart(title, [panel], width=330.0, height=210.0)
        pictures.append(Markup(svg.svg_of(chart)))
    return pictures


def premises_picture(rows: Sequence[StatementResult], anchors: Mapping[str, str]) -> Markup:
    """Return the graph of premises.

    Empty if no statement has a premise. A premise is to the left of the statements that depend on
    it. Each node links to the row of its statement.

    Parameters
    ----------
    rows : sequence of StatementResult
        Rows of all papers.
    anchors : mapping
        Name of the anchor of each row on the page, by id.
    """
    known = {row.id: row for row in rows}
    links = [(id, row.id) for row in rows for id in row.stated.premises if id in known]
    nodes = [id for id in known if any(id in link for link in links)]
    if not nodes:
        return Markup("")
    columns = _columns(nodes, links)
    most = max(map(len, columns))
    wide = 16 + max(svg.text_width(_name(id), _LETTERS) for id in nodes)
    places = {
        id: (at * (wide + _GAP), (line + (most - len(column)) / 2) * _LINE)
        for at, column in enumerate(columns)
        for line, id in enumerate(column)
    }
    size = len(columns) * (wide + _GAP) - _GAP + 2, most * _LINE
    lines = "".join(_arrow(places[a], places[b], wide, known[a]) for a, b in links)
    boxes = "".join(_node(known[id], places[id], wide, anchors[id]) for id in nodes)
    title = f"Premises of {len(nodes)} statements"
    return Markup(svg.wrap(lines + boxes, title, *size, fixed=True))


def _name(id: str) -> str:
    """Return the id of a row without the name of its paper."""
    return id.partition(".")[2]


def _columns(nodes: Sequence[str], links: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return layers in which each premise precedes the rows that need it, with few crossings."""
    depth = dict.fromkeys(nodes, 0)
    for _ in nodes:  # no path is longer than this, so the loop ends even if there is a cycle
        for premise, id in links:
            depth[id] = min(max(depth[id], depth[premise] + 1), len(nodes))
    above = {id: [b for a, b in links if a == id] for id in nodes}
    for id in sorted(nodes, key=lambda id: -depth[id]):  # as close as possible to the dependents
        if above[id]:
            depth[id] = max(min(depth[other] for other in above[id]) - 1, 0)
    columns = [[id for id in nodes if depth[id] == d] for d in range(max(depth.values()) + 1)]
    columns = [column for column in columns if column]
    around = {id: [a if b == id else b for a, b in links if id in (a, b)] for id in nodes}
    for _ in range(_SWEEPS):
        for column in columns:
            height = {id: line - len(c) / 2 for c in columns for line, id in enumerate(c)}
            column.sort(key=lambda id: sum(height[o] for o in around[id]) / len(around[id]))
    return columns


def _arrow(
    start: tuple[float, float], end: tuple[float, float], wide: float, premise: StatementResult
) -> str:
    x1, y1 = start[0] + wide, start[1] + _HEIGHT / 2
    x2, y2 = end[0], end[1] + _HEIGHT / 2
    bend = (x2 - x1) / 2
    path = f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    shaky = premise.verdict in ("refuted", "holds_proof_broken")
    colour = "var(--tone)" if shaky else svg.themed("rule")
    return (
        f'<path class="{premise.verdict}" fill="none" stroke="{colour}" '
        f'stroke-width="{1.3 if shaky else 1}" d="{path}"/>'
    )


def _node(row: StatementResult, place: tuple[float, float], wide: float, anchor: str) -> str:
    x, y = place
    return (
        f'<a href="#{escape(anchor)}" class="{row.verdict}"><title>{escape(row.id)}: '
        f"{escape(row.verdict.words)}</title>"
        f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{wide:.1f}" height="{_HEIGHT:g}" '
        'rx="4" fill="var(--tone-soft)" stroke="var(--tone)"/>'
        f'<text x="{x + wide / 2:.1f}" y="{y + 14.5:.1f}" font-size="{_LETTERS:g}" '
        f'text-anchor="middle" fill="var(--tone)">{escape(_name(row.id))}</text></a>'
    )
