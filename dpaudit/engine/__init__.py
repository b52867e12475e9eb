"""The engine of one audit: explore, freeze, certify on fresh draws, and judge.

The engine also plans the number of draws.
"""

from dpaudit.engine.auditing import (
    ALL_MUTANTS,
    DEFAULT_DRAWS,
    MIN_DRAWS,
    NOISE,
    Pairs,
    Settings,
    audit,
    checked_settings,
)
from dpaudit.engine.certificate import Bound, Certificate
from dpaudit.engine.concluding import versions
from dpaudit.engine.driver import Frozen, Instrument
from dpaudit.engine.margin import noise_margin
from dpaudit.engine.one_run import audit_one_run
from dpaudit.engine.one_run_planning import OneRunPlan, plan_one_run
from dpaudit.engine.outputs import audit_outputs
from dpaudit.engine.planning import Plan, draws_to_refute, plan
from dpaudit.engine.task import Run

__all__ = [
    "ALL_MUTANTS",
    "DEFAULT_DRAWS",
    "MIN_DRAWS",
    "NOISE",
    "Bound",
    "Certificate",
    "Frozen",
    "Instrument",
    "OneRunPlan",
    "Pairs",
    "Plan",
    "Run",
    "Settings",
    "audit",
    "audit_one_run",
    "audit_outputs",
    "checked_settings",
    "draws_to_refute",
    "noise_margin",
    "plan",
    "plan_one_run",
    "versions",
]
