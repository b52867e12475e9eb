"""Tests of the words and the plain data of results, and of the round trip through JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit import AuditResult, NeighborPair, PureDP, Verdict, audit
from dpaudit.results.estimates import (
    Estimate,
    Histogram,
    MarginPoint,
    NoiseMargin,
    Profile,
    Witness,
)
from dpaudit.results.mutants import MutantResult, MutantStatus
from dpaudit.results.result import Diagnostics
from dpaudit.results.verdicts import Expectation
from dpaudit.results.words import at_least, beyond, claimed_below
from dpaudit.stats.joint import Counts
from tests.records import changed

COUNTS = Counts(90, 100, 10, 100)
WITNESS = Witness("output > 1.5", "left", COUNTS, 0.8, 0.2)
NOISE = "line 3 of noisy.py (laplace, scale 1)"
KILLED, SURVIVED = MutantStatus.KILLED, MutantStatus.SURVIVED
MUTANTS = (
    MutantResult("half", MutantStatus.KILLED, 1.9, 4e-6, 1400, "pair", "output > 1.5"),
    MutantResult(
        f"{NOISE} removed", KILLED, math.inf, 2e-6, 512, "pair", "output = 0", NOISE, True
    ),
    MutantResult(
        f"{NOISE} halved in the last call", SURVIVED, 0.1, 2e-6, 700, "pair", "", NOISE, False,
        "last",
    ),
    MutantResult(
        f"{NOISE} not refreshed", MutantStatus.SURVIVED, 0.0, 0.0, 0, "", "", NOISE, False, "all",
        "weaker than one that survived",
    ),
    MutantResult("broken", MutantStatus.NOT_RUN, 0.0, 2e-6, 64, note="it raised KeyError: 'x'"),
)  # fmt: skip

CLAIM = {
    "notion": "pure_dp",
    "epsilon": 1.0,
    "delta": 0.0,
    "relation": "replace_user",
    "source": "Lemma 1",
    "words": "1-DP",
    "parameters": {"epsilon": 1.0, "alpha": [2.0, 8.0]},
}


def _result(**changes: Any) -> AuditResult:
    estimate = Estimate(2.2, 1.4, math.inf, 1e-5, "Clopper-Pearson", COUNTS, True)
    result = AuditResult(
        id="audit_x::audit_laplace",
        mechanism="laplace(scale=0.5)",
        claim=CLAIM,
        pair_words="custom: replace_user, 2x1",
        verdict=Verdict.REFUTED,
        reason="because",
        epsilon=estimate,
        delta=Estimate(0.3, 0.1 + 0.2, 1.0, 1e-5, "Clopper-Pearson", COUNTS, True),
        profile=Profile((0.0, 1.0), (0.5, 0.1), (0.6, 1 / 3), (0.4, 0.0)),
        witness=WITNESS,
        failure_prob=1e-5,
        p_value=1e-9,
        draws={"explore": 30, "certify": 70},
        mutants=MUTANTS,
        expected=Expectation.REFUTED,
        seed=2**63,
        seconds=1.5,
        diagnostics=Diagnostics(
            Histogram("output", ("a", "b"), (0.0, 0.5, 1.0), (90, 10), (10, 90), (True, False)),
            {"numpy": "2"},
            0.5,
        ),
        origin={"path": "audits/audit_x.py", "fingerprint": "f"},
    )
    return changed(result, **changes)


def _trip(result: AuditResult) -> AuditResult:
    return AuditResult.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False)))


TRIPS: dict[str, dict[str, Any]] = {
    "plain": {},
    "no mutants": {"mutants": (), "expected": None, "origin": {}},
    "infinite": {"epsilon": Estimate(math.inf, math.inf, math.inf, 0.0, "pmf", None, True)},
    "infinite mutant": {"mutants": (MutantResult("t", MutantStatus.KILLED, math.inf, 0.0, 0),)},
    "infinite claim": {"claim": {**CLAIM, "epsilon": math.inf}},
    "infinite profile": {"profile": Profile((0.0, math.inf), (0.5, 0.1), (0.6, 0.1), (0.4, 0.0))},
    "infinite edge": {
        "histogram": Histogram("x", ("a", "b"), (0.0, 1.0, math.inf), (1, 2), (3, 4), (True, False))
    },
    "lower infinity": {
        "histogram": Histogram("x", ("a", "b"), (-math.inf, 0.0, 1.0), (1, 2), (3, 4), (True, True))
    },
    "no edges": {"histogram": Histogram("x", (), None, (), (), ())},
    "a guess": {
        "histogram": Histogram("x", ("a", "b"), None, (1, 2), (3, 4), (True, False), (False, True))
    },
    "no counts": {"witness": Witness("x", "right", None, 1.0, 0.0)},
    "unicode": {"id": 'prüfung::δ≥ε 漢字 \u2028 🙈 "quoted" \\ \n', "reason": "\x00\x1f"},
    "the word inf": {"id": "inf", "mechanism": "inf", "pair_words": "inf", "reason": "inf"},
    "inf as a source": {"claim": {**CLAIM, "source": "inf"}},
    "inf as a mutant": {
        "mutants": (MutantResult("inf", MutantStatus.KILLED, 1.0, 0.0, 9, "inf", "inf", "inf"),)
    },
    "only what was not run": {"mutants": MUTANTS[-1:]},
    "tiny": {"failure_prob": 5e-324, "seconds": 1e-17},
    "huge parameter": {"claim": {**CLAIM, "parameters": {"mu": [math.inf]}}},
}


@pytest.mark.parametrize("name", TRIPS)
def test_the_trip_through_json_is_exact(name: str) -> None:
    result = _result(**TRIPS[name])
    assert _trip(result) == result
    for field in fields(result):  # types are compared too, because 1 == 1.0 == True
        assert repr(getattr(_trip(result), field.name)) == repr(getattr(result, field.name))


def test_files_without_the_second_region_of_a_picture_are_still_read() -> None:
    stored = json.loads(json.dumps(_result().to_json(), allow_nan=False))
    assert stored["diagnostics"]["histogram"].pop("inside_right") == []
    assert AuditResult.from_json(stored) == _result()
    del stored["diagnostics"]["histogram"]["inside"]
    with pytest.raises(ValueError, match="histogram: Histogram lacks or does not know inside"):
        AuditResult.from_json(stored)


def test_a_real_result_makes_the_trip_without_its_live_event() -> None:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data.sum() + rng.laplace(size=size)

    pair = NeighborPair([[0.0], [1.0]], [[0.0], [0.0]])
    result = audit(mechanism, PureDP(1.0), pair, draws=2000, seed=np.int64(3), mutants=[mechanism])
    assert _trip(result) == result
    assert result.event is not None
    assert _trip(result).event is None
    json.dumps(result.row(), allow_nan=False)
    assert {mutant.is_given for mutant in result.mutants} == {True, False}


def test_mutants_of_every_fate_make_the_trip() -> None:
    assert {mutant.status for mutant in MUTANTS} == set(MutantStatus)
    back = _trip(_result()).mutants
    assert back == MUTANTS
    assert [type(mutant.status) for mutant in back] == [MutantStatus] * len(MUTANTS)
    stored = _result().to_json()["mutants"]
    assert [mutant["status"] for mutant in stored] == [
        "killed", "killed", "survived", "survived", "not run"
    ]  # fmt: skip


def test_nothing_that_is_stored_is_nan() -> None:
    bad = Estimate(math.nan, 0.0, 1.0, 0.1, "x", None, False)
    with pytest.raises(ValueError, match="NaN"):
        _result(epsilon=bad).to_json()


def _without(key: str) -> Callable[[dict[str, Any]], Any]:
    return lambda data: {k: v for k, v in data.items() if k != key}


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no schema": _without("schema"),
    "other schema": lambda d: {**d, "schema": 999},
    "schema before there were many mutants": lambda d: {**d, "schema": 4},
    "schema in words": lambda d: {**d, "schema": "1"},
    **{f"no {f}": _without(f) for f in ("id", "claim", "epsilon", "witness", "draws", "mutants")},
    "more": lambda d: {**d, "mismatch": 1},
    "no draws to certify": lambda d: {**d, "draws": {"explore": 30}},
    "draws for something else": lambda d: {**d, "draws": {**d["draws"], "search": 1}},
    "a smallest pair without draws": lambda d: {
        **d,
        "smallest": {
            **{name: d[name] for name in ("pair_words", "epsilon", "delta", "witness")},
            "histogram": d["diagnostics"]["histogram"], "draws": {}, "tried": 1,
        },
    },
    "unknown verdict": lambda d: {**d, "verdict": "passed"},
    "claim is a list": lambda d: {**d, "claim": []},
    "profile is a list": lambda d: {**d, "profile": []},
    "profile without claim": lambda d: {**d, "profile": {"epsilon": [0.0]}},
    "impossible counts": lambda d: {
        **d, "epsilon": {**d["epsilon"], "counts": {**d["epsilon"]["counts"], "hits_left": 101}}
    },
    "counts are floats": lambda d: {
        **d, "epsilon": {**d["epsilon"], "counts": {**d["epsilon"]["counts"], "hits_left": 1.5}}
    },
    "witness is a word": lambda d: {**d, "witness": "output > 1"},
    "mutants are a word": lambda d: {**d, "mutants": "laplace"},
    "mutants are words": lambda d: {**d, "mutants": ["laplace"]},
    "mutants are one": lambda d: {**d, "mutants": d["mutants"][0]},
    "a mutant with another status": lambda d: {
        **d, "mutants": [{**d["mutants"][0], "status": "refuted"}]
    },
    "a mutant with a verdict": lambda d: {
        **d, "mutants": [{**d["mutants"][0], "verdict": "refuted"}]
    },
    "a mutant without a status": lambda d: {
        **d, "mutants": [_without("status")(d["mutants"][0])]
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_data_are_refused_as_values(name: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        AuditResult.from_json(DAMAGE[name](_result().to_json()))


def test_names_tell_claimed_certified_and_estimated_apart() -> None:
    result = _result()
    assert (result.claimed_epsilon, result.claimed_delta) == (1.0, 0.0)
    assert (result.certified_epsilon, result.certified_delta) == (1.4, 0.1 + 0.2)
    assert result.estimated_epsilon == 2.2
    row = result.row()
    assert row["certified_epsilon"] == 1.4
    assert row["mutation_score"] == 0.5
    assert row["mutants"][0] == {"name": "half", "status": "killed", "certified_epsilon": 1.9}
    told = [(mutant["name"], mutant["status"]) for mutant in row["mutants"]]
    assert told == [(mutant.name, mutant.status.value) for mutant in MUTANTS]
    json.dumps(row, allow_nan=False)
    none = _result(mutants=()).row()
    assert (none["mutation_score"], none["mutants"]) == (None, [])


def test_the_score_is_of_the_mutants_that_could_be_run() -> None:
    assert _result().mutation_score == 0.5
    assert _result(mutants=MUTANTS[:2]).mutation_score == 1.0
    assert _result(mutants=MUTANTS[2:4]).mutation_score == 0.0
    assert _result(mutants=MUTANTS[4:]).mutation_score is None
    assert _result(mutants=()).mutation_score is None


def test_the_whole_failure_probability_is_that_of_mechanism_mutants_and_margin() -> None:
    assert _result().total_failure_prob == math.fsum([1e-5, 4e-6, 2e-6, 2e-6, 0.0, 2e-6])
    assert _result(mutants=()).total_failure_prob == 1e-5
    margin = NoiseMargin((MarginPoint(0.9, 1.1, True), MarginPoint(0.5, 0.4, False)), "pair", 1e-6)
    assert _result(mutants=MUTANTS[:1], noise_margin=margin).total_failure_prob == pytest.approx(
        1.6e-5
    )


def test_what_was_refused_at_an_earlier_schema_says_so() -> None:
    with pytest.raises(ValueError, match="schema must be 7 for this version of dpaudit, got 4"):
        AuditResult.from_json({**_result().to_json(), "schema": 4})


def test_the_summary_says_it_all() -> None:
    text = str(_result())
    for words in (
        "REFUTED  audit_x::audit_laplace  (laplace(scale=0.5))\n",
        "The claim is 1-DP (Lemma 1), but the mechanism needs at least epsilon = 1.4 (certified "
        "lower bound, wrong with probability at most 1e-05).",
    ):
        assert words in text
    assert len(text.splitlines()) <= 12
    assert "outputs with" not in text
    evidence = _result().summary(verbose=True)
    assert "outputs with output > 1.5: 90 of 100 draws on the left, 10 of 100" in evidence
    assert "estimated epsilon   2.2 (no guarantee)" in evidence
    assert "because" in evidence


def test_the_summary_has_a_line_for_each_mutant() -> None:
    silent = replace(_result(), verdict=Verdict.NOT_REFUTED)
    assert "  mutants             2 of 4 killed (1 more not run)" in str(silent).splitlines()
    lines = silent.summary(verbose=True).splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("  every mutant"))
    assert [line[22:] for line in lines[first : first + 5]] == [
        "killed: epsilon >= 1.9, 1,400 draws  half",
        f"killed: epsilon >= inf, 512 draws  {NOISE} removed",
        f"survived: epsilon >= 0.1, 700 draws  {NOISE} halved in the last call",
        f"survived: weaker than one that survived  {NOISE} not refreshed",
        "not run: it raised KeyError: 'x'  broken",
    ]
    assert "every mutant" not in _result(mutants=()).summary(verbose=True)


@pytest.mark.parametrize(
    ("bound", "claimed", "words"),
    [
        (1.4321987, 1.0, ">= 1.43"),
        (0.99999, 1.0, ">= 0.999"),
        (1.0, 1.0, ">= 1"),
        (1.000001001, 1.0, "> 1"),
        (1.0 + 2**-52, 1.0, "> 1"),
        (1.5000015, 1.5, "> 1.5"),
        (math.log(3) * (1 + 1e-6), math.log(3), "> 1.098613"),
        (1e-9, 0.0, ">= 1e-09"),
        (math.inf, 1.0, ">= inf"),
    ],
)
def test_a_bound_is_worded_beside_the_claim(bound: float, claimed: float, words: str) -> None:
    assert beyond(bound, claimed) == words
    sign, _, number = words.partition(" ")
    assert float(number) < bound if sign == ">" else float(number) <= bound


@given(st.floats(1e-12, 1e12), st.integers(1, 10**9))
def test_a_claim_below_a_bound_lies_between_the_two(claimed: float, units: int) -> None:
    bound = claimed + units * math.ulp(claimed)
    found = claimed_below(bound, claimed)
    if found is None:  # three digits of the bound are enough
        assert claimed < float(at_least(bound)) <= bound
    else:
        assert claimed <= float(found) < bound


def test_a_claim_refuted_by_a_hair_is_exceeded_in_words() -> None:
    barely = replace(_result(), epsilon=replace(_result().epsilon, lower=1.000001001))
    assert "the mechanism needs more than epsilon = 1 (certified" in str(barely)


def test_verdicts_have_words_and_none_of_them_is_passed() -> None:
    assert [v.words for v in Verdict] == ["REFUTED", "NOT REFUTED", "NO POWER"]
    assert str(Verdict.NO_POWER) == "no_power"


def test_the_runner_adds_origin_and_expectation_only() -> None:
    result = _result(origin={}, expected=None)
    known = result.with_origin({"path": "x"}, Expectation.REFUTED)
    assert (known.origin, known.expected) == ({"path": "x"}, Expectation.REFUTED)
    assert replace(known, origin={}, expected=None) == result


# --- a result has no truth value ---


@pytest.mark.parametrize("verdict", list(Verdict))
def test_a_result_cannot_be_asserted_by_mistake(verdict):
    result = replace(_result(), verdict=verdict)
    with pytest.raises(TypeError, match="no truth value.*assert_not_refuted"):
        assert result


def test_what_a_test_calls_instead():
    replace(_result(), verdict=Verdict.NOT_REFUTED).assert_not_refuted()
    replace(_result(), verdict=Verdict.NO_POWER).assert_not_refuted(power=False)
    with pytest.raises(AssertionError, match="NO POWER  "):
        replace(_result(), verdict=Verdict.NO_POWER).assert_not_refuted()
    for power in (True, False):
        with pytest.raises(AssertionError, match="REFUTED  "):
            replace(_result(), verdict=Verdict.REFUTED).assert_not_refuted(power=power)


@pytest.mark.parametrize("word", ["REFUTED", "refuted", " Refuted "])
def test_verdicts_are_read_however_they_are_spelt(word):
    assert Verdict(word) is Verdict.REFUTED


def test_verdicts_are_texts_with_one_spelling_for_equality_and_hash():
    for word in ("refuted", "REFUTED", "banana", ""):
        same = word == Verdict.REFUTED
        assert same is (word == "refuted")
        assert same is (len({word, Verdict.REFUTED}) == 1)
    with pytest.raises(ValueError, match="not a valid Verdict"):
        Verdict("banana")


@pytest.mark.parametrize("other", [*Expectation, None, 3], ids=str)
def test_verdicts_compare_with_other_vocabularies_the_same_from_both_sides(other):
    for verdict in Verdict:
        same = str(other) == str(verdict)
        assert (verdict == other) is (other == verdict) is same
        assert (verdict != other) is (other != verdict) is not same


def test_a_certified_number_equal_to_the_claim_is_shown_in_few_digits_unless_it_refutes() -> None:
    claim = {**_result().claim, "epsilon": 18.163445759078474}
    tight = replace(_result().epsilon, lower=18.16344575907848)
    refuted = replace(_result(), claim=claim, epsilon=tight)
    assert refuted.certified_text() == "> 18.163445759078474"
    kept = replace(refuted, verdict=Verdict.NOT_REFUTED)
    assert kept.certified_text() == ">= 18.1"
    assert "at least epsilon = 18.1 (" in kept.sentence()


def test_the_first_line_names_the_mechanism_unless_the_id_ends_with_it() -> None:
    for name, id, first in (
        ("mean", "mean", "mean"),
        ("mean", "mine.py:mean", "mine.py:mean"),
        ("mean", "audit_x::audit_mean", "audit_x::audit_mean  (mean)"),
        ("f", "few draws of f2", "few draws of f2  (f)"),
    ):
        line = str(replace(_result(), mechanism=name, id=id)).splitlines()[0]
        assert line == f"REFUTED  {first}"
