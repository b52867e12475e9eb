"""Pictures of one audit: ``..._info`` is what a plot shows, ``plot_...`` draws it on axes.

The infos are plain data, and the place for tests and for other plotting libraries. Drawing uses
figure objects only, never pyplot: no window, no global state, any backend.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from dpaudit.results import AuditResult, Verdict

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

MAX_CATEGORIES = 20
_SIZE = (4.1, 2.85)
_SMALLEST_DELTA = 1e-12
_RARE_EVENT = 0.01
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# --- the profile -------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProfileInfo:
    """What :func:`plot_profile` shows.

    Parameters
    ----------
    epsilon, claimed, certified : tuple of float
        The claimed and the certified delta over a grid of epsilons.
    estimated : tuple of float or None
        Delta without any guarantee; None when everything was computed exactly.
    violated : tuple of bool
        Where more is certified than the claim allows.
    point : (float, float)
        Epsilon and delta of the claim at which the audit compared.
    log : bool
        Whether deltas span so much that a log scale is needed.
    floor : float
        Where a log scale draws zeros, and whatever is too small to show.
    certified_label : str
        Name of the certified curve.
    """

    epsilon: tuple[float, ...]
    claimed: tuple[float, ...]
    certified: tuple[float, ...]
    estimated: tuple[float, ...] | None
    violated: tuple[bool, ...]
    point: tuple[float, float]
    log: bool
    floor: float
    certified_label: str


def profile_info(result: AuditResult) -> ProfileInfo:
    """Return the curves of an audit and the scale on which they can be read."""
    profile = result.profile
    exact = result.failure_prob == 0
    shown = [*profile.claimed_delta, *profile.certified_delta, result.claimed_delta]
    visible = [value for value in shown if value >= _SMALLEST_DELTA]
    least, most = min(visible, default=1.0), max(visible, default=1.0)
    both = zip(profile.certified_delta, profile.claimed_delta, strict=True)
    return ProfileInfo(
        epsilon=profile.epsilon,
        claimed=profile.claimed_delta,
        certified=profile.certified_delta,
        estimated=None if exact else profile.estimated_delta,
        violated=tuple(found > claimed * (1 + 1e-9) + 1e-12 for found, claimed in both),
        point=(result.claimed_epsilon, result.claimed_delta),
        log=least < 0.01 * most,
        floor=10.0 ** (math.ceil(math.log10(least)) - 2),
        certified_label="computed exactly" if exact else "certified lower bound",
    )


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


@dataclass(frozen=True)
class HistogramInfo:
    """What :func:`plot_histogram` shows.

    Parameters
    ----------
    xlabel, ylabel : str
        What the outputs are, and what their share is a share of.
    edges : tuple of float or None
        k + 1 edges of k numeric bins; None when all bins are categories.
    bins : tuple of str
        Words of the bins; one more than k when a bin stands beside the numeric axis, which is
        mostly "no answer".
    left, right : tuple of float
        Share of the draws of each side in each bin.
    inside : tuple of bool
        Whether the event fires in the bin.
    log : bool
        Whether the event is so rare that only a log scale shows it.
    """

    xlabel: str
    ylabel: str
    edges: tuple[float, ...] | None
    bins: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    inside: tuple[bool, ...]
    log: bool


def histogram_info(result: AuditResult) -> HistogramInfo:
    """Return where the outputs of both sides fell, as shares of the draws."""
    histogram, sampled = result.histogram, result.witness.counts is not None
    left, right = _shares(histogram.left), _shares(histogram.right)
    rows: list[_Row] = list(zip(histogram.bins, left, right, histogram.inside, strict=True))
    if histogram.edges is None and len(rows) > MAX_CATEGORIES:
        rows = _commonest(rows)
    event = [row for row in rows if row[3]]
    rare = max(sum(row[1] for row in event), sum(row[2] for row in event)) < _RARE_EVENT
    return HistogramInfo(
        xlabel=histogram.label if sampled else histogram.label.partition(" (expected")[0],
        ylabel="share of draws" if sampled else "probability",
        edges=histogram.edges,
        bins=tuple(row[0] for row in rows),
        left=tuple(row[1] for row in rows),
        right=tuple(row[2] for row in rows),
        inside=tuple(row[3] for row in rows),
        log=rare and histogram.edges is not None,
    )


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


_Row = tuple[str, float, float, bool]


def _commonest(rows: list[_Row]) -> list[_Row]:
    """Keep the commonest categories in their order; the rest become one inside, one outside."""
    order = sorted(range(len(rows)), key=lambda i: -max(rows[i][1], rows[i][2]))
    kept = [rows[i] for i in sorted(order[: MAX_CATEGORIES - 2])]
    for fires, where in ((True, " in the event"), (False, "")):
        rest = [rows[i] for i in order[MAX_CATEGORIES - 2 :] if rows[i][3] is fires]
        if rest:
            left, right = sum(row[1] for row in rest), sum(row[2] for row in rest)
            kept.append((f"{len(rest)} others{where}", left, right, fires))
    return kept


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


@dataclass(frozen=True)
class PowerBar:
    """One bar of :func:`plot_power`.

    Parameters
    ----------
    label, words : str
        Whose bar it is, and its number in words.
    certified_epsilon : float or None
        May be ``inf``; None when there is no twin.
    length : float
        Where the bar ends on the axis; finite.
    above : bool
        Whether the claim was refuted.
    """

    label: str
    words: str
    certified_epsilon: float | None
    length: float
    above: bool


@dataclass(frozen=True)
class PowerInfo:
    """What :func:`plot_power` shows: bars, the claimed epsilon, and the end of the axis."""

    bars: tuple[PowerBar, ...]
    claimed_epsilon: float
    limit: float


def power_info(result: AuditResult) -> PowerInfo:
    """Return the certified epsilon of the mechanism and of its twin beside the claim."""
    claimed, twin = result.claimed_epsilon, result.twin
    found = [(result.certified_epsilon, result.verdict)]
    if twin is not None:
        found.append((twin.certified_epsilon, twin.verdict))
    limit = 1.15 * max([claimed, *(value for value, _ in found if math.isfinite(value))])
    if any(value == math.inf for value, _ in found):
        limit = max(limit, 2 * claimed)
    limit = limit or 1.0
    bars = [
        PowerBar(label, f"≥ {number(value)}", value, min(value, limit), verdict is Verdict.REFUTED)
        for label, (value, verdict) in zip(("mechanism", "broken twin"), found, strict=False)
    ]
    if twin is None:
        bars.append(PowerBar("broken twin", "none given", None, 0.0, False))
    return PowerInfo(tuple(bars), claimed, limit)


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


def number(value: float) -> str:
    """Return a number with four digits, as people write it."""
    if value == math.inf:
        return "∞"
    if 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:.4g}".replace("e+0", "e")


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
