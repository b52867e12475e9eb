"""Audits of whole sessions: budgets and odometers of OpenDP and diffprivlib.

Install the packages with ``pip install '.[third-party]'``. OpenDP keeps its budgets and its noise
outside of Python, so a mutant with twice the epsilon is given.
"""

from __future__ import annotations

import os
from functools import cache, partial

import numpy as np
import pytest

from audits.third_party.audit_third_party import installed, opendp
from dpaudit import Interactive, NeighborPair, PureDP

# An exception of OpenDP otherwise takes 0.1 s, and a session that is over raises many.
os.environ["RUST_BACKTRACE"] = "0"

pytestmark = pytest.mark.nightly
EPSILON = 1.0
PAIR = NeighborPair(np.array([1, 1, 1]), np.array([1, 1, 0]))


# --- OpenDP ---


@cache
def sums(scale):
    """Return a measurement of a sum of values in [0, 1], of sensitivity 1 under replacement."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=int), size=3), dp.symmetric_distance()
    clamped = space >> dp.t.then_clamp((0, 1)) >> dp.t.then_sum()
    return clamped >> dp.m.then_laplace(scale)


@cache
def odometer():
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=int), size=3), dp.symmetric_distance()
    return dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())


@cache
def privacy_filter(budget):
    return opendp().c.make_privacy_filter(odometer(), d_in=2, d_out=budget)


def ask_for_sums(session, scale):
    return session(sums(scale))


def ask_for_louder_sums(session, scale):
    return session(sums(scale / 4))


SUMS = {"half": 2 / EPSILON, "quarter": 4 / EPSILON}
OPENDP = partial(Interactive, queries=SUMS, randomness=None)


def filter_of(budget, ask=ask_for_sums):
    return OPENDP(lambda data: privacy_filter(budget)(data.tolist()), rounds=6, ask=ask)


@installed("opendp")
def audit_opendp_filter(auditor):
    claim = PureDP(EPSILON, source="OpenDP make_privacy_filter")
    auditor.check(
        filter_of(EPSILON),
        claim,
        PAIR,
        draws=5_000,
        mutants=[filter_of(4 * EPSILON, ask_for_louder_sums)],
    )


def odometer_of(counted, ask=ask_for_sums):
    return OPENDP(
        lambda data: odometer()(data.tolist()),
        rounds=6,
        ask=ask,
        spent=lambda session: counted * session.privacy_loss(2),
        limit=EPSILON,
    )


@installed("opendp")
def audit_opendp_odometer(auditor):
    claim = PureDP(EPSILON, source="OpenDP make_fully_adaptive_composition")
    auditor.check(
        odometer_of(1), claim, PAIR, draws=5_000, mutants=[odometer_of(1 / 8, ask_for_louder_sums)]
    )


@cache
def composition(budget):
    """Return the measurement inside ``Context.compositor``, whose construction takes 0.1 s."""
    dp = opendp()
    space = dp.vector_domain(dp.atom_domain(T=int), size=3), dp.symmetric_distance()
    return dp.c.make_adaptive_composition(
        *space, dp.max_divergence(), d_in=2, d_mids=[budget / 2, budget / 2]
    )


def composition_of(budget, ask=ask_for_sums):
    return OPENDP(lambda data: composition(budget)(data.tolist()), rounds=4, ask=ask)


@installed("opendp")
def audit_opendp_adaptive_composition(auditor):
    claim = PureDP(EPSILON, source="OpenDP make_adaptive_composition")
    mutants = [composition_of(4 * EPSILON, ask_for_louder_sums)]
    auditor.check(composition_of(EPSILON), claim, PAIR, draws=5_000, mutants=mutants)


# --- diffprivlib ---


class Accountant:
    """Sums of diffprivlib that are charged to one BudgetAccountant."""

    def __init__(self, data, seed, budget):
        from diffprivlib import BudgetAccountant

        self.data, self.budget = data, BudgetAccountant(budget, 0)
        self.random = np.random.RandomState(seed)

    def __call__(self, epsilon):
        """Return a noisy sum."""
        from diffprivlib import tools

        return tools.sum(
            self.data,
            epsilon=epsilon,
            bounds=(0, 1),
            accountant=self.budget,
            random_state=self.random,
        )


def accountant_of(budget):
    return Interactive(
        lambda data, *, seed: Accountant(data, seed, budget),
        {"half": 0.5, "quarter": 0.25},
        rounds=8,
        randomness="integer",
    )


@installed("diffprivlib")
def audit_diffprivlib_accountant(auditor):
    claim = PureDP(EPSILON, source="diffprivlib BudgetAccountant")
    auditor.check(
        accountant_of(EPSILON), claim, PAIR, draws=5_000, mutants=[accountant_of(4 * EPSILON)]
    )
