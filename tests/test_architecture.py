"""Tests of every import of every module against the packages of ARCHITECTURE.md."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import dpaudit
from tests.records import STORED_RUN, needs_a_run

ROOT = Path(__file__).parents[1]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
BASE = "errors, _validate, _json, _files"
ONLY_IN = {
    "matplotlib": {"results"},
    "hypothesis": {"properties", "ledger"},
    "pytest": {"run", "ledger"},
    "sklearn": {"events"},
    "jinja2": {"report"},
    "narwhals": {"data"},
    "latex2mathml": {"ledger"},
    "markdown_it": {"ledger"},
    "typst": {"ledger"},
    "rich": {"engine", "run", "ledger"},
    "click": {"run", "ledger"},
    "dp_accounting": {"claims"},
}
MOST_FLOORS = 12


def rooms_of(text):
    """Return the packages of the table, lowest first, each with the packages it may import."""
    rows = re.findall(r"^\| `([^`]+)` +\| ([^|]*) \|", text, flags=re.MULTILINE)
    return {room: set(re.findall(r"`([^`]+)`", below)) for room, below in rows}


ROOMS = rooms_of(ARCHITECTURE)


def sources(package):
    return sorted((ROOT / package).rglob("*.py"))


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sources("dpaudit")}
INNER = sorted(set(MODULES) - {"dpaudit"})


def room_of(module):
    name = module.split(".")[1]
    return BASE if name in BASE.split(", ") else name


@functools.cache
def imports(path):
    """Yield every import of a file, at the top or inside a function, as written."""
    return tuple(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from ((node.module, alias.name) for alias in node.names)


def arrows(module):
    """Yield the modules of dpaudit that a module imports, each with the import statement."""
    for target, name in imports(MODULES[module]):
        if target.split(".")[0] != "dpaudit":
            continue
        whole = f"{target}.{name}" if name else target
        yield (whole if whole in MODULES else target), target, name


def faults_of(module, rooms):
    """Yield the faults of the imports of one module."""
    here = room_of(module)
    for target, written, name in arrows(module):
        if target == "dpaudit":
            yield f"{module} must name the room of {name}"
        elif (there := room_of(target)) == here:
            continue
        elif there not in rooms[here]:
            yield f"{module} must not import from {there}"
        elif there != BASE and written.count(".") > 1 and target != "dpaudit.stats.oracles":
            yield f"{module} reaches into {there}: {written}"


@pytest.mark.slow
def test_modules_import_what_their_room_may():
    found = [fault for module in INNER for fault in faults_of(module, ROOMS)]
    assert not found, "\n".join(found)


def test_the_table_is_read_and_a_wrong_arrow_is_found():
    assert list(ROOMS)[-1] == "ledger"
    assert set(ROOMS["ledger"]) == set(ROOMS) - {"ledger"}
    assert not any("ledger" in below for below in ROOMS.values())
    narrower = {room: below - {"stats"} for room, below in ROOMS.items()}
    assert any(list(faults_of(module, narrower)) for module in INNER)


def test_every_module_has_a_room_and_every_room_a_module():
    assert {room_of(module) for module in INNER} == set(ROOMS)


def test_no_two_packages_export_one_name_for_different_things():
    exported = {}
    for room in set(ROOMS) - {BASE}:
        package = importlib.import_module(f"dpaudit.{room}")
        for name in getattr(package, "__all__", ()):
            exported.setdefault(name, {})[id(getattr(package, name))] = room
    assert {name: [*of.values()] for name, of in exported.items() if len(of) > 1} == {}


def test_no_lazy_package_exports_the_name_of_a_module():
    """An import of the module would replace the exported object by the module."""
    for stub in (ROOT / "dpaudit").rglob("__init__.pyi"):
        assert not re.findall(r"from \.(\w+) import \1 as", stub.read_text()), stub


def test_rooms_stand_on_few_floors_without_a_circle():
    known = list(ROOMS)
    for room, below in ROOMS.items():
        assert below <= set(known[: known.index(room)]), f"{room} must stand above {below}"
    floor = {}
    for room, below in ROOMS.items():
        floor[room] = 1 + max((floor[other] for other in below), default=0)
    assert max(floor.values()) <= MOST_FLOORS


def test_no_module_needs_itself():
    """No module may import itself indirectly, even inside a function.

    A public module re-exports its package, so public modules are omitted.
    """
    faces = {module_of(path) for path in sources("dpaudit") if path.name == "__init__.py"}
    graph = {
        module: {target for target, _, _ in arrows(module)} - faces
        for module in set(MODULES) - faces
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def packages_of(path):
    """Return the names of the packages that a file imports."""
    return {module.split(".")[0] for module, _ in imports(path)}


def test_heavy_packages_stay_in_their_rooms():
    for module in INNER:
        for package in packages_of(MODULES[module]) & set(ONLY_IN):
            assert room_of(module) in ONLY_IN[package], f"{module} imports {package}"


def test_algorithms_know_numpy_and_scipy_only():
    known = {"numpy", "scipy", "algorithms", *sys.stdlib_module_names}
    for path in sources("algorithms"):
        assert packages_of(path) <= known, path


def test_audits_do_not_import_tests():
    for path in sources("audits"):
        assert "tests" not in packages_of(path), path


def loaded(code, packages):
    """Return which of some packages are loaded after a piece of code ran."""
    code = f"import sys; {code}; print(*sorted({packages!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def test_import_is_light():
    """Check that `import dpaudit` and the plugin import no optional or slow package."""
    heavy = {"matplotlib", "sklearn", "jinja2", "rich", "click", "hypothesis", "pandas"}
    heavy |= {"dp_accounting", "opendp"}
    assert loaded("import dpaudit, dpaudit.run.plugin; dpaudit.Accounted", heavy) == ""


def test_plugin_alone_does_not_import_the_engine():
    """Check that the plugin alone does not import the engine.

    Every pytest session in the environment loads the plugin, so the plugin must load nothing else.
    """
    heavy = {"scipy", "numpy", "dpaudit.ledger"}
    assert loaded("import dpaudit.run.plugin", heavy) == ""


@pytest.mark.slow
def test_slow_parts_of_scipy_are_imported_where_they_are_used():
    heavy = {"scipy.stats", "scipy.optimize", "scipy.integrate", "scipy.fft"}
    assert loaded("import dpaudit.run.cli, dpaudit.engine, dpaudit.ledger.command", heavy) == ""


@pytest.mark.slow
def test_rows_of_a_ledger_are_read_stored_and_shown_without_hypothesis():
    code = (
        "import dpaudit.ledger.section, dpaudit.ledger.command, dpaudit.store, dpaudit.run.display;"
        "from dpaudit import statement; from dpaudit.ledger import LedgerVerdict, StatementResult;"
        "import dpaudit.run.cli"
    )
    assert loaded(code, {"hypothesis"}) == ""


def test_audits_and_statements_are_registered_alike():
    groups = ("dpaudit.kinds", "dpaudit.sections")
    names = [sorted(entry.name for entry in entry_points(group=group)) for group in groups]
    assert names == [["audit", "statement"]] * 2


@needs_a_run
def test_a_stored_run_is_read_and_shown_without_the_extra_of_the_ledger(tmp_path):
    code = (
        "import sys; sys.modules['hypothesis'] = sys.modules['latex2mathml'] = None\n"
        "from pathlib import Path; from dpaudit.report import write_report\n"
        "from dpaudit.store import by_kind, read_whole_run\n"
        f"run, records = read_whole_run(Path({str(STORED_RUN)!r}))\n"
        "rows = by_kind(records)['statement'][:9]\n"
        f"write_report(Path({str(tmp_path)!r}), run, rows); print(len(rows))"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ran.stdout == "9\n", ran.stderr
    assert "<code>" in (tmp_path / "ledger.html").read_text()


@pytest.mark.slow
def test_everything_on_the_face_can_be_imported():
    names = ", ".join(name for name in dpaudit.__dir__() if not name.startswith("_"))
    assert {"audit", "check_sensitivity", "strategies"} <= set(names.split(", "))
    subprocess.run([sys.executable, "-c", f"from dpaudit import {names}"], check=True)


def test_a_star_import_needs_no_extra_and_what_needs_one_names_it():
    code = (
        "import sys; sys.modules['hypothesis'] = sys.modules['matplotlib'] = None\n"
        "from dpaudit import *\n"
        "audit, PureDP, neighbors, ledger\n"
        "try:\n"
        "    from dpaudit import check_sensitivity\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "need the package hypothesis" in ran.stdout
    assert "pip install 'dpaudit[ledger]'" in ran.stdout
