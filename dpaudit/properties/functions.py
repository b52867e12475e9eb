"""Tests of sensitivity, Lipschitz constants and contraction for a user's deterministic function.

One violating pair of inputs is a proof, so these tests are not statistical. The falsifier searches
for the pair, simplifies it, and compares the measured value with the declared value. If a function
uses randomness, fix the randomness first, for example the indices that it would draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import NORMS
from dpaudit.errors import ArgumentError, MechanismError, place
from dpaudit.mechanisms import mechanism_name
from dpaudit.neighbors import NeighborPair
from dpaudit.properties import strategies
from dpaudit.properties.attempt import Attempt, Method, plain_case
from dpaudit.properties.falsifying import falsify, sweep
from dpaudit.properties.generating import st

Floats = NDArray[np.float64]
Function = Callable[[NDArray[Any]], Any]

EXAMPLES = 1_000
_ROUNDING = 1e-9
_STEADY = 3  # number of first cases in which the function is called twice
_ULPS = 16  # units of the larger value by which two values may differ because of rounding


@dataclass(frozen=True)
class FunctionCheck:
    """Result of one check of a deterministic function.

    Parameters
    ----------
    function : str
        Name of the function.
    claim : str
        Description of the declared bound.
    attempt : Attempt
        How the bound was tested, how tight it is, and the pair that violates it.
    declared : float, optional
        The declared constant, if the bound is a constant times a distance.
    """

    function: str
    claim: str
    attempt: Attempt
    declared: float | None = None

    @property
    def violated(self) -> bool:
        """Whether a pair that violates the bound was found."""
        return self.attempt.violated

    def __bool__(self) -> bool:
        raise TypeError(
            "a FunctionCheck has no truth value, because no number of pairs can prove a bound. "
            "Call check.assert_not_violated(), or read check.violated"
        )

    def assert_not_violated(self) -> None:
        """Raise ``AssertionError`` with the pair if a pair violates the bound."""
        if self.violated:
            raise AssertionError(f"\n{self}")

    def __str__(self) -> str:
        attempt = self.attempt
        if attempt.counterexample is None:
            share = f"{attempt.tightest or 0.0:.4g}"
            return (
                f"{self.function}: no violation of {self.claim} in {attempt.examples:,} pairs "
                f"(largest ratio {share})"
            )
        lhs, rhs = attempt.counterexample.lhs, attempt.counterexample.rhs
        found = f"{lhs:.6g} measured, {rhs:.6g} declared"
        if self.declared is not None:
            found = f"the values are {lhs:.6g} apart, {rhs:.6g} allowed"
            if rhs > 0:
                found += f": {lhs / rhs * self.declared:.6g} measured, {self.declared:g} declared"
        case = "\n".join(
            f"  {key:<6} {value}" for key, value in attempt.counterexample.case.items()
        )
        return f"{self.function}: {self.claim} is violated: {found}, at\n{case}"


def check_sensitivity(
    function: Function,
    bound: float,
    *,
    norm: str = "l2",
    pairs: st.SearchStrategy[Any] | Iterable[NeighborPair] | NeighborPair | None = None,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> FunctionCheck:
    """Search for neighbouring datasets on which a function moves by more than its sensitivity.

    Parameters
    ----------
    function : callable
        ``function(data) -> number or array``. The function must be deterministic.
    bound : float
        Declared sensitivity, >= 0.
    norm : {"l1", "l2", "linf"}
        Norm in which outputs are compared. If only one of two outputs is NaN, their distance is
        infinite.
    pairs : strategy, NeighborPair or several, optional
        Pairs to search. The default is ``strategies.neighbor_pairs(special=True)``. The default
        pairs are small datasets of numbers, with ties, repeated users, outliers at 1 and -1, NaN
        and infinities. Restrict the pairs to the domain and shape of the function's input, for
        example by ``strategies.neighbor_pairs(n_users=5, d=3, bound=10)``. Add ``m=4,
        missing=True`` for users who have only a few items or none.
    examples : int
        Smallest number of pairs that are tried if `pairs` is a strategy.
    seed : int
        Seed of the search.

    Examples
    --------
    >>> import numpy as np
    >>> check = check_sensitivity(np.mean, 2 / 5, pairs=strategies.neighbor_pairs(n_users=5))
    >>> check.violated, round(check.attempt.tightest, 3)
    (False, 1.0)
    >>> check_sensitivity(np.sum, 1.0, pairs=strategies.neighbor_pairs(n_users=5)).violated
    True
    """
    bound, norm = _validate.nonnegative(bound=bound), _validate.choice(NORMS, norm=norm)

    def inequality(left: Floats, right: Floats) -> tuple[float, float] | None:
        return _moved(function, left, right, norm, bound)

    if pairs is None:
        pairs = strategies.neighbor_pairs(special=True)
    elif isinstance(pairs, NeighborPair):
        pairs = [pairs]
    claim = f"{norm} sensitivity {bound:g}"
    return _checked(function, claim, pairs, _datasets, inequality, examples, seed)


def check_lipschitz(
    function: Function,
    bound: float,
    *,
    norm: str = "l2",
    points: st.SearchStrategy[Any] | Iterable[Any] | None = None,
    d: int = 1,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> FunctionCheck:
    """Search for two points whose values are further apart than `bound` times their distance.

    Parameters
    ----------
    function : callable
        ``function(x) -> number or array`` of a point ``[d]``.
    bound : float
        Declared Lipschitz constant, >= 0. If the function is a gradient, this constant is a
        smoothness constant.
    norm : {"l1", "l2", "linf"}
        Norm of points and of values.
    points : strategy or iterable of pairs, optional
        Pairs (x, y) of points. By default, the points are in [-1, 1]^d and often close to each
        other.
    d : int
        Dimension of the default points.
    examples, seed
        As for :func:`check_sensitivity`.
    """
    bound, norm = _validate.nonnegative(bound=bound), _validate.choice(NORMS, norm=norm)
    claim = f"{norm} Lipschitz constant {bound:g}"
    inequality = _of_points(function, norm, bound)
    found = point_pairs(d=_validate.integer(1, d=d)) if points is None else points
    return _checked(function, claim, found, _points, inequality, examples, seed, bound)


def check_contraction(
    function: Function,
    factor: float = 1.0,
    *,
    slack: float = 0.0,
    norm: str = "l2",
    points: st.SearchStrategy[Any] | Iterable[Any] | None = None,
    d: int = 1,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> FunctionCheck:
    """Search for points that a map moves further apart than ``max(factor * distance, slack)``.

    The analysis of a noisy iteration needs this condition with `slack` if a map contracts only
    points that are not close to each other.

    Parameters
    ----------
    function : callable
        ``function(x) -> x'``, a map of points ``[d]``.
    factor : float
        Declared factor, >= 0. A factor of 1 is for a map that does not expand distances.
    slack : float
        Distance that two images may have in any case, >= 0.
    norm, points, d, examples, seed
        As for :func:`check_lipschitz`.
    """
    factor, slack = _validate.nonnegative(factor=factor), _validate.nonnegative(slack=slack)
    norm = _validate.choice(NORMS, norm=norm)
    claim = f"{norm} contraction by {factor:g}" + (f" down to {slack:g}" if slack else "")
    inequality = _of_points(function, norm, factor, slack)
    found = point_pairs(d=_validate.integer(1, d=d)) if points is None else points
    declared = None if slack else factor
    return _checked(function, claim, found, _points, inequality, examples, seed, declared)


@st.composite
def point_pairs(
    draw: Callable[[st.SearchStrategy[Any]], Any], *, d: int = 1, bound: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pairs of points of [-bound, bound]^d.

    In many pairs, the points are close to each other or of opposite sign.
    """
    x = draw(strategies.vectors(d=d, bound=bound))
    kind = draw(st.sampled_from(["apart", "close", "mirrored"]))
    if kind == "mirrored":
        return x, -x
    y = draw(strategies.vectors(d=d, bound=bound))
    return (x, np.clip(x + 0.01 * y, -bound, bound)) if kind == "close" else (x, y)


# --- inside ---


def _checked(
    function: Function,
    claim: str,
    cases: Any,
    named: Callable[[Any], dict[str, Any]],
    inequality: Any,
    examples: int,
    seed: int,
    declared: float | None = None,
) -> FunctionCheck:
    _validate.function(function=function)
    examples, seed = _validate.integer(1, examples=examples), _validate.seed(seed=seed)
    left = _STEADY

    def steady(**case: Any) -> Any:
        nonlocal left
        if left > 0:
            left -= 1
            x = next(iter(case.values()))
            one, two = _value(function, x), _value(function, x)
            if one.shape != two.shape or not _same(one, two).all():
                raise MechanismError(
                    f"{mechanism_name(function)} must be deterministic, got {plain_case(one)} and "
                    f"{plain_case(two)} for one input. Fix the randomness of the function"
                )
        return inequality(**case)

    if isinstance(cases, st.SearchStrategy):
        attempt = falsify(
            cases.map(named), steady, seed=seed, examples=examples, tolerance=_ROUNDING, claim=claim
        )
    else:
        argument = "pairs" if named is _datasets else "points"
        held = _validate.items("a strategy or a list of pairs", **{argument: cases})
        given = [named(case) for case in held]
        attempt = sweep(given, steady, method=Method.NUMERIC, tolerance=_ROUNDING, claim=claim)
    if attempt.empty:
        raise ArgumentError(
            f"pairs must allow a test of the {claim}, but no pair differs by a finite "
            "amount, or all values are NaN or infinite"
        )
    return FunctionCheck(mechanism_name(function), claim, attempt, declared)


def _of_points(function: Function, norm: str, factor: float, slack: float = 0.0) -> Any:
    """Return the inequality that values are at most ``max(factor * distance, slack)`` apart."""

    def inequality(x: Floats, y: Floats) -> tuple[float, float] | None:
        apart = _distance(x, y, norm)
        if apart == 0 or not math.isfinite(apart):
            return None
        return _moved(function, x, y, norm, max(factor * apart, slack))

    return inequality


def _datasets(pair: Any) -> dict[str, Any]:
    if not isinstance(pair, NeighborPair):
        raise TypeError(f"pairs must hold NeighborPair objects, got {type(pair).__name__}")
    return {"left": pair.left, "right": pair.right}


def _points(pair: Any) -> dict[str, Any]:
    try:
        x, y = pair
    except (TypeError, ValueError):
        raise TypeError(f"points must hold pairs (x, y) of points, got {pair!r}") from None
    return {"x": np.asarray(x, dtype=float), "y": np.asarray(y, dtype=float)}


def _value(function: Function, data: NDArray[Any]) -> NDArray[np.float64]:
    given = data.copy()
    try:
        with np.errstate(all="ignore"):
            value = np.asarray(function(given))
    except (Exception, SystemExit) as error:
        raise MechanismError(
            f"{mechanism_name(function)} raised {type(error).__name__}: {error} "
            f"({place(error)}called with {plain_case(data)})"
        ) from error
    if value.dtype.kind not in "biuf":
        raise MechanismError(
            f"{mechanism_name(function)} must return real numbers, got {value!r} of dtype "
            f"{value.dtype}"
        )
    return value.astype(float)


def _moved(
    function: Function, x: Floats, y: Floats, norm: str, allowed: float
) -> tuple[float, float] | None:
    """Return the distance of two values and the allowed distance, or None.

    If only rounding makes a distance exceed the allowed distance, the distance is set to the
    allowed distance.
    """
    a, b = _value(function, x), _value(function, y)
    moved = _distance(a, b, norm)
    if moved == 0 and a.size and not np.isfinite(a).any():
        return None  # both values are the same NaN or infinity
    if not allowed < moved < math.inf:
        return moved, allowed
    sizes = np.maximum(np.abs(a), np.abs(b))
    doubles = np.finfo(float)
    ulps = np.where(np.isfinite(sizes), sizes, 0.0) * (_ULPS * doubles.eps)
    ulps += _ULPS * doubles.smallest_subnormal  # below the normal doubles, this unit is constant
    rounding = _distance(ulps, np.zeros_like(ulps), norm)
    return (moved if moved > allowed + rounding else allowed), allowed


def _distance(a: NDArray[Any], b: NDArray[Any], norm: str) -> float:
    """Return the distance of two values.

    Equal NaN or infinite entries have distance 0.
    """
    if a.shape != b.shape:
        raise ArgumentError(
            f"the values of a function must have equal shapes, got {a.shape} and {b.shape}"
        )
    with np.errstate(all="ignore"):
        apart = np.where(_same(a, b), 0.0, np.abs(a - b)).ravel()
    if not np.isfinite(apart).all():
        return math.inf
    largest = float(apart.max(initial=0.0))
    if largest == 0:
        return 0.0
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    # The norm of quotients is used, so that squares neither underflow nor overflow.
    return largest * float(np.linalg.norm(apart / largest, order))


def _same(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray((a == b) | ((a != a) & (b != b)))  # a NaN is not equal to itself
