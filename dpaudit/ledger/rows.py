"""What the ledger knows of a statement: verdict, how hard it was tried, and what broke it.

Plain data, from and to JSON. Every statement is brought into the form ``lhs <= rhs``; the *ratio*
lhs / rhs says how tight it is: at most 1 where it holds, and the largest one found is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from dpaudit import _json
from dpaudit.ledger.status import row_status
from dpaudit.results import Status

LEDGER_SCHEMA = 3


class LedgerVerdict(StrEnum):
    """What became of a statement, in the order in which a reader should look at them."""

    REFUTED = "refuted"
    AMBIGUOUS = "ambiguous"
    VACUOUS = "vacuous"
    OPEN = "open"
    HOLDS = "holds"
    NOT_EXECUTABLE = "not_executable"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.replace("_", " ")

    @property
    def meaning(self) -> str:
        """One sentence for a reader who is new to it."""
        return _MEANINGS[self]


_MEANINGS = {
    LedgerVerdict.REFUTED: "A counterexample was found; where a repair is known, it stands beside.",
    LedgerVerdict.AMBIGUOUS: "It can be read in several ways, and they do not agree.",
    LedgerVerdict.VACUOUS: "Its hypotheses cannot be met, or not at a size that anyone runs.",
    LedgerVerdict.OPEN: "No check was written yet, or the check broke off.",
    LedgerVerdict.HOLDS: "It was attacked and stood; the ratio says how tight it is.",
    LedgerVerdict.NOT_EXECUTABLE: "Nothing in it can be run; the note says why.",
}


class Method(StrEnum):
    """How a verdict was reached, the firmest first."""

    EXACT = "exact"
    NUMERIC = "numeric"
    PROPERTY = "property"
    MONTE_CARLO = "monte_carlo"
    ARGUMENT = "argument"

    @property
    def words(self) -> str:
        """The method as people read it."""
        return self.value.replace("_", " ")


class Power(StrEnum):
    """Whether the mutant of a check was refuted."""

    KILLED = "killed"
    PARTLY = "partly"
    """Killed, but some attempts of the row have no mutant."""
    SURVIVED = "survived"
    NONE = "none"


@dataclass(frozen=True)
class Counterexample:
    """A case in which a claim fails.

    Parameters
    ----------
    case : dict
        The inputs, as plain data that can be handed to the check again.
    lhs, rhs : float
        The two sides there. A NaN breaks any claim, and becomes the infinity that breaks it.
    exact : bool
        Whether they were computed in exact or high-precision arithmetic as well.
    nan : bool
        Whether a side was a NaN.
    """

    case: dict[str, Any]
    lhs: float
    rhs: float
    exact: bool = False
    nan: bool = False

    def __post_init__(self) -> None:
        if math.isnan(self.lhs) or math.isnan(self.rhs):
            object.__setattr__(self, "nan", True)
        if math.isnan(self.lhs):
            object.__setattr__(self, "lhs", math.inf)
        if math.isnan(self.rhs):
            object.__setattr__(self, "rhs", -math.inf)


@dataclass(frozen=True)
class Attempt:
    """One attempt to break one claim ``lhs <= rhs``.

    Parameters
    ----------
    claim : str
        What was attacked, in words.
    method : Method
        How.
    examples : int
        Cases that were judged.
    rejected : int
        Cases outside the hypotheses, which say nothing.
    tightest : float or None
        Largest lhs / rhs found; None where the claim is no inequality.
    where : dict
        The case in which it was found.
    counterexample : Counterexample or None
        A counterexample, made small.
    power : Power
        Whether the mutant was refuted: the same claim with its constant halved, unless said
        otherwise.
    mutant : str
        What the mutant was.
    weak : tuple of str
        Why the attempt means less than it should.
    failure_prob : float
        Probability, at most, that it refutes or kills its mutant by bad luck; 0 without draws.
    """

    claim: str
    method: Method
    examples: int
    rejected: int = 0
    tightest: float | None = None
    where: dict[str, Any] = field(default_factory=dict)
    counterexample: Counterexample | None = None
    power: Power = Power.NONE
    mutant: str = ""
    weak: tuple[str, ...] = ()
    failure_prob: float = 0.0

    @property
    def violated(self) -> bool:
        """Whether a counterexample was found."""
        return self.counterexample is not None

    @property
    def empty(self) -> bool:
        """Whether it judged nothing, so that not to be violated means nothing."""
        return self.examples == 0 and self.method is not Method.ARGUMENT

    def to_json(self) -> dict[str, Any]:
        """Return plain data for strict JSON."""
        return dict(_json.encode(self))


@dataclass(frozen=True)
class Repair:
    """A corrected statement, attacked like the original.

    Parameters
    ----------
    statement : str
        The corrected text.
    attempts : tuple of Attempt
        What it was tried with.
    """

    statement: str
    attempts: tuple[Attempt, ...] = ()

    @property
    def verdict(self) -> LedgerVerdict:
        """Whether the corrected statement stood."""
        return verdict_of(self.attempts)


@dataclass(frozen=True)
class StatementResult:
    """One row of the ledger.

    Parameters
    ----------
    id : str
        Such as "gm.lemma11".
    paper, kind, statement : str
        Where it stands, what it is, and its text.
    verdict : LedgerVerdict
        What became of it.
    method : Method or None
        The weakest link among the attempts that it stood, or the one that broke it.
    attempts : tuple of Attempt
        Everything that was tried.
    repair : Repair or None
        A corrected statement.
    note : str
        What a reader should know.
    seconds : float
        Time spent.
    seed : int
        Root seed of the run.
    expected : LedgerVerdict
        What the check declares to find.
    origin : dict
        What a replay needs.
    hidden : str
        The constants that the paper hides.
    needs_power : bool
        Whether a mutant that survives fails the run; not of a user's functions, whose bounds may be
        loose.
    """

    id: str
    paper: str
    kind: str
    statement: str
    verdict: LedgerVerdict
    method: Method | None = None
    attempts: tuple[Attempt, ...] = ()
    repair: Repair | None = None
    note: str = ""
    seconds: float = 0.0
    seed: int = 0
    expected: LedgerVerdict = LedgerVerdict.HOLDS
    origin: dict[str, Any] = field(default_factory=dict)
    hidden: str = ""
    needs_power: bool = True

    @property
    def status(self) -> Status:
        """What became of it beside what was declared; its key is the verdict's."""
        trouble = ""
        if self.verdict is not self.expected:
            trouble = f"{self.expected.words} was declared"
        elif self.repair_verdict in (LedgerVerdict.REFUTED, LedgerVerdict.OPEN):
            trouble = f"the repair is {self.repair_verdict.words}"
        elif self.mismatch is not None:
            empty = self.verdict is LedgerVerdict.OPEN
            trouble = "an attempt judged no case" if empty else "a mutant survived"
        return row_status(self.verdict, self.verdict.words, self.verdict.meaning, trouble)

    @property
    def mismatch(self) -> str | None:
        """Say in one sentence why the row fails a run; None when it does not."""
        if self.verdict is LedgerVerdict.OPEN and any(a.empty for a in self.attempts):
            return "an attempt judged no case: all lie outside the hypotheses"
        if self.verdict is not self.expected:
            return f"the verdict is {self.verdict.words}, {self.expected.words} was declared"
        if self.repair_verdict is LedgerVerdict.REFUTED:
            return "the repair is refuted too"
        if self.repair_verdict is LedgerVerdict.OPEN:
            return "the repair was not attacked in a single case"
        if self.power is Power.SURVIVED and self.needs_power:
            return "a mutant survived, so an attempt has no power"
        return None

    @property
    def examples(self) -> int:
        """Cases that were judged, over all attempts."""
        return sum(attempt.examples for attempt in self.attempts)

    @property
    def tightest(self) -> float | None:
        """Largest lhs / rhs found, over all attempts."""
        ratios = [attempt.tightest for attempt in self.attempts if attempt.tightest is not None]
        return max(ratios, default=None)

    @property
    def every_attempt(self) -> tuple[Attempt, ...]:
        """The attempts on it and on its repair."""
        return self.attempts + (self.repair.attempts if self.repair is not None else ())

    @property
    def total_failure_prob(self) -> float:
        """Probability, at most, that any attempt on it or on its repair misleads by bad luck."""
        return math.fsum(attempt.failure_prob for attempt in self.every_attempt)

    @property
    def counterexample(self) -> Counterexample | None:
        """The first counterexample found."""
        return next((a.counterexample for a in self.attempts if a.counterexample is not None), None)

    @property
    def power(self) -> Power:
        """Whether the attempts that were stood killed their mutants; the repair's count too."""
        stood = [attempt for attempt in self.every_attempt if not attempt.violated]
        powers = {attempt.power for attempt in stood if attempt.method is not Method.ARGUMENT}
        if Power.SURVIVED in powers:
            return Power.SURVIVED
        if powers == {Power.KILLED, Power.NONE}:
            return Power.PARTLY
        return powers.pop() if powers else Power.NONE

    @property
    def weak(self) -> tuple[str, ...]:
        """Why the check means less than it should, over all attempts."""
        return tuple(f"{a.claim}: {reason}" for a in self.every_attempt for reason in a.weak)

    @property
    def repair_verdict(self) -> LedgerVerdict | None:
        """Whether the corrected statement stood."""
        return None if self.repair is None else self.repair.verdict

    def row(self) -> dict[str, Any]:
        """Return the flat row of ``results.json``."""
        shown = (
            "id", "paper", "kind", "statement", "verdict", "method", "examples", "tightest",
            "counterexample", "repair", "repair_verdict", "note", "seconds", "power", "weak",
        )  # fmt: skip
        row = {name: getattr(self, name) for name in shown}
        row["repair"] = None if self.repair is None else self.repair.statement
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
    """Return what attempts alone lead to: a claim holds when it stood all of them, and they tried.

    An attempt that judged nothing leaves the claim open.
    """
    attempts = tuple(attempts)
    if any(attempt.violated for attempt in attempts):
        return LedgerVerdict.REFUTED
    if not attempts or any(attempt.empty for attempt in attempts):
        return LedgerVerdict.OPEN
    return LedgerVerdict.HOLDS


def ratio(lhs: float, rhs: float) -> float:
    """Return how tight ``lhs <= rhs`` is: at most 1 exactly where it holds.

    The quotient where both sides are positive; 0 or infinite where rhs is 0; where a side is
    negative, 1 plus the difference relative to the larger one. A NaN on either side breaks any
    claim: infinite.

    Examples
    --------
    >>> ratio(1.0, 2.0), ratio(0.0, 0.0), ratio(1.0, 0.0), ratio(-1.0, 1.0)
    (0.5, 0.0, inf, -1.0)
    """
    if math.isnan(lhs) or math.isnan(rhs):
        return math.inf
    if lhs == rhs:
        return 0.0 if rhs == 0 else 1.0
    if lhs == math.inf or rhs == -math.inf or (rhs == 0 and lhs > 0):
        return math.inf
    if rhs == math.inf or lhs == -math.inf:
        return -1.0
    if lhs >= 0 and rhs > 0:
        found = lhs / rhs
    else:
        found = 1.0 + (lhs / 2 - rhs / 2) / max(abs(lhs), abs(rhs)) * 2
    # Neighbouring doubles may have the quotient 1.
    return max(found, math.nextafter(1.0, 2.0)) if lhs > rhs else found


def plain(value: Any) -> Any:
    """Return a case as plain data: arrays as lists, numpy numbers as Python's, NaN as a word."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)
