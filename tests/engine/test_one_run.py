"""Tests of whole audits in one run.

The tests cover invalid input, ties, soundness by enumeration, and plans.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from scipy.stats import binom, mannwhitneyu

import dpaudit
from dpaudit import (
    ApproxDP,
    GaussianDP,
    PureDP,
    Relation,
    Verdict,
    ZeroConcentratedDP,
    plan_one_run,
)
from dpaudit.engine.one_run import GuessTest, hints, right_guesses
from dpaudit.engine.task import PRIMARY_SHARE
from dpaudit.results import AuditResult
from dpaudit.stats import half_probability
from tests.statistical import FALSE_ALARM


def gaussian_scores(mu, m, seed):
    rng = np.random.default_rng(seed)
    coins = rng.random(m) < 0.5
    return rng.standard_normal(m) + mu * coins, coins


# --- input -----------------------------------------------------------------------------------

COINS = np.array([0, 1] * 20)
SCORES = np.arange(40.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": np.append(SCORES[1:], np.nan)}, "scores must be finite, got nan at index 39"),
        ({"scores": SCORES[1:]}, "have the same length, got lengths 39 and 40"),
        ({"scores": []}, "scores must be a nonempty one-dimensional array of numbers"),
        ({"scores": SCORES.reshape(8, 5)}, "one-dimensional array of numbers"),
        ({"scores": ["a"] * 40}, "one-dimensional array of numbers"),
        ({"included": COINS * 2}, "included must hold booleans, or 0 and 1, got 2 at 1"),
        ({"included": np.ones(40)}, "as excluded, got 40 that are all included"),
        ({"included": np.zeros(40)}, "all excluded"),
        ({"included": np.arange(40) > 38}, "fair coins include 1 of 40 canaries"),
        ({"scores": [1.0], "included": [True]}, "as excluded, got 1 that are all included"),
        ({"scores": [[1, 2], [3]]}, "scores must be one-dimensional, got a ragged list"),
        (
            {"included": np.array([True, None] * 20)},
            "included must hold booleans, .* got None at 1",
        ),
        ({"included": []}, "included must be a nonempty one-dimensional"),
        ({"guesses": 0}, "guesses must be an integer >= 1"),
        ({"guesses": 41}, "from 1 to the number of canaries, 40, got 41"),
        ({"side": "bottom"}, "side must be one of both, top"),
        ({"failure_prob": 1.0}, "failure_prob must be"),
        ({"id": ""}, "id must be a text that is not empty"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    given = {"scores": SCORES, "included": COINS, "claim": PureDP(1.0)} | arguments
    with pytest.raises(ValueError, match=message):
        dpaudit.audit_one_run(**given)


@pytest.mark.parametrize(
    "arguments", [{"claim": 1.0}, {"guesses": 2.5}, {"id": 5}, {"failure_prob": True}]
)
def test_wrong_types_are_refused(arguments):
    given = {"scores": SCORES, "included": COINS, "claim": PureDP(1.0)} | arguments
    with pytest.raises(TypeError):
        dpaudit.audit_one_run(**given)


def test_fair_coins_are_never_refused_in_practice():
    m = 40
    heads = np.arange(m + 1)
    refused = [min(2 * binom.cdf(min(k, m - k), m, 0.5), 1.0) < 1e-9 for k in heads]
    assert binom.pmf(heads, m, 0.5)[refused].sum() <= 1e-9


# --- half of the canaries --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 1e-5), GaussianDP(0.5)], ids=str)
def test_a_random_half_is_judged_by_a_bound_of_its_own(claim):
    rng = np.random.default_rng(3)
    included = rng.permutation(np.arange(120) < 60)
    scores = 3.5 * included + rng.standard_normal(120)
    given = {"scores": scores, "included": included, "claim": claim, "failure_prob": 0.05}
    fair, half = (dpaudit.audit_one_run(**given, coins=coins) for coins in ("fair", "half"))
    assert half.verdict is Verdict.REFUTED
    assert 0 < half.certified_epsilon < fair.certified_epsilon
    paid = dpaudit.audit_one_run(
        **given | {"failure_prob": 0.05 * half_probability(120)}, coins="fair"
    )
    assert half.diagnostics.canaries == paid.diagnostics.canaries
    assert half.p_value == pytest.approx(paid.p_value / half_probability(120))
    assert any("uniformly among all sets of half" in note for note in half.notes)
    assert not any("half of the canaries are" in note for note in fair.notes + half.notes)


def test_who_included_exactly_half_and_does_not_say_so_is_told():
    rng = np.random.default_rng(3)
    included = rng.permutation(np.arange(120) < 60)
    scores = 2.0 * included + rng.standard_normal(120)
    given = {"scores": scores, "included": included, "claim": PureDP(1.0), "failure_prob": 0.05}
    unsaid, fair = dpaudit.audit_one_run(**given), dpaudit.audit_one_run(**given, coins="fair")
    assert unsaid.notes[0].startswith("Exactly half of the canaries are included")
    assert "probability 0.073 under fair coins" in unsaid.notes[0]
    assert unsaid.diagnostics.canaries == fair.diagnostics.canaries


def test_half_must_be_half_rounded_either_way():
    odd = np.arange(41)
    for heads in (20, 21):
        found = dpaudit.audit_one_run(odd, odd < heads, PureDP(1.0), coins="half")
        assert found.verdict is Verdict.NO_POWER
    with pytest.raises(ValueError, match="half of the 41 canaries for coins='half', got 22"):
        dpaudit.audit_one_run(odd, odd < 22, PureDP(1.0), coins="half")
    for call in (dpaudit.audit_one_run, lambda *_, **more: plan_one_run(PureDP(1), mu=1, **more)):
        with pytest.raises(ValueError, match="coins must be one of fair, half"):
            call(SCORES, COINS, PureDP(1.0), coins="unfair")


def test_plans_know_that_a_random_half_shows_less():
    fair, half = (
        plan_one_run(PureDP(1.0), mu=2.0, canaries=[300], failure_prob=0.05, coins=coins)
        for coins in ("fair", "half")
    )
    assert half.certified_epsilon[0] < fair.certified_epsilon[0]
    assert half.power[0] <= fair.power[0]
    assert fair.needed < half.needed < 3 * fair.needed


# --- guesses ---------------------------------------------------------------------------------


def test_guesses_alternate_between_the_two_ends():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    included = np.array([True, False, True, True, False])
    both = right_guesses(scores, included, one_sided=False)
    assert both.tolist() == [0, 1, 2, 2, 2, 3]  # 5 in, 1 out, 4 in (wrong), 2 out (wrong), 3 in
    top = right_guesses(scores, included, one_sided=True)
    assert top.tolist() == [0, 1, 1, 2, 3, 3]


@pytest.mark.parametrize("one_sided", [False, True])
def test_ties_count_no_more_than_any_way_to_break_them(one_sided):
    rng = np.random.default_rng(5)
    for _ in range(30):
        scores, included = rng.integers(0, 3, 8).astype(float), rng.random(8) < 0.5
        found = right_guesses(scores, included, one_sided=one_sided)
        broken = scores + rng.permutation(8) / 100
        assert (found <= right_guesses(broken, included, one_sided=one_sided)).all()


def test_equal_scores_certify_nothing_in_whatever_order_the_canaries_come():
    for coins in (np.sort(COINS)[::-1], COINS, np.sort(COINS)):
        found = dpaudit.audit_one_run(np.zeros(40), coins, PureDP(0.0), failure_prob=0.05)
        assert (found.verdict, found.certified_epsilon) == (Verdict.NO_POWER, 0.0)


def test_the_order_of_the_canaries_does_not_matter():
    scores, coins = gaussian_scores(2.0, 100, 1)
    order = np.argsort(coins)
    one, other = (
        dpaudit.audit_one_run(s, c, PureDP(1.0), failure_prob=0.05)
        for s, c in ((scores, coins), (scores[order], coins[order]))
    )
    assert one == other


# --- results ---------------------------------------------------------------------------------

CLAIMS = [PureDP(1.0), ApproxDP(1.0, 1e-5), GaussianDP(0.5)]


@pytest.mark.sampled
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
@pytest.mark.parametrize("side", ["both", "top"])
def test_a_claim_that_is_far_off_is_refuted(claim, side):
    scores, coins = gaussian_scores(3.0, 150, 2)
    found = dpaudit.audit_one_run(scores, coins, claim, side=side, failure_prob=0.05, id="leaky")
    assert found.verdict == "refuted"
    assert found.p_value <= 0.05
    assert found.certified_epsilon > 1.0
    assert "REFUTED  leaky" in str(found)
    with pytest.raises(AssertionError, match="REFUTED"):
        found.assert_not_refuted()
    with pytest.raises(TypeError, match="no truth value"):
        bool(found)
    stored = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert AuditResult.from_json(stored) == found


def test_silence_has_no_power_and_says_what_is_assumed():
    scores, coins = gaussian_scores(0.5, 100, 3)
    claim = ApproxDP(4.0, 1e-6, Relation.ADD_REMOVE_USER, "a paper")
    found = dpaudit.audit_one_run(scores, coins, claim, guesses=50)
    assert found.verdict is Verdict.NO_POWER
    found.assert_not_refuted(power=False)
    with pytest.raises(AssertionError, match="NO POWER"):
        found.assert_not_refuted()
    assert found.reason.endswith("there is no mutant to show power: one run has none")
    assert "\n  next                Use more canaries" in found.summary()
    assert AuditResult.from_json(found.to_json()) == found
    assert any("fair coin" in words for words in found.notes)
    assert any("guesses=50 were fixed" in words for words in found.notes)
    assert found.diagnostics.canaries.stages == (50,)
    assert found.diagnostics.canaries.chosen == "the number of guesses was fixed beforehand"
    with pytest.raises(ValueError, match="schema"):
        AuditResult.from_json({})


def test_a_delta_that_explains_everything_is_named():
    scores, coins = gaussian_scores(3.0, 1000, 3)
    found = dpaudit.audit_one_run(scores, coins, ApproxDP(1.0, 1e-3))
    assert found.verdict is Verdict.NO_POWER
    assert "Choose a larger failure_prob" in found.notes[0]


def test_verdict_and_certified_epsilon_agree():
    verdicts = set()
    for seed in range(4):
        scores, coins = gaussian_scores(1.4, 60, seed)
        for claim in (PureDP(1.0), ApproxDP(1.0, 1e-4)):
            found = dpaudit.audit_one_run(scores, coins, claim, failure_prob=0.1)
            assert (found.verdict is Verdict.REFUTED) == (found.p_value <= 0.1)
            assert (found.certified_epsilon >= 1.0) == (found.p_value <= 0.1)
            verdicts.add(found.verdict)
    assert len(verdicts) == 2


@pytest.mark.slow
def test_a_curve_is_judged_whole():
    """Check that a claimed curve is tested as a whole.

    Single points of the curve refute less than the whole curve, because epsilon is certified
    without knowledge of the curve.
    """
    scores, coins = gaussian_scores(4.0, 2000, 4)
    found = dpaudit.audit_one_run(scores, coins, GaussianDP(1.0), failure_prob=0.05)
    assert found.verdict is Verdict.REFUTED
    assert "the training run" in found.advice
    assert found.diagnostics.curves.certified_mu > 1.0
    at = found.claimed_delta
    assert found.claimed_epsilon == GaussianDP(1.0).epsilon(at)
    assert found.certified_epsilon > found.claimed_epsilon  # here the claim is exceeded most
    conditional = GaussianDP(found.diagnostics.curves.certified_mu).epsilon(at)
    assert found.diagnostics.curves.conditional_epsilon == pytest.approx(conditional)
    assert found.certified_epsilon < conditional


@pytest.mark.slow
def test_any_claim_will_do():
    scores, coins = gaussian_scores(3.0, 300, 5)
    found = dpaudit.audit_one_run(scores, coins, ZeroConcentratedDP(0.05), failure_prob=0.05)
    assert found.verdict is Verdict.REFUTED
    assert not any("Gaussian-DP" in note for note in found.notes)


# --- soundness -------------------------------------------------------------------------------


def refuted_share(claim, epsilon, *, order, alpha, m=8):
    """Return the exact probability that randomised response is refuted, for an order of the scores.

    Coins and answers are enumerated by their difference. Whether an answer is correct does not
    depend on the answer. The confidence depends only on the position.
    """
    tool, rate = GuessTest.of(m, failure_prob=alpha), 1 / (1 + math.exp(-epsilon))
    numbers = list(tool.planner.plan(claim).numbers)
    memory, total = {}, 0.0
    answers = np.array([True, False] * (m // 2))
    confident = np.where(answers, 1.0, -1.0) * (2 * m - np.arange(m))
    for right in itertools.product((False, True), repeat=m):
        coins = np.where(right, answers, ~answers)
        scores = order(confident, coins)
        guessed = right_guesses(scores, coins, one_sided=False)
        key = tuple(guessed[numbers].tolist())
        if key not in memory:
            memory[key] = tool.p_value(guessed, claim) <= alpha
        total += memory[key] * rate ** sum(right) * (1 - rate) ** (m - sum(right))
    return total


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_whole_audits_of_the_extremal_mechanism_keep_their_level(epsilon, alpha):
    share = refuted_share(PureDP(epsilon), epsilon, order=lambda scores, _: scores, alpha=alpha)
    assert share <= alpha


def test_enumeration_sees_an_order_that_looks_at_the_coins():
    def peeking(scores, coins):
        return np.where(coins == (scores > 0), scores, scores / 100)  # correct guesses come first

    assert refuted_share(PureDP(0.5), 0.5, order=peeking, alpha=0.3) > 0.5


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("claim", [GaussianDP(1.0), ApproxDP(GaussianDP(1.0).epsilon(1e-4), 1e-4)])
def test_exact_claims_are_refuted_no_more_often_than_stated(claim):
    m, alpha, audits = 100, 0.05, 400
    tool, memory, refuted = GuessTest.of(m, failure_prob=alpha), {}, 0
    numbers = list(tool.planner.plan(claim).numbers)
    for seed in range(audits):
        scores, coins = gaussian_scores(1.0, m, seed)
        guessed = right_guesses(scores, coins, one_sided=False)
        key = tuple(guessed[numbers].tolist())
        if key not in memory:
            memory[key] = tool.p_value(guessed, claim) <= alpha
        refuted += memory[key]
    assert refuted <= binom.isf(FALSE_ALARM, audits, alpha)


@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize("together", [True, False])
def test_coins_that_leak_are_refuted_no_more_often_than_delta_allows(together):
    """Check a mechanism that reveals all coins, or each coin, with probability delta."""
    m, alpha, delta, audits = 60, 0.05, 0.03, 400
    tool, memory, refuted = GuessTest.of(m, failure_prob=alpha), {}, 0
    claim = ApproxDP(0.5, delta)
    numbers = list(tool.planner.plan(claim).numbers)
    for seed in range(audits):
        rng = np.random.default_rng(seed)
        coins = rng.random(m) < 0.5
        sure = rng.random(1 if together else m) < delta
        answer = np.where(sure | (rng.random(m) < 1 / (1 + math.exp(-0.5))), coins, ~coins)
        scores = np.where(answer, 1.0, -1.0) * (1 + rng.random(m) + 2 * sure)
        guessed = right_guesses(scores, coins, one_sided=False)
        key = tuple(guessed[numbers].tolist())
        if key not in memory:
            memory[key] = tool.p_value(guessed, claim) <= alpha
        refuted += memory[key]
    assert refuted <= binom.isf(FALSE_ALARM, audits, alpha)


# --- hints -----------------------------------------------------------------------------------


def test_scores_of_a_reversed_sign_are_pointed_out_and_change_nothing_else():
    scores, coins = gaussian_scores(2.0, 300, 3)
    found = dpaudit.audit_one_run(-scores, coins, PureDP(1.0), failure_prob=0.05)
    lower = (scores[coins][:, None] > scores[~coins]).mean()
    assert f"have lower scores than excluded ones in {lower:.0%} of the pairs" in found.notes[0]
    assert "double failure_prob" in found.summary(verbose=True)
    assert (found.verdict, found.certified_epsilon) == (Verdict.NO_POWER, 0.0)
    assert "reversed" not in str(dpaudit.audit_one_run(scores, coins, PureDP(1.0)))


@pytest.mark.slow
def test_certified_numbers_do_not_depend_on_hints(monkeypatch):
    scores, coins = gaussian_scores(1.5, 120, 4)
    for given in (scores, -scores, scores.round()):
        plain = dpaudit.audit_one_run(given, coins, PureDP(1.0), failure_prob=0.05)
        with monkeypatch.context() as patched:
            patched.setattr("dpaudit.engine.one_run.hints", lambda *_, **__: ["said"])
            other = dpaudit.audit_one_run(given, coins, PureDP(1.0), failure_prob=0.05)
        assert other.notes != plain.notes
        unnoted = (dataclasses.replace(found, notes=()) for found in (other, plain))
        assert next(unnoted) == next(unnoted)


@pytest.mark.statistical
def test_scores_that_tell_nothing_are_seldom_said_to_be_reversed():
    """Check that uninformative scores are rarely reported as reversed.

    By a normal approximation, which is accurate to 30% here, the probability is 1e-3.
    """
    rng, said = np.random.default_rng(5), 0
    for _ in range(3000):
        coins = rng.random(60) < 0.5
        said += any("reversed" in hint for hint in hints(rng.integers(0, 9, 60) * 1.0, coins))
    assert said <= binom.isf(FALSE_ALARM, 3000, 1.3e-3)


def test_the_chance_of_a_reversed_sign_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(6)
    for shift in np.linspace(0.0, 1.5, 31).tolist():
        coins = rng.random(50) < 0.5
        scores = np.round(rng.standard_normal(50) - shift * coins, 1)
        p = mannwhitneyu(
            scores[coins],
            scores[~coins],
            alternative="less",
            method="asymptotic",
            use_continuity=False,
        ).pvalue
        assert any("reversed" in hint for hint in hints(scores, coins)) == (p < 1e-3)


def test_ties_are_counted_where_they_are_many():
    _, coins = gaussian_scores(1.0, 200, 1)
    few, many = np.arange(200.0), np.arange(200.0)
    few[:20], many[:21] = 0.0, 0.0  # a tenth of the canaries, and one canary more
    assert not any("share" in hint for hint in hints(few, coins))
    told = [hint for hint in hints(many, coins) if "share" in hint]
    assert len(told) == 1
    assert told[0].startswith("21 of 200 canaries share their score with others (180 distinct")
    same = dpaudit.audit_one_run(np.zeros(200), coins, PureDP(1.0))
    assert "200 of 200 canaries share their score with others (1 distinct" in same.summary(
        verbose=True
    )
    assert "reversed" not in str(same)


# --- plans -----------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize("side", ["both", "top"])
@pytest.mark.parametrize(
    ("claim", "mu"),
    [(PureDP(1.0), 1.25), (ApproxDP(1.0, 1e-3), 1.35), (GaussianDP(0.5), 1.35)],
    ids=str,
)
def test_the_planned_power_is_about_that_of_audits(claim, mu, side):
    m, alpha, audits = 150, 0.05, 300
    planned = plan_one_run(claim, mu=mu, canaries=[m], side=side, failure_prob=alpha).power[0]
    assert 0.5 < planned < 0.98  # other powers would test little
    share = PRIMARY_SHARE * alpha
    tool, refuted = GuessTest.of(m, one_sided=side == "top", failure_prob=share), 0
    for seed in range(audits):
        scores, coins = gaussian_scores(mu, m, seed)
        right = right_guesses(scores, coins, one_sided=side == "top")
        refuted += tool.p_value(right, claim) <= share
    assert refuted >= binom.ppf(FALSE_ALARM, audits, planned - 0.05)
    assert refuted <= binom.isf(FALSE_ALARM, audits, planned + 0.05)


def test_plans_grow_with_canaries_and_shrink_with_certainty():
    found = plan_one_run(PureDP(1.0), mu=2.0, canaries=[50, 200, 800], failure_prob=0.05)
    assert list(found.certified_epsilon) == sorted(found.certified_epsilon)
    assert list(found.power) == pytest.approx(sorted(found.power))
    sure = plan_one_run(PureDP(1.0), mu=2.0, canaries=[200])
    assert sure.certified_epsilon[0] < found.certified_epsilon[1]
    assert sure.needed > found.needed
    assert f"{found.needed:,} canaries in one run refute the claim epsilon = 1" in str(found)


@pytest.mark.slow
def test_models_of_a_true_epsilon():
    laplace = plan_one_run(PureDP(1.0), true_epsilon=2.0, canaries=[1000], failure_prob=0.05)
    assert 1.2 < laplace.certified_epsilon[0] < 2.0
    gauss = plan_one_run(
        ApproxDP(1.0, 1e-5), true_epsilon=4.0, canaries=[3000], failure_prob=0.05, power=0.5
    )
    assert "0.9249 standard deviations" in gauss.model
    assert 1.0 < gauss.certified_epsilon[0] < 4.0


@pytest.mark.slow
def test_a_claim_that_is_kept_is_out_of_reach():
    found = plan_one_run(PureDP(3.0), mu=0.2, canaries=[100], power=0.5, failure_prob=1e-3)
    assert found.needed is None
    assert "Even 50,000 canaries do not refute" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of mu and true_epsilon must be given"),
        ({"mu": 1.0, "true_epsilon": 1.0}, "one of mu and true_epsilon must be given"),
        ({"mu": -1.0}, "mu must be"),
        ({"mu": 1e9}, "mu must be at most 40"),
        ({"mu": 1.0, "canaries": [1]}, "canaries must be an integer >= 2"),
        ({"mu": 1.0, "canaries": [10**6]}, "canaries must be an integer <= 50000"),
        ({"mu": 1.0, "side": "low"}, "side must be one of"),
    ],
)
def test_bad_plans_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_one_run(PureDP(1.0), **arguments)


def test_a_number_of_canaries_is_no_sequence():
    for canaries in (100, None, "100"):
        with pytest.raises(TypeError, match="canaries must be a sequence of integers"):
            plan_one_run(PureDP(1.0), mu=1.0, canaries=canaries)


def test_rows_of_two_series_are_not_paired_across_their_index():
    pandas = pytest.importorskip("pandas")
    scores, coins = gaussian_scores(2.0, 200, 1)
    scores, coins = pandas.Series(scores), pandas.Series(coins)
    assert dpaudit.audit_one_run(scores, coins, PureDP(1.0)).diagnostics.canaries.canaries == 200
    with pytest.raises(ValueError, match="scores and included must have the same index"):
        dpaudit.audit_one_run(scores, coins[::-1], PureDP(1.0))


@pytest.mark.parametrize("size", [1.0, 1e-300, 1.7e308])
def test_scores_that_are_almost_equal_or_huge_have_a_picture(size):
    coins = np.arange(60) % 3 == 0
    scores = np.where(coins, size, np.nextafter(size, 0.0) if size == 1.0 else -size)
    histogram = dpaudit.audit_one_run(scores, coins, PureDP(1.0)).diagnostics.histogram
    assert (sum(histogram.left), sum(histogram.right)) == (20, 40)
    assert histogram.inside[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("delta", "reported"), [(1e-5, 1e-4), (1e-3, 0.01), (0.2, 0.5), (1.0, 1.0)]
)
def test_a_curve_that_bounds_no_epsilon_at_small_deltas_is_judged_at_larger_ones(delta, reported):
    scores, coins = gaussian_scores(1.0, 100, 1)
    found = dpaudit.audit_one_run(scores, coins, dpaudit.ApproxZCDP(0.1, delta))
    assert found.claimed_delta == reported
    assert math.isfinite(found.claimed_epsilon)


def test_coins_of_a_data_frame_may_be_objects():
    scores, coins = gaussian_scores(2.0, 200, 1)
    found = [dpaudit.audit_one_run(scores, c, PureDP(1.0)) for c in (coins, coins.astype(object))]
    assert found[0].certified_epsilon == found[1].certified_epsilon
