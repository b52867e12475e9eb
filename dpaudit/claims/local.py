"""Claims about single values: local differential privacy and metric differential privacy.

A client applies a local mechanism to its own value and sends the output. Neighbours are any two
values of the domain. So a claim of this kind holds only if it holds for every pair of values.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpaudit import _validate
from dpaudit.claims.notions import LARGEST_EPSILON, ApproxDP, Relation
from dpaudit.errors import ArgumentError, NoClaim, place

ALL_REPORTS = "all"
"""What is visible if all reports of a client are."""

Metric = Callable[[Any, Any], Any]

_VALUES = "a list of at least two values, or None"


@dataclass(frozen=True, init=False)
class LocalDP(ApproxDP):
    """(epsilon, delta)-local differential privacy (Kasiviswanathan et al. 2011).

    Parameters
    ----------
    epsilon : float
        In [0, 1e100].
    delta : float, optional
        In [0, 1].
    domain : iterable, optional
        The values that a client may have, of any type, such as texts, numbers or arrays. An audit
        without `pairs` tests all pairs of these values. If the domain is an interval, pass a grid
        that includes both ends.
    source : str, optional
        Name of the person or text that makes the claim.

    Notes
    -----
    The mechanism is ``f(value, size, *, rng)`` and gets one value of the domain.

    Examples
    --------
    >>> print(LocalDP(1.0, domain=["yes", "no"]))
    epsilon = 1 (local DP)
    """

    notion: ClassVar[str] = "local_dp"
    _domain: tuple[Any, ...] | None = field(compare=False, repr=False)

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        domain: Iterable[Any] | None = None,
        source: str = "",
    ) -> None:
        super().__init__(epsilon, delta, Relation.LOCAL, source)
        object.__setattr__(self, "_domain", _checked_domain(domain))

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """The values of which all pairs are neighbours, or None."""
        return self._domain

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data; of the domain, only the number of values."""
        return super().to_json() | _size_of(self.domain)

    def __str__(self) -> str:
        return f"{_point_words(self.claimed_epsilon, self.claimed_delta)} (local DP)"


@dataclass(frozen=True, init=False)
class MetricDP(ApproxDP):
    """Metric differential privacy (Chatzikokolakis et al. 2013), such as geo-indistinguishability.

    At two values x and y, the claim is ``(epsilon * metric(x, y), delta)``-indistinguishability. An
    audit of several pairs certifies the pair with the largest ratio of the certified epsilon to the
    claimed one.

    Parameters
    ----------
    epsilon : float
        Epsilon per unit of distance, in [0, 1e100].
    metric : callable
        ``metric(x, y)`` returns the distance, a symmetric number >= 0. If the distance is infinite,
        nothing is claimed about the pair.
    delta : float, optional
        In [0, 1], the same at every distance.
    domain : iterable, optional
        The values to test, as in :class:`LocalDP`.
    relation : Relation, optional
        ``Relation.LOCAL`` by default. With another relation, `metric` gets two datasets.
    source : str, optional
        Name of the person or text that makes the claim.

    Attributes
    ----------
    distance : float
        The distance of the pair at which the claim is compared; 1 before a pair is chosen.

    Examples
    --------
    >>> claim = MetricDP(0.5, metric=lambda x, y: abs(x - y), domain=[0, 1, 4])
    >>> print(claim)
    epsilon = 0.5 per unit of distance
    >>> print(claim.between(0, 4))
    epsilon = 2 at distance 4 (0.5 per unit)
    """

    notion: ClassVar[str] = "metric_dp"
    metric: Metric = field(repr=False)
    _domain: tuple[Any, ...] | None = field(compare=False, repr=False)
    per_unit: float
    distance: float

    def __init__(
        self,
        epsilon: float,
        metric: Metric,
        delta: float = 0.0,
        *,
        domain: Iterable[Any] | None = None,
        relation: Relation = Relation.LOCAL,
        source: str = "",
    ) -> None:
        super().__init__(epsilon, delta, relation, source)
        _validate.function("a function metric(x, y)", metric=metric)
        if domain is not None and relation != Relation.LOCAL:
            raise ArgumentError(
                f"domain must be None unless the relation is {Relation.LOCAL}, got {relation}"
            )
        facts = {"metric": metric, "_domain": _checked_domain(domain)}
        for name, value in (facts | {"per_unit": float(epsilon), "distance": 1.0}).items():
            object.__setattr__(self, name, value)

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """The values of which all pairs are neighbours, or None."""
        return self._domain

    def between(self, left: Any, right: Any) -> MetricDP:
        """Return the claim at two values, whose epsilon is that of their distance.

        Raises
        ------
        ValueError
            If `metric` raises an exception, or returns anything but the same number >= 0 for both
            orders of the values.
        NoClaim
            If the distance is infinite.
        """
        distance, back = self._distance(left, right), self._distance(right, left)
        if not math.isclose(distance, back, rel_tol=1e-9):
            raise ArgumentError(
                f"metric must be symmetric, got {distance!r} and {back!r} for the two orders of "
                f"{_validate.describe(left)} and {_validate.describe(right)}"
            )
        if distance == math.inf:
            raise NoClaim(
                "pairs must be at a finite distance, because nothing is claimed otherwise, got "
                f"{_validate.describe(left)} and {_validate.describe(right)}"
            )
        claim = copy.copy(self)
        object.__setattr__(claim, "distance", distance)
        object.__setattr__(claim, "claimed_epsilon", min(self.per_unit * distance, LARGEST_EPSILON))
        return claim

    def _distance(self, left: Any, right: Any) -> float:
        try:
            distance = float(self.metric(left, right))
        except Exception as error:
            raise ArgumentError(
                f"metric must return a number for {_validate.describe(left)} and "
                f"{_validate.describe(right)}, but it raised {type(error).__name__}: {error} "
                f"({place(error)}called with these values)"
            ) from error
        if not distance >= 0:
            raise ArgumentError(
                f"metric must return a number >= 0, got {distance!r} for "
                f"{_validate.describe(left)} and {_validate.describe(right)}"
            )
        return distance

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data; of the domain, only the number of values."""
        point = {"epsilon": self.per_unit, "delta": self.claimed_delta, "distance": self.distance}
        return point | _size_of(self.domain)

    def __str__(self) -> str:
        words = _point_words(self.claimed_epsilon, self.claimed_delta)
        if self.distance == 1.0:
            return f"{words} per unit of distance"
        return f"{words} at distance {self.distance:g} ({self.per_unit:g} per unit)"


@dataclass(frozen=True, init=False)
class LongitudinalDP(ApproxDP):
    """One epsilon for each report of a client, and one for all its reports together.

    An audit needs the mechanism ``Longitudinal(f)``, whose data say which reports are visible. It
    tests all pairs of values, with one visible report and with all reports, and certifies where the
    ratio to the claimed epsilon is largest.

    Parameters
    ----------
    each : float
        Epsilon of every single report, in [0, 1e100].
    total : float
        Epsilon of all reports of a client, at least `each`.
    reports : int
        Number of reports, at least 2.
    domain : iterable
        What a client may hold: a value that does not change, or the values of all times.
    delta : float, optional
        In [0, 1], for each report and for all.
    source : str, optional
        Name of the person or text that makes the claim.

    Examples
    --------
    >>> claim = LongitudinalDP(each=1.0, total=2.0, reports=10, domain=["yes", "no"])
    >>> print(claim)
    epsilon = 1 for each report, and 2 for all 10
    >>> len(claim.domain)
    22
    """

    notion: ClassVar[str] = "longitudinal_dp"
    each: float
    total: float
    reports: int
    _domain: tuple[Any, ...] = field(compare=False, repr=False)
    visible: str

    def __init__(
        self,
        each: float,
        total: float,
        *,
        reports: int,
        domain: Iterable[Any],
        delta: float = 0.0,
        source: str = "",
    ) -> None:
        total = _validate.nonnegative(total=total)
        if total > LARGEST_EPSILON:
            raise ArgumentError(
                f"total must be a number in [0, {LARGEST_EPSILON:g}], got {total!r}"
            )
        super().__init__(total, delta, Relation.LOCAL, source)
        each = _validate.nonnegative(each=each)
        if not each <= total:
            raise ArgumentError(f"total must be a number >= each = {each!r}, got {total!r}")
        _validate.integer(2, reports=reports)
        values = _checked_domain(domain)
        if values is None:
            raise TypeError("domain must be a list of at least two values, got None")
        seen = (*range(reports), ALL_REPORTS)
        facts: dict[str, Any] = {"each": each, "total": float(total), "reports": reports}
        domain = tuple((at, v, reports) for at in seen for v in values)
        facts |= {"_domain": domain, "visible": ""}
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    @property
    def domain(self) -> tuple[Any, ...]:
        """Pairs of a visible report and a value, for every report and every value."""
        return self._domain

    def between(self, left: Any, right: Any) -> LongitudinalDP:
        """Return the claim at two values, which must have the same visible reports."""
        for side in (left, right):
            is_ours = isinstance(side, tuple) and len(side) == 3 and side[2] == self.reports
            if not (is_ours and side[0] in (*range(self.reports), ALL_REPORTS)):
                raise ArgumentError(
                    "pairs must consist of values of the claim's domain, such as "
                    f"{self.domain[0]!r}, got {_validate.describe(side)}"
                )
        if left[0] != right[0]:
            raise NoClaim(
                "pairs must show the same reports, because nothing is claimed otherwise, got "
                f"{_validate.describe(left)} and {_validate.describe(right)}"
            )
        claim, is_all = copy.copy(self), left[0] == ALL_REPORTS
        words = f"all {self.reports} reports" if is_all else f"report {left[0]}"
        object.__setattr__(claim, "claimed_epsilon", self.total if is_all else self.each)
        object.__setattr__(claim, "visible", words)
        return claim

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data; of the domain, only the number of values."""
        point = {"each": self.each, "total": self.total, "delta": self.claimed_delta}
        return point | {"reports": self.reports, "values": len(self._domain) // (self.reports + 1)}

    def __str__(self) -> str:
        if self.visible:
            return f"{_point_words(self.claimed_epsilon, self.claimed_delta)} for {self.visible}"
        each = _point_words(self.each, self.claimed_delta)
        return f"{each} for each report, and {self.total:g} for all {self.reports}"


def _checked_domain(domain: Iterable[Any] | None) -> tuple[Any, ...] | None:
    """Return the values of a domain, or None."""
    if domain is None:
        return None
    if isinstance(domain, str | bytes | dict) or not isinstance(domain, Iterable):
        raise TypeError(f"domain must be {_VALUES}, got {_validate.describe(domain)}")
    if hasattr(domain, "columns"):
        raise TypeError(f"domain must be {_VALUES}, got a frame. Pass a list of its rows")
    plain = np.bool_ | np.int64 | np.float64 | np.str_
    values = tuple(one.item() if isinstance(one, plain) else one for one in domain)
    if len(values) < 2:
        raise ArgumentError(f"domain must be {_VALUES}, got {_validate.describe(domain)}")
    return values


def _size_of(domain: tuple[Any, ...] | None) -> dict[str, int]:
    return {} if domain is None else {"values": len(domain)}


def _point_words(epsilon: float, delta: float) -> str:
    return f"epsilon = {epsilon:g}" + f", delta = {delta:g}" * (delta > 0)
