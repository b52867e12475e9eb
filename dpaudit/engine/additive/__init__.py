"""Audits of mechanisms whose final noise has a known distribution, which is integrated out."""
