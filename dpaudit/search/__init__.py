"""Search among pairs and spaces of pairs for the pair on which most can be certified.

The package :mod:`dpaudit.neighbors` describes the pairs and spaces that can be searched.
"""

from dpaudit.search.halving import LEAST_BUDGET, search, search_computed
from dpaudit.search.record import NO_ANSWER, SearchRecord, Trial, landscape, ranking
from dpaudit.search.values import least_budget, search_values

__all__ = [
    "LEAST_BUDGET",
    "NO_ANSWER",
    "SearchRecord",
    "Trial",
    "landscape",
    "least_budget",
    "ranking",
    "search",
    "search_computed",
    "search_values",
]
