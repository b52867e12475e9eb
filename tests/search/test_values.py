"""The search among all pairs of many values: it finds planted values with the draws it has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from dpaudit import LocalDP, Settings, audit
from dpaudit.errors import ArgumentError
from dpaudit.events import separations
from dpaudit.mechanisms import Sampler
from dpaudit.neighbors import AllPairs
from dpaudit.results import Verdict
from dpaudit.search import least_budget
from dpaudit.search.values import FINALISTS, _kept

Array = NDArray[Any]


def draws_of(table: Any, size: int, kind: str = "numbers") -> list[Array]:
    rng = np.random.default_rng(0)
    drawn = [rng.choice(len(row), size=size, p=row) for row in np.asarray(table)]
    if kind == "texts":
        return [np.array(list("abcdefgh"))[one] for one in drawn]
    if kind == "bits":
        return [(one[:, None] == np.arange(len(table[0]))).astype(int) for one in drawn]
    return drawn


@pytest.mark.parametrize("kind", ["numbers", "texts", "bits"])
@pytest.mark.parametrize("delta", [0.0, 0.01, None])
def test_the_separation_of_two_inputs_is_close_to_the_truth(kind: str, delta: float | None) -> None:
    table = [[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.45, 0.3, 0.25]]
    found = separations(draws_of(table, 40_000, kind), delta)
    assert np.isneginf(np.diag(found)).all()
    truth = 0.5 - 0.2 if delta is None else math.log((0.5 - delta) / 0.2)
    assert found[0, 1] <= truth
    assert found[0, 1] == pytest.approx(truth, abs=0.03)
    assert AllPairs.ranked(found)[0] == (0, 1)
    assert AllPairs.ranked(found)[-1] == (0, 2)


@pytest.mark.parametrize("side", ["likelier", "other"])
def test_a_value_that_stands_out_on_one_side_survives_a_round(side: str) -> None:
    seen = np.zeros((40, 40))
    seen[30 if side == "likelier" else slice(None), slice(None) if side == "likelier" else 30] = 5
    assert 30 in _kept(seen, np.ones((40, 40)))
    assert len(_kept(seen, np.ones((40, 40)))) == 10


def test_equal_draws_have_no_separation() -> None:
    assert np.isneginf(separations([np.zeros(10)] * 3, 0.0)).all()


def test_missing_numbers_are_events() -> None:
    rng = np.random.default_rng(0)
    drawn = [np.where(rng.random(2000) < rate, np.nan, rng.normal(size=2000)) for rate in (0.5, 0)]
    # No number is missing on the other side, so its rate is below 0.0012.
    assert separations(drawn, 0.0)[0, 1] > 5


def test_pairs_are_ranked_by_the_larger_of_both_directions() -> None:
    numbers = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    assert AllPairs.ranked(numbers) == [(0, 2), (1, 2), (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("factor", [2.0, 3.0])
def test_one_value_in_sixty_is_found(factor: float) -> None:
    """Check that the values that stand out survive the first round, whose draws are few."""
    k, at = 60, 15

    def mechanism(value: int, size: int, *, rng: Generator) -> Array:
        keep = math.e / (math.e + k - 1) * (factor if value == at else 1.0)
        others = (value + rng.integers(1, k, size=size)) % k
        return np.where(rng.random(size) < keep, value, others)

    given: dict[str, Any] = {"mutants": None, "settings": Settings(shrink=False), "draws": 200_000}
    refuted = [
        audit(mechanism, LocalDP(1.0, domain=range(k)), seed=seed, **given).verdict
        is Verdict.REFUTED
        for seed in range(3)
    ]
    assert sum(refuted) >= 2


def test_hundreds_of_values_share_the_draws_of_the_exploration() -> None:
    drawn: list[int] = []

    def counting(value: int, size: int, *, rng: Generator) -> Array:
        drawn.append(size)
        return rng.integers(0, 4, size=size) + (value > 250)

    claim = LocalDP(1.0, domain=range(300))
    result = audit(
        counting, claim, seed=1, draws=20_000, mutants=None, settings=Settings(shrink=False)
    )
    assert sum(drawn) <= 2 * 20_000 + 4096  # and some calls that check the contract
    assert result.draws["explore"] == 6000
    assert result.verdict is Verdict.REFUTED


@pytest.mark.parametrize("values", [[], [1], [1, 1], ["a", "b", "a"], "ab", {"a": 1}, 5])
def test_values_must_differ(values: Any) -> None:
    with pytest.raises((ArgumentError, TypeError), match="values must be"):
        AllPairs(values)


def test_values_that_look_alike_are_different() -> None:
    assert AllPairs([1, 1.0, True, "1", (1,)]).name == "10 pairs of 5 values"


def test_more_values_need_more_draws() -> None:
    budgets = [least_budget(n) for n in (2, 10, 300)]
    assert budgets == sorted(budgets)
    with pytest.raises(ArgumentError, match="draws must be an integer >= .* 44,850 pairs of 300"):
        audit(lambda v, size, rng: rng.normal(size=size), LocalDP(1.0, domain=range(300)), draws=99)


def test_the_last_pairs_share_the_draws_of_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is in several of the last pairs is drawn on once."""
    roles: list[tuple[str, str]] = []
    draw = Sampler.draw

    def watched(self: Sampler, data: Any, draws: int, role: str, side: str) -> Array:
        roles.append((role, side))
        return draw(self, data, draws, role, side)

    def mechanism(value: int, size: int, *, rng: Generator) -> Array:
        others = (value + rng.integers(1, 8, size=size)) % 8
        return np.where(rng.random(size) < math.e / (math.e + 7), value, others)

    monkeypatch.setattr(Sampler, "draw", watched)
    found = audit(mechanism, LocalDP(1.0, domain=range(8)), seed=1, draws=4000, mutants=None)
    last = [role for role in roles if role[0].endswith(" final")]
    assert len(last) == len(set(last)) < 2 * FINALISTS
    assert found.draws["explore"] <= 0.3 * 4000
