"""The likelihood ratio of training runs, compared with sums over all ways to take part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpaudit import DPSGD, ArgumentError, MechanismError, NeighborPair, Relation

SIGMA, CLIP, STEPS = 0.8, 1.5, 5
KINDS: dict[str, dict[str, Any]] = {
    "poisson": {"q": 0.3},
    "fixed": {"batch_size": 2},
    "shuffle": {"batch_size": 2},
    "balls_in_bins": {"q": 1 / 3},
}
ADD, REPLACE = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER
OTHERS = np.array([[0.3, 0.1, 0.0]] * 5)
CANARY, OPPOSITE = np.array([[0.0, 0.0, 9.0]]), np.array([[0.0, 0.0, -0.7]])


def itself(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    return data[None]


def pair_of(relation: Relation) -> NeighborPair:
    right = OTHERS if relation == ADD else np.concatenate([OTHERS, OPPOSITE])
    return NeighborPair(np.concatenate([OTHERS, CANARY]), right, relation=relation)


def ways(kind: str, n_users: int) -> list[tuple[tuple[int, ...], float]]:
    """Yield every way in which one user takes part in the steps, with its probability."""
    if kind in ("poisson", "fixed"):
        q = 0.3 if kind == "poisson" else 2 / n_users
        return [
            (way, float(np.prod([q if taken else 1 - q for taken in way])))
            for way in itertools.product((0, 1), repeat=STEPS)
        ]
    # Each epoch has three steps. With five users in batches of two, the third batch has one user.
    sizes = [2 / n_users, 2 / n_users, (n_users - 4) / n_users]
    slots = sizes if kind == "shuffle" else [1 / 3] * 3
    found = []
    for first, second in itertools.product(range(3), repeat=2):
        way = [int(step == first) for step in range(3)]
        way += [int(step == second) for step in range(2)]
        found.append((tuple(way), slots[first] * slots[second]))
    return found


def log_density(seen: np.ndarray, kind: str, n_users: int, shift: float, last: bool) -> float:
    """Return the log-density of the canary's coordinate in all sums, or in their total."""
    terms = []
    for way, probability in ways(kind, n_users):
        centers = shift * np.array(way, dtype=float)
        scale = SIGMA * CLIP
        if last:
            logs = stats.norm.logpdf(seen.sum(), centers.sum(), scale * STEPS**0.5)
        else:
            logs = stats.norm.logpdf(seen, centers, scale).sum()
        terms.append(np.log(probability) + logs if probability else -np.inf)
    return float(special.logsumexp(terms))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("release", ["white_box", "last"])
@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=str)
def test_it_is_the_ratio_of_densities(kind: str, release: str, relation: Relation) -> None:
    pair = pair_of(relation)
    run = DPSGD(
        itself,
        start=[0.2, 0.0, -0.4],
        clip_norm=CLIP,
        sigma=SIGMA,
        steps=STEPS,
        learning_rate=0.05,
        sampling=kind,
        release=release,
        **KINDS[kind],
    )
    score = run.likelihood_ratio(pair)
    sums = np.random.default_rng(0).normal(size=(20, STEPS, 3), scale=2.0)
    outputs = run.start - 0.05 * sums.sum(axis=1) if release == "last" else sums
    expected = []
    for seen in sums[..., 2]:
        left = log_density(seen, kind, 6, CLIP, release == "last")
        other = 0.0 if relation == ADD else -0.7
        expected.append(left - log_density(seen, kind, len(pair.right), other, release == "last"))
    np.testing.assert_allclose(score(outputs), expected, rtol=1e-9, atol=1e-9)


def test_it_changes_sign_with_the_sides() -> None:
    run = DPSGD(itself, start=np.zeros(3), clip_norm=CLIP, sigma=SIGMA, steps=STEPS, q=0.3)
    sums = np.random.default_rng(0).normal(size=(20, STEPS, 3))
    pair = pair_of(ADD)
    there, back = (run.likelihood_ratio(one)(sums) for one in (pair, pair.swapped()))
    np.testing.assert_allclose(there, -back)


def test_a_certain_user_is_always_there() -> None:
    run = DPSGD(itself, start=np.zeros(3), clip_norm=CLIP, sigma=SIGMA, steps=1, q=1.0)
    sums = np.random.default_rng(0).normal(size=(20, 1, 3))
    expected = (sums[:, 0, 2] * CLIP - CLIP**2 / 2) / (SIGMA * CLIP) ** 2
    np.testing.assert_allclose(run.likelihood_ratio(pair_of(ADD))(sums), expected)


def test_of_a_loss_it_is_not_known() -> None:
    run = DPSGD(
        itself,
        start=np.zeros(3),
        clip_norm=CLIP,
        sigma=SIGMA,
        steps=2,
        q=0.5,
        release="loss",
        loss=lambda params: params.sum(axis=1),
    )
    with pytest.raises(ArgumentError, match='^release must be "white_box" or "last"'):
        run.likelihood_ratio(pair_of(ADD))


def test_query_values_have_no_user() -> None:
    run = DPSGD(itself, start=np.zeros(3), clip_norm=CLIP, sigma=SIGMA, steps=2, q=0.5)
    values = NeighborPair([0.0, 1.0, 0.0], [0.0, 0.0, 0.0], relation=Relation.WITHIN_SENSITIVITY)
    with pytest.raises(ArgumentError, match="^pair must hold datasets that differ in one user"):
        run.likelihood_ratio(values)


def saturating(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Return gradients that depend on the parameters and are not orthogonal, [size, n, 3]."""
    return np.tanh(params[:, None] - data[None]) * (1 + data[None] ** 2)


CROWD = np.random.default_rng(5).normal(size=(4, 3))
NONLINEAR: dict[str, Any] = {
    "start": [0.1, 0.2, -0.3],
    "clip_norm": CLIP,
    "sigma": SIGMA,
    "steps": 3,
    "learning_rate": 0.7,
}


@pytest.mark.parametrize("relation", [ADD, REPLACE], ids=str)
def test_of_full_batches_it_is_exact_for_any_gradient(relation: Relation) -> None:
    """Compare with the densities of both sides, at the iterates that follow from the sums."""
    rng = np.random.default_rng(1)
    right = CROWD[:3] if relation == ADD else np.concatenate([CROWD[:3], -CROWD[3:]])
    pair = NeighborPair(CROWD, right, relation=relation)
    run = DPSGD(saturating, q=1.0, **NONLINEAR)
    sums = run(pair.left, 9, rng=rng)
    expected = np.zeros(9)
    for side, data in ((1, pair.left), (-1, pair.right)):
        params = np.tile(run.start, (9, 1))
        for step in range(3):
            mean = run.clipped(saturating(params, data)).sum(axis=1)
            away = ((sums[:, step] - mean) ** 2).sum(axis=1)
            expected -= side * away / (2 * run.scale**2)
            params = params - 0.7 * sums[:, step]
    np.testing.assert_allclose(run.likelihood_ratio(pair)(sums), expected, rtol=1e-9)
    np.testing.assert_array_equal(run.likelihood_ratio(pair)(sums[:0]), np.zeros(0))


def test_others_who_take_part_by_chance_count_by_mean_and_variance() -> None:
    """Compare with the moments over all batches of the other users."""
    run = DPSGD(saturating, q=0.3, **{**NONLINEAR, "steps": 1})
    gradients = run.clipped(saturating(run.start[None], CROWD))[0]
    others, own = gradients[:3], gradients[3]
    batches = np.array(list(itertools.product((0, 1), repeat=3)))
    weights = np.prod(np.where(batches, 0.3, 0.7), axis=1)
    mean = weights @ batches @ others
    away = batches @ others - mean
    covariance = run.scale**2 * np.eye(3) + (away.T * weights) @ away
    sums = np.random.default_rng(2).normal(size=(7, 1, 3))
    each = (sums[:, 0] - mean - own / 2) @ np.linalg.solve(covariance, own)
    score = run.likelihood_ratio(NeighborPair(CROWD, CROWD[:3], relation=ADD))
    np.testing.assert_allclose(score(sums), np.logaddexp(np.log(0.7), np.log(0.3) + each))


def test_others_who_take_part_once_in_each_epoch_are_known_after_it() -> None:
    """Compare with the density of a last iterate, to which each other user added once an epoch."""
    right = np.concatenate([CROWD[:3], -CROWD[3:]])
    pair = NeighborPair(CROWD, right)
    options = {**NONLINEAR, "steps": 4, "sampling": "balls_in_bins", "q": 0.5, "release": "last"}
    run = DPSGD(lambda params, data: data[None], **options)
    last = run(CROWD, 6, rng=np.random.default_rng(4))
    expected = np.zeros(6)
    for side, data in ((1, CROWD), (-1, right)):
        mean = 2 * run.clipped(data[None])[0].sum(axis=0)
        away = (((run.start - last) / 0.7 - mean) ** 2).sum(axis=1)
        expected -= side * away / (2 * 4 * run.scale**2)
    np.testing.assert_allclose(run.likelihood_ratio(pair)(last), expected)


def test_batches_of_a_shuffled_epoch_have_their_own_rates() -> None:
    sampling = DPSGD(itself, sampling="shuffle", batch_size=2, **NONLINEAR).sampling
    assert sampling.participation(5).rates(5) == pytest.approx([0.4, 0.4, 0.2, 0.4, 0.4])


def test_large_outputs_are_scored_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    run = DPSGD(saturating, q=0.3, **NONLINEAR)
    pair = NeighborPair(CROWD, CROWD[:3], relation=ADD)
    sums = run(CROWD, 11, rng=np.random.default_rng(3))
    scores = [run.likelihood_ratio(pair), run.gradient_product(pair), run.loss_drop(pair, away)]
    whole = [score(sums) for score in scores]
    monkeypatch.setattr("dpaudit.mechanisms.training._PORTION", 25)
    for score, expected in zip(scores, whole, strict=True):
        np.testing.assert_array_equal(score(sums), expected)


def away(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    return np.asarray(((params[:, None] - data) ** 2).sum(axis=2))


def test_a_product_follows_the_gradients_along_the_run() -> None:
    run = DPSGD(saturating, q=0.3, **NONLINEAR)
    sums = run(CROWD, 5, rng=np.random.default_rng(3))
    expected, params = np.zeros((5, 4)), np.tile(run.start, (5, 1))
    for step in range(3):
        gradients = run.clipped(saturating(params, CROWD))
        expected += np.einsum("snd,sd->sn", gradients, sums[:, step])
        params = params - 0.7 * sums[:, step]
    np.testing.assert_allclose(run.gradient_product(CROWD)(sums), expected)
    absent = NeighborPair(CROWD[[0, 2, 3]], CROWD, relation=ADD)
    np.testing.assert_allclose(run.gradient_product(absent)(sums), expected[:, 1])


def test_a_product_of_last_iterates_uses_the_gradient_at_the_start() -> None:
    run = DPSGD(saturating, q=0.3, release="last", **NONLINEAR)
    last = run(CROWD, 5, rng=np.random.default_rng(3))
    gradients = run.clipped(saturating(run.start[None], CROWD))[0]
    expected = (run.start - last) / 0.7 @ gradients.T
    np.testing.assert_allclose(run.gradient_product(CROWD)(last), expected)


def squares(params: np.ndarray, data: Any) -> np.ndarray:
    return ((params[:, None] - data["X"]) ** 2).sum(axis=2)


def towards_features(params: np.ndarray, data: Any) -> np.ndarray:
    return params[:, None] - data["X"]


@pytest.mark.parametrize("release", ["white_box", "last"])
def test_a_drop_of_losses_is_positive_for_a_user_who_took_part(release: str) -> None:
    """Check the value, and that a user who takes part lowers their own loss. The data are dicts."""
    pair = NeighborPair({"X": CROWD}, {"X": CROWD[:3]}, relation=ADD)
    options = {**NONLINEAR, "learning_rate": 0.1, "sigma": 1e-9, "q": 1.0}
    run = DPSGD(towards_features, release=release, **options)
    outputs = [run(side, 2, rng=np.random.default_rng(0)) for side in (pair.left, pair.right)]
    last = outputs[0] if release == "last" else run.start - 0.1 * outputs[0].sum(axis=1)
    score = run.loss_drop(pair, squares)
    expected = squares(run.start[None], pair.left) - squares(last, pair.left)
    np.testing.assert_allclose(score(outputs[0]), expected[:, 3])
    assert score(outputs[0]).min() > score(outputs[1]).max()
    np.testing.assert_array_equal(
        run.loss_drop(pair.swapped(), squares)(outputs[0]), score(outputs[0])
    )
    assert run.loss_drop(pair.left, squares)(outputs[0]).shape == (2, 4)


def test_scores_refuse_what_they_cannot_score() -> None:
    run = DPSGD(saturating, q=0.3, **NONLINEAR)
    pair = NeighborPair(CROWD, CROWD[:3], relation=ADD)
    for score in (
        run.likelihood_ratio(pair),
        run.gradient_product(pair),
        run.loss_drop(pair, lambda params, data: np.zeros((len(params), len(data)))),
    ):
        with pytest.raises(MechanismError, match=r"must have shape \('size', 3, 3\), got \(5, 3\)"):
            score(np.zeros((5, 3)))
    with pytest.raises(ArgumentError, match="^losses must be given, because the gradient saturat"):
        run.loss_drop(pair)
    with pytest.raises(TypeError, match="^losses must be a function"):
        run.loss_drop(pair, 3)  # type: ignore[arg-type]
    with pytest.raises(MechanismError, match=r"must return losses \[size, n_users\], with size=1"):
        run.loss_drop(pair, lambda params, data: np.zeros(3))
    crowd = NeighborPair(CROWD, CROWD[:2], relation=Relation.ADD_REMOVE_USER.of_group(2))
    for whose in (crowd, NeighborPair(CROWD, CROWD)):
        with pytest.raises(ArgumentError, match="^pair must hold datasets that differ in one"):
            run.gradient_product(whose)
    with pytest.raises(ArgumentError, match="^pair must hold datasets that differ in one user"):
        run.likelihood_ratio(CROWD)
    for data in (3, {}, {"X": CROWD, "y": CROWD[:2]}):
        with pytest.raises(MechanismError, match=r"^data must be an array \[n_users, ...\], or a"):
            run.gradient_product(data)
    with pytest.raises(MechanismError, match="must return gradients"):
        DPSGD(itself, q=0.3, **NONLINEAR).gradient_product(CROWD[:, :2])
    loss = DPSGD(saturating, q=0.3, release="loss", loss=lambda params: params[:, 0], **NONLINEAR)
    for make in (loss.gradient_product, loss.loss_drop):
        with pytest.raises(ArgumentError, match='^release must be "white_box" or "last" for a'):
            make(pair)


def test_users_with_different_numbers_of_items_are_told_to_be_padded() -> None:
    ragged = NeighborPair([[0.0, 1.0], [2.0]], [[0.0, 1.0]], relation=ADD)
    run = DPSGD(itself, sigma=1.0, steps=1, q=1.0, start=[0.0], clip_norm=1.0)
    for score in (run.likelihood_ratio, run.gradient_product):
        with pytest.raises(ArgumentError, match="Pad all users to one number of items"):
            score(ragged)
