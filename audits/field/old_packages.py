"""Mechanisms of packages that need numpy 1.

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
