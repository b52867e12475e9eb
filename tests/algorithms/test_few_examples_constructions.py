"""Tests of the packings, the couplings and the boosting of few_examples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.few_examples.couplings import adjusted_function, adjusted_variable, clip_to_mean
from algorithms.few_examples.packings import covariance_packing, product_packing
from algorithms.few_examples.representations import boost, boosting_rounds

HALF = [0.5, 0.5]


def test_coordinates_of_products_are_distributions():
    found = product_packing([[[0, 1], [1, 1]]], 0.5)
    assert found.shape == (1, 2, 4)
    np.testing.assert_allclose(found[0, 0], [0.125, 0.375, 0.375, 0.125])
    np.testing.assert_allclose(found.sum(axis=-1), 1)


def test_covariances_lie_between_the_identity_and_its_multiple():
    found = covariance_packing([[0, 1, 1], [1, 1, 1]], 0.4)
    np.testing.assert_allclose(found[0, 0], [1.4, -0.4 / 3, 0.4 / 3])
    eigenvalues = np.linalg.eigvalsh(found)
    assert eigenvalues.min() >= 1
    assert eigenvalues.max() <= 1.8


def test_a_variable_is_moved_to_a_mean_within_its_range():
    values = [0.0, 2.0]
    np.testing.assert_allclose(
        clip_to_mean(values, HALF, epsilon=0.5), [math.exp(-0.5), math.exp(0.5)]
    )
    found = adjusted_variable(values, HALF, epsilon=0.5, mean=1.1)
    assert found.mean() == pytest.approx(1.1)
    assert np.abs(np.log(found / 1.1)).max() <= 1.0
    np.testing.assert_array_equal(
        adjusted_variable(values, HALF, epsilon=0.1, mean=9.0), [9.0, 9.0]
    )


def test_a_function_with_bounded_ratios_is_not_changed():
    f = np.array([[1.0, 1.1], [1.2, 1.0]])
    np.testing.assert_allclose(adjusted_function(f, HALF, epsilon=0.5), f)
    changed = adjusted_function([[0.0, 1.0], [1.0, 1.0]], HALF, epsilon=0.1)
    assert changed.mean() == pytest.approx(0.75)
    assert changed.min() > 0


def test_three_votes_are_right_where_each_one_errs():
    classes = [1 - np.eye(4, dtype=int)] * 3
    chosen = boost(classes, np.ones(4, dtype=int), np.ones(4))
    assert chosen.shape == (3, 4)
    assert np.unique(chosen, axis=0).shape == (3, 4)  # each round takes another hypothesis
    assert (2 * chosen.sum(axis=0) > 3).all()
    assert boosting_rounds(0.1) == 17


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: product_packing([[0, 1]], 0.5), "code must have"),
        (lambda: product_packing([[[0, 1]]], 1.0), "bias must be below 1"),
        (
            lambda: covariance_packing([[0, 1]], 0.1),
            r"code must have words of length d \(d - 1\) / 2",
        ),
        (lambda: covariance_packing([[0]], math.nan), "spread must be"),
        (lambda: clip_to_mean([-1.0, 1.0], HALF, epsilon=0.1), "values must be at least 0"),
        (lambda: clip_to_mean([1.0, 1.0], HALF, epsilon=701.0), "epsilon must be at most 700"),
        (
            lambda: clip_to_mean([1.0, 1.0], [0.5, 0.6], epsilon=0.1),
            "probabilities must be 2 numbers",
        ),
        (lambda: adjusted_variable([1.0, 1.0], HALF, epsilon=0.1, mean=-1.0), "mean must be"),
        (
            lambda: adjusted_function([[1.0, 1.0, 1.0]], HALF, epsilon=0.1),
            "function must have 2 values",
        ),
        (lambda: boost([], [1], [1.0]), "classes must hold at least one class"),
        (lambda: boost([[[1, 0]]], [1], [1.0]), "each with 1 points"),
        (lambda: boost([[[1]]], [1], [0.0]), "distribution must be 1 weights"),
        (lambda: boosting_rounds(0.0), "alpha must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
