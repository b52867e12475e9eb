"""Tests of which stored outputs explore, certify and are counted.

The tests check single outputs, and the number of wrong audits. For guesses, an audit counts the
outputs that fair coins chose. For a joint region, an audit counts all outputs that exploration did
not use.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from dpaudit import ApproxDP, GaussianDP, PureDP
from dpaudit.claims import Claim
from dpaudit.engine import counts
from dpaudit.engine.certificate import Certificate, Tally, parts_of
from dpaudit.engine.driver import certificate_of_stored
from dpaudit.engine.outputs import StoredDraws, _prepared
from dpaudit.engine.task import EXPLORE_SHARE, Run, Task
from dpaudit.events import Event, Guess
from dpaudit.mechanisms import IndependenceCheck, joined
from dpaudit.stats import Counts, oracles
from tests.statistical import FALSE_ALARM

Array = NDArray[Any]
Both = tuple[Array, Array]
FAILURE_PROB = 0.05
AUDITS = 120
CRITICAL = 21  # limit of wrong audits among 120; at most 6 are expected


@dataclass
class Seen:
    """The outputs that an audit used for each purpose."""

    task: Task
    explored: Both = field(default=(np.empty(0), np.empty(0)))
    certified: list[list[Array]] = field(default_factory=list)  # outputs of each side, by call
    ranked: Both | None = None
    chosen: list[Event | Guess] = field(default_factory=list)
    counted: Any = None
    found: Certificate | None = None

    def fresh(self, side: int) -> Array:
        """Return the certifying outputs of one side, in the order in which they were counted."""
        return joined(self.certified[side])


def look(left: Array, right: Array, claim: Claim, seed: int) -> Seen:
    """Audit outputs, and record the use of each output."""
    task, sampler = _prepared(claim, FAILURE_PROB, seed, "split", "split", left, right)
    seen = Seen(task)
    made: dict[int, Array] = {}

    class Watching(counts.IndependenceCheck):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            seen.certified.append([])

        def take(self, call: Any, key: Any = None) -> None:
            seen.certified[-1].append(made.pop(id(call)))
            super().take(call, key)

        @staticmethod
        def call(outputs: Array, fired: Any) -> Any:
            call = IndependenceCheck.call(outputs, fired)
            made[id(call)] = outputs
            return call

    def explore(*given: Any, **named: Any) -> Any:
        exploration = kept["explore"](*given, **named)
        selection = exploration.selection
        seen.explored, seen.chosen = exploration.draws, [selection.primary, *selection.profile]
        return exploration

    def count(*given: Any) -> Any:
        seen.counted = kept["_count"](*given)
        return seen.counted

    def ranked(run: Any, encoder: Any, left: Array, right: Array) -> Any:
        seen.ranked = left, right
        return kept["ranked"](run, encoder, left, right)

    instead: dict[str, Any] = {"explore": explore, "_count": count, "ranked": ranked}
    kept = {name: getattr(counts, name) for name in instead}
    with ExitStack() as stack:
        for name, watched in (instead | {"IndependenceCheck": Watching}).items():
            stack.enter_context(patch.object(counts, name, watched))
        seen.found = certificate_of_stored(task, sampler, "outputs")
    return seen


def laplace(n: int, m: int, seed: int, *, apart: float = 1.0) -> Both:
    rng = np.random.default_rng(seed)
    return apart + rng.laplace(size=n), rng.laplace(size=m)


def hits(event: Event, outputs: Array) -> int:
    return int(event.fires(event.score(event.encoder(outputs))).sum())


def assert_split(seen: Seen, both: Both) -> None:
    """Check that every output is used at most once, and that only the stated draws are counted."""
    for side, outputs in enumerate(both):
        spent, fresh = seen.explored[side], seen.fresh(side)
        assert len({*outputs.tolist()}) == len(outputs), "outputs that can be told apart"
        assert not {*spent.tolist()} & {*fresh.tolist()}
        assert len({*fresh.tolist()}) == len(fresh)
        assert {*spent.tolist(), *fresh.tolist()} <= {*outputs.tolist()}
    left, right = (seen.fresh(side) for side in (0, 1))
    all_left = [
        len(outputs) - len(spent) for outputs, spent in zip(both, seen.explored, strict=True)
    ]
    for one, tally in zip(seen.chosen, seen.counted[0], strict=seen.ranked is None):
        counted = [tally.counts] if tally.right is None else [tally.counts, tally.right]
        at = counted[0].draws_left, counted[0].draws_right
        if isinstance(one, Event):
            assert [*at] == all_left
        else:
            assert max(at) <= min(
                map(len, both)
            )  # coins were tossed for the smaller number of outputs
        for event, found in zip(parts_of(one), counted, strict=True):
            n, m = at
            assert found == Counts(hits(event, left[:n]), n, hits(event, right[:m]), m)
    if seen.ranked is not None:
        assert max(map(len, seen.ranked)) <= min(map(len, both))  # fair coins chose these outputs
        for side, outputs in enumerate(seen.ranked):
            at_coins = outputs[len(seen.explored[side]) :]
            assert at_coins.tolist() == seen.fresh(side)[: len(at_coins)].tolist()
            assert outputs.tolist() == joined([seen.explored[side], at_coins]).tolist()


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.integers(20, 300),
    st.integers(20, 300),
    st.sampled_from([PureDP(0.3), ApproxDP(0.3, 0.01), GaussianDP(0.3)]),
    st.integers(0, 10**6),
)
def test_no_output_is_used_both_to_explore_and_to_certify(
    n: int, m: int, claim: Claim, seed: int
) -> None:
    both = laplace(n, m, seed, apart=3.0)
    assert_split(look(*both, claim, seed), both)


@pytest.mark.parametrize("sizes", [(3000, 300), (300, 3000), (300, 300), (6000, 2500)])
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01)], ids=str)
def test_events_count_what_guesses_leave(sizes: tuple[int, int], claim: Claim) -> None:
    both = laplace(*sizes, seed=1, apart=2.0)
    seen = look(*both, claim, seed=1)
    assert_split(seen, both)
    assert seen.found is not None
    fewer = min(sizes)
    explored = int(EXPLORE_SHARE * fewer)
    assert sum(map(len, seen.explored)) == 2 * explored
    assert seen.found.draws == {"explore": explored, "certify": sum(sizes) // 2 - explored}
    events = [one for one in seen.chosen if isinstance(one, Event)]
    assert events, "what is looked at here"
    assert [len(seen.fresh(side)) + len(seen.explored[side]) for side in (0, 1)] == [*sizes]
    if seen.task.is_small:
        assert seen.ranked is not None
        tossed = sum(map(len, seen.ranked))
        assert 0.8 * 2 * fewer < tossed <= 2 * fewer
        at_coins = tossed - 2 * explored
        guesses = [t for t in seen.counted[0] if isinstance(t, Tally) and t.right]
        assert all(t.counts.draws_left + t.counts.draws_right == at_coins for t in guesses)


def test_what_has_no_order_wastes_nothing() -> None:
    rng = np.random.default_rng(3)
    left = np.where(rng.random(2000) < 0.5, "a", "b")
    right = np.where(rng.random(100) < 0.02, "a", "b")
    seen = look(left, right, PureDP(1.0), seed=1)
    assert seen.ranked is None
    counted = [tally.counts for tally in seen.counted[0] if isinstance(tally.chosen, Event)]
    spent = [len(side) for side in seen.explored]
    assert counted
    assert {(c.draws_left, c.draws_right) for c in counted} == {(2000 - spent[0], 100 - spent[1])}


def test_without_an_event_nothing_beyond_the_coins_is_drawn() -> None:
    both = laplace(3000, 300, seed=1)
    task, sampler = _prepared(PureDP(1.0), FAILURE_PROB, 1, "split", "split", *both)
    run = Run(task, None, "outputs", stored=sampler)
    exploration = counts.explore(run, sampler, share=EXPLORE_SHARE)
    event = parts_of(exploration.selection.primary)[0]
    guess = Guess(event, replace(event, above=not event.above, likelier="right"))
    selection = replace(exploration.selection, primary=guess, profile=())
    fresh = counts._Fresh.of(run, replace(exploration, selection=selection), None)
    assert fresh.beyond == {"left": 0, "right": 0}
    assert max(fresh.at_coins.values()) <= 300 - exploration.explored


# --- over many audits -------------------------------------------------------------------------


def nothing(n: int, m: int, seed: int) -> Both:
    """Return twelve coordinates of pure noise for both sides.

    By chance, some event looks significant.
    """
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 12)), rng.normal(size=(m, 12))


def lies(draw: Any, truth: Any, claim: Claim, audits: int) -> int:
    """Count the audits of a small number of stored outputs that certify something untrue.

    One side has more outputs than the other side.
    """
    wrong = 0
    for seed in range(audits):
        sizes = (60, 300) if seed % 2 else (300, 60)
        task, sampler = _prepared(claim, FAILURE_PROB, seed, "lies", "lies", *draw(*sizes, seed))
        found = certificate_of_stored(task, sampler, "outputs")
        exact = np.array([truth.delta(e) if truth else 0.0 for e in task.grid])
        above = np.array(found.profile.certified_delta) > exact + 1e-12
        most = truth.epsilon(0.0) if truth else 0.0
        wrong += bool(found.epsilon.lower > most + 1e-12 or above.any())
    return wrong


def test_the_critical_number_has_the_error_rate_that_is_said_of_it() -> None:
    assert binom.sf(CRITICAL - 1, AUDITS, FAILURE_PROB) < FALSE_ALARM


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(0.0)], ids=str)
def test_audits_of_stored_outputs_are_wrong_no_more_often_than_they_say(claim: PureDP) -> None:
    """Check that audits of stored outputs are wrong at most as often as promised.

    The outputs are pure noise, or Laplace noise that needs epsilon = 1.
    """
    if claim == PureDP(0.0):
        assert lies(nothing, None, claim, AUDITS) < CRITICAL
    else:
        assert lies(laplace, oracles.laplace(1.0, 1.0), claim, AUDITS) < CRITICAL


@pytest.mark.slow
@pytest.mark.statistical
def test_certifying_on_what_explored_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that an engine that certifies on exploration outputs fails the test.

    The mutant counts from the first output on, including exploration outputs.
    """
    call = StoredDraws.call

    def again(self: Any, data: Any, size: int, *labels: Any, side: str = "left") -> Any:
        if labels[0] == "certify" and labels[-1] == 0:
            self._taken[side] = 0
        return call(self, data, size, *labels, side=side)

    monkeypatch.setattr(StoredDraws, "call", again)
    assert lies(nothing, None, PureDP(0.0), AUDITS) >= CRITICAL
