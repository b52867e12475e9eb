"""Measure what the noise mutants add to the audits of this repository, and what they cost.

    python -m benchmarks.mutants [PATHS] [--seed S]

Every audit in PATHS (default: audits/) runs three times with its quick budget. The three runs have
no mutants, noise mutants only, and also hand-written mutants. The verdict of the second run must
not be weaker than the verdict of the third run. The noise mutants should take no longer than the
audit itself. The times are compared within one process.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dpaudit import AuditResult, Verdict, audit
from dpaudit.results import mutation_score
from dpaudit.run.settings import PROFILES

_ORDER = (Verdict.NO_POWER, Verdict.NOT_REFUTED, Verdict.REFUTED)


class Measuring:
    """An auditor that replaces the fixture `auditor`, and runs every check three times."""

    def __init__(self, seed: int) -> None:
        self.seed, self.rows = seed, list[tuple[str, float, float, bool, bool]]()
        self.name = ""

    def check(self, mechanism: Any, claim: Any, pairs: Any = None, **asked: Any) -> AuditResult:
        """Audit three times, and print a line."""
        draws = asked.get("draws") or int(PROFILES["quick"] * (asked.get("draws_factor") or 1.0))
        options = {
            "draws": max(draws, 20),
            "seed": self.seed,
            "method": asked.get("method") or "fixed",
            "float_attack": asked.get("float_attack", False),
            "id": self.name,
        }

        def made(mutants: Any) -> tuple[AuditResult, float]:
            begun = time.perf_counter()
            result = audit(mechanism, claim, pairs, mutants=mutants, **options)
            return result, time.perf_counter() - begun

        given = asked.get("mutants", "noise")
        given = [] if given is None or isinstance(given, str) else given
        _, alone = made(None)
        automatic, with_noise = made("noise")
        by_hand = made(given)[0] if given else automatic
        weaker = _ORDER.index(automatic.verdict) < _ORDER.index(by_hand.verdict)
        self.rows.append((self.name, alone, with_noise - alone, weaker, bool(given)))
        killed, judged = mutation_score(automatic.mutants)
        print(
            f"{self.name:44} {alone:6.1f} {max(with_noise - alone, 0):6.1f}  "
            f"{automatic.verdict.words:12} {killed:3} of {judged:3}   "
            f"{by_hand.verdict.words if given else '':12}{'  WEAKER' if weaker else ''}",
            flush=True,
        )
        return by_hand

    def check_sensitivity(self, *args: Any, **options: Any) -> None:
        """Do nothing, because functions have no noise."""

    check_lipschitz = check_contraction = check_sensitivity

    def noise_margin(self, result: AuditResult, *args: Any, **options: Any) -> AuditResult:
        """Do nothing, because only mutants are timed."""
        return result


def audits_in(path: Path) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the name, the function and the arguments of every audit in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    for name, function in vars(module).items():
        if not name.startswith("audit_") or getattr(function, "__module__", "") != path.stem:
            continue
        marks = getattr(function, "pytestmark", [])
        if any(mark.name == "skip" for mark in marks):
            continue
        tables = [mark.args for mark in marks if mark.name == "parametrize"]
        for values in itertools.product(*(table for _, table in tables)):
            arguments = {names: value for (names, _), value in zip(tables, values, strict=True)}
            label = "".join(f"[{value}]" for value in values)
            yield f"{name}{label}", function, arguments


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure the cost and verdicts of noise mutants.")
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("audits")])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    sys.path.insert(0, "")
    measuring = Measuring(asked.seed)
    print(f"{'audit':44} {'audit s':>6} {'mutants':>7}  by the noise  killed        by hand too")
    for path in asked.paths:
        files = sorted(path.rglob("audit_*.py")) if path.is_dir() else [path]
        for file in files:
            sys.path.insert(0, str(file.parent))
            for name, function, arguments in audits_in(file):
                measuring.name = name
                function(measuring, **arguments)
    alone, mutants = (sum(row[i] for row in measuring.rows) for i in (1, 2))
    given = [row for row in measuring.rows if row[4]]
    print(
        f"\nmutants of the noise took {mutants / alone:.2f} times as long as the audits; their "
        f"verdict is weaker than by hand in {sum(row[3] for row in given)} of {len(given)}"
    )


if __name__ == "__main__":
    main()
