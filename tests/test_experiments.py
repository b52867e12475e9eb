"""The parts of the experiments that can be told without running them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from audits import experiments_geometric_median as ex
from dpaudit.ledger import read_statements

ROOT = Path(__file__).parents[1]


def test_growth_exponents_are_fitted_in_logarithms():
    sizes = [500.0, 1000.0, 2000.0, 4000.0]
    assert ex.growth_exponent(sizes, [3e-6 * n**1.5 for n in sizes]) == pytest.approx(1.5)


def test_every_way_of_counting_neighbours_counts_the_same():
    points = np.random.default_rng(1).normal(size=(40, 3))
    there = np.linalg.norm(points[:, None] - points[None], axis=2) <= 1.0
    for count in (ex.rows_in_python, ex.once_for_each_radius):
        assert (count(points, 1.0) == there.sum(axis=1)).all()


def test_the_true_radius_of_a_heavy_tail_holds_its_share():
    radius = ex.true_radii(ex.HEAVY, 4.0, 10)["taken"]
    points = ex.cloud(ex.HEAVY, 4.0, 200_000, 10, np.random.default_rng(1))
    assert (np.linalg.norm(points, axis=1) <= radius).mean() == pytest.approx(0.75, abs=0.006)
    assert ex.true_radii(ex.HEAVY, 4.0, 10)["other"] < 0.5 * radius


def test_search_radii_hold_all_points():
    points = np.array([[3.2, 0.0], [0.0, 1.0]])
    assert ex.search_radius(ex.HEAVY, 2.0, points) == 4.0
    assert ex.search_radius(ex.CLUSTER, 10.0, points) == 10.0


def test_step_counts_are_of_the_form_that_the_algorithm_wants():
    for n in (100, 1000, 10_000):
        steps = ex.sgd_steps(n, ex.FULL.longest[n])
        assert steps
        assert all(t >= n and math.log2(t + 1).is_integer() for t in steps)


def test_averages_within_roughly_a_quarter_are_inside():
    def of(*values):
        return ex.Ratios(ex.CLUSTER, 1.0, 1000, 10, ex.FAST, np.array(values))

    assert ex.outside([of(1.0, 1.0), of(3.7, 3.7)]) == []
    assert len(ex.outside([of(0.9, 0.9), of(3.8, 3.8)])) == 2


def test_every_unstated_choice_has_a_rule():
    assert len(set(ex.RULES)) == len(ex.RULES) >= 8
    rows = read_statements(
        ROOT / "audits" / "statements" / "geometric_median.md", "geometric_median"
    )
    assert {"gm.fig1", "gm.table1", "gm.exp.trend", "gm.exp.wall"} <= set(rows)
