"""The task of one audit: the claim, the pairs, the budget and the seed."""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Claim
from dpaudit.data import digest, without_strategy
from dpaudit.errors import ArgumentError, MechanismError, NoClaim, PairError
from dpaudit.events import LEARN_SHARE, FloatAttack, Goal
from dpaudit.mechanisms import CALLS, Kept, Sampler, Watch, Workers, generator
from dpaudit.neighbors import (
    AllPairs,
    NeighborPair,
    PairFamily,
    Portfolio,
    SearchSpace,
    family,
)

Floats = NDArray[np.float64]

EXPLORE_SHARE = 0.3
"""Share of the draws that are used to explore."""

RANKED_DRAWS = 50, 2000
"""Smallest and largest number of draws per dataset for guesses by rank."""

PRIMARY_SHARE = 0.9
"""Share of failure_prob for the primary event; the events of the profile share the rest."""

ENOUGH = 1.1
"""An event suffices if it is expected to exceed the claim by this factor."""

_EXPECTED_PROFILE_EVENTS = 8
_GRID = 25
_BRIEF_CALLS, _BRIEF_CALL = 8, 256  # Least number of calls; draws per call if there are more calls.
_TRIAL_CALLS = 2
_LEAST_ALLOWED = 1e-9
_LARGEST_EPSILON = 600.0  # Largest epsilon of the grid of a curve; exponentials stay finite.


def _profile(claim: Claim) -> tuple[Floats, Floats]:
    """Return a grid of epsilons, and the deltas of a claim on this grid.

    The result is cached, because converting a curve is slow and every mutant has its own task.
    """
    try:
        hash(claim)
    except TypeError:  # the metric of a claim may be an object without a hash
        return _made_profile(claim)
    return _known_profile(claim)


@functools.lru_cache(maxsize=64)
def _known_profile(claim: Any) -> tuple[Floats, Floats]:
    return _made_profile(claim)


def _made_profile(claim: Claim) -> tuple[Floats, Floats]:
    if claim.point is not None:
        claimed = claim.point[0]
        ends = (0.0, claimed, max(2 * claimed, claimed + 1.0))
        grid = np.unique(
            [epsilon for pair in itertools.pairwise(ends) for epsilon in _steps(*pair)]
        )
    else:
        # Some curves, such as the curves of approximate zCDP, stay above some delta at every
        # epsilon. The grid ends where the curve is within 1e-6 of its limit.
        limit = claim.delta(_LARGEST_EPSILON)
        end = claim.epsilon(min(limit + 1e-6, 1.0))
        grid = np.linspace(0.0, min(max(end, 0.1), _LARGEST_EPSILON), _GRID)
    deltas = np.array([claim.delta(float(e)) for e in grid])
    grid.flags.writeable = deltas.flags.writeable = False
    return grid, deltas


def _steps(low: float, high: float) -> list[float]:
    """Return evenly spaced numbers, each rounded only once: 0.9, not 0.8999999999999999."""
    first, last = (Fraction(repr(float(end))) for end in (low, high))
    half = _GRID // 2
    return [float(first + (last - first) * step / half) for step in range(half + 1)]


@dataclass(frozen=True, eq=False)
class Task:
    """One claim on some pairs with one budget, for a mechanism, its mutants and its variants.

    Parameters
    ----------
    claim : Claim
        The claim.
    pairs : PairFamily
        The pairs. For a search space, this field holds an example.
    draws : int
        Total number of draws per dataset, including exploration.
    failure_prob : float
        Probability that any certified number is wrong.
    seed : int
        Root seed.
    name : str
        Name of the audit. Together with the seed, the name determines every random number.
    space : SearchSpace, Portfolio or AllPairs, optional
        Space in which the audit searches for the pair.
    sequential : bool
        Whether to stop as soon as the evidence suffices.
    instrument : Instrument, optional
        Instrument for mechanisms that draw their outputs; by default, counts or bets.
    float_attack : bool or FloatAttack
        Whether the low bits of outputs are also examined.
    estimator : object, optional
        Classifier of scikit-learn, which is fitted to exploration draws and gives one more score.
    is_brief : bool
        Whether only the refutation of the claim matters, which is so for a mutant. In this case, no
        profile is certified, and draws are made in a few calls.
    is_trial : bool
        Whether the certificate only serves to explore, as for a smaller pair. In this case, bets
        test only the claim and no other level of epsilon, and each batch is drawn in two calls.
    wants_simple : bool
        Whether the simplest event that is expected to refute the claim is chosen, instead of the
        event that is expected to certify most.
    shrinks : bool
        Whether a smaller pair is searched if the claim is refuted.
    edits : bool
        Whether mutants of the mechanism's code are made, besides those of its noise.
    stored : mapping of str to int, optional
        Number of available outputs of each side, if the outputs were drawn elsewhere.
    watch : Watch
        Object that records the progress and limits the time of calls.
    workers : Workers, optional
        Workers that draw. By default, this process draws.
    cache_dir : path, optional
        Directory in which calls are stored.
    """

    claim: Claim
    pairs: PairFamily
    draws: int
    failure_prob: float
    seed: int
    name: str
    space: SearchSpace | Portfolio | AllPairs | None = None
    sequential: bool = False
    instrument: Any = None
    float_attack: bool | FloatAttack = False
    estimator: Any = None
    is_brief: bool = False
    is_trial: bool = False
    wants_simple: bool = False
    shrinks: bool = False
    edits: bool = False
    stored: Mapping[str, int] | None = None
    watch: Watch = field(default_factory=Watch)
    workers: Workers | None = None
    cache_dir: str | os.PathLike[str] | None = None

    @property
    def is_small(self) -> bool:
        """Whether there are few draws, all on one pair, so that guesses by rank are used."""
        one = self.space is None and len(self.pairs) == 1
        return (
            one
            and not self.is_trial
            and self.claim.point is not None
            and RANKED_DRAWS[0] <= self.draws <= RANKED_DRAWS[1]
        )

    def at(self, pair: NeighborPair) -> Task:
        """Return this task with the claim at a pair; most claims are the same at all pairs."""
        claim = self.claim.between(*map(without_strategy, (pair.left, pair.right)))
        return self if claim is self.claim else replace(self, claim=claim)

    def allowed(self, left: Any, right: Any) -> float:
        """Return the epsilon by which an expected epsilon is divided when pairs are compared.

        The result is 1 if the claim is the same at all pairs, and ``inf`` if nothing is claimed.
        """
        try:
            claim = self.claim.between(*map(without_strategy, (left, right)))
        except NoClaim:
            return math.inf
        if claim is self.claim or claim.point is None:
            return 1.0
        return max(claim.point[0], _LEAST_ALLOWED)

    @property
    def grid(self) -> Floats:
        """Epsilons of the reported profile, from 0 to beyond the claim.

        The claim is among them.
        """
        return _profile(self.claim)[0]

    @property
    def claimed(self) -> Floats:
        """Claimed deltas on the grid."""
        return _profile(self.claim)[1]

    def rng(self, *labels: str | int) -> np.random.Generator:
        """Return the generator for one purpose."""
        return generator(self.seed, self.name, *labels)

    def sampler(self, mechanism: Any, role: str, *, finite: bool = True) -> Sampler:
        """Return a sampler of a mechanism in a role."""
        labels = (self.name, role)
        return Sampler(
            mechanism,
            seed=self.seed,
            labels=labels,
            watch=self.watch,
            finite=finite,
            workers=self.workers,
            kept=None if self.cache_dir is None else Kept.of(self.cache_dir, mechanism, role),
            is_trial=self.is_trial,
        )

    def calls(self, draws: int) -> int:
        """Return the number of calls for this number of certifying draws."""
        if self.is_trial:
            return _TRIAL_CALLS
        return min(max(draws // _BRIEF_CALL, _BRIEF_CALLS), CALLS) if self.is_brief else CALLS

    def attack_on(self, pair: NeighborPair) -> FloatAttack | None:
        """Return the guesses of the floating-point attack on a pair; None without the attack."""
        if isinstance(self.float_attack, FloatAttack):
            return self.float_attack
        return FloatAttack.for_pair(pair, self.claim) if self.float_attack else None

    def goal(self, certifying_draws: int, learn_share: float = LEARN_SHARE) -> Goal:
        """Return the goal for choosing events."""
        return Goal(
            delta=None if self.claim.point is None else self.claim.point[1],
            epsilons=self.grid,
            claimed_deltas=self.claimed,
            draws=certifying_draws,
            primary_failure_prob=self.failure_prob * (1.0 if self.is_brief else PRIMARY_SHARE),
            profile_failure_prob=self.failure_prob * (1 - PRIMARY_SHARE) / _EXPECTED_PROFILE_EVENTS,
            learn_share=learn_share,
            wants_profile=not self.is_brief,
            enough=self._enough if self.wants_simple else None,
            estimator=self.estimator,
        )

    @property
    def _enough(self) -> float:
        """Expected value of an event that refutes the claim with some margin."""
        if self.claim.point is None:
            return ENOUGH
        return ENOUGH * self.claim.point[0] + (ENOUGH - 1)

    def worst_point(self, profile: Floats, least: float = 1e-300) -> tuple[float, float]:
        """Return the point at which a profile exceeds the claimed curve most, or is closest to it.

        Epsilon = 0 is chosen only if the claim is exceeded there, because a point at 0 has little
        meaning. Deltas below `least` are not chosen, because the curves are inaccurate there.
        """
        ratio = profile / np.maximum(self.claimed, least)
        if ratio[0] <= 1:
            ratio[0] = -np.inf
        at = int(ratio.argmax())
        return float(self.grid[at]), float(self.claimed[at])

    @contextmanager
    def data_unchanged(self, name: str) -> Iterator[None]:
        """Raise a `MechanismError` if the mechanism changes the datasets."""
        before = self._fingerprint()
        yield
        if self._fingerprint() != before:
            raise MechanismError(
                f"{name} must not change its input, got data that changed during the audit. "
                "Work on a copy"
            )

    def _fingerprint(self) -> list[bytes]:
        both = ((pair.left, pair.right) for pair in self.pairs)
        return [digest(data) for pair in both for data in pair]


def check_relation(claim: Claim, pair: NeighborPair) -> None:
    """Raise a `PairError` if the relation of a pair is not the relation of the claim.

    A claim without a relation is about one user.
    """
    if claim.relation is None and pair.relation.users > 1:
        raise PairError(
            "pair must differ in one user if the claim names no relation, got "
            f"{pair.relation}. Pass the relation of the pair as relation= to the claim if it is "
            "about groups of users"
        )
    if claim.relation is not None and claim.relation != pair.relation:
        raise PairError(
            f"pair must have the claim's relation, {claim.relation}, got {pair.relation}. "
            "Audit a claim under its own relation"
        )


def check_same_at_all_pairs(claim: Claim) -> None:
    """Refuse a claim that depends on the pair, where no pair is known."""
    if claim.depends_on_pair:
        raise ArgumentError(
            f"claim must be the same at all pairs, got {claim}. Pass LocalDP with the epsilon at "
            "your pair"
        )


# --- what an instrument works with: draws of one mechanism by stage, and shares of failure_prob -


_ROUNDING = 1e-9


def divide(failure_prob: float, parts: int | Sequence[float]) -> tuple[float, ...]:
    """Divide a failure probability.

    No other function of the engine divides failure probabilities. By the union bound, the
    probability that any of several statements is wrong is at most the sum of their failure
    probabilities, for any dependence between the statements.

    Parameters
    ----------
    failure_prob : float
        The probability to divide, in (0, 1).
    parts : int or sequence of float
        Number of equal parts, or a weight >= 0 for each part. The weights sum to at most 1.

    Returns
    -------
    tuple of float
        The failure probability of each part. The sum is at most `failure_prob`.

    Raises
    ------
    AssertionError
        If the weights sum to more than 1, or if a weight is negative.
    """
    if isinstance(parts, int):
        return (failure_prob / parts,) * parts
    if not (min(parts, default=0.0) >= 0 and sum(parts) <= 1 + _ROUNDING):  # NaN, too
        raise AssertionError(f"weights must be >= 0 and sum to at most 1, got {parts}")
    return tuple(failure_prob * weight for weight in parts)


@dataclass(eq=False)
class Run:
    """One mechanism that is audited by one instrument.

    Samplers of a run refuse certifying draws until :meth:`settle` is called, and refuse exploration
    draws afterwards. So an instrument cannot learn from certifying draws before its events are
    frozen. An instrument also cannot certify on draws from which it learnt.

    Attributes
    ----------
    task : Task
        The claim, the pairs, the budget and the seed.
    mechanism : callable, AdditiveNoise, ExactMechanism or None
        The audited mechanism. None if its outputs are stored.
    role : str
        Role, such as "mechanism" or "mutant 3 round 1". The role determines the streams of random
        numbers.
    failure_probs : tuple of float
        The failure probability of each bound. Empty until :meth:`settle` is called.
    """

    task: Task
    mechanism: Any
    role: str
    stored: Sampler | None = None
    failure_probs: tuple[float, ...] = ()
    _samplers: list[Sampler] = field(default_factory=list)

    def rng(self, *labels: str | int) -> np.random.Generator:
        """Return the generator for one purpose of this run."""
        return self.task.rng(self.role, *labels)

    def sampler(self, mechanism: Any = None, *, finite: bool = True) -> Sampler:
        """Return a sampler of the mechanism, or of a function of it, for the current stage.

        Parameters
        ----------
        mechanism : callable, optional
            Function to sample; by default, the mechanism of the run.
        finite : bool, optional
            Whether infinite outputs raise an error.
        """
        sampler = self.stored
        if sampler is None:
            drawn = self.mechanism if mechanism is None else mechanism
            sampler = self.task.sampler(drawn, self.role, finite=finite)
        sampler.certifies = bool(self.failure_probs)
        self._samplers.append(sampler)
        return sampler

    def part(self, label: str) -> Run:
        """Return this run with another role, at the same stage."""
        return replace(self, role=f"{self.role} {label}")

    def turn_to(self, pair: NeighborPair, spent: int) -> None:
        """Continue on the pair that a search chose, with the remaining draws."""
        self.task = replace(
            self.task.at(pair), pairs=family(pair), draws=self.task.draws - spent, space=None
        )

    def settle(self, weights: Sequence[float]) -> None:
        """End the exploration: divide `failure_prob`, and allow only certifying draws."""
        if self.failure_probs:
            raise AssertionError("settle must be called only once")
        self.failure_probs = divide(self.task.failure_prob, weights)
        for sampler in self._samplers:
            sampler.certifies = True
