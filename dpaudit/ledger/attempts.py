"""The fixture ``ledger`` of a check, with its attempts on a statement and related claims."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.ledger.attacks import Attack, Sides, Values
from dpaudit.ledger.cases import Cases
from dpaudit.ledger.paper import Paper, Statement
from dpaudit.ledger.rows import Harm, LedgerVerdict, StatementResult, verdict_of
from dpaudit.ledger.sources import Tracer
from dpaudit.mechanisms import generator
from dpaudit.properties import Attempt, Method, Role, falsify, sweep

EXAMPLES = {"quick": 300, "full": 3_000, "release": 30_000}
"""Least number of cases that each search of a falsifier judges, by profile."""

_ORDER = list(Method)


class Ledger(Attack):
    """Tests one statement, and claims that are related to the statement.

    The methods of the ledger itself test the statement of the paper, within its hypotheses and
    conventions. The statement holds if none of these attempts finds a violation. :meth:`step`,
    :meth:`edge`, :meth:`reading`, :meth:`sharper` and :meth:`repair` return objects that test other
    claims.

    Parameters
    ----------
    row : Statement
        The row that the check fills.
    paper : Paper, optional
        The paper, with its conventions. An edge is a case outside a convention.
    found : str, optional
        Findings, taken from the docstring of the check.
    profile : {"quick", "full", "release"}
        Budget of the searches.
    seed : int
        Root seed of the run, >= 0.
    algorithms : sequence of Path
        Files and folders with the algorithms of the paper. The two sides of a claim must not call
        the same function of these files.

    Attributes
    ----------
    explains : bool
        Whether a refuted audit looks for its likely cause and writes a program.
    """

    explains = True

    def __init__(
        self,
        row: Statement,
        *,
        paper: Paper | None = None,
        found: str = "",
        profile: str = "quick",
        seed: int = 0,
        algorithms: Sequence[Path] = (),
    ) -> None:
        super().__init__(self, Role.STATEMENT)
        _validate.choice(tuple(EXAMPLES), profile=profile)
        self.row = row
        self.paper = Paper(row.paper) if paper is None else paper
        self.seed = _validate.seed(seed=seed)
        self.examples = EXAMPLES[profile]
        self._attempts: list[Attempt] = []
        self._repair = ""
        self._verdict: LedgerVerdict | None = None
        self._notes = [found] if found else []
        self._consequence: tuple[str, Harm | None] = ("", None)
        self._streams = 0
        self._misprints: list[tuple[str, str]] = []
        self._algorithms = tuple(algorithms)

    # --- other claims that may be tested ---

    def step(self, which: str, *, fix: str = "") -> Attack:
        """Test a step of the printed proof: an induction, a conditioning, a coupling, a branch.

        If the step fails and the statement is not refuted, the statement holds with a broken proof.

        Parameters
        ----------
        which : str
            Name of the step, such as "the induction (14)".
        fix : str
            How the proof can be repaired, if the step fails.
        """
        return Attack(self, Role.STEP, which, fix)

    def part(self, words: str) -> Attack:
        """Test a part of the statement that holds, although another part is refuted.

        In a refuted row, every other attempt on the statement must find a violation.

        Parameters
        ----------
        words : str
            The part, such as "privacy" or "the second inequality".
        """
        return Attack(self, Role.STATEMENT, words)

    def edge(self, convention: str) -> Attack:
        """Show a failure outside a convention of the paper.

        Such a failure does not refute the statement.

        Parameters
        ----------
        convention : str
            The convention that is a missing hypothesis, with the words of ``statements.md``.
        """
        if self.paper.convention(convention) is None:
            known = "; ".join(known.words for known in self.paper.conventions) or "none"
            raise ArgumentError(
                f"convention must be one of the conventions in statements.md ({known}), got "
                f"{convention!r}"
            )
        return Attack(self, Role.EDGE, convention)

    def misprint(self, printed: str, meant: str) -> Attack:
        """List a misprint whose meaning is evident.

        The statement is tested as it is meant. Attempts on the returned object show that it fails
        as printed. Without such attempts, the misprint is only listed.

        Parameters
        ----------
        printed, meant : str
            The formula or words, as printed and as meant.
        """
        self._misprints.append((printed, meant))
        return Attack(self, Role.MISPRINT, f"{printed}, read as {meant}")

    def reading(self, words: str, *, fails: bool = False) -> Attack:
        """Test one of several readings of the statement.

        If a reading fails, the statement is ambiguous and never refuted.

        Parameters
        ----------
        words : str
            The reading.
        fails : bool
            Whether the reading is false. A reading that does not end as declared fails the run.
        """
        return Attack(self, Role.READING, words, fails=_validate.flag(fails=fails))

    def sharper(self, words: str = "") -> Attack:
        """Test a claim that is stronger than the statement, for example with a better constant."""
        return Attack(self, Role.SHARPER, words)

    def repair(self, statement: str) -> Attack:
        """State a correction of the statement, and test the correction.

        Examples
        --------
        ::

            repair = ledger.repair("norm(x' - y') <= max(norm(x - y), 2 eta)")

            @repair.falsify(factor=2.0, mutant={"factor": 1.0}, **domain)
            def corrected(...): ...
        """
        if self._repair and self._repair != statement:
            raise ArgumentError(
                f"{self.row.id} must have at most one repair, got a second repair after "
                f"{self._repair!r}"
            )
        self._repair = statement
        return Attack(self, Role.REPAIR, statement)

    # --- notes and verdicts ---

    def note(self, text: str) -> None:
        """Add a sentence for the reader of the row, for example with computed numbers."""
        self._notes.append(text)

    def consequence(self, words: str, harm: Harm | str) -> None:
        """State the consequences of a wrong statement or proof, and who is affected."""
        self._consequence = words, Harm(_validate.choice(tuple(Harm), harm=harm))

    def conclude(self, verdict: LedgerVerdict | str, why: str) -> None:
        """Set a verdict that does not follow from the attempts alone, with a reason.

        Use "ambiguous" if the statement is too vague to be tested. Use "vacuous" if the hypotheses
        cannot be met, and give the smallest size at which they can be met. Use "not executable" if
        nothing can be run. Use "open" if there is neither a proof nor a counterexample. No other
        verdict can be set, because other verdicts follow from the attempts.
        """
        known = {one.words: one for one in _DECLARABLE}
        named = verdict.replace("_", " ") if isinstance(verdict, str) else ""
        if named not in known:
            raise ArgumentError(
                f"verdict must be one of {', '.join(map(repr, known))}, because other verdicts "
                f"follow from attempts, got {verdict!r}"
            )
        self._verdict = known[named]
        self._notes.insert(0, why)

    def result(self, *, seconds: float = 0.0) -> StatementResult:
        """Return the row.

        Raises
        ------
        ArgumentError
            If nothing was tested and no verdict was set. Also if a step fails and no repair of the
            proof is given.
        """
        if not self._attempts and self._verdict is None:
            raise ArgumentError(
                f"{self.row.id} must have at least one attempt, got none. Call ledger.falsify"
            )
        for attempt in self._attempts:
            if attempt.role is Role.STEP and attempt.violated and not attempt.fix:
                raise ArgumentError(
                    f"{attempt.subject} fails. State how the proof can be repaired: "
                    f"ledger.step({attempt.subject!r}, fix=...)"
                )
        verdict = verdict_of(self._attempts) if self._verdict is None else self._verdict
        words, harm = self._consequence
        found = StatementResult(
            self.row,
            verdict,
            None,
            tuple(self._attempts),
            " ".join(self._notes),
            words,
            harm,
            seconds,
            self.seed,
            misprints=tuple(self._misprints),
        )
        on_it = found.on_statement
        broken = [attempt for attempt in on_it if attempt.violated]
        used = [attempt.method for attempt in (broken or on_it)]
        method = (min if broken else max)(used, key=_ORDER.index, default=Method.ARGUMENT)
        return replace(found, method=method)

    # --- methods that the attempts use ---

    def searched(
        self, cases: Cases, values: Values, sides: Sides, shared: str, **options: Any
    ) -> Attempt:
        """Search a domain for a violation."""
        with self._two_sources(values, shared) as traced:
            inequality = cases.of(lambda **case: sides(traced(**case)))
            return falsify(cases.searched, inequality, **options)

    def swept(
        self, cases: Cases, values: Values, sides: Sides, shared: str, **options: Any
    ) -> Attempt:
        """Judge every case of a grid."""
        with self._two_sources(values, shared) as traced:
            return sweep(cases.points, lambda **case: sides(traced(**case)), **options)

    @contextlib.contextmanager
    def _two_sources(self, values: Values, shared: str) -> Iterator[Values]:
        """Refuse a claim whose two sides call the same function of the algorithms."""
        tracer = Tracer(self._algorithms)
        yield tracer.traced(values)
        if (found := tracer.shared()) and not shared:
            raise ArgumentError(
                f"the two sides of {getattr(values, '__name__', 'a claim')} must have two sources, "
                f"but both call {', '.join(found)}. Transcribe the printed formula, or give the "
                "reason in shared="
            )

    def record(self, made: Attempt) -> None:
        """Store an attempt."""
        self._attempts.append(made)

    def next_seed(self) -> int:
        """Return a separate seed for each attempt, which does not depend on what else is run."""
        self._streams += 1
        return int(generator(self.seed, self.row.id, str(self._streams)).integers(2**63))

    def next_number(self) -> int:
        """Return the number of the next attempt."""
        return len(self._attempts) + 1


_DECLARABLE = (
    LedgerVerdict.AMBIGUOUS,
    LedgerVerdict.VACUOUS,
    LedgerVerdict.NOT_EXECUTABLE,
    LedgerVerdict.OPEN,
)
