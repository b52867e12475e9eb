"""The writer of small pictures: where marks fall, what is escaped, what is left out."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.results.axes import Axis, steps, text_width
from dpaudit.results.svg import COLOURS, Chart, coordinate, neutral, themed, wrap

UNIT = Axis(0.0, 1.0)
NAMED = Axis(0.0, 1.0, [(0.0, "0"), (1.0, "1")], "name")


def paths(svg: str, role: str) -> list[str]:
    """The paths of one colour, in the order in which they are painted."""
    return re.findall(rf'stroke="var\(--{role}\)"[^>]* d="([^"]*)"', svg)


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0.0, 1.0, 5, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.0, 2.1, 5, [0.0, 0.5, 1.0, 1.5, 2.0]),
        (0.0, 0.3, 5, [0.0, 0.1, 0.2, 0.3]),
        (-4.2, 5.7, 5, [-4.0, -2.0, 0.0, 2.0, 4.0]),
        (3.0, 3.0, 5, [3.0]),
        (0.0, math.inf, 5, [0.0]),
    ],
)
def test_ticks_are_round(low, high, most, ticks):
    assert steps(low, high, most) == ticks


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 8))
def test_ticks_are_few_and_between_the_limits(low, span, most):
    found = steps(low, low + span, most)
    assert 1 <= len(found) <= most
    room = 1e-6 * max(span, abs(low) * 1e-9)
    assert all(low - room <= tick <= low + span + room for tick in found)
    assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("axis", "value", "part"),
    [
        (Axis(0.0, 2.0), 0.5, 0.25),
        (Axis(2.0, 0.0), 0.5, 0.75),
        (Axis(0.0, 2.0), 7.0, 1.0),
        (Axis(0.0, 2.0), -7.0, 0.0),
        (Axis(0.0, 2.0), math.inf, 1.0),
        (Axis(0.01, 1.0, log=True), 0.1, 0.5),
        (Axis(0.01, 1.0, log=True), 0.0, 0.0),
        (Axis(1.0, 0.01, log=True), 0.0, 1.0),
        (Axis(3.0, 3.0), 3.0, 1.0),
    ],
)
def test_values_have_their_place_on_an_axis(axis, value, part):
    assert axis.part(value) == pytest.approx(part)


def test_what_is_written_is_text_and_well_formed():
    nasty = "<script>\"&'"
    axis = Axis(0.0, 1.0, [(0.5, nasty)], nasty)
    chart = Chart(axis, axis)
    chart.line([0, 1], [0, 1], "left", label=nasty)
    svg = chart.svg(nasty)
    root = ET.fromstring(svg)
    assert root.get("aria-label") == nasty
    assert root.get("role") == "img"
    assert sum(element.text == nasty for element in root.iter()) == 5
    assert "<script" not in svg


def test_a_line_keeps_its_bends_and_drops_what_lies_between():
    chart = Chart(UNIT, UNIT)
    chart.line([0, 0.1, 0.2, 0.5, 0.5, 1.0], [0, 0.1, 0.2, 0.5, 0.5, 0.0], "left")
    (path,) = paths(chart.svg("x"), "left")
    assert path.count("L") == 2


def test_what_is_no_number_is_not_drawn():
    chart = Chart(UNIT, UNIT)
    chart.line([0, math.nan, math.inf, 1], [0, 0.5, 0.5, math.nan], "left")
    chart.line([], [], "right")
    svg = chart.svg("x")
    assert [path.count("L") for path in paths(svg, "left")] == [0]
    assert paths(svg, "right") == []
    assert "nan" not in svg
    assert "inf" not in svg


def test_surfaces_lie_below_lines_and_the_legend_keeps_the_order_of_the_calls():
    chart = Chart(UNIT, UNIT)
    chart.line([0, 1], [0, 1], "left", label="a line")
    chart.area([0, 1], [0, 0], [1, 1], "event", opacity=0.5, label="an area")
    chart.box((0, 1), None, "right", label="a box")
    chart.dots([0.5], [0.5], "claimed", hollow=True, label="a ring")
    chart.name("a patch", "mutant")
    svg = chart.svg("x")
    assert re.findall(r">([^<>]+)</text>", svg) == [
        "a line", "an area", "a box", "a ring", "a patch"
    ]  # fmt: skip
    drawn = svg.split("</g>", 1)[1]
    places = [drawn.index(f"--{role})") for role in ("event", "right", "left", "claimed")]
    assert places == sorted(places)
    assert 'fill-opacity="0.5"' in drawn


def test_a_long_legend_is_wrapped_and_moves_the_picture_down():
    def top(labels: int) -> float:
        chart = Chart(UNIT, UNIT)
        for index in range(labels):
            chart.name(f"a rather long label {index}", "left")
        heights = {float(y) for y in re.findall(r'<text x="[^"]*" y="([^"]*)"', chart.svg("x"))}
        assert len(heights) == math.ceil(labels / 2)
        return max(heights)

    assert top(2) < top(3) < top(5)


def test_everything_stays_inside_the_picture():
    chart = Chart(NAMED, Axis(0.0, 1.0, [(0.0, "a long name"), (1.0, "two\nlines")], "name"))
    chart.line([-5, 9], [-3, 4], "left")
    root = ET.fromstring(chart.svg("x"))
    for element in root.iter("text"):
        x, y = float(element.get("x", "nan")), float(element.get("y", "nan"))
        width = text_width(element.text or "")
        start = {"end": x - width, "middle": x - width / 2}.get(element.get("text-anchor"), x)
        turned = "transform" in element.attrib
        assert turned or (start >= -1 and start + width <= chart.width + 1)
        assert 0 < y < chart.height
    (path,) = paths(chart.svg("x"), "left")
    numbers = [float(word) for word in re.findall(r"[\d.]+", path)]
    assert all(0 <= number <= 400 for number in numbers)


def test_an_endless_bar_has_a_head():
    chart = Chart(UNIT, UNIT)
    chart.arrow(1.0, 0.5, "violation")
    assert 'l15 16l-15 16z"' in chart.svg("x")


def test_palettes_know_every_role():
    assert themed("left") == "var(--left)"
    assert len(set(COLOURS.values())) == len(COLOURS)
    for role in COLOURS:
        assert neutral(role) == "currentColor" or re.fullmatch(r"#[0-9a-f]{4,8}", neutral(role))


@given(st.floats(-1e4, 1e4))
def test_coordinates_are_short_and_near(value):
    text = coordinate(value)
    assert abs(float(text) - value) <= 0.051
    assert not text.endswith(".0")
    assert text != "-0"


def test_a_picture_with_links_is_a_group_to_a_screen_reader() -> None:
    assert 'role="img"' in wrap("<g/>", "points", 1, 1)
    assert 'role="group"' in wrap('<a href="#thm1"></a>', "what rests on what", 1, 1)
