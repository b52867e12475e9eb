"""The ledger: an executable verdict for every numbered statement of a paper.

A check is a function in a ``ledger_<paper>.py`` file::

    @statement("gm.lemma11")
    def contraction(ledger):
        ledger.falsify(Box(a=Interval(0, 4), b=Interval(0, 4), angle=Interval(0, 3.15)), sides)

pytest and ``dpaudit run`` collect it beside the audits. The rows that a paper must account for lie
in ``statements/<paper>.md`` beside it; a row without a check is shown as open.

Names are imported when they are first used: rows can be read, stored and shown without hypothesis.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.ledger.boxes import Array, Box
    from dpaudit.ledger.checks import Ledger
    from dpaudit.ledger.falsifying import falsify, sweep
    from dpaudit.ledger.findings import (
        Attack,
        Breach,
        LedgerVerdict,
        Method,
        Power,
        Repair,
        StatementResult,
    )
    from dpaudit.ledger.statements import (
        Mark,
        Statement,
        marked,
        paper_of,
        read_statements,
        rows_of,
        statement,
    )

NEEDS_HYPOTHESIS = "checks of statements need hypothesis: pip install 'dpaudit[ledger]'"

_HOME = {
    "Array": "boxes",
    "Box": "boxes",
    "Ledger": "checks",
    "falsify": "falsifying",
    "sweep": "falsifying",
    "Attack": "findings",
    "Breach": "findings",
    "LedgerVerdict": "findings",
    "Method": "findings",
    "Power": "findings",
    "Repair": "findings",
    "StatementResult": "findings",
    "Mark": "statements",
    "Statement": "statements",
    "marked": "statements",
    "paper_of": "statements",
    "read_statements": "statements",
    "rows_of": "statements",
    "statement": "statements",
}

__all__ = [
    "NEEDS_HYPOTHESIS",
    "Array",
    "Attack",
    "Box",
    "Breach",
    "Ledger",
    "LedgerVerdict",
    "Mark",
    "Method",
    "Power",
    "Repair",
    "Statement",
    "StatementResult",
    "falsify",
    "marked",
    "paper_of",
    "read_statements",
    "rows_of",
    "statement",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dpaudit.ledger' has no attribute {name!r}")
    try:
        home = importlib.import_module(f"dpaudit.ledger.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "hypothesis":
            raise
        raise ModuleNotFoundError(NEEDS_HYPOTHESIS, name="hypothesis") from None
    value = getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
