"""Likely causes of a refutation: facts, repairs, and what must not depend on them.

The guide on causes holds one mechanism for each kind of cause, and `tests/test_docs.py` runs it.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    AuditResult,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    audit,
    one_draw,
    replace_label,
    within_sensitivity,
)
from dpaudit.engine.causes import PRECISION, _farther
from dpaudit.mechanisms import unseeded
from dpaudit.neighbors import Schema, portfolio
from dpaudit.results import CAUSES
from dpaudit.store import load_result, save_record

Array = NDArray[Any]
Generator = np.random.Generator
CLAIM = PureDP(1.0, relation=Relation.REPLACE_USER)


def pair(before: float = 0.0, after: float = 1.0, items: int = 1) -> NeighborPair:
    left, right = np.zeros((2, items)), np.zeros((2, items))
    left[-1], right[-1] = before, after
    return NeighborPair(left, right)


def audited(mechanism: Any, on: Any = None, **arguments: Any) -> AuditResult:
    arguments = {"draws": 10_000, "seed": 1} | arguments
    return audit(mechanism, arguments.pop("claim", CLAIM), on or pair(), **arguments)


def quiet_sum(data: Array, size: int, *, rng: Generator) -> Array:
    scale = 0.25
    return data.sum() + rng.laplace(scale=scale, size=size)


# --- noise of one sign ---


def one_sided(data: Array, size: int, *, rng: Generator, sign: int = 1) -> Array:
    counts = np.array([(data == value).sum() for value in (0.0, 1.0)])
    noisy = counts + rng.exponential(scale=2.0, size=(size, 2))
    best = noisy.argmax(axis=1)
    return np.stack([best, sign * noisy[np.arange(size), best]], axis=1)


@pytest.mark.parametrize(("sign", "words"), [(1, "below 3"), (-1, "above -3")])
def test_noise_of_one_sign_is_no_amount_of_noise(sign: int, words: str) -> None:
    left, right = np.zeros((5, 1)), np.zeros((5, 1))
    right[-1] = 1.0
    found = audited(partial(one_sided, sign=sign), NeighborPair(left, right), draws=20_000)
    (cause,) = found.likely_causes
    assert cause.kind == "support"
    assert "test_causes.py has one sign" in cause.words
    assert cause.evidence.startswith(f"coordinate 1 is never {words} on the left and never ")
    assert cause.factor is None


def test_noise_of_two_signs_is_an_amount_of_noise() -> None:
    def difference(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + 0.25 * (rng.exponential(size=size) - rng.exponential(size=size))

    def index(data: Array, size: int, *, rng: Generator) -> Array:
        return one_sided(5 * data, size, rng=rng)[:, 0]

    def shifted(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.exponential(0.25, size=size) * rng.choice([-1.0, 1.0], size=size)

    def unbalanced(data: Array, size: int, *, rng: Generator) -> Array:
        noise = rng.gamma(50.0, 0.02, size=size)
        return data.sum() + noise - rng.exponential(0.02, size=size)  # rarely below 0

    for mechanism in (difference, index, shifted, unbalanced):
        assert "support" not in [cause.kind for cause in audited(mechanism).causes]


def test_noise_of_one_sign_may_satisfy_a_claim_with_delta() -> None:
    def released(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.exponential(3.0, size=size)

    claim = ApproxDP(1.0, 0.1, relation=Relation.REPLACE_USER)
    causes = audited(released, claim=claim, draws=20_000).causes
    assert "support" not in [cause.kind for cause in causes]
    assert any(cause.factor is not None for cause in causes)


def test_more_of_a_noise_that_moves_outputs_by_a_constant_is_no_repair() -> None:
    def gumbel(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() - 0.25 * np.log(rng.exponential(size=size))

    def race(data: Array, size: int, *, rng: Generator) -> Array:
        return (rng.exponential(size=(size, 2)) / [1.0, np.exp(3 * data.sum())]).argmin(axis=1)

    for mechanism in (gumbel, race):
        causes = audited(mechanism).causes
        assert causes
        assert not any("no amount of noise" in cause.words for cause in causes)

    def chosen(data: Array, size: int, *, rng: Generator) -> Array:  # all scores of a side are 0
        scores = np.array([0.0, 3 * data.sum()])
        return (rng.gumbel(size=(size, 2)) + scores).argmax(axis=1)

    (cause, *_) = audited(chosen).causes
    assert cause.kind == "noise"
    assert cause.factor is not None


# --- numbers of noise ---


def test_noise_is_counted_on_pairs_of_many_users_if_the_pair_of_the_audit_has_few() -> None:
    """Check that a key of each of two users is not taken for noise of each user."""

    def keys(frame: Any, size: int, *, rng: Generator) -> Array:
        cities = sorted(set(frame["city"]))
        return rng.laplace(size=(size, len(cities))).sum(axis=1) + 9.0 * len(cities)

    space = portfolio(schema=Schema({"city": ["Aix", "Brest", "Caen"]}, user="who"), m=1)
    found = audited(keys, space, claim=PureDP(1.0, relation=Relation.ADD_REMOVE_USER), draws=4_000)
    assert found.pair is not None
    assert found.pair.recipe in ("one other user", "no other users")
    (cause, *_) = found.causes
    assert cause.kind == "missing"
    assert "the data decide how many values get the noise of line " in cause.words
    assert "on the right of the pair '" in cause.evidence


# --- the distance of the outputs ---


@pytest.mark.parametrize(("noise", "norm"), [("laplace", "4 in L1"), ("normal", "2 in L2")])
def test_the_evidence_holds_the_distance_of_outputs_without_noise(noise: str, norm: str) -> None:
    def released(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum(axis=0) + getattr(rng, noise)(scale=1.0, size=(size, 4))

    causes = audited(released, pair(items=4)).causes
    words = f"without noise, the outputs of the audited pair differ by {norm} norm, and the noise "
    assert causes
    assert all(f"{words}has scale 1" in cause.evidence for cause in causes)


def test_the_evidence_may_lack_the_scale_of_the_noise() -> None:
    def two_scales(data: Array, size: int, *, rng: Generator) -> Array:
        return data.sum() + rng.normal(scale=0.5, size=size) + rng.normal(scale=0.2, size=size)

    found = audited(two_scales, claim=ApproxDP(1.0, 1e-5, relation=Relation.REPLACE_USER))
    assert not [note for note in found.notes if "could not be found" in note]
    assert any("audited pair differ by 1;" in cause.evidence for cause in found.causes)


# --- amounts of noise ---


@pytest.mark.parametrize("needed", [1.3, 2.0, 4.0, 11.0])
def test_the_factor_of_known_noise_is_bracketed(needed: float) -> None:
    """Check the two factors of a mechanism whose epsilon is computed.

    The sum moves by 1, so the claim epsilon = 1 needs scale 1.
    """
    mechanism = AdditiveNoise(lambda data: data.sum(), "laplace", scale=1 / needed)
    (cause,) = audited(mechanism).causes
    assert cause.kind == "noise"
    assert cause.factor is not None
    refuted, suffices = cause.factor
    assert refuted < needed <= suffices <= PRECISION * refuted
    assert cause.draws == 0


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["replace_user", "add_remove_user"])
@pytest.mark.parametrize("most", [3.0, 50.0, np.inf])
def test_a_forgotten_clip_is_part_of_the_cause(most: float, relation: str) -> None:

    def total(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.clip(0, most).sum() / 20 + rng.laplace(scale=1 / 20, size=size)

    left = np.concatenate([np.zeros((19, 1)), np.full((1, 1), 3.0)])
    right = np.zeros((19 if relation == "add_remove_user" else 20, 1))
    pair = NeighborPair(left, right, relation=Relation(relation))
    (cause,) = audited(total, pair, claim=PureDP(1.0)).causes
    assert cause.kind == "noise"
    assert ("nothing seems to clip users" in cause.words) == (most == np.inf)


def test_whole_numbers_and_labels_are_not_moved_away() -> None:
    numbers = NeighborPair(np.zeros((3, 1)), np.concatenate([np.ones((1, 1)), np.zeros((2, 1))]))
    farther = _farther(numbers)
    assert farther is not None
    assert farther.right.ravel().tolist() == [1e6, 0.0, 0.0]
    assert _farther(NeighborPair(numbers.left.astype(int), numbers.right.astype(int))) is None
    labels = NeighborPair(numbers.left, numbers.right, relation=replace_label(0))
    assert _farther(labels) is None
    removal = NeighborPair(np.ones((3, 1)), np.ones((2, 1)), relation=Relation.ADD_REMOVE_USER)
    for pair, side in ((removal, "left"), (removal.swapped(), "right")):
        farther = _farther(pair)
        assert farther is not None
        assert getattr(farther, side).ravel().tolist() == [1.0, 1.0, 1e6]
    absent = NeighborPair(np.zeros((3, 1)), np.zeros((2, 1)), relation=Relation.ADD_REMOVE_USER)
    assert _farther(absent) is None
    assert _farther(NeighborPair(np.zeros((1, 1)), np.full((1, 1), 1e303))) is None


@pytest.mark.slow
def test_a_range_that_data_keep_to_needs_no_clip() -> None:
    def total(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(scale=0.5, size=size)

    words = [
        audited(total, portfolio(n_users=3, m=1, **given)).causes[0].words
        for given in ({}, {"low": 0.0, "high": 1.0})
    ]
    assert [("clip" in one) for one in words] == [True, False]


def test_ragged_users_keep_their_causes() -> None:
    def total(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return sum(map(sum, data)) + rng.laplace(scale=0.25, size=size)

    ragged = NeighborPair([[1.0, 0.0], [0.0]], [[0.0, 0.0], [0.0]])
    assert audited(total, ragged).causes[0].kind == "noise"


def test_the_lines_of_a_noise_and_of_its_scale_are_named() -> None:
    result = audited(quiet_sum)
    cause = result.causes[0]
    assert [line.code for line in cause.lines] == [
        "return data.sum() + rng.laplace(scale=scale, size=size)",
        "scale = 0.25",
    ]
    first = quiet_sum.__code__.co_firstlineno
    assert f"lines {first + 2}, {first + 1} of test_causes.py" in result.summary()
    assert all(line.file == __file__ for line in cause.lines)


def helper(data: Array, size: int, rng: Generator, scale: float) -> Array:
    return data.sum() + rng.laplace(scale=scale, size=size)


def passes_a_scale(data: Array, size: int, *, rng: Generator) -> Array:
    return helper(data, size, rng, 0.25)


def test_the_call_that_passes_a_scale_is_named() -> None:
    codes = [line.code for line in audited(passes_a_scale).causes[0].lines]
    assert codes[1] == "return helper(data, size, rng, 0.25)"


def two_noises(data: Array, size: int, *, rng: Generator) -> Array:
    right = rng.laplace(scale=5.0, size=size)
    wrong = rng.laplace(scale=0.1, size=size)
    return np.stack([data.max() + right, data.max() + wrong], axis=1)


@pytest.mark.slow
def test_the_noise_that_is_too_small_is_named_among_several() -> None:
    """Check that a noise that already suffices is not blamed."""
    causes = audited(two_noises).causes
    (noise,) = (cause for cause in causes if cause.kind == "noise")
    assert noise.lines[0].code.startswith("wrong = ")


# --- facts ---


def decides(data: Array, size: int, *, rng: Generator) -> Array:
    shift = 0.0
    if data.sum() > 0.5:
        shift = 3.0
    return shift + rng.laplace(scale=1.0, size=size)


def test_a_decision_on_private_data_is_named_by_its_line() -> None:
    before = sys.gettrace()
    noise, decision = audited(decides).causes[:2]
    assert sys.gettrace() is before
    assert noise.kind == "noise"  # more noise repairs the claim, so the decision comes second
    assert decision.kind == "branch"
    assert decision.lines[0].code == "if data.sum() > 0.5:"


def decides_on_noise(data: Array, *, rng: Generator) -> float:
    if data.sum() + rng.laplace(scale=1.0) > 0.5:
        return float(3.0 + rng.laplace(scale=1.0))
    return float(rng.laplace(scale=0.1) + 5 * data.sum())


@pytest.mark.slow
def test_a_decision_that_differs_by_noise_is_no_fact() -> None:
    """Check code that each side executes in some calls only."""
    causes = audited(one_draw(decides_on_noise)).causes
    assert all(cause.kind != "branch" for cause in causes)


def by_a_public_size(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(scale=0.5 / len(data), size=size)


@pytest.mark.slow
def test_a_scale_that_is_equal_on_both_sides_is_no_fact() -> None:
    assert all(cause.kind != "scale" for cause in audited(by_a_public_size).causes)


def by_the_private_size(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(scale=0.2 * len(data), size=size)


@pytest.mark.slow
def test_a_scale_that_reveals_the_number_of_users_is_a_fact() -> None:
    leaves = NeighborPair(np.ones((2, 1)), np.ones((1, 1)), relation=Relation.ADD_REMOVE_USER)
    claim = PureDP(1.0, relation=Relation.ADD_REMOVE_USER)
    cause = audited(by_the_private_size, leaves, claim=claim).causes[0]
    assert cause.kind == "scale"
    assert "0.4 on the left and 0.2 on the right" in cause.evidence


# --- kinds of mechanism, and limits ---


def words(data: Array, size: int, *, rng: Generator) -> Array:
    return np.where(rng.random(size) < 0.5, f"total {data.sum():g}", "none")


def raises_for_large_noise(data: Array, size: int, *, rng: Generator) -> Array:
    noise = rng.laplace(scale=0.25, size=size)
    if np.abs(noise).max() > 4:
        raise ValueError("noise is too large")
    return data.sum() + noise


@unseeded
def own_entropy(data: Array, size: int, *, rng: Generator) -> Array:
    del rng
    return data.sum() + np.random.default_rng().laplace(scale=0.25, size=size)


def of_lengths(data: Array, size: int, *, rng: Generator) -> list[Array]:
    return [rng.laplace(size=1 + int(data.sum())) for _ in range(size)]


def counts(data: Array, *, rng: Generator) -> dict[str, float]:
    return {"a": data.sum() + rng.laplace(scale=0.25), "b": rng.laplace()}


def fails(data: Array, *, rng: Generator) -> float:
    if data.sum() > 0.5:
        raise KeyError("a")
    return float(rng.laplace())


class Pmf:
    """A coin whose bias is private."""

    def pmf(self, data: Array) -> Array:
        p = 0.9 if data.sum() > 0.5 else 0.1
        return np.array([p, 1 - p])


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mechanism", "kinds"),
    [
        (words, {"exact", "missing", "support"}),
        (raises_for_large_noise, {"noise"}),
        (own_entropy, set()),
        (of_lengths, {"missing"}),
        (Outcomes(one_draw(counts)), {"noise"}),
        (Outcomes(one_draw(fails), errors="outcome"), {"branch", "missing", "exact"}),
        (Pmf(), {"noise"}),
    ],
    ids=["texts", "raises", "unseeded", "lengths", "records", "exceptions", "pmf"],
)
def test_every_kind_of_mechanism_has_causes(mechanism: Any, kinds: set[str]) -> None:
    result = audited(mechanism)
    assert result.verdict == "refuted"
    assert not kinds or kinds & {cause.kind for cause in result.causes[:2]}
    for cause in result.causes:
        assert cause.kind in CAUSES
        assert cause.draws <= sum(result.draws.values())


def bought(frame: Any, size: int, *, rng: Generator) -> Array:
    """Say which kinds have more than 20 rows; a kind that nobody bought gets no noise."""
    kinds = ["books", "food", "music", "toys"]
    rows = frame.groupby("user").head(5).groupby("kind").size()
    noisy = rows.to_numpy() + rng.laplace(scale=5, size=(size, len(rows)))
    flags = np.zeros((size, len(kinds)))
    flags[:, [kinds.index(kind) for kind in rows.index]] = noisy > 20
    return flags


@pytest.mark.slow
def test_noise_of_some_values_only_leads_to_its_pair_and_is_the_cause() -> None:
    # If one user alone bought music, its flag is set in 2.5% of the draws, and never without the
    # user. The few draws of a search do not show this. The unequal noise points to the pair.
    pandas = pytest.importorskip("pandas")
    made = np.random.default_rng(0)
    rows = made.integers(1, 9, size=40)
    kinds = ["books", "food", "music", "toys"]
    kind = made.choice(kinds, size=rows.sum(), p=[0.3, 0.5, 0.1, 0.1])
    frame = pandas.DataFrame({"user": np.arange(40).repeat(rows), "kind": kind})
    claim = PureDP(1.0, relation=Relation.ADD_REMOVE_USER)
    pairs = portfolio(frame, schema=Schema(user="user"))
    result = audit(bought, claim, pairs, draws=32_000, seed=1, mutants=None)
    assert result.verdict == "refuted"
    assert "music" in result.pair_words
    cause = result.causes[0]
    assert cause.kind == "missing"
    assert "4 numbers on the left and 3 on the right" in cause.evidence
    assert "rng.laplace" in cause.lines[0].code


@pytest.mark.slow
@pytest.mark.parametrize("each", ["user", "item"])
def test_outputs_explain_more_than_items_only_if_many_items_in_one_output_count_once(
    each: str,
) -> None:
    def counts(data: Array, size: int, *, rng: Generator) -> Array:
        hits = data[:, :, None] == np.arange(4)
        found = (hits.any(axis=1) if each == "user" else hits).reshape(-1, 4).sum(axis=0)
        return found + rng.laplace(scale=1.0, size=(size, 4))

    left = np.full((2, 8), -1)
    right = np.stack([left[0], np.repeat(np.arange(4), 2)])
    kinds = [cause.kind for cause in audited(counts, NeighborPair(left, right)).causes]
    assert kinds[:2] == {"user": ["outputs", "items"], "item": ["items", "noise"]}[each]


def test_query_values_have_causes() -> None:
    claim = PureDP(1.0, relation=within_sensitivity())
    sides = NeighborPair([0.0, 0.0], [1.0, 1.0], relation=within_sensitivity())
    causes = audited(quiet_sum, sides, claim=claim).causes
    assert causes[0].kind in ("noise", "items")


def test_causes_are_stored(tmp_path: Any) -> None:
    result = audited(quiet_sum)
    loaded = load_result(save_record(tmp_path, result))
    assert loaded.causes == result.causes


@pytest.mark.slow
def test_causes_depend_on_the_seed_only() -> None:
    assert audited(quiet_sum).causes == audited(quiet_sum).causes
