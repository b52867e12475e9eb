"""Neighbouring pairs: recipes for adversarial pairs, families, spaces, and the portfolio.

Datasets are arrays ``[n_users, m, ...]``. Axis 0 is the user, and axis 1 is the item of that user.
A recipe returns one :class:`NeighborPair`, or a :class:`SearchSpace` of pairs. The documentation of
a recipe says which weakness the recipe targets. All recipes share the keyword arguments
``n_users``, ``m``, ``dim``, ``low``, ``high`` and ``relation``. The table :data:`RECIPES` lists all
recipes. An audit without a pair searches the pairs of :func:`portfolio`.
"""

from dpaudit.neighbors.frames import Schema
from dpaudit.neighbors.pairs import AllPairs, NeighborPair, PairFamily, family
from dpaudit.neighbors.portfolio import Portfolio, each, portfolio
from dpaudit.neighbors.recipes import (
    RECIPES,
    clip_boundary_user,
    clusters,
    constant_against_random,
    edge,
    far_user,
    majority_flip,
    outlier,
    pairs_from_words,
    query_values,
    some_items,
    threshold_decider,
    two_clusters,
    value_pattern,
    value_patterns,
    which_batch,
    which_user,
)
from dpaudit.neighbors.shrinking import shrink
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
)
from dpaudit.neighbors.steps import item_steps, removal_steps
from dpaudit.neighbors.streams import streams

__all__ = [
    "RECIPES",
    "AllPairs",
    "Choice",
    "Integer",
    "Interval",
    "Magnitude",
    "NeighborPair",
    "PairFamily",
    "Point",
    "Portfolio",
    "Schema",
    "SearchSpace",
    "clip_boundary_user",
    "clusters",
    "constant_against_random",
    "design_points",
    "each",
    "edge",
    "family",
    "far_user",
    "in_words",
    "item_steps",
    "majority_flip",
    "no_valid_pair",
    "outlier",
    "pairs_from_words",
    "portfolio",
    "query_values",
    "removal_steps",
    "shrink",
    "some_items",
    "streams",
    "threshold_decider",
    "two_clusters",
    "value_pattern",
    "value_patterns",
    "which_batch",
    "which_user",
]
