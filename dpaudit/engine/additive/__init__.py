"""Mechanisms that end with noise of known law: audited with that noise integrated out."""

from dpaudit.engine.additive.audit import SmoothedAudit
from dpaudit.mechanisms import Smoothed

__all__ = ["Smoothed", "SmoothedAudit"]
