"""How often dpaudit finds the line and the cause of a bug.

    python -m benchmarks.causes [--draws 100000] [--seed 1] [--only WORDS]

The benchmark audits the 29 bugs of `benchmarks.portfolio`, the 12 bugs of `benchmarks.unseen_bugs`
and the 15 bugs of `audits/known_bugs`, as a user would who knows no worst pair. For each bug, it
prints the lines and the kinds of cause that the result names first.

A line is right if the correct counterpart of the bug does not contain it. In
`benchmarks.unseen_bugs`, a comment marks the right lines. A statement of several lines counts as
one line. `KINDS` holds the right kinds of cause. They were written down before the first run of
this benchmark on all bugs.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks import portfolio as known
from benchmarks import unseen_bugs
from dpaudit import audit
from dpaudit.neighbors import portfolio

KINDS = {
    "items_clipped": "items",
    "median_as_a_mean": "users",
    "each_epoch_at_full_budget": "outputs repeated",
    "categories_by_true_count": "missing exact",
    "sum_for_add_remove": "relation",
    "clipped_after_the_mean": "users",
    "histogram_of_items": "items",
    "laplace_by_the_l2_norm": "outputs",
    "variance_for_deviation": "noise",
    "variance_as_a_mean": "noise",
    "selection_per_item": "items",
    "distinct_values_by_one": "items",
    "divided_by_the_number_of_users": "scale exact",
    "scale_from_the_data": "scale",
    "bound_from_the_data": "scale",
    "clamped_to_the_data": "exact",
    "snapped_to_a_user": "exact",
    "noise_where_there_are_counts": "exact",
    "true_winner": "exact",
    "branch_on_the_mean": "branch",
    "whole_noise_on_reals": "grid",
    "one_noise_for_all": "shared",
    "moving_average_as_a_mean": "users",
    "totals_at_one_budget": "outputs",
    "the_first_as_a_sample": "sample",
    "spreads_nan": "missing",
    "no_answer_without_data": "missing branch",
    "drops_empty_users": "exact",
    "words_that_occur": "missing",
    "total_spent": "items",
    "visits_by_city": "missing",
    "average_age": "exact",
    "count_and_total": "outputs",
    "mean_vector": "outputs",
    "low_and_high": "shared",
    "most_common": "noise relation",
    "survey": "outputs items",
    "normalized_mean": "scale",
    "sampled_total": "sample",
    "first_large": "exact",
    "spread": "exact branch",
    "covariance_of_the_raw_data": "noise users",
    "gaussian_mean_scale_squared": "noise",
    "mean_with_the_private_size": "scale",
    "vector_sum_clipped_at_the_end": "noise",
    "moment_by_the_lower_bound": "noise",
    "second_moments_with_wishart_noise": "support",
    "step_divided_by_the_data": "scale",
    "sampled_step_divided_by_the_data": "scale",
    "clips_to_the_default": "noise",
    "one_key_for_all_leaves": "shared",
    "noise_divided_by_the_batch": "noise",
    "holders_in_a_tree": "noise",
    "pairs_of_an_even_number": "noise",
    "permute_and_flip": "noise",
    "sum_of_clipped": "relation",
    "update_with_leftovers": "exact support",
}
"""Right kinds of cause, by the name of the mechanism. No kind of cause describes a wrong sample."""


@dataclass(frozen=True)
class Bug:
    """One bug, and what is known about it.

    Parameters
    ----------
    mechanism : callable
        The bug.
    counterpart : callable or None
        The correct mechanism. None if comments mark the right lines.
    claim, pairs : object
        Arguments of :func:`dpaudit.audit`.
    """

    mechanism: Any
    counterpart: Any
    claim: Any
    pairs: Any
    source: str

    @property
    def name(self) -> str:
        """Name of the function with the bug."""
        return str(function_of(self.mechanism).__name__)


class _Listing:
    """An auditor that records what it is asked to audit."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def check(self, mechanism: Any, claim: Any, pairs: Any = None, **_: Any) -> None:
        """Record one audit."""
        self.asked.append((mechanism, claim, pairs))


def bugs() -> Iterator[Bug]:
    """Yield all bugs."""
    for case in known.CASES:
        pairs = case.like and portfolio(case.like())
        yield Bug(case.bug, case.correct, case.claim, pairs, "portfolio")
    for mechanism, claim, made, _ in unseen_bugs.CASES:
        yield Bug(mechanism, None, claim, made(), "unseen")
    for name in ("statistics", "accounting", "training"):
        module = importlib.import_module(f"audits.known_bugs.audit_{name}")
        for key, function in list(vars(module).items()):
            mended = getattr(module, f"{key}_mended", None)
            if not key.startswith("audit_") or mended is None:
                continue
            listing = _Listing()
            function(listing)
            mended(listing)
            (mechanism, claim, pairs), (counterpart, *_) = listing.asked
            yield Bug(mechanism, counterpart, claim, pairs, "known")


def function_of(mechanism: Any) -> Callable[..., Any]:
    """Return the function that a user wrote."""
    while not inspect.isfunction(mechanism):
        inner = ("mechanism", "function", "func", "centers")
        mechanism = next(getattr(mechanism, name) for name in inner if hasattr(mechanism, name))
    return mechanism


def right_lines(bug: Bug) -> set[tuple[str, int]]:
    """Return the right lines, as file and number."""
    function = function_of(bug.mechanism)
    source, start = inspect.getsourcelines(function)
    if bug.counterpart is None:
        marked = {at for at, line in enumerate(source) if "# cause" in line}
    else:
        kept = {line.strip() for line in inspect.getsourcelines(function_of(bug.counterpart))[0]}
        marked = {at for at, line in enumerate(source) if line.strip() not in kept}
    body = ast.parse(textwrap.dedent("".join(source))).body[0]
    right = set()
    for node in ast.walk(body):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef):
            lines = range(node.lineno - 1, node.end_lineno or node.lineno)
            if marked & set(lines):
                right |= {(inspect.getsourcefile(function) or "", start + at) for at in lines}
    return right


def main() -> None:
    """Print the shares, and one row for each bug."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    rows = []
    right: dict[str, list[tuple[bool, bool, bool]]] = {}
    chosen = [bug for bug in bugs() if given.only in bug.name]
    if not chosen:
        parser.error(f"--only must be a part of the name of a bug, got {given.only!r}")
    for bug in chosen:
        result = audit(bug.mechanism, bug.claim, bug.pairs, draws=given.draws, seed=given.seed)
        lines = right_lines(bug)
        named = [[(line.file, line.number) in lines for line in c.lines] for c in result.causes[:1]]
        has_line = any(any(one) for one in named)
        is_first = any(one[:1] == [True] for one in named)
        wanted = KINDS.get(bug.name, "").split()
        has_kind = any(cause.kind in wanted for cause in result.causes[:2])
        right.setdefault(bug.source, []).append((has_line, is_first, has_kind))
        found = ", ".join(
            f"{cause.kind} (line {', '.join(str(line.number) for line in cause.lines)})"
            for cause in result.causes[:2]
        ).replace("(line )", "(no line)")
        where = "first" if is_first else "yes" if has_line else "no"
        rows.append(
            f"| `{bug.name}` | {where} | {'yes' if has_kind else 'no'} | "
            f"{found or result.verdict.words} |"
        )
        print(rows[-1], file=sys.stderr, flush=True)
    groups = {"all": [one for group in right.values() for one in group], **right}
    print(f"| share of bugs | {' | '.join(f'{g}, {len(of)}' for g, of in groups.items())} |")
    print(f"|---|{'---|' * len(groups)}")
    words = "right line", "right line named first", "right cause among the first two"
    for at, what in enumerate(words):
        counts = [(sum(one[at] for one in group), len(group)) for group in groups.values()]
        print(f"| {what} | {' | '.join(f'{n} ({n / of:.0%})' for n, of in counts)} |")
    print("\n| bug | right line | right cause | first two causes |\n|---|---|---|---|")
    print(*rows, sep="\n")


if __name__ == "__main__":
    main()
