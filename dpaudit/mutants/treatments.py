"""Table of changes that mutants make to the draws of each method of the generator.

Every change first calls the method and then replaces the drawn values. So a mutant consumes the
same amount of randomness as its mechanism.

A method of the kind *noise* has a centre. The centre is the mean, or the median for methods that
may have no finite mean. ``removed`` replaces every draw by the centre. ``halved`` halves the
deviation of each draw from the centre. Integer draws stay integers and are rounded towards the
centre.

A method of the kind *selection* makes a decision, for example which users are sampled, or how a
coin falls. ``low end`` and ``high end`` make the decision certain. The decision is then the
smallest or largest value, the first or last elements, or the unchanged or reversed order. Uniform
numbers serve both purposes, so both kinds of change are made to them. If a selection is given
probabilities, ``halved`` squares and normalises the probabilities, which halves the temperature.

Two changes repair a mechanism instead of harming it. ``scaled`` multiplies the deviation of each
draw from the centre by a factor. Geometric draws get another parameter, so that they stay on their
grid. Probabilities get a higher temperature. For a uniform number, the factor multiplies the
log-odds, so that a coin with every bias gets the temperature of this factor. ``raised`` draws with
a scale of at least a given value.

``stale`` needs no entry in the table. For ``stale``, the generator returns to its state before the
first call. So the same random numbers are drawn again, whatever the parameters are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

Arguments = Mapping[str, Any]
Array = NDArray[Any]

REMOVED, HALVED, LOW_END, HIGH_END, STALE = "removed", "halved", "low end", "high end", "stale"
SCALED, RAISED, LEAST = "scaled", "raised", "least"


@dataclass(frozen=True)
class Treatment:
    """Change of the draws of one method of the generator.

    Parameters
    ----------
    centre : callable, optional
        ``centre(arguments) -> array_like`` computes the centre from the arguments of the call,
        given by name. None if the method draws no noise.
    low, high : callable, optional
        ``low(arguments, drawn) -> array_like`` returns a certain decision in place of the draws.
        None if the method does not select.
    amount : str
        Name of the argument that determines the amount of noise; empty if no argument does.
    temper : callable, optional
        ``temper(arguments, power) -> arguments`` raises probabilities to a power and normalises
        them. An exponential mechanism would have these probabilities if it spent `power` times its
        epsilon. The result is None if the call takes no probabilities.
    stretch : callable, optional
        ``stretch(arguments, drawn, factor) -> array_like`` multiplies the noise in draws. By
        default, the deviation from the centre is multiplied, or from `least` if it is given.
    least : float, optional
        Smallest possible draw of noise that has one, as of an exponential distribution.
    """

    centre: Callable[[Arguments], ArrayLike] | None = None
    low: Callable[[Arguments, Any], ArrayLike] | None = None
    high: Callable[[Arguments, Any], ArrayLike] | None = None
    amount: str = ""
    temper: Callable[[Arguments, float], dict[str, Any] | None] | None = None
    stretch: Callable[[Arguments, Any, float], ArrayLike] | None = None
    least: float | None = None

    @property
    def is_noise(self) -> bool:
        """Whether the method only draws noise and does not select."""
        return self.centre is not None and self.low is None

    @property
    def changes(self) -> tuple[str, ...]:
        """Possible changes of one call, from the largest to the smallest."""
        noise, selects = self.centre is not None, self.low is not None
        milder = noise or self.temper is not None
        possible = {REMOVED: noise, LOW_END: selects, HIGH_END: selects, HALVED: milder}
        return tuple(change for change, is_possible in possible.items() if is_possible)

    def can_change(self, change: str) -> bool:
        """Return whether a change can be made to draws, and not only to arguments."""
        return (self.low if change in (LOW_END, HIGH_END) else self.centre) is not None

    def adapted(self, change: str, arguments: Arguments, factor: float) -> dict[str, Any] | None:
        """Return other arguments that make a change, or None if the draws are changed instead."""
        if change == RAISED and self.amount:
            return {**arguments, self.amount: np.maximum(arguments[self.amount], factor)}
        if self.temper is None or change not in (HALVED, SCALED):
            return None
        return self.temper(arguments, 2.0 if change == HALVED else 1 / factor)

    def changed(self, change: str, arguments: Arguments, drawn: Any, factor: float = 1.0) -> Any:
        """Return the replacement of some draws, in the same shape and dtype.

        Parameters
        ----------
        change : {"removed", "halved", "low end", "high end", "scaled", "least"}
            The change, one of `changes`, or "scaled", or "least" if `least` is given.
        arguments : mapping
            Arguments of the call by name, including defaults.
        drawn : array or number or bytes
            The values that the method drew.
        factor : float, optional
            Factor of the noise, for "scaled".
        """
        if isinstance(drawn, bytes):
            return (b"\x00" if change == LOW_END else b"\xff") * len(drawn)
        seen = np.asarray(drawn)
        if change in (LOW_END, HIGH_END):
            end = self.low if change == LOW_END else self.high
            assert end is not None
            value = np.broadcast_to(np.asarray(end(arguments, drawn)), seen.shape)
        elif change == SCALED and self.stretch is not None:
            value = np.asarray(self.stretch(arguments, seen, factor))
        else:
            assert self.centre is not None
            factor = {REMOVED: 0.0, HALVED: 0.5, LEAST: 0.0}.get(change, factor)
            is_from_least = self.least is not None and change in (LEAST, SCALED)
            origin = self.least if is_from_least else self.centre(arguments)
            value = _moved(np.asarray(origin), seen, factor)
        kind = seen.dtype.kind
        if kind in "iu" and value.dtype.kind == "f":
            info = np.iinfo(seen.dtype)  # the ends of the range, as doubles inside the range
            value = np.clip(value, float(info.min), np.nextafter(float(info.max), 0.0))
        # A text may be longer than the drawn text, so it needs a wider dtype.
        changed = value.astype(seen.dtype if kind not in "US" else value.dtype)
        if isinstance(drawn, np.ndarray):
            return changed
        return changed[()] if isinstance(drawn, np.generic) else changed.item()


def _moved(centre: Array, drawn: Array, factor: float) -> Array:
    """Multiply the deviation of draws from their centre by a factor."""
    integers = drawn.dtype.kind in "iu"
    centre = np.broadcast_to(np.rint(centre) if integers else centre, drawn.shape)
    if factor == 0:
        return centre
    deviation = (drawn - centre) * factor
    return np.asarray(centre + (np.trunc(deviation) if integers else deviation))


def _stretched(ends: Callable[[Arguments], tuple[Any, Any]]) -> Callable[..., ArrayLike]:
    """Multiply the log-odds of the position of uniform numbers between their ends by a factor."""

    def stretch(arguments: Arguments, drawn: Any, factor: float) -> Any:
        low, high = (np.asarray(end, dtype=float) for end in ends(arguments))
        width = np.where(high > low, high - low, 1.0)
        position = np.clip((drawn - low) / width, 2.0**-53, 1 - 2.0**-53)
        moved = special.expit(factor * special.logit(position))
        return low + (high - low) * np.clip(moved, 2.0**-53, 1 - 2.0**-53)

    return stretch


# --- centres ---


def _logseries(p: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.where(p > 0, -p / (np.log1p(-p) * (1 - p)), 1.0)


def _of(formula: Callable[..., ArrayLike], *names: str) -> Callable[[Arguments], ArrayLike]:
    """Return a function that computes a centre by a formula from some of the arguments."""

    def centre(arguments: Arguments) -> ArrayLike:
        return formula(*(np.asarray(arguments[name], dtype=float) for name in names))

    return centre


# --- ends ---


def _chosen(arguments: Arguments, drawn: Any, *, last: bool) -> Array:
    """Choose the first or the last elements with positive probability, in order."""
    a, axis = arguments["a"], arguments["axis"]
    size = arguments["size"]
    count = 1 if size is None else int(np.prod(size))
    population = None if np.ndim(a) == 0 else np.asarray(a)
    n = int(np.asarray(a)) if population is None else population.shape[axis]
    if arguments["p"] is None:
        first = n - (1 if arguments["replace"] else count) if last else 0
        chosen = np.full(count, first) if arguments["replace"] else np.arange(first, first + count)
    else:
        possible = np.flatnonzero(np.asarray(arguments["p"]) > 0)
        ends = possible[-1:] if last else possible[:1]
        several = possible[len(possible) - count :] if last else possible[:count]
        chosen = np.repeat(ends, count) if arguments["replace"] else several
    taken = chosen if population is None else np.take(population, chosen, axis=axis)
    if size is None and population is not None and population.ndim == 1:
        return np.asarray(taken[0])
    return taken.reshape(np.shape(drawn))


def _ordered(arguments: Arguments, drawn: Any) -> Array:
    x = arguments["x"]
    return np.arange(x) if isinstance(x, int | np.integer) else np.asarray(x)


def _reversed(arguments: Arguments, drawn: Any) -> Array:
    values = _ordered(arguments, drawn)
    axis = arguments["axis"]
    if axis is None:  # only for `permuted`, which then treats the array as one sequence
        return values.ravel()[::-1].reshape(values.shape)
    return np.flip(values, axis)


def _bounds(arguments: Arguments) -> tuple[Array, Array]:
    """Return the smallest and largest value of ``integers``."""
    low, high = arguments["low"], arguments["high"]
    low, high = (0, low) if high is None else (low, high)
    return np.asarray(low), np.asarray(high) - (not arguments["endpoint"])


def _below(end: ArrayLike, drawn: Any, towards: ArrayLike) -> Array:
    """Return the largest number below the upper end of a uniform distribution."""
    dtype = np.asarray(drawn).dtype
    return np.asarray(np.nextafter(np.asarray(end, dtype), np.asarray(towards, dtype), dtype=dtype))


def _one_category(arguments: Arguments, drawn: Any, *, last: bool) -> Array:
    """Put the whole multinomial draw in the first or last category of positive probability."""
    shares = np.asarray(arguments["pvals"], dtype=float)
    possible = np.flatnonzero(shares.reshape(-1, shares.shape[-1]).max(axis=0) > 0)
    counts = np.zeros(np.shape(drawn), dtype=np.int64)
    counts[..., possible[-1 if last else 0]] = arguments["n"]
    return counts


def _colors(arguments: Arguments, drawn: Any, *, last: bool) -> Array:
    """Take the sample from the first or from the last colours, as far as these colours suffice."""
    colors = np.asarray(arguments["colors"])
    ordered = colors[::-1] if last else colors
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])
    taken = np.clip(arguments["nsample"] - before, 0, ordered)
    return np.asarray(taken[::-1] if last else taken)


def _tempered(name: str) -> Callable[[Arguments, float], dict[str, Any] | None]:
    """Raise probabilities to a power; for a binomial, p and 1 - p are normalised together."""

    def temper(arguments: Arguments, power: float) -> dict[str, Any] | None:
        if arguments[name] is None:
            return None
        p = np.asarray(arguments[name], dtype=float)
        if name == "p" and "n" in arguments:  # of a binomial distribution
            return {**arguments, name: p**power / (p**power + (1 - p) ** power)}
        powers = (p / p.max()) ** power
        return {**arguments, name: powers / powers.sum(axis=-1, keepdims=True)}

    return temper


def _slower(arguments: Arguments, power: float) -> dict[str, Any] | None:
    """Make geometric draws `1 / power` times as large."""
    if power > 1:  # halving moves the draws instead
        return None
    p = np.asarray(arguments["p"], dtype=float)
    return {**arguments, "p": -np.expm1(power * np.log1p(-p))}


_PERMUTED = Treatment(low=_ordered, high=_reversed)

TREATMENTS: dict[str, Treatment] = {
    # noise around a location
    "normal": Treatment(_of(np.asarray, "loc"), amount="scale"),
    "laplace": Treatment(_of(np.asarray, "loc"), amount="scale"),
    "logistic": Treatment(_of(np.asarray, "loc"), amount="scale"),
    "gumbel": Treatment(
        _of(lambda loc, scale: loc + np.euler_gamma * scale, "loc", "scale"), amount="scale"
    ),
    "vonmises": Treatment(
        _of(lambda mu: (mu + math.pi) % (2 * math.pi) - math.pi, "mu"), amount="kappa"
    ),
    "multivariate_normal": Treatment(_of(np.asarray, "mean")),
    "standard_normal": Treatment(lambda _: 0.0),
    "standard_cauchy": Treatment(lambda _: 0.0),
    "standard_t": Treatment(lambda _: 0.0, amount="df"),
    "triangular": Treatment(
        _of(lambda a, b, c: (a + b + c) / 3, "left", "mode", "right"), amount="right"
    ),
    # positive noise, around its mean
    "exponential": Treatment(_of(np.asarray, "scale"), amount="scale", least=0.0),
    "standard_exponential": Treatment(lambda _: 1.0, least=0.0),
    "gamma": Treatment(
        _of(lambda shape, scale: shape * scale, "shape", "scale"), amount="scale", least=0.0
    ),
    "standard_gamma": Treatment(_of(np.asarray, "shape"), amount="shape", least=0.0),
    "chisquare": Treatment(_of(np.asarray, "df"), amount="df", least=0.0),
    "noncentral_chisquare": Treatment(_of(lambda df, nonc: df + nonc, "df", "nonc"), amount="df"),
    "f": Treatment(_of(lambda n, d: special.fdtri(n, d, 0.5), "dfnum", "dfden"), amount="dfden"),
    "noncentral_f": Treatment(
        _of(lambda *shape: scipy.stats.ncf.median(*shape), "dfnum", "dfden", "nonc"), amount="dfden"
    ),
    "lognormal": Treatment(_of(lambda m, s: np.exp(m + s**2 / 2), "mean", "sigma"), amount="sigma"),
    "rayleigh": Treatment(
        _of(lambda scale: scale * math.sqrt(math.pi / 2), "scale"), amount="scale", least=0.0
    ),
    "wald": Treatment(_of(np.asarray, "mean"), amount="scale"),
    "weibull": Treatment(_of(lambda a: special.gamma(1 + 1 / a), "a"), amount="a", least=0.0),
    "pareto": Treatment(_of(lambda a: 2 ** (1 / a) - 1, "a"), amount="a", least=0.0),
    "power": Treatment(_of(lambda a: a / (a + 1), "a"), amount="a"),
    "beta": Treatment(_of(lambda a, b: a / (a + b), "a", "b"), amount="a"),
    "dirichlet": Treatment(_of(lambda alpha: alpha / alpha.sum(), "alpha")),
    # noise in integers, around its mean
    "geometric": Treatment(_of(lambda p: 1 / p, "p"), amount="p", temper=_slower, least=1.0),
    "poisson": Treatment(_of(np.asarray, "lam"), amount="lam", least=0.0),
    "negative_binomial": Treatment(_of(lambda n, p: n * (1 - p) / p, "n", "p"), amount="p"),
    "logseries": Treatment(_of(_logseries, "p"), amount="p"),
    "zipf": Treatment(_of(lambda a: scipy.stats.zipf.median(a), "a"), amount="a"),
    # uniform numbers are noise (by inversion) or a coin
    "random": Treatment(
        # The logarithm stays finite, as for all draws of the method except a single value.
        lambda _: 0.5,
        lambda _, drawn: 2.0**-53,
        lambda _, drawn: _below(1.0, drawn, 0.0),
        stretch=_stretched(lambda _: (0.0, 1.0)),
    ),
    "uniform": Treatment(
        _of(lambda low, high: (low + high) / 2, "low", "high"),
        lambda a, _: a["low"],
        lambda a, drawn: _below(a["high"], drawn, a["low"]),
        amount="high",
        stretch=_stretched(lambda a: (a["low"], a["high"])),
    ),
    # selection
    "integers": Treatment(
        low=lambda a, _: _bounds(a)[0], high=lambda a, _: _bounds(a)[1], amount="high"
    ),
    "choice": Treatment(
        low=lambda a, drawn: _chosen(a, drawn, last=False),
        high=lambda a, drawn: _chosen(a, drawn, last=True),
        temper=_tempered("p"),
    ),
    "permutation": _PERMUTED,
    "permuted": _PERMUTED,
    "shuffle": _PERMUTED,
    "binomial": Treatment(
        low=lambda a, _: 0, high=lambda a, _: a["n"], amount="p", temper=_tempered("p")
    ),
    "multinomial": Treatment(
        low=lambda a, drawn: _one_category(a, drawn, last=False),
        high=lambda a, drawn: _one_category(a, drawn, last=True),
        temper=_tempered("pvals"),
    ),
    "hypergeometric": Treatment(
        low=lambda a, _: np.maximum(0, np.subtract(a["nsample"], a["nbad"])),
        high=lambda a, _: np.minimum(a["nsample"], a["ngood"]),
        amount="nsample",
    ),
    "multivariate_hypergeometric": Treatment(
        low=lambda a, drawn: _colors(a, drawn, last=False),
        high=lambda a, drawn: _colors(a, drawn, last=True),
        amount="nsample",
    ),
    "bytes": Treatment(low=lambda a, _: 0, high=lambda a, _: 255),
}
"""Treatment for each method of :class:`numpy.random.Generator`."""
