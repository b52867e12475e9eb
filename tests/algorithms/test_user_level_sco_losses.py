"""Losses, domains and populations, tested against differences and against their constants."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from algorithms.user_level_sco import problems
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import (
    Huber,
    Linear,
    Logistic,
    MatrixQuadratic,
    Quadratic,
    VaryingQuadratic,
    users_of,
)
from tests.statistical import assert_frequencies

H = [[2.0, -0.5, 0.5], [-0.5, 1.0, 0.25], [0.5, 0.25, 0.75]]
LOSSES = [
    Linear(),
    Quadratic(1.5),
    VaryingQuadratic(2.0),
    Huber(0.8, curvature=1.5),
    Huber(0.8, separable=True),
    Logistic(3.0),
    MatrixQuadratic(H),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)
DOMAINS = [Ball(1.3), Box(0.7)]


def items_for(loss, n, rng):
    z = rng.uniform(-1, 1, size=(n, 3))
    if isinstance(loss, VaryingQuadratic):
        return np.column_stack([z, rng.uniform(0, 2, size=n)])
    if isinstance(loss, Logistic):
        return np.column_stack([z, rng.choice([-1.0, 1.0], size=n)])
    return z


def inside(domain, n, rng):
    return domain.project(rng.normal(size=(n, 3)) * 2)


@every_loss
def test_gradients_are_those_of_the_values(loss):
    step = 1e-6
    rng = np.random.default_rng(4)
    items, x = items_for(loss, 5, rng), rng.normal(size=(4, 3))
    found = loss.gradients(x, items[:, None])
    numeric = np.stack(
        [
            (loss.values(x + step * e, items) - loss.values(x - step * e, items)) / (2 * step)
            for e in np.eye(3)
        ],
        axis=2,
    )
    np.testing.assert_allclose(np.broadcast_to(found, numeric.shape), numeric, atol=1e-7)


@every_loss
def test_users_have_the_mean_gradient_of_their_items(loss):
    rng = np.random.default_rng(5)
    users = items_for(loss, 12, rng).reshape(4, 3, -1)
    x = rng.normal(size=(2, 3))
    each = loss.gradients(x, users.reshape(12, 1, -1))
    np.testing.assert_allclose(
        loss.gradients(x, users), each.reshape(len(each), 4, 3, 3).mean(axis=2), atol=1e-12
    )


@every_loss
@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_constants_bound_gradients_and_their_changes(loss, domain, norm):
    order = 2 if norm == "l2" else np.inf
    rng = np.random.default_rng(6)
    items, x, y = items_for(loss, 40, rng), inside(domain, 60, rng), inside(domain, 60, rng)
    found = loss.gradients(x, items[:, None])
    longest = np.linalg.norm(found, order, axis=-1).max()
    assert longest <= loss.longest_gradient(items, domain, norm) * (1 + 1e-12)
    assert longest >= 0.4 * loss.longest_gradient(items, domain, norm)
    if norm == "linf" and not loss.diagonally_dominant:
        with pytest.raises(ValueError, match="loss must"):
            loss.smoothness(norm)
        return
    moved = np.linalg.norm(found - loss.gradients(y, items[:, None]), order, axis=-1)
    apart = np.linalg.norm(x - y, order, axis=-1)[:, None]
    assert (moved <= loss.smoothness(norm) * apart * (1 + 1e-12)).all()


@every_loss
def test_losses_are_convex(loss):
    rng = np.random.default_rng(7)
    items, x, y = items_for(loss, 20, rng), rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    middle = loss.values((x + y) / 2, items)
    assert (middle <= (loss.values(x, items) + loss.values(y, items)) / 2 + 1e-12).all()


def test_the_smoothness_of_a_matrix_is_its_norm():
    loss = MatrixQuadratic(H)
    assert loss.smoothness("l2") == pytest.approx(np.linalg.norm(H, 2))
    assert loss.smoothness("linf") == pytest.approx(np.linalg.norm(H, np.inf))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Quadratic(0.0), "curvature must be positive, got 0.0"),
        (lambda: Huber(math.nan), "threshold must be finite, got nan"),
        (lambda: Logistic(-1.0), "feature_norm must be positive"),
        (lambda: MatrixQuadratic([[1.0, 2.0], [2.0, 3.0]]), "got the diagonal entry 1.0 in row 0,"),
        (lambda: MatrixQuadratic([[1.0, 0.5], [0.0, 3.0]]), "matrix must be square and symmetric"),
        (lambda: Ball(-1.0), "radius must be positive"),
        (lambda: Box(math.inf), "radius must be finite"),
    ],
)
def test_constants_are_checked(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("loss", "data", "words"),
    [
        (Linear(), [[[1.0]], [[1.0], [2.0]]], "got users or items of different lengths"),
        (Linear(), [[1.0, 2.0]], "data must have 3 dimensions"),
        (Linear(), [[[math.nan]]], "data must hold only finite"),
        (Linear(), np.zeros((0, 2, 1)), "data must not be empty"),
        (VaryingQuadratic(1.0), [[[0.0, 2.0]]], "curvatures from 0 to 1.0"),
        (VaryingQuadratic(1.0), [[[0.5]]], r"items of two columns, \(z, h\), got 1 column"),
        (Logistic(1.0), [[[0.5, 0.0]]], "labels -1 and 1"),
        (Logistic(1.0), [[[2.0, 1.0]]], "features of norm at most 1.0, got 2.0"),
        (Logistic(1.0), [[[2.0]]], r"items of at least two columns, \(a, y\), got 1 column"),
        (MatrixQuadratic(H), [[[0.0, 0.0]]], "items of 3 coordinates, got 2"),
    ],
)
def test_items_of_another_loss_are_refused(loss, data, words):
    with pytest.raises(ValueError, match=words):
        users_of(data, loss)


# --- domains --------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@given(
    arrays(float, (5, 3), elements=st.floats(-9, 9)),
    arrays(float, (5, 3), elements=st.floats(-9, 9)),
)
def test_projections_are_to_the_nearest_point(domain, x, y):
    p, other = domain.project(x), domain.project(y)
    # The variational inequality is <x - p, z - p> <= 0 for all z of the domain.
    assert (((x - p) * (other - p)).sum(axis=1) <= 1e-9).all()
    np.testing.assert_allclose(domain.project(p), p, rtol=1e-15)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_farthest_point_is_attained(domain, norm):
    rng = np.random.default_rng(8)
    points = rng.normal(size=(6, 2))
    angles = np.linspace(0, 2 * np.pi, 2001)
    rim = domain.project(9 * np.column_stack([np.cos(angles), np.sin(angles)]))
    apart = np.linalg.norm(points[:, None] - rim, 2 if norm == "l2" else np.inf, axis=2)
    np.testing.assert_allclose(apart.max(axis=1), domain.farthest(points, norm), rtol=1e-4)


# --- populations ----------------------------------------------------------------------------------

POPULATIONS = [
    problems.linear(Ball(1.0), bias=0.3, size=2.0, dimension=3),
    problems.linear(Box(1.0), bias=0.3, dimension=3),
    problems.pulled(Ball(2.0), share=0.2, dimension=3),
    problems.pulled(Box(1.0), share=0.2, dimension=3),
    problems.cube(Quadratic(), Ball(1.0), center=[0.1, -0.2], half_width=0.5),
    problems.huber(Ball(1.0), center=[0.3, 0.1], half_width=0.6, threshold=0.5),
    problems.huber(Box(1.0), center=[0.3, 0.1], half_width=0.6, threshold=0.5),
    problems.logistic(Ball(2.0), weights=[0.5, -1.0], feature_norm=1.5),
    problems.chain(Box(1.0), center=[0.2, 0.0, -0.4], half_width=0.3),
]
every_population = pytest.mark.parametrize("problem", POPULATIONS, ids=lambda p: repr(p.loss))


@every_population
def test_no_point_of_the_domain_is_better_than_the_minimiser(problem):
    best = problem.minimiser
    rng = np.random.default_rng(9)
    others = problem.domain.project(best + rng.normal(size=(200, best.size)))
    # For convex F, first-order optimality is enough, which is <grad F(x*), y - x*> >= 0.
    assert ((others - best) @ problem.gradient(best) >= -1e-12).all()
    assert (problem.excess(others) >= -1e-12).all()
    assert problem.excess(best[None])[0] == 0.0


@pytest.mark.statistical
@pytest.mark.parametrize("heterogeneity", [0.0, 0.2, 3.0])
def test_users_follow_the_population_on_average(heterogeneity):
    problem = POPULATIONS[0]
    rng = np.random.default_rng(10)
    data = problem.sample(4000, 3, heterogeneity=heterogeneity, rng=rng)
    first = data[:, 0]  # the first items of the users are independent for every heterogeneity
    which = (first[:, None] == problem.items).all(axis=2).argmax(axis=1)
    assert_frequencies(np.bincount(which, minlength=6), problem.probabilities)


def test_a_pulled_problem_has_a_gradient_of_its_share():
    problem = problems.pulled(Ball(2.0), share=0.3, dimension=50)
    gradient = problem.gradient(np.zeros(50))
    assert np.linalg.norm(gradient) == pytest.approx(0.3)
    assert np.linalg.norm(problem.items, axis=1).max() == pytest.approx(1.0)
    assert problem.excess(np.zeros((1, 50)))[0] == pytest.approx(0.6)


def test_heterogeneous_users_repeat_themselves():
    problem = POPULATIONS[0]
    rng = np.random.default_rng(11)

    def alike(heterogeneity):
        data = problem.sample(3000, 2, heterogeneity=heterogeneity, rng=rng)
        return (data[:, 0] == data[:, 1]).all(axis=1).mean()

    assert alike(0.0) < 0.25 < 0.6 < alike(5.0)


def test_outliers_replace_whole_users():
    problem = POPULATIONS[0]
    rng = np.random.default_rng(12)
    data = problem.sample(40, 2, rng=rng)
    bad = problem.with_outliers(data, 0.1, [9.0, 9.0, 9.0], rng=rng)
    changed = (bad != data).any(axis=(1, 2))
    assert changed.sum() == 4
    assert (bad[changed] == 9.0).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: problems.linear(Ball(1.0), bias=1.0), "bias must be strictly between 0 and 1"),
        (lambda: problems.pulled(Ball(1.0), share=1.5, dimension=2), "share must be"),
        (
            lambda: problems.cube(Quadratic(), Ball(1.0), center=[2.0], half_width=1.0),
            "center must be in the domain",
        ),
        (
            lambda: problems.cube(Quadratic(), Box(1.0), center=[0.0] * 13, half_width=1.0),
            "at most 12 coordinates",
        ),
        (lambda: problems.chain(Box(1.0), center=[0.0], half_width=1.0, coupling=2.0), "coupling"),
        (
            lambda: POPULATIONS[0].sample(3, 2, heterogeneity=-1.0, rng=np.random.default_rng(0)),
            "heterogeneity must be at least 0",
        ),
    ],
)
def test_bad_populations_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
