"""Tests of draws of mixed kinds.

The conversion of a draw does not depend on the other draws of the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, NeighborPair, Outcomes, PureDP, audit, one_draw
from dpaudit.mechanisms.outcomes import Kinds, as_array, fitted

PAIR = NeighborPair([[0.0]], [[1.0]])
TEXT = np.dtype("U8")

Draw = Callable[[np.random.Generator], Any]


def _raised(draw: Draw) -> Draw:
    def drawn(rng: np.random.Generator) -> Any:
        if rng.random() < 0.5:
            raise KeyError("none")
        return draw(rng)

    return drawn


def _or_none(draw: Draw, rate: float = 0.5) -> Draw:
    return lambda rng: None if rng.random() < rate else draw(rng)


def _text(rng: np.random.Generator) -> str:
    return "abc"[rng.integers(3)]


DRAWS: dict[str, tuple[Draw, str]] = {
    "None or a text": (_or_none(_text), "raise"),
    "None mostly, or a text": (_or_none(_text, 0.9), "raise"),
    "a number or a text": (lambda rng: _text(rng) if rng.random() < 0.5 else 1.5, "raise"),
    "None, a number or a text": (
        _or_none(lambda rng: _text(rng) if rng.random() < 0.5 else 1.5),
        "raise",
    ),
    "None or a list": (_or_none(lambda rng: [1.0] * int(rng.integers(0, 3))), "raise"),
    "None or three numbers": (_or_none(lambda rng: [1.0, 2.0, 3.0]), "raise"),
    "no number mostly": (lambda rng: [] if rng.random() < 0.8 else [1.0, 2.0], "raise"),
    "a dict with None or a text": (lambda rng: {"a": _or_none(_text)(rng)}, "raise"),
    "an exception or a text": (_raised(_text), "outcome"),
    "an exception or a number": (_raised(lambda rng: float(rng.integers(3))), "outcome"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("draws", [100, 400])
def test_equal_distributions_of_mixed_draws_are_audited_and_not_refuted(
    name: str, draws: int
) -> None:
    """Check that equal distributions of mixed draws are audited and not refuted.

    The false-alarm probability is 1e-6.
    """
    draw, errors = DRAWS[name]

    @one_draw
    def mechanism(data: Any, *, rng: np.random.Generator) -> Any:
        return draw(rng)

    found = audit(
        Outcomes(mechanism, errors=errors), PureDP(0.1), PAIR, draws=draws, seed=1, mutants=None
    )
    assert found.verdict.words == "NO POWER"
    assert found.certified_epsilon == 0


def test_a_leak_among_mixed_draws_is_found() -> None:
    @one_draw
    def mechanism(data: Any, *, rng: np.random.Generator) -> Any:
        return None if rng.random() < 0.2 + 0.6 * data.sum() else _text(rng)

    assert audit(mechanism, PureDP(0.5), PAIR, draws=400, seed=1).verdict.words == "REFUTED"


def test_each_draw_becomes_the_same_whatever_stands_beside_it() -> None:
    draws = [None, "a", None, "b"]
    whole = as_array(draws)
    for draw, expected in zip(draws, whole, strict=True):
        alone = fitted(as_array([draw]), TEXT)
        assert alone is not None
        assert alone[0] == expected
    mixed = as_array([None, "a", 1.5, np.nan])
    for draw, expected in zip([None, "a", 1.5, np.nan], mixed, strict=True):
        alone = fitted(as_array([draw]), mixed.dtype)
        assert alone is not None
        assert alone["text"][0] == expected["text"]
        np.testing.assert_equal(alone["value"][0], expected["value"])


def test_another_kind_is_refused_once_the_contract_was_checked() -> None:
    kinds = Kinds("mine", finite=True)
    kinds.admit(np.array(["a", "b"]), "left", bound=True)
    with pytest.raises(MechanismError, match="mine must return draws of one shape and kind"):
        kinds.admit(np.array([1.0, 2.0]), "left", bound=True)
    probing = Kinds("mine", finite=True)
    probing.is_probing = True
    probing.admit(np.array(["a", "b"]), "left", bound=True)
    mixed = probing.admit(np.array([1.0, 2.0]), "left", bound=True)
    assert mixed["text"].tolist() == ["", ""]
    assert fitted(mixed, TEXT) is None  # the values include numbers


def test_what_was_seen_on_one_pair_is_known_on_the_next() -> None:
    kinds = Kinds("mine", finite=True)
    kinds.admit(np.array(["a", "b"]), "left", bound=True)
    kinds.turn()
    assert kinds.admit(np.full(2, np.nan), "left", bound=True).tolist() == ["<None>", "<None>"]


def test_vectors_and_texts_have_no_kind_in_common() -> None:
    kinds = Kinds("mine", finite=True)
    kinds.is_probing = True
    kinds.admit(np.zeros((2, 3)), "left", bound=True)
    with pytest.raises(MechanismError, match=r"one text each .* after arrays of numbers"):
        kinds.admit(np.array(["a", "b"]), "left", bound=True)
