"""Algorithms 1 and 2, which estimate the gradient of a uniformly smoothed loss from loss values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.losses import Loss, clipped_difference

BLOCK = 2**18  # number of coordinates of directions that are in memory at once


def gradient_estimate(
    data: ArrayLike,
    size: int,
    *,
    loss: Loss,
    radius: float,
    point: ArrayLike,
    n_directions: int | None = None,
    directions: ArrayLike | None = None,
    rng: np.random.Generator,
) -> FloatArray:
    """Estimate the gradient of the smoothed loss at a point.

    The source is zeroth_order, Algorithm 1 (Grad). With ``n_directions=1``, the function is line 5
    of Algorithm 6.

    **Guarantee** The estimate is unbiased for i.i.d. items. The estimate alone is not private. At
    the same directions, the estimate moves by at most 2 d L / b between neighbours (Lemma 3.1).
    Linear losses attain this bound at d = 1.

    **Requires** that `loss` is `loss.lipschitz`-Lipschitz, if the mean of the estimate is to be
    correct. The sensitivity does not need this condition.

    **Departs** (1) The paper uses d directions for each item. In this function, another number can
    be chosen.
    (2) Given directions are used in every draw. (3) Differences of values are clipped to the range
    that the Lipschitz constant allows. A NaN difference counts as 0. Privacy must not depend on the
    behaviour of a loss on a user's item, or on the rounding of the loss.

    **Symbols** f = `loss`, delta = `radius`, x = `point`. The items z_1, ..., z_b are `data`, and
    u_ij is `directions` [i, j].

    Parameters
    ----------
    data : array_like, [b, p]
        Items.
    size : int
        Number of independent draws.
    loss : Loss
    radius : float
        Positive.
    point : array_like, [d] or [size, d]
        One point for all draws, or one point for each draw.
    n_directions : int or None, default None
        Number of directions for each item. The default is d.
    directions : array_like, [b, j, d], optional
        Unit vectors. By default, new vectors are drawn for each draw.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    items, size, rng = _checked(data, size, loss, rng)
    x = points_of("point", point, size, loss.dimension(items.shape[1]))
    radius = smoothing_radius(radius, x)
    return _average(loss, items, x, None, radius, n_directions, directions, rng)


def difference_estimate(
    data: ArrayLike,
    size: int,
    *,
    loss: Loss,
    radius: float,
    point: ArrayLike,
    previous: ArrayLike,
    n_directions: int | None = None,
    directions: ArrayLike | None = None,
    rng: np.random.Generator,
) -> FloatArray:
    """Estimate how much the gradient of the smoothed loss changes from one point to another.

    The source is zeroth_order, Algorithm 2 (Diff).

    **Guarantee** The estimate is unbiased for i.i.d. items. The estimate alone is not private. At
    the same directions, the estimate moves by at most 2 d L norm(x - y) / (b delta) between
    neighbours (Lemma 3.2). At d = 1, this bound is attained.

    **Requires**, **Departs** and the other parameters are those of `gradient_estimate`.

    **Symbols** x = `point`, y = `previous`.

    Parameters
    ----------
    data, size, loss, radius, point, n_directions, directions, rng
        As for `gradient_estimate`.
    previous : array_like, [d] or [size, d]

    Returns
    -------
    ndarray, [size, d]
    """
    items, size, rng = _checked(data, size, loss, rng)
    d = loss.dimension(items.shape[1])
    x, y = points_of("point", point, size, d), points_of("previous", previous, size, d)
    radius = smoothing_radius(radius, x)
    return _average(loss, items, x, y, radius, n_directions, directions, rng)


def items_of(data: ArrayLike, loss: Loss) -> FloatArray:
    """Return the items ``[n, p]``.

    Data of users ``[n, 1, p]`` have one item per user.
    """
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a Loss, such as FunctionLoss(function, ...), got {loss!r}")
    items = _validate.floats("data", data, ndims=(2, 3))
    if items.ndim == 3:
        if items.shape[1] != 1:
            raise ValueError(
                f"data must hold exactly one item for each user, got {items.shape[1]}. In the "
                "paper, neighbours differ in one data point."
            )
        items = items[:, 0]
    loss.dimension(items.shape[1])
    return items


def points_of(name: str, value: ArrayLike, size: int, dimension: int) -> FloatArray:
    """Return points ``[size, d]``.

    A single given point is repeated for all draws.
    """
    none = size == 0 and np.shape(value) == (0, dimension)
    points = np.zeros((0, dimension)) if none else _validate.floats(name, value, ndims=(1, 2))
    if points.shape[-1] != dimension or (points.ndim == 2 and len(points) != size):
        raise ValueError(
            f"{name} must have shape ({dimension},) or ({size}, {dimension}), got shape "
            f"{points.shape}"
        )
    return np.broadcast_to(points, (size, dimension))


def smoothing_radius(radius: float, points: FloatArray) -> float:
    """Return a positive radius, and refuse a radius that is lost when the points are rounded."""
    radius = _validate.positive("radius", radius)
    least = 1e-12 * float(np.abs(points).max(initial=1e-100))
    if not least <= radius <= 1e100:
        raise ValueError(
            f"radius must be between {least!r} and 1e100 for these points, got {radius!r}"
        )
    return radius


def _checked(
    data: ArrayLike, size: int, loss: Loss, rng: np.random.Generator
) -> tuple[FloatArray, int, np.random.Generator]:
    return items_of(data, loss), _validate.draws(size), _validate.generator(rng)


def _average(
    loss: Loss,
    items: FloatArray,
    x: FloatArray,
    y: FloatArray | None,
    radius: float,
    n_directions: int | None,
    directions: ArrayLike | None,
    rng: np.random.Generator,
) -> FloatArray:
    """Return line 3 of Algorithm 1, or of Algorithm 2 if there is a previous point y."""
    size, d = x.shape
    fixed = None if directions is None else unit_vectors(directions, len(items), d)
    if fixed is not None and n_directions not in (None, fixed.shape[1]):
        raise ValueError(
            f"n_directions must be {fixed.shape[1]}, the number in directions, got {n_directions!r}"
        )
    j = d if n_directions is None else _validate.integer("n_directions", n_directions, at_least=1)
    if fixed is not None:
        j = fixed.shape[1]
    found = np.zeros((size, d))
    for draws in _parts(size, len(items) * j * d):
        here = x[draws, None, None]
        other, apart = here, 2 * radius
        if y is not None:
            other = y[draws, None, None]
            apart = np.linalg.norm(here - other, axis=-1)
        for some in _parts(len(items), j * d):
            shape = (len(here), len(items[some]), j, d)
            u = on_sphere(shape, rng) if fixed is None else fixed[some]  # line 2
            away = radius * u
            behind = other - away if y is None else other + away
            differences = clipped_difference(loss, here + away, behind, items[some, None], apart)
            weights = differences / (2 * radius if y is None else radius) * (d / (len(items) * j))
            found[draws] += np.einsum("sij,sijd->sd", weights, np.broadcast_to(u, shape))
    return found


def on_sphere(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return vectors that are uniform on the unit sphere."""
    u = rng.standard_normal(shape)
    u /= np.sqrt(np.einsum("...d,...d->...", u, u))[..., None]
    return u


def unit_vectors(directions: ArrayLike, n_items: int, dimension: int) -> FloatArray:
    """Return the given directions ``[n_items, j, d]``, and refuse lengths other than 1."""
    u = _validate.floats("directions", directions, ndims=(3,))
    if u.shape[0] != n_items or u.shape[2] != dimension:
        raise ValueError(
            f"directions must have shape ({n_items}, j, {dimension}), got shape {u.shape}"
        )
    lengths = np.linalg.norm(u, axis=-1)
    if not np.allclose(lengths, 1.0, rtol=1e-9, atol=0):
        raise ValueError(
            f"directions must have length 1, got a direction of length {float(lengths.flat[0])!r}"
        )
    return u


def _parts(size: int, each: int) -> Iterator[slice]:
    """Yield slices of the range from 0 to size that fit in memory.

    Each entry of a slice needs `each` numbers.
    """
    block = max(1, BLOCK // each)
    for first in range(0, size, block):
        yield slice(first, min(size, first + block))
