"""The experiments of geometric_median, Section 5, once more; one command makes all of them.

    python -m audits.geometric_median.experiments [--quick|--full] [--out reports/experiments]

writes the figures, `experiments.json` and `experiments.html`, which begins with what became of
each claim of that section.  Where the paper does not say how something was done, `RULES` says how
it is done here, and `what_if` repeats the comparison with every other choice.

Times are taken within this process and compared with one another; seconds are for information.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

from audits.geometric_median.experiments.claims import CLAIMS
from audits.geometric_median.experiments.figures import write
from audits.geometric_median.experiments.measured import measure
from audits.geometric_median.experiments.setup import FULL, QUICK, RULES


def plain(value: object) -> object:
    """Return what json cannot write by itself as plain data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is not plain data")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true", help="minutes (the default)")
    group.add_argument("--full", action="store_true", help="the sizes of the paper: 15 minutes")
    parser.add_argument("--out", type=Path, default=Path("reports/experiments"))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)

    def say(words: str) -> None:
        sys.stdout.write(words + "\n")
        sys.stdout.flush()

    found = measure(FULL if asked.full else QUICK, seed=asked.seed, say=say)
    claims = [judge(found) for judge in CLAIMS.values()]
    asked.out.mkdir(parents=True, exist_ok=True)
    record = {"claims": claims, "rules": RULES, "results": found}
    (asked.out / "experiments.json").write_text(json.dumps(record, default=plain, indent=1))
    page = write(found, claims, RULES, asked.out)
    for claim in claims:
        say(
            f"\n{claim.id}: {claim.verdict}{claim.choice and f' ({claim.choice})'}\n{claim.numbers}"
        )
    say(f"wrote {page}")


if __name__ == "__main__":
    main()
