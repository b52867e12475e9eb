"""One attempt to break a claim ``lhs <= rhs``, as plain data: what it saw, and what broke.

The *ratio* lhs / rhs says how tight a claim is: at most 1 where it holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from dpaudit._json import Count, Probability
from dpaudit.results import MutantResult, MutantStatus


class Method(StrEnum):
    """How a verdict was reached, the firmest first."""

    EXACT = "exact"
    NUMERIC = "numeric"
    PROPERTY = "property"
    MONTE_CARLO = "monte_carlo"
    ARGUMENT = "argument"

    @property
    def words(self) -> str:
        """The method as people read it."""
        return self.value.replace("_", " ")


class Power(StrEnum):
    """Whether the mutant of a check was refuted."""

    KILLED = "killed"
    PARTLY = "partly"
    """Killed, but some attempts of the row have no mutant."""
    SURVIVED = "survived"
    NONE = "none"


class Role(StrEnum):
    """What an attempt is made on."""

    STATEMENT = "statement"
    """What the paper says."""
    READING = "reading"
    """One way to read it, of several."""
    STEP = "step"
    """A step of its printed proof."""
    EDGE = "edge"
    """What it says outside the conventions of the paper."""
    SHARPER = "sharper"
    """More than it says."""
    REPAIR = "repair"
    """The corrected statement."""


@dataclass(frozen=True)
class Counterexample:
    """A case in which a claim fails.

    Parameters
    ----------
    case : dict
        The inputs, as plain data that can be handed to the check again.
    lhs, rhs : float
        The two sides there. A NaN breaks any claim, and becomes the infinity that breaks it.
    exact : bool
        Whether they were computed in exact or high-precision arithmetic as well.
    nan : bool
        Whether a side was a NaN.
    snippet : str
        Lines of Python that print both sides, with numpy and scipy alone; empty where there are
        none.
    """

    case: dict[str, Any]
    lhs: float
    rhs: float
    exact: bool = False
    nan: bool = False
    snippet: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.lhs) or math.isnan(self.rhs):
            object.__setattr__(self, "nan", True)
        if math.isnan(self.lhs):
            object.__setattr__(self, "lhs", math.inf)
        if math.isnan(self.rhs):
            object.__setattr__(self, "rhs", -math.inf)


@dataclass(frozen=True)
class Trace:
    """The ratio over what was searched: some of the cases that were judged.

    Parameters
    ----------
    names : tuple of str
        Of one or two coordinates.
    log : tuple of bool
        Whether they were searched on a logarithmic scale.
    points : tuple of tuple of float
        The coordinates of each case, and its ratio behind them.
    """

    names: tuple[str, ...]
    log: tuple[bool, ...]
    points: tuple[tuple[float, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= 2 or len(self.log) != len(self.names):
            raise ValueError("names and log must hold one or two values each")
        if any(len(point) != len(self.names) + 1 for point in self.points):
            raise ValueError("points must hold the coordinates and the ratio")


@dataclass(frozen=True)
class Attempt:
    """One attempt to break one claim ``lhs <= rhs``.

    Parameters
    ----------
    claim : str
        What was attacked, in words.
    method : Method
        How.
    examples : int
        Cases that were judged.
    rejected : int
        Cases outside the hypotheses, which say nothing.
    tightest : float or None
        Largest lhs / rhs found; None where the claim is no inequality.
    error : float or None
        Of an equality: the largest relative difference found.
    where : dict
        The case in which it was found.
    counterexample : Counterexample or None
        A counterexample, made small.
    power : Power
        Whether the mutant was refuted: the same claim with its constant halved, unless said
        otherwise.
    mutant : str
        What the mutant was.
    weak : tuple of str
        Why the attempt means less than it should.
    failure_prob : float
        Probability, at most, that it refutes or kills its mutant by bad luck; 0 without draws.
    role : Role
        What it is made on.
    subject : str
        Of a step of the proof: which one. Of an edge: the convention that is left. Of a reading
        and of a repair: its words.
    mends : str
        Of a step that fails: what mends the proof.
    lhs, rhs : str
        What the two sides mean.
    end_to_end : bool
        Whether the thing itself was run or computed whole, so that it does not rest on what the
        proof rests on.
    trace : Trace or None
        The ratio over what was searched.
    mutants : tuple of MutantResult
        Of an audit: how the mutants of the mechanism fared.
    survivors : str
        Why mutants of the mechanism survive, where they do.
    """

    claim: str
    method: Method
    examples: Count
    rejected: Count = 0
    tightest: float | None = None
    error: float | None = None
    where: dict[str, Any] = field(default_factory=dict)
    counterexample: Counterexample | None = None
    power: Power = Power.NONE
    mutant: str = ""
    weak: tuple[str, ...] = ()
    failure_prob: Probability = 0.0
    role: Role = Role.STATEMENT
    subject: str = ""
    mends: str = ""
    lhs: str = ""
    rhs: str = ""
    end_to_end: bool = False
    trace: Trace | None = None
    mutants: tuple[MutantResult, ...] = ()
    survivors: str = ""

    @property
    def violated(self) -> bool:
        """Whether a counterexample was found."""
        return self.counterexample is not None

    @property
    def empty(self) -> bool:
        """Whether it judged nothing, so that not to be violated means nothing."""
        return self.examples == 0 and self.method is not Method.ARGUMENT

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Mutants of a mechanism that survived, where nobody says why."""
        if self.survivors or self.violated:
            return ()
        return tuple(m.name for m in self.mutants if m.status is MutantStatus.SURVIVED)


def ratio(lhs: float, rhs: float) -> float:
    """Return how tight ``lhs <= rhs`` is: at most 1 exactly where it holds.

    The quotient where both sides are positive; 0 or infinite where rhs is 0; where a side is
    negative, 1 plus the difference relative to the larger one. A NaN on either side breaks any
    claim: infinite.

    Examples
    --------
    >>> ratio(1.0, 2.0), ratio(0.0, 0.0), ratio(1.0, 0.0), ratio(-1.0, 1.0)
    (0.5, 0.0, inf, -1.0)
    """
    if math.isnan(lhs) or math.isnan(rhs):
        return math.inf
    if lhs == rhs:
        return 0.0 if rhs == 0 else 1.0
    if lhs == math.inf or rhs == -math.inf or (rhs == 0 and lhs > 0):
        return math.inf
    if rhs == math.inf or lhs == -math.inf:
        return -1.0
    if lhs >= 0 and rhs > 0:
        found = lhs / rhs
    else:
        found = 1.0 + (lhs / 2 - rhs / 2) / max(abs(lhs), abs(rhs)) * 2
    # Neighbouring doubles may have the quotient 1.
    return max(found, math.nextafter(1.0, 2.0)) if lhs > rhs else found


def plain_case(value: Any) -> Any:
    """Return a case as plain data: arrays as lists, numpy numbers as Python's, NaN as a word."""
    if isinstance(value, np.ndarray):
        return plain_case(value.tolist())
    if isinstance(value, np.generic):
        return plain_case(value.item())
    if isinstance(value, Mapping):
        return {str(key): plain_case(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_case(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)
