"""Tests of audits that search for the worst pair.

The tests check the number of draws, the records, and the pairs that are found.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit import (
    ArgumentError,
    MechanismError,
    NeighborPair,
    PureDP,
    Relation,
    _json,
    audit,
    neighbors,
)
from dpaudit.engine import counts
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.driver import certificate_of
from dpaudit.engine.explore import explore
from dpaudit.engine.task import Run, Task
from dpaudit.events import Goal
from dpaudit.mechanisms.sampler import Sampler
from dpaudit.neighbors import Choice, Integer, Interval, SearchSpace, edge
from dpaudit.search import halving as running
from dpaudit.search.candidates import Candidate
from dpaudit.search.halving import LEAST_BUDGET, halving_cost, halvings, search
from dpaudit.search.record import SearchRecord, Trial, landscape, ranking
from tests.search.test_search import (
    EPSILON,
    USERS,
    Array,
    Generator,
    far,
    noisy_mean,
    run,
    straddles,
    thresholded_mean,
)
from tests.statistical import FALSE_ALARM

# --- accounting and records -------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(1, 8))
def test_halving_doubles_the_draws_of_those_that_stay(candidates: int, keep: int) -> None:
    rounds = list(halvings(candidates, keep))
    alive, looks = zip(*rounds, strict=True)
    assert alive[0] == candidates
    assert all(a // 2 == b for a, b in itertools.pairwise(alive))
    assert min(candidates, keep) <= alive[-1] < 2 * max(keep, 1)
    totals = np.cumsum(looks).tolist()
    assert totals == [2**i for i in range(len(rounds))]
    dropped = [a - b for a, b in zip(alive, [*alive[1:], 0], strict=True)]
    assert halving_cost(candidates, keep) == sum(
        d * total for d, total in zip(dropped, totals, strict=True)
    )


@pytest.mark.parametrize("budget", [LEAST_BUDGET, LEAST_BUDGET + 1, 999, 5003])
@pytest.mark.parametrize(
    "space",
    [
        edge(n_users=USERS),
        SearchSpace(far, {"distance": Interval(-1, 1)}),
        SearchSpace(far, {"distance": Choice((1.0, 2.0, 3.0))}),
    ],
    ids=["edge", "half of it invalid", "three pairs"],
)
def test_every_draw_of_the_budget_is_spent_and_accounted_for(
    space: SearchSpace, budget: int
) -> None:
    outcome = run(space, budget=budget)
    record = outcome.record
    assert record.draws_spent == budget
    assert sum(trial.draws for trial in record.trials) == budget
    best = ranking(record, 1)[0]
    assert [len(side) for side in outcome.drawn] == [best.draws, best.draws]
    assert best.stage == "final"
    assert {t.stage for t in record.trials} <= {"design", "local", "semifinal", "final"}


def test_a_budget_below_one_round_is_refused_with_the_least() -> None:
    with pytest.raises(ArgumentError, match=f"budget must be an integer >= {LEAST_BUDGET} draws"):
        run(edge(n_users=USERS), budget=LEAST_BUDGET - 1)


def test_all_of_a_small_space_is_tried_once() -> None:
    space = SearchSpace(far, {"distance": Choice((1.0, 2.0)), "n_users": Integer(3, 5)})
    trials = run(space).record.trials
    tried = sorted((t.parameters["distance"], t.parameters["n_users"]) for t in trials)
    assert tried == [(d, n) for d in (1.0, 2.0) for n in (3, 4, 5)]


def test_parameters_without_a_pair_are_on_record_and_skipped() -> None:
    record = run(SearchSpace(far, {"distance": Interval(-1, 1)})).record
    bad = [t for t in record.trials if t.parameters["distance"] <= 0]
    assert bad
    assert all(t.draws == 0 and t.note.startswith("no valid pair: low must") for t in bad)
    assert all(t.parameters["distance"] > 0 for t in ranking(record, 100))
    assert landscape(record, "distance")[0].min() > 0


def test_pairs_with_equal_sides_are_not_valid() -> None:
    space = SearchSpace(
        lambda value: NeighborPair([[value]], [[max(value, 0.5)]]), {"value": Interval(0, 1)}
    )
    record = run(space).record
    assert {t.note for t in record.trials} == {
        "",
        "no valid pair: the two sides of a pair must differ, got equal sides",
    }


def test_a_space_without_any_pair_names_the_first_reasons() -> None:
    space = SearchSpace(far, {"distance": Interval(-2, -1)})
    with pytest.raises(
        ArgumentError, match="give a valid pair.*distance=-1.5: low must be below high"
    ):
        run(space)


def test_pairs_of_two_relations_are_searched_together() -> None:
    both = Choice((Relation.REPLACE_USER, Relation.ADD_REMOVE_USER))
    build = functools.partial(neighbors.far_user, n_users=5)
    found = run(SearchSpace(build, {"relation": both}))
    assert len({trial.parameters["relation"] for trial in found.record.trials}) == 2


def test_the_same_seed_makes_the_same_trials() -> None:
    first, again, other = (run(edge(n_users=USERS), budget=1000, seed=seed) for seed in (3, 3, 4))
    assert first.record == again.record
    assert all(np.array_equal(a, b) for a, b in zip(first.drawn, again.drawn, strict=True))
    assert first.record != other.record


def test_no_two_looks_share_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, str]] = []
    draw = Sampler.draw

    def spy(self: Sampler, data: Array, draws: int, role: str, side: str) -> Array:
        drawn.append((role, side))
        return draw(self, data, draws, role, side)

    monkeypatch.setattr(Sampler, "draw", spy)
    run(edge(n_users=USERS), budget=1000)
    assert len(drawn) == len(set(drawn))
    assert all(role.startswith("search ") for role, _ in drawn)


def test_records_survive_strict_json() -> None:
    for space in (edge(n_users=USERS), SearchSpace(far, {"distance": Interval(-1, 1)})):
        record = run(space).record
        text = json.dumps(_json.encode(record), allow_nan=False)
        assert _json.decode(SearchRecord, json.loads(text)) == record


def test_parameters_that_json_lacks_are_recorded_in_words() -> None:
    build = functools.partial(neighbors.far_user, n_users=5)
    relation = Choice((Relation.REPLACE_USER,))
    space = SearchSpace(build, {"relation": relation, "high": Interval(1, 2)})
    assert run(space).record.trials[0].parameters["relation"] == "replace_user"


def test_rankings_put_finalists_first_and_landscapes_are_sorted() -> None:
    trials = (
        Trial({"x": 3.0}, 2.0, 32, "design"),
        Trial({"x": 1.0}, 0.0, 0, "design", "no valid pair: ..."),
        Trial({"x": 2.0}, 1.0, 64, "final"),
        Trial({"x": 0.0}, 1.0, 64, "final", separation=0.1),
    )
    record = SearchRecord("space", ("x",), trials, 160)
    assert [t.parameters["x"] for t in ranking(record)] == [0.0, 2.0, 3.0]
    assert len(ranking(record, 2)) == 2
    x, expected = landscape(record, "x")
    assert x.tolist() == [0.0, 2.0, 3.0]
    assert expected.tolist() == [1.0, 1.0, 2.0]
    with pytest.raises(ArgumentError, match="parameter must be one of x, got 'y'"):
        landscape(record, "y")


def test_a_mechanism_that_breaks_in_the_search_is_placed() -> None:
    def brittle(data: Array, size: int, *, rng: Generator) -> Array:
        if data.max() > 0.9:
            raise ValueError("too large")
        return noisy_mean(data, size, rng=rng)

    space = SearchSpace(far, {"distance": Interval(0.1, 1.0)})
    with pytest.raises(
        MechanismError, match="too large.*The search found this error at far, distance="
    ):
        run(space, brittle)


def test_outputs_may_change_shape_from_pair_to_pair() -> None:
    def per_user(data: Array, size: int, *, rng: Generator) -> Array:
        return data[:, 0] + rng.laplace(size=(size, len(data)))

    outcome = run(
        SearchSpace(far, {"distance": Interval(1, 5), "n_users": Integer(2, 6)}), per_user
    )
    assert outcome.drawn[0].shape[1] == len(outcome.pair.left)


def test_claims_that_are_curves_can_be_searched() -> None:
    sampler = Sampler(thresholded_mean, seed=5, labels=("test", "mechanism"))
    grid = np.linspace(0, 2, 9)
    curve = Goal(None, grid, np.maximum(0.05, 0.6 - 0.3 * grid), 10_000, 9e-6, 1e-7)
    outcome = search(edge(n_users=USERS), sampler, 3000, curve, rng=np.random.default_rng(5))
    assert ranking(outcome.record, 1)[0].expected_epsilon > 1
    assert straddles(outcome.pair)


# --- purpose --------------------------------------------------------------------------------------


def task_of(space: SearchSpace, draws: int, failure_prob: float, seed: int) -> Task:
    example = neighbors.family(space.example(rng=np.random.default_rng(0)))
    return Task(PureDP(EPSILON), example, draws, failure_prob, seed, "search", space=space)


DEFAULT_BUDGET = 15_000
"""The number of draws that an audit of the default 100,000 draws spends on a search."""


def found(seeds: int, budget: int = DEFAULT_BUDGET) -> int:
    """Count searches that end at a pair with one dataset on each side of the threshold."""
    return sum(
        straddles(run(edge(n_users=USERS), thresholded_mean, budget=budget, seed=seed).pair)
        for seed in range(seeds)
    )


@pytest.mark.slow
@pytest.mark.statistical
def test_the_window_is_found_by_those_who_were_not_told() -> None:
    """Check that a search finds the window without hints.

    Searches with 200 seeds all found such a pair, which shows a rate of at least 0.974 (level
    0.005). At this rate, fewer than 9 successes of 10 have a probability below 3%. The seeds are
    fixed.
    """
    assert found(10) >= 9


@pytest.mark.slow
@pytest.mark.statistical
def test_a_search_that_ignores_scores_does_not_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(candidate: Candidate, goal: Goal, rng: Generator) -> None:
        candidate.score = float(rng.random()), 0.0

    # About 4 of 100 blind searches find the window.
    monkeypatch.setattr(running, "_learn", blind)
    assert found(10) < 9


@pytest.mark.slow
def test_the_audit_refutes_on_the_pair_that_the_search_found() -> None:
    for seed in range(2):
        finding = certificate_of(
            task_of(edge(n_users=USERS), 30_000, 1e-5, seed), thresholded_mean, "mechanism"
        )
        assert straddles(finding.pair)
        assert finding.refuted
        assert finding.epsilon.lower > 2
        assert sum(finding.draws.values()) == 30_000


def test_the_search_of_an_audit_is_on_record_and_follows_the_seed() -> None:
    task = task_of(edge(n_users=USERS), 5000, 1e-5, 3)

    def explored() -> SearchRecord | None:
        sampler = Sampler(thresholded_mean, seed=3, labels=("search", "mechanism"))
        choice = explore(Run(task, thresholded_mean, "mechanism"), sampler, share=0.3)
        left, right = choice.draws
        assert choice.search is not None
        assert choice.explored == 1500
        assert len(left) == len(right) == 250 + ranking(choice.search, 1)[0].draws
        return choice.search

    assert explored() == explored()


@pytest.mark.slow
def test_default_recipes_do_not_find_it() -> None:
    grid = [
        neighbors.far_user(n_users=USERS, high=1.0),
        neighbors.clip_boundary_user(n_users=USERS),
        neighbors.far_user(n_users=USERS, low=0.0, high=1.0),
        neighbors.far_user(n_users=USERS, low=1.0, high=2.0),
        neighbors.two_clusters(n_users=USERS, high=1.0),
        neighbors.majority_flip(n_users=USERS),
        neighbors.threshold_decider(n_users=USERS, threshold=USERS // 2),
        neighbors.constant_against_random(n_users=USERS, m=1, rng=np.random.default_rng(1)),
    ]
    for seed in range(3):
        result = audit(
            thresholded_mean, PureDP(EPSILON), grid, draws=100_000, seed=seed, mutants=None
        )
        assert result.verdict.words != "REFUTED"
        assert result.certified_epsilon <= EPSILON


def test_too_few_draws_for_a_search_name_the_least() -> None:
    with pytest.raises(ArgumentError, match=r"draws must be an integer >= \d+ to search"):
        certificate_of(task_of(edge(n_users=USERS), 100, 1e-5, 1), noisy_mean, "mechanism")


def _lies(findings: list[Certificate]) -> int:
    """Count audits that certify more than the truth of the tight mechanism at some point."""

    def lies(finding: Certificate) -> bool:
        epsilons = np.array(finding.profile.epsilon)
        truth = 1 - np.exp(np.minimum(epsilons - EPSILON, 0) / 2)  # Laplace at distance EPSILON
        above = np.array(finding.profile.certified_delta) > truth + 1e-12
        return finding.epsilon.lower > EPSILON + 1e-12 or bool(above.any())

    return sum(lies(finding) for finding in findings)


def _audits(claim: PureDP, mechanism: Callable[..., Array], audits: int) -> list[Certificate]:
    """Return audits that search, each with its own seed and the least number of draws."""
    tasks = (
        replace(task_of(edge(n_users=USERS), 1500, 0.05, s), claim=claim) for s in range(audits)
    )
    return [certificate_of(task, mechanism, "mechanism") for task in tasks]


@pytest.mark.slow
@pytest.mark.statistical
def test_searching_does_not_make_audits_wrong() -> None:
    """Check that searching does not make audits wrong.

    The mechanism satisfies its claim with equality on many pairs of the space. The test fails at 21
    wrong audits of 120. An engine that is wrong in 30% of its audits fails with probability 0.999.
    """
    lies = _lies(_audits(PureDP(EPSILON), noisy_mean, 120))
    assert binom.sf(lies - 1, 120, 0.05) >= FALSE_ALARM


def blank(data: Array, size: int, *, rng: Generator) -> Array:
    """Return pure noise, in which some pair looks significant by chance."""
    return rng.normal(size=(size, 12))


@pytest.mark.slow
@pytest.mark.statistical
def test_an_engine_that_certifies_on_what_the_search_saw_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Check that an engine that certifies on the draws of the search fails the test.

    The test fails at 8 wrong audits of 14, and the mutant is wrong in all 14 audits.
    """
    fresh = Sampler._chunks

    def reused(
        self: Sampler, data: Array, draws: int, role: str, side: str, step: int, function: Any
    ) -> Iterator[Any]:
        seen = self.__dict__.setdefault("seen", {})
        if role == "certify":
            outputs = np.resize(seen[side], (draws, 12))
            starts = range(0, draws, max(draws // 8, 1))
            return (function(outputs[start : start + starts.step], start) for start in starts)
        found = list(fresh(self, data, draws, role, side, step, function))
        if draws:
            seen[side] = np.concatenate(found)
        return iter(found)

    monkeypatch.setattr(Sampler, "_chunks", reused)
    monkeypatch.setattr(counts.IndependenceCheck, "judge", lambda self: None)
    found = _audits(PureDP(EPSILON), blank, 14)
    lies = sum(f.epsilon.lower > 0 or any(f.profile.certified_delta) for f in found)
    assert binom.sf(lies - 1, 14, 0.05) < FALSE_ALARM


def test_candidates_add_up_their_looks() -> None:
    pair = neighbors.far_user(n_users=3)
    looks = [(np.zeros(3), np.ones(3)), (np.zeros(2), np.ones(2))]
    candidate = Candidate(0, 0, np.zeros(1), {}, lambda: pair, "design", "", looks)
    assert candidate.draws == 5
    assert [side.sum() for side in candidate.drawn()] == [0, 5]


def test_outputs_that_are_too_wide_for_a_search_are_refused_with_advice() -> None:
    def wide(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.zeros((size, 60_000)) + rng.normal(size=(size, 1))

    with pytest.raises(
        ArgumentError, match="outputs of 60,000 numbers are too wide .* pass score="
    ):
        audit(wide, PureDP(1.0), draws=5000, mutants=None, seed=1)
