"""Scores and coins of one run: what is refused, and what looks as if it were not meant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from dpaudit.errors import ArgumentError
from dpaudit.stats import half_probability

Floats = NDArray[np.float64]

_UNFAIR = 1e-9  # probability with which fair coins are refused
_REVERSED = 1e-3  # with which scores that tell nothing are said to be reversed
_MANY_TIES = 0.1  # of the canaries


def read_coins(scores: ArrayLike, included: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Return scores and coins as arrays of one length.

    Raises
    ------
    ValueError
        As :func:`dpaudit.audit_one_run` says.
    """
    _refuse_other_index(scores, included)
    point, coins = _scores(scores), _coins(included)
    if len(point) != len(coins):
        raise ArgumentError(
            f"scores and included must be of one length, got {len(point)} and {len(coins)}"
        )
    return point, coins


def hints(
    scores: Floats, included: NDArray[np.bool_], *, is_design_given: bool = True
) -> list[str]:
    """Say where the sign looks reversed, many scores are equal, or exactly half is included.

    They are for a reader alone: nothing that is certified may depend on them, as they look at the
    coins.

    Parameters
    ----------
    scores : ndarray, shape (m,)
        Finite.
    included : ndarray of bool, shape (m,)
        The coins, of both kinds.
    is_design_given : bool, optional
        Whether the caller said how canaries were included. Default True.

    Examples
    --------
    >>> coins = np.arange(100) < 50
    >>> hints(np.arange(100.0), coins)[0][:65]
    'included canaries have lower scores than excluded ones in 100% of'
    >>> hints(np.arange(100.0), ~coins)
    []
    """
    found = []
    n, m = int(included.sum()), len(included)
    if 2 * n == m and not is_design_given:
        found.append(
            f"exactly half of the canaries are included, which fair coins do with probability "
            f"{half_probability(m):.2g}. Pass coins='half' if their number was fixed: the numbers "
            "here hold for fair coins, and coins='fair' says that they were"
        )
    ranks = stats.rankdata(scores)
    pairs = n * (m - n)
    higher = float(ranks[included].sum()) - n * (n + 1) / 2  # pairs, equal ones by half
    _, sizes = np.unique(scores, return_counts=True)
    equal = float((sizes.astype(float) ** 3 - sizes).sum()) / (m * (m - 1))
    deviation = math.sqrt(pairs * max(m + 1 - equal, 0.0) / 12)
    if deviation > 0 and special.ndtr((higher - pairs / 2) / deviation) < _REVERSED:
        found.append(
            f"included canaries have lower scores than excluded ones in {1 - higher / pairs:.0%} "
            "of the pairs: is the sign of the scores reversed? High scores are guessed included, "
            "as of a negative loss. The sign has to be settled without a look at the coins; who "
            "looks at both signs has to double failure_prob"
        )
    tied = int(sizes[sizes > 1].sum())
    if tied > _MANY_TIES * m:
        found.append(
            f"{tied:,} of {m:,} canaries share their score with others ({len(sizes):,} values in "
            "all), and among equal scores wrong guesses count first, which costs power: a little "
            "noise that is added once, independent of the coins, breaks the ties"
        )
    return found


def _refuse_masked(name: str, values: ArrayLike) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise ArgumentError(f"{name} must be a plain array, got a masked one")


def _refuse_other_index(scores: Any, included: Any) -> None:
    """Of two pandas Series, rows are paired by position, which their index must not belie."""
    first, second = (getattr(values, "index", None) for values in (scores, included))
    if first is None or not (hasattr(first, "equals") and hasattr(second, "equals")):
        return  # the `index` of a list is a method
    if not first.equals(second):
        raise ArgumentError(
            "scores and included must be of one index, row by row, got two Series of different "
            "ones; align them, or give arrays"
        )


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    _refuse_masked(name, values)
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        raise ArgumentError(f"{name} must be one-dimensional, got a ragged list") from None


def _scores(scores: ArrayLike) -> Floats:
    found = _array("scores", scores)
    if found.dtype.kind not in "fiub" or found.ndim != 1 or found.size == 0:
        raise ArgumentError(
            "scores must be numbers, one-dimensional and not empty, got shape "
            f"{found.shape} of {found.dtype}"
        )
    found = found.astype(np.float64)
    if not np.isfinite(found).all():
        wrong = int(np.flatnonzero(~np.isfinite(found))[0])
        raise ArgumentError(f"scores must be finite, got {found[wrong]} at index {wrong}")
    return np.asarray(found)


def _coins(included: ArrayLike) -> NDArray[np.bool_]:
    found = _array("included", included)
    if found.dtype == object and found.ndim == 1:  # as data frames keep bool beside missing values
        for at, value in enumerate(found):
            if not isinstance(value, bool | np.bool_):
                raise ArgumentError(f"included must be bool, or 0 and 1, got {value!r} at {at}")
        found = found.astype(bool)
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "biuf":
        raise ArgumentError(
            "included must be one-dimensional, not empty, of bool or of 0 and 1, got shape "
            f"{found.shape} of {found.dtype}"
        )
    if not np.isin(found, (0, 1)).all():
        wrong = int(np.flatnonzero(~np.isin(found, (0, 1)))[0])
        raise ArgumentError(f"included must be bool, or 0 and 1, got {found[wrong]} at {wrong}")
    coins = found.astype(bool)
    heads, m = int(coins.sum()), len(coins)
    if heads in (0, m):
        raise ArgumentError(
            f"included must hold canaries of both kinds, got {m} that are all "
            f"{'included' if heads else 'excluded'}"
        )
    tail = 2 * float(special.bdtr(min(heads, m - heads), m, 0.5))
    if tail < _UNFAIR:
        raise ArgumentError(
            f"included must be thrown by fair coins, got {heads} of {m} included, which fair coins "
            f"show with probability {tail:.2g}"
        )
    return coins
