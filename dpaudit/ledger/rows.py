"""What the ledger knows of a statement: verdict, how hard it was tried, and what broke it.

Plain data, from and to JSON. Every statement is brought into the form ``lhs <= rhs``; the *ratio*
lhs / rhs says how tight it is: at most 1 where it holds, and the largest one found is reported.
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

LEDGER_SCHEMA = 4


class LedgerVerdict(StrEnum):
    """What became of a statement, in the order in which a reader should look at them."""

    REFUTED = "refuted"
    HOLDS_PROOF_BROKEN = "holds_proof_broken"
    AMBIGUOUS = "ambiguous"
    VACUOUS = "vacuous"
    OPEN = "open"
    HOLDS = "holds"
    NOT_EXECUTABLE = "not_executable"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        if self is LedgerVerdict.HOLDS_PROOF_BROKEN:
            return "holds, proof broken"
        return self.value.replace("_", " ")

    @property
    def meaning(self) -> str:
        """One sentence for a reader who is new to it."""
        return _MEANINGS[self]


_MEANINGS = {
    LedgerVerdict.REFUTED: "A counterexample was found within the hypotheses and the standing "
    "conventions; where a repair is known, it stands beside.",
    LedgerVerdict.HOLDS_PROOF_BROKEN: "The statement stood every attack, but a step of the printed "
    "proof fails; what mends it stands beside.",
    LedgerVerdict.AMBIGUOUS: "It can be read in several ways, and they do not agree.",
    LedgerVerdict.VACUOUS: "Its hypotheses cannot be met, or not at a size that anyone runs.",
    LedgerVerdict.OPEN: "No check was written yet, or the check broke off.",
    LedgerVerdict.HOLDS: "It was attacked and stood; the ratio says how tight it is.",
    LedgerVerdict.NOT_EXECUTABLE: "Nothing in it can be run; the note says why.",
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
"""Letter and style by verdict."""


class Harm(StrEnum):
    """Whom a mistake in a paper hurts, the worst first."""

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
        What is judged, where it stands, and what it rests on.
    verdict : LedgerVerdict
        What became of it.
    method : Method or None
        The weakest link among the attempts that it stood, or the one that broke it.
    attempts : tuple of Attempt
        Everything that was tried, on it and around it.
    note : str
        What a reader should know.
    consequence : str
        Whom it hurts that the statement, or its proof, is wrong, and how.
    harm : Harm or None
        The same as a word, by which an erratum is sorted.
    seconds : float
        Time spent.
    seed : int
        Root seed of the run.
    expected : LedgerVerdict
        What the check declares to find.
    origin : dict
        What a replay needs.
    needs_power : bool
        Whether a mutant that survives fails the run; not of a user's functions, whose bounds may be
        loose.
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
    needs_power: bool = True

    def __bool__(self) -> bool:
        raise TypeError(
            "a StatementResult has no truth value: a row may hold, fail or not be tested. Compare "
            "row.verdict"
        )

    @property
    def id(self) -> str:
        """Such as "gm.lemma11"."""
        return self.stated.id

    @property
    def paper(self) -> str:
        """Name of the paper."""
        return self.stated.paper

    @property
    def kind(self) -> str:
        """Such as lemma."""
        return self.stated.kind

    @property
    def statement(self) -> str:
        """Its text."""
        return self.stated.text

    # --- attempts by what they are made on ---

    def made_on(self, *roles: Role) -> tuple[Attempt, ...]:
        """Return the attempts of some roles."""
        return tuple(attempt for attempt in self.attempts if attempt.role in roles)

    @property
    def on_statement(self) -> tuple[Attempt, ...]:
        """Attempts on what the paper says, or on readings of it."""
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
        """The corrected statement; empty where there is none."""
        return next((attempt.subject for attempt in self.made_on(Role.REPAIR)), "")

    @property
    def repair_verdict(self) -> LedgerVerdict | None:
        """Whether the corrected statement stood."""
        made = self.made_on(Role.REPAIR)
        return verdict_of(replace(a, role=Role.STATEMENT) for a in made) if made else None

    @property
    def stands_alone(self) -> bool:
        """Whether it was attacked end to end, so that it rests on no premise."""
        return any(attempt.end_to_end for attempt in self.on_statement)

    # --- what became of it ---

    @property
    def status(self) -> Status:
        """What became of it beside what was declared; its key is the verdict's."""
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
        """Say in one sentence why the row fails a run; None when it does not."""
        if self.verdict is LedgerVerdict.OPEN and any(a.empty for a in self.attempts):
            return "an attempt judged no case: all lie outside the hypotheses"
        if self.verdict is not self.expected:
            return f"the verdict is {self.verdict.words}, {self.expected.words} was declared"
        return next((sentence for sentence, _ in self._troubles()), None)

    def _troubles(self) -> Iterable[tuple[str, str]]:
        """Yield why the row fails a run although its verdict is the declared one, and in short."""
        if self.repair_verdict is LedgerVerdict.REFUTED:
            yield "the repair is refuted too", "the repair is refuted"
        if self.repair_verdict is LedgerVerdict.OPEN:
            yield "the repair was not attacked in a single case", "the repair is open"
        for attempt in self.attempts:
            if attempt.empty:
                yield f"an attempt judged no case: {attempt.claim}", "an attempt judged no case"
            if attempt.role is Role.EDGE and not attempt.violated:
                yield (
                    f"nothing fails outside {attempt.subject}: {attempt.claim}",
                    "an edge case stood",
                )
            if attempt.role is Role.SHARPER and attempt.violated:
                yield f"the sharper claim fails: {attempt.claim}", "a sharper claim fails"
            if attempt.unexplained and self.needs_power:
                yield (
                    f"{attempt.unexplained[0]} survived, and the row does not say why",
                    "a mutant survived",
                )
        if self.power is Power.SURVIVED and self.needs_power:
            yield "a mutant survived, so an attempt has no power", "a mutant survived"

    @property
    def examples(self) -> int:
        """Cases that were judged, over all attempts on it."""
        return sum(attempt.examples for attempt in self.attempts if attempt.role is not Role.REPAIR)

    @property
    def tightest(self) -> float | None:
        """Largest lhs / rhs of the statement itself."""
        ratios = [a.tightest for a in self.on_statement if a.tightest is not None]
        return max(ratios, default=None)

    @property
    def total_failure_prob(self) -> float:
        """Probability, at most, that any attempt misleads by bad luck."""
        return math.fsum(attempt.failure_prob for attempt in self.attempts)

    @property
    def counterexample(self) -> Counterexample | None:
        """The first counterexample to the statement; of a broken proof, to its step."""
        for attempts in (self.on_statement, self.broken_steps):
            for attempt in attempts:
                if attempt.counterexample is not None:
                    return attempt.counterexample
        return None

    @property
    def power(self) -> Power:
        """Whether the attempts that were stood killed their mutants; the repair's count too."""
        stood = [attempt for attempt in self.attempts if not attempt.violated]
        powers = {attempt.power for attempt in stood if attempt.method is not Method.ARGUMENT}
        if Power.SURVIVED in powers:
            return Power.SURVIVED
        if powers == {Power.KILLED, Power.NONE}:
            return Power.PARTLY
        return powers.pop() if len(powers) == 1 else Power.PARTLY if powers else Power.NONE

    @property
    def weak(self) -> tuple[str, ...]:
        """Why the check means less than it should, over all attempts."""
        return tuple(f"{a.claim}: {reason}" for a in self.attempts for reason in a.weak)

    # --- plain data ---

    def row(self) -> dict[str, Any]:
        """Return the flat row of ``results.json``."""
        shown = (
            "id", "paper", "kind", "statement", "stated", "verdict", "method", "examples",
            "tightest", "counterexample", "repair", "repair_verdict", "note", "harm",
            "consequence", "seconds", "power", "weak",
        )  # fmt: skip
        row = {name: getattr(self, name) for name in shown}
        row["edges"] = [edge.subject for edge in self.edges]
        row["broken_steps"] = [step.subject for step in self.broken_steps]
        row["seconds"] = round(self.seconds, 3)
        return dict(_json.encode(row))

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON, schema included."""
        return {"schema": LEDGER_SCHEMA, **_json.encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> StatementResult:
        """Rebuild a row; raise ``ValueError`` with the field that is wrong."""
        record = dict(data)
        if record.pop("schema", None) != LEDGER_SCHEMA:
            raise ValueError(f"schema {data.get('schema')!r}, {LEDGER_SCHEMA} is known")
        found: StatementResult = _json.decode(cls, record)
        return found

    def with_origin(self, origin: Mapping[str, Any], expected: LedgerVerdict) -> StatementResult:
        """Return the row with what only a run knows: how it was made, and what was declared."""
        return replace(self, origin=dict(origin), expected=expected)


def verdict_of(attempts: Iterable[Attempt]) -> LedgerVerdict:
    """Return what attempts alone lead to.

    A statement holds when it stood all attempts on it, and they tried: one that judged nothing
    leaves it open. It holds with a broken proof where a step of that fails. Readings of which some
    fail make it ambiguous. What is found of edges, sharper claims and repairs says nothing of it.
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


# --- what a row rests on: statements that are refuted, or whose proof is broken, shake those abov


_SHAKES = (LedgerVerdict.REFUTED, LedgerVerdict.HOLDS_PROOF_BROKEN)


@dataclass(frozen=True)
class Shaken:
    """A premise that does not stand as printed.

    Parameters
    ----------
    id : str
        Of the premise.
    verdict : LedgerVerdict
        What became of it.
    by_way_of : str
        The premise through which a row rests on it; empty where it does so itself.
    """

    id: str
    verdict: LedgerVerdict
    by_way_of: str = ""

    @property
    def words(self) -> str:
        """Return it as a row says it."""
        way = f", by way of {self.by_way_of}" if self.by_way_of else ""
        return f"rests on {self.id}, {self.verdict.words}{way}"


def shaken(rows: Iterable[StatementResult]) -> dict[str, tuple[Shaken, ...]]:
    """Return the premises of each row that do not stand as printed.

    A row that was attacked end to end rests on nothing any more, nor does what rests on it by way
    of it. Rows of different papers have different ids.
    """
    known = {row.id: row for row in rows}
    found: dict[str, tuple[Shaken, ...]] = {}

    def of(row: StatementResult) -> tuple[Shaken, ...]:
        if row.id in found:
            return found[row.id]
        here: dict[str, Shaken] = {}
        for id in () if row.stands_alone else row.stated.premises:
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
