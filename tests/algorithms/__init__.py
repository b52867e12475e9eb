"""Tests of the reference algorithms, exact first."""
