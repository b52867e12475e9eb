"""The slack frontier: what the same audit certifies of less noise."""

from __future__ import annotations

import pytest

from dpaudit import AdditiveNoise, ApproxDP, AuditResult, NeighborPair, PureDP, audit
from dpaudit.results import charts
from dpaudit.stats import oracles
from dpaudit.store import family_wise_error


def laplace_with(multiplier):
    def mechanism(data, size, *, rng):
        return data.sum() + 2.0 * multiplier * rng.laplace(size=size)

    return mechanism


SLACK_PAIR = NeighborPair([[0.0]], [[1.0]])


def test_slack_tells_how_far_the_noise_could_shrink():
    """The noise is twice what 1-DP needs: it stands at 0.6 of it and falls at 0.4."""
    result = audit(
        laplace_with(1.0),
        PureDP(1.0),
        SLACK_PAIR,
        draws=20_000,
        seed=1,
        mutants=[laplace_with(0.3)],
        slack={x: laplace_with(x) for x in (0.4, 0.8, 0.6)},
    )
    assert [point.multiplier for point in result.slack.points] == [0.8, 0.6, 0.4]
    assert [point.refuted for point in result.slack.points] == [False, False, True]
    assert result.slack.refuted_from == 0.4
    assert "slack      refuted with 0.4 times the noise" in str(result)
    assert AuditResult.from_json(result.to_json()).slack == result.slack
    again = audit(
        laplace_with(1.0),
        PureDP(1.0),
        SLACK_PAIR,
        draws=20_000,
        seed=1,
        mutants=[laplace_with(0.3)],
    )
    assert again.epsilon == result.epsilon  # the frontier changes nothing else
    assert again.slack is None
    assert family_wise_error([result]) == pytest.approx(3e-6)  # itself, its mutant, its frontier
    assert family_wise_error([again]) == pytest.approx(2e-6)


def test_the_picture_holds_the_mechanism_itself():
    slack = {0.5: laplace_with(0.5), 0.01: laplace_with(0.01)}
    result = audit(
        laplace_with(1.0), PureDP(1.0), SLACK_PAIR, draws=20_000, seed=1, slack=slack, mutants=None
    )
    _, line, stands, refuted = charts.slack(result).panels[0].series
    assert [multiplier for multiplier, _ in line.points] == [0.01, 0.5, 1.0]
    assert (stands.label, refuted.label) == ("stands", "refuted")
    assert refuted.points == [(0.01, 3.0)]  # cut at three times the claim
    assert charts.slack(result).caption.startswith("With 0.01 times the noise")


def test_slack_of_an_exact_profile():
    def centers(data):
        return data.sum()

    result = audit(
        AdditiveNoise(centers, scale=10.0),
        ApproxDP(1.0, 1e-6),
        SLACK_PAIR,
        seed=1,
        slack={0.5: AdditiveNoise(centers, scale=5.0), 0.1: AdditiveNoise(centers, scale=1.0)},
        mutants=None,
    )
    assert [point.refuted for point in result.slack.points] == [False, True]
    assert result.slack.points[1].certified_epsilon == pytest.approx(
        oracles.gaussian(1.0, 1.0).epsilon(1e-6)
    )


@pytest.mark.parametrize(
    ("slack", "error"),
    [
        ({}, "slack must be a dict"),
        ([0.5], "slack must be a dict"),
        ({0.0: laplace_with(1)}, "each key of slack must be a finite number > 0"),
        ({0.5: 3}, "slack must hold mechanisms"),
        ({0.5: AdditiveNoise(lambda data: data.sum(), scale=1.0)}, "slack must hold mechanisms of"),
    ],
)
def test_bad_slack_is_refused(slack, error):
    with pytest.raises((TypeError, ValueError), match=error):
        audit(
            laplace_with(1.0),
            PureDP(1.0),
            SLACK_PAIR,
            draws=1000,
            seed=1,
            slack=slack,
            mutants=None,
        )
