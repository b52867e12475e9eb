"""What an audit found: plain data, readable, and the same after a trip through JSON."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from dpaudit._json import LATER, Count, Probability, Seconds, decode, encode
from dpaudit.neighbors import NeighborPair
from dpaudit.results.datasets import who_differs
from dpaudit.results.estimates import (
    BY_RANK,
    CanaryGuesses,
    ClaimFacts,
    Estimate,
    Histogram,
    LongProfile,
    NoiseMargin,
    Origin,
    Profile,
    SequentialPath,
    Witness,
)
from dpaudit.results.mutants import (
    MutantResult,
    mutant_lines,
    mutation_score,
    score_words,
    unnoticed_words,
)
from dpaudit.results.verdicts import Expectation, Status, Verdict, status_of
from dpaudit.results.words import at_least, at_most, beyond
from dpaudit.search import SearchRecord
from dpaudit.stats import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA_VERSION = 6


@dataclass(frozen=True)
class Diagnostics:
    """Evidence and circumstances of an audit, besides the numbers that a user acts on.

    Attributes
    ----------
    histogram : Histogram
        Outputs of both sides along the witness.
    curves : Curves or None
        What the certified bounds say of the trade-off curve, of Gaussian DP and of Renyi
        divergences; None where nothing is certified.
    sequential : SequentialPath or None
        How the wealth grew, for a sequential audit.
    canaries : CanaryGuesses or None
        The guesses and further epsilons of :func:`dpaudit.audit_one_run`.
    long_profile : LongProfile or None
        Estimated profile down to negligible deltas, for a mechanism of additive noise.
    search : SearchRecord or None
        What was looked at to find the pair, where it was searched for.
    noise_margin : NoiseMargin or None
        What is certified of the same mechanism with less noise, where that was asked for.
    versions : dict
        Of dpaudit, Python and the libraries that the numbers depend on.
    mechanism_seconds : float
        Part of the wall time that was spent in the code of the mechanism and its mutants.
    """

    histogram: Histogram
    versions: dict[str, str]
    mechanism_seconds: Seconds = 0.0
    curves: Curves | None = None
    sequential: SequentialPath | None = None
    canaries: CanaryGuesses | None = None
    long_profile: LongProfile | None = None
    search: SearchRecord | None = None
    noise_margin: NoiseMargin | None = None


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
    pair_words : str
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
        The event behind the primary numbers.
    failure_prob : float
        Probability that any certified number of the mechanism is wrong; 0 when computed exactly.
        The numbers of the mutants have one of their own, together as large.
    p_value : float
        Of the claim: the smallest failure probability, shared in the same way, at which these draws
        refute it; 1 where they do not refute it.
    draws : dict
        ``explore`` and ``certify``: draws per dataset, as events that are learnt need them. Guesses
        by rank learn nothing and certify on both; see `draws_by_rank`.
    mutants : tuple of MutantResult
        How the mutants fared, those that were given first; empty where none was wanted, none could
        be made, or the claim is refuted.
    expected : Expectation or None
        What was declared; None for a direct call.
    seed : int
        Root seed.
    seconds : float
        Wall time of the audit with its mutants.
    detectable_epsilon : float or None
        Epsilon on this pair, at the claimed delta, from which an audit of this size refutes the
        mechanism with probability about 0.9, were its noise so much less; an estimate. ``inf``
        where it refutes none so often; None for a refuted claim, for what was computed, and where
        the family of the mechanism is not known.
    notes : tuple of str
        What else a reader should know.
    origin : dict
        What `dpaudit replay` needs to find the audit again; empty when made by a direct call.
    diagnostics : Diagnostics
        Evidence and circumstances: histogram, curves, search, versions.
    advice : str
        What to try next, where silence means nothing; empty otherwise.
    left_out : tuple of str
        What was not looked at: for want of draws, or because nobody asked.
    pair : NeighborPair or None
        The two datasets and the user in whom they differ; stored beside the JSON, and None where
        that file is gone.
    event : Event or None
        The live event, ``event(outputs) -> bool [size]``; not stored.
    """

    id: str
    mechanism: str
    claim: Annotated[dict[str, Any], ClaimFacts]
    pair_words: str
    verdict: Verdict
    reason: str
    epsilon: Estimate
    delta: Estimate
    profile: Profile
    witness: Witness
    failure_prob: Probability
    p_value: Probability
    draws: dict[str, Count]
    mutants: tuple[MutantResult, ...]
    expected: Expectation | None
    seed: int
    seconds: Seconds
    diagnostics: Diagnostics = field(repr=False)
    detectable_epsilon: float | None = None
    notes: tuple[str, ...] = ()
    origin: Annotated[dict[str, Any], Origin] = field(default_factory=dict, repr=False)
    advice: str = ""
    left_out: tuple[str, ...] = field(default=(), metadata=LATER)
    pair: NeighborPair | None = field(default=None, repr=False, compare=False)
    event: Any = field(default=None, repr=False, compare=False)

    def __bool__(self) -> bool:
        raise TypeError(
            "an AuditResult has no truth value: a refuted claim would pass `assert audit(...)`. "
            "Call result.assert_not_refuted(), or compare result.verdict"
        )

    def assert_not_refuted(self, *, power: bool = True) -> None:
        """Raise ``AssertionError`` with the finding, unless the verdict is NOT_REFUTED.

        Parameters
        ----------
        power : bool, optional
            Whether NO_POWER fails too, by which nothing is known. Default True.
        """
        if self.verdict is Verdict.REFUTED or (power and self.verdict is Verdict.NO_POWER):
            raise AssertionError(f"\n{self.summary()}")

    @property
    def status(self) -> Status:
        """What became of the audit beside what was expected of it."""
        given = any(mutant.is_given for mutant in self.mutants)
        return status_of(self.verdict, self.expected, has_given=given)

    @property
    def mismatch(self) -> str | None:
        """Why the result fails a run, in one sentence; None when it does not."""
        sentences = {
            "refuted": f"the claim is refuted: {self.reason}",
            "no_power": f"the audit has no power: {self.reason}",
            "lost": "a known violation was not found again: fix the audit, or take the mark away "
            "if the mechanism was mended",
        }
        return sentences.get(self.status.key)

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

    @property
    def draws_by_rank(self) -> int:
        """Draws per dataset on which guesses by rank certify `epsilon`; 0 where others do.

        All of them, but for outputs drawn elsewhere that fair coins left out.
        """
        counts = self.epsilon.counts
        return counts.draws_left // 2 if counts and self.epsilon.method == BY_RANK else 0

    @property
    def total_failure_prob(self) -> float:
        """Probability, at most, that any certified number of audit, mutants or margin is wrong."""
        spent = [self.failure_prob, *(mutant.failure_prob for mutant in self.mutants)]
        if (margin := self.diagnostics.noise_margin) is not None:
            spent.append(len(margin.points) * margin.failure_prob)
        return math.fsum(spent)

    @property
    def mutation_score(self) -> float | None:
        """Share of the mutants that were killed, of those that could be run; None without any."""
        killed, judged = mutation_score(self.mutants)
        return killed / judged if judged else None

    def summary(self, word: str | None = None, replay: str | None = None) -> str:
        """Return the finding in a few lines: verdict, witness, pair, numbers, and how to redo it.

        Parameters
        ----------
        word : str, optional
            The verdict in the words of a run, such as "REFUTED (known)".
        replay : str, optional
            The command that makes the audit again.
        """
        claim, seen = self.claim, self.diagnostics
        source = f" ({claim['source']})" if claim["source"] else ""
        probability = (
            f"wrong with probability <= {self.failure_prob:g}"
            if self.failure_prob > 0
            else ("computed exactly" if self.epsilon.upper == self.epsilon.lower else "computed")
        )
        differs = "" if self.pair is None else who_differs(self.pair)
        witness, profile = self.witness.sentence(), []
        if seen.sequential is not None:
            witness += " (of the last batch; the evidence is of all)"
        if (guesses := seen.canaries) is not None:
            witness = f"{self.witness.sentence('canaries')}; {guesses.chosen}"
            both = zip(guesses.certified_epsilons, guesses.deltas, strict=True)
            words = ", ".join(f"{at_least(epsilon)} at {delta:g}" for epsilon, delta in both)
            profile = [f"  profile    epsilon >= {words}"]
        lines = [
            f"{word or self.verdict.words}  {self.id}",
            f"  mechanism  {self.mechanism}",
            f"  claim      {claim['words']}{source}",
            f"  witness    {witness}",
            f"  pair       {self.pair_words}",
            *([f"  differs    {differs}"] if differs else []),
            *([] if seen.search is None else [f"  searched   {seen.search.words()}"]),
            f"  certified  epsilon {beyond(self.certified_epsilon, self.claimed_epsilon)} at "
            f"delta = {self.claimed_delta:g} (claimed {self.claimed_epsilon:.4g}, estimated "
            f"{self.estimated_epsilon:.4g}); delta >= {at_least(self.certified_delta, 3)} at "
            f"epsilon = {self.claimed_epsilon:.4g}; {probability}",
            *profile,
            f"  reason     {self.reason}",
            *self._power_lines(),
        ]
        if seen.sequential is not None:
            spent = f"{sum(self.draws.values()):,} of {seen.sequential.budget:,}"
            lines.append(f"  stopped    {seen.sequential.stopped}, after {spent} draws per dataset")
        if self.mutants:
            lines.append(f"  mutants    {score_words(self.mutants)}")
            lines += mutant_lines(self.mutants, self.claimed_epsilon)
        if seen.noise_margin is not None:
            lines.append(f"  margin     {seen.noise_margin.words()}")
        lines += [f"  next       {self.advice}"] * bool(self.advice)
        lines += [f"  note       {note}" for note in self.notes]
        if replay is not None:
            lines.append(f"  replay     {replay}")
        return "\n".join(lines)

    def _power_lines(self) -> list[str]:
        """Return what this silence excludes, and what it does not; of silence that has power."""
        if self.verdict is not Verdict.NOT_REFUTED:
            return []
        seen, lines = self.detectable_epsilon, []
        if seen == math.inf:
            lines = ["would see  no violation with probability 0.9: it takes more draws"]
        elif seen is not None:
            lines = [
                f"would see  epsilon = {at_most(seen)} or more on this pair, with probability "
                "about 0.9, if the same mechanism had less noise (an estimate)"
            ]
        lines += [f"unnoticed  {words}" for words in unnoticed_words(self.mutants)]
        lines += [f"left out   {words}" for words in self.left_out]
        return [f"  {line}" for line in lines]

    def __repr__(self) -> str:
        return self.summary()

    def plot_tradeoff(self, ax: Axes | None = None) -> Axes:
        """Draw the certified band of the trade-off curve, the claimed curve and perfect privacy.

        Needs matplotlib (the extra ``plot``).

        Returns
        -------
        Axes
            Of matplotlib, on a figure of its own that no window shows:
            ``result.plot_tradeoff().figure.savefig("tradeoff.svg")`` keeps it.
        """
        from dpaudit.results import charts, figures

        return figures.draw(charts.tradeoff(self), ax)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the certified, estimated and claimed profile on `ax` (or on new axes).

        Of an audit in one run, draw epsilon over the number of guesses instead: estimated at each
        number, certified and claimed.

        Needs matplotlib (the extra ``plot``).

        Returns
        -------
        Axes
            Of matplotlib, on a figure of its own that no window shows:
            ``result.plot().figure.savefig("profile.svg")`` keeps it.
        """
        from dpaudit.results import charts, figures

        chart = charts.profile if self.diagnostics.canaries is None else charts.guesses
        return figures.draw(chart(self), ax)

    def with_origin(self, origin: Mapping[str, Any], expected: Expectation | None) -> AuditResult:
        """Return the result with what only the runner knows: its origin and expectation."""
        return replace(self, origin=dict(origin), expected=expected)

    def row(self) -> dict[str, Any]:
        """Return the summary row of ``results.json``: plain data, ``inf`` as the word."""
        mutants = [
            {"name": m.name, "fate": m.fate.value, "certified_epsilon": encode(m.certified_epsilon)}
            for m in self.mutants
        ]
        curves = self.diagnostics.curves
        row = {
            "id": self.id,
            "mechanism": self.mechanism,
            "claim": self.claim,
            "pair": self.pair_words,
            "verdict": self.verdict.value,
            "expected": self.expected,
            "certified_epsilon": self.certified_epsilon,
            "certified_delta": self.certified_delta,
            "estimated_epsilon": self.estimated_epsilon,
            "detectable_epsilon": self.detectable_epsilon,
            "certified_mu": None if curves is None else curves.certified_mu,
            "failure_prob": self.failure_prob,
            "p_value": self.p_value,
            "draws": self.draws,
            "event": self.witness.event,
            "mutation_score": self.mutation_score,
            "mutants": mutants,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
        }
        return {key: encode(value) for key, value in row.items()}

    def to_json(self) -> dict[str, Any]:
        """Return everything but datasets and live event as plain data; see :meth:`from_json`."""
        stored = encode(replace(self, event=None, pair=None))
        del stored["event"], stored["pair"]
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
        result = decode(cls, {**stored, "event": None, "pair": None})
        return typing.cast("AuditResult", result)
