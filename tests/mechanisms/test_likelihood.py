"""The likelihood ratio of training runs, compared with sums over all ways to take part."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from dpaudit import DPSGD, ArgumentError, NeighborPair, Relation

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
