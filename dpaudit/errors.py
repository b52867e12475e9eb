"""Errors and warnings of dpaudit, one class for each party at fault.

``DpauditError``
    ``MechanismError``   the audited function breaks the contract of a mechanism.
        ``MechanismTimeout``  a call takes more time than allowed.
    ``WorkersLost``      the scheduler of the workers is gone.
    ``RecipeError``      a function that builds pairs fails.
    ``ArgumentError``    an argument is out of range (also a ``ValueError``).
        ``PairError``    two datasets are not neighbours.
    ``StoreError``       a result cannot be read or written.
    ``ReproducerError``  a refutation cannot be written as a program.

An argument of a wrong type is a plain ``TypeError``.
"""

from __future__ import annotations

import os
import sysconfig
from types import FrameType, TracebackType

_DPAUDIT = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STDLIB = tuple(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib"))
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class DpauditError(Exception):
    """Base of every error that dpaudit raises."""


class MechanismError(DpauditError):
    """The audited function breaks the contract ``f(data, size, *, rng) -> [size, ...]``."""


class MechanismTimeout(MechanismError):
    """A call of the audited function, or the whole audit, took more time than allowed."""


class WorkersLost(DpauditError):
    """The scheduler of the workers is gone.

    The audit has no result.
    """


class SlowAuditWarning(UserWarning):
    """An audit will take long.

    The message gives the expected time and a faster setting.
    """


class RecipeError(DpauditError):
    """A function that builds the pairs of a search raised an exception."""


class ArgumentError(DpauditError, ValueError):
    """An argument is out of range.

    The message gives its name, its value and the allowed values.
    """


class NoClaim(ArgumentError):
    """A claim promises nothing about a pair, for example because its distance is infinite."""


class PairError(ArgumentError):
    """The two datasets of a pair are not neighbours under the declared relation."""


class StoreError(DpauditError):
    """A stored result cannot be read, trusted or written."""


class ReproducerError(DpauditError):
    """A refutation cannot be written as a program without dpaudit."""


def place(error: BaseException) -> str:
    """Return where the user's code raised an exception, as "at file.py:31, "; empty if unknown.

    The place is the innermost frame that belongs neither to dpaudit, nor to an installed package,
    nor to Python. If the mechanism itself is an installed package, no such frame exists, and the
    first frame outside dpaudit is used.
    """
    first = users = None
    trace = error.__traceback__
    while trace is not None:
        file = _file(trace.tb_frame)
        if not file.startswith((_DPAUDIT, "<frozen ")):
            here = f"at {os.path.basename(file)}:{trace.tb_lineno}, "
            first = first or here
            if not file.startswith(_STDLIB) and not any(part in file for part in _INSTALLED):
                users = here
        trace = trace.tb_next
    return users or first or ""


def drop_own_frames(error: BaseException) -> BaseException:
    """Remove the frames of dpaudit from the tracebacks of an exception and of its causes."""
    link: BaseException | None = error
    seen: set[int] = set()  # an exception may be its own cause
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        kept = []
        trace = link.__traceback__
        while trace is not None:
            if not _file(trace.tb_frame).startswith(_DPAUDIT):
                kept.append(trace)
            trace = trace.tb_next
        rest: TracebackType | None = None
        for each in reversed(kept):
            rest = TracebackType(rest, each.tb_frame, each.tb_lasti, each.tb_lineno)
        link.__traceback__ = rest
        link = link.__cause__
    return error


def is_last_frame_own(error: BaseException) -> bool:
    """Return whether a line of dpaudit raised an exception, such as a call with wrong arguments."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and _file(trace.tb_frame).startswith(_DPAUDIT)


def _file(frame: FrameType) -> str:
    """Return the file of a frame's code; for compiled code without a file, the module's file."""
    file = frame.f_code.co_filename
    module = frame.f_globals.get("__file__")
    return str(module) if module and not os.path.isabs(file) and file[:1] != "<" else file
