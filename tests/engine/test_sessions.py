"""Audits of sessions: verdicts, strategies, mutants of the budget, replay and workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from dpaudit import (
    Interactive,
    LocalDP,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    Settings,
    Verdict,
    audit,
    neighbors,
)
from dpaudit.data import digest
from dpaudit.engine.sessions import facing_strategies
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms import Scored
from dpaudit.neighbors import AllPairs, Portfolio, SearchSpace

PAIR = NeighborPair(np.array([[1.0], [1.0]]), np.array([[1.0], [0.0]]))


class Session:
    """Answer sums of sensitivity 1 at epsilon 1/2 each, at most twice."""

    def __init__(self, data: Any, rng: Generator, limit: int = 2) -> None:
        self.data, self.rng, self.limit, self.asked = data, rng, limit, 0

    def __call__(self, query: str) -> Any:
        if self.asked >= self.limit:
            raise RuntimeError("the budget is spent")
        self.asked += 1
        noise = self.rng.laplace(scale=2.0)
        return np.sum(self.data) + noise if query == "sum" else f"{np.sum(self.data) + noise > 1.5}"


def honest(data: Any, *, rng: Generator) -> Session:
    return Session(data, rng)


def unlimited(data: Any, *, rng: Generator) -> Session:
    return Session(data, rng, limit=100)


@pytest.mark.slow
def test_a_budget_holds_and_its_mutants_are_killed() -> None:
    result = audit(Interactive(honest, ["sum"], rounds=4), PureDP(1.0), PAIR, draws=10_000, seed=1)
    assert result.verdict is Verdict.NOT_REFUTED
    assert 0.6 < result.certified_epsilon <= 1.0
    killed = {mutant.name: mutant.killed for mutant in result.mutants}
    assert killed["the state asked: not updated"]
    assert "the state asked: updated one query late" in killed
    assert "budget" not in str(result.not_covered)


@pytest.mark.slow
def test_a_session_without_a_budget_is_refuted_with_a_smallest_pair() -> None:
    session = Interactive(unlimited, ["sum"], rounds=10)
    large = NeighborPair(np.ones((6, 1)), np.vstack([np.ones((5, 1)), [[0.0]]]))
    result = audit(session, PureDP(1.0), large, draws=4_000, seed=1)
    assert result.verdict is Verdict.REFUTED
    assert result.smallest is not None
    assert result.pair.recipe == "repeat sum (custom)"
    assert len(result.smallest.pair.left.data) <= 2


@pytest.mark.slow
def test_texts_and_refusals_are_outcomes() -> None:
    def leaky(data: Any, *, rng: Generator) -> Any:
        def ask(query: str) -> str:
            if np.sum(data) > 1.5 and rng.random() < 0.9:
                raise KeyError(query)
            return "fine"

        return ask

    result = audit(Interactive(leaky, ["q"], rounds=2), PureDP(1.0), PAIR, draws=2_000, seed=1)
    assert result.verdict is Verdict.REFUTED
    assert "raised KeyError" in result.witness.event or "says" in result.witness.event


@pytest.mark.slow
def test_results_do_not_depend_on_workers_and_are_replayed() -> None:
    session = Interactive(honest, ["sum", "positive"], rounds=3, other=np.zeros((2, 1)))
    results = [
        audit(session, PureDP(1.0), PAIR, draws=2_000, seed=3, mutants=None, settings=settings)
        for settings in (Settings(), Settings(), Settings(workers=2))
    ]
    facts = [(one.epsilon, one.delta, one.pair.recipe, one.witness) for one in results]
    assert facts[0] == facts[1] == facts[2]


@pytest.mark.slow
def test_a_sequential_audit_and_a_score_see_the_transcript() -> None:
    session = Interactive(unlimited, ["sum"], rounds=6)
    result = audit(session, PureDP(1.0), PAIR, draws=4_000, seed=1, method="sequential")
    assert result.verdict is Verdict.REFUTED
    result = audit(session, PureDP(1.0), PAIR, draws=4_000, seed=1, score=total)
    assert result.verdict is Verdict.REFUTED
    states = [m for m in audit(
        Interactive(honest, ["sum"], rounds=6), PureDP(1.0), PAIR, draws=4_000, seed=1, score=total
    ).mutants if m.name.startswith("the state")]  # fmt: skip
    assert len(states) == 2


def total(outputs: Any) -> Any:
    return np.sum([np.nan_to_num(outputs[f"answer {at}"]) for at in range(1, 7)], axis=0)


@pytest.mark.slow
def test_local_values_and_claims_that_depend_on_the_pair_are_audited() -> None:
    def survey(value: int, *, rng: Generator) -> Any:
        return lambda query: float(value + rng.laplace(scale=1.0))

    session = Interactive(survey, ["ask"], rounds=1)
    result = audit(session, LocalDP(0.5, domain=[0, 1]), draws=4_000, seed=1)
    assert result.verdict is Verdict.REFUTED
    assert result.certified_epsilon <= 1.0
    from dpaudit import MetricDP

    result = audit(
        session, MetricDP(1.0, metric=lambda x, y: abs(x - y), domain=[0, 2]), draws=4_000
    )
    assert result.verdict is not Verdict.REFUTED
    assert result.claimed_epsilon == 2.0


def test_pairs_are_multiplied_by_strategies() -> None:
    rng = np.random.default_rng(0)
    one = facing_strategies(Interactive(honest, ["sum"], rounds=2), PAIR, rng=rng)
    assert [pair.recipe for pair in one] == ["repeat sum (custom)"]
    two = facing_strategies(Interactive(honest, ["sum", "positive"]), [PAIR, PAIR], rng=rng)
    assert isinstance(two, Portfolio)
    assert len(two.pairs) == 6
    assert len(two.spaces) == 1
    assert two.ends == ()
    own = Interactive(honest, ["sum", "positive"], strategies=[lambda transcript: "sum"])
    assert len(facing_strategies(own, PAIR, rng=rng).ends) == 1  # type: ignore[union-attr]
    of_portfolio = facing_strategies(own, neighbors.portfolio(n_users=6), rng=rng)
    assert len(of_portfolio.pairs) == 4 * 4
    values = facing_strategies(Interactive(honest, ["sum"]), AllPairs((0, 1, 2)), rng=rng)
    assert len(values.pairs) == 3


def test_too_many_pairs_and_spaces_are_refused() -> None:
    rng = np.random.default_rng(0)
    session = Interactive(honest, [f"q{at}" for at in range(40)])
    with pytest.raises(
        ArgumentError, match="pairs must be at most 1 for this number of strategies"
    ):
        facing_strategies(session, [PAIR, PAIR], rng=rng)
    space = SearchSpace(
        lambda high: neighbors.far_user(n_users=4, high=high),
        {"high": neighbors.Interval(0.1, 1.0)},
    )
    with pytest.raises(ArgumentError, match="because the audit searches for the strategy, got"):
        facing_strategies(session, space, rng=rng)


@pytest.mark.slow
def test_removed_users_and_frames_have_sessions() -> None:
    import pandas as pd

    def start(data: Any, *, rng: Generator) -> Any:
        return lambda query: len(data) + rng.laplace(scale=1.0)

    session = Interactive(start, ["count"], rounds=2)
    frame = pd.DataFrame({"id": [1, 2, 3], "x": [0.0, 1.0, 2.0]})
    pairs = [
        NeighborPair.from_frame(frame, user="id", drop=3),
        NeighborPair([[0.0], [1.0]], [[0.0]], relation=Relation.ADD_REMOVE_USER),
        NeighborPair([[1, 2], [3]], [[1, 2]], relation=Relation.ADD_REMOVE_USER),
    ]
    for pair in pairs:
        result = audit(session, PureDP(1.0, relation=Relation.ADD_REMOVE_USER), pair, draws=3_000)
        assert result.verdict is Verdict.REFUTED  # two answers of epsilon 1


def test_wrapped_mechanisms_keep_their_strategies() -> None:
    from dpaudit.engine.sessions import budget_mutants, interactive

    session = Interactive(honest, ["sum"])
    assert interactive(Scored(session, total)) is session
    assert interactive(honest) is None
    assert list(budget_mutants(honest, [], rng=np.random.default_rng(0))) == []
    assert Outcomes(session) is not None


def test_sessions_that_cannot_start_are_errors_of_the_mechanism() -> None:
    def start(data: Any, *, rng: Generator) -> Any:
        raise OSError("no session")

    for queries in (["a"], ["a", "b"]):
        with pytest.raises(MechanismError, match="start raised OSError: no session"):
            audit(Interactive(start, queries), PureDP(1.0), PAIR, draws=2_000)


@pytest.mark.slow
def test_a_state_that_cannot_be_copied_costs_no_verdict() -> None:
    class Strange(int):
        def __deepcopy__(self, memo: Any) -> Any:
            raise TypeError("no copy")

    def start(data: Any, *, rng: Generator) -> Any:
        session = honest(data, rng=rng)
        session.limit = Strange(2)
        return session

    result = audit(Interactive(start, ["sum"], rounds=3), PureDP(1.0), PAIR, draws=4_000, seed=1)
    assert result.verdict is Verdict.NOT_REFUTED
    assert any(
        "its state could not be read" in text for text in (*result.notes, result.not_covered)
    )


@pytest.mark.slow
def test_stored_calls_belong_to_one_strategy(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    session = Interactive(honest, ["sum", "positive"], rounds=2)
    one, other = (
        PAIR.facing(session.adaptive("sum", "sum", "positive", "sum", 2, cuts))
        for cuts in (session.quantiles([PAIR.left * k], rng=rng) for k in (1, 2))
    )
    assert str(one.left.strategy) == str(other.left.strategy)
    assert digest(one.left) != digest(other.left)

    def first(transcript: Any) -> str:
        return "sum"

    def second(transcript: Any) -> str:
        return "positive"

    first.__name__ = second.__name__ = "mine"
    settings = Settings(cache_dir=tmp_path)
    for number, strategy in enumerate((first, closing(second), first), start=1):
        mechanism = Interactive(honest, strategies=[strategy])
        audit(mechanism, PureDP(1.0), PAIR, draws=500, settings=settings)
        assert len([*tmp_path.glob("mechanism *")]) == min(number, 2)


def closing(function: Any) -> Any:
    def mine(transcript: Any) -> Any:
        return function(transcript)

    return mine
