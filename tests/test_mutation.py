"""Tests that the list of planted mistakes matches the code.

Running the planted mistakes is a benchmark, not a test.
"""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import mutation
from benchmarks.planted import MUTANTS, PACKAGES, Mutant

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.file}: {m.mistake}")
def test_every_mutant_still_applies_exactly_once_and_is_python(mutant: Mutant) -> None:
    text = (ROOT / "dpaudit" / mutant.file).read_text(encoding="utf-8")
    changed = mutation.planted(mutant, text)
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test


def test_no_two_mutants_are_the_same() -> None:
    assert max(Counter((m.file, m.old, m.new) for m in MUTANTS).values()) == 1


@pytest.mark.parametrize("package", PACKAGES)
def test_mutants_stand_in_the_file_of_their_package(package: str) -> None:
    assert {mutant.package for mutant in PACKAGES[package]} == {package}
    own = ROOT / "benchmarks" / "planted" / f"{package}.py"
    assert len(own.read_text(encoding="utf-8").splitlines()) <= 450


def test_every_package_that_decides_a_verdict_has_mutants() -> None:
    packages = Counter(mutant.package for mutant in MUTANTS)
    assert len(MUTANTS) >= 60
    for package in ("stats", "events", "engine", "mechanisms", "mutants", "ledger", "store"):
        assert packages[package] >= 6, package


@pytest.mark.parametrize("times", [0, 2])
def test_a_text_that_is_gone_or_no_longer_unique_is_refused(times: int) -> None:
    mutant = Mutant("stats/joint.py", "none", "a = b", "a = c", ())
    with pytest.raises(mutation.StaleError, match=rf"'a = b' must occur exactly once, got {times}"):
        mutation.planted(mutant, "".join(itertools.repeat("a = b\n", times)))


@pytest.mark.slow
def test_fates_are_told_apart(tmp_path: Path) -> None:
    tests = {
        "passes": "def test_it(): pass",
        "fails": "def test_it(): assert 0\ndef test_more(): assert 0",
        "breaks": "import no_such_module",
        "hangs": "import time\ndef test_it(): time.sleep(60)",
    }
    for name, text in tests.items():
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")

    def fate(name: str, limit: float = 120.0) -> tuple[str, str]:
        return mutation.run(tmp_path, (f"test_{name}.py",), limit)

    assert fate("passes") == ("survived", "")
    assert fate("fails") == ("killed", "test_fails.py::test_it")
    assert fate("breaks")[0] == "broken"
    assert fate("hangs", 5.0)[0] == "out of time"
