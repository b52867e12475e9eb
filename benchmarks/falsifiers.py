"""Count how many planted mistakes the searches of the ledger find within the quick budget.

    python -m benchmarks.falsifiers [--seeds 10] [--examples 300] [--rows PATH ...]

There are 24 true and tight statements, each with one planted mistake that is typical of papers.
Examples are a constant that is 5% too small, a missing logarithm, a wrong direction, and a
forgotten edge case. The searches receive no hand-built cases.

*evolution* is the search of a domain, and *hypothesis* is the search of a strategy. *random* draws
equally many cases from the domain, for comparison. With --rows, the counterexamples of a ledger are
searched again without its hand-built cases.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Domain, falsify, sweep
from dpaudit.properties.generating import st

Sides = Callable[..., "tuple[float, float] | None"]


@dataclass(frozen=True)
class Planted:
    """A true statement with a planted mistake."""

    name: str
    sides: Sides
    parts: dict[str, Any]


def contraction(a: float, b: float, angle: float) -> tuple[float, float]:
    """Take two steps of length eta = 1 along unit vectors at an angle.

    The sharp constant is 2 eta, not 1.9.
    """
    apart = math.sqrt(max(a * a + b * b - 2 * a * b * math.cos(angle), 0.0))
    a, b = a - 1, b - 1
    left = math.sqrt(max(a * a + b * b - 2 * a * b * math.cos(angle), 0.0))
    return left, max(apart, 1.9)


def hoeffding(n: int, p: float, t: float) -> tuple[float, float] | None:
    """Return both sides of -log P[S >= n (p + t)] >= 2.1 n t^2.

    The true constant is 2.
    """
    if not 0 < p + t < 1:
        return None
    tail = stats.binom.logsf(math.ceil(n * (p + t)) - 1, n, p)
    return 2.1 * n * t * t, -float(tail)


def neighbours(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Compare two means of points in [-1, 1] that differ in one point.

    The means are up to 2 / n apart, but the planted bound is 5% less.
    """
    other = x.copy()
    other[-1] = y[0]
    return abs(float(x.mean() - other.mean())), 0.95 * 2 / len(x)


def mean_of_means(data: np.ndarray, user: np.ndarray, n: int, m: int) -> tuple[float, float]:
    """Bound by 0.95 / n how far one user moves a mean of n users with m items in [0, 1]."""
    return abs(float(data[-1].mean() - user.mean())) / n, 0.95 / n


def larger_clip(x: np.ndarray, y: np.ndarray, d: int) -> tuple[float, float]:
    """Bound the distance of two points of [-1, 1]^d by 95% of their largest distance."""
    return float(np.linalg.norm(x - y)), 0.95 * 2 * math.sqrt(d)


def worst_median(x: np.ndarray, y: np.ndarray, n: int) -> tuple[float, float] | None:
    """Bound by 0.95 how far one of n numbers in [0, 1] moves their median."""
    other = x.copy()
    other[-1] = y[0]
    return abs(float(np.median(x) - np.median(other))), 0.95 if n < 3 else 1.0


def survivors(n: int) -> tuple[float, float]:
    """Bound the number of common survivors of two datasets by 2 from below.

    The bound holds for n >= 10, but not for n = 9.
    """
    return 2, 2 * (math.floor(0.55 * n) + 1) - n


def log_factorial(n: int) -> tuple[float, float]:
    """Bound n! by 95% of e sqrt(n) (n / e)^n, in logarithms."""
    return special.gammaln(n + 1), math.log(0.95) + 1 + 0.5 * math.log(n) + n * (math.log(n) - 1)


def pinsker(p: float, q: float) -> tuple[float, float]:
    """Bound TV^2 by 95% of KL / 2 for two coins."""
    kl = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    return (p - q) ** 2, 0.475 * kl


SQUARE = {"x": Interval(-1.0, 1.0), "y": Interval(-1.0, 1.0)}
UNIT = Interval(-1.0, 1.0)
WIDE = Interval(1e-6, 1e6, log=True)

PLANTED = [
    Planted("contraction: 1.9 for 2", contraction,
            {"a": Interval(0.0, 9.0), "b": Interval(0.0, 9.0), "angle": Interval(0.0, math.pi)}),
    Planted("triangle inequality", lambda x, y: (abs(x + y), 0.95 * (abs(x) + abs(y))), SQUARE),
    Planted("Jensen, 6 points", lambda x: (x.mean() ** 2, 0.95 * (x**2).mean()),
            {"x": Array(UNIT, (6,))}),
    Planted("Cauchy-Schwarz, 3 dimensions",
            lambda x, y: (abs(x @ y), 0.95 * np.linalg.norm(x) * np.linalg.norm(y)),
            {"x": Array(UNIT, (3,)), "y": Array(UNIT, (3,))}),
    Planted("Gaussian tail: .475 for .5",
            lambda t: (stats.norm.sf(t), 0.475 * math.exp(-t * t / 2)), {"t": Interval(0.0, 10.0)}),
    Planted("Laplace tail", lambda t: (math.exp(-t), 0.95 * math.exp(-t)),
            {"t": Interval(0.0, 9.0)}),
    Planted("harmonic sum at n = 1", lambda n: (special.digamma(n + 1) + np.euler_gamma,
            math.log(n) + 0.95), {"n": Integer(1, 1000)}),
    Planted("harmonic sum without its log",
            lambda n: (special.digamma(n + 1) + np.euler_gamma, 5.0), {"n": Integer(1, 10_000)}),
    Planted("powers, wrong way above 1", lambda a: (a**3, a**2), {"a": Interval(0.0, 1.05)}),
    Planted("Hoeffding: 2.1 for 2", hoeffding,
            {"n": Integer(1, 100_000), "p": Interval(0.01, 0.99), "t": Interval(0.01, 0.5)}),
    Planted("neighbouring means, 5 users", neighbours,
            {"x": Array(UNIT, (5,)), "y": Array(UNIT, (1,))}),
    Planted("variance of points in [0, 1]", lambda x: (x.var(), 0.2375),
            {"x": Array(Interval(0.0, 1.0), (6,))}),
    Planted("survivors at n = 9", survivors, {"n": Integer(9, 2000)}),
    Planted("means, arithmetic and geometric",
            lambda a, b: (math.sqrt(a * b), 0.95 * (a + b) / 2), {"a": WIDE, "b": WIDE}),
    Planted("l1 and l2, 8 dimensions",
            lambda x: (np.abs(x).sum(), 0.95 * math.sqrt(8) * np.linalg.norm(x)),
            {"x": Array(UNIT, (8,))}),
    Planted("Bernoulli, powers below 1", lambda x, r: (1 + r * x, (1 + x) ** r),
            {"x": Interval(-1.0, 3.0), "r": Interval(0.95, 3.0)}),
    Planted("Pinsker", pinsker, {"p": Interval(0.001, 0.999), "q": Interval(0.001, 0.999)}),
    Planted("total variation of Gaussians",
            lambda mu: (2 * stats.norm.cdf(mu / 2) - 1, 0.95 * mu / math.sqrt(2 * math.pi)),
            {"mu": Interval(0.001, 5.0, log=True)}),
    Planted("half of a coin's throws, small even n",
            lambda n: (float(stats.binom.sf(math.ceil(n / 2) - 1, n, 0.5)), 0.6),
            {"n": Integer(1, 1000)}),
    Planted("mean of means, 1 to 8 users and items", mean_of_means,
            {"data": Array(Interval(0.0, 1.0), ("n", "m")),
             "user": Array(Interval(0.0, 1.0), ("m",)), "n": Integer(1, 8), "m": Integer(1, 8)}),
    Planted("a cube's diameter, 1 to 20 dimensions", larger_clip,
            {"x": Array(UNIT, ("d",)), "y": Array(UNIT, ("d",)), "d": Integer(1, 20)}),
    Planted("median of one number, 1 to 50 users", worst_median,
            {"x": Array(Interval(0.0, 1.0), ("n",)), "y": Array(Interval(0.0, 1.0), (1,)),
             "n": Integer(1, 50)}),
    Planted("Jensen, 1 to 200 points", lambda x, n: (x.mean() ** 2, 0.95 * (x**2).mean()),
            {"x": Array(UNIT, ("n",)), "n": Integer(1, 200)}),
    Planted("Stirling at n = 1, 2", log_factorial, {"n": Integer(1, 1000)}),
]  # fmt: skip


def evolution(planted: Planted, seed: int, examples: int) -> bool:
    """Search the domain."""
    domain = Domain(**planted.parts)
    return falsify(domain, planted.sides, seed=seed, examples=examples, mutant=None).violated


def by_hypothesis(planted: Planted, seed: int, examples: int) -> bool:
    """Search with the strategy of the domain."""
    sized = Domain(**planted.parts).sized()
    strategy = st.one_of([domain.strategy() for domain in sized])
    return falsify(strategy, planted.sides, seed=seed, examples=examples, mutant=None).violated


def at_random(planted: Planted, seed: int, examples: int) -> bool:
    """Draw from the domain at random."""
    domain, rng = Domain(**planted.parts), np.random.default_rng(seed)
    sized = domain.sized()
    cases = []
    for _ in range(examples):
        one = sized[rng.integers(len(sized))]
        cases.append(one.at(rng.random(one.dimension)))
    return sweep(cases, planted.sides, mutant=None).violated


SEARCHES = {"evolution": evolution, "hypothesis": by_hypothesis, "random": at_random}


def again(paths: list[Path]) -> None:
    """Search again for the counterexamples of ledgers, without hand-built cases."""
    import pytest

    from dpaudit.ledger import attacks

    counted: dict[str, list[str]] = {"found": [], "missed": []}

    def without_extremal(*args: Any, extremal: Any = (), **options: Any) -> Any:
        made = falsify(*args, extremal=extremal, **options)
        if made.violated:
            found = not extremal or falsify(*args, extremal=(), **options).violated
            counted["found" if found else "missed"].append(made.claim)
        return made

    attacks.falsify = without_extremal  # type: ignore[assignment]
    pytest.main(["-q", "-p", "no:cacheprovider", "-n", "0", "--dpaudit", *map(str, paths)])
    print(f"\nfound without hand-built cases: {len(counted['found'])}")
    print(f"only by a hand-built case: {len(counted['missed'])}")
    for claim in counted["missed"]:
        print(f"  {claim}")


def main() -> None:
    """Print how often each mistake is found."""
    parser = argparse.ArgumentParser(description="Count what the searches of the ledger find.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--rows", nargs="+", type=Path, default=[])
    asked = parser.parse_args()
    if asked.rows:
        again(asked.rows)
        return
    print(f"found with {asked.examples} examples, of {asked.seeds} seeds")
    print(f"{'mistake':40}" + "".join(f"{name:>12}" for name in SEARCHES))
    always = dict.fromkeys(SEARCHES, 0)
    for planted in PLANTED:
        line = f"{planted.name:40}"
        for name, search in SEARCHES.items():
            found = sum(search(planted, seed, asked.examples) for seed in range(asked.seeds))
            always[name] += found == asked.seeds
            line += f"{found:12}"
        print(line, flush=True)
    print(f"{'found with every seed':40}" + "".join(f"{always[name]:12}" for name in SEARCHES))


if __name__ == "__main__":
    main()
