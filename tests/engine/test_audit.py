"""Tests of audits of integer outputs.

The tests cover verdicts, budgets, replay and refusals.
"""

from __future__ import annotations

import functools
import math
import tracemalloc
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpaudit.engine.certificate
import dpaudit.engine.counts
from dpaudit import (
    ApproxDP,
    AuditResult,
    GaussianDP,
    NeighborPair,
    PureDP,
    RenyiDP,
    Settings,
    Verdict,
    ZeroConcentratedDP,
    audit,
)
from dpaudit.claims.notions import Claim
from dpaudit.engine.certificate import Tally
from dpaudit.engine.concluding import judge
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.mutation import FIRST_ROUND, MutantRuns
from dpaudit.engine.task import RANKED_DRAWS, Task
from dpaudit.mechanisms.sampler import PROBE_SIZE
from dpaudit.neighbors import family
from dpaudit.stats import Counts, guess_bounds, oracles
from dpaudit.stats.rates import loss_of_rates
from tests.records import changed

Array = NDArray[Any]
Generator = np.random.Generator

ONE = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]], recipe="one")
TWO = NeighborPair([[0.0], [2.0]], [[0.0], [0.0]], recipe="two")


def laplace(data: Array, size: int, *, rng: Generator, scale: float = 1.0) -> Array:
    return data.sum() + rng.laplace(scale=scale, size=size)


def gaussian(data: Array, size: int, *, rng: Generator, sigma: float = 1.0) -> Array:
    return data.sum() + rng.normal(scale=sigma, size=size)


def constant(data: Array, size: int, *, rng: Generator) -> Array:
    return np.zeros(size)


def exposes(data: Array, size: int, *, rng: Generator) -> Array:
    return np.full(size, data.sum())


half_scale = functools.partial(laplace, scale=0.5)


# --- verdicts ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_violation_is_refuted_near_its_true_size() -> None:
    result = audit(half_scale, PureDP(1.0), ONE, draws=50_000, seed=1, mutants=None)
    assert result.verdict is Verdict.REFUTED
    assert 1.85 < result.certified_epsilon <= 2.0
    assert result.certified_delta > 0.2
    assert result.estimated_epsilon > result.certified_epsilon
    assert "but 1 is claimed" in result.reason


@pytest.mark.slow
def test_a_kept_claim_with_a_caught_mutant_is_not_refuted() -> None:
    result = audit(laplace, PureDP(1.0), ONE, draws=20_000, seed=1, mutants=[half_scale])
    assert result.verdict is Verdict.NOT_REFUTED
    assert 0.85 < result.certified_epsilon <= 1.0
    given = result.mutants[0]
    assert given.killed
    assert given.certified_epsilon > 1.0
    assert given.name == "laplace(scale=0.5)"


@pytest.mark.sampled
@pytest.mark.parametrize("mutants", [None, [laplace], [functools.partial(laplace, scale=0.99)]])
def test_silence_means_nothing_without_a_mutant_that_is_caught(mutants: Any) -> None:
    result = audit(laplace, PureDP(1.0), ONE, draws=5000, seed=1, mutants=mutants)
    assert result.verdict is Verdict.NO_POWER


@pytest.mark.parametrize("draws", [20, 100, 20_000])
def test_a_mechanism_that_exposes_its_data_has_a_large_finite_epsilon(draws: int) -> None:
    """Check that a mechanism that exposes its data has a large but finite certified epsilon.

    All 2 n guesses are correct. If each guess is correct with probability rho, all guesses are
    correct with probability rho^2n.
    """
    result = audit(exposes, PureDP(0.1), ONE, draws=draws, seed=1, failure_prob=1e-3, mutants=None)
    # If there are only a few draws, the exploration draws are guessed too.
    guessed = draws if RANKED_DRAWS[0] <= draws <= RANKED_DRAWS[1] else result.draws["certify"]
    rate = 1e-3 ** (1 / (2 * guessed))
    ceiling = math.log(rate / (1 - rate))
    assert ceiling - 0.35 < result.certified_epsilon <= ceiling + 1e-9
    assert (result.verdict is Verdict.REFUTED) == (result.certified_epsilon > 0.1)


@pytest.mark.parametrize("mechanism", [constant, functools.partial(laplace, scale=1e6)])
def test_what_tells_nothing_certifies_next_to_nothing(mechanism: Any) -> None:
    result = audit(mechanism, PureDP(1.0), ONE, draws=2000, seed=1, mutants=None)
    assert result.certified_epsilon < 0.01
    assert result.certified_delta == 0.0


CURVES: list[tuple[Claim, float]] = [
    (GaussianDP(1.0), 1.0),
    (ZeroConcentratedDP(0.5), 1.0),
    (RenyiDP([2.0, 8.0], [1.0, 4.0]), 1.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("claim", "sigma"), CURVES, ids=lambda x: str(x))
def test_curves_are_refuted_when_broken_and_not_when_kept(claim: Claim, sigma: float) -> None:
    kept = functools.partial(gaussian, sigma=sigma)
    broken = functools.partial(gaussian, sigma=sigma / 2)
    result = audit(kept, claim, ONE, draws=5000, seed=1, mutants=[broken])
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.claimed_epsilon in result.profile.epsilon
    assert result.claimed_delta == pytest.approx(claim.delta(result.claimed_epsilon))
    exact = oracles.gaussian(1.0, sigma).delta(result.profile.epsilon)
    assert (np.array(result.profile.certified_delta) <= exact).all()


@pytest.mark.slow
def test_the_reason_for_refuting_a_curve_is_true() -> None:
    """Check that the reported reason for refuting a curve is true.

    The curve may be violated at another point than the reported point.
    """
    mechanism = functools.partial(gaussian, sigma=0.75)
    refuted = 0
    for seed in range(12):
        task = Task(GaussianDP(1.0), family(ONE), 500, 0.05, seed, "gaussian(sigma=0.75)")
        found = certificate_of(task, mechanism, "mechanism")
        if found.refuted:
            refuted += 1
            assert found.epsilon.lower > found.point[0], judge(task, found, MutantRuns(), None)[1]
    assert refuted > 6


def test_a_curve_is_refuted_where_it_is_broken_whatever_was_singled_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explored = dpaudit.engine.counts.explore
    task = Task(GaussianDP(1.0), family(ONE), 2000, 0.05, 1, "gaussian(sigma=0.5)")
    far = float(task.grid[-1]), float(task.claimed[-1])  # a point at which 2,000 draws show nothing

    def elsewhere(*arguments: Any, **named: Any) -> Any:
        found = explored(*arguments, **named)
        return replace(found, selection=replace(found.selection, point=far))

    monkeypatch.setattr(dpaudit.engine.counts, "explore", elsewhere)
    mechanism = functools.partial(gaussian, sigma=0.5)
    found = certificate_of(task, mechanism, "mechanism")
    assert found.refuted
    assert found.epsilon.lower > found.point[0] != far[0]
    assert found.delta.lower > found.point[1]


@pytest.mark.slow
def test_approximate_claims_are_audited_at_their_delta() -> None:
    exact = oracles.gaussian(1.0, 1.0)
    claim = ApproxDP(exact.epsilon(0.01), 0.01)
    result = audit(gaussian, claim, ONE, draws=30_000, seed=1, mutants=None)
    assert 0.6 * claim.claimed_epsilon < result.certified_epsilon <= claim.claimed_epsilon
    smaller = ApproxDP(claim.claimed_epsilon / 2, 0.01)
    assert (
        audit(gaussian, smaller, ONE, draws=30_000, seed=1, mutants=None).verdict is Verdict.REFUTED
    )


@pytest.mark.sampled
@pytest.mark.parametrize(
    "claim",
    [PureDP(0.0), PureDP(1000.0), ApproxDP(0.0, 1.0), ApproxDP(1.0, 1e-300), GaussianDP(1e-9),
     GaussianDP(50.0), ZeroConcentratedDP(1e-6), ZeroConcentratedDP(500.0), RenyiDP(1.01, 0.1)],
    ids=str,
)  # fmt: skip
def test_extreme_claims_are_audited_without_warnings(claim: Claim) -> None:
    result = audit(laplace, claim, ONE, draws=500, seed=1, mutants=None)
    grid = np.array(result.profile.epsilon)
    assert (np.diff(grid) > 0).all()
    assert math.isfinite(result.certified_epsilon)
    assert AuditResult.from_json(result.to_json()) == result


@pytest.mark.sampled
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.3, 0.1), GaussianDP(1.0)])
def test_the_profile_contains_the_claim_and_decreases(claim: Claim) -> None:
    result = audit(laplace, claim, ONE, draws=5000, seed=1, mutants=None)
    profile = result.profile
    assert profile.epsilon[0] == 0.0
    assert result.claimed_epsilon in profile.epsilon
    assert profile.claimed_delta == tuple(claim.delta(e) for e in profile.epsilon)
    assert (np.diff(profile.certified_delta) <= 0).all()


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.6, 1.0, 1.2, 2.4, 2.5, 4.8, 8.0, 100.1, 1e6])
def test_the_grid_of_a_profile_reads_as_the_steps_that_it_is_made_of(epsilon: float) -> None:
    """Check that the grid of a profile has the exact decimals of its steps.

    Sequential audits certify the points of the grid, so a point is 0.9 and not 0.8999999999999999.
    """
    grid = Task(PureDP(epsilon), family(ONE), 100, 0.05, 1, "x").grid
    claimed, top = Decimal(str(epsilon)), Decimal(str(max(2 * epsilon, epsilon + 1.0)))
    steps = [claimed * k / 12 for k in range(13)]
    steps += [claimed + (top - claimed) * k / 12 for k in range(13)]
    assert grid.tolist() == sorted({float(step) for step in steps})
    assert epsilon in grid


def test_the_witness_is_counted_on_the_certifying_draws() -> None:
    def flip(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.random(size) < (0.75 if data.sum() else 0.25)

    result = audit(flip, PureDP(1.0), ONE, draws=20_000, seed=1, mutants=None)
    counts = result.witness.counts
    assert counts is not None
    assert counts.draws_left + counts.draws_right == 2 * result.draws["certify"]
    assert counts.draws_left != counts.draws_right  # fair coins choose the sides
    assert sum(result.diagnostics.histogram.left) == counts.draws_left
    assert sum(result.diagnostics.histogram.right) == counts.draws_right
    other = result.witness.right
    assert other is not None
    guessed = counts.hits_left + other.hits_right, counts.hits_right + other.hits_left
    both = 2 * result.draws["certify"]
    assert result.epsilon.counts == Counts(guessed[0], both, guessed[1], both)
    words = f"{guessed[0]:,} of {sum(guessed):,} guesses are right, in {both:,} randomised draws"
    sides = (
        f" (left: {counts.hits_left:,} of {counts.hits_left + counts.hits_right:,}; "
        f"right: {other.hits_right:,} of {other.hits_left + other.hits_right:,})"
    )
    assert result.witness.sentence().endswith(words + sides)
    inside = [
        n
        for n, i in zip(
            result.diagnostics.histogram.left, result.diagnostics.histogram.inside, strict=True
        )
        if i
    ]
    assert sum(inside) == counts.hits_left
    shown = zip(
        result.diagnostics.histogram.right, result.diagnostics.histogram.inside_right, strict=True
    )
    assert sum(n for n, i in shown if i) == other.hits_right
    assert result.event is not None
    assert result.event(np.array([True, False])).tolist() == [1, -1]


# --- budgets ----------------------------------------------------------------------------------


class Counting:
    """A mechanism that counts its draws for each dataset.

    The sum of a dataset identifies the dataset.
    """

    def __init__(self) -> None:
        self.draws: Counter[float] = Counter()
        self.states: list[tuple[int, ...]] = []
        self.__name__ = "counting"

    def __call__(self, data: Array, size: int, *, rng: Generator) -> Array:
        self.draws[float(data.sum())] += size
        if size > PROBE_SIZE:
            self.states.append(tuple(rng.bit_generator.state["state"].values()))  # type: ignore[call-overload]
        return data.sum() + rng.laplace(size=size)


@pytest.mark.parametrize("draws", [20, 21, 1000, 250_000])
def test_an_audit_takes_its_draws_and_a_few_probes(draws: int) -> None:
    mechanism = Counting()
    result = audit(mechanism, PureDP(1.0), ONE, draws=draws, seed=1, mutants=None)
    assert result.draws["explore"] + result.draws["certify"] == draws
    assert set(mechanism.draws) == {0.0, 1.0}
    probes = 5 * PROBE_SIZE + 1
    for asked in mechanism.draws.values():
        assert abs(asked - probes - draws) <= 6 * math.sqrt(draws / 2)  # by fair coins
    assert 0 <= 2 * (probes + draws) - sum(mechanism.draws.values()) <= 2 * probes


def test_a_look_at_a_mutant_has_the_budget_of_the_mechanism_and_no_more() -> None:
    """Check that a mutant has the budget of the mechanism and no more.

    With more draws, a refuted mutant would not show that the mechanism would have been refuted.
    """
    mechanism, mutant = Counting(), Counting()
    audit(mechanism, PureDP(1.0), ONE, draws=5000, seed=1, mutants=[mutant])
    brief = FIRST_ROUND + 5 * PROBE_SIZE + 2
    for side in (0.0, 1.0):
        assert mutant.draws[side] <= 5000 + 5 * PROBE_SIZE + brief


def test_a_family_needs_draws_enough_to_explore_every_pair() -> None:
    audit(laplace, PureDP(1.0), [ONE, TWO], draws=107, seed=1, mutants=None)
    with pytest.raises(ValueError, match="draws must be an integer >= 107 to explore 2 pairs"):
        audit(laplace, PureDP(1.0), [ONE, TWO], draws=106, seed=1, mutants=None)


@pytest.mark.parametrize("draws", [1067, 20_000])
def test_several_pairs_share_the_draws_of_one_audit(draws: int) -> None:
    pairs = [NeighborPair([[0.0], [x]], [[0.0], [-x]]) for x in np.arange(1.0, 21.0)]
    mechanism = Counting()
    settings = Settings(shrink=False)
    result = audit(mechanism, PureDP(1.0), pairs, draws=draws, seed=1, settings=settings)
    assert result.verdict is Verdict.REFUTED
    assert result.draws["explore"] + result.draws["certify"] == draws
    for side in (1.0, -1.0):
        asked = {x: n for x, n in mechanism.draws.items() if x * side > 0}
        coins = 6 * math.sqrt(draws / 2)
        assert sum(asked.values()) <= draws + coins + 5 * PROBE_SIZE * len(pairs)


def test_no_generator_is_used_twice() -> None:
    mechanism = Counting()
    audit(mechanism, PureDP(1.0), [ONE, TWO], draws=300_000, seed=1, mutants=[laplace])
    assert len(mechanism.states) >= 12
    assert len(set(mechanism.states)) == len(mechanism.states)


def test_certifying_draws_have_no_part_in_the_choice_of_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check that certifying draws do not change the chosen events.

    The same exploration, followed by other certifying draws, freezes the same events.
    """
    frozen = []
    certify = dpaudit.engine.counts._certify

    def watched(run: Any, settled: Any, *counted: Any) -> Any:
        frozen.append([one.description for one in settled.chosen])
        return certify(run, settled, *counted)

    monkeypatch.setattr(dpaudit.engine.counts, "_certify", watched)

    class Sometimes:
        def __init__(self, shift: float) -> None:
            self.shift, self.asked = shift, 0

        def __call__(self, data: Array, size: int, *, rng: Generator) -> Array:
            self.asked += 1
            late = (
                self.asked > 12 + 2 * 23
            )  # twelve probes, and 1500 draws per dataset in calls of 66
            return data.sum() + rng.laplace(size=size) + self.shift * late

    for shift in (0.0, 3.0):
        result = audit(
            Sometimes(shift), PureDP(1.0), ONE, draws=5000, seed=1, id="same", mutants=None
        )
        assert result.witness.counts is not None
    assert len(frozen[0]) > 1
    assert frozen[0] == frozen[1]


def test_failure_prob_is_divided_over_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    original = dpaudit.engine.certificate.RateBounds.from_counts

    def recording(counts: Any, likelier: str, failure_prob: float, target: Any) -> Any:
        given.append(failure_prob)
        return original(counts, likelier, failure_prob, target)

    def recording_guesses(counts: Any, failure_prob: float) -> Any:
        given.append(failure_prob)
        return guess_bounds(counts, failure_prob)

    monkeypatch.setattr(dpaudit.engine.certificate.RateBounds, "from_counts", recording)
    monkeypatch.setattr(dpaudit.engine.certificate, "guess_bounds", recording_guesses)
    # A p-value uses smaller failure probabilities of one event, and certifies nothing.
    monkeypatch.setattr(dpaudit.engine.counts, "_p_value", lambda *_: 1.0)
    for claim in (PureDP(1.0), GaussianDP(1.0)):
        given.clear()
        audit(laplace, claim, ONE, draws=20_000, seed=1, failure_prob=0.01, mutants=None)
        assert len(given) > 1
        assert sum(given) <= 0.01 * (1 + 1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_witness_is_the_event_that_certifies_epsilon(claim: Any, seed: int) -> None:
    """Check that the witness is the event that certifies epsilon.

    All rates that the counts of the witness allow have a loss of at least the certified epsilon.
    """
    result = audit(laplace, claim, ONE, draws=3000, seed=seed, failure_prob=0.01, mutants=None)
    rates = result.witness.likely, result.witness.rare
    assert loss_of_rates(*rates, result.claimed_delta) >= result.certified_epsilon
    tally = Tally(result.event, result.witness.counts, result.witness.right)
    assert tally.pair_counts == result.epsilon.counts
    bounds = tally.bounds(0.01)
    assert bounds.lower_epsilon(result.claimed_delta) >= result.certified_epsilon


def test_more_certainty_certifies_less() -> None:
    levels = [
        audit(
            laplace, PureDP(1.0), ONE, draws=3000, seed=1, failure_prob=f, mutants=None
        ).certified_epsilon
        for f in (0.1, 1e-5, 1e-200)
    ]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.slow
def test_many_draws_are_counted_in_bounded_memory() -> None:
    tracemalloc.start()
    try:
        result = audit(laplace, PureDP(1.0), ONE, draws=1_000_000, seed=1, mutants=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert result.draws["explore"] + result.draws["certify"] == 1_000_000
    assert 0.98 < result.certified_epsilon <= 1.0
    assert peak < 300e6


# --- replay -----------------------------------------------------------------------------------


def _comparable(result: AuditResult) -> AuditResult:
    return changed(result, seconds=0.0, mechanism_seconds=0.0)


def vector(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(size=(size, 3))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [laplace, vector])
def test_the_same_seed_and_id_give_the_same_result(mechanism: Callable[..., Array]) -> None:
    def run(seed: int = 1, id: str = "x") -> AuditResult:
        claim = PureDP(1.0)
        given = [half_scale] if mechanism is laplace else ()
        made = audit(mechanism, claim, [ONE, TWO], draws=4000, seed=seed, id=id, mutants=given)
        return _comparable(made)

    first = run()
    assert run() == first
    assert run(seed=2).witness.counts != first.witness.counts
    assert run(id="y").witness.counts != first.witness.counts


def test_the_mutant_draws_from_streams_of_its_own() -> None:
    mechanism, mutant = Counting(), Counting()
    audit(mechanism, PureDP(1.0), ONE, draws=20_000, seed=1, mutants=[mutant])
    assert mutant.states
    assert not set(mechanism.states) & set(mutant.states)


def test_the_default_id_is_the_name_of_the_mechanism() -> None:
    assert (
        audit(half_scale, PureDP(1.0), ONE, draws=50, seed=1, mutants=None).id
        == "laplace(scale=0.5)"
    )
    assert (
        audit(half_scale, PureDP(1.0), ONE, draws=50, seed=1, id="mine", mutants=None).id == "mine"
    )
