"""Tests of `dpaudit audit` without a pair.

The tests cover claims, descriptions of the data, conflicts and replay.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

MODULE = """
import numpy as np

def mean(data, size, *, rng):
    users = data.reshape(len(data), -1).mean(axis=1).clip(-1, 1)
    return users.mean() + rng.laplace(scale=2 / len(data), size=size)

def per_item(data, size, *, rng):
    return data.clip(-1, 1).mean() + rng.laplace(scale=2 / data.size, size=size)

def categories(data, size, *, rng):
    counts = np.bincount(data[:, 0], minlength=3)[:3]  # whole numbers >= 0 only
    return counts + rng.laplace(scale=0.5, size=(size, 3))

def words(data, size, *, rng):
    return (data == "bus").any(axis=1).sum() + rng.laplace(scale=0.2, size=size)

def gauss(data, size, *, rng):
    users = data.mean(axis=1).clip(-1, 1)
    return users.mean() + rng.normal(scale=2 / len(data), size=size)

def population(data, size, *, rng):
    return len(data) + rng.laplace(scale=0.2, size=size)

def shape(data, size, *, rng):
    assert data.shape[1:] == (3, 2), data.shape
    return mean(data, size, rng=rng)
"""

DRAWS = ("--draws", "4000")
FEW = ("--draws", "1500")
HERE = ("--pair", "far_user:n_users=5")


@pytest.fixture
def home(home):
    return home.write(mine=MODULE)


def stored_in(home, name="found"):
    (stored,) = (home.path / name / "audits").glob("*.json")
    return str(stored.relative_to(home.path))


@pytest.mark.slow
def test_without_a_pair_the_portfolio_is_searched(home):
    caught = home.dpaudit("audit", "mine:per_item", "--epsilon", "1", *DRAWS, "--verbose")
    assert caught.code == 1
    assert caught.out.startswith("REFUTED  mine:per_item")
    where = (
        r"  search              portfolio\(n_users=20, m=8\) and removals: \d+ pairs and 7 spaces, "
    )
    assert re.search(where + r"\d+ pairs tried with 1,000 draws", caught.out)
    honest = home.dpaudit("audit", "mine:mean", "--epsilon", "1", *DRAWS)
    assert honest.code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["mine:gauss", "--mu", "1", *HERE], "The claim is mu = 1 (Gaussian DP)"),
        (["mine:gauss", "--rho", "0.5", *HERE], "The claim is rho = 0.5 (zero-concentrated DP)"),
        (
            ["mine:gauss", "--rho", "0.5", "--delta", "0.1", *HERE],
            "The claim is rho = 0.5, delta = 0.1 (approximate zCDP)",
        ),
        (["mine:gauss", "--epsilon", "1", "--delta", "0.5", *HERE], "epsilon = 1, delta = 0.5"),
        (["mine:shape", "--epsilon", "1", "--m", "3", "--dim", "2"], "(n_users=20, m=3, dim=2)"),
        (["mine:mean", "--epsilon", "1", "--users", "9", "--m", "1"], "shape 9x1"),
        (["mine:mean", "--epsilon", "1", "--range", "0", "2.5"], "low=0, high=2.5) and removals: "),
        (["mine:mean", "--epsilon", "1", "--pair", "outlier:n_users=9"], "outlier(n_users=9): "),
        (["mine:mean", "--epsilon", "1", "--pair", "clusters:n_users=9"], "clusters(n_users=9): "),
        (["mine:mean", "--epsilon", "1", "--pair", "portfolio:m=4"], "(n_users=20, m=4) and rem"),
        (["mine:mean", "--epsilon", "1", "--pair", "far_user:n_users=5"], "(low=0, high=100)"),
    ],
)  # fmt: skip
def test_options_say_what_is_claimed_and_where_to_look(home, args, words):
    result = home.dpaudit("audit", *args, *FEW, "-v")
    assert result.code == 0, result.err
    assert words in result.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ["mine:gauss", "--mu", "0.2"],
        ["mine:gauss", "--rho", "0.01"],
        ["mine:categories", "--epsilon", "1", "--range", "0", "4"],
        ["mine:population", "--epsilon", "1", "--relation", "add_remove_user"],
    ],
)
def test_violations_are_found_by_each_of_them(home, args):
    result = home.dpaudit("audit", *args, *DRAWS)
    assert result.code == 1, result.err
    assert result.out.startswith("REFUTED")


@pytest.mark.slow
def test_data_of_a_file_are_looked_around(home):
    np.save(home.path / "data.npy", np.random.default_rng(0).integers(0, 3, (12, 2)))
    result = home.dpaudit(
        "audit", "mine:categories", "--epsilon", "1", "--like", "data.npy", *DRAWS, "-v"
    )
    assert result.code == 1
    assert "portfolio(like=12x2) and removals: " in result.out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--mu", "1", "--rho", "1"], "--mu and --rho must be given, got --mu and --rho"),
        (["--epsilon", "1", "--mu", "1"], "got --epsilon and --mu"),
        (["--mu", "1", "--delta", "0.1"], "--delta must not be given with --mu"),
        (["--mu", "-1"], "mu must be"),
        (["--epsilon", "1", "--pair", "portfolio", "--like", "x.npy"], "--pair and --like must"),
        (["--epsilon", "1", "--pair", "edge:n_users=5", "--m", "3"], "--pair and --m must not"),
        (["--epsilon", "1", "--like", "x.npy", "--users", "3"], "--users must"),
        (["--epsilon", "1", "--range", "1", "0"], "LOW must be below HIGH, got 1 0"),
        (["--epsilon", "1", "--range", "0", "much"], "could not convert string to float: 'much'"),
        (["--epsilon", "1", "--range", "0", "inf"], "high must be a finite number"),
        (["--epsilon", "1", "--m", "0"], "m must be an integer >= 1, got 0"),
        (["--epsilon", "1", "--relation", "neighbours"], "replace_user"),
        (["--epsilon", "1", "--like", "absent.npy"], "--like: cannot read absent.npy"),
        (["--epsilon", "1", "--like", "mine.npy"], "--like: cannot read mine.npy"),
        (["--epsilon", "1", "--draws", "300"], "Name a pair, which needs fewer"),
        (
            ["--epsilon", "1", "--relation", "add_remove_user", "--pair", "far_user:n_users=5"],
            "pair must have the claim's relation, add_remove_user, got replace_user",
        ),
        (["--epsilon", "1", "--pair", "outlyer:n_users=3"], "Did you mean outlier?"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_wrong_usage(home, args, words):
    (home.path / "mine.npy").write_text("no array")
    result = home.dpaudit("audit", "mine:mean", *args)
    assert result.code == 4, result.out + result.err
    assert words in result.err.replace("\n", " ")
    assert "Traceback" not in result.err


def test_a_mechanism_for_other_data_is_told_what_to_say(home):
    result = home.dpaudit("audit", "mine:categories", "--epsilon", "1", *DRAWS)
    assert result.code == 1
    assert "(--like, --range, --m, --dim, --users)" in result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "args",
    [
        ["--epsilon", "1"],
        ["--mu", "0.3", "--m", "3", "--range", "0", "1"],
        ["--epsilon", "1", "--delta", "0.01", "--relation", "add_remove_user", "--users", "7"],
        ["--rho", "0.1", "--like", "data.npy"],
        ["--epsilon", "1", "--pair", "outlier:n_users=9,m=2"],
    ],
)
def test_replays_make_the_same_audit(home, args):
    np.save(home.path / "data.npy", np.random.default_rng(0).normal(size=(6, 2)))
    home.dpaudit("audit", "mine:per_item", *args, *FEW, "--out", "found", "--seed", "3")
    again = home.dpaudit("replay", stored_in(home))
    assert again.code == 0, again.out + again.err
    assert again.out.splitlines()[-1] == "the same"


def test_data_are_read_and_never_evaluated(home):
    made = "(__import__('pathlib').Path('made').write_text('x'), np.eye(5))[1]"
    refused = home.dpaudit("audit", "mine:mean", "--epsilon", "1", "--like", made, *FEW)
    assert refused.code == 4
    assert "--like: cannot read" in refused.err
    assert not (home.path / "made").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "claim",
    [
        ["--mu", "0.2"],
        ["--rho", "0.01"],
        ["--rho", "0.01", "--delta", "1e-6"],
        ["--epsilon", "0.1"],
    ],
)
def test_what_was_refuted_becomes_a_test_with_its_claim(home, claim):
    pair = ("--pair", "far_user:n_users=5,low=-1,high=1", "--draws", "2000")
    home.dpaudit("audit", "mine:gauss", *claim, *pair, "--out", "found")
    assert home.dpaudit("replay", stored_in(home), "--export-test", "test_gauss.py").code == 0
    found = home.pytest("test_gauss.py", "-q")
    assert found.code == 1
    assert "AssertionError" in found.out


# --- values of one client ---

LOCAL = """
import numpy as np

def response(value, size, *, rng):
    lies = np.array(["yes", "no", "unsure"])[rng.integers(3, size=size)]
    return np.where(rng.random(size) < 0.7, value, lies)

def number(value, size, *, rng):
    return np.sum(value) + rng.laplace(scale=1.0, size=size)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "values", "pairs"),
    [
        ("response", "yes,no,unsure", "3 pairs of 3 values"),
        ("response", '["yes", "no"]', "'yes' against 'no'"),
        ("number", "0..3", "6 pairs of 4 values"),
        ("number", "-1, 2", "-1 against 2"),
        ("number", "0.5,2.5", "0.5 against 2.5"),
        ("number", "[[0, 1], [3, 3]]", "(0, 1) against (3, 3)"),
    ],
)
def test_local_values_are_audited_stored_and_replayed(home, target, values, pairs):
    home.write(local=LOCAL)
    given = ("--epsilon", "1", "--local", values, *DRAWS, "--out", "found")
    caught = home.dpaudit("audit", f"local:{target}", *given)
    assert caught.code == 1
    assert pairs in caught.out
    assert "(local DP)" in caught.out
    assert "the same" in home.dpaudit("replay", stored_in(home)).out
    assert home.dpaudit("replay", stored_in(home), "--export-test", "test_it.py").code == 0
    assert "relation=Relation.LOCAL" in (home.path / "test_it.py").read_text()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--local", "0..3", *HERE), "--pair must not be given with --local"),
        (("--local", "0..3", "--users", "3"), "--users must not be given with --local"),
        (("--local", "0..3", "--relation", "replace_user"), "--relation must not be given"),
        (("--local", "3"), "domain must be a list of at least two values"),
        (("--local", ""), "domain must be a list of at least two values"),
        (("--local", "a,a"), "values must be different from each other"),
        (("--local", "[1,"), "--local must be a list in JSON"),
        (("--local", "0..99999999999"), "--local must list at most 10,000 values"),
        (("--local", "+-3,4"), "REFUTED"),
    ],
)
def test_wrong_local_values_are_refused(home, given, words):
    home.write(local=LOCAL.replace("np.sum(value)", "3.0 * (value == '4')"))
    caught = home.dpaudit("audit", "local:number", "--epsilon", "1", *given, *DRAWS)
    assert caught.code
    assert words in caught.out + caught.err
    assert "Traceback" not in caught.err
