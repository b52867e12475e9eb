"""Facts about both sides of a refuted pair that point to a cause.

A fact is seen directly: the two sides execute different code, draw noise of different scales, or
have outputs without noise. A few calls suffice. Nothing is certified.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.data import counted, handed
from dpaudit.engine.trials import Trials
from dpaudit.errors import MechanismError
from dpaudit.events import Encoder
from dpaudit.mechanisms import (
    AdditiveNoise,
    Composition,
    ExactMechanism,
    generator,
    is_computed,
    mechanism_name,
)
from dpaudit.mutants import (
    LEAST,
    RAISED,
    REMOVED,
    SCALED,
    TREATMENTS,
    ChangedNoise,
    Key,
    Line,
    Recording,
    amount_lines,
    amplifiers,
    are_apart,
    branch,
    range_words,
    record,
    text_of,
    traced,
    uneven_noise,
    value_lines,
)
from dpaudit.neighbors import NeighborPair, Portfolio
from dpaudit.results import Cause, CodeLine

Floats = NDArray[np.float64]
Lines = tuple[CodeLine, ...]

LARGEST = 64.0
"""Largest factor of the noise. If it repairs nothing, the cause is not an amount of noise."""

SEEN = 200
"""Draws per side whose values are examined."""

_TRACED = 6  # Calls per side whose instructions are recorded, and draws of these calls.
_LINES = 3
_MANY_USERS = 5
_MORE_PAIRS = 6  # pairs of many users whose numbers of noise are counted
_LOUD = 64  # Draws per side with more noise.
_DIGITS = 1e-9  # A constant is not more precise than this share of the outputs.
_PAIRS_OF_OUTPUTS = 200
_ROUNDING = 1e-6


class Facts:
    """The facts about one pair.

    Parameters
    ----------
    trials : Trials
        The trials of the refuted mechanism.
    pair : NeighborPair
        A pair on which the claim is refuted.
    first : NeighborPair
        The pair of the audit. It has more users, so that counts of noise rarely equal theirs by
        chance.

    Attributes
    ----------
    found : Recording or None
        Sites of the noise on both sides. None if no noise was recorded.
    returns : tuple of Line
        Lines at which the mechanism returned, once :meth:`causes` is called.
    shifts : list of float
        For each output, how far the sides are apart, once :meth:`causes` is called.
    """

    def __init__(self, trials: Trials, pair: NeighborPair, first: NeighborPair) -> None:
        self.trials, self.pair, self.first = trials, pair, first
        self.task, self.mechanism = trials.task, trials.mechanism
        self.found: Recording | None = None
        self.returns: tuple[Line, ...] = ()
        self.shifts: list[float] = []
        if isinstance(self.mechanism, ExactMechanism | Composition):
            return
        if isinstance(self.mechanism, AdditiveNoise) and not self.mechanism.is_random:
            return
        sides = (pair.left, pair.right)
        with suppress(MechanismError):
            self.found = record(self.drawing, sides, seed=self.task.seed, watch=self.task.watch)

    @property
    def drawing(self) -> Any:
        """The part of the mechanism that draws from `rng`."""
        is_additive = isinstance(self.mechanism, AdditiveNoise)
        return self.mechanism.centers if is_additive else self.mechanism

    def causes(self) -> Iterator[Cause]:
        """Yield the causes to which facts point."""
        is_exact = is_computed(self.mechanism)
        if is_exact or self.task.watch.is_spent():
            return
        try:
            traces = [self._trace(data) for data in (self.pair.left, self.pair.right)]
        except BaseException:  # the mechanism may fail on a few calls of one draw
            if self.task.watch.interrupted:
                raise
            return
        decision = code_of(branch(*traces))
        if decision:
            yield Cause(
                "branch",
                f"{decision[0]} decides on private data without noise",
                "the two sides execute different code in every call",
                decision,
            )
        self.returns = tuple(dict.fromkeys(line for trace in traces for line in trace.returns))
        lines = code_of(line for one in self.returns for line in value_lines(one))
        yield from itertools.islice(itertools.chain(self._scales(), self._stretched(lines)), 1)
        values = list(self._values(lines))
        yield from values
        if not any(cause.kind == "missing" for cause in values):
            yield from self._uneven()

    def _trace(self, data: Any) -> Any:
        rngs = (generator(self.task.seed, self.task.name, "trace", at) for at in range(_TRACED + 1))
        calls = [partial(self.mechanism, handed(data), 1, rng=rng) for rng in rngs]
        with self.task.watch.call(mechanism_name(self.mechanism)):
            return traced(self.mechanism, calls)

    # --- the noise ---

    def _uneven(self) -> Iterator[Cause]:
        """Yield the first noise of which more numbers are drawn on one side."""
        for pair in (self.first, *self._pairs_of_many()):
            try:
                found = uneven_noise(self.drawing, pair, seed=self.task.seed, watch=self.task.watch)
            except MechanismError:
                return
            for key, (left, right) in found.items():
                if not left or not right:  # rather a decision
                    continue
                where = "" if pair is self.first else f" of the pair {pair.recipe!r}"
                yield Cause(
                    "missing",
                    f"the data decide how many values get the noise of {code_of([key[1][0]])[0]}",
                    f"it has {counted(left, 'number')} on the left and {right} on the right{where}",
                    code_of([key[1][0], *value_lines(key[1][0])[1:]]),
                )
                return

    def _pairs_of_many(self) -> list[NeighborPair]:
        """Return a few pairs of many users if the pair of the audit has few users.

        If users are few, numbers of keys may be in proportion to numbers of users by chance.
        """
        space = self.task.space
        if not isinstance(space, Portfolio) or _users(self.first) >= _MANY_USERS:
            return []
        alike = (pair for pair in space.pairs if pair.relation == self.first.relation)
        return list(
            itertools.islice((pair for pair in alike if _users(pair) >= _MANY_USERS), _MORE_PAIRS)
        )

    def _scales(self) -> Iterator[Cause]:
        """Yield the first noise whose scale differs between the sides, or is 0."""
        if self.found is None:
            return
        for key, one, other in self.found.amounts_of_noise(0, 1):
            is_zero = max(*one, *other) == 0
            if not is_zero and not are_apart(one, other):
                continue
            amount = TREATMENTS[key[0]].amount
            says = f"takes its {amount} from private data"
            if is_zero:
                says = "has scale 0 on these data"
            yield Cause(
                "scale",
                f"the noise of {code_of([key[1][0]])[0]} {says}",
                f"its {amount} is {range_words(one)} on the left and {range_words(other)} on the "
                "right" + self._raised(key, max(*one, *other)),
                code_of(amount_lines(key)),
            )
            return

    def _raised(self, key: Key, least: float) -> str:
        """Return words if no violation is found with the larger scale on both sides."""
        assert self.found is not None
        if TREATMENTS[key[0]].amount != "scale" or not least > 0:
            return ""
        words = f"a scale of at least {least:.4g}"
        made = ChangedNoise(self.drawing, self.found, [key], RAISED, words, factor=least)
        found = self.trials.audit(self.pair, made)
        if found is None or found.refuted:
            return ""
        return f"; with {words} on both sides, no violation is found, so the private scale matters"

    def _stretched(self, lines: Lines) -> Iterator[Cause]:
        """Yield the fact that equal draws of noise move the two outputs by different amounts."""
        if self.found is None or not self.found.keys:
            return
        if not all(TREATMENTS[key[0]].is_noise for key in self.found.keys):
            return
        try:
            left, right = (self._noise_in(data) for data in (self.pair.left, self.pair.right))
            with np.errstate(all="ignore"):
                ratios = (left / right).ravel()
        except BaseException:  # the mechanism may fail without its noise, or its outputs may differ
            if self.task.watch.interrupted:
                raise
            return
        ratios = ratios[np.isfinite(ratios) & (ratios != 0)]  # a side may have no noise
        # The noise of a clipped output has another size in some draws only.
        if not ratios.size or np.ptp(ratios) > _ROUNDING * abs(ratios[0]):
            return
        if abs(ratios[0] - 1) > _ROUNDING:
            yield Cause(
                "scale",
                "the output is multiplied by a private number",
                f"with equal draws, its noise is {ratios[0]:.4g} times as large on the left as on "
                "the right",
                lines,
            )

    def _noise_in(self, data: Any) -> Floats:
        assert self.found is not None
        keys = self.found.keys
        bare = ChangedNoise(self.mechanism, self.found, keys, REMOVED, "without noise")
        with self.task.watch.call(mechanism_name(self.mechanism)):
            both = [
                np.asarray(
                    function(
                        handed(data), _TRACED, rng=generator(self.task.seed, self.task.name, "same")
                    )
                )
                for function in (self.mechanism, bare)
            ]
        if any(one.dtype.kind != "f" for one in both):  # an index is not a value plus noise
            return np.full(1, np.nan)
        return np.asarray(both[0] - both[1])

    # --- the values ---

    def _values(self, lines: Lines) -> Iterator[Cause]:
        """Yield causes to which the values of the outputs point."""
        if self.trials.most < SEEN or self.task.watch.is_spent():
            return
        sampler = self.task.sampler(self.mechanism, "facts")
        sampler.certifies = False
        try:
            sampler.begin(self.pair.left, self.pair.right)
            drawn = [
                sampler.draw(data, SEEN, "facts", side)
                for data, side in ((self.pair.left, "left"), (self.pair.right, "right"))
            ]
        except MechanismError:
            return
        self.trials.spent += SEEN
        encoder = Encoder.learn(*drawn)
        left, right = (encoder(outputs) for outputs in drawn)
        forms = set(encoder.form_columns)
        own = [at for at in encoder.own if at not in forms]
        known = [at for at in own if not np.isnan([left[:, at], right[:, at]]).any()]
        numbers = [at for at in known if encoder.columns[at].labels is None]
        names = [encoder.columns[at].name for at in numbers]
        self.shifts = [_shift(left[:, at], right[:, at]) for at in own]
        fixed = known if np.array_equal(left, right) else self._fixed(encoder, known)
        with np.errstate(all="ignore"):  # outputs may be huge
            causes = [
                *_missing(left, right, encoder, sorted(forms), own, lines),
                *_exact(left, right, encoder, fixed, lines),
                *_shared(left[:, numbers], right[:, numbers], names, lines),
                *_beside(left, right, encoder, numbers, lines),
                *self._one_sided((left, right), encoder, numbers),
            ]
        yield from causes

    def _one_sided(
        self, drawn: Sequence[Floats], encoder: Encoder, columns: Sequence[int]
    ) -> Iterator[Cause]:
        """Yield the fact that noise with a smallest value moves the smallest outputs."""
        point = self.task.claim.point
        if self.found is None or point is None or point[1] > 0:  # rare outputs may be allowed
            return
        keys = self.found.keys
        if not keys or any(TREATMENTS[key[0]].least is None for key in keys):
            return
        if any(site.most > 1 for site in self.found.sites):  # such as a difference of two draws
            return
        least = ChangedNoise(self.mechanism, self.found, keys, LEAST, "the least noise")
        louder = [
            ChangedNoise(self.mechanism, self.found, [key], SCALED, "more noise", factor=LARGEST)
            for key in keys
        ]
        ends = self._encoded(least, 2, encoder)
        more = [self._encoded(one, _LOUD, encoder) for one in louder]
        if not ends or not all(more):
            return
        for at in columns:
            if any(len(np.unique(side[:, at])) < SEEN // 2 for side in drawn):  # not a real number
                continue
            near, far = (end[0, at] for end in ends)
            off = _ROUNDING * max(abs(near), abs(far))
            for words, sign in (("below", 1), ("above", -1)):
                are_ends = (
                    np.all(sign * side[:, at] >= sign * end[0, at] - off)
                    for sides in (drawn, *more)
                    for side, end in zip(sides, ends, strict=True)
                )
                if abs(near - far) > off and all(are_ends):
                    yield Cause(
                        "support",
                        f"the noise of {code_of([keys[0][1][0]])[0]} has one sign, so some outputs "
                        "are possible on one side only",
                        f"{encoder.columns[at].name} is never {words} {near:.4g} on the left and "
                        f"never {words} {far:.4g} on the right, whatever the scale",
                        code_of(line for key in keys for line in key[1][:1]),
                    )
                    return

    def _encoded(self, mechanism: Any, size: int, encoder: Encoder) -> list[Floats]:
        """Return a few outputs of a changed mechanism on both sides; nothing if it fails."""
        sampler = self.task.sampler(mechanism, "changed facts")
        sampler.certifies = False
        sides = (self.pair.left, "left"), (self.pair.right, "right")
        with suppress(MechanismError):
            return [encoder(sampler.call(data, size, "changed", side=side)) for data, side in sides]
        return []

    def _fixed(self, encoder: Encoder, columns: Sequence[int]) -> list[int]:
        """Return the columns that do not vary on one side, however large the noise is."""
        louder = [one.scaled(LARGEST) for one in amplifiers(self.mechanism, self.found)[-1:]]
        if not louder:
            return list(columns)
        both = self._encoded(louder[0], _LOUD, encoder)
        if not both:
            return list(columns)
        return [at for at in columns if any(len(np.unique(side[:, at])) == 1 for side in both)]


def _users(pair: NeighborPair) -> int:
    return len(pair.form.labels(pair.left, "users"))


def _missing(
    left: Floats,
    right: Floats,
    encoder: Encoder,
    forms: Sequence[int],
    own: Sequence[int],
    lines: Lines,
) -> Iterator[Cause]:
    """Yield the fact that the length, the shape or the presence of a value differs."""
    for at in forms:
        if not set(left[:, at]) & set(right[:, at]):
            yield Cause(
                "missing",
                f"the {encoder.columns[at].name} of the output depends on one user",
                f"it differs between the sides in all {SEEN} draws",
                lines,
            )
            return
    for at in own:
        one, other = np.isnan(left[:, at]), np.isnan(right[:, at])
        if one.all() != other.all() and one.any() != other.any():
            side, rest = ("left", "right") if one.all() else ("right", "left")
            yield Cause(
                "missing",
                f"whether {encoder.columns[at].name} has a value depends on one user",
                f"it is missing in all {SEEN} draws on the {side}, and in none on the {rest}",
                lines,
            )
            return


def _exact(
    left: Floats, right: Floats, encoder: Encoder, columns: Sequence[int], lines: Lines
) -> Iterator[Cause]:
    """Yield the fact that an output has one value on one side, and never on the other side."""
    for at in columns:
        column = encoder.columns[at]
        if column.name.startswith("has "):  # `_missing` reports keys that some outputs lack
            continue
        for one, other, side, rest in (
            (left[:, at], right[:, at], "left", "right"),
            (right[:, at], left[:, at], "right", "left"),
        ):
            if np.ptp(one) == 0 and not np.any(other == one[0]):
                is_sure = bool(np.ptp(other) == 0)
                seen = f" and {column.words(other[0])} on the {rest}" * is_sure
                yield Cause(
                    "exact",
                    f"{column.name} is released without noise",
                    f"it is {column.words(one[0])} in all {SEEN} draws on the {side}{seen}",
                    lines,
                )
                return


def _shared(left: Floats, right: Floats, names: Sequence[str], lines: Lines) -> Iterator[Cause]:
    """Yield the fact that one output is a linear function of another, not equal on both sides."""
    combinations = itertools.combinations(range(left.shape[1]), 2)
    for a, b in itertools.islice(combinations, _PAIRS_OF_OUTPUTS):
        one, other = _line(left[:, a], left[:, b]), _line(right[:, a], right[:, b])
        if one is None or other is None:
            continue
        size = max(np.abs(left[:, [a, b]]).max(), np.abs(right[:, [a, b]]).max())
        if not np.allclose(one, other, rtol=_ROUNDING, atol=max(1e-9, _DIGITS * size)):
            slope = "" if abs(one[0] - 1) < _ROUNDING else f"{one[0]:.4g} times "
            yield Cause(
                "shared",
                "several outputs share one noise",
                f"{names[b]} minus {slope}{names[a]} is {_rounded(one[1])} on the left and "
                f"{_rounded(other[1])} on the right, in all draws",
                lines,
            )
            return


def _line(x: Floats, y: Floats) -> tuple[float, float] | None:
    """Return slope and constant if y is a linear function of x, and both vary."""
    if not np.ptp(x) > 0 or not np.ptp(y) > 0:
        return None
    first, last = x.argmin(), x.argmax()
    slope = (y[last] - y[first]) / (x[last] - x[first])
    constant = y[first] - slope * x[first]
    is_line = np.abs(y - slope * x - constant).max() <= _ROUNDING * np.ptp(y)
    return (float(slope), float(constant)) if is_line else None


def _shift(left: Floats, right: Floats) -> float:
    """Return the difference of the means in units of the spread; inf for other differences."""
    spread = left.std() + right.std()
    shift = abs(left.mean() - right.mean())
    return float(shift / spread) if spread > 0 else math.inf * bool(shift)


def _rounded(value: float) -> str:
    return f"{round(value, 9):.3g}"


def _beside(
    left: Floats, right: Floats, encoder: Encoder, columns: Sequence[int], lines: Lines
) -> Iterator[Cause]:
    """Yield the fact that both sides have steps of one size, and no value in common."""
    for at in columns:
        one, other = np.unique(left[:, at]), np.unique(right[:, at])
        if min(len(one), len(other)) < 3 or max(len(one), len(other)) > SEEN // 2:
            continue
        step = float(min(np.diff(one).min(), np.diff(other).min()))
        places = (one - one[0]) / step, (other - other[0]) / step
        apart = float(other[0] - one[0]) / step
        is_grid = max(np.abs(place - np.rint(place)).max() for place in places) < _ROUNDING
        if is_grid and abs(apart - round(apart)) > _ROUNDING:
            yield Cause(
                "grid",
                "the noise has a grid, and the value lies between its points",
                f"{encoder.columns[at].name} has steps of {step:.3g} on both sides, and no value "
                "occurs on both",
                lines,
            )
            return


def code_of(lines: Iterable[Line]) -> Lines:
    """Return the first few lines with their code."""
    made = (CodeLine(line[0], line[2], text_of(line)) for line in lines)
    return tuple(dict.fromkeys(made))[:_LINES]
