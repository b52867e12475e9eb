"""What one asks of an audit, checked: every refusal names the argument and what is allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
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
    Watch,
    Workers,
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

_DRAWS = "draws its outputs"

Pairs = NeighborPair | PairFamily | Sequence[NeighborPair] | SearchSpace | Portfolio


def checked_task(
    mechanism: Any,
    claim: Claim,
    pairs: Pairs | None,
    *,
    draws: int,
    failure_prob: float,
    seed: int,
    sequential: bool,
    float_attack: bool | FloatAttack,
    id: str | None,
    watch: Watch,
    workers: Workers | None = None,
    keep: str | os.PathLike[str] | None = None,
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
    for flag, value in (("sequential", sequential), ("float_attack", float_attack)):
        allowed = (bool, FloatAttack) if flag == "float_attack" else (bool,)
        if not isinstance(value, allowed):
            names = " or a FloatAttack" * (flag == "float_attack")
            raise TypeError(f"{flag} must be True or False{names}, got {value!r}")
        if value and kind_of(mechanism) != _DRAWS:
            raise TypeError(
                f"{flag} needs a mechanism that draws its outputs; "
                f"{mechanism_name(mechanism)} {kind_of(mechanism)}"
            )
    if sequential and draws < 2 * LEAST_DRAWS:
        raise ArgumentError(
            f"draws must be an integer >= {2 * LEAST_DRAWS} for a sequential audit, got {draws}"
        )
    return Task(
        claim,
        candidates,
        draws,
        failure_prob,
        seed,
        name,
        space=space,
        sequential=sequential,
        float_attack=float_attack,
        watch=watch,
        workers=workers,
        keep=_checked_folder(keep),
    )


def default_portfolio(claim: Claim) -> Portfolio:
    """Return the pairs to search when nobody names a pair: without a relation, those of both."""
    relation = claim.relation
    if relation is not None and relation.name == "within_sensitivity":
        raise ArgumentError(
            f"pairs must be given for a claim of {relation}, for nothing tells how many query "
            "values there are: give neighbors.portfolio(dim=k).under(claim.relation)"
        )
    return portfolio()


def _checked_folder(keep: Any) -> Path | None:
    return None if keep is None else _validate.path(keep=keep)


def checked_mode(
    sequential: bool | None,
    mechanism: Any,
    draws: int,
    *,
    max_seconds: float | None,
    keep: str | os.PathLike[str] | None,
) -> bool:
    """Return whether an audit is sequential: what was asked for, or where draws are dear."""
    draws_outputs = kind_of(mechanism) == _DRAWS
    if max_seconds is not None:
        if sequential is False or not draws_outputs:
            here = "sequential=False" if draws_outputs else f"one that {kind_of(mechanism)}"
            raise ArgumentError(
                "max_seconds needs a sequential audit, the only kind that may end when the clock "
                f"says so, of a mechanism that draws its outputs; got {max_seconds} and {here}"
            )
        return True
    if sequential is None:
        return keep is not None and draws_outputs and draws >= 2 * LEAST_DRAWS
    return sequential


def checked_mutants(mutants: Sequence[Any] | None, mechanism: Any) -> tuple[Any, ...] | None:
    """Return the mutants that were given, changes among them; None where none is wanted."""
    if mutants is None:
        return None
    if callable(mutants) or isinstance(mutants, str | Mapping) or not isinstance(mutants, Iterable):
        raise TypeError(
            f"mutants must be a list of mechanisms with one mistake each, or None, got {mutants!r}"
        )
    given = tuple(mutants)
    for mutant in given:
        if isinstance(mutant, Change):
            continue
        if not callable(mutant) and not isinstance(mutant, ExactMechanism):
            raise TypeError(
                "mutants must hold functions f(data, size, *, rng), or changes such as "
                f"mutants.without(...), got {mutant!r}"
            )
        if kind_of(mutant) != kind_of(mechanism):
            raise TypeError(
                "mechanism and mutant must be of one kind, because power is shown on the same "
                f"budget; got {mechanism_name(mechanism)}, which {kind_of(mechanism)}, and "
                f"{mechanism_name(mutant)}, which {kind_of(mutant)}"
            )
    return given


def checked_variants(slack: Mapping[float, Any] | None, mechanism: Any) -> list[tuple[float, Any]]:
    """Return the variants of a slack frontier by falling multiplier; refuse what is none."""
    if slack is None:
        return []
    if not isinstance(slack, Mapping) or not slack:
        raise TypeError(
            "slack must be a dict from multipliers to mechanisms, got " + _validate.shown(slack)
        )
    for multiplier, variant in slack.items():
        _validate.positive(**{"each key of slack": multiplier})
        if not callable(variant) and not isinstance(variant, ExactMechanism):
            raise TypeError(f"slack must hold mechanisms, got {variant!r} at {multiplier!r}")
        if kind_of(variant) != kind_of(mechanism):
            raise TypeError(
                "slack must hold mechanisms of the audited one's kind, which "
                f"{kind_of(mechanism)}; got {mechanism_name(variant)}, which {kind_of(variant)}"
            )
    return sorted(((float(m), v) for m, v in slack.items()), key=lambda pair: -pair[0])


def kind_of(mechanism: Any) -> str:
    """Say in words how a mechanism is looked at."""
    if isinstance(mechanism, ExactMechanism):
        return "has a pmf"
    if isinstance(mechanism, AdditiveNoise):
        return "draws its centres" if mechanism.is_random else "computes its centres"
    return _DRAWS
