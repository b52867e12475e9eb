"""What reports say of each kind of record: lines, alerts for CI systems, pages, changes.

A package registers one :class:`Section` for each kind of its records under the entry-point group
``dpaudit.sections``, by the name of the kind.
"""

from __future__ import annotations

import abc
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from markupsafe import Markup

from dpaudit.report.changes import VerdictChange, What
from dpaudit.store import Record, Run, by_kind, extensions, kind_of, place_of

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Alert:
    """A finding for code scanning.

    Parameters
    ----------
    rule : str
        Key of one of the section's rules.
    level : {"error", "warning", "note"}
    text : str
        Some lines.
    facts : dict
        What else there is to say.
    accepted : str
        Why it is known and suppressed; empty where it is not.
    """

    rule: str
    level: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    accepted: str = ""


class Section(abc.ABC, Generic[R]):
    """What reports say of the records of one kind."""

    noun: ClassVar[str]
    """What one record is called."""
    rules: ClassVar[dict[str, tuple[str, str]]]
    """Name and description of each rule for code scanning, by its key."""

    # --- lines of a run ---

    @abc.abstractmethod
    def facts(self, record: R) -> list[str]:
        """Return what a line says of a record beside its status and its id."""

    @abc.abstractmethod
    def finding(self, record: R, out: Path | None = None) -> str:
        """Return what was found in a few lines, with the line that replays it.

        `out` is the directory of the stored results, where there is one.
        """

    @abc.abstractmethod
    def numbers(self, record: R) -> str:
        """Return verdict and numbers, to their last digit, in one line."""

    def is_told(self, record: R) -> bool:
        """Whether a reader should see more of a record than its line."""
        return record.mismatch is not None

    def is_judged(self, record: R) -> bool:
        """Whether a record holds a verdict."""
        return True

    def rank(self, record: R) -> int:
        """Return the place of a record: those with a smaller one should be read first."""
        return 0

    @abc.abstractmethod
    def tally(self, records: Sequence[R]) -> list[str]:
        """Return lines that count the verdicts."""

    @abc.abstractmethod
    def summary(self, records: Sequence[R]) -> tuple[str, str] | None:
        """Return title and text of a section of pytest's summary; None for nothing."""

    # --- pages ---

    def card(self, run: Run, records: Sequence[R]) -> Markup:
        """Return what the first page says of the records; empty where it holds them itself."""
        return Markup("")

    def write_pages(self, out: Path, run: Run, records: Sequence[R]) -> None:
        """Write the pages beside the first one; remove those of an earlier run."""

    def page_lines(self, out: Path, records: Sequence[R]) -> list[str]:
        """Return a line for each page beside the first one."""
        return []

    # --- CI systems ---

    @abc.abstractmethod
    def alert(self, record: R) -> Alert | None:
        """Return the finding for code scanning; None where there is none."""

    # --- two runs ---

    def is_compared(self, record: R) -> bool:
        """Whether a comparison of two runs speaks of a record."""
        return True

    @abc.abstractmethod
    def changes(self, old: R, new: R) -> Iterator[VerdictChange]:
        """Yield what changed in the verdict of one record, and whether it is worse."""

    def fault(self, record: R) -> What:
        """Return what a new record is that is not as declared."""
        return What.UNDECLARED


def sections() -> dict[str, Section[Any]]:
    """Return the section of each kind of record, by the name of the kind."""
    return extensions("sections")


def section_of(record: Record) -> Section[Any]:
    """Return the section of the kind of a record."""
    return sections()[kind_of(record).name]


def by_section(records: Iterable[Record]) -> list[tuple[Section[Any], list[Any]]]:
    """Return each section that has records, with them."""
    return [(sections()[name], own) for name, own in by_kind(records).items() if own]


def counted(records: Iterable[Record]) -> str:
    """Return how many records there are of each kind, such as "1 audit and 3 statements"."""
    found = [(len(own), section.noun) for section, own in by_section(records)]
    return " and ".join(f"{n} {noun}{'s' * (n != 1)}" for n, noun in found) or "0 audits"


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return records in the order in which they should be read: kind by kind, the worst first."""
    return [r for section, own in by_section(records) for r in sorted(own, key=section.rank)]


def replay_command(record: Record, out: Path | None = None) -> str:
    """Return the command that makes a record again, quoted for a shell.

    `out` is the directory where it is stored, if it is.
    """
    origin = record.origin
    if out is not None:
        return f"dpaudit replay {shlex.quote(str(out / place_of(record)))}"
    if not {"path", "item", "profile"} <= set(origin):
        return f"dpaudit.audit(..., seed={record.seed}, id={record.id!r})"
    words = [
        "pytest",
        "--dpaudit",
        f"{origin['path']}::{origin['item']}",
        f"--dpaudit-profile={origin['profile']}",
        f"--dpaudit-seed={record.seed}",
    ]
    if "failure_prob" in origin:
        words.append(f"--dpaudit-failure-prob={origin['failure_prob']!r}")
    return shlex.join(words + ["--dpaudit-sequential"] * bool(origin.get("sequential")))
