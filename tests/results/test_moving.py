"""Whether an epsilon moved beyond chance: exact cases, properties, and the false-alarm rate.

H0 of the statistical tests: both results are of one mechanism, on one pair.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from dpaudit import NeighborPair, PureDP, audit
from dpaudit.results import BY_RANK, AuditResult, Histogram, Movement, SequentialPath, moving
from dpaudit.results.moving import Shift, shift_of
from tests.records import changed
from tests.report.hand_made import EDGES, claim, estimate, laplace, result, values
from tests.statistical import FALSE_ALARM

ALPHA = 1e-3
PATH = SequentialPath("the budget is spent", 100, 10.0, (100,), (0.0,))


def shift(old: AuditResult, new: AuditResult, alpha: float = ALPHA) -> Shift:
    return shift_of(old, new, alpha, same_pair=True)


def moved(old: AuditResult, new: AuditResult, alpha: float = ALPHA) -> Movement:
    return shift(old, new, alpha).movement


def computed(epsilon: float, **changes: Any) -> AuditResult:
    return result(epsilon=estimate(epsilon, epsilon), **changes)


def drawn(epsilon: float, **changes: Any) -> AuditResult:
    return result(epsilon=estimate(epsilon), **changes)


# --- bounds that exclude one another --------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "movement"),
    [
        (computed(1.0), computed(1.1), Movement.ROSE),
        (computed(1.1), computed(1.0), Movement.FELL),
        (computed(1.0), computed(1.0 + 1e-12), Movement.WITHIN_CHANCE),
        (computed(1.0), computed(math.inf), Movement.ROSE),
        (computed(math.inf), computed(math.inf), Movement.WITHIN_CHANCE),
        (computed(1.0), drawn(1.1), Movement.ROSE),
        (computed(1.0), drawn(0.2), Movement.WITHIN_CHANCE),  # a lower bound shows no fall
        (drawn(1.1), computed(1.0), Movement.FELL),
        (drawn(0.2), computed(1.0), Movement.WITHIN_CHANCE),
    ],
)
def test_bounds_move_an_epsilon_where_they_exclude_one_another(old, new, movement):
    assert moved(old, new) is movement


def test_bounds_that_err_more_often_than_allowed_tell_nothing():
    new = result(epsilon=estimate(1.1, failure_prob=1e-2))
    assert moved(computed(1.0), new, 2e-2) is Movement.ROSE
    found = shift(computed(1.0), new, 5e-3)
    assert found.movement is Movement.NOT_COMPARABLE
    assert "wrong with probability up to 0.01" in found.reason


def test_computed_epsilons_at_other_deltas_are_not_comparable():
    found = shift(computed(1.0, claim=claim(1.0, 1e-6)), computed(2.0, claim=claim(1.0, 1e-5)))
    assert found.movement is Movement.NOT_COMPARABLE
    assert "at delta = 1e-06 and at 1e-05" in found.reason


# --- what cannot be compared ----------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sequential": PATH}, "bets were made"),
        ({"epsilon": estimate(0.9, counts=None)}, "no event was counted"),
        ({"epsilon": estimate(0.9, method=BY_RANK)}, "guesses by rank"),
        ({"histogram": replace(laplace(0.3, 9000, 2), label="logistic score")}, "events differ"),
        ({"histogram": values({"0": 9, "1": 1}, {"0": 1, "1": 9}, {"0"})}, "events differ"),
    ],
)
def test_what_is_not_comparable_is_said_to_be_so(at, changes, words):
    """Although it would have moved by far."""
    both = [result(), result(histogram=laplace(0.3, 20_000, 2))]
    assert moved(*both) is Movement.ROSE
    both[at] = result(**changes)
    found = shift(*both)
    assert found.movement is Movement.NOT_COMPARABLE
    assert words in found.reason
    assert "no upper bound is known" in found.reason


def test_learnt_scores_of_one_name_are_not_one_axis():
    old, new = (replace(laplace(s, 20_000, 2), label="logistic score") for s in (1.0, 0.3))
    assert moved(result(histogram=old), result(histogram=new)) is Movement.NOT_COMPARABLE


@pytest.mark.parametrize("label", ["output", "coordinate 3", "coordinate (8, 1)"])
def test_cells_of_the_output_are_one_axis(label):
    old, new = (replace(laplace(s, 20_000, 2), label=label) for s in (1.0, 0.3))
    assert moved(result(histogram=old), result(histogram=new)) is Movement.ROSE


def test_other_pairs_are_not_comparable():
    for old, new in ((computed(1.0), computed(2.0)), (result(), result())):
        found = shift_of(old, new, ALPHA, same_pair=False)
        assert found.movement is Movement.NOT_COMPARABLE
        assert "pairs" in found.reason


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, math.nan])
def test_false_alarm_is_checked(alpha):
    with pytest.raises(ValueError, match="false_alarm must be a number strictly between 0 and 1"):
        shift(result(), result(), alpha)


# --- what one region shows, by hand ---------------------------------------------------------------


def cp(hits: int, draws: int, level: float) -> tuple[float, float]:
    low = beta.ppf(level, hits, draws - hits + 1) if hits else 0.0
    high = beta.isf(level, hits + 1, draws - hits) if hits < draws else 1.0
    return low, high


def test_regions_of_values_have_the_interval_of_their_counts():
    old = values({"0": 30, "1": 70}, {"0": 80, "1": 20}, {"1"})
    new = values({"0": 25, "1": 65, "2": 10}, {"0": 80, "1": 20}, {"1"})
    (shown,) = shift(result(histogram=old), result(histogram=new), 0.1).shown
    assert shown.region == "output in {1}"
    # Half for each result; witnesses of a grid of 2 epsilons and 3 more, of both; two parts, sides
    # and ends.
    level = 0.05 / (2 * (2 + 3) * 2 * 2 * 2)
    for interval, hits in ((shown.old, 70), (shown.new, 65)):
        (p_low, p_high), (q_low, q_high) = cp(hits, 100, level), cp(20, 100, level)
        low = max(math.log(p_low / q_high), math.log((1 - q_high) / (1 - p_low)), 0.0)
        high = max(math.log(p_high / q_low), math.log((1 - q_low) / (1 - p_high)))
        assert interval == pytest.approx((low, high), rel=1e-9)


def test_values_without_a_name_in_the_other_result_may_lie_in_the_region():
    """7 may have been all of the others there, or none."""
    other = "no answer or any other"
    old = values({"0": 40, "1": 10, "7": 50}, {"0": 80, "1": 15, "7": 5}, {"1", "7"})
    new = values({"0": 40, "1": 10, other: 50}, {"0": 80, "1": 15, other: 5}, {"1"})
    shown, _ = shift(result(histogram=old), result(histogram=new), 0.1).shown
    assert shown.region == "output in {1, 7}"
    level = 0.05 / (2 * (2 + 3) * 2 * 2 * 2)
    p_high, q_low = cp(60, 100, level)[1], cp(15, 100, level)[0]
    high = max(math.log(p_high / q_low), math.log((1 - q_low) / (1 - p_high)))
    assert shown.new == pytest.approx((0.0, high), rel=1e-9)
    p_low, q_high = cp(60, 100, level)[0], cp(20, 100, level)[1]
    low = max(math.log(p_low / q_high), math.log((1 - q_high) / (1 - p_low)))
    assert shown.old[0] == pytest.approx(low, rel=1e-9)


def test_regions_beside_an_edge_are_bounded_by_the_edges_around_them():
    """The cut at 1 lies between the edges 0.5 and 1.5 of the other result, which are its inner."""
    old = Histogram("output", ("a", "b"), (0.0, 1.0, 2.0), (20, 80), (90, 10), (False, True))
    bins, edges = ("a", "b", "c"), (-9.0, 0.5, 1.5, 9.0)
    new = Histogram("output", bins, edges, (20, 30, 50), (90, 6, 4), (False, True, False))
    (shown,) = shift(result(histogram=old), result(histogram=new), 0.1).shown
    assert shown.region == "output > 1"
    level = 0.05 / ((2 + 3) * 2 * 2 * 2 * 2)  # two inner edges, either way
    p_low, q_high = cp(50, 100, level)[0], cp(10, 100, level)[1]
    p_high, q_low = cp(80, 100, level)[1], cp(4, 100, level)[0]
    low = max(math.log(p_low / q_high), math.log((1 - q_high) / (1 - p_low)), 0.0)
    high = max(math.log(p_high / q_low), math.log((1 - q_low) / (1 - p_high)))
    assert shown.new == pytest.approx((low, high), rel=1e-9)
    level = 0.05 / ((2 + 3) * 2 * 2 * 2)  # one inner edge
    p_low, q_high = cp(80, 100, level)[0], cp(10, 100, level)[1]
    low = max(math.log(p_low / q_high), math.log((1 - q_high) / (1 - p_low)), 0.0)
    assert shown.old[0] == pytest.approx(low, rel=1e-9)


def test_a_guess_is_compared_by_right_and_wrong_ones():
    names = {"0": 40, "1": 10, "2": 50}, {"0": 60, "1": 10, "2": 30}
    guess = replace(values(*names, {"2"}), inside_right=(True, False, False))
    (shown,) = shift(result(histogram=guess), result(histogram=guess), 0.1).shown
    assert shown.region == "left where output in {2}, right where output in {0}"
    level = 0.05 / (2 * (2 + 3) * 2 * 2 * 2)
    right = [(a + b) / 2 for a, b in zip(cp(50, 100, level), cp(60, 100, level), strict=True)]
    wrong = [(a + b) / 2 for a, b in zip(cp(30, 100, level), cp(40, 100, level), strict=True)]
    assert shown.old[0] == pytest.approx(max(math.log(right[0] / wrong[1]), 0.0), rel=1e-9)
    assert shown.old[1] == pytest.approx(math.log(right[1] / wrong[0]), rel=1e-9)


def test_two_regions_may_move_either_way():
    old = values({"0": 500, "1": 100, "2": 400}, {"0": 100, "1": 500, "2": 400}, {"0"})
    turned = {"0": 100, "1": 100, "2": 800}, {"0": 90, "1": 1, "2": 909}
    found = shift(result(histogram=old), result(histogram=values(*turned, {"1"})))
    assert [shown.movement for shown in found.shown] == [Movement.FELL, Movement.ROSE]
    assert found.movement is Movement.BOTH_WAYS
    assert found.is_beyond_chance


def test_unclear_values_are_not_compared():
    old = values({"0": 10, "1": 90}, {"0": 90, "1": 10}, {"1"})
    same_words = replace(old, bins=("1", "1"))
    assert moved(result(histogram=old), result(histogram=same_words)) is Movement.NOT_COMPARABLE


# --- properties -----------------------------------------------------------------------------------

SCALES = st.sampled_from([0.3, 0.5, 0.8, 1.0, 2.0])
CUTS = st.sampled_from([-1.0, 0.1, 0.96, 2.2])


@given(SCALES, SCALES, CUTS, CUTS, st.sampled_from([1e-9, 1e-4, 0.3]))
def test_what_rose_one_way_fell_the_other_way(a, b, cut_a, cut_b, alpha):
    old = result(histogram=laplace(a, 5000, 3, cut_a))
    new = result(histogram=laplace(b, 5000, 4, cut_b))
    there, back = shift(old, new, alpha), shift(new, old, alpha)
    turned = {Movement.ROSE: Movement.FELL, Movement.FELL: Movement.ROSE}
    assert back.movement is turned.get(there.movement, there.movement)
    assert {(s.region, s.old, s.new) for s in there.shown} == {
        (s.region, s.new, s.old) for s in back.shown
    }
    for shown in there.shown:
        for low, high in (shown.old, shown.new):
            assert 0.0 <= low <= high


@given(SCALES, SCALES, CUTS)
def test_a_smaller_false_alarm_rate_never_tells_more(a, b, cut):
    old, new = (result(histogram=laplace(s, 5000, 5, cut)) for s in (a, b))
    told = [shift(old, new, alpha).is_beyond_chance for alpha in (1e-12, 1e-6, 1e-3, 0.5)]
    assert told == sorted(told)


@given(SCALES, CUTS)
def test_equal_counts_never_move(scale, cut):
    one = result(histogram=laplace(scale, 500, 6, cut))
    assert moved(one, one, 0.999) is Movement.WITHIN_CHANCE


# --- the false-alarm rate -------------------------------------------------------------------------

NULLS, ALLOWED = 80, 0.3


def _alarms(rng: np.random.Generator, scales: tuple[float, float]) -> int:
    """Comparisons of which the worst cut is chosen after the fact, as no audit would do."""
    found = 0
    for _ in range(NULLS):
        seeds = rng.integers(2**32, size=2)
        old, new = (
            result(histogram=laplace(scale, 400, int(seed)))
            for scale, seed in zip(scales, seeds, strict=True)
        )
        cuts = [
            changed(
                old,
                histogram=replace(
                    old.diagnostics.histogram, inside=tuple(e >= c for e in EDGES[:-1])
                ),
            )
            for c in EDGES[8:36:4]
        ]
        found += any(shift(cut, new, ALLOWED).is_beyond_chance for cut in cuts)
    return found


def _is_too_often(alarms: int) -> bool:
    """Whether so many alarms are improbable at the allowed rate."""
    return bool(binom.sf(alarms - 1, NULLS, ALLOWED) < FALSE_ALARM)


def test_nothing_moves_more_often_than_is_stated_whichever_cut_is_chosen():
    assert not _is_too_often(_alarms(np.random.default_rng(20), (1.0, 1.0)))


def test_another_scale_moves():
    assert _is_too_often(_alarms(np.random.default_rng(21), (1.0, 0.3)))


def test_estimates_without_bounds_move_too_often(monkeypatch):
    """The wrong control: either end is as often wrong as right."""
    monkeypatch.setattr(moving, "_level", lambda picture, failure_prob, own, all_: 0.5)
    assert _is_too_often(_alarms(np.random.default_rng(20), (1.0, 1.0)))


PAIR = NeighborPair([[1.0]], [[0.0]])


def _noisy(data: Any, size: int, *, rng: np.random.Generator, scale: float = 1.0) -> Any:
    return data.sum() + rng.laplace(scale=scale, size=size)


def _rounded(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return np.clip(np.round(_noisy(data, size, rng=rng)), -3, 3)


def _narrow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return _noisy(data, size, rng=rng, scale=0.4)


def _audit(mechanism: Any, seed: int) -> AuditResult:
    return audit(mechanism, PureDP(1.0), PAIR, draws=6000, seed=seed, mutants=None, id="a")


def test_audits_of_one_mechanism_with_many_seeds_do_not_move():
    """Whole audits: 8 comparisons at 1e-2 each; four alarms have probability below 1e-6."""
    alarms = 0
    for mechanism in (_noisy, _rounded):
        found = [_audit(mechanism, seed) for seed in range(8)]
        for old, new in zip(found[::2], found[1::2], strict=True):
            seen = shift(old, new, 1e-2)
            assert seen.movement is not Movement.NOT_COMPARABLE, seen.reason
            alarms += seen.is_beyond_chance
    assert binom.sf(alarms - 1, 8, 1e-2) >= FALSE_ALARM


def test_audits_of_another_mechanism_move_with_the_same_seed_and_with_another():
    old = _audit(_noisy, 1)
    for seed in (1, 2):
        assert moved(old, _audit(_narrow, seed)) is Movement.ROSE
        assert moved(_audit(_narrow, seed), old) is Movement.FELL
