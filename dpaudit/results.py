"""What an audit found: plain data, readable, and the same after a trip through JSON."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dpaudit._json import decode, encode
from dpaudit.bounds import Counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA_VERSION = 2


def at_least(bound: float, digits: int = 4) -> str:
    """Return a lower bound with few digits, rounded down: more was not certified.

    Examples
    --------
    >>> at_least(1.4), at_least(0.93766, 3)
    ('1.4', '0.937')
    """
    text = f"{bound:.{digits}g}"
    return text if float(text) <= bound else _rounded(bound, digits, ROUND_FLOOR)


def at_most(bound: float, digits: int = 4) -> str:
    """Return an upper bound with few digits, rounded up."""
    text = f"{bound:.{digits}g}"
    return text if float(text) >= bound else _rounded(bound, digits, ROUND_CEILING)


def _rounded(value: float, digits: int, rounding: str) -> str:
    exact = Decimal(value)
    unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{float(exact.quantize(unit, rounding=rounding)):.{digits}g}"


class Verdict(StrEnum):
    """What may be said after an audit. There is no "passed": a lower bound proves no privacy."""

    REFUTED = "refuted"
    """A violation of the claim is certified."""

    NOT_REFUTED = "not_refuted"
    """No violation was found, by an audit that caught the broken twin."""

    NO_POWER = "no_power"
    """No violation was found, but the broken twin escaped (or none was given): silence means
    nothing."""

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.replace("_", " ").upper()


class Expectation(StrEnum):
    """What was declared about an audit before it ran."""

    NOT_REFUTED = "not_refuted"
    """The usual case: a refutation fails the run."""

    REFUTED = "refuted"
    """A known violation kept as a demonstration: not finding it fails the run."""

    EITHER = "either"
    """A known violation that needs a larger budget than this run has."""


@dataclass(frozen=True)
class Estimate:
    """A number with the bounds that belong to it.

    Parameters
    ----------
    value : float
        Point estimate from the certifying draws; never a guarantee.
    lower, upper : float
        One-sided bounds; ``upper`` is ``inf`` or 1 where nothing is known, as in a black-box audit.
    failure_prob : float
        Probability that a bound is wrong; 0 when computed exactly.
    method : str
        How the bounds were obtained.
    counts : Counts or None
        The integers behind them; None when computed exactly.
    certified : bool
        Whether `lower` may be quoted as certified; False for estimates that lean on assumptions.
    """

    value: float
    lower: float
    upper: float
    failure_prob: float
    method: str
    counts: Counts | None
    certified: bool


@dataclass(frozen=True)
class Profile:
    """Privacy profiles over one grid of epsilons; the certified one holds everywhere at once."""

    epsilon: tuple[float, ...]
    certified_delta: tuple[float, ...]
    estimated_delta: tuple[float, ...]
    claimed_delta: tuple[float, ...]


@dataclass(frozen=True)
class Histogram:
    """Where the outputs of both sides fell, along the score of the event.

    Parameters
    ----------
    label : str
        What the axis shows.
    bins : tuple of str
        Words of each bin, k of them.
    edges : tuple of float, optional
        k + 1 edges when the axis is numeric.
    left, right : tuple of int
        Certifying draws in each bin.
    inside : tuple of bool
        Whether the event fires in the bin.
    """

    label: str
    bins: tuple[str, ...]
    edges: tuple[float, ...] | None
    left: tuple[int, ...]
    right: tuple[int, ...]
    inside: tuple[bool, ...]


@dataclass(frozen=True)
class Witness:
    """The event that certifies the epsilon of a result, in words and counts.

    Parameters
    ----------
    event : str
        The event in words, such as "coordinate 0 > 1.73".
    likelier : {"left", "right"}
        Side on which it was declared to be likelier.
    counts : Counts or None
        Certifying draws; None where probabilities were computed or averaged instead.
    likely, rare : float
        Of all rates of the event, on the likelier side and on the other, that the draws leave
        possible, the ones that are easiest to reconcile with privacy.
    """

    event: str
    likelier: str
    counts: Counts | None
    likely: float
    rare: float

    def sentence(self) -> str:
        """Return the witness in words."""
        other = "right" if self.likelier == "left" else "left"
        if self.counts is None:
            seen = f"{self.likely:.4g} on the {self.likelier}, {self.rare:.4g} on the {other}"
            return f"outputs with {self.event}: probability {seen}"
        c = self.counts if self.likelier == "left" else self.counts.swapped()
        return (
            f"outputs with {self.event}: {c.hits_left:,} of {c.draws_left:,} draws on the "
            f"{self.likelier}, {c.hits_right:,} of {c.draws_right:,} on the {other}"
        )


@dataclass(frozen=True)
class SequentialPath:
    """How the evidence of a sequential audit grew.

    Parameters
    ----------
    stopped : str
        Why it stopped, in words.
    budget : int
        Draws a side that it might have taken.
    evidence : float
        Logarithm of the wealth at which the claim is refuted, ``log(1 / failure_prob)``.
    draws : tuple of int
        Draws a side taken at each look.
    log_wealth : tuple of float
        Logarithm of the wealth of the bet against the claim at each look.
    """

    stopped: str
    budget: int
    evidence: float
    draws: tuple[int, ...]
    log_wealth: tuple[float, ...]


@dataclass(frozen=True)
class TwinResult:
    """How the broken twin fared on the same claim, pairs and budget.

    Its verdict is REFUTED when it was caught, and NO_POWER when it escaped.
    """

    name: str
    verdict: Verdict
    certified_epsilon: float
    failure_prob: float
    pair: str
    witness: Witness
    seconds: float


@dataclass(frozen=True)
class AuditResult:
    """Everything that an audit found, and everything that it takes to redo it.

    Numbers carry their kind in their names: ``claimed_`` is the promise, ``certified_`` a lower
    bound that is wrong with probability at most ``failure_prob`` (for all of them together),
    ``estimated_`` a point estimate without guarantee.

    Attributes
    ----------
    id : str
        Name of the audit; together with `seed` it fixes every random number.
    mechanism : str
        Name of the audited function.
    claim : dict
        ``notion, epsilon, delta, relation, source`` and the parameters of the notion. `epsilon`
        and `delta` are the point at which the audit compares; for claims that are curves,
        where the certified profile exceeds them most or comes closest.
    pair : str
        The neighbouring pair, in words.
    verdict : Verdict
        See :class:`Verdict`.
    reason : str
        One sentence behind the verdict.
    epsilon : Estimate
        Epsilon that the mechanism needs at the claimed delta.
    delta : Estimate
        Delta that the mechanism needs at the claimed epsilon.
    profile : Profile
        Certified, estimated and claimed delta over a grid of epsilons.
    witness : Witness
        The event behind the headline numbers.
    histogram : Histogram
        Outputs of both sides along the witness.
    failure_prob : float
        Probability that any certified number of the mechanism is wrong; 0 when computed exactly.
        The twin's numbers have a failure probability of their own.
    draws : dict
        ``explore`` and ``certify``: draws a side.
    twin : TwinResult or None
        The broken twin.
    expected : Expectation or None
        What was declared; None for a direct call.
    seed : int
        Root seed.
    seconds, mechanism_seconds : float
        Wall time of the audit with its twin, and the part of it spent in their code.
    versions : dict
        Of dpaudit, Python and the libraries that the numbers depend on.
    origin : dict
        What `dpaudit replay` needs to find the audit again; empty when made by a direct call.
    event : Event or None
        The live event, ``event(outputs) -> bool [size]``; not stored.
    """

    id: str
    mechanism: str
    claim: dict[str, Any]
    pair: str
    verdict: Verdict
    reason: str
    epsilon: Estimate
    delta: Estimate
    profile: Profile
    witness: Witness
    histogram: Histogram = field(repr=False)
    failure_prob: float
    draws: dict[str, int]
    twin: TwinResult | None
    expected: Expectation | None
    seed: int
    seconds: float
    mechanism_seconds: float
    versions: dict[str, str] = field(repr=False)
    sequential: SequentialPath | None = field(default=None, repr=False)
    origin: dict[str, Any] = field(default_factory=dict, repr=False)
    event: Any = field(default=None, repr=False, compare=False)

    @property
    def claimed_epsilon(self) -> float:
        """Epsilon of the claim at the point of comparison."""
        return float(self.claim["epsilon"])

    @property
    def claimed_delta(self) -> float:
        """Delta of the claim at the point of comparison."""
        return float(self.claim["delta"])

    @property
    def certified_epsilon(self) -> float:
        """Certified lower bound of epsilon at the claimed delta."""
        return self.epsilon.lower

    @property
    def certified_delta(self) -> float:
        """Certified lower bound of delta at the claimed epsilon."""
        return self.delta.lower

    @property
    def estimated_epsilon(self) -> float:
        """Point estimate of epsilon at the claimed delta, of the event that certifies it."""
        return self.epsilon.value

    def summary(self, word: str | None = None, replay: str | None = None) -> str:
        """Return the finding in a few lines: verdict, witness, pair, numbers, and how to redo it.

        Parameters
        ----------
        word : str, optional
            The verdict in the words of a run, such as "REFUTED (known)".
        replay : str, optional
            The command that makes the audit again.
        """
        claim, twin = self.claim, self.twin
        source = f" ({claim['source']})" if claim["source"] else ""
        chance = (
            f"wrong with probability <= {self.failure_prob:g}"
            if self.failure_prob > 0
            else "computed exactly"
        )
        lines = [
            f"{word or self.verdict.words}  {self.id}",
            f"  mechanism  {self.mechanism}",
            f"  claim      {claim['words']}{source}",
            f"  witness    {self.witness.sentence()}",
            f"  pair       {self.pair}",
            f"  certified  epsilon >= {at_least(self.certified_epsilon)} at delta = "
            f"{self.claimed_delta:g} (claimed {self.claimed_epsilon:.4g}, estimated "
            f"{self.estimated_epsilon:.4g}); delta >= {at_least(self.certified_delta, 3)} at "
            f"epsilon = {self.claimed_epsilon:.4g}; {chance}",
            f"  reason     {self.reason}",
        ]
        if twin is not None:
            fate = "caught" if twin.verdict is Verdict.REFUTED else "escaped"
            lines.append(
                f"  twin       {twin.name}: {fate}, epsilon >= {at_least(twin.certified_epsilon)}"
            )
        if replay is not None:
            lines.append(f"  replay     {replay}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the certified, estimated and claimed profile on `ax` (or on new axes).

        Needs matplotlib.
        """
        from dpaudit.report.figures import plot_profile

        return plot_profile(self, ax)

    def with_origin(self, origin: Mapping[str, Any], expected: Expectation | None) -> AuditResult:
        """Return the result with what only the runner knows: its origin and expectation."""
        return replace(self, origin=dict(origin), expected=expected)

    def row(self) -> dict[str, Any]:
        """Return the summary row of ``results.json``: plain data, ``inf`` as the word."""
        twin = self.twin and {
            "name": self.twin.name,
            "verdict": self.twin.verdict.value,
            "certified_epsilon": self.twin.certified_epsilon,
        }
        row = {
            "id": self.id,
            "mechanism": self.mechanism,
            "claim": self.claim,
            "pair": self.pair,
            "verdict": self.verdict.value,
            "expected": self.expected,
            "certified_epsilon": self.certified_epsilon,
            "certified_delta": self.certified_delta,
            "estimated_epsilon": self.estimated_epsilon,
            "failure_prob": self.failure_prob,
            "draws": self.draws,
            "event": self.witness.event,
            "twin": twin,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
        }
        return {key: encode(value) for key, value in row.items()}

    def to_json(self) -> dict[str, Any]:
        """Return everything but the live event as plain data; :meth:`from_json` undoes it."""
        stored = encode(replace(self, event=None))
        del stored["event"]
        return {"schema": SCHEMA_VERSION, **stored}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AuditResult:
        """Rebuild a result from :meth:`to_json`; raises ``ValueError`` on anything else."""
        if data.get("schema") != SCHEMA_VERSION:
            raise ValueError(
                f"schema must be {SCHEMA_VERSION} for this version of dpaudit, "
                f"got {data.get('schema')!r}"
            )
        stored = {key: value for key, value in data.items() if key != "schema"}
        result = decode(cls, {**stored, "event": None})
        missing = {"notion", "epsilon", "delta", "relation", "source", "words"} - set(result.claim)
        if missing:
            raise ValueError(f"claim: lacks {', '.join(sorted(missing))}")
        for name in ("epsilon", "delta"):
            if not isinstance(result.claim[name], (int, float)):
                raise ValueError(f"claim: {name} must be a number, got {result.claim[name]!r}")
        return typing.cast("AuditResult", result)
