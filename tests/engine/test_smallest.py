"""The smallest pair of a refuted claim: certified on fresh draws, within the draws of the audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    AuditResult,
    GaussianDP,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    Settings,
    Verdict,
    audit,
    neighbors,
    within_sensitivity,
)
from dpaudit.engine.auditing import checked_task
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.trials import MOST_TRIALS
from dpaudit.mechanisms.sampler import PROBE_SIZE
from dpaudit.store import load_result, save_record

Array = NDArray[Any]
Generator = np.random.Generator
CLAIM = PureDP(1.0)
FAR = neighbors.far_user(n_users=12, m=4, high=3.0)


def mean_of_items(data: Array, size: int, *, rng: Generator) -> Array:
    """Forget to clip users: the noise is right for values between 0 and 1."""
    return data.mean() + rng.laplace(scale=1 / len(data), size=size)


def audited(mechanism: Any = mean_of_items, pairs: Any = FAR, **arguments: Any) -> AuditResult:
    arguments = {"claim": CLAIM, "draws": 20_000, "seed": 1} | arguments
    claim = arguments.pop("claim")
    return audit(mechanism, claim, pairs, **arguments)


@pytest.mark.slow
def test_the_smallest_pair_has_its_own_certificate() -> None:
    result = audited()
    smallest = result.smallest
    assert smallest is not None
    assert smallest.pair.left.shape == (2, 1)
    assert smallest.epsilon.certified
    assert 1.0 < smallest.epsilon.lower <= 3.0  # the exact epsilon of the smallest pair
    assert smallest.epsilon.failure_prob == result.failure_prob
    assert result.total_failure_prob == pytest.approx(2 * result.failure_prob)
    assert smallest.event(np.array([-100.0, 100.0])).sum() == 1
    assert "smallest pair" in result.summary()
    # The audit itself does not change.
    alone = audited(settings=Settings(shrink=False))
    assert alone.smallest is None
    assert not alone.causes
    assert alone.total_failure_prob == result.failure_prob
    assert replace(alone, seconds=0.0, diagnostics=result.diagnostics) == replace(
        result, seconds=0.0, smallest=None, causes=(), again=None
    )


@pytest.mark.slow
def test_a_claim_that_is_not_refuted_has_no_smallest_pair() -> None:
    result = audited(claim=PureDP(4.0))
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.smallest is None


class Counting:
    """Mechanism that counts its draws."""

    def __init__(self) -> None:
        self.draws = 0

    def __call__(self, data: Array, size: int, *, rng: Generator) -> Array:
        self.draws += size
        return mean_of_items(data, size, rng=rng)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fixed", "sequential"])
def test_reduction_and_causes_make_at_most_the_draws_of_the_audit_each(method: str) -> None:
    first, both = Counting(), Counting()
    result = audited(first, method=method, settings=Settings(shrink=False))
    whole = audited(both, method=method)
    reduced = whole.smallest
    assert (reduced is None) == (method == "sequential")  # such an audit makes very few draws
    tried = 1 if reduced is None else reduced.tried
    trial_calls = 8 * PROBE_SIZE * (tried + 2)
    drawn = 2 * (sum(result.draws.values()) + sum(c.draws for c in whole.causes[:1]))
    trial_calls *= 2  # the causes make about as many trials
    assert both.draws - first.draws <= drawn + trial_calls
    assert all(cause.draws <= sum(result.draws.values()) for cause in whole.causes)
    if reduced is not None:
        assert sum(reduced.draws.values()) <= sum(result.draws.values())


@pytest.mark.slow
def test_pairs_on_which_the_claim_holds_are_not_accepted() -> None:
    """Check a mechanism whose noise is too small only for five users or more."""

    def broken_if_large(data: Array, size: int, *, rng: Generator) -> Array:
        scale = 3.0 if len(data) < 5 else 0.5
        return data.sum() + rng.laplace(scale=scale, size=size)

    smallest = audited(broken_if_large, neighbors.far_user(n_users=12, high=3.0)).smallest
    assert smallest is not None
    assert len(smallest.pair.left) == 5


@pytest.mark.slow
def test_a_mechanism_that_fails_on_small_data_keeps_data_on_which_it_runs() -> None:
    def needs_three(data: Array, size: int, *, rng: Generator) -> Array:
        if len(data) < 3:
            raise ValueError("too few users")
        return mean_of_items(data, size, rng=rng)

    smallest = audited(needs_three).smallest
    assert smallest is not None
    assert smallest.pair.left.shape == (3, 1)
    late = audited(Outcomes(needs_three, errors="outcome")).smallest
    assert late is not None


@pytest.mark.slow
def test_an_audit_that_may_start_again_pays_for_both_attempts() -> None:
    """Check that calls that may fail late cost no more, and no less, than the whole budget."""
    whole = audited(mean_of_items)
    again = audited(Outcomes(mean_of_items, errors="outcome"))
    assert again.smallest is not None
    assert again.total_failure_prob == pytest.approx(whole.total_failure_prob)
    assert again.epsilon.failure_prob == pytest.approx(whole.epsilon.failure_prob)
    assert again.failure_prob == whole.failure_prob
    halved = audited(mean_of_items, failure_prob=whole.failure_prob / 2)
    assert again.log_e_values == pytest.approx(np.array(halved.log_e_values) - np.log(2))
    assert again.p_value == pytest.approx(2 * halved.p_value)


def test_an_event_is_as_simple_as_possible() -> None:
    """Check that one threshold of one coordinate comes before better events of all coordinates."""

    def many(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.laplace(scale=1.0, size=(size, 5))

    pair = NeighborPair([[0.0], [0.0]], [[0.0], [2.0]])
    given = {"draws": 20_000, "seed": 1, "failure_prob": 1e-6, "id": None}
    task = replace(checked_task(many, CLAIM, pair, **given), is_brief=True)
    best, simple = (
        certificate_of(replace(task, wants_simple=simple), many, "mechanism")
        for simple in (False, True)
    )
    assert simple.witness.event.startswith("coordinate ")
    assert not best.witness.event.startswith("coordinate ")
    assert best.epsilon.lower > simple.epsilon.lower > 1.0


class Table:
    """Mechanism with a pmf, which gives the sum with probability 0.9."""

    def pmf(self, data: Array) -> Array:
        found = np.full(41, 0.1 / 40)
        found[int(data.sum())] = 0.9
        return found


FRAME_PAIR = "frame"


def kinds() -> dict[str, tuple[Any, Any, dict[str, Any]]]:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [1, 1, 2, 3, 3, 3], "paid": [3.0, 4.0, 5.0, 2.0, 0.5, 9.0]})

    def paid(frame: Any, size: int, *, rng: Generator) -> Array:
        return frame["paid"].sum() + rng.laplace(scale=1.0, size=size)

    def length(users: Any, size: int, *, rng: Generator) -> Array:
        return sum(len(user) for user in users) + rng.laplace(scale=1.0, size=size)

    def tables(data: Any, size: int, *, rng: Generator) -> Array:
        return data["x"].sum() + rng.laplace(scale=data["scale"], size=size)

    def queries(values: Array, size: int, *, rng: Generator) -> Array:
        return values + rng.laplace(scale=1.0, size=(size, len(values)))

    x, y = np.zeros((9, 3)), np.zeros((9, 3))
    y[4] = 2.0
    lists = [[1.0], [2.0, 2.0], [3.0]], [[1.0], [2.0] * 6, [3.0]]
    relation = within_sensitivity(4.0, norm="l1")
    leaves = Relation.ADD_REMOVE_USER
    return {
        "frame": (paid, NeighborPair.from_frame(frame, user="id", drop=3), {}),
        "lists": (length, NeighborPair(*lists), {}),
        "tables": (tables, NeighborPair({"x": x, "scale": 1.0}, {"x": y, "scale": 1.0}), {}),
        "queries": (
            queries, NeighborPair(np.zeros(4), np.ones(4), relation=relation),
            {"claim": PureDP(1.0, relation=relation), "draws": 40_000},
        ),
        "exact": (Table(), NeighborPair(x.astype(int), y.astype(int)), {}),
        "additive": (
            AdditiveNoise(lambda data: data.sum(), noise="laplace", scale=1.0),
            NeighborPair(x, y), {},
        ),
        "random centres": (
            AdditiveNoise(
                lambda data, size, *, rng: data.sum() + rng.integers(0, 2, size),
                noise="laplace", scale=1.0,
            ),
            NeighborPair(x, y), {},
        ),
        "removal": (mean_of_items, NeighborPair(y, np.delete(y, 4, 0), relation=leaves), {}),
        "curve": (mean_of_items, FAR, {"claim": GaussianDP(0.5)}),
        "approximate": (mean_of_items, FAR, {"claim": ApproxDP(1.0, 1e-5)}),
        "float attack": (mean_of_items, FAR, {"float_attack": True}),
    }  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(
    "kind",
    ["frame", "lists", "tables", "queries", "exact", "additive", "random centres", "removal",
     "curve", "approximate", "float attack"],
)  # fmt: skip
def test_all_kinds_of_data_mechanisms_and_claims_are_reduced(kind: str) -> None:
    mechanism, pair, arguments = kinds()[kind]
    result = audited(mechanism, pair, **arguments)
    assert result.verdict is Verdict.REFUTED
    smallest = result.smallest
    assert smallest is not None
    given = next(iter(pair)) if not isinstance(pair, NeighborPair) else pair
    form = given.form
    assert len(form.cells(smallest.pair.left)) < len(form.cells(given.left))
    assert smallest.pair.relation == given.relation
    assert smallest.tried <= MOST_TRIALS
    needs = smallest.epsilon.lower > result.claimed_epsilon
    assert needs or smallest.delta.lower > result.claimed_delta


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [mean_of_items, Outcomes(mean_of_items)])
def test_workers_do_not_change_the_smallest_pair(mechanism: Any) -> None:
    one = audited(mechanism).smallest
    two = audited(mechanism, settings=Settings(workers=2)).smallest
    assert one is not None
    assert one == two
    assert one.pair.describe() == two.pair.describe()


@pytest.mark.slow
def test_the_smallest_pair_is_stored_with_its_datasets(tmp_path: Any) -> None:
    result = audited()
    path = save_record(tmp_path, result)
    again = load_result(path)
    assert again.smallest == result.smallest
    np.testing.assert_array_equal(again.smallest.pair.left, result.smallest.pair.left)
    np.testing.assert_array_equal(again.pair.left, result.pair.left)
    path.with_suffix(".npz").unlink()
    lost = load_result(path)
    assert lost.smallest == result.smallest
    assert lost.smallest.pair is None
    assert result.smallest.pair_words in lost.summary()


def test_an_instrument_of_the_user_is_not_asked_for_smaller_pairs() -> None:
    from dpaudit.engine.counts import ByCounts

    result = audited(method=ByCounts())
    assert result.verdict is Verdict.REFUTED
    assert result.smallest is None


@pytest.mark.slow
def test_a_mechanism_that_hangs_on_small_data_ends_the_reduction() -> None:
    def hangs(data: Array, size: int, *, rng: Generator) -> Array:
        if len(data) < 12:
            while True:
                pass
        return mean_of_items(data, size, rng=rng)

    result = audited(hangs, settings=Settings(time_limit=3.0))
    assert result.verdict is Verdict.REFUTED
    assert result.smallest is None


@pytest.mark.slow
def test_the_certificate_of_the_smallest_pair_is_wrong_at_most_as_often_as_it_says() -> None:
    """Check the bound against the exact epsilon of the smallest pair, at failure_prob = 0.2.

    The false-alarm rate of this test is 1e-6.
    """

    def noisy_sum(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.laplace(scale=1.0, size=size)

    left = np.zeros((3, 2))
    right = left.copy()
    right[2] = 0.6
    wrong = found = 0
    for seed in range(120):
        result = audit(
            noisy_sum, PureDP(0.5), NeighborPair(left, right), draws=2000, seed=seed,
            failure_prob=0.2,
        )  # fmt: skip
        if result.smallest is None:
            continue
        found += 1
        pair = result.smallest.pair
        exact = abs(pair.left.sum() - pair.right.sum())
        wrong += result.smallest.epsilon.lower > exact
    assert found >= 60
    assert wrong <= stats.binom.isf(1e-6, found, 0.2)
