"""Journal of a run: the records since ``results.json`` was written, with one line per report.

Writing the whole ``results.json`` after every record would take quadratic time. Instead, a run
appends a line for each report, and writes ``results.json`` when the run ends. A reader of an
interrupted run combines the lines with the file ``results.json``. Each line has a checksum. The
last line may be incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypedDict

from dpaudit import _json
from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.store.files import CHECKSUM, LARGEST_JSON, checksum_of

JOURNAL = "results.jsonl"


class Entry(TypedDict):
    """The content that one report added to a run.

    ``run`` is the start of the run, ``ran`` lists the functions that ended, and ``rows`` holds the
    rows of the records by the folder of their kind. ``dropped`` lists the kind and id of each older
    record that is no longer kept.
    """

    run: str
    ran: tuple[str, ...]
    rows: dict[str, Any]
    problems: tuple[str, ...]
    skipped: tuple[str, ...]
    dropped: tuple[tuple[str, ...], ...]
    seconds: _json.Seconds


def append(out: Path, entry: dict[str, Any]) -> None:
    """Add a line that survives the death of the process."""
    path = inside(out, JOURNAL)
    line = json.dumps({**entry, CHECKSUM: checksum_of(entry)}, allow_nan=False)
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def clear(out: Path) -> None:
    """Remove the journal when ``results.json`` holds everything."""
    inside(out, JOURNAL).unlink(missing_ok=True)


def entries(out: Path, run: str) -> list[Entry]:
    """Return the entries of the run that started at this time.

    Raises
    ------
    StoreError
        If a line other than the last line is damaged.
    """
    path = inside(out, JOURNAL)
    found: list[Entry] = []
    try:
        lines = read_regular(path, LARGEST_JSON).split(b"\n")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    for number, line in enumerate(lines[:-1], 1):  # an unfinished last line is dropped
        try:
            data = _json.loads(line)
            if not isinstance(data, dict) or data.pop(CHECKSUM, None) != checksum_of(data):
                raise ValueError("it does not match its checksum")
            entry: Entry = _json.decode(Entry, data)
        except ValueError as error:
            raise StoreError(f"{path}, line {number}, is damaged: {error}") from error
        found += [entry] * (entry["run"] == run)
    return found


EARLIER = "in an earlier run, "
"""Beginning of a problem that an earlier run reported."""


def drop_rerun(sentences: Iterable[str], ran: Sequence[str] | set[str]) -> list[str]:
    """Return the sentences except those about functions that ran again or about their files."""
    again = tuple(f"{node}: " for node in {*ran, *(node.partition("::")[0] for node in ran)})
    return [s for s in sentences if not s.removeprefix(EARLIER).startswith(again)]
