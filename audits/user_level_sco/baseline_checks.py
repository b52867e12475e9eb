"""Checks of the baselines of the experiments, which the paper compares with its algorithms.

The rows of (2) and of Table 1 run these checks. DP-SGD privatises the mean gradient of every batch,
and output perturbation uses group privacy.
"""

from __future__ import annotations

import math

import numpy as np

from algorithms.user_level_sco import baselines
from algorithms.user_level_sco.domains import Ball
from algorithms.user_level_sco.losses import Huber, Linear, Quadratic
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
        options = {"batch_size": B, "n_steps": T, "step": 0.4, "clip_norm": C, "epsilon": epsilon}
        options |= {"delta": delta, "loss": Huber(1.0), "domain": Ball(radius), "start": start}
        options |= {} if multiplier is None else {"noise_multiplier": multiplier}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        with draws_alone(alone, B * (d + 1)):
            ran = baselines.user_level_dp_sgd(data, DRAWS, **options, rng=rngs[0])
        groups = [1] * DRAWS if alone else [DRAWS]
        parts = [rngs[1].normal(size=(T, group, d)) for group in groups]
        noise = np.concatenate(parts, axis=1).transpose(1, 0, 2)
        sigma = derived.dp_sgd_noise(30, B, T, C, epsilon, delta) * (multiplier or 1.0)
        lines = []
        for draw in noise:
            rest = iter(draw)
            lines.append(derived.dp_sgd(
                data, start, gradient=transcribed.huber_gradient, B=B, T=T, eta=factor * 0.4, C=C,
                project=transcribed.onto_ball(radius), sigma=sigma,
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
        sigma = derived.dp_sgd_noise(n, B, T, C, epsilon, delta)
        V = math.sqrt(lipschitz**2 / (B * m) + d * sigma**2)
        again = baselines.dp_sgd_sigma(
            n, batch_size=B, n_steps=3 * T + 1, clip_norm=C, epsilon=epsilon, delta=delta
        )
        lines = [B, T, radius / V / T**power, C]
        lines.append(derived.dp_sgd_noise(n, B, 3 * T + 1, C, epsilon, delta))
        return [found.batch_size, found.n_steps, found.step, found.clip_norm, again], lines

    @ledger.falsify(
        "the step size of DP-SGD is the best for D^2 / (2 eta T) + eta V^2 / 2", part=1.0,
        n=Integer(40, 10**6), move=Choice((0.9, 1.1)), mutant={"part": 0.5}, examples=60, **PUBLIC,
        **BUDGET,
    )  # fmt: skip
    def best(n, m, d, lipschitz, radius, epsilon, delta, move, part):
        options = {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
        found = baselines.dp_sgd_parameters(n, m, d, **options)
        B, T, C = n // 32, 32, lipschitz * min(1.0, 2 / math.sqrt(m))
        sigma = derived.dp_sgd_noise(n, B, T, C, epsilon, delta)
        V = lipschitz**2 / (B * m) + d * sigma**2

        def bound(eta):
            return radius**2 / (2 * eta * T) + eta * V / 2

        return bound(part * found.step), bound(move * found.step)


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
