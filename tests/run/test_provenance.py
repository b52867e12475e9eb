"""Tests of the dependencies of a record's numbers, and of changes of these dependencies."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

import dpaudit
from dpaudit import NeighborPair, PureDP, audit
from dpaudit.mechanisms import is_installed, is_own
from dpaudit.run.provenance import (
    changed_sources,
    changed_versions,
    is_current,
    provenance,
    versions,
)
from dpaudit.run.settings import RunSettings


def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


RESULT = audit(noisy, PureDP(1.0), NeighborPair([[0.0]], [[1.0]]), draws=100, seed=0, mutants=None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a project with two loaded modules.

    One of these modules is installed inside the project.
    """
    for name in ("mine.py", "lib/site-packages/theirs.py", "notes.txt"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        module = types.ModuleType(file.stem)
        module.__file__ = str(file)
        monkeypatch.setitem(sys.modules, file.stem, module)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record(origin):
    return RESULT.with_origin({**RunSettings().origin(), **origin}, None)


def sources(project):
    return provenance([project / "mine.py"], project)["sources"]


def test_sources_are_files_of_the_project_and_dpaudit_as_a_whole(project):
    found = sources(project)
    assert set(found) == {"dpaudit", "mine.py"}
    assert all(len(digest) == 12 for digest in found.values())
    assert changed_sources({"sources": found}) == []
    (project / "mine.py").write_text("changed")
    assert changed_sources({"sources": found}) == ["mine.py"]
    (project / "mine.py").unlink()
    assert changed_sources({"sources": {**found, "dpaudit": "0"}}) == ["dpaudit", "mine.py"]
    assert changed_sources({}) == []


def test_a_large_file_is_compared_by_its_size_and_time(project, monkeypatch):
    monkeypatch.setattr("dpaudit.run.provenance._LARGEST", 2)
    found = sources(project)
    assert changed_sources({"sources": found}) == []
    (project / "mine.py").write_text("12345678")
    assert changed_sources({"sources": found}) == ["mine.py"]


def test_what_is_installed_is_nobody_s_own(project):
    assert is_own(project / "mine.py", project)
    assert not is_own(project / "lib" / "site-packages" / "theirs.py", project)
    assert is_own(project / "notes.txt", project)
    assert not is_own(project / "absent.py", project)
    assert not is_own(Path(dpaudit.__file__).resolve(), Path("/"))
    assert is_installed(Path(types.__file__).resolve())
    assert not is_installed(project / "mine.py")


def test_versions_that_differ_are_named():
    now = versions()
    assert {"python", "numpy", "dpaudit", "hypothesis"} <= set(now)
    assert changed_versions({"versions": now}) == []
    assert changed_versions({"versions": {**now, "numpy": "0.1"}}) == [
        f"numpy 0.1 then, {now['numpy']} now"
    ]
    del now["numpy"]  # this must not change the cached versions
    assert "numpy" in versions()
    assert changed_versions({}) == []
    assert changed_versions({"versions": {**versions(), "": "1", "gone": "1"}}) == [
        " 1 then, none now",
        "gone 1 then, none now",
    ]


def test_a_record_is_current_until_anything_changes(project):
    origin = {"sources": sources(project), "versions": versions()}
    known = record(origin)
    assert is_current(known, RunSettings())
    assert is_current(known, RunSettings(strict=True, time_limit=1.0))
    for other in (
        RunSettings("full"),
        RunSettings(seed=1),
        RunSettings(failure_prob=1e-5),
        RunSettings(sequential=True),
    ):
        assert not is_current(known, other)
    assert not is_current(replace(known, seed=1), RunSettings())
    assert not is_current(record({"sources": sources(project)}), RunSettings())
    assert not is_current(record({"versions": versions()}), RunSettings())
    assert not is_current(record({**origin, "versions": {"numpy": "0.1"}}), RunSettings())
    (project / "mine.py").write_text("changed")
    assert not is_current(known, RunSettings())
