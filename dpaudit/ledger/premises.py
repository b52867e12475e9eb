"""What a row rests on: statements that are refuted, or whose proof is broken, shake those above."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpaudit.ledger.rows import LedgerVerdict, StatementResult

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
