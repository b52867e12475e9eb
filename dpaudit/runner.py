"""What an audit file talks to: the ``auditor``, and the settings of a run."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.engine import DEFAULT_FAILURE_PROB, MIN_DRAWS, audit, versions
from dpaudit.mechanisms import is_seeded
from dpaudit.neighbors import NeighborPair, PairFamily
from dpaudit.results import AuditResult, Verdict
from dpaudit.store import load_finished

PROFILES: dict[str, int] = {"quick": 100_000, "full": 1_000_000, "release": 10_000_000}
"""Draws a side of one audit, by profile; in rising order."""

DEFAULT_SEED = 0


@dataclass(frozen=True)
class Settings:
    """What one run asks of every audit.

    Parameters
    ----------
    profile : {"quick", "full", "release"}
        Budget of draws.
    seed : int
        Root seed, >= 0.
    failure_prob : float
        Of each audit, in (0, 1).
    """

    profile: str = "quick"
    seed: int = DEFAULT_SEED
    failure_prob: float = DEFAULT_FAILURE_PROB

    def __post_init__(self) -> None:
        _validate.choice(tuple(PROFILES), profile=self.profile)
        _validate.integer(0, seed=self.seed)
        _validate.failure_prob(failure_prob=self.failure_prob)

    def reaches(self, profile: str) -> bool:
        """Whether this run has at least the budget of `profile`."""
        order = list(PROFILES)
        _validate.choice(tuple(PROFILES), profile=profile)
        return order.index(self.profile) >= order.index(profile)

    def options(self) -> str:
        """Return the settings as command-line options."""
        return f"--profile {self.profile} --seed {self.seed} --failure-prob {self.failure_prob!r}"


@dataclass
class Auditor:
    """The fixture of an audit function: every :meth:`check` is one audit.

    Parameters
    ----------
    item : str
        Id of the audit function; a second check of the same function gets the suffix ``#2``.
    settings : Settings
        Budget and seed.
    origin : dict
        What `dpaudit replay` needs; stored with each result.
    expected : str or None
        "refuted" in a known violation, "not_refuted" elsewhere, None where either will do.
    """

    item: str
    settings: Settings
    origin: dict[str, Any] = field(default_factory=dict)
    expected: str | None = Verdict.NOT_REFUTED.value
    results: list[AuditResult] = field(default_factory=list)

    def check(
        self,
        mechanism: Any,
        claim: Claim,
        pairs: NeighborPair | PairFamily | Sequence[NeighborPair],
        *,
        twin: Any = None,
        draws: int | None = None,
        effort: float = 1.0,
    ) -> AuditResult:
        """Audit a mechanism with the budget and the seed of the run.

        The verdict is judged when the audit function ends, so that all its checks are made.

        Parameters
        ----------
        mechanism, claim, pairs, twin
            As in :func:`dpaudit.audit`.
        draws : int, optional
            Draws a side, whatever the profile.
        effort : float, optional
            Multiple of the profile's draws, > 0: below 1 for mechanisms that draw slowly, above
            1 where a violation needs more.

        Returns
        -------
        AuditResult
        """
        effort = _validate.positive(effort=effort)
        if draws is None:
            draws = max(int(PROFILES[self.settings.profile] * effort), MIN_DRAWS)
        number = len(self.results) + 1
        result = audit(
            mechanism,
            claim,
            pairs,
            draws=draws,
            failure_prob=self.settings.failure_prob,
            seed=self.settings.seed,
            twin=twin,
            id=self.item if number == 1 else f"{self.item}#{number}",
        ).with_origin({**self.origin, "seeded": seeded(mechanism, twin)}, self.expected)
        self.results.append(result)
        return result

    def finished_results(self) -> list[AuditResult]:
        """Return the results, each with the number of checks that its function made in all."""
        return [
            r.with_origin({**r.origin, "checks": len(self.results)}, r.expected)
            for r in self.results
        ]

    def take_over(self, out: Path) -> None:
        """Take over the results that an interrupted run of the same audit left in `out`."""
        found, lost = load_finished(out, self.item, self.origin["fingerprint"])
        self.results += [result.with_origin(self.origin, self.expected) for result in found]
        for problem in lost:
            warnings.warn(f"{problem}; audited again", stacklevel=2)


def seeded(mechanism: Any, twin: Any) -> bool:
    """Whether a replay of the audit must give the same counts."""
    return is_seeded(mechanism) and (twin is None or is_seeded(twin))


def surprise(result: AuditResult) -> str | None:
    """Say in one sentence why a result fails a run; None when it does not."""
    if result.expected == Verdict.REFUTED.value:
        if result.verdict is not Verdict.REFUTED:
            return (
                "a known violation was not found again: fix the audit, or take the mark away if "
                "the mechanism was mended"
            )
        return None
    if result.expected is None:
        return None
    if result.verdict is Verdict.REFUTED:
        return f"the claim is refuted: {result.reason}"
    if result.verdict is Verdict.NO_POWER and result.twin is not None:
        return f"the audit has no power: {result.reason}"
    return None


def fingerprint(root: Path, settings: Settings) -> str:
    """Return what a stored result must share with a run that resumes, to be taken over.

    Settings, versions, and the source of every module of the project that is loaded: a result is
    stale when any of them has changed.
    """
    digest = hashlib.sha256(repr((settings, sorted(versions().items()))).encode())
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for file in sorted(Path(f).resolve() for f in files if f):
        if file.suffix == ".py" and _belongs(file, root.resolve()):
            digest.update(file.relative_to(root.resolve()).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _belongs(file: Path, root: Path) -> bool:
    """Whether a file is the project's own, and not of an environment inside it."""
    inside = file.is_relative_to(root) and file.is_file()
    return inside and "site-packages" not in file.parts
