"""Mutants of `algorithms.zeroth_order` and the tree mechanism: mistakes that are not of noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common.tree import node_sums
from algorithms.zeroth_order import conversion
from algorithms.zeroth_order.plans import Plan, VarianceReduced

Floats = NDArray[np.float64]


def sums_without_tree(values: ArrayLike) -> Floats:
    """Give each running sum noise of its own, of the size of a node's.

    **Mistake** A term is in up to floor(log2(n)) + 1 nodes, but in up to n running sums.

    **Breaks at** a term at time 1: mu is sqrt(n) where the tree's is sqrt(floor(log2(n)) + 1).

    Returns
    -------
    ndarray, [n]
        Centres, of noise that is independent from sum to sum.
    """
    return np.cumsum(np.asarray(values, dtype=np.float64))


def all_nodes(values: ArrayLike) -> Floats:
    """Release every node of the tree, each end with one noise: differences are free of it.

    **Mistake** The proof of Theorem 4.3 composes all nodes (a, b) of the tree as if each had noise
    of its own, and gives all those of one end b the same xi_b.

    **Breaks at** any n: node (1, 2) minus node (2, 2) is the first term itself.

    Returns
    -------
    ndarray, [n + n // 2]
        Of n terms: centres of the used nodes, and of what (1, 2), (3, 4), ... reveal, a million
        times as large: noise on them is a millionth of a node's, where there is none at all.
    """
    terms = np.asarray(values, dtype=np.float64)
    pairs = terms[: 2 * (len(terms) // 2)].reshape(-1, 2)
    return np.concatenate([node_sums(terms[:, None])[:, 0], 1e6 * pairs[:, 0]])


def noise_for_short_moves(plan: Plan) -> Plan:
    """Scale the noise of Diff for points that are delta / T apart.

    **Mistake** Section 3: "we will be able to control the distance between parameters x, y in two
    successive iterations by delta / T"; Remark 4.1 has twice that, which Corollary 4.4 uses.

    **Breaks at** d = 1, an absolute value with its kink at the start: twice the shift.
    """
    if not isinstance(plan.oracle, VarianceReduced):
        raise TypeError(f"plan must have a VarianceReduced oracle, got {plan.oracle!r}")
    return replace(plan, oracle=replace(plan.oracle, sigma=plan.oracle.sigma / 2))


def same_items_in_all_epochs(data: ArrayLike, size: int, *, plan: Plan, **options: Any) -> Floats:
    """Run every epoch on the items of the first.

    **Mistake** The batches of different epochs are not disjoint, and noise is for one epoch.

    **Breaks at** an item at one slope or the other: as many looks at it as there are epochs.
    """
    items = np.asarray(data)
    own = items[: plan.n_points // plan.epochs]
    repeated = np.tile(own, (plan.epochs, *[1] * (items.ndim - 1)))
    return conversion.private_zeroth_order(repeated, size, plan=plan, **options)
