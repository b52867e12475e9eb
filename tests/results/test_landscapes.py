"""Tests of the report of a search, with its landscape, its ranking and its limits."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import GaussianDP, NeighborPair, PureDP, audit
from dpaudit.report.pages import write_report
from dpaudit.results import AuditResult, charts, figures
from dpaudit.results.charts import Panel
from dpaudit.results.svg import svg_of
from dpaudit.results.tables import search_table
from dpaudit.search.record import SearchRecord, Trial
from dpaudit.store import StoredRun
from tests.records import changed

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))


def noisy_sum(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def trial(size, side, expected, stage="design", draws=64, note="", **more) -> Trial:
    return Trial({"size": size, "side": side, **more}, expected, draws, stage, note)


TRIALS = (
    trial(0.01, "left", 0.1),
    trial(0.5, "right", 1.7, "local"),
    trial(2.0, "right", 1.5, "final", draws=512),
    trial(0.0, "left", 0.0, draws=0, note="the <sides> are equal"),
)
RECORD = SearchRecord("outlier(n_users=5)", ("size", "side"), TRIALS, 640)


@pytest.fixture(scope="module")
def plain() -> AuditResult:
    return audit(noisy_sum, PureDP(1.0), PAIR, draws=2000, seed=1, id="plain", mutants=None)


@pytest.fixture(scope="module")
def found(plain) -> AuditResult:
    return changed(plain, search=RECORD)


def points(panel: Panel) -> dict[str, list[tuple[float, float]]]:
    return {one.label: list(one.points) for one in panel.series}


def test_landscape_holds_the_trials_that_were_drawn(found):
    chart = charts.landscape(found)
    size, side = chart.panels
    assert (size.x.label, size.x.log, size.y.label) == ("size", True, "expected epsilon")
    assert "10⁻¹" in [words for _, words in size.x.marks()]  # sizes span two decades
    own = points(size)
    assert list(own) == ["design", "local", "final", "winner", "claim"]
    assert (own["design"], own["local"]) == ([(0.01, 0.1)], [(0.5, 1.7)])
    assert (
        own["winner"] == own["final"] == [(2.0, 1.5)]
    )  # only finalists were judged on fresh draws
    assert {y for _, y in own["claim"]} == {1.0}
    assert side.x.marks() == [(0.0, "left"), (1.0, "right")]
    assert points(side)["local"] == [(1.0, 1.7)]
    assert (side.x.log, side.y.label) == (False, "")
    assert [one.role for one in size.series[:3]] == ["mutant", "estimated", "certified"]
    assert "Not drawn" not in chart.caption


def test_landscape_of_a_curve_is_in_parts_of_the_claim(plain):
    result = audit(noisy_sum, GaussianDP(2.0), PAIR, draws=2000, seed=1, id="curve", mutants=None)
    panel = charts.landscape(changed(result, search=RECORD)).panels[0]
    assert panel.y.label == "expected, of the claim"
    assert {y for _, y in points(panel)["claim"]} == {1.0}


@pytest.mark.parametrize(
    ("values", "x", "words", "log"),
    [
        ((3, 5, 4), (0.0, 2.0, 1.0), ["3", "4", "5"], False),
        ((10, 9, 10), (1.0, 0.0, 1.0), ["9", "10"], False),
        (tuple(range(20)), tuple(map(float, range(20))), None, False),
        ((1.0, 2.0, 99.0), (1.0, 2.0, 99.0), None, False),
        ((1.0, 2.0, 100.0), (1.0, 2.0, 100.0), None, True),
        ((0.0, 2.0, 100.0), (0.0, 2.0, 100.0), None, False),
        ((True, False), (1.0, 0.0), ["False", "True"], False),
        (("b", "a", "b"), (1.0, 0.0, 1.0), ["a", "b"], False),
        (([2], None, [1, 2]), (2.0, 0.0, 1.0), ["None", "[1, 2]", "[2]"], False),
    ],
)
def test_panels_tell_numbers_from_choices(plain, values, x, words, log):
    trials = tuple(Trial({"p": value}, 0.5, 32, "design") for value in values)
    result = changed(plain, search=SearchRecord("space", ("p",), trials, 32))
    (panel,) = charts.landscape(result).panels
    assert tuple(place for place, _ in points(panel)["design"]) == x
    assert panel.x.log is log
    assert panel.x.ticks == (words and list(zip(map(float, range(len(words))), words, strict=True)))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_landscape_draws_at_most_four_parameters(plain, count):
    names = tuple(f"p{i}" for i in range(count))
    trials = tuple(Trial(dict.fromkeys(names, v), v, 32, "design") for v in (0.1, 0.9))
    result = changed(plain, search=SearchRecord("space", names, trials, 64))
    chart = charts.landscape(result)
    svg = svg_of(chart)
    assert [name for name in names if f">{name}</text>" in svg] == list(names[:4])
    assert len(chart.panels) == len(figures.draw(chart).figure.axes) - count % 2 * (1 < count < 4)
    assert ("Not drawn: p4, p5, p6." in chart.caption) is (count == 7)


def test_landscape_of_failures_only_can_be_drawn(plain):
    result = changed(plain, search=SearchRecord("space", ("size", "side"), TRIALS[-1:], 0))
    chart = charts.landscape(result)
    assert [one.label for one in chart.legend] == ["claim"]
    assert svg_of(chart).startswith("<svg")


def test_account_counts_everything_that_was_tried():
    table = search_table(RECORD)
    assert table["cost"] == "4 trials, 640 draws per dataset; 1 gave no valid pair"
    assert table["notes"] == ["1 × the <sides> are equal"]
    assert table["draws"] == "640"
    assert [row["rank"] for row in table["rows"]] == [1, 2, 3]
    first = {"expected": "1.5", "draws": "512", "stage": "final", "note": ""}
    assert table["rows"][0] == {"rank": 1, "parameters": ["2", "right"], **first}


def test_ranking_has_ten_rows_at_most():
    record = replace(RECORD, trials=TRIALS * 9)
    assert len(search_table(record)["rows"]) == 10


def page_of(result, tmp_path) -> str:
    run = StoredRun(
        profile="quick",
        seed=7,
        failure_prob=1e-5,
        command="dpaudit run",
        versions={"python": "3.11.7"},
        family_wise_error=1e-5,
        started="now",
        seconds=1.0,
        complete=True,
    )
    return write_report(tmp_path, run, [result]).read_text(encoding="utf-8")


def test_page_shows_landscape_ranking_and_account(found, tmp_path):
    page = page_of(found, tmp_path)
    assert "<figcaption>The search</figcaption>" in page
    assert "4 trials, 640 draws per dataset; 1 gave no valid pair" in page
    assert "the &lt;sides&gt; are equal" in page
    assert "(640 of them to search for the pair)" in page
    assert "None of these draws certify anything" in page
    ranking = page[page.index('<section class="ranking">') :]
    assert len(re.findall(r"<tr[ >]", ranking)) == 4  # a header row and three drawn pairs
    assert "<td>2</td><td>right</td><td>1.5</td><td>512</td><td>final</td>" in ranking


def test_page_without_a_search_says_nothing_of_one(plain, tmp_path):
    page = page_of(plain, tmp_path).split("</style>")[1]
    assert "ranking" not in page
    assert "The search" not in page
