"""Tests of `dpaudit compare` on two stored runs, with its exit codes and files."""

from __future__ import annotations

import shutil

import pytest

from tests.run.conftest import Home

MINE = """
import numpy as np

SCALE = {scale}

def noisy(data, size, *, rng):
    return data.sum() + rng.laplace(scale=SCALE, size=size)

class Coin:
    def pmf(self, data):
        return [{heads}, 1 - {heads}] if data.sum() > 0 else [0.5, 0.5]
"""

AUDIT = """
from dpaudit import NeighborPair, PureDP
from mine import Coin, noisy

PAIR = NeighborPair([[1.0]], [[0.0]])

def audit_noisy(auditor):
    auditor.check(noisy, PureDP(1.5), PAIR, draws=12_000)

def audit_coin(auditor):
    auditor.check(Coin(), PureDP(1.0), PAIR, mutants=None)
"""

LEDGER = """
from dpaudit import statement

@statement("p.one")
def one(ledger):
    '''Squares are at least 0.'''
    ledger.argue("by sight")
"""


def run(home, out, *more, scale=1.0, heads=0.6, audit=AUDIT, ledger=LEDGER):
    home.write(mine=MINE.format(scale=scale, heads=heads))
    home.put("audits/audit_mine.py", audit)
    home.put("audits/ledger_p.py", ledger)
    return home.dpaudit("run", "--jobs", "0", "--out", out, *more)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Return a home with the runs `before` and `halved`, created once.

    The run `halved` has half of the noise.
    """
    home = Home(tmp_path_factory.mktemp("first"))
    for name, scale in (("halved", 0.5), ("before", 1.0)):
        done = run(home, name, scale=scale)
        assert done.code == (name == "halved"), done.out + done.err
    return home


@pytest.fixture
def stored(home, first):
    """Return a copy of this home."""
    shutil.copytree(first.path, home.path, dirs_exist_ok=True)
    return home


@pytest.mark.slow
def test_the_same_code_and_seed_are_the_same_to_the_bit(stored):
    run(stored, "after")
    done = stored.dpaudit("compare", "before", "after")
    assert done.code == 0, done.out + done.err
    assert done.out.splitlines() == [
        "no epsilon had to be compared: all audits of both runs are the same to the last bit",
        "0 worse, 0 other changes, 0 epsilons moved, 3 the same",
    ]


@pytest.mark.slow
def test_another_seed_moves_no_epsilon(stored):
    run(stored, "after", "--seed", "5")
    done = stored.dpaudit("compare", "before", "after")
    assert done.code == 0, done.out
    done.matches(
        "note: seed 0 before, 5 now",
        "epsilon  audit_mine::audit_coin  no move certified: * (the certified intervals overlap)",
        "epsilon  audit_mine::audit_noisy  estimate only: estimated * before, * now; certified *",
        "an epsilon moved if the certified interval of one run excludes that of the other, *",
        "0 worse, 0 other changes, 0 epsilons moved, 0 the same",
    )


@pytest.mark.slow
def test_a_bug_is_worse_and_mending_it_is_not(stored):
    run(stored, "after", scale=0.5, heads=0.9)
    done = stored.dpaudit("compare", "before", "after", "--markdown", "new/comment.md")
    assert done.code == 1
    done.matches(
        "note: files that differ: mine.py",
        "WORSE    newly refuted: audit_mine::audit_coin  NO POWER (allowed) -> REFUTED  *",
        "WORSE    newly refuted: audit_mine::audit_noisy  NOT REFUTED -> REFUTED  *",
        "epsilon  audit_mine::audit_coin  rose: estimated * (the lower bound now lies above *",
        "epsilon  audit_mine::audit_noisy  estimate only: estimated * before, * now; *",
        "2 worse, 0 other changes, 1 epsilon moved, 1 the same",
    )
    comment = (stored.path / "new" / "comment.md").read_text()
    assert comment.startswith("### dpaudit: 2 worse, ")
    assert (
        "| newly refuted | <code>audit&#95;mine::audit&#95;noisy</code> | NOT REFUTED |" in comment
    )
    back = stored.dpaudit("compare", "after", "before")
    assert back.code == 0
    back.matches(
        "changed  fixed: audit_mine::audit_coin  REFUTED -> NO POWER (allowed)  *",
        "changed  fixed: audit_mine::audit_noisy  REFUTED -> NOT REFUTED  *",
    )
    assert back.out.count(" fell: ") == 1


@pytest.mark.slow
def test_less_power_fails_where_it_is_asked_to(stored):
    shutil.copytree(stored.path / "before", stored.path / "after")
    name = "audits/audit_mine.audit_noisy.json"
    record = stored.json(f"after/{name}")
    assert record["verdict"] == "not_refuted"
    mutants = [{**mutant, "status": "survived"} for mutant in record["mutants"]]
    stored.reseal(f"after/{name}", verdict="no_power", mutants=mutants)
    plain = stored.dpaudit("compare", f"before/{name}", f"after/{name}")
    assert plain.code == 0, plain.out + plain.err
    plain.matches("changed  less power: audit_mine::audit_noisy  NOT REFUTED -> NO POWER *")
    asked = stored.dpaudit("compare", f"before/{name}", f"after/{name}", "--fail-on-less-power")
    assert asked.code == 1
    asked.matches("WORSE    less power: audit_mine::audit_noisy  NOT REFUTED -> NO POWER *")


@pytest.mark.slow
def test_what_is_gone_is_worse_unless_it_may_be_missing(stored):
    gone = AUDIT[: AUDIT.index("def audit_coin")] + LEDGER.replace("p.one", "p.two")
    run(stored, "after", audit=gone, ledger="")
    done = stored.dpaudit("compare", "before", "after")
    assert done.code == 1
    done.matches(
        "WORSE    gone: audit_mine::audit_coin  * -> none  it is not there",
        "WORSE    gone: p.one  HOLDS -> none  it is not there",
    )
    tolerant = stored.dpaudit("compare", "before", "after", "--allow-missing")
    assert tolerant.code == 0, tolerant.out
    assert "changed  gone: p.one" in tolerant.out


@pytest.mark.slow
def test_a_skipped_audit_is_gone_with_the_reason(stored):
    skips = AUDIT.replace("auditor.check(Coin()", "import pytest; pytest.skip('no coin'); f(0")
    run(stored, "after", audit=skips)
    done = stored.dpaudit("compare", "before", "after")
    assert done.code == 1
    assert "it was skipped: no coin" in done.out


@pytest.mark.slow
def test_a_verdict_of_the_ledger_that_changed_is_worse(stored):
    attack = "ledger.sweep(x=[1.0, 2.0], mutant=None)(lambda x: (x, 0.0))"
    broken = LEDGER.replace('ledger.argue("by sight")', attack)
    broken = broken.replace('"p.one"', '"p.one", expected="refuted"')
    run(stored, "after", ledger=broken)
    done = stored.dpaudit("compare", "before", "after")
    assert done.code == 1
    assert "WORSE    statement changed: p.one  HOLDS -> REFUTED" in done.out


def test_files_of_single_results_and_results_json(stored):
    (stored.path / "halved").rename(stored.path / "after")
    name = "audits/audit_mine.audit_noisy.json"
    for old, new in (
        (f"before/{name}", f"after/{name}"),
        (f"before/{name}", "after"),
        ("before", f"after/{name}"),
    ):
        done = stored.dpaudit("compare", old, new)
        assert done.code == 1
        assert "1 worse, 0 other changes, 0 epsilons moved, 0 the same" in done.out
    whole = stored.dpaudit("compare", "before/results.json", "after/results.json")
    assert whole.out == stored.dpaudit("compare", "before", "after").out
    other = "before/statements/p.one.json"
    unlike = stored.dpaudit("compare", f"before/{name}", other)
    assert unlike.code == 4
    assert "OLD and NEW must hold the same audit or statement" in unlike.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["compare", "before"], "Missing argument 'NEW'"),
        (["compare", "before", "nowhere"], "cannot read nowhere"),
        (["compare", "before", "audits"], "cannot read audits/results.json"),
        (["compare", "before", "before", "--false-alarm", "2"], "No such option"),
        (["compare", "before", "before", "--markdown", "audits"], "is a directory"),
    ],
)
def test_wrong_usage_is_exit_4(stored, args, words):
    done = stored.dpaudit(*args)
    assert done.code == 4, done.out + done.err
    assert words in done.err
    assert "Traceback" not in done.err


def _changed(home):
    path = home.path / "before" / "audits" / "audit_mine.audit_noisy.json"
    path.write_text(path.read_text().replace('"not_refuted"', '"refuted"'))


def _cut(home):
    path = home.path / "before" / "statements" / "p.one.json"
    path.write_text(path.read_text()[:100])


def _missing(home):
    (home.path / "before" / "audits" / "audit_mine.audit_coin.json").unlink()


def _of_another_run(home):
    name = "audits/audit_mine.audit_noisy"
    for ending in (".json", ".npz"):
        file = home.path / "halved" / f"{name}{ending}"
        (home.path / "before" / f"{name}{ending}").write_bytes(file.read_bytes())


def _of_another_audit(home):
    folder = home.path / "before" / "audits"
    for ending in (".json", ".npz"):
        file = folder / f"audit_mine.audit_noisy{ending}"
        (folder / f"audit_mine.audit_coin{ending}").write_bytes(file.read_bytes())


def _edited_summary(home):
    row = home.json("before/results.json")["audits"][0]
    home.reseal("before/results.json", audits=[{**row, "certified_epsilon": 0.0}])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_changed, "does not match its checksum"),
        (_cut, "is damaged or cut off"),
        (_missing, "cannot read before/audits/audit_mine.audit_coin.json"),
        (_of_another_run, "does not match results.json next to it"),
        (_of_another_audit, "does not match results.json next to it"),
        (_edited_summary, "does not match results.json next to it"),
    ],
)
def test_what_cannot_be_trusted_is_reported_and_left_where_it_is(stored, damage, words):
    shutil.copytree(stored.path / "before", stored.path / "after")
    damage(stored)
    files = sorted(str(file) for file in stored.path.rglob("*.*"))
    for args in (("before", "after"), ("after", "before")):
        done = stored.dpaudit("compare", *args)
        assert done.code == 4, done.out
        assert words in done.err
        assert "worse" not in done.out
    assert sorted(str(file) for file in stored.path.rglob("*.*")) == files


def test_lost_datasets_are_told_and_their_epsilon_is_not_compared(stored):
    (stored.path / "halved").rename(stored.path / "after")
    (stored.path / "before" / "audits" / "audit_mine.audit_noisy.npz").unlink()
    done = stored.dpaudit("compare", "before", "after")
    assert "audit_mine::audit_noisy  not comparable: " in done.out
    assert "the pairs differ, or were not stored" in done.out
    single = "audits/audit_mine.audit_noisy.json"
    alone = stored.dpaudit("compare", f"before/{single}", f"after/{single}")
    assert alone.code == 4
    assert "are lost" in alone.err
