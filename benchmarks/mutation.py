"""Plant small mistakes in dpaudit, one at a time, and see whether its tests kill them.

    python -m benchmarks.mutation [--only N ...] [--room stats ...] [--jobs 2] [--limit 900]
                                  [--trust]

The list is `benchmarks/planted/`, a file for each room. The tree is copied into a temporary
directory, one mutant is applied there, and the tests that are named beside it are run with ``-x``:
*killed* is a mutant for which one fails, *survived* one for which all pass. What ran out of time,
or broke before a test was run, is told apart and counts as neither. The tests must pass without a
mutant, or a kill would say nothing: that is looked at first, unless `--trust` says that it was.

Why a list by hand: mutmut and cosmic-ray change every operator of every function, about thirty
thousand mutants of a package of this size, of which each would need minutes of statistical tests;
they know neither which tests belong to a room nor what somebody would really do ("exploration
draws reused", "failure_prob not divided"); mutmut changes no constants of modules, such as the
shares of failure_prob, and works in a folder `mutants/`, which is one of ours.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.planted import MUTANTS, Mutant

ROOT = Path(__file__).parent.parent
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


class StaleError(Exception):
    """The text that a mutant replaces does not stand in its file exactly once."""


def planted(mutant: Mutant, text: str) -> str:
    """Return the text of its file with the mutant in it.

    Raises
    ------
    StaleError
        When its old text is not found, or found twice.
    """
    found = text.count(mutant.old)
    if found != 1:
        raise StaleError(f"{mutant.file}: {mutant.old!r} stands there {found} times, not once")
    return text.replace(mutant.old, mutant.new)


@contextmanager
def copied() -> Iterator[Path]:
    """Copy all that git knows or would know of the tree, and remove the copy at the end."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    with tempfile.TemporaryDirectory(prefix="dpaudit-mutant-") as folder:
        for name in filter(None, listed.stdout.split("\0")):
            if (ROOT / name).is_file():
                target = Path(folder) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        yield Path(folder)


def run(tree: Path, tests: tuple[str, ...], limit: float) -> tuple[str, str]:
    """Run tests in a copy: what became of them, and the first that failed."""
    command = [
        sys.executable,
        "-B",
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
    ]
    paths = [str(tree), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    options = {"cwd": tree, "env": environment, "capture_output": True, "text": True}
    try:
        done = subprocess.run([*command, *tests], timeout=limit, **options)
    except subprocess.TimeoutExpired:
        return "out of time", f"after {limit:g} s"
    if done.returncode == 0:
        return "survived", ""
    first = FAILED.search(done.stdout)
    if done.returncode == 1 and first:
        return "killed", first[1]
    return "broken", (done.stdout + done.stderr).strip()[-500:]


def judge(mutant: Mutant, limit: float) -> tuple[str, str, float]:
    """Plant one mutant in a copy of its own and run its tests."""
    start = time.perf_counter()
    with copied() as tree:
        path = tree / "dpaudit" / mutant.file
        path.write_text(planted(mutant, path.read_text(encoding="utf-8")), encoding="utf-8")
        fate, words = run(tree, mutant.tests, limit)
    return fate, words, time.perf_counter() - start


def check(tests: tuple[str, ...], limit: float) -> None:
    """Refuse to judge by tests that fail without a mutant, or that test another dpaudit."""
    with copied() as tree:
        where = [sys.executable, "-c", "import dpaudit; print(dpaudit.__file__)"]
        environment = os.environ | {"PYTHONPATH": str(tree)}
        found = subprocess.run(where, cwd=tree, env=environment, capture_output=True, text=True)
        if not found.stdout.startswith(str(tree)):
            raise SystemExit(f"the copy would test {found.stdout.strip()}")
        fate, words = run(tree, tests, limit)
    if fate != "survived":
        raise SystemExit(f"the tests do not pass without a mutant: {fate} {words}")


def main() -> int:
    """Print the fate of each mutant, and return how many survived without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="+", default=[], help="numbers of the list")
    parser.add_argument("--room", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one mutant")
    parser.add_argument("--trust", action="store_true", help="that the tests pass without one")
    args = parser.parse_args()
    chosen = [
        (number, mutant)
        for number, mutant in enumerate(MUTANTS, 1)
        if (not args.only or number in args.only) and (not args.room or mutant.room in args.room)
    ]
    if not args.trust:
        check(tuple(dict.fromkeys(t for _, mutant in chosen for t in mutant.tests)), 4 * args.limit)
    fates: Counter[str] = Counter()
    with ThreadPoolExecutor(args.jobs) as pool:
        found = pool.map(partial(judge, limit=args.limit), (mutant for _, mutant in chosen))
        for (number, mutant), (fate, words, seconds) in zip(chosen, found, strict=True):
            if fate == "survived" and mutant.equivalent:
                fate, words = "equivalent", mutant.equivalent
            fates[fate] += 1
            print(f"{number:3} {fate:<11}{seconds:6.0f} s  {mutant.file}: {mutant.mistake}")
            print(f"{'':24}{words}", flush=True)
    print(", ".join(f"{count} {fate}" for fate, count in sorted(fates.items())))
    return sum(count for fate, count in fates.items() if fate not in ("killed", "equivalent"))


if __name__ == "__main__":
    sys.exit(min(main(), 100))
