"""One audit: explore, freeze, draw afresh, certify, judge; and how many draws that takes."""

from dpaudit.engine.auditing import MIN_DRAWS, audit, versions
from dpaudit.engine.planning import Plan, detectable_epsilon, draws_to_refute, plan

__all__ = [
    "MIN_DRAWS",
    "Plan",
    "audit",
    "detectable_epsilon",
    "draws_to_refute",
    "plan",
    "versions",
]
