"""The plot of an audit in one run: what it shows, and that estimates are not called certified."""

from __future__ import annotations

import functools
import math
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpaudit import ApproxDP, GaussianDP, PureDP, audit_one_run
from dpaudit.claims import Claim
from dpaudit.results import OneRunResult, charts

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(1.0), PureDP(8.0)]


@functools.cache
def found(claim: Claim, side: str = "both") -> OneRunResult:
    rng = np.random.default_rng(0)
    included = rng.random(120) < 0.5
    scores = 2 * included + rng.standard_normal(120)
    return audit_one_run(scores, included, claim, side=side, failure_prob=0.05)


@pytest.mark.parametrize("side", ["both", "top"])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_chart_holds_the_estimates_of_the_result(claim: Claim, side: str) -> None:
    result = found(claim, side)
    dots, most, *levels = charts.one_run(result).panels[0].series
    assert tuple(n for n, _ in dots.points) == result.looks
    for (guesses, estimate), correct in zip(dots.points, result.correct, strict=True):
        assert math.exp(estimate) == pytest.approx((correct + 0.5) / (guesses - correct + 0.5))
    assert [n for n, _ in most.points] == [result.guesses]
    heights = [{y for _, y in level.points} for level in levels]
    assert heights == [{result.certified_epsilon}, {result.claim["epsilon"]}]
    assert f"at delta = {result.delta:g}"[:14] in levels[0].label


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_plot_tells_estimates_from_what_is_certified(claim: Claim) -> None:
    result = found(claim)
    ax = result.plot()
    legend = ax.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words[:2] == ["estimated, no guarantee", "strongest evidence"]
    assert words[2].startswith("certified: ")
    assert float(words[2].split()[1]) <= result.certified_epsilon
    assert words[3].startswith("claimed: ")
    dots, most, certified, claimed = ax.lines
    assert tuple(dots.get_xdata()) == result.looks
    assert list(most.get_xdata()) == [result.guesses]
    assert set(certified.get_ydata()) == {result.certified_epsilon}
    assert set(claimed.get_ydata()) == {result.claim["epsilon"]}
    low, high = ax.get_ylim()
    for line in ax.lines:
        assert all(low <= y <= high for y in line.get_ydata())


def test_plot_draws_on_given_axes_and_is_kept_by_its_figure(tmp_path) -> None:
    ax = Figure().subplots()
    assert found(PureDP(1.0)).plot(ax) is ax
    ax.figure.savefig(tmp_path / "run.svg")
    assert "<svg" in (tmp_path / "run.svg").read_text(encoding="utf-8")


def test_a_claim_without_an_epsilon_has_no_line() -> None:
    rng = np.random.default_rng(0)
    included = rng.random(60) < 0.5
    result = audit_one_run(rng.random(60), included, GaussianDP(1.0), delta=0.0)
    assert result.claim["epsilon"] == math.inf
    assert len(result.plot().lines) == 3


def test_results_of_one_run_need_no_plotting_library_until_they_plot() -> None:
    code = (
        "import sys, dpaudit.results; dpaudit.audit_one_run; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
