"""What repeats along an output: residues of integers, fractional parts at a period.

Noise of any scale hides the size of a number, and none of it hides a residue to which the noise
added nothing: the parity of a count, a grid to which a value was rounded before, the phase of a
comb. Such a leak is a difference between the two characteristic functions at one frequency,

    E_left e^(2 pi i f y) - E_right e^(2 pi i f y),

at which smooth noise leaves both near 0. Frequencies are found in three ways: residues of integers
by a chi-square statistic for each modulus; multiples of a power of ten or of two by folding the
outputs at that power; any others by a periodogram over the range of the outputs, and a search
around its peaks. A peak must exceed what any of the frequencies that were looked at would show by
chance: under equal distributions each power is nearly exponential with mean 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Column
from dpaudit.events.screening import SCREENED, chi_square_excess

Floats = NDArray[np.float64]
Read = Callable[[Floats], Floats]
Sides = tuple[Floats, Floats]

MODULI = (*range(2, 17), 17, 19, 20, 23, 24, 25, 29, 31, 32, 50, 60, 64, 100, 128, 256, 1000, 1024)
MAX_SINGLE = 32
"""Different values up to which a table of values says all that residues could."""

_LEAST, _LEAST_WAVES = 100, 1000  # draws from which residues, and any periods, are looked for
_DECIMALS = 9  # that outputs may have been rounded to
_FIRST = 64  # values that tell at once that they were not rounded
_BEST = 2  # residues, and periods, of one number that are kept
_LARGEST = 2.0**53  # beyond it doubles have no low bits
_FOLDS, _FOLD_CELLS = 4, 4096  # powers, three decades or eleven octaves apart, and cells of each
_RANGE_CELLS = 2**15
_WAVES = 8.0  # periods within the bulk of the outputs from which bins of equal counts miss a comb
_SURE = 14.0  # logarithm of how improbable a peak must be
_HARMONICS = (2, 3, 4, 5)


def periodic(name: str, left: Floats, right: Floats) -> Iterator[tuple[Column, Read]]:
    """Yield the residues and the fractional parts of a number that tell the sides apart.

    Parameters
    ----------
    name : str
        Of the number.
    left, right : ndarray, shape (n,)
        Its values on the draws from which to learn; NaN for no answer.

    Yields
    ------
    Column
        Such as "output mod 7".
    callable
        From values of the number to it.
    """
    left, right = _few(left), _few(right)
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


def _few(values: Floats) -> Floats:
    known = values[np.isfinite(values)][:SCREENED]
    return known[np.abs(known) < _LARGEST]


def _decimals(values: Floats) -> int | None:
    """Return how many decimals all values have at most; None where there are many."""
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
    """Return the moduli whose residues differ most, of those that are small beside the bulk."""
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
    """Look for small periods that divide a power of ten or of two, as programs choose them."""
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
    """Look for any period that is not too small, by a periodogram over the bulk of the outputs.

    Where all outputs are multiples of `unit`, only cells of that width mean something.
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
    """Power of the difference of characteristic functions at each frequency; near Exp(1)."""
    a, b = left.sum(), right.sum()
    return np.asarray(np.abs(np.fft.rfft(left / a - right / b)) ** 2 / (1 / a + 1 / b))


def _peaks(power: Floats, least: int, longest: float) -> list[float]:
    """Return the periods of the largest peak and of the slowest one, where they are sure.

    The period of the first frequency is `longest`.
    """
    if least >= len(power) - 1:
        return []
    sure = _SURE + math.log(len(power))
    inside = power[least:-1]
    best = int(inside.argmax()) + least
    if power[best] <= sure:
        return []
    # Of a comb with harmonics the slowest wave shows all; a quarter of the power is enough.
    for harmonic in reversed(_HARMONICS):
        slower = round(best / harmonic)
        if slower >= least and power[slower] > max(sure, power[best] / 4):
            return [longest / slower]
    return [longest / best]


def _refined(sides: Sequence[Floats], period: float, span: float) -> float:
    """Climb the power around a frequency, and take a round period where it is as good."""
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
    """Return periods without those that are nearly another's."""
    kept: list[float] = []
    for period in periods:
        if all(abs(period / other - 1) > 1e-6 for other in kept):
            kept.append(period)
    return kept[:_BEST]
