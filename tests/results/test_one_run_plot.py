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
from dpaudit.results import OneRunResult, figures
from dpaudit.results.one_run_infos import one_run_info

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(1.0), PureDP(8.0)]


@functools.cache
def found(claim: Claim, side: str = "both") -> OneRunResult:
    rng = np.random.default_rng(0)
    included = rng.random(500) < 0.5
    scores = 2 * included + rng.standard_normal(500)
    return audit_one_run(scores, included, claim, side=side, failure_prob=0.05)


@pytest.mark.parametrize("side", ["both", "top"])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_info_holds_the_looks_of_the_result(claim: Claim, side: str) -> None:
    result = found(claim, side)
    info = one_run_info(result)
    assert info.guesses == result.looks
    assert info.guesses[info.telling] == result.guesses
    for guesses, correct, estimate in zip(
        result.looks, result.correct, info.estimated, strict=True
    ):
        assert math.exp(estimate) == pytest.approx((correct + 0.5) / (guesses - correct + 0.5))
    assert (info.certified, info.delta) == (result.certified_epsilon, result.delta)
    assert info.claimed == result.claim["epsilon"]


@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_plot_tells_estimates_from_what_is_certified(claim: Claim) -> None:
    result = found(claim)
    ax = result.plot()
    legend = ax.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words[:2] == ["estimated, no guarantee", "look that shows most"]
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
    assert "svg" in figures.to_svg(ax)


def test_a_claim_without_an_epsilon_has_no_line() -> None:
    rng = np.random.default_rng(0)
    included = rng.random(60) < 0.5
    result = audit_one_run(rng.random(60), included, GaussianDP(1.0), delta=0.0)
    assert result.claim["epsilon"] == math.inf
    assert one_run_info(result).claimed is None
    assert len(result.plot().lines) == 3


def test_results_of_one_run_need_no_plotting_library_until_they_plot() -> None:
    code = (
        "import sys, dpaudit.results; dpaudit.audit_one_run; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
