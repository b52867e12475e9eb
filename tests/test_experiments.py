"""Tests of audits/geometric_median/experiments, whose loop is compared with the library's loop."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from algorithms.geometric_median import baselines, boosting, schedule
from audits.common.intervals import Interval, growth, least, most, ratio
from audits.geometric_median.experiments import __main__ as experiments
from audits.geometric_median.experiments import claims as claims
from audits.geometric_median.experiments import descent as descent
from audits.geometric_median.experiments import figures as figures
from audits.geometric_median.experiments import radius as radius
from audits.geometric_median.experiments import setup as setup
from audits.geometric_median.experiments.setup import CLUSTER, DPGD, FIXED, HEAVY, STABLE, Setting
from dpaudit.ledger.paper import read_paper
from dpaudit.mechanisms import generator

LONGEST = {100: 7, 1000: 10, 10_000: 14}
TINY = replace(setup.QUICK, name="tiny", longest=LONGEST, passes=dict.fromkeys(LONGEST, 1))
TWO = (1.99, 2.0, 2.01)
ABLATION = ["family", "scale", "n", "steps", "base", "multiplier", "trial", "error"]


def made_up(slow=0.29, dpgd=10.0, **cells):
    """Return artificial results of all kinds.

    The errors are the halves of the values in `TWO`, times a factor of the method.
    """
    ratios, errors = [], []
    for family in (CLUSTER, HEAVY):
        sizes = [(s, 1000, 10) for s in setup.FIGURE_1[family]] + [(9.0, 500, 5)]
        ratios += [
            (family, *size, 0.05, method, i, value)
            for size in sizes for method in ("FastRadius", "RadiusFinder")
            for i, value in enumerate(cells.get("ratios", TWO))
        ]  # fmt: skip
        errors += [
            (i, eta, value / 2 * factor, family, s, n, method, passes, choice)
            for choice in (descent.AS_TAKEN, descent.AROUND_0) for s in setup.SCALES[family]
            for n, k in LONGEST.items() for i, value in enumerate(TWO)
            for method, factor in ((STABLE, 3.0), (FIXED, 1.0), (DPGD, dpgd))
            for passes in [1.0 if method == DPGD else (2**k - 1) / n]
            for eta in (["tuned"] if method == DPGD else ["0.25", "1", "tuned"])
        ]  # fmt: skip
    ways = {radius.SAMPLES: 0.01, radius.COUNTS: 0.02, **dict.fromkeys(radius.WAYS, slow)}
    times = [
        {"family": family, "scale": s, "n": n, "way": way, "seconds": t * n * (1 + s / 100)}
        for family, s in ((CLUSTER, 1.0), (CLUSTER, 2.0), (HEAVY, 1.0))
        for n in (1, 2, 4, 8) for way, t in ways.items()
    ]  # fmt: skip
    above = {CLUSTER: 0.5, HEAVY: cells.get("unstable", 9.0)}  # errors of multipliers above 1
    ablation = [
        (family, setup.MIDDLE[family], n, steps, base, m, i,
         value * (above[family] if m > 1 else 1.0) * (1.0 if base == setup.BEST else hsu))
        for family in above for n in LONGEST for steps in setup.ABLATION_STEPS
        for base in (setup.BEST, setup.HSU24) for m in setup.OF_DPGD
        for i, value in enumerate(TWO) for hsu in [cells.get("hsu", 20.0)]
    ]  # fmt: skip
    table = pd.DataFrame(ratios, columns=[*claims.CELL, "trial", "ratio"])
    names = ["trial", "eta", "error", "family", "scale", "n", "method", "passes", "choice"]
    times = pd.DataFrame(times)
    faster = Interval(2.0, cells.get("faster", 1.5), 3.0)
    wall = {"family": CLUSTER, "n": 100, "reached": True, "faster": faster}
    return claims.Results(
        size=TINY, seed=0, took={"all": 1.0}, ratios=table[table.n == 1000], trend=table,
        betas=table[table.n == 500], table=times[times.n == 1],
        times=times[(times.family == CLUSTER) & (times.scale == 1.0)],
        errors=pd.DataFrame(errors, columns=names),
        ablation=pd.DataFrame(ablation, columns=ABLATION), walls=pd.DataFrame([wall]),
    )  # fmt: skip


def test_claims_are_rows_of_the_ledger_and_are_judged():
    table = Path(__file__).parents[1] / "audits" / "geometric_median" / "statements.md"
    assert set(claims.CLAIMS) <= set(read_paper(table).rows)
    for id, judge in claims.CLAIMS.items():
        claim = judge(made_up())
        assert claim.id == id
        assert claim.verdict in (claims.YES, claims.WITH)
        assert claim.words
        assert claim.numbers


@pytest.mark.parametrize(
    ("id", "against"),
    [
        ("gm.fig1", {"ratios": (8.9, 9.0, 9.1)}),
        ("gm.exp.trend", {"ratios": (8.9, 9.0, 9.1)}),
        ("gm.table1", {"slow": 0.01}),
        ("gm.exp.wall", {"faster": 0.9}),
        ("gm.exp.ablate", {"unstable": 1.5}),
        ("gm.exp.ablate", {"hsu": 0.1}),
        ("gm.fig2", {"dpgd": 0.1}),
        ("gm.fig3", {"dpgd": 0.1}),
    ],
)
def test_claims_fail_on_numbers_that_contradict_them(id, against):
    assert claims.CLAIMS[id](made_up(**against)).verdict == claims.NO


def test_claims_are_undecided_where_the_interval_holds_both():
    assert claims.CLAIMS["gm.fig1"](made_up(ratios=(1.0, 3.0, 7.0))).verdict == claims.UNDECIDED


def test_an_undecided_claim_says_what_decides_it():
    claim = claims.CLAIMS["gm.fig1"](made_up(ratios=(1.0, 3.0, 7.0)))
    assert "60 trials" in figures.claims_table([claim]).here[0]
    assert set(claims.DECIDED_BY) == set(claims.CLAIMS) - {"gm.exp.wall"}  # is never undecided


@pytest.mark.slow
def test_page_shows_every_figure_rule_and_claim(tmp_path):
    found = made_up()
    judged = [judge(found) for judge in claims.CLAIMS.values()]
    page = figures.write(found, judged, tmp_path).read_text(encoding="utf-8")
    assert page.count("<img") == len(list(tmp_path.glob("*.svg"))) == 6
    assert all(claim.id in page for claim in judged)
    assert all(len(rule) == 4 and rule[0] in page for rule in setup.RULES)
    assert "95 % interval" in page
    json.loads(json.dumps(experiments.record(found, judged)))


@pytest.mark.parametrize("size", [setup.QUICK, setup.FULL])
def test_sizes_can_be_written_as_json(size):
    found = SimpleNamespace(size=size, seed=0, took={})
    assert json.loads(json.dumps(experiments.record(found, [])))["results"]["size"]["trials"] > 0


# --- intervals ---


def test_exponent_of_growth_and_its_interval():
    sizes = [500, 1000, 2000, 4000]
    assert growth(sizes, [1e-6 * n**1.5 for n in sizes]) == pytest.approx((1.5, 1.5, 1.5))
    with pytest.raises(ValueError, match="at least 3 values"):
        growth([1, 2], [1, 2])


@pytest.mark.statistical
def test_intervals_cover_the_truth_as_often_as_they_say():
    """Check that intervals cover the truth as often as promised.

    The test uses a slope with growing errors and a paired ratio. The coverage of 400 intervals is
    95 %, up to 3 sigma.
    """
    rng = np.random.default_rng(1)
    sizes, hits = np.geomspace(1, 100, 12), np.zeros(2)
    for _ in range(400):
        slope = growth(sizes, sizes**2 * np.exp(0.02 * np.sqrt(sizes) * rng.normal(size=12)))
        base = rng.gamma(50, size=20)
        paired = ratio(2 * base * np.exp(0.1 * rng.normal(size=20)), base)
        truth = 2 * math.exp(0.1**2 / 2)
        hits += [slope.low < 2 < slope.high, paired.low < truth < paired.high]
    assert np.all(hits / 400 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400))


def test_pairing_makes_the_interval_shorter_and_extremes_keep_their_ends():
    base = np.array([1.0, 5.0, 9.0])
    assert ratio(2 * base, base) == pytest.approx((2.0, 2.0, 2.0))
    assert ratio(2 * base, base[::-1]).low < 1
    found = [Interval(1.0, 0.5, 4.0), Interval(2.0, 1.8, 2.2)]
    assert least(found) == (1.0, 0.5, 2.2)
    assert most(found) == (2.0, 1.8, 4.0)


# --- the set-up ---


def test_true_radius_and_its_other_reading():
    printed, holds = setup.true_radius(CLUSTER, 4.0, 10), setup.other_radius(CLUSTER, 4.0, 10)
    assert printed == pytest.approx(0.1 * math.sqrt(10))
    assert holds / printed == pytest.approx(1.19, abs=0.005)
    points = setup.cloud(HEAVY, 4.0, 200_000, 10, np.random.default_rng(1))
    within = np.linalg.norm(points, axis=1) <= setup.true_radius(HEAVY, 4.0, 10)
    assert within.mean() == pytest.approx(0.75, abs=0.006)
    assert setup.other_radius(HEAVY, 4.0, 10) < setup.true_radius(HEAVY, 4.0, 10)


def test_search_radius_contains_the_data():
    points = np.array([[0.3, 0.4], [1.2, 0.9]])
    cases = ((HEAVY, 5.0, 2.0), (CLUSTER, 0.5, 2.0), (CLUSTER, 8.0, 8.0))
    assert all(setup.search_radius(family, s, points) == found for family, s, found in cases)


# --- radius and descent ---


def test_radius_ratios_are_powers_of_two_of_a_public_radius():
    found = radius.radius_ratios(CLUSTER, 4.0, 200, 3, trials=2, seed=0)
    radii = found.ratio * setup.true_radius(CLUSTER, 4.0, 3)
    assert len(found) == 4
    assert radii.between(0.005, 4.0).all()


def test_counting_row_by_row_and_in_blocks_agree():
    points = np.random.default_rng(0).normal(size=(50, 3))
    rows = radius.rows_in_python(points, 1.0)
    assert np.array_equal(rows, radius.once_for_each_radius(points, 1.0))


@pytest.mark.parametrize("method", [STABLE, FIXED])
def test_runs_side_by_side_are_those_of_the_library(method):
    """Check that runs side by side equal the runs of the library.

    One trial and one multiplier draw the same numbers as the public function.
    """
    (trial,) = setup.problems(Setting(CLUSTER, 50.0, 100), 1, seed=3, role="test")
    run = boosting.stable_dpsgd if method == STABLE else boosting.fixed_order_dpsgd
    step = 4.0 * schedule.bound_step(descent.sgd_schedule(method, 100, 127))
    found = run(
        trial.points, 1, center=trial.start, radius=1.0, rho=setup.RHO,
        delta=setup.DELTA, step=step, n_steps=127, rng=np.random.default_rng(5),
    )  # fmt: skip
    errors = descent.sgd_errors(
        method, [trial], 127, multipliers=(4.0,), rng=np.random.default_rng(5)
    )
    assert errors[0] == pytest.approx(trial.error(found), rel=1e-9)


def test_runs_side_by_side_read_their_own_data_and_steps():
    """Check that runs side by side use their own data and steps.

    Each run equals the same run made alone, up to its noise.
    """
    trials = setup.problems(Setting(CLUSTER, 50.0, 100), 2, seed=3, role="test")
    together = descent.sgd_errors(
        FIXED, trials, 127, multipliers=(1.0, 4.0), rng=np.random.default_rng(0)
    )
    for (i, j), error in np.ndenumerate(together):
        alone = [
            descent.sgd_errors(
                FIXED, [trials[i]], 127, multipliers=[(1.0, 4.0)[j]], rng=np.random.default_rng(s)
            )[0, 0]
            for s in range(20)
        ]
        assert abs(error - np.mean(alone)) < 6 * np.std(alone)


def test_best_step_minimises_the_error_bound():
    step = schedule.bound_step(descent.sgd_schedule(FIXED, 1000, 1023))
    bounds = [
        descent.sgd_schedule(FIXED, 1000, 1023, step=step * factor).error_bound
        for factor in (0.9, 1.0, 1.1)
    ]
    assert min(bounds) == bounds[1]


def test_descents_have_every_method_at_enough_steps_and_their_advantage_is_paired():
    size = replace(TINY, trials=2, more_trials={}, tuning=1, longest={100: 8}, passes={100: 2})
    errors = descent.descents([Setting(HEAVY, 5.0, 100)], size, seed=0)
    assert set(errors[errors.method == FIXED].passes) == {1.27, 2.55}
    assert set(errors[errors.method == DPGD].passes) == {1.0, 2.0}
    found = descent.advantage(errors, DPGD)[2.55]
    tuned = errors[(errors.eta == "tuned") & errors.passes.isin((2.0, 2.55))]
    means = tuned.groupby("method").error.mean()
    assert found.value == pytest.approx(means[DPGD] / means[FIXED])
    other = errors.assign(error=errors.error * np.where(errors.method == DPGD, 3.0, 1.0))
    assert most(descent.changes([errors, other], DPGD)).value == pytest.approx(3.0)


def test_ablation_runs_every_multiplier_of_the_paper_on_the_same_data_and_noise():
    """Check that the ablation uses all step sizes, and that its trials are paired."""
    found = descent.ablation(CLUSTER, 50.0, 100, trials=2, seed=0)
    assert sorted(set(found.multiplier)) == [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75]
    assert list(found.columns) == ABLATION
    assert len(found) == 2 * 2 * 7 * len(setup.ABLATION_STEPS)
    trial = setup.problems(Setting(CLUSTER, 50.0, 100), 2, seed=0, role="ablation")[1]
    steps = {setup.BEST: 0.5, setup.HSU24: 2 * math.sqrt(50 / 3) / 100}
    for base, step in steps.items():
        rng = generator(0, "ablation", CLUSTER, "50.0", 100, 4, 1)
        runs = found[(found.base == base) & (found.steps == 4) & (found.trial == 1)]
        alone = baselines.dpgd(
            trial.points, 1, center=trial.start, n_steps=4, radius=1.0, rho=setup.RHO,
            step=1.75 * step, rng=rng,
        )  # fmt: skip
        assert runs[runs.multiplier == 1.75].error.item() == pytest.approx(trial.error(alone)[0])


def test_both_profiles_have_enough_trials_for_every_claim():
    """Check that the quick profile is no more than a smaller version of the full profile."""
    for n in (100, 1000, 10_000):
        for family in (CLUSTER, HEAVY):
            assert setup.QUICK.trials_of(family, n) <= setup.FULL.trials_of(family, n)
        assert setup.QUICK.longest[n] <= setup.FULL.longest[n]
        assert 2 <= setup.QUICK.ablation[n] <= setup.FULL.ablation[n]
    more = replace(setup.QUICK, more_trials={HEAVY: {100: 7}})
    assert more.trials_of(HEAVY, 100) == 7
    assert more.trials_of(CLUSTER, 100) == setup.QUICK.trials


@pytest.mark.parametrize(
    "paper", ["few_examples", "geometric_median", "user_level_sco", "zeroth_order"]
)
def test_a_missing_statsmodels_is_noticed_first(paper, tmp_path, monkeypatch, capsys):
    """Check that no experiment runs before a missing package is reported."""
    main = importlib.import_module(f"audits.{paper}.experiments.__main__").main
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(["--out", str(tmp_path / "out")])
    assert "statsmodels must be installed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
