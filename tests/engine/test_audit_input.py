"""Tests of the pairs, outputs and arguments that an audit accepts or refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    AuditResult,
    GaussianDP,
    NeighborPair,
    PairError,
    PairFamily,
    PureDP,
    Relation,
    Verdict,
    audit,
    within_sensitivity,
)
from dpaudit.claims.notions import Claim
from tests.engine.test_audit import (
    ONE,
    TWO,
    Array,
    Generator,
    constant,
    exposes,
    laplace,
    vector,
)

# --- pairs ------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("order", [[ONE, TWO], [TWO, ONE]])
def test_the_worst_pair_of_several_is_certified(order: list[NeighborPair]) -> None:
    for pairs in (order, PairFamily("both", tuple(order))):
        result = audit(laplace, PureDP(1.0), pairs, draws=20_000, seed=1, mutants=None)
        assert result.pair_words.startswith("two")
        assert 1.7 < result.certified_epsilon <= 2.0


@pytest.mark.slow
def test_pairs_that_were_given_up_are_paid_from_the_same_budget() -> None:
    drawn = []
    for pairs in (TWO, [ONE, TWO, ONE, TWO]):
        counts = audit(
            laplace, PureDP(1.0), pairs, draws=20_000, seed=1, mutants=None
        ).epsilon.counts
        assert counts is not None
        drawn.append(counts.draws_left)  # guesses count the draws of both sides together
    assert drawn[0] == drawn[1] < 2 * 20_000


def test_equal_sides_certify_nothing() -> None:
    same = NeighborPair([[0.0]], [[0.0]])
    assert (
        audit(laplace, PureDP(0.5), same, draws=5000, seed=1, mutants=None).certified_epsilon == 0.0
    )


def test_pairs_may_have_sides_of_different_shapes() -> None:
    pair = NeighborPair([[0.0], [1.0]], [[0.0]], relation=Relation.ADD_REMOVE_USER)
    claim = PureDP(1.0, Relation.ADD_REMOVE_USER)
    assert (
        audit(laplace, claim, pair, draws=2000, seed=1, mutants=None).claim["relation"]
        == "add_remove_user"
    )


RELATIONS = [
    Relation.REPLACE_USER,
    Relation.ADD_REMOVE_USER,
    Relation.WITHIN_SENSITIVITY,
    within_sensitivity(2.0),
    within_sensitivity(1.0, norm="l1"),
]
PAIRS = [
    ONE,
    NeighborPair([[0.0], [1.0]], [[0.0]], relation=Relation.ADD_REMOVE_USER),
    NeighborPair([0.0], [1.0], relation=Relation.WITHIN_SENSITIVITY),
    NeighborPair([0.0], [1.0], relation=within_sensitivity(2.0)),
    NeighborPair([0.0], [1.0], relation=within_sensitivity(1.0, norm="l1")),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: str(p.relation))
def test_claims_are_audited_under_their_own_relation_only(pair: NeighborPair) -> None:
    for relation in RELATIONS:
        claim = PureDP(1.0, relation)
        if relation == pair.relation:
            audit(laplace, claim, pair, draws=50, seed=1, mutants=None)
        else:
            with pytest.raises(PairError, match="pair must have the claim's relation, .*, got"):
                audit(laplace, claim, pair, draws=50, seed=1, mutants=None)


def test_a_claim_without_a_relation_refuses_groups_of_users() -> None:
    """Check that a pair of two users cannot refute a claim that is about one user."""
    group = NeighborPair([[0.0], [0.0]], [[9.0], [9.0]], relation=Relation.REPLACE_USER.of_group(2))
    with pytest.raises(PairError, match=r"differ in one user .* got replace_user\(users=2\)"):
        audit(laplace, PureDP(1.0), group, draws=50, seed=1, mutants=None)
    with pytest.raises(PairError, match="pair must have the claim's relation"):
        audit(laplace, PureDP(1.0, Relation.REPLACE_USER), group, draws=50, seed=1, mutants=None)
    audit(laplace, PureDP(1.0, group.relation), group, draws=50, seed=1, mutants=None)


# --- outputs ----------------------------------------------------------------------------------

OUTPUTS: dict[str, Callable[[Array, Generator], Array]] = {
    "booleans": lambda x, rng: x > 0,
    "integers": lambda x, rng: np.round(x).astype(np.int64),
    "strings": lambda x, rng: np.where(x > 0, "yes", "no"),
    "bytes": lambda x, rng: np.where(x > 0, b"yes", b"no"),
    "matrices": lambda x, rng: x[:, None, None] + rng.laplace(size=(len(x), 2, 2)),
    "gaps": lambda x, rng: np.where(x > 1, np.nan, x),
    "records": lambda x, rng: np.array(
        list(zip(x, np.where(x > 0, "a", "b"), strict=True)), [("x", float), ("y", "U1")]
    ),
    "two labels": lambda x, rng: np.stack(
        [np.where(x > 0, "a", "b"), rng.choice(["a", "b"], size=len(x))], axis=1
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_of_every_kind_are_audited_end_to_end(name: str) -> None:
    def mechanism(data: Array, size: int, *, rng: Generator) -> Array:
        return OUTPUTS[name](laplace(data, size, rng=rng, scale=0.25), rng)

    pair = NeighborPair([[0.0], [0.5]], [[0.0], [-0.5]])
    result = audit(mechanism, PureDP(0.5), pair, draws=6000, seed=1, mutants=None)
    assert result.verdict is Verdict.REFUTED
    assert AuditResult.from_json(result.to_json()) == result


@pytest.mark.parametrize("draws", [20, 23, 50])
def test_tiny_budgets_are_enough_to_run(draws: int) -> None:
    for mechanism in (laplace, vector, exposes, constant):
        result = audit(mechanism, PureDP(1.0), ONE, draws=draws, seed=1, mutants=None)
        assert result.draws["explore"] >= 8


# --- refusals ---------------------------------------------------------------------------------

BAD_ARGUMENTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"claim": 1.0}, TypeError, "^claim must be a claim"),
    ({"claim": PureDP}, TypeError, "^claim must be a claim"),
    ({"claim": None}, TypeError, "^claim must be a claim"),
    ({"draws": 19}, ValueError, "^draws must be an integer >= 20, got 19"),
    ({"draws": 1000.0}, TypeError, "^draws must be an integer"),
    ({"draws": True}, TypeError, "^draws must be an integer"),
    ({"failure_prob": 0.0}, ValueError, "^failure_prob must be"),
    ({"failure_prob": 1.0}, ValueError, "^failure_prob must be"),
    ({"failure_prob": math.nan}, ValueError, "^failure_prob must be"),
    ({"failure_prob": "1e-5"}, TypeError, "^failure_prob must be"),
    ({"seed": -1}, ValueError, "^seed must be an integer >= 0"),
    ({"seed": None}, TypeError, "^seed must be an integer"),
    ({"seed": 1.5}, TypeError, "^seed must be an integer"),
    ({"pairs": []}, ValueError, "at least one entry"),
    ({"pairs": 3}, TypeError, "^pairs must be"),
    ({"pairs": [ONE, PAIRS[2]]}, ValueError, "have one relation if they are query values"),
    ({"mechanism": 3}, TypeError, "^mechanism must be a function"),
    ({"mutants": 3}, TypeError, "^mutants must be 'all', 'noise', None, or a list"),
    ({"mutants": laplace}, TypeError, "^mutants must be 'all', 'noise', None, or a list"),
    ({"mutants": "half"}, TypeError, "^mutants must be 'all', 'noise', None, or a list"),
    ({"mutants": [laplace, 3]}, TypeError, "must hold functions"),
    (
        {"mutants": [AdditiveNoise(laplace, scale=1.0)]},
        TypeError,
        "^mutants must hold mechanisms of",
    ),
    ({"id": 5}, TypeError, "^id must be"),
    ({"method": "adaptive"}, ValueError, "^method must be one of fixed, sequential"),
    ({"method": True}, TypeError, "^method must be one of 'fixed', 'sequential' or an instrument"),
]


@pytest.mark.parametrize(("arguments", "error", "words"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    good: dict[str, Any] = {
        "mechanism": laplace, "claim": PureDP(1.0), "pairs": ONE, "draws": 50, "seed": 1
    }  # fmt: skip
    with pytest.raises(error, match=words):
        audit(**{**good, **arguments})


def test_the_default_seed_is_zero() -> None:
    default, zero = (audit(laplace, PureDP(1.0), ONE, draws=500, mutants=None, **s) for s in SEEDS)
    assert default.seed == 0
    assert default.epsilon == zero.epsilon


SEEDS: list[dict[str, Any]] = [{}, {"seed": 0}]


def test_a_claim_of_ones_own_may_be_audited() -> None:
    class Linear(Claim):
        def delta(self, epsilon: float) -> float:
            return max(0.4 - epsilon / 10, 0.0)

        def epsilon(self, delta: float) -> float:
            return max(4 - 10 * delta, 0.0)

        def to_json(self) -> dict[str, Any]:
            return {"slope": 0.1}

    result = audit(exposes, Linear(), ONE, draws=500, seed=1, mutants=None)
    assert result.verdict is Verdict.REFUTED
    assert result.claim["parameters"] == {"slope": 0.1}
    assert result.claim["notion"] == "custom"


def labels(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.choice(["a", "b"], size=size)


def whole_numbers(data: Array, size: int, *, rng: Generator) -> Array:
    return np.rint(rng.normal(size=size))


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [False, True])
def test_a_floating_point_attack_without_floats_says_that_it_did_nothing(sequential: bool) -> None:
    def notes(mechanism: Any, float_attack: bool) -> tuple[str, ...]:
        result = audit(
            mechanism,
            PureDP(1.0),
            ONE,
            draws=1000,
            seed=1,
            method="sequential" if sequential else "fixed",
            float_attack=float_attack,
            mutants=None,
        )
        return result.notes

    for mechanism in (labels, whole_numbers):
        (note,) = notes(mechanism, True)
        assert "The floating-point attack tested nothing" in note
        assert notes(mechanism, False) == ()
    assert not any("did nothing" in note for note in notes(laplace, True))


@pytest.mark.sampled
@pytest.mark.parametrize("middles", [(1e308, -1e308), (1e308, 1e308), (1.7e308, 0.0)])
@pytest.mark.parametrize("width", [1e290, 5e306])
@pytest.mark.parametrize("d", [0, 3])
def test_huge_outputs_are_audited_without_a_warning(
    middles: tuple[float, float], width: float, d: int
) -> None:
    def huge(data: Array, size: int, *, rng: Generator) -> Array:
        shape = (size, d) if d else (size,)
        return middles[0 if data.sum() > 0 else 1] + width * rng.uniform(-1.0, 1.0, size=shape)

    for options in ({"float_attack": True}, {"method": "sequential"}):
        result = audit(huge, ApproxDP(1.0, 1e-5), ONE, draws=1000, seed=1, mutants=None, **options)
        edges = result.diagnostics.histogram.edges
        assert edges is None or (np.diff(edges) > 0).all()
        refuted = middles[0] != middles[1]
        assert result.verdict is (Verdict.REFUTED if refuted else Verdict.NO_POWER)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "claim", [PureDP(800.0), PureDP(1e100), PureDP(1e-300), GaussianDP(1e300)], ids=str
)
@pytest.mark.parametrize("sequential", [False, True])
def test_absurd_claims_are_audited_without_a_warning(claim: Any, sequential: bool) -> None:
    result = audit(
        laplace,
        claim,
        ONE,
        draws=2000,
        seed=1,
        method="sequential" if sequential else "fixed",
        mutants=None,
    )
    refuted = isinstance(claim, PureDP) and claim.claimed_epsilon < 1e-200
    assert result.verdict is (Verdict.REFUTED if refuted else Verdict.NO_POWER)
