"""DP-SGD as a mechanism: clipped gradients of sampled users, noise, and what is released of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.likelihood import LikelihoodRatio, Side
from dpaudit.mechanisms.protocols import mechanism_name
from dpaudit.mechanisms.sampling import SAMPLINGS, Sampling

Array = NDArray[Any]
Floats = NDArray[np.float64]

CLIPS, RELEASES = ("user", "example"), ("white_box", "last", "loss")
_RUNS, _STILL = 256, 1e-9
"""Runs on which gradients are compared, and by how much, of a clip norm, they may differ."""


class Pair(Protocol):
    """Two datasets that differ in one user, such as :class:`dpaudit.NeighborPair`."""

    @property
    def left(self) -> Array:
        """One of them."""

    @property
    def right(self) -> Array:
        """The other one."""

    @property
    def user(self) -> int | None:
        """Row of the differing user, in the larger of the two."""


class DPSGD:
    """Differentially private stochastic gradient descent, many runs at once.

    In each of `steps` steps users are sampled, their gradients clipped to `clip_norm` and summed,
    Gaussian noise of standard deviation ``sigma * clip_norm`` is added on every coordinate, and
    the parameters move by ``-learning_rate`` times this noisy sum (Abadi et al. 2016, Algorithm 1,
    without the division by the batch's expected size, which `learning_rate` takes up).

    Parameters
    ----------
    gradient : callable
        ``gradient(params, data) -> [size, n_users, d]`` or ``[size, n_users, m, d]``: of each user,
        or of each of its m items, at `params` of shape (size, d). A first axis of length 1 serves
        all runs. It draws nothing.
    start : array_like
        Parameters before the first step, shape (d,); public.
    clip_norm : float
        Largest Euclidean norm of a clipped gradient, > 0.
    sigma : float
        Noise multiplier, > 0.
    steps : int
        At least 1.
    q : float, optional
        In (0, 1]: with which probability a user takes part in a step ("poisson"), or one in the
        number of bins ("balls_in_bins"), which must be whole.
    batch_size : int, optional
        Users in a batch ("fixed", "shuffle"), at least 1.
    learning_rate : float, optional
        > 0. Default 0.1.
    clip : {"user", "example"}, optional
        Whether the sum of a user's gradients is clipped (default), or each of them, so that a user
        of m items moves a sum by up to ``m * clip_norm``.
    sampling : {"poisson", "fixed", "shuffle", "balls_in_bins"}, optional
        Which users take part; see :class:`dpaudit.mechanisms.sampling.Sampling`.
    release : {"white_box", "last", "loss"}, optional
        What is seen: all noisy sums ``[size, steps, d]``, which is the strongest adversary and
        settles all iterates (default); the last iterate ``[size, d]``; or `loss` of it.
    loss : callable, optional
        ``loss(params) -> [size]`` with ``release="loss"``: a black box, such as the loss of a
        canary user.

    Raises
    ------
    ArgumentError, TypeError
        For arguments out of range, or that do not go together.

    Notes
    -----
    One user added or removed moves each noisy sum by at most `clip_norm`, one replaced by twice
    as much, where `clip` is "user". With Poisson sampling, what all steps release is then at most
    as far apart as ``SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)``
    says. Broken versions override :meth:`clipped`, :meth:`total` and :meth:`noise`.

    Examples
    --------
    >>> def pull(params, data):  # towards the data: gradient of -params @ x, the same everywhere
    ...     return -data[None]
    >>> train = DPSGD(pull, start=[0.0], clip_norm=1.0, sigma=1.0, steps=3, q=0.5)
    >>> train
    DPSGD(pull, 3 steps, sigma=1, clip_norm=1 per user, poisson q=0.5, white_box)
    >>> train(np.ones((4, 1)), 2, rng=np.random.default_rng(0)).shape
    (2, 3, 1)
    """

    def __init__(
        self,
        gradient: Callable[[Floats, Array], Any],
        *,
        start: ArrayLike,
        clip_norm: float,
        sigma: float,
        steps: int,
        q: float | None = None,
        batch_size: int | None = None,
        learning_rate: float = 0.1,
        clip: str = "user",
        sampling: str = "poisson",
        release: str = "white_box",
        loss: Callable[[Floats], Any] | None = None,
    ) -> None:
        for name, function in (("gradient", gradient), ("loss", loss)):
            if not callable(function) and not (name == "loss" and function is None):
                raise TypeError(f"{name} must be a function, got {function!r}")
        self.gradient, self.loss = gradient, loss
        self.start = _validate.vector(start=start)
        self.clip_norm = _validate.positive(clip_norm=clip_norm)
        self.sigma = _validate.positive(sigma=sigma)
        self.steps = _validate.integer(1, steps=steps)
        self.learning_rate = _validate.positive(learning_rate=learning_rate)
        self.clip = _validate.choice(CLIPS, clip=clip)
        self.release = _validate.choice(RELEASES, release=release)
        if (loss is None) == (self.release == "loss"):
            raise ArgumentError(
                f'loss must be given with release="loss" and only there, got {loss!r} with '
                f"release={release!r}"
            )
        _validate.choice(SAMPLINGS, sampling=sampling)
        self.sampling = Sampling(sampling, self.steps, q=q, batch_size=batch_size)
        self.__name__ = repr(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({mechanism_name(self.gradient)}, {self.steps} steps, "
            f"sigma={self.sigma:g}, clip_norm={self.clip_norm:g} per {self.clip}, "
            f"{self.sampling}, {self.release})"
        )

    @property
    def scale(self) -> float:
        """Standard deviation of the noise on each coordinate of a sum."""
        return self.sigma * self.clip_norm

    def __call__(self, data: Array, size: int, *, rng: np.random.Generator) -> Floats:
        """Return what is released of `size` runs."""
        params = np.tile(self.start, (size, 1))
        seen: list[Floats] = []
        batches = self.sampling.batches(len(data), size, rng=rng)
        for step, takes_part in enumerate(batches):
            total, params = self._step(params, data, takes_part, step, rng)
            if self.release == "white_box":
                seen.append(total)
        if self.release == "white_box":
            return np.stack(seen, axis=1)
        return params if self.loss is None else np.asarray(self.loss(params), dtype=float)

    # --- what may be overridden ---

    def clipped(self, gradients: Floats) -> Floats:
        """Return one gradient of each user, ``[size, n, d]``, of ``[size, n, (m,) d]``."""
        by_item = gradients.ndim == 4
        if self.clip == "user":
            return _clip(gradients.sum(axis=2) if by_item else gradients, self.clip_norm)
        clipped = _clip(gradients, self.clip_norm)
        return np.asarray(clipped.sum(axis=2) if by_item else clipped)

    def total(self, clipped: Floats, takes_part: NDArray[np.bool_]) -> Floats:
        """Return the sums ``[size, d]`` over those who take part, ``[size, n]``."""
        if len(clipped) == 1:
            return np.asarray(takes_part @ clipped[0], dtype=float)
        return np.asarray(np.einsum("sn,snd->sd", takes_part, clipped), dtype=float)

    def noise(
        self,
        shape: tuple[int, ...],
        takes_part: NDArray[np.bool_],
        step: int,
        *,
        rng: np.random.Generator,
    ) -> Floats:
        """Return what is added to the sums of one step, of their shape."""
        return rng.normal(0.0, self.scale, size=shape)

    # --- the known likelihood ratio ---

    def likelihood_ratio(self, pair: Pair) -> Callable[[Any], Floats]:
        """Return the logarithm of the likelihood ratio of what is released, as a score.

        Exact, and so the most powerful score, where the differing user's clipped gradient is the
        same at all iterates and orthogonal to those of the others; post-processing, and so sound,
        wherever it is not. It knows the mechanism and the pair, and sees no draw.

        Parameters
        ----------
        pair : NeighborPair
            Two datasets that differ in one user.

        Returns
        -------
        callable
            ``score(outputs) -> [size]``, larger where left is likelier; for ``audit(score=...)``.

        Raises
        ------
        ArgumentError
            Where a loss is released, which is a number already; for a pair of query values.
        """
        if self.release == "loss":
            raise ArgumentError(
                'release must be "white_box" or "last" for a likelihood ratio, got "loss": a loss '
                "is a number already, and its distribution unknown"
            )
        sides = [
            Side(moved, self.sampling.participation(len(data)))
            for moved, data in zip(self._moved(pair), (pair.left, pair.right), strict=True)
        ]
        released = (self.start, self.learning_rate) if self.release == "last" else None
        return LikelihoodRatio(sides[0], sides[1], self.scale, self.steps, released)

    def along(self, pair: Pair, *, rng: np.random.Generator) -> AdditiveNoise:
        """Return what is released along the differing user's gradient, noise and centres apart.

        Where gradients along this direction are the same at all iterates, what is seen there is a
        sum over those who take part, which is drawn, and Gaussian noise, which an audit then
        integrates out; of the dataset on which the sum is known, exactly. So 20,000 draws reach
        deltas that no count of them would.

        Parameters
        ----------
        pair : NeighborPair
            Two datasets that differ in one user.
        rng : numpy.random.Generator
            For 256 runs on either dataset, on whose iterates the gradients are compared.

        Returns
        -------
        AdditiveNoise
            With one centre for each step, or of "last" one in all. That gradients are the same is
            a promise, on which soundness rests; what is compared is a check of it.

        Raises
        ------
        ArgumentError
            Where a loss is released, :meth:`total` or :meth:`noise` is not DP-SGD's own, the users
            have the same gradient, or gradients along it were seen to move.
        """
        whole = all(
            getattr(type(self), name) is getattr(DPSGD, name) for name in ("total", "noise")
        )
        if self.release == "loss" or not whole:
            raise ArgumentError(
                "along needs all sums or the last iterate, and DP-SGD's own total and noise, which "
                f"{self} has not"
            )
        left, right = self._moved(pair)
        length = float(np.linalg.norm(left - right))
        if length == 0:
            raise ArgumentError(f"pair must differ in a user's gradient, got {pair!r}")
        direction = (left - right) / length
        for data in (pair.left, pair.right):
            self._check_still(data, direction, rng)
        steps = self.steps if self.release == "white_box" else 1

        def sums(data: Array, size: int, *, rng: np.random.Generator) -> Floats:
            moves = self._moves(self.start[None], data, direction)[0]
            batches = self.sampling.batches(len(data), size, rng=rng)
            each = np.stack([takes_part @ moves for takes_part in batches], axis=1)
            return each if steps > 1 else each.sum(axis=1, keepdims=True)

        def ball(data: Array) -> tuple[Floats, float]:
            moves = self._moves(self.start[None], data, direction)[0]
            ends = np.array([np.minimum(moves, 0).sum(), np.maximum(moves, 0).sum()])
            ends = ends * (self.steps / steps)
            half = float(ends[1] - ends[0]) / 2 * (1 + 1e-9) + 1e-9 * self.clip_norm
            return np.full(steps, ends.mean()), half * math.sqrt(steps)

        sums.__name__ = f"{self!r} along one gradient"
        scale = self.scale * math.sqrt(self.steps / steps)
        return AdditiveNoise(sums, "gaussian", scale, ball=ball)

    # --- inside ---

    def _step(
        self,
        params: Floats,
        data: Array,
        takes_part: NDArray[np.bool_],
        step: int,
        rng: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """Return the noisy sums of one step, and the parameters after it."""
        total = self.total(self.clipped(self._gradients(params, data)), takes_part)
        total = total + self.noise(total.shape, takes_part, step, rng=rng)
        return total, params - self.learning_rate * total

    def _moved(self, pair: Pair) -> list[Floats]:
        """Return the differing user's clipped gradient on either side; zero where missing."""
        if pair.user is None:
            raise ArgumentError(f"pair must be of datasets that differ in one user, got {pair!r}")
        moved = [np.zeros_like(self.start), np.zeros_like(self.start)]
        for side, (data, other) in enumerate(((pair.left, pair.right), (pair.right, pair.left))):
            if len(data) >= len(other):
                moved[side] = self.clipped(self._gradients(self.start[None], data))[0, pair.user]
        return moved

    def _moves(self, params: Floats, data: Array, direction: Floats) -> Floats:
        """Return users' clipped gradients along a direction, ``[size or 1, n]``."""
        return np.asarray(self.clipped(self._gradients(params, data)) @ direction)

    def _check_still(self, data: Array, direction: Floats, rng: np.random.Generator) -> None:
        """Refuse gradients that are seen to move along a direction."""
        params, size = np.tile(self.start, (_RUNS, 1)), _RUNS
        first = self._moves(self.start[None], data, direction)
        for step, takes_part in enumerate(self.sampling.batches(len(data), size, rng=rng)):
            off = np.abs(self._moves(params, data, direction) - first).max(initial=0.0)
            if off > _STILL * self.clip_norm:
                raise ArgumentError(
                    f"gradient must be the same at all iterates along the differing user's, but at "
                    f"step {step} one was off by {off:.3g}; use likelihood_ratio"
                )
            _, params = self._step(params, data, takes_part, step, rng)

    def _gradients(self, params: Floats, data: Array) -> Floats:
        """Return gradients ``[size or 1, n, (m,) d]``, checked."""
        found = np.asarray(self.gradient(params, data), dtype=float)
        allowed = {(k, len(data)) for k in (1, len(params))}
        if (
            found.ndim not in (3, 4)
            or found.shape[:2] not in allowed
            or found.shape[-1] != self.start.size
        ):
            raise MechanismError(
                f"{mechanism_name(self.gradient)} must return gradients [size, n_users, d] or "
                f"[size, n_users, m, d], here with size={len(params)}, n_users={len(data)} and "
                f"d={self.start.size}, got shape {found.shape}"
            )
        return found


def _clip(vectors: Floats, norm: float) -> Floats:
    """Shorten vectors, along the last axis, to at most `norm`."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors * (norm / np.maximum(lengths, norm)))
