"""Calling a mechanism with care: the shapes it may have, checks of its contract, additive noise."""

from dpaudit.mechanisms.additive import Smoothed, slack
from dpaudit.mechanisms.independence import CallCheck
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
    "CallCheck",
    "ExactMechanism",
    "SampledMechanism",
    "Sampler",
    "Smoothed",
    "generator",
    "is_seeded",
    "mechanism_name",
    "slack",
    "unseeded",
]
