"""The six sparse vector algorithms that Figure 1 of Lyu, Su & Li (VLDB 2017) compares.

All six algorithms were published as epsilon-DP. Only `svt1` and `svt2` are epsilon-DP. The
algorithms `svt3` to `svt6` are not epsilon-DP. The algorithms are implemented as their authors
wrote them. The violations are kept, because an auditor should detect the violations. The algorithms
differ in five choices. Each function below is a row of this table, where D = sensitivity and c =
cutoff:

====== ========= ========================= ====================== ============== ======= =========
name   epsilon1  threshold noise rho       query noise nu         output at yes  cutoff  epsilon-DP
====== ========= ========================= ====================== ============== ======= =========
svt1   e/2       Lap(D/e1)                 Lap(2cD/e2)            yes            c       yes
svt2   e/2       Lap(cD/e1), new each yes  Lap(2cD/e1)            yes            c       yes
svt3   e/2       Lap(D/e1)                 Lap(cD/e2)             q + nu         c       no
svt4   e/4       Lap(D/e1)                 Lap(D/e2)              yes            c       no
svt5   e/2       Lap(D/e1)                 none                   yes            none    no
svt6   e/2       Lap(D/e1)                 Lap(D/e2)              yes            none    no
====== ========= ========================= ====================== ============== ======= =========

In every row, e2 = e - e1. All functions have the parameters of `svt1`, except that `svt5` and
`svt6` have no cutoff. All query values are given at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.common import _validate
from algorithms.common._streams import halted_after
from algorithms.common._validate import FloatArray


def svt1(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer with Lyu, Su & Li's own sparse vector.

    The source is Lyu, Su & Li (2017), Algorithm 1.

    **Guarantee** epsilon-DP (their Theorem 2).

    **Requires** that every query moves by at most `sensitivity` between neighbours, and that the
    thresholds do not depend on the data.

    **Departs** All queries are given at once.

    **Symbols** D = `sensitivity`, c = `cutoff`, T_i = `thresholds[i]`, q_i(D) = `queries[i]`.

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
        Total privacy parameter, positive.
    sensitivity : float
        Largest change of one query, positive.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray, [size, T]
        1.0 = yes, 0.0 = no, NaN = not asked.
    """
    epsilon, sensitivity = _scales(epsilon, sensitivity)
    cutoff = _validate.integer("cutoff", cutoff, at_least=1)
    epsilon1 = epsilon / 2
    epsilon2 = epsilon - epsilon1
    answers, _ = _compare(
        queries,
        thresholds,
        size,
        threshold_scale=sensitivity / epsilon1,
        query_scale=2 * cutoff * sensitivity / epsilon2,
        cutoff=cutoff,
        rng=rng,
    )
    return answers


def svt2(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer with Dwork & Roth's sparse vector, which draws new threshold noise after each yes.

    The sources are Lyu, Su & Li (2017), Algorithm 2, and Dwork & Roth (2014), Algorithm 2.

    **Guarantee** epsilon-DP.

    **Requires** as `svt1`.

    **Departs** All queries are given at once. In the figure, the new threshold noise is Lap(c D /
    epsilon2), where epsilon2 = epsilon1.

    **Symbols** as `svt1`.

    Parameters
    ----------
    queries, size, thresholds, cutoff, epsilon, sensitivity, rng
        As for `svt1`.

    Returns
    -------
    ndarray, [size, T]
        1.0 = yes, 0.0 = no, NaN = not asked.
    """
    epsilon, sensitivity = _scales(epsilon, sensitivity)
    cutoff = _validate.integer("cutoff", cutoff, at_least=1)
    epsilon1 = epsilon / 2
    answers, _ = _compare(
        queries,
        thresholds,
        size,
        threshold_scale=cutoff * sensitivity / epsilon1,
        query_scale=2 * cutoff * sensitivity / epsilon1,
        cutoff=cutoff,
        redraw=True,
        rng=rng,
    )
    return answers


def svt3(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer with the sparse vector of Roth's 2011 lecture notes, which releases the noisy value.

    The source is Lyu, Su & Li (2017), Algorithm 3. **Broken.**

    **Guarantee** The claim is epsilon-DP. In truth, the algorithm is not epsilon-DP for any
    epsilon. A released value q + nu bounds the noisy threshold from above. Given this bound, every
    earlier no is a comparison without threshold noise.

    **Requires** as `svt1`.

    **Departs** All queries are given at once. The figure outputs either bottom or a number. In this
    function, an answer has two channels. A single channel would need infinity or a marker for
    bottom, and these are not allowed among numbers.

    **Symbols** as `svt1`.

    Parameters
    ----------
    queries, size, thresholds, cutoff, epsilon, sensitivity, rng
        As for `svt1`.

    Returns
    -------
    ndarray, [size, T, 2]
        ``[..., 0]``: 1.0 = a value is released, 0.0 = no, NaN = not asked. ``[..., 1]``: the
        released value, or NaN if no value is released.
    """
    epsilon, sensitivity = _scales(epsilon, sensitivity)
    cutoff = _validate.integer("cutoff", cutoff, at_least=1)
    epsilon1 = epsilon / 2
    epsilon2 = epsilon - epsilon1
    answers, noisy_queries = _compare(
        queries,
        thresholds,
        size,
        threshold_scale=sensitivity / epsilon1,
        query_scale=cutoff * sensitivity / epsilon2,
        cutoff=cutoff,
        rng=rng,
    )
    released = np.where(answers == 1.0, noisy_queries, np.nan)
    return np.stack([answers, released], axis=-1)


def svt4(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    cutoff: int,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer with Lee & Clifton's (KDD 2014) sparse vector, whose query noise ignores the cutoff.

    The source is Lyu, Su & Li (2017), Algorithm 4. **Broken.**

    **Guarantee** The claim is epsilon-DP. In truth, the algorithm is ((1 + 6 c) / 4) epsilon-DP.

    **Requires** as `svt1`.

    **Departs** All queries are given at once.

    **Symbols** as `svt1`.

    Parameters
    ----------
    queries, size, thresholds, cutoff, epsilon, sensitivity, rng
        As for `svt1`.

    Returns
    -------
    ndarray, [size, T]
        1.0 = yes, 0.0 = no, NaN = not asked.
    """
    epsilon, sensitivity = _scales(epsilon, sensitivity)
    cutoff = _validate.integer("cutoff", cutoff, at_least=1)
    epsilon1 = epsilon / 4
    epsilon2 = epsilon - epsilon1
    answers, _ = _compare(
        queries,
        thresholds,
        size,
        threshold_scale=sensitivity / epsilon1,
        query_scale=sensitivity / epsilon2,
        cutoff=cutoff,
        rng=rng,
    )
    return answers


def svt5(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer with the sparse vector of Stoddard, Chen & Machanavajjhala (2014).

    This sparse vector has no query noise. The source is Lyu, Su & Li (2017), Algorithm 5.
    **Broken.**

    **Guarantee** The claim is epsilon-DP. In truth, the algorithm is not epsilon-DP for any
    epsilon. If two queries swap their values, some answer is possible on one neighbour but
    impossible on the other neighbour.

    **Requires** as `svt1`.

    **Departs** All queries are given at once.

    **Symbols** As for `svt1`, but there is no cutoff.

    Parameters
    ----------
    queries, size, thresholds, epsilon, sensitivity, rng
        As for `svt1`.

    Returns
    -------
    ndarray, [size, T]
        1.0 = yes, 0.0 = no. The value is never NaN.
    """
    epsilon, sensitivity = _scales(epsilon, sensitivity)
    epsilon1 = epsilon / 2
    answers, _ = _compare(
        queries,
        thresholds,
        size,
        threshold_scale=sensitivity / epsilon1,
        query_scale=None,
        cutoff=None,
        rng=rng,
    )
    return answers


def svt6(
    queries: ArrayLike,
    size: int,
    *,
    thresholds: ArrayLike,
    epsilon: float,
    sensitivity: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Answer with Chen, Xiao, Zhang & Xu's (2015) sparse vector, which has no cutoff.

    The source is Lyu, Su & Li (2017), Algorithm 6. **Broken.**

    **Guarantee** The claim is epsilon-DP. In truth, as T grows, the algorithm is not epsilon-DP for
    any fixed epsilon.

    **Requires** as `svt1`.

    **Departs** All queries are given at once.

    **Symbols** As for `svt1`, but there is no cutoff.

    Parameters
    ----------
    queries, size, thresholds, epsilon, sensitivity, rng
        As for `svt1`.

    Returns
    -------
    ndarray, [size, T]
        1.0 = yes, 0.0 = no. The value is never NaN.
    """
    epsilon, sensitivity = _scales(epsilon, sensitivity)
    epsilon1 = epsilon / 2
    epsilon2 = epsilon - epsilon1
    answers, _ = _compare(
        queries,
        thresholds,
        size,
        threshold_scale=sensitivity / epsilon1,
        query_scale=sensitivity / epsilon2,
        cutoff=None,
        rng=rng,
    )
    return answers


def _scales(epsilon: float, sensitivity: float) -> tuple[float, float]:
    epsilon = _validate.positive("epsilon", epsilon)
    sensitivity = _validate.positive("sensitivity", sensitivity)
    _validate.scale(sensitivity, epsilon)
    return epsilon, sensitivity


def _compare(
    queries: ArrayLike,
    thresholds: ArrayLike,
    size: int,
    *,
    threshold_scale: float,
    query_scale: float | None,
    cutoff: int | None,
    redraw: bool = False,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Return the answers ``q_i + nu_i >= T_i + rho`` and the noisy queries, both [size, T]."""
    rng = _validate.generator(rng)
    size = _validate.draws(size)
    values = _validate.floats("queries", queries, ndims=(1,))
    levels = _validate.per_query("thresholds", thresholds, values.size)
    n_epochs = min(cutoff, values.size) if redraw and cutoff is not None else 1
    rho = rng.laplace(scale=threshold_scale, size=(size, n_epochs))
    noisy_queries = np.broadcast_to(values, (size, values.size))
    if query_scale is not None:
        noisy_queries = noisy_queries + rng.laplace(scale=query_scale, size=noisy_queries.shape)
    if not redraw:
        above = noisy_queries >= levels + rho
        return halted_after(above, cutoff), noisy_queries
    above = np.empty(noisy_queries.shape, dtype=np.bool_)
    rows = np.arange(size)
    epoch = np.zeros(size, dtype=np.int64)  # number of yes answers so far; unused past the cutoff
    for step in range(values.size):
        above[:, step] = noisy_queries[:, step] >= levels[step] + rho[rows, epoch]
        epoch = np.minimum(epoch + above[:, step], n_epochs - 1)
    return halted_after(above, cutoff), noisy_queries
