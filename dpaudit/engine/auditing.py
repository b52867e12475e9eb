"""The public function that audits one mechanism."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dpaudit._validate import DEFAULT_FAILURE_PROB, DEFAULT_SEED
from dpaudit.claims import Claim
from dpaudit.engine.driver import Instrument, run_audit
from dpaudit.engine.request import NOISE, Pairs, checked_mutants, checked_task
from dpaudit.engine.run import divide
from dpaudit.engine.scoring import apart, may_fail_late, scored, wrapped_alike
from dpaudit.engine.settings import Settings, checked_settings
from dpaudit.engine.task import Task
from dpaudit.errors import ArgumentError
from dpaudit.events import FloatAttack
from dpaudit.mechanisms import LateFailure, working
from dpaudit.results import AuditResult

DEFAULT_DRAWS = 100_000


def audit(
    mechanism: Any,
    claim: Claim,
    pairs: Pairs | None = None,
    *,
    draws: int = DEFAULT_DRAWS,
    seed: int = DEFAULT_SEED,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    mutants: str | Sequence[Any] | None = NOISE,
    method: str | Instrument[Any] = "fixed",
    score: Callable[[Any], Any] | None = None,
    float_attack: bool | FloatAttack = False,
    id: str | None = None,
    settings: Settings | None = None,
) -> AuditResult:
    """Search for a certified violation of a claim.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise or ExactMechanism
        ``f(data, size, *, rng) -> array [size, ...]``; an :class:`AdditiveNoise` mechanism, whose
        final noise is integrated out; or an object with ``pmf(data) -> [k]``, whose divergence is
        computed instead of estimated. Wrap functions that return one draw with :func:`one_draw`;
        dicts, exceptions and other outputs with :class:`Outcomes`.
    claim : Claim
        What the mechanism promises.
    pairs : NeighborPair, sequence of NeighborPair, PairFamily, SearchSpace or Portfolio, optional
        Where to audit. All of several pairs are explored and the most promising one is certified; a
        space or a portfolio is searched for the worst pair (see :mod:`dpaudit.search`). Default:
        :func:`dpaudit.neighbors.portfolio` under the relation of the claim.
    draws : int, optional
        Draws per dataset in all, exploration included; at least 20. Default 100,000.
    seed : int, optional
        Root seed, >= 0: with `id` it fixes every random number. Default 0.
    failure_prob : float, optional
        Probability that any certified number of the result is wrong, in (0, 1). Default 1e-6.
    mutants : "noise", sequence or None, optional
        An audit shows its power on mutants: the mechanism with one mistake each, audited on the
        same claim and pairs (see :mod:`dpaudit.engine.mutation`). "noise" (the default) makes them
        from the mechanism's noise. A sequence adds mechanisms with other mistakes, and changes such
        as ``mutants.without("my_module.clip")`` or ``mutants.scaled(scale=0.5)``, all of which must
        be killed. None makes none; an audit that finds no violation then ends in NO_POWER. A
        refuted claim needs no mutants.
    method : {"fixed", "sequential"} or Instrument, optional
        "fixed" (the default) certifies the most that `draws` can show. "sequential" stops as soon
        as the claim is refuted, or the rest of the budget could not certify what violation may be
        left; use it for expensive mechanisms that draw their outputs. See
        :mod:`dpaudit.engine.bets`. An :class:`Instrument` of your own explores and certifies
        instead; mutants are audited by the same instrument.
    score : callable, optional
        ``score(outputs) -> [size]``, a fixed function of each output: the audit sees the
        scores. This is post-processing, so whatever is certified holds for the outputs; use it
        where the best score is known, such as a likelihood ratio. It must not depend on draws of
        this audit.
    float_attack : bool or FloatAttack, optional
        Also examine the low bits of floating-point outputs; a :class:`FloatAttack` names the
        values and scales to try. Default False.
    id : str, optional
        Name of the audit. Default: the mechanism's name.
    settings : Settings, optional
        Workers, time limits, cache and progress.

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
    MechanismTimeout
        When it takes more time than it was given.
    RecipeError
        When the function that builds the pairs of a space raises an exception.

    Examples
    --------
    >>> import numpy as np
    >>> from dpaudit import NeighborPair, PureDP, audit
    >>> def noisy_sum(data, size, *, rng):  # the sensitivity of a sum in [0, 1] is 1
    ...     return data.sum() + rng.laplace(scale=1 / 2.0, size=size)
    >>> pair = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
    >>> result = audit(noisy_sum, PureDP(1.0), pair, draws=20_000)
    >>> result.verdict.words
    'REFUTED'
    >>> 1.7 < result.certified_epsilon < 2.0
    True
    """
    start = time.perf_counter()
    settings = checked_settings(settings)
    mechanism = scored(score, mechanism)
    task = checked_task(
        mechanism,
        claim,
        pairs,
        draws=draws,
        seed=seed,
        failure_prob=failure_prob,
        id=id,
        method=method,
        float_attack=float_attack,
    )
    if settings.max_seconds is not None and not task.sequential:
        raise ArgumentError(
            'max_seconds needs method="sequential", the only method that may stop when the clock '
            f"says so, got {settings.max_seconds:g} and method={method!r}"
        )
    given = checked_mutants(wrapped_alike(mutants, mechanism), mechanism)
    with working(settings.workers, settings.executor) as workers:
        task = replace(task, watch=settings.watch(), workers=workers, cache_dir=settings.cache_dir)
        result = _audited(task, mechanism, given)
    return replace(result, seconds=time.perf_counter() - start)


def _audited(task: Task, mechanism: Any, given: tuple[Any, ...] | None) -> AuditResult:
    """Audit a mechanism, and again with each draw as a call of its own where calls fail late.

    Draws among which none fails are those that one by one would have been. So each of the two
    audits errs with probability at most half of `failure_prob`.
    """
    if not may_fail_late(mechanism):
        return run_audit(task, mechanism, given)
    halved = replace(task, failure_prob=divide(task.failure_prob, 2)[0])
    try:
        result = run_audit(halved, mechanism, given)
    except LateFailure:
        directory = task.cache_dir and os.path.join(task.cache_dir, "apart")
        given = given and tuple(apart(one) if may_fail_late(one) else one for one in given)
        result = run_audit(replace(halved, cache_dir=directory), apart(mechanism), given)
    return replace(result, failure_prob=task.failure_prob)
