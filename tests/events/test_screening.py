"""Tests that differences pass the screening, and that chance rarely passes."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.events.screening import (
    atoms_excess,
    binned_excess,
    chi_square_excess,
    left_over,
    share_gap,
)


def test_counts_of_hand() -> None:
    a, b = np.array([60, 40]), np.array([40, 60])
    # Each cell contributes (60 - 50)^2 / 25, with one degree of freedom.
    assert chi_square_excess(a, b) == pytest.approx(8 - (1 + 3.1 * np.sqrt(2) + 6))
    assert chi_square_excess(a * 4, b * 4) == pytest.approx(32 - (1 + 3.1 * np.sqrt(2) + 6))
    assert chi_square_excess(np.array([5, 0]), np.array([9, 0])) == -np.inf
    assert chi_square_excess(np.array([5, 3]), np.array([0, 0])) == -np.inf


def test_one_cell_is_not_drowned_by_hundreds() -> None:
    a = np.full(500, 30)
    b = a.copy()
    b[7], b[8] = 60, 0
    a[7], a[8] = 0, 60
    assert chi_square_excess(a, b) > 0


def test_gaps_are_a_cell() -> None:
    x = np.random.default_rng(0).normal(size=2000)
    for excess in (binned_excess, atoms_excess):
        assert excess(np.where(np.arange(2000) < 300, np.nan, x), x[::-1]) > 0
        assert excess(np.full(50, np.nan), np.full(50, np.nan)) == -np.inf


def test_equal_distributions_seldom_pass() -> None:
    """Check that equal distributions rarely pass the screening.

    By the tail of chi-square, each of 400 cases passes with probability about 1e-4. More than 3
    passes have probability 1e-7.
    """
    rng = np.random.default_rng(0)
    passed = sum(
        binned_excess(rng.normal(size=1000), rng.normal(size=1000)) > 0 for _ in range(400)
    )
    assert passed <= 3


def test_gaps_of_shares_are_in_standard_errors() -> None:
    gaps = share_gap(np.array([60, 0]), np.array([40, 0]), 100, 100)
    assert gaps[0] == pytest.approx(0.2 / np.sqrt(0.5 * 0.5 * 2 / 100))
    assert gaps[1] == 0


def _sides(rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.integers(2, size=(4000, 3)) for _ in range(2)]


def test_what_a_score_explains_is_not_left_over() -> None:
    rng = np.random.default_rng(0)
    left, right = _sides(rng)
    left[:, 0] |= rng.integers(2, size=4000)  # the value is 1 with probability 3/4
    right_score, wrong = (
        [np.log([0.5, 1.5])[x[:, 0]] for x in (left, right)],
        [left[:, 0] * 0.0] * 2,
    )
    cells = [(left[:, j], right[:, j]) for j in range(3)]
    assert left_over(right_score, cells) == set()
    assert left_over(wrong, cells) >= {0}


def test_two_together_may_show_what_neither_does() -> None:
    rng = np.random.default_rng(0)
    left, right = _sides(rng)
    left[:, 2] = left[:, 0] ^ (rng.random(4000) < 0.2)
    nothing = [np.zeros(4000)] * 2
    assert left_over(nothing, [(left[:, j], right[:, j]) for j in range(3)]) == {0, 2}


def test_sides_of_different_sizes_are_compared_by_shares() -> None:
    assert chi_square_excess(np.array([300, 700]), np.array([30, 70])) < 0
    # On the left, 30 of 40 and 270 of 360 are expected. The statistic 10^2 / 7.5 + 10^2 / 67.5 is
    # 14.8.
    found = chi_square_excess(np.array([20, 280]), np.array([20, 80]))
    assert found == pytest.approx(100 / 7.5 + 100 / 67.5 - (1 + 3.1 * np.sqrt(2) + 6))
