"""Selection among hypotheses about the data, which is Theorem 41 (learning by a cover)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, qmc

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.few_examples.pairwise import TableComparison

_CELLS = 2**24


def scheffe_comparison(hypotheses: ArrayLike) -> TableComparison:
    """Return Scheffe's comparison of distributions over a finite universe.

    In few_examples, the proof of Theorem 41 has psi_{P, P'}(z) = P(W) - 1[z in W], where W = {z:
    P(z) > P'(z)}.

    **Departs** The paper defines W and prints pscr(D) = P(W) - D(W), but no psi. The mean of this
    function's psi over D is P(W) - D(W), and psi lies between -1 and 1.

    Parameters
    ----------
    hypotheses : array_like, [H, universe]
        Distributions, as rows.

    Returns
    -------
    TableComparison
    """
    rows = distributions("hypotheses", hypotheses)
    larger = (rows[:, None] > rows[None]).astype(np.float64)
    if larger.size > _CELLS:
        raise ValueError(
            f"hypotheses must have at most {_CELLS} cells, where a cell is a pair of "
            f"hypotheses and an item, got shape {rows.shape}"
        )
    mass = np.einsum("ijz,iz->ij", larger, rows)
    return TableComparison(np.clip(mass[:, :, None] - larger, -1, 1))


@dataclass(frozen=True, eq=False)
class GaussianComparison:
    """Scheffe's comparison of Gaussian distributions.

    The source is few_examples, proofs of Theorems 41, 45 and 46.

    **Guarantee** psi lies between -1 and 1 for all values of the attributes below. So privacy does
    not depend on these values.

    **Departs** P(W) is exact if all covariances are the identity. Otherwise, P(W) is computed from
    4096 points of a Sobol sequence. All pairs use the same points. The error of P(W) is a few
    thousandths for d <= 2, and about a hundredth for d = 10. This error affects the accuracy of the
    result, but not its privacy.

    Attributes
    ----------
    means : ndarray, [H, d]
    covariances : ndarray, [H, d, d], or None
        Positive definite matrices, or None for the identity.
    """

    means: ArrayLike
    covariances: ArrayLike | None = None
    _roots: FloatArray = field(init=False, repr=False)
    _mass: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        means = _validate.floats("means", self.means, ndims=(2,))
        H, d = means.shape
        roots: FloatArray = np.tile(np.eye(d), (H, 1, 1))
        if self.covariances is None:
            gaps = np.linalg.norm(means[:, None] - means[None], axis=2)
            mass = norm.cdf(gaps / 2) * (gaps > 0)
        else:
            covariances = _validate.floats("covariances", self.covariances, ndims=(3,))
            if covariances.shape != (H, d, d):
                raise ValueError(
                    f"covariances must have shape {(H, d, d)}, got shape {covariances.shape}"
                )
            if not np.array_equal(covariances, covariances.swapaxes(1, 2)):
                raise ValueError("covariances must be symmetric")
            try:
                roots = np.asarray(np.linalg.cholesky(covariances), dtype=np.float64)
            except np.linalg.LinAlgError:
                raise ValueError("covariances must be positive definite") from None
            points = norm.ppf(qmc.Sobol(d, scramble=False).random_base2(12) + 2.0**-13)
            mass = np.array(
                [
                    (own[:, i, None] > own).mean(axis=0)
                    for i in range(H)
                    for own in [_log_densities(means[i] + points @ roots[i].T, means, roots)]
                ]
            )
        _validate.keep(self, means=means, _roots=roots, _mass=mass)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(np.asarray(self.means))

    def users_of(self, data: Any) -> FloatArray:
        """Return log densities of each user's items under each candidate, [n, m, H]."""
        means: FloatArray = np.asarray(self.means)
        items = _validate.floats("data", data, ndims=(3,))
        if items.shape[2] != means.shape[1]:
            raise ValueError(
                f"data must have shape [n, m, {means.shape[1]}], got shape {items.shape}"
            )
        return _log_densities(items, means, self._roots)

    def of_users(self, users: FloatArray) -> FloatArray:
        """Return pscr_{P, P'} of each user, [n, H, H]."""
        m = users.shape[1]
        inside = sum((users[:, j, :, None] > users[:, j, None, :]).astype(float) for j in range(m))
        return np.asarray(m * self._mass - inside)


def total_variation(one: ArrayLike, other: ArrayLike) -> FloatArray:
    """Return half the L1 distance of distributions over a finite universe, along the last axis."""
    return np.asarray(np.abs(np.asarray(one) - np.asarray(other)).sum(axis=-1) / 2)


def distributions(name: str, value: ArrayLike) -> FloatArray:
    """Return distributions over a finite universe, [H, universe], and refuse invalid rows."""
    rows = _validate.floats(name, value, ndims=(2,))
    if (rows < 0).any():
        raise ValueError(f"{name} must hold only values that are at least 0, got {rows.min()}")
    sums = rows.sum(axis=1)
    if (abs(sums - 1) > 1e-9).any():
        raise ValueError(f"{name} must sum to one, got a sum of {sums[abs(sums - 1).argmax()]!r}")
    return rows


def flat_items(data: ArrayLike, k: int) -> IntArray:
    """Return items of [k]^d as numbers below k^d, for `covers.product_cover`.

    The shape changes from [n, m, d] to [n, m].

    Parameters
    ----------
    data : array_like of int, [n, m, d]
        In 0, ..., k - 1.
    k : int
        At least 1.
    """
    k = _validate.integer("k", k, at_least=1)
    items = _validate.integers("data", data, ndims=(3,), low=0, high=k - 1)
    if k ** items.shape[2] > 2**53:
        raise ValueError(f"k ** d must be at most 2**53, got {k} ** {items.shape[2]}")
    return np.asarray(items @ k ** np.arange(items.shape[2])[::-1])


def _log_densities(points: FloatArray, means: FloatArray, roots: FloatArray) -> FloatArray:
    """Return log densities up to a constant, [..., H], of points [..., d]."""
    found = np.empty((*points.shape[:-1], len(means)))
    for h, (mean, root) in enumerate(zip(means, roots, strict=True)):
        with np.errstate(over="ignore", invalid="ignore"):  # far away, all densities are 0
            white = (points - mean) @ np.linalg.inv(root).T
            found[..., h] = -(white**2).sum(axis=-1) / 2 - np.log(np.diagonal(root)).sum()
    return found
