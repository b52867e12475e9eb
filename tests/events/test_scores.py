"""Tests of scores and their descriptions.

The described set must be the set at which the event fires.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.events import Event, scalar_score
from dpaudit.events.encoding import Column, Encoder
from dpaudit.events.features import Feature, all_features
from dpaudit.events.scores import (
    _QUANTILES,
    FeatureScore,
    OutcomeScore,
    TableScore,
    additive_score,
    boosted_score,
    logistic_score,
)
from dpaudit.stats import Target

Floats = NDArray[np.float64]
OUTPUT = Feature(Column("output"), lambda x: x[:, 0], True)
NAN = math.nan


def _column(values: Any) -> Floats:
    return np.asarray(values, dtype=float)[:, None]


def _described(words: str, value: float) -> bool:
    """Return whether a value lies in the set that the words describe."""
    if math.isnan(value):
        return words.endswith(("no answer", "without an answer"))
    words = words.removesuffix(" or no answer")
    for part in re.findall(r"\((\S+), (\S+)\]", words):
        if float(part[0]) < value <= float(part[1]):
            return True
    if match := re.fullmatch(r"output (>=|>|<=|=) (\S+)", words):
        sign, bound = match[1], float(match[2])
        return {
            ">=": value >= bound,
            ">": value > bound,
            "<=": value <= bound,
            "=": value == bound,
        }[sign]
    if match := re.fullmatch(r"output in \{(.*)\}", words):
        return value in {float(x) for x in match[1].split(", ")}
    return False


GRID = [-1e9, -3.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 1e9, NAN]


def _fires(score: Any, threshold: float, above: bool) -> list[bool]:
    inside = score(_column(GRID)) >= threshold
    return (inside if above else ~inside).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(
    "log_ratios", [[0, 1, 0, 1, -1, 0], [1, 1, 0, 0, 1, 1], [-1, 0, 1, 2, 3, -2]]
)
def test_words_of_intervals_are_the_intervals_that_fire(log_ratios: list[int], above: bool) -> None:
    edges = np.array([0.5, 1.5, 2.0, 3.5])
    score = TableScore(OUTPUT, edges, np.array(log_ratios, float), False, True, 1.0)
    for threshold in (-0.5, 0.5, 1.5):
        words = score.words(threshold, above, exact=True)
        fires = _fires(score, threshold, above)
        if 0 < sum(fires) < len(fires):  # cuts that separate nothing are never made
            assert [_described(words, v) for v in GRID] == fires, words


def test_many_intervals_are_summarised_unless_the_definition_is_exact() -> None:
    edges = np.linspace(0.1, 0.9, 9)
    score = TableScore(OUTPUT, edges, np.array([0.0, 1.0] * 5 + [0.0]), False, True, 1.0)
    short = score.words(0.5, True)
    assert short == "learnt likelihood ratio of output >= 1.65 (5 intervals)"
    exact = score.words(0.5, True, exact=True)
    assert exact.count("(") == 5
    assert repr(float(edges[2])) in exact
    few = TableScore(OUTPUT, edges[:3], np.array([0.0, 1.0, 0.0, 1.0, 0.0]), False, True, 1.0)
    assert few.words(0.5, True) == "output in (0.1, 0.2] or (0.3, inf]"


def test_many_values_are_summarised_unless_the_definition_is_exact() -> None:
    values = np.arange(12.0)
    score = TableScore(OUTPUT, values, np.array([1.0] * 12 + [0.0, 0.0]), True, False, 1.0)
    assert score.words(0.5, True) == "learnt likelihood ratio of output >= 1.65 (12 values)"
    assert score.words(0.5, True, exact=True) == f"output in {{{', '.join(map(str, range(12)))}}}"


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize(
    "seen", [[0.5, 1.0, 2.0], [0.5, 1.0, NAN], [1.0, 2.0, 4.0], [1.0, 3.0, NAN]], ids=str
)
@pytest.mark.parametrize("threshold", [0.75, 1.25, 1.5, 2.0, 2.5])
def test_words_of_a_threshold_are_the_outputs_that_fire(
    seen: list[float], threshold: float, above: bool
) -> None:
    for score in FeatureScore.learn(OUTPUT, np.array(seen)):
        cut = -threshold if score.falling else threshold
        fires = score(_column(seen)) >= cut
        words = score.words(cut, above)
        if threshold in seen and not score.whole:
            continue  # "> 2" describes ">= 2", because cuts lie between seen values
        assert [_described(words, v) for v in seen] == (fires == above).tolist(), words


def test_a_feature_with_gaps_has_a_score_of_either_direction() -> None:
    assert [s.falling for s in FeatureScore.learn(OUTPUT, np.array([1.0, NAN]))] == [False, True]
    assert [s.falling for s in FeatureScore.learn(OUTPUT, np.array([1.0, 2.0]))] == [False]


@pytest.mark.parametrize("n", [300, 301, 1000, 4001])
def test_bins_of_a_continuous_feature_end_at_its_quantiles(n: int) -> None:
    values = np.random.default_rng(n).normal(size=(2, n)) * 10.0 ** np.arange(2)[:, None]
    table, exact = TableScore.learn_ordered(OUTPUT, *values)
    assert not table.atoms
    assert exact is None
    assert np.array_equal(table.edges, np.unique(np.quantile(values, _QUANTILES)))


def test_repeated_values_of_an_ordered_feature_also_have_a_table_of_their_own() -> None:
    values = np.random.default_rng(0).integers(400, size=(2, 3000)) * 1.0
    table, exact = TableScore.learn_ordered(OUTPUT, *values)
    assert exact is not None
    assert not table.atoms
    assert exact.atoms
    alone = TableScore.learn(OUTPUT, *values)
    assert np.array_equal(exact.edges, alone.edges)
    assert np.array_equal(exact.log_ratios, alone.log_ratios)
    few, none = TableScore.learn_ordered(OUTPUT, *(values % 256))
    assert few.atoms
    assert none is None


@pytest.mark.parametrize("above", [True, False])
def test_words_of_values_are_the_values_that_fire(above: bool) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(4, size=3000) * 1.0, rng.integers(3, size=3000) * 1.0
    score = TableScore.learn(OUTPUT, left, right)
    assert score.atoms
    for threshold in np.unique(score.log_ratios)[1:]:
        words = score.words(float(threshold), above)
        unseen = " or a value not seen before"
        assert words.endswith(unseen) == bool((score(_column([7])) >= threshold) == above)
        words = words.removesuffix(unseen)
        fires = score(_column([0, 1, 2, 3])) >= threshold
        assert [_described(words, v) for v in (0.0, 1.0, 2.0, 3.0)] == (fires == above).tolist()


def test_values_that_exploration_never_saw_are_not_counted_as_ones_that_it_saw() -> None:
    """Check that the words are true for values that exploration never saw.

    Without such words, the witness would say "output = 3" about an event that also fires at 2.6 and
    at 99.
    """
    left, right = np.repeat([0.0, 3.0], 500), np.repeat([0.0, 0.0, 3.0], [900, 90, 10])
    score = TableScore.learn(OUTPUT, left, right)
    threshold = float(score(_column([3.0]))[0])
    words = score.words(threshold, True)
    fires = score(_column([2.6, 99.0])) >= threshold
    assert [_described(words, v) for v in (2.6, 99.0)] == fires.tolist(), words


def test_a_table_holds_shrunk_log_ratios_of_its_values() -> None:
    left, right = np.repeat([0.0, 1.0, NAN], [70, 20, 10]), np.repeat([0.0, 1.0, NAN], [10, 80, 10])
    score = TableScore.learn(OUTPUT, left, right)
    expected = [math.log(70.5 / 10.5), math.log(20.5 / 80.5), math.log(10.5 / 10.5)]
    assert score(_column([0.0, 1.0, NAN])) == pytest.approx(expected)
    assert score(_column([-0.0])) == score(_column([0.0]))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([NAN] * 5, [NAN] * 5),
        ([1.0] * 5, [1.0] * 5),
        ([1.0] * 5, [NAN] * 5),
        ([0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0]),
        ([1.0], [2.0]),
    ],
)
def test_tables_of_next_to_nothing_are_finite(left: list[float], right: list[float]) -> None:
    score = TableScore.learn(OUTPUT, np.array(left), np.array(right))
    assert np.isfinite(score(_column([*left, *right, 77.0, NAN]))).all()
    assert score.words(0.0, True)
    assert score.words(0.0, False)


def test_outcomes_are_told_apart_whole() -> None:
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [NAN, 1.0], [0.0, 1.0]])
    left, right = np.repeat(rows, [50, 30, 15, 5], axis=0), np.repeat(rows, [5, 30, 60, 5], axis=0)
    score = OutcomeScore.learn(Encoder.learn(rows), left, right)
    assert score is not None
    expected = [math.log(55.5 / 10.5), 0.0, math.log(15.5 / 60.5)]
    assert score(rows[:3]) == pytest.approx(expected)
    assert score(np.array([[-0.0, 1.0]]))[0] == score(rows[:1])[0]
    assert score(np.array([[7.0, 7.0]]))[0] == score.other == 0.0
    assert score.words(1.0, True) == "outcome in {(0, 1)}"
    assert score.words(-1.0, False) == "outcome in {(-, 1)}"


def test_outcomes_that_hardly_repeat_have_no_table() -> None:
    outputs = np.random.default_rng(0).normal(size=(100, 2))
    assert OutcomeScore.learn(Encoder.learn(outputs), outputs, outputs + 1.0) is None


def _shifted(size: int = 3000) -> tuple[Encoder, Floats, Floats]:
    rng = np.random.default_rng(0)
    left, right = rng.normal(0.5, 1, (size, 3)), rng.normal(0, 1, (size, 3))
    return Encoder.learn(left), left, right


def _auc(a: Floats, b: Floats) -> float:
    ranks = np.argsort(np.argsort(np.concatenate([a, b])))
    return float((ranks[: len(a)].mean() - (len(a) - 1) / 2) / len(b))


def test_models_order_outputs_nearly_as_the_likelihood_ratio_does() -> None:
    encoder, left, right = _shifted()
    features = all_features(encoder, left, right)
    tables = [TableScore.learn(f, f(left), f(right)) for f in features]
    models = [
        additive_score(tables),
        logistic_score(features, left, right),
        boosted_score(features, left, right, np.random.default_rng(0)),
    ]
    _, fresh_left, fresh_right = _shifted(2000)
    best = _auc(fresh_left.sum(axis=1), fresh_right.sum(axis=1))
    for model in models:
        assert model is not None
        assert _auc(model(fresh_left), model(fresh_right)) > best - 0.03, model.name


def test_models_read_each_output_alone_and_the_same_each_time() -> None:
    encoder, left, right = _shifted()
    features = all_features(encoder, left, right)
    for model in (
        logistic_score(features, left, right),
        boosted_score(features, left, right, np.random.default_rng(0)),
    ):
        whole = model(left[:100])
        assert (whole == model(left[:100])).all()
        single = np.concatenate([model(left[i : i + 1]) for i in range(100)])
        np.testing.assert_allclose(single, whole, rtol=1e-9, atol=1e-12)
        assert np.isfinite(model(np.full((2, 3), NAN))).all()


def test_coordinates_that_do_not_differ_are_left_out_of_the_sum() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(5000, 3)), rng.normal(size=(5000, 3))
    features = all_features(Encoder.learn(left), left, right)
    tables = [TableScore.learn(f, f(left), f(right)) for f in features]
    assert additive_score(tables) is None


@pytest.mark.parametrize("huge", [1e308, np.inf])
def test_scores_of_huge_outputs_are_learnt_without_a_warning(huge: float) -> None:
    rng = np.random.default_rng(1)
    sides = [rng.normal(size=500) * 1e307 for _ in range(2)]
    for side in sides:
        side[:10], side[10:20] = huge, -huge
    feature = Feature(Column("output"), lambda x: x[:, 0])
    table = TableScore.learn(feature, *sides)
    assert np.all(np.isfinite(table.edges))
    assert np.all(np.diff(table.edges) > 0)
    plain = TableScore.learn(feature, *(np.clip(side, -1e308, 1e308) / 1e3 for side in sides))
    assert table.edges[20:-20] == pytest.approx(plain.edges[20:-20] * 1e3, rel=1e-12)
    for score in FeatureScore.learn(feature, np.array([huge, -huge, 0.0])):
        assert "e+308" in score.words(huge, True) or "inf" in score.words(huge, True)


def test_a_frequent_value_among_others_has_a_bin_of_its_own() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 5000))
    left[:500] = 0.25  # as for a clipped or rounded output; few other values are close
    table = TableScore.learn(OUTPUT, left, right)
    assert not table.atoms
    top = float(table.log_ratios.max())
    assert table.words(top, above=True) == "output in {0.25}"
    near = np.nextafter(0.25, [-1.0, 0.25, 1.0])
    assert (table(_column(near)) >= top).tolist() == [False, True, False]


def test_values_of_which_most_are_seen_twice_are_told_apart() -> None:
    """Check that a table separates values of which most are seen twice.

    Each side has its own half of 5,000 labels, so only the values themselves are informative.
    """
    rng = np.random.default_rng(0)
    labels = rng.permutation(5000) * 1.0
    left, right = labels[rng.integers(2500, size=10_000)], labels[rng.integers(2500, 5000, 10_000)]
    table = TableScore.learn(OUTPUT, left, right)
    assert table.atoms
    assert (table(_column(labels[:2500])) > 0).mean() > 0.95
    assert not TableScore.learn(OUTPUT, left, right, most=1000).atoms


def test_no_answer_has_words_of_its_own() -> None:
    for score in FeatureScore.learn(OUTPUT, np.array([1.0, NAN])):
        below = score(_column([NAN, 1.0, -1e9])) < -np.finfo(float).max / 2
        assert below.tolist() == [True, False, False]
        assert score.words(-np.finfo(float).max / 2, above=False) == "output has no answer"
        assert score.words(-np.finfo(float).max / 2, above=True) == "output has an answer"


# --- the threshold of an event ------------------------------------------------------------------


@pytest.mark.parametrize("above", [True, False])
def test_a_score_at_the_threshold_belongs_to_the_outputs_above(above: bool) -> None:
    outputs = np.array([0.0, 1.0, 2.0])
    encoder = Encoder.learn(outputs)
    score = scalar_score(encoder, encoder(outputs))
    event = Event(score, 1.0, above, "left", encoder, Target(delta=0.0))
    assert event(outputs).tolist() == [not above, above, above]
