"""Compare certified epsilons with the epsilon that an oracle with the best event certifies.

    python -m benchmarks.tightness [--draws 10000 100000 1000000] [--seeds 20] [--failure-prob 0.05]
    python -m benchmarks.tightness --blind [--seeds 20]

The oracle maximises over all events {p > e^t q} of the exact distribution. The oracle takes two
Clopper-Pearson bounds at the same failure probability on *all* draws, at expected counts. The
oracle is the best result of a method that knows the event. The audit learns its event, and uses
some of the same draws for exploration. The shares are averages over seeds, and each audit draws
anew. With ``--blind``, the same shares are measured on leaks that are visible in one feature only
(:mod:`benchmarks.blind_spots`). There are 100,000 draws, and failure_prob is 1e-6.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from algorithms.common import histogram, means, noise, selection
from benchmarks import blind_spots
from dpaudit import ApproxDP, NeighborPair, PureDP, Relation, audit, within_sensitivity
from dpaudit import neighbors as nb
from dpaudit.stats import loss_of_rates, lower_rates, oracles, upper_rates

EPSILON, DELTA = 1.0, 1e-5


def cases():
    """Yield (name, mechanism, claim, pair, oracle) for every mechanism with a known profile."""
    one = nb.value_pattern("one_above", 1)
    yield (
        "Laplace",
        partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON),
        one,
        oracles.laplace(1.0, 1 / EPSILON),
    )
    yield (
        "Laplace, 5 dimensions",
        partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON),
        nb.value_pattern("all_above", 5, relation=within_sensitivity(1.0, norm="l1")),
        oracles.laplace_vector([0.2] * 5, 1 / EPSILON),
    )
    for name, sigma in (
        ("Gaussian, classic", noise.classic_gaussian_sigma(1.0, EPSILON, DELTA)),
        ("Gaussian, analytic", noise.analytic_gaussian_sigma(1.0, EPSILON, DELTA)),
    ):
        yield (
            name,
            partial(noise.gaussian_mechanism, sigma=sigma),
            ApproxDP(EPSILON, DELTA),
            one,
            oracles.gaussian(1.0, sigma),
        )
    relation = within_sensitivity(1.0, norm="l2")
    sigma = noise.analytic_gaussian_sigma(1.0, EPSILON, DELTA)
    yield (
        "Gaussian, 10 dimensions",
        partial(noise.gaussian_mechanism, sigma=sigma),
        ApproxDP(EPSILON, DELTA),
        nb.value_pattern("all_above", 10, relation=relation),
        oracles.gaussian(1.0, sigma),
    )
    yield (
        "discrete Laplace",
        partial(noise.discrete_laplace_mechanism, sensitivity=1, epsilon=EPSILON),
        PureDP(EPSILON),
        NeighborPair(np.array(11), np.array(10), relation=Relation.WITHIN_SENSITIVITY),
        oracles.discrete_laplace(1, 1 / EPSILON),
    )
    yield (
        "randomised response",
        partial(noise.randomized_response, epsilon=EPSILON),
        PureDP(EPSILON),
        NeighborPair(np.array([1]), np.array([0])),
        oracles.randomized_response(EPSILON),
    )
    scores = nb.value_pattern("one_above_rest_below", 5)
    both = scores.left, scores.right
    yield (
        "exponential mechanism",
        partial(selection.exponential_mechanism, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON),
        scores,
        oracles.exponential_mechanism(*both, 1.0, EPSILON),
    )
    yield (
        "report-noisy-max",
        partial(selection.report_noisy_max, sensitivity=1.0, epsilon=EPSILON),
        PureDP(EPSILON),
        scores,
        oracles.report_noisy_max(*both, 1.0, EPSILON),
    )
    items = np.repeat(np.arange(4), 5)[:, None]
    moved = items.copy()
    moved[-1] = 0
    yield (
        "noisy histogram",
        partial(histogram.noisy_histogram, n_bins=4, epsilon=EPSILON),
        PureDP(EPSILON),
        NeighborPair(items, moved),
        oracles.laplace_vector([1.0, 1.0], 2 / EPSILON),
    )
    yield (
        "clipped user mean",
        partial(means.clipped_user_mean, clip_norm=1.0, epsilon=EPSILON),
        PureDP(EPSILON),
        nb.clip_boundary_user(n_users=20, m=8, low=-1.0, high=1.0),
        oracles.laplace(1.0, 1 / EPSILON),
    )
    corner = np.ones((8, 10))
    others = np.zeros((19, 8, 10))
    yield (
        "clipped user mean, 10-d Gaussian",
        partial(means.clipped_user_mean_gaussian, clip_norm=1.0, epsilon=EPSILON, delta=DELTA),
        ApproxDP(EPSILON, DELTA),
        NeighborPair(
            np.concatenate([others, corner[None]]), np.concatenate([others, -corner[None]])
        ),
        oracles.gaussian(1.0, sigma),
    )


def oracle_epsilon(oracle, delta, draws, failure_prob):
    """Return the epsilon that two Clopper-Pearson bounds certify for the best event.

    The counts are the expected counts.
    """
    best = 0.0
    for distribution in (oracle, oracle.swapped()):
        p, q = distribution.curve()
        inner = (p > 0) & (q < 1)
        p, q = p[inner], q[inner]
        # The straight edges of the curve split an atom. Interpolation covers these events.
        if len(p) < 1000:
            fine, whole = np.linspace(0, len(p) - 1, 20 * len(p)), np.arange(len(p))
            p, q = np.interp(fine, whole, p), np.interp(fine, whole, q)
        likely = lower_rates(p * draws, draws, failure_prob / 2)
        rare = upper_rates(q * draws, draws, failure_prob / 2)
        best = max(best, float(loss_of_rates(likely, rare, delta).max()))
    return best


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--failure-prob", type=float, default=0.05)
    parser.add_argument("--blind", action="store_true", help="audit leaks visible in one place")
    args = parser.parse_args()
    if args.blind:
        claim = PureDP(EPSILON)
        rows = [(name, m, claim, pair, oracle()) for name, m, pair, oracle in blind_spots.cases()]
        table(rows, 10**5, args.seeds, 1e-6)
        return
    for draws in args.draws:
        table(cases(), draws, args.seeds, args.failure_prob)


def table(rows, draws, seeds, failure_prob):
    """Print the table for one number of draws."""
    shares = []
    print(f"{draws:,} draws per dataset in all, failure_prob {failure_prob:g}, {seeds} seeds")
    print(f"{'mechanism':<40}{'true':>8}{'oracle':>9}{'certified':>11}{'share':>8}{'lowest':>8}")
    for name, mechanism, claim, pair, oracle in rows:
        delta = claim.point[1]
        reachable = oracle_epsilon(oracle, delta, draws, failure_prob)
        look = partial(audit, mechanism, claim, pair, draws=draws, id=name)
        found = [
            look(failure_prob=failure_prob, seed=seed).certified_epsilon for seed in range(seeds)
        ]
        share = np.array(found) / reachable
        shares.append(share.mean())
        print(
            f"{name:<40}{oracle.epsilon(delta):>8.3f}{reachable:>9.3f}{np.mean(found):>11.3f}"
            f"{share.mean():>8.3f}{share.min():>8.3f}"
        )
    print(f"{'average':<68}{np.mean(shares):>8.3f}{min(shares):>8.3f}")


if __name__ == "__main__":
    main()
