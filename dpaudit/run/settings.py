"""Settings that a run applies to every audit and check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB, DEFAULT_SEED

PROFILES: dict[str, int] = {"quick": 100_000, "full": 1_000_000, "release": 10_000_000}
"""Draws per dataset of one audit, by profile, in rising order."""


@dataclass(frozen=True)
class RunSettings:
    """Settings that a run applies to every audit and check.

    Parameters
    ----------
    profile : {"quick", "full", "release"}
        Budget of draws.
    seed : int
        Root seed, >= 0.
    failure_prob : float
        Failure probability of each audit, in (0, 1).
    sequential : bool
        Whether audits stop as soon as the evidence suffices, unless an audit specifies otherwise.
    strict : bool
        Whether NO POWER makes the run fail, even if the user gave no mutant.
    time_limit : float, optional
        Time limit of an audit in seconds, > 0. By default, there is no limit.
    workers : int or str
        Number of processes that draw for one audit, at least 1. Alternatively, the address of a
        Dask scheduler whose workers draw, or "local" for a scheduler on this machine. Results do
        not depend on the number of workers.
    """

    profile: str = "quick"
    seed: int = DEFAULT_SEED
    failure_prob: float = DEFAULT_FAILURE_PROB
    sequential: bool = False
    strict: bool = False
    time_limit: float | None = None
    workers: int | str = 1

    def __post_init__(self) -> None:
        _validate.choice(tuple(PROFILES), profile=self.profile)
        _validate.seed(seed=self.seed)
        _validate.failure_prob(failure_prob=self.failure_prob)
        if self.time_limit is not None:
            _validate.positive(time_limit=self.time_limit)
        if not isinstance(self.workers, str):
            _validate.integer(1, workers=self.workers)

    def reaches(self, profile: str) -> bool:
        """Return whether this run has at least the budget of `profile`."""
        order = list(PROFILES)
        _validate.choice(tuple(PROFILES), profile=profile)
        return order.index(self.profile) >= order.index(profile)

    def origin(self) -> dict[str, Any]:
        """Return the settings on which the numbers of a record depend, in addition to its seed."""
        return {
            "profile": self.profile,
            "failure_prob": self.failure_prob,
            "sequential": self.sequential,
        }

    def words(self) -> list[str]:
        """Return the options of ``dpaudit run`` that request these settings."""
        words = ["--profile", self.profile, "--seed", str(self.seed)]
        words += ["--failure-prob", repr(self.failure_prob)]
        words += ["--sequential"] * bool(self.sequential) + ["--strict"] * bool(self.strict)
        words += [] if self.time_limit is None else ["--time-limit", f"{self.time_limit:g}"]
        return words + ["--workers", str(self.workers)] * (self.workers != 1)

    def pytest_options(self) -> list[str]:
        """Return the options of the pytest plugin that request the same settings."""
        return [f"--dpaudit-{w[2:]}" if w.startswith("--") else w for w in self.words()]


def workers_of(words: str) -> int | str:
    """Return the number of processes given by an option, or the address of a scheduler."""
    return int(words) if re.fullmatch(r"[+-]?\d+", words) else words


def settings_of(config: pytest.Config) -> RunSettings:
    """Return the settings in the options of pytest.

    Raise a usage error for bad options.
    """

    def option(name: str, default: str) -> str:
        # The options have no default values, so that it is known whether an option was set.
        value = config.getoption(f"--dpaudit-{name}")
        return default if value is None else str(value)

    try:
        seed = int(option("seed", str(DEFAULT_SEED)))
        failure_prob = float(option("failure-prob", repr(DEFAULT_FAILURE_PROB)))
        seconds = option("time-limit", "")
        time_limit = float(seconds) if seconds else None
    except ValueError as error:
        raise pytest.UsageError(
            f"--dpaudit-seed, --dpaudit-failure-prob and --dpaudit-time-limit: {error}"
        ) from None
    try:
        return RunSettings(
            option("profile", "quick"),
            seed,
            failure_prob,
            bool(config.getoption("--dpaudit-sequential")),
            bool(config.getoption("--dpaudit-strict") or config.getini("dpaudit_strict")),
            time_limit,
            workers_of(option("workers", "1")),
        )
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def selected_by(config: pytest.Config) -> list[str]:
    """Return the options -k and -m of a run of pytest."""
    return selection_words(
        *(config.getoption(name, default="") for name in ("keyword", "markexpr"))
    )


def selection_words(keyword: str, marks: str) -> list[str]:
    """Return the options of pytest and of dpaudit that select by names and by marks."""
    options = (("-k", keyword), ("-m", marks))
    return [word for option in options if option[1] for word in option]
