"""Measure the gain of a vectorised Euclidean algorithm, and one draw at n = 100,000 users.

    python -m benchmarks.user_level_sco

The benchmark compares 10,000 draws of the whole algorithm in one call with single draws, at n =
512, m = 4, d = 4, B = 32. The benchmark uses losses for which differences of gradients do not
depend on the point (quadratics), and other losses. All times are measured within this process, and
only the ratio is meaningful.
"""

from __future__ import annotations

import time

import numpy as np

from algorithms.user_level_sco import coordinatewise, euclidean, printed, problems, scaled
from algorithms.user_level_sco.domains import Ball, Box
from algorithms.user_level_sco.losses import Huber, Quadratic

DRAWS, SINGLES = 10_000, 500
USERS, ITEMS, DIMENSION = 100_000, 4, 50


def main() -> None:
    """Print one line for each loss, and one line for each algorithm."""
    vectorised()
    large()


def large() -> None:
    """Time one draw of the Euclidean and of the coordinatewise algorithm, for linear losses."""
    sizes = (USERS, ITEMS, DIMENSION)
    given = {"lipschitz": 1.0, "radius": 1.0}
    loud, private = {"epsilon": 4.0, "delta": 1e-3}, {"epsilon": 1.0, "delta": 1e-6}
    linf = coordinatewise.user_level_sco_linf
    tasks = (
        ("Euclidean, scaled", euclidean.user_level_sco, Ball(1.0),
         scaled.scaled_euclidean(*sizes, **loud, **given)),
        ("coordinatewise, scaled", linf, Box(1.0),
         scaled.scaled_coordinatewise(*sizes, **loud, **given)),
        ("coordinatewise, printed", linf, Box(1.0),
         printed.coordinatewise(*sizes, **private, **given)),
    )  # fmt: skip
    print(f"\none draw at n = {USERS:,}, m = {ITEMS}, d = {DIMENSION}")
    for name, algorithm, domain, plan in tasks:
        problem = problems.linear(domain, dimension=DIMENSION)
        rng = np.random.default_rng(0)
        data = problem.sample(USERS, ITEMS, rng=rng)
        start = time.perf_counter()
        algorithm(
            data, 1, loss=problem.loss, domain=domain, plan=plan, start=np.zeros(DIMENSION), rng=rng
        )
        print(f"{name:<28} B = {plan.batch_size:>5}{time.perf_counter() - start:>8.2f} s")


def vectorised() -> None:
    """Compare many draws in one call with single draws."""
    print(f"{'loss':<40}{'one call, s':>12}{'one by one, s':>15}{'ratio':>8}")
    for loss in (Quadratic(), Huber(1.0)):
        problem = problems.cube(loss, Ball(1.0), center=[0.1] * 4, half_width=0.25)
        rng = np.random.default_rng(0)
        data = problem.sample(512, 4, rng=rng)
        plan = scaled.scaled_euclidean(
            512, 4, 4, epsilon=60.0, delta=0.2, lipschitz=loss.longest_gradient(
                data, problem.domain, "l2"
            ), radius=1.0, smoothness=1.0, batch_size=32, keep=0.75, filter_share=0.7,
            cutoff_share=0.2,
        )  # fmt: skip
        options = {"loss": loss, "domain": problem.domain, "plan": plan, "start": np.zeros(4)}
        euclidean.user_level_sco(data, 10, **options, rng=rng)
        start = time.perf_counter()
        euclidean.user_level_sco(data, DRAWS, **options, rng=rng)
        together = time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(SINGLES):
            euclidean.user_level_sco(data, 1, **options, rng=rng)
        alone = (time.perf_counter() - start) * DRAWS / SINGLES
        print(f"{loss!s:<40}{together:>12.2f}{alone:>15.1f}{alone / together:>8.0f}")


if __name__ == "__main__":
    main()
