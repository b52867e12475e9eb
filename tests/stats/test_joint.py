"""Tests of the joint bound.

The bound is exact by enumeration, and tight compared with two Clopper-Pearson bounds.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special
from scipy.stats import binom

from dpaudit.stats import joint, oracles
from dpaudit.stats.joint import Counts, Target, joint_region, lower_rates, upper_rates
from dpaudit.stats.rates import RateBounds, loss_of_rates

Floats = NDArray[np.float64]

AIMS = [Target(delta=0.0), Target(delta=0.15), Target(epsilon=0.5), Target(epsilon=2.0)]


def least_loss(counts: Counts, failure_prob: float, delta: float = 0.0) -> float:
    """Return the certified log((p - delta) / q), including negative values."""
    likely, rare = joint_region(counts, failure_prob, Target(delta=delta))
    with np.errstate(divide="ignore"):
        return float(np.log(np.maximum(likely - delta, 0) / rare).min())


# --- exact ------------------------------------------------------------------------------------


def worst_miss(n: int, m: int, failure_prob: float, target: Target) -> float:
    """Return the largest probability that the true rates lie outside of their region.

    The probability is exact, and the rates are on a fine grid.
    """
    rates = np.concatenate([[0.0], np.geomspace(1e-3, 0.05, 12), np.linspace(0.06, 1.0, 48)])
    p, q = (side.ravel() for side in np.meshgrid(rates, rates))
    probability = np.zeros(len(p))
    mass_a = binom.pmf(np.arange(n + 1)[:, None], n, p)
    mass_b = binom.pmf(np.arange(m + 1)[:, None], m, q)
    for a, b in itertools.product(range(n + 1), range(m + 1)):
        likely, rare = joint_region(Counts(a, n, b, m), failure_prob, target)
        order = np.argsort(rare, kind="stable")
        # In the region, which is a union of quadrants, p is at least the smallest corner with rare
        # >= q.
        least = np.minimum.accumulate(likely[order][::-1])[::-1]
        at = np.searchsorted(rare[order], q, side="left")
        inside = at < len(order)
        inside[inside] = p[inside] >= least[at[inside]]
        probability += ~inside * mass_a[a] * mass_b[b]
    return float(probability.max())


@pytest.mark.slow
@pytest.mark.parametrize("target", AIMS, ids=str)
@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 5), (9, 9), (14, 5)])
def test_the_rates_lie_outside_at_most_as_often_as_promised(n: int, m: int, target: Target) -> None:
    for failure_prob in (0.3, 0.05, 1e-3):
        assert worst_miss(n, m, failure_prob, target) <= failure_prob


@pytest.mark.sampled
@pytest.mark.parametrize("failure_prob", [0.4999, 0.5, 0.6, 0.95])
def test_large_failure_probabilities_are_kept_too(failure_prob: float) -> None:
    """Check that large failure probabilities are kept too.

    At 1/2, the evidence would be 0, so the outcomes would have no order.
    """
    assert worst_miss(9, 9, failure_prob, Target(delta=0.0)) <= failure_prob


@pytest.mark.sampled
@pytest.mark.parametrize("draws", [10**8, 10**9, 10**10])
@pytest.mark.parametrize("failure_prob", [0.3, 0.05, 1e-5])
def test_rounding_of_huge_counts_does_not_sharpen_the_bound(
    draws: int, failure_prob: float
) -> None:
    """Check that rounding of huge counts does not sharpen the bound.

    At such counts, no method may depart from the normal limit.
    """
    a, b = round(0.4 * draws), round(0.4 * math.exp(-0.5) * draws)
    z = -float(special.ndtri(failure_prob))
    ideal = z * math.sqrt(1 / a - 1 / draws + 1 / b - 1 / draws)
    loss = math.log(a / b) - least_loss(Counts(a, draws, b, draws), failure_prob)
    assert 0.99 * ideal < loss < 1.15 * ideal
    probability = joint.refutation_prob(
        np.array([a / draws]), np.array([b / draws]), draws, draws, 0.5 - ideal, 0.0, failure_prob
    )
    assert 0.4 < float(probability[0]) < 0.6


@pytest.mark.parametrize("failure_prob", [1e-20, 1e-25, 1e-100])
def test_tiny_failure_probabilities_keep_their_power(failure_prob: float) -> None:
    a, b, draws = 50_000, 18_400, 100_000
    low, high = (
        float(f(k, draws, failure_prob / 2)) for f, k in ((lower_rates, a), (upper_rates, b))
    )
    assert least_loss(Counts(a, draws, b, draws), failure_prob) > math.log(low / high)


@pytest.mark.slow
def test_the_whole_failure_probability_is_nearly_used() -> None:
    assert worst_miss(24, 24, 0.1, Target(delta=0.0)) > 0.07


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["blocks", "level"])
def test_the_enumeration_catches_a_mutant(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "level":  # this mutant omits that the draws of both sides can fail
        original = joint._Tail.solve

        def solve(self: Any, nodes: Any, guesses: Any, level: float, grid_p: bool) -> Any:
            return original(self, nodes, guesses, level + math.log(2), grid_p)

        monkeypatch.setattr(joint._Tail, "solve", solve)
    else:  # this mutant gives each block the critical count of its last member, not its first
        original_critical = joint.critical_counts

        def critical(*arguments: Any) -> tuple[Floats, Floats]:
            first, least = original_critical(*arguments)
            return first, np.append(least[1:], least[-1] + 1)

        monkeypatch.setattr(joint, "critical_counts", critical)
    assert worst_miss(12, 12, 0.3, Target(delta=0.0)) > 0.3


def kl(x: Floats, y: Floats) -> Floats:
    """Return the Kullback-Leibler divergences of Bernoulli distributions."""
    return np.asarray(special.rel_entr(x, y) + special.rel_entr(1 - x, 1 - y))


def exact_tail(counts: Counts, p: float, q: float, theta: float, delta: float, z2: float) -> float:
    """Return P(R) over all outcomes.

    Each evidence is minimised over a grid of null hypotheses.
    """
    n, m = counts.draws_left, counts.draws_right
    a, b = np.arange(n + 1)[:, None], np.arange(m + 1)[None, :]
    nulls_q = np.sin(np.linspace(1e-9, np.arcsin(np.sqrt(min((1 - delta) / theta, 1.0))), 20_001))
    nulls_q = nulls_q**2
    nulls_p = np.minimum(theta * nulls_q + delta, 1 - 1e-15)
    kl_a, kl_b = n * kl(a / n, nulls_p), m * kl(b.T / m, nulls_q)
    evidence = np.array([[np.min(row + column) for column in kl_b] for row in kl_a])
    inside = (evidence >= z2 * (1 - 1e-6)) & (a / n > theta * b / m + delta)
    return float((inside * binom.pmf(a, n, p) * binom.pmf(b, m, q)).sum())


@pytest.mark.parametrize("counts", [Counts(9, 14, 2, 14), Counts(14, 14, 0, 9)], ids=str)
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_every_corner_is_excluded_by_brute_force(counts: Counts, delta: float) -> None:
    failure_prob = 0.1
    z2 = float(special.ndtri(failure_prob)) ** 2 / 2
    n, m = counts.draws_left, counts.draws_right
    null = joint.null_at(counts.hits_left / n, n, counts.hits_right / m, m, z2, Target(delta=delta))
    assert null is not None
    likely, rare = joint_region(counts, failure_prob, Target(delta=delta))
    for i in np.linspace(0, len(likely) - 1, 7).astype(int):
        tail = exact_tail(counts, float(likely[i]), float(rare[i]), null[0], delta, z2)
        assert tail <= failure_prob


# --- tight ------------------------------------------------------------------------------------

LAPLACE = oracles.laplace(1.0, 1.0).rates(1.0 - 1e-9)
GAUSSIAN = oracles.gaussian(1.0, 1.0).rates(2.0)
RARE = (3e-3, 1e-3)


@pytest.mark.parametrize("draws", [10**4, 10**5, 10**6])
@pytest.mark.parametrize("rates", [LAPLACE, GAUSSIAN, RARE], ids=["Laplace", "Gaussian", "rare"])
def test_it_loses_at_most_seven_tenths_of_what_two_intervals_lose(
    rates: tuple[float, float], draws: int
) -> None:
    a, b = (round(float(rate) * draws) for rate in rates)
    true = math.log(a / b)
    certified = least_loss(Counts(a, draws, b, draws), 0.05)
    low, high = (float(f(k, draws, 0.025)) for f, k in ((lower_rates, a), (upper_rates, b)))
    assert 0 < true - certified <= 0.7 * (true - math.log(low / high))


@pytest.mark.parametrize("failure_prob", [0.05, 1e-5, 1e-9])
@pytest.mark.parametrize("draws", [100, 10**5, 10**7])
def test_it_comes_close_to_what_any_method_could_certify(draws: int, failure_prob: float) -> None:
    """Check that the bound is close to what any method could certify.

    The normal limit is z standard deviations of the log ratio.
    """
    a, b = round(0.5 * draws), round(0.18 * draws)
    z = -float(special.ndtri(failure_prob))
    ideal = z * math.sqrt(1 / a - 1 / draws + 1 / b - 1 / draws)
    loss = math.log(a / b) - least_loss(Counts(a, draws, b, draws), failure_prob)
    assert 0.9 * ideal < loss < 1.06 * ideal + 3 / draws


# --- properties -------------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.integers(1, 400), st.integers(1, 400), st.sampled_from(AIMS), st.data())
def test_any_counts_give_a_staircase_that_holds_the_observed_rates(
    n: int, m: int, target: Target, data: st.DataObject
) -> None:
    a, b = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    likely, rare = joint_region(Counts(a, n, b, m), 0.01, target)
    assert likely.shape == rare.shape
    assert np.all((likely >= 0) & (likely <= 1) & (rare >= 0) & (rare <= 1))
    assert np.any((likely <= a / n) & (rare >= b / m))


@settings(max_examples=40)
@given(st.integers(1, 200), st.data())
def test_more_evidence_certifies_hardly_less(draws: int, data: st.DataObject) -> None:
    """Check that one more hit certifies at most 0.1 less; among all counts of 40 draws, 0.07.

    Counts are whole numbers, so a region may grow a little where evidence grows.
    """
    a, b = data.draw(st.integers(0, draws - 1)), data.draw(st.integers(1, draws))
    base = max(least_loss(Counts(a, draws, b, draws), 0.02), 0.0)
    for more in (Counts(a + 1, draws, b, draws), Counts(a, draws, b - 1, draws)):
        assert max(least_loss(more, 0.02), 0.0) >= base - 0.1


@pytest.mark.parametrize("draws", [1, 10, 10**4, 10**7])
@pytest.mark.parametrize("failure_prob", [0.9, 0.05, 1e-12, 1e-100])
def test_edges_give_clear_answers(draws: int, failure_prob: float) -> None:
    for a, b in itertools.product((0, draws), repeat=2):
        for target in AIMS:
            bounds = RateBounds.from_counts(
                Counts(a, draws, b, draws), "left", failure_prob, target
            )
            certified = bounds.lower_epsilon(0.0)
            ceiling = -math.log1p(-(failure_prob ** (1 / draws)))
            assert 0 <= certified <= ceiling * (1 + 1e-9) + 1e-12
            if (a, b) != (draws, 0):
                assert certified == 0.0


def test_counts_that_contradict_the_declared_side_certify_nothing() -> None:
    bounds = RateBounds.from_counts(Counts(10, 1000, 500, 1000), "left", 0.05, Target(delta=0.0))
    assert bounds.lower_epsilon(0.0) == 0.0
    assert bounds.lower_delta(0.0) == 0.0


@pytest.mark.parametrize("given", [{}, {"epsilon": 1.0, "delta": 0.1}])
def test_an_aim_is_one_of_two(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="exactly one of epsilon and delta must be given"):
        Target(**given)


@pytest.mark.parametrize("given", [{"epsilon": -1.0}, {"delta": 1.5}, {"epsilon": math.nan}])
def test_an_aim_is_in_range(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        Target(**given)


def test_the_least_loss_lies_at_the_worst_case() -> None:
    bounds = RateBounds.from_counts(Counts(300, 1000, 90, 1000), "left", 0.01, Target(delta=0.05))
    worst = bounds.worst_case(0.05)
    assert bounds.lower_epsilon(0.05) == pytest.approx(float(loss_of_rates(*worst, 0.05)))
    assert dataclasses.is_dataclass(bounds)
