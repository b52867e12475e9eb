"""The class of planted mistakes, and the tests that several packages share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Parameters
    ----------
    file : str
        Path inside `dpaudit/`. The first part of this path is the package.
    mistake : str
        Description of the mistake.
    old, new : str
        The correct text, and the text that replaces it.
    tests : tuple of str
        Test files or single tests to run. At least one of these tests must fail.
    equivalent : str
        The reason if no test can fail.
    """

    file: str
    mistake: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def package(self) -> str:
        """Package of the mistake, or "base" for a module outside of the packages."""
        return self.file.partition("/")[0] if "/" in self.file else "base"


AUDIT = ("tests/engine/test_audit.py", "tests/engine/test_audit_input.py")
