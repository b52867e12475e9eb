"""The pure parts of audits/geometric_median/experiments, and its loop against the library's."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from algorithms.geometric_median import boosting
from audits.geometric_median.experiments import __main__ as experiments
from audits.geometric_median.experiments import claims as claims
from audits.geometric_median.experiments import descent as descent
from audits.geometric_median.experiments import figures as figures
from audits.geometric_median.experiments import measured as measured
from audits.geometric_median.experiments import radius as radius
from audits.geometric_median.experiments import setup as setup
from audits.geometric_median.experiments.descent import Setting
from audits.geometric_median.experiments.setup import (
    CLUSTER,
    DPGD,
    FAST,
    FINDER,
    FIXED,
    HEAVY,
    STABLE,
    TUNED,
)
from dpaudit.ledger.paper import read_paper

TINY = setup.Size(
    "tiny", 2, 2, {CLUSTER: (4.0,), HEAVY: (8.0,)}, (20, 40), 2, 2,
    {100: 7, 1000: 10, 10_000: 14}, {100: 1, 1000: 1, 10_000: 1},
)  # fmt: skip


def results():
    """All results, made up: every method has the error 1 / passes, times a factor of its own."""
    found = measured.Results(TINY, 0)
    methods = (FAST, FINDER)
    two = np.array([1.9, 2.1])
    for family, scales in ((CLUSTER, setup.RADII), (HEAVY, setup.DEGREES)):
        found.ratios += [
            radius.Ratios(family, s, 1000, 10, m, two) for s in scales for m in methods
        ]
    found.trend = [
        radius.Ratios(family, scales[0], n, d, m, two)
        for family, scales in TINY.trend_scales.items()
        for n in (500, 1000, 2000)
        for d in (5, 10, 20)
        for m in methods
    ]
    found.betas = {b: [radius.Ratios(CLUSTER, 4.0, 500, 10, FINDER, two)] for b in setup.BETAS}
    slow = dict.fromkeys(radius.WAYS, 0.29)
    took = {radius.SAMPLES: 0.01, radius.COUNTS: 0.02} | slow
    found.table = {CLUSTER: took, HEAVY: took}
    found.times = {20: took, 40: {way: 2 * t for way, t in took.items()}}
    for n in TINY.longest:
        for setting in descent.settings_of(n):
            passes = (2 ** TINY.longest[n] - 1) / n
            point = dict.fromkeys((*setup.MULTIPLIERS, TUNED), two / 2)
            sgd = {
                method: {passes: {eta: factor * v for eta, v in point.items()}}
                for method, factor in ((STABLE, 3.0), (FIXED, 1.0))
            }
            found.curves.append(descent.Curves(setting, {1: 10 * two}, sgd))
            row = descent.WhatIf(setup.AS_TAKEN, n, passes, 10.0, 3.0, 1.0)
        found.what_if.append(row)
        found.walls += [
            descent.Wall(family, n, 1, 0.1, passes, 1.0, 0.5) for family in (CLUSTER, HEAVY)
        ]
    return found


def test_claims_cover_every_row_that_is_reproduced():
    assert set(claims.CLAIMS) == {
        "gm.fig1", "gm.table1", "gm.exp.trend", "gm.fig2", "gm.fig3", "gm.fig4", "gm.fig5",
        "gm.exp.wall",
    }  # fmt: skip
    found = results()
    for id, judge in claims.CLAIMS.items():
        claim = judge(found)
        assert claim.id == id
        assert claim.verdict in (claims.YES, claims.WITH)
        assert claim.words
        assert claim.numbers


@pytest.mark.parametrize("id", ["gm.fig1", "gm.exp.trend", "gm.table1", "gm.exp.wall", "gm.fig2"])
def test_claims_fail_on_numbers_that_contradict_them(id):
    found = results()
    high = radius.Ratios(CLUSTER, 4.0, 500, 5, FAST, np.array([9.0]))
    found.ratios.append(high)
    found.trend.append(high)
    found.table = {CLUSTER: dict.fromkeys(found.table[CLUSTER], 1.0)}
    found.walls = [descent.Wall(CLUSTER, 100, None, 0.1, 1.0, 1.0, 0.5)]
    for curve in found.curves:
        curve.dpgd[1] = np.array([0.1])
    assert claims.CLAIMS[id](found).verdict == claims.NO


def test_rules_name_what_the_paper_leaves_open():
    words = " ".join(rule.parameter + rule.taken + rule.also for rule in setup.RULES)
    for parameter in (
        "eta of the SGD", "eta of DPGD", "delta", "frac_in", "centre", "beta", "gamma", "order",
        "r_true", "R of the radius search", "visits", "error", "domain", "passes", "T = 2^K - 1",
    ):  # fmt: skip
        assert parameter in words or any(parameter in rule.paper for rule in setup.RULES)
    assert len({rule.parameter for rule in setup.RULES}) == len(setup.RULES)
    assert all(rule.paper and rule.taken for rule in setup.RULES)


def test_claims_are_rows_of_the_ledger():
    table = Path(__file__).parents[1] / "audits" / "geometric_median" / "statements.md"
    assert set(claims.CLAIMS) <= set(read_paper(table).rows)


def test_growth_exponent():
    sizes = [500, 1000, 2000, 4000]
    found = radius.growth(sizes, [1e-6 * n**1.5 for n in sizes])
    assert found == pytest.approx((1.5, 1.5, 1.5))


def test_ratio_of_time_on_a_toy():
    table = {CLUSTER: {radius.SAMPLES: 2.0, radius.PLAIN: 58.0}}
    assert claims.time_ratios(table, radius.PLAIN) == [29.0]


def test_true_radius_and_its_other_reading():
    cluster = setup.true_radii(CLUSTER, 4.0, 10)
    assert cluster["taken"] == pytest.approx(0.1 * math.sqrt(10))
    assert cluster["other"] / cluster["taken"] == pytest.approx(1.19, abs=0.005)
    heavy = setup.true_radii(HEAVY, 4.0, 10)
    assert heavy["other"] < heavy["taken"]


def test_the_true_radius_of_a_heavy_tail_holds_its_share():
    radius = setup.true_radii(HEAVY, 4.0, 10)["taken"]
    points = setup.cloud(HEAVY, 4.0, 200_000, 10, np.random.default_rng(1))
    assert (np.linalg.norm(points, axis=1) <= radius).mean() == pytest.approx(0.75, abs=0.006)


def test_averages_within_roughly_a_quarter_are_inside():
    def of(*values):
        return radius.Ratios(CLUSTER, 1.0, 1000, 10, FAST, np.array(values))

    assert claims.outside([of(1.0, 1.0), of(3.7, 3.7)]) == []
    assert len(claims.outside([of(0.9, 0.9), of(3.8, 3.8)])) == 2


def test_radius_ratios_are_powers_of_two_of_a_public_radius():
    for ratios in radius.radius_ratios(CLUSTER, 4.0, 200, 3, trials=2, seed=0):
        radii = ratios.values * setup.true_radii(CLUSTER, 4.0, 3)["taken"]
        assert np.all((radii >= 0.005) & (radii <= 4.0))
        assert ratios.mean == pytest.approx(float(np.mean(ratios.values)))


def test_counting_row_by_row_and_in_blocks_agree():
    points = np.random.default_rng(0).normal(size=(50, 3))
    rows = radius.rows_in_python(points, 1.0)
    assert np.array_equal(rows, radius.once_for_each_radius(points, 1.0))


def test_search_radius_contains_the_data():
    points = np.array([[0.3, 0.4], [1.2, 0.9]])
    assert setup.search_radius(HEAVY, 5.0, points) == 2.0
    assert setup.search_radius(CLUSTER, 0.5, points) == 2.0
    assert setup.search_radius(CLUSTER, 8.0, points) == 8.0


@pytest.mark.parametrize("method", [STABLE, FIXED])
def test_runs_side_by_side_are_those_of_the_library(method):
    """One trial and one multiplier draw the same numbers as the public function."""
    setting = Setting(CLUSTER, 50.0, 100)
    (trial,) = descent.problems(setting, 1, seed=3, role="test")
    run = boosting.stable_dpsgd if method == STABLE else boosting.fixed_order_dpsgd
    step = 4.0 * descent.best_step(descent.sgd_schedule(method, 100, 127))
    found = run(
        trial.points, 1, center=trial.start, radius=1.0, rho=setup.RHO,
        delta=setup.DELTA, step=step, n_steps=127, rng=np.random.default_rng(5),
    )  # fmt: skip
    errors = descent.sgd_errors(
        method, [trial], 127, multipliers=(4.0,), rng=np.random.default_rng(5)
    )
    assert errors[0] == pytest.approx(trial.error(found), rel=1e-9)


def test_runs_side_by_side_read_their_own_data_and_steps():
    """FixedOrderDPSGD with hardly any noise: each run is what it is alone."""
    setting = Setting(CLUSTER, 50.0, 100)
    trials = descent.problems(setting, 2, seed=3, role="test")
    quiet = {"multipliers": (1.0, 4.0), "delta": 1e-5}
    together = descent.sgd_errors(FIXED, trials, 127, **quiet, rng=np.random.default_rng(0))
    for trial, row in zip(trials, together, strict=True):
        for multiplier, error in zip((1.0, 4.0), row, strict=True):
            alone = [
                descent.sgd_errors(
                    FIXED, [trial], 127, multipliers=(multiplier,), rng=np.random.default_rng(s)
                )[0, 0]
                for s in range(20)
            ]
            assert abs(error - np.mean(alone)) < 6 * np.std(alone)


def test_best_step_minimises_the_error_bound():
    unit = descent.sgd_schedule(FIXED, 1000, 1023)
    step = descent.best_step(unit)
    bounds = [
        descent.sgd_schedule(FIXED, 1000, 1023, step=step * factor).error_bound
        for factor in (0.9, 1.0, 1.1)
    ]
    assert min(bounds) == bounds[1]


def test_advantage_and_change():
    curves = [
        descent.Curves(
            Setting(CLUSTER, scale, 1000),
            {1: np.array([error])},
            {FIXED: {1.5: {TUNED: np.array([0.1, 0.3])}}},
        )
        for scale, error in ((25.0, 0.4), (50.0, 0.8))
    ]
    assert claims.advantage(curves[0], DPGD) == pytest.approx([2.0])
    assert claims.changes(curves, DPGD) == pytest.approx(2.0)


def test_sgd_steps_are_at_least_n():
    assert descent.sgd_steps(1000, 12) == [1023, 2047, 4095]
    assert descent.sgd_steps(100, 7) == [127]


@pytest.mark.slow
def test_page_shows_every_figure_rule_and_claim(tmp_path):
    found = results()
    judged = [judge(found) for judge in claims.CLAIMS.values()]
    page = figures.write(found, judged, setup.RULES, tmp_path).read_text(encoding="utf-8")
    assert page.count("<img") == len(list(tmp_path.glob("*.png"))) == 8
    assert all(claim.id in page for claim in judged)
    assert page.count("<tr>") > len(judged) + len(setup.RULES)
    record = {"claims": judged, "rules": setup.RULES, "results": found}
    json.loads(json.dumps(record, default=experiments.plain))
