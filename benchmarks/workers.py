"""Measure one audit with many draws, in this process and on worker processes.

    python -m benchmarks.workers [--draws 100000000] [--workers 2]

The output is the ratio of the seconds and the largest memory that this process used. The output
also says whether both results are equal to the last bit.
"""

from __future__ import annotations

import argparse
import resource
import time

from algorithms.common import noise
from dpaudit import PureDP, Settings, audit
from dpaudit import neighbors as nb
from dpaudit.mechanisms import Processes


def scalar(data, size, *, rng):
    """Return a sum with Laplace noise."""
    return noise.laplace_mechanism(data, size, sensitivity=1.0, epsilon=1.0, rng=rng)


def users(data, size, *, rng):
    """Return a sum with the noise of ten users, which takes ten times as long."""
    return data.sum() + rng.laplace(size=(size, 10)).sum(axis=1)


def found(result):
    """Return the result of an audit without its times."""
    return {key: value for key, value in result.to_json().items() if "second" not in key}


def main():
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10**8)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    pair = nb.value_pattern("one_above", 1)

    processes = Processes(args.workers)

    def timed(mechanism, draws, workers):
        begun = time.perf_counter()
        result = audit(
            mechanism,
            PureDP(1.1),
            pair,
            draws=draws,
            seed=1,
            mutants=None,
            settings=Settings(workers=workers),
        )
        return time.perf_counter() - begun, result

    try:
        timed(scalar, 10**5, processes)
        for mechanism, draws in ((scalar, args.draws), (users, args.draws // 2)):
            here, alone = timed(mechanism, draws, None)
            there, together = timed(mechanism, draws, processes)
            held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            same = "the same" if found(alone) == found(together) else "NOT THE SAME"
            print(
                f"{mechanism.__name__:<8}{draws:>14,} draws per dataset: {here:6.1f} s here, "
                f"{there:6.1f} s on {args.workers} workers, ratio {here / there:.2f}; {same}; "
                f"at most {held:.0f} MiB held here"
            )
    finally:
        processes.close()


if __name__ == "__main__":
    main()
