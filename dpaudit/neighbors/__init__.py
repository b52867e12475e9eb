"""Neighbouring pairs: recipes that build adversarial ones, families, spaces, and the portfolio.

Datasets are arrays ``[n_users, m, ...]``: axis 0 is the user, axis 1 that user's items. A recipe
returns one :class:`NeighborPair` and documents the weakness that it aims at; a space holds pairs
among which :mod:`dpaudit.search` looks for the worst; :func:`portfolio` has all of them for an
audit that names no pair. ``RECIPES`` and ``SPACES`` list them by name for the command line.
"""

from dpaudit.neighbors.datasets import (
    all_others_equal,
    clip_boundary_user,
    constant_against_random,
    far_user,
    majority_flip,
    threshold_decider,
    two_clusters,
)
from dpaudit.neighbors.framed import like
from dpaudit.neighbors.members import Portfolio
from dpaudit.neighbors.pairs import NeighborPair, PairFamily, family
from dpaudit.neighbors.portfolio import portfolio
from dpaudit.neighbors.presets import clusters, edge, outlier, query_values, which_batch, which_user
from dpaudit.neighbors.schema import rows
from dpaudit.neighbors.spaces import (
    Choice,
    Integer,
    Interval,
    Magnitude,
    Point,
    SearchSpace,
    design_points,
    in_words,
    no_valid_pair,
    plain,
)
from dpaudit.neighbors.values import PATTERNS, value_pattern, value_patterns
from dpaudit.neighbors.words import (
    RECIPES,
    SPACES,
    from_recipe,
    pairs_from_words,
    parse_value,
    space_from_words,
)

__all__ = [
    "PATTERNS",
    "RECIPES",
    "SPACES",
    "Choice",
    "Integer",
    "Interval",
    "Magnitude",
    "NeighborPair",
    "PairFamily",
    "Point",
    "Portfolio",
    "SearchSpace",
    "all_others_equal",
    "clip_boundary_user",
    "clusters",
    "constant_against_random",
    "design_points",
    "edge",
    "family",
    "far_user",
    "from_recipe",
    "in_words",
    "like",
    "majority_flip",
    "no_valid_pair",
    "outlier",
    "pairs_from_words",
    "parse_value",
    "plain",
    "portfolio",
    "query_values",
    "rows",
    "space_from_words",
    "threshold_decider",
    "two_clusters",
    "value_pattern",
    "value_patterns",
    "which_batch",
    "which_user",
]
