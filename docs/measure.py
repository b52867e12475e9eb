"""Repeat the measurements of `docs/measured/`, and write them into the pages.

    python docs/measure.py [--list] [--again] [WORDS ...]

A measurement on a page is a command, its output, and one line that says when, on which commit and
on which machine it ran:

    ```sh measured
    python -m benchmarks.tightness
    ```

    ```text
    (the output; an output that is a Markdown table stands here without a fence)
    ```

    Measured on 29 November 2026 on commit 0123abcd, in 12 minutes on 2 cores (AMD EPYC).

A measurement is current if the code that it runs, `MEASURED`, has not changed since that commit.
All measurements that are not current run in turn, and each is written into its page when it ends.
So an interrupted run continues where it stopped. Commit changes of the code before. WORDS select
the measurements whose page or command contains at least one of them. `--again` repeats current
ones, too, and `--list` runs nothing.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEASURED = (
    *("dpaudit", "benchmarks", "audits", "algorithms", "mutants"),
    *("pyproject.toml", "constraints.txt"),
)
"""Files and directories on which the measurements depend."""

_BLOCK = re.compile(
    r"^```sh measured\n(?P<command>[^\n]+)\n```\n\n"
    r"(?P<result>(?:(?!^```sh measured$).)*?^Measured on (?P<stamp>[^\n]*)$)",
    re.M | re.S,
)


@dataclass(frozen=True)
class Measurement:
    """A command on a page, and the commit of its output."""

    page: Path
    command: str
    commit: str

    @property
    def is_current(self) -> bool:
        """Whether the code that it depends on is as on the commit of its output."""
        return bool(self.commit) and not _git("diff", "--quiet", self.commit, "--", *MEASURED)[0]

    def run(self) -> bool:
        """Run the command, and write its output into the page; return whether it succeeded."""
        began, before = time.perf_counter(), state()
        ran = subprocess.run(
            ["bash", "-c", self.command],
            cwd=ROOT,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if ran.returncode:
            print(f"{self.command} ended with exit code {ran.returncode}:\n{ran.stdout}")
            return False
        if state() != before:
            print(f"the code changed while {self.command} ran, so its output was not written")
            return False
        result = f"{framed(ran.stdout)}\n\nMeasured on {stamp(time.perf_counter() - began)}"

        def renewed(found: re.Match[str]) -> str:
            if found["command"] != self.command:
                return found[0]
            return found[0][: found.start("result") - found.start()] + result

        text = _BLOCK.sub(renewed, self.page.read_text(encoding="utf-8"))
        beside = self.page.with_suffix(".new")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.page)
        return True


def framed(printed: str) -> str:
    """Return the output of a command as Markdown."""
    lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return lines if "\n|---" in lines else f"```text\n{lines}\n```"


def state() -> tuple[str, str]:
    """Return the commit, and the changes of the measured code that are not committed."""
    changes = _git("status", "--porcelain", "--", *MEASURED)[1]
    return _git("rev-parse", "--short=8", "HEAD")[1].strip(), changes


def stamp(seconds: float) -> str:
    """Return the date, the commit, the time and the machine of a measurement."""
    today = datetime.date.today()
    took = f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    return (
        f"{today.day} {today:%B %Y} on commit {state()[0]}, in {took} on {os.cpu_count()} cores "
        f"({_processor()})."
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name\s*: (.+)$", text, re.M)
    return found[1].strip() if found else platform.processor() or platform.machine()


def _git(*arguments: str) -> tuple[int, str]:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout


def measurements(pages: list[Path]) -> Iterator[Measurement]:
    """Yield the measurements of pages, in order."""
    for page in pages:
        for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            commit = re.search(r"commit (\w+)", found["stamp"])
            yield Measurement(page, found["command"], commit[1] if commit else "")


def main() -> int:
    """Run the selected measurements; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORDS")
    parser.add_argument("--again", action="store_true", help="repeat current measurements, too")
    parser.add_argument("--list", action="store_true", help="list them, and run nothing")
    asked = parser.parse_args()
    chosen = [
        one
        for one in measurements(sorted((ROOT / "docs" / "measured").glob("*.md")))
        if not asked.words or any(w in f"{one.page.stem} {one.command}" for w in asked.words)
    ]
    if not chosen:
        parser.error(f"no measurement contains {' or '.join(asked.words)}")
    if not asked.list and state()[1]:
        sys.exit(f"commit the changes in {', '.join(MEASURED)} first: the pages name the commit")
    failed = 0
    for one in chosen:
        skips = one.is_current and not asked.again
        word = "current" if skips else "to do" if asked.list else "runs"
        print(f"{word:8} {one.page.stem}: {one.command}", flush=True)
        if not (asked.list or skips):
            failed += not one.run()
    if failed:
        print(f"{failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
