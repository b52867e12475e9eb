"""How small the smallest counterexamples are, and how many draws they take.

    python -m benchmarks.shrinking [--draws 100000] [--seed 1] [--only WORDS]

The benchmark audits the 29 bugs of `benchmarks.portfolio` and the 12 bugs of
`benchmarks.unseen_bugs`, as a user would who knows no worst pair. It prints one line for each bug.
The line shows the certified epsilon on the pair of the audit and on the smallest pair. It also
shows the numbers of users, items and draws, and the smallest pair.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from typing import Any

from benchmarks import portfolio as known
from benchmarks import unseen_bugs
from dpaudit import NeighborPair, audit
from dpaudit.neighbors import portfolio


def cases() -> list[tuple[str, Any, Any, Any]]:
    """Return name, mechanism, claim and pairs of each bug."""
    found = [
        (case.story, case.bug, case.claim, case.like and portfolio(case.like()))
        for case in known.CASES
    ]
    return found + [(cause, f, claim, pairs()) for f, claim, pairs, cause in unseen_bugs.CASES]


def sizes(pair: NeighborPair) -> tuple[int, int]:
    """Return the number of users, and the largest number of items of a user."""
    users, items = 0, 0
    for side in (pair.left, pair.right):
        users = max(users, len(pair.form.labels(side, "users")))
        of_each = Counter(label[0] for label in pair.form.labels(side, "items"))
        items = max(items, *of_each.values(), 0)
    return users, items


def main() -> None:
    """Print one line for each bug, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = [case for case in cases() if given.only in case[0]]
    if not chosen:
        parser.error(f"--only must be a part of the name of a bug, got {given.only!r}")
    found, refuted = [], 0
    print(
        "| bug | epsilon | epsilon on the smallest pair | users x items | draws | smallest pair |"
    )
    print("|---|---|---|---|---|---|")
    for name, mechanism, claim, pairs in chosen:
        result = audit(mechanism, claim, pairs, draws=given.draws, seed=given.seed)
        refuted += result.verdict == "refuted"
        smallest = result.smallest
        if smallest is None or smallest.pair is None:
            print(f"| {name} | {result.certified_epsilon:.2f} | {result.verdict.words} | | | |")
            continue
        found.append(sizes(smallest.pair))
        users, items = found[-1]
        draws = sum(smallest.draws.values())
        print(
            f"| {name} | {result.certified_epsilon:.2f} | {smallest.epsilon.lower:.2f} | "
            f"{users} x {items} | {draws:,} | `{smallest.words}` |",
            flush=True,
        )
    middle = [statistics.median(one) for one in zip(*found, strict=True)]
    print(
        f"\n{refuted} refuted, {len(found)} with a smaller pair; in the median, that pair has "
        f"{middle[0]:g} users of {middle[1]:g} items"
    )


if __name__ == "__main__":
    main()
