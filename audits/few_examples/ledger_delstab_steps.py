"""Few examples per user: the steps of the proof that Algorithm 1 is private, Appendix C.4."""

from __future__ import annotations

import math

import numpy as np

from algorithms.few_examples.deletion import Budget
from audits.few_examples.deletion_laws import (
    FIRST,
    FREE,
    ORDERED,
    ROUNDING,
    SHARE,
    STEP,
    WHOLE,
    alone,
    far_rests,
    pair_of,
    stable_sets,
)
from audits.few_examples.transcribed import parameters
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array


@statement("few.delta-bar")
def shares(ledger):
    """With epsilon-bar = epsilon/3 and delta-bar = delta/(e^(2 epsilon-bar) + e^epsilon + 2), for
    every probability p, (e^(2 epsilon-bar) + e^epsilon-bar + 2) delta-bar + e^(3 epsilon-bar) p <=
    delta + e^epsilon p.

    The bound holds. The step e^(3 epsilon-bar) = e^epsilon is an equality. The printed delta-bar is
    smaller than necessary. If delta-bar contains e^epsilon-bar instead of e^epsilon, the bound is
    an equality for all p and epsilon. The printed delta-bar loses the factor (e^epsilon + e^(2
    epsilon/3) + 2)/(e^(2 epsilon/3) + e^(epsilon/3) + 2). This factor tends to 1 as epsilon -> 0.
    The factor is 1.25 at epsilon = 1 and 20 at epsilon = 9. So delta-bar is delta/4 for small
    epsilon.
    """
    domain = {"epsilon": Interval(1e-3, 20.0, log=True), "delta": Interval(1e-12, 0.5, log=True),
              "p": SHARE}  # fmt: skip

    @ledger.falsify("as printed", power=3.0, two=2.0, mutant={"two": 1.0},
                    extremal=[{"epsilon": 1e-3, "delta": 0.5, "p": 0.0}], **domain)  # fmt: skip
    @ledger.sharper("e^epsilon-bar for e^epsilon").falsify(
        power=1.0, two=2.0, mutant={"power": 0.0},
        extremal=[{"epsilon": 9.0, "delta": 0.5, "p": 0.0}], **domain,
    )  # fmt: skip
    def fits(epsilon, delta, p, power, two):
        part = epsilon / 3
        share = delta / (math.exp(2 * part) + math.exp(power * part) + two)
        owed = math.exp(2 * part) + math.exp(part) + 2
        return owed * share + math.exp(3 * part) * p, delta + math.exp(epsilon) * p

    @ledger.sharper("e^epsilon-bar for e^epsilon").identity(
        "our budgets, as printed and sharp", two=1.0, mutant={"two": 2.0}, **domain
    )
    def budgets(epsilon, delta, p, two):
        """Return epsilon-bar, delta-bar and kappa for both; p is not used."""
        both = [Budget(epsilon, delta, sharp) for sharp in (False, True)]
        found = [(b.part_epsilon, b.part_delta, b.kappa) for b in both]
        meant = [parameters(epsilon, two * delta, sharp=sharp) for sharp in (False, True)]
        return np.array(found), np.array(meant)


@statement("few.obs36")
def grows(ledger):
    """For user-level neighboring datasets x, x' and all r_1 in {0, ..., n - 1}, if
    X_stable^(r_1)(x') is not empty, then X_stable^(r_1 + 1)(x) is not empty.

    The claim holds for every algorithm A, even if A depends on the order. The claim also holds for
    x = x'. If S' is stable, every S of r_1 + 1 users that contains S' and i is stable. If i is
    already in S', any other user can be added to S'. The step from r_1 to r_1 + 1 is needed,
    because a single decisive user makes x stable at 1 and x' stable at 0. For r up to 4 kappa, LDDP
    at the distance 4 kappa - r defines X_stable^r. The range {0, ..., n - 1} of r_1 includes r_1 =
    4 kappa, for which there is no r_1 + 1. But R_1 is at most 2 kappa, so R_1 never reaches 4
    kappa.
    """
    ledger.misprint("x_S as an element of X_stable", "S")

    @ledger.falsify("six users, any A, by enumeration", step=1, mutant={"step": 0}, examples=50,
                    end_to_end=True, extremal=[alone(3), alone(5)], **ORDERED)  # fmt: skip
    def next_one(data, user, total, weights, part, share, step):
        """Count the r_1 < 4 kappa for which only x' has a stable set.

        A stable set of x' has r_1 users. The input x has no stable set of r_1 + 1 users.
        """
        x = (data > 0.5).astype(int)
        y = x.copy()
        y[user] = 1 - y[user]
        kept = [far_rests(d, weights, total, part, share, True) for d in (x, y)]
        at_x, at_y = (
            [bool(stable_sets(6, total, r, far, rests)) for r in range(total + 1)]
            for rests, _, far in kept
        )
        return sum(at_y[r] and not at_x[r + step] for r in range(total)), 0

    ledger.step("S contains S' and i: then S is stable at x").falsify(
        "six users, any A: every such S", within=True, mutant={"within": False}, examples=40,
        extremal=[alone(3)], **ORDERED,
    )(contained)  # fmt: skip

    @ledger.falsify("bits, any A that counts: up to 25 users more than 4 kappa", back=0, step=1,
                    mutant={"step": 0}, extremal=[STEP, FIRST], **FREE)  # fmt: skip
    def counted(more, ones, weights, steep, epsilon, delta, back, step):
        _, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        one, other = x[:, 2] == 0, y[:, 2] == 0
        last = len(one) - 1
        bad = (other[:last] & ~one[step : last + step]) | (one[:last] & ~other[step : last + step])
        return bad.sum(), back

    @ledger.edge("n >= 4 kappa").sweep(
        "r_1 = 4 kappa: the distance at r_1 + 1", kappa=5, lhs="least distance",
        rhs="4 kappa - (r_1 + 1)",
    )  # fmt: skip
    def beyond(kappa):
        return 0, 4 * kappa - (4 * kappa + 1)


def contained(data, user, total, weights, part, share, within):
    x = (data > 0.5).astype(int)
    y = x.copy()
    y[user] = 1 - y[user]
    rests, _, far = far_rests(x, weights, total, part, share, True)
    others, _, other = far_rests(y, weights, total, part, share, True)
    bad = 0
    for r in range(total):
        good = stable_sets(6, total, r + 1, far, rests)
        for s in stable_sets(6, total, r, other, others):
            for extra in range(6):
                bigger = s | {user, extra} if within else s | {(user + 1) % 6, extra}
                bad += len(bigger) == r + 1 and bigger not in good
    return bad, 0


@statement("few.eq7")
def no_answer(ledger):
    """For user-level neighboring x, x' and calA = DelStab_(epsilon, delta, A), Pr[calA(x) = bot] <=
    delta-bar + e^epsilon-bar Pr[calA(x') = bot].

    The bound has an exact form. The set X_stable^r is empty for all r below some s. Between
    neighbours, s changes by at most 1. So the inequality (7) says that Pr[R_1 <= s] <= delta-bar +
    e^epsilon-bar Pr[R_1 <= s - 1]. For s <= kappa, the two sides differ only by delta-bar - Pr[R_1
    = 0]. So the factor e^epsilon-bar is attained. Also, delta-bar may be replaced by Pr[R_1 = 0] <=
    delta-bar/5 (Definition 8). In Algorithm 1, an algorithm A that counts users and changes steeply
    attains this bound.
    """

    @ledger.falsify("all thresholds s", s=SHARE, fifth=1.0, grow=1.0, mutant={"grow": 0.9},
                    extremal=[{"s": 0.5, "epsilon": 3.0, "delta": 0.01}], **WHOLE)  # fmt: skip
    @ledger.sharper("delta-bar/5").falsify("all thresholds s", s=SHARE, fifth=0.2, grow=1.0,
                    extremal=[{"s": 0.5, "epsilon": 3.0, "delta": 0.01}], mutant={"grow": 0.99},
                    **WHOLE)  # fmt: skip
    def threshold(s, epsilon, delta, fifth, grow):
        budget = Budget(epsilon, delta)
        s = round(s * 2 * budget.kappa)
        law = np.cumsum(budget.noise)
        less = law[s - 1] if s else 0.0
        bound = fifth * budget.part_delta + math.exp(grow * budget.part_epsilon) * less
        return min(law[s], 1.0), bound * (1 + 1e-12)

    @ledger.falsify("Algorithm 1 on bits, any A that counts", grow=1.0, mutant={"grow": 0.9},
                    extremal=[STEP, FIRST], end_to_end=True, **FREE)  # fmt: skip
    def run(more, ones, weights, steep, epsilon, delta, grow):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        one, other = budget.noise @ x[:, 2], budget.noise @ y[:, 2]
        e = math.exp(grow * budget.part_epsilon)
        return max(one - e * other, other - e * one), budget.part_delta


@statement("few.eq8")
def shifted(ledger):
    """For any U_0 subset of O, Pr[calA(x) in U_0] <= delta-bar + e^epsilon-bar sum_(r_1 = 0..2
    kappa - 1) Pr[calA(x) in U_0 | R_1 = r_1] Pr[R_1 = r_1 + 1].

    The inequality is a property of the noise alone. The noise has Pr[R_1 = r] <= e^epsilon-bar
    Pr[R_1 = r + 1], with equality for r >= kappa. Also, Pr[R_1 = 2 kappa] <= delta-bar/5. The bound
    is tight up to delta-bar for answers that occur only at r >= kappa. For answers that occur at r
    < kappa, the right side is e^(2 epsilon-bar) times the left side. The first step is an equality,
    but the paper prints <=.
    """
    late = {"chances": np.concatenate([np.zeros(100), np.ones(100)]), "epsilon": 3.0, "delta": 0.01}

    @ledger.falsify("any chances of an answer in U_0", chances=Array(SHARE, (200,)), share=1.0,
                    grow=1.0, mutant={"grow": 0.9}, extremal=[late], **WHOLE)  # fmt: skip
    @ledger.sharper("delta-bar/5").falsify("any chances", chances=Array(SHARE, (200,)), share=0.2,
                                           grow=1.0, mutant={"grow": 0.99}, extremal=[late],
                                           **WHOLE)  # fmt: skip
    def moved(chances, epsilon, delta, share, grow):
        budget = Budget(epsilon, delta)
        law, size = budget.noise, 2 * budget.kappa
        f = chances[np.linspace(0, 199, size + 1).astype(int)]
        right = math.exp(grow * budget.part_epsilon) * (f[:-1] @ law[1:])
        return f @ law, (share * budget.part_delta + right) * (1 + 1e-12)

    @ledger.falsify("Algorithm 1 on bits, any A that counts", grow=1.0, mutant={"grow": 0.0},
                    extremal=[STEP, FIRST], end_to_end=True, **FREE)  # fmt: skip
    def run(more, ones, weights, steep, epsilon, delta, grow):
        budget, x, _ = pair_of(more, ones, weights, steep, epsilon, delta)
        part, law = math.exp(grow * budget.part_epsilon), budget.noise
        gaps = [x[:, u] @ law - part * (x[:-1, u] @ law[1:]) for u in (0, 1)]
        return max(gaps), budget.part_delta


@statement("few.eq9")
def answered(ledger):
    """For user-level neighboring x, x' and r_1 < 2 kappa, if Pr[calA(x) in U_0 | R_1 = r_1] is not
    0, it is at most e^(2 epsilon-bar) Pr[calA(x') in U_0 | R_1 = r_1 + 1] + (e^epsilon-bar + 1)
    delta-bar; thus Pr[calA(x) in U_0] <= (e^(2 epsilon-bar) + e^epsilon-bar + 1) delta-bar + e^(3
    epsilon-bar) Pr[calA(x') in U_0].

    For every algorithm A, both claims hold given R_1, and also for the whole algorithm. The proof
    makes a step from J to J*, and a step from J* to J'. No search found a case in which both steps
    lose their whole factor. Three kinds of users a, b and c nearly lose both factors. Among these
    kinds, only the pairs (a, b) and (b, c) are close. The input x is stable if its users of kind c
    are deleted. The input x' is stable if its users of kind c are deleted, and also if its users of
    kind a are deleted. The set J* has n - 4 kappa users, and none of these users is in S or S'. J*
    also excludes user i, who differs between x and x'. The previous sentence of the paper excludes
    user i. If i is in J*, the proof needs a third factor. At least n - 2 r_1 - 2 users are
    available for J*, which is just enough at r_1 = 2 kappa - 1. So the number 4 kappa cannot be
    smaller. Any coupling works, because J and J' of every pair are close to the same J*. On the
    right side, the A in Pr[A(x') in U_0] is Algorithm 1. For the whole algorithm, the largest loss
    was .62 epsilon, while 3 epsilon-bar is allowed. If the algorithm A counts bits, the largest
    loss was .33 epsilon.
    """

    @ledger.falsify("given R_1, bits, any A that counts", two=2.0, mutant={"two": 0.0},
                    extremal=[STEP, FIRST], **FREE)  # fmt: skip
    def given(more, ones, weights, steep, epsilon, delta, two):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        part = budget.part_epsilon
        worst = 0.0
        for one, other in ((x, y), (y, x)):
            found = one[:-1, :2] - math.exp(two * part) * other[1:, :2]
            found = found[one[:-1, 2] == 0]
            worst = max([worst, *found.ravel()])
        return worst, (math.exp(part) + 1) * budget.part_delta + ROUNDING

    @ledger.falsify("as a whole, bits, any A that counts", three=3.0, mutant={"three": 0.5},
                    extremal=[STEP, FIRST], end_to_end=True, **FREE)  # fmt: skip
    def whole(more, ones, weights, steep, epsilon, delta, three):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        part, law = budget.part_epsilon, budget.noise
        one, other, e = law @ x[:, :2], law @ y[:, :2], math.exp(three * part)
        left = max(*(one - e * other), *(other - e * one))
        return left, (math.exp(2 * part) + math.exp(part) + 1) * budget.part_delta

    @ledger.falsify("six users, given R_1, any A that depends on the order, by enumeration", step=1,
                    mutant={"step": 0}, examples=30, extremal=[alone(4)], end_to_end=True,
                    **{**ORDERED, "total": Choice((2, 4))})  # fmt: skip
    def ordered(data, user, total, weights, part, share, step):
        """Use 4 kappa = total and r_1 < total/2.

        Without the step from r_1 to r_1 + 1, x' may have no answer when x has an answer.
        """
        x = (data > 0.5).astype(int)
        y = x.copy()
        y[user] = 1 - y[user]
        worst = -1.0
        for d, other in ((x, y), (y, x)):
            one, two = (far_rests(z, weights, total, part, share, True) for z in (d, other))
            for r in range(total // 2):
                first = stable_sets(6, total, r, one[2], one[0])
                second = stable_sets(6, total, r + step, two[2], two[0])
                if first:
                    p = mean_answer(first, one[0], one[1])
                    q = mean_answer(second, two[0], two[1]) if second else (0.0, 0.0)
                    gaps = [a - math.exp(2 * part) * b for a, b in zip(p, q, strict=True)]
                    worst = max(worst, *gaps)
        return worst, (math.exp(part) + 1) * share + ROUNDING

    @ledger.misprint("J* may contain i", "J* does not contain i").sweep(
        "J* = {i}, one user remains: distributions of x and x' within e^epsilon-bar, x_J* not "
        "x'_J*",
        part=0.5, lhs="Pr[A(x_J*) = 1], a third factor e^epsilon-bar", rhs="Pr[A(x'_J*) = 1]",
    )  # fmt: skip
    def with_user(part):
        """Use an algorithm A that answers 1 with probability .1 for all users except user i of x.

        The tests of x and x' do not fail.
        """
        return 0.1 * math.exp(part), 0.1

    @ledger.step("J* exists, without S, S' and i").sweep(
        "remaining users, in the worst case", kappa=range(1, 60), four=4,
        mutant={"four": 3},
    )  # fmt: skip
    def room(kappa, four):
        n, r = 1000, 2 * kappa - 1
        return n - four * kappa, n - (r + (r + 1) + 1)

    @ledger.step("plugging into (8): the sum of the masses is at most 1").falsify(
        "delta-bar + e^epsilon-bar (e^epsilon-bar + 1) delta-bar, of the three terms", one=1.0,
        mutant={"one": 0.5}, extremal=[{"epsilon": 1.0, "delta": 0.01}], **WHOLE,
    )  # fmt: skip
    def plugged(epsilon, delta, one):
        budget = Budget(epsilon, delta)
        e, mass = math.exp(budget.part_epsilon), budget.noise[1:].sum()
        return 1 + e * (e + 1) * mass, one * (e**2 + e + 1)


def mean_answer(sets, rests, p):
    """Return Pr[0] and Pr[1] for a uniform stable set and a uniform subset of the other users."""
    inside = [[not s & set(rest) for rest in rests] for s in sets]
    one = np.mean([p[np.array(row)].mean() for row in inside])
    return 1 - one, one
