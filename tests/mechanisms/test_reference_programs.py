"""Tests of the reference programs in other languages, with real interpreters.

A test is skipped where an interpreter is missing. `make nightly` counts a skip as a failure.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import Command, PureDP, Settings, audit, neighbors
from dpaudit.run.checking import checks

FOLDER = Path(__file__).parents[2] / "docs" / "programs"
PAIR = neighbors.majority_flip(n_users=5)


def interpreter(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def node(scale: str, folder: Path) -> Command:
    return Command([interpreter("node"), FOLDER / "noisy_sum.js", scale], mode="server")


def r(scale: str, folder: Path) -> Command:
    rscript = interpreter("Rscript")
    if subprocess.run([rscript, "-e", "library(jsonlite)"], capture_output=True).returncode:
        pytest.skip("the package jsonlite of R is not installed")
    return Command([rscript, FOLDER / "noisy_sum.R", scale], mode="server")


def java(scale: str, folder: Path) -> Command:
    arguments = [interpreter("java"), FOLDER / "NoisySum.java", scale]
    return Command(arguments, mode="server", input="csv")


def cpp(scale: str, folder: Path) -> Command:
    made = folder / "noisy_sum"
    if not made.exists():
        source = str(FOLDER / "noisy_sum.cpp")
        subprocess.run([interpreter("g++"), "-Wall", "-o", str(made), source], check=True)
    return Command([made, scale], mode="server", input="csv")


def shell(scale: str, folder: Path) -> Command:
    interpreter("jq")
    epsilon = str(1 / float(scale))
    return Command(["sh", FOLDER / "noisy_count.sh", epsilon, "{draws}", "{seed}"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [node, shell, r, java, cpp],
    ids=lambda make: make.__name__,
)
def test_a_program_follows_the_protocol_and_is_judged(
    make: Callable[[str, Path], Command], tmp_path: Path
) -> None:
    honest, mutant = make("1", tmp_path), make("0.5", tmp_path)
    faults = {words: check() for words, check in checks(honest, [[0.0], [1.0]])}
    assert faults == dict.fromkeys(faults, "")
    assert len(faults) == 8 - 3 * (honest.mode == "once")
    options: dict[str, Any] = {"draws": 1500, "seed": 1, "settings": Settings(shrink=False)}
    result = audit(honest, PureDP(1.0), PAIR, mutants=[mutant], **options)
    assert result.verdict.words == "NOT REFUTED", result.summary()
    refuted = audit(mutant, PureDP(1.0), PAIR, mutants=None, **options)
    assert refuted.verdict.words == "REFUTED"
    assert refuted.certified_epsilon > 1.2
    honest.close()
    mutant.close()


def test_programs_are_short() -> None:
    files = sorted(FOLDER.iterdir())
    assert len(files) == 5
    assert all(len(file.read_text().splitlines()) <= 30 for file in files)


def test_values_outside_their_range_are_clipped(tmp_path: Path) -> None:
    made = node("1", tmp_path)
    rng = np.random.default_rng
    assert made([[9.0]], 3, rng=rng(1)).tolist() == made([[1.0]], 3, rng=rng(1)).tolist()
    made.close()
