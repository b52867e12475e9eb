"""The public function that audits one mechanism, the checks of its arguments, and its settings.

A score or a conversion of outputs is fixed before the first draw. The score or the conversion is
post-processing. So everything that is certified for the scores or converted outputs also holds for
the mechanism.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB, DEFAULT_SEED
from dpaudit.claims import Claim, LongitudinalDP, MetricDP, Relation
from dpaudit.data import without_strategy
from dpaudit.engine.bets import LEAST_DRAWS
from dpaudit.engine.driver import Instrument, run_audit
from dpaudit.engine.explore import least_draws
from dpaudit.engine.live import live_line
from dpaudit.engine.sessions import facing_strategies, interactive
from dpaudit.engine.task import Task, check_relation, divide
from dpaudit.engine.views import inner_of, seen_with_both_sides, side_channel
from dpaudit.errors import ArgumentError
from dpaudit.events import FloatAttack
from dpaudit.mechanisms import (
    AdditiveNoise,
    Composition,
    ExactMechanism,
    LateFailure,
    Longitudinal,
    Outcomes,
    Scored,
    Watch,
    Workers,
    checked_workers,
    generator,
    is_computed,
    mechanism_name,
    working,
)
from dpaudit.mutants import Change
from dpaudit.neighbors import (
    AllPairs,
    NeighborPair,
    PairFamily,
    Portfolio,
    SearchSpace,
    family,
    portfolio,
)
from dpaudit.results import AuditResult, Estimate

# --- how an audit runs: processes, time limits, a cache and progress ----------------------------


@dataclass(frozen=True)
class Settings:
    """How an audit is executed.

    Certified numbers do not depend on these settings, except through `max_seconds`. Without
    `shrink`, the result has no smallest pair, no likely causes and no program.

    Parameters
    ----------
    workers : int or Workers, optional
        Number of processes that draw. Processes that die are replaced. The results equal the
        results of one process, bit by bit.
    executor : concurrent.futures.Executor, optional
        Executor that draws instead of `workers`, for example the executor of a cluster. The audit
        does not close it.
    time_limit : float, optional
        Time limit of the whole audit in seconds, > 0. When this time has passed, the audit fails
        with :class:`MechanismTimeout`.
    call_limit : float, optional
        Time limit of one call of a mechanism in seconds, > 0. :class:`dpaudit.mechanisms.Watch`
        says where a hanging call can be interrupted.
    max_seconds : float, optional
        Seconds, > 0, after which the audit ends with the results certified so far. `max_seconds`
        needs ``method="sequential"``, whose result is valid at any stopping time. The mechanism
        gets 0.7 of the time, and its mutants get the rest.
    cache_dir : path, optional
        Directory in which every call of the mechanism is stored as soon as it is made. An
        interrupted audit resumes where it stopped. An audit of another claim, with the same `id`,
        `seed` and `draws`, reuses the stored draws. Do not choose this other claim because of the
        results of the first audit. If you do, `failure_prob` no longer holds. If the mechanism's
        file, its bound values, a module that the file imports or the version of an imported package
        has changed, the calls are made again. Data that the mechanism reads from files are not
        compared.
    progress : callable or False, optional
        ``progress(done, total, stage)`` is called after each call and at the start of each stage,
        with the number of draws made, the number planned, and what the audit does, in words. By
        default, an audit that has taken more than 3 seconds shows this on a terminal (stderr) or in
        a notebook. With False, it shows nothing.
    shrink : bool, optional
        Whether an audit that refutes its claim then looks for the smallest pair on which the claim
        is refuted, and for likely causes. Each takes at most as many draws as the audit. The audit
        then writes the program of :meth:`AuditResult.reproducer`. If the event of the refutation
        cannot be written, at most 20,000 more draws per dataset look for a simple event. The
        default is True.

    Raises
    ------
    ValueError, TypeError
        If a value is out of range, or both `workers` and `executor` are given.
    """

    workers: int | Workers | None = None
    executor: Executor | None = None
    time_limit: float | None = None
    call_limit: float | None = None
    max_seconds: float | None = None
    cache_dir: str | os.PathLike[str] | None = None
    progress: Callable[[int, int, str], None] | Literal[False] | None = None
    shrink: bool = True

    def __post_init__(self) -> None:
        self.watch()
        checked_workers(self.workers, self.executor)
        _validate.flag(shrink=self.shrink)
        if self.cache_dir is not None:
            _validate.path(cache_dir=self.cache_dir)

    def watch(self) -> Watch:
        """Return a clock with these limits, which starts now."""
        limits = self.time_limit, self.call_limit
        progress = None if self.progress is False else self.progress
        return Watch(progress, *limits, max_seconds=self.max_seconds)

    @contextmanager
    def watching(self, id: str) -> Iterator[Watch]:
        """Yield a clock with these limits, and show the progress of an audit while it runs."""
        watch, line = self.watch(), live_line(id) if self.progress is None else None
        watch.progress = watch.progress if line is None else line
        try:
            yield watch
        finally:
            if line is not None:
                line.close()


def checked_settings(settings: Settings | None) -> Settings:
    """Return the settings, or the defaults for None; raise an error for any other type."""
    if settings is None:
        return Settings()
    return _validate.instance(Settings, "dpaudit.Settings(...) or None", settings=settings)


# --- wrap a mechanism, and its mutants in the same way ------------------------------------------


def scored(score: Any, mechanism: Any) -> Any:
    """Return a mechanism followed by a score; without a score, return the mechanism.

    Raises
    ------
    TypeError
        If `score` is not a function, or if the mechanism draws no outputs that could be scored.
    """
    if score is None:
        return mechanism
    if not callable(score) and not _is_classifier(score):
        raise TypeError(
            "score must be a function score(outputs) that returns an array [size], or a classifier "
            f"of scikit-learn, got {_validate.describe(score)}"
        )
    if is_computed(mechanism):
        raise TypeError(
            "mechanism must draw its outputs if score is given, got "
            f"{mechanism_name(mechanism)}, which {kind_of(mechanism)}"
        )
    if side_channel(mechanism) is not None:
        raise TypeError(
            f"score must be None for {mechanism_name(mechanism)}, whose outcome is one number"
        )
    return mechanism if classifier(score) is not None else Scored(mechanism, score)


def classifier(score: Any) -> Any:
    """Return a score that is learnt, or None for any other score."""
    return score if score is not None and _is_classifier(score) else None


def _is_classifier(score: Any) -> bool:
    """Return whether a score is learnt: an object with the methods of scikit-learn's classifiers.

    Raises
    ------
    TypeError
        If the object can be fitted, but gives no score. Also for the class of an estimator.
    """
    if not callable(getattr(score, "fit", None)):
        return False
    scores = any(callable(getattr(score, n, None)) for n in ("decision_function", "predict_proba"))
    if isinstance(score, type) or not scores or not hasattr(score, "get_params"):
        raise TypeError(
            "score must be an instance of a classifier with predict_proba or decision_function, "
            f"got {_validate.describe(score)}"
        )
    return True


def _alike(variant: Any, mechanism: Any) -> Any:
    """Wrap a variant of a mechanism in the same way.

    Changes of code need no wrapping, because they act inside the mechanism. Other checks refuse
    variants that cannot be wrapped.
    """
    fits = callable(variant) and not (isinstance(variant, Change) or is_computed(variant))
    if not fits or not isinstance(mechanism, Outcomes | Scored):
        return variant
    inner = _alike(variant, mechanism.mechanism)
    is_wrapped = isinstance(mechanism, Outcomes) and isinstance(variant, Outcomes)
    return inner if is_wrapped else mechanism.of(inner)


def may_fail_late(mechanism: Any) -> bool:
    """Return whether a call may fail after trial calls passed.

    In this case, :func:`apart` is needed.
    """
    while isinstance(mechanism, Scored):
        mechanism = mechanism.mechanism
    return isinstance(mechanism, Outcomes) and mechanism.may_fail_late


def apart(mechanism: Any) -> Any:
    """Return a mechanism that makes each draw in a separate call."""
    if isinstance(mechanism, Scored):
        return mechanism.of(apart(mechanism.mechanism))
    return mechanism.of(mechanism.mechanism, apart=True)


# --- validate the arguments of an audit ---------------------------------------------------------


MIN_DRAWS, MAX_DRAWS = 20, 10**10

METHODS = ("fixed", "sequential")

ALL_MUTANTS, NOISE = "all", "noise"
"""Values of `mutants` that request mutants of the mechanism's noise and code, or of its noise."""

_DRAWS = "draws its outputs"

Pairs = NeighborPair | PairFamily | Sequence[NeighborPair] | SearchSpace | Portfolio | AllPairs


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
        If an argument is out of range, or if arguments cannot be combined.
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
                f"mechanism must draw its outputs for {argument}, got "
                f"{mechanism_name(mechanism)}, which {kind_of(mechanism)}"
            )
    if is_sequential and side_channel(mechanism) is not None:
        raise ArgumentError(
            f"method must be 'fixed' for {mechanism_name(mechanism)}, because the speed of a "
            "machine changes during an audit, got 'sequential'"
        )
    if is_sequential and draws < 2 * LEAST_DRAWS:
        raise ArgumentError(
            f"draws must be an integer >= {2 * LEAST_DRAWS} for a sequential audit, got {draws}"
        )
    if pairs is None:
        pairs = default_portfolio(claim) if claim.domain is None else AllPairs(claim.domain)
        if isinstance(mechanism, Composition) and isinstance(pairs, Portfolio):
            pairs = _small(claim)
    if isinstance(claim, MetricDP) and isinstance(pairs, SearchSpace | Portfolio):
        raise ArgumentError(
            "pairs must be a pair or a list of pairs for a claim of MetricDP, because a search "
            f"would not compare distances, got {pairs.name}"
        )
    if isinstance(pairs, Portfolio) and claim.relation is not None:
        pairs = pairs.under(claim.relation)
    session = interactive(mechanism)
    if session is not None:
        pairs = facing_strategies(session, pairs, rng=generator(seed, name, "strategies"))
    pairs = seen_with_both_sides(mechanism, pairs)
    space = pairs if isinstance(pairs, SearchSpace | Portfolio | AllPairs) else None
    if space is not None and instrument is not None:
        raise ArgumentError(
            "pairs must be a pair or a list of pairs for a custom instrument, because "
            f"such an instrument does not search, got {space.name}"
        )
    if isinstance(pairs, SearchSpace | Portfolio | AllPairs):
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
        if not isinstance(space, AllPairs):
            claim.between(
                *map(without_strategy, (pair.left, pair.right))
            )  # refuses a pair about which nothing is claimed
    if isinstance(claim, LongitudinalDP) and not _shows_reports(mechanism):
        raise TypeError(
            "mechanism must be Longitudinal(f) for a claim of LongitudinalDP, got "
            f"{mechanism_name(mechanism)}"
        )
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


def _shows_reports(mechanism: Any) -> bool:
    """Return whether a mechanism is `Longitudinal`, perhaps inside other wrappers."""
    return isinstance(inner_of(mechanism), Longitudinal)


def _checked_instrument(method: Any) -> Any:
    """Return an instrument; refuse an object without the two methods."""
    missing = [name for name in ("explore", "certify") if not callable(getattr(method, name, None))]
    if missing or isinstance(method, type):
        raise TypeError(
            f"method must be one of {', '.join(map(repr, METHODS))} or an instrument with the "
            f"methods explore(run) and certify(frozen, run), got {_validate.describe(method)}"
        )
    return method


def _small(claim: Claim) -> Portfolio:
    """Return pairs of small datasets, whose subsamples can be enumerated quickly."""
    pairs = portfolio(n_users=3, m=1)
    pairs = pairs if claim.relation is None else pairs.under(claim.relation)
    return replace(pairs, spaces=(), variant=None)


def default_portfolio(claim: Claim) -> Portfolio:
    """Return the pairs that are searched by default, under both relations if none is given."""
    relation = claim.relation
    if relation == Relation.LOCAL:
        raise ArgumentError(
            f"domain must be given for a claim of {claim}, or pairs must be: "
            "the values that a client may have"
        )
    if relation is not None and relation.name == "replace_window":
        raise ArgumentError(
            f"pairs must be given for a claim of {relation}, because the number of rows is "
            "unknown. Pass neighbors.streams(steps, window=w)"
        )
    if relation is not None and relation.name == "within_sensitivity":
        raise ArgumentError(
            f"pairs must be given for a claim of {relation}, because the number of query values is "
            "unknown. Pass neighbors.portfolio(dim=k).under(claim.relation)"
        )
    return portfolio()


def checked_mutants(mutants: Any, mechanism: Any) -> tuple[tuple[Any, ...] | None, bool]:
    """Return the given mutants and changes, and whether mutants of the code are wanted.

    The first is None if no mutants are wanted. Given mutants are wrapped like the mechanism.
    """
    if mutants is None:
        return None, False
    if isinstance(mutants, str) and mutants in (ALL_MUTANTS, NOISE):
        return (), mutants == ALL_MUTANTS
    if callable(mutants) or isinstance(mutants, str | Mapping) or not isinstance(mutants, Iterable):
        raise TypeError(
            f"mutants must be {ALL_MUTANTS!r}, {NOISE!r}, None, or a list of mechanisms with one "
            f"mistake each, got {_validate.describe(mutants)}"
        )
    every = list(mutants)
    given = [one for one in every if not (isinstance(one, str) and one == NOISE)]
    wrapped = [_alike(one, mechanism) for one in given]
    for mutant in wrapped:
        if not isinstance(mutant, Change):
            check_kind("mutants", mutant, mechanism)
    return tuple(wrapped), len(given) == len(every)


def check_kind(argument: str, variant: Any, mechanism: Any) -> None:
    """Raise an error if a mutant or variant is not audited in the same way as the mechanism."""
    if not callable(variant) and not isinstance(variant, ExactMechanism):
        raise TypeError(
            f"{argument} must hold functions f(data, size, *, rng), got "
            f"{_validate.describe(variant)}"
        )
    if kind_of(variant) != kind_of(mechanism):
        raise TypeError(
            f"{argument} must hold mechanisms of the same kind as {mechanism_name(mechanism)}, "
            f"which {kind_of(mechanism)}, got {mechanism_name(variant)}, which {kind_of(variant)}"
        )


def kind_of(mechanism: Any) -> str:
    """Return a description of the way in which a mechanism is audited."""
    if isinstance(mechanism, ExactMechanism):
        return "has a pmf"
    if isinstance(mechanism, Composition):
        return "composes steps"
    if isinstance(mechanism, AdditiveNoise):
        return "draws its centres" if mechanism.is_random else "computes its centres"
    return _DRAWS


DEFAULT_DRAWS = 100_000


def audit(
    mechanism: Any,
    claim: Claim,
    pairs: Pairs | None = None,
    *,
    draws: int = DEFAULT_DRAWS,
    seed: int = DEFAULT_SEED,
    failure_prob: float = DEFAULT_FAILURE_PROB,
    mutants: str | Sequence[Any] | None = ALL_MUTANTS,
    method: str | Instrument[Any] = "fixed",
    score: Callable[[Any], Any] | Any | None = None,
    float_attack: bool | FloatAttack = False,
    id: str | None = None,
    settings: Settings | None = None,
) -> AuditResult:
    """Search for a certified violation of a claim.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise, Composition or ExactMechanism
        The mechanism is ``f(data, size, *, rng) -> array [size, ...]``, an :class:`AdditiveNoise`,
        or an object with ``pmf(data) -> [k]``. If the mechanism is an :class:`AdditiveNoise`, the
        final noise is integrated out. If the mechanism is a :class:`Composition`, its privacy loss
        is computed numerically, as a certified lower bound. If the mechanism has a pmf, the
        divergence is computed and not estimated. Wrap functions that return one draw in
        :func:`one_draw`. Wrap mechanisms that return dicts or raise exceptions in
        :class:`Outcomes`.
    claim : Claim
        What the mechanism promises.
    pairs : NeighborPair, sequence of NeighborPair, PairFamily, SearchSpace or Portfolio, optional
        The pairs to audit. If several pairs are given, the audit explores all of them and certifies
        the most promising pair. In a space or a portfolio, the audit searches for the worst pair
        (see :mod:`dpaudit.search`). The default is :func:`dpaudit.neighbors.portfolio` under the
        relation of the claim.
    draws : int, optional
        Total number of draws per dataset, including exploration, at least 20. The default is
        100,000.
    seed : int, optional
        Root seed, at least 0. Together with `id`, the seed determines every random number. The
        default is 0.
    failure_prob : float, optional
        Probability that any certified number of the mechanism is wrong, in (0, 1). The default is
        1e-6. The mutants and the smallest pair cost more (:attr:`AuditResult.total_failure_prob`).
    mutants : "all", "noise", sequence or None, optional
        Mutants, on which the audit shows its power. Each mutant is the mechanism with one mistake.
        Each mutant is audited on the same claim and pairs (see :mod:`dpaudit.engine.mutation`).
        With "all" (the default), mutants are made from the mechanism's noise and from other lines
        of its code, such as the lines that clip. With "noise", only the noise is changed, which
        takes less time. A sequence gives additional mutants: mechanisms with other mistakes, and
        changes such as ``mutants.without("my_module.clip")`` or ``mutants.scaled(scale=0.5)``. The
        audit must kill every mutant of the sequence. If the sequence contains "noise", the code is
        not changed. With None, no mutants are made, and an audit that finds no violation ends in
        NO_POWER. A refuted claim needs no mutants.
    method : {"fixed", "sequential"} or Instrument, optional
        With "fixed" (the default), the audit certifies as much as `draws` draws allow. With
        "sequential", the audit stops as soon as the claim is refuted. The audit also stops as soon
        as the rest of the budget could not certify any violation that is still possible. Use
        "sequential" for expensive mechanisms that draw their outputs. See
        :mod:`dpaudit.engine.bets`. A custom :class:`Instrument` replaces both methods. The custom
        instrument also audits the mutants.
    score : callable or classifier, optional
        Fixed function ``score(outputs) -> [size]``. The score of a draw depends only on the output
        of that draw. The audit uses the scores instead of the outputs. A score is post-processing,
        so everything certified for the scores holds for the outputs. Pass a score if you know a
        good one, such as a likelihood ratio. The score must not depend on draws of this audit. Or
        pass a classifier of scikit-learn that is not fitted. Copies are fitted to exploration
        draws, and the fitted score competes with the scores that dpaudit learns by itself.
    float_attack : bool or FloatAttack, optional
        Whether the low bits of floating-point outputs are also examined. A :class:`FloatAttack`
        gives the values and scales to try. The default is False.
    id : str, optional
        Name of the audit. The default is the mechanism's name.
    settings : Settings, optional
        Workers, time limits, cache and progress.

    Returns
    -------
    AuditResult
        Verdict, certified and estimated numbers, profile, witness, and the data to replay it.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    MechanismError
        If the mechanism violates its contract. Examples are a wrong shape, objects, inf, changed
        input, ignored `rng`, and an exception raised by the mechanism.
    MechanismTimeout
        If the mechanism exceeds its time limit.
    RecipeError
        If the function that builds the pairs of a space raises an exception.

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
            'max_seconds must be None unless method="sequential", because only this '
            f"method may stop at any time, got {settings.max_seconds:g} and "
            f"method={method!r}"
        )
    given, edits = checked_mutants(mutants, mechanism)
    is_side_channel = side_channel(mechanism) is not None
    with (
        working(settings.workers, settings.executor) as workers,
        settings.watching(task.name) as watch,
    ):
        task = replace(
            task,
            watch=watch,
            workers=None if is_side_channel else workers,
            cache_dir=settings.cache_dir,
            estimator=classifier(score),
            shrinks=settings.shrink and not is_side_channel,
            edits=edits and not is_side_channel,
        )
        result = _audited(task, mechanism, given)
    return replace(result, seconds=time.perf_counter() - start)


def _audited(task: Task, mechanism: Any, given: tuple[Any, ...] | None) -> AuditResult:
    """Audit a mechanism, and once more with a separate call for each draw if calls fail late.

    If no draw of a call fails, the draws equal the draws that separate calls would give. The two
    audits share `failure_prob`, so each is wrong with probability at most half of it.
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
    return _paid_twice(result)


def _paid_twice(result: AuditResult) -> AuditResult:
    """Return a result whose numbers pay for the attempt that failed late, too."""
    smallest = result.smallest
    if smallest is not None:
        smallest = replace(smallest, epsilon=_twice(smallest.epsilon), delta=_twice(smallest.delta))
    return replace(
        result,
        failure_prob=2 * result.failure_prob,
        p_value=min(2 * result.p_value, 1.0),
        epsilon=_twice(result.epsilon),
        delta=_twice(result.delta),
        mutants=tuple(replace(m, failure_prob=2 * m.failure_prob) for m in result.mutants),
        smallest=smallest,
        log_e_values=tuple(log - math.log(2) for log in result.log_e_values),
    )


def _twice(estimate: Estimate) -> Estimate:
    return replace(estimate, failure_prob=2 * estimate.failure_prob)
