"""Tests of side channels, with a clock that the mechanism moves, so that durations are exact."""

from __future__ import annotations

import gc
import math
import os
import tracemalloc
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, NeighborPair, Observed, PureDP, Relation, audit
from dpaudit.data import Interaction
from dpaudit.mechanisms import observed
from dpaudit.neighbors import AllPairs, Choice, SearchSpace, far_user

RIGHT = np.array([[1.0], [1.0]])
PAIR = NeighborPair(np.array([[1.0], [9.0]]), RIGHT)
SOON: dict[str, Any] = {"draws": 2000, "seed": 1}


class Clock:
    """A clock that only mechanisms move."""

    def __init__(self) -> None:
        self.now, self.calls, self.last = 0, 0, b""

    def after(self, nanoseconds: float) -> None:
        self.now += int(nanoseconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(observed.time, "perf_counter_ns", lambda: made.now)
    return made


def drawn(mechanism: Observed, side: str, size: int, pair: NeighborPair = PAIR) -> np.ndarray:
    view = mechanism.view(pair.left, pair.right, None)
    data = Interaction(getattr(pair, side), view)
    records = mechanism(data, size, rng=np.random.default_rng(0))
    return np.asarray(records[records.dtype.names[0]])


def test_a_duration_is_relative_to_a_call_on_the_right_dataset(clock: Clock) -> None:
    def slow_for_large(data: Any, size: int, *, rng: Any) -> Any:
        clock.after(100 * data.max())
        return np.zeros(size)

    mechanism = Observed(slow_for_large)
    assert drawn(mechanism, "left", 50) == pytest.approx(3.0)  # 900 / sqrt(900 * 100)
    assert drawn(mechanism, "right", 50) == pytest.approx(1 / 3)
    assert mechanism.usual == ("100 ns", "100 ns", "100 ns")
    assert "takes 100 ns in the median" in mechanism.machine_words()
    assert drawn(mechanism.with_extra(0.5), "left", 5) == pytest.approx(3.5)
    assert drawn(mechanism.with_extra(0.5), "right", 5) == pytest.approx(1 / 3)


def test_the_peak_memory_of_a_call_is_measured() -> None:
    def copies_large(data: Any, size: int, *, rng: Any) -> Any:
        held = np.zeros(1000 * int(data.max()))
        return np.zeros(size) + 0 * held[0]

    left, right = (drawn(Observed(copies_large, "memory"), side, 40) for side in ("left", "right"))
    assert np.all(left - right >= 8 * 7900)
    assert np.all(left - right <= 8 * 8100)


def test_both_sides_come_from_the_same_blocks(clock: Clock) -> None:
    starts: list[int] = []

    def number_of_call(data: Any, size: int, *, rng: Any) -> Any:
        clock.calls += 1
        clock.after(clock.calls)
        return np.zeros(size)

    mechanism = Observed(number_of_call)
    for size in (10, 20, 5):
        drawn(mechanism, "left", size)
        starts.append(len(mechanism.seen))
    for size in (5, 10):
        drawn(mechanism, "right", size)
    # The calls on the right used what was observed beside the calls on the left.
    assert starts == [1, 1, 1]
    assert len(mechanism.seen) == 1
    assert clock.calls == 0  # they ran in another process


def test_the_order_of_sides_and_of_outcomes_is_random() -> None:
    """Each call needs more memory than the one before. Chance fails this test once in 1e15."""
    calls: list[int] = []

    def growing(data: Any, size: int, *, rng: Any) -> Any:
        calls.append(int(data.max()))
        held = np.zeros(100 * len(calls))
        return np.zeros(size) + 0 * held[0]

    pair = Observed.view(PAIR.left, PAIR.right, None)
    rng = np.random.default_rng(1)
    try:
        values, usual = observed._blocks(growing, pair, "memory", 50, 100, rng)
    finally:  # a forked process would have ended here
        tracemalloc.stop()
        gc.enable()
    blocks = len(usual)
    assert sum(map(len, values)) == blocks  # each block gives one outcome
    assert len(values[0]) == len(values[1]) == 50
    assert set(values[1]) <= set(usual)
    assert all(np.all(np.diff(side) > 0) for side in values)
    assert set(np.ptp(np.array(calls).reshape(-1, 2), axis=1).tolist()) == {0}
    firsts = np.array(calls).reshape(blocks, 4)[:, 0]
    assert 10 < (firsts == 9).sum() < blocks - 10
    assert np.any(np.diff(drawn(Observed(growing, "memory"), "left", 100)) < 0)


@pytest.mark.slow
def test_drift_and_caches_of_the_machine_refute_nothing(clock: Clock) -> None:
    """Each call is slower than the one before, and the first call on a dataset is slow.

    The audit is computed from a fixed seed and a fake clock, up to the number of blocks that are
    observed ahead. The false-alarm rate is at most 1e-6.
    """

    def drifting(data: Any, size: int, *, rng: Any) -> Any:
        clock.calls += 1
        is_cold, clock.last = clock.last != data.tobytes(), data.tobytes()
        slow = 1 + clock.calls / 1000
        clock.after(1000 * slow * (1 + 5 * is_cold + rng.random()))
        return np.zeros(size)

    result = audit(Observed(drifting), PureDP(0.01), PAIR, **SOON)
    assert result.verdict.words == "NOT REFUTED"
    killed = [mutant.name for mutant in result.mutants if mutant.killed]
    assert any("100% of" in name for name in killed)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [PAIR, PAIR.swapped()], ids=["", "swapped"])
def test_a_cache_of_several_calls_refutes_nothing(clock: Clock, pair: NeighborPair) -> None:
    """A call is fast if the two calls before it had the same dataset, whichever it is."""
    before = [b"", b""]

    def warm_at_the_third_call(data: Any, size: int, *, rng: Any) -> Any:
        is_cold = before != [data.tobytes()] * 2
        before[:] = before[1], data.tobytes()
        clock.after(1000 * (1 + is_cold + rng.random()))
        return np.zeros(size)

    result = audit(Observed(warm_at_the_third_call), PureDP(0.05), pair, mutants=None, **SOON)
    assert result.certified_epsilon < 0.05


@pytest.mark.slow
def test_periodic_delays_make_counts_no_more_extreme(clock: Clock, monkeypatch: Any) -> None:
    """Every eighth call is slow, and no blocks are observed ahead.

    The variance of the difference of both counts is at most that of independent binomials. Chance
    fails this test about once in 1e6: the variance of 300 differences has a relative error of 8%.
    """
    monkeypatch.setattr(observed, "_SECONDS_AHEAD", 0.0)

    def refilled(data: Any, size: int, *, rng: Any) -> Any:
        clock.calls += 1
        clock.after(2000 if clock.calls % 8 == 2 else 1000)
        return np.zeros(size)

    view = Observed.view(PAIR.left, PAIR.right, None)
    counts = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        values, _ = observed._blocks(refilled, view, "time", 60, 60, rng)
        gc.enable()
        counts.append([int((side > 1.2).sum()) - 0.25 * len(side) for side in values])
    x, y = np.array(counts).T
    assert np.var(x - y) <= 1.4 * 120 * 0.25 * 0.75
    assert abs(x.mean() - y.mean()) < 5 * np.sqrt(120 * 0.25 * 0.75 / 300)


@pytest.mark.slow
def test_differing_durations_of_one_mechanism_are_not_mixed_up(clock: Clock) -> None:
    """The reference of a block is the same whichever side is chosen, so a true claim stands.

    The duration is long with probability 0.5 or 0.3, so log(0.5 / 0.3) is the true epsilon.
    """

    def bimodal(data: Any, size: int, *, rng: Any) -> Any:
        clock.after(100 * (1 + 99 * (rng.random() < (0.5 if data.max() > 5 else 0.3))))
        return np.zeros(size)

    result = audit(
        Observed(bimodal), PureDP(0.52), PAIR, draws=20_000, mutants=None, failure_prob=1e-6
    )
    assert 0.1 < result.certified_epsilon < math.log(0.5 / 0.3)
    assert result.verdict.words != "REFUTED"


@pytest.mark.slow
def test_a_slow_branch_is_refuted(clock: Clock) -> None:
    def branching(data: Any, size: int, *, rng: Any) -> Any:
        clock.after(1000 * (1 + rng.random()) + 500 * (data.max() > 5))
        return np.zeros(size)

    result = audit(Observed(branching), PureDP(0.5), PAIR, **SOON)
    assert result.verdict.words == "REFUTED"
    assert "relative duration" in result.witness.event
    assert "Let every call do the same work" in result.advice
    assert "in the median. The noise of this machine" in " ".join(result.notes)
    assert result.smallest is None


@pytest.mark.slow
def test_a_search_finds_the_slow_dataset(clock: Clock) -> None:
    def branching(data: Any, size: int, *, rng: Any) -> Any:
        clock.after(1000 * (1 + rng.random()) + 900 * (data.max() > 500))
        return np.zeros(size)

    def build(value: float) -> NeighborPair:
        return far_user(n_users=3, m=1, low=0.0, high=value)

    values = Choice((1.0, 10.0, 1000.0))
    for pairs in (SearchSpace(build, {"value": values}), [build(v) for v in values.values]):
        result = audit(Observed(branching), PureDP(0.5), pairs, draws=4000, seed=1)
        assert result.verdict.words == "REFUTED"
        assert result.pair is not None
        assert result.pair.left.data.max() == 1000.0


@pytest.mark.slow
def test_the_values_of_a_local_randomiser_may_be_observed(clock: Clock) -> None:
    def randomiser(value: int, size: int, *, rng: Any) -> Any:
        clock.after(100 + 50 * (value == 2) + rng.integers(3))
        return rng.integers(2, size=size)

    pairs = AllPairs((0, 1, 2))
    result = audit(Observed(randomiser), PureDP(1.0, Relation.LOCAL), pairs, draws=3000)
    assert result.verdict.words == "REFUTED"


def test_bad_use_gives_one_clear_error() -> None:
    def fails(data: Any, size: int, *, rng: Any) -> Any:
        raise ValueError("no")

    def steady(data: Any, size: int, *, rng: Any) -> Any:
        return rng.random(size)

    class Known:
        def pmf(self, data: Any) -> Any:
            return np.ones(1)

    with pytest.raises(ValueError, match="observe must be one of time, memory, got 'power'"):
        Observed(steady, "power")
    with pytest.raises(TypeError, match="mechanism must be a function"):
        Observed(3)  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError), match="mechanism must be"):
        Observed(Known())  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match="must get both datasets of a pair"):
        Observed(steady)(RIGHT, 2, rng=np.random.default_rng(0))
    with pytest.raises(MechanismError, match="fails: ValueError: no"):
        audit(Observed(fails), PureDP(1.0), PAIR, draws=100)
    with pytest.raises(ValueError, match="method must be 'fixed' for time of steady"):
        audit(Observed(steady), PureDP(1.0), PAIR, draws=400, method="sequential")
    with pytest.raises(TypeError, match="score must be None"):
        audit(Observed(steady), PureDP(1.0), PAIR, draws=100, score=len)
    with pytest.raises(ValueError, match="extra must be"):
        Observed(steady).with_extra(0.0)


def test_a_system_without_fork_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    with pytest.raises(MechanismError, match="cannot copy a process"):
        drawn(Observed(lambda data, size, *, rng: rng.random(size)), "left", 3)


@pytest.mark.slow
def test_workers_do_not_slow_each_other_down(clock: Clock) -> None:
    from dpaudit.engine import Settings

    def drifting(data: Any, size: int, *, rng: Any) -> Any:
        clock.after(1000 * (1 + rng.random()))
        return np.zeros(size)

    result = audit(
        Observed(drifting), PureDP(1.0), PAIR, settings=Settings(workers=2), mutants=None, **SOON
    )
    assert result.certified_epsilon < 1.0
