"""Tests of estimators, oracles and the conversion.

The estimators are exact at given directions and unbiased over random directions.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.common.tree import node_sums
from algorithms.zeroth_order import accounts, conversion, oracles, smoothing
from algorithms.zeroth_order.estimators import difference_estimate, gradient_estimate
from algorithms.zeroth_order.losses import CappedAbsolute, Counted, Linear, PhaseRetrieval
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced
from audits.zeroth_order import worst_cases
from tests.statistical import assert_distribution

LOSS = PhaseRetrieval(1.5)
RADIUS = 0.4


def unit(shape, seed):
    u = np.random.default_rng(seed).normal(size=shape)
    return u / np.linalg.norm(u, axis=-1, keepdims=True)


def written_out(loss, items, x, y, u, radius):
    """Evaluate line 3 of Algorithm 1 in loops, or line 3 of Algorithm 2 if there is a point y."""
    b, j, d = u.shape
    total = np.zeros(d)
    for i, k in product(range(b), range(j)):
        ahead = loss.values(x + radius * u[i, k], items[i])
        if y is None:
            behind, factor = loss.values(x - radius * u[i, k], items[i]), d / (2 * radius)
        else:
            behind, factor = loss.values(y + radius * u[i, k], items[i]), d / radius
        total += factor * (ahead - behind) * u[i, k]
    return total / (b * j)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_estimates_at_given_directions(b, j, d, seed):
    rng = np.random.default_rng(seed)
    items, u = rng.normal(size=(b, d + 1)), unit((b, j, d), seed)
    x, y = rng.normal(size=(2, d))
    same = {"loss": LOSS, "radius": RADIUS, "point": x, "directions": u, "rng": rng}
    found = gradient_estimate(items, 2, **same)
    np.testing.assert_allclose(found, [written_out(LOSS, items, x, None, u, RADIUS)] * 2, atol=1e-9)
    found = difference_estimate(items, 2, previous=y, **same)
    np.testing.assert_allclose(found, [written_out(LOSS, items, x, y, u, RADIUS)] * 2, atol=1e-9)


def circle(n):
    angles = 2 * np.pi * (np.arange(n) + 0.5) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_estimates_are_unbiased_by_quadrature():
    """Check that the estimates are unbiased, by averaging over all directions of the circle.

    The average is the smoothed gradient (Lemmas 3.1 and 3.2).
    """
    items = np.array([[0.6, 0.3, 0.2], [-0.5, 1.0, -0.1]])
    x, y = np.array([0.1, 0.2]), np.array([0.3, -0.1])
    u = np.tile(circle(4000), (2, 1, 1))
    same = {"loss": LOSS, "radius": RADIUS, "directions": u, "rng": np.random.default_rng(0)}
    exact = smoothing.smoothed_gradients(
        items, loss=LOSS, radius=RADIUS, points=np.array([x, y])
    ).mean(axis=1)
    found = gradient_estimate(items, 1, point=x, **same)[0]
    np.testing.assert_allclose(found, exact[0], atol=1e-5)
    found = difference_estimate(items, 1, point=x, previous=y, **same)[0]
    np.testing.assert_allclose(found, exact[0] - exact[1], atol=1e-5)


def test_fresh_directions_have_the_right_moments():
    """Check the mean L z and the second moment d L^2 for linear losses in one direction.

    By Hoeffding, each check fails by chance with probability at most 1e-6.
    """
    d, size = 3, 400_000
    z = np.array([[0.0, 0.0, 1.0]])
    draws = gradient_estimate(
        z, size, loss=Linear(), radius=1.0, point=np.zeros(d), n_directions=1,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    lengths = np.sum(draws**2, axis=1)  # d^2 u_3^2, in [0, d^2]
    room = d * d * math.sqrt(math.log(2e6) / (2 * size))  # Hoeffding
    assert abs(lengths.mean() - d) <= room
    assert abs(draws[:, 2].mean() - 1) <= room
    assert abs(draws[:, 0].mean()) <= 2 * room
    assert abs(lengths.mean() - (d - 1)) > room  # a mutant has d - 1


@given(st.integers(0, 2**32 - 1))
def test_sensitivities(seed):
    rng = np.random.default_rng(seed)
    b, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    left, u = rng.normal(size=(b, d + 1)), unit((b, d, d), seed)
    right = left.copy()
    right[0] = rng.normal(size=d + 1)
    x, y = rng.normal(size=(2, d))
    same = {"loss": LOSS, "radius": RADIUS, "point": x, "directions": u, "rng": rng}
    moved = gradient_estimate(left, 1, **same) - gradient_estimate(right, 1, **same)
    assert np.linalg.norm(moved) <= 2 * d * LOSS.lipschitz / b + 1e-9
    moved = difference_estimate(left, 1, previous=y, **same) - difference_estimate(
        right, 1, previous=y, **same
    )
    bound = 2 * d * LOSS.lipschitz * np.linalg.norm(x - y) / (b * RADIUS)
    assert np.linalg.norm(moved) <= bound + 1e-9


# --- oracles ---


def test_an_epoch_written_out():
    rng = np.random.default_rng(2)
    oracle = VarianceReduced(3, 2, 0.0)
    items, u = rng.normal(size=(13, 3)), unit((13, 2, 2), 2)
    w = rng.normal(size=(6, 2))
    g = [written_out(LOSS, items[:3], w[0], None, u[:3], RADIUS)]
    for t in range(1, 6):
        batch = slice(1 + 2 * t, 3 + 2 * t)
        g.append(g[-1] + written_out(LOSS, items[batch], w[t], w[t - 1], u[batch], RADIUS))
    given = {"loss": LOSS, "oracle": oracle, "radius": RADIUS, "points": w, "directions": u}
    found = oracles.oracle_gradients(items, 1, **given, rng=rng)[0]
    np.testing.assert_allclose(found, g, atol=1e-9)
    centers = oracles.oracle_centers(items, 1, **given, rng=rng).reshape(6, 2)
    terms = np.diff(np.array(g), axis=0, prepend=np.zeros((1, 2)))
    np.testing.assert_allclose(centers, node_sums(terms), atol=1e-9)


def test_noise_of_an_epoch_is_that_of_the_tree():
    rng = np.random.default_rng(3)
    items, w = np.zeros((6, 2)), np.zeros((4, 2))
    given = {"loss": Linear(), "radius": 1.0, "points": w, "rng": rng}
    tree = oracles.oracle_gradients(items, 20_000, oracle=VarianceReduced(3, 1, 2.0), **given)
    np.testing.assert_allclose(tree.var(axis=0), 4 * np.outer([1, 1, 2, 1], [1, 1]), rtol=0.1)
    naive = oracles.oracle_gradients(items, 20_000, oracle=Naive(1, 2.0), **given)
    np.testing.assert_allclose(naive.var(axis=0), np.full((4, 2), 4.0), rtol=0.1)
    assert abs(np.corrcoef(naive[:, 2, 0], naive[:, 1, 0])[0, 1]) < 0.05
    assert np.corrcoef(tree[:, 2, 0], tree[:, 1, 0])[0, 1] == pytest.approx(2**-0.5, abs=0.05)


def test_noise_of_an_epoch_is_fresh_in_every_coordinate_and_run():
    items, w = np.zeros((6, 3)), np.zeros((4, 3))
    for oracle in (VarianceReduced(3, 1, 2.0), Naive(1, 2.0)):
        draws = oracles.oracle_gradients(
            items, 4000, loss=Linear(), oracle=oracle, radius=1.0, points=w,
            rng=np.random.default_rng(11),
        )  # fmt: skip
        for t in range(4):
            x = draws[:, t]
            np.testing.assert_allclose(np.cov(x.T) / x.var(), np.eye(3), atol=0.1)
            assert len(np.unique(x)) == x.size


def test_directions_are_fresh_for_every_item_and_run():
    """Check that directions are drawn anew for every item and every run.

    Two items have the same linear loss. The estimates of the two items are independent, and each
    estimate has mean L z.
    """
    z = np.array([[0.0, 1.0]])
    same = {"loss": Linear(), "radius": 1.0, "point": [0.0, 0.0], "n_directions": 1}
    one = gradient_estimate(z, 40_000, **same, rng=np.random.default_rng(0))
    two = gradient_estimate(np.repeat(z, 2, axis=0), 40_000, **same, rng=np.random.default_rng(0))
    assert two[:, 1].var() == pytest.approx(one[:, 1].var() / 2, rel=0.05)
    assert len(np.unique(one[:, 1])) == len(one)
    angles = np.unwrap(2 * np.arctan2(one[:, 1], one[:, 0])) % (
        2 * np.pi
    )  # u and -u give the same angle
    assert np.histogram(angles, bins=8)[0].min() > 0.9 * len(one) / 8


def test_naive_asks_in_one_direction():
    loss = Counted(Linear())
    oracles.oracle_gradients(
        np.ones((6, 3)), 2, loss=loss, oracle=Naive(3, 1.0), radius=1.0, points=np.zeros((2, 3)),
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert loss.evaluations == 2 * 6 * 2


def test_an_epoch_ends():
    oracle = oracles.EpochOracle(
        np.ones((2, 1)), 1, loss=Linear(), oracle=VarianceReduced(1, 1, 0.0), radius=1.0, rounds=2,
        noise_multiplier=1.0, rng=np.random.default_rng(0),
    )  # fmt: skip
    oracle.query(np.zeros(1))
    oracle.query(np.zeros(1))
    with pytest.raises(ValueError, match="t must be at most 2"):
        oracle.query(np.zeros(1))


@pytest.mark.parametrize("position", range(5))
def test_worst_cases_attain_the_account(position):
    """Check that the worst cases attain the bound of the account.

    With D = 1, an item with reversed sign at position 0 moves the white coordinates by exactly mu
    sigma. At other positions, the move is at most mu sigma.
    """
    oracle = VarianceReduced(2, 1, 0.7)
    w = np.array([[0.0], [0.25], [-0.25], [0.25]])
    pair = worst_cases.flipped(5, position)
    given = {"loss": worst_cases.loss(), "oracle": oracle, "radius": 1.0, "points": w}
    rng = np.random.default_rng(position)
    moved = oracles.oracle_centers(pair.left, 1, **given, rng=rng) - oracles.oracle_centers(
        pair.right, 1, **given, rng=rng
    )
    mu = accounts.path_gdp(oracle, points=w, radius=1.0, lipschitz=1.0)
    assert np.linalg.norm(moved) / 0.7 <= mu + 1e-12
    if position == 0:  # s_1 = 2 / 2 is in 3 nodes, s_3 = 1 is in 2 nodes
        assert np.linalg.norm(moved) / 0.7 == pytest.approx(mu)


# --- Algorithm 3 ---

PLAN = Plan(3, 2, RADIUS, RADIUS / 3, 0.05, VarianceReduced(2, 1, 0.1))


class Recording(conversion.ProjectedSubgradient):
    """A learner that records its plays and the received gradients."""

    log: list = []  # noqa: RUF012

    def play(self):
        self.log.append(("play", super().play().copy()))
        return super().play()

    def receive(self, gradients):
        self.log.append(("told", gradients))
        super().receive(gradients)


def recorded(plan, items, size=4, seed=5):
    Recording.log = []
    found = conversion.private_zeroth_order(
        items, size, loss=LOSS, plan=plan, start=[0.2, 0.1],
        learner=lambda size, d: Recording(size, d, domain=plan.domain, step=plan.step),
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return found, Recording.log


def test_the_conversion_plays_as_written():
    items = np.random.default_rng(4).normal(size=(8, 3))
    found, log = recorded(PLAN, items)
    plays = [step for word, step in log if word == "play"]
    told = [gradient for word, gradient in log if word == "told"]
    assert len(plays) == 6
    assert len(told) == 4  # the learner does not receive the last gradient of an epoch
    x = np.tile([0.2, 0.1], (4, 1))
    centers = []
    for k in range(2):
        first = x.copy()
        np.testing.assert_array_equal(plays[3 * k], 0)  # the learner is restarted
        for t in range(3):
            if t:
                moved = plays[3 * k + t - 1] - PLAN.step * told[2 * k + t - 1]
                length = np.linalg.norm(moved, axis=1, keepdims=True)
                moved = moved * np.minimum(1, PLAN.domain / length)
                np.testing.assert_allclose(plays[3 * k + t], moved, atol=1e-12)
            x = x + plays[3 * k + t]
        centers.append((first, x))
    inside = [
        np.linalg.norm(found - first, axis=1) <= PLAN.domain * 3 + 1e-12 for first, _ in centers
    ]
    assert (inside[0] | inside[1]).all()
    default = conversion.private_zeroth_order(
        items, 4, loss=LOSS, plan=PLAN, start=[0.2, 0.1], rng=np.random.default_rng(5)
    )
    np.testing.assert_array_equal(default, found)


def test_the_answer_is_one_of_the_averages_of_all_epochs():
    items = np.random.default_rng(9).normal(size=(8, 3))
    given = {"loss": LOSS, "plan": PLAN, "start": [0.2, 0.1]}
    averages, found = (
        conversion.private_zeroth_order(
            items, 50, transcript=both, **given, rng=np.random.default_rng(1)
        )
        for both in (True, False)
    )
    assert averages.shape == (50, 2, 2)
    same = (averages == found[:, None]).all(axis=-1)
    assert (same.sum(axis=1) == 1).all()
    assert 5 < same[:, 0].sum() < 45


def test_the_last_gradient_of_an_epoch_is_never_used():
    """Check that the last gradient of an epoch is never used.

    The noise of T - 1 sums is therefore enough for privacy.
    """
    items = np.random.default_rng(6).normal(size=(8, 3))
    other = items.copy()
    other[[3, 7]] = 100.0  # the items of round 3
    np.testing.assert_array_equal(recorded(PLAN, items)[0], recorded(PLAN, other)[0])
    other[2] = 100.0  # an item of round 2
    assert not np.array_equal(recorded(PLAN, items)[0], recorded(PLAN, other)[0])


class Watched(Linear):
    """A loss that records the points at which it is evaluated."""

    def values(self, points, items):
        self.points.append(points)
        return super().values(points, items)


def test_every_line_of_the_conversion():
    """Check every line of the conversion.

    The iterate is w_t = x_t + s_t Delta_t, where s_t is drawn for each run. The output averages w,
    and x moves by Delta. The gradients are taken at w.
    """
    loss = Watched()
    object.__setattr__(loss, "points", [])
    plan = Plan(3, 2, 0.5, 0.5 / 3, 0.2, VarianceReduced(2, 1, 0.3))
    Recording.log = []
    averages = conversion.private_zeroth_order(
        np.random.default_rng(0).normal(size=(8, 2)), 500, loss=loss, plan=plan, start=[0.2, 0.1],
        learner=lambda size, d: Recording(size, d, domain=plan.domain, step=plan.step),
        transcript=True, rng=np.random.default_rng(1),
    )  # fmt: skip
    plays = [step for word, step in Recording.log if word == "play"]
    # Grad is evaluated at w +- delta u. Diff is evaluated at w + delta u and at w_{t-1} + delta u.
    queried = list(zip(loss.points[::2], loss.points[1::2], strict=True))
    assert len(queried) == 6
    x = np.tile([0.2, 0.1], (500, 1))
    shares = []
    for k in range(2):
        total, previous = np.zeros((500, 2)), None
        for t in range(3):
            delta = plays[3 * k + t]
            ahead, behind = queried[3 * k + t]
            w = (ahead + behind)[:, 0, 0] / 2 if t == 0 else previous + (ahead - behind)[:, 0, 0]
            inside = np.sum((w - x) * delta, axis=1) / np.maximum(np.sum(delta**2, axis=1), 1e-300)
            np.testing.assert_allclose(w, x + inside[:, None] * delta, atol=1e-9)
            if t:
                shares.append(inside)
            total += w
            x, previous = x + delta, w
        np.testing.assert_allclose(averages[:, k], total / 3, atol=1e-9)
    shares = np.array(shares)
    assert_distribution(shares.ravel(), lambda s: np.clip(s, 0, 1))
    assert len(np.unique(shares.round(9))) == shares.size
    with pytest.raises(AssertionError):
        assert_distribution(shares.ravel() * 1.5, lambda s: np.clip(s, 0, 1))


def test_epochs_use_items_of_their_own():
    """Check that each epoch uses its own items.

    An item of the second epoch does not move the average of the first epoch, and conversely.
    """
    items = np.random.default_rng(10).normal(size=(8, 3))
    given = {"loss": LOSS, "plan": PLAN, "start": [0.2, 0.1], "transcript": True}

    def averages(data):
        return conversion.private_zeroth_order(data, 4, **given, rng=np.random.default_rng(2))

    later = items.copy()
    later[4] = 100.0
    np.testing.assert_array_equal(averages(later)[:, 0], averages(items)[:, 0])
    assert not np.allclose(averages(later)[:, 1], averages(items)[:, 1])
    first = items.copy()
    first[:4] = 0.0
    silent = items.copy()
    silent[4:] = 0.0
    assert not np.allclose(averages(first)[:, 0], averages(items)[:, 0])
    still = averages(np.zeros((8, 3)))
    assert not np.allclose(averages(silent)[:, 0], still[:, 0])


def test_a_learner_that_remembers_is_not_told_the_last_gradient():
    """Check that a learner that keeps its state does not receive the last gradient.

    One object serves all epochs. At T = 1, the object receives nothing, so the data do not matter.
    """
    plan = replace(PLAN, rounds=1, oracle=VarianceReduced(2, 1, 0.0))
    kept = {}

    def learner(size, d):
        return kept.setdefault(
            "one", conversion.ProjectedSubgradient(size, d, domain=1.0, step=1.0)
        )

    found = []
    for data in (np.zeros((4, 3)), np.full((4, 3), 9.0)):
        kept.clear()
        found.append(
            conversion.private_zeroth_order(
                data, 3, loss=LOSS, plan=plan, start=[0.2, 0.1], learner=learner,
                rng=np.random.default_rng(0),
            )
        )  # fmt: skip
    np.testing.assert_array_equal(*found)


def test_other_first_steps_need_a_plan_for_them():
    class Eager(conversion.ProjectedSubgradient):
        def play(self):
            return np.full((2, 2), 0.05)

    def run(plan):
        return conversion.private_zeroth_order(
            np.ones((8, 3)), 2, loss=LOSS, plan=plan, start=[0.0, 0.0],
            learner=lambda size, d: Eager(size, d, domain=plan.domain, step=plan.step),
            rng=np.random.default_rng(0),
        )  # fmt: skip

    with pytest.raises(ValueError, match="learner must return Delta_1 = 0"):
        run(PLAN)
    assert np.isfinite(run(replace(PLAN, first_step_is_zero=False))).all()


def test_with_one_round_the_data_do_not_matter():
    plan = replace(PLAN, rounds=1)
    same = {"loss": LOSS, "plan": plan, "start": [0.2, 0.1]}
    for data in (np.zeros((4, 3)), np.full((4, 3), 9.0)):
        found = conversion.private_zeroth_order(data, 3, **same, rng=np.random.default_rng(0))
        np.testing.assert_array_equal(found, np.tile([0.2, 0.1], (3, 1)))


def test_evaluations_are_as_planned():
    for oracle in (VarianceReduced(3, 2, 0.1), Naive(2, 0.1)):
        plan = replace(PLAN, oracle=oracle)
        loss = Counted(LOSS)
        items = np.ones((plan.n_points + 3, 3))
        conversion.private_zeroth_order(
            items, 5, loss=loss, plan=plan, start=[0.0, 0.0], rng=np.random.default_rng(0)
        )
        assert loss.evaluations == 5 * plan.evaluations(2)


def test_users_own_one_item():
    items = np.random.default_rng(7).normal(size=(8, 3))
    same = {"loss": LOSS, "plan": PLAN, "start": [0.0, 0.0]}
    draws = [
        conversion.private_zeroth_order(data, 2, **same, rng=np.random.default_rng(0))
        for data in (items, items[:, None])
    ]
    np.testing.assert_array_equal(*draws)


def test_it_descends():
    """Check that the iterates descend on a slope without noise.

    After its first gradient, the point moves by D per round.
    """
    plan = Plan(20, 5, 1.0, 0.05, 10.0, VarianceReduced(21, 1, 0.0))
    items = np.tile([1.0, 0.0], (plan.n_points, 1))
    found = conversion.private_zeroth_order(
        items, 50, loss=Linear(), plan=plan, start=[0.0, 0.0], rng=np.random.default_rng(8)
    )
    assert found[:, 0].max() < 0
    assert found[:, 0].min() < -3.5


class Far(conversion.OnlineLearner):
    """A learner whose plays are too long or have the wrong shape."""

    def __init__(self, steps):
        self.steps = steps

    def play(self):
        return self.steps

    def receive(self, gradients):
        raise AssertionError


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (np.full((2, 2), 1.0), "learner must return steps of length at most"),
        (np.full((2, 2), math.nan), "learner must return steps of length at most"),
        (np.zeros((2, 3)), r"learner must return real numbers of shape \(2, 2\)"),
        (None, r"learner must return real numbers of shape \(2, 2\), got object"),
        (np.full((2, 2), 0.01), "learner must return Delta_1 = 0"),
    ],
)
def test_learners_stay_in_their_domain(steps, said):
    with pytest.raises(ValueError, match=said):
        conversion.private_zeroth_order(
            np.ones((8, 3)), 2, loss=LOSS, plan=PLAN, start=[0.0, 0.0],
            learner=lambda size, d: Far(steps), rng=np.random.default_rng(0),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"plan": replace(PLAN, dimension=3)}, "dimension must be 3, because"),
        (
            {"plan": replace(PLAN, lipschitz=1.0)},
            "lipschitz constant of the loss must be at most 1.0",
        ),
        ({"data": np.ones((7, 3))}, "data must hold at least 8 items, got 7"),
        ({"start": [1e12, 0.0]}, "radius must be between"),
        ({"data": np.ones((8, 2, 3))}, "data must hold exactly one item for each user, got 2"),
        ({"loss": CappedAbsolute(), "data": np.ones((8, 1))}, "data must have features"),
    ],
)
def test_what_a_plan_is_not_for(changes, said):
    given = {"data": np.ones((8, 3)), "loss": LOSS, "plan": PLAN, "start": [0.0, 0.0]} | changes
    with pytest.raises(ValueError, match=said):
        conversion.private_zeroth_order(given.pop("data"), 2, **given, rng=np.random.default_rng(0))
