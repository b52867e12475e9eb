"""Mechanisms of packages that need old releases of numpy or pydantic.

`audit_old_packages.py` runs these functions in another interpreter, so this file imports nothing of
dpaudit. Each function returns many draws, one row each.
"""

import sys
import types

import numpy as np


def seeded(rng):
    """Seed the global generator of numpy."""
    np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002


# --- nprr ---


def nprr(value, size, rng, bins, epsilon=1.0):
    """Return reports of `size` clients, with r for the claimed epsilon.

    Confidence sequences of nprr need a package in C++, which a report does not need.
    """
    parts = ("", ".betting", ".betting_strategies", ".boundaries", ".conjmix_bounded")
    for part in parts:
        sys.modules.setdefault(f"confseq{part}", _Anything(f"confseq{part}"))
    from nprr import mechanisms

    seeded(rng)
    share = mechanisms.r_from_G_eps(bins, epsilon)
    return mechanisms.nprr(np.full(size, float(value)), share, bins)


class _Anything(types.ModuleType):
    """A module that has every attribute."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return


def nprr_of_one_bin(value, size, rng):
    """Return bits, because all values are rounded to 0 or 1."""
    return nprr(value, size, rng, bins=1)


def nprr_of_one_bin_mutant(value, size, rng):
    """Return bits with twice the claimed epsilon."""
    return nprr(value, size, rng, bins=1, epsilon=2.0)


def nprr_of_twenty_bins(value, size, rng):
    """Return multiples of 1/20."""
    return nprr(value, size, rng, bins=20)


# --- dpmm ---


def privbayes_cliques(rows, size, rng):
    """Return the root of the network, and the attribute that PrivBayes selects next."""
    import pandas as pd
    from dpmm.models.base.mbi import Dataset, Domain
    from dpmm.models.priv_bayes import PrivBayes

    names = ["a", "b", "c"]
    data = Dataset(pd.DataFrame(rows, columns=names), Domain(names, np.array([2, 2, 2])))
    prng = np.random.RandomState(int(rng.integers(2**32)))
    model = PrivBayes(epsilon=1.0, delta=1e-5, degree=2, n_jobs=1, prng=prng)
    draws = []
    for _ in range(size):
        root, first = model.select(data)[:2]
        draws.append([names.index(root[0]), names.index(first[-1])])
    return np.array(draws)


# --- healthpipe ---


def _dataset(values, field):
    """Return a dataset with one record for each user. NaN is a missing value."""
    from healthpipe.deidentify.safe_harbor import DeidentifiedDataset
    from healthpipe.ingest.schema import ClinicalDataset, ClinicalRecord, ResourceType

    records = [
        ClinicalRecord(
            resource_type=next(iter(ResourceType)),
            data={} if np.isnan(value) else {field: str(value)},
        )
        for value in values
    ]
    return DeidentifiedDataset(dataset=ClinicalDataset(records=records))


def healthpipe_mean(values, size, rng):
    """Return means of a field with values in [0, 1]."""
    from healthpipe.privacy.differential import Mean, private_stats

    seeded(rng)
    data = _dataset(values, "score")
    query = Mean(field="score", clamp_range=(0.0, 1.0))
    draws = [private_stats(data, epsilon=1.0, queries=[query]) for _ in range(size)]
    return np.array([draw.results["mean:score"] for draw in draws])


def healthpipe_histogram(values, size, rng):
    """Return whether each of three categories is in the histogram."""
    from healthpipe.privacy.differential import Histogram, private_stats

    seeded(rng)
    data = _dataset(values, "group")
    draws = [
        private_stats(data, epsilon=1.0, queries=[Histogram(field="group")]) for _ in range(size)
    ]
    return np.array(
        [[str(float(k)) in draw.results["histogram:group"] for k in range(3)] for draw in draws]
    ).astype(float)
