"""The search for the worst pair of neighbours: spaces of pairs, and where most can be certified."""

from dpaudit.search.ready import clusters, edge, outlier, query_values, which_batch, which_user
from dpaudit.search.running import LEAST_BUDGET, SearchOutcome, search
from dpaudit.search.spaces import Choice, Interval, SearchSpace, Whole, space_from_words
from dpaudit.trials import SearchRecord, Trial, landscape, ranking

__all__ = [
    "LEAST_BUDGET",
    "Choice",
    "Interval",
    "SearchOutcome",
    "SearchRecord",
    "SearchSpace",
    "Trial",
    "Whole",
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
