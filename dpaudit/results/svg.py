"""Small pictures as SVG text: axes, marks in data coordinates, a legend above. No dependencies.

A page of sixty audits holds some three hundred pictures. Written by hand, one takes a millisecond
and a few kilobytes, a tenth of what a plotting library needs; and its colours may be variables of
the page's theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from dpaudit.results.axes import TEXT, Axis, text_width

COLOURS = MappingProxyType(
    {
        "ink": "#1c2733",
        "muted": "#5c6979",
        "rule": "#c3ccd6",
        "event": "#e4e9ef",
        "claimed": "#1c2734",
        "certified": "#00757d",
        "estimated": "#8a6d9b",
        "violation": "#c4302b",
        "mutant": "#8b99a9",
        "left": "#0072b2",
        "right": "#de8f05",
    }
)
"""Roles and their colours; left and right stay apart for colour-blind readers."""

Palette = Callable[[str], str]
_Sign = Callable[[float, float], str]  # of the legend, at x and about y

WIDTH, HEIGHT = 400.0, 280.0
_LABEL = 11.5
_LINE = 15.0
_HATCH = 6.0  # between strokes, along either axis
_KEY = 20.0  # width of a sign in the legend


def themed(role: str) -> str:
    """Return the colour of a role as a variable of the page."""
    return f"var(--{role})"


def neutral(role: str) -> str:
    """Return the colour of a role for a page whose theme is unknown, be it light or dark."""
    by_role = {"ink": "currentColor", "claimed": "currentColor", "event": "#8887", "rule": "#8889"}
    tones = {"muted": "#84909c", "certified": "#00848d", "violation": "#d5413b"}
    return (by_role | tones).get(role, COLOURS[role])


def coordinate(value: float) -> str:
    """Return a coordinate with one digit, and no more letters than it takes.

    Examples
    --------
    >>> coordinate(12.04), coordinate(0.26), coordinate(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")


@dataclass
class Chart:
    """A picture of two axes: surfaces below, lines and dots above, each in the order of the calls.

    Parameters
    ----------
    x, y : Axis
        The axes.
    palette : callable, optional
        Colour of a role. Default :func:`themed`.
    width, height : float, optional
        With legend and labels.
    """

    x: Axis
    y: Axis
    palette: Palette = themed
    width: float = WIDTH
    height: float = HEIGHT
    _surfaces: list[Callable[[], str]] = field(default_factory=list)
    _marks: list[Callable[[], str]] = field(default_factory=list)
    _legend: list[tuple[str, _Sign]] = field(default_factory=list)

    # --- marks ---

    def line(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        role: str,
        *,
        width: float = 2.2,
        dash: str = "",
        label: str = "",
    ) -> None:
        """Join points."""
        points = list(zip(xs, ys, strict=True))
        style = f'fill="none" stroke="{self.palette(role)}" stroke-width="{coordinate(width)}"'
        style += f' stroke-dasharray="{dash}"' if dash else ""
        self._marks.append(lambda: f'<path {style} d="{self._path(points)}"/>' if points else "")
        self._name(label, lambda x, y: f'<path {style} d="M{coordinate(x)} {coordinate(y)}h16"/>')

    def area(
        self,
        xs: Iterable[float],
        low: Iterable[float],
        high: Iterable[float],
        role: str,
        *,
        opacity: float = 1.0,
        label: str = "",
    ) -> None:
        """Fill what lies between two curves over the same x."""
        grid, below, above = list(xs), list(low), list(high)
        outline = [*zip(grid, below, strict=True), *zip(grid[::-1], above[::-1], strict=True)]
        style = self._fill(role, opacity)
        self._surfaces.append(lambda: f'<path {style} d="{self._path(outline)}Z"/>')
        self._name(label, _patch(style))

    def box(
        self,
        x: tuple[float, float],
        y: tuple[float, float] | None,
        role: str,
        *,
        opacity: float = 1.0,
        label: str = "",
        hatched: bool = False,
    ) -> None:
        """Fill a rectangle, or hatch it; over the whole height where `y` is None."""
        style = self._fill(role, opacity)

        def mark() -> str:
            low, high = (self.y.low, self.y.high) if y is None else y
            (left, top), (right, bottom) = self._at(x[0], high), self._at(x[1], low)
            left, right = min(left, right), max(left, right)
            top, bottom = min(top, bottom), max(top, bottom)
            if hatched:
                return self._hatching(left, top, right, bottom)
            size = f'width="{coordinate(right - left)}" height="{coordinate(bottom - top)}"'
            return f'<rect {style} x="{coordinate(left)}" y="{coordinate(top)}" {size}/>'

        self._surfaces.append(mark)
        if label:
            self.name(label, role, opacity=opacity, hatched=hatched)

    def dots(
        self,
        xs: Iterable[float],
        ys: Iterable[float],
        role: str,
        *,
        radius: float = 3.5,
        hollow: bool = False,
        label: str = "",
    ) -> None:
        """Put a dot, or a ring, at each point."""
        points = list(zip(xs, ys, strict=True))
        colour = self.palette(role)
        style = f'fill="none" stroke="{colour}" stroke-width="2"' if hollow else f'fill="{colour}"'
        # A line of no length with round ends is a dot, and shorter to write than a circle.
        pen = f'stroke="{colour}" stroke-width="{coordinate(2 * radius)}" stroke-linecap="round"'

        def mark() -> str:
            places = [tuple(map(coordinate, self._at(*point))) for point in points]
            if hollow:
                return "".join(
                    f'<circle {style} cx="{x}" cy="{y}" r="{coordinate(radius)}"/>'
                    for x, y in places
                )
            path = "".join(f"M{x} {y}h0" for x, y in places)
            return f'<path {pen} d="{path}"/>' if places else ""

        self._marks.append(mark)
        small = coordinate(min(radius, 4.5))

        def sign(x: float, y: float) -> str:
            return f'<circle {style} cx="{coordinate(x + 8)}" cy="{coordinate(y)}" r="{small}"/>'

        self._name(label, sign)

    def level(
        self,
        role: str,
        *,
        x: float | None = None,
        y: float | None = None,
        width: float = 1.5,
        dash: str = "5 3",
        label: str = "",
    ) -> None:
        """Draw a line across the picture, at one x or at one y."""
        xs = (self.x.low, self.x.high) if x is None else (x, x)
        ys = (self.y.low, self.y.high) if y is None else (y, y)
        self.line(xs, ys, role, width=width, dash=dash, label=label)

    def name(self, label: str, role: str, *, opacity: float = 1.0, hatched: bool = False) -> None:
        """Add a patch of colour, or a hatched one, to the legend: for what several marks draw."""
        if hatched:
            self._name(label, lambda x, y: self._hatching(x, y - 4.5, x + 14, y + 4.5))
        else:
            self._name(label, _patch(self._fill(role, opacity)))

    def arrow(self, x: float, y: float, role: str) -> None:
        """Put a head at the end of a bar that goes on for ever."""

        def mark() -> str:
            left, middle = self._at(x, y)
            return (
                f'<path {self._fill(role, 1.0)} d="M{coordinate(left - 9)} '
                f'{coordinate(middle - 16)}l15 16l-15 16z"/>'
            )

        self._marks.append(mark)

    # --- the picture ---

    def svg(self, title: str) -> str:
        """Return the picture as an element; `title` is its name for those who do not see it."""
        return wrap(self.body(), title, self.width, self.height)

    def body(self) -> str:
        """Return what is inside the element."""
        keys = self.legend()
        self._measure(keys[1])
        marks = (mark() for mark in (*self._surfaces, *self._marks))
        return "".join((keys[0], *marks, self._axes()))

    def _measure(self, top: float) -> None:
        widest = max((text_width(words) for _, words in self.y.ticks), default=0.0)
        last = text_width(self.x.ticks[-1][1]) / 2 if self.x.ticks else 0.0
        name = _LABEL + 6 if self.y.label else 0.0
        self._left = name + widest + (10 if self.y.ticks else 2)
        self._right = self.width - max(6.0, min(last, 40.0))
        self._top = top + 8
        self._bottom = self.height - (20 if self.x.ticks else 6) - (18 if self.x.label else 0)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        left = self._left + self.x.part(x) * (self._right - self._left)
        return left, self._bottom - self.y.part(y) * (self._bottom - self._top)

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        """Return the path through points, without those that nobody sees."""
        places: list[tuple[float, float]] = []
        for x, y in points:
            if math.isnan(x) or math.isnan(y) or math.isinf(x):
                continue
            at = self._at(x, y)
            while len(places) > 1 and _on_the_way(places[-2], places[-1], at):
                places.pop()
            places.append(at)
        words = [f"{coordinate(x)} {coordinate(y)}" for x, y in places]
        return "M" + "L".join(
            word for i, word in enumerate(words) if i == 0 or word != words[i - 1]
        )

    def _fill(self, role: str, opacity: float) -> str:
        fill = f'fill="{self.palette(role)}"'
        return fill if opacity == 1.0 else f'{fill} fill-opacity="{opacity:g}"'

    def _hatching(self, left: float, top: float, right: float, bottom: float) -> str:
        """Return slanted strokes that fill a rectangle, evenly over the whole picture."""
        first, last = math.ceil((left + top) / _HATCH), math.floor((right + bottom) / _HATCH)
        strokes = []
        for at in (_HATCH * place for place in range(first, last + 1)):  # where x + y = at
            x = max(left, at - bottom), min(right, at - top)
            ends = [f"{coordinate(end)} {coordinate(at - end)}" for end in x]
            strokes.append(f"M{ends[0]}L{ends[1]}")
        return f'<path class="hatched" stroke="{self.palette("rule")}" d="{"".join(strokes)}"/>'

    def _name(self, label: str, sign: _Sign) -> None:
        if label:
            self._legend.append((label, sign))

    def legend(self) -> tuple[str, float]:
        """Return the legend, wrapped into lines, and where it ends."""
        if not self._legend:
            return "", 0.0
        parts, x, y = [], 0.0, 10.0
        for label, sign in self._legend:
            width = _KEY + text_width(label) + 8
            if x > 0 and x + width > self.width:
                x, y = 0.0, y + _LINE
            parts.append(sign(x, y - 3.5))
            parts.append(
                f'<text x="{coordinate(x + _KEY)}" y="{coordinate(y)}">{_safe(label)}</text>'
            )
            x += width
        return f'<g fill="{self.palette("ink")}">{"".join(parts)}</g>', y + 4

    def _axes(self) -> str:
        left, right, top, bottom = self._left, self._right, self._top, self._bottom
        frame = f"M{coordinate(left)} {coordinate(top)}V{coordinate(bottom)}H{coordinate(right)}"
        words = []
        for value, word in self.x.ticks:
            at, _ = self._at(value, self.y.low)
            frame += "" if self.x.bare else f"M{coordinate(at)} {coordinate(bottom)}v4"
            words.append(_text(at, bottom + 16, word, "middle"))
        for value, word in self.y.ticks:
            _, at = self._at(self.x.low, value)
            frame += "" if self.y.bare else f"M{coordinate(left)} {coordinate(at)}h-4"
            lines = word.split("\n")
            for index, line in enumerate(lines):
                down = at + 3.7 + 12.5 * (index - (len(lines) - 1) / 2)
                words.append(_text(left - 7, down, line, "end"))
        names = []
        if self.x.label:
            names.append(_text((left + right) / 2, self.height - 4, self.x.label, "middle"))
        if self.y.label:
            middle = (top + bottom) / 2
            turn = f' transform="rotate(-90 {coordinate(_LABEL)} {coordinate(middle)})"'
            names.append(_text(_LABEL, middle, self.y.label, "middle", turn))
        return (
            f'<path fill="none" stroke="{self.palette("rule")}" d="{frame}"/>'
            f'<g fill="{self.palette("ink")}">{"".join(words)}'
            f'<g font-size="{_LABEL:g}">{"".join(names)}</g></g>'
        )


def wrap(body: str, title: str, width: float, height: float) -> str:
    """Return an element around what is inside it; where links are, a group to a screen reader."""
    role = "group" if "<a " in body else "img"
    return (
        f'<svg viewBox="0 0 {coordinate(width)} {coordinate(height)}" role="{role}" '
        f'aria-label="{_safe(title)}" font-family="system-ui,sans-serif" font-size="{TEXT:g}">'
        f"{body}</svg>"
    )


def _safe(text: str) -> str:
    return html.escape(text, quote=True)


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    place = f'x="{coordinate(x)}" y="{coordinate(y)}" text-anchor="{anchor}"'
    return f"<text {place}{more}>{_safe(words)}</text>"


def _patch(style: str) -> _Sign:
    def sign(x: float, y: float) -> str:
        place = f'x="{coordinate(x)}" y="{coordinate(y - 4.5)}"'
        return f'<rect {style} {place} width="14" height="9"/>'

    return sign


def _on_the_way(
    first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]
) -> bool:
    """Whether a straight line from the first to the last point passes the middle one in between."""
    (a, b), (c, d), (e, f) = first, middle, last
    length = math.hypot(e - a, f - b)
    inside = (c - a) * (e - a) + (d - b) * (f - b)
    off = abs((e - a) * (d - b) - (f - b) * (c - a))
    return length > 0 and off <= 0.002 * length and 0 <= inside <= length * length
