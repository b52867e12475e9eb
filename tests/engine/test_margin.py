"""Tests of the noise margin, which is the certified epsilon of the same audit with less noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    AuditResult,
    NeighborPair,
    Outcomes,
    PureDP,
    Settings,
    audit,
    noise_margin,
)
from dpaudit.results import charts
from dpaudit.stats import oracles
from dpaudit.store import family_wise_error
from tests.records import changed


def laplace_with(multiplier):
    def mechanism(data, size, *, rng):
        return data.sum() + 2.0 * multiplier * rng.laplace(size=size)

    return mechanism


PAIR = NeighborPair([[0.0]], [[1.0]])
CLAIM = PureDP(1.0)
AUDITED = audit(laplace_with(1.0), CLAIM, PAIR, draws=20_000, seed=1, mutants=None)


@pytest.mark.slow
def test_the_margin_tells_how_far_the_noise_could_shrink():
    """Check the noise margin of a mechanism with twice the noise that 1-DP requires.

    Noise times 0.6 is still enough, but noise times 0.4 is not.
    """
    margin = noise_margin(AUDITED, CLAIM, {x: laplace_with(x) for x in (0.4, 0.8, 0.6)})
    assert [point.multiplier for point in margin.points] == [0.8, 0.6, 0.4]
    assert [point.refuted for point in margin.points] == [False, False, True]
    assert margin.refuted_from == 0.4
    result = changed(AUDITED, noise_margin=margin)
    assert "margin              refuted with 0.4 times" in result.summary(verbose=True)
    assert AuditResult.from_json(result.to_json()).diagnostics.noise_margin == margin
    assert family_wise_error([result]) == pytest.approx(2e-6)  # the audit and its margin
    again = noise_margin(AUDITED, CLAIM, {0.4: laplace_with(0.4)}, settings=Settings(workers=2))
    assert again.points[0].certified_epsilon > margin.points[2].certified_epsilon  # no sharing


def test_the_picture_holds_the_mechanism_itself():
    margin = noise_margin(AUDITED, CLAIM, {0.5: laplace_with(0.5), 0.01: laplace_with(0.01)})
    chart = charts.noise_margin(changed(AUDITED, noise_margin=margin))
    _, line, stands, refuted = chart.panels[0].series
    assert [multiplier for multiplier, _ in line.points] == [0.01, 0.5, 1.0]
    assert (stands.label, refuted.label) == ("stands", "refuted")
    assert refuted.points == [(0.01, 3.0)]  # cut at three times the claim
    assert chart.caption.startswith("With 0.01 times the noise")
    with pytest.raises(ValueError, match="has no noise margin to draw"):
        charts.noise_margin(AUDITED)


def test_the_margin_of_an_exact_profile():
    def centers(data):
        return data.sum()

    claim = ApproxDP(1.0, 1e-6)
    result = audit(AdditiveNoise(centers, scale=10.0), claim, PAIR, seed=1, mutants=None)
    less = {0.5: AdditiveNoise(centers, scale=5.0), 0.1: AdditiveNoise(centers, scale=1.0)}
    margin = noise_margin(result, claim, less)
    assert [point.refuted for point in margin.points] == [False, True]
    assert margin.points[1].certified_epsilon == pytest.approx(
        oracles.gaussian(1.0, 1.0).epsilon(1e-6)
    )
    assert margin.failure_prob == 0.0  # the margin is computed


def test_a_score_applies_to_the_variants():
    def beside_a_leak(data, size, *, rng):
        noisy = laplace_with(0.4)(data, size, rng=rng)
        return np.stack([noisy, np.full(size, data.sum())], axis=1)

    def first(outputs):
        return outputs[:, 0]

    scored = noise_margin(AUDITED, CLAIM, {0.4: beside_a_leak}, score=first)
    plain = noise_margin(AUDITED, CLAIM, {0.4: laplace_with(0.4)})
    assert scored.points == plain.points


@pytest.mark.parametrize(
    ("variants", "error"),
    [
        ({}, "variants must be a dict"),
        ([0.5], "variants must be a dict"),
        ({0.0: laplace_with(1)}, "each key of variants must be a finite number > 0"),
        ({math.nan: laplace_with(1)}, "each key of variants must be a finite number > 0"),
        ({0.5: 3}, "variants must hold functions"),
        (
            {0.5: laplace_with(1), 0.4: AdditiveNoise(lambda data: data.sum(), scale=1.0)},
            "variants must hold mechanisms of",
        ),
    ],
)
def test_bad_variants_are_refused(variants, error):
    with pytest.raises((TypeError, ValueError), match=error):
        noise_margin(AUDITED, CLAIM, variants)


def test_a_result_without_its_pair_needs_one():
    lost = replace(AUDITED, pair=None)
    with pytest.raises(ValueError, match="pair must be given"):
        noise_margin(lost, CLAIM, {0.5: laplace_with(0.5)})
    assert noise_margin(lost, CLAIM, {0.5: laplace_with(0.5)}, pair=PAIR).points
    with pytest.raises(ValueError, match="max_seconds must be None"):
        noise_margin(AUDITED, CLAIM, {0.5: laplace_with(0.5)}, settings=Settings(max_seconds=1.0))


def as_dicts(multiplier):
    return Outcomes(
        lambda data, size, *, rng: [
            {"a": x} if x > 0 else {} for x in laplace_with(multiplier)(data, size, rng=rng)
        ],
        keys=["a"],
    )


def failing_late(multiplier):
    def mechanism(data, size, *, rng):
        if size not in (1, 64):  # trials and separate calls succeed
            raise KeyError("late")
        return laplace_with(multiplier)(data, size, rng=rng)

    return Outcomes(mechanism, errors="outcome")


KINDS = {
    "vectors": lambda m: (
        lambda data, size, *, rng: np.stack([laplace_with(m)(data, size, rng=rng)] * 2, axis=1)
    ),
    "texts": lambda m: (
        lambda data, size, *, rng: np.where(
            laplace_with(m)(data, size, rng=rng) > 0.5, "high", "low"
        )
    ),
    "dicts": as_dicts,
    "exceptions that come late": failing_late,
}


@pytest.mark.parametrize("kind", KINDS)
def test_variants_may_return_any_kind_of_output(kind):
    make = KINDS[kind]
    margin = noise_margin(AUDITED, CLAIM, {0.9: make(0.9), 0.01: make(0.01)}, draws=600)
    assert [point.refuted for point in margin.points] == [False, True]
