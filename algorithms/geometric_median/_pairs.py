"""Exact counts of neighbours for large clouds, mostly by matrix products.

Two bounds decide most pairs, and no bound changes a count. The first bound is the triangle
inequality for the distances from one center. The second bound is a product of matrices whose
rounding error is bounded. Pairs that neither bound decides are decided by `_points.norms`, as in
`_points.neighbour_counts`. All memory in addition to the input is linear in n.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.common._validate import FloatArray, IntArray
from algorithms.geometric_median import _points

SMALL = 4096
"""Number of points below which `_points.neighbour_counts` is fast enough."""

_PRODUCT = 500_000  # Multiply-adds of one product, on one thread of OpenBLAS.
_SIDE = 248  # Largest number of points in a block, because counts fit into a byte.
_OPEN = 2**14  # Number of pairs whose differences are in memory at once.
_Kind = type[np.float32] | type[np.float64]
_PRECISIONS: dict[_Kind, float] = {np.float32: 1e15, np.float64: 1e140}  # Largest coordinates.


def neighbour_counts(points: FloatArray, radii: FloatArray) -> IntArray:
    """Return the number of points ``[n, T]`` within radii[t] of point i, including point i.

    The counts equal those of `_points.neighbour_counts`. For large n, the function visits each pair
    of blocks of points once. The running time is at most about n**2 (d + T) / 2 multiply-adds.
    """
    if len(points) < SMALL:
        return _points.neighbour_counts(points, radii)
    return _Blocks(points, np.asarray(radii, dtype=np.float64)).counts()


class _Blocks:
    """Points in order of their distance from a center, in blocks of equal size.

    Let `t_i` be the distance of point i from the center. A pair is surely near if t_i + t_j is at
    most the radius. A pair is surely not near if t_j - t_i exceeds the radius. The blocks for which
    neither is sure are adjacent in this order.
    """

    def __init__(self, points: FloatArray, radii: FloatArray) -> None:
        self.n, self.dimension = points.shape
        self.radii = radii
        side = int(math.sqrt(_PRODUCT / (self.dimension + 2))) // 8 * 8
        self.side = side = min(max(side, 8), _SIDE)
        self.n_blocks = -(-self.n // side)
        self.at_once = 255 // (side // 8)  # blocks in a chunk; row counts of a chunk fit into bytes
        center = np.median(points, axis=0)
        apart = points - center
        away = _points.norms(apart)
        self.order = np.argsort(away, kind="stable")
        missing = self.n_blocks * side - self.n
        self.points = np.concatenate([points[self.order], np.zeros((missing, self.dimension))])
        self.apart = np.concatenate([apart[self.order], np.zeros((missing, self.dimension))])
        away = away[self.order]
        starts = np.arange(0, self.n, side)
        margin = 1 + (4 * self.dimension + 64) * 2.0**-53  # for the rounding of distances
        self.nearest = away[starts] / margin
        self.farthest = away[np.minimum(starts + side, self.n) - 1] * margin
        self.unit = 2.0 ** math.floor(math.log2(radii.min()))
        with np.errstate(over="ignore"):  # lengths beyond 1e150 units are treated alike
            self.away = np.minimum(self.farthest / self.unit, 1e150)
            self.squares = np.minimum(radii / self.unit, 1e150) ** 2
        shape = (self.at_once, side, side)
        self.sure = np.empty(shape, dtype=np.bool_)
        self.maybe = np.empty(shape, dtype=np.bool_)
        self.products: dict[_Kind, NDArray[Any]] = {
            kind: np.empty(shape, dtype=kind) for kind in _PRECISIONS
        }
        self.factors: dict[_Kind, tuple[NDArray[Any], NDArray[Any]]] = {}
        self.found = np.zeros((radii.size, self.n_blocks, side), dtype=np.int64)

    def counts(self) -> IntArray:
        """Return the counts ``[n, T]`` in the order of the input."""
        for block in range(self.n_blocks):
            firsts, lasts = self._undecided(block)
            for t, first in enumerate(firsts):  # pairs with blocks before `first` are surely near
                self.found[t, block] += self._points_in(block, first)
                self.found[t, block + 1 : first] += self._points_in(block, block + 1)
            last = int(lasts.max())
            for begin in (block, *range(max(block + 1, int(firsts.min())), last, self.at_once)):
                end = block + 1 if begin == block else min(begin + self.at_once, last)
                inner = [(max(begin, a), min(end, b)) for a, b in zip(firsts, lasts, strict=True)]
                if any(a < b for a, b in inner):
                    self._chunk(block, begin, end, inner)
        flat = self.found.reshape(self.radii.size, -1)[:, : self.n]
        counts = np.empty((self.n, self.radii.size), dtype=np.int64)
        counts[self.order] = flat.T
        return counts

    def _undecided(self, block: int) -> tuple[IntArray, IntArray]:
        """Return, for each radius, the undecided range of blocks from `block` on."""
        firsts = np.searchsorted(self.farthest, self.radii - self.farthest[block], side="right")
        lasts = np.searchsorted(self.nearest, self.radii + self.farthest[block], side="right")
        return np.maximum(firsts, block), np.maximum(lasts, block + 1)

    def _points_in(self, first: int, last: int) -> int:
        """Return the number of points in the blocks from `first` to `last` - 1."""
        return int(min(last * self.side, self.n) - min(first * self.side, self.n))

    def _chunk(self, block: int, begin: int, end: int, inner: list[tuple[int, int]]) -> None:
        """Count the near pairs of one block and the blocks of a chunk, for each radius.

        Products of low precision come first. They decide all radii except the radii that are small
        compared with the rounding errors of the chunk.
        """
        open_ = [t for t, (first, last) in enumerate(inner) if first < last]
        for kind, largest in _PRECISIONS.items():
            # The bound covers the rounding of coordinates, of the d + 2 terms of a product (Higham
            # 2002, Section 3.1), of levels, and of the distances with which `norms` decides.
            rounding = float(np.finfo(kind).eps) / 2
            tolerance = float(self.away[block] ** 2 + self.away[end - 1] ** 2)
            tolerance *= rounding * (2.25 * self.dimension + 32)
            tolerance += 1e-30  # for underflow
            fine = 0.01 * self.squares >= tolerance
            if not fine[open_].any() or self.away[end - 1] > largest:
                continue
            if self.dimension * rounding > 0.005:
                continue
            left, right = self._factors(kind)
            product = self.products[kind][: end - begin]
            np.matmul(left[block], right[begin:end], out=product)
            low, high = (product.min(), product.max()) if len(open_) > 1 else (-math.inf, math.inf)
            later = []
            for t in open_:
                first, last = inner[t]
                level = -self.squares[t] / 2
                if level + tolerance <= low:
                    self._add_all(t, block, first, last)
                elif level - tolerance <= high:
                    if not fine[t]:
                        later.append(t)
                        continue
                    self._decide(t, product[first - begin : last - begin], block, first, tolerance)
            open_ = later
        if open_:
            distances = self._distances(block, begin, end)
            for t in open_:
                first, last = inner[t]
                near = self.sure[: last - first]
                np.less_equal(distances[first - begin : last - begin], self.radii[t], out=near)
                self._add(t, block, first, near)

    def _add_all(self, t: int, block: int, first: int, last: int) -> None:
        """Count all pairs of one block and the blocks from `first` to `last` - 1."""
        self.found[t, first:last] += self._points_in(block, block + 1)
        if first != block:
            self.found[t, block] += self._points_in(first, last)

    def _add(self, t: int, block: int, first: int, near: NDArray[np.bool_]) -> None:
        """Count the near pairs of one block and the blocks from `first` on."""
        last = first + len(near)
        self.found[t, first:last] += np.add.reduce(near.view(np.uint8), axis=1, dtype=np.uint8)
        if first != block:
            words = np.add.reduce(np.add.reduce(near.view(np.uint64), axis=0), axis=1)
            rows = words.view(np.uint8).reshape(self.side, 8)
            self.found[t, block] += rows.sum(axis=1, dtype=np.int64)

    def _decide(
        self, t: int, product: NDArray[Any], block: int, first: int, tolerance: float
    ) -> None:
        """Count near pairs by products, and by exact distances if the products do not decide."""
        near, maybe = self.sure[: len(product)], self.maybe[: len(product)]
        level = -float(self.squares[t]) / 2
        np.greater_equal(product, product.dtype.type(level + tolerance), out=near)
        np.greater_equal(product, product.dtype.type(level - tolerance), out=maybe)
        flat, wide = near.reshape(-1), maybe.reshape(-1)
        words = np.flatnonzero(flat.view(np.uint64) != wide.view(np.uint64))
        open_ = (words[:, None] * 8 + np.arange(8)).ravel()
        open_ = open_[flat[open_] != wide[open_]]
        for start in range(0, open_.size, _OPEN):
            some = open_[start : start + _OPEN]
            other, rest = np.divmod(some, self.side * self.side)
            row, column = np.divmod(rest, self.side)
            apart = self.points[block * self.side + row]
            apart -= self.points[(first + other) * self.side + column]
            flat[some] = _points.norms(apart) <= self.radii[t]
        self._add(t, block, first, near)

    def _distances(self, block: int, begin: int, end: int) -> FloatArray:
        """Return the distances ``[blocks, side, side]``, which are inf for missing points."""
        here = self.points[block * self.side : (block + 1) * self.side]
        found = np.empty((end - begin, self.side, self.side))
        for other, row in np.ndindex(end - begin, self.side):
            there = self.points[(begin + other) * self.side : (begin + other + 1) * self.side]
            found[other, row] = _points.norms(here[row] - there)
        found[:, self._points_in(block, block + 1) :] = math.inf
        found[-1, :, self._points_in(end - 1, end) :] = math.inf
        return found

    def _factors(self, kind: _Kind) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the factors ``[blocks, side, d + 2]`` and ``[blocks, d + 2, side]``."""
        if kind not in self.factors:
            largest = _PRECISIONS[kind]  # larger coordinates occur only in chunks without products
            with np.errstate(over="ignore"):
                scaled: NDArray[Any] = np.clip(self.apart / self.unit, -largest, largest).astype(
                    kind
                )
            half = np.einsum("ij,ij->i", scaled, scaled, dtype=np.float64) / 2
            half[self.n :] = 1e6 * largest**2  # missing points are near no point
            left = np.empty((len(scaled), self.dimension + 2), dtype=kind)
            left[:, :-2] = scaled
            left[:, -2], left[:, -1] = -half, 1
            left = left.reshape(self.n_blocks, self.side, -1)
            right = np.empty_like(left)
            right[..., :-2] = left[..., :-2]
            right[..., -2], right[..., -1] = left[..., -1], left[..., -2]
            self.factors[kind] = left, np.ascontiguousarray(right.transpose(0, 2, 1))
        return self.factors[kind]
