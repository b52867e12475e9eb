"""Promises and relations: what a mechanism claims, and what it means to be neighbours."""

from dpaudit.claims.notions import ApproxDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.claims.relations import NORMS, Relation, checked_relation, within_sensitivity

__all__ = [
    "NORMS",
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "PureDP",
    "Relation",
    "RenyiDP",
    "ZeroConcentratedDP",
    "checked_relation",
    "within_sensitivity",
]
