"""Few examples per user: Lemma 19, whose proof runs DelStab without its test."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import binom, hypergeom

from algorithms.few_examples.deletion import Budget, delstab_pmf, is_locally_private
from algorithms.few_examples.items import AlternatingMajority, noisy_majority
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Method


@statement("few.lemma19-A0")
def without_test(ledger):
    """Let A_0 be defined in the same way as DelStab_(epsilon, delta, A) except that X_stable^(R_1)
    is simply the set of all subsets of [n] of size R_1. A_0(x) is equivalent to randomly selecting
    n - 4 kappa users and running A on it. Therefore Pr_(x ~ D^(nm))[A_0(x) in Psi_T] = Pr_(x ~
    D^((n - 4 kappa) m))[A(x) in Psi_T] >= gamma. Moreover A_0 and DelStab are exactly the same as
    long as X_stable^(R_1)(x) is the set of all subsets of size R_1, which is so if A is (4 kappa,
    epsilon-bar, delta-bar)-LDDP at x.

    The claim holds exactly for every algorithm A, even if A depends on the order, provided that
    x_-T keeps the order. For every R_1, T is uniform among the sets of 4 kappa users. So the
    remaining n - 4 kappa users are i.i.d. The two algorithms agree at x if and only if
    X_stable^(R_1)(x) contains all sets for every R_1. The two algorithms agree if and only if the
    algorithm A is (4 kappa, epsilon-bar, delta-bar)-LDDP at x. The case R_1 = 0 shows that the
    condition is necessary. In the paper, "randomly selecting" means selection without replacement.
    The selection keeps the order of x.
    """

    @ledger.identity("T is uniform: S of r users, then T around it, n = 7, 4 kappa = 4",
                     r=[0, 1, 2, 3, 4], users=7, mutant={"users": 6})  # fmt: skip
    def sets(r, users):
        """Compute the distribution of T.

        The mutant never puts the last user into S.
        """
        every = list(itertools.combinations(range(7), 4))
        law, inner = np.zeros(len(every)), list(itertools.combinations(range(users), max(r, 1)))
        if r == 0:
            inner = [()] if users == 7 else [(0,)]
        for s in inner:
            around = np.array([set(s) <= set(t) for t in every])
            law += around / around.sum() / len(inner)
        return law, np.full(len(every), 1 / len(every))

    @ledger.identity(
        "if A is LDDP at x, DelStab is A on random users; n = 20, ..., 26, one bit each",
        n=Integer(20, 26), ones=Integer(0, 26), small=Interval(0.01, 2.0, log=True), deleted=4,
        mutant={"deleted": 3}, extremal=[{"n": 24, "ones": 17, "small": 0.1}], examples=60,
        tolerance=1e-7, floor=1e-6, end_to_end=True,
    )  # fmt: skip
    def same(n, ones, small, deleted):
        ones, learner, budget = min(ones, n), noisy_majority(small), Budget(9.0, 0.9)
        data = (np.arange(n) < ones).astype(int)[:, None]
        if not is_locally_private(data, algorithm=learner, removed=4 * budget.kappa,
                                  epsilon=budget.part_epsilon,
                                  delta=budget.part_delta):  # fmt: skip
            return None
        keep = n - deleted * budget.kappa
        k = np.arange(max(0, keep - n + ones), min(keep, ones) + 1)
        ways = np.array([math.comb(ones, a) * math.comb(n - ones, keep - a) for a in k])
        pmfs = learner.pmf_of_counts(np.stack([keep - k, k], axis=1))
        meant = np.append(ways / ways.sum() @ pmfs, 0.0)
        return delstab_pmf(data, algorithm=learner, epsilon=9.0, delta=0.9), meant

    @ledger.identity(
        "an A that depends on the order, n = 21", seed=[0, 1, 2], small=0.5, method=Method.EXACT,
        kept=True, mutant={"kept": False}, end_to_end=True,
    )  # fmt: skip
    def in_order(seed, small, kept):
        """Use one remaining user, so that the algorithm A treats all sets alike.

        The mutant counts the first user twice.
        """
        data = np.random.default_rng(seed).integers(0, 2, (21, 2))
        data[0] = [1, 0]
        learner = AlternatingMajority(small)
        weight = np.ones(21)
        weight[0] += not kept
        meant = np.append(weight / weight.sum() @ [learner.pmf(x) for x in data], 0.0)
        return delstab_pmf(data, algorithm=learner, epsilon=9.0, delta=0.9), meant

    @ledger.identity(
        "A_0 on D^n against A on D^(n - 4 kappa), Bernoulli users, exactly", n=[20, 25, 60],
        p=[0.3, 0.5, 0.8], small=[0.1, 1.0], deleted=20, mutant={"deleted": 19},
        shared="the claim compares two runs of A",
    )  # fmt: skip
    def fresh(n, p, small, deleted):
        def answer(size, law):
            k = np.arange(size + 1)
            return law @ noisy_majority(small).pmf_of_counts(np.stack([size - k, k], axis=1))[:, 1]

        keep, total = n - 20, np.arange(n + 1)
        chosen = hypergeom.pmf(np.arange(keep + 1), n, total[:, None], keep)
        left = answer(keep, binom.pmf(total, n, p) @ chosen)
        size = n - deleted
        return [left, 1.0], [answer(size, binom.pmf(np.arange(size + 1), size, p)),
                             1.0 if size == keep else 0.9]  # fmt: skip
