"""Tests of the checks of arguments.

The tests cover the accepted values, and how all other values are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit import _validate

NUMBERS: dict[str, tuple[Callable[..., float], list[Any], list[Any]]] = {
    "positive": (_validate.positive, [1, 0.5, 5e-324, 1e308], [0, -1.0, math.inf, math.nan, -0.0]),
    "nonnegative": (_validate.nonnegative, [0, 0.0, 3], [-1e-300, math.inf, math.nan]),
    "delta": (_validate.delta, [0, 1, 1e-300], [-1e-9, 1.0000001, math.nan, math.inf]),
    "failure_prob": (_validate.failure_prob, [1e-300, 0.5], [0, 1, -0.1, math.nan, 2]),
}


@pytest.mark.parametrize("check", NUMBERS)
def test_numbers_come_back_as_floats(check: str) -> None:
    function, good, _ = NUMBERS[check]
    for value in [*good, np.float64(good[-1]), np.float32(0.5), Fraction(1, 2)]:
        accepted = function(x=value)
        assert type(accepted) is float
        assert accepted == float(value)


@pytest.mark.parametrize("check", NUMBERS)
def test_numbers_out_of_range_are_named_with_their_value(check: str) -> None:
    function, _, bad = NUMBERS[check]
    for value in bad:
        with pytest.raises(ValueError, match="^sigma must be a .*number.*got ") as caught:
            function(sigma=value)
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize("check", NUMBERS)
@pytest.mark.parametrize("value", [True, False, "1", None, [0.5], 1j, np.array([0.5]), np.True_])
def test_other_types_are_refused_as_types(check: str, value: Any) -> None:
    with pytest.raises(TypeError, match="^sigma must be .* of type "):
        NUMBERS[check][0](sigma=value)


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_integers_of_numpy_are_integers(value: Any) -> None:
    accepted = _validate.integer(3, n_users=value)
    assert type(accepted) is int
    assert accepted == 3


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, np.array([3])])
def test_integer_refuses_other_types(value: Any) -> None:
    with pytest.raises(TypeError, match="^n_users must be an integer >= 2, got "):
        _validate.integer(2, n_users=value)


def test_integer_refuses_values_below_its_minimum() -> None:
    with pytest.raises(ValueError, match=r"^n_users must be an integer >= 2, got 1$"):
        _validate.integer(2, n_users=1)


def test_choice_lists_what_is_allowed() -> None:
    assert _validate.choice(("l1", "l2"), norm="l2") == "l2"
    for bad in ("L2", "", None, 2):
        with pytest.raises(ValueError, match="^norm must be one of l1, l2, got "):
            _validate.choice(("l1", "l2"), norm=bad)
