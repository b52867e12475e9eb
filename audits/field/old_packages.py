"""Mechanisms of packages that need numpy 1.

`audit_old_packages.py` runs these functions in another interpreter, so this file imports nothing of
dpaudit. Each function returns many draws, one row each.
"""

import contextlib
import functools
import io
import sys
import types
import warnings

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


def dpmm_synthesis(rows, rng, missing):
    """Return released rows of dpmm, with every category declared. Code 2 is a missing value."""
    import pandas as pd
    from dpmm.pipelines import PrivBayesPipeline

    names, kinds = ["a", "b"], ["0", "1"]
    columns = {}
    for i, name in enumerate(names):
        texts = [kinds[code] if code < 2 else None for code in np.asarray(rows)[:, i].astype(int)]
        columns[name] = pd.Series(pd.Categorical(texts, categories=kinds))
    domain = {name: {"categories": list(kinds)} for name in names}
    pipeline = PrivBayesPipeline(
        epsilon=1.0, delta=1e-5, proc_epsilon=0.1, n_jobs=1, gen_kwargs={"n_iters": 5}
    )
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(pd.DataFrame(columns), domain)
        released = pipeline.generate(n_records=20, random_state=int(rng.integers(2**31)))
    return int(released["b"].isna().sum() if missing else (released["b"] == "1").sum())


def dpmm_constant_column(rows, size, rng):
    """Return how many of 20 released rows have the category that one row may have."""
    return np.array([dpmm_synthesis(rows, rng, missing=False) for _ in range(size)])


def dpmm_missing_value(rows, size, rng):
    """Return how many of 20 released rows have a missing value."""
    return np.array([dpmm_synthesis(rows, rng, missing=True) for _ in range(size)])


@functools.cache
def dpmm_mst():
    """Return a model of MST, whose conversion of budgets is slow."""
    from dpmm.models.mst import MST

    return MST(epsilon=1.0, delta=1e-5, n_jobs=1)


def dpmm_counts(rows, size, rng, rho=1 / 8):
    """Return two noisy marginals that MST of dpmm measures."""
    import pandas as pd
    from dpmm.models.base.mbi import Dataset, Domain

    names = ["a", "b", "c"]
    data = Dataset(pd.DataFrame(rows, columns=names), Domain(names, np.array([2, 2, 2])))
    model = dpmm_mst()
    model.sigma = np.sqrt(1 / (2 * rho))
    cliques = [("a", "b"), ("b", "c")]
    draws = []
    for _ in range(size):
        measured = model.measure(data, cliques=cliques, weights=np.ones(2), flatten=True)
        draws.append(np.concatenate([counts for _, counts, _, _ in measured]))
    return np.array(draws)


def dpmm_counts_mutant(rows, size, rng):
    """Return the marginals with a third of the noise."""
    return dpmm_counts(rows, size, rng, rho=9 / 8)
