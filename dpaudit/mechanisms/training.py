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
from dpaudit.mechanisms.sampling import SAMPLINGS, Sampling

Array = NDArray[Any]
Floats = NDArray[np.float64]

# --- scores: fixed functions of what a run releases --------------------------------------------


@dataclass(frozen=True, eq=False)
class LikelihoodRatio:
    """Logarithm of the density ratio of left to right, used as a score of outputs.

    Parameters
    ----------
    run : DPSGD
        The training whose outputs are scored.
    pair : NeighborPair
        Two datasets that differ in one user.
    """

    run: DPSGD
    pair: Any
    __name__ = "likelihood_ratio"

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of all sums ``[size, steps, d]``, or of last iterates ``[size, d]``."""
        return self.run._in_portions(self._scores, outputs, self.pair.left, self.pair.right)

    def _scores(self, outputs: Floats) -> Floats:
        return self._side(outputs, 0) - self._side(outputs, 1)

    def _side(self, outputs: Floats, side: int) -> Floats:
        """Return the log-density ratio of one side to the same side without the user."""
        run, user = self.run, user_of(self.pair)
        data, other = (self.pair.left, self.pair.right)[:: 1 - 2 * side]
        if n_users(data) < n_users(other):
            return np.zeros(len(outputs))
        takes_part = run.sampling.participation(n_users(data))
        if run.release == "white_box":
            rates = takes_part.rates(run.steps)
            moments = [(rate, rate * (1 - rate)) for rate in rates]
        else:
            counts, times = takes_part.counts(run.steps), np.arange(run.steps + 1)
            mean = float(counts @ times)
            moments = [(mean, float(counts @ (times - mean) ** 2))]
        noise = run.scale**2 * (1 if run.release == "white_box" else run.steps)
        steps = []
        for (params, total), (mean, variance) in zip(run._path(outputs), moments, strict=True):
            gradients = run.clipped(run._gradients(params, data))
            own, others = gradients[:, user], np.delete(gradients, user, axis=1)
            steps.append(_along(total - mean * others.sum(axis=1), own, others, variance, noise))
        if run.release == "white_box":
            each = [inner - square / 2 for inner, square in steps]
            return takes_part.log_ratio(np.stack(each, axis=1))
        ((inner, square),) = steps
        times = np.flatnonzero(counts)
        logs = inner[:, None] * times - square[:, None] * times**2 / 2
        return np.asarray(special.logsumexp(logs, axis=1, b=counts[times]))


def _along(
    rest: Floats, own: Floats, others: Floats, variance: float, noise: float
) -> tuple[Floats, Floats]:
    """Return the inner products of one user's gradient with `rest` and with itself, ``[size]``.

    The inner product is that of the inverse covariance of a sum without the user: `noise` on every
    coordinate, and the number of times that each of `others` takes part, with the given variance.
    The inverse follows from the Woodbury identity.
    """
    weighted = own / noise
    if variance > 0 and others.shape[1]:
        transposed = np.swapaxes(others, 1, 2)
        inner = others @ transposed + noise / variance * np.eye(others.shape[1])
        weighted = (
            own - (transposed @ np.linalg.solve(inner, others @ own[:, :, None]))[..., 0]
        ) / noise
    square = np.broadcast_to((own * weighted).sum(axis=1), len(rest))
    return (rest * weighted).sum(axis=1), square


@dataclass(frozen=True, eq=False)
class GradientProduct:
    """Inner product of the released sums with users' clipped gradients, used as a score."""

    run: DPSGD
    users: Any
    is_one: bool
    __name__ = "gradient_product"

    def __call__(self, outputs: Array) -> Floats:
        """Return one score for each run, ``[size]``, or for each run and user, ``[size, n]``."""
        scores = self.run._in_portions(self._scores, outputs, self.users)
        return scores[:, 0] if self.is_one else scores

    def _scores(self, outputs: Floats) -> Floats:
        run, scores = self.run, np.zeros((len(outputs), n_users(self.users)))
        for params, total in run._path(outputs):
            gradients = run.clipped(run._gradients(params, self.users))
            scores += (gradients @ total[:, :, None])[..., 0]
        return scores


@dataclass(frozen=True, eq=False)
class LossDrop:
    """Loss of users at the start minus their loss at the last iterate, used as a score."""

    run: DPSGD
    losses: Callable[[Floats, Array], Any]
    users: Any
    is_one: bool
    __name__ = "loss_drop"

    def __call__(self, outputs: Array) -> Floats:
        """Return one score for each run, ``[size]``, or for each run and user, ``[size, n]``."""
        scores = self.run._in_portions(self._scores, outputs, self.users)
        return scores[:, 0] if self.is_one else scores

    def _scores(self, outputs: Floats) -> Floats:
        before, after = (
            self.of(params) for params in (self.run.start[None], self.run._last(outputs))
        )
        return before - after

    def of(self, params: Floats) -> Floats:
        """Return the losses ``[size, n]``.

        Raises
        ------
        MechanismError
            If the losses have another shape.
        """
        losses = np.asarray(self.losses(params, self.users), dtype=float)
        if losses.shape != (len(params), n_users(self.users)):
            raise MechanismError(
                f"{mechanism_name(self.losses)} must return losses [size, n_users], with "
                f"size={len(params)} and n_users={n_users(self.users)}, got shape {losses.shape}"
            )
        return losses


CLIPS, RELEASES = ("user", "example"), ("white_box", "last", "loss")
_RUNS, _STILL = 256, 1e-9
"""Runs on which gradients are compared, and their largest allowed difference, in clip norms."""
_PORTION = 2**22
"""Numbers in the gradients that a score holds at once."""


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
        random numbers. The data are an array ``[n_users, ...]``, or a dict of such arrays. For
        models of PyTorch and JAX, see :func:`dpaudit.adapters.torch_gradient` and
        :func:`dpaudit.adapters.jax_gradient`.
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
        Sampling of the users, as described in :class:`dpaudit.mechanisms.sampling.Sampling`.
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
        batches = self.sampling.batches(n_users(data), size, rng=rng)
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

    # --- scores ---

    def likelihood_ratio(self, pair: Any) -> Callable[[Any], Floats]:
        """Return the logarithm of the likelihood ratio of the released values, as a score.

        The score knows all data. It computes the gradients of all users at the iterates of each
        run, which follow from the released sums. If all sums are released, the score is exact, and
        therefore the most powerful score, in two cases. In the first case, all other users take
        part in every step. In the second case, the samples are "poisson" or "balls_in_bins", and
        the gradients of the others are orthogonal to the gradient of the differing user. Otherwise,
        the score treats the sum of the other participants as normal, and the other users as
        independent. For a last iterate, it also assumes that the gradients stay as they are at the
        start, so :meth:`loss_drop` may be better. In every case, the score is post-processing, so
        the audit is sound.

        Parameters
        ----------
        pair : NeighborPair
            Two datasets that differ in one user.

        Returns
        -------
        callable
            ``score(outputs) -> [size]``, for ``audit(score=...)``. The score is larger where left
            is more likely. `outputs` are all noisy sums ``[size, steps, d]`` or last iterates
            ``[size, d]``, depending on `release`. The outputs may come from another training loop.

        Raises
        ------
        ArgumentError
            If a loss is released. A loss is already a number and needs no score. Also if the pair
            does not differ in one user, or has frames.
        """
        self._scorable("a likelihood ratio")
        user_of(pair)
        self._gradients(self.start[None], _fuller(pair))
        return LikelihoodRatio(self, pair)

    def gradient_product(self, whose: Any) -> Callable[[Any], Floats]:
        """Return the product of the released sums with a user's clipped gradients, as a score.

        The inner products of all steps are added, with the gradients at the iterates of each run.
        In contrast to :meth:`likelihood_ratio`, the score depends neither on the noise nor on the
        sampling, and it scores many users of one run. This is the white-box score of Nasr et al.
        (2023), "Tight Auditing of Differentially Private Machine Learning", and of Steinke, Nasr
        and Jagielski (2023), "Privacy Auditing with One (1) Training Run". The gradient canary of
        the first paper is a user whose gradient is the same at all iterates. If only the last
        iterate is released, the score takes the sum of all steps and the gradient at the start.

        Parameters
        ----------
        whose : NeighborPair or data
            A pair, for the score of the differing user, or the data of users, such as the canaries
            of :func:`dpaudit.audit_one_run`.

        Returns
        -------
        callable
            ``score(outputs)``, which returns ``[size]`` for a pair and ``[size, n_users]`` for data
            of users. The score is larger if the user probably took part. For a pair whose right
            side has a user that is replaced, the user is the one of the left side.

        Raises
        ------
        ArgumentError
            If a loss is released, or if the pair consists of query values.
        """
        self._scorable("a product of gradients")
        users, is_one = _users_and_one(whose)
        self._gradients(self.start[None], users)
        return GradientProduct(self, users, is_one)

    def loss_drop(
        self, whose: Any, losses: Callable[[Floats, Array], Any] | None = None
    ) -> Callable[[Any], Floats]:
        """Return a user's loss before training minus the loss after it, as a score.

        This is the black-box score of Annamalai and De Cristofaro (2024), "Nearly Tight Black-Box
        Auditing of Differentially Private Machine Learning", and of Steinke, Nasr and Jagielski
        (2023). The score sees only the last iterate. If the sums are released, the last iterate is
        computed from them.

        Parameters
        ----------
        whose : NeighborPair or data
            A pair, for the score of the differing user, or the data of users.
        losses : callable, optional
            ``losses(params, data) -> [size, n_users]``, with params of shape (size, d). The default
            is ``gradient.losses``, which gradients of :mod:`dpaudit.adapters` have.

        Returns
        -------
        callable
            ``score(outputs)``, which returns ``[size]`` for a pair and ``[size, n_users]`` for data
            of users. The score is larger if the user probably took part.

        Raises
        ------
        ArgumentError
            If a loss is released, if the pair consists of query values, or if neither `losses` nor
            ``gradient.losses`` is given.
        """
        self._scorable("a drop of losses")
        losses = getattr(self.gradient, "losses", None) if losses is None else losses
        if losses is None:
            raise ArgumentError(
                "losses must be given, because the gradient "
                f"{mechanism_name(self.gradient)} has no function losses"
            )
        score = LossDrop(self, _validate.function(losses=losses), *_users_and_one(whose))
        score.of(self.start[None])
        return score

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
            batches = self.sampling.batches(n_users(data), size, rng=rng)
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

    def _scorable(self, what: str) -> None:
        """Refuse a run that releases a loss, which is already a number."""
        if self.release == "loss":
            raise ArgumentError(
                f'release must be "white_box" or "last" for {what}, got "loss". A loss is already '
                "a number, and its distribution is unknown"
            )

    def _checked(self, outputs: Any) -> Floats:
        """Return outputs as an array ``[size, steps, d]`` or ``[size, d]``."""
        seen = np.asarray(outputs, dtype=float)
        steps = (self.steps,) if self.release == "white_box" else ()
        if seen.shape[1:] != (*steps, self.start.size):
            raise MechanismError(
                f"outputs scored for {self} must have shape "
                f"{('size', *steps, self.start.size)}, got {seen.shape}"
            )
        return seen

    def _path(self, outputs: Floats) -> Iterator[tuple[Floats, Floats]]:
        """For each released sum ``[size, d]``, yield the parameters ``[size, d]`` before the sum.

        If only the last iterate is released, yield the start and the sum of all steps.
        """
        if self.release == "last":
            yield self.start[None], (self.start - outputs) / self.learning_rate
            return
        params = np.tile(self.start, (len(outputs), 1))
        for step in range(self.steps):
            yield params, outputs[:, step]
            params = params - self.learning_rate * outputs[:, step]

    def _last(self, outputs: Floats) -> Floats:
        """Return the last iterates ``[size, d]``."""
        if self.release == "last":
            return outputs
        return np.asarray(self.start - self.learning_rate * outputs.sum(axis=1))

    def _in_portions(
        self, score: Callable[[Floats], Floats], outputs: Any, *datasets: Any
    ) -> Floats:
        """Score the outputs of a limited number of runs at once, because gradients are large."""
        seen = self._checked(outputs)
        items = max(max(np.size(part) for part in _parts(data)) for data in datasets)
        portion = max(_PORTION // max(items * self.start.size, 1), 1)
        parts = [score(seen[at : at + portion]) for at in range(0, max(len(seen), 1), portion)]
        return np.concatenate(parts)

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
        user = user_of(pair)
        moved = [np.zeros_like(self.start), np.zeros_like(self.start)]
        for side, (data, other) in enumerate(((pair.left, pair.right), (pair.right, pair.left))):
            if n_users(data) >= n_users(other):
                moved[side] = self.clipped(self._gradients(self.start[None], data))[0, user]
        return moved

    def _moves(self, params: Floats, data: Array, direction: Floats) -> Floats:
        """Return users' clipped gradients, projected on a direction, ``[size or 1, n]``."""
        return np.asarray(self.clipped(self._gradients(params, data)) @ direction)

    def _check_still(self, data: Array, direction: Floats, rng: np.random.Generator) -> None:
        """Refuse gradients whose components along a direction differ between iterates."""
        params, size = np.tile(self.start, (_RUNS, 1)), _RUNS
        first = self._moves(self.start[None], data, direction)
        for step, takes_part in enumerate(self.sampling.batches(n_users(data), size, rng=rng)):
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
        if size not in (1, len(params)) or (n, d) != (n_users(data), self.start.size):
            raise MechanismError(
                f"{mechanism_name(self.gradient)} must return gradients [size, n_users, d] or "
                f"[size, n_users, m, d], with size={len(params)}, n_users={n_users(data)} and "
                f"d={self.start.size}, got shape {found.shape}"
            )
        return found


def _parts(data: Any) -> list[Any]:
    """Return the arrays of a dict, or the array itself.

    Raises
    ------
    MechanismError
        If the data have no users, such as a number or an empty dict, or arrays of several lengths.
    """
    parts = list(data.values()) if isinstance(data, dict) else [data]
    lengths = {len(part) if hasattr(part, "__len__") else None for part in parts}
    if len(lengths) != 1 or None in lengths:
        raise MechanismError(
            "data must be an array [n_users, ...], or a dict of such arrays of one length, got "
            f"{_validate.describe(data)}"
        )
    return parts


def n_users(data: Any) -> int:
    """Return the number of users of an array ``[n_users, ...]``, or of a dict of such arrays."""
    return len(_parts(data)[0])


def user_of(pair: Any) -> int:
    """Return the index of the only differing user of a pair of arrays.

    Raises
    ------
    ArgumentError
        If the pair does not differ in one user, or if a column identifies its users.
    """
    users: Any = getattr(pair, "users", ())
    if len(users) != 1 or not isinstance(users[0], int | np.integer) or pair.by is not None:
        raise ArgumentError(
            f"pair must hold datasets that differ in one user, and users must be rows, got {pair!r}"
        )
    _check_rectangular(pair.left, pair.right)
    return int(users[0])


def _check_rectangular(*datasets: Any) -> None:
    """Refuse users with different numbers of items, which an array cannot hold."""
    for data in datasets:
        for part in data.values() if isinstance(data, dict) else (data,):
            try:
                is_ragged = np.asarray(part).dtype == object
            except ValueError:
                is_ragged = True
            if is_ragged:
                raise ArgumentError(
                    "the data of a score must be arrays, got users with different numbers of "
                    "items. Pad all users to one number of items, and let the loss ignore the "
                    "padding, such as labels of -100 in torch.nn.functional.cross_entropy"
                )


def _fuller(pair: Any) -> Any:
    """Return the side of a pair that has the differing user; the left side if both have it."""
    return pair.left if n_users(pair.left) >= n_users(pair.right) else pair.right


def _users_and_one(whose: Any) -> tuple[Any, bool]:
    """Return the data of the users of a score, and whether it is the one user of a pair."""
    if not (hasattr(whose, "left") and hasattr(whose, "right")):
        _check_rectangular(whose)
        n_users(whose)
        return whose, False
    user, data = user_of(whose), _fuller(whose)
    if isinstance(data, dict):
        return {name: np.asarray(values)[[user]] for name, values in data.items()}, True
    return np.asarray(data)[[user]], True


def _clip(vectors: Floats, norm: float) -> Floats:
    """Shorten vectors along the last axis, so that their length is at most `norm`."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors * (norm / np.maximum(lengths, norm)))
