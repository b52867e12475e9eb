"""Tests of the program that shows a refutation again without dpaudit."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import math
import re
import runpy
from dataclasses import replace
from functools import partial
from math import sqrt as root
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    AuditResult,
    GaussianDP,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    ReproducerError,
    Verdict,
    audit,
    one_draw,
    unseeded,
    within_sensitivity,
)
from dpaudit.engine.reproducer import MOST_LINES
from dpaudit.mechanisms import global_generators_kept
from dpaudit.stats import lower_proportion
from dpaudit.store import load_result, save_record

Array = NDArray[Any]
Generator = np.random.Generator
RELATION = Relation.REPLACE_USER
CLAIM = PureDP(1.0, relation=RELATION)
LEFT = np.zeros((30, 4))
RIGHT = np.vstack([LEFT[:-1], np.ones((1, 4))])
PAIR = NeighborPair(LEFT, RIGHT)
BOUND = 1.0


def clipped(data: Array) -> Array:
    return np.clip(data, 0, BOUND)


def mean(data: Array, size: int, *, rng: Generator) -> Array:
    """Say nothing about this."""
    return clipped(data).mean() + rng.laplace(scale=1 / data.size, size=size)


def several(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum(axis=0) + rng.normal(size=(size, 4))


def word(data: Array, size: int, *, rng: Generator) -> Array:
    return np.where(rng.random(size) < 1 / (1 + np.exp(-3 * data.sum())), "yes", "it's no")


def record(data: Array, *, rng: Generator, scale: float = 1.0) -> dict[str, float]:
    return {"n": len(data) + rng.laplace(), "it's sum": data.sum() + rng.laplace(scale=scale)}


def maybe(data: Array, size: int, *, rng: Generator) -> list[dict[str, float]]:
    return [{"big": 1.0} if data.sum() + noise > 1 else {} for noise in rng.laplace(size=size)]


def legacy(data: Array) -> float:
    return float(data.sum() + np.random.laplace(0, 0.1))  # noqa: NPY002


def by_seed(data: Array, seed: int) -> float:
    return float(data.sum() + np.random.default_rng(seed).laplace(0, 0.1))


@unseeded
def own_noise(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + np.random.default_rng().laplace(scale=0.1, size=size)


def of_frame(data: Any, size: int, *, rng: Generator) -> Array:
    return float(sum(data["v"])) + rng.laplace(scale=0.25, size=size)


def of_lists(data: list[list[float]], size: int, *, rng: Generator) -> Array:
    return sum(map(sum, data)) + rng.laplace(scale=0.25, size=size)


def rows(data: Array, size: int, *, rng: Generator) -> Array:
    made = np.zeros(size, dtype=[("a", float), ("b", int)])
    made["a"] = data.sum() + rng.laplace(size=size)
    return made


def ragged(data: Array, *, rng: Generator) -> list[float]:
    return [1.0] * (1 + int(abs(data.sum() + rng.laplace())))


def sometimes(data: Array, *, rng: Generator) -> float | None:
    noisy = float(data.sum() + rng.laplace())
    return noisy if noisy > 2 else None


def of_queries(data: Array, size: int, *, rng: Generator) -> Array:
    return data + rng.laplace(scale=0.25, size=(size, *data.shape))


def first(outputs: Array) -> Array:
    return np.asarray(outputs[:, 0])


def twice(draw: float) -> float:
    return 2 * draw


COLUMN = {"user": [0, 1, 2], "v": [0.0, 0.0, 0.0]}
MOVED = {"user": [0, 1, 2], "v": [0.0, 0.0, 1.0]}
AUDITS: dict[str, tuple[Any, Any, Any]] = {
    "numbers": (mean, CLAIM, PAIR),
    "vectors and a curve": (several, GaussianDP(0.5, relation=RELATION), PAIR),
    "texts": (word, CLAIM, PAIR),
    "dicts": (one_draw(record), CLAIM, PAIR),
    "bound arguments": (partial(one_draw(record), scale=0.5), ApproxDP(1.0, 1e-5, RELATION), PAIR),
    "missing keys": (Outcomes(maybe, keys=["big"]), CLAIM, PAIR),
    "a function of draws": (Outcomes(mean, then=twice), CLAIM, PAIR),
    "global generators": (one_draw(legacy, randomness="legacy"), CLAIM, PAIR),
    "a seed": (one_draw(by_seed, randomness="integer"), CLAIM, PAIR),
    "its own noise": (own_noise, CLAIM, PAIR),
    "record arrays": (rows, CLAIM, PAIR),
    "ragged lists": (one_draw(ragged), CLAIM, PAIR),
    "missing answers": (one_draw(sometimes), CLAIM, PAIR),
    "query values": (
        of_queries,
        PureDP(1.0, relation=within_sensitivity(1.0)),
        NeighborPair(np.zeros(2), np.ones(2), relation=within_sensitivity(1.0)),
    ),
    "an absent user": (
        mean,
        PureDP(1.0, relation=Relation.ADD_REMOVE_USER),
        NeighborPair(RIGHT, LEFT[:-1], relation=Relation.ADD_REMOVE_USER),
    ),
    "lists": (of_lists, CLAIM, NeighborPair([[0.0], [0.0, 0.0]], [[0.0], [1.0, 1.0]])),
    "pandas": (of_frame, CLAIM, NeighborPair(pd.DataFrame(COLUMN), pd.DataFrame(MOVED), by="user")),
    "polars": (of_frame, CLAIM, NeighborPair(pl.DataFrame(COLUMN), pl.DataFrame(MOVED), by="user")),
}


def audited(mechanism: Any, claim: Any, pair: Any, **arguments: Any) -> AuditResult:
    result = audit(mechanism, claim, pair, **{"draws": 8_000, "seed": 1} | arguments)
    assert result.verdict is Verdict.REFUTED
    return result


def ran(program: str, folder: Path) -> str:
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), global_generators_kept():
        runpy.run_path(str(file), run_name="__main__")
    return out.getvalue()


def numbers(printed: str) -> tuple[float, float]:
    """Return the epsilon that a program certifies, and the one that is claimed."""
    certified = re.search(r"epsilon at least ([\d.]+) ", printed)
    claimed = re.search(r"claimed: epsilon = ([\d.]+)", printed)
    assert certified is not None
    assert claimed is not None
    return float(certified[1]), float(claimed[1].rstrip("."))


@pytest.mark.sampled
@pytest.mark.parametrize("kind", AUDITS)
def test_the_program_refutes_the_claim_without_dpaudit(kind: str, tmp_path: Path) -> None:
    program = audited(*AUDITS[kind]).reproducer()
    code = program.split('"""', 2)[2]
    assert "dpaudit" not in code
    assert all(len(line) <= 100 for line in program.splitlines())
    certified, claimed = numbers(ran(program, tmp_path))
    assert certified > claimed


@pytest.mark.slow
def test_a_score_is_part_of_the_program(tmp_path: Path) -> None:
    program = audited(several, PureDP(1.0, relation=RELATION), PAIR, score=first).reproducer()
    assert "first(several(data, DRAWS, rng=rng))" in program
    certified, claimed = numbers(ran(program, tmp_path))
    assert certified > claimed


@pytest.mark.slow
def test_the_bounds_are_those_of_clopper_and_pearson(tmp_path: Path) -> None:
    program = audited(mean, CLAIM, PAIR).reproducer()
    names: dict[str, Any] = {"__name__": "program"}
    exec(program, names)
    for hits in (0, 1, names["DRAWS"] // 3, names["DRAWS"] - 1, names["DRAWS"]):
        expected = lower_proportion(hits, names["DRAWS"], names["FAILURE_PROB"] / 2)
        assert math.isclose(names["lower_bound"](hits), expected, rel_tol=1e-8, abs_tol=1e-12)


@pytest.mark.slow
def test_correct_noise_is_not_refuted_by_the_program(tmp_path: Path) -> None:
    """Check that the certificate comes from the draws: the same program with enough noise."""
    program = audited(mean, CLAIM, PAIR).reproducer()
    repaired = program.replace("scale=1 / data.size", "scale=len(data.T) / data.size")
    assert repaired != program
    certified, claimed = numbers(ran(repaired, tmp_path))
    assert certified < claimed


@pytest.mark.slow
def test_a_module_of_the_user_is_imported(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "means_of_users.py").write_text(
        "def mean(data, size, *, rng):\n"
        "    return data.mean() + rng.laplace(scale=1 / data.size, size=size)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    mechanism = importlib.import_module("means_of_users").mean
    program = audited(mechanism, CLAIM, PAIR).reproducer()
    assert "from means_of_users import mean\n" in program
    assert "sys.path.insert(0, '.')" in program
    assert program.count("\n") <= MOST_LINES
    certified, claimed = numbers(ran(program, tmp_path))
    assert certified > claimed


def test_a_large_dataset_is_written_by_its_few_other_rows() -> None:
    result = audited(own_noise, CLAIM, PAIR, method="sequential", draws=200)
    assert result.smallest is None
    written = (
        "LEFT = np.full((30, 4), 0.0)\nRIGHT = LEFT.copy()\nRIGHT[29] = [1.0, 1.0, 1.0, 1.0]\n"
    )
    assert written in result.reproducer()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (lambda data, size, *, rng: mean(data, size, rng=rng), "a lambda has no name"),
        (AdditiveNoise(lambda data: data.sum(), "laplace", scale=0.1), "drew no outputs"),
        (Outcomes(mean, errors="outcome"), "exceptions count as outputs"),
    ],
)
def test_what_cannot_be_written_is_refused_with_the_reason(mechanism: Any, reason: str) -> None:
    result = audited(mechanism, CLAIM, PAIR)
    with pytest.raises(ReproducerError, match=reason):
        result.reproducer()
    assert "does not satisfy" in result.reproducer(markdown=True)


def clips(function: Any) -> Any:
    @functools.wraps(function)
    def clipping(data: Array, size: int, *, rng: Generator) -> Array:
        return function(np.clip(data, 0, 0.6), size, rng=rng)

    return clipping


@clips
def decorated(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(scale=0.5, size=size)


SCALE = 0.5


def by_default(data: Array, size: int, *, rng: Generator, scale: float = SCALE) -> Array:
    return data.sum() + rng.laplace(scale=scale, size=size)


SCALE = 0.25
DRAWS = 2


def collides(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(scale=1 / DRAWS, size=size)


def of_text(data: Array, size: int, *, rng: Generator) -> Array:
    """Say nothing, and depend on a string with an empty line."""
    scale = 4 / len("""a

b""")
    return data.sum() + rng.laplace(scale=scale / 4, size=size)


NOISY = [0.5] * 4000


def with_much(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(scale=NOISY[0], size=size)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (decorated, "decorated is decorated"),
        (by_default, "would not do what the mechanism does"),
        (collides, "the program itself uses the name DRAWS"),
        (of_text, "would not do what the mechanism does"),
        (with_much, "more than 12,000 characters"),
    ],
)
def test_a_program_that_would_do_something_else_is_refused(mechanism: Any, reason: str) -> None:
    with pytest.raises(ReproducerError, match=reason):
        audited(mechanism, CLAIM, PAIR).reproducer()


def shadows(data: Array, seed: int = 3) -> float:
    rng = np.random
    return float(data.sum() + rng.laplace(0, 0.5))


def with_aliases(data: Array, size: int, *, rng: Generator) -> Array:
    import math

    return data.sum() + rng.laplace(scale=root(math.sqrt(0.0625)), size=size)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [one_draw(shadows, randomness="legacy"), with_aliases])
def test_names_of_the_mechanism_keep_their_meaning(mechanism: Any, tmp_path: Path) -> None:
    """Check a local `rng`, an import inside a function, and an import under another name."""
    result = audited(mechanism, CLAIM, PAIR)
    certified, claimed = numbers(ran(result.reproducer(), tmp_path))
    assert claimed < certified < 8 * 1.2  # four items of effect 1, noise of scale 0.5


def test_a_claim_that_is_not_refuted_has_no_program() -> None:
    result = audit(mean, PureDP(50.0, relation=RELATION), PAIR, draws=1_000, seed=1)
    with pytest.raises(ReproducerError, match="is not refuted"):
        result.reproducer()
    with pytest.raises(ReproducerError, match="is not refuted"):
        result.reproducer(markdown=True)


@pytest.mark.slow
def test_the_program_is_stored_and_the_issue_tells_all(tmp_path: Path) -> None:
    result = audited(mean, CLAIM, PAIR)
    stored = load_result(save_record(tmp_path, result))
    assert stored.reproducer() == result.reproducer()
    issue = stored.reproducer(markdown=True)
    assert issue == result.reproducer(markdown=True)
    for part in (
        "claim is epsilon = 1",
        "Smallest pair",
        "draws on the",
        "Likely cause",
        "```python",
    ):
        assert part in issue
    assert "sys.path" not in issue
    assert f"numpy {np.__version__}" in issue
    before = replace(stored, again=None)  # stored before there were programs
    with pytest.raises(ReproducerError, match="did not store"):
        before.reproducer()
