"""Judgement of cases: whether ``lhs <= rhs`` fails beyond rounding, and how tight the claim is.

Without care, a comparison could be wrong in both directions because of rounding. Therefore integers
and fractions are compared exactly, without a tolerance. In floats, a claim is broken only if lhs
exceeds rhs by more than `tolerance`, relative to the sides. If `exact` computes the sides in exact
or high-precision arithmetic, `exact` decides every case that is broken in floats. `exact` also
decides cases that are so tight that floats might hide a violation. Two infinities of one sign are
not compared. A case with two such sides is ignored, like a case outside the hypotheses.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import ArgumentError
from dpaudit.properties.attempt import Counterexample, plain_case, ratio

Inequality = Callable[..., tuple[Any, Any] | None]
"""``inequality(case) -> (lhs, rhs)``, or None if the case lies outside the hypotheses.

A case that is a dict is passed as keyword arguments.
"""

DEFAULT_TOLERANCE = 1e-9

_STEADY = 3  # number of first cases that are computed twice
_NEAR = 1e-6  # relative distance of the sides below which exact arithmetic decides
_KEPT = 6
_TINY = 1e-9  # a number that a rounding error may make of 0
_FLOATS = 1e300
_PICTURE = 150  # least number of cases in a picture, if as many are judged


class Undecided(ArgumentError):
    """A number is compared with 0, and rounding may explain the difference."""


@dataclass
class Judge:
    """Judge of cases, one by one.

    The judge keeps the tightest case and the first case that breaks the claim.

    Parameters
    ----------
    inequality : callable
        See :data:`Inequality`.
    tolerance : float
        Relative excess of lhs over rhs that is attributed to rounding.
    exact : callable, optional
        The same sides in exact or high-precision arithmetic, for example Fraction, Decimal or
        mpmath.
    nan_breaks : bool
        Whether a NaN breaks the claim. For a mutant, a NaN does not break the claim. Otherwise, a
        mutant that computes nothing would always be killed.
    """

    inequality: Inequality
    tolerance: float = DEFAULT_TOLERANCE
    exact: Inequality | None = None
    nan_breaks: bool = True
    judged: int = 0
    rejected: int = 0
    tightest: float = -math.inf
    where: Any = None
    share: float = 0.0
    """Largest lhs / rhs over the cases with 0 < rhs < inf; rhs times this would still be enough."""
    counterexample: Counterexample | None = None
    breaking: Any = None
    undecided: Undecided | None = None
    """The first comparison that rounding may decide. It counts if no other case is broken."""
    best: list[tuple[float, Any]] = field(default_factory=list)
    seen: list[tuple[dict[str, float], float]] = field(default_factory=list)
    """Numbers and ratios of some of the cases, at regular intervals in their order."""
    _every: int = 1

    def __call__(self, case: Any) -> float | None:
        """Return the ratio of a case, or None if the case shows nothing."""
        try:
            found = self._judged(case)
        except Undecided as error:
            self.undecided, found = self.undecided or error, None
        if found is None:
            self.rejected += 1
            return None
        tight, lhs, rhs, broken = found
        self.judged += 1
        self._remember(case, tight)
        if tight > self.tightest:
            self.tightest, self.where = tight, case
            self.best = [*self.best[1 - _KEPT :], (tight, case)]
        if 0 < rhs < math.inf:
            self.share = max(self.share, lhs / rhs)
        if broken:
            self.counterexample = Counterexample(record(case), lhs, rhs, self.exact is not None)
            self.breaking = case
        return tight

    def _remember(self, case: Any, tight: float) -> None:
        """Store enough cases for a picture, and no more."""
        if self.judged % self._every or not isinstance(case, Mapping):
            return
        self.seen.append(({k: float(v) for k, v in case.items() if _is_number(v)}, tight))
        if len(self.seen) >= 2 * _PICTURE:
            self.seen, self._every = self.seen[1::2], 2 * self._every

    def _judged(self, case: Any) -> tuple[float, float, float, bool] | None:
        """Return the ratio, both sides, and whether the claim fails; None for no comparison."""
        found = call(self.inequality, case)
        if self.judged + self.rejected < _STEADY and not _alike(found, call(self.inequality, case)):
            raise TypeError(
                f"inequality must return the same sides for the same case, got {found!r} "
                "first and other sides later. Fix the randomness, for example by "
                f"np.random.default_rng(0). The case is {plain_case(case)}"
            )
        if found is None:
            return None
        if not isinstance(found, tuple | list) or len(found) != 2:
            raise TypeError(f"inequality must return (lhs, rhs) or None, got {found!r}")
        inequality = tight, lhs, rhs, _ = self._compared(*found)
        if math.isnan(lhs) or math.isnan(rhs):
            return inequality if self.nan_breaks else None
        alike = math.isinf(lhs) and lhs == rhs and not _are_rational(*found)
        if self.exact is not None and (alike or tight > 1.0 - _NEAR):
            found = call(self.exact, case)
            return None if found is None else self._compared(*found, exact=True)
        return None if alike else inequality

    def _compared(
        self, lhs: Any, rhs: Any, *, exact: bool = False
    ) -> tuple[float, float, float, bool]:
        left, right = _float(lhs), _float(rhs)
        tight = ratio(left, right)
        if exact or _are_rational(lhs, rhs):
            broken = not lhs <= rhs  # also true for a NaN
            # The floats of the two sides may be equal, or in the opposite order.
            tight = max(tight, math.nextafter(1.0, 2.0)) if broken else min(tight, 1.0)
            return tight, left, right, broken
        if self.exact is None and left > right and _are_tiny_and_zero(left, right):
            raise Undecided(
                f"inequality must not compare {left!r} with {right!r}, because this may be a "
                "rounding error. Add the same positive number to both sides, return Fractions, or "
                "give exact=, which computes both sides exactly"
            )
        return tight, left, right, tight > 1.0 + self.tolerance


def _are_tiny_and_zero(left: float, right: float) -> bool:
    """Whether one number is 0 and the other one is so small that rounding may explain it."""
    return min(abs(left), abs(right)) == 0 < max(abs(left), abs(right)) < _TINY


def check_scale(left: float, right: float, floor: float) -> None:
    """Raise an error if a number is compared with 0, and rounding may explain the difference."""
    if floor == 0 and _are_tiny_and_zero(left, right):
        raise Undecided(
            f"floor must be given to compare {left!r} with {right!r}, because this may be a "
            "rounding error. Pass the size of the numbers from which they are computed, such as "
            "floor=1.0, so that differences are relative to this size"
        )


def apart(a: Any, b: Any, floor: float) -> float:
    """Return the largest difference of two entries, relative to the larger entry.

    The difference is infinite if an entry is NaN. If both entries are smaller than `floor`, the
    difference is relative to `floor`.
    """
    left, right = np.asarray(a), np.asarray(b)
    if np.iscomplexobj(left) or np.iscomplexobj(right) or left.size == 0:
        raise ArgumentError(
            f"values must hold at least one number, and only real numbers, got {a!r} and {b!r}"
        )
    if left.shape != right.shape:
        raise ArgumentError(f"values must have equal shapes, got {left.shape} and {right.shape}")
    left, right = left.astype(float), right.astype(float)
    differences = _differences(left, right, floor)
    return math.inf if np.isnan(differences).any() else float(differences.max(initial=0.0))


def furthest(a: Any, b: Any, floor: float) -> tuple[float, float]:
    """Return the two entries whose relative difference is :func:`apart`."""
    left, right = np.ravel(a).astype(float), np.ravel(b).astype(float)
    at = int(np.argmax(_differences(left, right, floor)))  # the first NaN, if there is one
    return float(left[at]), float(right[at])


def _differences(
    left: NDArray[np.float64], right: NDArray[np.float64], floor: float
) -> NDArray[np.float64]:
    """Return relative differences; a NaN agrees with no value, but equal infinities agree."""
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.maximum(np.abs(left), np.abs(right)), floor)
        return np.where(left == right, 0.0, np.abs(left - right) / np.where(size > 0, size, 1.0))


def call(inequality: Inequality, case: Any) -> tuple[Any, Any] | None:
    """Return the two sides of a case."""
    try:
        with np.errstate(all="ignore"):
            return inequality(**case) if isinstance(case, Mapping) else inequality(case)
    except Exception as error:
        error.add_note(f"in the case {plain_case(case)}")
        raise


def _alike(one: Any, two: Any) -> bool:
    """Return whether two computations of one case gave equal sides, where NaN equals NaN."""
    if one is None or two is None:
        return one is two
    try:
        return all(x == y or (x != x and y != y) for x, y in zip(one, two, strict=True))
    except (TypeError, ValueError):  # something other than two sides, which is refused elsewhere
        return True


def record(case: Any) -> dict[str, Any]:
    """Return a case as plain data that can be passed to the check again."""
    found = plain_case(case)
    return found if isinstance(found, dict) else {"case": found}


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return False
    return abs(_float(value)) < _FLOATS


def _are_rational(*inequality: Any) -> bool:
    return all(isinstance(side, numbers.Rational) for side in inequality)


def _float(side: Any) -> float:
    if np.iscomplexobj(side) or np.size(side) != 1:
        raise TypeError(f"a side of an inequality must be one real number, got {side!r}")
    try:
        return float(side)
    except OverflowError:
        return math.inf if side > 0 else -math.inf
