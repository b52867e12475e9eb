"""Lower bounds of composed privacy losses, against closed forms and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dpaudit.errors import ArgumentError
from dpaudit.stats import ComposedLoss, Mixture, Noise, StepPair, hockey_stick, oracles
from dpaudit.stats.divergence import hockey_stick_inverse

DELTAS = (1e-3, 1e-5, 1e-9)


def mixture(centers: list[float], weights: list[float] | None = None) -> Mixture:
    weights = [1 / len(centers)] * len(centers) if weights is None else weights
    return Mixture(np.array(centers), np.array(weights))


def noisy(kind: str, scale: float, times: int = 1, q: float = 1.0) -> StepPair:
    """Return a sum that one user moves by 1, with the user sampled with probability q."""
    left = mixture([0.0, 1.0], [1 - q, q])
    return StepPair.of_mixtures(Noise(kind, scale), left, mixture([0.0]), times)


def assert_close_below(found: float, exact: float, rel: float) -> None:
    assert exact * (1 - rel) <= found <= exact * (1 + 1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("scale", "times", "rel"),
    [(1.0, 1, 1e-4), (10.0, 100, 1e-3), (50.0, 10_000, 3e-3), (0.3, 10, 1e-4)],
)
def test_composed_gaussians_are_one_gaussian(scale: float, times: int, rel: float) -> None:
    loss = ComposedLoss([noisy("gaussian", scale, times)])
    exact = oracles.gaussian(math.sqrt(times), scale)
    for delta in (*DELTAS, 1e-20, 1e-40):
        assert_close_below(loss.lower_epsilon(delta), exact.epsilon(delta), rel)
    for epsilon in (0.0, 0.5, 3.0):
        assert_close_below(loss.lower_delta(epsilon), exact.delta(epsilon), 10 * rel)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_one_laplace_step_has_the_closed_form(scale: float) -> None:
    loss, exact = ComposedLoss([noisy("laplace", scale)]), oracles.laplace(1.0, scale)
    for delta in (0.05, *DELTAS):
        assert_close_below(loss.lower_epsilon(delta), exact.epsilon(delta), 1e-4)
    assert_close_below(loss.lower_epsilon(0.0), 1 / scale, 1e-7)


@pytest.mark.slow
def test_two_laplace_steps_are_a_vector() -> None:
    steps = [noisy("laplace", 1.0), noisy("laplace", 2.0)]
    loss, exact = ComposedLoss(steps), oracles.laplace_vector([1.0, 0.5], 1.0)
    for delta in (0.05, *DELTAS):
        assert_close_below(loss.lower_epsilon(delta), exact.epsilon(delta), 1e-4)


def test_composed_randomized_response_is_binomial() -> None:
    n, counts = 50, np.arange(51)
    p, q = binom.pmf(counts, n, 0.6), binom.pmf(counts, n, 0.4)
    loss = ComposedLoss([StepPair([0.6, 0.4], [0.4, 0.6], n)])
    for delta in DELTAS:
        assert_close_below(loss.lower_epsilon(delta), hockey_stick_inverse(p, q, delta), 1e-5)
    assert_close_below(loss.max_loss, n * math.log(1.5), 1e-9)


def test_outcomes_that_only_one_side_has_are_never_rounded_away() -> None:
    loss = ComposedLoss([StepPair([0.99, 0.01], [1.0, 0.0], 10)])
    assert_close_below(loss.lower_delta(100.0), 1 - 0.99**10, 1e-9)
    assert loss.lower_epsilon(0.05) == math.inf
    assert loss.lower_epsilon(0.5) == 0.0
    disjoint = ComposedLoss([StepPair([1.0, 0.0], [0.0, 1.0])])
    assert_close_below(disjoint.lower_delta(1.0), 1.0, 1e-9)


def test_equal_sides_lose_nothing() -> None:
    for step in (
        StepPair([0.5, 0.5], [0.5, 0.5], 100),
        StepPair.of_mixtures(Noise("gaussian", 1.0), mixture([0.0]), mixture([0.0]), 100),
        StepPair.of_mixtures(Noise("laplace", 1.0), mixture([2.0]), mixture([2.0]), 100),
    ):
        loss = ComposedLoss([step])
        assert loss.lower_epsilon(1e-9) == loss.lower_delta(0.0) == 0.0
        assert loss.lower_epsilon(0.0) < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("q", "scale", "times"), [(0.01, 1.0, 1000), (0.001, 0.7, 10_000), (0.5, 2.0, 50)]
)
def test_the_pld_of_dp_accounting_is_just_above(q: float, scale: float, times: int) -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    theirs = pld.from_gaussian_mechanism(
        scale, sampling_prob=q, value_discretization_interval=1e-4
    ).self_compose(times)
    loss = ComposedLoss([noisy("gaussian", scale, times, q)])
    for delta in (1e-3, 1e-5, 1e-8):
        claimed = theirs.get_epsilon_for_delta(delta)
        assert 0.98 * claimed < loss.lower_epsilon(delta) < claimed


def test_rates_bound_the_event_from_both_sides() -> None:
    exact = oracles.gaussian(10.0, 10.0)
    loss = ComposedLoss([noisy("gaussian", 10.0, 100)])
    for threshold in (0.0, 1.0, 4.0):
        for side in ("left", "right"):
            likely, rare = loss.rates(threshold, side)
            p, q = exact.rates(threshold)
            # The event of rounded losses is a little smaller than the event of exact losses.
            assert likely <= p * (1 + 1e-9)
            assert likely == pytest.approx(p, rel=2e-3)
            assert rare == pytest.approx(q, rel=3e-3)
            assert likely / rare > math.exp(threshold) * (1 - 1e-9)
    assert loss.likelier(1.0) in ("left", "right")


def test_more_bins_are_sharper() -> None:
    step = noisy("gaussian", 1.0, 1000, 0.01)
    found = [ComposedLoss([step], bins=bins).lower_epsilon(1e-5) for bins in (2**12, 2**15, 2**18)]
    assert found == sorted(found)


def test_masses_sum_to_one() -> None:
    edges, left, right = ComposedLoss([noisy("gaussian", 1.0)]).masses(40)
    assert len(edges) == 41
    assert left.sum() == pytest.approx(1.0, abs=1e-4)
    assert right.sum() == pytest.approx(1.0, abs=1e-4)


# --- properties: the bound never exceeds the exact number ---

probabilities = st.one_of(st.just(0.0), st.floats(1e-3, 1.0))
pmfs = st.integers(2, 4).flatmap(
    lambda k: st.tuples(
        *(
            st.lists(probabilities, min_size=k, max_size=k).filter(lambda p: sum(p) > 0.1)
            for _ in range(2)
        )
    )
)


@given(st.lists(st.tuples(pmfs, st.integers(1, 3)), min_size=1, max_size=3), st.floats(0.0, 3.0))
@settings(max_examples=60, deadline=None)
def test_no_bound_exceeds_the_enumeration(
    drawn: list[tuple[tuple[list[float], list[float]], int]], epsilon: float
) -> None:
    steps = [StepPair(np.array(p) / sum(p), np.array(q) / sum(q), times) for (p, q), times in drawn]
    sides = []
    for side in ("left", "right"):
        each = [getattr(step, side) for step in steps for _ in range(step.times)]
        sides.append(np.array([math.prod(one) for one in itertools.product(*each)]))
    p, q = (side / side.sum() for side in sides)
    exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
    loss = ComposedLoss(steps, bins=2**14)
    found = loss.lower_delta(epsilon)
    assert found <= exact + 1e-11
    assert found >= exact - 1e-3
    for delta in (0.0, 1e-4, 0.1):
        needed = max(hockey_stick_inverse(p, q, delta), hockey_stick_inverse(q, p, delta))
        assert loss.lower_epsilon(delta) <= needed + 1e-9


@pytest.mark.slow
@given(st.floats(0.3, 20.0), st.integers(1, 2000), st.floats(-12.0, -1.0), st.integers(10, 16))
@settings(max_examples=40, deadline=None)
def test_no_bound_exceeds_the_gaussian(scale: float, times: int, log: float, bins: int) -> None:
    loss = ComposedLoss([noisy("gaussian", scale, times)], bins=2**bins)
    exact = oracles.gaussian(math.sqrt(times), scale)
    assert loss.lower_epsilon(10**log) <= exact.epsilon(10**log) * (1 + 1e-9)
    assert loss.lower_delta(-log) <= exact.delta(-log) * (1 + 1e-9)


def test_rounding_up_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant of the proof: losses that are rounded up exceed the exact epsilon."""
    from dpaudit.stats import composition

    original = composition._on_grid

    def rounded_up(losses: composition._Losses, width: float) -> composition._OnGrid:
        grid = original(losses, width)
        return grid._replace(cells=grid.cells + 1)

    monkeypatch.setattr(composition, "_on_grid", rounded_up)
    loss = ComposedLoss([noisy("gaussian", 10.0, 100)])
    assert loss.lower_epsilon(1e-5) > oracles.gaussian(10.0, 10.0).epsilon(1e-5)


# --- bad input ---


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([], [], "^left must be a nonempty one-dimensional array of finite"),
        ([[0.5, 0.5]], [0.5, 0.5], "^left must be a nonempty one-dimensional array of finite"),
        ([0.5, math.nan], [0.5, 0.5], "^left must be a nonempty one-dimensional array of finite"),
        ([0.5, 0.5], [0.5, math.inf], "^right must be a nonempty one-dimensional array of finite"),
        ([0.5, 0.6], [0.5, 0.5], "^left must hold probabilities >= 0 that sum to 1, got"),
        ([0.5, 0.5], [1.5, -0.5], "^right must hold probabilities >= 0 that sum to 1, got"),
        ([0.5, 0.5], [1.0], "^right must have as many entries as left"),
    ],
)
def test_bad_probabilities_are_refused(left: object, right: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        StepPair(left, right)  # type: ignore[arg-type]


def test_bad_arguments_are_refused() -> None:
    good = StepPair([0.5, 0.5], [0.4, 0.6])
    with pytest.raises(ArgumentError, match="^times must be an integer >= 1, got 0"):
        StepPair([0.5, 0.5], [0.4, 0.6], 0)
    with pytest.raises(ArgumentError, match="^accuracy must be a number in"):
        StepPair([0.5, 0.5], [0.4, 0.6], accuracy=0.5)
    with pytest.raises(ArgumentError, match="^steps must be a list of StepPair objects"):
        ComposedLoss([])
    with pytest.raises(TypeError, match="^steps must be a list of StepPair objects"):
        ComposedLoss([0.5])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="^bins must be an integer >= 1024, got 3"):
        ComposedLoss([good], bins=3)
    with pytest.raises(ArgumentError, match="^epsilon must be a finite number >= 0, got nan"):
        ComposedLoss([good]).lower_delta(math.nan)
    with pytest.raises(ArgumentError, match=r"^delta must be a number in \[0, 1\], got 2"):
        ComposedLoss([good]).lower_epsilon(2)
    with pytest.raises(ArgumentError, match="^likelier must be one of left, right"):
        ComposedLoss([good]).rates(1.0, "both")
    noise = Noise("gaussian", 1.0)
    with pytest.raises(ArgumentError, match="^left must have one weight >= 0 for each centre"):
        StepPair.of_mixtures(noise, mixture([0.0], [0.5]), mixture([0.0]))
    with pytest.raises(ArgumentError, match="^right must be a nonempty one-dimensional array"):
        StepPair.of_mixtures(noise, mixture([0.0]), mixture([math.nan]))


def test_the_error_of_the_transform_is_subtracted() -> None:
    """A larger error lowers the bound by its effect, the 2-norm of the weights times the error."""
    p = np.random.default_rng(1).dirichlet(np.ones(40))
    q = np.random.default_rng(2).dirichlet(np.ones(40))
    tilted = ComposedLoss([StepPair(p, q, times=2)], bins=2**10)._left.at(0.0)
    assert 0 < tilted.error < 1e-12
    value, error = tilted.lower_delta(0.1)
    tilted.error += 0.01
    lower, larger = tilted.lower_delta(0.1)
    weights = -np.expm1(0.1 - tilted.values[tilted.values > 0.1])
    assert larger - error == pytest.approx(0.01 * np.linalg.norm(weights))
    assert value - lower == pytest.approx(larger - error)


def test_probabilities_that_do_not_sum_to_one_are_normalised() -> None:
    """A million steps would otherwise add up the missing probability."""
    step = StepPair([0.5 + 4.5e-10, 0.5], [0.5 - 4.5e-10, 0.5], times=10**6)
    exact = 0.5 * math.sqrt(10**6) * 4.5e-10 * 2  # more than the distance of the normalised pmfs
    assert ComposedLoss([step]).lower_delta(0.0) <= exact


def test_a_rare_rate_is_never_rounded_to_zero() -> None:
    step = StepPair([6.3e-64, 1.0], [1.0, 6.3e-64], times=9)
    likely, rare = ComposedLoss([step]).rates(1309.7)
    assert likely > 0.99
    assert rare > 0
