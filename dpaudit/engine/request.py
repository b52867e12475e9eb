"""Validate the arguments of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.engine.bets import LEAST_DRAWS
from dpaudit.engine.explore import least_draws
from dpaudit.engine.task import Task, check_relation
from dpaudit.errors import ArgumentError
from dpaudit.events import FloatAttack
from dpaudit.mechanisms import (
    AdditiveNoise,
    ExactMechanism,
    generator,
    mechanism_name,
)
from dpaudit.mutants import Change
from dpaudit.neighbors import (
    NeighborPair,
    PairFamily,
    Portfolio,
    SearchSpace,
    family,
    portfolio,
)

MIN_DRAWS, MAX_DRAWS = 20, 10**10

METHODS = ("fixed", "sequential")

NOISE = "noise"
"""Asks for mutants of the mechanism's noise."""

_DRAWS = "draws its outputs"

Pairs = NeighborPair | PairFamily | Sequence[NeighborPair] | SearchSpace | Portfolio


def checked_task(
    mechanism: Any,
    claim: Claim,
    pairs: Pairs | None,
    *,
    draws: int,
    seed: int,
    failure_prob: float,
    id: str | None,
    method: Any = "fixed",
    float_attack: bool | FloatAttack = False,
) -> Task:
    """Return the task that the arguments of :func:`dpaudit.audit` describe.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range, or arguments that do not go together.
    """
    if not isinstance(claim, Claim):
        raise TypeError(f"claim must be a claim such as PureDP(1.0), got {claim!r}")
    draws = _validate.integer(MIN_DRAWS, draws=draws)
    if draws > MAX_DRAWS:
        raise ArgumentError(f"draws must be an integer <= {MAX_DRAWS}, got {draws}")
    if not callable(mechanism) and not isinstance(mechanism, ExactMechanism):
        raise TypeError(f"mechanism must be a function f(data, size, *, rng), got {mechanism!r}")
    failure_prob = _validate.failure_prob(failure_prob=failure_prob)
    seed = _validate.seed(seed=seed)
    name = mechanism_name(mechanism) if id is None else id
    _validate.text(id=name)
    instrument = None if isinstance(method, str) else _checked_instrument(method)
    if instrument is None:
        _validate.choice(METHODS, method=method)
    is_sequential = isinstance(method, str) and method == "sequential"
    if not isinstance(float_attack, bool | FloatAttack):
        raise TypeError(
            f"float_attack must be True or False or a FloatAttack, got {float_attack!r}"
        )
    needs = {
        'method="sequential"': is_sequential,
        "an instrument of your own": instrument is not None,
        "float_attack": float_attack,
    }
    for argument, value in needs.items():
        if value and kind_of(mechanism) != _DRAWS:
            raise TypeError(
                f"{argument} needs a mechanism that draws its outputs; "
                f"{mechanism_name(mechanism)} {kind_of(mechanism)}"
            )
    if is_sequential and draws < 2 * LEAST_DRAWS:
        raise ArgumentError(
            f"draws must be an integer >= {2 * LEAST_DRAWS} for a sequential audit, got {draws}"
        )
    pairs = default_portfolio(claim) if pairs is None else pairs
    if isinstance(pairs, Portfolio) and claim.relation is not None:
        pairs = pairs.under(claim.relation)
    space = pairs if isinstance(pairs, SearchSpace | Portfolio) else None
    if isinstance(pairs, SearchSpace | Portfolio):
        candidates = family(pairs.example(rng=generator(seed, name, "example")))
    else:
        candidates = family(pairs)
    least = least_draws(None, len(candidates))
    if draws < least:
        raise ArgumentError(
            f"draws must be an integer >= {least} to explore {len(candidates)} pairs, got {draws}"
        )
    for pair in candidates:
        check_relation(claim, pair)
    return Task(
        claim,
        candidates,
        draws,
        failure_prob,
        seed,
        name,
        space=space,
        sequential=is_sequential,
        instrument=instrument,
        float_attack=float_attack,
    )


def _checked_instrument(method: Any) -> Any:
    """Return an instrument, which has two methods."""
    missing = [name for name in ("explore", "certify") if not callable(getattr(method, name, None))]
    if missing or isinstance(method, type):
        raise TypeError(
            f"method must be one of {', '.join(map(repr, METHODS))} or an instrument with the "
            f"methods explore(run) and certify(frozen, run), got {_validate.shown(method)}"
        )
    return method


def default_portfolio(claim: Claim) -> Portfolio:
    """Return the pairs to search when nobody names a pair: without a relation, those of both."""
    relation = claim.relation
    if relation is not None and relation.name == "within_sensitivity":
        raise ArgumentError(
            f"pairs must be given for a claim of {relation}, for nothing tells how many query "
            "values there are: give neighbors.portfolio(dim=k).under(claim.relation)"
        )
    return portfolio()


def checked_mutants(mutants: Any, mechanism: Any) -> tuple[Any, ...] | None:
    """Return the mutants that were given, changes among them; None where none is wanted."""
    if mutants is None:
        return None
    if isinstance(mutants, str) and mutants == NOISE:
        return ()
    if callable(mutants) or isinstance(mutants, str | Mapping) or not isinstance(mutants, Iterable):
        raise TypeError(
            f"mutants must be {NOISE!r}, a list of mechanisms with one mistake each, or None, got "
            f"{_validate.shown(mutants)}"
        )
    given = tuple(mutants)
    for mutant in given:
        if not isinstance(mutant, Change):
            check_kind("mutants", mutant, mechanism)
    return given


def check_kind(argument: str, variant: Any, mechanism: Any) -> None:
    """Refuse a mutant or a variant that is not audited as the mechanism is."""
    if not callable(variant) and not isinstance(variant, ExactMechanism):
        raise TypeError(
            f"{argument} must hold functions f(data, size, *, rng), got {_validate.shown(variant)}"
        )
    if kind_of(variant) != kind_of(mechanism):
        raise TypeError(
            f"{argument} must hold mechanisms of the audited one's kind: "
            f"{mechanism_name(mechanism)} {kind_of(mechanism)}, {mechanism_name(variant)} "
            f"{kind_of(variant)}"
        )


def kind_of(mechanism: Any) -> str:
    """Say in words how a mechanism is looked at."""
    if isinstance(mechanism, ExactMechanism):
        return "has a pmf"
    if isinstance(mechanism, AdditiveNoise):
        return "draws its centres" if mechanism.is_random else "computes its centres"
    return _DRAWS
