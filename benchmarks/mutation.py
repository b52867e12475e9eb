"""Plant small mistakes in dpaudit, one at a time, and check that its tests detect them.

    python -m benchmarks.mutation [--only N ...] [--package stats ...] [--jobs 2] [--limit 900]
                                  [--trust] [--fast]

The mistakes are listed in `benchmarks/planted/`, in one file for each package. The tree is copied
into a temporary directory, one mutant is applied there, and the tests of the mutant are run with
``-x``. A mutant is *killed* if a test fails, and it *survived* if all tests pass. A run that times
out, or breaks before a test runs, is reported separately. A run of this kind counts neither as
killed nor as survived. The tests must pass without a mutant, because otherwise a kill would mean
nothing. The tests without a mutant run first, unless `--trust` is given.

With `--fast`, only the tests of `make test` run. A mutant that survives them, and that the slow
tests kill, shows what a faster suite would miss.

The list is written by hand for three reasons. (1) mutmut and cosmic-ray change every operator of
every function. In a package of this size, such changes give about thirty thousand mutants, and each
mutant would need minutes of statistical tests. (2) These tools know neither which tests belong to a
package nor which mistakes people make ("exploration draws reused", "failure_prob not divided"). (3)
mutmut changes no constants of modules, such as the shares of failure_prob. mutmut also works in a
folder `mutants/`, which already exists here.
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
    """The error if the text to be replaced is not in the file exactly once."""


def planted(mutant: Mutant, text: str) -> str:
    """Return the text of the mutant's file with the mutant applied.

    Raises
    ------
    StaleError
        If the old text is not found, or found more than once.
    """
    found = text.count(mutant.old)
    if found != 1:
        raise StaleError(f"{mutant.file}: {mutant.old!r} must occur exactly once, got {found}")
    return text.replace(mutant.old, mutant.new)


@contextmanager
def copied() -> Iterator[Path]:
    """Copy all files that git tracks or would track, and remove the copy at the end."""
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


def run(tree: Path, tests: tuple[str, ...], limit: float, fast: bool = False) -> tuple[str, str]:
    """Run tests in a copy, and return the outcome and the first test that failed."""
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
        *(("-m", "not slow and not nightly") if fast else ()),
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


def judge(mutant: Mutant, limit: float, fast: bool) -> tuple[str, str, float]:
    """Plant one mutant in its own copy and run its tests."""
    start = time.perf_counter()
    with copied() as tree:
        path = tree / "dpaudit" / mutant.file
        path.write_text(planted(mutant, path.read_text(encoding="utf-8")), encoding="utf-8")
        fate, words = run(tree, mutant.tests, limit, fast)
    return fate, words, time.perf_counter() - start


def check(tests: tuple[str, ...], limit: float, fast: bool) -> None:
    """Refuse tests that fail without a mutant, or that test another copy of dpaudit."""
    with copied() as tree:
        where = [sys.executable, "-c", "import dpaudit; print(dpaudit.__file__)"]
        environment = os.environ | {"PYTHONPATH": str(tree)}
        found = subprocess.run(where, cwd=tree, env=environment, capture_output=True, text=True)
        if not found.stdout.startswith(str(tree)):
            raise SystemExit(f"the copy would test {found.stdout.strip()}")
        fate, words = run(tree, tests, limit, fast)
    if fate != "survived":
        raise SystemExit(f"the tests fail on the unchanged code: {fate} {words}")


def main() -> int:
    """Print the outcome of each mutant, and return how many survived without a reason."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=int, nargs="+", default=[], help="numbers in the list")
    parser.add_argument("--package", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one mutant")
    parser.add_argument("--trust", action="store_true", help="skip the run without a mutant")
    parser.add_argument("--fast", action="store_true", help="run only the tests of `make test`")
    args = parser.parse_args()
    chosen = [
        (number, mutant)
        for number, mutant in enumerate(MUTANTS, 1)
        if (not args.only or number in args.only)
        and (not args.package or mutant.package in args.package)
    ]
    if not args.trust:
        check(
            tuple(dict.fromkeys(t for _, mutant in chosen for t in mutant.tests)),
            4 * args.limit,
            args.fast,
        )
    fates: Counter[str] = Counter()
    with ThreadPoolExecutor(args.jobs) as pool:
        found = pool.map(
            partial(judge, limit=args.limit, fast=args.fast), (mutant for _, mutant in chosen)
        )
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
