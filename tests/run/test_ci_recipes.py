"""Tests of the recipes of docs/ci.md, run by a shell instead of a CI runner."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow  # these tests run whole shells, with workers

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
AUDIT = """
import numpy as np
from dpaudit import NeighborPair, PureDP

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(scale={scale}, size=size)

def audit_noisy(auditor):
    pair = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
    auditor.check(noisy, PureDP(1.0), pair, draws=3000)
"""


def recipe(title: str) -> Any:
    section = PAGE.read_text(encoding="utf-8").partition(f"## {title}")[2]
    found = re.search(r"```yaml\n(.*?)```", section, flags=re.DOTALL)
    assert found is not None
    return yaml.safe_load(found.group(1))["jobs" if title == "GitHub Actions" else "audits"]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout with a stored run."""
    path = tmp_path_factory.mktemp("baseline")
    write(path, scale=1.0)
    assert shell("dpaudit run --strict --out baseline", path) == 0
    return path


@pytest.fixture
def project(baseline: Path, tmp_path: Path) -> Path:
    """Return a checkout whose noise was halved after the baseline."""
    shutil.copytree(baseline, tmp_path, dirs_exist_ok=True)
    write(tmp_path, scale=0.5)
    return tmp_path


def write(project: Path, scale: float) -> None:
    (project / "audit_noisy.py").write_text(AUDIT.format(scale=scale), encoding="utf-8")


def shell(script: str, where: Path) -> int:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    summary = str(where / "summary.md")
    environ = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": summary, "COLUMNS": "120"}
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(command, cwd=where, env=environ, check=False).returncode


def test_the_github_recipe_fails_and_shows_what_got_worse(project: Path) -> None:
    failed, uploads = False, []
    for step in recipe("GitHub Actions")["audits"]["steps"]:
        runs = not failed or step.get("if") == "always()"
        if runs and "run" in step and not step["run"].startswith("pip install"):
            failed |= shell(step["run"], project) != 0
        if runs and "upload" in step.get("uses", ""):
            uploads.append(step["with"].get("sarif_file") or step["with"]["path"])
    assert failed
    assert "newly refuted" in (project / "summary.md").read_text(encoding="utf-8").lower()
    assert uploads[0] == "audits.sarif"
    for name in " ".join(uploads).split():
        assert (project / name).exists()


def test_the_gitlab_recipe_fails_and_keeps_the_comment(project: Path) -> None:
    job = recipe("GitLab")
    script = [line for line in job["script"] if not line.startswith("pip install")]
    assert shell("\n".join(script), project) != 0
    assert "newly refuted" in (project / "comment.md").read_text(encoding="utf-8").lower()
    for name in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
        assert (project / name).exists()


def test_both_recipes_pass_where_nothing_got_worse(project: Path) -> None:
    write(project, scale=1.0)
    script = [line for line in recipe("GitLab")["script"] if not line.startswith("pip install")]
    assert shell("\n".join(script), project) == 0
    steps = recipe("GitHub Actions")["audits"]["steps"]
    runs = [step["run"] for step in steps if "run" in step and "pip" not in step["run"]]
    assert [shell(script, project) for script in runs] == [0, 0, 0]
