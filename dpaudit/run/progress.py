"""How far the audits that run now have come: written by workers, read by whoever shows it.

Each worker keeps one small file in ``OUT/.progress``, replaced as a whole, so that a reader needs
no lock. The run removes the folder when it ends.
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
"""Of an audit, from which the time that is left is foretold: the first draws tell of setting up."""


@dataclass(frozen=True)
class Progress:
    """How far one audit has come.

    Parameters
    ----------
    id : str
        Of the audit.
    done, total : int
        Draws, or whatever else it counts.
    started : float
        When it began: seconds since the epoch, the same for all processes.
    pid : int
        Process that makes it.
    ends : float, optional
        When its time limit is over.
    worker : str
        Name of the process in the run.
    """

    id: str
    done: int
    total: int
    started: float
    pid: int = 0
    ends: float | None = None
    worker: str = ""

    @property
    def share(self) -> float:
        """Part that is done, in [0, 1]."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total > 0 else 0.0

    def left(self, now: float) -> float | None:
        """Seconds that are left, if it goes on as it went so far; None where nobody knows yet."""
        known = self.share >= LEAST_SHARE
        return (now - self.started) * (1 / self.share - 1) if known else None

    def words(self, now: float) -> str:
        """Say how far it has come.

        Examples
        --------
        >>> Progress("audit_x::one", 35, 100, started=0.0).words(now=65.0)
        'audit_x::one: 35%, about 2 min 1 s left'
        """
        left = self.left(now)
        rest = "" if left is None else f", about {words.duration(max(left, 1.0))} left"
        return f"{self.id}: {self.share:.0%}{rest}"


class ProgressWriter:
    """What a worker tells of the audit that it makes; the engine calls :meth:`report_progress`.

    Parameters
    ----------
    out : Path
        Directory of the run.
    worker : str
        Name of this process.
    """

    def __init__(self, out: Path, worker: str) -> None:
        self._file, self._worker = _file_of(out, worker), worker
        self._id, self._started, self._next = "", 0.0, 0.0
        self._ends: float | None = None

    def begin(self, id: str, time_limit: float | None = None) -> None:
        """Begin with another audit, which may take so many seconds."""
        self._id, self._started, self._next = id, time.time(), 0.0
        self._ends = None if time_limit is None else self._started + time_limit
        self._write(0, 0)

    def report_progress(self, done: int, total: int) -> None:
        """Say that `done` of `total` is done; most calls cost nothing."""
        now = time.time()
        if now < self._next:
            return
        self._next = now + EVERY
        self._write(done, total)

    def _write(self, done: int, total: int) -> None:
        progress = Progress(
            self._id, int(done), int(total), self._started, os.getpid(), self._ends, self._worker
        )
        # Lost progress must not cost an audit: the disk may be full, the folder may be gone.
        with contextlib.suppress(OSError):
            self._file.parent.mkdir(exist_ok=True)
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(json.dumps(asdict(progress)), encoding="utf-8")
            os.replace(temporary, self._file)

    def end(self) -> None:
        """Say that no audit is made now."""
        with contextlib.suppress(OSError):
            self._file.unlink(missing_ok=True)


def read_progress(out: Path) -> list[Progress]:
    """Return how far the audits of a run have come, the one that began first leading."""
    found = []
    with contextlib.suppress(OSError):
        for file in (out / FOLDER).glob("*.json"):
            # It may be gone by now; nothing depends on it.
            with contextlib.suppress(OSError, ValueError, TypeError):
                found.append(Progress(**json.loads(file.read_text(encoding="utf-8"))))
    return sorted(found, key=lambda progress: (progress.started, progress.id))


def _file_of(out: Path, worker: str) -> Path:
    return out / FOLDER / f"{worker}.json"


def forget_progress(out: Path, worker: str) -> None:
    """Remove what a worker left that has ended."""
    with contextlib.suppress(OSError):
        _file_of(out, worker).unlink(missing_ok=True)


def clear_progress(out: Path) -> None:
    """Remove what workers left."""
    shutil.rmtree(out / FOLDER, ignore_errors=True)


class ProgressPoll:
    """Looks at the progress of a run now and then, from a thread of its own.

    Parameters
    ----------
    out : Path
        Directory of the run.
    show : callable
        Called with what :func:`read_progress` finds, where there is anything.
    every : float
        Seconds between two looks.
    """

    def __init__(self, out: Path, show: Callable[[list[Progress]], None], every: float) -> None:
        self._out, self._show, self._every = out, show, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="dpaudit-progress", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _poll(self) -> None:
        while not self._stop.wait(self._every):
            if found := read_progress(self._out):
                self._show(found)
