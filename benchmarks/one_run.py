"""Audits in one run: null simulations, and what they certify beside jax-privacy on equal scores.

    python -m benchmarks.one_run [--audits 2000] [--canaries 200] [--peer-audits 200]

*False alarms*: mechanisms that keep their claim exactly. Counted are audits in which the certified
number exceeds the truth; with probability above failure_prob = .05 it must not.
*Certified*: the same methods on scores of mechanisms that need more, averaged over audits.
*Idealised*: expected counts, mu = 2; one run with 1,000 canaries beside 1,000 trainings a side.

jax-privacy is asked where it is installed (the `peers` extra); it certifies delta > 0 only, so
that pure claims are put to it with delta = 1e-12. Its `Explicit` threshold is the best one
for the law of the scores, which nobody would know; ours take theirs from no such knowledge.
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
PURE = 1e-12  # as delta, where a peer wants one


@dataclass(frozen=True)
class Case:
    """A law of scores, and what is true of it."""

    name: str
    draw: Callable  # (coins, rng) -> scores
    delta: float
    epsilon: float  # at delta: the truth
    mu: float | None = None  # of Gaussian DP, where it is one
    null: bool = True


def gaussian(mu, coins, rng):
    return rng.standard_normal(len(coins)) + mu * coins


def responses(epsilon, coins, rng):
    """Randomised response with a confidence that says nothing."""
    keep = rng.random(len(coins)) < 1 / (1 + math.exp(-epsilon))
    return np.where(coins == keep, 1.0, -1.0) * (1 + rng.random(len(coins)))


def responses_told(epsilon, delta, coins, rng):
    """Randomised response, and with probability delta for each coin the truth, most confident."""
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


# --- our methods: everything depends on the counts at the looks, so it is computed once for each -


class Ours:
    """One instrument for one case."""

    def __init__(self, case, canaries, *, guesses=None, one_sided=False, mu=False):
        claim = GaussianDP(case.mu) if mu else ApproxDP(case.epsilon, case.delta)
        tool = partial(GuessTest.of, canaries=canaries, guesses=guesses, one_sided=one_sided)
        self.tool = tool(claim, failure_prob=FAILURE_PROB)
        self.case, self.mu, self.one_sided = case, mu, one_sided
        self.certified = cache(self._certified)

    def __call__(self, scores, coins):
        """Return what is certified."""
        looks = np.array(self.tool.looks.guesses)
        counts = right_guesses(scores, coins, looks, one_sided=self.one_sided)
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
    """Print what is certified at the expected counts of Gaussian scores 2 apart, at delta = 0."""
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
