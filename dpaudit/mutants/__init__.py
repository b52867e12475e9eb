"""Mutants: copies of a mechanism with one mistake each, which an audit should detect.

:func:`of_noise` makes the mutants of a mechanism's noise, and :func:`of_code` makes the mutants of
its other lines. An audit uses both. :func:`without`, :func:`patch`, :func:`quieter` and
:func:`scaled` make other mutants. Pass these in the argument
``mutants`` of an audit.
"""

from dpaudit.mutants.added import GAUSSIAN, LAPLACE, AddedNoise, added_noise
from dpaudit.mutants.code import Change, patch, quieter, scaled, without
from dpaudit.mutants.edits import NO_CHANGE, CodeMutants, forget, of_code
from dpaudit.mutants.memory import Memory, code_hash
from dpaudit.mutants.mistakes import BUDGET, CLIPPING, KINDS
from dpaudit.mutants.noise import (
    ALL,
    ALL_NOISE,
    CERTAIN,
    Amplifier,
    ChangedNoise,
    Mutant,
    NoiseMutants,
    amplifiers,
    of_noise,
)
from dpaudit.mutants.program import NotAlone, Program
from dpaudit.mutants.recorder import Key, Line
from dpaudit.mutants.sites import Recording, are_apart, range_words, record, uneven_noise
from dpaudit.mutants.source import amount_lines, branch, text_of, traced, value_lines
from dpaudit.mutants.treatments import (
    HALVED,
    LEAST,
    RAISED,
    REMOVED,
    SCALED,
    TREATMENTS,
    Treatment,
)

__all__ = [
    "ALL",
    "ALL_NOISE",
    "BUDGET",
    "CERTAIN",
    "CLIPPING",
    "GAUSSIAN",
    "HALVED",
    "KINDS",
    "LAPLACE",
    "LEAST",
    "NO_CHANGE",
    "RAISED",
    "REMOVED",
    "SCALED",
    "TREATMENTS",
    "AddedNoise",
    "Amplifier",
    "Change",
    "ChangedNoise",
    "CodeMutants",
    "Key",
    "Line",
    "Memory",
    "Mutant",
    "NoiseMutants",
    "NotAlone",
    "Program",
    "Recording",
    "Treatment",
    "added_noise",
    "amount_lines",
    "amplifiers",
    "are_apart",
    "branch",
    "code_hash",
    "forget",
    "of_code",
    "of_noise",
    "patch",
    "quieter",
    "range_words",
    "record",
    "scaled",
    "text_of",
    "traced",
    "uneven_noise",
    "value_lines",
    "without",
]
