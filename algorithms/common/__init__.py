"""Mechanisms that several papers share: noise, selection, histograms, means, sparse vector.

Every mechanism has the form ``f(data, size, *, ..., rng) -> array [size, ...]``. One vectorised
call uses the generator `rng` and returns ``size`` independent draws.

The samplers work in floating point. The guarantees hold for the real-valued distributions. The
guarantees do not cover attacks on the low-order bits of a float.
"""
