"""The closing lines of a run as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpaudit.report.sections import by_section, counted
from dpaudit.results import holm
from dpaudit.store import AUDIT, Record, StoredRun, by_kind


def run_lines(run: StoredRun, records: Sequence[Record], report: Path | None) -> list[str]:
    """Return the closing lines of a run."""
    lines = [f"problem: {problem}" for problem in run.problems]
    found = by_section(records)
    for section, own in found:
        lines += section.tally(own)
    line = f"{counted(records)} in {run.seconds:.0f} s, profile {run.profile}, seed {run.seed}"
    audits = by_kind(records)[AUDIT.name]
    if audits:
        line += (
            "; probability that any certified number of this run is wrong: at most "
            f"{run.family_wise_error:.2g}"
        )
    lines.append(line)
    if adjusted := holm(audits):
        many = f"the {len(adjusted)} refutations are" if len(adjusted) > 1 else "the refutation is"
        lines.append(
            f"{many} correct except with probability at most {max(adjusted.values()):.2g} (by "
            "Holm's method)"
        )
    lines += [f"history: {sentence}" for sentence in run.history]
    if run.skipped:
        lines.append(f"{len(run.skipped)} skipped (see above)")
    if not run.complete:
        lines.append("interrupted: repeat the command with --resume to run the rest")
    if report is not None:
        lines.append(f"report: {report}")
        lines += [line for section, own in found for line in section.page_lines(report.parent, own)]
    return lines
