"""User-level DP-SCO: Algorithms 1 and 2, line by line."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from algorithms.user_level_sco import euclidean
from algorithms.user_level_sco.domains import Ball
from algorithms.user_level_sco.losses import Huber, Linear, Quadratic
from algorithms.user_level_sco.plans import Filter, Phase, Plan
from algorithms.user_level_sco.scores import concentration_scores, pass_filter
from audits.user_level_sco import transcribed
from audits.user_level_sco.small_runs import (
    DRAWS,
    RARE,
    SIZES,
    START,
    Silent,
    draws_alone,
    gradient_of,
    in_parts,
    laplace_units,
    printed_plan,
    small_plan,
    users_from,
)
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

RUNS = {"seed": Integer(0, 2**32), "d": Choice((1, 2)), "cutoff": Choice((0.5, 3.0, 8.0))}
RUNS |= {"follows": Choice((True, False)), "radius": Choice((0.4, 1.5)), "examples": 40}
RUNS |= {"alone": Choice((True, False)), "loss": Choice((Huber(1.0), Quadratic()))}
WHOLE = {"F": 1.0, "eta": 1.0, "c": 1.0, "sigma": 1.0, "late": 0}


class Lines:
    """Algorithms 1 and 2 as printed, on the random numbers of a run of `euclidean`.

    The factors make mutants.
    """

    def __init__(self, plan, loss, radius, seed, alone, F=1.0, eta=1.0, c=1.0, sigma=1.0, late=0):
        self.plan, self.project = plan, transcribed.onto_ball(radius)
        self.gradient = gradient_of(loss)
        self.rng, self.alone = np.random.default_rng(seed), alone
        self.F, self.eta, self.c, self.sigma, self.late = F, eta, c, sigma, late

    def score_noise(self, chat):
        """Return 2 sigma, which is proportional to the root of chat if the plan says so."""
        rule = self.plan.rule
        root = math.sqrt(max(chat, 0.0) / (self.c * rule.cutoff))
        return self.sigma * rule.scale * (root if rule.scale_follows_cutoff else 1.0)

    def averages(self, users, steps, step, starts):
        """Run Algorithm 2 from each of the starting points.

        If chat is not positive, the implementation halts before the first decision.
        """
        rule, B = self.plan.rule, self.plan.batch_size
        units = laplace_units(self.rng, len(starts), [1, *[B] * steps], self.alone)
        users = np.roll(users[: steps * B], self.late, axis=0)
        found = [
            transcribed.filtered_sgd(
                users, x, gradient=self.gradient, project=self.project, B=B,
                eta=self.eta * step, tau=rule.temperature, F=self.F * rule.threshold,
                c=self.c * rule.cutoff, cutoff_noise=rule.cutoff_scale,
                score_noise=self.score_noise, laplace=laplace,
            )
            for x, laplace in zip(starts, transcribed.streams(units), strict=True)
        ]  # fmt: skip
        chats = self.c * rule.cutoff + rule.cutoff_scale * units[:, 0]
        return [(x, a if chat > 0 else []) for (x, a), chat in zip(found, chats, strict=True)]

    def phases(self, users, start, factor, project):
        """Run Algorithm 1 in all draws, and return xbar_s and x_s of each phase."""
        x, used, found = [start] * DRAWS, 0, []
        for phase in self.plan.phases:
            own = users[used : used + phase.n_users]
            used += phase.n_users
            means = [one[0] for one in self.averages(own, phase.n_steps, phase.step, x)]
            zeta = factor * phase.sigma * self.rng.normal(size=(DRAWS, len(start)))
            x = [self.project(y) if project else y for y in means + zeta]
            found.append((np.array(means), np.array(x)))
        return found


@statement("sco2.alg1")
def localisation_lines(ledger):
    """User-level DP-SCO runs S = ceil(log(n/B)) phases. Phase s takes n_s = n/2^s unused users and
    runs Algorithm 2 with learning rate eta_s = eta/log^s m from x_(s-1); x_s is its output plus
    N(0, sigma_s^2 I_d) with sigma_s = O(eta_s G sqrt(log(1/delta) log(nmd))/(B sqrt(m) epsilon)).
    It returns x_S.

    From the same random numbers, each run of the implementation gives the iterates of the printed
    lines. The phases, step sizes and noise are the printed ones. A whole run with millions of
    users, at the parameters of Section 3, gives the same point as the printed lines. The printed
    lines do not specify four points. The constant of sigma_s is not given, and every constant is
    too small (sco2.thm8.priv). At m = 1, log m = 0 makes eta_s = eta / 0. The base of the logarithm
    in S is not given. Only the natural logarithm leaves B users in each phase. The point x_s, the
    start of phase s + 1, may lie outside of X. The S phases use n_s = n / 2^s users each, so n /
    2^S users are never used.
    """

    @ledger.identity(
        "phases, steps and noise", power=0.0, mutant={"power": 0.5}, examples=100,
        noise=Interval(0.1, 9.0), extremal=[{**RARE, "noise": 1.0}], **SIZES,
    )  # fmt: skip
    def parameters(n, m, d, epsilon, delta, lipschitz, radius, noise, power):
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        if (plan := printed_plan(*sizes, noise_constant=noise)) is None:
            return None
        found = [[p.n_steps, p.n_users, p.step, p.sigma] for p in plan.phases]
        B = transcribed.euclidean(*sizes).B
        lines = [
            [transcribed.batches(n_s, B), transcribed.batches(n_s, B) * B, eta, sigma * m**power]
            for n_s, eta, sigma in transcribed.euclidean_phases(*sizes, noise)
            if n_s >= B
        ]
        same = len(found) == len(lines)
        return (found, lines) if same else ([1.0], [2.0])

    steps = {"steps": Choice(((3,), (2, 1), (2, 1, 1))), "factor": Choice((1.0, 2.5))}
    steps |= {"inside": Choice((True, False)), "tolerance": 1e-8, "floor": 1e-6}

    @ledger.identity("x_1, ..., x_S and xbar_s", mutant={"late": 1}, **RUNS, **WHOLE, **steps)
    def iterates(seed, d, cutoff, follows, radius, alone, loss, steps, factor, inside, **changes):
        plan, data = small_plan(steps, cutoff, follows), users_from(seed, d)
        run = {"plan": plan, "loss": loss, "start": START[:d], "domain": Ball(radius)}
        run |= {"project": inside, "noise_multiplier": factor, "unsafe": not inside}
        rngs = [np.random.default_rng(seed) for _ in range(3)]
        with draws_alone(alone, 6 * (d + 2)):
            ran = euclidean.user_level_sco(data, DRAWS, transcript=True, **run, rng=rngs[0])
            last = euclidean.user_level_sco(data, DRAWS, **run, rng=rngs[1])
            centers = euclidean.user_level_sco_centers(
                data, DRAWS, phase=len(steps), **run, rng=rngs[2]
            )
        lines = Lines(plan, loss, radius, seed, alone, **changes).phases(
            data, START[:d], factor, inside
        )
        found = [*ran.transpose(1, 0, 2), last, centers]
        return np.array(found), np.array([*(x for _, x in lines), lines[-1][1], lines[-1][0]])

    defaults = {"seed": Integer(0, 2**32), "examples": 5, "factor": 1.0}

    @ledger.identity("without options", mutant={"factor": 1.1}, tolerance=1e-8, **defaults)
    def simple(seed, factor):
        plan, data = small_plan((2, 1), 9.0, True), users_from(seed, 2)
        run = {"plan": plan, "loss": Huber(1.0), "start": START, "domain": Ball(0.4)}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        ran = euclidean.user_level_sco(data, DRAWS, **run, rng=rngs[0])
        centers = euclidean.user_level_sco_centers(data, DRAWS, phase=2, **run, rng=rngs[1])
        lines = Lines(plan, Huber(1.0), 0.4, seed, False).phases(data, START, factor, True)[-1]
        return np.array([centers, ran]), np.array(lines)

    far = [{"far": far, "seed": far} for far in (120, 250)]

    @ledger.identity(
        "phases 3 and 4 of a run at the parameters of Section 3, with and without a halt",
        cases=far, factor=1.0, mutant={"factor": 1.01}, method=Method.NUMERIC, tolerance=1e-6,
        end_to_end=True,
    )  # fmt: skip
    def whole(far, seed, factor):
        """Use one item for each user, as if all m items were equal."""
        m, epsilon, delta = 40_000, 1.0, 0.5
        sizes = (transcribed.fewest_users(m, epsilon, delta), m, 1, epsilon, delta, 1.0, 2.0)
        plan = printed_plan(*sizes)
        plan = replace(plan, phases=plan.phases[2:])
        phases = transcribed.euclidean_phases(*sizes)[2:]
        B, _, tau, _, c, cutoff_noise, F = transcribed.euclidean(*sizes)
        edge = math.log(4 / 3) / tau  # a user at this distance has the score F
        rngs = [np.random.default_rng(seed) for _ in range(3)]
        places = rngs[2].integers(-2, 3, (plan.n_users // B, B)) / 100
        places[:, rngs[2].permutation(B)[:far]] = edge * rngs[2].choice([-1.0, 1.0], far)
        places = places.ravel()
        run = {"plan": plan, "loss": Linear(), "start": [0.1], "domain": Ball(2.0)}
        data = places[:, None, None]
        ran = euclidean.user_level_sco(data, 1, transcript=True, **run, rng=rngs[0])
        project = transcribed.onto_box(2.0)

        def filtered(users, eta, x, s):
            chat = c + cutoff_noise * rngs[1].laplace()
            return transcribed.filtered_sgd_on_groups(
                users, x, project=lambda y: project(np.atleast_1d(y)), B=B, eta=factor * eta,
                tau=tau, F=F, chat=chat, units=rngs[1].laplace(size=len(users)),
                score_noise=lambda z: 2 * transcribed.sigma_of_scores(z, epsilon, delta),
            )  # fmt: skip

        lines = transcribed.localised(
            places, [0.1], phases, B, filtered,
            lambda sigma, size: sigma * rngs[1].normal(size=size), project,
        )  # fmt: skip
        return ran[0], np.array([x for _, x in lines])

    domain = {"ratio": Interval(16.0, 1e15, log=True), "base": math.e, "mutant": {"base": 2.0}}

    @ledger.falsify("each phase has B users, if n / B >= log(mn/delta) >= 16", **domain)
    def last_phase(ratio, base):
        return 1.0, ratio / 2 ** math.ceil(math.log(ratio) / math.log(base))

    edge = ledger.edge("logarithms are natural and at least 1")

    @edge.sweep("eta_1 at m = 1, if log 1 is 0", m=1, lhs="eta_1 / eta", rhs="any bound")
    def first_step(m):
        return (1 / math.log(m) if m > 1 else math.inf), 1e300


@statement("sco2.alg2")
def filtered_descent_lines(ledger):
    """SGD for user-level DP-SCO takes T = |D|/B steps on disjoint batches of B users. User i of
    batch t is filtered out if kappa_(t,i) + Lap(2 sigma) <= F = 3B/4, where kappa_(t,i) is the sum
    over the batch of exp(-tau norm(q_t(Z_(t,i)) - q_t(Z))), sigma = 4 sqrt(32 chat
    log(1/delta))/epsilon and chat = 10 log(nm/delta)/epsilon + Lap(4/epsilon). It halts once chat
    users were filtered out or a batch is empty; a step projects x_(t-1) - eta g_(t-1) on X, g_(t-1)
    the mean of the gradients that are left. It returns the average of x_1, ..., x_T.

    From the same random numbers, each run of the implementation gives the average iterates and the
    decisions of the printed lines, whether or not the run halts. The parameters of the filter are
    the printed ones. The lines do not say what is returned on halt. The returned value must be x_0,
    because every other value depends on the data without noise. The cutoff chat may be negative,
    but the algorithm takes the square root of chat. The scale sigma is computed from chat. So two
    runs with different chat have different noise on all scores. No proof accounts for this
    difference in the noise. Two lines compute the gradient q_t(Z). The first line computes q_t(Z)
    for all users, and the second line computes q_t(Z) for each user.
    """

    @ledger.identity("F, c, the noise of chat and sigma at chat = c", part=0.75, examples=100,
                     mutant={"part": 0.8}, extremal=[RARE], **SIZES)  # fmt: skip
    def rule(n, m, d, epsilon, delta, lipschitz, radius, part):
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        if (plan := printed_plan(*sizes)) is None:
            return None
        B, c, log = plan.batch_size, transcribed.euclidean(*sizes).c, transcribed.log
        found = [getattr(plan.rule, name) for name in ("threshold", "cutoff", "cutoff_scale")]
        root = math.sqrt(32 * c * log(1 / delta))
        lines = [part * B, 10 * log(n * m / delta) / epsilon, 4 / epsilon, 8 * root / epsilon]
        return [*found, plan.rule.scale], lines

    runs = {**RUNS, **WHOLE, "n_steps": Choice((1, 2, 4)), "threshold": Choice((2.0, 4.0, 5.5))}
    runs |= {"phase": Choice((1, 2)), "tolerance": 1e-8, "floor": 1e-6}
    ends = {"d": 2, "follows": True, "radius": 1.5, "n_steps": 4, "phase": 1}
    ends |= {"seed": 5, "alone": True, "loss": Quadratic()}
    ends = [{**ends, "cutoff": c, "threshold": F} for c in (0.5, 99.0) for F in (4.0, 9.0)]

    @ledger.identity("F", mutant={"F": 1.1}, extremal=ends, **runs)
    @ledger.identity("c", mutant={"c": 1.5}, extremal=ends, **runs)
    @ledger.identity("eta", mutant={"eta": 1.1}, extremal=ends, **runs)
    @ledger.identity("sigma", mutant={"sigma": 0.5}, extremal=ends, **runs)
    def averages(
        seed, d, cutoff, follows, radius, alone, loss, n_steps, threshold, phase, **changes
    ):  # fmt: skip
        """Return the averages and the decisions; 9 marks decisions that are not made."""
        steps = (n_steps, 1) if phase == 1 else (1, n_steps)
        plan, data = small_plan(steps, cutoff, follows, threshold), users_from(seed, d)
        run = {"plan": plan, "loss": loss, "start": START[:d], "domain": Ball(radius)}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        with draws_alone(alone, 6 * (d + 2)):
            ran = euclidean.filtered_sgd(data, DRAWS, phase=phase, **run, rng=rngs[0])
            made = euclidean.filter_decisions(data, DRAWS, phase=phase, **run, rng=rngs[1])
        size = plan.phases[phase - 1].step
        lines = Lines(plan, loss, radius, seed, alone, **changes).averages(
            data, n_steps, size, [START[:d]] * DRAWS
        )
        decided = np.full(made.shape, 9.0)
        for draw, (_, decisions) in enumerate(lines):
            last = len(decisions)  # the implementation decides about the rest of the last batch
            made[draw, last : -(-last // 6) * 6] = 9.0
            decided[draw, :last] = decisions
        found = np.hstack([ran, np.nan_to_num(made, nan=9.0)])
        return found, np.hstack([np.array([x for x, _ in lines]), decided])

    @ledger.identity("without options", mutant={"eta": 1.1}, seed=Integer(0, 2**32), eta=1.0,
                     examples=5, tolerance=1e-8)  # fmt: skip
    def simple(seed, eta):
        plan, data = small_plan((2, 1), 99.0, True), users_from(seed, 2)
        run = {"plan": plan, "loss": Huber(1.0), "start": START, "domain": Ball(0.4)}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        ran = euclidean.filtered_sgd(data, 1, **run, rng=rngs[0])[0]
        made = euclidean.filter_decisions(data, 1, **run, rng=rngs[1])[0]
        step = plan.phases[0].step
        x, decided = Lines(plan, Huber(1.0), 0.4, seed, False, eta=eta).averages(
            data, 2, step, [START]
        )[0]
        return np.r_[ran, made[: len(decided)]], np.r_[x, decided]

    @ledger.identity(
        "without noise, where scores equal F and counts equal chat", F=[1.9, 2.0, 3.0, 4.0],
        cutoff=[1.0, 2.0, 2.5, 4.0], samples=[None, 6], more=0.0, mutant={"more": 1.0},
    )  # fmt: skip
    def ties(F, cutoff, samples, more):
        """Let four users in each batch of six agree, and two other users, far away."""
        data = np.tile([[[0.1]]] * 4 + [[[1e4]]] * 2, (3, 1, 1))
        rule = Filter(1.0, F, 1.0, cutoff, 1.0, samples=samples)
        plan = Plan(6, (Phase(18, 3, 0.5, 1.0),), rule, 1e5, 1.0, 1.0, 0.1)
        run = {"plan": plan, "loss": Linear(), "start": [0.3], "domain": Ball(1.0)}
        found = euclidean.filtered_sgd(data, 1, **run, rng=Silent())[0]
        lines, _ = transcribed.filtered_sgd(
            data, [0.3], gradient=lambda x, z: -z, project=transcribed.onto_ball(1.0), B=6,
            eta=0.5, tau=1.0, F=F + more, c=cutoff, cutoff_noise=1.0,
            score_noise=lambda chat: 1.0, laplace=lambda scale: 0.0,
        )  # fmt: skip
        return found, lines

    places = {"q": Array(Interval(-4.0, 4.0), ("s", "b", "d")), "s": Choice((1, 3))}
    places |= {"b": Choice((2, 7, 40)), "d": Choice((1, 2, 3)), "seed": Integer(0, 2**32)}
    places |= {"tau": Interval(0.01, 9.0, log=True), "unit": 1.0, "mutant": {"unit": 0.9}}
    places |= {"parts": Choice((None, 7, 99))}
    large = {"s": 1, "seed": 1, "tau": 2.0, "parts": None}
    large["q"] = np.random.default_rng(0).normal(size=(1, 900, 1)) * 50
    large = [large, {**large, "q": large["q"].reshape(1, 300, 3)}]

    @ledger.identity("kappa", examples=100, extremal=large, tolerance=1e-7, **places)
    def kappas(q, seed, tau, parts, unit):
        """Let the implementation divide small batches into parts, as it divides large batches."""
        with in_parts(parts):
            ran = concentration_scores(q, temperature=tau)
        apart = [np.sqrt(((x[:, None] - x) ** 2).sum(axis=2)) for x in q]
        return ran, np.array([np.exp(-tau * unit * gaps).sum(axis=1) for gaps in apart])

    alike = {"q": np.ones((3, 7, 2)), "seed": 1, "tau": 1.0, "parts": None, "level": 0.75}
    alike = [{**alike, "seed": seed, "level": level} for seed in (1, 2) for level in (0.75, 1.5)]

    @ledger.identity(
        "kappa + nu > F", examples=100, extremal=alike, level=Choice((0.75, 1.5)), **places
    )
    def passed(q, seed, tau, parts, level, unit):
        """Choose noise that brings most scores near F, on both sides."""
        rng, (s, b, _) = np.random.default_rng(seed), q.shape
        apart = [np.sqrt(((x[:, None] - x) ** 2).sum(axis=2)) for x in q]
        kappa = np.array([np.exp(-tau * unit * gaps).sum(axis=1) for gaps in apart])
        F = level * b
        gaps = np.array([-0.1, 0.1, -5.0, 5.0, -4e-10 * b, 4e-10 * b])
        nu = (F - kappa + rng.choice(gaps, kappa.shape)) / unit
        if s == 1:
            nu = np.vstack([nu, rng.laplace(size=(2, b)) * b / 4])
        with in_parts(parts):
            ran = pass_filter(q, nu, temperature=tau, threshold=F)
        return ran, ~(kappa + nu <= F)

    @ledger.sweep(
        "chat, whose root is taken, is negative in at most delta / 24 of the runs",
        log=[16.0, 30.0, 100.0], epsilon=[0.1, 1.0], constant=10.0, mutant={"constant": 3.0},
    )  # fmt: skip
    def negative(log, epsilon, constant):
        c = constant * log / epsilon
        return math.exp(-c * epsilon / 4) / 2, math.exp(-log) / 24  # delta >= e^-log
