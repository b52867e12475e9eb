"""The mark that ties a check to the statement that it attacks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.ledger.paper import ID
from dpaudit.ledger.rows import LedgerVerdict

_MARK = "__dpaudit_statement__"
_Check = TypeVar("_Check", bound=Callable[..., Any])


@dataclass(frozen=True)
class Mark:
    """What :func:`statement` leaves on a check.

    Parameters
    ----------
    id : str
        Of the statement.
    kind : str
        Of a statement that stands in no table.
    expected : LedgerVerdict
        What the check is known to find.
    replays : bool
        Whether a replay must reach the same numbers.
    text : str
        The statement, as the docstring of the check words it.
    found : str
        What the docstring says besides: what was found.
    """

    id: str
    kind: str = ""
    expected: LedgerVerdict = LedgerVerdict.HOLDS
    replays: bool = True
    text: str = ""
    found: str = ""


def statement(
    id: str,
    *,
    kind: str = "",
    expected: LedgerVerdict | str = LedgerVerdict.HOLDS,
    replays: bool = True,
) -> Callable[[_Check], _Check]:
    """Mark a function as the check of one statement: ``@statement("gm.lemma11")``.

    pytest collects it from ``ledger_*.py`` files, whatever its name. It takes the fixture
    ``ledger``, a :class:`dpaudit.ledger.Ledger`, and attacks the statement with it. Its docstring
    begins with the statement, word for word as in ``statements.md``, and goes on with what was
    found.

    Parameters
    ----------
    id : str
        Short name of the paper, a dot, and a name within it.
    kind : str, optional
        Of a statement that stands in no ``statements.md``.
    expected : LedgerVerdict
        What the check is known to find; a run fails when it finds otherwise.
    replays : bool
        False for a check that measures seconds: a replay must reach its verdict, not its numbers.

    Raises
    ------
    ArgumentError
        When the id has no dot or holds other characters than letters, digits, - and _, or when
        `expected` is no verdict.
    """
    _validate.text(empty=True, kind=kind)
    _validate.flag(replays=replays)
    if not ID.fullmatch(_validate.text(id=id)):
        raise ArgumentError(f'id must be of the form "paper.name", got {id!r}')
    _validate.choice(tuple(LedgerVerdict), expected=expected)

    def mark(check: _Check) -> _Check:
        text, _, found = (inspect.getdoc(check) or "").partition("\n\n")
        paragraphs = (" ".join(part.split()) for part in found.split("\n\n"))
        said = Mark(
            id, kind, LedgerVerdict(expected), replays, plain_words(text), "\n".join(paragraphs)
        )
        setattr(check, _MARK, said)
        check.__test__ = True  # type: ignore[attr-defined]  # what pytest collects by any name
        return check

    return mark


def marked(function: Any) -> Mark | None:
    """Return what a function checks; None when it checks no statement."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Mark) else None


def plain_words(text: str) -> str:
    """Return a text on one line, as two wordings are compared."""
    return " ".join(text.split())
