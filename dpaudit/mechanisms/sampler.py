"""Checked and timed calls of a mechanism.

Soundness requires independent draws. The draws must be made by the passed generator, from data that
do not change. The class :class:`Sampler` checks these conditions as far as possible. All checks are
made before the first draw that counts.
"""

from __future__ import annotations

import copy
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import digest, handed
from dpaudit.errors import MechanismError, MechanismTimeout, SlowAuditWarning, place
from dpaudit.mechanisms.independence import is_constant, same_draws
from dpaudit.mechanisms.kept import Kept
from dpaudit.mechanisms.outcomes import (
    OTHER_KEYS,
    Kinds,
    LateFailure,
    Outcomes,
    Unbound,
    as_array,
    as_made,
    as_rows,
    failures_in,
    joined,
    of_columns,
)
from dpaudit.mechanisms.protocols import (
    counts_changes,
    generator,
    hint,
    is_seeded,
    mechanism_name,
    needs_care,
    no_array,
    slow_words,
    takes_another,
)
from dpaudit.mechanisms.watch import LONG, TIME_IS_OVER, Watch
from dpaudit.mechanisms.workers import Workers

# --- checks of a mechanism's contract, on a few small calls before the first draw that counts ---


Array = NDArray[Any]

PROBE_SIZE = 64
"""Draws of each call that checks the contract."""

CALLS = 64
"""Least number of calls that the draws of one side are spread over, so that the luck of one call
is not taken for the mechanism's distribution."""

SLOW = 0.5
"""Seconds for one draw from which on a mechanism is checked by only two draws on each side."""

_PROBES = 10  # calls of PROBE_SIZE draws on both sides
_PROBE_SHARE = 0.1  # largest share of max_seconds, if given, that these calls may take

_UNSTEADY = (
    "ignores rng: two calls with equal generators gave different draws. Draw from rng only, or "
    "mark the function with dpaudit.mechanisms.unseeded"
)


# --- draws in chunks, each from a generator of its own -----------------------------------------


_DRAWN_AT_ONCE = 64  # draws of one call when exploring

_CERTIFYING = "certify", "batch"
"""Prefixes of the roles of draws that certify."""

_CHUNK_CELLS = 2**20
_CHUNK_DRAWS = 2**18


class Sampler:
    """Draws from one mechanism for one audit.

    The draws are made in chunks, checked and timed.

    Parameters
    ----------
    mechanism : callable
        See :class:`SampledMechanism`.
    seed : int
        Root seed.
    labels : tuple of str
        Audit id and role. The role is "mechanism" or "mutant".
    watch : Watch, optional
        Object that records every call and limits its time.
    finite : bool, optional
        Whether the sampler refuses inf. False for centres of additive noise. Centres must have one
        shape on both sides. The caller then refuses inf with its own message.
    workers : Workers, optional
        Workers that draw if there is more than one chunk. By default, this process draws.
    kept : Kept, optional
        Store of calls, so that no call is made twice.
    is_trial : bool, optional
        Whether the contract was checked on another pair, so that one call on each side suffices.
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
        is_trial: bool = False,
    ) -> None:
        words = "a function f(data, size, *, rng)"
        self.mechanism: Any = _validate.function(words, mechanism=mechanism)
        self.name = mechanism_name(mechanism)
        self.seconds = 0.0
        self.saw_reals = False
        """Whether any draw so far was a floating-point number that is not an integer."""
        self.watch = Watch() if watch is None else watch
        self.workers, self.kept = workers, kept
        self.raised: dict[str, Counter[str]] = {}
        """Exceptions that were outcomes on the current pair: counts by side and type."""
        self.has_other_keys = False
        """Whether draws held keys that were not declared."""
        self._has_declared_keys = False
        self._finite, self._is_trial = finite, is_trial
        self._seed, self._labels = seed, labels
        self.kinds = Kinds(self.name, finite=finite)
        """Kind of the draws, and number of cells of each."""
        self.fastest = math.inf
        """Seconds of the fastest call so far; the first call may include some setup."""
        self.certifies: bool | None = None
        """Whether draws certify at this stage of an audit, or explore; None if either may occur."""

    def begin(self, left: Any, right: Any) -> None:
        """Switch to a pair and check the contract on both sides.

        The draws of both sides must have one kind.
        """
        self.turn()
        self.kinds.is_probing = True
        try:
            self._probe(left, "left")
            self._probe(right, "right")
        finally:
            self.kinds.is_probing = False
        if self.has_other_keys and not self._has_declared_keys:
            raise MechanismError(
                f"keys must be keys that the draws have, got draws of {self.name} that have "
                "only other keys. Use the labels of the rows as the keys of a frame, or "
                "(row, column) pairs if the frame has several columns"
            )

    def _probe(self, data: Any, side: str) -> None:
        """Check the contract on a few small calls; raise :class:`MechanismError` for violations.

        Draws that do not follow the generator are refused, because replay would be impossible. A
        mechanism is refused if its draws are equal for all generators, because all chunks would be
        copies. A mechanism is refused if all draws of one call share noise, because the draws would
        be dependent.
        """
        given = handed(data)
        before = digest(given)
        if self.watch.total > 0 and self._is_checked_alone(data, given, side):
            return
        one, self.fastest = self.fastest, math.inf
        calls = [self.call(given, PROBE_SIZE, "probe", 0, side=side, is_copy=True)]
        if self._is_trial:
            return
        if digest(given) != before:
            raise MechanismError(
                f"{self.name} must not change its input, got data that changed during the "
                "call. Work on a copy of the data"
            )
        calls += [self.call(data, PROBE_SIZE, "probe", seed, side=side) for seed in (0, 1, 2, 3)]
        per_draw = max(self.fastest - one, 0.0) / PROBE_SIZE
        self._warn_of_slowness(PROBE_SIZE, per_draw, self.fastest - per_draw * PROBE_SIZE)
        first, again, *others = calls
        if not is_seeded(self.mechanism):
            others = [again, *others]
        elif not same_draws(first, again):
            raise MechanismError(f"{self.name} {_UNSTEADY}")
        if all(same_draws(first, other) for other in others):
            if not is_constant(first):
                raise MechanismError(
                    f"{self.name} ignores rng: four calls with different generators gave the same "
                    f"{PROBE_SIZE} draws. Draw only from rng"
                )
        elif all(is_constant(call) for call in calls):
            raise MechanismError(
                f"{self.name} shares its noise: all {PROBE_SIZE} draws of one "
                "call are equal, but "
                "calls differ. Draw noise of shape [size, ...], so that draws are independent"
            )

    def _is_checked_alone(self, data: Any, given: Any, side: str) -> bool:
        """Check a slow mechanism by two draws, if the full check would take too long.

        The later check of independence detects shared noise and repeated calls.
        """
        before = digest(given)
        try:
            alone = self.call(given, 1, "probe", "alone", side=side, is_copy=True)
        except (MechanismTimeout, LateFailure):
            raise
        except MechanismError:  # the call of many draws raises the error again and reports it
            return False
        whole, bound = self.fastest * _PROBES * PROBE_SIZE, self.watch.max_seconds
        is_slow = self.fastest >= SLOW or (bound is not None and whole > _PROBE_SHARE * bound)
        if not is_slow or digest(given) != before:
            return False
        again = self.call(data, 1, "probe", "alone", side=side, again=True)
        self._warn_of_slowness(1, self.fastest, 0.0)
        if is_seeded(self.mechanism) and not same_draws(alone, again):
            raise MechanismError(f"{self.name} {_UNSTEADY}")
        return True

    def _warn_of_slowness(self, size: int, per_draw: float, per_call: float) -> None:
        """Warn at once if the planned draws would take more than three minutes."""
        watch = self.watch
        seconds = per_draw * watch.total + per_call * 2 * CALLS
        # No warning is needed if the user limits the time, or if a mutant follows its mechanism.
        if watch.is_warned or watch.max_seconds is not None or not watch.total or seconds <= LONG:
            return
        watch.is_warned = True
        words = slow_words(self.name, self.fastest, size, watch.total, seconds)
        warnings.warn(words, SlowAuditWarning, stacklevel=2)

    def turn(self) -> None:
        """Switch to another pair that was checked before.

        The draws on that pair may have another shape.
        """
        self.kinds.turn()
        self.raised = {}

    def chunks(
        self, data: Any, draws: int, role: str, side: str, *, calls: int = CALLS
    ) -> Iterator[Array]:
        """Yield `draws` draws in at least `calls` chunks.

        Each chunk has its own generator. The chunks depend only on the root seed, the labels, the
        role and the side. The sizes of the chunks are fixed here, before the first chunk is drawn.
        If two sides are requested together, their chunks have equal sizes, even if their outputs
        have different widths.
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
        """Yield a function's value on each chunk, and the index of the chunk's first draw.

        If there are workers, they apply the function, so that no outputs are transferred.
        """
        if self.certifies is not None and self.certifies != role.startswith(_CERTIFYING):
            stage = "certify" if self.certifies else "explore"
            raise AssertionError(
                f"draws of the role {role!r} must not be made at this stage, which is to {stage}"
            )
        bounded = max(min(_CHUNK_CELLS // self.kinds.width, _CHUNK_DRAWS), 256)
        step = max(min(bounded, math.ceil(draws / calls)), 1)
        return self._chunks(data, draws, role, side, step, function)

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
        if self.workers is not None and len(starts) > 1 and self._can_travel(self.workers):
            yield from self._drawn_elsewhere(
                self.workers, data, draws, role, side, starts, function
            )
            return
        for index, start in enumerate(starts):
            if self.watch.is_spent() and self._labels[-1:] != ("mechanism",):
                raise MechanismError(f"{self.name} {TIME_IS_OVER}")
            size = min(step, draws - start)
            outputs = self.call(data, size, role, side, index, side=side)
            self.watch.note(size)
            yield function(outputs, start)

    def _can_travel(self, workers: Workers) -> bool:
        """Return whether workers can receive the mechanism.

        If not, this process draws.
        """
        try:
            workers.ship(self.mechanism, self.name)
        except MechanismError:
            if self._labels[-1:] == ("mechanism",):
                raise
            return False
        return True

    def _drawn_elsewhere(
        self,
        workers: Workers,
        data: Any,
        draws: int,
        role: str,
        side: str,
        starts: range,
        function: Callable[[Array, int], Any],
    ) -> Iterator[Any]:
        """Let workers draw the chunks.

        The content of a chunk does not depend on its worker.
        """
        shipped = (
            workers.ship(self.mechanism, self.name),
            workers.ship(data, f"the data of {self.name}"),
            workers.ship(function, "what is counted"),
        )
        limits = {"deadline": self.watch.deadline, "call_limit": self.watch.call_limit}
        known = copy.copy(self)
        known.mechanism = known.workers = None
        known.kinds = copy.deepcopy(self.kinds)
        known.watch = Watch(call_limit=self.watch.call_limit)
        known.watch.may_show = 0
        tasks = (
            (known, min(starts.step, draws - start), (role, side, index), start)
            for index, start in enumerate(starts)
        )
        for value, noted, changes in workers.map(draw_chunk, shipped, tasks, **limits):
            self.seconds += noted.seconds
            self.saw_reals |= noted.saw_reals
            self.has_other_keys |= noted.has_other_keys
            self.kinds.note(noted.kinds)
            for where, names in noted.raised.items():
                self.raised.setdefault(where, Counter()).update(names)
            if changes:
                counts_changes(self.mechanism).changed += changes
            self.watch.in_calls += noted.watch.in_calls
            self.watch.note(noted.watch.done)
            yield value

    def draw(self, data: Any, draws: int, role: str, side: str) -> Array:
        """Return all chunks as one array, for exploration.

        A few draws need only a few calls.
        """
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
        """Return `size` checked draws of one call, whose generator the labels determine."""
        key: tuple[Any, ...] = (self._seed, self._labels, labels, size)
        known, kept = None, self.kept
        if kept is not None:
            content = digest(data)
            key += content, again
            kept = kept if content else None  # other data would have the same key
            known = None if kept is None else kept.get(key)
        if known is not None:
            outputs, took = as_made(known[0]), known[1]
        else:
            given = data if is_copy else handed(data)  # changes do not reach other calls
            start = time.perf_counter()
            outputs = self._called(given, size, labels)
            took = time.perf_counter() - start
        self.seconds += took
        self.watch.in_calls += took
        self.fastest = min(self.fastest, took)
        checked = self._checked(outputs, size, side)
        if kept is not None and known is None:
            kept.put(key, checked, took)
        return checked

    def _called(self, given: Any, size: int, labels: tuple[str | int, ...]) -> Any:
        """Return the mechanism's output; report an exception and where it was raised."""
        rng = generator(self._seed, *self._labels, *labels)
        try:
            with self.watch.call(self.name):
                return self.mechanism(given, size, rng=rng)
        except (MechanismTimeout, LateFailure):
            raise
        except MechanismError as error:  # a wrapper raised this error, with a sufficient message
            named = "" if self.name in str(error) else f"{self.name}: "
            raise MechanismError(f"{named}{error}") from error
        except BaseException as error:
            if self.watch.interrupted:
                raise
            words = f"{type(error).__name__}: {error}"
            if "read-only" in str(error) or "WRITEABLE" in str(error):
                raise MechanismError(
                    f"{self.name} must not change its input, which is read-only ({words}). Work "
                    "on a copy"
                ) from error
            where = "/".join(map(str, (*self._labels, *labels)))
            is_wrapped = isinstance(self.mechanism, Outcomes)
            called = self.mechanism.mechanism if is_wrapped else self.mechanism
            raise MechanismError(
                f"{self.name} raised {words} ({place(error)}size={size}, seed={self._seed}, "
                f"stream {where}){hint(called)}"
            ) from error

    def _checked(self, outputs: Any, size: int, side: str) -> Array:
        if isinstance(outputs, np.ma.MaskedArray):
            raise MechanismError(
                f"{self.name} returned a masked array, whose hidden values would be used. "
                'Return a plain array, with NaN for "no answer"'
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
                f"got shape {array.shape}. {_shaped(array.shape, size)}"
            )
        if array.size == 0 and size > 0 and isinstance(outputs, np.ndarray):
            raise MechanismError(
                f"{self.name} must return draws that are not empty, got shape {array.shape}"
            )
        bound = isinstance(outputs, np.ndarray) and not isinstance(outputs, Unbound)
        array = self.kinds.admit(array, side, bound=bound and array.dtype != object)
        fields = array.dtype.names or ()
        if OTHER_KEYS in fields:
            self.has_other_keys |= bool(array[OTHER_KEYS].any())
            self._has_declared_keys |= any(array[f].any() for f in fields if f.startswith("has "))
        if names := failures_in(array):
            self.raised.setdefault(side, Counter()).update(names)
        for field in fields or (None,):
            column = array if field is None else array[field]
            if column.dtype == object:
                self._check_values(np.concatenate([np.zeros(0), *map(np.ravel, column)]), column)
            elif column.dtype.kind == "f":
                self._check_values(column, column)
        return array

    def _array(self, outputs: Any) -> Array:
        """Return outputs as an array, or as rows if the shapes of the draws differ."""
        if isinstance(outputs, list | tuple) and any(map(needs_care, outputs)):
            try:
                return as_array(outputs)
            except MechanismError as error:
                raise MechanismError(f"{self.name}: {error}") from error
        try:
            array = np.array(outputs)  # copied, because the mechanism may use its buffer again
        except ValueError as error:
            rows = as_rows(outputs)
            if rows is None:
                raise MechanismError(
                    f"{self.name} must return an array [size, ...], got a ragged sequence ({error}"
                    "). If the lengths of rows differ, return only numbers"
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

    def _check_values(self, values: Array, draws: Array) -> None:
        """Record whether some values are not integers, and refuse infinite numbers."""
        if not self.saw_reals:
            known = values[np.isfinite(values)]
            self.saw_reals = bool((known != np.rint(known)).any())
        if self._finite and np.isinf(values).any():
            count = sum(bool(np.isinf(draw).any()) for draw in draws)
            raise MechanismError(
                f"{self.name} returned inf in {count} of {len(draws)} draws. Return finite "
                'numbers, and NaN for "no answer"'
            )


def draw_chunk(
    mechanism: Any,
    data: Any,
    function: Callable[[Array, int], Any],
    known: Sampler,
    size: int,
    labels: tuple[str, str, int],
    start: int,
) -> tuple[Any, Sampler, int]:
    """Draw one chunk on a worker.

    Return counts, the sampler, and the changes of a mutant. The controlling process needs
    everything that a sampler stores between calls, because a result must not depend on which worker
    drew.
    """
    sampler = copy.copy(known)
    sampler.mechanism, sampler.seconds, sampler.raised = mechanism, 0.0, {}
    sampler.watch = copy.copy(known.watch)
    mutant = counts_changes(mechanism)
    before = getattr(mutant, "changed", 0)
    outputs = sampler.call(data, size, *labels, side=labels[1])
    sampler.watch.done, sampler.mechanism = size, None
    return function(outputs, start), sampler, getattr(mutant, "changed", 0) - before


def _as_they_are(outputs: Array, start: int) -> Array:
    return outputs


def _shaped(shape: tuple[int, ...], size: int) -> str:
    """Return how to give outputs of a wrong shape the draws as their first axis."""
    if size in shape[1:]:
        return f"Put the draws on axis 0: numpy.moveaxis(output, {shape.index(size)}, 0)"
    wanted = ", ".join(map(str, (size, *shape)))
    return f"If this is one draw, add noise of shape (size, ...), here ({wanted})"
