"""The fixture ``ledger`` of a check: attempts on one statement, and the verdict they lead to."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.engine import audit
from dpaudit.errors import ArgumentError
from dpaudit.ledger.domains import Domain
from dpaudit.ledger.falsifying import HALVED, falsify, sweep
from dpaudit.ledger.judging import DEFAULT_TOLERANCE, Inequality
from dpaudit.ledger.rows import (
    Attempt,
    Counterexample,
    LedgerVerdict,
    Method,
    Power,
    Repair,
    StatementResult,
    plain,
    verdict_of,
)
from dpaudit.ledger.statements import Statement
from dpaudit.mechanisms import generator
from dpaudit.results import AuditResult, Verdict, mutation_score
from dpaudit.stats import lower_proportion

EXAMPLES = {"quick": 300, "full": 3_000, "release": 30_000}
"""Cases that each search of a falsifier judges at least, by profile."""

FAILURE_PROB = 1e-6
"""Probability, at most, that a Monte Carlo check refutes a statement that holds."""

_BATCH = 20_000
_ORDER = list(Method)


class Ledger:
    """Attacks one statement, brought into the form ``lhs <= rhs``.

    A statement may need several attempts; it holds when it stands all of them. Attacks made inside
    :meth:`repair` concern the corrected statement instead.

    Parameters
    ----------
    row : Statement
        The row that is checked.
    profile : {"quick", "full", "release"}
        Budget.
    seed : int
        Root seed of the run, >= 0.
    """

    def __init__(self, row: Statement, *, profile: str = "quick", seed: int = 0) -> None:
        _validate.choice(tuple(EXAMPLES), profile=profile)
        self.row = row
        self.seed = _validate.integer(0, seed=seed)
        self.examples = EXAMPLES[profile]
        self._attempts: list[Attempt] = []
        self._repair: tuple[str, list[Attempt]] | None = None
        self._repairing = False
        self._verdict: LedgerVerdict | None = None
        self._notes: list[str] = []
        self._streams = 0

    # --- attempts ---

    def falsify(
        self,
        cases: st.SearchStrategy[Any] | Domain | Sequence[Domain],
        inequality: Inequality,
        *,
        claim: str = "",
        examples: int | None = None,
        extremal: Iterable[Any] = (),
        exact: Inequality | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        mutant: Inequality | float | None = HALVED,
    ) -> Attempt:
        """Search for a case in which ``lhs <= rhs`` fails; see :func:`dpaudit.ledger.falsify`.

        Parameters
        ----------
        examples : int, optional
            Cases that each search judges at least; by default what the profile says.
        """
        return self._add(
            falsify(
                cases,
                inequality,
                seed=self._next_seed(),
                examples=self.examples if examples is None else examples,
                extremal=extremal,
                exact=exact,
                tolerance=tolerance,
                mutant=mutant,
                claim=self._words(claim),
            )
        )

    def sweep(
        self,
        cases: Iterable[Any],
        inequality: Inequality,
        *,
        claim: str = "",
        method: Method = Method.EXACT,
        exact: Inequality | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        mutant: Inequality | float | None = HALVED,
    ) -> Attempt:
        """Judge every given case: see :func:`dpaudit.ledger.sweep`."""
        words = self._words(claim)
        return self._add(
            sweep(
                cases,
                inequality,
                method=method,
                exact=exact,
                tolerance=tolerance,
                mutant=mutant,
                claim=words,
            )
        )

    def identity(
        self,
        cases: Iterable[Any] | st.SearchStrategy[Any] | Domain | Sequence[Domain],
        values: Inequality,
        *,
        claim: str = "",
        method: Method = Method.EXACT,
        tolerance: float = DEFAULT_TOLERANCE,
        floor: float = 0.0,
        mutant: Inequality | None = None,
        examples: int | None = None,
        extremal: Iterable[Any] = (),
    ) -> Attempt:
        """Attempt an equality: two values must agree, entry by entry.

        Parameters
        ----------
        cases
            A list of cases, which are swept, or a strategy or domains, which are searched.
        values : callable
            ``values(case) -> (a, b)``: numbers or arrays of one shape; None outside the hypotheses.
        tolerance : float
            Relative to the larger of the two, in each entry.
        floor : float
            Size below which an entry is rounding: differences are relative to no less than this.
        mutant : callable, optional
            Other values that must be found to differ; by default b with a relative error of a
            thousandth.
        """
        _validate.nonnegative(tolerance=tolerance)
        _validate.nonnegative(floor=floor)

        def difference(pair: Inequality) -> Inequality:
            def inequality(*args: Any, **case: Any) -> tuple[Any, Any] | None:
                found = pair(*args, **case)
                return None if found is None else (1.0 + _apart(*found, floor), 1.0)

            return inequality

        def wrong(*args: Any, **case: Any) -> tuple[Any, Any] | None:
            found = values(*args, **case)
            return None if found is None else (found[0], np.asarray(found[1], dtype=float) * 1.001)

        broken = difference(wrong if mutant is None else mutant)
        if isinstance(cases, st.SearchStrategy | Domain) or _are_domains(cases):
            return self.falsify(
                cases,  # type: ignore[arg-type]
                difference(values),
                claim=claim,
                examples=examples,
                extremal=extremal,
                tolerance=tolerance,
                mutant=broken,
            )
        return self.sweep(
            cases,
            difference(values),
            claim=claim,
            method=method,
            tolerance=tolerance,
            mutant=broken,
        )

    def monte_carlo(
        self,
        event: Callable[..., NDArray[np.bool_]],
        allowed: float,
        *,
        draws: int,
        claim: str = "",
        mutant: Callable[..., NDArray[np.bool_]] | float | None = HALVED,
        where: dict[str, Any] | None = None,
    ) -> Attempt:
        """Attempt ``P[event] <= allowed`` with independent draws.

        Refuted when an exact lower bound for the probability, wrong with probability at most
        1e-6, lies above what is allowed; the ratio is that of the observed frequency.

        Parameters
        ----------
        event : callable
            ``event(size, *, rng) -> bool [size]``: whether it happened.
        allowed : float
            Probability that the statement allows, in [0, 1].
        draws : int
            Independent draws.
        mutant : callable or float or None
            Another event that must be found above what is allowed, or a factor below 1 for
            `allowed`.
        where : dict, optional
            Inputs of the draws, for the record.
        """
        allowed, draws = _validate.delta(allowed=allowed), _validate.integer(1, draws=draws)
        factor = (
            None if mutant is None or callable(mutant) else _validate.failure_prob(mutant=mutant)
        )
        rng = np.random.default_rng(self._next_seed())
        hits = _count(event, draws, rng)
        bound = lower_proportion(hits, draws, FAILURE_PROB)
        case = {**plain(where or {}), "hits": hits, "draws": draws}
        counterexample = Counterexample(case, bound, allowed) if bound > allowed else None
        power, words = Power.NONE, ""
        if counterexample is None and callable(mutant):
            found = lower_proportion(_count(mutant, draws, rng), draws, FAILURE_PROB)
            power = Power.KILLED if found > allowed else Power.SURVIVED
            words = "a mutant of its own"
        elif counterexample is None and factor is not None:
            power = Power.KILLED if bound > factor * allowed else Power.SURVIVED
            words = f"the allowed probability times {factor:g}"
        frequency = hits / draws
        tightest = frequency / allowed if allowed > 0 else (math.inf if hits else 0.0)
        weak: tuple[str, ...] = ()
        if lower_proportion(draws, draws, FAILURE_PROB) <= allowed < 1:
            weak = (f"{draws} draws could not refute {allowed:g} if it happened in all of them",)
        return self._add(
            Attempt(
                self._words(claim),
                Method.MONTE_CARLO,
                draws,
                tightest=tightest,
                where=case,
                counterexample=counterexample,
                power=power,
                mutant=words,
                weak=weak,
                failure_prob=FAILURE_PROB * (2 if callable(mutant) else 1),
            )
        )

    def audit(
        self, mechanism: Any, claim: Claim, pairs: Any, *, draws: int, **options: Any
    ) -> AuditResult:
        """Attempt a privacy guarantee with a whole audit; see :func:`dpaudit.audit`.

        Its mutants are made from its noise; give `mutants` to add others.

        A certified violation refutes the statement; the ratio is that of certified to claimed
        epsilon.
        """
        number = len(self._attempts) + 1
        result = audit(
            mechanism,
            claim,
            pairs,
            draws=draws,
            seed=self.seed,
            failure_prob=options.pop("failure_prob", FAILURE_PROB),
            id=f"{self.row.id}#{number}",
            **options,
        )
        refuted = result.verdict is Verdict.REFUTED
        where = {
            "mechanism": result.mechanism,
            "pair": result.pair_words,
            "event": result.witness.event,
        }
        certified, claimed = result.certified_epsilon, result.claimed_epsilon
        power = Power.NONE
        killed, judged = mutation_score(result.mutants)
        if judged and not refuted:
            power = Power.KILLED if result.verdict is Verdict.NOT_REFUTED else Power.SURVIVED
        self._add(
            Attempt(
                f"{result.mechanism} is {claim}",
                Method.MONTE_CARLO if result.failure_prob > 0 else Method.EXACT,
                sum(result.draws.values()),
                tightest=certified / claimed if claimed > 0 else math.inf,
                where=where,
                counterexample=Counterexample(where, certified, claimed) if refuted else None,
                power=power,
                mutant=f"{killed} of {judged}" if judged else "",
                failure_prob=result.total_failure_prob,
            )
        )
        return result

    def argue(self, why: str) -> Attempt:
        """Say why a part of the statement holds, where nothing can be run."""
        return self._add(Attempt(why, Method.ARGUMENT, 0))

    # --- words and verdicts ---

    @contextlib.contextmanager
    def repair(self, statement: str) -> Iterator[None]:
        """State a correction; the attempts inside the block are made on it.

        Examples
        --------
        ::

            with ledger.repair("norm(x' - y') <= max(norm(x - y), 2 eta)"):
                ledger.falsify(cases, corrected_sides)
        """
        if self._repair is not None:
            raise ArgumentError(f"{self.row.id} already has the repair {self._repair[0]!r}")
        self._repair, self._repairing = (statement, []), True
        try:
            yield
        finally:
            self._repairing = False

    def note(self, text: str) -> None:
        """Add a sentence for the reader of the row."""
        self._notes.append(text)

    def conclude(self, verdict: LedgerVerdict, why: str) -> None:
        """Set a verdict that the attempts alone do not lead to, and say why.

        AMBIGUOUS where readings disagree, VACUOUS where the hypotheses cannot be met,
        NOT_EXECUTABLE where nothing can be run, REFUTED where the attempts support another
        statement that contradicts this one. Not for HOLDS: that must be earned.
        """
        verdict = LedgerVerdict(verdict)
        if verdict in (LedgerVerdict.HOLDS, LedgerVerdict.OPEN):
            raise ArgumentError(f"verdict {verdict.words} cannot be declared")
        self._verdict = verdict
        self._notes.insert(0, why)

    def result(self, *, seconds: float = 0.0) -> StatementResult:
        """Return the row.

        Raises
        ------
        ArgumentError
            When nothing was attacked and nothing concluded.
        """
        if not self._attempts and self._verdict is None:
            raise ArgumentError(f"{self.row.id} was checked by nothing: call a method of ledger")
        verdict = self._verdict
        broken = [attempt for attempt in self._attempts if attempt.violated]
        if verdict is None:
            verdict = verdict_of(self._attempts)
        used = [attempt.method for attempt in (broken or self._attempts)]
        repair = None if self._repair is None else Repair(self._repair[0], tuple(self._repair[1]))
        return StatementResult(
            self.row.id,
            self.row.paper,
            self.row.kind,
            self.row.text,
            verdict,
            (min if broken else max)(used, key=_ORDER.index, default=Method.ARGUMENT),
            tuple(self._attempts),
            repair,
            " ".join(self._notes),
            seconds,
            self.seed,
            hidden=self.row.hidden,
        )

    # --- inside ---

    def _words(self, claim: str) -> str:
        return claim or ("the corrected statement" if self._repairing else "the statement")

    def _add(self, attempt: Attempt) -> Attempt:
        if self._repairing and self._repair is not None:
            self._repair[1].append(attempt)
        else:
            self._attempts.append(attempt)
        return attempt

    def _next_seed(self) -> int:
        """Return a seed of its own for each attempt, whatever else is run."""
        self._streams += 1
        return int(generator(self.seed, self.row.id, str(self._streams)).integers(2**63))


def _are_domains(cases: Any) -> bool:
    return isinstance(cases, Sequence) and bool(cases) and all(isinstance(c, Domain) for c in cases)


def _apart(a: Any, b: Any, floor: float) -> float:
    """Largest difference of two entries, relative to the larger; infinite where one is NaN."""
    left, right = np.asarray(a), np.asarray(b)
    if np.iscomplexobj(left) or np.iscomplexobj(right) or left.size == 0:
        raise ArgumentError(f"values must be real numbers, at least one; got {a!r} and {b!r}")
    if left.shape != right.shape:
        raise ArgumentError(f"values must have one shape, got {left.shape} and {right.shape}")
    left, right = left.astype(float), right.astype(float)
    different = ~(left == right)  # equal infinities agree, a NaN agrees with nothing
    left, right = left[different], right[different]
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right) / np.maximum(np.maximum(np.abs(left), np.abs(right)), floor)
    return math.inf if np.isnan(apart).any() else float(apart.max(initial=0.0))


def _count(event: Callable[..., Any], draws: int, rng: np.random.Generator) -> int:
    hits, left = 0, draws
    while left > 0:
        size = min(left, _BATCH)
        happened = np.asarray(event(size, rng=rng))
        if happened.dtype != np.bool_ or happened.shape != (size,):
            raise ArgumentError(
                f"event must return a boolean array of shape ({size},), got shape "
                f"{happened.shape} and dtype {happened.dtype}"
            )
        hits += int(happened.sum())
        left -= size
    return hits
