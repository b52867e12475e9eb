"""Measure audits in one run, beside two papers and jax-privacy on equal scores.

    python -m benchmarks.one_run [--audits 2000] [--canaries 200] [--peer-audits 200]
    python -m benchmarks.one_run --hindsight [--sizes 1000 10000]
    python -m benchmarks.one_run --nulls [--audits 2000] [--canaries 100] [--case NAME]

*False alarms*: these mechanisms satisfy their claim exactly. The benchmark counts audits in which
the certified number exceeds the truth. A false alarm may happen with probability at most
failure_prob = .05.

*Certified*: the table has the same methods on scores of mechanisms that exceed their claim,
averaged over audits.

*Hindsight*: the table has certified numbers at the expected counts of Gaussian scores. It compares
them with two papers at the number of guesses that is best for these counts, which nobody knows
beforehand. The papers are Steinke, Nasr and Jagielski (2023), Theorem 5.2 as printed, for epsilon
at four deltas, and Mahloujifar, Melis and Chaudhuri (2025), the recursion, for mu.

*Nulls*: whole audits of mechanisms that satisfy their claim exactly. An audit is wrong if it
refutes the claim, or if any certified number exceeds the truth.

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
from functools import partial

import numpy as np
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom, norm

from dpaudit import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP, audit_one_run
from dpaudit.engine.one_run import right_guesses
from dpaudit.stats import GuessPlanner, planned_guesses

FAILURE_PROB = 0.05
DELTAS = (0.0, 1e-5, 1e-4, 1e-3)
HALF = {"coins": "half"}
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


# --- methods --------------------------------------------------------------------------------


class Ours:
    """One instrument of dpaudit for one case."""

    def __init__(self, case, canaries, *, guesses=None, one_sided=False, mu=False):
        self.planner = GuessPlanner(canaries, FAILURE_PROB, one_sided, guesses)
        self.case, self.mu = case, mu

    def __call__(self, scores, coins):
        """Return the certified epsilon."""
        right = right_guesses(scores, coins, one_sided=self.planner.one_sided)
        if self.mu:
            mu = self.planner.mu(right)
            return GaussianDP(mu).epsilon(self.case.delta) if mu > 0 else 0.0
        return self.planner.epsilon(right, self.case.delta)


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


# --- the best number of guesses in hindsight ----------------------------------------------------


def expected_path(canaries, mu):
    """Return the expected numbers of correct guesses, rounded, of Gaussian scores mu apart."""
    numbers, cuts = np.arange(canaries + 1), np.linspace(mu / 2 + 9, 0, 200001)
    right = norm.sf(cuts - mu / 2)
    guessed = right + norm.sf(cuts + mu / 2)
    expected = canaries * np.interp(numbers / canaries, guessed, right)
    wrong = numbers - np.minimum(np.floor(expected + 0.5), numbers)
    return (numbers - np.maximum.accumulate(wrong)).astype(np.int64)


def last_refuted(refuted, high):
    low = 0.0
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def steinke(canaries, guesses, right, delta):
    """Return the certified epsilon of Steinke, Nasr and Jagielski (2023), Theorem 5.2."""

    def refuted(epsilon):
        rate = expit(epsilon)
        least = binom.sf(right - 1, guesses, rate)
        i = np.arange(1, right + 1)
        more = np.max((binom.sf(right - i - 1, guesses, rate) - least) / i) if delta else 0.0
        return least + 2 * canaries * delta * more <= FAILURE_PROB

    return last_refuted(refuted, 12.0)


def recursion(canaries, guesses, right):
    """Return the certified mu of Mahloujifar, Melis and Chaudhuri (2025)."""

    def refuted(mu):
        hit, miss = (FAILURE_PROB * x / canaries for x in (right, guesses - right))
        for i in range(right - 1, -1, -1):
            more = max(miss, ndtr(ndtri(hit) - mu))
            hit, miss = min(hit + i / (guesses - i) * (more - miss), 1.0), more
            if hit + miss > guesses / canaries:
                return True
        return False

    return last_refuted(refuted, 8.0)


def hindsight(sizes):
    """Print certified numbers as shares of the papers at their best number of guesses."""
    print("certified at expected counts (share of the paper at its best number of guesses)")
    print("canaries   mu  " + "".join(f"  epsilon, delta {d:<7g}" for d in DELTAS) + "  mu-GDP")
    for canaries in sizes:
        for mu in (0.5, 1.0, 2.0):
            right, planner = expected_path(canaries, mu), GuessPlanner(canaries, FAILURE_PROB)
            steps = 60 if canaries <= 2000 else 16  # the recursion is slow for many canaries
            tried = np.geomspace(canaries / 60, 0.6 * canaries, steps).astype(int).tolist()
            row = f"{canaries:>8,}  {mu:3g}  "
            for delta in DELTAS:
                best = max(steinke(canaries, n, int(right[n]), delta) for n in tried)
                ours = planner.epsilon(right, delta)
                row += f"  {ours:6.3f} ({ours / best:.3f})      "
            best = max(recursion(canaries, n, int(right[n])) for n in tried)
            ours = planner.mu(right)
            print(f"{row}  {ours:.3f} ({ours / best:.3f})", flush=True)


# --- whole audits of mechanisms that satisfy their claim -----------------------------------------


def told_all(epsilon, delta, coins, rng):
    """Answer by randomised response, but reveal all coins with probability delta."""
    if rng.random() < delta:
        return np.where(coins, 1.0, -1.0) * (3 + rng.random(len(coins)))
    return responses(epsilon, coins, rng)


def epsilon_of_responses(epsilon, leak, delta):
    """Return the true epsilon at delta of responses that reveal the truth with some probability."""
    if delta < leak:
        return math.inf
    rate = expit(epsilon)
    left = (delta - leak) / (1 - leak)
    return max(math.log((rate - left) / (1 - rate)), 0.0) if left < rate else 0.0


def nulls(canaries, audits, case):
    """Print how many whole audits were wrong, for each kind of claim."""
    one, kept = partial(epsilon_of_responses, 1.0), GaussianDP(1.0).epsilon
    few, many = ApproxDP(1.0, 1e-3), ApproxDP(1.0, 0.03)
    rows = [
        ("epsilon-DP", PureDP(1.0), partial(responses, 1.0), partial(one, 0.0), {}),
        ("mu-GDP", GaussianDP(1.0), partial(gaussian, 1.0), kept, {}),
        ("delta .001, each", few, partial(responses_told, 1, 1e-3), partial(one, 1e-3), {}),
        ("delta .03, all", many, partial(told_all, 1, 0.03), partial(one, 0.03), {}),
        ("mu-GDP, top", GaussianDP(1.0), partial(gaussian, 1.0), kept, {"side": "top"}),
        ("epsilon-DP, half", PureDP(1.0), partial(responses, 1.0), partial(one, 0.0), HALF),
        ("rho-zCDP", ZeroConcentratedDP(0.5), partial(gaussian, 1.0), kept, {}),
        ("delta .001, all", few, partial(told_all, 1, 1e-3), partial(one, 1e-3), {}),
        ("delta .03, each", many, partial(responses_told, 1, 0.03), partial(one, 0.03), {}),
    ]
    planned_guesses.refutes = remembered(planned_guesses.refutes)
    planned_guesses.sum_bound = remembered(planned_guesses.sum_bound)
    print(f"{audits:,} whole null audits, {canaries} canaries, failure_prob {FAILURE_PROB}")
    for name, claim, draw, truth, options in rows:
        if case is not None and case not in name:
            continue
        refuted = wrong = 0
        for seed in range(audits):
            rng = np.random.default_rng((11, seed))
            coins = rng.random(canaries) < 0.5
            if options is HALF:
                coins = rng.permutation(np.arange(canaries) < canaries // 2)
            found = audit_one_run(
                draw(coins, rng), coins, claim, failure_prob=FAILURE_PROB, **options
            )
            seen = found.diagnostics.canaries
            over = any(
                e > truth(d) + 1e-9
                for d, e in zip(seen.deltas, seen.certified_epsilons, strict=True)
            )
            mu = found.diagnostics.curves.certified_mu if name.startswith("mu") else 0.0
            refuted += found.verdict == "refuted"
            wrong += found.verdict == "refuted" or over or mu > 1.0
        print(
            f"{name:18} refuted {refuted / audits:.4f}  any wrong {wrong / audits:.4f}", flush=True
        )


def remembered(function):
    """Return a function that computes each result once; audits repeat the same bounds."""
    results = {}

    def call(wrong, numbers, allowance, *rest):
        key = wrong, numbers, allowance.slopes.tobytes(), allowance.budgets.tobytes(), rest
        if key not in results:
            results[key] = function(wrong, numbers, allowance, *rest)
        return results[key]

    return call


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--canaries", type=int)
    parser.add_argument("--peer-audits", type=int, default=200)
    parser.add_argument("--case", help="part of a name")
    parser.add_argument("--hindsight", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--nulls", action="store_true")
    asked = parser.parse_args()
    if asked.hindsight:
        return hindsight(asked.sizes)
    if asked.nulls:
        return nulls(asked.canaries or 100, asked.audits, asked.case)
    for case in cases():
        if asked.case is None or asked.case in case.name:
            simulate(case, asked.canaries or 200, asked.audits, asked.peer_audits)
    return None


if __name__ == "__main__":
    main()
