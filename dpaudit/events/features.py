"""Features from which events are built: one-dimensional functions of an output, with descriptions.

The spreads are compared along the generalised eigenvectors of the two covariance matrices. Among
all directions u, the ratio ``u' S_left u / u' S_right u`` is extreme along these eigenvectors. In
coordinates along these eigenvectors, both covariance matrices are diagonal. So the log-likelihood
ratio of two Gaussians with these moments is a sum over the directions,

    sum_i  z_i^2 (1 - 1 / v_i) / 2 + z_i m_i / v_i  +  constant,

Here, z is measured from the mean of the right side, in units of the right side's standard
deviations. In these units, v_i and m_i are the variance and the mean of the left side. Directions
in which the two sides differ no more than by chance are omitted, because they would only add noise.
The size of chance differences is known. For two samples of equal distributions, the ratios of the
covariances nearly lie between ``((1 - h) / (1 - s))^2`` and ``((1 + h) / (1 - s))^2``. Here ``s = k
/ n``, and ``h`` is the root of ``2 s - s^2`` (Wachter 1980, "The limiting empirical measure of
multiple discriminant ratios").

Noise of any scale hides the size of a number. However, noise does not hide a residue that the noise
leaves unchanged. Examples are the parity of a count, a grid to which the value was rounded before,
and the phase of a comb. Such a leak is a difference between the two characteristic functions at one
frequency,

    E_left e^(2 pi i f y) - E_right e^(2 pi i f y),

At this frequency, smooth noise brings both functions near 0. Such frequencies are found in three
ways. First, residues of integers are tested by a chi-square statistic for each modulus. Second,
periods that divide a power of ten or of two are found by folding the outputs at that power. Third,
other frequencies are found by a periodogram over the range of the outputs, and by a search around
its peaks. A peak must exceed the value that chance would reach at any examined frequency. If the
distributions are equal, the power at each frequency is nearly exponential with mean 1.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpaudit.events.encoding import Column, Encoder
from dpaudit.events.screening import SCREENED, binned_excess, chi_square_excess, share_gap

# --- directions along which the two sides differ: in their means, in their spreads, in both ----


Floats = NDArray[np.float64]
Read = Callable[[Floats], Floats]

MAX_SPREADS = 200
"""Largest number of coordinates for which covariance matrices are compared."""

_DIRECTIONS = 2  # Number of directions of different spread that become features.
_QUADRATIC = 16  # Directions that are used in a quadratic score.
_CLIP = 8.0  # Number of standard deviations to which draws are clipped while spreads are learnt.
_SLACK = 1.15  # Required factor above the effect of chance on the ratio of two variances.


def filled(x: Floats) -> Floats:
    """Return encoded outputs with 0 in place of "no answer"."""
    return np.where(np.isnan(x), 0.0, x)


def difference_of_means(left: Floats, right: Floats, numeric: NDArray[np.bool_]) -> Read | None:
    """Return the projection on the difference of means, in units of each coordinate's spread."""
    spread = np.concatenate([filled(left), filled(right)]).std(axis=0)
    gap = filled(left).mean(axis=0) - filled(right).mean(axis=0)
    use = numeric & (spread > 0)
    weights = np.zeros(len(spread))
    weights[use] = gap[use] / spread[use] ** 2
    size = np.linalg.norm(weights)
    if not size > 0:
        return None
    weights /= size
    # A matrix product is not used, because its last digits depend on the number of rows.
    return lambda x: np.asarray((filled(x) * weights).sum(axis=1))


def spreads(
    columns: NDArray[np.intp], left: Floats, right: Floats
) -> Iterator[tuple[Column, Read]]:
    """Yield distances along directions of different spread, followed by the quadratic score.

    Parameters
    ----------
    columns : ndarray of int
        Indices of the columns that hold numbers, at least two.
    left, right : ndarray, shape (n, k)
        Encoded draws from which to learn.

    Yields
    ------
    Column
        Description of the feature.
    callable
        ``[size, k] -> [size]``.
    """
    k, n = len(columns), min(len(left), len(right))
    if k > MAX_SPREADS or n < 4 * k + 50:
        return
    sides = [filled(np.take(x, columns, axis=1)) for x in (left, right)]
    pooled = np.concatenate(sides)
    center, unit = np.median(pooled, axis=0), pooled.std(axis=0)
    moving = unit > 0
    if moving.sum() < 2:
        return
    columns, center, unit = columns[moving], center[moving], unit[moving]
    sides = [np.clip((x[:, moving] - center) / unit, -_CLIP, _CLIP) for x in sides]
    means = [x.mean(axis=0) for x in sides]
    covariances = [np.cov(x, rowvar=False) for x in sides]
    ridge = 1e-9 * np.eye(len(unit))
    try:
        ratios, vectors = linalg.eigh(covariances[0] + ridge, covariances[1] + ridge)
    except linalg.LinAlgError:
        return
    shift = (means[0] - means[1]) @ vectors
    differ = np.abs(np.log(np.maximum(ratios, 1e-12))) > _chance(len(unit), n)
    if not differ.any():
        return
    order = np.argsort(-np.abs(np.log(np.maximum(ratios, 1e-12))), kind="stable")
    middle = center + unit * (means[0] + means[1]) / 2
    weights = vectors / unit[:, None]
    directions = [i for i in order[:_DIRECTIONS].tolist() if differ[i]]
    for rank, i in enumerate(directions, 1):
        name = "distance along the direction of different spread"
        name += f" {rank}" if len(directions) > 1 else ""
        yield Column(name), _distance(columns, middle, weights[:, i])
    use = [i for i in order.tolist() if differ[i] or abs(shift[i]) > 5 * math.sqrt(2 / n)]
    use = use[:_QUADRATIC]
    if len(use) == 1:
        return  # the distance suffices here, because linear scores detect a shift
    start = center + unit * means[1]
    bend = (1 - 1 / np.maximum(ratios[use], 1e-12)) / 2
    slope = shift[use] / np.maximum(ratios[use], 1e-12)
    name = f"quadratic score in {len(use)} direction{'s' * (len(use) > 1)}"
    yield Column(name), _quadratic(columns, start, weights[:, use], bend, slope)


def _chance(k: int, n: int) -> float:
    """Return the logarithm of the largest ratio of spreads that chance alone explains."""
    share = k / n
    h = math.sqrt(2 * share - share**2)
    edge = 2 * math.log((1 + h) / (1 - share))
    return _SLACK * edge + 6 / math.sqrt(n)


def _project(x: Floats, weights: Floats) -> Floats:
    """Return rows times weights.

    Column-by-column sums make the result the same in all batches.
    """
    total = np.zeros((len(x), weights.shape[1]))
    for j, row in enumerate(weights):
        total += x[:, j, None] * row
    return total


def _distance(columns: NDArray[np.intp], middle: Floats, weights: Floats) -> Read:
    return lambda x: np.abs(((filled(np.take(x, columns, axis=1)) - middle) * weights).sum(axis=1))


def _quadratic(
    columns: NDArray[np.intp], start: Floats, weights: Floats, bend: Floats, slope: Floats
) -> Read:
    def read(x: Floats) -> Floats:
        z = _project(filled(np.take(x, columns, axis=1)) - start, weights)
        return np.asarray((z * (bend * z + slope)).sum(axis=1))

    return read


# --- relations between coordinates: equality, order, small gaps, differences of pairs -----------


MAX_PAIRED = 48
"""Number of coordinates of which all pairs are examined."""

_PAIRED_DRAWS = 2000
_TELLING = 6.0  # number of standard errors by which a pair must differ
_MAX_PAIRS = 3
_LEAST = 100  # least number of draws for a search of relations


class YesNo(Column):
    """A column that holds 1 and 0, described as yes and no."""

    def words(self, value: float) -> str:
        """Return the words "yes" or "no"."""
        return {1.0: "yes", 0.0: "no"}.get(value, "no answer")


def relations(
    every: Sequence[Column], columns: NDArray[np.intp], left: Floats, right: Floats
) -> Iterator[tuple[Column, Read, bool]]:
    """Yield relations between the coordinates of a vector that differ between the sides.

    Parameters
    ----------
    every : sequence of Column
        All columns.
    columns : ndarray of int
        Indices of the columns that hold numbers, at least two.
    left, right : ndarray, shape (n, k)
        Encoded draws from which to learn.

    Yields
    ------
    Column
        Description of the feature.
    callable
        ``[size, k] -> [size]``.
    bool
        Whether the order of the values has a meaning.
    """
    if min(len(left), len(right)) < _LEAST:
        return
    for name, read in (
        ("number of coordinates equal to another", _repeats),
        ("smallest gap between two coordinates", _smallest_gap),
        ("number of coordinates above the one before", _ascents),
        ("position of the smallest coordinate", _smallest),
    ):
        of = _on(columns, read)
        if binned_excess(of(left), of(right)) > 0:
            yield Column(name), of, True
    examined = columns[:MAX_PAIRED]
    for i, j in _equal_pairs(left[:_PAIRED_DRAWS, examined], right[:_PAIRED_DRAWS, examined]):
        a, b = int(examined[i]), int(examined[j])
        words = f"{every[a].name} equals {every[b].name}"
        yield YesNo(words, code=_joint(every[a], "==", every[b])), _equality(a, b), False
    for i, j in _related_pairs(left[:, examined], right[:, examined]):
        a, b = int(examined[i]), int(examined[j])
        for sign, words in ((-1.0, "-"), (1.0, "+")):
            name = f"{every[a].name} {words} {every[b].name}"
            code = _joint(every[a], words, every[b])
            yield Column(name, code=code), _combination(a, b, sign), True


def _on(columns: NDArray[np.intp], read: Read) -> Read:
    return lambda x: read(np.take(x, columns, axis=1))


def _joint(one: Column, operator: str, other: Column) -> str:
    return f"{one.code} {operator} {other.code}" if one.code and other.code else ""


def _repeats(x: Floats) -> Floats:
    """Return how many coordinates repeat another coordinate, where NaN equals nothing."""
    return np.asarray((np.diff(np.sort(x, axis=1), axis=1) == 0).sum(axis=1), dtype=np.float64)


def _smallest_gap(x: Floats) -> Floats:
    gaps = np.diff(np.sort(x, axis=1), axis=1)  # NaN is sorted last
    least = np.fmin.reduce(gaps, axis=1)
    return np.asarray(least)


def _ascents(x: Floats) -> Floats:
    return np.asarray((x[:, 1:] > x[:, :-1]).sum(axis=1), dtype=np.float64)


def _smallest(x: Floats) -> Floats:
    return np.asarray(np.where(np.isnan(x), np.inf, x).argmin(axis=1), dtype=np.float64)


def _equality(a: int, b: int) -> Read:
    return lambda x: (x[:, a] == x[:, b]).astype(np.float64)


def _combination(a: int, b: int, sign: float) -> Read:
    return lambda x: np.asarray(x[:, a] + sign * x[:, b])


def _equal_pairs(left: Floats, right: Floats) -> list[tuple[int, int]]:
    """Return the pairs whose probability of being equal differs most between the sides."""
    if not any(_repeats(x).any() for x in (left, right)):
        return []
    i, j = np.triu_indices(left.shape[1], 1)
    a, b = (
        np.array([(x[:, p] == x[:, q]).sum() for p, q in zip(i, j, strict=True)])
        for x in (left, right)
    )
    gaps = np.abs(share_gap(a, b, len(left), len(right)))
    return _best(i, j, gaps)


def _best(i: NDArray[np.intp], j: NDArray[np.intp], gaps: Floats) -> list[tuple[int, int]]:
    best = np.argsort(-gaps, kind="stable")[:_MAX_PAIRS]
    return [(int(i[at]), int(j[at])) for at in best if gaps[at] > _TELLING]


def _related_pairs(left: Floats, right: Floats) -> list[tuple[int, int]]:
    """Return the pairs whose correlation differs most between the sides."""
    a, b = _correlation(left), _correlation(right)
    i, j = np.triu_indices(len(a), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Fisher's transformation has variance of nearly 1 / (n - 3) for any correlation.
        z = np.arctanh(np.clip(a, -1 + 1e-9, 1 - 1e-9)) - np.arctanh(
            np.clip(b, -1 + 1e-9, 1 - 1e-9)
        )
        gaps = np.abs(z[i, j]) / np.sqrt(1 / max(len(left) - 3, 1) + 1 / max(len(right) - 3, 1))
    return _best(i, j, gaps)


def _correlation(x: Floats) -> Floats:
    """Return correlations of values that are clipped to six quartile ranges from the median."""
    x = np.where(np.isnan(x), 0.0, x)
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75], axis=0)
    half_width = 6 * (high - low)
    z = np.clip(x, middle - half_width, middle + half_width) - middle
    spread = z.std(axis=0)
    z = np.where(spread > 0, (z - z.mean(axis=0)) / np.where(spread > 0, spread, 1.0), 0.0)
    return np.asarray(z.T @ z / len(z))


# --- periodicity of an output: residues of integers, fractional parts at a period ---------------


Sides = tuple[Floats, Floats]

MODULI = (*range(2, 17), 17, 19, 20, 23, 24, 25, 29, 31, 32, 50, 60, 64, 100, 128, 256, 1000, 1024)
MAX_SINGLE = 32
"""Number of different values up to which a table of values contains all that residues show."""

_LEAST, _LEAST_WAVES = 100, 1000  # Least numbers of draws for a search of residues and of periods.
_DECIMALS = 9  # Largest number of decimals to which outputs may have been rounded.
_FIRST = 64  # First values, which quickly show that outputs were not rounded.
_BEST = 2  # Numbers of residues and of periods that are kept for one number.
_LARGEST = 2.0**53  # Larger doubles have no low bits.
_FOLDS, _FOLD_CELLS = 4, 4096  # Powers 3 decades or 11 octaves apart, and cells of each.
_RANGE_CELLS = 2**15
_WAVES = 8.0  # Number of periods within the bulk above which bins of equal counts miss a comb.
_SURE = 14.0  # Logarithm of the improbability that a peak needs.
_HARMONICS = (2, 3, 4, 5)


def periodic(name: str, left: Floats, right: Floats) -> Iterator[tuple[Column, Read]]:
    """Yield the residues and the fractional parts of a number that differ between the sides.

    Parameters
    ----------
    name : str
        Name of the number.
    left, right : ndarray, shape (n,)
        Values of the number, one for each learning draw; NaN for a draw without an answer.

    Yields
    ------
    Column
        Description, such as "output mod 7".
    callable
        Function that computes the feature from values of the number.
    """
    left, right = _finite(left), _finite(right)
    pooled = np.concatenate([left, right])
    if min(len(left), len(right)) < _LEAST:
        return
    if len(np.unique(pooled)) <= max(MAX_SINGLE, len(pooled) / 16):
        return
    bulk = float(np.subtract(*np.quantile(pooled, [0.9, 0.1])))
    if bulk == 0:
        return
    decimals = _decimals(pooled)
    if decimals is not None:
        unit = 10.0**decimals
        places = f"{name} / {_words(1 / unit)}" if decimals else name
        for modulus in _moduli(np.rint(left * unit), np.rint(right * unit), bulk * unit):
            yield Column(f"{places} mod {modulus}"), _residue(modulus, unit)
    if min(len(left), len(right)) < _LEAST_WAVES:
        return
    periods = _along_range(left, right, pooled, 1 / unit if decimals is not None else 0.0)
    if decimals is None and not periods:
        periods = _folded(left, right, pooled, bulk)
    for period in periods:
        if decimals is None or not _is_modulus(period * unit):
            yield Column(f"fractional part of {name} / {_words(period)}"), _fraction(period)


def _finite(values: Floats) -> Floats:
    known = values[np.isfinite(values)][:SCREENED]
    return known[np.abs(known) < _LARGEST]


def _decimals(values: Floats) -> int | None:
    """Return the largest number of decimals of the values, or None if it is too large."""
    largest = float(np.abs(values).max())
    for decimals in range(_DECIMALS + 1):
        unit = 10.0**decimals
        if largest * unit >= 2.0**40 and decimals:
            return None
        for part in (values[:_FIRST] * unit, values * unit):
            if not np.all(np.abs(part - np.rint(part)) <= 1e-12 * np.abs(part)):
                break
        else:
            return decimals
    return None


def _residue(modulus: int, unit: float) -> Read:
    if unit == 1.0:
        return lambda y: np.mod(y, modulus)
    return lambda y: np.mod(np.rint(y * unit), modulus)


def _fraction(period: float) -> Read:
    def read(y: Floats) -> Floats:
        turns = y / period
        return np.asarray(turns - np.floor(turns))

    return read


def _is_modulus(period: float) -> bool:
    return abs(period - round(period)) < 1e-6 * period and round(period) <= max(MODULI)


def _words(period: float) -> str:
    return f"{period:.8g}"


def _moduli(left: Floats, right: Floats, bulk: float) -> list[int]:
    """Return the moduli whose residues differ most, among moduli much smaller than the bulk."""
    sides = [side.astype(np.int64) for side in (left, right)]
    found = []
    for modulus in MODULI:
        if modulus * _WAVES > bulk:
            break
        a, b = (np.bincount(side % modulus, minlength=modulus) for side in sides)
        excess = chi_square_excess(a, b)
        if excess > 0:
            found.append((-excess, modulus))
    return [modulus for _, modulus in sorted(found)[:_BEST]]


# --- periods of real numbers ---


def _folded(left: Floats, right: Floats, pooled: Floats, bulk: float) -> list[float]:
    """Return small periods that divide a power of ten or of two, which programs often use."""
    peaks = []
    for base, apart in ((10.0, 3), (2.0, 11)):
        top = math.floor(math.log(bulk, base))
        for k in range(_FOLDS):
            fold = base ** (top - apart * k)
            if np.abs(pooled).max() / fold * _FOLD_CELLS > _LARGEST:
                break
            counts = []
            for side in (left, right):
                turns = side / fold
                turns = turns - np.floor(turns)
                cells = np.minimum((turns * _FOLD_CELLS).astype(np.int64), _FOLD_CELLS - 1)
                counts.append(np.bincount(cells, minlength=_FOLD_CELLS))
            power = _powers(*counts)
            least = max(math.ceil(_WAVES * fold / bulk), 1)
            peaks += _peaks(power, least, fold)
    return _distinct(peaks)


def _along_range(left: Floats, right: Floats, pooled: Floats, unit: float) -> list[float]:
    """Return a period of any value that is not too small, from a periodogram of the outputs' bulk.

    If all outputs are multiples of `unit`, the cells have the width `unit`.
    """
    low, q10, q90, high = np.quantile(pooled, [0.005, 0.1, 0.9, 0.995])
    width = unit or (high - low) / _RANGE_CELLS
    cells = int((high - low) / width) + 1
    if not 4 * _WAVES < cells <= 2 * _RANGE_CELLS:
        return []
    bulk = [side[(side >= low) & (side <= high)] for side in (left, right)]
    if min(map(len, bulk)) < 2:
        return []
    counts = [
        np.bincount(((side - low) / width).astype(np.int64), minlength=cells) for side in bulk
    ]
    size = 2 ** math.ceil(math.log2(2 * cells))
    power = _powers(*(np.append(c, np.zeros(size - len(c))) for c in counts))
    least = math.ceil(_WAVES * size * width / (q90 - q10))
    found = _peaks(power, least, size * width)
    return _distinct([_refined(bulk, period, high - low) for period in found])


def _powers(left: NDArray[Any], right: NDArray[Any]) -> Floats:
    """Return the power of the difference of characteristic functions.

    By chance, this power is about Exp(1).
    """
    a, b = left.sum(), right.sum()
    return np.asarray(np.abs(np.fft.rfft(left / a - right / b)) ** 2 / (1 / a + 1 / b))


def _peaks(power: Floats, least: int, longest: float) -> list[float]:
    """Return the periods of the largest peak and of the slowest peak, if these peaks are certain.

    `longest` is the period that belongs to the first frequency.
    """
    if least >= len(power) - 1:
        return []
    sure = _SURE + math.log(len(power))
    inside = power[least:-1]
    best = int(inside.argmax()) + least
    if power[best] <= sure:
        return []
    # The slowest wave of a comb with harmonics shows the whole comb. A quarter of the power is
    # enough.
    for harmonic in reversed(_HARMONICS):
        slower = round(best / harmonic)
        if slower >= least and power[slower] > max(sure, power[best] / 4):
            return [longest / slower]
    return [longest / best]


def _refined(sides: Sequence[Floats], period: float, span: float) -> float:
    """Find the largest power near a frequency; prefer a round period of nearly equal power."""
    frequency, step = 1 / period, 0.5 / span
    for _ in range(3):
        around = frequency + step * np.linspace(-1, 1, 17)
        frequency = float(around[np.argmax(_power_at(sides, around))])
        step /= 6
    found = 1 / frequency
    rounded = [float(f"{found:.{digits}g}") for digits in (1, 2, 3, 4, 5)]
    powers = _power_at(sides, 1 / np.array([*rounded, found]))
    return next(
        p for p, power in zip([*rounded, found], powers, strict=True) if power >= 0.97 * powers[-1]
    )


def _power_at(sides: Sequence[Floats], frequencies: Floats) -> Floats:
    means = [
        np.array([np.exp(2j * np.pi * (f * side - np.floor(f * side))).mean() for f in frequencies])
        for side in sides
    ]
    return np.asarray(np.abs(means[0] - means[1]) ** 2)


def _distinct(periods: Sequence[float]) -> list[float]:
    """Return the periods, but omit each period that nearly equals another period."""
    kept: list[float] = []
    for period in periods:
        if all(abs(period / other - 1) > 1e-6 for other in kept):
            kept.append(period)
    return kept[:_BEST]


_HUGE = 1e100
"""Outputs beyond this are moved to it while directions are learnt, so that squares are finite."""

_PERIODIC = 16  # number of coordinates in which periods are searched

MAX_COORDINATES = 48
"""Number of coordinates that are examined one by one; the rest count in norms and directions."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A number computed from each encoded output; NaN if there is no answer.

    Parameters
    ----------
    column : Column
        Name of the feature and, for categories, its labels.
    read : callable
        ``[size, k] -> [size]``.
    coordinate : bool
        Whether the feature is one coordinate of the output and not a summary of several.
    ordered : bool
        Whether the order of the values has a meaning.
    learnt : bool
        Whether draws played a part in the choice of the feature.
    """

    column: Column
    read: Callable[[Floats], Floats] = field(repr=False)
    coordinate: bool = False
    ordered: bool = True
    learnt: bool = False

    @property
    def name(self) -> str:
        """Name of the feature in reports."""
        return self.column.name

    def __call__(self, encoded: Floats) -> Floats:
        """Return the feature of each output, shape ``[size]``."""
        with np.errstate(over="ignore", invalid="ignore"):  # sums of huge outputs are inf or NaN
            return self.read(encoded)


def all_features(encoder: Encoder, left: Floats, right: Floats) -> list[Feature]:
    """Return the features worth examining, learnt on encoded draws, simplest first.

    First come coordinates and features of texts. If there are too many coordinates, only the
    coordinates whose means or answer rates differ most are taken. Vectors also have the mean,
    norms, extremes, order statistics, the direction of the difference of means, and the number of
    missing answers. Streams of yes and no also have the first and the last position of each answer.
    Further features are kept only if they differ between the sides. These further features are
    directions of different spread, relations between coordinates, residues and fractional parts.
    """
    own = encoder.own
    chosen = (
        own if len(own) <= MAX_COORDINATES else own[_most_different(left[:, own], right[:, own])]
    )
    left, right = (np.clip(x, -_HUGE, _HUGE) for x in (left, right))
    features = [
        Feature(encoder.columns[j], _coordinate(j), j in own, encoder.columns[j].labels is None)
        for j in [*encoder.form_columns, *chosen.tolist()]
    ]
    features += _text_features(encoder)
    numeric = np.array([c.labels is None and not c.derived for c in encoder.columns])
    if numeric.sum() >= 2:
        features += _many(encoder, numeric, left, right)
    for j in [j for j in chosen.tolist() if numeric[j]][:_PERIODIC]:
        found = periodic(encoder.columns[j].name, left[:, j], right[:, j])
        features += [Feature(c, _after(_coordinate(j), read), learnt=True) for c, read in found]
    return features


def _many(
    encoder: Encoder, numeric: NDArray[np.bool_], left: Floats, right: Floats
) -> list[Feature]:
    """Return the features that combine several numbers."""
    features: list[Feature] = []
    with np.errstate(invalid="ignore"):
        both = np.concatenate([left, right])
        missing = np.isnan(both).any(axis=0)
        binary = numeric & (np.isnan(both) | (both == 0) | (both == 1)).all(axis=0)
    values = numeric & ~binary
    if binary.sum() >= 2:
        features += _stream_features(
            np.flatnonzero(binary), encoder.is_matrix and bool(binary.all())
        )
    if values.sum() >= 2:
        is_matrix = encoder.is_matrix and bool(values.all()) and not missing.any()
        features += _vector_features(np.flatnonzero(values), is_matrix)
        if missing[values].any():
            features += _answer_features(np.flatnonzero(values))
    direction = difference_of_means(left, right, numeric)
    if direction is not None:
        name = "difference-of-means direction"
        features.append(Feature(Column(name), direction, learnt=True))
    if missing.any():
        features.append(
            _summary(
                "number of missing answers",
                lambda x: np.isnan(x).sum(axis=1).astype(float),
                "np.isnan(x).sum(axis=1)" * encoder.is_matrix,
            )
        )
    if values.sum() >= 2:
        columns = np.flatnonzero(values)
        for column, read in spreads(columns, left, right):
            features.append(Feature(column, read, learnt=True))
        examined = (x[:SCREENED] for x in (left, right))
        for column, read, ordered in relations(encoder.columns, columns, *examined):
            features.append(Feature(column, read, ordered=ordered, learnt=True))
        total = _of(columns, lambda x: x.sum(axis=1))
        for column, read in periodic("sum of coordinates", total(left), total(right)):
            features.append(Feature(column, _after(total, read), learnt=True))
    return features


def _after(
    first: Callable[[Floats], Floats], read: Callable[[Floats], Floats]
) -> Callable[[Floats], Floats]:
    return lambda x: read(first(x))


def _text_features(encoder: Encoder) -> list[Feature]:
    """Return the features of texts, except the texts themselves."""
    return [
        Feature(column, _coordinate(j), False, column.labels is None, learnt=True)
        for j, column in enumerate(encoder.columns)
        if column.derived and j not in encoder.form_columns
    ]


def _summary(name: str, read: Callable[[Floats], Floats], code: str = "") -> Feature:
    return Feature(Column(name, code=code), read)


def _coordinate(j: int) -> Callable[[Floats], Floats]:
    return lambda x: x[:, j]


def _most_different(left: Floats, right: Floats) -> NDArray[np.intp]:
    gap = np.abs(filled(left).mean(axis=0) - filled(right).mean(axis=0))
    spread = np.sqrt(filled(left).var(axis=0) + filled(right).var(axis=0)) + 1e-300
    answers = np.abs(np.isnan(left).mean(axis=0) - np.isnan(right).mean(axis=0))
    best = np.argsort(-(gap / spread + answers), kind="stable")[:MAX_COORDINATES]
    return np.sort(best)


def _of(
    columns: NDArray[np.intp], reduce: Callable[[Floats], Floats], empty: float = 0.0
) -> Callable[[Floats], Floats]:
    def read(x: Floats) -> Floats:
        # In contiguous memory, the sum of a row is the same for any number of rows.
        part = np.take(x, columns, axis=1)
        return reduce(np.where(np.isnan(part), empty, part))

    return read


class _Sorted:
    """Sorted rows, with NaN last.

    The latest outputs of either side are cached. If the object is sent to a worker, the cache is
    not sent.
    """

    def __init__(self, columns: NDArray[np.intp]) -> None:
        self._columns = columns
        self._known: list[tuple[weakref.ref[Floats], Floats]] = []

    def __reduce__(self) -> tuple[type[_Sorted], tuple[NDArray[np.intp]]]:
        return _Sorted, (self._columns,)

    def __call__(self, x: Floats) -> Floats:
        for of, rows in self._known:
            if of() is x:
                return rows
        rows = np.sort(np.take(x, self._columns, axis=1), axis=1)
        self._known = [*self._known[-1:], (weakref.ref(x), rows)]
        return rows


def _vector_features(columns: NDArray[np.intp], is_matrix: bool) -> list[Feature]:
    """Return the features of vectors, with code if the columns are the outputs themselves."""
    in_order = _Sorted(columns)

    def of(reduce: Callable[[Floats], Floats], empty: float = 0.0) -> Callable[[Floats], Floats]:
        return _of(columns, reduce, empty)

    def order_statistic(rank: int) -> Callable[[Floats], Floats]:
        return lambda x: np.ascontiguousarray(in_order(x)[:, rank])

    k = len(columns)
    readers = [
        ("mean of coordinates", of(lambda x: x.mean(axis=1)), "x.mean(axis=1)"),
        ("L1 norm", of(lambda x: np.abs(x).sum(axis=1)), "np.abs(x).sum(axis=1)"),
        ("L2 norm", of(lambda x: np.sqrt((x * x).sum(axis=1))), "np.sqrt((x * x).sum(axis=1))"),
        (
            "largest absolute coordinate",
            of(lambda x: np.abs(x).max(axis=1)),
            "np.abs(x).max(axis=1)",
        ),
        (
            "position of the largest coordinate",
            of(lambda x: x.argmax(axis=1) * 1.0, -1e300),
            "x.argmax(axis=1)",
        ),
    ]
    ranks = range(k) if k <= 10 else sorted({0, 1, k // 4, k // 2, 3 * k // 4, k - 2, k - 1})
    readers += [
        (
            f"order statistic {rank + 1} of {k}",
            order_statistic(rank),
            f"np.sort(x, axis=1)[:, {rank}]",
        )
        for rank in ranks
    ]
    return [_summary(name, read, code * is_matrix) for name, read, code in readers]


def _first(hit: NDArray[np.bool_]) -> Floats:
    """Return the position of the first True in each row; NaN if a row has no True."""
    return np.where(hit.any(axis=1), hit.argmax(axis=1), np.nan)


def _last(hit: NDArray[np.bool_]) -> Floats:
    return np.asarray(hit.shape[1] - 1 - _first(hit[:, ::-1]))


def _stream_features(columns: NDArray[np.intp], is_matrix: bool) -> list[Feature]:
    """Return the features of streams of yes and no, the first with code if `is_matrix`."""
    readers: dict[str, Callable[[Floats], Floats]] = {
        "number of yes": lambda x: (x == 1).sum(axis=1) * 1.0,
        "position of the first yes": lambda x: _first(x == 1),
        "position of the last yes": lambda x: _last(x == 1),
        "position of the first no": lambda x: _first(x == 0),
        "position of the last no": lambda x: _last(x == 0),
    }
    code = {"number of yes": "(x == 1).sum(axis=1)"} if is_matrix else {}

    def of(read: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
        return lambda x: read(x[:, columns])

    return [_summary(name, of(read), code.get(name, "")) for name, read in readers.items()]


def _answer_features(columns: NDArray[np.intp]) -> list[Feature]:
    """For vectors with gaps, return the position and the value of the first answer."""

    def position(x: Floats) -> Floats:
        return _first(~np.isnan(x[:, columns]))

    def value(x: Floats) -> Floats:
        part = x[:, columns]
        at = (~np.isnan(part)).argmax(axis=1)
        return np.asarray(part[np.arange(part.shape[0]), at])

    return [_summary("position of the first value", position), _summary("first value", value)]
