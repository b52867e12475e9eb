"""The search for the worst pair: where most can be certified, among pairs and spaces of pairs.

What is searched is described in :mod:`dpaudit.neighbors`, and at hand here too.
"""

from dpaudit.neighbors import (
    Choice,
    Integer,
    Interval,
    Magnitude,
    Portfolio,
    SearchSpace,
    clusters,
    edge,
    like,
    outlier,
    query_values,
    rows,
    space_from_words,
    which_batch,
    which_user,
)
from dpaudit.search.computed import search_computed
from dpaudit.search.halving import LEAST_BUDGET, SearchResult, search
from dpaudit.search.record import NO_ANSWER, SearchRecord, Trial, landscape, ranking

__all__ = [
    "LEAST_BUDGET",
    "NO_ANSWER",
    "Choice",
    "Integer",
    "Interval",
    "Magnitude",
    "Portfolio",
    "SearchRecord",
    "SearchResult",
    "SearchSpace",
    "Trial",
    "clusters",
    "edge",
    "landscape",
    "like",
    "outlier",
    "query_values",
    "ranking",
    "rows",
    "search",
    "search_computed",
    "space_from_words",
    "which_batch",
    "which_user",
]
