"""Curves of one audit on matplotlib's axes, for papers and for comparing results.

Drawing uses figure objects only, never pyplot: no window, no global state, any backend. The
pictures of the page, these two among them, are drawn by :mod:`dpaudit.results.charts`.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.results.axes import between
from dpaudit.results.charts import CERTIFIED_POINT, SMALLEST_POWER, delta_ticks, error_words
from dpaudit.results.infos import ProfileInfo, profile_info, tradeoff_info
from dpaudit.results.one_run_infos import ShownRun, one_run_info
from dpaudit.results.svg import COLOURS
from dpaudit.results.verdicts import Shown
from dpaudit.results.words import least, number, power_of_ten

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ModuleNotFoundError as error:
    if error.name != "matplotlib":
        raise
    raise ModuleNotFoundError(
        "plots need the package matplotlib, which is not installed here: pip install matplotlib, "
        "or dpaudit with its extra plot. Pages of a run need none",
        name="matplotlib",
    ) from None

__all__ = ["COLOURS", "plot_one_run", "plot_profile", "plot_tradeoff", "to_svg"]

_SIZE = (4.1, 2.85)


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
    if info.certified_point is not None:
        style |= {"ms": 5, "mfc": None, "color": COLOURS["certified"], "label": CERTIFIED_POINT}
        ax.plot([info.certified_point[0]], drawn([info.certified_point[1]]), **style)
    if info.log:
        _label_decades(ax, info)
    else:
        ax.set_ylim(bottom=0)
    ax.set_xlim(*info.limits)
    ax.set_xlabel("epsilon")
    ax.set_ylabel("delta")
    _finish(ax)
    ax.legend(ncols=2, **_LEGEND)
    return ax


def _label_decades(ax: Axes, info: ProfileInfo) -> None:
    """Tick decades in plain text."""
    words = delta_ticks(info)
    ax.yaxis.set_major_locator(FixedLocator(sorted(words)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: words.get(value, "")))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(info.floor * 0.6, max(words) * 1.6)


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
        [max(1 - beta, SMALLEST_POWER) for beta in curve[1:]] if info.log else curve
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
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda power, _: error_words(power)))


# --- one run -----------------------------------------------------------------------------------


def plot_one_run(result: ShownRun, ax: Axes | None = None) -> Axes:
    """Draw epsilon over the number of guesses of one run, on `ax` (or on new axes).

    Estimates by the share of right guesses at each look, which guarantee nothing, beside the
    certified epsilon, which is of all looks together, and the claimed one.
    """
    info = one_run_info(result)
    ax = _axes(ax)
    ax.set_xscale("log")
    dots: dict[str, Any] = {"color": COLOURS["estimated"], "ls": "none", "marker": "o", "ms": 4}
    ax.plot(info.guesses, info.estimated, label="estimated, no guarantee", **dots)
    most = info.guesses[info.telling], info.estimated[info.telling]
    dots |= {"ms": 9, "mfc": "none", "label": "look that shows most"}
    ax.plot([most[0]], [most[1]], **dots)
    at = f"at delta = {number(info.delta)}"
    label = f"certified: {least(info.certified)} {at}"
    ax.axhline(info.certified, color=COLOURS["certified"], lw=1.8, label=label)
    if info.claimed is not None:
        style: dict[str, Any] = {"color": COLOURS["claimed"], "lw": 1.4, "ls": (0, (4, 2))}
        ax.axhline(info.claimed, label=f"claimed: {number(info.claimed)}", **style)
    shown = (*info.estimated, info.certified, info.claimed or 0.0)
    low, high = min(0.0, *shown), max(1.0, *shown)
    ax.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    ax.set_xlim(info.guesses[0] / 1.15, info.guesses[-1] * 1.15)
    _tick_guesses(ax, info.guesses)
    ax.set_xlabel("guesses, the most confident first")
    ax.set_ylabel("epsilon")
    _finish(ax)
    ax.legend(ncols=2, **_LEGEND)
    return ax


def _tick_guesses(ax: Axes, guesses: Sequence[int]) -> None:
    """Tick a few of the looks, in whole numbers."""
    ticks = guesses[:: max(math.ceil(len(guesses) / 6), 1)]
    ax.xaxis.set_major_locator(FixedLocator(list(ticks)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(value):,}"))
    ax.xaxis.set_minor_locator(NullLocator())


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


def _axes(ax: Axes | None) -> Axes:
    return Figure(figsize=_SIZE, layout="constrained").subplots() if ax is None else ax


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
