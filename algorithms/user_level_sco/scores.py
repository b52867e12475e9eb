"""Concentration scores, which measure how close a user's mean gradient is to the batch."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.common import _validate
from algorithms.common._validate import FloatArray
from algorithms.user_level_sco.domains import lengths, norm_name

# Most distances, and most coordinates of differences, that are in memory at once.
_AT_ONCE, _COORDINATES = 2**19, 2**17
# From a batch of `_LARGE` users on, distances in l-infinity are computed in tiles. A tile stays in
# the cache. Up to `_MIRRORED` users, each distance is computed only once.
_TILE, _LARGE, _MIRRORED = (32, 512), 64, 4096
_ROUNDING = 1e-9  # relative margin within which the score decides instead of a bound


def concentration_scores(
    gradients: ArrayLike, *, temperature: float, norm: str = "l2"
) -> FloatArray:
    """Return each user's score, which is the sum over the batch of exp(-temperature * distance).

    Algorithm 2 of user_level_sco v2 has kappa_i = sum_j exp(-tau norm(q_i - q_j)_2), where the sum
    includes j = i. With norm "linf", the scores are the rows of (15) in Algorithm 8.

    In one dimension, sorting reduces the cost from O(B**2) to O(B log B). The sum over larger q_j
    is exp(tau q_i) sum_j exp(-tau q_j). Such sums are accumulated in logarithms.

    **Symbols** q_i = `gradients[..., i, :]`, tau = `temperature`.

    Parameters
    ----------
    gradients : array_like, [..., B, d]
        Mean gradients of the users of one batch, finite.
    temperature : float
        Positive temperature tau.
    norm : {"l2", "linf"}
        Norm of the distances.

    Returns
    -------
    ndarray, [..., B]
        From 1 to B.
    """
    q = _validate.floats("gradients", gradients, ndims=(2, 3))
    temperature = _validate.positive("temperature", temperature)
    norm_name(norm)
    if q.shape[-1] == 1:
        return _sorted_scores(q[..., 0], temperature)
    batch = q.shape[-2]
    rows = q.reshape(-1, batch, q.shape[-1])
    scores = np.empty(rows.shape[:2])
    if norm == "linf" and batch >= _LARGE:
        for draw, some in enumerate(rows):
            scores[draw] = _linf_scores(some, temperature)
        return scores.reshape(q.shape[:-1])
    pairs = _pairs_at_once(q.shape[-1])
    block, part = max(1, pairs // batch**2), max(1, pairs // batch)
    for first in range(0, len(rows), block):
        some = rows[first : first + block]
        for user in range(0, batch, part):
            scores[first : first + block, user : user + part] = _kernel(
                some[:, user : user + part, None], some[:, None], temperature, norm
            )
    return scores.reshape(q.shape[:-1])


def sampled_scores(
    gradients: ArrayLike,
    *,
    temperature: float,
    samples: int,
    norm: str = "l2",
    rng: np.random.Generator,
) -> FloatArray:
    """Return unbiased estimates of the scores, each from `samples` users of the batch.

    Footnote 3 of user_level_sco v2 mentions "standard subsampling tricks", but omits the tricks.
    These tricks reduce the cost of a step from O(m B**2) to O(m B). This function splits the batch
    into `samples` strata of B / samples users each. Every user draws one user of each stratum,
    independently, and counts this user B / samples times.

    **Guarantee** One user enters another user's score with probability samples / B. If one user
    enters another user's score, this score moves by at most B / samples instead of 1. Amplification
    by subsampling applies to a decision whose Laplace noise has scale b. So this decision is log(1
    + p (exp(1 / (p b)) - 1))-DP for p = samples / B. With exact scores, the decision is (1 / b)-DP.
    The two parameters agree to first order if p b is not small.

    If the iterate moves, the estimated scores together move by no more than the exact scores move.
    By Hoeffding's inequality, an estimate is more than t above the exact score with probability at
    most exp(-2 samples t**2 / B**2). The same bound holds for an estimate that is more than t below
    the exact score. A filter must add this t to its margin (`accounts.sampling_margin`).

    Parameters
    ----------
    gradients : array_like, [..., B, d]
        Mean gradients of the users of one batch, finite.
    temperature : float
        Positive temperature tau.
    samples : int
        A divisor of B.
    norm : {"l2", "linf"}
        Norm of the distances.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [..., B]
        From 0 to B.
    """
    rng = _validate.generator(rng)
    q = _validate.floats("gradients", gradients, ndims=(2, 3))
    temperature = _validate.positive("temperature", temperature)
    norm_name(norm)
    batch = q.shape[-2]
    samples = _validate.integer("samples", samples, at_least=1)
    if batch % samples:
        raise ValueError(
            f"samples must divide {batch}, the number of users in the batch, got {samples}"
        )
    rows = q.reshape(-1, batch, q.shape[-1])
    draws, users = np.indices(rows.shape[:2]).reshape(2, -1)
    scores = _drawn_scores(rows, draws, users, temperature, norm, samples, rng)
    return scores.reshape(q.shape[:-1])


def _drawn_scores(
    rows: FloatArray,
    draws: NDArray[np.intp],
    users: NDArray[np.intp],
    temperature: float,
    norm: str,
    samples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return one estimated score for each pair of a draw and a user, shape [pairs]."""
    stratum = rows.shape[1] // samples
    scores = np.empty(len(users))
    block = max(1, _AT_ONCE // samples)
    for first in range(0, len(users), block):
        row, user = draws[first : first + block, None], users[first : first + block, None]
        drawn = rng.integers(stratum, size=(len(user), samples)) + stratum * np.arange(samples)
        scores[first : first + block] = stratum * _kernel(
            rows[row, user], rows[row, drawn], temperature, norm
        )
    return scores


def pass_filter(
    gradients: FloatArray, noise: FloatArray, *, temperature: float, threshold: float
) -> NDArray[np.bool_]:
    """Return whether score + noise exceeds the threshold, for every user of every draw.

    The decisions are those of `concentration_scores`, but most decisions are made without computing
    the score. A score is between 1 and B. By convexity, a score is at least B exp(-tau r) for r =
    sqrt(mean_j norm(q_i - q_j)**2). Computing this bound for all users takes O(B d). If users
    agree, almost no pairs of gradients have to be compared. (If the difference between a bound and
    the threshold is within rounding, the score decides.)

    Parameters
    ----------
    gradients : ndarray, [S, B, d] or [1, B, d]
    noise : ndarray, [S, B]
    temperature : float
        Positive temperature tau.
    threshold : float
        F.

    Returns
    -------
    ndarray of bool, [S, B]
    """
    batch = gradients.shape[1]
    if gradients.shape[2] == 1:
        scores = concentration_scores(gradients, temperature=temperature)
        return np.asarray(scores + noise > threshold)
    apart = gradients - gradients.mean(axis=1, keepdims=True)
    squares = np.einsum("sbd,sbd->sb", apart, apart)
    mean_squares = squares.mean(axis=1, keepdims=True)
    least = np.exp(-temperature * np.sqrt(squares + mean_squares))
    passed, undecided = _decided(np.maximum(least, 1 / batch), batch, noise, threshold)
    pairs = _pairs_at_once(gradients.shape[2])
    if len(gradients) == 1:  # all draws share the scores, so compute only the needed scores
        users = np.flatnonzero(undecided.any(axis=0))
        for own in np.array_split(users, 1 + users.size * batch // pairs):
            scores = _kernel(gradients[0, own][:, None], gradients, temperature, "l2")
            passed[:, own] |= undecided[:, own] & (scores + noise[:, own] > threshold)
        return passed
    draws, users = np.nonzero(undecided)
    block = max(1, pairs // batch)
    for first in range(0, len(draws), block):
        row, user = draws[first : first + block], users[first : first + block]
        scores = _kernel(gradients[row, user][:, None], gradients[row], temperature, "l2")
        passed[row, user] = scores + noise[row, user] > threshold
    return passed


def pass_sampled_filter(
    gradients: FloatArray,
    noise: FloatArray,
    *,
    temperature: float,
    threshold: float,
    samples: int,
    rng: np.random.Generator,
) -> NDArray[np.bool_]:
    """Return whether estimated score + noise exceeds the threshold, for every user of every draw.

    The decisions have the distribution of decisions by `sampled_scores`, but most decisions are
    made without drawing a sample. Let c be the mean of the batch, and let r = norm(q_i - c) +
    max_j norm(q_j - c). For every sample, the estimate is between B exp(-tau r) and B. Computing
    this bound for all users takes O(B d).

    Parameters
    ----------
    gradients : ndarray, [S, B, d] or [1, B, d]
    noise : ndarray, [S, B]
    temperature : float
        Positive temperature tau.
    threshold : float
        F.
    samples : int
        A divisor of B.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of bool, [S, B]
    """
    batch = gradients.shape[1]
    apart = lengths(gradients - gradients.mean(axis=1, keepdims=True), "l2")
    farthest = apart + apart.max(axis=1, keepdims=True)
    passed, undecided = _decided(np.exp(-temperature * farthest), batch, noise, threshold)
    draws, users = np.nonzero(undecided)
    rows = draws if len(gradients) > 1 else np.zeros_like(draws)
    scores = _drawn_scores(gradients, rows, users, temperature, "l2", samples, rng)
    passed[draws, users] = scores + noise[draws, users] > threshold
    return passed


def _decided(
    least: FloatArray, batch: int, noise: FloatArray, threshold: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return who passes by a lower bound on score / B, and who may pass but is undecided."""
    passed: NDArray[np.bool_] = batch * (1 - _ROUNDING) * least + noise > threshold
    undecided: NDArray[np.bool_] = ~passed & (batch * (1 + _ROUNDING) + noise > threshold)
    return passed, undecided


def _kernel(here: FloatArray, there: FloatArray, temperature: float, norm: str) -> FloatArray:
    return np.asarray(np.exp(-temperature * lengths(here - there, norm)).sum(axis=-1))


def _pairs_at_once(dimension: int) -> int:
    """Return how many pairs of gradients are compared at once."""
    return min(_AT_ONCE, max(1, _COORDINATES // dimension))


def _linf_scores(q: FloatArray, temperature: float) -> FloatArray:
    """Return sum_j exp(-temperature norm(q_i - q_j)_inf) for gradients ``[B, d]``.

    The result is that of `_kernel`. A maximum over coordinates does not depend on their order, and
    the distances are symmetric.
    """
    batch = len(q)
    columns = np.ascontiguousarray(q.T)
    mirrored = batch <= _MIRRORED
    stripe = batch if mirrored else max(1, _AT_ONCE // batch)
    height, width = _TILE
    scores = np.empty(batch)
    for first in range(0, batch, stripe):
        last = min(first + stripe, batch)
        distances = np.empty((last - first, batch))
        for i in range(first, last, height):
            here = slice(i, min(i + height, last))
            for j in range(i if mirrored else 0, batch, width):
                there = slice(j, min(j + width, batch))
                tile = _linf_distances(columns[:, here], columns[:, there])
                distances[i - first : here.stop - first, there] = tile
                if mirrored:
                    distances[there, here] = tile.T
        scores[first:last] = np.exp(-temperature * distances).sum(axis=-1)
    return scores


def _linf_distances(here: FloatArray, there: FloatArray) -> FloatArray:
    """Return l-infinity distances ``[a, b]`` between points ``[d, a]`` and ``[d, b]``."""
    distances: FloatArray = np.abs(here[0, :, None] - there[0])
    apart = np.empty_like(distances)
    for one, other in zip(here[1:], there[1:], strict=True):
        np.subtract(one[:, None], other, out=apart)
        np.abs(apart, out=apart)
        np.maximum(distances, apart, out=distances)
    return distances


def _sorted_scores(places: FloatArray, temperature: float) -> FloatArray:
    """Return sum_j exp(-temperature abs(p_i - p_j)) for positions ``[..., B]``."""
    order = np.argsort(places, axis=-1)
    with np.errstate(over="ignore"):  # an infinite gap is treated as a large gap
        gaps = temperature * np.diff(np.take_along_axis(places, order, axis=-1), axis=-1)
    # exp(-800) is 0. Larger gaps change nothing, but they would make the smaller gaps less
    # precise.
    p = np.zeros_like(places)
    np.cumsum(np.minimum(gaps, 800.0), axis=-1, out=p[..., 1:])
    # log sum_{j <= i} exp(p_j) - p_i, and the same sum from the other end. Logarithms do not
    # overflow.
    left = np.logaddexp.accumulate(p, axis=-1) - p
    right = np.logaddexp.accumulate(-p[..., ::-1], axis=-1)[..., ::-1] + p
    found = np.exp(left) + np.exp(right) - 1.0
    scores = np.empty_like(found)
    np.put_along_axis(scores, order, found, axis=-1)
    return scores


def disagreement_bound(batch_size: int, least_total: float) -> float:
    """Return the largest tau norm(q_i - q_j) that is possible for two scores with a given sum.

    If kappa_i + kappa_j > s, then norm(q_i - q_j) < r / tau with exp(-r) = s / B - 1. For each user
    k, let `a` and `b` be the distances of k to i and j, in units of 1 / tau. The triangle
    inequality gives a + b >= r. By convexity, exp(-a) + exp(-b) is at most 1 + exp(-r). So s < B (1
    + exp(-r)). Two clusters at distance r / tau attain the bound. (In the proof of Lemma 10,
    user_level_sco v2 has 100 / tau instead of about 1 / tau.)

    Returns
    -------
    float
        The result is inf if such scores give no bound.
    """
    excess = least_total / batch_size - 1.0
    if excess >= 1.0:
        return 0.0
    return -math.log(excess) if excess > 0 else math.inf
