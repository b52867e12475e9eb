"""Audit scores of training runs with a small number of draws, from 50 to 5,000.

    pip install '.[peers]' && python -m benchmarks.small_budgets [--draws 50 200 ...] [--seeds 100]
                                                                 [--failure-prob 0.05]

`oracle` knows the best event and takes two Clopper-Pearson bounds on all draws, at expected counts.
If privacy-estimates knows the best event, privacy-estimates gives the same result. The method of
jax-privacy receives the scores and chooses the threshold itself. dpaudit audits the score directly.
dpaudit does not know which side has the larger scores. The numbers are means over seeds, and
`wrong` counts certified numbers above the truth.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.tightness import oracle_epsilon
from dpaudit import ApproxDP, NeighborPair, PureDP, audit
from dpaudit.stats import oracles

PAIR = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))
DRAWS = (50, 100, 200, 500, 1000, 2000, 5000)


def gaussian_1(data, size, *, rng):
    """Return the score of a training run that is 1-GDP."""
    return data.sum() + rng.standard_normal(size)


def gaussian_2(data, size, *, rng):
    """Return the score of a training run that is 2-GDP."""
    return 2 * data.sum() + rng.standard_normal(size)


def laplace(data, size, *, rng):
    """Return a score with Laplace noise, epsilon = 1."""
    return data.sum() + rng.laplace(size=size)


def coin(data, size, *, rng):
    """Answer by randomised response with epsilon = 2, as a number."""
    keep = rng.random(size) < 1 / (1 + np.exp(-2.0))
    return np.where(keep, data.sum(), 1 - data.sum())


CASES = {
    "Gaussian, mu = 1": (gaussian_1, oracles.gaussian(1.0, 1.0), 0.0),
    "Gaussian, mu = 2, delta = 1e-5": (gaussian_2, oracles.gaussian(2.0, 1.0), 1e-5),
    "Laplace, epsilon = 1": (laplace, oracles.laplace(1.0, 1.0), 0.0),
    "randomised response, epsilon = 2": (coin, oracles.randomized_response(2.0), 0.0),
}


def ours(name, score, delta, draws, failure_prob, seed):
    """Return the certified epsilon of a whole audit."""
    claim = PureDP(1.0) if delta == 0 else ApproxDP(1.0, delta)
    return audit(
        score,
        claim,
        PAIR,
        draws=draws,
        failure_prob=failure_prob,
        seed=seed,
        id=name,
        mutants=None,
    ).certified_epsilon


def theirs(score, delta, draws, failure_prob, seed):
    """Return the certified epsilon of jax-privacy for each threshold strategy.

    Without jax-privacy, return {}.
    """
    try:
        from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Split
    except ImportError:
        return {}
    rng = np.random.default_rng(seed)
    left, right = (score(side, draws, rng=rng) for side in (PAIR.left, PAIR.right))
    auditor = CanaryScoreAuditor(left, right)
    return {
        f"jax-privacy, {type(strategy).__name__}": auditor.epsilon_clopper_pearson(
            failure_prob, delta, one_sided=False, threshold_strategy=strategy
        )
        for strategy in (Split(seed=seed), Bonferroni())
    }


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, nargs="+", default=DRAWS)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--failure-prob", type=float, default=0.05)
    args = parser.parse_args()
    print(f"failure_prob {args.failure_prob:g}, {args.seeds} seeds")
    print(f"{'score':<34}{'draws':>7}{'true':>7}{'oracle':>8}  method: certified, wrong")
    for name, (score, distribution, delta) in CASES.items():
        true = distribution.epsilon(delta)
        for draws in args.draws:
            oracle = oracle_epsilon(distribution, delta, draws, args.failure_prob)
            found = [
                {"dpaudit": ours(name, score, delta, draws, args.failure_prob, seed)}
                | theirs(score, delta, draws, args.failure_prob, seed)
                for seed in range(args.seeds)
            ]
            cells = []
            for method in found[0]:
                values = np.array([row[method] for row in found])
                cells.append(f"{method}: {values.mean():.3f}, {(values > true + 1e-9).sum()}")
            print(
                f"{name:<34}{draws:>7,}{true:>7.3f}{oracle:>8.3f}  {'; '.join(cells)}", flush=True
            )


if __name__ == "__main__":
    main()
