"""Report sections, one for each kind of record, with lines, alerts, pages and changes.

A package registers a :class:`Section` for each of its kinds of records. The entry-point group is
``dpaudit.sections``, and the entry has the name of the kind.
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
from dpaudit.store import Record, StoredRun, by_kind, extensions, kind_of_record, place_of

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Alert:
    """An alert for code scanning.

    Parameters
    ----------
    rule : str
        Key of one of the rules of the section.
    level : {"error", "warning", "note"}
        Severity of the alert.
    text : str
        The finding, in a few lines.
    facts : dict
        Further properties, as plain data.
    accepted : str
        Reason why the finding is known and suppressed. Empty if the finding is not suppressed.
    """

    rule: str
    level: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    accepted: str = ""


class Section(abc.ABC, Generic[R]):
    """Text of the records of one kind in reports."""

    noun: ClassVar[str]
    """Name of one record, such as "audit"."""
    rules: ClassVar[dict[str, tuple[str, str]]]
    """Name and description of each rule for code scanning, by its key."""

    # --- lines of a run ---

    @abc.abstractmethod
    def facts(self, record: R) -> list[str]:
        """Return the facts that a line shows after status and id."""

    @abc.abstractmethod
    def finding(self, record: R, out: Path | None = None, *, verbose: bool = False) -> str:
        """Return the finding in a few lines, with the command that replays it.

        `out` is the directory of the stored results, if the results are stored. With `verbose`, the
        evidence is added.
        """

    @abc.abstractmethod
    def numbers(self, record: R) -> str:
        """Return the verdict and the numbers in one line, with all digits."""

    def is_shown(self, record: R, *, verbose: bool = False) -> bool:
        """Return whether a run prints the finding of a record in addition to its line."""
        return record.mismatch is not None

    def is_judged(self, record: R) -> bool:
        """Return whether a record has a verdict."""
        return True

    def rank(self, record: R) -> int:
        """Return the rank of a record in reports.

        Records with smaller ranks come first.
        """
        return 0

    @abc.abstractmethod
    def tally(self, records: Sequence[R]) -> list[str]:
        """Return lines that count the verdicts."""

    @abc.abstractmethod
    def summary(self, records: Sequence[R], *, verbose: bool = False) -> tuple[str, str] | None:
        """Return title and text of a section of pytest's summary, or None."""

    # --- pages ---

    def card(self, run: StoredRun, records: Sequence[R]) -> Markup:
        """Return a card for the first page.

        Empty if that page shows the records themselves.
        """
        return Markup("")

    def write_pages(self, out: Path, run: StoredRun, records: Sequence[R]) -> None:
        """Write further pages, and remove the pages of an earlier run."""

    def page_lines(self, out: Path, records: Sequence[R]) -> list[str]:
        """Return a line for each further page."""
        return []

    # --- CI systems ---

    @abc.abstractmethod
    def alert(self, record: R) -> Alert | None:
        """Return the alert for code scanning, or None."""

    # --- two runs ---

    def is_compared(self, record: R) -> bool:
        """Return whether a comparison of two runs includes a record."""
        return True

    @abc.abstractmethod
    def changes(self, old: R, new: R) -> Iterator[VerdictChange]:
        """Yield the changes between two records of one id, and whether each is worse."""

    def fault(self, record: R) -> What:
        """Return the kind of change for a new record whose verdict is not the declared verdict."""
        return What.UNDECLARED


def sections() -> dict[str, Section[Any]]:
    """Return the section of each kind of record, by the name of the kind."""
    return extensions("sections")


def section_of(record: Record) -> Section[Any]:
    """Return the section of the kind of a record."""
    return sections()[kind_of_record(record).name]


def by_section(records: Iterable[Record]) -> list[tuple[Section[Any], list[Any]]]:
    """Return each section that has records, with its records."""
    return [(sections()[name], own) for name, own in by_kind(records).items() if own]


def counted(records: Iterable[Record]) -> str:
    """Return the number of records of each kind, such as "1 audit and 3 statements"."""
    found = [(len(own), section.noun) for section, own in by_section(records)]
    return " and ".join(f"{n} {noun}{'s' * (n != 1)}" for n, noun in found) or "0 audits"


def in_order(records: Iterable[Record]) -> list[Record]:
    """Return records kind by kind, with the most urgent records of each kind first."""
    return [r for section, own in by_section(records) for r in sorted(own, key=section.rank)]


def replay_command(record: Record, out: Path | None = None) -> str:
    """Return the command that repeats a record, quoted for a shell.

    `out` is the directory of the stored record, if the record is stored.
    """
    origin = record.origin
    if out is not None:
        return f"dpaudit replay {shlex.quote(str(out / place_of(record)))}"
    if not {"path", "item", "profile"} <= set(origin):
        return f"dpaudit.audit(..., seed={record.seed}, id={record.id!r})"
    words = [
        "python",
        "-m",
        "pytest",
        "--dpaudit",
        f"{origin['path']}::{origin['item']}",
        f"--dpaudit-profile={origin['profile']}",
        f"--dpaudit-seed={record.seed}",
    ]
    if "failure_prob" in origin:
        words.append(f"--dpaudit-failure-prob={origin['failure_prob']!r}")
    return shlex.join(words + ["--dpaudit-sequential"] * bool(origin.get("sequential")))
