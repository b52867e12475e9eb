"""Tests of the history: what is combined, at which level, and which files are refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import StoreError
from dpaudit.results import Verdict
from dpaudit.store import History, HistoryLine, add_to_history, hold, read_history
from dpaudit.store.files import CHECKSUM, checksum_of

LINE = HistoryLine(
    audit="audit_a::audit_b",
    claim="c",
    words="epsilon = 1",
    code="k",
    seed=0,
    log_e_values=(1.0, -1.0),
    failure_prob=0.05,
    spent=0.15,
    verdict=Verdict.NOT_REFUTED,
    version="0.1.0",
    made="2026-01-01T00:00:00+00:00",
)


def lines(*logs: tuple[float, ...], **changes: Any) -> list[HistoryLine]:
    """Return lines with these e-values and seeds 0, 1, ..."""
    return [replace(LINE, seed=s, log_e_values=row, **changes) for s, row in enumerate(logs)]


def product(*logs: tuple[float, ...]) -> float:
    *earlier, last = lines(*logs)
    found = History(earlier).accumulated(last)
    assert found is not None
    return found.log_e_value


def test_the_e_values_of_each_bet_are_multiplied_and_then_averaged() -> None:
    assert product((1.0, -1.0), (2.0, -3.0)) == pytest.approx(
        math.log((math.exp(3.0) + math.exp(-4.0)) / 2)
    )


def test_the_largest_product_counts() -> None:
    assert product((5.0,), (-9.0,)) == pytest.approx(5.0)


def test_another_number_of_bets_starts_a_stream() -> None:
    found = History(lines((1.0, 2.0))).accumulated(replace(LINE, seed=9, log_e_values=(0.5,)))
    assert found is not None
    assert (found.runs, found.version, found.log_e_value) == (1, 2, 0.5)


def test_huge_e_values_are_added_without_overflow() -> None:
    assert product((1e12, -1e12), (1e12, 0.0)) == pytest.approx(2e12)


def test_one_run_of_the_first_version_is_refuted_at_twice_the_level() -> None:
    found = History().accumulated(LINE)
    assert found is not None
    assert (found.runs, found.version, found.counts) == (1, 1, True)
    assert found.refuted_at == pytest.approx(math.log(2 / 0.05))
    for log, refuted in ((math.log(39.9), False), (math.log(40.1), True)):
        one = History().accumulated(replace(LINE, log_e_values=(log,)))
        assert one is not None
        assert one.refuted is refuted


@pytest.mark.parametrize("changed", ["code", "claim"])
def test_another_code_or_claim_starts_a_stream_with_a_smaller_level(changed: str) -> None:
    versions = [replace(LINE, seed=v, **{changed: str(v)}) for v in range(5)]
    history = History(versions)
    for v, line in enumerate(versions, 1):
        found = history.accumulated(replace(line, seed=99))
        assert found is not None
        assert (found.runs, found.version) == (2, v)
        assert found.refuted_at == pytest.approx(math.log(v * (v + 1) / 0.05))
    fresh = history.accumulated(replace(LINE, seed=98, **{changed: "new"}))
    assert fresh is not None
    assert (fresh.runs, fresh.version) == (1, 6)


def test_the_levels_of_all_versions_sum_to_the_failure_probability() -> None:
    history, levels = History(), []
    for version in range(1, 200):
        line = replace(LINE, code=str(version))
        found = history.accumulated(line)
        assert found is not None
        levels.append(math.exp(-found.refuted_at))
        history = History([*history.lines, line])
    assert 0.99 * 0.05 < math.fsum(levels) < 0.05


def test_the_level_of_a_stream_is_fixed_by_its_first_run() -> None:
    found = History(lines((0.0, 0.0), failure_prob=0.01)).accumulated(replace(LINE, seed=5))
    assert found is not None
    assert found.refuted_at == pytest.approx(math.log(2 / 0.01))


def test_other_audits_do_not_matter() -> None:
    others = [replace(LINE, audit=f"other{i}", code=str(i)) for i in range(3)]
    assert History(others).accumulated(LINE) == History().accumulated(LINE)


@pytest.mark.parametrize(
    "again",
    [
        {},
        {"log_e_values": (99.0, 0.0)},
        {"failure_prob": 0.5},
        {"made": "2027"},
        {"version": "9", "verdict": Verdict.REFUTED},
    ],
)
def test_a_seed_counts_once_and_its_first_run_counts(again: dict[str, Any]) -> None:
    found = History([LINE]).accumulated(replace(LINE, **again))
    alone = History().accumulated(LINE)
    assert found is not None
    assert found == replace(alone, counts=False)


@pytest.mark.parametrize("earlier", [{"code": "old"}, {"claim": "old"}, {"log_e_values": ()}])
def test_a_seed_counts_once_in_all_streams_of_an_audit(earlier: dict[str, Any]) -> None:
    """The draws of the earlier run are known when the later run is chosen."""
    found = History([replace(LINE, **earlier)]).accumulated(LINE)
    assert found is not None
    assert (found.runs, found.log_e_value, found.counts) == (0, 0.0, False)


def test_a_seed_that_depends_on_other_streams_refutes_no_claim_that_holds() -> None:
    """The old code runs again only where the new code looked bad. False-alarm rate 1e-6."""
    rng, history = np.random.default_rng(3), History()
    bet = np.log([1.5, 0.5])  # fair for a fair coin
    for seed in range(400):
        drawn = (float(rng.choice(bet)),)
        line = replace(LINE, seed=seed, log_e_values=drawn, failure_prob=1e-6)
        again = [replace(line, code="old")] if line.log_e_values[0] > 0 else []
        for one in (line, *again):
            found = history.accumulated(one)
            assert found is not None
            assert not found.refuted
            history = History([*history.lines, one])


def test_the_largest_error_of_repeated_lines_counts() -> None:
    small = replace(LINE, spent=1e-6)
    assert History([LINE, small]).individual_error == pytest.approx(LINE.spent + 1e-6)
    bare = replace(LINE, log_e_values=())
    assert History([bare, bare]).individual_error == pytest.approx(2 * LINE.spent)


@pytest.mark.parametrize("changes", [{"log_e_values": ()}, {"code": ""}])
def test_lines_without_evidence_start_no_stream(changes: dict[str, Any]) -> None:
    bare = replace(LINE, seed=7, claim="other", **changes)
    assert History().accumulated(bare) is None
    found = History([bare, bare]).accumulated(LINE)
    assert found is not None
    assert found.version == 1


def test_errors_of_runs_add_up_and_the_error_of_the_history_does_not() -> None:
    history = History([*lines((0.0,), (1.0,), (2.0,)), replace(LINE, audit="other")])
    assert history.individual_error == pytest.approx(4 * 0.15)
    assert history.error == pytest.approx(2 * 0.05)
    again = History([*history.lines, replace(history.lines[0], made="later")])
    assert again.individual_error == history.individual_error


def test_a_life_of_a_valid_claim_is_seldom_refuted() -> None:
    """Bet all wealth on rare events: no other strategy comes as close to the bound of Ville."""
    rng, refuted, lives = np.random.default_rng(3), 0, 2000
    for _ in range(lives):
        own = lines(*[(math.log(4.0) if rng.random() < 0.25 else -1e9,) for _ in range(4)])
        found = History(own[:-1]).accumulated(own[-1])
        assert found is not None
        refuted += found.refuted
    # The third success in a row refutes, with probability 1/64 <= 0.05 / 2.
    assert 0.008 < refuted / lives < 0.025


# --- files --------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    add_to_history(path, lines((1.0,), (2.0, -3.5)))
    add_to_history(path, lines((0.0,), audit="other"))
    return path


def test_lines_come_back_as_they_were(file: Path) -> None:
    history, seal = read_history(file)
    assert history.lines == (*lines((1.0,), (2.0, -3.5)), *lines((0.0,), audit="other"))
    assert seal == json.loads(file.read_text().splitlines()[-1])[CHECKSUM]


def test_a_missing_file_is_an_empty_history(tmp_path: Path) -> None:
    history, seal = read_history(tmp_path / "none")
    assert (history.lines, seal) == ((), "")
    add_to_history(tmp_path / "none", [])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("at", [0, 1])
def test_a_removed_line_is_found(file: Path, at: int) -> None:
    kept = file.read_text().splitlines(keepends=True)
    del kept[at]
    file.write_text("".join(kept))
    with pytest.raises(StoreError, match=rf"line {at + 1}, is damaged: a line before it was rem"):
        read_history(file)


def test_lines_in_another_order_are_found(file: Path) -> None:
    file.write_text("".join(file.read_text().splitlines(keepends=True)[::-1]))
    with pytest.raises(StoreError, match=r"line 1, is damaged"):
        read_history(file)


def test_every_cut_inside_a_line_is_found(file: Path) -> None:
    content = file.read_bytes()
    ends = {at + 1 for at, byte in enumerate(content) if byte == ord("\n")} | {0}
    for cut in range(0, len(content), 7):
        file.write_bytes(content[:cut])
        if cut in ends:
            read_history(file)
        else:
            with pytest.raises(StoreError, match="is damaged"):
                read_history(file)


@pytest.mark.parametrize(
    "changes",
    [
        {"log_e_values": [99.0]},
        {"seed": 12},
        {"verdict": "refuted"},
    ],
)
def test_an_edited_line_is_found(file: Path, changes: dict[str, Any]) -> None:
    first, *rest = file.read_text().splitlines()
    file.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *rest, ""]))
    with pytest.raises(StoreError, match=r"line 1, is damaged: it does not match its checksum"):
        read_history(file)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"log_e_values": ["inf"]}, "log_e_values"),
        ({"log_e_values": [1e300]}, "log_e_values"),
        ({"log_e_values": 3}, "log_e_values"),
        ({"failure_prob": 0.0}, "failure_prob must be > 0"),
        ({"failure_prob": 2.0}, "failure_prob"),
        ({"verdict": "fine"}, "verdict"),
        ({"seed": "1"}, "seed"),
        ({"more": 1}, "more"),
        ({"code": None}, "code"),
    ],
)
def test_a_sealed_line_with_strange_values_is_refused(
    file: Path, changes: dict[str, Any], words: str
) -> None:
    data = {**json.loads(file.read_text().splitlines()[0]), **changes}
    del data[CHECKSUM]
    file.write_text(json.dumps({**data, CHECKSUM: checksum_of(data)}) + "\n")
    with pytest.raises(StoreError, match=f"line 1, is damaged: .*{words}"):
        read_history(file)


@pytest.mark.parametrize("content", ["[]\n", "\n", "null\n", '{"a": NaN}\n', "\x00\n", "{}", "3"])
def test_other_content_is_refused(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(StoreError, match=r"history.jsonl, line 1, is damaged"):
        read_history(file)


def test_nothing_is_added_to_a_damaged_file(file: Path) -> None:
    file.write_text(file.read_text()[:-1])
    before = file.read_bytes()
    with pytest.raises(StoreError, match="it is cut off"):
        add_to_history(file, [LINE])
    assert file.read_bytes() == before


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        read_history(tmp_path)


def test_only_one_run_writes_a_history(file: Path) -> None:
    lock = hold(file, "first")
    with pytest.raises(StoreError, match=r"history.jsonl is in use by `first`.*another file"):
        hold(file, "second")
    hold(file.parent, "a run in the same directory").release()
    lock.release()
    hold(file, "third").release()
    assert sorted(path.name for path in file.parent.iterdir()) == ["history.jsonl"]
