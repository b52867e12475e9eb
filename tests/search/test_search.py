"""Tests of the search for the worst pair.

The tests cover spaces and schedules, and that the search finds pairs without hints.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit import (
    ArgumentError,
    MechanismError,
    NeighborPair,
    PairError,
    PureDP,
    RecipeError,
    Relation,
    neighbors,
)
from dpaudit.events import Goal
from dpaudit.mechanisms.protocols import generator
from dpaudit.mechanisms.sampler import Sampler
from dpaudit.neighbors import clusters, edge, outlier, query_values, which_batch, which_user
from dpaudit.neighbors.recipes import pairs_from_words
from dpaudit.neighbors.spaces import (
    Choice,
    Integer,
    Interval,
    SearchSpace,
    design_points,
)
from dpaudit.search import halving
from dpaudit.search.halving import CHECK_DRAWS, CHECKS, LEAST_BUDGET, SIGNS, SearchResult, search

Array = NDArray[Any]
Generator = np.random.Generator

USERS = 27
THRESHOLD = 0.3712
EPSILON = 1.0


def noisy_mean(data: Array, size: int, *, rng: Generator) -> Array:
    """Release the mean of values clipped to [0, 1].

    The claim EPSILON is tight for this mechanism.
    """
    scale = 1 / (len(data) * EPSILON)
    return np.clip(data, 0, 1).mean() + rng.laplace(scale=scale, size=size)


def thresholded_mean(data: Array, size: int, *, rng: Generator) -> Array:
    """Add an offset if the mean is large.

    The mechanism is private except for pairs around THRESHOLD. One user moves the mean by at most
    1/27. The other users must therefore lie in a window of 1/26 = 3.8% of their range. In this
    window, epsilon is 1 + 0.08 * 27 = 3.2.
    """
    offset = 0.08 if np.clip(data, 0, 1).mean() > THRESHOLD else 0.0
    return offset + noisy_mean(data, size, rng=rng)


def straddles(pair: NeighborPair) -> bool:
    return bool((pair.left.mean() > THRESHOLD) != (pair.right.mean() > THRESHOLD))


def goal(certify: int = 10_000) -> Goal:
    claim = PureDP(EPSILON)
    grid = np.linspace(0.0, 2 * EPSILON, 25)
    claimed = np.array([claim.delta(float(epsilon)) for epsilon in grid])
    return Goal(0.0, grid, claimed, certify, 9e-6, 1e-7)


def run(
    space: SearchSpace,
    mechanism: Callable[..., Array] = noisy_mean,
    *,
    budget: int = LEAST_BUDGET,
    seed: int = 1,
) -> SearchResult:
    sampler = Sampler(mechanism, seed=seed, labels=("test", "mechanism"))
    rng = generator(seed, "test", "mechanism", "search")
    return search(space, sampler, budget, goal(), rng=rng)


# --- ranges -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Interval(1.0, 1.0), ArgumentError, "low must be below high = 1.0, got 1.0"),
        (lambda: Interval(2.0, 1.0), ArgumentError, "low must be below high"),
        (lambda: Interval(0.0, 1.0, log=True), ArgumentError, "low must be > 0 .*, got 0.0"),
        (lambda: Interval(0.0, math.inf), ArgumentError, "high must be a finite number"),
        (lambda: Interval("a", 1.0), TypeError, "low must be a finite number"),  # type: ignore
        (lambda: Integer(3, 3), ArgumentError, "low must be below high = 3, got 3"),
        (lambda: Integer(0, 1.5), TypeError, "high must be a whole number, got 1.5"),  # type: ignore
        (lambda: Integer(False, 3), TypeError, "low must be a whole number"),
        (
            lambda: Choice(()),
            ArgumentError,
            "values must be a sequence of values with at least one entry",
        ),
        (lambda: Choice("abc"), TypeError, "values must be a sequence"),  # type: ignore
    ],
)
def test_ranges_refuse_what_they_cannot_hold(
    make: Callable[[], Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        make()


def test_ranges_map_the_unit_interval_onto_their_values() -> None:
    assert [Interval(-2.0, 4.0).at(u) for u in (0.0, 0.5, 1.0)] == [-2.0, 1.0, 4.0]
    log = Interval(0.1, 10.0, log=True)
    assert [log.at(u) for u in (0.0, 0.5, 1.0)] == pytest.approx([0.1, 1.0, 10.0])
    assert [Integer(1, 4).at(u) for u in (0.0, 0.3, 0.6, 0.8, 1.0)] == [1, 2, 3, 4, 4]
    assert [Choice(("a", "b")).at(u) for u in (0.0, 0.49, 0.5, 1.0)] == ["a", "a", "b", "b"]


@given(st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_intervals_are_ordered_and_stay_inside(u: float, v: float, log: bool) -> None:
    interval = Interval(0.003, 7.0, log)
    low, high = interval.at(min(u, v)), interval.at(max(u, v))
    assert 0.003 <= low <= high + 1e-12
    assert high <= 7.0


@given(st.integers(-5, 5), st.integers(1, 40))
def test_whole_numbers_have_cells_of_one_width(low: int, width: int) -> None:
    whole = Integer(low, low + width)
    cells = [whole.at((i + 0.5) / whole.steps) for i in range(whole.steps)]
    assert cells == list(range(low, low + width + 1))


# --- spaces -----------------------------------------------------------------------------------


def far(*, distance: float, n_users: int = 5) -> NeighborPair:
    return neighbors.far_user(n_users=n_users, high=distance)


@pytest.mark.parametrize(
    ("build", "parameters", "error", "words"),
    [
        (far, {}, ArgumentError, "parameters of far must hold at least one range"),
        (far, {"distanc": Interval(1, 2)}, ArgumentError, "distance, n_users.*(distanc|missing)"),
        (
            far,
            {"n_users": Integer(2, 9)},
            ArgumentError,
            "missing a required (keyword-only )?argument: 'distance'",
        ),
        (far, {"distance": (1, 2)}, TypeError, "distance must be an Interval, Integer or Choice"),
        (far, {"rng": Interval(1, 2)}, ArgumentError, "must not contain rng"),
        ("far", {"distance": Interval(1, 2)}, TypeError, "build must be a function"),
    ],
)
def test_spaces_refuse_parameters_that_build_cannot_take(
    build: Any, parameters: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        SearchSpace(build, parameters)


def test_a_space_is_named_after_its_recipe() -> None:
    build = functools.partial(neighbors.far_user, n_users=5)
    ranges = {"high": Interval(1, 2)}
    assert SearchSpace(build, ranges).name == "far_user(n_users=5)"
    assert SearchSpace(build, ranges, name="mine").name == "mine"


def test_every_build_is_handed_a_generator_in_the_same_state() -> None:
    def crowd(*, value: float, rng: Generator) -> NeighborPair:
        others = rng.random((4, 1))
        return NeighborPair(np.vstack([others, [[value]]]), np.vstack([others, [[-1.0]]]))

    seen: list[Array] = []

    def spy(data: Array, size: int, *, rng: Generator) -> Array:
        seen.append(data[:4].copy())
        return noisy_mean(data, size, rng=rng)

    run(SearchSpace(crowd, {"value": Interval(0, 1)}), spy)
    after_the_example = seen[10:]
    assert all(np.array_equal(after_the_example[0], data) for data in after_the_example)


def test_the_example_is_the_centre_or_the_first_valid_pair() -> None:
    space = SearchSpace(far, {"distance": Interval(1, 3)})
    assert space.example(rng=np.random.default_rng(1)).recipe == "far_user(low=0, high=2)"
    mostly_bad = SearchSpace(far, {"distance": Interval(-9, 1)})
    assert mostly_bad.example(rng=np.random.default_rng(1)).left.max() > 0


def test_errors_of_build_other_than_its_refusals_name_the_parameters() -> None:
    def broken(*, size: float) -> NeighborPair:
        raise KeyError("oops")

    words = r"^broken raised KeyError: 'oops' \(at test_search.py:\d+, built with size=2\)$"
    with pytest.raises(RecipeError, match=words) as caught:
        run(SearchSpace(broken, {"size": Interval(1, 3)}))
    assert isinstance(caught.value.__cause__, KeyError)

    def leaves(*, size: float) -> NeighborPair:
        raise SystemExit(3)

    with pytest.raises(RecipeError, match="leaves raised SystemExit: 3"):
        run(SearchSpace(leaves, {"size": Interval(1, 3)}))


@pytest.mark.parametrize("ranges", [["a"], "a", None, 3, {"a"}, [("value", Interval(0, 1))]])
def test_ranges_are_a_dict(ranges: Any) -> None:
    with pytest.raises(TypeError, match="parameters must be a dict from names of arguments"):
        SearchSpace(far, ranges)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: SearchSpace(far, {"distance": Integer(1, 2)}, name=3), TypeError, "name must be"),
        (lambda: Interval(0, 1, "yes"), TypeError, "log must be True or False, got 'yes'"),
        (lambda: Choice(3), TypeError, "values must be a sequence of values, got 3"),
        (
            lambda: outlier(n_users=5, low=-1e308, high=1e308),
            ArgumentError,
            "high - low must be a finite",
        ),
        (lambda: query_values(3, relation="add"), TypeError, "relation must be a Relation"),
        (
            lambda: query_values(3, relation=Relation.REPLACE_USER),
            ArgumentError,
            "relation must be within_sensitivity, got replace_user",
        ),
    ],
)
def test_arguments_of_spaces_are_checked(make: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("recipe", "arguments"),
    [(outlier, {}), (clusters, {}), (edge, {}), (which_user, {}), (which_batch, {"batch_size": 2})],
)
@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"relation": "add"}, TypeError, "relation must be a Relation, such as .*, got 'add'"),
        (
            {"relation": Relation.WITHIN_SENSITIVITY},
            ArgumentError,
            "relation must be replace_user or",
        ),
        ({"low": math.nan}, ArgumentError, "low must be a finite number, got nan"),
        ({"low": "a"}, TypeError, "low must be a finite number, got 'a'"),
        ({"low": 2.0, "high": 1.0}, ArgumentError, "low must be below high"),
        ({"n_users": -1}, ArgumentError, "n_users must be an integer >= 2, got -1"),
        ({"n_users": 6.0}, TypeError, "n_users must be an integer >= 2, got 6.0"),
        ({"m": 0}, ArgumentError, "m must be an integer >= 1, got 0"),
        ({"dim": "x"}, TypeError, "dim must be an integer >= 1, got 'x'"),
    ],
)
def test_ready_made_spaces_check_their_arguments(
    recipe: Any, arguments: Any, wrong: Any, error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        recipe(**{"n_users": 6, **arguments, **wrong})


def test_a_build_that_returns_no_pair_is_refused() -> None:
    space = SearchSpace(neighbors.value_patterns, {"dim": Integer(2, 5)})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must return a NeighborPair, got PairFamily"):
        run(space)


@pytest.mark.parametrize("count", [2, 8, 64])
@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_designs_space_every_coordinate_equally(count: int, dimension: int) -> None:
    points = design_points(dimension, count, rng=np.random.default_rng(4))
    gaps = np.diff(np.sort(points, axis=0), axis=0)
    assert points.shape == (count, dimension)
    np.testing.assert_allclose(gaps, 1 / count, atol=1e-12)


@pytest.mark.parametrize("relation", [Relation.REPLACE_USER, Relation.ADD_REMOVE_USER])
@pytest.mark.parametrize("dim", [None, 1, 3])
@pytest.mark.parametrize(
    "make",
    [
        outlier,
        clusters,
        which_user,
        functools.partial(which_batch, batch_size=4),
        edge,
        functools.partial(clusters, most=2),
    ],
)
def test_ready_made_spaces_give_pairs_within_the_domain(
    make: Callable[..., SearchSpace], dim: int | None, relation: Relation
) -> None:
    space = make(n_users=10, m=2, dim=dim, low=-3.0, high=-1.0, relation=relation)
    shape = (10, 2) if dim is None else (10, 2, dim)
    valid = 0
    for point in np.random.default_rng(7).random((50, len(space.ranges))):
        try:
            pair = space.pair(space.at(point), rng=np.random.default_rng(0))
        except PairError:  # the two sides are equal
            continue
        valid += 1
        assert pair.left.shape == shape
        assert pair.right.shape == (shape if relation == Relation.REPLACE_USER else (9, *shape[1:]))
        assert pair.relation == relation
        assert pair.user is not None
        for data in (pair.left, pair.right):
            assert data.min() >= -3
            assert data.max() <= -1
    assert valid >= 35


def test_which_user_and_which_batch_put_the_user_where_they_say() -> None:
    rng = np.random.default_rng(0)
    assert which_user(n_users=9).pair({"user": 4, "others": 0.5}, rng=rng).user == 4
    batches = which_batch(n_users=10, batch_size=4)
    assert batches.parameters["batch"] == Integer(0, 2)
    places = {"batch": 2, "place": "last", "mates": 0.25, "others": 0.75}
    pair = batches.pair(places, rng=rng)
    assert pair.user == 9
    assert pair.right[:, 0].tolist() == [0.75] * 8 + [0.25, 0.0]


@pytest.mark.slow
def test_query_values_search_all_patterns() -> None:
    space = query_values(4, relation=Relation.WITHIN_SENSITIVITY)
    outcome = run(space, lambda data, size, *, rng: data + rng.laplace(size=(size, 4)), budget=900)
    assert {t.parameters["pattern"] for t in outcome.record.trials} >= {"all_above", "crossing"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: outlier(n_users=1), "n_users must be an integer >= 2"),
        (lambda: edge(n_users=5, low=1.0, high=0.0), "low must be below high"),
        (lambda: which_batch(n_users=5, batch_size=5), "batch_size must be below n_users = 5"),
        (lambda: clusters(n_users=5, most=5), "most must be below n_users = 5"),
        (
            lambda: edge(n_users=5, relation=Relation.WITHIN_SENSITIVITY),
            "relation must be replace_user or",
        ),
    ],
)
def test_ready_made_spaces_refuse_bad_sizes(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


# --- spaces from words ------------------------------------------------------------------------


def from_words(text: str) -> Any:
    return pairs_from_words(text, rng=np.random.default_rng(0))


def test_words_give_ranges_choices_and_fixed_arguments() -> None:
    space = from_words(
        "two_clusters:n_users=20..40,m=1|3,high=log:0.1..10,relation=add_remove_user"
    )
    assert space.parameters == {
        "n_users": Integer(20, 40),
        "m": Choice((1, 3)),
        "high": Interval(0.1, 10.0, log=True),
    }
    pair = space.example(rng=np.random.default_rng(1))
    assert pair.relation == Relation.ADD_REMOVE_USER
    assert space.name.startswith("two_clusters:n_users")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("1..10", Integer(1, 10)),
        ("1.0..10", Interval(1.0, 10.0)),
        ("-3..-1", Integer(-3, -1)),
        ("1e-3..1", Interval(1e-3, 1.0)),
        ("log:1..10", Interval(1.0, 10.0, log=True)),
        ("0.5|2", Choice((0.5, 2))),
    ],
)
def test_ranges_in_words(words: str, expected: Any) -> None:
    space = from_words(f"far_user:n_users=5,high={words}")
    assert space.parameters == {"high": expected}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nobody:n=1..2", "pair must begin with a recipe .*far_user"),
        ("far_user:n_users=5,high=", "takes name=value.* got 'high='"),
        (
            "far_user:n_users=5,speed=1..2",
            "takes name=value, where name is one of n_users, m, dim.*got 'speed=1..2'",
        ),
        ("far_user:high=1..2", "also needs n_users"),
        ("far_user:n_users=5,high=2..1", "high=2..1: low must be below high"),
        ("far_user:n_users=5,high=log:0..1", "low must be > 0"),
        ("far_user:n_users=5,high=a..b", "high must be a range lo..hi of numbers"),
        ("far_user:n_users=5,high=1..", "high must be a range"),
        ("far_user:n_users=5,n_users=1..2", "n_users must be given only once"),
        ("value_patterns:dim=2..5", "Search value_pattern with pattern=a|b|c"),
    ],
)
def test_words_that_make_no_space_are_refused(words: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message.replace("|", r"\|")):
        from_words(words)


# --- an early end -------------------------------------------------------------------------------


def ending(answers: Callable[[int, Array, float], bool]) -> tuple[SearchResult, list[int]]:
    """Return a search whose draws are conclusive by answers(number of the call, draws, level)."""
    asked: list[int] = []

    def conclusive(pair: Any, event: Any, left: Array, right: Array, failure_prob: float) -> bool:
        asked.append(len(left))
        return answers(len(asked), left, failure_prob)

    sampler = Sampler(thresholded_mean, seed=1, labels=("test", "mechanism"))
    rng = generator(1, "test", "mechanism", "search")
    space = edge_space()
    found = search(space, sampler, 10 * LEAST_BUDGET, goal(), conclusive=conclusive, rng=rng)
    return found, asked


def edge_space() -> SearchSpace:
    return SearchSpace(
        lambda share: NeighborPair(
            np.r_[np.ones(1), np.full(USERS - 1, share)][:, None],
            np.r_[np.zeros(1), np.full(USERS - 1, share)][:, None],
        ),
        {"share": Interval(0.0, 1.0)},
    )


def test_a_search_ends_at_the_first_pair_that_fresh_draws_confirm() -> None:
    seen: list[Array] = []

    def confirmed(call: int, left: Array, failure_prob: float) -> bool:
        seen.append(left)
        return call > 2  # the third candidate, on its own draws and on fresh draws

    found, asked = ending(confirmed)
    first = asked[0]
    assert found.is_early
    assert asked == [first, first, first, max(CHECK_DRAWS, first)]
    assert found.record.draws_spent == sum(asked)
    assert not np.isin(seen[3], seen[2]).any()  # the draws of the check are fresh
    assert sum(trial.stage == "final" for trial in found.record.trials) == 1
    assert len(found.drawn[0]) == asked[2] + asked[3]


def test_signs_that_fresh_draws_do_not_confirm_do_not_end_a_search() -> None:
    checks: list[int] = []

    def only_signs(call: int, left: Array, failure_prob: float) -> bool:
        checks.extend([call] * (failure_prob < SIGNS))
        return failure_prob == SIGNS

    found, asked = ending(only_signs)
    assert not found.is_early
    assert found.record.draws_spent == 10 * LEAST_BUDGET
    assert 1 <= len(checks) <= CHECKS
    assert len(asked) > 2 * len(checks)


@pytest.mark.slow
def test_a_candidate_whose_check_fails_is_drawn_on_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mechanism answers on few users, but fails there when it is asked again for a check."""
    asked: list[int] = []

    def conclusive(pair: Any, event: Any, left: Array, right: Array, failure_prob: float) -> bool:
        is_small = len(pair.left) <= 4 and failure_prob == SIGNS
        asked.extend([1] * is_small)
        return is_small

    def fails(data: Array, size: int, *, rng: Generator) -> Array:
        if asked and len(data) <= 4:
            asked.clear()
            raise ValueError("no answer on few users")
        seen = data.sum() if len(data) <= 4 else 0.0
        return seen + rng.laplace(scale=0.05, size=size)

    failed: set[int] = set()
    sample = halving._Search._sample

    def watched(self: Any, candidate: Any, draws: int, stage: str) -> bool:
        assert candidate.index not in failed
        answered = sample(self, candidate, draws, stage)
        failed.update([] if answered else [candidate.index])
        return answered

    monkeypatch.setattr(halving._Search, "_sample", watched)
    sampler = Sampler(fails, seed=0, labels=("test", "mechanism"))
    where = neighbors.portfolio(low=0.0, high=1.0).under(Relation.REPLACE_USER)
    rng = generator(0, "test", "mechanism", "search")
    found = search(where, sampler, 60 * LEAST_BUDGET, goal(), conclusive=conclusive, rng=rng)
    assert failed
    assert not found.is_early


def test_no_pair_of_few_users_is_moved_to_other_places() -> None:
    def constant(data: Array, size: int, *, rng: Generator) -> Array:
        if len(data) < 3:
            raise ValueError("too few users")
        return np.zeros(size)

    where = neighbors.portfolio(low=0.0, high=1.0, m=1).under(Relation.REPLACE_USER)
    sampler = Sampler(constant, seed=0, labels=("test", "mechanism"))
    rng = generator(0, "test", "mechanism", "search")
    assert search(where, sampler, 1000, goal(), rng=rng).pair in where.pairs


def test_if_the_last_pairs_of_few_users_fail_another_pair_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    last: list[bool] = []
    judge = halving._Search._judge

    def watched(self: Any, finalists: Any, draws: int) -> Any:
        last.extend([True] * (len(finalists) == halving.LAST))
        return judge(self, finalists, draws)

    def fails(data: Array, size: int, *, rng: Generator) -> Array:
        if len(data) < 3 and last:
            raise ValueError("too few users")
        seen = data.sum() if len(data) < 3 else 0.0  # so that pairs of few users lead
        return seen + rng.laplace(scale=0.1, size=size)

    few = tuple(NeighborPair(np.array([0.0, 1.0]), np.array([0.0, x])) for x in (2.0, 3.0))
    more = tuple(NeighborPair(np.array([0.0, 1, 1]), np.array([0.0, 1, x])) for x in (2.0, 3.0))
    where = neighbors.Portfolio("tiny", few + more, small=few)
    monkeypatch.setattr(halving._Search, "_judge", watched)
    sampler = Sampler(fails, seed=0, labels=("test", "mechanism"))
    rng = generator(0, "test", "mechanism", "search")
    found = search(where, sampler, 2000, goal(), rng=rng)
    assert last
    assert found.pair in more


@pytest.mark.parametrize("answers", [12, 30])
def test_a_search_of_few_users_without_an_answer_says_so(answers: int) -> None:
    """The mechanism fails on all pairs in the design, or in a round of the finalists."""
    left = [answers]

    def fails(data: Array, size: int, *, rng: Generator) -> Array:
        if not left[0]:
            raise ValueError("too few users")
        left[0] -= 1
        return data.sum() + rng.laplace(size=size)

    pairs = tuple(NeighborPair(np.array([0.0, 1.0]), np.array([0.0, x])) for x in (2.0, 3.0, 4.0))
    sampler = Sampler(fails, seed=0, labels=("test", "mechanism"))
    rng = generator(0, "test", "mechanism", "search")
    with pytest.raises(MechanismError, match=r"failed on [23]\. On custom, .*too few users"):
        search(neighbors.Portfolio("tiny", pairs, small=pairs), sampler, 2000, goal(), rng=rng)
