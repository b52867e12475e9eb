"""The careful way in which the engine calls a mechanism.

Soundness rests on draws that are independent, made by the generator that was handed in, from data
that stays as it was. :class:`Sampler` checks what can be checked before the first draw that counts.
"""

from __future__ import annotations

import copy
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import digest, handed
from dpaudit.errors import MechanismError, MechanismTimeout, SlowAuditWarning, place
from dpaudit.mechanisms.independence import is_constant, same_draws
from dpaudit.mechanisms.kept import Kept
from dpaudit.mechanisms.outcomes import (
    Kinds,
    LateFailure,
    Unbound,
    as_array,
    as_made,
    as_rows,
    failures_in,
    has_declared_keys,
    has_other_keys,
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

# --- watches JAX compile, to say so where a mechanism is compiled again at every call ----------


_EVENT = "backend_compile"
_MANY = 12
"""Calls that compiled, from which it is said: fewer are the few sizes that there are."""


class _Counter:
    """How often JAX compiled in this process, and for how many seconds."""

    def __init__(self) -> None:
        self.times, self.seconds = 0, 0.0
        self.listens = False

    def listen(self) -> None:
        """Begin to count, once JAX is there."""
        if self.listens or "jax" not in sys.modules:
            return
        monitoring = getattr(sys.modules["jax"], "monitoring", None)
        register = getattr(monitoring, "register_event_duration_secs_listener", None)
        if register is not None:
            register(self._note)
            self.listens = True

    def _note(self, event: str, duration: float, **more: Any) -> None:
        if _EVENT in event:
            self.times += 1
            self.seconds += duration


_COUNTER = _Counter()


class Compilations:
    """Compilations during the calls of one mechanism."""

    def __init__(self) -> None:
        self.calls = self.compiled = 0
        self.seconds = 0.0
        self._said = False

    def begin(self) -> tuple[int, float]:
        """Return what there was before a call."""
        _COUNTER.listen()
        return _COUNTER.times, _COUNTER.seconds

    def end(self, name: str, before: tuple[int, float]) -> None:
        """Count a call; warn once where most of many compiled."""
        times, seconds = before
        self.calls += 1
        self.compiled += _COUNTER.times > times
        self.seconds += _COUNTER.seconds - seconds
        if not self._said and self.compiled >= max(_MANY, self.calls / 2):
            self._said = True
            warnings.warn(
                f"{name} was compiled anew in {self.compiled} of {self.calls} calls, which took "
                f"{self.seconds:.1f} s: what it compiles depends on the size of a call. "
                'one_draw(f, randomness="jax", vmap=True) draws by few sizes, each compiled once',
                SlowAuditWarning,
                stacklevel=2,
            )


# --- the contract of a mechanism, checked on a few small calls before the first draw that counts


Array = NDArray[Any]

PROBE_SIZE = 64
"""Draws of each call that checks the contract."""

CALLS = 64
"""Calls, at least, that the draws of one side are spread over, so that one call's luck is not
taken for the mechanism's distribution."""

SLOW = 0.5
"""Seconds for one draw from which a mechanism is probed by two draws a side, and no more."""

_PROBES = 10  # calls of PROBE_SIZE draws on both sides
_PROBE_SHARE = 0.1  # of max_seconds, if they are known, that those may take

_UNSTEADY = (
    "ignores rng: two calls with equal generators gave different draws. Draw from rng only, or "
    "mark the function with dpaudit.mechanisms.unseeded"
)


class Caller(Protocol):
    """What calls a mechanism and counts the seconds: a sampler."""

    mechanism: Any
    name: str
    watch: Watch
    seconds: float
    fastest: float
    """Seconds of the fastest call so far."""
    saw_reals: bool
    has_warned: bool

    def call(
        self,
        data: Any,
        size: int,
        *labels: str | int,
        side: str = "left",
        is_copy: bool = False,
        again: bool = False,
    ) -> Array:
        """Return the draws of one call."""


def check_contract(sampler: Caller, data: Any, side: str) -> None:
    """Check the contract on a few small calls; raise :class:`MechanismError` if it is broken.

    Refused: draws that do not follow the generator (replay would be impossible), draws that
    repeat whatever the generator (chunks would be copies), and noise that is shared by the
    draws of one call (they would not be independent).
    """
    given = handed(data)
    before = digest(given)
    if sampler.watch.total > 0:
        alone = _first_draw(sampler, given, side)
        if alone is not None and _is_dear(sampler) and digest(given) == before:
            _check_slow(sampler, data, alone, side)
            return
        sampler.fastest = math.inf
    calls = [sampler.call(given, PROBE_SIZE, "probe", 0, side=side, is_copy=True)]
    if digest(given) != before:
        raise MechanismError(
            f"{sampler.name} changes its input: the data are not the same after the call; "
            "a mechanism must leave them alone, and draw from a copy"
        )
    calls += [sampler.call(data, PROBE_SIZE, "probe", seed, side=side) for seed in (0, 1, 2, 3)]
    _warn_of_slowness(sampler, data, side)
    first, again, *others = calls
    if not is_seeded(sampler.mechanism):
        others = [again, *others]
    elif not same_draws(first, again):
        raise MechanismError(f"{sampler.name} {_UNSTEADY}")
    if all(same_draws(first, other) for other in others):
        if not is_constant(first):
            raise MechanismError(
                f"{sampler.name} ignores rng: four calls with different generators gave the same "
                f"{PROBE_SIZE} draws; draw from rng only"
            )
    elif all(is_constant(call) for call in calls):
        raise MechanismError(
            f"{sampler.name} shares its noise: all {PROBE_SIZE} draws of one call are equal, but "
            "calls differ. Draw noise of shape [size, ...], so that draws are independent"
        )


def _first_draw(sampler: Caller, given: Any, side: str) -> Array | None:
    """Return one draw, which shows what draws cost before many are made; None where that fails.

    What is wrong shows again in the call of many draws, and is told of that.
    """
    try:
        return sampler.call(given, 1, "probe", "alone", side=side, is_copy=True)
    except (MechanismTimeout, LateFailure):
        raise
    except MechanismError:
        return None


def _is_dear(sampler: Caller) -> bool:
    """Whether the only draw so far says that the whole probe would take too long."""
    whole = sampler.fastest * _PROBES * PROBE_SIZE
    bound = sampler.watch.max_seconds
    return sampler.fastest >= SLOW or (bound is not None and whole > _PROBE_SHARE * bound)


def _check_slow(sampler: Caller, data: Any, alone: Array, side: str) -> None:
    """Check of a mechanism that takes seconds for a draw only that its draws follow `rng`.

    That no noise is shared, and nothing repeats, is left to the check of independence.
    """
    again = sampler.call(data, 1, "probe", "alone", side=side, again=True)
    _warn_of_slowness(sampler, data, side, size=1)
    if is_seeded(sampler.mechanism) and not same_draws(alone, again):
        raise MechanismError(f"{sampler.name} {_UNSTEADY}")


def _warn_of_slowness(sampler: Caller, data: Any, side: str, size: int = PROBE_SIZE) -> None:
    """Say so at once where the draws that are planned would take more than three minutes.

    The calls of the probe were timed. Where they alone look slow, one larger call tells how
    much of the time each draw takes, and how much each call; where one draw does, that is all.
    """
    if sampler.has_warned or sampler.watch.total == 0 or sampler.watch.is_warned:
        return
    if sampler.watch.max_seconds is not None:  # whoever bounds the time knows
        return
    each = sampler.fastest  # the first call may have had to set something up
    if each / size * sampler.watch.total < LONG:
        return
    sampler.has_warned = sampler.watch.is_warned = True  # of the mechanism, not of its mutants
    per_draw, per_call = each, 0.0
    if size > 1:
        spent = sampler.seconds
        saw_reals = sampler.saw_reals  # nothing of a result may depend on the clock
        sampler.call(data, 4 * size, "timing", side=side)
        sampler.saw_reals = saw_reals
        per_draw = max((sampler.seconds - spent - each) / (3 * size), 0.0)
        per_call = max(each - per_draw * size, 0.0)
    seconds = per_draw * sampler.watch.total + per_call * 2 * CALLS
    if seconds > LONG:
        words = slow_words(sampler.name, each, size, sampler.watch.total, seconds)
        warnings.warn(words, SlowAuditWarning, stacklevel=2)


# --- chunks of a sampler, drawn by workers -----------------------------------------------------


def can_travel(sampler: Any, workers: Workers) -> bool:
    """Whether workers can have the mechanism; a mutant that they cannot have is drawn here."""
    try:
        workers.ship(sampler.mechanism, sampler.name)
    except MechanismError:
        if sampler._labels[-1:] == ("mechanism",):
            raise
        return False
    return True


def draw_elsewhere(
    sampler: Any,
    workers: Workers,
    data: Any,
    draws: int,
    labels: tuple[str, str],
    starts: range,
    function: Callable[[Array, int], Any],
    draw: Callable[..., Chunk],
) -> Iterator[Any]:
    """Have workers draw the chunks; what a chunk holds does not depend on who draws it.

    Parameters
    ----------
    sampler : Sampler
        Whose chunks.
    workers : Workers
        Who draws.
    data : object
        A dataset of a pair.
    draws : int
        In all.
    labels : (str, str)
        Role and side.
    starts : range
        Where each chunk begins.
    function : callable
        Applied to each chunk and the place of its first draw.
    draw : callable
        What draws a chunk on a worker.
    """
    shipped = (
        workers.ship(sampler.mechanism, sampler.name),
        workers.ship(data, f"the data of {sampler.name}"),
        workers.ship(function, "what is counted"),
    )
    known = Known(
        sampler._seed,
        sampler._labels,
        sampler._finite,
        copy.deepcopy(sampler._kinds),
        sampler.watch.call_limit,
        sampler.kept,
    )
    tasks = (
        (known, min(starts.step, draws - start), (*labels, index), start)
        for index, start in enumerate(starts)
    )
    limits = {"deadline": sampler.watch.deadline, "call_limit": sampler.watch.call_limit}
    for chunk in workers.map(draw, shipped, tasks, **limits):
        sampler.seconds += chunk.seconds
        sampler.saw_reals |= chunk.saw_reals
        sampler.has_other_keys |= chunk.has_other_keys
        sampler._kinds.note(chunk.kinds)
        for side, names in chunk.raised.items():
            sampler.raised.setdefault(side, Counter()).update(names)
        if chunk.changes:
            counts_changes(sampler.mechanism).changed += chunk.changes
        sampler.watch.note(chunk.size)
        yield chunk.value


class Known(NamedTuple):
    """What a worker must know of a sampler to draw one of its chunks."""

    seed: int
    labels: tuple[str, ...]
    finite: bool
    kinds: Kinds
    call_limit: float | None
    kept: Kept | None


class Chunk(NamedTuple):
    """What a worker made of a chunk, and what its sampler noted about the draws.

    The controlling process needs all that a sampler keeps from call to call: a result must not
    depend on who drew.
    """

    value: Any
    size: int
    seconds: float
    saw_reals: bool
    has_other_keys: bool
    kinds: Kinds
    raised: dict[str, Counter[str]]
    changes: int


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
