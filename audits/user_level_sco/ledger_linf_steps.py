"""User-level DP-SCO: iterates of neighbours in l_inf, Lemmas 32 and 33."""

from __future__ import annotations

import math

import numpy as np

from algorithms.user_level_sco.coordinatewise import concentration_profile, robust_gradient
from algorithms.user_level_sco.domains import Box
from algorithms.user_level_sco.losses import Huber, MatrixQuadratic, VaryingQuadratic
from algorithms.user_level_sco.plans import Phase, Plan, Test
from audits.user_level_sco.conventions import SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
FAR = Interval(-50.0, 50.0)
BATCHES = Choice((1, 2, 4, 5, 8, 11))


# --- the first step ---


def narrowest(points, share):
    """Return the radius of the smallest interval that contains a share of the points."""
    k = math.ceil(share * len(points) - 1e-9)
    x = np.sort(points)
    return (x[k - 1 :] - x[: len(x) - k + 1]).min() / 2


@statement("sco2.aligned")
def aligned_pairs(ledger):
    """A neighbouring pair (D, D') is rho-aligned if there are points X' and Y' such that at least
    2B/3 of the gradients q_1(Z_(i,1)) lie in B_inf(X', rho) and at least 2B/3 of the q'_1(Z'_(i,1))
    lie in B_inf(Y', rho).

    The text assumes that at most B/3 users are bad. The text calls 2B/3 the break point. The two
    centers X' and Y' may differ. But for B > 6, one ball is enough for both datasets. Without the
    differing user, 2B/3 users are still more than half of the users, so both statistics lie in one
    ball. At B = 3, the two balls need not have a user in common. Which pairs are aligned depends on
    x_0. In the second and later phases, x_0 is random and public.
    """

    @ledger.falsify(
        "2B/3 - 1 > B/2 for B > 6", b=Integer(7, 10**6), lost=1, mutant={"lost": 2},
        extremal=[{"b": b} for b in (7, 9, 10, 10**6)],
    )  # fmt: skip
    def majority(b, lost):
        return b + 1, 2 * (-(-2 * b // 3) - lost)

    @ledger.falsify(
        "in one coordinate, and so in all: the ball of D contains the statistic of D'",
        points=Array(Interval(-5.0, 5.0), ("b",)), new=FAR, b=Choice((7, 8, 9, 10, 13)),
        share=2 / 3, mutant={"share": 0.4},
        extremal=[{"points": np.array([-9.0, -1, -1, -1, 1, 1, 1]), "new": 9.0}],
    )  # fmt: skip
    def held(points, new, share):
        k = math.ceil(share * len(points) - 1e-9)
        x = np.sort(points)
        first = int((x[k - 1 :] - x[: len(x) - k + 1]).argmin())
        low, high = x[first], x[first + k - 1]
        after = np.median(np.r_[new, points[1:]])
        return abs(after - (low + high) / 2), (high - low) / 2 + ROUNDING


HALVES = {"points": np.array([-100.0, -1, -1, -1, 1, 1, 1]), "new": 100.0, "clip": 1.0}


@statement("sco2.lemma32")
def first_step(ledger):
    """For some (unknown) parameter rho > 0, suppose (D, D') is rho-aligned. Then, by running
    Algorithm 7 with threshold parameter varsigma >= 0, norm_inf(x_1 - y_1) <= eta (4 rho + 2
    varsigma).

    The lemma holds for B = 2 and B >= 4, but not for B = 1 and B = 3. Theorem C.2 requires B >=
    100. At B = 3, the datasets {0, 0, 100} and {100, 0, 100} are rho-aligned for every rho > 0. At
    varsigma = 1, the estimates of these two datasets differ by 98. The two balls need not
    intersect, because no user is in both balls. The proof infers from (i) that the two balls
    intersect. For B > 6, one ball is enough for both datasets. So for B > 6, the bound 2 rho + 2
    varsigma is true and attained. By Lemma 31, the estimates move by at most max(2 rho, 2G/B). The
    projection on the box only decreases distances. A pair that is aligned in all coordinates
    together is also aligned in each single coordinate. So a single coordinate is enough for the
    proof.
    """
    domain = {"points": Array(Interval(-5.0, 5.0), ("b",)), "new": FAR, "clip": Interval(0.0, 3.0)}
    three = {"points": np.array([0.0, 0.0, 100.0, 0.0]), "new": 100.0, "clip": 1.0}

    @ledger.falsify(
        b=Choice((2, 4, 5, 6, 7, 10)), radii=4, users=99, mutant={"users": 3},
        extremal=[HALVES, three], **domain,
    )  # fmt: skip
    @ledger.sharper("2 rho + 2 varsigma, for B > 6").falsify(
        b=Choice((7, 8, 9, 13)), radii=2, users=99, mutant={"radii": 1}, extremal=[HALVES], **domain
    )
    def apart(points, new, clip, radii, users):
        left = points[:users]
        right = np.r_[new, left[1:]]
        rho = max(narrowest(left, 2 / 3), narrowest(right, 2 / 3))
        moved = np.subtract(*(robust_gradient(x[:, None], clip=clip)[0] for x in (left, right)))
        return abs(moved), radii * rho + 2 * clip + ROUNDING

    @ledger.step("the two balls have a user in common, for B > 3").falsify(
        "2 ceil(2B/3) - 2 > B - 1", b=Integer(4, 10**6), least=4, mutant={"least": 3},
        extremal=[{"b": 4}, {"b": 6}],
    )  # fmt: skip
    def common(b, least):
        b = b - 4 + least
        return b, 2 * (-(-2 * b // 3) - 1)


# --- later steps ---

RULE = Test(temperature=1.0, threshold=4.5, epsilon=1.0, sensitivity=2.0, clip=0.3)


def trajectories(loss, left, right, step):
    """Return the iterates of Algorithm 6 from 0 in [-2, 2]^d, with 5 users in each step."""
    steps = len(left) // 5
    plan = Plan(5, (Phase(5 * steps, steps, step, 1.0),), RULE, 1e9, 1e9, 1.0, 0.1)
    options = {"loss": loss, "domain": Box(2.0), "plan": plan, "unsafe": True}
    options["start"] = np.zeros(loss.dimension(left.shape[-1]))
    return (concentration_profile(x, **options)[1] for x in (left, right))


def stretched(eta, beta, x, y):
    """Use the loss beta x^2 / 2 for all users, so that X_est = x - eta beta x."""
    return abs((x - eta * beta * x) - (y - eta * beta * y)), abs(x - y)


@statement("sco2.eq16", expected="refuted")
def one_later_step(ledger):
    """Let X_est and Y_est be the outputs of Algorithm 7 on X_(i,t) = x_(t-1) - eta q_t(Z_(i,t)) and
    on Y_(i,t) = y_(t-1) - eta q'_t(Z_(i,t)), i in [B]. Then norm_inf(X_est - Y_est) <=
    norm_inf(x_(t-1) - y_(t-1)).

    The bound needs eta <= 2/beta, which is the condition of Lemma 27. At beta eta = 3, the step
    doubles distances. Lemma 33 and Theorem C.2 do not state the condition eta <= 2/beta. The
    parameters of Theorem C.2 violate the condition eta <= 2/beta (Lemma 33). If eta <= 2/beta, the
    proof is correct. By Lemma 31, a clipped mean moves by at most the larger of two moves. One is
    the move of the mean, and the other is the move of the statistic. Algorithm 7 on the X_(i,t)
    gives x_(t-1) - eta g_(t-1) only if the threshold of Algorithm 7 is eta varsigma. The reason is
    that (iii) scales the threshold too.
    """
    ledger.sweep(
        "beta eta = 3", eta=1.0, beta=3.0, x=0.1, y=-0.1, lhs="abs(X_est - Y_est)",
        rhs="abs(x - y)",
    )(stretched)  # fmt: skip
    repair = ledger.repair("for eta <= 2/beta")

    @repair.falsify(
        "quadratics of different curvatures, at most 1", h=Array(SHARE, ("b", 2)),
        z=Array(UNIT, ("b", 2)), x=Array(UNIT, (2,)), y=Array(UNIT, (2,)), b=BATCHES,
        clip=Interval(0.0, 1.0), eta=Interval(0.0, 2.0), over=1.0, mutant={"over": 1.2},
        extremal=[
            {
                "h": np.ones((5, 2)), "z": np.zeros((5, 2)), "x": np.ones(2), "y": -np.ones(2),
                "clip": 0.0, "eta": 2.0,
            }
        ],
    )  # fmt: skip
    def closer(h, z, x, y, clip, eta, over):
        ends = [robust_gradient(at - over * eta * h * (at - z), clip=clip) for at in (x, y)]
        return np.abs(ends[0] - ends[1]).max(), np.abs(x - y).max() + ROUNDING

    ledger.consequence("Lemma 33 relies on this step.", harm="privacy")


@statement("sco2.lemma33", expected="refuted")
def later_steps(ledger):
    """If a robust statistic satisfying Assumption 28 is used in Algorithm 7, then norm_inf(x_t -
    y_t) <= norm_inf(x_1 - y_1) for all t in [T].

    The lemma needs eta <= 2/beta. Only Lemma 27 prints the condition eta <= 2/beta. The condition
    does not follow from the parameters of Theorem C.2. For these parameters, beta eta may be 100,
    so that beta eta_1 is 100 / log m. Take n = 10^9 users of 8 items, G = D = epsilon = d = 1 and
    delta = 1e-6. Take the largest beta of the theorem, and the eta of the theorem. Then the second
    step multiplies a small distance by 22. Later steps may multiply the distance again, until the
    bound G of the gradients limits the distance to about 2 eta G. If eta <= 2/beta, the lemma holds
    and is tight. For eta <= 2/beta, the Hessians may vary.
    """

    @ledger.sweep(
        "all users of batch 2 have curvature beta around the midpoint of x_1 and y_1; d = 1",
        n=1e9, m=8, delta=1e-6, lhs="norm(x_2 - y_2) / norm(x_1 - y_1)", rhs="at most 1",
    )  # fmt: skip
    def printed(n, m, delta):
        logs = math.log(1 / delta) * math.log(n * m)
        batch = 100 * math.log(n * m / delta)
        eta = min(batch * math.sqrt(m / n), math.sqrt(m / logs))
        beta = math.sqrt(n / m) / math.log(n * m / delta) + math.sqrt(logs / m)
        return abs(1 - beta * eta / math.log(m)), 1.0

    repair = ledger.repair("If eta <= 2/beta, then norm_inf(x_t - y_t) <= norm_inf(x_1 - y_1)")
    curve = np.array([[1.0, -0.4], [-0.4, 0.6]])
    losses = Choice((Huber(0.5, separable=True), MatrixQuadratic(curve / 1.4)))
    domain = {"others": Array(UNIT, (15, 1, 2)), "pair": Array(FAR, (2, 2)), "most": 2.0}
    domain |= {"examples": ledger.examples // 3, "end_to_end": True, "mutant": {"most": 3.0}}
    apart = {"others": np.zeros((15, 1, 2)), "pair": np.array([[0.2, 0.2], [-0.2, -0.2]])}

    @repair.falsify("runs of Algorithm 6", loss=losses, extremal=[apart | {"loss": Huber(
        0.5, separable=True)}], **domain)  # fmt: skip
    def runs(others, pair, loss, most):
        left, right = others.copy(), others.copy()
        left[0, 0], right[0, 0] = pair
        both = trajectories(loss, left, right, most)
        gaps = [np.abs(x - y).max() for x, y in zip(*both, strict=True)]
        return max(gaps[1:]), gaps[0] + ROUNDING

    @repair.falsify(
        "each item with its own curvature", bends=Array(SHARE, (15, 1, 1)),
        extremal=[apart | {"bends": np.ones((15, 1, 1))}], **domain,
    )  # fmt: skip
    def varying(others, bends, pair, most):
        data = np.concatenate([others, bends], axis=2)
        left, right = data.copy(), data.copy()
        left[0, 0, :2], right[0, 0, :2] = pair
        both = trajectories(VaryingQuadratic(1.0), left, right, most)
        gaps = [np.abs(x - y).max() for x, y in zip(*both, strict=True)]
        return max(gaps[1:]), gaps[0] + ROUNDING

    ledger.consequence(
        "Iterates of neighbours may be at a distance of eta G, but the noise is for 6 eta/tau, "
        "which is smaller by sqrt(m) up to logarithms.",
        harm="privacy",
    )


@statement("sco1.sec5.eps")
def sensitivity_of_estimates(ledger):
    """With B = Otilde(1/epsilon) users at each step the final sensitivity remains roughly
    Otilde(1/sqrt(m)) and does not improve with larger B; the suboptimal dependence on epsilon
    arises from this.

    The claim is true in the worst case. Let a twentieth of the users be so far away that the mean
    is not near the remaining users. Put equally many of the remaining users at two places. Then for
    every B, replacing one user moves the estimate from one place to the other place. If the mean
    stays within varsigma of both medians, the estimate moves only by 2G/B. The rate also depends on
    epsilon through eta. In Theorem 8, eta grows with B, but in Theorem C.2, eta does not grow with
    B.
    """

    @ledger.falsify(
        "two places 0.1 apart, varsigma = 1, outliers at 100", b=Integer(20, 5000), least=0.1,
        mutant={"least": 0.11}, extremal=[{"b": 20}, {"b": 5000}],
    )  # fmt: skip
    def moves(b, least):
        out, k = -(-b // 20), (b - 1) // 2  # one user, k others at 0, k others at .1 or far out
        points = np.r_[0.0, np.zeros(k), np.full(k - out, 0.1), np.full(out, 100.0)]
        ends = []
        for first in (0.0, 0.1):
            points[0] = first
            ends.append(robust_gradient(points[:, None], clip=1.0)[0])
        return least, abs(ends[1] - ends[0]) + ROUNDING
