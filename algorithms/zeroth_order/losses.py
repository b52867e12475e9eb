"""Losses that an algorithm can only evaluate, together with their Lipschitz constants.

All losses except `Linear` are neither smooth nor convex. An item is a row ``[p]``. Features longer
than 1 are scaled to length 1, so that every item has a loss that is `lipschitz`-Lipschitz in exact
arithmetic. Privacy does not depend on this scaling. An algorithm uses only differences of values,
and clips these differences to the range that the declared constant allows (`clipped_difference`).
So neither a wrong constant nor rounding affects the privacy of the algorithm's output.
`largest_slope` tests the declared constant on public items.
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
    """Loss f(x, z) of a point x in R^d and an item z.

    The loss is Lipschitz in x in Euclidean norm.
    """

    lipschitz: float

    @abstractmethod
    def values(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return f(x, z) for points ``[..., d]`` and items ``[..., p]``, which broadcast."""

    def gradients(self, points: FloatArray, items: FloatArray) -> FloatArray:
        """Return the gradients ``[..., d]``, or a limit of nearby gradients if no gradient exists.

        Algorithms do not use these gradients. The gradients serve to evaluate the output of an
        algorithm.
        """
        raise NotImplementedError(f"{type(self).__name__} has values but no gradients")

    def dimension(self, n_columns: int) -> int:
        """Return d for items of `n_columns` numbers."""
        return n_columns


def evaluated(loss: Loss, points: FloatArray, items: FloatArray) -> FloatArray:
    """Return the values of a loss as floats, and refuse a wrong shape or type."""
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a Loss, such as FunctionLoss(function, ...), got {loss!r}")
    found = np.asarray(loss.values(points, items))
    shape = np.broadcast_shapes(points.shape[:-1], items.shape[:-1])
    if found.shape != shape:
        raise ValueError(f"loss must return an array of shape {shape}, got shape {found.shape}")
    if found.dtype.kind not in "iuf":
        raise TypeError(f"loss must return real numbers, got dtype {found.dtype}")
    return found.astype(np.float64, copy=False)


def clipped_difference(
    loss: Loss, first: FloatArray, second: FloatArray, items: FloatArray, distances: Any
) -> FloatArray:
    """Return f(first, z) - f(second, z), clipped to L times the distance of the points.

    A NaN difference counts as 0. So the declared constant determines the sensitivity, for every
    behaviour of the loss on a user's item. No error message reveals this behaviour.
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
    """Return the largest slope at random pairs of points.

    A slope above the declared constant raises an error. **Requires** public items. The returned
    value reveals information about the items, and an error reveals more information.

    Parameters
    ----------
    loss : Loss
    items : array_like, [n, p]
    point : array_like, [d]
        Point around which the pairs of points are drawn.
    scales : tuple of float
        Distances of the pairs from the point, and distances between the two points of a pair.
    n_pairs : int, default 64
        Number of pairs for each scale.
    rng : numpy.random.Generator

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a slope is above `loss.lipschitz`, or if values are not finite or have the wrong shape.
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
                raise ValueError(f"loss must return only finite values, got {bad}")
        distances = np.linalg.norm(moves[0] - moves[1], axis=-1)
        rounding = 1e-14 * (np.abs(ahead) + np.abs(behind))
        largest = max(largest, float(((np.abs(ahead - behind) - rounding) / distances).max()))
    if largest > loss.lipschitz * (1 + _ROUNDING):
        raise ValueError(
            f"lipschitz must be at least {largest!r}, the slope of the loss between two "
            f"random points, got {loss.lipschitz!r}"
        )
    return largest


def shortened(vectors: FloatArray) -> FloatArray:
    """Return the vectors ``[..., k]``, where vectors longer than 1 are scaled to length 1."""
    largest = np.maximum(1.0, np.abs(vectors).max(axis=-1, keepdims=True))  # squares may overflow
    scaled = vectors / largest
    lengths = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return np.asarray(scaled / np.maximum(1.0 / largest, lengths))


@dataclass(frozen=True)
class Linear(Loss):
    """Linear loss f(x, z) = L <z, x> with norm(z) <= 1.

    At d = 1, this loss attains every sensitivity of the paper.

    Parameters
    ----------
    lipschitz : float, default 1
        Positive Lipschitz constant L.
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
    """Loss L phi(<a, x>) for items (a, b), which is a piecewise linear function of one direction.

    ``phi(s) = constant + sum_i weight_i abs(s - place_i)``, where the places depend on b. The
    uniform smoothing of such a loss has a closed form. At d = 1, the stationarity also has a closed
    form.
    """

    @abstractmethod
    def knots(self, offsets: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return constant ``[...]``, places ``[..., k]`` and weights ``[k]`` of phi."""

    @abstractmethod
    def _profile(self, s: FloatArray, offsets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return phi(s) and its slope."""

    def dimension(self, n_columns: int) -> int:
        """Return d = p - 1, because the last number of an item is b."""
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
    """Regression loss f(x, (a, b)) = L min(abs(<a, x> - b), cap), which ignores outliers.

    Parameters
    ----------
    lipschitz : float, default 1
        Positive Lipschitz constant L.
    cap : float, default 1
        Positive. An infinite cap gives the absolute value, which is convex.
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
    """Loss f(x, (a, b)) = L abs(abs(<a, x>) - abs(b)), for regression on values without sign.

    The loss uses amplitudes. The squares of such errors are not Lipschitz.

    Parameters
    ----------
    lipschitz : float, default 1
        Positive Lipschitz constant L.
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
    """Loss f(x, z) = max_j <p_j, x - z> - max_j <q_j, x - z>.

    Such a loss can be any piecewise linear function.

    Parameters
    ----------
    first, second : array_like, [j, d]
        The vectors p and q. L is the largest distance between a p_j and a q_k, because gradients
        are differences.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    lipschitz: float = field(init=False)

    def __post_init__(self) -> None:
        first = _validate.floats("first", self.first, ndims=(2,))
        second = _validate.floats("second", self.second, ndims=(2,))
        if first.shape[1] != second.shape[1]:
            raise ValueError(
                f"second must have as many columns as first, {first.shape[1]}, got "
                f"{second.shape[1]}"
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
        """Return p_j - q_k for the pieces that attain the maxima."""
        x = points - items
        ahead, behind = ((x @ pieces.T).argmax(axis=-1) for pieces in (self.first, self.second))
        return np.asarray(self.first[ahead] - self.second[behind])


@dataclass(frozen=True)
class ReluNetwork(Loss):
    """Loss f(x, (a, y)) = L abs(sum_h v_h max(0, <w_h, a>) - y) of x = (w_1, ..., w_H).

    A layer of H units is trained. The output weights v_h = (-1)^h / sqrt(H) are fixed, so that L is
    the Lipschitz constant.

    Parameters
    ----------
    hidden : int
        Number of units H, at least 1.
    lipschitz : float, default 1
        Positive Lipschitz constant L.
    """

    hidden: int
    lipschitz: float = 1.0

    def __post_init__(self) -> None:
        _validate.integer("hidden", self.hidden, at_least=1)
        _validate.positive("lipschitz", self.lipschitz)

    def dimension(self, n_columns: int) -> int:
        """Return d = H (p - 1), because the last number of an item is its label."""
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
        """Return L sign(network(a) - y) v_h a for the active units, and 0 for inactive units."""
        features = shortened(items[..., :-1])
        inside, answers = self._forward(points, features)
        units = np.sign(answers - items[..., -1])[..., None] * self._signs * (inside > 0)
        found = self.lipschitz * units[..., None] * features[..., None, :]
        return found.reshape(*found.shape[:-2], -1)


@dataclass(frozen=True)
class FunctionLoss(Loss):
    """A user-defined function of points ``[..., d]`` and items ``[..., p]``, which broadcast.

    Parameters
    ----------
    function : callable
        The function returns values ``[...]``. Each value must depend only on its own point and
        item, not on other parts of the call. Privacy needs this condition. An exception in the
        function ends the run.
    lipschitz : float
        Positive Lipschitz constant L, as declared by the caller. Larger differences are clipped.
        After clipping, the estimate is private but no longer unbiased. `largest_slope` tests the
        constant on public items.
    n_dimensions : int or None, default None
        Dimension d. By default, d is the number of columns of the items.
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
        """Return the values of the function."""
        return np.asarray(self.function(points, items))


class Counted(Loss):
    """A loss that counts its evaluations.

    Parameters
    ----------
    loss : Loss

    Attributes
    ----------
    evaluations : int
        Number of values computed so far.
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
        """Return the gradients, which do not count as evaluations."""
        return self.loss.gradients(points, items)


def _dot(points: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...d,...d->...", points, vectors))
