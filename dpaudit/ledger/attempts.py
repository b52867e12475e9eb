"""The fixture ``ledger`` of a check: attacks on one statement and around it, and the verdict."""

from __future__ import annotations

from dataclasses import replace

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.ledger.attacks import Attack
from dpaudit.ledger.paper import Paper, Statement
from dpaudit.ledger.rows import Harm, LedgerVerdict, StatementResult, verdict_of
from dpaudit.mechanisms import generator
from dpaudit.properties import Attempt, Method, Role

EXAMPLES = {"quick": 300, "full": 3_000, "release": 30_000}
"""Cases that each search of a falsifier judges at least, by profile."""

_ORDER = list(Method)


class Ledger(Attack):
    """Attacks one statement, and what belongs to it.

    Its own methods attack the statement as the paper has it, within its hypotheses and
    conventions; the statement holds when it stands all of them. :meth:`step`, :meth:`edge`,
    :meth:`reading`, :meth:`sharper` and :meth:`repair` hand out attacks on something else.

    Parameters
    ----------
    row : Statement
        The row that is checked.
    paper : Paper, optional
        With the conventions that an edge may leave.
    found : str, optional
        What the docstring of the check says of what was found.
    profile : {"quick", "full", "release"}
        Budget.
    seed : int
        Root seed of the run, >= 0.
    """

    def __init__(
        self,
        row: Statement,
        *,
        paper: Paper | None = None,
        found: str = "",
        profile: str = "quick",
        seed: int = 0,
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

    # --- what else may be attacked ---

    def step(self, which: str, *, mends: str = "") -> Attack:
        """Attack a step of the printed proof: an induction, a conditioning, a coupling, a branch.

        Where it fails and the statement stands, the statement holds and its proof is broken.

        Parameters
        ----------
        which : str
            The step, such as "the induction (14)".
        mends : str
            Of a step that fails: what mends the proof.
        """
        return Attack(self, Role.STEP, which, mends)

    def edge(self, convention: str) -> Attack:
        """Show what fails outside a convention of the paper: that refutes nothing.

        Parameters
        ----------
        convention : str
            Its words, as in ``statements.md``: the hypothesis that is missing.
        """
        if self.paper.convention(convention) is None:
            known = "; ".join(known.words for known in self.paper.conventions) or "none"
            raise ArgumentError(
                f"convention must be one of those in statements.md ({known}), got {convention!r}"
            )
        return Attack(self, Role.EDGE, convention)

    def reading(self, words: str) -> Attack:
        """Attack one of several ways to read the statement.

        Where one of them fails, the statement is ambiguous, and never refuted.
        """
        return Attack(self, Role.READING, words)

    def sharper(self, words: str = "") -> Attack:
        """Attack more than the statement says: a better constant, fewer hypotheses."""
        return Attack(self, Role.SHARPER, words)

    def repair(self, statement: str) -> Attack:
        """State a correction, and attack it.

        Examples
        --------
        ::

            repair = ledger.repair("norm(x' - y') <= max(norm(x - y), 2 eta)")

            @repair.falsify(factor=2.0, mutant={"factor": 1.0}, **domain)
            def corrected(...): ...
        """
        if self._repair and self._repair != statement:
            raise ArgumentError(f"{self.row.id} already has the repair {self._repair!r}")
        self._repair = statement
        return Attack(self, Role.REPAIR, statement)

    # --- words and verdicts ---

    def note(self, text: str) -> None:
        """Add a sentence for the reader of the row, such as one with numbers that were computed."""
        self._notes.append(text)

    def consequence(self, words: str, harm: Harm | str) -> None:
        """Say whom it hurts that the statement or its proof is wrong, and how."""
        self._consequence = words, Harm(_validate.choice(tuple(Harm), harm=harm))

    def conclude(self, verdict: LedgerVerdict | str, why: str) -> None:
        """Set a verdict that the attempts alone do not lead to, and say why.

        AMBIGUOUS where the words are too vague to be attacked, VACUOUS where the hypotheses cannot
        be met, with the smallest size at which they can, NOT_EXECUTABLE where nothing can be run.
        Not for the others: those must be earned.
        """
        verdict = LedgerVerdict(verdict)
        if verdict not in _DECLARABLE:
            raise ArgumentError(f"verdict {verdict.words} cannot be declared")
        self._verdict = verdict
        self._notes.insert(0, why)

    def result(self, *, seconds: float = 0.0) -> StatementResult:
        """Return the row.

        Raises
        ------
        ArgumentError
            When nothing was attacked and nothing concluded, or a step fails and nobody says what
            mends the proof.
        """
        if not self._attempts and self._verdict is None:
            raise ArgumentError(f"{self.row.id} was checked by nothing: call a method of ledger")
        for attempt in self._attempts:
            if attempt.role is Role.STEP and attempt.violated and not attempt.mends:
                raise ArgumentError(
                    f"{attempt.subject} fails: say what mends the proof, "
                    f"ledger.step({attempt.subject!r}, mends=...)"
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
        )
        on_it = found.on_statement
        broken = [attempt for attempt in on_it if attempt.violated]
        used = [attempt.method for attempt in (broken or on_it)]
        method = (min if broken else max)(used, key=_ORDER.index, default=Method.ARGUMENT)
        return replace(found, method=method)

    # --- for the attacks ---

    def record(self, made: Attempt) -> None:
        """Keep an attempt."""
        self._attempts.append(made)

    def next_seed(self) -> int:
        """Return a seed of its own for each attempt, whatever else is run."""
        self._streams += 1
        return int(generator(self.seed, self.row.id, str(self._streams)).integers(2**63))

    def next_number(self) -> int:
        """Return the number of the attempt that comes next."""
        return len(self._attempts) + 1


_DECLARABLE = (LedgerVerdict.AMBIGUOUS, LedgerVerdict.VACUOUS, LedgerVerdict.NOT_EXECUTABLE)
