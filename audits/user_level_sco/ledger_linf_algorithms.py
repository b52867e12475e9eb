"""User-level DP-SCO: Algorithms 5 and 6, and for which numbers of users they are defined."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from algorithms.user_level_sco import coordinatewise, printed
from algorithms.user_level_sco.domains import Box
from algorithms.user_level_sco.losses import VaryingQuadratic
from algorithms.user_level_sco.plans import Phase, Plan, Test
from audits.user_level_sco.conventions import UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array

RULE = Test(temperature=1.0, threshold=4.0, epsilon=2.0, sensitivity=1.0, clip=0.2)
BENT = {"loss": VaryingQuadratic(1.0), "domain": Box(0.7), "start": np.array([0.2])}


# --- Algorithms 5 and 6 ---


@statement("sco2.alg6")
def robust_descent(ledger):
    """SGD for user-level DP-SCO divides D into B subsets of T = |D|/B users and takes T steps, each
    on B users, one of each subset: g_(t-1) is Algorithm 7 on their average gradients at x_(t-1)
    with threshold 1/tau, and x_t projects x_(t-1) - eta g_(t-1) on X. Then it runs Algorithm 8 on
    the same gradients; if a_t = top for all t it returns the average of x_1, ..., x_T, and else the
    initial point x_0.

    The implementation computes the same iterates and the same average as the printed lines. Taking
    one user from each of B subsets gives B users in another order. The average is the average of
    x_1, ..., x_T. The number T = abs(D)/B need not be an integer. Two parameters of Algorithm 8
    are faulty. The parameter D_t is undefined, and the parameter delta/(2Tmnd) is unused. All T
    steps are made before the first test, so the work after a failed test is discarded. The printed
    threshold is used for scores and for gradients. For gradients, the threshold is 1/tau.
    """

    @ledger.identity(
        "line by line, if all tests are passed", data=Array(UNIT, (15, 2, 2)), first=1,
        step=Interval(0.1, 2.0), clip=Interval(0.0, 0.5), mutant={"first": 0},
    )  # fmt: skip
    def lines(data, step, clip, first):
        data = np.concatenate([data[..., :1], abs(data[..., 1:])], axis=2)
        rule = replace(RULE, threshold=1e-300, epsilon=1e300, clip=clip)
        plan = Plan(5, (Phase(15, 3, step, 1.0),), rule, 9.0, 1.0, 1.0, 0.1)
        ran = coordinatewise.robust_sgd(data, 1, plan=plan, **BENT, rng=np.random.default_rng(0))
        x = [0.2]
        for t in range(3):
            q = [np.mean([h * (x[-1] - z) for z, h in user]) for user in data[5 * t : 5 * t + 5]]
            g = max(np.median(q) - clip, min(np.mean(q), np.median(q) + clip))
            x.append(max(-0.7, min(0.7, x[-1] - step * g)))
        return ran[0, 0], np.mean(x[first : 3 + first])


@statement("sco2.alg5")
def localisation(ledger):
    """Localization for user-level DP-SCO runs S = ceil(log n/B) phases. Phase s draws n_s = n/2^s
    unused users and runs Algorithm 6 with eta_s = (log^(-s) m) eta from x_(s-1); x_s is its output
    plus N(0, sigma_s^2 I_d) with sigma_s = O(eta_s G sqrt(d log(exp(epsilon)/delta)
    log(nmd))/(sqrt(m) epsilon)). It returns the final x_s.

    From the same random numbers, the implementation gives the same results as the printed lines.
    The lines leave some points open. The base of the logarithm in S is not given. "Return x_s"
    should be "return x_S". The numbers n/2^s and T need not be integers. The last phase may have
    fewer than B users (sco2.thmC2.defined). At m = 1 and m = 2, steps and noise do not shrink,
    because log m <= 1 (sco2.thmC2.util). The point x_s is not projected on X. But the next phase
    starts at x_s, and f is assumed to have its properties only on X.
    """
    sizes = {"n": Integer(10**5, 10**9), "m": Integer(3, 10**6), "d": Integer(1, 100)}
    sizes |= {"delta": Interval(1e-9, 0.1, log=True), "epsilon": Interval(0.2, 1.0)}

    @ledger.identity("phases, steps and noise", power=1.0, mutant={"power": 2.0}, **sizes)
    def parameters(n, m, d, delta, epsilon, power):
        plan = printed.coordinatewise(
            n, m, d, epsilon=epsilon, delta=delta, lipschitz=2.0, radius=3.0
        )
        b, logs = plan.batch_size, math.log(n * m * d)
        eta = math.sqrt(m) * min(b / math.sqrt(n), epsilon / math.sqrt(-math.log(delta) * d * logs))
        found, lines = [], []
        for s, phase in enumerate(plan.phases, 1):
            step = 1.5 * eta / math.log(m) ** (power * s)
            square = d * (epsilon - math.log(delta)) * logs / m
            found.append([phase.n_steps, phase.step, phase.sigma])
            lines.append([n // 2**s // b, step, 2 * step * math.sqrt(square) / epsilon])
        return found, lines

    @ledger.identity(
        "a run", data=Array(UNIT, (15, 1, 2)), seed=Integer(0, 2**32), again=0, mutant={"again": 5}
    )
    def run(data, seed, again):
        data = np.concatenate([data[..., :1], abs(data[..., 1:])], axis=2)
        phases = (Phase(10, 2, 0.4, 0.3), Phase(5, 1, 0.2, 0.1))
        plan = Plan(5, phases, RULE, 9.0, 1.0, 1.0, 0.1)
        rngs = [np.random.default_rng(seed) for _ in range(2)]
        ran = coordinatewise.user_level_sco_linf(data, 1, plan=plan, **BENT, rng=rngs[0])
        x = BENT["start"]
        for s, own in enumerate((data, np.roll(data, again - 10, axis=0)), 1):
            options = {**BENT, "start": x, "plan": plan, "phase": s, "rng": rngs[1]}
            average = coordinatewise.robust_sgd(own, 1, **options)
            noise = rngs[1].normal(scale=phases[s - 1].sigma, size=(1, 1))
            x = BENT["domain"].project(average + noise)[0]
        return ran[0], x


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
