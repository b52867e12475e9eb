"""DP-SGD as a mechanism.

Gradients of sampled users are clipped and summed, and noise is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpaudit import _validate
from dpaudit.errors import ArgumentError, MechanismError
from dpaudit.mechanisms.additive import AdditiveNoise
from dpaudit.mechanisms.protocols import mechanism_name

# --- the likelihood ratio of training runs in which the differing user moves sums by one vector


Array = NDArray[Any]
Floats = NDArray[np.float64]
Side = tuple[Floats, "Participation"]


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Logarithm of the density ratio of left to right, used as a score of outputs.

    Parameters
    ----------
    left, right : (ndarray, Participation)
        The clipped gradient, shape (d,), and the participation of the differing user, on either
        side. The gradient is zero on a side that lacks the user.
    scale : float
        Standard deviation (> 0) of the noise on each coordinate of a sum.
    steps : int
        Number of steps of a run.
    last : (ndarray, float), optional
        Start and learning rate if only the last iterate is released; None if all sums are released.
    """

    left: Side
    right: Side
    scale: float
    steps: int
    last: tuple[Floats, float] | None = None
    __name__ = "likelihood_ratio"

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of all sums ``[size, steps, d]``, or of last iterates ``[size, d]``."""
        seen = np.asarray(outputs, dtype=float)
        density = self._of_all if self.last is None else self._of_last
        return density(seen, *self.left) - density(seen, *self.right)

    def _of_all(self, sums: Floats, gradient: Floats, user: Participation) -> Floats:
        """Return the log-density ratio of all sums.

        On a side with the user, the density is a mixture.
        """
        variance = self.scale**2
        each = (sums @ gradient - gradient @ gradient / 2) / variance
        slots = user.slots
        if not slots:
            rate = user.rate
            with np.errstate(divide="ignore"):
                absent, present = np.log1p(-rate), np.log(rate)
            return np.asarray(np.logaddexp(absent, present + each).sum(axis=1))
        found = np.zeros(len(sums))
        for start in range(0, self.steps, len(slots)):
            epoch = each[:, start : start + len(slots)]
            weights = np.array(slots[: epoch.shape[1]])
            later = max(1.0 - weights.sum(), 0.0) if epoch.shape[1] < len(slots) else 0.0
            padded = np.concatenate([epoch, np.zeros((len(epoch), 1))], axis=1)
            found += special.logsumexp(padded, axis=1, b=np.append(weights, later))
        return found

    def _of_last(self, params: Floats, gradient: Floats, user: Participation) -> Floats:
        """Return the log-density ratio of the sum of all steps, with and without the user."""
        assert self.last is not None
        start, learning_rate = self.last
        total = (start - params) / learning_rate
        variance = self.steps * self.scale**2
        counts = user.counts(self.steps)
        times = np.flatnonzero(counts)
        along = (total @ gradient)[:, None] * times
        away = times**2 * (gradient @ gradient) / 2
        return np.asarray(special.logsumexp((along - away) / variance, axis=1, b=counts[times]))


# --- which users take part in which step of a training run, and how probable that is -----------


SAMPLINGS = ("poisson", "fixed", "shuffle", "balls_in_bins")


@dataclass(frozen=True)
class Participation:
    """The participation of one user in the steps.

    Parameters
    ----------
    rate : float
        Probability of participation in each step, independently of other steps. This probability is
        used only if `slots` is empty.
    slots : tuple of float
        Probability of participation in each step of an epoch. The user takes part in exactly one
        step of an epoch. The last epoch may be incomplete.
    """

    rate: float
    slots: tuple[float, ...] = ()

    def counts(self, steps: int) -> Floats:
        """Return the probability of each total number of participations, shape (steps + 1,)."""
        epochs, rest = divmod(steps, len(self.slots)) if self.slots else (0, 0)
        each = [sum(self.slots[:rest])] if self.slots else [self.rate] * steps
        counts = np.ones(1)
        for rate in each:
            counts = np.convolve(counts, [1 - rate, rate])
        counts = np.concatenate([np.zeros(epochs), counts])
        return np.concatenate([counts, np.zeros(steps + 1 - len(counts))])


@dataclass(frozen=True)
class Sampling:
    """The choice of the users that take part in each step.

    Parameters
    ----------
    kind : {"poisson", "fixed", "shuffle", "balls_in_bins"}
        With "poisson", a separate coin flip decides for each user in each step. With "fixed",
        `batch_size` users are drawn without replacement, independently in each step. With
        "shuffle", each epoch puts all users in a new random order. Each step takes the next
        `batch_size` users. With "balls_in_bins", each user is in one of the ``1 / q`` steps of an
        epoch, independently of other users (Chua et al. 2024, "Balls-and-Bins Sampling for
        DP-SGD").
    steps : int
        Total number of steps.
    q : float, optional
        Sampling probability in (0, 1], for "poisson" and "balls_in_bins".
    batch_size : int, optional
        Number of users in a batch, at least 1, for "fixed" and "shuffle".
    """

    kind: str
    steps: int
    q: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        wanted, other = ("q", "batch_size")
        if self.kind in ("fixed", "shuffle"):
            wanted, other = other, wanted
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ArgumentError(
                f"{wanted} must be given for {self.kind} sampling, and {other} must not be "
                f"given, got q={self.q!r} and batch_size={self.batch_size!r}"
            )
        if wanted == "batch_size":
            _validate.integer(1, batch_size=self.batch_size)
            return
        q = _validate.positive(q=self.q)
        if q > 1 or (self.kind == "balls_in_bins" and abs(1 / q - round(1 / q)) > 1e-9):
            allowed = "one in a whole number" if self.kind == "balls_in_bins" else "in (0, 1]"
            raise ArgumentError(f"q must be {allowed}, got {self.q!r}")

    def __str__(self) -> str:
        one = f"q={self.q:g}" if self.q is not None else f"batch_size={self.batch_size}"
        return f"{self.kind} {one}"

    def batches(
        self, n_users: int, size: int, *, rng: np.random.Generator
    ) -> Iterator[NDArray[np.bool_]]:
        """For each step, yield an array ``[size, n_users]``: who takes part in each run."""
        q, batch = self.q or 0.0, self.batch_size or 0
        if self.kind == "fixed" and n_users < batch:
            raise MechanismError(
                f"batch_size must be at most {n_users}, the number of users, got {batch}"
            )
        slot = np.zeros((size, n_users), dtype=np.int64)
        for step in range(self.steps):
            if self.kind == "poisson":
                yield rng.random((size, n_users)) < q
                continue
            if self.kind == "fixed":
                yield _ranks(size, n_users, rng) < batch
                continue
            epoch = self._epoch(n_users)
            if step % epoch == 0 and self.kind == "shuffle":
                slot = _ranks(size, n_users, rng) // batch
            elif step % epoch == 0:
                slot = rng.integers(0, epoch, size=(size, n_users))
            yield slot == step % epoch

    def participation(self, n_users: int) -> Participation:
        """Return the participation of one user for a given number of users."""
        if self.kind == "poisson":
            return Participation(self.q or 0.0)
        if self.kind == "fixed":
            return Participation(min((self.batch_size or 0) / max(n_users, 1), 1.0))
        epoch, batch = self._epoch(n_users), self.batch_size or 0
        if self.kind == "balls_in_bins":
            return Participation(0.0, (1 / epoch,) * epoch)
        sizes = [min(batch, n_users - step * batch) for step in range(epoch)]
        return Participation(0.0, tuple(one / max(n_users, 1) for one in sizes))

    def _epoch(self, n_users: int) -> int:
        """Return the number of steps of an epoch."""
        if self.kind == "balls_in_bins":
            return round(1 / (self.q or 1.0))
        return max(math.ceil(n_users / (self.batch_size or 1)), 1)


def _ranks(size: int, n_users: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return random orders of the users, shape (size, n_users)."""
    return np.asarray(rng.random((size, n_users)).argsort(axis=1), dtype=np.int64)


CLIPS, RELEASES = ("user", "example"), ("white_box", "last", "loss")
_RUNS, _STILL = 256, 1e-9
"""Runs on which gradients are compared, and their largest allowed difference, in clip norms."""


class DPSGD:
    """Differentially private stochastic gradient descent that computes many runs at once.

    In each of `steps` steps, users are sampled, and their gradients are clipped to `clip_norm` and
    summed. Gaussian noise of standard deviation ``sigma * clip_norm`` is added on every coordinate.
    The parameters move by ``-learning_rate`` times this noisy sum. The mechanism is Algorithm 1 of
    Abadi et al. (2016), except for the division by the expected batch size. This division is part
    of `learning_rate`.

    Parameters
    ----------
    gradient : callable
        ``gradient(params, data)`` returns ``[size, n_users, d]`` or ``[size, n_users, m, d]``: the
        gradient of each user, or of each of the user's m items. `params` has the shape (size, d).
        If the first axis has length 1, all runs use the same gradients. The function must not draw
        random numbers.
    start : array_like
        Parameters before the first step, shape (d,). These parameters are public.
    clip_norm : float
        Largest Euclidean norm of a clipped gradient, > 0.
    sigma : float
        Noise multiplier, > 0.
    steps : int
        Number of steps, at least 1.
    q : float, optional
        Sampling probability, in (0, 1]. With "poisson", the probability that a user takes part in a
        step. With "balls_in_bins", 1 divided by the number of bins, which must be a whole number.
    batch_size : int, optional
        Number of users in a batch, at least 1, for "fixed" and "shuffle".
    learning_rate : float, optional
        Learning rate, > 0. The default is 0.1.
    clip : {"user", "example"}, optional
        Whether the sum of a user's gradients is clipped (the default) or each gradient is clipped.
        If each gradient is clipped, a user of m items moves a sum by up to ``m * clip_norm``.
    sampling : {"poisson", "fixed", "shuffle", "balls_in_bins"}, optional
        Sampling of the users, as described in :class:`dpaudit.mechanisms.training.Sampling`.
    release : {"white_box", "last", "loss"}, optional
        The released values. The default is all noisy sums ``[size, steps, d]``. The sums give the
        strongest adversary, because they determine all iterates. The other options are the last
        iterate ``[size, d]`` and the `loss` of the last iterate.
    loss : callable, optional
        ``loss(params) -> [size]``, for ``release="loss"``; for example the loss of a canary user.

    Raises
    ------
    ArgumentError, TypeError
        If arguments are out of range or contradict each other.

    Notes
    -----
    If `clip` is "user", adding or removing one user moves each noisy sum by at most `clip_norm`.
    Replacing one user moves each noisy sum by at most ``2 * clip_norm``. With Poisson sampling, the
    privacy loss of all steps is then at most the privacy loss of
    ``SelfComposedDpEvent(PoissonSampledDpEvent(q, GaussianDpEvent(sigma)), steps)``. To build a
    broken version, override :meth:`clipped`, :meth:`total` or :meth:`noise`.

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
        self.gradient = _validate.function(gradient=gradient)
        self.loss = None if loss is None else _validate.function(loss=loss)
        self.start = _validate.vector(start=start)
        self.clip_norm = _validate.positive(clip_norm=clip_norm)
        self.sigma = _validate.positive(sigma=sigma)
        self.steps = _validate.integer(1, steps=steps)
        self.learning_rate = _validate.positive(learning_rate=learning_rate)
        self.clip = _validate.choice(CLIPS, clip=clip)
        self.release = _validate.choice(RELEASES, release=release)
        if (loss is None) == (self.release == "loss"):
            raise ArgumentError(
                f'loss must be given if and only if release="loss", got {loss!r} and '
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
        """Return the released values of `size` runs."""
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
        """Return one gradient for each user, ``[size, n, d]``, from ``[size, n, (m,) d]``."""
        by_item = gradients.ndim == 4
        if self.clip == "user":
            return _clip(gradients.sum(axis=2) if by_item else gradients, self.clip_norm)
        clipped = _clip(gradients, self.clip_norm)
        return np.asarray(clipped.sum(axis=2) if by_item else clipped)

    def total(self, clipped: Floats, takes_part: NDArray[np.bool_]) -> Floats:
        """Return the sums ``[size, d]`` over the participants ``[size, n]``."""
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
        """Return the noise that is added to the sums of one step, in their shape."""
        return rng.normal(0.0, self.scale, size=shape)

    # --- the known likelihood ratio ---

    def likelihood_ratio(self, pair: Any) -> Callable[[Any], Floats]:
        """Return the logarithm of the likelihood ratio of the released values, as a score.

        The score is exact, and therefore the most powerful score, if two conditions hold. First,
        the differing user's clipped gradient is the same at all iterates. Second, this gradient is
        orthogonal to the gradients of all other users. Otherwise, the score is still
        post-processing, so the audit is sound. The score depends on the mechanism and the pair, but
        not on any draw.

        Parameters
        ----------
        pair : NeighborPair
            Two datasets that differ in one user.

        Returns
        -------
        callable
            ``score(outputs) -> [size]``, for ``audit(score=...)``. The score is larger where left
            is more likely.

        Raises
        ------
        ArgumentError
            If a loss is released. A loss is already a number and needs no score. Also if the pair
            consists of query values.
        """
        if self.release == "loss":
            raise ArgumentError(
                'release must be "white_box" or "last" for a likelihood ratio, got "loss". A loss '
                "is already a number, and its distribution is unknown"
            )
        users = (self.sampling.participation(len(data)) for data in (pair.left, pair.right))
        left, right = zip(self._moved(pair), users, strict=True)
        released = (self.start, self.learning_rate) if self.release == "last" else None
        return LikelihoodRatio(left, right, self.scale, self.steps, released)

    def along(self, pair: Any, *, rng: np.random.Generator) -> AdditiveNoise:
        """Return the release along the differing user's gradient as centres plus noise.

        Suppose that the gradients along this direction are the same at all iterates. Then the
        release along this direction is a sum over the participants plus Gaussian noise. The sum is
        drawn, and the audit integrates the noise out in closed form. If the sum on a dataset is
        known, the computation for that dataset is exact. For example, 20,000 draws certify deltas
        that counting 20,000 draws could not certify.

        Parameters
        ----------
        pair : NeighborPair
            Two datasets that differ in one user.
        rng : numpy.random.Generator
            Generator for 256 runs on either dataset. The gradients are compared on the iterates of
            these runs.

        Returns
        -------
        AdditiveNoise
            The mechanism has one centre for each step, or a single centre for "last". The
            certificate is sound only if the gradients really are the same. The comparison tests
            this condition only on the 256 runs.

        Raises
        ------
        ArgumentError
            If a loss is released, if :meth:`total` or :meth:`noise` is overridden, if all users
            have the same gradient, or if gradients along the direction differ between iterates.
        """
        whole = all(
            getattr(type(self), name) is getattr(DPSGD, name) for name in ("total", "noise")
        )
        if self.release == "loss" or not whole:
            raise ArgumentError(
                "along requires a DPSGD that releases all sums or the last iterate and does "
                f"not override total and noise, got {self}"
            )
        left, right = self._moved(pair)
        length = float(np.linalg.norm(left - right))
        if length == 0:
            raise ArgumentError(
                f"the two sides of pair must differ in a user's gradient, got {pair!r}"
            )
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
        """Return the noisy sums of one step and the parameters after that step."""
        total = self.total(self.clipped(self._gradients(params, data)), takes_part)
        total = total + self.noise(total.shape, takes_part, step, rng=rng)
        return total, params - self.learning_rate * total

    def _moved(self, pair: Any) -> list[Floats]:
        """Return the clipped gradient of the differing user on either side, or zero for no user."""
        if pair.user is None:
            raise ArgumentError(f"pair must hold datasets that differ in one user, got {pair!r}")
        moved = [np.zeros_like(self.start), np.zeros_like(self.start)]
        for side, (data, other) in enumerate(((pair.left, pair.right), (pair.right, pair.left))):
            if len(data) >= len(other):
                moved[side] = self.clipped(self._gradients(self.start[None], data))[0, pair.user]
        return moved

    def _moves(self, params: Floats, data: Array, direction: Floats) -> Floats:
        """Return users' clipped gradients, projected on a direction, ``[size or 1, n]``."""
        return np.asarray(self.clipped(self._gradients(params, data)) @ direction)

    def _check_still(self, data: Array, direction: Floats, rng: np.random.Generator) -> None:
        """Refuse gradients whose components along a direction differ between iterates."""
        params, size = np.tile(self.start, (_RUNS, 1)), _RUNS
        first = self._moves(self.start[None], data, direction)
        for step, takes_part in enumerate(self.sampling.batches(len(data), size, rng=rng)):
            off = np.abs(self._moves(params, data, direction) - first).max(initial=0.0)
            if off > _STILL * self.clip_norm:
                raise ArgumentError(
                    "gradient must have the same component along the differing user's gradient "
                    f"at all iterates, got a difference of {off:.3g} at step {step}. Use "
                    "likelihood_ratio instead"
                )
            _, params = self._step(params, data, takes_part, step, rng)

    def _gradients(self, params: Floats, data: Array) -> Floats:
        """Return checked gradients ``[size or 1, n, (m,) d]``."""
        found = np.asarray(self.gradient(params, data), dtype=float)
        size, n, *_, d = found.shape if found.ndim in (3, 4) else (0, 0, 0)
        if size not in (1, len(params)) or (n, d) != (len(data), self.start.size):
            raise MechanismError(
                f"{mechanism_name(self.gradient)} must return gradients [size, n_users, d] or "
                f"[size, n_users, m, d], with size={len(params)}, n_users={len(data)} and "
                f"d={self.start.size}, got shape {found.shape}"
            )
        return found


def _clip(vectors: Floats, norm: float) -> Floats:
    """Shorten vectors along the last axis, so that their length is at most `norm`."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors * (norm / np.maximum(lengths, norm)))
