"""The shapes of a mechanism, and the careful way in which the engine calls one.

A *sampled* mechanism is ``f(data, size, *, rng) -> array [size, ...]``: `size` independent draws
in one call. An *exact* mechanism has a method ``pmf(data) -> [k]`` over a finite range, so that
its divergences are computed instead of estimated.

Soundness rests on draws that are independent, made by the generator that was handed in, from data
that stays as it was. :class:`Sampler` checks what can be checked before the first draw that counts.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.errors import MechanismError, place

Array = NDArray[Any]

PROBE_SIZE = 64
"""Draws of each call that checks the contract."""

CALLS = 64
"""Calls, at least, that the draws of one side are spread over, so that one call's luck is not
taken for the mechanism's law."""

_FALSE_REFUSAL = 1e-9
_CHUNK_CELLS = 2**20
_CHUNK_DRAWS = 2**16


@runtime_checkable
class SampledMechanism(Protocol):
    """A function that draws.

    ``f(data, size, *, rng)`` returns `size` independent draws, first axis the draw; numbers,
    booleans, strings or records; NaN marks "no answer", inf is refused.
    """

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent draws."""


@runtime_checkable
class ExactMechanism(Protocol):
    """A mechanism over a finite range whose probabilities are known."""

    def pmf(self, data: Array) -> NDArray[np.float64]:
        """Return the probability of each of the k outcomes, in a fixed order, shape (k,)."""


def unseeded(mechanism: Callable[..., Array]) -> Callable[..., Array]:
    """Mark a mechanism that draws from an entropy source of its own and cannot be seeded.

    Its audits are as sound as any other, but `dpaudit replay` compares verdicts and not counts.

    Examples
    --------
    >>> import secrets
    >>> @unseeded
    ... def coin(data, size, *, rng):
    ...     return np.array([secrets.randbelow(2) for _ in range(size)])
    >>> is_seeded(coin)
    False
    """

    @functools.wraps(mechanism)
    def marked(data: Array, size: int, **arguments: Any) -> Array:
        return mechanism(data, size, **arguments)

    marked.__dict__["dpaudit_unseeded"] = True
    marked.__name__ = mechanism_name(mechanism)
    return marked


def is_seeded(mechanism: Any) -> bool:
    """Whether the mechanism's draws are determined by the generator that it is handed."""
    while isinstance(mechanism, functools.partial):
        mechanism = mechanism.func
    return not getattr(mechanism, "dpaudit_unseeded", False)


def mechanism_name(mechanism: Any) -> str:
    """Words for a mechanism: its function's name and the keywords bound by ``partial``.

    Examples
    --------
    >>> mechanism_name(functools.partial(sorted, reverse=True))
    'sorted(reverse=True)'
    """
    bound: dict[str, Any] = {}
    while isinstance(mechanism, functools.partial):
        bound = {**mechanism.keywords, **bound}
        mechanism = mechanism.func
    name = getattr(mechanism, "__name__", None) or type(mechanism).__name__
    if not bound:
        return str(name)
    words = ", ".join(f"{key}={_short(value)}" for key, value in bound.items())
    return f"{name}({words})"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split()) if isinstance(value, np.ndarray) else repr(value)
    if " at 0x" in text:  # an address would give every process another name, and another seed
        text = getattr(value, "__qualname__", type(value).__qualname__)
    return text if len(text) <= 60 else text[:57] + "..."


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of one role in one audit: a pure function of root seed and labels.

    Examples
    --------
    >>> a = generator(1, "audit_laplace", "certify", "left", 0).integers(100, size=3)
    >>> b = generator(1, "audit_laplace", "certify", "left", 0).integers(100, size=3)
    >>> bool((a == b).all())
    True
    """
    digest = hashlib.sha256("\x1f".join(map(str, labels)).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32).tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


class Sampler:
    """Draws from one mechanism on one audit's behalf, in chunks, checked and timed.

    Parameters
    ----------
    mechanism : callable
        See :class:`SampledMechanism`.
    seed : int
        Root seed.
    labels : tuple of str
        Audit id and role ("mechanism" or "twin").
    finite : bool, optional
        Whether inf is refused here; False where the caller does so in words of its own.
    """

    def __init__(
        self, mechanism: Any, *, seed: int, labels: tuple[str, ...], finite: bool = True
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
        self._finite = finite
        self._seed, self._labels = seed, labels
        self._signature: tuple[tuple[int, ...], str] | None = None
        self._width = 1

    def begin(self, left: Array, right: Array) -> None:
        """Turn to a pair: check the contract on both sides, which must give draws of one shape."""
        self.turn()
        self._probe(left)
        self._probe(right)

    def turn(self) -> None:
        """Turn to another pair that was checked before; its draws may have another shape."""
        self._signature = None

    def _probe(self, data: Array) -> None:
        """Check the contract on a few small calls; raise :class:`MechanismError` if it is broken.

        Refused: draws that do not follow the generator (replay would be impossible), draws that
        repeat whatever the generator (chunks would be copies), and noise that is shared by the
        draws of one call (they would not be independent).
        """
        before = data.tobytes()
        calls = [self._call(data, PROBE_SIZE, "probe", seed) for seed in (0, 0, 1, 2, 3)]
        if data.tobytes() != before:
            raise MechanismError(
                f"{self.name} changes its input: the data are not the same after the call; "
                "a mechanism must leave them alone"
            )
        first, again, *others = calls
        if not is_seeded(self.mechanism):
            others = [again, *others]
        elif not _equal(first, again):
            raise MechanismError(
                f"{self.name} ignores rng: two calls with equal generators gave different draws. "
                "Draw from rng only, or mark the function with dpaudit.mechanisms.unseeded"
            )
        if all(_equal(first, other) for other in others):
            if not _constant(first):
                raise MechanismError(
                    f"{self.name} ignores rng: four calls with different generators gave the same "
                    f"{PROBE_SIZE} draws; draw from rng only"
                )
        elif all(_constant(call) for call in calls):
            raise MechanismError(
                f"{self.name} shares its noise: all {PROBE_SIZE} draws of one call are equal, but "
                "calls differ. Draw noise of shape [size, ...], so that draws are independent"
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
        """
        bounded = max(min(_CHUNK_CELLS // self.width, _CHUNK_DRAWS), 256)
        step = min(bounded, math.ceil(draws / calls))
        for index, start in enumerate(range(0, draws, step)):
            size = min(step, draws - start)
            yield self._call(data, size, role, side, index)

    def draw(self, data: Array, draws: int, role: str, side: str) -> Array:
        """Return all chunks as one array."""
        return np.concatenate(list(self.chunks(data, draws, role, side)))

    def _call(self, data: Array, size: int, *labels: str | int) -> Array:
        rng = generator(self._seed, *self._labels, *labels)
        start = time.perf_counter()
        try:
            outputs = self.mechanism(data, size, rng=rng)
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
            self.seconds += time.perf_counter() - start
        return self._checked(outputs, size)

    def _checked(self, outputs: Any, size: int) -> Array:
        if isinstance(outputs, np.ma.MaskedArray):
            raise MechanismError(
                f"{self.name} returned a masked array, whose hidden values would be looked at; "
                'return a plain array, with NaN for "no answer"'
            )
        try:
            array = np.array(outputs)  # a copy: the mechanism may use its buffer again
        except ValueError as error:
            raise MechanismError(
                f"{self.name} must return an array [size, ...], got a ragged sequence ({error})"
            ) from None
        if array.ndim == 0 or array.shape[0] != size:
            raise MechanismError(
                f"{self.name} must return an array whose first axis has length size={size}, "
                f"got shape {array.shape}"
            )
        if array.size == 0 and size > 0:
            raise MechanismError(f"{self.name} returned draws without content: shape {array.shape}")
        kinds = {array.dtype[name].base.kind for name in array.dtype.names or ()}
        kinds = kinds or {array.dtype.kind}
        if not kinds <= set("biufUS"):
            raise MechanismError(
                f"{self.name} must return numbers, booleans, strings or records of them, "
                f"got dtype {array.dtype}" + (" (objects)" if "O" in kinds else "")
            )
        for name in array.dtype.names or (None,):
            column = array if name is None else array[name]
            if column.dtype.kind != "f":
                continue
            if not self.saw_reals:
                known = column[np.isfinite(column)]
                self.saw_reals = bool((known != np.rint(known)).any())
            if self._finite and np.isinf(column).any():
                count = int(np.isinf(column).reshape(size, -1).any(axis=1).sum())
                raise MechanismError(
                    f"{self.name} returned inf in {count} of {size} draws; allowed are finite "
                    'numbers, and NaN for "no answer"'
                )
        signature = (array.shape[1:], _kind(array.dtype))
        if self._signature is None:
            self._signature = signature
            fields = [array.dtype[name].shape for name in array.dtype.names or ()] or [()]
            self._width = max(math.prod(array.shape[1:]) * sum(map(math.prod, fields)), 1)
        elif signature != self._signature:
            raise MechanismError(
                f"{self.name} must return draws of one shape and kind, got {signature} after "
                f"{self._signature}"
            )
        return array


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
            'noise, is audited with Smoothed(f, "gaussian", scale=...)'
        )
    return ""


class CallCheck:
    """Watches the certifying calls of one side for draws that are not independent.

    Two faults would make counts lie: calls that repeat each other, and noise that is shared by the
    draws of one call, which shows as events whose rates differ between calls.

    Notes
    -----
    With K calls of n_k draws, the statistic ``sum n_k KL(share_k, pooled share)`` is at most the
    same with the true rate, and Chernoff's bound gives ``P(n_k KL(share_k, rate) >= t) <= 2
    exp(-t)`` for independent draws. So it is at most ``K log 2`` plus a Gamma(K) variable in law,
    and an honest mechanism is refused with probability at most 1e-9, over all events together.
    Weak dependence may pass: that draws are independent stays the promise of the mechanism.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._hits: list[list[int]] = []
        self._draws: list[int] = []
        self._first: Array | None = None
        self._copies = True

    def add(self, outputs: Array, hits: list[int]) -> None:
        """Note one call: its draws, and how many of them lay in each event."""
        self._hits.append(hits)
        self._draws.append(len(outputs))
        if self._first is None:
            self._first = outputs.copy()
        elif self._copies and len(outputs) == len(self._first):
            self._copies = _equal(outputs, self._first)

    def judge(self) -> None:
        """Raise :class:`MechanismError` when the calls cannot be independent."""
        calls = len(self._hits)
        if self._first is None or calls < 4:
            return
        if self._copies and not _constant(self._first):
            raise MechanismError(
                f"{self._name} ignores rng: all {calls} calls with different generators gave the "
                "same draws; draw from rng only"
            )
        draws = np.array(self._draws, dtype=float)
        shares = np.array(self._hits, dtype=float).T / draws  # [events, calls]
        for share in shares:
            rate = float(share @ draws / draws.sum())
            if not 0 < rate < 1:
                continue
            information = special.xlogy(share, share / rate)
            information += special.xlogy(1 - share, (1 - share) / (1 - rate))
            chance = _FALSE_REFUSAL / len(shares)
            allowed = calls * math.log(2) + special.gammainccinv(calls, chance)
            if float(draws @ information) <= allowed:
                continue
            raise MechanismError(
                f"{self._name} shares its noise: the draws of one call are not independent (the "
                f"same event fired in {share.min():.2g} to {share.max():.2g} of the draws of a "
                "call). Draw noise of shape [size, ...]"
            )


def _kind(dtype: np.dtype[Any]) -> str:
    """Kind of a dtype; numbers are one kind, widths of strings may vary."""
    if dtype.names:
        fields = (f"{name}: {_kind(dtype[name].base)}{dtype[name].shape}" for name in dtype.names)
        return f"record of {', '.join(fields)}"
    return "number" if dtype.kind in "biuf" else "text"


def _equal(a: Array, b: Array) -> bool:
    """Equality in which NaN equals NaN, for records too."""
    if a.dtype.names:
        return all(_equal(a[name], b[name]) for name in a.dtype.names)
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def _constant(draws: Array) -> bool:
    return _equal(draws, np.broadcast_to(draws[:1], draws.shape))
