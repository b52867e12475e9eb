"""Tests of audits of outputs that were drawn elsewhere.

The audit shuffles, splits and counts the outputs, and reports what could not be checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dpaudit import (
    ApproxDP,
    AuditResult,
    GaussianDP,
    PureDP,
    Verdict,
    audit,
    audit_one_run,
    audit_outputs,
)
from dpaudit import neighbors as nb
from dpaudit.engine import counts
from dpaudit.engine.outputs import UNCHECKED, StoredDraws
from dpaudit.engine.task import Run, Task
from dpaudit.neighbors import family
from tests.statistical import FALSE_ALARM

Array = NDArray[Any]
ONE = nb.value_pattern("one_above", 1)


def laplace(size: int, at: float, *, seed: int, scale: float = 1.0) -> Array:
    return at + np.random.default_rng(seed).laplace(scale=scale, size=size)


BROKEN = laplace(4000, 1.0, seed=1, scale=0.5), laplace(4000, 0.0, seed=2, scale=0.5)


def test_a_violation_is_certified_and_what_was_not_checked_is_said() -> None:
    result = audit_outputs(*BROKEN, PureDP(1.0), seed=1)
    assert result.verdict is Verdict.REFUTED
    assert 1.3 < result.certified_epsilon <= 2.0
    assert UNCHECKED in result.notes
    assert result.mechanism == "outputs drawn elsewhere"
    assert result.pair_words == "drawn elsewhere: 4000 and 4000 outputs"
    assert result.pair is None
    assert AuditResult.from_json(result.to_json()) == result


@pytest.mark.parametrize("sizes", [(3000, 300), (300, 3000), (57, 60)])
def test_sides_may_differ_in_size(sizes: tuple[int, int]) -> None:
    left, right = (laplace(n, at, seed=n) for n, at in zip(sizes, (8.0, 0.0), strict=True))
    result = audit_outputs(left, right, PureDP(0.1), failure_prob=0.05, seed=1)
    assert result.verdict is Verdict.REFUTED
    assert 0.5 * min(sizes) < sum(result.draws.values()) <= sum(sizes)


@pytest.mark.slow
def test_the_order_in_which_outputs_were_stored_makes_no_event() -> None:
    """Check that the stored order of outputs is not used as an event.

    For sorted outputs of one distribution, the first part differs from the last part.
    """
    wrong = 0
    for seed in range(40):
        left, right = (np.sort(laplace(300, 0.0, seed=2 * seed + side)) for side in (0, 1))
        result = audit_outputs(left, right[::-1], PureDP(0.0), failure_prob=0.05, seed=seed)
        wrong += result.certified_epsilon > 0
    assert binom.sf(wrong - 1, 40, 0.05) > FALSE_ALARM


def test_every_output_is_handed_out_once() -> None:
    stored = StoredDraws("stored", np.arange(50.0), np.arange(100.0, 130.0), seed=3)
    drawn = np.concatenate([stored.draw(np.zeros(1), n, "any", "left") for n in (20, 30)])
    assert sorted(drawn) == list(range(50))
    assert drawn.tolist() != list(range(50))
    assert stored.sizes == {"left": 0, "right": 30}


def test_power_is_shown_on_outputs_of_a_mutant() -> None:
    honest = laplace(4000, 1.0, seed=5, scale=2.0), laplace(4000, 0.0, seed=6, scale=2.0)
    silent = audit_outputs(*honest, PureDP(1.0), seed=1)
    assert silent.verdict is Verdict.NO_POWER
    assert "mutants=" in silent.advice
    shown = audit_outputs(*honest, PureDP(1.0), seed=1, mutants={"a quarter of the noise": BROKEN})
    assert shown.verdict is Verdict.NOT_REFUTED
    assert shown.mutants[0].name == "a quarter of the noise"
    assert shown.mutants[0].killed
    missed = audit_outputs(*honest, PureDP(1.0), seed=1, mutants={"the same": honest})
    assert missed.verdict is Verdict.NO_POWER


@pytest.mark.sampled
@pytest.mark.parametrize("claim", [ApproxDP(1.0, 1e-5), GaussianDP(0.5)], ids=str)
def test_vectors_labels_and_records_are_outputs_too(claim: Any) -> None:
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(2, 1000, 3))
    vectors[0] += 2
    assert audit_outputs(*vectors, claim, seed=1).verdict is Verdict.REFUTED
    labels = [np.where(rng.random(1000) < p, "yes", "no") for p in (0.95, 0.1)]
    assert audit_outputs(*labels, claim, seed=1).verdict is Verdict.REFUTED
    records = [
        np.rec.fromarrays([side[:, 0], label], names="value,label")
        for side, label in zip(vectors, labels, strict=True)
    ]
    assert audit_outputs(*records, claim, seed=1).verdict is Verdict.REFUTED


@pytest.mark.slow
def test_files_and_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    plain = audit_outputs(*BROKEN, PureDP(1.0), seed=1)
    paths = [tmp_path / "left.npy", tmp_path / "right.npy"]
    for path, side in zip(paths, BROKEN, strict=True):
        np.save(path, side)
    assert audit_outputs(str(paths[0]), paths[1], PureDP(1.0), seed=1).witness == plain.witness
    frames = [pandas.DataFrame({"score": side}) for side in BROKEN]
    assert audit_outputs(*frames, PureDP(1.0), seed=1).witness == plain.witness
    wide = [frame.assign(label="a") for frame in frames]
    assert audit_outputs(*wide, PureDP(1.0), seed=1).verdict is Verdict.REFUTED


def test_parquet_files(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for path, side in zip(paths, BROKEN, strict=True):
        pq.write_table(pa.table({"score": side}), path)
    result = audit_outputs(*paths, PureDP(1.0), seed=1)
    assert result.witness == audit_outputs(*BROKEN, PureDP(1.0), seed=1).witness


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros(19), np.zeros(50)), "left must hold at least 20 outputs"),
        ((np.zeros(50), np.float64(3)), "right must be an array, a list, .* got float64"),
        ((np.zeros(50), {"a": 1}), "right must be an array, a list, .* got dict"),
        (
            (np.zeros((50, 2)), np.zeros(50)),
            r"got arrays of numbers of shape \(2,\) on the left and one number each .* lists",
        ),
        (("nowhere.npy", np.zeros(50)), "left must be an existing file, got nowhere.npy"),
        (("nowhere.parquet", np.zeros(50)), "left must be an existing file"),
        ((np.zeros(50), np.full(50, np.inf)), "right must hold finite .* in 50 of 50 outputs"),
        (
            (np.zeros(50), np.array(["a"] * 50)),
            "one number each on the left and one text each on the right",
        ),
        (("left.csv", np.zeros(50)), "left must be an array, a .npy file or a .parquet file"),
    ],
)
def test_what_is_no_output_is_refused(arguments: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        audit_outputs(*arguments, PureDP(1.0), seed=1)


PLAIN = np.arange(50.0)
INFINITE = np.where(PLAIN > 0, np.inf, 0.0)
RECORDS = np.zeros(50, dtype=[("a", float)])
RAGGED = [[1.0], [1.0, 2.0]] * 25


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.where(PLAIN < 48, PLAIN, -np.inf), "infinite values in 2 of 50 outputs, first in row"),
        ([*RAGGED[:-1], [np.inf, 1.0]], "infinite values in 1 of 50 outputs, first in row 49"),
        (np.rec.fromarrays([INFINITE, PLAIN], names="a,b"), "field 'a', must hold finite"),
        ([], "at least 20 outputs along its first axis, got 0"),
        (np.empty((50, 0)), r"must hold outputs with content, got shape \(0,\)"),
        (None, "a data frame, or the path of a .npy or .parquet file, got None"),
        (np.array(3.0), "got one value without an axis, 3.0"),
        ((x for x in PLAIN), "got a generator. Pass list"),
        ([1.0, "a"] * 25, "must hold numbers, or texts, got both, such as 1.0 and 'a'"),
        ([(1.0, "a")] * 50, "records of both as a structured array or a data frame"),
        ([[1.0, [2.0, 3.0]]] * 50, "got texts or lists of different lengths"),
        ([["a"], ["a", "b"]] * 25, "must hold a number or an array of numbers for each output"),
        (np.array([1.0, {}] * 25, dtype=object), r"must hold numbers, .* got 1.0 in row 0"),
        (np.array([["a", "b"], ["a", None]] * 25, dtype=object), "got None in row 1"),
        (PLAIN + 1j, "must hold numbers, booleans, texts or records of them, got complex128"),
        (PLAIN.astype("M8[s]"), r"texts or records of them, got datetime64\[s\]"),
    ],
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_messages_name_the_side(bad: Any, words: str, side: str) -> None:
    both = {"left": PLAIN, "right": PLAIN} | {side: bad}
    with pytest.raises(ValueError, match=f"^outputs: {side}.*{words}"):
        audit_outputs(both["left"], both["right"], PureDP(1.0), seed=1)


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (["a"] * 50, PLAIN, "one kind, got one text each on the left and one number each on the"),
        (["a"] * 50, RAGGED, "one text each on the left and arrays of numbers of varying shape on"),
        (RECORDS, PLAIN, r"one record \(a: one number\) each on the left"),
        (RECORDS, RECORDS.astype([("a", "U3")]), r"one record \(a: one text\) each on the right"),
        (np.zeros((50, 2, 2)), np.zeros((50, 2)), r"arrays of numbers of shape \(2, 2\) on the"),
    ],
)
def test_sides_that_disagree_are_told_in_words(left: Any, right: Any, words: str) -> None:
    with pytest.raises(ValueError, match=f"^outputs: left and right must hold .*{words}"):
        audit_outputs(left, right, PureDP(1.0), seed=1)


def test_what_a_mutant_gets_wrong_is_said_of_its_side() -> None:
    mutants = {"half": (PLAIN, INFINITE)}
    with pytest.raises(ValueError, match="^half: right must hold finite .* in 49 of 50 outputs"):
        audit_outputs(PLAIN, PLAIN, PureDP(1.0), seed=1, mutants=mutants)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "alike",
    [
        BROKEN[0].astype(object),
        list(BROKEN[0]),
        np.where(np.arange(len(BROKEN[0])) < 0, None, BROKEN[0]),
        BROKEN[0].astype(">f8"),
    ],
    ids=["objects", "list", "of None", "byte order"],
)
def test_numbers_are_numbers_however_they_are_stored(alike: Any) -> None:
    plain = audit_outputs(*BROKEN, PureDP(1.0), seed=1)
    assert audit_outputs(alike, BROKEN[1], PureDP(1.0), seed=1).witness == plain.witness


def test_no_answer_may_be_none() -> None:
    none, nan = ([missing, 1.0] * 50 for missing in (None, np.nan))
    found = [audit_outputs(x, x[::-1], PureDP(1.0), seed=1).witness for x in (none, nan)]
    assert found[0] == found[1]


@pytest.mark.parametrize("content", [b"", b"1 2 3", "objects"])
@pytest.mark.parametrize("name", ["left.npy", "left.parquet"])
def test_files_that_hold_something_else_are_named(
    name: str, content: bytes | str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif name.endswith("npy"):
        np.save(path, np.array([None] * 50), allow_pickle=True)
    else:
        pytest.importorskip("pyarrow.parquet").write_table(
            pytest.importorskip("pyarrow").table({"score": [[1.0], [1.0, 2.0]] * 25}), path
        )
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=rf"outputs: left.*got .*({name}|array)"):
        audit_outputs(path, np.zeros(50), PureDP(1.0), seed=1)


def test_outputs_of_a_mutant_are_of_the_shape_that_is_audited() -> None:
    honest = np.zeros(50)
    with pytest.raises(
        ValueError,
        match=r"outputs of the mutant 'wide' must have .*, one number each, .* arrays of .* \(2,\)",
    ):
        audit_outputs(
            honest, honest, PureDP(1.0), seed=1, mutants={"wide": (np.zeros((50, 2)),) * 2}
        )


def test_columns_of_objects_are_numbers_or_texts() -> None:
    pandas = pytest.importorskip("pandas")
    numbers = pandas.DataFrame({"score": np.array([1.0, None] * 50, dtype=object)})
    result = audit_outputs(numbers, numbers, PureDP(1.0), seed=1)
    assert result.verdict is Verdict.NO_POWER
    vectors = numbers.assign(vector=[[1.0, 2.0]] * 100)
    with pytest.raises(ValueError, match="column 'vector', must hold one number or text in a row"):
        audit_outputs(vectors, vectors, PureDP(1.0), seed=1)
    texts = pandas.DataFrame({"word": np.array(["a", None] * 50, dtype=object)})
    with pytest.raises(ValueError, match=r"column 'word', must hold .* got (None|nan) in row 1"):
        audit_outputs(texts, texts, PureDP(1.0), seed=1)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"claim": "1-DP"}, "claim must be a claim"),
        ({"mutants": [BROKEN]}, "mutants must be a dict"),
        ({"mutants": {"one": np.zeros(50)}}, "mutants must be a dict"),
        ({"id": 5}, "id must be a text"),
    ],
)
def test_arguments_of_another_kind_are_refused(named: Any, words: str) -> None:
    arguments = {"claim": PureDP(1.0), "seed": 1} | named
    with pytest.raises(TypeError, match=words):
        audit_outputs(*BROKEN, **arguments)


@pytest.mark.parametrize("most", [6, 14, 100])
@pytest.mark.parametrize("stored", [False, True])
def test_coins_fit_with_the_probability_that_is_paid_for(most: int, stored: bool) -> None:
    task = Task(
        PureDP(1.0), family(ONE), 100, 0.05, 1, "coins", stored={"left": 1} if stored else None
    )
    coins = counts._Coins.toss(most, Run(task, None, "role"))
    n, left = coins.tossed, coins.left
    assert int(coins.in_order(np.random.default_rng(1)).sum()) == left
    assert 0 < left < n
    assert not stored or max(left, n - left) <= most
    limit = most if stored else n
    fits = [k for k in range(1, n) if max(k, n - k) <= limit]
    assert coins.fit == pytest.approx(binom.pmf(fits, n, 0.5).sum(), rel=1e-9)
    assert coins.fit > 0.9


@pytest.mark.parametrize("stored", [None, {"left": 1}])
def test_coins_of_more_draws_than_an_integer_of_32_bits_fit(stored: dict[str, int] | None) -> None:
    task = Task(PureDP(1.0), family(ONE), 100, 0.05, 1, "coins", stored=stored)
    coins = counts._Coins.toss(2**31, Run(task, None, "role"))
    assert 0.9 < coins.fit <= 1.0


@pytest.mark.parametrize("seed", range(8))
def test_few_outputs_of_two_separable_sides_are_no_trouble(seed: int) -> None:
    left, right = laplace(20, 50.0, seed=seed), laplace(20, 0.0, seed=seed + 100)
    found = audit_outputs(left, right, PureDP(0.1), failure_prob=0.2, seed=seed)
    assert found.certified_epsilon < 5


def test_lists_of_different_lengths_are_outputs() -> None:
    short, long = [[1.0]] * 100, [[1.0, 2.0]] * 100
    mixed = audit_outputs(short[:50] + long[:50], long, PureDP(0.1), failure_prob=0.05, seed=1)
    assert mixed.certified_epsilon > 0.1


def test_masked_values_are_not_looked_at() -> None:
    hidden = np.r_[np.ones(500), np.zeros(500)]
    masked = np.ma.masked_array(hidden, mask=hidden > 0)
    with pytest.raises(ValueError, match="left must be a plain array"):
        audit_outputs(masked, np.zeros(1000), PureDP(1.0), seed=1)
    coins = np.arange(100) % 2 == 0
    with pytest.raises(ValueError, match="scores must be a plain array"):
        audit_one_run(np.ma.masked_array(coins * 1.0, mask=coins), coins, PureDP(1.0))


EQUAL: dict[str, Any] = {
    "numbers": lambda n: np.zeros(n),
    "integers": lambda n: [7] * n,
    "no answer": lambda n: [None] * n,
    "vectors": lambda n: np.ones((n, 3)),
    "texts": lambda n: ["yes"] * n,
    "lists of texts": lambda n: [["yes", "no"]] * n,
    "frames": lambda n: pd.DataFrame({"x": np.zeros(n), "word": ["yes"] * n}),
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", EQUAL)
@pytest.mark.parametrize("size", [120])
def test_equal_outputs_refute_nothing_by_the_luck_of_coins(kind: str, size: int) -> None:
    column = EQUAL[kind](size)
    for seed in range(8):
        result = audit_outputs(column, column, PureDP(0.0), failure_prob=0.5, seed=seed)
        assert result.verdict is Verdict.NO_POWER
        assert result.certified_epsilon == 0.0


@pytest.mark.slow
def test_equal_outputs_of_a_mechanism_refute_nothing_by_the_luck_of_coins() -> None:
    for answer in (0.0, "yes", {"x": 1.0, "word": "yes"}):

        def constant(data: Any, size: int, *, rng: Any, answer: Any = answer) -> Any:
            rng.random(size)
            return np.full(size, answer) if isinstance(answer, float) else [answer] * size

        for seed in range(5):
            options = {"draws": 60, "failure_prob": 0.5, "mutants": None}
            found = audit(constant, PureDP(0.0), ONE, seed=seed, **options)
            assert found.certified_epsilon == 0.0


def test_outputs_that_few_values_tell_apart_are_guessed_up_to_the_value_that_both_ends_reach() -> (
    None
):
    """Check the certified epsilon for 100 outputs on each side of randomised response.

    The rate of the response is 0.9.
    """
    left, right = np.repeat([1.0, 0.0], [90, 10]), np.repeat([0.0, 1.0], [90, 10])
    result = audit_outputs(left, right, PureDP(0.1), failure_prob=0.05, seed=1)
    assert 1.3 < result.certified_epsilon < np.log(9)
