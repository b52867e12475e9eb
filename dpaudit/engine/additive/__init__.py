"""Audits of mechanisms whose final noise has a known distribution and is integrated out."""
