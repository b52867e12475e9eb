"""Tests of the parts of audits/user_level_sco/experiments, at tiny sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from audits.user_level_sco.experiments import __main__ as experiments
from audits.user_level_sco.experiments import measure
from dpaudit.mechanisms import generator

TINY = measure.Size("tiny", 2, (4_000, 8_000, 16_000), (
    measure.Grid(measure.Setting(), 2, (4_000, 8_000, 16_000), (1, 4, 16), (1, 2, 4),
                 (2.0, 4.0, 8.0)),
    measure.Grid(measure.Setting(8_000, 4, 64, 4.0, term=measure.PRIVACY), 1, (4_000, 8_000),
                 (4,), (64,), (4.0,)),
    measure.Grid(measure.Setting(8_000, 4_096, 8, 4.0, term=measure.MANY), 1, (4_000, 8_000),
                 (4_096,), (8,), (4.0,)),
))  # fmt: skip


@pytest.mark.parametrize("method", measure.METHODS)
def test_every_method_comes_nearer_than_its_start(method):
    setting = measure.Setting(n=16_000, m=16, d=2, epsilon=8.0, signal=64.0)
    problem = measure.problem_of(setting, method)
    data = problem.sample(setting.n, setting.m, rng=np.random.default_rng(1))
    found = measure.one_run(method, setting, data, rng=np.random.default_rng(2))
    inside = problem.domain.project(found[None])
    assert problem.excess(inside)[0] < 0.5 * problem.excess(np.zeros((1, 2)))[0]


def test_exponents_are_those_of_made_up_errors():
    rows = [
        {"what": "n", "n": n, "signal": signal, "method": method, "excess": signal * n**-0.5,
         "term": measure.SAMPLING}
        for method in measure.METHODS for n in (1, 10, 100) for signal in (1.0, 4.0)
    ]  # fmt: skip
    found = pd.DataFrame(rows)
    assert list(experiments.worst(found[found.method == measure.FILTER], "n")) == pytest.approx(
        [4.0, 4 * 10**-0.5, 0.4]
    )
    assert experiments.slopes(found, measure.SAMPLING)["n"][0].startswith("-0.5 [-0.5, -0.5]")


@pytest.mark.slow
def test_gradients_are_at_most_n_m():
    rows = list(measure.counted(TINY, seed=0))
    for row in rows:
        assert (0.5 if row["phases"] > 1 else 0.4) < row["of n m"] <= 1.0  # phase 1 has n / 2
        assert row["distances"] <= row["n"] * row["batch"]
    grown = experiments.cost_growth(pd.DataFrame(rows))
    assert list(grown[""]) == [measure.FILTER, measure.ROBUST]


def test_averages_of_many_items_have_their_mean_and_variance():
    setting = measure.Setting(2_000, 4_096, 8, term=measure.MANY, signal=128.0)
    found = measure.users_of(setting, rng=np.random.default_rng(4))
    problem = measure.problem_of(setting, measure.FILTER)
    mean = problem.probabilities @ problem.items
    variance = problem.probabilities @ problem.items**2 - mean**2
    assert found.shape == (2_000, 1, 8)
    error = np.sqrt(variance / (4_096 * 2_000))
    # false-alarm rate 1e-6 for 8 + 8 numbers: 5.5 standard deviations
    assert (np.abs(found.mean(axis=(0, 1)) - mean) < 5.5 * error).all()
    assert found.var(axis=(0, 1)) == pytest.approx(variance / 4_096, rel=5.5 * (2 / 2_000) ** 0.5)


@pytest.mark.slow
def test_weights_of_users_with_different_distributions_shrink():
    rows = pd.DataFrame(measure.mixed(replace(TINY, trials=1), seed=0))
    assert list(rows["distance from the mean"]) == sorted(rows["distance from the mean"])
    assert rows["filtered in phase 1"].iloc[0] < 10 < rows["filtered in phase 1"].iloc[-1]
    assert len(experiments.mixed_table(rows)) == 5


@pytest.mark.slow
def test_many_outliers_halt_every_run_and_none_are_filtered_without():
    rows = pd.DataFrame(measure.filtered(TINY, seed=0))
    margin = 30  # the Laplace noise on the cutoff is larger with probability below 1e-9
    assert rows["halted"][rows["filtered"] >= rows["cutoff"] + margin].all()
    assert not rows["halted"][rows["filtered"] <= rows["cutoff"] - margin].any()
    found = rows.groupby("fraction").mean()
    assert found["halted"].loc[0.05] == 1.0
    assert found["filtered"].loc[0.0] < found["cutoff"].iloc[0] / 2


def test_the_table_of_sizes_is_that_of_the_theorem():
    rows = list(measure.least_users())
    assert [row["n of Section 3 (v2)"] for row in rows if row["m"] == 1][1] == "7,853,008"


@pytest.mark.nightly
def test_the_page_shows_everything(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "QUICK", TINY)
    one = {measure.SAMPLING: (1.0,), measure.PRIVACY: (32.0,), measure.MANY: (32.0,)}
    monkeypatch.setattr(measure, "SIGNALS", one)
    printed = measure.at_printed_constants
    monkeypatch.setattr(measure, "at_printed_constants", lambda seed: printed(seed, n=9_500_000))
    experiments.main(["--out", str(tmp_path)])
    page = (tmp_path / "experiments.html").read_text(encoding="utf-8")
    assert page.count("<img") == 3
    assert all(method in page for method in measure.METHODS)
    assert "9500000" in page


def test_the_same_seed_gives_the_same_numbers():
    setting = measure.Setting(n=4_000, d=1)
    rows = [list(measure.excesses(setting, 1, seed=3, what="n")) for _ in range(2)]
    assert rows[0] == rows[1]
    assert generator(3, "a").random() != generator(4, "a").random()
