"""hypothesis strategies: datasets, neighbours, vectors, losses, distributions.

Each strategy draws from a class that theorems speak of, and its members carry their constants, so
that a test can compare with them. They shrink towards small, round and few.

Examples
--------
::

    @given(strategies.neighbor_pairs(n_users=4, d=2, bound=1.0))
    def test_sensitivity(pair):
        assert np.linalg.norm(mean(pair.left) - mean(pair.right)) <= 2 / 4
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Relation, checked_relation
from dpaudit.errors import ArgumentError
from dpaudit.neighbors import NeighborPair
from dpaudit.properties.generating import hnp, st

Floats = NDArray[np.float64]
Strategy = st.SearchStrategy
Sizes = int | tuple[int, int]
"""A number, or the bounds of one."""


def _sizes(sizes: Sizes, name: str, least: int = 1) -> Strategy[int]:
    low, high = sizes if isinstance(sizes, tuple) else (sizes, sizes)
    low = _validate.integer(least, **{name: low})
    high = _validate.integer(low, **{name: high})
    return st.integers(low, high)


def _entries(bound: float, *, special: bool = False) -> Strategy[float]:
    """Numbers up to `bound` in size, with ties at the bounds and at 0."""
    bound = _validate.positive(bound=bound)
    numbers = st.sampled_from([0.0, bound, -bound]) | st.floats(-bound, bound)
    return numbers | st.sampled_from([math.nan, math.inf, -math.inf]) if special else numbers


# --- datasets ---


def _lose_items(draw: Callable[[Strategy[Any]], Any], users: Floats) -> None:
    """Turn the last items of every user into NaN: none, all, or some of them."""
    m = users.shape[1]
    for user in users:
        lost = draw(st.sampled_from([0, m]) | st.integers(0, m))
        user[m - lost :] = math.nan


@st.composite
def user_data(
    draw: Callable[[Strategy[Any]], Any],
    *,
    n_users: Sizes = (1, 6),
    m: Sizes = 1,
    d: Sizes | None = None,
    bound: float = 1.0,
    special: bool = False,
    missing: bool = False,
) -> Floats:
    """Datasets of users: with ties, outliers at the bounds and repeated users.

    Parameters
    ----------
    n_users, m, d : int or (int, int)
        Users, items of each (one by default), and coordinates of an item, or bounds of them;
        without `d` items are numbers.
    bound : float
        Largest absolute value of a coordinate.
    special : bool
        Whether NaN and infinities occur too.
    missing : bool
        Whether users have different numbers of items, from none to m: the items that a user lacks
        are NaN, all coordinates of them, and come last.

    Returns
    -------
    strategy of ndarray, ``[n_users, m]``, or ``[n_users, m, d]`` where `d` is given
    """
    _validate.flag(special=special)
    _validate.flag(missing=missing)
    shape = [draw(_sizes(n_users, "n_users")), draw(_sizes(m, "m"))]
    if d is not None:
        shape.append(draw(_sizes(d, "d")))
    data = draw(hnp.arrays(np.float64, tuple(shape), elements=_entries(bound, special=special)))
    if missing:
        _lose_items(draw, data)
    if shape[0] > 1 and draw(st.booleans()):  # a repeated user
        data[draw(st.integers(1, shape[0] - 1))] = data[0]
    return np.asarray(data)


@st.composite
def neighbor_pairs(
    draw: Callable[[Strategy[Any]], Any],
    *,
    n_users: Sizes = (1, 6),
    m: Sizes = 1,
    d: Sizes | None = None,
    bound: float = 1.0,
    special: bool = False,
    missing: bool = False,
    relation: Relation = Relation.REPLACE_USER,
) -> NeighborPair:
    """Pairs of datasets that differ in one user, by replacement or by leaving it out.

    Parameters
    ----------
    n_users, m, d, bound, special, missing
        As for :func:`user_data`. For ADD_REMOVE_USER `n_users` counts the larger dataset, and is
        at least 2, because a dataset is never empty.
    relation : Relation
        REPLACE_USER or ADD_REMOVE_USER.
    """
    name = checked_relation(relation).name
    if name not in ("replace_user", "add_remove_user"):
        raise ArgumentError(f"relation must be REPLACE_USER or ADD_REMOVE_USER, got {relation}")
    if name == "add_remove_user":
        low, high = n_users if isinstance(n_users, tuple) else (n_users, n_users)
        n_users = (max(low, 2), max(high, 2))
    kind: dict[str, Any] = {"bound": bound, "special": special, "missing": missing}
    left = draw(user_data(n_users=n_users, m=m, d=d, **kind))
    user = draw(st.integers(0, len(left) - 1))
    if name == "add_remove_user":
        right = np.delete(left, user, axis=0)
        pair = (left, right) if draw(st.booleans()) else (right, left)
        return NeighborPair(*pair, relation=relation, recipe="drawn by hypothesis")
    right = left.copy()
    m, d = left.shape[1], None if d is None else left.shape[2]
    right[user] = draw(user_data(n_users=1, m=m, d=d, **kind))[0]
    return NeighborPair(left, right, relation=relation, recipe="drawn by hypothesis")


# --- vectors and matrices ---


def vectors(*, d: Sizes = (1, 4), bound: float = 1.0) -> Strategy[Floats]:
    """Vectors ``[d]`` with entries up to `bound` in size, often 0 or at the bounds."""
    entries = _entries(bound)
    return _sizes(d, "d").flatmap(lambda size: hnp.arrays(np.float64, size, elements=entries))


@st.composite
def unit_vectors(draw: Callable[[Strategy[Any]], Any], *, d: Sizes = (1, 4)) -> Floats:
    """Vectors of length 1, coordinate axes among them."""
    size = draw(_sizes(d, "d"))
    if draw(st.booleans()):
        axis = np.zeros(size)
        axis[draw(st.integers(0, size - 1))] = draw(st.sampled_from([1.0, -1.0]))
        return axis
    vector = draw(
        hnp.arrays(np.float64, size, elements=st.floats(-1, 1)).filter(
            lambda v: bool(np.linalg.norm(v) > 1e-3)
        )
    )
    return np.asarray(vector / np.linalg.norm(vector))


@st.composite
def rotations(draw: Callable[[Strategy[Any]], Any], *, d: Sizes = (1, 4)) -> Floats:
    """Orthogonal matrices: products of plane rotations and reflections."""
    size = draw(_sizes(d, "d"))
    matrix = np.eye(size)
    for i in range(size - 1):
        angle = draw(st.floats(-math.pi, math.pi))
        turn = np.eye(size)
        c, s = math.cos(angle), math.sin(angle)
        turn[i, i], turn[i, i + 1], turn[i + 1, i], turn[i + 1, i + 1] = c, -s, s, c
        matrix = matrix @ turn
    return np.asarray(matrix * draw(st.sampled_from([1.0, -1.0])))


@st.composite
def psd_matrices(
    draw: Callable[[Strategy[Any]], Any], *, d: Sizes = (1, 4), largest: float = 1.0
) -> Floats:
    """Symmetric positive semidefinite matrices: rotated spectra in [0, largest], often singular."""
    turn = draw(rotations(d=d))
    values = draw(hnp.arrays(np.float64, len(turn), elements=st.floats(0, 1)))
    matrix = turn @ np.diag(values * _validate.positive(largest=largest)) @ turn.T
    return np.asarray((matrix + matrix.T) / 2)


@st.composite
def diagonally_dominant(
    draw: Callable[[Strategy[Any]], Any], *, d: Sizes = (1, 4), largest: float = 1.0
) -> Floats:
    """Symmetric diagonally dominant matrices with nonnegative diagonal, which are PSD.

    No entry exceeds `largest`; dominance is often tight, as in a graph Laplacian.
    """
    size, largest = draw(_sizes(d, "d")), _validate.positive(largest=largest)
    entries = st.just(0.0) | st.floats(-1, 1).filter(lambda x: abs(x) > 1e-9)
    off = draw(hnp.arrays(np.float64, (size, size), elements=entries))
    off = np.triu(off, 1)
    off = off + off.T
    slack = draw(hnp.arrays(np.float64, size, elements=st.just(0.0) | st.floats(1e-9, 1)))
    matrix = off + np.diag(np.abs(off).sum(axis=1) + slack)
    top = np.abs(matrix).max()
    return np.asarray(matrix * (largest / top if top > 0 else 1.0))


# --- losses ---


@dataclass(frozen=True, eq=False)
class Loss:
    """A convex function with constants that are exact, not only bounds.

    Parameters
    ----------
    name : str
        What it is.
    value, gradient : callable
        Of a point ``[d]``; the gradient is a subgradient where there is a kink.
    d : int
        Dimension.
    lipschitz : float
        Smallest Lipschitz constant over the whole space; infinite where there is none.
    smoothness : float
        Smallest Lipschitz constant of the gradient; infinite at a kink.
    strong_convexity : float
        Largest strong convexity constant; 0 without.
    """

    name: str
    value: Callable[[Floats], float]
    gradient: Callable[[Floats], Floats]
    d: int
    lipschitz: float
    smoothness: float
    strong_convexity: float = 0.0

    def __repr__(self) -> str:
        return f"Loss({self.name}, d={self.d})"


def norm_loss(center: Floats) -> Loss:
    """Return the distance to a point: 1-Lipschitz, with a kink; its subgradient there is 0."""
    center = np.asarray(center, dtype=float)

    def gradient(x: Floats) -> Floats:
        length = float(np.linalg.norm(x - center))
        return (x - center) / length if length > 0 else np.zeros_like(center)

    return Loss(
        f"norm(x - {center.tolist()})",
        lambda x: float(np.linalg.norm(x - center)),
        gradient,
        len(center),
        1.0,
        math.inf,
    )


def linear_loss(slope: Floats) -> Loss:
    """Return the inner product with a vector."""
    slope = np.asarray(slope, dtype=float)
    return Loss(
        f"<{slope.tolist()}, x>",
        lambda x: float(slope @ x),
        lambda x: slope,
        len(slope),
        float(np.linalg.norm(slope)),
        0.0,
    )


def quadratic_loss(hessian: Floats, center: Floats) -> Loss:
    """Return ``(x - c)' H (x - c) / 2`` for a positive semidefinite H."""
    hessian, center = np.asarray(hessian, dtype=float), np.asarray(center, dtype=float)
    spectrum = np.linalg.eigvalsh(hessian)
    return Loss(
        f"quadratic with eigenvalues {np.round(spectrum, 6).tolist()}",
        lambda x: float((x - center) @ hessian @ (x - center)) / 2,
        lambda x: hessian @ (x - center),
        len(center),
        math.inf if spectrum[-1] > 0 else 0.0,
        max(float(spectrum[-1]), 0.0),
        max(float(spectrum[0]), 0.0),
    )


def huber_loss(center: Floats, width: float) -> Loss:
    """Return the Huber function of the distance to a point: 1-Lipschitz and 1/width-smooth."""
    center, width = np.asarray(center, dtype=float), _validate.positive(width=width)

    def value(x: Floats) -> float:
        length = float(np.linalg.norm(x - center))
        return length**2 / (2 * width) if length <= width else length - width / 2

    def gradient(x: Floats) -> Floats:
        return np.asarray((x - center) / max(float(np.linalg.norm(x - center)), width))

    return Loss(
        f"Huber of width {width:g} about {center.tolist()}",
        value,
        gradient,
        len(center),
        1.0,
        1 / width,
    )


def logistic_loss(feature: Floats) -> Loss:
    """Return ``log(1 + exp(-<a, x>))``: norm(a)-Lipschitz and norm(a)^2/4-smooth."""
    feature = np.asarray(feature, dtype=float)
    length = float(np.linalg.norm(feature))

    def gradient(x: Floats) -> Floats:
        margin = float(feature @ x)
        weight = math.exp(-np.logaddexp(0.0, margin))
        return np.asarray(-feature * weight)

    return Loss(
        f"logistic of {feature.tolist()}",
        lambda x: float(np.logaddexp(0.0, -(feature @ x))),
        gradient,
        len(feature),
        length,
        length**2 / 4,
    )


@st.composite
def losses(
    draw: Callable[[Strategy[Any]], Any],
    *,
    d: Sizes = (1, 3),
    smooth: bool = False,
    lipschitz: bool = False,
) -> Loss:
    """Convex losses with known constants: quadratic, Huber, logistic, linear and norms.

    Parameters
    ----------
    d : int or (int, int)
        Dimension.
    smooth : bool
        Only those whose gradient is Lipschitz.
    lipschitz : bool
        Only those that are Lipschitz over the whole space.
    """
    _validate.flag(smooth=smooth)
    _validate.flag(lipschitz=lipschitz)
    size = draw(_sizes(d, "d"))
    vector = draw(hnp.arrays(np.float64, size, elements=st.floats(-2, 2)))
    makers: list[Callable[[], Loss]] = [
        lambda: linear_loss(vector),
        lambda: huber_loss(vector, draw(st.floats(0.01, 2))),
        lambda: logistic_loss(vector),
    ]
    if not smooth:
        makers.append(lambda: norm_loss(vector))
    if not lipschitz:
        makers.append(lambda: quadratic_loss(draw(psd_matrices(d=size, largest=2.0)), vector))
    make: Callable[[], Loss] = draw(st.sampled_from(makers))
    return make()


# --- finite distributions and scores ---


@st.composite
def distributions(draw: Callable[[Strategy[Any]], Any], *, k: Sizes = (1, 6)) -> Floats:
    """Probability vectors, point masses and zeros among them."""
    size = draw(_sizes(k, "k"))
    weights = draw(
        hnp.arrays(np.float64, size, elements=st.just(0.0) | st.floats(1e-6, 1)).filter(
            lambda w: bool(w.sum() > 0)
        )
    )
    return np.asarray(weights / weights.sum())


@st.composite
def close_pairs(
    draw: Callable[[Strategy[Any]], Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    k: Sizes = (2, 6),
) -> tuple[Floats, Floats]:
    """Pairs of distributions that are (epsilon, delta)-close in both directions.

    Every such pair is a channel applied to the worst one (Kairouz, Oh and Viswanath 2015): that
    one itself, where (epsilon, delta) is attained in both directions, is drawn often.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1].
    k : int or (int, int)
        Number of outcomes, at least 2.
    """
    epsilon, delta = _validate.nonnegative(epsilon=epsilon), _validate.delta(delta=delta)
    likely = 1 / (1 + math.exp(-epsilon))
    rare = likely * math.exp(-epsilon)
    left = np.array([delta, (1 - delta) * likely, (1 - delta) * rare, 0.0])
    right = left[::-1]
    size = draw(_sizes(k, "k", 2))
    if draw(st.sampled_from(["worst", "channel"])) == "worst":
        return left, right
    channel = np.stack([draw(distributions(k=size)) for _ in range(4)])
    return left @ channel, right @ channel


@st.composite
def score_vectors(
    draw: Callable[[Strategy[Any]], Any],
    *,
    k: Sizes = (2, 8),
    bound: float = 10.0,
    sensitivity: float = 1.0,
) -> tuple[Floats, Floats]:
    """Scores of the same k candidates on two neighbours, with ties; no score moves by more."""
    size = draw(_sizes(k, "k"))
    left = draw(hnp.arrays(np.float64, size, elements=_entries(bound)))
    moves = st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-1, 1)
    by = draw(hnp.arrays(np.float64, size, elements=moves))
    return left, left + by * _validate.positive(sensitivity=sensitivity)
