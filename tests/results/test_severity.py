"""Tests of the severity of a violation, with its ratios, positions on the bar and words."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.results import severity
from dpaudit.results.verdicts import Verdict


@dataclass(frozen=True)
class Found:
    verdict: Verdict = Verdict.NOT_REFUTED
    claimed_epsilon: float = 1.0
    claimed_delta: float = 0.0
    certified_epsilon: float = 0.5
    certified_delta: float = 0.0
    detectable_epsilon: float | None = None


@pytest.mark.parametrize(
    ("found", "ratio"),
    [
        (Found(certified_epsilon=2.5), 2.5),
        (Found(certified_epsilon=0.0), 0.0),
        (Found(certified_epsilon=math.inf), math.inf),
        (Found(claimed_epsilon=math.inf), 0.0),
        (Found(claimed_epsilon=0.0, claimed_delta=0.1, certified_delta=0.3), 3.0),
        (Found(claimed_epsilon=0.0), math.inf),
        (Found(claimed_epsilon=0.0, certified_epsilon=0.0), 0.0),
    ],
)
def test_severity_is_certified_over_claimed(found, ratio):
    assert severity.severity(found) == pytest.approx(ratio)


@given(st.floats(0, 2), st.floats(2, 1e12))
def test_the_scale_is_linear_up_to_twice_the_claim(inside, beyond):
    assert severity.place(inside) == pytest.approx(inside * severity.place(1.0))
    assert severity.place(beyond) == severity.place(2.0) == severity.place(math.inf) == 1


@pytest.mark.parametrize(
    ("certified", "words"),
    [
        (0.0, "nothing certified"),
        (0.004, "under 1 % of the claim"),
        (0.5, "50 % of the claim"),
        (0.999, "99 % of the claim"),  # never rounded up
        (1.0, "100 % of the claim"),
        (1.0001, "barely above the claim"),
        (2.559, "2.55 times the claim"),
        (250.0, "250 times the claim"),
        (1000.0, "1000 times the claim"),
        (1000.1, "more than 1,000 times the claim"),
        (math.inf, "unbounded"),
    ],
)
def test_closeness_is_said_and_never_more_than_was_certified(certified, words):
    assert severity.closeness(Found(certified_epsilon=certified)) == words


@pytest.mark.parametrize(
    ("detectable", "words"),
    [(None, ""), (math.inf, "detects no violation of any size"), (1.2301, "detectable: ε = 1.24")],
)
def test_detectable_epsilon_is_rounded_up(detectable, words):
    assert severity.detectable_words(Found(detectable_epsilon=detectable)) == words


def test_bar_marks_verdict_claim_and_reach():
    shown = severity.bar(Found(detectable_epsilon=1.9))
    assert 'class="under"' in shown
    assert 'class="reach"' in shown
    assert "aria-hidden" in shown
    assert 'class="over"' in severity.bar(Found(Verdict.REFUTED, certified_epsilon=3.0))
    assert '<rect class="over"' in severity.bar(Found(Verdict.REFUTED, certified_epsilon=2.0))
    assert '<path class="over"' in severity.bar(Found(Verdict.REFUTED, certified_epsilon=2.1))
    for unknown in (None, 2.1, math.inf):
        assert "reach" not in severity.bar(Found(detectable_epsilon=unknown))
    assert "reach" not in severity.bar(Found(claimed_epsilon=0.0, detectable_epsilon=1.0))


def test_scale_names_its_ticks_and_says_itself():
    svg = severity.scale(Found(Verdict.REFUTED, certified_epsilon=20.0, detectable_epsilon=1.5))
    (root,) = ET.fromstring(svg)
    assert root.get("aria-label") == "Certified over claimed: 20 times the claim"
    words = re.findall(r">([^<>]+)</text>", svg)
    assert words == ["0", "claimed epsilon = 1", "2"]
    assert ">claimed delta = 0.1<" in severity.scale(Found(claimed_epsilon=0.0, claimed_delta=0.1))
    assert ">2<" not in severity.scale(Found(claimed_epsilon=math.inf))
