"""Tests of the project that `dpaudit init` writes, whose CI jobs a shell runs here."""

from __future__ import annotations

import json
import os
import re
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
ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def gitlab_job(project: Path) -> Any:
    return yaml.safe_load((project / JOBS["gitlab"]).read_text(encoding="utf-8"))["audits"]


def gitlab(project: Path, source: str = "merge_request_event") -> int:
    """Run the job of GitLab without installing anything."""
    script = [line for line in gitlab_job(project)["script"] if not line.startswith("pip install")]
    return shell("\n".join(script), project, CI_PIPELINE_SOURCE=source)


def github(project: Path, **inputs: str) -> tuple[bool, list[str]]:
    """Run the steps of the action; return whether one fails, and the files that are uploaded."""
    given = {name: inputs.pop(name, about["default"]) for name, about in ACTION["inputs"].items()}
    assert not inputs

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], text)

    failed, uploads = False, []
    for step in ACTION["runs"]["steps"]:
        conditions = set(step.get("if", "").split(" && ")) - {""}
        if failed and "always()" not in conditions:
            continue
        if "inputs.sarif == 'true'" in conditions and given["sarif"] != "true":
            continue
        assert conditions <= {"always()", "inputs.sarif == 'true'"}
        if "run" in step:
            assert "${{" not in step["run"]  # the text of an input must not become a script
            environ = {name: filled(value) for name, value in step.get("env", {}).items()}
            failed |= shell(step["run"], project, **environ) != 0
        else:
            uploads += filled(step["with"].get("sarif_file") or step["with"]["path"]).split()
    return failed, uploads


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


def shell(script: str, where: Path, **more: str) -> int:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    summary = str(where / "summary.md")
    environ = {**os.environ, "PATH": path, "GITHUB_STEP_SUMMARY": summary, "COLUMNS": "120"} | more
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    return subprocess.run(command, cwd=where, env=environ, check=False).returncode


def test_the_action_fails_and_shows_what_got_worse(project: Path) -> None:
    failed, uploads = github(project)
    assert failed
    summary = (project / "summary.md").read_text(encoding="utf-8").lower()
    assert "newly refuted" in summary
    assert "2 audits in" in summary
    assert uploads == ["audits.sarif", "reports", "audits.xml"]
    assert all((project / name).exists() for name in uploads)


def test_the_gitlab_job_fails_and_keeps_the_comment(project: Path) -> None:
    assert gitlab(project) != 0
    assert "newly refuted" in (project / "audits.md").read_text(encoding="utf-8").lower()
    kept = gitlab_job(project)["artifacts"]
    for name in [*kept["paths"], kept["reports"]["junit"]]:
        assert (project / name).exists()


@pytest.mark.parametrize("has_baseline", [True, False])
def test_both_jobs_pass_where_nothing_got_worse(project: Path, has_baseline: bool) -> None:
    write(project, scale=1.0)
    if not has_baseline:
        shutil.rmtree(project / "baseline")
    assert gitlab(project) == 0
    assert not github(project)[0]


def test_both_jobs_run_with_more_draws_at_night(project: Path) -> None:
    write(project, scale=1.0)
    assert gitlab(project, source="schedule") == 0
    stored = json.loads((project / "reports" / "results.json").read_text(encoding="utf-8"))
    assert stored["run"]["profile"] == "full"
    workflow = yaml.load((project / JOBS["github"]).read_text(encoding="utf-8"), yaml.BaseLoader)
    assert workflow["on"]["schedule"]
    options = workflow["jobs"]["audits"]["steps"][-1]["with"]["options"]
    assert options.endswith("--profile ${{ github.event_name == 'schedule' && 'full' || 'quick' }}")


def test_inputs_reach_the_run_and_no_shell(project: Path) -> None:
    options = "audits/audit_noisy_mean.py --seed 3 $(touch hacked) ; touch hacked"
    failed, _ = github(project, options=options, out="else where", sarif="false")
    assert failed  # there is no such file
    assert not (project / "hacked").exists()
    assert github(project, options="--strict '")[0]  # a quote is open
    options = "audits/audit_noisy_mean.py --seed 3\n-k 'noisy_mean or nothing'"
    failed, uploads = github(project, options=options, out="out", baseline="none", sarif="false")
    assert not failed
    assert uploads == ["out", "audits.xml"]
    found = json.loads((project / "out" / "results.json").read_text(encoding="utf-8"))
    assert found["run"]["seed"] == 3
    assert len(found["audits"]) == 1


def test_the_github_job_installs_and_calls_the_action(project: Path) -> None:
    job = yaml.safe_load((project / JOBS["github"]).read_text(encoding="utf-8"))["jobs"]["audits"]
    *_, install, action = job["steps"]
    assert install["run"] == "pip install -r audits/requirements.txt"
    assert action["uses"] == f"dpaudit/dpaudit@v{metadata.version('dpaudit')}"


def test_files_that_exist_are_kept(baseline: Path, tmp_path: Path) -> None:
    kept = tmp_path / "audits" / "requirements.txt"
    kept.parent.mkdir()
    kept.write_text("mine", encoding="utf-8")
    (tmp_path / ".gitlab-ci.yml").symlink_to("nowhere")
    for ci in ("none", "github", "gitlab", "github"):
        assert shell(f"dpaudit init --ci {ci}", tmp_path) == 0
    assert kept.read_text(encoding="utf-8") == "mine"
    assert (tmp_path / ".gitlab-ci.yml").is_symlink()
    for name in ("audits/audit_noisy_mean.py", ".gitignore", JOBS["github"]):
        assert (tmp_path / name).read_bytes() == (baseline / name).read_bytes()


def test_a_version_is_fixed(baseline: Path) -> None:
    requirements = (baseline / "audits" / "requirements.txt").read_text(encoding="utf-8")
    names = ("dpaudit", "numpy", "scipy", "scikit-learn")
    assert requirements == "".join(f"{name}=={metadata.version(name)}\n" for name in names)


def test_git_ignores_what_the_jobs_write(project: Path) -> None:
    assert shell("env -u PYTHONDONTWRITEBYTECODE dpaudit run", project) == 1
    assert list(project.rglob("*.pyc"))
    github(project)
    assert shell("git init -q && git add --all", project) == 0
    listed = subprocess.run(["git", "ls-files"], cwd=project, capture_output=True, check=True)
    files = set(listed.stdout.decode().split())
    assert not any(name.startswith(("reports/", "audits.")) for name in files)
    assert not any(name.endswith(".pyc") for name in files)
    assert {"audits/audit_noisy_mean.py", "baseline/results.json"} <= files


def test_the_hook_runs_audits_again_if_code_changed(project: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    write(project, scale=1.0)
    stored = project / "reports" / "audits" / "audit_noisy.audit_noisy.json"
    assert shell(hook["entry"], project) == 0
    made = stored.read_bytes()
    assert shell(hook["entry"], project) == 0
    assert json.loads(stored.read_text(encoding="utf-8"))["verdict"] == "not_refuted"
    kept = stored.read_bytes() == made  # a new result takes another number of seconds
    write(project, scale=0.5)
    assert shell(hook["entry"], project) == 1
    assert json.loads(stored.read_text(encoding="utf-8"))["verdict"] == "refuted"
    assert kept
