"""Plans compared with simulated counts and with audits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit import ApproxDP, GaussianDP, PureDP, plan
from dpaudit import neighbors as nb
from dpaudit.engine.chances import BY_GUESS
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.task import RANKED_DRAWS, Task
from dpaudit.neighbors import family
from dpaudit.stats import oracles
from dpaudit.stats.joint import Counts, Target, joint_region, refutation_prob

ONE = nb.value_pattern("one_above", 1)


def simulated_power(
    p: float, q: float, draws: int, epsilon: float, delta: float, failure_prob: float
) -> float:
    """Return the share of 300 simulated counts at which the joint bound exceeds the claim.

    More hits on the likelier side, or fewer hits on the other side, are more evidence. The bound is
    therefore computed only if earlier counts do not decide.
    """
    rng = np.random.default_rng(7)
    beyond: list[tuple[int, int]] = []
    within: list[tuple[int, int]] = []
    found = 0
    for a, b in zip(rng.binomial(draws, p, 300), rng.binomial(draws, q, 300), strict=True):
        if any(a >= x and b <= y for x, y in beyond):
            found += 1
        elif not any(a <= x and b >= y for x, y in within):
            seen = Counts(int(a), draws, int(b), draws)
            likely, rare = joint_region(seen, failure_prob, Target(delta=delta))
            refutes = bool(np.all(likely > math.exp(epsilon) * rare + delta))
            (beyond if refutes else within).append((int(a), int(b)))
            found += refutes
    return found / 300


@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("p", "q", "draws", "epsilon", "delta"),
    [
        (0.53, 0.16, 4000, 1.0, 0.0),
        (0.004, 0.001, 60_000, 1.0, 0.0),
        (0.02, 0.004, 6000, 1.0, 1e-3),
    ],
)
def test_the_predicted_power_is_the_simulated_one(
    p: float, q: float, draws: int, epsilon: float, delta: float
) -> None:
    """Compare the predicted power with a simulation.

    The limit is five standard deviations of 300 draws (two-sided 6e-7), plus the loss of the joint
    bound.
    """
    probability = refutation_prob(np.array([p]), np.array([q]), draws, draws, epsilon, delta, 1e-3)
    predicted = float(probability[0])
    simulated = simulated_power(p, q, draws, epsilon, delta, 1e-3)
    assert 0.1 < predicted < 0.999
    spread = 5 * math.sqrt(predicted * (1 - predicted) / 300)
    assert predicted - spread - 0.06 < simulated < predicted + spread


def refutations(true_epsilon: float, draws: int, failure_prob: float) -> int:
    """Count refutations in 40 audits of the claim 1 for Laplace noise with `true_epsilon`."""

    def broken(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(scale=1 / true_epsilon, size=size)

    claim, pair = PureDP(1.0), family(ONE)
    tasks = (Task(claim, pair, draws, failure_prob, seed, "planned") for seed in range(40))
    return sum(certificate_of(task, broken, "mechanism").refuted for task in tasks)


OFTEN = 18
"""Fewer of 40 refutations have probability 3e-7 if each has 0.8, and the plans promise 0.9."""


@pytest.mark.statistical
@pytest.mark.slow
def test_audits_of_the_planned_size_refute_about_as_often_as_planned() -> None:
    planned = plan(PureDP(1.0), true_epsilon=1.8, power=0.9, failure_prob=1e-3)
    assert refutations(1.8, planned.draws, 1e-3) >= OFTEN
    assert refutations(1.8, planned.draws // 5, 1e-3) < OFTEN  # this plan is far too small


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_more_is_needed_for_smaller_violations_and_more_certainty(delta: float) -> None:
    def draws(**arguments: Any) -> int:
        return plan(ApproxDP(1.0, delta), **({"true_epsilon": 1.6} | arguments)).draws

    usual = draws()
    assert draws(true_epsilon=1.3) > usual > draws(true_epsilon=2.5)
    assert draws(power=0.99) > usual > draws(power=0.5)
    assert draws(failure_prob=1e-9) > usual > draws(failure_prob=0.05)


def test_the_power_curve_rises_through_the_wanted_power() -> None:
    """Check that the power curve rises through the wanted power.

    Beyond RANKED_DRAWS[1] draws, nothing is guessed by rank, so the curve rises again from there.
    """
    found = plan(PureDP(1.0), true_epsilon=1.2, power=0.8)
    at_few = int(np.searchsorted(found.curve_draws, RANKED_DRAWS[1], side="right"))
    assert 0 < at_few < len(found.curve_draws)
    for power in (found.curve_power[:at_few], found.curve_power[at_few:]):
        assert list(power) == pytest.approx(sorted(power), abs=0.02)
    at = float(np.interp(found.draws, found.curve_draws, found.curve_power))
    assert at == pytest.approx(0.8, abs=0.05)
    assert f"{found.draws:,} draws per dataset" in str(found)


def test_a_known_law_and_known_rates_may_be_given() -> None:
    flip = oracles.randomized_response(1.5)
    with_distribution = plan(PureDP(1.0), true_epsilon=1.5, oracle=flip)
    p, q = math.exp(1.5) / (1 + math.exp(1.5)), 1 / (1 + math.exp(1.5))
    with_rates = plan(PureDP(1.0), true_epsilon=1.5, rates=(p, q))
    assert with_distribution.instrument == with_rates.instrument == BY_GUESS
    # With two outcomes, no event has to be learned. For given rates, an event may have to be
    # learned.
    assert 0.6 * with_rates.draws < with_distribution.draws < with_rates.draws


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"true_epsilon": 1.0}, "true_epsilon must be a number > 1.0, the claimed epsilon"),
        ({"true_epsilon": 0.5}, "no violation"),
        ({"true_epsilon": math.nan}, "true_epsilon"),
        ({"claim": ApproxDP(1.0, 1.0)}, "delta"),
        ({"power": 1.0}, "power"),
        ({"failure_prob": 0.0}, "failure_prob"),
        ({"true_epsilon": 1.0 + 1e-9}, "must be farther above"),
        ({"rates": (0.9, 0.01)}, "rates must be possible"),
        ({"rates": (0.1, 0.5)}, "rates must violate the claim"),
        ({"claim": PureDP(25.0), "true_epsilon": 30.0}, "claim must have an epsilon of at most"),
        ({"rates": (1.2, 0.1)}, "rates must be a number in"),
        ({"rates": (0.2, 0.1), "oracle": oracles.randomized_response(1.0)}, "got both"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan(**{"claim": PureDP(1.0), "true_epsilon": 2.0} | arguments)


@pytest.mark.parametrize("claim", [1.0, None, GaussianDP(1.0)])
def test_what_is_planned_for_is_a_point(claim: Any) -> None:
    with pytest.raises(TypeError, match="^claim must be a PureDP or an ApproxDP"):
        plan(claim, 2.0)
