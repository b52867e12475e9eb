"""Claims of dp-accounting and OpenDP, compared with closed forms."""

from __future__ import annotations

import json
import math
import sys
from functools import partial

import dp_accounting as da
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.pld_privacy_accountant import PLDAccountant
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant
from scipy import special

from dpaudit import (
    Accounted,
    ApproxDP,
    ApproxZCDP,
    ArgumentError,
    GaussianDP,
    NeighborPair,
    PureDP,
    Relation,
    ZeroConcentratedDP,
    audit,
    from_opendp,
    within_sensitivity,
)
from dpaudit.claims import Claim
from dpaudit.stats import oracles

ADD, REPLACE = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER
GAUSSIAN = da.GaussianDpEvent(1.0)
SAMPLED = da.PoissonSampledDpEvent(0.2, da.GaussianDpEvent(0.7))


def sampled_gaussian(epsilon: float, q: float, sigma: float) -> float:
    """Return the exact delta of one step, over both directions.

    The integral starts where the likelihood ratio crosses e^epsilon.
    """

    def mass(x: float, shift: float) -> float:
        return float(special.ndtr(-(x - shift) / sigma))

    def crossing(ratio: float) -> float:
        return sigma**2 * math.log((ratio - 1 + q) / q) + 0.5

    removed = crossing(math.exp(epsilon))  # above this point, the mixture is likelier
    mixed = q * mass(removed, 1) + (1 - q) * mass(removed, 0)
    first = mixed - math.exp(epsilon) * mass(removed, 0)
    if math.exp(-epsilon) <= 1 - q:
        return first
    added = crossing(math.exp(-epsilon))  # below this point, the Gaussian alone is likelier
    mixed = q * (1 - mass(added, 1)) + (1 - q) * (1 - mass(added, 0))
    return max(first, 1 - mass(added, 0) - math.exp(epsilon) * mixed)


# --- dp-accounting ----------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("steps", [1, 9])
def test_gaussian_has_its_closed_form(steps: int) -> None:
    claim, exact = Accounted(da.SelfComposedDpEvent(GAUSSIAN, steps)), GaussianDP(steps**0.5)
    for epsilon in (0.0, 0.5, 2.0, 6.0):
        assert claim.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=1e-5)
        assert claim.delta(epsilon) >= exact.delta(epsilon) * (1 - 1e-9)  # an upper bound
    assert claim.epsilon(1e-6) == pytest.approx(exact.epsilon(1e-6), abs=1e-4)
    assert claim.relation == ADD


@pytest.mark.slow
def test_subsampled_gaussian_has_its_closed_form() -> None:
    claim = Accounted(SAMPLED)
    for epsilon in (0.05, 0.5, 1.0, 3.0):
        assert claim.delta(epsilon) == pytest.approx(sampled_gaussian(epsilon, 0.2, 0.7), rel=1e-4)


def test_laplace_has_its_closed_form() -> None:
    claim, exact = Accounted(da.LaplaceDpEvent(0.5)), oracles.laplace(1.0, 0.5)
    for epsilon in (0.0, 0.7, 1.9):
        assert claim.delta(epsilon) == pytest.approx(exact.delta(epsilon), abs=1e-6)
    assert claim.epsilon(1e-3) == pytest.approx(exact.epsilon(1e-3), abs=1e-3)


def test_accountants_and_distributions_are_taken_as_they_are() -> None:
    accountant = RdpAccountant().compose(GAUSSIAN, 4)
    claim = Accounted(accountant)
    assert claim.kind == "RdpAccountant"
    assert claim.epsilon(1e-5) == accountant.get_epsilon(1e-5)
    assert claim.epsilon(1e-5) > GaussianDP(2.0).epsilon(1e-5)
    distribution = privacy_loss_distribution.from_gaussian_mechanism(1.0)
    exact = GaussianDP(1.0).delta(1.0)
    assert Accounted(distribution, ADD).delta(1.0) == pytest.approx(exact, rel=1e-5)
    with pytest.raises(ArgumentError, match="^relation must be given for a PrivacyLoss"):
        Accounted(distribution)


@pytest.mark.slow
def test_what_an_accountant_composes_later_changes_no_claim() -> None:
    accountant = PLDAccountant().compose(GAUSSIAN)
    claim = Accounted(accountant)
    accountant.compose(GAUSSIAN, 9)
    assert claim.epsilon(1e-5) == pytest.approx(GaussianDP(1.0).epsilon(1e-5), abs=1e-4)
    assert "count" not in claim.words


def test_an_event_that_the_first_accountant_does_not_know_is_taken_by_the_second() -> None:
    event = da.SampledWithoutReplacementDpEvent(100, 10, GAUSSIAN)
    claim = Accounted(event, REPLACE)
    assert claim.kind == "RdpAccountant"
    expected = RdpAccountant(neighboring_relation=da.NeighboringRelation.REPLACE_ONE)
    assert claim.epsilon(1e-5) == expected.compose(event).get_epsilon(1e-5)
    with pytest.raises(ArgumentError, match="^accounted must be an event that a PLDAccountant or"):
        Accounted(event, ADD)


@pytest.mark.slow
def test_relations_are_translated_and_a_mismatch_is_refused() -> None:
    theirs = da.NeighboringRelation
    assert Accounted(PLDAccountant(theirs.REPLACE_ONE).compose(GAUSSIAN)).relation == REPLACE
    assert Accounted(PLDAccountant().compose(GAUSSIAN), ADD).relation == ADD
    with pytest.raises(ArgumentError, match="^relation must be add_remove_user, the relation of "):
        Accounted(PLDAccountant().compose(GAUSSIAN), REPLACE)
    with pytest.raises(ArgumentError, match="got REPLACE_SPECIAL"):
        Accounted(PLDAccountant(theirs.REPLACE_SPECIAL).compose(GAUSSIAN))
    with pytest.raises(ArgumentError, match="^relation must be .* for an event, got within_sens"):
        Accounted(GAUSSIAN, within_sensitivity(1.0))
    # Under REPLACE_ONE, a PLDAccountant doubles the move of one user.
    replaced = Accounted(GAUSSIAN, REPLACE)
    assert replaced.epsilon(1e-5) == pytest.approx(GaussianDP(2.0).epsilon(1e-5), abs=1e-4)


@pytest.mark.parametrize("bad", [GAUSSIAN.noise_multiplier, "gaussian", None, GaussianDP(1.0)])
def test_other_objects_are_refused(bad: object) -> None:
    with pytest.raises(TypeError, match="^accounted must be a DpEvent, a PrivacyAccountant or"):
        Accounted(bad)
    with pytest.raises(
        TypeError, match="^relation must be None or a Relation, such as Relation.REPLACE_USER"
    ):
        Accounted(GAUSSIAN, "add_remove_user")  # type: ignore[arg-type]


def test_without_dp_accounting_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ArgumentError, match="pip install dp-accounting$"):
        Accounted(GAUSSIAN)


@pytest.mark.slow
def test_accounted_keeps_what_every_claim_keeps() -> None:
    claim = Accounted(SAMPLED, source="a paper")
    assert isinstance(claim, Claim)
    assert claim.source == "a paper"
    assert claim.point is None
    assert claim.delta(1e6) < 1e-12
    assert claim.epsilon(0.0) == math.inf
    assert claim.epsilon(1.0) == 0.0
    assert json.loads(json.dumps(claim.to_json()))["accountant"] == "PLDAccountant"
    for bad in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="^epsilon must be"):
            claim.delta(bad)
        with pytest.raises(ValueError, match="^delta must be"):
            claim.epsilon(bad)


@pytest.mark.slow
def test_equal_events_give_equal_claims_and_others_do_not() -> None:
    event = da.ComposedDpEvent([SAMPLED, GAUSSIAN])  # the event holds a list, which has no hash
    one, same, other = Accounted(event), Accounted(event), Accounted(GAUSSIAN)
    assert one == same
    assert len({one, same, other}) == 2
    assert other != Accounted(GAUSSIAN, REPLACE)
    assert other != Accounted(GAUSSIAN, source="a paper")
    accountant = PLDAccountant().compose(GAUSSIAN)
    assert Accounted(accountant) != Accounted(accountant)


def test_a_point_of_the_curve_is_a_claim_of_its_own() -> None:
    claim = Accounted(GAUSSIAN, REPLACE, "a paper")
    at = claim.at(1e-5)
    assert at == ApproxDP(claim.epsilon(1e-5), 1e-5, REPLACE, "a paper")
    with pytest.raises(ArgumentError, match="^delta must be a value at which a finite epsilon"):
        claim.at(0.0)


@pytest.mark.slow
def test_an_audit_takes_the_curve_and_stores_it() -> None:
    def noisy_sum(data: np.ndarray, size: int, *, sigma: float, rng: np.random.Generator):
        return data.sum() + sigma * rng.standard_normal(size)

    pair = NeighborPair(np.ones((3, 1)), np.ones((2, 1)), relation=ADD)
    claim = Accounted(GAUSSIAN)
    good, bad = (
        audit(partial(noisy_sum, sigma=sigma), claim, pair, draws=20_000, seed=1, mutants=None)
        for sigma in (1.0, 0.5)
    )
    assert good.verdict.words == "NO POWER"
    assert bad.verdict.words == "REFUTED"
    assert bad.claim["words"].startswith("DP as accounted by PLDAccountant: Gaussian(")
    assert type(bad).from_json(json.loads(json.dumps(bad.to_json()))).claim == bad.claim


# --- OpenDP -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dp():
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    return prelude


@pytest.fixture(scope="module")
def value(dp):
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def test_opendp_pure_and_zero_concentrated(dp, value) -> None:
    within = within_sensitivity(1.5)
    laplace = from_opendp(dp.m.make_laplace(*value, scale=2.0), 1.5)
    assert (type(laplace), laplace.relation, laplace.source) == (PureDP, within, "OpenDP")
    assert laplace.epsilon(0.0) == pytest.approx(0.75)
    gaussian = from_opendp(dp.m.make_gaussian(*value, scale=2.0), 1.5, source="ours")
    assert isinstance(gaussian, ZeroConcentratedDP)
    assert (gaussian.rho, gaussian.source) == (pytest.approx((1.5 / 2) ** 2 / 2), "ours")


def test_opendp_approximate_and_curves(dp, value) -> None:
    gaussian = dp.m.make_gaussian(*value, scale=2.0)
    curve = dp.c.make_zCDP_to_approxDP(gaussian)
    fixed = from_opendp(dp.c.make_fix_delta(curve, 1e-6), 1.0)
    assert isinstance(fixed, ApproxDP)
    assert fixed.point[1] == 1e-6
    assert fixed.point[0] >= GaussianDP(0.5).epsilon(1e-6)
    assert from_opendp(curve, 1.0, delta=1e-6).point == fixed.point
    approximate = from_opendp(dp.c.make_approximate(gaussian), 1.0)
    assert approximate == ApproxZCDP(0.125, 0.0, within_sensitivity(1.0), "OpenDP")
    for measurement, delta in ((curve, None), (gaussian, 1e-6)):
        with pytest.raises(ArgumentError, match="^delta must be given for a SmoothedMaxDivergence"):
            from_opendp(measurement, 1.0, delta=delta)


def test_opendp_relations(dp) -> None:
    rows = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False)), dp.symmetric_distance()
    total = dp.t.make_sum(*rows) >> dp.m.then_laplace(2.0)
    assert from_opendp(total, 1).relation == ADD
    assert from_opendp(total, 2, relation=REPLACE).relation == REPLACE
    with pytest.raises(ArgumentError, match="^relation must be add_remove_user, the relation of"):
        from_opendp(total, 1, relation=REPLACE)
    with pytest.raises(ArgumentError, match="^relation must be given for SymmetricDistance"):
        from_opendp(total, 2)
    bit = from_opendp(dp.m.make_randomized_response_bool(0.75), 1)
    assert bit == PureDP(bit.epsilon(0.0), REPLACE, "OpenDP")
    assert bit.epsilon(0.0) == pytest.approx(math.log(3))
    vector = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    claim = from_opendp(dp.m.make_gaussian(*vector, scale=1.0), 2.0)
    assert claim.relation == within_sensitivity(2.0, norm="l2")


def test_what_is_no_measurement_is_refused() -> None:
    with pytest.raises(TypeError, match="^measurement must be a measurement of OpenDP"):
        from_opendp(GAUSSIAN, 1.0)


def test_an_output_measure_that_is_not_known_is_refused() -> None:
    class Odd:
        output_measure, input_metric = "RenyiDivergence", "AbsoluteDistance(f64)"

        def map(self, d_in: float) -> float:
            return d_in

    with pytest.raises(ArgumentError, match="got RenyiDivergence$"):
        from_opendp(Odd(), 1.0)


# --- other accountants and functions ---


class OfOpacus:
    """An accountant with the interface of Opacus."""

    def __init__(self) -> None:
        self.history = [(1.0, 0.5, 10)]

    def get_epsilon(self, delta: float) -> float:
        return GaussianDP(1.0).epsilon(delta)


class OfAutodp:
    """A mechanism with the interface of autodp."""

    name = "Gaussian"

    def get_approxDP(self, delta: float) -> float:
        return GaussianDP(1.0).epsilon(delta)


@pytest.mark.parametrize("accounted", [OfOpacus(), OfAutodp(), GaussianDP(1.0).epsilon])
def test_epsilon_alone_makes_a_curve_that_is_never_stronger(accounted: object) -> None:
    claim, exact = Accounted(accounted, ADD), GaussianDP(1.0)
    assert claim.relation == ADD
    for delta in (1e-9, 1e-5, 0.1):
        assert claim.epsilon(delta) == exact.epsilon(delta)
    for epsilon in (0.1, 1.0, 4.0):
        assert exact.delta(epsilon) * (1 - 1e-9) <= claim.delta(epsilon)
        assert claim.delta(epsilon) <= exact.delta(epsilon) * 1.0011
    assert claim.at(1e-5).point == (exact.epsilon(1e-5), 1e-5)
    with pytest.raises(ArgumentError, match="^relation must be given for"):
        Accounted(accounted)


def test_a_pure_epsilon_needs_no_delta() -> None:
    claim = Accounted(lambda delta: 2.0, REPLACE)
    assert claim.delta(2.0) == 0.0
    assert claim.delta(1.0) == 1.0


def test_where_an_accountant_fails_it_promises_nothing() -> None:
    def fails(delta: float) -> float:
        if delta < 1e-6:
            raise ValueError("too small")
        return 1.0

    claim = Accounted(fails, ADD)
    assert claim.epsilon(0.0) == float("inf")
    assert 1e-6 <= claim.delta(1.0) <= 1.001e-6
    assert claim.to_json()["epsilons"] == [float("inf"), float("inf"), 1.0, 1.0, 1.0]
    with pytest.raises(ArgumentError, match="^accounted must report a number at delta = 1e-07"):
        Accounted(fails, ADD).epsilon(1e-7)
    with pytest.raises(ArgumentError, match="^accounted must report a number at delta = 0.5"):
        Accounted(lambda delta: "much", ADD).epsilon(0.5)


def test_profiles_of_opendp_are_read() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    profile = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=1.0)).map(1.0)
    claim = Accounted(profile, within_sensitivity(1.0))
    assert claim.epsilon(1e-5) == profile.epsilon(1e-5)
    assert claim.delta(1.0) == profile.delta(1.0)
