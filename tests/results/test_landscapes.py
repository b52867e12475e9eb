"""What a report says of a search: landscape, ranking, and an honest account."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import GaussianDP, NeighborPair, PureDP, audit
from dpaudit.report.pages import write_report
from dpaudit.results import charts
from dpaudit.results import landscapes as searches
from dpaudit.results.result import AuditResult
from dpaudit.search.record import SearchRecord, Trial
from dpaudit.store import Run

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
    return replace(plain, search=RECORD)


def test_landscape_info_holds_the_trials_that_were_drawn(found):
    info = searches.landscape_info(found)
    size, side = info.panels
    assert (size.parameter, size.x, size.words, size.log) == ("size", (0.01, 0.5, 2.0), None, True)
    assert (side.x, side.words, side.log) == ((0.0, 1.0, 1.0), ("left", "right"), False)
    assert info.expected == (0.1, 1.7, 1.5)
    assert info.stage == ("design", "local", "final")
    assert info.winner == 2  # only finalists were judged on fresh draws
    assert (info.claim, info.ylabel, info.left_out) == (1.0, "expected epsilon", ())


def test_landscape_of_a_curve_is_in_parts_of_the_claim(plain):
    result = audit(noisy_sum, GaussianDP(2.0), PAIR, draws=2000, seed=1, id="curve", mutants=None)
    info = searches.landscape_info(replace(result, search=RECORD))
    assert (info.claim, info.ylabel) == (1.0, "expected, of the claim")


@pytest.mark.parametrize(
    ("values", "x", "words", "log"),
    [
        ((3, 5, 4), (0.0, 2.0, 1.0), ("3", "4", "5"), False),
        ((10, 9, 10), (1.0, 0.0, 1.0), ("9", "10"), False),
        (tuple(range(20)), tuple(map(float, range(20))), None, False),
        ((1.0, 2.0, 99.0), (1.0, 2.0, 99.0), None, False),
        ((1.0, 2.0, 100.0), (1.0, 2.0, 100.0), None, True),
        ((0.0, 2.0, 100.0), (0.0, 2.0, 100.0), None, False),
        ((True, False), (1.0, 0.0), ("False", "True"), False),
        (("b", "a", "b"), (1.0, 0.0, 1.0), ("a", "b"), False),
    ],
)
def test_panels_tell_numbers_from_choices(plain, values, x, words, log):
    trials = tuple(Trial({"p": value}, 0.5, 32, "design") for value in values)
    result = replace(plain, search=SearchRecord("space", ("p",), trials, 32))
    panel = searches.landscape_info(result).panels[0]
    assert (panel.x, panel.words, panel.log) == (x, words, log)
    assert charts.landscape(result).startswith("<svg")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_landscape_draws_at_most_four_parameters(plain, count):
    names = tuple(f"p{i}" for i in range(count))
    trials = tuple(Trial(dict.fromkeys(names, v), v, 32, "design") for v in (0.1, 0.9))
    result = replace(plain, search=SearchRecord("space", names, trials, 64))
    drawn = charts.landscape(result)
    assert [name for name in names if f">{name}</text>" in drawn] == list(names[:4])
    assert drawn.count("<g transform=") == min(count, 4)
    assert searches.landscape_info(result).left_out == names[4:]


def test_landscape_marks_stages_winner_and_claim(found):
    picture = charts.landscape(found)
    words = re.findall(r">([^<>]+)</text>", picture)
    assert words[:5] == ["design", "local", "final", "winner", "claim"]
    assert {"size", "side", "left", "right", "expected epsilon"} <= set(words)
    panels = picture.split("<g transform=")[1:]
    for panel in panels:
        colours = re.findall(r'stroke="var\(--(\w+)\)" stroke-width="5.2"', panel)
        assert colours == ["mutant", "estimated", "certified"]  # a dot for each stage
        assert panel.count("<circle") == 1  # a ring around the winner
        assert 'stroke-dasharray="5 3"' in panel
    assert "10⁻¹" in panels[0]  # sizes span two decades


def test_landscape_of_failures_only_can_be_drawn(plain):
    result = replace(plain, search=SearchRecord("space", ("size", "side"), TRIALS[-1:], 0))
    assert searches.landscape_info(result).winner is None
    assert charts.landscape(result).startswith("<svg")


def test_landscape_without_a_search_is_refused(plain):
    with pytest.raises(ValueError, match="plain did not search for its pair"):
        charts.landscape(plain)


def test_account_counts_everything_that_was_tried():
    words = searches.search_words(RECORD)
    assert words.cost == "4 trials, 640 draws per dataset; 1 gave no valid pair"
    assert words.notes == ("1\u202f× the <sides> are equal",)
    assert words.draws == "640"
    assert [row.rank for row in words.rows] == [1, 2, 3]
    assert words.rows[0] == searches.TrialRow(1, ("2", "right"), "1.5", "512", "final", "")


def test_ranking_has_ten_rows_at_most():
    record = replace(RECORD, trials=TRIALS * 9)
    assert len(searches.search_words(record).rows) == 10


def page_of(result, tmp_path) -> str:
    run = Run(
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
    assert "(640 of them in the search for the pair)" in page
    assert "Nothing of it was used to certify" in page
    ranking = page[page.index('<section class="ranking">') :]
    assert len(re.findall(r"<tr[ >]", ranking)) == 4  # a head, and three that were drawn
    assert "<td>2</td><td>right</td><td>1.5</td><td>512</td><td>final</td>" in ranking


def test_page_without_a_search_says_nothing_of_one(plain, tmp_path):
    page = page_of(plain, tmp_path).split("</style>")[1]
    assert "ranking" not in page
    assert "The search" not in page
