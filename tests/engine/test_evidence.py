"""Tests of the e-values: exact means over all counts, and how fast evidence accumulates."""

from __future__ import annotations

import itertools
import math
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom, multinomial

import dpaudit.stats.wagers
from algorithms.common import noise
from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    NeighborPair,
    PureDP,
    audit,
    audit_outputs,
)
from dpaudit.engine.additive.certify import _log_e_value
from dpaudit.engine.bets import Game
from dpaudit.engine.certificate import Tally, tally_of
from dpaudit.engine.evidence import EXCESSES, Evidence, _subset
from dpaudit.engine.task import Run
from dpaudit.events import Event, Guess
from dpaudit.mutants import code_hash
from dpaudit.stats import Target, rates_at
from tests.mechanisms.catalogue import KINDS
from tests.statistical import assert_frequencies

Floats = NDArray[np.float64]

POINTS = [(0.0, 0.0), (0.1, 0.0), (1.0, 0.0), (1.0, 0.05), (3.0, 1e-3)]
SEEN = [(0.7, 0.3), (0.5, 0.5), (0.2, 0.6), (0.01, 0.001), (0.999, 0.3), (1.0, 0.0)]
ONE = NeighborPair(np.array([1]), np.array([0]))


def null_points(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Return rates (p, q) of an event that satisfy a claim, many of them at its boundary."""
    theta = math.exp(epsilon)
    grid = [0.0, 0.001, 0.1, 0.25, 0.5, 0.9, 1.0]
    boundary = [(min(theta * q + delta, 1 - max(1 - q - delta, 0) / theta), q) for q in grid]
    corner = (theta + delta) / (1 + theta), (1 - delta) / (1 + theta)
    swapped = [(1 - p, 1 - q) for p, q in [*boundary, corner]]
    return [*boundary, corner, *swapped, (1.0, 1.0), (0.3, 0.3)]


def answers(hits: int, draws: int) -> NDArray[np.int64]:
    return np.array([hits, draws - hits, 0])


def bets(seen: tuple[float, float], point: tuple[float, float]) -> Evidence:
    left, right = (np.array([rate, 1 - rate, 0.0]) for rate in seen)
    return Evidence.against(left, right, *point)


def e_values(evidence: Evidence, left: Any, right: Any, **how: bool) -> Floats:
    return np.exp(evidence.wager.log_growth(np.array(left), np.array(right), **how))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("seen", SEEN)
def test_equally_many_draws_have_mean_at_most_one(
    point: tuple[float, float], seen: tuple[float, float]
) -> None:
    evidence, n = bets(seen, point), 5
    pairs = list(itertools.product(range(n + 1), repeat=2))
    values = np.array([e_values(evidence, answers(a, n), answers(b, n)) for a, b in pairs])
    for p, q in null_points(*point):
        chances = np.array([binom.pmf(a, n, p) * binom.pmf(b, n, q) for a, b in pairs])
        assert (chances @ values <= 1 + 1e-10).all(), (p, q)


@pytest.mark.sampled
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("seen", SEEN)
def test_coins_have_mean_at_most_one(point: tuple[float, float], seen: tuple[float, float]) -> None:
    evidence, total = bets(seen, point), 5
    every = [
        (n, a, b) for n in range(total + 1) for a in range(n + 1) for b in range(total - n + 1)
    ]
    values = np.array(
        [e_values(evidence, answers(a, n), answers(b, total - n), coins=True) for n, a, b in every]
    )
    for p, q in null_points(*point):
        chances = np.array(
            [
                binom.pmf(n, total, 0.5) * binom.pmf(a, n, p) * binom.pmf(b, total - n, q)
                for n, a, b in every
            ]
        )
        assert (chances @ values <= 1 + 1e-10).all(), (p, q)


@pytest.mark.parametrize("coins", [False, True])
@pytest.mark.parametrize("point", POINTS)
def test_guesses_that_abstain_have_mean_at_most_one(
    point: tuple[float, float], coins: bool
) -> None:
    (epsilon, delta), total = point, 4
    theta = math.exp(epsilon)
    seen = np.array([0.3, 0.1, 0.6]), np.array([0.1, 0.25, 0.65])
    evidence = Evidence.against(*seen, epsilon, delta)
    sizes = range(total + 1) if coins else [total // 2]
    counts = {n: [c for c in itertools.product(range(n + 1), repeat=3) if sum(c) == n] for n in
              range(total + 1)}  # fmt: skip
    rare = (1 - delta) / (1 + theta) / 2  # the corner, with both constraints active
    nulls = [
        ([theta * rare + delta, rare, 1 - (theta + 1) * rare - delta],
         [rare, theta * rare + delta, 1 - (theta + 1) * rare - delta]),
        ([min(0.1 * theta + delta, 1), 0, max(1 - 0.1 * theta - delta, 0)], [0.1, 0, 0.9]),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
    ]  # fmt: skip
    for p, q in nulls:
        if min(*p, *q) < 0 or p[0] > theta * q[0] + delta + 1e-12:
            continue
        mean = np.zeros(len(EXCESSES))
        for n in sizes:
            weight = binom.pmf(n, total, 0.5) if coins else 1.0
            for left, right in itertools.product(counts[n], counts[total - n]):
                chance = multinomial.pmf(left, n, p) * multinomial.pmf(right, total - n, q)
                mean += weight * chance * e_values(evidence, left, right, coins=coins)
        assert (mean <= 1 + 1e-10).all(), (p, q)


@pytest.mark.parametrize("coins", [False, True])
def test_an_error_of_the_solver_is_paid_for(monkeypatch: pytest.MonkeyPatch, coins: bool) -> None:
    """A wrong closest point makes the ratios unfair, and only the price keeps the mean below 1."""
    right_one = dpaudit.stats.wagers._closest

    def wrong(*arguments: Any) -> Any:
        p, q, k, m = right_one(*arguments)
        return p * [0.97, 1.0, 1.0], q * [1.0, 0.97, 1.0], k, m

    monkeypatch.setattr(dpaudit.stats.wagers, "_closest", wrong)
    evidence, total = bets((0.9, 0.1), (1.0, 0.0)), 6
    worst = np.zeros(len(EXCESSES))
    for p, q in null_points(1.0, 0.0):
        mean = np.zeros(len(EXCESSES))
        for n in range(total + 1) if coins else [total // 2]:
            weight = binom.pmf(n, total, 0.5) if coins else 1.0
            for a, b in itertools.product(range(n + 1), range(total - n + 1)):
                chance = weight * binom.pmf(a, n, p) * binom.pmf(b, total - n, q)
                mean += chance * e_values(
                    evidence, answers(a, n), answers(b, total - n), coins=coins
                )
        worst = np.maximum(worst, mean)
    assert (worst <= 1 + 1e-10).all()
    assert (worst * np.exp(total / 2 * evidence.wager.log_price)).max() > 1.01  # unpaid


def test_the_larger_side_is_reduced_to_a_random_subset() -> None:
    drawn = [int(_subset(answers(4, 10), 5, np.random.default_rng(s))[0]) for s in range(4000)]
    counts = np.bincount(drawn, minlength=5)
    assert_frequencies(counts, hypergeom.pmf(np.arange(5), 10, 4, 5))
    with pytest.raises(AssertionError):  # draws with replacement would not be a subset
        assert_frequencies(counts, binom.pmf(np.arange(5), 4, 0.5))


weights = st.tuples(*[st.floats(0.001, 1.0)] * 3).map(lambda w: np.array(w) / sum(w))


@settings(max_examples=150, deadline=None)
@given(weights, weights, st.floats(0.0, 3.0), st.sampled_from([0.0, 1e-3]), st.booleans())
def test_proposed_rates_need_the_epsilon_that_is_asked_for(
    left: Floats, right: Floats, epsilon: float, delta: float, abstains: bool
) -> None:
    if not abstains:
        left, right = (np.array([side[0], 1 - side[0], 0.0]) for side in (left, right))
    (p,), (q,) = rates_at(left, right, np.array([epsilon]), delta)
    assert p.min() >= 0
    assert q.min() >= 0
    assert max(p.max(), q.max()) <= 1
    excesses = p[0] - math.exp(epsilon) * q[0] - delta, q[1] - math.exp(epsilon) * p[1] - delta
    inside = min(p[:2].min(), q[:2].min()) > 0 and (not abstains or min(p[2], q[2]) > 0)
    assert not inside or max(excesses) == pytest.approx(0.0, abs=1e-9)


# --- the counts of an audit ---------------------------------------------------------------------


def chosen(likelier: str) -> Event:
    score: Any = SimpleNamespace(name="output", axis=None)
    encoder: Any = None
    return Event(score, 0.0, True, likelier, encoder, Target(delta=0.0))


@pytest.mark.parametrize("kind", ["left", "right", "guess"])
def test_answers_are_what_a_tally_counts(kind: str) -> None:
    one: Any = Guess(chosen("left"), chosen("right")) if kind == "guess" else chosen(kind)
    left, right = np.array([3, 5, 2]), np.array([1, 4, 7])
    if kind != "guess":
        left, right = np.array([3, 7, 0]), np.array([1, 11, 0])
    tally: Tally = tally_of(one, left, right)
    for found, expected in zip(tally.answers, (left, right), strict=True):
        assert found.tolist() == expected.tolist()


def test_coins_that_may_be_tossed_again_are_paid_for() -> None:
    evidence, none = bets((0.7, 0.3), (0.5, 0.0)), cast("Run", None)
    tally = tally_of(chosen("left"), np.array([5, 2, 0]), np.array([1, 3, 0]))
    found = evidence.log_e_values(tally, none, coins=True, fit=0.25)
    expected = 0.25 * e_values(evidence, *tally.answers, coins=True)
    assert np.exp(found) == pytest.approx(expected)


def response(epsilon: float) -> Any:
    return partial(noise.randomized_response, epsilon=epsilon)


def test_the_e_value_does_not_change_the_verdict_and_grows_with_the_violation() -> None:
    run = partial(audit, claim=PureDP(1.0), pairs=ONE, draws=3000, mutants=None, id="evidence")
    keeps, little, much = (run(response(epsilon)) for epsilon in (1.0, 1.3, 2.0))
    for result in (keeps, little, much):
        assert len(result.log_e_values) == len(EXCESSES)
    assert keeps.log_e_value < little.log_e_value < much.log_e_value
    assert keeps.log_e_value < math.log(20)
    assert much.log_e_value > 100


@pytest.mark.slow
def test_events_of_either_side_and_few_draws_give_evidence() -> None:
    for claim, mechanism in (
        (ApproxDP(1.0, 0.01), partial(noise.gaussian_mechanism, sigma=0.5)),
        (PureDP(0.5), response(2.0)),
    ):
        for pair in (ONE, NeighborPair(np.array([0]), np.array([1]))):
            for draws in (300, 5000):
                found = audit(mechanism, claim, pair, draws=draws, mutants=None)
                assert found.log_e_value is not None
                assert found.log_e_value > 5


def test_stored_outputs_of_different_numbers_give_evidence() -> None:
    rng = np.random.default_rng(1)
    outputs = [response(2.0)(side, n, rng=rng) for side, n in ((ONE.left, 900), (ONE.right, 6000))]
    found = audit_outputs(*outputs, PureDP(1.0), seed=1)
    assert found.log_e_value is not None
    assert found.log_e_value > 10


def test_a_sequential_audit_gives_its_last_wealth() -> None:
    found = audit(response(1.0), PureDP(1.0), ONE, draws=3000, mutants=None, method="sequential")
    path = found.diagnostics.sequential
    assert path is not None
    assert max(path.log_wealth) > path.log_wealth[-1]
    assert found.log_e_values == (path.log_wealth[-1],)


@pytest.mark.parametrize("log", [-2.0, 3.0])
def test_gains_that_were_not_judged_do_not_count_but_losses_do(log: float) -> None:
    game: Any = SimpleNamespace(log_wealth=np.array([9.0, log]), claim_level=1, is_judged=False)
    assert Game.log_e_value.fget(game) == min(log, 0.0)  # type: ignore[attr-defined]
    game.is_judged = True
    assert Game.log_e_value.fget(game) == log  # type: ignore[attr-defined]


def test_the_total_wealth_of_random_centres_starts_at_most_at_one() -> None:
    def question(log: float) -> Any:
        return SimpleNamespace(bet=SimpleNamespace(log_wealth=lambda *_: log))

    def total(*logs: float) -> float:
        questions = [question(log) for log in logs]
        plan: Any = SimpleNamespace(questions=questions, weights=[0.9, 0.1], point=(1.0, 0.0))
        none = np.zeros(1)
        return math.exp(_log_e_value(plan, [(none, none)] * 2))

    assert total(0.0, 0.0) == pytest.approx(1.0)
    assert total(math.log(2), math.log(3)) == pytest.approx(2.1)
    assert total(math.log(2), -math.inf) == pytest.approx(1.9)  # a question without a bet


@pytest.mark.slow
def test_random_centres_give_their_total_wealth() -> None:
    def center(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() * (rng.random((size, 1)) < 0.9)

    values = []
    for sigma in (0.5, 2.0):
        mechanism = AdditiveNoise(center, "gaussian", sigma)
        result = audit(
            mechanism,
            ApproxDP(1.0, 1e-3),
            NeighborPair([[1.0]], [[0.0]]),
            draws=3000,
            mutants=None,
        )
        (value,) = result.log_e_values
        values.append(value)
    assert values[0] > 20 > 1e-9 + values[1]


def test_a_computed_result_has_no_e_value() -> None:
    exact = AdditiveNoise(lambda data: data.sum(keepdims=True), "laplace", 1.0)
    found = audit(exact, PureDP(1.0), NeighborPair([1.0], [0.0]))
    assert found.log_e_values == ()
    assert found.log_e_value is None


COMPUTED = ("exact", "additive noise")


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_output_and_data_has_e_values_and_a_hash(kind: str) -> None:
    case = KINDS[kind]
    asked = {"draws": 300, "seed": 1, "mutants": None, **case.options}
    found = audit(case.mechanism, PureDP(0.5), case.pair, id=kind, **asked)
    expected = 0 if kind in COMPUTED else 1 if kind == "sequential" else len(EXCESSES)
    assert len(found.log_e_values) == expected
    assert np.isfinite(found.log_e_values).all()
    assert len(code_hash(case.mechanism)) == 16


# --- how fast evidence accumulates ---------------------------------------------------------------


@pytest.mark.parametrize("excess", [0.002, 0.005, 0.012, 0.03, 0.08, 0.2])
def test_some_bet_grows_almost_at_the_largest_speed(excess: float) -> None:
    """The bets are on fixed epsilons, and the truth lies between two of them."""

    def two(epsilon: float) -> tuple[Floats, Floats]:
        rate = 1 / (1 + math.exp(-epsilon))
        return np.array([rate, 1 - rate, 0]), np.array([1 - rate, rate, 0])

    left, right = two(1 + excess)
    evidence = Evidence.against(*two(1.0), 1.0, 0.0)
    growth = evidence.wager.log_left @ left + evidence.wager.log_right @ right
    growth -= evidence.wager.log_price
    null = two(1.0)[0]
    best = 2 * float((left[:2] * np.log(left[:2] / null[:2])).sum())
    assert 0.78 * best < growth.max() <= best * (1 + 1e-9)
