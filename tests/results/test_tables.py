"""A result in a notebook, and as text: short, safe, without a plotting library."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from dpaudit.results.mutants import Fate, MutantResult
from dpaudit.results.tables import html_of, text_of
from dpaudit.results.verdicts import Expectation
from dpaudit.stats import Counts
from tests.results.test_charts import KINDS, found

NASTY = "<script>\"&' </td>"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_has_a_table_and_a_picture(kind):
    result = found()[kind]
    shown = html_of(result)
    root = ET.fromstring(shown)
    assert len(root.findall(".//svg")) == 2  # the bar and the profile
    names = [cell.text for cell in root.iter("th")]
    assert {"Claim", "Mechanism", "Certified δ", "Mutants", "Event", "Pair"} <= set(names)
    assert ("Estimated ε" in names) is (result.failure_prob > 0)
    assert len(shown) < 20_000
    assert "var(" not in shown
    assert "<style" not in shown


def test_table_holds_the_numbers_that_matter():
    root = ET.fromstring(html_of(replace(found()["kept"], advice="try more", notes=("odd",))))
    cells = {row[0].text: row[1].text for row in root.iter("tr")}
    assert cells["Claim"] == "1-DP"
    assert re.fullmatch(r"≥ 0\.\d+ at δ = 0: \d+ % of the claim", cells["Certified ε"])
    assert cells["Estimated ε"].endswith("(no guarantee)")
    assert re.fullmatch(r"[23] of 3 killed(; not the noise of line .*)?", cells["Mutants"])
    assert cells["Draws"].startswith(
        "all 2,000 to certify by rank, beside events with 600 to explore and 1,400 to certify, per "
        "dataset; wrong"
    )
    assert (cells["Note"], cells["Next"]) == ("odd", "try more")


def test_draws_are_split_where_events_certify_and_not_where_ranks_do():
    def draws(result) -> str:
        cells = {row[0].text: row[1].text for row in ET.fromstring(html_of(result)).iter("tr")}
        return cells["Draws"].partition(", per dataset")[0]

    split = "600 to explore and 1,400 to certify"
    learnt, ranks = found()["silent"], found()["kept"]
    assert (learnt.draws_by_rank, draws(learnt)) == (0, split)
    assert ranks.draws_by_rank == 2000
    assert draws(ranks) == f"all 2,000 to certify by rank, beside events with {split}"
    left_out = replace(ranks.epsilon, counts=Counts(1500, 3900, 100, 3900))
    some = replace(ranks, epsilon=left_out)
    assert draws(some) == f"1,950 to certify by rank, beside events with {split}"
    assert found()["closed"].draws_by_rank == found()["stopped"].draws_by_rank == 0


def test_mutants_that_were_not_killed_are_named():
    killed = MutantResult("half", Fate.KILLED, 2.0, 1e-6, 700)
    survived = replace(killed, name="a\nbit less", fate=Fate.SURVIVED)
    broken = replace(killed, name="broken", fate=Fate.NOT_RUN, note="it raised")

    def told(*mutants) -> tuple[str | None, str]:
        result = replace(found()["kept"], mutants=mutants)
        cells = {row[0].text: row[1].text for row in ET.fromstring(html_of(result)).iter("tr")}
        (line,) = [t for t in text_of(result).splitlines() if t.startswith("  mutants ")]
        return cells["Mutants"], line

    assert told() == ("none", "  mutants            none")
    assert told(killed) == ("1 of 1 killed", "  mutants            1 of 1 killed")
    assert told(killed, survived, broken) == (
        "1 of 2 killed, 1 not run; not a\nbit less; broken",
        "  mutants            1 of 2 killed, 1 not run; not a bit less; broken",
    )


def test_what_users_wrote_is_escaped():
    mutant = MutantResult(NASTY, Fate.SURVIVED, 0.0, 1e-6, 700)
    result = replace(
        found()["kept"], id=NASTY, mechanism=NASTY, pair_words=NASTY, notes=(NASTY,), advice=NASTY,
        mutants=(mutant,),
    )  # fmt: skip
    shown = html_of(result)
    assert "<script" not in shown
    texts = [element.text for element in ET.fromstring(shown).iter() if element.text]
    assert texts.count(NASTY) == 5
    assert texts.count(f"0 of 1 killed; not {NASTY}") == 1


def test_verdicts_have_their_tone():
    def tone(result) -> str:
        match = re.search(r'<strong style="color:(#\w+)"', html_of(result))
        assert match is not None
        return match[1]

    kept, broken = found()["kept"], found()["broken"]
    tones = [
        tone(broken),
        tone(replace(broken, expected=Expectation.REFUTED)),
        tone(kept),
        tone(replace(kept, expected=Expectation.REFUTED)),
    ]
    assert len(set(tones)) == 4
    assert "VIOLATION NOT FOUND AGAIN" in html_of(replace(kept, expected=Expectation.REFUTED))


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_one_screen(kind):
    mutant = MutantResult("a\nmistake " * 90, Fate.SURVIVED, 0.0, 1e-6, 700)
    long = replace(
        found()[kind], mechanism="f" * 300, notes=("a note\n" * 80,) * 5, advice="more " * 90,
        mutants=(mutant,) * 60,
    )  # fmt: skip
    for result in (found()[kind], long):
        lines = text_of(result).splitlines()
        assert 9 <= len(lines) <= 15
        assert max(map(len, lines)) <= 100
        assert lines[0].startswith(f"AuditResult: {result.status.word}  {result.id}")


def test_text_tells_the_same_numbers():
    text = text_of(found()["broken"])
    assert re.search(r"certified epsilon +>= 3\.\d+ at delta = 0: 3\.\d+ times the claim", text)
    assert re.search(r"certified delta +>= 0\.\d+ at epsilon = 1", text)
    assert re.search(r"mutants +not needed", text)
    exact = text_of(found()["exact"])
    assert "none, the probabilities were computed" in exact
    assert "computed epsilon" in exact
    sure = replace(found()["broken"], epsilon=replace(found()["broken"].epsilon, lower=math.inf))
    assert "certified epsilon  >= inf at delta = 0" in text_of(sure)
    assert "".join(text_of(found()["kept"]).split("…")).isascii()


def test_a_result_shows_itself():
    result = found()["kept"]
    assert repr(result) == text_of(result)
    assert result._repr_html_() == html_of(result)
