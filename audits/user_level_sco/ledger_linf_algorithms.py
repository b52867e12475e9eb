"""User-level DP-SCO: Algorithms 5 and 6, and for which numbers of users they are defined."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np

from algorithms.user_level_sco import coordinatewise, printed
from algorithms.user_level_sco.domains import Box
from algorithms.user_level_sco.losses import Linear, Quadratic, VaryingQuadratic
from algorithms.user_level_sco.plans import Phase, Plan, PlanWarning, Test
from audits.user_level_sco import transcribed
from audits.user_level_sco.small_runs import DRAWS, Silent, draws_alone, gradient_of, laplace_units
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Method

RULE = Test(temperature=1.0, threshold=4.0, epsilon=2.0, sensitivity=1.0, clip=0.2)
BENT = VaryingQuadratic(1.0)
"""Loss of items (z, h) with curvatures h from 0 to 1."""

START = np.array([0.2, -0.1])
RUNS = {"seed": Integer(0, 2**32), "d": Choice((1, 2)), "clip": Choice((0.0, 0.1, 0.5))}
RUNS |= {"radius": Choice((0.3, 2.0)), "level": Choice((1.0, 4.0, 4.4, 9.0)), "examples": 40}
RUNS |= {"trim": Choice((None, 0, 1, 2)), "per_step": Choice((True, False))}
RUNS |= {"sensitivity": Choice((1.0, 2.0)), "tolerance": 1e-8, "floor": 1e-6}
RUNS |= {"alone": Choice((True, False)), "loss": Choice((BENT, Quadratic()))}
WHOLE = {"eta": 1.0, "tau": 1.0, "noise": 1.0, "v": 1.0, "late": 0}


def users_from(seed, d, loss=BENT):
    """Return 30 users with two items (z, h), or z; some users are far from the others."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(30, 2, d)) * np.where(rng.random((30, 1, 1)) < 0.2, 3.0, 0.4)
    return np.concatenate([places, rng.random((30, 2, 1))], axis=2) if loss == BENT else places


def small_plan(steps, clip, level, trim, per_step, sensitivity):
    """Return phases of 5 users in each step, whose scores are compared with the level."""
    kind = {"statistic": "median"} if trim is None else {"statistic": "trimmed_mean", "trim": trim}
    rule = replace(RULE, clip=clip, threshold=level, per_step=per_step, epsilon=4.0, **kind)
    rule = replace(rule, sensitivity=sensitivity)
    phases = tuple(Phase(5 * t, t, 0.5 / 2**s, 0.3 / (s + 1)) for s, t in enumerate(steps))
    return Plan(5, phases, rule, 99.0, 1.0, 1.0, 0.1)


class Lines:
    """Algorithms 5 and 6 as printed, on the random numbers of a run of `coordinatewise`.

    The factors make mutants.
    """

    def __init__(self, plan, loss, radius, seed, alone, eta=1.0, tau=1.0, noise=1.0, v=1.0, late=0):
        self.plan, self.project = plan, transcribed.onto_box(radius)
        self.gradient = transcribed.bent_gradient if loss == BENT else gradient_of(loss)
        self.rng, self.alone = np.random.default_rng(seed), alone
        self.eta, self.tau, self.noise, self.v, self.late = eta, tau, noise, v, late

    def outputs(self, users, steps, step, starts):
        """Run Algorithm 6 from each of the starting points."""
        rule, B = self.plan.rule, self.plan.batch_size
        alone = self.alone and any(x is not starts[0] for x in starts)
        sizes = [1] * (1 + steps * (1 + rule.per_step))
        units = self.noise * laplace_units(self.rng, DRAWS, sizes, alone)
        users = np.roll(users[: steps * B], self.late, axis=0)
        trim = rule.trim if rule.statistic == "trimmed_mean" else None
        return [
            transcribed.robust_sgd(
                users, x, B=B, eta=self.eta * step,
                gradient=self.gradient, project=self.project, trim=trim,
                tau=self.tau * rule.temperature, varsigma=rule.clip, v=self.v * rule.threshold,
                epsilon=8.0, laplace=laplace, sensitivity=rule.sensitivity,
                per_step=rule.per_step,
            )
            for x, laplace in zip(starts, transcribed.streams(units), strict=True)
        ]  # fmt: skip

    def phases(self, users, start, factor, project):
        """Run Algorithm 5 in all draws, and return xbar_s and x_s of each phase."""
        x, used, found = [start] * DRAWS, 0, []
        for phase in self.plan.phases:
            own = users[used : used + phase.n_users]
            used += phase.n_users
            means = [one[0] for one in self.outputs(own, phase.n_steps, phase.step, x)]
            zeta = factor * phase.sigma * self.rng.normal(size=(DRAWS, len(start)))
            x = [self.project(y) if project else y for y in means + zeta]
            found.append((np.array(means), np.array(x)))
        return found


# --- Algorithms 5 and 6 ---


@statement("sco2.alg6")
def robust_descent(ledger):
    """SGD for user-level DP-SCO divides D into B subsets of T = |D|/B users and takes T steps, each
    on B users, one of each subset: g_(t-1) is Algorithm 7 on their average gradients at x_(t-1)
    with threshold 1/tau, and x_t projects x_(t-1) - eta g_(t-1) on X. Then it runs Algorithm 8 on
    the same gradients; if a_t = top for all t it returns the average of x_1, ..., x_T, and else the
    initial point x_0.

    From the same random numbers, the implementation gives the iterates, the scores and the output
    of the printed lines, whether or not a test fails. Taking one user from each of B subsets gives
    B users in another order. The average is the average of x_1, ..., x_T. The number T = abs(D)/B
    need not be an integer. Two parameters of Algorithm 8 are faulty. The parameter D_t is
    undefined, and the parameter delta/(2Tmnd) is unused. All T steps are made before the first
    test, so the work after a failed test is discarded. The printed threshold is used for scores and
    for gradients. For gradients, the threshold is 1/tau.
    """
    runs = {**RUNS, **WHOLE, "n_steps": Choice((1, 2, 4)), "phase": Choice((1, 2))}
    ends = {"seed": 3, "d": 2, "clip": 0.1, "radius": 2.0, "trim": 1, "sensitivity": 2.0}
    ends |= {"n_steps": 4, "phase": 2, "alone": False, "loss": Quadratic()}
    ends = [{**ends, "per_step": each, "level": v} for each in (True, False) for v in (1.0, 9.0)]

    @ledger.identity("eta", mutant={"eta": 1.1}, extremal=ends, **runs)
    @ledger.identity("tau", mutant={"tau": 1.2}, extremal=ends, **runs)
    @ledger.identity("the noise of the test", mutant={"noise": 3.0}, extremal=ends, **runs)
    @ledger.identity("v", mutant={"v": 9.0}, extremal=ends, **runs)
    def lines(
        seed, d, clip, radius, level, trim, per_step, sensitivity, alone, loss, n_steps, phase,
        **changes,
    ):  # fmt: skip
        steps = (n_steps, 1) if phase == 1 else (1, n_steps)
        plan = small_plan(steps, clip, level, trim, per_step, sensitivity)
        data, start = users_from(seed, d, loss), START[:d]
        run = {"plan": plan, "loss": loss, "start": start, "domain": Box(radius), "phase": phase}
        ran = coordinatewise.robust_sgd(data, DRAWS, **run, rng=np.random.default_rng(seed))
        scores, iterates = coordinatewise.concentration_profile(data, **run)
        size, starts = plan.phases[phase - 1].step, [start] * DRAWS
        own = Lines(plan, loss, radius, seed, alone, **changes).outputs(data, n_steps, size, starts)
        found = [*ran.ravel(), *scores, *iterates.ravel()]
        outputs = [x for one in own for x in one[0]]
        return np.array(found), np.array([*outputs, *own[0][2], *np.ravel(own[0][1])])

    @ledger.identity("without options", mutant={"eta": 1.1}, seed=Integer(0, 2**32), eta=1.0,
                     examples=5, tolerance=1e-8)  # fmt: skip
    def simple(seed, eta):
        phases, rule = (Phase(10, 2, 0.5, 1.0),) * 2, replace(RULE, epsilon=4.0)
        plan = Plan(5, phases, rule, 99.0, 1.0, 1.0, 0.1)
        data, start = users_from(seed, 2), START
        run = {"plan": plan, "loss": BENT, "start": start, "domain": Box(2.0)}
        ran = coordinatewise.robust_sgd(data, DRAWS, **run, rng=np.random.default_rng(seed))
        scores, iterates = coordinatewise.concentration_profile(data, **run)
        own = Lines(plan, BENT, 2.0, seed, False, eta=eta).outputs(data, 2, 0.5, [start] * DRAWS)
        found = [*ran.ravel(), *scores, *iterates.ravel()]
        outputs = [x for one in own for x in one[0]]
        return np.array(found), np.array([*outputs, *own[0][2], *np.ravel(own[0][1])])

    @ledger.identity(
        "without noise, where scores equal v", v=[4.9, 5.0, 5.1], per_step=[True, False], more=0.0,
        mutant={"more": 0.15},
    )  # fmt: skip
    def ties(v, per_step, more):
        """Let all users agree, so that the score is B = 5."""
        data = np.tile([0.1, 0.5], (10, 1, 1))
        rule = replace(RULE, threshold=v, per_step=per_step)
        plan = Plan(5, (Phase(10, 2, 0.5, 1.0),), rule, 9.0, 1.0, 1.0, 0.1)
        run = {"plan": plan, "loss": BENT, "start": [0.3], "domain": Box(2.0)}
        lines, *_ = transcribed.robust_sgd(
            data, [0.3], gradient=transcribed.bent_gradient, project=transcribed.onto_box(2.0),
            B=5, eta=0.5, tau=1.0, varsigma=0.2, v=v + more, epsilon=4.0, per_step=per_step,
            laplace=lambda scale: 0.0,
        )  # fmt: skip
        return coordinatewise.robust_sgd(data, 1, **run, rng=Silent())[0], lines


SIZES = {"n": Integer(10**5, 10**9), "m": Integer(2, 10**6), "d": Integer(1, 100)}
SIZES |= {"delta": Interval(1e-9, 0.5, log=True), "epsilon": Interval(0.2, 1.0)}
SIZES |= {"lipschitz": Interval(0.1, 9.0), "radius": Interval(0.1, 9.0)}
PRINTED = {**SIZES, "statistic": Choice(("median", "trimmed_mean", None))}
PRINTED |= {"deviation": Interval(0.1, 9.0)}
PRINTED |= {"temperature": Choice(("inverse", "printed", None)), "noise": Interval(0.1, 9.0)}


def printed_plan(n, m, d, epsilon, delta, lipschitz, radius, **options):
    """Return the plan of `printed`; options that are None get their default."""
    options |= {"epsilon": epsilon, "delta": delta, "lipschitz": lipschitz, "radius": radius}
    options = {name: value for name, value in options.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PlanWarning)
        return printed.coordinatewise(n, m, d, **options)


@statement("sco2.alg5")
def localisation(ledger):
    """Localization for user-level DP-SCO runs S = ceil(log n/B) phases. Phase s draws n_s = n/2^s
    unused users and runs Algorithm 6 with eta_s = (log^(-s) m) eta from x_(s-1); x_s is its output
    plus N(0, sigma_s^2 I_d) with sigma_s = O(eta_s G sqrt(d log(exp(epsilon)/delta)
    log(nmd))/(sqrt(m) epsilon)). It returns the final x_s.

    From the same random numbers, the implementation gives the same results as the printed lines.
    This is also true for a whole run at the parameters of Theorem C.2. The lines leave some points
    open. The base of the logarithm in S is not given. "Return x_s" should be "return x_S". The
    numbers n/2^s and T need not be integers. The last phase may have fewer than B users
    (sco2.thmC2.defined). At m = 1 and m = 2, steps and noise do not shrink, because log m <= 1
    (sco2.thmC2.util). The point x_s is not projected on X. But the next phase starts at x_s, and f
    is assumed to have its properties only on X.
    """
    few = {"n": 9083, "m": 2, "d": 1, "epsilon": 1.0, "delta": 0.1, "lipschitz": 1.0}
    few |= {"radius": 2.0, "statistic": None, "deviation": 1.0, "temperature": None, "noise": 1.0}

    @ledger.identity(
        "phases, steps and noise, without phases of less than a batch", power=0.0, examples=100,
        mutant={"power": 0.1}, extremal=[few, {**few, "n": 3000}], **PRINTED,
    )  # fmt: skip
    def parameters(
        n, m, d, epsilon, delta, lipschitz, radius, noise, power, statistic, deviation, temperature
    ):  # fmt: skip
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        options = {"statistic": statistic, "deviation_constant": deviation}
        plan = printed_plan(*sizes, noise_constant=noise, temperature=temperature, **options)
        found = [[p.n_steps, p.n_users, p.step, p.sigma] for p in plan.phases]
        B = transcribed.coordinatewise(*sizes).B
        lines = [
            [transcribed.batches(n_s, B), transcribed.batches(n_s, B) * B, eta, sigma * m**power]
            for n_s, eta, sigma in transcribed.coordinatewise_phases(*sizes, noise)
            if n_s >= B
        ]
        same = len(found) == len(lines)
        return (found, lines) if same else ([1.0], [2.0])

    @ledger.identity(
        "B, eta, tau, v and the test", root=0.5, mutant={"root": 0.6}, examples=100, **PRINTED
    )
    def tested(
        n, m, d, epsilon, delta, lipschitz, radius, noise, statistic, deviation, temperature, root
    ):  # fmt: skip
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        options = {"statistic": statistic, "deviation_constant": deviation}
        plan = printed_plan(*sizes, noise_constant=noise, temperature=temperature, **options)
        B, eta, near, _, v = transcribed.coordinatewise(*sizes)
        near *= (deviation or 1.0) * m ** (root - 0.5)
        tau = near if temperature == "printed" else 1 / near
        trim = B // 3 if statistic == "trimmed_mean" else 0
        rule = plan.rule
        found = [plan.batch_size, plan.phases[0].step, rule.temperature, rule.clip, rule.threshold]
        lines = [B, eta / transcribed.log(m), tau, 1 / tau, v]
        found += [rule.epsilon, rule.sensitivity, rule.trim, rule.per_step, plan.dimension]
        lines += [epsilon / 2, 1.0, trim, False, d]
        found += [rule.statistic == (statistic or "median"), plan.epsilon, plan.delta]
        found += [plan.lipschitz, plan.smoothness]
        return found, [*lines, True, epsilon, delta, lipschitz, 0.0]

    steps = {"steps": Choice(((3,), (2, 1), (2, 1, 1))), "factor": Choice((1.0, 2.5))}
    steps |= {"inside": Choice((True, False))}

    @ledger.identity("x_1, ..., x_S and xbar_s", mutant={"late": 1}, **RUNS, **WHOLE, **steps)
    def iterates(
        seed, d, clip, radius, level, trim, per_step, sensitivity, alone, loss, steps, factor,
        inside, **changes,
    ):  # fmt: skip
        plan = small_plan(steps, clip, level, trim, per_step, sensitivity)
        data, start = users_from(seed, d, loss), START[:d]
        run = {"plan": plan, "loss": loss, "start": start, "domain": Box(radius)}
        run |= {"project": inside, "noise_multiplier": factor, "unsafe": not inside}
        rngs = [np.random.default_rng(seed) for _ in range(3)]
        algorithm = coordinatewise.user_level_sco_linf
        with draws_alone(alone, 5 * d):
            ran = algorithm(data, DRAWS, transcript=True, **run, rng=rngs[0])
            last = algorithm(data, DRAWS, **run, rng=rngs[1])
            centers = coordinatewise.user_level_sco_linf_centers(
                data, DRAWS, phase=len(steps), **run, rng=rngs[2]
            )
        lines = Lines(plan, loss, radius, seed, alone, **changes).phases(
            data, start, factor, inside
        )
        found = [*ran.transpose(1, 0, 2), last, centers]
        return np.array(found), np.array([*(x for _, x in lines), lines[-1][1], lines[-1][0]])

    @ledger.identity("without options", mutant={"factor": 1.1}, seed=Integer(0, 2**32), factor=1.0,
                     examples=5, tolerance=1e-8)  # fmt: skip
    def simple(seed, factor):
        plan = small_plan((2, 1), 0.1, 1.0, None, False, 1.0)
        data, start = users_from(seed, 2), START
        run = {"plan": plan, "loss": BENT, "start": start, "domain": Box(0.3)}
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        ran = coordinatewise.user_level_sco_linf(data, DRAWS, **run, rng=rngs[0])
        centers = coordinatewise.user_level_sco_linf_centers(
            data, DRAWS, phase=2, **run, rng=rngs[1]
        )
        lines = Lines(plan, BENT, 0.3, seed, False).phases(data, start, factor, True)[-1]
        return np.array([centers, ran]), np.array(lines)

    small = {"m": 50, "epsilon": 1.0, "delta": 0.5, "lipschitz": 1.0, "radius": 2.0}

    @ledger.identity(
        "a run at the parameters of Theorem C.2", seed=[1, 2, 3], apart=[0.0, 0.18, 0.5],
        factor=1.0, mutant={"factor": 1.01}, method=Method.NUMERIC, tolerance=1e-7,
        end_to_end=True, **small,
    )  # fmt: skip
    def whole(seed, apart, factor, m, epsilon, delta, lipschitz, radius):
        """Use one item for each user. A part of the users is at a distance `apart` / tau."""
        sizes = (8000, m, 1, epsilon, delta, lipschitz, radius)
        plan = printed_plan(*sizes)
        B, _, deviation, _, v = transcribed.coordinatewise(*sizes)
        rngs = [np.random.default_rng(seed) for _ in range(3)]
        places = 0.02 * rngs[2].normal(size=plan.n_users)
        places[rngs[2].random(len(places)) < 0.45] += min(0.8, apart * deviation)
        data = places[:, None, None]
        run = {"plan": plan, "loss": Linear(), "start": [0.1], "domain": Box(radius)}
        ran = coordinatewise.user_level_sco_linf(data, 1, transcript=True, **run, rng=rngs[0])

        def robust(users, eta, x, s):
            found, scores = [], []
            for t in range(len(users) // B):
                q = -users[t * B : (t + 1) * B]
                g = transcribed.robust_gradient(q[:, None], deviation)
                x = np.clip(x - factor * eta * g, -radius, radius)
                found.append(x)
                scores.append(np.exp(-abs(q[:, None] - q) / deviation).sum() / B)
            units = rngs[1].laplace(size=1 + len(found))
            answers = transcribed.concentration_test(
                scores, epsilon, v, transcribed.streams([units])[0]
            )
            return sum(found) / len(found) if all(answers) else starts[s - 1]

        starts = [np.array([0.1])]
        phases = transcribed.coordinatewise_phases(*sizes)

        def noisy(sigma, size):
            return sigma * rngs[1].normal(size=size)

        def inside(x):
            starts.append(transcribed.onto_box(radius)(x))
            return starts[-1]

        lines = transcribed.localised(places, starts[0], phases, B, robust, noisy, inside)
        return ran[0], np.array([x for _, x in lines])


@statement("sco2.thmC2.defined", expected="refuted")
def enough_users(ledger):
    """The hypothesis n >= log^2(nd/delta)/epsilon suffices for Algorithm 5 to be run with B = 100
    log(mnd/delta)/epsilon: its phases s = 1, ..., S = ceil(log n/B) of n_s = n/2^s users hold at
    least one batch of B users each.

    The hypothesis omits the factor 100 and the number m. At epsilon = 1, delta = 0.1, d = 1 and m =
    2, the hypothesis admits 50 users, but B = 691. The hypothesis would be enough only if
    log(nd/delta) were 100. Even if n >= 2B, the last phase may have fewer users than a batch. If
    the logarithm is natural, S = ceil(log(n/B)) gives n/2^S < B at n/B = 7.5. If the logarithm is
    binary, n/2^S is always at most B. The text does not say what Algorithm 6 does for T = 0.
    """

    @ledger.sweep(
        "50 users of 2 items", n=50, m=2, d=1, delta=0.1, epsilon=1.0, lhs="B",
        rhs="n/2, the users of the first phase",
    )  # fmt: skip
    def first_phase(n, m, d, delta, epsilon):
        if n < math.log(n * d / delta) ** 2 / epsilon:
            return None
        return 100 * math.log(m * n * d / delta) / epsilon, n / 2

    @ledger.sweep(
        "9083 users, B = 1211", n=9083, m=2, delta=0.1, lhs="B", rhs="n/2^S, natural logarithm"
    )
    def last_phase(n, m, delta):
        b = 100 * math.log(m * n / delta)
        return b, n / 2 ** math.ceil(math.log(n / b))

    repair = ledger.repair("If n >= 2B and S = floor(log_2(n/B)), then S >= 1 and n/2^S >= B")

    @repair.falsify(
        n=Integer(2, 10**9), b=Integer(1, 10**6), more=0, mutant={"more": 1},
        extremal=[{"n": 2, "b": 1}, {"n": 2**20, "b": 4}],
    )  # fmt: skip
    def corrected(n, b, more):
        if n < 2 * b:
            return None
        return b, n / 2 ** max(1, math.floor(math.log2(n / b)) + more)

    least = {}
    for epsilon in (1.0, 0.1):
        for m in (1, 2, 10, 100):
            n = 2
            while n < 2 * math.ceil(100 * math.log(m * n / 1e-6) / epsilon):
                n = 2 * math.ceil(100 * math.log(m * n / 1e-6) / epsilon)
            least[epsilon, m] = n
    ledger.note(
        "The smallest n with n >= 2B at d = 1, delta = 1e-6 and m = 1, 2, 10, 100: "
        + "; ".join(
            f"{', '.join(str(least[epsilon, m]) for m in (1, 2, 10, 100))} at epsilon = {epsilon:g}"
            for epsilon in (1.0, 0.1)
        )
        + "."
    )
    ledger.consequence(
        "Let n be between log(nd/delta)^2/epsilon and about 200 log(mnd/delta)/epsilon. Then the "
        "algorithm of the theorem is not defined.",
        harm="the wording",
    )
