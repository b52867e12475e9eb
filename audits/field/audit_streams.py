"""Audits of streams of dpcrpy, whose inputs the adversary chooses."""

from __future__ import annotations

import numpy as np

from audits.field.packages import needs
from dpaudit import Interactive, NeighborPair, PureDP

EPSILON = 1.0
PAIR = NeighborPair(np.array([1, 1, 1]), np.array([1, 1, 0]))


class Stream:
    """A stream of counts by one mechanism of dpcrpy, whose user has one event."""

    def __init__(self, data, make):
        self.data, self.counter, self.is_open = data, make(), True

    def __call__(self, event):
        """Add an event to the stream, and return the noisy count so far."""
        if event == "secret":
            event, self.is_open = self.data[-1] * self.is_open, False
        released, _ = self.counter.dpRelease(float(event))
        return released


def binary_tree(epsilon=EPSILON):
    from dpcrpy.framework.noiMech import LapNoiMech
    from dpcrpy.treeMethods.binMech import BinMech

    return BinMech(kOrder=2, noiMech=LapNoiMech(epsilon=epsilon))


def simple(epsilon=EPSILON):
    from dpcrpy.framework.noiMech import LapNoiMech
    from dpcrpy.naiveMethods.simpleMech import SimpleMech

    return SimpleMech(T=4, noiMech=LapNoiMech(epsilon=epsilon))


def stream_of(make):
    return Interactive(
        lambda data: Stream(data, make), ["secret", 0, 1], rounds=4, randomness="legacy"
    )


@needs("dpcrpy", "dpcrpy")
def audit_dpcrpy_binary_tree(auditor):
    claim = PureDP(EPSILON, source="dpcrpy LapNoiMech(epsilon)")
    auditor.check(stream_of(binary_tree), claim, PAIR, draws=20_000)


@needs("dpcrpy", "dpcrpy")
def audit_dpcrpy_simple(auditor):
    claim = PureDP(EPSILON, source="dpcrpy LapNoiMech(epsilon)")
    auditor.check(stream_of(simple), claim, PAIR, draws=20_000)
