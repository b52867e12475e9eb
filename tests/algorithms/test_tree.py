"""Tests of the tree mechanism.

The tests check the nodes by enumeration, the parameter by linear algebra, and the noise by draws.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from algorithms.common import tree
from tests.statistical import assert_distribution


def ends(t):
    return {last for _, last in tree.node(t)}


@pytest.mark.parametrize("t", [*range(1, 300), 2**20, 2**20 - 1, 10**12 + 7])
def test_nodes_are_the_binary_digits(t):
    nodes = tree.node(t)
    assert [last - first + 1 for first, last in nodes] == [
        2**k for k in reversed(range(t.bit_length())) if t >> k & 1
    ]
    assert nodes[0][0] == 1
    assert nodes[-1][1] == t
    assert all(a[1] + 1 == b[0] for a, b in pairwise(nodes))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 33, 100])
def test_nodes_of_a_time_are_those_that_some_sum_uses(n):
    used = {node for t in range(1, n + 1) for node in tree.node(t)}
    for q in range(1, n + 1):
        assert set(tree.nodes_of(q, n)) == {(a, b) for a, b in used if a <= q <= b}
    assert len(tree.nodes_of(1, n)) == n.bit_length()


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_parameter_is_that_of_the_covariance(n, seed):
    rng = np.random.default_rng(seed)
    s, sigmas = rng.uniform(0, 2, n), rng.uniform(0.1, 3, n)
    noises = np.array([[b in ends(t) for b in range(1, n + 1)] for t in range(1, n + 1)], float)
    covariance = noises * sigmas**2 @ noises.T
    moved = np.tril(np.ones((n, n))) * s
    exact = math.sqrt(np.diag(moved.T @ np.linalg.solve(covariance, moved)).max())
    assert tree.tree_gdp(s, sigmas) == pytest.approx(exact, rel=1e-9)
    assert tree.tree_gdp(s, 0.5) == pytest.approx(2 * tree.tree_gdp(s, 1.0))


def test_no_square_overflows():
    assert tree.tree_gdp([1e200, 0.0], 1e200) == pytest.approx(math.sqrt(2))
    assert tree.tree_gdp([1e-200, 0.0], [1e-200, 1e100]) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 255, 256])
def test_sigma_is_exactly_enough(n):
    sigma = tree.tree_sigma(n, 3.0, 0.5)
    assert tree.tree_gdp(np.full(n, 3.0), sigma) == pytest.approx(0.5)


def test_sums_and_their_noise():
    """Check the sums and their noise.

    The noise of sum t has one share for each binary digit 1 of t.
    """
    values = np.arange(7.0)
    draws = tree.tree_sums(values, 4000, sigmas=0.5, rng=np.random.default_rng(0))
    for t in range(1, 8):
        total, scale = values[:t].sum(), 0.5 * math.sqrt(t.bit_count())
        assert_distribution(draws[:, t - 1], lambda x, m=total, s=scale: norm.cdf(x, m, s))
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(draws[:, 6], lambda x: norm.cdf(x, 21.0, 0.5))


def test_two_sums_share_the_noise_of_their_common_nodes():
    noise = tree.TreeNoise(3000, (), sigmas=np.ones(8), rng=np.random.default_rng(1))
    x = np.array([noise.next() for _ in range(8)])
    common = np.array([[len(ends(s) & ends(t)) for s in range(1, 9)] for t in range(1, 9)])
    np.testing.assert_allclose(np.cov(x), common, atol=0.3)
    with pytest.raises(ValueError, match="t must be at most 8, the number of sigmas"):
        noise.next()


def test_noise_is_fresh_in_every_coordinate_and_run():
    noise = tree.TreeNoise(4000, (3,), sigmas=np.ones(4), rng=np.random.default_rng(7))
    draws = np.array([noise.next() for _ in range(4)])
    for x in draws:
        np.testing.assert_allclose(np.cov(x.T) / x.var(), np.eye(3), atol=0.1)
        assert len(np.unique(x)) == x.size


def test_every_node_has_its_own_sigma():
    sigmas = np.array([1.0, 2.0, 3.0, 4.0])
    noise = tree.TreeNoise(20_000, (), sigmas=sigmas, rng=np.random.default_rng(8))
    found = [noise.next().var() for _ in sigmas]
    np.testing.assert_allclose(found, [1, 4, 4 + 9, 16], rtol=0.06)


def test_noise_of_scale_0_is_none():
    assert not tree.tree_sums([1.0], 0, sigmas=1.0, rng=np.random.default_rng(0)).size
    noise = tree.TreeNoise(2, (3,), sigmas=[0.0, 0.0], rng=np.random.default_rng(0))
    assert not noise.next().any()


def test_node_sums_are_sums_of_nodes():
    values = np.random.default_rng(2).normal(size=(2, 13, 3))
    sums = tree.node_sums(values)
    for b in range(1, 14):
        first = b - (b & -b)
        np.testing.assert_allclose(sums[:, b - 1], values[:, first:b].sum(axis=1), atol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tree.node(0), "t must be at least 1, got 0"),
        (lambda: tree.node(1.5), "t must be an integer, got 1.5"),
        (lambda: tree.nodes_of(3, 2), "position must be at most n = 2, got 3"),
        (lambda: tree.nodes_of(0, 2), "position must be at least 1, got 0"),
        (lambda: tree.tree_gdp([-1.0], 1.0), "sensitivities must all be at least 0"),
        (lambda: tree.tree_gdp([], 1.0), "sensitivities must not be empty"),
        (lambda: tree.tree_gdp([1.0, 2.0], [1.0]), "sigmas must be one number, or one number"),
        (lambda: tree.tree_gdp([1.0], 0.0), "sigmas must all be positive, got 0.0"),
        (lambda: tree.tree_gdp([math.nan], 1.0), "sensitivities must hold only finite"),
        (lambda: tree.tree_gdp([1e200], 1e-200), "sensitivities / sigmas must be finite"),
        (lambda: tree.node_sums([1.0]), "values must have at least 2 dimensions"),
        (
            lambda: tree.TreeNoise(1, (), sigmas=[-1.0], rng=np.random.default_rng(0)),
            "sigmas must be at least 0, got -1.0",
        ),
        (lambda: tree.tree_sigma(0, 1.0, 1.0), "n must be at least 1"),
        (lambda: tree.tree_sigma(1, 1.0, math.inf), "rho must be finite"),
    ],
)
def test_bad_input(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
