"""What became of a statement beside what was declared, in the words of a run."""

from __future__ import annotations

from dpaudit.results import Status

_LETTERS = {
    "refuted": ("r", "magenta"),
    "holds_proof_broken": ("p", "cyan"),
    "ambiguous": ("a", "yellow"),
    "vacuous": ("v", "yellow"),
    "open": ("o", "yellow"),
    "holds": (".", "green"),
    "not_executable": ("n", "dim"),
}
"""Letter and style by verdict."""


def row_status(verdict: str, words: str, meaning: str, trouble: str) -> Status:
    """Return what became of a statement.

    Parameters
    ----------
    verdict, words, meaning : str
        Of the verdict: its key, as people read it, and what it says.
    trouble : str
        Why that fails the run; empty where it does not.
    """
    letter, style = _LETTERS[verdict]
    word, category = words.upper(), words
    if trouble:
        word, category, letter, style = f"{word} ({trouble})", "not as declared", "S", "bold red"
    return Status(str(verdict), word, category, letter, style, meaning)
