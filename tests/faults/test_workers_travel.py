"""Tests of what is sent to workers that cannot import an audit file or have other versions."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError, NeighborPair, PureDP, Settings, audit, mutants
from dpaudit.events import features
from dpaudit.events.encoding import Encoder
from dpaudit.mechanisms import Processes, Subprocess
from dpaudit.mechanisms.workers import packed, unpacked
from dpaudit.mutants import of_noise

PAIR = NeighborPair([[0.0]], [[1.0]])

RELEASE = """
import functools
import numpy as np
import helper_of_release as helper
from dpaudit import one_draw

class Clip:
    def __init__(self, bound):
        self.bound = bound

    def __call__(self, data):
        return helper.clipped(data, self.bound)

@functools.lru_cache(maxsize=4)
def scale(epsilon):
    return SCALE / epsilon

SCALE = 1.0

@one_draw
def release(data, *, rng):
    return float(Clip(1.0)(data).sum()) + rng.laplace(scale=scale(1.0))
"""

HELPER = "import numpy as np\ndef clipped(data, bound):\n    return np.clip(data, 0, bound)\n"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Yield a mechanism in two files that only this process can import."""
    (tmp_path / "release_of_user.py").write_text(RELEASE)
    (tmp_path / "helper_of_release.py").write_text(HELPER)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("release_of_user").release
    for name in ("release_of_user", "helper_of_release"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def elsewhere() -> Any:
    """Yield workers that were started before any file of a test was importable."""
    pool = Processes(2)
    pool.executor.submit(int, 1).result()
    yield pool
    pool.close()


def test_the_mechanism_its_helpers_and_its_noise_mutants_travel_by_value(
    release: Any, elsewhere: Processes
) -> None:
    options: dict[str, Any] = {"draws": 600, "seed": 1, "id": "x"}
    alone = audit(release, PureDP(1.0), PAIR, **options)
    together = audit(release, PureDP(1.0), PAIR, **options, settings=Settings(workers=elsewhere))
    assert [m.name for m in together.mutants] == [m.name for m in alone.mutants]
    assert [(m.status, m.note) for m in together.mutants] == [
        (m.status, m.note) for m in alone.mutants
    ]
    assert together.draws == alone.draws
    for mutant in of_noise(release, [PAIR.left], seed=1).mutants:
        content = packed(mutant.mechanism)
        assert _names_in(content).isdisjoint({"release_of_user", "helper_of_release"})


def _names_in(content: bytes) -> set[str]:
    """Return the modules that are imported when the object is loaded."""
    import pickle
    import pickletools

    inner = pickle.loads(content)[1]
    strings = [argument for _, argument, _ in pickletools.genops(inner) if argument is not None]
    texts = [text for text in strings if isinstance(text, str)]
    opcodes = list(pickletools.genops(inner))
    named = set()
    for at, (opcode, _, _) in enumerate(opcodes):
        if opcode.name == "STACK_GLOBAL":
            before = [a for o, a, _ in opcodes[:at] if isinstance(a, str)]
            named.add(before[-2])
    assert texts
    return named


def test_a_worker_with_another_version_of_a_file_refuses(
    release: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpaudit.mechanisms import workers

    content = packed(release)
    known = workers._known_hash
    monkeypatch.setattr(
        workers,
        "_known_hash",
        lambda file: "0" * 64 if file and "helper_of_release" in file else known(file),
    )
    with pytest.raises(MechanismError, match="another version of helper_of_release"):
        unpacked(content)


def test_what_travels_by_name_and_is_not_there_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: Processes
) -> None:
    """Check the error if a worker cannot import a function that is sent by name.

    A lock among the globals of a file prevents sending its functions by value.
    """
    (tmp_path / "locked_of_user.py").write_text(
        "import threading\nLOCK = threading.Lock()\n"
        "def release(data, size, *, rng):\n"
        "    with LOCK:\n        return data.sum() + rng.laplace(size=size)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("locked_of_user")
    with pytest.raises(MechanismError, match="a worker cannot import .*locked_of_user"):
        audit(
            module.release,
            PureDP(1.0),
            PAIR,
            draws=300,
            seed=1,
            settings=Settings(workers=elsewhere),
        )
    sys.modules.pop("locked_of_user")


def test_a_replaced_function_is_replaced_where_the_audit_runs(
    release: Any, elsewhere: Processes
) -> None:
    """Check that replacing a function has the same effect with workers and without workers.

    A worker would replace the function in a copy of the module, without effect.
    """
    change = mutants.without("helper_of_release.clipped")
    options: dict[str, Any] = {"draws": 600, "seed": 1, "id": "x", "mutants": [change]}
    alone, together = (
        audit(release, PureDP(2.0), NeighborPair([[0.0]], [[5.0]]), settings=settings, **options)
        for settings in (None, Settings(workers=elsewhere))
    )
    mutant_runs = [[(m.name, m.status, m.note) for m in r.mutants] for r in (alone, together)]
    assert mutant_runs[0] == mutant_runs[1]
    assert mutant_runs[0][0][1].name == "KILLED"


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 11, 50])
def test_every_feature_travels(dim: int) -> None:
    rng = np.random.default_rng(dim)
    left, right = rng.normal(size=(2, 200, dim))
    right = right + 1
    encoder = Encoder.learn(left, right)
    encoded = encoder(left), encoder(right)
    for feature in features.all_features(encoder, *encoded):
        before = feature(encoded[0])
        assert np.array_equal(unpacked(packed(feature))(encoded[0]), before, equal_nan=True)


def test_a_file_of_another_environment_must_be_the_same_on_a_worker(tmp_path: Path) -> None:
    file = tmp_path / "theirs.py"
    file.write_text("def f(data, size, *, rng):\n    return data.sum() + rng.normal(size=size)\n")
    shipped = packed(Subprocess(sys.executable, f"{file}:f"))
    file.write_text("def f(data, size, *, rng):\n    return rng.normal(size=size)\n")
    with pytest.raises(MechanismError, match=r"theirs.py must be the same file as at the start"):
        unpacked(shipped)(PAIR.left, 3, rng=np.random.default_rng(1))


def test_a_count_of_changes_comes_back_from_workers(elsewhere: Processes) -> None:
    """Check that workers return the count of changes of a mutant.

    Whether a mutant changed anything must not depend on the process that drew.
    """
    from dpaudit.mechanisms import Sampler

    counted: Callable[..., Any] = _Counted()
    sampler = Sampler(counted, seed=1, labels=("x", "mutant"), workers=elsewhere)
    sampler.begin(PAIR.left, PAIR.right)
    before = counted.changed  # type: ignore[attr-defined]
    sampler.draw(PAIR.left, 640, "explore", "left")
    assert counted.changed == before + 640  # type: ignore[attr-defined]


class _Counted:
    changed = 0
    __name__ = "counted"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Any:
        self.changed += size
        return functools.reduce(np.add, [data.sum(), rng.laplace(size=size)])
