"""Tests that cuts of several scores are judged as if each score were alone."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.events import Goal, learn
from dpaudit.events.cuts import Cuts, conservative_rates, cut, pairs_of_cuts
from dpaudit.events.encoding import Column
from dpaudit.events.features import Feature
from dpaudit.events.scores import FeatureScore

SCORE = FeatureScore.learn(Feature(Column("output"), lambda x: x[:, 0], True), np.array([0.5]))[0]


def cuts_of(left_draws: int, right_draws: int, shift: float = 1.0) -> Cuts:
    rng = np.random.default_rng(left_draws)
    found = cut(SCORE, rng.normal(shift, size=left_draws), rng.normal(size=right_draws))
    assert found is not None
    return found


@pytest.mark.parametrize("careful", [False, True])
@pytest.mark.parametrize("near", [None, (120, 40)])
def test_pairs_of_several_scores_are_the_pairs_of_each(
    near: tuple[int, int] | None, careful: bool
) -> None:
    """The scores have different numbers of draws, as learnt and plain scores have."""
    scores = [cuts_of(3000, 2000), cuts_of(400, 700, -1.0), cuts_of(40, 40)]
    sides = ["left", "right", "left"]
    together = pairs_of_cuts(scores, sides, [near] * 3, careful)
    for i, (score, side) in enumerate(zip(scores, sides, strict=True)):
        alone = pairs_of_cuts([score], [side], [near], careful)
        part = slice(together.starts[i], together.starts[i + 1])
        for name in ("upper", "lower", "correct", "wrong"):
            assert np.array_equal(getattr(together, name)[part], getattr(alone, name))
    assert together.starts[-1] == len(together.upper)


def test_pairs_of_fewer_draws_are_judged_with_more_caution() -> None:
    values = np.arange(50.0)
    few = cut(SCORE, values + 20, values)
    many = cut(SCORE, np.repeat(values, 100) + 20, np.repeat(values, 100))
    assert few is not None
    assert many is not None
    assert np.array_equal(few.thresholds, many.thresholds)
    found = pairs_of_cuts([few, many], ["left", "left"], [None, None], False)
    half = found.starts[1]
    assert np.array_equal(found.upper[:half], found.upper[half:])
    assert (found.correct[:half] <= found.correct[half:]).all()
    assert (found.wrong[:half] >= found.wrong[half:]).all()
    assert found.correct[:half].sum() < 0.95 * found.correct[half:].sum()


def test_a_careful_judgement_moves_the_rates_of_rare_events_only() -> None:
    cuts = cuts_of(4000, 4000)
    plain, careful = (
        np.array(conservative_rates([cuts], ["left"], careful)) for careful in (False, True)
    )
    assert (careful[0] <= plain[0]).all()
    assert (careful[1] >= plain[1]).all()
    pooled = (cuts.hits["left"] + cuts.hits["right"]) / 8000
    middle, rare = np.abs(pooled - 0.5).argmin(), np.abs(pooled - 0.001).argmin()
    gained = np.abs(careful - plain) / np.sqrt(np.clip(plain * (1 - plain), 1e-4, 1) / 4000)
    assert gained[:, middle].max() < 0.05
    assert gained[:, rare].min() > 0.3


def test_a_careful_judgement_believes_less_of_many_rare_events() -> None:
    """The best rare events of this mechanism, which has epsilon = 0.1, look much better by chance.

    The failure probabilities of the goal are those of an audit with a million draws.
    """
    steps = np.full(5, 0.2)
    grid = np.linspace(0, 3, 5)
    believed = []
    for careful in (False, True):
        goal = Goal(0.0, grid, np.zeros(5), 700_000, 0.04, 0.001, careful=careful)
        values = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            noise = rng.laplace(scale=10.0, size=(2, 5000, 5))
            values.append(learn(noise[0] + steps, noise[1], goal, rng=rng).objective[0])
        believed.append(np.mean(values))
    assert believed[0] > 0.3
    assert believed[1] < 0.15
