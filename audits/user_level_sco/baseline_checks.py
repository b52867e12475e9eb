"""Checks of the baselines of the experiments, which the paper compares with its algorithms.

The rows of (2) and of Table 1 run these checks. DP-SGD privatises the mean gradient of every batch,
output perturbation uses group privacy, and two other rules for the mean use that gradients of users
are concentrated.
"""

from __future__ import annotations

import math

import numpy as np

from algorithms.user_level_sco import baselines
from algorithms.user_level_sco.domains import Ball
from algorithms.user_level_sco.losses import Huber, Linear, Quadratic
from algorithms.user_level_sco.private_means import ClippedMean, ConcentratedMean, WinsorizedMean
from audits.user_level_sco import derived, transcribed
from audits.user_level_sco.small_runs import DRAWS, START, draws_alone, gradient_of, users_from
from dpaudit.neighbors import Choice, Integer, Interval

ROUNDING = 1e-12
BUDGET = {"epsilon": Interval(0.1, 4.0), "delta": Interval(1e-6, 0.2, log=True)}
PUBLIC = {"m": Integer(1, 100), "d": Integer(1, 50)}
PUBLIC |= {"lipschitz": Interval(0.1, 9.0), "radius": Interval(0.1, 9.0)}


def attack_dp_sgd(ledger):
    """Compare the baseline that privatises every iterate with its description, in plain loops."""

    @ledger.identity(
        "a run of DP-SGD", seed=Integer(0, 2**32), d=Choice((1, 2)), B=Choice((3, 7)),
        T=Integer(1, 9), C=Interval(0.05, 2.0), radius=Choice((0.4, 2.0)), factor=1.0,
        multiplier=Choice((1.0, 0.5, None)), alone=Choice((True, False)), mutant={"factor": 1.1},
        tolerance=1e-5, floor=1e-6, examples=60, **BUDGET,
    )  # fmt: skip
    def run(seed, d, B, T, C, radius, epsilon, delta, multiplier, alone, factor):
        data, start = users_from(seed, d), START[:d]
        options = {"batch_size": B, "n_steps": T, "step": 0.4, "mean": ClippedMean(C)}
        options |= {"epsilon": epsilon, "delta": delta}
        options |= {"loss": Huber(1.0), "domain": Ball(radius), "start": start}
        options |= {} if multiplier is None else {"noise_multiplier": multiplier}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        with draws_alone(alone, B * (d + 1)):
            ran = baselines.user_level_dp_sgd(data, DRAWS, **options, rng=rngs[0])
        groups = [1] * DRAWS if alone else [DRAWS]
        parts = [rngs[1].normal(size=(T, group, d)) for group in groups]
        noise = np.concatenate(parts, axis=1).transpose(1, 0, 2)
        sigma = derived.dp_sgd_noise(30, B, T, epsilon, delta, moves=2 * C / B)
        sigma *= multiplier or 1.0
        lines = []
        for draw in noise:
            rest = iter(draw)
            lines.append(derived.dp_sgd(
                data, start, gradient=transcribed.huber_gradient, B=B, T=T, eta=factor * 0.4,
                mean=lambda q, t: derived.clipped_mean(q, C), sigma=sigma,
                project=transcribed.onto_ball(radius),
                normal=lambda scale, size, rest=rest: scale * next(rest),
            ))  # fmt: skip
        return ran, np.array(lines)

    @ledger.identity("the noise and the parameters of DP-SGD", n=Integer(40, 10**6), power=0.5,
                     batches=Choice((None, 7, 40)), mutant={"power": 0.6}, examples=60,
                     tolerance=1e-7, **PUBLIC, **BUDGET)  # fmt: skip
    def parameters(n, m, d, lipschitz, radius, epsilon, delta, batches, power):
        options = {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
        options |= {} if batches is None else {"n_batches": batches}
        found = baselines.dp_sgd_parameters(n, m, d, **options)
        T = batches or 32
        B, C = n // T, lipschitz * min(1.0, 2 / math.sqrt(m))
        sigma = derived.dp_sgd_noise(n, B, T, epsilon, delta, moves=2 * C / B)
        V = math.sqrt(lipschitz**2 / (B * m) + d * sigma**2)
        again = baselines.dp_sgd_sigma(
            n, d, batch_size=B, n_steps=3 * T + 1, mean=ClippedMean(C), epsilon=epsilon, delta=delta
        )
        lines = [B, T, radius / V / T**power, C]
        lines.append(derived.dp_sgd_noise(n, B, 3 * T + 1, epsilon, delta, moves=2 * C / B))
        return [found.batch_size, found.n_steps, found.step, found.mean.clip_norm, again], lines

    @ledger.falsify(
        "the step size of DP-SGD is the best for D^2 / (2 eta T) + eta V^2 / 2", part=1.0,
        n=Integer(40, 10**6), move=Choice((0.9, 1.1)), mutant={"part": 0.5}, examples=60, **PUBLIC,
        **BUDGET,
    )  # fmt: skip
    def best(n, m, d, lipschitz, radius, epsilon, delta, move, part):
        options = {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
        found = baselines.dp_sgd_parameters(n, m, d, **options)
        B, T, C = n // 32, 32, lipschitz * min(1.0, 2 / math.sqrt(m))
        sigma = derived.dp_sgd_noise(n, B, T, epsilon, delta, moves=2 * C / B)
        V = lipschitz**2 / (B * m) + d * sigma**2

        def bound(eta):
            return radius**2 / (2 * eta * T) + eta * V / 2

        return bound(part * found.step), bound(move * found.step)


def by_hand(users, loss, B, eta, sigma, drawn, mean):
    """Run SGD for two draws; each entry of `drawn` ends with the normal noise of a step."""
    found = []
    for draw in (0, 1):
        noise = iter([step[-1][draw] for step in drawn])
        found.append(derived.dp_sgd(
            users, np.zeros(users.shape[2]), gradient=gradient_of(loss), B=B, T=len(drawn), eta=eta,
            mean=lambda q, t, draw=draw: mean(q, t, draw), project=transcribed.onto_ball(2.0),
            sigma=sigma, normal=lambda scale, size, noise=noise: scale * next(noise),
        ))  # fmt: skip
    return np.array(found)


def attack_concentrated_means(ledger):
    """Compare the means that use concentration with their descriptions, and move one user."""
    assumed = {"tau": Interval(0.1, 3.0), "epsilon0": Interval(0.5, 5.0)}

    @ledger.identity(
        "SGD on winsorized means", seed=Integer(0, 2**32), d=Choice((1, 2, 3)), T=Integer(1, 4),
        G=Interval(0.3, 4.0), miss=Choice((None, 0.3)), part=0.5, mutant={"part": 0.6},
        delta=Interval(0.01, 0.2), examples=60, tolerance=1e-5, floor=1e-6, **assumed,
    )  # fmt: skip
    def winsorized(seed, d, T, G, tau, epsilon0, miss, delta, part):
        """Two draws differ from the first step on. A half of epsilon is left for the noise."""
        rule = WinsorizedMean(tau, G, epsilon0, **({} if miss is None else {"miss": miss}))
        P, w = derived.power_of_two(d), derived.winsorized_width(9, d, tau, miss or 0.01)
        epsilon, rngs = 2 * -(-T // 3) * P * epsilon0, [np.random.default_rng(seed) for _ in "12"]
        users = np.random.default_rng(seed).normal(size=(30, 2, d))
        ran = baselines.user_level_dp_sgd(
            users, 2, batch_size=9, n_steps=T, step=0.5, mean=rule, loss=Huber(1.0),
            domain=Ball(2.0), start=np.zeros(d), epsilon=epsilon, delta=delta, rng=rngs[0],
        )  # fmt: skip
        sigma = derived.dp_sgd_noise(
            30, 9, T, epsilon, delta, moves=5 * w * math.sqrt(P) / 9, calls=P, epsilon0=epsilon0
        )
        intervals = max(1, math.ceil(2 * G / w))
        drawn = [
            (rngs[1].choice((-1.0, 1.0), size=(2, 1, P))[:, 0],
             rngs[1].gumbel(size=(2, P, intervals)), rngs[1].normal(size=(2, d)))
            for _ in range(T)
        ]  # fmt: skip
        assumptions = {"tau": tau, "G": G, "epsilon0": epsilon0, "miss": miss or 0.01}

        def mean(q, t, draw):
            signs, gumbel, _ = drawn[t]
            return derived.winsorized_mean(q, **assumptions, signs=signs[draw], gumbel=gumbel[draw])

        return ran, by_hand(users, Huber(1.0), 9, part, sigma, drawn, mean)

    @ledger.identity(
        "SGD on concentrated means", seed=Integer(0, 2**32), d=Choice((1, 2)), T=Integer(1, 4),
        share=Choice((None, 0.6)), failure=Interval(0.01, 0.03), far=Choice((0.0, 1e9)), part=0.5,
        mutant={"part": 0.6}, examples=60, tolerance=1e-5, floor=1e-6,
        **{**assumed, "epsilon0": Interval(3.0, 5.0)},
    )  # fmt: skip
    def concentrated(seed, d, T, tau, epsilon0, share, failure, far, part):
        """Each of two draws passes or fails the test. Users that are far need exact distances."""
        rule = ConcentratedMean(
            tau, epsilon0, failure, **({} if share is None else {"share": share})
        )
        change, _, moves = derived.concentrated_bounds(15, tau, epsilon0, failure, share or 0.9)
        epsilon, rngs = 2 * -(-T // 2) * epsilon0, [np.random.default_rng(seed) for _ in "12"]
        users = np.random.default_rng(seed).normal(size=(30, 2, d)) + far
        loss = Quadratic() if far else Huber(1.0)
        ran = baselines.user_level_dp_sgd(
            users, 2, batch_size=15, n_steps=T, step=0.5, mean=rule, loss=loss,
            domain=Ball(2.0), start=np.zeros(d), epsilon=epsilon, delta=0.1, rng=rngs[0],
        )  # fmt: skip
        sigma = derived.dp_sgd_noise(
            30, 15, T, epsilon, 0.1, moves=moves, calls=1, epsilon0=epsilon0, failure=failure
        )
        drawn = [
            (change / epsilon0 * rngs[1].laplace(size=(2, 1)), rngs[1].normal(size=(2, d)))
            for _ in range(T)
        ]

        def mean(q, t, draw):
            noise = drawn[t][0][draw, 0]
            return derived.concentrated_mean(q, tau=tau, share=share or 0.9, noise=noise)

        return ran, by_hand(users, loss, 15, part, sigma, drawn, mean)

    @ledger.falsify(
        "a user moves a winsorized mean by at most its sensitivity, given the intervals",
        seed=Integer(0, 2**32), d=Choice((1, 2, 3)), tau=Interval(0.1, 0.4), part=1.0,
        size=Choice((1.0, 9.0)), mutant={"part": 0.5}, examples=60,
        extremal=[{"seed": 1, "d": 2, "tau": 0.1, "size": 99.0}],
    )  # fmt: skip
    def moved(seed, d, tau, size, part):
        """Almost no weight on the data fixes the intervals."""
        rule = WinsorizedMean(tau, 1.0, 1e-12)
        users = np.random.default_rng(seed).uniform(-1, 1, size=(7, d))
        other = users.copy()
        users[2], other[2] = 0.0, 0.0
        users[2, 0], other[2, 0] = size, -size
        a, b = (rule.means(q[None], 1, rng=np.random.default_rng(seed))[0] for q in (users, other))
        return math.dist(a, b), part * rule.sensitivity(7, d) + ROUNDING

    @ledger.identity("weights, also of gradients that are long", seed=Integer(0, 2**32), extra=0.0,
                     d=Choice((1, 2, 40)), tau=Interval(0.3, 2.0), n_long=Integer(0, 6),
                     length=Choice((1e3, 1e7, 1e150)), mutant={"extra": 0.1},
                     examples=60)  # fmt: skip
    def weighted(seed, d, tau, n_long, length, extra):
        """Long gradients are in two groups, and the others are near 0."""
        rng = np.random.default_rng(seed)
        users = rng.normal(size=(21, d)) / math.sqrt(d)
        users[:n_long] += length
        users[: n_long // 2] += length
        found = ConcentratedMean(tau, 1.0, 0.1).weights(users)
        return found, np.array(derived.concentration(users, tau)) + extra

    @ledger.identity(
        "a batch is refused if its least weight is at most 4", B=Integer(1, 60), least=4.0,
        epsilon0=Interval(0.1, 9.0), failure=Interval(0.001, 0.4), share=Interval(0.1, 0.99),
        mutant={"least": 6.0}, examples=60,
        extremal=[{"B": 1, "epsilon0": 1.0, "failure": 0.1, "share": 0.9},
                  {"B": 2, "epsilon0": 1.0, "failure": 0.1, "share": 0.9}],
    )  # fmt: skip
    def refused(B, epsilon0, failure, share, least):
        rule, outcomes = ConcentratedMean(1.0, epsilon0, failure, share), []
        calls = (
            lambda: rule.least(B),
            lambda: rule.means(np.zeros((1, B, 1)), 1, rng=np.random.default_rng(0)),
        )
        for call in calls:
            try:
                call()
            except ValueError:
                outcomes.append(True)
            else:
                outcomes.append(False)
        small = B < 3 or derived.concentrated_bounds(B, 1.0, epsilon0, failure, share)[1] <= least
        return outcomes, [small, small]

    near = {"seed": 1, "d": 1, "tau": 1.0, "user": 0, "place": 50.0}
    long = {"seed": 4, "d": 512, "tau": 1 / 128, "user": 0, "place": 0.999 / 512**0.5}

    @ledger.falsify(
        "a user moves the total weight by at most the constant of the Laplace noise",
        seed=Integer(0, 2**32), d=Choice((1, 2)), tau=Interval(0.2, 1.0), user=Integer(0, 8),
        place=Interval(-3.0, 3.0), part=1.0, mutant={"part": 0.5}, examples=60,
        extremal=[near, long],
    )  # fmt: skip
    def weights(seed, d, tau, user, place, part):
        """The constant is the threshold less L, divided by log(1 / (2 failure)) / epsilon0.

        For odd seeds, users are in a ball. For even seeds, users are at two points that are 2 tau
        apart, up to rounding.
        """
        rule, rng = ConcentratedMean(tau, 1.0, 0.5 / math.e, 0.99), np.random.default_rng(seed)
        users = rng.uniform(-0.5, 0.5, size=(40, d))
        if seed % 2 == 0:
            users[:] = users[0] * tau
            users[::2] += 2 * tau * derived.unit(rng.normal(size=d))
        other = users.copy()
        other[user] = place
        totals = [rule.weights(q).sum() for q in (users, other)]
        constant = 0.99 * 40 - rule.least(40)
        return abs(totals[0] - totals[1]), part * constant + ROUNDING

    edge = {"sides": 13, "gap": 1.95, "place": -2.0, "other": 2.0}

    @ledger.falsify(
        "a user moves a concentrated mean by at most its sensitivity", sides=Integer(10, 16),
        gap=Interval(0.5, 2.0), place=Interval(-4.0, 4.0), other=Interval(-4.0, 4.0), part=1.0,
        mutant={"part": 0.2}, examples=60, extremal=[edge],
    )  # fmt: skip
    def moved_mean(sides, gap, place, other, part):
        """Users between two crowds are neighbours of both, and the test has almost no noise."""
        rule = ConcentratedMean(1.0, 1e9, 0.1, 0.5)
        users = np.repeat([-gap, 0.0, gap, 0.0], [sides, 39 - 2 * sides, sides, 1])[:, None]
        ends = []
        for end in (place, other):
            users[-1] = end
            ends.append(rule.means(users[None], 1, rng=np.random.default_rng(0))[0, 0])
        if np.isnan(ends).any():
            return None
        return abs(ends[0] - ends[1]), part * rule.sensitivity(40, 1) + ROUNDING

    @ledger.identity(
        "the parameters of the other rules", n=Integer(2 * 10**5, 10**6), kind=Choice((0, 1)),
        power=0.5, mutant={"power": 0.6}, examples=60, tolerance=1e-6, **PUBLIC, **BUDGET,
    )  # fmt: skip
    def parameters(n, m, d, lipschitz, radius, epsilon, delta, kind, power):
        """A half of the budget is for intervals; 0.3 epsilon and delta / 10 are for the test."""
        options = {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
        found = baselines.dp_sgd_parameters(
            n, m, d, mean=("winsorized", "concentrated")[kind], **options
        )
        B, tau = n // 32, lipschitz * min(1.0, 2 / math.sqrt(m))
        epsilon0, spent = 0.3 * epsilon, {"calls": 1, "failure": delta / 10}
        if kind == 1:
            moves = derived.concentrated_bounds(B, tau, epsilon0, delta / 10, 0.9)[2]
            facts = [found.mean.spread, found.mean.epsilon0, found.mean.failure, found.mean.share]
            lines = [tau, epsilon0, delta / 10, 0.9]
        else:
            P = derived.power_of_two(d)
            epsilon0, spent = derived.loudest_answers(epsilon / 2, delta / 2, P), {"calls": P}
            moves = 5 * derived.winsorized_width(B, d, tau, 0.01) * math.sqrt(P) / B
            facts = [found.mean.spread, found.mean.epsilon0, found.mean.bound, found.mean.miss]
            lines = [tau, epsilon0, lipschitz, 0.01]
        sigma = derived.dp_sgd_noise(
            n, B, 32, epsilon, delta, moves=moves, epsilon0=epsilon0, **spent
        )
        V = math.sqrt(lipschitz**2 / (B * m) + d * sigma**2)
        return [*facts, found.step], [*lines, radius / V / 32**power]


RUN = {"m": Choice((1, 3)), "d": Choice((1, 2)), "B": Choice((1, 4))}
RUN |= {"seed": Integer(0, 2**32), "tolerance": 1e-7}


def batch_options(B):
    return {} if B == 1 else {"batch_size": B}


def attack_group_privacy(ledger):
    """Compare output perturbation for a group of m items, and SGD, with their descriptions."""
    radius = 0.7

    @ledger.identity("runs of SGD", factor=1.0, mutant={"factor": 1.1}, examples=60,
                     loss=Choice((Huber(1.0), Quadratic())), **RUN)  # fmt: skip
    def runs(seed, m, d, B, loss, factor):
        users = np.random.default_rng(seed).normal(size=(7, m, d))
        start = np.array([0.3, -0.2])[:d]
        run = {"loss": loss, "domain": Ball(radius), "start": start, "step": 0.4}
        lines = derived.sgd(
            users, start, gradient=gradient_of(loss), B=B, eta=factor * 0.4,
            project=transcribed.onto_ball(radius),
        )  # fmt: skip
        return baselines.sgd(users, **run, **batch_options(B)), lines

    @ledger.identity(
        "output perturbation adds noise for 2 m eta G / B in each phase", moved=2,
        multiplier=Choice((1.0, 3.0)), phases=Choice((None, 2)), mutant={"moved": 1}, examples=60,
        floor=1e-9, **{**RUN, **BUDGET, "tolerance": 1e-6},
    )  # fmt: skip
    def perturbed(seed, m, d, B, epsilon, delta, multiplier, phases, moved):
        """Two phases take 3 and 1 of the 7 users, and the second phase takes quarter steps."""
        if phases and m < B:
            return None
        users = np.random.default_rng(seed).normal(size=(7, m, d))
        start, project = np.array([0.3, -0.2])[:d], transcribed.onto_ball(radius)
        run = {"loss": Huber(1.0), "domain": Ball(radius), "start": start, "step": 0.4}
        given = {} if multiplier == 1 else {"noise_multiplier": multiplier}
        given |= {} if phases is None else {"n_phases": phases}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        ran = baselines.output_perturbation(
            users, 3, **run, **batch_options(B), lipschitz=1.5, epsilon=epsilon, delta=delta,
            **given, rng=rngs[0],
        )  # fmt: skip
        sigma = multiplier * moved * m * 0.4 * 1.5 / B / derived.noise_ratio(epsilon, delta)
        ends = [start] * 3
        for s, part in enumerate([users] if phases is None else [users[:3], users[3:4]]):
            ends = [
                derived.sgd(
                    part, project(x), gradient=transcribed.huber_gradient, B=B, eta=0.4 / 4**s,
                    project=project,
                ) for x in ends
            ]  # fmt: skip
            ends = np.array(ends) + sigma / 4**s * rngs[1].normal(size=(3, d))
        return ran, ends

    far = {"m": 3, "B": 1, "seed": 1, "user": 0, "sign": -1.0}

    @ledger.falsify(
        "a user moves the average of SGD by at most 2 m eta G / B", user=Integer(0, 6), moved=2.0,
        m=Choice((1, 3)), B=Choice((1, 4)), seed=Integer(0, 2**32), sign=Choice((1.0, -1.0)),
        mutant={"moved": 1.0}, extremal=[far], examples=60,
    )  # fmt: skip
    def stable(m, B, seed, user, sign, moved):
        users = np.random.default_rng(seed).uniform(-1, 1, size=(7, m, 1))
        other = users.copy()
        users[user], other[user] = 1.0, sign
        run = {"loss": Linear(), "domain": Ball(99.0), "start": [0.0], "step": 0.4}
        ends = [baselines.sgd(x, **run, **batch_options(B))[0] for x in (users, other)]
        return abs(ends[0] - ends[1]), moved * m * 0.4 / B + ROUNDING

    sizes = {"n": Integer(40, 10**6), "m": Integer(1, 100), "d": Integer(1, 50), **BUDGET}
    sizes |= {"lipschitz": Interval(0.1, 9.0), "radius": Interval(0.1, 9.0)}

    @ledger.falsify(
        "the step size of output perturbation is the best for its bound", part=1.0,
        move=Choice((0.9, 1.1)), steps=Choice((None, 50)), mutant={"part": 0.5}, examples=60,
        **sizes,
    )  # fmt: skip
    def best(n, m, d, lipschitz, radius, epsilon, delta, steps, move, part):
        """Sum the error of T steps, the variance of batches of B items, and the noise."""
        options = {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
        options |= {} if steps is None else {"n_steps": steps}
        found = baselines.output_perturbation_parameters(n, m, d, **options)
        T, mu = steps or 1000, derived.noise_ratio(epsilon, delta)
        B = max(1, n * m // T)

        def bound(eta):
            noise = 2 * m * eta * lipschitz**2 * math.sqrt(d) / (B * mu)
            return radius**2 / (2 * eta * T) + eta * lipschitz**2 / (2 * B) + noise

        return bound(part * found.step), bound(move * found.step) + abs(found.batch_size - B)

    @ledger.identity("its step size and batches", steps=Choice((None, 50)), root=0.5,
                     mutant={"root": 0.6}, examples=60, tolerance=1e-7, **sizes)  # fmt: skip
    def parameters(n, m, d, lipschitz, radius, epsilon, delta, steps, root):
        options = {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
        options |= {} if steps is None else {"n_steps": steps}
        found = baselines.output_perturbation_parameters(n, m, d, **options)
        T, mu = steps or 1000, derived.noise_ratio(epsilon, delta)
        B = max(1, n * m // T)
        slope = lipschitz**2 / (2 * B) + 2 * m * lipschitz**2 * math.sqrt(d) / (B * mu)
        return [found.batch_size, found.step], [B, (radius**2 / (2 * T * slope)) ** root]

    @ledger.identity("the step size of SGD", B=Integer(1, 99), T=Integer(1, 10**4), root=0.5,
                     mutant={"root": 0.6}, examples=60, **sizes)  # fmt: skip
    def sgd_step(n, m, d, lipschitz, radius, epsilon, delta, B, T, root):
        """Balance D^2 / (2 eta T) and eta G^2 / (2 B m)."""
        options = {"batch_size": B, "n_steps": T, "lipschitz": lipschitz, "radius": radius}
        slope = lipschitz**2 / (2 * B * m)
        return baselines.sgd_step(m, **options), (radius**2 / (2 * T * slope)) ** root
