"""Items that attain the sensitivities of Lemmas 3.1 and 3.2, and neighbours with such items."""

from __future__ import annotations

import numpy as np

from algorithms.zeroth_order.losses import FunctionLoss
from dpaudit import NeighborPair


def slope_and_kink(points, items):
    """Return f(x, (a, b)) = a x_1 + b abs(x_1).

    If abs(a) + abs(b) <= 1, the function is 1-Lipschitz.
    """
    x = points[..., 0]
    a, b = items[..., 0], items[..., 1]
    return a * x + b * np.abs(x)


def loss(dimension=1):
    return FunctionLoss(slope_and_kink, lipschitz=1.0, n_dimensions=dimension)


SLOPE, KINK = (1.0, 0.0), (0.0, 1.0)


def flipped(n, position, item=None):
    """Return neighbours in which one item changes its sign, and all other items have loss 0.

    At position 0, the changing item is a slope. At other positions, the changing item is a kink at
    0. In d = 1, Grad of a slope is the slope for all directions. Diff of a kink is norm(x - y) /
    delta times the sign of the kink for all directions.
    """
    left = np.zeros((n, 2))
    left[position] = item or (SLOPE if position == 0 else KINK)
    right = left.copy()
    right[position] *= -1
    return NeighborPair(left, right, recipe=f"item {position + 1} turned over")
