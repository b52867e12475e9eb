"""Calling a mechanism with care: the shapes it may have, checks of its contract, additive noise."""

from dpaudit.mechanisms.additive import AdditiveNoise, slack
from dpaudit.mechanisms.independence import IndependenceCheck
from dpaudit.mechanisms.protocols import (
    ExactMechanism,
    SampledMechanism,
    is_seeded,
    mechanism_name,
    unseeded,
)
from dpaudit.mechanisms.sampler import Sampler
from dpaudit.mechanisms.streams import generator

__all__ = [
    "AdditiveNoise",
    "ExactMechanism",
    "IndependenceCheck",
    "SampledMechanism",
    "Sampler",
    "generator",
    "is_seeded",
    "mechanism_name",
    "slack",
    "unseeded",
]
