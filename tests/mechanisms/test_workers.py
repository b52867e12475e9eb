"""Chunks drawn by workers, stored on disk, and ended by the clock never change the result."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

from dpaudit import (
    ArgumentError,
    MechanismError,
    MechanismTimeout,
    NeighborPair,
    PureDP,
    Settings,
    StoreError,
    audit,
)
from dpaudit.mechanisms import AdditiveNoise, Cluster, Processes, workers
from tests.records import plain

PAIR = NeighborPair([[0.0]], [[1.0]])


def noisy(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


@pytest.fixture(scope="module")
def processes() -> Any:
    pool = Processes(2)
    yield pool
    pool.close()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"method": "sequential"}], ids=["counts", "bets"])
def test_workers_find_what_one_process_finds_to_the_last_bit(
    processes: Processes, options: dict[str, Any]
) -> None:
    alone = audit(noisy, PureDP(1.2), PAIR, draws=20_000, seed=1, **options)
    together = audit(
        noisy,
        PureDP(1.2),
        PAIR,
        draws=20_000,
        seed=1,
        **options,
        settings=Settings(workers=processes),
    )
    assert plain(together) == plain(alone)


@pytest.mark.slow
def test_any_executor_will_do_and_is_left_open() -> None:
    alone = audit(noisy, PureDP(0.5), PAIR, draws=5000, seed=1)
    with ThreadPoolExecutor(2) as pool:
        together = audit(
            noisy, PureDP(0.5), PAIR, draws=5000, seed=1, settings=Settings(executor=pool)
        )
        assert pool.submit(int, 3).result() == 3
    assert plain(together) == plain(alone)


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced_and_its_chunks_are_drawn_again(tmp_path: Path) -> None:
    flag = tmp_path / "died"
    parent = os.getpid()

    def dies_once(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        if os.getpid() != parent and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return data.sum() + rng.laplace(size=size)

    with_death = audit(
        dies_once, PureDP(0.5), PAIR, draws=5000, seed=1, id="x", settings=Settings(workers=2)
    )
    assert flag.exists()
    assert plain(with_death) == plain(
        audit(dies_once, PureDP(0.5), PAIR, draws=5000, seed=1, id="x")
    )


@pytest.mark.slow
def test_a_worker_that_always_dies_is_given_up_with_a_reason() -> None:
    parent = os.getpid()

    def dies(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return rng.laplace(size=size)

    with pytest.raises(MechanismError, match="workers died 3 times during one chunk"):
        audit(dies, PureDP(0.5), PAIR, draws=2000, seed=1, settings=Settings(workers=2))


def test_a_broken_executor_of_somebody_else_is_told() -> None:
    with ProcessPoolExecutor(1) as pool:
        future = pool.submit(os.kill, os.getpid(), 0)
        future.result()
        broken = pool.submit(os._exit, 1)
        broken.exception()
        with pytest.raises(MechanismError, match="executor is broken|cannot be sent"):
            audit(noisy, PureDP(0.5), PAIR, draws=2000, seed=1, settings=Settings(executor=pool))


def test_what_cannot_travel_is_told() -> None:
    lock = threading.Lock()

    def holds_a_lock(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        with lock:
            return rng.laplace(size=size)

    with pytest.raises(MechanismError, match="holds_a_lock cannot be sent to other processes"):
        audit(holds_a_lock, PureDP(0.5), PAIR, draws=2000, seed=1, settings=Settings(workers=2))


def test_an_exception_on_a_worker_is_the_one_of_the_mechanism(processes: Processes) -> None:
    parent = os.getpid()

    def fails(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        if os.getpid() != parent:
            raise KeyError("there")
        return rng.laplace(size=size)

    with pytest.raises(MechanismError, match="fails raised KeyError: 'there'"):
        audit(fails, PureDP(0.5), PAIR, draws=2000, seed=1, settings=Settings(workers=processes))


@pytest.mark.slow
def test_an_audit_on_workers_ends_when_its_time_is_over(processes: Processes) -> None:
    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.2)
        return rng.laplace(size=size)

    with pytest.raises(MechanismTimeout):
        audit(
            slow,
            PureDP(0.5),
            PAIR,
            draws=9000,
            seed=1,
            settings=Settings(workers=processes, time_limit=4.0),
        )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"workers": 0}, "workers must be an integer >= 1"),
        ({"workers": "two"}, "workers must be an integer"),
        ({"executor": 3}, "executor must be an executor of concurrent.futures"),
        ({"workers": 2, "executor": object()}, "one of workers and executor"),
        ({"max_seconds": 0}, "max_seconds must be a finite number > 0"),
    ],
)
def test_bad_workers_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words):
        audit(noisy, PureDP(0.5), PAIR, draws=2000, settings=Settings(**arguments))


# --- Dask ---


@pytest.mark.slow
def test_a_cluster_finds_the_same_although_a_worker_is_killed_in_the_middle() -> None:
    pytest.importorskip("distributed")

    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.03)
        return data.sum() + rng.laplace(size=size)

    alone = audit(slow, PureDP(0.5), PAIR, draws=20_000, seed=1, id="x")
    cluster = Cluster("local", timeout=60)
    try:
        killed = threading.Timer(2.0, _kill_one, [cluster])
        killed.start()
        together = audit(
            slow,
            PureDP(0.5),
            PAIR,
            draws=20_000,
            seed=1,
            id="x",
            settings=Settings(workers=cluster),
        )
        killed.join()
    finally:
        cluster.close()
    assert plain(together) == plain(alone)


@pytest.mark.slow
def test_what_a_cluster_lost_is_sent_again() -> None:
    """Check that a mechanism that a cluster lost is sent again.

    The only worker that had the mechanism died before another worker received the mechanism.
    """
    pytest.importorskip("distributed")

    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.02)
        return data.sum() + rng.laplace(size=size)

    alone = audit(slow, PureDP(0.5), PAIR, draws=4000, seed=1, id="x", mutants=None)
    cluster = Cluster("local", timeout=60)
    lost = []

    def lose() -> None:
        lost.extend(sent for _, sent in cluster._shipped.values())
        cluster._client.cancel([sent.place for sent in lost], force=True)

    try:
        timer = threading.Timer(2.0, lose)
        timer.start()
        options: dict[str, Any] = {"draws": 4000, "seed": 1, "id": "x", "mutants": None}
        together = audit(slow, PureDP(0.5), PAIR, **options, settings=Settings(workers=cluster))
        timer.join()
    finally:
        cluster.close()
    assert lost
    assert plain(together) == plain(alone)


def _kill_one(cluster: Cluster) -> None:
    pids = list(cluster._client.run(os.getpid).values())
    os.kill(pids[0], signal.SIGKILL)


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_told() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ArgumentError, match="address of a scheduler that answers"):
        Cluster("tcp://127.0.0.1:9", timeout=1.0)


# --- stored calls, and the clock ---


@pytest.mark.slow
def test_calls_are_kept_and_none_is_made_twice(tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def counted(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        with calls.open("a") as log:
            log.write("x")
        return data.sum() + rng.laplace(size=size)

    cached = Settings(cache_dir=tmp_path / "kept")
    options: dict[str, Any] = {"draws": 3000, "seed": 1, "settings": cached, "mutants": None}
    first = audit(counted, PureDP(0.9), PAIR, method="sequential", **options)
    made = len(calls.read_text())
    again = audit(counted, PureDP(0.9), PAIR, method="sequential", **options)
    assert len(calls.read_text()) == made
    assert plain(again) == plain(first)
    audit(
        counted, PureDP(2.0), PAIR, method="sequential", **options
    )  # another claim, the same draws
    assert len(calls.read_text()) < 2 * made
    (kept, *_) = tmp_path.glob("kept/mechanism */*.npz")
    kept.write_bytes(b"half")
    with pytest.raises(StoreError, match="does not hold a complete call of a mechanism"):
        audit(counted, PureDP(0.9), PAIR, method="sequential", **options)


HELPER = "SENSITIVITY = {}\n"
MECHANISM = """
from helper_of_cache import SENSITIVITY

def summed(data, size, *, rng, scale=1.0):
    with open({log!r}, "a") as log:
        log.write("x")
    return data.sum() + rng.laplace(scale=scale * SENSITIVITY, size=size)

def other(data, size, *, rng):
    return rng.normal(size=size)
"""


def test_changed_code_is_called_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check for the mechanism's file, a module that it imports, and a bound value."""
    log = tmp_path / "log"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def calls(helper: float = 1.0, comment: str = "", **bound: float) -> int:
        for name in ("helper_of_cache", "mechanism_of_cache"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / "helper_of_cache.py").write_text(HELPER.format(helper))
        text = MECHANISM.format(log=str(log)) + comment
        (tmp_path / "mechanism_of_cache.py").write_text(text)
        importlib.invalidate_caches()
        module = importlib.import_module("mechanism_of_cache")
        before = len(log.read_text()) if log.exists() else 0
        mechanism = functools.partial(module.summed, **bound) if bound else module.summed
        settings = Settings(cache_dir=tmp_path / "kept")
        options: dict[str, Any] = {"draws": 200, "seed": 1, "mutants": None, "settings": settings}
        audit(mechanism, PureDP(3.0), PAIR, **options)  # no violation to look into
        audit(module.other, PureDP(3.0), PAIR, **options)  # another mechanism is no obstacle
        return len(log.read_text()) - before

    first = calls()
    assert first > 0
    assert calls() == 0
    for changed in ({"helper": 2.25}, {"comment": "# new"}, {"scale": 2.0}):
        assert calls(**changed) == first, changed
        assert calls(**changed) == 0, changed
    assert calls() == 0  # the calls of the first version are still there


@pytest.mark.slow
def test_what_could_not_be_judged_in_time_certifies_nothing() -> None:
    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.3)
        return data.sum() * 50 + rng.laplace(size=size)

    result = audit(
        slow,
        PureDP(0.1),
        PAIR,
        draws=10**5,
        seed=1,
        mutants=None,
        method="sequential",
        settings=Settings(max_seconds=0.5),
    )
    assert result.certified_epsilon == 0
    assert result.diagnostics.sequential is not None
    assert (
        "before the draws could be tested for independence" in result.diagnostics.sequential.stopped
    )


SCRIPT = """
import sys, time
from pathlib import Path
import numpy as np
from dpaudit import NeighborPair, PureDP, audit, Settings

def slow(data, size, *, rng):
    with Path(sys.argv[1], "calls").open("a") as log:
        log.write("x")
    time.sleep(0.05)
    return data.sum() + rng.laplace(size=size)

pair = NeighborPair([[0.0]], [[1.0]])
result = audit(slow, PureDP(2.0), pair, draws=1000, seed=1, method="sequential",
               mutants=None, settings=Settings(cache_dir=Path(sys.argv[1], "kept")))
print(result.certified_epsilon, result.draws)
"""


@pytest.mark.slow
def test_what_was_killed_goes_on_with_nothing_lost(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)

    def run(folder: Path, seconds: float | None) -> str:
        folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, text=True
        )
        if seconds is not None:
            while not (folder / "calls").exists():
                time.sleep(0.01)
            time.sleep(seconds)
            process.kill()
        out, _ = process.communicate()
        return out

    whole = run(tmp_path / "whole", None)
    assert run(tmp_path / "killed", 1.0) == ""
    assert run(tmp_path / "killed", None) == whole
    once, twice = ((tmp_path / name / "calls").read_text() for name in ("whole", "killed"))
    assert len(once) <= len(twice) <= len(once) + 1  # the call that was running


@pytest.mark.slow
def test_the_clock_ends_an_audit_with_what_is_certified() -> None:
    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.02)
        return data.sum() * 8 + rng.laplace(size=size)

    begun = time.perf_counter()
    result = audit(
        slow,
        PureDP(20.0),
        PAIR,
        draws=10**7,
        seed=1,
        method="sequential",
        settings=Settings(max_seconds=3.0),
    )
    assert time.perf_counter() - begun < 30
    assert result.diagnostics.sequential is not None
    assert result.diagnostics.sequential.stopped == "the time of max_seconds is over"
    assert 0.5 < result.certified_epsilon < 8
    assert all(m.status.name != "KILLED" or m.draws for m in result.mutants)


@pytest.mark.slow
def test_a_mechanism_that_takes_a_second_is_probed_by_two_draws_a_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dpaudit.mechanisms import sampler

    monkeypatch.setattr(sampler, "SLOW", 0.01)
    sizes: list[int] = []

    def slow(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        sizes.append(size)
        time.sleep(0.02)
        return rng.laplace(size=size)

    audit(slow, PureDP(1.0), PAIR, draws=60, seed=1, mutants=None)
    assert sizes[:4] == [1, 1, 1, 1]
    assert max(sizes) < 64

    def unsteady(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        time.sleep(0.02)
        return np.random.default_rng().laplace(size=size)

    with pytest.raises(MechanismError, match="ignores rng"):
        audit(unsteady, PureDP(1.0), PAIR, draws=60, seed=1)


def test_only_sequential_audits_may_be_ended_by_the_clock() -> None:
    with pytest.raises(ArgumentError, match="^max_seconds must be None unless .*got 3"):
        audit(noisy, PureDP(0.5), PAIR, settings=Settings(max_seconds=3.0))
    added = AdditiveNoise(lambda data: data.sum(axis=0), noise="laplace", scale=1.0)
    with pytest.raises(TypeError, match='for method="sequential", .* computes its centres'):
        audit(added, PureDP(0.5), PAIR, method="sequential", settings=Settings(max_seconds=3.0))


@pytest.mark.parametrize("where", [3, None])
def test_a_place_that_is_no_folder_is_refused(tmp_path: Path, where: Any) -> None:
    file = tmp_path / "kept"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises((StoreError, TypeError), match="cache_dir must be"):
        audit(
            noisy,
            PureDP(0.5),
            PAIR,
            draws=300,
            seed=1,
            settings=Settings(cache_dir=file if where is None else where),
        )
    assert file.read_text(encoding="utf-8") == "mine"


def test_a_folder_whose_first_call_failed_is_free(tmp_path: Path) -> None:
    def broken(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        raise RuntimeError("not yet")

    with pytest.raises(MechanismError, match="not yet"):
        audit(broken, PureDP(0.5), PAIR, draws=300, seed=1, settings=Settings(cache_dir=tmp_path))
    kept = audit(
        noisy,
        PureDP(0.5),
        PAIR,
        draws=300,
        seed=1,
        mutants=None,
        settings=Settings(cache_dir=tmp_path),
    )
    assert kept.draws["certify"] > 0


def test_code_keeps_the_name_of_its_file_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check what cloudpickle 3.1.3 broke: mutants find the noise by the name of the file."""
    reduce = workers._Pickler.dispatch_table[CodeType]

    def nameless(code: CodeType) -> tuple[Any, ...]:
        make, arguments = reduce(code)[:2]
        return make, tuple("?" if one == code.co_filename else one for one in arguments)

    table = {**workers._Pickler.dispatch_table, CodeType: nameless}
    monkeypatch.setattr(workers._Pickler, "dispatch_table", table)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile("def own(data):\n    return (lambda: data)()", "own.py", "exec"), space)
    sent = pickle.loads(workers._dumps(space["own"], []))
    assert sent.__code__ is not space["own"].__code__
    assert sent.__code__.co_filename == "own.py"
    (inner,) = (one for one in sent.__code__.co_consts if isinstance(one, CodeType))
    assert inner.co_filename == "own.py"
    assert sent(3) == 3
