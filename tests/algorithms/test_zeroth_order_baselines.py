"""Tests of the method without privacy: by hand and by enumeration of its outputs."""

from __future__ import annotations

import numpy as np

from algorithms.zeroth_order.baselines import gradient_free_descent
from algorithms.zeroth_order.losses import FunctionLoss, Linear

ITEMS = np.array([[1.0], [3.0], [2.0], [5.0], [4.0], [0.0], [6.0], [7.0]])
PLAN = {"radius": 0.1, "step": 0.25, "period": 3, "large_batch": 2, "small_batch": 1}


def squares(points, items):
    return ((points - items) ** 2).sum(axis=-1) / 2


def test_in_one_dimension_the_estimates_are_gradients_of_squares():
    """Check the path by hand: x - z is the gradient, and a change of it does not depend on z."""
    loss = FunctionLoss(squares, lipschitz=100.0)
    found = gradient_free_descent(
        ITEMS, 2, loss=loss, start=[0.0], transcript=True, rng=np.random.default_rng(1), **PLAN
    )
    first = 0.0 - (1 + 3) / 2  # the first estimate, by a large batch
    x = [0.0, 0.0 - 0.25 * first]
    second = first + (x[1] - x[0])
    x.append(x[1] - 0.25 * second)
    third = second + (x[2] - x[1])
    x.append(x[2] - 0.25 * third)  # before the next large batch, the items 4 and 0
    x.append(x[3] - 0.25 * (x[3] - (4 + 0) / 2))
    x.append(x[4] - 0.25 * ((x[3] - 2) + (x[4] - x[3])))
    np.testing.assert_allclose(found[..., 0], [x, x], rtol=0, atol=1e-9)


def test_both_points_of_a_change_have_the_same_directions():
    """Check that a linear loss keeps the first estimate, in two dimensions."""
    items = np.random.default_rng(2).normal(size=(9, 2))
    path = gradient_free_descent(
        items, 3, loss=Linear(lipschitz=10.0), start=[0.0, 0.0], transcript=True,
        rng=np.random.default_rng(3), **PLAN | {"period": 9},
    )  # fmt: skip
    steps = np.diff(path, axis=1)
    assert np.abs(steps[:, 0]).min() > 0.01
    np.testing.assert_allclose(steps, np.broadcast_to(steps[:, :1], steps.shape), atol=1e-9)
    assert len({round(float(step[0, 0]), 6) for step in steps}) == 3, "each draw has its own"


def test_the_output_is_any_of_the_points():
    loss = FunctionLoss(squares, lipschitz=100.0)
    given = {"loss": loss, "start": [0.0], "rng": np.random.default_rng(4), **PLAN}
    path = gradient_free_descent(ITEMS, 1, transcript=True, **given)[0, :, 0]
    ends = gradient_free_descent(ITEMS, 200, **given)[:, 0]
    assert ends.shape == (200,)
    where = np.abs(ends[:, None] - path).argmin(axis=1)
    np.testing.assert_allclose(ends, path[where], atol=1e-9)
    assert set(where) == set(range(len(path)))  # a point is missed with probability 6 (5/6)^200
