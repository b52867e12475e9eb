"""Transcripts of sessions, the strategies that make them, and mistakes in the state of sessions."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from dpaudit import Interactive, Strategy
from dpaudit.data import Interaction
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms import Fault


class Purse:
    """Answer with the sum, without noise, until a budget of 3 is spent."""

    def __init__(self, data: Any, spent: Any = 0) -> None:
        self.data, self.log, self.inner = data, [], {"spent": spent}

    def __call__(self, query: float) -> float:
        if query < 0:
            self.inner["spent"] += 1
            raise ValueError("a negative query")
        if self.inner["spent"] + query > 3:
            raise RuntimeError("over")
        self.inner["spent"] += query
        self.log.append(query)
        return float(self.data.sum() + query)


def purse(data: Any, *, rng: Generator) -> Purse:
    return Purse(data)


def drawn(mechanism: Interactive, name: str = "", size: int = 1, seed: int = 0) -> Any:
    strategies = {str(one): one for one in mechanism.strategies()}
    strategy = strategies[name] if name else mechanism.strategies()[0]
    data = Interaction(np.array([10.0, 20.0]), strategy)
    return mechanism(data, size, rng=np.random.default_rng(seed))


def test_a_transcript_holds_answers_and_refusals_in_order() -> None:
    (row,) = drawn(Interactive(purse, [1, 2], rounds=4))
    assert [row[f"answer {at}"] for at in (1, 2)] == [31.0, 32.0]
    assert [row[f"says {at}"] for at in (1, 2)] == ["", ""]
    assert [row[f"says {at}"] for at in (3, 4)] == ["<raised RuntimeError>"] * 2
    assert math.isnan(row["answer 3"])


def test_each_query_is_repeated_and_all_are_asked_in_turn() -> None:
    session = Interactive(purse, {"one": 1, "two": 2}, rounds=3)
    names = ["ask all in turn", "repeat one", "repeat two"]
    assert [str(strategy) for strategy in session.strategies()] == names
    (row,) = drawn(session, "repeat one")
    assert [row[f"answer {at}"] for at in (1, 2, 3)] == [31.0] * 3
    (row,) = drawn(session, "repeat two")
    assert [row[f"says {at}"] for at in (1, 2, 3)] == ["", *["<raised RuntimeError>"] * 2]


def test_a_strategy_sees_all_answers_and_refusals_and_may_stop() -> None:
    seen: list[Any] = []

    def adversary(transcript: list[tuple[Any, Any]]) -> Any:
        seen.append(list(transcript))
        return [2, 2, None][len(transcript)]

    (row,) = drawn(Interactive(purse, strategies=[adversary], rounds=5))
    assert seen[0] == []
    assert seen[1] == [(2, 32.0)]
    assert seen[2][1][0] == 2
    assert isinstance(seen[2][1][1], RuntimeError)
    assert len(seen) == 3
    assert [row[f"says {at}"] for at in (1, 2, 3)] == ["", "<raised RuntimeError>", ""]
    assert all(math.isnan(row[f"answer {at}"]) for at in (2, 3, 4, 5))


def test_the_next_query_depends_on_the_last_answer() -> None:
    def start(data: Any, *, rng: Generator) -> Any:
        replies = iter([1.0, 9.0, "no", 1.0])
        asked: list[str] = []

        def ask(query: str) -> Any:
            asked.append(query)
            return next(replies) if query != "stop" else None

        order.append(asked)
        return ask

    order: list[list[str]] = []
    session = Interactive(start, ["a", "b", "c", "d"], rounds=4)
    cuts = {name: np.array([5.0] * 5) for name in "abcd"}
    strategy = session.adaptive("a", "b", "c", "d", 2, cuts)
    session(Interaction(np.zeros(1), strategy), 1, rng=np.random.default_rng(0))
    assert order[-1] == ["a", "b", "c", "d"]
    words = "ask a, then b after answers below the quantile 0.5, else c, d after refusals"
    assert str(strategy) == words
    with pytest.raises(ArgumentError, match="must not all be first"):
        session.adaptive("a", "a", "a", "a", 2, cuts)


def test_quantiles_are_those_of_the_answers_to_each_query() -> None:
    session = Interactive(
        lambda data, *, rng: lambda query: data.sum() + query * rng.random(), [0, 100, 200]
    )
    found = session.quantiles([np.ones(3), np.ones(3)], rng=np.random.default_rng(0))
    assert found["0"].tolist() == [3.0] * 5
    assert 3 < found["100"][0] < 40 < found["100"][2] < 70 < found["100"][4] < 103
    only_texts = Interactive(lambda data, *, rng: lambda query: "no", ["q"])
    assert only_texts.quantiles([np.ones(3)], rng=np.random.default_rng(0))["q"].tolist() == [0] * 5


def test_an_interaction_ends_before_the_report_exceeds_the_limit() -> None:
    session = Interactive(
        purse, [1], rounds=4, spent=lambda s: s.inner["spent"], limit=2, strategies=[lambda t: 2]
    )
    (row,) = drawn(session, "repeat 1")
    assert [row[f"spent {at}"] for at in (1, 2)] == [1, 2]
    assert [row[f"says {at}"] for at in (1, 2, 3, 4)] == ["", "", "<over the limit>", ""]
    assert math.isnan(row["answer 3"])
    assert math.isnan(row["spent 3"])
    (row,) = drawn(session, "<lambda>")
    assert row["spent 1"] == 2
    assert row["says 2"] == "<raised RuntimeError>"


def test_other_sessions_are_started_before_each_query_and_asked_afterwards() -> None:
    events: list[Any] = []

    def start(data: Any, *, rng: Generator) -> Any:
        events.append(("start", data.tolist()))

        def ask(query: Any) -> float:
            events.append((query, data.tolist()))
            return float(data.sum())

        return ask

    session = Interactive(start, ["q"], rounds=2, other=np.array([7.0]))
    (row,) = drawn(session, "repeat q, beside other sessions")
    ours, other = [10.0, 20.0], [7.0]
    turn = [("start", other), ("q", ours), ("q", other)]
    assert events == [("start", ours), *turn, *turn]
    assert [row[f"other answer {at}"] for at in (1, 2)] == [7.0, 7.0]
    assert "other answer 1" not in drawn(session, "repeat q").dtype.names


@pytest.mark.parametrize("randomness", ["rng", "integer", "legacy", None])
def test_every_source_of_randomness_is_used_and_seeded(randomness: str | None) -> None:
    def of(noise: Any) -> Any:
        return lambda query: float(noise)

    starts: dict[str | None, Any] = {
        "rng": lambda data, *, rng: of(rng.random()),
        "integer": lambda data, *, seed: of(np.random.default_rng(seed).random()),
        "legacy": lambda data: of(np.random.random()),  # noqa: NPY002
        None: lambda data: of(0.5),
    }
    session = Interactive(
        starts[randomness], ["q"], randomness=randomness, rounds=1, other=np.zeros(1)
    )
    name = "repeat q, beside other sessions"
    one, again, another = (drawn(session, name, 4, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert session.dpaudit_unseeded is (randomness is None)
    if randomness is not None:
        assert not np.array_equal(one, another)
        assert len(set(one["answer 1"].tolist())) == 4
        assert not set(one["answer 1"].tolist()) & set(one["other answer 1"].tolist())


@pytest.mark.parametrize(
    ("answer", "value", "says"),
    [
        (True, 1.0, ""),
        (3, 3.0, ""),
        (np.float32(0.5), 0.5, ""),
        (np.array([2.0]), 2.0, ""),
        ("yes", None, "yes"),
        (None, None, "<None>"),
    ],
)
def test_answers_of_every_kind_are_coded(answer: Any, value: float | None, says: str) -> None:
    (row,) = drawn(Interactive(lambda data, *, rng: lambda query: answer, ["q"], rounds=1))
    assert row["says 1"] == says
    assert math.isnan(row["answer 1"]) if value is None else row["answer 1"] == value


def test_answers_of_several_numbers_need_their_width() -> None:
    def start(data: Any, *, rng: Generator) -> Any:
        return lambda query: data if query == "all" else "none"

    (row,) = drawn(Interactive(start, ["all", "no"], rounds=3, width=2))
    assert row["answer 1"].tolist() == [10.0, 20.0]
    assert row["says 2"] == "none"
    assert np.isnan(row["answer 2"]).all()
    words = r"must answer with a text, None, or width=3 numbers, got .*Pass width="
    with pytest.raises(MechanismError, match=words):
        drawn(Interactive(start, ["all"], width=3))
    with pytest.raises(MechanismError, match="must answer with a text, None, or width=1 numbers"):
        drawn(Interactive(lambda data, *, rng: lambda query: {"a": 1}, ["q"]))


def test_a_session_that_cannot_start_is_an_error_of_the_mechanism() -> None:
    def start(data: Any, *, rng: Generator) -> Any:
        raise OSError("no session")

    with pytest.raises(OSError, match="no session"):
        drawn(Interactive(start, ["q"]))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"queries": []}, ArgumentError, "queries must hold at least one query, got none"),
        ({"queries": "sum"}, TypeError, "queries must be a list of queries, or a dict"),
        ({"queries": 3}, TypeError, "queries must be a list of queries, or a dict"),
        ({"start": 3}, TypeError, "start must be a function"),
        ({"start": lambda data: data}, TypeError, "start must take the argument rng"),
        ({"rounds": 0}, ArgumentError, "rounds must be an integer >= 1, got 0"),
        ({"width": 0}, ArgumentError, "width must be an integer >= 1, got 0"),
        ({"ask": 3}, TypeError, "ask must be a function"),
        ({"limit": 1.0}, ArgumentError, "limit must be None unless spent is given, got 1.0"),
        ({"spent": len, "limit": math.nan}, ArgumentError, "limit must be"),
        ({"spent": len, "limit": -1.0}, ArgumentError, "limit must be"),
        ({"spent": 1.0}, TypeError, "spent must be a function"),
        ({"strategies": [3]}, TypeError, "strategies must be a list of strategies or functions"),
        ({"randomness": "dice"}, ArgumentError, "randomness must be one of"),
        ({"strategies": [Strategy("s", len, interleaves=True)]}, ArgumentError,
         "other must be a dataset if a strategy interleaves, got None"),
        ({"strategies": [max, max]}, ArgumentError, "strategies must have different names"),
        ({"start": lambda data, *, key: data, "randomness": "jax", "other": [1]}, ArgumentError,
         'randomness must not be "jax" if other is given'),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(given: dict[str, Any], error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        Interactive(**{"start": purse, "queries": ["sum"], **given})


def test_long_and_equal_names_of_queries_are_numbered() -> None:
    session = Interactive(purse, ["a" * 40, "b", "b", sum, lambda s: s])
    assert list(session.queries) == ["query 1", "b", "query 3", "sum", "query 5"]


def test_data_without_a_strategy_get_the_first_strategy() -> None:
    session = Interactive(purse, [1, 2], rounds=2)
    plain = session(np.array([10.0, 20.0]), 3, rng=np.random.default_rng(0))
    assert np.array_equal(plain, drawn(session, size=3))


def test_an_interactive_mechanism_travels_to_other_processes() -> None:
    session = Interactive(purse, [1, 2], rounds=2)
    assert np.array_equal(drawn(pickle.loads(pickle.dumps(session))), drawn(session))


# --- mistakes in the state -----------------------------------------------------------------------


def faults_of(mechanism: Interactive) -> dict[str, Fault]:
    data = [np.array([10.0, 20.0]), np.array([1.0, 2.0])]
    return {str(one): one for one in mechanism.faults(data, rng=np.random.default_rng(0))}


def test_states_are_found_that_change_alike_for_all_data() -> None:
    class Session(Purse):
        def __call__(self, query: float) -> float:
            self.last = super().__call__(query)  # depends on the data
            self.fixed = 4
            return self.last

    found = faults_of(Interactive(lambda data, *, rng: Session(data), [1, -1], rounds=3))
    assert list(found) == [
        "log not updated",
        "log updated one query late",
        "inner.spent not updated",
        "inner.spent updated one query late",
        "inner.spent restored after an exception",
    ]
    assert "inner.spent reset by other sessions" in faults_of(
        Interactive(purse, [1], rounds=2, other=np.zeros(1))
    )


@pytest.mark.parametrize(
    ("kind", "queries", "allowed"),
    [
        ("not updated", [1], 6),
        ("updated one query late", [1], 4),
        ("restored after an exception", [1, -1], 3),
        ("reset by other sessions", [1], 6),
    ],
)
@pytest.mark.parametrize("start", [0, 0.0, Fraction(0), Decimal(0)])
def test_each_mistake_allows_more_answers(
    kind: str, queries: list[int], allowed: int, start: Any
) -> None:
    session = Interactive(
        lambda data, *, rng: Purse(data, start), queries, rounds=6, other=np.zeros(2)
    )

    def answered(mechanism: Interactive) -> int:
        name = "ask all in turn" if len(queries) > 1 else "repeat 1"
        name += ", beside other sessions" * kind.startswith("reset")
        (row,) = drawn(mechanism, name)
        return sum(not math.isnan(row[f"answer {at}"]) for at in range(1, 7))

    honest = answered(session)
    assert honest == (2 if len(queries) > 1 else 3)
    broken = session.with_fault(Fault(kind, ("inner", "spent")))
    assert answered(broken) == allowed
    assert str(Fault(kind, ("inner", "spent"))) in broken.__name__
    assert answered(session) == honest


def test_a_collection_that_is_not_updated_keeps_its_identity() -> None:
    class Session:
        def __init__(self) -> None:
            self.spent: list[int] = []
            self.alias = self.spent

        def __call__(self, query: int) -> float:
            assert self.alias is self.spent
            if len(self.spent) == 2:
                raise RuntimeError("over")
            self.spent.append(query)
            return 0.0

    session = Interactive(lambda data, *, rng: Session(), [1], rounds=4)
    for kind, refused in (("not updated", 0), ("updated one query late", 1)):
        (row,) = drawn(session.with_fault(Fault(kind, ("spent",))))
        assert sum(row[f"says {at}"] != "" for at in range(1, 5)) == refused


def test_a_session_with_slots_and_one_with_cycles_are_read() -> None:
    class Slotted:
        __slots__ = ("left", "self")

        def __init__(self) -> None:
            self.left, self.self = 2, self

        def __call__(self, query: int) -> float:
            self.left -= 1
            return 0.0

    found = faults_of(Interactive(lambda data, *, rng: Slotted(), [1], rounds=2))
    assert next(iter(found)) == "left not updated"


def test_a_strategy_of_the_user_keeps_its_name() -> None:
    own = Strategy("mine", lambda transcript: 1)
    session = Interactive(purse, [2], strategies=[own])
    assert [str(one) for one in session.strategies()] == ["mine", "repeat 2"]


# --- mistakes of earlier versions ---


def test_other_sessions_have_seeds_that_are_no_neighbours() -> None:
    seeds: list[int] = []

    def start(data: Any, *, seed: int) -> Any:
        seeds.append(seed)
        return lambda query: 0.0

    session = Interactive(start, ["q"], randomness="integer", other=np.zeros(1), rounds=3)
    drawn(session, "repeat q, beside other sessions", 2)
    assert len(set(seeds)) == len(seeds) == 8
    assert min(abs(a - b) for a in seeds[:4] for b in seeds[:4] if a != b) > 100


def test_each_session_may_use_the_generator_once_as_a_seed() -> None:
    def start(data: Any, *, rng: Generator) -> Any:
        seed = rng
        noise = np.random.default_rng(seed)
        return lambda query: noise.random()

    session = Interactive(start, ["q"], other=np.zeros(1), rounds=2)
    (row,) = drawn(session, "repeat q, beside other sessions")
    assert len({row[name] for name in row.dtype.names if "answer" in name}) == 4


def test_a_session_may_reuse_the_buffer_of_its_answers() -> None:
    def start(data: Any, *, rng: Generator) -> Any:
        buffer = np.zeros(2)

        def ask(query: Any) -> Any:
            buffer[:] += 1
            return buffer

        return ask

    def own(transcript: list[tuple[Any, Any]]) -> Any:
        assert [answer.tolist() for _, answer in transcript] == [
            [at + 1] * 2 for at in range(len(transcript))
        ]
        return "q"

    (row,) = drawn(Interactive(start, strategies=[own], rounds=3, width=2))
    assert [row[f"answer {at}"].tolist() for at in (1, 2, 3)] == [[1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("reported", [math.nan, None, "much"])
def test_a_report_must_be_a_number(reported: Any) -> None:
    session = Interactive(purse, [1], spent=lambda s: reported, limit=1.0)
    with pytest.raises(MechanismError, match="spent must return a number for purse, got"):
        drawn(session)


def test_complex_and_huge_answers_are_refused() -> None:
    for answer in (1 + 2j, 10**400):
        with pytest.raises(MechanismError, match="must answer with a text, None, or width=1"):
            drawn(Interactive(lambda data, *, rng, a=answer: lambda query: a, ["q"]))


def test_a_copied_adaptive_strategy_keeps_its_cuts() -> None:
    session = Interactive(purse, {"a": 0.25, "b": 0.5}, rounds=4)
    cuts = {"a": np.array([30.2] * 5), "b": np.array([99.0] * 5)}
    strategy = session.adaptive("a", "a", "b", "b", 2, cuts)
    copied = pickle.loads(pickle.dumps(strategy))
    data = np.array([10.0, 20.0])
    one, other = (
        session(Interaction(data, s), 1, rng=np.random.default_rng(0)) for s in (strategy, copied)
    )
    assert np.array_equal(one, other)
    assert one["answer 2"] == 30.5  # the first answer, 30.25, is above the cut


def test_an_array_is_reset_each_time() -> None:
    class Session:
        def __init__(self) -> None:
            self.spent = np.zeros(1)

        def __call__(self, query: Any) -> float:
            if self.spent[0] >= 1:
                raise RuntimeError("over")
            self.spent += 1
            return 0.0

    session = Interactive(lambda data, *, rng: Session(), ["q"], rounds=5, other=np.zeros(1))
    broken = session.with_fault(Fault("reset by other sessions", ("spent",)))
    (row,) = drawn(broken, "repeat q, beside other sessions")
    assert [row[f"says {at}"] for at in range(1, 6)] == [""] * 5


def test_states_that_cannot_be_added_or_read_have_no_such_mutants() -> None:
    class Session:
        def __init__(self) -> None:
            self.cells, self.loop = [[0.0]], []
            self.loop.append(self.loop)

        def __call__(self, query: Any) -> float:
            self.cells[0][0] += 1
            return 0.0

    assert list(faults_of(Interactive(lambda data, *, rng: Session(), ["q"], rounds=3))) == [
        "cells not updated"
    ]
