"""Claims that are computed by the accountants of dp-accounting and OpenDP.

The curve that an accountant reports is the promise. The two libraries are imported only when one of
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
    """The curve that Google's dp-accounting reports for an event, an accountant or a PLD.

    Parameters
    ----------
    accounted : DpEvent, PrivacyAccountant or PrivacyLossDistribution
        An event is composed on a ``PLDAccountant``, or on an ``RdpAccountant`` if a
        ``PLDAccountant`` does not support the event. An accountant is copied, so later compositions
        on the accountant do not change the claim.
    relation : Relation, optional
        Relation of the claim. For an event, the default is the default of dp-accounting,
        ``Relation.ADD_REMOVE_USER``. For an accountant, `relation` must be omitted or equal to the
        accountant's own relation. For a ``PrivacyLossDistribution``, the relation must be given,
        because the object does not store it.
    source : str, optional
        Name of the person or text that makes the claim.

    Raises
    ------
    ArgumentError
        If `relation` is not the relation of the accountant, if no accountant supports the event, or
        if dp-accounting is not installed.

    Notes
    -----
    The curve is exactly what the object reports by ``get_delta`` and ``get_epsilon``. A lossless
    conversion of an ``RdpAccountant`` could give a stronger promise (see :class:`RenyiDP`). The
    discretisation of a PLD is pessimistic by less than the discretisation step. Values that were
    reported before are cached.

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
    """

    notion: ClassVar[str] = "accounted"
    kind: str
    words: str

    def __init__(self, accounted: Any, relation: Relation | None = None, source: str = "") -> None:
        known, curve, words, is_event = _read(accounted, relation)
        kind = type(curve).__name__
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
            ask = getattr(self._curve, "get_delta", None) or self._curve.get_delta_for_epsilon
            self._deltas[epsilon] = min(max(float(ask(epsilon)), 0.0), 1.0)
        return self._deltas[epsilon]

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that the accountant reports at `delta`; ``inf`` if it reports none."""
        delta = _validate.delta(delta=delta)
        if delta not in self._epsilons:
            ask = getattr(self._curve, "get_epsilon", None) or self._curve.get_epsilon_for_delta
            self._epsilons[delta] = max(float(ask(delta)), 0.0)
        return self._epsilons[delta]

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
            "epsilons": [self.epsilon(delta) for delta in _STORED_DELTAS],
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
        _validate.instance(Relation, "a Relation or None", relation=given)
    if known is not None and given is not None and known != given:
        raise ArgumentError(f"relation must be {known}, the relation of {whose}, got {given}")
    return known if given is None else given


# --- dp-accounting ---


def _read(accounted: Any, relation: Relation | None) -> tuple[Relation, Any, str, bool]:
    """Return the relation, the reporting object, words, and whether `accounted` is an event."""
    if relation is not None:
        _validate.instance(Relation, "a Relation or None", relation=relation)
    try:
        from dp_accounting import DpEvent, PrivacyAccountant
        from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    except ImportError:
        raise ArgumentError(
            "accounted must be an object of dp-accounting, but dp-accounting is not installed. Run "
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
    raise TypeError(
        "accounted must be a DpEvent, a PrivacyAccountant or a PrivacyLossDistribution of "
        f"dp-accounting, got {_validate.describe(accounted)}"
    )


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
