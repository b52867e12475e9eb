"""Tests of the first lines of a report page.

The first lines name the worst result, its severity, and what to do.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from dpaudit.report import decisions as first
from dpaudit.report.pages import write_report
from dpaudit.results import Accumulated
from dpaudit.results.result import AuditResult
from dpaudit.results.verdicts import Expectation
from tests.report.test_pages import Reader, results_of_all_kinds, run_of

KEYS = ("kept", "refuted", "known", "powerless", "exact", "sure", "strange")


@pytest.fixture(scope="module")
def some() -> dict[str, AuditResult]:
    return dict(zip(KEYS, results_of_all_kinds(), strict=True))


def told(*results: AuditResult) -> first.Decisions:
    ordered = first.by_concern(results)
    return first.decisions(ordered, [result.id for result in ordered])


def with_bound(result: AuditResult, bound: float, name: str) -> AuditResult:
    return replace(result, id=name, epsilon=replace(result.epsilon, lower=bound))


def test_worst_comes_first_and_the_sentence_tells_of_it(some):
    bounds = {"mild": 1.5, "bad": 30.0, "middle": 4.0}
    found = told(*(with_bound(some["refuted"], b, name) for name, b in bounds.items()))
    assert [card.result.id for card in found.cards] == ["bad", "middle", "mild"]
    assert found.tone == "refuted"
    assert found.sentence == (
        "3 of 3 claims are refuted. The worst of them claims epsilon = 1 and needs at least 30."
    )
    assert found.cards[0].sentence == (
        "ε ≥ 30 is certified and ε = 1 is claimed, at δ = 0: 30 times the claim."
    )
    assert found.cards[0].next == some["refuted"].advice


def test_claims_that_only_all_runs_refute_are_told(some):
    together = replace(some["kept"], accumulated=Accumulated(5, 1, 30.0, 14.5, True))
    one = told(together, some["powerless"])
    assert one.tone == "refuted"
    assert one.sentence == ("1 of 2 claims is refuted. All runs of the history together refute it.")
    two = told(together, replace(together, id="other"))
    assert two.sentence.endswith("All runs of the history together refute them.")
    both = told(together, with_bound(some["refuted"], 30.0, "bad"))
    assert both.sentence.endswith("The worst of them claims epsilon = 1 and needs at least 30.")


def test_infinity_and_a_hair_are_said_as_such(some):
    assert told(some["sure"]).sentence.endswith("The worst of them holds for no finite epsilon.")
    assert told(some["sure"]).cards[0].next == some["sure"].advice
    hair = told(with_bound(some["refuted"], 1.0000001, "hair"))
    assert hair.sentence.endswith("The worst of them needs more than its claimed epsilon of 1.")
    assert "barely above the claim" in hair.cards[0].sentence


def test_claim_of_nothing_is_told_by_its_delta(some):
    claim = {**some["refuted"].claim, "epsilon": 0.0, "delta": 0.1}
    card = told(replace(some["refuted"], claim=claim)).cards[0]
    assert "δ ≥ " in card.sentence
    assert card.sentence.endswith("at ε = 0.")


def test_all_that_matters_is_counted(some):
    found = told(*some.values())
    assert found.sentence.startswith("2 of 7 claims are refuted.")
    assert found.more == (
        "Each certified number is wrong with probability at most 1e-6. 2 audits had no power and "
        "say nothing. 1 audit covers a known violation. 2 audits found no violation, although "
        "planted mistakes were found; this does not prove privacy."
    )
    assert [card.result.status.key for card in found.cards] == ["refuted", "refuted", "no_power"]
    assert [(r.status.key, close) for r, _, close in found.lines] == [
        ("powerless", "84 % of the claim")
    ]


def test_quiet_run_is_no_praise(some):
    found = told(some["kept"])
    assert found.sentence == "No claim is refuted."
    assert found.more.startswith("1 audit found no violation, although planted mistakes")
    assert (found.tone, found.cards, found.lines) == ("not_refuted", (), ())
    assert told(some["known"]).sentence == "No new violation. 1 known violation was reproduced."
    assert told(some["powerless"]).sentence == "This run says nothing about privacy."
    assert told().sentence == "Nothing was audited."


def test_lost_violations_are_looked_at_and_open_ones_kept_in_mind(some):
    lost = replace(some["kept"], expected=Expectation.REFUTED)
    found = told(lost)
    assert found.cards[0].result.status.key == "lost"
    assert "Remove the mark" in found.cards[0].next
    assert found.more.startswith("1 audit of a known violation did not find it.")
    open_ = told(replace(some["kept"], expected=Expectation.EITHER))
    assert [r.status.key for r, _, _ in open_.lines] == ["open"]


def test_a_card_shows_the_advice_of_its_result(some):
    advised = replace(some["refuted"], advice="Try 10 items for each user.")
    assert told(advised).cards[0].next == "Try 10 items for each user."


def test_reason_of_a_known_violation_stands_beside_it(some, tmp_path):
    known = some["known"].with_origin({"reason": "no <noise> on the count"}, Expectation.REFUTED)
    assert told(known).lines == ()
    page = write_report(tmp_path, run_of([]), [known]).read_text()
    close = "4.09 times the claim: no &lt;noise&gt; on the count"
    assert f'<span class="close">{close}' in page
    assert "Declared reason: no &lt;noise&gt; on the count</p>" in page


def test_cards_say_who_differs(some):
    (card,) = told(some["refuted"]).cards
    assert card.differs == "user 1: left 1, right 0"
    (card,) = told(replace(some["refuted"], pair=None)).cards
    assert card.differs == ""


def test_many_refutations_keep_the_head_short(some):
    found = told(*(with_bound(some["refuted"], 2.0 + i, f"r{i}") for i in range(60)))
    assert len(found.cards) == first.CARDS
    assert len(found.lines) == first.LINES
    assert found.left_out == 60 - first.CARDS - first.LINES


def test_page_shows_it_before_anything_else(some, tmp_path):
    noted = replace(some["refuted"], notes=("The last bits <betray>.",), advice="See <b>.")
    page = write_report(tmp_path, run_of([]), [noted, some["known"]]).read_text()
    text = Reader(page).text()
    tables = [found.start() for found in re.finditer('<table class="summary"', page)]
    fold = page.index('<details class="fold" id="known">')
    order = [page.index('<section class="tiles"'), page.index('<section class="first refuted"')]
    assert [*order, tables[0], fold, tables[1]] == sorted([*order, *tables, fold])
    assert '<p class="callout">The last bits &lt;betray&gt;.</p>' in page
    assert "<dt>Next</dt><dd>See &lt;b&gt;.</dd>" in page
    assert "1 known violation, found again" in text
    assert 'class="scale"' in page


def test_report_of_nothing_has_no_head(tmp_path):
    assert '<section class="first' not in write_report(tmp_path, run_of([]), []).read_text()


def test_order_of_concern_is_by_status_and_then_by_severity(some):
    mild = with_bound(some["refuted"], 1.2, "mild")
    order = [result.id for result in first.by_concern([some["kept"], mild, some["sure"]])]
    assert order == ["audit_x::sure", "mild", "audit_x::kept"]
    assert math.isinf(some["sure"].certified_epsilon)
