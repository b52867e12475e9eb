"""Claims about single values: their numbers, and the values and metrics that they refuse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import LocalDP, LongitudinalDP, MetricDP, PureDP, Relation
from dpaudit.errors import ArgumentError, NoClaim


def distance(x: float, y: float) -> float:
    return abs(x - y)


def test_a_local_claim_has_the_numbers_of_approximate_dp() -> None:
    claim = LocalDP(1.0, 1e-3, domain=["a", "b"])
    assert claim.point == (1.0, 1e-3)
    assert claim.relation == Relation.LOCAL
    assert claim.between("a", "b") is claim
    assert claim.domain == ("a", "b")
    assert PureDP(1.0).domain is None
    assert claim.to_json() == {"epsilon": 1.0, "delta": 1e-3, "values": 2}
    assert str(claim) == "epsilon = 1, delta = 0.001 (local DP)"


def test_a_metric_claim_grows_with_the_distance() -> None:
    claim = MetricDP(0.5, distance, 1e-3, domain=[0, 1, 4])
    assert claim.point == (0.5, 1e-3)
    far = claim.between(0, 4)
    assert far.point == (2.0, 1e-3)
    assert far.between(0, 1).point == (0.5, 1e-3)  # the claim at one pair knows all other pairs
    assert claim.between(1, 1).point == (0.0, 1e-3)
    assert far.to_json() == {"epsilon": 0.5, "delta": 1e-3, "distance": 4.0, "values": 3}
    assert str(far) == "epsilon = 2, delta = 0.001 at distance 4 (0.5 per unit)"
    assert hash(claim) == hash(MetricDP(0.5, distance, 1e-3))


def test_an_infinite_distance_claims_nothing() -> None:
    for epsilon in (0.0, 1.0):
        with pytest.raises(NoClaim, match="pairs must be at a finite distance"):
            MetricDP(epsilon, lambda x, y: math.inf).between(0, 1)


def test_a_longitudinal_claim_depends_on_what_is_visible() -> None:
    claim = LongitudinalDP(1.0, 2.0, reports=3, domain=["a", "b"])
    assert len(claim.domain) == 8
    assert claim.between((1, "a", 3), (1, "b", 3)).point == (1.0, 0.0)
    assert claim.between(("all", "a", 3), ("all", "b", 3)).point == (2.0, 0.0)
    with pytest.raises(NoClaim, match="pairs must show the same reports"):
        claim.between((0, "a", 3), (1, "a", 3))
    for strange in ("yes", (0, "a"), (3, "a", 3), (-1, "a", 3), (0, "a", 4)):
        with pytest.raises(ArgumentError, match="pairs must consist of values of the claim's"):
            claim.between(strange, strange)
    assert str(claim.between(("all", "a", 3), ("all", "b", 3))) == "epsilon = 2 for all 3 reports"


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        (lambda x, y: -1.0, "metric must return a number >= 0, got -1.0"),
        (lambda x, y: math.nan, "metric must return a number >= 0, got nan"),
        (lambda x, y: x - y if x > y else 3 * (y - x), "metric must be symmetric"),
        (lambda x, y: None, "metric must return a number for 0 and 4, but it raised TypeError"),
        (lambda x, y: 1 / 0, "but it raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_metric_that_is_no_distance_is_refused(metric: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        MetricDP(1.0, metric).between(0, 4)


@pytest.mark.parametrize("domain", [[], ["a"], "ab", {"a": 1}, 5, b"ab"])
def test_a_domain_is_a_list_of_two_values_or_more(domain: Any) -> None:
    with pytest.raises((ArgumentError, TypeError), match="domain must be a list of at least two"):
        LocalDP(1.0, domain=domain)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: LocalDP(-1.0), "epsilon"),
        (lambda: LocalDP(math.nan), "epsilon"),
        (lambda: LocalDP(1.0, 2.0), "delta"),
        (lambda: MetricDP(1.0, "l1"), "metric"),  # type: ignore[arg-type]
        (lambda: MetricDP(1.0, distance, relation="local"), "relation"),  # type: ignore[arg-type]
        (
            lambda: MetricDP(1.0, distance, domain=[0, 1], relation=Relation.REPLACE_USER),
            "domain must be None unless the relation is replace_value",
        ),
        (lambda: LongitudinalDP(2.0, 1.0, reports=3, domain=[0, 1]), "total must be"),
        (lambda: LongitudinalDP(1.0, 2.0, reports=1, domain=[0, 1]), "reports must be"),
        (lambda: LongitudinalDP(1.0, 2.0, reports=3, domain=[0]), "domain must be"),
    ],
)
def test_bad_arguments_are_refused_by_name(build: Any, words: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=words):
        build()


def test_numbers_of_numpy_become_plain_numbers() -> None:
    assert [type(v) for v in LocalDP(1.0, domain=np.arange(2)).domain or ()] == [int, int]
    rows = LocalDP(1.0, domain=np.eye(2)).domain
    assert rows is not None
    assert rows[0].tolist() == [1.0, 0.0]
    days = np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]")
    assert [type(v) for v in LocalDP(1.0, domain=days).domain or ()] == [np.datetime64] * 2


def test_a_frame_is_no_domain() -> None:
    with pytest.raises(TypeError, match="got a frame"):
        LocalDP(1.0, domain=pd.DataFrame({"a": [1], "b": [2]}))


@pytest.mark.parametrize("rows", [0, -1, 1.5, None])
def test_a_window_has_at_least_one_row(rows: Any) -> None:
    with pytest.raises((ArgumentError, TypeError), match="rows must be"):
        Relation.REPLACE_USER.of_window(rows)


def test_only_replacement_has_windows() -> None:
    assert Relation.REPLACE_USER.of_window(1) == Relation.REPLACE_USER
    with pytest.raises(ArgumentError, match="of_window needs the relation replace_user"):
        Relation.ADD_REMOVE_USER.of_window(2)
    assert Relation(**Relation.REPLACE_USER.of_window(3).to_json()) == (
        Relation.REPLACE_USER.of_window(3)
    )
