"""Draw the description of a chart with matplotlib, for papers and for comparing results.

The module uses figure objects only, and never pyplot. So the module opens no window, changes no
global state, and works with any backend.
"""

from __future__ import annotations

import math
from typing import Any

from dpaudit.results.charts import COLOURS, COLUMNS, Axis, Chart, Panel, Series

try:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as Ruler
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "matplotlib":
        raise
    raise ModuleNotFoundError(
        "plots need the package matplotlib, which is not installed here. Run pip install "
        "'dpaudit[plot]'. The pages of a run do not need matplotlib",
        name="matplotlib",
    ) from None

_POINTS = 0.8  # points of matplotlib per pixel of a description
_SIZE = (4.1, 2.85)
_LEGEND: dict[str, Any] = {
    "loc": "lower left",
    "bbox_to_anchor": (-0.06, 1.0),
    "borderaxespad": 0.2,
    "frameon": False,
    "fontsize": 7.5,
    "labelcolor": COLOURS["ink"],
    "handlelength": 1.6,
    "columnspacing": 1.0,
    "ncols": 2,
}


def draw(chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw a chart on `ax`, or on new axes; return the first axes.

    Parameters
    ----------
    chart : Chart
        A description from :mod:`dpaudit.results.charts`.
    ax : Axes, optional
        Axes to draw on. A chart of several panels brings its own axes.

    Raises
    ------
    ValueError
        If `ax` is given, and the chart has several panels.
    """
    if ax is not None and len(chart.panels) > 1:
        raise ValueError(f"ax must be None for a chart of {len(chart.panels)} panels")
    axes = [ax] if ax is not None else _new_axes(chart)
    for panel, own in zip(chart.panels, axes, strict=False):
        _draw_panel(panel, own)
    found = [pair for own in axes for pair in zip(*own.get_legend_handles_labels(), strict=True)]
    by_label = {label: handle for handle, label in reversed(found)}
    labels = list(by_label)[::-1]
    if labels:
        axes[0].legend([by_label[label] for label in labels], labels, **_LEGEND)
    return axes[0]


def _new_axes(chart: Chart) -> list[Axes]:
    columns = min(len(chart.panels), COLUMNS) or 1
    rows = math.ceil(len(chart.panels) / columns) or 1
    size = _SIZE[0] * (1 + 0.5 * (columns - 1)), _SIZE[1] * rows * chart.height / 280.0
    return list(
        Figure(figsize=size, layout="constrained").subplots(rows, columns, squeeze=False).flat
    )


def _draw_panel(panel: Panel, ax: Axes) -> None:
    for name, axis, ruler in (("x", panel.x, ax.xaxis), ("y", panel.y, ax.yaxis)):
        if axis.log:
            getattr(ax, f"set_{name}scale")("log")
        _tick(axis, ruler)
    for series in panel.series:
        (_fill if series.is_surface else _plot)(series, ax)
    ax.set(xlim=(panel.x.low, panel.x.high), ylim=(panel.y.low, panel.y.high))
    ax.set_xlabel(_plain(panel.x.label), color=COLOURS["ink"], fontsize=9)
    ax.set_ylabel(_plain(panel.y.label), color=COLOURS["ink"], fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(COLOURS["rule"])
    ax.tick_params(colors=COLOURS["muted"], labelcolor=COLOURS["ink"], labelsize=8)


def _tick(axis: Axis, ruler: Ruler) -> None:
    """Place the ticks of the description on the axes.

    Linear axes without described ticks keep the default ticks of matplotlib.
    """
    if axis.ticks is None and not axis.log:
        return
    ticks = axis.marks()
    ruler.set_major_locator(FixedLocator([value for value, _ in ticks]))
    ruler.set_major_formatter(FixedFormatter([_plain(words) for _, words in ticks]))
    ruler.set_minor_locator(NullLocator())
    if axis.bare:
        ruler.set_tick_params(length=0)


def _plot(series: Series, ax: Axes) -> None:
    """Draw a line, dots or rings."""
    style: dict[str, Any] = {"color": COLOURS[series.role], "label": _plain(series.label)}
    if series.kind == "line":
        style |= {"lw": _POINTS * series.size, "ls": (0, series.dash) if series.dash else "-"}
    else:
        style |= {"ls": "none", "marker": "o", "ms": 1.6 * _POINTS * series.size, "clip_on": False}
        style |= {"zorder": 5}
        if series.kind == "rings":
            style |= {"mfc": "none", "mew": 2 * _POINTS}
    x, y = zip(*series.points, strict=True) if series.points else ((), ())
    ax.plot(x, y, **style)


def _fill(series: Series, ax: Axes) -> None:
    """Fill a band, or rectangles."""
    polygons = (
        [[*series.points, *series.ends[::-1]]]
        if series.kind == "band"
        else [
            [(x, y), (x2, y), (x2, y2), (x, y2)]
            for (x, y), (x2, y2) in zip(series.points, series.ends, strict=True)
        ]
    )
    style: dict[str, Any] = {"facecolor": COLOURS[series.role], "alpha": series.opacity, "lw": 0}
    surface = PolyCollection(polygons, label=_plain(series.label), **style)
    ax.add_collection(surface, autolim=False)


def _plain(words: str) -> str:
    """Return text escaped so that matplotlib does not read it as a formula."""
    return words.replace("$", r"\$")
