"""Pictures of one audit: ``plot_...`` draws on axes what an ``..._info`` holds.

Drawing uses figure objects only, never pyplot: no window, no global state, any backend.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dpaudit.results.infos import (
    HistogramInfo,
    ProfileInfo,
    between,
    evidence_info,
    histogram_info,
    power_info,
    profile_info,
    slack_info,
    tradeoff_info,
)
from dpaudit.results.landscapes import LandscapeInfo, PanelInfo, landscape_info
from dpaudit.results.verdicts import Shown
from dpaudit.results.words import count, number, power_of_ten, short

COLOURS = MappingProxyType(
    {
        "ink": "#1c2733",
        "muted": "#5c6979",
        "rule": "#c3ccd6",
        "event": "#e4e9ef",
        "claimed": "#1c2734",  # one off "ink", so that a theme can tell them apart
        "certified": "#00757d",
        "estimated": "#8a6d9b",
        "violation": "#c4302b",
        "mutant": "#8b99a9",
        "left": "#0072b2",
        "right": "#de8f05",
    }
)
"""Roles and their colours; left and right stay apart for colour-blind readers."""

_SIZE = (4.1, 2.85)
_SMALLEST_POWER = 1e-9  # of a test; far outside the picture


# --- curves ------------------------------------------------------------------------------------


def plot_profile(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw claimed, certified and estimated delta over epsilon on `ax` (or on new axes)."""
    info = profile_info(result)
    ax = _axes(ax)

    def drawn(values: Sequence[float]) -> list[float]:
        return [max(value, info.floor) for value in values] if info.log else list(values)

    claimed, certified = drawn(info.claimed), drawn(info.certified)
    if info.log:
        ax.set_yscale("log")
    ax.plot(info.epsilon, claimed, color=COLOURS["claimed"], lw=1.8, label="claimed")
    style: dict[str, Any] = {"color": COLOURS["certified"], "lw": 1.8}
    ax.plot(info.epsilon, certified, label=info.certified_label, **style)
    ax.plot(info.beyond[0], drawn(info.beyond[1]), **style)
    if info.estimated:
        if info.standard_error:
            spread = 2 * np.array(info.standard_error)
            low, high = (np.array(info.estimated) + sign * spread for sign in (-1, 1))
            style = {"color": COLOURS["estimated"], "alpha": 0.25, "lw": 0}
            ax.fill_between(info.estimated_epsilon, drawn(low), drawn(high), **style)
        style = {"color": COLOURS["estimated"], "lw": 1.1, "ls": (0, (4, 2))}
        label = "estimated, no guarantee"
        ax.plot(info.estimated_epsilon, drawn(info.estimated), label=label, **style)
    if any(info.violated):
        style = {"color": COLOURS["violation"], "alpha": 0.25, "lw": 0}
        area = between(info.epsilon, claimed, certified, log=info.log)
        ax.fill_between(*area, label="certified above claim", **style)
    style = {"marker": "o", "ms": 6, "mfc": "none", "mew": 1.6, "ls": "none", "clip_on": False}
    style |= {"color": COLOURS["claimed"], "label": "point of comparison", "zorder": 5}
    ax.plot([info.point[0]], drawn([info.point[1]]), **style)
    if info.log:
        _label_decades(ax, info)
    else:
        ax.set_ylim(bottom=0)
    epsilons = (*info.epsilon, *info.estimated_epsilon, *info.beyond[0])
    ax.set_xlim(min(epsilons), max(epsilons) or 1.0)
    ax.set_xlabel("epsilon")
    ax.set_ylabel("delta")
    _finish(ax)
    ax.legend(ncols=2, **_LEGEND)
    return ax


def _label_decades(ax: Axes, info: ProfileInfo) -> None:
    """Tick decades in plain text, at most six; the lowest stands for zero."""
    shown = [*info.claimed, *info.certified, *info.estimated, *info.beyond[1], info.point[1]]
    low, high = round(math.log10(info.floor)), math.ceil(math.log10(max(shown)))
    step = max(1, math.ceil((high - low) / 5))
    ticks = [low, *range(high, low, -step)]
    zero = "0" if all(value == 0 or value > info.floor for value in shown) else "≈ 0"
    words = {10.0**tick: power_of_ten(10.0**tick) for tick in ticks} | {10.0**low: zero}
    ax.yaxis.set_major_locator(FixedLocator(list(words)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words.get(value, "")))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(info.floor * 0.6, 10.0**high * 1.6)


def plot_tradeoff(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw the certified band of the trade-off curve and the claimed curve, on `ax` (or new axes).

    Type II against type I errors of tests that tell the two inputs apart. The mechanism's curve
    lies on or below the band; the claim is violated where it promises a curve above it. Where that
    is decided at small type I errors, both axes are stretched about the corner (0, 1).
    """
    info = tradeoff_info(result)
    ax = _axes(ax)
    x = info.alpha[info.log :]
    perfect, claimed, band = (
        [max(1 - beta, _SMALLEST_POWER) for beta in curve[1:]] if info.log else curve
        for curve in ([1 - alpha for alpha in info.alpha], info.claimed, info.band)
    )
    style: dict[str, Any] = {"color": COLOURS["muted"], "lw": 0.9, "ls": (0, (1, 2))}
    ax.plot(x, perfect, label="perfect privacy", **style)
    if info.informative:
        style = {"color": COLOURS["event"], "lw": 0, "zorder": 0}
        ax.fill_between(x, band, perfect, label="excluded", **style)
    ax.plot(x, claimed, color=COLOURS["claimed"], lw=1.8, label="claimed")
    if info.informative:
        ax.plot(x, band, color=COLOURS["certified"], lw=1.8, label=info.band_label)
    if any(info.violated):
        style = {"color": COLOURS["violation"], "alpha": 0.25, "lw": 0}
        fine, low, high = (
            between(np.log(x).tolist(), claimed, band, log=True)
            if info.log
            else between(x, band, claimed)
        )
        fine = np.exp(fine) if info.log else fine
        ax.fill_between(fine, low, high, label="band below claim", **style)
    if info.log:
        _stretch_corner(ax)
    ax.set_xlim(x[0], 1)
    ax.set_ylim(*((1, x[0]) if info.log else (0, 1)))
    ax.set_xlabel("type I error")
    ax.set_ylabel("type II error")
    _finish(ax)
    ax.legend(ncols=2, **_LEGEND)
    return ax


def _stretch_corner(ax: Axes) -> None:
    """Stretch type I errors near 0, and type II errors near 1, whose distance from 1 is drawn."""
    ax.set_xscale("log")
    ax.set_yscale("log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_minor_locator(NullLocator())
    near = {0: "0", -1: "0.9", -2: "0.99"}

    def error(power: float, _: object) -> str:
        exponent = round(math.log10(power))
        return near.get(exponent, f"1 − {power_of_ten(power)}")

    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    ax.yaxis.set_major_formatter(FuncFormatter(error))


# --- the witness -------------------------------------------------------------------------------


def plot_histogram(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw the outputs of both sides, the event shaded, on `ax` (or on new axes)."""
    info = histogram_info(result)
    if info.edges is None:
        ax = _axes(ax, height=max(_SIZE[1], 1.1 + 0.24 * len(info.bins)))
        _draw_categories(ax, info)
    else:
        ax = _axes(ax)
        _draw_bins(ax, info, info.edges)
    _finish(ax)
    handles = [Patch(color=COLOURS[side], alpha=0.75, lw=0) for side in ("left", "right")]
    handles.append(Patch(color=COLOURS["event"], lw=0))
    ax.legend(handles, ["left dataset", "right dataset", info.event_label], ncols=3, **_LEGEND)
    return ax


def _draw_bins(ax: Axes, info: HistogramInfo, edges: tuple[float, ...]) -> None:
    count, low, high = len(edges) - 1, edges[0], edges[-1]
    width = (high - low) * 0.05
    start = high + 2 * width  # of the bars beside the axis
    spans = [(edges[i], edges[i + 1]) for i in range(count) if info.inside[i]]
    ticks = [tick for tick in MaxNLocator(5).tick_values(low, high) if low <= tick <= high]
    words = [f"{tick:.6g}".replace("-", "−") for tick in ticks]
    if len(info.bins) > count:
        for index, side in enumerate(("left", "right")):
            bar: dict[str, Any] = {"align": "edge", "color": COLOURS[side], "alpha": 0.75, "lw": 0}
            ax.bar(start + index * width, getattr(info, side)[count], width, **bar)
        if info.inside[count]:
            spans.append((start - width, start + 3 * width))
        ticks = [tick for tick in ticks if tick < high - 2 * width]
        words = [*words[: len(ticks)], short(info.bins[count], 16)]
        ticks.append(start + width)
        high = start + 3 * width
    _shade(ax.axvspan, spans)
    for side in ("left", "right"):
        values = getattr(info, side)[:count]
        ax.stairs(values, edges, fill=True, color=COLOURS[side], alpha=0.35, lw=0)
        ax.stairs(values, edges, color=COLOURS[side], lw=1.3, baseline=None)
    if info.log:
        ax.set_yscale("log")
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    ax.set_xticks(ticks, words, parse_math=False)
    ax.set_xlim(low, high)
    ax.set_xlabel(short(info.xlabel, 60), parse_math=False)
    ax.set_ylabel(info.ylabel)


def _draw_categories(ax: Axes, info: HistogramInfo) -> None:
    places = range(len(info.bins))
    _shade(ax.axhspan, [(place - 0.5, place + 0.5) for place in places if info.inside[place]])
    for side, shift in (("left", -0.19), ("right", 0.19)):
        bar: dict[str, Any] = {"height": 0.38, "color": COLOURS[side], "alpha": 0.75, "lw": 0}
        ax.barh([place + shift for place in places], getattr(info, side), **bar)
    ax.set_yticks(places, [short(name, 24) for name in info.bins], parse_math=False)
    ax.set_ylim(len(info.bins) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"{info.ylabel}, by {short(info.xlabel, 40)}", parse_math=False)
    ax.tick_params(axis="y", length=0)


def _shade(span: Callable[..., Any], spans: list[tuple[float, float]]) -> None:
    """Shade where the event fires, without seams between bins that touch."""
    joined: list[tuple[float, float]] = []
    for low, high in spans:
        if joined and joined[-1][1] == low:
            low = joined.pop()[0]
        joined.append((low, high))
    for low, high in joined:
        span(low, high, color=COLOURS["event"], lw=0, zorder=0)


# --- power -------------------------------------------------------------------------------------


def plot_power(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw what was certified of mechanism and mutant beside the claim, on `ax` (or new axes)."""
    info = power_info(result)
    ax = _axes(ax)
    colours = (COLOURS["violation" if info.bars[0].above else "certified"], COLOURS["mutant"])
    for place, (bar, colour) in enumerate(zip(info.bars, colours, strict=True)):
        ax.barh(place, bar.length, 0.46, color=colour, lw=0)
        if bar.certified_epsilon == math.inf:
            ax.plot([info.limit], [place], ">", color=colour, ms=12, clip_on=False)
    label = f"claimed epsilon {number(info.claimed_epsilon)}"
    ax.axvline(info.claimed_epsilon, color=COLOURS["claimed"], lw=1.8, label=label)
    ax.set_yticks(range(len(info.bars)), [f"{bar.label}\n{bar.words}" for bar in info.bars])
    ax.set_ylim(1.6, -0.6)
    ax.set_xlim(0, info.limit)
    ax.set_xlabel("certified epsilon at the claimed delta")
    ax.tick_params(axis="y", length=0)
    _finish(ax)
    ax.legend(**_LEGEND)
    return ax


# --- sequential audits ------------------------------------------------------------------------


def plot_evidence(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw how the evidence of a sequential audit grew with its draws, on `ax` (or new axes).

    Raises
    ------
    ValueError
        For an audit that was not sequential.
    """
    info = evidence_info(result)
    ax = _axes(ax)
    colour = COLOURS["violation" if info.refuted else "certified"]
    label = f"claim refuted at {number(info.refuted_at)}"
    ax.axhline(info.refuted_at, color=COLOURS["claimed"], lw=1.2, ls=(0, (4, 2)), label=label)
    style: dict[str, Any] = {"color": COLOURS["muted"], "lw": 0.9, "ls": (0, (1, 2))}
    ax.axvline(info.budget, label=f"budget: {count(info.budget)} draws", **style)
    ax.plot(info.draws, info.log_wealth, color=colour, lw=1.5)
    style = {"marker": "o", "ms": 5.5, "ls": "none", "color": colour, "clip_on": False, "zorder": 5}
    label = f"stopped: {info.stopped}"
    ax.plot(info.draws[-1:], info.log_wealth[-1:], label=label, **style)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: count(round(value))))
    ax.xaxis.set_minor_locator(NullLocator())
    low, high = min((*info.log_wealth, 0.0)), max((*info.log_wealth, info.refuted_at))
    ax.set_ylim(low - 0.06 * (high - low), high + 0.08 * (high - low))
    ax.set_xlim(min((*info.draws, info.budget)), 1.15 * max((*info.draws, info.budget)))
    ax.set(xlabel="draws per dataset", ylabel="evidence: log of the wealth")
    _finish(ax)
    ax.legend(**_LEGEND)
    return ax


# --- slack ---------------------------------------------------------------------------------------


def plot_slack(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw certified epsilon against the multiplier of the noise, where slack was asked for."""
    info, ax = slack_info(result), _axes(ax)
    label = f"claimed: {number(info.claimed)}"
    ax.axhline(info.claimed, color=COLOURS["claimed"], lw=1.2, ls=(0, (4, 2)), label=label)
    ax.plot(info.multipliers, info.certified, color=COLOURS["muted"], lw=1.0, zorder=2)
    colours = [COLOURS["violation" if fell else "certified"] for fell in info.refuted]
    ax.scatter(info.multipliers, info.certified, c=colours, s=32, clip_on=False, zorder=5)
    ax.set(xscale="log", ylim=(0.0, 1.08 * info.limit), ylabel="certified epsilon")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    ax.set_xlabel("noise, as a multiple of the algorithm's")
    _finish(ax)
    ax.legend(**_LEGEND)
    return ax


# --- searches ----------------------------------------------------------------------------------

_STAGES = MappingProxyType({"design": "mutant", "local": "estimated", "final": "certified"})
_GAP = (0.08, 0.24)


def plot_landscape(result: Shown, ax: Axes | None = None) -> Axes:
    """Draw promise against each searched parameter, as panels inside `ax` (or of new axes).

    Raises
    ------
    ValueError
        For an audit that did not search for its pair.
    """
    info = landscape_info(result)
    columns = min(len(info.panels), 2) or 1
    rows = math.ceil(len(info.panels) / columns) or 1
    ax = _axes(ax, height=_SIZE[1] * (1.0 if rows == 1 else 1.3))
    ax.set_axis_off()
    width, height = (1 - _GAP[0] * (columns - 1)) / columns, (1 - _GAP[1] * (rows - 1)) / rows
    for place, panel in enumerate(info.panels):
        row, column = divmod(place, columns)
        left, bottom = column * (width + _GAP[0]), 1 - height - row * (height + _GAP[1])
        inner = ax.inset_axes((left, bottom, width, height))
        _draw_panel(inner, info, panel)
        if column > 0:
            inner.set_ylabel("")
            inner.tick_params(labelleft=False)
    marks: dict[str, Any] = {}
    for stage in _in_order(info.stage):
        marks[stage] = _dots([], [], ms=4, color=COLOURS[_STAGES.get(stage, "muted")])
    if info.winner is not None:
        marks["winner"] = _dots([], [], ms=8, color=COLOURS["claimed"], hollow=True)
    marks["claim"] = Line2D([], [], color=COLOURS["claimed"], lw=1, ls=(0, (4, 2)))
    ax.legend(list(marks.values()), list(marks), ncols=len(marks), **_LEGEND)
    return ax


def _in_order(stages: Sequence[str]) -> list[str]:
    return sorted(set(stages), key=lambda stage: ([*_STAGES, stage].index(stage), stage))


def _dots(
    x: Sequence[float], y: Sequence[float], *, ms: float, color: str, hollow: bool = False
) -> Line2D:
    fill = "none" if hollow else color
    style: dict[str, Any] = {"marker": "o", "ls": "none", "clip_on": False}
    return Line2D(x, y, ms=ms, color=color, mfc=fill, mew=1.4 * hollow, **style)


def _draw_panel(ax: Axes, info: LandscapeInfo, panel: PanelInfo) -> None:
    if panel.log:
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    elif panel.words is not None:
        places = range(len(panel.words))
        ax.set_xticks(places, [short(word, 12) for word in panel.words], parse_math=False)
        ax.set_xlim(-0.5, len(panel.words) - 0.5)
    else:
        ax.xaxis.set_major_locator(MaxNLocator(4))
    for stage in _in_order(info.stage):
        at = [i for i, own in enumerate(info.stage) if own == stage]
        x, y = [panel.x[i] for i in at], [info.promise[i] for i in at]
        ax.add_line(_dots(x, y, ms=3.5, color=COLOURS[_STAGES.get(stage, "muted")]))
    if info.winner is not None:
        x, y = [panel.x[info.winner]], [info.promise[info.winner]]
        ax.add_line(_dots(x, y, ms=8, color=COLOURS["claimed"], hollow=True))
    ax.autoscale_view()
    ax.axhline(info.claim, color=COLOURS["claimed"], lw=1, ls=(0, (4, 2)))
    ax.set_ylim(0, 1.15 * max((*info.promise, info.claim)))
    ax.set_xlabel(short(panel.parameter, 30), parse_math=False)
    ax.set_ylabel(info.ylabel)
    _finish(ax)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(fontsize=8)


# --- paper and pen -----------------------------------------------------------------------------

_LEGEND: dict[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (-0.06, 1.0),
    "borderaxespad": 0.2,
    "frameon": False,
    "fontsize": 7.5,
    "labelcolor": COLOURS["ink"],
    "handlelength": 1.6,
    "columnspacing": 1.0,
}


def _axes(ax: Axes | None, height: float = _SIZE[1]) -> Axes:
    if ax is not None:
        return ax
    return Figure(figsize=(_SIZE[0], height), layout="constrained").subplots()


def _finish(ax: Axes) -> None:
    """Take away what is not data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(COLOURS["rule"])
    ax.tick_params(colors=COLOURS["muted"], labelcolor=COLOURS["ink"], labelsize=8)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(color=COLOURS["ink"], fontsize=9)


def to_svg(ax: Axes) -> str:
    """Return the figure of `ax` as SVG: text stays text, nothing is painted behind it."""
    text = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure = ax.get_figure(root=True)
    assert figure is not None  # axes are made by a figure
    with (
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpaudit"}),
        warnings.catch_warnings(),
    ):
        # A reader's browser has the fonts that matplotlib lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    return text.getvalue()
