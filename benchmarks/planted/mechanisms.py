"""Mistakes planted in how a mechanism is called."""

from __future__ import annotations

from benchmarks.planted.mutant import AUDIT, Mutant

SAMPLER = ("tests/mechanisms/test_mechanisms.py", *AUDIT)
MECHANISMS = "tests/mechanisms/test_mutants_of_the_mechanisms.py"
INDEPENDENCE = (MECHANISMS, "tests/mechanisms/test_independence.py")

MUTANTS = (
    Mutant(
        "mechanisms/sampler.py",
        "a seed label is dropped: every call draws the same noise",
        "outputs = self._call(data, size, role, side, index, side=side)",
        "outputs = self._call(data, size, role, side, side=side)",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/sampler.py",
        "the id of the audit is forgotten in its seed",
        "rng = generator(self._seed, *self._labels, *labels)",
        "rng = generator(self._seed, *labels)",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/sampler.py",
        "inf is allowed",
        "if self._finite and np.isinf(values).any():",
        "if self._finite and np.isinf(values).all():",
        SAMPLER,
    ),
    Mutant(
        "mechanisms/independence.py",
        "the limit is a logarithm to base 10",
        "limit = math.log(4 / FALSE_REFUSAL)",
        "limit = math.log10(4 / FALSE_REFUSAL)",
        INDEPENDENCE,
    ),
    Mutant(
        "mechanisms/independence.py",
        "the stake is not shared by the forecasters",
        "special.logsumexp(np.logaddexp(self._grown(), kept))) - math.log(FORECASTERS)",
        "special.logsumexp(np.logaddexp(self._grown(), kept)))",
        INDEPENDENCE,
    ),
    Mutant(
        "mechanisms/watch.py",
        "the time that is left grows",
        "left = self.timeout - (time.perf_counter() - self.begun)",
        "left = self.timeout + (time.perf_counter() - self.begun)",
        (MECHANISMS, "tests/mechanisms/test_watch.py"),
    ),
)
