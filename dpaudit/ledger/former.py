# mypy: ignore-errors
# ruff: noqa: D102
"""The former shape of a check, until every row of the first paper is rewritten; then it goes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.engine import audit
from dpaudit.errors import ArgumentError
from dpaudit.ledger.attacks import FAILURE_PROB
from dpaudit.ledger.attempt import Attempt, Counterexample, Method, Power, Role, plain
from dpaudit.ledger.attempts import Ledger
from dpaudit.ledger.domains import Domain
from dpaudit.ledger.falsifying import HALVED, falsify, sweep
from dpaudit.ledger.judging import DEFAULT_TOLERANCE, Inequality, apart
from dpaudit.ledger.rows import LedgerVerdict
from dpaudit.results import AuditResult, Verdict, mutation_score
from dpaudit.stats import lower_proportion

_BATCH = 20_000


class Former(Ledger):
    """A ledger whose attempts take cases and inequality."""

    _repairing = ""

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
        return self._keep(
            falsify(
                cases,
                inequality,
                seed=self.next_seed(),
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
        return self._keep(
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
                return None if found is None else (1.0 + apart(*found, floor), 1.0)

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
        rng = np.random.default_rng(self.next_seed())
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
        return self._keep(
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
        number = self.next_number()
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
        self._keep(
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
        return self._keep(Attempt(why, Method.ARGUMENT, 0))

    @contextlib.contextmanager
    def repair(self, statement: str) -> Iterator[None]:
        self._repairing = statement
        try:
            yield
        finally:
            self._repairing = ""

    def conclude(self, verdict: LedgerVerdict, why: str) -> None:
        self._verdict = LedgerVerdict(verdict)
        self._notes.insert(0, why)

    def _words(self, claim: str) -> str:
        return claim or ("the corrected statement" if self._repairing else "the statement")

    def _keep(self, made: Attempt) -> Attempt:
        if self._repairing:
            made = replace(made, role=Role.REPAIR, subject=self._repairing)
        made = replace(made, survivors="(former row)")
        self.record(made)
        return made


def _are_domains(cases: Any) -> bool:
    return isinstance(cases, Sequence) and bool(cases) and all(isinstance(c, Domain) for c in cases)


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
