"""Claims compared with dp-accounting, brute force over two-point distributions, and each other."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import common, privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from dpaudit import (
    ApproxDP,
    ApproxZCDP,
    GaussianDP,
    PureDP,
    Relation,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.claims.notions import Claim
from dpaudit.stats import oracles
from dpaudit.stats.divergence import hockey_stick, hockey_stick_inverse

Floats = NDArray[np.float64]

CLAIMS: dict[str, Claim] = {
    "pure": PureDP(1.3),
    "pure 0": PureDP(0.0),
    "approx": ApproxDP(1.0, 1e-6),
    "approx 0": ApproxDP(0.0, 0.3),
    "approx all": ApproxDP(2.0, 1.0),
    "gaussian": GaussianDP(1.0),
    "gaussian small": GaussianDP(0.01),
    "gaussian large": GaussianDP(20.0),
    "zcdp": ZeroConcentratedDP(0.5),
    "zcdp small": ZeroConcentratedDP(1e-4),
    "zcdp large": ZeroConcentratedDP(50.0),
    "approximate zcdp": ApproxZCDP(0.5, 1e-8),
    "approximate zcdp large": ApproxZCDP(2.0, 0.2),
    "renyi": RenyiDP(8.0, 2.0),
    "renyi small order": RenyiDP(1.05, 0.3),
    "renyi several": RenyiDP([2.0, 8.0, 64.0], [0.5, 2.0, 20.0]),
}
every_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS.keys())
RENYI = ["zcdp", "zcdp small", "zcdp large", "renyi", "renyi small order", "renyi several"]


# --- properties of every claim --------------------------------------------------------------------


@pytest.mark.sampled
@every_claim
def test_delta_decreases_with_epsilon_and_is_convex_in_its_exponential(claim: Claim) -> None:
    x = np.linspace(1.0, 40.0, 12)
    deltas = np.array([claim.delta(math.log(v)) for v in x])
    assert ((deltas >= 0) & (deltas <= 1)).all()
    assert (np.diff(deltas) <= 1e-12).all()
    assert (np.diff(deltas, 2) >= -1e-6).all()


@pytest.mark.sampled
@every_claim
def test_epsilon_and_delta_invert_each_other(claim: Claim) -> None:
    for delta in (1e-12, 1e-3, 0.1, 0.7, 0.99):
        epsilon = claim.epsilon(delta)
        if epsilon == math.inf:
            assert claim.delta(1e6) > delta
            continue
        assert claim.delta(epsilon) <= delta * (1 + 2e-4) + 1e-15
        if epsilon > 0.01:
            assert claim.delta(epsilon - 0.01) > delta


@pytest.mark.sampled
@every_claim
def test_epsilon_decreases_with_delta(claim: Claim) -> None:
    epsilons = [claim.epsilon(d) for d in (0.0, 1e-300, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0)]
    assert all(a >= b - 1e-9 for a, b in itertools.pairwise(epsilons))
    assert all(e >= 0 for e in epsilons)
    assert epsilons[-1] == 0.0


@every_claim
def test_claims_are_claims_with_words_and_plain_data(claim: Claim) -> None:
    assert isinstance(claim, Claim)
    assert claim.relation is None
    assert claim.source == ""
    assert str(claim)
    assert all(isinstance(v, (float, list)) for v in claim.to_json().values())


@every_claim
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_epsilons_and_deltas_are_refused(claim: Claim, bad: float) -> None:
    with pytest.raises(ValueError, match="^epsilon must be"):
        claim.delta(bad)
    with pytest.raises(ValueError, match="^delta must be"):
        claim.epsilon(bad)


# --- (epsilon, delta) -------------------------------------------------------------------------


@given(st.floats(0, 20), st.floats(0, 1), st.floats(0, 25), st.floats(0, 1))
def test_approx_dp_is_leaking_with_probability_delta_and_responding_otherwise(
    epsilon: float, delta: float, at: float, level: float
) -> None:
    keep, flip = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    spare = 1 - delta
    left = [delta, 0.0, spare * keep, spare * flip]
    right = [0.0, delta, spare * flip, spare * keep]
    claim = ApproxDP(epsilon, delta)
    assert claim.delta(at) == pytest.approx(hockey_stick(left, right, at), abs=1e-9)
    if abs(level - delta) > 1e-9:
        inverse = hockey_stick_inverse(left, right, level)
        if level < delta:
            assert claim.epsilon(level) == inverse == math.inf
        elif level < 1 - 1e-6:
            assert claim.epsilon(level) == pytest.approx(inverse, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 0.01), (4.0, 0.0)])
def test_approx_dp_agrees_with_dp_accounting(epsilon: float, delta: float) -> None:
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    pld = privacy_loss_distribution.from_privacy_parameters(parameters, 1e-4)
    claim = ApproxDP(epsilon, delta)
    for at in (0.0, epsilon / 3, epsilon / 2, epsilon, 2 * epsilon):
        theirs = pld.get_delta_for_epsilon(at)  # an upper bound, because losses are rounded up
        assert claim.delta(at) <= theirs + 1e-6
        assert claim.delta(at) >= theirs - 1.1e-4


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0, 30.0])
def test_pure_dp_is_the_profile_of_randomised_response(epsilon: float) -> None:
    claim, oracle = PureDP(epsilon), oracles.randomized_response(max(epsilon, 1e-12))
    for at in (0.0, epsilon / 2, epsilon * 0.999, epsilon, epsilon + 1):
        assert claim.delta(at) == pytest.approx(oracle.delta(at), abs=1e-11)
    for delta in (1e-6, 0.1, 0.4):
        assert claim.epsilon(delta) == pytest.approx(oracle.epsilon(delta), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_pure_dp_allows_whatever_laplace_does(epsilon: float) -> None:
    pld = privacy_loss_distribution.from_laplace_mechanism(1 / epsilon)
    for at in np.linspace(0, epsilon, 7).tolist():
        assert PureDP(epsilon).delta(at) >= oracles.laplace(1.0, 1 / epsilon).delta(at) - 1e-12
        assert PureDP(epsilon).delta(at) >= pld.get_delta_for_epsilon(at) - 1e-6


def test_approx_dp_at_its_edges() -> None:
    assert ApproxDP(1.0, 1.0).delta(0.0) == 1.0
    assert ApproxDP(1.0, 1.0).epsilon(1.0) == 0.0
    assert ApproxDP(1.0, 0.0).epsilon(0.0) == 1.0
    assert ApproxDP(0.0, 0.0).delta(0.0) == 0.0
    assert ApproxDP(1.0, 1e-300).epsilon(1e-300) == 1.0
    assert ApproxDP(1.0, 1e-300).epsilon(0.0) == math.inf
    assert PureDP(1000.0).delta(999.0) == pytest.approx(1 - math.exp(-1), rel=1e-12)
    assert PureDP(1000.0).delta(0.0) == 1.0
    assert PureDP(1000.0).epsilon(0.0) == 1000.0
    assert PureDP(1.0).point == (1.0, 0.0)
    assert PureDP(1.0).notion == "pure_dp"


# --- Gaussian ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.02, 0.3, 1.0, 4.0])
def test_gaussian_dp_agrees_with_dp_accounting(mu: float) -> None:
    for delta in (1e-12, 1e-6, 1e-3, 0.1):
        theirs = get_epsilon_gaussian(1 / mu, delta)
        assert GaussianDP(mu).epsilon(delta) == pytest.approx(theirs, abs=1e-6)


@pytest.mark.parametrize("mu", [1e-4, 0.1, 1.0, 7.0, 44.0])
def test_gaussian_dp_is_the_profile_of_the_gaussian_mechanism(mu: float) -> None:
    claim, oracle = GaussianDP(mu), oracles.gaussian(mu, 1.0)
    for epsilon in (0.0, mu / 10, mu, mu * mu / 2, mu * mu + 3 * mu, 700.0, 1000.0):
        assert claim.delta(epsilon) == pytest.approx(oracle.delta(epsilon), rel=1e-7, abs=1e-300)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 1.0, 100.0, 1e4])
def test_gaussian_dp_inverts_at_every_scale(mu: float) -> None:
    for delta in (1e-300, 1e-100, 1e-10, 0.5, 1 - 1e-12):
        epsilon = GaussianDP(mu).epsilon(delta)
        if epsilon > 0:
            assert GaussianDP(mu).delta(epsilon) == pytest.approx(delta, rel=1e-6)
        else:
            assert GaussianDP(mu).delta(0.0) <= delta
    assert GaussianDP(mu).epsilon(0.0) == math.inf


# --- Renyi ------------------------------------------------------------------------------------


def _divergence(orders: Floats, a: Floats, b: Floats) -> Floats:
    """Return the Renyi divergence of Bernoulli(expit(a)) from Bernoulli(expit(b))."""
    yes = orders * special.log_expit(a) + (1 - orders) * special.log_expit(b)
    no = orders * special.log_expit(-a) + (1 - orders) * special.log_expit(-b)
    return np.asarray(np.logaddexp(yes, no) / (orders - 1))


def _keeps(claim: Any, a: Floats, b: Floats) -> Any:
    """Return whether two-point distributions satisfy the claim in one direction.

    The check follows the definition of the claim.
    """
    if isinstance(claim, RenyiDP):
        orders, budgets = np.array(claim.alphas), np.array(claim.claimed_divergences)
        return (_divergence(orders[:, None], a, b) <= budgets[:, None]).all(axis=0)
    log_excess = np.linspace(math.log(1e-7), math.log(1e6), 120)[:, None] + np.zeros_like(a)
    for _ in range(4):  # the worst order, separately for each pair of distributions
        orders = 1 + np.exp(log_excess)
        ratio = _divergence(orders, a, b) / orders
        top = np.take_along_axis(log_excess, ratio.argmax(axis=0)[None], axis=0)
        step = log_excess[1] - log_excess[0]
        log_excess = top + np.linspace(-1, 1, 21)[:, None] * step
    return ratio.max(axis=0) <= claim.rho


def _largest_p(claim: Any, logit_q: Floats) -> Floats:
    """Return the largest p (as a logit) that the claim allows for each q, by bisection."""
    low, high = logit_q.copy(), np.full_like(logit_q, 700.0)
    for _ in range(50):
        middle = (low + high) / 2
        allowed = _keeps(claim, middle, logit_q) & _keeps(claim, logit_q, middle)
        low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
    return low


def _best(claim: Any, value: Any) -> float:
    """Maximise ``value(logit_p, logit_q)`` over two-point distributions that satisfy the claim."""
    grid = np.linspace(-650.0, 20.0, 101)
    values = value(_largest_p(claim, grid), grid)
    for _ in range(6):
        centre, step = grid[values.argmax()], grid[1] - grid[0]
        grid = np.linspace(centre - 2 * step, centre + 2 * step, 25)
        values = value(_largest_p(claim, grid), grid)
    return float(values.max())


LOST = 1e-4
"""Largest loss of delta and epsilon in a conversion, which must never promise too much."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", RENYI)
def test_renyi_delta_is_lossless_against_two_point_distributions(name: str) -> None:
    claim = CLAIMS[name]
    for epsilon in (0.0, 0.6 * claim.epsilon(1e-6)):

        def excess(a: Floats, b: Floats, epsilon: float = epsilon) -> Floats:
            return np.asarray(special.expit(a) - np.exp(special.log_expit(b) + epsilon))

        best = _best(claim, excess)
        computed = claim.delta(epsilon)
        assert computed >= best * (1 - 5e-8), "the claim promises more than its definition"
        assert computed <= best * (1 + LOST), "the conversion loses something"


@pytest.mark.sampled
@pytest.mark.parametrize("name", RENYI)
@pytest.mark.parametrize("delta", [1e-6, 0.1])
def test_renyi_epsilon_is_lossless_against_two_point_distributions(name: str, delta: float) -> None:
    claim = CLAIMS[name]

    def loss(a: Floats, b: Floats) -> Floats:
        spare = np.maximum(special.expit(a) - delta, 1e-300)
        return np.asarray(np.log(spare) - special.log_expit(b))

    best = max(_best(claim, loss), 0.0)
    computed = claim.epsilon(delta)
    assert computed >= best * (1 - 5e-8), "the claim promises more than its definition"
    assert computed <= best * (1 + LOST), "the conversion loses something"


@pytest.mark.sampled
@pytest.mark.parametrize("name", RENYI)
def test_renyi_conversions_are_never_worse_than_those_of_dp_accounting(name: str) -> None:
    claim = CLAIMS[name]
    if isinstance(claim, RenyiDP):
        orders, budgets = list(claim.alphas), list(claim.claimed_divergences)
    else:
        orders = (1 + np.geomspace(1e-3, 1e4, 500)).tolist()
        budgets = [claim.rho * a for a in orders]  # type: ignore[attr-defined]
    for delta in (1e-10, 1e-6, 1e-3):
        theirs, _ = rdp.compute_epsilon(orders, budgets, delta)
        assert claim.epsilon(delta) <= theirs * (1 + 1e-6) + 1e-9
    for epsilon in (0.1, 1.0, 5.0):
        theirs, _ = rdp.compute_delta(orders, budgets, epsilon)
        assert claim.delta(epsilon) <= theirs * (1 + 1e-6) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("rho", [1e-4, 0.5, 50.0])
def test_the_gaussian_mechanism_keeps_the_zcdp_and_renyi_claims_about_it(rho: float) -> None:
    oracle = oracles.gaussian(math.sqrt(2 * rho), 1.0)
    orders = [1.5, 2.0, 4.0, 16.0, 64.0]
    renyi = RenyiDP(orders, [rho * a for a in orders])
    zcdp = ZeroConcentratedDP(rho)
    for epsilon in np.linspace(0, zcdp.epsilon(1e-9), 6).tolist():
        assert oracle.delta(epsilon) <= zcdp.delta(epsilon) * (1 + 1e-9)
        assert zcdp.delta(epsilon) <= renyi.delta(epsilon) * (1 + 1e-6)
    for delta in (1e-12, 1e-6, 0.01):
        assert oracle.epsilon(delta) <= zcdp.epsilon(delta) <= renyi.epsilon(delta) * (1 + 1e-6)


@pytest.mark.parametrize("rho", [1.0, 300.0, 1000.0])
def test_large_zcdp_claims_still_allow_the_gaussian_mechanism(rho: float) -> None:
    gaussian, zcdp = GaussianDP(math.sqrt(2 * rho)), ZeroConcentratedDP(rho)
    assert zcdp.delta(rho) >= gaussian.delta(rho)
    assert zcdp.epsilon(1e-6) >= gaussian.epsilon(1e-6)


def test_more_orders_and_smaller_budgets_promise_more() -> None:
    for epsilon in (0.0, 0.5, 1.5):
        several = RenyiDP([2.0, 8.0], [0.5, 2.0]).delta(epsilon)
        assert several <= RenyiDP(8.0, 2.0).delta(epsilon) * (1 + 1e-9)
        assert several <= RenyiDP(2.0, 0.5).delta(epsilon) * (1 + 1e-9)
        assert RenyiDP(2.0, 0.4).delta(epsilon) < RenyiDP(2.0, 0.5).delta(epsilon)
    assert RenyiDP([8.0, 2.0], [2.0, 0.5]).delta(0.5) == pytest.approx(
        RenyiDP([2.0, 8.0], [0.5, 2.0]).delta(0.5), rel=1e-12
    )


@pytest.mark.parametrize("claim", [CLAIMS[name] for name in RENYI], ids=RENYI)
def test_renyi_claims_at_their_edges(claim: Claim) -> None:
    assert claim.epsilon(0.0) == math.inf
    assert claim.epsilon(1.0) == 0.0
    assert 0 < claim.delta(0.0) <= 1
    assert claim.delta(650.0) < 1e-6
    assert claim.epsilon(1e-12) < claim.epsilon(1e-300) < math.inf
    assert claim.point is None


# --- construction -----------------------------------------------------------------------------

BAD_CLAIMS: list[tuple[Any, tuple[Any, ...], type[Exception], str]] = [
    (PureDP, (-1.0,), ValueError, "epsilon"),
    (PureDP, (math.inf,), ValueError, "epsilon"),
    (PureDP, (math.nan,), ValueError, "epsilon"),
    (PureDP, ("1",), TypeError, "epsilon"),
    (PureDP, (True,), TypeError, "epsilon"),
    (ApproxDP, (1.0, -1e-9), ValueError, "delta"),
    (ApproxDP, (1.0, 1.1), ValueError, "delta"),
    (ApproxDP, (1.0, math.nan), ValueError, "delta"),
    (ApproxDP, (1.0, None), TypeError, "delta"),
    (ApproxDP, (-0.1, 0.1), ValueError, "epsilon"),
    (GaussianDP, (0.0,), ValueError, "mu"),
    (GaussianDP, (math.inf,), ValueError, "mu"),
    (GaussianDP, ([1.0],), TypeError, "mu"),
    (ZeroConcentratedDP, (0.0,), ValueError, "rho"),
    (ZeroConcentratedDP, (math.nan,), ValueError, "rho"),
    (RenyiDP, (1.0, 0.5), ValueError, "alpha"),
    (RenyiDP, (0.5, 0.5), ValueError, "alpha"),
    (RenyiDP, (math.inf, 0.5), ValueError, "alpha"),
    (RenyiDP, ([2.0, 2.0], [0.5, 0.5]), ValueError, "alpha"),
    (RenyiDP, ([], []), ValueError, "alpha"),
    (RenyiDP, ([2.0, 3.0], [0.5]), ValueError, "alpha and epsilon"),
    (RenyiDP, (2.0, 0.0), ValueError, "epsilon"),
    (RenyiDP, (2.0, math.nan), ValueError, "epsilon"),
    (RenyiDP, ("2", 0.5), TypeError, "alpha"),
]


@pytest.mark.parametrize(("claim", "arguments", "error", "name"), BAD_CLAIMS)
def test_bad_parameters_are_refused_by_name(
    claim: Any, arguments: tuple[Any, ...], error: type[Exception], name: str
) -> None:
    with pytest.raises(error, match=f"^{name} must "):
        claim(*arguments)


@pytest.mark.parametrize("relation", ["replace_user", 1, ("replace_user",)])
def test_a_relation_of_another_type_is_refused(relation: Any) -> None:
    with pytest.raises(
        TypeError, match="^relation must be None or a Relation, such as Relation.REPLACE_USER"
    ):
        GaussianDP(1.0, relation)


def test_claims_are_frozen_hashable_and_compare_by_their_fields() -> None:
    claim = PureDP(1.0, Relation.REPLACE_USER, "Lemma 1")
    assert claim == PureDP(1.0, Relation.REPLACE_USER, "Lemma 1")
    assert claim != PureDP(1.0)
    assert hash(ZeroConcentratedDP(1)) == hash(ZeroConcentratedDP(1.0))
    with pytest.raises(AttributeError):
        claim.claimed_epsilon = 2.0  # type: ignore[misc]


@pytest.mark.parametrize("claim", [PureDP, functools.partial(ApproxDP, delta=1e-5)])
def test_claims_of_absurd_epsilons_are_refused(claim: Any) -> None:
    assert claim(1e100).point[0] == 1e100
    with pytest.raises(
        ValueError, match=r"epsilon must be a number in \[0, 1e\+100\], got 1e\+308"
    ):
        claim(1e308)


def test_an_epsilon_beyond_all_doubles_is_infinite() -> None:
    assert GaussianDP(1e300).epsilon(1e-6) == math.inf
    assert GaussianDP(1e100).epsilon(1e-6) == pytest.approx(1e200 / 2, rel=1e-6)


# --- delta-approximate rho-zCDP -----------------------------------------------------------------


def test_approximate_zcdp_is_a_gaussian_that_tells_all_with_probability_delta() -> None:
    """Check the curve of ApproxZCDP with a Gaussian that reveals all with probability delta.

    The tested mechanism satisfies the claim. The curve of the tested mechanism is below the curve
    of the claim and close to it.
    """
    rho, leak = 0.5, 1e-4
    claim, gaussian = ApproxZCDP(rho, leak), GaussianDP((2 * rho) ** 0.5)
    for epsilon in (0.0, 0.5, 2.0, 5.0):
        kept = leak + (1 - leak) * gaussian.delta(epsilon)
        assert kept <= claim.delta(epsilon) <= leak + 10 * gaussian.delta(epsilon)


def test_approximate_zcdp_at_its_edges() -> None:
    exact = ZeroConcentratedDP(0.5)
    assert ApproxZCDP(0.5, 0.0).delta(1.0) == exact.delta(1.0)
    assert ApproxZCDP(0.5, 0.0).epsilon(1e-6) == exact.epsilon(1e-6)
    assert ApproxZCDP(0.5, 0.1).epsilon(0.1 + 0.9e-6) == pytest.approx(exact.epsilon(1e-6))
    assert ApproxZCDP(0.5, 0.1).epsilon(0.1) == math.inf
    assert ApproxZCDP(0.5, 1.0).epsilon(1.0) == 0.0
    assert ApproxZCDP(0.5, 1.0).delta(3.0) == 1.0
    assert str(ApproxZCDP(0.5, 1e-6)) == "rho = 0.5, delta = 1e-06 (approximate zCDP)"
    with pytest.raises(ValueError, match="^rho must be"):
        ApproxZCDP(0.0, 0.1)
    with pytest.raises(ValueError, match="^delta must be"):
        ApproxZCDP(1.0, 1.5)
