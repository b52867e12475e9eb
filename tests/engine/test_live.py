"""Tests of the line that says what an audit does, on a terminal and in a notebook."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import types

import pytest

from dpaudit import Settings
from dpaudit.engine import live
from dpaudit.errors import ArgumentError

PROGRAM = """
import time
from dpaudit import NeighborPair, PureDP, Settings, audit

def slow(data, size, *, rng):
    time.sleep(0.05)
    return data.sum() + rng.laplace(size=size)

import dpaudit.engine.live as live
live.PATIENCE = {patience}
settings = Settings(progress={progress})
pair = NeighborPair([[0.0]], [[1.0]])
audit(slow, PureDP(1.0), pair, draws=3000, seed=1, id="slow", settings=settings)
print("the end")
"""


def on_a_terminal(**words) -> str:
    """Return what a program prints whose standard error is a terminal."""
    ours, theirs = pty.openpty()
    program = PROGRAM.format(**{"patience": 0.0, "progress": None, **words})
    with subprocess.Popen([sys.executable, "-c", program], stderr=theirs, stdout=theirs) as process:
        os.close(theirs)
        said = b""
        try:
            while more := os.read(ours, 4096):
                said += more
        except OSError:  # the end of a terminal
            pass
    os.close(ours)
    assert process.returncode == 0
    return said.decode()


@pytest.mark.slow
def test_a_terminal_shows_the_stages_and_then_nothing():
    said = on_a_terminal()
    stages = [
        "exploring",
        "certifying",
        "testing mutants of the noise",
        "testing mutants of the code",
    ]
    places = [said.find(f"slow: {stage}") for stage in stages]
    assert -1 not in places
    assert places == sorted(places)
    last = said.rpartition("\x1b[2K")[2]  # the line is erased, and printed text follows it
    assert "slow:" not in last
    assert "the end" in last


@pytest.mark.slow
@pytest.mark.parametrize("words", [{"progress": False}, {"patience": 1e9}])
def test_a_quick_audit_and_one_without_progress_show_nothing(words):
    assert on_a_terminal(**words).split() == ["the", "end"]


def test_without_a_terminal_there_is_no_line(capsys):
    assert live.live_line("audit") is None


def test_a_line_waits_and_changes_no_more_often_than_five_times_a_second(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(live.time, "perf_counter", lambda: now[0])
    shown = []
    place = types.SimpleNamespace(show=lambda *said: shown.append(said), close=lambda: None)
    line = live.LiveLine("one", place)
    for now[0], done, stage in [
        (1.0, 0, "exploring"), (3.0, 10, "exploring"), (3.1, 20, "exploring"),
        (3.15, 20, "certifying"), (3.4, 40, "certifying"),
    ]:  # fmt: skip
        line(done, 40, stage)
    assert shown == [
        (0.25, "3 s  one: exploring"),
        (0.5, "3.1 s  one: certifying"),
        (1.0, "3.4 s  one: certifying"),
    ]  # fmt: skip
    live.LiveLine("two", place)(0, 0, "starting")  # a total that is not known yet


def test_a_notebook_shows_one_place_and_clears_it(monkeypatch):
    shown = []

    class Place:
        def update(self, text):
            shown.append(text)

    def display(text, *, display_id):
        shown.append(text)
        return Place() if display_id else None

    ipython = types.ModuleType("IPython")
    monkeypatch.setattr(
        ipython, "get_ipython", lambda: types.SimpleNamespace(kernel=1), raising=False
    )
    inner = types.ModuleType("IPython.display")
    monkeypatch.setattr(inner, "HTML", str, raising=False)
    monkeypatch.setattr(inner, "display", display, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    monkeypatch.setattr(live, "PATIENCE", 0.0)
    line = live.live_line("<b>")
    assert line is not None
    line.close()
    assert shown == []
    line(1, 2, "certifying")
    line.close()
    assert ["&lt;b&gt;: certifying" in text for text in shown] == [True, False]


def test_progress_is_a_function_or_off():
    assert Settings(progress=False).watch().progress is None
    for wrong in (True, 0, "yes"):
        with pytest.raises((TypeError, ArgumentError), match="progress must be a function"):
            Settings(progress=wrong)  # type: ignore[arg-type]
