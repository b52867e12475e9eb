"""Claims and relations.

A claim is a mechanism's promise, and a relation defines neighbours.
"""

from dpaudit.claims.libraries import Accounted, from_opendp
from dpaudit.claims.local import ALL_REPORTS, LocalDP, LongitudinalDP, MetricDP
from dpaudit.claims.notions import (
    LARGEST_EPSILON,
    NORMS,
    ApproxDP,
    ApproxZCDP,
    Claim,
    GaussianDP,
    PureDP,
    Relation,
    RenyiDP,
    ZeroConcentratedDP,
    checked_relation,
    custom_relation,
    replace_label,
    within_sensitivity,
)

__all__ = [
    "ALL_REPORTS",
    "LARGEST_EPSILON",
    "NORMS",
    "Accounted",
    "ApproxDP",
    "ApproxZCDP",
    "Claim",
    "GaussianDP",
    "LocalDP",
    "LongitudinalDP",
    "MetricDP",
    "PureDP",
    "Relation",
    "RenyiDP",
    "ZeroConcentratedDP",
    "checked_relation",
    "custom_relation",
    "from_opendp",
    "replace_label",
    "within_sensitivity",
]
