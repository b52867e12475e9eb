"""Audits of known pmfs, which use no randomness and miss nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from dpaudit import (
    ApproxDP,
    AuditResult,
    GaussianDP,
    MechanismError,
    NeighborPair,
    PureDP,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
    audit,
)
from dpaudit.claims.notions import Claim
from dpaudit.stats import hockey_stick, oracles

BASE = [[0.0], [0.0]]
ONE, TWO = (NeighborPair([[0.0], [x]], BASE) for x in (1.0, 2.0))


class Exact:
    """A mechanism whose pmf on a dataset depends on the sum of the dataset."""

    def __init__(self, distributions: Callable[[float], Any]) -> None:
        self.distributions = distributions
        self.__name__ = "exact"

    def pmf(self, data: Any) -> Any:
        return self.distributions(float(data.sum()))


def _two(p: Any, q: Any) -> Exact:
    return Exact(lambda total: p if total else q)


def _audit(mechanism: Any, claim: Claim, pairs: Any = ONE, **arguments: Any) -> AuditResult:
    return audit(mechanism, claim, pairs, seed=0, **{"mutants": None, **arguments})


def test_the_exact_epsilon_is_found_and_certain() -> None:
    result = _audit(_two([0.75, 0.25], [0.25, 0.75]), PureDP(1.0))
    assert result.verdict is Verdict.REFUTED
    assert result.certified_epsilon == pytest.approx(math.log(3))
    assert result.certified_epsilon == result.estimated_epsilon == result.epsilon.upper
    assert result.failure_prob == 0.0
    assert result.draws == {"explore": 0, "certify": 0}
    oracle = oracles.randomized_response(math.log(3))
    assert result.profile.certified_delta == pytest.approx(
        oracle.delta(result.profile.epsilon).tolist()
    )


@pytest.mark.parametrize("claimed", [0.1, 1.0, 3.0])
def test_the_witness_needs_the_certified_epsilon(claimed: float) -> None:
    p, q = [0.5, 0.3, 0.2, 0.0], [0.2, 0.25, 0.5, 0.05]
    result = _audit(_two(p[:3], [0.2, 0.25, 0.55]), PureDP(claimed))
    assert result.verdict is (Verdict.REFUTED if claimed <= 1 else Verdict.NO_POWER)
    likely, rare = result.witness.likely, result.witness.rare
    assert math.log(likely / rare) == pytest.approx(result.certified_epsilon)
    result = _audit(_two(p, q), ApproxDP(claimed, 0.1))
    likely, rare = result.witness.likely, result.witness.rare
    assert math.log((likely - 0.1) / rare) == pytest.approx(result.certified_epsilon)


@pytest.mark.parametrize("swap", [False, True])
def test_both_directions_are_looked_at(swap: bool) -> None:
    p, q = [0.5, 0.5], [0.1, 0.9]
    result = _audit(_two(q, p) if swap else _two(p, q), PureDP(1.0))
    assert result.certified_epsilon == pytest.approx(math.log(5))
    assert result.witness.likelier == ("right" if swap else "left")
    assert result.witness.event == "outcome = 0"
    assert (result.witness.likely, result.witness.rare) == (0.5, 0.1)
    grid = result.profile.epsilon
    worse = [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in grid]
    assert result.profile.certified_delta == pytest.approx(worse)
    assert any(hockey_stick(q, p, e) < delta for e, delta in zip(grid, worse, strict=True))


def test_outcomes_that_only_one_side_has_give_infinity() -> None:
    result = _audit(_two([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]), ApproxDP(1.0, 0.1))
    assert result.certified_epsilon == math.inf
    assert result.certified_delta == 0.5
    assert result.verdict is Verdict.REFUTED
    assert AuditResult.from_json(result.to_json()) == result


def test_infinite_epsilon_is_a_violation_however_rare() -> None:
    result = _audit(_two([1 - 1e-13, 1e-13], [1.0, 0.0]), PureDP(1.0))
    assert result.certified_epsilon == math.inf
    assert result.verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("epsilon", "p", "q"),
    [
        (1.0, [0.25 * (1 + 5e-10), 0.75 * (1 - 5e-10 / 3)], [0.25 / math.e, 1 - 0.25 / math.e]),
        (0.0, [0.5 + 5e-16, 0.5 - 5e-16], [0.5, 0.5]),
        (1.0, [0.5, 0.5 - 1e-16, 1e-16], [0.5, 0.5, 0.0]),
    ],
)
def test_nothing_is_certified_above_a_claim_that_is_not_refuted(
    epsilon: float, p: list[float], q: list[float]
) -> None:
    result = _audit(_two(p, q), PureDP(epsilon))
    assert result.verdict is Verdict.NO_POWER
    assert result.certified_epsilon <= epsilon
    assert result.certified_delta == 0.0
    assert (
        np.array(result.profile.certified_delta) <= np.array(result.profile.claimed_delta)
    ).all()


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.25)])
@pytest.mark.parametrize("scale", [1e-30, 1e-16])
def test_what_may_be_a_rounding_error_is_neither_refuted_nor_certified(
    claim: Claim, scale: float
) -> None:
    delta = claim.delta(1.0)
    p = [0.5 + delta, 0.5 - delta - scale, 5 * scale]
    result = _audit(_two(p, [0.5, 0.5 - scale, scale]), claim)
    assert result.verdict is Verdict.NO_POWER
    assert result.certified_epsilon <= 1.0
    if claim.point == (1.0, 0.0):  # as the mechanism without the rare outcome
        assert result.certified_epsilon == pytest.approx(0.0, abs=1e-14)
        assert result.epsilon.upper == math.inf  # the outcome may be no rounding error


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 10.0, 30.0])
def test_a_tight_claim_is_not_refuted(epsilon: float) -> None:
    oracle = oracles.randomized_response(epsilon) if epsilon else oracles.discrete([1.0], [1.0])
    mechanism = _two(oracle.pmf_left, oracle.pmf_right)
    result = _audit(mechanism, PureDP(epsilon))
    assert result.verdict is Verdict.NO_POWER
    assert result.certified_epsilon == pytest.approx(epsilon)
    leaky = [[0.01, 0.0, *(0.99 * x)] for x in (oracle.pmf_left, oracle.pmf_right)]
    leaky[1][:2] = [0.0, 0.01]
    assert _audit(_two(*leaky), ApproxDP(epsilon, 0.01)).verdict is Verdict.NO_POWER
    if epsilon:
        assert _audit(mechanism, PureDP(epsilon * 0.999)).verdict is Verdict.REFUTED


def _tight_distribution(alpha: float, budget: float, epsilon: float) -> tuple[float, float]:
    """Return the two-point distributions that keep a Renyi claim and are worst at `epsilon`."""

    def divergence(p: Any, q: Any) -> Any:
        terms = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)
        return np.log(terms) / (alpha - 1)

    logits = np.linspace(-14.0, 4.0, 401)
    for _ in range(5):
        q = special.expit(logits)
        low, high = q.copy(), np.full_like(q, 1 - 1e-12)
        for _ in range(60):
            middle = (low + high) / 2
            keeps = np.maximum(divergence(middle, q), divergence(q, middle)) <= budget
            low, high = np.where(keeps, middle, low), np.where(keeps, high, middle)
        top = int((low - math.exp(epsilon) * q).argmax())
        step = logits[1] - logits[0]
        best, logits = (low[top], q[top]), np.linspace(logits[top] - step, logits[top] + step, 401)
    return float(best[0]), float(best[1])


@pytest.mark.sampled
@pytest.mark.parametrize(("alpha", "budget"), [(2.0, 0.5), (8.0, 2.0), (1.5, 0.2)])
def test_laws_that_only_just_keep_a_renyi_claim_are_not_refuted(
    alpha: float, budget: float
) -> None:
    claim = RenyiDP(alpha, budget)
    for epsilon in np.linspace(0.0, max(claim.epsilon(1e-6), 0.1), 25)[1::3].tolist():
        p, q = _tight_distribution(alpha, budget, epsilon)
        result = _audit(_two([p, 1 - p], [q, 1 - q]), claim)
        assert result.verdict is Verdict.NO_POWER, result.reason


@pytest.mark.slow
@pytest.mark.parametrize("claim", [GaussianDP(0.5), ZeroConcentratedDP(0.1), RenyiDP(4.0, 0.3)])
def test_curves_are_refuted_by_what_exceeds_them_anywhere(claim: Claim) -> None:
    spread = _audit(_two([0.75, 0.25], [0.25, 0.75]), claim)
    assert spread.verdict is Verdict.REFUTED
    assert spread.certified_epsilon > spread.claimed_epsilon
    assert spread.certified_delta > spread.claimed_delta
    tail = _audit(_two([0.01, 0.99], [0.0, 1.0]), claim)
    assert tail.verdict is Verdict.REFUTED


def _one_violates(total: float) -> list[float]:
    if total == 1.0:
        return [0.75, 0.25 - 3e-9, 3e-9]  # far from the other side; violates 1-GDP near epsilon 0
    if total == 2.0:
        return [0.25, 0.75 - 1.02e-6, 1.02e-6]  # satisfies the claim, with a long tail
    return [0.25, 0.75 - 3e-9, 3e-9]


def test_a_curve_is_refuted_by_any_pair_that_breaks_it() -> None:
    mechanism, claim = Exact(_one_violates), GaussianDP(1.0)
    assert _audit(mechanism, claim, ONE).verdict is Verdict.REFUTED
    assert _audit(mechanism, claim, TWO).verdict is Verdict.NO_POWER
    for pairs in ([ONE, TWO], [TWO, ONE]):
        assert _audit(mechanism, claim, pairs).verdict is Verdict.REFUTED


def test_the_worst_pair_is_chosen() -> None:
    def distributions(total: float) -> Any:
        p = special.expit(total)
        return [p, 1 - p]

    for pairs in ([ONE, TWO], [TWO, ONE]):
        result = _audit(Exact(distributions), PureDP(1.0), pairs)
        assert result.pair_words == TWO.describe()
        assert result.certified_epsilon == pytest.approx(math.log(0.5 / special.expit(-2.0)))


BAD_PMFS: list[tuple[Any, Any, str]] = [
    ([0.5, 0.4], [0.5, 0.5], "sum to 1"),
    ([1.5, -0.5], [0.5, 0.5], "probabilities >= 0"),
    ([1.0], [0.5, 0.5], "of equal length"),
    ([math.nan, 1.0], [0.5, 0.5], "probabilities"),
    ([[0.5, 0.5]], [[0.5, 0.5]], "one-dimensional"),
    (["a"], ["b"], "raised ValueError"),
    ([], [], "nonempty"),
]


@pytest.mark.parametrize(("left", "right", "words"), BAD_PMFS)
def test_bad_pmfs_are_the_fault_of_the_mechanism(left: Any, right: Any, words: str) -> None:
    with pytest.raises(MechanismError, match=f"^exact.pmf.*{words}"):
        _audit(_two(left, right), PureDP(1.0))


def test_errors_of_the_pmf_are_reported() -> None:
    with pytest.raises(
        MechanismError,
        match=r"exact.pmf raised ZeroDivisionError: .*\(at test_exact.py:\d+, called with",
    ):
        _audit(Exact(lambda total: [1 / 0]), PureDP(1.0))


def test_a_computed_mutant_shows_power() -> None:
    good, bad = _two([0.6, 0.4], [0.4, 0.6]), _two([0.9, 0.1], [0.1, 0.9])
    assert _audit(good, PureDP(1.0), mutants=[bad]).verdict is Verdict.NOT_REFUTED
    assert _audit(good, PureDP(1.0), mutants=[good]).verdict is Verdict.NO_POWER


def test_the_picture_has_a_bar_for_each_outcome() -> None:
    result = _audit(_two([0.75, 0.25], [0.25, 0.75]), PureDP(1.0))
    assert result.diagnostics.histogram.left == (750_000, 250_000)
    assert result.diagnostics.histogram.right == (250_000, 750_000)
    assert result.diagnostics.histogram.inside in ((True, False), (False, True))


@pytest.mark.parametrize("swapped", [False, True])
def test_the_profile_is_that_of_the_worse_direction(swapped: bool) -> None:
    """Check that the profile is the profile of the worse direction.

    An outcome that only one dataset can produce costs delta in one direction only.
    """
    p, q = [0.5, 0.5, 0.0], [0.4, 0.4, 0.2]
    profile = _audit(_two(q, p) if swapped else _two(p, q), PureDP(1.0)).profile
    assert profile.certified_delta == pytest.approx([0.2] * len(profile.epsilon), abs=1e-12)
