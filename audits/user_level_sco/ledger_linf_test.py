"""User-level DP-SCO: the concentration test in l_inf (Algorithm 8), Lemmas 34 and 35."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from unittest import mock

import numpy as np

from algorithms.user_level_sco import printed, scores
from algorithms.user_level_sco.accounts import two_laplace_tail
from algorithms.user_level_sco.coordinatewise import (
    concentration_profile,
    concentration_score,
    robust_sgd,
)
from algorithms.user_level_sco.domains import Box
from algorithms.user_level_sco.losses import VaryingQuadratic
from algorithms.user_level_sco.plans import Phase, Plan, Test
from algorithms.user_level_sco.scores import concentration_scores
from audits.user_level_sco import transcribed
from audits.user_level_sco.conventions import DELTA, EPSILON, FEW, SHARE, UNIT
from audits.user_level_sco.ledger_linf_algorithms import PRINTED, printed_plan
from audits.user_level_sco.ledger_linf_steps import narrowest
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array
from dpaudit.stats import oracles

ROUNDING = 1e-12
POINTS = {"points": Array(Interval(-5.0, 5.0), ("b", "d")), "b": Choice((1, 2, 3, 7)), "d": FEW}
TAU = {"tau": Interval(0.01, 100.0, log=True)}
RULE = Test(temperature=1.0, threshold=4.0, epsilon=2.0, sensitivity=1.0, clip=1.0)
CURVED = {"loss": VaryingQuadratic(1.0), "domain": Box(9.0), "start": np.zeros(1)}


def plan_of(batch, step, steps=2, **rule):
    phases = (Phase(batch * steps, steps, step, 1.0),)
    return Plan(batch, phases, replace(RULE, **rule), 1e9, 1.0, 1.0, 0.1)


# --- Algorithm 8 and its score ---


@statement("sco2.alg8")
def concentration_test(ledger):
    """The concentration test receives, for t = 1, ..., T, a query q_t, forms the score s_t(D, tau)
    of (15) and runs AboveThreshold on it with epsilon/2 and threshold v.

    Consider one AboveThreshold at epsilon/2 on the stream s_1, ..., s_T. On the same random
    numbers, the implementation returns the average exactly if this AboveThreshold always answers
    top, and x_0 otherwise. Lemma 36 makes clear that the paper intends one stream. The pseudocode
    calls AboveThreshold anew for each t. The pseudocode also returns inside the loop. The parameter
    delta of the pseudocode is not used. For sensitivity 1, the noise is Lap(4/epsilon) on the
    threshold and Lap(8/epsilon) on a score.
    """

    @ledger.identity(
        "answers", data=Array(UNIT, (15, 1, 2)), level=Interval(2.0, 5.0), seed=Integer(0, 2**32),
        epsilon=Interval(0.5, 20.0), part=1.0, mutant={"part": 0.5}, floor=1e-6,
    )  # fmt: skip
    def passed(data, level, seed, epsilon, part):
        data = np.concatenate([data[..., :1], abs(data[..., 1:])], axis=2)
        plan = plan_of(5, 0.5, 3, threshold=level, epsilon=epsilon / 2)
        ran = robust_sgd(data, 1, plan=plan, **CURVED, rng=np.random.default_rng(seed))
        units = np.random.default_rng(seed).laplace(size=4)
        lines, _, _ = transcribed.robust_sgd(
            data, [0.0], gradient=transcribed.bent_gradient, project=transcribed.onto_box(9.0), B=5,
            eta=0.5, tau=1.0, varsigma=1.0, v=level, epsilon=part * epsilon,
            laplace=transcribed.streams([units])[0],
        )  # fmt: skip
        return ran[0], lines


def score(points, tau):
    return float(concentration_score(points, temperature=tau))


@statement("sco2.eq15")
def score_of_a_batch(ledger):
    """The concentration score of a dataset of B users is s_t(D, tau) := (1/B) times the sum over Z
    and Z' in D of exp(-tau norm_inf(q_t(Z) - q_t(Z'))).

    The score is a number from 1 to B, because each user counts itself. Lemma 35 uses the range [0,
    B]. The proof of Lemma 34 omits the factor 1/B.
    """
    domain = {"unit": 1.0, "mutant": {"unit": 0.9}, "tolerance": 1e-7, "seed": Integer(0, 2**32)}
    domain |= {"b": Integer(1, 40), "d": FEW, **TAU}

    @ledger.identity(
        "a user's score, in batches of several draws and in parts", parts=Choice((None, 7, 99)),
        tile=Choice(((32, 512), (3, 4))), large=Choice((4, 99)), mirrored=Choice((4, 99)),
        examples=150, **domain,
    )  # fmt: skip
    def users(seed, b, d, tau, parts, tile, large, mirrored, unit):
        """Let the implementation divide small batches into parts, as it divides large batches."""
        q = np.random.default_rng(seed).normal(size=(3, b, d))
        sizes = {"_TILE": tuple(tile), "_LARGE": large, "_MIRRORED": mirrored}
        sizes |= {"_AT_ONCE": parts, "_COORDINATES": parts} if parts else {}
        with mock.patch.multiple(scores, **sizes):
            found = concentration_scores(q, temperature=tau, norm="linf")
        gaps = [abs(x[:, None] - x).max(axis=2) for x in q]
        return found, np.array([np.exp(-tau * unit * gap).sum(axis=1) for gap in gaps])

    @ledger.identity("a batch of 600 users", **{**domain, "b": 600, "examples": 2})
    def whole(seed, b, d, tau, unit):
        points = 9 * np.random.default_rng(seed).normal(size=(b, d))
        rows = [abs(points - x).max(axis=1) for x in points]
        return score(points, tau), sum(np.exp(-tau * unit * row).sum() for row in rows) / b

    @ledger.identity("double sum", unit=1.0, mutant={"unit": 0.9}, **POINTS, **TAU)
    def summed(points, tau, unit):
        pairs = [np.exp(-tau * unit * np.abs(x - y).max()) for x in points for y in points]
        return score(points, tau), sum(pairs) / len(points)

    extremal = [{"points": np.zeros((3, 1)), "tau": 1.0}]
    extremal.append({"points": np.array([[0.0], [5.0]]), "tau": 100.0})

    @ledger.falsify("at least 1", upper=False, extremal=extremal, **POINTS, **TAU)
    @ledger.falsify("at most B", upper=True, extremal=extremal, **POINTS, **TAU)
    def between(points, tau, upper):
        found = score(points, tau)
        return (found, len(points) + ROUNDING) if upper else (1.0, found + ROUNDING)


@statement("sco2.eq17")
def one_user_moves_the_score(ledger):
    """For neighbouring datasets that differ in Z_(1,1), abs(s_1(D, tau) - s_1(D', tau)) <= 2.

    The exact maximum is 2 (B - 1)/B. The maximum is attained if all other gradients agree, and the
    user moves between these gradients and a distant gradient. Lemma 36 uses the sensitivity 1
    instead of 2.
    """
    moved = {"new": Array(Interval(-9.0, 9.0), ("d",)), **POINTS, **TAU}
    far = {"points": np.zeros((7, 1)), "new": np.array([9.0]), "tau": 100.0}
    nearly = [{**far, "points": np.zeros((1000, 1))}]

    @ledger.falsify(most=2.0, less=0, mutant={"most": 1.9}, extremal=nearly, **moved)
    @ledger.sharper("2 (B - 1)/B").falsify(
        most=2.0, less=1, mutant={"less": 2}, extremal=[far], **moved
    )
    def change(points, new, tau, most, less):
        b = len(points)
        after = np.vstack([new, points[1:]])
        return abs(score(points, tau) - score(after, tau)), most * (b - less) / b + ROUNDING


# --- Lemma 34 ---


def largest(share):
    """Return a bound for s_1/B if no ball of radius 1/tau contains a given share of the users."""
    return share + (1 - share) / math.e


SIZES = {"epsilon": EPSILON, "delta": DELTA, "steps": Integer(1, 10**6)}
HARD = [{"epsilon": x, "delta": math.exp(-1), "steps": 1} for x in (1.0, 1e-3)]


def top(epsilon, delta, steps, share, direction, scale):
    """Return Pr[a_1 = top] at the largest score and the smallest B, and the allowed value."""
    log = max(1.0, math.log(steps / delta))
    gap = (0.9 - largest(share)) * 100 * log + 2 * log
    return two_laplace_tail(gap, 8.0 * scale, 4.0 * scale), (
        delta / steps * math.exp(direction * epsilon)
    )


@statement("sco2.lemma34", expected="holds_proof_broken")
def scattered_batches_fail(ledger):
    """Suppose B >= 100 log(T/delta)/epsilon, epsilon <= O(1), v = 0.9B + 2 log(T/delta)/epsilon,
    and that for any point Y fewer than B/3 of the gradients q_1(Z_(i,1)) lie in B_inf(Y, 1/tau).
    Then with probability at least 1 - delta/T exp(epsilon) AboveThreshold returns a_1 = bottom.

    The expression delta/T exp(epsilon) has two readings, and the lemma holds for either reading.
    The lemma is not tight, because s_1 <= .579 B under the hypothesis. The proof assumes fewer than
    2B/3 users in any ball. Under this assumption, s_1 <= 2B/3 + B/(3e) < .79 B. Lemma 36 needs the
    lemma for fewer than 2B/3 users. The version for fewer than 2B/3 users is also true for epsilon
    <= 1. But the version for fewer than 2B/3 users does not follow from Lemma 17. At epsilon/2 and
    for one query, the alpha of Lemma 17 is 16 log(2T e^epsilon/delta)/epsilon. The difference
    between .79 B and v is only 13.1 log(T/delta)/epsilon. The noises are Lap(8/epsilon) and
    Lap(4/epsilon), not a single Lap(6/epsilon). The tail of Lap(6/epsilon) is lighter. If 2/3 of
    the users are at one place and 1/3 at another place, the score is .616 B.
    """
    third = {"share": 1 / 3, "scale": 1.0, "mutant": {"scale": 6.0}, **SIZES, "extremal": HARD}
    ledger.reading("delta/(T exp(epsilon))").falsify("exact tail", direction=-1, **third)(top)
    ledger.reading("(delta/T) exp(epsilon)").falsify("exact tail", direction=1, **third)(top)

    two_thirds = {**third, "share": 2 / 3, "mutant": {"scale": 1.2}, "direction": -1}
    ledger.sharper("for fewer than 2B/3 in any ball").falsify("exact tail", **two_thirds)(top)

    clusters = {"places": Array(Interval(-6.0, 6.0), (4,)), "sizes": Array(SHARE, (4,))}

    @ledger.falsify(
        "scores of data in four places, radius 1", e=math.e, mutant={"e": 8.0}, **clusters,
        extremal=[{"places": np.array([0.0, 0.0, 2.001, 2.001]), "sizes": np.ones(4)}],
    )  # fmt: skip
    def mixed(places, sizes, e):
        if sizes.sum() < 0.1:
            return None
        weights, apart = sizes / sizes.sum(), abs(places[:, None] - places)
        held = [weights[(places >= x) & (places <= x + 2)].sum() for x in places]
        found = float(weights @ np.exp(-apart) @ weights)
        return found, max(held) + (1 - max(held)) / e + ROUNDING

    ledger.step("2B/3 + B/(3e) < 0.8 B").sweep(part=0.8, mutant={"part": 0.78})(
        lambda part: (largest(2 / 3), part)
    )

    @ledger.step(
        "by Lemma 17 the noise is less than v - .79 B",
        fix="the exact tail of Lap(8/epsilon) + Lap(4/epsilon)",
    ).sweep(
        epsilon=1.0, delta=1e-6, steps=1000, lhs="alpha of Lemma 17 for one query at epsilon/2",
        rhs="v - (2B/3 + B/(3e))",
    )  # fmt: skip
    def margin(epsilon, delta, steps):
        log = math.log(steps / delta)
        b, v = 100 * log / epsilon, 90 * log / epsilon + 2 * log / epsilon
        alpha = 8 * math.log(2 * steps * math.exp(epsilon) / delta) / (epsilon / 2)
        return alpha, v - (2 / 3 + 1 / (3 * math.e)) * b

    ledger.consequence(
        "Lemma 36 applies the lemma to data with up to 2B/3 users in a ball, which its "
        "hypothesis excludes.",
        harm="the wording",
    )


# --- Lemma 35 ---


def two_batches(first, later, new, step):
    """Return the scores of batch 2 on two datasets of users (z, h).

    If the datasets are not aligned, return None.
    """
    b = len(first)
    gradients = -first[:, 1] * first[:, 0]
    moved = np.r_[-new, gradients[1:]]
    if max(narrowest(gradients, 2 / 3), narrowest(moved, 2 / 3)) > 1 + ROUNDING:
        return None
    left = np.concatenate([first, later])[:, None]
    right = left.copy()
    right[0, 0] = [new, 1.0]
    options = {**CURVED, "domain": Box(1000.0), "plan": plan_of(b, step)}
    return [concentration_profile(x, **options)[0][1] for x in (left, right)]


def bending(b):
    """Return users for which the median moves by 2/tau, and the mean by more than 4/tau.

    Half of batch 2 has curvature 1.
    """
    k = (b - 1) // 2
    first = np.c_[np.r_[20.0 * b, -np.ones(k), np.ones(b - 1 - k)], np.ones(b)]
    later = np.c_[np.full(b, 2 / (6 * b)), np.arange(b) % 2]
    return {"first": first, "later": later, "new": -20.0 * b, "part": 1.0}


@statement("sco2.lemma35")
def later_scores(ledger):
    """Suppose 6 beta eta B <= 1, (D, D') is (1/tau)-aligned and the threshold parameter is varsigma
    = 1/tau. Then the sensitivity of the query is bounded by at most 2: abs(s_t(D, tau) - s_1(D',
    tau)) <= 2 for all t >= 2.

    The printed s_1(D') should be s_t(D'), because scores of different steps are unrelated. The
    bound 2 is far from tight. For B > 6, iterates move by 4 eta/tau (Lemma 32). Differences of
    gradients move by beta norm(x_t - y_t), not by 2 beta norm(x_t - y_t). The reason is that
    Hessians are positive semidefinite and diagonally dominant. So scores move by B (1 - exp(-4 beta
    eta)) <= 2/3. On the line, the scores move by 1/3. Lemma 36 needs a bound below 2. The condition
    6 beta eta B <= 1 implies eta <= 2/beta. But neither Lemma 36 nor Theorem C.2 assumes 6 beta eta
    B <= 1. The paper writes "Algorithm 3" but means Algorithm 7.
    """
    ledger.misprint("s_1(D', tau)", "s_t(D', tau)")
    ledger.misprint("threshold parameter in Algorithm 3", "Algorithm 7")
    ledger.misprint("<= 2 beta norm_inf(x_t - y_t)", "<= 2 beta norm_inf(x_(t-1) - y_(t-1))")
    domain = {"first": Array(SHARE, ("b", 2)), "later": Array(SHARE, ("b", 2))}
    domain |= {"part": Interval(0.05, 1.0)}
    domain |= {"new": Interval(-50.0, 50.0), "examples": ledger.examples // 3}
    domain |= {"end_to_end": True, "mutant": {"most": 0.3}}

    @ledger.falsify(b=Choice((4, 5, 7)), most=2.0, extremal=[bending(25)], **domain)
    @ledger.sharper("2/3 for 2, for B > 6").falsify(
        b=Choice((7, 8, 11)), most=2 / 3, extremal=[bending(25)], **domain
    )
    def moves(first, later, new, part, most):
        found = two_batches(first, later, new, part / (6 * len(first)))
        return None if found is None else (abs(found[0] - found[1]), most)

    @ledger.identity(
        "the warning that 6 beta eta B <= 1 fails, and its numbers", most=1.0, examples=60,
        mutant={"most": 4.0}, times=Choice((0.5, 0.99, 1.01, 3.0, 1e4)),
        unsafe=Choice((True, None)), lipschitz=2.0, radius=3.0,
        **{name: PRINTED[name] for name in ("n", "m", "d", "epsilon", "delta")},
    )  # fmt: skip
    def warned(times, most, unsafe, **sizes):
        """Check also that plans are refused if beta eta > 2, unless they are unsafe."""
        order = ("n", "m", "d", "epsilon", "delta", "lipschitz", "radius")
        sizes = [sizes[name] for name in order]
        B, eta, *_ = transcribed.coordinatewise(*sizes)
        eta /= transcribed.log(sizes[1])
        beta = times / (6 * eta * B)
        try:
            plan = printed_plan(*sizes, smoothness=beta, unsafe=unsafe)
        except ValueError:
            return 1.0, 2.0 - (beta * eta > 2 and not unsafe)
        words = " ".join(plan.warnings)
        numbers = r"= (\S+) for Lemma 35 of v2, got (\S+) \(eta = (\S+), B = (\d+)\)"
        parts = re.search(numbers, words)
        numbers = [float(x) for x in parts.groups()] if parts else [0.0] * 4
        lines = [*(float(f"{x:.3g}") for x in (1 / (6 * eta * B), beta, eta)), B]
        warns = times > most
        found = [plan.smoothness, len(plan.warnings), *numbers]
        return found, [beta, float(warns), *(warns * x for x in lines)]

    @ledger.identity("the warning, if 6 beta eta B is 1", b=[8, 512], over=1.0,
                     mutant={"over": 1.001})  # fmt: skip
    def bound(b, over):
        phases = (Phase(b, 1, over / (3 * b), 1.0), Phase(b, 1, 9.0, 1.0))
        plan = Plan(b, phases, RULE, 1.0, 0.5, 1.0, 0.1)
        return printed._moving_scores(plan) is None, True

    @ledger.step("differences of gradients move by at most 2 beta norm(x - y)").falsify(
        own=Array(SHARE, (2, 2)), cross=Array(UNIT, (2,)), x=Array(UNIT, (2,)), most=2.0,
        mutant={"most": 0.9}, extremal=[
            {"own": np.zeros((2, 2)), "cross": np.array([0.5, -0.5]), "x": np.ones(2)}
        ],
    )  # fmt: skip
    @ledger.sharper("by beta norm(x - y)").falsify(
        own=Array(SHARE, (2, 2)), cross=Array(UNIT, (2,)), x=Array(UNIT, (2,)), most=1.0,
        mutant={"most": 0.9}, extremal=[
            {"own": np.zeros((2, 2)), "cross": np.array([0.5, -0.5]), "x": np.ones(2)}
        ],
    )  # fmt: skip
    def bend(own, cross, x, most):
        """Use two users whose Hessians have the diagonal own + abs(cross)."""
        apart = [(o + abs(c)) * x + c * x[::-1] for o, c in zip(own, cross, strict=True)]
        beta = (own + 2 * np.abs(cross)[:, None]).max()
        return np.abs(apart[0] - apart[1]).max(), most * beta * np.abs(x).max() + ROUNDING


# --- what the answers cost ---


@statement("sco2.lemma36.budget", expected="refuted")
def cost_of_the_answers(ledger):
    """For aligned neighbours the query sensitivity is always bounded by 1, by Lemma 35, hence by
    Lemma 17 the answers {a_t} and {a'_t} are (epsilon/2, 0)-indistinguishable.

    Lemma 36 uses the sensitivity 1. Lemma 35 and (17) use the sensitivity 2, because s_1 can move
    by 2 (B - 1)/B. Lemma 35 requires 6 beta eta B <= 1, which is not a hypothesis of Lemma
    36. Theorem C.2 allows beta eta = 1/2. At beta eta = 1/2 and B = 5000, one user's gradient in
    batch 1 decides whether batch 2 passes the test. But if 6 beta eta B <= 1, the conclusion is
    true with the printed noise. Later scores move by at most 2/3 (Lemma 35). Suppose that the first
    score moves by Delta_1 and later scores move by Delta. The privacy loss of these two queries
    together is epsilon (Delta_1 + 3 Delta)/8. The noise of the threshold covers Delta, the noise of
    the first query covers Delta_1 - Delta, and the noise of the last query covers 2 Delta. For
    Delta_1 = 2 and Delta = 2/3, the privacy loss is epsilon/2.
    """

    @ledger.sweep(
        "half of batch 2 has curvature beta, all gradients are equal at x_1; y_1 is 2 eta/tau away",
        b=5000, beta_eta=0.5, epsilon=1.0, lhs="log ratio of the probabilities of a_1 = a_2 = top",
        rhs="epsilon/2",
    )  # fmt: skip
    def told(b, beta_eta, epsilon):
        v = 0.92 * b  # an upper bound for 0.9 B + 2 log(T/delta)/epsilon
        low, high = b * (1 + math.exp(-2 * beta_eta)) / 2, b - 2

        def tail(x):
            return (4 * math.exp(-x * epsilon / 8) - math.exp(-x * epsilon / 4)) / 6

        return math.log((1 - 2 * tail(high - v)) / tail(v - low)), epsilon / 2

    @ledger.sweep(
        "all gradients equal but one, far away", b=1000, lhs="abs(s_1(D) - s_1(D'))", rhs="1"
    )
    def sensitivity(b):
        both = [np.r_[x, np.zeros(b - 1)] for x in (0.0, 1e3)]
        s = [np.exp(-abs(x[:, None] - x)).sum() / b for x in both]
        return s[0] - s[1], 1.0

    repair = ledger.repair(
        "For B > 6 and 6 beta eta B <= 1 the first query has sensitivity 2 and later queries have "
        "sensitivity 2/3. Then the answers are (epsilon/2, 0)-indistinguishable"
    )
    low, many = [-60.0], np.full(60, -20.0)
    worst = [
        {"queries": np.r_[low, many, last], "moves": np.r_[-1.0, -np.ones(60), 1.0]}
        for last in (20.0, 0.0)
    ]

    @repair.falsify(
        "exact distributions", queries=Array(Interval(-60.0, 60.0), ("t",)), t=Choice((1, 2, 5)),
        moves=Array(UNIT, ("t",)), epsilon=2.0, later=2 / 3, extremal=worst, tolerance=1e-6,
        mutant={"later": 0.75}, examples=ledger.examples // 6, end_to_end=True,
    )  # fmt: skip
    def loss(queries, moves, epsilon, later):
        moved = queries + moves * np.r_[2.0, np.full(len(queries) - 1, later)]
        found = oracles.above_threshold(queries, moved, threshold=0.0, epsilon=epsilon / 2)
        return max(found.max_loss, found.swapped().max_loss), epsilon / 2

    ledger.consequence(
        "Without 6 beta eta B <= 1, the answers reveal one user's data. The choice between x_0 "
        "and the average iterate depends on the answers, so it reveals the data too.",
        harm="privacy",
    )


@statement("sco2.lemma36.case1", expected="holds_proof_broken")
def scattered_pairs(ledger):
    """If (D_1, D'_1) is not (1/tau)-aligned, then Pr[a_1 = bottom] >= 1 - delta/2 or Pr[a'_1 =
    bottom] >= 1 - delta/2e^epsilon, and with the (epsilon/2, 0)-indistinguishability of a_1 and
    a'_1, Pr[a_1 = a'_1 = bottom] >= 1 - (1 + exp(epsilon)) delta/2e^epsilon. Then Pr[x_1 in O] <=
    e^(epsilon/2) Pr[x'_1 in O] + delta/2.

    The last inequality follows from either of the two bounds. The sum in this inequality is
    correct. But Pr[a_1 = bottom] >= 1 - delta/2 alone gives only the union bound (1 +
    e^(epsilon/2)) delta/2. This union bound is up to e times the printed bound. Lemma 34 gives
    delta/(2 e^epsilon) in both cases if T >= 2. Pairs that are not aligned need not satisfy the
    hypothesis of Lemma 34. If half of the users are at one place and half at another place, a ball
    contains half of the users. But the lemma requires less than 1/3 of the users. The score s_1
    moves by 2, not by 1. This move causes a privacy loss of epsilon/4 for a_1 alone.
    """
    chances = {"p": SHARE, "epsilon": EPSILON, "delta": DELTA, "on_first": Choice((True, False))}
    full = [{"p": 1.0, "epsilon": 1.0, "delta": 0.1, "on_first": first} for first in (True, False)]

    @ledger.falsify(
        "Pr[x_1 in O] - e^(epsilon/2) Pr[x'_1 in O] at most, if the output after top is arbitrary",
        part=0.5, mutant={"part": 0.4}, extremal=full, **chances,
    )  # fmt: skip
    def worst(p, epsilon, delta, on_first, part):
        e = math.exp(epsilon / 2)
        top = p * delta / 2 if on_first else e * p * delta / (2 * e * e)
        other = min(e * top, 1 - (1 - top) / e) if on_first else p * delta / (2 * e * e)
        return top + max(0.0, 1 - top - e * (1 - other)), part * delta + ROUNDING

    @ledger.step(
        "the union bound", fix="Lemma 34 gives delta/(2 e^epsilon) for either dataset, as T >= 2"
    ).sweep(
        "where Pr[a_1 = top] = delta/2", epsilon=1.0, delta=0.1,
        lhs="Pr[a_1 = top] + Pr[a'_1 = top]", rhs="(1 + e^epsilon) delta/(2 e^epsilon)",
    )  # fmt: skip
    def union(epsilon, delta):
        total = delta / 2 + math.exp(epsilon / 2) * delta / 2
        return total, (1 + math.exp(epsilon)) * delta / (2 * math.exp(epsilon))

    @ledger.step(
        "by Lemma 34, for a pair that is not aligned", fix="Lemma 34 holds for 2B/3 too"
    ).sweep(
        "half of the users at 0, half at 10/tau", b=600, lhs="most users in a ball of radius 1/tau",
        rhs="B/3",
    )  # fmt: skip
    def hypothesis(b):
        x = np.repeat([0.0, 10.0], b // 2)
        return max(int(((x >= low) & (x <= low + 2)).sum()) for low in x), b / 3

    @ledger.step("a_1 and a'_1 are (epsilon/2, 0)-indistinguishable").falsify(
        "one query of sensitivity 2", at=Interval(-40.0, 40.0), move=UNIT, epsilon=EPSILON,
        part=0.5, mutant={"part": 0.2}, extremal=[{"at": -40.0, "move": 1.0, "epsilon": 1.0}],
    )  # fmt: skip
    @ledger.sharper("epsilon/4 for epsilon/2").falsify(
        at=Interval(-40.0, 40.0), move=UNIT, epsilon=EPSILON,
        part=0.25, mutant={"part": 0.2}, extremal=[{"at": -40.0, "move": 1.0, "epsilon": 1.0}],
    )  # fmt: skip
    def first_answer(at, move, epsilon, part):
        """Return the largest absolute log ratio of Pr[bottom] or Pr[top].

        The arguments `at` and `move` are in units of 1 / epsilon.
        """
        x, y = (z * epsilon for z in (at, at + 2 * move))
        tails = [(two_laplace_tail(s * x, 8, 4), two_laplace_tail(s * y, 8, 4)) for s in (1, -1)]
        return max(abs(math.log(p / q)) for p, q in tails), part * epsilon + ROUNDING
