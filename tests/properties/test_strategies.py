"""The strategies draw from the classes that they name, and their constants are exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from dpaudit import ArgumentError, Relation
from dpaudit.properties import strategies
from dpaudit.properties.functions import check_lipschitz
from dpaudit.stats.divergence import hockey_stick


@given(strategies.user_data(n_users=(2, 4), m=3, d=2, bound=5.0))
def test_datasets_have_the_shape_and_the_bound(data):
    assert data.shape[1:] == (3, 2)
    assert 2 <= len(data) <= 4
    assert np.abs(data).max() <= 5


def test_special_values_and_repeated_users_occur():
    seen = {"nan": 0, "inf": 0, "twice": 0}

    @settings(max_examples=300, database=None)
    @given(strategies.user_data(n_users=3, special=True))
    def look(data):
        seen["nan"] += bool(np.isnan(data).any())
        seen["inf"] += bool(np.isinf(data).any())
        seen["twice"] += len(np.unique(data)) < 3

    look()
    assert min(seen.values()) > 10


def test_users_may_lack_items_and_be_empty():
    seen = {"empty": 0, "some": 0, "full": 0}

    @settings(max_examples=300, database=None)
    @given(strategies.neighbor_pairs(n_users=(1, 3), m=(1, 4), d=2, missing=True))
    def look(pair):
        for data in (pair.left, pair.right):
            lost = np.isnan(data)
            assert (lost.all(axis=2) == lost.any(axis=2)).all()  # an item is there or not
            assert (np.diff(lost[..., 0].astype(int), axis=1) >= 0).all()  # the last ones lack
            counts = (~lost[..., 0]).sum(axis=1)
            seen["empty"] += bool((counts == 0).any())
            seen["full"] += bool((counts == data.shape[1]).any())
            seen["some"] += bool(((counts > 0) & (counts < data.shape[1])).any())

    look()
    assert min(seen.values()) > 30


@pytest.mark.parametrize("relation", [Relation.REPLACE_USER, Relation.ADD_REMOVE_USER])
def test_pairs_differ_in_one_user(relation):
    @given(strategies.neighbor_pairs(n_users=(1, 4), m=2, relation=relation))
    def look(pair):
        assert pair.relation == relation
        if relation is Relation.REPLACE_USER:
            others = np.arange(len(pair.left)) != pair.user
            assert (pair.left[others] == pair.right[others]).all()
        else:
            assert abs(len(pair.left) - len(pair.right)) == 1

    look()


@given(strategies.unit_vectors(d=(1, 5)))
def test_unit_vectors(vector):
    assert np.linalg.norm(vector) == pytest.approx(1.0)


@given(strategies.rotations())
def test_rotations(matrix):
    assert matrix @ matrix.T == pytest.approx(np.eye(len(matrix)), abs=1e-12)


@given(strategies.psd_matrices(largest=3.0) | strategies.diagonally_dominant(largest=3.0))
def test_hessians(matrix):
    assert (matrix == matrix.T).all()
    assert np.linalg.eigvalsh(matrix)[0] >= -1e-12
    assert np.abs(matrix).max() <= 3.0 + 1e-12


@given(strategies.diagonally_dominant())
def test_dominance(matrix):
    off = np.abs(matrix).sum(axis=1) - np.abs(np.diag(matrix))
    assert (np.diag(matrix) >= off - 1e-12).all()


@given(strategies.losses(d=2), st.data())
def test_losses_are_convex_with_their_gradients(loss, data):
    x, y = (data.draw(strategies.vectors(d=2, bound=3.0)) for _ in range(2))
    tangent = loss.value(x) + loss.gradient(x) @ (y - x)
    assert loss.value(y) >= tangent - 1e-9
    assert loss.value(y) >= tangent + loss.strong_convexity / 2 * np.sum((x - y) ** 2) - 1e-8
    step = 1e-6 * np.array([0.6, 0.8])
    if math.isfinite(loss.smoothness):
        slope = (loss.value(x + step) - loss.value(x - step)) / 2e-6
        assert slope == pytest.approx(float(loss.gradient(x) @ (step / 1e-6)), abs=1e-4)


EXAMPLES = [
    strategies.norm_loss([0.3, -0.2]),
    strategies.linear_loss([0.5, 1.0]),
    strategies.huber_loss([0.1, 0.1], 0.25),
    strategies.logistic_loss([1.0, -2.0]),
    strategies.quadratic_loss([[2.0, 1.0], [1.0, 3.0]], [0.1, 0.2]),
]


@pytest.mark.parametrize("loss", EXAMPLES, ids=repr)
def test_constants_of_losses_are_bounds_and_are_reached(loss):
    def pairs(bound):
        grid = [np.array([a, b]) for a in (-bound, 0.0, 0.1, bound) for b in (-bound, 0.2, bound)]
        return [(x, x + h * np.array([c, s])) for x in grid for h in (1e-4, 0.05)
                for c, s in ((1, 0), (0.6, 0.8), (0.447, 0.894), (-0.447, 0.894))]  # fmt: skip

    for constant, function in ((loss.lipschitz, loss.value), (loss.smoothness, loss.gradient)):
        if math.isfinite(constant):
            check = check_lipschitz(function, constant, points=pairs(20.0) + pairs(0.01))
            check.assert_not_violated()
            if constant > 0:
                points = pairs(20.0) + pairs(0.01)
                assert check_lipschitz(function, 0.8 * constant, points=points).violated


@given(strategies.distributions(k=(1, 6)))
def test_distributions(distribution):
    assert (distribution >= 0).all()
    assert distribution.sum() == pytest.approx(1.0)


@given(strategies.close_pairs(epsilon=0.7, delta=0.1))
def test_close_pairs_are_close_both_ways(pair):
    left, right = pair
    assert hockey_stick(left, right, 0.7) <= 0.1 + 1e-12
    assert hockey_stick(right, left, 0.7) <= 0.1 + 1e-12


def test_the_worst_close_pair_is_among_them():
    tight = []

    @settings(max_examples=100, database=None)
    @given(strategies.close_pairs(epsilon=0.7, delta=0.1))
    def look(pair):
        tight.append(
            math.isclose(hockey_stick(*pair, 0.7), 0.1) and hockey_stick(*pair, 0.69) > 0.1
        )

    look()
    assert any(tight)  # few, because no case is drawn twice


@given(strategies.score_vectors(sensitivity=2.0))
def test_scores_move_by_the_sensitivity_at_most(pair):
    left, right = pair
    assert np.abs(left - right).max() <= 2.0 + 1e-12


@pytest.mark.parametrize(
    "make",
    [
        lambda: strategies.user_data(n_users=0),
        lambda: strategies.user_data(n_users=(3, 2)),
        lambda: strategies.user_data(bound=0.0),
        lambda: strategies.user_data(m=0),
        lambda: strategies.neighbor_pairs(relation=Relation.WITHIN_SENSITIVITY),
        lambda: strategies.close_pairs(epsilon=-1.0),
        lambda: strategies.close_pairs(epsilon=1.0, delta=2.0),
        lambda: strategies.psd_matrices(largest=-1.0),
    ],
)
def test_bad_arguments_are_refused_when_drawn(make):
    @given(make())
    def draw(_):
        pass

    with pytest.raises((ArgumentError, InvalidArgument)):
        draw()
