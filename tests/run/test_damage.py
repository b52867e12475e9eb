"""Tests that exactly the changes that an audit leaves in its process are found."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import mutants
from dpaudit.run.damage import Condition


def _replace(monkeypatch: pytest.MonkeyPatch, before: Condition, tmp_path: Path) -> None:
    for name in ("mean", "sum", "clip", "sort"):
        monkeypatch.setattr(np, name, len)


def _delete(monkeypatch: pytest.MonkeyPatch, before: Condition, tmp_path: Path) -> None:
    monkeypatch.delattr(np.random, "default_rng")


def _move(monkeypatch: pytest.MonkeyPatch, before: Condition, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def _close_stream(monkeypatch: pytest.MonkeyPatch, before: Condition, tmp_path: Path) -> None:
    stream = (tmp_path / "out").open("w")
    monkeypatch.setattr("sys.stdout", stream)
    stream.close()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (_replace, "it replaced numpy.clip, numpy.mean, numpy.sort and 1 more"),
        (_delete, "it replaced numpy.random.default_rng"),
        (_move, "it changed the working directory"),
        (_close_stream, "it closed standard output"),
    ],
)
def test_damage_is_named(
    harm: Callable[..., Any], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = Condition()
    harm(monkeypatch, before, tmp_path)
    found = before.damage()
    monkeypatch.undo()
    assert found == words


def test_an_audit_that_harms_nothing_leaves_no_damage_and_no_open_file() -> None:
    opened = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    before = Condition()
    np.random.default_rng(1).normal()
    assert before.damage() == ""
    if opened:
        assert len(os.listdir("/proc/self/fd")) == opened


def test_functions_that_are_watched_can_still_be_replaced_by_mutants() -> None:
    def clipped(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.clip(data, 0, 1).sum() + rng.laplace(size=size)

    before = Condition()
    mutant = mutants.without("numpy.clip")(clipped)
    drawn = mutant(np.full(3, 9.0), 2000, rng=np.random.default_rng(1))
    assert drawn.mean() > 20
    assert before.damage() == ""
