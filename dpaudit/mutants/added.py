"""Test by runs with less noise whether a mechanism adds noise of a known distribution.

Suppose that an output is a fixed value plus a linear map of the noise. Then half the noise gives an
output halfway between the noisy and the noiseless output. The test requires this relation for every
tried draw, on both datasets of a pair. The test also requires that the outputs on the two datasets
differ by one fixed shift if both runs use the same noise. If both conditions hold, the distribution
of the noise determines the distribution of the outputs. Gaussian noise gives a Gaussian
distribution for every linear map. Laplace noise gives a Laplace distribution if each number of an
output has its own noise draw. The test tries only a small number of draws, so it may miss rare
behaviour. So results that rely on this test are labelled as estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured
from numpy.typing import NDArray

from dpaudit.data import handed
from dpaudit.mechanisms import Watch, generator, mechanism_name
from dpaudit.mutants.recorder import Plan, run
from dpaudit.mutants.sites import RUNS, Recording
from dpaudit.mutants.treatments import HALVED, REMOVED

Floats = NDArray[np.float64]

LAPLACE, GAUSSIAN = "Laplace", "Gaussian"

_METHODS = {
    "laplace": LAPLACE,
    "normal": GAUSSIAN,
    "standard_normal": GAUSSIAN,
    "multivariate_normal": GAUSSIAN,
}
_SCALED = ("laplace", "normal", "standard_normal")
_ROUNDINGS = 64  # number of roundings of the largest output that may add up in one output
_SEEN = 10.0  # noise must be larger than this multiple of the rounding
_LARGEST = 1e100


@dataclass(frozen=True)
class AddedNoise:
    """Noise that a mechanism adds to a fixed value of each dataset.

    Parameters
    ----------
    kind : {"Laplace", "Gaussian"}
        Distribution of all noise of the mechanism.
    shifts : tuple of float
        Difference between the two datasets, for each number of an output.
    scale : float or None
        Scale of the noise of each number, if the noises of the numbers are independent of each
        other. None if several numbers share a draw, or if the noise of a number has several scales.
    """

    kind: str
    shifts: tuple[float, ...]
    scale: float | None


def added_noise(
    mechanism: Callable[..., Any],
    datasets: tuple[Any, Any],
    found: Recording,
    *,
    seed: int,
    watch: Watch,
) -> AddedNoise | None:
    """Return the noise that a mechanism adds on a pair, or None if it does anything else.

    Parameters
    ----------
    mechanism : callable
        ``f(data, size, *, rng)``.
    datasets : (dataset, dataset)
        The two datasets of a pair.
    found : Recording
        Sites at which the mechanism draws, recorded on these two datasets first.
    seed : int
        Seed of the generator.
    watch : Watch
        Time limits of the calls.
    """
    kinds = {_METHODS.get(key[0], "") for key in found.keys}
    if len(kinds) != 1 or "" in kinds or found.unseen:
        return None
    try:
        with np.errstate(all="ignore"):
            left, right = (_Ray.of(mechanism, data, found, seed, watch) for data in datasets)
            scale = None if left is None else left.scale(found)
    except BaseException:  # an exception without noise says nothing about the mechanism
        if watch.interrupted:
            raise
        return None
    if left is None or right is None or left.noise.shape != right.noise.shape:
        return None
    rounding = np.maximum(left.rounding, right.rounding)
    shifts = left.bare[0] - right.bare[0]
    alike = _are_close(left.noise, right.noise, rounding)
    fixed = all(_are_close(ray.bare, ray.bare[:1], rounding) for ray in (left, right))
    moved = np.abs(shifts) > rounding
    # If rounding or thresholds hide the noise, nothing is known about its distribution.
    seen = np.all(np.abs(left.noise) > _SEEN * rounding)
    if not (alike and fixed and moved.any() and seen):
        return None
    (kind,) = kinds
    if kind == LAPLACE and scale is None:
        return None
    return AddedNoise(kind, tuple(shifts.tolist()), scale)


@dataclass(frozen=True)
class _Ray:
    """Some draws on one dataset, each split into a value and noise.

    Parameters
    ----------
    bare : ndarray, shape (RUNS, d)
        Outputs without noise.
    noise : ndarray, shape (RUNS, d)
        Noise in the outputs.
    drawn : list of ndarray
        Numbers that the generator drew, call by call. Empty if there are too many numbers.
    rounding : ndarray, shape (d,)
        Largest rounding error of each number.
    """

    bare: Floats
    noise: Floats
    drawn: Sequence[Floats]
    rounding: Floats

    @classmethod
    def of(
        cls, mechanism: Callable[..., Any], data: Any, found: Recording, seed: int, watch: Watch
    ) -> _Ray | None:
        """Draw with full, half and no noise.

        Return None if the outputs do not lie on a line.
        """
        outputs, drawn, precision = [], [], 0.0
        for change in (None, HALVED, REMOVED):
            plans = [Plan(key, change) for key in found.keys] if change else []
            with watch.call(mechanism_name(mechanism)):
                made, log = run(
                    mechanism, handed(data), RUNS, generator(seed, "added noise"), *plans,
                    calls=found.calls(RUNS),
                )  # fmt: skip
            made = np.asarray(made)
            if made.dtype.names and {made.dtype[name].kind for name in made.dtype.names} <= {"f"}:
                made = structured_to_unstructured(made)  # outputs of a dict of numbers
            if made.dtype.kind not in "iuf":
                return None
            if made.dtype.kind == "f":
                precision = max(precision, float(np.finfo(made.dtype).eps))
            outputs.append(made.astype(float).reshape(RUNS, -1))
            drawn.append(log.drawn)
        whole, half, bare = outputs
        size = np.maximum(np.abs(whole), np.abs(bare)).max(axis=0)
        rounding = _ROUNDINGS * max(precision, float(np.finfo(float).eps)) * size
        if not np.all(size < _LARGEST) or not _are_close(whole + bare, 2 * half, rounding):
            return None
        return cls(bare, whole - bare, drawn[0], rounding)

    def scale(self, found: Recording) -> float | None:
        """Return the scale of each number's noise, if all draws in a number have one scale."""
        amounts = [side.get(key, (1.0, 1.0)) for side in found.amounts[:2] for key in found.keys]
        scales = {value for amount in amounts for value in amount}
        if len(scales) != 1 or any(key[0] not in _SCALED for key in found.keys):
            return None
        columns = self.noise.shape[1]
        if not self.drawn or sum(part.size for part in self.drawn) != RUNS * columns:
            return None
        # Each draw has one row, and both possible orders are tried.
        orders = [np.concatenate([part.ravel() for part in self.drawn]).reshape(RUNS, columns)]
        if all(part.ndim and len(part) == RUNS for part in self.drawn):
            orders.append(np.concatenate([part.reshape(RUNS, -1) for part in self.drawn], axis=1))
        for numbers in orders:
            moved, seen = numbers[1:] - numbers[0], self.noise[1:] - self.noise[0]
            factors = (moved * seen).sum(axis=0) / np.maximum((moved**2).sum(axis=0), 1e-300)
            size = float(np.abs(factors).max())
            if _are_close(factors * moved, seen, self.rounding) and np.allclose(abs(factors), size):
                return size * scales.pop()
        return None


def _are_close(one: Floats, other: Floats, rounding: Floats) -> bool:
    return bool(np.all(np.abs(one - other) <= rounding))
