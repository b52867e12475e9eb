"""Tests that lines of text are short and use the words of the page."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import NeighborPair, PureDP, Settings, Verdict, audit
from dpaudit.report.audits import AUDITS
from dpaudit.results import Expectation
from dpaudit.results.result import AuditResult
from dpaudit.run.display import RunDisplay

PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))


def noisy_sum(data, size, *, rng, scale=1.0):
    return data.sum() + rng.laplace(scale=scale, size=size)


loud = functools.partial(noisy_sum, scale=0.2)
check = functools.partial(audit, claim=PureDP(1.0), pairs=PAIR, draws=2000, seed=1, id="some")


@pytest.fixture(scope="module")
def stopped() -> AuditResult:
    return check(loud, method="sequential")


def line_of(result: AuditResult) -> str:
    display, printed = RunDisplay(), []
    display._print = printed.append
    display._print_result(result)
    display._file.close()
    return printed[0]


def test_sequential_audit_says_what_it_spent(stopped):
    spent = sum(stopped.draws.values())
    assert f"  {spent:,} of 2,000 draws  " in line_of(stopped)
    lines = AUDITS.finding(stopped, verbose=True).splitlines()
    assert (
        f"  stopped             the claim is refuted, after {spent:,} of 2,000 draws per dataset"
        in lines
    )
    assert any(line.startswith("  reproduce           ") for line in lines)


def test_other_audits_say_no_more_than_before():
    result = check(loud)
    assert "draws" not in line_of(result)
    assert "stopped" not in AUDITS.finding(result, verbose=True)


def test_an_audit_that_passed_is_told_in_full_if_it_knows_a_next_step():
    result = check(noisy_sum, claim=PureDP(2.0), settings=Settings(progress=False))
    passed = replace(result, verdict=Verdict.NOT_REFUTED, expected=Expectation.NOT_REFUTED)
    for advice, is_shown in (("", False), ("Use about 9,000 draws.", True)):
        assert AUDITS.is_shown(replace(passed, advice=advice)) is is_shown
    assert (AUDITS.summary([replace(passed, advice="")])) is None


@pytest.mark.slow
def test_mutants_are_counted_in_a_line_and_told_one_by_one_in_a_finding():
    result = check(noisy_sum, mutants=[loud])
    assert "  mutants 3 of 3 killed, 1 of 1 of the code  " in line_of(result)
    words = "  mutants             given 1 of 1, noise 2 of 2, sensitivity 1 of 1 killed"
    assert words in AUDITS.finding(result).splitlines()
    lines = AUDITS.finding(result, verbose=True).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("  every mutant"))
    every = lines[first : first + 4]
    assert [line.split("  ")[-1] for line in every] == [mutant.name for mutant in result.mutants]
    assert all(line[22:].startswith("killed: epsilon >") for line in every)


@pytest.mark.parametrize("mechanism", [loud, noisy_sum])
def test_without_mutants_none_are_counted(mechanism):
    result = check(mechanism, mutants=None)
    assert "  mutants " not in line_of(result) + AUDITS.finding(result)


def test_claim_refuted_by_a_hair_is_exceeded_and_not_repeated(stopped):
    barely = replace(stopped, epsilon=replace(stopped.epsilon, lower=1.00000129))
    assert "epsilon > 1 of 1 claimed" in line_of(barely)
