"""Workers that never answer, and schedulers that die in the middle of a run."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from dpaudit import MechanismTimeout, NeighborPair, PureDP, Settings, audit
from dpaudit.errors import WorkersLost
from dpaudit.mechanisms import Cluster, Processes
from tests.faults.test_processes_end import SLOW, start, stored, the_run, wait_for
from tests.run.conftest import Home

PAIR = NeighborPair([[0.0]], [[1.0]])


@pytest.mark.parametrize("limit", [{"time_limit": 4.0}, {"call_limit": 0.5}], ids=str)
def test_a_worker_that_holds_on_to_a_call_is_killed(
    limit: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpaudit.mechanisms import workers as module

    monkeypatch.setattr(module, "_GRACE", 4.0)
    parent = os.getpid()

    def hangs(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        if os.getpid() != parent:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            ctypes.PyDLL(None).sleep(600)
        return data.sum() + rng.laplace(size=size)

    def fine(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(size=size)

    pool = Processes(2)
    try:
        begun = time.monotonic()
        with pytest.raises(MechanismTimeout, match="its worker was stopped"):
            audit(
                hangs,
                PureDP(1.5),
                PAIR,
                draws=1000,
                seed=1,
                settings=Settings(workers=pool, **limit),
            )
        assert time.monotonic() - begun < 30
        assert audit(
            fine, PureDP(1.5), PAIR, draws=1000, seed=1, settings=Settings(workers=pool)
        ).draws
    finally:
        pool.close()
    commands = (" ".join(process.cmdline()) for process in psutil.Process().children())
    assert not [words for words in commands if "loky" in words and "tracker" not in words]


SCHEDULER = """
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    print(cluster.scheduler_address, flush=True)
    input()
"""


@pytest.fixture
def scheduler(tmp_path: Any) -> Iterator[tuple[str, psutil.Process]]:
    pytest.importorskip("distributed")
    script = tmp_path / "scheduler.py"
    script.write_text(SCHEDULER)
    process = subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.stdout.readline().strip(), psutil.Process(process.pid)
    _kill(psutil.Process(process.pid)) if psutil.pid_exists(process.pid) else None
    process.communicate()


def _kill(process: psutil.Process) -> None:
    for one in [process, *process.children(recursive=True)]:
        one.kill()


def test_the_death_of_a_scheduler_ends_the_run_with_one_error(
    tmp_path: Any, scheduler: tuple[str, psutil.Process]
) -> None:
    address, process = scheduler
    more = (f"\ndef audit_{n}_slow(auditor):\n    check(auditor, slow)\n" for n in range(3, 6))
    home = Home(tmp_path).write(audit_slow=SLOW.replace("0.3", "0.1") + "".join(more))
    run = start(home, "audit_slow.py", "--jobs", "2", "--workers", address)
    wait_for(lambda: stored(home))
    time.sleep(1.0)
    _kill(process)
    out, _ = run.communicate(timeout=120)
    assert run.returncode == 2, out
    assert out.count("ERROR") == 1, out
    found = the_run(home)
    assert not found.complete
    assert "audit_1_fine" in stored(home)
    (sentence,) = {p.partition(": ")[2] for p in found.problems}
    assert sentence.startswith(f"the Dask scheduler at {address} no longer answers")
    (home.path / "fast").touch()
    again = start(home, "audit_slow.py", "--jobs", "2", "--resume")
    out, _ = again.communicate(timeout=120)
    assert again.returncode == 0, out
    assert the_run(home).complete
    assert len(stored(home)) == 5


def test_the_death_of_a_scheduler_is_one_error_of_an_audit(
    scheduler: tuple[str, psutil.Process],
) -> None:
    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.2)
        return data.sum() + rng.laplace(size=size)

    address, process = scheduler
    cluster = Cluster(address, timeout=5.0)

    def kill(done: int, total: int, stage: str) -> None:
        if done > 600 and process.is_running():
            _kill(process)

    with pytest.raises(WorkersLost, match=f"the Dask scheduler at {address} no longer answers"):
        audit(
            slow,
            PureDP(1.5),
            PAIR,
            draws=1000,
            seed=1,
            settings=Settings(workers=cluster, progress=kill),
        )
    cluster.close()
