"""Twelve bugs that were written before the catalogue of causes existed.

Each bug is a function of its own, in the style of code that people write. A comment marks the lines
with the mistake. The last entry of a case is the cause, in the words of its author. The causes that
dpaudit finds are compared with these words.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpaudit import ApproxDP, Outcomes, PureDP, Relation, audit, one_draw
from dpaudit.neighbors import Schema, portfolio

EPSILON, DELTA = 1.0, 1e-5
REPLACE = PureDP(EPSILON, Relation.REPLACE_USER)
ADD_REMOVE = PureDP(EPSILON, Relation.ADD_REMOVE_USER)
APPROX = ApproxDP(EPSILON, DELTA, Relation.REPLACE_USER)


def total_spent(frame, size, *, rng):
    """Clip each purchase to 10 euros, but not the number of purchases of a customer."""
    amounts = frame["amount"].clip(0.0, 10.0)
    return amounts.sum() + rng.laplace(scale=10.0 / EPSILON, size=size)  # cause


def visits_by_city(frame, *, rng):
    """Release noisy counts only for the cities that occur."""
    first = frame.drop_duplicates("user")
    return {
        city: n + rng.laplace(scale=2.0 / EPSILON)
        for city, n in first["city"].value_counts().items()  # cause
    }


def average_age(data, size, *, rng):
    """Divide a noisy sum by the exact number of adults."""
    ages = np.clip(data[:, 0], 0.0, 100.0)
    adults = ages >= 18.0
    noisy = ages[adults].sum() + rng.laplace(scale=100.0 / EPSILON, size=size)
    return np.stack([noisy, np.full(size, adults.sum())], axis=1)  # cause


def count_and_total(data, size, *, rng):
    """Answer two queries, each with the whole budget."""
    values = np.clip(data.mean(axis=1), 0.0, 1.0)
    count = (values > 0.5).sum() + rng.laplace(scale=1.0 / EPSILON, size=size)  # cause
    total = values.sum() + rng.laplace(scale=1.0 / EPSILON, size=size)  # cause
    return np.stack([count, total], axis=1)


def mean_vector(data, size, *, rng):
    """Clip each of the coordinates of a user to [-1, 1] and use the sensitivity of one of them."""
    clipped = np.clip(data, -1.0, 1.0)
    sigma = 2.0 / len(data) * np.sqrt(2.0 * np.log(1.25 / DELTA)) / EPSILON  # cause
    return clipped.mean(axis=0) + rng.normal(scale=sigma, size=(size, data.shape[1]))


def low_and_high(data, size, *, rng):
    """Add one draw of noise to both bounds of an interval."""
    values = np.clip(data[:, 0], 0.0, 1.0)
    noise = rng.laplace(scale=4.0 / EPSILON, size=size)  # cause
    return np.stack([(values < 0.5).sum() + noise, (values >= 0.5).sum() + 2 * noise], axis=1)


def most_common(data, size, *, rng):
    """Choose by the exponential mechanism, without the factor 2 in the exponent."""
    held = np.array([((data >= low) & (data < low + 0.25)).any(axis=1).sum() for low in BINS])
    weights = np.exp(EPSILON * (held - held.max()))  # cause
    return rng.choice(len(BINS), size=size, p=weights / weights.sum())


BINS = (0.0, 0.25, 0.5, 0.75)


def survey(data, size, *, rng):
    """Flip three answers of each user, each answer with the whole budget."""
    answers = data[:, :3] > 0.5
    keep = np.exp(EPSILON) / (1.0 + np.exp(EPSILON))  # cause
    flips = rng.random((size, *answers.shape)) >= keep
    return (answers ^ flips).sum(axis=1).astype(float)


def normalized_mean(data, size, *, rng):
    """Scale all values to [0, 1] by the largest value of the data."""
    means = np.clip(data.mean(axis=1), 0.0, 100.0)
    top = means.max()  # cause
    return means.mean() / max(top, 1e-9) + rng.laplace(scale=1.0 / (len(data) * EPSILON), size=size)


def sampled_total(data, size, *, rng):
    """Lower the noise for a sample of 10%, but take everybody."""
    rate = 0.1
    values = np.clip(data.mean(axis=1), 0.0, 1.0)
    inner = np.log1p(np.expm1(EPSILON) / rate)
    taken = rng.random((size, len(values))) < rate * len(values)  # cause
    return (taken * values).sum(axis=1) + rng.laplace(scale=1.0 / inner, size=size)


def first_large(data, size, *, rng):
    """Return the first query above a threshold to which no noise is added."""
    counts = np.array([(np.clip(data, 0.0, 1.0) > level).sum(axis=1).clip(0, 1).sum()
                       for level in (0.2, 0.4, 0.6, 0.8)])  # fmt: skip
    threshold = len(data) / 2  # cause
    noisy = counts + rng.laplace(scale=2.0 / EPSILON, size=(size, 4))
    above = noisy >= threshold
    return np.where(above.any(axis=1), above.argmax(axis=1), 4)


def spread(data, size, *, rng):
    """Add noise, but only to values that are not zero."""
    values = np.clip(data.mean(axis=1), 0.0, 1.0)
    width = values.max() - values.min()
    if width == 0.0:
        return np.zeros(size)  # cause
    return width + rng.laplace(scale=1.0 / EPSILON, size=size)


BASKETS = pd.DataFrame(
    {"user": [1, 1, 2, 3, 3, 3, 4], "amount": [5.0, 20.0, 1.5, 9.0, 9.0, 0.0, 12.0]}
)
TRIPS = pd.DataFrame({"user": [1, 2, 3, 4, 5], "city": ["Aix", "Aix", "Brest", "Caen", "Aix"]})
CASES = (
    (total_spent, REPLACE, lambda: portfolio(BASKETS, schema=Schema()),
     "the noise covers one row, and a user has several"),
    (Outcomes(one_draw(visits_by_city), keys=["Aix", "Brest", "Caen"]), REPLACE,
     lambda: portfolio(TRIPS, schema=Schema()), "a key that only one user has is present"),
    (average_age, REPLACE, lambda: portfolio(low=0.0, high=100.0, m=1),
     "a number is released without noise"),
    (count_and_total, REPLACE, lambda: portfolio(low=0.0, high=1.0),
     "two answers, each with the whole budget"),
    (mean_vector, APPROX, lambda: portfolio(low=-1.0, high=1.0),
     "the noise covers one coordinate, and the l2 norm of all is larger by sqrt(d)"),
    (low_and_high, REPLACE, lambda: portfolio(low=0.0, high=1.0, m=1),
     "one draw of noise is used twice"),
    (most_common, REPLACE, lambda: portfolio(low=0.0, high=1.0),
     "the sensitivity of the scores is too small by 2"),
    (survey, REPLACE, lambda: portfolio(low=0.0, high=1.0),
     "three answers, each with the whole budget"),
    (normalized_mean, REPLACE, lambda: portfolio(low=0.0, high=100.0),
     "a scale is taken from the private data"),
    (sampled_total, ADD_REMOVE, lambda: portfolio(low=0.0, high=1.0),
     "the noise relies on a sample, and everybody is taken"),
    (first_large, REPLACE, lambda: portfolio(low=0.0, high=1.0),
     "a threshold has no noise"),
    (spread, REPLACE, lambda: portfolio(low=0.0, high=1.0),
     "one value is released without noise"),
)  # fmt: skip
"""Mechanism, claim, pairs and cause of each bug."""


def main() -> None:
    """Audit each bug, and print its verdict and its certified epsilon."""
    for mechanism, claim, pairs, cause in CASES:
        found = audit(mechanism, claim, pairs(), seed=1)
        name = found.mechanism.partition("(")[0]
        print(f"{found.verdict.words:12} epsilon >= {found.certified_epsilon:.2f}  {name}: {cause}")


if __name__ == "__main__":
    main()
