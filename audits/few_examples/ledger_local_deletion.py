"""Few examples per user: local-deletion DP, Section 3.2.1, and the utility of DelStab."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from algorithms.few_examples.deletion import Budget, delstab_pmf, is_locally_private
from algorithms.few_examples.items import (
    FunctionAlgorithm,
    noisy_majority,
)
from algorithms.few_examples.populations import compositions, log_ways
from audits.few_examples.deletion_laws import LATE, SIX, Kinds, six_users
from audits.few_examples.private_tests import steepest_test, sticks, sums
from audits.few_examples.transcribed import is_lddp
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12
SHARE = Interval(0.0, 1.0)
SMALL = Interval(1e-3, 0.5, log=True)
DELTA = Interval(1e-9, 0.5, log=True)
BETA = Interval(1e-6, 0.5, log=True)


def table(weights, order):
    """Return an algorithm on up to five bits with any probabilities.

    The algorithm may depend on the order of the bits.
    """

    def one(items):
        place = int(items.sum()) if not order else int(items @ (1 << np.arange(items.size)))
        p = weights[(7 * items.size + place) % weights.size]
        return np.array([1 - p, p])

    return FunctionAlgorithm(one, 2, 2)


@statement("few.def16")
def local_deletion(ledger):
    """An algorithm A is (epsilon, delta)-local-deletion DP (LDDP) at input x if A(x_(-i))
    ~_(epsilon, delta) A(x_(-i')) for all i, i' in [n]. For r in N, A is (r, epsilon,
    delta)-local-deletion DP at x if A(x_(-S)) ~_(epsilon, delta) A(x_(-S')) for all S, S' subset of
    [n] such that card S = card S' = r.

    The statement is a definition, and our code tests this definition over all pairs of sets of
    users. Both directions have to be tested, but the mutant tests one direction. At r = 0 and at r
    = n, every algorithm is LDDP at every x, with epsilon = delta = 0. In both cases, S = S' imposes
    no condition. The input of A has n - r users, so LDDP at another r is a property of another
    algorithm.
    """
    domain = {"data": Array(SHARE, (5, 2)), "weights": Array(SHARE, (64,)),
              "removed": Integer(0, 5), "order": Choice((False, True))}  # fmt: skip
    kept = np.zeros((5, 2))
    kept[0] = 1.0
    one_way = {"data": kept, "removed": 1, "order": False, "epsilon": 0.3, "delta": 0.02,
               "weights": np.where(np.arange(64) == 7 * 8, 0.9, 0.82)}  # fmt: skip

    @ledger.identity("our test against the definition, all pairs S, S'", ways=2, extremal=[one_way],
                     epsilon=SMALL, delta=Interval(1e-3, 0.5), mutant={"ways": 1},
                     **domain)  # fmt: skip
    def tested(data, weights, removed, order, epsilon, delta, ways):
        algorithm, data = table(weights, order), (data > 0.5).astype(int)
        sets = itertools.combinations(range(5), removed)
        p = np.array([algorithm.pmf(np.delete(data, s, axis=0).reshape(-1))[1] for s in sets])
        far = sticks(p[:, None], p[None], epsilon)
        if ways == 1:
            far = np.triu(far)
        found = is_locally_private(
            data, algorithm=algorithm, removed=removed, epsilon=epsilon, delta=delta
        )
        return float(found), float((far <= delta).all())

    @ledger.identity("our test, six users and three items, any A", **SIX, ways=0, examples=80,
                     order=Choice((False, True)), mutant={"ways": 1}, extremal=[
                         {**LATE, "order": o, "r": 3, "share": d, "part": e, "total": total}
                         for o in (False, True) for d in (0.0, 0.1) for e in (0.4, 1000.0)
                         for total in (3, 4)],
                     )  # fmt: skip
    def six(order, items, m, rows, table, total, r, part, share, cells, ways):
        """Test sets of `total` users; the mutant tests sets of one user less."""
        x, learner, slowly = six_users(order, items, m, rows, table)
        found = is_locally_private(x, algorithm=learner, removed=total, epsilon=part, delta=share)
        return float(found), float(is_lddp(slowly, x.tolist(), total - ways, part, share))

    @ledger.identity("equal distributions are close, and others are not, at delta = 0",
                     epsilon=[0.0, 1.0, 1000.0], levels=[(0.3, 0.3), (0.3, 0.7), (0.3, 0.0)],
                     equal=True, mutant={"equal": False})  # fmt: skip
    def exact(epsilon, levels, equal):
        """Use two users, and an A that answers 1 with one of two probabilities."""
        p, q = levels
        found = is_locally_private([[0], [1]], algorithm=Kinds.of_two([p, q]), removed=1,
                                   epsilon=epsilon, delta=0.0)  # fmt: skip
        return float(found), float((equal and p == q) or (q > 0 and epsilon >= 1))


# --- Theorem 17 ---


def spread_law(n, m, p, r):
    """Return the distribution of the largest and the least sum of n - r users of m bits."""
    numbers = compositions(n, np.full(m + 1, n))
    logs = binom.logpmf(np.arange(m + 1), m, p)
    ways = log_ways(n, numbers[:, :1])
    left = n - numbers[:, 0]
    for kind in range(1, m + 1):
        ways = ways + log_ways(left[:, None], numbers[:, kind : kind + 1])
        left = left - numbers[:, kind]
    chance = np.exp(ways + numbers @ np.where(np.isfinite(logs), logs, -1e9))
    users = np.repeat(np.tile(np.arange(m + 1), len(numbers)), numbers.ravel()).reshape(-1, n)
    low, high = users[:, : n - r].sum(axis=1), users[:, r:].sum(axis=1)
    return chance, low, high


def range_above(n, m, p, most):
    """Return the probability that the range of n binomials exceeds `most`."""
    cdf = np.concatenate(
        [[0.0], binom.cdf(np.arange(m + 1), m, p)]
    )  # cdf[k] is the probability below k
    least = np.arange(m + 1)
    top = cdf[np.minimum(least + math.floor(most), m) + 1]
    within = (top - cdf[least]) ** n - (top - cdf[least + 1]) ** n
    return max(0.0, 1 - within.sum())


@statement("few.thm17", expected="refuted")
def any_algorithm(ledger):
    """Let n, r in N with r <= n and let A: Z^((n - r) m) -> O be any (epsilon', delta')-item-level
    DP algorithm. Further, assume that epsilon', delta', epsilon' r sqrt(m log(n/(beta delta'))) > 0
    are sufficiently small. Then, for any distribution D, Pr_(x ~ D^(nm))[A is (r, epsilon,
    delta)-LDDP at x] >= 1 - beta, where epsilon = O(epsilon' r sqrt(m log(n/(beta delta')))) and
    delta = O(r m delta').

    The theorem is refuted for algorithms that depend on the order of the input. The paper's
    algorithms may depend on the order. The input x is a sequence (Section 1), x_-S is the remaining
    sequence, and A takes Z^((n - r) m). If user 1 is deleted instead of user n, all remaining users
    are one place further ahead. An algorithm may depend on this difference. Let the algorithm A
    answer 1 with the probability logistic(epsilon' (x_1 - x_2 + x_3 - ...)). The algorithm A is
    epsilon'-DP. If m > 1, the sign of an example is the sign of its user. On fair bits, the loss of
    A between x_-1 and x_-n is epsilon' times a random walk of sqrt(n) steps. This loss exceeds C
    epsilon' sqrt(log(n/(beta delta'))) for every constant C. The probability of this event is .8
    for C = 1 and n = 2000. The probability is also .8 for C = 1000 and n = 2 10^9. The proof's
    A'_(x_-T) would have to be one function for S and S'. The proof reads x_-T u y as if x were a
    set.

    The repair is an algorithm A that does not depend on the order. The repair costs nothing,
    because the items can be put in random order first. For bits, the repaired theorem holds with
    epsilon = sqrt(2) epsilon' r sqrt(m ln(n/(beta delta'))), for all n, m, r. The repaired theorem
    follows from group privacy and the range of n binomials. The proof has the constant 46 sqrt(2)
    (Theorem 13). For m = 1, the claim holds for every input, and r epsilon' is enough. The factor r
    is needed for r users with extreme sums. The number q is at most min(r, n - r).
    """
    ordering = {"beta": 0.01, "delta": 1e-9, "rhs": "beta", "end_to_end": True,
                "lhs": "Pr[A is not (1, epsilon, C delta')-LDDP at x], at least"}  # fmt: skip

    @ledger.sweep(
        "A depends on the order, fair bits, m = r = 1: C = 1000", constant=1000.0, **ordering
    )
    @ledger.sweep("A depends on the order, fair bits, m = r = 1: C = 1", constant=1.0, **ordering)
    def ordered(constant, beta, delta):
        """Use A(y) = 1 with probability expit(small (y_1 - y_2 + ...)).

        The algorithm A is (small, 0)-item-level DP. On x_-1, the sum is w + x_n. On x_-n, the sum
        is x_1 - w. The number w is x_2 - x_3 + ... - x_(n-1).
        """
        n = 2 * round(1000 * constant**2)
        root = constant * math.sqrt(math.log(n / (beta * delta)))
        small = 0.001 / root  # epsilon' of A, so that epsilon = C epsilon' sqrt(...) = 0.001
        w = np.arange(1, math.ceil(40 * root))
        more, less = expit(small * w), expit(small * (1 - w))
        far = more - math.exp(0.001) * less > constant * delta
        first = w[far.argmax()]  # from this w on, and from -w on by symmetry
        return 2 * binom.sf(n // 2 - 1 + first - 1, n - 2, 0.5), beta

    step = ledger.step(
        "A'_(x_-T) is one function for S and for S'",
        fix="A that does not depend on the order; then it is.",
    )

    @step.sweep("three users, S = {1}, S' = {3}, x_1 = x_3: A'_(x_2)(x_1) has two values",
                epsilon=[1.0, 0.1], lhs="distance of the two values",
                rhs="0, the distance for one function")  # fmt: skip
    def one_function(epsilon):
        on_s, on_t = (1 / (1 + math.exp(-epsilon * (x - y))) for x, y in ((0, 1), (1, 0)))
        return abs(on_s - on_t), 0.0

    @ledger.step("the union bound over pairs S, S': binom(n, r)^2 beta' = beta").falsify(
        "the union of the events, exactly, against the sum", n=Integer(2, 7), m=Choice((1, 2, 3)),
        r=Integer(1, 3), p=SHARE, far=Interval(0.0, 1.0), pairs=2, mutant={"pairs": 0},
        extremal=[{"n": 7, "m": 3, "r": 1, "p": 0.1, "far": 0.3}], examples=60,
    )  # fmt: skip
    def union(n, m, r, p, far, pairs):
        """Use the event that the sums of S and S' differ by more than `far` times their range."""
        r = min(r, n - 1)
        chance, low, high = spread_law(n, m, p, r)
        most = max(1.0, far * min(r, n - r) * m)
        q = min(r, n - r)
        gap = np.arange(-q * m, q * m + 1)
        law = np.convolve(binom.pmf(np.arange(q * m + 1), q * m, p),
                          binom.pmf(np.arange(q * m + 1), q * m, 1 - p))  # fmt: skip
        one = law[np.abs(gap) >= most].sum()
        return chance[high - low >= most].sum(), math.comb(n, r) ** pairs * one + ROUNDING

    repair = ledger.repair(
        "The same for every A that does not depend on the order of its items. (Every A becomes "
        "such an algorithm if it first puts the items in random order.)"
    )

    @repair.falsify(
        "the steepest tests of sums of bits: Pr[not LDDP], exactly", n=Integer(2, 8),
        m=Choice((1, 2, 3, 4)), r=Integer(1, 3), p=SHARE, at=SHARE, value=SHARE, small=SMALL,
        delta=DELTA, beta=BETA, c=2.0, mutant={"c": 0.1}, examples=150, end_to_end=True,
        extremal=[{"n": 8, "m": 4, "r": 1, "p": 0.5, "at": 0.5, "value": 0.5, "small": 0.3,
                   "delta": 1e-9, "beta": 0.01}],
    )  # fmt: skip
    def steep(n, m, r, p, at, value, small, delta, beta, c):
        r = min(r, n)
        root = r * math.sqrt(m * math.log(n / (beta * delta)))
        items = (n - r) * m
        f = steepest_test(items, small / root, delta, round(at * items), value)
        chance, low, high = spread_law(n, m, p, r)
        one, other = f[low], f[high]
        far = np.maximum(sticks(one, other, c * small), sticks(other, one, c * small))
        return chance[far > 2 * r * m * delta + ROUNDING].sum(), beta

    @repair.falsify(
        "bits, any A, with sqrt(2): the range of n users' sums", n=Integer(1, 10**4),
        m=Integer(1, 1000), p=SHARE, delta=DELTA, beta=BETA, c=math.sqrt(2), mutant={"c": 0.9},
        extremal=[{"n": 10**4, "m": 1000, "p": 0.5, "delta": 0.5, "beta": 0.5},
                  {"n": 1, "m": 1, "p": 0.5, "delta": 0.5, "beta": 0.5}],
    )  # fmt: skip
    def bits(n, m, p, delta, beta, c):
        """Use the fact that the sums of S and S' are at most r ranges apart.

        The rest follows from group privacy.
        """
        return range_above(n, m, p, c * math.sqrt(m * math.log(n / (beta * delta)))), beta + 1e-9

    @repair.falsify(
        "our test of LDDP, on all datasets of n users of bits", n=Integer(3, 6),
        m=Choice((1, 2)), r=Integer(1, 2), p=SHARE, small=SMALL, delta=DELTA, beta=BETA, c=2.0,
        mutant={"c": 0.05}, examples=25, end_to_end=True,
        extremal=[{"n": 6, "m": 2, "r": 1, "p": 0.5, "small": 0.3, "delta": 1e-9, "beta": 0.01}],
    )  # fmt: skip
    def ours(n, m, r, p, small, delta, beta, c):
        root = r * math.sqrt(m * math.log(n / (beta * delta)))
        learner, failed = noisy_majority(small / root), 0.0
        for numbers in compositions(n, np.full(m + 1, n)):
            sizes = np.repeat(np.arange(m + 1), numbers)
            data = (np.arange(m) < sizes[:, None]).astype(int)
            chance = math.factorial(n) * np.prod(
                [binom.pmf(k, m, p) ** v / math.factorial(v) for k, v in enumerate(numbers)]
            )
            if not is_locally_private(data, algorithm=learner, removed=r, epsilon=c * small,
                                      delta=2 * r * m * delta):  # fmt: skip
                failed += chance
        return failed, beta

    ledger.consequence(
        "Lemma 19 inherits the mistake. If an algorithm depends on the order and n is large, "
        "DelStab may give no answer, however small the constant is. Privacy does not depend on "
        "the theorem. A random order of the items is a repair, and the subsample of Theorem 10 "
        "may be drawn in random order.",
        harm="accuracy",
    )


@statement("few.eq1")
def fixed_rest(ledger):
    """Let beta' = beta/binom(n, r)^2. For any fixed x_(-T), Theorem 13 implies that Pr_(x_U, x_U' ~
    D^(qm))[A'_(x_-T)(x_U) is not ~_(epsilon, delta) A'_(x_-T)(x_U')] <= beta', where epsilon =
    O(epsilon' sqrt(q m log(1/(beta' delta')))) <= O(epsilon' r sqrt(m log(n/(beta delta')))) and
    delta = O(r m delta').

    The bound holds for every algorithm A, even if A depends on the order. If x_-T is fixed and y is
    in fixed places, A' is one (epsilon', delta')-DP algorithm on q m items. The last inequality
    holds if the constant of Theorem 13 is multiplied by sqrt(2). The value sqrt(2) is approached
    for q = r and n -> infinity. The reason is binom(n, r) <= n^r, so log(1/(beta' delta')) <= 2 r
    log(n/(beta delta')). So if the constant of Theorem 13 is 2 (see few.thm13), the total constant
    is 2 sqrt(2). For n = 1, the inequality is an equality. The next line of the proof fails. This
    line applies A' to x_U' in the places of x_U (see Theorem 17).
    """

    @ledger.falsify(
        "tests of sums with any signs, the other items fixed: Pr[not close] over beta'",
        n=Integer(2, 12), m=Integer(1, 6), r=Integer(1, 4), q=Integer(1, 4), rest=SHARE, p=SHARE,
        signs=Array(SHARE, (2,)), small=SMALL, delta=DELTA, value=SHARE, at=SHARE,
        beta=Interval(1e-6, 0.5, log=True), c=2.0, mutant={"c": 0.1}, end_to_end=True,
        extremal=[{"n": 4, "m": 6, "r": 1, "q": 1, "rest": 0.5, "p": 0.5, "small": 0.3,
                   "signs": np.array([1.0, 0.0]), "delta": 1e-9, "value": 0.5, "at": 0.5,
                   "beta": 0.5}],
    )  # fmt: skip
    def close(n, m, r, q, rest, p, signs, small, delta, value, at, beta, c):
        r = min(r, n - 1)
        q = min(q, r, n - r)
        share = beta / math.comb(n, r) ** 2
        items, free = (n - r) * m, q * m
        root = math.sqrt(free * math.log(1 / (share * delta)))
        f = steepest_test(items, small / root, delta, round(at * items), value)
        first = round(rest * (items - free))
        f = f[first : first + free + 1]  # the other items are fixed
        law = sums(free, p, signs)
        far = np.maximum(sticks(f[:, None], f[None], c * small),
                         sticks(f[None], f[:, None], c * small))  # fmt: skip
        return law @ (far > 2 * free * delta + ROUNDING) @ law, share + ROUNDING

    @ledger.falsify(
        "sqrt(q m log(1/(beta' delta'))) <= sqrt(2) r sqrt(m log(n/(beta delta')))",
        n=Integer(1, 10**9), r=Integer(1, 1000), q=Integer(1, 1000), m=Integer(1, 1000),
        delta=DELTA, beta=BETA, c=math.sqrt(2), mutant={"c": 1.2},
        extremal=[{"n": 10**9, "r": 1, "q": 1, "m": 1, "delta": 0.5, "beta": 0.5},
                  {"n": 1, "r": 1, "q": 1, "m": 1, "delta": 0.5, "beta": 0.5}],
    )  # fmt: skip
    def rooted(n, r, q, m, delta, beta, c):
        r = min(r, n)
        log = math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1)
        left = math.sqrt(min(q, r) * m * (2 * log - math.log(beta * delta)))
        return left, c * r * math.sqrt(m * math.log(n / (beta * delta)))


# --- Lemma 19 ---


@statement("few.lemma19", expected="refuted")
def useful(ledger):
    """Let epsilon, delta > 0 be sufficiently small. Suppose that A is (epsilon', delta')-item-level
    DP such that epsilon' = Theta(epsilon/(kappa sqrt(m log(nm/delta)))) and delta' =
    Theta(delta/(kappa m)). If A is gamma-useful for any task T with (n - 4 kappa) m samples, then
    DelStab_(epsilon, delta, A) is (gamma - o(1))-useful for T (with nm samples).

    For algorithms that depend on the order, the lemma is refuted together with Theorem 17. On fair
    bits with m = 1, let the algorithm A answer 1 with the probability logistic(epsilon' (x_1 - x_2
    + x_3 - ...)). Let every answer except "no answer" be correct. With this definition, A is
    1-useful. For any constant c in epsilon' = c epsilon/(kappa sqrt(log(n/delta))), the probability
    that DelStab has an answer tends to 0 as n grows. At epsilon = 1, c = 1 and delta = 10^-6, the
    probability is .022 at n = 2 10^8. At epsilon = .01, the probability is .023 at n = 2 10^12. The
    number n has to grow like kappa^2/c^2. For every S of r < 2 kappa deleted users, whole pairs of
    places that contain S can be deleted. After this deletion, a shift by one place is possible, and
    the shift changes all signs.

    If the algorithm A does not depend on the order, the lemma holds. On bits, the lemma holds for
    all n and m, with c = 1/30 and o(1) = 0.1/(n m). The proof gives c = 1/(12 sqrt(6) 46). The
    constant c = 1 is not proved. The level epsilon' may be smaller than printed. Only the best n
    needs a level of the printed order. For m = 1 and these values of c, LDDP holds for every input,
    because 4 kappa epsilon' <= epsilon/3. So a steeper algorithm A is needed for cases in which
    DelStab may have no answer. Such cases were computed exactly, at delta = .1 and epsilon = 1, 3
    and 9. Pr[no answer] is .0038 at epsilon = 1, .0015 at epsilon = 3 and .11 at epsilon = 9. The
    loss of A's usefulness is .0015 at epsilon = 1, .0008 at epsilon = 3 and .062 at epsilon = 9.
    The loss is at most Pr[not LDDP], which is .56 at epsilon = 1, .35 at epsilon = 3 and .94 at
    epsilon = 9.
    """
    ordering = {"delta": 1e-6, "lhs": "gamma - 0.1/(n m)", "rhs": "Pr[DelStab answers], at most",
                "end_to_end": True}  # fmt: skip

    @ledger.sweep("A depends on the order, fair bits, all answers are correct: epsilon = .01, "
                  "c = 1",
                  constant=1.0, epsilon=0.01, **ordering)  # fmt: skip
    @ledger.sweep("A depends on the order, fair bits, all answers are correct: c = 0.1",
        constant=0.1,
                  epsilon=1.0, **ordering)  # fmt: skip
    @ledger.sweep("A depends on the order, fair bits, all answers are correct: c = 1", constant=1.0,
                  epsilon=1.0, **ordering)  # fmt: skip
    def ordered(constant, epsilon, delta):
        """Use the fact that stable sets of fewer than 2 kappa users exist only if abs(w) < first.

        The last term bounds Pr[R_1 = 2 kappa] <= share. The number w is x_1 - x_2 + ... - x_n.
        """
        part, share = epsilon / 3, delta / (math.exp(2 * epsilon / 3) + math.exp(epsilon) + 2)
        kappa = 1 + math.ceil(-math.log(share) / part)
        n = 2 * round(42_000 * (kappa / constant) ** 2)
        small = constant * epsilon / (kappa * math.sqrt(math.log(n / delta)))
        far = (
            math.log((share + math.exp(part)) / (1 - share)) / small
        )  # beyond this value the loss is too large
        first = math.floor(far) + 1 + 2 * kappa
        return 1 - 0.1 / n, 1 - 2 * binom.cdf(n // 2 - first, n, 0.5) + share

    @ledger.part("the sums of the counterexample").falsify(
        "for each S two sets of 4 kappa users, sums far apart",
        kappa=Integer(1, 6), more=Integer(1, 20), seed=Integer(0, 10**6), slack=1,
        mutant={"slack": 0}, extremal=[{"kappa": 1, "more": 5, "seed": s} for s in range(20)],
    )  # fmt: skip
    def reached(kappa, more, seed, slack):
        """Use the fact that the sums on the two sets are w and -w, up to 2 kappa each."""
        rng = np.random.default_rng(seed)
        n = 4 * kappa + 2 * more
        x = rng.integers(0, 2, n)
        signs = (-1) ** np.arange(n)
        pairs = np.arange(n) // 2
        gone = rng.choice(n, int(rng.integers(0, 2 * kappa)), replace=False)
        taken = list(dict.fromkeys(pairs[gone]))
        taken += [k for k in range(n // 2) if k not in taken][: 2 * kappa - 1 - len(taken)]
        left = np.flatnonzero(~np.isin(pairs, taken))
        one, other = x[left[2:]], x[left[1:-1]]
        w = x @ signs
        d = max(abs(one @ signs[: one.size] - w), abs(other @ signs[: other.size] + w))
        return d, slack * 2 * kappa

    repair = ledger.repair("The same for every A that does not depend on the order of its items.")

    @repair.falsify(
        "bits, any pure-DP A, c = 1/30: Pr[not (4 kappa, ...)-LDDP]", n=Integer(8, 10**4),
        m=Integer(1, 1000), p=SHARE, delta=DELTA, c=1 / 30, mutant={"c": 1 / 5},
        extremal=[{"n": 10**4, "m": 1000, "p": 0.5, "delta": 0.5},
                  {"n": 8, "m": 1, "p": 0.5, "delta": 0.5}],
    )  # fmt: skip
    def answered(n, m, p, delta, c):
        """Require 4 kappa * range * epsilon' <= epsilon/3, where kappa and epsilon cancel."""
        most = math.sqrt(m * math.log(n * m / delta)) / (12 * c)
        return range_above(n, m, p, most), 0.1 / (n * m) + 1e-9

    @repair.sweep(
        "DelStab and a majority, exactly, Pr[no answer] > 0: the loss is at most Pr[not LDDP]",
        cases=[{"n": n, "m": m, "p": p, "small": s, "epsilon": e} for n, m, p, s, e in
               ((100, 1, 0.95, 0.2, 1.0), (60, 1, 0.95, 0.4, 3.0), (22, 2, 0.9, 2.0, 9.0))],
        delta=0.1, four=4, mutant={"four": 1}, tolerance=1e-9, end_to_end=True,
    )  # fmt: skip
    def run(n, m, p, small, epsilon, delta, four):
        """Compare both sides, where the answer 1 is correct.

        The mutant requires LDDP only at the distance kappa.
        """
        learner, budget = noisy_majority(small), Budget(epsilon, delta)
        kept = (n - budget.deleted) * m
        k = np.arange(kept + 1)
        counted = learner.pmf_of_counts(np.stack([kept - k, k], axis=1))
        alone = binom.pmf(k, kept, p) @ counted[:, 1]
        law, failed, each = np.zeros(3), 0.0, binom.logpmf(np.arange(m + 1), m, p)
        for numbers in compositions(n, np.full(m + 1, n)):
            logs = math.lgamma(n + 1) - sum(math.lgamma(v + 1) for v in numbers) + numbers @ each
            if logs < -30:
                continue
            sizes = np.repeat(np.arange(m + 1), numbers)
            data = (np.arange(m) < sizes[:, None]).astype(int)
            law += math.exp(logs) * delstab_pmf(
                data, algorithm=learner, epsilon=epsilon, delta=delta
            )
            failed += math.exp(logs) * (not is_locally_private(
                data, algorithm=learner, removed=four * budget.kappa, epsilon=budget.part_epsilon,
                delta=budget.part_delta))  # fmt: skip
        return alone - failed, law[1] if law[2] > 1e-3 else 0.0  # otherwise nothing is tested

    ledger.consequence(
        "If an algorithm depends on the order and n is large, it may get no answer, however "
        "small the constant is. The lemma promises an answer. Privacy is not affected.",
        harm="accuracy",
    )
