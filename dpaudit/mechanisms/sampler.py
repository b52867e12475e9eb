"""The careful way in which the engine calls a mechanism.

Soundness rests on draws that are independent, made by the generator that was handed in, from data
that stays as it was. :class:`Sampler` checks what can be checked before the first draw that counts.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError, MechanismTimeout, SlowAuditWarning, place
from dpaudit.mechanisms.independence import is_constant, same_draws
from dpaudit.mechanisms.protocols import is_seeded, mechanism_name
from dpaudit.mechanisms.rows import as_rows, joined, kind_of, to_rows, words_of
from dpaudit.mechanisms.streams import generator
from dpaudit.mechanisms.watch import Watch

Array = NDArray[Any]

PROBE_SIZE = 64
"""Draws of each call that checks the contract."""

CALLS = 64
"""Calls, at least, that the draws of one side are spread over, so that one call's luck is not
taken for the mechanism's distribution."""

_DRAWN_AT_ONCE = 64  # to explore

LONG = 600.0
"""Seconds from which an audit is said to take long."""

_CHUNK_CELLS = 2**20
_CHUNK_DRAWS = 2**16


class Sampler:
    """Draws from one mechanism on one audit's behalf, in chunks, checked and timed.

    Parameters
    ----------
    mechanism : callable
        See :class:`SampledMechanism`.
    seed : int
        Root seed.
    labels : tuple of str
        Audit id and role ("mechanism" or "mutant").
    watch : Watch, optional
        Told of every call, and asked how long it may take.
    finite : bool, optional
        Whether inf is refused here. False for centres of additive noise, of which the caller does
        so in words of its own, and which must have one shape on both sides.
    """

    def __init__(
        self,
        mechanism: Any,
        *,
        seed: int,
        labels: tuple[str, ...],
        watch: Watch | None = None,
        finite: bool = True,
    ) -> None:
        if not callable(mechanism):
            raise TypeError(
                f"mechanism must be a function f(data, size, *, rng), got {mechanism!r}"
            )
        self.mechanism = mechanism
        self.name = mechanism_name(mechanism)
        self.seconds = 0.0
        self.saw_reals = False
        """Whether any draw so far was a floating-point number that is not whole."""
        self.watch = Watch() if watch is None else watch
        self._finite = finite
        self._seed, self._labels = seed, labels
        self._kind: str | None = None
        self._shapes: dict[str, tuple[int, ...] | None] = {}  # of each side; None for rows
        self._width = 1
        self._warned = False
        self._fastest = math.inf

    def begin(self, left: Array, right: Array) -> None:
        """Turn to a pair: check the contract on both sides, which must give draws of one kind."""
        self.turn()
        self._probe(left, "left")
        self._probe(right, "right")

    def turn(self) -> None:
        """Turn to another pair that was checked before; its draws may have another shape."""
        self._kind = None
        self._shapes = {}

    def _probe(self, data: Array, side: str) -> None:
        """Check the contract on a few small calls; raise :class:`MechanismError` if it is broken.

        Refused: draws that do not follow the generator (replay would be impossible), draws that
        repeat whatever the generator (chunks would be copies), and noise that is shared by the
        draws of one call (they would not be independent).
        """
        before = data.tobytes()
        calls = [self._call(data, PROBE_SIZE, "probe", seed, side=side) for seed in (0, 0, 1, 2, 3)]
        self._warn_of_slowness(data, side)
        if data.tobytes() != before:
            raise MechanismError(
                f"{self.name} changes its input: the data are not the same after the call; "
                "a mechanism must leave them alone"
            )
        first, again, *others = calls
        if not is_seeded(self.mechanism):
            others = [again, *others]
        elif not same_draws(first, again):
            raise MechanismError(
                f"{self.name} ignores rng: two calls with equal generators gave different draws. "
                "Draw from rng only, or mark the function with dpaudit.mechanisms.unseeded"
            )
        if all(same_draws(first, other) for other in others):
            if not is_constant(first):
                raise MechanismError(
                    f"{self.name} ignores rng: four calls with different generators gave the same "
                    f"{PROBE_SIZE} draws; draw from rng only"
                )
        elif all(is_constant(call) for call in calls):
            raise MechanismError(
                f"{self.name} shares its noise: all {PROBE_SIZE} draws of one call are equal, but "
                "calls differ. Draw noise of shape [size, ...], so that draws are independent"
            )

    def _warn_of_slowness(self, data: Array, side: str) -> None:
        """Say so at once where the draws that are planned would take more than ten minutes.

        The calls of the probe were timed. Where they alone look slow, one larger call tells how
        much of the time each draw takes, and how much each call.
        """
        if self._warned or self.watch.total == 0 or self.watch.is_warned:
            return
        each = self._fastest  # the first call may have had to set something up
        if each / PROBE_SIZE * self.watch.total < LONG:
            return
        self._warned = self.watch.is_warned = True  # of the mechanism, not of its mutants
        spent = self.seconds
        saw_reals = self.saw_reals  # nothing of a result may depend on the clock
        self._call(data, 4 * PROBE_SIZE, "timing", side=side)
        self.saw_reals = saw_reals
        per_draw = max((self.seconds - spent - each) / (3 * PROBE_SIZE), 0.0)
        per_call = max(each - per_draw * PROBE_SIZE, 0.0)
        seconds = per_draw * self.watch.total + per_call * 2 * CALLS
        if seconds > LONG:
            warnings.warn(
                f"{self.name} takes {each:.2g} s for {PROBE_SIZE} draws: this audit of "
                f"{self.watch.total:,} would take about {seconds / 60:.0f} minutes. A sequential "
                "audit (sequential=True, dpaudit run --sequential) stops as soon as evidence is "
                "in; draws= and timeout= bound it",
                SlowAuditWarning,
                stacklevel=2,
            )

    @property
    def width(self) -> int:
        """Cells of one draw; known once the mechanism was called."""
        return self._width

    def chunks(
        self, data: Array, draws: int, role: str, side: str, *, calls: int = CALLS
    ) -> Iterator[Array]:
        """Yield `draws` draws in `calls` chunks or more, each from a generator of its own.

        The chunks depend on the root seed, the labels, the role and the side, and on nothing else.
        Their sizes are settled here, before the first is drawn: two sides that are asked for
        together have chunks of equal sizes, however wide their outputs turn out to be.
        """
        bounded = max(min(_CHUNK_CELLS // self.width, _CHUNK_DRAWS), 256)
        step = max(min(bounded, math.ceil(draws / calls)), 1)
        return self._chunks(data, draws, role, side, step)

    def _chunks(self, data: Array, draws: int, role: str, side: str, step: int) -> Iterator[Array]:
        for index, start in enumerate(range(0, draws, step)):
            size = min(step, draws - start)
            outputs = self._call(data, size, role, side, index, side=side)
            self.watch.note(size)
            yield outputs

    def draw(self, data: Array, draws: int, role: str, side: str) -> Array:
        """Return all chunks as one array: to explore, so that few draws take few calls."""
        calls = min(CALLS, max(draws // _DRAWN_AT_ONCE, 1))
        return joined(list(self.chunks(data, draws, role, side, calls=calls)))

    def _call(self, data: Array, size: int, *labels: str | int, side: str = "left") -> Array:
        rng = generator(self._seed, *self._labels, *labels)
        start = time.perf_counter()
        try:
            with self.watch.limit(self.name):
                outputs = self.mechanism(data, size, rng=rng)
        except MechanismTimeout:
            raise
        except (Exception, SystemExit) as error:
            words = f"{type(error).__name__}: {error}"
            if "read-only" in str(error) or "WRITEABLE" in str(error):
                raise MechanismError(
                    f"{self.name} changes its input, which is read-only ({words}); work on a copy"
                ) from error
            where = "/".join(map(str, (*self._labels, *labels)))
            raise MechanismError(
                f"{self.name} raised {words} ({place(error)}size={size}, seed={self._seed}, "
                f"stream {where}){_hint(self.mechanism)}"
            ) from error
        finally:
            took = time.perf_counter() - start
            self.seconds += took
            self._fastest = min(self._fastest, took)
        return self._checked(outputs, size, side)

    def _checked(self, outputs: Any, size: int, side: str) -> Array:
        if isinstance(outputs, np.ma.MaskedArray):
            raise MechanismError(
                f"{self.name} returned a masked array, whose hidden values would be looked at; "
                'return a plain array, with NaN for "no answer"'
            )
        if (instead := _no_array(outputs)) is not None:
            raise MechanismError(
                f"{self.name} must return an array whose first axis has length size={size}, got "
                f"{instead}"
            )
        array = self._array(outputs)
        if array.ndim == 0 or array.shape[0] != size:
            raise MechanismError(
                f"{self.name} must return an array whose first axis has length size={size}, "
                f"got shape {array.shape}"
            )
        if array.size == 0 and size > 0 and isinstance(outputs, np.ndarray):
            raise MechanismError(f"{self.name} returned draws without content: shape {array.shape}")
        array = self._of_one_kind(array, side, bound=isinstance(outputs, np.ndarray))
        if array.dtype == object:
            whole = np.concatenate([np.zeros(0), *(row.ravel() for row in array)])
            rows = np.repeat(np.arange(size), [row.size for row in array])
            self._look_at(whole, rows, size)
        for name in array.dtype.names or (None,):
            column = array if name is None else array[name]
            if column.dtype.kind == "f":
                rows = np.repeat(np.arange(size), math.prod(column.shape[1:]))
                self._look_at(column.ravel(), rows, size)
        return array

    def _array(self, outputs: Any) -> Array:
        """Return outputs as an array, or as rows where draws have shapes of their own."""
        try:
            array = np.array(outputs)  # a copy: the mechanism may use its buffer again
        except ValueError as error:
            rows = as_rows(outputs)
            if rows is None:
                raise MechanismError(
                    f"{self.name} must return an array [size, ...], got a ragged sequence ({error}"
                    "); rows of different lengths must hold numbers"
                ) from None
            return rows
        if array.dtype == object and (rows := as_rows(outputs)) is not None:
            return rows
        kinds = {array.dtype[name].base.kind for name in array.dtype.names or ()}
        kinds = kinds or {array.dtype.kind}
        if not kinds <= set("biufUS"):
            raise MechanismError(
                f"{self.name} must return numbers, booleans, strings or records of them, "
                f"got dtype {array.dtype}" + (" (objects)" if "O" in kinds else "")
            )
        return array

    def _of_one_kind(self, array: Array, side: str, *, bound: bool) -> Array:
        """Hold draws against those before: one kind on both sides, and on each one shape, or rows.

        An array that is `bound` has one shape on purpose. Rows of a list may happen to have one.
        """
        kind = kind_of(array)
        shape = None if array.dtype == object else array.shape[1:]
        if self._kind is None:
            self._kind, self._width = kind, 1
        known = self._shapes.setdefault(side if self._finite else "", shape)
        ragged = kind == "number" and None in (known, shape) and self._finite
        if kind != self._kind or (known != shape and bound and not ragged):
            raise MechanismError(
                f"{self.name} must return draws of one shape and kind, got "
                f"{words_of(kind, shape, ' each')} on the {side} dataset after "
                f"{words_of(self._kind, known, ' each')}"
            )
        if known != shape:
            self._shapes[side] = None
            array = to_rows(array)
        fields = [array.dtype[name].shape for name in array.dtype.names or ()] or [()]
        cells = max((row.size for row in array), default=1) if array.dtype == object else 1
        cells *= math.prod(array.shape[1:]) * sum(map(math.prod, fields))
        self._width = max(self._width, cells, 1)
        return array

    def _look_at(self, values: Array, rows: NDArray[np.intp], size: int) -> None:
        """Note real numbers, and refuse infinite ones."""
        if not self.saw_reals:
            known = values[np.isfinite(values)]
            self.saw_reals = bool((known != np.rint(known)).any())
        if self._finite and np.isinf(values).any():
            count = len(np.unique(rows[np.isinf(values)]))
            raise MechanismError(
                f"{self.name} returned inf in {count} of {size} draws; allowed are finite "
                'numbers, and NaN for "no answer"'
            )


def _no_array(outputs: Any) -> str | None:
    """Say what was returned instead of an array, and what to do about it; None for an array."""
    if outputs is None:
        return "None: is there a return missing?"
    if inspect.iscoroutine(outputs):
        outputs.close()  # nobody will await it
        return "a coroutine: a mechanism must be an ordinary function, not async"
    if inspect.isgenerator(outputs):
        return "a generator: return np.array([...]) of all draws instead of yielding them"
    if isinstance(outputs, Mapping):
        return (
            f"a dict with the keys {', '.join(map(repr, list(outputs)[:5]))}: return its values "
            "side by side, as np.stack(list(answers.values()), axis=1), or as a structured array"
        )
    if hasattr(outputs, "columns"):
        return f"a {type(outputs).__name__}: return frame.to_numpy(), or a structured array"
    if not isinstance(outputs, np.ndarray | list | tuple) and np.ndim(outputs) == 0:
        return f"one value, {outputs!r}: draw noise of shape [size, ...], one draw for each row"
    return None


def _hint(mechanism: Any) -> str:
    """Say what else may have been meant by a function that takes the data and no more."""
    try:
        signature = inspect.signature(mechanism)
        signature.bind(None)
    except (TypeError, ValueError):  # takes more than the data, or tells nothing
        return ""
    try:
        signature.bind(None, 1, rng=None)
    except TypeError:
        return (
            "; a mechanism is f(data, size, *, rng), and a function of the data alone, before its "
            'noise, is audited with AdditiveNoise(f, "gaussian", scale=...)'
        )
    return ""
