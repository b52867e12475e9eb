"""What an audit file talks to: the ``auditor``, and the settings of a run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit import _validate
from dpaudit._validate import DEFAULT_FAILURE_PROB
from dpaudit.claims import Claim
from dpaudit.engine import MIN_DRAWS, audit, versions
from dpaudit.errors import ArgumentError
from dpaudit.events import FloatAttack
from dpaudit.ledger import LedgerVerdict, StatementResult
from dpaudit.mechanisms import AdditiveNoise, ExactMechanism, is_seeded
from dpaudit.neighbors import NeighborPair, PairFamily
from dpaudit.results import AuditResult, Expectation
from dpaudit.search import SearchSpace
from dpaudit.store import load_finished, load_finished_statement

if TYPE_CHECKING:
    from dpaudit.ledger import FunctionCheck

PROFILES: dict[str, int] = {"quick": 100_000, "full": 1_000_000, "release": 10_000_000}
"""Draws per dataset of one audit, by profile; in rising order."""

FUNCTION_EXAMPLES: dict[str, int] = {"quick": 1_000, "full": 10_000, "release": 100_000}
"""Pairs on which a deterministic function is tried, by profile."""

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
    sequential : bool
        Whether audits stop as soon as the evidence is in, unless they say otherwise.
    """

    profile: str = "quick"
    seed: int = DEFAULT_SEED
    failure_prob: float = DEFAULT_FAILURE_PROB
    sequential: bool = False

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
        words = f"--profile {self.profile} --seed {self.seed} --failure-prob {self.failure_prob!r}"
        return words + " --sequential" * self.sequential


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
    expected : Expectation
        What the audit function declares.
    problems : list of str
        Sentences about stored files that could not be taken over.
    """

    item: str
    settings: Settings
    origin: dict[str, Any] = field(default_factory=dict)
    expected: Expectation = Expectation.NOT_REFUTED
    results: list[AuditResult] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    functions: list[FunctionCheck] = field(default_factory=list)
    taken: StatementResult | None = None
    """The row of functions that an interrupted run left, where its results are taken over."""

    def check(
        self,
        mechanism: Any,
        claim: Claim,
        pairs: NeighborPair | PairFamily | Sequence[NeighborPair] | SearchSpace,
        *,
        mutant: Any = None,
        draws: int | None = None,
        draws_factor: float | None = None,
        sequential: bool | None = None,
        float_attack: bool | FloatAttack = False,
        slack: Mapping[float, Any] | None = None,
    ) -> AuditResult:
        """Audit a mechanism with the budget and the seed of the run.

        The verdict is judged when the audit function ends, so that all its checks are made.

        Parameters
        ----------
        mechanism, claim, pairs, mutant, float_attack, slack
            As in :func:`dpaudit.audit`.
        draws : int, optional
            Draws per dataset, whatever the profile; not together with `draws_factor`.
        draws_factor : float, optional
            Multiple of the profile's draws, > 0: below 1 for mechanisms that draw slowly, above
            1 where a violation needs more. Default 1.
        sequential : bool, optional
            Whether to stop as soon as the evidence is in; the draws are the most that is spent.
            Default: what the run asks for (``dpaudit run --sequential``).

        Returns
        -------
        AuditResult
        """
        if draws is not None and draws_factor is not None:
            raise ArgumentError(
                f"give draws or draws_factor, got draws={draws!r} and draws_factor={draws_factor!r}"
            )
        draws_factor = _validate.positive(
            draws_factor=1.0 if draws_factor is None else draws_factor
        )
        if draws is None:
            draws = max(int(PROFILES[self.settings.profile] * draws_factor), MIN_DRAWS)
        number = len(self.results) + 1
        result = audit(
            mechanism,
            claim,
            pairs,
            draws=draws,
            failure_prob=self.settings.failure_prob,
            seed=self.settings.seed,
            mutant=mutant,
            sequential=self._sequential(mechanism) if sequential is None else sequential,
            float_attack=float_attack,
            slack=slack,
            id=self.item if number == 1 else f"{self.item}#{number}",
        ).with_origin({**self.origin, "seeded": seeded(mechanism, mutant)}, self.expected)
        self.results.append(result)
        return result

    # --- deterministic functions ---

    def check_sensitivity(self, function: Any, bound: float, **options: Any) -> FunctionCheck:
        """Search for neighbours on which a function moves by more than its sensitivity.

        Parameters
        ----------
        function, bound, options
            As for :func:`dpaudit.check_sensitivity`; seed and number of pairs are the run's.
        """
        from dpaudit.ledger import check_sensitivity

        return self._function(check_sensitivity, function, bound, options)

    def check_lipschitz(self, function: Any, bound: float, **options: Any) -> FunctionCheck:
        """Search for two points that break a bound; see :func:`dpaudit.check_lipschitz`."""
        from dpaudit.ledger import check_lipschitz

        return self._function(check_lipschitz, function, bound, options)

    def check_contraction(
        self, function: Any, factor: float = 1.0, **options: Any
    ) -> FunctionCheck:
        """Search for points that a map moves apart; see :func:`dpaudit.check_contraction`."""
        from dpaudit.ledger import check_contraction

        return self._function(check_contraction, function, factor, options)

    def _function(
        self, check: Any, function: Any, bound: float, options: dict[str, Any]
    ) -> FunctionCheck:
        examples = FUNCTION_EXAMPLES[self.settings.profile]
        options = {"examples": examples, "seed": self.settings.seed, **options}
        found: FunctionCheck = check(function, bound, **options)
        self.functions.append(found)
        return found

    def function_row(self) -> StatementResult | None:
        """Return the checks of functions as one row of the ledger; None without any."""
        if not self.functions:
            return self.taken
        broken = any(check.violated for check in self.functions)
        return StatementResult(
            self.item,
            Path(self.origin.get("path", self.item)).stem,
            "function",
            "; ".join(f"{check.function}: {check.claim}" for check in self.functions),
            LedgerVerdict.REFUTED if broken else LedgerVerdict.HOLDS,
            self.functions[0].attempt.method,
            tuple(check.attempt for check in self.functions),
            seed=self.settings.seed,
            needs_power=False,
        ).with_origin(self.origin)

    def _sequential(self, mechanism: Any) -> bool:
        """Return what the run asks for, where it applies."""
        return self.settings.sequential and not isinstance(
            mechanism, AdditiveNoise | ExactMechanism
        )

    def finished_results(self, *, whole: bool) -> list[AuditResult]:
        """Return the results, each with the number of checks that its function made in all.

        Where the function broke off, `whole` is False and nobody knows that number.
        """
        checks = len(self.results) if whole else None
        made = {"checks": checks, "functions": self.function_row() is not None}
        return [r.with_origin({**r.origin, **made}, r.expected) for r in self.results]

    def take_over(self, out: Path) -> None:
        """Take over what an interrupted run of the same audit left in `out`: all of it, or none."""
        mark = self.origin["fingerprint"]
        found, lost = load_finished(out, self.item, mark)
        if any(result.origin.get("functions") for result in found):
            self.taken, lost_row = load_finished_statement(out, self.item, mark)
            lost += lost_row
            found = found if self.taken is not None else []
        self.results += [r.with_origin({**r.origin, **self.origin}, self.expected) for r in found]
        self.problems += [f"{problem}; audited again" for problem in lost]


def seeded(mechanism: Any, mutant: Any) -> bool:
    """Whether a replay of the audit must give the same counts."""
    return is_seeded(mechanism) and (mutant is None or is_seeded(mutant))


def fingerprint(root: Path, settings: Settings) -> str:
    """Return what a stored result must share with a run that resumes, to be taken over.

    Settings, versions, the source of dpaudit and of every other module of the project that is
    loaded: a result is stale when any of them has changed. All of dpaudit counts, loaded or not,
    because workers load less of it.
    """
    digest = hashlib.sha256(repr((settings, sorted(versions().items()))).encode())
    package, root = Path(__file__).resolve().parent, root.resolve()
    names = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    loaded = {Path(name).resolve() for name in names if name}
    project = {f for f in loaded if _belongs(f, root) and not f.is_relative_to(package)}
    for file in sorted(set(package.rglob("*.py")) | project):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _belongs(file: Path, root: Path) -> bool:
    """Whether a file is the project's own, and not of an environment inside it."""
    own = file.suffix == ".py" and file.is_relative_to(root) and file.is_file()
    return own and "site-packages" not in file.parts
