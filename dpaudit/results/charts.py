"""The pictures of the page: each draws what an ``..._info`` holds, as SVG text.

``profile``, ``histogram``, ``power``, ``tradeoff``, ``wealth``, ``slack`` and ``landscape`` take a
result and, optionally, a palette. The same curves on matplotlib's axes, for papers and for
comparing results, are in :mod:`dpaudit.results.figures`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from dpaudit.results.axes import Axis, between, steps
from dpaudit.results.infos import (
    HistogramInfo,
    ProfileInfo,
    histogram_info,
    profile_info,
    slack_info,
    tradeoff_info,
    wealth_info,
)
from dpaudit.results.landscapes import LandscapeInfo, PanelInfo, landscape_info
from dpaudit.results.svg import HEIGHT, WIDTH, Chart, Palette, coordinate, themed, wrap
from dpaudit.results.verdicts import Shown
from dpaudit.results.words import count, number, power_of_ten, short

SMALLEST_POWER = 1e-9
"""Of a test whose errors are drawn on a stretched scale; far outside the picture."""

CERTIFIED_POINT = "certified epsilon, at the claimed delta"
"""Label of the point where it lies beyond the curves."""

_DASH, _DOTS = "5 3", "1.5 3"
_SHADE = 0.25


# --- curves ------------------------------------------------------------------------------------


def profile(result: Shown, palette: Palette = themed, height: float = HEIGHT) -> str:
    """Draw claimed, certified and estimated delta over epsilon."""
    info = profile_info(result)

    def drawn(values: Iterable[float]) -> list[float]:
        return [max(value, info.floor) for value in values] if info.log else list(values)

    claimed, certified = drawn(info.claimed), drawn(info.certified)
    chart = Chart(_linear(*info.limits, "epsilon"), _deltas(info), palette, height=height)
    chart.line(info.epsilon, claimed, "claimed", label="claimed")
    chart.line(info.epsilon, certified, "certified", label=info.certified_label)
    chart.line(info.beyond[0], drawn(info.beyond[1]), "certified")
    if info.standard_error:
        spread = 2 * np.array(info.standard_error)
        lower, upper = (drawn(np.array(info.estimated) + sign * spread) for sign in (-1, 1))
        chart.area(info.estimated_epsilon, lower, upper, "estimated", opacity=_SHADE)
    if info.estimated:
        estimated, label = drawn(info.estimated), "estimated, no guarantee"
        epsilons = list(info.estimated_epsilon)
        chart.line(epsilons, estimated, "estimated", width=1.4, dash=_DASH, label=label)
    if any(info.violated):
        area = between(info.epsilon, claimed, certified, log=info.log)
        chart.area(*area, "violation", opacity=_SHADE, label="certified above claim")
    at = ([info.point[0]], drawn([info.point[1]]))
    chart.dots(*at, "claimed", radius=4.5, hollow=True, label="point of comparison")
    if info.certified_point is not None:
        at = ([info.certified_point[0]], drawn([info.certified_point[1]]))
        chart.dots(*at, "certified", radius=4.0, label=CERTIFIED_POINT)
    return chart.svg("Privacy profile")


def delta_ticks(info: ProfileInfo) -> dict[float, str]:
    """Return decades in plain text, at most six; the lowest stands for zero."""
    shown = [*info.claimed, *info.certified, *info.estimated, *info.beyond[1], info.point[1]]
    low, high = round(math.log10(info.floor)), math.ceil(math.log10(max(shown)))
    step = max(1, math.ceil((high - low) / 5))
    zero = "0" if all(value == 0 or value > info.floor for value in shown) else "≈ 0"
    decades = {10.0**tick: power_of_ten(10.0**tick) for tick in range(high, low, -step)}
    return {10.0**low: zero} | decades


def _deltas(info: ProfileInfo) -> Axis:
    if info.log:
        ticks = delta_ticks(info)
        return Axis(info.floor * 0.6, max(ticks) * 1.6, [*ticks.items()], "delta", log=True)
    shown = (*info.claimed, *info.certified, *info.estimated, *info.beyond[1], info.point[1])
    return _linear(0.0, 1.05 * max(shown) or 1.0, "delta")


def tradeoff(result: Shown, palette: Palette = themed) -> str:
    """Draw the certified band of the trade-off curve, and the claimed curve.

    Type II against type I errors of tests that tell the two inputs apart. Where the claim is
    decided at small type I errors, both axes are stretched about the corner (0, 1).
    """
    info = tradeoff_info(result)
    x = list(info.alpha[info.log :])
    perfect, claimed, band = (
        [max(1 - beta, SMALLEST_POWER) for beta in curve[1:]] if info.log else list(curve)
        for curve in ([1 - alpha for alpha in info.alpha], info.claimed, info.band)
    )
    names = ("type I error", "type II error")
    if info.log:
        lowest = math.floor(math.log10(x[0]) + 1e-9)
        decades = [10.0**k for k in range(lowest, 1, max(1, math.ceil(-lowest / 4)))]
        decades = [power for power in decades if power >= x[0]]
        powers = [(power, power_of_ten(power)) for power in decades]
        errors = [(power, error_words(power)) for power in decades]
        axes = (Axis(x[0], 1.0, powers, names[0], True), Axis(1.0, x[0], errors, names[1], True))
    else:
        axes = (_linear(0.0, 1.0, names[0]), _linear(0.0, 1.0, names[1]))
    chart = Chart(*axes, palette)
    chart.line(x, perfect, "muted", width=1.2, dash=_DOTS, label="perfect privacy")
    if info.informative:
        chart.area(x, band, perfect, "event", label="excluded")
    chart.line(x, claimed, "claimed", label="claimed")
    if info.informative:
        chart.line(x, band, "certified", label=info.band_label)
    if any(info.violated):
        grid = [math.log(alpha) for alpha in x] if info.log else x
        low, high = (claimed, band) if info.log else (band, claimed)
        fine, first, second = between(grid, low, high, log=info.log)
        fine = np.exp(fine) if info.log else fine
        chart.area(fine, first, second, "violation", opacity=_SHADE, label="band below claim")
    return chart.svg("Trade-off curve")


def error_words(power: float) -> str:
    """Return a type II error, near 1 where the power of a test is a small power of ten."""
    near = {0: "0", -1: "0.9", -2: "0.99"}
    return near.get(round(math.log10(power)), f"1 − {power_of_ten(power)}")


# --- the witness -------------------------------------------------------------------------------


def histogram(result: Shown, palette: Palette = themed) -> str:
    """Draw the outputs of both sides, the event shaded.

    Of a guess, where left is guessed is shaded, and where right is guessed hatched.
    """
    info = histogram_info(result)
    if info.edges is None:
        return _categories(info, palette)
    return _bins(info, info.edges, palette)


def _bins(info: HistogramInfo, edges: tuple[float, ...], palette: Palette) -> str:
    k, low, high = len(edges) - 1, edges[0], edges[-1]
    finite = [edge for edge in edges if math.isfinite(edge)] or [0.0, 1.0]
    # The outermost bins hold all that lies beyond them; an infinite edge is drawn where they end.
    low, high = max(low, min(finite)), min(high, max(finite))
    high = high if high > low else low + 1.0
    width = (high - low) * 0.05
    start = high + 2 * width  # of the bars beside the axis
    ticks = [(tick, _plain(tick)) for tick in steps(low, high)]
    end, beside = high, len(info.bins) > k
    if beside:
        ticks = [tick for tick in ticks if tick[0] < high - 2 * width]
        ticks.append((start + width, short(info.bins[k], 16)))
        end = start + 3 * width
    x = Axis(low, end, ticks, short(info.xlabel, 60))
    chart = Chart(x, _heights(info), palette)
    for inside, is_hatched in _shades(info):
        spans = [(edges[i], edges[i + 1]) for i in range(k) if inside[i]]
        spans += [(start - width, start + 3 * width)] * (beside and inside[k])
        for span in joined(spans):
            chart.box(span, None, "event", hatched=is_hatched)
    for side, values in (("left", info.left), ("right", info.right)):
        outline = [edges[0], *chain.from_iterable((e, e) for e in edges[1:-1]), edges[-1]]
        heights = list(chain.from_iterable((v, v) for v in values[:k]))
        chart.area(outline, [chart.y.low] * len(heights), heights, side, opacity=0.35)
        chart.line(outline, heights, side, width=1.6)
        if beside:
            at = start + width * (side == "right")
            chart.box((at, at + width), (chart.y.low, values[k]), side, opacity=0.75)
    return _with_sides(chart, info)


def _heights(info: HistogramInfo) -> Axis:
    shares = [share for share in (*info.left, *info.right) if share > 0] or [1.0]
    most = max(shares)
    if not info.log:
        return _linear(0.0, 1.05 * most, info.ylabel)
    low, high = math.floor(math.log10(min(shares))), math.ceil(math.log10(most))
    ticks = range(high, low - 1, -max(1, math.ceil((high - low) / 5)))
    decades = [(10.0**tick, power_of_ten(10.0**tick)) for tick in ticks]
    return Axis(0.6 * min(shares), max(1.3 * most, 1.01 * 10.0**low), decades, info.ylabel, True)


def _categories(info: HistogramInfo, palette: Palette) -> str:
    k = len(info.bins)
    most = max((*info.left, *info.right), default=0.0) or 1.0
    x = _linear(0.0, 1.05 * most, f"{info.ylabel}, by {short(info.xlabel, 40)}")
    names = [(float(place), short(name, 24)) for place, name in enumerate(info.bins)]
    y = Axis(k - 0.5, -0.5, names, bare=True)
    chart = Chart(x, y, palette, height=max(HEIGHT, 90.0 + 23.0 * k))
    for inside, is_hatched in _shades(info):
        for span in joined([(i - 0.5, i + 0.5) for i in range(k) if inside[i]]):
            chart.box((0.0, x.high), span, "event", hatched=is_hatched)
    for side, values, shift in (("left", info.left, -0.38), ("right", info.right, 0.0)):
        for place, value in enumerate(values):
            if value > 0:
                at = place + shift
                chart.box((0.0, value), (at, at + 0.38), side, opacity=0.75)
    return _with_sides(chart, info)


def _shades(info: HistogramInfo) -> Iterator[tuple[tuple[bool, ...], bool]]:
    """Yield which bins have a shade, and whether it is the hatched one."""
    yield info.inside, False
    if info.right_label:
        yield info.inside_right, True


def _with_sides(chart: Chart, info: HistogramInfo) -> str:
    for side in ("left", "right"):
        chart.name(f"{side} dataset", side, opacity=0.75)
    chart.name(info.event_label, "event")
    if info.right_label:
        chart.name(info.right_label, "event", hatched=True)
    return chart.svg("Where the outputs fall")


def joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Join spans that touch, so that a shade has no seams.

    Examples
    --------
    >>> joined([(0.0, 1.0), (1.0, 2.0), (3.0, 4.0)])
    [(0.0, 2.0), (3.0, 4.0)]
    """
    found: list[tuple[float, float]] = []
    for low, high in spans:
        if found and found[-1][1] == low:
            low = found.pop()[0]
        found.append((low, high))
    return found


# --- sequential audits, slack ------------------------------------------------------------------


def wealth(result: Shown, palette: Palette = themed) -> str:
    """Draw how the wealth of a sequential audit grew with its draws; ``ValueError`` for others."""
    info = wealth_info(result)
    colour = "violation" if info.refuted else "certified"
    low, high = min((*info.log_wealth, 0.0)), max((*info.log_wealth, info.refuted_at))
    room = high - low
    least, most = min((*info.draws, info.budget)), max((*info.draws, info.budget))
    x = _draws(float(max(least, 1)), 1.15 * most)
    y = _linear(low - 0.06 * room, high + 0.08 * room, "log of the wealth")
    chart = Chart(x, y, palette)
    chart.level("claimed", y=info.refuted_at, label=f"claim refuted at {number(info.refuted_at)}")
    label = f"budget: {count(info.budget)} draws"
    chart.level("muted", x=float(info.budget), width=1.2, dash=_DOTS, label=label)
    chart.line(info.draws, info.log_wealth, colour, width=2.0)
    last = (info.draws[-1:], info.log_wealth[-1:])
    chart.dots(*last, colour, radius=4.0, label=f"stopped: {short(info.stopped, 50)}")
    return chart.svg("Wealth of the bet")


def _draws(low: float, high: float) -> Axis:
    """Return a scale of draws with round numbers as ticks."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1,), (1, 3), (1, 2, 5)):
        ticks = [float(f * 10**k) for k in decades for f in factors if low <= f * 10**k <= high]
        if len(ticks) >= 3:
            break
    ticks = ticks[:: math.ceil(len(ticks) / 5) or 1] or [low, high]
    words = [(tick, count(round(tick))) for tick in ticks]
    return Axis(low, high, words, "draws per dataset", log=True)


def slack(result: Shown, palette: Palette = themed) -> str:
    """Draw certified epsilon against the multiplier of the noise; ``ValueError`` without slack."""
    info = slack_info(result)
    words = [(multiplier, number(multiplier)) for multiplier in info.multipliers]
    first, last = info.multipliers[0], info.multipliers[-1]
    name = "noise, as a multiple of the algorithm's"
    x = Axis(first / 1.05, last * 1.05, _apart(words), name, log=True)
    chart = Chart(x, _linear(0.0, 1.08 * info.limit, "certified epsilon"), palette)
    chart.level("claimed", y=info.claimed, label=f"claimed: {number(info.claimed)}")
    chart.line(info.multipliers, info.certified, "muted", width=1.3)
    for fell, role, label in ((False, "certified", "stands"), (True, "violation", "refuted")):
        points = zip(info.multipliers, info.certified, info.refuted, strict=True)
        dots = [(m, c) for m, c, refuted in points if refuted is fell]
        if dots:
            chart.dots([m for m, _ in dots], [c for _, c in dots], role, radius=4.0, label=label)
    return chart.svg("Slack of the noise")


def _apart(ticks: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Keep the ticks of a logarithmic scale that leave each other room, from the right."""
    kept: list[tuple[float, str]] = []
    span = math.log(ticks[-1][0] / ticks[0][0]) or 1.0
    for tick in reversed(ticks):
        if not kept or math.log(kept[-1][0] / tick[0]) > 0.1 * span:
            kept.append(tick)
    return kept[::-1]


# --- searches ----------------------------------------------------------------------------------

_WORD = 64.0
"""Width of a word of 12 letters below an axis."""

_STAGES = {
    "design": "mutant",
    "local": "estimated",
    "semifinal": "right",
    "final": "certified",
}


def landscape(result: Shown, palette: Palette = themed) -> str:
    """Draw what trials are expected to certify against each parameter; ``ValueError`` for none."""
    info = landscape_info(result)
    columns = min(len(info.panels), 2) or 1
    rows = math.ceil(len(info.panels) / columns)
    legend = Chart(Axis(0.0, 1.0), Axis(0.0, 1.0), palette)
    for stage in _in_order(info.stage):
        legend.dots((), (), _STAGES.get(stage, "muted"), label=stage)
    if info.winner is not None:
        legend.dots((), (), "claimed", radius=5.0, hollow=True, label="winner")
    legend.line((), (), "claimed", width=1.4, dash=_DASH, label="claim")
    key, top = legend.legend()
    width = (WIDTH - 12.0 * (columns - 1)) / columns
    tall = HEIGHT - top if rows <= 1 else 165.0
    parts = [key]
    for place, panel in enumerate(info.panels):
        row, column = divmod(place, columns)
        chart = _panel(info, panel, palette, (width, tall), named=column == 0)
        at = f"translate({coordinate(column * (width + 12.0))} {coordinate(top + row * tall)})"
        parts.append(f'<g transform="{at}">{chart.body()}</g>')
    return wrap("".join(parts), "The search", WIDTH, top + max(rows, 1) * tall)


def _in_order(stages: Sequence[str]) -> list[str]:
    return sorted(set(stages), key=lambda stage: ([*_STAGES, stage].index(stage), stage))


def _panel(
    info: LandscapeInfo,
    panel: PanelInfo,
    palette: Palette,
    size: tuple[float, float],
    *,
    named: bool,
) -> Chart:
    name = short(panel.parameter, 30)
    finite = [value for value in panel.x if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    if panel.words is not None:
        places = [(float(i), short(word, 12)) for i, word in enumerate(panel.words)]
        shown = places[:: math.ceil(len(places) / max(int(size[0] / _WORD), 4)) or 1]
        x = Axis(-0.5, len(panel.words) - 0.5, shown, name)
    elif panel.log:
        decades = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        ticks = [(10.0**k, power_of_ten(10.0**k)) for k in decades]
        x = Axis(low / 1.3, high * 1.3, ticks[:: math.ceil(len(ticks) / 4) or 1], name, log=True)
    else:
        room = 0.05 * (high - low) or 0.5
        x = _linear(low - room, high + room, name, 4)
    top = 1.15 * max((*info.expected, info.claim)) or 1.0
    y = _linear(0.0, top, info.ylabel if named else "")
    chart = Chart(x, y, palette, *size)
    for stage in _in_order(info.stage):
        at = [(x, i) for x, i in zip(panel.x, panel.shown, strict=True) if info.stage[i] == stage]
        dots = ([x for x, _ in at], [info.expected[i] for _, i in at])
        chart.dots(*dots, _STAGES.get(stage, "muted"), radius=2.6)
    if info.winner in panel.shown:
        at_winner = ([panel.x[panel.shown.index(info.winner)]], [info.expected[info.winner]])
        chart.dots(*at_winner, "claimed", radius=5.5, hollow=True)
    chart.level("claimed", y=info.claim, width=1.4)
    return chart


def _linear(low: float, high: float, label: str, most: int = 5) -> Axis:
    return Axis(low, high, [(tick, _plain(tick)) for tick in steps(low, high, most)], label)


def _plain(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")
