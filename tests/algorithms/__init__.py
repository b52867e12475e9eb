"""Tests of the reference algorithms, in which exact tests come first."""
