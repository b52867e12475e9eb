"""Tests of the audit of mutants.

The tests check the cost and the report of the audit, and that killed mutants demonstrate power.
"""

from __future__ import annotations

import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    AuditResult,
    NeighborPair,
    PureDP,
    Relation,
    Settings,
    Verdict,
    audit,
    mutants,
    neighbors,
    one_draw,
    unseeded,
)
from dpaudit.engine import driver, mutation
from dpaudit.engine.driver import certificate_of
from dpaudit.mechanisms import Outcomes, Scored
from dpaudit.results import MutantResult, MutantStatus, mutation_score, undetected

Array = np.ndarray
Generator = np.random.Generator
ONE = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]], recipe="one")
FAR = neighbors.far_user(n_users=5, high=3.0)


def laplace(data: Array, size: int, *, rng: Generator, scale: float = 1.0) -> Array:
    return data.sum() + rng.laplace(scale=scale, size=size)


def two_answers(data: Array, size: int, *, rng: Generator) -> Array:
    """Release two answers.

    The second answer does not depend on the data, so its noise hides nothing.
    """
    first = data.sum() + rng.laplace(size=size)
    second = rng.normal(size=size)
    return np.stack([first, second], axis=1)


def stepwise(data: Array, size: int, *, rng: Generator) -> Array:
    """Release two answers with separate noise, each at half of the budget.

    The difference of the two answers contains 2 x.
    """
    steps = []
    for sign in (1, -1):
        steps.append(sign * data.sum() + rng.laplace(scale=2.0, size=size))
    return np.stack(steps, axis=1)


def clip(data: Array) -> Array:
    return np.clip(data, 0.0, 1.0)


def clipped_sum(data: Array, size: int, *, rng: Generator) -> Array:
    return clip(data).sum() + rng.laplace(size=size)


def audited(mechanism: Any, pair: Any = ONE, **options: Any) -> AuditResult:
    options = {"draws": 5000, "seed": 1, **options}
    return audit(mechanism, options.pop("claim", PureDP(1.0)), pair, **options)


def named(result: AuditResult, *words: str) -> MutantResult:
    found = [m for m in result.mutants if all(word in m.name for word in words)]
    assert len(found) == 1, [m.name for m in result.mutants]
    return found[0]


# --- power without hand-written mutants ---


def test_an_honest_mechanism_is_not_refuted_and_its_mutants_are_killed() -> None:
    result = audited(laplace)
    assert result.verdict is Verdict.NOT_REFUTED
    assert mutation_score(result.mutants) == (2, 2)
    assert result.mutation_score == 1.0
    assert result.reason == "no violation found, and all 2 mutants were killed"
    assert undetected(result.mutants) == {}


@pytest.mark.slow
def test_gross_mutants_cost_a_few_hundred_draws() -> None:
    assert named(audited(laplace, draws=100_000), "removed").draws < 1000


@pytest.mark.slow
def test_a_refuted_claim_needs_no_mutants() -> None:
    result = audited(partial(laplace, scale=0.5))
    assert result.verdict is Verdict.REFUTED
    assert result.mutants == ()
    assert result.total_failure_prob == result.failure_prob


def test_none_switches_them_off() -> None:
    result = audited(laplace, mutants=None)
    assert (result.verdict, result.mutants) == (Verdict.NO_POWER, ())
    assert "no mutant was requested" in result.reason


def test_an_audit_that_notices_nothing_has_no_power() -> None:
    result = audited(laplace, NeighborPair([[0.0]], [[0.0]]), draws=5000)
    assert result.verdict is Verdict.NO_POWER
    assert "all 2 mutants survived" in result.reason


@pytest.mark.slow
def test_noise_that_can_be_removed_undetected_is_named() -> None:
    result = audited(two_answers)
    assert result.verdict is Verdict.NOT_REFUTED
    (missed,) = undetected(result.mutants)
    assert missed.endswith("of test_mutation.py (normal, scale 1)")
    assert result.reason.endswith("; the removal of some noise was not detected")
    draws = undetected(result.mutants)[missed]
    assert f"\n  undetected mutants  {missed} removed, in {draws:,} draws\n" in result.summary()


@pytest.mark.slow
def test_noise_of_one_call_is_told_from_that_of_all() -> None:
    result = audited(stepwise, claim=PureDP(1.0), draws=20_000)
    assert result.verdict is Verdict.NOT_REFUTED
    for words in ("removed", "removed in the first", "removed in the last", "not refreshed"):
        found = [m for m in result.mutants if m.name.endswith((words, f"{words} call"))]
        assert [m.status for m in found if "all of" not in m.name] == [MutantStatus.KILLED], words


@pytest.mark.slow
def test_one_call_is_left_out_only_where_the_same_change_of_all_calls_survives() -> None:
    """Check that mutants of single calls are audited if the change of all calls is detected.

    The mechanism adds two noises although one is enough. Only the longer audit detects that both
    noises are halved.
    """

    def twice(data: Array, size: int, *, rng: Generator) -> Array:
        first, second = (rng.laplace(scale=1.2, size=size) for _ in range(2))
        return data.sum() + first + second

    result = audited(twice, draws=100_000)
    (both,) = (m for m in result.mutants if m.name.endswith("(laplace, scale 1.2) halved"))
    assert both.killed
    assert both.draws > mutation.FIRST_ROUND
    single = [m for m in result.mutants if "halved in the" in m.name]
    assert len(single) == 2
    assert not [m for m in single if m.note == "the same change of all calls survived"]


# --- given mutants ---


@pytest.mark.slow
def test_a_given_mutant_comes_first_and_must_be_killed() -> None:
    caught = audited(laplace, mutants=[partial(laplace, scale=0.5)])
    assert caught.verdict is Verdict.NOT_REFUTED
    assert caught.mutants[0].name == "laplace(scale=0.5)"
    assert caught.mutants[0].is_given
    assert not caught.mutants[1].is_given
    missed = audited(laplace, mutants=[partial(laplace, scale=0.99)])
    assert missed.verdict is Verdict.NO_POWER
    assert "the given mutant laplace(scale=0.99) survived too" in missed.reason


class Noisy:
    def sum(self, data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.laplace(size=size)


NOISY, NUMBERS = Noisy(), np.zeros(2)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (laplace, two_answers, False),
        (Outcomes(laplace), laplace, True),
        (Scored(partial(laplace, scale=2.0), np.ravel), partial(laplace, scale=2.0), True),
        (partial(laplace, scale=2.0), partial(laplace), False),
        (partial(laplace, scale=1), partial(laplace, scale=True), False),
        (partial(laplace, scale=np.float32(2)), partial(laplace, scale=np.float32(2)), True),
        (partial(laplace, scale=NUMBERS), partial(laplace, scale=NUMBERS), True),
        (partial(laplace, scale=NUMBERS), partial(laplace, scale=NUMBERS.copy()), False),
        (NOISY.sum, NOISY.sum, True),
        (NOISY.sum, Noisy().sum, False),
    ],
)
def test_mechanisms_are_told_apart_by_function_and_bound_arguments(
    one: Any, other: Any, same: bool
) -> None:
    assert mutation._is_same(one, other) is same


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "mutant", "is_run"),
    [
        (laplace, laplace, False),
        (partial(laplace, scale=2.0), partial(laplace, scale=2.0), False),
        (partial(laplace, scale=2.0), partial(laplace, scale=0.2), True),
        (laplace, partial(laplace, scale=0.2), True),
    ],
)
@pytest.mark.parametrize("score", [None, np.ravel])
def test_a_given_mutant_that_is_the_mechanism_shows_no_power(
    mechanism: Any, mutant: Any, is_run: bool, score: Any
) -> None:
    """Check that chance cannot kill the mechanism itself, which would look like power."""
    found = audit(mechanism, PureDP(1.0), ONE, mutants=[mutant], draws=2000, seed=1, score=score)
    assert found.mutants[0].status is (MutantStatus.KILLED if is_run else MutantStatus.NOT_RUN)
    assert found.verdict is (Verdict.NOT_REFUTED if is_run else Verdict.NO_POWER)
    assert ("was not run (it is the audited mechanism itself)" in found.reason) is not is_run
    assert found.advice.startswith("Plant a mistake in the mutant") is not is_run


@pytest.mark.slow
def test_mutants_of_one_name_are_told_apart() -> None:
    result = audited(laplace, mutants=[partial(laplace, scale=0.5), partial(laplace, scale=0.5)])
    names = [m.name for m in result.mutants[:2]]
    assert names == ["laplace(scale=0.5)", "laplace(scale=0.5) #2"]


@pytest.mark.slow
def test_changes_are_applied_to_the_mechanism() -> None:
    here = __name__
    result = audited(
        clipped_sum,
        FAR,
        mutants=[mutants.without(f"{here}.clip"), mutants.patch(f"{here}.clip", np.copy)],
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.mutants[0].name == f"without {here}.clip"
    assert [m.status for m in result.mutants[:2]] == [MutantStatus.KILLED] * 2
    assert clip(np.array(5.0)) == 1.0
    scaled = audited(partial(laplace, scale=1.0), mutants=[mutants.scaled(scale=0.5)])
    assert named(scaled, "scale times 0.5").killed


def test_a_change_of_code_that_is_never_reached_tells_nothing() -> None:
    result = audited(laplace, mutants=[mutants.without(f"{__name__}.clip")])
    assert result.mutants[0].status is MutantStatus.NOT_RUN
    assert result.mutants[0].note == "its code was never executed on these data"
    assert result.verdict is Verdict.NO_POWER
    assert "could not be run (its code was never executed" in result.reason


@pytest.mark.slow
def test_a_mutant_that_raises_is_no_news_of_the_mechanism() -> None:
    def broken(data: Array, size: int, *, rng: Generator) -> Array:
        raise ZeroDivisionError("by the mistake")

    result = audited(laplace, mutants=[broken])
    assert result.mutants[0].status is MutantStatus.NOT_RUN
    assert result.mutants[0].note.startswith("raised ZeroDivisionError: by the mistake")


# --- mechanisms of all kinds ---


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (
            lambda data, size, *, rng: np.random.default_rng(rng.integers(9**9)).laplace(size=size),
            "rng",
        ),
        (unseeded(lambda data, size, *, rng: np.random.default_rng().laplace(size=size)), "own"),
        (lambda data, size, *, rng: np.zeros(size), "draws no noise"),
    ],
)
def test_where_no_noise_is_seen_that_is_said(mechanism: Any, words: str) -> None:
    result = audited(mechanism, draws=2000)
    assert result.verdict is Verdict.NO_POWER
    assert words in result.reason
    advised = "Check the code" if "draws no noise" in words else "Give a mutant"
    assert advised in result.advice or result.mutants


def test_computed_mechanisms_have_computed_mutants() -> None:
    def total(data: Array) -> Array:
        return data.sum(axis=0)

    class Coin:
        def pmf(self, data: Array) -> Array:
            p = 0.7 if data.sum() else 0.3
            return np.array([p, 1 - p])

    for mechanism, claim in (
        (AdditiveNoise(total, "laplace", 1.0), PureDP(1.0)),
        (Coin(), PureDP(1.0)),
    ):
        result = audited(mechanism, claim=claim)
        assert result.verdict is Verdict.NOT_REFUTED
        assert named(result, "halved" if isinstance(mechanism, AdditiveNoise) else "squared").killed


@pytest.mark.slow
def test_a_search_and_families_are_gone_through_for_mutants_too() -> None:
    """Check that mutants are audited on families of pairs and in searches.

    On the pair with almost equal sides, no mutant reveals anything.
    """
    still = NeighborPair([[0.0], [0.0]], [[0.0], [1e-9]], recipe="hardly")
    result = audited(laplace, [still, ONE], draws=5000)
    assert result.verdict is Verdict.NOT_REFUTED
    space = neighbors.outlier(n_users=5)
    assert audited(laplace, space, draws=5000).verdict is Verdict.NOT_REFUTED


# --- attempts to break it ---


def above_two(data: Array, size: int, *, rng: Generator, scale: float = 1.0) -> Array:
    """Release a decision that is the same on both sides if its noise is removed."""
    return data.sum() + rng.laplace(scale=scale, size=size) > 2


def test_less_noise_may_show_more_than_none() -> None:
    result = audited(above_two)
    assert result.verdict is Verdict.NOT_REFUTED
    assert named(result, "halved").killed
    assert not named(result, "removed").killed


def test_computed_mutants_are_all_computed() -> None:
    class Coin:
        def pmf(self, data: Array) -> Array:
            p = 0.73 if data.sum() else 0.5
            return np.array([p, 1 - p])

    result = audited(Coin(), claim=PureDP(0.7))
    assert result.verdict is Verdict.NOT_REFUTED
    assert named(result, "squared").killed


def test_what_could_not_be_removed_may_be_halved() -> None:
    def regression(data: Array, size: int, *, rng: Generator) -> Array:
        noise = rng.laplace(size=(size, 1, 1))
        if not noise.any():
            raise ZeroDivisionError("singular")
        return data.sum() + noise[:, 0, 0]

    result = audited(regression)
    assert named(result, "removed").status is MutantStatus.NOT_RUN
    assert named(result, "halved").killed
    assert result.verdict is Verdict.NOT_REFUTED


@pytest.mark.slow
def test_code_that_only_another_pair_reaches_is_reached() -> None:
    def sometimes(data: Array, size: int, *, rng: Generator) -> Array:
        total = data.sum()
        return (clip(total) if total > 1 else total) + rng.laplace(size=size)

    far = NeighborPair([[0.0], [9.0]], [[0.0], [0.0]], recipe="far")
    result = audited(sometimes, [ONE, far], mutants=[mutants.without(f"{__name__}.clip")])
    assert result.mutants[0].killed
    assert result.verdict is Verdict.NOT_REFUTED


@pytest.mark.slow
def test_coins_are_no_noise_of_which_nothing_is_left() -> None:
    def sampled(data: Array, size: int, *, rng: Generator) -> Array:
        kept = rng.random((size, len(data))) < 0.5
        first = rng.laplace(size=size)
        return (kept * data[:, 0]).sum(axis=1) + first + rng.laplace(size=size)

    everything = named(audited(sampled), "all of its noise removed")
    assert everything.killed


@pytest.mark.slow
def test_noise_before_the_final_noise_is_removed_with_it() -> None:
    def centers(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.laplace(size=size)

    result = audited(AdditiveNoise(centers, "laplace", 1.0))
    assert named(result, "all of its noise removed").killed


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.slow
def test_removed_noise_of_centres_certifies_no_more_than_is_true(noise: Any) -> None:
    """Check that equal random centres certify no more than the truth.

    All centres of a dataset are equal, so the ratio is constant over whole regions.
    """

    def flat(data: Array, size: int, *, rng: Generator) -> Array:
        return np.full(size, data.sum())

    exact = AdditiveNoise(lambda data: np.array([data.sum()]), noise, 1.0)
    claim = ApproxDP(5.0, 1e-6)
    truth = audited(exact, claim=claim, mutants=None).certified_epsilon
    for seed in range(5):
        mechanism = AdditiveNoise(flat, noise, 1.0)
        found = audited(mechanism, claim=claim, seed=seed, mutants=None)
        assert found.certified_epsilon <= truth * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers")
def test_a_mutant_that_never_ends_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubles(data: Array, size: int, *, rng: Generator) -> Array:
        noise = rng.laplace(size=size)
        largest = np.abs(noise).max()
        while largest < 1e-3:  # this loop does not call rng
            largest *= 2
        return data.sum() + noise

    monkeypatch.setattr(mutation, "_LEAST_PATIENCE", 0.5)
    result = audited(doubles, draws=2000)
    assert "was stopped: one call took more than call_limit" in named(result, "removed").note
    assert named(result, "halved").killed


def test_a_mechanism_that_cannot_draw_once_is_audited_all_the_same() -> None:
    def many_only(data: Array, size: int, *, rng: Generator) -> Array:
        if size == 1:
            raise ValueError("give me more")
        return data.sum() + rng.laplace(size=size)

    result = audited(many_only, mutants=[partial(laplace, scale=0.3)])
    assert result.verdict is Verdict.NOT_REFUTED
    assert any("its noise could not be recorded: many_only raised" in n for n in result.notes)


def test_noise_is_recorded_although_the_mechanism_fails_on_pairs_that_were_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def pair_only(data: Array, size: int, *, rng: Generator) -> Array:
        if len(data) > 2:
            raise ValueError("two users, please")
        return data.sum() + rng.laplace(size=size)

    monkeypatch.setattr(mutation, "_recorded_pairs", lambda _, found: [found.pair, FAR])
    result = audited(pair_only)
    assert result.verdict is Verdict.NOT_REFUTED
    assert named(result, "removed").killed


# --- noise whose amount depends on private data ---


def mean(data: Array, size: int, *, rng: Generator, n: int | None = None) -> Array:
    clipped = np.clip(data, 0.0, 1.0)
    return clipped.mean() + rng.laplace(scale=2.0 / (n or len(data)), size=size)


def test_noise_with_a_private_scale_is_named_if_nothing_is_refuted() -> None:
    space = neighbors.portfolio(n_users=20, low=0.0, high=1.0)
    advised = audit(mean, PureDP(1.0), space, draws=4000, seed=1)
    assert advised.verdict is Verdict.NOT_REFUTED
    assert advised.advice.startswith("Check the noise of line ")
    assert "test_mutation.py. Its scale depends on private data: on the pair " in advised.advice
    assert "who leaves', it is 0.1 on the left and 0.1053 on the right" in advised.advice
    assert advised.advice in str(advised)
    for mechanism, claim in (
        (mean, PureDP(1.0, relation=Relation.REPLACE_USER)),  # the number of users is the same
        (partial(mean, n=20), PureDP(1.0)),
    ):
        silent = audit(mechanism, claim, space, draws=4000, seed=1)
        assert silent.verdict is Verdict.NOT_REFUTED
        assert "private" not in silent.advice


def test_the_pair_of_the_audit_comes_first_if_its_noise_has_a_private_scale() -> None:
    def careful(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.laplace(scale=4.0 + data.max(), size=size)

    result = audited(careful)
    assert "on this pair, it is 5 on the left and 4 on the right" in result.advice


def test_a_scale_that_varies_by_chance_or_a_location_is_not_private() -> None:
    def random_scale(data: Array, size: int, *, rng: Generator) -> Array:
        scale = rng.uniform(2.0, 3.0, size=size)
        return data.sum() + rng.laplace(scale=scale, size=size)

    def posterior(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.beta(200 + data.sum(), 200 - data.sum(), size=size)

    assert "private" not in audited(random_scale).advice
    assert "private" not in audited(posterior).advice


# --- cost ---


@pytest.mark.slow
def test_given_mutants_and_mutants_of_the_noise_cost_one_failure_prob() -> None:
    result = audited(stepwise, mutants=[partial(laplace, scale=0.5)], failure_prob=1e-5)
    assert sum(m.failure_prob for m in result.mutants if not m.kind) <= 1e-5 * (1 + 1e-9)
    assert result.total_failure_prob <= 3e-5 * (1 + 1e-9)
    assert all(0 < m.failure_prob < 1e-5 for m in result.mutants if m.draws and not m.kind)


def test_looks_at_one_mutant_are_at_most_as_many_as_are_paid_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles: list[str] = []
    spent: list[float] = []

    def counted(task: Any, mechanism: Any, role: str) -> Any:
        if role.startswith("mutant"):
            roles.append(role.partition(" round ")[0])
            spent.append(task.failure_prob)
        return certificate_of(task, mechanism, role)

    monkeypatch.setattr(driver, "certificate_of", counted)
    for pair in (ONE, NeighborPair([[0.0]], [[0.0]])):
        roles.clear()
        spent.clear()
        audited(stepwise, pair, mutants=[laplace], failure_prob=1e-5)
        assert max(map(roles.count, roles)) <= mutation.ROUNDS
        assert sum(spent) <= 1e-5 * (1 + 1e-9)


@pytest.mark.slow
def test_mutants_of_the_noise_spend_as_much_as_the_audit_and_once_more_if_all_survive() -> None:
    draws = 5000
    for pair, most in ((ONE, 1.0), (NeighborPair([[0.0]], [[0.0]]), 2.0)):
        result = audited(stepwise, pair, draws=draws, claim=ApproxDP(1.0, 1e-3))
        of_noise = [m for m in result.mutants if m.noise]
        spent = sum(m.draws for m in of_noise)
        least = len(of_noise) * mutation.LEAST_ROUND
        assert spent <= most * draws + least


@pytest.mark.slow
def test_mutants_are_the_same_with_the_same_seed_and_change_nothing_of_the_audit() -> None:
    first, again = audited(stepwise), audited(stepwise)
    assert first.mutants == again.mutants
    alone = audited(stepwise, mutants=None)
    assert alone.epsilon == first.epsilon
    assert alone.witness == first.witness
    assert audited(stepwise, seed=2).mutants != first.mutants


def test_few_draws_suffice_to_run() -> None:
    result = audited(laplace, draws=20)
    assert named(result, "removed").status is not MutantStatus.NOT_RUN
    assert named(result, "halved").note == "draws were too few"


@pytest.mark.statistical
@pytest.mark.slow
def test_mutants_that_are_private_are_killed_no_more_often_than_said() -> None:
    """Check that mutants that satisfy the claim are killed only by bad luck.

    The test counts kills in 60 audits at failure_prob 0.05. A kill has probability at most 0.05 in
    each audit. More than 14 kills of 60 have probability below 1e-6.
    """
    quiet = partial(laplace, scale=1.05)  # this mechanism is almost never refuted
    unlucky = 0
    for seed in range(60):
        result = audited(quiet, mutants=[laplace], draws=3000, seed=seed, failure_prob=0.05)
        unlucky += bool(result.mutants) and result.mutants[0].killed
    assert unlucky <= 14


# --- mutants of the code ---


def users_clipped(data: Array, size: int, *, rng: Generator) -> Array:
    return np.clip(data.mean(axis=1), 0.0, 1.0).sum() + rng.laplace(scale=1.0, size=size)


def bounded_later(data: Array, size: int, *, rng: Generator) -> Array:
    return np.clip(clipped_sum(data, size, rng=rng), 0.0, 9.0)


OUTSIDE = NeighborPair([[0.5, 0.5, 0.5], [9.0, 7.0, 8.0]], [[0.5, 0.5, 0.5], [-9.0, -8.0, -7.0]])
SINGLE = NeighborPair([[0.5], [9.0]], [[0.5], [-9.0]])
INSIDE = NeighborPair([[0.5, 0.5, 0.5], [1.0, 0.8, 0.9]], [[0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])


def of_code(result: AuditResult) -> dict[str, MutantStatus]:
    return {m.name.rpartition(", line ")[0]: m.status for m in result.mutants if m.kind}


@pytest.mark.slow
def test_mistakes_in_the_code_are_killed_and_reported_by_kind() -> None:
    result = audited(users_clipped, OUTSIDE, draws=20_000)
    assert result.verdict is Verdict.NOT_REFUTED
    assert of_code(result) == {
        "clipping: np.clip(data.mean(axis=1), 0.0, 1.0) returns its argument": "killed",
        "contribution: data.mean(axis=1) takes each item for a user": "killed",
        "sensitivity: 1.0 divided by 2": "killed",
        "sensitivity: 1.0 divided by 3, the items of a user": "killed",
    }
    words = "noise 2 of 2, clipping 1 of 1, contribution 1 of 1, sensitivity 2 of 2 killed"
    assert words in result.summary()
    missing = "mistakes in sampling, selection, budget (no such line was found)"
    assert missing in result.not_covered
    assert missing in result.summary()


@pytest.mark.slow
def test_a_mistake_that_changes_nothing_on_the_data_is_not_covered() -> None:
    result = audited(users_clipped, INSIDE)
    name = "clipping: np.clip(data.mean(axis=1), 0.0, 1.0) returns its argument"
    assert of_code(result)[name] is MutantStatus.NOT_RUN
    assert "mistakes in clipping (no output changed in trial draws)" in result.not_covered


@cache
def bounded(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def cached_sum(data: Array, size: int, *, rng: Generator) -> Array:
    return sum(bounded(float(x)) for x in data[:, 0]) + rng.laplace(scale=1.0, size=size)


@pytest.mark.slow
def test_a_cache_that_the_mechanism_filled_does_not_hide_a_mistake() -> None:
    result = audited(cached_sum, OUTSIDE, draws=20_000)
    assert of_code(result)["clipping: min(max(value, 0.0), 1.0) is always max(value, 0.0)"] == (
        "killed"
    )


def test_a_harmless_mistake_survives_and_does_not_weaken_the_verdict() -> None:
    result = audited(bounded_later, SINGLE, draws=20_000)
    later = [m for m in result.mutants if "np.clip(clipped_sum" in m.name]
    assert [m.status for m in later] == [MutantStatus.SURVIVED]
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.mutation_score == 1.0
    place = later[0].name.rpartition(", ")[2]
    assert f"  harmless or missed  clipping on {place}\n" in result.summary()


def test_mistakes_in_the_code_show_no_power() -> None:
    """Check that a mechanism without recorded noise has no power, whatever else is killed."""

    def own_noise(data: Array, size: int, *, rng: Generator) -> Array:
        noise = np.random.Generator(np.random.PCG64(rng.integers(2**60))).laplace(size=size)
        return np.clip(data, 0.0, 1.0).sum() / 3 + noise

    result = audited(own_noise, OUTSIDE, draws=20_000)
    assert not of_code(result)
    assert result.verdict is Verdict.NO_POWER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "given", "has_code"),
    [
        ("all", 0, True),
        ("noise", 0, False),
        ([laplace], 1, True),
        (["noise", laplace], 1, False),
        (None, 0, False),
    ],
)
def test_the_argument_chooses_the_mutants(wanted: Any, given: int, has_code: bool) -> None:
    result = audited(users_clipped, INSIDE, mutants=wanted)
    assert sum(m.is_given for m in result.mutants) == given
    assert any(m.kind for m in result.mutants) == has_code
    assert any(m.noise for m in result.mutants) == (wanted is not None)


def test_the_mutants_may_come_from_a_generator() -> None:
    result = audited(users_clipped, INSIDE, draws=1000, mutants=(one for one in ["noise", laplace]))
    assert [m.is_given for m in result.mutants].count(True) == 1
    assert not of_code(result)


def test_mutants_of_the_code_share_a_failure_probability() -> None:
    result = audited(users_clipped, OUTSIDE)
    spent = sum(m.failure_prob for m in result.mutants if m.kind)
    assert 0 < spent <= result.failure_prob * (1 + 1e-9)
    assert result.total_failure_prob == pytest.approx(3 * result.failure_prob)


def test_mutants_of_the_code_spend_half_as_much_as_the_audit() -> None:
    def bounded_often(data: Array, size: int, *, rng: Generator) -> Array:
        noisy = clipped_sum(data, size, rng=rng)
        return np.stack([np.clip(noisy, 0, 3), np.clip(noisy, 0, 2), np.clip(noisy, 0, 1)], axis=1)

    result = audited(bounded_often, SINGLE, draws=20_000)
    made = [m for m in result.mutants if m.kind]
    assert sum(m.status is MutantStatus.SURVIVED for m in made) >= 2
    assert sum(m.draws for m in made) <= 10_000 + len(made) * mutation.LEAST_ROUND


@pytest.mark.slow
def test_mutants_of_the_code_change_nothing_else() -> None:
    """Check that results and code are the same, with and without mutants of the code."""
    before = users_clipped.__code__
    noise, both = (audited(users_clipped, OUTSIDE, mutants=wanted) for wanted in ("noise", "all"))
    assert of_code(both)
    assert tuple(m for m in both.mutants if not m.kind) == noise.mutants
    for name in ("verdict", "reason", "epsilon", "delta", "witness", "draws", "advice"):
        assert getattr(both, name) == getattr(noise, name), name
    assert users_clipped.__code__ is before


def test_audits_in_threads_make_no_mutants_of_the_code() -> None:
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(audited, users_clipped, OUTSIDE).result()
    assert not of_code(result)
    assert any(
        words.startswith("mistakes in the code (no time limit") for words in result.not_covered
    )


def test_libraries_with_threads_make_no_mutants_of_the_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jax", np)
    result = audited(users_clipped, OUTSIDE)
    assert not of_code(result)
    assert "mistakes in the code (JAX does not work in a forked process)" in result.not_covered


def test_an_error_in_changing_code_costs_no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("dpaudit.engine.code_mutants.of_code", broken)
    result = audited(users_clipped, OUTSIDE)
    assert result.verdict is Verdict.NOT_REFUTED
    assert "mistakes in the code (RecursionError: too deep)" in result.not_covered


def as_text(data: Array, *, rng: Generator) -> str:
    return "high" if data.clip(0.0, 1.0).sum() + rng.laplace(scale=1.0) > 1.0 else "low"


def as_dict(data: Array, *, rng: Generator) -> dict[str, float]:
    return {"total": data.clip(0.0, 1.0).sum() + rng.laplace(scale=1.0)}


def as_ragged_list(data: Array, *, rng: Generator) -> list[float]:
    noisy = data.clip(0.0, 1.0).sum() + rng.laplace(scale=1.0)
    return [noisy] * (1 + (noisy > 1.0))


def as_none(data: Array, *, rng: Generator) -> float | None:
    noisy = data.clip(0.0, 1.0).sum() + rng.laplace(scale=1.0)
    return None if noisy > 1.0 else noisy


def as_vector(data: Array, *, rng: Generator) -> Array:
    return data.clip(0.0, 1.0).sum(axis=0) + rng.laplace(scale=1.0, size=1)


@pytest.mark.slow
@pytest.mark.parametrize("release", [as_text, as_dict, as_ragged_list, as_none, as_vector])
def test_outputs_of_all_kinds_have_mutants_of_their_code(release: Any) -> None:
    result = audited(one_draw(release), SINGLE, draws=2000)
    assert result.verdict is Verdict.NOT_REFUTED
    name = "clipping: data.clip(0.0, 1.0) returns its argument"
    assert of_code(result)[name] is MutantStatus.KILLED


@pytest.mark.slow
def test_a_table_has_mutants_of_its_code() -> None:
    frame = pd.DataFrame({"user": [1, 1, 1, 2, 3], "paid": [1.0, 2.0, 4.0, 1.0, 1.0]})

    def first_visit(visits: Any, size: int, *, rng: Generator) -> Array:
        kept = visits.drop_duplicates("user")
        return len(kept) + rng.laplace(scale=1.0, size=size)

    result = audited(first_visit, NeighborPair.from_frame(frame, user="user", drop=1))
    name = "contribution: visits.drop_duplicates('user') keeps repetitions"
    assert of_code(result)[name] is MutantStatus.KILLED


def test_a_mechanism_that_keeps_values_has_no_mutants_of_its_code() -> None:
    """Check that kept values hide no mistake, and that no process of a mutant changes them."""
    memory: dict[bytes, float] = {}

    def f(data: Array, size: int, *, rng: Generator) -> Array:
        key = data.tobytes()
        if key not in memory:
            memory.clear()
            memory[key] = float(np.clip(data, 0.0, 1.0).sum())
        return memory[key] + rng.laplace(scale=1.0, size=size)

    result = audited(f, SINGLE)
    assert not of_code(result)
    assert any("keeps values between calls (memory)" in words for words in result.not_covered)
    assert set(memory.values()) <= {0.0, 0.5, 1.0, 1.5}


@pytest.mark.slow
def test_mutants_of_the_code_are_the_same_with_workers() -> None:
    settings = Settings(workers=2)
    alone = audited(users_clipped, OUTSIDE, draws=2000)
    assert audited(users_clipped, OUTSIDE, draws=2000, settings=settings).mutants == alone.mutants


def test_code_that_cannot_be_read_is_not_covered() -> None:
    space: dict[str, Any] = {"np": np}
    exec("def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1.0, size=size)", space)
    result = audited(space["f"])
    assert result.verdict is Verdict.NOT_REFUTED
    assert "mistakes in the code (the source of f could not be read)" in result.not_covered


@pytest.mark.sampled
@pytest.mark.parametrize(
    "mechanism",
    [
        AdditiveNoise(lambda data: np.clip(data, 0.0, 1.0).sum(), noise="laplace", scale=1.0),
        one_draw(lambda data, *, rng: np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=1.0)),
    ],
    ids=["additive", "one draw"],
)
def test_other_kinds_of_mechanisms_have_mutants_of_their_code(mechanism: Any) -> None:
    result = audited(mechanism, SINGLE, draws=20_000)
    name = "clipping: np.clip(data, 0.0, 1.0) returns its argument"
    assert of_code(result)[name] is MutantStatus.KILLED


@pytest.mark.statistical
@pytest.mark.slow
def test_mistakes_that_satisfy_the_claim_are_killed_no_more_often_than_said() -> None:
    """Check that mutants of the code that satisfy the claim are killed only by bad luck.

    The test counts kills in 60 audits at failure_prob 0.05. A kill has probability at most 0.05 in
    each audit. More than 14 kills of 60 have probability below 1e-6.
    """
    killed = 0
    for seed in range(60):
        result = audited(bounded_later, SINGLE, seed=seed, draws=2000, failure_prob=0.05)
        killed += any(m.killed for m in result.mutants if "np.clip(clipped_sum" in m.name)
    assert killed <= 14
