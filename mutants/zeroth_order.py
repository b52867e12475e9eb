"""Mutants of `algorithms.zeroth_order` and the tree mechanism, with mistakes beyond noise."""

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
    """Give each running sum its own noise, with the scale of a node's noise.

    **Mistake** A term is in up to floor(log2(n)) + 1 nodes, but in up to n running sums.

    **Breaks at** a term at time 1. The mutant has mu = sqrt(n), and the tree has mu =
    sqrt(floor(log2(n)) + 1).

    Returns
    -------
    ndarray, [n]
        Centres to which noise is added, where the noise is independent from sum to sum.
    """
    return np.cumsum(np.asarray(values, dtype=np.float64))


def all_nodes(values: ArrayLike) -> Floats:
    """Release every node of the tree, with one noise per end, so differences cancel the noise.

    **Mistake** The proof of Theorem 4.3 composes all nodes (a, b) of the tree as if each had its
    own noise. However, the proof gives the same xi_b to all nodes with end b.

    **Breaks at** any n. Node (1, 2) minus node (2, 2) is the first term itself.

    Returns
    -------
    ndarray, [n + n // 2]
        For n terms, the result is the centres of the used nodes, and the values that the nodes (1,
        2), (3, 4), ... reveal. The revealed values are a million times as large as the terms. The
        noise on the revealed values is therefore a millionth of a node's noise. In the attacked
        algorithm, the revealed values have no noise at all.
    """
    terms = np.asarray(values, dtype=np.float64)
    pairs = terms[: 2 * (len(terms) // 2)].reshape(-1, 2)
    return np.concatenate([node_sums(terms[:, None])[:, 0], 1e6 * pairs[:, 0]])


def noise_for_short_moves(plan: Plan) -> Plan:
    """Scale the noise of Diff for points that are delta / T apart.

    **Mistake** The mutant follows Section 3, which says "we will be able to control the distance
    between parameters x, y in two successive iterations by delta / T". Remark 4.1 has twice this
    distance, and Corollary 4.4 uses the distance of Remark 4.1.

    **Breaks at** d = 1 and an absolute value with its kink at the start. The shift of this pair is
    twice as large as planned.
    """
    if not isinstance(plan.oracle, VarianceReduced):
        raise TypeError(f"plan must have a VarianceReduced oracle, got {plan.oracle!r}")
    return replace(plan, oracle=replace(plan.oracle, sigma=plan.oracle.sigma / 2))


def same_items_in_all_epochs(data: ArrayLike, size: int, *, plan: Plan, **options: Any) -> Floats:
    """Run every epoch on the items of the first epoch.

    **Mistake** The batches of different epochs are not disjoint, but the noise is for one epoch.

    **Breaks at** an item with one slope or the other. The item is used once in each epoch.
    """
    items = np.asarray(data)
    own = items[: plan.n_points // plan.epochs]
    repeated = np.tile(own, (plan.epochs, *[1] * (items.ndim - 1)))
    return conversion.private_zeroth_order(repeated, size, plan=plan, **options)
