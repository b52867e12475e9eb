"""What an audit may have left behind in its process that would make later audits fail."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

_WATCHED = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft", "random", "math", "time")
"""Modules whose functions audits rely on."""

_RESERVED = 16
"""File descriptors that are held, so that damage can be reported; as many more must be free."""

_NAMED = 3


@dataclass
class Condition:
    """What a process is like before an audit; :meth:`damage` compares it with what it is like then.

    Attributes
    ----------
    functions : dict
        The identity of each function of the modules that audits rely on, by module and name. The
        functions themselves are not held: mutants replace a function wherever it is held.
    folder : str
        Working directory.
    """

    functions: dict[tuple[str, str], int] = field(default_factory=lambda: dict(_functions()))
    folder: str = field(default_factory=os.getcwd)
    _reserve: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        with contextlib.suppress(OSError):
            self._reserve = [os.open(os.devnull, os.O_RDONLY) for _ in range(_RESERVED)]

    def damage(self) -> str:
        """Return what later audits would suffer from, in words; empty where nothing is."""
        return ", ".join(self._found())

    def _release(self) -> bool:
        """Give back the file descriptors that were held; False where somebody closed them."""
        null, held = os.stat(os.devnull), True
        while self._reserve:
            number = self._reserve.pop()
            if _is_open(number) and os.path.samestat(os.fstat(number), null):
                os.close(number)
            else:  # whoever opened another file under this number needs it
                held = False
        return held

    def _found(self) -> Iterator[str]:
        if not self._release():
            yield "it closed files that it had not opened"
        now = dict(_functions())
        replaced = [".".join(key) for key, value in self.functions.items() if now.get(key) != value]
        if replaced:
            more = f" and {len(replaced) - _NAMED} more" if len(replaced) > _NAMED else ""
            yield f"it replaced {', '.join(replaced[:_NAMED])}{more}"
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            if getattr(stream, "closed", False) or not _is_open(number):
                yield f"it closed standard {'output' if number == 1 else 'error'}"
        if not _can_open_files():
            yield "it used up the file descriptors"
        if _folder() != self.folder:
            yield "it changed the working directory"


def _functions() -> Iterator[tuple[tuple[str, str], int]]:
    for name in filter(sys.modules.__contains__, _WATCHED):
        for key, value in list(vars(sys.modules[name]).items()):
            if callable(value):
                yield (name, key), id(value)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _can_open_files() -> bool:
    opened = []
    try:
        for _ in range(2 * _RESERVED):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    finally:
        for number in opened:
            os.close(number)
    return True


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
