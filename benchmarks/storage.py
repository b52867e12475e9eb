"""Measure the share of a run's time that storage takes, and the size of the run's page.

    python -m benchmarks.storage [--audits 1000] [--draws 2000]

One run makes many audits of a named pair in this process, without workers. Storage is everything
between the end of an audit and its files: packing, validating, writing, and the final index. The
share is a ratio within one process, so it does not depend on the machine.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
import time
from pathlib import Path

AUDITS = """
import numpy as np, pytest
from dpaudit import NeighborPair, PureDP

PAIR = NeighborPair([[1.0]] * 20, [[0.0]] + [[1.0]] * 19)

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)

@pytest.mark.parametrize("number", range({audits}))
def audit_noisy(auditor, number):
    auditor.check(noisy, PureDP(1.0), PAIR, draws={draws})
"""


class Clock:
    """A timer that sums the seconds of some functions. Nested calls count once."""

    def __init__(self):
        self.seconds, self._depth = 0.0, 0

    def watch(self, owner, name):
        """Replace a function by a version that is timed."""
        function = getattr(owner, name)

        @functools.wraps(function)
        def timed(*args, **kwargs):
            self._depth += 1
            begun = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - begun

        setattr(owner, name, timed)


def measure(audits, draws):
    """Return the seconds of the run, of its storage and of its page, and the bytes of both."""
    import dpaudit.report
    from dpaudit.run import display, plugin, session
    from dpaudit.run.cli import cli

    storage, page = Clock(), Clock()
    for module in (display, plugin, session):
        storage.watch(module, "cargo_of")
    storage.watch(plugin, "load_cargo")
    storage.watch(session.AuditSession, "pytest_runtest_logreport")
    storage.watch(session.AuditSession, "_save")
    page.watch(dpaudit.report, "write_report")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("audit_many.py").write_text(AUDITS.format(audits=audits, draws=draws))
        begun = time.perf_counter()
        cli.main(["run", "audit_many.py", "--jobs", "0"], standalone_mode=False)
        seconds = time.perf_counter() - begun
        files = [path for path in Path("reports").rglob("*") if path.is_file()]
        stored = sum(path.stat().st_size for path in files if path.suffix != ".html")
        html = Path("reports/index.html").stat().st_size
    return seconds, storage.seconds, page.seconds, stored, html


def main():
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=2000)
    asked = parser.parse_args()
    seconds, storage, page, stored, html = measure(asked.audits, asked.draws)
    print(
        f"{asked.audits} audits at {asked.draws} draws: {seconds:.0f} s, "
        f"{storage / (seconds - page):.1%} of the time of the audits on storage, "
        f"{stored / 1e6:.1f} MB stored; page of {html / 1e6:.1f} MB in {page:.1f} s"
    )


if __name__ == "__main__":
    main()
