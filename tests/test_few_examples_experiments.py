"""Tests of the parts of audits/few_examples/experiments, at tiny sizes."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.few_examples.learning import clipped_errors, pac_pmf
from algorithms.few_examples.pairwise import clipped_pairwise_pmf, errors_of_users
from algorithms.few_examples.representations import Representation, thresholds
from audits.few_examples.experiments import __main__ as experiments
from audits.few_examples.experiments import measure

TINY = measure.Size("tiny", 4, (1, 4, 16))


def test_errors_of_thresholds_are_those_of_the_algorithm():
    task = measure.threshold_task()
    users = task.draw(9, 7, np.random.default_rng(0))
    errors = errors_of_users(users, thresholds(512))
    np.testing.assert_array_equal(task.losses(users), errors)
    assert task.right.sum() == 2 * 4 + 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_success_is_that_of_the_algorithm(number):
    """Check that the success probability is that of the algorithm.

    The test uses the last of the sizes, at which all users count.
    """
    task, cap = measure.tasks()[number], 1.0
    found = measure.successes(task, 5, cap, np.array([3, 20]), rng=np.random.default_rng(4))
    rng = np.random.default_rng(4)
    users = np.concatenate([task.draw(3, 5, rng), task.draw(17, 5, rng)])
    if number == 0:
        representation = Representation((thresholds(512),))
        pmf = pac_pmf(users, representation=representation, epsilon=measure.EPSILON)
        assert clipped_errors(users, thresholds(512)).max() <= 20
    else:
        comparison = task.comparison
        pmf = clipped_pairwise_pmf(
            users, comparison=comparison, threshold=cap, epsilon=measure.EPSILON
        )
    assert found[1] == pytest.approx(pmf[task.right].sum())


@pytest.mark.slow
def test_more_examples_need_fewer_users():
    for number in (0, 1):
        few, many = (
            measure.users_needed(number, measure.CLIPPED, m, TINY, seed=0)["users"] for m in (1, 16)
        )
        assert many < 0.7 * few


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers():
    one, two = (measure.users_needed(1, measure.GROUP, 4, TINY, seed=3) for _ in range(2))
    assert one == two


def test_where_success_is_reached_for_good():
    sizes = np.array([1, 10, 100, 1000])
    assert measure.crossing(sizes, np.array([0.1, 0.9, 0.5, 1.0])) == pytest.approx(
        100 * 10 ** ((2 / 3 - 0.5) / 0.5)
    )
    assert measure.crossing(sizes, np.full(4, 0.9)) == 1
    assert measure.crossing(sizes, np.full(4, 0.1)) == 1000


def test_the_budget_and_the_frontier():
    row = measure.used(21, 9.0, 0.4, 4.0)
    assert row["kappa"] == 5
    assert float(row["share"]) <= 1
    rows = measure.frontier()
    generic = [row for row in rows if row["result"] == "Theorem 11"]
    assert [row["fewer from m"] for row in generic].count("never") == 2
    assert all(
        row["half of them from m"] != "never" for row in rows if row["result"] == "Theorem 4"
    )


@pytest.mark.slow
def test_the_page_shows_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "QUICK", TINY)
    monkeypatch.setattr(experiments, "BUDGETS", ((21, 9.0, 0.4, 4.0),))
    experiments.main(["--out", str(tmp_path), "--jobs", "1"])
    page = (tmp_path / "experiments.html").read_text()
    for words in ("PAC learning of thresholds", "Theorem 11", "kappa", "95 % interval"):
        assert words in page
    assert (tmp_path / "users.svg").stat().st_size > 10_000
