"""Tests of the driver, its stages and its shares.

Instruments neither draw nor divide on their own.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit import (
    ApproxDP,
    GaussianDP,
    NeighborPair,
    PureDP,
    audit,
    neighbors,
)
from dpaudit.engine import bets, certificate, counts, driver, exact
from dpaudit.engine.additive import certify as centres
from dpaudit.engine.additive import exact as closed_form
from dpaudit.engine.additive import plan
from dpaudit.engine.driver import certificate_of, drive, instrument_of
from dpaudit.engine.task import Run, Task, divide
from dpaudit.mechanisms import AdditiveNoise
from dpaudit.neighbors import family
from dpaudit.results import AuditResult
from tests.statistical import FALSE_ALARM

INSTRUMENTS = bets, certificate, counts, exact, centres, closed_form, plan
PAIR = NeighborPair(np.array([[0.0], [1.0]]), np.array([[0.0], [0.0]]))


def laplace(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(size=size)


def centre(data: Any) -> Any:
    return data.sum(axis=0)


def random_centres(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum(axis=0) * rng.choice([0.5, 1.0], size=(size, 1))


class Coin:
    def pmf(self, data: Any) -> Any:
        likely = 0.5 + 0.2 * data.sum()
        return np.array([likely, 1 - likely])


MECHANISMS = {
    "counts": (laplace, PureDP(0.8), {}),
    "few draws": (laplace, PureDP(0.8), {"draws": 500}),
    "a curve": (laplace, GaussianDP(1.0), {}),
    "bets": (laplace, PureDP(0.8), {"sequential": True}),
    "random centres": (AdditiveNoise(random_centres, scale=1.0), ApproxDP(0.5, 1e-5), {}),
    "centres": (AdditiveNoise(centre, scale=1.0), ApproxDP(0.5, 1e-5), {}),
    "a pmf": (Coin(), PureDP(0.5), {}),
}


def task(claim: Any, **options: Any) -> Task:
    options = {"draws": 4000} | options
    return Task(claim, family(PAIR), options.pop("draws"), 0.01, 1, "driver", **options)


# --- shares -----------------------------------------------------------------------------------


def test_divide_gives_parts_that_sum_to_the_whole_at_most() -> None:
    assert divide(0.3, 3) == (0.3 / 3,) * 3
    assert divide(0.5, [0.5, 0.25]) == (0.25, 0.125)
    assert divide(0.5, []) == ()
    for weights in ([0.6, 0.6], [1.5], [-0.1, 0.5], [math.nan, math.nan]):
        with pytest.raises(AssertionError, match="weights"):
            divide(0.5, weights)


@pytest.mark.sampled
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_instrument_is_paid_before_it_certifies_and_once(name: str) -> None:
    mechanism, claim, options = MECHANISMS[name]
    asked = task(claim, **options)
    run = Run(asked, mechanism, "mechanism")
    instrument = instrument_of(asked, mechanism)
    frozen = instrument.explore(run)
    assert run.failure_probs == ()
    run.settle(frozen.weights)
    assert sum(run.failure_probs) <= asked.failure_prob * (1 + 1e-9)
    instrument.certify(frozen, run)
    if frozen.weights:  # an instrument without weights is computed
        with pytest.raises(AssertionError, match="only once"):
            run.settle(frozen.weights)


def test_the_failure_probability_of_an_audit_is_read_and_divided_by_nobody_else() -> None:
    """Check that no instrument changes `failure_prob`, reads a seed or creates a generator.

    A change is a multiplication or a division.
    """
    for module in INSTRUMENTS:
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            where = f"{module.__name__}:{getattr(node, 'lineno', '')}"
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
                divided = [node.left] + [node.right] * isinstance(node.op, ast.Mult)
                words = [ast.unparse(part) for part in divided]
                assert not any(w.endswith(("failure_prob", "failure_probs")) for w in words), where
            if isinstance(node, ast.Attribute):
                assert node.attr not in ("seed", "default_rng", "mechanisms"), where
            if isinstance(node, ast.Name):
                assert node.id not in ("generator", "default_rng"), where


# --- stages -----------------------------------------------------------------------------------


@dataclass
class Cheat:
    """An instrument that draws at the wrong stage."""

    explores_with: str = "explore"
    certifies_with: str = "certify"
    weights: Sequence[float] = (1.0,)

    def explore(self, run: Run) -> Cheat:
        self.sampler = run.sampler()
        self.sampler.begin(PAIR.left, PAIR.right)
        self.sampler.draw(PAIR.left, 10, self.explores_with, "left")
        return self

    def certify(self, frozen: Any, run: Run) -> Any:
        return self.sampler.draw(PAIR.left, 10, self.certifies_with, "left")


def test_a_run_hands_out_draws_of_its_stage_only() -> None:
    def run() -> Run:
        return Run(task(PureDP(1.0)), laplace, "mechanism")

    assert len(drive(Cheat(), run())) == 10  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="to explore"):
        drive(Cheat(explores_with="certify"), run())
    with pytest.raises(AssertionError, match="to certify"):
        drive(Cheat(certifies_with="explore"), run())
    with pytest.raises(AssertionError, match="weights"):
        drive(Cheat(weights=(0.7, 0.7)), run())


def test_a_sampler_that_is_asked_for_late_certifies_only() -> None:
    run = Run(task(PureDP(1.0)), laplace, "mechanism")
    run.settle([1.0])
    sampler = run.sampler()
    sampler.begin(PAIR.left, PAIR.right)
    with pytest.raises(AssertionError, match="to certify"):
        sampler.draw(PAIR.left, 10, "explore", "left")


def test_mutants_are_certified_by_the_driver_too(monkeypatch: pytest.MonkeyPatch) -> None:
    roles: list[str] = []

    def recording(asked: Task, mechanism: Any, role: str) -> Any:
        roles.append(role)
        return certificate_of(asked, mechanism, role)

    monkeypatch.setattr(driver, "certificate_of", recording)
    result = audit(laplace, PureDP(1.0), PAIR, draws=4000)
    assert result.mutants
    assert roles[0] == "mechanism"
    assert {role.split()[0] for role in roles[1:]} == {"mutant"}


# --- instruments of other packages ----------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["other", 3, Cheat, None, object()])
def test_what_is_no_instrument_is_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="method"):
        audit(laplace, PureDP(1.0), PAIR, draws=4000, method=wrong)


def test_an_instrument_of_ones_own_needs_a_mechanism_that_draws() -> None:
    with pytest.raises(TypeError, match="instrument"):
        audit(Coin(), PureDP(1.0), PAIR, method=Cheat())


@pytest.mark.parametrize("pairs", [None, neighbors.portfolio(), neighbors.outlier(n_users=5)])
def test_an_instrument_of_ones_own_needs_named_pairs(pairs: Any) -> None:
    with pytest.raises(ValueError, match="pairs must be a pair or a list of pairs"):
        audit(laplace, PureDP(1.0), pairs, draws=4000, method=Cheat())


# --- the instrument of the guide --------------------------------------------------------------


@pytest.fixture(scope="module")
def by_means() -> Iterator[Any]:
    """Yield the instrument class of the guide."""
    page = (Path(__file__).parents[2] / "docs/guides/instrument.md").read_text(encoding="utf-8")
    module = sys.modules["guide"] = types.ModuleType("guide")  # dataclasses look it up
    exec(page.split("```python\n")[1].split("```")[0], vars(module))  # our own page
    yield module.ByMeans
    del sys.modules["guide"]


def half_noise(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return data.sum() + rng.laplace(scale=0.25, size=size)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.01), GaussianDP(0.5)], ids=str)
def test_the_instrument_of_the_guide_refutes_and_shows_its_power(by_means: Any, claim: Any) -> None:
    refuted = audit(half_noise, claim, PAIR, draws=20_000, method=by_means())
    assert refuted.verdict == "refuted"
    again = audit(half_noise, claim, PAIR, draws=20_000, method=by_means())
    assert (again.epsilon, again.witness) == (refuted.epsilon, refuted.witness)
    assert AuditResult.from_json(refuted.to_json()).verdict == "refuted"
    kept = audit(laplace, PureDP(1.0), PAIR, draws=20_000, method=by_means())
    assert kept.verdict == "not_refuted"
    assert kept.detectable_epsilon is None  # the power of this instrument is unknown
    assert all(m.killed or m.certified_epsilon <= 1 for m in kept.mutants)
    unshown = audit(laplace, PureDP(1.0), PAIR, draws=20_000, method=by_means(), mutants=None)
    assert unshown.verdict == "no_power"


@pytest.mark.slow
@pytest.mark.statistical
def test_the_instrument_of_the_guide_is_sound(by_means: Any) -> None:
    """Check that the instrument of the guide is sound, by counting false alarms.

    The mechanism is randomised response that just keeps its claim. Without a margin, the false
    alarms exceed the limit.
    """

    def respond(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return 1.0 * ((rng.random(size) < 1 / (1 + np.exp(-1.0))) == bool(data.sum()))

    audits, failure_prob, wrong = 300, 0.3, 0
    tight = task(PureDP(1.0), draws=200, instrument=by_means())
    tight = replace(tight, failure_prob=failure_prob)
    for seed in range(audits):
        asked = Task(
            PureDP(1.0), family(PAIR), 200, failure_prob, seed, "rr", instrument=by_means()
        )
        wrong += certificate_of(asked, respond, "mechanism").refuted
    assert wrong <= binom.isf(FALSE_ALARM, audits, failure_prob)
    alarms = 0
    for seed in range(audits):
        asked = replace(tight, seed=seed)
        run = Run(asked, respond, "mechanism")
        frozen = asked.instrument.explore(run)
        run.settle(frozen.weights)
        run.failure_probs = (2.0,)  # no margin at all
        alarms += asked.instrument.certify(frozen, run).refuted
    assert alarms > binom.isf(FALSE_ALARM, audits, failure_prob)
