"""Tests of the digest that says whether stored calls belong to a mechanism."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import one_draw
from dpaudit.mechanisms import code_digest


def noisy(data: Any, size: int, *, rng: np.random.Generator, scale: float = 1.0) -> Any:
    return data.sum() + rng.laplace(scale=scale, size=size)


def by_default(held: float) -> Any:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator, scale: float = held) -> Any:
        return rng.laplace(scale=scale, size=size)

    return mechanism


class Hidden:
    def __init__(self, scale: float) -> None:
        self._scale = scale

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return rng.laplace(scale=self._scale, size=size)


class Slotted:
    __slots__ = ("scale",)

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return rng.laplace(scale=self.scale, size=size)


class Both:
    def __init__(self, first: Any) -> None:
        self.first = first

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return self.first(data)


LAMBDAS = [lambda data: data.sum() + 1, lambda data: data.sum() - 1]


UNLIKE: dict[str, tuple[Any, Any]] = {
    "default of a keyword": (by_default(1.0), by_default(2.0)),
    "private attribute": (Hidden(1.0), Hidden(2.0)),
    "slot": (Slotted(1.0), Slotted(2.0)),
    "lambda": (LAMBDAS[0], LAMBDAS[1]),
    "lambda in one_draw": tuple(one_draw(one, randomness=None) for one in LAMBDAS),
    "function of a library": (Both(np.sum), Both(np.mean)),
    "ufunc": (Both(np.add), Both(np.multiply)),
    "lambda in an attribute": (Both(LAMBDAS[0]), Both(LAMBDAS[1])),
    "name": tuple(functools.partial(noisy, **{name: 2.0}) for name in ("scale", "other")),
    "which is repeated": tuple(functools.partial(noisy, high=a, low=1, z=2) for a in (1, 2)),
    "list": (functools.partial(noisy, scale=[1.0]), functools.partial(noisy, scale=[2.0])),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_unlike_mechanisms_have_unlike_digests(name: str) -> None:
    first, second = map(code_digest, UNLIKE[name])
    assert first != second
    assert [code_digest(one) for one in UNLIKE[name]] == [first, second]


def test_equal_mechanisms_have_equal_digests() -> None:
    for make in (by_default, Hidden, Slotted):
        assert code_digest(make(1.5)) == code_digest(make(1.5))


def test_an_object_may_hold_itself() -> None:
    first, second = Both(None), Both(None)
    first.first, second.first = first, second
    assert code_digest(first) == code_digest(second) != code_digest(Both(None))


def test_a_class_without_a_file_has_a_digest() -> None:
    code = (
        "from dpaudit.mechanisms import code_digest\n"
        "class M:\n"
        "    def __call__(self, data, size, *, rng): return rng.laplace(size=size)\n"
        "print(code_digest(M()))"
    )
    found = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert found[0].stdout == found[1].stdout
    assert len(found[0].stdout.strip()) == 64


def test_versions_of_packages_count_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [code_digest(noisy, with_packages=asked) for asked in (False, True)]
    monkeypatch.setattr(metadata, "version", lambda name: "99")
    after = [code_digest(noisy, with_packages=asked) for asked in (False, True)]
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_the_project_and_not_the_working_directory_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check that a helper beside the tests' directory counts when the tests run in theirs."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "helper_of_digest.py").write_text("SCALE = 1.0\n")
    text = (
        "from helper_of_digest import SCALE\ndef mechanism(data, size, *, rng):\n    return SCALE\n"
    )
    (tmp_path / "tests" / "mechanism_of_digest.py").write_text(text)
    for place in (tmp_path, tmp_path / "tests"):
        monkeypatch.syspath_prepend(str(place))
    mechanism = importlib.import_module("mechanism_of_digest").mechanism
    monkeypatch.chdir(tmp_path)
    found = code_digest(mechanism)
    monkeypatch.chdir(tmp_path / "tests")
    assert code_digest(mechanism) == found
    (tmp_path / "helper_of_digest.py").write_text("SCALE = 2.0\n")
    assert code_digest(mechanism) != found
