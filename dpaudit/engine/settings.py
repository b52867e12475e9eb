"""How an audit runs: processes, time limits, a cache and progress."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass

from dpaudit import _validate
from dpaudit.mechanisms import Watch, Workers, checked_workers


@dataclass(frozen=True)
class Settings:
    """How an audit runs; certified numbers do not depend on it, except through `max_seconds`.

    Parameters
    ----------
    workers : int or Workers, optional
        Processes that draw; dead ones are replaced. Results equal those of one process, bit by bit.
    executor : concurrent.futures.Executor, optional
        Draws instead of `workers`, such as the executor of a cluster; it is left open.
    time_limit : float, optional
        Seconds after which the whole audit fails with :class:`MechanismTimeout`, > 0.
    call_limit : float, optional
        Seconds that one call of a mechanism may take, > 0; see :class:`dpaudit.mechanisms.Watch`
        for where a hanging call can be interrupted.
    max_seconds : float, optional
        Seconds after which the audit ends with what is certified so far, > 0. Needs
        ``method="sequential"``, the only method whose result is valid at any stopping time; 0.7 of
        the time are for the mechanism, the rest for its mutants.
    cache_dir : path, optional
        Directory in which every call of the mechanism is stored as soon as it was made. An
        interrupted audit resumes where it stopped. An audit of another claim, with the same `id`,
        `seed` and `draws`, reuses the stored draws; that claim must not be chosen by what the first
        audit found, or `failure_prob` no longer holds. Calls of a mechanism whose file or bound
        values changed are refused; changes of what it imports are not detected.
    progress : callable, optional
        ``progress(done, total)``, called after each call with the draws made and planned.

    Raises
    ------
    ValueError, TypeError
        For a value out of range, or both `workers` and `executor`.
    """

    workers: int | Workers | None = None
    executor: Executor | None = None
    time_limit: float | None = None
    call_limit: float | None = None
    max_seconds: float | None = None
    cache_dir: str | os.PathLike[str] | None = None
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self.watch()
        checked_workers(self.workers, self.executor)
        if self.cache_dir is not None:
            _validate.path(cache_dir=self.cache_dir)

    def watch(self) -> Watch:
        """Return a clock with these limits, which starts now."""
        return Watch(self.progress, self.time_limit, self.call_limit, max_seconds=self.max_seconds)


def checked_settings(settings: Settings | None) -> Settings:
    """Return settings, the default ones for None; refuse anything else."""
    if settings is None:
        return Settings()
    return _validate.instance(Settings, "dpaudit.Settings(...) or None", settings=settings)
