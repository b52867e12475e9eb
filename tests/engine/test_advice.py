"""If a result without a violation has no power, the advice names the most helpful next step."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    GaussianDP,
    NeighborPair,
    PureDP,
    Relation,
    audit,
    audit_outputs,
    neighbors,
    one_draw,
    oracles,
    plan,
)
from dpaudit.engine.concluding import advice, judge
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.families import Added
from dpaudit.engine.mutation import TOO_FEW_DRAWS, MutantRuns
from dpaudit.engine.task import Task
from dpaudit.mechanisms import TIME_IS_OVER
from dpaudit.mutants import ALL_NOISE, AddedNoise
from dpaudit.results import MutantResult, MutantStatus, Verdict, at_least, at_most

FAR = neighbors.far_user(n_users=5, high=1.0)
NEAR = NeighborPair([[1.0]], [[0.0]])
MANY = neighbors.far_user(n_users=5, m=4, high=0.25)


def total(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


def same(data, size, *, rng):
    """Draw as `total` does, in other code, so that the mutant survives."""
    return total(data, size, rng=rng)


def slightly_less(data, size, *, rng):
    return total(data, size, rng=rng, scale=0.5)


def advised(mechanism, pairs, **options) -> str:
    return audit(mechanism, PureDP(1.0), pairs, seed=1, **{"mutants": None, **options}).advice


@pytest.mark.slow
def test_without_a_mutant_a_mutant() -> None:
    assert advised(total, FAR, draws=2000).startswith('Keep mutants="all"')

    def constant(data, size, *, rng):
        return np.zeros(size)

    assert advised(constant, FAR, draws=2000, mutants="noise").startswith(
        "Check the code: does it fix a seed"
    )

    scored = {"score": np.zeros_like, "draws": 2000, "mutants": "noise"}
    assert advised(total, FAR, **scored).startswith("Check the score and the code: ")
    found = audit(total, PureDP(1.0), FAR, seed=1, **scored)
    assert found.reason.endswith("the score gave all outputs on both datasets the same number")
    assert any("scores of each dataset were equal" in note for note in found.notes)

    def entropy(data, size, *, rng):
        bits = rng.bit_generator.random_raw(size) / 2**64
        return data.sum() + 4 * np.log(bits / (1 - bits))

    assert advised(entropy, FAR, draws=2000, mutants="noise").startswith("Give a mutant")


@pytest.mark.slow
def test_where_the_mutant_shows_it_by_eye_more_draws() -> None:
    """Check that the number of draws in the advice is enough.

    An audit with this number of draws gives no further advice.
    """
    advice = advised(total, FAR, draws=200, mutants=[slightly_less])
    assert advice.startswith("Use about ")
    draws = int(advice.partition("(draws=")[2].partition(")")[0])
    assert 200 < draws < 5000
    assert audit(total, PureDP(1.0), FAR, seed=1, draws=draws, mutants=[slightly_less]).advice == ""


@pytest.mark.slow
def test_where_each_user_has_one_item_more_items() -> None:
    assert advised(total, FAR, draws=2000, mutants=[same]).startswith(
        "Use more items per user (m=8"
    )


@pytest.mark.slow
def test_a_mutant_that_cannot_run_is_to_be_corrected() -> None:
    def misshapen(data, size, *, rng):
        return total(data, size, rng=rng).sum(axis=1)

    for draws in (200, 2000):
        assert advised(total, FAR, draws=draws, mutants=[misshapen]) == (
            "Correct the mutant misshapen, which could not be run, or leave it out."
        )
    assert not advised(total, FAR, draws=200, mutants=[slightly_less]).startswith("Correct")


@pytest.mark.parametrize("note", [TIME_IS_OVER, TOO_FEW_DRAWS])
def test_a_mutant_without_draws_needs_no_correction(note: str) -> None:
    task = Task(PureDP(1.0), neighbors.family(NEAR), 200, 0.05, 1, "total")
    found = certificate_of(task, total, "mechanism")
    late = MutantResult("late", MutantStatus.NOT_RUN, 0.0, 0.0, 0, note=note)
    words = advice(task, found, Verdict.NO_POWER, MutantRuns((late,)))
    assert words
    assert not words.startswith("Correct")


@pytest.mark.slow
def test_then_a_search_and_after_it_a_larger_mistake() -> None:
    assert advised(total, MANY, draws=2000, mutants=[same]).startswith("Search for the worst pair")
    space = neighbors.outlier(n_users=5, m=2, high=0.5)
    assert advised(total, space, draws=5000, mutants=[same]).startswith(
        "Use another pair or more draws. If no pair shows this mistake"
    )


def test_equal_datasets_are_told() -> None:
    result = audit(
        total, PureDP(1.0), NeighborPair([[1.0]], [[1.0]]), draws=2000, seed=1, mutants=None
    )
    assert result.advice.startswith("Use another pair.")
    assert "no mechanism can violate" in result.notes[0]


@pytest.mark.slow
def test_an_audit_with_power_needs_no_advice() -> None:
    assert advised(total, FAR, draws=3000, mutants=[slightly_less]) == ""


def test_a_violation_is_advised_on_with_the_least_epsilon_of_a_correct_claim() -> None:
    found = audit(total, PureDP(1.0), NeighborPair([[0.0]], [[5.0]]), draws=3000, seed=1)
    assert f"the true epsilon is at least {at_least(found.certified_epsilon)} and" in found.advice
    assert found.verdict is Verdict.REFUTED


def test_an_infinite_epsilon_is_advised_on_by_the_missing_noise() -> None:
    class Certain:
        def pmf(self, data):
            return [1.0, 0.0] if data.sum() > 0 else [0.0, 1.0]

    found = audit(Certain(), PureDP(1.0), NeighborPair([[1.0]], [[0.0]]))
    assert math.isinf(found.certified_epsilon)
    assert "without noise" in found.advice
    assert "no finite epsilon is enough (computed, not sampled)" in str(found)


def test_what_is_computed_is_advised_on_too() -> None:
    def centre(data):
        return data.sum(axis=0)

    noisy, again = (AdditiveNoise(centre, "laplace", 1.0) for _ in range(2))
    assert advised(noisy, MANY, mutants=[again]).startswith("Search for the worst pair")


def test_advice_stands_in_the_summary() -> None:
    result = audit(total, PureDP(1.0), FAR, draws=2000, seed=1, mutants=None)
    assert f"\n  next                {result.advice}" in str(result)
    assert np.isfinite(result.certified_epsilon)


# --- nothing can be refuted ---

CANNOT = "draws per dataset cannot refute epsilon = 8"


@pytest.mark.parametrize("mutants", [(), None, [slightly_less]])
def test_where_nothing_is_in_reach_the_reason_and_the_advice_say_so(mutants) -> None:
    result = audit(total, PureDP(8.0), FAR, draws=200, seed=1, mutants=mutants)
    assert result.verdict is Verdict.NO_POWER
    assert f"; 200 {CANNOT}" in result.reason
    assert result.advice.startswith("Use at least ")
    draws = int(result.advice.partition("(draws=")[2].partition(")")[0])
    assert f"which needs about {draws:,} even if" in result.reason


@pytest.mark.slow
def test_the_draws_that_are_named_do_show_power() -> None:
    short = audit(total, PureDP(6.0), FAR, draws=200, seed=1)
    assert "but the one mutant that was run survived" in short.reason
    draws = int(short.advice.partition("(draws=")[2].partition(")")[0])
    assert 200 < draws < 10_000
    enough = audit(total, PureDP(6.0), FAR, draws=draws, seed=1)
    assert enough.verdict is Verdict.NOT_REFUTED
    assert enough.advice == ""


def test_claims_beyond_all_draws_are_told_without_a_number_of_draws() -> None:
    result = audit(total, PureDP(30.0), FAR, draws=200, seed=1)
    assert "which needs more than 1,000,000,000 even if" in result.reason
    assert "draws" not in result.advice


@pytest.mark.parametrize(
    ("mechanism", "pairs"),
    [
        (AdditiveNoise(lambda data: data.sum(axis=0), "laplace", 1.0), FAR),
        (total, NeighborPair([[1.0]], [[1.0]])),
    ],
)
def test_what_is_computed_and_equal_datasets_lack_no_draws(mechanism, pairs) -> None:
    result = audit(mechanism, PureDP(8.0), pairs, draws=200, seed=1)
    assert CANNOT not in result.reason
    assert "draws" not in result.advice


def test_silence_within_reach_says_nothing_of_it() -> None:
    result = audit(total, PureDP(1.0), FAR, draws=200, seed=1, mutants=None)
    assert result.reason == "no violation found, and no mutant was requested to show power"


def test_outputs_drawn_elsewhere_are_told_too() -> None:
    draws = np.random.default_rng(1).normal(size=(2, 100))
    result = audit_outputs(*draws, PureDP(8.0), seed=1)
    assert f"100 {CANNOT}" in result.reason


def draws_named(advice: str) -> int:
    found = re.search(r"\(draws=(\d+)\)", advice)
    assert found is not None, advice
    return int(found[1])


@pytest.mark.slow
def test_an_estimate_above_the_claim_asks_for_more_draws() -> None:
    """Check that the claim is refuted with the number of draws in the advice."""

    def coin(data, size, *, rng):
        honest = rng.random(size) < expit(1.4)
        return np.where(honest, data.any(), not data.any())

    short = audit(coin, PureDP(1.0), FAR, draws=500, seed=1)
    assert short.verdict is not Verdict.REFUTED
    assert short.estimated_epsilon > 1
    assert short.advice.startswith("Use about ")
    again = audit(coin, PureDP(1.0), FAR, draws=draws_named(short.advice), seed=1)
    assert again.verdict == "refuted"


def test_a_refutation_says_which_number_of_items_the_audit_chose() -> None:
    """Check that columns which the user does not have are said to be the audit's choice."""

    def five_means(data, size, *, rng):  # right for five columns
        return data.clip(0, 1).mean() * data.shape[1] + rng.laplace(scale=5 / len(data), size=size)

    words = "another number of items, or columns, than the 8 that the audit chose"
    claim = PureDP(1.0, relation=Relation.REPLACE_USER)
    chosen = audit(five_means, claim, draws=20_000, seed=1, mutants=None)
    assert chosen.verdict == "refuted"
    assert words in chosen.advice
    named = audit(
        five_means, PureDP(0.5), neighbors.portfolio(m=5), draws=20_000, seed=1, mutants=None
    )
    assert named.verdict == "refuted"
    assert words not in named.advice


def two_answers(data, size, *, rng, each=0.6):
    """Release two answers, each with epsilon `each`."""
    return np.stack([total(data, size, rng=rng, scale=1 / each) for _ in range(2)], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("draws", [300, 3000])
def test_a_budget_that_is_split_wrongly_is_told_by_its_noise(draws: int) -> None:
    short = audit(two_answers, PureDP(1.0), NEAR, draws=draws, seed=1)
    assert short.verdict is not Verdict.REFUTED
    assert "the audit observed, this pair needs epsilon = 1.2, but 1 is claimed" in short.advice
    assert "AdditiveNoise" in short.advice
    enough = draws_named(short.advice)
    assert audit(two_answers, PureDP(1.0), NEAR, draws=enough, seed=2).verdict == "refuted"
    kept = audit(partial(two_answers, each=0.5), PureDP(1.0), NEAR, draws=draws, seed=1)
    assert "draws=" not in kept.advice


@pytest.mark.slow
@pytest.mark.parametrize("draws", [300, 800])
def test_few_draws_of_training_name_no_number_that_is_luck(draws: int) -> None:
    """Check that the advice for a training score names no number of draws by luck.

    The score is a mixture without a closed form, and no space of pairs contains its data.
    """

    def score(data, size, *, rng, sigma=4.0):
        sampled = rng.random((size, 16)) < 0.5
        return (data["canary"] * sampled + sigma * rng.normal(size=(size, 16))).sum(axis=1)

    quiet = partial(score, sigma=2.0)
    claim = ApproxDP(oracles.gaussian(2.0, 4.0).epsilon(1e-5), 1e-5)
    pair = NeighborPair({"canary": np.ones(1)}, {"canary": np.zeros(1)})
    for seed in range(2):
        short = audit(score, claim, pair, draws=draws, seed=seed, mutants=[quiet])
        assert short.verdict is Verdict.NO_POWER
        assert "neighbors.outlier" not in short.advice
        assert "draws=" not in short.advice or draws_named(short.advice) > 10_000


@pytest.mark.slow
def test_with_half_of_the_noise_the_number_of_draws_is_that_of_a_plan() -> None:
    epsilon = oracles.gaussian(1.0, 2.0).epsilon(1e-5)
    half = oracles.gaussian(1.0, 1.0).epsilon(1e-5)

    def score(data, size, *, rng):
        return data.sum() + 2 * rng.standard_normal(size)

    task = Task(ApproxDP(epsilon, 1e-5), neighbors.family(NEAR), 3000, 1e-3, 1, "score")
    found = certificate_of(task, score, "mechanism")
    survived = MutantResult(
        "half", MutantStatus.SURVIVED, 1.0, 1e-3, 10, noise="it", change="halved"
    )
    mutant_runs = MutantRuns((survived,), likeliest=found, failure_prob=1e-3)
    family = Added.of(AddedNoise("Gaussian", (1.0,), 2.0))
    words = advice(task, found, Verdict.NO_POWER, mutant_runs, family)
    assert words.startswith("Use about ")
    assert "With half of the noise" in words
    planned = plan(ApproxDP(epsilon, 1e-5), half, failure_prob=1e-3)
    assert planned.draws < draws_named(words) < 1.1 * planned.draws  # rounded up to two digits


@pytest.mark.slow
def test_silence_about_what_keeps_its_claim_asks_for_nothing() -> None:
    assert audit(total, PureDP(1.0), FAR, draws=3000, seed=1).advice == ""


# --- notes ---


def notes_of(mechanism, pairs=FAR, **options) -> str:
    options = {"draws": 2000, "seed": 1, "mutants": None, **options}
    return "; ".join(audit(mechanism, PureDP(1.0), pairs, **options).notes)


@pytest.mark.slow
def test_outputs_that_are_all_equal_are_noted() -> None:
    @one_draw
    def seeded_inside(data, *, rng):
        return data.sum() + np.random.default_rng(0).laplace()

    assert "outputs of each dataset were equal" in notes_of(seeded_inside)
    assert "were equal" not in notes_of(total)


def test_outputs_that_are_no_answer_at_all_are_noted() -> None:
    def gap(data, size, *, rng):
        return np.full(size, np.nan)

    def gap_on_one_side(data, size, *, rng):
        return total(data, size, rng=rng) if data.any() else np.full(size, np.nan)

    assert "Every output on both datasets is NaN" in notes_of(gap)
    assert "NaN" not in notes_of(gap_on_one_side)


@pytest.mark.slow
def test_a_search_that_ends_far_below_the_claim_says_that_a_worse_pair_may_be_left() -> None:
    quiet = partial(total, scale=1e9)
    words = "The worst pair found certifies epsilon = 0, and 1 is claimed."
    assert words in notes_of(quiet, neighbors.portfolio())
    assert "worst pair found" not in notes_of(quiet)
    assert "worst pair found" not in notes_of(total, neighbors.portfolio())


# --- what is not covered ---


def not_covered(mechanism, pairs=FAR, **options) -> str:
    options = {"draws": 2000, "seed": 1, "mutants": None, **options}
    return "; ".join(audit(mechanism, PureDP(1.0), pairs, **options).not_covered)


@pytest.mark.slow
def test_low_bits_are_left_out_unless_somebody_asks_for_them() -> None:
    bits, others = "low bits of the outputs (set float_attack=True)", "other pairs"
    for options in ({}, {"method": "sequential"}):
        assert not_covered(total, **options).startswith(f"{bits}; {others}")
    assert not_covered(total, float_attack=True).startswith(others)

    def whole(data, size, *, rng):
        return rng.integers(0, 5, size=size)

    assert not_covered(whole).startswith(others)
    assert others not in not_covered(whole, neighbors.outlier(n_users=5, m=2, high=0.5))


def test_users_with_more_items_than_the_differing_user_are_left_out() -> None:
    def first(data, size, *, rng):
        return data[-1][0] + rng.laplace(size=size)

    def pair_of(items: int) -> NeighborPair:
        return NeighborPair([[0.0, 0.0], [1.0] * items], [[0.0, 0.0], [0.0] * items])

    words = "a differing user with as many items as the largest user"
    assert words in not_covered(first, pair_of(1))
    assert "a differing user" not in not_covered(first, pair_of(2))


@pytest.mark.slow
def test_missing_items_are_left_out_of_a_portfolio_that_has_none() -> None:
    words = "data with missing items (pass neighbors.portfolio(missing=True))"
    assert words in not_covered(total, neighbors.portfolio())
    assert words not in not_covered(total, neighbors.portfolio(missing=True))
    assert words not in not_covered(total, neighbors.portfolio(low=0, high=1))
    assert words not in not_covered(total)


@pytest.mark.slow
def test_pairs_for_which_draws_were_too_few_are_named() -> None:
    held = neighbors.portfolio()
    few, many = (
        audit(total, PureDP(1.0), held, draws=n, seed=1, mutants=None) for n in (1400, 100_000)
    )
    untried = few.diagnostics.search.untried
    assert 0 < len(untried) < len(held.pairs)
    assert set(untried) <= {pair.recipe for pair in held.pairs}
    assert not set(untried) & {trial.arm for trial in few.diagnostics.search.trials}
    assert f"pairs for which draws were too few: {untried[0]!r}, " in "; ".join(few.not_covered)
    assert f"{len(untried)} of the {len(held.pairs)} not covered" in few.diagnostics.search.words()
    assert many.diagnostics.search.untried == ()
    silent = replace(few, verdict=Verdict.NOT_REFUTED).summary()
    assert f"pairs for which draws were too few: {untried[0]!r}" in silent


def test_leaks_above_delta_that_are_too_rare_for_the_draws_are_not_covered() -> None:
    def noisy(data, size, *, rng):
        return np.clip(data, 0.0, 1.0).sum() + rng.normal(scale=8.0, size=size)

    pair, claim = NeighborPair([[0.0], [0.0]], [[0.0], [1.0]]), ApproxDP(1.0, 1e-5)
    words = []
    for draws in (5_000, 50_000):
        result = audit(noisy, claim, pair, draws=draws, mutants="noise")
        words += [one for one in result.not_covered if "rarer leaks" in one]
    rates = [float(one.split()[5]) for one in words]
    assert rates[0] > 5 * rates[1] > 50 * 1e-5
    assert words[0].endswith("(more draws show rarer leaks; delta = 1e-05 is claimed)")
    for other in (PureDP(1.0), GaussianDP(0.5)):  # a curve claims no certain delta
        result = audit(noisy, other, pair, draws=5_000, mutants="noise")
        assert result.verdict is not Verdict.REFUTED
        assert not [one for one in result.not_covered if "rarer leaks" in one]


def clipped(data, size, *, rng):
    return np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=8.0, size=size)


def test_a_clip_that_clipped_nothing_is_to_be_tested() -> None:
    words = "Test the clipping, too: in trial draws, no value was clipped on line "
    within = audit(clipped, PureDP(1.0), neighbors.portfolio(low=0, high=1), draws=5_000)
    assert within.verdict is Verdict.NOT_REFUTED
    assert within.advice.startswith(words)
    assert "Pass neighbors.portfolio(low=, high=) with ranges that exceed" in within.advice
    beyond = audit(clipped, PureDP(1.0), neighbors.portfolio(low=-2, high=3), draws=5_000)
    assert beyond.verdict is Verdict.NOT_REFUTED
    assert words not in beyond.advice
    pair = NeighborPair([[0.0] * 8] * 2, [[0.0] * 8, [1.0] * 8])  # the user's own choice
    assert words not in audit(clipped, PureDP(1.0), pair, draws=5_000).advice


@pytest.mark.parametrize("method", ["fixed", "sequential"])
def test_a_leak_is_refuted_if_it_is_frequent_enough_and_passes_if_it_is_rarer(method: str) -> None:
    def leaks(data, size, *, rng, rate):
        return rng.normal(size=size) + np.where(rng.random(size) < rate, 1e3 * data.sum(), 0.0)

    pair, claim = NeighborPair([[0.0], [0.0]], [[0.0], [1.0]]), ApproxDP(1.0, 1e-5)
    options = {"draws": 10_000, "method": method, "mutants": None}
    rare = audit(partial(leaks, rate=1e-4), claim, pair, **options)
    (words,) = (one for one in rare.not_covered if "rarer leaks" in one)
    least = float(words.split()[5])
    often = audit(partial(leaks, rate=3 * least), claim, pair, **options)
    seldom = audit(partial(leaks, rate=least / 3), claim, pair, **options)
    assert often.verdict is Verdict.REFUTED
    assert seldom.verdict is not Verdict.REFUTED


@pytest.mark.slow
def test_of_a_named_frame_the_pairs_around_it_are_advised() -> None:
    frame = pd.DataFrame({"who": [1, 1, 2], "paid": [1.0, 2.0, 3.0]})
    pair = NeighborPair.from_frame(frame, user="who", drop=2)
    count, again = (
        one_draw(lambda data, *, rng: len(data) + rng.laplace(scale=50.0)) for _ in range(2)
    )
    words = "Search for the worst pair with neighbors.portfolio("
    found = audit(count, PureDP(1.0), pair, draws=300, seed=1, mutants=[again])
    assert found.advice.startswith(words)


# --- what a verdict with power says about its event and its mutants ---


def test_what_was_not_run_is_counted_beside_what_was() -> None:
    result = audit(total, PureDP(2.0), FAR, draws=200, seed=1)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.reason == "no violation found, and 1 of 1 mutant was killed"
    assert "\n  mutants             1 of 1 killed (1 more not run)\n" in result.summary()
    assert "not run: draws were too few" in result.summary(verbose=True)


@pytest.mark.slow
def test_what_would_have_been_seen_stands_below_silence_that_has_power() -> None:
    result = audit(total, PureDP(1.0), FAR, draws=2000, seed=1)
    seen = at_most(result.detectable_epsilon)
    assert (
        f"\n  detectable          epsilon = {seen} or more, with probability about 0.9 ("
        in result.summary()
    )
    blind = replace(result, detectable_epsilon=math.inf)
    words = "\n  detectable          nothing: with so few draws, no violation is detected with "
    assert words in blind.summary()
    assert "detectable" not in replace(blind, verdict=Verdict.NO_POWER).summary()
    assert "detectable" not in replace(blind, detectable_epsilon=None).summary()


def test_half_a_noise_that_would_not_be_missed_is_told() -> None:
    task = Task(PureDP(6.0), neighbors.family(FAR), 200, 1e-6, 1, "total")
    found = certificate_of(task, total, "mechanism")
    gone = MutantResult("gone", MutantStatus.KILLED, 7.0, 1e-7, 10, noise="it", change="removed")
    half = MutantResult("half", MutantStatus.SURVIVED, 1.0, 1e-7, 10, noise="it", change="halved")
    verdict, reason = judge(task, found, MutantRuns((gone, half)))
    assert verdict is Verdict.NOT_REFUTED
    assert reason == (
        "no violation found, and 1 of 2 mutants were killed; the halving of some noise was not "
        "detected"
    )


def test_an_audit_that_notices_only_that_all_noise_is_gone_says_so() -> None:
    task = Task(PureDP(6.0), neighbors.family(FAR), 200, 1e-6, 1, "total")
    found = certificate_of(task, total, "mechanism")
    gone = MutantResult("gone", MutantStatus.KILLED, 7.0, 1e-7, 10, noise=ALL_NOISE, certain=True)
    part = MutantResult("part", MutantStatus.SURVIVED, 1.0, 1e-7, 10, noise="it", certain=True)
    words = (
        "no violation found, and 1 of 2 mutants were killed; no change smaller than removing all "
    )
    assert judge(task, found, MutantRuns((gone, part)))[1] == words + "noise was detected"
    idle = replace(part, status=MutantStatus.NOT_RUN)
    assert judge(task, found, MutantRuns((gone, idle)))[1].endswith(
        "smaller than removing all noise was tried"
    )
    given = MutantResult("mine", MutantStatus.KILLED, 7.0, 1e-7, 10)
    assert "no change smaller" not in judge(task, found, MutantRuns((given, gone, part)))[1]
