"""The base class of oracles, and the oracle of finite distributions, which most oracles use."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError

Floats: TypeAlias = NDArray[np.float64]
Rates: TypeAlias = tuple[Floats, Floats]

TIE_TOLERANCE = 1e-12
"""A loss this close to the threshold (relative to max(1, |loss|)) counts as equal to it."""

_CHUNK = 4_000_000  # number of entries of the largest temporary matrix


class Oracle(ABC):
    """Exact distribution of the privacy loss ``L = log dP/dQ`` of one pair of neighbouring inputs.

    P is the distribution of the output on the left input, and Q is the distribution on the right
    input. A quantity without a suffix is the worse of its values in the two directions. The suffix
    ``_left`` marks the direction P over Q.

    References
    ----------
    .. [1] B. Balle, Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML
       2018, Theorem 5 (delta is the hockey-stick divergence).
    .. [2] J. Dong, A. Roth, W. J. Su, "Gaussian differential privacy", JRSS B 84 (2022): The method
       `curve` returns the boundary of the trade-off region.

    Examples
    --------
    >>> flip = discrete([0.75, 0.25], [0.25, 0.75])
    >>> flip.delta(0.0), round(flip.epsilon(0.0), 12)
    (0.5, 1.098612288668)
    """

    @property
    @abstractmethod
    def max_loss(self) -> float:
        """Largest absolute privacy loss, which is the pure epsilon of the pair.

        The value may be ``inf``.
        """

    @abstractmethod
    def swapped(self) -> Oracle:
        """Return the oracle of the same pair with left and right exchanged."""

    @abstractmethod
    def _delta_left(self, epsilons: Floats) -> Floats:
        """Return the hockey-stick divergence of P over Q at a one-dimensional array of epsilons."""

    @abstractmethod
    def _rates(self, thresholds: Floats, closed: bool) -> Rates:
        """Return P and Q of {L > t}, or {L >= t} if `closed`, at a one-dimensional array of t."""

    @abstractmethod
    def _curve(self) -> Rates:
        """Return points of the trade-off boundary, in any order; the two corners may be missing."""

    @overload
    def delta(self, epsilon: float) -> float: ...
    @overload
    def delta(self, epsilon: Sequence[float] | NDArray[Any]) -> Floats: ...
    def delta(self, epsilon: ArrayLike) -> float | Floats:
        """Return the smallest delta for which the pair is (epsilon, delta)-indistinguishable.

        ``max(sup_S P(S) - e^epsilon Q(S), sup_S Q(S) - e^epsilon P(S))``.

        Parameters
        ----------
        epsilon : float or array_like of float
            Epsilon, finite and >= 0.

        Returns
        -------
        float or ndarray
            Delta in [0, 1], in the shape of `epsilon`.
        """
        epsilons, shape = _epsilons(epsilon)
        left = self._delta_left(epsilons)
        other = self.swapped()
        right = left if other is self else other._delta_left(epsilons)
        worse: float | Floats = _shaped(np.clip(np.maximum(left, right), 0.0, 1.0), shape)
        return worse

    @overload
    def delta_left(self, epsilon: float) -> float: ...
    @overload
    def delta_left(self, epsilon: Sequence[float] | NDArray[Any]) -> Floats: ...
    def delta_left(self, epsilon: ArrayLike) -> float | Floats:
        """Return one direction of `delta`: ``sup_S P(S) - e^epsilon Q(S)``."""
        epsilons, shape = _epsilons(epsilon)
        one: float | Floats = _shaped(np.clip(self._delta_left(epsilons), 0.0, 1.0), shape)
        return one

    def delta_right(self, epsilon: Any) -> Any:
        """Return the other direction of `delta`: ``sup_S Q(S) - e^epsilon P(S)``."""
        return self.swapped().delta_left(epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon >= 0 with ``self.delta(epsilon) <= delta``.

        Parameters
        ----------
        delta : float
            Delta, in [0, 1].

        Returns
        -------
        float
            The epsilon; ``inf`` if there is none. At delta = 0, the epsilon is ``max_loss``.
        """
        return self._epsilon(_validate.delta(delta=delta))

    def _epsilon(self, delta: float) -> float:
        if self.delta(0.0) <= delta:
            return 0.0
        if delta == 0.0:
            return self.max_loss
        low, high = 0.0, 1.0
        while self.delta(high) > delta:
            low, high = high, 2.0 * high
        while low < (middle := low + (high - low) / 2.0) < high:
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high

    def rates(self, loss_threshold: ArrayLike, *, closed: bool = False) -> tuple[Any, Any]:
        """Return P and Q of the event that the loss exceeds a threshold.

        Parameters
        ----------
        loss_threshold : float or array_like of float
            Threshold t. Infinite thresholds are allowed, and NaN is not allowed.
        closed : bool, default False
            Whether the event is ``{L >= t}`` instead of ``{L > t}``. The two events differ if the
            loss has an atom at t. A loss within `TIE_TOLERANCE` of t counts as equal to t.

        Returns
        -------
        p, q : float or ndarray
            ``P(event)`` and ``Q(event)``, in the shape of `loss_threshold`.
        """
        given = np.asarray(loss_threshold, dtype=np.float64)
        if np.isnan(given).any():
            raise ArgumentError(f"loss_threshold must not contain NaN, got {loss_threshold!r}")
        p, q = self._rates(given.ravel(), bool(closed))
        return _shaped(np.clip(p, 0, 1), given.shape), _shaped(np.clip(q, 0, 1), given.shape)

    def curve(self) -> Rates:
        """Return the boundary of the trade-off region, left over right.

        Returns
        -------
        p, q : ndarray, shape (points,)
            ``P(E)`` and ``Q(E)`` of the events ``{L > t}`` and ``{L >= t}``. The points are
            nondecreasing, from (0, 0) to (1, 1). If the loss takes finitely many values, these
            points are all vertices of the boundary. Otherwise, these points are dense, down to
            probabilities below 1e-12. Splitting an atom by an independent coin gives the straight
            line between neighbouring points.
        """
        p, q = self._curve()
        p = np.clip(np.concatenate(([0.0], p, [1.0])), 0.0, 1.0)
        q = np.clip(np.concatenate(([0.0], q, [1.0])), 0.0, 1.0)
        order = np.lexsort((p, q))
        p, q = np.maximum.accumulate(p[order]), q[order]
        fresh = np.concatenate(([True], (np.diff(p) > 0) | (np.diff(q) > 0)))
        return p[fresh], q[fresh]


@dataclass(frozen=True, eq=False)
class DiscreteOracle(Oracle):
    """Two finite distributions on the same outcomes, for example made by `discrete`.

    Attributes
    ----------
    pmf_left, pmf_right : ndarray, shape (k,)
        Read-only probabilities.
    outcomes : tuple
        Names of the k outcomes.
    """

    pmf_left: Floats
    pmf_right: Floats
    outcomes: tuple[Any, ...]

    def __post_init__(self) -> None:
        p, q = pmf("pmf_left", self.pmf_left), pmf("pmf_right", self.pmf_right)
        if p.shape != q.shape:
            raise ArgumentError(
                f"pmf_right must have as many entries as pmf_left ({p.size}), got {q.size}"
            )
        if len(self.outcomes) != p.size:
            raise ArgumentError(
                f"outcomes must have as many entries as pmf_left ({p.size}), "
                f"got {len(self.outcomes)}"
            )
        object.__setattr__(self, "pmf_left", p)
        object.__setattr__(self, "pmf_right", q)

    def __repr__(self) -> str:
        return f"DiscreteOracle({self.pmf_left.size} outcomes, max_loss={self.max_loss:.6g})"

    @cached_property
    def loss(self) -> Floats:
        """Privacy loss of each outcome; NaN if neither side can produce the outcome."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self.pmf_left) - np.log(self.pmf_right)

    @cached_property
    def _sorted(self) -> tuple[Floats, Floats, Floats]:
        """Loss in descending order, and P and Q of the first j outcomes, j = 0..k."""
        possible = (self.pmf_left > 0) | (self.pmf_right > 0)
        order = np.argsort(-self.loss[possible], kind="stable")
        p, q = (
            np.concatenate(([0.0], np.cumsum(side[possible][order])))
            for side in (self.pmf_left, self.pmf_right)
        )
        return self.loss[possible][order], p, q

    @property
    def max_loss(self) -> float:
        """Largest absolute privacy loss, which is the pure epsilon of the pair.

        The value may be ``inf``.
        """
        loss, _, _ = self._sorted
        return float(max(abs(loss[0]), abs(loss[-1])))

    @cached_property
    def _exchanged(self) -> DiscreteOracle:
        return DiscreteOracle(self.pmf_right, self.pmf_left, self.outcomes)

    def swapped(self) -> DiscreteOracle:
        """Return the oracle of the same pair with left and right exchanged."""
        return self._exchanged

    def _delta_left(self, epsilons: Floats) -> Floats:
        # P(E) - e^eps Q(E) loses accuracy; the sum of p (1 - e^(eps - loss)) over outcomes does
        # not.
        positive = self.pmf_left > 0
        p, loss = self.pmf_left[positive], self.loss[positive]
        out = np.empty_like(epsilons)
        step = max(1, _CHUNK // p.size)
        for start in range(0, epsilons.size, step):
            excess = np.minimum(epsilons[start : start + step, None] - loss, 0.0)
            out[start : start + step] = -np.expm1(excess) @ p
        return out

    def _epsilon(self, delta: float) -> float:
        # delta(eps) is a maximum of lines in e^eps, with one line for each prefix, so each line is
        # inverted.
        if self.delta(0.0) <= delta:
            return 0.0
        return max(0.0, self._epsilon_left(delta), self.swapped()._epsilon_left(delta))

    def _epsilon_left(self, delta: float) -> float:
        _, p, q = self._sorted
        beyond = p > delta
        if not beyond.any():
            return 0.0
        if (q[beyond] == 0).any():
            return math.inf
        return float(np.max(np.log(p[beyond] - delta) - np.log(q[beyond])))

    def _rates(self, thresholds: Floats, closed: bool) -> Rates:
        loss, p, q = self._sorted
        sizes = np.abs(np.where(np.isfinite(thresholds), thresholds, 0.0))
        slack = TIE_TOLERANCE * np.maximum(1.0, sizes)
        if closed:
            count = np.searchsorted(-loss, -(thresholds - slack), side="right")
        else:
            count = np.searchsorted(-loss, -(thresholds + slack), side="left")
        return p[count], q[count]

    def _curve(self) -> Rates:
        loss, p, q = self._sorted
        ends = np.append(loss[1:] != loss[:-1], True)  # equal losses belong to one vertex
        return p[1:][ends], q[1:][ends]


def discrete(
    pmf_left: ArrayLike, pmf_right: ArrayLike, *, outcomes: Sequence[Any] | None = None
) -> DiscreteOracle:
    """Return the exact oracle of two distributions on finitely many outcomes.

    The formula is ``delta(eps) = sum_o max(p_o - e^eps q_o, 0)``. The inverse is the largest
    ``log((P(E) - delta) / Q(E))`` over the events E that collect the largest losses.

    Parameters
    ----------
    pmf_left, pmf_right : array_like, shape (k,)
        Probabilities of the same k >= 1 outcomes. The probabilities of each side sum to 1 within
        1e-9. The probabilities are used as given, without rescaling.
    outcomes : sequence, optional
        Names of the outcomes. The default is 0..k-1.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014,
       Definition 2.4 and Lemma 3.17.

    Examples
    --------
    >>> oracle = discrete([0.5, 0.5, 0.0], [0.25, 0.5, 0.25])
    >>> oracle.delta([0.0, 1.0]).tolist(), oracle.epsilon(0.25), oracle.epsilon(0.1)
    ([0.25, 0.25], 0.0, inf)
    """
    p = vector("pmf_left", pmf_left)
    names: tuple[Any, ...] = tuple(range(p.size))
    if outcomes is not None:
        listed = list(outcomes) if isinstance(outcomes, str) else outcomes
        names = _validate.items("a sequence of names", outcomes=listed)
    return DiscreteOracle(p, vector("pmf_right", pmf_right), names)


def vector(name: str, value: ArrayLike) -> Floats:
    """Return a read-only copy as a nonempty one-dimensional array of finite floats."""
    array = _validate.vector(**{name: value})
    array.setflags(write=False)
    return array


def same_length(name: str, value: Floats, other_name: str, other: Floats) -> None:
    """Raise an error if two arrays differ in length."""
    if value.size != other.size:
        raise ArgumentError(
            f"{name} must have as many entries as {other_name} ({other.size}), got {value.size}"
        )


def pmf(name: str, value: ArrayLike) -> Floats:
    """Return a read-only copy of a probability mass function that sums to 1 within 1e-9."""
    array = vector(name, value)
    if (array < 0).any() or abs(math.fsum(array) - 1.0) > 1e-9:
        raise ArgumentError(
            f"{name} must be probabilities >= 0 that sum to 1 within 1e-9, "
            f"got minimum {array.min()!r} and sum {math.fsum(array)!r}"
        )
    return array


def _epsilons(epsilon: ArrayLike) -> tuple[Floats, tuple[int, ...]]:
    array = np.asarray(epsilon, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ArgumentError(f"epsilon must be finite and >= 0, got {epsilon!r}")
    return array.ravel(), array.shape


def _shaped(values: Floats, shape: tuple[int, ...]) -> Any:
    return values.reshape(shape) if shape else float(values[0])


SAME = discrete([1.0], [1.0])
"""The oracle of a mechanism whose output distribution is the same on both inputs."""
