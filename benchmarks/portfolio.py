"""Realistic user-level bugs, audited without naming a pair.

    python -m benchmarks.portfolio [--draws 100000] [--seeds 1] [--only WORDS]

Every bug is typical of code that protects items instead of users, uses the wrong relation, or
considers only usual data. The counterpart of a bug satisfies the claim for all data, and the table
says why. The benchmark audits both mechanisms like a user who knows no worst pair. The audit has
`pairs=None`, or `neighbors.portfolio(like)` if the data are not plain numbers. A user owns one row
of `data`, with m items. Unless stated otherwise, one user is replaced.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import ApproxDP, PureDP, Relation, Verdict, audit
from dpaudit.neighbors import portfolio

PURE = PureDP(1.0, relation=Relation.REPLACE_USER)
APPROX = ApproxDP(1.0, 1e-5, relation=Relation.REPLACE_USER)
ADD_REMOVE = PureDP(1.0, relation=Relation.ADD_REMOVE_USER)
KINDS = 4
"""Categories 0 to 3, for mechanisms that count them."""


def users(data, low=-1.0, high=1.0):
    """Return the clipped mean of each user. A user moves the sum by at most high - low."""
    return np.clip(data.mean(axis=1), low, high)


# --- the four of the issue ---------------------------------------------------------------------


def items_clipped(data, size, *, rng):
    clipped = np.clip(data, -1, 1)
    return clipped.mean() + rng.laplace(scale=2 / clipped.size, size=size)


def mean_of_users(data, size, *, rng):
    return users(data).mean() + rng.laplace(scale=2 / len(data), size=size)


def median_as_a_mean(data, size, *, rng):
    return np.median(users(data, 0, 1)) + rng.laplace(scale=1 / len(data), size=size)


def median_of_users(data, size, *, rng):
    return np.median(users(data, 0, 1)) + rng.laplace(scale=1.0, size=size)


def descent(data, size, rng, scale, epochs=10):
    """Return all iterates of a gradient descent on the distance to the users."""
    theta, path = np.zeros(size), []
    for _ in range(epochs):
        gradient = np.clip(data.mean(axis=1)[:, None] - theta, -1, 1).mean(axis=0)
        theta = theta + 0.5 * (gradient + rng.laplace(scale=scale, size=size))
        path.append(theta)
    return np.stack(path, axis=1)


def each_epoch_at_full_budget(data, size, *, rng):
    return descent(data, size, rng, 2 / len(data))


def budget_split_over_epochs(data, size, *, rng):
    return descent(data, size, rng, 10 * 2 / len(data))


def holders_of(data):
    """Return how many users hold each category in any of their items."""
    return np.array([(data == kind).any(axis=1).sum() for kind in range(KINDS)])


def categories_by_true_count(data, size, *, rng):
    counts = holders_of(data)
    noisy = counts + rng.laplace(scale=KINDS, size=(size, KINDS))
    return np.where(counts >= 5, noisy, np.nan)


def categories_by_noisy_count(data, size, *, rng):
    noisy = holders_of(data) + rng.laplace(scale=KINDS, size=(size, KINDS))
    return np.where(noisy >= 5, noisy, np.nan)


# --- sensitivity -------------------------------------------------------------------------------


def sum_for_add_remove(data, size, *, rng):
    return users(data).sum() + rng.laplace(scale=1.0, size=size)


def sum_for_replace(data, size, *, rng):
    return users(data).sum() + rng.laplace(scale=2.0, size=size)


def clipped_after_the_mean(data, size, *, rng):
    return np.clip(data.mean(), -1, 1) + rng.laplace(scale=2 / len(data), size=size)


def item_counts(data):
    return np.array([(data == kind).sum() for kind in range(KINDS)])


def histogram_of_items(data, size, *, rng):
    return item_counts(data) + rng.laplace(scale=2.0, size=(size, KINDS))


def histogram_of_users_items(data, size, *, rng):
    return item_counts(data) + rng.laplace(scale=2.0 * data.shape[1], size=(size, KINDS))


def in_the_ball(data):
    """Return each user's items as a vector, clipped to the unit ball."""
    norms = np.linalg.norm(data, axis=1, keepdims=True)
    return data / np.maximum(norms, 1.0)


def laplace_by_the_l2_norm(data, size, *, rng):
    mean = in_the_ball(data).mean(axis=0)
    return mean + rng.laplace(scale=2 / len(data), size=(size, len(mean)))


def laplace_by_the_l1_norm(data, size, *, rng):
    mean = in_the_ball(data).mean(axis=0)
    return mean + rng.laplace(scale=2 * len(mean) ** 0.5 / len(data), size=(size, len(mean)))


SIGMA = (2 * np.log(1.25e5)) ** 0.5
"""Noise scale of the classic Gaussian mechanism: epsilon 1, delta 1e-5 and sensitivity 1."""


def variance_for_deviation(data, size, *, rng):
    return users(data).mean() + rng.normal(scale=(SIGMA * 2 / len(data)) ** 2, size=size)


def gaussian_mean(data, size, *, rng):
    return users(data).mean() + rng.normal(scale=SIGMA * 2 / len(data), size=size)


def variance_as_a_mean(data, size, *, rng):
    return users(data).var() + rng.laplace(scale=1 / len(data), size=size)


def variance_of_users(data, size, *, rng):
    return users(data).var() + rng.laplace(scale=4 / len(data), size=size)


CANDIDATES = np.linspace(0, 1, 5)


def best_candidate(data, size, rng, sensitivity):
    """Choose a candidate with a small sum of distances to all items (exponential mechanism)."""
    score = -np.abs(np.clip(data, 0, 1)[..., None] - CANDIDATES).sum(axis=(0, 1))
    odds = np.exp((score - score.max()) / (2 * sensitivity))
    return rng.choice(len(odds), p=odds / odds.sum(), size=size)


def selection_per_item(data, size, *, rng):
    return best_candidate(data, size, rng, 1.0)


def selection_per_user(data, size, *, rng):
    return best_candidate(data, size, rng, data.shape[1])


def divided_by_the_number_of_users(data, size, *, rng):
    return (users(data).sum() + rng.laplace(scale=1.0, size=size)) / len(data)


def divided_by_a_noisy_number(data, size, *, rng):
    total = users(data).sum() + rng.laplace(scale=2.0, size=size)
    return total / np.maximum(len(data) + rng.laplace(scale=2.0, size=size), 1.0)


def distinct_values_by_one(data, size, *, rng):
    return len(np.unique(data)) + rng.laplace(scale=1.0, size=size)


def distinct_values_by_m(data, size, *, rng):
    return len(np.unique(data)) + rng.laplace(scale=data.shape[1], size=size)


# --- scales and bounds taken from the data -----------------------------------------------------


def scale_from_the_data(data, size, *, rng):
    means = data.mean(axis=1)
    return means.mean() + rng.laplace(scale=4 * means.std() / len(data), size=size)


def bound_from_the_data(data, size, *, rng):
    means = data.mean(axis=1)
    bound = np.quantile(np.abs(means), 0.9)
    mean = np.clip(means, -bound, bound).mean()
    return mean + rng.laplace(scale=2 * bound / len(data), size=size)


def clamped_to_the_data(data, size, *, rng):
    means = users(data)
    return np.clip(mean_of_users(data, size, rng=rng), means.min(), means.max())


def clamped_to_the_domain(data, size, *, rng):
    return np.clip(mean_of_users(data, size, rng=rng), -1, 1)


def snapped_to_a_user(data, size, *, rng):
    noisy, means = mean_of_users(data, size, rng=rng), users(data)
    return means[np.abs(noisy[:, None] - means).argmin(axis=1)]


def snapped_to_a_grid(data, size, *, rng):
    return np.rint(mean_of_users(data, size, rng=rng) * 16) / 16


def noise_where_there_are_counts(data, size, *, rng):
    counts = np.array([(data[:, 0] == kind).sum() for kind in range(KINDS)])
    return np.where(counts > 0, counts + rng.laplace(scale=2.0, size=(size, KINDS)), 0.0)


def noise_everywhere(data, size, *, rng):
    counts = np.array([(data[:, 0] == kind).sum() for kind in range(KINDS)])
    return counts + rng.laplace(scale=2.0, size=(size, KINDS))


def true_winner(data, size, *, rng):
    counts = np.array([(data[:, 0] == kind).sum() for kind in range(KINDS)])
    best = np.full(size, counts.argmax())
    return np.stack([best, counts[best] + rng.laplace(scale=1.0, size=size)], axis=1)


def noisy_winner(data, size, *, rng):
    return noise_everywhere(data, size, rng=rng).argmax(axis=1)


def branch_on_the_mean(data, size, *, rng):
    mean = users(data, 0, 1).mean()
    corrected = 0.9 * mean if mean > 0.37 else mean + 0.2
    return corrected + rng.laplace(scale=1 / len(data), size=size)


def branch_on_a_noisy_mean(data, size, *, rng):
    mean, scale = users(data, 0, 1).mean(), 2 / len(data)
    high = mean + rng.laplace(scale=scale, size=size) > 0.37
    noisy = mean + rng.laplace(scale=scale, size=size)
    return np.where(high, 0.9 * noisy, noisy + 0.2)


# --- noise -------------------------------------------------------------------------------------


def whole_noise_on_reals(data, size, *, rng):
    return users(data).sum() + np.rint(rng.laplace(scale=2.0, size=size))


def rounded_with_its_noise(data, size, *, rng):
    return np.rint(users(data).sum() + rng.laplace(scale=2.0, size=size))


def one_noise_for_all(data, size, *, rng):
    mean = np.clip(data, -1, 1).mean(axis=0)
    return mean + rng.laplace(scale=2 * len(mean) / len(data), size=(size, 1))


def a_noise_for_each(data, size, *, rng):
    mean = np.clip(data, -1, 1).mean(axis=0)
    return mean + rng.laplace(scale=2 * len(mean) / len(data), size=(size, len(mean)))


# --- order, samples ----------------------------------------------------------------------------


def moving_average(data):
    """Return a moving average: each user halves the weight of all earlier users.

    The last user moves the average by 1.
    """
    state = 0.0
    for value in users(data):
        state = 0.5 * state + 0.5 * value
    return state


def moving_average_as_a_mean(data, size, *, rng):
    return moving_average(data) + rng.laplace(scale=2 / len(data), size=size)


def moving_average_by_its_weight(data, size, *, rng):
    return moving_average(data) + rng.laplace(scale=1.0, size=size)


def totals_at_one_budget(data, size, *, rng):
    totals = users(data).cumsum()
    return totals + rng.laplace(scale=2.0, size=(size, len(totals)))


def totals_at_a_split_budget(data, size, *, rng):
    totals = users(data).cumsum()
    return totals + rng.laplace(scale=2.0 * len(totals), size=(size, len(totals)))


def of_a_sample(data, chosen, rng):
    """Return the mean of 2 users, with noise that sampling 2 of n amplifies to epsilon = 1."""
    if len(data) < 2:
        raise ValueError(f"data must hold at least 2 users, got {len(data)}")
    amplified = np.log1p(np.expm1(1.0) * len(data) / 2)
    mean = users(data)[chosen].mean(axis=1)
    return mean + rng.laplace(scale=1 / amplified, size=len(chosen))


def the_first_as_a_sample(data, size, *, rng):
    return of_a_sample(data, np.tile([0, 1], (size, 1)), rng)


def a_fresh_sample(data, size, *, rng):
    return of_a_sample(data, rng.random((size, len(data))).argsort(axis=1)[:, :2], rng)


# --- users without data, words -----------------------------------------------------------------


def with_gaps():
    """Return users with 6 items each, some of which are missing."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(15, 6))
    return np.where(rng.random((15, 6)) < 0.2, np.nan, data)


def known_items(data):
    """Return the clipped mean of each user's known items, or 0 for a user without known items."""
    there = ~np.isnan(data)
    total = np.where(there, data, 0.0).sum(axis=1)
    return np.clip(total / np.maximum(there.sum(axis=1), 1), -1, 1)


def spreads_nan(data, size, *, rng):
    return mean_of_users(data, size, rng=rng)


def no_answer_without_data(data, size, *, rng):
    if np.isnan(data).all():
        return np.full(size, np.nan)
    return known_items(data).mean() + rng.laplace(scale=2 / len(data), size=size)


def drops_empty_users(data, size, *, rng):
    there = ~np.isnan(data).all(axis=1)
    total = known_items(data).sum() + rng.laplace(scale=2.0, size=size)
    return np.stack([total, np.full(size, there.sum())], axis=1)


def counts_empty_users(data, size, *, rng):
    return known_items(data).mean() + rng.laplace(scale=2 / len(data), size=size)


WORDS = ("bus", "car", "foot", "rail")


def trips():
    """Return the means of transport of 15 users on 3 days."""
    return np.random.default_rng(0).choice(WORDS, p=(0.2, 0.5, 0.2, 0.1), size=(15, 3))


def travellers(data):
    return np.array([(data == word).any(axis=1).sum() for word in WORDS])


def words_that_occur(data, size, *, rng):
    counts = travellers(data)
    return np.where(counts > 0, counts + rng.laplace(scale=4.0, size=(size, 4)), np.nan)


def all_words(data, size, *, rng):
    return travellers(data) + rng.laplace(scale=4.0, size=(size, 4))


# --- the table ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One bug and its counterpart.

    Parameters
    ----------
    story : str
        Short description of the bug.
    bug, correct : callable
        Mechanisms.
    why : str
        The reason why the counterpart satisfies the claim for all data.
    claim : Claim
        Claim of both mechanisms.
    like : callable, optional
        Function that makes the data that a user would provide if they are not plain numbers.
    """

    story: str
    bug: Callable[..., Any]
    correct: Callable[..., Any]
    why: str
    claim: Any = PURE
    like: Callable[[], Any] | None = None


MEAN = "a user moves the mean by 2/n"
CASES = (
    Case("items clipped, not users", items_clipped, mean_of_users, MEAN),
    Case("sensitivity of a median 1/n", median_as_a_mean, median_of_users, "it lies in [0, 1]"),
    Case(
        "noise not scaled with the epochs",
        each_epoch_at_full_budget,
        budget_split_over_epochs,
        "10 gradients, each at epsilon 1/10",
    ),
    Case(
        "category released by its true count",
        categories_by_true_count,
        categories_by_noisy_count,
        "a user moves each of 4 counts by 1; the rest uses noisy counts only",
    ),
    Case("add/remove noise under replacement", sum_for_add_remove, sum_for_replace, "moves by 2"),
    Case("the mean clipped, not the users", clipped_after_the_mean, mean_of_users, MEAN),
    Case(
        "sensitivity per item of a histogram",
        histogram_of_items,
        histogram_of_users_items,
        "m items leave one bin for another: 2m",
    ),
    Case(
        "Laplace noise by the l2 norm",
        laplace_by_the_l2_norm,
        laplace_by_the_l1_norm,
        "the l1 norm is at most sqrt(m) times the l2 norm, which moves by 2/n",
    ),
    Case(
        "variance passed for a deviation",
        variance_for_deviation,
        gaussian_mean,
        "the classic Gaussian mechanism at sensitivity 2/n",
        APPROX,
    ),
    Case(
        "sensitivity of a variance 1/n",
        variance_as_a_mean,
        variance_of_users,
        "it moves by (high - low)^2 (n - 1) / n^2 < 4/n",
    ),
    Case(
        "exponential mechanism per item",
        selection_per_item,
        selection_per_user,
        "m items, each at distance 0 to 1 from a candidate, move a score by m",
    ),
    Case(
        "distinct values, sensitivity 1",
        distinct_values_by_one,
        distinct_values_by_m,
        "a user has at most m values that nobody else has",
    ),
    Case(
        "exact number of users under add/remove",
        divided_by_the_number_of_users,
        divided_by_a_noisy_number,
        "sum and number move by 1, each at epsilon 1/2",
        ADD_REMOVE,
    ),
    Case("scale estimated from the data", scale_from_the_data, mean_of_users, MEAN),
    Case("clip bound estimated from the data", bound_from_the_data, mean_of_users, MEAN),
    Case("clamped to the range of the data", clamped_to_the_data, clamped_to_the_domain, MEAN),
    Case("snapped to the nearest user", snapped_to_a_user, snapped_to_a_grid, MEAN),
    Case(
        "no noise where a count is 0",
        noise_where_there_are_counts,
        noise_everywhere,
        "a user moves two counts by 1",
    ),
    Case(
        "the true winner, noise on its count",
        true_winner,
        noisy_winner,
        "the winner of noisy counts of l1 sensitivity 2",
    ),
    Case(
        "branch on the true mean",
        branch_on_the_mean,
        branch_on_a_noisy_mean,
        "two releases of a mean that moves by 1/n, each at epsilon 1/2",
    ),
    Case("whole noise on a real sum", whole_noise_on_reals, rounded_with_its_noise, "moves by 2"),
    Case(
        "one noise for all coordinates",
        one_noise_for_all,
        a_noise_for_each,
        "m coordinates, each moves by 2/n",
    ),
    Case(
        "moving average as a mean",
        moving_average_as_a_mean,
        moving_average_by_its_weight,
        "weights of 1/2 at most on values that move by 2",
    ),
    Case(
        "running totals at one budget",
        totals_at_one_budget,
        totals_at_a_split_budget,
        "n totals, each moves by 2",
    ),
    Case(
        "the first users for a random sample",
        the_first_as_a_sample,
        a_fresh_sample,
        "2 of n without replacement: log(1 + (2/n) (e^amplified - 1)) = 1",
    ),
    Case("NaN spreads", spreads_nan, counts_empty_users, f"gaps count 0: {MEAN}", PURE, with_gaps),
    Case(
        "no answer without data",
        no_answer_without_data,
        counts_empty_users,
        f"gaps count 0: {MEAN}",
        PURE,
        with_gaps,
    ),
    Case(
        "number of users with data released",
        drops_empty_users,
        counts_empty_users,
        f"gaps count 0: {MEAN}",
        PURE,
        with_gaps,
    ),
    Case(
        "words that occur, and no others",
        words_that_occur,
        all_words,
        "a user moves each of 4 counts by 1",
        PURE,
        trips,
    ),
)


def look(case: Case, mechanism: Callable[..., Any], draws: int, seed: int):
    """Audit one of the two mechanisms as a user who knows no worst pair."""
    pairs = None if case.like is None else portfolio(case.like()).under(case.claim.relation)
    return audit(mechanism, case.claim, pairs, draws=draws, seed=seed, mutants=None)


def main() -> None:
    """Print the table and its totals."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", default="", help="only bugs whose story contains these words")
    asked = parser.parse_args()
    cases = [case for case in CASES if asked.only in case.story]
    if not cases:
        parser.error(f"--only must be a part of the story of a bug, got {asked.only!r}")
    seeds = ", ".join(map(str, asked.seeds))
    print(f"{asked.draws:,} draws per dataset\n")
    print(f"| bug | certified epsilon, seeds {seeds} | its counterpart | seconds | on |")
    print("|---|---|---|---|---|")
    refuted, wrong = [], []
    for case in cases:
        found = [look(case, case.bug, asked.draws, seed) for seed in asked.seeds]
        honest = [look(case, case.correct, asked.draws, seed) for seed in asked.seeds]
        refuted.append([one.verdict is Verdict.REFUTED for one in found])
        wrong.append([one.verdict is Verdict.REFUTED for one in honest])
        bug, counterpart = (
            ", ".join(f"{one.certified_epsilon:.2f}" for one in results)
            for results in (found, honest)
        )
        print(
            f"| {case.story} | {bug}{'' if all(refuted[-1]) else ' (not refuted)'} | "
            f"{counterpart}{' REFUTED' * any(wrong[-1])} | {found[0].seconds:.1f} | "
            f"{found[0].pair_words.partition(f': {case.claim.relation}')[0]} |",
            flush=True,
        )
    for words, flags in (("bugs", refuted), ("correct counterparts", wrong)):
        counts = ", ".join(str(sum(of_seed)) for of_seed in zip(*flags, strict=True))
        print(f"\nSeeds {seeds} refute {counts} of {len(cases)} {words}.")


if __name__ == "__main__":
    main()
