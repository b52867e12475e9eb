"""Soundness, tightness and speed of the engine, as printed in the README."""
