"""The file ``mutants.md`` of a paper: mutants that no check kills, and the reasons.

``dpaudit ledger PAPER --mutants`` writes the file next to ``statements.md``::

    # Mutants of Private Geometric Median in Nearly-Linear Time

    - sources: 3f2a...
    - statements: 812 killed, 130 weaker, 40 loose, 3 survived
    - algorithms: 560 killed, 4 survived

    ## Loose

    - `audits/geometric_median/ledger_center.py::shift: 3 -> 2` (gm.lemma11, ratio 0.66)

    ## Survived

    - `algorithms/geometric_median/center.py::fast_center: k // 2 -> k`: a reason, written by hand

    ## Left out

    - `algorithms/geometric_median/center.py::_chunks`: the function only divides the work

A reason follows the colon, is written by hand, and is kept. Functions and files under "Left out"
are not mutated. Mutants under "Late" survive the profile quick, and a larger profile kills them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from dpaudit._files import write_atomic
from dpaudit.errors import StoreError

MUTANTS = "mutants.md"
"""File next to the ledger files of a paper that holds its surviving mutants."""

_LISTED = ("loose", "late", "survived", "not run")
_LEFT_OUT = "left out"
_ENTRY = re.compile(r"- `(?P<id>[^`]+)`(?: \((?P<facts>[^()]*)\))?(?:: (?P<why>.*))?")
_COUNTS = re.compile(r"- (?P<kind>statements|algorithms): (?P<counts>.+)")
_RATIO = "ratio "


@dataclass(frozen=True)
class Survivor:
    """A mutant that no check killed.

    Parameters
    ----------
    id : str
        File, function, old code and new code.
    outcome : str
        "loose", "late", "survived" or "not run".
    rows : tuple of str
        Statements whose checks run a formula. Empty for a mutant of an algorithm.
    tightest : float or None
        Largest ratio lhs / rhs of a mutant of a statement.
    why : str
        Reason why the mutant is harmless or true, written by hand.
    """

    id: str
    outcome: str
    rows: tuple[str, ...] = ()
    tightest: float | None = None
    why: str = ""

    @property
    def words(self) -> str:
        """The old and the new code."""
        return self.id.partition(": ")[2]

    @property
    def place(self) -> str:
        """File and function."""
        return self.id.partition(": ")[0]

    @property
    def is_hole(self) -> bool:
        """Whether a mistake of this kind would not be noticed."""
        return self.outcome != "loose" and not self.why


@dataclass(frozen=True)
class Mutants:
    """What the mutants of a paper showed.

    Parameters
    ----------
    sources : str
        Hash of the files that were mutated and run.
    statements, algorithms : dict
        Number of mutants by outcome.
    survivors : tuple of Survivor
        Mutants that no check killed, without those that are implied by their statements.
    left_out : dict
        Reasons why a file or a function is not mutated, by file or file::function.
    """

    sources: str = ""
    statements: dict[str, int] = field(default_factory=dict)
    algorithms: dict[str, int] = field(default_factory=dict)
    survivors: tuple[Survivor, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def holes(self) -> tuple[Survivor, ...]:
        """Mutants that would not be noticed, without a reason."""
        return tuple(survivor for survivor in self.survivors if survivor.is_hole)

    def of_row(self, id: str) -> tuple[Survivor, ...]:
        """Return the mutants of the formulas of one statement."""
        return tuple(survivor for survivor in self.survivors if id in survivor.rows)


def read_mutants(path: Path) -> Mutants:
    """Read a file ``mutants.md``; a missing file holds no mutants.

    Raises
    ------
    StoreError
        If a line cannot be read. The message gives the file and the line.
    """
    if not path.is_file():
        return Mutants()
    sources, section = "", ""
    counts: dict[str, dict[str, int]] = {"statements": {}, "algorithms": {}}
    survivors: list[Survivor] = []
    left_out: dict[str, str] = {}
    for number, line in _joined(path):
        found = _ENTRY.fullmatch(line)
        if line.startswith("## "):
            section = line[3:].strip().lower()
            if section not in (*_LISTED, _LEFT_OUT):
                known = ", ".join((*_LISTED, _LEFT_OUT))
                raise StoreError(f"{path}:{number} must be a section of {known}, got {line!r}")
        elif line.startswith("- sources: "):
            sources = line.removeprefix("- sources: ")
        elif count := _COUNTS.fullmatch(line):
            counts[count["kind"]] = _numbers(count["counts"])
        elif section == _LEFT_OUT and found and found["why"]:
            left_out[found["id"]] = found["why"]
        elif section in _LISTED and found:
            survivors.append(_survivor(section, found))
        elif section or line.startswith("- "):
            raise StoreError(f"{path}:{number} must be - `mutant` (facts): reason, got {line!r}")
    return Mutants(sources, **counts, survivors=tuple(survivors), left_out=left_out)


def _joined(path: Path) -> list[tuple[int, str]]:
    """Return the lines with their numbers; an indented line continues the line before."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("  ") and lines:
            lines[-1] = lines[-1][0], f"{lines[-1][1]} {line.strip()}"
        elif line.strip():
            lines.append((number, line.strip()))
    return lines


def _numbers(text: str) -> dict[str, int]:
    parts = (part.strip().partition(" ") for part in text.split(","))
    return {name: int(count.replace("_", "")) for count, _, name in parts if count.isdecimal()}


def _survivor(outcome: str, found: re.Match[str]) -> Survivor:
    rows, tightest = [], None
    for fact in filter(None, (found["facts"] or "").split(", ")):
        if fact.startswith(_RATIO):
            tightest = float(fact.removeprefix(_RATIO))
        else:
            rows.append(fact)
    return Survivor(found["id"], outcome, tuple(rows), tightest, found["why"] or "")


def write_mutants(path: Path, title: str, found: Mutants) -> None:
    """Write a file ``mutants.md``."""
    paper = path.parent.name
    lines = [
        f"# Mutants of {title}",
        "",
        f"`dpaudit ledger {paper} --mutants` writes this file. A reason follows a colon, is "
        "written by hand, and is kept.",
        "",
        f"- sources: {found.sources}",
    ]
    for kind, counts in (("statements", found.statements), ("algorithms", found.algorithms)):
        if counts:
            words = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
            lines.append(f"- {kind}: {words}")
    for outcome in _LISTED:
        own = sorted((s for s in found.survivors if s.outcome == outcome), key=lambda s: s.id)
        if own:
            lines += ["", f"## {outcome.capitalize()}", "", *map(_line, own)]
    if found.left_out:
        entries = [f"- `{id}`: {why}" for id, why in sorted(found.left_out.items())]
        lines += ["", f"## {_LEFT_OUT.capitalize()}", "", *entries]
    write_atomic(path, "\n".join(lines) + "\n")


def _line(survivor: Survivor) -> str:
    facts = list(survivor.rows)
    if survivor.tightest is not None:
        facts.append(f"{_RATIO}{survivor.tightest:.3g}")
    words = f" ({', '.join(facts)})" if facts else ""
    return f"- `{survivor.id}`{words}" + f": {survivor.why}" * bool(survivor.why)


def kept_reasons(before: Mutants, survivors: Iterable[Survivor]) -> tuple[Survivor, ...]:
    """Return survivors with the reasons that a file had for them."""
    reasons = {survivor.id: survivor.why for survivor in before.survivors}
    return tuple(
        Survivor(s.id, s.outcome, s.rows, s.tightest, reasons.get(s.id, "")) for s in survivors
    )


def digest(root: Path, files: Iterable[str]) -> str:
    """Return a hash of the contents of files."""
    total = hashlib.sha256()
    for file in sorted(set(files)):
        path = root / file
        total.update(f"{file}\0".encode())
        total.update(path.read_bytes() if path.is_file() else b"")
    return total.hexdigest()[:16]
