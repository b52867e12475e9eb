"""PAC learning (Theorem 4) and agnostic learning (Theorem 40) under pure user-level DP."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray
from algorithms.common.selection import exponential_mechanism, exponential_pmf
from algorithms.few_examples.pairwise import (
    ErrorComparison,
    clipped_pairwise_em,
    clipped_pairwise_pmf,
    errors_of_users,
)
from algorithms.few_examples.representations import Representation


def clipped_errors(data: Any, hypotheses: IntArray, *, cap: float = 1.0) -> FloatArray:
    """Return scr_h, the number of users who have an example on which h errs.

    The source is few_examples, proof of Theorem 4 and end of Appendix D. The score is the sum of
    clip_{0, 1}(errors of a user).

    **Guarantee** One user moves each score by at most `cap`.

    **Departs** `cap` is not in the paper. If cap = m, all errors count. This case is group privacy.

    Parameters
    ----------
    data : array_like of int, [n, m, 2]
        Examples (x, y) of n users.
    hypotheses : array_like of int, [H, n_points]
        Labels 0 and 1.
    cap : float, default 1
        Positive.

    Returns
    -------
    ndarray, [H]
    """
    cap = _validate.positive("cap", cap)
    return np.asarray(np.minimum(errors_of_users(data, hypotheses), cap).sum(axis=0), dtype=float)


def pac_pmf(
    data: Any, *, representation: Representation, epsilon: float, cap: float = 1.0
) -> FloatArray:
    """Return the distribution of `pac_learner`'s output, over all hypotheses of all classes.

    The source is few_examples, proof of Theorem 4.

    **Guarantee** epsilon-user-level DP. The distribution is a mixture of exponential mechanisms
    with public weights.

    **Requires** no condition, because scores are clipped. For Theorem 4, a user must not have more
    than 1/alpha examples (see `used_examples`).

    **Departs** The class is a part of the outcome, so two outcomes may have the same hypothesis in
    different classes. In floating point, a probability below 5e-324 is 0. Such small probabilities
    can occur only for epsilon n above 1,400.

    **Symbols** P = `representation`, z = `data`.

    Parameters
    ----------
    data : array_like of int, [n, m, 2]
        Examples (x, y) of n users.
    representation : Representation
    epsilon : float
        Positive.
    cap : float, default 1
        See `clipped_errors`.

    Returns
    -------
    ndarray, [len(representation.hypotheses)]
    """

    def chosen(hypotheses: IntArray) -> FloatArray:
        scores = clipped_errors(data, hypotheses, cap=cap)
        return exponential_pmf(-scores, sensitivity=cap, epsilon=epsilon)

    return _mixed(representation, chosen)


def pac_learner(
    data: Any,
    size: int,
    *,
    representation: Representation,
    epsilon: float,
    cap: float = 1.0,
    rng: np.random.Generator,
) -> IntArray:
    """Draw a class, and choose a hypothesis of the class that only a few users contradict.

    The source is few_examples, proof of Theorem 4. The proof samples H from P, and then applies the
    exponential mechanism to `scr_h`.

    **Guarantee**, **Requires**, **Departs**, **Symbols** See `pac_pmf`. This function draws from
    the distribution that `pac_pmf` returns.

    Parameters
    ----------
    data : array_like of int, [n, m, 2]
        Examples (x, y) of n users.
    size : int
        Number of independent draws.
    representation : Representation
    epsilon : float
        Positive.
    cap : float, default 1
        See `clipped_errors`.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Indices into `representation.hypotheses`.
    """

    def choose(hypotheses: IntArray, draws: int) -> IntArray:
        scores = clipped_errors(data, hypotheses, cap=cap)
        return exponential_mechanism(-scores, draws, sensitivity=cap, epsilon=epsilon, rng=rng)

    return _from_random_class(representation, size, choose, rng=rng)


def pac_users(size: float, *, alpha: float, epsilon: float, m: int, beta: float = 0.1) -> int:
    """Return a number of users that is enough for Theorem 4, with all constants explicit.

    The source is few_examples, proof of Theorem 4 and Lemma 22. Two conditions are enough. If alpha
    n m >= 37.5 (size + ln 100), all hypotheses are within Chernoff's bounds. The exponential
    mechanism needs alpha n m >= (40 / epsilon) (size + ln(1/beta)).

    **Departs** (1) In the paper's proof, the product of the probabilities is 3/4 * 0.9 * 2/3 =
    0.45. The paper claims 2/3. With the 0.99 of Lemma 22's proof and beta = 0.1, the product is
    0.668. (2) The case of small errors needs the constant 37.5. For large errors, p_h >= (1 - 1/e)
    alpha m. The proof uses only 0.2 alpha m of this bound. So the case of large errors needs a
    constant below 37.5.

    Parameters
    ----------
    size : float
        Size of the (0.01 alpha, 1/4)-representation, at least 0. The size is ln of the number of
        hypotheses.
    alpha : float
        Accuracy, in (0, 1).
    epsilon : float
        Positive.
    m : int
        Examples of each user, at least 1. The learner receives `used_examples` of these examples.
    beta : float, default 0.1
        Probability with which the exponential mechanism fails.

    Returns
    -------
    int
    """
    size, alpha = _validate.nonnegative("size", size), _validate.probability("alpha", alpha)
    epsilon, beta = _validate.positive("epsilon", epsilon), _validate.probability("beta", beta)
    used = used_examples(m, alpha)
    needed = max(37.5 * (size + math.log(100)), 40 / epsilon * (size - math.log(beta)))
    return math.ceil(needed / (alpha * used))


def used_examples(m: int, alpha: float) -> int:
    """Return how many of a user's m examples Theorem 4 uses, which is at most floor(1/alpha).

    The source is few_examples, footnote 7. The paper says "we can simply disregard the extra
    examples". Pass ``data[:, :used_examples(m, alpha)]`` to the learner. If more examples are used,
    every hypothesis makes an error on most users.

    Parameters
    ----------
    m : int
        Examples of each user, at least 1.
    alpha : float
        Accuracy, in [1e-15, 1).
    """
    alpha = _validate.probability("alpha", alpha)
    if alpha < 1e-15:
        raise ValueError(f"alpha must be at least 1e-15, got {alpha!r}")
    return min(_validate.integer("m", m, at_least=1), math.floor(1 / alpha))


def agnostic_pmf(
    data: Any, *, representation: Representation, threshold: float, epsilon: float
) -> FloatArray:
    """Return the distribution of `agnostic_learner`'s output, over all hypotheses of all classes.

    The source is few_examples, proof of Theorem 40.

    **Guarantee** epsilon-user-level DP (Theorem 37).

    **Requires** no condition, because comparisons are clipped.

    **Departs** See `pairwise.ErrorComparison` for the sign of the comparison.

    **Symbols** P = `representation`, tau = `threshold`.

    Parameters
    ----------
    data : array_like of int, [n, m, 2]
        Examples (x, y) of n users.
    representation : Representation
    threshold : float
        Positive clipping threshold tau.
    epsilon : float
        Positive.

    Returns
    -------
    ndarray, [len(representation.hypotheses)]
    """
    return _mixed(
        representation,
        lambda hypotheses: clipped_pairwise_pmf(
            data, comparison=ErrorComparison(hypotheses), threshold=threshold, epsilon=epsilon
        ),
    )


def agnostic_learner(
    data: Any,
    size: int,
    *,
    representation: Representation,
    threshold: float,
    epsilon: float,
    rng: np.random.Generator,
) -> IntArray:
    """Learn a hypothesis that is nearly as good as the best concept.

    The source is few_examples, proof of Theorem 40. The proof samples H from P, and then runs
    ClippedPairwiseEM on H.

    **Guarantee**, **Requires**, **Departs**, **Symbols** See `agnostic_pmf`. This function draws
    from the distribution that `agnostic_pmf` returns.

    Parameters
    ----------
    data : array_like of int, [n, m, 2]
        Examples (x, y) of n users.
    size : int
        Number of independent draws.
    representation : Representation
    threshold : float
        Positive clipping threshold tau.
    epsilon : float
        Positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of int64, [size]
        Indices into `representation.hypotheses`.
    """

    def choose(hypotheses: IntArray, draws: int) -> IntArray:
        return clipped_pairwise_em(
            data, draws, comparison=ErrorComparison(hypotheses), threshold=threshold,
            epsilon=epsilon, rng=rng,
        )  # fmt: skip

    return _from_random_class(representation, size, choose, rng=rng)


def _mixed(representation: Representation, chosen: Callable[[IntArray], FloatArray]) -> FloatArray:
    weights = np.asarray(representation.probabilities)
    return np.concatenate(
        [
            weight * chosen(np.asarray(one))
            for weight, one in zip(weights, representation.classes, strict=True)
        ]
    )


def _from_random_class(
    representation: Representation,
    size: int,
    choose: Callable[[IntArray, int], IntArray],
    *,
    rng: np.random.Generator,
) -> IntArray:
    """Draw a class for each run, and call `choose` on each class that was drawn."""
    rng, size = _validate.generator(rng), _validate.draws(size)
    classes = representation.classes
    firsts = np.cumsum([0, *[len(np.asarray(one)) for one in classes]])
    drawn = rng.choice(len(classes), size=size, p=np.asarray(representation.probabilities))
    outputs = np.empty(size, dtype=np.int64)
    for place in np.unique(drawn) if size else [0]:  # without draws, arguments are still checked
        here = np.flatnonzero(drawn == place)
        outputs[here] = firsts[place] + choose(np.asarray(classes[place]), here.size)
    return outputs
