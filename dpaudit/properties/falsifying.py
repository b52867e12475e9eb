"""Falsifiers, which search for a case in which ``lhs <= rhs`` fails, or for the tightest case.

Hand-built extremal cases come first. For example, a proof is tight for such a case, or the case
lies at the edge of a definition. Simple cases and corners of a :class:`~dpaudit.properties.Domain`
come next. Last, an evolution strategy with restarts increases the ratio lhs / rhs in the unit cube.
If the cases are a hypothesis strategy that is no domain, hypothesis draws and shrinks cases, and
the ratio is not increased. The targeted search of hypothesis is not used, because it has no budget.
In one example, this search compared parts of a case with each other for ten minutes.

A case that breaks the claim is simplified. The module :mod:`dpaudit.properties.judging`
distinguishes violations from rounding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties.attempt import Attempt, Counterexample, Method, Power, Trace
from dpaudit.properties.domains import Array, Domain
from dpaudit.properties.generating import hypothesis, st
from dpaudit.properties.judging import DEFAULT_TOLERANCE, Inequality, Judge, record
from dpaudit.properties.seeding import SEEDED

# --- data for a picture of a search: the ratio over one or two coordinates of the cases ---------


_LEAST = 20  # least number of points of a picture
_WIDE = 100.0  # ratio of its ends above which a positive coordinate is shown on a logarithmic scale


def trace_of(
    seen: Sequence[tuple[Mapping[str, float], float]], counterexample: Counterexample | None
) -> Trace | None:
    """Return the ratio as a function of the coordinates that explain most, or None.

    Parameters
    ----------
    seen : sequence of (numbers by name, ratio)
        The judged cases.
    counterexample : Counterexample or None
        If given, the case of the counterexample is added as a point.
    """
    points = [(case, ratio) for case, ratio in seen if math.isfinite(ratio)]
    if counterexample is not None and 0 < counterexample.rhs < counterexample.lhs < math.inf:
        case = {k: float(v) for k, v in counterexample.case.items() if isinstance(v, int | float)}
        points.append((case, counterexample.lhs / counterexample.rhs))
    names = [n for n in points[0][0] if all(n in case for case, _ in points)] if points else []
    columns = {name: np.array([case[name] for case, _ in points]) for name in names}
    ratios = np.array([ratio for _, ratio in points])
    varying = [name for name in names if len(np.unique(columns[name])) > 2]
    if len(points) < _LEAST or not varying:
        return None
    varying.sort(key=lambda name: -_association(columns[name], ratios))
    axes = tuple(sorted(varying[:2], key=names.index))
    rows = zip(*(columns[name].tolist() for name in axes), ratios.tolist(), strict=True)
    log = tuple(bool(0 < _WIDE * columns[n].min() < columns[n].max()) for n in axes)
    return Trace(axes, log, tuple(rows))


def _association(column: NDArray[np.float64], ratios: NDArray[np.float64]) -> float:
    """Return how strongly the ratio rises or falls with a coordinate; 0 for a constant ratio."""
    if len(np.unique(ratios)) < 2:
        return 0.0
    return abs(float(scipy.stats.spearmanr(column, ratios).statistic))


# --- simplifying a case that breaks a claim, as long as it still breaks the claim ---------------


_DIGITS = (0, 1, 2, 3, 4, 6)
_PLAIN = (0.0, 1.0, -1.0, 2.0, 0.5)
_MOST_ENTRIES = 64  # largest size of an array whose entries are simplified one by one


def simplify(judge: Judge, domains: Sequence[Domain], budget: int) -> None:
    """Replace the breaking case of a judge by a simpler breaking case from the same domain.

    Only cases in one of the domains are tried. If the breaking case lies in no domain, the case is
    not changed.

    Parameters
    ----------
    judge : Judge
        Judge that has a counterexample.
    domains : sequence of Domain
        Domains in which cases may lie.
    budget : int
        Largest number of cases to try.
    """
    case = judge.breaking
    domain = next((d for d in domains if isinstance(case, dict) and case in d), None)
    if domain is None:
        return
    scratch = Judge(judge.inequality, judge.tolerance, judge.exact)  # its cases are not counted
    changed = True
    while changed and budget > 0:
        changed = False
        for key, part in domain.parts.items():
            for simpler in _simpler(part, judge.breaking[key]):
                if budget <= 0:
                    break
                trial = {**judge.breaking, key: simpler}
                if trial not in domain:
                    continue
                budget -= 1
                tight = scratch(trial)
                if scratch.breaking is trial:
                    judge.breaking, judge.counterexample = trial, scratch.counterexample
                    if tight is not None and tight > judge.tightest:
                        judge.tightest, judge.where = tight, trial
                    changed = True
                    break


def _simpler(part: Any, value: Any) -> Iterator[Any]:
    """Yield values that are simpler than the given value, with the simplest first."""
    if isinstance(part, Integer):
        low = int(part.low)
        tried = [low, low + 1, low + 2, low + (int(value) - low) // 2, int(value) - 1]
        yield from (n for n in dict.fromkeys(tried) if n < value)
    elif isinstance(part, Choice):
        place = next(i for i, one in enumerate(part.values) if one is value or one == value)
        yield from part.values[:place]
    elif isinstance(part, Interval):
        yield from _simpler_numbers(part, float(value))
    elif isinstance(part, Array):
        yield from _simpler_arrays(part, np.asarray(value))


def _simpler_numbers(part: Interval, value: float) -> Iterator[float]:
    tried = [*_PLAIN, part.low, part.high, *(float(np.round(value, d)) for d in _DIGITS)]
    tried += [float(f"{value:.{digits}g}") for digits in (1, 2, 3)]
    yield from sorted(
        (x for x in dict.fromkeys(tried) if math.isfinite(x) and _size(x) < _size(value)), key=_size
    )


def _size(value: float) -> tuple[int, float]:
    """Return how complex a number is: its number of characters, then its size."""
    return len(f"{value:.17g}".rstrip("0").rstrip(".") or "0"), abs(value)


def _simpler_arrays(part: Array, value: Any) -> Iterator[Any]:
    entries, total = part.entries, _total(value)
    is_whole = isinstance(entries, Integer)
    plain = (entries.low, entries.high) if is_whole else (*_PLAIN, entries.low, entries.high)
    whole = [np.full(part.lengths, x, dtype=value.dtype) for x in plain]
    whole += [np.round(value, digits) for digits in _DIGITS]
    yield from (x for x in whole if _total(x) < total)
    if value.size <= _MOST_ENTRIES:
        for index in np.ndindex(part.lengths):
            for simpler in _simpler(entries, value[index]):
                changed = value.copy()
                changed[index] = simpler
                yield changed


def _total(value: Any) -> tuple[int, float]:
    sizes = [_size(float(x)) for x in np.ravel(value)]
    return sum(letters for letters, _ in sizes), sum(size for _, size in sizes)


MUTANT_FACTOR = 0.5

_SHRINKS = 500  # largest number of cases for the simplification of a counterexample
_REJECTED_TOO_MANY = 0.9
_ATTEMPTS, _LEAST_BUDGET = 30, 20  # if many cases are rejected, the search is repeated
_PLATEAU = 1e-9
_LEAST_STEP = 1e-4
_CORNERS = 8  # of each of several domains: all corners of three parts with equal numbers


def falsify(
    cases: st.SearchStrategy[Any] | Domain | Sequence[Domain],
    inequality: Inequality,
    *,
    seed: int,
    examples: int = 300,
    extremal: Iterable[Any] = (),
    exact: Inequality | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    mutant: Inequality | float | None = MUTANT_FACTOR,
    claim: str = "the statement",
) -> Attempt:
    """Search for a case in which ``lhs <= rhs`` fails.

    Parameters
    ----------
    cases : SearchStrategy, Domain or sequence of Domain
        Cases to search. Domains are searched numerically as well.
    inequality : callable
        ``inequality(case) -> (lhs, rhs)``. The function returns None if the case does not satisfy
        the hypotheses of the claim.
    seed : int
        Seed of both searches.
    examples : int
        Smallest number of cases that each search must judge. If fewer cases are judged, the attempt
        is weak.
    extremal : iterable
        Hand-built cases, judged first.
    exact : callable, optional
        Like `inequality`, but in exact or high-precision arithmetic. `exact` decides every case
        that is broken, or nearly broken, in floats. `exact` may return None, too.
    tolerance : float
        Relative excess of lhs over rhs in floats that is attributed to rounding if `exact` is not
        given.
    mutant : float or callable or None
        A mutant of the claim, which the same search must refute. A factor below 1 multiplies rhs if
        rhs is positive. A callable is another inequality.
    claim : str
        Description of the claim that is tested.

    Returns
    -------
    Attempt
    """
    examples = _validate.integer(1, examples=examples)
    _validate.nonnegative(tolerance=tolerance)
    domains, extremal = _domains(cases), list(extremal)
    judge = _search(cases, domains, Judge(inequality, tolerance, exact), seed, examples, extremal)
    weak = []
    if judge.counterexample is None:
        if judge.judged < examples:
            weak.append(f"{judge.judged} of {examples} examples were judged")
        share = judge.rejected / max(judge.rejected + judge.judged, 1)
        if share > _REJECTED_TOO_MANY:
            weak.append(f"{share:.0%} of the cases lie outside the hypotheses")

    def again(other: Judge) -> Judge:
        starts = [*extremal, *(case for _, case in judge.best)]
        return _search(cases, domains, other, seed, examples, starts, shrinks=0)

    return _attempt(judge, Method.PROPERTY, claim, mutant, again, weak)


def sweep(
    cases: Iterable[Any],
    inequality: Inequality,
    *,
    method: Method = Method.EXACT,
    exact: Inequality | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    mutant: Inequality | float | None = MUTANT_FACTOR,
    claim: str = "the statement",
) -> Attempt:
    """Judge every given case: an enumeration (method exact) or a grid (method numeric).

    Parameters
    ----------
    cases : iterable
        All cases, or a grid of cases. If `mutant` is a callable, the cases are used twice.
    method : Method
        Use EXACT only if these are all cases, and if the sides are computed without relevant error.
    inequality, exact, tolerance, mutant, claim
        As for :func:`falsify`.
    """
    cases = list(cases)
    _validate.nonnegative(tolerance=tolerance)
    if not cases:
        raise ArgumentError("cases must hold at least one case, got none")

    def run(judge: Judge) -> Judge:
        for case in cases:
            judge(case)
            if judge.counterexample is not None:
                break
        return judge

    judge = run(Judge(inequality, tolerance, exact))
    weak = []
    if judge.rejected > _REJECTED_TOO_MANY * len(cases) and judge.counterexample is None:
        weak.append(f"{judge.rejected} of {len(cases)} cases lie outside the hypotheses")
    if method is Method.MONTE_CARLO:
        weak.append("the sides are estimates from draws, without a certified probability of error")
    return _attempt(judge, method, claim, mutant, run, weak)


def _attempt(
    judge: Judge,
    method: Method,
    claim: str,
    mutant: Inequality | float | None,
    again: Callable[[Judge], Judge],
    weak: list[str],
) -> Attempt:
    """Refute the mutant with the same search, and collect the results."""
    if judge.counterexample is None and judge.undecided is not None:
        raise judge.undecided
    if mutant is not None and not callable(mutant):
        mutant = _validate.failure_prob(mutant=mutant)
    power, words = Power.NONE, ""
    if judge.counterexample is None and mutant is not None:
        if callable(mutant):
            words = "a mutant of its own"
            other = Judge(mutant, judge.tolerance, nan_breaks=False)
            killed = again(other).counterexample is not None
        else:
            halved = mutant == MUTANT_FACTOR
            words = "the constant halved" if halved else f"the right side times {mutant:g}"
            # This comparison is equivalent to judging lhs <= mutant * rhs for the same cases.
            killed = judge.share > mutant * (1 + judge.tolerance)
            if judge.judged and not judge.share:
                weak.append(
                    "no right side was positive and finite. Pass a mutant inequality instead"
                )
        power = Power.KILLED if killed else Power.SURVIVED
    return Attempt(
        claim,
        method,
        judge.judged,
        judge.rejected,
        judge.tightest if judge.judged else None,
        where=record(judge.where) if judge.judged else {},
        counterexample=judge.counterexample,
        power=power,
        mutant=words,
        weak=tuple(weak),
        trace=trace_of(judge.seen, judge.counterexample),
    )


# --- the searches ---


def _domains(cases: Any) -> list[Domain]:
    if isinstance(cases, Domain):
        return cases.sized()
    if isinstance(cases, st.SearchStrategy):
        return []
    if (
        isinstance(cases, Sequence)
        and cases
        and all(isinstance(domain, Domain) for domain in cases)
    ):
        return [sized for domain in cases for sized in domain.sized()]
    raise TypeError(
        f"cases must be a hypothesis strategy, a Domain or a sequence of domains, got {cases!r}"
    )


def _search(
    cases: Any,
    domains: list[Domain],
    judge: Judge,
    seed: int,
    examples: int,
    extremal: Iterable[Any],
    shrinks: int = _SHRINKS,
) -> Judge:
    """Run the searches until one of them breaks the claim, and then simplify the case."""
    for case in extremal:
        judge(case)
        if judge.counterexample is not None:
            break
    if not domains and judge.counterexample is None:
        _hypothesis(cases, judge, seed, examples, shrinks)
    wanted = judge.judged + examples
    for attempt in range(_ATTEMPTS * bool(domains)):  # repeated if many cases were rejected
        if judge.counterexample is None and judge.judged < wanted:
            rng = np.random.default_rng([seed, attempt])
            budget = max(wanted - judge.judged, min(examples, _LEAST_BUDGET))
            _evolve(domains, judge, budget, rng, corners=attempt == 0)
    if judge.counterexample is not None and shrinks:
        simplify(judge, domains, shrinks)
    return judge


class _Broken(Exception):
    """Raised for a case that breaks the claim, so that hypothesis shrinks the case."""


class _Enough(BaseException):
    """Ends hypothesis at once, because hypothesis catches only subclasses of ``Exception``."""


def _hypothesis(
    strategy: st.SearchStrategy[Any], judge: Judge, seed: int, examples: int, shrinks: int
) -> None:
    left = shrinks

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        backend=SEEDED,
    )
    @hypothesis.given(strategy)
    def attempt(case: Any) -> None:
        nonlocal left
        if judge.counterexample is not None:
            left -= 1
            if left < 0:
                raise _Enough
        if judge(case) is None:
            hypothesis.reject()
        if judge.counterexample is not None and judge.breaking is case:
            raise _Broken

    try:
        attempt()
    except (_Broken, _Enough):
        pass  # the shrunk case is the case that was judged last
    except hypothesis.errors.Unsatisfiable:
        pass  # the number of rejected cases reports the fault


Found = tuple[float, Domain, NDArray[np.float64]]
"""The ratio of a case, its domain, and its point in the unit cube of the domain."""


def _evolve(
    domains: Sequence[Domain],
    judge: Judge,
    budget: int,
    rng: np.random.Generator,
    *,
    corners: bool,
) -> None:
    """Increase the ratio from the best corner, and from the best of a few random points.

    Steps of a (1 + 1) evolution strategy stay in one domain.
    """
    found: list[Found] = []

    def tried(domain: Domain, u: NDArray[np.float64]) -> None:
        tight = judge(domain.at(u))
        if tight is not None:
            found.append((tight, domain, u))

    most = budget // 4 if len(domains) == 1 else budget // 2
    for domain, u in _corners(domains, most) if corners else ():
        tried(domain, u)
        if judge.counterexample is not None:
            return
    left = max(budget - len(found), 0)
    restarts = max(2, min(8, left // 50))
    turns = itertools.cycle([domains[at] for at in rng.permutation(len(domains))])
    for restart in range(restarts):
        if restart:  # only the first one begins at a corner
            found.clear()
        share = left // restarts + (restart < left % restarts)
        tries = max(share // 4, 1)
        for domain in itertools.islice(turns, tries):
            tried(domain, rng.random(domain.dimension))
        if judge.counterexample is not None:
            return
        if not found:
            continue
        value, domain, here = max(found, key=lambda one: one[0])
        step = 0.3
        for _ in range(max(share - tries, 1)):
            there = _step(here, step, rng)
            tight = judge(domain.at(there))
            if judge.counterexample is not None:
                return
            if tight is None:
                continue
            better = tight > value + _PLATEAU * abs(value)
            if tight >= value - _PLATEAU * abs(value):  # move across plateaus
                value, here = max(tight, value), there
            step = min(max(step * (1.5 if better else 0.93), _LEAST_STEP), 0.5)


def _corners(domains: Sequence[Domain], most: int) -> Iterator[tuple[Domain, NDArray[np.float64]]]:
    """Yield corners: of one domain the first ones, or the middles of domains and then the corners.

    The first of several domains get most of the corners. An example of a corner is that all
    items of the data are 0 and all items of a new user are 1.
    """
    if len(domains) == 1:
        yield from ((domains[0], u) for u in itertools.islice(domains[0].corners(), max(most, 3)))
        return
    middles = domains[: max(most // 2, 1)]
    yield from ((domain, next(domain.corners())) for domain in middles)
    others = (
        (domain, u)
        for domain in domains
        for u in itertools.islice(domain.corners(), 1, 1 + _CORNERS)
    )
    yield from itertools.islice(others, max(most - len(middles), 0))


def _step(here: Any, step: float, rng: np.random.Generator) -> Any:
    """Move some coordinates.

    Sometimes move one coordinate to an edge, or to the value of another coordinate (a tie).
    """
    there = here.copy()
    moved = rng.random(len(here)) < max(1.5 / len(here), 0.25)
    moved[rng.integers(len(here))] = True
    there[moved] += step * rng.normal(size=int(moved.sum()))
    kind = rng.random()
    if kind < 0.1:
        there[rng.integers(len(here))] = rng.integers(2)
    elif kind < 0.2:
        there[rng.integers(len(here))] = here[rng.integers(len(here))]
    return np.clip(there, 0.0, 1.0)
