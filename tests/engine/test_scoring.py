"""Tests of audits with a fixed score.

An audit with a fixed score tests the mechanism followed by the score.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.svm import SVC

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    GaussianDP,
    MechanismError,
    NeighborPair,
    PureDP,
    audit,
    mutants,
)

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
WEIGHTS = np.linspace(-1.0, 1.0, 40)
CLAIM = ApproxDP(1.0, 1e-5)


def spread(data: np.ndarray, size: int, *, scale: float = 1.0, rng: np.random.Generator) -> Any:
    """Release the sum of the data along a direction of forty dimensions, plus noise."""
    direction = WEIGHTS / np.linalg.norm(WEIGHTS)
    return data.sum() * direction + scale * rng.standard_normal((size, 40))


def along(outputs: np.ndarray) -> np.ndarray:
    """Return the likelihood ratio of `spread`, up to a constant."""
    return outputs @ WEIGHTS


def spread_along(data: np.ndarray, size: int, *, scale: float = 1.0, rng: Any) -> np.ndarray:
    return along(spread(data, size, scale=scale, rng=rng))


@pytest.mark.slow
def test_it_is_the_audit_of_the_composition() -> None:
    options: dict[str, Any] = {"draws": 4000, "seed": 3, "id": "one", "mutants": None}
    whole = audit(partial(spread, scale=0.5), CLAIM, PAIR, score=along, **options)
    parts = audit(partial(spread_along, scale=0.5), CLAIM, PAIR, **options)
    assert whole.witness == parts.witness
    assert whole.epsilon == parts.epsilon
    assert whole.profile == parts.profile
    assert whole.verdict.words == "REFUTED"
    assert whole.mechanism == "spread(scale=0.5), scored by along"


@pytest.mark.slow
def test_a_known_score_certifies_more_than_a_learnt_one() -> None:
    options: dict[str, Any] = {"draws": 3000, "seed": 1, "mutants": None}
    known = audit(spread, PureDP(0.1), PAIR, score=along, **options).certified_epsilon
    learnt = audit(spread, PureDP(0.1), PAIR, **options).certified_epsilon
    assert known > 1.2 * learnt
    assert known < GaussianDP(1.0).epsilon(1e-6)


@pytest.mark.slow
def test_mutants_are_seen_through_the_score() -> None:
    result = audit(
        partial(spread, scale=1.0),
        GaussianDP(1.0),
        PAIR,
        draws=20_000,
        seed=0,
        score=along,
        mutants=[mutants.scaled(scale=0.3), partial(spread, scale=0.25)],
    )
    assert result.verdict.words == "NOT REFUTED"
    assert [m.status.value for m in result.mutants if m.is_given] == ["killed", "killed"]
    assert any(mutant.noise and mutant.status.value == "killed" for mutant in result.mutants)


def test_a_leak_that_the_score_ignores_does_not_kill_a_mutant() -> None:
    def leaks_elsewhere(data: np.ndarray, size: int, *, rng: np.random.Generator) -> np.ndarray:
        noisy = data.sum() + 4.0 * rng.standard_normal(size)
        return np.stack([noisy, np.full(size, data.sum())], axis=1)

    def first(outputs: np.ndarray) -> np.ndarray:
        return outputs[:, 0]

    def same(data: np.ndarray, size: int, *, rng: np.random.Generator) -> np.ndarray:
        return leaks_elsewhere(data, size, rng=rng)

    result = audit(leaks_elsewhere, CLAIM, PAIR, draws=2000, seed=0, score=first, mutants=[same])
    assert [m.status.value for m in result.mutants if m.is_given] == ["survived"]


def test_a_change_that_is_never_reached_is_still_said_to_be() -> None:
    result = audit(
        spread,
        GaussianDP(1.0),
        PAIR,
        draws=5000,
        seed=0,
        score=along,
        mutants=[mutants.without("statistics.fmean")],
    )
    assert "its code was never executed" in result.mutants[0].note


def test_a_score_may_see_anything_that_an_array_holds() -> None:
    def words(data: np.ndarray, size: int, *, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(size) < 0.25 + 0.5 * data.sum(), "yes", "no")

    result = audit(
        words, PureDP(0.5), PAIR, draws=5000, seed=0, score=lambda outputs: outputs == "yes"
    )
    assert result.verdict.words == "REFUTED"
    assert result.certified_epsilon < np.log(3)


@pytest.mark.parametrize("score", ["along", 3, [along]])
def test_what_is_no_function_is_refused(score: Any) -> None:
    with pytest.raises(TypeError, match="^score must be a function"):
        audit(spread, CLAIM, PAIR, seed=0, score=score)


def test_mechanisms_without_outputs_are_refused() -> None:
    class Bit:
        def pmf(self, data: np.ndarray) -> np.ndarray:
            return np.array([0.5, 0.5])

    centers = AdditiveNoise(lambda data: data.sum(), scale=1.0)
    for mechanism, words in ((centers, "computes its centres"), (Bit(), "has a pmf")):
        with pytest.raises(TypeError, match=f"^mechanism must draw its outputs if .* {words}"):
            audit(mechanism, CLAIM, PAIR, seed=0, score=along)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda outputs: outputs, r"must return one number for each of 64 draws, got .*\(64, 40\)"),
        (lambda outputs: outputs.sum(), r"must return one number for each of 64 draws"),
        (lambda outputs: [str(x) for x in outputs[:, 0]], "must return one number for each"),
        (lambda outputs: outputs[:, 0] - outputs[:, 0].mean(), "must score each draw by itself"),
        (lambda outputs: outputs[:, 0].argsort(), "must score each draw by itself"),
    ],
)
def test_what_is_no_score_is_refused(score: Any, message: str) -> None:
    with pytest.raises(MechanismError, match=message):
        audit(spread, CLAIM, PAIR, seed=0, score=score)


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_infinite_outputs_do_not_hide_behind_their_score(share: float) -> None:
    def overflowing(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        outputs = spread(data, size, rng=rng)
        outputs[rng.random(size) < share, :] = np.inf
        return outputs

    def silent(outputs: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return along(outputs)

    message = r"overflowing returned inf in \d+ of \d+ draws, and their score is NaN"
    with pytest.raises(MechanismError, match=message):
        audit(overflowing, CLAIM, PAIR, seed=0, draws=2000, score=silent)
    audit(  # a score that knows what to do with inf is allowed
        overflowing,
        CLAIM,
        PAIR,
        seed=0,
        draws=2000,
        score=lambda x: np.isinf(x[:, 0]),
        mutants=None,
    )


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.tolist(),
        lambda x: [[value] * (1 + (value > 0)) for value in x],
        lambda x: [{"value": value} for value in x],
        lambda x: [f"{value}" for value in x],
        lambda x: [None for _ in x],
        lambda x: np.array([(value,) for value in x], dtype=[("value", float)]),
        lambda x: np.empty((len(x), 0)),
    ],
    ids=["list", "ragged", "dicts", "texts", "none", "records", "no numbers"],
)
def test_a_score_may_take_outputs_of_any_kind(form: Any) -> None:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return form(data.sum() + rng.laplace(size=size))

    def score(outputs: Any) -> np.ndarray:
        return np.array([len(str(output)) for output in outputs], dtype=float)

    audit(mechanism, PureDP(1.0), PAIR, seed=0, draws=200, score=score, mutants=None)


def test_the_outputs_beyond_a_score_are_not_covered() -> None:
    words = "outputs beyond their score (audit once without score=)"
    options: dict[str, Any] = {"draws": 1000, "seed": 0, "mutants": None}
    assert words in audit(spread, PureDP(9.0), PAIR, score=along, **options).not_covered
    assert words not in audit(spread, PureDP(9.0), PAIR, **options).not_covered


# --- classifiers, which are fitted to exploration draws -----------------------------------------


def parity(data: np.ndarray, size: int, *, rng: np.random.Generator) -> Any:
    """Release three numbers whose product has a sign that tells the dataset, epsilon = log 19."""
    x = rng.normal(size=(size, 3))
    sign = np.where(rng.random(size) < 0.95, 1, -1) * (1 if data.sum() > 0 else -1)
    x[:, 2] = np.abs(x[:, 2]) * sign * np.sign(x[:, 0] * x[:, 1])
    return x


class Product(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that knows the likelihood ratio."""

    def fit(self, x: Any, y: Any) -> Product:
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, x: Any) -> Any:
        return np.sign(x[:, 0] * x[:, 1] * x[:, 2])


class TwoColumns(Product):
    def decision_function(self, x: Any) -> Any:
        return x[:, :2]


class Broken(Product):
    def fit(self, x: Any, y: Any) -> Product:
        raise RuntimeError("no")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fixed", "sequential"])
def test_a_classifier_competes_with_the_learnt_scores(method: str) -> None:
    options: dict[str, Any] = {"draws": 2000, "seed": 1, "mutants": None, "method": method}
    learnt = audit(parity, PureDP(1.5), PAIR, **options)
    given = audit(parity, PureDP(1.5), PAIR, score=SVC(), **options)
    assert given.verdict.words == "REFUTED"
    assert "score of SVC" in given.witness.event
    if method == "fixed":  # a sequential audit stops when the claim is refuted
        assert given.certified_epsilon > 1.1 * learnt.certified_epsilon
    again = audit(parity, PureDP(1.5), PAIR, score=SVC(), **options)
    assert again.witness == given.witness


@pytest.mark.slow
def test_a_random_classifier_is_replayed_from_the_seed() -> None:
    options: dict[str, Any] = {"draws": 1000, "seed": 1, "mutants": None}
    forest = RandomForestClassifier(20)
    first, again = (audit(parity, PureDP(1.0), PAIR, score=forest, **options) for _ in "12")
    assert first.witness == again.witness
    assert not hasattr(forest, "estimators_")  # copies are fitted
    assert forest.random_state is None


@pytest.mark.slow
def test_a_classifier_also_scores_mutants_and_searches() -> None:
    pairs = [PAIR, NeighborPair(np.array([[0.0], [-1.0]]), np.array([[0.0], [1.0]]))]
    found = audit(parity, PureDP(1.9), pairs, score=SVC(), draws=2000, seed=1, mutants=None)
    assert found.verdict.words == "REFUTED"


class Relative(Product):
    def decision_function(self, x: Any) -> Any:
        return x[:, 0] - x[:, 0].mean()


@pytest.mark.parametrize(
    ("score", "words"),
    [
        (Relative(), "score must be a classifier that scores each draw by itself, got Relative"),
        (SVC, "score must be an instance of a classifier"),
        (LinearRegression(), "score must be an instance of a classifier"),
        (Broken(), "score must be a classifier that can be fitted, got Broken, which raised Runt"),
        (TwoColumns(), "score must be a classifier that gives one number for each draw, got Two"),
    ],
    ids=["relative", "class", "regression", "broken", "columns"],
)
def test_other_estimators_are_refused(score: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        audit(parity, PureDP(1.0), PAIR, score=score, draws=400)
