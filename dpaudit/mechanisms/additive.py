"""Mechanisms that finally add noise of a known distribution to values that are available."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.data import handed, words_of_data
from dpaudit.errors import ArgumentError, MechanismError, place
from dpaudit.mechanisms.protocols import is_seeded, mechanism_name
from dpaudit.mechanisms.watch import Watch
from dpaudit.stats import Noise

Array = NDArray[Any]
Floats = NDArray[np.float64]
BallLike = tuple[ArrayLike, float] | Callable[[Array], tuple[ArrayLike, float]]
FARTHEST = 1e50
"""Largest size of centres and balls, in noise scales, so that their squares fit in doubles."""

_ROUNDING = 1e-9
_RANDOM = ". Add an argument rng to a function that draws its centres: centers(data, size, *, rng)"


class AdditiveNoise:
    """A mechanism whose output is a centre plus Gaussian or Laplace noise of public scale.

    An audit integrates the final noise out in closed form instead of drawing it. Called as
    ``mechanism(data, size, *, rng)``, the object returns ordinary noisy draws.

    Parameters
    ----------
    centers : callable
        ``centers(data, size, *, rng) -> [size, d]`` or ``[size]`` returns the independent centres
        of `size` runs. A function without an argument ``rng`` is deterministic. Such a function is
        ``centers(data) -> [d]``, or returns a number.
    noise : {"gaussian", "laplace"}, optional
        Distribution of the final noise. The noise of each coordinate is independent. Default
        "gaussian".
    scale : float
        Standard deviation of Gaussian noise, or the scale b of Laplace noise. The number lies
        between 1e-50 and 1e50.
    ball : tuple of (center, radius), or callable, optional
        A Euclidean ball that contains every centre, or ``ball(data) -> (center, radius)``. The
        smaller the ball, the smaller the deltas that can be certified. The certificate is sound
        only if the ball really contains every centre. Every drawn centre is therefore checked
        against the ball.

    Raises
    ------
    TypeError, ValueError
        For arguments out of range, such as a scale of 0.

    Examples
    --------
    >>> def total(data):
    ...     return data.sum(axis=0)
    >>> mechanism = AdditiveNoise(total, scale=2.0)
    >>> mechanism
    AdditiveNoise(total, gaussian noise of scale 2)
    >>> mechanism(np.ones((3, 2)), 5, rng=np.random.default_rng(0)).shape
    (5, 2)
    """

    def __init__(
        self,
        centers: Callable[..., Any],
        noise: str = "gaussian",
        scale: float = 0.0,
        *,
        ball: BallLike | None = None,
    ) -> None:
        words = "a function centers(data, size, *, rng) or centers(data)"
        self.centers = _validate.function(words, centers=centers)
        self.noise = Noise(noise, scale)
        self.is_random = _takes_rng(centers)
        self.name = mechanism_name(centers)
        self.__name__ = f"{self.name} + {self.noise}"
        self.dpaudit_unseeded = not is_seeded(centers)
        self._ball = ball
        if ball is not None and not callable(ball):
            _checked_ball(ball, self.noise)

    def __repr__(self) -> str:
        return f"AdditiveNoise({self.name}, {self.noise})"

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Floats:
        """Return `size` independent noisy draws, ``[size, d]`` or ``[size]``."""
        if self.is_random:
            centers = np.asarray(self.centers(data, size, rng=rng), dtype=float)
        else:
            center = np.asarray(self.centers(data), dtype=float)
            centers = np.broadcast_to(center, (size, *center.shape))
        noisy: Floats = centers + self.noise.sample(centers.shape, rng=rng)
        return noisy

    def with_centers(self, centers: Callable[..., Any], **options: Any) -> AdditiveNoise:
        """Return the mechanism with other centres, and with another ball if `ball` is given."""
        ball = options.get("ball", self._ball)
        return AdditiveNoise(centers, self.noise.kind, self.noise.scale, ball=ball)

    def with_scale(self, scale: float) -> AdditiveNoise:
        """Return the mechanism with another noise scale."""
        return AdditiveNoise(self.centers, self.noise.kind, scale, ball=self._ball)

    def center(self, data: Array) -> Floats:
        """Return the checked centre of a deterministic mechanism, ``[d]``."""
        first, again = (
            _numbers(self._called(self.centers, self.name, data, _RANDOM), self.name)
            for _ in range(2)
        )
        if first.ndim > 1 or first.size == 0:
            raise MechanismError(
                f"{self.name} must return one centre (a number or an array [d]), because it "
                f"takes no rng, got shape {first.shape}"
            )
        if not np.array_equal(first, again, equal_nan=True):
            raise MechanismError(
                f"{self.name} must take rng if it is random, but two calls without rng returned "
                f"different centres{_RANDOM}"
            )
        only: Floats = self.checked(first.reshape(1, -1), self.ball(data))[0]
        return only

    def ball(self, data: Array) -> tuple[Floats, float] | None:
        """Return the centre and the radius of the declared ball for these data, or None."""
        if not callable(self._ball):
            return None if self._ball is None else _checked_ball(self._ball, self.noise)
        return _checked_ball(self._called(self._ball, f"ball of {self.name}", data), self.noise)

    def _called(self, function: Any, name: str, data: Array, advice: str = "") -> Any:
        """Return the value of a function on data; report the exception that the function raises."""
        watch = Watch()
        try:
            with watch.call(self.name):
                return function(handed(data))
        except MechanismError:
            raise
        except BaseException as error:
            if watch.interrupted:
                raise
            raise MechanismError(
                f"{name} raised {type(error).__name__}: {error} ({place(error)}called with "
                f"{words_of_data(data)}){advice}"
            ) from error

    def checked(self, outputs: Any, ball: tuple[Floats, float] | None) -> Floats:
        """Return centres ``[size, d]``; refuse centres that are infinite, huge or outside the ball.

        Raises
        ------
        MechanismError
            The message gives the faulty centre and the size of its fault.
        """
        centers = _numbers(outputs, self.name)
        if centers.ndim not in (1, 2):
            raise MechanismError(
                f"{self.name} must return centres [size, d] or [size], got shape {centers.shape}"
            )
        centers = centers.reshape(len(centers), -1)
        broken = ~np.isfinite(centers).all(axis=1)
        if broken.any():
            at = int(broken.argmax())
            raise MechanismError(
                f"{self.name} must return finite centres, got NaN or inf in {int(broken.sum())} of "
                f"{len(centers)} draws. The first of them is {centers[at].tolist()}. "
                "A centre is the value to which noise is added"
            )
        size, most = float(np.abs(centers).max(initial=0.0)), FARTHEST * self.noise.scale
        if size > most:
            raise MechanismError(
                f"{self.name} must return centres of size at most {most:g} ({FARTHEST:g} "
                f"noise scales), got a centre of size {size:g}"
            )
        if ball is None:
            return centers
        middle, radius = ball
        if len(middle) != centers.shape[1]:
            raise MechanismError(
                f"{self.name} must return centres of length {len(middle)}, the length of the "
                f"declared ball's centre, got length {centers.shape[1]}"
            )
        distance = np.linalg.norm(centers - middle, axis=1)
        at = int(distance.argmax())
        if distance[at] > radius + slack(middle, radius):
            raise MechanismError(
                f"{self.name} must return centres inside its declared ball, got "
                f"{centers[at].tolist()}. Its distance from {middle.tolist()} is "
                f"{distance[at]:.9g}, which exceeds the radius {radius:.9g} by "
                f"{distance[at] - radius:.3g}"
            )
        return centers


def slack(middle: Floats, radius: float) -> float:
    """Return the distance by which rounding errors may move a centre out of a ball."""
    return _ROUNDING * max(radius, float(np.abs(middle).max()))


def _takes_rng(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return True
    return any(p.name == "rng" or p.kind is p.VAR_KEYWORD for p in parameters)


def _numbers(value: Any, name: str) -> Floats:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise MechanismError(
            f"{name} must return an array of centres, but the conversion failed ({error})"
        ) from None
    if array.dtype.kind not in "biuf":
        raise MechanismError(f"{name} must return centres that are numbers, got {array.dtype}")
    return array.astype(float)


def _checked_ball(ball: Any, noise: Noise) -> tuple[Floats, float]:
    try:
        middle, radius = ball
        center = np.array(middle, dtype=float, ndmin=1)
    except (TypeError, ValueError):
        raise TypeError(f"ball must be a pair (center, radius), got {ball!r}") from None
    if center.ndim != 1 or center.size == 0 or not np.isfinite(center).all():
        raise ArgumentError(f"ball must have a centre [d] of finite numbers, got {middle!r}")
    radius, most = _validate.nonnegative(radius=radius), FARTHEST * noise.scale
    if radius > most or np.abs(center).max() > most:
        raise ArgumentError(
            f"ball must have a centre and a radius that are at most {most:g} ({FARTHEST:g} "
            f"noise scales), got {ball!r}"
        )
    return center, radius
