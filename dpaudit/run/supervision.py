"""Supervision of the processes of a run: end calls that hang, and report why a process ended."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest

from dpaudit.run.carry import DAMAGED, ENDS_RUN
from dpaudit.run.progress import Progress, ProgressPoll, forget_progress

if TYPE_CHECKING:
    from dpaudit.run.session import AuditSession

GRACE = 10.0
"""Seconds beyond its time limit after which the process of an audit is killed."""

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


class Supervisor:
    """The part of the controlling process that watches all other processes.

    Parameters
    ----------
    session : AuditSession
        Session of the run.
    """

    def __init__(self, session: AuditSession) -> None:
        self._session = session
        self._stopped: dict[str, str] = {}
        self._damaged: set[str] = set()
        self._poll = ProgressPoll(session.out, self._stop_overdue, every=1.0)
        self._before: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Begin to watch time limits.

        On SIGTERM, end the run in the same way as after Ctrl-C.
        """
        self._poll.start()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._terminate)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        self._restore()  # a second signal ends the process at once
        pytest.exit("the process got SIGTERM", returncode=int(pytest.ExitCode.INTERRUPTED))

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
            self._before = None

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Record why the run ended early."""
        reason = getattr(excinfo.value, "msg", None) or "Ctrl-C, or SIGINT"
        self._session.problems.append(f"the run ended early: {reason}")

    def pytest_unconfigure(self) -> None:
        """Stop watching."""
        self._poll.stop()
        self._restore()

    # --- processes that are killed, crash, or are restarted ---

    def _stop_overdue(self, found: list[Progress]) -> None:
        """Kill processes whose audit cannot be interrupted."""
        for progress in found:
            overdue = progress.ends is not None and time.time() > progress.ends + GRACE
            if not overdue or progress.pid in (0, os.getpid()) or progress.worker in self._stopped:
                continue
            seconds = (progress.ends or 0.0) - progress.started
            self._stopped[progress.worker] = (
                f"{progress.id} took more than time_limit = {seconds:g} s and could not be "
                "interrupted; its process was killed"
            )
            with contextlib.suppress(ProcessLookupError):
                os.kill(progress.pid, _KILL)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Remove the progress of a process that has ended."""
        forget_progress(self._session.out, node.gateway.id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Report why a process ended.

        Damage was reported before the restart that it caused.
        """
        if crashitem in self._damaged:
            report.outcome, report.when = "passed", "setup"
            return
        worker = report.node.gateway.id
        if (words := self._stopped.get(worker)) is not None:
            report.longrepr = words

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note damage, and end the run if no more draws can be made."""
        if hasattr(report, DAMAGED):
            self._damaged.add(report.nodeid)
        if (words := getattr(report, ENDS_RUN, None)) is not None:
            pytest.exit(words, returncode=int(pytest.ExitCode.INTERRUPTED))
