"""Tests of detectable epsilons.

The tests use families of distributions in closed form, and audits at these epsilons.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from dpaudit import ApproxDP, GaussianDP, NeighborPair, PureDP, audit, one_draw, oracles
from dpaudit import neighbors as nb
from dpaudit.claims import Claim
from dpaudit.engine.driver import certificate_of, certificate_of_stored
from dpaudit.engine.families import Added, Family, Outcomes, _by_ratio, family_of
from dpaudit.engine.outputs import _prepared
from dpaudit.engine.planning import needing
from dpaudit.engine.reach import (
    cannot_refute,
    detectable,
    draws_to_begin_with,
    fewest_draws,
)
from dpaudit.engine.task import Task
from dpaudit.mechanisms import Watch
from dpaudit.mutants import AddedNoise, added_noise, of_noise
from dpaudit.neighbors import family
from dpaudit.results import Histogram
from dpaudit.stats import Counts, GuessCounts, RateBounds, Target, guess_bounds

PAIR = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))
DATA = PAIR.left, PAIR.right


def laplace(data: Any, size: int, *, rng: np.random.Generator, epsilon: float = 1.0) -> Any:
    return data.sum() + rng.laplace(scale=1 / epsilon, size=size)


def histogram(data: Any, size: int, *, rng: np.random.Generator, epsilon: float = 1.0) -> Any:
    """Move one user between two of four bins."""
    outputs = rng.laplace(scale=2 / epsilon, size=(size, 4))
    return outputs + data.sum() * np.array([1.0, -1.0, 0.0, 0.0])


def gaussian(data: Any, size: int, *, rng: np.random.Generator, shift: float = 1.0) -> Any:
    return shift * data.sum() + rng.normal(size=size)


def coin(data: Any, size: int, *, rng: np.random.Generator, epsilon: float = 1.0) -> Any:
    honest = rng.random(size) < 1 / (1 + math.exp(-epsilon))
    return np.where(honest, data.sum(), 1 - data.sum())


# --- noise in closed form ---


def noise_of(mechanism: Any, datasets: tuple[Any, Any] = DATA) -> AddedNoise | None:
    made = of_noise(mechanism, datasets, seed=1)
    assert made.recording is not None
    return added_noise(mechanism, datasets, made.recording, seed=1, watch=Watch())


def one_after_the_other(data: Any, *, rng: np.random.Generator) -> Any:
    return [data.sum() + rng.laplace(scale=2.0), 3 * data.sum() - rng.laplace(scale=2.0)]


def seven_numbers(data: Any, *, rng: np.random.Generator) -> Any:
    return data.sum() * np.arange(7.0) + rng.laplace(scale=2.0, size=7)


def two_answers(data: Any, *, rng: np.random.Generator) -> Any:
    return {key: float(data.sum() + rng.laplace(scale=2.0)) for key in ("north", "south")}


ADDED: dict[str, tuple[Any, AddedNoise]] = {
    "a dict": (one_draw(two_answers), AddedNoise("Laplace", (1.0, 1.0), 2.0)),
    "a number": (laplace, AddedNoise("Laplace", (1.0,), 1.0)),
    "a number in another unit": (
        lambda data, size, *, rng: 5 - 2 * (data.sum() + rng.laplace(scale=3.0, size=size)),
        AddedNoise("Laplace", (-2.0,), 6.0),
    ),
    "a vector": (
        lambda data, size, *, rng: (
            data.sum() * np.array([1.0, 0.0, 2.0]) + rng.laplace(scale=0.5, size=(size, 3))
        ),
        AddedNoise("Laplace", (1.0, 0.0, 2.0), 0.5),
    ),
    "two lines of code": (
        lambda data, size, *, rng: np.stack(
            [data.sum() + rng.laplace(size=size), rng.laplace(size=size)], axis=1
        ),
        AddedNoise("Laplace", (1.0, 0.0), 1.0),
    ),
    "draw by draw": (one_draw(one_after_the_other), AddedNoise("Laplace", (1.0, 3.0), 2.0)),
    "as many numbers as runs": (
        one_draw(seven_numbers),
        AddedNoise("Laplace", tuple(np.arange(7.0).tolist()), 2.0),
    ),
    "single precision": (
        lambda data, size, *, rng: laplace(data, size, rng=rng).astype(np.float32),
        AddedNoise("Laplace", (1.0,), 1.0),
    ),
    "standard deviates": (
        lambda data, size, *, rng: data.sum() + 4 * rng.standard_normal(size),
        AddedNoise("Gaussian", (1.0,), 4.0),
    ),
    "a sum of deviates": (
        lambda data, size, *, rng: data.sum() + rng.normal(size=(size, 9)).sum(axis=1),
        AddedNoise("Gaussian", (1.0,), None),
    ),
    "two deviations": (
        lambda data, size, *, rng: data.sum() + rng.normal(scale=[1.0, 2.0], size=(size, 2)),
        AddedNoise("Gaussian", (1.0, 1.0), None),
    ),
}


@pytest.mark.parametrize("name", ADDED)
def test_added_noise_is_known_with_its_shift_and_its_scale(name: str) -> None:
    mechanism, expected = ADDED[name]
    found = noise_of(mechanism)
    assert found is not None
    assert found.kind == expected.kind
    assert found.shifts == pytest.approx(expected.shifts, abs=1e-5)
    scale = None if expected.scale is None else pytest.approx(expected.scale, rel=1e-5)
    assert found.scale == scale


def _fails_without_noise(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    noise = rng.laplace(size=size)
    if not noise.any():
        raise ZeroDivisionError("no noise")
    return data.sum() + noise


OTHER = {
    "clipped": lambda data, size, *, rng: np.clip(laplace(data, size, rng=rng), -0.1, 0.1),
    "squared": lambda data, size, *, rng: laplace(data, size, rng=rng) ** 2,
    "a scale that depends on the data": lambda data, size, *, rng: (
        data.sum() + rng.normal(scale=1 + data.sum(), size=size)
    ),
    "a sum of Laplace noise": lambda data, size, *, rng: (
        data.sum() + rng.laplace(size=(size, 2)).sum(axis=1)
    ),
    "mixed Laplace noise": lambda data, size, *, rng: (
        data.sum() + np.cumsum(rng.laplace(size=(size, 2)), axis=1)
    ),
    "Laplace noise of two scales": lambda data, size, *, rng: (
        data.sum() + rng.laplace(scale=[1.0, 2.0], size=(size, 2))
    ),
    "two kinds": lambda data, size, *, rng: laplace(data, size, rng=rng) + rng.normal(size=size),
    "uniform": lambda data, size, *, rng: data.sum() + rng.random(size),
    "sampled": lambda data, size, *, rng: (
        data.sum() * (rng.random(size) < 0.5) + rng.normal(size=size)
    ),
    "no difference": lambda data, size, *, rng: rng.normal(size=size),
    "a generator of its own": lambda data, size, *, rng: (
        data.sum() + np.random.default_rng(int(rng.integers(9))).normal(size=size)
    ),
    "fails without noise": _fails_without_noise,
    "noise that is lost": lambda data, size, *, rng: data.sum() + 0 * rng.laplace(size=size),
    "a threshold": lambda data, size, *, rng: 1.0 * (laplace(data, size, rng=rng) / 9 > 0.5),
    "a threshold beside a large number": lambda data, size, *, rng: np.stack(
        [
            1e10 + 1e4 * (data.sum() + rng.normal(size=size)),
            1.0 * (data.sum() + rng.normal(scale=0.1, size=size) > 0.5),
        ],
        axis=1,
    ),
    "too large": lambda data, size, *, rng: 1e200 * (data.sum() + rng.normal(size=size)),
    "texts": lambda data, size, *, rng: laplace(data, size, rng=rng).astype(str),
}


@pytest.mark.parametrize("name", OTHER)
def test_of_all_else_no_closed_form_is_claimed(name: str) -> None:
    assert noise_of(OTHER[name]) is None


@pytest.mark.parametrize("unit", [1e-310, 1e-200, 1e200])
def test_a_family_of_tiny_or_huge_shifts_is_that_of_their_ratios(unit: float) -> None:
    vector = Added.of(AddedNoise("Laplace", (3.0 * unit, 4.0 * unit), 2.0 * unit))
    assert vector.strength == pytest.approx(2.5)
    assert vector.shifts == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_a_family_is_the_noise_with_another_scale(delta: float) -> None:
    of_laplace = Added.of(AddedNoise("Laplace", (-2.0,), 4.0))
    assert of_laplace.strength == 0.5
    expected = oracles.laplace(1.0, 1 / 1.5).epsilon(delta)
    assert of_laplace.epsilon(1.5, delta) == pytest.approx(expected)
    vector = Added.of(AddedNoise("Laplace", (3.0, 0.0, 4.0), 2.0))
    assert vector.strength == 2.5
    assert vector.epsilon(2.5, 0.0) == pytest.approx(3.5)
    gaussians = Added.of(AddedNoise("Gaussian", (3.0, 4.0), None))
    assert gaussians.strength is None
    wanted = oracles.gaussian(1.5, 1.0).epsilon(1e-3)
    assert gaussians.epsilon(1.5, 1e-3) == pytest.approx(wanted)
    assert gaussians.strength_at(wanted, 1e-3) == pytest.approx(1.5, rel=1e-4)


def test_a_direction_that_is_learnt_tells_less_and_less_wrong_with_more_draws() -> None:
    vector = Added.of(AddedNoise("Gaussian", (1.0,) * 10, 1.0))
    seen = [vector.learnt(1.0, draws).epsilon(1e-3) for draws in (100, 1000, 10**9)]
    assert seen == sorted(seen)
    assert seen[0] < 0.95 * seen[-1]
    assert seen[-1] == pytest.approx(vector.epsilon(1.0, 1e-3))


# --- outcomes ---


def of_counts(left: list[int], right: list[int]) -> Outcomes | None:
    task = Task(PureDP(1.0), family(PAIR), 200, 0.05, 1, "coin")
    bins = tuple(map(str, range(len(left))))
    seen = Histogram("", bins, None, tuple(left), tuple(right), (False,) * len(left))
    return Outcomes.of(replace(certificate_of(task, coin, "mechanism"), histogram=seen))


@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_sharper_randomised_response_is_randomised_response(strength: float) -> None:
    known = of_counts([300_000, 100_000], [100_000, 300_000])
    assert known is not None
    needed = known.epsilon(strength, 0.0)
    assert needed == pytest.approx(strength * math.log(3), rel=0.01)
    flip = oracles.randomized_response(needed)
    assert known.at(strength).delta(0.2) == pytest.approx(flip.delta(0.2))


def test_rare_outcomes_do_not_make_a_family_look_worse_than_it_is() -> None:
    """Check that rare outcomes do not increase the detectable epsilon of a family.

    By chance, the ratio of an outcome that was seen twice can have any size.
    """
    plain = of_counts([3000, 1000], [1000, 3000])
    rare = of_counts([3000, 1000, 3, 0, 4], [1000, 3000, 0, 2, 1])
    assert plain is not None
    assert rare is not None
    assert rare.epsilon(1.0, 0.0) == pytest.approx(plain.epsilon(1.0, 0.0), rel=0.03)


def test_outcomes_that_may_be_alike_are_no_family() -> None:
    assert of_counts([100, 100], [101, 99]) is None
    assert of_counts([100], [100]) is None


# --- detectable epsilons, and audits at these values ---


def looked_at(mechanism: Any, claim: Claim, draws: int, seed: int = 1, **options: Any) -> Any:
    task = Task(claim, family(PAIR), draws, 0.05, seed, "reach", **options)
    return task, certificate_of(task, mechanism, "mechanism")


def named(mechanism: Any, claim: Claim, draws: int, **options: Any) -> float | None:
    task, found = looked_at(mechanism, claim, draws, **options)
    family = family_known(task, mechanism, found)
    return None if family is None else detectable(task, found, family)


def family_known(task: Task, mechanism: Any, found: Any) -> Family | None:
    return family_of(task, mechanism, found, of_noise(mechanism, DATA, seed=1))


def test_what_is_named_lies_above_the_claim_and_comes_closer_with_more_draws() -> None:
    for claim, mechanism in ((PureDP(1.0), laplace), (ApproxDP(1.0, 1e-5), gaussian)):
        seen = [named(mechanism, claim, draws) for draws in (100, 1000, 10_000)]
        assert None not in seen
        assert seen == sorted(seen, reverse=True)
        assert seen[-1] > 1.0


def test_for_a_small_delta_far_more_is_needed_than_for_none() -> None:
    """Check the detectable epsilon for a small delta.

    At delta = 1e-5, 4,000 draws detect an epsilon of 2.5. An estimate for one event once reported
    1.44.
    """
    seen = named(gaussian, ApproxDP(1.0, 1e-5), 4000)
    assert seen is not None
    assert 2.2 < seen < 3.0


def test_where_no_family_is_known_nothing_is_named() -> None:
    assert named(OTHER["clipped"], PureDP(1.0), 1000) is None
    assert named(OTHER["sampled"], ApproxDP(1.0, 1e-5), 1000) is None
    task, found = looked_at(laplace, PureDP(1.0), 1000)
    assert family_of(task, laplace, found, None) is None


def test_of_many_more_stored_outputs_on_one_side_nothing_is_named() -> None:
    rng = np.random.default_rng(1)

    def seen(left: int, right: int) -> float | None:
        both = (np.where(rng.random(n) < p, "a", "b") for n, p in ((left, 0.4), (right, 0.2)))
        task, sampler = _prepared(PureDP(1.0), 0.05, 1, "x", "x", *both)
        found = certificate_of_stored(task, sampler, "outputs")
        return detectable(task, found, Outcomes.of(found))

    assert seen(3000, 300) is None
    even = seen(3000, 3000)
    assert even is not None
    assert 1.0 < even < 1.5


NAMED: dict[str, tuple[Any, Any, Claim, int, bool]] = {
    "Laplace": (laplace, partial, PureDP(1.0), 200, False),
    "Gaussian": (gaussian, None, ApproxDP(1.0, 1e-5), 1000, False),
    "randomised response": (coin, partial, PureDP(1.0), 1000, False),
    "bets": (coin, partial, PureDP(1.0), 1000, True),
    "histogram": (histogram, partial, PureDP(1.0), 1000, False),
}

AUDITS = 60
OFTEN = 35
"""Fewer of 60 have probability 7e-7 if each has 0.85; more have 5e-7 if each has 0.3."""


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_is_refuted_mostly_and_a_third_of_it_is_not(name: str) -> None:
    mechanism, _, claim, draws, sequential = NAMED[name]
    seen = named(mechanism, claim, draws, sequential=sequential)
    assert seen is not None

    def refutations(epsilon: float) -> int:
        how = {"epsilon": epsilon}
        if mechanism is gaussian:
            how = {"shift": needing(epsilon, claim.point[1]).mu}
        changed = partial(mechanism, **how)
        looks = (
            looked_at(changed, claim, draws, seed, sequential=sequential)[1]
            for seed in range(AUDITS)
        )
        return sum(found.refuted for found in looks)

    assert refutations(seen) >= OFTEN
    assert refutations(1 + (seen - 1) / 3) < OFTEN


# --- an estimate never costs its own audit ---


def far(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return 1e4 * data.sum() + rng.laplace(size=(size, 3))


def vector(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=(size, 3))


def threshold(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return 1.0 * (data.sum() + rng.laplace(scale=1 / 8, size=size) > 0.5)


HARD: dict[str, tuple[Any, Claim, dict[str, Any]]] = {
    "a threshold": (threshold, PureDP(8.0), {"draws": 1000}),
    "no noise": (OTHER["noise that is lost"], PureDP(8.0), {"draws": 20}),
    "a mutant without noise": (
        laplace,
        PureDP(8.0),
        {"draws": 100, "mutants": [OTHER["noise that is lost"]]},
    ),
    "bets that are certain": (coin, PureDP(8.0), {"draws": 2000, "method": "sequential"}),
    "a large epsilon": (laplace, ApproxDP(900.0, 1e-5), {"draws": 100}),
    "a large epsilon of a vector": (vector, PureDP(700.0), {"draws": 100}),
    "an epsilon beyond the oracles": (vector, PureDP(1500.0), {"draws": 100}),
    "shifts beyond the oracles": (far, PureDP(1.0), {"draws": 20}),
    "a curve that allows all": (laplace, GaussianDP(40.0), {"draws": 100}),
    "numbers that overflow": (OTHER["too large"], PureDP(1.0), {"draws": 300}),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", HARD)
def test_no_audit_ends_in_an_error_because_of_what_it_would_see(name: str) -> None:
    mechanism, claim, options = HARD[name]
    assert audit(mechanism, claim, PAIR, seed=1, **options).verdict.words


def test_an_infinite_epsilon_that_rests_on_unseen_tails_is_no_advice() -> None:
    """Check that the advice names no infinite epsilon that rests on unseen tails.

    The noise is clipped in a region with few draws, so the epsilon is 3.75 and not infinite.
    """

    def clipped(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.clip(gaussian(data, size, rng=rng), -3, 4)

    assert "inf" not in audit(clipped, PureDP(4.0), PAIR, draws=2000, seed=1).advice


def test_what_was_not_measured_or_takes_long_is_not_named() -> None:
    def wide(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.normal(size=(size, 30))

    def uneven(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() * np.arange(1, 11) ** 3 / 3000 + rng.laplace(size=(size, 10))

    def mixed(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.normal(size=(size, 2)).cumsum(axis=1)

    for mechanism, claim in (
        (wide, ApproxDP(9.0, 1e-5)),
        (uneven, PureDP(9.0)),
        (mixed, ApproxDP(9.0, 1e-5)),
    ):
        assert noise_of(mechanism) is not None
        assert named(mechanism, claim, 300) is None


def test_a_part_of_a_wider_output_is_no_family_of_outcomes() -> None:
    def beside(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.stack([coin(data, size, rng=rng), rng.random(size)], axis=1)

    assert named(beside, PureDP(2.0), 1000) is None
    assert named(coin, PureDP(2.0), 1000) is not None


# --- nothing can be refuted ---

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
    """Check the smallest number of draws with which a bound refutes.

    The two datasets differ in every draw.
    """

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
    assert cannot_refute(_task(epsilon, delta, math.ceil(fewest / 2) - 1))
    assert not cannot_refute(_task(epsilon, delta, math.ceil(fewest / 2)))
    half = math.ceil(fewest / 2)
    assert not cannot_refute(_task(epsilon, delta, 20, stored={"left": 20, "right": 2 * half}))


def test_of_curves_and_of_what_nothing_refutes() -> None:
    curve = replace(_task(1.0, 0.0, 20), claim=GaussianDP(50.0))
    assert not cannot_refute(curve)
    assert draws_to_begin_with(curve, 1e-6) == 0.0
    assert fewest_draws(1.0, 1.0, 1e-6) == fewest_draws(800.0, 0.0, 1e-6) == math.inf
    assert draws_to_begin_with(_task(1.0, 1.0, 20), 1e-6) == math.inf
    assert cannot_refute(_task(1.0, 1.0, 10**9))


def test_outcomes_whose_ratios_differ_by_luck_are_taken_for_one() -> None:
    """Check that outcomes whose ratios differ by chance are treated as equal.

    Randomised response with four answers has two sizes of ratios, which are log 7 and 0.
    """
    counts = np.array([[7010.0, 995.0, 1020.0, 975.0], [1004.0, 6990.0, 988.0, 1018.0]])
    left, right = _by_ratio(counts)
    sizes = np.abs(np.log(left / right))
    assert len(np.unique(sizes.round(9))) == 2
    assert sizes.max() == pytest.approx(np.log(7), abs=0.05)
    assert sizes.min() < 0.05
