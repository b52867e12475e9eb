"""The import direction of ARCHITECTURE.md, read off the imports."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dpaudit

ROOT = Path(__file__).parents[1]

# Rooms from the ground up; a room may import from its own floor and from those below.
FLOORS = [
    {"errors", "_validate", "_json"},
    {"relations", "_renyi"},
    {"claims", "oracles", "bounds", "noise"},
    {"divergence", "curves", "evidence", "results", "trials"},
    {"neighbors", "mechanisms", "events", "search"},
    {"finding", "engine", "computed", "sampled", "sequential", "smoothed", "planning"},
    {"ledger", "strategies"},
    {"store", "outcomes"},
    {"runner", "report"},
    {"plugin"},
    {"ledger_plugin"},
    {"session"},
    {"display", "invoke"},
    {"ledger_cli"},
    {"cli"},
]
# At the time of type checking, or inside the function that needs it.
LATE = {("results", "report"), ("plugin", "session")}
KNOWN = {room for rooms in FLOORS for room in rooms}
HOME = dpaudit._HOME
ONLY_IN = {
    "matplotlib": {"report/figures.py", "results.py"},
    "hypothesis": {
        "strategies.py",
        "ledger/boxes.py",
        "ledger/checks.py",
        "ledger/falsifying.py",
        "ledger/functions.py",
    },
    "pytest": {"plugin.py", "ledger_plugin.py", "session.py", "display.py", "invoke.py"},
    "sklearn": {"events/scores.py"},
    "jinja2": {"report/page.py"},
    "rich": {"display.py"},
    "click": {"cli.py", "ledger_cli.py", "invoke.py"},
}


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room(path):
    return path.relative_to(ROOT / "dpaudit").parts[0].removesuffix(".py")


def floor(name):
    return next(i for i, rooms in enumerate(FLOORS) if name in rooms)


@pytest.mark.parametrize("path", sources("dpaudit"), ids=lambda p: str(p.relative_to(ROOT)))
def test_rooms_import_downwards(path):
    here = room(path)
    if here == "__init__":
        return
    assert here in KNOWN, f"{here} has no floor"
    for module in imports(path):
        parts = module.split(".")
        if parts[0] != "dpaudit" or len(parts) == 1:
            continue
        there = HOME.get(parts[1], parts[1])
        if there == here or (here, there) in LATE:
            continue
        assert there in KNOWN, f"{there} has no floor"
        assert floor(there) <= floor(here), f"{here} must not import {there}"


def test_rooms_of_one_floor_do_not_need_each_other():
    edges = {
        (room(path), HOME.get(module.split(".")[1], module.split(".")[1]))
        for path in sources("dpaudit")
        for module in imports(path)
        if module.startswith("dpaudit.")
    }
    both = {(a, b) for a, b in edges if a != b and (b, a) in edges and (a, b) not in LATE}
    assert {pair for pair in both if (pair[1], pair[0]) not in LATE} == set()


@pytest.mark.parametrize("path", sources("dpaudit"), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_packages_stay_in_their_rooms(path):
    place = path.relative_to(ROOT / "dpaudit").as_posix()
    for module in imports(path):
        package = module.split(".")[0]
        assert place in ONLY_IN.get(package, {place}), f"{place} must not import {package}"


@pytest.mark.parametrize("path", sources("algorithms"), ids=lambda p: str(p.relative_to(ROOT)))
def test_algorithms_know_numpy_and_scipy_only(path):
    known = {"numpy", "scipy", "algorithms", *sys.stdlib_module_names}
    assert {module.split(".")[0] for module in imports(path)} <= known


def test_import_is_light():
    """`import dpaudit` and loading the plugin pull in nothing that they may not need."""
    code = (
        "import sys, dpaudit; import dpaudit.plugin, dpaudit.ledger_plugin;"
        "heavy = {'matplotlib', 'sklearn', 'jinja2', 'rich', 'click', 'hypothesis', 'pandas'};"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_plugin_alone_does_not_import_the_engine():
    """Every pytest session in the environment loads the plugin; it must cost nothing."""
    code = (
        "import sys, dpaudit.plugin, dpaudit.ledger_plugin;"
        "print(*sorted({'scipy', 'numpy', 'dpaudit.ledger'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_rows_of_a_ledger_are_read_stored_and_shown_without_hypothesis():
    code = (
        "import sys; sys.modules['hypothesis'] = None;"
        "import dpaudit.ledger.accounting, dpaudit.store, dpaudit.report.ledger, dpaudit.display;"
        "from dpaudit import statement; from dpaudit.ledger import LedgerVerdict, StatementResult;"
        "import dpaudit.cli"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("from dpaudit.ledger import Box", "checks of statements need hypothesis: pip install"),
        ("from dpaudit import strategies", "dpaudit.strategies needs hypothesis: pip install"),
    ],
)
def test_missing_hypothesis_is_said_in_one_sentence(code, words):
    code = f"import sys; sys.modules['hypothesis'] = None; {code}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert words in last
    assert last.endswith("'dpaudit[ledger]'")


@pytest.mark.parametrize("path", sources("dpaudit") + sources("algorithms"), ids=str)
def test_modules_stay_readable(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450
