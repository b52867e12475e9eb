"""How a double was made: its last set bit, and whether a known sampler could have made it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.events.encoding import Column

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
    """Return the granularity in units in the last place: zeros at the end of the significand.

    53 for zero, NaN for NaN and infinities.
    """
    _, lowest = _dissect(y)
    return np.where(y == 0, 53.0, granularity(y) - lowest)


def _dissect(y: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Significand as an integer, and the exponent of its unit: ``|y| = significand 2^lowest``."""
    bits = np.ascontiguousarray(y, dtype=np.float64).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    significand = (bits & ((1 << 52) - 1)) | (np.minimum(exponent, 1) << 52)
    return significand, np.maximum(exponent, 1) - 1075.0


@dataclass(frozen=True)
class BitCode(Column):
    """Sign, exponent and trailing zeros in one integer of at most 952 values, and its words.

    Exponents below `exponent` or beyond the window are moved to its ends, and so are the zeros.
    """

    exponent: int = 0
    zeros: int = 0

    @classmethod
    def learn(cls, name: str, y: Floats) -> BitCode:
        """Lay the windows where the draws are."""
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
        """Return sign, size and last bit; ends of the windows stand for all beyond."""
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
    """Return whether ``value + Laplace(scale)`` noise of a known sampler can give each `y`.

    numpy draws U, a multiple of 2^-53, and returns ``scale * log(U + U)`` below 1/2 and
    ``-scale * log(2 - U - U)`` above (``random_laplace`` in its ``distributions.c``), the same for
    ``value + rng.laplace(scale=scale)`` and ``rng.laplace(value, scale)`` where the compiler fuses
    no multiplication with an addition. We invert, and try the nearest U in either direction.

    Parameters
    ----------
    y : ndarray, shape [size]
        Outputs.
    value : float
        What noise is added to.
    scale : float
        Scale of the noise, > 0.
    textbook : bool, optional
        Whether the sampler is ``scale * sign(u) * log(1 - 2 |u|)`` for u = U - 1/2, in Python's
        or numpy's logarithm, instead of numpy's own. Default False.
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
    """Logarithm of the C library, which numpy's samplers use; np.log differs in the last bit."""
    return np.asarray(special.xlogy(1.0, w))
