"""Pictures: what they show is tested on the infos, that they show it on the axes."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpaudit import AdditiveNoise, ApproxDP, GaussianDP, NeighborPair, PureDP, audit
from dpaudit.results import axes, figures, infos
from dpaudit.results.charts import CERTIFIED_POINT
from dpaudit.results.estimates import Histogram, Profile
from dpaudit.results.result import AuditResult
from dpaudit.results.verdicts import Verdict
from dpaudit.results.words import number

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))


def noisy_sum(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


def often_silent(data, size, *, rng):
    output = noisy_sum(data, size, rng=rng)
    output[rng.random(size) < (0.5 if data.sum() > 0.5 else 0.1)] = np.nan
    return output


def labels(data, size, *, rng):
    common = "yes" if data.sum() > 0.5 else "no"
    return np.where(rng.random(size) < 0.7, common, "$\\frac{ 日本")


class Response:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def pmf(self, data):
        likely = math.exp(self.epsilon) / (1 + math.exp(self.epsilon))
        probabilities = [likely, 1 - likely]
        return np.array(probabilities if data.sum() > 0.5 else probabilities[::-1])


check = functools.partial(audit, pairs=PAIR, draws=2000, seed=1, mutants=None)


@pytest.fixture(scope="module")
def kept() -> AuditResult:
    return check(noisy_sum, PureDP(1.0), id="kept")


@pytest.fixture(scope="module")
def broken() -> AuditResult:
    return check(functools.partial(noisy_sum, scale=0.2), PureDP(1.0), id="broken")


@pytest.fixture(scope="module")
def exact() -> AuditResult:
    return check(Response(1.0), PureDP(1.0), id="exact")


@pytest.fixture(scope="module")
def silent() -> AuditResult:
    return check(often_silent, ApproxDP(1.0, 1e-6), id="silent")


@pytest.fixture(scope="module")
def worded() -> AuditResult:
    return check(labels, ApproxDP(1.0, 1e-6), id="worded")


def some_centers(data, size, *, rng):
    return (rng.random((size, len(data))) < 0.5) @ data[:, 0]


@pytest.fixture(scope="module")
def additive() -> AuditResult:
    mechanism = AdditiveNoise(some_centers, scale=1.0, ball=([0.5], 0.5))
    return check(mechanism, ApproxDP(1.0, 1e-6), id="additive")


@pytest.fixture(scope="module")
def closed() -> AuditResult:
    mechanism = AdditiveNoise(lambda data: data.sum(), scale=1.0)
    return check(mechanism, ApproxDP(1.0, 0.1), id="closed")


@pytest.fixture(scope="module")
def stopped() -> AuditResult:
    loud = functools.partial(noisy_sum, scale=0.2)
    return check(loud, PureDP(1.0), method="sequential", id="stopped")


def with_profile(result: AuditResult, claimed, certified) -> AuditResult:
    grid = tuple(float(e) for e in range(len(claimed)))
    return replace(result, profile=Profile(grid, tuple(certified), tuple(certified), claimed))


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- the profile ---


def test_profile_info_holds_the_curves_of_the_result(kept):
    info = infos.profile_info(kept)
    assert info.epsilon == kept.profile.epsilon
    assert info.claimed == kept.profile.claimed_delta
    assert info.certified == kept.profile.certified_delta
    assert info.estimated == kept.profile.estimated_delta
    assert info.point == (1.0, 0.0)
    assert not any(info.violated)


def test_profile_info_marks_where_more_is_certified_than_claimed(broken):
    info = infos.profile_info(broken)
    expected = [c > a for c, a in zip(info.certified, info.claimed, strict=True)]
    assert list(info.violated) == expected
    assert any(expected)


def test_profile_info_takes_rounding_for_no_violation(exact):
    above = with_profile(exact, (0.5, 0.1), (0.5 + 1e-13, 0.1 * (1 + 1e-12)))
    assert infos.profile_info(above).violated == (False, False)


def test_profile_info_has_no_estimate_beside_computed_numbers(exact):
    info = infos.profile_info(exact)
    assert info.estimated == info.estimated_epsilon == info.standard_error == ()
    assert info.certified_label == "computed exactly"


@pytest.mark.parametrize(
    ("claimed", "log"),
    [((0.5, 0.2, 0.1), False), ((0.5, 0.1, 1e-6), True), ((0.5, 0.0, 0.0), False)],
)
def test_profile_scale_follows_the_spread_of_the_deltas(kept, claimed, log):
    result = replace(
        with_profile(kept, claimed, (0.0, 0.0, 0.0)), claim={**kept.claim, "delta": claimed[-1]}
    )
    info = infos.profile_info(result)
    assert info.log is log
    assert info.floor < min(value for value in claimed if value > 0) / 9


def test_profile_draws_zeros_on_the_floor_of_a_log_scale(kept):
    result = with_profile(kept, (0.5, 1e-5, 1e-6), (0.4, 0.0, 0.0))
    info, ax = infos.profile_info(result), figures.plot_profile(result)
    assert ax.get_yscale() == "log"
    certified = next(line for line in ax.lines if line.get_label() == info.certified_label)
    assert list(certified.get_ydata()) == [0.4, info.floor, info.floor]
    ax.figure.canvas.draw()
    assert ax.get_yticklabels()[0].get_text() == "0"


def test_profile_of_zeros_only_can_be_drawn(kept):
    result = with_profile(kept, (0.0, 0.0), (0.0, 0.0))
    assert not infos.profile_info(result).log
    assert "svg" in figures.to_svg(figures.plot_profile(result))


def test_profile_says_that_the_estimate_is_no_guarantee(kept, broken):
    assert texts(figures.plot_profile(kept)) == [
        "claimed",
        "certified lower bound",
        "estimated, no guarantee",
        "point of comparison",
    ]
    assert "certified above claim" in texts(figures.plot_profile(broken))


@pytest.mark.parametrize("log", [False, True])
def test_shading_starts_where_the_curves_cross_as_drawn(log):
    low, high = ([1.0, 1e-4], [1e-2, 1e-2]) if log else ([1.0, 0.0], [0.5, 0.5])
    grid, first, second = axes.between((0.0, 1.0), low, high, log=log)
    np.testing.assert_allclose(grid, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(second - first, [0.0, 0.0, high[1] - low[1]], atol=1e-12)


def test_long_profile_goes_on_with_its_error_where_the_claim_ends(additive):
    info, long = infos.profile_info(additive), additive.long_profile
    assert info.estimated_epsilon == long.epsilon
    assert info.estimated == long.estimated_delta
    assert info.standard_error == long.standard_error
    assert info.epsilon == additive.profile.epsilon == long.epsilon[: len(info.epsilon)]
    assert info.log
    assert info.floor <= 1e-10
    assert min(info.estimated) < 1e-8


def test_long_profile_is_drawn_as_an_estimate_with_a_band(additive):
    ax = figures.plot_profile(additive)
    assert "estimated, no guarantee" in texts(ax)
    assert ax.get_xlim()[1] == additive.long_profile.epsilon[-1]
    assert len(ax.collections) >= 1  # the band


def test_exact_long_profile_continues_the_computed_curve(closed):
    info, long = infos.profile_info(closed), closed.long_profile
    end = len(info.epsilon) - 1
    assert len(long.epsilon) > end + 1
    assert info.estimated == ()
    assert info.beyond == (long.epsilon[end:], long.estimated_delta[end:])
    assert info.beyond[1][0] == info.certified[-1]
    ax = figures.plot_profile(closed)
    assert "estimated, no guarantee" not in texts(ax)
    assert ax.get_xlim()[1] == long.epsilon[-1]


@pytest.mark.parametrize("certified", [1.5, 2.0, 2.5, 40.0])
def test_the_axis_of_a_profile_reaches_the_certified_epsilon(broken, certified):
    result = replace(broken, epsilon=replace(broken.epsilon, lower=certified))
    assert result.profile.epsilon[-1] == 2.0
    info, ax = infos.profile_info(result), figures.plot_profile(result)
    low, high = ax.get_xlim()
    assert (low, high) == info.limits
    assert low <= 0.0 < result.claimed_epsilon < high
    marks = [line for line in ax.lines if line.get_label() == CERTIFIED_POINT]
    if certified <= 2.0:
        assert (info.certified_point, info.limits, marks) == (None, (0.0, 2.0), [])
        return
    assert info.certified_point == (certified, 0.0)
    assert high == pytest.approx(1.03 * certified)
    assert [list(map(float, line.get_xdata())) for line in marks] == [[certified]]


def test_the_axis_of_a_profile_ends_though_the_certified_epsilon_does_not(broken):
    result = replace(broken, epsilon=replace(broken.epsilon, lower=math.inf))
    assert infos.profile_info(result).limits == (0.0, 2.0)
    assert infos.profile_info(result).certified_point is None


# --- the trade-off curve ---


def test_tradeoff_info_holds_the_curves_of_the_result(kept):
    info = infos.tradeoff_info(kept)
    assert kept.curves is not None
    assert info.alpha == kept.curves.alpha
    assert info.band == kept.curves.certified_beta
    assert info.claimed == kept.curves.claimed_beta
    assert info.informative
    assert not any(info.violated)
    assert not info.log
    assert info.band_label == "certified upper band"


def test_tradeoff_info_marks_where_the_band_is_below_the_claim(broken):
    info = infos.tradeoff_info(broken)
    below = [b < c for b, c in zip(info.band, info.claimed, strict=True)]
    assert list(info.violated) == below
    assert any(below)


def with_tradeoff(result: AuditResult, band, claimed) -> AuditResult:
    alpha = (0.0, 0.01, 0.5, 1.0)
    curves = replace(result.curves, alpha=alpha, certified_beta=band, claimed_beta=claimed)
    return replace(result, curves=curves)


@pytest.mark.parametrize(
    ("band", "claimed", "violated", "log"),
    [
        ((1.0, 0.9, 0.4, 0.0), (1.0, 0.8, 0.3, 0.0), (0, 0, 0, 0), False),
        ((1.0, 0.9, 0.2, 0.0), (1.0, 0.9, 0.3, 0.0), (0, 0, 1, 0), False),
        ((1.0, 0.6, 0.4, 0.0), (1.0, 0.9, 0.4, 0.0), (0, 1, 0, 0), True),  # at small errors
        ((1.0, 0.9, 0.4, 0.0), (1.0, 0.001, 0.0001, 0.0), (0, 0, 0, 0), True),  # a large epsilon
        ((1.0, 0.8 - 1e-13, 0.3, 0.0), (1.0, 0.8, 0.3, 0.0), (0, 0, 0, 0), False),  # rounding
    ],
)
def test_tradeoff_scale_follows_where_the_claim_is_decided(kept, band, claimed, violated, log):
    result = with_tradeoff(kept, band, claimed)
    info = infos.tradeoff_info(result)
    assert info.violated == tuple(map(bool, violated))
    assert info.log is log
    ax = figures.plot_tradeoff(result)
    assert ax.get_xscale() == ax.get_yscale() == ("log" if log else "linear")


def test_tradeoff_stretched_about_the_corner_keeps_its_orientation(kept):
    ax = figures.plot_tradeoff(with_tradeoff(kept, (1.0, 0.6, 0.4, 0.0), (1.0, 0.9, 0.4, 0.0)))
    band = next(line for line in ax.lines if line.get_label() == "certified upper band")
    np.testing.assert_allclose(band.get_ydata(), [0.4, 0.6, 1.0])  # 1 - type II error
    assert ax.get_ylim() == (1.0, 0.01)  # which falls upwards, so that a smaller error is lower
    error = ax.yaxis.get_major_formatter()
    assert [error(p, 0) for p in (1.0, 0.1, 0.01, 1e-4)] == ["0", "0.9", "0.99", "1 − 10⁻⁴"]


def test_tradeoff_names_its_curves(kept, broken, closed):
    always = ["perfect privacy", "excluded", "claimed", "certified upper band"]
    assert texts(figures.plot_tradeoff(kept)) == always
    assert texts(figures.plot_tradeoff(broken)) == [*always, "band below claim"]
    assert "computed upper band" in texts(figures.plot_tradeoff(closed))


def test_tradeoff_without_certified_numbers_shows_the_claim_alone(kept):
    nothing = replace(kept, curves=None)
    info = infos.tradeoff_info(nothing)
    assert not info.informative
    assert info.claimed == kept.curves.claimed_beta
    assert texts(figures.plot_tradeoff(nothing)) == ["perfect privacy", "claimed"]


# --- wealth ---


def test_wealth_info_holds_the_path_of_the_result(stopped):
    info, path = infos.wealth_info(stopped), stopped.sequential
    assert (info.draws, info.log_wealth) == (path.draws, path.log_wealth)
    assert info.refuted_at == path.refuted_at == pytest.approx(math.log(1e6))
    assert info.budget == 2000
    assert info.stopped == path.stopped
    assert info.refuted is (stopped.verdict is Verdict.REFUTED) is True


def test_wealth_of_other_audits_is_refused(kept):
    with pytest.raises(ValueError, match="kept was not audited sequentially"):
        infos.wealth_info(kept)


# --- the witness ---


def test_histogram_of_centres_says_so(additive):
    info = infos.histogram_info(additive)
    assert info.ylabel == "share of centres"
    assert info.event_label in ("centre in the event", "event: beyond the centres")
    assert not info.log


def test_histogram_info_turns_counts_into_shares(kept):
    info = infos.histogram_info(kept)
    assert info.ylabel == "share of draws"
    assert sum(info.left) == pytest.approx(1)
    assert sum(info.right) == pytest.approx(1)
    assert info.edges is not None
    assert len(info.left) == len(info.bins) == len(info.edges) - 1


def test_histogram_info_keeps_no_answer_beside_a_numeric_axis(silent):
    info = infos.histogram_info(silent)
    assert info.edges is not None
    assert len(info.left) == len(info.edges)
    assert info.bins[-1] == "no answer"
    assert info.left[-1] == pytest.approx(0.5, abs=0.1)


def test_histogram_info_gathers_rare_categories(exact):
    k = 50
    counts = tuple(range(1, k + 1))
    inside = tuple(i % 2 == 0 for i in range(k))
    crowd = Histogram("outcome", tuple(map(str, range(k))), None, counts, counts[::-1], inside)
    info = infos.histogram_info(replace(exact, histogram=crowd))
    assert len(info.bins) == infos.MAX_CATEGORIES
    assert sum(info.left) == pytest.approx(1)
    assert sum(info.right) == pytest.approx(1)
    assert info.bins[-2:] == ("16 others in the event", "16 others")
    assert info.inside[-2:] == (True, False)


def test_histogram_info_of_a_guess_tells_both_regions_apart(kept):
    k = 50
    counts = tuple(range(1, k + 1))
    shades = tuple(tuple(i % 3 == at for i in range(k)) for at in (0, 1))
    crowd = Histogram("outcome", tuple(map(str, range(k))), None, counts, counts[::-1], *shades)
    info = infos.histogram_info(replace(kept, histogram=crowd))
    assert (info.event_label, info.right_label) == ("left is guessed", "right is guessed")
    assert info.bins[-3:] == (
        "11 others where left is guessed",
        "11 others where right is guessed",
        "11 others",
    )
    assert info.inside[-3:] == (True, False, False)
    assert info.inside_right[-3:] == (False, True, False)
    assert sum(info.left) == sum(info.right) == pytest.approx(1)


def test_histogram_info_of_an_event_speaks_of_one_region(exact):
    info = infos.histogram_info(exact)
    assert (info.event_label, info.right_label, info.inside_right) == ("event fires", "", ())


def test_a_rare_guess_on_either_side_needs_a_log_scale(kept):
    counts = (1, 990, 9), (1, 490, 509)
    thin = Histogram("o", ("a", "b", "c"), (0.0, 1.0, 2.0, 3.0), *counts, (0, 0, 1), (1, 0, 0))
    assert infos.histogram_info(replace(kept, histogram=thin)).log
    empty = infos.histogram_info(replace(kept, histogram=replace(thin, inside=(0, 0, 0))))
    assert empty.event_label == "left is guessed: less than a bin"


def test_histogram_of_computed_probabilities_speaks_of_probability(exact):
    info = infos.histogram_info(exact)
    assert info.ylabel == "probability"
    assert "1,000,000" not in info.xlabel


@pytest.mark.parametrize(("hits", "log"), [(1, True), (500, False)])
def test_histogram_shows_a_rare_event_on_a_log_scale(kept, hits, log):
    thin = Histogram(
        "output", ("a", "b", "c"), (0.0, 1.0, 2.0, 3.0), (900, 100, hits), (1000, 99, 0), (0, 0, 1)
    )
    assert infos.histogram_info(replace(kept, histogram=thin)).log is log


# --- all of them ---

PLOTS = [figures.plot_profile, figures.plot_tradeoff]


@pytest.mark.parametrize("plot", PLOTS)
def test_plots_draw_on_given_axes(kept, plot):
    ax = Figure().subplots()
    assert plot(kept, ax) is ax
    assert ax.get_legend() is not None


@pytest.mark.parametrize("plot", PLOTS)
def test_svg_is_the_same_every_time_and_keeps_text(kept, plot):
    svg = figures.to_svg(plot(kept))
    assert svg == figures.to_svg(plot(kept))
    assert "<text" in svg
    assert "<metadata" not in svg


def test_every_claim_can_be_drawn():
    for claim in (GaussianDP(1.0), ApproxDP(0.0, 0.5), ApproxDP(20.0, 1e-9), PureDP(0.0)):
        for plot in PLOTS:
            assert figures.to_svg(plot(check(noisy_sum, claim, id="any")))


@pytest.mark.parametrize("kind", ["additive", "closed", "stopped", "silent", "worded", "exact"])
@pytest.mark.parametrize("plot", PLOTS)
def test_every_kind_of_result_can_be_drawn(kind, plot, request):
    assert figures.to_svg(plot(request.getfixturevalue(kind)))


def test_a_result_draws_its_own_curves(kept):
    assert kept.plot().get_xlabel() == "epsilon"
    assert kept.plot_tradeoff().get_xlabel() == "type I error"


def test_colours_can_be_told_apart_by_a_theme():
    assert len(set(figures.COLOURS.values())) == len(figures.COLOURS)


def test_without_matplotlib_the_extra_is_named_and_pictures_of_notebooks_are_there():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from dpaudit import NeighborPair, PureDP, audit\n"
        "pair = NeighborPair([[1.0]], [[0.0]])\n"
        "result = audit(lambda data, size, *, rng: data.sum() + rng.laplace(size=size),\n"
        "               PureDP(0.1), pair, draws=2000, seed=1, mutants=None)\n"
        "assert '<svg' in result._repr_html_()\n"
        "for plot in (result.plot, result.plot_tradeoff):\n"
        "    try:\n"
        "        plot()\n"
        "    except ModuleNotFoundError as error:\n"
        "        print(error.name, str(error))\n"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    words = "matplotlib plots need the package matplotlib, which is not installed here: pip install"
    assert ran.stdout.count(words) == 2


def test_plotting_leaves_pyplot_alone():
    code = (
        "import sys, dpaudit.report; assert not {'matplotlib', 'jinja2'} & set(sys.modules);"
        "import dpaudit.results.figures; assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.inf, "∞"),
        (0.0, "0"),
        (1.23456, "1.235"),
        (1e-5, "1e-5"),
        (0.00019, "1.9e-4"),
        (12345.6, "1.235e4"),
        (3.0, "3"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, words):
    assert number(value) == words
