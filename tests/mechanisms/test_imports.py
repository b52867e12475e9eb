"""Tests of the files and packages that an audit depends on."""

from __future__ import annotations

import sys
import types
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from dpaudit.mechanisms import Dependencies, dependencies

FILES = {
    "audits/audit_one.py": "import direct\nfrom pkg import thing\nimport numpy, json, pytest.skip",
    "audits/audit_two.py": "def audit_two(auditor):\n    import late.module as m",
    "audits/audit_data.py": "import numpy as np\nnp.load('users.npy'), 'pkg.deep:run.x', 'no file'",
    "audits/audit_joined.py": "from pathlib import Path\nPath(__file__).parent / 'sub' / 'u.csv'",
    "audits/audit_options.py": "X = '--config=audits/sub/u.csv', 'late/module.py:f'",
    "audits/audit_named.py": "import importlib\nimportlib.import_module('direct')",
    "audits/audit_skips.py": "import pytest\npytest.importorskip('numpy')",
    "audits/audit_lazy.py": "import lazy",
    "audits/audit_star.py": "from star import *",
    "audits/audit_own_star.py": "from .inner import *",
    "audits/audit_compiled.py": "import fast",
    "audits/inner/__init__.py": "__all__ = ['one']",
    "audits/inner/one.py": "",
    "audits/sub/u.csv": "",
    "audits/users.npy": "",
    "pk/__init__.py": "",
    "pk/audits/__init__.py": "",
    "pk/audits/audit_in_package.py": "",
    "direct.py": "import indirect",
    "indirect.py": "import direct  # a cycle ends",
    f"fast{EXTENSION_SUFFIXES[0]}": "",
    "pkg/__init__.py": "from .thing import thing",
    "pkg/thing.py": "from . import deep\nfrom ..outside import x",
    "pkg/deep.py": "",
    "late/module.py": "",
    "lazy/__init__.py": "def __getattr__(name): ...",
    "lazy/hidden.py": "import direct",
    "star/__init__.py": "__all__ = ['inside']",
    "star/inside.py": "",
    "loaded.py": "",
    "lib/site-packages/theirs.py": "",
}
UNSEEN = {
    "computed": "import importlib\nfor n in 'ab': importlib.import_module(n)",
    "renamed": "from importlib import import_module as load\nload('direct')",
    "loaded": "from importlib.util import spec_from_file_location as f\nf('a', 'b')",
    "broken": "def",
    "deep": "-" * 20_000 + "1",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for name in ("loaded", "theirs"):
        module = types.ModuleType(name)
        place = "" if name == "loaded" else "lib/site-packages/"
        module.__file__ = str(tmp_path / f"{place}{name}.py")
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(project, *files):
    found = dependencies([project / file for file in files], project)
    paths = {file.relative_to(project).as_posix() for file in found.files} - set(files)
    return paths, found.packages


PKG = {"pkg/__init__.py", "pkg/thing.py", "pkg/deep.py"}
DIRECT = {"direct.py", "indirect.py"}


@pytest.mark.parametrize(
    ("name", "files", "packages"),
    [
        ("one", DIRECT | PKG, {"numpy", "pytest", "pluggy"}),
        ("two", {"late/module.py"}, set()),
        ("data", {"audits/users.npy", *PKG}, {"numpy"}),
        ("joined", {"audits/sub/u.csv"}, set()),
        ("options", {"audits/sub/u.csv", "late/module.py"}, set()),
        ("named", DIRECT, set()),
        ("skips", set(), {"numpy", "pytest", "pluggy"}),
        ("lazy", {"lazy/__init__.py", "lazy/hidden.py", *DIRECT}, set()),
        ("star", {"star/__init__.py", "star/inside.py"}, set()),
        ("own_star", {"audits/inner/__init__.py", "audits/inner/one.py"}, set()),
        ("compiled", {f"fast{EXTENSION_SUFFIXES[0]}"}, set()),
    ],
)
def test_an_audit_needs_what_it_imports_and_names(project, name, files, packages):
    paths, found = names(project, f"audits/audit_{name}.py")
    assert paths == files
    assert packages <= found
    assert bool(packages) == bool(found)
    assert not dependencies([project / f"audits/audit_{name}.py"], project).unseen


def test_python_runs_the_packages_around_a_file_first(project):
    found, _ = names(project, "pk/audits/audit_in_package.py")
    assert found == {"pk/__init__.py", "pk/audits/__init__.py"}


@pytest.mark.parametrize("name", UNSEEN)
def test_a_file_that_cannot_be_followed_is_named(project, name):
    (project / f"{name}.py").write_text(UNSEEN[name])
    (project / "user.py").write_text(f"import {name}")
    assert dependencies([project / "user.py"], project).unseen.startswith(f"{name}.py ")


def test_a_module_outside_of_the_project_is_named(project, monkeypatch, tmp_path_factory):
    module = types.ModuleType("elsewhere")
    module.__file__ = str(tmp_path_factory.mktemp("other") / "elsewhere.py")
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    (project / "user.py").write_text("import elsewhere")
    found = dependencies([project / "user.py"], project)
    assert found.unseen == "user.py imports elsewhere, which is outside of the project"


def test_files_that_are_no_code_of_the_project_are_not_read(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "other.py"
    outside.write_text("import direct")
    assert (
        dependencies([outside, project / "lib/site-packages/theirs.py"], project) == Dependencies()
    )
    (project / "named.py").write_text(f"'{outside}', '../other.py', 'a\\0b', '{'x' * 199}'")
    assert names(project, "named.py") == (set(), set())
