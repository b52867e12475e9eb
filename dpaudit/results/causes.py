"""Likely causes of a refutation."""

from __future__ import annotations

from dataclasses import dataclass

from dpaudit._files import code_name
from dpaudit._json import Count, Nonnegative

CAUSES = {
    "missing": "Whether a key or value exists depends on one user",
    "branch": "A decision on private data has no noise",
    "scale": "The scale of the noise depends on private data",
    "shared": "Several outputs share one noise",
    "float": "The low bits of floating-point noise reveal the value",
    "grid": "The noise has a grid, and the value lies between its points",
    "exact": "A value is released without noise",
    "support": "No amount of noise seems to suffice",
    "relation": "The noise covers a user who is absent, not one who is replaced",
    "outputs": "Each output alone satisfies the claim, and all outputs together do not",
    "items": "The noise covers fewer items than a user has",
    "users": "The noise shrinks with the number of users, and the effect of one user does not",
    "delta": "The claim holds only with a delta",
    "noise": "There is too little noise",
    "repeated": "One line draws noise several times, perhaps each time with the whole budget",
}
"""Kinds of cause, with the most specific first."""


@dataclass(frozen=True)
class CodeLine:
    """One line of the mechanism's code.

    Parameters
    ----------
    file : str
        File, with its directories.
    number : int
        Number of the line.
    code : str
        Text of the line.
    """

    file: str
    number: Count
    code: str

    def __str__(self) -> str:
        return f"line {self.number} of {code_name(self.file)}"


@dataclass(frozen=True)
class Cause:
    """A cause of a refutation that agrees with the draws.

    A cause is never certain. It was found on exploration draws, and another mistake may show the
    same signs.

    Attributes
    ----------
    kind : str
        Kind of the cause, one of the keys of `CAUSES`. The guide on causes explains each kind.
    words : str
        The cause in words.
    evidence : str
        Observations that agree with the cause.
    lines : tuple of CodeLine
        Lines of code that may hold the mistake, with the likeliest first. Empty if no line is
        known.
    factor : (float, float) or None
        Two factors of the noise. With the first factor, exploratory draws refute the claim. With
        the second factor, no violation was found, so the second factor is only an estimate. None if
        the cause is not an amount of noise.
    draws : int
        Number of draws per dataset that all causes took together.
    """

    kind: str
    words: str
    evidence: str
    lines: tuple[CodeLine, ...] = ()
    factor: tuple[Nonnegative, Nonnegative] | None = None
    draws: Count = 0

    @property
    def where(self) -> str:
        """The lines in words. Empty if no line is known, or if `words` names the only line."""
        if len(self.lines) == 1 and str(self.lines[0]) in self.words:
            return ""
        files: dict[str, list[str]] = {}
        for line in self.lines:
            files.setdefault(code_name(line.file), []).append(str(line.number))
        return " and ".join(
            f"line{'s' * (len(numbers) > 1)} {', '.join(numbers)} of {file}"
            for file, numbers in files.items()
        )
