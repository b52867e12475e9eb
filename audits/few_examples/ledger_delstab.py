"""Few examples per user: the privacy of Algorithm 1, Section 3.2.2."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np

from algorithms.few_examples import deletion
from algorithms.few_examples.deletion import Budget, delstab, delstab_pmf
from algorithms.few_examples.items import (
    AlternatingMajority,
    FunctionAlgorithm,
    noisy_majority,
)
from audits.few_examples.deletion_laws import (
    FIRST,
    FREE,
    LATE,
    MIDDLE,
    SIX,
    STEP,
    WHOLE,
    Kinds,
    Table,
    pair_of,
    six_users,
    sized,
)
from audits.few_examples.transcribed import (
    bits_given,
    delstab_by_kinds,
    delstab_given,
    noise,
    parameters,
    rests_given,
)
from dpaudit.ledger import statement
from dpaudit.neighbors import Interval


@statement("few.alg1")
def algorithm(ledger):
    """DelStab_(epsilon, delta, A)(x), for A: Z^((n - 4 kappa) m) -> O and n >= 4 kappa, takes
    epsilon-bar = epsilon/3, delta-bar = delta/(e^(2 epsilon-bar) + e^epsilon + 2) and kappa =
    kappa(epsilon-bar, delta-bar), samples R_1 ~ TDLap(epsilon-bar, delta-bar) and lets
    X_stable^(R_1) be the set of S subset of [n] with card S = R_1 such that A is (4 kappa - R_1,
    epsilon-bar, delta-bar)-LDDP at x_(-S). If X_stable^(R_1) is empty, it returns bot. Else it
    chooses S in X_stable^(R_1) uniformly at random and T superset of S of size 4 kappa uniformly at
    random, and returns A(x_(-T)).

    For every table of the probabilities with which A answers 1, the implementation agrees with a
    second implementation, which counts the users. For six users and three outcomes, the
    implementation agrees with a loop over all sets S and T, also if A depends on the order. The
    draws of the implementation have the computed distribution. The case n = 4 kappa is allowed. If
    n = 4 kappa, the algorithm A gets an empty input. If the algorithm A gets an empty input, the
    answer is constant. For every epsilon and every delta < 1, the smallest kappa is 5, because
    delta-bar contains e^epsilon. At kappa = 5, n is 20. If delta-bar contained e^epsilon-bar
    instead, the smallest kappa would be 4, with n = 16. At epsilon = 1 and delta = 10^-6, kappa is
    49 and n is 196. The test counts the users of S as deleted. So the test compares sets of n - 4
    kappa remaining users in the complement of S. The paper does not say whether A depends on the
    order of x_-T. The order does not matter for privacy (see Lemma 18). The order matters for the
    answers (see Theorem 17). For an algorithm A with finitely many outputs, everything can be
    computed. The number of sets is binom(n, 4 kappa).
    """
    ledger.misprint(
        "card X_stable = emptyset, and X^((n - r) m)", "X_stable = emptyset, and Z^((n - r) m)"
    )
    twice = {"quarter": 4, "mutant": {"quarter": 3}, "tolerance": 1e-7, "floor": 1e-6}

    @ledger.identity("our distribution against a count", extremal=[STEP, FIRST],
                     end_to_end=True, **twice, **FREE)  # fmt: skip
    def counted(more, ones, weights, steep, epsilon, delta, quarter):
        budget = Budget(epsilon, delta)
        n, ones, p = sized(more, ones, weights, steep, budget)
        data = (np.arange(n) < ones).astype(int)[:, None]
        kappa, share = budget.kappa, budget.part_delta
        total = quarter * kappa
        table = np.concatenate([p, np.zeros(n - total - more)])
        rows = bits_given(table, n, ones, total, epsilon / 3, share, 2 * kappa)
        found = delstab_pmf(data, algorithm=Table(p), epsilon=epsilon, delta=delta)
        return found, noise(epsilon / 3, kappa) @ rows

    budget = Budget(9.0, 0.9)

    @ledger.monte_carlo("our draws: an answer, n = 30, 11 ones, a steep test: R_1 >= 6",
                        allowed=float(budget.noise[6:].sum()), draws=20_000, ones=11,
                        mutant={"ones": 10})  # fmt: skip
    @ledger.monte_carlo("our draws: no answer, R_1 <= 5", allowed=float(budget.noise[:6].sum()),
                        draws=20_000, ones=11, none=True, mutant={"ones": 12})  # fmt: skip
    def drawn(size, *, rng, ones, none=False):
        """Run DelStab with an algorithm that answers 1 if more than 5 remaining users have a 1.

        DelStab can give an answer only after it deletes all but 5 of the users with a 1.
        """
        learner = Table((np.arange(11) > 5) * 1.0)
        data = (np.arange(30) < ones).astype(int)[:, None]
        found = delstab(data, size, algorithm=learner, epsilon=9.0, delta=0.9, rng=rng)
        return (found == 2) == none

    @ledger.identity("line 3: epsilon-bar, delta-bar, kappa and 4 kappa",
                     epsilon=Interval(1e-2, 30.0, log=True), four=4, mutant={"four": 3},
                     delta=Interval(1e-9, 0.999, log=True))  # fmt: skip
    def split(epsilon, delta, four):
        budget, (part, share, kappa) = Budget(epsilon, delta), parameters(epsilon, delta)
        found = [budget.part_epsilon, budget.part_delta, budget.kappa, budget.deleted]
        return found, [part, share, kappa, four * kappa]

    @ledger.identity("lines 5 to 10, six users: all S and T, if A ignores the order",
                     order=False, more=0, mutant={"more": 1}, extremal=[LATE], examples=60,
                     end_to_end=True, **SIX)  # fmt: skip
    @ledger.identity("lines 5 to 10, six users: all S and T, if A depends on the order",
                     order=True, more=0, mutant={"more": 1}, extremal=[LATE, MIDDLE], examples=60,
                     end_to_end=True, **SIX)  # fmt: skip
    def enumerated(order, items, m, rows, table, total, r, part, share, cells, more):
        """Compare whether there is an answer, and the distributions of the output given R_1.

        Our code tests the sets S in parts, whose sizes depend on `cells`.
        """
        x, learner, slowly = six_users(order, items, m, rows, table)
        with mock.patch.object(deletion, "_CELLS", cells):
            found = deletion.deletions_of(x, learner, 6 - total, part, share)
            ours = [found.answers(r), *found.output(r)]
        meant = delstab_given(slowly, x.tolist(), r, total - more, part, share, 3)
        return np.array(ours, dtype=float), np.array([meant[-1] == 0, *meant])

    for order, row in itertools.product((False, True), range(3)):
        x, _, slowly = six_users(order, **SIX_USERS)
        rests = rests_given(slowly, x.tolist(), 2, 3, *CLOSE)
        allowed = sum(chance for rest, chance in rests.items()
                      if np.argmax(slowly(tuple(x[list(rest)].ravel()))) == row)  # fmt: skip
        words = "depends on" if order else "ignores"
        ledger.monte_carlo(
            f"lines 8 and 9, our draws of six users, if A {words} the order: row {row}", row=row,
            allowed=allowed, draws=20_000, mutant=0.8, order=order,
        )(drawn_rest)  # fmt: skip

    kinds = {"numbers": [(9, 6, 2, 5), (20, 0, 1, 0), (8, 8, 3, 3), (12, 4, 2, 2)],
             "epsilon": [9.0, 8.0]}  # fmt: skip

    @ledger.identity("the whole, four kinds of two items, 20 to 22 users", delta=0.9, kind=3,
                     mutant={"kind": 0}, end_to_end=True, **kinds)  # fmt: skip
    def whole(numbers, epsilon, delta, kind):
        """The mutant exchanges two kinds of users."""
        learner, swapped = Kinds(LEVELS), list(numbers)
        swapped[3], swapped[kind] = swapped[kind], swapped[3]
        found = delstab_pmf(np.repeat(FOUR, swapped, axis=0), algorithm=learner, epsilon=epsilon,
                            delta=delta)  # fmt: skip
        meant = delstab_by_kinds(learner.slowly, FOUR, numbers, epsilon, delta, 3)
        return found, meant if kind == 3 else meant * 1.01

    meant = delstab_by_kinds(Kinds(LEVELS).slowly, FOUR, (9, 6, 2, 5), 9.0, 0.9, 3)
    for outcome in range(4):
        ledger.monte_carlo(
            f"our draws: outcome {outcome} of four kinds of users",
            draws=20_000,
            allowed=meant[outcome],
            mutant=0.7,
            outcome=outcome,
        )(drawn_outcome)

    @ledger.identity("line 10, our draws: each uniform number is used once", r=[0, 3, 10],
                     half=0.5, mutant={"half": 0.25}, size=64)  # fmt: skip
    def inverted(r, size, half):
        """Use an A with a constant distribution, and the uniform numbers 0, 1/64, ..., 63/64."""
        law = [0.0, 0.25, 0.25, 0.0, 0.5]
        found = delstab(np.zeros((20, 1), dtype=int), size, algorithm=Kinds([law]), epsilon=9.0,
                        delta=0.9, rng=Grid(r))  # fmt: skip
        meant = [0.0, 0.25, 0.25, 0.0, half, 0.0]
        return np.bincount(found, minlength=6) / size, np.array(meant)

    @ledger.identity("probabilities of A that sum to one up to rounding are scaled",
                     excess=[0.0, 9e-10, -9e-10], whole=1.0, mutant={"whole": 1 + 1e-9},
                     tolerance=1e-12)  # fmt: skip
    def scaled(excess, whole):
        law = [[0.25, 0.75 + excess], [0.75, 0.25 + excess]]
        data = np.array([[0]] * 12 + [[1]] * 9)
        return delstab_pmf(data, algorithm=Kinds(law), epsilon=9.0, delta=0.9).sum(), whole

    @ledger.sharper("kappa >= 5").falsify(
        "kappa of Algorithm 1", least=5, mutant={"least": 6}, extremal=[
            {"epsilon": 9.0, "delta": 0.9}, {"epsilon": 100.0, "delta": 0.999}],
        epsilon=Interval(1e-2, 300.0, log=True), delta=Interval(1e-9, 0.999, log=True),
    )  # fmt: skip
    def smallest(epsilon, delta, least):
        return least, Budget(epsilon, delta).kappa


SIX_USERS = {
    "items": np.array([0, 0, 0.4, 0.4, 0.7, 0.7])[:, None],
    "m": 1,
    "rows": np.array([[0.5, 0.1, 0.1], [0.1, 0.4, 0.1], [0.0, 0.1, 0.5]]),
    "table": np.array([0, 0, 0.4, 0.7, 0.7, 0, 0.4, 0.4, 0.7, 0, 0.7, 0.7, 0.7]),
}
CLOSE = (0.8, 0.05)
"""epsilon-bar and delta-bar at which some of the 15 sets of two users are not stable."""


def drawn_rest(size, *, rng, order, row):
    """Return whether the algorithm A, on the drawn rest, has the row with this number."""
    x, learner, _ = six_users(order, **SIX_USERS)
    with mock.patch.object(deletion, "_CELLS", 40):
        found = deletion.deletions_of(x, learner, 3, *CLOSE)
        return found.pmfs[found.draw(2, size, rng=rng)].argmax(axis=1) == row


FOUR = [(0, 0), (1, 1), (2, 2), (3, 3)]
LEVELS = [[0.8, 0.15, 0.05], [0.05, 0.8, 0.15], [0.15, 0.05, 0.8], [1.0, 0.0, 0.0]]
"""At epsilon = 9, the first three rows are close. No row is close to the fourth row."""


def drawn_outcome(size, *, rng, outcome):
    """Run DelStab on 22 users, of whom five have an item that makes A unstable."""
    data = np.repeat(FOUR, (9, 6, 2, 5), axis=0)
    return delstab(data, size, algorithm=Kinds(LEVELS), epsilon=9.0, delta=0.9, rng=rng) == outcome


class Grid(np.random.Generator):
    """Generator whose uniform numbers are 0, 1/size, ..., and whose choices are constant."""

    def __init__(self, chosen):
        super().__init__(np.random.PCG64(0))
        self._chosen = chosen

    def random(self, size):
        """Return each multiple of 1/size once."""
        return np.arange(size) / size

    def choice(self, a, size, p):
        """Return the constant."""
        return np.full(size, self._chosen)


@statement("few.lemma18")
def private(ledger):
    """DelStab_(epsilon, delta, A) is (epsilon, delta)-user-level DP.

    Exact computation found no counterexample. The search covered every algorithm A that counts the
    ones, with up to 25 users beyond 4 kappa. The search also covered three kinds of users. Another
    search covered an algorithm A that depends on the order of 21 users. If the algorithm A counts
    bits, the loss is a third of epsilon. The loss is largest when an input without an answer is
    compared with an input that has an answer. The largest loss occurred for three kinds of users.
    For these users, the answers of A are close between the first two kinds, and between the last
    two kinds. For such users, the loss is .62 epsilon as delta -> 0. At delta/1000, the loss for
    such users is .54 epsilon (n = 4 kappa + 1, epsilon = 3, delta = .1, kappa = 7). No search found
    a case that attains 3 epsilon-bar. If a case uses none of epsilon, the used part of delta is at
    most Pr[R_1 = 0]. At epsilon = 1, the used part of delta is 1.7 percent.

    All parts of the algorithm are needed. Privacy fails without the test or with kappa = 1. Privacy
    also fails with 2 kappa deletions instead of 4 kappa, or if T need not contain S. The truncation
    of R_1 does not matter for privacy. The mass beyond 2 kappa is below delta-bar. If the noise is
    beyond 2 kappa, the algorithm must give no answer. If x_-T keeps the order of x, privacy also
    holds for an algorithm A that depends on the order. The number n may be public.
    """
    full = {"tested": True, "inside": True, "quarter": 4, "small": False}

    def outputs(more, ones, weights, steep, epsilon, delta, tested, inside, quarter, small):
        budget = Budget(epsilon, delta)
        n, ones, p = sized(more, ones, weights, steep, budget)
        kappa = 1 if small else budget.kappa
        total = quarter * kappa
        if n - total != more:  # for other sizes, the table repeats its last value
            p = np.concatenate([p, np.full(n - total - more, p[-1])])
        args = (total, budget.part_epsilon, budget.part_delta, 2 * kappa)
        rows = (bits_given(p, n, k, *args, tested=tested, inside=inside) for k in (ones, ones + 1))
        one, other = (noise(budget.part_epsilon, kappa) @ row for row in rows)
        e = math.exp(epsilon)
        left = max(np.maximum(one - e * other, 0).sum(), np.maximum(other - e * one, 0).sum())
        return left, delta

    for words, mutant, case in (
        ("any A that counts; the mutant does not test", {"tested": False}, FIRST),
        ("any A that counts; in the mutant T need not contain S", {"inside": False}, FIRST),
        (
            "any A that counts; the mutant has kappa = 1, without ln(1/delta)",
            {"small": True},
            FIRST,
        ),
    ):
        ledger.falsify(words, mutant=mutant, extremal=[case], end_to_end=True,
                       **full, **FREE)(outputs)  # fmt: skip

    @ledger.falsify("two kinds, one user more than the deleted ones; the mutant deletes 2 kappa",
                    quarter=4, mutant={"quarter": 2}, extremal=[{"epsilon": 3.0, "delta": 0.01}],
                    end_to_end=True, **WHOLE)  # fmt: skip
    def halves(epsilon, delta, quarter):
        """Use an algorithm A that reveals its only user.

        The answer on x is 0 after at least kappa deletions. The answer on x' is 1.
        """
        budget, p = Budget(epsilon, delta), np.array([0.0, 1.0])
        total = quarter * budget.kappa
        args = (total, budget.part_epsilon, budget.part_delta, 2 * budget.kappa)
        rows = (bits_given(p, total + 1, k, *args) for k in (total // 2, total // 2 + 1))
        one, other = (budget.noise @ row for row in rows)
        e = math.exp(epsilon)
        left = max(np.maximum(one - e * other, 0).sum(), np.maximum(other - e * one, 0).sum())
        return left, delta

    @ledger.falsify("events of answers and no answer: (7) and (9) together", cube=3.0,
                    mutant={"cube": 0.5}, extremal=[STEP], **FREE)  # fmt: skip
    def together(more, ones, weights, steep, epsilon, delta, cube):
        budget, x, y = pair_of(more, ones, weights, steep, epsilon, delta)
        e, one, other = math.exp(budget.part_epsilon), budget.noise @ x, budget.noise @ y
        gaps = one - e**cube * other, other - e**cube * one
        left = max(np.maximum(gap, 0).sum() for gap in gaps)
        return left, (e**2 + e + 2) * budget.part_delta

    chain = [{"users": (r + 2, 4 * k - 2 * r - 1, r), "epsilon": e, "delta": d, "scale": s}
             for e, d, k in ((9.0, 0.9, 5), (6.0, 0.5, 5), (3.0, 0.1, 7))
             for r in (5, 2 * k - 1) for s in (0.01, 0.3) if 4 * k > 2 * r]  # fmt: skip

    ledger.sweep("three kinds of users, our code: a, b and b, c are close; whole epsilon",
                 cases=chain, whole=1.0, share=1e-3, mutant={"whole": 0.5},
                 end_to_end=True)(kinds)  # fmt: skip
    ledger.sharper("two thirds of epsilon, for these").sweep(
        "three kinds of users, our code", cases=chain, whole=2 / 3, share=1e-3,
        mutant={"whole": 0.4},
    )(kinds)  # fmt: skip

    @ledger.sweep(
        "A depends on the order of 21 users, our code", cases=[
            {"ones": ones, "user": user} for ones, user in (((3, 4, 9, 15), 4), ((0,), 0))],
        epsilon=9.0, delta=0.9, third=1.0, mutant={"third": 0.0}, end_to_end=True,
    )  # fmt: skip
    def ordered(ones, user, epsilon, delta, third):
        """Use users with two items each, and an A that reads the first item of its only user.

        The parameters are epsilon = 9 and kappa = 5.
        """
        data = np.zeros((21, 2), dtype=int)
        data[list(ones), 0] = 1
        other = data.copy()
        other[user, 0] = 0
        learner = FunctionAlgorithm(lambda items: [0.99, 0.01] if items[0] else [0.01, 0.99], 2, 2)
        p, q = (delstab_pmf(d, algorithm=learner, epsilon=epsilon, delta=delta)
                for d in (data, other))  # fmt: skip
        e = math.exp(third * epsilon)
        return max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum()), 0.001

    @ledger.sweep("a majority of many bits each, and an alternating one, our code",
                  steep=3.0, n=21, m=4, epsilon=9.0, delta=0.9, grow=1.0,
                  mutant={"grow": 0.0}, end_to_end=True)  # fmt: skip
    def majorities(steep, n, m, epsilon, delta, grow):
        worst = 0.0
        data = (np.arange(m) < np.array([0] * 6 + [m] * (n - 6))[:, None]).astype(int)
        other = data.copy()
        other[-1] = 0
        for learner in (noisy_majority(steep), AlternatingMajority(steep)):
            p, q = (delstab_pmf(d, algorithm=learner, epsilon=epsilon, delta=delta)
                    for d in (data, other))  # fmt: skip
            e = math.exp(grow * epsilon)
            worst = max(worst, np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum())
        return worst, 1e-3


def kinds(users, epsilon, delta, scale, whole, share):
    """Use n = 4 kappa + 1. A user of the first kind becomes a user of the third kind."""
    a, b, c = users
    e = math.exp(epsilon / 3)
    learner = Kinds.of_two([scale, scale / e, scale / e**2])
    p, q = (
        delstab_pmf(np.repeat([0, 1, 2], size)[:, None], algorithm=learner, epsilon=epsilon,
                    delta=delta)
        for size in ((a, b, c), (a - 1, b, c + 1))
    )  # fmt: skip
    e = math.exp(whole * epsilon)
    return max(np.maximum(p - e * q, 0).sum(), np.maximum(q - e * p, 0).sum()), share * delta
