"""Results of audits: plain data, their descriptions in words, and their charts."""

from dpaudit.results.causes import CAUSES, Cause, CodeLine
from dpaudit.results.estimates import (
    BY_RANK,
    Accumulated,
    CanaryGuesses,
    Estimate,
    Histogram,
    LogEValue,
    LongProfile,
    MarginPoint,
    NoiseMargin,
    Origin,
    Profile,
    SequentialPath,
    Witness,
    log_mean,
)
from dpaudit.results.family import holm
from dpaudit.results.mutants import (
    MutantResult,
    MutantStatus,
    mutation_score,
    score_words,
    surviving_code,
    undetected,
    undetected_halvings,
    undetected_words,
)
from dpaudit.results.reproducer import Reproducer
from dpaudit.results.result import SCHEMA_VERSION, AuditResult, Diagnostics, frame_of_results
from dpaudit.results.smallest import SmallestPair
from dpaudit.results.verdicts import STATUSES, Expectation, Status, Verdict, worst
from dpaudit.results.words import at_least, at_most, beside, beyond, least, number, short

__all__ = [
    "BY_RANK",
    "CAUSES",
    "SCHEMA_VERSION",
    "STATUSES",
    "Accumulated",
    "AuditResult",
    "CanaryGuesses",
    "Cause",
    "CodeLine",
    "Diagnostics",
    "Estimate",
    "Expectation",
    "Histogram",
    "LogEValue",
    "LongProfile",
    "MarginPoint",
    "MutantResult",
    "MutantStatus",
    "NoiseMargin",
    "Origin",
    "Profile",
    "Reproducer",
    "SequentialPath",
    "SmallestPair",
    "Status",
    "Verdict",
    "Witness",
    "at_least",
    "at_most",
    "beside",
    "beyond",
    "frame_of_results",
    "holm",
    "least",
    "log_mean",
    "mutation_score",
    "number",
    "score_words",
    "short",
    "surviving_code",
    "undetected",
    "undetected_halvings",
    "undetected_words",
    "worst",
]
