"""Tests that the page is complete, safe, and the same for a person and a parser.

The last tests open the page in a real browser.
"""

from __future__ import annotations

import functools
import html
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    GaussianDP,
    NeighborPair,
    PureDP,
    Relation,
    StoreError,
    audit,
    within_sensitivity,
)
from dpaudit.report.audits import AUDITS
from dpaudit.report.page import ASSETS
from dpaudit.report.pages import write_report
from dpaudit.results import charts, severity
from dpaudit.results.mutants import MutantResult, MutantStatus, mutation_score
from dpaudit.results.result import AuditResult
from dpaudit.results.smallest import SmallestPair
from dpaudit.results.verdicts import STATUSES, Expectation
from dpaudit.results.words import beside, duration, least, most, number
from dpaudit.stats import Counts
from dpaudit.store import KeptRecord, StoredRun, family_wise_error, kinds
from tests.records import changed

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
STRANGE = "audit_x::a[<script>alert(1)</script>-größe 日本-\"'&]"


def noisy_sum(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


class Response:
    def pmf(self, data):
        probabilities = [0.7, 0.3]
        return np.array(probabilities if data.sum() > 0.5 else probabilities[::-1])


loud = functools.partial(noisy_sum, scale=0.2)
check = functools.partial(audit, claim=PureDP(1.0, source="a <b>source</b>"), pairs=PAIR, seed=1)


@functools.cache
def results_of_all_kinds() -> list[AuditResult]:
    origin = {"kind": "file", "path": "audits/audit_x.py"}
    kept = check(noisy_sum, draws=2000, mutants=[loud], id="audit_x::kept").with_origin(
        origin, "not_refuted"
    )
    refuted = check(loud, draws=2000, id="audit_x::refuted").with_origin(origin, "not_refuted")
    powerless = check(noisy_sum, draws=2000, mutants=[noisy_sum], id="audit_x::powerless")
    exact = check(Response(), draws=2000, mutants=None, id="audit_x::exact")
    return [
        kept,
        refuted,
        replace(refuted, id="audit_x::known").with_origin(origin, "refuted"),
        replace(powerless, seconds=7.5),
        exact,
        replace(
            refuted, id="audit_x::sure", epsilon=replace(refuted.epsilon, lower=math.inf), seconds=9
        ),
        replace(kept, id=STRANGE, mechanism="f(<i>&'\"</i>)", pair_words="a </dd> b"),
    ]


def run_of(results, **changes) -> StoredRun:
    run = StoredRun(
        profile="quick",
        seed=7,
        failure_prob=1e-5,
        command="dpaudit run audits --seed 7 -k '<x>'",
        versions={"python": "3.11.7", "dpaudit": "0.1.0"},
        family_wise_error=family_wise_error(results),
        started="2026-11-20T13:02:11+00:00",
        seconds=134.7,
        complete=True,
    )
    return replace(run, **changes)


@pytest.fixture(scope="module")
def results() -> list[AuditResult]:
    return results_of_all_kinds()


@pytest.fixture(scope="module")
def path(results, tmp_path_factory) -> Path:
    return write_report(tmp_path_factory.mktemp("report"), run_of(results), results)


@pytest.fixture(scope="module")
def page(path) -> str:
    return path.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """A parser that collects the content of a page and requires that every element is closed."""

    VOID = frozenset({"meta", "link", "br", "wbr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["style"], ["script"]):
            self.words.append(data)

    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


@pytest.fixture(scope="module")
def reader(page) -> Reader:
    return Reader(page)


def text_of(results, tmp_path, **changes) -> str:
    return Reader(write_report(tmp_path, run_of(results, **changes), results).read_text()).text()


# --- one file, safe ---


@pytest.mark.slow
def test_page_asks_nothing_of_anyone(page, reader):
    links = [*reader.values("href"), *reader.values("src"), *reader.values("xlink:href")]
    allowed = ("#", "audits/", "data:")
    assert [link for link in links if not link.startswith(allowed)] == ["results.json"]
    assert reader.values("src") == []
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_ids_are_unique_and_every_reference_has_its_target(page, reader):
    ids = reader.values("id")
    assert len(ids) == len(set(ids))
    targets = {link[1:] for link in reader.values("href") if link.startswith("#")}
    targets |= set(re.findall(r"url\(#([^)]+)\)", page))
    targets |= set(reader.values("aria-labelledby"))
    assert targets <= set(ids)


def test_what_users_wrote_is_text(page, reader):
    assert reader.tags.count("script") == 1
    assert "<b>source" not in page
    text = reader.text()
    for words in (STRANGE, "f(<i>&'\"</i>)", "a </dd> b", "a <b>source</b>", "-k '<x>'"):
        assert words in text


def test_script_cannot_end_early(page):
    script = ASSETS.joinpath("report.js").read_text(encoding="utf-8")
    assert "</script" not in script.lower()
    assert script in page


# --- content ---


def test_every_audit_has_a_row_and_a_finding_that_it_links_to(results, reader, page):
    rows = re.findall(r'<tr data-kind="(\w+)">', page)
    assert len(rows) == len(results) == page.count('<details class="audit')
    tables = "".join(re.findall(r'<table class="summary">.*?</table>', page, re.DOTALL))
    table = Reader(tables)
    links = [value for value in table.values("href") if value.startswith("#audit-")]
    articles = [v for tag, name, v in reader.attributes if (tag, name) == ("article", "id")]
    assert links == [f"#{article}" for article in articles]


def test_rows_come_in_the_order_of_concern(page):
    rows = re.findall(r'<tr data-kind="(\w+)">', page)
    order = [kind.key for kind in STATUSES.values()]
    assert rows == sorted(rows, key=order.index)
    counts = {key: rows.count(key) for key in order if key in rows}
    assert counts == {"refuted": 2, "no_power": 1, "powerless": 1, "not_refuted": 2, "known": 1}


def test_rows_of_one_verdict_come_by_severity(page, results):
    table = "".join(re.findall(r'<table class="summary">.*?</table>', page, re.DOTALL))
    ids = [html.unescape(i) for i in re.findall(r'class="id" data-sort="([^"]*)"', table)]
    ratio = {result.id: severity.severity(result) for result in results}
    kind = {result.id: result.status.key for result in results}
    for key in set(kind.values()):
        ratios = [ratio[i] for i in ids if kind[i] == key]
        assert ratios == sorted(ratios, reverse=True)
    assert ids[0] == "audit_x::sure"


def test_table_tells_nothing_certified_from_nearly_all(results, tmp_path):
    kept = replace(results[0], detectable_epsilon=1.4)
    near, far = (
        replace(kept, id=f"at {lower}", epsilon=replace(kept.epsilon, lower=lower))
        for lower in (0.98, 0.0)
    )
    page = write_report(tmp_path, run_of([]), [near, far]).read_text()
    text = Reader(page).text()
    assert "0.98 of 1 98 % of the claim; detectable: ε = 1.4" in text
    assert "0 of 1 nothing certified; detectable: ε = 1.4" in text
    lengths = re.findall(r'class="under" y="2" width="([\d.]+)"', page)
    assert lengths == ["196", "0"]


def test_not_refuted_is_not_green():
    css = ASSETS.joinpath("report.css").read_text(encoding="utf-8")
    (tone,) = re.findall(r"\.not_refuted { --tone: var\(--(\w+)\)", css)
    assert tone == "slate"


def test_header_says_what_was_run_and_what_its_error_means(reader, results):
    text = reader.text()
    for words in (
        "7 audits with the quick profile",
        "20 November 2026, 13:02 UTC",
        "2 min 15 s",
        "complete",
        "wrong with probability at most 1e-5",
        f"family-wise error at most {number(family_wise_error(results))}",
        "NOT REFUTED does not mean private.",
        "The result says nothing.",
        "The audit found a known violation again.",
        "python 3.11.7",
    ):
        assert words in text


def test_there_is_no_passed(page):
    assert not re.search(r"\bpass(ed|es)?\b", page, re.IGNORECASE)


def test_finding_holds_all_that_it_takes_to_judge_and_redo(reader, results):
    text = reader.text()
    kept = results[0]
    assert kept.witness.counts is not None
    for words in (
        kept.witness.sentence(),
        kept.pair_words,
        *(mutant.name for mutant in kept.mutants),
        "all 2,000 per dataset to certify. Guesses by rank need no exploration, since the output "
        "itself is their score. Learnt events used 600 to explore and 1,400 to certify, per "
        "dataset",
        "(no guarantee)",
        f"audits/{kinds()['audit'].file_name(kept.id)}",
        f"epsilon ≥ {least(kept.certified_epsilon)}",
    ):
        assert words in text
    assert kept.sentence() in text
    assert f"{kept.reason[0].upper()}{kept.reason[1:]}." in text


def test_datasets_are_shown_and_escaped(results, tmp_path):
    pair = NeighborPair(np.array([["<i>"], ["b"]]), np.array([["<i>"], ["</td>"]]))
    page = write_report(tmp_path, run_of([]), [replace(results[0], pair=pair)]).read_text()
    assert "<caption>User 1 differs</caption>" in page
    row = '<th scope="row">item</th><td><code>&#39;b&#39;</code></td>'
    assert f"{row}<td><code>&#39;&lt;/td&gt;&#39;</code></td>" in page
    assert "The datasets hold 2x1; all other users are the same, 1 distinct values." in page


def test_result_without_its_datasets_shows_none(results, tmp_path):
    page = write_report(tmp_path, run_of([]), [replace(results[0], pair=None)]).read_text()
    assert 'class="datasets"' not in page


def test_replay_command_is_typed_from_the_working_directory(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = kinds()["audit"].file_name(results[0].id)
    for out in (Path("my reports"), tmp_path / "my reports"):
        text = Reader(write_report(out, run_of(results), results[:1]).read_text()).text()
        assert f"dpaudit replay 'my reports/audits/{name}'" in text
        assert str(tmp_path) not in text


def test_computed_results_speak_of_no_probability(results, tmp_path):
    text = text_of([r for r in results if r.id == "audit_x::exact"], tmp_path)
    assert "Computed, not sampled." in text
    assert "the probabilities were computed" in text
    assert "Event fired" not in text
    assert "(no guarantee)" not in text


def test_a_guess_shows_the_counts_of_both_its_sides(tmp_path):
    witness = replace(
        results_of_all_kinds()[0].witness,
        event="left where output > 1; right where output <= 0",
        counts=Counts(311, 1010, 82, 990),
        right=Counts(73, 1010, 304, 990),
    )
    result = replace(results_of_all_kinds()[0], witness=witness)
    page = write_report(tmp_path, run_of([result]), [result]).read_text()
    rows = re.findall(r'<tr><th scope="row">(left|right)</th>(.*?)</tr>', page)
    assert [(side, re.sub("<.*?>", " ", row).split()) for side, row in rows] == [
        ("left", ["311", "(0.308)", "73", "(0.0723)", "1,010"]),
        ("right", ["82", "(0.0828)", "304", "(0.307)", "990"]),
    ]
    assert [re.findall(r"<strong>(.*?)</strong>", row) for _, row in rows] == [["311"], ["304"]]
    text = Reader(page).text()
    assert "Event fired" not in text
    heads = "Drawn from", "guessed left", "guessed right", "of draws"
    assert "".join(f'<th scope="col">{head}</th>' for head in heads) in page
    assert "The region where left is guessed is shaded, the region of right darker." in text
    words = (
        "615 of 770 guesses are right, in 2,000 randomised draws (left: 311 of 393; right: 304 of "
        "377)"
    )
    assert witness.sentence().endswith(words)
    assert words in AUDITS.finding(result, verbose=True)
    assert AUDITS.numbers(result).endswith(
        ", 311 and 82 hits guessing left, 73 and 304 hits guessing right"
    )
    stored = json.loads(json.dumps(result.to_json()))["witness"]
    assert (stored["counts"]["hits_left"], stored["counts"]["hits_right"]) == (311, 82)
    assert (stored["right"]["hits_left"], stored["right"]["hits_right"]) == (73, 304)


def test_an_event_shows_the_counts_of_both_sides(tmp_path):
    first = results_of_all_kinds()[0]
    witness = replace(first.witness, event="output > 1", counts=Counts(3, 10, 2, 11), right=None)
    result = replace(first, witness=witness)
    text = text_of([result], tmp_path)
    counted = "Event fired times of draws share left 3 10 0.3 right 2 11 0.182"
    assert counted.replace(" ", "") in text.replace(" ", "")
    assert "guessed left" not in text
    assert AUDITS.numbers(result).endswith(", 3 and 2 hits")


def test_infinity_is_a_sign_and_sorts_last(results, tmp_path):
    sure = [r for r in results if r.id == "audit_x::sure"]
    page = write_report(tmp_path, run_of(sure), sure).read_text()
    assert "epsilon ≥ ∞" in Reader(page).text()
    assert 'data-sort="inf"' in page


# --- mutants ---


NOISE = "line 3 of f.py (laplace, scale 1)"
MUTANTS = (
    MutantResult(
        "half <b>&\"'", MutantStatus.KILLED, 1.0000004, 1e-6, 1400, "a pair", "output > <1"
    ),
    MutantResult(
        f"{NOISE} removed", MutantStatus.KILLED, math.inf, 1e-6, 300, "", "x", NOISE, True
    ),
    MutantResult(f"{NOISE} halved", MutantStatus.SURVIVED, 0.12349, 1e-6, 12_345, "", "", NOISE),
    MutantResult("computed", MutantStatus.SURVIVED, 0.0, 0.0, 0, note="the same change"),
    MutantResult("broken", MutantStatus.NOT_RUN, 0.0, 0.0, 0, note="it raised KeyError: '<x>'"),
)

OF_CODE = MutantResult(
    "clipping: np.clip(x, 0, 1) returns its argument, line 4 of a.py",
    MutantStatus.SURVIVED,
    0.5,
    1e-6,
    2500,
    kind="clipping",
)


def table_of_mutants(page: str) -> list[tuple[str, ...]]:
    """Return the class of the status and the text of every cell, for each row of the table."""
    (table,) = re.findall(r'<table class="counts mutants">.*?<tbody>(.*?)</tbody>', page, re.S)
    rows = re.findall(
        r"<tr><th[^>]*>(.*?)</th>" + r'<td class="(\w+)">(.*?)</td>' + "<td>(.*?)</td>" * 2, table
    )
    assert len(rows) == table.count("<tr>")
    return [tuple(html.unescape(cell) for cell in row) for row in rows]


@pytest.mark.slow
def test_table_of_mutants_tells_name_fate_epsilon_and_draws(special, tmp_path):
    result = replace(special["kept"], mutants=MUTANTS)
    page = write_report(tmp_path, run_of([result]), [result]).read_text()
    assert table_of_mutants(page) == [
        ("half <b>&\"'", "killed", "killed", "> 1", "1,400"),
        (f"{NOISE} removed", "killed", "killed", "≥ ∞", "300"),
        (f"{NOISE} halved", "survived", "survived", "≥ 0.123", "12,345"),
        ("computed", "survived", 'survived <span class="quiet">the same change</span>', "", ""),
        (
            "broken",
            "survived",
            "not run <span class=\"quiet\">it raised KeyError: '<x>'</span>",
            "",
            "",
        ),
    ]
    text = Reader(page).text()
    assert (
        "Mutants2 of 4 killed (1 more not run), with the claim and the pairs of this audit" in text
    )
    assert "<b>&" not in page


def test_what_is_behind_the_fate_of_a_mutant_is_one_hover_away(special, tmp_path):
    result = replace(special["kept"], mutants=MUTANTS)
    page = write_report(tmp_path, run_of([result]), [result]).read_text()
    titles = [v for tag, name, v in Reader(page).attributes if (tag, name) == ("th", "title")]
    assert titles == ["output > <1", "x"]
    assert ' <span class="quiet">it raised KeyError: &#39;&lt;x&gt;&#39;</span>' in page


def test_summary_sorts_by_the_share_of_mutants_that_were_killed(special, tmp_path):
    kept = special["kept"]
    some = [kept.mutants, MUTANTS, MUTANTS[2:], MUTANTS[4:]]
    many = [replace(kept, id=f"with {i}", mutants=mutants) for i, mutants in enumerate(some)]
    page = write_report(tmp_path, run_of(many), many).read_text()
    cells = re.findall(
        r'data-label="Mutants" class="right" data-sort="([^"]*)"><span class="(\w+)">(.*?)</span>'
        r' <span class="quiet">(.*?)</span>',
        page,
    )
    killed, judged = mutation_score(kept.mutants)
    assert killed
    assert cells == [
        (str(kept.mutation_score), "killed", f"{killed} of {judged}", "killed"),
        ("0.5", "survived", "2 of 4", "killed"),
        ("0", "survived", "0 of 2", "killed"),
        ("0", "survived", "0 of 0", "killed"),
    ]


def test_want_of_mutants_is_said(results, tmp_path):
    text = text_of([r for r in results if r.id == "audit_x::exact"], tmp_path)
    assert "Mutantsnone, so the power of this audit is unknown" in text
    assert "NO POWER (allowed)" in text


def test_refuted_audit_needs_no_mutants_and_says_so(results, tmp_path):
    (refuted,) = (r for r in results if r.id == "audit_x::refuted")
    assert refuted.mutants == ()
    page = write_report(tmp_path, run_of([refuted]), [refuted]).read_text()
    text = Reader(page).text()
    assert "Mutantsnot needed for a refuted claim" in text
    assert "is unknown" not in text
    assert '<td data-label="Mutants" class="right" data-sort="-1"><span class="quiet">not' in page


def test_report_of_nothing(tmp_path):
    text = text_of([], tmp_path, problems=("audit_y.py: SyntaxError",))
    assert "0 audits" in text
    assert "No audit has a result" in text
    assert "1 problem" in text
    assert "SyntaxError" in text


@pytest.mark.parametrize("current", [True, False])
def test_results_of_older_runs_are_marked(results, tmp_path, current):
    older = KeptRecord(
        "audit", "audit_x::kept", "2026-11-19T08:01:00+00:00", "dpaudit run <x>", current
    )
    other = replace(older, kind="statement", id="audit_x::refuted")
    text = text_of(results[:2], tmp_path, kept=(older, other))
    assert (
        "1 of these results is from earlier runs, since this run covered only a selection" in text
    )
    assert text.count("of 19 November 2026, 08:01 UTC") == 2
    assert ("out of date" in text) is not current
    assert ("settings, versions or sources have changed since then" in text) is not current
    assert "dpaudit run <x>" in text


def test_interrupted_run_is_said(results, tmp_path):
    text = text_of(results[:1], tmp_path, complete=False)
    assert "This run was interrupted" in text
    assert "--resume" in text


def test_odd_moment_is_shown_as_it_is(tmp_path):
    assert "some day" in text_of([], tmp_path, started="some day")


def test_same_id_twice_keeps_the_links_apart(results, tmp_path):
    twice = [results[0], results[0]]
    ids = Reader(write_report(tmp_path, run_of(twice), twice).read_text()).values("id")
    assert len(ids) == len(set(ids))


def test_lost_violation_is_said(results, tmp_path):
    lost = replace(results[0], expected=Expectation.REFUTED)
    text = text_of([lost], tmp_path)
    assert "VIOLATION NOT FOUND AGAIN" in text
    assert "The audit no longer finds a known violation." in text
    assert "VIOLATION NOT FOUND AGAIN" not in text_of(results, tmp_path)


@pytest.mark.parametrize(
    ("certified", "claimed", "words"),
    [
        (1.0000012, 1.0, "> 1"),
        (1.00018, 1.0, "> 1"),
        (1.0, 1.0, "1"),
        (0.99999999, 1.0, "0.999"),  # never rounded up
        (math.log(3) * (1 + 1e-6), math.log(3), "> 1.098613"),
        (1.23456, 1.0, "1.23"),
        (math.inf, 1.0, "∞"),
        (1 + 1e-15, 1.0, "> 1"),
    ],
)
def test_certified_number_shows_how_it_differs_from_the_claim(certified, claimed, words):
    assert beside(certified, claimed) == words
    signed = beside(certified, claimed, sign="≥ ")
    assert signed == (words if words.startswith(">") else f"≥ {words}")


def test_claim_refuted_by_a_hair_reads_well(special, tmp_path):
    result = special["gaussian"]
    barely = replace(result, epsilon=replace(result.epsilon, lower=1.0000011))
    barely = replace(barely, claim={**result.claim, "epsilon": 1.0})
    text, _ = parts_of(barely, tmp_path)
    assert "ε > 1 of 1 claimed" in text
    assert "epsilon > 1 at delta" in text
    assert "1.000001" not in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "less than 0.01 s"),
        (0.42, "0.42 s"),
        (59.4, "59 s"),
        (59.9, "1 min 0 s"),
        (134.7, "2 min 15 s"),
        (7384, "2 h 3 min"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds, words):
    assert duration(seconds) == words


# --- parts that only some audits have ---


def some_centers(data, size, *, rng):
    return (rng.random((size, len(data))) < 0.5) @ data[:, 0]


@pytest.fixture(scope="module")
def special() -> dict[str, AuditResult]:
    ball = AdditiveNoise(some_centers, scale=1.0, ball=([0.5], 0.5))
    broad = AdditiveNoise(some_centers, scale=0.2, ball=([0.5], 0.5))
    claim = ApproxDP(1.0, 1e-6)
    found = [
        check(loud, draws=2000, method="sequential", id="sequential"),
        check(ball, claim=claim, draws=2000, mutants=[broad], id="additive"),
        check(
            AdditiveNoise(lambda data: data.sum(), scale=5.0),
            claim=claim,
            mutants=None,
            id="closed",
        ),
        check(loud, claim=GaussianDP(1.0), draws=2000, id="gaussian"),
        check(noisy_sum, draws=2000, mutants=[loud], id="kept"),
    ]
    return {result.id: result for result in found}


def parts_of(result, tmp_path) -> tuple[str, list[str]]:
    """Return the text of the page of one result, and the titles of its pictures."""
    page = write_report(tmp_path, run_of([result]), [result]).read_text()
    return Reader(page).text(), re.findall(r"<figcaption>(.*?)</figcaption>", page)


USUAL = ["The user who differs", "Where the outputs fall", "Privacy profile"]


def test_sequential_audit_says_what_it_spent_and_why(special, tmp_path):
    result = special["sequential"]
    assert result.diagnostics.sequential is not None
    text, titles = parts_of(result, tmp_path)
    spent = f"{sum(result.draws.values()):,}"
    # White space of a text is folded, including the space between thousands.
    assert f"After {spent} of at most 2,000 draws per dataset" in text
    assert f"draws per dataset: {result.diagnostics.sequential.stopped}." in text
    assert f"{spent} of 2,000" in text  # in the table
    assert "for a sequential audit, the budget is given too" in text
    assert "Wealth of the bet" in titles
    assert "These counts are of the last batch of draws" in text


def test_curves_are_told_in_other_languages(special, tmp_path):
    result = special["gaussian"]
    text, titles = parts_of(result, tmp_path)
    curves = result.diagnostics.curves
    assert curves is not None
    assert f"mu ≥ {least(curves.certified_mu)} of Gaussian DP (claimed 1)" in text
    renyi = curves.certified_renyi[curves.order.index(2.0)]
    assert f"Rényi divergence ≥ {least(renyi)} of order 2, in nats" in text
    assert curves.conditional_epsilon is not None
    assert f"Conditional, not certified: epsilon ≥ {least(curves.conditional_epsilon)}" in text
    assert titles == [*USUAL, "Trade-off curve"]


def test_curves_that_say_nothing_are_left_out(special, tmp_path):
    for nothing in (
        changed(special["kept"], curves=None),
        changed(
            special["kept"],
            curves=replace(
                special["kept"].diagnostics.curves,
                certified_mu=0.0,
                certified_beta=tuple(1 - a for a in special["kept"].diagnostics.curves.alpha),
            ),
        ),
    ):
        text, titles = parts_of(nothing, tmp_path)
        assert "other languages" not in text
        assert titles == USUAL


def test_conditional_epsilon_needs_a_delta(special, tmp_path):
    assert "Conditional" not in parts_of(special["kept"], tmp_path)[0]


def test_reach_is_told_and_rounded_up(special, tmp_path):
    reach = replace(special["kept"], detectable_epsilon=1.23411)
    text, _ = parts_of(reach, tmp_path)
    assert "needed epsilon = 1.24 at delta = 0 on this pair" in text
    text, _ = parts_of(replace(reach, detectable_epsilon=math.inf), tmp_path)
    assert "No violation is detected with probability 0.9" in text
    text, _ = parts_of(replace(reach, detectable_epsilon=None), tmp_path)
    assert "on this pair, this audit" not in text


def test_notes_stand_before_the_pictures(special, tmp_path):
    noted = replace(special["kept"], notes=("The last bits <betray> the data.",))
    page = write_report(tmp_path, run_of([noted]), [noted]).read_text()
    note = '<p class="callout">The last bits &lt;betray&gt; the data.</p>'
    assert page.index('<p class="reason">') < page.index(note) < page.index("<figure>")
    assert "callout" not in write_report(tmp_path, run_of([]), []).read_text().split("</style>")[1]


def test_additive_noise_speaks_of_centres_and_method(special, tmp_path):
    result = special["additive"]
    text, _ = parts_of(result, tmp_path)
    assert f"Method{result.epsilon.method}" in text.replace("Method ", "Method")
    assert "per dataset (draws of the centre, before noise is added)" in text
    assert "Centres before the noise" in text
    assert "The band of the estimate is two standard errors and guarantees nothing" in text
    assert result.witness.sentence() in text
    assert "Event fired" not in text


def test_closed_form_speaks_of_no_draws_and_no_probability(special, tmp_path):
    text, _ = parts_of(special["closed"], tmp_path)
    assert "Computed, not sampled." in text
    assert "none; the probabilities were computed" in text
    assert "standard errors" not in text
    assert "Estimated:" not in text


def test_table_has_no_column_for_what_few_audits_have(special, tmp_path):
    page = write_report(tmp_path, run_of([]), list(special.values())).read_text()
    assert page.split("</thead>")[0].count('<th scope="col"') == 7


def test_bounds_round_to_the_safe_side():
    assert (least(0.93766, 3), most(1.23411), least(math.inf)) == ("0.937", "1.24", "∞")


# --- writing ---


def test_same_results_give_the_same_page(results, path, page):
    assert write_report(path.parent, run_of(results), results).read_text("utf-8") == page


def test_failing_report_leaves_the_old_one(results, tmp_path, monkeypatch):
    path = write_report(tmp_path, run_of([]), [])
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StoreError, match="No space left"):
        write_report(tmp_path, run_of(results), results[:1])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["index.html"]


def test_package_loads_nothing_heavy():
    code = (
        "import sys, dpaudit.report; assert callable(dpaudit.report.run_lines);"
        "assert not {'matplotlib', 'jinja2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_sixty_audits_make_a_page_that_can_be_mailed(results, tmp_path):
    many = [replace(results[i % 7], id=f"audit_x::many[{i}]") for i in range(60)]
    path = write_report(tmp_path, run_of(many), many)
    assert path.stat().st_size < 4e6


def test_the_smallest_pair_comes_before_the_pictures(tmp_path):
    left = np.zeros((4, 3))
    right = left.copy()
    right[2] = 1.0
    result = check(loud, pairs=NeighborPair(left, right), draws=5000, id="audit_x::large")
    page = write_report(tmp_path, run_of([result]), [result]).read_text(encoding="utf-8")
    Reader(page)
    found = page[page.index('id="findings"') :]
    assert found.index("<strong>Smallest pair:</strong> 2 users of 1 item") < found.index("Privacy")
    values = found.index("The user who differs in the smallest pair")
    assert values < found.index("Outputs on the smallest pair") < found.index("Privacy profile")
    assert "<dt>Bug report</dt>" in found
    assert "dpaudit reproduce" in found
    assert "<dt>Smallest pair</dt>" in page[: page.index('id="findings"')]
    with pytest.raises(ValueError, match="must have a smallest pair"):
        charts.smallest_histogram(replace(result, smallest=None))
    assert charts.differing_user(replace(result, smallest=None, pair=None)) is None


def pair_of(left, right, **arguments):
    return NeighborPair(np.array(left), np.array(right), **arguments)


@pytest.mark.parametrize(
    ("pair", "shown"),
    [
        (pair_of([[0.0, 1.0], [2.0, np.nan]], [[0.0, 1.0], [3.0, 4.0]]), ([0], [0, 1])),
        (pair_of([[0.0], [2.0]], [[0.0]], relation=Relation.ADD_REMOVE_USER), ([0], None)),
        (pair_of([1.0, 2.0], [1.5, 2.5], relation=within_sensitivity(1.0)), ([0, 1], [0, 1])),
        (NeighborPair([[1.0], [2.0]], [[1.0], [2.0, 3.0]]), None),  # lists are shown in words
        (pair_of(np.zeros((2, 100)), np.eye(2, 100)[::-1] * [[0], [1]]), None),  # too many
    ],
)
def test_the_values_of_the_differing_user_are_shown(results, pair, shown):
    known = results[1]
    histogram, draws = known.diagnostics.histogram, {"explore": 0, "certify": 100}
    smallest = SmallestPair(
        "", known.epsilon, known.delta, known.witness, histogram, draws, 1, pair
    )
    result = replace(known, smallest=smallest)
    chart = charts.differing_user(result)
    if shown is None:
        assert chart is None
        return
    series = {one.label.split()[0]: [x for x, _ in one.points] for one in chart.panels[0].series}
    assert series == {
        side: places for side, places in zip(("left", "right"), shown, strict=True) if places
    }
    assert ("absent on the right" in chart.caption) == (shown[1] is None)


def test_a_notebook_shows_the_summary_and_three_charts(results):
    for result in results:
        shown = result._repr_html_()
        Reader(shown)
        assert shown.count("<svg") == 3
        assert html.escape(result.summary()) in shown
    hostile = replace(results[0], id="<script>x</script>", mechanism="<b>")
    assert "<script>" not in hostile._repr_html_()
    assert "<b>" not in hostile._repr_html_()


def test_surviving_mutants_of_the_code_are_a_question(special, tmp_path):
    result = replace(special["kept"], mutants=(*MUTANTS, OF_CODE))
    page = write_report(tmp_path, run_of([result]), [result]).read_text()
    text = Reader(page).text()
    assert "Harmless or missed mistakes" in text
    assert f"{OF_CODE.name}, in 2,500 draws" in text
    assert "given 1 of 2, noise 1 of 2, clipping 0 of 1 killed (1 more not run)" in text
