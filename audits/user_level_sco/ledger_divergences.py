"""User-level DP-SCO: differential privacy, divergences and their robust versions, Lemma 3."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import norm

from algorithms.common.noise import gaussian_mechanism
from audits.user_level_sco.baseline_checks import attack_dp_sgd
from audits.user_level_sco.conventions import DELTA, EPSILON, SHARE
from dpaudit import ApproxDP, NeighborPair, Relation, within_sensitivity
from dpaudit.errors import PairError
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array
from dpaudit.stats import hockey_stick, oracles

ROUNDING = 1e-12
L2 = within_sensitivity(1.0, norm="l2")
EVENTS = np.array(list(itertools.product([0, 1], repeat=4)))
PAIRS = {"weights": Array(SHARE, (2, 4))}
APART = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])


def distributions(weights):
    """Return the rows of positive weights divided by their sums, or None if a row sums to 0."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / total if (total > 0).all() else None


# --- differential privacy ---


def attack_definition(ledger):
    """Compare the divergence that other ledger rows use with the supremum over all events."""
    ledger.identity(
        "the largest P[O] - exp(epsilon) P'[O] over all events", tolerance=1e-11, **PAIRS,
        extremal=[{"weights": APART, "epsilon": 1.0}], epsilon=SHARE, base=math.e,
        mutant={"base": 2.0},
    )(largest)  # fmt: skip


def largest(weights, epsilon, base):
    if (pair := distributions(weights)) is None:
        return None
    p, q = pair
    return 1 + (EVENTS @ (p - base**epsilon * q)).max(), 1 + hockey_stick(p, q, epsilon)


@statement("sco2.eq1")
def item_level_privacy(ledger):
    """A mechanism M is (epsilon, delta)-item-level DP if for any two datasets D and D' that differ
    by a single item and any event O, Pr[M(D) in O] <= e^epsilon Pr[M(D') in O] + delta. It is
    user-level DP if this holds of datasets that differ by the contributions of a single user, up to
    m items.

    This statement is a definition. In other ledger rows, the divergence is the supremum of P[O] -
    e^epsilon P'[O] over events O. "O in Range(M)" should be "O a subset of Range(M)". The text
    defines user-level neighbours by "adding or removing one user". Definition 15 defines neighbours
    as datasets that "differ from one user". The proofs replace one user. A replacement consists of
    a removal and an addition, so replacing a user doubles epsilon.
    """
    attack_definition(ledger)

    @ledger.edge("neighbours replace one user").sweep(
        "Laplace noise on a sum of +-1, epsilon-DP where a user is added or removed", epsilon=1.0,
        lhs="privacy loss where a user is replaced", rhs="epsilon",
    )  # fmt: skip
    def replaced(epsilon):
        added, moved = 1.0, 2.0  # how far the sum moves
        return moved / (added / epsilon), epsilon


@statement("sco2.def15")
def user_level_privacy(ledger):
    """A mechanism M is (epsilon, delta)-user-level DP if for any neighbouring datasets D and D'
    that differ from one user and any output event set O, Pr[M(D) in O] <= e^epsilon Pr[M(D') in O]
    + delta.

    The definition is the definition of item-level DP, except that users replace items. For m = 1,
    the definition of user-level DP is (1). "Differ from one user" should be "differ in one user".
    All proofs replace the data of one user.
    """
    attack_definition(ledger)
    words = ["".join(items) for items in itertools.product("ab", repeat=4)]
    pairs = [{"left": a, "right": b} for a in words for b in words]

    @ledger.identity("pairs that our audits accept: two users of two items", cases=pairs, m=2,
                     mutant={"m": 1})  # fmt: skip
    def admitted(left, right, m):
        """Return whether the audits accept the pair, and whether at most one user differs.

        The mutant counts items instead of users.
        """
        parts = [[d[i : i + m] for i in range(0, 4, m)] for d in (left, right)]
        differ = sum(x != y for x, y in zip(*parts, strict=True))
        data = [[[float(ord(x)) for x in d[:2]], [float(ord(x)) for x in d[2:]]]
                for d in (left, right)]  # fmt: skip
        try:
            NeighborPair(*data, relation=Relation.REPLACE_USER)
        except PairError:
            return 0, differ <= 1
        return 1, differ <= 1


# --- the Gaussian mechanism ---


def gaussian_delta(epsilon, delta, constant, sensitivity=1.0, factor=2.0):
    """Return the exact delta of the noise, and the claimed delta."""
    sigma = math.sqrt(factor * math.log(constant / delta)) / epsilon
    return float(oracles.gaussian(sensitivity, sigma).delta(epsilon)), delta


@statement("sco2.eq2")
def noisy_mean(ledger):
    """For points q_t(Z_1), ..., q_t(Z_B) in the unit ball, their mean plus N(0, sigma_1^2 I_d),
    with sigma_1 proportional to 1/B, is private.

    If the points lie in the unit ball, the mean moves by at most 2 / B. If a unit vector u becomes
    -u, the mean moves by 2 / B. So sigma_1 = (2 / B) sqrt(2 log(1.25/delta)) / epsilon is enough,
    but noise for a move of 1 / B is not enough. For every (epsilon, delta), the scale is
    proportional to 1 / B, as displayed. The baseline DP-SGD adds such noise in every step, and runs
    as it is described.
    """
    attack_dp_sgd(ledger)
    domain = {"epsilon": EPSILON, "delta": DELTA, "extremal": [{"epsilon": 1.0, "delta": 0.5}]}

    @ledger.falsify("exactly, for the largest move", noise=2.0, mutant={"noise": 1.0}, **domain)
    def exact(epsilon, delta, noise):
        return gaussian_delta(epsilon, delta, 1.25, sensitivity=2.0 / noise)

    def mean(points, size, *, rng, factor=1.0):
        sigma = factor * 2 / len(points) * math.sqrt(2 * math.log(1.25 / 0.1))
        return gaussian_mechanism(points.mean(axis=0), size, sigma=sigma, rng=rng)

    points = np.tile([0.6, 0.8], (5, 1))
    other = points.copy()
    other[0] *= -1
    ledger.audit(
        mean, ApproxDP(1.0, 0.1), NeighborPair(points, other, relation=Relation.REPLACE_USER),
        draws=3_000, mutants=[partial(mean, factor=0.25)],
        survivors="At delta = .1 little more than half of the noise is needed.",
    )  # fmt: skip


@statement("sco2.prop16")
def gaussian_noise(ledger):
    """If 0 < epsilon <= 1 and norm(f(D) - f(D')) <= Delta for all neighbouring datasets, then f(D)
    + N(0, sigma^2 I_d) with sigma^2 >= 2 Delta^2 log(1.25/delta)/epsilon^2 is (epsilon, delta)-DP.

    The condition is loose. If delta <= 1/2 and epsilon <= 1, the constant 1.25 can be replaced by
    .6. For delta <= 1/2, the printed bound holds for all epsilon up to 4.4. The function "f : P^*
    -> R^d" takes datasets, but elsewhere, the paper writes Z^* for datasets.
    """
    attack_gaussian(ledger, top=1.0)


@statement("sco1.propA.2")
def gaussian_noise_without_condition(ledger):
    """If norm(f(D) - f(D')) <= Delta for all neighbouring datasets, then f(D) + N(0, sigma^2 I_d)
    with sigma^2 >= 2 Delta^2 log(1.25/delta)/epsilon^2 is (epsilon, delta)-DP.

    The paper prints no condition on epsilon. For large epsilon, the statement fails. At delta =
    1/2, the statement fails for epsilon >= 4.5. At delta = 1e-6, the statement fails for epsilon >=
    8.9. The statement holds for epsilon <= 1, and even for epsilon <= 4.4. The second version adds
    the condition.
    """
    attack_gaussian(ledger, top=1.0)

    @ledger.edge("epsilon <= 1").sweep(
        "epsilon = 10", epsilon=10.0, delta=1e-6, lhs="exact delta", rhs="delta"
    )
    def large(epsilon, delta):
        sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        upper = 0.5 / sigma - epsilon * sigma
        return ndtr(upper) - math.exp(epsilon) * ndtr(upper - 1 / sigma), delta


def attack_gaussian(ledger, top):
    domain = {"epsilon": Interval(1e-3, top, log=True)}
    domain |= {"delta": Interval(1e-250, 0.999, log=True), "constant": 1.25}
    domain["extremal"] = [{"epsilon": top, "delta": delta} for delta in (0.999, 0.5, 1e-250)]
    small = {**domain, "delta": Interval(1e-250, 0.5, log=True), "constant": 0.6}
    small["extremal"] = [{"epsilon": top, "delta": delta} for delta in (0.5, 1e-250)]
    further = {**domain, "epsilon": Interval(1.0, 4.4), "delta": DELTA}
    further["extremal"] = [{"epsilon": 4.4, "delta": 0.5}]

    ledger.falsify("exactly", mutant={"factor": 1.0}, **domain, factor=2.0)(gaussian_delta)
    ledger.sharper(".6 for 1.25").falsify(mutant={"constant": 0.55}, **small)(gaussian_delta)
    ledger.sharper("epsilon <= 4.4").falsify(mutant={"constant": 1.2}, **further)(gaussian_delta)
    sigma = math.sqrt(2 * math.log(1.25 / 0.1))
    ledger.audit(
        partial(gaussian_mechanism, sigma=sigma), ApproxDP(1.0, 0.1, L2),
        NeighborPair(np.zeros(2), [0.6, 0.8], relation=L2), draws=3_000,
        mutants=[partial(gaussian_mechanism, sigma=sigma / 4)],
        survivors="At delta = .1 little more than half of the noise is needed. Below delta = 1e-6 "
                  "half is not enough; exact deltas show this, but these draws cannot.",
    )  # fmt: skip


# --- divergences ---


def max_divergence(p, q, delta):
    """Return the larger of D(p || q) and D(q || p) over all events.

    A ratio 0 / 0 imposes no condition.
    """
    worst = -math.inf
    for left, right in ((EVENTS @ p, EVENTS @ q), (EVENTS @ q, EVENTS @ p)):
        gain = left - delta
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(np.where(gain > 1e-15, gain / right, 0.0))
        worst = max(worst, float(ratios.max()))
    return worst


@statement("sco2.def1")
def divergences(ledger):
    """For distributions mu and nu on R^d: d_tv(mu, nu) = sup over S of abs(mu(S) - nu(S));
    W_inf(mu, nu) = inf over couplings gamma of the essential supremum of norm(x - y), (x, y) ~
    gamma; D^delta(mu || nu) = max of log((mu(S) - delta)/nu(S)) over S within supp(mu) with mu(S)
    >= delta; D^delta(mu, nu) is the maximum of D^delta(mu || nu) and D^delta(nu || mu).

    These statements are definitions, and other ledger rows use these divergences. An event with
    mu(S) = delta and nu(S) = 0 has the ratio 0 / 0, so the event imposes no condition. If mu and nu
    are close and delta > 0, the divergence D is negative. For example, D^delta(mu, mu) is log(1 -
    delta). The infimum in W_inf is attained. So "W_inf <= b" means that some coupling keeps the two
    points within b.
    """

    @ledger.identity("total variation over all events", half=0.5, mutant={"half": 1.0}, **PAIRS)
    def variation(weights, half):
        if (pair := distributions(weights)) is None:
            return None
        p, q = pair
        return 1 + np.abs(EVENTS @ (p - q)).max(), 1 + half * np.abs(p - q).sum()

    lines = {"left": Array(SHARE, (4,)), "right": Array(SHARE, (4,))}

    @ledger.identity(
        "W_inf of empirical distributions on a line: the best coupling pairs ranks",
        pairing=np.sort, mutant={"pairing": np.array}, **lines,
    )  # fmt: skip
    def wasserstein(left, right, pairing):
        """Minimise over permutations, which generate all couplings of uniform points by mixing."""
        ways = (left[list(order)] for order in itertools.permutations(range(4)))
        least = min(np.abs(way - right).max() for way in ways)
        return 1 + least, 1 + np.abs(pairing(left) - pairing(right)).max()

    @ledger.identity(
        "the approximate max divergence inverts the hockey stick", tolerance=1e-9,
        epsilon=Interval(0.0, 1.0), less=1.0, mutant={"less": 0.5}, **PAIRS,
    )  # fmt: skip
    def inverse(weights, epsilon, less):
        """Compare both conditions.

        The parameter delta is the hockey-stick divergence at epsilon.
        """
        p, q = distributions(weights + 0.01)
        delta = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        if delta < 1e-6:
            return None
        return 1 + max_divergence(p, q, less * delta), 1 + epsilon


@statement("sco2.def1.iff")
def divergence_and_privacy(ledger):
    """A mechanism M is (epsilon, delta)-DP if and only if D^delta(M(D), M(D')) <= epsilon for every
    pair D, D' of neighbouring datasets.

    The equivalence is exact on both sides of the boundary, if 0 / 0 imposes no condition. The
    divergence omits events with mu(S) < delta. An event with mu(S) < delta imposes no condition in
    (1).
    """
    domain = {**PAIRS, "epsilon": Interval(0.0, 2.0), "delta": Interval(0.0, 0.5)}
    domain["extremal"] = [
        {"weights": weights, "epsilon": epsilon, "delta": 0.25}
        for weights in (APART, APART + 1.0, np.array([[1.0, 0, 1, 2], [0.0, 1, 1, 2]]))
        for epsilon in (0.0, 0.5)
    ]

    @ledger.identity("random pairs", swapped=True, mutant={"swapped": False}, **domain)
    def equivalent(weights, epsilon, delta, swapped):
        if (pair := distributions(weights)) is None:
            return None
        p, q = pair
        sticks = hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon) * swapped
        if min(abs(stick - delta) for stick in sticks) < 1e-9:
            return None  # on the boundary, rounding decides
        return max(sticks) <= delta, max_divergence(p, q, delta) <= epsilon

    @ledger.identity("on the boundary", side=[-1e-6, 1e-6], delta=0.1, gap=[0.3, 1.0, 3.0])
    def boundary(side, delta, gap):
        """Use two outcomes whose hockey-stick divergence is delta at epsilon = log(gap + 1)."""
        q = (1 - delta) / (2 + gap)
        p, epsilon = np.array([delta + (gap + 1) * q, q, 0, 0]), math.log1p(gap) + side
        return side > 0, max_divergence(p, p[[1, 0, 2, 3]], delta) <= epsilon


# --- robust divergences ---


def near(points, reach):
    """Return the pairs of points within `reach` of one another."""
    return np.nonzero(np.abs(points[:, None] - points[None, :]) <= reach + 1e-9)


def transported(p, q, points, reach):
    """Return the largest mass that a coupling can keep within `reach`."""
    i, j = near(points, reach)
    n, cells = len(points), range(len(i))
    rows = [sparse.csr_matrix((np.ones(len(i)), (at, cells)), (n, len(i))) for at in (i, j)]
    found = linprog(
        -np.ones(len(i)), A_ub=sparse.vstack(rows), b_ub=np.r_[p, q], method="highs"
    )  # fmt: skip
    return -found.fun


@statement("sco2.def2")
def robust_divergences(ledger):
    """For zeta >= 0 and b >= 0: W^zeta(mu, nu) is the infimum of W_inf(mu', nu) over mu' with
    d_tv(mu, mu') <= zeta, and D^(delta,(b,zeta))(mu, nu) is the infimum of D^delta(mu', nu) over
    mu' with W^zeta(mu, mu') <= b.

    These statements are definitions. By Strassen's theorem, W^zeta(mu, nu) <= b is equivalent to
    the following condition. Some coupling keeps the two points within b, except with probability
    zeta. So W^zeta is symmetric. The robust shifted divergence moves only its first argument by
    zeta and b, so this divergence is not symmetric. But the proof of Lemma 3 says "by symmetry",
    and the proof of Lemma 10 moves both arguments.
    """
    domain = {**PAIRS, "reach": Choice((0, 1, 2)), "wide": 1.0, "examples": 100}

    @ledger.identity(
        "the least zeta with W^zeta <= b, by a linear program and over all events (Strassen)",
        mutant={"wide": 0.0}, extremal=[{"weights": APART, "reach": 1}], tolerance=1e-7, **domain,
    )  # fmt: skip
    def strassen(weights, reach, wide):
        if (pair := distributions(weights)) is None:
            return None
        p, q = pair
        around = np.abs(np.subtract.outer(range(4), range(4))) <= reach * wide
        events = EVENTS @ p - (EVENTS @ around > 0) @ q
        return 2 - transported(p, q, np.arange(4.0), reach), 1 + events.max()

    @ledger.identity("W^zeta is symmetric", tolerance=1e-7, **{**domain, "mutant": {"wide": 0.5}})
    def symmetric(weights, reach, wide):
        if (pair := distributions(weights)) is None:
            return None
        p, q = pair
        points = np.arange(4.0)
        backward = transported(q, p, points, reach) * (1 + wide) / 2
        return transported(p, q, points, reach), backward


@statement("sco2.gm-recall")
def gaussian_mechanism_of_close_distributions(ledger):
    """If W_inf(mu, nu) <= b and sigma >= b sqrt(2 log(1.25/delta))/epsilon, then D^delta(mu * rho,
    nu * rho) <= epsilon for rho = N(0, sigma^2 I_d).

    By joint convexity, the worst case is a shift by b. If the two distributions differ by a shift,
    the statement is Proposition 16, which is equally loose. Proposition 16 requires epsilon <= 1,
    but this statement does not repeat the condition. At epsilon = 10, the statement fails.
    """
    domain = {"epsilon": EPSILON, "delta": DELTA, "constant": 1.25, "factor": 2.0}
    worst = [{"epsilon": 1.0, "delta": 0.5}, {"epsilon": 1.0, "delta": 1e-12}]
    ledger.falsify("a shift", mutant={"factor": 0.6}, extremal=worst, **domain)(gaussian_delta)

    mixture = {"weights": Array(SHARE, (4,)), "moves": Array(Interval(-1.0, 1.0), (4,))}
    mixture |= {"places": Array(Interval(-9.0, 9.0), (4,)), "b": 1.0, "mutant": {"b": 4.0}}
    shift = {"weights": np.ones(4), "places": np.zeros(4), "moves": np.ones(4)}

    @ledger.falsify(
        "mixtures, by quadrature", epsilon=Interval(0.1, 1.0), delta=Interval(1e-6, 0.5, log=True),
        extremal=[{**shift, "epsilon": 1.0, "delta": 0.5}], tolerance=1e-6, **mixture,
    )  # fmt: skip
    def mixed(weights, places, moves, epsilon, delta, b):
        if not weights.sum():
            return None
        sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        x = np.linspace(-14 - 9 * sigma, 14 + 9 * sigma, 4001)
        p, q = (
            norm.pdf(x[:, None], places + shift, sigma) @ weights
            for shift in (0 * moves, b * moves)
        )
        return hockey_stick(p / p.sum(), q / q.sum(), epsilon), delta

    @ledger.edge("epsilon <= 1").sweep(
        "epsilon = 10, a shift by b", epsilon=10.0, delta=1e-6, lhs="exact delta", rhs="delta"
    )
    def large(epsilon, delta):
        sigma = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
        upper = 0.5 / sigma - epsilon * sigma
        return ndtr(upper) - math.exp(epsilon) * ndtr(upper - 1 / sigma), delta
