"""dpaudit: pytest for privacy.

Audit a mechanism against its claim with :func:`audit`; see the README for the command line.

Names are imported when they are first used, so that the pytest plugin costs nothing in sessions
that audit nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpaudit.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
    from dpaudit.engine import audit
    from dpaudit.errors import ArgumentError, DpauditError, MechanismError, PairError, StoreError
    from dpaudit.events import FloatAttack
    from dpaudit.ledger import statement
    from dpaudit.mechanisms import unseeded
    from dpaudit.neighbors import NeighborPair, PairFamily
    from dpaudit.planning import plan
    from dpaudit.relations import Relation, within_sensitivity
    from dpaudit.results import AuditResult, Verdict
    from dpaudit.smoothed import Smoothed

_HOME = {
    "audit": "engine",
    "plan": "planning",
    "check_contraction": "ledger.functions",
    "check_lipschitz": "ledger.functions",
    "check_sensitivity": "ledger.functions",
    "FloatAttack": "events",
    "statement": "ledger",
    "Smoothed": "smoothed",
    "ApproxDP": "claims",
    "GaussianDP": "claims",
    "PureDP": "claims",
    "RenyiDP": "claims",
    "ZeroConcentratedDP": "claims",
    "ArgumentError": "errors",
    "DpauditError": "errors",
    "MechanismError": "errors",
    "PairError": "errors",
    "RecipeError": "errors",
    "StoreError": "errors",
    "unseeded": "mechanisms",
    "NeighborPair": "neighbors",
    "PairFamily": "neighbors",
    "Relation": "relations",
    "within_sensitivity": "relations",
    "AuditResult": "results",
    "Verdict": "results",
}

__all__ = [
    "ApproxDP",
    "ArgumentError",
    "AuditResult",
    "DpauditError",
    "FloatAttack",
    "GaussianDP",
    "MechanismError",
    "NeighborPair",
    "PairError",
    "PairFamily",
    "PureDP",
    "RecipeError",
    "Relation",
    "RenyiDP",
    "Smoothed",
    "StoreError",
    "Verdict",
    "ZeroConcentratedDP",
    "audit",
    "check_contraction",
    "check_lipschitz",
    "check_sensitivity",
    "plan",
    "statement",
    "unseeded",
    "within_sensitivity",
]


def __getattr__(name: str) -> Any:
    try:
        if name in _HOME:
            value = getattr(importlib.import_module(f"dpaudit.{_HOME[name]}"), name)
            globals()[name] = value
            return value
        # a submodule: dpaudit.oracles, dpaudit.neighbors, ...
        return importlib.import_module(f"dpaudit.{name}")
    except ModuleNotFoundError as error:
        if error.name == "hypothesis":
            needs = f"dpaudit.{name} needs hypothesis: pip install 'dpaudit[ledger]'"
            raise ModuleNotFoundError(needs, name="hypothesis") from None
        if error.name != f"dpaudit.{name}":
            raise
        raise AttributeError(f"module 'dpaudit' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted(__all__)
