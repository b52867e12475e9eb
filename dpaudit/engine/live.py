"""A line that says what an audit does, for people who wait for it."""

from __future__ import annotations

import contextlib
import html
import importlib
import sys
import time
from typing import Any

from dpaudit.results import duration

PATIENCE = 3.0
"""Seconds after which an audit says what it does."""

EVERY = 0.2
"""Least number of seconds between two changes of the line."""


def live_line(id: str) -> LiveLine | None:
    """Return a line for an audit; None if there is neither a terminal nor a notebook."""
    if _in_notebook():
        return LiveLine(id, _Notebook())
    stream = sys.stderr
    return LiveLine(id, _Terminal(stream)) if stream is not None and stream.isatty() else None


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class LiveLine:
    """A function ``progress(done, total, stage)`` that shows its arguments, in one place.

    The line appears with the first call that ends, or the first stage that begins, after three
    seconds. It disappears when the audit ends. No thread updates it, because some mutants run in
    forked processes, which threads could block.
    """

    def __init__(self, id: str, shown: Any) -> None:
        self._id, self._shown = id, shown
        self._begun = time.perf_counter()
        self._next, self._stage = self._begun + PATIENCE, ""

    def __call__(self, done: int, total: int, stage: str) -> None:
        """Show the state of the audit, unless the line changed just now."""
        now = time.perf_counter()
        is_new = stage != self._stage and now - self._begun >= PATIENCE
        if now < self._next and not is_new:
            return
        self._next, self._stage = now + EVERY, stage
        words = f"{duration(now - self._begun)}  {self._id}: {stage}"
        with contextlib.suppress(OSError):  # a terminal that is gone must not end an audit
            self._shown.show(done / total if total else 0.0, words)

    def close(self) -> None:
        """Remove the line."""
        with contextlib.suppress(OSError):
            self._shown.close()


class _Terminal:
    """One line of a terminal, drawn by rich."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._bar: Any = None
        self._task: Any = None

    def show(self, share: float, words: str) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
            )

            self._bar = Progress(
                BarColumn(20),
                TaskProgressColumn(),
                TextColumn("{task.description}", markup=False),
                console=Console(file=self._stream),
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._task = self._bar.add_task("", total=1.0)
            self._bar.start()
        self._bar.update(self._task, completed=share, description=words, refresh=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


class _Notebook:
    """One place in the output of a notebook's cell."""

    def __init__(self) -> None:
        self._place: Any = None

    def show(self, share: float, words: str) -> None:
        bar = f'<progress value="{share:.3f}" max="1" aria-label="progress"></progress>'
        self._display(f"{bar} {html.escape(words)}")

    def close(self) -> None:
        if self._place is not None:
            self._display("")

    def _display(self, text: str) -> None:
        shown: Any = importlib.import_module("IPython.display")
        if self._place is None:
            self._place = shown.display(shown.HTML(text), display_id=True)
        else:
            self._place.update(shown.HTML(text))
