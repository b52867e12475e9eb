"""Tests of charts as SVG, for the positions of marks, escaping and omissions."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.results import charts
from dpaudit.results.charts import Axis, Chart, Panel, Series
from dpaudit.results.svg import coordinate, svg_of, text_width, wrap
from tests.results.test_charts import KINDS, found

UNIT = Axis(0.0, 1.0, ticks=())
NAMED = Axis(0.0, 1.0, "name", [(0.0, "0"), (1.0, "1")])
DIAGONAL = ((0.0, 0.0), (1.0, 1.0))


def drawn(*series: Series, x: Axis = UNIT, y: Axis = UNIT) -> str:
    return svg_of(Chart("x", [Panel(x, y, series)]))


def paths(svg: str, role: str) -> list[str]:
    """Return the paths of one colour, in painting order."""
    return re.findall(rf'stroke="var\(--{role}\)"[^>]* d="([^"]*)"', svg)


def words(svg: str) -> list[str]:
    return re.findall(r">([^<>]+)</text>", svg)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_can_be_drawn(kind):
    for chart in (*charts.charts_of(found()[kind]), charts.tradeoff(found()[kind])):
        svg = svg_of(chart)
        assert ET.fromstring(svg).get("aria-label") == chart.title
        assert not re.search("nan|inf", re.sub(r">[^<]*</text>", "", svg))
        assert svg == svg_of(chart)
        assert len(svg) < 15_000


def test_what_is_written_is_text_and_well_formed():
    nasty = "<script>\"&'"
    axis = Axis(0.0, 1.0, nasty, [(0.5, nasty)])
    svg = svg_of(Chart(nasty, [Panel(axis, axis, [Series("line", "left", DIAGONAL, nasty)])]))
    root = ET.fromstring(svg)
    assert root.get("aria-label") == nasty
    assert root.get("role") == "img"
    assert sum(element.text == nasty for element in root.iter()) == 5
    assert "<script" not in svg


def test_a_line_keeps_its_bends_and_drops_repeats():
    bends = [(0, 0), (0.1, 0.1), (0.2, 0.2), (0.5, 0.5), (0.5, 0.5), (1.0, 0.0)]
    (path,) = paths(drawn(Series("line", "left", bends)), "left")
    assert path.count("L") == 4


def test_what_is_no_number_is_not_drawn():
    odd = [(0, 0), (math.nan, 0.5), (math.inf, 0.5), (1, math.nan)]
    svg = drawn(Series("line", "left", odd), Series("line", "right"))
    assert [path.count("L") for path in paths(svg, "left")] == [0]
    assert paths(svg, "right") == []
    assert not re.search("nan|inf", svg)


def test_surfaces_lie_below_lines_and_the_legend_keeps_the_order_of_the_series():
    corner = ((1.0, 1.0),)
    svg = drawn(
        Series("line", "left", DIAGONAL, "a line"),
        Series("band", "event", ((0, 0), (1, 0)), "a band", ((0, 1), (1, 1)), opacity=0.5),
        Series("bars", "right", ((0.0, 0.0),), "a bar", corner),
        Series("rings", "claimed", corner, "a ring"),
        Series("bars", "mutant", (), "a key"),
    )
    assert words(svg) == ["a line", "a band", "a bar", "a ring", "a key"]
    body = svg.split("</g>", 1)[1]
    places = [body.index(f"--{role})") for role in ("event", "right", "left", "claimed")]
    assert places == sorted(places)
    assert 'fill-opacity="0.5"' in body
    assert "--mutant" not in body


def test_a_long_legend_is_wrapped_and_moves_the_chart_down():
    def bottom(count: int) -> float:
        keys = [Series("bars", "left", (), f"a rather long label {i}") for i in range(count)]
        heights = {float(y) for y in re.findall(r'<text x="[^"]*" y="([^"]*)"', drawn(*keys))}
        assert len(heights) == math.ceil(count / 2)
        return max(heights)

    assert bottom(2) < bottom(3) < bottom(5)


def texts(svg: str) -> Iterator[tuple[float, float, float, bool]]:
    """Yield the left end, the right end, the height and the rotation of each text."""
    for element in ET.fromstring(svg).iter("text"):
        x, y = float(element.get("x", "nan")), float(element.get("y", "nan"))
        width = text_width(element.text or "")
        start = {"end": x - width, "middle": x - width / 2}.get(element.get("text-anchor", ""), x)
        yield start, start + width, y, "transform" in element.attrib


def test_everything_stays_inside_the_chart():
    line = Series("line", "left", ((-5, -3), (9, 4)))
    svg = drawn(line, x=NAMED, y=Axis(0.0, 1.0, "name", [(0.0, "a long name")]))
    for start, end, y, turned in texts(svg):
        assert turned or (start >= -1 and end <= 401)
        assert 0 < y < 280
    (path,) = paths(svg, "left")
    assert all(0 <= float(number) <= 400 for number in re.findall(r"[\d.]+", path))


def test_panels_stand_side_by_side_and_share_a_legend():
    dots = Series("dots", "left", DIAGONAL, "a dot")
    svg = svg_of(Chart("x", [Panel(NAMED, UNIT, [dots])] * 3))
    assert words(svg).count("a dot") == 1
    first, second, third = (
        [tuple(map(float, xy)) for xy in re.findall(r"M([\d.]+) ([\d.]+)h0", path)]
        for path in paths(svg, "left")[1:]
    )
    assert first[1][0] < 200 < second[0][0]
    assert first[0][1] == second[0][1] < third[1][1]
    assert 'viewBox="0 0 400' in svg


@given(st.floats(-1e4, 1e4))
def test_coordinates_are_short_and_near(value):
    text = coordinate(value)
    assert abs(float(text) - value) <= 0.051
    assert not text.endswith(".0")
    assert text != "-0"


def test_a_picture_with_links_is_a_group_to_a_screen_reader() -> None:
    assert 'role="img"' in wrap("<g/>", "points", 1, 1)
    assert 'role="group"' in wrap('<a href="#thm1"></a>', "what rests on what", 1, 1)
