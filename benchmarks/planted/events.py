"""Mistakes planted in the learning of events."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

PORTFOLIO = ("tests/events/test_portfolio.py", "tests/events/test_scores.py")
SCORES = ("tests/events/test_scores.py", "tests/events/test_portfolio.py")
FEATURES = ("tests/events/test_features.py",)

MUTANTS = (
    Mutant(
        "events/learning.py",
        "thresholds are chosen on the draws that trained the score",
        "rest = tuple(x[h:] for x, h in zip(encoded, halves, strict=True))",
        "rest = tuple(x[:h] for x, h in zip(encoded, halves, strict=True))",
        PORTFOLIO,
    ),
    Mutant(
        "events/event.py",
        "> for >= at the threshold",
        "above = scores >= self.threshold",
        "above = scores > self.threshold",
        PORTFOLIO,
    ),
    Mutant(
        "events/cuts.py",
        "the rates of the right side are those of the left side",
        "others = [OTHER[side] for side in sides]",
        "others = sides",
        PORTFOLIO,
    ),
    Mutant(
        "events/cuts.py",
        "the complement keeps the likelier side of the event",
        "likelier=side if as_is else OTHER[side],",
        "likelier=side,",
        PORTFOLIO,
    ),
    Mutant(
        "events/scores.py",
        "the likelihood ratio is a product",
        "np.log((a + 0.5) / (n_left + 0.5)) - np.log(",
        "np.log((a + 0.5) / (n_left + 0.5)) + np.log(",
        SCORES,
    ),
    Mutant(
        "events/scores.py",
        "an unseen value counts as the value next to it",
        "index = np.where(seen[at] == values, at, len(seen))",
        "index = at",
        SCORES,
    ),
    Mutant(
        "events/scores.py",
        "an edge belongs to the bin above, not below",
        'index = np.searchsorted(edges, values, side="left")',
        'index = np.searchsorted(edges, values, side="right")',
        SCORES,
    ),
    Mutant(
        "events/features.py",
        "a missing answer counts as the first answer",
        "return np.where(hit.any(axis=1), hit.argmax(axis=1), np.nan)",
        "return hit.argmax(axis=1) * 1.0",
        FEATURES,
    ),
    Mutant(
        "events/features.py",
        "the last position is one too far",
        "hit.shape[1] - 1 - _first(",
        "hit.shape[1] - _first(",
        FEATURES,
    ),
    Mutant(
        "events/encoding.py",
        "an unknown label becomes a known one",
        "np.where(self.hashes[at] == hashes, self.codes[at], -1.0)",
        "self.codes[at]",
        ("tests/events/test_encoding.py", "tests/events/test_texts.py"),
    ),
    Mutant(
        "events/cuts.py",
        "the declines of p and q are swapped in the complement",
        "mirrored - np.hypot(decline_q, factor * decline_p)",
        "mirrored - np.hypot(decline_p, factor * decline_q)",
        ("tests/events",),
    ),
    Mutant(
        "events/bits.py",
        "a hypothesis that explains both sides is kept",
        "if not (max(rates) >= _ALWAYS and gap >= _GAP):",
        "if not max(rates) >= _ALWAYS:",
        ("tests/events/test_bits.py",),
    ),
    Mutant(
        "events/bits.py",
        "subnormal doubles get the exponent of normal ones",
        "return significand, np.maximum(exponent, 1) - 1075.0",
        "return significand, exponent - 1075.0",
        ("tests/events/test_bits.py",),
    ),
    Mutant(
        "events/compared.py",
        "a value that often gives no number is no event",
        "cells = np.where(np.isnan(values), len(edges) + 1, cells)",
        "cells = np.where(np.isnan(values), len(edges), cells)",
        ("tests/search/test_values.py", "tests/engine/test_local.py"),
    ),
)
