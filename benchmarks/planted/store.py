"""Mistakes planted in the storage of results."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

STORE = ("tests/store",)

MUTANTS = (
    Mutant(
        "store/files.py",
        "a checksum is not compared",
        "if stored != checksum_of(document):",
        "if said is None:",
        STORE,
    ),
    Mutant(
        "store/records.py",
        "the datasets of another result are accepted",
        "if hashlib.sha256(content).hexdigest() != digest:",
        "if not content:",
        STORE,
    ),
    Mutant(
        "store/records.py",
        "a part of the results of a function is treated as all of them",
        'r.origin.get("records") == len(found) and accept(r)',
        "accept(r)",
        STORE,
    ),
    Mutant(
        "store/runs.py",
        "a probability may exceed 1",
        "min(math.fsum(record.total_failure_prob for record in records), 1.0)",
        "math.fsum(record.total_failure_prob for record in records)",
        STORE,
    ),
    Mutant(
        "store/lock.py",
        "two runs hold the same lock",
        "        locked.acquire()\n",
        "",
        STORE,
    ),
    Mutant(
        "store/lock.py",
        "a run releases the lock of the run that replaced its directory",
        "        if self.is_held():\n            for",
        "        if True:\n            for",
        STORE,
    ),
)
