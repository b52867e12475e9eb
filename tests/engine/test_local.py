"""Audits of local mechanisms: every kind of value, every kind of mechanism, by exact numbers."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    LocalDP,
    Longitudinal,
    LongitudinalDP,
    MetricDP,
    NeighborPair,
    PureDP,
    Relation,
    Settings,
    Shuffled,
    audit,
    audit_one_run,
    audit_outputs,
    neighbors,
)
from dpaudit.errors import ArgumentError, MechanismError, PairError
from dpaudit.results import AuditResult, Verdict
from dpaudit.stats import hockey_stick_inverse
from dpaudit.store import pair_bytes
from dpaudit.store.records import _pairs_from

Array = NDArray[Any]

QUICK = Settings(shrink=False)


def audited(mechanism: Any, claim: Any, pairs: Any = None, **options: Any) -> AuditResult:
    given = {"seed": 1, "draws": 20_000, "mutants": None, "settings": QUICK, **options}
    return audit(mechanism, claim, pairs, **given)


class Table:
    """A mechanism with known probabilities: one row for each value."""

    def __init__(self, rows: Any) -> None:
        self.rows = np.asarray(rows, dtype=float)

    def pmf(self, value: int) -> Array:
        return self.rows[value]

    def __call__(self, value: int, size: int, *, rng: Generator) -> Array:
        return rng.choice(self.rows.shape[1], size=size, p=self.rows[value])


def response(epsilon: float, k: int) -> Array:
    """Return the table of k-ary randomised response."""
    table = np.ones((k, k)) + np.diag([math.exp(epsilon) - 1] * k)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


# --- exact: the worst of all pairs ---


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_all_pairs_of_a_table_are_computed(delta: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(5), size=7)
    worst = max(
        hockey_stick_inverse(rows[i], rows[j], delta)
        for i, j in itertools.permutations(range(7), 2)
    )
    result = audited(Table(rows), LocalDP(1.0, delta, domain=range(7)))
    assert result.certified_epsilon == pytest.approx(worst, rel=1e-12)
    assert "21 pairs of 7 values" in result.pair_words


def test_the_worst_ratio_of_a_table_counts_for_a_metric() -> None:
    """Check that a close pair with a smaller epsilon beats a far pair with a larger one."""
    e = math.exp
    rows = np.array([[1.0, 1.0], [e(0.5), 1.0], [e(1.2), 1.0]])
    rows /= rows.sum(axis=1, keepdims=True)
    places = [0.0, 0.1, 3.0]
    claim = MetricDP(1.0, lambda x, y: abs(places[x] - places[y]), domain=range(3))
    result = audited(Table(rows), claim)
    assert result.verdict is Verdict.REFUTED
    assert "0 against 1" in result.pair_words
    needed = hockey_stick_inverse(rows[1], rows[0], 0.0)
    assert result.certified_epsilon == pytest.approx(
        max(needed, hockey_stick_inverse(rows[0], rows[1], 0.0))
    )
    assert result.claimed_epsilon == pytest.approx(0.1)
    assert result.claim["words"] == "epsilon = 0.1 at distance 0.1 (1 per unit)"


def test_distances_of_centres_are_computed() -> None:
    mechanism = AdditiveNoise(lambda value: [value], noise="laplace", scale=1.0)
    claim = MetricDP(1.0, lambda x, y: abs(x - y), domain=[0.0, 0.5, 3.0])
    assert audited(mechanism, claim).verdict is not Verdict.REFUTED
    shorter = MetricDP(1.0, lambda x, y: 0.9 * abs(x - y), domain=[0.0, 0.5, 3.0])
    assert audited(mechanism, shorter).verdict is Verdict.REFUTED


# --- draws: the search finds the worst values ---


def test_draws_find_the_value_with_the_mistake() -> None:
    rows = response(1.0, 12)
    rows[7] = response(2.0, 12)[7]
    result = audited(Table(rows).__call__, LocalDP(1.0, domain=range(12)), draws=60_000)
    assert result.verdict is Verdict.REFUTED
    assert "7 against" in result.pair_words or "against 7" in result.pair_words
    exact = audited(Table(rows), LocalDP(1.0, domain=range(12))).certified_epsilon
    assert 1.2 < result.certified_epsilon <= exact


def test_a_search_of_all_pairs_makes_no_more_draws_than_any_other() -> None:
    """Check that 66 pairs of 12 values cost less than a third of the draws."""
    result = audited(Table(response(1.0, 12)).__call__, LocalDP(1.0, domain=range(12)))
    assert result.draws["explore"] == 6000
    assert result.draws["explore"] + result.draws["certify"] <= 20_000
    assert 0.8 < result.certified_epsilon <= 1.0


VALUES: dict[str, list[Any]] = {
    "texts": ["yes", "no", "perhaps"],
    "whole numbers": [0, 1, 2],
    "floats": [0.0, -1.5, 1e300],
    "none and booleans": [None, True, False],
    "tuples": [(0, 0), (0, 1), (1, 0)],
    "lists": [["a"], ["a", "b"], []],
    "dicts": [{"age": 3}, {"age": 4}, {"city": "Aix"}],
    "arrays": [np.zeros(2), np.ones(2), np.array([0.0, np.nan])],
    "arrays of several lengths": [np.zeros(2), np.ones(1), np.zeros((2, 2))],
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("method", ["fixed", "sequential"])
def test_values_of_any_kind_are_handed_over_as_they_are(kind: str, method: str) -> None:
    values = VALUES[kind]

    def place(value: Any) -> int:
        same = [at for at, one in enumerate(values) if repr(one) == repr(value)]
        assert len(same) == 1
        assert type(value) is type(values[same[0]])
        return same[0]

    table = response(2.0, 3)

    def mechanism(value: Any, size: int, *, rng: Generator) -> Array:
        return rng.choice(3, size=size, p=table[place(value)])

    result = audited(mechanism, LocalDP(1.0, domain=values), draws=5000, method=method)
    assert result.verdict is Verdict.REFUTED
    assert result.certified_epsilon <= 2.0
    assert "3 pairs of 3 values: " in result.pair_words
    assert "differing user" not in result.summary()
    assert "the code that reads the value" in result.advice


@pytest.mark.parametrize("kind", ["texts", "floats", "none and booleans", "tuples", "arrays"])
def test_a_pair_of_values_is_stored_and_read_again(kind: str) -> None:
    left, right = VALUES[kind][:2]
    pair = NeighborPair(left, right, relation=Relation.LOCAL)
    again, _ = _pairs_from(pair_bytes(pair))
    assert repr(again) == repr(pair)
    assert repr(again.left) == repr(pair.left)
    assert again.relation == Relation.LOCAL


def numbers(value: int, size: int, *, rng: Generator) -> Array:
    return value + rng.laplace(scale=1.0, size=size)


def vectors(value: int, size: int, *, rng: Generator) -> Array:
    truth = np.arange(3) == value
    return (rng.random((size, 3)) < np.where(truth, 0.75, 0.25)).astype(int)


def texts(value: int, size: int, *, rng: Generator) -> list[str]:
    return ["abc"[v] for v in Table(response(2.0, 3))(value, size, rng=rng)]


def ragged(value: int, size: int, *, rng: Generator) -> list[list[int]]:
    return [[1] * v for v in Table(response(2.0, 3))(value, size, rng=rng).tolist()]


def dicts(value: int, size: int, *, rng: Generator) -> list[dict[str, int]]:
    return [{"a": v} for v in Table(response(2.0, 3))(value, size, rng=rng).tolist()]


def missing(value: int, size: int, *, rng: Generator) -> list[float | None]:
    return [v or None for v in Table(response(2.0, 3))(value, size, rng=rng).tolist()]


def records(value: int, size: int, *, rng: Generator) -> list[tuple[int, str]]:
    return [(v, "abc"[v]) for v in Table(response(2.0, 3))(value, size, rng=rng).tolist()]


KINDS = [numbers, vectors, texts, ragged, dicts, missing, records]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", KINDS)
@pytest.mark.parametrize("method", ["fixed", "sequential"])
def test_workers_change_no_result(mechanism: Any, method: str) -> None:
    given = {"draws": 4000, "method": method, "failure_prob": 1e-3}
    claim = LocalDP(0.5, domain=range(3))
    alone = audited(mechanism, claim, **given)
    both = audited(mechanism, claim, settings=Settings(workers=2, shrink=False), **given)
    for name in ("verdict", "pair_words", "epsilon", "delta", "witness", "profile", "draws"):
        assert getattr(both, name) == getattr(alone, name), name


@pytest.mark.slow
def test_a_metric_of_draws_refutes_where_the_ratio_is_largest() -> None:
    """Check geo-indistinguishability: noise of scale 1 / 1.5 for a claim of 1 per unit."""

    def planar(point: tuple[float, float], size: int, *, rng: Generator) -> Array:
        radius, angle = rng.gamma(2, 1 / 1.5, size=size), rng.uniform(0, 2 * np.pi, size=size)
        return np.array(point) + np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius[:, None]

    places = list(itertools.product([0.0, 1.0, 2.0], repeat=2))
    claim = MetricDP(1.0, math.dist, domain=places)
    result = audited(planar, claim, draws=40_000)
    assert result.verdict is Verdict.REFUTED
    assert result.claim["notion"] == "metric_dp"
    assert result.certified_epsilon <= 1.5 * result.claim["parameters"]["distance"]


def test_pairs_of_a_metric_are_compared_by_their_ratios() -> None:
    pairs = [NeighborPair(0, v, relation=Relation.LOCAL) for v in (1, 10)]
    claim = MetricDP(1.0, lambda x, y: 0.5 if max(x, y) == 1 else 10.0)
    result = audited(numbers, claim, pairs)
    assert result.verdict is Verdict.REFUTED
    assert "0 against 1" in result.pair_words
    assert "0 against 10" not in result.pair_words
    single = audited(numbers, claim, pairs[1])
    assert single.verdict is not Verdict.REFUTED
    assert single.claimed_epsilon == 10.0


@pytest.mark.slow
def test_mutants_show_power_on_all_pairs() -> None:
    claim = LocalDP(1.0, domain=range(3))
    result = audited(Table(response(1.0, 3)).__call__, claim, mutants="noise", draws=40_000)
    assert result.verdict is Verdict.NOT_REFUTED
    assert audited(Table(response(1.0, 3)), claim, mutants="noise").verdict is Verdict.NOT_REFUTED


# --- reports over time, and the shuffle model ---


def permanent(value: int, size: int, *, rng: Generator) -> Array:
    """Report a permanent bit (epsilon = log 3) five times through a channel of epsilon = log 3."""
    kept = np.where(rng.random(size) < 0.75, value, 1 - value)[:, None]
    return np.where(rng.random((size, 5)) < 0.75, kept, 1 - kept)


@pytest.mark.slow
def test_each_report_and_all_reports_have_claims_of_their_own() -> None:
    """Check both sides of the exact epsilons: one report has log(0.625 / 0.375) = 0.511."""
    one, mechanism = math.log(0.625 / 0.375), Longitudinal(permanent)
    given = {"reports": 5, "domain": [0, 1]}
    holds = audited(mechanism, LongitudinalDP(one, math.log(3), **given), draws=40_000)
    assert holds.verdict is not Verdict.REFUTED
    each = audited(mechanism, LongitudinalDP(0.35, math.log(3), **given), draws=40_000)
    assert each.verdict is Verdict.REFUTED
    assert each.claimed_epsilon == 0.35
    assert 0.35 < each.certified_epsilon <= one
    total = audited(mechanism, LongitudinalDP(one, 0.7, **given), draws=40_000)
    assert total.verdict is Verdict.REFUTED
    assert total.claim["words"] == "epsilon = 0.7 for all 5 reports"
    assert 0.7 < total.certified_epsilon <= math.log(3)


@pytest.mark.slow
def test_a_shuffle_hides_one_client_among_many() -> None:
    """Check a shuffle against the exact epsilon, from the binomial distribution of its counts."""
    n = 10

    def bit(value: int, size: int, *, rng: Generator) -> Array:
        return np.where(rng.random(size) < 0.75, value, 1 - value)

    others = stats.binom.pmf(np.arange(n), n - 1, 0.25)
    ones = [
        p * np.append(others, 0)[: n + 1] + (1 - p) * np.append(0, others)[: n + 1]
        for p in (0.75, 0.25)
    ]
    exact = max(hockey_stick_inverse(*ones, 0.01), hockey_stick_inverse(*ones[::-1], 0.01))
    pair = NeighborPair(np.zeros(n, int), np.eye(1, n, n - 1, dtype=int)[0])
    mechanism = Shuffled(bit, outcomes=[0, 1])
    found = audited(mechanism, ApproxDP(exact, 0.01), pair, draws=100_000)
    assert found.verdict is not Verdict.REFUTED
    assert found.certified_epsilon > 0.5 * exact
    lower = audited(mechanism, ApproxDP(0.3 * exact, 0.01), pair, draws=100_000)
    assert lower.verdict is Verdict.REFUTED


@pytest.mark.slow
def test_a_stream_spends_its_budget_once_for_each_window() -> None:
    def noisy_rows(data: Array, size: int, *, rng: Generator) -> Array:
        return data + rng.laplace(scale=1.0, size=(size, len(data)))

    event = audited(noisy_rows, PureDP(1.0), neighbors.streams(8))
    assert event.verdict is not Verdict.REFUTED
    window = neighbors.streams(8, window=3)
    relation = Relation.REPLACE_USER.of_window(3)
    assert audited(noisy_rows, PureDP(1.0, relation), window).verdict is Verdict.REFUTED
    assert audited(noisy_rows, PureDP(3.0, relation), window).verdict is not Verdict.REFUTED


# --- pairs about which nothing is claimed ---


def far_apart(x: int, y: int) -> float:
    return math.inf if {x, y} == {0, 2} else float(abs(x - y))


def test_pairs_without_a_claim_are_never_chosen() -> None:
    """Check that values at an infinite distance may differ in all outputs."""
    rows = np.array([[1.0, 1.0, 0.0], [math.e, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows /= rows.sum(axis=1, keepdims=True)
    apart = MetricDP(1.0, lambda x, y: math.inf if 2 in (x, y) else 1.0, domain=range(3))
    for mechanism in (Table(rows), Table(rows).__call__):
        result = audited(mechanism, apart)
        assert result.verdict is not Verdict.REFUTED
        assert "0 against 1" in result.pair_words
        assert result.claimed_epsilon == 1.0
    centres = AdditiveNoise(lambda value: [[0.0, 1.0, 99.0][value]], noise="gaussian", scale=1.0)
    found = audited(centres, MetricDP(5.0, apart.metric, 1e-3, domain=range(3)))
    assert "0 against 1" in found.pair_words


@pytest.mark.sampled
@pytest.mark.parametrize("draws", [1000, 3000, 10_000])
def test_reports_at_different_times_are_never_compared(draws: int) -> None:
    """Check reports so close to uniform that no pair of equal times stands out."""

    def faint(value: int, size: int, *, rng: Generator) -> Array:
        return np.where(rng.random((size, 6)) < 0.51, value, 1 - value)

    claim = LongitudinalDP(0.2, 0.5, reports=6, domain=[0, 1])
    for seed in range(4):
        result = audited(Longitudinal(faint), claim, draws=draws, seed=seed)
        assert result.claimed_epsilon in (0.2, 0.5)


@pytest.mark.parametrize("kind", ["pair", "list", "domain"])
def test_audits_of_no_claim_are_refused(kind: str) -> None:
    claim = MetricDP(1.0, lambda x, y: math.inf, domain=[0, 1] if kind == "domain" else None)
    pair = NeighborPair(0, 1, relation=Relation.LOCAL)
    pairs = {"pair": pair, "list": [pair, NeighborPair(0, 2, relation=Relation.LOCAL)]}.get(kind)
    with pytest.raises(ArgumentError, match="finite distance|something is claimed"):
        audited(numbers, claim, pairs)


def test_claims_that_depend_on_the_pair_need_a_pair() -> None:
    claim = MetricDP(1.0, lambda x, y: 1.0)
    with pytest.raises(ArgumentError, match="claim must be the same at all pairs"):
        audit_outputs(np.arange(100.0), np.arange(100.0), claim)
    with pytest.raises(ArgumentError, match="claim must be the same at all pairs"):
        audit_one_run(np.arange(100.0), np.arange(100) % 2 == 0, claim)


@pytest.mark.slow
def test_the_program_states_the_claim_of_its_own_pair() -> None:
    """Check a metric on datasets: the pair is not reduced, so that its claim stays."""

    def total(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.laplace(scale=0.4, size=size)

    def l1(x: Any, y: Any) -> float:
        assert len(x) == 6
        return float(np.abs(np.asarray(x) - np.asarray(y)).sum())

    left, right = np.zeros(6), np.zeros(6)
    right[2] = 2.0
    claim = MetricDP(1.0, l1, relation=Relation.REPLACE_USER)
    result = audit(total, claim, NeighborPair(left, right), draws=20_000, seed=1)
    assert result.verdict is Verdict.REFUTED
    assert result.claimed_epsilon == 2.0
    assert result.smallest is None
    assert not any("looks like" in note for note in result.notes)


def test_values_without_a_digest_share_no_stored_call(tmp_path: Path) -> None:
    values = [lambda: 0.0, lambda: 0.3, lambda: 6.0]

    def mechanism(value: Any, size: int, *, rng: Generator) -> Array:
        return value() + rng.laplace(scale=1.0, size=size)

    stored = Settings(shrink=False, cache_dir=tmp_path)
    for right, verdict in ((values[2], Verdict.REFUTED), (values[1], Verdict.NO_POWER)):
        pair = NeighborPair(values[0], right, relation=Relation.LOCAL)
        assert not pair.is_null
        result = audited(mechanism, LocalDP(0.5), pair, settings=stored, id="same")
        assert result.verdict is verdict


def test_a_metric_may_be_an_object_without_a_hash() -> None:
    @dataclass
    class Scaled:
        factor: float

        def __call__(self, x: float, y: float) -> float:
            return self.factor * abs(x - y)

    result = audited(numbers, MetricDP(1.0, Scaled(2.0), domain=[0, 1, 3]), draws=2000)
    assert result.verdict is not Verdict.REFUTED


# --- refusals ---


@pytest.mark.parametrize("values", [2, 3, 4, 7])
def test_the_least_number_of_draws_is_enough(values: int) -> None:
    claim = LocalDP(1.0, domain=range(values))
    with pytest.raises(ArgumentError, match="draws must be an integer >= ") as caught:
        audited(numbers, claim, draws=20)
    least = int(str(caught.value).split(">= ")[1].split()[0])
    assert audited(numbers, claim, draws=least).draws["certify"] > 0


def test_outputs_of_several_kinds_are_refused_with_advice() -> None:
    def mixed(value: int, size: int, *, rng: Generator) -> Array:
        return rng.normal(size=size) if value < 5 else np.array(["a"] * size)

    with pytest.raises(MechanismError, match="must return outputs of one kind for all values"):
        audited(mixed, LocalDP(1.0, domain=[0, 1, 5, 7]))


def test_reports_must_be_shown_by_longitudinal() -> None:
    claim = LongitudinalDP(1.0, 2.0, reports=5, domain=[0, 1])
    with pytest.raises(TypeError, match="mechanism must be Longitudinal"):
        audited(permanent, claim)


@pytest.mark.parametrize(
    ("claim", "pairs", "options", "words"),
    [
        (LocalDP(1.0), None, {}, "domain must be given for a claim of epsilon = 1 .local DP."),
        (MetricDP(1.0, math.dist), neighbors.portfolio(n_users=3, m=1), {}, "pairs must be a pair"),
        (LocalDP(1.0, domain=[1, 2, 1]), None, {}, "values must be different from each other"),
        (LocalDP(1.0, domain=range(3)), None, {"draws": 20}, "draws must be an integer >= "),
        (
            LocalDP(1.0),
            neighbors.far_user(n_users=3),
            {},
            "the claim's relation, replace_value, got",
        ),
    ],
)
def test_audits_without_values_are_refused(
    claim: Any, pairs: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises((ArgumentError, PairError), match=words):
        audited(numbers, claim, pairs, **options)


def test_a_value_on_which_the_mechanism_fails_is_named() -> None:
    def fails(value: int, size: int, *, rng: Generator) -> Array:
        if value == 2:
            raise ValueError("no such value")
        return numbers(value, size, rng=rng)

    with pytest.raises(MechanismError, match="no such value.*The value is 2"):
        audited(fails, LocalDP(1.0, domain=range(3)))


@pytest.mark.statistical
@pytest.mark.slow
def test_a_claim_that_holds_is_refuted_no_more_often_than_said() -> None:
    """Check 200 audits of all pairs at failure_prob 0.05.

    If each is wrong with probability 0.05, then 27 or more wrong ones have probability below 1e-6.
    """
    mechanism = Table(response(1.0, 6)).__call__
    wrong = sum(
        audited(
            mechanism, LocalDP(1.0, domain=range(6)), draws=2000, seed=seed, failure_prob=0.05
        ).verdict
        is Verdict.REFUTED
        for seed in range(200)
    )
    assert stats.binom.sf(wrong - 1, 200, 0.05) > 1e-6
