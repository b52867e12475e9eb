"""Interactive mechanisms: budgets, odometers, the sparse vector, and streams with chosen inputs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from algorithms.common.tree import node
from dpaudit import Interactive, NeighborPair, PureDP

pytestmark = pytest.mark.nightly
EPSILON = 1.0
PAIR = NeighborPair(np.array([1.0, 1.0]), np.array([1.0, 0.0]))


class Budget:
    """Answer sums and counts until the budget is spent."""

    def __init__(self, data, rng):
        self.data, self.rng, self.spent = data, rng, 0.0

    def answer(self, query, epsilon):
        """Return a noisy answer, or raise an error if the budget does not suffice."""
        if self.spent + epsilon > EPSILON:
            raise RuntimeError("the budget is spent")
        self.spent += epsilon
        exact = {"sum": np.sum, "ones": np.count_nonzero}[query](self.data)
        return exact + self.rng.laplace(scale=1 / epsilon)


def budget(data, *, rng):
    return Budget(data, rng)


def ask_for_half(session, query):
    return session.answer(query, EPSILON / 2)


def audit_budget(auditor):
    session = Interactive(budget, ["sum", "ones"], ask=ask_for_half, rounds=4)
    auditor.check(session, PureDP(EPSILON, source="basic composition"), PAIR, draws=20_000)


class Retries(Budget):
    """Refund the budget of an answer that is impossible, such as a negative count."""

    def answer(self, query, epsilon):
        """Return a noisy answer, which costs nothing if it is negative."""
        value = super().answer(query, epsilon)
        if value < 0:
            self.spent -= epsilon
        return value


@pytest.mark.known_violation("an impossible answer is refunded, but it was released")
def audit_refunded_answers(auditor):
    session = Interactive(
        lambda data, *, rng: Retries(data, rng), ["sum", "ones"], ask=ask_for_half, rounds=8
    )
    auditor.check(session, PureDP(EPSILON), PAIR, draws=20_000)


class Confirming(Budget):
    """Answer whether a released sum is too high.

    Only released values are accepted. So every fixed sequence of values is refused.
    """

    def __init__(self, data, rng):
        super().__init__(data, rng)
        self.released = set()

    def answer(self, query, epsilon):
        """Return a noisy sum, or whether a released value is above the sum."""
        if isinstance(query, str):
            value = super().answer(query, epsilon)
            self.released.add(value)
            return value
        if query not in self.released:
            raise KeyError(query)
        return query > self.data.sum()


def confirming(data, *, rng):
    return Confirming(data, rng)


def ask_for_all(session, query):
    return session.answer(query, EPSILON)


def check_the_answer(transcript):
    """Ask for the sum, and then whether this sum is too high."""
    return transcript[-1][1] if transcript else "sum"


def audit_fixed_queries_miss_the_check(auditor):
    session = Interactive(confirming, ["sum", 0.5, 1.0, 1.5, 2.0], ask=ask_for_all, rounds=2)
    auditor.check(session, PureDP(EPSILON), PAIR, draws=10_000)


@pytest.mark.known_violation("whether a released sum is too high reveals the sign of its noise")
def audit_adaptive_queries_find_the_check(auditor):
    session = Interactive(confirming, ask=ask_for_all, rounds=2, strategies=[check_the_answer])
    auditor.check(session, PureDP(EPSILON), PAIR, draws=10_000)


class Odometer:
    """Answer every query, and report the epsilon spent so far."""

    def __init__(self, data, rng, counted=1.0):
        self.data, self.rng, self.counted, self.total = data, rng, counted, 0.0

    def __call__(self, epsilon):
        """Return a noisy sum."""
        self.total += self.counted * epsilon
        return self.data.sum() + self.rng.laplace(scale=1 / epsilon)


def spend_by_the_answer(transcript):
    """Spend much if the last answer was high, and little otherwise."""
    return 0.5 if transcript and transcript[-1][1] > 1.5 else 0.25


def odometer_of(counted):
    return Interactive(
        lambda data, *, rng: Odometer(data, rng, counted),
        {"a little": 0.25, "much": 0.5},
        strategies=[spend_by_the_answer],
        rounds=5,
        spent=lambda session: session.total,
        limit=EPSILON,
    )


def audit_odometer(auditor):
    claim = PureDP(EPSILON, source="Rogers, Roth, Ullman and Vadhan 2016")
    auditor.check(odometer_of(1.0), claim, PAIR, draws=40_000)


@pytest.mark.known_violation("the odometer reports only half of the loss")
def audit_odometer_that_reports_half(auditor):
    auditor.check(odometer_of(0.5), PureDP(EPSILON), PAIR, draws=40_000)


class Threshold:
    """AboveThreshold of user_level_sco v2, Algorithm 3, one query at a time."""

    def __init__(self, data, rng, noisy=True):
        self.data, self.rng, self.noisy, self.is_over = data, rng, noisy, False
        self.threshold = 1.5 - rng.laplace(scale=2 / EPSILON)  # line 1

    def __call__(self, query):
        """Return whether the noisy query is at or above the noisy threshold."""
        if self.is_over:
            raise RuntimeError("the sparse vector has halted")
        noise = self.rng.laplace(scale=4 / EPSILON) if self.noisy else 0.0  # line 4
        self.is_over = query(self.data) + noise < self.threshold  # line 5
        return not self.is_over


def up(data):
    return data.sum()


def down(data):
    return 3 - data.sum()


def audit_sparse_vector(auditor):
    session = Interactive(lambda data, *, rng: Threshold(data, rng), [up, down], rounds=6)
    claim = PureDP(EPSILON, source="user_level_sco v2 Lemma 17")
    auditor.check(session, claim, PAIR, draws=20_000)


@pytest.mark.known_violation("queries without noise reveal the values (Stoddard et al. 2014)")
def audit_sparse_vector_without_query_noise(auditor):
    session = Interactive(lambda data, *, rng: Threshold(data, rng, False), [up, down], rounds=6)
    auditor.check(session, PureDP(EPSILON), PAIR, draws=20_000)


TIMES = 4


class Counter:
    """Count a stream with the binary tree mechanism, while the adversary chooses the inputs."""

    def __init__(self, data, rng):
        self.data, self.rng, self.stream, self.nodes = data, rng, [], {}

    def __call__(self, event):
        """Add an event to the stream, and return the noisy count so far."""
        if len(self.stream) == TIMES:
            raise RuntimeError("the stream is over")
        if event == "secret" and any(isinstance(one, float) for one in self.stream):
            event = 0  # the user has one event
        self.stream.append(float(self.data[-1]) if event == "secret" else event)
        levels = 1 + math.ceil(math.log2(TIMES))
        total = 0.0
        for first, last in node(len(self.stream)):
            if (first, last) not in self.nodes:
                noise = self.rng.laplace(scale=levels / EPSILON)
                self.nodes[first, last] = sum(self.stream[first - 1 : last]) + noise
            total += self.nodes[first, last]
        return total


def audit_stream_with_chosen_inputs(auditor):
    session = Interactive(lambda data, *, rng: Counter(data, rng), ["secret", 0, 1], rounds=TIMES)
    claim = PureDP(EPSILON, source="Dwork, Naor, Pitassi and Rothblum 2010")
    auditor.check(session, claim, PAIR, draws=20_000)


class OneLedger:
    """Keep what is spent in one place for all sessions, which every new session resets."""

    spent = 0.0

    def __init__(self, data, rng):
        self.data, self.rng = data, rng
        OneLedger.spent = 0.0

    def __call__(self, query):
        """Return a noisy sum, once."""
        if OneLedger.spent:
            raise RuntimeError("the budget is spent")
        OneLedger.spent = EPSILON
        return self.data.sum() + self.rng.laplace(scale=1 / EPSILON)


@pytest.mark.known_violation("a new session on other data gives the old session a new budget")
def audit_interleaved_sessions(auditor):
    session = Interactive(
        lambda data, *, rng: OneLedger(data, rng), ["sum"], rounds=4, other=np.zeros(2)
    )
    auditor.check(session, PureDP(EPSILON), PAIR, draws=10_000)
