"""Scores.

A score is a number for each output, and the number is larger where the left side is likelier. Even
an inaccurate score is sound, because an event may be *any* set of outputs that is fixed before the
certifying draws. The closer the order of the score is to the order of the likelihood ratio, the
more can be certified.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import ArgumentError
from dpaudit.events.encoding import Encoder, number_words, row_words
from dpaudit.events.features import Feature
from dpaudit.events.screening import chi_square_excess

Floats = NDArray[np.float64]

MAX_ATOMS = 2**16
"""Number of distinct values above which a feature or an output is treated as continuous. It is
also treated as continuous if values are seen fewer than two times on average."""

MAX_ORDERED_ATOMS = 256
"""Number of distinct values above which an ordered feature also gets a table of bins."""

# Pooled quantiles that separate the bins of a continuous feature. These quantiles are fine in the
# tails, which contain the events for a small delta.
_TAIL = np.array([1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 7e-3, 0.012, 0.02, 0.03])
_QUANTILES = np.concatenate([_TAIL, np.linspace(0.04, 0.96, 47), 1 - _TAIL[::-1]])

_OFTEN, _OFTEN_AT_LEAST = 0.004, 30  # least share, and least number of draws, of a frequent value

_HUGE, _LARGEST = 1e307, np.finfo(np.float64).max
_NO_ANSWER = -0.49 * _LARGEST  # thresholds below this number separate "no answer" from all values


_ALONE = 8  # draws that a classifier scores one by one, and together

_VALUES, _INTERVALS, _OUTCOMES = 8, 2, 4
"""Values, intervals and outcomes that a description lists; more are summarised."""

_PARTS = 1000
"""Parts that an exact definition lists at most."""


class Score(Protocol):
    """Interface of a score."""

    @property
    def name(self) -> str:
        """Name of the score in reports."""

    @property
    def axis(self) -> Feature | None:
        """The feature along which outputs are plotted.

        If None, outputs are plotted along the score.
        """

    def __call__(self, encoded: Floats) -> Floats:
        """Return the score of each encoded output, shape ``[size]``.

        No score is NaN.
        """

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        """Describe the event "score >= threshold", or the complement of the event.

        If `exact`, up to 1,000 parts are listed, with all digits of the thresholds.
        """


@dataclass(frozen=True, eq=False)
class FeatureScore:
    """A feature as a score, rising or `falling`. "No answer" counts as below all values.

    Two facts are stored for the description. `gaps` says whether some outputs have no answer, and
    `whole` says whether all seen values were integers.
    """

    feature: Feature
    gaps: bool
    whole: bool
    falling: bool = False

    @classmethod
    def learn(cls, feature: Feature, values: Floats) -> list[FeatureScore]:
        """Return the scores.

        If there are gaps, each direction has its own score.
        """
        missing = np.isnan(values)
        known = values[~missing]
        whole = bool(np.all(known == np.floor(known)))
        if not missing.any():
            return [cls(feature, False, whole)]
        return [cls(feature, True, whole), cls(feature, True, whole, falling=True)]

    @property
    def name(self) -> str:
        """Name of the score in reports."""
        return self.feature.name

    @property
    def axis(self) -> Feature:
        """The feature that is the score."""
        return self.feature

    def __call__(self, encoded: Floats) -> Floats:
        """Return the score of each encoded output."""
        values = self.feature(encoded)
        values = -values if self.falling else values
        missing = np.isnan(values)
        return np.where(missing, -np.inf, values) if missing.any() else values

    @staticmethod
    def separates_answers(threshold: float) -> bool:
        """Return whether a threshold separates "no answer" from all values."""
        return bool(threshold < _NO_ANSWER)

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        """Describe the event."""
        if self.gaps and self.separates_answers(threshold):
            return f"{self.name} {'has an answer' if above else 'has no answer'}"
        or_none = "" if above else " or no answer" * self.gaps
        # Beyond 1e15, doubles have no halves, and some sums of huge outputs are infinite.
        whole = self.whole and abs(threshold) < 1e15
        if self.falling:
            most = math.floor(-threshold) if whole else -threshold
            return f"{self.name} {'<=' if above else '>'} {_number(most, exact)}{or_none}"
        if whole:
            least = math.ceil(threshold)
            return f"{self.name} {f'>= {least}' if above else f'<= {least - 1}'}{or_none}"
        return f"{self.name} {'>' if above else '<='} {_number(threshold, exact)}{or_none}"


@dataclass(frozen=True, eq=False)
class TableScore:
    """Log-likelihood ratios of single values of a feature, or of bins of its values.

    If `atoms` is True, `edges` are the values seen, and ``log_ratios[-2]`` belongs to all other
    values. If `atoms` is False, `edges` are the inner edges of bins. The last entry of `log_ratios`
    belongs to "no answer". `gaps` says whether "no answer" was seen.
    """

    feature: Feature
    edges: Floats
    log_ratios: Floats
    atoms: bool
    gaps: bool
    significance: float

    @classmethod
    def learn(
        cls, feature: Feature, left: Floats, right: Floats, most: int = MAX_ATOMS
    ) -> TableScore:
        """Learn the table from the values of the feature on both sides.

        If there are more than `most` different values, or most values occur only once, the table
        has bins. A frequent value has a bin of its own.
        """
        return cls._learn(feature, _Values.of(left, right), most)

    @classmethod
    def learn_ordered(
        cls, feature: Feature, left: Floats, right: Floats
    ) -> tuple[TableScore, TableScore | None]:
        """Learn the table of an ordered feature, with bins if there are more than 256 values.

        If it has bins, also learn the table of the values, unless there are more than 65,536 of
        them, or most occur only once.
        """
        seen = _Values.of(left, right)
        table = cls._learn(feature, seen, MAX_ORDERED_ATOMS)
        repeat = not table.atoms and seen.repeat(MAX_ATOMS)
        return table, cls._learn(feature, seen, MAX_ATOMS) if repeat else None

    @classmethod
    def _learn(cls, feature: Feature, seen: _Values, most: int) -> TableScore:
        sides, known, pooled = seen.sides, seen.known, seen.pooled
        atoms = seen.repeat(most)
        edges = seen.values
        if not atoms:
            counts = np.diff(np.append(seen.first, pooled.size))
            often = edges[counts >= max(_OFTEN * pooled.size, _OFTEN_AT_LEAST)]
            often = np.clip(often, -10 * _HUGE, 10 * _HUGE)
            own = np.concatenate([often, np.nextafter(often, -np.inf)])
            edges = np.unique(np.concatenate([_quantiles(pooled, _QUANTILES), own]))
        a, b = (
            np.diff(np.searchsorted(side, edges, side="right"), prepend=0, append=len(side))
            for side in known
        )
        if atoms:  # values above the last known value were never seen
            a[-1] = b[-1] = 0
        a, b = (np.append(x, len(s) - len(k)) for x, s, k in zip((a, b), sides, known, strict=True))
        ratios = _shrunk_log_ratio(a, b)
        if atoms:
            ratios[-2] = 0.0  # values that were never seen carry no evidence
        gaps = bool(a[-1] + b[-1])
        return cls(feature, edges, ratios, atoms, gaps, chi_square_excess(a, b))

    @property
    def name(self) -> str:
        """Name of the score in reports."""
        return f"likelihood ratio of {self.feature.name}"

    @property
    def axis(self) -> Feature:
        """The feature to which the table belongs."""
        return self.feature

    def cells(self, encoded: Floats) -> NDArray[np.intp]:
        """Return the index of each encoded output in the table."""
        place = _value_index if self.atoms else _bin_index
        return place(self.feature(encoded), self.edges)

    def __call__(self, encoded: Floats) -> Floats:
        """Return the score of each encoded output."""
        return np.asarray(self.log_ratios[self.cells(encoded)])

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        """Describe the event as a set of values or a union of intervals.

        Unless `exact`, many values or intervals are summarised by the likelihood ratio.
        """
        inside = (self.log_ratios >= threshold) == above
        if self.atoms:
            kind, most = "values", _VALUES
            chosen = [self.feature.column.words(v) for v in self.edges[inside[:-2]]]
            others = ["a value not seen before"] * bool(inside[-2])
        else:
            kind, most, others = "intervals", _INTERVALS, []
            chosen = [self._interval(*run, exact) for run in runs_of(inside[:-1])]
        name = self.feature.name
        if exact and len(chosen) > _PARTS:
            chosen = [*chosen[:_PARTS], f"... {len(chosen) - _PARTS} more"]
        elif len(chosen) > most and not exact:
            ratio = f"{math.exp(threshold):.3g}"
            return (
                f"learnt likelihood ratio of {name} {'>=' if above else '<'} {ratio} "
                f"({len(chosen)} {kind})"
            )
        parts = []
        if chosen and self.atoms:
            is_one = len(chosen) == 1
            parts = [f"{name} = {chosen[0]}" if is_one else f"{name} in {{{', '.join(chosen)}}}"]
        elif chosen:
            parts = [f"{name} in {' or '.join(chosen)}"]
        parts += others
        if inside[-1] and parts and self.gaps:
            parts.append("no answer")
        return " or ".join(parts) or f"{name} without an answer"

    def _interval(self, low: int, high: int, exact: bool) -> str:
        """Describe the values from one edge to another edge, or a single value."""
        if low >= 0 and high < len(self.edges):
            below, above = float(self.edges[low]), float(self.edges[high])
            if math.nextafter(below, math.inf) == above:
                return f"{{{_number(above, exact)}}}"
        start = "-inf" if low < 0 else _number(self.edges[low], exact)
        end = "inf" if high >= len(self.edges) else _number(self.edges[high], exact)
        return f"({start}, {end}]"


class _Values(NamedTuple):
    """Values of a feature, sorted once for all tables of the feature.

    `known` are the values without NaN of each side, and `pooled` those of both sides. `values` are
    the different values, and each occurs in `pooled` at `first` for the first time.
    """

    sides: list[Floats]
    known: list[Floats]
    pooled: Floats
    first: NDArray[np.intp]
    values: Floats

    @classmethod
    def of(cls, left: Floats, right: Floats) -> _Values:
        """Sort the values of both sides."""
        sides = [np.sort(side) for side in (left, right)]  # NaN last
        known = [side[: len(side) - np.isnan(side).sum()] for side in sides]
        pooled = np.concatenate(known)
        pooled.sort(kind="stable")  # merges the two sorted parts, in place
        first = np.flatnonzero(np.append(True, pooled[1:] != pooled[:-1]))
        return cls(sides, known, pooled, first, pooled[first] if pooled.size else np.zeros(1))

    def repeat(self, most: int) -> bool:
        """Return whether there are at most `most` different values, and most occur repeatedly."""
        return len(self.values) <= min(most, self.pooled.size / 2 + 2)


@dataclass(frozen=True, eq=False)
class OutcomeScore:
    """Log-likelihood ratios of whole outputs, for outputs that repeat.

    Outputs are identified by a hash. Two outputs with the same hash share one entry.
    """

    encoder: Encoder
    hashes: NDArray[np.uint64]
    log_ratios: Floats
    examples: Floats
    other: float

    @classmethod
    def learn(cls, encoder: Encoder, left: Floats, right: Floats) -> OutcomeScore | None:
        """Learn the table; return None if outputs rarely repeat."""
        pooled = np.concatenate([left, right])
        hashes, first, inverse = np.unique(
            _row_hash(np.take(pooled, encoder.own, axis=1)),
            return_index=True,
            return_inverse=True,
        )
        if len(hashes) > 0.5 * len(pooled):
            return None
        a = np.bincount(inverse[: len(left)], minlength=len(hashes))
        b = np.bincount(inverse[len(left) :], minlength=len(hashes))
        keep = np.sort(np.argsort(-(a + b), kind="stable")[:MAX_ATOMS])
        rest = np.setdiff1d(np.arange(len(hashes)), keep)
        counts = (np.append(x[keep], x[rest].sum()) for x in (a, b))
        ratios = _shrunk_log_ratio(*counts)
        return cls(encoder, hashes[keep], ratios[:-1], pooled[first[keep]], float(ratios[-1]))

    @property
    def name(self) -> str:
        """Name of the score in reports."""
        return "likelihood ratio of whole outcomes"

    @property
    def axis(self) -> None:
        """None, because outcomes do not lie on a line."""
        return

    def index(self, encoded: Floats) -> NDArray[np.intp]:
        """Return the index of each output in the table.

        Unknown outputs get the table's length.
        """
        hashes = _row_hash(np.take(encoded, self.encoder.own, axis=1))
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[at] == hashes, at, len(self.hashes))

    def __call__(self, encoded: Floats) -> Floats:
        """Return the score of each encoded output."""
        return np.asarray(np.append(self.log_ratios, self.other)[self.index(encoded)])

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        """Describe the event by its likeliest outcomes: four, or all of them if `exact`."""
        inside = np.flatnonzero((self.log_ratios >= threshold) == above)
        order = inside[np.argsort(-np.abs(self.log_ratios[inside]), kind="stable")]
        most = _PARTS if exact else _OUTCOMES
        words = [row_words(self.encoder, row) for row in self.examples[order[:most]]]
        if len(order) > most:
            words.append(f"... {len(order) - most} more")
        if (self.other >= threshold) == above:
            words.append("or any rare outcome")
        return f"outcome in {{{'; '.join(words)}}}" if words else "any unknown outcome"


@dataclass(frozen=True, eq=False)
class ModelScore:
    """A score that is learnt from all features together, with a frozen function `read`."""

    name: str
    read: Callable[[Floats], Floats] = field(repr=False)

    @property
    def axis(self) -> None:
        """None, because outputs are plotted along the score itself."""
        return

    def __call__(self, encoded: Floats) -> Floats:
        """Return the score of each encoded output."""
        return self.read(encoded)

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        """Describe the event."""
        return f"{self.name} {'>' if above else '<='} {_number(threshold, exact)}"


def _number(value: float, exact: bool) -> str:
    return repr(float(value)) if exact else number_words(float(value))


def additive_score(tables: Sequence[TableScore]) -> ModelScore | None:
    """Return the sum of the coordinates' log-likelihood ratios (exact if they are independent).

    Coordinates that differ no more than by chance would only add noise, so they are omitted.
    """
    useful = [t for t in tables if t.feature.coordinate and t.significance > 0]
    if len(useful) < 2:
        return None
    return ModelScore(
        f"sum of log-likelihood ratios of {len(useful)} coordinates",
        lambda x: _total(useful, x),
    )


def _total(tables: Sequence[TableScore], encoded: Floats) -> Floats:
    """Return the sum of the tables in a fixed order.

    The order of numpy depends on the row count.
    """
    total = np.zeros(len(encoded))
    for table in tables:
        total += table(encoded)
    return total


def logistic_score(features: Sequence[Feature], left: Floats, right: Floats) -> ModelScore:
    """Return a linear log-likelihood ratio, from logistic regression on standardised features."""
    from sklearn.linear_model import LogisticRegression

    design = _design([f for f in features if f.ordered], np.concatenate([left, right]))
    y = np.repeat([1, 0], [len(left), len(right)])
    with _quietly_on_one_thread():
        model = LogisticRegression(C=1.0, solver="newton-cholesky", max_iter=30, tol=1e-4).fit(
            design(np.concatenate([left, right])), y
        )
    weights, middle = np.asarray(model.coef_[0]), float(model.intercept_[0])
    return ModelScore("logistic score", lambda e: (design(e) * weights).sum(axis=1) + middle)


def boosted_score(
    features: Sequence[Feature], left: Floats, right: Floats, rng: np.random.Generator
) -> ModelScore:
    """Return a log-likelihood ratio from gradient-boosted trees on the features."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    x = _matrix(features, np.concatenate([left, right]))
    y = np.repeat([1, 0], [len(left), len(right)])
    model: Any = HistGradientBoostingClassifier(
        max_iter=60,
        learning_rate=0.15,
        max_leaf_nodes=12,
        min_samples_leaf=60,
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    with _quietly_on_one_thread():
        model.fit(x, y)

    def read(encoded: Floats) -> Floats:
        with _quietly_on_one_thread():
            return np.asarray(model.decision_function(_matrix(features, encoded)))

    return ModelScore("boosted-tree score", read)


def estimated_score(
    estimator: Any,
    features: Sequence[Feature],
    left: Floats,
    right: Floats,
    rng: np.random.Generator,
) -> ModelScore:
    """Return the score of a classifier of scikit-learn, or of one with the same methods.

    A copy of the classifier is fitted to standardised features. Missing values are 0, and further
    columns mark them.

    Parameters
    ----------
    estimator : object
        A classifier with ``fit``, and with ``predict_proba`` or ``decision_function``.
    features : sequence of Feature
        At least one feature.
    left, right : ndarray, shape [size, k]
        Encoded draws from which to learn. The left draws are class 1.
    rng : numpy.random.Generator
        Generator that gives the seed of a classifier whose ``random_state`` is None.

    Raises
    ------
    ArgumentError
        If the classifier raises an exception, or does not score each draw by a number.
    """
    from sklearn.base import clone

    design = _design(features, np.concatenate([left, right]))
    y = np.repeat([1, 0], [len(left), len(right)])
    name = type(estimator).__name__
    try:
        model: Any = clone(estimator)
        if model.get_params().get("random_state", 0) is None:
            model.set_params(random_state=int(rng.integers(2**31)))
        with _quietly_on_one_thread():
            model.fit(design(np.concatenate([left, right])), y)
    except Exception as error:
        raise ArgumentError(
            f"score must be a classifier that can be fitted, got {name}, which raised "
            f"{type(error).__name__}: {error}"
        ) from error

    def read(encoded: Floats) -> Floats:
        x = design(encoded)
        with _quietly_on_one_thread():
            if hasattr(model, "decision_function"):
                values = np.asarray(model.decision_function(x), dtype=np.float64)
            else:
                p = np.asarray(model.predict_proba(x), dtype=np.float64)[:, 1]
                p = np.clip(p, 1e-12, 1 - 1e-12)
                values = np.log(p) - np.log1p(-p)
        if values.shape != (len(encoded),):
            raise ArgumentError(
                f"score must be a classifier that gives one number for each draw, got {name}, "
                f"which gave shape {values.shape}"
            )
        return np.nan_to_num(values)

    some = left[:_ALONE]
    if not np.allclose(read(some), np.concatenate([read(row[None]) for row in some]), atol=1e-6):
        raise ArgumentError(
            f"score must be a classifier that scores each draw by itself, got {name}, whose score "
            "of a draw depends on the other draws that are passed"
        )
    return ModelScore(f"score of {name}", read)


def _design(features: Sequence[Feature], seen: Floats) -> Callable[[Floats], Floats]:
    """Return a function that standardises features, and marks those that may be missing."""
    x = _matrix(features, seen)
    gaps = np.isnan(x).any(axis=0)
    center = np.where(gaps, 0.0, np.nan_to_num(x).mean(axis=0))
    spread = np.nan_to_num(x).std(axis=0)
    spread[spread == 0] = 1.0

    def design(encoded: Floats) -> Floats:
        x = _matrix(features, encoded)
        scaled = np.clip((x - center) / spread, -50, 50)
        return np.hstack([np.nan_to_num(scaled), np.isnan(x[:, gaps])])

    return design


@functools.cache
def _thread_pools() -> Any:
    """Return the controller of the thread libraries.

    The controller is cached, because finding the libraries is slow.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def _quietly_on_one_thread() -> Iterator[None]:
    """Use one thread, so that sums are equal on every machine.

    Also hide convergence warnings.
    """
    import warnings

    with _thread_pools().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _matrix(features: Sequence[Feature], encoded: Floats) -> Floats:
    values = np.stack([feature(encoded) for feature in features], axis=1)
    return np.asarray(np.clip(values, -1e30, 1e30))  # the learners do not accept inf


def _quantiles(values: Floats, levels: Floats) -> Floats:
    """Return quantiles of sorted values, with 0.0 for -0.0.

    They are those of :func:`numpy.quantile`, which would order the values again. Huge values are
    scaled down first, because differences would overflow.
    """
    scale = 1 if max(abs(values[0]), abs(values[-1])) < _HUGE else 4
    if scale > 1:
        values = np.clip(values, -_LARGEST, _LARGEST) / scale
    at = levels * (len(values) - 1)
    below = np.minimum(at.astype(np.intp), max(len(values) - 2, 0))
    low, high, part = values[below], values[np.minimum(below + 1, len(values) - 1)], at - below
    step = high - low
    between = np.where(part < 0.5, low + step * part, high - step * (1 - part))
    return np.asarray(scale * between + 0.0)  # no -0.0, whose words would differ from those of 0.0


def _bin_index(values: Floats, edges: Floats) -> NDArray[np.intp]:
    """Return the bin of each value.

    NaN gets an extra bin at the end.
    """
    index = np.searchsorted(edges, values, side="left")
    return np.where(np.isnan(values), len(edges) + 1, index)


def _value_index(values: Floats, seen: Floats) -> NDArray[np.intp]:
    """Return each value's index among the values seen.

    Other values come next, and NaN is last.
    """
    at = np.minimum(np.searchsorted(seen, values), len(seen) - 1)
    index = np.where(seen[at] == values, at, len(seen))
    return np.where(np.isnan(values), len(seen) + 1, index)


def _shrunk_log_ratio(a: NDArray[np.intp], b: NDArray[np.intp]) -> Floats:
    """Return the logarithm of the ratio of rates, moved towards 0 where counts are small."""
    n_left, n_right = max(int(a.sum()), 1), max(int(b.sum()), 1)
    return np.asarray(np.log((a + 0.5) / (n_left + 0.5)) - np.log((b + 0.5) / (n_right + 0.5)))


def runs_of(inside: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return runs of True, each as (index of the edge below, index of the edge above)."""
    padded = np.concatenate([[False], inside, [False]])
    change = np.flatnonzero(padded[1:] != padded[:-1])
    return [(int(start) - 1, int(stop) - 1) for start, stop in change.reshape(-1, 2)]


def _row_hash(rows: Floats) -> NDArray[np.uint64]:
    """Hash each row to 64 bits; NaN equals NaN, and -0.0 equals 0.0."""
    hashes = np.full(rows.shape[0], 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in rows.T:
        clean = np.where(np.isnan(column), np.nan, column + 0.0)
        hashes ^= np.ascontiguousarray(clean).view(np.uint64)
        hashes *= np.uint64(0xFF51AFD7ED558CCD)
        hashes ^= hashes >> np.uint64(32)
    return hashes
