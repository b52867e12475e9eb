"""A refutation as a program without dpaudit, and as the text of an issue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpaudit.results.result import AuditResult


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


def issue_of(result: AuditResult, program: str) -> str:
    """Return a refutation as the text of an issue, in Markdown.

    Parameters
    ----------
    result : AuditResult
        The result.
    program : str
        The program that shows the refutation; empty if there is none.
    """
    smallest = result.smallest
    witness = result.witness if smallest is None else smallest.witness
    epsilon = result.epsilon if smallest is None else smallest.epsilon
    pair = result.pair_words if smallest is None else smallest.words
    versions = ", ".join(f"{name} {one}" for name, one in result.diagnostics.versions.items())
    parts = [
        f"# {result.mechanism} does not satisfy its privacy claim",
        result.sentence(),
        f"**Smallest pair of datasets:** {pair}.",
        f"**Observed on this pair:** {witness.sentence()}. This certifies epsilon >= "
        f"{epsilon.lower:.4g}, except with probability {epsilon.failure_prob:g}.",
    ]
    for cause, label in zip(result.likely_causes, ("Likely cause", "Or"), strict=False):
        lines = "".join(f"\n    {line.code.strip()}  # {line}" for line in cause.lines)
        words = f"**{label}:** {cause.words}. The evidence: {cause.evidence}."
        parts.append(words + f"\n{lines}" * bool(lines))
    if program:
        local = ("import sys", "sys.path.insert(")  # a reader of the issue has other folders
        shown = [line for line in program.splitlines() if not line.startswith(local)]
        program = "\n".join(shown)
        parts.append(f"This program shows it again:\n\n```python\n{program}\n```")
    return "\n\n".join([*parts, f"Versions: {versions}."]) + "\n"
