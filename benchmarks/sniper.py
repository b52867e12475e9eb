"""Search for violations at small epsilon, beside the method and the published numbers of DP-Sniper.

    python -m benchmarks.sniper [--draws 1000000] [--seeds 3] [--failure-prob 0.05] [-k NAME]
                                [--ours]

The mechanisms are those of Bichsel, Steffen, Bogunovic and Vechev (2021), "DP-Sniper: Black-Box
Discovery of Differential Privacy Violations using Classifiers". All claim epsilon = 0.1, and no
pair is named.

The column `published` is the certified number of the reference log of its authors. The log used up
to 1.07e7 draws for each pair and stage, and 2e8 draws at the end, at failure probability 0.1. The
column `method` is that method with as many draws as dpaudit. It spends a quarter of the draws on
one logistic regression for each pattern, a quarter on the choice of the pair, and the rest on the
final bound. The column `dpaudit` is a default audit without mutants. These two columns are medians
over seeds. With `--ours`, the method is left out.

The column `known` is what two Clopper-Pearson bounds give at the expected counts of all draws, for
the best given pair of the portfolio and its best set of answers. It is computed from the exact
distribution of the answers of sparse vectors 1, 2 and 4.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from algorithms.common import sparse_vector_variants as variants
from dpaudit import PureDP, audit, within_sensitivity
from dpaudit.neighbors import portfolio, value_patterns
from dpaudit.stats import lower_proportion
from dpaudit.stats.oracles import sparse_vector_patterns

EPSILON = 0.1
RARE = 0.01
"""Probability of DP-Sniper's event on the less likely side."""


class Case(NamedTuple):
    """A mechanism of `dim` query values, and its epsilon over all pairs."""

    name: str
    mechanism: Callable[..., Any]
    dim: int
    norm: str
    true: float
    published: float | None
    scales: tuple[float, float] | None = None
    """Scales of the noises of the threshold and of the queries, of a sparse vector that answers
    yes or no."""


def noisy_max(queries, size, *, rng, noise, released):
    """Add noise of scale 2 / epsilon, and release the maximum or its place."""
    draw = rng.laplace if noise == "laplace" else rng.exponential
    noisy = queries + draw(scale=2 / EPSILON, size=(size, len(queries)))
    return noisy.argmax(axis=1) if released == "place" else noisy.max(axis=1)


def histogram(queries, size, *, rng, scale):
    """Add Laplace noise to each cell."""
    return queries + rng.laplace(scale=scale, size=(size, len(queries)))


def cases() -> Iterator[Case]:
    """Yield the mechanisms."""
    yield Case("Laplace", partial(histogram, scale=1 / EPSILON), 1, "linf", 0.1, 0.0968)
    yield Case("noisy histogram 1", partial(histogram, scale=1 / EPSILON), 5, "l1", 0.1, 0.0978)
    yield Case("noisy histogram 2", partial(histogram, scale=EPSILON), 5, "l1", 10.0, 4.60)
    released = {1: "place", 2: "place", 3: "maximum", 4: "maximum"}
    truth = {1: (0.1, 0.0923), 2: (0.1, None), 3: (0.25, 0.248), 4: (math.inf, 0.35)}
    for number, what in released.items():
        noise = "laplace" if number in (1, 3) else "exponential"
        mechanism = partial(noisy_max, noise=noise, released=what)
        yield Case(f"noisy max {number}", mechanism, 5, "linf", *truth[number])
    asked = {"thresholds": 0.5, "sensitivity": 1.0, "epsilon": EPSILON}
    one = asked | {"cutoff": 1}
    for number, mechanism, true, published, scales in (
        (1, partial(variants.svt1, **one), 0.1, 0.0858, (2, 4)),
        (2, partial(variants.svt2, **one), 0.1, 0.0859, (2, 4)),
        (3, partial(variants.svt3, **one), math.inf, 0.172, None),
        (4, partial(variants.svt4, **one), 0.175, 0.169, (4, 4 / 3)),
        (5, partial(variants.svt5, **asked), math.inf, 1.761, None),
        (6, partial(variants.svt6, **asked), math.inf, 0.272, None),
    ):
        name = f"sparse vector {number}"
        yield Case(name, mechanism, 10, "linf", true, published, scales)
    yield Case(
        "8 Laplace in parallel", partial(histogram, scale=8 / EPSILON), 8, "linf", 0.1, 0.035
    )


def known_best(case: Case, pairs, draws: int, failure_prob: float) -> float | None:
    """Return what the best set of answers on the best pair certifies, if it is known."""
    if case.scales is None:
        return None
    threshold, query = (scale / EPSILON for scale in case.scales)
    scales = {"threshold_scale": threshold, "query_scale": query}
    best = 0.0
    for pair in pairs:
        sides = [
            sparse_vector_patterns(side, thresholds=0.5, cutoff=1, **scales).probabilities
            for side in (pair.left, pair.right)
        ]
        for likely, rare in (sides, sides[::-1]):
            order = np.argsort(rare / likely)
            hits, others = (
                np.round(draws * np.cumsum(side[order])[:-1]) for side in (likely, rare)
            )
            for a, b in zip(hits.astype(int).tolist(), others.astype(int).tolist(), strict=True):
                low = lower_proportion(a, draws, failure_prob / 2)
                high = 1 - lower_proportion(draws - b, draws, failure_prob / 2)
                best = max(best, math.log(low / high) if low > 0 else 0.0)
    return best


class Event(NamedTuple):
    """DP-Sniper's event: a score above a threshold, or at the threshold with a probability."""

    score: Callable[[Any], Any]
    threshold: float
    at_threshold: float

    def hits(self, outputs, *, rng) -> int:
        """Return how often the event occurs."""
        scores = self.score(outputs)
        tied = (scores == self.threshold) & (rng.random(len(scores)) < self.at_threshold)
        return int(((scores > self.threshold) | tied).sum())


def features(outputs):
    """Return one row of numbers per output; missing numbers are 0 and have a flag."""
    rows = outputs.reshape(len(outputs), -1).astype(float)
    return np.concatenate([np.nan_to_num(rows), np.isnan(rows)], axis=1)


def event_of(likely, rare) -> Event:
    """Learn an event whose probability is about `RARE` on the second side."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    model.fit(
        np.concatenate([features(likely), features(rare)]), np.repeat([1, 0], [len(likely)] * 2)
    )

    def score(outputs):
        return np.round(model.predict_proba(features(outputs))[:, 1], 3)

    scores = np.sort(score(rare))[::-1]
    threshold = scores[int(RARE * len(scores))]
    above, tied = (scores > threshold).mean(), (scores == threshold).mean()
    return Event(score, threshold, (RARE - above) / tied)


def sniper(case: Case, draws: int, failure_prob: float, *, rng) -> float:
    """Return the epsilon that the method of DP-Sniper certifies."""
    relation = within_sensitivity(1.0, norm=case.norm)
    pairs = list(value_patterns(case.dim, relation=relation))
    each = draws // 4 // len(pairs)
    best, chosen = -math.inf, None
    for pair in pairs:
        stages = [
            [case.mechanism(side, each, rng=rng) for side in (pair.left, pair.right)]
            for _ in range(2)
        ]
        for order in (1, -1):
            event = event_of(*stages[0][::order])
            likely, rare = (event.hits(outputs, rng=rng) for outputs in stages[1][::order])
            found = math.log(max(likely, 1) / max(rare, 1))
            if found > best:
                best, chosen = found, (event, (pair.left, pair.right)[::order])
    event, sides = chosen
    final = draws // 2
    likely, rare = (event.hits(case.mechanism(side, final, rng=rng), rng=rng) for side in sides)
    low = lower_proportion(likely, final, failure_prob / 2)
    high = 1 - lower_proportion(final - rare, final, failure_prob / 2)
    return max(math.log(low / high), 0.0) if low > 0 else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--failure-prob", type=float, default=0.05)
    parser.add_argument("-k", default="", help="only mechanisms with this in their name")
    parser.add_argument("--ours", action="store_true", help="leave out the method of DP-Sniper")
    asked = parser.parse_args()
    print(f"{asked.draws:,} draws per dataset, {asked.seeds} seeds, claim epsilon = {EPSILON}")
    print(
        f"{'mechanism':<24}{'true':>8}{'published':>11}{'method':>9}{'known':>9}{'dpaudit':>9}{'seconds':>9}"
    )
    for case in cases():
        if asked.k not in case.name:
            continue
        where = portfolio(dim=case.dim).under(within_sensitivity(1.0, norm=case.norm))
        theirs, ours, start = [], [], time.perf_counter()
        for seed in range(asked.seeds):
            found = audit(
                case.mechanism,
                PureDP(EPSILON, relation=within_sensitivity(1.0, norm=case.norm)),
                where,
                draws=asked.draws,
                failure_prob=asked.failure_prob,
                seed=seed,
                id=case.name,
                mutants=None,
            )
            ours.append(found.certified_epsilon)
        seconds = (time.perf_counter() - start) / asked.seeds
        for seed in range(0 if asked.ours else asked.seeds):
            rng = np.random.default_rng(seed)
            theirs.append(sniper(case, asked.draws, asked.failure_prob, rng=rng))
        known = known_best(case, where.pairs, asked.draws, asked.failure_prob)
        medians = (np.median(theirs) if theirs else None, known, np.median(ours))
        cells = "".join(f"{'' if one is None else f'{one:.3f}':>9}" for one in medians)
        published = "" if case.published is None else f"{case.published:.3f}"
        print(
            f"{case.name:<24}{case.true:>8.3g}{published:>11}{cells}{seconds:>9.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
