"""Which mistakes in correct code the default audit notices.

    python -m benchmarks.code_mutants [--draws 100000] [--seed 1] [--only WORDS]

The benchmark audits the correct counterparts of the 29 bugs of `benchmarks.portfolio`, as a user
would who knows no worst pair. Each audit makes mutants of the counterpart's code. A mutant that
satisfies the claim on all data is harmless, and `HARMLESS` says why. All other mutants violate the
claim. A mutant that raises an exception, or that changes no output on the data of the audit, does
not count. The audit should kill the mutants that violate the claim, and must kill no harmless one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from benchmarks import portfolio as known
from dpaudit import audit
from dpaudit.neighbors import portfolio
from dpaudit.results import MutantStatus

_ITEMS = "data.mean(axis=1) takes each item for a user"
_CLIPPED = "each item is clipped, so the items of a user move the mean as little as their mean does"
_LATER = "post-processing of noisy values"
_KNOWN = "the clip afterwards bounds what a user adds"
_DIVISOR = "the divisor np.maximum(there.sum(axis=1), 1) divided by"
_NOISY = "np.maximum(len(data) + rng.laplace(scale=2.0,... is always"

HARMLESS = {
    ("mean_of_users", _ITEMS): _CLIPPED,
    ("gaussian_mean", _ITEMS): _CLIPPED,
    ("clamped_to_the_domain", _ITEMS): _CLIPPED,
    ("snapped_to_a_grid", _ITEMS): _CLIPPED,
    ("branch_on_a_noisy_mean", _ITEMS): _CLIPPED,
    ("variance_of_users", _ITEMS): "the variance of the items moves by 4 (n - 1) / n^2 at most",
    ("categories_by_noisy_count", "noisy >= 5 always holds"): _LATER,
    ("branch_on_a_noisy_mean", "mean + rng.laplace(scale=scale, size=size) > ... always holds"): (
        _LATER
    ),
    (
        "clamped_to_the_domain",
        "np.clip(mean_of_users(data, size, rng=rng), -... returns its argument",
    ): _LATER,
    (
        "divided_by_a_noisy_number",
        f"{_NOISY} len(data) + rng.laplace(scale=2.0, size=size)",
    ): _LATER,
    ("divided_by_a_noisy_number", f"{_NOISY} 1.0"): _LATER,
    ("distinct_values_by_m", "np.unique(data) keeps repetitions"): (
        "the number of items is the same on both sides"
    ),
    (
        "a_fresh_sample",
        "rng.random((size, len(data))).argsort(axis=1)... keeps everything",
    ): "the mean of all n users moves by 2/n, which this noise covers: (2/n) amplified < 1",
    ("counts_empty_users", f"{_DIVISOR} 2"): _KNOWN,
    ("counts_empty_users", f"{_DIVISOR} 6, the items of a user"): _KNOWN,
    ("counts_empty_users", "np.maximum(there.sum(axis=1), 1) is always 1"): _KNOWN,
}
"""Reasons why a mutant satisfies the claim, by the mechanism and the words of the change."""


def main() -> None:
    """Print the table and its totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only mechanisms whose name contains this")
    asked = parser.parse_args()
    cases = {case.correct.__name__: case for case in known.CASES}
    killed, violating = Counter[str](), Counter[str]()
    harmless, wrong = Counter[str](), Counter[str]()
    times: list[list[float]] = []
    odd: list[str] = []
    print(f"{asked.draws:,} draws per dataset, seed {asked.seed}\n")
    for name, case in cases.items():
        if asked.only not in name:
            continue
        pairs = None if case.like is None else portfolio(case.like()).under(case.claim.relation)
        seconds = []
        for wanted in ("noise", "all"):
            start = time.perf_counter()
            found = audit(
                case.correct,
                case.claim,
                pairs,
                draws=asked.draws,
                seed=asked.seed,
                mutants=wanted,
            )
            seconds.append(time.perf_counter() - start)
        times.append(seconds)
        for mutant in found.mutants:
            if not mutant.kind or mutant.status is MutantStatus.NOT_RUN:
                continue
            words = mutant.name.partition(": ")[2].rpartition(", line ")[0]
            is_harmless = (name, words) in HARMLESS
            (harmless if is_harmless else violating)[mutant.kind] += 1
            killed[mutant.kind] += mutant.killed and not is_harmless
            if mutant.killed and is_harmless:
                wrong.update([mutant.kind, "all"])
            if mutant.killed == is_harmless:
                odd.append(f"{name}: {words} ({mutant.status})")
            print(f"{name} | {mutant.kind} | {words} | {mutant.status}", file=sys.stderr)
    print(f"{'kind':<16}{'violate the claim':>17}{'killed':>9}{'harmless':>12}{'killed':>9}")
    for kind in [*(violating | harmless), "all"]:
        row = [sum(c.values()) if kind == "all" else c[kind] for c in (violating, killed, harmless)]
        print(f"{kind:<16}{row[0]:>17}{row[1]:>9}{row[2]:>12}{wrong[kind]:>9}")
    noise, every = map(sum, zip(*times, strict=True))
    print(f"\n{every / noise:.2f} times the seconds of audits with mutants of the noise alone")
    print("survivors that violate the claim, and killed mutants that do not:")
    print(*(odd or ["none"]), sep="\n")


if __name__ == "__main__":
    main()
