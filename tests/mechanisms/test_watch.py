"""Progress is reported, hanging mechanisms are ended, and slow mechanisms are announced."""

from __future__ import annotations

import signal
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

from dpaudit import (
    MechanismError,
    MechanismTimeout,
    NeighborPair,
    PureDP,
    Settings,
    SlowAuditWarning,
    audit,
)
from dpaudit.mechanisms import sampler, watch
from dpaudit.mechanisms.watch import Watch

PAIR = NeighborPair([[0.0]], [[1.0]])


def laplace(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def hanging(data, size, *, rng):
    time.sleep(60)
    return laplace(data, size, rng=rng)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mutants", "planned", "sequential"), [(None, 1, True), ((), 2, False), ([laplace], 3, True)]
)
def test_progress_rises_to_the_draws_that_are_planned(mutants, planned, sequential) -> None:
    told = []
    audit(
        laplace,
        PureDP(1.0),
        PAIR,
        draws=1000,
        seed=1,
        mutants=mutants,
        method="sequential" if sequential else "fixed",
        settings=Settings(progress=lambda *now: told.append(now)),
    )
    done, total, stages = zip(*told, strict=True)
    assert set(total) == {2000 * planned}
    assert list(done) == sorted(done)
    assert done[-1] == total[0]
    expected = ["exploring", "certifying"]
    expected += ["testing mutants of the noise"] * (mutants is not None)
    assert list(dict.fromkeys(stages))[: len(expected)] == expected


def test_progress_does_not_change_the_numbers() -> None:
    plain = audit(laplace, PureDP(1.0), PAIR, draws=2000, seed=1, mutants=None)
    told = audit(
        laplace,
        PureDP(1.0),
        PAIR,
        draws=2000,
        seed=1,
        mutants=None,
        settings=Settings(progress=print, time_limit=100),
    )
    assert plain.epsilon == told.epsilon


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"time_limit": 0.2}, "the audit took more than time_limit = 0.2 s"),
        ({"call_limit": 0.1}, "one call took more than call_limit = 0.1 s"),
        ({"time_limit": 50.0, "call_limit": 0.1}, "one call took more than call_limit = 0.1 s"),
        ({"time_limit": 0.1, "call_limit": 50.0}, "the audit took more than time_limit = 0.1 s"),
    ],
)
def test_a_mechanism_that_hangs_is_ended(limits, words) -> None:
    with pytest.raises(MechanismTimeout, match=f"hanging was stopped: {words}"):
        audit(hanging, PureDP(1.0), PAIR, seed=1, settings=Settings(**limits))
    assert issubclass(MechanismTimeout, MechanismError)


def test_the_timer_of_somebody_else_is_left_as_it_was() -> None:
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    try:
        signal.setitimer(signal.ITIMER_REAL, 30.0)
        with Watch(call_limit=1.0).call("f"):
            pass
        remaining, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        assert 25 < remaining <= 30
        assert signal.getsignal(signal.SIGALRM) is not before
    finally:
        signal.signal(signal.SIGALRM, before)
    assert rung == []


def test_in_another_thread_a_call_is_judged_when_it_returns() -> None:
    found = []

    def run() -> None:
        try:
            with Watch(call_limit=0.01).call("f"):
                time.sleep(0.05)
        except MechanismTimeout as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["f was stopped: one call took more than call_limit = 0.01 s"]


@pytest.mark.parametrize("name", ["time_limit", "call_limit"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "10"])
def test_limits_out_of_range_are_refused(name, value) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{name} must be"):
        Settings(**{name: value})


def test_a_progress_that_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="^progress must be a function"):
        audit(laplace, PureDP(1.0), PAIR, seed=1, mutants=None, settings=Settings(progress=3))


def test_an_audit_that_would_take_long_says_so_at_once(monkeypatch) -> None:
    """Check that a slow audit gives a warning at once.

    The limit is a tenth of a second, so a sleeping mechanism is slow on any machine.
    """

    def slow(data, size, *, rng):
        time.sleep(size * 1e-4)
        return laplace(data, size, rng=rng)

    monkeypatch.setattr(sampler, "LONG", 0.1)
    words = r"slow takes .* s for 64 draws: .* minutes.*sequential"
    with pytest.warns(SlowAuditWarning, match=words):
        audit(slow, PureDP(1.0), PAIR, draws=2000, seed=1, mutants=None)


def test_an_audit_whose_outputs_take_long_says_so_while_it_runs(monkeypatch) -> None:
    """Check the warning of an audit whose outputs take long to analyse.

    The mechanism itself is fast.
    """
    monkeypatch.setattr(watch, "_JUDGED_AFTER", 0.0)
    monkeypatch.setattr(watch, "LONG", 0.0)
    words = "the audit has taken .* draws .*, 0 s of them in the mechanism, .* more minutes"
    with pytest.warns(SlowAuditWarning, match=words) as seen:
        audit(laplace, PureDP(1.0), PAIR, draws=2000, seed=1, mutants=None)
    assert len(seen) == 1


def test_wide_outputs_are_not_kept() -> None:
    """Check that wide outputs are not kept in memory.

    Draws of numbers are kept to guess by rank. For long texts, only the training draws are kept.
    """

    def long_texts(data, size, *, rng):
        return np.array(["x" * 2000 + str(value) for value in laplace(data, size, rng=rng)])

    tracemalloc.start()
    try:
        audit(long_texts, PureDP(1.0), PAIR, draws=2000, seed=1, mutants=None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * 2 * 2000 * 2000 * 4  # bytes of all draws of both sides


def test_under_a_debugger_all_that_is_printed_is_shown(capsys) -> None:
    lines, before = 200, sys.gettrace()
    guard = Watch()
    with guard.call("f"):
        sys.settrace(lambda *_: None)
        try:
            print("\n".join(["x"] * lines))  # noqa: T201
        finally:
            sys.settrace(before)
    assert capsys.readouterr().out.count("x") == lines
