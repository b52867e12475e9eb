"""The page of the ledger: every statement, what became of it, and how it was attacked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from dpaudit.ledger import LedgerVerdict, Shaken, StatementResult, shaken
from dpaudit.properties import Attempt, Power
from dpaudit.report.erratum import by_harm, write_errata
from dpaudit.report.mathematics import mathml
from dpaudit.report.page import fill, kept, typed
from dpaudit.report.statements import is_powerless, method_words, tally
from dpaudit.report.terminal import statement_replay
from dpaudit.results import charts, svg, words
from dpaudit.store import LEDGER, Run, place_of, write_atomic

_ALWAYS = (LedgerVerdict.REFUTED, LedgerVerdict.OPEN, LedgerVerdict.HOLDS)
_DECADES = 100.0  # ratios that differ more are shown on a logarithmic scale
_LEAST_RATIO = 1e-6
_WIDTH, _HEIGHT, _COLUMN, _LINE = 112.0, 17.0, 158.0, 23.0
_SWEEPS = 6


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


# --- pictures ----------------------------------------------------------------------------------


def ratio_pictures(attempt: Attempt) -> list[Markup]:
    """Return lhs / rhs against each of one or two coordinates of the cases that were judged."""
    trace, pictures = attempt.trace, list[Markup]()
    if trace is None:
        return pictures
    raw = [point[-1] for point in trace.points]
    positive, high = [ratio for ratio in raw if ratio > 0], max([1.0, *raw])
    log = bool(positive) and max(positive) / min(positive) > _DECADES
    low = max(min(positive), _LEAST_RATIO * high) if log else min([0.0, *raw])
    y = charts.Axis(low, 1.08 * high, "lhs / rhs", log=log)
    for at, name in enumerate(trace.names):
        points = [(point[at], max(point[-1], low)) for point in trace.points]
        first, last = min(points)[0], max(points)[0]
        x = charts.Axis(first, last, name, log=trace.log[at])
        if first == last:
            x = charts.Axis(first - 1.0, last + 1.0, name, [(first, f"{first:.4g}")])
        over = [point for point in points if point[1] > 1]
        series = [
            charts.level("muted", x, 1.0, "lhs = rhs"),
            charts.Series("dots", "certified", [p for p in points if p[1] <= 1], size=1.8),
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
    """Return the graph of what rests on what; empty where nothing does.

    Premises stand to the left of what rests on them, and each node links to its row.

    Parameters
    ----------
    rows : sequence of StatementResult
        Of all papers.
    anchors : mapping
        Name of the place of each row on the page, by id.
    """
    known = {row.id: row for row in rows}
    links = [(id, row.id) for row in rows for id in row.stated.premises if id in known]
    nodes = [id for id in known if any(id in link for link in links)]
    if not nodes:
        return Markup("")
    columns = _columns(nodes, links)
    most = max(map(len, columns))
    places = {
        id: (at * _COLUMN, (line + (most - len(column)) / 2) * _LINE)
        for at, column in enumerate(columns)
        for line, id in enumerate(column)
    }
    width = (len(columns) - 1) * _COLUMN + _WIDTH + 2
    height = most * _LINE
    lines = "".join(_arrow(places[a], places[b], known[a]) for a, b in links)
    boxes = "".join(_node(known[id], places[id], anchors[id]) for id in nodes)
    return Markup(svg.wrap(lines + boxes, "What rests on what", width, height))


def _columns(nodes: Sequence[str], links: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return layers, in which every premise stands before what rests on it; few lines cross."""
    depth = dict.fromkeys(nodes, 0)
    for _ in nodes:  # the longest path has no more steps; a circle ends here
        for premise, id in links:
            depth[id] = min(max(depth[id], depth[premise] + 1), len(nodes))
    above = {id: [b for a, b in links if a == id] for id in nodes}
    for id in sorted(nodes, key=lambda id: -depth[id]):  # as close to what rests on it as may be
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


def _arrow(start: tuple[float, float], end: tuple[float, float], premise: StatementResult) -> str:
    x1, y1 = start[0] + _WIDTH, start[1] + _HEIGHT / 2
    x2, y2 = end[0], end[1] + _HEIGHT / 2
    bend = (x2 - x1) / 2
    path = f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    shaky = premise.verdict in ("refuted", "holds_proof_broken")
    colour = "var(--tone)" if shaky else svg.themed("rule")
    return (
        f'<path class="{premise.verdict}" fill="none" stroke="{colour}" '
        f'stroke-width="{1.3 if shaky else 1}" d="{path}"/>'
    )


def _node(row: StatementResult, place: tuple[float, float], anchor: str) -> str:
    x, y = place
    name = row.id.partition(".")[2]
    return (
        f'<a href="#{escape(anchor)}" class="{row.verdict}"><title>{escape(row.id)}: '
        f"{escape(row.verdict.words)}</title>"
        f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{_WIDTH:g}" height="{_HEIGHT:g}" '
        'rx="4" fill="var(--tone-soft)" stroke="var(--tone)"/>'
        f'<text x="{x + _WIDTH / 2:.1f}" y="{y + 12.5:.1f}" text-anchor="middle" '
        f'fill="var(--tone)">{escape(name)}</text></a>'
    )
