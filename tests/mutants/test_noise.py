"""Noise that is found by running a mechanism, and the resulting mutants."""

from __future__ import annotations

import ast
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from algorithms.geometric_median.center import fast_center
from dpaudit import AdditiveNoise, MechanismError, NeighborPair, Relation, unseeded
from dpaudit.mutants import CERTAIN, Mutant, of_noise, record, uneven_noise
from tests.algorithms.test_contract import ROWS

Array = np.ndarray
Generator = np.random.Generator
DATA = np.zeros((3, 1))
ROOT = Path(__file__).parents[2]


def one_site(data: Array, size: int, *, rng: Generator) -> Array:
    return data.sum() + rng.laplace(scale=2.0, size=size)


def looped(data: Array, size: int, *, rng: Generator) -> Array:
    """Loop over draws, and over three steps in each draw."""
    drawn = []
    for _ in range(size):
        total = data.sum()
        for _ in range(3):
            total += rng.normal()
        drawn.append(total)
    return np.array(drawn)


def stepwise(data: Array, size: int, *, rng: Generator) -> Array:
    """Take three steps, each for all draws together, and release the whole path."""
    steps = [rng.normal(scale=1 + i, size=size) for i in range(3)]
    return data.sum() + np.cumsum(steps, axis=0).T


def until_tails(data: Array, size: int, *, rng: Generator) -> Array:
    """Make as many calls as the slowest draw needs."""
    counts, alive = np.zeros(size), np.ones(size, dtype=bool)
    while alive.any():
        tossed = rng.random(size) < 0.5
        alive &= tossed
        counts[alive] += 1
    return counts


def subsampled(data: Array, size: int, *, rng: Generator) -> Array:
    chosen = rng.permuted(np.tile(np.arange(len(data)), (size, 1)), axis=1)[:, :1]
    return data[chosen[:, 0], 0] + rng.normal(size=size)


def mutants(mechanism: Any, *datasets: Any) -> dict[str, Mutant]:
    made = of_noise(mechanism, datasets or (DATA,), seed=0).mutants
    assert len({mutant.name for mutant in made}) == len(made)
    return {f"{m.change}, {m.calls}": m for m in made}


def called(mutant: Mutant, size: int = 5, seed: int = 1, data: Any = DATA) -> Array:
    drawn: Array = np.asarray(mutant.mechanism(data, size, rng=np.random.default_rng(seed)))
    return drawn


def test_uniform_numbers_are_called_what_they_are_and_stay_finite() -> None:
    def by_inversion(data: Array, size: int, *, rng: Generator) -> Array:
        return np.asarray(data.sum() - np.log(rng.random(size)))

    made = mutants(by_inversion)
    assert made["halved, all"].name.startswith("the uniform number of line")
    assert made["halved, all"].name.endswith("kept to the middle half of its range")
    assert made["removed, all"].name.endswith("put at its middle")
    assert all(np.isfinite(called(mutant)).all() for mutant in made.values())


# --- noise sources ---


def test_a_site_says_where_what_and_how_often() -> None:
    (site,) = record(one_site, [DATA], seed=0).sites
    assert site.method == "laplace"
    assert site.lines[0][:2] == ("test_noise.py", "one_site")
    assert (site.least, site.most, site.by_run) == (1, 1, False)
    assert site.amount_range == (2.0, 2.0)
    assert str(site) == f"line {site.lines[0][2]} of test_noise.py (laplace, scale 2)"


def test_loops_over_draws_are_told_from_steps() -> None:
    (site,) = record(looped, [DATA], seed=0).sites
    assert (site.most, site.by_run) == (3, True)
    (site,) = record(stepwise, [DATA], seed=0).sites
    assert (site.most, site.by_run, site.amount_range) == (3, False, (1.0, 3.0))
    (site,) = record(until_tails, [DATA], seed=0).sites
    assert not site.by_run
    assert site.least < site.most


def test_sites_on_one_line_are_told_apart_by_who_called() -> None:
    def noise(rng: Generator, size: int) -> Array:
        return rng.normal(size=size)

    def both(data: Array, size: int, *, rng: Generator) -> Array:
        first = noise(rng, size)
        return first + noise(rng, size)

    one, two = record(both, [DATA], seed=0).sites
    assert one.lines[0] == two.lines[0]
    assert str(one) != str(two)
    assert f"reached by line {one.lines[1][2]} of test_noise.py" in str(one)


def test_branches_of_other_data_are_found_too() -> None:
    def branching(data: Array, size: int, *, rng: Generator) -> Array:
        if data.sum() > 1:
            return rng.normal(size=size)
        return rng.laplace(size=size)

    found = record(branching, [DATA, DATA + 1], seed=0)
    assert [site.method for site in found.sites] == ["laplace", "normal"]
    assert [site.least for site in found.sites] == [0, 0]


def test_a_mechanism_that_raises_is_refused() -> None:
    def broken(data: Array, size: int, *, rng: Generator) -> Array:
        raise RuntimeError("no")

    with pytest.raises(MechanismError, match=r"broken raised RuntimeError: no .*while its noise"):
        record(broken, [DATA], seed=0)


# --- undetected randomness ---


def own_generator(data: Array, size: int, *, rng: Generator) -> Array:
    return np.random.default_rng().normal(size=size)


def seeds_another(data: Array, size: int, *, rng: Generator) -> Array:
    return np.random.default_rng(rng.integers(2**60)).normal(size=size)


def takes_the_bits(data: Array, size: int, *, rng: Generator) -> Array:
    return np.random.RandomState(rng.bit_generator).normal(size=size)


def of_the_base(data: Array, size: int, *, rng: Generator) -> Array:
    return np.random.Generator.normal(rng, size=size)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (own_generator, "it makes a generator of its own, so that no noise is recorded. Draw from"),
        (seeds_another, "it varies even if all recorded noise is removed. Draw from"),
        (takes_the_bits, "takes rng.bit_generator, and draws made with it are not"),
        (of_the_base, "it makes a generator of its own"),
        (unseeded(own_generator), "it draws from an entropy source of its own"),
    ],
)
def test_what_is_not_seen_is_said(mechanism: Any, words: str) -> None:
    assert words in of_noise(mechanism, [DATA], seed=0).unseen


@pytest.mark.parametrize("mechanism", [one_site, looped, stepwise, until_tails, subsampled])
def test_where_all_is_seen_nothing_is_said(mechanism: Any) -> None:
    assert of_noise(mechanism, [DATA], seed=0).unseen == ""


def test_a_mechanism_without_noise_has_no_mutants() -> None:
    def constant(data: Array, size: int, *, rng: Generator) -> Array:
        return np.full(size, data.sum())

    made = of_noise(constant, [DATA], seed=0)
    assert (made.sites, made.mutants, made.unseen) == ((), (), "")


# --- mutants ---


def test_noise_is_removed_and_halved() -> None:
    made = mutants(one_site)
    assert set(made) == {"removed, all", "halved, all"}
    assert called(made["removed, all"]).tolist() == [0.0] * 5
    plain = one_site(DATA, 5, rng=np.random.default_rng(1))
    np.testing.assert_allclose(called(made["halved, all"]), plain / 2)


def test_steps_are_changed_first_last_or_not_refreshed() -> None:
    made = mutants(stepwise)
    plain = np.diff(stepwise(DATA, 5, rng=np.random.default_rng(1)), prepend=0, axis=1)
    for calls, step in (("first", 0), ("last", 2)):
        changed = np.diff(called(made[f"removed, {calls}"]), prepend=0, axis=1)
        expected = plain.copy()
        expected[:, step] = 0.0
        np.testing.assert_allclose(changed, expected, atol=1e-12)
    stale = np.diff(called(made["stale, all"]), prepend=0, axis=1)
    np.testing.assert_allclose(stale, plain[:, :1] * [1, 2, 3])
    assert len(set(stale[:, 0])) == 5  # the draws of one call stay independent


def test_in_a_loop_over_draws_each_draw_has_its_own_first_call() -> None:
    made = mutants(looped)
    stale = called(made["stale, all"])
    assert len(set(stale)) == 5
    rng = np.random.default_rng(1)
    one = called(made["stale, all"], size=1)
    assert one[0] == pytest.approx(3 * rng.normal())


def test_the_last_call_is_found_where_calls_vary() -> None:
    """Check that the last call is found if the number of calls varies.

    At the low end of its noise, the last toss is certainly heads, so no draw stops at this toss.
    """
    made = mutants(until_tails)
    plain = until_tails(DATA, 40, rng=np.random.default_rng(1))
    changed = called(made["high end, last"], size=40)
    assert (
        changed.max() == plain.max()
    )  # tails for all draws; for the last draw, this toss was the last toss
    rescued = called(made["low end, last"], size=40)
    assert (rescued >= plain).all()
    assert (rescued > plain).any()


def test_selection_is_made_certain() -> None:
    data = np.array([[1.0], [2.0], [30.0]])
    made = mutants(subsampled, data)
    noise = np.random.default_rng(1)
    noise.permuted(np.tile(np.arange(3), (5, 1)), axis=1)
    noise = noise.normal(size=5)
    np.testing.assert_allclose(called(made["low end, all"], data=data), 1.0 + noise)
    np.testing.assert_allclose(called(made["high end, all"], data=data), 30.0 + noise)


def test_all_noise_together_where_there_is_more_than_one() -> None:
    def two(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.normal(size=size) + 3 * rng.laplace(size=size)

    made = of_noise(two, [DATA], seed=0).mutants
    everything = {m.change: m for m in made if m.noise == "all of its noise"}
    assert set(everything) == {"removed", "halved"}
    assert called(everything["removed"]).tolist() == [0.0] * 5
    plain = two(DATA, 5, rng=np.random.default_rng(1))
    np.testing.assert_allclose(called(everything["halved"]), plain / 2)


def test_threads_have_no_first_call() -> None:
    def threaded(data: Array, size: int, *, rng: Generator) -> Array:
        values = np.zeros((2, size))

        def work(i: int) -> None:
            values[i] = rng.normal(size=size)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
            thread.join()
        return values.sum(axis=0)

    made = of_noise(threaded, [DATA], seed=0)
    assert {m.calls for m in made.mutants} == {"all"}
    assert made.unseen == ""
    gone = next(m for m in made.mutants if m.change in CERTAIN)
    assert called(gone).tolist() == [0.0] * 5


def test_a_loop_that_waits_for_noise_is_broken_off() -> None:
    with pytest.raises(MechanismError, match="the mutant must end, got"):
        called(mutants(until_tails)["low end, all"])


@pytest.mark.parametrize("mechanism", [one_site, looped, stepwise, subsampled])
def test_mutants_keep_the_contract(mechanism: Any) -> None:
    """Check that mutants are pure functions of the generator.

    The mutants are pure for any number of draws and any shape.
    """
    plain = mechanism(DATA, 4, rng=np.random.default_rng(1))
    for mutant in of_noise(mechanism, [DATA], seed=0).mutants:
        assert called(mutant, 4).shape == plain.shape
        assert called(mutant, 4).dtype == plain.dtype
        np.testing.assert_array_equal(called(mutant, 4), called(mutant, 4))
        assert len(called(mutant, 1)) == 1
        assert len(called(mutant, 0)) == 0
        assert mutant.name in mutant.mechanism.__name__


def test_effects_are_counted() -> None:
    def branching(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.normal(size=size) if data.sum() > 1 else np.zeros(size)

    (removed, _) = of_noise(branching, [DATA, DATA + 1], seed=0).mutants
    called(removed, data=DATA)
    assert not removed.has_effect
    called(removed, data=DATA + 1)
    assert removed.has_effect


# --- additive noise, pmf ---


def test_the_final_noise_is_a_noise() -> None:
    mechanism = AdditiveNoise(lambda data: data.sum(axis=0), "gaussian", 2.0)
    removed, halved = of_noise(mechanism, [DATA], seed=0).mutants
    assert removed.mechanism(DATA + 1, 2, rng=np.random.default_rng(1)).tolist() == [[3.0], [3.0]]
    assert halved.mechanism.noise.scale == 1.0
    assert halved.noise == "the final noise (gaussian, scale 2)"


def test_noise_of_the_centres_is_found_too() -> None:
    def centres(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.laplace(size=size) + rng.normal(size=size)

    made = of_noise(AdditiveNoise(centres, "gaussian", 2.0, ball=([0.0], 50.0)), [DATA], seed=0)
    kinds = [type(m.mechanism) for m in made.mutants if m.change == "halved"]
    assert kinds == [AdditiveNoise] * 4
    everything = next(m for m in made.mutants if m.noise == "all of its noise")
    assert called(everything).tolist() == [0.0] * 5


def test_a_pmf_is_sharpened() -> None:
    class Coin:
        def pmf(self, data: Array) -> Array:
            return np.array([0.25, 0.75])

    removed, halved = of_noise(Coin(), [DATA], seed=0).mutants
    assert removed.mechanism.pmf(DATA).tolist() == [0.0, 1.0]
    np.testing.assert_allclose(halved.mechanism.pmf(DATA), [0.1, 0.9])


# --- the algorithms of the repository ---


NO_MECHANISMS = {"datasets.py", "losses.py", "problems.py"}
"""Files whose functions draw data or probes, not outputs."""


def lines_that_draw() -> set[tuple[str, int]]:
    """Return the lines of algorithms/ that call a method of `rng`, found in the source."""
    found = set()
    for path in sorted((ROOT / "algorithms").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "rng" and path.name not in NO_MECHANISMS:
                found.add((path.name, node.lineno))
    return found


@pytest.mark.slow
def test_every_noise_of_the_algorithms_is_found() -> None:
    seen = set()
    cases = [(partial(row.mechanism, **row.kwargs), np.asarray(row.data)) for row in ROWS]
    # No row takes this route, because small data are counted.
    sampled = {"radius": 1.0, "epsilon": 100.0, "delta": 0.5, "route": "samples"}
    cases.append((partial(fast_center, **sampled), np.zeros((20, 2))))
    for mechanism, data in cases:
        found = record(mechanism, [data], seed=0)
        assert found.unseen == "", mechanism
        seen |= {(file, number) for site in found.sites for file, _, number in site.lines[:1]}
    assert lines_that_draw() - seen == set()


def test_selection_by_probabilities_is_sharpened() -> None:
    def exponential(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.choice(3, size=size, p=[0.6, 0.3, 0.1])

    def response(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.binomial(1, 0.75, size=size)

    sharper = mutants(exponential)["halved, all"]
    assert "made sharper, its probabilities squared" in sharper.name
    counts = np.bincount(called(sharper, 100_000), minlength=3) / 100_000
    np.testing.assert_allclose(counts, np.array([36, 9, 1]) / 46, atol=0.01)
    assert called(mutants(response)["halved, all"], 100_000).mean() == pytest.approx(0.9, abs=0.01)


def test_a_selection_that_names_no_probabilities_is_not_sharpened() -> None:
    sampled = of_noise(subsampled, [DATA], seed=0).mutants
    assert not [m for m in sampled if "sharper" in m.name]
    assert "halved, all" not in mutants(lambda data, size, *, rng: rng.choice(3, size=size))


def test_sites_that_no_line_tells_apart_are_counted() -> None:
    source = "def noise(rng, size):\n    return rng.normal(size=size)\n"
    makers = []
    for folder in ("a", "b"):
        names: dict[str, Any] = {}
        exec(compile(source, f"{folder}/noise.py", "exec"), names)
        makers.append(names["noise"])

    def both(data: Array, size: int, *, rng: Generator) -> Array:
        return np.sum([noise(rng, size) for noise in makers], axis=0)

    words = [str(site) for site in record(both, [DATA], seed=0).sites]
    assert len(words) == len(set(words)) == 2
    assert words[1] == f"{words[0]} #2"


def by_kind(data: Array, size: int, *, rng: Generator) -> Array:
    """Add noise to the number of rows of each kind that occurs."""
    counts = np.unique(data, return_counts=True)[1]
    return (counts + rng.laplace(size=(size, len(counts)))).max(axis=1)


def by_user(data: Array, size: int, *, rng: Generator) -> Array:
    """Add noise to each user, who may be absent."""
    return (data + rng.laplace(size=(size, *data.shape))).sum(axis=(1, 2))


def until_large(data: Array, size: int, *, rng: Generator) -> Array:
    """Draw until the noise is large, which takes a random number of draws."""
    while (noise := rng.laplace(size=size)).max() < 1:
        continue
    return data.sum() + noise


def random_rows(data: Array, size: int, *, rng: Generator) -> Array:
    return data[rng.permutation(data.size) % len(data)][:1].repeat(size) + rng.laplace(size=size)


@pytest.mark.parametrize(
    ("mechanism", "numbers"),
    [(by_kind, [(3, 2)]), (by_user, []), (until_large, []), (random_rows, []), (one_site, [])],
)
def test_noise_that_the_data_decide_is_uneven(mechanism: Any, numbers: list[Any]) -> None:
    pair = NeighborPair(
        [[0.0], [0.0], [1.0], [2.0]], [[0.0], [0.0], [1.0]], relation=Relation.ADD_REMOVE_USER
    )
    found = uneven_noise(mechanism, pair, seed=2)
    assert list(found.values()) == numbers


def test_noise_for_a_share_of_the_users_is_not_uneven() -> None:
    def share(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.laplace(size=(size, int(0.7 * len(data)))).sum(axis=1)

    def keys(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.laplace(size=(size, len(np.unique(data)))).sum(axis=1)

    data = np.repeat([[0.0], [1.0], [2.0]], [10, 9, 1], axis=0)
    pair = NeighborPair(data, data[:-1], relation=Relation.ADD_REMOVE_USER)
    assert not uneven_noise(share, pair, seed=2)
    assert list(uneven_noise(keys, pair, seed=2).values()) == [(3, 2)]


def test_uneven_noise_is_seen_in_data_of_any_form() -> None:
    relation = Relation.ADD_REMOVE_USER
    table = pd.DataFrame({"user": [0, 0, 1, 3, 2], "kind": ["a", "b", "a", "a", "c"]})
    ragged = [np.array(items) for items in ([0.0, 1.0], [0.0], [1.0], [2.0])]
    arrays = {"x": np.array([[0.0], [1.0], [0.0], [2.0]]), "y": np.zeros((4, 1))}
    fewer = {name: array[:3] for name, array in arrays.items()}
    cases: list[tuple[NeighborPair, Any]] = [
        (
            NeighborPair.from_frame(table, user="user", drop=2),
            lambda frame: frame["kind"].nunique(),
        ),
        (
            NeighborPair(ragged, ragged[:3], relation=relation),
            lambda users: len(np.unique(np.concatenate(list(users)))),
        ),
        (NeighborPair(arrays, fewer, relation=relation), lambda both: len(np.unique(both["x"]))),
    ]
    for pair, kinds in cases:

        def noisy(data: Any, size: int, *, rng: Generator, kinds: Any = kinds) -> Array:
            return rng.laplace(size=(size, kinds(data))).sum(axis=1)

        assert list(uneven_noise(noisy, pair, seed=2).values()) == [(3, 2)], pair
