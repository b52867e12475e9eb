"""How far an audit is, and an end for one that takes too long."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from dpaudit.errors import MechanismTimeout

TIME_IS_OVER = "the time of max_seconds is over"
"""What ends early says so in these words."""


@dataclass
class Watch:
    """What an audit tells while it goes on, and how long it may take.

    Parameters
    ----------
    progress : callable, optional
        ``progress(done, total)``, called after each call of a mechanism with the draws made so far
        and the draws planned, over both datasets and all mechanisms of the audit.
    timeout : float, optional
        Seconds that the whole audit may take.
    call_timeout : float, optional
        Seconds that one call of a mechanism may take.
    total : int
        Draws planned.
    max_seconds : float, optional
        Seconds after which the audit ends with what it has.
    """

    progress: Callable[[int, int], None] | None = None
    timeout: float | None = None
    call_timeout: float | None = None
    total: int = 0
    done: int = 0
    is_warned: bool = False
    max_seconds: float | None = None
    begun: float = field(default_factory=time.perf_counter)

    def note(self, draws: int) -> None:
        """Count draws that were made, and tell."""
        self.done += draws
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    @property
    def is_over(self) -> bool:
        """Whether the time of the whole audit is spent."""
        return self.timeout is not None and time.perf_counter() - self.begun >= self.timeout

    @property
    def deadline(self) -> float | None:
        """When the time of the whole audit is over, on the clock of ``time.perf_counter``."""
        return None if self.timeout is None else self.begun + self.timeout

    def is_spent(self, share: float = 1.0) -> bool:
        """Whether this share of `max_seconds` is over."""
        if self.max_seconds is None:
            return False
        return time.perf_counter() - self.begun >= share * self.max_seconds

    @contextmanager
    def calls_within(self, seconds: float) -> Iterator[None]:
        """Allow no call more than so many seconds for a while, or less where less is allowed."""
        before = self.call_timeout
        self.call_timeout = seconds if before is None else min(before, seconds)
        try:
            yield
        finally:
            self.call_timeout = before

    def finish(self) -> None:
        """Tell that nothing is left to do, where less was drawn than planned."""
        self.note(max(self.total - self.done, 0))

    @contextmanager
    def limit(self, name: str) -> Iterator[None]:
        """End one call of a mechanism when its time, or that of the audit, is over.

        In the main thread of a system with interval timers a call is interrupted, unless compiled
        code holds on to it; elsewhere it is judged when it returns.

        Raises
        ------
        MechanismTimeout
            Naming the limit.
        """
        left = math.inf
        if self.timeout is not None:
            left = self.timeout - (time.perf_counter() - self.begun)
        seconds = min(left, math.inf if self.call_timeout is None else self.call_timeout)
        if math.isinf(seconds):
            yield
            return
        of_audit = left == seconds
        words = (
            f"{name} was stopped: the audit took more than timeout = {self.timeout:g} s"
            if of_audit
            else f"{name} was stopped: one call took more than call_timeout = {seconds:g} s"
        )
        if seconds <= 0:
            raise MechanismTimeout(words)
        start = time.perf_counter()
        if threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
            with _alarm(seconds, words):
                yield
        else:
            yield
        if time.perf_counter() - start > seconds:
            raise MechanismTimeout(words)


@contextmanager
def _alarm(seconds: float, words: str) -> Iterator[None]:
    """Raise :class:`MechanismTimeout` after so many seconds; then leave the timer as it was."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise MechanismTimeout(words)

    handler = signal.signal(signal.SIGALRM, stop)
    begun = time.perf_counter()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # also where the alarm rang while we were stopping it
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if remaining:
            left = max(remaining - (time.perf_counter() - begun), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, interval)
