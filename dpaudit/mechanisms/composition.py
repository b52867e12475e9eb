"""Many steps of known noise one after another, each on a random subsample of the data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import handed, words_of_data
from dpaudit.errors import ArgumentError, MechanismError, place
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.protocols import ExactMechanism, mechanism_name
from dpaudit.mechanisms.watch import Watch
from dpaudit.stats import Mixture, StepPair

Array = NDArray[Any]
Floats = NDArray[np.float64]

SUBSAMPLINGS = ("poisson", "fixed", "replacement")

MOST_SUBSAMPLES = 4096
"""Largest number of different subsamples of one dataset, such as those of 12 different rows."""

MOST_STEPS = 10**8
_SAME = 1e-9


@dataclass(frozen=True)
class Subsampling:
    """The choice of the rows that take part in one step.

    Parameters
    ----------
    kind : {"poisson", "fixed", "replacement"}
        With "poisson", a separate coin flip decides for each row. With "fixed", `batch_size` rows
        are drawn without replacement. With "replacement", `batch_size` rows are drawn with
        replacement.
    q : float, optional
        Sampling probability in (0, 1], for "poisson".
    batch_size : int, optional
        Number of rows, at least 1, for "fixed" and "replacement".
    """

    kind: str
    q: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        _validate.choice(SUBSAMPLINGS, sampling=self.kind)
        wanted, other = ("q", "batch_size") if self.kind == "poisson" else ("batch_size", "q")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ArgumentError(
                f"{wanted} must be given for {self.kind} sampling, and {other} must not be "
                f"given, got q={self.q!r} and batch_size={self.batch_size!r}"
            )
        if self.kind != "poisson":
            _validate.integer(1, batch_size=self.batch_size)
        elif _validate.positive(q=self.q) > 1:
            raise ArgumentError(f"q must be a number in (0, 1], got {self.q!r}")

    def __str__(self) -> str:
        one = f"q={self.q:g}" if self.q is not None else f"batch_size={self.batch_size}"
        return f"{self.kind} {one}"

    def doubled(self) -> Subsampling:
        """Return the sampling of twice as many rows."""
        if self.q is not None:
            return replace(self, q=min(2 * self.q, 1.0))
        return replace(self, batch_size=2 * (self.batch_size or 0))

    def subsamples(self, data: Array) -> tuple[list[Array], Floats, bool]:
        """Return all subsamples, their probabilities, and whether equal rows were exchanged.

        Subsamples that differ only by an exchange of equal rows are returned once.
        """
        rows = np.asarray(data)
        if rows.ndim == 0:
            raise MechanismError(
                f"data must be an array whose first axis is the rows, got {words_of_data(data)}"
            )
        groups = _equal_rows(rows)
        sizes = np.array([len(group) for group in groups], dtype=int)
        batch = self.batch_size or 0
        if self.kind == "fixed" and batch > len(rows):
            raise MechanismError(
                f"batch_size must be at most {len(rows)}, the number of rows, got {batch}"
            )
        if self.kind == "replacement":
            if not len(rows):
                raise MechanismError("data must have at least one row for sampling, got none")
            number = float(math.comb(len(groups) + batch - 1, batch))
        else:
            number = float(np.prod(np.minimum(sizes, batch or len(rows)) + 1.0))
        if number > MOST_SUBSAMPLES:
            raise MechanismError(
                f"data must have at most {MOST_SUBSAMPLES} different subsamples, got up to "
                f"{number:.3g} for {len(rows)} rows, of which {len(groups)} differ. Pass a pair of "
                "fewer rows, or of more equal rows"
            )
        every = list(self._counts(sizes))
        counts = np.array(every, dtype=int).reshape(len(every), len(groups))
        weights = self._weights(counts, sizes, len(rows))
        found = [rows[self._chosen(groups, one)] for one in counts]
        return found, weights / weights.sum(), bool((sizes > 1).any()) or self.kind == "replacement"

    def _counts(self, sizes: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
        """Yield how many rows of each group take part."""
        batch = self.batch_size or 0
        if self.kind == "poisson":
            yield from itertools.product(*(range(size + 1) for size in sizes))
            return
        most = [batch if self.kind == "replacement" else min(batch, int(size)) for size in sizes]
        yield from _summing(most, batch)

    def _weights(self, counts: NDArray[np.int64], sizes: NDArray[np.int64], n: int) -> Floats:
        if self.kind == "poisson":
            found = np.asarray(scipy.stats.binom.pmf(counts, sizes, self.q)).prod(axis=1)
        elif self.kind == "replacement":
            found = scipy.stats.multinomial.pmf(counts, self.batch_size, sizes / n)
        else:
            ways = [math.prod(map(math.comb, sizes.tolist(), one)) for one in counts.tolist()]
            whole = math.comb(n, self.batch_size or 0)
            found = np.array([way / whole for way in ways])
        return np.atleast_1d(np.asarray(found, dtype=float))

    def _chosen(self, groups: Sequence[Array], count: Array) -> Array:
        if self.kind == "replacement":
            held = [np.repeat(group[:1], one) for group, one in zip(groups, count, strict=True)]
        else:
            held = [group[:one] for group, one in zip(groups, count, strict=True)]
        return np.sort(np.concatenate([np.zeros(0, dtype=int), *held]))


def _summing(most: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of integers from 0 to `most` with this sum."""
    if not most:
        if total == 0:
            yield ()
        return
    rest = sum(most[1:])
    for first in range(max(total - rest, 0), min(most[0], total) + 1):
        for others in _summing(most[1:], total - first):
            yield (first, *others)


def _equal_rows(rows: Array) -> list[Array]:
    """Return the positions of the rows, grouped by equality."""
    if rows.dtype.kind not in "biuf" or not len(rows):
        return [np.array([at]) for at in range(len(rows))]
    flat = rows.reshape(len(rows), -1)
    if not flat.shape[1]:
        return [np.arange(len(rows))]
    known: dict[bytes, list[int]] = {}
    for at, row in enumerate(np.ascontiguousarray(flat)):
        known.setdefault(row.tobytes(), []).append(at)
    return [np.array(group) for group in known.values()]


@dataclass(frozen=True, eq=False)
class Step:
    """One mechanism of a composition, with its repetitions and its subsampling."""

    mechanism: Any
    times: int = 1
    sampling: Subsampling | None = None

    def __str__(self) -> str:
        words = repr(self.mechanism)
        if not isinstance(self.mechanism, AdditiveNoise):
            words = mechanism_name(self.mechanism)
        words += f" on {self.sampling}" if self.sampling else ""
        return words + (f", {self.times} times" if self.times > 1 else "")

    def subsamples(self, data: Any) -> tuple[list[Any], Floats]:
        """Return all subsamples of a dataset, and their probabilities."""
        if self.sampling is None:
            return [data], np.ones(1)
        found, weights, exchanged = self.sampling.subsamples(data)
        if exchanged and len(data) > 1:
            first, again = self.value(data), self.value(data[::-1])
            if first.shape != again.shape or not np.allclose(first, again, rtol=_SAME, atol=_SAME):
                raise MechanismError(
                    f"{mechanism_name(self.mechanism)} must not depend on the order of the rows "
                    "if rows are equal or are drawn with replacement, got different values for "
                    "the reversed rows"
                )
        return found, weights

    def value(self, data: Any) -> Floats:
        """Return the centre or the pmf on a dataset."""
        if isinstance(self.mechanism, AdditiveNoise):
            return self.mechanism.center(data)
        name, watch = mechanism_name(self.mechanism), Watch()
        try:
            with watch.call(name):
                return np.asarray(self.mechanism.pmf(handed(data)), dtype=float)
        except BaseException as error:
            if watch.interrupted or isinstance(error, MechanismError):
                raise
            raise MechanismError(
                f"{name}.pmf raised {type(error).__name__}: {error} ({place(error)}called with "
                f"{words_of_data(data)})"
            ) from error

    def values(self, data: Any) -> tuple[Floats, Floats]:
        """Return the different centres or pmfs of all subsamples ``[m, d]``, and their weights."""
        held, weights = self.subsamples(data)
        rows = [np.ravel(self.value(one)) for one in held]
        sizes = {row.size for row in rows}
        if len(sizes) > 1:
            raise MechanismError(
                f"{mechanism_name(self.mechanism)} must return arrays of equal length for all "
                f"subsamples, got lengths {sorted(sizes)}"
            )
        different, at = np.unique(np.stack(rows), axis=0, return_inverse=True)
        return different, np.asarray(
            np.bincount(np.ravel(at), weights, len(different)), dtype=float
        )

    def pair(self, left: Any, right: Any) -> StepPair:
        """Return the outcomes of this step on two datasets."""
        sides = [self.values(data) for data in (left, right)]
        if sides[0][0].shape[1] != sides[1][0].shape[1]:
            raise MechanismError(
                f"{mechanism_name(self.mechanism)} must return arrays of equal length for both "
                f"sides, got {sides[0][0].shape[1]} and {sides[1][0].shape[1]}"
            )
        if isinstance(self.mechanism, AdditiveNoise):
            split = len(sides[0][0])
            line = self._line(np.concatenate([sides[0][0], sides[1][0]]))
            first, second = Mixture(line[:split], sides[0][1]), Mixture(line[split:], sides[1][1])
            return StepPair.of_mixtures(self.mechanism.noise, first, second, self.times)
        try:
            first_pmf, second_pmf = (weights @ pmfs for pmfs, weights in sides)
            return StepPair(first_pmf, second_pmf, self.times)
        except ValueError as error:
            raise MechanismError(f"{mechanism_name(self.mechanism)}.pmf: {error}") from None

    def _line(self, centers: Floats) -> Floats:
        """Return the position of each centre on a line that contains all centres."""
        name, moved = mechanism_name(self.mechanism), centers - centers[0]
        if self.mechanism.noise.kind == "laplace":
            moving = np.flatnonzero(np.abs(moved).max(axis=0) > 0)
            if len(moving) > 1:
                raise MechanismError(
                    f"{name} must return centres that differ in one coordinate only, because "
                    f"their noise is Laplace noise, got {len(moving)} coordinates that differ"
                )
            return np.asarray(moved[:, moving[0] if len(moving) else 0])
        lengths: Floats = np.linalg.norm(moved, axis=1)
        farthest = float(lengths.max())
        if farthest == 0:
            return np.asarray(lengths)
        direction = moved[lengths.argmax()] / farthest
        along = moved @ direction
        off = np.linalg.norm(moved - along[:, None] * direction, axis=1)
        if off.max() > _SAME * farthest:
            raise MechanismError(
                f"{name} must return centres that lie on one line, got a centre "
                f"{centers[off.argmax()].tolist()} at a distance of {off.max():.3g} from the line. "
                "Pass a pair on which all rows move the centre in one direction"
            )
        return np.asarray(along)


class Composition:
    """A mechanism that runs steps of known noise one after another, and releases all outputs.

    An audit of a composition computes a lower bound of its privacy loss, without draws (see
    :mod:`dpaudit.stats.composition`). So it shows what an accountant should report at least. The
    composition knows datasets and not sensitivities. On each dataset, the centres of all subsamples
    are enumerated, so a wrong convention of a sensitivity or of a sampling rate is found.

    Parameters
    ----------
    step : AdditiveNoise, ExactMechanism or Composition, or a sequence of these
        Mechanism of one step. The centres of an :class:`AdditiveNoise` must be deterministic. A
        sequence is run from its first to its last mechanism.
    times : int, optional
        Number of independent repetitions of `step`, at least 1. The default is 1.
    q : float, optional
        Sampling probability of a row, in (0, 1], for "poisson".
    batch_size : int, optional
        Number of sampled rows, at least 1, for "fixed" and "replacement".
    sampling : {"poisson", "fixed", "replacement"}, optional
        Sampling of the rows of the dataset, made anew for each repetition. With "poisson" (the
        default), a separate coin flip decides for each row. With "fixed", `batch_size` rows are
        drawn without replacement. With "replacement", they are drawn with replacement. With
        "poisson" and no `q`, each step gets the whole dataset.

    Raises
    ------
    ArgumentError, TypeError
        If arguments are out of range or contradict each other.

    Notes
    -----
    A dataset may have at most 4096 different subsamples. With Poisson sampling, k equal rows have
    only k + 1 subsamples. Centres may have several coordinates, but on a pair, the centres of all
    subsamples must lie on one line, which for Laplace noise is parallel to an axis.

    Examples
    --------
    >>> def total(data):
    ...     return np.clip(data, 0, 1).sum()
    >>> step = AdditiveNoise(total, "gaussian", scale=1.0)
    >>> training = Composition(step, 1000, q=0.01)
    >>> training
    Composition(AdditiveNoise(total, gaussian noise of scale 1) on poisson q=0.01, 1000 times)
    >>> training(np.ones((2, 1)), 3, rng=np.random.default_rng(0)).shape
    (3, 1000)
    """

    def __init__(
        self,
        step: Any,
        times: int = 1,
        *,
        q: float | None = None,
        batch_size: int | None = None,
        sampling: str = "poisson",
    ) -> None:
        _validate.integer(1, MOST_STEPS, times=times)
        _validate.choice(SUBSAMPLINGS, sampling=sampling)
        chosen = None
        if q is not None or batch_size is not None or sampling != "poisson":
            chosen = Subsampling(sampling, q, batch_size)
        given = (step,)
        if not isinstance(step, AdditiveNoise | ExactMechanism | Composition):
            if callable(step):
                raise TypeError(_wrong(step))
            given = _validate.items("a mechanism or a list of mechanisms", step=step)
        steps: list[Step] = []
        for one in given:
            if isinstance(one, Composition) and chosen is None:
                steps += one.steps
                continue
            if not isinstance(one, AdditiveNoise | ExactMechanism):
                words = " without q and batch_size" if isinstance(one, Composition) else ""
                raise TypeError(_wrong(one) + words)
            if isinstance(one, AdditiveNoise) and one.is_random:
                raise TypeError(
                    f"step must have deterministic centres, got {one!r}, whose centres take rng"
                )
            steps.append(Step(one, 1, chosen))
        if sum(one.times for one in steps) * times > MOST_STEPS:
            raise ArgumentError(
                f"times must give at most {MOST_STEPS:,} steps in all, got {times} times "
                f"{sum(one.times for one in steps)}"
            )
        self.steps: tuple[Step, ...] = tuple(replace(one, times=one.times * times) for one in steps)
        self.__name__ = repr(self)

    def __repr__(self) -> str:
        return f"Composition({'; '.join(map(str, self.steps))})"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Floats:
        """Return `size` independent draws of all outputs, ``[size, outputs]``."""
        columns = []
        for step in self.steps:
            values, weights = step.values(data)
            for _ in range(step.times):
                at = rng.choice(len(values), size, p=weights / weights.sum())
                if isinstance(step.mechanism, AdditiveNoise):
                    shape = (size, values.shape[1])
                    columns.append(values[at] + step.mechanism.noise.sample(shape, rng=rng))
                else:
                    above = rng.random(size)[:, None] < np.cumsum(values[at], axis=1)
                    columns.append(above.argmax(axis=1, keepdims=True).astype(float))
        return np.concatenate(columns, axis=1)

    def pairs(self, left: Any, right: Any) -> list[StepPair]:
        """Return the outcomes of each step on two datasets.

        Raises
        ------
        MechanismError
            If a dataset has too many subsamples, or if centres do not lie on one line.
        """
        return [step.pair(left, right) for step in self.steps]

    def values(self, data: Any) -> Floats:
        """Return the centres and pmfs of all steps on a dataset, as one vector."""
        return np.concatenate([np.ravel(part) for step in self.steps for part in step.values(data)])

    def with_steps(self, change: Callable[[Step], Step]) -> Composition:
        """Return the composition with another version of each step."""
        made = Composition.__new__(Composition)
        made.steps = tuple(change(step) for step in self.steps)
        made.__name__ = repr(made)
        return made


def _wrong(step: Any) -> str:
    return (
        "step must be an AdditiveNoise, a mechanism with a pmf, a Composition, or a list of "
        f"these, got {_validate.describe(step)}"
    )


def is_computed(mechanism: Any) -> bool:
    """Return whether an audit computes probabilities of a mechanism instead of drawing outputs.

    The centres of an :class:`AdditiveNoise` may still be drawn.
    """
    return isinstance(mechanism, AdditiveNoise | ExactMechanism | Composition)
