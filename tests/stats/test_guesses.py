"""Tests of guesses at randomised draws.

The tests check exact coverage by enumeration, and bounds from the two rates.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special
from scipy.special import betaincinv
from scipy.stats import binom, multinomial

from dpaudit.stats import (
    SHARE_OF_GUESSING,
    GuessCounts,
    guess_bounds,
    guess_refutation_prob,
    hockey_stick,
    renyi_divergence,
    tradeoff_of_profile,
)

DRAWS = 14
ALPHAS = [0.05, 0.3]


def all_counts(draws: int) -> list[GuessCounts]:
    return [GuessCounts(c, w, draws) for c in range(draws + 1) for w in range(draws + 1 - c)]


@functools.cache
def bounds_of(counts: GuessCounts, alpha: float) -> Any:
    return guess_bounds(counts, alpha)


def wrong_about(epsilon: float, delta: float, w: float, alpha: float) -> float:
    """Return the exact probability that epsilon at `delta` is overstated.

    The rate c of correct guesses is the largest rate that epsilon allows.
    """
    c = min(math.exp(epsilon) * w + delta, 1 - w)
    law = multinomial(DRAWS, [c, w, max(1 - c - w, 0.0)])
    return sum(
        float(law.pmf([seen.correct, seen.wrong, DRAWS - seen.guesses]))
        for seen in all_counts(DRAWS)
        if bounds_of(seen, alpha).lower_epsilon(delta) > epsilon + 1e-12
    )


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1, 0.4])
def test_epsilon_is_overstated_with_probability_alpha_at_most(
    alpha: float, epsilon: float, delta: float
) -> None:
    for w in np.linspace(0.0, (1 - delta) / (1 + math.exp(epsilon)), 9):
        assert wrong_about(epsilon, delta, float(w), alpha) <= alpha + 1e-12


def test_the_enumeration_catches_a_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the enumeration catches a mutant that counts one wrong guess too few."""

    def flattered(counts: GuessCounts, alpha: float) -> Any:
        wrong = max(counts.wrong - 1, 0)
        return guess_bounds(GuessCounts(counts.correct, wrong, counts.draws), alpha)

    monkeypatch.setattr(f"{__name__}.bounds_of", functools.cache(flattered))
    assert max(wrong_about(0.4, 0.0, float(w), 0.05) for w in (0.1, 0.2, 0.4)) > 0.06


@pytest.mark.parametrize("alpha", ALPHAS)
def test_all_that_is_read_off_holds_together(alpha: float) -> None:
    """Check that all bounds from the same guesses hold together.

    The true rates violate any of the bounds with probability at most alpha.
    """
    grid = np.array([0.0, 0.3, 1.0, 2.0])
    for c, w in [(0.5, 0.1), (0.2, 0.2), (0.1, 0.0), (0.7, 0.3), (0.02, 0.01)]:
        law = multinomial(DRAWS, [c, w, 1 - c - w])
        true = np.array([max(c - math.exp(e) * w, 1 - w - math.exp(e) * (1 - c), 0) for e in grid])
        failed = 0.0
        for seen in all_counts(DRAWS):
            found = np.array([bounds_of(seen, alpha).lower_delta(float(e)) for e in grid])
            if np.any(found > true + 1e-12):
                failed += float(law.pmf([seen.correct, seen.wrong, DRAWS - seen.guesses]))
        assert failed <= alpha + 1e-12


@given(st.integers(0, 500), st.integers(1, 500), st.integers(0, 1000))
def test_without_delta_it_is_one_binomial_bound(correct: int, wrong: int, abstained: int) -> None:
    seen = GuessCounts(correct, wrong, correct + wrong + abstained)
    share = 0.0 if correct == 0 else float(betaincinv(correct, wrong + 1, 0.05 * 0.99))
    best = math.log(share / (1 - share)) if share > 0.5 else 0.0
    assert guess_bounds(seen, 0.05).lower_epsilon(0.0) == pytest.approx(best, abs=1e-9)


def test_nothing_guessed_shows_nothing() -> None:
    bounds = guess_bounds(GuessCounts(0, 0, 10), 0.05)
    assert bounds.lower_epsilon(0.0) == bounds.lower_delta(0.5) == bounds.lower_mu() == 0.0


def test_it_saves_draws_where_both_tails_tell() -> None:
    """Check that guesses save draws if both tails are informative.

    The test compares bounds from guesses and from the joint region, at expected counts of
    randomised response.
    """
    from dpaudit.stats import Counts, RateBounds, Target

    n, rate = 1000, 1 / (1 + math.exp(-3.0))
    hits = round(n * rate)
    guessed = guess_bounds(GuessCounts(2 * hits, 2 * (n - hits), 2 * n), 1e-6)
    counted = RateBounds.from_counts(Counts(hits, n, n - hits, n), "left", 1e-6, Target(delta=0.0))
    assert guessed.lower_epsilon(0.0) > counted.lower_epsilon(0.0) + 0.1


# --- the pair of distributions that the two rates belong to -------------------------------------

pmfs = st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3).map(lambda w: np.array(w) / np.sum(w))


def turned(p: NDArray[np.float64], q: NDArray[np.float64]) -> tuple[Any, Any]:
    return np.concatenate([p, q]) / 2, np.concatenate([q, p]) / 2


@settings(max_examples=100)
@given(pmfs, pmfs, st.floats(0, 3), st.floats(1.1, 20))
def test_what_bounds_the_mechanism_bounds_the_guess(
    p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float, alpha: float
) -> None:
    star = turned(p, q)
    both = [hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)]
    assert hockey_stick(*star, epsilon) == pytest.approx(sum(both) / 2, abs=1e-12)
    worst = max(renyi_divergence(p, q, alpha), renyi_divergence(q, p, alpha))
    assert renyi_divergence(*star, alpha) <= worst + 1e-9


def test_the_trade_off_curve_is_read_off_soundly() -> None:
    """Check that the trade-off curve from guesses is sound.

    A curve below both directions lies below the curve from guesses.
    """
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.5, 0.3])
    c, w = (p[0] + q[1] + q[2]) / 2, (q[0] + p[1] + p[2]) / 2
    n = 10**9
    bounds = guess_bounds(GuessCounts(round(c * n), round(w * n), n), 0.05)
    alphas = np.linspace(0, 1, 41)
    epsilons = np.linspace(0, 4, 400)
    deltas = np.array(
        [max(hockey_stick(p, q, float(e)), hockey_stick(q, p, float(e))) for e in epsilons]
    )
    kept = tradeoff_of_profile(epsilons, deltas, alphas)
    assert np.all(bounds.upper_tradeoff(alphas) >= kept - 1e-4)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((-1, 0, 5), "correct must be an integer >= 0"),
        ((0, -1, 5), "wrong must be an integer >= 0"),
        ((3, 3, 5), "correct \\+ wrong must be at most draws = 5"),
        ((0, 0, 0), "draws must be an integer >= 1"),
    ],
)
def test_impossible_counts_are_refused(counts: tuple[int, int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        GuessCounts(*counts)


@pytest.mark.sampled
@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize(("c", "w"), [(0.7, 0.3), (0.35, 0.1), (0.1, 0.03)])
def test_the_predicted_power_is_the_probability_of_what_refutes(
    c: float, w: float, delta: float
) -> None:
    """Compare the predicted power with an enumeration.

    The prediction averages over quantiles of the guesses, not over all guesses, which costs a
    hundredth.
    """
    draws, alpha = 80, 0.1
    law = multinomial(draws, [c, w, 1 - c - w])
    for epsilon in (0.2, 0.8):
        exact = sum(
            float(law.pmf([seen.correct, seen.wrong, draws - seen.guesses]))
            for seen in all_counts(draws)
            if law.pmf([seen.correct, seen.wrong, draws - seen.guesses]) > 1e-9
            and bounds_of(seen, alpha).lower_epsilon(delta) > epsilon
        )
        predicted = guess_refutation_prob(
            c / (c + w), c + w, draws, epsilon=epsilon, delta=delta, failure_prob=alpha
        )
        assert predicted == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("draws", [1, 10, 1000, 2 * 10**10])
def test_the_predicted_power_has_no_largest_number_of_draws(draws):
    share = special.expit(1.0) + 1.7 * math.sqrt(0.2 / draws)
    critical = binom.isf(0.05 * (1 - SHARE_OF_GUESSING), draws, special.expit(1.0))
    predicted = guess_refutation_prob(
        min(share, 1.0), 1.0, draws, epsilon=1.0, delta=0.0, failure_prob=0.05
    )
    assert predicted == pytest.approx(binom.sf(critical, draws, min(share, 1.0)), rel=1e-4)
    assert guess_refutation_prob(1.0, 0.0, draws, epsilon=1.0, delta=0.0, failure_prob=0.05) == 0.0
