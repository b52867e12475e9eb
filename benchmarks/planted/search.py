"""Mistakes planted in the search for the worst pair."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

ARMS = ("tests/search/test_arms.py", "tests/engine/test_search_audits.py")

MISLEADING = ("tests/engine/test_misleading.py",)

MUTANTS = (
    Mutant(
        "search/candidates.py",
        "steps are as wide in the last round as in the first",
        "return float(self._designs[arm] ** (-1.0 / dimension) / 2**halvings)",
        "return float(self._designs[arm] ** (-1.0 / dimension))",
        ARMS,
    ),
    Mutant(
        "search/halving.py",
        "finalists are evaluated on the draws that chose their events",
        "event = learn(next(others), next(others), goal, rng=rng).primary",
        "event = learn(left[start:stop], right[start:stop], goal, rng=rng).primary",
        ARMS,
    ),
    Mutant(
        "search/halving.py",
        "fixed noise that hides the user at one position hides it at all",
        "if not is_constant(joined(drawn)):",
        "if False:",
        MISLEADING,
    ),
    Mutant(
        "search/halving.py",
        "the first computed pair is used as the worst",
        "best = best_first(known)[0]",
        "best = known[0]",
        ARMS,
    ),
    Mutant(
        "search/values.py",
        "pairs of values are not compared by their claims",
        "seen, claimed = self._separations(alive), allowed[np.ix_(alive, alive)]",
        "seen = self._separations(alive)\n            claimed = np.ones_like(seen)",
        ("tests/search/test_values.py", "tests/engine/test_local.py"),
    ),
    Mutant(
        "search/values.py",
        "only likelier values survive a round",
        "zip(likelier.tolist(), other.tolist(), strict=True)",
        "zip(likelier.tolist(), likelier.tolist(), strict=True)",
        ("tests/search/test_values.py", "tests/engine/test_local.py"),
    ),
)
