"""Tests that dependent draws are refused, and that independent draws are almost never refused.

An audit refuses dependent draws before it certifies a number.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import MechanismError, NeighborPair, PureDP, audit
from dpaudit.mechanisms import independence
from dpaudit.mechanisms.independence import IndependenceCheck
from dpaudit.mechanisms.sampler import CALLS
from tests.statistical import FALSE_ALARM

PAIR = NeighborPair([[0.0]], [[1.0]])
Noise = Callable[[np.random.Generator, int], Any]


def check_of(calls: Any, outputs: Any = None, keys: Any = None) -> IndependenceCheck:
    """Return a check of calls of one event, given the draws at which the event fired."""
    check = IndependenceCheck("f")
    for index, fired in enumerate(calls):
        fired = np.atleast_2d(np.asarray(fired, dtype=bool))
        size = fired.shape[1]
        drawn = index + np.arange(size) / 1000 if outputs is None else np.asarray(outputs[index])
        check.add(drawn, fired, None if keys is None else keys[index])
    return check


RATES = (0.5, 0.2, 0.01)


def expectations(length: int, statistic: Callable[[tuple[int, ...]], float]) -> list[float]:
    """Return the expected e-value at each of `RATES`, over all sequences of a Bernoulli event.

    `statistic` takes a sequence and returns the logarithm of the e-value.
    """
    totals = np.zeros(len(RATES))
    rates = np.array(RATES)
    for sequence in itertools.product((0, 1), repeat=length):
        ones = sum(sequence)
        totals += rates**ones * (1 - rates) ** (length - ones) * math.exp(statistic(sequence))
    return totals.tolist()


def foretold(shape: tuple[int, ...], **kind: Any) -> Callable[[tuple[int, ...]], float]:
    """Return a function that computes the forecasters' evidence in a sequence.

    The sequence is cut into calls of the given sizes.
    """
    ends = np.cumsum(shape)[:-1]
    return lambda sequence: check_of(np.split(np.array(sequence), ends), **kind)._foretold()


# --- never more than promised: by enumeration ---


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(10,), (5, 5), (4, 3, 3), (1, 2, 3, 4)])
def test_the_forecasters_earn_nothing_on_independent_draws(shape) -> None:
    assert max(expectations(10, foretold(shape))) <= 1 + 1e-12


@pytest.mark.slow
def test_nor_where_the_event_changes_on_the_way() -> None:
    keys = ["a", "a", "b", "c"]
    assert max(expectations(10, foretold((3, 2, 3, 2), keys=keys))) <= 1 + 1e-12


@pytest.mark.slow
def test_the_test_of_repeats_earns_nothing_on_independent_discrete_draws() -> None:
    """Check that the test of repeats gains nothing on independent discrete draws.

    The draws themselves are coins, so calls often begin alike.
    """

    def repeated(sequence: tuple[int, ...]) -> float:
        check = IndependenceCheck("f")
        for call in np.split(np.array(sequence), 4):
            check.add(call, np.zeros((1, len(call)), dtype=bool))
        return check._repeated()

    assert max(expectations(12, repeated)) <= 1 + 1e-12


@pytest.mark.slow
def test_one_that_forgets_its_denominator_is_found_out(monkeypatch) -> None:
    """Check that a mutant of the statistic has an expected e-value above 1.

    The mutant uses one half instead of the best rate in hindsight.
    """

    def wrong(self: Any) -> Any:
        on, off = self.counts[..., 1], self.counts[..., 0]
        forecast = independence.special.betaln(on + 0.5, off + 0.5) - math.log(math.pi)
        logs = forecast.sum(axis=-1)[:, 0] + (on + off).sum(axis=-1)[:, 0] * math.log(2)
        return np.concatenate([logs, self.calls[:, 0] + self.draws * math.log(2)])

    monkeypatch.setattr(independence._Segment, "log_evidence", wrong)
    assert max(expectations(10, foretold((5, 5)))) > 1


@pytest.mark.sampled
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("calls", "rate"),
    [
        *[(4, 0.5), (4, 0.1), (4, 0.003), (16, 0.1)],
        *[(16, 0.5), (16, 0.003), (64, 0.5), (64, 0.003), (64, 0.1)],
    ],
)
def test_honest_calls_are_refused_no_more_often_than_said(monkeypatch, calls, rate) -> None:
    """Check that honest calls are refused at most as often as promised.

    The level is 0.2, so that refusals can be counted. The false-alarm rate of this test is 1e-6.
    """
    monkeypatch.setattr(independence, "FALSE_REFUSAL", 0.2 * 4)
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(300):
        outputs = rng.random((calls, 100))
        try:
            check_of(outputs < rate, outputs).judge()
        except MechanismError:
            alarms += 1
    assert binom.sf(alarms - 1, 300, 0.2) > FALSE_ALARM


@pytest.mark.parametrize("dtype", ["longdouble", "U9", "S9", "aligned"])
def test_bytes_that_are_no_values_are_not_compared(dtype) -> None:
    """Check that bytes that are not values are not compared.

    Such bytes lie between the fields of a record, behind a short text, or in a long double.
    """
    rng = np.random.default_rng(6)
    kind = np.dtype([("a", "i1"), ("b", "f8")], align=True) if dtype == "aligned" else dtype
    check = IndependenceCheck("f")
    for fill in range(CALLS):
        values = rng.integers(2, size=64)
        call = np.frombuffer(bytearray([fill]) * (64 * np.dtype(kind).itemsize), dtype=kind).copy()
        if dtype == "aligned":
            call["a"], call["b"] = values, -0.0 if fill % 2 else 0.0
        else:
            call[:] = values
        check.add(call, np.zeros((1, 64), dtype=bool))
    check.judge()
    assert check._copies == 0


@pytest.mark.slow
def test_the_width_of_a_text_foretells_nothing() -> None:
    """Check that the width of a text predicts nothing.

    The longest text of a call sets the width of all texts, and the first draws must not reveal this
    width.
    """

    def evidence(sequence: tuple[int, ...]) -> float:
        calls = np.split(np.array(sequence), [5])
        outputs = [np.array(["yes, indeed" if fired else "no" for fired in call]) for call in calls]
        return check_of(calls, outputs)._foretold()

    assert max(expectations(10, evidence)) <= 1 + 1e-12


@pytest.mark.parametrize("shape", [(5, 5, 5), (3, 3, 3, 3, 3)])
@pytest.mark.slow
def test_one_may_stop_at_any_comparison(shape) -> None:
    """Check that the evidence is valid at every comparison at which one may stop.

    A compared call is never used as an original, because its draws would be tossed twice.
    """
    total = 0.0
    for sequence in itertools.product((0, 1), repeat=sum(shape)):
        check, best = IndependenceCheck("f"), 0.0
        for call in np.split(np.array(sequence), np.cumsum(shape)[:-1]):
            check.add(call, np.zeros((1, len(call)), dtype=bool))
            best = math.exp(check._repeated())
            if best > 1:
                break
        total += best / 2 ** len(sequence)
    assert total <= 1 + 1e-12


# --- detected dependence ---


def laplace(rng: np.random.Generator, size: int) -> Any:
    return rng.laplace(size=size)


def by_call(rng: np.random.Generator, size: int) -> Any:
    return rng.laplace() + 1e-9 * rng.normal(size=size)


def in_groups(rng: np.random.Generator, size: int, *, of: int) -> Any:
    return np.repeat(laplace(rng, -(-size // of)), of)[:size]


def in_tiles(rng: np.random.Generator, size: int, *, of: int) -> Any:
    return np.tile(laplace(rng, -(-size // of)), of)[:size]


def four_bit_seed(rng: np.random.Generator, size: int) -> Any:
    return laplace(np.random.default_rng(int(rng.integers(16))), size)


@functools.cache
def _kept(key: int, size: int) -> Any:
    return laplace(np.random.default_rng(key), size)


def memoised(rng: np.random.Generator, size: int) -> Any:
    return _kept(int(rng.integers(64)), size)


SHARED = {
    "by call": by_call,
    **{f"groups of {n}": functools.partial(in_groups, of=n) for n in (2, 3, 4, 8)},
    **{f"tiles of {n}": functools.partial(in_tiles, of=n) for n in (2, 3, 8)},
    "4-bit seed": four_bit_seed,
    "memoised": memoised,
}


def noisy(noise: Noise) -> Any:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data[0, 0] + noise(rng, size)

    return mechanism


def refusals(name: str, seeds: int, **options: Any) -> tuple[int, int]:
    """Count refusals and refutations in whole audits of a mechanism that satisfies its claim."""
    refused = wrong = 0
    for seed in range(seeds):
        try:
            result = audit(noisy(SHARED[name]), PureDP(1.0), PAIR, seed=seed, id=name, **options)
            wrong += result.certified_epsilon > 1
        except MechanismError:
            refused += 1
    return refused, wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_sequential_audits_refuse_shared_noise_and_never_certify_it(name) -> None:
    """Check that sequential audits refuse shared noise and never certify more than the claim.

    The test has 200 audits of each case that was once certified wrongly, and 40 audits of each
    slower case.
    """
    seeds = 200 if name == "by call" or name.startswith("groups") else 40
    assert refusals(name, seeds, method="sequential", draws=20_000) == (seeds, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_fixed_audits_of_few_draws_refuse_shared_noise(name) -> None:
    assert refusals(name, 10, draws=2000, failure_prob=0.05) == (10, 0)


@pytest.mark.parametrize("seed", [12, 106, 135])
def test_the_false_alarm_that_was_found(seed) -> None:
    """Check that a draw shared by a whole call is refused.

    With these seeds, an audit that judged each batch once refuted the claim.
    """

    def shared(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return data[0] + rng.laplace() + 1e-9 * rng.normal(size=size)

    pair = NeighborPair([0.0], [1.0])
    with pytest.raises(MechanismError, match="shares its noise"):
        audit(
            shared, PureDP(1.0), pair, draws=100_000, seed=seed, method="sequential", mutants=None
        )


@pytest.mark.slow
def test_noise_shared_in_any_order_is_seen_once_many_draws_share_it() -> None:
    def shuffled(rng: np.random.Generator, size: int) -> Any:
        return rng.permutation(in_groups(rng, size, of=8))

    for seed in range(10):
        with pytest.raises(MechanismError, match="rates differ between calls"):
            audit(noisy(shuffled), PureDP(1.0), PAIR, seed=seed, draws=20_000, mutants=None)


def test_rates_that_differ_between_calls_are_seen() -> None:
    rng = np.random.default_rng(2)
    differing = rng.random((CALLS, 1000)) < rng.beta(40, 40, size=(CALLS, 1))
    with pytest.raises(MechanismError, match="rates differ between calls"):
        check_of(differing).judge()
    check_of(rng.random((CALLS, 1000)) < 0.5).judge()


def test_a_late_beginning_is_not_hidden_by_a_long_honest_one() -> None:
    rng = np.random.default_rng(3)
    honest, late = rng.random((400, 50)), np.repeat(rng.random((20, 10)), 5, axis=1)
    calls = [call < 0.3 for call in [*honest, *late]]
    keys = [*range(400), *[400] * 20]
    with pytest.raises(MechanismError, match="shares its noise"):
        check_of(calls, keys=keys).judge()


@pytest.mark.parametrize("size", [30, 20_000])
@pytest.mark.parametrize("tiles", [2, 3, 4, 8, 16])
def test_tiles_of_long_calls_are_seen_too(tiles, size) -> None:
    rng = np.random.default_rng(4)
    calls = [np.tile(rng.random(-(-size // tiles)), tiles)[:size] < 0.2 for _ in range(CALLS)]
    with pytest.raises(MechanismError, match="shares its noise"):
        check_of(calls).judge()


def repeated(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + np.repeat(rng.laplace(size=(size + 9) // 10), 10)[:size]


def sticky(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    fresh = rng.random(size) >= 0.9
    fresh[0] = True
    return data.sum() + rng.laplace(size=size)[np.maximum.accumulate(fresh * np.arange(size))]


def subsampled_once(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    """Subsample the users once for all draws, which is a common mistake in vectorised code."""
    kept = data[:, 0] * (rng.random(len(data)) < 0.5)
    return kept.sum() + rng.laplace(size=size) / 4


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("mechanism", [repeated, sticky, subsampled_once])
def test_dependent_draws_are_refused(mechanism, sequential) -> None:
    pair = NeighborPair(np.zeros((20, 1)), np.r_[np.zeros((19, 1)), [[1.0]]])
    with pytest.raises(MechanismError, match=r"shares its noise.*Draw noise of shape \[size"):
        audit(
            mechanism,
            PureDP(1.0),
            pair,
            draws=100_000,
            seed=1,
            method="sequential" if sequential else "fixed",
            mutants=None,
        )


def test_noise_drawn_once_and_returned_many_times_is_refused() -> None:
    def once(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.full(size, data.sum() + rng.laplace())

    def coin(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return np.full(size, rng.random() < 0.3 + 0.4 * data.sum())

    for mechanism, seed in itertools.product((once, coin), range(5)):
        with pytest.raises(MechanismError, match="shares its noise"):
            audit(mechanism, PureDP(1.0), PAIR, draws=10_000, seed=seed, mutants=None)


def test_rare_answers_from_a_generator_of_its_own_are_refused_as_copies() -> None:
    def own(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return (np.random.default_rng(0).random(size) < 0.004 * (size > 64)).astype(int)

    with pytest.raises(MechanismError, match=r"ignores rng|shares its noise"):
        audit(own, PureDP(1.0), PAIR, draws=100_000, seed=1, mutants=None)


def test_copies_are_counted_in_the_refusal() -> None:
    with pytest.raises(
        MechanismError,
        match=r"ignores rng: \d+ of 64 calls return the draws of another call",
    ):
        audit(noisy(four_bit_seed), PureDP(1.0), PAIR, draws=20_000, seed=1, mutants=None)


def test_draws_that_depend_on_their_position_are_not_called_copies() -> None:
    """Check the refusal of a mechanism whose every third draw has no answer."""

    def every_third(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        outputs = data.sum() + rng.laplace(size=size)
        outputs[::3] = np.nan
        return outputs

    with pytest.raises(MechanismError, match="equal at the same positions of several calls"):
        audit(every_third, PureDP(1.0), PAIR, draws=20_000, seed=1, mutants=None)


@pytest.mark.parametrize("dtype", ["U3", "S3", "i8", [("a", "f8"), ("b", "i4")]])
def test_copies_of_any_kind_of_output_are_seen(dtype) -> None:
    rng = np.random.default_rng(5)
    call = rng.integers(100, size=50)
    made = np.array([(x, 1) for x in call], dtype=dtype) if isinstance(dtype, list) else call
    fired = np.zeros((1, 50), dtype=bool)
    check = IndependenceCheck("f")
    for _ in range(4):
        check.add(np.asarray(made).astype(dtype), fired)
    assert check._copies == 2  # each call is compared once
    with pytest.raises(MechanismError, match="ignores rng"):
        check.judge()
