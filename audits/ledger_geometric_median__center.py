"""Private geometric median: Section 3.2, FastCenter."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.stats import binom, chi2

from algorithms.common.noise import bounded_laplace_delta
from algorithms.geometric_median import _points
from algorithms.geometric_median.center import (
    center_weights,
    fast_center,
    fast_center_samples,
    fast_center_sigma,
)
from algorithms.geometric_median.reference import geometric_median, quantile_radius
from dpaudit import ApproxDP, NeighborPair, oracles
from dpaudit.ledger import Array, Box, statement
from dpaudit.search import Interval, Whole

EPSILONS = Interval(1e-3, 1.0, log=True)
DELTAS = Interval(1e-12, 0.999, log=True)
USERS = Interval(1.0, 1e9, log=True)


def samples(n, delta, constant=600.0):
    return math.ceil(constant * math.log(18 * n / delta))


def weight(hits, k):
    return np.clip((hits - 0.5 * k) / (0.25 * k), 0.0, 1.0)


def bounded_laplace_tail(x, scale, delta):
    """P[xi > x], for x >= 0 and noise of the scale, bounded at scale log(24 / delta)."""
    end = delta / 24
    return max(math.exp(-x / scale) - end, 0.0) / (2 * (1 - end))


# --- the algorithm ---


@statement("gm.alg3")
def fast_center_as_printed(ledger):
    def scales(n, epsilon, delta):
        """Of Facts 2 and 3 at (epsilon / 2, delta / 6), for sensitivities 12 and 400 / n."""
        n = math.ceil(n)
        half, sixth = epsilon / 2, delta / 6
        return (
            np.array(
                [
                    fast_center_samples(n, delta),
                    fast_center_sigma(n, 1.0, epsilon, delta),
                    24 / epsilon * math.log(24 / delta),
                ]
            ),
            np.array(
                [
                    samples(n, delta),
                    2 * (400 / n) / half * math.sqrt(math.log(2 / sixth)),
                    12 / half * math.log(4 / sixth),
                ]
            ),
        )

    def relative(**case):
        found, wanted = scales(**case)
        return found / wanted, np.ones(3)

    ledger.identity(
        Box(n=USERS, epsilon=EPSILONS, delta=DELTAS),
        relative,
        claim="k = 600 log(18 n / delta) rounded up, 1600, 24: those of Facts 2 and 3",
    )
    ledger.identity(
        [{"hits": h} for h in range(9)],
        lambda hits: (
            center_weights([[0.0], [9.0]], np.array([[0] * hits + [1] * (8 - hits)] * 2), 1.0)[0],
            [0, 0, 0, 0, 0, 0.5, 1, 1, 1][hits],
        ),
        claim="the weights, for k = 8",
    )
    # All points in one place: Z = n, and only the noise is random.
    n, epsilon, delta, place = 200, 1.0, 0.5, np.array([1.0, -2.0, 5.0])
    sigma = fast_center_sigma(n, 1.0, epsilon, delta)
    passes = bounded_laplace_tail(24 * math.log(48) - 0.45 * n, 24.0, delta)
    middle = sigma**2 * chi2.ppf(0.5, 3)

    def ends(size, *, rng, event, noise=1.0):
        out = fast_center(
            np.tile(place, (n, 1)), size, radius=1.0, epsilon=epsilon, delta=delta,
            noise_multiplier=noise, rng=rng,
        )  # fmt: skip
        gave_up = (out == 0).all(axis=1)
        near = ((out - place) ** 2).sum(axis=1) <= middle
        return {"gives up": gave_up, "goes on": ~gave_up, "near": near & ~gave_up}[event]

    for event, chance in (("gives up", 1 - passes), ("goes on", passes), ("near", passes / 2)):
        ledger.monte_carlo(
            lambda size, *, rng, event=event: ends(size, rng=rng, event=event),
            chance,
            draws=20_000,
            claim=f"it {event} no more often than it may",
            twin=None
            if event == "gives up"
            else lambda size, *, rng, event=event: ends(size, rng=rng, event=event, noise=0.5),
        )
    ledger.note("k is no integer: it is rounded up. S^(i) on line 4 is S_i of line 3.")


# --- subsampled scores ---


def tails(n, delta, constant=600.0):
    """Chances that one score breaks (7) or (8): .75 to .7, .45 to .5, .55 to .6."""
    k = samples(n, delta, constant)
    return (
        binom.cdf(math.ceil(0.7 * k) - 1, k, 0.75),
        binom.sf(math.floor(0.5 * k), k, 0.45),
        binom.sf(math.floor(0.6 * k), k, 0.55),
    )


SCORES = Box(n=USERS, delta=DELTAS)


def inaccurate(n, delta, constant=600.0):
    """Chance that (7) fails for some point."""
    return n * max(tails(n, delta, constant)[:2]), delta / 18


@statement("gm.eq7")
def scores_are_accurate(ledger):
    ledger.falsify(
        SCORES,
        inaccurate,
        claim="exact binomial tails, over all points",
        extremal=[{"n": 1.0, "delta": 0.999}, {"n": 1e9, "delta": 1e-12}],
        twin=lambda **case: inaccurate(**case, constant=100.0),
    )
    ledger.falsify(
        SCORES,
        lambda **case: inaccurate(**case, constant=200.0),
        claim="even with k = 200 log(18 n / delta)",
        twin=None,
    )
    ledger.note("k = 200 log(18 n / delta) is enough, and 200 is sharp as n / delta grows.")


def clouds(sizes=(3, 4, 6), dimensions=(1, 2)):
    return [
        Box(places=Array(Interval(-6.0, 6.0), (m, d)), copies=Array(Interval(0.0, 1.0), (m,)))
        for m in sizes
        for d in dimensions
    ]


def split(places, copies, n):
    """Distinct places, and how many of n points lie in each."""
    times = np.floor(copies / max(float(copies.sum()), 1e-9) * n).astype(int)
    times[int(np.argmax(times))] += n - times.sum()
    return places[times > 0], times[times > 0]


def adjacent(places, radius=2.0):
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    return apart <= radius * (1 + 1e-12)


@statement("gm.lemma7")
def survivors_are_near(ledger):
    def around(places, copies):
        """Places, multiplicities and distances from the median, in units of r_hat = r^(.75)."""
        places, times = split(places, copies, 200)
        points = np.repeat(places, times, axis=0)
        middle = geometric_median(points).point
        radius = quantile_radius(points, 0.75, middle)
        if radius < 1e-6:
            return None
        return places / radius, times, np.linalg.norm(places - middle, axis=1) / radius

    def far(places, copies):
        if (found := around(places, copies)) is None:
            return None
        places, times, away = found
        score = adjacent(places) @ times / times.sum()
        return float(away[score > 0.45].max()), 3.0

    def score(places, copies):
        if (found := around(places, copies)) is None:
            return None
        places, times, away = found
        return 0.75 * times.sum(), float((adjacent(places) @ times)[away <= 1 + 1e-9].min())

    worst = {"places": np.array([[0.0], [1.0], [3.0]]), "copies": np.array([0.545, 0.205, 0.25])}
    ledger.falsify(
        clouds(), far, claim="a score above .45 k: within 3 r_hat", extremal=[worst], twin=0.9
    )
    ledger.falsify(
        clouds(), score, claim="within r^(.75): a score of .75 k at least", extremal=[worst]
    )
    ledger.falsify(
        SCORES,
        inaccurate,
        claim="(7) holds for all points, so that a weight is .8 or more where f* >= .75 k",
        twin=lambda **case: inaccurate(**case, constant=100.0),
    )
    n, delta = 400, 0.9
    places, times = split(worst["places"], worst["copies"], n)
    k, copies = samples(n, delta), np.repeat(adjacent(places) @ times, times)
    points = np.repeat(places, times, axis=0)[:, 0]

    def fails(size, *, rng, least=0.6):
        p = weight(_points.binomial_hits(copies, k, size, rng), k)
        return (p.sum(axis=0) < least * n) | (p[points > 3.0 + 1e-9] > 0).any(axis=0)

    ledger.monte_carlo(
        fails,
        delta / 18,
        draws=1_000,
        claim="on the data where both are tight",
        where={"n": n, "delta": delta},
        twin=lambda size, *, rng: fails(size, rng=rng, least=0.76),
    )
    ledger.note(
        "3 is sharp. Z >= .6 n is loose: .74 n is what the worst data give. The proof prints "
        "f* >= .7 k where .75 k is meant and used."
    )


# --- survivors in one ball ---


def largest_weights(places, times):
    """What (8) leaves of the weights: 0 for f* <= .45 k, .4 for f* <= .55 k, else 1."""
    score = adjacent(places) @ times / times.sum()
    return np.where(score <= 0.45, 0.0, np.where(score <= 0.55, 0.4, 1.0)), score


CHAIN = {"places": np.array([[0.0], [2.0], [4.0]]), "copies": np.array([0.02, 0.431, 0.549])}
LONG_CHAIN = {
    "places": np.array([[0.0], [2.0], [4.0], [6.0]]),
    "copies": np.array([0.289, 0.249, 0.343, 0.119]),
}


@statement("gm.lemma8")
def survivors_lie_in_a_ball(ledger):
    def accurate(n, delta, constant=600.0):
        return n * sum(tails(n, delta, constant)[1:]), delta / 9

    ledger.falsify(
        SCORES,
        accurate,
        claim="(8) with probability 1 - delta / 9: exact binomial tails",
        extremal=[{"n": 1.0, "delta": 0.999}, {"n": 1e9, "delta": 1e-12}],
        twin=lambda **case: accurate(**case, constant=100.0),
    )

    def survivors(places, copies):
        places, times = split(places, copies, 1000)
        top, score = largest_weights(places, times)
        return None if top @ times <= 0.55 * 1000 else (places, top > 0, score > 0.55)

    def ball(places, copies):
        if (found := survivors(places, copies)) is None:
            return None
        places, alive, strong = found
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        return float(apart[strong][:, alive].max(axis=1).min()), 4.0

    def on_a_line(places, copies):
        if (found := survivors(places, copies)) is None:
            return None
        return float(np.ptp(found[0][found[1]])) / 2, 3.0

    ledger.falsify(
        clouds(),
        ball,
        claim="within 4 r_hat of a point with a score above .55 k",
        extremal=[CHAIN, LONG_CHAIN],
        twin=0.9,
    )
    ledger.falsify(
        clouds(dimensions=(1,)),
        on_a_line,
        claim="on a line even in a ball of radius 3 r_hat",
        extremal=[CHAIN, LONG_CHAIN],
        twin=0.9,
    )
    ledger.note(
        "Around a data point 4 is sharp: 0 and 4 survive where 2, 43 and 55 % lie at 0, 2 and 4 "
        "(in units of r_hat). No smaller ball than of radius 3 does on a line; none larger was "
        "needed."
    )


# --- privacy ---


@statement("gm.lemma9.Z")
def sensitivity_of_the_weights(ledger):
    def change(points, other, table, limit):
        n, k = len(points), table.shape[1]
        chosen = np.minimum((table * n).astype(int), n - 1)
        if (chosen[:-1] == n - 1).sum() > limit * k:
            return None
        replaced = points.copy()
        replaced[-1] = other
        return center_weights(points, chosen, 1.0) - center_weights(replaced, chosen, 1.0)

    def total(points, other, table, limit=2, bound=12.0):
        moved = change(points, other, table, limit)
        return None if moved is None else (abs(float(moved.sum())), bound)

    def absolute(points, other, table, limit=2, bound=12.0):
        moved = change(points, other, table, limit)
        return None if moved is None else (float(np.abs(moved).sum()), bound)

    def worst(rows):
        """Some rows hold k / 4 copies of n, which carry their weight from 1 to 0; k = 8."""
        n = rows + 2
        table = np.full((n, 8), 1)
        table[1 : rows + 1] = [n - 1, n - 1, 1, 1, 1, 1, 0, 0]
        points = np.zeros((n, 1))
        points[0] = 50.0  # no neighbour of the others
        return {"points": points, "other": np.array([9.0]), "table": (table + 0.5) / n}

    boxes = [
        Box(
            points=Array(Interval(-3.0, 3.0), (n, 1)),
            other=Array(Interval(-6.0, 6.0), (1,)),
            table=Array(Interval(0.0, 1.0), (n, 4)),
        )
        for n in (1, 2, 6, 10)
    ]
    for sides, claim in ((total, "|Z - Z'|"), (absolute, "(9), sum of |p - p'|")):
        ledger.falsify(
            boxes,
            sides,
            claim=f"{claim} <= 12",
            extremal=[worst(8), worst(12)],
            twin=lambda f=sides, **case: f(**case, limit=3),
        )
    ledger.falsify(
        boxes,
        lambda **case: absolute(**case, bound=9.0),
        claim="sum of |p - p'| <= 9",
        extremal=[worst(8)],
        twin=0.9,
    )
    ledger.note(
        "9 is sharp, for n >= 9: the weight of the replaced point moves by 1, not by 4. The noise "
        "of line 8 could be of scale 18 / epsilon."
    )


def filled(room, total):
    """Take from the first places, as much as there is, up to a total."""
    before = np.concatenate([[0.0], np.cumsum(room)[:-1]])
    return np.clip(total - before, 0.0, room)


def displacement(places, copies, n=1000):
    """Weights at their worst: n times how far the mean moves, in units of r_hat.

    The replaced point goes from the survivor that is farthest from a survivor a to a; the others
    weigh as much far from a as (8) lets them, until Z > .55 n, and 8 more is put next to a.
    """
    places, times = split(places, copies, n)
    top, _ = largest_weights(places, times)
    alive = np.flatnonzero(top > 0)
    worst = None
    for a in alive:
        away = np.linalg.norm(places - places[a], axis=1)
        b = alive[np.argmax(away[alive])]
        others, replaced = times.copy(), times.copy()
        others[b] -= 1
        replaced[b] -= 1
        replaced[a] += 1
        other_top, _ = largest_weights(places, replaced)
        room = np.minimum(top, other_top) * others
        order = np.argsort(-away)
        first = np.empty(len(room))
        first[order] = filled(room[order], 0.55 * n + 1e-6 - top[b])
        second = first.copy()
        second[order[::-1]] += filled((room - first)[order[::-1]], 8.0)
        first[b] += top[b]
        second[a] += other_top[a]
        if min(first.sum(), second.sum()) <= 0.55 * n:
            continue
        means = [w @ places / w.sum() for w in (first, second)]
        moved = n * float(np.linalg.norm(means[0] - means[1]))
        worst = moved if worst is None else max(moved, worst)
    return worst


@statement("gm.lemma9.400")
def sensitivity_of_the_mean(ledger):
    def sides(places, copies):
        moved = displacement(places, copies)
        return None if moved is None else (moved, 400.0)

    ledger.falsify(
        clouds((3, 4, 5)),
        sides,
        claim="adversarial weights, all within (8), (9) and Z > .55 n",
        extremal=[CHAIN, LONG_CHAIN],
        twin=0.14,
    )

    def printed(first, second, third):
        return (first + second + third) / Fraction(11, 20), Fraction(400)

    ledger.sweep(
        [{"first": 8 * 12, "second": 8 * (1 + 12), "third": 16}],
        printed,
        exact=printed,
        claim="the arithmetic: (96 + 104 + 16) / .55 = 392.7",
        twin=0.9,
    )

    def around_the_mean(others, first, second):
        return Fraction(others + first + second) / Fraction(11, 20), Fraction(211)

    ledger.sweep(
        [{"others": 8 * 12, "first": 8, "second": 12}],
        around_the_mean,
        exact=around_the_mean,
        claim="211 by subtracting xbar: a weight of 8 within 12 r_hat, and of 1 within 8 and 12",
        twin=0.9,
    )
    ledger.note(
        "Loose: 60 r_hat / n is the worst found, near 2, 43 and 55 % of the points at 0, 2 and 4 "
        "r_hat. 211 r_hat / n is proved at once: Z' (xbar - xbar') is the sum of (p_i - p_i') "
        "(x_i - xbar) over the others and of two terms for the replaced point, and the balls of "
        "Lemma 8 have centers within 4 r_hat of one another. 400 sets the noise of line 13."
    )


@statement("gm.lemma9.n20")
def common_survivors(ledger):
    def common(n):
        """More than .55 n survive in each of the two."""
        return 2 * (11 * n // 20 + 1) - n

    ledger.sweep(
        [{"n": n} for n in range(20, 2000)],
        lambda n: (2, common(n)),
        claim="two common survivors for n >= 20; beyond 2000 by 2 * .55 n - n = .1 n",
    )
    ledger.sweep(
        [{"n": n} for n in range(10, 20)],
        lambda n: (2, common(n)),
        claim="from n = 10 on",
        twin=lambda n: (2, common(n - 1)),
    )

    def passes(n, epsilon, delta, scale=24.0):
        offset = scale / epsilon * math.log(24 / delta)
        return bounded_laplace_tail(max(offset - 0.45 * n, 0.0), scale / epsilon, delta), delta

    ledger.falsify(
        Box(n=Whole(1, 20), epsilon=EPSILONS, delta=DELTAS),
        passes,
        claim="for n <= 20 line 9 passes with probability delta at most, whatever the data",
        extremal=[{"n": 20, "epsilon": 1.0, "delta": 0.999}],
        twin=lambda **case: passes(**case, scale=1.0),
    )
    ledger.note(
        "10 is enough (for 9 only one is common). And below it is not needed: there line 9 passes "
        "with probability delta / 100 at most, so that the answer is 0, and private, anyway."
    )


@statement("gm.lemma9")
def privacy_of_fast_center(ledger):
    def copies(n, delta, constant=600.0):
        n = math.ceil(n)
        k = samples(n, delta, constant)
        return binom.sf(2 * k, (n - 1) * k, 1 / n), delta / 18

    ledger.falsify(
        SCORES,
        copies,
        claim="exact chance of more than 2 k copies of the index n",
        twin=lambda **case: copies(**case, constant=1.0),
    )

    def spent(epsilon, delta, factor=1.0):
        """Exact deltas of lines 9 and 14, and the bad events: copies, (8) twice."""
        noise = 1600 * factor * math.sqrt(math.log(12 / delta)) / epsilon
        laplace = bounded_laplace_delta(epsilon / 2, math.log(24 / delta))
        gauss = float(oracles.gaussian(400.0, noise).delta(epsilon / 2))
        return laplace + gauss + delta / 18 + 2 * delta / 9, 11 * delta / 18

    ledger.falsify(
        Box(epsilon=EPSILONS, delta=DELTAS),
        spent,
        claim="without conditioning on (8): exact deltas and both bad events, 11 delta / 18",
        extremal=[{"epsilon": 1.0, "delta": 0.999}],
        twin=lambda **case: spent(**case, factor=0.2),
    )
    others = [[4.0]] * 165 + [[2.0]] * 134

    def mechanism(data, size, *, rng, noise=1.0):
        return fast_center(
            data, size, radius=1.0, epsilon=1.0, delta=0.1, noise_multiplier=noise, rng=rng
        )[:, 0]

    ledger.audit(
        mechanism,
        ApproxDP(1.0, 0.1),
        NeighborPair([*others, [4.0]], [*others, [2.0]]),
        twin=lambda data, size, *, rng: mechanism(data, size, rng=rng, noise=0.0003),
        draws=10_000,
    )
    ledger.note(
        "True, as (epsilon, 11 delta / 18), but not as printed: (8) is an event of the dataset, "
        "and conditioning each run on it changes the law of the samples differently on the two, "
        "so that runs are no longer coupled. Bounding P[D in E] on the event that (8) holds for "
        "both is what works: 2 delta / 9 for it, delta / 18 for the copies, delta / 3 for lines 9 "
        "and 14. Copies are counted over i in [n] in one place, [n - 1] is meant."
    )
