"""Private geometric median: Section 2.2, differential privacy."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
from hypothesis import strategies as st

from algorithms.common.noise import bounded_laplace_delta
from algorithms.common.sparse_vector import first_above_threshold
from dpaudit import oracles, strategies
from dpaudit.divergence import hockey_stick, hockey_stick_density, renyi_divergence
from dpaudit.ledger import Array, Box, LedgerVerdict, Method, statement
from dpaudit.search import Interval, Whole

EPSILONS = Interval(1e-3, 1.0, log=True)
DELTAS = Interval(1e-12, 0.999, log=True)
ROUNDING = 1e-12


@statement("gm.nbr", expected=LedgerVerdict.AMBIGUOUS)
def neighbours(ledger):
    def difference(left, right):
        a, b = Counter(left), Counter(right)
        return sum(((a - b) + (b - a)).values())

    cases = [
        {"left": left, "right": right}
        for n in (1, 2, 3)
        for left in itertools.product(range(3), repeat=n)
        for right in itertools.product(range(3), repeat=n)
    ]
    ledger.sweep(
        cases,
        lambda left, right: (difference(left, right) % 2, 0),
        claim="the symmetric difference of two datasets of one size is never odd, so never 1",
        twin=lambda left, right: (difference(left, right) % 4, 0),
    )
    ledger.conclude(
        LedgerVerdict.AMBIGUOUS,
        "Two datasets in X^n never have a symmetric difference of size 1: read so, no two are "
        "neighbours and everything is private. 'They differ in a single element' is what the "
        "proofs use: one point is replaced, which is a symmetric difference of 2.",
    )
    with ledger.repair("neighbouring: equal but for one entry; the symmetric difference is 0 or 2"):
        ledger.sweep(
            [c for c in cases if sum(x != y for x, y in zip(*c.values(), strict=True)) == 1],
            lambda left, right: (difference(left, right), 2),
        )


@statement("gm.def1")
def differential_privacy(ledger):
    """The supremum over events is the hockey-stick divergence."""

    def over_events(p, q, epsilon):
        events = itertools.product([False, True], repeat=len(p))
        masks = [np.array(event) for event in events]
        return max(p[mask].sum() - math.exp(epsilon) * q[mask].sum() for mask in masks)

    def values(case):
        p, q, epsilon = case
        return 1 + over_events(p, q, epsilon), 1 + hockey_stick(p, q, epsilon)

    def one_sided(case):
        p, q, epsilon = case
        return 1 + over_events(p, q, epsilon), 1 + np.abs(p - math.exp(epsilon) * q).sum() / 2

    laws = strategies.distributions(k=4)
    ledger.identity(st.tuples(laws, laws, st.floats(0, 1)), values, tolerance=1e-11, twin=one_sided)
    ledger.note("Stated for (epsilon, delta) in [0, 1]^2; the noise scales divide by epsilon.")


def closes(highest=1.0):
    """Pairs of laws with the (epsilon, delta) that they are built for."""
    numbers = st.tuples(st.floats(0.01, highest), st.sampled_from([0.0, 1e-3, 0.1, 0.5]))
    return numbers.flatmap(
        lambda at: st.tuples(st.just(at), strategies.close_pairs(epsilon=at[0], delta=at[1], k=3))
    )


@statement("gm.basiccomp")
def basic_composition(ledger):
    """The second mechanism may depend on the first output: a pair for each of two outcomes."""

    def joint(first, seconds, side):
        rows = [first[side][i] * seconds[i % len(seconds)][side] for i in range(len(first[side]))]
        return np.concatenate(rows)

    def sides(case):
        (first_at, first), (second_at, second), swap = case
        seconds = [second, second[::-1]] if swap else [second]
        found = hockey_stick(
            joint(first, seconds, 0), joint(first, seconds, 1), first_at[0] + second_at[0]
        )
        return found, first_at[1] + second_at[1] + ROUNDING

    def deltas_not_added(case):
        lhs, _ = sides(case)
        return lhs, max(case[0][0][1], case[1][0][1]) + ROUNDING

    ledger.falsify(
        st.tuples(closes(), closes(), st.booleans()), sides, twin=deltas_not_added, tolerance=1e-9
    )


def fact2_sigma(epsilon, delta, constant=2.0):
    return constant / epsilon * math.sqrt(math.log(2 / delta))


@statement("gm.fact2")
def gaussian_mechanism(ledger):
    def sides(epsilon, delta):
        return float(oracles.gaussian(1.0, fact2_sigma(epsilon, delta)).delta(epsilon)), delta

    ledger.falsify(
        Box(epsilon=EPSILONS, delta=Interval(1e-250, 1.0, log=True)),
        sides,
        extremal=[{"epsilon": 1.0, "delta": 1.0}, {"epsilon": 1.0, "delta": 1e-12}],
        twin=lambda epsilon, delta: (
            float(oracles.gaussian(1.0, fact2_sigma(epsilon, delta, 0.6)).delta(epsilon)),
            delta,
        ),
    )

    def spare(epsilon, delta):
        sigma = fact2_sigma(epsilon, delta, math.sqrt(2))
        return float(oracles.gaussian(1.0, sigma).delta(epsilon)), delta

    ledger.falsify(
        Box(epsilon=EPSILONS, delta=Interval(1e-250, 0.5, log=True)),
        spare,
        claim="even with sqrt 2 for 2 in front of sigma",
        twin=None,
    )
    ledger.note("epsilon = 0 is allowed by 'in [0, 1]^2' and leaves sigma undefined.")


@statement("gm.fact3")
def bounded_laplace(ledger):
    def sides(epsilon, delta, tau_of=lambda delta: math.log(4 / delta)):
        return bounded_laplace_delta(epsilon, tau_of(delta)), delta

    ledger.falsify(
        Box(epsilon=EPSILONS, delta=DELTAS),
        sides,
        claim="exact delta of the bounded Laplace mechanism",
        extremal=[{"epsilon": 1.0, "delta": 0.999}, {"epsilon": 1.0, "delta": 1e-12}],
        twin=lambda epsilon, delta: sides(epsilon, delta, lambda d: math.log(1 / d)),
    )

    def numeric(epsilon, delta):
        """The closed form against quadrature, at any shift up to the sensitivity."""
        tau, scale = math.log(4 / delta) / epsilon, 1 / epsilon
        mass = -math.expm1(-tau / scale)

        def density(center):
            return lambda x: (
                math.exp(-abs(x - center) / scale) / (2 * scale * mass)
                if abs(x - center) <= tau
                else 0.0
            )

        edges = sorted({-tau, 1 - tau, 0.0, 1.0, tau, 1 + tau})
        found = hockey_stick_density(density(0.0), density(1.0), epsilon, breakpoints=edges)
        return 1 + found, 1 + bounded_laplace_delta(epsilon, tau * epsilon)

    ledger.identity(
        [{"epsilon": e, "delta": d} for e in (0.1, 0.5, 1.0) for d in (0.01, 0.2, 0.9)],
        numeric,
        claim="closed form against quadrature",
        method=Method.NUMERIC,
        tolerance=1e-7,
    )
    ledger.note(
        "The exact delta is (delta / 4)(e^epsilon - 1) / (2 - delta / 2): at most 0.29 delta."
    )


@statement("gm.lemma1")
def coupling(ledger):
    """Move at most t of each law: adversarially, from where q is to where p is."""

    def moved(law, to, amount):
        shift = min(amount, 1 - law[to])
        others = 1 - law[to]
        out = law * (1 - shift / others) if others > 0 else law.copy()
        out[to] = law[to] + shift
        return out

    def sides(case, factor=4.0):
        ((epsilon, delta), (p, q)), t = case
        worst = 0.0
        for i, j in itertools.product(range(len(p)), repeat=2):
            if i != j:
                found = hockey_stick(moved(p, i, t), moved(q, j, t), epsilon)
                worst = max(worst, found)
        return worst - delta, factor * t + ROUNDING

    ledger.falsify(
        st.tuples(closes(), st.floats(1e-6, 0.3)),
        sides,
        claim="epsilon <= 1",
        extremal=[
            (
                ((1.0, 0.0), (np.array([0.0, 1, 1, 0]) / 2, np.array([0.0, 1, 1, 0]) / 2)),
                0.01,
            ),
            (
                (
                    (1.0, 0.0),
                    (
                        np.array([1 / (1 + math.exp(-1)), 1 / (1 + math.e)]),
                        np.array([1 / (1 + math.e), 1 / (1 + math.exp(-1))]),
                    ),
                ),
                0.01,
            ),
        ],
        twin=lambda case: sides(case, 2.0),
    )
    ledger.note("The sharp factor is 1 + e^epsilon, 3.72 at epsilon = 1: 4 fails beyond log 3.")


# --- AboveThreshold ---


def halted_law(queries, threshold, epsilon, sensitivity):
    """Law of where Algorithm 1 halts: the noes before it, and the yes."""
    law = oracles.sparse_vector_patterns(
        queries,
        thresholds=threshold,
        threshold_scale=2 * sensitivity / epsilon,
        query_scale=4 * sensitivity / epsilon,
        cutoff=1,
    )
    return np.asarray(law.probabilities)


@statement("gm.alg1")
def above_threshold(ledger):
    """The implementation draws from the law that the noise scales of the pseudocode give."""
    queries, epsilon, sensitivity = np.array([-1.0, 0.5, 2.0]), 0.7, 1.5

    def law_at(factor):
        return oracles.sparse_vector_patterns(
            queries,
            thresholds=0.3,
            threshold_scale=2 * sensitivity / (factor * epsilon),
            query_scale=4 * sensitivity / (factor * epsilon),
            cutoff=1,
        )

    exact = law_at(1.0)

    def places(law):
        """Probability of each place of the first yes; the last one is nowhere."""
        found = np.zeros(len(queries) + 1)
        for pattern, chance in zip(law.patterns, law.probabilities, strict=True):
            found[pattern.index(1) if 1 in pattern else -1] += chance
        return found

    def halts(size, *, rng, factor=1.0):
        answers = first_above_threshold(
            queries,
            size,
            threshold=0.3,
            epsilon=epsilon * factor,
            sensitivity=sensitivity,
            rng=rng,
        )
        return np.where((answers == 1).any(axis=1), (answers == 1).argmax(axis=1), len(queries))

    for place, chance in enumerate(places(exact)):
        for sign in (1, -1):
            ledger.monte_carlo(
                lambda size, *, rng, w=place, s=sign: (halts(size, rng=rng) == w) == (s > 0),
                float(chance if sign > 0 else 1 - chance),
                draws=100_000,
                claim=f"halts at {place + 1} no {'more' if sign > 0 else 'less'} often than by law",
                twin=None,
            )
    wrong = places(law_at(2.0))
    place = int(np.argmax(wrong - places(exact)))
    ledger.monte_carlo(
        lambda size, *, rng: halts(size, rng=rng) == place,
        float(places(exact)[place]),
        draws=100_000,
        claim="and would not with half the noise",
        twin=lambda size, *, rng: halts(size, rng=rng, factor=2.0) == place,
    )
    ledger.note(
        "Laplace(2 Delta / epsilon) on the threshold, Laplace(4 Delta / epsilon) on queries."
    )


@statement("gm.lemma2")
def above_threshold_guarantees(ledger):
    def loss(queries, moves, epsilon, factor=1.0):
        left = halted_law(queries, 0.0, epsilon * factor, 1.0)
        right = halted_law(queries + moves, 0.0, epsilon * factor, 1.0)
        return float(np.abs(np.log(left) - np.log(right)).max()), epsilon

    boxes = [
        Box(
            queries=Array(Interval(-30.0, 30.0), (t,)),
            moves=Array(Interval(-1.0, 1.0), (t,)),
            epsilon=Interval(0.05, 1.0),
        )
        for t in (1, 2, 4)
    ]
    ledger.falsify(
        boxes,
        loss,
        claim="(epsilon, 0)-DP, from exact laws",
        examples=60,
        extremal=[
            {
                "queries": np.array([low] * 100 + [last]),
                "moves": np.array([1.0] * 100 + [-1.0]),
                "epsilon": 1.0,
            }
            for low in (-20.0, -10.0)
            for last in (-10.0, 0.0)
        ],
        tolerance=1e-6,
        twin=lambda queries, moves, epsilon: loss(queries, moves, epsilon, 2.0),
    )

    nodes = (np.arange(4000) + 0.5) / 4000
    noise = np.sign(nodes - 0.5) * -np.log1p(-2 * np.abs(nodes - 0.5))  # of scale 1

    def inaccurate(t, gamma, delta_, epsilon, constant=8.0):
        """Chance that one of t queries at tau - alpha passes, or one at tau + alpha does not."""
        alpha = constant * delta_ * math.log(2 * t / gamma) / epsilon
        level, scale = 2 * delta_ / epsilon * noise, 4 * delta_ / epsilon

        def below(x):
            return np.where(x < 0, np.exp(x / scale) / 2, 1 - np.exp(-np.abs(x) / scale) / 2)

        passes = 1 - (below(alpha + level) ** t).mean()
        misses = below(level - alpha).mean()
        return max(passes, misses), gamma

    ledger.falsify(
        Box(
            t=Whole(1, 1000),
            gamma=Interval(1e-2, 0.99, log=True),
            delta_=Interval(0.1, 10.0, log=True),
            epsilon=EPSILONS,
        ),
        inaccurate,
        claim="accuracy, on the datasets that are hardest for it",
        extremal=[{"t": 1, "gamma": 0.99, "delta_": 1.0, "epsilon": 1.0}],
        twin=lambda **case: inaccurate(**case, constant=3.0),
    )


# --- Renyi divergences ---


def normal(center):
    return lambda x: math.exp(-((x - center) ** 2) / 2) / math.sqrt(2 * math.pi)


def gaussian_renyi(alpha, shift):
    """D_alpha of N(0, 1) against N(shift, 1), from its definition, on a fine grid."""
    x = np.linspace(-40.0, 40.0, 400_001)
    log_p, log_q = -(x**2) / 2, -((x - shift) ** 2) / 2
    log_terms = alpha * log_p + (1 - alpha) * log_q - math.log(2 * math.pi) / 2
    top = log_terms.max()
    return (top + math.log(np.exp(log_terms - top).sum() * (x[1] - x[0]))) / (alpha - 1)


@statement("gm.def2")
def renyi_privacy(ledger):
    ledger.identity(
        [{"alpha": a, "shift": s} for a in (1.5, 2.0, 4.0, 8.0) for s in (0.3, 1.0, 2.5)],
        lambda alpha, shift: (gaussian_renyi(alpha, shift), alpha * shift**2 / 2),
        claim="the definition, integrated, against the closed form of Gaussians",
        method=Method.NUMERIC,
        tolerance=1e-8,
    )
    ledger.note(
        "Definition 2 takes alpha >= 1, but D_alpha is defined for alpha > 1 only: at 1 its limit, "
        "the Kullback-Leibler divergence, is meant. (alpha, rho)-RDP here bounds by alpha rho, "
        "not by rho as in Mironov (2017)."
    )


def positive_laws():
    return strategies.distributions(k=3).map(lambda p: (p + 0.01) / (1 + 0.01 * len(p)))


@statement("gm.fact4.1")
def renyi_composition(ledger):
    pairs = st.tuples(positive_laws(), positive_laws())
    alphas = st.sampled_from([1.1, 2.0, 5.0, 20.0])

    def sides(case):
        alpha, (p, q), seconds = case
        joint_p = np.concatenate([p[i] * seconds[i][0] for i in range(3)])
        joint_q = np.concatenate([q[i] * seconds[i][1] for i in range(3)])
        parts = [renyi_divergence(a, b, alpha) for a, b in seconds]
        return (
            renyi_divergence(joint_p, joint_q, alpha),
            renyi_divergence(p, q, alpha) + max(parts) + ROUNDING,
        )

    def average(case):
        alpha, (p, q), seconds = case
        lhs, _ = sides(case)
        parts = [renyi_divergence(a, b, alpha) for a, b in seconds]
        return lhs, renyi_divergence(p, q, alpha) + float(p @ parts) + ROUNDING

    ledger.falsify(
        st.tuples(alphas, pairs, st.tuples(pairs, pairs, pairs)),
        sides,
        claim="the second mechanism may depend on the first output",
        twin=average,
    )


@statement("gm.fact4.2")
def renyi_to_approximate(ledger):
    def sides(case, factor=1.0):
        alpha, (p, q), delta = case
        bound = renyi_divergence(p, q, alpha) + factor * math.log(1 / delta) / (alpha - 1)
        return hockey_stick(p, q, bound), delta

    cases = st.tuples(
        st.floats(1.01, 50.0),
        st.tuples(strategies.distributions(k=3), positive_laws()),
        st.floats(1e-9, 0.999),
    )
    ledger.falsify(cases, sides, claim="finite laws", twin=lambda case: sides(case, 0.1))

    def gaussian(rho, alpha, delta):
        epsilon = alpha * rho + math.log(1 / delta) / (alpha - 1)
        return float(oracles.gaussian(math.sqrt(2 * rho), 1.0).delta(epsilon)), delta

    ledger.falsify(
        Box(
            rho=Interval(1e-4, 10.0, log=True),
            alpha=Interval(1.001, 1000.0, log=True),
            delta=Interval(1e-12, 0.999, log=True),
        ),
        gaussian,
        claim="Gaussian mechanisms",
        twin=None,
    )
    ledger.note("Needs alpha > 1; at alpha = 1, which Definition 2 allows, it divides by 0.")


@statement("gm.fact4.3")
def gaussian_renyi_privacy(ledger):
    ledger.identity(
        [
            {"alpha": a, "shift": s, "sigma": sigma}
            for a in (1.5, 3.0)
            for s in (0.5, 1.0)
            for sigma in (0.5, 2.0)
        ],
        lambda alpha, shift, sigma: (
            gaussian_renyi(alpha, shift / sigma) / alpha,
            shift**2 / (2 * sigma**2),
        ),
        method=Method.NUMERIC,
        tolerance=1e-8,
    )
