"""What an instrument works with: draws of one mechanism, by stage, and shares of `failure_prob`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpaudit.engine.task import Task
from dpaudit.mechanisms import Sampler
from dpaudit.neighbors import NeighborPair, family

_ROUNDING = 1e-9


def divide(failure_prob: float, parts: int | Sequence[float]) -> tuple[float, ...]:
    """Divide a failure probability; no other function of the engine does.

    By the union bound, the probability that any of several statements is wrong is at most the sum
    of their failure probabilities, however the statements depend on one another.

    Parameters
    ----------
    failure_prob : float
        The probability to divide, in (0, 1).
    parts : int or sequence of float
        How many equal parts; or the weight of each part, >= 0. Weights sum to 1 at most.

    Returns
    -------
    tuple of float
        The failure probability of each part; they sum to `failure_prob` at most.

    Raises
    ------
    AssertionError
        When the weights sum to more than 1, or one is negative.
    """
    if isinstance(parts, int):
        return (failure_prob / parts,) * parts
    if min(parts, default=0.0) < 0 or sum(parts) > 1 + _ROUNDING:
        raise AssertionError(f"weights of failure_prob must be >= 0 and sum to 1, got {parts}")
    return tuple(failure_prob * weight for weight in parts)


@dataclass(eq=False)
class Run:
    """One mechanism under one instrument.

    Samplers of a run refuse certifying draws until :meth:`settle` was called, and exploration
    draws afterwards. So an instrument can neither learn from draws that certify before its events
    are frozen, nor certify on draws from which it learnt.

    Attributes
    ----------
    task : Task
        The claim, the pairs, the budget and the seed.
    mechanism : callable, AdditiveNoise, ExactMechanism or None
        What is audited; None where its outputs are stored.
    role : str
        "mechanism", "mutant 3 round 1", ...: names the streams of random numbers.
    failure_probs : tuple of float
        The failure probability of each bound; empty until :meth:`settle` was called.
    """

    task: Task
    mechanism: Any
    role: str
    stored: Sampler | None = None
    failure_probs: tuple[float, ...] = ()
    _samplers: list[Sampler] = field(default_factory=list)

    def rng(self, *labels: str | int) -> np.random.Generator:
        """Return the generator of one purpose of this run."""
        return self.task.rng(self.role, *labels)

    def sampler(self, mechanism: Any = None, *, finite: bool = True) -> Sampler:
        """Return what draws from the mechanism, or from a function of it, at the present stage.

        Parameters
        ----------
        mechanism : callable, optional
            Default: the mechanism of the run.
        finite : bool, optional
            Whether infinite outputs are refused.
        """
        sampler = self.stored
        if sampler is None:
            drawn = self.mechanism if mechanism is None else mechanism
            sampler = self.task.sampler(drawn, self.role, finite=finite)
        sampler.certifies = bool(self.failure_probs)
        self._samplers.append(sampler)
        return sampler

    def part(self, label: str) -> Run:
        """Return this run under a role of its own, at the same stage."""
        return replace(self, role=f"{self.role} {label}")

    def turn_to(self, pair: NeighborPair, spent: int) -> None:
        """Continue on the pair that a search chose, with the draws that it left."""
        self.task = replace(
            self.task, pairs=family(pair), draws=self.task.draws - spent, space=None
        )

    def settle(self, weights: Sequence[float]) -> None:
        """End the exploration: divide `failure_prob`, and hand out certifying draws from now on."""
        if self.failure_probs:
            raise AssertionError("failure_prob was divided before")
        self.failure_probs = divide(self.task.failure_prob, weights)
        for sampler in self._samplers:
            sampler.certifies = True
