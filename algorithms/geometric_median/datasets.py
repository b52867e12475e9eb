"""The synthetic datasets of geometric_median, Section 5."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from algorithms.common import _validate
from algorithms.common._validate import FloatArray


def gaussian_cluster(
    n_users: int,
    dimension: int,
    *,
    max_radius: float,
    sigma: float,
    inlier_fraction: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw a Gaussian cluster around a random point, and outliers from the whole ball.

    The source is geometric_median, Section 5, GaussianCluster(R, n, d, sigma, frac_in), after
    HSU24, Appendix H. The n_in = frac_in n inliers come from N(mu, sigma**2 I), where mu is uniform
    on the sphere of radius R / 2. The other points are uniform in the ball of radius R.

    **Departs** frac_in n is rounded to the nearest integer. The inliers come first, and the rows
    are not shuffled. Inliers may lie outside of the ball. Inliers outside of the ball are possible
    in the paper too, although the paper's algorithms assume that all points lie inside. At the
    paper's R = 0.5, d = 10 and sigma = 0.1, one inlier in ten lies outside.

    Parameters
    ----------
    n_users, dimension : int
        At least 1.
    max_radius, sigma : float
        Positive.
    inlier_fraction : float
        From 0 to 1.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [n_users, dimension]
    """
    rng = _validate.generator(rng)
    n_users = _validate.integer("n_users", n_users, at_least=1)
    dimension = _validate.integer("dimension", dimension, at_least=1)
    max_radius = _validate.positive("max_radius", max_radius)
    sigma = _validate.positive("sigma", sigma)
    fraction = _validate.real("inlier_fraction", inlier_fraction)
    if not 0 <= fraction <= 1:
        raise ValueError(f"inlier_fraction must be from 0 to 1, got {inlier_fraction!r}")
    n_inliers = round(fraction * n_users)
    center = max_radius / 2 * _directions(1, dimension, rng)
    inliers = center + rng.normal(scale=sigma, size=(n_inliers, dimension))
    n_outliers = n_users - n_inliers
    lengths = max_radius * rng.random((n_outliers, 1)) ** (1 / dimension)
    outliers = lengths * _directions(n_outliers, dimension, rng)
    return np.concatenate([inliers, outliers])


def heavy_tailed(
    n_users: int, dimension: int, *, degrees: float, rng: np.random.Generator
) -> FloatArray:
    """Draw from the multivariate Student t distribution around 0 with identity scale.

    The source is geometric_median, Section 5, HeavyTailed(nu, n, d). The distribution is unbounded,
    so no ball of radius R contains it. The paper's algorithms need such an R, and the paper does
    not say which R it uses.

    Parameters
    ----------
    n_users, dimension : int
        At least 1.
    degrees : float
        Degrees of freedom nu, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [n_users, dimension]
    """
    rng = _validate.generator(rng)
    n_users = _validate.integer("n_users", n_users, at_least=1)
    dimension = _validate.integer("dimension", dimension, at_least=1)
    degrees = _validate.positive("degrees", degrees)
    normal = rng.normal(size=(n_users, dimension))
    return np.asarray(normal / np.sqrt(rng.chisquare(degrees, size=(n_users, 1)) / degrees))


def gaussian_cluster_radius(sigma: float, dimension: int) -> float:
    """Return the paper's true radius of GaussianCluster, sigma sqrt(d).

    The paper calls this radius the quantile radius at gamma = 0.75, but this radius holds only
    about half of the data. For d = 10, this radius holds a fraction 0.56 of the inliers. The
    quantile radius of the inliers is sigma sqrt(F^-1(gamma / frac_in)), where F is the distribution
    function of chi-square with d degrees.
    """
    dimension = _validate.integer("dimension", dimension, at_least=1)
    return _validate.positive("sigma", sigma) * math.sqrt(dimension)


def heavy_tailed_radius(dimension: int, degrees: float, gamma: float) -> float:
    """Return the radius around 0 that holds a fraction `gamma` of HeavyTailed.

    The squared norm divided by d has an F(d, nu) distribution, so the radius is sqrt(d
    F^-1(gamma)). The paper writes F, "the CDF", but the formula needs the inverse of the CDF.
    """
    dimension = _validate.integer("dimension", dimension, at_least=1)
    degrees = _validate.positive("degrees", degrees)
    gamma = _validate.probability("gamma", gamma)
    return math.sqrt(dimension * float(stats.f.ppf(gamma, dimension, degrees)))


def _directions(size: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    normal = rng.normal(size=(size, dimension))
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))
