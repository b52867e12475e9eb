"""Tests of values that a forked process computes."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from dpaudit.mechanisms import ChildError, in_child


def test_a_value_comes_back_and_changes_stay_in_the_process():
    changed = []

    def compute():
        changed.append(os.getpid())
        return changed, np.arange(10**6)

    found, large = in_child(compute, limit=10)
    assert found != [os.getpid()]
    assert len(found) == 1
    assert not changed
    np.testing.assert_array_equal(large, np.arange(10**6))


def test_children_may_have_children():
    assert in_child(lambda: in_child(lambda: 3, limit=10) + 1, limit=10) == 4


def test_an_exception_is_reported():
    with pytest.raises(ChildError, match="ZeroDivisionError: division by zero"):
        in_child(lambda: 1 / 0, limit=10)


def test_a_value_that_cannot_be_sent_is_reported():
    with pytest.raises(ChildError, match="pickle"):
        in_child(lambda: lambda: 3, limit=10)


@pytest.fixture
def forked(monkeypatch):
    """Return the list of the processes that this process forks."""
    pids, fork = [], os.fork

    def noted():
        pids.append(fork())
        return pids[-1]

    monkeypatch.setattr(os, "fork", noted)
    return pids


def test_a_process_that_does_not_end_is_killed(forked):
    with pytest.raises(ChildError, match="did not end within 1 s"):
        in_child(lambda: time.sleep(600), limit=1)
    (child,) = forked
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_process_that_is_killed_is_reported():
    with pytest.raises(ChildError, match="was killed"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL), limit=10)


def test_memory_is_limited():
    with pytest.raises(ChildError, match="MemoryError"):
        in_child(lambda: len(bytearray(2**36)), limit=10)


def test_nothing_is_printed(capfd):
    in_child(lambda: print("from the child", flush=True), limit=10)  # noqa: T201
    assert capfd.readouterr() == ("", "")


def test_the_timer_of_the_parent_keeps_running():
    signal.setitimer(signal.ITIMER_REAL, 100.0)
    try:
        in_child(lambda: None, limit=10)
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 50
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_an_interrupt_kills_the_process(forked):
    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_child(lambda: time.sleep(60), limit=100)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    (child,) = forked
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_system_that_cannot_fork_is_named(monkeypatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(ChildError, match="this system cannot copy a process"):
        in_child(lambda: 3, limit=10)
