"""Explore, freeze, draw afresh, certify, judge.

One audit looks at one claim. Pair, events, sides and thresholds are chosen on exploration draws;
the certifying draws are fresh, and ``failure_prob`` is divided over all bounds that they serve.
So all certified numbers of a result hold together, except with probability `failure_prob`, for any
mechanism whose draws are independent; what is shown of them (the witness, the point of a curve) may
be picked afterwards.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import Claim
from dpaudit.engine.concluding import result_of
from dpaudit.engine.families import family_of, family_of_mutant
from dpaudit.engine.judging import advice, judge
from dpaudit.engine.looking import look
from dpaudit.engine.mutation import Fates, fates_of, mutants_of
from dpaudit.engine.notes import notes_on_task
from dpaudit.engine.reach import detectable
from dpaudit.engine.request import (
    Pairs,
    checked_mode,
    checked_mutants,
    checked_task,
    checked_variants,
)
from dpaudit.engine.scoring import as_outcomes, scored
from dpaudit.engine.task import Task
from dpaudit.errors import MechanismError
from dpaudit.events import FloatAttack
from dpaudit.mechanisms import ERRORS, LateFailure, Watch, Workers, mechanism_name, working
from dpaudit.neighbors import NeighborPair, Portfolio, family
from dpaudit.results import AuditResult, Slack, SlackPoint, Verdict

DEFAULT_DRAWS = 100_000


def audit(
    mechanism: Any,
    claim: Claim,
    pairs: Pairs | None = None,
    *,
    draws: int = DEFAULT_DRAWS,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    seed: int,
    mutants: Sequence[Any] | None = (),
    sequential: bool | None = None,
    float_attack: bool | FloatAttack = False,
    slack: Mapping[float, Any] | None = None,
    score: Callable[[Any], Any] | None = None,
    id: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    timeout: float | None = None,
    call_timeout: float | None = None,
    errors: str = "raise",
    keys: Sequence[Hashable] | None = None,
    workers: int | Workers | None = None,
    executor: Executor | None = None,
    max_seconds: float | None = None,
    keep: str | os.PathLike[str] | None = None,
) -> AuditResult:
    """Look for a certified violation of a claim.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise or ExactMechanism
        ``f(data, size, *, rng) -> array [size, ...]``; an :class:`AdditiveNoise` mechanism, whose
        final noise is integrated out; or an object with ``pmf(data) -> [k]``, whose divergence is
        computed instead of estimated.
    claim : Claim
        What the mechanism promises.
    pairs : NeighborPair, sequence of NeighborPair, PairFamily, SearchSpace or Portfolio, optional
        Where to look. Of several pairs, all are explored and the most promising is certified; a
        space or a portfolio is searched for the worst pair (see :mod:`dpaudit.search`). Default:
        :func:`dpaudit.neighbors.portfolio` under the relation of the claim.
    draws : int, optional
        Draws per dataset in all, exploration included; at least 20. Default 100,000.
    failure_prob : float, optional
        Probability that any certified number of the result is wrong, in (0, 1). Default 1e-6.
    seed : int
        Root seed, >= 0: with `id` it fixes every random number.
    mutants : sequence, optional
        The audit proves its power on mutants, the mechanism with one mistake each, audited on the
        same claim and pairs (see :mod:`dpaudit.engine.mutation`). They are made from its noise;
        what is given here is added, and must be killed: mechanisms with a mistake of another kind,
        and changes such as ``mutants.without("my_module.clip")`` or ``mutants.scaled(scale=0.5)``.
        None makes none, and then an audit that finds nothing has NO_POWER. A refuted claim needs
        no mutants.
    sequential : bool, optional
        Stop as soon as the claim is refuted, or the rest of the budget could not certify what
        violation may be left, `draws` being the most that is spent; see
        :mod:`dpaudit.engine.bets`. For mechanisms that draw, and are neither exact nor of
        additive noise. Default: of those, where draws are dear, which is with `max_seconds` or
        `keep`; False certifies the most that `draws` can show.
    float_attack : bool or FloatAttack, optional
        Also look at the low bits of floating-point outputs; a :class:`FloatAttack` names the
        values and scales to try. Default False.
    slack : mapping of float to mechanism, optional
        The same mechanism with its noise multiplied by each number, to see how far the noise
        could shrink: each is audited with the same draws, on the pair on which a mutant was
        killed that was not gross, or else on the pair of the mechanism; they share `failure_prob`.
    score : callable, optional
        ``score(outputs) -> [size]``, a fixed function of each output: what is audited is the
        mechanism followed by it. Post-processing, so whatever is certified holds of the outputs;
        where the best score is known, such as a likelihood ratio, none is lost to learning one.
        It must not depend on draws of this audit.
    id : str, optional
        Name of the audit; the mechanism's name when omitted.
    progress : callable, optional
        ``progress(done, total)``, told after each call how many draws of all that are planned were
        made.
    timeout, call_timeout : float, optional
        Seconds that the whole audit, and one call of a mechanism, may take; see
        :class:`dpaudit.mechanisms.Watch` for where a hanging call can be interrupted.
    errors : {"raise", "outcome"}, optional
        With "outcome", an exception of the mechanism is an outcome, told by its type, and so is
        an infinite number (see :class:`dpaudit.Outcomes` for what that costs). Default "raise".
    keys : sequence, optional
        Of a mechanism whose draws are dicts, Series or frames: the keys that they may have.
        Absent keys are outcomes. Not needed where all draws have the same.
    workers : int, optional
        Processes that draw; dead ones are replaced. The result is that of one, to the last bit.
    executor : concurrent.futures.Executor, optional
        Who draws instead, such as the executor of a cluster; it is left open.
    max_seconds : float, optional
        Seconds after which the audit ends with what is certified so far. It must be sequential,
        because only bets may be looked at whenever the clock says so; 0.7 of the time are for the
        mechanism, and the rest is for mutants.
    keep : path, optional
        Folder in which every call of the mechanism is kept as soon as it was made. What was killed
        goes on where it was; an audit of another claim, with the same `id`, `seed` and `draws`,
        begins with the draws that there are. That claim must not be chosen by what the first audit
        found, or `failure_prob` is no longer what it says. Calls of a mechanism whose file or bound
        values changed are refused; what it imports is not looked at.

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
    >>> result = audit(noisy_sum, PureDP(1.0), pair, draws=20_000, seed=1)
    >>> result.verdict.words
    'REFUTED'
    >>> 1.8 < result.certified_epsilon < 2.0
    True
    """
    start = time.perf_counter()
    mechanism, mutants, slack = scored(score, mechanism, mutants, slack)
    if _validate.choice(ERRORS, errors=errors) != "raise" or keys is not None:
        options: dict[str, Any] = {
            "draws": draws,
            "failure_prob": failure_prob,
            "seed": seed,
            "sequential": sequential,
            "float_attack": float_attack,
            "id": id,
            "progress": progress,
            "timeout": timeout,
            "call_timeout": call_timeout,
            "workers": workers,
            "executor": executor,
            "max_seconds": max_seconds,
            "keep": keep,
        }
        return _with_outcomes(mechanism, claim, pairs, mutants, slack, errors, keys, options)
    watch = Watch(progress, timeout, call_timeout, max_seconds=max_seconds)
    with working(workers, executor) as drawn_by:
        task = checked_task(
            mechanism,
            claim,
            pairs,
            draws=draws,
            failure_prob=failure_prob,
            seed=seed,
            sequential=checked_mode(
                sequential, mechanism, draws, max_seconds=max_seconds, keep=keep
            ),
            float_attack=float_attack,
            id=id,
            watch=watch,
            workers=drawn_by,
            keep=keep,
        )
        given = checked_mutants(mutants, mechanism)
        variants = checked_variants(slack, mechanism)
        shares = 1 + (0 if given is None else 1 + len(given)) + len(variants)
        watch.total = 2 * task.draws * shares
        found = look(task, mechanism, "mechanism")
        # A refutation needs no proof of power.
        fates, family = Fates(), None
        if given is not None and not found.refuted:
            made = mutants_of(task, mechanism, found, given)
            fates = fates_of(task, made, found)
            family = family_of(task, mechanism, found, made)
        reach = detectable(task, found, family)
        judged = judge(task, found, fates, wanted=given is not None)
        of_mutant = None
        if judged[0] is Verdict.NO_POWER and fates.survivor is not None:
            of_mutant = family_of_mutant(task, fates)
        killed_on = fates.killed_on or found.pair
        slack_found = _frontier(task, variants, killed_on) if variants else None
        per_item = _note_on_items(task, mechanism) if found.refuted else ()
    watch.finish()
    return result_of(
        task,
        found,
        fates,
        judged,
        mechanism=mechanism_name(mechanism),
        reach=reach,
        seconds=time.perf_counter() - start,
        advice=advice(
            task,
            found,
            judged[0],
            fates,
            family=family,
            of_mutant=of_mutant,
            wanted=given is not None,
        ),
        slack=slack_found,
        more_notes=per_item + notes_on_task(task, found),
    )


def _with_outcomes(
    mechanism: Any,
    claim: Claim,
    pairs: Pairs | None,
    mutants: Sequence[Any] | None,
    slack: Mapping[float, Any] | None,
    errors: str,
    keys: Sequence[Hashable] | None,
    options: dict[str, Any],
) -> AuditResult:
    """Audit a mechanism whose outputs are made arrays.

    Where exceptions are outcomes, draws come by whole calls as long as none fails, and one by one
    from the beginning if one does, on all data alike and kept in a folder of their own. Draws among
    which none fails are those that one by one would have been. So each of the two audits errs with
    probability at most half of `failure_prob`.
    """
    share = 0.5 if errors == "outcome" else 1.0
    failure_prob = _validate.failure_prob(failure_prob=options["failure_prob"])
    options = {**options, "failure_prob": share * failure_prob}

    def begun(apart: bool) -> AuditResult:
        wrapped, made, variants = as_outcomes(
            mechanism, mutants, slack, errors=errors, keys=keys, apart=apart
        )
        keep = options["keep"]
        if apart and keep is not None:
            keep = os.path.join(keep, "apart")
        how = {**options, "keep": keep}
        return audit(wrapped, claim, pairs, mutants=made, slack=variants, **how)

    try:
        result = begun(apart=False)
    except LateFailure:
        result = begun(apart=True)
    return replace(result, failure_prob=failure_prob)


def _note_on_items(task: Task, mechanism: Any) -> tuple[str, ...]:
    """Say that a refuted claim may be meant for one item, where nobody said how many users hold.

    The second search certifies nothing: it only finds no violation.
    """
    space = task.space
    if not isinstance(space, Portfolio) or not space.items or space.variant is None:
        return ()
    single = space.variant(items=1)
    example = single.example(rng=task.rng("one item", "example"))
    try:
        alone = replace(task, space=single, pairs=family(example), is_brief=True)
        if look(alone, mechanism, "one item").refuted:
            return ()
    except MechanismError:
        return ()
    return (
        f"refuted for users with {space.items} items; for users with one item each, the same "
        "search found no violation. If the claim protects one item, say so with "
        "neighbors.portfolio(m=1)",
    )


def _frontier(task: Task, variants: list[tuple[float, Any]], pair: NeighborPair) -> Slack | None:
    """Audit the variants of a slack frontier on one pair; together they cost one mutant.

    Those that `max_seconds` left no time for are missing; None where that is all of them.
    """
    share = task.failure_prob / len(variants)
    alone = replace(task, pairs=family(pair), failure_prob=share, space=None)
    points = []
    for multiplier, variant in variants:
        try:
            found = look(alone, variant, f"slack {multiplier!r}")
        except MechanismError:
            if task.watch.is_spent():
                break
            raise
        points.append(SlackPoint(multiplier, found.epsilon.lower, found.refuted))
    return Slack(tuple(points), pair.describe(), share) if points else None
