"""Tests of the files and packages that an audit depends on."""

from __future__ import annotations

import sys
import types

import pytest

from dpaudit.run.imports import needed

FILES = {
    "audits/audit_one.py": "import direct\nfrom pkg import thing\nimport numpy, json, pytest.skip",
    "audits/audit_two.py": "def audit_two(auditor):\n    import late.module as m",
    "audits/audit_data.py": "import numpy as np\nnp.load('users.npy'), 'pkg.deep:run', 'no file'",
    "audits/audit_named.py": "import importlib\nimportlib.import_module('direct')",
    "audits/audit_computed.py": "import importlib\nfor n in 'ab': importlib.import_module(n)",
    "audits/audit_lazy.py": "import lazy",
    "audits/audit_star.py": "from pkg import *",
    "audits/users.npy": "",
    "direct.py": "import indirect",
    "indirect.py": "import direct  # a cycle ends",
    "pkg/__init__.py": "from .thing import thing",
    "pkg/thing.py": "from . import deep\nfrom ..outside import x",
    "pkg/deep.py": "",
    "late/module.py": "",
    "lazy/__init__.py": "def __getattr__(name): ...",
    "lazy/hidden.py": "import direct",
    "loaded.py": "",
    "lib/site-packages/theirs.py": "",
    "broken.py": "def",
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
    found, packages = needed([project / file for file in files], project)
    return {file.relative_to(project).as_posix() for file in found} - set(files), packages


PKG = {"pkg/__init__.py", "pkg/thing.py", "pkg/deep.py"}
DIRECT = {"direct.py", "indirect.py"}


@pytest.mark.parametrize(
    ("name", "files", "packages"),
    [
        ("one", DIRECT | PKG, {"numpy", "pytest"}),
        ("two", {"late/module.py"}, set()),
        ("data", {"audits/users.npy", *PKG}, {"numpy"}),
        ("named", DIRECT, set()),
        ("computed", {"loaded.py"}, set()),
        ("lazy", {"lazy/__init__.py", "lazy/hidden.py", *DIRECT}, set()),
        ("star", PKG, set()),
    ],
)
def test_an_audit_needs_what_it_imports_and_names(project, name, files, packages):
    assert names(project, f"audits/audit_{name}.py") == (files, packages)


def test_files_that_are_no_code_of_the_project_are_not_read(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "other.py"
    outside.write_text("import direct")
    assert needed([outside, project / "lib/site-packages/theirs.py"], project) == (set(), set())
    assert names(project, "broken.py") == (set(), set())
    (project / "named.py").write_text(f"'{outside}', '../other.py', 'a\\0b', '{'x' * 199}'")
    assert names(project, "named.py") == (set(), set())
