"""A lock that lets only one run at a time write into a directory, or write a file."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit import _json
from dpaudit._files import inside, read_regular, write_atomic
from dpaudit.errors import StoreError

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK, HOLDER = ".lock", ".lock.json"
"""The file that the operating system locks, and the file next to it that names the holder."""

_LARGEST = 2**16  # bytes


@dataclass(frozen=True)
class Lock:
    """The right to write in one place, held until :meth:`release` or the end of the process."""

    holder: Path
    """The file that names the holder of the lock."""
    words: str
    """Content of this file."""
    locked: BaseFileLock

    def is_held(self) -> bool:
        """Return whether the place still belongs to this run.

        The directory may be removed during a run.
        """
        try:
            return read_regular(self.holder, _LARGEST) == self.words.encode()
        except (StoreError, OSError):
            return False

    def release(self) -> None:
        """Release the lock for the next run."""
        if self.is_held():
            for path in (self.holder, Path(self.locked.lock_file)):
                with contextlib.suppress(OSError):  # Windows does not remove files that are open
                    path.unlink()
        self.locked.release()


def hold(out: Path, command: str) -> Lock:
    """Take the lock of a directory, which must exist, or of a file in such a directory.

    The operating system releases the lock of a process that has ended.

    Parameters
    ----------
    out : Path
        Directory of results, or a file.
    command : str
        Name of the run, which the message to another run contains.

    Raises
    ------
    StoreError
        If another run holds the lock. The message says which run, and since when.
    """
    from filelock import FileLock, Timeout

    folder, name = (out, "") if out.is_dir() else (out.parent, f".{out.name}")
    path = inside(folder.resolve(), name + LOCK)
    holder = inside(path.parent, name + HOLDER)
    since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    process = f"process {os.getpid()} on {socket.gethostname()}, since {since}"
    token = os.urandom(8).hex()  # distinguishes it from another run of this process
    words = json.dumps([f"`{command}`, {process}", token])
    try:
        locked = FileLock(path, timeout=0, thread_local=False)
        locked.acquire()
    except Timeout:
        raise StoreError(
            f"{out} is in use by {_holder(holder)}. Wait for that run, or choose another "
            f"{'file' if name else 'directory'}. If that run has ended, end the processes that it "
            f"left, or delete {folder / path.name}"
        ) from None
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"cannot write {path}: {reason}") from error
    try:
        write_atomic(holder, words, durable=False)
    except BaseException:
        locked.release()
        raise
    return Lock(holder, words, locked)


def _holder(holder: Path) -> str:
    """Return a description of the run that holds a lock."""
    try:
        return str(_json.loads(read_regular(holder, _LARGEST))[0])
    except (StoreError, OSError, ValueError, LookupError, TypeError):
        return "a run that left no name"
