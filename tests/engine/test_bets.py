"""Sequential audits: the bet is fair under the null, exactly; audits stop early, and soundly."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

import dpaudit.engine.bets
from dpaudit import ApproxDP, GaussianDP, MechanismError, NeighborPair, PureDP, Verdict, audit
from dpaudit import neighbors as nb
from dpaudit.engine.bets import Bet, closest_null
from dpaudit.engine.task import Task
from dpaudit.events import Event
from dpaudit.neighbors import family
from dpaudit.stats import oracles
from tests.statistical import FALSE_ALARM

Array = NDArray[Any]
ONE = nb.value_pattern("one_above", 1)
NO_EVENT: Any = None

rates = st.floats(0.001, 0.999)


def laplace(data: Array, size: int, *, rng: np.random.Generator, scale: float = 1.0) -> Array:
    return data.sum() + rng.laplace(scale=scale, size=size)


def gaussian(data: Array, size: int, *, rng: np.random.Generator, sigma: float = 1.0) -> Array:
    return data.sum() + sigma * rng.standard_normal(size)


def tenfold(data: Array, size: int, *, rng: np.random.Generator) -> Array:
    """Noise of a tenth of the scale: nobody needs many draws to see that."""
    return laplace(data, size, rng=rng, scale=0.1)


# --- the bet, exactly -------------------------------------------------------------------------


@settings(max_examples=200)
@given(rates, rates, st.floats(0, 5), st.floats(0, 0.5))
def test_the_closest_point_is_on_the_boundary_and_closest(
    p: float, q: float, epsilon: float, delta: float
) -> None:
    near_p, near_q = closest_null(p, q, epsilon, delta)
    if p <= math.exp(epsilon) * q + delta:
        assert (near_p, near_q) == (p, q)
        return
    assert near_p == pytest.approx(math.exp(epsilon) * near_q + delta, rel=1e-12)

    def distance(x: float) -> float:
        y = math.exp(epsilon) * x + delta
        return sum(a * math.log(a / b) for a, b in ((p, y), (1 - p, 1 - y), (q, x), (1 - q, 1 - x)))

    others = np.linspace(q, (p - delta) / math.exp(epsilon), 200)[1:-1]
    assert all(distance(near_q) <= distance(float(x)) + 1e-9 for x in others)


def expected_growth(bet: Bet, p: float, q: float, draws: int) -> float:
    """Exact expectation of the factor of a batch, by enumeration."""
    a, b = np.arange(draws + 1)[:, None], np.arange(draws + 1)[None, :]
    hits: Any = (a, b)
    growth = bet.log_growth(hits, draws)
    return float((np.exp(growth) * binom.pmf(a, draws, p) * binom.pmf(b, draws, q)).sum())


@settings(max_examples=60)
@given(rates, rates, st.floats(0, 3), st.floats(0, 0.3), st.floats(0.2, 1.0), st.integers(1, 4))
def test_no_mechanism_of_the_null_can_expect_to_win(
    p: float, q: float, epsilon: float, delta: float, bold: float, draws: int
) -> None:
    bet = Bet.lay(NO_EVENT, p, q, np.array([epsilon]), delta, bold)
    for true_q in np.linspace(0, (1 - delta) / math.exp(epsilon), 30):
        true_p = math.exp(epsilon) * true_q + delta
        for kept in (true_p, 0.7 * true_p):  # on the boundary, and inside
            assert expected_growth(bet, min(kept, 1.0), float(true_q), draws) <= 1 + 1e-9


def test_a_bet_on_another_point_of_the_null_is_not_fair() -> None:
    """The mutant: the null point with the same q instead of the closest one."""
    p, q, epsilon = 0.6, 0.1, 1.0
    broken = Bet(NO_EVENT, *(np.array([x]) for x in (p, q, math.e * q, q)))
    best = max(expected_growth(broken, math.e * x, float(x), 2) for x in np.linspace(0, 0.36, 30))
    assert best > 1.05
    fair = Bet.lay(NO_EVENT, p, q, np.array([epsilon]), 0.0, 1.0)
    assert expected_growth(fair, p, q, 2) > 1.1  # and it pays where the null is wrong


def test_levels_without_evidence_are_left_alone() -> None:
    bet = Bet.lay(NO_EVENT, 0.5, 0.4, np.array([0.0, 0.1, 1.0]), 0.0, 1.0)
    growth = bet.log_growth((60, 40), 100)
    assert growth[0] > growth[1] > 0
    assert growth[2] == 0.0


# --- whole audits -----------------------------------------------------------------------------


def test_a_gross_mistake_is_caught_within_a_twentieth_of_the_budget() -> None:
    for seed in range(5):
        result = audit(
            functools.partial(laplace, scale=0.5),
            PureDP(1.0),
            ONE,
            seed=seed,
            sequential=True,
            mutants=None,
        )
        assert result.verdict is Verdict.REFUTED
        assert sum(result.draws.values()) <= 5000
        assert result.certified_epsilon > 1.0


def test_the_path_ends_where_the_evidence_is_in() -> None:
    result = audit(tenfold, PureDP(1.0), ONE, seed=1, sequential=True, mutants=None)
    path = result.sequential
    assert path is not None
    assert path.stopped == "the claim is refuted"
    assert path.log_wealth[-1] >= path.refuted_at == pytest.approx(-math.log(1e-6))
    assert path.draws[-1] == sum(result.draws.values()) < path.budget == 100_000
    assert list(path.draws) == sorted(path.draws)


def test_a_budget_in_which_independence_could_not_be_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="draws must be an integer >= 256 for a sequential audit"):
        audit(tenfold, PureDP(1.0), ONE, draws=255, seed=1, sequential=True, mutants=None)


def test_an_honest_mechanism_is_given_up_early_and_says_what_it_would_have_seen() -> None:
    result = audit(laplace, PureDP(1.0), ONE, seed=1, sequential=True, mutants=[tenfold])
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.sequential is not None
    assert "no violation worth" in result.sequential.stopped
    assert sum(result.draws.values()) < 60_000
    assert result.mutants[0].killed
    assert 0.7 < result.certified_epsilon < 1.0
    assert result.detectable_epsilon is not None
    assert 1.0 < result.detectable_epsilon < 1.1
    assert "probability about 0.9" in result.reason


def test_hope_is_optimistic_and_care_is_not() -> None:
    p, q, draws = 0.3, 0.1, 500
    careful = dpaudit.engine.bets._moved(p, q, draws, 0.05)
    hopeful = dpaudit.engine.bets._spread(p, q, draws, 0.05)
    growth = [dpaudit.engine.bets._growth(*rates, 0.5, 0.0) for rates in (careful, (p, q), hopeful)]
    assert 0 < growth[0] < growth[1] < growth[2]


def test_a_violation_within_reach_is_not_given_up() -> None:
    """Seen only after 30% of the budget, where audits begin to ask whether to go on."""
    slightly = functools.partial(laplace, scale=0.88)
    for seed in range(3):
        result = audit(
            slightly, PureDP(1.0), ONE, draws=20_000, seed=seed, sequential=True, mutants=None
        )
        if result.verdict is Verdict.REFUTED and sum(result.draws.values()) > 6000:
            return
    pytest.fail("no seed was refuted after the first 30% of its budget")


def test_a_family_of_pairs_is_searched_first() -> None:
    far = [nb.far_user(n_users=5, distance=float(d)) for d in (0.01, 1.0)]

    def noisy_sum(data: Array, size: int, *, rng: np.random.Generator) -> Array:
        return data.sum() + rng.laplace(size=size)

    result = audit(noisy_sum, PureDP(0.3), far, seed=1, sequential=True, mutants=None)
    assert result.verdict is Verdict.REFUTED
    assert result.pair_words == far[1].describe()


@pytest.mark.parametrize("claim", [ApproxDP(1.0, 1e-3), GaussianDP(1.0)], ids=str)
def test_claims_with_a_delta_and_curves_work_too(claim: Any) -> None:
    broken = audit(
        functools.partial(gaussian, sigma=0.25), claim, ONE, seed=1, sequential=True, mutants=None
    )
    assert broken.verdict is Verdict.REFUTED
    assert broken.certified_delta >= broken.claimed_delta
    kept = audit(
        functools.partial(gaussian, sigma=4.0), claim, ONE, seed=1, sequential=True, mutants=None
    )
    assert kept.verdict is Verdict.NO_POWER


def test_it_replays() -> None:
    first, again = (
        audit(laplace, PureDP(1.0), ONE, seed=3, sequential=True, mutants=None) for _ in range(2)
    )
    assert first.sequential == again.sequential
    assert first.witness == again.witness


@pytest.mark.parametrize("draws", [256, 300])
def test_a_budget_smaller_than_a_batch_is_spent_and_no_more(draws: int) -> None:
    result = audit(tenfold, PureDP(1.0), ONE, draws=draws, seed=1, sequential=True, mutants=None)
    assert sum(result.draws.values()) <= draws
    assert result.verdict in (Verdict.REFUTED, Verdict.NO_POWER)


def constant(data: Array, size: int, *, rng: np.random.Generator) -> Array:
    return np.zeros(size)


def exposes(data: Array, size: int, *, rng: np.random.Generator) -> Array:
    return np.full(size, data.sum())


def test_events_that_never_or_always_fire_are_no_trouble() -> None:
    nothing = audit(constant, PureDP(1.0), ONE, seed=1, sequential=True, draws=5000, mutants=None)
    assert nothing.certified_epsilon == 0.0
    everything = audit(exposes, PureDP(5.0), ONE, seed=1, sequential=True, mutants=None)
    assert everything.verdict is Verdict.REFUTED


def coin(data: Array, size: int, *, rng: np.random.Generator) -> Array:
    return rng.integers(2, size=size) * 1.0


@pytest.mark.parametrize(
    "claim",
    [PureDP(0.0), ApproxDP(1.0, 0.01), ApproxDP(0.0, 0.1), GaussianDP(1.0)],
    ids=str,
)
@pytest.mark.parametrize("draws", [256, 3000])
def test_a_mechanism_that_ignores_its_data_certifies_nothing(claim: Any, draws: int) -> None:
    for seed in range(3):
        result = audit(coin, claim, ONE, draws=draws, seed=seed, sequential=True, mutants=None)
        assert result.certified_epsilon == result.certified_delta == 0.0
        assert not any(result.profile.certified_delta)
        assert result.curves is None


def test_noise_shared_by_the_draws_of_a_call_is_refused() -> None:
    def shared(data: Array, size: int, *, rng: np.random.Generator) -> Array:
        return data.sum() + rng.laplace(scale=2.0) + rng.laplace(scale=0.1, size=size)

    with pytest.raises(MechanismError, match="shares its noise"):
        audit(shared, PureDP(1.0), ONE, seed=1, sequential=True, mutants=None)


# --- soundness --------------------------------------------------------------------------------


def false_refutations(runs: int, failure_prob: float) -> int:
    """Of so many looks at a mechanism that keeps its claim exactly."""
    refuted = 0
    for seed in range(runs):
        task = Task(PureDP(1.0), family(ONE), 1000, failure_prob, seed, "null", sequential=True)
        found = dpaudit.engine.bets.look(task, laplace, "mechanism")
        refuted += found.refuted or found.epsilon.lower > 1.0
    return refuted


@pytest.mark.statistical
@pytest.mark.slow
def test_whole_audits_are_wrong_at_most_as_often_as_promised() -> None:
    """Refused are 36 lies of 150: an engine that lies in 36% of its audits, at 0.999."""
    assert binom.sf(false_refutations(150, 0.1) - 1, 150, 0.1) > FALSE_ALARM


@pytest.mark.statistical
def test_the_soundness_test_catches_a_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bets that are laid after the draws were seen; refused are 11 lies of 20."""
    original = dpaudit.engine.bets.Bet.log_growth

    def hindsight(self: Bet, hits: tuple[int, int], draws: int) -> Any:
        p, q = ((h + 0.5) / (draws + 1) for h in hits)
        levels = np.log((self.p0) / (self.q0))
        late = Bet.lay(self.event, p, q, np.maximum(levels, 0.0), 0.0, 1.0)
        return original(late, hits, draws)

    monkeypatch.setattr(dpaudit.engine.bets.Bet, "log_growth", hindsight)
    assert binom.sf(false_refutations(20, 0.1) - 1, 20, 0.1) < FALSE_ALARM


def test_the_certified_epsilon_stays_below_the_truth() -> None:
    truth = oracles.laplace(1.0, 0.5).epsilon(0.0)
    result = audit(
        functools.partial(laplace, scale=0.5),
        PureDP(3.0),
        ONE,
        seed=2,
        sequential=True,
        mutants=None,
    )
    assert result.verdict is Verdict.NO_POWER
    assert 1.4 < result.certified_epsilon < truth


def test_events_are_live() -> None:
    result = audit(
        tenfold, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), seed=1, sequential=True, mutants=None
    )
    assert isinstance(result.event, Event)
    assert result.curves is not None
    assert result.curves.certified_mu >= 0
