r"""Certified lower bounds of the privacy loss of composed steps, by exact numerics.

A composition is a sequence of independent steps. On the left dataset, the outcome of step j has the
distribution ``P_j``, and on the right dataset ``Q_j``. The bounds of this module need no draws and
have no failure probability. They are lower bounds of the hockey-stick divergence
``H(P || Q) = sup_S P(S) - e^epsilon Q(S)`` of the product distributions.

Theorem. All numbers with the prefix ``lower_`` are at most the true numbers.

Proof. (1) *Bins.* Each step is replaced by finitely many outcomes: the outputs are divided into
cells, and cells are merged. This is post-processing, which cannot increase the divergence. The
privacy loss of a cell is ``l = log P(cell) / Q(cell)``. Computed probabilities have a relative
error of at most r, so ``P(cell)`` is replaced by ``(1 - r) P(cell)``, and l by ``l - 3 r``.

(2) *Grid.* For any outcomes, ``H = E_P[(1 - e^(epsilon - L))_+]``, where L is the sum of the losses
of all steps. The integrand is nonnegative and nondecreasing in L. So the expectation cannot
increase if P is replaced by a smaller measure, or if losses are rounded down. The losses of step j
are rounded down to a grid ``o_j + h Z``. The offset ``o_j`` is free. A merged bin of width h has
its loss close to the middle of the bin, so one offset suits nearly all bins. Outcomes with ``Q =
0`` have an infinite loss. If any step has such an outcome, the integrand is 1. This part is ``1 -
prod_j (1 - P_j(loss is infinite))`` and is added.

(3) *Tilting.* For any ``t >= 0``, the measure ``f_j`` of the rounded losses is replaced by
``f_j(l) e^(t l - K_j(t))``, where ``K_j`` is the logarithm of its moment generating function. Let g
be the convolution of all tilted measures, and ``K = sum_j K_j(t)``. Then the bound is ``sum_s w(s)
g(s)`` with the weights ``w(s) = e^(K - t s) (1 - e^(epsilon - s))_+``. With a good t, rounding
errors are small relative to the result, even if the result is 1e-30.

(4) *Convolution.* g is computed by a discrete Fourier transform of length N, as a circular
convolution. The computed values satisfy ``||g' - g||_2 <= E`` inside the window, where E is the
sum of four errors. By Theorem 24.2 of Higham (2002, "Accuracy and stability of numerical
algorithms"), a transform of length N has a relative error of at most ``c = 8 u log2(N)`` in the
2-norm, where u is the unit roundoff. Transforms F of tilted measures satisfy ``|F| <= 1``. So an
error in one factor of a product of n factors is at most this error in the product. By Parseval,
the forward transforms contribute ``sum_j n_j c ||f_j||_2``. The inverse transform contributes
``c ||g||_2``. A product of n complex factors has a relative error of at most ``3 n u``. This
contributes ``3 n u ||g||_2``. The Cauchy-Schwarz inequality bounds the effect on the result by
``||w||_2 E``.

(5) *Window.* The circular convolution moves the mass outside the window into the window. By the
Chernoff bound, this mass is at most ``A = e^(K(t + s) - K(t) - s b) + e^(K(t - s') - K(t) + s' a)``
for a window [a, b) and any s, s' > 0. A term is 0 if no sum lies on its side. The effect is at most
``A max w <= A e^(K - t epsilon)``.

(6) The bound is the sum in (3), less ``||w||_2 E``, less the effect in (5), less a relative error
of ``1e-10 + 1e-12 n`` for all other operations. Any t gives a valid bound. QED

``lower_epsilon(delta)`` is an epsilon at which the lower bound of delta exceeds `delta`. So the
composition does not satisfy (epsilon, delta)-DP for any smaller epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.stats.noise import Noise

Floats: TypeAlias = NDArray[np.float64]

DEFAULT_BINS = 2**18
"""Length of the grid of composed losses."""

_MOST_BINS = 2**24
_CELLS = 2**18
_LEAST_CELLS = 2**10
_EVALUATIONS = 10**7  # largest number of evaluated probabilities of cells
_FAR = 16.0  # cells of Gaussian noise end at this number of standard deviations beyond all centres
_LEAST = 1e-290  # probabilities below it are not accurate

NOISE_ACCURACY, PMF_ACCURACY = 1e-9, 1e-13
"""Relative accuracy of the probabilities of noise, and of a given pmf."""

_UNIT = 2.0**-53
_NEGLIGIBLE = 1e-8
_ALIASING = 22.0  # minus the logarithm of the mass outside the window
_ATOM = 1e-3
_TIE = 1e-11
_NUDGE = 1e-13
_SHOWN = 1e-9
_LEAST_TILT, _RUNGS = 2.0**-4, 25
_PRECISE = 1e-4  # relative error at which no other tilt is tried
_LARGEST_EPSILON = 1e4
_TOLERANCE, _ROUNDS = 1e-7, 60
_MOST_STEPS = 10**8


class Mixture(NamedTuple):
    """A finite mixture of centres on the real line.

    Attributes
    ----------
    centers, weights : ndarray, shape (m,)
        The centres, and their probabilities.
    """

    centers: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class StepPair:
    """The outcomes of one step on both datasets, and how often the step is repeated.

    Parameters
    ----------
    left, right : array_like, shape (k,)
        Probabilities of the same k outcomes on the left and on the right dataset.
    times : int, optional
        Number of independent repetitions. The default is 1.
    accuracy : float, optional
        Largest relative error of the probabilities. The default is 1e-13.

    Examples
    --------
    >>> flip = StepPair([0.75, 0.25], [0.25, 0.75], times=2)
    >>> round(ComposedLoss([flip]).lower_delta(0.0), 9)
    0.5
    """

    left: Floats
    right: Floats
    times: int = 1
    accuracy: float = PMF_ACCURACY

    def __post_init__(self) -> None:
        _validate.integer(1, _MOST_STEPS, times=self.times)
        if not 0 <= _validate.nonnegative(accuracy=self.accuracy) < 1e-3:
            raise ArgumentError(f"accuracy must be a number in [0, 0.001), got {self.accuracy!r}")
        for name in ("left", "right"):
            pmf = _validate.vector(**{name: getattr(self, name)})
            total = math.fsum(pmf.tolist())
            if (pmf < 0).any() or abs(total - 1) > 1e-9:
                raise ArgumentError(
                    f"{name} must hold probabilities >= 0 that sum to 1, got "
                    f"{_validate.describe(pmf)} with sum {total!r}"
                )
            object.__setattr__(self, name, pmf / total)
            # The probabilities cannot be more accurate than their sum.
            accuracy = max(self.accuracy, 2 * abs(total - 1) + PMF_ACCURACY)
            object.__setattr__(self, "accuracy", accuracy)
        if self.left.shape != self.right.shape:
            raise ArgumentError(
                f"right must have as many entries as left ({self.left.size}), got {self.right.size}"
            )

    @classmethod
    def of_mixtures(cls, noise: Noise, left: Mixture, right: Mixture, times: int = 1) -> StepPair:
        """Return the pair of a mixture of centres with noise, divided into cells of outputs.

        Parameters
        ----------
        noise : Noise
            Noise that is added to the centre.
        left, right : Mixture
            Distribution of the centre on each side.
        times : int, optional
            Number of independent repetitions. The default is 1.
        """
        _validate.instance(Noise, "a Noise", noise=noise)
        mixtures = [_checked_mixture(left=left), _checked_mixture(right=right)]
        centers = np.unique(np.concatenate([mixture.centers for mixture in mixtures]))
        count = min(_CELLS, max(_LEAST_CELLS, _EVALUATIONS // (2 * len(centers))))
        low, high = float(centers[0]), float(centers[-1])
        if noise.kind == "gaussian":
            low, high = low - _FAR * noise.scale, high + _FAR * noise.scale
            knots = np.linspace(low, high, count + 1)
        else:  # beyond all centres, the loss of Laplace noise is constant
            knots = np.unique(np.concatenate([np.linspace(low, high, count + 1), centers]))
        sides = [_of_cells(noise, mixture, knots) for mixture in mixtures]
        pair = cls.__new__(cls)
        for name, value in zip(("left", "right"), sides, strict=True):
            object.__setattr__(pair, name, np.maximum(value, _LEAST))
        object.__setattr__(pair, "times", _validate.integer(1, _MOST_STEPS, times=times))
        object.__setattr__(pair, "accuracy", NOISE_ACCURACY)
        return pair


def _checked_mixture(**named: Any) -> Mixture:
    ((name, (centers, weights)),) = named.items()
    at, weight = _validate.vector(**{name: centers}), _validate.vector(weights=weights)
    if at.shape != weight.shape or (weight < 0).any() or abs(weight.sum() - 1) > 1e-9:
        raise ArgumentError(
            f"{name} must have one weight >= 0 for each centre, with sum 1, got "
            f"{_validate.describe(weights)}"
        )
    return Mixture(at, weight)


def _of_cells(noise: Noise, mixture: Mixture, knots: Floats) -> Floats:
    """Return the probability of each cell between the knots, and of the two half-lines."""
    found = np.zeros(len(knots) + 1)
    for center, weight in zip(*mixture, strict=True):
        if weight > 0:
            found[0] += weight * float(noise.above(-center, -knots[0]))
            found[1:-1] += weight * noise.between(center, knots[:-1], knots[1:])
            found[-1] += weight * float(noise.above(center, knots[-1]))
    return found


# --- one direction ---


class _Losses(NamedTuple):
    """Finite losses of a step in increasing order, with both probabilities of each outcome."""

    loss: Floats
    p: Floats
    q: Floats
    times: int
    infinite: float
    shift: float


def _losses(step: StepPair, swapped: bool) -> _Losses:
    p, q = (step.right, step.left) if swapped else (step.left, step.right)
    p = (1 - step.accuracy) * p
    infinite = float(p[q <= 0].sum())
    held = (p > (0 if step.accuracy < NOISE_ACCURACY else 2 * _LEAST)) & (q > 0)
    p, q = p[held], q[held]
    loss = np.log(p) - np.log(q)
    order = np.argsort(loss, kind="stable")
    loss, p, q = loss[order], p[order], q[order]
    # The accuracy was already subtracted from p once.
    return _Losses(loss, p, q, step.times, infinite, 2 * step.accuracy + _NUDGE)


def _merged(losses: _Losses, width: float, phase: float) -> _Losses:
    """Merge outcomes whose losses round to the same multiple of `width`."""
    if not losses.loss.size:
        return losses
    at = np.rint((losses.loss - phase) / width)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(at) > 0]))
    p, q = np.add.reduceat(losses.p, starts), np.add.reduceat(losses.q, starts)
    # Rounding errors may exchange neighbours, which does not matter.
    return losses._replace(loss=np.log(p) - np.log(q), p=p, q=q)


class _OnGrid(NamedTuple):
    """Losses ``offset + width * index`` of one step, with their probabilities."""

    cells: NDArray[np.int64]
    p: Floats
    offset: float
    times: int

    def values(self, width: float) -> Floats:
        return np.asarray(self.offset + width * self.cells)


def _on_grid(losses: _Losses, width: float) -> _OnGrid:
    """Round losses down to a grid whose offset loses least."""
    loss = losses.loss - losses.shift
    if not loss.size:
        return _OnGrid(np.zeros(0, np.int64), losses.p, 0.0, losses.times)
    part = loss / width - np.floor(loss / width)
    order = np.argsort(part)
    at, weight = part[order], losses.p[order]
    # With the offset at[j], outcome k loses at[k] - at[j], and 1 more if this is negative.
    cost = _dot(weight, at) - at * weight.sum() + (np.cumsum(weight) - weight)
    offset = float(at[int(np.argmin(cost))]) * width
    nudge = _NUDGE * (1 + float(np.abs(loss).max()))
    index = np.floor((loss - offset) / width + nudge / width).astype(np.int64)
    return _OnGrid(index, losses.p, offset - 2 * nudge, losses.times)


def _log_mgf(steps: Sequence[_OnGrid], tilt: float, width: float) -> float:
    """Return the logarithm of the moment generating function of the sum of all losses."""
    return sum(
        one.times * float(special.logsumexp(np.log(one.p) + tilt * one.values(width)))
        for one in steps
    )


class _Tilted:
    """The tilted distribution of the sum of all losses, inside a window.

    `error` bounds the 2-norm of the error of `mass`. `outside` bounds the mass outside the window.
    """

    def __init__(
        self, steps: Sequence[_Losses], tilt: float, bins: int, window: tuple[float, float]
    ) -> None:
        self.tilt, n = tilt, sum(one.times for one in steps)
        width, phases = _aligned(steps, (window[1] - window[0]) / (0.98 * bins))
        grids = [
            _on_grid(_merged(one, width, phase), width)
            for one, phase in zip(steps, phases, strict=True)
        ]
        size = 2 ** math.ceil(math.log2(max((window[1] - window[0]) / width, 16)))
        product = np.ones(size // 2 + 1, dtype=complex)
        forward, base = 0.0, 0.0
        self.log_factor = 0.0
        each = 8 * _UNIT * math.log2(size)
        for one in grids:
            logs = np.log(one.p) + tilt * one.values(width)
            log_mgf = float(special.logsumexp(logs))
            weights = np.exp(logs - log_mgf)
            tilted = np.asarray(np.bincount(one.cells % size, weights, size), dtype=float)
            product *= _power(scipy.fft.rfft(tilted), one.times)
            forward += one.times * each * _norm(tilted)
            self.log_factor += one.times * log_mgf
            base += one.times * one.offset
        mass = scipy.fft.irfft(product, size)
        norm = _norm(mass)
        self.error = 1.01 * (forward + (each + 3 * n * _UNIT) * norm)
        start = math.floor((window[0] - base) / width)
        self.mass: Floats = np.roll(mass, -(start % size))
        self.values: Floats = base + width * (start + np.arange(size))
        self.slack = 1e-10 + 1e-12 * n
        self.outside = self._outside(grids, width)

    def _outside(self, grids: Sequence[_OnGrid], width: float) -> float:
        """Bound the tilted mass outside the window by the Chernoff bound."""
        low, high = float(self.values[0]), float(self.values[-1]) + width
        spread = max((high - low) / 20, 1e-12)
        found = [1.0, 1.0]
        ends = [
            sum(one.times * float(end(one.values(width))) for one in grids)
            for end in (np.max, np.min)
        ]
        if ends[0] < high:  # no sum of losses lies outside
            found[0] = 0.0
        if ends[1] >= low:
            found[1] = 0.0
        for power in (0, 1, 2, 3, -1, 4, 5, 6):
            s = 10 / spread * 2.0**-power
            for side, (move, end) in enumerate(((s, high), (-s, low))):
                excess = _log_mgf(grids, self.tilt + move, width) - self.log_factor - move * end
                found[side] = min(found[side], math.exp(min(excess + 1e-9, 0.0)))
            if max(found) < _NEGLIGIBLE:
                break
        return min(sum(found), 1.0)

    def lower_delta(self, epsilon: float) -> tuple[float, float]:
        """Return a lower bound of the part of delta with finite losses, and its error."""
        first = int(np.searchsorted(self.values, epsilon, side="right"))
        above, mass = self.values[first:], self.mass[first:]
        scale = self.log_factor - self.tilt * epsilon  # the weights are relative to e^scale
        weights = np.exp(-self.tilt * (above - epsilon)) * -np.expm1(epsilon - above)
        return self._lower(weights, mass, scale)

    def rates(self, threshold: float) -> tuple[float, float, float]:
        """Bound the rates of the event that the loss exceeds a threshold.

        The first rate is a lower bound under P. The second rate is an upper bound under Q. The last
        number is the error of the second rate.
        """
        first = int(np.searchsorted(self.values, threshold, side="right"))
        above, mass = self.values[first:], self.mass[first:]
        scale = self.log_factor - self.tilt * threshold
        weights = np.exp(-self.tilt * (above - threshold))
        likely = self._lower(weights, mass, scale)[0]
        # Under Q, a loss s has its probability under P times e^-s.
        weights = weights * np.exp(threshold - above)
        rare, error = self._lower(-weights, mass, scale - threshold)
        return likely, -rare, error

    def _lower(self, weights: Floats, mass: Floats, scale: float) -> tuple[float, float]:
        """Return ``e^scale`` times a lower bound of the weighted mass, and its error."""
        found = _dot(weights, mass)
        error = self.slack * _dot(np.abs(weights), np.abs(mass)) + self.outside
        error += _norm(weights) * self.error
        factor = math.exp(min(scale, 700.0))
        return (found - error) * factor, error * factor


def _dot(a: Floats, b: Floats) -> float:
    """Return a scalar product, without the threads of BLAS."""
    return float((a * b).sum())


def _norm(vector: Floats) -> float:
    return math.sqrt(_dot(vector, vector))


def _power(base: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return a power by repeated squaring, whose relative error is known."""
    found: NDArray[np.complex128] | None = None
    with np.errstate(under="ignore"):
        while times:
            if times & 1:
                found = base.copy() if found is None else found * base
            times >>= 1
            if times:
                base = base * base
    assert found is not None
    return found


def _aligned(steps: Sequence[_Losses], width: float) -> tuple[float, list[float]]:
    """Return a width of at most `width`, and a phase for each step, that suit losses with atoms."""
    heaviest = [_atoms(one) for one in steps]
    main = max(range(len(steps)), key=lambda at: steps[at].times * (len(heaviest[at]) > 1))
    if len(heaviest[main]) > 1:
        gap = abs(heaviest[main][0] - heaviest[main][1])
        if gap > width:
            width = gap / math.ceil(gap / width)
    return width, [atoms[0] if atoms else 0.0 for atoms in heaviest]


def _atoms(losses: _Losses) -> list[float]:
    """Return the losses of the two heaviest atoms, or of one, or none."""
    if not losses.loss.size:
        return []
    starts = np.flatnonzero(np.concatenate([[True], np.diff(losses.loss) > _TIE]))
    mass = np.add.reduceat(losses.p, starts)
    heavy = [at for at in np.argsort(-mass, kind="stable")[:2] if mass[at] > _ATOM]
    return [float(losses.loss[starts[at]]) for at in heavy]


def _tilt(rung: int) -> float:
    return _LEAST_TILT * 2.0 ** (rung - 1) if rung else 0.0


class _Direction:
    """Bounds of ``H(P || Q)`` for the product of all steps."""

    def __init__(self, steps: Sequence[StepPair], swapped: bool, bins: int) -> None:
        self.bins = bins
        self.steps = [_losses(one, swapped) for one in steps]
        self.is_finite = all(one.loss.size for one in self.steps)
        logs = sum(one.times * math.log1p(-min(one.infinite, 1 - 1e-16)) for one in self.steps)
        self.infinite = max(-math.expm1(logs) * (1 - 1e-12), 0.0)
        self.tilts: dict[float, _Tilted] = {}
        self.means: dict[int, float] = {}

    @cached_property
    def _largest(self) -> float:
        """At least the largest finite sum of losses."""
        return sum(one.times * float(one.loss[-1] + 2 * one.shift) for one in self.steps) + 1e-9

    @cached_property
    def max_loss(self) -> float:
        """Largest sum of losses, which has positive probability."""
        if self.infinite > 0:
            return math.inf
        if not self.is_finite:
            return 0.0
        found = sum(one.times * (float(one.loss[-1]) - one.shift) for one in self.steps)
        return max(found * (1 - 1e-14), 0.0)

    @cached_property
    def _sketch(self) -> list[_OnGrid]:
        """A coarse version of all steps, which only chooses tilts and windows."""
        held = []
        for one in self.steps:
            mean = _dot(one.p, one.loss)
            spread = math.sqrt(max(_dot(one.p, (one.loss - mean) ** 2), 1e-24))
            reach = float(one.loss[-1] - one.loss[0])
            coarse = _merged(one, max(spread / 30, reach / 4000, 1e-12), 0.0)
            held.append(_OnGrid(np.zeros(len(coarse.p), np.int64), coarse.p, 0.0, one.times))
            self._values.append(coarse.loss)
        return held

    @cached_property
    def _values(self) -> list[Floats]:
        return []

    def _moments(self, tilt: float) -> tuple[float, float, float]:
        """Return the logarithm of the moment generating function, and its first two derivatives."""
        log_mgf = mean = variance = 0.0
        for one, value in zip(self._sketch, self._values, strict=True):
            logs = np.log(one.p) + tilt * value
            whole = float(special.logsumexp(logs))
            weight = np.exp(logs - whole)
            at = _dot(weight, value)
            log_mgf += one.times * whole
            mean += one.times * at
            variance += one.times * _dot(weight, (value - at) ** 2)
        return log_mgf, mean, variance

    def _window(self, tilt: float) -> tuple[float, float]:
        log_mgf, mean, variance = self._moments(tilt)
        spread = math.sqrt(max(variance, 1e-24))
        low, high = -math.inf, math.inf
        for power in range(8):
            s = 10 / spread * 2.0**-power
            high = min(high, (self._moments(tilt + s)[0] - log_mgf + _ALIASING) / s)
            low = max(low, -(self._moments(tilt - s)[0] - log_mgf + _ALIASING) / s)
        least, most = (sum(one.times * float(one.loss[at]) for one in self.steps) for at in (0, -1))
        # Outside the support there is no mass at all, so a window that nearly contains it is wider.
        near = 0.2 * (high - low)
        low = least if low < least + near else low
        high = most if high > most - near else high
        margin = 1e-3 * (high - low) + 1e-9 * (1 + abs(mean))
        return low - margin, high + margin

    def _mean(self, rung: int) -> float:
        """Return the mean of the losses at one of the tilts that are used."""
        if rung not in self.means:
            self.means[rung] = self._moments(_tilt(rung))[1]
        return self.means[rung]

    def tilted(self, epsilon: float) -> Iterator[_Tilted]:
        """Yield distributions with two tilts that suit `epsilon`, out of a few tilts.

        With heavy tails, the second tilt may need a very large window. The first tilt does not.
        """
        rung = 0
        while rung < _RUNGS and self._mean(rung + 1) < epsilon:
            rung += 1
        for one in dict.fromkeys([max(rung - 1, 0), rung]):
            yield self.at(_tilt(one))

    def at(self, tilt: float) -> _Tilted:
        """Return the distribution with a tilt; each is computed once."""
        if tilt not in self.tilts:
            self.tilts[tilt] = _Tilted(self.steps, tilt, self.bins, self._window(tilt))
        return self.tilts[tilt]

    def lower_delta(self, epsilon: float) -> float:
        found = 0.0
        if self.is_finite and epsilon < self.max_loss:
            for one in self.tilted(epsilon):
                value, error = one.lower_delta(epsilon)
                found = max(found, value)
                if error <= _PRECISE * value:
                    break
        return min(max(found, 0.0) + self.infinite, 1.0)

    def rates(self, threshold: float) -> tuple[float, float]:
        likely, rare = 0.0, 0.0
        if self.is_finite:
            for one in self.tilted(threshold):
                at = one.rates(threshold)
                likely, rare, error = max((likely, rare, 0.0), at, key=lambda x: x[0] - x[1])
                if error <= _PRECISE * at[1]:
                    break
        likely = min(max(likely, 0.0) + self.infinite, 1.0)
        least = math.ulp(0.0) if self.is_finite and threshold < self._largest else 0.0
        return likely, min(max(rare, least), 1.0)

    def lower_epsilon(self, delta: float) -> float:
        if delta == 0:
            return self.max_loss
        if self.lower_delta(0.0) <= delta:
            return 0.0
        if self.infinite > delta:
            return math.inf
        low, high = 0.0, 1.0
        while high < _LARGEST_EPSILON and self.lower_delta(high) > delta:
            low, high = high, 2 * high
        # The logarithm of delta is nearly linear in epsilon, so false position converges fast.
        above, below = (math.log(max(self.lower_delta(e), 1e-300) / delta) for e in (low, high))
        for count in range(_ROUNDS):
            if high - low <= _TOLERANCE * (1 + low):
                break
            share = above / (above - below) if count % 3 < 2 else 0.5
            margin = 0.4 * _TOLERANCE * (1 + low) / (high - low)
            middle = low + (high - low) * min(max(share, margin), 1 - margin)
            value = math.log(max(self.lower_delta(middle), 1e-300) / delta)
            low, above, high, below = (
                (middle, value, high, below) if value > 0 else (low, above, middle, value)
            )
        return low


class ComposedLoss:
    """Certified lower bounds of the privacy loss of independent steps, computed without draws.

    The proof is in the docstring of :mod:`dpaudit.stats.composition`.

    Parameters
    ----------
    steps : sequence of StepPair
        The steps, at least one.
    bins : int, optional
        Length of the grid of composed losses, between 2**10 and 2**24. More bins give sharper
        bounds. The default is 2**18.

    Examples
    --------
    >>> import numpy as np
    >>> noise = Noise("gaussian", 10.0)
    >>> left, right = Mixture(np.ones(1), np.ones(1)), Mixture(np.zeros(1), np.ones(1))
    >>> composed = ComposedLoss([StepPair.of_mixtures(noise, left, right, times=100)])
    >>> round(composed.lower_epsilon(1e-5), 3)  # the same as one step with noise of scale 1
    4.377
    """

    def __init__(self, steps: Sequence[StepPair], *, bins: int = DEFAULT_BINS) -> None:
        self.steps = _validate.items("a list of StepPair objects", steps=steps)
        for one in self.steps:
            _validate.instance(StepPair, "a list of StepPair objects", steps=one)
        bins = _validate.integer(2**10, _MOST_BINS, bins=bins)
        self._left = _Direction(self.steps, False, bins)
        self._right = _Direction(self.steps, True, bins)

    @property
    def max_loss(self) -> float:
        """A lower bound of the largest absolute privacy loss, which is the pure epsilon."""
        return max(self._left.max_loss, self._right.max_loss)

    def lower_delta(self, epsilon: float) -> float:
        """Return a lower bound of the delta that the composition needs at `epsilon`.

        Parameters
        ----------
        epsilon : float
            Epsilon, finite and >= 0.
        """
        epsilon = _validate.nonnegative(epsilon=epsilon)
        return max(self._left.lower_delta(epsilon), self._right.lower_delta(epsilon))

    def lower_deltas(self, epsilons: ArrayLike) -> Floats:
        """Return a lower bound of delta at each epsilon of an array."""
        return np.array([self.lower_delta(float(one)) for one in np.ravel(epsilons)])

    def lower_epsilon(self, delta: float) -> float:
        """Return a lower bound of the epsilon that the composition needs at `delta`.

        Parameters
        ----------
        delta : float
            Delta, in [0, 1].

        Returns
        -------
        float
            The bound is ``inf`` if outputs with more probability than `delta` on one side are
            impossible on the other side.
        """
        delta = _validate.delta(delta=delta)
        return max(self._left.lower_epsilon(delta), self._right.lower_epsilon(delta))

    def likelier(self, epsilon: float) -> str:
        """Return the side from which the larger bound of delta comes: "left" or "right"."""
        left, right = self._left.lower_delta(epsilon), self._right.lower_delta(epsilon)
        return "left" if left >= right else "right"

    def rates(self, threshold: float, likelier: str = "left") -> tuple[float, float]:
        """Bound the rates of the event that the privacy loss exceeds a threshold.

        Parameters
        ----------
        threshold : float
            Privacy loss, finite and >= 0.
        likelier : {"left", "right"}, optional
            Side on which the event is likelier. The default is "left".

        Returns
        -------
        likely, rare : float
            A lower bound of the rate on this side, and an upper bound on the other side.
        """
        threshold = _validate.nonnegative(threshold=threshold)
        _validate.choice(("left", "right"), likelier=likelier)
        return (self._left if likelier == "left" else self._right).rates(threshold)

    def masses(self, bins: int) -> tuple[Floats, Floats, Floats]:
        """Return about how often each finite loss occurs on both sides, for charts.

        Parameters
        ----------
        bins : int
            Number of bins, at least 1.

        Returns
        -------
        edges, left, right : ndarray
            The ``bins + 1`` edges of bins of losses, and the probability of each bin.
        """
        bins = _validate.integer(1, 10_000, bins=bins)
        if not self._left.is_finite:
            return np.linspace(0.0, 1.0, bins + 1), np.zeros(bins), np.zeros(bins)
        known = self._left.at(0.0)
        left = np.maximum(known.mass, 0.0)
        right = left * np.exp(-np.clip(known.values, -700.0, 700.0))
        seen = known.values[(left > _SHOWN) | ((right > _SHOWN) & (left > 0))]
        low, high = (float(seen[0]), float(seen[-1])) if seen.size else (0.0, 0.0)
        edges = np.linspace(low, max(high, low + 1e-6), bins + 1)
        shown = [np.histogram(known.values, edges, weights=side)[0] for side in (left, right)]
        return edges, np.asarray(shown[0], dtype=float), np.asarray(shown[1], dtype=float)
