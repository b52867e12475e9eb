"""Tests of the progress of audits, which workers write and other processes read and display."""

from __future__ import annotations

import json
import os
import threading

import pytest

from dpaudit import NeighborPair, PureDP
from dpaudit.run import progress
from dpaudit.run.auditor import Auditor
from dpaudit.run.display import RunDisplay
from dpaudit.run.progress import (
    Progress,
    ProgressPoll,
    ProgressWriter,
    clear_progress,
    read_progress,
)
from dpaudit.run.settings import RunSettings


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that moves only when a test sets it."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "time", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (0, 10, "a: 0%"),
        (0.9, 10, "a: 1%"),
        (35, 65, "a: 35%, about 2 min 1 s left"),
        (50, 3, "a: 50%, about 3 s left"),
        (50, 80, "a: 50%, about 1 min 20 s left"),
        (1, 100, "a: 1%, about 2 h 45 min left"),
        (100, 5, "a: 100%, about 1 s left"),
        (140, 5, "a: 100%, about 1 s left"),
    ],
)
def test_words_are_round(done, seconds, words):
    assert Progress("a", done, 100, started=50.0).words(50.0 + seconds) == words


def test_nothing_to_do_is_no_division_by_zero():
    assert Progress("a", 0, 0, 0.0).words(1.0) == "a: 0%"


def test_what_workers_write_is_read_in_the_order_in_which_they_began(tmp_path, clock):
    first, second = ProgressWriter(tmp_path, "gw1"), ProgressWriter(tmp_path, "gw0")
    first.begin("one")
    first.report_progress(1, 10)
    clock[0] += 1
    second.begin("two")
    second.report_progress(2, 10)
    found = read_progress(tmp_path)
    me = os.getpid()
    assert found == [
        Progress("one", 1, 10, 1000.0, me, None, "gw1"),
        Progress("two", 2, 10, 1001.0, me, None, "gw0"),
    ]
    first.end()
    assert read_progress(tmp_path) == found[1:]
    clear_progress(tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert read_progress(tmp_path) == []


def test_a_time_limit_is_written_before_the_first_draw(tmp_path, clock):
    writer = ProgressWriter(tmp_path, "gw0")
    writer.begin("one", time_limit=15.0)
    assert read_progress(tmp_path) == [Progress("one", 0, 0, 1000.0, os.getpid(), 1015.0, "gw0")]


def test_a_worker_writes_seldom(tmp_path, clock):
    writer = ProgressWriter(tmp_path, "main")
    writer.begin("one")
    for done in range(1, 5):
        writer.report_progress(done, 10)
        clock[0] += progress.EVERY * 0.4
    assert read_progress(tmp_path)[0].done == 4  # reports are written at first and after a while
    writer.report_progress(5, 10)
    assert read_progress(tmp_path)[0].done == 4
    writer.begin("two")
    writer.report_progress(1, 10)
    assert read_progress(tmp_path)[0].id == "two"


def test_a_folder_that_cannot_be_written_costs_no_audit(tmp_path):
    (tmp_path / progress.FOLDER).write_text("a file")
    writer = ProgressWriter(tmp_path, "main")
    writer.begin("one")
    writer.report_progress(1, 2)
    writer.end()
    assert read_progress(tmp_path) == []


def test_half_a_file_is_no_progress(tmp_path):
    folder = tmp_path / progress.FOLDER
    folder.mkdir()
    (folder / "a.json").write_text('{"id": "x"')
    (folder / "b.json").write_text('{"id": "x"}')
    whole = Progress("one", 1, 2, 3.0)
    (folder / "c.json").write_text(json.dumps(vars(whole)))
    assert read_progress(tmp_path) == [whole]


@pytest.mark.slow
def test_an_auditor_tells_of_its_audit_and_of_its_end(tmp_path):
    seen = []

    class Told(ProgressWriter):
        def report_progress(self, done, total, stage):
            super().report_progress(done, total, stage)
            seen.append((read_progress(tmp_path)[0].id, done, total))

    def noisy(data, size, *, rng):
        return data.sum() + rng.laplace(size=size)

    auditor = Auditor("audit_x::one", RunSettings(), progress=Told(tmp_path, "main"))
    auditor.check(noisy, PureDP(1.0), NeighborPair([[1.0]], [[0.0]]), draws=2000)
    auditor.check(noisy, PureDP(1.0), NeighborPair([[1.0]], [[0.0]]), draws=2000)
    assert {name for name, _, _ in seen} == {"audit_x::one", "audit_x::one#2"}
    assert all(0 <= done <= total > 0 for _, done, total in seen)
    assert read_progress(tmp_path) == []


def test_the_display_prints_a_line_where_there_is_no_terminal(capsys, clock):
    display = RunDisplay()
    one = Progress("one", 1, 4, 940.0, stage="certifying")
    display.show_progress([one, Progress("[two]", 1, 2, 999.0)])
    display._file.flush()
    shown = capsys.readouterr().out
    assert shown == "one: certifying, 25%, about 3 min 0 s left; [two]: 50%, about 1 s left\n"


def test_a_poll_shows_what_it_finds_until_it_is_stopped(tmp_path):
    writer = ProgressWriter(tmp_path, "main")
    writer.begin("one")
    writer.report_progress(1, 2)
    seen, looked = [], threading.Event()

    def show(found):
        seen.append(found[0].id)
        looked.set()

    poll = ProgressPoll(tmp_path, show, every=0.001)
    poll.start()
    assert looked.wait(60)
    poll.stop()
    assert set(seen) == {"one"}
