"""One run at a time writes into a directory."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from dpaudit import _json
from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError

LOCK = ".lock"
_LARGEST = 2**16  # bytes

_held: set[Path] = set()
"""Locks of this process: in a container every run may have the same process id."""


@dataclass(frozen=True)
class Lock:
    """The right to write into a directory, held until :meth:`release`."""

    path: Path
    place: tuple[int, int]
    """Device and inode of the file, which tell it from one that was made later."""

    def is_held(self) -> bool:
        """Whether the file is still there: a directory may be removed while a run goes on."""
        try:
            facts = self.path.stat()
        except OSError:
            return False
        return (facts.st_dev, facts.st_ino) == self.place

    def release(self) -> None:
        """Let the next run in."""
        _held.discard(self.path)
        if self.is_held():
            self.path.unlink(missing_ok=True)


def hold(out: Path, command: str) -> Lock:
    """Take the lock of a directory, which must be there.

    The lock of a process of this machine that has ended is taken over.

    Parameters
    ----------
    out : Path
        Directory of results.
    command : str
        What the run is called, for whoever meets the lock.

    Raises
    ------
    StoreError
        When another run holds it: who, since when, and what to do about a stale one.
    """
    path = out.resolve() / LOCK
    mine = json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "since": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "command": command,
        }
    )
    try:
        for _ in range(2):
            try:
                handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                _remove_stale(path, out)
            else:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(mine)
                    facts = os.fstat(file.fileno())
                _held.add(path)
                return Lock(path, (facts.st_dev, facts.st_ino))
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    raise StoreError(f"{out} is in use: another run took {out / LOCK} just now")


def _remove_stale(path: Path, out: Path) -> None:
    """Remove the lock of a process that has ended; refuse with a sentence for any other."""
    try:
        words = read_regular(inside(out, LOCK), _LARGEST).decode("utf-8")
        said = _json.loads(words)
        pid, host = int(said["pid"]), said["host"]
        who = f"`{said['command']}`, process {pid} on {host}, since {said['since']}"
    except FileNotFoundError:
        return  # released in this moment
    except (StoreError, OSError, ValueError, KeyError, TypeError):
        words, pid, host, who = "", 0, "", "a run that left no name"
    if not words or host != socket.gethostname() or _is_alive(pid, path):
        raise StoreError(
            f"{out} is in use by {who}. Wait for it, or choose another directory; if that run "
            f"has ended, delete {out / LOCK}"
        )
    aside = path.with_name(f"{LOCK}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, aside)  # of two that take over, one finds it gone
        if aside.read_text(encoding="utf-8") != words:  # and this was the other's, not the old one
            with contextlib.suppress(OSError):
                os.link(aside, path)
        aside.unlink()


def _is_alive(pid: int, path: Path) -> bool:
    """Whether a process of this machine may still hold a lock."""
    if pid == os.getpid():
        return path in _held
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and another user's
        return True
    return True
