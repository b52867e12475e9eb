"""The views of an adversary on many clients, and on one client over time, by enumeration."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from dpaudit import Longitudinal, Shuffled, Summed
from dpaudit.errors import ArgumentError, MechanismError

Array = NDArray[Any]
TRUTH = 0.75


def bit(value: int, size: int, *, rng: Generator) -> Array:
    return np.where(rng.random(size) < TRUTH, value, 1 - value)


def texts(value: str, size: int, *, rng: Generator) -> list[str]:
    return [value if u < TRUTH else "no" for u in rng.random(size)]


def points(value: float, size: int, *, rng: Generator) -> Array:
    return value + rng.normal(size=(size, 2))


def test_counts_of_a_shuffle_have_the_enumerated_distribution() -> None:
    data, draws = [0, 1, 1], 40_000
    expected = np.zeros(4)
    for reports in itertools.product([0, 1], repeat=3):
        right = [report == value for report, value in zip(reports, data, strict=True)]
        expected[sum(reports)] += np.prod([TRUTH if one else 1 - TRUTH for one in right])
    counts = Shuffled(bit, outcomes=[0, 1])(data, draws, rng=np.random.default_rng(1))
    assert (counts.sum(axis=1) == 3).all()
    seen = np.bincount(counts[:, 1], minlength=4) / draws
    # Six standard errors of each share: a false alarm has probability below 1e-8.
    assert np.all(np.abs(seen - expected) < 6 * np.sqrt(expected * (1 - expected) / draws))


def test_a_shuffle_without_outcomes_is_sorted_and_holds_the_same_reports() -> None:
    data = np.array([0, 1, 1, 0])
    rng = (np.random.default_rng(3) for _ in range(2))
    ordered = Shuffled(bit)(data, 50, rng=next(rng))
    counts = Shuffled(bit, outcomes=[0, 1])(data, 50, rng=next(rng))
    assert (np.diff(ordered, axis=1) >= 0).all()
    assert ordered.sum(axis=1).tolist() == counts[:, 1].tolist()


def test_vectors_are_shuffled_as_whole_rows() -> None:
    out = Shuffled(points)([0.0, 100.0, 0.0], 20, rng=np.random.default_rng(0))
    assert out.shape == (20, 3, 2)
    assert (np.diff(out[:, :, 0], axis=1) >= 0).all()
    assert (np.abs(out[:, 2] - 100.0) < 10).all()  # both coordinates of one client stay together


def test_texts_are_shuffled() -> None:
    out = Shuffled(texts)(["yes", "no"], 10, rng=np.random.default_rng(0))
    assert out.shape == (10, 2)
    assert (out[:, 0] <= out[:, 1]).all()


def test_the_order_of_clients_does_not_matter() -> None:
    """Check that equal reports give the same output, whoever sent them."""
    data = np.array([0, 1, 1, 0, 1])
    rng = (np.random.default_rng(5) for _ in range(2))
    one = Shuffled(bit)(data, 20_000, rng=next(rng)).sum(axis=1)
    other = Shuffled(bit)(data[::-1], 20_000, rng=next(rng)).sum(axis=1)
    assert abs(one.mean() - other.mean()) < 6 * one.std() * np.sqrt(2 / 20_000)


def test_a_sum_adds_the_reports_of_all_clients() -> None:
    out = Summed(points)(np.array([1.0, 2.0, 3.0]), 20_000, rng=np.random.default_rng(0))
    assert out.shape == (20_000, 2)
    assert np.abs(out.mean(axis=0) - 6.0).max() < 6 * np.sqrt(3 / 20_000)
    assert np.abs(out.var(axis=0) - 3.0).max() < 6 * 3 * np.sqrt(2 / 20_000)


def test_one_call_of_the_randomiser_serves_all_equal_values() -> None:
    sizes = []

    def counting(value: int, size: int, *, rng: Generator) -> Array:
        sizes.append(size)
        return bit(value, size, rng=rng)

    Summed(counting)(np.array([0, 1, 1, 1]), 10, rng=np.random.default_rng(0))
    assert sizes == [10, 30]


@pytest.mark.parametrize("kind", ["numbers", "texts", "vectors"])
def test_only_the_visible_report_is_shown(kind: str) -> None:
    reports = {
        "numbers": np.arange(1.0, 7.0).reshape(2, 3),
        "texts": np.array([["a", "b", "c"], ["d", "e", "f"]]),
        "vectors": np.arange(1.0, 13.0).reshape(2, 3, 2),
    }[kind]

    def fixed(value: Any, size: int, *, rng: Generator) -> Array:
        return reports

    rng = np.random.default_rng(0)
    assert Longitudinal(fixed)(("all", 0, 3), 2, rng=rng).tolist() == reports.tolist()
    shown = Longitudinal(fixed)((1, 0, 3), 2, rng=rng)
    assert shown[:, 1].tolist() == reports[:, 1].tolist()
    assert not np.any(shown[:, [0, 2]].astype(bool))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda rng: Shuffled(bit)([], 2, rng=rng), "at least one client, got none"),
        (lambda rng: Shuffled(bit, outcomes=[0])([0, 1], 9, rng=rng), "outcomes must hold all"),
        (lambda rng: Shuffled(points, outcomes=[0])([0.0], 2, rng=rng), "outcomes must be None"),
        (lambda rng: Summed(lambda v, size, rng: np.zeros(1))([0], 2, rng=rng), "one report for"),
        (lambda rng: Longitudinal(bit)((0, 1, 2), 2, rng=rng), "must return an array"),
        (lambda rng: Longitudinal(points)((0, 1.0, 3), 2, rng=rng), "the 3 claimed reports, got 2"),
        (lambda rng: Longitudinal(points)((0, 1.0, 1), 2, rng=rng), "the 1 claimed reports, got 2"),
        (lambda rng: Shuffled(lambda v, size, rng: {"a": v})([1], 1, rng=rng), "got a dict"),
        (
            lambda rng: Summed(lambda v, size, rng: [[1] * v] * size)([1, 2], 2, rng=rng),
            "one shape",
        ),
        (lambda rng: Shuffled(bit)({"a": 1}, 1, rng=rng), "one value for each client"),
        (lambda rng: Shuffled(bit)(pd.DataFrame({"a": [1]}), 1, rng=rng), "one value for each"),
    ],
)
def test_wrong_reports_are_refused(call: Any, words: str) -> None:
    with pytest.raises(MechanismError, match=words):
        call(np.random.default_rng(0))


def test_outcomes_must_differ() -> None:
    with pytest.raises(ArgumentError, match="outcomes must be different"):
        Shuffled(bit, outcomes=[0, 1, 1])
