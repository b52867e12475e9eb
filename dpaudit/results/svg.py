"""Draw the description of a chart as SVG text, for pages.

The module has no dependencies. A page of sixty audits holds about three hundred charts. Direct SVG
code takes a millisecond and a few kilobytes per chart, which is a tenth of what a plotting library
needs. The colours may be CSS variables of the page's theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

from dpaudit.results.charts import COLUMNS, Chart, Panel, Point, Series

TEXT = 12.0
"""Size of letters in a chart."""

_LABEL = 12.5
_LINE = 15.0
_KEY = 20.0  # width of a sign in the legend
_GAP, _ROW = 12.0, 165.0  # gap between panels; height of each row if there are several
_NARROW = frozenset("ijlftr.,:;'|!()[]{}/ \u202f-")
_WIDE = frozenset("mwMW—%@≥≤−")


def themed(role: str) -> str:
    """Return the CSS variable of the page for the colour of a role."""
    return f"var(--{role})"


def coordinate(value: float) -> str:
    """Return a coordinate with at most one decimal.

    Examples
    --------
    >>> coordinate(12.04), coordinate(0.26), coordinate(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


def text_width(text: str, size: float = TEXT) -> float:
    """Return an estimate of the width of a text.

    The estimate is rather too large, because fonts differ.
    """
    widths = (
        0.38 if c in _NARROW else 1.0 if c in _WIDE or ord(c) > 0x2E80 else 0.63 for c in text
    )
    return size * sum(widths)


def svg_of(chart: Chart) -> str:
    """Return a chart as an ``<svg>`` element."""
    keys, top = _legend(chart)
    columns = min(len(chart.panels), COLUMNS) or 1
    rows = math.ceil(len(chart.panels) / columns) or 1
    width = (chart.width - _GAP * (columns - 1)) / columns
    height = chart.height - top if rows == 1 else _ROW
    parts = [keys]
    for place, panel in enumerate(chart.panels):
        row, column = divmod(place, columns)
        at = column * (width + _GAP), top + row * height
        parts.append(_Canvas(panel, at, (width, height)).draw())
    return wrap("".join(parts), chart.title, chart.width, top + rows * height)


def wrap(body: str, title: str, width: float, height: float, *, fixed: bool = False) -> str:
    """Return an ``<svg>`` element.

    For screen readers, an element with links is a group. With `fixed`, the element has its own
    size. Otherwise it fills the width of its place.
    """
    role = "group" if "<a " in body else "img"
    size = f'width="{coordinate(width)}" height="{coordinate(height)}" ' * fixed
    return (
        f'<svg {size}viewBox="0 0 {coordinate(width)} {coordinate(height)}" role="{role}" '
        f'aria-label="{html.escape(title)}" font-family="system-ui,sans-serif" '
        f'font-size="{TEXT:g}">{body}</svg>'
    )


def _legend(chart: Chart) -> tuple[str, float]:
    """Return the legend, wrapped into lines, and the y coordinate of its lower edge."""
    if not chart.legend:
        return "", 0.0
    parts, x, y = [], 0.0, 10.0
    for series in chart.legend:
        width = _KEY + text_width(series.label) + 8
        if x > 0 and x + width > chart.width:
            x, y = 0.0, y + _LINE
        middle = y - 3.5
        if series.is_surface:
            sign = _boxes(series, [(x, middle - 4.5)], [(x + 14, middle + 4.5)])
        else:
            points = [(x, middle), (x + 16, middle)] if series.kind == "line" else [(x + 8, middle)]
            sign = _marks(series, points, min(series.size, 4.5))
        parts += [sign, _text(x + _KEY, y, series.label)]
        x += width
    return f'<g fill="{themed("ink")}">{"".join(parts)}</g>', y + 4


class _Canvas:
    """One panel inside a rectangle of the chart."""

    def __init__(self, panel: Panel, at: Point, size: Point) -> None:
        self.panel = panel
        x, y = panel.x, panel.y
        self.x_ticks, self.y_ticks = x.marks(5 if size[0] > 250 else 4), y.marks()
        widest = max((text_width(words) for _, words in self.y_ticks), default=0.0)
        last = text_width(self.x_ticks[-1][1]) / 2 if self.x_ticks else 0.0
        name = _LABEL + 6 if y.label else 0.0
        self.edge, self.end = at[0], at[1] + size[1]
        self.left = at[0] + name + widest + (10 if self.y_ticks else 2)
        self.right = at[0] + size[0] - max(6.0, min(last, 40.0))
        self.top = at[1] + 8
        self.bottom = self.end - (20 if self.x_ticks else 6) - (18 if x.label else 0)

    def draw(self) -> str:
        """Return the parts in drawing order: surfaces, lines and dots, axes."""
        ordered = sorted(self.panel.series, key=lambda series: not series.is_surface)
        return "".join([*map(self._series, ordered), self._axes()])

    def _at(self, x: float, y: float) -> Point:
        across, up = self.panel.x.place(x), self.panel.y.place(y)
        left = self.left + across * (self.right - self.left)
        return left, self.bottom - up * (self.bottom - self.top)

    def _series(self, one: Series) -> str:
        points, ends = (
            [self._at(x, y) for x, y in pairs if math.isfinite(x) and not math.isnan(y)]
            for pairs in (one.points, one.ends)
        )
        if not points:
            return ""
        if one.kind == "band":
            return f'<path {_fill(one)} d="{_path(points + ends[::-1])}Z"/>'
        if one.is_surface:
            return _boxes(one, points, ends)
        return _marks(one, points, one.size)

    def _axes(self) -> str:
        x, y, left, bottom = self.panel.x, self.panel.y, self.left, self.bottom
        corner = f"{coordinate(left)} {coordinate(self.top)}V{coordinate(bottom)}"
        frame = f"M{corner}H{coordinate(self.right)}"
        words, names = [], []
        for value, word in self.x_ticks:
            at, _ = self._at(value, y.low)
            frame += "" if x.bare else f"M{coordinate(at)} {coordinate(bottom)}v4"
            words.append(_text(at, bottom + 16, word, "middle"))
        for value, word in self.y_ticks:
            _, at = self._at(x.low, value)
            frame += "" if y.bare else f"M{coordinate(left)} {coordinate(at)}h-4"
            words.append(_text(left - 7, at + 3.7, word, "end"))
        if x.label:
            names.append(_text((left + self.right) / 2, self.end - 4, x.label, "middle"))
        if y.label:
            place, middle = self.edge + _LABEL, (self.top + bottom) / 2
            turn = f' transform="rotate(-90 {coordinate(place)} {coordinate(middle)})"'
            names.append(_text(place, middle, y.label, "middle", turn))
        return (
            f'<path fill="none" stroke="{themed("rule")}" d="{frame}"/>'
            f'<g fill="{themed("ink")}">{"".join(words)}'
            f'<g font-size="{_LABEL:g}">{"".join(names)}</g></g>'
        )


# --- marks, at positions in the element ---------------------------------------------------------


def _fill(one: Series) -> str:
    fill = f'fill="{themed(one.role)}"'
    return fill if one.opacity == 1.0 else f'{fill} fill-opacity="{one.opacity:g}"'


def _marks(one: Series, points: Sequence[Point], size: float) -> str:
    """Return a line, or a dot or ring at each point."""
    colour = themed(one.role)
    if one.kind == "line":
        dash = f' stroke-dasharray="{" ".join(map(coordinate, one.dash))}"' if one.dash else ""
        pen = f'fill="none" stroke="{colour}" stroke-width="{coordinate(size)}"{dash}'
        return f'<path {pen} d="{_path(points)}"/>'
    places = [f"{coordinate(x)} {coordinate(y)}" for x, y in points]
    if one.kind == "dots":  # a line of no length with round ends is shorter than a circle
        pen = f'stroke="{colour}" stroke-width="{coordinate(2 * size)}" stroke-linecap="round"'
        return f'<path {pen} d="{"".join(f"M{place}h0" for place in places)}"/>'
    pen = f'fill="none" stroke="{colour}" stroke-width="2"'
    return "".join(
        f'<circle {pen} cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(size)}"/>'
        for x, y in points
    )


def _boxes(one: Series, corners: Sequence[Point], opposite: Sequence[Point]) -> str:
    """Return filled rectangles."""
    parts = []
    for (x, y), (x2, y2) in zip(corners, opposite, strict=True):
        left, right, top, bottom = min(x, x2), max(x, x2), min(y, y2), max(y, y2)
        place = f'x="{coordinate(left)}" y="{coordinate(top)}"'
        size = f'width="{coordinate(right - left)}" height="{coordinate(bottom - top)}"'
        parts.append(f"<rect {_fill(one)} {place} {size}/>")
    return "".join(parts)


def _path(points: Iterable[Point]) -> str:
    """Return the path through points, without repeated points."""
    places = [f"{coordinate(x)} {coordinate(y)}" for x, y in points]
    return "M" + "L".join(at for i, at in enumerate(places) if i == 0 or at != places[i - 1])


def _text(x: float, y: float, words: str, anchor: str = "", more: str = "") -> str:
    place = f'x="{coordinate(x)}" y="{coordinate(y)}"'
    place += f' text-anchor="{anchor}"' if anchor else ""
    return f"<text {place}{more}>{html.escape(words)}</text>"
