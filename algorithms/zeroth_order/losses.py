"""Losses of which an algorithm may ask for values only, with their Lipschitz constants.

All but `Linear` are neither smooth nor convex. An item is a row ``[p]``. Where it holds features,
those longer than 1 are shortened to length 1, so that every item has a loss that is
`lipschitz`-Lipschitz in exact arithmetic. Privacy does not rest on that: what an algorithm takes
from a loss are differences, and it clips them to what the declared constant allows
(`clipped_difference`), so that neither a broken promise nor rounding can be seen in what it
releases. `largest_slope` tells, on items that are public, whether a promise is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray

_ROUNDING = 1e-9


class Loss(ABC):
    """A loss f(x, z) of a point x in R^d and an item z, Lipschitz in x in Euclidean norm."""

    lipschitz: float

    @abstractmethod
    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return f(x, z) for points ``[..., d]`` and items ``[..., p]``, which broadcast."""

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return the gradients ``[..., d]``, where they exist, or one of the limits nearby.

        No algorithm asks for them: they are for judging what an algorithm found.
        """
        raise NotImplementedError(f"{type(self).__name__} tells values only")

    def dimension(self, n_columns: int) -> int:
        """Return d for items of `n_columns` numbers."""
        return n_columns


def evaluated(loss: Loss, points: FloatArray, items: FloatArray) -> FloatArray:
    """Return the values of a loss as floats, if they are as many as was asked for."""
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a Loss, such as FunctionLoss(function, ...), got {loss!r}")
    found = np.asarray(loss.values(points, items))
    shape = np.broadcast_shapes(points.shape[:-1], items.shape[:-1])
    if found.shape != shape:
        raise ValueError(f"loss must return an array of shape {shape}, got {found.shape}")
    if found.dtype.kind not in "iuf":
        raise TypeError(f"loss must return real numbers, got dtype {found.dtype}")
    return found.astype(np.float64, copy=False)


def clipped_difference(
    loss: Loss, first: FloatArray, second: FloatArray, items: FloatArray, distances: Any
) -> FloatArray:
    """Return f(first, z) - f(second, z), and no more than L times the distance of the points.

    A difference that is no number counts as 0. So the sensitivity is that of the declared constant,
    whatever the loss does on somebody's item, and no error tells that it did.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        difference = evaluated(loss, first, items) - evaluated(loss, second, items)
    most = loss.lipschitz * distances
    return np.asarray(
        np.clip(np.nan_to_num(difference, posinf=np.inf, neginf=-np.inf), -most, most)
    )


def largest_slope(
    loss: Loss,
    items: ArrayLike,
    *,
    point: ArrayLike,
    scales: tuple[float, ...] = (1e-3, 1.0, 1e3),
    n_pairs: int = 64,
    rng: np.random.Generator,
) -> float:
    """Probe a loss: return the largest slope that was met, and refuse one above the declared.

    **Requires** items that are public: the answer, and an error most of all, tells about them.

    Parameters
    ----------
    loss : Loss
    items : array_like, [n, p]
    point : array_like, [d]
        Around which pairs of points are drawn.
    scales : tuple of float
        How far from it, and from each other.
    n_pairs : int, default 64
        For each scale.
    rng : numpy.random.Generator

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For a slope above `loss.lipschitz`, values that are not finite, or of the wrong shape.
    """
    rng = _validate.generator(rng)
    z = _validate.floats("items", items, ndims=(2,))
    x = _validate.floats("point", point, ndims=(1,))
    n = _validate.integer("n_pairs", n_pairs, at_least=1)
    largest = 0.0
    for scale in scales:
        moves = _validate.positive("scales", scale) * rng.standard_normal((2, n, 1, x.size))
        ahead, behind = (evaluated(loss, x + move, z) for move in moves)
        for values in (ahead, behind):
            if not np.isfinite(values).all():
                bad = values[~np.isfinite(values)].flat[0]
                raise ValueError(f"loss must be finite, got {bad} among its values")
        distances = np.linalg.norm(moves[0] - moves[1], axis=-1)
        rounding = 1e-14 * (np.abs(ahead) + np.abs(behind))
        largest = max(largest, float(((np.abs(ahead - behind) - rounding) / distances).max()))
    if largest > loss.lipschitz * (1 + _ROUNDING):
        raise ValueError(
            f"lipschitz must be at least {largest!r}, a slope of the loss that was met, got "
            f"{loss.lipschitz!r}"
        )
    return largest


def shortened(vectors: FloatArray) -> FloatArray:
    """Return the vectors ``[..., k]``, those longer than 1 scaled to length 1."""
    largest = np.maximum(1.0, np.abs(vectors).max(axis=-1, keepdims=True))  # squares may overflow
    scaled = vectors / largest
    lengths = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.maximum(1.0 / largest, lengths))


@dataclass(frozen=True)
class Linear(Loss):
    """f(x, z) = L <z, x> with norm(z) <= 1: attains every sensitivity of the paper in d = 1.

    Parameters
    ----------
    lipschitz : float, default 1
        L, positive.
    """

    lipschitz: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("lipschitz", self.lipschitz)

    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return L <z, x>."""
        return self.lipschitz * _dot(points, shortened(items))

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return L z."""
        found = self.lipschitz * shortened(items)
        return np.broadcast_to(found, np.broadcast_shapes(points.shape, found.shape))


class Ridge(Loss):
    """L phi(<a, x>) for items (a, b): a function of one direction, piecewise linear in it.

    ``phi(s) = constant + sum_i weight_i abs(s - place_i)``, where places depend on b. Uniform
    smoothing of such a loss is known in closed form, and so is its stationarity in d = 1.
    """

    @abstractmethod
    def knots(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return constant ``[...]``, places ``[..., k]`` and weights ``[k]`` of phi."""

    @abstractmethod
    def _profile(self, s: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return phi(s) and its slope."""

    def dimension(self, n_columns: int) -> int:
        """Return d = p - 1: the last number of an item is b."""
        if n_columns < 2:
            raise ValueError(f"data must have features and an offset, got {n_columns} columns")
        return n_columns - 1

    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return L phi(<a, x>)."""
        features = shortened(items[..., :-1])
        return self.lipschitz * self._profile(_dot(points, features), items[..., -1])[0]

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return L phi'(<a, x>) a."""
        features = shortened(items[..., :-1])
        slopes = self._profile(_dot(points, features), items[..., -1])[1]
        return self.lipschitz * slopes[..., None] * features


@dataclass(frozen=True)
class CappedAbsolute(Ridge):
    """f(x, (a, b)) = L min(abs(<a, x> - b), cap): regression that gives outliers up.

    Parameters
    ----------
    lipschitz : float, default 1
        L, positive.
    cap : float, default 1
        Positive; infinite for the absolute value, which is convex.
    """

    lipschitz: float = 1.0
    cap: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("lipschitz", self.lipschitz)
        if self.cap != np.inf:
            _validate.positive("cap", self.cap)

    def knots(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return cap, (b - cap, b, b + cap) and (-1, 2, -1) / 2."""
        if self.cap == np.inf:
            return np.zeros_like(offsets), offsets[..., None], np.array([1.0])
        places = offsets[..., None] + self.cap * np.array([-1.0, 0.0, 1.0])
        return np.full_like(offsets, self.cap), places, np.array([-0.5, 1.0, -0.5])

    def _profile(self, s: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        error = s - offsets
        inside = np.abs(error) < self.cap
        return np.minimum(np.abs(error), self.cap), np.sign(error) * inside


@dataclass(frozen=True)
class PhaseRetrieval(Ridge):
    """f(x, (a, b)) = L abs(abs(<a, x>) - abs(b)): the sign of a measurement was lost.

    Of amplitudes, not of their squares, which are not Lipschitz.

    Parameters
    ----------
    lipschitz : float, default 1
        L, positive.
    """

    lipschitz: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("lipschitz", self.lipschitz)

    def knots(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return -abs(b), (-b, 0, b) and (1, -1, 1)."""
        places = np.abs(offsets)[..., None] * np.array([-1.0, 0.0, 1.0])
        return -np.abs(offsets), places, np.array([1.0, -1.0, 1.0])

    def _profile(self, s: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        error = np.abs(s) - np.abs(offsets)
        return np.abs(error), np.sign(error) * np.sign(s)


@dataclass(frozen=True, eq=False)
class MaxDifference(Loss):
    """f(x, z) = max_j <p_j, x - z> - max_j <q_j, x - z>: every piecewise linear shape.

    Parameters
    ----------
    first, second : array_like, [j, d]
        p and q; L is the largest distance of a p_j from a q_k, for gradients are differences.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    lipschitz: float = field(init=False)

    def __post_init__(self) -> None:
        first = _validate.floats("first", self.first, ndims=(2,))
        second = _validate.floats("second", self.second, ndims=(2,))
        if first.shape[1] != second.shape[1]:
            raise ValueError(
                f"second must have {first.shape[1]} columns, as first has, got {second.shape[1]}"
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)
        longest = float(np.linalg.norm(first[:, None] - second, axis=-1).max())
        object.__setattr__(self, "lipschitz", _validate.positive("pieces", longest))

    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return the difference of the two maxima."""
        x = points - items
        return np.asarray((x @ self.first.T).max(axis=-1) - (x @ self.second.T).max(axis=-1))

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return p_j - q_k of the pieces that are largest."""
        x = points - items
        ahead, behind = ((x @ pieces.T).argmax(axis=-1) for pieces in (self.first, self.second))
        return np.asarray(self.first[ahead] - self.second[behind])


@dataclass(frozen=True)
class ReluNetwork(Loss):
    """f(x, (a, y)) = L abs(sum_h v_h max(0, <w_h, a>) - y), x = (w_1, ..., w_H).

    A layer of H units is trained; v_h = (-1)^h / sqrt(H) is fixed, so that L is the constant.

    Parameters
    ----------
    hidden : int
        H, at least 1.
    lipschitz : float, default 1
        L, positive.
    """

    hidden: int
    lipschitz: float = 1.0

    def __post_init__(self) -> None:
        _validate.integer("hidden", self.hidden, at_least=1)
        _validate.positive("lipschitz", self.lipschitz)

    def dimension(self, n_columns: int) -> int:
        """Return d = H (p - 1): the last number of an item is its label."""
        if n_columns < 2:
            raise ValueError(f"data must have features and a label, got {n_columns} columns")
        return self.hidden * (n_columns - 1)

    @property
    def _signs(self) -> FloatArray:
        return np.asarray((-1.0) ** np.arange(self.hidden) / np.sqrt(self.hidden))

    def _forward(self, points: FloatArray, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        weights = points.reshape(*points.shape[:-1], self.hidden, -1)
        inside = np.einsum("...hk,...k->...h", weights, features)
        return inside, np.maximum(inside, 0) @ self._signs

    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return L abs(network(a) - y)."""
        _, answers = self._forward(points, shortened(items[..., :-1]))
        return self.lipschitz * np.abs(answers - items[..., -1])

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return L sign(network(a) - y) v_h a for the units that are on."""
        features = shortened(items[..., :-1])
        inside, answers = self._forward(points, features)
        units = np.sign(answers - items[..., -1])[..., None] * self._signs * (inside > 0)
        found = self.lipschitz * units[..., None] * features[..., None, :]
        return found.reshape(*found.shape[:-2], -1)


@dataclass(frozen=True)
class FunctionLoss(Loss):
    """A function of yours, of points ``[..., d]`` and items ``[..., p]``, which broadcast.

    Parameters
    ----------
    function : callable
        Returns values ``[...]``, each of its own point and item alone, whatever else it is asked
        in the same call: privacy needs that. An exception that it raises ends the run.
    lipschitz : float
        L, positive: a promise. Differences beyond it are clipped, which is private, and no longer
        unbiased; `largest_slope` probes it on public items.
    n_dimensions : int or None, default None
        d; the number of columns of the items by default.
    """

    function: Callable[[FloatArray, FloatArray], ArrayLike]
    lipschitz: float
    n_dimensions: int | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"function must be callable, got {self.function!r}")
        _validate.positive("lipschitz", self.lipschitz)
        if self.n_dimensions is not None:
            _validate.integer("n_dimensions", self.n_dimensions, at_least=1)

    def dimension(self, n_columns: int) -> int:
        """Return d."""
        return n_columns if self.n_dimensions is None else self.n_dimensions

    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return what the function returns."""
        return np.asarray(self.function(points, items))


class Counted(Loss):
    """A loss that counts its evaluations.

    Parameters
    ----------
    loss : Loss

    Attributes
    ----------
    evaluations : int
        Values that were asked for so far.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.lipschitz = loss.lipschitz
        self.evaluations = 0

    def dimension(self, n_columns: int) -> int:
        """Return d."""
        return self.loss.dimension(n_columns)

    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return the values, and count them."""
        found = self.loss.values(points, items)
        self.evaluations += np.asarray(found).size
        return found

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return the gradients, which are no evaluations."""
        return self.loss.gradients(points, items)


def _dot(points: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...d,...d->...", points, vectors))
