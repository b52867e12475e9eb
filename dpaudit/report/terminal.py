"""What a run says in plain text, and the commands that redo it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from dpaudit.outcomes import OUTCOMES, outcome_of
from dpaudit.results import AuditResult
from dpaudit.store import AUDITS, Run, file_name


def finding(result: AuditResult, out: Path | None = None) -> str:
    """Return one finding in the words of the run, with the line that replays it.

    `out` is the directory of the stored results, where there is one.
    """
    return result.summary(outcome_of(result).word, replay_command(result, out))


def draws_used(result: AuditResult) -> str:
    """Return what a sequential audit spent of its budget; nothing for any other audit."""
    if result.sequential is None:
        return ""
    return f"{sum(result.draws.values()):,} of {result.sequential.budget:,} draws"


def replay_command(result: AuditResult, out: Path | None = None) -> str:
    """Return the command that makes the audit again, quoted for a shell."""
    if out is not None:
        return f"dpaudit replay {shlex.quote(str(out / AUDITS / file_name(result.id)))}"
    origin = result.origin
    if {"path", "item", "profile", "failure_prob"} <= set(origin):
        words = [
            "pytest",
            "--dpaudit",
            f"{origin['path']}::{origin['item']}",
            f"--dpaudit-profile={origin['profile']}",
            f"--dpaudit-seed={result.seed}",
            f"--dpaudit-failure-prob={origin['failure_prob']!r}",
        ]
        return shlex.join(words + ["--dpaudit-sequential"] * bool(origin.get("sequential")))
    return f"dpaudit.audit(..., seed={result.seed}, id={result.id!r})"


def run_lines(run: Run, results: Sequence[AuditResult], report: Path | None) -> list[str]:
    """Return the closing lines of a run."""
    count = "1 audit" if len(results) == 1 else f"{len(results)} audits"
    lines = [f"problem: {problem}" for problem in run.problems]
    keys = [outcome_of(result).key for result in results]
    tally = [f"{keys.count(k)} {o.word}" for k, o in OUTCOMES.items() if k in keys]
    if tally:
        lines.append(", ".join(tally))
    lines += [
        f"{count} in {run.seconds:.0f} s, profile {run.profile}, seed {run.seed}; "
        f"some certified number of this run is wrong with probability <= "
        f"{run.family_wise_error:.2g}"
    ]
    if run.skipped:
        lines.append(f"{len(run.skipped)} skipped, see above")
    if not run.complete:
        lines.append("interrupted: the same command with --resume takes over what is here")
    if report is not None:
        lines.append(f"report: {report}")
    return lines
