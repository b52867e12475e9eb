"""Benchmarks in the format of airspeed velocity.

The commands are `asv run` and `asv publish`.
"""
