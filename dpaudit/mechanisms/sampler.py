"""The careful way in which the engine calls a mechanism.

Soundness rests on draws that are independent, made by the generator that was handed in, from data
that stays as it was. :class:`Sampler` checks what can be checked before the first draw that counts.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import digest, handed
from dpaudit.errors import MechanismError, MechanismTimeout, place
from dpaudit.mechanisms.compiling import Compilations
from dpaudit.mechanisms.contract import CALLS, check_contract
from dpaudit.mechanisms.elsewhere import Chunk, Known, can_travel, draw_elsewhere
from dpaudit.mechanisms.hints import hint, needs_care, no_array, takes_another
from dpaudit.mechanisms.kept import Kept
from dpaudit.mechanisms.kinds import Kinds
from dpaudit.mechanisms.outcomes import (
    LateFailure,
    as_array,
    failures_in,
    has_declared_keys,
    has_other_keys,
    of_columns,
)
from dpaudit.mechanisms.protocols import counts_changes, mechanism_name
from dpaudit.mechanisms.rows import Unbound, as_made, as_rows, joined
from dpaudit.mechanisms.streams import generator
from dpaudit.mechanisms.watch import TIME_IS_OVER, Watch
from dpaudit.mechanisms.workers import Workers

Array = NDArray[Any]

_DRAWN_AT_ONCE = 64  # to explore

_CERTIFYING = "certify", "batch"
"""How the roles of draws begin that certify."""

_CHUNK_CELLS = 2**20
_CHUNK_DRAWS = 2**18


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
    workers : Workers, optional
        Who draws where there is more than one chunk to draw; this process by default.
    kept : Kept, optional
        Where calls are kept, so that none is made twice.
    """

    def __init__(
        self,
        mechanism: Any,
        *,
        seed: int,
        labels: tuple[str, ...],
        watch: Watch | None = None,
        finite: bool = True,
        workers: Workers | None = None,
        kept: Kept | None = None,
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
        self.workers, self.kept = workers, kept
        self.raised: dict[str, Counter[str]] = {}
        """Exceptions that were outcomes on the pair at hand: of each side how many of each type."""
        self.has_other_keys = False
        """Whether draws held keys beside those that were declared."""
        self._has_declared_keys = False
        self._finite = finite
        self._seed, self._labels = seed, labels
        self._compilations = Compilations()
        self._kinds = Kinds(self.name, finite=finite)
        self.has_warned, self.fastest = False, math.inf
        self.certifies: bool | None = None
        """Whether draws certify at this stage of an audit, or explore; None where either may."""

    def begin(self, left: Any, right: Any) -> None:
        """Turn to a pair: check the contract on both sides, which must give draws of one kind."""
        self.turn()
        self._kinds.is_probing = True
        try:
            self._probe(left, "left")
            self._probe(right, "right")
        finally:
            self._kinds.is_probing = False
        if self.has_other_keys and not self._has_declared_keys:
            raise MechanismError(
                f"keys must name keys of the draws, but {self.name} returned none of them in any "
                "draw, and others instead. The keys of a frame are the labels of its rows, or "
                "(row, column) pairs where it has several columns"
            )

    def _probe(self, data: Any, side: str) -> None:
        check_contract(self, data, side)

    @property
    def draws_have_keys(self) -> bool:
        """Whether draws are dicts, Series or frames."""
        return self._kinds.has_fields

    @property
    def draws_are_bound(self) -> bool:
        """Whether draws have one shape on purpose, and not because lists happen to."""
        return self._kinds.is_bound

    def turn(self) -> None:
        """Turn to another pair that was checked before; its draws may have another shape."""
        self._kinds.turn()
        self.raised = {}

    @property
    def width(self) -> int:
        """Cells of one draw; known once the mechanism was called."""
        return self._kinds.width

    def chunks(
        self, data: Any, draws: int, role: str, side: str, *, calls: int = CALLS
    ) -> Iterator[Array]:
        """Yield `draws` draws in `calls` chunks or more, each from a generator of its own.

        The chunks depend on the root seed, the labels, the role and the side, and on nothing else.
        Their sizes are settled here, before the first is drawn: two sides that are asked for
        together have chunks of equal sizes, however wide their outputs turn out to be.
        """
        return self.mapped(data, draws, role, side, _as_they_are, calls=calls)

    def mapped(
        self,
        data: Any,
        draws: int,
        role: str,
        side: str,
        function: Callable[[Array, int], Any],
        *,
        calls: int = CALLS,
    ) -> Iterator[Any]:
        """Yield what a function makes of each of :meth:`chunks` and the place of its first draw.

        Where there are workers, they apply it, so that outputs need not travel.
        """
        if self.certifies is not None and self.certifies != role.startswith(_CERTIFYING):
            stage = "certify" if self.certifies else "explore"
            raise AssertionError(f"draws of the role {role!r} were asked for to {stage}")
        return self._chunks(data, draws, role, side, self._step(draws, calls), function)

    def _step(self, draws: int, calls: int) -> int:
        """Draws of each chunk but the last."""
        bounded = max(min(_CHUNK_CELLS // self.width, _CHUNK_DRAWS), 256)
        return max(min(bounded, math.ceil(draws / calls)), 1)

    def _chunks(
        self,
        data: Any,
        draws: int,
        role: str,
        side: str,
        step: int,
        function: Callable[[Array, int], Any],
    ) -> Iterator[Any]:
        starts = range(0, draws, step)
        if self.workers is not None and len(starts) > 1 and can_travel(self, self.workers):
            labels = role, side
            yield from draw_elsewhere(
                self, self.workers, data, draws, labels, starts, function, draw_chunk
            )
            return
        for index, start in enumerate(starts):
            if self.watch.is_spent() and self._labels[-1:] != ("mechanism",):
                raise MechanismError(f"{self.name} {TIME_IS_OVER}")
            size = min(step, draws - start)
            outputs = self.call(data, size, role, side, index, side=side)
            self.watch.note(size)
            yield function(outputs, start)

    def draw(self, data: Any, draws: int, role: str, side: str) -> Array:
        """Return all chunks as one array: to explore, so that few draws take few calls."""
        calls = min(CALLS, max(draws // _DRAWN_AT_ONCE, 1))
        return joined(list(self.chunks(data, draws, role, side, calls=calls)))

    def call(
        self,
        data: Any,
        size: int,
        *labels: str | int,
        side: str = "left",
        is_copy: bool = False,
        again: bool = False,
    ) -> Array:
        """Return `size` draws of one call, made by the generator that the labels name, checked."""
        key: tuple[Any, ...] = ()
        if self.kept is not None:
            key = (self._seed, self._labels, labels, size, digest(data), again)
            if (known := self.kept.get(key)) is not None:
                return self._timed(known[1], self._checked(as_made(known[0]), size, side))
        rng = generator(self._seed, *self._labels, *labels)
        given = data if is_copy else handed(data)  # what is done to it, no other call sees
        compiled = self._compilations.begin()
        start = time.perf_counter()
        try:
            with self.watch.call(self.name):
                outputs = self.mechanism(given, size, rng=rng)
        except MechanismTimeout:
            raise
        except MechanismError as error:  # of what wraps it: it says enough
            if isinstance(error, LateFailure):
                raise
            named = "" if self.name in str(error) else f"{self.name}: "
            raise MechanismError(f"{named}{error}") from error
        except BaseException as error:
            if self.watch.interrupted:
                raise
            words = f"{type(error).__name__}: {error}"
            if "read-only" in str(error) or "WRITEABLE" in str(error):
                raise MechanismError(
                    f"{self.name} changes its input, which is read-only ({words}); work on a copy"
                ) from error
            where = "/".join(map(str, (*self._labels, *labels)))
            raise MechanismError(
                f"{self.name} raised {words} ({place(error)}size={size}, seed={self._seed}, "
                f"stream {where}){hint(self.mechanism)}"
            ) from error
        took = time.perf_counter() - start
        self._compilations.end(self.name, compiled)
        checked = self._timed(took, self._checked(outputs, size, side))
        if self.kept is not None:
            self.kept.put(key, checked, took)
        return checked

    def _timed(self, took: float, outputs: Array) -> Array:
        """Count the seconds of a call."""
        self.seconds += took
        self.fastest = min(self.fastest, took)
        return outputs

    def _checked(self, outputs: Any, size: int, side: str) -> Array:
        if isinstance(outputs, np.ma.MaskedArray):
            raise MechanismError(
                f"{self.name} returned a masked array, whose hidden values would be looked at; "
                'return a plain array, with NaN for "no answer"'
            )
        columns = of_columns(outputs, size)
        outputs = outputs if columns is None else columns
        if (instead := no_array(outputs)) is not None:
            raise MechanismError(
                f"{self.name} must return an array whose first axis has length size={size}, got "
                f"{instead}{takes_another(self.mechanism)}"
            )
        array = self._array(outputs)
        if array.ndim == 0 or array.shape[0] != size:
            raise MechanismError(
                f"{self.name} must return an array whose first axis has length size={size}, "
                f"got shape {array.shape}"
            )
        if array.size == 0 and size > 0 and isinstance(outputs, np.ndarray):
            raise MechanismError(f"{self.name} returned draws without content: shape {array.shape}")
        bound = isinstance(outputs, np.ndarray) and not isinstance(outputs, Unbound)
        array = self._kinds.admit(array, side, bound=bound and array.dtype != object)
        self.has_other_keys |= has_other_keys(array)
        self._has_declared_keys |= has_declared_keys(array)
        if names := failures_in(array):
            self.raised.setdefault(side, Counter()).update(names)
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
        if isinstance(outputs, list | tuple) and any(map(needs_care, outputs)):
            try:
                return as_array(outputs)
            except MechanismError as error:
                raise MechanismError(f"{self.name}: {error}") from error
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


def draw_chunk(
    mechanism: Any,
    data: Any,
    function: Callable[[Array, int], Any],
    known: Known,
    size: int,
    labels: tuple[str, str, int],
    start: int,
) -> Chunk:
    """Draw one chunk of a sampler on a worker."""
    watch = Watch(call_limit=known.call_limit)
    watch.may_show = 0
    sampler = Sampler(
        mechanism,
        seed=known.seed,
        labels=known.labels,
        watch=watch,
        finite=known.finite,
        kept=known.kept,
    )
    sampler._kinds = known.kinds
    mutant = counts_changes(mechanism)
    before = getattr(mutant, "changed", 0)
    outputs = sampler.call(data, size, *labels, side=labels[1])
    return Chunk(
        function(outputs, start),
        size,
        sampler.seconds,
        sampler.saw_reals,
        sampler.has_other_keys,
        sampler._kinds,
        sampler.raised,
        getattr(mutant, "changed", 0) - before,
    )


def _as_they_are(outputs: Array, start: int) -> Array:
    return outputs
