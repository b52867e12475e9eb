"""Tests of learning events, for all kinds of outputs.

The tests check that known best events are found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit.engine.pictures import picture
from dpaudit.events import Event, Goal, Guess, Selection, expectation, learn
from dpaudit.events.cuts import ExpectedBounds, approximate_lower, approximate_upper
from dpaudit.events.scores import FeatureScore
from dpaudit.stats import oracles
from dpaudit.stats.joint import lower_rates, upper_rates
from dpaudit.stats.rates import excess_of_rates, loss_of_rates

Generator = np.random.Generator
Array = NDArray[Any]
Distribution = Callable[[Generator, int], Array]
GRID = np.array([0.0, 0.5, 1.0, 1.5])


def _goal(delta: float | None = 0.0, draws: int = 20_000) -> Goal:
    return Goal(delta, GRID, np.array([0.3, 0.2, 0.1, 0.05]), draws, 1e-5, 1e-7)


def _learn(
    left: Distribution, right: Distribution, size: int = 8000, delta: float | None = 0.0
) -> Selection:
    rng = np.random.default_rng(1)
    return learn(left(rng, size), right(rng, size), _goal(delta), rng=np.random.default_rng(2))


def _events(selection: Selection) -> list[Event]:
    """Return all events of a selection.

    A guess has two events, which are the regions guessed left and guessed right.
    """
    primary = selection.primary
    first = [primary.left, primary.right] if isinstance(primary, Guess) else [primary]
    return [*first, *selection.profile]


def _rates(
    event: Event, left: Distribution, right: Distribution, size: int = 200_000
) -> tuple[float, float]:
    """Return the rates of the event on the side declared likelier, and on the other side."""
    rng = np.random.default_rng(3)
    rates = float(event(left(rng, size)).mean()), float(event(right(rng, size)).mean())
    return rates if event.likelier == "left" else rates[::-1]


def _loss(event: Event, left: Distribution, right: Distribution, delta: float = 0.0) -> float:
    return float(loss_of_rates(*_rates(event, left, right), delta))


# --- planning ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.floats(0, 2), st.sampled_from([0.0, 0.1]))
def test_what_is_expected_of_a_complement_is_what_is_expected_of_it_as_an_event(
    p: float, q: float, epsilon: float, delta: float
) -> None:
    def bounds(likely: float, rare: float) -> ExpectedBounds:
        return ExpectedBounds.of(np.array([likely]), np.array([rare]), 1000, 0.01)

    event, complement = bounds(p, q), bounds(1 - q, 1 - p)
    for read in (lambda b: b.excesses(epsilon), lambda b: b.losses(delta)):
        direct, mirrored = read(event)
        assert mirrored == pytest.approx(read(complement)[0], abs=1e-9)
        assert direct == pytest.approx(read(complement)[1], abs=1e-9)


@pytest.mark.parametrize(
    ("failure_prob", "accuracy"), [(0.02, 0.08), (1e-3, 0.08), (4.5e-6, 0.095), (6e-8, 0.13)]
)
@pytest.mark.parametrize("draws", [20, 1000, 100_000])
def test_approximate_bounds_are_near_the_exact_ones(
    draws: int, failure_prob: float, accuracy: float
) -> None:
    hits = np.unique(np.geomspace(1, draws, 60).astype(int) - 1)
    exact = upper_rates(hits, draws, failure_prob)
    keep = exact < 0.5  # where an upper bound decides anything
    approximate = approximate_upper(hits, draws, failure_prob)
    assert (np.abs(approximate / exact - 1)[keep] < accuracy).all()
    mirrored = 1 - approximate_lower(draws - hits, draws, failure_prob)
    assert mirrored == pytest.approx(approximate)
    assert (approximate_lower(hits, draws, failure_prob) <= hits / draws).all()
    assert (approximate >= hits / draws).all()
    assert lower_rates(0, draws, failure_prob) == approximate_lower(0, draws, failure_prob) == 0


def test_approximate_bounds_take_fractions_and_all_hits() -> None:
    bounds = approximate_upper([0.0, 0.5, 99.5, 100.0], 100, 1e-4)
    assert (np.diff(bounds) >= 0).all()
    assert bounds[-1] == pytest.approx(1.0)


# --- best events ------------------------------------------------------------------------------


def _laplace(shift: float) -> Distribution:
    return lambda rng, size: shift + rng.laplace(size=size)


def _categories(*probabilities: float) -> Distribution:
    labels = np.array(["ash", "beech", "cedar", "date"])
    return lambda rng, size: rng.choice(labels, size=size, p=list(probabilities))


def _streams(first: float) -> Distribution:
    """Return streams of answers that are yes with probability `first` at each step.

    A stream stops after the first yes, and the rest of the row is missing.
    """

    def draw(rng: Generator, size: int) -> Array:
        yes = (rng.random((size, 5)) < first) * 1.0
        before = np.cumsum(yes, axis=1) - yes
        return np.where(before > 0, np.nan, yes)

    return draw


def test_laplace_is_cut_where_the_loss_is_largest() -> None:
    for delta in (0.0, 0.05):
        selection = _learn(_laplace(1.0), _laplace(0.0), delta=delta)
        best = oracles.laplace(1.0, 1.0).epsilon(delta)
        assert _loss(_events(selection)[0], _laplace(1.0), _laplace(0.0), delta) > 0.93 * best


def test_the_profile_nearly_attains_the_exact_one() -> None:
    selection = _learn(_laplace(1.0), _laplace(0.0), 20_000)
    events = _events(selection)
    rates = [_rates(e, _laplace(1.0), _laplace(0.0)) for e in events]
    for epsilon, exact in zip(GRID[:2], oracles.laplace(1.0, 1.0).delta(GRID[:2]), strict=True):
        reached = max(float(excess_of_rates(p, q, epsilon)) for p, q in rates)
        assert exact - 0.03 < reached < exact + 0.006


@pytest.mark.parametrize("kind", [bool, int, float, str])
def test_randomised_response_is_told_by_its_answer(kind: type) -> None:
    def distribution(p: float) -> Distribution:
        return lambda rng, size: (rng.random(size) < p).astype(kind)

    event = _events(_learn(distribution(0.75), distribution(0.25)))[0]
    assert _loss(event, distribution(0.75), distribution(0.25)) == pytest.approx(
        math.log(3), abs=0.03
    )


def test_the_categories_that_differ_are_picked() -> None:
    left, right = _categories(0.1, 0.4, 0.3, 0.2), _categories(0.3, 0.4, 0.1, 0.2)
    event = _events(_learn(left, right))[0]
    assert _loss(event, left, right) == pytest.approx(math.log(3), abs=0.08)
    assert event.description in ("output = 'ash'", "output = 'cedar'")
    fires = event(np.array(["ash", "beech", "cedar", "date", "elm"]))
    assert fires[:4].sum() == 1
    assert not fires[4]


def test_streams_are_told_by_their_length() -> None:
    left, right = _streams(0.5), _streams(0.3)
    event = _events(_learn(left, right))[0]
    assert _loss(event, left, right) > 0.9 * 5 * math.log(0.7 / 0.5)  # the answer is no five times


def test_the_best_of_independent_coordinates_is_their_sum() -> None:
    def distribution(shift: float) -> Distribution:
        return lambda rng, size: shift + rng.laplace(size=(size, 3))

    event = _events(_learn(distribution(0.7), distribution(0.0), 20_000))[0]
    one = oracles.laplace(0.7, 1.0).max_loss
    assert _loss(event, distribution(0.7), distribution(0.0)) > 1.6 * one


def test_correlated_coordinates_are_told_by_their_difference() -> None:
    """Check that correlated coordinates are separated by their difference.

    The left and the right coordinate use the same noise. Each coordinate alone hides the change,
    but both coordinates together reveal the change.
    """

    def distribution(shift: float) -> Distribution:
        def draw(rng: Generator, size: int) -> Array:
            noise = rng.normal(size=size)
            return np.stack([noise + shift, noise], axis=1)

        return draw

    event = _events(_learn(distribution(0.05), distribution(0.0), 20_000))[0]
    likely, rare = _rates(event, distribution(0.05), distribution(0.0))
    assert likely - rare > 0.5


# --- any outputs ------------------------------------------------------------------------------

ODD: dict[str, tuple[Any, Any]] = {
    "constant": (np.zeros(8), np.zeros(8)),
    "two constants": (np.zeros(8), np.ones(8)),
    "one side constant": (np.zeros(8), np.arange(8.0)),
    "all missing": (np.full(8, np.nan), np.full(8, np.nan)),
    "one side missing": (np.full(8, np.nan), np.arange(8.0)),
    "missing vectors": (np.full((8, 3), np.nan), np.full((8, 3), np.nan)),
    "one of each": (np.array([1.0, 2.0]), np.array([2.0, 3.0])),
    "labels": (np.array(["a"] * 8), np.array(["a", "b"] * 4)),
    "label vectors": (np.array([["a", "b"]] * 8), np.array([["a", "c"], ["d", "b"]] * 4)),
    "booleans": (np.array([True] * 8), np.array([False] * 8)),
    "large integers": (np.array([2**62] * 8), np.array([2**62 + 1] * 8)),
    "signs of zero": (np.array([-0.0] * 8), np.array([0.0] * 8)),
    "records": (
        np.zeros(8, [("a", float), ("b", "U2")]),
        np.ones(8, [("a", float), ("b", "U2")]),
    ),
    "wide": (np.zeros((8, 100)), np.random.default_rng(0).normal(size=(8, 100))),
    "many label columns": (
        np.random.default_rng(0).choice(["a", "b"], size=(500, 2)),
        np.random.default_rng(1).choice(["a", "b"], size=(500, 2)),
    ),
    "a label and a constant": (
        np.stack([np.tile(["a", "b"], 250), np.full(500, "c")], axis=1),
        np.stack([np.tile(["a", "b"], 250), np.full(500, "c")], axis=1),
    ),
    "huge numbers": (
        np.random.default_rng(0).uniform(-1, 1, size=500) * 1.7e308,
        np.random.default_rng(1).uniform(-1, 1, size=500) * 1.7e308,
    ),
    "huge vectors": (
        np.random.default_rng(0).uniform(-1e200, 1e200, size=(500, 3)),
        np.random.default_rng(1).uniform(-1e200, 1e200, size=(500, 3)),
    ),
}
NO_DIFFERENCE = ("constant", "all missing", "missing vectors", "signs of zero", "large integers")


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("delta", [0.0, 0.1, None])
def test_any_outputs_give_events_with_words_and_pictures(name: str, delta: float | None) -> None:
    left, right = ODD[name]
    selection = learn(left, right, _goal(delta), rng=np.random.default_rng(0))
    for event in _events(selection):
        assert event.description
        for side in (left, right):
            scores = event.score(event.encoder(side))
            assert not np.isnan(scores).any()
            assert event(side).tolist() == event.fires(scores).tolist()
        histogram = picture(event, left, right)
        assert sum(histogram.left) == len(left)
        assert sum(histogram.right) == len(right)
        assert len(histogram.bins) == len(histogram.left) == len(histogram.inside)
    if name in NO_DIFFERENCE:
        assert selection.primary.description == "any output" or selection.objective[0] <= 0


@pytest.mark.parametrize("name", ["two constants", "one side missing", "booleans", "records"])
def test_sides_that_never_meet_are_told_apart_from_eight_draws(name: str) -> None:
    left, right = ODD[name]
    event = _events(learn(left, right, _goal(), rng=np.random.default_rng(0)))[0]
    assert event(left).all() != event(right).all()
    assert event(left).any() != event(right).any()
    assert event(left).all() == (event.likelier == "left")


def test_learning_is_deterministic_given_its_generator() -> None:
    def distribution(shift: float) -> Distribution:
        return lambda rng, size: shift + rng.normal(size=(size, 2))

    a, b = (_learn(distribution(0.3), distribution(0.0)) for _ in range(2))
    assert [e.description for e in _events(a)] == [e.description for e in _events(b)]
    assert [e.threshold for e in _events(a)] == [e.threshold for e in _events(b)]
    assert (a.objective, a.point) == (b.objective, b.point)


def test_a_curve_is_challenged_at_a_point_of_its_own() -> None:
    selection = _learn(_laplace(1.5), _laplace(0.0), delta=None)
    assert selection.point in list(zip(GRID.tolist(), [0.3, 0.2, 0.1, 0.05], strict=True))[1:]


def test_events_are_at_most_one_for_each_epsilon_and_distinct() -> None:
    selection = _learn(_laplace(1.0), _laplace(0.0))
    cuts = [
        (id(e.score), e.threshold, e.above == (e.likelier == "left")) for e in _events(selection)
    ]
    assert len(selection.profile) <= len(GRID)
    assert len(set(cuts)) == len(cuts)


def test_draws_without_a_difference_promise_nothing() -> None:
    selection = _learn(_laplace(0.0), _laplace(0.0))
    assert selection.objective[0] < 0.1


def test_cuts_are_judged_on_draws_that_did_not_teach_the_score() -> None:
    """Check that cuts are judged on draws that did not train the score.

    Labels that separate the sides only in the first half of the draws are worth nothing.
    """
    same = ["a", "b"] * 250
    left, right = np.array(["a"] * 500 + same), np.array(["b"] * 500 + same)
    fooled = learn(left, right, _goal(), rng=np.random.default_rng(2))
    assert fooled.objective[0] == 0.0
    told = learn(left[:500], right[:500], _goal(), rng=np.random.default_rng(2))
    assert told.objective[0] > 2.0


def test_an_event_that_is_likelier_on_the_right_needs_no_table() -> None:
    """Check that an event that is likelier on the right needs no table.

    Only the mechanism on the right dataset returns outputs beyond 5. The feature itself describes
    this event in words.
    """

    def left(rng: Generator, size: int) -> Array:
        return rng.random(size)

    def right(rng: Generator, size: int) -> Array:
        return rng.random(size) + 5 * (rng.random(size) < 0.1)

    event = _events(_learn(left, right))[0]
    assert isinstance(event.score, FeatureScore)
    assert (event.likelier, event.above) == ("right", True)
    assert _rates(event, left, right) == pytest.approx((0.1, 0.0), abs=0.01)


# --- frozen events ----------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 0.05, None])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_frozen_event_is_judged_by_its_rates_on_fresh_draws(
    delta: float | None, swapped: bool
) -> None:
    sides = (np.repeat([0.0, 1.0], [200, 800]), np.repeat([0.0, 1.0], [900, 100]))
    left, right = sides[::-1] if swapped else sides
    frozen = learn(left, right, _goal(delta), rng=np.random.default_rng(1)).primary
    value, separation = expectation(frozen, left, right, _goal(delta))
    p, q = np.array([0.8]), np.array([0.1])
    sure = ExpectedBounds.of(p, q, 20_000, 1e-5)
    assert separation == pytest.approx(0.7, abs=1e-3)
    if delta is not None:
        assert value == pytest.approx(float(np.maximum(*sure.losses(delta))[0]), rel=0.01)
    else:
        both = zip(GRID, _goal(None).claimed_deltas, strict=True)
        ratios = [float(np.maximum(*sure.excesses(e))[0]) / d for e, d in both]
        assert value == pytest.approx(max(ratios[1:]), rel=0.01)


def test_an_event_that_was_never_seen_on_the_other_side_is_not_thought_impossible() -> None:
    """Half a draw of 50 is assumed on the other side."""
    left, right = np.repeat([1.0, 0.0], [20, 30]), np.zeros(50)
    frozen = learn(left, right, _goal(), rng=np.random.default_rng(1)).primary
    assert isinstance(frozen, Event)
    value, _ = expectation(frozen, left, right, _goal())
    assert 0 < value < math.log(20 / 0.5)


@pytest.mark.slow
def test_no_luck_is_taken_for_a_find() -> None:
    """Check that chance is not mistaken for a finding.

    On draws of one distribution, one of thousands of events in 8 coordinates looks best by chance.
    """
    rng = np.random.default_rng(5)
    lucky, frozen = [], []
    for _ in range(20):
        draws = rng.laplace(size=(4, 300, 8))
        selection = learn(draws[0], draws[1], _goal(), rng=rng)
        lucky.append(selection.objective[0])
        frozen.append(expectation(selection.primary, draws[2], draws[3], _goal())[0])
    assert sum(value > 0.1 for value in lucky) >= 15
    assert sum(value > 0.1 for value in frozen) <= 3
