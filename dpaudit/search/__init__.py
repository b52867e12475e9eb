"""The search for the worst pair of neighbours: spaces of pairs, and where most can be certified."""

from dpaudit.search.halving import LEAST_BUDGET, SearchResult, search
from dpaudit.search.presets import clusters, edge, outlier, query_values, which_batch, which_user
from dpaudit.search.record import SearchRecord, Trial, landscape, ranking
from dpaudit.search.spaces import Choice, Integer, Interval, SearchSpace, space_from_words

__all__ = [
    "LEAST_BUDGET",
    "Choice",
    "Integer",
    "Interval",
    "SearchRecord",
    "SearchResult",
    "SearchSpace",
    "Trial",
    "clusters",
    "edge",
    "landscape",
    "outlier",
    "query_values",
    "ranking",
    "search",
    "space_from_words",
    "which_batch",
    "which_user",
]
