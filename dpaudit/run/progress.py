"""Progress of the running audits, written by workers and read by the display.

Each worker keeps one small file in ``OUT/.progress``. The file is always replaced as a whole, so a
reader needs no lock. The run removes the folder when it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from dpaudit.results import words

FOLDER = ".progress"
EVERY = 0.5
"""Seconds between two writes of a worker."""

LEAST_SHARE = 0.01
"""Least share of an audit for an estimate of the time left: the first draws include the setup."""


@dataclass(frozen=True)
class Progress:
    """Progress of one audit.

    Parameters
    ----------
    id : str
        Name of the audit.
    done, total : int
        Number of draws, or of other units that the audit counts.
    started : float
        Start time in seconds since the epoch, on the clock that all processes share.
    pid : int
        Process that runs the audit.
    ends : float, optional
        Time at which the audit's time limit ends.
    worker : str
        Name of the process in the run.
    stage : str
        What the audit does, in words. Empty before its first stage.
    """

    id: str
    done: int
    total: int
    started: float
    pid: int = 0
    ends: float | None = None
    worker: str = ""
    stage: str = ""

    @property
    def share(self) -> float:
        """Share that is done, in [0, 1]."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total > 0 else 0.0

    def left(self, now: float) -> float | None:
        """Return the seconds left at the present speed, or None while the speed is unknown."""
        known = self.share >= LEAST_SHARE
        return (now - self.started) * (1 / self.share - 1) if known else None

    def words(self, now: float) -> str:
        """Return a description of the progress.

        Examples
        --------
        >>> Progress("audit_x::one", 35, 100, started=0.0, stage="certifying").words(now=65.0)
        'audit_x::one: certifying, 35%, about 2 min 1 s left'
        """
        left = self.left(now)
        rest = "" if left is None else f", about {words.duration(max(left, 1.0))} left"
        stage = f"{self.stage}, " if self.stage else ""
        return f"{self.id}: {stage}{self.share:.0%}{rest}"


class ProgressWriter:
    """Writer of the progress of a worker's audit.

    The engine calls :meth:`report_progress`.

    Parameters
    ----------
    out : Path
        Directory of the run.
    worker : str
        Name of this process.
    """

    def __init__(self, out: Path, worker: str) -> None:
        self._file, self._worker = _file_of(out, worker), worker
        self._id, self._started, self._next, self._stage = "", 0.0, 0.0, ""
        self._ends: float | None = None

    def begin(self, id: str, time_limit: float | None = None) -> None:
        """Start the progress of another audit, which may take at most `time_limit` seconds."""
        self._id, self._started, self._next, self._stage = id, time.time(), 0.0, ""
        self._ends = None if time_limit is None else self._started + time_limit
        self._write(0, 0, "")

    def report_progress(self, done: int, total: int, stage: str = "") -> None:
        """Report that `done` of `total` units are done, and what is being done.

        Most calls cost almost nothing.
        """
        now = time.time()
        if now < self._next and stage == self._stage:
            return
        self._next, self._stage = now + EVERY, stage
        self._write(done, total, stage)

    def _write(self, done: int, total: int, stage: str) -> None:
        place = os.getpid(), self._ends, self._worker
        progress = Progress(self._id, int(done), int(total), self._started, *place, stage)
        # A failure to write the progress must not stop an audit. The disk may be full, or the
        # folder may be gone.
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(json.dumps(asdict(progress)), encoding="utf-8")
            os.replace(temporary, self._file)

    def end(self) -> None:
        """Report that no audit is running now."""
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)


def read_progress(out: Path) -> list[Progress]:
    """Return the progress of the audits of a run, in the order in which they began."""
    found = []
    with contextlib.suppress(OSError):
        for file in (out / FOLDER).glob("*.json"):
            # The file may have been removed. Nothing depends on this file.
            with contextlib.suppress(OSError, ValueError, TypeError):
                found.append(Progress(**json.loads(file.read_text(encoding="utf-8"))))
    return sorted(found, key=lambda progress: (progress.started, progress.id))


def _file_of(out: Path, worker: str) -> Path:
    return out / FOLDER / f"{worker}.json"


def forget_progress(out: Path, worker: str) -> None:
    """Remove the progress of a worker that has ended."""
    with contextlib.suppress(OSError):
        _file_of(out, worker).unlink(missing_ok=True)


def clear_progress(out: Path) -> None:
    """Remove the progress of all workers."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


class ProgressPoll:
    """Reader of the progress of a run, at intervals and in a separate thread.

    Parameters
    ----------
    out : Path
        Directory of the run.
    show : callable
        Function that is called with the result of :func:`read_progress`, if it is not empty.
    every : float
        Seconds between two reads.
    """

    def __init__(self, out: Path, show: Callable[[list[Progress]], None], every: float) -> None:
        self._out, self._show, self._every = out, show, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="dpaudit-progress", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _poll(self) -> None:
        while not self._stop.wait(self._every):
            if found := read_progress(self._out):
                self._show(found)
