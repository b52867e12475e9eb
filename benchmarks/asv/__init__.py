"""Benchmarks in the format of airspeed velocity: `asv run`, `asv publish`."""
