"""Mutants of a mechanism's own noise, made without changing its code."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.mechanisms import (
    NOT_UPDATED,
    AdditiveNoise,
    Composition,
    ExactMechanism,
    Step,
    Unbound,
    Watch,
    as_array,
    counts_changes,
    is_seeded,
    mechanism_name,
)
from dpaudit.mutants.recorder import Key, Plan, run
from dpaudit.mutants.sites import Recording, Site, record
from dpaudit.mutants.treatments import HALVED, HIGH_END, LOW_END, REMOVED, SCALED, STALE, TREATMENTS
from dpaudit.neighbors import NeighborPair

Array = NDArray[Any]

ALL, FIRST, LAST = "all", "first", "last"
ALL_NOISE = "all of its noise"
CERTAIN = (REMOVED, LOW_END, HIGH_END)
"""Changes that remove a noise completely."""

_WORDS = {
    REMOVED: "removed",
    HALVED: "halved",
    LOW_END: "made certain, at its low end",
    HIGH_END: "made certain, at its high end",
    STALE: "not refreshed",
}
_UNIFORM = ("random", "uniform")
_OF_UNIFORM = {REMOVED: "put at its middle", HALVED: "kept to the middle half of its range"}
_SHARPER = "made sharper, its probabilities squared"
_WHEN = {ALL: "", FIRST: " in the first call", LAST: " in the last call"}


@dataclass(frozen=True, eq=False)
class Mutant:
    """A mechanism with one mistake.

    Parameters
    ----------
    name : str
        Description of the mutant, different from all other descriptions for the mechanism.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The mechanism with the mistake.
    noise : str
        Description of the noise that was changed; empty for other kinds of mistake.
    change : str
        Change of the noise, as named in :mod:`dpaudit.mutants.treatments`. Empty for other kinds of
        mistake.
    calls : {"all", "first", "last"}
        The calls of the noise that are changed.
    kind : str
        Kind of a mistake in code, such as "clipping". Empty for changes of the noise, and for
        mutants that a user gave.
    note : str
        Why the mutant need not be audited; empty if it should be.
    pair : NeighborPair or None
        Pair on whose sides the draws of a mutant of the code differ most.
    """

    name: str
    mechanism: Any
    noise: str = ""
    change: str = ""
    calls: str = ALL
    kind: str = ""
    note: str = ""
    pair: NeighborPair | None = None

    @property
    def has_effect(self) -> bool:
        """Whether the change had an effect on any draw so far; True if that is unknown."""
        return bool(getattr(counts_changes(self.mechanism), "changed", 1))

    @property
    def rank(self) -> int:
        """Sort key of mutants; an audit runs the largest mistakes first."""
        alone = 0 if self.calls == ALL else 3
        if self.change in (*CERTAIN, NOT_UPDATED):
            return alone
        return alone + (2 if self.change == STALE else 1)


@dataclass(frozen=True, eq=False)
class NoiseMutants:
    """The mutants of a mechanism's noise.

    Parameters
    ----------
    sites : tuple of Site
        Sites at which the mechanism draws.
    mutants : tuple of Mutant
        Mutants, with the largest mistakes first.
    unseen : str
        Why some randomness of the mechanism has no mutants; empty if all of it has mutants.
    recording : Recording or None
        The record of the sites; None if the mechanism was not run.
    """

    sites: tuple[Site, ...]
    mutants: tuple[Mutant, ...]
    unseen: str = ""
    recording: Recording | None = None

    def __str__(self) -> str:
        """Return lines that say how often each noise is drawn and how it is changed."""
        often = {_noise_of(site): site.frequency for site in self.sites}
        lines = []
        for noise in dict.fromkeys(mutant.noise for mutant in self.mutants):
            lines.append(f"  {noise}" + (f": {often[noise]}" if noise in often else ""))
            of_noise = [mutant.name for mutant in self.mutants if mutant.noise == noise]
            lines += [f"    {name.removeprefix(noise).strip()}" for name in of_noise]
        if not lines and not self.unseen:
            lines.append("  it draws no noise")
        if self.unseen:
            lines.append(f"  not all of its randomness gives mutants: {self.unseen}")
        return "\n".join(lines)


def of_noise(
    mechanism: Any, datasets: Iterable[Array], *, seed: int, watch: Watch | None = None
) -> NoiseMutants:
    """Return the mutants of a mechanism's noise.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise or ExactMechanism
        Mechanism that is run to find its noise, as in :func:`dpaudit.mutants.record`. For an
        :class:`AdditiveNoise`, the final noise gives further mutants. For a pmf, one mutant squares
        the pmf, and one mutant makes one outcome certain.
    datasets : iterable of ndarray
        Inputs on which the mechanism is run.
    seed : int
        Seed of the generators of these runs.
    watch : Watch, optional
        Time limits of the calls.
    """
    held = _validate.items("a list of datasets, at least one", datasets=datasets)
    seed = _validate.seed(seed=seed)
    if watch is not None:
        _validate.instance(Watch, "a Watch or None", watch=watch)
    if isinstance(mechanism, ExactMechanism):
        return NoiseMutants((), tuple(_of_pmf(mechanism)))
    if isinstance(mechanism, Composition):
        return NoiseMutants((), tuple(_of_composition(mechanism)))
    _validate.function("a function f(data, size, *, rng)", mechanism=mechanism)
    if not isinstance(mechanism, AdditiveNoise):
        return _of_sampled(mechanism, held, seed, watch)
    final = _of_final_noise(mechanism)
    if not mechanism.is_random:
        return NoiseMutants((), tuple(final))
    inner = _of_sampled(mechanism.centers, held, seed, watch, least=1)
    mutants = [*final]
    for mutant in inner.mutants:
        outer = mechanism.with_centers(mutant.mechanism)
        if mutant.noise == ALL_NOISE:  # the final noise is a part of the mechanism
            outer = next(m.mechanism for m in _of_final_noise(outer) if m.change == mutant.change)
        mutants.append(replace(mutant, mechanism=outer))
    mutants.sort(key=lambda mutant: mutant.rank)
    return NoiseMutants(inner.sites, tuple(mutants), inner.unseen)


# --- mechanisms that draw ---


class ChangedNoise:
    """A mechanism with changes at some of its sites.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng)``.
    found : Recording
        Sites of the mechanism.
    keys : sequence of Key
        The sites that are changed.
    change : str
        The change of their draws.
    calls : {"all", "first", "last"}
        The calls that are changed. All calls are changed if there are several sites.
    words : str
        Description of the change.
    factor : float
        Factor of the noise for the change "scaled", or least scale for the change "raised".
    """

    def __init__(
        self,
        mechanism: Any,
        found: Recording,
        keys: Sequence[Key],
        change: str,
        words: str,
        calls: str = ALL,
        factor: float = 1.0,
    ) -> None:
        self.mechanism, self.found, self.keys, self.factor = mechanism, found, keys, factor
        self.change, self.calls = change, calls
        self.changed = 0
        self.site = found.sites[found.keys.index(keys[0])]
        self.__name__ = f"{mechanism_name(mechanism)}, {words}"
        self.dpaudit_unseeded = not is_seeded(mechanism)

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Any:
        """Return `size` draws.

        The draws are made one at a time if the calls within a draw are distinguished.
        """
        in_order = self.calls != ALL or self.change == STALE
        if not (in_order and self.site.by_run) or size == 0:
            return self._draw(data, size, rng)
        parts = [self._draw(data, 1, rng) for _ in range(size)]
        alike = {type(part) is np.ndarray and (part.dtype.kind, part.shape[1:]) for part in parts}
        if len(alike) == 1 and not alike & {False, ("O", ())}:
            return np.concatenate(parts)
        array = as_array([part[0] for part in parts])  # lists of any length, None, texts or numbers
        return array if array.dtype == object else array.view(Unbound)

    def _draw(self, data: Array, size: int, rng: np.random.Generator) -> Any:
        only = {ALL: None, FIRST: 0}.get(self.calls, self.site.most - 1)
        if self.calls == LAST and self.site.least < self.site.most:
            only = self._last(data, size, rng)
        plans = [Plan(key, self.change, only, self.factor) for key in self.keys]
        calls = self.found.calls(size)
        drawn, log = run(self.mechanism, data, size, rng, *plans, calls=calls)
        self.changed += log.changed
        return drawn

    def _last(self, data: Array, size: int, rng: np.random.Generator) -> int:
        """Return the index of the last call, found by one draw without changes."""
        bits = rng.bit_generator
        state = bits.state
        log = run(self.mechanism, data, size, rng)[1]
        bits.state = state
        (key,) = self.keys
        return log.seen[key].calls - 1 if key in log.seen else 0


def _of_sampled(
    mechanism: Any, datasets: Iterable[Array], seed: int, watch: Watch | None, *, least: int = 2
) -> NoiseMutants:
    found = record(mechanism, datasets, seed=seed, watch=watch)
    mutants = []
    for key, site in zip(found.keys, found.sites, strict=True):
        treatment, noise = TREATMENTS[site.method], _noise_of(site)
        mild = treatment.centre is not None or site.has_probabilities
        changes = [change for change in treatment.changes if change != HALVED or mild]
        planned = [(change, ALL) for change in changes]
        if site.most > 1 and not site.in_threads:
            planned += [(STALE, ALL)]
            planned += [(change, calls) for calls in (FIRST, LAST) for change in changes]
        for change, calls in planned:
            known = _WORDS | _OF_UNIFORM if site.method in _UNIFORM else _WORDS
            done = _SHARPER if change == HALVED and site.has_probabilities else known[change]
            words = f"{noise} {done}{_WHEN[calls]}"
            made = ChangedNoise(mechanism, found, [key], change, words, calls)
            mutants.append(Mutant(words, made, noise, change, calls))
    # A mistake in a sensitivity that determines all noise changes the scale of all noise. Uniform
    # numbers are not changed, because a coin that always falls at 0.5 removes no noise.
    noises = [key for key in found.keys if TREATMENTS[key[0]].is_noise]
    for change in (REMOVED, HALVED) if len(noises) >= least else ():
        words = f"{ALL_NOISE} {_WORDS[change]}"
        made = ChangedNoise(mechanism, found, noises, change, words)
        mutants.append(Mutant(words, made, ALL_NOISE, change))
    mutants.sort(key=lambda mutant: mutant.rank)
    return NoiseMutants(found.sites, tuple(mutants), found.unseen, found)


def _noise_of(site: Site) -> str:
    return f"the {'uniform number' if site.method in _UNIFORM else 'noise'} of {site}"


# --- more noise ---


@dataclass(frozen=True, eq=False)
class Amplifier:
    """A noise of a mechanism that can be multiplied.

    Parameters
    ----------
    noise : str
        Description of the noise.
    keys : tuple of Key
        Sites of the noise in the recorder. Empty if the mechanism does not draw the noise itself.
    scaled : callable
        ``scaled(factor) -> mechanism`` returns the mechanism with `factor` times this noise.
    """

    noise: str
    keys: tuple[Key, ...]
    scaled: Callable[[float], Any]


def amplifiers(mechanism: Any, found: Recording | None) -> list[Amplifier]:
    """Return the noises of a mechanism that can be multiplied: each alone, and all together.

    Parameters
    ----------
    mechanism : callable, AdditiveNoise or ExactMechanism
        The mechanism.
    found : Recording or None
        Sites of the mechanism, or of the centres of an :class:`AdditiveNoise`. None for an
        :class:`ExactMechanism`.
    """
    if isinstance(mechanism, ExactMechanism):
        return [Amplifier("the pmf", (), lambda factor: TemperedPmf(mechanism, 1 / factor))]
    if isinstance(mechanism, Composition):
        return [Amplifier("the noise of each step", (), partial(_with_noise, mechanism))]
    made: list[Amplifier] = []
    if isinstance(mechanism, AdditiveNoise):
        noise = mechanism.noise
        made.append(
            Amplifier(
                f"the final noise ({noise.kind}, scale {noise.scale:.4g})",
                (),
                lambda factor: mechanism.with_scale(factor * noise.scale),
            )
        )
    if found is None:
        return made
    inner = mechanism.centers if isinstance(mechanism, AdditiveNoise) else mechanism
    single = [(_noise_of(s), key) for key, s in zip(found.keys, found.sites, strict=True)]
    single = [(noise, key) for noise, key in single if _can_scale(found, key)]
    noises = tuple(key for _, key in single if TREATMENTS[key[0]].is_noise)
    groups: list[tuple[str, tuple[Key, ...]]] = [(noise, (key,)) for noise, key in single]
    if len(noises) > 1:
        groups.append((ALL_NOISE, noises))

    def scaled(keys: tuple[Key, ...], factor: float) -> Any:
        words = f"{factor:g} times its noise"
        changed = ChangedNoise(inner, found, keys, SCALED, words, factor=factor)
        return mechanism.with_centers(changed) if isinstance(mechanism, AdditiveNoise) else changed

    return made + [Amplifier(noise, keys, partial(scaled, keys)) for noise, keys in groups]


def _can_scale(found: Recording, key: Key) -> bool:
    treatment, site = TREATMENTS[key[0]], found.sites[found.keys.index(key)]
    if treatment.low is not None:
        return treatment.stretch is not None or site.has_probabilities
    return key[0] not in _WHOLE


_WHOLE = ("poisson", "negative_binomial", "logseries", "zipf")
"""Noise in integers, of which no multiple is noise in integers."""


# --- mechanisms of known noise ---


def _of_final_noise(mechanism: AdditiveNoise) -> Iterator[Mutant]:
    noise, centers = mechanism.noise, mechanism.centers
    words = f"the final noise ({noise.kind}, scale {noise.scale:.4g})"

    def bare(data: Array, size: int, *, rng: np.random.Generator) -> Array:
        if mechanism.is_random:
            return np.asarray(centers(data, size, rng=rng), dtype=float)
        center = np.asarray(centers(data), dtype=float)
        return np.broadcast_to(center, (size, *center.shape))

    bare.__name__ = f"{mechanism.name} without its final noise"
    yield Mutant(f"{words} removed", bare, words, REMOVED)
    yield Mutant(f"{words} halved", mechanism.with_scale(noise.scale / 2), words, HALVED)


class TemperedPmf:
    """An exact mechanism whose outcomes have another temperature.

    With an infinite power, the first mode gets all probability.
    """

    def __init__(self, mechanism: ExactMechanism, power: float) -> None:
        self.mechanism, self.power = mechanism, power
        self.__name__ = f"{mechanism_name(mechanism)}, pmf to the power {power:g}"

    def pmf(self, data: Array) -> Array:
        """Return the normalised power of the pmf."""
        pmf = np.asarray(self.mechanism.pmf(data), dtype=float)
        if self.power == math.inf:
            return np.asarray(np.arange(len(pmf)) == pmf.argmax(), dtype=float)
        powers = (pmf / pmf.max()) ** self.power
        return np.asarray(powers / powers.sum())


def _of_pmf(mechanism: ExactMechanism) -> Iterator[Mutant]:
    changes = (REMOVED, math.inf, "put on its mode"), (HALVED, 2.0, "squared and normalised")
    for change, power, words in changes:
        yield Mutant(f"the pmf {words}", TemperedPmf(mechanism, power), "the pmf", change)


def _with_noise(mechanism: Composition, factor: float) -> Composition:
    """Return a composition with `factor` times the noise of each step."""

    def scaled(step: Step) -> Step:
        inner = step.mechanism
        if isinstance(inner, AdditiveNoise):
            return replace(step, mechanism=inner.with_scale(factor * inner.noise.scale))
        return replace(step, mechanism=TemperedPmf(inner, 1 / factor))

    return mechanism.with_steps(scaled)


def _of_composition(mechanism: Composition) -> Iterator[Mutant]:
    """Yield mutants with wrong noise, wrong subsampling or a wrong number of steps."""
    if any(step.sampling for step in mechanism.steps):
        noise = "the subsampling"
        whole = mechanism.with_steps(lambda step: replace(step, sampling=None))
        yield Mutant(f"{noise} removed", whole, noise, REMOVED)
        twice = mechanism.with_steps(
            lambda step: replace(step, sampling=step.sampling and step.sampling.doubled())
        )
        yield Mutant(f"{noise} of twice as many rows", twice, noise, SCALED)
    noise = "the noise of each step"
    yield Mutant(f"{noise} halved", _with_noise(mechanism, 0.5), noise, HALVED)
    noise = "the number of steps"
    more = mechanism.with_steps(lambda step: replace(step, times=2 * step.times))
    yield Mutant(f"{noise} doubled", more, noise, SCALED)
