"""Simulate audits in one run, and compare the results with jax-privacy on equal scores.

    python -m benchmarks.one_run [--audits 2000] [--canaries 200] [--peer-audits 200]

*False alarms*: these mechanisms satisfy their claim exactly. The benchmark counts audits in which
the certified number exceeds the truth. A false alarm may happen with probability at most
failure_prob = .05.

*Certified*: the table has the same methods on scores of mechanisms that exceed their claim,
averaged over audits.

*Idealised*: the table has the results at expected counts for mu = 2. One run with 1,000 canaries is
compared with 1,000 trainings on each side.

jax-privacy is used if it is installed (the `peers` extra). jax-privacy certifies only for delta >
0, so pure claims are passed with delta = 1e-12. The `Explicit` threshold of jax-privacy is the best
threshold for the distribution of the scores, which would be unknown in practice. Our thresholds do
not use such knowledge.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy.special import logit
from scipy.stats import norm

from dpaudit import ApproxDP, GaussianDP, plan_one_run
from dpaudit.engine.one_run import GuessTest, right_guesses
from dpaudit.stats import lower_rates, upper_rates

FAILURE_PROB = 0.05
PURE = 1e-12  # the delta for pure claims, if a peer requires a delta


@dataclass(frozen=True)
class Case:
    """A distribution of scores, and its true privacy."""

    name: str
    draw: Callable  # (coins, rng) -> scores
    delta: float
    epsilon: float  # the true epsilon at delta
    mu: float | None = None  # the parameter of Gaussian DP, if there is one
    null: bool = True


def gaussian(mu, coins, rng):
    return rng.standard_normal(len(coins)) + mu * coins


def responses(epsilon, coins, rng):
    """Answer by randomised response, with a confidence that carries no information."""
    keep = rng.random(len(coins)) < 1 / (1 + math.exp(-epsilon))
    return np.where(coins == keep, 1.0, -1.0) * (1 + rng.random(len(coins)))


def responses_told(epsilon, delta, coins, rng):
    """Answer by randomised response, but reveal the true value with probability delta per coin."""
    told = rng.random(len(coins)) < delta
    sure = np.where(coins, 1.0, -1.0) * (3 + rng.random(len(coins)))
    return np.where(told, sure, responses(epsilon, coins, rng))


def cases():
    nothing = partial(gaussian, 0.0)
    return [
        Case("nothing, epsilon = 0", nothing, 0.0, 0.0, 1e-3),
        Case("responses, epsilon = 1", partial(responses, 1.0), 0.0, 1.0),
        Case("responses, epsilon = 3", partial(responses, 3.0), 0.0, 3.0),
        Case("told, (1, .001)", partial(responses_told, 1.0, 1e-3), 1e-3, 1.0),
        Case("told, (1, .03)", partial(responses_told, 1.0, 0.03), 0.03, 1.0),
        *(
            Case(f"Gaussian, mu = {mu:g}", partial(gaussian, mu), d, GaussianDP(mu).epsilon(d), mu)
            for mu, d in ((1.0, 1e-5), (2.0, 1e-5))
        ),
    ]


# --- our methods: results depend only on the counts, so each is computed once for each count ------


class Ours:
    """One instrument of dpaudit for one case."""

    def __init__(self, case, canaries, *, guesses=None, one_sided=False, mu=False):
        claim = GaussianDP(case.mu) if mu else ApproxDP(case.epsilon, case.delta)
        tool = partial(GuessTest.of, canaries=canaries, guesses=guesses, one_sided=one_sided)
        self.tool = tool(claim, failure_prob=FAILURE_PROB)
        self.case, self.mu, self.one_sided = case, mu, one_sided
        self.certified = cache(self._certified)

    def __call__(self, scores, coins):
        """Return the certified epsilon."""
        stages = np.array(self.tool.stages.guesses)
        counts = right_guesses(scores, coins, stages, one_sided=self.one_sided)
        return self.certified(tuple(counts.tolist()))

    def _certified(self, counts):
        counts = np.array(counts)
        if self.mu:
            mu = self.tool.mu(counts)
            return GaussianDP(mu).epsilon(self.case.delta) if mu > 0 else 0.0
        return self.tool.epsilon(counts, self.case.delta)


def ours(case, canaries):
    methods = {
        "dpaudit, by default": Ours(case, canaries),
        "dpaudit, a quarter guessed": Ours(case, canaries, guesses=canaries // 4),
        "dpaudit, top": Ours(case, canaries, one_sided=True),
    }
    if case.mu is not None and case.delta > 0:
        methods["dpaudit, Gaussian DP"] = Ours(case, canaries, mu=True)
        methods["dpaudit, Gaussian DP, top"] = Ours(case, canaries, mu=True, one_sided=True)
        methods["dpaudit, Gaussian DP, quarter, top"] = Ours(
            case, canaries, mu=True, one_sided=True, guesses=canaries // 4
        )
    return methods


def peers(case, canaries):
    try:
        from jax_privacy.auditing import Bonferroni, CanaryScoreAuditor, Explicit
    except ImportError:
        return {}

    def asked(name, strategy, scores, coins):
        auditor = CanaryScoreAuditor(scores[coins], scores[~coins])
        chosen = Bonferroni() if strategy is None else Explicit(strategy)
        found = getattr(auditor, name)(FAILURE_PROB, case.delta or PURE, threshold_strategy=chosen)
        return float(found)

    coins = np.random.default_rng(1).random(10**6) < 0.5
    cut = float(np.quantile(case.draw(coins, np.random.default_rng(2)), 0.875))
    methods = {
        "jax-privacy, Bonferroni": partial(asked, "epsilon_one_run", None),
        "jax-privacy, an eighth (top)": partial(asked, "epsilon_one_run", cut),
    }
    if case.mu is not None and case.delta > 0:
        methods["jax-privacy, f-DP, Bonferroni"] = partial(asked, "epsilon_one_run_fdp", None)
        methods["jax-privacy, f-DP, an eighth (top)"] = partial(asked, "epsilon_one_run_fdp", cut)
    return methods


def simulate(case, canaries, audits, peer_audits):
    print(f"\n{case.name}: {canaries} canaries, true epsilon {case.epsilon:.3f} at {case.delta:g}")
    both = [(n, f, audits) for n, f in ours(case, canaries).items()]
    both += [(n, f, min(peer_audits, audits)) for n, f in peers(case, canaries).items()]
    for name, method, number in both:
        found = []
        for seed in range(number):
            rng = np.random.default_rng((7, seed))
            coins = rng.random(canaries) < 0.5
            found.append(method(case.draw(coins, rng), coins))
        wrong = sum(f > case.epsilon + 1e-6 for f in found)
        print(
            f"  {name:36} wrong {wrong:4} of {number:,} ({wrong / number:.4f})"
            f"  certified {np.mean(found):.3f}",
            flush=True,
        )


def idealised():
    """Print the certified epsilon at expected counts of Gaussian scores 2 apart, for delta = 0."""
    plan = plan_one_run(ApproxDP(1.0, 0.0), mu=2.0, canaries=[1000], failure_prob=FAILURE_PROB)

    cuts = np.linspace(0, 6, 6001)
    right, wrong = (1000 * norm.sf(cuts - side) for side in (1.0, -1.0))
    rates = lower_rates(right, right + wrong, FAILURE_PROB)
    at = int(rates.argmax())
    fixed = float(logit(rates[at]))
    cuts = np.linspace(-4, 6, 2001)
    p, q = (1000 * norm.sf(cuts - m) for m in (2.0, 0.0))
    likely, rare = lower_rates(p, 1000, FAILURE_PROB / 2), upper_rates(q, 1000, FAILURE_PROB / 2)
    trainings = float(np.max(np.log(np.maximum(likely, 1e-300) / rare)))
    guessed = round(right[at] + wrong[at])
    print(f"idealised, mu = 2: one run with 1,000 canaries {plan.certified_epsilon[0]:.2f}")
    print(f"  (the best fixed number in hindsight, {guessed} guesses: {fixed:.2f})")
    print(f"  1,000 trainings a side, the best threshold in hindsight {trainings:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--canaries", type=int, default=200)
    parser.add_argument("--peer-audits", type=int, default=200)
    parser.add_argument("--case", help="part of a name")
    asked = parser.parse_args()
    if asked.case is None:
        idealised()
    for case in cases():
        if asked.case is None or asked.case in case.name:
            simulate(case, asked.canaries, asked.audits, asked.peer_audits)


if __name__ == "__main__":
    main()
