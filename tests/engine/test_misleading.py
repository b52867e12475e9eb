"""Verdicts that used to mislead although every number was sound."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from dpaudit import (
    MechanismError,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    Verdict,
    audit,
    mutants,
    neighbors,
    one_draw,
)

Array = NDArray[Any]
REPLACE, REMOVE = Relation.REPLACE_USER, Relation.ADD_REMOVE_USER
FRAME = pd.DataFrame({"user": np.arange(40), "sick": np.arange(40) % 2})
PAIR = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])


# --- fixed randomness ---


def answers_by(seed: int | None) -> Any:
    """Return randomised response that mostly lies, possibly with a fixed seed inside."""

    @one_draw(randomness="legacy")
    def release(frame: Any) -> Any:
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002
        truth = np.asarray(frame["sick"])
        lies = np.random.random(len(truth)) < 0.93  # noqa: NPY002
        other = np.random.random(len(truth)) < 0.5  # noqa: NPY002
        return pd.DataFrame({"sick": np.where(lies, other, truth)})

    return release


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "expected"), [(0, True), (None, False)])
def test_a_fixed_seed_is_found_wherever_it_hides_the_user(seed: int | None, expected: bool) -> None:
    """Check that randomised response with a fixed seed is refuted.

    At most places in the order, the fixed noise lies about the user at that place.
    """
    where, claim = (
        neighbors.portfolio(FRAME, schema=neighbors.Schema(user="user")),
        PureDP(1.0, REPLACE),
    )
    found = audit(answers_by(seed), claim, where, draws=1500, seed=1, mutants=None)
    assert (found.verdict is Verdict.REFUTED) is expected


@pytest.mark.sampled
@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(
    ("answer", "other"),
    [(7.0, 8.0), ("yes", "no"), ([1.0, 2.0], [1.0, 3.0]), ({"a": 1.0}, {"a": 2.0}), (None, 1.0)],
)
def test_equal_outputs_are_never_not_refuted(answer: Any, other: Any, sequential: bool) -> None:
    def release(data: Any, *, rng: Generator) -> Any:
        return answer

    def broken(data: Any, *, rng: Generator) -> Any:
        return answer if np.sum(data) == 0 else other

    found = audit(
        one_draw(release),
        PureDP(1.0),
        PAIR,
        draws=2000,
        seed=1,
        mutants=[one_draw(broken)],
        method="sequential" if sequential else "fixed",
    )
    assert [mutant.killed for mutant in found.mutants] == [True]
    assert found.verdict is Verdict.NO_POWER
    cause = "every output on both datasets is NaN"
    if answer is not None:
        cause = "all outputs on both datasets were equal"
    assert cause in found.reason


# --- relations ---


def counts(data: Array, size: int, *, rng: Generator) -> Array:
    """Count users with half of the noise that add/remove needs.

    Under replacement, the count reveals nothing.
    """
    return len(data) + rng.laplace(scale=0.5, size=size)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"m": 1}, {"low": 0.0, "high": 1.0}, {"n_users": 6}])
def test_the_claim_decides_which_relation_a_portfolio_searches(options: dict[str, Any]) -> None:
    held = neighbors.portfolio(**options)
    for relation, expected in ((REMOVE, True), (None, True), (REPLACE, False)):
        found = audit(counts, PureDP(1.0, relation), held, draws=3000, seed=1, mutants=None)
        assert (found.verdict is Verdict.REFUTED) is expected
    named = neighbors.portfolio(**options).under(REPLACE)
    with pytest.raises(ValueError, match="the claim.s relation, add_remove_user"):
        audit(counts, PureDP(1.0, REMOVE), named, draws=5000, seed=1)


# --- few users ---


def means(data: Array) -> tuple[float, int]:
    users = np.clip(data.mean(axis=1), 0, 1) if len(data) else np.zeros(0)
    return float(users.sum()) / max(len(users), 1), max(len(users), 1)


def scale_of_the_true_count(data: Array, size: int, *, rng: Generator) -> Array:
    mean, count = means(data)
    return mean + rng.laplace(scale=1 / count, size=size)


def noisy_mean_true_scale(data: Array, size: int, *, rng: Generator) -> Array:
    mean, count = means(data)
    noisy = np.maximum(count + rng.laplace(scale=2.0, size=size), 1)
    return mean * count / noisy + rng.laplace(scale=2 / count, size=size)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "relation"), [(scale_of_the_true_count, REMOVE), (noisy_mean_true_scale, None)]
)
def test_a_scale_from_the_true_number_of_users_is_found(
    mechanism: Any, relation: Relation | None
) -> None:
    claim = PureDP(1.0, relation)
    found = audit(mechanism, claim, seed=2, draws=20_000, mutants=None)
    assert found.verdict is Verdict.REFUTED
    assert "few_users" in found.pair_words


@pytest.mark.slow
def test_a_mechanism_need_not_answer_on_very_few_users() -> None:
    def picky(data: Array, size: int, *, rng: Generator) -> Array:
        if len(data) == 0:
            return np.full(size, np.nan)
        if len(data) < 3:
            raise ValueError("too few")
        return np.clip(data, 0, 1).mean(axis=1).sum() + rng.laplace(scale=1.0, size=size)

    found = audit(picky, PureDP(1.0), seed=1, draws=10_000)
    assert found.verdict is Verdict.NOT_REFUTED
    assert "very few users (the mechanism gives no answer on few_users(" in str(found.not_covered)

    class Exact:
        def pmf(self, data: Array) -> Array:
            if len(data) < 2:
                raise ValueError("too few")
            share = 0.25 + 0.5 * (np.clip(data, 0, 1).mean() > 0.5)
            return np.array([share, 1 - share])

    assert audit(Exact(), PureDP(2.0), seed=1).verdict is not Verdict.REFUTED


# --- items ---


def record_mean(data: Array, size: int, *, rng: Generator) -> Array:
    items = np.clip(data, 0, 1).ravel()
    count = max(items.size, 1)
    return items.sum() / count + rng.laplace(scale=1 / count, size=size)


@pytest.mark.slow
def test_a_claim_that_holds_for_one_item_is_told_apart() -> None:
    claim = PureDP(1.0, REPLACE)
    found = audit(record_mean, claim, seed=1, draws=5000)
    assert found.verdict is Verdict.REFUTED
    (note,) = (note for note in found.notes if "refuted for users with 8 items" in note)
    assert "For users with one item each, a search with 1,337 draws found no violation." in note

    def nearly_told(data: Array, size: int, *, rng: Generator) -> Array:
        return np.clip(data, 0, 1).sum() + rng.laplace(scale=0.001, size=size)

    # A quarter of the draws could not refute this claim, so the second search gets all draws.
    large = audit(nearly_told, PureDP(5.0), seed=1, draws=5000, mutants=None)
    assert large.verdict is Verdict.REFUTED
    assert not any("one item each" in note for note in large.notes)
    broken = audit(counts, PureDP(1.0, REMOVE), seed=1, draws=5000)
    named = audit(record_mean, claim, neighbors.portfolio(m=4), seed=1, draws=5000)
    for result in (broken, named):
        assert result.verdict is Verdict.REFUTED
        assert not any("one item each" in note for note in result.notes)

    @one_draw
    def rows(frame: Any, *, rng: Generator) -> float:
        return float(len(frame) + rng.laplace(scale=1.0))

    held = neighbors.portfolio(schema={"age": (0, 90)}).under(REMOVE)
    frames = audit(rows, PureDP(1.0), held, seed=1, draws=3000)
    assert any("refuted for users with 4 items" in note for note in frames.notes)


# --- outputs of a search ---


@pytest.mark.slow
def test_lists_of_texts_and_exceptions_are_searched() -> None:
    frame = pd.DataFrame({"user": [1, 1, 2, 3, 4], "city": list("abcab")})

    @one_draw
    def cities(held: Any, *, rng: Generator) -> list[str]:
        if len(held) < 3:
            raise ValueError("few")
        return [city for city in held["city"] if rng.random() < 0.5]

    where = neighbors.portfolio(frame, schema=neighbors.Schema(user="user"))
    found = audit(
        Outcomes(cities, errors="outcome"), PureDP(1.0), where, draws=3000, seed=1, mutants=None
    )
    assert found.verdict is Verdict.REFUTED


@pytest.mark.slow
def test_a_partial_may_stand_around_one_draw() -> None:
    def noisy(data: Any, scale: float = 1.0, *, rng: Generator) -> float:
        return float(np.sum(data) + rng.laplace(scale=scale))

    outside = audit(partial(one_draw(noisy), scale=2.0), PureDP(1.0), PAIR, draws=500, seed=1)
    inside = audit(one_draw(partial(noisy, scale=2.0)), PureDP(1.0), PAIR, draws=500, seed=1)
    assert outside.epsilon == inside.epsilon
    keyed = one_draw(lambda data, scale, *, rng: {"a": float(rng.laplace(scale=scale))})
    found = audit(
        Outcomes(partial(keyed, scale=2.0), keys=["a"]), PureDP(1.0), PAIR, draws=500, seed=1
    )
    assert found.verdict is not Verdict.REFUTED


SHOPS = pd.DataFrame(
    {
        "user": np.arange(200) % 30,
        "paid": np.linspace(0, 10, 200),
        "shop": ["a", "b"] * 99 + ["a", "d"],
    }
)


@one_draw
def by_shop(frame: Any, *, rng: Generator) -> dict[str, float]:
    shops, at = np.unique(frame["shop"].to_numpy(dtype=str), return_inverse=True)
    totals = np.bincount(at, np.clip(frame["paid"].to_numpy(), 0, 10), minlength=len(shops))
    noisy = totals + rng.laplace(scale=10, size=len(shops))
    return dict(zip(shops.tolist(), noisy.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpaudit.errors.SlowAuditWarning")
def test_keys_are_compared_before_the_search_spends_its_draws() -> None:
    calls = 0

    @one_draw
    def counted(frame: Any, *, rng: Generator) -> dict[str, float]:
        nonlocal calls
        calls += 1
        return by_shop.function(frame, rng=rng)

    where = neighbors.portfolio(SHOPS, schema=neighbors.Schema(user="user"))
    with pytest.raises(MechanismError, match=r"keys=\['a', 'b', 'd'\]\); found on alone with shop"):
        audit(counted, PureDP(1.0), where, seed=1)
    assert calls < 2000  # the checks of the contract use most of them
    with pytest.raises(MechanismError, match="keys must be keys that the draws have"):
        audit(Outcomes(by_shop, keys=["x", "y"]), PureDP(1.0), where, draws=3000, seed=1)


@pytest.mark.slow
def test_every_kind_of_leak_is_named() -> None:
    where = neighbors.portfolio(SHOPS, schema=neighbors.Schema(user="user"))
    found = audit(Outcomes(by_shop, keys=["a", "b", "d"]), PureDP(1.0), where, draws=4000, seed=1)
    assert "alone with shop = d" in found.pair_words  # the presence of the key is the leak
    assert any("Other pairs look like violations" in n and "high" in n for n in found.notes)


@pytest.mark.slow
def test_noise_that_numpy_does_not_draw_is_told_how_to_show_power() -> None:
    def entropy(data: Any, scale: float, *, rng: Generator) -> float:
        bits = rng.bit_generator.random_raw() / 2**64  # a compiled extension might draw this way
        return float(np.sum(data) - scale * np.sign(bits - 0.5) * np.log1p(-2 * abs(bits - 0.5)))

    mechanism = one_draw(partial(entropy, scale=1.0))
    found = audit(mechanism, PureDP(1.0), PAIR, draws=2000, seed=1)
    assert found.verdict is Verdict.NO_POWER
    assert "mutants=[mutants.scaled(scale=0.5)]" in found.advice
    change = mutants.scaled(scale=0.3)
    found = audit(mechanism, PureDP(1.0), PAIR, draws=4000, seed=1, mutants=[change])
    assert found.verdict is Verdict.NOT_REFUTED
