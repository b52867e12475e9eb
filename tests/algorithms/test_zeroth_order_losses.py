"""Tests of the losses.

The tests cover constants, smoothing by quadrature, and stationarity by geometry.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize

from algorithms.zeroth_order import problems, smoothing, stationarity
from algorithms.zeroth_order.estimators import gradient_estimate
from algorithms.zeroth_order.losses import (
    CappedAbsolute,
    Counted,
    FunctionLoss,
    Linear,
    MaxDifference,
    PhaseRetrieval,
    ReluNetwork,
    largest_slope,
)
from tests.statistical import assert_distribution

RIDGES = [CappedAbsolute(2.0, 0.3), CappedAbsolute(1.0, math.inf), PhaseRetrieval(1.5)]
PIECES = MaxDifference([[1.0, 0.0], [-0.5, 0.5]], [[0.0, 0.25], [0.5, 0.0]])
LOSSES = [
    (Linear(2.0), 2), *[(ridge, 3) for ridge in RIDGES], (PIECES, 2), (ReluNetwork(3, 0.5), 3),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "columns"), LOSSES, ids=str)
@given(seed=st.integers(0, 2**32 - 1))
def test_values_are_as_lipschitz_as_declared(loss, columns, seed):
    rng = np.random.default_rng(seed)
    d = loss.dimension(columns)
    items = rng.normal(size=(20, columns)) * rng.choice([0.1, 1, 10])
    x, y = rng.normal(size=(2, 20, d))
    slopes = np.abs(loss.values(x, items) - loss.values(y, items)) / np.linalg.norm(x - y, axis=1)
    assert slopes.max() <= loss.lipschitz * (1 + 1e-9)


@pytest.mark.parametrize(("loss", "columns"), LOSSES, ids=str)
def test_the_declared_constant_is_attained(loss, columns):
    rng = np.random.default_rng(0)
    d = loss.dimension(columns)
    items, x = rng.normal(size=(4000, columns)) * 3, rng.normal(size=(4000, d)) * 3
    lengths = np.linalg.norm(loss.gradients(x, items), axis=1)
    assert lengths.max() == pytest.approx(loss.lipschitz, rel=0.05)
    assert lengths.max() <= loss.lipschitz * (1 + 1e-9)


@pytest.mark.parametrize(("loss", "columns"), LOSSES, ids=str)
def test_gradients_are_those_of_the_values(loss, columns):
    rng = np.random.default_rng(1)
    d = loss.dimension(columns)
    items, x = rng.normal(size=(50, columns)), rng.normal(size=(50, d))
    moves = 1e-6 * np.eye(d)
    slopes = np.array([loss.values(x + m, items) - loss.values(x - m, items) for m in moves]) / 2e-6
    close = np.abs(slopes.T - loss.gradients(x, items)).max(axis=1) < 1e-5
    assert close.mean() > 0.95  # the other points are next to a kink


@pytest.mark.parametrize("ridge", RIDGES, ids=str)
def test_knots_say_what_the_profile_is(ridge):
    s, b = np.linspace(-3, 3, 101), 0.7
    constant, places, weights = ridge.knots(np.array(b))
    found = constant + np.abs(s[:, None] - places) @ weights
    items = np.array([1.0, b])
    np.testing.assert_allclose(ridge.lipschitz * found, ridge.values(s[:, None], items), atol=1e-12)


def test_features_are_shortened_not_trusted():
    long = np.array([[30.0, 40.0, 1.0]])
    short = np.array([[0.6, 0.8, 1.0]])
    x = np.array([[1.0, 2.0]])
    np.testing.assert_allclose(PhaseRetrieval().values(x, long), PhaseRetrieval().values(x, short))


def test_nonconvex_they_are():
    """Check that the losses are not convex.

    The loss at a point between two others is above the chord.
    """
    for loss, item, ends in [
        (CappedAbsolute(1.0, 0.5), [1.0, 0.0], (0.0, 1.0)),
        (PhaseRetrieval(), [1.0, 1.0], (-1.0, 1.0)),
        (MaxDifference([[0.0], [0.0]], [[1.0], [-1.0]]), [0.0], (-1.0, 1.0)),
        (ReluNetwork(1), [1.0, 1.0], (-5.0, 1.0)),
    ]:
        z = np.array(item)
        low, high = (float(loss.values(np.array([e]), z)) for e in ends)
        middle = float(loss.values(np.array([0.75 * ends[1] + 0.25 * ends[0]]), z))
        assert middle > 0.75 * high + 0.25 * low


# --- refusals ---


def slow_then_fast(points, items):
    return 3 * np.abs(points[..., 0]) + 0 * items[..., 0]


def estimate(function, size=2, point=(5.0,), radius=0.5, **options):
    return gradient_estimate(
        [[1.0]], size, loss=FunctionLoss(function, lipschitz=1.0), radius=radius, point=point,
        rng=np.random.default_rng(0), **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (slow_then_fast, 1.0),
        (lambda x, z: x[..., 0] * math.nan, 0.0),
        (lambda x, z: x[..., 0] * math.inf, 0.0),
        (lambda x, z: np.where(x[..., 0] > 5, math.inf, 0.0), 1.0),
        (lambda x, z: np.where(x[..., 0] > 5, 100, -100).astype(np.int8), 1.0),
        (lambda x, z: (x[..., 0] > 5).astype(np.uint8), 1.0),
        (lambda x, z: np.abs(x[..., 0] - 1e16), -1.0),
    ],
)
def test_no_loss_exceeds_its_constant(function, expected):
    """Check that the sensitivity of an estimate is given by the declared constant.

    The error does not depend on the data.
    """
    np.testing.assert_allclose(estimate(function), expected)


def test_an_offset_that_rounds_is_no_lever():
    """Check that rounding of a large offset does not increase the estimate.

    The value abs(abs(x) - 1e16) moves in steps of 2.
    """
    items = [[1.0, 1e16]]
    for loss in (PhaseRetrieval(), CappedAbsolute(1.0, math.inf), ReluNetwork(1)):
        found = gradient_estimate(
            items, 9, loss=loss, radius=1e-3, point=[1.0], rng=np.random.default_rng(0)
        )
        assert np.abs(found).max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("function", "error", "said"),
    [
        (lambda x, z: x, ValueError, "loss must return an array of shape"),
        (lambda x, z: 0.0, ValueError, "loss must return an array of shape"),
        (lambda x, z: (x[..., 0] + z[..., 0]).astype(str), TypeError, "loss must return real"),
    ],
)
def test_a_loss_of_the_wrong_shape_is_refused(function, error, said):
    with pytest.raises(error, match=said):
        estimate(function)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (slow_then_fast, "lipschitz must be at least 2.9"),
        (lambda x, z: x[..., 0] * math.nan, "loss must return only finite values, got nan"),
        (lambda x, z: x, "loss must return an array of shape"),
    ],
)
def test_a_loss_that_breaks_its_word_is_refused_on_a_probe(function, said):
    loss = FunctionLoss(function, lipschitz=1.0)
    with pytest.raises(ValueError, match=said):
        largest_slope(loss, [[1.0]], point=[0.0, 0.0], rng=np.random.default_rng(0))


@pytest.mark.parametrize(("loss", "columns"), LOSSES, ids=str)
def test_a_loss_that_keeps_its_word_passes_the_probe(loss, columns):
    rng = np.random.default_rng(2)
    items = rng.normal(size=(9, columns))
    found = largest_slope(loss, items, point=np.zeros(loss.dimension(columns)), rng=rng)
    assert 0.3 * loss.lipschitz < found <= loss.lipschitz * (1 + 1e-9)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"radius": 1e-13}, "radius must be between .* for these points, got 1e-13"),
        ({"radius": 1e101}, "radius must be between"),
        ({"point": "junk"}, "point must hold real numbers"),
        ({"size": 0, "point": "junk"}, "point must hold real numbers"),
        (
            {"directions": [[[1.0]]], "n_directions": 9},
            "n_directions must be 1, the number in directions",
        ),
    ],
)
def test_bad_estimates(options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        estimate(slow_then_fast, **options)


def test_a_function_is_no_loss():
    with pytest.raises(TypeError, match="loss must be a Loss, such as FunctionLoss"):
        gradient_estimate(
            [[1.0]], 1, loss=slow_then_fast, radius=1.0, point=[0.0], rng=np.random.default_rng(0)
        )
    with pytest.raises(TypeError, match="function must be callable, got None"):
        FunctionLoss(None, 1.0)


def test_small_radii_and_long_features():
    found = estimate(lambda x, z: x[..., 0], point=[0.0], radius=1e-90)
    np.testing.assert_allclose(found, 1.0)
    short = PhaseRetrieval().values(np.array([[1.0]]), np.array([[1e200, 0.0]]))
    np.testing.assert_allclose(short, 1.0)


def test_many_items_are_looked_at_in_blocks(monkeypatch):
    items, u = np.random.default_rng(0).normal(size=(30, 3)), np.eye(2)[None].repeat(30, axis=0)
    same = {"loss": PhaseRetrieval(), "radius": 0.5, "point": [0.1, 0.2], "directions": u}
    whole = gradient_estimate(items, 3, **same, rng=np.random.default_rng(1))
    monkeypatch.setattr("algorithms.zeroth_order.estimators.BLOCK", 7)
    parts = gradient_estimate(items, 3, **same, rng=np.random.default_rng(1))
    np.testing.assert_allclose(parts, whole, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Linear(0.0), "lipschitz must be positive"),
        (lambda: CappedAbsolute(1.0, -1.0), "cap must be positive"),
        (lambda: CappedAbsolute(math.nan), "lipschitz must be finite"),
        (lambda: ReluNetwork(0), "hidden must be at least 1"),
        (
            lambda: MaxDifference([[1.0]], [[1.0, 2.0]]),
            "second must have as many columns as first, 1",
        ),
        (lambda: MaxDifference([[0.0]], [[0.0]]), "pieces must be positive"),
        (lambda: FunctionLoss(slow_then_fast, math.inf), "lipschitz must be finite"),
        (lambda: FunctionLoss(slow_then_fast, 1.0, 0), "n_dimensions must be at least 1"),
        (lambda: problems.relu_network(7), "dimension must be a multiple of hidden = 5"),
        (lambda: problems.robust_regression(0), "dimension must be at least 1"),
    ],
)
def test_bad_losses(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_values_only():
    with pytest.raises(NotImplementedError, match="FunctionLoss has values but no gradients"):
        FunctionLoss(slow_then_fast, 3.0).gradients(np.zeros((1, 1)), np.zeros((1, 1)))


def test_counting():
    loss = Counted(CappedAbsolute())
    gradient_estimate(
        np.ones((3, 3)), 7, loss=loss, radius=1.0, point=[0, 0], rng=np.random.default_rng(0)
    )
    assert loss.evaluations == 2 * 3 * 2 * 7


# --- smoothing ---


def ball_density(v, d):
    return smoothing.smoothness_constant(d) / 2 * (1 - v * v) ** ((d - 1) / 2)


@pytest.mark.parametrize("d", [1, 2, 3, 10])
@pytest.mark.parametrize("s", [-2.0, -0.5, 0.0, 0.3, 0.999, 1.0])
def test_smoothed_absolute_by_quadrature(d, s):
    def by_quad(f):
        inside = [-s] if abs(s) < 1 else []
        return quad(lambda v: f(s + v) * ball_density(v, d), -1, 1, points=inside)[0]

    one = np.ones(1)
    found = smoothing.smoothed_absolute(s * one, one, d)[0]
    assert found == pytest.approx(by_quad(abs), abs=1e-7)
    slope = smoothing.smoothed_sign(s * one, one, d)[0]
    assert slope == pytest.approx(by_quad(np.sign), abs=1e-6)


@pytest.mark.parametrize("ridge", [Linear(2.0), *RIDGES], ids=str)
def test_smoothed_gradients_are_those_of_the_smoothed_values(ridge):
    rng = np.random.default_rng(3)
    items, x = rng.normal(size=(5, 4)), rng.normal(size=(3, ridge.dimension(4)))
    given = {"loss": ridge, "radius": 0.8}
    gradients = smoothing.smoothed_gradients(items, points=x, **given)
    for i, move in enumerate(1e-6 * np.eye(x.shape[1])):
        ahead, behind = (
            smoothing.smoothed_values(items, points=x + sign * move, **given) for sign in (1, -1)
        )
        np.testing.assert_allclose((ahead - behind) / 2e-6, gradients[..., i], atol=1e-6)


def test_estimated_smoothing_is_unbiased():
    """Check that estimated smoothing is unbiased.

    All values are within L radius of the value at the centre, so Hoeffding's inequality applies to
    the average.
    """
    rng = np.random.default_rng(4)
    items = rng.normal(size=(6, 4))
    given = {"loss": PhaseRetrieval(), "radius": 0.5}
    draws = smoothing.estimated_smoothing(items, 20_000, point=np.ones(3), rng=rng, **given)
    exact = smoothing.smoothed_values(items, points=np.ones((1, 3)), **given).mean()
    assert abs(draws.mean() - exact) <= math.sqrt(math.log(2e6) / (2 * 20_000))


@pytest.mark.parametrize("d", [1, 3])
def test_points_of_the_ball_are_uniform(d):
    v = smoothing.uniform_in_ball(20_000, d, rng=np.random.default_rng(6))
    assert_distribution(np.linalg.norm(v, axis=1) ** d, lambda r: np.clip(r, 0, 1))
    assert_distribution((v[:, 0] > 0) * 0.5 + np.random.default_rng(7).random(20_000) / 2,
                        lambda r: np.clip(r, 0, 1))  # fmt: skip


def test_smoothing_of_others_is_not_exact():
    with pytest.raises(TypeError, match="loss must be a Linear or a Ridge"):
        smoothing.smoothed_values([[1.0, 2.0]], loss=PIECES, radius=1.0, points=[[0.0, 0.0]])
    with pytest.raises(ValueError, match="points must have 1 columns"):
        smoothing.smoothed_values([[1.0, 2.0]], loss=RIDGES[0], radius=1.0, points=[[0.0, 0.0]])


# --- stationarity ---


@pytest.mark.slow
@settings(max_examples=30)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_the_shortest_point_of_a_hull(k, d, seed):
    vectors = np.random.default_rng(seed).normal(size=(k, d)) + 0.5
    found = stationarity.shortest_in_hull(vectors)
    assert (vectors @ found).min() >= found @ found - 1e-8  # the hull lies behind it

    def length(weights):
        return float(np.sum((weights / weights.sum() @ vectors) ** 2))

    other = minimize(length, np.full(k, 1 / k), bounds=[(1e-9, 1)] * k).fun
    assert found @ found <= other + 1e-8


def test_stationarity_in_one_dimension():
    """Compare stationarity in one dimension with values computed by hand.

    For abs(x), the value is 1 unless 0 is within the radius. The second case is a mean of two
    items.
    """
    absolute = CappedAbsolute(1.0, math.inf)
    found = stationarity.stationarity_in_one_dimension(
        [[1.0, 0.0]], loss=absolute, radius=0.5, points=[0.0, 0.4, 0.5, 2.0]
    )
    np.testing.assert_array_equal(found, [0.0, 0.0, 1.0, 1.0])
    mixed = stationarity.stationarity_in_one_dimension(
        [[1.0, 0.0], [-0.5, -0.5]], loss=absolute, radius=0.1, points=[0.5, 3.0]
    )
    np.testing.assert_allclose(mixed, [0.25, 0.75])


def test_the_estimate_lies_above_the_exact_one():
    rng = np.random.default_rng(5)
    items = np.column_stack([rng.choice([-1.0, 1.0], 9), rng.normal(size=9)])
    points = rng.normal(size=20)
    given = {"loss": PhaseRetrieval(), "radius": 0.3}
    exact = stationarity.stationarity_in_one_dimension(items, points=points, **given)
    estimates = stationarity.stationarity_estimate(
        items, 20, point=points[:, None], rng=rng, **given
    )
    assert (estimates >= exact - 1e-9).all()
    assert np.median(estimates - exact) < 1e-9


def test_bad_input_of_stationarity():
    rng = np.random.default_rng(0)
    given = {"loss": CappedAbsolute(), "radius": 0.5}
    with pytest.raises(ValueError, match="data must have 2 columns \\(d = 1\\)"):
        stationarity.stationarity_in_one_dimension([[1.0, 0.0, 0.0]], points=[0.0], **given)
    with pytest.raises(TypeError, match="loss must be a Ridge"):
        stationarity.stationarity_in_one_dimension(
            [[1.0, 0.0]], loss=PIECES, radius=1.0, points=[0.0]
        )
    with pytest.raises(ValueError, match="point must have shape"):
        stationarity.stationarity_estimate([[1.0, 0.0]], 2, point=[0.0, 1.0], rng=rng, **given)
    with pytest.raises(ValueError, match="vectors must not be empty"):
        stationarity.shortest_in_hull(np.zeros((0, 2)))


@pytest.mark.parametrize(
    "problem",
    [problems.robust_regression(4), problems.phase_retrieval(4), problems.relu_network(10)],
    ids=lambda problem: problem.name,
)
def test_problems_are_what_they_say(problem):
    items = problem.items(3000, rng=np.random.default_rng(0))
    assert problem.loss.dimension(items.shape[1]) == problem.start.size
    value = problem.loss.values(problem.start[None, None], items).mean()
    assert value <= problem.gap  # losses are at least 0
    assert problem.loss.lipschitz == 1.0
