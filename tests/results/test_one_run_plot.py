"""Tests of the plot of an audit in one run.

The tests check its contents, and that estimates are not called certified.
"""

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
from dpaudit.results import AuditResult, charts, number
from tests.records import changed

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(1.0), PureDP(8.0)]


@functools.cache
def found(claim: Claim, side: str = "both") -> AuditResult:
    rng = np.random.default_rng(0)
    included = rng.random(120) < 0.5
    scores = 2 * included + rng.standard_normal(120)
    return audit_one_run(scores, included, claim, side=side, failure_prob=0.05)


@pytest.mark.sampled
@pytest.mark.parametrize("side", ["both", "top"])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_chart_holds_the_estimates_of_the_result(claim: Claim, side: str) -> None:
    result = found(claim, side)
    dots, most, *levels = charts.guesses(result).panels[0].series
    own = result.diagnostics.canaries
    assert tuple(n for n, _ in dots.points) == own.stages
    for (guesses, estimate), correct in zip(
        dots.points, result.diagnostics.canaries.correct, strict=True
    ):
        assert math.exp(estimate) == pytest.approx((correct + 0.5) / (guesses - correct + 0.5))
    assert [n for n, _ in most.points] == [result.diagnostics.canaries.guesses]
    heights = [{y for _, y in level.points} for level in levels]
    assert heights == [{result.certified_epsilon}, {result.claim["epsilon"]}]
    assert levels[0].label.endswith(f"at delta = {number(result.claimed_delta)}")


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
    assert tuple(dots.get_xdata()) == result.diagnostics.canaries.stages
    assert list(most.get_xdata()) == [result.diagnostics.canaries.guesses]
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


def test_other_audits_have_no_guesses_to_draw() -> None:
    result = changed(found(PureDP(1.0)), canaries=None)
    with pytest.raises(ValueError, match="must be the result of an audit in one run"):
        charts.guesses(result)


def test_results_of_one_run_need_no_plotting_library_until_they_plot() -> None:
    code = (
        "import sys, dpaudit.results; dpaudit.audit_one_run; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
