"""Measure the time and the memory of the engine alone, and compare two versions.

    python -m benchmarks.speed [--against REVISION] [--repeats 5]
    python -m benchmarks.speed --default

Without --default, the time excludes the calls of the mechanism. With --against, the package at a
git revision is loaded in addition to this version. The two versions audit in turn, and `old / new`
is the ratio of their median times. The ratio of the times is the only number that does not depend
on the machine.

With --default, the time is that of a whole audit without a pair: the search, and then the mutants,
or the smallest pair and the likely causes.
"""

from __future__ import annotations

import argparse
import importlib
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import tracemalloc
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]


def gaussian(data, size, *, rng):
    """Add Gaussian noise of scale 3.73 to every coordinate."""
    return data + 3.73 * rng.standard_normal((size, data.size))


def laplace(data, size, *, rng):
    """Add Laplace noise to one number."""
    return data + rng.laplace(size=(size, data.size))


def coin(data, size, *, rng):
    """Answer truthfully with probability e / (1 + e)."""
    return np.where(rng.random(size) < 0.731, data.sum(), 1 - data.sum())


def whole(data, size, *, rng):
    """Add the difference of two geometric numbers to a whole number."""
    return int(data.sum()) + rng.geometric(0.632, size) - rng.geometric(0.632, size)


def noisy_max(data, size, *, rng):
    """Return the index of the largest noisy value."""
    return (data + rng.laplace(scale=2, size=(size, data.size))).argmax(axis=1)


def sparse_vector(data, size, *, rng):
    """Say which values are above a noisy threshold, up to the first one."""
    above = data + rng.laplace(scale=4, size=(size, data.size)) > rng.laplace(
        scale=2, size=(size, 1)
    )
    return above & (np.cumsum(above, axis=1) <= 1)


def released(data, size, *, rng):
    """Release the noisy values above zero, and nothing for the others."""
    noisy = data + rng.laplace(size=(size, data.size))
    return np.where(noisy > 0, noisy, np.nan)


def label(data, size, *, rng):
    """Return a word that depends on a noisy value."""
    return np.array(["low", "middle", "high"])[
        np.digitize(laplace(data, size, rng=rng)[:, 0], [0, 1])
    ]


def sum_of_users(data, size, *, rng):
    """Add Laplace noise for a whole user to the sum of all items in [0, 1]."""
    total = np.clip(data, 0, 1).sum()
    return total + rng.laplace(scale=data.shape[1], size=size)


def sum_with_half_of_the_noise(data, size, *, rng):
    """Add half of the noise for a whole user to the sum of all items in [0, 1]."""
    total = np.clip(data, 0, 1).sum()
    return total + rng.laplace(scale=data.shape[1] / 2, size=size)


CASES = [
    ("scalar Laplace", laplace, 1, 100_000),
    ("10-dimensional Gaussian", gaussian, 10, 100_000),
    ("randomised response", coin, 1, 100_000),
    ("geometric noise", whole, 1, 100_000),
    ("noisy max of 10", noisy_max, 10, 100_000),
    ("histogram of 20 cells", laplace, 20, 100_000),
    ("sparse vector of 10", sparse_vector, 10, 100_000),
    ("released values of 5", released, 5, 100_000),
    ("words", label, 1, 100_000),
    ("scalar Laplace", laplace, 1, 1_000_000),
    ("10-dimensional Gaussian", gaussian, 10, 1_000_000),
    ("scalar Laplace", laplace, 1, 10_000_000),
]


def look(mechanism, dim, draws):
    """Audit with the loaded version of dpaudit, and return the seconds of engine and mechanism."""
    from dpaudit import ApproxDP, PureDP, audit, within_sensitivity
    from dpaudit import neighbors as nb

    claim, pair = PureDP(1.0), nb.value_pattern("one_above", dim)
    if mechanism is gaussian:
        claim, relation = ApproxDP(1.0, 1e-5), within_sensitivity(1.0, norm="l2")
        pair = nb.value_pattern("all_above", dim, relation=relation)
    result = audit(mechanism, claim, pair, draws=draws, seed=1, mutants=None)
    # Before version 0.2 the diagnostics were fields of the result.
    own = getattr(result, "diagnostics", result).mechanism_seconds
    return result.seconds - own, own


class Version:
    """One version of the package.

    While the version is entered, `import dpaudit` imports this version.
    """

    def __init__(self, folder=None):
        self.folder, self.modules = folder, {}

    @contextmanager
    def entered(self):
        """Swap the modules of the package, and the place where new modules are searched."""
        others = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
        sys.modules.update(self.modules)
        if self.folder is not None:
            sys.path.insert(0, str(self.folder))
        importlib.invalidate_caches()
        try:
            yield
        finally:
            if self.folder is not None:
                sys.path.remove(str(self.folder))
            self.modules = {
                name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)
            }
            sys.modules.update(others)


def _is_ours(name):
    return name == "dpaudit" or name.startswith("dpaudit.")


def version_at(revision, folder):
    """Unpack the package at a git revision."""
    packed = subprocess.run(
        ["git", "archive", revision, "dpaudit"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return Version(folder)


def table():
    """Print the times and the memory of this version."""
    print(f"{'mechanism':<26}{'draws per dataset':>14}{'engine s':>10}{'ratio':>8}{'peak MiB':>10}")
    for name, mechanism, dim, draws in CASES:
        engine, called = look(mechanism, dim, draws)
        tracemalloc.start()
        look(mechanism, dim, draws)
        peak = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        ratio = engine / max(called, 1e-9)
        print(f"{name:<26}{draws:>14,}{engine:>10.2f}{ratio:>8.1f}{peak:>10.0f}")


def ratios(revision, repeats):
    """Print how many times faster this version is, with alternating audits of both versions."""
    print(f"{'mechanism':<26}{'draws per dataset':>14}{'old / new':>11}   (old: {revision})")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        versions = {"old": version_at(revision, Path(folder)), "new": Version()}
        for name, mechanism, dim, draws in CASES:
            run = partial(look, mechanism, dim, draws)
            times = {which: [] for which in versions}
            for turn in range(repeats + 1):
                for which, version in versions.items():
                    with version.entered():
                        engine = run()[0]
                    if turn > 0:  # the first turn imports modules and fills caches
                        times[which].append(engine)
            old, new = (statistics.median(times[which]) for which in ("old", "new"))
            found.append(old / new)
            print(f"{name:<26}{draws:>14,}{old / new:>11.2f}", flush=True)
    print(f"{'median':<40}{statistics.median(found):>11.2f}")


def defaults(seeds=(1, 2, 3)):
    """Print the seconds of default audits of a correct sum and of a sum with too little noise."""
    from dpaudit import PureDP, audit

    audit(sum_of_users, PureDP(1.0), seed=0, draws=5000)  # imports and caches
    print(f"{'mechanism':<30}{'verdict':>12}   seconds of {len(seeds)} audits")
    for mechanism in (sum_of_users, sum_with_half_of_the_noise):
        times = []
        for seed in seeds:
            start = time.perf_counter()
            result = audit(mechanism, PureDP(1.0), seed=seed)
            times.append(time.perf_counter() - start)
        words = "".join(f"{seconds:>7.1f}" for seconds in times)
        name, verdict = mechanism.__name__.replace("_", " "), result.verdict.value.replace("_", " ")
        print(f"{name:<30}{verdict:>12}{words}")


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--against", metavar="REVISION")
    parser.add_argument("--repeats", type=int, default=5)
    kind.add_argument("--default", action="store_true", help="default audits, without a pair")
    args = parser.parse_args()
    if args.default:
        defaults()
        return
    if args.against:
        ratios(args.against, args.repeats)
        return
    look(gaussian, 10, 1000)  # imports and caches
    table()


if __name__ == "__main__":
    main()
