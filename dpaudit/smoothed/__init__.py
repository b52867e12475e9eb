"""Mechanisms that end with noise of known law: audited with that noise integrated out."""

from dpaudit.smoothed.audit import SmoothedAudit
from dpaudit.smoothed.mechanism import Smoothed

__all__ = ["Smoothed", "SmoothedAudit"]
