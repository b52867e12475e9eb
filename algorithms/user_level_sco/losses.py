"""Convex losses with their constants, in the two geometries of the papers.

A loss provides the gradient of one item, and a bound for the length of these gradients on a domain.
A loss also provides a bound for the change of the gradients. The bound for the length is the
Lipschitz constant G of Definition 4 (Euclidean; v2) or Definition 24 (l-infinity; v1 and the
appendix of v2). The bound for the change is the smoothness beta of Definitions 4 and 25.

Items are rows ``[p]``, users are ``[m, p]``, and a whole batch of users is ``[B, m, p]``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco.domains import Domain, lengths, norm_name

_NOTHING = np.zeros((1, 1, 1))  # the shared part if the loss has no shared part


class Loss(ABC):
    """A convex loss f(x; z) of a point x in R^d and an item z."""

    @property
    def diagonally_dominant(self) -> bool:
        """Whether the Hessian of every item is diagonally dominant (Definition 26)."""
        return True

    @abstractmethod
    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q(Z), the mean gradient of each user's items at each point, in two parts.

        For many losses, the first part is the same for all users and the second part is the same
        for all points. For such losses, neither the differences of gradients nor the concentration
        scores depend on the point.

        Parameters
        ----------
        x : ndarray, [S, d]
        users : ndarray, [B, m, p]

        Returns
        -------
        shared : ndarray, [S, 1, d] or [1, 1, 1]
        own : ndarray, [S, B, d] or [1, B, d]
            q(Z) = shared + own.
        """

    def gradients(self, x: FloatArray, users: FloatArray) -> FloatArray:
        """Return q(Z) ``[S, B, d]``, or ``[1, B, d]`` if q(Z) is the same for all points."""
        shared, own = self.parts(x, users)
        return shared + own

    @abstractmethod
    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return f(x; z) for points ``[S, d]`` and items ``[K, p]`` as ``[S, K]``."""

    @abstractmethod
    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the largest norm of a gradient of the items ``[..., p]`` on the domain."""

    @abstractmethod
    def smoothness(self, norm: str) -> float:
        """Return beta, the largest norm of a Hessian as an operator on the given norm."""

    def dimension(self, n_columns: int) -> int:
        """Return d for items of `n_columns` numbers."""
        return n_columns

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items if they are valid for the loss."""
        return items


@dataclass(frozen=True)
class Linear(Loss):
    """Linear loss f(x; z) = -<x, z>, where beta is 0.

    This loss never shrinks a shift of a trajectory.
    """

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 0 and -mean(z)."""
        return _NOTHING, -users.mean(axis=1)[None]

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return -<x, z>."""
        return np.asarray(-(x @ items.T))

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the norm of the longest item."""
        return float(lengths(items, norm_name(norm)).max())

    def smoothness(self, norm: str) -> float:
        """Return 0."""
        norm_name(norm)
        return 0.0


@dataclass(frozen=True)
class Quadratic(Loss):
    """Quadratic loss f(x; z) = (curvature / 2) norm(x - z)**2.

    Parameters
    ----------
    curvature : float, default 1
        Positive constant beta.
    """

    curvature: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("curvature", self.curvature)

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return `curvature * x` and `-curvature * mean(z)`."""
        return self.curvature * x[:, None], -self.curvature * users.mean(axis=1)[None]

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return (curvature / 2) norm(x - z)**2."""
        return self.curvature / 2 * lengths(x[:, None] - items[None], "l2") ** 2

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return curvature times the largest distance of an item to the domain."""
        return self.curvature * float(domain.farthest(items, norm_name(norm)).max())

    def smoothness(self, norm: str) -> float:
        """Return the curvature."""
        norm_name(norm)
        return self.curvature


@dataclass(frozen=True)
class VaryingQuadratic(Loss):
    """Quadratic loss f(x; (z, h)) = (h / 2) norm(x - z)**2, where each item has its own curvature.

    If all items share one curvature, the differences of gradients do not depend on x, so the
    concentration scores do not depend on x. With this loss, the concentration scores depend on x.

    Parameters
    ----------
    curvature : float
        beta, which is the largest allowed h. The value is positive.
    """

    curvature: float

    def __post_init__(self) -> None:
        _validate.positive("curvature", self.curvature)

    def dimension(self, n_columns: int) -> int:
        """Return the number of columns without the last column, which is h."""
        return n_columns - 1

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items if their curvatures are in [0, `curvature`]."""
        if items.shape[-1] < 2:
            raise ValueError(
                f"data must hold items of two columns, (z, h), got {items.shape[-1]} column"
            )
        own = items[..., -1]
        if own.min() < 0 or own.max() > self.curvature:
            raise ValueError(
                f"the last column of data must hold curvatures from 0 to {self.curvature!r}, "
                f"got curvatures from {own.min()} to {own.max()}"
            )
        return items

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 0, and mean(h) x - mean(h z)."""
        h = users[..., -1:]
        pulled = (h * users[..., :-1]).mean(axis=1)
        return _NOTHING, h.mean(axis=1)[None] * x[:, None] - pulled[None]

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return (h / 2) norm(x - z)**2."""
        return items[:, -1] / 2 * lengths(x[:, None] - items[None, :, :-1], "l2") ** 2

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the largest product of h and the largest distance of z to the domain."""
        return float((items[..., -1] * domain.farthest(items[..., :-1], norm_name(norm))).max())

    def smoothness(self, norm: str) -> float:
        """Return the largest allowed curvature."""
        norm_name(norm)
        return self.curvature


@dataclass(frozen=True)
class Huber(Loss):
    """Huber loss f(x; z) = curvature h(norm(x - z)).

    Up to a threshold, h(r) is r**2 / 2. Above the threshold, h(r) is linear. The gradients of the
    loss are curvature (x - z), clipped. So for all data and domains, G is curvature * threshold and
    beta is curvature. The paper's losses are twice differentiable. This loss is twice
    differentiable except where norm(x - z) is the threshold.

    Parameters
    ----------
    threshold : float
        Distance up to which the loss is quadratic, positive.
    separable : bool, default False
        Whether h is applied to each coordinate and summed. If True, G is in l-infinity norm, and
        the Hessian is diagonal.
    curvature : float, default 1
        Positive constant beta.
    """

    threshold: float
    separable: bool = False
    curvature: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("threshold", self.threshold)
        _validate.positive("curvature", self.curvature)

    @property
    def diagonally_dominant(self) -> bool:
        """Whether the Hessian is diagonal, which is true only if the loss is separable."""
        return self.separable

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 0, and the mean of the clipped differences."""
        total = np.zeros((len(x), len(users), x.shape[1]))
        for item in range(users.shape[1]):  # one item at a time, so that arrays fit in the cache
            apart = x[:, None] - users[None, :, item]
            if self.separable:
                total += np.clip(apart, -self.threshold, self.threshold)
            else:
                rates = self.threshold / np.maximum(lengths(apart, "l2"), self.threshold)
                total += rates[..., None] * apart
        return _NOTHING, self.curvature / users.shape[1] * total

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return h of the distance, or the sum of h over the coordinates."""
        apart = np.abs(x[:, None] - items[None])
        r = apart if self.separable else lengths(apart, "l2")[..., None]
        inner = np.minimum(r, self.threshold)
        return np.asarray(self.curvature * (inner * (r - inner / 2)).sum(axis=-1))

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the curvature times the threshold, or times a smaller bound from the domain."""
        root = math.sqrt(items.shape[-1]) if self.separable and norm_name(norm) == "l2" else 1.0
        farthest = float(domain.farthest(items, norm_name(norm)).max())
        return self.curvature * min(self.threshold * root, farthest)

    def smoothness(self, norm: str) -> float:
        """Return the curvature, and refuse l-infinity if the loss is not separable."""
        if norm_name(norm) == "linf" and not self.separable:
            raise ValueError("loss must be separable for norm 'linf', got separable=False")
        return self.curvature


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic loss f(x; (a, y)) = log(1 + exp(-y <a, x>)), where y is -1 or 1.

    Parameters
    ----------
    feature_norm : float
        Largest allowed Euclidean norm of the feature vector `a`, positive. G = feature_norm and
        beta = feature_norm**2 / 4.
    """

    feature_norm: float

    def __post_init__(self) -> None:
        _validate.positive("feature_norm", self.feature_norm)

    @property
    def diagonally_dominant(self) -> bool:
        """Whether the Hessian is diagonally dominant.

        If there are three or more features, the matrix a a^T need not be diagonally dominant.
        """
        return False

    def dimension(self, n_columns: int) -> int:
        """Return the number of columns without the last column, which is y."""
        return n_columns - 1

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items if their labels are -1 or 1 and their features are short enough."""
        if items.shape[-1] < 2:
            raise ValueError(
                f"data must hold items of at least two columns, (a, y), got {items.shape[-1]} "
                "column"
            )
        if not np.isin(items[..., -1], (-1.0, 1.0)).all():
            raise ValueError("the last column of data must hold only the labels -1 and 1")
        longest = float(lengths(items[..., :-1], "l2").max())
        if longest > self.feature_norm * (1 + 1e-12):
            raise ValueError(
                f"data must hold features of norm at most {self.feature_norm!r}, got {longest}"
            )
        return items

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 0, and the mean of -y a / (1 + exp(y <a, x>))."""
        signed = users[..., :-1] * users[..., -1:]
        rates = expit(-np.einsum("bmd,sd->sbm", signed, x))
        return _NOTHING, -np.einsum("sbm,bmd->sbd", rates, signed) / users.shape[1]

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return log(1 + exp(-y <a, x>))."""
        return np.asarray(np.logaddexp(0.0, -(x @ (items[:, :-1] * items[:, -1:]).T)))

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the largest norm of a feature vector `a`.

        In the gradient, the factor that multiplies `a` can be close to 1.
        """
        return float(lengths(items[..., :-1], norm_name(norm)).max())

    def smoothness(self, norm: str) -> float:
        """Return feature_norm**2 / 4, and refuse l-infinity.

        In l-infinity, the Hessian is not diagonally dominant.
        """
        if norm_name(norm) == "linf":
            raise ValueError("loss must have diagonally dominant Hessians for norm 'linf'")
        return self.feature_norm**2 / 4


class MatrixQuadratic(Loss):
    """Quadratic loss f(x; z) = (x - z)^T H (x - z) / 2 with one matrix H for all items.

    The matrix H is diagonally dominant.

    Parameters
    ----------
    matrix : array_like, [d, d]
        H, symmetric and diagonally dominant (Definition 26), with a nonnegative diagonal. So H is
        positive semidefinite.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        h = _validate.floats("matrix", matrix, ndims=(2,))
        if h.shape[0] != h.shape[1] or not np.array_equal(h, h.T):
            raise ValueError(f"matrix must be square and symmetric, got shape {h.shape}")
        off = np.abs(h).sum(axis=1) - np.abs(np.diag(h))
        if (np.diag(h) < off).any():
            row = int(np.argmax(off - np.diag(h)))
            raise ValueError(
                f"matrix must be diagonally dominant, got the diagonal entry {h[row, row]} in "
                f"row {row}, whose other absolute values sum to {off[row]}"
            )
        self.matrix = h

    def __repr__(self) -> str:
        return f"MatrixQuadratic({self.matrix.tolist()})"

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items if their number of coordinates equals the dimension of the matrix."""
        if items.shape[-1] != len(self.matrix):
            raise ValueError(
                f"data must hold items of {len(self.matrix)} coordinates, got "
                f"{items.shape[-1]} coordinates"
            )
        return items

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return H x and -H mean(z)."""
        return (x @ self.matrix)[:, None], -(users.mean(axis=1) @ self.matrix)[None]

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return (x - z)^T H (x - z) / 2."""
        apart = x[:, None] - items[None]
        return np.asarray(np.einsum("ski,ij,skj->sk", apart, self.matrix, apart) / 2)

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return beta times the largest distance of an item, a bound for the longest gradient."""
        return self.smoothness(norm) * float(domain.farthest(items, norm).max())

    def smoothness(self, norm: str) -> float:
        """Return the largest eigenvalue, or the largest absolute row sum for "linf"."""
        if norm_name(norm) == "linf":
            return float(np.abs(self.matrix).sum(axis=1).max())
        return float(np.linalg.eigvalsh(self.matrix)[-1])


def users_of(data: Any, loss: Loss) -> FloatArray:
    """Return the data as ``[n_users, m, p]``, finite and valid for the loss.

    Raises
    ------
    ValueError
        If users have different numbers of items. In the papers, every mean is taken over m items.
    """
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(
            "data must have the shape [n_users, m, p], got users or items of different lengths. "
            "Give every user m items and every item p numbers."
        ) from None
    return loss.checked(_validate.floats("data", array, ndims=(3,)))
