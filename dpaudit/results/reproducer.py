"""A refutation as a program without dpaudit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reproducer:
    """A program that shows a refutation again, or the reason why there is none.

    Parameters
    ----------
    program : str
        Python source that needs only numpy and the mechanism. Empty if it cannot be written.
    refusal : str
        Reason why the program cannot be written; empty if it can.
    """

    program: str
    refusal: str = ""
