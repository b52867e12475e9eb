"""Tests that outputs of every kind become arrays by a fixed function of single draws."""

from __future__ import annotations

import functools
import math
import pickle
import random
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import (
    AuditResult,
    MechanismError,
    NeighborPair,
    Outcomes,
    PureDP,
    Settings,
    Subprocess,
    Verdict,
    audit,
    neighbors,
    one_draw,
    within_sensitivity,
)
from dpaudit.data import Failure, object_array, words_of_shape
from dpaudit.errors import MechanismTimeout
from dpaudit.mechanisms import Watch
from dpaudit.mechanisms.outcomes import LateFailure, as_array, of_columns, to_rows
from dpaudit.neighbors import portfolio

PAIR = NeighborPair([[0.0]], [[1.0]])
RNG = np.random.default_rng


# --- single draws ---


def test_numbers_stay_numbers_and_none_is_no_answer() -> None:
    assert as_array([1, None, 2.5]).tolist()[::2] == [1.0, 2.5]
    assert math.isnan(as_array([1, None])[1])
    assert as_array([1, 2]).dtype.kind == "i"


def test_shapes_that_differ_are_rows_and_none_is_one_nan() -> None:
    rows = as_array([[1.0, 2.0], None, np.zeros((2, 2))])
    assert [row.shape for row in rows] == [(2,), (), (2, 2)]
    assert math.isnan(rows[1])


@pytest.mark.parametrize("beside", [[], [2.5], [[1.0, 2.0]], [Failure("KeyError")]])
def test_what_becomes_of_none_does_not_depend_on_the_draws_beside_it(beside: list[Any]) -> None:
    (none, *_) = to_rows(as_array([None, *beside], catches=True))
    assert none.shape == ()
    assert math.isnan(none)


def test_texts_and_lists_of_texts_are_texts() -> None:
    assert as_array(["a", None]).tolist() == ["a", "<None>"]
    assert as_array([["a", "b"], [], ["c"]]).tolist() == ["a\x1fb", "", "c"]


def test_numbers_and_texts_by_turns_are_records_of_both() -> None:
    records = as_array([1.5, "no answer", None])
    assert records["text"].tolist() == ["", "no answer", "<None>"]
    assert records["value"][0] == 1.5
    assert np.isnan(records["value"][1:]).all()


def test_dicts_of_the_same_keys_are_records() -> None:
    records = as_array([{"a": 1, "b": "x"}, {"b": "y", "a": None}])
    assert records.dtype.names == ("a", "b")
    assert records["b"].tolist() == ["x", "y"]
    assert math.isnan(records["a"][1])


def test_absent_and_unknown_keys_are_outcomes_where_keys_are_declared() -> None:
    records = as_array([{"a": 1}, {"c": 3}, None], ("a", "b"))
    assert records.dtype.names == ("a", "has a", "b", "has b", "other keys")
    assert records["has a"].tolist() == [True, False, False]
    assert records["other keys"].tolist() == [0, 1, 0]
    with pytest.raises(MechanismError, match=r"keys differ.*keys=\['a', 'c'\]"):
        as_array([{"a": 1}, {"c": 3}])


def test_frames_and_series_are_dicts_of_their_cells() -> None:
    counts = pd.DataFrame({"city": ["x", "y"], "count": [1.0, 2.0]})
    assert as_array([counts], ("x", "y"))["y"].tolist() == [2.0]
    grouped = counts.set_index("city")["count"]
    assert as_array([grouped], ("x", "z"))["has z"].tolist() == [False]
    two = counts.assign(mean=[0.5, 0.25]).set_index("city")
    assert as_array([two], (("x", "mean"), ("y", "count"))).dtype.names[0] == "('x', 'mean')"


def test_an_exception_has_a_shape_of_its_own_and_a_name() -> None:
    rows = as_array([1.0, Failure("KeyError"), Failure("ValueError")], catches=True)
    assert [words_of_shape(row.shape) for row in rows] == [
        "()",
        "raised KeyError",
        "raised ValueError",
    ]
    assert as_array(["a", Failure("KeyError")]).tolist() == ["a", "<raised KeyError>"]
    assert as_array([{"a": 1}, Failure("E")], ("a",), catches=True)["error"].tolist() == [
        "",
        "raised E",
    ]


def test_infinite_numbers_are_outcomes_only_where_errors_are() -> None:
    assert np.isfinite(as_array([np.inf, -np.inf, 0.0], catches=True)).all()
    assert np.isinf(as_array([np.inf])).all()
    (row, _) = as_array([[np.inf], [1.0, 2.0]], catches=True)
    assert np.isfinite(row).all()


@pytest.mark.parametrize(
    ("draws", "words"),
    [
        ([object(), 1], "draws must be numbers, texts"),
        ([{"a": object()}], "values of draws must be numbers or texts"),
        ([{}, {}], "at least one key, got empty ones"),
        ([{"a": 1}, 3], "must all be dicts"),
        ([{"a": [1, 2]}, {"a": [1]}], "equal shapes"),
    ],
)
def test_draws_that_are_none_of_these_are_refused(draws: list[Any], words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        as_array(draws)


def test_columns_of_draws_are_records() -> None:
    records = of_columns({"a": np.arange(3.0), "b": np.zeros((3, 2))}, 3)
    assert records is not None
    assert records["b"].shape == (3, 2)
    assert of_columns(pd.DataFrame({"a": [1, 2], "b": ["x", None]}), 2) is not None
    assert of_columns({"a": np.arange(2)}, 3) is None
    assert of_columns(np.zeros(3), 3) is None


def test_columns_with_infinite_numbers_are_outcomes_too() -> None:
    def columns(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return {"a": np.full(size, np.inf), "b": rng.normal(size=size)}

    records = Outcomes(columns, errors="outcome")(np.zeros(1), 3, rng=RNG(1))
    assert records.dtype.names == ("a", "b")
    assert np.isfinite(records["a"]).all()


def test_rows_of_one_shape_stay_objects() -> None:
    assert object_array([np.zeros(2), np.ones(2)]).shape == (2,)


# --- mechanisms ---


def leaky(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    """Raise an error in half of the calls if the data have a positive sum."""
    if data.sum() > 0 and rng.random() < 0.5:
        raise ZeroDivisionError("no users")
    return rng.laplace(size=size)


def test_an_exception_on_one_side_refutes_and_is_told_by_its_type() -> None:
    result = audit(Outcomes(leaky, errors="outcome"), PureDP(1.0), PAIR, draws=1000, seed=1)
    assert result.verdict.words == "REFUTED"
    (note,) = result.notes
    assert note.startswith("Exceptions count as outcomes: ZeroDivisionError on the right, in ")
    with pytest.raises(MechanismError, match="raised ZeroDivisionError: no users"):
        audit(leaky, PureDP(1.0), PAIR, draws=1000, seed=1)


def test_with_errors_as_outcomes_every_draw_is_a_call_of_its_own() -> None:
    """Check that every draw is a separate call if errors are outcomes.

    In a call of many draws, one failing draw would make the call fail, and the rate would be
    squared.
    """
    sizes = []

    def rare(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        sizes.append(size)
        return rng.laplace(size=size)

    Outcomes(rare, errors="outcome", apart=True)(np.zeros(1), 5, rng=RNG(1))
    assert sizes == [1] * 5


def test_only_data_on_which_trials_fail_are_drawn_from_one_by_one() -> None:
    sizes: list[int] = []

    def fails(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        sizes.append(size)
        if data.sum() > 0:
            raise KeyError("x")
        return rng.laplace(size=size)

    Outcomes(fails, errors="outcome")(np.zeros(1), 5, rng=RNG(1))
    assert sizes == [64] * 8 + [5]
    sizes.clear()
    mechanism = Outcomes(fails, errors="outcome")
    assert words_of_shape(mechanism(np.ones(1), 2, rng=RNG(1))[0].shape) == "raised KeyError"
    assert sizes == [64] + [1] * 2
    with pytest.raises(LateFailure, match="on some data but not on others. Pass apart=True"):
        mechanism(np.zeros(1), 5, rng=RNG(1))


def unreliable(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    """Fail as a whole call, on all data alike.

    By chance, some datasets pass the trials.
    """
    if rng.random() < 0.01:
        raise ConnectionError("try again")
    return rng.integers(3, size=size)


def test_calls_that_fail_on_both_sides_alike_tell_nothing() -> None:
    """Check that calls that fail on both sides alike refute nothing.

    If one side used single draws and the other side whole calls, the failures would differ.
    """
    datasets = [np.array([float(user)]) for user in range(40)]
    trials = [Outcomes(unreliable, errors="outcome")._fails_on(data) for data in datasets]
    passes, fails = datasets[trials.index(False)], datasets[trials.index(True)]
    result = audit(
        Outcomes(unreliable, errors="outcome"),
        PureDP(0.01),
        NeighborPair(passes, fails),
        draws=2000,
        seed=2,
        mutants=None,
        failure_prob=0.01,
    )
    assert result.verdict.words != "REFUTED"
    (note,) = result.notes
    assert "ConnectionError on the left, in" in note
    assert "ConnectionError on the right, in" in note


def test_a_failure_that_comes_late_begins_the_audit_again_one_by_one() -> None:
    calls: list[int] = []

    def late(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        calls.append(size)
        if size != 64 and rng.random() < 0.02:  # the trials succeed
            raise KeyError("x")
        return rng.laplace(size=size)

    result = audit(
        Outcomes(late, errors="outcome"), PureDP(1.0), PAIR, draws=1000, seed=3, mutants=None
    )
    assert max(calls) > 64  # whole calls at first
    assert calls[-900:] == [1] * 900
    assert result.failure_prob == 1e-6
    assert any("KeyError on the left" in note for note in result.notes)


def rarely(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    """Fail in some calls after the trials."""
    if size != 64 and rng.random() < 0.02:
        raise KeyError("x")
    return rng.laplace(size=size)


def test_an_audit_that_began_again_is_kept_too(tmp_path: Path) -> None:
    """Check that an audit that began again is kept too.

    Calls of many draws and calls of one draw are stored separately.
    """

    def found(keep: Path | None) -> AuditResult:
        return audit(
            Outcomes(rarely, errors="outcome"),
            PureDP(1.0),
            PAIR,
            draws=1000,
            seed=3,
            mutants=None,
            settings=Settings(cache_dir=keep),
        )

    whole = found(None)
    for _ in "12":
        assert found(tmp_path).witness == whole.witness
    assert (tmp_path / "apart").is_dir()


def test_a_failure_that_comes_late_in_a_search_begins_again_too() -> None:
    result = audit(
        Outcomes(rarely, errors="outcome"), PureDP(1.0), draws=2000, seed=3, mutants=None
    )
    assert any("KeyError on the left" in note for note in result.notes)


@pytest.mark.slow
def test_mutants_that_are_given_begin_again_with_the_mechanism() -> None:
    """Check that given mutants begin again with the mechanism.

    Without a new start, a mutant that fails late would not run, and the audit would have no power.
    """

    def noisy(data: Any, size: int, *, rng: np.random.Generator, scale: float = 2.0) -> Any:
        if size not in (1, 64):  # trials and separate calls succeed
            raise KeyError("x")
        return data.sum() + rng.laplace(scale=scale, size=size)

    less = functools.partial(noisy, scale=0.2)
    released = Outcomes(noisy, errors="outcome")
    for mutant in (less, Outcomes(less, errors="outcome")):
        found = audit(released, PureDP(1.0), PAIR, draws=300, seed=3, mutants=[mutant])
        assert [m.status.value for m in found.mutants if m.is_given] == ["killed"]


def test_a_mechanism_may_have_an_attribute_of_any_name() -> None:
    class Release:
        draws = 3

        def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
            return [{"a": n} for n in data.sum() + rng.laplace(size=size)]

    released = Outcomes(Release(), keys=["a"])
    assert len(released(np.zeros(1), 4, rng=RNG(1))) == 4


def test_an_infinite_number_on_one_side_refutes() -> None:
    def overflow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.where((rng.random(size) < 0.5) & (data.sum() > 0), np.inf, rng.normal(size=size))

    with pytest.raises(MechanismError, match="returned inf"):
        audit(overflow, PureDP(1.0), PAIR, draws=1000, seed=1)
    result = audit(Outcomes(overflow, errors="outcome"), PureDP(1.0), PAIR, draws=1000, seed=1)
    assert result.verdict.words == "REFUTED"


@pytest.mark.slow
def test_an_absent_key_refutes_and_mutants_are_wrapped_too() -> None:
    def counts(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        there = rng.random(size) < 0.5 * data.sum()
        return [
            {"a": n} | ({"b": 1} if b else {})
            for n, b in zip(rng.laplace(size=size), there, strict=True)
        ]

    result = audit(Outcomes(counts, keys=["a", "b"]), PureDP(1.0), PAIR, draws=1000, seed=1)
    assert "b has an answer" in result.witness.event or "has b" in result.witness.event

    def fine(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return [{"a": n} for n in data.sum() + rng.laplace(size=size)]

    result = audit(
        Outcomes(fine, keys=["a"]), PureDP(1.5), PAIR, draws=3000, seed=1, mutants=[counts]
    )
    assert result.verdict.words == "NOT REFUTED"


@one_draw(randomness="legacy")
def legacy(data: Any) -> float:
    return data.sum() + np.random.laplace() + 0 * random.random()  # noqa: NPY002


def test_one_draw_is_seeded_and_global_generators_stay_as_they_were() -> None:
    before = np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    first = legacy(np.zeros(1), 4, rng=RNG(1))
    assert np.array_equal(first, legacy(np.zeros(1), 4, rng=RNG(1)))
    assert len(set(first.tolist())) == 4
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before  # noqa: NPY002


def test_one_draw_is_a_decorator_a_function_and_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(legacy)) is legacy
    by_hand = Outcomes(one_draw(_integer, randomness="integer"), then=_doubled)
    again = pickle.loads(pickle.dumps(by_hand))
    assert np.array_equal(again(np.zeros(1), 3, rng=RNG(2)), by_hand(np.zeros(1), 3, rng=RNG(2)))
    assert repr(by_hand.mechanism) == "one_draw(_integer, randomness='integer')"


def test_what_a_script_decorates_can_be_sent_to_workers() -> None:
    """Check that a mechanism decorated in a script can be sent to workers.

    Workers do not know the names of a script or a notebook.
    """
    code = (
        "import sys, cloudpickle; from dpaudit import one_draw\n"
        "@one_draw\n"
        "def noisy(data, *, rng): return data.sum() + rng.normal()\n"
        "sys.stdout.buffer.write(cloudpickle.dumps(noisy))"
    )
    sent = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    noisy = pickle.loads(sent)
    assert np.array_equal(noisy(np.zeros(1), 3, rng=RNG(2)), RNG(2).normal(size=3))


def _integer(data: Any, *, seed: int) -> float:
    return float(RNG(seed).normal())


def _doubled(draw: float) -> float:
    return 2 * draw


def test_each_draw_gets_data_that_no_other_draw_changed() -> None:
    @one_draw(randomness="rng")
    def careless(data: Any, *, rng: np.random.Generator) -> float:
        data.append([1.0])
        return len(data) + rng.normal() * 0

    assert careless([[0.0], [1.0, 2.0]], 3, rng=RNG(1)).tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize(
    ("make", "arguments", "words"),
    [
        (one_draw, {"randomness": "cuda"}, "randomness must be one of"),
        (one_draw, {"randomness": ["rng"]}, "randomness must be one of"),
        (one_draw, {"vmap": True}, "vmap must be False"),
        (Outcomes, {"errors": "ignore"}, "errors must be one of"),
        (Outcomes, {"keys": "a"}, "keys must be a list"),
        (Outcomes, {"keys": []}, "at least one entry"),
        (Outcomes, {"keys": ["1", 1]}, "each key once"),
        (Outcomes, {"then": 3}, "then must be a function"),
    ],
)
def test_bad_options_are_refused(make: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        make(_integer, **arguments)


def test_pytorch_and_numpy_do_not_draw_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that PyTorch and numpy do not draw the same numbers.

    PyTorch and numpy seed a Mersenne Twister alike, so coins from one seed would be equal.
    """
    theirs = np.random.RandomState(0)
    torch = SimpleNamespace(
        manual_seed=theirs.seed,
        random=SimpleNamespace(get_rng_state=theirs.get_state, set_rng_state=theirs.set_state),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)

    def both(data: Any) -> Any:
        return [theirs.randint(2**31), np.random.randint(2**31)]  # noqa: NPY002

    draws = np.array(one_draw(both, randomness="torch")(np.zeros(1), 50, rng=RNG(1)))
    assert (draws[:, 0] != draws[:, 1]).all()
    assert len(np.unique(draws)) == 100


@pytest.mark.parametrize(
    "answers",
    [
        (["a"], []),
        ("a", []),
        (["a"], None),
        ("a", 1.0),
        ("a", math.nan),
        ("a", None),
        (1.0, None),
        ([1.0, 2.0], None),
        ([1.0], [1.0, 2.0]),
        ([], math.nan),
        (b"x", None),
    ],
)
def test_two_answers_of_any_kinds_are_audited(answers: tuple[Any, Any]) -> None:
    """Check that mechanisms with two answers of any kinds are audited.

    The answer does not depend on the data, so nothing may be refuted or refused.
    """

    @one_draw
    def release(data: Any, *, rng: np.random.Generator) -> Any:
        return answers[int(rng.integers(2))]

    found = audit(release, PureDP(1.0), PAIR, draws=400, seed=1, mutants=None)
    assert found.verdict is Verdict.NO_POWER


def test_a_list_of_texts_or_nan_is_refused_by_a_sentence() -> None:
    @one_draw
    def release(data: Any, *, rng: np.random.Generator) -> Any:
        return [["a", "b"], math.nan][int(rng.integers(2))]

    with pytest.raises(MechanismError, match="draws must be numbers, texts"):
        audit(release, PureDP(1.0), PAIR, draws=400, seed=1, mutants=None)


def test_what_jax_compiled_is_reused_only_for_equal_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check that a function compiled by jax is reused only for equal arguments.

    The text of a large array is abridged. Two large arrays must not share a compiled function.
    """
    compiled = []

    def jit(function: Any) -> Any:
        compiled.append(function)
        return function

    keys = SimpleNamespace(
        PRNGKey=lambda seed: seed,
        fold_in=lambda key, more: key,
        split=lambda key, count: [key] * count,
    )
    monkeypatch.setitem(
        sys.modules,
        "jax",
        SimpleNamespace(
            jit=jit,
            vmap=lambda f, in_axes: lambda data, keys: np.array([f(data, key) for key in keys]),
            random=keys,
        ),
    )

    def release(data: Any, *, key: Any, weights: Any) -> Any:
        return np.sum(weights)

    mechanism = one_draw(release, randomness="jax", vmap=True)
    some, other = np.zeros(2000), np.zeros(2000)
    other[1000] = 1.0
    for weights, expected in ((some, 0.0), (other, 1.0), (2.0, 2.0), (2.0, 2.0), (3.0, 3.0)):
        drawn = mechanism(np.zeros(1), 1, rng=np.random.default_rng(0), weights=weights)
        assert drawn.tolist() == [expected]
    some[:] = 1.0
    again = mechanism(np.zeros(1), 1, rng=np.random.default_rng(0), weights=some)
    assert again.tolist() == [2000.0]
    assert len(compiled) == 5  # 2.0 was compiled only once


def test_a_package_that_is_not_there_is_named() -> None:
    mechanism = one_draw(lambda data: 0.0, randomness="torch")
    if "torch" in sys.modules:
        pytest.skip("PyTorch is installed")
    with pytest.raises(MechanismError, match="needs the package torch.*pip install torch"):
        mechanism(np.zeros(1), 1, rng=RNG(1))


# --- other processes ---

CODE = """
import os
import numpy as np

def noisy(data, size, rng):
    print("hello")
    return np.sum(data["x"] if isinstance(data, dict) else data) + rng.laplace(size=size)

def one(data):
    return {"a": float(np.random.laplace()), "users": len(data)}

def fails(data):
    if len(data) > 1:
        raise KeyError("x")
    return float(np.random.laplace())

def slow(data, size, rng):
    __import__("time").sleep(float(data.sum()))
    return np.full(size, data.sum())

def dies(data, size, rng):
    print("out of memory", file=__import__("sys").stderr, flush=True)
    os._exit(3)

def one_number(data, rng):
    return float(rng.normal())
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "theirs.py").write_text(CODE)
    return str(tmp_path / "theirs.py")


def test_another_process_draws_and_can_be_replayed(module: str) -> None:
    mechanism = Subprocess(sys.executable, f"{module}:noisy")
    for data in (np.ones((2, 1)), {"x": np.ones(3), "k": 2}, [np.ones(1), np.ones(1)][:1]):
        first = mechanism(data, 5, rng=RNG(1))
        assert first.shape == (5,)
        assert np.array_equal(first, mechanism(data, 5, rng=RNG(1)))
    again = pickle.loads(pickle.dumps(mechanism))
    assert np.array_equal(again(np.ones(1), 2, rng=RNG(3)), mechanism(np.ones(1), 2, rng=RNG(3)))
    mechanism.close()
    again.close()


def test_a_frame_goes_there_as_a_frame(module: str) -> None:
    frame = pd.DataFrame({"id": [1, 2], "x": [0.5, 1.5]})
    pair = NeighborPair.from_frame(frame, user="id", drop=2)
    mechanism = Subprocess(sys.executable, f"{module}:one", style="legacy")
    assert mechanism(pair.left, 2, rng=RNG(1))["users"].tolist() == [2.0, 2.0]
    mechanism.close()


def test_a_call_that_was_interrupted_there_answers_no_other_call(module: str) -> None:
    mechanism = Subprocess(sys.executable, f"{module}:slow")
    assert mechanism(np.zeros(1), 2, rng=RNG(1)).tolist() == [0.0, 0.0]
    with pytest.raises(MechanismTimeout), Watch(call_limit=0.1).call("slow"):
        mechanism(np.full(1, 0.5), 2, rng=RNG(1))
    assert mechanism(np.zeros(1), 2, rng=RNG(1)).tolist() == [0.0, 0.0]
    mechanism.close()


def test_an_exception_there_is_an_outcome_here(module: str) -> None:
    mechanism = Subprocess(sys.executable, f"{module}:fails", style="legacy")
    pair = NeighborPair([[0.0]], [[0.0], [1.0]], relation=_add_remove())
    with pytest.raises(MechanismError, match="fails raised KeyError"):
        audit(mechanism, PureDP(1.0), pair, draws=200)
    released = Outcomes(mechanism, errors="outcome")
    result = audit(released, PureDP(1.0), pair, draws=200, seed=1)
    assert result.verdict.words == "REFUTED"
    assert result.failure_prob == 1e-6  # single draws need no second attempt
    assert any("KeyError on the right" in note for note in result.notes)
    mechanism.close()


def test_an_exception_of_then_is_an_outcome_whoever_draws(module: str) -> None:
    def reciprocal(draw: Any) -> float:
        return 1 / int(draw > 0)

    @one_draw
    def here(data: Any, *, rng: np.random.Generator) -> float:
        return float(rng.normal())

    there = Subprocess(sys.executable, f"{module}:one_number", style="rng")
    for mechanism in (here, there):
        released = Outcomes(mechanism, errors="outcome", then=reciprocal)
        draws = released(np.zeros(1), 50, rng=RNG(1))
        assert len(draws) == 50
        assert 0 < sum(np.size(draw) == 0 for draw in draws) < 50  # a failure is an empty row
        with pytest.raises(ZeroDivisionError):
            Outcomes(mechanism, then=reciprocal)(np.zeros(1), 50, rng=RNG(1))
    there.close()


def _add_remove() -> Any:
    from dpaudit import Relation

    return Relation.ADD_REMOVE_USER


@pytest.mark.parametrize(
    ("python", "function", "words"),
    [
        ("no/python", "noisy", "no/python cannot be started: No such file"),
        (sys.executable, "nothing", "cannot run .*has no attribute 'nothing'"),
        (sys.executable, "dies", "exit status 3. Its standard error ended with: out of memory"),
    ],
)
def test_a_process_that_cannot_answer_says_why(
    module: str, python: str, function: str, words: str
) -> None:
    with pytest.raises(MechanismError, match=words):
        Subprocess(python, f"{module}:{function}")(np.zeros(1), 1, rng=RNG(1))


def test_a_package_that_is_not_there_in_that_environment_is_named() -> None:
    with pytest.raises(MechanismError, match="No module named 'nowhere'"):
        Subprocess(sys.executable, "nowhere:f")(np.zeros(1), 1, rng=RNG(1))


def test_what_cannot_be_sent_is_refused(module: str) -> None:
    with pytest.raises(MechanismError, match="cannot be sent. Pass arrays"):
        Subprocess(sys.executable, f"{module}:one")([{"a": 1}], 1, rng=RNG(1))


def test_of_a_call_that_draws_many_no_error_is_an_outcome(module: str) -> None:
    made = Outcomes(Subprocess(sys.executable, f"{module}:noisy"), errors="outcome")
    with pytest.raises(ValueError, match="unless the function returns one draw"):
        made(np.zeros(1), 2, rng=RNG(1))


def test_keys_that_nobody_named_are_said_not_to_be_looked_at() -> None:
    def leaky(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        count = len(data) + rng.laplace(scale=6.0, size=size)
        return [{"count": c, "who": float(data.sum())} for c in count]

    pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    options: dict[str, Any] = {"draws": 300, "seed": 1, "mutants": None}
    found = audit(Outcomes(leaky, keys=["count"]), PureDP(1.0), pair, **options)
    assert any("keys that keys= does not list" in note for note in found.notes)
    whole = audit(Outcomes(leaky, keys=["count", "who"]), PureDP(1.0), pair, **options)
    assert whole.verdict.words == "REFUTED"
    assert not any("keys=" in note for note in whole.notes)


@pytest.mark.slow
def test_keys_reach_functions_that_return_one_draw() -> None:
    @one_draw
    def sometimes(data: Any, *, rng: np.random.Generator) -> dict[str, float]:
        return {"a": 1.0} if rng.random() < data.mean() else {}

    pair = NeighborPair([[0.9], [0.9]], [[0.9], [0.1]])
    found = audit(
        Outcomes(sometimes, keys=["a"]), PureDP(0.1), pair, draws=2000, seed=1, mutants=None
    )
    assert found.verdict.words == "REFUTED"


@pytest.mark.parametrize(
    ("function", "seed", "words"),
    [
        (
            lambda data: 1.0,
            "rng",
            "argument rng, because randomness='rng' passes it. Use randomness=\"legacy\"",
        ),
        (lambda data, rng: 1.0, "integer", "must take the argument seed"),
        (lambda data, rng: 1.0, "jax", "must take the argument key"),
        (Outcomes(len), "rng", r"write Outcomes\(one_draw\(len\)\)"),
    ],
)
def test_a_function_that_makes_no_single_draw_is_refused(
    function: Any, seed: str, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        one_draw(function, randomness=seed)


def test_an_audit_that_may_begin_again_has_half_of_failure_prob_for_each_attempt() -> None:
    def fine(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(size=size)

    options: dict[str, Any] = {"draws": 2000, "mutants": None}
    caught = audit(Outcomes(fine, errors="outcome"), PureDP(1.0), PAIR, **options)
    halved = audit(fine, PureDP(1.0), PAIR, failure_prob=5e-7, **options)
    assert caught.epsilon.lower == halved.epsilon.lower
    assert caught.failure_prob == 1e-6
    assert audit(fine, PureDP(1.0), PAIR, **options).epsilon.lower > halved.epsilon.lower


def test_functions_of_one_draw_are_told_how_to_become_mechanisms() -> None:
    def plain(data: Any, *, rng: np.random.Generator) -> float:
        return float(data.sum() + rng.laplace())

    def scaled(data: Any, epsilon: float = 1.0, *, rng: np.random.Generator) -> float:
        return float(data.sum() + rng.laplace(scale=1 / epsilon))

    def legacy(data: Any) -> float:
        return float(data.sum() + np.random.laplace())  # noqa: NPY002

    def by_seed(data: Any, epsilon: float = 1.0, seed: Any = None) -> float:
        return float(data.sum() + np.random.default_rng(seed).laplace(scale=1 / epsilon))

    def without(data: Any, size: int) -> Any:
        return np.random.default_rng().laplace(size=size) + data.sum()

    def unbound(data: Any, epsilon: float, rng: np.random.Generator) -> float:
        return float(data.sum() + rng.laplace(scale=1 / epsilon))

    bind = r"functools\.partial\(f, epsilon=\.\.\.\)"
    pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    for function, words in (
        (by_seed, r'Use one_draw\(by_seed, randomness="integer"\)'),
        (without, r"It takes no rng. A mechanism is f\(data, size, \*, rng\) and draws from"),
        (plain, r"Use one_draw\(f\) to make a mechanism"),
        (scaled, r"second parameter is epsilon=1.0, which received size.*one_draw\(f\)"),
        (legacy, r'use one_draw\(f, randomness="legacy"\)'),
        (Outcomes(plain), r"Use one_draw\(f\) to make a mechanism"),
        (unbound, rf"second parameter is epsilon, which received size. Use one_draw\({bind}\)"),
        (one_draw(unbound), rf"Bind its parameters: {bind}"),
    ):
        with pytest.raises(MechanismError, match=words):
            audit(function, PureDP(1.0), pair, draws=300, seed=1)
    # Other data would not help.
    for function in (plain, one_draw(unbound)):
        with pytest.raises(MechanismError) as caught:
            audit(function, PureDP(1.0), portfolio(), draws=5000, seed=1)
        assert "Describe the data" not in str(caught.value)


@pytest.mark.slow
def test_what_is_said_of_a_seed_makes_a_mechanism_with_mutants() -> None:
    def by_seed(data: Any, seed: Any = None) -> float:
        return float(data.sum() + np.random.default_rng(seed).laplace())

    with pytest.raises(TypeError, match=r"must take the argument rng.*Use one_draw\(by_seed"):
        one_draw(by_seed)
    pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    for mechanism in (
        one_draw(by_seed, randomness="integer"),
        one_draw(lambda data, *, rng: by_seed(data, seed=rng)),
    ):
        found = audit(mechanism, PureDP(1.0), pair, draws=3000, seed=1)
        assert found.verdict == "not_refuted"
        assert [mutant.killed for mutant in found.mutants] == [True, True]


def two_answers(data: Any, seed: Any = None) -> tuple[float, float]:
    """Answer two queries with noise from one seed.

    The difference of the answers has no noise.
    """
    total = np.random.default_rng(seed).laplace(scale=2.0) + np.sum(data)
    most = np.random.default_rng(seed).laplace(scale=2.0) + np.max(data)
    return float(total), float(most)


def test_a_seed_used_twice_is_not_healed_by_a_generator() -> None:
    pair = NeighborPair([[1.0], [1.0]], [[1.0], [0.0]])
    found = audit(
        one_draw(two_answers, randomness="integer"), PureDP(1.0), pair, draws=1000, seed=1
    )
    assert found.verdict is Verdict.REFUTED
    healed = one_draw(lambda data, *, rng: two_answers(data, seed=rng))
    with pytest.raises(MechanismError, match=r'two generators from one seed.*randomness="integer"'):
        audit(healed, PureDP(1.0), pair, draws=1000, seed=1)


@pytest.mark.slow
def test_a_generator_may_be_passed_on_as_often_as_one_likes() -> None:
    def noisy(value: float, rng: Any) -> float:
        rng = np.random.default_rng(rng)  # as functions of scipy do
        return value + float(rng.laplace(scale=4.0))

    def release(data: Any, *, rng: np.random.Generator) -> list[float]:
        return [noisy(float(np.sum(data)), rng), noisy(float(np.max(data)), rng)]

    def once_in_a_loop(data: Any, *, rng: np.random.Generator) -> list[float]:
        seed = rng
        return [float(np.random.default_rng(seed).laplace()) for _ in range(3)]

    pair = NeighborPair([[1.0], [1.0]], [[1.0], [0.0]])
    found = audit(one_draw(release), PureDP(1.0), pair, draws=1000, seed=1)
    assert found.verdict == "not_refuted"
    with pytest.raises(MechanismError, match="two generators from one seed"):
        audit(one_draw(once_in_a_loop), PureDP(1.0), pair, draws=1000, seed=1)


def test_a_list_of_texts_and_numbers_is_named_as_what_it_is() -> None:
    mechanism = one_draw(lambda data, *, rng: ["below", data.sum() + rng.laplace()])
    pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    with pytest.raises(MechanismError, match="got list of float64 and str. Pass then=function"):
        audit(mechanism, PureDP(1.0), pair, draws=1000, seed=1)


@pytest.mark.slow
def test_mutants_of_single_calls_may_return_lists_of_any_length() -> None:
    """Check that mutants of single calls may return lists of any length.

    A mutant of a mechanism of one draw makes one draw per call. Its lists may differ in length.
    """

    @one_draw
    def until_above(data: Any, *, rng: np.random.Generator) -> list[float]:
        found = []
        for value in np.ravel(data):
            found.append(value + rng.laplace())
            if found[-1] > 1:
                break
        return found

    pair = NeighborPair([[0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0]])
    found = audit(until_above, PureDP(1.0), pair, draws=2000, seed=1)
    assert [m.note for m in found.mutants if "raised" in m.note] == []
    assert any(m.calls == "first" and m.status != "not run" for m in found.mutants)


def test_lists_may_all_have_one_length_in_one_call_and_another_in_the_next() -> None:
    """Check lists that have one length in one call and another length in the next call.

    One draw in a hundred is a long list, so few calls contain both lengths.
    """

    @one_draw
    def rarely_long(data: Any, *, rng: np.random.Generator) -> list[float]:
        return [0.0] * (6 if rng.random() < 0.01 else 3)

    pair = NeighborPair([[0.0]], [[1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(5):
            found = audit(rarely_long, PureDP(1.0), pair, draws=300, seed=seed, mutants=None)
            assert found.verdict is not Verdict.REFUTED
    alone = [rarely_long(np.zeros(1), 1, rng=RNG(seed)) for seed in range(300)]
    assert {len(draws[0]) for draws in alone} == {3, 6}


def test_a_search_goes_on_where_lists_have_one_length_in_one_look_only() -> None:
    @one_draw
    def some(data: Any, *, rng: np.random.Generator) -> list[bool]:
        return [True] * rng.choice([2, 5], p=[0.97, 0.03])

    near = within_sensitivity(1.0, norm="linf")
    where = neighbors.portfolio(dim=3).under(near)
    found = audit(some, PureDP(1.0), where, draws=2000, seed=1, mutants=None)
    assert found.verdict is not Verdict.REFUTED


def test_draws_that_are_lists_are_an_array_to_a_score_and_to_callers() -> None:
    two = one_draw(lambda data, *, rng: [data.sum() + rng.laplace(), 1.0])
    assert two(np.ones(1), 3, rng=RNG(1))[:, 1].tolist() == [1.0, 1.0, 1.0]
    pair = NeighborPair([[0.0]], [[1.0]])
    claim, score = PureDP(0.2), lambda outputs: outputs[:, 0]
    found = audit(two, claim, pair, draws=3000, seed=1, score=score)
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize("errors", ["raise", "outcome"])
def test_a_search_takes_draws_that_are_arrays_or_nothing(errors: str) -> None:
    def mostly(data: Any, *, rng: np.random.Generator) -> Any:
        if rng.random() < 0.03:
            return None
        return np.array([np.clip(data.mean(), 0, 1) + rng.laplace(), 0.0])

    found = audit(
        Outcomes(one_draw(mostly), errors=errors), PureDP(1.0), draws=2000, seed=1, mutants=None
    )
    assert found.verdict is not Verdict.REFUTED


@pytest.mark.slow
def test_mutants_of_single_calls_may_return_texts_or_none() -> None:
    @one_draw
    def answer(data: Any, *, rng: np.random.Generator) -> Any:
        noisy = data.sum() + rng.laplace() + rng.laplace()
        return None if noisy < -2 else "yes" if noisy > 0 else "no"

    found = audit(answer, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=3000, seed=1)
    assert [m.note for m in found.mutants if "raised" in m.note] == []
