"""Mechanisms that end with noise of known distribution: audited with that noise integrated out."""

from dpaudit.engine.additive.audit import AdditiveNoiseAudit
from dpaudit.mechanisms import AdditiveNoise

__all__ = ["AdditiveNoise", "AdditiveNoiseAudit"]
