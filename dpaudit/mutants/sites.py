"""The sites at which a mechanism draws its noise.

The sites are found by running the mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._files import code_name
from dpaudit.data import handed
from dpaudit.errors import MechanismError, MechanismTimeout, place
from dpaudit.mechanisms import (
    Watch,
    generator,
    is_constant,
    is_seeded,
    mechanism_name,
    same_draws,
)
from dpaudit.mutants.recorder import Key, Line, Log, Plan, run
from dpaudit.mutants.treatments import TREATMENTS
from dpaudit.neighbors import NeighborPair

Array = NDArray[Any]
Range = tuple[float, float]

RUNS = 7
"""Number of draws of the larger recorded call; the smaller one makes a single draw."""

_SEEDS = 2
_MANY = 10
_SCALES = ("scale", "sigma")
UNSEEN = "bit_generator"


@dataclass(frozen=True)
class Site:
    """A place in the code of a mechanism at which the mechanism draws from its generator.

    Parameters
    ----------
    method : str
        Method of ``numpy.random.Generator``.
    lines : tuple of (file, function, number)
        Lines of code that led to the call, with the innermost line first and without directories.
    least, most : int
        Smallest and largest number of calls of the method. If `by_run` is True, the calls of one
        draw of the mechanism are counted. If not, the calls for all draws together are counted.
    by_run : bool
        Whether every draw of the mechanism makes separate calls, for example in a loop over draws.
    amount_range : (float, float) or None
        Smallest and largest value of the argument that sets the amount of noise.
    in_threads : bool
        Whether threads of the mechanism call the method, so that calls have no fixed order.
    has_probabilities : bool
        Whether the method selects with given probabilities.
    via : int
        Index of the line that distinguishes the site from another site with the same innermost
        line. If there is no such line, the index is 0.
    copy : int
        Number that distinguishes sites if no line distinguishes them.
    """

    method: str
    lines: tuple[Line, ...]
    least: int
    most: int
    by_run: bool
    amount_range: tuple[float, float] | None
    in_threads: bool = False
    has_probabilities: bool = False
    via: int = 0
    copy: int = 1

    @property
    def where(self) -> str:
        """The innermost line, as ``line 42 of noise.py``, and a second line if it is ambiguous."""
        here = _words(self.lines[0])
        return f"{here}, reached by {_words(self.lines[self.via])}" if self.via else here

    @property
    def draws(self) -> str:
        """Description of the draws, as ``normal, scale 0.3``."""
        if self.amount_range is None:
            return self.method
        amount = f"{TREATMENTS[self.method].amount} {range_words(self.amount_range)}"
        return f"{self.method}, {amount}"

    @property
    def frequency(self) -> str:
        """Description of the number of calls."""
        times = f"{self.most}" if self.least == self.most else f"{self.least} to {self.most}"
        calls = f"{times} call{'s' * (times != '1')}"
        return f"{calls} for each draw" if self.by_run else f"{calls} for all draws"

    def __str__(self) -> str:
        return f"{self.where} ({self.draws})" + (f" #{self.copy}" if self.copy > 1 else "")


@dataclass(frozen=True)
class Recording:
    """The sites that were found by running a mechanism on some data.

    Parameters
    ----------
    sites : tuple of Site
        Sites, in the order of their first use.
    keys : tuple of Key
        Keys of the sites in the recorder.
    unseen : str
        Why some randomness was not recorded, and what to do about it; empty if all of it was
        recorded.
    amounts : tuple of dict
        For each of the data, the smallest and the largest amount of each noise.
    """

    sites: tuple[Site, ...]
    keys: tuple[Key, ...]
    unseen: str = ""
    amounts: tuple[dict[Key, Range], ...] = ()

    def amounts_of_noise(self, left: int, right: int) -> Iterator[tuple[Key, Range, Range]]:
        """Yield each noise with its amounts on two of the data, given by their indices.

        Only scales count. A parameter of a beta distribution, for example, is also a location.
        """
        one, other = self.amounts[left], self.amounts[right]
        for key in self.keys:
            is_scale = TREATMENTS[key[0]].amount in _SCALES or key[0] == "geometric"
            if is_scale and key in one and key in other:
                yield key, one[key], other[key]

    @property
    def amount_ranges(self) -> dict[Key, Range]:
        """The smallest and the largest amount of each noise on all of the data."""
        both = zip(self.keys, self.sites, strict=True)
        return {key: site.amount_range for key, site in both if site.amount_range is not None}

    def calls(self, size: int) -> int:
        """Return the approximate number of calls of the generator for a number of draws."""
        return sum(site.most * (size if site.by_run else 1) for site in self.sites)


def record(
    mechanism: Callable[..., Any],
    datasets: Iterable[Array],
    *,
    seed: int,
    watch: Watch | None = None,
) -> Recording:
    """Run a mechanism on some datasets and return the sites at which it draws.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng) -> [size, ...]``.
    datasets : iterable of ndarray
        Data on which the mechanism makes a call of one draw and a call of seven draws. Sites that
        are used only on other data are not found.
    seed : int
        Seed of the generators.
    watch : Watch, optional
        Time limits of the calls.

    Raises
    ------
    MechanismError
        If the mechanism raises an exception or exceeds the time limits.
    """
    datasets = list(datasets)
    watch = Watch() if watch is None else watch
    recordings: list[tuple[Log, Log]] = []
    for index, data in enumerate(datasets):
        for repeat in range(_SEEDS):
            one, many = (
                _called(mechanism, data, size, generator(seed, "sites", index, repeat, size), watch)
                for size in (1, RUNS)
            )
            recordings.append((one, many))
    keys = list(dict.fromkeys(key for pair in recordings for log in pair for key in log.seen))
    taken = [key for key in keys if key[0] == UNSEEN]
    keys = [key for key in keys if key[0] != UNSEEN]
    found = Recording(
        _numbered([_site(key, recordings) for key in keys]),
        tuple(keys),
        amounts=tuple(
            _amounts(recordings[index * _SEEDS : (index + 1) * _SEEDS])
            for index in range(len(datasets))
        ),
    )
    return replace(found, unseen=_unseen(mechanism, datasets, found, taken, seed, watch))


def uneven_noise(
    mechanism: Callable[..., Any], pair: NeighborPair, *, seed: int, watch: Watch | None = None
) -> dict[Key, tuple[int, int]]:
    """Return the sites that draw more numbers on one side of a pair, and how many on each side.

    Then the data decide how many values get noise, and a value may exist on one side only. Noise
    for each user or each item is no such sign, so numbers in proportion to these are left out. Two
    calls of one draw must agree.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng) -> [size, ...]``.
    pair : NeighborPair
        Both datasets.
    seed : int
        Seed of the generators.
    watch : Watch, optional
        Time limits of the calls.

    Raises
    ------
    MechanismError
        If the mechanism raises an exception or exceeds the time limits.
    """
    watch = Watch() if watch is None else watch
    found: dict[Key, tuple[int, int]] = {}
    for repeat in range(_SEEDS):
        left, right = (
            _called(mechanism, side, 1, generator(seed, "counts", name, repeat), watch).seen
            for name, side in (("left", pair.left), ("right", pair.right))
        )
        uneven = {}
        for key in {**left, **right}:
            if key[0] not in TREATMENTS or TREATMENTS[key[0]].centre is None:
                continue
            one, other = (seen[key].numbers if key in seen else 0 for seen in (left, right))
            if one != other:
                uneven[key] = one, other
        found = uneven if repeat == 0 else {k: v for k, v in found.items() if uneven.get(k) == v}
        if not found:
            return {}
    sizes = [
        [len(pair.form.labels(side, part)) for side in (pair.left, pair.right)]
        for part in ("users", "items")
    ]
    return {
        key: (one, other)
        for key, (one, other) in found.items()
        if not any(_are_in_proportion((one, other), size) for size in sizes)
    }


def _are_in_proportion(numbers: tuple[int, int], sizes: Sequence[int]) -> bool:
    """Whether numbers of noise are proportional to sizes of the sides, perhaps rounded."""
    apart = abs(numbers[0] * sizes[1] - numbers[1] * sizes[0])
    if apart == 0:
        return max(sizes) > 0
    # Rounded numbers, such as those of 70% of the users. A key that only one side holds also gives
    # numbers that differ by 1, but there are fewer keys.
    is_share = max(sizes) >= _MANY and min(numbers) >= min(sizes) / 2
    return is_share and apart <= max(sizes)


def _numbered(sites: list[Site]) -> tuple[Site, ...]:
    """Find the line that distinguishes sites whose descriptions are equal."""
    numbered: list[Site] = []
    for site in sites:
        twins = [other.lines for other in sites if str(other) == str(site) and other is not site]
        depth = range(1, len(site.lines))
        via = (i for i in depth if all(t[: i + 1] != site.lines[: i + 1] for t in twins))
        apart = replace(site, via=next(via, 0)) if twins else site
        copies = sum(str(replace(other, copy=1)) == str(apart) for other in numbered)
        numbered.append(replace(apart, copy=copies + 1))
    return tuple(numbered)


def _called(
    mechanism: Callable[..., Any], data: Array, size: int, rng: np.random.Generator, watch: Watch
) -> Log:
    name = mechanism_name(mechanism)
    try:
        with watch.call(name):
            return run(mechanism, handed(data), size, rng)[1]
    except MechanismTimeout:
        raise
    except BaseException as error:
        if watch.interrupted:
            raise
        raise MechanismError(
            f"{name} raised {type(error).__name__}: {error} ({place(error)}while its noise was "
            f"recorded, data of shape {np.shape(data)}, size={size})"
        ) from error


def _amounts(recordings: list[tuple[Log, Log]]) -> dict[Key, Range]:
    """Return the smallest and the largest amount of each noise."""
    amounts: dict[Key, list[float]] = {}
    for log in (log for pair in recordings for log in pair):
        for key, seen in log.seen.items():
            amounts.setdefault(key, []).extend(seen.amounts)
    return {key: (min(values), max(values)) for key, values in amounts.items() if values}


def are_apart(one: Range, other: Range) -> bool:
    """Whether two amounts differ. Ranges that overlap may differ by chance."""
    return one[0] > other[1] or other[0] > one[1]


def range_words(amount: Range) -> str:
    """Return the smallest and the largest amount as ``1 to 3``, or one number if they agree."""
    low, high = (f"{value:.4g}" for value in amount)
    return low if low == high else f"{low} to {high}"


def _site(key: Key, recordings: list[tuple[Log, Log]]) -> Site:
    one = [log.seen[key] for log, _ in recordings if key in log.seen]
    many = [log.seen[key] for _, log in recordings if key in log.seen]
    by_run = False
    if one and many:  # whether more draws lead to more calls, and not to larger calls
        before, after = sum(s.calls for s in one), sum(s.calls for s in many)
        each = sum(s.numbers for s in many) / after
        numbers = each / max(sum(s.numbers for s in one) / before, 1e-9)
        by_run = after / before > RUNS / 3 and numbers < RUNS / 3
    # If one call serves all draws together, the calls for several draws are counted.
    counted = [s.calls for s in (one if by_run else many or one)]
    absent = len(recordings) - len(one if by_run else many)
    amounts = _amounts(recordings)
    return Site(
        key[0],
        tuple((code_name(file), function, number) for file, function, number in key[1]),
        0 if absent else min(counted),
        max(counted),
        by_run,
        amounts.get(key),
        any(s.in_threads for s in one + many),
        any(s.has_probabilities for s in one + many),
    )


def _unseen(
    mechanism: Callable[..., Any],
    datasets: list[Array],
    found: Recording,
    taken: list[Key],
    seed: int,
    watch: Watch,
) -> str:
    """Return a reason if outputs vary although all sites are made certain; otherwise return ""."""
    advice = (
        "Draw from the methods of the rng that is passed in (rng.normal, rng.laplace, ...), "
        "or give mutants with less noise"
    )
    if taken:
        return (
            f"{_words(taken[0][1][0])} takes rng.bit_generator, and draws made with it are not "
            f"recorded. {advice}"
        )
    if not is_seeded(mechanism):
        return "it draws from an entropy source of its own, not from rng"
    plans = [Plan(key, TREATMENTS[key[0]].changes[0]) for key in found.keys]
    try:
        with watch.call(mechanism_name(mechanism)):
            calls = [
                np.asarray(
                    run(
                        mechanism, handed(datasets[0]), RUNS, generator(seed, "still", i), *plans,
                        calls=found.calls(RUNS),
                    )[0]
                )
                for i in range(2)
            ]  # fmt: skip
        certain = all(map(is_constant, calls)) and same_draws(*calls)
    except BaseException:  # the mechanism may fail without its noise, which is not a fault here
        if watch.interrupted:
            raise
        return ""
    if certain:
        return ""
    if not found.sites and (drawn_by := getattr(mechanism, "randomness", "")) in ("torch", "jax"):
        return (
            f"{drawn_by} draws its noise, and only noise of numpy is recorded. Give mutants with "
            "less noise"
        )
    if not found.sites:
        return f"it makes a generator of its own, so that no noise is recorded. {advice}"
    return f"it varies even if all recorded noise is removed. {advice}"


def _words(line: Line) -> str:
    file, _, number = line
    return f"line {number} of {code_name(file)}"
