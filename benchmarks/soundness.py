"""False refutations of whole audits on mechanisms that keep their claim exactly.

    python -m benchmarks.soundness [--audits 2000] [--draws 4000] [--failure-prob 0.05]

Each audit explores, freezes and certifies afresh, with a seed of its own. Counted are audits that
refute the claim, and audits in which any certified number (epsilon, delta or a point of the
profile) exceeds the exact one. Both must stay below failure_prob + 3 standard errors.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from algorithms.common import noise
from dpaudit import ApproxDP, NeighborPair, PureDP, Verdict, audit, oracles, within_sensitivity
from dpaudit import neighbors as nb

DELTA = 0.01


def cases():
    """Return {name: (mechanism, claim, pair, oracle)}; every claim is exact."""
    one = nb.value_pattern("one_above", 1)
    sigma = noise.analytic_gaussian_sigma(1.0, 1.0, DELTA)
    exact = oracles.gaussian(1.0, sigma)
    relation = within_sensitivity(1.0, norm="l1")
    return {
        "Laplace, epsilon 0.5": (
            partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=0.5),
            PureDP(0.5),
            one,
            oracles.laplace(1.0, 2.0),
        ),
        "randomised response, epsilon 0.2": (
            partial(noise.randomized_response, epsilon=0.2),
            PureDP(0.2),
            NeighborPair(np.array([1]), np.array([0])),
            oracles.randomized_response(0.2),
        ),
        "Gaussian, exact delta at epsilon 1": (
            partial(noise.gaussian_mechanism, sigma=sigma),
            ApproxDP(1.0, float(exact.delta(1.0))),
            one,
            exact,
        ),
        "Laplace vector, 3 dimensions": (
            partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=0.5),
            PureDP(0.5),
            nb.value_pattern("all_above", 3, relation=relation),
            oracles.laplace_vector([1 / 3] * 3, 2.0),
        ),
    }


def judge(name, seeds, draws, failure_prob):
    """Return (false refutations, audits with any certified number above the truth)."""
    mechanism, claim, pair, oracle = cases()[name]
    refuted = exceeded = 0
    for seed in seeds:
        result = audit(
            mechanism, claim, pair, draws=draws, failure_prob=failure_prob, seed=seed, id=name
        )
        refuted += result.verdict is Verdict.REFUTED
        profile = np.array(result.profile.certified_delta)
        truth = oracle.delta(np.array(result.profile.epsilon))
        exceeded += bool(
            result.certified_epsilon > oracle.epsilon(result.claimed_delta)
            or result.certified_delta > oracle.delta(result.claimed_epsilon)
            or np.any(profile > truth)
        )
    return refuted, exceeded


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--failure-prob", type=float, default=0.05)
    args = parser.parse_args()
    allowed = args.failure_prob + 3 * math.sqrt(
        args.failure_prob * (1 - args.failure_prob) / args.audits
    )
    print(f"{args.audits} audits each at failure_prob {args.failure_prob:g}; allowed {allowed:.4f}")
    print(f"{'mechanism':<38}{'false refutations':>18}{'any number wrong':>18}")
    with ProcessPoolExecutor() as pool:
        parts = np.array_split(np.arange(args.audits), 8)
        for name in cases():
            jobs = [
                pool.submit(judge, name, part.tolist(), args.draws, args.failure_prob)
                for part in parts
            ]
            refuted, exceeded = np.sum([job.result() for job in jobs], axis=0)
            print(f"{name:<38}{refuted / args.audits:>18.4f}{exceeded / args.audits:>18.4f}")


if __name__ == "__main__":
    main()
