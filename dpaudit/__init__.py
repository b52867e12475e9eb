"""dpaudit: pytest for privacy.

Audit a mechanism against its claim with :func:`audit`; see the README for the command line.
"""

from dpaudit.audit import audit
from dpaudit.claims import ApproxDP, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import DpauditError, MechanismError, PairError, StoreError
from dpaudit.neighbors import NeighborPair, PairFamily
from dpaudit.relations import Relation, within_sensitivity
from dpaudit.results import AuditResult, Verdict

__all__ = [
    "ApproxDP",
    "AuditResult",
    "DpauditError",
    "GaussianDP",
    "MechanismError",
    "NeighborPair",
    "PairError",
    "PairFamily",
    "PureDP",
    "Relation",
    "RenyiDP",
    "StoreError",
    "Verdict",
    "ZeroConcentratedDP",
    "audit",
    "within_sensitivity",
]
