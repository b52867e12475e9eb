"""Oracles of one value with Gaussian, Laplace or discrete Laplace noise, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.oracles._core import SAME, TIE_TOLERANCE, DiscreteOracle, Floats, Oracle, Rates

_ROOT2 = math.sqrt(2.0)
_POINTS = 4001
_FAR = 1e150  # large, but the square is still a double
_MAX_SHIFT = 1_000_000


@dataclass(frozen=True)
class GaussianOracle(Oracle):
    """Two Gaussians at a distance of `mu` standard deviations, made by `gaussian`."""

    mu: float

    @property
    def max_loss(self) -> float:
        """Always ``inf``."""
        return math.inf

    def swapped(self) -> GaussianOracle:
        """Return the same oracle, because the pair is symmetric."""
        return self

    def _delta_left(self, epsilons: Floats) -> Floats:
        a = self._z(epsilons)
        b = a - self.mu
        # e^eps phi(b) = phi(a), so both terms have the factor e^(-a^2/2), and erfcx gives the other
        # factor.
        with np.errstate(under="ignore"):
            factor = 0.5 * np.exp(-0.5 * a * a)
            minus = special.erfcx(-b / _ROOT2)
            tail = factor * (special.erfcx(np.maximum(-a, 0.0) / _ROOT2) - minus)
            return np.asarray(np.where(a < 0, tail, special.ndtr(a) - factor * minus))

    def _rates(self, thresholds: Floats, closed: bool) -> Rates:
        z = self._z(thresholds)
        return special.ndtr(z), special.ndtr(z - self.mu)

    def _z(self, losses: Floats) -> Floats:
        """Return where the loss has this value, in standard deviations from the left value."""
        with np.errstate(over="ignore"):
            return np.clip(self.mu / 2 - losses / self.mu, -_FAR, _FAR)

    def _curve(self) -> Rates:
        tail = np.linspace(-8.0, 8.0, _POINTS)
        z = np.unique(np.concatenate((tail, tail + self.mu)))
        return special.ndtr(z), special.ndtr(z - self.mu)


def gaussian(shift: float, sigma: float) -> Oracle:
    """Return the oracle of a value released with Gaussian noise.

    With ``mu = shift / sigma``, the formula is ``delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2
    - eps/mu)``. The formula is evaluated by the scaled complementary error function. For mu >=
    1e-2, the relative error is about 1e-13 for delta down to 1e-300. For smaller mu, the relative
    error is about 1e-15 / mu. The absolute error is always about 1e-16.

    Parameters
    ----------
    shift : float
        L2 distance of the two values, >= 0.
    sigma : float
        Standard deviation of the noise, > 0.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy",
       ICML 2018, Theorem 8.

    Examples
    --------
    >>> oracle = gaussian(1.0, 2.0)
    >>> round(oracle.delta(0.0), 9), round(oracle.epsilon(1e-6), 6)
    (0.197412651, 2.254085)
    """
    shift, sigma = _validate.nonnegative(shift=shift), _validate.positive(sigma=sigma)
    return GaussianOracle(_ratio(shift, sigma, "sigma")) if shift else SAME


@dataclass(frozen=True)
class LaplaceOracle(Oracle):
    """Two Laplace distributions at a distance of `ratio` scales, made by `laplace`."""

    ratio: float

    @property
    def max_loss(self) -> float:
        """``shift / scale``."""
        return self.ratio

    def swapped(self) -> LaplaceOracle:
        """Return the same oracle, because the pair is symmetric."""
        return self

    def _delta_left(self, epsilons: Floats) -> Floats:
        return -np.expm1(np.minimum((epsilons - self.ratio) / 2.0, 0.0))

    def _epsilon(self, delta: float) -> float:
        if self.delta(0.0) <= delta:
            return 0.0
        return max(0.0, self.ratio + 2.0 * math.log1p(-delta))

    def _rates(self, thresholds: Floats, closed: bool) -> Rates:
        r, slack = self.ratio, TIE_TOLERANCE * max(1.0, self.ratio)
        if closed:
            none, everything = thresholds > r + slack, thresholds <= -r + slack
        else:
            none, everything = thresholds >= r - slack, thresholds < -r - slack
        p, q = self._at(np.clip((r - thresholds) / 2.0, 0.0, r))
        return (
            np.where(none, 0.0, np.where(everything, 1.0, p)),
            np.where(none, 0.0, np.where(everything, 1.0, q)),
        )

    def _curve(self) -> Rates:
        return self._at(np.linspace(0.0, self.ratio, _POINTS))

    def _at(self, x: Floats) -> Rates:
        """Return P and Q of {output < x}.

        The left value is 0, and the right value is `ratio`.
        """
        with np.errstate(under="ignore"):
            return 1.0 - 0.5 * np.exp(-x), 0.5 * np.exp(x - self.ratio)


def laplace(shift: float, scale: float) -> Oracle:
    """Return the oracle of a value released with Laplace noise.

    The formula is ``delta(eps) = max(0, 1 - exp((eps - shift / scale) / 2))``. The loss has an atom
    of probability 1/2 at ``shift / scale``, and an atom of probability ``exp(-shift / scale) / 2``
    at ``-shift / scale``.

    Parameters
    ----------
    shift : float
        Distance of the two values, >= 0.
    scale : float
        Scale of the noise, > 0. The density is proportional to ``exp(-|x| / scale)``.

    References
    ----------
    .. [1] B. Balle, G. Barthe, M. Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018,
       Theorem 3.

    Examples
    --------
    >>> oracle = laplace(1.0, 0.5)
    >>> oracle.epsilon(0.0), round(oracle.delta(1.0), 12)
    (2.0, 0.393469340287)
    """
    shift, scale = _validate.nonnegative(shift=shift), _validate.positive(scale=scale)
    return LaplaceOracle(_ratio(shift, scale, "scale")) if shift else SAME


def discrete_laplace(shift: int, scale: float) -> DiscreteOracle:
    """Return the oracle of an integer with discrete Laplace (two-sided geometric) noise.

    ``P(noise = x)`` is proportional to ``exp(-|x| / scale)``. The loss is constant below the two
    values, and constant above the two values. Therefore the infinite tails are summed in closed
    form, and the distribution is finite.

    Parameters
    ----------
    shift : int
        Distance of the two integers, from 0 to 1,000,000.
    scale : float
        Scale of the noise, > 0. A distance of one unit costs epsilon = 1 / scale.

    Returns
    -------
    DiscreteOracle
        The outcomes are the outputs ``0..shift``. The left value is 0, and the right value is
        `shift`. Outcome 0 stands for all outputs <= 0, and outcome `shift` stands for all outputs
        >= `shift`.

    References
    ----------
    .. [1] A. Ghosh, T. Roughgarden, M. Sundararajan, "Universally utility-maximizing privacy
       mechanisms", SIAM J. Comput. 41 (2012), Definition 2.2.

    Examples
    --------
    >>> oracle = discrete_laplace(1, 1.0)
    >>> oracle.outcomes, round(oracle.epsilon(0.0), 12)
    ((0, 1), 1.0)
    """
    shift = _validate.integer(0, shift=shift)
    scale = _validate.positive(scale=scale)
    if shift > _MAX_SHIFT:
        raise ArgumentError(f"shift must be an integer <= {_MAX_SHIFT}, got {shift!r}")
    if shift == 0:
        return SAME
    x = np.arange(shift + 1, dtype=np.float64)
    # (1 - a) / (1 + a) = tanh(1 / (2 scale)), 1 / (1 + a) = expit(1 / scale), a = exp(-1 / scale)
    with np.errstate(under="ignore"):
        p = np.exp(-x / scale)
        p[1:-1] *= math.tanh(0.5 / scale)
        p[[0, -1]] *= special.expit(1.0 / scale)
    return DiscreteOracle(p, p[::-1].copy(), tuple(range(shift + 1)))


def _ratio(shift: float, scale: float, name: str) -> float:
    if not 1e-100 < (ratio := shift / scale) < 1e100:
        raise ArgumentError(f"shift / {name} must be 0 or between 1e-100 and 1e100, got {ratio!r}")
    return ratio
