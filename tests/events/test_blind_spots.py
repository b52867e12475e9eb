"""Tests that each planted leak is certified, and that nothing is certified without a leak.

In whole audits at failure_prob 1e-6, a certified number exceeds the truth with probability at most
1e-6.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.blind_spots import cases
from benchmarks.tightness import oracle_epsilon
from dpaudit import NeighborPair, PureDP, audit

CASES = {name: rest for name, *rest in cases()}
DRAWS = {"10,000 labels, integers": 100_000, "10,000 labels, texts": 100_000}
RARE = {
    name
    for name in CASES
    if name.startswith("sparse vector") and name != "sparse vector variant 4, all above"
}
SHARE = 0.75


def _audit(mechanism: Any, pair: NeighborPair, draws: int) -> Any:
    return audit(mechanism, PureDP(0.05), pair, draws=draws, seed=1, mutants=None, id="blind")


@pytest.mark.sampled
@pytest.mark.parametrize("name", CASES)
def test_a_planted_leak_is_certified(name: str) -> None:
    mechanism, pair, oracle_of = CASES[name]
    oracle = oracle_of()
    draws = DRAWS.get(name, 100_000 if name in RARE else 30_000)
    reachable = oracle_epsilon(oracle, 0.0, draws, 1e-6)
    found = _audit(mechanism, pair, draws).certified_epsilon
    assert SHARE * reachable <= found <= oracle.epsilon(0.0)


NULL = {name: rest for name, rest in CASES.items() if "sparse vector" not in name}


@pytest.mark.sampled
@pytest.mark.parametrize("name", NULL)
def test_nothing_is_certified_where_both_sides_are_the_same(name: str) -> None:
    mechanism, pair, _ = NULL[name]
    same = NeighborPair(pair.left, pair.left, relation=pair.relation)
    assert _audit(mechanism, same, 10_000).certified_epsilon == 0.0


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("value mod 7", "output mod 7 = 3"),
        ("comb of period .01", "fractional part of output / 0.01"),
        ("text with a secret suffix", "output"),
        ("text of secret length", "length of output in {"),
        ("two of 15 coordinates equal", "number of coordinates equal to another >= 1"),
        ("shape (3,) or (4,)", "length"),
    ],
)
def test_words_say_what_the_leak_is(name: str, words: str) -> None:
    mechanism, pair, _ = CASES[name]
    assert words in _audit(mechanism, pair, 20_000).witness.event


def test_exact_rates_of_the_planted_leaks() -> None:
    """Compare the exact rates of the benchmark with draws.

    The limit is 6 standard errors.
    """
    rng = np.random.default_rng(0)
    size = 40_000
    for name, inside in (
        ("value mod 7", lambda y: y % 7 == 3),
        ("parity, noise of scale 1,000", lambda y: y % 2 == 1),
        ("comb of period .01", lambda y: (y / 0.01) % 1 > 0.5),
        ("text with a secret suffix", lambda y: np.char.endswith(y, "kz")),
        ("lists of secret length", lambda y: np.array([len(row) % 2 == 0 for row in y])),
    ):
        mechanism, pair, oracle = CASES[name]
        p, q = (inside(mechanism(x, size, rng=rng)).mean() for x in (pair.left, pair.right))
        curve = np.stack(oracle().curve(), axis=1)
        assert np.abs(curve - [p, q]).max(axis=1).min() < 6 * 0.5 / np.sqrt(size), name
