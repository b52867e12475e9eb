"""Numbers of canaries that need no look: held against the power that is computed for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtr

import dpaudit.engine.one_run_planning as planning
from dpaudit import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.claims import Claim
from dpaudit.engine import plan_one_run
from dpaudit.engine.one_run_limits import least_canaries, right_by_share

CASES: dict[str, tuple[Claim, dict[str, Any]]] = {
    "pure": (PureDP(1.0), {"mu": 1.5, "failure_prob": 0.01}),
    "pure, top": (PureDP(1.0), {"mu": 1.5, "failure_prob": 0.01, "side": "top"}),
    "Laplace": (PureDP(1.0), {"true_epsilon": 1.3, "failure_prob": 0.05}),
    "walk": (ApproxDP(1.0, 1e-7), {"mu": 1.6, "failure_prob": 0.05}),
    "looks": (ApproxDP(1.0, 1e-4), {"mu": 2.0, "failure_prob": 1e-3}),
    "curve": (GaussianDP(1.0), {"mu": 1.5, "failure_prob": 0.05}),
    "curve, top": (GaussianDP(0.5), {"mu": 1.2, "failure_prob": 0.05, "side": "top"}),
    "zCDP": (ZeroConcentratedDP(0.1), {"mu": 1.5, "failure_prob": 0.05}),
}
CANARIES = (4, 20, 80, 150, 300, 600)


def limits(monkeypatch: pytest.MonkeyPatch, claim: Claim, **arguments: Any) -> tuple[float, int]:
    seen: list[tuple[float, int]] = []
    monkeypatch.setattr(
        planning, "_smallest", lambda enough, least, most: seen.append((least, most))
    )
    plan_one_run(claim, canaries=[2], **arguments)
    return seen[0]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "zCDP")) for n in CASES]
)
def test_outside_the_limits_power_is_less_than_wanted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, arguments = CASES[name]
    bounds = {
        wanted: limits(monkeypatch, claim, power=wanted, **arguments) for wanted in (0.2, 0.9)
    }
    powers = plan_one_run(claim, canaries=CANARIES, **arguments).power
    assert any(power < 0.2 for power in powers)
    for wanted, (least, most) in bounds.items():
        for m, power in zip(CANARIES, powers, strict=True):
            assert power < wanted or least <= m < most, (wanted, m)


def test_the_least_number_is_not_far_from_the_needed_one() -> None:
    for name in ("pure", "Laplace", "walk"):
        claim, arguments = CASES[name]
        found = plan_one_run(claim, canaries=[2], **arguments)
        beyond, _ = planning._model(arguments.get("mu"), arguments.get("true_epsilon"), 0.0)
        least = least_canaries(
            claim, beyond, one_sided=False, power=0.9, failure_prob=arguments["failure_prob"]
        )
        assert found.needed is not None
        assert found.needed / 5 < least < found.needed


@pytest.mark.parametrize(
    ("claim", "arguments"),
    [
        (PureDP(1.0), {"true_epsilon": 1.05}),
        (PureDP(3.0), {"mu": 0.2, "failure_prob": 1e-3}),
        (ApproxDP(1.0, 1e-5), {"true_epsilon": 2.0}),
        (ApproxDP(1.0, 1e-5), {"mu": 2.0}),
        (GaussianDP(1.0), {"mu": 1.0}),
        pytest.param(ZeroConcentratedDP(0.5), {"mu": 0.9}, marks=pytest.mark.slow),
    ],
)
def test_what_no_number_refutes_is_known_without_looking_at_many(
    claim: Claim, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    heights = planning._critical

    def counted(tool: Any, *others: Any) -> Any:
        looked.append(tool.canaries)
        return heights(tool, *others)

    monkeypatch.setattr(planning, "_critical", counted)
    assert plan_one_run(claim, canaries=[2], **arguments).needed is None
    assert max(looked, default=0) <= 2048  # of 50,000


def test_rates_of_right_guesses_are_those_of_the_model() -> None:
    mu, t = 1.4, np.linspace(0.0, 3.0, 7)

    def beyond(at: float) -> tuple[float, float]:
        return float(ndtr(mu / 2 - at)), float(ndtr(-mu / 2 - at))

    shares = ndtr(mu / 2 - t) + ndtr(-mu / 2 - t)
    right = right_by_share(beyond, shares, one_sided=False)
    assert right == pytest.approx(ndtr(mu / 2 - t), abs=1e-5)
    assert right_by_share(beyond, np.array([1.0]), one_sided=True) == pytest.approx(0.5, abs=1e-9)


def test_no_number_tells_rates_that_a_point_allows() -> None:
    def beyond(t: float) -> tuple[float, float]:
        share = float(np.clip(1 - t, 0.0, 1.0))
        return share * float(expit(1.0)), share * float(expit(-1.0))

    for epsilon, kept in ((1.0, True), (0.9, False)):
        least = least_canaries(
            PureDP(epsilon), beyond, one_sided=False, power=0.9, failure_prob=0.05
        )
        assert (least > planning.MAX_CANARIES) == kept


@pytest.mark.parametrize(
    ("claim", "arguments", "words"),
    [
        (PureDP(1.0), {"true_epsilon": 1.0}, r"true_epsilon must be a number > 1, which the claim"),
        (PureDP(1.0), {"true_epsilon": 0.5}, "there is no violation to plan for, got 0.5"),
        (ApproxDP(1.0, 1e-5), {"true_epsilon": 0.9}, "allows at delta = 1e-05"),
        (GaussianDP(1.0), {"true_epsilon": 4.0}, r"must be a number > 4\.\d+, which the claim"),
    ],
)
def test_a_true_epsilon_that_the_claim_allows_is_refused(
    claim: Claim, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        plan_one_run(claim, **arguments)
