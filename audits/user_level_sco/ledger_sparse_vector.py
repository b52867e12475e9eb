"""User-level DP-SCO: AboveThreshold and the sparse vector technique, Appendix A.1."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.stats import nbinom

from algorithms.common import charging
from algorithms.common.sparse_vector import (
    above_threshold,
    first_above_threshold,
    fixed_threshold_sparse_vector,
)
from audits.geometric_median.ledger_privacy import NODES, WEIGHTS, laplace_tail
from audits.user_level_sco import derived, transcribed
from audits.user_level_sco.conventions import DELTA, EPSILON
from audits.user_level_sco.small_runs import Silent
from dpaudit import ApproxDP, NeighborPair, PureDP, Relation
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method
from dpaudit.stats import oracles
from mutants.sparse_vector import (
    above_threshold_exact_threshold,
    above_threshold_never_halts,
    fixed_threshold_sparse_vector_without_cutoff,
)

WITHIN = Relation.WITHIN_SENSITIVITY
STREAM = {"queries": Array(Interval(-20.0, 20.0), ("t",)), "t": Choice((1, 2, 5))}
STREAM |= {"epsilon": Interval(0.1, 1.0), "seed": Integer(0, 2**32)}
STREAM |= {"sensitivity": Choice(({}, {"sensitivity": 1.0}, {"sensitivity": 2.5}))}


TIES = [{"queries": queries} for queries in ([2.0, 2.0, 2.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0])]


def padded(runs, length):
    """Return the answers of several runs; the number 9 marks queries that are not asked."""
    return np.array([answers + [9.0] * (length - len(answers)) for answers in runs])


SURVIVORS = (
    "No pair reveals all mutants. Ten queries that fall reveal the noise of the threshold. Two "
    "queries, of which one rises, reveal the noise of the queries. Four low queries before four "
    "high ones reveal the halt. A half of either noise matters only in events that are too rare "
    "to draw. The exact distributions reveal even a tenth less."
)


# --- AboveThreshold ---


@statement("sco2.alg3")
def above_threshold_lines(ledger):
    """AboveThreshold takes a dataset, a threshold Delta and epsilon, subtracts Lap(2/epsilon) from
    Delta once, adds Lap(4/epsilon) to each query q_i(D), i = 1, ..., T, answers top while the noisy
    query is not below the noisy threshold, and at the first that is below answers bottom and halts.

    From the same random numbers, each run of the implementation gives the answers of the printed
    lines. The test prints q_t instead of q_i. The pseudocode does not print the sensitivity. The
    scales 2 / epsilon and 4 / epsilon must be multiplied by the sensitivity. The algorithm halts at
    the first query below the threshold. The algorithm is the mirror image of Dwork and Roth's
    algorithm. The behaviour of the algorithm is the opposite of the algorithm's name.
    """
    domain = {**STREAM, "level": Interval(-9.0, 9.0), "first": 1.0, "each": 1.0, "late": 0}

    @ledger.identity("noise of the threshold", mutant={"first": 0.5}, **domain)
    @ledger.identity("noise of the queries", mutant={"each": 0.5}, **domain)
    @ledger.identity("the halt", mutant={"late": 1}, **domain)
    def answers(queries, level, epsilon, sensitivity, seed, first, each, late):
        """Multiply the noise by the sensitivity. The factors make mutants."""
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        options = {"threshold": level, "epsilon": epsilon} | sensitivity
        ran = above_threshold(queries, 9, **options, rng=rngs[0])
        units = [first * rngs[1].laplace(size=(9, 1))]
        units += [each * rngs[1].laplace(size=(9, len(queries)))]
        own = epsilon / sensitivity.get("sensitivity", 1.0)
        lines = [
            transcribed.above_threshold(queries, level, own, laplace)[: len(queries) - late]
            for laplace in transcribed.streams(np.hstack(units))
        ]
        return np.nan_to_num(ran, nan=9.0), padded(lines, len(queries))

    @ledger.identity(
        "the algorithm of Dwork and Roth, which is the mirror image", mutant={"each": 0.5},
        factor=Choice((None, 1.5)), **domain,
    )  # fmt: skip
    def mirrored(queries, level, epsilon, sensitivity, seed, factor, first, each, late):
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        options = {"threshold": level, "epsilon": epsilon} | sensitivity
        options |= {"noise_multiplier": factor} if factor else {}
        ran = first_above_threshold(queries, 9, **options, rng=rngs[0])
        units = [first * rngs[1].laplace(size=(9, 1))]
        units += [each * rngs[1].laplace(size=(9, len(queries)))]
        own = epsilon / sensitivity.get("sensitivity", 1.0) / (factor or 1.0)
        lines = [
            transcribed.dwork_roth(queries, level, own, laplace)
            for laplace in transcribed.streams(np.hstack(units))
        ]
        return np.nan_to_num(ran, nan=9.0), padded(lines, len(queries))

    @ledger.identity("without noise, where queries equal the threshold", cases=TIES, scale=1.0,
                     mutant={"scale": 0.5})  # fmt: skip
    def ties(queries, scale):
        found = [
            algorithm(queries, 1, threshold=2.0, epsilon=1.0, rng=Silent())[0]
            for algorithm in (above_threshold, first_above_threshold)
        ]
        lines = [
            algorithm(scale * np.array(queries), 2.0, 1.0, lambda noise: 0.0)
            for algorithm in (transcribed.above_threshold, transcribed.dwork_roth)
        ]
        return np.nan_to_num(found, nan=9.0), padded(lines, len(queries))


@statement("sco2.lemma17")
def above_threshold_guarantees(ledger):
    """AboveThreshold is (epsilon, 0)-DP. Let alpha = 8 log(2T/gamma)/epsilon. For any T queries of
    sensitivity 1 it halts at a time k in [T + 1] such that, with probability at least 1 - gamma,
    a_t = top and q_t(D) >= Delta - alpha for all t < k, and a_k = bottom and q_k(D) <= Delta +
    alpha, or k = T + 1.

    For queries of sensitivity 1, privacy is tight in each of the two noises. If either noise is a
    tenth smaller, privacy fails. In alpha, the factor 8 can be replaced by 4 if gamma / 3 replaces
    gamma. The factor 3.6 is not enough. The paper states sensitivity 1 for the accuracy, but not
    for the privacy. The text "is a query above the threshold" describes Dwork and Roth's
    algorithm.
    """

    def rising(high, last):  # 100 high queries that fall, and one that rises
        given = {"queries": np.r_[np.full(100, high), last], "moves": np.r_[-np.ones(100), 1.0]}
        return {**given, "epsilon": 1.0}

    worst = [rising(high, last) for high in (10.0, 5.0) for last in (10.0, 0.0)]
    scales = {"threshold": 1.0, "query": 1.0, "tolerance": 1e-6, "end_to_end": True}
    domain = {"queries": Array(Interval(-30.0, 30.0), ("t",)), "t": Choice((1, 2, 4))}
    domain |= {"moves": Array(Interval(-1.0, 1.0), ("t",)), "epsilon": Interval(0.05, 1.0)}
    domain |= {"extremal": worst, "examples": ledger.examples // 10}

    @ledger.sweep("extremal", cases=worst, mutant={"query": 0.9}, method=Method.NUMERIC, **scales)
    @ledger.falsify("exact distributions", mutant={"threshold": 0.9}, **domain, **scales)
    def loss(queries, moves, epsilon, threshold, query):
        noises = {"threshold_scale": 2 * threshold / epsilon, "query_scale": 4 * query / epsilon}
        noises |= {"thresholds": 0.0, "cutoff": 1, "halt_on": "no"}
        p, q = (
            oracles.sparse_vector_patterns(x, **noises).probabilities
            for x in (queries, queries + moves)
        )
        return float(np.abs(np.log(p) - np.log(q)).max()), epsilon

    def halts(queries, size, *, rng, answer=above_threshold):
        """Return the number of answers "top".

        This number determines all answers.
        """
        answers = answer(queries, size, threshold=0.0, epsilon=2.0, rng=rng)
        return (answers == 1).sum(axis=1).astype(float)

    def whole(queries, size, *, rng):
        """Return the whole pattern of answers of an algorithm that does not halt."""
        answers = above_threshold_never_halts(queries, size, threshold=0.0, epsilon=2.0, rng=rng)
        return answers @ 2.0 ** np.arange(len(queries))

    exact_threshold = partial(halts, answer=above_threshold_exact_threshold)
    for left, right, draws, others in (
        (np.full(10, 1.0), np.zeros(10), 48_000, [exact_threshold]),
        ([0.0, 1.0], [1.0, 0.0], 3_000, []),
        (np.r_[-np.ones(4), np.ones(4)], np.zeros(8), 24_000, [whole]),
    ):
        ledger.audit(
            halts, PureDP(2.0, WITHIN), NeighborPair(left, right, relation=WITHIN), draws=draws,
            mutants=others,
            survivors=SURVIVORS,
        )  # fmt: skip

    domain = {"t": Integer(1, 1000), "gamma": Interval(1e-6, 0.999, log=True), "union": True}
    ends = ((1, 0.999), (2, 0.99), (1000, 0.3), (1, 1e-6), (1000, 1e-6))
    domain["extremal"] = [{"t": t, "gamma": gamma} for t, gamma in ends]

    @ledger.falsify("accuracy", constant=8.0, mutant={"union": False}, **domain)
    @ledger.sharper("4 for 8 in alpha").falsify(constant=4.0, mutant={"constant": 3.6}, **domain)
    def inaccurate(t, gamma, constant, union):
        """Return the probability of a wrong answer on the hardest data.

        The data mirror the data of gm.lemma2. All queries except the last are at Delta + alpha. The
        last query is at Delta + alpha or Delta - alpha. A query between these two values cannot be
        answered wrongly. After a query at Delta - alpha, another query is asked only if there was a
        mistake.
        """
        alpha = constant * math.log(2 * (t if union else 1) / gamma)
        top, bottom = 1 - laplace_tail(2 * NODES + alpha, 4), laplace_tail(2 * NODES - alpha, 4)
        return max(float(WEIGHTS @ (1 - top ** (t - 1) * x)) for x in (top, bottom)), gamma


# --- the sparse vector technique ---


@statement("sco2.alg4")
def target_charging_lines(ledger):
    """SVT with target privacy charging takes a cutoff point c and epsilon, adds Lap(1/epsilon) to
    each query q_i(D), compares it with the threshold Delta_i, to which no noise is added, answers
    top if it is at least Delta_i and else bottom, and stops after the c-th top.

    From the same random numbers, each run of the implementation gives the answers of the printed
    lines. The test prints q_t instead of q_i. The "privacy parameter epsilon" describes one answer
    at sensitivity 1, not the whole run. Algorithm 2 is the mirror image, because Algorithm 2 counts
    the queries below the threshold.
    """
    domain = {**STREAM, "level": Array(Interval(-9.0, 9.0), ("t",)), "cutoff": Integer(1, 3)}
    domain |= {"scale": 1.0, "late": 0}

    @ledger.identity("noise of the queries", mutant={"scale": 0.5}, **domain)
    @ledger.identity("the break", mutant={"late": 1}, **domain)
    def answers(queries, level, cutoff, epsilon, sensitivity, seed, scale, late):
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        options = {"thresholds": level, "cutoff": cutoff, "epsilon": epsilon} | sensitivity
        ran = fixed_threshold_sparse_vector(queries, 9, **options, rng=rngs[0])
        units = scale * rngs[1].laplace(size=(9, len(queries)))
        own = epsilon / sensitivity.get("sensitivity", 1.0)
        lines = [
            transcribed.target_charging(queries, level, cutoff + late, own, laplace)
            for laplace in transcribed.streams(units)
        ]
        return np.nan_to_num(ran, nan=9.0), padded(lines, len(queries))

    @ledger.identity("without noise, where queries equal the threshold", cases=TIES, scale=1.0,
                     cutoff=[1, 2], mutant={"scale": 0.5})  # fmt: skip
    def ties(queries, cutoff, scale):
        run = {"thresholds": 2.0, "cutoff": cutoff, "epsilon": 1.0, "rng": Silent()}
        found = fixed_threshold_sparse_vector(queries, 1, **run)
        levels = [2.0] * len(queries)
        lines = transcribed.target_charging(
            scale * np.array(queries), levels, cutoff, 1.0, lambda noise: 0.0
        )
        return np.nan_to_num(found, nan=9.0), padded([lines], len(queries))


def stopped(cutoff, epsilon, gap, loss):
    """Return the exact delta of Algorithm 4 at epsilon = `loss`, on equal queries.

    The queries are `gap` above the threshold. On the neighbouring dataset, the queries are lower by
    1. Only the number of bottoms before the c-th top matters.
    """
    chances = [float(laplace_tail(-x, 1 / epsilon)) for x in (gap, gap - 1)]
    k = np.arange(nbinom.isf(1e-15, cutoff, min(chances)) + 2)
    logs = [nbinom.logpmf(k, cutoff, chance) for chance in chances]
    ways = ((p, q) for p, q in (logs, logs[::-1]))
    return max(float(-np.exp(p) @ np.expm1(np.minimum(loss + q - p, 0))) for p, q in ways)


@statement("sco2.lemma18", expected="refuted")
def target_charging(ledger):
    """Assume epsilon <= 1. Then Algorithm 4 is (O(sqrt(c log(1/delta)) epsilon), 2^(-Omega(c)) +
    delta)-DP for every delta in (0, 1).

    The lemma fails for all constants. On equal queries at their thresholds, the mean of the privacy
    loss is c times a relative entropy. This mean is about c epsilon^2. For fixed epsilon and delta,
    no bound of the form O(sqrt(c)) holds for this mean. Let the constant be K in O and 1 / K in
    Omega. Then the lemma fails if c is above the order of K^2 log(1/delta) / epsilon^2. If c
    epsilon^2 <= log(1/delta), the term with c epsilon^2 is the smaller term. For such c, the search
    found no counterexample for the constants 6 and 1. The constants 5 and 1 fail. There is no proof
    that the constants 6 and 1 are enough. Algorithm 2 has c / sigma^2 <= epsilon^2 / (512
    log(1/delta)). The paper does not print the sensitivity 1.
    """
    words = {"lhs": "exact delta at K sqrt(c log(1/delta)) eps, c = 12 K^2 log(1/delta) / eps^2"}
    words |= {"rhs": "2^(-c / K) + delta"}

    @ledger.sweep("K = 1", constant=1.0, epsilon=1.0, delta=0.5, **words)
    @ledger.sweep("K = 10", constant=10.0, epsilon=1.0, delta=0.5, **words)
    @ledger.sweep("K = 3, smaller parameters", constant=3.0, epsilon=0.5, delta=1e-6, **words)
    @ledger.sweep("K = 40", constant=40.0, epsilon=1.0, delta=0.5, **words)
    def rounds(constant, epsilon, delta):
        c = math.ceil(12 * constant**2 * math.log(1 / delta) / epsilon**2)
        loss = constant * math.sqrt(c * math.log(1 / delta)) * epsilon
        k = np.arange(6 * c)  # number of bottoms before the c-th top
        p, q = (nbinom.logpmf(k, c, top) for top in (1 / 2, 1 - math.exp(-epsilon) / 2))
        delta_at_loss = -np.exp(p) @ np.expm1(np.minimum(loss + q - p, 0))
        return delta_at_loss, 2 ** (-c / constant) + delta

    repair = ledger.repair("the same if c epsilon^2 <= log(1/delta)")
    domain = {"delta": DELTA, "share": Interval(0.05, 1.0), "tail": 1.0, "constant": 6.0}

    @repair.falsify(
        "6 and 1 for the constants, equal queries, exactly", cutoff=Integer(1, 100),
        at=Interval(-3.0, 3.0), mutant={"constant": 4.9}, **domain,
        extremal=[{"cutoff": 30, "at": 0.0, "share": 1.0, "delta": 1e-9}],
    )  # fmt: skip
    def equal(cutoff, at, share, delta, tail, constant):
        epsilon = share * min(1.0, math.sqrt(math.log(1 / delta) / cutoff))
        loss = constant * math.sqrt(cutoff * math.log(1 / delta)) * epsilon
        return stopped(cutoff, epsilon, at / epsilon, loss), tail * 2.0**-cutoff + delta

    @repair.falsify(
        "any queries, exactly", queries=Array(Interval(-3.0, 3.0), ("t",)), t=Choice((2, 4, 6)),
        moves=Array(Interval(-1.0, 1.0), ("t",)), cutoff=Integer(1, 3),
        mutant={"constant": 0.0, "tail": 0.0}, examples=ledger.examples // 3, **domain,
    )  # fmt: skip
    def uneven(queries, moves, cutoff, share, delta, tail, constant):
        epsilon = share * min(1.0, math.sqrt(math.log(1 / delta) / cutoff))
        loss = constant * math.sqrt(cutoff * math.log(1 / delta)) * epsilon
        pair = queries / epsilon, queries / epsilon + moves
        run = {"thresholds": 0.0, "cutoff": cutoff, "epsilon": epsilon}
        found = oracles.fixed_threshold_sparse_vector(*pair, **run).delta(loss)
        return float(found), tail * 2.0**-cutoff + delta

    cutoff, epsilon, delta = 8, 0.25, 1e-3
    options = {"thresholds": 0.0, "cutoff": cutoff, "epsilon": epsilon}
    claim = 2 * math.sqrt(cutoff * math.log(1 / delta)) * epsilon, 2.0**-cutoff + delta
    pair = NeighborPair(np.full(100, 0.25), np.full(100, -0.75), relation=WITHIN)
    repair.audit(
        partial(fixed_threshold_sparse_vector, **options), ApproxDP(*claim, WITHIN), pair,
        draws=8_000, mutants=[partial(fixed_threshold_sparse_vector_without_cutoff, **options)],
        survivors="By an exact computation, 2 is enough here in place of 6, and .9 of the delta "
                  "is used.",
    )  # fmt: skip

    ledger.consequence(
        "For a large cutoff, the privacy loss that Lemma 18 promises is too small by a factor of "
        "about epsilon sqrt(c / log(1/delta)). Algorithm 2 adds enough noise for the repair.",
        harm="privacy",
    )


@statement("sco2.lemma18.use")
def cost_of_filtering(ledger):
    """In the application of Lemma 18 to the filtering decisions across iterations, the cutoff is c
    = O(log(nm/delta)/epsilon) and the queries get Lap(2 sigma) noise with sigma =
    O(sqrt(log(nm/delta))/epsilon^(3/2)); so the cumulative privacy cost is Otilde(sqrt(c)/sigma) =
    Otilde(epsilon).

    The sigma of this statement is smaller than the sigma of Algorithm 2 by the factor
    sqrt(log(1/delta)), which Otilde hides. Take the constants of Algorithm 2, and the sensitivity 2
    of Lemma 11. At delta / 4, an exact computation shows a privacy loss of less than epsilon
    sqrt(log(1/delta)) / 4 for the sigma of this statement. At delta = 1e-12, the loss exceeds
    epsilon / 4. So the hidden logarithm is needed. For the sigma of Algorithm 2, the loss is .09
    epsilon. A third of either noise is too little. The cutoff c satisfies the condition that is
    missing in Lemma 18.
    """
    domain = {"epsilon": EPSILON, "items": Interval(4.0, 1e12, log=True), "delta": DELTA}

    @ledger.identity("sqrt(c) / sigma, constants 1", power=1.5, mutant={"power": 1.0}, **domain)
    def arithmetic(epsilon, items, delta, power):
        log = math.log(items / delta)
        return math.sqrt(log / epsilon) / (math.sqrt(log) / epsilon**power), epsilon

    @ledger.identity(
        "the account with explicit constants", targets=Integer(1, 6), times=1.0,
        epsilon0=Interval(0.02, 1.0), loss=Interval(0.0, 4.0), mutant={"times": 1.1}, floor=1e-12,
        tolerance=1e-6, examples=ledger.examples // 6,
    )  # fmt: skip
    def account(targets, epsilon0, loss, times):
        parts = [10.0**-i for i in range(2, 16)]
        calls = [derived.fewest_calls(targets, epsilon0, part) for part in parts]
        bounds = [
            part + derived.composed(loss, k, epsilon0, 0.0, 0.0)
            for part, k in zip(parts, calls, strict=True)
        ]
        found = charging.stream_profile(loss, targets=targets, epsilon0=epsilon0)
        return found, times * min(1.0, *bounds)

    @ledger.identity("a budget that is spent, or too many answers", one=1.0, mutant={"one": 0.9},
                     epsilon0=[5.0, 9.0])  # fmt: skip
    def exhausted(epsilon0, one):
        left = charging.largest_mu(1.0, 0.1, calls=1, epsilon0=epsilon0, epsilon1=0.0)
        return [left + 1, charging.composed_profile(9.0, calls=10**7 + 1, epsilon0=1e-9)], [one] * 2

    exact = {**domain, "epsilon": Interval(0.02, 1.0, log=True), "at": Interval(-1.5, 2.5)}
    exact |= {"extremal": [{"epsilon": 1.0, "items": 4.0, "delta": 1e-12, "at": 0.0}]}
    exact |= {"noise": 1.0, "power": 0.5, "examples": ledger.examples // 6}

    @ledger.falsify("the noise, on equal queries, exactly", mutant={"noise": 0.33}, **exact)
    @ledger.falsify("the hidden logarithm", mutant={"power": 0.0}, **exact)
    def as_stated(epsilon, items, delta, at, noise, power):
        """Take the constants of Algorithm 2, and the sigma of the statement.

        The loss epsilon sqrt(log(1/delta)) / 4 is Otilde(epsilon).
        """
        log = math.log(items / delta)
        sigma = noise * 4 * math.sqrt(320 * log) / epsilon**1.5
        each, own = 2 / (2 * sigma), max(1.0, math.log(1 / delta))
        allowed = epsilon / 4 * own**power
        return stopped(math.ceil(10 * log / epsilon), each, at / each, allowed), delta / 4

    @ledger.sharper("epsilon / 4, for the sigma of Algorithm 2").falsify(
        "on equal queries, exactly", mutant={"noise": 0.33}, **{**exact, "power": 1.0}
    )
    def spent(epsilon, items, delta, at, noise, power):
        c = 10 * math.log(items / delta) / epsilon
        sigma = noise * transcribed.sigma_of_scores(c, epsilon, delta)
        each = 2 / (2 * sigma)  # epsilon of one answer, at sensitivity 2
        return stopped(math.ceil(c), each, at / each, power * epsilon / 4), delta / 4

    @ledger.identity("c and sigma of Algorithm 2 have these orders", power=0.5, mutant={"power": 1},
                     **domain)  # fmt: skip
    def orders(epsilon, items, delta, power):
        log = math.log(items / delta)
        c = transcribed.euclidean(items, 1, 1, epsilon, delta, 1.0, 1.0).c
        sigma = transcribed.sigma_of_scores(c, epsilon, delta)
        root = transcribed.log(1 / delta) ** power
        return [c, sigma], [10 * log / epsilon, 4 * math.sqrt(320 * log) * root / epsilon**1.5]

    @ledger.falsify("c / sigma^2 <= log(1/delta)", least=512.0, mutant={"least": 0.5}, **domain)
    def condition(epsilon, items, delta, least):
        c = 10 * math.log(items / delta) / epsilon
        square = least * c * math.log(1 / delta) / epsilon**2
        return c / square, math.log(1 / delta)
