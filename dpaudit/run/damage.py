"""Damage that an audit may do to its process, and that would make later audits fail."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

_WATCHED = ("numpy", "numpy.random", "numpy.linalg", "numpy.fft", "random", "math", "time")
"""Modules whose functions audits rely on."""

_NAMED = 3
_FREE = 16
"""File descriptors that later audits must be able to open."""


def _functions() -> dict[str, int]:
    """Return the identity of each function of the watched modules.

    The functions themselves are not stored, because mutants replace every reference to a function.
    """
    return {
        f"{name}.{key}": id(value)
        for name in filter(sys.modules.__contains__, _WATCHED)
        for key, value in list(vars(sys.modules[name]).items())
        if callable(value)
    }


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was removed
        return ""


@dataclass
class Condition:
    """State of a process before an audit: the functions and the working directory."""

    functions: dict[str, int] = field(default_factory=_functions)
    folder: str = field(default_factory=_folder)

    def damage(self) -> str:
        """Return the damage that would affect later audits, in words, or ""."""
        return ", ".join(self._damage())

    def _damage(self) -> Iterator[str]:
        now = _functions()
        replaced = [name for name, value in self.functions.items() if now.get(name) != value]
        if replaced:
            more = f" and {len(replaced) - _NAMED} more" if len(replaced) > _NAMED else ""
            yield f"it replaced {', '.join(replaced[:_NAMED])}{more}"
        for number, stream in ((1, sys.stdout), (2, sys.stderr)):
            try:
                os.fstat(number)
                is_open = not getattr(stream, "closed", False)
            except OSError:
                is_open = False
            if not is_open:
                yield f"it closed standard {'output' if number == 1 else 'error'}"
        opened: list[int] = []
        try:
            for _ in range(_FREE):
                opened.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            yield "it used up the file descriptors"
        finally:
            for number in opened:
                os.close(number)
        if _folder() != self.folder:
            yield "it changed the working directory"
