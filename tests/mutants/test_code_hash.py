"""Tests of the hash of a mechanism's code: what changes it, and what does not."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.mutants import code_hash

MECHANISM = """
import numpy as np
import called_by_it
from called_by_it import BOUND, clip
from holds_a_class import Noise

SCALE = 1.0
noise = Noise()

def mechanism(data, size, *, rng):
    return clip(data).sum() + noise(rng, size) * SCALE * BOUND * called_by_it.once()

def other(data, size, *, rng):
    return rng.normal(size=size)
"""
CALLED = """
import deeper
BOUND = 3
def clip(x):
    return deeper.bound(x)
def once():
    return 1
"""
DEEPER = "def bound(data):\n    return data.clip(0, 1)\n"
CLASS = "class Noise:\n    def __call__(self, rng, size):\n        return rng.normal(size=size)\n"
UNUSED = "def nothing():\n    return 0\n"

FILES = {
    "mechanism_of_hash": MECHANISM,
    "called_by_it": CALLED,
    "deeper": DEEPER,
    "holds_a_class": CLASS,
    "unused": UNUSED,
}


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: str) -> Any:
    """Import the mechanism from a new folder that holds the files with these changes."""
    folder.mkdir()
    for name, text in (FILES | changes).items():
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.find_spec("mechanism_of_hash")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    return code_hash(loaded(tmp_path / "same", monkeypatch).mechanism)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("mechanism_of_hash", "SCALE = 1.0", "SCALE = 2.0"),
        ("called_by_it", "return 1", "return 2"),
        ("called_by_it", "BOUND = 3", "BOUND = 4"),
        ("deeper", "clip(0, 1)", "clip(0, 2)"),
        ("holds_a_class", "normal", "laplace"),
    ],
)
def test_changed_code_changes_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: str, file: str, old: str, new: str
) -> None:
    assert old in FILES[file]
    module = loaded(tmp_path / "new", monkeypatch, **{file: FILES[file].replace(old, new)})
    assert code_hash(module.mechanism) not in ("", same)


def test_the_place_and_unrelated_files_do_not_change_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same: str
) -> None:
    module = loaded(tmp_path / "elsewhere", monkeypatch, unused="def nothing():\n    return 1\n")
    assert code_hash(module.mechanism) == same
    assert len(same) == 16


def scaled(data: Any, size: int, *, rng: np.random.Generator, scale: Any) -> Any:
    return data.sum() + rng.laplace(scale=scale, size=size)


def test_bound_values_change_the_hash() -> None:
    hashes = {code_hash(functools.partial(scaled, scale=scale)) for scale in (1.0, 2.0, [1.0])}
    assert len(hashes) == 3
    assert code_hash(functools.partial(scaled, scale=1.0)) in hashes


def test_a_value_without_a_hash_gives_no_hash() -> None:
    class Strange:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert code_hash(functools.partial(scaled, scale=Strange())) == ""
    assert code_hash(functools.partial(scaled, scale=threading.Lock()))  # only its type counts


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["{}", "{{'k': {}}}", "[({},)]"])
def test_the_hash_does_not_depend_on_the_process(bound: str) -> None:
    program = (
        "import functools; from dpaudit.mutants import code_hash; "
        f"print(code_hash(functools.partial(print, end={bound.format(set('abcde'))})))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1
