"""Compute a value in a forked process, so that nothing in this process changes."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_parent: int | None = None  # process that forked this one by `in_child`

_MEMORY = 4 * 2**30  # bytes that a child may take in addition
_PART = 2**16


class ChildError(Exception):
    """A forked process gave no value."""


def in_child(compute: Callable[[], T], *, limit: float) -> T:
    """Return a value that a forked process computes.

    The process starts as a copy of this one. What it changes, such as the code of functions or
    values that a mechanism keeps, ends with it. It prints nothing.

    Parameters
    ----------
    compute : callable
        ``compute() -> value``. The value is pickled.
    limit : float
        Seconds after which the process is killed.

    Raises
    ------
    ChildError
        If this system cannot fork, if `compute` raises an exception, or if the process is killed or
        does not end.
    """
    if not hasattr(os, "fork"):
        raise ChildError("this system cannot copy a process")
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads, such as those of numpy's libraries
        child = os.fork()
    if child == 0:
        _compute(compute, writes)
    os.close(writes)
    try:
        sent = _received(reads, time.monotonic() + limit)
    finally:
        os.close(reads)
        for kill in (os.killpg, os.kill):  # the child may not have its group yet
            with contextlib.suppress(OSError):
                kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
    if _is_orphan():
        os._exit(0)  # nobody waits for the value
    if sent is None:
        raise ChildError(f"it did not end within {limit:.0f} s")
    if not sent:
        raise ChildError("its process was killed")
    is_made, value = pickle.loads(sent)
    if not is_made:
        raise ChildError(value)
    return value  # type: ignore[no-any-return]


def _received(reads: int, deadline: float) -> bytes | None:
    """Return all bytes from a pipe, or None if it is still open at the deadline."""
    parts: list[bytes] = []
    while (left := deadline - time.monotonic()) > 0 and not _is_orphan():
        if not select.select([reads], [], [], min(left, 1.0))[0]:
            continue
        part = os.read(reads, _PART)
        if not part:
            return b"".join(parts)
        parts.append(part)
    return None


def _is_orphan() -> bool:
    """Whether this process is a child whose parent has ended."""
    return _parent is not None and os.getppid() != _parent


def _compute(compute: Callable[[], Any], writes: int) -> None:
    """Compute, send the value, and end this process without any clean-up of its parent."""
    global _parent
    try:
        if _parent is None:  # children of a child stay in its group, and end with it
            os.setpgid(0, 0)
        _parent = os.getppid()
        sys.settrace(None)
        sys.setprofile(None)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        quiet = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(quiet, number)
        sys.stdout = sys.stderr = open(quiet, "w", encoding="utf-8")  # noqa: SIM115
        limit_memory()
        # The threads of PyTorch do not exist in a copy, which would wait for them forever.
        getattr(sys.modules.get("torch"), "set_num_threads", lambda _: None)(1)
        try:
            sent = pickle.dumps((True, compute()))
        except BaseException as error:
            sent = pickle.dumps((False, f"{type(error).__name__}: {error}"))
        with os.fdopen(writes, "wb") as pipe:
            pipe.write(sent)
    finally:
        os._exit(0)


def limit_memory() -> None:
    """Refuse to allocate far more than before, where the system can limit memory."""
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, resource.RLIM_INFINITY))
    except (ImportError, OSError, ValueError):
        pass
