"""The floating-point attack, which uses information in the low bits of an output.

In exact arithmetic, ``value + noise`` hides the value. In float64, the sum may reveal the value.
The reason is that the sum is rounded to the unit in the last place of its *larger* term. Also, a
sampler that inverts a distribution function reaches only a small part of all doubles. So the set of
possible sums depends on the value (Mironov 2012, "On significance of the least significant bits for
differential privacy"; Casacuberta et al. 2022; Haney et al. 2022). The features of this module pass
such traces of the value to the learners of events.

The first feature is the granularity, which is the exponent of the last set bit. A granularity of g
means that ``y`` is a multiple of ``2^g``. The second feature is a code of sign, exponent and
trailing zeros. The code has few enough values for a table of atoms. Both features are also computed
after public reference values are subtracted. The last feature says whether ``value +
Laplace(scale)`` noise, drawn by numpy's method, can give ``y`` at all.

All choices use only exploration draws, so no choice can make a certified number wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.errors import ArgumentError
from dpaudit.events.encoding import Column, Encoder
from dpaudit.events.features import Feature, YesNo
from dpaudit.events.scores import TableScore
from dpaudit.neighbors import NeighborPair

# --- origin of a double: its last set bit, and whether a known sampler can produce it ----------


Floats = NDArray[np.float64]

GRANULARITY_OF_ZERO = 1024.0
"""Zero is a multiple of every power of two; no other double has a granularity beyond 971."""

_EXPONENTS, _ZEROS = 19, 25


def granularity(y: Floats) -> Floats:
    """Return the exponent of the last set bit of each double; NaN for NaN and infinities.

    Examples
    --------
    >>> granularity(np.array([1.0, 0.75, 96.0, 5e-324])).tolist()
    [0.0, -2.0, 5.0, -1074.0]
    """
    significand, lowest = _dissect(y)
    zeros = np.bitwise_count((significand & -significand) - np.int64(1))
    found = np.where(significand == 0, GRANULARITY_OF_ZERO, lowest + zeros.astype(float))
    return np.where(np.isfinite(y), found, np.nan)


def trailing_zeros(y: Floats) -> Floats:
    """Return the granularity in units in the last place, which is the number of trailing zeros.

    The granularity is 53 for zero and NaN for NaN and infinities.
    """
    _, lowest = _dissect(y)
    return np.where(y == 0, 53.0, granularity(y) - lowest)


def _dissect(y: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the integers `significand` and `lowest` such that ``|y| = significand 2^lowest``."""
    bits = np.ascontiguousarray(y, dtype=np.float64).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    significand = (bits & ((1 << 52) - 1)) | (np.minimum(exponent, 1) << 52)
    return significand, np.maximum(exponent, 1) - 1075.0


@dataclass(frozen=True)
class BitCode(Column):
    """Sign, exponent and trailing zeros as one integer, which has at most 952 values.

    Exponents and numbers of zeros outside their windows are moved to the ends of the windows.
    """

    exponent: int = 0
    zeros: int = 0

    @classmethod
    def learn(cls, name: str, y: Floats) -> BitCode:
        """Return the code whose windows cover the draws."""
        y = y[np.isfinite(y) & (y != 0)]
        if y.size == 0:
            return cls(name)
        middle = int(np.median(np.frexp(y)[1]))  # 2^(middle - 1) <= |y| < 2^middle
        return cls(name, None, middle - 15, int(np.quantile(trailing_zeros(y), 0.01)))

    def read(self, y: Floats) -> Floats:
        """Return the code of each double; NaN for NaN and infinities."""
        exponent = np.clip(np.frexp(y)[1] - 1 - self.exponent, 0, _EXPONENTS - 1)
        zeros = np.clip(trailing_zeros(y) - self.zeros, 0, _ZEROS - 1)
        code = np.where(y == 0, -1.0, exponent * _ZEROS + zeros)
        code = np.where(np.signbit(y), -2 - code, code + 1)
        return np.where(np.isfinite(y), code, np.nan)

    def words(self, value: float) -> str:
        """Return sign, size and last bit in words.

        The two ends of a window stand for all values beyond the window.
        """
        if np.isnan(value):
            return "no answer"
        sign, code = ("-", -2 - int(value)) if value < 0 else ("+", int(value) - 1)
        if code < 0:
            return f"{sign}0"
        exponent, zeros = code // _ZEROS + self.exponent, code % _ZEROS + self.zeros
        return f"{sign}2^{exponent}.. with last bit 2^{exponent - 52 + zeros}"


def reachable(
    y: Floats, value: float, scale: float, *, textbook: bool = False
) -> NDArray[np.bool_]:
    """Return whether ``value + Laplace(scale)`` noise from a given sampler can equal each `y`.

    numpy draws a number U, which is a multiple of 2^-53. If U is below 1/2, numpy returns ``scale *
    log(U + U)``; if U is above 1/2, numpy returns ``-scale * log(2 - U - U)`` (``random_laplace``
    in numpy's ``distributions.c``). Suppose that the compiler fuses no multiplication with an
    addition. Then ``value + rng.laplace(scale=scale)`` and ``rng.laplace(value, scale)`` give the
    same result. This function inverts the formula and tries the nearest values of U on both sides.

    Parameters
    ----------
    y : ndarray, shape [size]
        Outputs to test.
    value : float
        Value to which the noise is added.
    scale : float
        Scale of the noise, > 0.
    textbook : bool, optional
        Whether the sampler is ``scale * sign(u) * log(1 - 2 |u|)`` for u = U - 1/2, with the
        logarithm of Python or numpy. If False, the sampler is numpy's own. The default is False.
    """
    step = np.arange(-3.0, 4.0)[:, None]
    with np.errstate(all="ignore"):
        noise = y - value
        grid = np.rint(np.exp(-np.abs(noise) / scale) * 2.0**52)
        if textbook:
            w = np.clip(grid + step, 1.0, 2.0**52) * 2.0**-52
            sizes = [np.where(noise > 0, -scale, scale) * log(w) for log in (_libm_log, np.log)]
        else:
            u = np.clip(np.where(noise > 0, 2.0**53 - grid, grid) + step, 1.0, 2.0**53 - 1)
            u *= 2.0**-53
            upper = u >= 0.5
            size = scale * _libm_log(np.where(upper, 2.0 - u - u, u + u))
            sizes = [np.where(upper, -size, size)]
        return np.asarray(np.any([(value + size == y).any(axis=0) for size in sizes], axis=0))


def _libm_log(w: Floats) -> Floats:
    """Return the logarithm of the C library.

    The last bit of np.log may differ. numpy's samplers use the C library.
    """
    return np.asarray(special.xlogy(1.0, w))


Read = Callable[[Floats], Floats]

MAX_REFERENCES, MAX_SCALES = 6, 8
MAX_COLUMNS = 8
"""Largest number of coordinates whose bits are examined one by one: those that differ most."""

_MAX_REFERENCE_COLUMNS = 12
_SCREEN = (32, 500)
_NICE_SCALES = 64
_ALWAYS, _GAP = 0.98, 0.1
_COORDINATES = "number of coordinates impossible for noise on"


@dataclass(frozen=True)
class FloatAttack:
    """Public guesses of values and scales for the floating-point attack.

    Parameters
    ----------
    references : tuple of float, optional
        Values to which noise may have been added.
    scales : tuple of float, optional
        Possible scales of this noise.
    """

    references: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, most, check in (
            ("references", 4 * MAX_REFERENCES, _validate.finite),
            ("scales", 4 * MAX_SCALES, _validate.positive),
        ):
            values = getattr(self, name)
            if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
                raise TypeError(f"{name} must be a sequence of numbers, got {values!r}")
            values = tuple(check(**{name: value}) for value in values)
            if len(values) > most:
                raise ArgumentError(f"{name} must hold at most {most} numbers, got {len(values)}")
            object.__setattr__(self, name, values)

    @classmethod
    def for_pair(cls, pair: NeighborPair, claim: Claim) -> FloatAttack:
        """Return guesses derived from the claim and the two inputs, which the auditor knows."""
        if (
            not isinstance(pair.left, np.ndarray)
            or pair.left.dtype.kind not in "biuf"
            or 0 in (pair.left.size, pair.right.size)
        ):
            return cls()
        left, right = pair.left.astype(float), pair.right.astype(float)
        references: list[float] = []
        radii = [pair.relation.radius or 1.0]
        with np.errstate(all="ignore"):
            if pair.relation.name == "within_sensitivity":
                radii += [radii[0] * left.size, float(np.abs(left - right).sum())]
            else:
                for statistic in (np.sum, np.mean):
                    both = [np.ravel(statistic(side, axis=0)) for side in (left, right)]
                    # A sum in another order may have another last bit.
                    references += [float(statistic(side)) for side in (left, right)]
                    references += [float(x[0]) for x in both]
                    radii.append(float(np.abs(both[0] - both[1]).sum()))
            references += np.setxor1d(left, right).tolist()
            references += np.intersect1d(left, right).tolist()
            epsilon = claim.point[0] if claim.point is not None else 1.0
            scales = [radius / epsilon for radius in radii if epsilon > 0] + radii
        positive = [s for s in scales if 0 < s < math.inf]
        return cls(_at_most(references, MAX_REFERENCES), _at_most(positive, MAX_SCALES))


def _at_most(values: Iterable[float], most: int) -> tuple[float, ...]:
    unique = dict.fromkeys(v + 0.0 for v in values if math.isfinite(v))
    return tuple(unique)[:most]


# --- hypotheses that explain one side ---


@dataclass(frozen=True)
class _Hypothesis:
    """A value, a scale and a sampler that could explain one side but not the other."""

    value: float
    scale: float
    textbook: bool
    side: str = ""
    gap: float = 0.0

    def read(self, y: Floats) -> Floats:
        found = reachable(y, self.value, self.scale, textbook=self.textbook)
        return np.where(np.isnan(y), np.nan, found.astype(float))

    def judged(self, left: Floats, right: Floats) -> _Hypothesis | None:
        """Return the hypothesis for the one side that it explains, or None."""
        for draws in _SCREEN:  # most hypotheses are wrong, which a small number of draws shows
            rates = [float(self.read(x[:draws]).mean()) for x in (left, right)]
            gap = abs(rates[0] - rates[1])
            if not (max(rates) >= _ALWAYS and gap >= _GAP):
                return None
        return replace(self, side="left" if rates[0] > rates[1] else "right", gap=gap)

    def __str__(self) -> str:
        sampler = "inverted" if self.textbook else "numpy's"
        return f"{self.value:.6g} + {sampler} Laplace({self.scale:.6g}) noise"


def _explanations(
    left: Floats, right: Floats, references: Sequence[float], scales: Sequence[float]
) -> list[_Hypothesis]:
    """Return hypotheses that can give all of one side but not the other, best first."""
    left, right = (x[np.isfinite(x)] for x in (left, right))
    if min(len(left), len(right)) < _SCREEN[0]:
        return []
    tried = dict.fromkeys([*scales, *_nice_scales(left), *_nice_scales(right)])
    guesses = (_Hypothesis(v, s, t) for t in (False, True) for v in references for s in tried)
    kept = [found for guess in guesses if (found := guess.judged(left, right)) is not None]
    kept.sort(key=lambda found: -found.gap)
    return [h for side in ("left", "right") for h in [h for h in kept if h.side == side][:2]]


def _nice_scales(y: Floats) -> list[float]:
    """Return round scales close to the maximum likelihood estimate of the scale."""
    with np.errstate(all="ignore"):
        likely = float(np.abs(y - np.median(y)).mean())
    if not 1e-100 < likely < 1e100:
        return []
    slack = 4 * likely / math.sqrt(len(y))
    candidates = {p / q: float(p + q) for p in range(1, 13) for q in range(1, 13)}
    for digits in (1, 2, 3):
        for invert in (False, True):
            about = 1 / likely if invert else likely
            power = math.floor(math.log10(about)) - digits + 1
            first = round(about / 10.0**power)
            for n in range(first - 40, first + 41):
                written = float(f"{n}e{power}")
                if written > 0:
                    candidates.setdefault(1 / written if invert else written, 10.0**digits)
    inside = [s for s in candidates if abs(s - likely) <= slack]
    return sorted(inside, key=lambda s: (candidates[s], abs(s - likely)))[:_NICE_SCALES]


# --- features ---


def bit_features(
    encoder: Encoder, left: Floats, right: Floats, guesses: FloatAttack
) -> list[Feature]:
    """Return the features of the low bits of real coordinates.

    Parameters
    ----------
    encoder : Encoder
        The encoder of the outputs.
    left, right : ndarray, shape [size, k]
        Encoded exploration draws of both sides.
    guesses : FloatAttack
        Values to which noise may have been added, and its possible scales. Scales near the maximum
        likelihood estimate are also tried.

    Returns
    -------
    list of Feature
        The list is empty if no coordinate is a real number, because categories and integers have no
        low bits.
    """
    real = [j for j, c in enumerate(encoder.columns) if c.labels is None and _real(left, right, j)]
    chosen = _most_telling(real, left, right)
    features: list[Feature] = []
    blamed: dict[str, dict[int, _Hypothesis]] = {"left": {}, "right": {}}
    for j in chosen:
        name, sides = encoder.columns[j].name, (left[:, j], right[:, j])
        features.append(_of(j, Column(f"granularity of {name}"), granularity))
        features.append(_of(j, Column(f"trailing zero bits of {name}"), trailing_zeros))
        features.append(_code(j, f"bits of {name}", *sides, 0.0))
        head = _MAX_REFERENCE_COLUMNS // len(chosen)
        for reference in [r for r in guesses.references if r != 0][:head]:
            words = f"{name} - {reference:.6g}" if reference > 0 else f"{name} + {-reference:.6g}"
            features.append(
                _of(j, Column(f"granularity of {words}"), _after(granularity, reference))
            )
            features.append(_code(j, f"bits of {words}", *sides, reference))
        for found in _explanations(*sides, guesses.references, guesses.scales):
            column = YesNo(f"{name} can come from {found}")
            features.append(replace(_of(j, column, found.read), ordered=False, learnt=True))
            blamed[found.side].setdefault(j, found)
    if len(real) > 1:
        features.append(Feature(Column("granularity of the finest coordinate"), _finest(real)))
        features += [_unexplained(side, found) for side, found in blamed.items() if len(found) > 1]
    return features


def _real(left: Floats, right: Floats, j: int) -> bool:
    """Return whether any draw of the column is neither an integer nor missing."""
    return any(np.any(np.isfinite(x[:, j]) & (x[:, j] != np.rint(x[:, j]))) for x in (left, right))


def _most_telling(columns: list[int], left: Floats, right: Floats) -> list[int]:
    if len(columns) <= MAX_COLUMNS:
        return columns
    head = slice(None, 4000)

    def excess(j: int) -> float:
        code = _code(j, "", left[head, j], right[head, j], 0.0)
        return TableScore.learn(code, code(left[head]), code(right[head])).significance

    return sorted(sorted(columns, key=lambda j: -excess(j))[:MAX_COLUMNS])


def _of(j: int, column: Column, read: Read) -> Feature:
    return Feature(column, lambda x: read(x[:, j]))


def _after(read: Read, reference: float) -> Read:
    """Return a function that subtracts the reference in float64."""
    return lambda y: read(y - reference)


def _code(j: int, name: str, left: Floats, right: Floats, reference: float) -> Feature:
    with np.errstate(over="ignore", invalid="ignore"):
        code = BitCode.learn(name, np.concatenate([left, right]) - reference)
    # In a table of many atoms, the order has no meaning.
    feature = _of(j, code, _after(code.read, reference) if reference else code.read)
    return replace(feature, ordered=False)


def _finest(columns: list[int]) -> Read:
    def read(x: Floats) -> Floats:
        each = granularity(x[:, columns])
        finest = np.where(np.isnan(each), np.inf, each).min(axis=1)
        return np.where(np.isinf(finest), np.nan, finest)

    return read


def _unexplained(side: str, found: dict[int, _Hypothesis]) -> Feature:
    def read(x: Floats) -> Floats:
        misses = [hypothesis.read(x[:, j]) == 0 for j, hypothesis in found.items()]
        return np.asarray(np.sum(misses, axis=0), dtype=np.float64)

    return Feature(Column(f"{_COORDINATES} the {side} values"), read, learnt=True)


# --- words ---


def explanation(event_feature_name: str) -> str:
    """Return a note for a report, which says what leak was found and what to use instead.

    Parameters
    ----------
    event_feature_name : str
        Name of a feature of :func:`bit_features`, or the description of an event that contains such
        a name. For any other text, the note is empty.
    """
    if "can come from" in event_feature_name or _COORDINATES in event_feature_name:
        found = (
            "Some outputs are doubles that float noise added to the other side's value cannot "
            "give. A single such output distinguishes the two sides."
        )
    elif any(s in event_feature_name for s in ("granularity of", "trailing zero", "bits of")):
        # Such a table also uses the size of the output, as the note says.
        found = (
            "The event reads the last bits of the output in addition to its sign and size. These "
            "bits reveal to which value float noise was added. An audit without the "
            "floating-point attack shows whether sign and size alone would suffice."
        )
    else:
        return ""
    return (
        f"{found} Draw discrete (geometric) noise on a fixed lattice to which the value is rounded "
        "first, or use OpenDP's samplers or the snapping mechanism. Never add a float noise sample "
        "to a float."
    )
