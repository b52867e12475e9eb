"""What a run says in plain text."""

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
    if audits or not records:
        line += (
            "; some certified number of this run is wrong with probability <= "
            f"{run.family_wise_error:.2g}"
        )
    lines.append(line)
    if adjusted := holm(audits):
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
        lines += [line for section, own in found for line in section.page_lines(report.parent, own)]
    return lines
