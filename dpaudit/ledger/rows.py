"""Rows of the ledger: the verdict on a statement, how it was tested, and counterexamples.

Rows are plain data that can be converted to JSON and back. Every statement is brought into the form
``lhs <= rhs``. The *ratio* lhs / rhs says how tight the statement is. The ratio is at most 1 if the
statement holds. The largest ratio of all attempts is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any

from dpaudit import _json
from dpaudit.ledger.paper import Statement
from dpaudit.properties import Attempt, Counterexample, Method, Power, Role
from dpaudit.results import Origin, Status

LEDGER_SCHEMA = 6

DERIVED = "derived"
"""Kind of a statement that follows from the paper, but is no sentence of it."""

_NARROW = 1.01  # ratio below which a refutation says that it is narrow


class LedgerVerdict(StrEnum):
    """Verdict on a statement, in the order in which a reader should read the rows."""

    REFUTED = "refuted"
    HOLDS_PROOF_BROKEN = "holds_proof_broken"
    AMBIGUOUS = "ambiguous"
    VACUOUS = "vacuous"
    OPEN = "open"
    HOLDS = "holds"
    NOT_EXECUTABLE = "not_executable"

    @property
    def words(self) -> str:
        """The verdict as text."""
        if self is LedgerVerdict.HOLDS_PROOF_BROKEN:
            return "holds, proof broken"
        return self.value.replace("_", " ")

    @property
    def meaning(self) -> str:
        """One sentence that explains the verdict to new readers."""
        return _MEANINGS[self]


_MEANINGS = {
    LedgerVerdict.REFUTED: "A counterexample was found within the hypotheses and the standing "
    "conventions. If a repair is known, it is shown with the statement.",
    LedgerVerdict.HOLDS_PROOF_BROKEN: "No attempt refuted the statement, but a step of the printed "
    "proof fails. The repair of the proof is shown with the statement.",
    LedgerVerdict.AMBIGUOUS: "The statement can be read in several ways, whose verdicts differ.",
    LedgerVerdict.VACUOUS: "Its hypotheses cannot be met, or only at sizes that nobody uses.",
    LedgerVerdict.OPEN: "Nothing decides the statement, no check was written yet, or the check "
    "ended without a verdict.",
    LedgerVerdict.HOLDS: "No attempt refuted the statement. The ratio says how tight it is.",
    LedgerVerdict.NOT_EXECUTABLE: "Nothing in the statement can be run. The note says why.",
}


_LETTERS = {
    LedgerVerdict.REFUTED: ("r", "magenta"),
    LedgerVerdict.HOLDS_PROOF_BROKEN: ("p", "cyan"),
    LedgerVerdict.AMBIGUOUS: ("a", "yellow"),
    LedgerVerdict.VACUOUS: ("v", "yellow"),
    LedgerVerdict.OPEN: ("o", "yellow"),
    LedgerVerdict.HOLDS: (".", "green"),
    LedgerVerdict.NOT_EXECUTABLE: ("n", "dim"),
}
"""Letter and style of each verdict."""


class Harm(StrEnum):
    """Harm of a mistake in a paper, with the worst kinds first."""

    PRIVACY = "privacy"
    ACCURACY = "accuracy"
    TIME = "running time"
    CONSTANT = "a constant"
    WORDS = "the wording"


@dataclass(frozen=True)
class StatementResult:
    """One row of the ledger.

    Parameters
    ----------
    stated : Statement
        The statement, its place in the paper and its premises.
    verdict : LedgerVerdict
        Verdict on the statement.
    method : Method or None
        If an attempt refuted the statement, the method of this attempt. Otherwise, the weakest
        method among the attempts.
    attempts : tuple of Attempt
        All attempts on the statement and on related claims.
    note : str
        Information for the reader.
    consequence : str
        Consequences of the mistake in the statement or its proof, and who is affected.
    harm : Harm or None
        The kind of harm, which determines the position in an erratum.
    seconds : float
        Time spent on the check, in seconds.
    seed : int
        Root seed of the run.
    expected : LedgerVerdict
        Verdict that the check declares.
    origin : dict
        Data that a replay needs.
    misprints : tuple of (str, str)
        Misprints, as printed and as meant.
    needs_power : bool
        Whether a surviving mutant makes the run fail. False for a user's functions, because their
        bounds may be loose.
    """

    stated: Statement
    verdict: LedgerVerdict
    method: Method | None = None
    attempts: tuple[Attempt, ...] = ()
    note: str = ""
    consequence: str = ""
    harm: Harm | None = None
    seconds: _json.Seconds = 0.0
    seed: int = 0
    expected: LedgerVerdict = LedgerVerdict.HOLDS
    origin: Annotated[dict[str, Any], Origin] = field(default_factory=dict)
    misprints: tuple[tuple[str, str], ...] = ()
    needs_power: bool = True

    def __bool__(self) -> bool:
        raise TypeError(
            "a StatementResult has no truth value, because a statement may hold, fail or be "
            "untested. "
            "Compare row.verdict"
        )

    @property
    def id(self) -> str:
        """Id of the statement, such as "gm.lemma11"."""
        return self.stated.id

    @property
    def paper(self) -> str:
        """Name of the paper."""
        return self.stated.paper

    @property
    def kind(self) -> str:
        """Kind of the statement, such as lemma."""
        return self.stated.kind

    @property
    def statement(self) -> str:
        """Text of the statement."""
        return self.stated.text

    # --- attempts by their role ---

    def made_on(self, *roles: Role) -> tuple[Attempt, ...]:
        """Return the attempts of some roles."""
        return tuple(attempt for attempt in self.attempts if attempt.role in roles)

    @property
    def on_statement(self) -> tuple[Attempt, ...]:
        """Attempts on the statement of the paper, or on readings of it."""
        return self.made_on(Role.STATEMENT, Role.READING)

    @property
    def broken_steps(self) -> tuple[Attempt, ...]:
        """Steps of the printed proof that fail."""
        return tuple(attempt for attempt in self.made_on(Role.STEP) if attempt.violated)

    @property
    def edges(self) -> tuple[Attempt, ...]:
        """Failures outside the conventions of the paper."""
        return tuple(attempt for attempt in self.made_on(Role.EDGE) if attempt.violated)

    @property
    def repair(self) -> str:
        """The corrected statement, or "" if there is none."""
        return next((attempt.subject for attempt in self.made_on(Role.REPAIR)), "")

    @property
    def repair_verdict(self) -> LedgerVerdict | None:
        """Verdict on the corrected statement, or None if there is none."""
        made = self.made_on(Role.REPAIR)
        return verdict_of(replace(a, role=Role.STATEMENT) for a in made) if made else None

    @property
    def covered(self) -> tuple[str, ...]:
        """Sizes and ranges for which the statement was tested without its premises."""
        return tuple(dict.fromkeys(a.covered for a in self.on_statement if a.covered))

    @property
    def is_ours(self) -> bool:
        """Whether the statement is a consequence that we derived, and no sentence of the paper."""
        return self.kind == DERIVED

    @property
    def is_wrong(self) -> bool:
        """Whether the statement, or its printed proof, fails, and it is a sentence of the paper."""
        wrong = (LedgerVerdict.REFUTED, LedgerVerdict.HOLDS_PROOF_BROKEN)
        return self.verdict in wrong and self.kind not in ("function", DERIVED)

    @property
    def is_mistake(self) -> bool:
        """Whether an erratum must explain the row: something is wrong, or misprinted."""
        return self.is_wrong or (bool(self.misprints) and self.kind not in ("function", DERIVED))

    @property
    def is_narrow(self) -> bool:
        """Whether the statement is refuted by less than 1% of a bound."""
        ratios = [a.tightest for a in self.on_statement if a.violated and a.tightest is not None]
        return bool(ratios) and max(ratios) < _NARROW

    # --- verdict and outcome ---

    @property
    def status(self) -> Status:
        """Outcome, compared with the declared verdict.

        The outcome has the key of the verdict.
        """
        trouble = ""
        if self.verdict is not self.expected:
            trouble = f"{self.expected.words} was declared"
        elif self.mismatch is not None:
            trouble = next((short for _, short in self._troubles()), "")
        letter, style = _LETTERS[self.verdict]
        words = self.verdict.words
        word, category = words.upper(), words
        if trouble:
            word, category, letter, style = (
                f"{word} ({trouble})",
                "not as declared",
                "S",
                "bold red",
            )
        return Status(self.verdict.value, word, category, letter, style, self.verdict.meaning)

    @property
    def mismatch(self) -> str | None:
        """Reason, in one sentence, why the row makes a run fail, or None."""
        if self.verdict is LedgerVerdict.OPEN and any(a.empty for a in self.attempts):
            return "an attempt judged no case: all lie outside the hypotheses"
        if self.verdict is not self.expected:
            return f"the verdict is {self.verdict.words}, {self.expected.words} was declared"
        return next((sentence for sentence, _ in self._troubles()), None)

    def _troubles(self) -> Iterable[tuple[str, str]]:
        """Yield reasons why the row fails a run in spite of its verdict, long and short."""
        if self.repair_verdict is LedgerVerdict.REFUTED:
            yield "the repair is refuted, too", "the repair is refuted"
        if self.repair_verdict is LedgerVerdict.OPEN:
            yield "no case of the repair was tested", "the repair is open"
        if self.verdict is LedgerVerdict.REFUTED and self.needs_power:
            for attempt in self.made_on(Role.STATEMENT):
                if attempt.subject and attempt.violated:
                    yield f"a part of the statement fails: {attempt.subject}", "a part fails"
                tried = attempt.method is not Method.ARGUMENT
                if tried and not attempt.subject and not attempt.violated:
                    yield (
                        f"an attempt on the refuted statement found no violation: {attempt.claim}. "
                        "Test a part that holds by ledger.part(...)",
                        "an attempt found no violation",
                    )
        elif self.verdict not in (LedgerVerdict.HOLDS, LedgerVerdict.HOLDS_PROOF_BROKEN):
            for attempt in self.made_on(Role.STATEMENT):
                if attempt.violated and self.needs_power:
                    yield (
                        f"an attempt on the statement found a violation: {attempt.claim}",
                        "an attempt found a violation",
                    )
        readings = self.made_on(Role.READING)
        for words in dict.fromkeys(attempt.subject for attempt in readings):
            own = [attempt for attempt in readings if attempt.subject == words]
            if any(attempt.violated for attempt in own) != own[0].fails:
                how = "did not fail" if own[0].fails else "failed"
                yield f"a reading {how}, unlike declared: {words}", f"a reading {how}"
        for attempt in self.attempts:
            if attempt.empty:
                yield f"an attempt judged no case: {attempt.claim}", "an attempt judged no case"
            if attempt.role is Role.EDGE and not attempt.violated:
                yield (
                    f"nothing fails outside {attempt.subject}: {attempt.claim}",
                    "an edge case does not fail",
                )
            if attempt.role is Role.MISPRINT and not attempt.violated:
                yield (
                    f"the statement does not fail as printed: {attempt.subject}",
                    "a misprint does not fail",
                )
            if attempt.role is Role.SHARPER and attempt.violated:
                yield f"the sharper claim fails: {attempt.claim}", "a sharper claim fails"
            if attempt.unexplained and self.needs_power:
                yield (
                    f"{attempt.unexplained[0]} was not killed, and the row does not say why",
                    "a mutant survived",
                )
        if self.power is Power.SURVIVED and self.needs_power:
            yield "a mutant survived, so an attempt has no power", "a mutant survived"

    @property
    def examples(self) -> int:
        """Number of cases that were judged, over all attempts except those on the repair."""
        return sum(attempt.examples for attempt in self.attempts if attempt.role is not Role.REPAIR)

    @property
    def tightest(self) -> float | None:
        """Largest lhs / rhs of the statement itself, or of the attempts that broke it."""
        broken = [attempt for attempt in self.on_statement if attempt.violated]
        made = broken or self.on_statement
        ratios = [attempt.tightest for attempt in made if attempt.tightest is not None]
        return max(ratios, default=None)

    @property
    def total_failure_prob(self) -> float:
        """Largest probability that any attempt gives a wrong result by chance."""
        return math.fsum(attempt.failure_prob for attempt in self.attempts)

    @property
    def broken(self) -> Attempt | None:
        """The first attempt that broke the statement, or a step of a broken proof.

        An attempt on a reading that was declared to hold comes before all others.
        """
        attempts = (*self.on_statement, *self.broken_steps)
        broken = [attempt for attempt in attempts if attempt.violated]
        broken.sort(key=lambda one: one.role is not Role.READING or one.fails)
        return broken[0] if broken else None

    @property
    def counterexample(self) -> Counterexample | None:
        """The counterexample of the first broken attempt."""
        return None if self.broken is None else self.broken.counterexample

    @property
    def power(self) -> Power:
        """Whether every attempt without a violation, also on the repair, killed its mutant."""
        stood = [attempt for attempt in self.attempts if not attempt.violated]
        powers = {attempt.power for attempt in stood if attempt.method is not Method.ARGUMENT}
        if Power.SURVIVED in powers:
            return Power.SURVIVED
        if powers == {Power.KILLED, Power.NONE}:
            return Power.PARTLY
        return powers.pop() if len(powers) == 1 else Power.PARTLY if powers else Power.NONE

    @property
    def weak(self) -> tuple[str, ...]:
        """Reasons why the check is weaker than it should be, over all attempts."""
        return tuple(f"{a.claim}: {reason}" for a in self.attempts for reason in a.weak)

    # --- plain data ---

    def row(self) -> dict[str, Any]:
        """Return the flat row of ``results.json``."""
        keys = (
            "id", "paper", "kind", "statement", "stated", "verdict", "method", "examples",
            "tightest", "counterexample", "repair", "repair_verdict", "note", "harm",
            "consequence", "seconds", "power", "weak",
        )  # fmt: skip
        row = {name: getattr(self, name) for name in keys}
        row["edges"] = [edge.subject for edge in self.edges]
        row["broken_steps"] = [step.subject for step in self.broken_steps]
        row["seconds"] = round(self.seconds, 3)
        return dict(_json.encode(row))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON, including the schema."""
        return {"schema": LEDGER_SCHEMA, **_json.encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StatementResult:
        """Return the row from plain data.

        Raise ``ValueError`` with the name of a wrong field.
        """
        record = dict(data)
        if record.pop("schema", None) != LEDGER_SCHEMA:
            raise ValueError(f"schema must be {LEDGER_SCHEMA}, got {data.get('schema')!r}")
        found: StatementResult = _json.decode(cls, record)
        return found

    def with_origin(self, origin: Mapping[str, Any], expected: LedgerVerdict) -> StatementResult:
        """Return the row with facts that only a run knows: the origin and the declared verdict."""
        return replace(self, origin=dict(origin), expected=expected)


def verdict_of(attempts: Iterable[Attempt]) -> LedgerVerdict:
    """Return the verdict that follows from the attempts alone.

    A statement holds if no attempt on it found a violation, and if every attempt judged a case. If
    an attempt judged no case, the statement is open. The statement holds with a broken proof if a
    step of the proof fails. The statement is ambiguous if some readings fail. Attempts on edges,
    sharper claims and repairs do not count.
    """
    attempts = tuple(attempts)
    on_it = [attempt for attempt in attempts if attempt.role is Role.STATEMENT]
    readings = [attempt for attempt in attempts if attempt.role is Role.READING]
    if any(attempt.violated for attempt in on_it):
        return LedgerVerdict.REFUTED
    if not on_it + readings or any(attempt.empty for attempt in on_it + readings):
        return LedgerVerdict.OPEN
    if any(attempt.violated for attempt in readings):
        return LedgerVerdict.AMBIGUOUS
    if any(attempt.violated for attempt in attempts if attempt.role is Role.STEP):
        return LedgerVerdict.HOLDS_PROOF_BROKEN
    return LedgerVerdict.HOLDS


# --- premises that are refuted, or whose proof is broken, and the rows that depend on them ------


_SHAKES = (LedgerVerdict.REFUTED, LedgerVerdict.HOLDS_PROOF_BROKEN)


@dataclass(frozen=True)
class Shaken:
    """A premise that does not hold as printed, or whose proof does not hold.

    Parameters
    ----------
    id : str
        Id of the premise.
    verdict : LedgerVerdict
        Verdict on the premise.
    by_way_of : str
        The premise through which a row depends on this premise. Empty if the row rests on this
        premise directly.
    """

    id: str
    verdict: LedgerVerdict
    by_way_of: str = ""

    @property
    def words(self) -> str:
        """Return the text about the premise that a row displays."""
        way = f", by way of {self.by_way_of}" if self.by_way_of else ""
        return f"rests on {self.id}, {self.verdict.words}{way}"


def shaken(rows: Iterable[StatementResult]) -> dict[str, tuple[Shaken, ...]]:
    """Return the premises that do not hold as printed, for each row.

    Rows of different papers have different ids. A row that was tested end to end rests on its
    premises only outside of what was tested (`StatementResult.covered`).
    """
    known = {row.id: row for row in rows}
    found: dict[str, tuple[Shaken, ...]] = {}

    def of(row: StatementResult) -> tuple[Shaken, ...]:
        if row.id in found:
            return found[row.id]
        here: dict[str, Shaken] = {}
        for id in row.stated.premises:
            premise = known.get(id)
            if premise is None:
                continue
            if premise.verdict in _SHAKES:
                here[id] = Shaken(id, premise.verdict)
            for deeper in of(premise):
                here.setdefault(deeper.id, Shaken(deeper.id, deeper.verdict, id))
        found[row.id] = tuple(here.values())
        return found[row.id]

    return {id: of(row) for id, row in known.items()}
