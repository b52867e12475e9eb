"""Tests of charts with matplotlib, drawn from the same description."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import warnings

import pytest
from matplotlib.figure import Figure

from dpaudit.results import charts, figures
from dpaudit.results.charts import Axis, Chart, Panel
from dpaudit.results.words import number
from tests.results.test_charts import KINDS, found, with_tradeoff


def rendered(ax) -> str:
    text = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        ax.figure.savefig(text, format="svg")
    return text.getvalue()


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_every_chart_of_every_kind_of_result_can_be_drawn(kind):
    for chart in charts.charts_of(found()[kind]):
        panel, ax = chart.panels[0], figures.draw(chart)
        assert [t.get_text() for t in ax.get_legend().get_texts()] == [
            s.label for s in chart.legend
        ]
        assert ax.get_xlim() == (panel.x.low, panel.x.high)
        assert ax.get_ylim() == (panel.y.low, panel.y.high)
        assert (ax.get_xscale() == "log", ax.get_yscale() == "log") == (panel.x.log, panel.y.log)
        lines = [series for series in panel.series if not series.is_surface]
        for series, line in zip(lines, ax.lines, strict=True):
            assert [tuple(map(float, xy)) for xy in line.get_xydata()] == list(series.points)
            assert line.get_color() == charts.COLOURS[series.role]
        surfaces = [series for series in panel.series if series.is_surface]
        for series, surface in zip(surfaces, ax.collections, strict=True):
            boxes = len(series.points) if series.kind != "band" else 1
            assert len(surface.get_paths()) == boxes
        assert "<svg" in rendered(ax)


def test_ticks_are_those_of_the_description_and_linear_ones_those_of_matplotlib():
    chart = charts.tradeoff(with_tradeoff((1.0, 0.6, 0.4, 0.0), (1.0, 0.9, 0.4, 0.0)))
    ax = figures.draw(chart)
    rendered(ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.99", "0.9", "0"]
    plain = figures.draw(charts.tradeoff(found()["kept"]))
    plain.set_xlim(0.0, 0.01)
    assert sum(0 <= tick <= 0.01 for tick in plain.get_xticks()) >= 3  # also after a zoom


def test_charts_are_drawn_on_given_axes_and_several_panels_are_not():
    ax = Figure().subplots()
    chart = charts.profile(found()["kept"])
    assert figures.draw(chart, ax) is ax
    several = Chart("x", [Panel(Axis(0.0, 1.0), Axis(0.0, 1.0), [])] * 3)
    assert len(figures.draw(several).figure.axes) == 4
    with pytest.raises(ValueError, match="ax must be None for a chart of 3 panels"):
        figures.draw(several, ax)


def test_a_result_draws_its_own_curves():
    kept = found()["kept"]
    assert kept.plot().get_xlabel() == "epsilon"
    assert kept.plot_tradeoff().get_xlabel() == "type I error"


@pytest.mark.slow
def test_without_matplotlib_the_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from dpaudit import NeighborPair, PureDP, audit\n"
        "pair = NeighborPair([[1.0]], [[0.0]])\n"
        "result = audit(lambda data, size, *, rng: data.sum() + rng.laplace(size=size),\n"
        "               PureDP(0.1), pair, draws=2000, seed=1, mutants=None)\n"
        "for plot in (result.plot, result.plot_tradeoff):\n"
        "    try:\n"
        "        plot()\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error.name, str(error))\n"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    words = "matplotlib plots need the package matplotlib, which is not installed here. Run pip"
    assert ran.stdout.count(words) == 2


def test_plotting_leaves_pyplot_alone():
    code = (
        "import sys, dpaudit.report; assert not {'matplotlib', 'jinja2'} & set(sys.modules);"
        "import dpaudit.results.figures; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.inf, "∞"),
        (0.0, "0"),
        (1.23456, "1.23"),
        (1e-5, "1e-5"),
        (0.00019, "1.9e-4"),
        (12345.6, "12300"),
        (3.0, "3"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, words):
    assert number(value) == words
