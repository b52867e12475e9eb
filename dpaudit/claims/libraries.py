"""Claims that are computed by accountants: dp-accounting, OpenDP, Opacus, autodp and functions.

The curve that an accountant reports is the promise. The libraries are imported only when one of
these claims is made.
"""

from __future__ import annotations

import copy
import math
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from dpaudit import _validate
from dpaudit.claims.notions import (
    LARGEST_EPSILON,
    ApproxDP,
    ApproxZCDP,
    Claim,
    PureDP,
    Relation,
    ZeroConcentratedDP,
    within_sensitivity,
)
from dpaudit.errors import ArgumentError

_RELATIONS = {"ADD_OR_REMOVE_ONE": Relation.ADD_REMOVE_USER, "REPLACE_ONE": Relation.REPLACE_USER}
"""Relations by their names in dp-accounting."""

_STORED_DELTAS = (1e-9, 1e-7, 1e-5, 1e-3, 0.1)


@dataclass(frozen=True, init=False, eq=False)
class Accounted(Claim):
    """The curve that an accountant reports.

    Parameters
    ----------
    accounted : object or callable
        For dp-accounting: a ``DpEvent``, a ``PrivacyAccountant`` or a ``PrivacyLossDistribution``.
        An event is composed on a ``PLDAccountant``, or on an ``RdpAccountant`` if a
        ``PLDAccountant`` does not support the event. For other packages: an object with a method
        ``get_epsilon(delta)`` (an accountant of Opacus), ``get_approxDP(delta)`` (a mechanism of
        autodp), ``get_eps(delta)`` (an accountant of autodp) or ``epsilon(delta)`` (a privacy
        profile of OpenDP). Or any function that takes delta and returns epsilon, such as your own
        accountant. An accountant is copied if possible, so later compositions on the accountant do
        not change the claim.
    relation : Relation, optional
        Relation of the claim. For an event, the default is the default of dp-accounting,
        ``Relation.ADD_REMOVE_USER``. For an accountant of dp-accounting, `relation` must be omitted
        or equal to the accountant's own relation. For all other objects, the relation must be
        given, because the object does not store it.
    source : str, optional
        Name of the person or text that makes the claim.

    Raises
    ------
    ArgumentError
        If `relation` is not the relation of the accountant, or is missing. Also if no accountant
        supports the event.

    Notes
    -----
    The curve is exactly what the object reports by ``get_delta`` and ``get_epsilon``. A lossless
    conversion of an ``RdpAccountant`` could give a stronger promise (see :class:`RenyiDP`). The
    discretisation of a PLD is pessimistic by less than the discretisation step. Values that were
    reported before are cached.

    Some objects report only epsilon(delta). Then a search finds a delta at which an epsilon of at
    most `epsilon` was reported. This delta exceeds the smallest such delta by at most 0.1%. So the
    claim is never stronger than what was reported. A delta at which the accountant fails, or
    reports NaN, makes no promise.

    Conventions of dp-accounting differ between accountants. Under ``REPLACE_ONE``, a
    ``PLDAccountant`` takes the noise multiplier relative to one user's contribution, and doubles
    this sensitivity. An ``RdpAccountant`` takes the noise multiplier relative to the change when
    one user is replaced, and doubles nothing.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    >>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
    >>> claim = Accounted(SelfComposedDpEvent(step, 100))
    >>> print(claim.relation, round(claim.epsilon(1e-5), 2))
    add_remove_user 0.72
    >>> claim.at(1e-5).point == (claim.epsilon(1e-5), 1e-5)
    True

    A function is a claim, too:

    >>> import math
    >>> def advanced(delta):  # advanced composition of 100 steps of epsilon = 0.1
    ...     return 0.1 * math.sqrt(200 * math.log(1 / delta)) + 10 * math.expm1(0.1)
    >>> round(Accounted(advanced, Relation.REPLACE_USER).epsilon(1e-5), 2)
    5.85
    """

    notion: ClassVar[str] = "accounted"
    kind: str
    words: str

    def __init__(self, accounted: Any, relation: Relation | None = None, source: str = "") -> None:
        known, curve, words, is_event = _read(accounted, relation)
        kind = getattr(curve, "__name__", None) or type(curve).__name__
        self._set(known, source, kind=kind, words=words, _curve=curve, _deltas={}, _epsilons={})
        # The curve depends only on the event and its accountant. Other objects are identified by
        # `id`.
        key = words if is_event else id(curve)
        object.__setattr__(self, "_key", (key, kind, known, self.source))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Accounted) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    _curve: ClassVar[Any]
    _deltas: ClassVar[dict[float, float]]
    _epsilons: ClassVar[dict[float, float]]
    _key: ClassVar[tuple[Any, ...]]

    def delta(self, epsilon: float) -> float:
        """Return the delta that the accountant reports at `epsilon`."""
        epsilon = _validate.nonnegative(epsilon=epsilon)
        if epsilon not in self._deltas:
            ask = _method(self._curve, _DELTA_METHODS)
            found = self._searched(epsilon) if ask is None else _number(ask, epsilon, "epsilon")
            self._deltas[epsilon] = 1.0 if math.isnan(found) else min(max(found, 0.0), 1.0)
        return self._deltas[epsilon]

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that the accountant reports at `delta`; ``inf`` if it reports none."""
        delta = _validate.delta(delta=delta)
        if delta not in self._epsilons:
            ask = _method(self._curve, _EPSILON_METHODS) or self._curve
            found = _number(ask, delta, "delta")
            self._epsilons[delta] = math.inf if math.isnan(found) else max(found, 0.0)
        return self._epsilons[delta]

    def _searched(self, epsilon: float) -> float:
        """Return a delta at which an epsilon of at most `epsilon` was reported."""
        if self._reported(0.0) <= epsilon:
            return 0.0
        if self._reported(_LEAST_DELTA) <= epsilon:
            return _LEAST_DELTA
        # A reported epsilon holds at every larger delta, too.
        known = [d for d, reported in self._epsilons.items() if d > 0 and reported <= epsilon]
        high = min(known, default=1.0)
        low = max(d for d, found in self._epsilons.items() if 0 < d < high and found > epsilon)
        while high / low > 1 + _SEARCH_ACCURACY:
            middle = math.sqrt(high * low)
            low, high = (middle, high) if self._reported(middle) > epsilon else (low, middle)
        return high

    def _reported(self, delta: float) -> float:
        """Return the epsilon that is reported at `delta`; ``inf`` if the accountant fails there."""
        try:
            return self.epsilon(delta)
        except ArgumentError:
            return self._epsilons.setdefault(delta, math.inf)

    def at(self, delta: float) -> ApproxDP:
        """Return one point of the curve, at a given delta, as a separate claim.

        Parameters
        ----------
        delta : float
            In [0, 1].

        Raises
        ------
        ArgumentError
            If no finite epsilon is reported at `delta`.
        """
        epsilon = self.epsilon(delta)
        if math.isinf(epsilon):
            raise ArgumentError(
                f"delta must be a value at which a finite epsilon is reported, got {delta!r}"
            )
        return ApproxDP(epsilon, delta, self.relation, self.source or str(self))

    def to_json(self) -> dict[str, Any]:
        """Return a description of the accounted object, and points of its curve."""
        return {
            "accountant": self.kind,
            "accounted": self.words,
            "deltas": list(_STORED_DELTAS),
            "epsilons": [self._reported(delta) for delta in _STORED_DELTAS],
        }

    def __str__(self) -> str:
        short = self.words if len(self.words) <= 100 else self.words[:97] + "..."
        return f"DP as accounted by {self.kind}: {short}"

    def __repr__(self) -> str:
        return f"Accounted({self.words}, {self.kind}, relation={self.relation})"


def from_opendp(
    measurement: Any,
    d_in: Any,
    *,
    relation: Relation | None = None,
    delta: float | None = None,
    source: str = "",
) -> Claim:
    """Return the claim that OpenDP's ``measurement.map(d_in)`` makes.

    Parameters
    ----------
    measurement : opendp.Measurement
        The output measure of the measurement must be ``MaxDivergence``,
        ``ZeroConcentratedDivergence``, one of these two in its approximate form (of fixed delta),
        or ``SmoothedMaxDivergence``.
    d_in : number
        Distance of neighbours in the input metric, in the form that ``map`` accepts.
    relation : Relation, optional
        The default is the relation that the input metric and `d_in` imply. For a
        ``SymmetricDistance`` or ``InsertDeleteDistance`` of 1, one user is added or removed. For a
        ``HammingDistance``, ``ChangeOneDistance`` or ``DiscreteDistance`` of 1, one user is
        replaced. For ``AbsoluteDistance``, ``L1Distance``, ``L2Distance`` and ``LInfDistance``,
        query values differ by at most `d_in`. For other metrics and distances, such as those of a
        user with several records, `relation` must be given.
    delta : float, optional
        For a ``SmoothedMaxDivergence``, `delta` selects a point of the curve. `delta` must be given
        for this measure and for no other measure.
    source : str, optional
        Name of the person or text that makes the claim. The default is "OpenDP".

    Returns
    -------
    PureDP, ApproxDP, ZeroConcentratedDP or ApproxZCDP

    Raises
    ------
    ArgumentError
        If the output measure is another measure, or if `relation` contradicts the metric. Also if
        `delta` is missing, is given without need, or has no finite epsilon.
    """
    for name in ("map", "output_measure", "input_metric"):
        if not hasattr(measurement, name):
            words = _validate.describe(measurement)
            raise TypeError(f"measurement must be a measurement of OpenDP, got {words}")
    if _validate.positive(d_in=d_in) > LARGEST_EPSILON:
        raise ArgumentError(f"d_in must be a number in (0, {LARGEST_EPSILON:g}], got {d_in!r}")
    measure = re.sub(r"[^A-Za-z]+", " ", str(measurement.output_measure)).strip()
    known = _relation_of_metric(str(measurement.input_metric), d_in)
    relation = _agreed(known, relation, f"{measurement.input_metric} of {d_in}")
    if relation is None:
        raise ArgumentError(
            f"relation must be given for {measurement.input_metric} with d_in = {d_in}, "
            "because its relation is unknown"
        )
    source = _validate.text(empty=True, source=source) or "OpenDP"
    if (delta is None) == (measure == "SmoothedMaxDivergence"):
        raise ArgumentError(
            "delta must be given for a SmoothedMaxDivergence and for no other measure, got "
            f"{_validate.describe(delta)} for {measurement.output_measure}"
        )
    found = measurement.map(d_in)
    if measure == "MaxDivergence":
        return PureDP(found, relation, source)
    if measure == "ZeroConcentratedDivergence":
        return ZeroConcentratedDP(found, relation, source)
    if measure == "Approximate MaxDivergence":
        return ApproxDP(found[0], found[1], relation, source)
    if measure == "Approximate ZeroConcentratedDivergence":
        return ApproxZCDP(found[0], found[1], relation, source)
    if measure == "SmoothedMaxDivergence":
        return ApproxDP(float(found.epsilon(delta)), _validate.delta(delta=delta), relation, source)
    raise ArgumentError(
        "measurement must have the output measure MaxDivergence, "
        "ZeroConcentratedDivergence, the approximate form of one of these two, or "
        f"SmoothedMaxDivergence, got {measurement.output_measure}"
    )


def _relation_of_metric(metric: str, d_in: Any) -> Relation | None:
    """Return the relation of neighbours at distance `d_in`; None if the relation is unknown."""
    name = re.split(r"[(<]", metric)[0]
    norms = {"AbsoluteDistance": "linf", "L1Distance": "l1", "L2Distance": "l2"}
    norms["LInfDistance"] = "linf"
    if name in norms:
        return within_sensitivity(float(d_in), norm=norms[name])
    if d_in != 1:
        return None
    if name in ("SymmetricDistance", "InsertDeleteDistance"):
        return Relation.ADD_REMOVE_USER
    if name in ("HammingDistance", "ChangeOneDistance", "DiscreteDistance"):
        return Relation.REPLACE_USER
    return None


def _agreed(known: Relation | None, given: Relation | None, whose: str) -> Relation | None:
    """Return the relation that is known or given; raise an error if the two contradict."""
    if given is not None:
        _validate.instance(
            Relation, "None or a Relation, such as Relation.REPLACE_USER", relation=given
        )
    if known is not None and given is not None and known != given:
        raise ArgumentError(f"relation must be {known}, the relation of {whose}, got {given}")
    return known if given is None else given


# --- reading what an accountant reports ---


_EPSILON_METHODS = ("get_epsilon", "get_epsilon_for_delta", "get_approxDP", "get_eps", "epsilon")
_DELTA_METHODS = ("get_delta", "get_delta_for_epsilon", "delta")
_LEAST_DELTA, _SEARCH_ACCURACY = 1e-15, 1e-3


def _method(curve: Any, names: tuple[str, ...]) -> Any:
    """Return the first of some methods that an object has; None if it has none."""
    found = (getattr(curve, name, None) for name in names)
    return next((one for one in found if callable(one)), None)


def _number(ask: Any, argument: float, name: str) -> float:
    """Return the number that an accountant reports; NaN if the accountant fails at 0."""
    try:
        return float(ask(argument))
    except Exception as error:
        if argument == 0:  # many accountants divide by delta or take its logarithm
            return math.nan
        raise ArgumentError(
            f"accounted must report a number at {name} = {argument!r}, got "
            f"{type(error).__name__}: {error}"
        ) from error


def _read(accounted: Any, relation: Relation | None) -> tuple[Relation, Any, str, bool]:
    """Return the relation, the reporting object, words, and whether `accounted` is an event."""
    if relation is not None:
        _validate.instance(
            Relation, "None or a Relation, such as Relation.REPLACE_USER", relation=relation
        )
    known = _of_dp_accounting(accounted, relation)
    if known is not None:
        return known
    is_other = isinstance(accounted, type | Claim)
    if is_other or not (_method(accounted, _EPSILON_METHODS) or callable(accounted)):
        raise TypeError(
            "accounted must be a DpEvent, a PrivacyAccountant or a PrivacyLossDistribution of "
            "dp-accounting, an accountant with a method get_epsilon(delta), get_approxDP(delta), "
            "get_eps(delta) or epsilon(delta), or a function of delta that returns epsilon, got "
            f"{_validate.describe(accounted)}"
        )
    if relation is None:
        raise ArgumentError(
            f"relation must be given for {_validate.describe(accounted)}, because the object "
            "does not store it"
        )
    return relation, _copied(accounted), _history(accounted), False


def _copied(accounted: Any) -> Any:
    """Return a copy of an accountant; objects of other languages cannot be copied."""
    try:
        return copy.deepcopy(accounted)
    except Exception:
        return accounted


def _history(accounted: Any) -> str:
    """Return a description of what an accountant composed."""
    history = getattr(accounted, "history", None)  # of Opacus: (noise, rate, steps)
    if isinstance(history, list) and history:
        return "; ".join(map(str, history))
    params = getattr(accounted, "params", None)  # of autodp
    if isinstance(params, dict) and params:
        return ", ".join(f"{name}={_validate.describe(value)}" for name, value in params.items())
    name = getattr(accounted, "__name__", None) or getattr(accounted, "name", None)
    return str(name) if isinstance(name, str) else f"a {type(accounted).__name__}"


# --- dp-accounting ---


def _of_dp_accounting(
    accounted: Any, relation: Relation | None
) -> tuple[Relation, Any, str, bool] | None:
    """Read an object of dp-accounting; return None for other objects."""
    if not any(base.__module__.startswith("dp_accounting") for base in type(accounted).__mro__):
        return None
    try:
        from dp_accounting import DpEvent, PrivacyAccountant
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    except ImportError:
        raise ArgumentError(
            "accounted is an object of dp-accounting, so dp-accounting must be installed. Run "
            "pip install dp-accounting"
        ) from None
    if isinstance(accounted, PrivacyAccountant):
        name = accounted.neighboring_relation.name
        if name not in _RELATIONS:
            raise ArgumentError(
                f"accounted must have one of the relations {', '.join(_RELATIONS)}, got {name}"
            )
        _agreed(_RELATIONS[name], relation, f"the {type(accounted).__name__}")
        return _RELATIONS[name], copy.deepcopy(accounted), _words(accounted.ledger), False
    if isinstance(accounted, PrivacyLossDistribution):
        if relation is None:
            raise ArgumentError(
                "relation must be given for a PrivacyLossDistribution, because the object "
                "does not store it"
            )
        return relation, copy.deepcopy(accounted), "a privacy loss distribution", False
    if isinstance(accounted, DpEvent):
        relation = Relation.ADD_REMOVE_USER if relation is None else relation
        return relation, _composed(accounted, relation), _words(accounted), True
    return None


def _composed(event: Any, relation: Relation) -> Any:
    """Return the first accountant that supports an event, with the event composed on it."""
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
    from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant

    names = [name for name, ours in _RELATIONS.items() if ours == relation]
    if not names:
        allowed = " or ".join(map(str, _RELATIONS.values()))
        raise ArgumentError(f"relation must be {allowed} for an event, got {relation}")
    theirs = NeighboringRelation[names[0]]
    for accountant in (PLDAccountant(theirs), RdpAccountant(neighboring_relation=theirs)):
        if accountant.supports(event):
            return accountant.compose(event)
    raise ArgumentError(
        f"accounted must be an event that a PLDAccountant or an RdpAccountant supports under "
        f"{names[0]}, got {_words(event)}"
    )


def _words(event: Any) -> str:
    return re.sub(r"DpEvent\b", "", repr(event))
