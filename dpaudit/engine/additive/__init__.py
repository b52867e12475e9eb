"""Mechanisms that end with noise of known distribution, which is integrated out."""
