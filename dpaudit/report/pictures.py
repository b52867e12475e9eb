"""Pictures of the ledger: the ratio over what was searched, and what rests on what."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup, escape

from dpaudit.ledger import Attempt, StatementResult, Trace
from dpaudit.results import Axis, Chart, steps, themed, wrap

_WIDTH, _HEIGHT = 330.0, 210.0
_DECADES = 100.0  # ratios that differ more are shown on a logarithmic scale
_LEAST_RATIO = 1e-6

_NODE, _COLUMN, _LINE = (112.0, 17.0), 158.0, 23.0
_SWEEPS = 6


# --- the ratio ---------------------------------------------------------------------------------


def ratio_pictures(attempt: Attempt) -> list[Markup]:
    """Return lhs / rhs against each of one or two coordinates of the cases that were judged."""
    trace = attempt.trace
    if trace is None:
        return []
    return [Markup(_ratio(trace, at, broken=attempt.violated)) for at in range(len(trace.names))]


def _ratio(trace: Trace, at: int, *, broken: bool) -> str:
    xs = [point[at] for point in trace.points]
    raw = [point[-1] for point in trace.points]
    positive = [ratio for ratio in raw if ratio > 0]
    high = max([1.0, *raw])
    log = bool(positive) and max(positive) / min(positive) > _DECADES
    low = max(min(positive), _LEAST_RATIO * high) if log else min([0.0, *raw])
    ratios = [max(ratio, low) for ratio in raw]
    x = _axis(min(xs), max(xs), trace.names[at], log=trace.log[at])
    y = _axis(low, 1.08 * high, "lhs / rhs", log=log)
    chart = Chart(x, y, width=_WIDTH, height=_HEIGHT)
    chart.level("muted", y=1.0, width=1.2, label="lhs = rhs")
    fine = [pair for pair in zip(xs, ratios, strict=True) if pair[1] <= 1]
    over = [pair for pair in zip(xs, ratios, strict=True) if pair[1] > 1]
    chart.dots(*_split(fine), "certified", radius=1.8)
    chart.dots(*_split(over), "violation", radius=1.8)
    if broken:
        last = ([xs[-1]], [ratios[-1]])
        chart.dots(*last, "violation", radius=4.5, hollow=True, label="counterexample")
    return chart.svg(f"Ratio against {trace.names[at]}")


def _split(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _axis(low: float, high: float, label: str, *, log: bool) -> Axis:
    if not high > low:
        return Axis(low - 1.0, low + 1.0, [(low, f"{low:.4g}")], label)
    if not log:
        return Axis(low, high, [(tick, f"{tick:.6g}") for tick in steps(low, high)], label)
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first) / 4))
    ticks = [10.0**k for k in range(first, last + 1, step)] or [low, high]
    return Axis(low, high, [(tick, f"{tick:.3g}") for tick in ticks], label, log=True)


# --- premises ----------------------------------------------------------------------------------


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
    width = (len(columns) - 1) * _COLUMN + _NODE[0] + 2
    height = most * _LINE
    lines = "".join(_arrow(places[a], places[b], known[a]) for a, b in links)
    boxes = "".join(_node(known[id], places[id], anchors[id]) for id in nodes)
    return Markup(wrap(lines + boxes, "What rests on what", width, height))


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
    x1, y1 = start[0] + _NODE[0], start[1] + _NODE[1] / 2
    x2, y2 = end[0], end[1] + _NODE[1] / 2
    bend = (x2 - x1) / 2
    path = f"M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
    shaky = premise.verdict in ("refuted", "holds_proof_broken")
    colour = "var(--tone)" if shaky else themed("rule")
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
        f'<rect x="{x + 0.5:.1f}" y="{y + 0.5:.1f}" width="{_NODE[0]:g}" height="{_NODE[1]:g}" '
        'rx="4" fill="var(--tone-soft)" stroke="var(--tone)"/>'
        f'<text x="{x + _NODE[0] / 2:.1f}" y="{y + 12.5:.1f}" text-anchor="middle" '
        f'fill="var(--tone)">{escape(name)}</text></a>'
    )
