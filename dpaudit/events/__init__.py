"""Distinguishing events.

Events are learnt on exploration draws and frozen before certification.
"""

from dpaudit.events.bits import FloatAttack, explanation
from dpaudit.events.code import best_event_with_code, event_code
from dpaudit.events.compared import separations
from dpaudit.events.cuts import approximate_lower, approximate_upper, expectation, scalar_score
from dpaudit.events.encoding import Column, Encoder, number_words, row_words
from dpaudit.events.event import LEARN_SHARE, Event, Goal, Guess, Selection
from dpaudit.events.learning import learn
from dpaudit.events.scores import OutcomeScore, TableScore

__all__ = [
    "LEARN_SHARE",
    "Column",
    "Encoder",
    "Event",
    "FloatAttack",
    "Goal",
    "Guess",
    "OutcomeScore",
    "Selection",
    "TableScore",
    "approximate_lower",
    "approximate_upper",
    "best_event_with_code",
    "event_code",
    "expectation",
    "explanation",
    "learn",
    "number_words",
    "row_words",
    "scalar_score",
    "separations",
]
