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
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from dpaudit.report.infos import (
    HistogramInfo,
    ProfileInfo,
    histogram_info,
    number,
    power_info,
    profile_info,
)
from dpaudit.results import AuditResult

Floats = NDArray[np.float64]

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
        "twin": "#8b99a9",
        "left": "#0072b2",
        "right": "#de8f05",
    }
)
"""Roles and their colours; left and right stay apart for colour-blind readers."""

_SIZE = (4.1, 2.85)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# --- the profile -------------------------------------------------------------------------------


def plot_profile(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw claimed, certified and estimated delta over epsilon on `ax` (or on new axes)."""
    info = profile_info(result)
    ax = _axes(ax)

    def drawn(values: Sequence[float]) -> list[float]:
        return [max(value, info.floor) for value in values] if info.log else list(values)

    claimed, certified = drawn(info.claimed), drawn(info.certified)
    if info.log:
        ax.set_yscale("log")
    ax.plot(info.epsilon, claimed, color=COLOURS["claimed"], lw=1.8, label="claimed")
    label = info.certified_label
    ax.plot(info.epsilon, certified, color=COLOURS["certified"], lw=1.8, label=label)
    if info.estimated is not None:
        style: dict[str, Any] = {"color": COLOURS["estimated"], "lw": 1.1, "ls": (0, (4, 2))}
        ax.plot(info.epsilon, drawn(info.estimated), label="estimated, no guarantee", **style)
    if any(info.violated):
        style = {"color": COLOURS["violation"], "alpha": 0.25, "lw": 0}
        between = _between(info.epsilon, claimed, certified, info.log)
        ax.fill_between(*between, label="certified above claim", **style)
    style = {"marker": "o", "ms": 6, "mfc": "none", "mew": 1.6, "ls": "none", "clip_on": False}
    style |= {"color": COLOURS["claimed"], "label": "point of comparison", "zorder": 5}
    ax.plot([info.point[0]], drawn([info.point[1]]), **style)
    if info.log:
        _label_decades(ax, info)
    else:
        ax.set_ylim(bottom=0)
    ax.set_xlim(min(info.epsilon), max(info.epsilon) or 1.0)
    ax.set_xlabel("epsilon")
    ax.set_ylabel("delta")
    _finish(ax)
    ax.legend(ncols=2, **_LEGEND)
    return ax


def _between(
    epsilon: Sequence[float], low: Sequence[float], high: Sequence[float], log: bool
) -> tuple[Floats, Floats, Floats]:
    """Return epsilons, `low`, and whatever is higher, with the crossings as they are drawn."""
    grid = np.array(epsilon)
    curves = [np.log(curve) if log else np.array(curve) for curve in (low, high)]
    gap = curves[1] - curves[0]
    flips = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    crossings = grid[flips] + np.diff(grid)[flips] * gap[flips] / (gap[flips] - gap[flips + 1])
    fine = np.union1d(grid, crossings)
    first, second = (np.interp(fine, grid, curve) for curve in curves)
    second = np.maximum(first, second)
    return (fine, np.exp(first), np.exp(second)) if log else (fine, first, second)


def _label_decades(ax: Axes, info: ProfileInfo) -> None:
    """Tick decades in plain text, at most six; the lowest stands for zero."""
    shown = [*info.claimed, *info.certified, *(info.estimated or ()), info.point[1]]
    low, high = round(math.log10(info.floor)), math.ceil(math.log10(max(shown)))
    step = max(1, math.ceil((high - low) / 5))
    ticks = [low, *range(high, low, -step)]
    zero = "0" if all(value == 0 or value > info.floor for value in shown) else "≈ 0"
    words = {10.0**tick: _power_of_ten(10.0**tick) for tick in ticks} | {10.0**low: zero}
    ax.yaxis.set_major_locator(FixedLocator(list(words)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words.get(value, "")))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(info.floor * 0.6, 10.0**high * 1.6)


def _power_of_ten(value: float) -> str:
    exponent = round(math.log10(value))
    return "1" if exponent == 0 else "10" + str(exponent).translate(_SUPERSCRIPT)


# --- the witness -------------------------------------------------------------------------------


def plot_histogram(result: AuditResult, ax: Axes | None = None) -> Axes:
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
    event = "event fires" if any(info.inside) else "event: less than a bin"
    ax.legend(handles, ["left dataset", "right dataset", event], ncols=3, **_LEGEND)
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
        words = [*words[: len(ticks)], _short(info.bins[count], 16)]
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
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power_of_ten(value)))
    ax.set_xticks(ticks, words, parse_math=False)
    ax.set_xlim(low, high)
    ax.set_xlabel(_short(info.xlabel, 60), parse_math=False)
    ax.set_ylabel(info.ylabel)


def _draw_categories(ax: Axes, info: HistogramInfo) -> None:
    places = range(len(info.bins))
    _shade(ax.axhspan, [(place - 0.5, place + 0.5) for place in places if info.inside[place]])
    for side, shift in (("left", -0.19), ("right", 0.19)):
        bar: dict[str, Any] = {"height": 0.38, "color": COLOURS[side], "alpha": 0.75, "lw": 0}
        ax.barh([place + shift for place in places], getattr(info, side), **bar)
    ax.set_yticks(places, [_short(name, 24) for name in info.bins], parse_math=False)
    ax.set_ylim(len(info.bins) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel(f"{info.ylabel}, by {_short(info.xlabel, 40)}", parse_math=False)
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


def plot_power(result: AuditResult, ax: Axes | None = None) -> Axes:
    """Draw what was certified of mechanism and twin beside the claim, on `ax` (or new axes)."""
    info = power_info(result)
    ax = _axes(ax)
    colours = (COLOURS["violation" if info.bars[0].above else "certified"], COLOURS["twin"])
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


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


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
