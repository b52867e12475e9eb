"""Reports: figures, lines of text, and one self-contained HTML page.

Importing this package loads neither matplotlib nor jinja2; rendering does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.ledger.findings import StatementResult
    from dpaudit.results import AuditResult
    from dpaudit.store import Run

__all__ = ["write_report"]


def write_report(
    out: Path,
    run: Run,
    results: Sequence[AuditResult],
    statements: Sequence[StatementResult] = (),
) -> Path:
    """Write ``out/index.html``: one page that needs no other file.

    Where there are statements, they get a page of their own, ``out/ledger.html``, linked from the
    first; where there are none, such a page of an earlier run is removed.

    Parameters
    ----------
    out : Path
        Directory of the run; made when it is missing.
    run : Run
        What was asked for.
    results : sequence of AuditResult
        What was found; may be empty.
    statements : sequence of StatementResult
        Rows of the ledger, in the order of their papers.

    Returns
    -------
    Path
        The written page.

    Raises
    ------
    StoreError
        When the page cannot be written; a page that was there before stays as it was.
    """
    from dpaudit.report.html import write_report as write

    return write(out, run, results, statements)
