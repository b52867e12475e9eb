"""Tests of the project that `dpaudit init` writes, whose CI jobs a shell runs here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.slow  # these tests run whole shells, with workers

AUDIT = """
import numpy as np
from dpaudit import NeighborPair, PureDP

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(scale={scale}, size=size)

def audit_noisy(auditor):
    pair = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))
    auditor.check(noisy, PureDP(1.0), pair, draws=3000)
"""


JOBS = {"github": ".github/workflows/audits.yml", "gitlab": ".gitlab-ci.yml"}


def job_in(project: Path, ci: str) -> Any:
    found = yaml.safe_load((project / JOBS[ci]).read_text(encoding="utf-8"))
    return found["jobs"]["audits"] if ci == "github" else found["audits"]


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new project with both jobs and a stored run."""
    path = tmp_path_factory.mktemp("baseline")
    assert shell("dpaudit init && dpaudit init --ci gitlab", path) == 0
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
    (project / "audits" / "audit_noisy.py").write_text(AUDIT.format(scale=scale), encoding="utf-8")


def shell(script: str, where: Path) -> int:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    summary = str(where / "summary.md")
    environ = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": summary, "COLUMNS": "120"}
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(command, cwd=where, env=environ, check=False).returncode


def test_the_github_job_fails_and_shows_what_got_worse(project: Path) -> None:
    failed, uploads = False, []
    for step in job_in(project, "github")["steps"]:
        runs = not failed or step.get("if") == "always()"
        if runs and "run" in step and not step["run"].startswith("pip install"):
            failed |= shell(step["run"], project) != 0
        if runs and "upload" in step.get("uses", ""):
            uploads.append(step["with"].get("sarif_file") or step["with"]["path"])
    assert failed
    summary = (project / "summary.md").read_text(encoding="utf-8").lower()
    assert "newly refuted" in summary
    assert "2 audits in" in summary
    assert uploads[0] == "audits.sarif"
    for name in " ".join(uploads).split():
        assert (project / name).exists()


def test_the_gitlab_job_fails_and_keeps_the_comment(project: Path) -> None:
    job = job_in(project, "gitlab")
    script = [line for line in job["script"] if not line.startswith("pip install")]
    assert shell("\n".join(script), project) != 0
    assert "newly refuted" in (project / "comment.md").read_text(encoding="utf-8").lower()
    for name in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
        assert (project / name).exists()


@pytest.mark.parametrize("has_baseline", [True, False])
def test_both_jobs_pass_where_nothing_got_worse(project: Path, has_baseline: bool) -> None:
    write(project, scale=1.0)
    if not has_baseline:
        shutil.rmtree(project / "baseline")
    script = [line for line in job_in(project, "gitlab")["script"] if "pip" not in line]
    assert shell("\n".join(script), project) == 0
    runs = [step["run"] for step in job_in(project, "github")["steps"] if "run" in step]
    assert [shell(script, project) for script in runs if "pip" not in script] == [0, 0, 0]


def test_files_that_exist_are_kept(baseline: Path, tmp_path: Path) -> None:
    kept = tmp_path / "audits" / "requirements.txt"
    kept.parent.mkdir()
    kept.write_text("mine", encoding="utf-8")
    (tmp_path / ".gitlab-ci.yml").symlink_to("nowhere")
    for ci in ("none", "github", "gitlab", "github"):
        assert shell(f"dpaudit init --ci {ci}", tmp_path) == 0
    assert kept.read_text(encoding="utf-8") == "mine"
    assert (tmp_path / ".gitlab-ci.yml").is_symlink()
    for name in ("audits/audit_noisy_mean.py", JOBS["github"]):
        assert (tmp_path / name).read_bytes() == (baseline / name).read_bytes()


def test_a_version_is_fixed(baseline: Path) -> None:
    requirements = (baseline / "audits" / "requirements.txt").read_text(encoding="utf-8")
    assert requirements == f"dpaudit=={metadata.version('dpaudit')}\n"
