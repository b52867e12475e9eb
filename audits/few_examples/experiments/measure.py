"""Measurement of the number of users that are needed if each user has m examples.

All methods have equal error and equal epsilon.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from algorithms.few_examples import covers, learning, pairwise
from algorithms.few_examples.deletion import Budget, delstab_pmf
from algorithms.few_examples.hypotheses import scheffe_comparison, total_variation
from algorithms.few_examples.items import noisy_majority
from algorithms.few_examples.packings import discrete_packing, greedy_code
from algorithms.few_examples.pipeline import pipeline
from dpaudit.mechanisms import generator
from dpaudit.stats import hockey_stick_inverse

CLIPPED, ONE, GROUP = "clipped", "one example a user", "all examples, group privacy"
METHODS = (CLIPPED, ONE, GROUP)
EPSILON = 0.05
"""Epsilon so small that privacy has a larger cost than sampling."""

GOAL = 2 / 3
"""Success probability that counts as learning, which is the paper's default."""


@dataclass(frozen=True)
class Task:
    """A learning task, and the score that each user gives to a candidate.

    Attributes
    ----------
    name : str
    alpha : float
        Accuracy.
    right : ndarray of bool, [H]
        Candidates within alpha of the truth.
    draw : callable
        Function of (n, m, rng) that returns the items of the users.
    losses : callable
        Function of the users' items that returns the contribution of each user to the scores. The
        contributions are not yet clipped. The shape is [n, H] or [n, H, H].
    theory : float
        Power of m with which the privacy term decreases.
    until : float
        Largest m for which the privacy term is well above the term log(candidates) / epsilon, which
        does not depend on m.
    comparison : Comparison or None
        Pairwise comparison of candidates.
    """

    name: str
    alpha: float
    right: np.ndarray
    draw: Callable[..., np.ndarray]
    losses: Callable[[np.ndarray], np.ndarray]
    theory: float
    until: float
    comparison: Any = None


@dataclass(frozen=True)
class Size:
    """The size of a run.

    Attributes
    ----------
    trials : int
        Number of datasets for each point.
    examples : tuple of int
        The values of m.
    """

    name: str
    trials: int
    examples: tuple[int, ...]


QUICK = Size("quick", 40, (1, 2, 4, 8, 16, 32, 64))
FULL = Size("full", 300, (1, 2, 4, 8, 16, 32, 64, 128, 256))


def threshold_task(n_points: int = 512, alpha: float = 1 / 128) -> Task:
    """Return the task to learn thresholds, with uniform points and the threshold in the middle."""
    middle = n_points // 2

    def draw(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
        x = rng.integers(0, n_points, (n, m))
        return np.stack([x, (x >= middle).astype(np.int64)], axis=-1)

    def losses(users: np.ndarray) -> np.ndarray:
        """Return the errors of all thresholds.

        A threshold errs on the points between the threshold and the middle.
        """
        place = np.arange(len(users))[:, None] * n_points + users[..., 0]
        numbers = np.bincount(place.reshape(-1), minlength=len(users) * n_points)
        below = np.cumsum(numbers.reshape(-1, n_points), axis=1)
        below = np.concatenate([np.zeros((len(users), 1)), below], axis=1)
        return np.abs(below - below[:, [middle]])

    far = np.abs(np.arange(n_points + 1) - middle) / n_points
    return Task(
        "PAC learning of thresholds", alpha, far <= alpha, draw,
        losses, -1.0, 1 / (8 * alpha),
    )  # fmt: skip


def selection_task(name: str, candidates: np.ndarray, truth: int, alpha: float) -> Task:
    """Return the task to select the candidate ``[H, k]`` from which the items are drawn."""
    comparison = scheffe_comparison(candidates)

    def draw(n: int, m: int, rng: np.random.Generator) -> np.ndarray:
        return rng.choice(candidates.shape[1], size=(n, m), p=candidates[truth])

    right = total_variation(candidates, candidates[truth]) <= alpha + 1e-12
    return Task(
        name, alpha, right, draw, lambda users: comparison.of_users(comparison.users_of(users)),
        -0.5, 1 / (8 * alpha**2), comparison,
    )  # fmt: skip


def tasks() -> list[Task]:
    """Return the three tasks."""
    packed = discrete_packing(greedy_code(8, 4), 0.1)  # 16 candidates, at least 0.025 apart
    coins = covers.simplex_grid(2, 40)
    return [
        threshold_task(),
        selection_task("hypothesis selection", packed, 0, 1 / 80),
        selection_task("learning of a coin", coins, 12, 1 / 40),
    ]


def caps(task: Task, method: str, m: int) -> list[float]:
    """Return the clipping thresholds to try.

    The algorithm is private for every threshold. Theorem 4 clips at 1. Theorem 37 clips at a
    multiple of alpha m + sqrt(m log(1/alpha)). The constant 5.71 of Theorem 37 clips nothing for m
    below 32 log(1/alpha), so smaller constants are tried. Group privacy does not clip.
    """
    if task.comparison is None:
        return [float(m) if method == GROUP else 1.0]
    largest = m * float(np.abs(task.comparison.psi).max())
    if method == GROUP:
        return [largest]
    unit = task.alpha * m + math.sqrt(m)
    return sorted({min(largest, c * unit) for c in (0.5, 1.0)}, reverse=True)


def successes(
    task: Task, m: int, cap: float, sizes: np.ndarray, *, rng: np.random.Generator
) -> Any:
    """Return the success probability for each n of `sizes`.

    The algorithm gets the first n users of a dataset. The selection probabilities are known, so the
    success probability is computed without draws of the mechanism.
    """
    sensitivity = cap
    total: np.ndarray | float = 0.0
    found, first = [], 0
    for size in sizes:
        users = task.losses(task.draw(size - first, m, rng))
        total = total + np.clip(users, -cap, cap).sum(axis=0)
        first, scores = size, np.array(total, dtype=float)
        if scores.ndim == 2:
            np.fill_diagonal(scores, -np.inf)
            scores, sensitivity = scores.max(axis=1), 2 * cap
        chosen = softmax(-EPSILON / (2 * sensitivity) * scores)
        found.append(chosen[task.right].sum())
    return np.array(found)


def users_needed(task_number: int, method: str, m: int, size: Size, seed: int) -> dict[str, Any]:
    """Return the least n with which a method succeeds, and a bootstrap interval for this n.

    The clipping threshold is the best of those that were tried. This choice depends on the outcome.
    The choice favours the method by less than the width of the interval.
    """
    task = tasks()[task_number]
    items = 1 if method == ONE else m
    best: dict[str, Any] = {}
    for cap in caps(task, method, items):
        at = generator(seed, "few_examples", task.name, method, str(m), f"{cap:.6g}")
        top = 64
        while True:  # enough users to reach the goal
            sizes = np.unique(np.round(np.geomspace(max(2, top // 64), top, 40)).astype(int))
            runs = np.array(
                [successes(task, items, cap, sizes, rng=at) for _ in range(size.trials)]
            )
            if runs[:, -1].mean() > (1 + GOAL) / 2 or top > 2 * best.get("users", 2**16):
                break
            top *= 4
        n = crossing(sizes, runs.mean(axis=0))
        again = at.integers(0, size.trials, (400, size.trials))
        low, high = np.quantile([crossing(sizes, runs[i].mean(axis=0)) for i in again],
                                [0.025, 0.975])  # fmt: skip
        if not best or n < best["users"]:
            best = {"users": n, "low": low, "high": high, "cap": cap}
    return {"task": task.name, "method": method, "m": m, **best}


def crossing(sizes: np.ndarray, means: np.ndarray) -> float:
    """Return the size above which the success exceeds the goal, interpolated between the sizes."""
    below = np.flatnonzero(means < GOAL)
    if below.size == 0:
        return float(sizes[0])
    last = below[-1]
    if last + 1 == len(sizes):
        return float(sizes[-1])
    share = (GOAL - means[last]) / (means[last + 1] - means[last])
    return float(np.exp(np.log(sizes[last]) * (1 - share) + np.log(sizes[last + 1]) * share))


# --- the share of its budget that DelStab uses, and when the bounds are informative ---


def used(n_users: int, epsilon: float, delta: float, epsilon_item: float) -> dict[str, Any]:
    """Return the exact epsilon of DelStab on a majority of bits, over all neighbouring pairs."""
    algorithm = noisy_majority(epsilon_item)
    pmfs = [
        delstab_pmf(
            (np.arange(n_users) < ones).astype(int)[:, None],
            algorithm=algorithm, epsilon=epsilon, delta=delta,
        )
        for ones in range(n_users + 1)
    ]  # fmt: skip
    worst = max(
        hockey_stick_inverse(p, q, delta)
        for one, other in itertools.pairwise(pmfs)
        for p, q in ((one, other), (other, one))
    )
    answered = np.array(pmfs)[:, 2] < 0.5
    return {
        "n": n_users, "claimed": f"({epsilon:g}, {delta:g})", "kappa": Budget(epsilon, delta).kappa,
        "epsilon of A": epsilon_item, "exact epsilon": f"{worst:.4f}",
        "share": f"{worst / epsilon:.3f}",
        "answers, of datasets": f"{answered.mean():.2f}",
    }  # fmt: skip


def frontier() -> list[dict[str, Any]]:
    """Return the least m at which each theorem needs fewer users than at m = 1.

    The numbers of users include all constants.
    """
    rows = []
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9)):
        for count, alpha in ((100, 0.1), (10**6, 0.01)):
            size = math.log(count)

            def pac(m: int, given: Any = (size, alpha, epsilon)) -> float:
                return learning.pac_users(given[0], alpha=given[1], epsilon=given[2], m=m)

            def pairs(m: int, given: Any = (count, alpha, epsilon)) -> float:
                tau = pairwise.pairwise_threshold(given[1], m)
                return pairwise.pairwise_users(
                    given[0], alpha=given[1], beta=0.1, epsilon=given[2], m=m, threshold=tau
                )

            one = math.ceil(2 / (epsilon * alpha) * size)
            budget = Budget(epsilon, delta)

            def generic(m: int, given: Any = (budget, one)) -> float:
                budget, sample = given
                return pipeline(budget, m, sample=sample, base_epsilon=budget.epsilon).n_users

            for name, users in (
                ("Theorem 4", pac), ("Theorems 37, 41 to 46", pairs), ("Theorem 11", generic),
            ):  # fmt: skip
                at_one = one if users is generic else users(1)
                rows.append({
                    "result": name, "epsilon": f"{epsilon:g}",
                    "delta": f"{delta:g}" if users is generic else "0",
                    "candidates": f"{count:,}", "alpha": f"{alpha:g}",
                    "n, one example each": f"{at_one:,}",
                    "fewer from m": _first(users, at_one - 1),
                    "half of them from m": _first(users, at_one / 2),
                })  # fmt: skip
    return rows


def _first(users: Callable[[int], float], most: float) -> str:
    """Return the least m, to one per cent, for which at most `most` users are needed.

    The returned text contains this m and its number of users.
    """
    high = 1
    while users(high) > most:
        high *= 2
        if high > 2**60:
            return "never"
    low = high // 2
    while low and high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if users(middle) <= most else (middle, high)
    return f"{high:,} (n = {users(high):,})"
