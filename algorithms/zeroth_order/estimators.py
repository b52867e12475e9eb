"""Estimates of the gradient of a uniformly smoothed loss, from values: Algorithms 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.zeroth_order.losses import Loss, checked_difference

BLOCK = 2**18  # coordinates of directions that are held at once


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

    zeroth_order, Algorithm 1 (Grad), and with ``n_directions=1`` line 5 of Algorithm 6.

    **Guarantee** Unbiased for i.i.d. items. Not private: at the same directions it moves by at most
    2 d L / b between neighbours (Lemma 3.1), which d = 1 attains with linear losses.

    **Requires** that `loss` is `loss.lipschitz`-Lipschitz; each pair of values tests it.

    **Departs** (1) d directions for each item are printed; another number may be asked for. (2)
    Directions that are given are used in every draw.

    **Symbols** f = `loss`, delta = `radius`, x = `point`, z_1, ..., z_b = `data`, u_ij =
    `directions` [i, j].

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
        One for all draws, or one for each.
    n_directions : int or None, default None
        For each item; d by default.
    directions : array_like, [b, j, d], optional
        Unit vectors; drawn afresh for each draw by default.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, d]
    """
    items, size, rng = _checked(data, size, loss, rng)
    radius = _validate.positive("radius", radius)
    d = loss.dimension(items.shape[1])
    x = points_of("point", point, size, d)
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
    """Estimate how the gradient of the smoothed loss changes from one point to another.

    zeroth_order, Algorithm 2 (Diff).

    **Guarantee** Unbiased for i.i.d. items. Not private: at the same directions it moves by at most
    2 d L norm(x - y) / (b delta) between neighbours (Lemma 3.2), which d = 1 attains.

    **Requires**, **Departs** and the other parameters as `gradient_estimate`.

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
    radius = _validate.positive("radius", radius)
    d = loss.dimension(items.shape[1])
    x, y = points_of("point", point, size, d), points_of("previous", previous, size, d)
    return _average(loss, items, x, y, radius, n_directions, directions, rng)


def items_of(data: ArrayLike, loss: Loss) -> FloatArray:
    """Return the items ``[n, p]``; users ``[n, 1, p]`` own one each."""
    items = _validate.floats("data", data, ndims=(2, 3))
    if items.ndim == 3:
        if items.shape[1] != 1:
            raise ValueError(
                f"data must hold one item for each user, got {items.shape[1]}: the paper's "
                "neighbours differ in one data point"
            )
        items = items[:, 0]
    loss.dimension(items.shape[1])
    return items


def points_of(name: str, value: ArrayLike, size: int, dimension: int) -> FloatArray:
    """Return points ``[size, d]``, of which one may have been given for all draws."""
    points = _validate.floats(name, value, ndims=(1, 2)) if size else np.zeros((0, dimension))
    if points.shape[-1] != dimension or (points.ndim == 2 and len(points) != size):
        raise ValueError(
            f"{name} must have shape ({dimension},) or ({size}, {dimension}), got {points.shape}"
        )
    return np.broadcast_to(points, (size, dimension))


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
    """Return line 3 of Algorithm 1, or of Algorithm 2 where there is a previous point y."""
    size, d = x.shape
    fixed = None
    if directions is not None:
        fixed = radius * unit_vectors(directions, len(items), d)
        n_directions = fixed.shape[1]
    elif n_directions is None:
        n_directions = d
    else:
        n_directions = _validate.integer("n_directions", n_directions, at_least=1)
    found = np.empty((size, d))
    z = items[:, None]
    for part in _parts(size, len(items) * n_directions * d):
        here = x[part]
        away = fixed  # delta u_ij
        if away is None:
            away = _on_sphere((len(here), len(items), n_directions, d), radius, rng)  # line 2
        center = here[:, None, None]
        rounding = 1e-15 * d * (np.abs(here).max(initial=0.0) + radius)  # of the points' places
        if y is None:
            differences = checked_difference(
                loss, center + away, center - away, z, 2 * radius + rounding
            )
            factor = d / (2 * radius**2)
        else:
            there = y[part]
            distances = np.linalg.norm(here - there, axis=-1)[:, None, None] + rounding
            other = there[:, None, None]
            differences = checked_difference(loss, center + away, other + away, z, distances)
            factor = d / radius**2
        weights = differences * (factor / (len(items) * n_directions))
        found[part] = np.einsum("sij,sijd->sd", weights, np.broadcast_to(away, (*weights.shape, d)))
    return found


def _on_sphere(shape: tuple[int, ...], radius: float, rng: np.random.Generator) -> FloatArray:
    """Return vectors that are uniform on a sphere."""
    away = rng.standard_normal(shape)
    away *= (radius / np.sqrt(np.einsum("...d,...d->...", away, away)))[..., None]
    return away


def unit_vectors(directions: ArrayLike, n_items: int, dimension: int) -> FloatArray:
    """Return given directions ``[n_items, j, d]``, if they have length 1."""
    u = _validate.floats("directions", directions, ndims=(3,))
    if u.shape[0] != n_items or u.shape[2] != dimension:
        raise ValueError(f"directions must have shape ({n_items}, j, {dimension}), got {u.shape}")
    lengths = np.linalg.norm(u, axis=-1)
    if not np.allclose(lengths, 1.0, rtol=1e-9, atol=0):
        raise ValueError(
            f"directions must have length 1, got {float(lengths.flat[0])!r} among others"
        )
    return u


def _parts(size: int, per_draw: int) -> Iterator[slice]:
    block = max(1, BLOCK // per_draw)
    for first in range(0, size, block):
        yield slice(first, min(size, first + block))
