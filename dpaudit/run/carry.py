"""Data that a test report carries from the process of an audit to the process that stores it."""

from __future__ import annotations

import base64
import json
import re
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dpaudit.results import Status
    from dpaudit.store import Record

_ATTRIBUTE = "dpaudit"
"""Attribute of a report. pytest-xdist transfers attributes, and JUnit files do not print them."""

DAMAGED = "dpaudit_damaged"
"""Attribute of the report of a function after which its process is restarted."""

ENDS_RUN = "dpaudit_ends_run"
"""Attribute of a report: the reason why no other audit can be made either."""

_PRINTED = 20_000
"""Characters of captured output that a report carries."""

collected = pytest.StashKey[dict[Path, Any]]()
"""Files that this run has collected, with data that the package of their records keeps on them."""

_decoded: weakref.WeakKeyDictionary[Any, Cargo] = weakref.WeakKeyDictionary()


@dataclass(frozen=True)
class Cargo:
    """The data that a report carries.

    Parameters
    ----------
    records : tuple of Record
        Records of the function.
    packed : tuple
        The same records in the form that :func:`dpaudit.store.pack` returns.
    problems : tuple of str
        Messages about stored files that could not be reused.
    whole : bool
        Whether the function ended normally, which makes its verdict valid.
    taken : bool
        Whether the records are those of an earlier run, because nothing that they need changed.
    disk : str
        Reason why a file could not be written, if the function ended because of this.
    """

    records: tuple[Record, ...] = ()
    packed: tuple[tuple[dict[str, Any], bytes | None], ...] = ()
    problems: tuple[str, ...] = ()
    whole: bool = False
    taken: bool = False
    disk: str = ""

    @property
    def status(self) -> Status | None:
        """Status of the whole function; None if the function reached no verdict."""
        if not (self.whole and self.records):
            return None
        from dpaudit.results import worst

        return worst(record.status for record in self.records)


def load_cargo(
    report: pytest.TestReport,
    records: Iterable[Record],
    problems: Iterable[str],
    *,
    whole: bool,
    taken: bool = False,
    disk: str = "",
) -> None:
    """Attach results to a report."""
    from dpaudit.store import pack

    packed = []
    for record in records:
        document, pair = pack(record)
        beside = None if pair is None else base64.b64encode(pair).decode()
        packed.append({"document": document, "pair": beside})
    cargo = {"records": packed, "problems": list(problems)}
    cargo |= {"whole": whole, "taken": taken, "disk": disk}
    setattr(report, _ATTRIBUTE, json.dumps(cargo, allow_nan=False))


def cargo_of(report: pytest.TestReport | pytest.CollectReport) -> Cargo:
    """Return the data that a report carries, decoded only once."""
    words = getattr(report, _ATTRIBUTE, None)
    if words is None:
        return Cargo()
    if report not in _decoded:
        from dpaudit.store import unpack

        data = json.loads(words)
        packed = tuple(
            (r["document"], None if r["pair"] is None else base64.b64decode(r["pair"]))
            for r in data["records"]
        )
        records = tuple(unpack(document, pair) for document, pair in packed)
        problems, rest = tuple(data["problems"]), (data["whole"], data["taken"], data["disk"])
        _decoded[report] = Cargo(records, packed, problems, *rest)
    return _decoded[report]


def shortened(text: str) -> str:
    """Return the part of captured output that a report carries."""
    if len(text) <= _PRINTED:
        return text
    return f"{text[:_PRINTED]}\n[{len(text) - _PRINTED:,} more characters are not shown]\n"


# --- why a test or a file was not run to its end ---


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason why a test or a file was skipped."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return one line with the reason why a test or a file failed."""
    if took_process_down(report) and str(report.longrepr).startswith("worker "):
        return "its process ended: the code under audit crashed it, or called os._exit"
    text = str(report.longrepr)
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (text if crash is None else str(crash.message)).strip().splitlines()
    reason = lines[0 if crash is not None else -1].removeprefix("E ").strip() if lines else "failed"
    # If a file cannot be collected, the line contains the last place in the file's traceback.
    places = re.findall(r'^(?:E +File "([^"]+)", line (\d+)|(\S+\.py):(\d+): in )', text, re.M)
    if isinstance(report, pytest.CollectReport) and places:
        quoted, line, file, number = places[-1]
        from dpaudit.report import typed

        reason = f"{reason} ({typed(Path(quoted or file))}, line {line or number})"
    return reason


def took_process_down(report: pytest.TestReport | pytest.CollectReport) -> bool:
    """Return whether pytest-xdist made a report itself, for a worker that has ended."""
    return getattr(report, "when", None) == "???"
