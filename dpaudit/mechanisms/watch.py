"""Progress reporting and time limits of an audit."""

from __future__ import annotations

import functools
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from dpaudit import _validate
from dpaudit.errors import MechanismTimeout, SlowAuditWarning

TIME_IS_OVER = "the time of max_seconds is over"
"""Words in the reason of anything that ended early."""

LONG = 180.0
"""Seconds above which a warning says that an audit takes long."""

_JUDGED_AFTER = 30.0
"""Seconds after which the remaining time is estimated from the draws so far."""

PRINT_LIMIT = 2_000
"""Largest number of characters printed by the mechanisms of an audit that are shown."""

_LINE = 100
"""Characters that each line counts for, in addition to its own."""

_LONGEST = 1e9
"""Largest number of seconds that a timer can be set to; longer limits never expire."""

_AGAIN = 1.0
"""Seconds after which a call is interrupted again, in case its code caught the first exception."""


@dataclass
class Watch:
    """The progress of an audit, and its time limits.

    Parameters
    ----------
    progress : callable, optional
        ``progress(done, total, stage)`` is called after each call of a mechanism and at the start
        of each stage. The arguments are the number of draws made so far, the number of planned
        draws, over both datasets and all mechanisms of the audit, and the stage in words.
    time_limit : float, optional
        Seconds that the whole audit may take.
    call_limit : float, optional
        Seconds that one call of a mechanism may take.
    total : int
        Draws planned.
    max_seconds : float, optional
        Seconds after which the audit ends with the results obtained so far.
    """

    progress: Callable[[int, int, str], None] | None = None
    time_limit: float | None = None
    call_limit: float | None = None
    total: int = 0
    max_seconds: float | None = None
    done: int = field(default=0, init=False)
    is_warned: bool = field(default=False, init=False)
    begun: float = field(default_factory=time.perf_counter, init=False)
    in_calls: float = field(default=0.0, init=False)
    """Seconds that calls of mechanisms took, over all workers."""
    may_show: int = field(default=PRINT_LIMIT, init=False)
    """Number of further characters printed by mechanisms that are shown."""
    interrupted: bool = field(default=False, init=False)
    """Whether a signal asked this process to end; else the mechanism raised an interrupt."""
    stage: str = field(default="starting", init=False)
    """What the audit does now."""

    def __post_init__(self) -> None:
        if self.progress is not None:
            _validate.function("a function progress(done, total, stage)", progress=self.progress)
        for name in ("time_limit", "call_limit", "max_seconds"):
            if getattr(self, name) is not None:
                seconds = _validate.positive(**{name: getattr(self, name)})
                setattr(self, name, min(seconds, _LONGEST))
        _validate.integer(0, total=self.total)

    def note(self, draws: int) -> None:
        """Count draws and report progress; warn once if an audit takes long."""
        self.done += draws
        self._tell()
        if self.is_warned or self.max_seconds is not None or not 0 < self.done < self.total:
            return
        passed = time.perf_counter() - self.begun
        left = passed * (self.total / self.done - 1)
        if passed > _JUDGED_AFTER and left > LONG:  # if the mechanism or its outputs are the cause
            self.is_warned = True
            warnings.warn(
                f"the audit has taken {passed:.0f} s for {self.done:,} of {self.total:,} draws (of "
                "both datasets, and of any mutants), "
                f"{min(self.in_calls, passed):.0f} s of them in the mechanism, and needs up to "
                f"{left / 60:.0f} more minutes. Pass fewer draws=, return smaller outputs, claim "
                'by a faster accountant, or set method="sequential" and Settings(max_seconds=...)',
                SlowAuditWarning,
                stacklevel=2,
            )

    def begin(self, stage: str) -> None:
        """Report that the next stage of the audit begins."""
        self.stage = stage
        self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total, self.stage)

    @property
    def is_over(self) -> bool:
        """Whether the time limit of the whole audit has passed."""
        return self.time_limit is not None and time.perf_counter() - self.begun >= self.time_limit

    @property
    def deadline(self) -> float | None:
        """Time on the clock of ``time.perf_counter`` at which the audit's time limit ends."""
        return None if self.time_limit is None else self.begun + self.time_limit

    def is_spent(self, share: float = 1.0) -> bool:
        """Return whether this share of `max_seconds` has passed."""
        if self.max_seconds is None:
            return False
        return time.perf_counter() - self.begun >= share * self.max_seconds

    @contextmanager
    def calls_within(self, seconds: float) -> Iterator[None]:
        """Limit each call inside a block to this many seconds, or to a lower existing limit."""
        before = self.call_limit
        self.call_limit = seconds if before is None else min(before, seconds)
        try:
            yield
        finally:
            self.call_limit = before

    def finish(self) -> None:
        """Report that no more draws will be made, if fewer draws were made than planned."""
        self.note(max(self.total - self.done, 0))

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Guard one call of a mechanism: its time, its output, its interrupts, and its process.

        Raises
        ------
        MechanismTimeout
            If a time limit passed. The message says which limit.
        """
        process = os.getpid()
        out, err = (_LimitedOutput(stream, self, name) for stream in (sys.stdout, sys.stderr))
        try:
            if threading.current_thread() is not threading.main_thread():
                with self._limit(name):  # only the main thread may change streams and signals
                    yield
            else:
                with self.signals(), redirect_stdout(out), redirect_stderr(err), self._limit(name):
                    yield
        except MechanismTimeout as error:
            # The traceback may hold millions of frames, which cannot be printed.
            error.__context__ = error.__cause__ = None
            raise error.with_traceback(None) from None
        finally:
            if os.getpid() != process:  # if the call forked, it returns in the child process, too
                os._exit(1)

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Record which interrupts come from outside (in the main thread); restore the handlers."""

        def note(handler: Any, number: int, frame: FrameType | None) -> None:
            self.interrupted = True
            handler(number, frame)

        before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, functools.partial(note, handler))
        try:
            yield
        finally:
            for number, handler in before.items():
                if callable(handler):
                    signal.signal(number, handler)

    @contextmanager
    def _limit(self, name: str) -> Iterator[None]:
        """End one call of a mechanism when the time limit of the call or of the audit has passed.

        In the main thread of a system with interval timers, the call is interrupted as soon as
        compiled code returns. In all other cases, the time is checked only when the call returns.
        """
        left = math.inf
        if self.time_limit is not None:
            left = self.time_limit - (time.perf_counter() - self.begun)
        seconds = min(left, math.inf if self.call_limit is None else self.call_limit)
        if math.isinf(seconds):
            yield
            return
        of_audit = left == seconds
        words = (
            f"{name} was stopped: the audit took more than time_limit = {self.time_limit:g} s"
            if of_audit
            else f"{name} was stopped: one call took more than call_limit = {seconds:g} s"
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
    """Raise :class:`MechanismTimeout` after these seconds, and restore the timer afterwards."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise MechanismTimeout(words)

    handler = signal.signal(signal.SIGALRM, stop)
    begun = time.perf_counter()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:  # needed also if the alarm fires while the timer is being stopped
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if remaining:
            left = max(remaining - (time.perf_counter() - begun), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


class _LimitedOutput:
    """A standard stream that passes on its first characters and then reports that it stops."""

    def __init__(self, stream: Any, watch: Watch, name: str) -> None:
        self._stream, self._watch, self._name = stream, watch, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Pass on a text up to the limit; under a debugger, pass on all of it."""
        watch = self._watch
        if sys.gettrace() is not None or self._stream is None:
            return len(text) if self._stream is None else int(self._stream.write(text))
        if watch.may_show > 0:
            printed = text[: watch.may_show]
            lines = printed.splitlines(keepends=True)[: watch.may_show // _LINE + 1]
            watch.may_show -= sum(map(len, lines)) + _LINE * sum("\n" in line for line in lines)
            self._stream.write("".join(lines))
            if watch.may_show <= 0:
                self._stream.write(f"\n[what {self._name} prints is not shown from here on]\n")
        return len(text)

    def close(self) -> None:
        """Leave the stream open, because it belongs to the process."""
