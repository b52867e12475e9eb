"""User-level DP-SCO: footnote 3, its running time and its filter on sampled scores."""

from __future__ import annotations

import itertools
import math

import numpy as np

from algorithms.common.subsampling import amplified_epsilon, on_subsample, population_for
from algorithms.user_level_sco import euclidean
from algorithms.user_level_sco.domains import Ball
from algorithms.user_level_sco.losses import Huber, Linear
from algorithms.user_level_sco.plans import Filter, Phase, Plan
from algorithms.user_level_sco.scores import pass_sampled_filter, sampled_scores
from audits.user_level_sco import transcribed
from audits.user_level_sco.small_runs import DRAWS, START, in_parts, laplace_units, users_from
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

COSTS = {"n": Interval(1e7, 1e20, log=True), "m": Interval(1.0, 1e12, log=True)}
COSTS |= {"d": Interval(1.0, 1e9, log=True), "epsilon": Interval(0.01, 1.0, log=True)}
COSTS |= {"extremal": [{"n": 1e7, "m": 1.0, "d": 1.0, "epsilon": 1.0}]}


class Scripted(np.random.Generator):
    """A generator that draws users from a given list, and all else at random.

    `picks` has one row for each user of all draws, which are used in turn, or one row for all.
    """

    def __init__(self, seed, picks):
        super().__init__(np.random.PCG64(seed))
        self.picks, self.used = np.atleast_2d(picks), 0

    def integers(self, low, high=None, size=None, **options):
        """Return the given numbers modulo the number of users in a stratum."""
        assert high is None
        if len(self.picks) == 1:
            return np.broadcast_to(self.picks % low, size)
        first, self.used = self.used, self.used + size[0]
        return self.picks[first : self.used] % low


def sampled(tau, q, i, picks, distance=transcribed.distance):
    """Return the estimate of kappa_i from one user of each of k strata of B / k users."""
    k = len(picks)
    stratum = len(q) // k
    near = [q[stratum * j + picks[j] % stratum] for j in range(k)]
    return stratum * sum(math.exp(-tau * distance(q[i], other)) for other in near)


def laplace_above(x):
    return math.exp(-x) / 2 if x > 0 else 1 - math.exp(x) / 2


def kept_with(q, i, tau, k, F, b):
    """Return the exact probability that user i is kept, over all samples of k users."""
    ways = list(itertools.product(range(len(q) // k), repeat=k))
    return sum(laplace_above((F - sampled(tau, q, i, way)) / b) for way in ways) / len(ways)


def attack_sampled_filter(ledger):
    """Compare the filter on sampled scores with the strata that its docstring describes."""
    picks = {"picks": Array(Interval(0.0, 1.0), ("n", "k")), "k": Choice((1, 2, 3))}
    picks |= {"seed": Integer(0, 2**32), "tau": Interval(0.1, 4.0), "d": Choice((1, 2))}
    picks |= {"examples": 60, "skip": 0, "mutant": {"skip": 1}}
    norms = {"l2": transcribed.distance, "linf": lambda x, y: max(abs(x - y))}

    @ledger.identity(
        "estimated scores", n=12, norm=Choice(("l2", "linf")), parts=Choice((None, 7)), **picks
    )
    def estimates(picks, seed, tau, d, k, norm, parts, skip):
        """Use two batches of 6 users."""
        chosen = (picks * 6).astype(int)
        q = np.random.default_rng(seed).normal(size=(2, 6, d))
        options = {"temperature": tau, "samples": k, "norm": norm, "rng": Scripted(seed, chosen)}
        rows = chosen.reshape(2, 6, k) + skip
        lines = [
            [sampled(tau, q[s], i, rows[s, i], norms[norm]) for i in range(6)] for s in range(2)
        ]
        with in_parts(parts):
            return sampled_scores(q, **options), np.array(lines)

    def by_default(q, seed, picks):
        return sampled_scores(q, temperature=1.0, samples=2, rng=Scripted(seed, picks))

    ledger.identity(
        "estimated scores in the default norm", seed=Integer(0, 2**32), examples=5,
        mutant=lambda seed: (0.0, 1.0),
    )(
        lambda seed: (
            by_default(x := np.random.default_rng(seed).normal(size=(6, 2)), seed, [0, 1]),
            np.array([sampled(1.0, x, i, [0, 1]) for i in range(6)]),
        )
    )  # fmt: skip

    @ledger.identity("kappa + nu > F", n=1, **{**picks, "examples": 100})
    def decisions(picks, seed, tau, d, k, skip):
        """Use gradients of one and of three draws, and noise that brings estimates near F."""
        chosen = (picks[0] * 6).astype(int)
        rng = np.random.default_rng(seed)
        q = rng.normal(size=(rng.choice([1, 3]), 6, d))
        lines = np.array(
            [[sampled(tau, x, i, chosen + skip) for i in range(6)] for x in np.resize(q, (3, 6, d))]
        )
        nu = rng.choice([4.5 - lines + 0.1, 4.5 - lines - 0.1, 9 * rng.normal(size=(3, 6))])
        options = {"temperature": tau, "threshold": 4.5, "samples": k}
        ran = pass_sampled_filter(q, nu, **options, rng=Scripted(seed, chosen))
        return ran, ~(lines + nu <= 4.5)

    @ledger.identity("a run", n=1, **{**picks, "cutoff": Choice((3.0, 20.0)), "examples": 40})
    def run(picks, seed, tau, d, k, cutoff, skip):
        """Run Algorithm 2 with estimated scores."""
        chosen = (picks[0] * 6).astype(int)
        rule = Filter(tau, 3.0, 0.7, cutoff, 2.0, samples=k)
        plan = Plan(6, (Phase(18, 3, 0.5, 1.0),), rule, 9.0, 1.0, 1.0, 0.1)
        data, start = users_from(seed, d), START[:d]
        options = {"plan": plan, "loss": Huber(1.0), "start": start, "domain": Ball(1.5)}
        ran = euclidean.filtered_sgd(data, DRAWS, **options, rng=Scripted(seed, chosen))
        rng = np.random.default_rng(np.random.PCG64(seed))
        units = laplace_units(rng, DRAWS, [1, 6, 6, 6])
        lines = [
            transcribed.filtered_sgd(
                data[:18], start, gradient=transcribed.huber_gradient, B=6, eta=0.5, tau=tau,
                project=transcribed.onto_ball(1.5), F=3.0, c=cutoff, cutoff_noise=2.0,
                score_noise=lambda chat: 0.7, laplace=laplace,
                score=lambda tau, q, i: sampled(tau, q, i, chosen + skip),
            )[0]
            for laplace in transcribed.streams(units)
        ]  # fmt: skip
        return ran, np.array(lines)

    q = np.array([0.0, 0.3, 1.0, 4.0])
    exact = kept_with(q[:, None], 1, 1.0, 2, 2.0, 0.5)
    for kept, chance in ((1.0, exact), (0.0, 1 - exact)):

        @ledger.monte_carlo(
            f"the second user is {'kept' if kept else 'filtered'}", allowed=chance, draws=20_000,
            mutant=0.9,
        )  # fmt: skip
        def event(size, *, rng, kept=kept):
            rule = Filter(1.0, 2.0, 0.5, 99.0, 1e-9, samples=2)
            plan = Plan(4, (Phase(4, 1, 0.5, 1.0),), rule, 9.0, 1.0, 1.0, 0.1)
            run = {"plan": plan, "loss": Linear(), "start": [0.0], "domain": Ball(1.0)}
            made = euclidean.filter_decisions(q[:, None, None], size, **run, rng=rng)
            return made[:, 1] == kept

    loud = {"q": np.full(4, 9.0), "new": 9.0, "k": 2, "b": 1.0, "gap": 8.0}
    loud["q"] = np.array([9.0, 9.0, 9.0, -99.0])

    @ledger.falsify(
        "one user moves the decision on another user by the factor of Theorem 7",
        q=Array(Interval(-3.0, 3.0), (4,)), new=Interval(-3.0, 3.0), k=Choice((1, 2, 4)),
        b=Interval(0.3, 5.0), gap=Interval(-4.0, 9.0), more=1.0, mutant={"more": 0.5},
        extremal=[loud], examples=100,
    )  # fmt: skip
    def loss(q, new, k, b, gap, more):
        chances = [
            kept_with(np.r_[q[:3], last][:, None], 0, 1.0, k, gap, b) for last in (q[3], new)
        ]
        odds = [*chances, *(1 - chance for chance in chances)]
        lost = max(abs(math.log(odds[0] / odds[1])), abs(math.log(odds[2] / odds[3])))
        return lost, more * amplified_epsilon(4 / (k * b), 4, k) * (1 + 1e-9)

    rates = {"epsilon": Interval(1e-3, 2e3, log=True), "part": Integer(1, 40), "all": 40}

    @ledger.identity("log(1 + p (e^epsilon - 1))", power=1, mutant={"power": 2}, **rates)
    def amplified(epsilon, part, all, power):
        rate = (part / all) ** power
        rest = math.log1p(-rate) if rate < 1 else -math.inf
        return amplified_epsilon(epsilon, all, part), np.logaddexp(rest, math.log(rate) + epsilon)

    @ledger.identity(
        "the smallest population",
        epsilon=Interval(0.1, 3.0),
        part=Integer(1, 9),
        share=Interval(0.2, 1.3),
        less=0,
        mutant={"less": 1},
        examples=100,
        extremal=[{"epsilon": 1.0, "part": 5, "share": x} for x in (1.2, 800.0)],
    )
    def population(epsilon, part, share, less):
        size, target = part, share * epsilon
        while math.log1p(part / size * math.expm1(epsilon)) > target * (1 + 1e-12):
            size += 1
        return population_for(epsilon, target, part), max(part, size) - less

    @ledger.identity("a run on a subsample", data=Array(Interval(0.0, 5.0), ("n",)),
                     n=Choice((3, 5)), part=Choice((1, 2, 3)), seed=Integer(0, 2**32), turn=0,
                     mutant={"turn": 1}, examples=60)  # fmt: skip
    def subsampled(data, n, part, seed, turn):
        """Return outcomes whose distribution depends on the items and on their order."""
        items = data.astype(int)

        def pmf(sample):
            weights = 1.0 + np.arange(4) * sample[0] + (np.arange(4) == sample[-1])
            return weights / weights.sum()

        rngs = [np.random.default_rng(seed) for _ in range(2)]
        ran = on_subsample(items, 20, pmf=pmf, sample=part, rng=rngs[0])
        orders = rngs[1].permuted(np.tile(np.arange(n), (20, 1)), axis=1)
        uniforms = rngs[1].random(20)
        lines = []
        for order, uniform in zip(orders, uniforms, strict=True):
            chances = pmf(items[np.roll(order, turn)[:part]])
            outcome, below = 0, chances[0]
            while uniform >= below:
                outcome += 1
                below += chances[outcome]
            lines.append(outcome)
        return ran, np.array(lines)

    @ledger.identity("a distribution that sums to almost 1", short=[0.0, 5e-10], last=1,
                     mutant={"last": 0})  # fmt: skip
    def nearly(short, last):
        rng = Scripted(0, [0])
        rng.random = lambda size: np.full(size, 1 - 1e-12)
        run = {"pmf": lambda sample: [0.5, 0.5 - short], "sample": 1, "rng": rng}
        return on_subsample([0, 1], 3, **run), [last] * 3


@statement("sco2.fn3")
def running_time(ledger):
    """With Otilde(nm) gradients the total running time is Otilde(nmd/epsilon^3); the bottleneck is
    the concentration score, which takes Otilde(md/epsilon^3) time for each step.

    The printed costs are upper bounds that are not tight. A step takes time B^2 d for the scores
    and B m d for the gradients, where B = Otilde(epsilon^(-3/2)). So md / epsilon^3 is correct if
    all gradients are recomputed for each pair of users, as line 10 can be read. If the gradients
    are not recomputed, the time md / epsilon^3 is too large by a factor m. The number of steps is n
    epsilon^1.5 / Otilde(1). The printed total omits the number of steps. The correct total is
    Otilde(nmd + nd / epsilon^1.5). The Otilde(nm) gradients are the gradients of n (1 - 2^-S)
    users. As printed, each of these gradients is computed twice.

    The footnote does not describe the subsampling. The implementation estimates a score from one
    user of each of k groups of B / k users. Its decisions and its runs are those of this rule, for
    every sample. An exact enumeration confirms the privacy loss log(1 + p (e^(1/(pb)) - 1)) of a
    decision, for p = k / B and Laplace noise of scale b.
    """
    attack_sampled_filter(ledger)

    def priced(n, m, d, epsilon, log):
        """Return B and the numbers of operations in a step and in all steps.

        The operations are multiplications and exponentials.
        """
        batch = 300 * log**2 / epsilon**1.5
        step = 2 * batch * m * d + batch**2 * d
        return batch, step, n / batch * step

    @ledger.falsify("a step", log=16.0, power=4, mutant={"power": 2}, **COSTS)
    def step(n, m, d, epsilon, log, power):
        return priced(n, m, d, epsilon, log)[1], 2 * 300**2 * log**power * m * d / epsilon**3

    @ledger.falsify("the total", log=16.0, power=4, mutant={"power": 0}, **COSTS)
    def total(n, m, d, epsilon, log, power):
        return priced(n, m, d, epsilon, log)[2], 600 * log**power * n * m * d / epsilon**3

    @ledger.sharper("nmd + nd / epsilon^1.5").falsify(
        "the total", log=16.0, power=2, mutant={"power": 0},
        **{**COSTS, "extremal": [{"n": 1e7, "m": 1.0, "d": 1.0, "epsilon": 0.01}]},
    )  # fmt: skip
    def better(n, m, d, epsilon, log, power):
        rest = 300 * log**power * n * d / epsilon**1.5
        return priced(n, m, d, epsilon, log)[2], 2 * n * m * d + rest * (1 + 1e-9)

    @ledger.falsify("gradients: users of all phases", phases=Integer(1, 60), each=1.0,
                    mutant={"each": 1.1}, extremal=[{"phases": 60}])  # fmt: skip
    def gradients(phases, each):
        return each * (1 - 0.5**phases), 1.0
