"""Training runs along one gradient, where noise and centres are treated separately."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import DPSGD, Accounted, ApproxDP, ArgumentError, NeighborPair, Relation, audit
from dpaudit.claims import Claim
from mutants.training import NoiseOverDrawnBatch
from tests.statistical import assert_frequencies

ADD = Relation.ADD_REMOVE_USER
OTHERS = np.array([[0.3, 0.1, 0.0]] * 5)
PAIR = NeighborPair(np.concatenate([OTHERS, [[0.0, 0.0, 9.0]]]), OTHERS, relation=ADD)
KINDS: dict[str, dict[str, Any]] = {
    "poisson": {"q": 0.25},
    "fixed": {"batch_size": 2},
    "shuffle": {"batch_size": 2},
    "balls_in_bins": {"q": 0.25},
}


def itself(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    return data[None]


def towards(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    return params[:, None] - data


def run_of(gradient: Any = itself, kind: type[DPSGD] = DPSGD, **options: Any) -> DPSGD:
    options = {"start": np.zeros(3), "clip_norm": 1.0, "sigma": 0.92, "steps": 12, **options}
    if "sampling" not in options:
        options = {"q": 0.25, **options}
    return kind(gradient, **options)


def along(run: DPSGD, pair: NeighborPair = PAIR) -> Any:
    return run.along(pair, rng=np.random.default_rng(0))


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
def test_centres_count_how_often_the_user_takes_part(kind: str) -> None:
    run = run_of(sampling=kind, steps=7, **KINDS[kind])
    last = run_of(sampling=kind, steps=7, release="last", **KINDS[kind])
    drawn = along(run).centers(PAIR.left, 20_000, rng=np.random.default_rng(1))
    totals = along(last).centers(PAIR.left, 20_000, rng=np.random.default_rng(2))
    assert drawn.shape == (20_000, 7)
    assert totals.shape == (20_000, 1)
    expected = run.sampling.participation(6).counts(7)
    for counts in (drawn.sum(axis=1), totals[:, 0]):
        whole = np.bincount(np.rint(counts).astype(int), minlength=8)
        assert_frequencies(whole, expected)
        with pytest.raises(AssertionError, match="rejected"):
            assert_frequencies(whole, np.roll(expected, 1))
    assert not along(run).centers(PAIR.right, 50, rng=np.random.default_rng(1)).any()


def test_noise_is_that_of_a_step_or_of_all() -> None:
    assert along(run_of(clip_norm=2.0)).noise.scale == pytest.approx(1.84)
    last = along(run_of(clip_norm=2.0, release="last"))
    assert last.noise.scale == pytest.approx(1.84 * 12**0.5)


@pytest.mark.parametrize("release", ["white_box", "last"])
@given(values=st.lists(st.floats(-3, 3), min_size=2, max_size=6), seed=st.integers(0, 99))
def test_centres_lie_in_their_ball(release: str, values: list[float], seed: int) -> None:
    """Check that centres lie in their ball.

    The other users may move in any way along the direction.
    """
    users = np.array([[0.0, 0.0, value] for value in values])
    pair = NeighborPair(np.concatenate([users, [[0.0, 0.0, 4.0]]]), users, relation=ADD)
    mechanism = along(run_of(steps=3, q=0.5, release=release), pair)
    for data in (pair.left, pair.right):
        centers = mechanism.centers(data, 40, rng=np.random.default_rng(seed))
        mechanism.checked(centers, mechanism.ball(data))


def test_the_ball_is_a_point_where_nobody_else_moves_along() -> None:
    center, radius = along(run_of()).ball(PAIR.right)
    assert not center.any()
    assert radius < 1e-8
    center, radius = along(run_of()).ball(PAIR.left)
    np.testing.assert_allclose(center, 0.5)
    assert radius == pytest.approx(12**0.5 / 2, rel=1e-6)


@pytest.mark.slow
def test_it_reaches_what_no_count_does() -> None:
    """Check that treating noise and centres separately certifies more than counting.

    The accountant states epsilon 7.44 at delta = 1e-5, and the audit has 10,000 draws.
    """
    from audits.training.tasks import poisson

    true = Accounted(poisson(0.92)).epsilon(1e-5)
    claim: Claim = ApproxDP(0.1, 1e-5, ADD)
    options: dict[str, Any] = {"draws": 10_000, "seed": 0, "mutants": None}
    run = run_of(release="last")
    apart = audit(along(run), claim, PAIR, **options)
    counted = audit(run, claim, PAIR, score=run.likelihood_ratio(PAIR), **options)
    assert 6.0 < apart.certified_epsilon < true
    assert counted.certified_epsilon < 3.0
    kept = audit(along(run), ApproxDP(true, 1e-5, ADD), PAIR, **{**options, "mutants": ()})
    assert kept.verdict.words == "NOT REFUTED"


def test_gradients_that_move_are_refused() -> None:
    with pytest.raises(ArgumentError, match="^gradient must have the same component along"):
        along(run_of(towards, start=np.full(3, 0.1)))


def test_runs_of_another_kind_are_refused() -> None:
    black_box = run_of(release="loss", loss=lambda params: params.sum(axis=1))
    for run in (black_box, run_of(kind=NoiseOverDrawnBatch)):
        with pytest.raises(
            ArgumentError,
            match="^along requires a DPSGD that releases all sums or the last iterate",
        ):
            along(run)


def test_users_of_one_gradient_are_refused() -> None:
    """Check that two users with the same clipped gradient are refused."""
    left, right = (np.concatenate([OTHERS, [[0.0, 0.0, x]]]) for x in (4.0, 9.0))
    with pytest.raises(
        ArgumentError, match="^the two sides of pair must differ in a user's gradient"
    ):
        along(run_of(), NeighborPair(left, right))
