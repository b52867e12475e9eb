"""The result of an audit, as plain data that JSON can store without loss."""

from __future__ import annotations

import html
import math
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any

from dpaudit._json import LATER, Count, Probability, Seconds, decode, encode
from dpaudit._validate import exact_keys
from dpaudit.data import frame_of_rows
from dpaudit.errors import ReproducerError
from dpaudit.neighbors import NeighborPair
from dpaudit.results.causes import Cause
from dpaudit.results.datasets import who_differs
from dpaudit.results.estimates import (
    BY_RANK,
    Accumulated,
    CanaryGuesses,
    ClaimFacts,
    Estimate,
    Histogram,
    LogEValue,
    LongProfile,
    NoiseMargin,
    Origin,
    Profile,
    SequentialPath,
    Witness,
    log_mean,
)
from dpaudit.results.mutants import (
    MutantResult,
    MutantStatus,
    mutant_lines,
    mutation_score,
    score_words,
    surviving_code,
    undetected_words,
    weakness,
)
from dpaudit.results.reproducer import Reproducer
from dpaudit.results.smallest import SmallestPair
from dpaudit.results.verdicts import Expectation, Status, Verdict, status_of
from dpaudit.results.words import at_least, at_most, beyond, number
from dpaudit.search import SearchRecord
from dpaudit.stats import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEMA_VERSION = 7

_POINTS = ("pure_dp", "approx_dp", "local_dp", "metric_dp", "longitudinal_dp")
"""Notions whose claim is one epsilon at one delta, and not a curve."""


_FIX = "Fix the mechanism, or claim a larger epsilon"


@dataclass(frozen=True)
class Diagnostics:
    """Evidence for a result, and details of the audit.

    Attributes
    ----------
    histogram : Histogram
        Outputs of both sides along the score of the witness.
    versions : dict
        Versions of dpaudit, of Python, and of all libraries that affect the numbers.
    mechanism_seconds : float
        Seconds spent in the code of the mechanism and of its mutants.
    curves : Curves or None
        Bounds on the trade-off curve, on mu of Gaussian DP and on Renyi divergences, which follow
        from the certified profile. None if nothing is certified.
    sequential : SequentialPath or None
        The wealth of a sequential audit at each interim analysis.
    canaries : CanaryGuesses or None
        The guesses of :func:`dpaudit.audit_one_run`, and its certified epsilons at further deltas.
    long_profile : LongProfile or None
        Estimated profile down to negligible deltas, for a mechanism of additive noise.
    search : SearchRecord or None
        Record of the search for the pair, if there was a search.
    noise_margin : NoiseMargin or None
        Results for the same mechanism with less noise, if they were requested.
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
    """Result of an audit, with everything that is needed to repeat the audit.

    The prefix of a number's name says what kind of number it is. ``claimed_`` numbers come from the
    claim. ``certified_`` numbers are lower bounds. The probability that any of these bounds is
    wrong is at most ``failure_prob``. ``estimated_`` numbers are point estimates without guarantee.

    Attributes
    ----------
    id : str
        Name of the audit. The name and `seed` together determine every random number.
    mechanism : str
        Name of the audited function.
    claim : dict
        The claim: ``notion, epsilon, delta, relation, source, words`` and the parameters of the
        notion. `epsilon` and `delta` are the point at which the claim is compared with the
        certified numbers. For a curve, the certified profile exceeds the curve most, or comes
        closest to the curve, at this point.
    pair_words : str
        The pair of datasets, in words.
    verdict : Verdict
        REFUTED, NOT_REFUTED or NO_POWER.
    reason : str
        The reason for the verdict in one sentence.
    epsilon : Estimate
        Epsilon that the mechanism needs at the claimed delta.
    delta : Estimate
        Delta that the mechanism needs at the claimed epsilon.
    profile : Profile
        Certified, estimated and claimed delta on a grid of epsilons.
    witness : Witness
        The event or guess that certifies `epsilon`.
    failure_prob : float
        Probability that any certified number of the mechanism is wrong. The probability is 0 if all
        these numbers were computed exactly. In addition, some certified
        number of the mutants is wrong with at most the same probability.
    p_value : float
        p-value of the claim. The p-value is the smallest failure probability, divided in the same
        way, at which these draws refute the claim. The p-value is 1 if these draws do not refute
        the claim.
    draws : dict
        Number of draws per dataset: ``explore`` draws choose events, and ``certify`` draws test
        them. Guesses by rank need no exploration, and use all of these draws (see `draws_by_rank`).
    mutants : tuple of MutantResult
        Results of the mutants. The mutants that the user gave come first. The tuple is empty if no
        mutants were requested, if none could be made, or if the claim is refuted.
    expected : Expectation or None
        The expected verdict. None for a direct call.
    seed : int
        Root seed.
    seconds : float
        Wall-clock time of the audit and its mutants, in seconds.
    diagnostics : Diagnostics
        Evidence: histogram, curves, search, versions.
    detectable_epsilon : float or None
        Power of the audit: the smallest detectable epsilon. Suppose that the mechanism had less
        noise, so that it needed this epsilon on this pair at the claimed delta. Then the audit
        would refute the claim with probability about 0.9. This number is an estimate. The value is
        ``inf`` if no epsilon is detected with this probability. The value is None if the claim is
        refuted, if the result was computed, or if the distributions are not known well enough.
    notes : tuple of str
        Further remarks for the reader.
    origin : dict
        Data with which `dpaudit replay` repeats the audit. Empty for a direct call.
    advice : str
        Advice on what to do next, or "".
    not_covered : tuple of str
        What the audit did not test, because there were too few draws or because an option was not
        set.
    smallest : SmallestPair or None
        If the claim is refuted: the smallest pair on which it is refuted, too, with its own
        certificate. Some certified number of the smallest pair is wrong with probability at most
        `failure_prob`. None if no smaller pair was found.
    causes : tuple of Cause
        If the claim is refuted: the causes that agree with exploratory draws, with the most
        specific first. No cause is certain.
    again : Reproducer or None
        If the claim is refuted: the program of :meth:`reproducer`.
    log_e_values : tuple of float
        Logarithms of e-values against the claim, one for each of several fixed bets. If the claim
        holds, each e-value is at most 1 on average, and so is their mean (see `log_e_value`). Empty
        if nothing was drawn, and for methods without a bet.
    accumulated : Accumulated or None
        The evidence of all runs of this audit, if the run keeps a history.
    pair : NeighborPair or None
        The two datasets. The pair is stored in a separate file, and is None if that file is
        missing.
    event : Event or None
        The event as a function ``event(outputs) -> bool [size]``. This function is not stored.
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
    not_covered: tuple[str, ...] = field(default=(), metadata=LATER)
    smallest: SmallestPair | None = field(default=None, metadata=LATER)
    causes: tuple[Cause, ...] = field(default=(), metadata=LATER)
    again: Reproducer | None = field(default=None, metadata=LATER, repr=False)
    log_e_values: tuple[LogEValue, ...] = field(default=(), metadata=LATER)
    accumulated: Accumulated | None = field(default=None, metadata=LATER)
    pair: NeighborPair | None = field(default=None, repr=False, compare=False)
    event: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        exact_keys(self, "draws", "explore", "certify")

    def __bool__(self) -> bool:
        raise TypeError(
            "an AuditResult has no truth value, because `assert audit(...)` would pass "
            "for a refuted claim. Call result.assert_not_refuted(), or compare "
            "result.verdict"
        )

    def assert_not_refuted(self, *, power: bool = True) -> None:
        """Raise ``AssertionError`` with the summary unless the verdict is NOT_REFUTED.

        Parameters
        ----------
        power : bool, optional
            Whether to raise the error for NO_POWER, too. The default is True.
        """
        word = self.status.word if self.status.key == "history" else None
        refuted = self.verdict is Verdict.REFUTED or word is not None
        if refuted or (power and self.verdict is Verdict.NO_POWER):
            raise AssertionError(f"\n{self.summary(word=word)}")

    @property
    def status(self) -> Status:
        """The verdict, compared with the expected verdict."""
        given = any(mutant.is_given for mutant in self.mutants)
        more = self.accumulated is not None and self.accumulated.refuted
        return status_of(self.verdict, self.expected, has_given=given, by_history=more)

    @property
    def mismatch(self) -> str | None:
        """The reason why the result makes a run fail, in one sentence; None if it does not."""
        sentences = {
            "refuted": f"the claim is refuted: {self.reason}",
            "history": "the claim is refuted by all runs together, although not by this run alone: "
            f"{'' if self.accumulated is None else self.accumulated.words()}. {_FIX}",
            "no_power": f"the audit has no power: {self.reason}",
            "lost": "a known violation was not found again: fix the audit, or remove the mark if "
            "the mechanism was fixed",
        }
        return sentences.get(self.status.key)

    @property
    def claimed_epsilon(self) -> float:
        """Epsilon of the claim at the compared point."""
        return float(self.claim["epsilon"])

    @property
    def claimed_delta(self) -> float:
        """Delta of the claim at the compared point."""
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
        """Point estimate of epsilon at the claimed delta, for the event that certifies epsilon."""
        return self.epsilon.value

    @property
    def log_e_value(self) -> float | None:
        """Logarithm of the e-value against the claim: the mean of the e-values of all bets.

        None if there is no e-value.
        """
        return log_mean(self.log_e_values) if self.log_e_values else None

    @property
    def draws_by_rank(self) -> int:
        """Number of draws per dataset from which guesses by rank certify `epsilon`.

        The number is 0 for other methods. The number counts all draws of the audit. For given
        outputs, the number counts the draws that the randomised design uses.
        """
        counts = self.epsilon.counts
        return counts.draws_left // 2 if counts and self.epsilon.method == BY_RANK else 0

    @property
    def total_failure_prob(self) -> float:
        """Bound on the probability that any certified number is wrong.

        The numbers of mutants and of the smallest pair count, too.
        """
        spent = [self.failure_prob, *(mutant.failure_prob for mutant in self.mutants)]
        if self.smallest is not None:
            spent.append(self.smallest.epsilon.failure_prob)
        if (margin := self.diagnostics.noise_margin) is not None:
            spent.append(len(margin.points) * margin.failure_prob)
        return math.fsum(spent)

    @property
    def mutation_score(self) -> float | None:
        """Share of killed mutants among the mutants that were run.

        None if no mutant was run.
        """
        killed, judged = mutation_score(self.mutants)
        return killed / judged if judged else None

    @property
    def likely_causes(self) -> tuple[Cause, ...]:
        """At most two causes; too little noise comes second to no other cause."""
        return tuple(c for at, c in enumerate(self.causes[:2]) if at == 0 or c.kind != "noise")

    def summary(
        self, *, verbose: bool = False, word: str | None = None, replay: str | None = None
    ) -> str:
        """Return the result as text: verdict, numbers, pair, command to repeat it, and next steps.

        Parameters
        ----------
        verbose : bool, optional
            Whether to add the evidence, which is the witness with its counts, the estimates, the
            search, every mutant and all notes. The default is False and gives at most 12 lines.
        word : str, optional
            Label that replaces the verdict, such as "REFUTED (known)".
        replay : str, optional
            The command that repeats the audit.
        """
        differing = "" if self.pair is None else who_differs(self.pair)
        label = "differing user" if differing.startswith("user ") else "difference"
        rows = [("pair", self.pair_words), (label, differing)]
        if (smallest := self.smallest) is not None:
            needs = beyond(smallest.epsilon.lower, self.claimed_epsilon, (">=", ">")).strip()
            rows += [
                ("smallest pair", smallest.words),
                ("", f"epsilon {needs}, {smallest.witness.sentence()}"),
            ]
        for cause, label in zip(self.likely_causes, ("likely cause", "or"), strict=False):
            rows += [(label, f"{cause.words} ({cause.where})" if cause.where else cause.words)]
            rows += [("", cause.evidence)] if verbose or label != "or" else []
        if self.again is not None and not self.likely_causes:  # they were looked for
            rows += [("likely cause", "none was found; more draws may show one")]
        rows += self._power()
        rows += [("history", "" if self.accumulated is None else self.accumulated.words())]
        if verbose:
            rows += self._evidence()
        again = "repeat the same call" + f" with seed={self.seed}" * (
            self.diagnostics.canaries is None
        )
        rows += [("reproduce", replay or again)]
        rows += [
            ("next", f"{_FIX}." if self.status.key == "history" else self.advice),
            ("known because", self.origin.get("reason", "")),
        ]
        if not verbose:
            notes = f" and {len(self.notes)} note{'s' * (len(self.notes) > 1)}" * bool(self.notes)
            more = f"witness{notes}: result.summary(verbose=True), or -v on the command line"
            rows += [("more", more)]
        head = f"{word or self.verdict.words}  {self.id}"
        if self.mechanism != self.id.rpartition(":")[2]:
            head += f"  ({self.mechanism})"
        if self.verdict is Verdict.NOT_REFUTED and (weak := weakness(self.mutants)):
            head += f", weak: {weak}"
        return "\n".join(
            [head, f"  {self.sentence()}", *(f"  {k:<19} {v}".rstrip() for k, v in rows if v)]
        )

    def sentence(self) -> str:
        """Return the claimed and the certified number in one sentence."""
        claim, epsilon, delta = self.claim, self.claimed_epsilon, self.claimed_delta
        words = claim["words"] + (f" ({claim['source']})" if claim["source"] else "")
        refuted = self.verdict is Verdict.REFUTED
        if refuted and not self.certified_epsilon > epsilon:
            return f"The claim is {words}, but {self.reason}."
        if claim["notion"] not in _POINTS:
            words += f", which allows epsilon = {number(epsilon)} at delta = {delta:.3g}"
        at = f" at delta = {delta:.3g}" * (delta > 0)
        if self.certified_epsilon == math.inf:
            needs = f"no finite epsilon is enough{at}"
        elif self.certified_epsilon <= 0:
            return f"The claim is {words}, and the audit certifies no positive epsilon{at}."
        else:
            bound = self.certified_text(("at least epsilon =", "more than epsilon ="))
            needs = f"the mechanism needs {bound}{at}"
        chance = (
            f"certified lower bound, wrong with probability at most {self.failure_prob:g}"
            if self.failure_prob
            else "computed, not sampled"
        )
        return f"The claim is {words}, {'but' if refuted else 'and'} {needs} ({chance})."

    def certified_text(self, signs: tuple[str, str] = (">=", ">")) -> str:
        """Return the certified epsilon, rounded down, after the first of two `signs`.

        If the bound exceeds the claim only in digits that are not shown, return the claim after the
        second of the signs.
        """
        refuted = self.verdict is Verdict.REFUTED
        claimed = self.claimed_epsilon if refuted else math.inf
        return beyond(self.certified_epsilon, claimed, signs).strip()

    def _power(self) -> list[tuple[str, str]]:
        """Return what the audit can and cannot detect, unless the claim is refuted."""
        if self.verdict is Verdict.REFUTED:
            return []
        if self.verdict is Verdict.NO_POWER:
            return [("reason", self.reason)]
        detectable = ""
        if self.detectable_epsilon == math.inf:
            detectable = "nothing: with so few draws, no violation is detected with probability 0.9"
        elif self.detectable_epsilon is not None:
            detectable = (
                f"epsilon = {at_most(self.detectable_epsilon)} or more, with probability about 0.9 "
                "(an estimate, for this pair and bugs that reduce noise)"
            )
        return [
            ("mutants", score_words(self.mutants)),
            ("detectable", detectable),
            ("undetected mutants", "; ".join(undetected_words(self.mutants))),
            ("harmless or missed", "; ".join(surviving_code(self.mutants))),
            ("not covered", "; ".join(self.not_covered)),
        ]

    def _evidence(self) -> list[tuple[str, str]]:
        """Return the witness, the other numbers, the search, every mutant and the notes."""
        more, epsilon = self.diagnostics, self.claimed_epsilon
        witness = self.witness.sentence()
        if more.sequential is not None:
            witness += " (last batch only; the verdict uses all batches)"
        rows = [("mechanism", self.mechanism)]
        if self.verdict is not Verdict.NO_POWER:  # which shows its reason already
            rows.append(("reason", self.reason))
        if (guesses := more.canaries) is not None:
            witness = f"{self.witness.sentence('canaries')}; {guesses.chosen}"
            both = zip(guesses.certified_epsilons, guesses.deltas, strict=True)
            found = ", ".join(f"{at_least(bound)} at delta = {delta:g}" for bound, delta in both)
            rows += [("certified epsilon", f"at least {found}")]
        rows += [
            (
                "certified delta",
                f"at least {at_least(self.certified_delta)} at epsilon = {epsilon:g}",
            ),
            ("estimated epsilon", f"{number(self.estimated_epsilon)} (no guarantee)"),
            ("witness", witness),
            ("method", self.epsilon.method),
        ]
        if more.search is not None:
            rows += [("search", more.search.words())]
        if more.sequential is not None:
            spent = f"{sum(self.draws.values()):,} of {more.sequential.budget:,}"
            rows += [("stopped", f"{more.sequential.stopped}, after {spent} draws per dataset")]
        if more.noise_margin is not None:
            rows += [("margin", more.noise_margin.words())]
        if self.mutants:
            every = mutant_lines(self.mutants, epsilon)
            rows += [("every mutant", every[0].strip()), *(("", row.strip()) for row in every[1:])]
        return rows + [("note", note) for note in self.notes]

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the summary and the first three charts, for a notebook."""
        from dpaudit.results import charts, svg

        style = "background:#fff;padding:0.5em;font-family:system-ui,sans-serif;"
        style += f"color:{charts.COLOURS['ink']};"
        style += ";".join(f"--{role}:{colour}" for role, colour in charts.COLOURS.items())
        figures = "".join(
            f'<figure style="flex:1 1 20em;max-width:30em;margin:0.5em 0">'
            f'<figcaption style="color:inherit">{html.escape(chart.title)}</figcaption>'
            f'{svg.svg_of(chart)}<p style="color:inherit">{html.escape(chart.caption)}</p></figure>'
            for chart in charts.charts_of(self)[:3]
        )
        return (
            f'<div style="{style}">'
            f'<pre style="white-space:pre-wrap">{html.escape(self.summary())}</pre>'
            f'<div style="display:flex;flex-wrap:wrap;gap:1.5em">{figures}</div></div>'
        )

    def reproducer(self, *, markdown: bool = False) -> str:
        """Return a program that shows the refutation again without dpaudit.

        The program needs only numpy and the mechanism. It contains the smallest pair, and the event
        as a function. It makes new draws and prints the counts. It also prints a lower bound of
        epsilon, which is wrong with at most the failure probability of the audit.

        Parameters
        ----------
        markdown : bool, optional
            Whether to return the text of an issue instead: the claim, the smallest pair, the
            counts, the likely causes, the program and the versions. This text is also available if
            the program cannot be written.

        Returns
        -------
        str

        Raises
        ------
        ReproducerError
            If the claim is not refuted, or the mechanism, the datasets or the event cannot be
            written into a program. The message says why.
        """
        if self.verdict is not Verdict.REFUTED:
            raise ReproducerError(f"{self.id} is not refuted, so there is nothing to reproduce")
        again = self.again or Reproducer("", "the audit did not store it (Settings(shrink=False))")
        if markdown:
            return _issue_of(self, again.program)
        if not again.program:
            raise ReproducerError(f"{self.id} cannot be written as a program: {again.refusal}")
        return again.program

    def plot_tradeoff(self, ax: Axes | None = None) -> Axes:
        """Plot the certified bound on the trade-off curve, the claimed curve and perfect privacy.

        Needs matplotlib (the extra ``plot``).

        Returns
        -------
        Axes
            Axes of matplotlib on which to draw. Without `ax`, a new figure is made, which no window
            shows. Save the figure with ``result.plot_tradeoff().figure.savefig("tradeoff.svg")``.
        """
        from dpaudit.results import charts, figures

        return figures.draw(charts.tradeoff(self), ax)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the certified, estimated and claimed privacy profile on `ax`, or on new axes.

        For an audit in one run, plot epsilon against the number of guesses instead.

        Needs matplotlib (the extra ``plot``).

        Returns
        -------
        Axes
            Axes of matplotlib on which to draw. Without `ax`, a new figure is made, which no window
            shows. Save the figure with ``result.plot().figure.savefig("profile.svg")``.
        """
        from dpaudit.results import charts, figures

        chart = charts.profile if self.diagnostics.canaries is None else charts.guesses
        return figures.draw(chart(self), ax)

    def with_origin(self, origin: Mapping[str, Any], expected: Expectation | None) -> AuditResult:
        """Return a copy with the origin and expectation of the result, which the runner knows."""
        return replace(self, origin=dict(origin), expected=expected)

    def row(self) -> dict[str, Any]:
        """Return the row of ``results.json`` as plain data, with ``inf`` as text."""
        mutants = [
            {
                "name": m.name,
                "status": m.status.value,
                "certified_epsilon": encode(m.certified_epsilon),
            }
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

    def to_frame(self, *, library: str = "pandas") -> Any:
        """Return the main numbers as a DataFrame with one row.

        Columns are texts, floats and integers. A number that is unknown is missing, and an infinite
        number is ``inf``. `draws` counts draws per dataset, exploration included. `seed` is text,
        because it may exceed 64 bits. :func:`dpaudit.store.load_frame` returns a row for each audit
        of a run.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the frame, which must be installed. The default is pandas.
        """
        return frame_of_results([self], library)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data without `pair` and `event`, for :meth:`from_json`."""
        smallest = self.smallest and replace(self.smallest, event=None, pair=None)
        stored = encode(replace(self, event=None, pair=None, smallest=smallest))
        del stored["event"], stored["pair"]
        return {"schema": SCHEMA_VERSION, **stored}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> AuditResult:
        """Rebuild a result from its :meth:`to_json`; raise ``ValueError`` for other data."""
        if data.get("schema") != SCHEMA_VERSION:
            raise ValueError(
                f"schema must be {SCHEMA_VERSION} for this version of dpaudit, "
                f"got {data.get('schema')!r}"
            )
        stored = {key: value for key, value in data.items() if key != "schema"}
        result = decode(cls, {**stored, "event": None, "pair": None})
        return typing.cast("AuditResult", result)


_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("id", "mechanism", "claim", "pair", "verdict", "expected"), str),
    **dict.fromkeys(("claimed_epsilon", "claimed_delta"), float),
    **dict.fromkeys(("certified_epsilon", "certified_delta", "estimated_epsilon"), float),
    **dict.fromkeys(("detectable_epsilon", "failure_prob", "p_value", "mutation_score"), float),
    **dict.fromkeys(("draws", "mutants", "mutants_killed"), int),
    "event": str,
    "seed": str,
    "seconds": float,
}


def frame_of_results(results: Sequence[AuditResult], library: str) -> Any:
    """Return a DataFrame with a row for each result; see :meth:`AuditResult.to_frame`."""
    rows = []
    for result in results:
        row = {name: getattr(result, name) for name, kind in _COLUMNS.items() if kind is float}
        row |= {
            "id": result.id,
            "mechanism": result.mechanism,
            "claim": result.claim["words"],
            "pair": result.pair_words,
            "verdict": result.verdict.value,
            "expected": result.expected and result.expected.value,
            "draws": sum(result.draws.values()),
            "mutants": len(result.mutants),
            "mutants_killed": sum(m.status is MutantStatus.KILLED for m in result.mutants),
            "event": result.witness.event,
            "seed": str(result.seed),
        }
        rows.append(row)
    return frame_of_rows(rows, _COLUMNS, library)


def _issue_of(result: AuditResult, program: str) -> str:
    """Return a refutation as the text of an issue, in Markdown.

    Parameters
    ----------
    result : AuditResult
        The result.
    program : str
        The program that shows the refutation; empty if there is none.
    """
    smallest = result.smallest
    witness = result.witness if smallest is None else smallest.witness
    epsilon = result.epsilon if smallest is None else smallest.epsilon
    pair = result.pair_words if smallest is None else smallest.words
    versions = ", ".join(f"{name} {one}" for name, one in result.diagnostics.versions.items())
    parts = [
        f"# {result.mechanism} does not satisfy its privacy claim",
        result.sentence(),
        f"**{'Pair' if smallest is None else 'Smallest pair'} of datasets:** {pair}.",
        f"**Observed on this pair:** {witness.sentence()}. On this pair alone, this certifies "
        f"epsilon >= {math.floor(epsilon.lower * 1000) / 1000:g}, except with probability "
        f"{epsilon.failure_prob:g}.",
    ]
    for cause, label in zip(result.likely_causes, ("Likely cause", "Or"), strict=False):
        lines = "".join(f"\n    {line.code.strip()}  # {line}" for line in cause.lines)
        words = f"**{label}:** {cause.words}. The evidence: {cause.evidence}."
        parts.append(words + f"\n{lines}" * bool(lines))
    if program:
        # A reader of the issue has other folders.
        every = program.splitlines()
        shown = "\n".join(at for at in every if not at.startswith("sys.path.insert(0, "))
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", program)), default=0))
        parts.append(f"This program shows it again:\n\n{fence}python\n{shown}\n{fence}")
    return "\n\n".join([*parts, f"Versions: {versions}."]) + "\n"
