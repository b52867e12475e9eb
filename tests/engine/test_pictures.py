"""Tests of pictures of guesses.

A picture shows both regions, and each bin is on one side of a cut.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.engine.pictures import picture
from dpaudit.events import Encoder, Event, Guess, scalar_score
from dpaudit.stats import Target

Floats = NDArray[np.float64]
AIM = Target(delta=0.0)


def _guess(outputs: NDArray[Any], lower: float, upper: float, *, rising: bool = True) -> Guess:
    """Return a guess of left from `upper` on and of right below `lower`, or the reverse."""
    encoder = Encoder.learn(outputs)
    score = scalar_score(encoder, encoder(outputs))
    left, right = (upper, lower) if rising else (lower, upper)
    return Guess(
        Event(score, left, rising, "left", encoder, AIM),
        Event(score, right, not rising, "right", encoder, AIM),
    )


def _draws(size: int = 5000) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4)
    return 1 + rng.laplace(size=size), rng.laplace(size=size)


def _within(counts: tuple[int, ...], where: tuple[bool, ...]) -> int:
    return sum(count for count, here in zip(counts, where, strict=True) if here)


@pytest.mark.parametrize("rising", [True, False])
@pytest.mark.parametrize(
    ("lower", "upper"), [(-0.3, 1.3), (0.5, 0.5), (0.1, 0.4), (-2.0, 3.1), (-9.0, 9.0)]
)
def test_both_regions_of_a_guess_hold_exactly_what_is_guessed(
    lower: float, upper: float, rising: bool
) -> None:
    left, right = _draws()
    guess = _guess(left, lower, upper, rising=rising)
    shown = picture(guess, left, right)
    for outputs, counts in ((left, shown.left), (right, shown.right)):
        said = guess(outputs)
        assert _within(counts, shown.inside) == (said == 1).sum()
        assert _within(counts, shown.inside_right) == (said == -1).sum()
    assert not any(a and b for a, b in zip(shown.inside, shown.inside_right, strict=True))
    assert shown.edges is not None
    assert {lower, upper} <= set(shown.edges)
    widths = np.diff(shown.edges)
    assert widths == pytest.approx(np.full(len(widths), widths[0]))
    assert 24 <= len(shown.bins) <= 100


def test_cuts_nearer_than_half_a_bin_keep_their_bins() -> None:
    left, right = _draws()
    shown = picture(_guess(left, 0.5, 0.501), left, right)
    assert shown.edges is not None
    assert 0.501 in shown.edges
    assert len(shown.bins) == 48
    assert all(a != b for a, b in zip(shown.inside, shown.inside_right, strict=True))


def test_a_guess_among_few_values_shades_both_kinds() -> None:
    left, right = np.array([0, 1, 2, 2, 3]), np.array([0, 0, 1, 1, 2])
    shown = picture(_guess(left, 1.0, 2.0), left, right)
    assert shown.edges is None
    assert shown.bins == ("0", "1", "2", "3")
    assert shown.inside == (False, False, True, True)
    assert shown.inside_right == (True, False, False, False)


def test_an_event_has_one_region() -> None:
    left, right = _draws()
    shown = picture(_guess(left, 0.0, 1.0).left, left, right)
    assert shown.inside_right == ()
    assert _within(shown.left, shown.inside) == (left >= 1.0).sum()


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e9, 1e300])
def test_edges_rise_at_any_scale(scale: float) -> None:
    left, right = (scale * outputs for outputs in _draws(500))
    cuts = scale * -0.3, scale * 1.3
    shown = picture(_guess(left, *cuts), left, right)
    assert shown.edges is not None
    assert (np.diff(shown.edges) > 0).all()
    assert sum(shown.left) == sum(shown.right) == 500
