"""Tests of the mutant options of `dpaudit audit`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.run.conftest import Home

MODULE = """
import numpy as np

def clip(data):
    return np.clip(data, 0, 1)

def total(data, size, *, rng):
    return clip(data).mean(axis=1).sum() + rng.laplace(size=size)

def half(data, size, *, rng):
    return clip(data).mean(axis=1).sum() + rng.laplace(scale=0.5, size=size)

def nearly(data, size, *, rng):
    return clip(data).mean(axis=1).sum() + rng.laplace(scale=0.99, size=size)
"""


@pytest.fixture
def mine(home: Home) -> Home:
    return home.write(mine=MODULE)


AUDIT = ("audit", "mine:total", "--epsilon", "1", "--pair", "far_user:n_users=5", "--draws", "4000")


@pytest.mark.slow
def test_an_audit_shows_the_table(mine: Home) -> None:
    done = mine.dpaudit(*AUDIT, "--mutant", "mine:half", "--mutant", "mine:half", "-v")
    assert done.code == 0
    done.matches(
        "NOT REFUTED  mine:total",
        "  mutants             given 2 of 2, noise 2 of 2, clipping 2 of 2 killed",
        "  every mutant        killed: epsilon *, * draws  half",
        "  * killed: epsilon *, * draws  half #2",
        "  * killed: epsilon *, * draws  the noise of line 8 of mine.py (laplace, scale 1) removed",
        "  * killed: epsilon *, * draws  the noise of line 8 of mine.py (laplace, scale 1) halved",
    )


@pytest.mark.slow
def test_a_mutant_that_survives_fails_the_command(mine: Home) -> None:
    done = mine.dpaudit(*AUDIT, "--mutant", "mine:nearly")
    assert done.code == 1
    assert done.out.startswith("NO POWER  mine:total")
    assert "the given mutant nearly survived too" in done.out


def test_without_mutants_silence_has_no_power(mine: Home) -> None:
    done = mine.dpaudit(*AUDIT, "--no-mutants")
    assert done.code == 0
    assert done.out.startswith("NO POWER  mine:total")
    assert 'mutants="all", the default' in done.out
    both = mine.dpaudit(*AUDIT, "--no-mutants", "--mutant", "mine:half")
    assert (both.code, "--mutant and --no-mutants must not be given together" in both.err) == (
        4,
        True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("asked", [(), ("--no-mutants",), ("--mutant", "mine:half")])
def test_a_replay_makes_the_same_mutants(mine: Home, asked: tuple[str, ...]) -> None:
    mine.dpaudit(*AUDIT, *asked, "--out", "found")
    (stored,) = (mine.path / "found" / "audits").glob("*.json")
    found: dict[str, Any] = json.loads(stored.read_text())
    shown = [mutant for mutant in found["mutants"] if not mutant["kind"]]
    assert len(shown) == (0 if "--no-mutants" in asked else 2 + len(asked) // 2)
    assert len(found["mutants"]) == (0 if "--no-mutants" in asked else len(shown) + 3)
    assert str(mine.path) not in stored.read_text()
    again = mine.dpaudit("replay", str(stored))
    assert again.code == 0
    assert again.out.endswith("the same\n")
