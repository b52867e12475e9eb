"""Mechanisms that the papers share: noise, selection, histograms, means, sparse vector.

Every mechanism has the shape ``f(data, size, *, ..., rng) -> array [size, ...]``: ``size``
independent draws in one vectorised call, from the generator that it is handed.  The samplers
work in floating point: the guarantees are those of the real-valued distributions, and say nothing
about attacks on the low-order bits of a float.
"""
