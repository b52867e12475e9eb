"""Findings as lines of plain text."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.results import AuditResult
from dpaudit.store import AUDITS, Run, file_name


def finding_lines(result: AuditResult, word: str, out: str | None = None) -> list[str]:
    """Return one finding: verdict, witness, pair, numbers and the line that replays it.

    Parameters
    ----------
    result : AuditResult
        What was found.
    word : str
        The verdict in the words of the run, such as "REFUTED (known)".
    out : str, optional
        Directory of the stored results, for the replay line.
    """
    claim = result.claim
    source = f" ({claim['source']})" if claim["source"] else ""
    lines = [
        f"{word}  {result.id}",
        f"  mechanism  {result.mechanism}",
        f"  claim      {claim['words']}{source}",
        f"  witness    {result.witness.sentence()}",
        f"  pair       {result.pair}",
        f"  certified  epsilon >= {result.certified_epsilon:.4g} at delta = "
        f"{result.claimed_delta:g} (claimed {result.claimed_epsilon:.4g}); "
        f"delta >= {result.certified_delta:.3g} at epsilon = {result.claimed_epsilon:.4g}; "
        f"{chance(result)}",
        f"  reason     {result.reason}",
    ]
    if result.twin is not None:
        lines.append(
            f"  twin       {result.twin.name}: {result.twin.verdict.words}, "
            f"epsilon >= {result.twin.certified_epsilon:.4g}"
        )
    lines.append(f"  replay     {replay_command(result, out)}")
    return lines


def chance(result: AuditResult) -> str:
    """Say how sure the certified numbers are."""
    if result.failure_prob == 0:
        return "computed exactly"
    return f"wrong with probability <= {result.failure_prob:g}"


def replay_command(result: AuditResult, out: str | None = None) -> str:
    """Return the command that makes the audit again."""
    if out is not None:
        return f"dpaudit replay {out}/{AUDITS}/{file_name(result.id)}"
    if result.origin.get("kind") == "file":
        return (
            f"pytest --dpaudit '{result.origin['path']}::{result.origin['item']}' "
            f"--dpaudit-profile={result.origin['profile']} --dpaudit-seed={result.seed} "
            f"--dpaudit-failure-prob={result.origin['failure_prob']!r}"
        )
    return f"dpaudit.audit(..., seed={result.seed}, id={result.id!r})"


def run_lines(run: Run, results: Sequence[AuditResult], report: str | None) -> list[str]:
    """Return the closing lines of a run."""
    lines = [
        f"{len(results)} audits in {run.seconds:.0f} s, profile {run.profile}, seed {run.seed}; "
        f"some certified number of this run is wrong with probability <= "
        f"{run.family_wise_error:.2g}"
    ]
    lines += [f"problem: {problem}" for problem in run.problems]
    if report is not None:
        lines.append(f"report: {report}")
    return lines
