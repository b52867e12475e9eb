"""A generator that records where the mechanism uses it, and changes its draws at some places.

A mechanism receives a :class:`Recorder` in place of its generator. The recorder is a
``numpy.random.Generator`` with the same bits. So a recorder without changes draws exactly the same
numbers. Each call of a method belongs to a *site*. A site is the method together with the lines of
code that led to the call.
"""

from __future__ import annotations

import copy
import inspect
import math
import sys
import sysconfig
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from numpy.random import Generator

from dpaudit.errors import MechanismError
from dpaudit.mutants.treatments import LOW_END, STALE, TREATMENTS

Line = tuple[str, str, int]
"""File, function and number of a line of code."""

Key = tuple[str, tuple[Line, ...]]
"""Method of the generator, and the lines that led to the call, with the innermost first."""

_HERE = str(Path(__file__).parent.parent)
_LIBRARIES = (
    str(Path(np.__file__).parent),
    str(Path(np.__file__).parent.parent / "scipy"),
    str(Path(np.__file__).parent.parent / "narwhals"),
    _HERE,
)
_STANDARD = sysconfig.get_paths()["stdlib"]
_SITE_PACKAGES = ("site-packages", "dist-packages")
_KEPT, _MOST_KEPT = ("laplace", "normal", "standard_normal"), 10_000


@dataclass
class Seen:
    """The record of one site in one call of a mechanism.

    Parameters
    ----------
    calls : int
        Number of calls of the method.
    numbers : int
        Total number of values drawn.
    amounts : list of float
        Smallest and largest value of the argument that sets the amount of noise.
    in_threads : bool
        Whether the method was called in a thread other than the thread of the mechanism's call.
    has_probabilities : bool
        Whether a call was given probabilities that can be sharpened.
    """

    calls: int = 0
    numbers: int = 0
    amounts: list[float] = field(default_factory=list)
    in_threads: bool = False
    has_probabilities: bool = False


@dataclass(frozen=True)
class Plan:
    """One change at some of the calls of one site.

    Parameters
    ----------
    key : Key
        The site.
    change : str
        Name of the change; see :mod:`dpaudit.mutants.treatments`.
    only : int, optional
        Index of the only call that is changed. By default, all calls are changed.
    factor : float
        Factor of the noise for the change "scaled", or least scale for the change "raised".
    """

    key: Key
    change: str
    only: int | None = None
    factor: float = 1.0


@dataclass
class Log:
    """The state that a recorder shares with its children."""

    plans: dict[Key, Plan] = field(default_factory=dict)
    methods: frozenset[str] = frozenset()
    seen: dict[Key, Seen] = field(default_factory=dict)
    changed: int = 0
    states: dict[Key, Any] = field(default_factory=dict)
    thread: int = field(default_factory=threading.get_ident)
    calls: int = 0
    most: float = math.inf
    inside: threading.local = field(default_factory=threading.local)
    drawn: list[np.ndarray[Any, Any]] = field(default_factory=list)
    numbers: int = 0


class Recorder(Generator):
    """A generator that records its sites and executes planned changes.

    Parameters
    ----------
    rng : numpy.random.Generator
        Generator whose bits the recorder uses; its state advances.
    plans : Plan
        Planned changes; none by default.

    Attributes
    ----------
    log : Log
        Record of all calls, including those of spawned children.
    """

    log: Log

    def __init__(self, rng: Generator, *plans: Plan, log: Log | None = None) -> None:
        super().__init__(rng.bit_generator)
        if log is None:
            methods = frozenset(plan.key[0] for plan in plans)
            log = Log({plan.key: plan for plan in plans}, methods)
        self.log = log

    def spawn(self, n_children: int) -> list[Generator]:
        """Spawn child generators that are recorders, too."""
        seeds = Generator.bit_generator.__get__(self).spawn(n_children)
        return [Recorder(Generator(bits), log=self.log) for bits in seeds]

    def beside(self, rng: Generator) -> Recorder:
        """Return a recorder of another generator that shares this log."""
        return Recorder(rng, log=self.log)

    @property
    def bit_generator(self) -> Any:
        """The source of bits.

        Draws of other generators that use this source are not recorded.
        """
        if not getattr(self.log.inside, "numpy", False):
            self._noted(("bit_generator", _lines(sys._getframe(1))), {})
        return Generator.bit_generator.__get__(self)

    def _draw(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Draw, record the site, and apply the planned change to the draw."""
        drawn_by = getattr(Generator, method)
        inside = self.log.inside
        if getattr(inside, "numpy", False):  # numpy's own methods call each other
            return drawn_by(self, *args, **kwargs)
        inside.numpy = True
        try:
            log = self.log
            log.calls += 1
            if log.calls > log.most:
                raise MechanismError(
                    f"the mutant must end, got {log.calls:,} calls of its rng, a hundred times as "
                    "many as its mechanism makes"
                )
            if log.plans and method not in log.methods:  # plans record nothing else
                return drawn_by(self, *args, **kwargs)
            key = (method, _lines(sys._getframe(2)))
            plan = log.plans.get(key)
            index = log.seen[key].calls if key in log.seen else 0
            plan = plan if plan is not None and plan.only in (None, index) else None
            if log.plans and plan is None:
                log.seen.setdefault(key, Seen()).calls += 1
                return drawn_by(self, *args, **kwargs)
            bound = _SIGNATURES[method].bind(self, *args, **kwargs)
            bound.apply_defaults()
            # Methods that work in place overwrite their input.
            before = {**bound.arguments}
            if "x" in before:
                before["x"] = copy.copy(before["x"])
            if plan is not None and plan.change == STALE:
                return self._noted(
                    key, before, self._stale(key, lambda: drawn_by(self, *args, **kwargs))
                )
            adapted = None
            if plan is not None:
                adapted = TREATMENTS[method].adapted(plan.change, bound.arguments, plan.factor)
            if adapted is not None:
                log.changed += 1
                bound.arguments.update(adapted)
                return self._noted(key, before, drawn_by(*bound.args, **bound.kwargs))
            drawn = self._noted(key, before, drawn_by(self, *args, **kwargs))
            if plan is None or not TREATMENTS[method].can_change(plan.change):
                return drawn
            log.changed += 1
            return _put(plan, bound.arguments, before, drawn)
        finally:
            inside.numpy = False

    def _stale(self, key: Key, draw: Callable[[], Any]) -> Any:
        """Draw with the bits of the first call at this site, without advancing the stream."""
        bits = Generator.bit_generator.__get__(self)
        if key not in self.log.states:
            self.log.states[key] = bits.state
            return draw()
        now, bits.state = bits.state, self.log.states[key]
        try:
            self.log.changed += 1
            return draw()
        finally:
            bits.state = now

    def _noted(self, key: Key, arguments: Mapping[str, Any], drawn: Any = None) -> Any:
        """Record a call, and return its draws."""
        seen = self.log.seen.setdefault(key, Seen())
        seen.calls += 1
        if key[0] in _KEPT:
            self.log.numbers += np.size(drawn)
            self.log.drawn.append(np.array(drawn, dtype=float))
            if self.log.numbers > _MOST_KEPT:  # store draws only while there are not too many
                self.log.drawn.clear()
        shuffled = drawn is None and "x" in arguments
        seen.numbers += len(arguments["x"]) if shuffled else np.size(drawn)
        seen.in_threads |= threading.get_ident() != self.log.thread
        temper = TREATMENTS[key[0]].temper if key[0] in TREATMENTS else None
        seen.has_probabilities |= temper is not None and temper(arguments, 2.0) is not None
        amount = TREATMENTS[key[0]].amount if key[0] in TREATMENTS else ""
        try:
            values = np.asarray(arguments[amount], dtype=float).ravel()
        except (KeyError, TypeError, ValueError):  # None, or not a number
            return drawn
        values = values[~np.isnan(values)]
        if values.size:
            seen.amounts = [
                min([*seen.amounts[:1], float(values.min())]),
                max([*seen.amounts[1:], float(values.max())]),
            ]
        return drawn


def _put(plan: Plan, arguments: Mapping[str, Any], before: Mapping[str, Any], drawn: Any) -> Any:
    """Return changed draws, or write them to the array that the method was asked to fill."""
    method, change = plan.key[0], plan.change
    treatment = TREATMENTS[method]
    if method == "shuffle":
        x = before["x"]
        if isinstance(x, np.ndarray):
            arguments["x"][...] = treatment.changed(change, before, x)
        else:
            arguments["x"][:] = x if change == LOW_END else x[::-1]
        return None
    changed = treatment.changed(change, before, drawn, plan.factor)
    if arguments.get("out") is None:
        return changed
    drawn[...] = changed
    return drawn


def _recorded(name: str) -> Callable[..., Any]:
    def method(self: Recorder, *args: Any, **kwargs: Any) -> Any:
        return self._draw(name, args, kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Draw as ``numpy.random.Generator.{name}``, on the record."
    return method


_SIGNATURES = {name: inspect.signature(getattr(Generator, name)) for name in TREATMENTS}
for _name in TREATMENTS:
    setattr(Recorder, _name, _recorded(_name))


_OWN: dict[CodeType, bool] = {}


def is_own(code: CodeType) -> bool:
    """Return whether code is the mechanism's own, and not in a library that draws for it."""
    known = _OWN.get(code)
    if known is None:
        known = _OWN[code] = is_own_file(code.co_filename)
    return known


def is_own_file(file: str) -> bool:
    """Return whether a file holds code of the user, or of a package that is not a known library."""
    standard = file.startswith(_STANDARD) and not any(word in file for word in _SITE_PACKAGES)
    return not (standard or file.startswith(("<frozen", *_LIBRARIES)))


def _lines(frame: FrameType | None) -> tuple[Line, ...]:
    """Return the lines of the mechanism that led to this call, with the innermost line first.

    The last line is the line where the mechanism was called, or where a function calls itself.
    Without this rule, every depth of a recursion would be a separate site. If the mechanism is
    itself a function of a library, only the line that made the draw is returned.
    """
    lines: list[Line] = []
    codes: set[CodeType] = set()
    drew = frame
    while frame is not None and frame.f_code not in (CALLED_BY, *codes):
        if is_own(frame.f_code):
            codes.add(frame.f_code)
            lines.append(_line(frame))
        frame = frame.f_back
    return tuple(lines) or ((_line(drew),) if drew is not None else ())


def _line(frame: FrameType) -> Line:
    return frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno


def run(
    mechanism: Callable[..., Any],
    data: Any,
    size: int,
    rng: Generator,
    *plans: Plan,
    calls: float = math.inf,
) -> tuple[Any, Log]:
    """Call a mechanism with a recorder, and return the draws and the record.

    `calls` is the expected number of calls of `rng`. The function raises an error after a hundred
    times this number of calls. Without this limit, a loop that waits for noise would never end.
    """
    recorder = Recorder(rng, *plans)
    recorder.log.most = _LEAST_END + 100 * calls
    with np.errstate(all="ignore"):  # a mechanism without its noise may divide by zero
        return mechanism(data, size, rng=recorder), recorder.log


CALLED_BY = run.__code__
_LEAST_END = 1000
