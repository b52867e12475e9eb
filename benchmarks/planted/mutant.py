"""What a planted mistake is, and the tests that several rooms share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Parameters
    ----------
    file : str
        Inside `dpaudit/`; its first part is the room.
    mistake : str
        What somebody did.
    old, new : str
        What stands there, and what the mistake makes of it.
    tests : tuple of str
        Files or tests that are run; one of them must fail.
    equivalent : str
        Why no test can fail, where that is so.
    """

    file: str
    mistake: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def room(self) -> str:
        """The package in which it is planted; "base" for the modules beside the packages."""
        return self.file.partition("/")[0] if "/" in self.file else "base"


AUDIT = ("tests/engine/test_audit.py", "tests/engine/test_audit_input.py")
