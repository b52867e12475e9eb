"""Tests of the p-values of refutations, by enumeration.

A p-value is at most a with probability at most a. Regions of different failure probabilities are
not nested, because each region orders the outcomes by its own evidence. The property of p-values is
therefore tested, not inferred.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.engine import counts
from dpaudit.engine.certificate import Tally
from dpaudit.events import Event
from dpaudit.stats.joint import Counts, Target
from dpaudit.stats.rates import RateBounds

DRAWS, FAILURE_PROB = 12, 0.45
AIM = Target(delta=0.0)
NOTHING: Any = None


def p_values(epsilon: float) -> np.ndarray[Any, Any]:
    """Return the p-values of all outcomes of an event declared likelier on the left.

    The value is 1 if the claim is not refuted.
    """
    found = np.ones((DRAWS + 1, DRAWS + 1))
    task: Any = SimpleNamespace(failure_prob=FAILURE_PROB)
    event = Event(NOTHING, 0.0, True, "left", NOTHING, AIM)
    for a, b in itertools.product(range(DRAWS + 1), repeat=2):
        seen = Counts(a, DRAWS, b, DRAWS)
        bound = RateBounds.from_counts(seen, "left", FAILURE_PROB, AIM)
        if bound.lower_epsilon(0.0) > epsilon:
            found[a, b] = counts._p_value(task, Tally(event, seen), 1.0, (epsilon, 0.0))
    return found


def worst(found: np.ndarray[Any, Any], epsilon: float) -> float:
    """Return the largest ratio of P(p-value <= a) to a.

    The maximum is over all a and all rates on the edge of the claim.
    """
    rare = np.linspace(0.005, 1 / (1 + math.exp(epsilon)), 60)
    ways = np.arange(DRAWS + 1)[:, None]
    left = binom.pmf(ways, DRAWS, math.exp(epsilon) * rare)
    right = binom.pmf(ways, DRAWS, rare)
    ratios = [
        np.einsum("ag,ab,bg->g", left, (found <= level).astype(float), right).max() / level
        for level in np.unique(found[found < 1])
    ]
    return float(max(ratios))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_p_values_are_small_no_more_often_than_they_say(epsilon: float) -> None:
    found = p_values(epsilon)
    assert len(np.unique(found)) > 4
    assert 0.5 < worst(found, epsilon) <= 1
    assert worst(found / 2, epsilon) > 1  # this p-value omits one of two sides
