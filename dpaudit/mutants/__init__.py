"""Mutants: copies of a mechanism with one mistake each, which an audit should detect.

:func:`of_noise` makes the mutants of a mechanism's noise automatically. :func:`without`,
:func:`patch`, :func:`quieter` and :func:`scaled` make other mutants. Pass these in the argument
``mutants`` of an audit.
"""

from dpaudit.mutants.added import LAPLACE, AddedNoise, added_noise
from dpaudit.mutants.code import Change, patch, quieter, scaled, without
from dpaudit.mutants.noise import ALL, ALL_NOISE, CERTAIN, Mutant, NoiseMutants, of_noise
from dpaudit.mutants.sites import record
from dpaudit.mutants.treatments import HALVED, REMOVED, TREATMENTS, Treatment

__all__ = [
    "ALL",
    "ALL_NOISE",
    "CERTAIN",
    "HALVED",
    "LAPLACE",
    "REMOVED",
    "TREATMENTS",
    "AddedNoise",
    "Change",
    "Mutant",
    "NoiseMutants",
    "Treatment",
    "added_noise",
    "of_noise",
    "patch",
    "quieter",
    "record",
    "scaled",
    "without",
]
