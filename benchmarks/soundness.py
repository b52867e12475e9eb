"""Count false refutations of whole audits on mechanisms that satisfy their claim exactly.

    python -m benchmarks.soundness [--audits 2000] [--draws 3000] [--failure-prob 0.05 0.001]
                                   [--mode fixed few stored sequential smoothed]
    python -m benchmarks.soundness --history [--lives 2000] [--violated 40]

`few` has a tenth of the draws. At this number of draws, guesses by rank are used too. `stored` has
outputs that were drawn before, with three times as many outputs on one side. Audits in one run are
measured in `benchmarks.one_run`.

Each audit explores, freezes and certifies from the start, with its own seed. The benchmark counts
audits that refute the claim. The benchmark also counts audits in which any certified number
(epsilon, delta or a point of the profile) exceeds the exact number. The two shares must stay below
failure_prob + 3 standard errors.

`--history` counts projects whose history ever refutes a claim. A life has 100 runs of one audit,
and each run has 3,000 draws per dataset. The code changes before a run with probability 0, 0.1 or
1. The mechanism is randomised response with exactly the claimed epsilon, where all bets are fair.
Its counts are drawn directly, because 600,000 whole audits would take a day. The bets and the
history are those of an audit. Then whole audits show after how many runs a claim of 1 is refuted if
the true epsilon is larger.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial

import numpy as np
from scipy.stats import laplace, norm

from algorithms.common import noise
from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    NeighborPair,
    PureDP,
    Verdict,
    audit,
    audit_outputs,
    within_sensitivity,
)
from dpaudit import neighbors as nb
from dpaudit.engine.evidence import Evidence
from dpaudit.stats import hockey_stick_density, oracles
from dpaudit.store import History, HistoryLine

DELTA = 0.01
SIGMA, RATE = 1.0, 0.3
MODES = ("fixed", "few", "stored", "sequential", "smoothed")


def sampled_center(data, size, *, rng):
    """Return the sum of the users, where the last user takes part with probability 0.3."""
    takes_part = rng.random(size) < RATE
    return data[:-1].sum() + np.where(takes_part, data[-1].sum(), 0.0)


@cache
def mixture_delta(distribution, epsilon):
    """Return the exact delta of `sampled_center` plus noise, on users (0, 1) against (0, 0)."""
    alone, shifted = distribution(0.0, SIGMA).pdf, distribution(1.0, SIGMA).pdf

    def mixed(x):
        return RATE * shifted(x) + (1 - RATE) * alone(x)

    points = [-8.0, -2.0, 0.0, 0.5, 1.0, 3.0, 9.0]
    both = ((mixed, alone), (alone, mixed))
    return max(hockey_stick_density(*sides, epsilon, breakpoints=points) for sides in both)


def cases(mode):
    """Return a dict of cases by name.

    A case is (mechanism, claim, pair, exact delta, exact epsilon). The mechanism satisfies the
    claim with equality.
    """
    one = nb.value_pattern("one_above", 1)
    if mode == "smoothed":
        pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
        found = {}
        for name, distribution, ball in (
            ("subsampled Gaussian", norm, None),
            ("subsampled Gaussian, in a ball", norm, ([0.5], 0.5)),
            ("subsampled Laplace", laplace, None),
        ):
            kind = "gaussian" if distribution is norm else "laplace"
            exact = partial(mixture_delta, distribution)
            claim = ApproxDP(0.1, exact(0.1))
            mechanism = AdditiveNoise(sampled_center, kind, SIGMA, ball=ball)
            found[name] = (mechanism, claim, pair, exact, lambda delta: 0.1)
        return found
    sigma = noise.analytic_gaussian_sigma(1.0, 1.0, DELTA)
    gaussian = oracles.gaussian(1.0, sigma)
    relation = within_sensitivity(1.0, norm="l1")
    known = {
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
            ApproxDP(1.0, float(gaussian.delta(1.0))),
            one,
            gaussian,
        ),
        "Laplace vector, 3 dimensions": (
            partial(noise.laplace_mechanism, sensitivity=1.0, epsilon=0.5),
            PureDP(0.5),
            nb.value_pattern("all_above", 3, relation=relation),
            oracles.laplace_vector([1 / 3] * 3, 2.0),
        ),
    }
    return {name: (*case[:3], case[3].delta, case[3].epsilon) for name, case in known.items()}


def look(mode, name, mechanism, claim, pair, draws, failure_prob, seed):
    """Audit once."""
    shared = {"failure_prob": failure_prob, "seed": seed, "id": name}
    if mode == "stored":
        rng = np.random.default_rng(seed)
        sizes = (draws // 3, draws) if seed % 2 else (draws, draws // 3)
        both = zip((pair.left, pair.right), sizes, strict=True)
        return audit_outputs(*(mechanism(data, n, rng=rng) for data, n in both), claim, **shared)
    draws = draws // 10 if mode == "few" else draws
    sequential = mode == "sequential"
    return audit(
        mechanism,
        claim,
        pair,
        draws=draws,
        method="sequential" if sequential else "fixed",
        mutants=None,
        **shared,
    )


def judge(mode, name, seeds, draws, failure_prob):
    """Return the numbers of false refutations and of audits that certify more than the truth."""
    mechanism, claim, pair, delta, epsilon = cases(mode)[name]
    refuted = exceeded = 0
    for seed in seeds:
        result = look(mode, name, mechanism, claim, pair, draws, failure_prob, seed)
        refuted += result.verdict is Verdict.REFUTED
        truth = [delta(float(e)) for e in result.profile.epsilon]
        exceeded += bool(
            result.certified_epsilon > epsilon(result.claimed_delta) * (1 + 1e-9)
            or result.certified_delta > delta(result.claimed_epsilon) * (1 + 1e-9)
            or np.any(np.array(result.profile.certified_delta) > np.array(truth) * (1 + 1e-9))
        )
    return refuted, exceeded


RUNS, LEVEL, EXPLORED, CERTIFYING = 100, 0.05, 900, 2100


def line(seed, code, values, failure_prob):
    """Return a line of a history."""
    return HistoryLine(
        "audit", "claim", "", str(code), seed, tuple(map(float, values)), failure_prob,
        failure_prob, Verdict.NOT_REFUTED, "", "",
    )  # fmt: skip


def life_refutes(seed, change):
    """Return whether the history of a valid claim ever refutes it."""
    rng = np.random.default_rng([seed, int(100 * change)])
    rates = 1 / (1 + np.exp(-1.0)), 1 / (1 + np.e)
    code, lines = 0, []
    for run in range(RUNS):
        code += bool(rng.random() < change)
        seen = [(rng.binomial(EXPLORED, rate) + 0.5) / (EXPLORED + 1) for rate in rates]
        bets = Evidence.against(*(np.array([rate, 1 - rate, 0.0]) for rate in seen), 1.0, 0.0)
        hits = [rng.binomial(CERTIFYING, rate) for rate in rates]
        sides = [np.array([hit, CERTIFYING - hit, 0]) for hit in hits]
        lines.append(line(run, code, bets.wager.log_growth(*sides), LEVEL))
    last = {one.code: at for at, one in enumerate(lines)}  # evidence counts at its largest
    return any(History(lines[:at]).accumulated(lines[at]).refuted for at in last.values())


def runs_to_refute(seed, epsilon, failure_prob, draws=3000):
    """Return after how many runs a history refutes epsilon = 1, and whether a single run does."""
    mechanism = partial(noise.randomized_response, epsilon=epsilon)
    pair, lines, alone = NeighborPair(np.array([1]), np.array([0])), [], False
    for run in range(10 * RUNS):
        result = audit(
            mechanism, PureDP(1.0), pair, draws=draws, mutants=None, failure_prob=failure_prob,
            seed=1000 * seed + run, id="history",
        )  # fmt: skip
        alone |= result.verdict is Verdict.REFUTED
        lines.append(line(run, 0, result.log_e_values, failure_prob))
        if History(lines[:-1]).accumulated(lines[-1]).refuted:
            return run + 1, alone
    return 10 * RUNS, alone


def histories(lives, violated):
    """Print how often histories are wrong, and how fast they refute."""
    with ProcessPoolExecutor() as pool:
        print(f"{lives} lives of {RUNS} runs of a valid claim, failure_prob {LEVEL}")
        for change in (0.0, 0.1, 1.0):
            count = sum(pool.map(partial(life_refutes, change=change), range(lives), chunksize=10))
            print(f"code changes in {change:>4.0%} of the runs: refuted {count / lives:.4f}")
        print(f"{violated} projects that claim epsilon = 1, failure_prob 1e-06, 3,000 draws a run")
        for epsilon in (1.05, 1.1, 1.2):
            work = partial(runs_to_refute, epsilon=epsilon, failure_prob=1e-6)
            runs, alone = zip(*pool.map(work, range(violated)), strict=True)
            low, middle, high = np.quantile(runs, [0.1, 0.5, 0.9], method="higher")
            print(
                f"true epsilon {epsilon}: refuted after {middle} runs (10%: {low}, 90%: {high}); "
                f"a single run refuted in {sum(alone)} of {violated}",
                flush=True,
            )


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=3000)
    parser.add_argument("--failure-prob", type=float, nargs="+", default=[0.05, 0.001])
    parser.add_argument("--mode", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--history", action="store_true")
    parser.add_argument("--lives", type=int, default=2000)
    parser.add_argument("--violated", type=int, default=40)
    args = parser.parse_args()
    if args.history:
        histories(args.lives, args.violated)
        return
    print(f"{args.audits} audits each of {args.draws:,} draws per dataset")
    print(
        f"{'mode':<12}{'mechanism':<36}{'failure_prob':>13}{'refuted':>9}{'any wrong':>11}  allowed"
    )
    parts = np.array_split(np.arange(args.audits), 16)
    with ProcessPoolExecutor() as pool:
        for mode in args.mode:
            for name in cases(mode):
                for level in args.failure_prob:
                    run = partial(pool.submit, judge, mode, name)
                    jobs = [run(part.tolist(), args.draws, level) for part in parts]
                    counts = np.sum([job.result() for job in jobs], axis=0)
                    refuted, wrong = counts / args.audits
                    allowed = level + 3 * math.sqrt(level * (1 - level) / args.audits)
                    print(
                        f"{mode:<12}{name:<36}{level:>13g}{refuted:>9.4f}{wrong:>11.4f}"
                        f"{allowed:>9.4f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
