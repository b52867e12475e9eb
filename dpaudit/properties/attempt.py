"""One attempt to violate a claim ``lhs <= rhs``, with its cases and counterexample, as plain data.

The *ratio* lhs / rhs says how tight a claim is. The ratio of a case is at most 1 if the claim holds
for the case.
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
    """Method that led to a verdict, with the strongest method first."""

    EXACT = "exact"
    """All possible cases were judged, or cases that suffice by a proof."""
    NUMERIC = "numeric"
    """A list or a grid of some cases was judged."""
    PROPERTY = "property"
    """A search judged some cases."""
    MONTE_CARLO = "monte_carlo"
    """Draws were made. Only an attempt with a failure probability certifies its numbers."""
    ARGUMENT = "argument"
    """Nothing was run: words say why the statement holds."""

    @property
    def words(self) -> str:
        """The method as text."""
        return self.value.replace("_", " ")


class Power(StrEnum):
    """Whether the mutant of a check was refuted."""

    KILLED = "killed"
    PARTLY = "partly"
    """Killed, but some attempts of the row have no mutant."""
    SURVIVED = "survived"
    NONE = "none"


class Role(StrEnum):
    """The subject of an attempt, such as a statement or a step of its proof."""

    STATEMENT = "statement"
    """The statement of the paper."""
    READING = "reading"
    """One of several ways to read the statement."""
    STEP = "step"
    """A step of its printed proof."""
    EDGE = "edge"
    """The statement outside the conventions of the paper."""
    SHARPER = "sharper"
    """A claim that is stronger than the statement."""
    REPAIR = "repair"
    """The corrected statement."""
    MISPRINT = "misprint"
    """The statement with a misprint, as printed."""


@dataclass(frozen=True)
class Counterexample:
    """A case in which a claim fails.

    Parameters
    ----------
    case : dict
        The inputs as plain data, which can be passed to the check again.
    lhs, rhs : float
        The two sides of the claim for this case. A claim fails if a side is NaN. A NaN is stored as
        the infinity that breaks the claim. For an equality of arrays, the two entries that differ
        most.
    exact : bool
        Whether the sides were also computed in exact or high-precision arithmetic.
    nan : bool
        Whether a side was a NaN.
    snippet : str
        Python code that prints both sides and needs only numpy and scipy; empty if there is none.
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
    """The ratio as a function of the searched coordinates, for some judged cases.

    Parameters
    ----------
    names : tuple of str
        Names of one or two coordinates.
    log : tuple of bool
        Whether each coordinate was searched on a logarithmic scale.
    points : tuple of tuple of float
        For each case, its coordinates followed by its ratio.
    """

    names: tuple[str, ...]
    log: tuple[bool, ...]
    points: tuple[tuple[float, ...], ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= 2 or len(self.log) != len(self.names):
            raise ValueError("names and log must each hold one or two values")
        if any(len(point) != len(self.names) + 1 for point in self.points):
            raise ValueError("points must hold the coordinates and the ratio")


@dataclass(frozen=True)
class Attempt:
    """One attempt to violate one claim ``lhs <= rhs``.

    Parameters
    ----------
    claim : str
        Description of the claim.
    method : Method
        Method of the attempt.
    examples : int
        Number of cases that were judged.
    rejected : int
        Number of cases outside the hypotheses of the claim. These cases show nothing.
    tightest : float or None
        Largest lhs / rhs among the cases. None if the claim is not an inequality.
    error : float or None
        For an equality, the largest relative difference among the cases.
    where : dict
        The case with the largest ratio or difference.
    counterexample : Counterexample or None
        A counterexample in simplified form.
    power : Power
        Whether the mutant was refuted. By default, the mutant is the same claim with its constant
        halved.
    mutant : str
        Description of the mutant.
    weak : tuple of str
        Reasons why the attempt is weaker than it should be.
    failure_prob : float
        Largest probability that the attempt refutes the claim or kills its mutant by chance; 0 if
        nothing is drawn.
    role : Role
        Subject of the attempt.
    subject : str
        For a step of the proof, the name of the step. For an edge, the convention that is violated.
        For a reading or a repair, the text of the reading or repair.
    fix : str
        For a step that fails, a repair of the proof.
    lhs, rhs : str
        Descriptions of the two sides.
    covered : str
        If the object itself was run or computed completely, the sizes and ranges of these runs. For
        these, the result does not depend on the assumptions of the proof.
    trace : Trace or None
        The ratio as a function of the searched coordinates.
    mutants : tuple of MutantResult
        For an audit, the results of the mutants of the mechanism.
    survivors : str
        Why mutants of the mechanism survive, if any mutants do.
    fails : bool
        For a reading, whether it is declared to fail.
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
    fix: str = ""
    lhs: str = ""
    rhs: str = ""
    covered: str = ""
    trace: Trace | None = None
    mutants: tuple[MutantResult, ...] = ()
    survivors: str = ""
    fails: bool = False

    @property
    def violated(self) -> bool:
        """Whether a counterexample was found."""
        return self.counterexample is not None

    @property
    def sign(self) -> str:
        """The sign between the two sides of a counterexample."""
        return ">" if self.error is None else "≠"

    @property
    def empty(self) -> bool:
        """Whether no case was judged.

        In this case, the absence of a violation is no evidence.
        """
        return self.examples == 0 and self.method is not Method.ARGUMENT

    @property
    def unexplained(self) -> tuple[str, ...]:
        """Mutants of a mechanism that were not killed, without an explanation.

        A mutant of the noise may be left out. A given mutant that was not run is no evidence.
        """
        if self.survivors or self.violated:
            return ()
        return tuple(
            m.name
            for m in self.mutants
            if m.status is MutantStatus.SURVIVED
            or (m.is_given and m.status is MutantStatus.NOT_RUN)
        )


def ratio(lhs: float, rhs: float) -> float:
    """Return how tight ``lhs <= rhs`` is.

    The value is at most 1 if and only if the claim holds. If both sides are positive, the value is
    their quotient. If rhs is 0, the value is 0 or infinite. If a side is negative, the value is 1
    plus the difference of the sides, relative to the larger side. A NaN on either side breaks any
    claim, so the value is infinite.

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
    # The quotient of two neighbouring doubles may be 1.
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
