"""The mark that connects a check with the statement that it tests."""

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
    """The data that :func:`statement` attaches to a check.

    Parameters
    ----------
    id : str
        Id of the statement.
    kind : str
        Kind of a statement that is in no table.
    expected : LedgerVerdict
        Verdict that the check is expected to reach.
    replays : bool
        Whether a replay must reproduce the same numbers.
    text : str
        The statement, worded as in the check's docstring.
    found : str
        The rest of the docstring, which reports the findings.
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
    """Mark a function as the check of one statement, as in ``@statement("gm.lemma11")``.

    pytest collects the function from ``ledger_*.py`` files, and the function may have any name. The
    function takes the fixture ``ledger``, a :class:`dpaudit.ledger.Ledger`, and tests the statement
    with this fixture. The docstring of the function begins with the statement, word for word as in
    ``statements.md``. The rest of the docstring reports the findings.

    Parameters
    ----------
    id : str
        Short name of the paper, a dot, and a name within the paper.
    kind : str, optional
        Kind of a statement that is in no ``statements.md``.
    expected : LedgerVerdict
        Verdict that the check is expected to reach. A run fails if the check reaches another
        verdict.
    replays : bool
        Whether a replay must reach the same numbers. Use False for a check that measures seconds. A
        replay of such a check must reach only the same verdict.

    Raises
    ------
    ArgumentError
        If the id has no dot, or contains characters other than letters, digits, - and _. Also if
        `expected` is not a verdict.
    """
    _validate.text(empty=True, kind=kind)
    _validate.flag(replays=replays)
    if not ID.fullmatch(_validate.text(id=id)):
        raise ArgumentError(f'id must be of the form "paper.name", got {id!r}')
    _validate.choice(tuple(LedgerVerdict), expected=expected)

    def mark(check: _Check) -> _Check:
        text, _, found = (inspect.getdoc(check) or "").partition("\n\n")
        paragraphs = (" ".join(part.split()) for part in found.split("\n\n"))
        declared = Mark(
            id, kind, LedgerVerdict(expected), replays, plain_words(text), "\n".join(paragraphs)
        )
        setattr(check, _MARK, declared)
        check.__test__ = True  # type: ignore[attr-defined]  # lets pytest collect it by any name
        return check

    return mark


def marked(function: Any) -> Mark | None:
    """Return the mark of a function, or None if the function checks no statement."""
    found = getattr(function, _MARK, None)
    return found if isinstance(found, Mark) else None


def plain_words(text: str) -> str:
    """Return a text on one line, which is the form in which two wordings are compared."""
    return " ".join(text.split())
