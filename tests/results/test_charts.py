"""Tests of descriptions of charts, with their contents for every kind of result."""

from __future__ import annotations

import functools
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import AdditiveNoise, ApproxDP, GaussianDP, NeighborPair, PureDP, audit
from dpaudit.results import AuditResult, Histogram, MarginPoint, NoiseMargin, Profile, charts
from dpaudit.results.charts import CERTIFIED_POINT, Axis, Chart, Series, round_numbers
from tests.records import changed

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
NASTY = "$\\frac{ 日本 <script>"


def noisy_sum(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


def often_silent(data, size, *, rng):
    output = noisy_sum(data, size, rng=rng)
    output[rng.random(size) < (0.5 if data.sum() > 0.5 else 0.1)] = np.nan
    return output


def labels(data, size, *, rng):
    common = "yes" if data.sum() > 0.5 else "no"
    return np.where(rng.random(size) < 0.7, common, NASTY)


def some_centers(data, size, *, rng):
    return (rng.random((size, len(data))) < 0.5) @ data[:, 0]


class Response:
    def pmf(self, data):
        probabilities = [0.7, 0.3]
        return np.array(probabilities if data.sum() > 0.5 else probabilities[::-1])


check = functools.partial(audit, pairs=PAIR, draws=2000, seed=1)
alone = functools.partial(check, mutants=None)
loud = functools.partial(noisy_sum, scale=0.2)
SMALL = ApproxDP(1.0, 1e-6)


@functools.cache
def found() -> dict[str, AuditResult]:
    made = [
        check(noisy_sum, PureDP(1.0), mutants=[loud], id="kept"),
        check(loud, PureDP(1.0), id="broken"),
        check(Response(), PureDP(1.0), mutants=[Response()], id="exact"),
        alone(often_silent, SMALL, id="silent"),
        alone(labels, SMALL, id="worded"),
        alone(AdditiveNoise(some_centers, scale=1.0, ball=([0.5], 0.5)), SMALL, id="additive"),
        alone(AdditiveNoise(lambda data: data.sum(), scale=1.0), SMALL, id="closed"),
        alone(loud, PureDP(1.0), method="sequential", id="stopped"),
        alone(loud, GaussianDP(1.0), id="curve"),
        alone(noisy_sum, PureDP(0.0), id="nothing claimed"),
        alone(noisy_sum, ApproxDP(20.0, 1e-9), id="much claimed"),
    ]
    return {result.id: result for result in made}


KINDS = [
    "kept", "broken", "exact", "silent", "worded", "additive", "closed", "stopped", "curve",
    "nothing claimed", "much claimed",
]  # fmt: skip
GUESSED = ["left dataset", "right dataset", "left is guessed", "right is guessed"]


def labels_of(chart: Chart) -> list[str]:
    return [series.label for series in chart.legend]


def named(chart: Chart, label: str) -> Series:
    return next(series for series in chart.legend if series.label == label)


def xs(series: Series) -> list[float]:
    return [x for x, _ in series.points]


def ys(series: Series) -> list[float]:
    return [y for _, y in series.points]


def words_on(axis: Axis) -> list[str]:
    return [words for _, words in axis.marks()]


# --- axes ---


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0.0, 1.0, 5, [0.0, 0.25, 0.5, 0.75, 1.0]),
        (0.0, 2.1, 5, [0.0, 0.5, 1.0, 1.5, 2.0]),
        (0.0, 0.3, 5, [0.0, 0.1, 0.2, 0.3]),
        (-4.2, 5.7, 5, [-4.0, -2.0, 0.0, 2.0, 4.0]),
        (3.0, 3.0, 5, [3.0]),
        (0.0, math.inf, 5, [0.0]),
    ],
)
def test_ticks_are_round(low, high, most, ticks):
    assert round_numbers(low, high, most) == ticks


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 8))
def test_ticks_are_few_and_between_the_limits(low, span, most):
    ticks = round_numbers(low, low + span, most)
    assert 1 <= len(ticks) <= most
    margin = 1e-6 * max(span, abs(low) * 1e-9)
    assert all(low - margin <= tick <= low + span + margin for tick in ticks)
    assert ticks == sorted(set(ticks))


@given(st.floats(-12, 6), st.floats(0.02, 12), st.integers(2, 8))
def test_ticks_of_a_log_scale_are_few_and_between_the_limits(low, span, most):
    ends = 10.0**low, 10.0 ** (low + span)
    ticks = round_numbers(*ends, most, log=True)
    assert 1 <= len(ticks) <= max(most, 2)
    assert all(ends[0] * (1 - 1e-8) <= tick <= ends[1] * (1 + 1e-8) for tick in ticks)
    assert ticks == sorted(set(ticks)) == round_numbers(*ends[::-1], most, log=True)


def test_values_have_their_place_on_an_axis():
    for axis, value, place in (
        (Axis(0.0, 2.0), 0.5, 0.25),
        (Axis(2.0, 0.0), 0.5, 0.75),
        (Axis(0.0, 2.0), 7.0, 1.0),
        (Axis(0.0, 2.0), -7.0, 0.0),
        (Axis(0.0, 2.0), math.inf, 1.0),
        (Axis(0.01, 1.0, log=True), 0.1, 0.5),
        (Axis(0.01, 1.0, log=True), 0.0, 0.0),
        (Axis(1.0, 0.01, log=True), 0.0, 1.0),
        (Axis(3.0, 3.0), 3.0, 1.0),
    ):
        assert axis.place(value) == pytest.approx(place)


def test_colours_can_be_told_apart():
    assert len(set(charts.COLOURS.values())) == len(charts.COLOURS)


@pytest.mark.parametrize("log", [False, True])
def test_shading_starts_where_the_curves_cross_as_drawn(log):
    low, high = ([1.0, 1e-4], [1e-2, 1e-2]) if log else ([1.0, 0.0], [0.5, 0.5])
    curves = [list(zip((0.0, 1.0), curve, strict=True)) for curve in (low, high)]
    below, above = np.array(charts.between(*curves, log_y=log))
    np.testing.assert_allclose(below[:, 0], [0.0, 0.5, 1.0])
    np.testing.assert_allclose((above - below)[:, 1], [0.0, 0.0, high[1] - low[1]], atol=1e-12)


# --- the profile ---


def with_profile(result: AuditResult, claimed, certified) -> AuditResult:
    grid = tuple(float(e) for e in range(len(claimed)))
    return replace(result, profile=Profile(grid, tuple(certified), tuple(certified), claimed))


@pytest.mark.slow
def test_profile_holds_the_curves_of_the_result():
    kept, broken = found()["kept"], found()["broken"]
    chart = charts.profile(kept)
    assert labels_of(chart) == [
        "claimed", "certified lower bound", "estimated, no guarantee", "point of comparison"
    ]  # fmt: skip
    own = kept.profile
    for label, deltas in zip(
        labels_of(chart),
        (own.claimed_delta, own.certified_delta, own.estimated_delta),
        strict=False,
    ):
        assert xs(named(chart, label)) == list(own.epsilon)
        assert ys(named(chart, label)) == list(deltas)
    assert named(chart, "point of comparison").points == [(1.0, 0.0)]
    violation = named(charts.profile(broken), "certified above claim")
    gaps = np.array(violation.ends)[:, 1] - np.array(violation.points)[:, 1]
    assert (gaps >= 0).all()
    assert gaps.max() == pytest.approx(
        np.subtract(broken.profile.certified_delta, broken.profile.claimed_delta).max()
    )


@pytest.mark.slow
def test_profile_takes_rounding_for_no_violation():
    above = with_profile(found()["exact"], (0.5, 0.1), (0.5 + 1e-13, 0.1 * (1 + 1e-12)))
    assert "certified above claim" not in labels_of(charts.profile(above))


def test_profile_has_no_estimate_beside_computed_numbers():
    for kind in ("exact", "closed"):
        labels = labels_of(charts.profile(found()[kind]))
        assert "computed exactly" in labels
        assert "estimated, no guarantee" not in labels


@pytest.mark.parametrize(
    ("claimed", "log"),
    [((0.5, 0.2, 0.1), False), ((0.5, 0.1, 1e-6), True), ((0.5, 0.0, 0.0), False)],
)
def test_profile_scale_follows_the_spread_of_the_deltas(claimed, log):
    kept = found()["kept"]
    claim = {**kept.claim, "delta": claimed[-1]}
    result = replace(with_profile(kept, claimed, (0.0, 0.0, 0.0)), claim=claim)
    assert charts.profile(result).panels[0].y.log is log


def test_a_profile_of_zeros_has_a_linear_scale():
    pair = NeighborPair([[0.0]], [[1.0]])
    mechanism = AdditiveNoise(
        lambda data, size, *, rng: rng.normal(size=size), "laplace", scale=1.0
    )
    result = audit(mechanism, PureDP(0.0), pair, seed=0, draws=400, mutants=None)
    chart = charts.profile(result)
    assert not chart.panels[0].y.log
    assert ys(named(chart, "certified lower bound")) == [0.0] * len(result.profile.epsilon)


def test_profile_draws_zeros_on_the_floor_of_a_log_scale():
    result = with_profile(found()["kept"], (0.5, 1e-5, 1e-6), (0.4, 0.0, 0.0))
    chart = charts.profile(result)
    y = chart.panels[0].y
    floor, words = y.marks()[0]
    assert words == "0"
    assert 0 < y.low < floor < 1e-6
    assert ys(named(chart, "certified lower bound")) == [0.4, floor, floor]
    assert {"1", "10⁻²", "10⁻⁶", "0"} <= set(
        words_on(charts.profile(found()["silent"]).panels[0].y)
    )


def test_long_profile_goes_on_with_its_error_where_the_claim_ends():
    additive = found()["additive"]
    long, chart = additive.diagnostics.long_profile, charts.profile(additive)
    estimated = named(chart, "estimated, no guarantee")
    floor = chart.panels[0].y.marks()[0][0]
    assert xs(estimated) == list(long.epsilon)
    assert ys(estimated) == [max(delta, floor) for delta in long.estimated_delta]
    assert floor <= 1e-10
    assert chart.panels[0].x.high == long.epsilon[-1]
    (band,) = [series for series in chart.panels[0].series if series.role == "estimated"][:1]
    spread = np.add(long.estimated_delta, 2 * np.array(long.standard_error))
    assert [y for _, y in band.ends] == pytest.approx(np.maximum(spread, floor))


def test_exact_long_profile_continues_the_computed_curve():
    closed = found()["closed"]
    own, long = closed.profile, closed.diagnostics.long_profile
    curve = named(charts.profile(closed), "computed exactly")
    assert len(long.epsilon) > len(own.epsilon)
    assert xs(curve) == list(long.epsilon)
    assert ys(curve)[: len(own.epsilon)] == list(own.certified_delta)
    assert charts.profile(closed).panels[0].x.high == long.epsilon[-1]


def test_the_axis_of_a_profile_reaches_a_finite_certified_epsilon():
    broken = found()["broken"]
    assert broken.profile.epsilon[-1] == 2.0
    for certified in (1.5, 2.0, 2.5, 40.0, math.inf):
        chart = charts.profile(replace(broken, epsilon=replace(broken.epsilon, lower=certified)))
        x = chart.panels[0].x
        if certified == 2.5:
            assert named(chart, CERTIFIED_POINT).points == [(2.5, 0.0)]
            assert (x.low, x.high) == (0.0, pytest.approx(1.03 * 2.5))
        elif certified == 40.0:  # the claim of 1 stays visible
            beyond = named(chart, f"{CERTIFIED_POINT}: 40, right of the axis")
            assert beyond.points == [(3.0, 0.0)]
            assert (x.low, x.high) == (0.0, 3.0)
        else:
            assert not any(label.startswith(CERTIFIED_POINT) for label in labels_of(chart))
            assert (x.low, x.high) == (0.0, 2.0)


# --- the trade-off curve ---


def with_tradeoff(band, claimed, small=0.01) -> AuditResult:
    kept, alpha = found()["kept"], (0.0, small, 0.5, 1.0)
    curves = replace(
        kept.diagnostics.curves, alpha=alpha, certified_beta=band, claimed_beta=claimed
    )
    return changed(kept, curves=curves)


def test_tradeoff_holds_the_curves_of_the_result():
    always = ["perfect privacy", "excluded", "claimed", "certified upper band"]
    kept = found()["kept"]
    chart = charts.tradeoff(kept)
    assert labels_of(chart) == always
    assert xs(named(chart, "claimed")) == list(kept.diagnostics.curves.alpha)
    assert ys(named(chart, "claimed")) == list(kept.diagnostics.curves.claimed_beta)
    assert ys(named(chart, "certified upper band")) == list(kept.diagnostics.curves.certified_beta)
    assert labels_of(charts.tradeoff(found()["broken"])) == [*always, "band below claim"]
    assert "computed upper band" in labels_of(charts.tradeoff(found()["closed"]))


@pytest.mark.parametrize(
    ("band", "claimed", "violated", "log"),
    [
        ((1.0, 0.9, 0.4, 0.0), (1.0, 0.8, 0.3, 0.0), False, False),
        ((1.0, 0.9, 0.2, 0.0), (1.0, 0.9, 0.3, 0.0), True, False),
        ((1.0, 0.6, 0.4, 0.0), (1.0, 0.9, 0.4, 0.0), True, True),  # at small errors
        ((1.0, 0.9, 0.4, 0.0), (1.0, 0.001, 0.0001, 0.0), False, True),  # a large epsilon
        ((1.0, 0.8 - 1e-13, 0.3, 0.0), (1.0, 0.8, 0.3, 0.0), False, False),  # rounding
    ],
)
def test_tradeoff_scale_follows_where_the_claim_is_decided(band, claimed, violated, log):
    chart = charts.tradeoff(with_tradeoff(band, claimed))
    assert ("band below claim" in labels_of(chart)) is violated
    assert chart.panels[0].x.log is chart.panels[0].y.log is log


def test_tradeoff_stretched_about_the_corner_keeps_its_orientation():
    chart = charts.tradeoff(with_tradeoff((1.0, 0.6, 0.4, 0.0), (1.0, 0.9, 0.4, 0.0)))
    assert ys(named(chart, "certified upper band")) == pytest.approx([0.4, 0.6, 1.0])  # 1 - error
    y = chart.panels[0].y
    assert (y.low, y.high) == (
        1.0,
        0.01,
    )  # the axis is reversed, so a smaller error is lower
    assert y.marks() == [(0.01, "0.99"), (0.1, "0.9"), (1.0, "0")]
    smaller = with_tradeoff((1.0, 0.6, 0.4, 0.0), (1.0, 0.9, 0.4, 0.0), small=1e-4)
    y = charts.tradeoff(smaller).panels[0].y
    assert y.marks()[0] == (1e-4, "1 − 10⁻⁴")


def test_tradeoff_without_certified_numbers_shows_the_claim_alone():
    nothing = changed(found()["kept"], curves=None)
    assert labels_of(charts.tradeoff(nothing)) == ["perfect privacy", "claimed"]
    assert "Trade-off curve" not in [chart.title for chart in charts.charts_of(nothing)]


# --- the witness ---


def series_of(chart: Chart, kind: str, role: str) -> list[Series]:
    """Return the series of this kind and role that have points."""
    own = chart.panels[0].series
    return [one for one in own if (one.kind, one.role) == (kind, role) and one.points]


def test_histogram_holds_shares_of_both_sides():
    kept = found()["kept"]
    chart = charts.histogram(kept)
    assert labels_of(chart) == GUESSED
    assert chart.panels[0].y.label == "share of draws"
    for side in ("left", "right"):
        (outline,) = series_of(chart, "line", side)
        assert sum(ys(outline)) == pytest.approx(2)  # each bin has two corners
        assert xs(outline)[::2] == list(kept.diagnostics.histogram.edges[:-1])
    (light,), (dark,) = series_of(chart, "bars", "event"), series_of(chart, "bars", "muted")
    for region, inside in (
        (light, kept.diagnostics.histogram.inside),
        (dark, kept.diagnostics.histogram.inside_right),
    ):
        spans = list(zip(xs(region), [x for x, _ in region.ends], strict=True))
        middles = np.convolve(kept.diagnostics.histogram.edges, [0.5, 0.5], mode="valid")
        assert [any(a < m < b for a, b in spans) for m in middles] == list(inside)


def test_histogram_draws_no_answer_beside_the_axis():
    silent = found()["silent"]
    chart = charts.histogram(silent)
    edge, (_, words) = silent.diagnostics.histogram.edges[-1], chart.panels[0].x.marks()[-1]
    assert words == "no answer"
    for side, share in (("left", 0.5), ("right", 0.1)):
        (bar,) = series_of(chart, "bars", side)
        assert xs(bar)[0] > edge
        assert bar.ends[0][1] == pytest.approx(share, abs=0.1)
    assert "no answer" not in words_on(charts.histogram(found()["kept"]).panels[0].x)


def test_histogram_of_centres_and_of_probabilities_says_so():
    additive, exact = (charts.histogram(found()[kind]) for kind in ("additive", "exact"))
    assert additive.panels[0].y.label == "share of centres"
    assert {"centre in the event", "event: beyond the centres"} & set(labels_of(additive))
    assert not additive.panels[0].y.log
    assert exact.panels[0].x.label.startswith("probability, by ")
    assert "1,000,000" not in exact.panels[0].x.label
    assert labels_of(exact)[2:] == ["event fires"]


@pytest.mark.parametrize("guess", [False, True])
def test_histogram_sums_up_rare_categories(guess):
    k = 50
    counts = tuple(range(1, k + 1))
    shades = [tuple(i % 3 == at for i in range(k)) for at in (0, 1)] if guess else []
    shades = shades or [tuple(i % 2 == 0 for i in range(k))]
    crowd = Histogram("outcome", tuple(map(str, range(k))), None, counts, counts[::-1], *shades)
    result = changed(found()["kept" if guess else "exact"], histogram=crowd)
    chart = charts.histogram(result)
    names = words_on(chart.panels[0].y)
    assert len(names) == charts.MAX_CATEGORIES
    assert names[-3 if guess else -2 :] == (
        ["11 others where left is…", "11 others where right i…", "11 others"]
        if guess
        else ["16 others in the event", "16 others"]
    )
    for side in ("left", "right"):
        (bars,) = series_of(chart, "bars", side)
        assert sum(x for x, _ in bars.ends) == pytest.approx(1)
    (shaded,) = series_of(chart, "bars", "event")
    last = len(names) - (3 if guess else 2)  # the first of the sums, which is shaded to its end
    assert last + 0.5 in [
        max(a, b) for (_, a), (_, b) in zip(shaded.points, shaded.ends, strict=True)
    ]
    assert chart.height > 280


def test_histogram_shows_a_rare_event_on_a_log_scale():
    kept = found()["kept"]

    def described(left, right, *shades) -> Chart:
        own = Histogram("o", ("a", "b", "c"), (0.0, 1.0, 2.0, 3.0), left, right, *shades)
        return charts.histogram(changed(kept, histogram=own))

    for hits, log in ((1, True), (500, False)):
        chart = described((900, 100, hits), (1000, 99, 0), (False, False, True))
        assert chart.panels[0].y.log is log
    both = (1, 990, 9), (1, 490, 509)
    assert described(*both, (False, False, True), (True, False, False)).panels[0].y.log
    empty = described(*both, (False, False, False), (True, False, False))
    assert labels_of(empty)[2] == "left is guessed: less than a bin"
    nothing = described((0, 0, 0), (0, 0, 0), (False, False, True))
    assert series_of(nothing, "line", "left")
    thin = described((900, 99, 1), (1000, 0, 0), (False, False, True))
    assert "10⁻³" in words_on(thin.panels[0].y)


def test_infinite_edges_end_with_the_axis():
    wide = Histogram("o", ("a", "b"), (-math.inf, 0.0, math.inf), (1, 2), (3, 4), (True, False))
    chart = charts.histogram(changed(found()["kept"], histogram=wide))
    places = [place for one in chart.panels[0].series for place in (*one.points, *one.ends)]
    assert np.isfinite(places).all()


# --- sequential audits, noise margins, searches ---


def test_wealth_shows_where_it_stopped_and_why():
    result = found()["stopped"]
    chart, path = charts.wealth(result), result.diagnostics.sequential
    assert labels_of(chart) == [
        "claim refuted at 13.8", "budget: 2,000 draws", "stopped: the claim is refuted"
    ]  # fmt: skip
    (line,) = [one for one in chart.panels[0].series if one.kind == "line" and not one.label]
    assert (xs(line), ys(line)) == (list(path.draws), list(path.log_wealth))
    assert line.role == "violation"
    assert named(chart, labels_of(chart)[0]).points[0][1] == pytest.approx(math.log(1e6))
    assert len(chart.panels[0].x.marks()) >= 3
    without = charts.wealth(changed(result, sequential=replace(path, draws=(), log_wealth=())))
    assert not named(without, "stopped: the claim is refuted").points


def test_a_noise_margin_tells_what_fell_from_what_stood():
    points = tuple(MarginPoint(m, 1 / m, m < 0.6) for m in (0.9, 0.7, 0.5, 0.25))
    result = changed(found()["kept"], noise_margin=NoiseMargin(points, "a pair", 1e-6))
    chart = charts.noise_margin(result)
    assert labels_of(chart) == ["claimed: 1", "stands", "refuted"]
    assert xs(named(chart, "stands")) == [1.0, 0.9, 0.7]  # the mechanism itself is among them
    assert named(chart, "refuted").points == [(0.5, 2.0), (0.25, 3.0)]  # cut at three times claimed
    assert chart.caption.startswith("With 0.5 times the noise the claim is refuted, on the pair a ")


def test_charts_of_other_audits_are_refused():
    for describe, words in (
        (charts.wealth, "kept must be the result of a sequential audit"),
        (charts.noise_margin, "kept has no noise margin"),
        (charts.landscape, "kept must be the result of an audit with a search"),
    ):
        with pytest.raises(ValueError, match=words):
            describe(found()["kept"])


def test_charts_need_no_plotting_library():
    code = "import sys, dpaudit.results.tables; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
