"""Tests of the results of mutants.

The tests cover the score, the words, and undetected changes of the noise.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from dpaudit.results.mutants import (
    MutantResult,
    MutantStatus,
    mutation_score,
    score_words,
    surviving_code,
    undetected,
    undetected_halvings,
    undetected_words,
)

NOISE, COIN, SAMPLE = "line 3 of f.py (laplace)", "line 5 of f.py (random)", "line 7 of f.py"
KILLED, SURVIVED, NOT_RUN = MutantStatus.KILLED, MutantStatus.SURVIVED, MutantStatus.NOT_RUN


def mutant(
    status: MutantStatus, name: str = "half", epsilon: float = 2.0, **changes
) -> MutantResult:
    """Return a given mutant."""
    return replace(MutantResult(name, status, epsilon, 1e-6, 700), **changes)


def gone(status: MutantStatus, noise: str = NOISE, calls: str = "all", **changes) -> MutantResult:
    """Return a mutant without one of the noises."""
    return mutant(
        status, f"{noise} gone", noise=noise, certain=True, calls=calls, change="removed", **changes
    )


def less(status: MutantStatus, noise: str = NOISE, calls: str = "all") -> MutantResult:
    """Return a mutant with less of one of the noises."""
    return replace(
        gone(status, noise, calls), name=f"{noise} halved", certain=False, change="halved"
    )


# --- the score ---


@pytest.mark.parametrize(
    ("mutant_runs", "score", "words"),
    [
        ([], (0, 0), "0 of 0 killed"),
        ([KILLED], (1, 1), "1 of 1 killed"),
        ([SURVIVED], (0, 1), "0 of 1 killed"),
        ([KILLED, SURVIVED, KILLED], (2, 3), "2 of 3 killed"),
        ([KILLED, NOT_RUN, SURVIVED, NOT_RUN], (1, 2), "1 of 2 killed (2 more not run)"),
        ([NOT_RUN], (0, 0), "0 of 0 killed (1 more not run)"),
    ],
)
def test_what_was_not_run_does_not_count(mutant_runs, score, words):
    mutants = [mutant(status) for status in mutant_runs]
    assert mutation_score(mutants) == score
    assert score_words(mutants) == words


def test_a_mutant_was_given_unless_it_changes_a_noise():
    assert mutant(KILLED).is_given
    assert not gone(KILLED).is_given
    assert [mutant(status).killed for status in MutantStatus] == [True, False, False]


# --- in words ---


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (mutant(KILLED), "killed: epsilon >= 2, 700 draws"),
        (mutant(KILLED, draws=12_345), "killed: epsilon >= 2, 12,345 draws"),
        (mutant(KILLED, epsilon=1.0000004), "killed: epsilon > 1, 700 draws"),
        (mutant(KILLED, epsilon=math.inf, draws=0), "killed: epsilon >= inf, computed"),
        (mutant(SURVIVED, epsilon=0.99999), "survived: epsilon >= 0.999, 700 draws"),
        (mutant(SURVIVED, epsilon=0.0), "survived: epsilon >= 0, 700 draws"),
        (
            mutant(SURVIVED, epsilon=0.0, draws=0, note="weaker than one that survived"),
            "survived: weaker than one that survived",
        ),
        (mutant(NOT_RUN, epsilon=0.0, note="it raised KeyError"), "not run: it raised KeyError"),
        (mutant(NOT_RUN, epsilon=0.3, note="never reached"), "not run: never reached"),
    ],
)
def test_words_tell_the_fate_and_what_is_behind_it(result, words):
    assert result.words(claimed_epsilon=1.0) == words


# --- undetected changes ---


def test_a_noise_whose_removal_survives_is_not_noticed():
    assert list(undetected([gone(SURVIVED)])) == [NOISE]
    assert list(undetected([gone(KILLED)])) == []
    assert list(undetected([gone(KILLED), gone(SURVIVED, COIN)])) == [COIN]
    assert list(undetected([])) == []


@pytest.mark.parametrize("mutant_runs", list(itertools.permutations(MutantStatus, 2)))
def test_a_selection_is_noticed_at_either_end(mutant_runs):
    """Check that a change of a selection counts as detected if the mutant of either end is killed.

    Only one end may violate the claim, because nothing leaks if nobody is sampled.
    """
    both = [gone(status, SAMPLE) for status in mutant_runs]
    assert list(undetected(both)) == ([] if KILLED in mutant_runs else [SAMPLE])


def test_of_a_selection_neither_end_of_which_is_noticed_there_is_one_line():
    assert list(undetected([gone(SURVIVED, SAMPLE), gone(SURVIVED, SAMPLE)])) == [SAMPLE]


def test_what_could_not_be_run_tells_nothing():
    assert list(undetected([gone(NOT_RUN), gone(NOT_RUN, COIN, "last")])) == []


def test_less_noise_that_survives_is_no_noise_that_can_be_removed():
    assert list(undetected([gone(KILLED), less(SURVIVED), less(SURVIVED, calls="last")])) == []


def test_less_noise_that_is_killed_does_not_show_that_its_removal_is_noticed():
    assert list(undetected([gone(SURVIVED), less(KILLED)])) == [NOISE]


def test_mutants_that_were_given_change_no_noise():
    assert list(undetected([mutant(SURVIVED)])) == []
    assert list(undetected([mutant(KILLED), gone(SURVIVED)])) == [NOISE]


def test_a_single_call_is_named_where_all_of_them_together_are_noticed():
    assert list(
        undetected([gone(KILLED), gone(KILLED, calls="first"), gone(SURVIVED, calls="last")])
    ) == [f"the last call of {NOISE}"]
    assert list(undetected([gone(SURVIVED), gone(SURVIVED, calls="first")])) == [NOISE]


@pytest.mark.parametrize("calls", ["first", "last"])
def test_a_single_call_of_a_selection_is_noticed_at_either_end_too(calls):
    whole = [gone(KILLED, SAMPLE), gone(SURVIVED, SAMPLE)]
    ends = [gone(SURVIVED, SAMPLE, calls), gone(KILLED, SAMPLE, calls)]
    assert list(undetected([*whole, *ends])) == []
    assert list(undetected([*whole, *ends[:1]])) == [f"the {calls} call of {SAMPLE}"]


def test_another_call_that_is_noticed_excuses_none():
    other = {"first": "last", "last": "first"}
    for calls in other:
        mutants = [gone(KILLED), gone(KILLED, calls=calls), gone(SURVIVED, calls=other[calls])]
        assert list(undetected(mutants)) == [f"the {other[calls]} call of {NOISE}"]


def test_whole_noises_come_before_single_calls():
    mutants = [gone(SURVIVED, NOISE, "first"), gone(KILLED), gone(SURVIVED, COIN)]
    assert list(undetected(mutants)) == [COIN, f"the first call of {NOISE}"]


# --- half of the noise ---


def test_half_of_a_noise_is_missed_where_only_its_removal_is_noticed():
    assert undetected_halvings([gone(KILLED), less(SURVIVED)]) == {NOISE: 700}
    assert undetected_halvings([gone(KILLED), less(KILLED)]) == {}
    assert undetected_halvings([gone(KILLED), less(NOT_RUN)]) == {}
    assert undetected_halvings([mutant(SURVIVED, "half")]) == {}


def test_of_a_noise_whose_removal_survives_half_is_not_said_too():
    assert undetected_halvings([gone(SURVIVED), less(SURVIVED)]) == {}


def test_half_of_one_call_is_not_said():
    assert undetected_halvings([gone(KILLED), less(SURVIVED, calls="first")]) == {}


def test_the_gravest_is_said_first_and_three_at_most():
    halves = [m for noise in "abc" for m in (gone(KILLED, noise), less(SURVIVED, noise))]
    assert undetected_words(halves) == [f"{noise} halved, in 700 draws" for noise in "abc"]
    found = undetected_words([*halves, gone(SURVIVED, COIN, draws=0)])
    assert found == [
        f"{COIN} removed",
        "a halved, in 700 draws",
        "b halved, in 700 draws",
        "and 1 other",
    ]
    calls = [gone(SURVIVED, "a", calls="first"), gone(SURVIVED, "b", calls="last")]
    whole = ["a halved, in 700 draws", "b halved, in 700 draws"]
    assert undetected_words([*halves, *calls])[:2] == whole
    assert undetected_words([gone(KILLED), less(KILLED)]) == []


def test_a_random_order_beside_other_noise_may_be_harmless():
    order = "the noise of line 9 of f.py (permutation)"
    ends = [gone(SURVIVED, order), gone(SURVIVED, order)]
    assert list(undetected(ends)) == [order]
    assert surviving_code(ends) == []
    assert list(undetected([gone(KILLED), *ends])) == []
    assert surviving_code([gone(KILLED), *ends]) == ["random order on line 9 of f.py"]
    assert surviving_code([gone(KILLED), gone(KILLED, order), ends[0]]) == []
