"""What an audit found: plain data, its words and its pictures."""

from dpaudit.results.estimates import (
    Estimate,
    Histogram,
    LongProfile,
    Profile,
    SequentialPath,
    Slack,
    SlackPoint,
    Witness,
)
from dpaudit.results.infos import tradeoff_info
from dpaudit.results.landscapes import landscape_info, search_words
from dpaudit.results.result import SCHEMA_VERSION, AuditResult
from dpaudit.results.rounding import at_least, at_most, beyond
from dpaudit.results.status import OUTCOMES, Outcome, outcome_of, surprise, worst
from dpaudit.results.verdicts import Expectation, TwinResult, Verdict
from dpaudit.results.words import beside, least, number, short

__all__ = [
    "OUTCOMES",
    "SCHEMA_VERSION",
    "AuditResult",
    "Estimate",
    "Expectation",
    "Histogram",
    "LongProfile",
    "Outcome",
    "Profile",
    "SequentialPath",
    "Slack",
    "SlackPoint",
    "TwinResult",
    "Verdict",
    "Witness",
    "at_least",
    "at_most",
    "beside",
    "beyond",
    "landscape_info",
    "least",
    "number",
    "outcome_of",
    "search_words",
    "short",
    "surprise",
    "tradeoff_info",
    "worst",
]
