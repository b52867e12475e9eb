"""Private geometric median: Section 3.1, FastRadius and its privacy."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.special import betaln
from scipy.stats import binom

from algorithms.geometric_median import _points
from algorithms.geometric_median.radius import (
    fast_radius,
    fast_radius_samples,
    radius_grid,
    radius_query,
)
from audits.geometric_median.ledger_privacy import NODES, WEIGHTS, laplace_tail
from dpaudit.ledger import Array, Domain, Method, statement
from dpaudit.search import Choice, Integer, Interval
from dpaudit.stats import oracles

EPSILONS = Interval(1e-3, 1.0, log=True)
DELTAS = Interval(1e-12, 0.999, log=True)
RADII = Integer(1, 400)  # of the grid: R / r up to 2^400
UNIT = Interval(-1.0, 1.0)


# --- exact distributions ---


def log_tail(hits, draws, rate):
    """Return log P[Bin(draws, rate) > hits], for hits from the mean to draws - 1: no underflow."""
    least = hits + 1
    first = -betaln(least + 1, draws - least + 1) - math.log(draws + 1)
    first += least * math.log(rate) + (draws - least) * math.log1p(-rate)
    term = total = 1.0
    while term > 1e-17 * total and least < draws:
        term *= (draws - least) / (least + 1) * rate / (1 - rate)
        total, least = total + term, least + 1
    return first + math.log(total)


def distribution_of_hits(neighbours, n, k):
    """All samples that hit, over all points: point i has neighbours[i] of n points."""
    distribution = np.array([1.0])
    for count, points in zip(*np.unique(neighbours, return_counts=True), strict=True):
        distribution = np.convolve(
            distribution, binom.pmf(np.arange(points * k + 1), points * k, count / n)
        )
    return distribution


def distribution_of_radius(points, radii, k, epsilon):
    """Probability of each radius, and of R at last: lines 3 to 17 of Algorithm 2."""
    n = len(points)
    counts = np.sort(_points.neighbour_counts(points, radii), axis=0).T
    threshold = 0.775 * n + 6 / epsilon * NODES
    running, distribution, known = np.ones(len(NODES)), [], {}
    for neighbours in counts:
        if (key := tuple(neighbours)) not in known:
            hits = distribution_of_hits(neighbours, n, k)
            above = threshold[:, None] - np.arange(len(hits)) / k
            known[key] = laplace_tail(above, 12 / epsilon) @ hits
        distribution.append(float(WEIGHTS @ (running * known[key])))
        running = running * (1 - known[key])
    return np.array([*distribution, float(WEIGHTS @ running)])


CLOUD = np.array([[0.0], [0.2], [0.5], [1.0]])
SEARCH = {"min_radius": 0.15, "max_radius": 1.0, "delta": 0.5}


@statement("gm.alg2")
def fast_radius_as_printed(ledger):
    ledger.identity(
        Domain(ratio=Interval(1.001, 1e100, log=True), delta=DELTAS),
        lambda ratio, delta: (
            (t := radius_grid(1.0, ratio).size, fast_radius_samples(t, delta)),
            (u := math.ceil(math.log2(ratio)), math.ceil(3 * math.log(4 * u / delta))),
        ),
        claim="T = ceil(log2(R / r)), k = 3 log(4 T / delta) rounded up",
        extremal=[{"ratio": 2.0**t, "delta": 0.5} for t in (1, 2, 300)],
        mutant=lambda ratio, delta: (
            radius_grid(1.0, ratio).size,
            math.floor(math.log2(ratio)) + 1,
        ),
    )
    radii = radius_grid(SEARCH["min_radius"], SEARCH["max_radius"])
    k = fast_radius_samples(len(radii), SEARCH["delta"])
    outputs = [*radii, 1.0]

    def returns(size, *, rng, radius, sign=True, epsilon=20.0, route="counts"):
        found = fast_radius(CLOUD, size, **SEARCH, epsilon=epsilon, route=route, rng=rng)
        return (found == radius) == sign

    distributions = {
        epsilon: distribution_of_radius(CLOUD, radii, k, epsilon) for epsilon in (20.0, 10.0, 40.0)
    }
    for place, (radius, probability) in enumerate(zip(outputs, distributions[20.0], strict=True)):
        for sign in (True, False):
            inequality = {
                e: distribution[place] if sign else -distribution[place]
                for e, distribution in distributions.items()
            }
            event = partial(returns, radius=radius, sign=sign)
            ledger.monte_carlo(
                event,
                float(probability if sign else 1 - probability),
                draws=50_000,
                where={"radius": radius},
                claim=f"it returns {radius:g} {'no more' if sign else 'no less'} often than it may",
                mutant=partial(event, epsilon=max(inequality, key=inequality.get)),
            )
    likeliest = int(np.argmax(distributions[40.0] - distributions[20.0]))
    sampled = partial(returns, radius=outputs[likeliest], route="samples")
    ledger.monte_carlo(
        sampled,
        float(distributions[20.0][likeliest]),
        draws=2_000,
        claim="and with samples drawn instead of hits",
        mutant=partial(sampled, epsilon=40.0),
    )
    ledger.note(
        "k is no integer, but a product of k distributions needs one: rounded. Where r = R, T is 0 "
        "and k is 3 log 0. S^(i) on line 9 is S_t^(i) of line 8. Mutants have half or twice the "
        "noise."
    )


@statement("gm.alg2.inst")
def instance_of_above_threshold(ledger):
    """The distributions of Algorithm 2, and of Algorithm 1 on the same queries."""

    def above_threshold(queries, n, epsilon, sensitivity):
        distribution = oracles.sparse_vector_patterns(
            queries,
            thresholds=0.775 * n,
            threshold_scale=2 * sensitivity / epsilon,
            query_scale=4 * sensitivity / epsilon,
            cutoff=1,
        )
        found = np.zeros(len(queries) + 1)
        for pattern, probability in zip(
            distribution.patterns, distribution.probabilities, strict=True
        ):
            found[pattern.index(1) if 1 in pattern else -1] += probability
        return found

    def sure(n, steps, epsilon, sensitivity=3.0):
        """All points in one place: every query is n."""
        radii = 2.0 ** np.arange(steps)
        k = fast_radius_samples(steps, 0.5)
        distribution = distribution_of_radius(np.zeros((n, 1)), radii, k, epsilon)
        return distribution, above_threshold(np.full(steps, float(n)), n, epsilon, sensitivity)

    def random(n, steps, epsilon, sensitivity=3.0):
        """All points apart: every query is a binomial over k."""
        k = fast_radius_samples(steps, 0.5)
        distribution = distribution_of_radius(
            np.arange(n)[:, None] * 9.0, np.ones(steps), k, epsilon
        )
        probabilities = binom.pmf(np.arange(n * k + 1), n * k, 1 / n)
        mixed = sum(
            probability * above_threshold([hits / k], n, epsilon, sensitivity)
            for hits, probability in enumerate(probabilities)
            if probability > 1e-12
        )
        return distribution, mixed

    for claim, values, steps in (
        ("queries that are certain", sure, (1, 3)),
        ("a random query", random, (1,)),
    ):
        ledger.identity(
            [{"n": n, "steps": t, "epsilon": e} for n in (1, 4) for t in steps for e in (1.0, 8.0)],
            values,
            claim=claim,
            method=Method.NUMERIC,
            tolerance=1e-5,
            mutant=lambda f=values, **case: f(**case, sensitivity=2.0),
        )
    ledger.note(
        "Algorithm 1 asks for queries of sensitivity 3; these have it only while an index is "
        "sampled at most 2 k times, as the paper says, and up to n otherwise."
    )


# --- privacy ---


@statement("gm.lemma5.sens")
def sensitivity_of_a_query(ledger):
    def inequality(points, other, table, limit=2):
        n, k = len(points), table.shape[1]
        samples = np.minimum((table * n).astype(int), n - 1)
        if (samples[:-1] == n - 1).sum() > limit * k:
            return None
        replaced = points.copy()
        replaced[-1] = other
        found = abs(radius_query(points, samples, 1.0) - radius_query(replaced, samples, 1.0))
        return found, 3.0

    def star(n, k, copies=2):
        """So many k copies of the index n, spread over the others; none in its own row."""
        table = np.zeros((n, k))
        table[:-1].flat[: copies * k] = 1.0
        return {"points": np.zeros((n, 1)), "other": np.array([4.0]), "table": table}

    ledger.falsify(
        [
            Domain(
                points=Array(Interval(-2.0, 2.0), (n, 1)),
                other=Array(Interval(-4.0, 4.0), (1,)),
                table=Array(Interval(0.0, 1.0), (n, k)),
            )
            for n, k in ((1, 3), (2, 3), (3, 2), (4, 3), (6, 2))
        ],
        inequality,
        extremal=[star(4, 3), star(3, 2), star(4, 3, copies=3)],
        mutant=lambda **case: inequality(**case, limit=3),
    )
    ledger.note("3 is sharp from n = 3 on; for n = 2 it is 2, for n = 1 it is 0.")


@statement("gm.lemma5")
def privacy_of_fast_radius(ledger):
    def too_many_copies(n, t, delta, constant=3.0, limit=2):
        """Both inequality as -log: the probability itself is below the smallest float."""
        level = math.log(4 * t / delta)
        k = math.ceil(constant * level)
        return level, -log_tail(limit * k, (n - 1) * k, 1 / n)

    smallest = {"n": 10**9, "t": 1, "delta": 1e-300}
    domain = Domain(n=Integer(4, 10**9), t=RADII, delta=Interval(1e-300, 0.999, log=True))
    ledger.falsify(
        domain,
        too_many_copies,
        claim="the index n is sampled more than 2 k times with probability delta / (4 T), exactly",
        extremal=[{"n": 4, "t": 1, "delta": 0.999}, {"n": 10**9, "t": 1, "delta": 0.999}, smallest],
        mutant=lambda **case: too_many_copies(**case, limit=1),
    )
    ledger.falsify(
        domain,
        lambda **case: too_many_copies(**case, constant=2.6),
        claim="even with k = 2.6 log(4 T / delta)",
        extremal=[smallest],
        mutant=lambda **case: too_many_copies(**case, constant=2.5),
    )

    def chernoff(n, t, delta, e=None):
        k, e = math.ceil(3 * math.log(4 * t / delta)), e or (n + 1) / (n - 1)
        return math.log(4 * t / delta), e * e * k * (n - 1) / n / (2 + e)

    ledger.falsify(
        Domain(n=Integer(2, 10**9), t=RADII, delta=Interval(1e-300, 0.999, log=True)),
        chernoff,
        claim="Fact 1 at epsilon = (n + 1) / (n - 1), where the proof takes 1",
        extremal=[{"n": 2, "t": 1, "delta": 1e-6}],
        mutant=lambda **case: chernoff(**case, e=1.0),
    )

    def loss(places, other, doublings, epsilon, delta, needed=3.0):
        """Largest log ratio of distributions on neighbours, for noise of the given sensitivity."""
        points = places * 2.0**doublings
        replaced = points.copy()
        replaced[-1] = other * 2.0**doublings
        radii, k = radius_grid(1.0, 2.0**doublings), fast_radius_samples(doublings, delta)
        found, shifted = (
            distribution_of_radius(x, radii, k, 3 / needed * epsilon) for x in (points, replaced)
        )
        return float(np.abs(np.log(found) - np.log(shifted)).max()), epsilon

    crowd = np.zeros((40, 1))
    pulled = np.array([[0.0], [0.0], [0.0], [0.9], [0.9], [0.0]])
    ledger.falsify(
        [
            Domain(
                places=Array(UNIT, (n, 1)),
                other=Array(UNIT, (1,)),
                doublings=Choice((1, 4, 12)),
                epsilon=Interval(0.05, 1.0),
                delta=Interval(1e-4, 0.5, log=True),
            )
            for n in (2, 3, 6)
        ],
        loss,
        claim="exact distributions of Algorithm 2 on neighbours: no log ratio above epsilon",
        examples=ledger.examples // 5,
        extremal=[
            {
                "places": places,
                "other": np.array([x]),
                "doublings": 21,
                "epsilon": 1.0,
                "delta": 1e-4,
            }
            for places, x in ((crowd, 0.4), (crowd[:3], 0.4), (pulled, 0.45))
        ],
        mutant=lambda **case: loss(**case, needed=1.0),
    )
    ledger.note(
        "It is even (epsilon, delta / 4)-DP: the copies do not depend on the data, so Lemma 1, "
        "which makes delta of delta / 4, is not needed. The proof's Chernoff bound with epsilon = "
        "1 gives only exp(-k (n - 1) / (3 n)), more than delta / (4 T); (n + 1) / (n - 1) mends "
        "it. k = 2.6 log(4 T / delta) would do and 2.5 would not: the rate is 1 / (2 log 2 - 1) = "
        "2.59. For n <= 3 there are never more than 2 k copies. Exactly, the largest log "
        "ratio found is 0.49 epsilon (40 points in one place, one of them moved): replacing a "
        "point moves the mean of a query by less than 2, not by 3."
    )
