"""A test of independence for the certifying draws on one dataset.

Certified counts are binomial only if the draws are independent. The mechanism promises this
independence. The test searches for violations of this promise. For example, a whole call, a group
of draws or a block of draws may share its noise. The noise may come from too few seeds, or calls
may repeat each other. Both statistics of the test are e-values. If the draws are independent, each
statistic has an expectation of at most 1, for *any* distribution. By Ville's inequality, an honest
mechanism is therefore refused with probability at most 1e-9. This bound holds however often, and
whenever, the statistics are evaluated. The bound holds for any number of draws.

**Forecasts.** An event occurs in a sequence x_1, x_2, ... of independent draws with one unknown
rate p. A forecaster gives ``q_t``, its probability that draw t lies in the event. The forecaster
may use all draws before t. For every p the product of ``q_t(x_t) / p(x_t)`` is a martingale of mean
1, so

    E = prod q_t(x_t) / sup_p prod p^x_t (1 - p)^(1 - x_t)

is at most a martingale of mean 1 (universal inference: Wasserman, Ramdas and Balakrishnan 2020).
Each forecaster uses one *context*. The context may be the previous draw in the same call, the draw
a fixed number of places earlier, or the draw one block earlier. The context may also be the rate in
the call so far. The context may also be the same place in the previous call, in the first call, or
in an earlier call that began with the same draws.

Within a context, the forecaster uses the rule of Krichevsky and Trofimov, whose product depends
only on counts. If draws are independent, every context is useless, and the loss of its forecaster
is about half the logarithm of the number of draws. If draws are dependent, the forecaster of some
context gains with every draw. Other forecasters assume that every call has its own rate. The rates
follow a beta-binomial distribution whose variance is a fixed multiple of the variance of
independent draws. These forecasters detect dependence that no context detects, such as noise that
draws share in any order. The dependence is detected if it multiplies the variance by about four or
more.

The forecasters share one capital. When the event changes, for example between the batches of a
sequential audit, the product continues with a new denominator. Part of the capital enters at each
change of the event, so that a long honest beginning does not hide later dependence.

**Repeats.** Suppose a call begins with exactly the same draw as an earlier call. The later call may
be a copy of the earlier call. Let u and v be two neighbouring draws of the earlier call, and let w
be the draw of the later call at the place of u. If draws are independent, they contain no
information about the order of u and v. So if w equals exactly one of u and v, then w equals u with
probability one half. If w equals u every time, the call is a copy. This statement holds for
continuous and for discrete draws. Each call is compared once, as the copy or as the original. Each
comparison is like the toss of a coin. The tosses use different draws, so they are independent, and
the test may stop after any toss. Draws are compared as values. The padding bytes between the fields
of a record, or after a short text, are not part of the draw. Padding bytes depend on the place of
the draw and on the other draws of the call.

References
----------
Wasserman, Ramdas and Balakrishnan (2020), "Universal inference".
Krichevsky and Trofimov (1981), "The performance of universal encoding".
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.errors import MechanismError
from dpaudit.mechanisms.outcomes import kind_of, to_rows

Array = NDArray[Any]
Fired = NDArray[np.bool_]
Floats = NDArray[np.float64]

SUSPICION = math.log(20.0)
"""Evidence of dependence that is reported; an honest mechanism shows as much once in 20 runs."""

FALSE_REFUSAL = 1e-9
"""Largest probability that an honest mechanism is refused, over both datasets, both statistics and
all times of evaluation together."""

LAGS = (1, 2, 3, 4, 6, 8)
TILES = (2, 3, 4, 8, 16)
PREFIXES = (1, 8)
_WINDOW = 2**13  # draws of each call that are used: enough evidence, and long runs stay fast
_EVENTS = 3
_COPIED = 64  # draws of a call that are kept for the test of repeats
_REMEMBERED = 1024  # earlier calls that may be copied
INFLATIONS = (1.5, 2.0, 3.0, 5.0, 10.0, 30.0)  # of the variance of the number of hits in a call
_BINS = np.array([-4.0, -2.0, -1.0, 1.0, 2.0, 4.0])
_SO_FAR = (
    [f"one draw predicts the draw {lag} places after it" for lag in LAGS]
    + [f"the draws of a call repeat {tiles} times over" for tiles in TILES]
    + ["a call predicts the call after it", "the first call predicts the others"]
    + ["a call continues like an earlier one that began with the same draws" for _ in PREFIXES]
    + ["the draws of one call depend on each other"]
)
_AS_ONE = [f"rates differ between calls as if of 1 / {by:g} of the draws" for by in INFLATIONS]
FORECASTERS = len(_SO_FAR) + len(_AS_ONE)


@dataclass
class _Segment:
    """Counts while the events do not change, [forecasters, events, contexts, in event or not]."""

    events: int
    counts: NDArray[np.int64] = field(init=False)
    calls: Floats = field(init=False)
    first: Fired | None = None
    before: Fired | None = None
    begun: list[dict[bytes, Fired]] = field(default_factory=lambda: [{} for _ in PREFIXES])
    hits: Floats = field(init=False)
    draws: int = 0

    def __post_init__(self) -> None:
        self.counts = np.zeros((len(_SO_FAR), self.events, len(_BINS) + 1, 2), dtype=np.int64)
        self.calls = np.zeros((len(INFLATIONS), self.events))  # log probability of the draws
        self.hits = np.full(self.events, 0.5)

    def log_evidence(self) -> Floats:
        """Return the logarithm of E for each forecaster: the mean over the events."""
        on, off = self.counts[..., 1], self.counts[..., 0]
        forecast = (special.betaln(on + 0.5, off + 0.5) - special.betaln(0.5, 0.5)).sum(axis=-1)
        logs = forecast - _best(on.sum(axis=-1), off.sum(axis=-1))
        hits = self.hits - 0.5
        logs = np.concatenate([logs, self.calls - _best(hits, self.draws - hits)])
        mean: Floats = special.logsumexp(logs, axis=-1) - math.log(self.events)
        return mean

    def add(self, whole: Fired, starts: list[bytes]) -> None:
        """Count one call: which of its draws lie in each event, and how the call began."""
        size = whole.shape[1]
        fired = whole[:, :_WINDOW]
        seen = fired.shape[1]
        for row, lag in enumerate(LAGS):
            self._pair(row, fired[:, :-lag], fired[:, lag:])
        row = len(LAGS)
        for tiles in TILES:
            lag = math.ceil(size / tiles)
            if lag > LAGS[-1]:
                both = min(size - lag, _WINDOW)
                self._pair(row, whole[:, :both], whole[:, lag : lag + both])
            row += 1
        for other in (self.before, self.first):
            if other is not None:
                both = min(seen, other.shape[1])
                self._pair(row, other[:, :both], fired[:, :both])
            row += 1
        for known, start, length in zip(self.begun, starts, PREFIXES, strict=True):
            if (origin := known.pop(start, None)) is not None:
                both = min(seen, origin.shape[1])
                self._pair(row, origin[:, length:both], fired[:, length:both])
            if len(known) < _REMEMBERED:
                known[start] = fired
            row += 1
        self._running(row, fired)
        self._whole_call(fired)
        self.first = fired if self.first is None else self.first
        self.before = fired
        self.hits += fired.sum(axis=1)
        self.draws += seen

    def _pair(self, row: int, context: Fired, then: Fired) -> None:
        """Count the outcomes that follow a context of two values."""
        if then.shape[1] == 0:
            return
        both = (context & then).sum(axis=1)
        known, after = context.sum(axis=1), then.sum(axis=1)
        table = self.counts[row]
        table[:, 1, 1] += both
        table[:, 1, 0] += known - both
        table[:, 0, 1] += after - both
        table[:, 0, 0] += then.shape[1] - known - after + both

    def _whole_call(self, fired: Fired) -> None:
        """Forecast the whole call by a rate that varies around the rate of earlier calls."""
        size, hits = fired.shape[1], fired.sum(axis=1)
        rate = self.hits / (self.draws + 1.0)
        for row, by in enumerate(INFLATIONS):
            weight = 1.0 / ((by - 1) / max(size - 1, 1) + 1 / (self.draws + 1))
            a, b = weight * rate, weight * (1 - rate)
            self.calls[row] += special.betaln(a + hits, b + size - hits) - special.betaln(a, b)

    def _running(self, row: int, fired: Fired) -> None:
        """Count outcomes by the rate so far in the call, relative to the rate of earlier calls."""
        rate = self.hits / (self.draws + 1.0)
        place = np.arange(fired.shape[1])
        so_far: NDArray[np.intp] = np.cumsum(fired, axis=1) - fired
        for event in range(self.events):
            p = rate[event]
            spread = np.sqrt(place * p * (1 - p) + 0.25)
            context = np.searchsorted(_BINS, (so_far[event] - place * p) / spread)
            code = 2 * context[1:] + fired[event, 1:]
            shape = (len(_BINS) + 1, 2)
            self.counts[row, event] += np.bincount(code, minlength=2 * shape[0]).reshape(shape)


def _best(ones: Any, zeros: Any) -> Any:
    """Return the logarithm of the largest probability of these counts under a constant rate."""
    total = np.maximum(ones + zeros, 1)
    return special.xlogy(ones, ones / total) + special.xlogy(zeros, zeros / total)


class Call(NamedTuple):
    """The record of one call: the draws in each event, and the start of the call."""

    fired: NDArray[np.uint8]
    size: int
    cells: NDArray[np.uint8]


class IndependenceCheck:
    """A check that the certifying draws on one dataset are independent.

    Parameters
    ----------
    name : str
        Name of the mechanism, for the error message.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._segment: _Segment | None = None
        self._key: Any = None
        self._segments = 0
        self._started = np.full(FORECASTERS, -math.inf)  # log of the capital that entered before
        self._originals: dict[bytes, list[Array]] = {}
        self._calls = self._copies = self._same = self._other = 0

    def add(self, outputs: Array, fired: Fired, key: Any = None) -> None:
        """Record one call.

        Parameters
        ----------
        outputs : ndarray, shape [size, ...]
            Draws of the call.
        fired : ndarray of bool, shape [events, size]
            Whether each draw lies in each event, for some events. These events were chosen before
            this call.
        key : object, optional
            Key that identifies the events. A new key reports that the events changed.
        """
        self.take(self.call(outputs, fired), key)

    @staticmethod
    def call(outputs: Array, fired: Fired) -> Call:
        """Return the record of one call.

        The process that draws may make the record.
        """
        chosen = np.unique(np.linspace(0, len(fired) - 1, _EVENTS).round().astype(int))
        return Call(np.packbits(fired[chosen], axis=1), fired.shape[1], _cells(outputs[:_COPIED]))

    def take(self, call: Call, key: Any = None) -> None:
        """Process the record of one call."""
        fired = np.unpackbits(call.fired, axis=1, count=call.size).astype(bool)
        if self._segment is None or key != self._key or self._segment.events != len(fired):
            if self._segment is not None:
                self._started = self._grown()
                self._segments += 1
            self._segment, self._key = _Segment(len(fired)), key
        starts = [call.cells[:length].tobytes() for length in PREFIXES]
        self._segment.add(fired, starts)
        self._calls += 1
        # Compare with an earlier call that began with the same draw, pair by pair.
        cells, waiting = call.cells, self._originals.setdefault(call.cells[0].tobytes(), [])
        if not waiting:
            if len(self._originals) <= _REMEMBERED:
                waiting.append(cells)
            return
        original = waiting.pop()
        pairs = (min(len(cells), len(original)) - 1) // 2
        w, u, v = (
            part[begin : begin + 2 * pairs : 2]
            for part, begin in ((cells, 1), (original, 1), (original, 2))
        )
        is_u, is_v = (w == u).all(axis=1), (w == v).all(axis=1)
        self._same += int((is_u & ~is_v).sum())
        self._other += int((is_v & ~is_u).sum())
        self._copies += bool(pairs and is_u.all() and (is_u & ~is_v).any())

    def _grown(self) -> Floats:
        """Return the logarithm of each forecaster's capital, including the current segment."""
        assert self._segment is not None
        entering = -math.log((self._segments + 1) * (self._segments + 2))
        grown: Floats = np.logaddexp(self._started, entering) + self._segment.log_evidence()
        return grown

    @property
    def log_evidence(self) -> float:
        """Logarithm of the larger of the two e-values."""
        return max(self._foretold(), self._repeated())

    def _foretold(self) -> float:
        if self._segment is None:
            return 0.0
        kept = -math.log(self._segments + 2)  # capital that is left for later segments
        return float(special.logsumexp(np.logaddexp(self._grown(), kept))) - math.log(FORECASTERS)

    def _repeated(self) -> float:
        """Return the log capital of a bet on u, with a uniform prior over the coin's bias."""
        tosses = self._same + self._other
        return tosses * math.log(2) + float(special.betaln(self._same + 1, self._other + 1))

    @property
    def note(self) -> str:
        """Return a sentence if draws look dependent but are not refused; otherwise return ""."""
        if self.log_evidence < SUSPICION:
            return ""
        return (
            f"The draws of {self._name} look dependent, but not beyond doubt (evidence of e^"
            f"{self.log_evidence:.1f} against independence). Draw noise of shape [size, ...]."
        )

    def judge(self) -> None:
        """Raise :class:`MechanismError` if the draws so far cannot be independent."""
        limit = math.log(4 / FALSE_REFUSAL)  # two datasets and two statistics
        if self._repeated() > limit and not self._copies:
            raise MechanismError(
                f"{self._name} must return draws of one distribution, got draws that are equal at "
                "the same positions of several calls. Draw each row in the same way, from rng only"
            )
        if self._repeated() > limit:
            raise MechanismError(
                f"{self._name} ignores rng: {self._copies} of {self._calls} calls return the "
                "draws of another call, although their generators differ. Draw only from "
                "rng. Seed any other generator with at least 128 bits of rng"
            )
        if self._foretold() > limit:
            how = [*_SO_FAR, *_AS_ONE][int(self._grown().argmax())]
            raise MechanismError(
                f"{self._name} shares its noise: its draws are not independent ({how}). "
                "Draw noise "
                "of shape [size, ...]"
            )


def _cells(outputs: Array) -> NDArray[np.uint8]:
    """Return bytes that distinguish only the values of the draws, shape [size, bytes]."""
    size = len(outputs)
    if outputs.dtype.names:
        parts = [_cells(outputs[name]) for name in outputs.dtype.names]
    elif outputs.dtype == object:  # rows of numbers
        digests = [_digest(f"{row.shape}".encode() + (row + 0.0).tobytes()) for row in outputs]
        return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(size, -1)
    elif outputs.dtype.kind in "US":
        texts = outputs.reshape(size, -1)
        digests = [b"".join(map(_digest, row.tolist())) for row in texts]
        return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(size, -1)
    else:
        # A number is stored as two doubles, because a whole number may be an integer in one call
        # and a float in another.
        exact = outputs.reshape(size, -1).astype(np.longdouble)
        high = exact.astype(np.float64)
        with np.errstate(invalid="ignore"):
            low = (exact - high).astype(np.float64)
        parts = []
        for part in (high, low):
            part = np.where(np.isnan(part), np.nan, part + 0.0)
            parts.append(np.ascontiguousarray(part).view(np.uint8).reshape(size, -1))
    return np.concatenate(parts, axis=1)


def _digest(text: str | bytes) -> bytes:
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(raw, digest_size=16).digest()


def same_draws(a: Array, b: Array) -> bool:
    """Return whether draws are equal; NaN equals NaN, also inside records."""
    if kind_of(a) != kind_of(b):
        return False
    if a.dtype.names:
        return all(same_draws(a[name], b[name]) for name in a.dtype.names)
    if object in (a.dtype, b.dtype):
        return len(a) == len(b) and all(
            np.array_equal(x, y, equal_nan=True)
            for x, y in zip(to_rows(a), to_rows(b), strict=True)
        )
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind == "f"))


def is_constant(draws: Array) -> bool:
    """Return whether all draws are equal to each other."""
    few = draws[:64]  # usually decide, without copies of all draws
    return all(same_draws(some, np.broadcast_to(some[:1], some.shape)) for some in (few, draws))
