"""Mutants of code: which mistakes are found, and that each mutant is exactly this mistake."""

import collections
import cProfile
import functools
import linecache
import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pandas as pd
import pytest

from dpaudit import AdditiveNoise, NeighborPair, Outcomes, one_draw
from dpaudit.claims import within_sensitivity
from dpaudit.errors import ArgumentError
from dpaudit.mutants import KINDS, of_code
from dpaudit.mutants.edits import NO_CHANGE

LEFT = np.array([[0.25, 0.5, 0.75], [3.0, -2.0, 2.0]])
RIGHT = np.array([[0.25, 0.5, 0.75], [-3.0, -4.0, 2.0]])
PAIR = NeighborPair(LEFT, RIGHT)
BUDGET = 8.0


def changes(mechanism, pair=PAIR):
    """Return the mutants of a mechanism by kind and change, without the place."""
    made = of_code(mechanism, [pair], seed=0)
    assert not made.unseen
    return {m.name.rpartition(", line ")[0]: m for m in made.mutants}


def drawn(mechanism, data=LEFT, size=5):
    return mechanism(data, size, rng=np.random.default_rng(3))


def of_source(source, space=None):
    """Return the function in a source text, which inspection can read."""
    text = textwrap.dedent(source)
    name = f"<test {abs(hash(text))}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space = {"np": np} | (space or {})
    exec(compile(text, name, "exec"), space)
    return next(value for key, value in space.items() if key == "f")


# Each row has a mechanism, the name of a mutant and the same mechanism with this mistake.
EXACT = {
    "order of draws": (
        """
        def f(d, size, *, rng):
            return d.sum() + np.minimum(rng.normal(size=size), rng.exponential(size=size))
        """,
        "clipping: np.minimum(rng.normal(size=size), rng.exponen... is always "
        "rng.exponential(size=size)",
        """
        def f(d, size, *, rng):
            skipped = rng.normal(size=size)
            return d.sum() + rng.exponential(size=size)
        """,
    ),
    "clip": (
        "def f(d, size, *, rng): return np.clip(d, 0, 1).sum() + rng.laplace(scale=1, size=size)",
        "clipping: np.clip(d, 0, 1) returns its argument",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "clip method": (
        "def f(d, size, *, rng): return d.clip(0, 1).sum() + rng.laplace(scale=1, size=size)",
        "clipping: d.clip(0, 1) returns its argument",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "clip that draws its bound": (
        """
        def f(d, size, *, rng):
            return np.clip(d, 0, rng.exponential()).sum() + rng.laplace(scale=1, size=size)
        """,
        "clipping: np.clip(d, 0, rng.exponential()) returns its argument",
        """
        def f(d, size, *, rng):
            rng.exponential()
            return d.sum() + rng.laplace(scale=1, size=size)
        """,
    ),
    "own clip": (
        """
        def clip_users(d): return d / 9
        def f(d, size, *, rng): return clip_users(d).sum() + rng.laplace(scale=1, size=size)
        """,
        "clipping: clip_users(d) returns its argument",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "minimum": (
        "def f(d, size, *, rng): return np.minimum(d, 1).sum() + rng.laplace(scale=1, size=size)",
        "clipping: np.minimum(d, 1) is always d",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "where": (
        """
        def f(d, size, *, rng):
            return np.where(d > 1, 1, d).sum() + rng.laplace(scale=1, size=size)
        """,
        "clipping: np.where(d > 1, 1, d) is always d",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "choice of two": (
        """
        def f(d, size, *, rng):
            return sum(1.0 if x > 1.0 else x for x in d[1]) + rng.laplace(scale=1, size=size)
        """,
        "clipping: 1.0 if x > 1.0 else x is always x",
        "def f(d, size, *, rng): return sum(x for x in d[1]) + rng.laplace(scale=1, size=size)",
    ),
    "any": (
        """
        def f(d, size, *, rng):
            return (d > 0).any(axis=1).sum() + rng.laplace(scale=1, size=size)
        """,
        "contribution: (d > 0).any(axis=1) counts every item",
        "def f(d, size, *, rng): return (d > 0).sum() + rng.laplace(scale=1, size=size)",
    ),
    "mean of a user": (
        "def f(d, size, *, rng): return d.mean(axis=1).sum() + rng.laplace(scale=1, size=size)",
        "contribution: d.mean(axis=1) takes each item for a user",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "unique": (
        "def f(d, size, *, rng): return len(np.unique(d > 0)) + rng.laplace(scale=1, size=size)",
        "contribution: np.unique(d > 0) keeps repetitions",
        "def f(d, size, *, rng): return d.size + rng.laplace(scale=1, size=size)",
    ),
    "set": (
        "def f(d, size, *, rng): return len(set(d.ravel() > 0)) + rng.laplace(scale=1, size=size)",
        "contribution: set(d.ravel() > 0) keeps repetitions",
        "def f(d, size, *, rng): return d.size + rng.laplace(scale=1, size=size)",
    ),
    "slice": (
        "def f(d, size, *, rng): return d[:, :2].sum() + rng.laplace(scale=1, size=size)",
        "contribution: d[:, :2] keeps everything",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "loop with a limit": (
        """
        def f(d, size, *, rng):
            total = 0.0
            for at, value in enumerate(d[1]):
                if at >= 1:
                    continue
                total += value
            return total + rng.laplace(scale=1, size=size)
        """,
        "contribution: the condition at >= 1 never holds",
        "def f(d, size, *, rng): return d[1].sum() + rng.laplace(scale=1, size=size)",
    ),
    "half a scale": (
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=4 / len(d), size=size)",
        "sensitivity: 4 / len(d) divided by 2",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=2 / len(d), size=size)",
    ),
    "items forgotten": (
        "def f(d, size, *, rng): return d.sum() + rng.laplace(0, 2 * d.shape[1], size)",
        "sensitivity: d.shape[1] left out of 2 * d.shape[1]",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=2.0, size=size)",
    ),
    "scale by a name": (
        """
        def f(d, size, *, rng):
            scale = 6 / len(d)
            return d.sum() + rng.laplace(scale=scale, size=size)
        """,
        "sensitivity: 6 / len(d) divided by 3, the items of a user",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=2 / len(d), size=size)",
    ),
    "scale of a standard noise": (
        "def f(d, size, *, rng): return d.sum() + 4.0 * rng.standard_normal(size)",
        "sensitivity: 4.0 divided by 2",
        "def f(d, size, *, rng): return d.sum() + 2.0 * rng.standard_normal(size)",
    ),
    "scale of another function": (
        """
        def noisy(total, scale, size, rng): return total + rng.laplace(scale=scale, size=size)
        def f(d, size, *, rng): return noisy(d.sum(), 4.0, size, rng)
        """,
        "sensitivity: 4.0 divided by 2",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=2.0, size=size)",
    ),
    "divisor of a value": (
        "def f(d, size, *, rng): return d.sum() / len(d) + rng.laplace(scale=1, size=size)",
        "sensitivity: the divisor len(d) divided by 2",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1, size=size)",
    ),
    "temperature": (
        """
        def f(d, size, *, rng):
            odds = np.exp(d[1] / 8)
            return rng.choice(3, p=odds / odds.sum(), size=size)
        """,
        "sensitivity: the exponent d[1] / 8 times 2",
        """
        def f(d, size, *, rng):
            odds = np.exp(d[1] / 4)
            return rng.choice(3, p=odds / odds.sum(), size=size)
        """,
    ),
    "mask": (
        """
        def f(d, size, *, rng):
            mask = rng.random(d.shape) < 0.5
            return d[mask].sum() + rng.laplace(scale=1, size=size)
        """,
        "sampling: rng.random(d.shape) < 0.5 always holds",
        """
        def f(d, size, *, rng):
            rng.random(d.shape)
            return d.ravel().sum() + rng.laplace(scale=1, size=size)
        """,
    ),
    "part of an order": (
        """
        def f(d, size, *, rng):
            return d[rng.permutation(len(d))[:1]].sum() + rng.laplace(scale=1, size=size)
        """,
        "sampling: rng.permutation(len(d))[:1] keeps everything",
        """
        def f(d, size, *, rng):
            return d[rng.permutation(len(d))].sum() + rng.laplace(scale=1, size=size)
        """,
    ),
    "threshold": (
        """
        def f(d, size, *, rng):
            noisy = d[0] + rng.laplace(scale=1, size=(size, 3))
            return np.where(noisy > 0.5, noisy, 0.0)
        """,
        "selection: noisy > 0.5 always holds",
        "def f(d, size, *, rng): return d[0] + rng.laplace(scale=1, size=(size, 3))",
    ),
    "budget": (
        """
        def f(d, size, *, rng):
            epsilon = BUDGET / 4
            return d.sum() + rng.laplace(scale=1 / epsilon, size=size)
        """,
        "budget: BUDGET / 4 is not divided",
        "def f(d, size, *, rng): return d.sum() + rng.laplace(scale=1 / 8.0, size=size)",
    ),
}


@pytest.mark.parametrize("case", EXACT)
def test_a_mutant_draws_exactly_as_the_mistake(case):
    mechanism, name, mistaken = EXACT[case]
    found = changes(of_source(mechanism, {"BUDGET": BUDGET}))
    assert name in found, list(found)
    mutant = found[name]
    assert mutant.kind == name.partition(":")[0] in KINDS
    np.testing.assert_allclose(
        drawn(mutant.mechanism), drawn(of_source(mistaken)), rtol=1e-12, atol=1e-12
    )


def test_code_without_these_lines_has_no_mutants():
    def f(data, size, *, rng):
        return np.full(size, data.sum())

    made = of_code(f, [PAIR], seed=0)
    assert not made.mutants
    assert str(made) == "  no line of its code gives a mutant"


# --- kinds of mechanisms ---


def clipped_sum(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0, size=size)


CLIP = "clipping: np.clip(data, 0, 1) returns its argument"


class Total:
    def __call__(self, data, size, *, rng):
        return self.bounded(data).sum() + rng.laplace(scale=1.0, size=size)

    @staticmethod
    def bounded(data):
        return np.clip(data, 0, 1)


class Exact:
    def pmf(self, data):
        share = np.clip(data, 0, 1).mean()
        return np.array([share, 1 - share])


def made_by(low):
    def inner(data, size, *, rng):
        return np.clip(data, low, 1).sum() + rng.laplace(scale=1.0, size=size)

    return inner


def decorated(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs)

    return inner


@decorated
def wrapped(data, size, *, rng):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0, size=size)


@one_draw
def single(data, *, rng):
    return float(np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0))


def with_scale(data, size, *, rng, scale):
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=scale, size=size)


def in_a_dict(data, *, rng):
    return {"total": float(np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0))}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (clipped_sum, CLIP),
        (Total(), CLIP),
        (made_by(0), "clipping: np.clip(data, low, 1) returns its argument"),
        (wrapped, CLIP),
        (single, CLIP),
        (functools.partial(with_scale, scale=1.0), CLIP),
    ],
    ids=["function", "object", "closure", "decorated", "one draw", "partial"],
)
def test_all_kinds_of_functions_have_mutants(mechanism, name):
    mutant = changes(mechanism)[name]
    noise = drawn(mechanism) - np.clip(LEFT, 0, 1).sum()
    np.testing.assert_allclose(drawn(mutant.mechanism), LEFT.sum() + noise)


def test_a_pmf_has_mutants():
    mutant = changes(Exact())[CLIP]
    np.testing.assert_allclose(mutant.mechanism.pmf(LEFT), [LEFT.mean(), 1 - LEFT.mean()])


def test_centres_have_mutants():
    mechanism = AdditiveNoise(lambda data: np.clip(data, 0, 1).sum(), noise="laplace", scale=1.0)
    mutant = changes(mechanism)[CLIP]
    assert mutant.mechanism.centers(LEFT) == LEFT.sum()


def test_an_output_of_another_kind_stays_converted():
    mutant = changes(Outcomes(one_draw(in_a_dict)))[CLIP]
    assert isinstance(mutant.mechanism, Outcomes)
    assert len(drawn(mutant.mechanism)) == 5


VISITS = pd.DataFrame({"user": [1, 1, 1, 2, 3], "paid": [1.0, 2.0, 4.0, 1.0, 1.0]})


def first_visits(frame, size, *, rng):
    return frame.groupby("user").head(2)["paid"].sum() + rng.laplace(scale=1, size=size)


def first_two(frame, size, *, rng):
    rows = frame.groupby("user")
    return rows.head(n=2)["paid"].sum() + rng.laplace(scale=1, size=size)


def one_visit(frame, size, *, rng):
    kept = frame.drop_duplicates("user")
    return len(kept) + rng.laplace(scale=1, size=size)


def capped_users(frame, size, *, rng):
    totals = frame.groupby("user")["paid"].sum().clip(upper=1.5)
    return totals.sum() + rng.laplace(scale=1, size=size)


def numbered_visits(frame, size, *, rng):
    kept = frame[frame.groupby("user").cumcount() < 2]
    return kept["paid"].sum() + rng.laplace(scale=1, size=size)


def by_city(frame, size, *, rng):
    return frame.groupby("city")["paid"].sum().sum() + rng.laplace(scale=1, size=size)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("mechanism", "name", "value"),
    [
        (first_visits, "frame.groupby('user') takes each row for a user", 9.0),
        (first_visits, "frame.groupby('user').head(2) keeps everything", 9.0),
        (first_two, "rows.head(n=2) keeps everything", 9.0),
        (one_visit, "frame.drop_duplicates('user') keeps repetitions", 5.0),
        (capped_users, "frame.groupby('user') takes each row for a user", 6.0),
        (numbered_visits, "frame.groupby('user').cumcount() < 2 always holds", 9.0),
    ],
)
def test_limits_of_a_table_have_mutants(mechanism, name, value):
    pair = NeighborPair.from_frame(VISITS, user="user", drop=1)
    mutant = changes(mechanism, pair)[f"contribution: {name}"]
    laplace = np.random.default_rng(3).laplace(scale=1, size=5)
    np.testing.assert_allclose(drawn(mutant.mechanism, VISITS) - laplace, value)


def test_groups_that_are_not_users_stay():
    frame = VISITS.assign(city="a")
    pair = NeighborPair.from_frame(frame, user="user", drop=1)
    assert not [name for name in changes(by_city, pair) if "contribution" in name]


def test_a_list_has_mutants():
    def f(lists, size, *, rng):
        return sum(len(set(items)) for items in lists) + rng.laplace(scale=1, size=size)

    pair = NeighborPair([[1, 1, 2], [3]], [[1, 1, 1], [3]])
    mutant = changes(f, pair)["contribution: set(items) keeps repetitions"]
    laplace = np.random.default_rng(3).laplace(scale=1, size=5)
    np.testing.assert_allclose(drawn(mutant.mechanism, pair.left) - laplace, 4)


# --- nothing stays changed ---


def test_the_code_is_restored_after_an_error():
    def f(data, size, *, rng):
        bounded = np.clip(data, 0, 1)
        if bounded.max() > 1 and rng.bit_generator is not None and size == 7:
            raise ValueError("too large")
        return bounded.sum() + rng.laplace(scale=1, size=size)

    before = f.__code__
    mutant = changes(f)[("clipping: np.clip(data, 0, 1) returns its argument")]
    with pytest.raises(ValueError, match="too large"):
        drawn(mutant.mechanism, size=7)
    assert f.__code__ is before
    assert drawn(f, size=7).shape == (7,)


def test_a_mutant_that_raises_has_a_note():
    def f(data, size, *, rng):
        total = np.clip(data, 0, 1).sum()
        if total > 5:
            raise ValueError
        return total + rng.laplace(scale=1, size=size)

    large = NeighborPair(np.full((2, 3), 0.5), np.array([[0.5] * 3, [9.0] * 3]))
    assert changes(f, large)[CLIP].note == "the changed code raises ValueError"


def test_a_mutant_without_effect_has_a_note():
    inside = NeighborPair(np.full((2, 3), 0.5), np.array([[0.5] * 3, [0.75] * 3]))
    found = changes(clipped_sum, inside)
    assert found[CLIP].note == NO_CHANGE
    assert found["sensitivity: 1.0 divided by 2"].note == ""


def test_a_mutant_is_audited_on_the_pair_where_it_differs_most():
    inside = NeighborPair(np.full((2, 3), 0.5), np.array([[0.5] * 3, [0.75] * 3]))
    made = of_code(clipped_sum, [inside, PAIR], seed=0)
    assert {m.name.partition(":")[0]: m.pair for m in made.mutants}["clipping"] is PAIR


@functools.lru_cache
def remembered(bound):
    return np.minimum(bound, 0.5)


def scaled_by_a_cache(data, size, *, rng):
    return data.sum() * remembered(2.0) + rng.laplace(scale=1, size=size)


def test_code_behind_a_filled_cache_has_mutants():
    remembered(2.0)
    mutant = changes(scaled_by_a_cache)["clipping: np.minimum(bound, 0.5) is always bound"]
    assert not mutant.note
    assert remembered.cache_info().currsize == 1  # the cache of this process stays


def test_values_that_a_mechanism_keeps_do_not_change():
    kept = []

    def f(data, size, *, rng):
        kept.append(np.clip(data, 0, 1).max())
        return data.sum() * (max(kept) > 1) + rng.laplace(scale=1, size=size)

    assert not changes(f)["clipping: np.clip(data, 0, 1) returns its argument"].note
    assert not kept


def test_the_tests_of_loops_are_not_changed():
    def f(data, size, *, rng):
        count = 0
        while rng.random() < 0.5:
            count += 1
        return np.clip(data, 0, 1).sum() + count + rng.laplace(scale=1, size=size)

    assert {m.kind for m in changes(f).values()} == {"clipping", "sensitivity"}


@pytest.mark.slow
def test_a_mutant_that_never_ends_is_ended():
    def f(data, size, *, rng):
        rest = np.minimum(data.max(), 1.0)
        while rest > 1.0:
            rest = max(rest, 2.0)
        return data.sum() + rng.laplace(scale=1, size=size)

    made = of_code(f, [PAIR], seed=0, limit=1.0)
    notes = {m.name.partition(": ")[2].rpartition(", line")[0]: m.note for m in made.mutants}
    endless = notes["np.minimum(data.max(), 1.0) is always data.max()"]
    assert endless == "it could not be run: it did not end within 1 s"


@pytest.mark.slow
def test_mutants_are_the_same_in_any_order_of_hashes():
    """Check that the order of mutants does not depend on the hashes of names or on addresses."""
    code = (
        "import numpy as np\n"
        "from dpaudit import NeighborPair, mutants\n"
        "from tests.mutants.test_edits import two_scales\n"
        "pair = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))\n"
        "print(*[m.name for m in mutants.of_code(two_scales, [pair], seed=0).mutants], sep='|')\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1
    assert "1.0 + 0 divided by 2" in found.pop()


def noisy_pair(x, size, scale_a, scale_b, rng):
    return x + rng.laplace(scale=scale_a, size=size) + rng.laplace(scale=scale_b, size=size)


def two_scales(data, size, *, rng):
    return noisy_pair(np.clip(data, 0, 1).sum(), size, 1.0 + 0, 2.0 + 0, rng)


def broken_choices(data, size, *, rng):
    scale = 2.0
    return rng.exponential(size=size) * (-1.0 * scale) + rng.exponential(size=size) * scale


def shapeless(data, size, *, rng):
    floor = np.asarray(-5.0)
    return np.maximum(floor, data.sum() + rng.laplace(scale=1.0, size=size))


def maybe_empty(data, size, *, rng):
    return (np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0, size=size))[: max(0, size)]


CAP = float("inf")


def infinite(data, size, *, rng):
    if data.size > 10**9:
        return rng.laplace(scale=2 * CAP * len(data), size=size)
    return np.clip(data, 0, 1).sum() + rng.laplace(scale=1.0, size=size)


class Lazy(types.ModuleType):
    clip = staticmethod(np.clip)

    def __getattr__(self, name):
        if name == "clip_fast":
            raise ImportError("not installed")
        raise AttributeError(name)


lazy = Lazy("lazy")


def with_a_lazy_module(data, size, *, rng):
    if len(data) > 10**9:
        return lazy.clip_fast.normal(data)
    return lazy.clip(data, 0, 1).sum() + rng.laplace(scale=1.0, size=size)


def by_keywords(data, size, *, rng):
    clipped = np.clip(a_min=0, a_max=1, a=data)
    largest = max(half := clipped / 2, half - 1, key=np.sum)
    return largest.sum() + rng.laplace(scale=1.0, size=size)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "mechanism",
    [broken_choices, shapeless, maybe_empty, infinite, with_a_lazy_module, by_keywords],
)
def test_unusual_code_raises_no_error(mechanism):
    assert of_code(mechanism, [PAIR], seed=0).mutants


def test_a_keyword_may_name_the_data():
    mutant = changes(by_keywords)[
        "clipping: np.clip(a_min=0, a_max=1, a=data) returns its argument"
    ]
    laplace = np.random.default_rng(3).laplace(scale=1.0, size=5)
    np.testing.assert_allclose(drawn(mutant.mechanism) - laplace, LEFT.sum() / 2)


@pytest.mark.slow
def test_equal_mutants_of_a_line_have_different_names():
    def f(data, size, *, rng):
        total = np.clip(data, 0, 1).sum() / 2 + np.clip(data, 0, 1).sum() / 2
        return total + rng.laplace(scale=1.0, size=size)

    names = [m.name for m in of_code(f, [PAIR], seed=0).mutants]
    assert len(set(names)) == len(names)
    assert any(name.endswith(" #2") for name in names)


@pytest.mark.slow
def test_each_kind_can_be_limited():
    made = of_code(two_scales, [PAIR], seed=0, most=1)
    assert [m.kind for m in made.mutants] == ["clipping", "sensitivity"]
    assert made.left_out == len(changes(two_scales)) - 2
    assert str(made).endswith(f"  and {made.left_out} more")


def test_a_profiler_may_run():
    profile = cProfile.Profile()
    profile.enable()
    try:
        assert of_code(clipped_sum, [PAIR], seed=0).mutants
    finally:
        profile.disable()


def test_code_that_cannot_be_read_is_named():
    space = {"np": np}
    exec("def f(data, size, *, rng): return np.clip(data, 0, 1).sum() + np.zeros(size)", space)
    made = of_code(space["f"], [PAIR], seed=0)
    assert not made.mutants
    assert made.unseen == "the source of f could not be read"
    unnamed = compile(
        "lambda data, size, *, rng: data.sum() + rng.normal(size=size)", "m.py", "eval"
    )
    words = "the source of a lambda in line 1 of m.py could not be read"
    assert of_code(eval(unnamed, space), [PAIR], seed=0).unseen == words


def test_what_the_standard_library_generates_is_not_named():
    bounds = collections.namedtuple("bounds", "low high")  # its __new__ is a lambda

    def f(data, size, *, rng):
        return np.clip(data, *bounds(0, 1)).sum() + rng.normal(size=size)

    made = of_code(f, [PAIR], seed=0)
    assert made.unseen == ""
    assert made.mutants


def test_source_that_changed_since_the_import_is_not_used():
    f = of_source(
        "def f(data, size, *, rng): return np.clip(data, 0, 1).sum() + rng.normal(size=size)"
    )
    name = f.__code__.co_filename
    text = "def f(data, size, *, rng): return np.clip(data, 0, 2).sum() + rng.normal(size=size)"
    linecache.cache[name] = (len(text), None, [text], name)
    assert of_code(f, [PAIR], seed=0).unseen == "the source of f could not be read"


def test_code_of_libraries_is_not_changed():
    def f(data, size, *, rng):
        return np.clip(data, 0, 1).sum() + rng.laplace(scale=1, size=size)

    names = [m.name for m in of_code(f, [PAIR], seed=0).mutants]
    assert all("test_edits.py" in name for name in names)


def test_a_failing_pair_is_left_out():
    def f(data, size, *, rng):
        if len(data) < 2:
            raise ValueError
        return np.clip(data, 0, 1).sum() + rng.laplace(scale=1, size=size)

    small = NeighborPair(np.ones((1, 3)), np.zeros((1, 3)))
    made = of_code(f, [small, PAIR], seed=0)
    assert {m.pair for m in made.mutants} == {PAIR}
    assert of_code(f, [small], seed=0).unseen == "the mechanism failed on all of these data"


@pytest.mark.parametrize(
    ("pairs", "options", "words"),
    [
        ([], {}, "pairs must be a list of pairs, at least one"),
        ([LEFT], {}, "pairs must be a NeighborPair"),
        ([PAIR], {"size": 0}, "size must be an integer >= 1, got 0"),
        ([PAIR], {"seed": -1}, "seed must be"),
    ],
)
def test_bad_arguments_are_named(pairs, options, words):
    with pytest.raises((ArgumentError, TypeError), match=words):
        of_code(clipped_sum, pairs, **{"seed": 0, **options})


def test_query_values_have_one_item():
    pair = NeighborPair([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], relation=within_sensitivity(1.0))

    def f(values, size, *, rng):
        return values + rng.laplace(scale=3.0, size=(size, 3))

    assert list(changes(f, pair)) == ["sensitivity: 3.0 divided by 2"]
