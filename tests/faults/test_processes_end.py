"""Tests of runs whose processes are killed, hang, print endlessly, or are damaged by an audit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from dpaudit.errors import StoreError
from dpaudit.store import StoredRun, load_run
from tests.run.conftest import ROOT, Home

HEAD = """
import os, sys, time
import numpy as np
from dpaudit import NeighborPair, PureDP

PAIR = NeighborPair([[0.0]], [[1.0]])

def fine(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

def check(auditor, mechanism, **options):
    auditor.check(mechanism, PureDP(1.5), PAIR, draws=1000, mutants=None, **options)
"""

SLOW = (
    HEAD
    + """
def slow(data, size, *, rng):
    time.sleep(0.0 if os.path.exists("fast") else 0.3)
    return fine(data, size, rng=rng)

def audit_1_fine(auditor):
    check(auditor, fine)

def audit_2_slow(auditor):
    check(auditor, slow)
"""
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def start(home: Home, *args: str) -> subprocess.Popen[str]:
    """Start a run in its own process, with its own temporary folder."""
    (home.path / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-c", "from dpaudit.run.cli import main; main()", "run", *args],
        cwd=home.path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(home.path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait until a condition is true, and return its value.

    Fail if the condition does not become true in time.
    """
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return value


def stored(home: Home) -> list[str]:
    """Return the names of the audit functions whose results are stored."""
    try:
        return sorted(result.id.partition("::")[2] for result in load_run(home.path / "reports")[1])
    except StoreError:
        return []


def the_run(home: Home) -> StoredRun:
    return load_run(home.path / "reports")[0]


@pytest.mark.parametrize("jobs", ["0", "1"])
def test_sigterm_ends_a_run_as_sigint_does(home: Home, jobs: str) -> None:
    home.write(audit_slow=SLOW)
    run = start(home, "audit_slow.py", "--jobs", jobs)
    wait_for(lambda: stored(home))
    time.sleep(0.5)
    run.send_signal(signal.SIGTERM)
    out, _ = run.communicate(timeout=40)
    assert run.returncode == 2, out
    written = the_run(home)
    assert not written.complete
    assert "the run ended early: the process got SIGTERM" in written.problems
    assert (home.path / "reports/index.html").exists()
    assert not (home.path / "reports/.lock").exists()
    (home.path / "fast").touch()
    again = start(home, "audit_slow.py", "--jobs", jobs, "--resume")
    out, _ = again.communicate(timeout=60)
    assert again.returncode == 0, out
    assert the_run(home).complete
    assert len(stored(home)) == 2


@pytest.mark.parametrize("jobs", ["0", "1"])
def test_workers_end_within_ten_seconds_of_a_killed_run(home: Home, jobs: str) -> None:
    home.write(audit_slow=SLOW)
    args = ("audit_slow.py", "--jobs", jobs, "--workers", "2")
    run = start(home, *args)
    wait_for(lambda: len(stored(home)) == 1)
    time.sleep(1.0)
    below = psutil.Process(run.pid).children(recursive=True)
    assert len(below) >= 3  # two workers and the process that tracks them
    run.kill()
    run.communicate(timeout=10)
    _, alive = psutil.wait_procs(below, timeout=10)
    assert not alive
    assert not list((home.path / "tmp").glob("dpaudit-workers-*"))
    (home.path / "fast").touch()
    again = start(home, *args, "--resume")
    out, _ = again.communicate(timeout=60)
    assert again.returncode == 0, out
    assert not list((home.path / "tmp").glob("dpaudit-*"))


IN_ANOTHER = (
    HEAD
    + """
from dpaudit.mechanisms import Subprocess

def audit_2_slow(auditor):
    check(auditor, Subprocess(sys.executable, "never.py:never"))
"""
)

NEVER = """
import time

def never(data, size, *, rng):
    open("begun", "w").close()
    time.sleep(600)
"""


def test_the_process_of_another_environment_ends_with_a_killed_run(home: Home) -> None:
    home.write(audit_slow=IN_ANOTHER, never=NEVER)
    run = start(home, "audit_slow.py", "--jobs", "1")
    wait_for((home.path / "begun").exists)
    below = psutil.Process(run.pid).children(recursive=True)
    assert any("_serve.py" in " ".join(process.cmdline()) for process in below)
    run.kill()
    run.communicate(timeout=10)
    assert not psutil.wait_procs(below, timeout=10)[1]


HANGS = (
    HEAD
    + """
import ctypes, signal

def prints(data, size, *, rng):
    print("x" * 384_000_000)
    return fine(data, size, rng=rng)

def recurses(data, size, *, rng):
    sys.setrecursionlimit(10**8)
    def deeper(n):
        return deeper(n + 1)
    return deeper(0)

def forks(data, size, *, rng):
    if os.fork() == 0:
        return fine(data, size, rng=rng)
    time.sleep(60)

def holds_the_lock(data, size, *, rng):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(600)  # as compiled code does that never returns

def catches(data, size, *, rng):
    while True:
        try:
            time.sleep(600)
        except BaseException:
            pass

def audit_prints(auditor):
    check(auditor, prints)

def audit_recurses(auditor):
    check(auditor, recurses)

def audit_forks(auditor):
    check(auditor, forks)

def audit_holds_the_lock(auditor):
    check(auditor, holds_the_lock)

def audit_catches(auditor):
    check(auditor, catches)

def audit_fine(auditor):
    check(auditor, fine)
"""
)


def test_a_time_limit_ends_every_call(home: Home) -> None:
    home.write(audit_hangs=HANGS)
    begun = time.monotonic()
    run = start(home, "audit_hangs.py", "--jobs", "2", "--time-limit", "3")
    out, _ = run.communicate(timeout=150)
    assert time.monotonic() - begun < 120
    assert run.returncode == 1, out
    assert len(out) < 50_000
    problems = {p.partition(": ")[0]: p for p in the_run(home).problems}
    killed = "took more than time_limit = 3 s and could not be interrupted; its process was killed"
    for name in ("holds_the_lock", "catches"):
        assert killed in problems[f"audit_hangs.py::audit_{name}"]
    assert "time_limit = 3 s" in problems["audit_hangs.py::audit_forks"]
    assert "audit_hangs.py::audit_recurses" in problems
    assert "audit_fine" in stored(home)


DAMAGES = (
    HEAD
    + """
import contextlib
held = []

def closes(data, size, *, rng):
    sys.stdout.close()
    with contextlib.suppress(OSError):
        os.close(1)
    return fine(data, size, rng=rng)

def replaces(data, size, *, rng):
    np.mean = None
    np.random.default_rng = None
    return fine(data, size, rng=rng)

def opens(data, size, *, rng):
    try:
        while True:
            held.append(open(os.devnull))
    except OSError:
        pass
    return fine(data, size, rng=rng)

def moves(data, size, *, rng):
    os.chdir("/")
    return fine(data, size, rng=rng)

def interrupts(data, size, *, rng):
    raise KeyboardInterrupt

def audit_0_interrupts_by_itself(auditor):
    raise KeyboardInterrupt

def audit_1_interrupts(auditor):
    check(auditor, interrupts)

def audit_2_fine(auditor):
    check(auditor, fine)
"""
    + "".join(
        f"""
def audit_{2 * at + 3}_{name}(auditor):
    check(auditor, {name})

def audit_{2 * at + 4}_fine(auditor):
    check(auditor, fine)
"""
        for at, name in enumerate(("closes", "replaces", "opens", "moves"))
    )
)

WORDS = {
    "audit_0_interrupts_by_itself": "interrupts_by_itself raised KeyboardInterrupt itself",
    "audit_1_interrupts": "interrupts raised KeyboardInterrupt",
    "audit_5_replaces": "it replaced numpy.mean, numpy.random.default_rng",
    "audit_7_opens": "it used up the file descriptors",
    "audit_9_moves": "it changed the working directory",
}


def test_an_audit_that_damages_its_process_is_named_and_harms_no_other(home: Home) -> None:
    home.write(audit_damages=DAMAGES)
    done = home.dpaudit_process("run", "audit_damages.py", "--jobs", "1")
    assert done.code == 1, done.out + done.err
    run = the_run(home)
    assert run.complete
    problems = {p.partition(": ")[0].partition("::")[2]: p for p in run.problems}
    assert set(problems) == set(WORDS)
    for name, words in WORDS.items():
        assert words in problems[name]
    fine = {name for name in stored(home) if name.endswith("_fine")}
    assert len(fine) == 5
    assert "audit_3_closes" in stored(home)  # a file that the audit closed is opened again


def test_without_workers_damage_ends_the_run(home: Home) -> None:
    text = DAMAGES.replace("audit_1", "skipped").replace("sys.stdout.close", "sys.__stdout__.close")
    home.write(audit_damages=text)
    done = home.dpaudit_process("run", "audit_damages.py", "--jobs", "0")
    assert done.code == 2, done.out + done.err
    run = the_run(home)
    assert not run.complete
    words = "audit_damages::audit_3_closes left its process damaged: it closed standard output"
    assert any(words in p for p in run.problems)


def test_what_a_mechanism_prints_is_shown_once(home: Home) -> None:
    text = HEAD.replace("return data.sum()", 'print("hello")\n    return data.sum()')
    script = (
        text
        + "from dpaudit import Settings, audit\naudit(fine, PureDP(1.5), PAIR, draws=1000, seed=1"
    )
    for options in ("", ", settings=Settings(workers=2)"):
        home.write(script=f"{script}{options})\n")
        done = home.process("script.py")
        assert done.code == 0, done.err
        lines = done.out.split("\n")
        assert 5 < lines.count("hello") < 40
        assert sum("what fine prints is not shown from here on" in line for line in lines) == 1
