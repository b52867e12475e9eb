"""What an audit found: plain data, its words and its pictures."""

from dpaudit.results.estimates import (
    BY_RANK,
    CanaryGuesses,
    Estimate,
    Histogram,
    LongProfile,
    MarginPoint,
    NoiseMargin,
    Origin,
    Profile,
    SequentialPath,
    Witness,
)
from dpaudit.results.family import holm
from dpaudit.results.mutants import (
    Fate,
    MutantResult,
    half_noticed,
    mutation_score,
    score_words,
    unnoticed,
    unnoticed_words,
)
from dpaudit.results.result import SCHEMA_VERSION, AuditResult, Diagnostics
from dpaudit.results.verdicts import STATUSES, Expectation, Status, Verdict, worst
from dpaudit.results.words import at_least, at_most, beside, beyond, least, number, short

__all__ = [
    "BY_RANK",
    "SCHEMA_VERSION",
    "STATUSES",
    "AuditResult",
    "CanaryGuesses",
    "Diagnostics",
    "Estimate",
    "Expectation",
    "Fate",
    "Histogram",
    "LongProfile",
    "MarginPoint",
    "MutantResult",
    "NoiseMargin",
    "Origin",
    "Profile",
    "SequentialPath",
    "Status",
    "Verdict",
    "Witness",
    "at_least",
    "at_most",
    "beside",
    "beyond",
    "half_noticed",
    "holm",
    "least",
    "mutation_score",
    "number",
    "score_words",
    "short",
    "unnoticed",
    "unnoticed_words",
    "worst",
]
