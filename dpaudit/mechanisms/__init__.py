"""Calling a mechanism with care: the shapes it may have, checks of its contract, additive noise."""

from dpaudit.mechanisms.additive import AdditiveNoise, slack
from dpaudit.mechanisms.independence import (
    SUSPICION,
    IndependenceCheck,
    is_constant,
    same_draws,
)
from dpaudit.mechanisms.protocols import (
    ExactMechanism,
    SampledMechanism,
    is_seeded,
    mechanism_name,
    unseeded,
)
from dpaudit.mechanisms.rows import as_rows, joined, kind_of, words_of_draws
from dpaudit.mechanisms.sampler import CALLS, Sampler
from dpaudit.mechanisms.streams import generator
from dpaudit.mechanisms.watch import Watch

__all__ = [
    "CALLS",
    "SUSPICION",
    "AdditiveNoise",
    "ExactMechanism",
    "IndependenceCheck",
    "SampledMechanism",
    "Sampler",
    "Watch",
    "as_rows",
    "generator",
    "is_constant",
    "is_seeded",
    "joined",
    "kind_of",
    "mechanism_name",
    "same_draws",
    "slack",
    "unseeded",
    "words_of_draws",
]
