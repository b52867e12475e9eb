"""``dpaudit plan --one-run``."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from dpaudit.run.cli import cli


def said(*words):
    return CliRunner().invoke(cli, ["plan", "--epsilon", "1", *words])


def test_a_plan_of_one_run_says_how_many_canaries_show_what():
    found = said("--one-run", "--mu", "2", "--canaries", "200", "--failure-prob", "0.05")
    assert found.exit_code == 0, found.output
    assert "canaries in one run refute the claim 1-DP with probability 0.9" in found.output
    assert "Gaussian scores 2 standard deviations apart" in found.output
    assert "\n       200  " in found.output


def test_a_plan_of_one_run_takes_a_true_epsilon_and_a_side():
    words = ("--one-run", "--delta", "1e-5", "--true-epsilon", "4", "--canaries", "100")
    both, top = (
        said(*words, "--failure-prob", "0.05", "--power", "0.2", "--side", side)
        for side in ("both", "top")
    )
    assert "0.9249 standard deviations" in both.output
    assert both.output != top.output


def test_a_plan_of_a_random_half_asks_for_more_canaries():
    words = ("--one-run", "--mu", "2", "--canaries", "200", "--failure-prob", "0.05")
    needed = [int(said(*words, *more).output.split()[0]) for more in ((), ("--coins", "half"))]
    assert needed[0] < needed[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--one-run"], "give --true-epsilon or --mu"),
        (["--one-run", "--mu", "1", "--true-epsilon", "2"], "one of the two"),
        (["--one-run", "--mu", "1", "--rates", ".5", ".1"], "--rates are of draws"),
        (["--mu", "1"], "--mu, --canaries, --side and --coins go with --one-run"),
        (["--true-epsilon", "2", "--canaries", "9"], "go with --one-run"),
        (["--true-epsilon", "2", "--coins", "half"], "--coins go with --one-run"),
        ([], "Missing option '--true-epsilon'"),
        (["--rho", "0.1", "--true-epsilon", "2"], "--claimed-mu and --rho go with --one-run"),
        (["--one-run", "--mu", "2", "--rho", "0.1"], "the claim is one of --epsilon"),
        (["--one-run", "--true-epsilon", ".5"], "true_epsilon must be a number > 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(words, message):
    found = said(*words)
    assert found.exit_code != 0
    assert message in found.output + str(found.exception)


def asked(*words):
    return CliRunner().invoke(cli, ["plan", *words])


@pytest.mark.parametrize(
    ("words", "claim"),
    [
        (["--claimed-mu", "1"], "1-GDP"),
        pytest.param(["--rho", "0.1"], "0.1-zCDP", marks=pytest.mark.slow),
    ],
)
def test_a_plan_of_one_run_takes_claims_that_are_curves(words, claim):
    more = ["--one-run", "--mu", "2.5", "--canaries", "100", "--failure-prob", "0.05"]
    found = asked(*words, *more)
    assert found.exit_code == 0, found.output
    assert f"canaries in one run refute the claim {claim}" in found.output
    with_delta = asked(*words, "--delta", "1e-5", *more).output
    assert ("--delta goes with" if "mu" in words[0] else "1e-05-approximate") in with_delta


def test_a_plan_of_draws_needs_an_epsilon():
    assert "Missing option '--epsilon'" in asked("--true-epsilon", "2").output
    assert "the claim is one of" in asked("--one-run", "--mu", "2").output
    assert asked("--epsilon", "1", "--true-epsilon", "3").exit_code == 0
