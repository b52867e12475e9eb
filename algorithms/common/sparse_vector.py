"""AboveThreshold in both directions, and the sparse vector with fixed thresholds.

`above_threshold` and `fixed_threshold_sparse_vector` are the algorithms of user_level_sco v2.
`first_above_threshold` is the algorithm of geometric_median and of Dwork & Roth.

A dataset affects an algorithm only through the values of the queries on the dataset. So `queries`
is the vector ``[T]`` of these values. Neighbours are vectors that differ by at most the sensitivity
in every coordinate. This signature cannot express an adaptive choice of queries. The guarantees
hold for adaptive queries too.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._streams import halted_after
from algorithms.common._validate import FloatArray


def above_threshold(
    queries: ArrayLike,
    size: int,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer yes while the noisy query is at or above the noisy threshold, and halt after one no.

    The source is user_level_sco v2, Algorithm 3 (AboveThreshold), after Dwork & Roth (2014),
    Algorithm 1.

    **Guarantee** epsilon-DP (Lemma 17). The paper attributes this guarantee to Dwork & Roth,
    Theorem 3.24. In the book of Dwork & Roth, Theorem 3.23 is about privacy, and Theorem 3.24 is
    about accuracy.

    **Requires** that every query moves by at most `sensitivity` between neighbours, in either
    direction.

    **Departs** (1) The paper's test contains q_t, but the loop variable is i, so q_i must be
    intended. (2) The pseudocode does not mention sensitivity. The scales 2/epsilon and 4/epsilon
    are for sensitivity 1. Lemma 17 states this sensitivity only for the accuracy. In this function,
    the two scales are multiplied by `sensitivity`. (3) Dwork & Roth answer no until the first query
    above the threshold and halt there. The paper's algorithm is the mirror image, because it halts
    at the first query *below* the threshold. So the name of the paper's algorithm and the text
    above the algorithm describe the opposite behaviour. The two algorithms are equal after the
    queries and the threshold are negated, so the guarantee carries over. (4) All queries are given
    at once.

    **Symbols** Delta = `threshold`, q_i(D) = `queries[i]`, top = 1.0, bottom = 0.0.

    Parameters
    ----------
    queries : array_like, [T]
        Finite values of the queries on the data.
    size : int
        Number of independent draws.
    threshold : float
        Finite.
    epsilon : float
        Total privacy parameter, positive.
    sensitivity : float, default 1
        Largest change of one query, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, T]
        The value 1.0 means yes (top), and 0.0 means no (bottom). After a no, the algorithm halts.
        NaN means not asked.
    """
    rng = _validate.generator(rng)
    values = _validate.floats("queries", queries, ndims=(1,))
    threshold = _validate.real("threshold", threshold)
    scale = _validate.scale(
        _validate.positive("sensitivity", sensitivity), _validate.positive("epsilon", epsilon)
    )
    size = _validate.draws(size)
    # line 1: Delta-hat := Delta - Lap(2 / epsilon)
    noisy_threshold = threshold - rng.laplace(scale=2 * scale, size=(size, 1))
    # lines 2-4: for i = 1 to T, receive q_i and sample nu_i ~ Lap(4 / epsilon)
    nu = rng.laplace(scale=4 * scale, size=(size, values.size))
    # line 5: if q_i(D) + nu_i < Delta-hat
    below = values + nu < noisy_threshold
    # lines 6-7: output bottom and halt; lines 9-10: else output top
    return 1.0 - halted_after(below, cutoff=1)


def first_above_threshold(
    queries: ArrayLike,
    size: int,
    *,
    threshold: float,
    epsilon: float,
    sensitivity: float = 1.0,
    noise_multiplier: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer no until a noisy query is at or above the noisy threshold, then answer yes and halt.

    The source is geometric_median, Algorithm 1 (AboveThreshold), after Dwork & Roth (2014),
    Algorithm 1.

    **Guarantee** epsilon-DP (Lemma 2; Dwork & Roth, Theorem 3.23) if `noise_multiplier` is at least
    1.

    Let alpha = 8 Delta log(2T / gamma) / epsilon. With probability 1 - gamma, all queries before
    the first yes are at most `threshold` + alpha. On the same event, a query that is answered yes
    is at least `threshold` - alpha (Lemma 2; Theorem 3.24).

    **Requires** that every query moves by at most `sensitivity` between neighbours, in either
    direction.

    **Departs** (1) All queries are given at once. Noise is also drawn for queries that are never
    asked. This noise is discarded, so this noise does not affect any output. (2) `noise_multiplier`
    is not in the paper. `noise_multiplier` multiplies all noise scales. If `noise_multiplier` is
    below 1, no privacy is guaranteed.

    **Symbols** Delta = `sensitivity`, tau = `threshold`, q_t(D) = `queries[t - 1]`, top = 1.0,
    bottom = 0.0.

    Parameters
    ----------
    queries : array_like, [T]
        Finite values of the queries on the data.
    size : int
        Number of independent draws.
    threshold : float
        Finite.
    epsilon : float
        Total privacy parameter, positive.
    sensitivity : float, default 1
        Largest change of one query, positive.
    noise_multiplier : float, default 1
        Factor on all noise scales, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, T]
        The value 0.0 means no (bottom), and 1.0 means yes (top). After a yes, the algorithm halts.
        NaN means not asked.
    """
    rng = _validate.generator(rng)
    values = _validate.floats("queries", queries, ndims=(1,))
    threshold = _validate.real("threshold", threshold)
    sensitivity = _validate.positive("sensitivity", sensitivity)
    multiplier = _validate.positive("noise_multiplier", noise_multiplier)
    scale = _validate.scale(sensitivity * multiplier, _validate.positive("epsilon", epsilon))
    size = _validate.draws(size)
    # line 1: tau-hat = tau + Lap(2 Delta / epsilon)
    noisy_threshold = threshold + rng.laplace(scale=2 * scale, size=(size, 1))
    # lines 2-3: for t in [T], nu_t ~ Lap(4 Delta / epsilon)
    nu = rng.laplace(scale=4 * scale, size=(size, values.size))
    # lines 4-6: if q_t(D) + nu_t >= tau-hat output top and halt; line 8: else output bottom
    return halted_after(values + nu >= noisy_threshold, cutoff=1)


def fixed_threshold_sparse_vector(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float = 1.0,
    rng: np.random.Generator,
) -> FloatArray:
    """Compare every noisy query with its exact threshold, and stop after `cutoff` answers of yes.

    The source is user_level_sco v2, Algorithm 4 (SVT with Target Privacy Charging), after Cohen &
    Lyu (2023).

    **Guarantee** For epsilon <= 1, the algorithm is (O(sqrt(c log(1/delta)) epsilon), 2**-Omega(c)
    + delta)-DP for every delta in (0, 1) (Lemma 18). The two constants are hidden. For every choice
    of delta, the whole delta of the guarantee is at least 2**-Omega(c). So the lemma gives no
    guarantee at c = 1.

    The printed lemma is false for all constants. At fixed epsilon and delta, the true epsilon grows
    like c epsilon**2. So the lemma needs a log(1/delta) of at least about c epsilon**2. A test
    confirms this condition.

    **Requires** that every query moves by at most `sensitivity` between neighbours, and that the
    thresholds do not depend on the data.

    **Departs** (1) The paper's test contains q_t, but the loop variable is i, so q_i must be
    intended. (2) `epsilon` is the parameter of the noise Lap(1/epsilon), so every single answer is
    epsilon-DP. The whole stream is *not* `epsilon`-DP, although the paper's input line calls
    `epsilon` the privacy parameter. (3) Sensitivity 1 is implicit in the paper. The scale is
    multiplied by `sensitivity`. (4) The paper's stream is infinite. In this function, the stream
    consists of the T given values. If fewer than `cutoff` answers are yes, all T queries are
    answered. The distributions of the answers up to T do not depend on T. So the truncation is
    post-processing.
    (5) The paper's count c_b of the yes answers so far is a cumulative sum. (6) The lemma assumes
    epsilon <= 1. Larger values are accepted, but no privacy is guaranteed for these values.

    **Symbols** c = `cutoff`, Delta_i = `thresholds[i]`, q_i(D) = `queries[i]`, top = 1.0,
    bottom = 0.0.

    Parameters
    ----------
    queries : array_like, [T]
        Finite values of the queries on the data.
    size : int
        Number of independent draws.
    thresholds : array_like, scalar or [T]
        Finite, public.
    cutoff : int
        Number of yes answers after which the algorithm halts, at least 1.
    epsilon : float
        Privacy parameter of the noise of one answer, positive.
    sensitivity : float, default 1
        Largest change of one query, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, T]
        1.0 = yes (top), 0.0 = no (bottom), NaN = not asked.
    """
    rng = _validate.generator(rng)
    values = _validate.floats("queries", queries, ndims=(1,))
    levels = _validate.per_query("thresholds", thresholds, values.size)
    cutoff = _validate.integer("cutoff", cutoff, at_least=1)
    scale = _validate.scale(
        _validate.positive("sensitivity", sensitivity), _validate.positive("epsilon", epsilon)
    )
    # lines 1-3: c_b = 0; for i = 1, 2, ..., receive q_i and Delta_i, sample nu_i ~ Lap(1 / epsilon)
    nu = rng.laplace(scale=scale, size=(_validate.draws(size), values.size))
    # line 4: if q_i(D) + nu_i >= Delta_i
    above = values + nu >= levels
    # lines 5-8: output top, c_b = c_b + 1, break once c_b >= c; lines 11-12: else output bottom
    return halted_after(above, cutoff=cutoff)
