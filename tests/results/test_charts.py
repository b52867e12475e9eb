"""The pictures of the page: that they show what the infos hold."""

from __future__ import annotations

import functools
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import AdditiveNoise, ApproxDP, GaussianDP, NeighborPair, PureDP, audit
from dpaudit.results import charts, infos
from dpaudit.results.axes import Axis
from dpaudit.results.estimates import Histogram, Profile, Slack, SlackPoint
from dpaudit.results.result import AuditResult
from dpaudit.results.svg import Chart, neutral

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
ALWAYS = [charts.profile, charts.histogram, charts.tradeoff]


def words(svg: str) -> list[str]:
    return re.findall(r">([^<>]+)</text>", svg)


def paths(svg: str, role: str) -> list[str]:
    return re.findall(rf'stroke="var\(--{role}\)"[^>]* d="([^"]*)"', svg)


@pytest.mark.parametrize("draw", ALWAYS, ids=lambda draw: draw.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_can_be_drawn(kind, draw):
    svg = draw(found()[kind])
    root = ET.fromstring(svg)
    assert root.get("aria-label")
    assert "nan" not in re.sub(r">[^<]*</text>", "", svg)
    assert svg == draw(found()[kind])
    assert len(svg) < 15_000
    assert "var(" not in draw(found()[kind], neutral)


def test_profile_names_what_it_draws():
    assert words(charts.profile(found()["kept"]))[:4] == [
        "claimed",
        "certified lower bound",
        "estimated, no guarantee",
        "point of comparison",
    ]
    assert "certified above claim" in words(charts.profile(found()["broken"]))
    assert "estimated, no guarantee" not in words(charts.profile(found()["closed"]))
    assert "computed exactly" in words(charts.profile(found()["exact"]))


def test_profile_marks_a_certified_epsilon_beyond_its_curves():
    broken = found()["broken"]
    far = replace(broken, epsilon=replace(broken.epsilon, lower=17.0))
    svg = charts.profile(far)
    assert charts.CERTIFIED_POINT in words(svg)
    assert {"0", "10", "15"} <= set(words(svg))
    near = replace(broken, epsilon=replace(broken.epsilon, lower=1.5))
    assert charts.CERTIFIED_POINT not in words(charts.profile(near))


def test_profile_on_a_log_scale_has_decades_and_a_floor_for_zero():
    shown = words(charts.profile(found()["silent"]))
    assert {"1", "10⁻²", "10⁻⁶", "0"} <= set(shown)


def test_profile_of_zeros_and_of_one_point_can_be_drawn():
    kept = found()["kept"]
    for profile in (
        Profile((0.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),
        Profile((0.0,), (0.0,), (0.0,), (0.5,)),
        Profile((0.0, math.inf), (0.5, 0.1), (0.6, 0.1), (0.4, 0.0)),
    ):
        svg = charts.profile(replace(kept, profile=profile))
        assert ET.fromstring(svg) is not None
        assert "nan" not in svg


def test_long_profile_has_a_band_and_goes_on():
    result = found()["additive"]
    svg = charts.profile(result)
    assert 'fill="var(--estimated)" fill-opacity="0.25"' in svg
    assert len(paths(svg, "certified")) >= 2  # the curve, and its sign in the legend


def test_tradeoff_is_stretched_where_the_corner_decides():
    kept = found()["kept"]
    curves = replace(
        kept.curves,
        alpha=(0.0, 0.01, 0.5, 1.0),
        certified_beta=(1.0, 0.6, 0.4, 0.0),
        claimed_beta=(1.0, 0.9, 0.4, 0.0),
    )
    shown = words(charts.tradeoff(replace(kept, curves=curves)))
    assert "band below claim" in shown
    assert {"0.99", "0.9", "0", "10⁻²"} <= set(shown)
    assert "0.25" in words(charts.tradeoff(kept))


def test_tradeoff_without_certified_numbers_shows_the_claim_alone():
    shown = words(charts.tradeoff(replace(found()["kept"], curves=None)))
    assert shown[:2] == ["perfect privacy", "claimed"]
    assert "excluded" not in shown


def test_histogram_has_a_curve_for_each_side_and_shades_what_is_guessed():
    svg = charts.histogram(found()["kept"])
    for side in ("left", "right"):
        assert len(paths(svg, side)) == 1
    assert 'fill="var(--event)"' in svg.split("</g>", 1)[1]
    names = ["left dataset", "right dataset", "left is guessed", "right is guessed"]
    assert words(svg)[:4] == names


def test_histogram_draws_no_answer_beside_the_axis():
    svg = charts.histogram(found()["silent"])
    assert "no answer" in words(svg)
    bars = re.findall(r'<rect fill="var\(--(left|right)\)" fill-opacity="0.75"', svg)
    assert bars == ["left", "right", "left", "right"]  # the legend, and a bar each
    assert "no answer" not in words(charts.histogram(found()["kept"]))


def test_histogram_of_categories_has_a_bar_for_each_side_and_is_text():
    info, svg = infos.histogram_info(found()["worded"]), charts.histogram(found()["worded"])
    shares = [share for share in (*info.left, *info.right) if share > 0]
    assert svg.count('fill-opacity="0.75"') == len(shares) + 2
    assert "日本 &lt;script&gt;" in svg


def test_histogram_of_many_categories_grows():
    exact = found()["exact"]
    crowd = Histogram("o", tuple(map(str, range(18))), None, (1,) * 18, (1,) * 18, (True,) * 18)
    height = re.search(
        r'viewBox="0 0 400 (\d+)"', charts.histogram(replace(exact, histogram=crowd))
    )
    assert height is not None
    assert int(height[1]) > 400


@pytest.mark.parametrize("counts", [((900, 99, 1), (1000, 0, 0)), ((0, 0, 0), (0, 0, 0))])
def test_rare_events_and_empty_histograms_can_be_drawn(counts):
    thin = Histogram("o", ("a", "b", "c"), (0.0, 1.0, 2.0, 3.0), *counts, (False, False, True))
    result = replace(found()["kept"], histogram=thin)
    shown = words(charts.histogram(result))
    assert ("10⁻³" in shown) is (counts[0][2] > 0)


@pytest.mark.parametrize("edges", [(0.0, 1.0, 2.0, 3.0), None])
def test_a_guess_has_two_shades_and_an_event_one(edges):
    regions = (False, False, True), (True, False, False)
    guess = Histogram("o", ("a", "b", "c"), edges, (300, 300, 400), (400, 300, 300), *regions)
    svg = charts.histogram(replace(found()["kept"], histogram=guess))
    assert "right is guessed" in words(svg)
    assert "left is guessed" in words(svg)
    assert svg.count('class="hatched"') == 2  # the legend, and the region
    assert svg.count('fill="var(--event)"') == 2
    event = charts.histogram(replace(found()["kept"], histogram=replace(guess, inside_right=())))
    assert "event fires" in words(event)
    assert "is guessed" not in event
    assert 'class="hatched"' not in event
    assert event.count('fill="var(--event)"') == 2


def test_hatching_stays_in_its_rectangle():
    chart = Chart(Axis(0.0, 10.0), Axis(0.0, 10.0))
    chart.box((2.0, 4.0), (1.0, 7.0), "event", hatched=True)
    svg = chart.svg("x")
    hatched = re.search(r'class="hatched" [^>]* d="([^"]*)"', svg)
    assert hatched is not None
    ends = np.array(
        [list(map(float, end.split())) for end in re.findall(r"[ML]([^ML]+)", hatched[1])]
    )
    (left, bottom), (right, top) = chart._at(2.0, 1.0), chart._at(4.0, 7.0)
    assert ends.min(axis=0) == pytest.approx([left, top], abs=6.1)
    assert ends.max(axis=0) == pytest.approx([right, bottom], abs=6.1)
    assert (ends >= np.array([left, top]) - 0.1).all()
    assert (ends <= np.array([right, bottom]) + 0.1).all()
    assert ends[::2].sum(axis=1) == pytest.approx(ends[1::2].sum(axis=1), abs=0.2)


def test_infinite_edges_end_with_the_axis():
    wide = Histogram("o", ("a", "b"), (-math.inf, 0.0, math.inf), (1, 2), (3, 4), (True, False))
    svg = charts.histogram(replace(found()["kept"], histogram=wide))
    assert "inf" not in svg
    assert ET.fromstring(svg) is not None


def test_wealth_shows_where_it_stopped_and_why():
    result = found()["stopped"]
    shown = words(charts.wealth(result))
    assert shown[:3] == [
        "claim refuted at 13.82",
        "budget: 2\u202f000 draws",
        "stopped: the claim is refuted",
    ]
    assert len([word for word in shown if re.fullmatch(r"[\d\u202f]+", word)]) >= 3


def test_wealth_without_a_look_can_be_drawn():
    result = found()["stopped"]
    path = replace(result.sequential, draws=(), log_wealth=())
    assert ET.fromstring(charts.wealth(replace(result, sequential=path))) is not None


def test_wealth_of_other_audits_is_refused():
    with pytest.raises(ValueError, match="kept was not audited sequentially"):
        charts.wealth(found()["kept"])


def test_slack_tells_what_fell_from_what_stood():
    points = tuple(SlackPoint(m, 1 / m, m < 0.6) for m in (0.9, 0.7, 0.5, 0.25))
    svg = charts.slack(replace(found()["kept"], slack=Slack(points, "a pair", 1e-6)))
    assert words(svg)[:3] == ["claimed: 1", "stands", "refuted"]
    dots = {
        role: len(re.findall(r"M[\d. ]+h0", path))
        for role in ("certified", "violation")
        for path in paths(svg, role)
    }
    assert dots == {"certified": 3, "violation": 2}  # the mechanism itself is among them


def test_slack_of_other_audits_is_refused():
    with pytest.raises(ValueError, match="without slack"):
        charts.slack(found()["kept"])


def test_pictures_need_no_plotting_library():
    code = "import sys, dpaudit.results.charts; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
