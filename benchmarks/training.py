"""Compare certified epsilons of DP-SGD with a known score and with learned events.

    python -m benchmarks.training

The pair adds or removes one canary, which is a user with a distinctive gradient. The samples are
Poisson, and the adversary sees all noisy sums. The oracle knows the best event of the likelihood
ratio in advance and uses all draws. Two Clopper-Pearson bounds certify the two rates of this event.
The oracle knows the true rates, which an audit never knows. `along` integrates out the noise
(`DPSGD.along`). The numbers are medians over seeds.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, stats

from audits.training.tasks import DELTA, loud_user, poisson, train
from dpaudit import Accounted, ApproxDP, audit

DRAWS, SEEDS, REFERENCE = 20_000, 10, 2_000_000
FAILURE_PROBS = 1e-6, 0.05
TRUE = 2.0, 4.0, 7.4


def sigma_of(epsilon: float) -> float:
    """Return the noise multiplier at which the accountant reports `epsilon`."""
    found = optimize.brentq(
        lambda sigma: Accounted(poisson(sigma)).epsilon(DELTA) - epsilon, 0.5, 6.0, xtol=1e-3
    )
    return float(found)


def oracle(left: np.ndarray, right: np.ndarray, failure_prob: float) -> float:
    """Return the epsilon that Clopper-Pearson bounds certify for the best threshold.

    The rates are the expected rates.
    """
    best = 0.0
    for more, less in ((left, right), (-right, -left)):
        thresholds = np.quantile(
            more, np.concatenate([np.geomspace(1e-4, 0.5), np.linspace(0.5, 1)])
        )
        for threshold in thresholds[:-1]:
            hits = DRAWS * (more > threshold).mean()
            misses = DRAWS * (less > threshold).mean()
            lower = stats.beta.ppf(failure_prob / 2, max(hits, 1e-9), DRAWS - hits + 1)
            upper = stats.beta.ppf(1 - failure_prob / 2, misses + 1, max(DRAWS - misses, 1e-9))
            if lower > DELTA:
                best = max(best, float(np.log((lower - DELTA) / upper)))
    return best


def main() -> None:
    pair = loud_user()
    print("| true epsilon | sigma | failure_prob | learnt | known score | oracle | along |")
    print("|---|---|---|---|---|---|---|")
    for true in TRUE:
        sigma = sigma_of(true)
        run = train(sigma=sigma)
        score = run.likelihood_ratio(pair)
        drawn = [
            np.concatenate(
                [
                    score(run(data, REFERENCE // 20, rng=rng))
                    for rng in np.random.default_rng(0).spawn(20)
                ]
            )
            for data in (pair.left, pair.right)
        ]
        for failure_prob in FAILURE_PROBS:
            options = {"draws": DRAWS, "failure_prob": failure_prob, "mutants": None}
            apart = run.along(pair, rng=np.random.default_rng(0))
            looks = (run, None), (run, score), (apart, None)
            found = [
                [
                    audit(one, ApproxDP(0.1, DELTA), pair, seed=seed, score=by, **options)
                    for seed in range(SEEDS)
                ]
                for one, by in looks
            ]
            learnt, known, along = (np.median([r.certified_epsilon for r in f]) for f in found)
            best = oracle(*drawn, failure_prob)
            numbers = " | ".join(f"{number:.2f}" for number in (learnt, known, best, along))
            print(f"| {true} | {sigma:.2f} | {failure_prob:g} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
