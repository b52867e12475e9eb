"""Files for CI systems, which a run writes at its end: JUnit XML and SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpaudit.errors import StoreError

if TYPE_CHECKING:
    from dpaudit.store import Record, Run


@dataclass(frozen=True)
class Exports:
    """Which files are wanted.

    Parameters
    ----------
    junit, sarif : Path or None
        Where to; None for a file that nobody asked for.
    """

    junit: Path | None = None
    sarif: Path | None = None

    def clear(self) -> None:
        """Remove what earlier runs wrote there, which must not pass for what this one finds.

        Raises
        ------
        StoreError
            Where a file cannot be written, before hours of work.
        """
        from dpaudit.store import write_atomic

        for path in filter(None, (self.junit, self.sarif)):
            if path.is_dir():
                raise StoreError(f"cannot write {path}: it is a directory")
            write_atomic(path, "")
            path.unlink()

    def write(self, run: Run, records: Sequence[Record]) -> None:
        """Write the files of a run, whole or not at all."""
        from dpaudit.report import junit, sarif
        from dpaudit.store import write_atomic

        if self.junit is not None:
            write_atomic(self.junit, junit(run, records))
        if self.sarif is not None:
            write_atomic(self.sarif, sarif(run, records))

    def words(self) -> list[str]:
        """Return a line for each file."""
        return [f"{name}: {path}" for name, path in vars(self).items() if path is not None]
