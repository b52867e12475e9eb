"""Files for CI systems: JUnit XML, which pytest writes, and SARIF."""

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

    def pytest_options(self) -> list[str]:
        """Return the options by which pytest writes its file.

        A process that was restarted reports its last function again, which takes no time. With the
        time of the call alone, pytest makes no second test case of that report.
        """
        if self.junit is None:
            return []
        settings = ("junit_suite_name=dpaudit", "junit_duration_report=call")
        return [f"--junitxml={self.junit}", *(word for own in settings for word in ("-o", own))]

    def write(self, run: Run, records: Sequence[Record]) -> None:
        """Write the SARIF file of a run, whole or not at all."""
        from dpaudit.report import sarif
        from dpaudit.store import write_atomic

        if self.sarif is not None:
            write_atomic(self.sarif, sarif(run, records))

    def words(self) -> list[str]:
        """Return a line for each file."""
        return [f"{name}: {path}" for name, path in vars(self).items() if path is not None]
