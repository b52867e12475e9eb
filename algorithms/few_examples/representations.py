"""Concept classes over a finite domain, and the random classes that represent them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, LinearConstraint, milp

from algorithms.common import _validate
from algorithms.common._validate import FloatArray, IntArray

_ABOVE = 1e-5
"""Tolerance of "more than alpha", because solvers of integer programs are not more exact."""


@dataclass(frozen=True, eq=False)
class Representation:
    """A distribution on classes of hypotheses over the points 0, ..., n_points - 1.

    The source is few_examples, Definition 20 (Beimel, Nissim & Stemmer).

    **Departs** Definition 20 speaks of a distribution on concept classes. In this class, the
    distribution has finite support. Logarithms are natural, because the proof of Lemma 22 needs
    exp(size) >= abs(H).

    Attributes
    ----------
    classes : tuple of ndarray of int, [H_i, n_points]
        Hypotheses as rows of labels 0 and 1. No class is empty.
    probabilities : ndarray, [classes]
        Probability of each class. The probabilities sum to one.
    """

    classes: tuple[ArrayLike, ...]
    probabilities: ArrayLike = field(default=())

    def __post_init__(self) -> None:
        if not self.classes:
            raise ValueError("classes must hold at least one class, got none")
        classes = tuple(hypotheses_of("classes", one) for one in self.classes)
        widths = {one.shape[1] for one in classes}
        if len(widths) > 1:
            raise ValueError(
                f"classes must all have the same number of points, got the numbers {sorted(widths)}"
            )
        given = np.asarray(self.probabilities, dtype=np.float64)
        if given.size == 0:
            given = np.full(len(classes), 1 / len(classes))
        if given.shape != (len(classes),) or not (given >= 0).all() or abs(given.sum() - 1) > 1e-9:
            raise ValueError(
                f"probabilities must be {len(classes)} numbers that are at least 0 and sum to one, "
                f"got {given}"
            )
        _validate.keep(self, classes=classes, probabilities=given / given.sum())

    @property
    def n_points(self) -> int:
        """Number of points of the domain."""
        return int(np.shape(self.classes[0])[1])

    @property
    def hypotheses(self) -> IntArray:
        """All hypotheses of all classes, [sum of H_i, n_points], in the order of the outcomes."""
        return np.concatenate([np.asarray(one) for one in self.classes])

    @property
    def size(self) -> float:
        """Natural logarithm of the largest number of hypotheses in a class."""
        return math.log(max(len(np.asarray(one)) for one in self.classes))

    def failure(self, concept: ArrayLike, alpha: float) -> tuple[float, FloatArray]:
        """Return the probability that no hypothesis is good, and the worst distribution of points.

        The source is few_examples, Definition 20. The returned probability is the largest
        probability of bad classes, over all distributions of points. In a bad class, all hypotheses
        err on `concept` with probability above `alpha` by at least 1e-5. A mixed-integer program
        computes this probability.

        Parameters
        ----------
        concept : array_like of int, [n_points]
            Labels 0 and 1.
        alpha : float
            At least 0, below 1.

        Returns
        -------
        float
            The value of beta for which this concept has an (alpha, beta)-probabilistic
            representation.
        ndarray, [n_points]
            A distribution of points that attains the largest probability of bad classes.
        """
        labels = hypotheses_of("concept", [concept])[0]
        if labels.size != self.n_points:
            raise ValueError(
                f"concept must have one label for each of the {self.n_points} points, got "
                f"{labels.size} labels"
            )
        alpha = _validate.nonnegative("alpha", alpha)
        if alpha >= 1:
            raise ValueError(f"alpha must be below 1, got {alpha!r}")
        return _worst([np.asarray(c) != labels for c in self.classes], self._weights, alpha)

    @property
    def _weights(self) -> FloatArray:
        return np.asarray(self.probabilities, dtype=np.float64)


def is_representation(
    representation: Representation, concepts: ArrayLike, alpha: float, beta: float
) -> bool:
    """Return whether `self` is an (alpha, beta)-probabilistic representation of a concept class.

    The source is few_examples, Definition 20. In this function, "above alpha" requires an excess of
    at least 1e-5. The same excess is required for beta.

    Parameters
    ----------
    representation : Representation
    concepts : array_like of int, [C, n_points]
        Class that is represented.
    alpha, beta : float
        Error of the best hypothesis, and probability of a class without a good hypothesis.

    Returns
    -------
    bool
    """
    rows = hypotheses_of("concepts", concepts)
    beta = _validate.nonnegative("beta", beta)
    return all(representation.failure(c, alpha)[0] <= beta + _ABOVE for c in rows)


def boosting_rounds(alpha: float) -> int:
    """Return the number of rounds after which `boost` errs on a share of at most `alpha`.

    The source is few_examples, Lemma 21: T = ceil(7 ln(1/alpha)), because each round multiplies a
    bound on the share by sqrt(3)/2.
    """
    return math.ceil(7 * math.log(1 / _validate.probability("alpha", alpha)))


def boost(classes: Sequence[ArrayLike], concept: ArrayLike, distribution: ArrayLike) -> IntArray:
    """Choose one hypothesis of each class, whose majority is close to a concept.

    The source is few_examples, Lemma 21 (Beimel et al., 2019), which cites boosting. The majorities
    of one hypothesis of each class represent the concepts with error alpha.

    **Guarantee** If each chosen hypothesis has a weighted error of at most 1/4, then the majority
    errs with probability at most (sqrt(3)/2)^T on the distribution. A tie counts as an error.

    **Departs** The paper gives no algorithm. In this function, round t takes the hypothesis of
    class t with the least weighted error, and multiplies the weights of its errors by 3.

    Parameters
    ----------
    classes : sequence of array_like of int, [H_t, n_points]
        The class of each round, at least one. Its hypotheses are rows of labels 0 and 1.
    concept : array_like of int, [n_points]
        Labels that the majority should have.
    distribution : array_like, [n_points]
        Weights of the points, not all 0.

    Returns
    -------
    ndarray of int, [T, n_points]
        The chosen hypotheses.
    """
    labels = hypotheses_of("concept", [concept])[0]
    weights = _validate.floats("distribution", distribution, ndims=(1,))
    if weights.shape != labels.shape or (weights < 0).any() or weights.sum() <= 0:
        raise ValueError(
            f"distribution must be {labels.size} weights that are at least 0 and not all 0, got "
            f"{weights}"
        )
    rounds = [hypotheses_of("classes", one) for one in classes]
    if not rounds or {rows.shape[1] for rows in rounds} != {labels.size}:
        raise ValueError(
            f"classes must hold at least one class, each with {labels.size} points as the concept, "
            f"got the numbers {[rows.shape[1] for rows in rounds]}"
        )
    chosen = []
    for rows in rounds:
        wrong = rows != labels
        best = int(np.argmin(wrong @ weights))
        weights = weights * np.where(wrong[best], 3.0, 1.0)
        weights = weights / weights.sum()
        chosen.append(rows[best])
    return np.array(chosen)


def hypotheses_of(name: str, value: Any) -> IntArray:
    """Return the validated hypotheses, [H, n_points] labels 0 and 1."""
    return _validate.integers(name, value, ndims=(2,), low=0, high=1)


def thresholds(n_points: int) -> IntArray:
    """Return all thresholds 1[x >= t] for t = 0, ..., n_points, [n_points + 1, n].

    The VC dimension of the thresholds is 1.
    """
    n_points = _validate.integer("n_points", n_points, at_least=1)
    return (np.arange(n_points) >= np.arange(n_points + 1)[:, None]).astype(np.int64)


def point_functions(n_points: int) -> IntArray:
    """Return all functions that are 1 at one point, [n_points, n_points]."""
    return np.eye(_validate.integer("n_points", n_points, at_least=1), dtype=np.int64)


def hashed_points(n_points: int, buckets: int) -> Representation:
    """Represent point functions by the buckets of a random hash function.

    The source is few_examples, Definition 20. Beimel, Nissim & Stemmer (2019) show why the size of
    the representation need not grow with `n_points`. The probability that a second point is in the
    bucket of a point is at most about 1 / buckets. So by Markov's inequality, buckets = 1 / (alpha
    beta) is enough.

    Parameters
    ----------
    n_points : int
        A prime number.
    buckets : int
        Number of hypotheses of each class, at least 1.

    Returns
    -------
    Representation
        One class for each hash function (a x + b mod n_points) mod buckets, where a > 0.
    """
    p = _validate.integer("n_points", n_points, at_least=2)
    if any(p % q == 0 for q in range(2, math.isqrt(p) + 1)):
        raise ValueError(f"n_points must be prime, got {p}")
    buckets = _validate.integer("buckets", buckets, at_least=1)
    a, b, x = np.ogrid[1:p, :p, :p]
    hashed = ((a * x + b) % p % buckets).reshape(-1, p)
    return Representation(
        tuple((one == np.arange(buckets)[:, None]).astype(np.int64) for one in hashed)
    )


def _worst(
    errors: list[np.ndarray[Any, np.dtype[np.bool_]]], weights: FloatArray, alpha: float
) -> tuple[float, FloatArray]:
    """Choose a distribution D and classes z.

    All hypotheses of a chosen class err by more than alpha on D.
    """
    n_points, n_classes = errors[0].shape[1], len(errors)
    rows, bound = [], alpha + _ABOVE
    for i, wrong in enumerate(errors):
        chosen = np.zeros((len(wrong), n_classes))
        chosen[:, i] = -bound
        rows.append(np.concatenate([wrong.astype(float), chosen], axis=1))
    total = np.concatenate([np.ones(n_points), np.zeros(n_classes)])
    found = milp(
        np.concatenate([np.zeros(n_points), -weights]),
        constraints=[LinearConstraint(np.concatenate(rows), lb=0), LinearConstraint(total, 1, 1)],
        integrality=np.concatenate([np.zeros(n_points), np.ones(n_classes)]),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None:
        raise ArithmeticError(
            f"the linear program of the worst distribution was not solved: {found}"
        )
    return float(weights @ np.round(found.x[n_points:])), np.asarray(found.x[:n_points])
