"""Compare with privacy-estimates and the auditing module of jax-privacy, on equal input.

    pip install '.[peers]' && python -m benchmarks.peers [--draws 100000] [--seeds 20]

*Counts*: the methods receive counts of the best event of the exact distribution, in the same draws.
Each method returns one number.

*Scores*: the methods receive the exact log-likelihood ratio of each draw. Each method must then
choose an event. dpaudit audits the score as if it were the output.

The numbers are certified epsilons, averaged over seeds, as shares of the true epsilon. The column
`wrong` counts the seeds in which a number exceeded the truth.
"""

from __future__ import annotations

import argparse
import math
from functools import partial

import numpy as np
from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split
from privacy_estimates import AttackResults, compute_eps_lo

from algorithms.common import noise
from dpaudit import ApproxDP, NeighborPair, PureDP, audit
from dpaudit.stats import Counts, RateBounds, Target, oracles

DELTA = 1e-5
SIGMA = noise.analytic_gaussian_sigma(1.0, 1.0, DELTA)
PAIR = NeighborPair([[1.0]], [[0.0]])


def laplace_score(x):
    """Return the log-likelihood ratio of Laplace(1) noise on 1 against 0.

    The ratio is rounded, because the low bits of the exact difference reveal the side. Every method
    in this comparison would find these bits.
    """
    return np.round(np.clip(2 * x - 1, -1, 1), 6)


def gaussian_score(x):
    """Return the log-likelihood ratio of the Gaussian noise on 1 against 0, up to a factor."""
    return x


def coin(data, size, *, rng):
    """Answer by randomised response with epsilon = 1, as a number."""
    keep = rng.random(size) < math.e / (1 + math.e)
    return np.where(keep, data.sum(), 1 - data.sum())


def laplace(data, size, *, rng):
    """Add Laplace noise of scale 1."""
    return laplace_score(data.sum() + rng.laplace(size=size))


def gaussian(data, size, *, rng):
    """Add Gaussian noise, exact at epsilon = 1 and delta = 1e-5."""
    return gaussian_score(data.sum() + SIGMA * rng.standard_normal(size))


def cases():
    """Return a dict of cases by name.

    A case is (scores, distribution, delta, threshold of the best event at these draws).
    """
    return {
        "Laplace": (laplace, oracles.laplace(1.0, 1.0), 0.0),
        "randomised response": (coin, oracles.randomized_response(1.0), 0.0),
        "Gaussian, delta = 1e-5": (gaussian, oracles.gaussian(1.0, SIGMA), DELTA),
    }


def best_threshold(scores, distribution, delta, draws, failure_prob):
    """Return the score threshold that certifies most at expected counts, by Clopper-Pearson."""
    rng = np.random.default_rng(0)
    left, right = (np.sort(scores(side, 10**6, rng=rng)) for side in (PAIR.left, PAIR.right))
    cuts = np.unique(np.concatenate([left[:: 10**4], left[-2000::20]]))
    best, chosen = -1.0, cuts[0]
    for cut in cuts:
        p, q = (1 - np.searchsorted(side, cut) / len(side) for side in (left, right))
        counts = Counts(round(p * draws), draws, round(q * draws), draws)
        found = counted(counts, delta, failure_prob)["privacy-estimates, beta"]
        if found > best:
            best, chosen = found, cut
    return chosen


def counted(counts, delta, failure_prob):
    """Return the certified epsilon of each method from the counts of one event."""
    seen = AttackResults(
        TP=counts.hits_left,
        FN=counts.draws_left - counts.hits_left,
        FP=counts.hits_right,
        TN=counts.draws_right - counts.hits_right,
    )
    estimate = partial(compute_eps_lo, seen, delta, failure_prob)
    bounds = RateBounds.from_counts(counts, "left", failure_prob, Target(delta=delta))
    return {
        "dpaudit, joint bound": bounds.lower_epsilon(delta),
        "privacy-estimates, beta": estimate("beta"),
        "privacy-estimates, jeffreys": estimate("jeffreys"),
    }


def scored(name, scores, delta, draws, failure_prob, seed):
    """Return the certified epsilon of each method from scores. The method chooses the event."""
    claim = PureDP(1.0) if delta == 0 else ApproxDP(1.0, delta)
    ours = audit(
        scores,
        claim,
        PAIR,
        draws=draws,
        failure_prob=failure_prob,
        seed=seed,
        id=name,
        mutants=None,
    )
    rng = np.random.default_rng(seed)
    left, right = (scores(side, draws, rng=rng) for side in (PAIR.left, PAIR.right))
    auditor = CanaryScoreAuditor(left, right)
    theirs = {
        f"jax-privacy, {strategy.__class__.__name__}": auditor.epsilon_clopper_pearson(
            failure_prob, delta, one_sided=False, threshold_strategy=strategy
        )
        for strategy in (Split(seed=seed), Bonferroni())
    }
    return {"dpaudit, audit of the score": ours.certified_epsilon} | theirs


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--failure-prob", type=float, default=0.05)
    args = parser.parse_args()
    print(
        f"{args.draws:,} draws per dataset, failure_prob {args.failure_prob:g}, {args.seeds} seeds"
    )
    print(f"{'mechanism':<26}{'from':<8}{'method':<32}{'share':>7}{'lowest':>8}{'wrong':>7}")
    for name, (scores, distribution, delta) in cases().items():
        true = distribution.epsilon(delta)
        cut = best_threshold(scores, distribution, delta, args.draws, args.failure_prob)
        rows = {"counts": [], "scores": []}
        for seed in range(args.seeds):
            rng = np.random.default_rng([seed, 1])
            hits = [
                int((scores(side, args.draws, rng=rng) >= cut).sum())
                for side in (PAIR.left, PAIR.right)
            ]
            counts = Counts(hits[0], args.draws, hits[1], args.draws)
            rows["counts"].append(counted(counts, delta, args.failure_prob))
            rows["scores"].append(scored(name, scores, delta, args.draws, args.failure_prob, seed))
        for kind, found in rows.items():
            for method in found[0]:
                share = np.array([row[method] for row in found]) / true
                print(
                    f"{name:<26}{kind:<8}{method:<32}{share.mean():>7.3f}{share.min():>8.3f}"
                    f"{(share > 1 + 1e-9).sum():>7}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
