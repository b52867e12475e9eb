"""What a run says in plain text, and the commands that redo it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from dpaudit.ledger import StatementResult
from dpaudit.properties import Role
from dpaudit.report.statements import (
    case_line,
    cases_words,
    counterexample_words,
    is_left_out,
    method_words,
    power_words,
    ratio_words,
    tally_lines,
)
from dpaudit.results import STATUSES, AuditResult, holm, short
from dpaudit.store import LEDGER, Run, place_of

_CASE = 400


def finding(result: AuditResult, out: Path | None = None) -> str:
    """Return one finding in the words of the run, with the line that replays it.

    `out` is the directory of the stored results, where there is one.
    """
    return result.summary(result.status.word, replay_command(result, out))


def draws_used(result: AuditResult) -> str:
    """Return what a sequential audit spent of its budget; nothing for any other audit."""
    if result.sequential is None:
        return ""
    return f"{sum(result.draws.values()):,} of {result.sequential.budget:,} draws"


def replay_command(result: AuditResult, out: Path | None = None) -> str:
    """Return the command that makes the audit again, quoted for a shell."""
    if out is not None:
        return f"dpaudit replay {shlex.quote(str(out / place_of(result)))}"
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


def statement_replay(result: StatementResult, out: Path | None = None) -> str:
    """Return the command that makes a check again; nothing for a row that was not checked."""
    origin = result.origin
    if not {"path", "item", "profile"} <= set(origin):
        return ""
    if out is not None:
        return f"dpaudit replay {shlex.quote(str(out / place_of(result)))}"
    words = [
        "pytest",
        "--dpaudit",
        f"{origin['path']}::{origin['item']}",
        f"--dpaudit-profile={origin['profile']}",
        f"--dpaudit-seed={result.seed}",
    ]
    return shlex.join(words)


def statement_facts(result: StatementResult) -> list[str]:
    """Return what a line says of a row beside verdict and id."""
    if result.method is None:
        return [result.note]
    words = [method_words(result)]
    if result.tightest is not None:
        words.append(f"ratio {ratio_words(result.tightest)}")
    if result.examples:
        words.append(cases_words(result))
    power = {
        "survived": "a mutant survived",
        "partly": "partly without a mutant",
        "no mutant": "no mutant",
        "weak": "weak",
    }
    words += [power[word] for word in power_words(result).split(", ") if word in power]
    return [*words, f"{result.seconds:.1f} s"]


def statement_finding(result: StatementResult, out: Path | None = None) -> str:
    """Return a row in the words of the run, with its counterexample and the line to replay it."""
    lines = [f"{result.status.word}  {result.id}", f"  statement  {result.statement}"]
    lines.append(f"  attacked   {', '.join(statement_facts(result))}")
    if result.repair_verdict is not None:
        lines.append(f"  repair     {result.repair_verdict.words}: {result.repair}")
    attempts = [*result.on_statement, *result.broken_steps, *result.made_on(Role.SHARPER)]
    if result.verdict is result.expected:  # what is new is that the repair broke, if it did
        attempts = [*result.made_on(Role.REPAIR), *attempts]
    for attempt in attempts:
        if (counterexample := attempt.counterexample) is not None:
            lines.append(f"  broken     {attempt.claim}")
            lines.append(f"  found      {counterexample_words(counterexample)}")
            lines.append(f"  where      {short(case_line(counterexample.case), _CASE)}")
            break
    if result.note:
        lines.append(f"  note       {result.note}")
    if command := statement_replay(result, out):
        lines.append(f"  replay     {command}")
    return "\n".join(lines)


def statement_lines(rows: Sequence[StatementResult]) -> list[str]:
    """Return the closing lines about statements; none where there are none."""
    return tally_lines(rows) if rows else []


def run_lines(
    run: Run,
    results: Sequence[AuditResult],
    report: Path | None,
    statements: Sequence[StatementResult] = (),
) -> list[str]:
    """Return the closing lines of a run."""
    count = "1 audit" if len(results) == 1 else f"{len(results)} audits"
    lines = [f"problem: {problem}" for problem in run.problems]
    keys = [result.status.key for result in results]
    tally = [f"{keys.count(k)} {o.word}" for k, o in STATUSES.items() if k in keys]
    if tally:
        lines.append(", ".join(tally))
    lines += statement_lines(statements)
    if any(not is_left_out(row) for row in statements):
        count = f"{count} and the ledger" if results else "the ledger"
    line = f"{count} in {run.seconds:.0f} s, profile {run.profile}, seed {run.seed}"
    if results or not statements:
        line += (
            "; some certified number of this run is wrong with probability <= "
            f"{run.family_wise_error:.2g}"
        )
    lines.append(line)
    if adjusted := holm(results):
        many = f"all {len(adjusted)} refutations are" if len(adjusted) > 1 else "the refutation is"
        lines.append(
            f"by Holm's step-down {many} right except with probability <= "
            f"{max(adjusted.values()):.2g}"
        )
    if run.skipped:
        lines.append(f"{len(run.skipped)} skipped, see above")
    if not run.complete:
        lines.append("interrupted: the same command with --resume takes over what is here")
    if report is not None:
        lines.append(f"report: {report}")
        lines += [f"ledger: {report.with_name(LEDGER)}"] * bool(statements)
        papers = dict.fromkeys(row.paper for row in statements)
        errata = (report.with_name(f"erratum-{paper}.md") for paper in papers)
        lines += [f"erratum: {erratum}" for erratum in errata if erratum.is_file()]
    return lines
