"""Convex losses with their constants, in the two geometries of the papers.

A loss knows the gradient of one item, how long such gradients get on a domain, and how much they
change: the Lipschitz constant G of Definition 4 (Euclidean; v2) or Definition 24 (l-infinity; v1
and the appendix of v2), and the smoothness beta of Definitions 4 and 25.

Items are rows ``[p]``, users ``[m, p]``; a whole batch of users is ``[B, m, p]``.
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

_NOTHING = np.zeros((1, 1, 1))  # the shared part where there is none


class Loss(ABC):
    """A convex loss f(x; z) of a point x in R^d and an item z."""

    @property
    def diagonally_dominant(self) -> bool:
        """Whether the Hessian of every item is diagonally dominant (Definition 26)."""
        return True

    @abstractmethod
    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q(Z), the mean gradient of each user's items at each point, in two parts.

        Of many losses one part is the same for all users, and the other for all points; then
        differences of gradients, and so concentration scores, do not depend on the point.

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
        """Return q(Z) ``[S, B, d]``, or ``[1, B, d]`` where it is the same for all points."""
        shared, own = self.parts(x, users)
        return shared + own

    @abstractmethod
    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return f(x; z) for points ``[S, d]`` and items ``[K, p]`` as ``[S, K]``."""

    @abstractmethod
    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the largest gradient of the items ``[..., p]`` on the domain, in a norm."""

    @abstractmethod
    def smoothness(self, norm: str) -> float:
        """Return beta: the largest norm of a Hessian, as an operator on that norm."""

    def dimension(self, n_columns: int) -> int:
        """Return d for items of `n_columns` numbers."""
        return n_columns

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items, if they are of the loss."""
        return items


@dataclass(frozen=True)
class Linear(Loss):
    """f(x; z) = -<x, z>, which any shift of a trajectory outlives: beta = 0."""

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 0 and -mean(z)."""
        return _NOTHING, -users.mean(axis=1)[None]

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return -<x, z>."""
        return np.asarray(-(x @ items.T))

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the longest item."""
        return float(lengths(items, norm_name(norm)).max())

    def smoothness(self, norm: str) -> float:
        """Return 0."""
        norm_name(norm)
        return 0.0


@dataclass(frozen=True)
class Quadratic(Loss):
    """f(x; z) = (curvature / 2) norm(x - z)**2.

    Parameters
    ----------
    curvature : float, default 1
        beta, positive.
    """

    curvature: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("curvature", self.curvature)

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return curvature x and -curvature mean(z)."""
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
    """f(x; (z, h)) = (h / 2) norm(x - z)**2: each item brings a curvature of its own.

    With one curvature for all, differences of gradients, and so all concentration scores, do not
    depend on x. Here they do.

    Parameters
    ----------
    curvature : float
        beta, the largest h that is allowed, positive.
    """

    curvature: float

    def __post_init__(self) -> None:
        _validate.positive("curvature", self.curvature)

    def dimension(self, n_columns: int) -> int:
        """Return the number of columns but the last, which is h."""
        return n_columns - 1

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items, if their curvatures lie in [0, `curvature`]."""
        if items.shape[-1] < 2:
            raise ValueError(f"data must hold items (z, h), got {items.shape[-1]} column")
        own = items[..., -1]
        if own.min() < 0 or own.max() > self.curvature:
            raise ValueError(
                f"data must hold curvatures from 0 to {self.curvature!r} in its last column, got "
                f"{own.min()} to {own.max()}"
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
        """Return the largest h times the distance of z to the domain."""
        return float((items[..., -1] * domain.farthest(items[..., :-1], norm_name(norm))).max())

    def smoothness(self, norm: str) -> float:
        """Return the largest curvature that is allowed."""
        norm_name(norm)
        return self.curvature


@dataclass(frozen=True)
class Huber(Loss):
    """f(x; z) = curvature h(norm(x - z)), h(r) = r**2 / 2 up to a threshold, then linear.

    Its gradients are curvature (x - z), clipped: G = curvature threshold and beta = curvature,
    whatever the data and the domain. The paper's losses are twice differentiable; this one is, but
    where norm(x - z) is the threshold.

    Parameters
    ----------
    threshold : float
        Up to which it is quadratic, positive.
    separable : bool, default False
        Whether h is applied to each coordinate and summed: then G is in l-infinity norm, and the
        Hessian is diagonal.
    curvature : float, default 1
        beta, positive.
    """

    threshold: float
    separable: bool = False
    curvature: float = 1.0

    def __post_init__(self) -> None:
        _validate.positive("threshold", self.threshold)
        _validate.positive("curvature", self.curvature)

    @property
    def diagonally_dominant(self) -> bool:
        """Whether the Hessian is diagonal: that of the norm is not."""
        return self.separable

    def parts(self, x: FloatArray, users: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return 0, and the mean of the clipped differences."""
        total = np.zeros((len(x), len(users), x.shape[1]))
        for item in range(users.shape[1]):  # m arrays [S, B, d] stay in the cache; one of all not
            apart = x[:, None] - users[None, :, item]
            if self.separable:
                total += np.clip(apart, -self.threshold, self.threshold)
            else:
                rates = self.threshold / np.maximum(lengths(apart, "l2"), self.threshold)
                total += rates[..., None] * apart
        return _NOTHING, self.curvature / users.shape[1] * total

    def values(self, x: FloatArray, items: FloatArray) -> FloatArray:
        """Return h of the distance, or of each coordinate's."""
        apart = np.abs(x[:, None] - items[None])
        r = apart if self.separable else lengths(apart, "l2")[..., None]
        inner = np.minimum(r, self.threshold)
        return np.asarray(self.curvature * (inner * (r - inner / 2)).sum(axis=-1))

    def longest_gradient(self, items: FloatArray, domain: Domain, norm: str) -> float:
        """Return the threshold, or what the domain lets gradients be, times the curvature."""
        root = math.sqrt(items.shape[-1]) if self.separable and norm_name(norm) == "l2" else 1.0
        farthest = float(domain.farthest(items, norm_name(norm)).max())
        return self.curvature * min(self.threshold * root, farthest)

    def smoothness(self, norm: str) -> float:
        """Return the curvature; refused in l-infinity for the Hessian of a norm."""
        if norm_name(norm) == "linf" and not self.separable:
            raise ValueError("loss must be separable for norm 'linf': Huber(..., separable=True)")
        return self.curvature


@dataclass(frozen=True)
class Logistic(Loss):
    """f(x; (a, y)) = log(1 + exp(-y <a, x>)) with y = -1 or 1.

    Parameters
    ----------
    feature_norm : float
        The longest a that is allowed, in Euclidean norm, positive: G = feature_norm and
        beta = feature_norm**2 / 4.
    """

    feature_norm: float

    def __post_init__(self) -> None:
        _validate.positive("feature_norm", self.feature_norm)

    @property
    def diagonally_dominant(self) -> bool:
        """Whether the Hessian is diagonally dominant: a a^T is not, with three features or more."""
        return False

    def dimension(self, n_columns: int) -> int:
        """Return the number of columns but the last, which is y."""
        return n_columns - 1

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items, if they are labelled and their features short enough."""
        if items.shape[-1] < 2:
            raise ValueError(f"data must hold items (a, y), got {items.shape[-1]} column")
        if not np.isin(items[..., -1], (-1.0, 1.0)).all():
            raise ValueError("data must hold labels -1 and 1 in its last column")
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
        """Return the longest feature vector: the rate in front of it comes close to 1."""
        return float(lengths(items[..., :-1], norm_name(norm)).max())

    def smoothness(self, norm: str) -> float:
        """Return feature_norm**2 / 4; refused in l-infinity, where nothing is diagonal."""
        if norm_name(norm) == "linf":
            raise ValueError("loss must have diagonally dominant Hessians for norm 'linf'")
        return self.feature_norm**2 / 4


class MatrixQuadratic(Loss):
    """f(x; z) = (x - z)^T H (x - z) / 2 with one diagonally dominant H.

    Parameters
    ----------
    matrix : array_like, [d, d]
        H, symmetric, diagonally dominant (Definition 26), with a diagonal that is not negative; so
        it is positive semidefinite.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        h = _validate.floats("matrix", matrix, ndims=(2,))
        if h.shape[0] != h.shape[1] or not np.array_equal(h, h.T):
            raise ValueError(f"matrix must be square and symmetric, got shape {h.shape}")
        off = np.abs(h).sum(axis=1) - np.abs(np.diag(h))
        if (np.diag(h) < off).any():
            row = int(np.argmax(off - np.diag(h)))
            raise ValueError(
                f"matrix must be diagonally dominant, got {h[row, row]} on the diagonal of row "
                f"{row} and {off[row]} beside it"
            )
        self.matrix = h

    def __repr__(self) -> str:
        return f"MatrixQuadratic({self.matrix.tolist()})"

    def checked(self, items: FloatArray) -> FloatArray:
        """Return the items, if they have as many coordinates as the matrix."""
        if items.shape[-1] != len(self.matrix):
            raise ValueError(
                f"data must hold items of {len(self.matrix)} coordinates, got {items.shape[-1]}"
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
        """Return beta times the largest distance of an item: at least the longest gradient."""
        return self.smoothness(norm) * float(domain.farthest(items, norm).max())

    def smoothness(self, norm: str) -> float:
        """Return the largest eigenvalue, or the largest row of absolute values."""
        if norm_name(norm) == "linf":
            return float(np.abs(self.matrix).sum(axis=1).max())
        return float(np.linalg.eigvalsh(self.matrix)[-1])


def users_of(data: Any, loss: Loss) -> FloatArray:
    """Return data as ``[n_users, m, p]``, all finite and of the loss.

    Raises
    ------
    ValueError
        Where users have different numbers of items: every mean is of m items in the papers.
    """
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(
            "data must hold the same number of items for every user, and of numbers for every "
            "item: [n_users, m, p]"
        ) from None
    return loss.checked(_validate.floats("data", array, ndims=(3,)))
