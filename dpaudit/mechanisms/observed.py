"""Side channels: how long a call of a mechanism takes, and how much memory it needs.

The calls run one by one in forked processes. A block observes both datasets of the pair, in a
random order, and one of the two observations is an outcome. Each four blocks give two outcomes of
each side, in a random order. So the machine treats both sides alike:

- Suppose that a mechanism does the same work on both datasets. If left and right are exchanged, the
  sequence of all calls has the same distribution, because each order is random. So an outcome of
  the left side has the same distribution as one of the right side. This holds for every machine:
  for drift, and for caches and predictors that remember any number of earlier calls.

- Each observed call follows a call on the same dataset that is not observed, so that caches are
  warm. The claim is about the second of two such calls.

- A duration is divided by the usual duration near it. Each block therefore observes both datasets
  once more, only as references. The usual duration is the geometric mean of two medians, of the
  references of the left and of the right side in the nearest blocks.

- Blocks are observed in advance, and their outcomes are used in a random order. So slow periods are
  not consecutive draws.

Assume that durations are independent given the states of the machine, which may differ from call to
call. Given the states and the references, the outcomes of the blocks are independent. Let p_t and
q_t be the probabilities of an event in block t for the left and for the right side. The claim gives
``p_t <= exp(epsilon) q_t + delta``, and the averages over the blocks satisfy the same inequality. A
random half of the blocks counts for each side. The counts of both sides are sums of independent
vectors. In the convex order, they are at most counts of independent draws with the average
probabilities (Hoeffding 1956, "On the distribution of the number of successes in independent
trials", and 1963 for samples without replacement). So tails beyond the mean are no heavier than
those for which the bounds are computed. For joint regions of both counts, this is an argument and
no proof: the rate of false refutations is measured. Sequential bets depend on earlier
draws, so this argument does not cover them. Audits of side channels therefore use fixed numbers of
draws.
"""

from __future__ import annotations

import functools
import gc
import math
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import Interaction, digest, handed
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.children import ChildError, in_child
from dpaudit.mechanisms.composition import is_computed
from dpaudit.mechanisms.protocols import mechanism_name

Floats = NDArray[np.float64]

OBSERVE = ("time", "memory")

_FIELDS = {"time": "relative duration", "memory": "peak memory"}
_AHEAD, _SECONDS_AHEAD = 8, 1.0
"""Blocks that are observed for each draw, and seconds after which no more are observed."""
_LEAST_BLOCKS = 256
_NEAREST = 9  # blocks whose references give the usual duration near a block
_KEPT = 2**17  # durations that are kept for the report of the machine's noise


@dataclass(frozen=True, eq=False)
class Beside:
    """The two datasets of a pair, which are observed together.

    Parameters
    ----------
    left, right : object
        The datasets.
    """

    left: Any
    right: Any

    def __str__(self) -> str:
        return ""

    def __repr__(self) -> str:
        return f"Beside({digest(self.left).hex()}, {digest(self.right).hex()})"

    def side_of(self, data: Any) -> int:
        """Return 0 for the left dataset and 1 for the right dataset."""
        content = digest(data)
        for place, side in enumerate((self.left, self.right)):
            if data is side or (content and content == digest(side)):
                return place
        raise MechanismError("an observed dataset must be a side of its pair")


class Observed:
    """A mechanism whose outcome is the duration, or the peak memory, of each call.

    An audit tests what an adversary learns from the duration or the memory of a call. The outputs
    of the mechanism are not used.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng)``. It is called for one draw at a time, in a forked process.
    observe : {"time", "memory"}, optional
        With "time" (the default), the outcome is the duration of a call, relative to the usual
        duration of calls on both datasets at that time. With "memory", the outcome is the largest
        number of bytes that Python and numpy had allocated during the call. Memory of other
        libraries is not seen.

    Raises
    ------
    MechanismError
        If the mechanism raises an exception, or if this system cannot fork a process.

    Notes
    -----
    Audits must use ``method="fixed"``. Draws are not seeded, because durations cannot be replayed.
    Workers do not draw, because processes that run at the same time would slow each other down.

    Examples
    --------
    >>> def noisy_sum(data, size, *, rng):
    ...     return data.sum() + rng.laplace(size=size)
    >>> Observed(noisy_sum, "memory")
    Observed(noisy_sum, 'memory')
    """

    dpaudit_unseeded = True

    def __init__(self, mechanism: Callable[..., Any], observe: str = "time") -> None:
        self.mechanism = _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)
        if hasattr(mechanism, "pmf"):
            raise ArgumentError(
                f"mechanism must be called for its outputs, got {mechanism_name(mechanism)}, which "
                "has a pmf"
            )
        self.observe = _validate.choice(OBSERVE, observe=observe)
        self.extra = 0.0
        """Share of the usual duration or memory that a mutant adds on the left dataset."""
        self.__name__ = f"{observe} of {mechanism_name(mechanism)}"
        self.seen: list[Floats] = []
        """Durations in seconds, or bytes, of calls on the right dataset."""
        self._waiting: dict[str, list[Floats]] = {}

    def __repr__(self) -> str:
        return f"Observed({mechanism_name(self.mechanism)}, {self.observe!r})"

    @staticmethod
    def view(left: Any, right: Any, by: str | None) -> Beside:
        """Return the two datasets, which are observed together."""
        del by
        return Beside(left, right)

    def with_extra(self, extra: float) -> Observed:
        """Return a mutant, whose calls on the left dataset need a larger share of time or memory.

        Parameters
        ----------
        extra : float
            Share of the usual duration or memory that is added, > 0.
        """
        mutant = Observed(self.mechanism, self.observe)
        mutant.extra = _validate.positive(extra=extra)
        mutant.__name__ = f"{self.__name__}, +{100 * extra:g}% on the left"
        return mutant

    @property
    def usual(self) -> tuple[str, str, str]:
        """Quartiles and median of what calls on the right dataset need, as (low, median, high)."""
        held = np.concatenate(self.seen or [np.zeros(1)])
        low, middle, high = (self._words(float(q)) for q in np.quantile(held, [0.25, 0.5, 0.75]))
        return low, middle, high

    def machine_words(self) -> str:
        """Return a sentence about the noise of the machine, "" before any call was observed."""
        if not self.seen:
            return ""
        low, middle, high = self.usual
        needs = "takes" if self.observe == "time" else "needs"
        return (
            f"A call on the right dataset {needs} {middle} in the median. The noise of this "
            f"machine and of the mechanism: half of all calls need {low} to {high}."
        )

    def _words(self, value: float) -> str:
        return _seconds(value) if self.observe == "time" else f"{value:,.0f} bytes"

    def __call__(self, data: Interaction, size: int, *, rng: np.random.Generator) -> Any:
        """Return the outcomes of `size` calls, as records of one number."""
        if not isinstance(data, Interaction) or not isinstance(data.strategy, Beside):
            raise MechanismError(
                f"{self!r} must get both datasets of a pair. Pass it to dpaudit.audit"
            )
        pair = data.strategy
        side, key = pair.side_of(data.data), repr(pair)
        waiting = self._waiting.setdefault(key, [np.zeros(0), np.zeros(0)])
        if len(waiting[side]) < size:
            self._observe(pair, waiting, size - len(waiting[side]), rng)
        values, waiting[side] = waiting[side][:size], waiting[side][size:]
        records = np.zeros(size, dtype=[(_FIELDS[self.observe], np.float64)])
        records[_FIELDS[self.observe]] = values
        return records

    def _observe(
        self, pair: Beside, waiting: list[Floats], outcomes: int, rng: np.random.Generator
    ) -> None:
        """Observe at least so many outcomes of each side, and queue all outcomes."""
        most = _AHEAD * max(outcomes, _LEAST_BLOCKS if self.observe == "time" else 1)
        compute = functools.partial(
            _blocks, self.mechanism, pair, self.observe, outcomes, most, rng
        )
        try:
            values, usual = in_child(compute, limit=math.inf)
        except ChildError as error:
            raise MechanismError(f"{mechanism_name(self.mechanism)}: {error}") from error
        if sum(map(len, self.seen)) < _KEPT:
            self.seen.append(usual)
        if self.extra:
            values[0] += self.extra * (1.0 if self.observe == "time" else float(np.median(usual)))
        for place in (0, 1):
            waiting[place] = np.concatenate([waiting[place], rng.permutation(values[place])])


def _blocks(
    mechanism: Any,
    pair: Beside,
    observe: str,
    outcomes: int,
    most: int,
    rng: np.random.Generator,
) -> tuple[list[Floats], Floats]:
    """Return the outcomes of both sides, and what calls on the right dataset needed.

    There are at least so many outcomes of each side, and at most about `most` blocks.
    """
    once = _timed if observe == "time" else _measured
    sides, end = (pair.left, pair.right), time.monotonic() + _SECONDS_AHEAD
    seen: list[tuple[float, float]] = []
    references: list[tuple[float, float]] = []
    chosen: list[int] = []

    def both() -> tuple[float, float]:
        first = int(rng.integers(2))
        values = [0.0, 0.0]
        for place in (first, 1 - first):
            values[place] = _after_another(once, mechanism, sides[place], rng)
        return values[0], values[1]

    if observe == "memory":
        tracemalloc.start()
    gc.disable()
    while len(chosen) < 2 * outcomes or (len(chosen) < most and time.monotonic() < end):
        for place in rng.permutation([0, 0, 1, 1]).tolist():
            is_outcome_first = bool(rng.integers(2))
            if observe == "time" and not is_outcome_first:
                references.append(both())
            seen.append(both())
            if observe == "time" and is_outcome_first:
                references.append(both())
            chosen.append(place)
    values, which = np.array(seen).T, np.array(chosen)
    unit = _usual_near(np.array(references)) if observe == "time" else np.ones(len(which))
    return [(values[place] / unit)[which == place] for place in (0, 1)], values[1]


def _usual_near(references: Floats) -> Floats:
    """Return the usual duration near each block, from references of shape (blocks, 2)."""
    width = min(_NEAREST, len(references))
    near = np.lib.stride_tricks.sliding_window_view(references, width, axis=0)
    usual = np.sqrt(np.median(near, axis=2).prod(axis=1))
    start = np.clip(np.arange(len(references)) - width // 2, 0, len(usual) - 1)
    return np.asarray(usual[start])


def _after_another(
    once: Callable[..., float], mechanism: Any, data: Any, rng: np.random.Generator
) -> float:
    """Observe a call that follows another call on the same dataset."""
    mechanism(_fresh(data), 1, rng=np.random.default_rng(int(rng.integers(2**63))))
    return once(mechanism, _fresh(data), np.random.default_rng(int(rng.integers(2**63))))


def _fresh(data: Any) -> Any:
    """Return a copy, so that the place of a dataset in memory says nothing about it."""
    return data.copy() if isinstance(data, np.ndarray) else handed(data)


def _timed(mechanism: Any, data: Any, rng: np.random.Generator) -> float:
    start = time.perf_counter_ns()
    mechanism(data, 1, rng=rng)
    return max(time.perf_counter_ns() - start, 1) / 1e9


def _measured(mechanism: Any, data: Any, rng: np.random.Generator) -> float:
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    mechanism(data, 1, rng=rng)
    return float(max(tracemalloc.get_traced_memory()[1] - before, 0))


def _seconds(value: float) -> str:
    """Return seconds in words of three digits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def may_be_sequential(mechanism: Any) -> bool:
    """Return whether bets may audit a mechanism: it draws outputs, which are no durations."""
    return not is_computed(mechanism) and not isinstance(mechanism, Observed)
