"""Tests of the mutants of a ledger: what is changed, what is noticed, and what is reported."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap
import time
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from dpaudit.errors import ArgumentError, StoreError
from dpaudit.ledger import Ledger, Statement
from dpaudit.ledger.mutation import (
    Laboratory,
    Outcome,
    _Child,
    _imported_files,
    _Work,
    mutate,
)
from dpaudit.ledger.source import source_mutants
from dpaudit.ledger.survivors import Mutants, Survivor, read_mutants, write_mutants
from dpaudit.neighbors import Interval
from dpaudit.properties import Array

ROOT = Path(__file__).parent.parent.parent


def changes(code: str, **options: object) -> dict[str, set[str]]:
    """Return the new code of all mutants, by old code."""
    found: dict[str, set[str]] = {}
    for mutant in source_mutants(textwrap.dedent(code), "m.py", most=10**6, **options):
        found.setdefault(mutant.old, set()).add(mutant.new)
    return found


# --- the changes ---


@pytest.mark.parametrize(
    ("expression", "old", "new"),
    [
        ("3.0 * x", "3.0", {"6.0", "1.5"}),
        ("x ** 2", "2", {"2.5", "1.5"}),
        ("x + y", "x + y", {"x", "y"}),
        ("x - y", "x - y", {"x", "(x + y)"}),
        ("x * y", "x * y", {"x", "y"}),
        ("x / y", "x / y", {"x"}),
        ("-x", "-x", {"x"}),
        ("min(x, y)", "min(x, y)", {"max(x, y)", "x", "y"}),
        ("x.sum()", "x.sum()", {"x.max()"}),
        ("math.sqrt(x)", "math.sqrt(x)", {"x"}),
        ("x.clip(y, z)", "x.clip(y, z)", {"x"}),
        ("math.log(x)", "math.log(x)", {"math.log2(x)"}),
        ("x < y", "x < y", {"(x > y)", "(x <= y)"}),
        ("x and y", "x and y", {"(x or y)", "(x)", "(y)"}),
        ("x if y else z", "x if y else z", {"x", "z"}),
        ("x[:y]", "x[:y]", {"x"}),
        ("x[1]", "1", {"2"}),
        ("range(x)", "range(x)", {"range(x - 1)"}),
    ],
)
def test_each_part_of_a_formula_is_changed(expression: str, old: str, new: set[str]) -> None:
    found = changes(f"import math\n\ndef f(x, y, z):\n    return {expression}\n")
    assert found[old] == new


@pytest.mark.parametrize(
    ("head", "call"),
    [
        ("from jax import numpy as jnp", "jnp.sqrt(x)"),
        ("import scipy.special", "scipy.special.sqrt(x)"),
        ("", "self.clip(x)"),
        ("", "ball.project(x)"),
    ],
)
def test_a_call_of_a_module_or_of_this_object_is_replaced_by_its_argument(
    head: str, call: str
) -> None:
    assert changes(f"{head}\n\ndef f(self, x, ball):\n    return {call}\n")[call] == {"x"}


def test_budgets_and_checks_of_arguments_are_not_changed() -> None:
    code = """
    def f(x, n):
        n = _validate.integer("n", n, at_least=1)
        if n > 7:
            raise ValueError("n must be at most 7")
        guard(x)
        return x.sum(axis=0)

    def guard(x):
        if x < 5:
            raise ValueError
    """
    assert changes(code) == {"x.sum(axis=0)": {"x.max(axis=0)"}}


def test_of_a_check_only_its_formulas_are_changed() -> None:
    code = """
    @statement("p.a")
    def check(ledger):
        domain = {"x": Interval(0.0, 5.0)}

        @ledger.falsify("words", factor=3.0, mutant={"factor": 1.5}, examples=70, **domain)
        def sides(x, factor):
            return x, factor * x

    def less_than_true(x):
        return 4.0

    BAD = {"mutant": {"bound": less_than_true}}
    """
    found = changes(code, checks=True)
    assert found == {"3.0": {"6.0", "1.5"}, "factor * x": {"factor", "x"}}


def test_lines_take_turns_if_there_are_more_mutants_than_wanted() -> None:
    code = "def f(x):\n" + "".join(f"    x = x * {n}.5 + {n}\n" for n in range(2, 6))
    lines = [m.line for m in source_mutants(code + "    return x\n", most=4)]
    assert lines == [2, 3, 4, 5]


def test_the_attempts_of_a_check_share_its_mutants_and_right_sides_come_first() -> None:
    code = """
    @statement("p.a")
    def check(ledger):
        @ledger.falsify("first", **domain)
        def first(x, m):
            scale = np.sqrt(x) + 5 * x - 2 * m
            left = np.minimum(3 * x, scale)
            if x < 2 * m:
                return None
            bound = 7 * m
            return 4 * left, bound

        @ledger.falsify("second", **domain)
        def second(x, m):
            return 4 * (x + 3), x / m
    """
    found = source_mutants(textwrap.dedent(code), "m.py", most=4, checks=True)
    assert [mutant.old for mutant in found] == ["7 * m", "7", "7 * m", "x / m"]
    assert {mutant.side for mutant in found} == {"right"}
    most = source_mutants(textwrap.dedent(code), "m.py", most=10**6, checks=True)
    assert not any(mutant.side == "left" for mutant in most)
    assert {"x < 2 * m", "7", "x / m"} <= {mutant.old for mutant in most}


@pytest.mark.parametrize(
    "folder",
    [
        "algorithms/common",
        pytest.param("algorithms", marks=pytest.mark.slow),
        pytest.param("audits", marks=pytest.mark.slow),
    ],
)
def test_every_mutant_of_this_repository_compiles(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for mutant in source_mutants(source, path.name, most=3, checks=folder == "audits"):
            changed = mutant.applied(source)
            ast.parse(changed)
            assert changed != source


# --- running them ---

ALGORITHM = """
import numpy as np

def clipped_mean(values, bound):
    total = 0.0
    for value in values:
        total += min(value, bound)
    return total / len(values)

def blocks(values):
    return values[:1000]

def nobody_runs_this(x):
    return 2 * x
"""

LEDGER = """
import numpy as np
from toy_code.clipping import blocks, clipped_mean
from dpaudit import statement
from dpaudit.neighbors import Interval
from dpaudit.properties import Array

def printed(values, bound):
    return sum(v if v < bound else bound for v in values) / len(values)

@statement("toy.alg1")
def lines(ledger):
    '''The mean of the values, clipped from above.'''
    @ledger.identity(values=Array(Interval(-1.0, 1.0), (3,)), bound=Interval(-0.5, 0.5), HOLLOW)
    def run(values, bound, factor):
        return clipped_mean(blocks(values), bound), factor * printed(values, bound)

@statement("toy.lemma1")
def bounded(ledger):
    '''The clipped mean is at most twice the bound.'''
    @ledger.falsify(values=Array(Interval(0.0, 1.0), (3,)), bound=Interval(0.1, 0.5), factor=2.0,
                    mutant={"factor": 0.9})
    def sides(values, bound, factor):
        return clipped_mean(values, bound), factor * bound
"""

STATEMENTS = """
# A toy

- algorithms: toy_code/clipping.py

## toy.alg1: Algorithm 1

The mean of the values, clipped from above.

## toy.lemma1: Lemma 1

The clipped mean is at most twice the bound.
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a small project, whose modules are imported only by forked processes."""
    (tmp_path / "toy_code").mkdir()
    (tmp_path / "audits" / "toy").mkdir(parents=True)
    (tmp_path / "toy_code" / "clipping.py").write_text(ALGORITHM)
    text = LEDGER.replace("HOLLOW", 'factor=1.0, mutant={"factor": 1.1}, examples=30')
    (tmp_path / "audits" / "toy" / "ledger_toy.py").write_text(text)
    (tmp_path / "audits" / "toy" / "statements.md").write_text(STATEMENTS)
    return tmp_path


def laboratory(project: Path) -> Laboratory:
    return Laboratory(project / "audits" / "toy", project, most=20)


@pytest.mark.slow
def test_a_mutant_of_an_algorithm_is_killed_or_listed(project: Path) -> None:
    fates = laboratory(project).mutate_algorithms(["toy_code/clipping.py"])
    outcomes = {fate.mutant.id.partition("::")[2]: fate.outcome for fate in fates}
    assert outcomes["clipped_mean: min(value, bound) -> value"] is Outcome.KILLED
    assert outcomes["clipped_mean: total / len(values) -> total"] is Outcome.KILLED
    assert outcomes["blocks: values[:1000] -> values"] is Outcome.SURVIVED
    assert outcomes["nobody_runs_this: 2 -> 4"] is Outcome.NOT_RUN
    own = [fate for fate in fates if fate.mutant.function == "clipped_mean"]
    assert {fate.outcome for fate in own} == {Outcome.KILLED}


@pytest.mark.slow
def test_a_hollow_check_notices_nothing(project: Path) -> None:
    path = project / "audits" / "toy" / "ledger_toy.py"
    hollow = path.read_text().replace("factor * printed(values, bound)",
                                      "factor * clipped_mean(values, bound)")  # fmt: skip
    path.write_text(hollow.replace("HOLLOW", ""))
    table = project / "audits" / "toy" / "statements.md"
    table.write_text(STATEMENTS.replace("- algorithms: toy_code/clipping.py\n", ""))
    fates = laboratory(project).mutate_algorithms(["toy_code/clipping.py"])
    outcomes = {fate.mutant.id.partition("::")[2]: fate.outcome for fate in fates}
    assert outcomes["clipped_mean: total / len(values) -> total"] is Outcome.KILLED  # by the lemma
    assert outcomes["clipped_mean: min(value, bound) -> bound"] is Outcome.SURVIVED


@pytest.mark.slow
def test_a_mutant_of_a_statement_is_killed_weaker_or_loose(project: Path) -> None:
    fates = laboratory(project).mutate_statements()
    outcomes = {fate.mutant.id.partition("::")[2]: fate.outcome for fate in fates}
    assert outcomes["bounded: 2.0 -> 4.0"] is Outcome.WEAKER
    assert outcomes["bounded: 2.0 -> 1.0"] is Outcome.LOOSE
    assert outcomes["printed: v < bound -> (v > bound)"] is Outcome.KILLED
    assert outcomes["printed: v < bound -> (v <= bound)"] is Outcome.OTHER
    loose = next(fate for fate in fates if fate.outcome is Outcome.LOOSE)
    assert loose.tightest == pytest.approx(1.0)
    assert loose.rows == ("toy.lemma1",)


@pytest.mark.slow
def test_a_formula_that_cannot_be_computed_kills_nothing(project: Path) -> None:
    path = project / "audits" / "toy" / "ledger_toy.py"
    text = path.read_text().replace("factor * bound\n", "factor * np.cumsum([bound]).sum()\n")
    path.write_text(text)
    fates = laboratory(project).mutate_statements()
    broken = next(fate for fate in fates if fate.mutant.new == "[bound]")  # has no method `sum`
    assert broken.outcome is Outcome.OTHER
    kept = next(fate for fate in fates if fate.mutant.new == "4.0")
    assert kept.outcome is Outcome.WEAKER


def ended() -> None:
    """End this process while a child of it still holds the pipe."""
    if os.fork() == 0:
        time.sleep(60)
    os._exit(3)


def test_a_process_that_was_killed_is_not_waited_for() -> None:
    with pytest.raises(RuntimeError, match="the process ended"):
        _Child(ended).result()


def test_a_check_depends_on_the_files_that_its_file_imports(tmp_path: Path) -> None:
    files = {
        "a/__init__.py": "",
        "a/one.py": "import numpy\nimport b.deep.two\nfrom . import near\n",
        "a/near.py": "def later():\n    from .far import CONSTANT\n",
        "a/far.py": "CONSTANT = 3\n",
        "a/other.py": "",
        "b/__init__.py": "",
        "b/deep/two.py": "from b import three\n",
        "b/three.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = _imported_files(tmp_path / "a" / "one.py", tmp_path)
    assert found == set(files) - {"a/other.py"}


def spin() -> None:
    """Use the processor for ever."""
    while True:
        pass


def test_a_mutant_that_does_not_end_is_killed() -> None:
    mutant = source_mutants("def f(x):\n    return x + 1\n", "m.py", most=1)[0]
    child = _Child(spin, limit=0.5)
    wait([child.connection], timeout=60)
    fate = child.fate(_Work(mutant, [], (), "key"))
    assert (fate.outcome, fate.by) == (Outcome.KILLED, "time")


@pytest.mark.slow
def test_results_are_written_with_their_reasons_and_kept(project: Path) -> None:
    lab, cache = laboratory(project), project / "reports" / "mutants.json"
    found, new = mutate(lab, cache)
    ids = {hole.id for hole in new}
    survivor = "toy_code/clipping.py::blocks: values[:1000] -> values"
    assert survivor in ids
    assert "toy_code/clipping.py::nobody_runs_this: 2 * x -> x" in ids
    file = lab.folder / "mutants.md"
    text = file.read_text()
    assert read_mutants(file) == found
    text = text.replace(f"- `{survivor}`", f"- `{survivor}`: no list is as long as 1000")
    text += "\n## Left out\n\n- `toy_code/clipping.py::nobody_runs_this`: it is an example\n"
    file.write_text(text)

    seen = []
    again, new = mutate(Laboratory(lab.folder, lab.root, most=20, shown=seen.append), cache)
    assert new == ()
    assert seen
    assert not any("nobody" in hole.id for hole in again.survivors)
    kept = next(hole for hole in again.survivors if hole.id == survivor)
    assert kept.why == "no list is as long as 1000"
    assert kept not in again.holes


@pytest.mark.slow
def test_the_command_fails_for_mutants_that_it_did_not_know(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")

    def run() -> subprocess.CompletedProcess[str]:
        program = "from dpaudit.run.cli import main; main()"
        words = [sys.executable, "-c", program, "ledger", "toy", "--mutants"]
        return subprocess.run(words, cwd=project, capture_output=True, text=True)

    first = run()
    assert first.returncode == 1, first.stderr
    assert "toy: mutants of algorithms:" in first.stdout
    second = run()
    assert second.returncode == 0, second.stderr
    assert ", 0 are new" in second.stdout
    page = (project / "reports" / "ledger.html").read_text()
    assert "would not have noticed" in page
    assert "Mutants of the statement that survive" in page


# --- the file of survivors ---


def test_the_file_of_mutants_is_read_as_it_is_written(tmp_path: Path) -> None:
    found = Mutants(
        "3f2a",
        {"killed": 12, "weaker": 3},
        {"killed": 5, "not run": 1},
        (
            Survivor("audits/p/l.py::f: 2 -> 1", "loose", ("p.a", "p.b"), 0.5, "the sharper claim"),
            Survivor("audits/p/l.py::f: g(x) -> x", "late", ("p.a",), 0.97),
            Survivor("algorithms/p.py::f: a -> b", "survived"),
            Survivor("algorithms/p.py::g: 1 -> 2", "not run", why="it draws pictures"),
        ),
        {"algorithms/p.py::h": "it divides the work"},
    )
    write_mutants(tmp_path / "mutants.md", "A paper", found)
    assert read_mutants(tmp_path / "mutants.md") == found
    assert [hole.id for hole in found.holes] == [
        "audits/p/l.py::f: g(x) -> x",
        "algorithms/p.py::f: a -> b",
    ]
    assert read_mutants(tmp_path / "absent.md") == Mutants()


@pytest.mark.parametrize("line", ["## Nothing", "- no code", "## Left out\n\n- `a::b`"])
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "mutants.md").write_text(f"# Mutants\n\n{line}\n")
    with pytest.raises(StoreError, match=r"mutants.md:\d must be"):
        read_mutants(tmp_path / "mutants.md")


# --- two sources for two sides ---


def test_a_row_whose_two_sides_call_one_function_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(project)
    (project / "planted_algorithm.py").write_text(ALGORITHM)
    (project / "planted_row.py").write_text(
        "from planted_algorithm import clipped_mean\n"
        "def both(values):\n    other = clipped_mean(values, 1.0)\n"
        "    return clipped_mean(values, 0.5), 2 * other\n"
        "def one(values):\n    return clipped_mean(values, 0.5), values.sum()\n"
    )
    import planted_row

    def ledger() -> Ledger:
        row = Statement("toy.a", "toy", text="x")
        return Ledger(row, algorithms=[project / "planted_algorithm.py"])

    domain = {"values": Array(Interval(0.0, 1.0), (3,))}
    with pytest.raises(ArgumentError, match=r"both call planted_algorithm.clipped_mean"):
        ledger().falsify(**domain)(planted_row.both)
    with pytest.raises(ArgumentError, match="must have two sources"):
        ledger().sweep(values=[[0.5, 0.5]])(planted_row.both)
    ledger().falsify(shared="the claim compares two bounds", **domain)(planted_row.both)
    ledger().falsify(**domain)(planted_row.one)
    Ledger(Statement("toy.a", "toy", text="x")).falsify(**domain)(planted_row.both)
