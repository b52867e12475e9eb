"""The generator that records where it was used."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from dpaudit import MechanismError
from dpaudit.mutants.recorder import Plan, Recorder, run
from dpaudit.mutants.treatments import REMOVED, STALE

Generator = np.random.Generator


def recorded(draws: Any, *plans: Plan, seed: int = 3) -> tuple[Any, Any]:
    """Run a function of rng as a mechanism."""
    return run(lambda data, size, *, rng: draws(rng), None, 1, np.random.default_rng(seed), *plans)


def changed(draws: Any, change: str, only: int | None = None, site: int = 0) -> Any:
    key = list(recorded(draws)[1].seen)[site]
    return recorded(draws, Plan(key, change, only))[0]


def test_stale_gives_the_first_deviates_again_on_any_scale() -> None:
    def draws(rng: Generator) -> list[Any]:
        return [rng.normal(loc, scale, size=4) for loc, scale in ((0.0, 1.0), (5.0, 2.0))]

    first, again = changed(draws, STALE)
    np.testing.assert_allclose(again, 5.0 + 2.0 * first)
    assert not np.allclose(recorded(draws)[0][1], 5.0 + 2.0 * first)


def test_what_is_stale_leaves_the_other_sites_their_numbers() -> None:
    def draws(rng: Generator) -> list[float]:
        values = []
        for _ in range(3):
            values.append(rng.normal())
            values.append(rng.laplace())
        return values

    plain, stale = recorded(draws)[0], changed(draws, STALE)
    assert stale[0] == plain[0] == stale[2] == stale[4]
    assert stale[1] == plain[1]
    assert len({stale[1], stale[3], stale[5]}) == 3


def test_one_call_alone_can_be_changed() -> None:
    def draws(rng: Generator) -> list[float]:
        return [rng.normal() for _ in range(4)]

    plain = recorded(draws)[0]
    for only in range(4):
        values = changed(draws, REMOVED, only)
        assert values == [0.0 if i == only else x for i, x in enumerate(plain)]


@pytest.mark.parametrize("method", ["standard_normal", "random", "standard_exponential"])
def test_out_is_filled_and_returned(method: str) -> None:
    def draws(rng: Generator) -> tuple[Any, Any]:
        out = np.full(3, 9.0)
        return getattr(rng, method)(out=out), out

    returned, out = changed(draws, REMOVED)
    assert returned is out
    assert len(set(out.tolist())) == 1
    assert out[0] != 9.0


def test_permuted_in_place_is_put_back_in_order() -> None:
    def draws(rng: Generator) -> Any:
        x = np.arange(6)
        rng.permuted(x, out=x)
        return x

    assert changed(draws, "low end").tolist() == [0, 1, 2, 3, 4, 5]
    assert changed(draws, "high end").tolist() == [5, 4, 3, 2, 1, 0]


def test_single_precision_stays() -> None:
    values = changed(lambda rng: rng.standard_normal(3, dtype=np.float32), REMOVED)
    assert values.dtype == np.float32


def test_methods_called_by_name_are_seen() -> None:
    _, log = recorded(lambda rng: getattr(rng, "lap" + "lace")(scale=2.0))
    ((method, _),) = log.seen
    assert method == "laplace"


def test_what_numpy_calls_itself_is_one_call() -> None:
    """Check that a call that numpy makes through other methods is recorded as one call.

    Inside numpy, `choice` draws with `random`, and `permutation` draws with `shuffle`.
    """
    _, log = recorded(lambda rng: (rng.choice(3, p=[0.2, 0.3, 0.5]), rng.permutation([1, 2])))
    assert [method for method, _ in log.seen] == ["choice", "permutation"]


def test_children_are_recorded_with_their_parent() -> None:
    def draws(rng: Generator) -> list[float]:
        return [child.normal() for child in rng.spawn(3)]

    values, log = recorded(draws)
    assert len(set(values)) == 3
    assert [seen.calls for seen in log.seen.values()] == [3]
    assert changed(draws, REMOVED) == [0.0, 0.0, 0.0]
    assert values == [g.normal() for g in np.random.default_rng(3).spawn(3)]


def test_threads_are_told() -> None:
    def draws(rng: Generator) -> None:
        def work() -> None:
            rng.normal()

        for _ in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
        work()

    _, log = recorded(draws)
    assert sorted(seen.in_threads for seen in log.seen.values()) == [False, True]


def test_what_takes_the_bits_is_told() -> None:
    _, log = recorded(lambda rng: np.random.RandomState(rng.bit_generator).laplace())
    assert [method for method, _ in log.seen] == ["bit_generator"]


def test_a_site_is_a_line_and_what_led_to_it() -> None:
    def noise(rng: Generator) -> float:
        return float(rng.normal())

    def draws(rng: Generator) -> float:
        total = noise(rng)
        return total + noise(rng)

    _, log = recorded(draws)
    assert [seen.calls for seen in log.seen.values()] == [1, 1]
    (_, one), (_, two) = log.seen
    assert one[0] == two[0]
    assert one[1] != two[1]


def test_a_recursion_is_one_site() -> None:
    def halve(rng: Generator, depth: int) -> float:
        return float(rng.normal()) if depth == 0 else halve(rng, depth - 1)

    def draws(rng: Generator) -> float:
        return sum(halve(rng, depth) for depth in (1, 2, 5))

    _, log = recorded(draws)
    assert len(log.seen) == 1


def test_the_amount_of_noise_is_taken_down() -> None:
    _, log = recorded(lambda rng: [rng.normal(scale=s) for s in (0.5, 3.0, np.array([1.0, 2.0]))])
    (seen,) = log.seen.values()
    assert seen.amounts == [0.5, 3.0]
    _, log = recorded(lambda rng: rng.normal(scale=np.array([]), size=0))
    (seen,) = log.seen.values()
    assert seen.amounts == []


def test_a_recorder_of_a_recorder_draws_the_same() -> None:
    assert (
        Recorder(Recorder(np.random.default_rng(3))).normal() == np.random.default_rng(3).normal()
    )


def test_lists_of_any_shape_are_shuffled() -> None:
    def draws(rng: Generator) -> list[Any]:
        ragged: list[Any] = [[0], [1, 2], [3, 4, 5]]
        rng.shuffle(ragged)
        return ragged

    assert changed(draws, "low end") == [[0], [1, 2], [3, 4, 5]]
    assert changed(draws, "high end") == [[3, 4, 5], [1, 2], [0]]


def test_calls_without_end_are_refused_and_others_are_not_slowed() -> None:
    def draws(rng: Generator) -> float:
        rng.laplace()
        return max(float(rng.normal()) for _ in range(5000))

    key = next(iter(recorded(draws)[1].seen))
    with pytest.raises(MechanismError, match="the mutant must end, got 1,201 calls of its rng"):
        run(
            lambda data, size, *, rng: draws(rng), None, 1, np.random.default_rng(1),
            Plan(key, REMOVED), calls=2,
        )  # fmt: skip
    _, log = recorded(draws, Plan(key, REMOVED))
    assert [k[0] for k in log.seen] == ["laplace"]  # nothing is recorded while a plan is applied
