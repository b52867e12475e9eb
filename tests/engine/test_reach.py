"""What silence excludes, held against simulated counts of the same event, guess or ranks.

Counts are drawn at rates that need the epsilon that was named, and the audit's own bound judges
them: it must refute with probability 0.9. Of what was learnt, a quarter of the draws is left out,
as it is where that epsilon is named.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit import neighbors as nb
from dpaudit.claims import Claim
from dpaudit.engine import counts
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.few import RankedTally
from dpaudit.engine.outputs import _prepared
from dpaudit.engine.planning import LEARNING_SHARE
from dpaudit.engine.reach import (
    detectable,
    draws_to_begin_with,
    fewest_draws,
    is_beyond_reach,
)
from dpaudit.engine.tally import Tally, parts_of
from dpaudit.engine.task import Task
from dpaudit.events import Guess
from dpaudit.neighbors import family
from dpaudit.stats import Counts, GuessCounts, RateBounds, Target, guess_bounds

SIMULATED = 300
FIVE_DEVIATIONS = 5 * math.sqrt(0.9 * 0.1 / SIMULATED)  # two-sided 6e-7
CONSERVATIVE = 0.06  # what the joint bound pays beyond its prediction, as in test_planning


@cache
def audited(draws: int, seed: int = 1, delta: float = 0.0) -> Certificate:
    """A look at Laplace noise that keeps its claim."""

    def honest(data: NDArray[Any], size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(size=size)

    claim: Claim = ApproxDP(1.0, delta) if delta else PureDP(1.0)
    pair = family(nb.value_pattern("one_above", 1))
    return counts.look(Task(claim, pair, draws, 0.05, seed, "honest"), honest, "mechanism")


def of_event(left: tuple[int, int], right: tuple[int, int], share: float) -> Certificate:
    """The same of an event that is likelier on the left, with these hits of these draws."""
    return _with(Counts(*left, *right), share)


def of_guess(correct: int, wrong: int, draws: int, share: float) -> Certificate:
    """The same of a guess, with even numbers of right guesses, wrong ones and draws."""
    c, w, n = correct // 2, wrong // 2, draws // 2
    return _with(Counts(c, n, w, n), share, Counts(w, n, c, n))


def _with(seen: Counts, share: float, right: Counts | None = None) -> Certificate:
    found = audited(1000, delta=0.01)
    assert found.event is not None
    event = replace(parts_of(found.event)[0], likelier="left")
    guess = Guess(event, replace(event, above=not event.above, likelier="right"))
    tally = Tally(event if right is None else guess, seen, right)
    epsilon = replace(found.epsilon, counts=tally.pair_counts)
    witness = replace(found.witness, likelier="left")
    return replace(found, tally=tally, share=share, epsilon=epsilon, witness=witness)


def often_refuted(found: Certificate, needed: float) -> float:
    """Share of simulated counts, at rates that need so much, that refute the claim."""
    tally, rng = found.tally, np.random.default_rng(7)
    assert tally is not None
    (epsilon, delta), c = found.point, tally.pair_counts
    failure_prob = found.epsilon.failure_prob * found.share
    made = c.hits_left + c.hits_right  # where it is guesses that are counted

    def right_guesses(of: int) -> float:
        excess = delta * of / made
        return float(expit(needed) + excess * expit(-needed))

    @cache
    def refutes(*seen: int) -> bool:
        if isinstance(tally, RankedTally):
            bounds: Any = replace(tally, correct=seen).bounds(failure_prob)
        elif isinstance(tally.chosen, Guess):
            bounds = guess_bounds(GuessCounts(*seen), failure_prob)
        else:
            bounds = replace(tally, counts=Counts(*seen)).bounds(failure_prob)
        return bool(bounds.lower_epsilon(delta) > epsilon)

    if isinstance(tally, RankedTally):
        looks = np.array(tally.looks.guesses)
        rates = np.where(np.arange(looks[-1]) < made, right_guesses(tally.draws), 0.5)
        fell = rng.random((SIMULATED, looks[-1])) < rates
        outcomes = np.cumsum(fell, axis=1)[:, looks - 1].tolist()
    elif isinstance(tally.chosen, Guess):
        n = int(c.draws_left * LEARNING_SHARE)
        guesses = rng.binomial(n, made / c.draws_left, SIMULATED)
        correct = rng.binomial(guesses, right_guesses(c.draws_left))
        outcomes = [(a, g - a, n) for a, g in zip(correct.tolist(), guesses.tolist(), strict=True)]
    else:
        n, m = (int(draws * LEARNING_SHARE) for draws in (c.draws_left, c.draws_right))
        rare = (c.hits_right + 0.5) / (c.draws_right + 1)
        likely = delta + np.exp(needed) * rare
        both = (rng.binomial(*of, SIMULATED).tolist() for of in ((n, likely), (m, rare)))
        outcomes = [(a, n, b, m) for a, b in zip(*both, strict=True)]
    return float(np.mean([refutes(*outcome) for outcome in outcomes]))


CASES = {
    "an event beside ranks": of_event((80, 700), (40, 690), 0.45),
    "an event, more on the left": of_event((597, 2909), (20, 211), 0.967),
    "an event, more on the right": of_event((39, 209), (284, 2911), 0.967),
    "guesses that are rare": of_guess(130, 120, 1400, 0.5),
    "guesses beside ranks": of_guess(1364, 498, 2800, 0.45),
    "guesses of all draws": of_guess(140, 60, 200, 0.45),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_what_is_named_is_refuted_with_the_probability_that_is_said(name: str) -> None:
    found = CASES[name]
    needed = detectable(found)
    assert needed is not None
    assert found.point[0] < needed < 4
    often = often_refuted(found, needed)
    assert 0.9 - FIVE_DEVIATIONS - CONSERVATIVE < often < 0.9 + FIVE_DEVIATIONS
    less = (2 * found.point[0] + needed) / 3
    assert often_refuted(found, less) < 0.9 - FIVE_DEVIATIONS - CONSERVATIVE


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("draws", "delta"), [(60, 0.01), (200, 0.0)])
def test_of_ranks_one_look_alone_does_what_is_said(draws: int, delta: float) -> None:
    """Other looks add a little: at least 0.9, and far less at a third of the distance."""
    found = by_rank(draws, delta)
    needed = detectable(found)
    assert needed is not None
    assert found.point[0] < needed < 4
    assert 0.9 - FIVE_DEVIATIONS < often_refuted(found, needed) < 0.99
    assert often_refuted(found, (2 * found.point[0] + needed) / 3) < 0.9 - FIVE_DEVIATIONS


def by_rank(draws: int, delta: float) -> Certificate:
    """The first look at so many draws whose epsilon is certified by ranks."""
    looks = (audited(draws, seed, delta) for seed in range(20))
    return next(found for found in looks if isinstance(found.tally, RankedTally))


@pytest.mark.parametrize("draws", [60, 200, 1000, 5000])
@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_a_certificate_knows_what_its_epsilon_was_certified_with(draws: int, delta: float) -> None:
    for seed in range(4):
        found = audited(draws, seed, delta)
        assert found.tally is not None
        bounds = found.tally.bounds(found.epsilon.failure_prob * found.share)
        assert bounds.lower_epsilon(found.point[1]) == found.epsilon.lower
        assert found.share <= (0.5 if draws <= 1000 else 1.0)
        assert found.tally.pair_counts == found.epsilon.counts


def test_stored_outputs_reach_as_far_as_both_their_numbers_allow() -> None:
    """More on one side show more than the fewer on both, and less than so many on both."""
    few, more = (of_event((left // 5, left), (200, 2000), 0.9) for left in (200, 2000))
    fewest = of_event((40, 200), (20, 200), 0.9)
    reach = [detectable(found) for found in (fewest, few, more)]
    assert reach == sorted(reach, key=lambda known: -(known or 0.0))


def test_outputs_that_were_drawn_elsewhere_say_what_they_would_have_shown() -> None:
    rng = np.random.default_rng(1)
    left, right = (np.where(rng.random(n) < p, "a", "b") for n, p in ((3000, 0.2), (300, 0.1)))
    found = counts.look_at(*_prepared(PureDP(1.0), 0.05, 1, "x", "x", left, right), "outputs")
    assert found.tally is not None
    seen = found.tally.counts
    assert (seen.draws_left, seen.draws_right) != (found.draws["certify"],) * 2
    needed = detectable(found)
    assert needed is not None
    often = often_refuted(found, needed)
    assert 0.9 - FIVE_DEVIATIONS - CONSERVATIVE < often < 0.9 + FIVE_DEVIATIONS


# --- where nothing can be refuted ---

CLAIMS = [(1.0, 0.0), (1.0, 0.1), (3.0, 0.0), (5.0, 1e-4), (8.0, 1e-6)]


def _task(epsilon: float, delta: float, draws: int, **options: Any) -> Task:
    pair = family(nb.value_pattern("one_above", 1))
    return Task(ApproxDP(epsilon, delta), pair, draws, 1e-6, 1, "sure", **options)


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_the_fewest_draws_are_those_that_randomised_response_survives(
    epsilon: float, delta: float
) -> None:
    right = delta + (1 - delta) * float(expit(epsilon))
    assert right ** fewest_draws(epsilon, delta, 1e-6) == pytest.approx(1e-6 / 0.9, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_no_bound_refutes_with_fewer_draws_and_one_does_with_those_that_are_named(
    epsilon: float, delta: float
) -> None:
    """Of what tells the two datasets apart in every draw."""

    def refutes(draws: int) -> bool:
        event = Counts(draws, draws, 0, draws)
        of_event = RateBounds.from_counts(event, "left", 1e-6, Target(delta=delta))
        of_guess = guess_bounds(GuessCounts(2 * draws, 0, 2 * draws), 1e-6)
        return max(of_event.lower_epsilon(delta), of_guess.lower_epsilon(delta)) > epsilon

    assert not refutes(math.floor(fewest_draws(epsilon, delta, 1e-6) / 2))
    assert refutes(int(draws_to_begin_with(_task(epsilon, delta, 100), 1e-6) * 0.7))


@pytest.mark.parametrize(("epsilon", "delta"), CLAIMS)
def test_a_task_is_beyond_reach_below_the_fewest_draws(epsilon: float, delta: float) -> None:
    fewest = fewest_draws(epsilon, delta, 1e-6)
    assert is_beyond_reach(_task(epsilon, delta, math.ceil(fewest / 2) - 1))
    assert not is_beyond_reach(_task(epsilon, delta, math.ceil(fewest / 2)))
    half = math.ceil(fewest / 2)
    assert not is_beyond_reach(_task(epsilon, delta, 20, stored={"left": 20, "right": 2 * half}))


def test_of_curves_and_of_what_nothing_refutes() -> None:
    curve = replace(_task(1.0, 0.0, 20), claim=GaussianDP(50.0))
    assert not is_beyond_reach(curve)
    assert draws_to_begin_with(curve, 1e-6) == 0.0
    assert fewest_draws(1.0, 1.0, 1e-6) == fewest_draws(800.0, 0.0, 1e-6) == math.inf
    assert draws_to_begin_with(_task(1.0, 1.0, 20), 1e-6) == math.inf
    assert is_beyond_reach(_task(1.0, 1.0, 10**9))
