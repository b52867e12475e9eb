"""One audit: explore, freeze, draw afresh, certify, judge; and how many draws that takes."""

from dpaudit.engine.auditing import audit
from dpaudit.engine.planning import Plan, detectable_epsilon, draws_to_refute, plan
from dpaudit.engine.provenance import versions
from dpaudit.engine.request import MIN_DRAWS

__all__ = [
    "MIN_DRAWS",
    "Plan",
    "audit",
    "detectable_epsilon",
    "draws_to_refute",
    "plan",
    "versions",
]
