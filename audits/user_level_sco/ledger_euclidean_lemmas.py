"""User-level DP-SCO: Lemma 10 and its proof."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from algorithms.user_level_sco.scores import concentration_scores, disagreement_bound
from audits.user_level_sco.conventions import EPSILON, SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
SIZES = {"log_nm": Interval(14.0, 200.0, log=True), "log_delta": Interval(0.7, 600.0, log=True)}
SIZES |= {"epsilon": Interval(0.01, 0.99, log=True)}
"""Ranges of log(nm), log(1/delta) and epsilon.

`allowed` keeps only the values with n >= 300 log^3(mn/delta) / epsilon^1.5.
"""
LEAST = {"log_nm": 16.2, "log_delta": 13.8, "epsilon": 0.99}
GRADIENTS = Array(UNIT, ("b", 2))


def allowed(log_nm, log_delta, epsilon):
    """Return whether some n <= nm satisfies the condition of Section 3."""
    return log_nm >= math.log(300 / epsilon**1.5) + 3 * math.log(log_nm + log_delta)


def beyond(log_nm, log_delta, epsilon, level):
    """Return P[Lap(2 sigma) > level log(mn/delta)^2 / epsilon^1.5] for the random chat."""
    log, z = log_nm + log_delta, np.linspace(-60, 60, 20001)
    weights = np.exp(-np.abs(z))
    cutoff = np.maximum(10 * log + 4 * z, 1e-300)  # chat epsilon
    scale = 8 * np.sqrt(32 * cutoff * max(1.0, log_delta))  # 2 sigma epsilon^1.5
    return float(weights @ np.exp(-level * log * log / scale) / weights.sum() / 2)


# --- Lemma 10 and its proof ---


def never_halted(log_n, log_m, delta, epsilon, users):
    """Return P[no halt on D] - e^(epsilon/4) P[no halt on D'] in batch 1, and return delta.

    In D, user 1 passes. In D', user 1 is far away. The move of user 1 lowers the scores of `users`
    other users from F to F - 3/4. In addition, ceil(c) gradients are 2G away from all other
    gradients.
    """
    c, width = 10 * (log_n + log_m - math.log(delta)) / epsilon, np.linspace(0, 400, 8001)
    if log_n < math.log(300 / epsilon**1.5) + 3 * math.log(c * epsilon / 10):
        return None  # outside of the hypotheses
    last = math.ceil(c) + (j := np.arange(users + 1)[:, None])  # j of those `users` are filtered
    stay = (binom.pmf(j, users, 0.5) * np.exp((c - last) * epsilon / 4)).sum() / 2
    scale = 8 * np.sqrt(32 * (last + 1 + width) * max(1, -math.log(delta))) / epsilon
    pmf = binom.pmf(j, users, 1 - np.exp(-0.74 / scale) / 2)  # given chat = last + 1 + width
    moved = pmf * epsilon / 8 * np.exp((c - last - 1 - width) * epsilon / 4)
    return stay - math.exp(epsilon / 4) * np.trapezoid(moved, width).sum(), delta


HALT = {"log_n": 17.3, "log_m": 15.3, "delta": 1e-6, "epsilon": 0.99, "users": 8}
HALT |= {"lhs": "P[no halt on D] - e^(epsilon/4) P[no halt on D']"}


@statement("sco2.lemma10", expected="refuted")
def first_iterates_are_close(ledger):
    """If b = O(eta/(B tau)), then D^(delta/4,(b,delta/4))(x_1, x'_1) <= epsilon/4, for the first
    iterates of Algorithm 2 on neighbouring datasets that differ in Z_(1,1).

    Algorithm 2 does not specify the value that a halted run returns. We assume that Algorithm 2
    returns x_0 on halt. Under this assumption, the statement fails by a small amount for every
    constant in b. The decision on user 1 changes the count by one. For the decision on user 1, the
    noise of chat has a privacy loss of epsilon/4. The decisions on all other users have an
    additional privacy loss. Runs that halt in batch 1 return x_0. The point x_0 is far from every
    other x_1. So the probability of not halting is larger on one side by a factor slightly above
    e^(epsilon/4). No shift of x_1 changes this factor. If no run halted, the privacy losses of all
    B decisions would add up. With count and chat, the excess is about .05 epsilon. The proof shows
    W(x_1, xbar_1) <= b, D(xbar_1, xbar'_1) <= epsilon/4 and W(xbar'_1, x'_1) <= b. The three bounds
    contain two shifts, but Definition 2 has only one shift. Take a kernel that couples xbar'_1 with
    x'_1, and apply this kernel to xbar_1. After this step, both shifts are in front, and 2b
    replaces b. Kept users are within 1 / tau to 3 / tau of one another, not only within 100 / tau.
    """
    ledger.sweep("P[no halt]", rhs="delta", **HALT)(never_halted)
    ledger.sweep("n = 1e9, half of epsilon", rhs="delta", **{
        **HALT, "log_n": 20.8, "log_m": 20.0, "epsilon": 0.5, "delta": 1e-8, "users": 30
    })(never_halted)  # fmt: skip
    shifts = ledger.step(
        "the bounds W <= b, D <= epsilon/4 and W <= b compose to one shift by b",
        fix="2b for b, by a coupling kernel",
    )

    @shifts.sweep(
        "x_1 at b, both xbar at 0, x'_1 at -b: how far x_1 must move", b=1.0, lhs="shift", rhs="b"
    )
    def both_ways(b):
        return b - (-b), b

    repair = ledger.repair(
        "D^(delta/4, (2b, delta/4))(x_1, x'_1) <= 3 epsilon / 8, x_1 with count and chat, or x_0 "
        "on halt"
    )
    domain = {"log_n": Interval(17.3, 100.0, log=True), "log_m": Interval(0.0, 40.0)}
    domain |= {"delta": Interval(1e-10, 0.5, log=True), "epsilon": Interval(0.1, 0.99)}
    domain |= {"users": Choice((1, 8, 60, 400))}
    domain["extremal"] = [{k: v for k, v in HALT.items() if k != "lhs"}]

    @repair.falsify("the same runs", share=1.5, mutant={"share": 0.9}, examples=60, **domain)
    def whole(share, log_n, log_m, delta, epsilon, users):
        log = log_n + log_m - math.log(delta)
        if not allowed(log_n, log_m - math.log(delta), epsilon):
            return None
        j = np.arange(users + 1)
        scale = 8 * math.sqrt(32 * 10 * log / epsilon * max(1, -math.log(delta))) / epsilon
        p, q = (binom.pmf(j, users, x) for x in (0.5, 1 - math.exp(-0.74 / scale) / 2))
        stay = np.exp(-j * epsilon / 4) / 2
        gap = p - math.exp((share - 1) * epsilon / 4) * q
        return float(stay @ np.maximum(gap, 0)), delta / 4

    ledger.consequence(
        "The excess over epsilon/4 is small, and the total of Lemma 12 leaves enough slack for it.",
        harm="a constant",
    )


@statement("sco2.lemma10.kappa")
def scores_of_the_first_batch(ledger):
    """Neighbouring datasets that differ in Z_(1,1) only have abs(kappa_(1,i) - kappa'_(1,i)) <= 1
    for any i >= 2.

    Only one term of the sum changes. The old value and the new value of this term lie in (0, 1].
    The largest change approaches 1 if the user moves from the gradient of user i to a distant
    gradient. The largest change is at most 1 - e^(-2 tau G).
    """
    far = {"gradients": np.zeros((3, 2)), "other": np.full(2, 1.0), "tau": 30.0}

    @ledger.falsify(
        "any gradients", gradients=GRADIENTS, other=Array(UNIT, (2,)), b=Choice((2, 3, 8)),
        tau=Interval(0.1, 100.0, log=True), extremal=[{**far, "b": 3}], most=1.0,
        mutant={"most": 0.9},
    )  # fmt: skip
    def change(gradients, other, b, tau, most):
        moved = gradients.copy()
        moved[0] = other
        found = [concentration_scores(q, temperature=tau)[1:] for q in (gradients, moved)]
        return np.abs(found[0] - found[1]).max(), most


@statement("sco2.lemma10.E1")
def cutoffs_below_half_a_batch(ledger):
    """With chat = c + Lap(4/epsilon), c = 10 log(nm/delta)/epsilon, the event E_1, that chat <= B/2
    and chat' <= B/2, has probability at least 1 - delta/24.

    The bound is far from tight. The bound B / 2 is about 15 log(mn/delta) / sqrt(epsilon) times c.
    At log(mn/delta) = 16, which is the smallest possible value, B / 320 would be enough.
    """
    domain = {"log": Interval(16.0, 500.0, log=True), "epsilon": EPSILON, "part": 0.5}
    domain |= {"extremal": [{"log": 16.0, "epsilon": 1.0}]}

    @ledger.falsify(
        "both cutoffs, at delta = 2 e^-log, the smallest", mutant={"part": 0.003}, **domain
    )
    def exceeded(log, epsilon, part):
        gap = part * 300 * log * log / epsilon**1.5 - 10 * log / epsilon
        return math.exp(min(log - gap * epsilon / 4, 700)), 2 / 24


WORDS = {"lhs": "P[some noise of one run is larger]", "rhs": "delta / 24"}


def exceeding(log_nm, log_delta, epsilon, level):
    """Return P[some noise in a batch of B users exceeds the level], and delta / 24."""
    if not allowed(log_nm, log_delta, epsilon):
        return None
    one = 2 * beyond(log_nm, log_delta, epsilon, level)
    batch = 300 * (log_nm + log_delta) ** 2 / epsilon**1.5
    return -math.expm1(batch * math.log1p(-min(one, 1 - 1e-9))), math.exp(-log_delta) / 24


@statement("sco2.lemma10.E2", expected="refuted")
def noise_below_a_fifteenth_of_a_batch(ledger):
    """The event E_2, that abs(nu_(1,i)) and abs(nu'_(1,i)) are at most 20
    log^2(mn/delta)/epsilon^(3/2) for all i, nu ~ Lap(2 sigma), has probability at least 1 -
    delta/24.

    The scale 2 sigma of the noise is about 143 sqrt(log(mn/delta) log(1/delta)) / epsilon^1.5. So
    the bound 20 log^2 is only .14 log^1.5(mn/delta) / log^.5(1/delta) times the scale of the noise.
    At delta = 1e-6 and the smallest n, the bound 20 log^2 is 6 times the scale. But the proof needs
    every noise below 30 times the scale. So at delta = 1e-6 and the smallest n, the event E_2 fails
    with near certainty. For delta = (mn)^-1, the event E_2 fails with near certainty for every n.
    For every fixed delta, the claim about E_2 is true for all large n. At delta = 1e-6, the claim
    about E_2 is true if mn is above about e^77. The score 3B/5 requires only noises of at most 45
    log^2. But the bound 45 log^2 is also too small for delta = (mn)^-1. But the probability that a
    distant user 1 is kept is below delta (see sco2.eq3).
    """
    for log_nm, delta in ((16.0, 1e-6), (30.0, 1e-6), (200.0, math.exp(-200.0))):
        words = f"log(nm) = {log_nm:g}, delta = {delta:.2g}, epsilon = .99"
        ledger.sweep(words, log=log_nm - math.log(delta), log_delta=-math.log(delta), **WORDS)(
            half_of_e2
        )
    repair = ledger.repair("160 log^2(mn/delta) / epsilon^1.5 for 20; then 3B/5 needs B >= 1070 "
                           "log^2(mn/delta) / epsilon^1.5")  # fmt: skip
    worst = [{"log_nm": 25.0, "log_delta": 500.0, "epsilon": 0.99}]

    @repair.falsify("exactly", level=160.0, mutant={"level": 100.0}, extremal=worst, examples=100,
                    **SIZES)  # fmt: skip
    def corrected(log_nm, log_delta, epsilon, level):
        if (found := exceeding(log_nm, log_delta, epsilon, level)) is None:
            return None
        return 2 * found[0], found[1]

    ledger.consequence(
        "The probability that kept users have a score of 3B/5 is far below 1 - delta. Either the "
        "bound on their distance needs another proof, or B has to be five times as large.",
        harm="a constant",
    )


def half_of_e2(log, log_delta, epsilon=0.99):
    """Return both sides for one run with a random cutoff and a random scale."""
    z = np.linspace(-60, 60, 20001)
    weights = np.exp(-np.abs(z)) / np.exp(-np.abs(z)).sum()
    cutoff = np.maximum(10 * log + 4 * z, 1e-300) / epsilon
    two_sigma = 8 * np.sqrt(32 * cutoff * max(1, log_delta)) / epsilon
    one = weights @ np.exp(-20 * log**2 / epsilon**1.5 / two_sigma)  # one user's noise is larger
    return -np.expm1(300 * log**2 / epsilon**1.5 * np.log1p(-one)), math.exp(-log_delta) / 24


@statement("sco2.lemma10.N", expected="holds_proof_broken")
def far_from_one_that_passes(ledger):
    """Given E_1 and E_2, a user i >= 2 that is not filtered out has kappa_(1,i) >= 3B/5 and at
    least B/2 users within 4/tau of its gradient. If norm(q_1(Z_(1,1)) - q_1(Z_(1,i))) > 100/tau,
    then kappa_(1,1) <= 2B/3, also for the projected gradient qtilde_1(Z_(1,1)), and Z_(1,1) is
    filtered out.

    Given E_1 and E_2, the statement holds. The number 3B/5 could be replaced by 41B/60. The number
    2B/3 could be replaced by B (1 - .59 + small). A score of 3B/5 needs .59 B users within 4 / tau.
    If half of a batch is within 4 / tau and half is farther away, the score is .509 B. The claim
    "for any j and j != 1" holds only for j in N_i. The weaker claim for j in N_i is enough. The
    paper defines qtilde as a projection on a ball around the projected point itself. The intended
    ball is around q_1(Z_(1,i)). The constant 100 can be reduced to about 1.003. The reason is that
    two scores of 41B/60 allow a distance of at most log(30/11) / tau.
    """
    share = {"share": SHARE, "extremal": [{"share": 0.4999}]}

    @ledger.falsify("N_i: the largest score with fewer than B/2 users within 4 / tau",
                    near=4.0, mutant={"near": 1.5}, **share)  # fmt: skip
    def neighbours(share, near):
        return None if share >= 0.5 else (share + (1 - share) * math.exp(-near), 0.6)

    @ledger.falsify(
        "the score of user 1, and that of its projection",
        far=96.0,
        level=2 / 3,
        share=Interval(0.5, 1.0),
        extremal=[{"share": 0.5}],
        mutant={"level": 0.45},
    )
    def outlier(share, far, level):
        return share * math.exp(-far) + (1 - share), level

    @ledger.falsify("it is filtered out, with a noise of at most B / 15", noise=1 / 15, score=SHARE,
                    extremal=[{"score": 2 / 3}], mutant={"noise": 0.1})  # fmt: skip
    def filtered(score, noise):
        return None if score > 2 / 3 else (score + noise, 0.75)

    @ledger.step("96 / tau for any j other than 1", fix="for j in N_i").sweep(
        "j next to user 1, i at 100 / tau", place=100.0, lhs="96", rhs="tau times the distance"
    )
    def next_to_it(place):
        return 96.0, place - 100.0

    sharper = ledger.sharper("log(30/11) = 1.003 for 100: two users with scores of 41B/60")

    @sharper.falsify("two clusters of any shape", gradients=Array(UNIT, (8, 1)),
                     tau=Interval(0.1, 10.0, log=True), level=41 / 60, mutant={"level": 0.8},
                     extremal=[{"gradients": np.r_[np.zeros((4, 1)), np.full((4, 1), 0.1)],
                                "tau": 10.0}])  # fmt: skip
    def apart(gradients, tau, level):
        scores = concentration_scores(gradients, temperature=tau)
        passing = gradients[scores >= 41 / 60 * 8]
        if len(passing) < 2:
            return None
        return tau * np.ptp(passing), disagreement_bound(8, 2 * level * 8)

    @ledger.sharper("two clusters attain the bound").identity(
        "half of the users at either place", b=[2, 8], r=[0.0, 0.5, 3.0, math.inf], part=1.0,
        mutant={"part": 0.9},
    )  # fmt: skip
    def attained(b, r, part):
        total = 2 * (b / 2 + b / 2 * math.exp(-r))  # the sum of two scores
        return math.exp(-disagreement_bound(b, total)), math.exp(-r) * part


@statement("sco2.eq3", expected="holds_proof_broken")
def an_outlier_survives_rarely(ledger):
    """Let xtilde_1 be the output if q_1(Z_(1,1)) is replaced by its projection qtilde_1(Z_(1,1)),
    within 100/tau of a gradient that passes, where Z_(1,1) is not filtered out. Then d_tv(x_1,
    xtilde_1) <= delta/8.

    The bound is true. But the bound does not follow from the events, because E_2 fails
    (sco2.lemma10.E2). At a score of 2B/3, user 1 passes with probability 1e-2, not delta. But in a
    run that continues, only slightly more than c users are far from all other users. So a user at
    distance 100 / tau has a score of at most slightly more than c. A user at distance 100 / tau
    passes with probability at most .5 exp(-1.57 log^1.5(mn/delta) / log^.5(1/delta)).
    """
    worst = [{"log_nm": 200.0, "log_delta": 200.0, "epsilon": 0.99}, LEAST]

    @ledger.falsify("user 1 with 2 c others, 100 / tau from the rest", level=225.0, others=2.0,
                    mutant={"level": 100.0}, extremal=worst, examples=150, **SIZES)  # fmt: skip
    def survives(log_nm, log_delta, epsilon, level, others):
        if not allowed(log_nm, log_delta, epsilon):
            return None
        log = log_nm + log_delta
        near = (others * 10 * log / epsilon + 1) * epsilon**1.5 / log**2
        return beyond(log_nm, log_delta, epsilon, level - near), math.exp(-log_delta) / 8

    step = ledger.step("E_1 and E_2 have probability 1 - delta / 12", fix="the score is about c")

    @step.sweep("a score of 2B/3, which the proof allows", **LEAST, lhs="P[user 1 passes]",
                rhs="delta / 8")  # fmt: skip
    def passes(log_nm, log_delta, epsilon):
        return beyond(log_nm, log_delta, epsilon, 25.0), math.exp(-log_delta) / 8


@statement("sco2.eq4", expected="holds_proof_broken")
def outlier_out_or_in(ledger):
    """Let xbar_1 be the output if Z_(1,1) is filtered out regardless of its score. Then
    W_inf(xtilde_1, xbar_1) <= O(eta/(B tau)) =: b.

    The bound holds for runs that continue, with the constant 216 in O. At least B/2 users are kept,
    and the projection qtilde is within 108 / tau of all kept users. By exact computation, the
    distance is between 1 / tau and 2.6 / tau. For these distances, the constant 3 is enough. The
    printed W_inf refers only to the events, and is not the W_inf of x_1. The paper must mean a
    robust W. If one run counts user 1 and the other run does not, the runs halt at different times.
    No coupling within O(eta / (B tau)) covers this case.
    """
    case = {"kept": np.full((5, 2), 0.5), "first": np.array([-0.5, 0.5])}

    @ledger.falsify("the mean with user 1 and without", kept=Array(UNIT, (5, 2)), share=1.0,
                    first=Array(UNIT, (2,)), extremal=[case], mutant={"share": 0.8})  # fmt: skip
    def moved(kept, first, share):
        reach = np.linalg.norm(kept - first, axis=1).max()
        both = np.vstack([kept, first]).mean(axis=0)
        return np.linalg.norm(both - kept.mean(axis=0)), share * reach / 6 + ROUNDING

    step = ledger.step("the coupling, if user 1 counts", fix="the noise of chat, at epsilon/4")

    @step.sweep("count is c - 1 or c", log=30.0, epsilon=0.99, delta=1e-6,
                lhs="P[one run halts and the other does not]", rhs="delta / 4")  # fmt: skip
    def halts(log, epsilon, delta):
        return -math.expm1(-epsilon / 4) / 2, delta / 4


@statement("sco2.eq5", expected="refuted")
def decisions_on_the_others(ledger):
    """D^(delta/4)(xbar_1, xbar'_1) <= D^(delta/4)({a_(1,i)}_(i>=2), {a'_(1,i)}_(i>=2)) <=
    epsilon/4, by the property of SVT, as the cutoff is noisy.

    Algorithm 2 does not specify the value that a halted run returns. We assume that Algorithm 2
    returns x_0 on halt. The answers end when the run halts. The halt depends on count, which
    includes the decision on user 1. For the decision on user 1 alone, the noise of chat has a
    privacy loss of epsilon/4. The answers on all other users have an additional privacy loss.
    "Theorem 3.25" of Dwork and Roth is about queries of sensitivity 1 with noise on the threshold.
    The theorem has no term for the decision on user 1. If user 1 is counted on both sides or on
    neither side, xbar_1 is a function of the other decisions. But if user 1 is counted on both
    sides or on neither side, (4) is false.
    """
    ledger.sweep("no halt in batch 1", rhs="delta, although only delta / 4 is allowed", **HALT)(
        never_halted
    )
    repair = ledger.repair("the answers and the halt are (epsilon/4 + epsilon/8, delta/4)-close")
    domain = {"log_nm": Interval(16.2, 100.0), "log_delta": Interval(0.7, 40.0)}
    domain |= {"epsilon": Interval(0.05, 0.99), "rate": Interval(0.01, 0.5)}
    domain |= {"extremal": [{**LEAST, "rate": 0.5}]}

    @repair.falsify("the decisions up to the cutoff, without the halting", part=1.0, examples=60,
                    mutant={"part": 0.15}, **domain)  # fmt: skip
    def stream(log_nm, log_delta, epsilon, rate, part):
        if not allowed(log_nm, log_delta, epsilon):
            return None
        log, delta = log_nm + log_delta, math.exp(-log_delta)
        users = math.ceil(10 * log / epsilon / rate)
        scale = 8 * math.sqrt(32 * 10 * log / epsilon * max(1.0, log_delta)) / epsilon
        j, moved = np.arange(users + 1), rate * math.exp(1 / scale)
        p, q = binom.logpmf(j, users, rate), binom.logpmf(j, users, moved)
        sides = [(a, b) for a, b in ((p, q), (q, p))]
        found = [-np.exp(a) @ np.expm1(np.minimum(part * epsilon / 8 + b - a, 0)) for a, b in sides]
        return float(max(found)), delta / 4

    ledger.consequence(
        "Lemma 12 has epsilon / 2 for both streams and one halt, which is enough.",
        harm="a constant",
    )
