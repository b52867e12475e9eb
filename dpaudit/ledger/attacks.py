"""Attempts to refute one claim: searches, sweeps, equalities, draws, whole audits."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.claims import Claim
from dpaudit.engine import DEFAULT_DRAWS, NOISE, Settings, audit
from dpaudit.errors import ArgumentError
from dpaudit.ledger.cases import Cases, Changed, is_domain
from dpaudit.ledger.paper import Statement
from dpaudit.ledger.snippets import snippet_of
from dpaudit.neighbors import NeighborPair
from dpaudit.properties import (
    DEFAULT_TOLERANCE,
    MUTANT_FACTOR,
    Attempt,
    Counterexample,
    Inequality,
    Method,
    Power,
    Role,
    apart,
    check_scale,
    furthest,
    plain_case,
)
from dpaudit.results import AuditResult, Verdict, mutation_score
from dpaudit.stats import lower_proportion

FAILURE_PROB = 1e-6
"""Largest probability that a Monte Carlo check refutes a statement that holds."""

_BATCH = 20_000  # draws
_SMALL = 60  # numbers of a dataset that a counterexample holds
_RELATIVE = 1e-3  # by which a mutant of an equality changes its second value
Values = Callable[..., Any]
"""Function that returns the two printed sides of a case, or None outside of the hypotheses."""
Sides = Callable[[Any], tuple[Any, Any] | None]
"""Function that makes ``lhs <= rhs`` from the two printed sides."""
_Sides = TypeVar("_Sides", bound=Callable[..., Any])


class Keeper(Protocol):
    """Object that stores the attempts of a check and supplies their seeds."""

    row: Statement
    seed: int
    examples: int
    explains: bool

    def record(self, made: Attempt) -> None:
        """Store an attempt."""

    def next_seed(self) -> int:
        """Return a seed for an attempt."""

    def next_number(self) -> int:
        """Return the number of the next attempt."""

    def searched(
        self, cases: Cases, values: Values, sides: Sides, shared: str, **options: Any
    ) -> Attempt:
        """Search a domain for a violation."""

    def swept(
        self, cases: Cases, values: Values, sides: Sides, shared: str, **options: Any
    ) -> Attempt:
        """Judge every case of a grid."""


class Attack:
    """Attempts on one claim; each attempt is brought into the form ``lhs <= rhs``.

    The methods are decorators in the manner of ``hypothesis.given``. The keywords of a method are
    the domain. If the value of a keyword is no Interval, Integer, Choice or Array, the value is a
    constant of every case. The methods are executed at once and return the function, so several
    methods can be applied to one function::

        @ledger.falsify("even with sqrt 2", c=math.sqrt(2), mutant={"c": 1.0}, **domain)
        @ledger.falsify("the exact tail", c=3.0, mutant={"c": 1.0}, **domain)
        def tail(d, delta, c):
            ...  # returns (lhs, rhs)

    All methods take these arguments:

    claim : str
        Description of the tested claim.
    mutant : dict, callable, float or None
        A mutant, which the same attempt must refute. The mutant is the function with some keywords
        changed, another function, or a factor below 1 for rhs. The default is the factor one half.
    lhs, rhs : str
        Descriptions of the two sides for the reader of a counterexample.
    snippet : str
        At most 15 lines of Python that print both sides of the counterexample. These lines need
        only numpy and scipy. By default, the snippet is made from the source of the function, if
        this source needs nothing else.
    shared : str
        Reason why both sides may call the same function of the paper's algorithms. Without a
        reason, such a claim is an error, because a mistake in the function would change both sides.
    end_to_end : bool
        Whether the object itself is run or computed completely. If True, the row says for which
        sizes and ranges the statement does not depend on its premises.
    """

    def __init__(
        self, ledger: Keeper, role: Role, subject: str = "", fix: str = "", *, fails: bool = False
    ) -> None:
        self._ledger, self.role, self.subject, self.fix = ledger, role, subject, fix
        self._fails = fails

    def __call__(self, function: Any) -> Any:
        """Raise an error, because the object itself is not a decorator."""
        raise TypeError(f"call a method, such as @ledger.{self.role}(...).falsify(**domain)")

    def falsify(
        self,
        claim: str = "",
        /,
        *,
        examples: int | None = None,
        extremal: Iterable[Changed] = (),
        exact: Changed | Inequality | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        mutant: Changed | Inequality | float | None = MUTANT_FACTOR,
        lhs: str = "",
        rhs: str = "",
        snippet: str = "",
        shared: str = "",
        end_to_end: bool = False,
        **domain: Any,
    ) -> Callable[[_Sides], _Sides]:
        """Search for a case in which ``lhs <= rhs`` fails, by :func:`dpaudit.ledger.falsify`.

        Parameters
        ----------
        examples : int, optional
            Smallest number of cases that each search judges. The profile sets the default.
        extremal : iterable of dict
            Hand-built cases, which are judged first. A case may omit constants, and lengths that
            follow from its arrays.
        exact : dict or callable, optional
            The same sides in exact arithmetic: the function with some keywords changed, or another
            function.
        **domain
            Interval, Integer, Choice, Array or hypothesis strategies; any other value is a
            constant.
        """

        def attempt(sides: _Sides) -> _Sides:
            cases = Cases(domain, sides)
            made = self._ledger.searched(
                cases,
                sides,
                _itself,
                shared,
                seed=self._ledger.next_seed(),
                examples=self._ledger.examples if examples is None else examples,
                extremal=[cases.completed(case) for case in extremal],
                exact=cases.changed(sides, exact),
                tolerance=tolerance,
                mutant=cases.mutant(sides, mutant),
                claim=self._words(claim),
            )
            self._add(made, sides, mutant, lhs, rhs, snippet, cases.words if end_to_end else "")
            return sides

        return attempt

    def sweep(
        self,
        claim: str = "",
        /,
        *,
        cases: Iterable[Changed] | None = None,
        method: Method | str = Method.EXACT,
        exact: Changed | Inequality | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        mutant: Changed | Inequality | float | None = MUTANT_FACTOR,
        lhs: str = "",
        rhs: str = "",
        snippet: str = "",
        shared: str = "",
        end_to_end: bool = False,
        **points: Any,
    ) -> Callable[[_Sides], _Sides]:
        """Judge every case of a list or of a grid, by :func:`dpaudit.ledger.sweep`.

        Parameters
        ----------
        cases : iterable of dict, optional
            List of cases; each case gives some keywords.
        method : Method or str
            Use "exact" only for all possible cases, or if a proof says that these cases suffice.
            Other methods are "numeric", "property", and "monte_carlo" if the function draws.
        **points
            Ranges and lists; every combination is judged. Other values are constants.
        """
        method = _method(method)

        def attempt(sides: _Sides) -> _Sides:
            found = Cases(points, sides, cases)
            made = self._ledger.swept(
                found,
                sides,
                _itself,
                shared,
                method=method,
                exact=found.changed(sides, exact),
                tolerance=tolerance,
                mutant=found.mutant(sides, mutant),
                claim=self._words(claim),
            )
            self._add(made, sides, mutant, lhs, rhs, snippet, found.words if end_to_end else "")
            return sides

        return attempt

    def identity(
        self,
        claim: str = "",
        /,
        *,
        cases: Iterable[Changed] | None = None,
        method: Method | str | None = None,
        tolerance: float = DEFAULT_TOLERANCE,
        floor: float = 0.0,
        mutant: Changed | Inequality | None = None,
        examples: int | None = None,
        extremal: Iterable[Changed] = (),
        lhs: str = "",
        rhs: str = "",
        snippet: str = "",
        shared: str = "",
        end_to_end: bool = False,
        **domain: Any,
    ) -> Callable[[_Sides], _Sides]:
        """Test an equality of two numbers or arrays, which must agree in every entry.

        Parameters
        ----------
        cases, method
            As for :meth:`sweep`, if the cases are a list or a grid. A search of a domain takes no
            method, because it is always "property".
        tolerance : float
            Allowed difference of each entry, in [0, 1), relative to the larger of the two entries.
        floor : float
            Differences are relative to at least this size, so entries agree if they differ by at
            most tolerance * floor. It must be given to compare 0 with a number below 1e-9.
        mutant : dict or callable, optional
            Mutant: the function with some keywords changed, or another function. Its two values
            must differ in some case. By default, the second value is multiplied by 1.001, divided
            by the square of 1 minus the tolerance.
        examples, extremal, **domain
            As for :meth:`falsify` if the keywords are a domain. As for :meth:`sweep` if the
            keywords are a grid.
        """
        if (tolerance := _validate.nonnegative(tolerance=tolerance)) >= 1:
            raise ArgumentError(f"tolerance must be in [0, 1), got {tolerance!r}")
        floor = _validate.nonnegative(floor=floor)
        searches = cases is None and is_domain(domain)
        if searches and method is not None:
            raise ArgumentError(
                "method must be left out if the keywords are a domain, whose search is always "
                f"'property', got {method!r}"
            )
        judged_by = _method(Method.EXACT if method is None else method)
        # Two values that agree within the tolerance no longer agree after this factor.
        factor = max(1.0 + _RELATIVE, (1.0 + _RELATIVE) / (1.0 - tolerance) ** 2)

        def attempt(values: _Sides) -> _Sides:
            different: dict[float, tuple[float, float]] = {}

            def compared(found: Any) -> tuple[float, float] | None:
                return None if found is None else (1.0 + apart(found[0], found[1], floor), 1.0)

            def sides(found: Any) -> tuple[float, float] | None:
                both = compared(found)
                if both is not None and both[0] > 1.0 + tolerance:
                    different[both[0]] = furthest(found[0], found[1], floor)
                    check_scale(*different[both[0]], floor)
                return both

            def wrong(**case: Any) -> tuple[float, float] | None:
                if callable(mutant):
                    return compared(mutant(**case))
                found = values(**{**case, **(mutant or {})})
                if mutant is None and found is not None:
                    found = found[0], np.asarray(found[1], dtype=float) * factor
                return compared(found)

            found = Cases(domain, values, cases)
            if searches:
                made = self._ledger.searched(
                    found,
                    values,
                    sides,
                    shared,
                    seed=self._ledger.next_seed(),
                    examples=self._ledger.examples if examples is None else examples,
                    extremal=[found.completed(case) for case in extremal],
                    tolerance=tolerance,
                    mutant=found.of(wrong),
                    claim=self._words(claim),
                )
            else:
                made = self._ledger.swept(
                    found,
                    values,
                    sides,
                    shared,
                    method=judged_by,
                    tolerance=tolerance,
                    mutant=wrong,
                    claim=self._words(claim),
                )
            error = None if made.tightest is None else made.tightest - 1.0
            broken = made.counterexample
            if broken is not None and broken.lhs in different:
                left, right = different[broken.lhs]
                broken = replace(broken, lhs=left, rhs=right)
            made = replace(made, tightest=None, error=error, trace=None, counterexample=broken)
            if mutant is None and made.power is not Power.NONE:
                made = replace(made, mutant=f"the second value times {factor:g}")
            self._add(made, values, mutant, lhs, rhs, snippet, found.words if end_to_end else "")
            return values

        return attempt

    def monte_carlo(
        self,
        claim: str = "",
        /,
        *,
        allowed: float,
        draws: int,
        mutant: Changed | Callable[..., NDArray[np.bool_]] | float | None = MUTANT_FACTOR,
        lhs: str = "",
        rhs: str = "",
        snippet: str = "",
        end_to_end: bool = True,
        **where: Any,
    ) -> Callable[[_Sides], _Sides]:
        """Test ``P[event] <= allowed`` with independent draws.

        The claim is refuted if an exact lower bound of the probability is above the allowed
        probability. The bound is wrong with probability at most 1e-6. The ratio is computed from
        this bound. The function is ``event(size, *, rng, **where) -> bool [size]``. The returned
        array says for each draw whether the event happened.

        Parameters
        ----------
        allowed : float
            Probability that the statement allows, in [0, 1].
        draws : int
            Number of independent draws.
        mutant : dict, callable, float or None
            A mutant: an event whose probability must be found to be above `allowed`, or a factor
            below 1 for `allowed`.
        **where
            Inputs of the draws, which are also recorded.
        """
        allowed, draws = _validate.delta(allowed=allowed), _validate.integer(1, draws=draws)
        factor = None
        if isinstance(mutant, (int, float)):
            factor = _validate.failure_prob(mutant=mutant)

        def attempt(event: _Sides) -> _Sides:
            rng = np.random.default_rng(self._ledger.next_seed())
            hits = _count(event, where, draws, rng)
            bound = lower_proportion(hits, draws, FAILURE_PROB)
            case = {**plain_case(where), "hits": hits, "draws": draws}
            broken = Counterexample(case, bound, allowed) if bound > allowed else None
            power = Power.NONE
            if broken is None and factor is not None:
                power = Power.KILLED if bound > factor * allowed else Power.SURVIVED
            elif broken is None and mutant is not None:
                other = mutant if callable(mutant) else event
                changed = {**where, **(mutant if isinstance(mutant, Mapping) else {})}
                found = lower_proportion(_count(other, changed, draws, rng), draws, FAILURE_PROB)
                power = Power.KILLED if found > allowed else Power.SURVIVED
            weak: tuple[str, ...] = ()
            if lower_proportion(draws, draws, FAILURE_PROB) <= allowed < 1:
                weak = (
                    f"{draws} draws could not refute {allowed:g} if it happened in all of them",
                )
            ran = factor is None and power is not Power.NONE
            made = Attempt(
                self._words(claim),
                Method.MONTE_CARLO,
                draws,
                tightest=bound / allowed if allowed > 0 else (math.inf if bound > 0 else 0.0),
                where=case,
                counterexample=broken,
                power=power,
                mutant="" if factor is None else f"the allowed probability times {factor:g}",
                weak=weak,
                failure_prob=FAILURE_PROB * (2 if ran else 1),
            )
            left = lhs or f"a lower bound, wrong with probability {FAILURE_PROB:g}, for how often"
            covered = ", ".join(f"{name} = {_short(value)}" for name, value in where.items())
            covered = covered or "the inputs of the check"
            self._add(made, event, mutant, left, rhs, snippet, covered if end_to_end else "")
            return event

        return attempt

    def audit(
        self,
        mechanism: Any,
        claim: Claim,
        pairs: Any = None,
        *,
        draws: int = DEFAULT_DRAWS,
        survivors: str = "",
        snippet: str = "",
        **options: Any,
    ) -> AuditResult:
        """Test a privacy guarantee by :func:`dpaudit.audit`.

        A certified violation refutes the statement. The ratio is the certified epsilon divided by
        the claimed epsilon. Mutants are made from the mechanism's noise. Pass `mutants` to add
        other mutants. ``dpaudit ledger --mutants`` changes the other lines of an algorithm.

        Parameters
        ----------
        snippet : str, optional
            As for all methods. By default, a refuted audit also looks for the likely cause, and
            writes the program of :meth:`AuditResult.reproducer`.
        survivors : str, optional
            Why mutants survive. A mutant that survives without a reason fails the run.
        """
        ledger, given = self._ledger, options.pop("mutants", NOISE)
        result = audit(
            mechanism,
            claim,
            pairs,
            draws=draws,
            seed=ledger.seed,
            failure_prob=options.pop("failure_prob", FAILURE_PROB),
            id=f"{ledger.row.id}#{ledger.next_number()}",
            mutants=given if given is None or isinstance(given, str) else [NOISE, *given],
            settings=Settings(shrink=ledger.explains and not snippet),
            **options,
        )
        refuted = result.verdict is Verdict.REFUTED
        where = {
            "mechanism": result.mechanism,
            "pair": result.pair_words,
            "event": result.witness.event,
        }
        certified, claimed = result.certified_epsilon, result.claimed_epsilon
        power = Power.NONE
        killed, judged = mutation_score(result.mutants)
        if judged and not refuted:
            power = Power.KILLED if killed else Power.SURVIVED
        broken = None
        if refuted:
            least = {"smallest pair": result.smallest.pair_words} if result.smallest else {}
            cause = {"likely cause": result.causes[0].words} if result.causes else {}
            case = {**where, **least, **cause, **_small_datasets(result.pair)}
            again = "" if result.again is None else result.again.program
            program = inspect.cleandoc(snippet) or again
            broken = Counterexample(case, certified, claimed, snippet=program)
        part = f"{self.subject}: " if self.role is Role.STATEMENT and self.subject else ""
        self._record(
            Attempt(
                f"{part}the claim {claim} for {result.mechanism}",
                Method.MONTE_CARLO if result.failure_prob > 0 else Method.EXACT,
                sum(result.draws.values()) or 1,  # an exact computation judges one pair
                tightest=certified / claimed if claimed > 0 else math.inf,
                where=where,
                counterexample=broken,
                power=power,
                mutant=f"{killed} of {judged}" if judged else "",
                failure_prob=result.total_failure_prob,
                lhs="certified epsilon",
                rhs="claimed epsilon",
                covered=result.pair_words or "the pair of the audit",
                mutants=result.mutants,
                survivors=survivors,
            )
        )
        return result

    def argue(self, why: str) -> None:
        """State why the claim, or a part of it, holds if nothing can be run."""
        self._record(Attempt(why, Method.ARGUMENT, 0))

    def _words(self, claim: str) -> str:
        return claim or self.subject or "the statement"

    def _add(
        self,
        made: Attempt,
        function: Any,
        mutant: Any,
        lhs: str,
        rhs: str,
        snippet: str,
        covered: str,
    ) -> None:
        broken = made.counterexample
        if broken is not None:
            given = inspect.cleandoc(snippet)
            sign = made.sign.replace("≠", "!=")  # which every console can print
            given = given or snippet_of(function, broken.case, sign=sign)
            made = replace(made, counterexample=replace(broken, snippet=given))
        words = made.mutant
        if isinstance(mutant, Mapping) and made.power is not Power.NONE:
            words = ", ".join(f"{name} = {_short(value)}" for name, value in mutant.items())
        elif callable(mutant) and made.power is not Power.NONE:
            words = getattr(mutant, "__name__", "").replace("<lambda>", "").replace("_", " ")
        self._record(replace(made, lhs=lhs, rhs=rhs, covered=covered, mutant=words))

    def _record(self, made: Attempt) -> None:
        self._ledger.record(
            replace(made, role=self.role, subject=self.subject, fix=self.fix, fails=self._fails)
        )


def _small_datasets(pair: NeighborPair | None) -> dict[str, Any]:
    """Return the datasets of a pair as plain data, if both are small arrays."""
    sides = {} if pair is None else {"left": pair.left, "right": pair.right}
    if all(isinstance(data, np.ndarray) and data.size <= _SMALL for data in sides.values()):
        return {name: plain_case(data) for name, data in sides.items()}
    return {}


def _method(method: Method | str) -> Method:
    """Return the method of an attempt that judges cases."""
    judging = tuple(known for known in Method if known is not Method.ARGUMENT)
    return Method(_validate.choice(judging, method=method))


def _itself(found: Any) -> Any:
    """Return the sides of an inequality, which are its printed sides."""
    return found


def _short(value: Any) -> str:
    if callable(value):
        return str(getattr(value, "__name__", "another")).replace("_", " ")
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _count(event: Callable[..., Any], where: Changed, draws: int, rng: np.random.Generator) -> int:
    hits, left = 0, draws
    while left > 0:
        size = min(left, _BATCH)
        happened = np.asarray(event(size, rng=rng, **where))
        if happened.dtype != np.bool_ or happened.shape != (size,):
            raise ArgumentError(
                f"event must return a boolean array of shape ({size},), got shape "
                f"{happened.shape} and dtype {happened.dtype}"
            )
        hits += int(happened.sum())
        left -= size
    return hits
