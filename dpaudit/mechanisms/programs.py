"""Processes of other programs: how they start, answer within a time limit, and end.

Each program runs in a process group of its own. The whole group is killed when the program is
ended, when its object is garbage, when this process ends, and also when this process is killed. For
the last case, one small watchdog process knows all groups and notices the end of this process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from typing import IO, Any

from dpaudit.errors import MechanismError

TAIL = 2000
"""Largest number of bytes of a program's standard error that a message shows."""

_PART = 2**16
_LONGEST = 3600.0  # seconds of one wait, because the system limits its waits
_RESTART = 2**20  # bytes of standard error after which its file is written from the start again


class TooLong(Exception):
    """The answer of a program is longer than allowed."""


class Program:
    """A program in a process group of its own, with pipes to its standard input and output.

    Parameters
    ----------
    command : list of str
        The program and its arguments. No shell reads them.
    advice : str
        Advice for the message if the program cannot be started.

    Raises
    ------
    MechanismError
        If the program cannot be started.
    """

    def __init__(self, command: list[str], *, advice: str) -> None:
        self._errors = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `end`
        self._owner = os.getpid()
        self._fault: Exception | None = None
        # A signal handler cannot interrupt another thread, so no process is started and forgotten.
        starter = threading.Thread(target=self._start, args=[command])
        try:
            starter.start()
            starter.join()
        except BaseException:
            starter.join()
            self.end()
            raise
        if self._fault is not None:
            self._errors.close()
            words = getattr(self._fault, "strerror", None) or self._fault
            message = f"{command[0]} cannot be started: {words}. {advice}"
            raise MechanismError(message) from self._fault

    def _start(self, command: list[str]) -> None:
        try:
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,
            )
        except Exception as error:
            self._fault = error
            return
        self._finalizer = weakref.finalize(self, _end, self._process, self._errors, self._owner)
        _watch(self._process.pid)

    def end(self) -> None:
        """Kill the program and all processes of its group."""
        if self._fault is None:
            self._finalizer()

    @property
    def stdin(self) -> IO[bytes]:
        """Pipe to the standard input of the program."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Pipe from the standard output of the program."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def is_ours(self) -> bool:
        """Whether this process started the program, and not a process of which it is a copy."""
        return self._owner == os.getpid()

    @property
    def is_running(self) -> bool:
        """Whether the program runs, and this process started it."""
        return self._finalizer.alive and self.is_ours and self._process.poll() is None

    def status(self, seconds: float | None = None) -> str:
        """Wait until the program ends, and return its exit status in words; "" for success.

        Raises
        ------
        TimeoutError
            If the program does not end within the given seconds.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        if code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit status {code}" if code else ""

    def unread(self) -> bytes | None:
        """Return output that nobody asked for; b"" for a closed output, and None for no output."""
        poll = select.poll()
        poll.register(self.stdout, select.POLLIN)
        return os.read(self.stdout.fileno(), _PART) if poll.poll(0) else None

    def ask(self, request: bytes, *, lines: bool, seconds: float, most: int) -> bytes:
        """Write to the standard input of a program, and return what the program then writes.

        Parameters
        ----------
        request : bytes
            Bytes for the standard input.
        lines : bool
            If True, the answer is one line, and the input stays open. If False, the input is closed
            after the request, and the answer is the whole output of the program.
        seconds : float
            Time limit for the whole answer.
        most : int
            Largest number of bytes of an answer.

        Raises
        ------
        TimeoutError
            If the answer is not complete in time.
        EOFError
            If the output ends before the end of a line.
        TooLong
            If the answer has more bytes than allowed.
        """
        deadline = time.monotonic() + seconds
        into, out = self.stdin.fileno(), self.stdout.fileno()
        os.set_blocking(into, False)
        unsent, answer = memoryview(request), bytearray()
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(into, select.POLLOUT)
        while (left := deadline - time.monotonic()) > 0:
            for file, _ in poll.poll(1000 * min(left, _LONGEST)):
                if file == into:
                    unsent = _sent(into, unsent)
                    if not unsent:
                        poll.unregister(into)
                        if not lines:
                            self.stdin.close()
                    continue
                part = os.read(out, _PART)
                answer += part
                if not part and lines:
                    raise EOFError
                if len(answer) > most:
                    raise TooLong
                if not part or (lines and b"\n" in part):
                    return bytes(answer)
        raise TimeoutError

    def errors(self) -> str:
        """Return the end of the text that the program wrote to its standard error, or ""."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(size - TAIL, 0))
        text = self._errors.read(TAIL).decode(errors="replace").strip()
        # The program writes at the same position, because both processes share the open file.
        if size > _RESTART:
            self._errors.truncate(0)
        self._errors.seek(0, os.SEEK_END)
        return text

    def error_words(self) -> str:
        """Return the end of the standard error as a sentence, or ""."""
        text = self.errors()
        return f". Its standard error ended with: {text}" if text else ""


def _sent(file: int, unsent: memoryview) -> memoryview:
    """Write a part of a request, and return the rest; a program may close its input early."""
    try:
        return unsent[os.write(file, unsent[:_PART]) :]
    except BlockingIOError:
        return unsent
    except BrokenPipeError:
        return memoryview(b"")


def _end(process: subprocess.Popen[bytes], errors: Any, owner: int) -> None:
    """Kill a program with all processes of its group, unless another process started it."""
    if owner == os.getpid():
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        _watch(-process.pid)
    for stream in (process.stdin, process.stdout, errors):
        if stream is not None:
            with contextlib.suppress(OSError):  # the rest of a request may be in a buffer
                stream.close()


_WATCHDOG = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    number = int(line)
    groups.add(number) if number > 0 else groups.discard(-number)
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


def _watch(group: int) -> None:
    """Let the watchdog of this process kill a group of processes, or forget the group `-group`."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.write(_watchdog(os.getpid()), b"%d\n" % group)


@functools.cache
def _watchdog(process: int) -> int:
    """Start the watchdog of a process, and return the pipe to its standard input."""
    reads, writes = os.pipe()
    command = [sys.executable, "-I", "-S", "-c", _WATCHDOG]
    quiet = subprocess.DEVNULL
    dog = subprocess.Popen(command, stdin=reads, stdout=quiet, stderr=quiet, start_new_session=True)
    dog.returncode = 0  # nobody waits for it, so Python must not warn that it still runs
    os.close(reads)
    return writes
