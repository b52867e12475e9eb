"""Tests of functions that a mutant removes or replaces, and of scaled parameters."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpaudit import AdditiveNoise, ArgumentError, one_draw, unseeded
from dpaudit.mechanisms import is_seeded
from dpaudit.mutants import Change, patch, quieter, scaled, without
from tests.mutants import helpers, importer

Array = np.ndarray
Generator = np.random.Generator
HELPERS = "tests.mutants.helpers"
DATA = np.array([[5.0], [-3.0]])


def clipped(data: Array, size: int, *, rng: Generator) -> Array:
    """Use the helper by all its names."""
    by_name = helpers.clip(data), helpers.also_clip(data), importer.shortened(data, high=1.0)
    return np.tile([part.sum() for part in by_name], (size, 1))


def clipped_by_methods(data: Array, size: int, *, rng: Generator) -> Array:
    clipper = helpers.Clipper(1.0)
    return np.full(size, helpers.Clipper.floor(clipper.clip(data)).sum())


def ran(change: Change, mechanism: Any, data: Any = DATA) -> Any:
    return change(mechanism)(data, 1, rng=np.random.default_rng(1))


# --- without, patch ---


def test_a_function_is_taken_out_by_all_its_names_and_put_back() -> None:
    original = helpers.clip
    assert ran(without(f"{HELPERS}.clip"), clipped).tolist() == [[2.0, 2.0, 2.0]]
    assert helpers.clip is helpers.also_clip is importer.shortened is original
    assert clipped(DATA, 1, rng=np.random.default_rng(1)).tolist() == [[1.0, 1.0, 1.0]]


def test_by_an_alias_too() -> None:
    assert ran(without("tests.mutants.importer.shortened"), clipped).tolist() == [[2.0, 2.0, 2.0]]


def test_methods_keep_their_self() -> None:
    assert ran(without(f"{HELPERS}.Clipper.clip"), clipped_by_methods)[0] == 5.0
    assert ran(without(f"{HELPERS}.Clipper.floor"), clipped_by_methods)[0] == 1.0 - 3.0
    assert clipped_by_methods(DATA, 1, rng=np.random.default_rng(1))[0] == 1.0
    assert isinstance(vars(helpers.Clipper)["floor"], staticmethod)


def test_a_first_argument_given_by_name_is_the_first() -> None:
    def by_name(data: Array, size: int, *, rng: Generator) -> Array:
        return np.full(size, helpers.clip(data=data, high=2.0).sum())

    assert ran(without(f"{HELPERS}.clip"), by_name)[0] == 2.0


def test_functions_of_libraries_can_be_taken_out() -> None:
    def of_numpy(data: Array, size: int, *, rng: Generator) -> Array:
        return np.full(size, np.clip(data, 0, 1).sum())

    assert ran(without("numpy.clip"), of_numpy)[0] == 2.0
    assert np.clip(5, 0, 1) == 1


def test_a_replacement_gets_the_same_arguments() -> None:
    seen: list[Any] = []

    def replacement(data: Any, low: float = 0.0, high: float = 1.0) -> Any:
        seen.append((low, high))
        return data * 0 + 7.0

    change = patch(f"{HELPERS}.clip", replacement)
    assert change.name == f"{HELPERS}.clip replaced by replacement"
    assert ran(change, clipped).tolist() == [[14.0] * 3]
    assert seen == [(0.0, 1.0)] * 3


def test_it_is_put_back_whatever_happens() -> None:
    def fails(data: Any, *rest: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    original = helpers.clip
    with pytest.raises(KeyboardInterrupt):
        ran(patch(f"{HELPERS}.clip", fails), clipped)
    assert helpers.clip is helpers.also_clip is importer.shortened is original


def test_a_module_imported_meanwhile_does_not_keep_the_replacement() -> None:
    assert "tests.mutants.late" not in sys.modules

    def importing(data: Array, size: int, *, rng: Generator) -> Array:
        from tests.mutants.late import shortened

        return np.full(size, shortened(data).sum())

    assert ran(without(f"{HELPERS}.clip"), importing)[0] == 2.0
    assert sys.modules["tests.mutants.late"].shortened is helpers.clip


def test_calls_are_counted() -> None:
    mutant = without(f"{HELPERS}.clip")(clipped)
    assert mutant.changed == 0
    mutant(DATA, 1, rng=np.random.default_rng(1))
    assert mutant.changed == 3


def test_mechanisms_of_all_kinds_can_be_patched() -> None:
    def centre(data: Array) -> Array:
        return helpers.clip(data).sum(axis=0)

    class Exact:
        def pmf(self, data: Array) -> Array:
            p = helpers.clip(data).sum() / 10
            return np.array([p, 1 - p])

    noisy = AdditiveNoise(centre, scale=1.0, ball=([1.0], 1.0))
    out = without(f"{HELPERS}.clip")(noisy)
    assert out.center(DATA + 10).tolist() == [22.0]  # the ball would have refused this center
    assert not out.is_random
    assert without(f"{HELPERS}.clip")(Exact()).pmf(DATA)[0] == pytest.approx(0.2)


def test_the_mark_of_an_unseeded_mechanism_stays() -> None:
    assert not is_seeded(without(f"{HELPERS}.clip")(unseeded(clipped)))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (f"{HELPERS}.clap", r"tests.mutants.helpers has no clap. Did you mean clip\?"),
        (f"{HELPERS}.Clipper.clap", "has no clap"),
        (f"{HELPERS}.constant", "must be the name of a function, got .*, which is 3"),
        ("no_such_module.clip", "a module that can be imported, got 'no_such_module.clip'"),
        ("clip", "must be module.function, got 'clip'"),
        ("", "must be module.function"),
        (3, "must be module.function, got 3"),
    ],
)
def test_bad_names_are_refused(name: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        without(name)


@pytest.mark.parametrize(
    ("function", "holder"),
    [
        ("held_by_a_partial", "a functools.partial also refers to this function"),
        ("held_by_a_default", "a default argument also refers to this function"),
        ("held_by_a_dict", "a dict or an object, as 'held', also refers to this function"),
        ("held_by_a_closure", "a closure or a decorator also refers to this function"),
        ("held_by_a_list", "a list also refers to this function"),
    ],
)
def test_what_cannot_be_replaced_everywhere_is_refused(function: str, holder: str) -> None:
    with pytest.raises(ArgumentError, match=holder):
        without(f"{HELPERS}.{function}")(clipped)


def test_decorated_functions_are_replaced_whole() -> None:
    def squared(data: Array, size: int, *, rng: Generator) -> Array:
        return np.full(size, helpers.cached(3))

    assert ran(without(f"{HELPERS}.cached"), squared)[0] == 3
    assert helpers.cached(3) == 9


def test_noise_is_moved_towards_the_first_argument() -> None:
    def noisy(data: Array, size: int, *, rng: Generator) -> Array:
        return helpers.with_noise(data.sum(), size, rng=rng)

    whole = noisy(DATA, 3, rng=np.random.default_rng(1))
    for factor in (0.0, 0.25):
        less = quieter(f"{HELPERS}.with_noise", factor)(noisy)
        found = less(DATA, 3, rng=np.random.default_rng(1))
        np.testing.assert_allclose(found, 2.0 + factor * (whole - 2.0), rtol=1e-14)


@pytest.mark.parametrize("factor", [1.0, -0.1, float("nan"), "0.5"])
def test_a_factor_that_leaves_the_noise_is_refused(factor: Any) -> None:
    with pytest.raises((ArgumentError, TypeError), match="factor must be"):
        quieter(f"{HELPERS}.with_noise", factor)


def test_a_replacement_must_be_callable() -> None:
    with pytest.raises(TypeError, match="replacement must be a function, got 3"):
        patch(f"{HELPERS}.clip", 3)  # type: ignore[arg-type]


# --- scaled ---


def noisy(data: Array, size: int, *, rng: Generator, scale: float, shift: float = 0.0) -> Array:
    return shift + rng.laplace(scale=scale, size=size)


def test_keywords_of_a_partial_are_multiplied() -> None:
    mutant = scaled(scale=0.5)(partial(noisy, scale=3.0, shift=1.0))
    assert mutant.keywords == {"scale": 1.5, "shift": 1.0}
    assert scaled(scale=0.5).name == "scale times 0.5"


def test_what_a_factory_makes_is_made_again() -> None:
    def make(scale: float) -> Any:
        return lambda data, size, *, rng: np.full(size, scale)

    change = scaled(partial(make, scale=3.0), scale=0.5)
    assert ran(change, make(3.0))[0] == 1.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: scaled(), "factors must contain at least one parameter"),
        (lambda: scaled(scale=float("nan")), "scale must be"),
        (lambda: scaled(sigma=0.5)(partial(noisy, scale=1.0)), "sigma must be a keyword of mech"),
        (lambda: scaled(scale=0.5)(noisy), "mechanism must be a functools.partial"),
        (lambda: scaled(noisy, scale=0.5), "of must be a functools.partial"),
        (lambda: scaled(scale=0.5)(partial(noisy, scale=None)), "scale must be a number, got None"),
    ],
)
def test_bad_factors_are_refused(change: Any, words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        change()


class Holder:
    """An object that keeps a function as an attribute."""

    def __init__(self, function: Any) -> None:
        self.function = function

    @classmethod
    def doubled(cls, data: Any) -> Any:
        """Return twice the data."""
        return 2 * data


def held_by_an_object(data: Any) -> Any:
    return data


HOLDER = Holder(held_by_an_object)


def test_objects_that_hold_a_function_are_found() -> None:
    with pytest.raises(ArgumentError, match="also refers to this function"):
        without(f"{__name__}.held_by_an_object")(clipped)


def test_class_methods_are_replaced_as_such() -> None:
    def by_class(data: Array, size: int, *, rng: Generator) -> Array:
        return np.full(size, Holder(None).doubled(data).sum())

    assert ran(without(f"{__name__}.Holder.doubled"), by_class)[0] == 2.0
    assert Holder.doubled(3) == 6


def test_what_cannot_be_replaced_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a method of a built-in type, which cannot"):
        without("numpy.ndarray.clip")


def test_a_partial_within_one_draw_is_scaled() -> None:
    def noisy(data: Any, *, scale: float, rng: np.random.Generator) -> float:
        return data + scale * rng.random()

    mechanism = one_draw(partial(noisy, scale=2.0))
    made = scaled(scale=0.5)(mechanism)
    one, other = (f(1.0, 3, rng=np.random.default_rng(1)) - 1 for f in (mechanism, made))
    assert np.allclose(one, 2 * other)
    with pytest.raises(ArgumentError, match=r"must be a functools\.partial"):
        scaled(scale=0.5)(one_draw(lambda data, *, rng: data))
