"""Compare the smallest fixed number of draws that refutes a claim with sequential audits.

    python -m benchmarks.refutation [--seeds 20] [--first-seed 0] [--failure-prob 1e-5]

`fixed` is the smallest number of draws per dataset at which the joint bound refutes with
probability one half, given the best event. The best event is known in advance. The number is
computed from the exact distributions. An audit that has to learn its event may need more draws.
`sequential` is the median of whole sequential audits, including exploration. `lowest` and `highest`
are the extremes over seeds. `found` counts audits that certify more than the claim, at a fixed
number of 100,000 draws per dataset in total.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from scipy.stats import binom, laplace

from algorithms.common import noise
from algorithms.common import sparse_vector_variants as variants
from audits.basics.audit_sparse_vector import low_then_high, query_pair
from dpaudit import ApproxDP, NeighborPair, PureDP, Relation, Verdict, audit
from dpaudit import neighbors as nb
from dpaudit.engine import draws_to_refute
from dpaudit.stats import oracles
from mutants import noise as noise_mutants
from mutants import selection as selection_mutants

EPSILON, DELTA = 1.0, 1e-5
BUDGET = 10**6
QUICK = 10**5

# Noise of the thresholds, on a fine grid of equally likely values.
RHO = laplace.ppf((np.arange(20_000) + 0.5) / 20_000)


def value_distribution(queries, threshold_scale, query_scale):
    """Return the distribution of variant 3 at cutoff 1.

    An outcome is the place and the finely binned value of the yes.
    """
    edges = np.linspace(-30, 30, 601)
    rho = RHO * threshold_scale
    waiting, masses = np.ones(len(rho)), []
    for query in queries:
        below = laplace.cdf(edges, query, query_scale)
        released = np.maximum(below[1:] - np.maximum(below[:-1], 0), 0)
        above = edges[:-1] >= rho[:, None]  # a bin is released only if the whole bin is above
        masses.append((waiting[:, None] * above * released).mean(axis=0))
        waiting = waiting * laplace.cdf(rho, query, query_scale)
    found = np.concatenate([*masses, [waiting.mean()]])
    return found / found.sum()


def two_group_distribution(low, high, count, scale):
    """Return the distribution of variant 6 on two groups of equal queries, by numbers of yes."""
    rho = RHO * scale
    k = np.arange(count + 1)
    yes = [laplace.sf(rho, query, scale)[:, None] for query in (low, high)]
    groups = [binom.pmf(k, count, share) for share in yes]
    return np.einsum("rk,rl->kl", *groups).ravel() / len(rho)


def pattern_oracle(pair, **scales):
    """Return the oracle of the answers of a sparse vector algorithm on both sides."""
    both = (oracles.sparse_vector_patterns(side, **scales) for side in (pair.left, pair.right))
    return oracles.discrete(*(distribution.probabilities for distribution in both))


def cases():
    """Yield (name, broken mechanism, claim, pair, oracle of the broken mechanism)."""
    pure = PureDP(EPSILON)
    one = nb.value_pattern("one_above", 1)
    queries = {"thresholds": 0.0, "sensitivity": 1.0, "epsilon": EPSILON}
    pair = query_pair([-1.0] * 8 + [0.0], [0.0] * 8 + [-1.0], "8 low, then one that answers")
    distributions = (value_distribution(side, 2.0, 2.0) for side in (pair.left, pair.right))
    yield (
        "SVT 3",
        partial(variants.svt3, cutoff=1, **queries),
        pure,
        pair,
        oracles.discrete(*distributions),
    )
    pair = low_then_high(5, 5)
    yield (
        "SVT 4",
        partial(variants.svt4, cutoff=5, **queries),
        pure,
        pair,
        pattern_oracle(pair, thresholds=0.0, threshold_scale=4.0, query_scale=4 / 3, cutoff=5),
    )
    pair = query_pair([0.0, 1.0], [1.0, 0.0], "crossing")
    yield (
        "SVT 5",
        partial(variants.svt5, **queries | {"thresholds": 0.5}),
        pure,
        pair,
        pattern_oracle(pair, thresholds=0.5, threshold_scale=2.0, query_scale=0.0),
    )
    half = np.full(10, 0.5)
    pair = query_pair(np.r_[-half, half], np.r_[half, -half], "10 rise, then 10 fall")
    distributions = (two_group_distribution(*ends, 10, 2.0) for ends in ((-0.5, 0.5), (0.5, -0.5)))
    yield "SVT 6", partial(variants.svt6, **queries), pure, pair, oracles.discrete(*distributions)
    yield (
        "Laplace, half the scale",
        partial(noise_mutants.laplace_half_scale, sensitivity=1.0, epsilon=EPSILON),
        pure,
        one,
        oracles.laplace(1.0, 0.5 / EPSILON),
    )
    yield (
        "Laplace, 0.9 of the scale",
        partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=EPSILON / 0.9),
        pure,
        one,
        oracles.laplace(1.0, 0.9 / EPSILON),
    )
    sigma = noise.analytic_gaussian_sigma(1.0, EPSILON, DELTA)
    yield (
        "Gaussian, half the deviation",
        partial(noise.gaussian_mechanism, sigma=sigma / 2),
        ApproxDP(EPSILON, DELTA),
        one,
        oracles.gaussian(1.0, sigma / 2),
    )
    yield (
        "discrete Laplace, half the scale",
        partial(noise_mutants.discrete_laplace_half_scale, sensitivity=1, epsilon=EPSILON),
        pure,
        NeighborPair(np.array(11), np.array(10), relation=Relation.WITHIN_SENSITIVITY),
        oracles.discrete_laplace(1, 0.5 / EPSILON),
    )
    yield (
        "randomised response, twice epsilon",
        partial(noise_mutants.randomized_response_doubled, epsilon=EPSILON),
        pure,
        NeighborPair(np.array([1]), np.array([0])),
        oracles.randomized_response(2 * EPSILON),
    )
    scores = nb.value_pattern("one_above_rest_below", 5)
    yield (
        "exponential mechanism, monotone",
        partial(selection_mutants.exponential_mechanism_monotone, sensitivity=1.0, epsilon=EPSILON),
        pure,
        scores,
        oracles.exponential_mechanism(scores.left, scores.right, 1.0, 2 * EPSILON),
    )
    yield (
        "report-noisy-max, monotone",
        partial(selection_mutants.report_noisy_max_monotone, sensitivity=1.0, epsilon=EPSILON),
        pure,
        scores,
        oracles.report_noisy_max(scores.left, scores.right, 1.0, 2 * EPSILON),
    )


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--failure-prob", type=float, default=1e-5)
    parser.add_argument("-k", default="", help="only cases with this in their name")
    args = parser.parse_args()
    print(f"failure_prob {args.failure_prob:g}, {args.seeds} seeds, claim epsilon = {EPSILON:g}")
    print(
        f"{'mechanism':<36}{'fixed':>9}{'sequential':>12}{'ratio':>7}{'lowest':>9}{'highest':>9}"
        f"{'found':>8}"
    )
    for name, mechanism, claim, pair, distribution in cases():
        if args.k not in name:
            continue
        least = draws_to_refute(
            distribution,
            epsilon=EPSILON,
            delta=claim.point[1],
            power=0.5,
            failure_prob=args.failure_prob,
        )
        look = partial(audit, mechanism, claim, pair, failure_prob=args.failure_prob, id=name)
        spent, found = [], 0
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            result = look(draws=BUDGET, seed=seed, method="sequential")
            refuted = result.verdict is Verdict.REFUTED
            spent.append(sum(result.draws.values()) if refuted else np.inf)
            found += look(draws=QUICK, seed=seed).certified_epsilon > EPSILON
        median = np.median(spent)
        print(
            f"{name:<36}{least:>9,}{median:>12,.0f}{median / least:>7.2f}{min(spent):>9,.0f}"
            f"{max(spent):>9,.0f}{found:>5} / {args.seeds}",
            flush=True,
        )


if __name__ == "__main__":
    main()
