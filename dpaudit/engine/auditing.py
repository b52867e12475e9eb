"""Explore, freeze, draw afresh, certify.

One audit looks at one claim. Pair, events, sides and thresholds are chosen on exploration draws;
the certifying draws are fresh, and ``failure_prob`` is divided over all bounds that they serve.
So all certified numbers of a result hold together, except with probability `failure_prob`, for any
mechanism whose draws are independent; what is shown of them (the witness, the point of a curve) may
be picked afterwards.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import Claim
from dpaudit.engine.additive.audit import AdditiveNoiseAudit
from dpaudit.engine.bets import SequentialAudit
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.counts import EXPLORE_SHARE, MIN_PILOT, PRIMARY_SHARE, SampledAudit, rates_seen
from dpaudit.engine.exact import compute
from dpaudit.engine.planning import detectable_epsilon
from dpaudit.errors import ArgumentError, PairError
from dpaudit.events import FloatAttack, explanation
from dpaudit.mechanisms import AdditiveNoise, ExactMechanism, generator, mechanism_name
from dpaudit.neighbors import NeighborPair, PairFamily, family
from dpaudit.results import (
    AuditResult,
    MutantResult,
    Slack,
    SlackPoint,
    Verdict,
    at_least,
    at_most,
    beyond,
)
from dpaudit.search import SearchSpace
from dpaudit.stats import curves_of

DEFAULT_DRAWS = 100_000

MIN_DRAWS, MAX_DRAWS = 20, 10**10

_DRAWS = "draws its outputs"
_GRID = 25
_LARGEST_EPSILON = 600.0  # of the grid for a curve; exponentials stay finite


def audit(
    mechanism: Any,
    claim: Claim,
    pairs: NeighborPair | PairFamily | Sequence[NeighborPair] | SearchSpace,
    *,
    draws: int = DEFAULT_DRAWS,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    seed: int,
    mutant: Any = None,
    sequential: bool = False,
    float_attack: bool | FloatAttack = False,
    slack: Mapping[float, Any] | None = None,
    id: str | None = None,
) -> AuditResult:
    """Look for a certified violation of a claim.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise or ExactMechanism
        ``f(data, size, *, rng) -> array [size, ...]``; a :class:`AdditiveNoise` mechanism, whose final
        noise is integrated out; or an object with ``pmf(data) -> [k]``, whose divergence is
        computed instead of estimated.
    claim : Claim
        What the mechanism promises.
    pairs : NeighborPair, sequence of NeighborPair, PairFamily or SearchSpace
        Where to look. Of several pairs, all are explored and the most promising is certified; a
        space (see :mod:`dpaudit.search`) is searched for the worst pair.
    draws : int, optional
        Draws per dataset in all, exploration included; at least 20. Default 100,000.
    failure_prob : float, optional
        Probability that any certified number of the result is wrong, in (0, 1). Default 1e-6.
    seed : int
        Root seed, >= 0: with `id` it fixes every random number.
    mutant : callable or ExactMechanism, optional
        A mutant: the same mechanism with one realistic mistake. The audit proves its power
        by refuting it on the same claim, pairs and budget; of several pairs the mutant may be
        killed on another one. Without a mutant the verdict of an audit that finds nothing is
        NO_POWER.
    sequential : bool, optional
        Stop as soon as the claim is refuted or no violation worth finding is left, `draws` being
        the most that is spent; see :mod:`dpaudit.engine.bets`. For mechanisms that draw, and are
        neither smoothed nor exact.
    float_attack : bool or FloatAttack, optional
        Also look at the low bits of floating-point outputs; a :class:`FloatAttack` names the
        values and scales to try. Default False.
    slack : mapping of float to mechanism, optional
        The same mechanism with its noise multiplied by each number, to see how far the noise
        could shrink: each is audited with the same draws, on the pair on which the mutant was
        killed, or else on the pair of the mechanism; they share `failure_prob`.
    id : str, optional
        Name of the audit; the mechanism's name when omitted.

    Returns
    -------
    AuditResult
        Verdict, certified and estimated numbers, profile, witness, and what it takes to replay.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    MechanismError
        When the mechanism breaks its contract: wrong shape, objects, inf, changed input, ignored
        `rng`, or an exception of its own.
    RecipeError
        When the function that builds the pairs of a space raises an exception.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import NeighborPair, PureDP, audit
    >>> def noisy_sum(data, size, *, rng):  # the sensitivity of a sum in [0, 1] is 1
    ...     return data.sum() + rng.laplace(scale=1 / 2.0, size=size)
    >>> pair = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
    >>> result = audit(noisy_sum, PureDP(1.0), pair, draws=20_000, seed=1)
    >>> result.verdict.words
    'REFUTED'
    >>> 1.8 < result.certified_epsilon < 2.0
    True
    """
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    draws = _validate.integer(MIN_DRAWS, draws=draws)
    if draws > MAX_DRAWS:
        raise ArgumentError(f"draws must be an integer <= {MAX_DRAWS}, got {draws}")
    for name, value in (("mechanism", mechanism), ("mutant", mutant)):
        if not callable(value) and not isinstance(value, ExactMechanism | None):
            raise TypeError(f"{name} must be a function f(data, size, *, rng), got {value!r}")
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    seed = _validate.integer(0, seed=seed)
    name = mechanism_name(mechanism) if id is None else id
    if not isinstance(name, str) or not name:
        raise TypeError(f"id must be a text that is not empty, got {id!r}")
    space = pairs if isinstance(pairs, SearchSpace) else None
    if isinstance(pairs, SearchSpace):
        if isinstance(mechanism, ExactMechanism):
            raise TypeError(
                "pairs must be pairs for a mechanism with a pmf; a search needs one that draws"
            )
        candidates = family(pairs.example(rng=generator(seed, name, "example")))
    else:
        candidates = family(pairs)
    least = math.ceil(2 * MIN_PILOT * len(candidates) / EXPLORE_SHARE)
    if len(candidates) > 1 and draws < least:
        raise ArgumentError(
            f"draws must be an integer >= {least} to explore {len(candidates)} pairs, got {draws}"
        )
    _check_relation(claim, candidates)
    if mutant is not None and _kind(mutant) != _kind(mechanism):
        raise TypeError(
            "mechanism and mutant must be of one kind, because power is shown on the same budget; "
            f"got {mechanism_name(mechanism)}, which {_kind(mechanism)}, and "
            f"{mechanism_name(mutant)}, which {_kind(mutant)}"
        )
    for flag, value in (("sequential", sequential), ("float_attack", float_attack)):
        allowed = (bool, FloatAttack) if flag == "float_attack" else (bool,)
        if not isinstance(value, allowed):
            names = " or a FloatAttack" * (flag == "float_attack")
            raise TypeError(f"{flag} must be True or False{names}, got {value!r}")
        if value and _kind(mechanism) != _DRAWS:
            raise TypeError(
                f"{flag} needs a mechanism that draws its outputs; "
                f"{mechanism_name(mechanism)} {_kind(mechanism)}"
            )
    variants = _variants(slack, mechanism)
    start = time.perf_counter()
    grid = epsilon_grid(claim)
    claimed = claimed_curve(claim, grid)
    task = (claim, candidates, draws, failure_prob, seed, name, grid, claimed)
    drawn = (SequentialAudit if sequential else SampledAudit)(*task, float_attack, space)
    smoothed = AdditiveNoiseAudit(*task)

    def look(at: Any, role: str) -> Certificate:
        if space is None:
            return _look_at(at, task, role, sequential, float_attack)
        if not isinstance(at, AdditiveNoise):
            return drawn.run(at, role)
        # The pair is searched for with noisy draws, as of any mechanism.
        found = drawn.find_pair(at, f"{role} search")
        rest = replace(smoothed, candidates=family(found.pair), draws=draws - found.explored)
        return replace(rest.run(at, role), search=found.search)

    finding = look(mechanism, "mechanism")
    broken = None
    killed = None
    if mutant is not None:
        mutant_start = time.perf_counter()
        killed = look(mutant, "mutant")
        broken = MutantResult(
            name=mechanism_name(mutant),
            verdict=Verdict.REFUTED if killed.refuted else Verdict.NO_POWER,
            certified_epsilon=killed.epsilon.lower,
            failure_prob=killed.epsilon.failure_prob,
            pair_words=killed.pair.describe(),
            witness=killed.witness,
            seconds=time.perf_counter() - mutant_start,
        )
    frontier = None
    if variants:
        probe = killed.pair if killed is not None and killed.refuted else finding.pair
        share = failure_prob / len(variants)  # a frontier costs as much as a mutant
        alone = (claim, family(probe), draws, share, *task[4:])
        points = []
        for multiplier, variant in variants:
            found = _look_at(variant, alone, f"slack {multiplier!r}", sequential, float_attack)
            points.append(SlackPoint(multiplier, found.epsilon.lower, found.refuted))
        frontier = Slack(tuple(points), probe.describe(), share)
    reach = None if finding.refuted else detectable(finding)
    verdict, reason = judge(finding, broken, reach)
    relation = claim.relation or finding.pair.relation
    epsilon, delta = finding.point
    return AuditResult(
        id=name,
        mechanism=mechanism_name(mechanism),
        claim={
            "notion": claim.notion,
            "epsilon": epsilon,
            "delta": delta,
            "relation": str(relation),
            "source": claim.source,
            "words": str(claim),
            "parameters": claim.to_json(),
        },
        pair_words=finding.pair.describe(),
        pair=finding.pair,
        verdict=verdict,
        reason=reason,
        epsilon=finding.epsilon,
        delta=finding.delta,
        profile=finding.profile,
        witness=finding.witness,
        histogram=finding.histogram,
        failure_prob=finding.epsilon.failure_prob,
        draws=finding.draws,
        mutant=broken,
        expected=None,
        seed=seed,
        seconds=time.perf_counter() - start,
        mechanism_seconds=finding.mechanism_seconds + (killed.mechanism_seconds if killed else 0.0),
        versions=versions(),
        curves=curves_of(finding.bounds, grid, claimed, delta, finding.epsilon.lower)
        if finding.bounds
        else None,
        detectable_epsilon=reach,
        sequential=finding.sequential,
        long_profile=finding.long_profile,
        search=finding.search,
        slack=frontier,
        notes=notes(finding),
        event=finding.event,
    )


def _variants(slack: Mapping[float, Any] | None, mechanism: Any) -> list[tuple[float, Any]]:
    """Return the variants of a slack frontier by falling multiplier; refuse what is none."""
    if slack is None:
        return []
    if not isinstance(slack, Mapping) or not slack:
        raise TypeError(f"slack must be a dict from multipliers to mechanisms, got {slack!r}")
    for multiplier, variant in slack.items():
        _validate.positive(multiplier=multiplier)
        if not callable(variant) and not isinstance(variant, ExactMechanism):
            raise TypeError(f"slack must hold mechanisms, got {variant!r} at {multiplier!r}")
        if _kind(variant) != _kind(mechanism):
            raise TypeError(
                f"slack must hold mechanisms of the audited one's kind, which {_kind(mechanism)}; "
                f"got {mechanism_name(variant)}, which {_kind(variant)}"
            )
    return sorted(((float(m), v) for m, v in slack.items()), key=lambda pair: -pair[0])


def _look_at(
    mechanism: Any, task: Any, role: str, sequential: bool, float_attack: bool | FloatAttack
) -> Certificate:
    """Look at one mechanism on given pairs, without a search."""
    claim, candidates, *_, grid, claimed = task
    if isinstance(mechanism, ExactMechanism):
        return compute(mechanism, claim, candidates, grid, claimed)
    if isinstance(mechanism, AdditiveNoise):
        return AdditiveNoiseAudit(*task).run(mechanism, role)
    drawn = (SequentialAudit if sequential else SampledAudit)(*task)
    return replace(drawn, float_attack=float_attack).run(mechanism, role)


def _kind(mechanism: Any) -> str:
    """Say in words how a mechanism is looked at."""
    if isinstance(mechanism, ExactMechanism):
        return "has a pmf"
    if isinstance(mechanism, AdditiveNoise):
        return "draws its centres" if mechanism.is_random else "computes its centres"
    return _DRAWS


def epsilon_grid(claim: Claim) -> NDArray[np.float64]:
    """Epsilons at which the profile is reported: from 0 to beyond the claim, the claim included."""
    if claim.point is not None:
        claimed = claim.point[0]
        half = _GRID // 2
        beyond = np.linspace(claimed, max(2 * claimed, claimed + 1.0), half + 1)
        return np.unique(np.concatenate([np.linspace(0.0, claimed, half + 1), beyond]))
    return np.linspace(0.0, min(max(claim.epsilon(1e-6), 0.1), _LARGEST_EPSILON), _GRID)


def claimed_curve(claim: Claim, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the claim allows on a grid of epsilons."""
    return np.array([claim.delta(float(e)) for e in grid])


def versions() -> dict[str, str]:
    """Versions of everything that the numbers of an audit depend on."""
    packages = ("dpaudit", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def detectable(finding: Certificate) -> float | None:
    """Return the epsilon at which this event would have been refuted with probability 0.9.

    None for what was computed, where nothing is left to chance.
    """
    counts, (epsilon, delta) = finding.epsilon.counts, finding.point
    if counts is None:
        return None
    rare = float(rates_seen(counts, finding.witness.likelier).rare[0])
    failure_prob = finding.epsilon.failure_prob
    if finding.sequential is not None:
        path = finding.sequential
        return detectable_epsilon(
            rare, path.budget, epsilon, delta, failure_prob, evidence=path.evidence
        )
    share = failure_prob * PRIMARY_SHARE
    return detectable_epsilon(rare, finding.draws["certify"], epsilon, delta, share)


def notes(finding: Certificate) -> tuple[str, ...]:
    """Sentences that a reader of the finding should have beside it."""
    told = explanation(finding.witness.event)
    return ((told,) if told and finding.refuted else ()) + finding.notes


def judge(
    finding: Certificate, mutant: MutantResult | None, reach: float | None
) -> tuple[Verdict, str]:
    """Return the verdict and the sentence behind it."""
    epsilon, delta = finding.point
    if finding.refuted:
        return Verdict.REFUTED, (
            f"epsilon is {beyond(finding.epsilon.lower, epsilon, ('at least', 'more than'))} at "
            f"delta = {delta:g}, where {epsilon:.4g} was claimed"
        )
    if mutant is None:
        return Verdict.NO_POWER, "no violation found, and no mutant was given to show power"
    where = (
        "" if mutant.pair_words == finding.pair.describe() else f" on the pair {mutant.pair_words}"
    )
    if mutant.verdict is Verdict.REFUTED:
        return Verdict.NOT_REFUTED, (
            f"no violation found; the mutant {mutant.name} was killed with "
            f"epsilon {beyond(mutant.certified_epsilon, epsilon)}{where}{_reach_words(reach)}"
        )
    return Verdict.NO_POWER, (
        f"no violation found, but the mutant {mutant.name} survived too "
        f"(epsilon >= {at_least(mutant.certified_epsilon)}{where})"
    )


def _reach_words(reach: float | None) -> str:
    if reach is None:
        return ""
    if math.isinf(reach):
        return "; no rates of this event would have been refuted within the budget"
    return (
        f"; had this event needed epsilon = {at_most(reach)}, it would have been refuted with "
        "probability about 0.9"
    )


def _check_relation(claim: Claim, pairs: PairFamily) -> None:
    relation = next(iter(pairs)).relation
    if claim.relation is not None and claim.relation != relation:
        raise PairError(
            f"the claim speaks of {claim.relation}, but the pair is of {relation}: "
            "a claim is audited under its own relation"
        )
