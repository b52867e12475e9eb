"""Mechanisms that answer one query at a time, and the adversaries who ask.

A session holds the data, answers queries, and may refuse. An adversary chooses each query after it
saw all earlier answers. The output of the mechanism is the whole transcript.
"""

from __future__ import annotations

import copy
import itertools
import math
import numbers
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.data import Failure, Interaction
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.one_draw import RANDOMNESS, OneDraw
from dpaudit.mechanisms.outcomes import NONE
from dpaudit.mechanisms.protocols import Watched, lacks, mechanism_name

Array = NDArray[Any]
Transcript = list[tuple[Any, Any]]
"""The queries and answers so far; an exception stands for its refusal."""

OVER = "<over the limit>"
"""What a transcript says in place of an answer that the limit forbids."""

LEVELS = 0.1, 0.25, 0.5, 0.75, 0.9
"""Quantiles of earlier answers at which an adaptive strategy may change its query."""

NOT_UPDATED, LATE = "not updated", "updated one query late"
RESTORED, RESET = "restored after an exception", "reset by other sessions"
STATE_FAULTS = NOT_UPDATED, LATE, RESTORED, RESET
_RECORD = "record"
_LETTERS = 32
_DEEP = 4
_MOST_STATES = 4
_PILOT = 16
_OURS = (MechanismError, KeyboardInterrupt, SystemExit)


@dataclass(frozen=True)
class Strategy:
    """What an adversary asks next.

    Parameters
    ----------
    name : str
        Short description, different from that of other strategies.
    choose : callable
        ``choose(transcript)`` returns the next query, or None to stop. The transcript is a list of
        pairs (query, answer). If the session raised an exception, the exception is the answer. The
        query must depend only on the transcript. A function that remembers other transcripts makes
        the draws dependent, and then certified numbers may be wrong.
    interleaves : bool, optional
        Whether a new session on other data starts before each query, and is asked the same query
        afterwards.
    """

    name: str
    choose: Callable[[Transcript], Any]
    interleaves: bool = False

    def __post_init__(self) -> None:
        _validate.text(name=self.name)
        _validate.function("a function choose(transcript)", choose=self.choose)
        _validate.flag(interleaves=self.interleaves)

    def __call__(self, transcript: Transcript) -> Any:
        """Return the next query, or None."""
        return self.choose(transcript)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        exact = f", {self.choose.cuts}" if isinstance(self.choose, _Adaptive) else ""
        return f"Strategy({self.name!r}{exact})"


@dataclass(frozen=True)
class _Fixed:
    """Ask queries in a fixed order, again and again."""

    queries: tuple[Any, ...]

    def __call__(self, transcript: Transcript) -> Any:
        return self.queries[len(transcript) % len(self.queries)]


@dataclass(frozen=True)
class _Adaptive:
    """Choose the next query by the last answer: low, high, or refused.

    The queries are given by their places in `queries`, because a copy in another process may hold
    other objects.
    """

    queries: tuple[Any, ...]
    first: int
    low: int
    high: int
    refused: int
    cuts: tuple[float, ...]

    def __call__(self, transcript: Transcript) -> Any:
        at = self.first
        for _, answer in transcript:
            value = _number_of(answer)
            above = self.high if value is not None and value > self.cuts[at] else self.low
            at = self.refused if value is None else above
        return self.queries[at]


class Interactive:
    """A session that answers one query at a time, with an adversary who asks.

    The adversary knows everything but the data. An audit turns each pair of datasets into one pair
    for each strategy. So it searches for the worst strategy as it searches for the worst pair. The
    strategies repeat each query, ask all queries in turn, and choose the next query by the last
    answer. All go on after a refusal.

    Parameters
    ----------
    start : callable
        ``start(data, *, rng)`` returns a new session. All randomness of the session comes from
        `rng`, unless `randomness` names another source.
    queries : sequence or dict
        What the adversary may ask. The keys of a dict are the names of the queries.
    ask : callable, optional
        ``ask(session, query)`` returns the answer: a number, a text, None, or `width` numbers. The
        default is ``session(query)``. An exception is an answer, too.
    rounds : int, optional
        Number of queries in a transcript, at least 1. Choose it so large that every budget ends
        before. The default is 8.
    strategies : sequence, optional
        Further strategies, each a :class:`Strategy` or a function ``choose(transcript)``. Only
        these are used if there are no `queries`.
    other : object, optional
        A dataset that does not depend on the secret. If given, the adversary also interleaves the
        session with new sessions on this dataset, which costs no privacy.
    spent : callable, optional
        ``spent(session)`` returns the privacy loss that the session reports, such as an epsilon.
        The report is part of the transcript.
    limit : float, optional
        Largest reported loss. The interaction ends before the first answer after which the report
        exceeds the limit. Claim the limit as the privacy of the transcript (see Notes).
    width : int, optional
        Number of values of an answer. The default is 1.
    randomness : {"rng", "integer", "legacy", "torch", "jax", None}, optional
        Source of the session's randomness, as for :func:`one_draw`.

    Notes
    -----
    *Filters.* A session that refuses queries beyond its budget is a privacy filter (Rogers, Roth,
    Ullman and Vadhan 2016). The claim on the transcript is the budget, for every adversary.

    *Odometers.* A session that only reports its loss is an odometer. It is valid with probability
    1 - delta if, for every adversary, the privacy loss of the transcript is at most the report,
    except with probability delta. Let the report after an answer depend only on the queries and on
    earlier answers, as in sums of chosen epsilons. Then the adversary who stops before the report
    exceeds L is an adversary, too, and its privacy loss is at most L except with probability delta.
    So the transcript is (L, delta)-differentially private, and `limit` tests the odometer at L. If
    the report depends on the answer itself, this argument fails, so do not pass `limit`.

    Examples
    --------
    >>> class Budget:
    ...     def __init__(self, data, rng):
    ...         self.data, self.rng, self.left = data, rng, 2
    ...     def __call__(self, query):
    ...         if not self.left:
    ...             raise RuntimeError("no budget")
    ...         self.left -= 1
    ...         return self.data.sum() + self.rng.laplace(scale=2)
    >>> counts = Interactive(lambda data, *, rng: Budget(data, rng), ["sum"], rounds=3)
    >>> drawn = counts(np.zeros(4), 5, rng=np.random.default_rng(1))
    >>> drawn["says 2"].tolist(), drawn["says 3"].tolist()[0]
    (['', '', '', '', ''], '<raised RuntimeError>')
    """

    def __init__(
        self,
        start: Callable[..., Any],
        queries: Sequence[Any] | Mapping[str, Any] = (),
        *,
        ask: Callable[[Any, Any], Any] | None = None,
        rounds: int = 8,
        strategies: Sequence[Any] = (),
        other: Any = None,
        spent: Callable[[Any], Any] | None = None,
        limit: float | None = None,
        width: int = 1,
        randomness: str | None = "rng",
    ) -> None:
        self.function = _validate.function("a function start(data, *, rng)", start=start)
        self.__name__ = mechanism_name(start)
        self.queries = _named(queries)
        self.ask = _asked if ask is None else ask
        _validate.function("a function ask(session, query)", ask=self.ask)
        self.rounds = _validate.integer(1, rounds=rounds)
        if not isinstance(strategies, list | tuple):
            raise TypeError(
                f"strategies must be a list of strategies, got {_validate.describe(strategies)}"
            )
        self.own = tuple(_strategy(one) for one in strategies)
        if not self.queries and not self.own:
            raise ArgumentError(
                "queries must hold at least one query, got none. Or pass strategies"
            )
        if spent is not None:
            _validate.function("a function spent(session)", spent=spent)
        if limit is not None and spent is None:
            raise ArgumentError(f"limit must be None unless spent is given, got {limit!r}")
        if limit is not None:
            _validate.nonnegative(limit=limit)
        if other is not None and randomness == "jax":
            raise ArgumentError('randomness must not be "jax" if other is given, got "jax"')
        if other is None and any(one.interleaves for one in self.own):
            raise ArgumentError("other must be a dataset if a strategy interleaves, got None")
        names = [str(one) for one in self._all_strategies()]
        if len(set(names)) < len(names):
            raise ArgumentError(f"strategies must have different names, got {names}")
        self.other, self.spent, self.limit = other, spent, limit
        self.width = _validate.integer(1, width=width)
        self._one = self._drawing(randomness)
        argument = RANDOMNESS.get(randomness or "")
        if argument and lacks(start, argument):
            raise TypeError(
                f"start must take the argument {argument}, because randomness={randomness!r} "
                f"passes it, got {mechanism_name(start)}"
            )
        self.fault: Fault | None = None
        self.dpaudit_unseeded = self._one.dpaudit_unseeded

    def _drawing(self, randomness: str | None) -> OneDraw:
        """Return the mechanism that draws one transcript after another."""
        one = OneDraw(self._transcript, randomness=randomness)
        one.__name__ = self.__name__
        return one

    # --- the transcript -------------------------------------------------------------------------

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return `size` independent transcripts as records.

        The fields of query number t are ``answer t``, a number; ``says t``, a text or a refusal;
        and, if `spent` is given, ``spent t``. Data without a strategy get the first strategy.
        """
        if not isinstance(data, Interaction):
            data = Interaction(data, self.strategies()[0])
        rows = self._one.draws_one_by_one(data, size, rng=rng)
        records = np.zeros(size, dtype=self._dtype(data.strategy))
        for at, name in enumerate(records.dtype.names or ()):
            records[name] = [row[at] for row in rows]
        return records

    def _dtype(self, strategy: Strategy) -> list[tuple[Any, ...]]:
        shape = () if self.width == 1 else (self.width,)
        kinds = ["", "other "] if strategy.interleaves else [""]
        fields: list[tuple[Any, ...]] = []
        for at in range(1, self.rounds + 1):
            for kind in kinds:
                fields.append((f"{kind}answer {at}", np.float64, shape))
                fields.append((f"{kind}says {at}", f"U{_LETTERS}"))
            if self.spent is not None:
                fields.append((f"spent {at}", np.float64))
        return fields

    def _transcript(self, given: Interaction, **randomness: Any) -> list[Any]:
        """Return one transcript as a flat list of the fields."""
        fault = None if self.fault is None else self.fault.fresh()
        session = self.function(given.data, **randomness)
        if fault is not None:
            fault.begin(session)
        strategy: Strategy = given.strategy
        transcript: Transcript = []
        row: list[Any] = []
        is_over = False
        for at in range(self.rounds):
            query = None if is_over else strategy(list(transcript))
            if query is None:
                row += self._blank(strategy, "")
                is_over = True
                transcript.append((None, None))
                continue
            fresh = None
            if strategy.interleaves:
                fresh = self.function(copy.deepcopy(self.other), **_another(randomness, at))
                if fault is not None:
                    fault.interleave(session)
            if fault is not None:
                fault.before(session)
            answer = _attempted(self.ask, session, query)
            if fault is not None:
                fault.after(session, isinstance(answer, Exception))
            aside = []
            if strategy.interleaves:
                aside = self._coded(_attempted(self.ask, fresh, query))
            spent = self._reported(session)
            if self.limit is not None and spent[0] > self.limit:
                row += self._blank(strategy, OVER)
                is_over = True
                transcript.append((None, None))
                continue
            row += [*self._coded(answer), *aside, *spent]
            transcript.append((query, copy.deepcopy(answer) if _is_shared(answer) else answer))
        return row

    def _reported(self, session: Any) -> list[float]:
        """Return the loss that a session reports, in a list; an empty list without `spent`."""
        if self.spent is None:
            return []
        reported = self.spent(session)
        try:
            number = float(reported)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise MechanismError(
                f"spent must return a number for {self.__name__}, got "
                f"{_validate.describe(reported)}"
            )
        return [number]

    def _blank(self, strategy: Strategy, words: str) -> list[Any]:
        nothing = math.nan if self.width == 1 else [math.nan] * self.width
        row = [nothing, words, nothing, ""] if strategy.interleaves else [nothing, words]
        return row if self.spent is None else [*row, math.nan]

    def _coded(self, answer: Any) -> list[Any]:
        """Return an answer as a number and a text."""
        nothing = math.nan if self.width == 1 else [math.nan] * self.width
        if answer is None:
            return [nothing, NONE]
        if isinstance(answer, Exception):
            return [nothing, f"<{Failure(type(answer).__name__).words}>"[:_LETTERS]]
        if isinstance(answer, str):
            return [nothing, answer[:_LETTERS]]
        try:
            is_complex = np.iscomplexobj(answer)
            values = np.empty(0) if is_complex else np.array(answer, dtype=np.float64).ravel()
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        if len(values) != self.width:
            raise MechanismError(
                f"{self.__name__} must answer with a text, None, or width={self.width} numbers, "
                f"got {_validate.describe(answer)}. Pass width=, or convert answers in ask="
            )
        return [float(values[0]) if self.width == 1 else values, ""]

    # --- strategies -----------------------------------------------------------------------------

    def strategies(self) -> tuple[Strategy, ...]:
        """Return the strategies that an audit tries in any case, the user's own first."""
        return tuple(self._all_strategies())

    def _all_strategies(self) -> Iterator[Strategy]:
        plain = [*self.own, *self._fixed()]
        yield from plain
        if getattr(self, "other", None) is not None:
            for one in plain:
                name = f"{one.name}, beside other sessions"
                if not one.interleaves:
                    yield replace(one, name=name, interleaves=True)

    def _fixed(self) -> Iterator[Strategy]:
        names, held = list(self.queries), tuple(self.queries.values())
        if len(held) > 1:
            yield Strategy("ask all in turn", _Fixed(held))
        for name, query in zip(names, held, strict=True):
            yield Strategy(f"repeat {name}", _Fixed((query,)))

    def adaptive(self, first: str, low: str, high: str, refused: str, level: int, cuts: Any) -> Any:
        """Return a strategy that chooses by the last answer.

        Parameters
        ----------
        first, low, high, refused : str
            Names of the first query, and of the query after a low answer, after a high answer, and
            after a refusal or a text.
        level : int
            Index of the quantile in `LEVELS` above which an answer is high.
        cuts : dict
            For each name of a query, the quantiles of its answers.
        """
        if first == low == high == refused:
            raise ArgumentError(f"low, high and refused must not all be first, got {first!r}")
        names = list(self.queries)
        levels = tuple(float(cuts[name][level]) for name in names)
        chosen = _Adaptive(
            tuple(self.queries.values()),
            first=names.index(first),
            low=names.index(low),
            high=names.index(high),
            refused=names.index(refused),
            cuts=levels,
        )
        then = low
        if low != high:
            then = f"{low} after answers below the quantile {LEVELS[level]:g}, else {high}"
        refusals = f", {refused} after refusals" * (refused not in (low, high) or low != high)
        return Strategy(f"ask {first}, then {then}{refusals}", chosen)

    def quantiles(self, datasets: Iterable[Any], *, rng: np.random.Generator) -> dict[str, Array]:
        """Return quantiles of the answers to each query; 0 if no answer is a number."""
        held: dict[str, list[float]] = {name: [] for name in self.queries}
        turns = Strategy("ask all in turn", _Fixed(tuple(self.queries.values())))
        names = list(self.queries)
        for data in datasets if names else ():
            drawn = self(Interaction(data, turns), _PILOT, rng=rng)
            for at in range(self.rounds):
                values = np.ravel(drawn[f"answer {at + 1}"])
                held[names[at % len(names)]] += values[np.isfinite(values)].tolist()
        return {name: np.quantile(seen or [0.0], LEVELS) for name, seen in held.items()}

    # --- mutants of the budget --------------------------------------------------------------------

    def with_fault(self, fault: Fault | None) -> Interactive:
        """Return the mechanism with a mistake in the state of its sessions."""
        made = copy.copy(self)
        made.fault = fault
        made._one = made._drawing(self._one.randomness)
        if fault is not None:
            made.__name__ = f"{self.__name__} ({fault})"
        return made

    def faults(self, datasets: Sequence[Any], *, rng: np.random.Generator) -> list[Fault]:
        """Return mistakes in the state that sessions keep, such as a spent budget.

        A state is a number, or a collection of numbers, in an attribute of a session. Only states
        count that change with queries, in the same way for all data and all noise, because a
        budget does so and a stored answer does not.
        """
        seen: dict[tuple[str, ...], tuple[set[bool], bool]] = {}
        for strategy in self.strategies():
            runs: list[list[dict[tuple[str, ...], Any]]] = []
            for data in itertools.islice(itertools.cycle(datasets), max(2, len(datasets))):
                recorder = Fault(_RECORD, ())
                self.with_fault(recorder)(Interaction(data, strategy), 1, rng=rng)
                runs.append(recorder.log)
            for path, failed in _changed(runs):
                first, last = runs[0][0][path], runs[0][-1][path]
                is_sum = _is_number(first)
                if isinstance(first, list) and isinstance(last, list):
                    is_sum = last[: len(first)] == first and len(last) > len(first)
                seen.setdefault(path, (set(), is_sum))[0].update(failed)
        made = []
        for path, (failed, is_sum) in list(seen.items())[:_MOST_STATES]:
            made.append(Fault(NOT_UPDATED, path))
            made += [Fault(LATE, path)] * is_sum
            made += [Fault(RESTORED, path)] * (True in failed)
            made += [Fault(RESET, path)] * (self.other is not None)
        return made


def _another(randomness: dict[str, Any], at: int) -> dict[str, Any]:
    """Return randomness for another session, independent of that of the session."""
    if "seed" in randomness:
        mixed = np.random.SeedSequence([randomness["seed"], at + 1]).generate_state(1)
        return {"seed": int(mixed[0])}
    if type(randomness.get("rng")) is Watched:  # each session may use the generator as a seed once
        return {"rng": Watched(randomness["rng"].bit_generator)}
    return randomness


def _is_shared(answer: Any) -> bool:
    """Return whether a session may later change an answer that it gave."""
    return isinstance(answer, np.ndarray | list | dict)


def _asked(session: Any, query: Any) -> Any:
    return session(query)


def _attempted(ask: Callable[[Any, Any], Any], session: Any, query: Any) -> Any:
    """Return the answer, or the exception that the session raised."""
    try:
        return ask(session, query)
    except _OURS:
        raise
    except Exception as error:
        return error


def _number_of(answer: Any) -> float | None:
    """Return the first number of an answer; None for a refusal or a text."""
    if answer is None or isinstance(answer, str | Exception):
        return None
    return float(np.ravel(answer)[0])


def _named(queries: Any) -> dict[str, Any]:
    """Return the queries by name."""
    if isinstance(queries, Mapping):
        return {_validate.text(query=name): query for name, query in queries.items()}
    if isinstance(queries, str | bytes) or not isinstance(queries, Iterable):
        raise TypeError(
            "queries must be a list of queries, or a dict from names to queries, got "
            f"{_validate.describe(queries)}"
        )
    made: dict[str, Any] = {}
    for at, query in enumerate(queries, 1):
        name = mechanism_name(query) if callable(query) else " ".join(str(query).split())
        if not name or len(name) > _LETTERS or name in made or "<" in name:
            name = f"query {at}"
        made[name] = query
    return made


def _strategy(given: Any) -> Strategy:
    if isinstance(given, Strategy):
        return given
    _validate.function("a list of strategies or functions choose(transcript)", strategies=given)
    return Strategy(mechanism_name(given), given)


# --- the state of a session ---------------------------------------------------------------------


@dataclass(eq=False)
class Fault:
    """A mistake in one state of a session.

    Parameters
    ----------
    kind : str
        "not updated", "updated one query late", "restored after an exception" or "reset by other
        sessions". With "record", nothing is changed, and all states are recorded.
    path : tuple of str
        Names of the attributes that lead to the state.
    """

    kind: str
    path: tuple[str, ...]
    log: list[dict[tuple[str, ...], Any]] = field(default_factory=list)
    _start: Any = None
    _kept: Any = None
    _owed: Any = None

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} {self.kind}"

    def fresh(self) -> Fault:
        """Return a fault for a new session; a recorder records all sessions."""
        return self if self.kind == _RECORD else Fault(self.kind, self.path)

    def begin(self, session: Any) -> None:
        """Note the state of a new session."""
        if self.kind == _RECORD:
            self.log.append(dict(_states(session)))
        else:
            self._start = _get(session, self.path)

    def interleave(self, session: Any) -> None:
        """Act on the start of another session."""
        if self.kind == RESET:
            _set(session, self.path, self._start)

    def before(self, session: Any) -> None:
        """Note the state before a query."""
        if self.kind != _RECORD:
            self._kept = _get(session, self.path)

    def after(self, session: Any, failed: bool) -> None:
        """Change the state after a query."""
        if self.kind == _RECORD:
            self.log.append({**dict(_states(session)), (): failed})
        elif self.kind == NOT_UPDATED or (self.kind == RESTORED and failed):
            _set(session, self.path, self._kept)
        elif self.kind == LATE:
            new, empty = _get(session, self.path), type(self._kept)()
            owed = empty if self._owed is None else self._owed
            if isinstance(new, list):
                self._owed = new[len(self._kept) :]
            else:
                self._owed = new - self._kept
            _set(session, self.path, self._kept + owed)


def _changed(
    runs: Sequence[Sequence[dict[tuple[str, ...], Any]]],
) -> Iterator[tuple[tuple[str, ...], set[bool]]]:
    """Yield each state that changes alike in all runs, and whether it changes in failed queries."""
    if len({len(run) for run in runs}) != 1:
        return
    for path in runs[0][0]:
        paths = [[repr(_plain(step.get(path))) for step in run] for run in runs]
        if any(one != paths[0] for one in paths[1:]):
            continue
        failed = {
            bool(runs[0][at].get(()))
            for at in range(1, len(paths[0]))
            if paths[0][at] != paths[0][at - 1]
        }
        if failed:
            yield path, failed


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.number) else value


def _states(owner: Any, path: tuple[str, ...] = (), seen: frozenset[int] = frozenset()) -> Any:
    """Yield the path and a copy of each number or small collection of numbers in an object."""
    if len(path) >= _DEEP or id(owner) in seen:
        return
    for name, value in _attributes(owner).items():
        at = (*path, name)
        is_named = isinstance(value, dict) and all(isinstance(key, str) for key in value)
        if not is_named and _is_small_state(value):
            yield at, copy.deepcopy(value)
        elif is_named or _is_plain_object(value):
            yield from _states(value, at, seen | {id(owner)})


def _attributes(owner: Any) -> dict[str, Any]:
    if isinstance(owner, dict):
        return {name: value for name, value in owner.items() if isinstance(name, str)}
    slots = [s for kind in type(owner).__mro__ for s in getattr(kind, "__slots__", ())]
    held = {name: getattr(owner, name) for name in slots if hasattr(owner, name)}
    return {**held, **getattr(owner, "__dict__", {})}


def _is_plain_object(value: Any) -> bool:
    """Return whether an object may hold the state of a session."""
    strange = type | types.ModuleType | types.FunctionType | types.MethodType
    if isinstance(value, strange | np.ndarray | np.random.Generator | str | bytes):
        return False
    return type(value).__module__ != "builtins" and hasattr(value, "__dict__")


_MOST_ENTRIES = 256


def _is_small_state(value: Any) -> bool:
    try:
        return _is_state(value)
    except RecursionError:  # a list that holds itself
        return False


def _is_state(value: Any) -> bool:
    """Return whether a value is a number, or a small collection of numbers."""
    if isinstance(value, bool) or _is_number(value):
        return True
    if isinstance(value, np.ndarray):
        return value.size <= _MOST_ENTRIES and value.dtype.kind in "biuf"
    if isinstance(value, dict):
        return bool(value) and len(value) <= _MOST_ENTRIES and all(map(_is_state, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return len(value) <= _MOST_ENTRIES and all(map(_is_state, value))
    return False


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that can be added, such as a Fraction or a Decimal."""
    return isinstance(value, numbers.Number | Decimal) and not isinstance(value, bool)


def _owner(session: Any, path: tuple[str, ...]) -> Any:
    for name in path[:-1]:
        session = session[name] if isinstance(session, dict) else getattr(session, name)
    return session


def _get(session: Any, path: tuple[str, ...]) -> Any:
    owner = _owner(session, path)
    return copy.deepcopy(owner[path[-1]] if isinstance(owner, dict) else getattr(owner, path[-1]))


def _set(session: Any, path: tuple[str, ...], value: Any) -> None:
    """Restore a state; a list or a dict keeps its identity, because others may share it."""
    owner, name, value = _owner(session, path), path[-1], copy.deepcopy(value)
    now = owner[name] if isinstance(owner, dict) else getattr(owner, name)
    if isinstance(now, list) and isinstance(value, list):
        now[:] = value
    elif isinstance(now, dict) and isinstance(value, dict):
        now.clear()
        now.update(value)
    elif isinstance(owner, dict):
        owner[name] = value
    elif name in getattr(owner, "__dict__", {}):
        owner.__dict__[name] = value
    else:
        object.__setattr__(owner, name, value)
