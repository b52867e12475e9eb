"""What `dpaudit compare` reads, prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dpaudit.run.invoke import FAILED, OK


def compare_runs(
    old: Path,
    new: Path,
    *,
    markdown: Path | None,
    json_file: Path | None,
    may_be_missing: bool,
    power_counts: bool,
    false_alarm: float,
) -> int:
    """Print what changed between two stored runs; return the exit code.

    Parameters
    ----------
    old, new : Path
        Directories of runs, or files of results.
    markdown, json_file : Path or None
        Where the comment of a pull request goes, and plain data.
    may_be_missing : bool
        Whether audits that are gone are not worse.
    power_counts : bool
        Whether less power is worse.
    false_alarm : float
        Probability, at most, that any epsilon is said to have moved that has not.
    """
    from dpaudit.report import (
        compare,
        comparison_json,
        comparison_lines,
        comparison_markdown,
        read_side,
    )
    from dpaudit.store import write_atomic

    found = compare(
        read_side(old),
        read_side(new),
        false_alarm=false_alarm,
        may_be_missing=may_be_missing,
        power_counts=power_counts,
    )
    for line in comparison_lines(found):
        click.echo(line)
    if markdown is not None:
        write_atomic(markdown, comparison_markdown(found))
    if json_file is not None:
        words = json.dumps(comparison_json(found), indent=1, allow_nan=False)
        write_atomic(json_file, words + "\n")
    return FAILED if found.worse else OK
