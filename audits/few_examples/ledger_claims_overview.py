"""Few examples per user: claims of the technical overview, Section 1.1.1, about approximate DP."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from algorithms.few_examples.deletion import Budget, delstab_pmf, is_locally_private
from algorithms.few_examples.items import noisy_majority
from audits.few_examples.conventions import EPSILON
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval


def chance_of_answer(n, ones, item, epsilon, delta):
    part = epsilon / 3
    share = delta / (math.exp(2 * part) + math.exp(epsilon) + 2)
    kappa = 1 + math.ceil(math.log(1 / share) / part)
    noise = np.exp(-part * np.abs(np.arange(2 * kappa + 1) - kappa))
    keep, stable = n - 4 * kappa, []
    for r in range(2 * kappa + 1):  # S consists of r users with the item 1
        left = max(ones - r, 0)
        p, q = expit(item * (np.array([min(left, keep), max(ones - 4 * kappa, 0)]) - keep / 2))
        worst = max(p - math.exp(part) * q, (1 - q) - math.exp(part) * (1 - p))
        stable.append(worst <= share)
    return None if stable[0] else noise[stable].sum() / noise.sum()


@statement("few.sec1.1.1-ptr", expected="ambiguous")
def test_of_the_input(ledger):
    """We use a propose-test-release style algorithm to check whether the input is close to a "bad"
    input for which the aforementioned local condition (LDDP) does not hold. If so, then we output
    bot; otherwise, we run the item-level DP algorithm.

    The overview says that it is vague. Its second half holds: if no input close to x is bad, then x
    itself is not bad, and Algorithm 1 always gives an answer. Its first half has the direction of
    the test reversed. Algorithm 1 answers if x is close to a good input, by deletions. Let s be the
    least number of users whose deletion leaves a good input. The probability of bot is Pr[R_1 < s].
    So a bad input with small s is almost always answered.

    Take epsilon = 1, delta = 10^-6 (kappa = 49) and 236 users with one bit each. The item-level
    algorithm is the majority of bits at epsilon = 1, and 6 users have the bit 1. This input is bad
    at the distance 4 kappa, but the probability of bot is 3.2 10^-8. Bot protects privacy because
    the probability changes slowly between neighbours. Section 3.2.2 describes the test correctly.
    Algorithm 1 also runs the item-level algorithm on 4 kappa users fewer than the input has.
    """
    direct = ledger.reading("if no input close to x is bad, we run the item-level algorithm")

    @direct.sweep("majority of 40 bits, epsilon = 9: Pr[bot] only if LDDP fails at x, exactly",
                  ones=range(0, 41, 2), item=[0.05, 1.0], removed=20, mutant={"removed": 1},
                  end_to_end=True)  # fmt: skip
    def answered(ones, item, removed):
        """The mutant tests LDDP at the distance 1, not at 4 kappa = 20."""
        data, learner = (np.arange(40) < ones).astype(int)[:, None], noisy_majority(item)
        budget = Budget(9.0, 0.4)
        good = is_locally_private(data, algorithm=learner, removed=removed,
                                  epsilon=budget.part_epsilon,
                                  delta=budget.part_delta)  # fmt: skip
        found = delstab_pmf(data, algorithm=learner, epsilon=9.0, delta=0.4)[-1]
        return found, 1e-15 if good else 1.0

    @ledger.reading("the test: Pr[bot] = Pr[R_1 < s], where s deletions leave a good input")\
        .identity("majority of bits, by hand, against Algorithm 1", cases=[
            {"n": 236, "ones": 6, "epsilon": 1.0, "delta": 1e-6},
            {"n": 236, "ones": 40, "epsilon": 1.0, "delta": 1e-6},
            {"n": 40, "ones": 6, "epsilon": 9.0, "delta": 0.4},
            {"n": 40, "ones": 9, "epsilon": 9.0, "delta": 0.4}], item=1.0, tolerance=1e-6,
            mutant={"item": 0.9}, floor=1e-12, end_to_end=True)  # fmt: skip
    def by_hand(n, ones, epsilon, delta, item):
        data = (np.arange(n) < ones).astype(int)[:, None]
        found = delstab_pmf(data, algorithm=noisy_majority(1.0), epsilon=epsilon, delta=delta)
        return found[-1], 1 - chance_of_answer(n, ones, item, epsilon, delta)

    ledger.reading("if x is close to a bad input, such as x itself, we output bot", fails=True)\
        .sweep("majority of 236 bits, of which 6 are 1: not LDDP at x", n=236, ones=6, item=1.0,
               epsilon=1.0, delta=1e-6, lhs="Pr[answer]", rhs="1/2")(bad_input)  # fmt: skip

    ledger.consequence(
        "None for the results. The overview describes the test of Algorithm 1 the wrong way round.",
        harm="the wording",
    )


def bad_input(n, ones, item, epsilon, delta):
    part = epsilon / 3
    share = delta / (math.exp(2 * part) + math.exp(epsilon) + 2)
    kappa = 1 + math.ceil(math.log(1 / share) / part)
    noise = np.exp(-part * np.abs(np.arange(2 * kappa + 1) - kappa))
    for s in range(ones):  # the n - 4 kappa remaining bits hold between 0 and ones - s ones
        p, q = expit(item * (np.array([ones - s, 0]) - (n - 4 * kappa) / 2))
        if max(p - math.exp(part) * q, 1 - q - math.exp(part) * (1 - p)) <= share:
            break
    return noise[s:].sum() / noise.sum() if s > 0 else 0.0, 0.5


@statement("few.sec1.1.1-delta", expected="ambiguous")
def same_delta(ledger):
    """If this (the local condition, with epsilon increased by a factor of roughly sqrt(m)) were to
    hold also for all user-level neighbors x' of x, then we would have been done since the (epsilon,
    delta)-item-level DP algorithm would have also yielded (epsilon sqrt(m), delta)-user-level DP.

    The overview says that it is vague. If delta is read up to the factor of Theorem 17, the
    sentence is consistent: the local condition has delta of the order of m delta. With the same
    delta, it fails for every epsilon. Let A release each of its items with probability delta, which
    is (0, delta)-DP. Let two users have m different items each, and delete one of the users. The
    two distributions have the divergence 1 - (1 - delta)^m, which is .00996 for m = 10 and delta =
    .001. The local condition of the sentence also omits a factor sqrt(log(n/(beta delta))).
    Corollary 3 accounts for both factors.
    """
    cases = {"m": [1, 2, 5, 10], "delta": [1e-6, 1e-3, 0.1]}

    ledger.reading("delta up to a factor of m, as in Theorem 17").sweep(
        "each item is released with probability delta: the divergence of two users, by enumeration",
        power=1.0, mutant={"power": 0.5}, **cases)(released)  # fmt: skip

    ledger.reading("the same delta", fails=True).sweep(
        "each item is released with probability delta: the divergence of two users, by enumeration",
        m=10, delta=1e-3, power=0.0, lhs="divergence for every epsilon",
        rhs="delta")(released)  # fmt: skip

    ledger.consequence(
        "None for the results, because Theorem 17 and Corollary 3 have the factor m.",
        harm="the wording",
    )


def released(m, delta, power):
    found = 0.0
    for kept in itertools.product((0, 1), repeat=m):  # items of the first user that are released
        chance = delta ** sum(kept) * (1 - delta) ** (m - sum(kept))
        found += chance if any(kept) else 0.0  # the second user has none of these items
    return found, delta * m**power


@statement("few.sec1.1.1-last-user")
def last_user(ledger):
    """If we view the algorithm that fixes examples of all but one user, then applying the sample
    perfect generalization bound on just the input of the last user (which consists of only m
    samples) shows that the privacy loss when changing the last user is O(sqrt(m log(1/delta))
    epsilon) w.h.p.

    This is Theorem 13 with n = m for A(x_1, ..., x_(n-1), .), and it holds for every A. Both
    samples of the last user are at the same place, so the order of the users does not matter here.
    The failure probability has to be at least a power of delta. For the logistic majority of bits,
    the loss was computed exactly. With probability 1 - beta, the loss is at most epsilon sqrt(m
    ln(2/beta)). The next sentence of the paper changes the places of users, and there the order
    matters (few.thm17).
    """

    @ledger.falsify("the last user's fair bits are drawn twice: Pr[loss > t], exactly",
                    m=Integer(1, 400), epsilon=EPSILON, beta=Interval(1e-9, 0.5, log=True),
                    power=0.5, mutant={"power": 0.0}, end_to_end=True, extremal=[
                        {"m": 400, "epsilon": 0.1, "beta": b} for b in (1e-6, 1e-3)])  # fmt: skip
    def loss(m, epsilon, beta, power):
        """The loss of a logistic majority is at most epsilon times the difference of the counts."""
        bound = epsilon * math.sqrt(m) * math.log(2 / beta) ** power
        gaps = np.abs(np.arange(2 * m + 1) - m)  # difference of two sums of m bits each
        return binom.pmf(np.arange(2 * m + 1), 2 * m, 0.5)[epsilon * gaps > bound].sum(), beta


@statement("few.sec1.1.1-impossible")
def no_canonical_output(ledger):
    """Their conversion from item-level DP algorithms to user-level DP algorithms requires
    constructing pseudo-globally stable algorithms with sample complexity m. This is impossible when
    m is small, which is the reason why their reduction works only in the example-rich setting.

    The claim holds for canonical outputs of probability rho > 1/2 that are correct. Let two sources
    have no correct answer in common. A correct canonical output for both sources identifies the
    source, so rho <= 1/2 + d_tv(D_+^m, D_-^m)/2, on average over the random string. For coins of
    bias 1/2 + a and 1/2 - a, this requires m of the order of (2 rho - 1)^2/a^2. At m = 1, rho is at
    most 1/2 + a. Section 1 gives 0.5 as an example of rho. At rho = 1/2, this argument excludes
    nothing for two answers, because a fair guess that ignores the data attains it.
    """

    @ledger.falsify("best probability of the correct answer for two coins, against 1/2 + "
                    "sqrt(m KL/2)/2", m=Integer(1, 300), a=Interval(1e-3, 0.4, log=True),
                    power=1.0, mutant={"power": 0.5}, end_to_end=True, extremal=[
                        {"m": 1, "a": 1e-3}, {"m": 101, "a": 0.02}])  # fmt: skip
    def canonical(m, a, power):
        ones = np.arange(m + 1)
        plus, minus = binom.pmf(ones, m, 0.5 + a), binom.pmf(ones, m, 0.5 - a)
        kl = 2 * a * math.log((1 + 2 * a) / (1 - 2 * a))
        best = np.maximum(plus, minus).sum() / 2  # the likelihood ratio test, without privacy
        return best, 0.5 + math.sqrt(m**power * kl / 2) / 2 + 1e-12
