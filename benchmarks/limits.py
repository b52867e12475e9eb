"""Compare the draws that audits need with the fewest draws of any test of the claim.

    python -m benchmarks.limits [--limits 1000 100000] [--seeds 40] [--failure-prob 0.05]
                                [--modes score learnt sequential] [-k words] [--jobs 2]

Each mechanism is audited at a claimed epsilon below its own. The claim is chosen such that the best
possible test needs `limit` draws per dataset for power 0.9 (`oracles.nearest_private_pair`). The
ratio is the number of draws of an audit with power 0.9, exploration included, divided by the limit:

- `event`: no audit. The best single event is known in advance.
- `guess`: no audit. The best guess is known in advance: left above one threshold of the privacy
  loss, right below another threshold, and no guess between them.
- `score`: The audit knows the privacy loss of each output, as its `score`.
- `learnt`: The audit learns its event or guess.
- `sequential`: The median number of draws of a sequential audit, divided by the smallest expected
  number of any sequential test that always refutes in the end.

Powers are estimated from the seeds, and draws between two estimates are interpolated. So a ratio
has a standard error of about 5% at 40 seeds.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from scipy import optimize
from scipy.stats import norm

from benchmarks.refutation import cases as broken
from dpaudit import ApproxDP, ArgumentError, NeighborPair, PureDP, audit
from dpaudit.engine import draws_to_refute
from dpaudit.engine.chances import by_guess, guesses_of, smallest
from dpaudit.stats import oracles

POWER = 0.9
UNSEEN = 50.0
ONE = NeighborPair(np.array([[1.0]]), np.array([[0.0]]))
RATIOS = (0.9, 1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.3, 2.65, 3.0, 3.5, 4.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True)
class Case:
    """A mechanism whose privacy loss on a pair is known exactly."""

    mechanism: object
    pair: NeighborPair
    oracle: oracles.Oracle
    delta: float = 0.0
    loss: object = None  # the loss of an output, if the output is a number


def laplace(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def laplace_loss(x):
    """Return the loss without its rounding errors, which would distinguish the datasets."""
    return np.round(np.abs(x) - np.abs(x - 1), 9)


def gaussian(data, size, *, rng):
    return data.sum() + rng.standard_normal(size)


def gaussian_loss(x):
    return x - 0.5


def geometric(data, size, *, rng):
    p = 1 - np.exp(-1.0)
    return data.sum().astype(int) + rng.geometric(p, size) - rng.geometric(p, size)


def coin(data, size, *, rng):
    return np.where(rng.random(size) < 1 / (1 + np.exp(-1.0)), data.sum(), 1 - data.sum())


def coin_loss(x):
    return 2 * x - 1


def leaking(data, size, *, rng):
    """Release Laplace noise, and in 2% of the runs the secret itself."""
    noisy = data.sum() + rng.laplace(scale=2.0, size=size)
    return np.where(rng.random(size) < 0.02, 100.0 + data.sum(), noisy)


@cache
def leaking_oracle():
    p, q = (np.diff(side) for side in oracles.laplace(1.0, 2.0).curve())
    return oracles.discrete(np.r_[0.98 * p, 0.02, 0], np.r_[0.98 * q, 0, 0.02])


@cache
def cases():
    """Return the mechanisms by their names."""
    found = {
        "Laplace": Case(laplace, ONE, oracles.laplace(1.0, 1.0), loss=laplace_loss),
        "Gaussian": Case(gaussian, ONE, oracles.gaussian(1.0, 1.0), loss=gaussian_loss),
        "Gaussian, delta = 0.01": Case(
            gaussian, ONE, oracles.gaussian(1.0, 1.0), 0.01, gaussian_loss
        ),
        "geometric": Case(geometric, ONE, oracles.discrete_laplace(1, 1.0), loss=laplace_loss),
        "randomised response": Case(coin, ONE, oracles.randomized_response(1.0), loss=coin_loss),
        "Laplace, leak, delta = 0.01": Case(leaking, ONE, leaking_oracle(), 0.01),
    }
    kept = ("SVT 3", "SVT 4", "SVT 6", "exponential", "report-noisy-max")
    for name, mechanism, _, pair, oracle in broken():
        if name.startswith(kept):
            found[name] = Case(mechanism, pair, oracle)
    return found


@cache
def settings(name, limit, failure_prob):
    """Return (claimed epsilon, draws of the best event and guess, expected sequential draws)."""
    case = cases()[name]
    oracle, delta = case.oracle, case.delta
    true = min(oracle.epsilon(delta), oracle.epsilon(max(delta, 1e-9)), 8.0)

    def excess(share):
        try:
            nearest = oracles.nearest_private_pair(oracle, epsilon=share * true, delta=delta)
            return np.log(nearest.draws(power=POWER, failure_prob=failure_prob) / limit)
        except ArgumentError:  # the claim is violated by less than can be seen
            return UNSEEN

    low, high = 0.02, 0.999
    if excess(low) > 0 or excess(high) < 0:
        return None  # no claim has this limit
    epsilon = true * optimize.brentq(excess, low, high, xtol=1e-4)
    nearest = oracles.nearest_private_pair(oracle, epsilon=epsilon, delta=delta)
    event = draws_to_refute(
        oracle, epsilon=epsilon, delta=delta, power=POWER, failure_prob=failure_prob
    )
    guesses = guesses_of(*oracle.curve())

    def enough(draws):
        return by_guess(*guesses, 2 * draws, epsilon, delta, failure_prob).power >= POWER

    expected = nearest.expected_draws(failure_prob=failure_prob)
    return epsilon, event, smallest(enough), expected


def run(name, epsilon, draws, failure_prob, mode, seed):
    """Return (whether one audit refutes, its draws per dataset)."""
    case = cases()[name]
    claim = ApproxDP(epsilon, case.delta) if case.delta else PureDP(epsilon)
    options = {"score": case.loss} if mode == "score" else {}
    method = "sequential" if mode == "sequential" else "fixed"
    result = audit(
        case.mechanism,
        claim,
        case.pair,
        draws=draws,
        method=method,
        seed=seed,
        failure_prob=failure_prob,
        mutants=None,
        id=f"{name} {mode} {draws}",
        **options,
    )
    return result.certified_epsilon > epsilon, sum(result.draws.values())


def fixed(name, epsilon, limit, failure_prob, mode, seeds, pool):
    """Return the smallest ratio of the draws of an audit to the limit at which it has power 0.9.

    Power may fall again with more draws, because guesses by rank need few draws.
    """
    before = None
    for ratio in RATIOS:
        look = partial(run, name, epsilon, round(limit * ratio), failure_prob, mode)
        power = np.mean([refuted for refuted, _ in pool.map(look, range(seeds))])
        # Power is close to a normal probability of the root of the draws.
        level = norm.ppf(np.clip(power, 0.5 / seeds, 1 - 0.5 / seeds))
        if power >= POWER:
            if before is None:
                return ratio
            roots = np.sqrt([before[0], ratio])
            return np.interp(norm.ppf(POWER), [before[1], level], roots) ** 2
        before = ratio, level
    return np.inf


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=int, nargs="+", default=[1_000, 100_000])
    parser.add_argument("--modes", nargs="*", default=["score", "learnt", "sequential"])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--failure-prob", type=float, default=0.05)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-k", default="", help="only mechanisms with this in their name")
    args = parser.parse_args()
    columns = ["event", "guess", *args.modes]
    print(f"failure_prob {args.failure_prob:g}, power {POWER}, {args.seeds} seeds")
    print(f"{'mechanism':<30}{'limit':>9}{'epsilon':>9}" + "".join(f"{c:>12}" for c in columns))
    ratios = {(limit, mode): [] for limit in args.limits for mode in columns}
    with ProcessPoolExecutor(args.jobs) as pool:
        for name, case in cases().items():
            for limit in args.limits:
                if args.k not in name:
                    continue
                if (chosen := settings(name, limit, args.failure_prob)) is None:
                    continue
                epsilon, event, guess, expected = chosen
                known = {"event": event, "guess": guess}
                found = {mode: n / limit if n else np.inf for mode, n in known.items()}
                for mode in args.modes:
                    if mode == "score" and case.loss is None:
                        continue
                    if mode == "sequential":
                        most = 30 * limit
                        look = partial(run, name, epsilon, most, args.failure_prob, mode)
                        spent = [n if ok else np.inf for ok, n in pool.map(look, range(args.seeds))]
                        found[mode] = np.median(spent) / expected
                        continue
                    found[mode] = fixed(
                        name, epsilon, limit, args.failure_prob, mode, args.seeds, pool
                    )
                for mode, ratio in found.items():
                    ratios[limit, mode].append(ratio)
                cells = "".join(
                    f"{found[c]:>12.2f}" if c in found else f"{'':>12}" for c in columns
                )
                print(f"{name:<30}{limit:>9,}{epsilon:>9.4f}{cells}", flush=True)
    for limit in args.limits:
        cells = "".join(
            f"{np.median(ratios[limit, c]):>12.2f}" if ratios[limit, c] else f"{'':>12}"
            for c in columns
        )
        print(f"{'median':<30}{limit:>9,}{'':>9}{cells}")


if __name__ == "__main__":
    main()
