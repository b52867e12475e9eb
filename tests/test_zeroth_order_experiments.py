"""Tests of the parts of audits/zeroth_order/experiments, at tiny sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from algorithms.zeroth_order import accounts
from audits.zeroth_order.experiments import __main__ as experiments
from audits.zeroth_order.experiments import measure

TINY = measure.Size("tiny", 2, (300, 600), (5, 10), (1.0, 2.0), (2,), (4,), False)
SETTING = measure.Setting("robust regression", 5, 1.0, 600)


@pytest.mark.parametrize("method", [measure.TREE, measure.NAIVE, measure.PUBLIC])
def test_plans_use_all_items_at_equal_privacy(method):
    plans = list(measure.plans_of(method, SETTING, measure.QUICK))
    assert plans
    for plan in plans:
        assert 300 < plan.n_points <= 600
        if method != measure.PUBLIC:
            assert accounts.output_gdp(plan, 5, 1.0) == pytest.approx(1.0)
        else:
            assert plan.oracle.sigma == 0


@pytest.mark.parametrize("items", [100, 600, 10_000])
def test_each_descent_has_items_for_its_first_step(items):
    setting = measure.Setting("robust regression", 5, 1.0, items)
    plans = list(measure.plans_of(measure.GFM, setting, measure.QUICK))
    assert {plan.period for plan in plans} == ({1, 8} if items == 100 else {1, 8, 32})
    for plan in plans:
        assert 0 < plan.large_batch <= items
        assert measure._shape(plan, setting)["K"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(("method", "plan"), [(measure.PUBLIC, -2), (measure.GFM, 8)])
def test_without_noise_the_objective_falls(method, plan):
    setting = measure.Setting("robust regression", 5, 1.0, 20_000)
    plan = list(measure.plans_of(method, setting, measure.QUICK))[plan]
    rng = np.random.default_rng(0)
    found = measure.judged(setting, measure.run(setting, plan, 4, rng=rng), rng=rng)
    start = measure.OBJECTIVES["robust regression"](5).start
    assert found["objective"] < 0.8 * measure.judged(setting, start[None], rng=rng)["objective"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_numbers():
    rows = [measure.compared(SETTING, TINY, seed=3) for _ in range(2)]
    assert rows[0] == rows[1]
    assert rows[0] != measure.compared(SETTING, TINY, seed=4)


@pytest.mark.slow
def test_what_is_promised():
    row = measure.promised(5, 1.0)
    assert int(row["says something from M"].replace(",", "")) > 10_000
    assert float(row["tree / naive at 1e06"]) > 1


def test_settings_change_one_thing_at_a_time():
    pairs = {(s.d, s.rho) for s in measure.settings_of(measure.QUICK)}
    assert pairs == {(5, 1.0), (20, 1.0), (10, 0.5), (10, 1.0), (10, 2.0)}
    assert len(measure.settings_of(measure.FULL)) == 3 * 9 * 6


@pytest.mark.nightly
def test_the_page_shows_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "QUICK", TINY)
    monkeypatch.setattr(measure, "promised", lambda d, rho: {"d": d, "rho": rho})
    experiments.main(["--out", str(tmp_path), "--jobs", "1"])
    page = (tmp_path / "experiments.html").read_text(encoding="utf-8")
    assert page.count("<img") == 3
    assert all(name in page for name in (*measure.METHODS, *measure.OBJECTIVES))
    assert len(pd.read_json(tmp_path / "experiments.json", typ="series")) == 2
