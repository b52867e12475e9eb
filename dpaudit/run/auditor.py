"""The fixture ``auditor``, which audit files use."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.engine import (
    ALL_MUTANTS,
    MIN_DRAWS,
    Instrument,
    Pairs,
    Settings,
    audit,
    checked_settings,
    noise_margin,
)
from dpaudit.errors import ArgumentError
from dpaudit.events import FloatAttack
from dpaudit.mechanisms import (
    TIME_IS_OVER,
    Cluster,
    Processes,
    Workers,
    is_seeded,
    may_be_sequential,
)
from dpaudit.mutants import code_hash
from dpaudit.results import AuditResult, Expectation
from dpaudit.run.progress import ProgressWriter
from dpaudit.run.settings import PROFILES, RunSettings

if TYPE_CHECKING:
    from dpaudit.properties import FunctionCheck

FUNCTION_EXAMPLES: dict[str, int] = {"quick": 1_000, "full": 10_000, "release": 100_000}
"""Number of pairs on which a deterministic function is tried, by profile."""


@dataclass
class Auditor:
    """The fixture of an audit function.

    Every call of :meth:`check` is one audit.

    Parameters
    ----------
    item : str
        Id of the audit function. A second check of the same function gets the suffix ``#2``.
    settings : RunSettings
        Budget and seed of the audits.
    expected : Expectation
        Expectation that the audit function declares.
    progress : ProgressWriter, optional
        Object to which the progress of each audit is reported.
    """

    item: str
    settings: RunSettings
    expected: Expectation = Expectation.NOT_REFUTED
    progress: ProgressWriter | None = None
    results: list[AuditResult] = field(default_factory=list)
    _claims: dict[str, Claim] = field(default_factory=dict, init=False, repr=False)
    functions: list[FunctionCheck] = field(default_factory=list)

    def check(
        self,
        mechanism: Any,
        claim: Claim,
        pairs: Pairs | None = None,
        *,
        mutants: str | Sequence[Any] | None = ALL_MUTANTS,
        draws: int | None = None,
        draws_factor: float | None = None,
        method: str | Instrument[Any] | None = None,
        score: Callable[[Any], Any] | Any | None = None,
        float_attack: bool | FloatAttack = False,
        settings: Settings | None = None,
    ) -> AuditResult:
        """Audit a mechanism with the budget and the seed of the run.

        The verdict of the function is determined when the audit function ends, so that all its
        checks run.

        Parameters
        ----------
        mechanism, claim, pairs, mutants, score, float_attack
            As in :func:`dpaudit.audit`.
        draws : int, optional
            Number of draws per dataset, for any profile. Do not give `draws` together with
            `draws_factor`.
        draws_factor : float, optional
            Factor by which the profile's draws are multiplied, > 0. Use a factor below 1 for slow
            mechanisms, and above 1 if a violation needs more draws. The default is 1.
        method : {"fixed", "sequential"} or Instrument, optional
            As in :func:`dpaudit.audit`. The default is "sequential" if the run asks for it
            (``dpaudit run --sequential``) and the mechanism draws its outputs.
        settings : Settings, optional
            As in :func:`dpaudit.audit`. The defaults of workers and time limit are those of the
            run.

        Returns
        -------
        AuditResult
        """
        if draws is not None and draws_factor is not None:
            raise ArgumentError(
                f"at most one of draws and draws_factor must be given, got draws={draws!r} and "
                f"draws_factor={draws_factor!r}"
            )
        draws_factor = _validate.positive(
            draws_factor=1.0 if draws_factor is None else draws_factor
        )
        if draws is None:
            draws = max(int(PROFILES[self.settings.profile] * draws_factor), MIN_DRAWS)
        if method is None:  # use the method of the run if it suits the mechanism
            wanted = self.settings.sequential and may_be_sequential(mechanism)
            method = "sequential" if wanted else "fixed"
        number = len(self.results) + 1
        id = self.item if number == 1 else f"{self.item}#{number}"
        # Before the mechanism is called and may change. A source of its own may repeat its draws.
        code = code_hash(mechanism) if is_seeded(mechanism) else ""
        with self._running(id, settings) as how:
            result = audit(
                mechanism,
                claim,
                pairs,
                draws=draws,
                seed=self.settings.seed,
                failure_prob=self.settings.failure_prob,
                mutants=mutants,
                method=method,
                score=score,
                float_attack=float_attack,
                id=id,
                settings=how,
            )
        facts = {"replays": replays(result, mechanism, mutants), "code": code}
        result = result.with_origin(facts, self.expected)
        self.results.append(result)
        self._claims[id] = claim
        return result

    def noise_margin(
        self, result: AuditResult, variants: Mapping[float, Any], **options: Any
    ) -> AuditResult:
        """Audit a mechanism with less noise, and store the margin together with its result.

        Parameters
        ----------
        result : AuditResult
            Result that :meth:`check` returned.
        variants, options
            As in :func:`dpaudit.noise_margin`.

        Returns
        -------
        AuditResult
            The result with its margin.

        Raises
        ------
        ArgumentError
            If the result comes from another auditor.
        """
        at = next((at for at, one in enumerate(self.results) if one is result), None)
        if at is None:
            raise ArgumentError(
                "result must be a result that check() of this auditor returned, got "
                + _validate.describe(result)
            )
        with self._running(result.id, options.pop("settings", None)) as how:
            margin = noise_margin(
                result, self._claims[result.id], variants, settings=how, **options
            )
        diagnostics = replace(result.diagnostics, noise_margin=margin)
        self.results[at] = replace(result, diagnostics=diagnostics)
        return self.results[at]

    @contextmanager
    def _running(self, id: str, given: Settings | None) -> Iterator[Settings]:
        """Yield settings with the defaults of the run, and report progress during the audit."""
        run, how = self.settings, checked_settings(given)
        if how.workers is None and how.executor is None:
            how = replace(how, workers=drawn_by(run.workers))
        if how.time_limit is None:
            how = replace(how, time_limit=run.time_limit)
        if self.progress is None:
            yield how
            return
        self.progress.begin(id, how.time_limit)
        try:
            told = self.progress.report_progress if how.progress is None else how.progress
            yield replace(how, progress=told)
        finally:
            self.progress.end()

    # --- deterministic functions ---

    def check_sensitivity(self, function: Any, bound: float, **options: Any) -> FunctionCheck:
        """Search for neighbours on which a function moves by more than its sensitivity.

        Parameters
        ----------
        function, bound, options
            As in :func:`dpaudit.check_sensitivity`. The seed and the number of pairs are those of
            the run.
        """
        from dpaudit.properties import check_sensitivity

        return self._function(check_sensitivity, function, bound, options)

    def check_lipschitz(self, function: Any, bound: float, **options: Any) -> FunctionCheck:
        """Search for two points that violate a bound, as :func:`dpaudit.check_lipschitz` does."""
        from dpaudit.properties import check_lipschitz

        return self._function(check_lipschitz, function, bound, options)

    def check_contraction(
        self, function: Any, factor: float = 1.0, **options: Any
    ) -> FunctionCheck:
        """Search for points that a map moves apart, as :func:`dpaudit.check_contraction` does."""
        from dpaudit.properties import check_contraction

        return self._function(check_contraction, function, factor, options)

    def _function(
        self, check: Any, function: Any, bound: float, options: dict[str, Any]
    ) -> FunctionCheck:
        examples = FUNCTION_EXAMPLES[self.settings.profile]
        options = {"examples": examples, "seed": self.settings.seed, **options}
        found: FunctionCheck = check(function, bound, **options)
        self.functions.append(found)
        return found


def replays(result: AuditResult, mechanism: Any, mutants: str | Sequence[Any] | None) -> bool:
    """Return whether a replay of the audit must give equal counts."""
    given = () if mutants is None or isinstance(mutants, str) else mutants
    seeded = all(map(is_seeded, [mechanism, *given]))
    return seeded and not ended_by_clock(result)


def ended_by_clock(result: AuditResult) -> bool:
    """Return whether any part of an audit ended because its `max_seconds` had passed."""
    ended = [mutant.note for mutant in result.mutants]
    ended += (
        [] if result.diagnostics.sequential is None else [result.diagnostics.sequential.stopped]
    )
    return any(TIME_IS_OVER in words for words in ended)


@functools.cache
def drawn_by(workers: int | str) -> Workers | None:
    """Return the workers of all audits of this process.

    The workers are closed when the process ends.
    """
    if workers == 1:
        return None
    begun: Workers = Cluster(workers) if isinstance(workers, str) else Processes(workers)
    atexit.register(begun.close)
    return begun
