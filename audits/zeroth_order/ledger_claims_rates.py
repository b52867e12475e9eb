"""Zeroth-order optimization: claims in the text about rates, units and what is crucial."""

from __future__ import annotations

import itertools
import math

import numpy as np

from algorithms.zeroth_order.estimators import gradient_estimate
from algorithms.zeroth_order.losses import Linear
from audits.zeroth_order import transcribed
from audits.zeroth_order.conventions import DIMENSION, LIPSCHITZ, RADIUS, SHARE, UNIT
from audits.zeroth_order.ledger_naive_rates import naive, proposed
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval

SMALL = Interval(1e-6, 1.0, log=True)
"""epsilon, in units of L."""
BUDGET = Interval(1e-4, 1e4, log=True)
"""rho."""


def fresh(moment, epsilon, delta=1.0):
    """Return the data at which O2NC with a fresh item in each round is at epsilon, without noise.

    Corollary 4.7 and fresh errors give T/(delta M) + 2 sqrt(moment/T), where F* + 2 L delta = L =
    1. The best T gives the cube root of 27 moment/(delta M).
    """
    return 27 * moment / (delta * epsilon**3)


@statement("zoo.sec1.matches", expected="ambiguous")
def matching_counterpart(ledger):
    """The non-private term O(d/(delta epsilon^3)) of the data complexity matches the
    state-of-the-art complexity found in its non-private counterpart.

    The answer depends on the unit. In data, the term agrees with Kornowski and Shamir (2023), who
    take 2 values of f for each item. The algorithm of the paper takes 2 d values for each item, so
    in values of f it needs d times as many. If the non-private algorithm may take 2 d values for
    each item, too, it needs no factor d at all. By zoo.lem3.1.var, E norm(Grad)^2 <= 3 L^2 for
    every d. So with a fresh item in each round, 81 (F* + 2 L delta) L^2/(delta epsilon^3) items are
    enough. In this unit, privacy is never for free: the proposed algorithm needs d times the data
    of its counterpart.
    """
    pentagon = 2 * np.pi * np.arange(5) / 5
    plane = np.stack([np.cos(pentagon), np.sin(pentagon)], axis=1)

    @ledger.reading("data, with 2 values for each item in the counterpart").identity(
        "powers of d and epsilon", d=DIMENSION, epsilon=SMALL, power=1.0, mutant={"power": 1.5}
    )
    def data(d, epsilon, power):
        """One direction has the second moment d, up to a constant (zoo.sec3.2mom)."""
        more = [fresh(10 * d, epsilon) / fresh(d, epsilon), fresh(d, 0.1) / fresh(d, 1.0)]
        return more, [10**power, 1e3]

    @ledger.reading("values of f", fails=True).sweep(
        "2 d values for each item against 2", d=[100, 10**4], epsilon=0.01,
        lhs="values of the algorithm", rhs="10 times the values of the counterpart",
    )  # fmt: skip
    def values(d, epsilon):
        return 2 * d * d / epsilon**3, 10 * 2 * d / epsilon**3

    @ledger.reading("data, with 2 d values for each item in both", fails=True).sweep(
        "one fresh item in each round", d=[10**4, 10**6], epsilon=0.01,
        lhs="d/(delta epsilon^3)", rhs="10 times the data of the counterpart",
    )  # fmt: skip
    def same_access(d, epsilon):
        return d / epsilon**3, 10 * fresh(3.0, epsilon)

    @ledger.step("E norm(Grad)^2 = (2 - 1/d) L^2 for linear losses").identity(
        "all pairs of directions of a pentagon, d = 2", slope=LIPSCHITZ, two=2.0,
        mutant={"two": 1.0}, tolerance=1e-9,
    )  # fmt: skip
    def moment(slope, two):
        found = [
            gradient_estimate(
                np.array([[1.0, 0.0]]), 1, loss=Linear(slope), radius=1.0, point=np.zeros(2),
                directions=plane[list(pair)][None], rng=np.random.default_rng(0),
            )[0] for pair in itertools.product(range(5), repeat=2)
        ]  # fmt: skip
        return np.mean(np.sum(np.square(found), axis=1)), (two - 0.5) * slope**2

    ledger.consequence(
        'Privacy is "for free" only against the non-private term of the paper itself.',
        harm="the wording",
    )


@statement("zoo.sec1.optimal", expected="refuted")
def optimal_privacy(ledger):
    """The algorithm incorporates four essential components, each crucial for achieving the optimal
    rate; the combination of the variance-reduced oracle and the tree mechanism is crucial for
    optimal privacy.

    The rate is not optimal in the dimension, and Section 5 says that its optimality is uncertain.
    With an orthonormal basis of directions for each item in place of d i.i.d. directions, the
    sensitivities fall by sqrt(d) (zoo.sec1.iid). Everything else in the proof is unchanged. So the
    private term is d/(rho delta epsilon^2), which is sqrt(d) below the printed one, with as many
    values of f. Then privacy is for free from rho = epsilon on, and not only from sqrt(d) epsilon.
    The two components named last are crucial for this analysis (zoo.sec1.crucial).
    """

    def needed(d, rho, epsilon, power):
        """Return the data of the bound of Theorem 4.9 with T = max{...}, F* + L delta = L = 1."""
        T = max(9 * d / epsilon**2, 3 * d**power / (rho * epsilon))
        return 3 * T / epsilon

    @ledger.sweep(
        "the private term is at most ten times that with an orthonormal basis",
        d=[1000, 10**4], rho=1e-6, epsilon=0.01, lhs="data for d i.i.d. directions",
        rhs="ten times the data for a basis",
    )  # fmt: skip
    def best(d, rho, epsilon):
        return needed(d, rho, epsilon, 1.5), 10 * needed(d, rho, epsilon, 1.0)

    repair = ledger.repair(
        "with an orthonormal basis of directions for each item, M = Otilde(d/(delta epsilon^3) + "
        "d/(rho delta epsilon^2)) is enough; no lower bound is known"
    )

    @repair.falsify(
        "the bound of the proof with the sensitivities of a basis, without logarithms",
        d=DIMENSION, epsilon=SMALL, rho=BUDGET, basis=True, mutant={"basis": False},
        extremal=[{"d": 1000, "epsilon": 1.0, "rho": 1e-4}],
    )  # fmt: skip
    def enough(d, epsilon, rho, basis):
        """Noise of size 4 d/(T rho) replaces 4 d^(3/2)/(T rho), in the bound at the best T."""
        M = 20000 * (d / epsilon**3 + d / (rho * epsilon**2))
        T = max((math.sqrt(d) * M) ** (2 / 3), math.sqrt(d * M / rho))
        noise = 4 * d / (T * rho) * (1 if basis else math.sqrt(d))
        return T / M + 2 * math.sqrt(80 * d / T) + 2 * noise, epsilon

    ledger.consequence("The private term can be sqrt(d) times smaller.", harm="accuracy")


@statement("zoo.sec1.crucial")
def crucial_pair(ledger):
    """The combination of the variance-reduced oracle and the tree mechanism is crucial: without the
    tree, fresh noise for each of g_1, d_2, ..., d_T gives no better noise term than the naive
    algorithm.

    In units of 4 d L/(B_2 T rho), g_t then has t noises of variance 1. Their mean over t is T/2,
    and all errors of an epoch add up. With the tree, the largest number of noises is log2(T + 1),
    each with the factor 2 ln T of Corollary 4.4. So the tree is better from T = 200 on, and its
    advantage grows like T/ln^2 T. Without differences, the batches are disjoint, and the tree has
    nothing to sum.
    """

    @ledger.falsify(
        "noise without the tree against the naive noise, d = L = rho = B_2 = 1",
        T=Integer(2, 10**4), part=2.0, mutant={"part": 0.5},
        extremal=[{"T": 10**4}],
    )  # fmt: skip
    def without_tree(T, part):
        """The naive error averages over an epoch: variance 4 in each round gives 2/sqrt(T)."""
        own = np.mean([math.sqrt(t) * 4 / T for t in range(1, T + 1)])
        return 2 / math.sqrt(T), part * own

    @ledger.sweep(
        "noise with the tree against none", T=[2**k for k in range(9, 15)], tree=True,
        mutant={"tree": False},
    )  # fmt: skip
    def with_tree(T, tree):
        counts = [len(transcribed.node(t)) if tree else t for t in range(1, T + 1)]
        sigma = transcribed.corollary_4_4_sigma(T, 1, 1, 1.0, 1.0)
        own = np.mean(np.sqrt(counts)) * sigma
        return own, np.mean([math.sqrt(t) * 4 / T for t in range(1, T + 1)])


def spider_items(d, n_directions, epsilon=0.01):
    """Return the items of SPIDER with its best reference batch, for F* = L = delta = 1.

    A step has the length epsilon/(4 c), where c is the smoothness of Fhat_delta. It cancels.
    """
    variance, differences = 1 + d / n_directions, d * d / n_directions
    return 256 * math.sqrt(variance * differences) / epsilon**3


@statement("zoo.sec4.1.vrsgd", expected="ambiguous")
def variance_reduced_sgd(ledger):
    """A straightforward application of variance-reduced SGD paired with zeroth-order estimators
    only achieves a sub-optimal dimension dependence of O(d^(3/2)/(delta epsilon^3)).

    The answer depends on the unit. SPIDER on Fhat_delta needs of order sigma H F*/epsilon^3 items.
    Here, sigma^2 is the variance of Grad, and H^2 norm(x - y)^2 is that of Diff. With one direction
    for each item, sigma^2 H^2 is of order d^3/delta^2, which gives the quoted d^(3/2). With the d
    directions of the paper, sigma is of order 1 and H of order sqrt(d)/delta. So SPIDER needs
    sqrt(d)/(delta epsilon^3) items, which is fewer than the d/(delta epsilon^3) of the paper. In
    values of f, all these numbers of items times 2 d agree with the quoted rate.
    """
    exponents = {"d": [100, 1000], "tolerance": 0.02, "power": 1.5, "mutant": {"power": 1.0}}

    @ledger.reading("values of f").identity(
        "growth with d, in decades", n_directions=["one", "d"], **exponents
    )
    def in_values(d, n_directions, power):
        many, few = (10 * d, d) if n_directions == "d" else (1, 1)
        more = many * spider_items(10 * d, many) / (few * spider_items(d, few))
        return math.log10(more), power

    @ledger.reading("items, with the d directions of the paper", fails=True).sweep(
        "growth with d, in decades", d=[100, 1000], lhs="the growth of d^(3/2)",
        rhs="the growth of the items of SPIDER",
    )  # fmt: skip
    def in_items(d):
        return 1.5, math.log10(spider_items(10 * d, 10 * d) / spider_items(d, d))

    ledger.consequence(
        "In items, the comparison with variance-reduced SGD is reversed.", harm="the wording"
    )


@statement("zoo.sec4.1.naived", expected="ambiguous")
def worse_complexity(ledger):
    """While the naive approach might seem intuitive, it leads to significantly worse data
    complexity.

    With one direction for each item, as in Algorithm 6, the naive approach is never better by more
    than a constant. If it also takes the d directions of Grad, its variance has no factor d. Then
    it needs 1/(delta epsilon^3) + d^(3/2)/(rho delta epsilon^3) items. For rho > sqrt(d), this is
    less than the proposed algorithm needs, by up to a factor of d at rho >= d^(3/2).
    """

    def many_directions(d, epsilon, rho):
        """Algorithm 6 with Grad: E norm(g)^2 is at most 3, and the noise is d^(3/2)/(B rho)."""
        B = max(1.0, d**1.5 / rho)
        return 6.75 * B * (math.sqrt(3) + 1 + d**1.5 / (B * rho)) ** 2 / epsilon**3

    @ledger.reading("one direction for each item, as in Algorithm 6").falsify(
        "at most 30 times the data of the naive approach with its best batch", d=DIMENSION,
        epsilon=SMALL, rho=BUDGET, most=30.0, mutant={"most": 1.0},
        extremal=[{"d": 1000, "epsilon": 0.01, "rho": 1e4}],
    )  # fmt: skip
    def one_direction(d, epsilon, rho, most):
        best = min(naive(d, epsilon, rho, B) for B in np.geomspace(1, max(1, d**1.5 / rho), 60))
        return proposed(d, epsilon, rho), most * best

    @ledger.reading("d directions for each item, as in Grad", fails=True).sweep(
        "rho = d", d=[10**4, 10**6], epsilon=0.01, lhs="data of the proposed algorithm",
        rhs="ten times the data of the naive approach",
    )  # fmt: skip
    def all_directions(d, epsilon):
        return proposed(d, epsilon, d), 10 * many_directions(d, epsilon, d)

    ledger.consequence("For rho > sqrt(d), the naive approach can be the better one.", "accuracy")


@statement("zoo.thm4.9.equiv", expected="ambiguous")
def bounded_by_epsilon(ledger):
    """Equivalently, the right hand side (F* d L^2/(delta M))^(1/3) + (d L^3/M)^(1/3) + (F* d^(3/2)
    L/(rho delta M))^(1/2) + (d^(3/2) L^2/(rho M))^(1/2) is bounded by epsilon if M = max{F* d
    L^2/(delta epsilon^3), d L^3/epsilon^3, F* d^(3/2) L/(rho delta epsilon^2), d^(3/2) L^2/(rho
    epsilon^2)}.

    At this M, the largest term is epsilon and the others are positive. So the sum is above epsilon,
    and at most 4 epsilon. M = 64 max{...} is enough. The theorem states M with Otilde.
    """

    def terms(F, d, L, delta, rho, M):
        cubes = F * d * L**2 / (delta * M), d * L**3 / M
        squares = F * d**1.5 * L / (rho * delta * M), d**1.5 * L**2 / (rho * M)
        return sum(c ** (1 / 3) for c in cubes) + sum(s**0.5 for s in squares)

    def largest(F, d, L, delta, rho, epsilon):
        cubes = F * d * L**2 / (delta * epsilon**3), d * L**3 / epsilon**3
        squares = F * d**1.5 * L / (rho * delta * epsilon**2), d**1.5 * L**2 / (rho * epsilon**2)
        return max(*cubes, *squares)

    ones = {"F": 1.0, "d": 1, "L": 1.0, "delta": 1.0, "rho": 1.0}

    @ledger.reading("with M as printed", fails=True).sweep(
        "all parameters 1", epsilon=[0.1, 1.0], lhs="the right hand side", rhs="epsilon", **ones
    )
    def literal(epsilon, **rest):
        return terms(**rest, M=largest(**rest, epsilon=epsilon)), epsilon

    @ledger.reading("with a constant before the maximum").falsify(
        "M = 64 max{...}", F=LIPSCHITZ, d=DIMENSION, L=LIPSCHITZ, delta=RADIUS, rho=BUDGET,
        epsilon=SMALL, constant=64.0, mutant={"constant": 16.0},
        extremal=[{**ones, "epsilon": 1.0}],
    )  # fmt: skip
    def constant_before(constant, epsilon, **rest):
        M = constant * largest(**rest, epsilon=epsilon)
        return terms(**rest, M=M), epsilon * (1 + 1e-9)

    ledger.consequence("A constant of at most 64.", harm="a constant")


@statement("zoo.thm4.9.eq12")
def sum_of_both(ledger):
    """With B_1 = T + 1, B_2 = 1 and K = M/(2T), the sum of (1), D L sqrt(T) (sqrt(d)/sqrt(B_2 T) +
    1 + d^(3/2)/(B_2 T rho)), and of (2), D (sqrt(d) L/sqrt(B_2 T) + d^(3/2) L/(B_2 T rho)) for each
    round, over D T, with the first term of Corollary 4.7, is <~ (F* + L delta) T/(delta M) +
    sqrt(d) L/sqrt(T) + d^(3/2) L/(T rho).

    The constant 4 is enough. The first term of Corollary 4.7 is (F* + 2 L delta)/(D K T), which
    hides a factor of 4.
    """

    @ledger.falsify(
        "constant 4", F=LIPSCHITZ, d=DIMENSION, L=LIPSCHITZ, delta=RADIUS, rho=BUDGET,
        T=Integer(1, 10**6), K=Integer(1, 1000), constant=4.0, mutant={"constant": 1.5},
        extremal=[{"F": 1e-3, "d": 1, "L": 1e3, "delta": 1e3, "rho": 1e4, "T": 1, "K": 1}],
    )  # fmt: skip
    def together(F, d, L, delta, rho, T, K, constant):
        D, M, r = delta / T, 2 * K * T, d**1.5 / (T * rho)
        first = D * L * math.sqrt(T) * (math.sqrt(d / T) + 1 + r)
        second = T * D * (math.sqrt(d / T) + r) * L
        found = (F + 2 * L * delta) / (D * K * T) + (first + second) / (D * T)
        printed = (F + L * delta) * T / (delta * M) + math.sqrt(d / T) * L + r * L
        return found, constant * printed


@statement("zoo.sec2.tangential", expected="ambiguous")
def tangential_smoothness(ledger):
    """O2NC does not require any smoothness itself. The smoothness property (Lemma 2.2 (iii)) is
    tangential: it affects neither the conversion nor the rate.

    The conversion needs no smoothness. The variance of Diff does, and the proof of Lemma 3.2 cites
    Lemma 2.2 (iii) for it. Let Diff have so many directions that only the item is random. For
    f = z L abs(<e, x>) with z = 1 or -1, its variance is (c_d L norm(x - y)/delta)^2. Here, c_d is
    the constant of Lemma 2.2 (iii), of order sqrt(2 d/pi). So the d in d/(delta epsilon^3) is the
    square of the smoothness constant. Without smoothness, only d^2 is left.
    """

    @ledger.reading("the conversion of Lemma 4.6").identity(
        "F = abs: the mean slope between two points times the step is F(x_(t+1)) - F(x_t)",
        x=UNIT, step=UNIT, half=0.0, tolerance=1e-4, floor=1.0, mutant={"half": 0.5},
    )  # fmt: skip
    def conversion(x, step, half):
        shares = (np.arange(20000) + 0.5) / 20000
        mean = np.mean(np.sign(x + (half + shares) * step)) * step
        return mean, abs(x + step) - abs(x)

    @ledger.reading("the rate: the variance of Diff is small without smoothness", fails=True).sweep(
        "z L abs(<e, x>) at the kink, as many directions as you like", d=[100, 10**4],
        lhs="variance of Diff, in units of (L norm(x - y)/delta)^2", rhs="ten",
    )  # fmt: skip
    def variance(d):
        half = math.lgamma(d / 2 + 1) - math.lgamma((d + 1) / 2)
        return 4 * math.exp(2 * half) / math.pi, 10.0

    ledger.consequence("The rate rests on the smoothness of Fhat_delta.", harm="the wording")


@statement("zoo.sec4.1.o2nc")
def any_learner(ledger):
    """O2NC converts any OCO algorithm with O(sqrt(T)) regret into a nonsmooth nonconvex
    optimization algorithm that finds a (delta, epsilon)-stationary point in O(1/(delta epsilon^3))
    iterations.

    As usual, the regret is read as O(D L sqrt(T)) on a ball of radius D. Since D = delta/T here, a
    regret of sqrt(T) without D would say nothing: every algorithm has at most 2 delta L. The best T
    gives exactly 6.75 c^2 F* L^2/(delta epsilon^3) iterations for regret c D L sqrt(T).
    """

    @ledger.falsify(
        "6.75 c^2 F* L^2/(delta epsilon^3) iterations are enough", F=LIPSCHITZ, L=LIPSCHITZ,
        delta=RADIUS, epsilon=SMALL, c=Interval(1.0, 10.0), constant=6.75,
        mutant={"constant": 6.0},
        extremal=[{"F": 1.0, "L": 1.0, "delta": 1.0, "epsilon": 0.1, "c": 1.0}],
    )  # fmt: skip
    def iterations(F, L, delta, epsilon, c, constant):
        """The bound is F*/(D K T) + c L/sqrt(T), for D = delta/T and M = K T."""
        M = constant * c**2 * F * L**2 / (delta * (epsilon * L) ** 3)
        T = (c * L * delta * M / (2 * F)) ** (2 / 3)
        return F * T / (delta * M) + c * L / math.sqrt(T), epsilon * L * (1 + 1e-9)


@statement("zoo.sec1.arora")
def same_condition(ledger):
    """When rho >= sqrt(d) epsilon, the non-private term is dominating. This is consistent with the
    observations when the objective is smooth (Arora et al., 2023), where the data size is
    1/epsilon^3 + sqrt(d)/(rho epsilon^2).

    Both quotients of the two terms are sqrt(d) epsilon/rho. The rho of Arora et al. is the
    parameter of (rho, gamma)-DP, which is another one by a factor of order sqrt(ln(1/gamma))
    (zoo.sec1.approxdp).
    """

    @ledger.identity("quotients of the terms", d=Integer(1, 10**6), epsilon=SMALL, delta=RADIUS,
                     rho=BUDGET, share=SHARE, power=0.5, mutant={"power": 1.0})  # fmt: skip
    def quotients(d, epsilon, delta, rho, share, power):
        smooth = math.sqrt(d) / (rho * epsilon**2) / (1 / epsilon**3)
        proposed_terms = d**1.5 / (rho * delta * epsilon**2) / (d / (delta * epsilon**3))
        return [smooth, proposed_terms], [d**power * epsilon / rho] * 2
