"""User-level DP-SCO: Algorithms 1 and 2, the parameters of Section 3, footnote 3, Section 4.1."""

from __future__ import annotations

import math

import numpy as np

from algorithms.user_level_sco import euclidean, printed
from algorithms.user_level_sco.domains import Ball
from algorithms.user_level_sco.losses import Huber
from algorithms.user_level_sco.plans import Filter, Phase, Plan
from algorithms.user_level_sco.scores import concentration_scores
from audits.user_level_sco.conventions import SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

# --- the algorithms, line by line ---


def sgd_of_the_paper(data, phase, plan, loss, x0, rng, *, late=0.0, mean_of=None, first=0):
    """Run Algorithm 2 once, user by user, and return x_0 if the run halts.

    The keyword arguments make mutants.
    """
    rule, batch, domain = plan.rule, plan.batch_size, Ball(1.5)
    c_hat = rule.cutoff + late + rng.laplace(scale=rule.cutoff_scale, size=1)[0]
    scale = rule.scale * math.sqrt(max(c_hat - late, 0.0) / rule.cutoff)
    x, total, count = np.asarray(x0), np.zeros(len(x0)), 0
    halted = count >= c_hat
    for t in range(phase.n_steps):
        nu = scale * rng.laplace(size=(1, batch))[0]
        if halted:  # draws after a halt are discarded
            continue
        q = loss.gradients(x[None], data[t * batch : (t + 1) * batch])[0]
        kappa = np.exp(-rule.temperature * np.linalg.norm(q[:, None] - q, axis=2)).sum(axis=1)
        kept = ~(kappa + nu <= rule.threshold)
        count += (~kept).sum()
        halted = count >= c_hat or not kept.any()
        if halted:
            continue
        total += x if first else 0.0
        g = q.mean(axis=0) if mean_of == "all" else q[kept].mean(axis=0)
        x = domain.project((x - phase.step * g)[None])[0]
        total += 0.0 if first else x
    return np.asarray(x0) if halted else total / phase.n_steps


SMALL = {"seed": Integer(0, 2**32), "n_steps": Choice((1, 2, 3)), "cutoff": Choice((2.0, 6.0))}
SMALL |= {"examples": 60}


def users_of(seed):
    return np.random.default_rng(seed).normal(size=(30, 2, 2))


def small_plan(n_steps, cutoff):
    rule = Filter(0.8, 4.0, 0.7, cutoff, 2.0, scale_follows_cutoff=True)
    phases = tuple(Phase(6 * t, t, 0.4 / 2**s, 0.5 / (s + 1)) for s, t in ((0, n_steps), (1, 1)))
    return Plan(6, phases, rule, 9.0, 1.0, 1.0, 0.1)


RUN = {"loss": Huber(1.0), "start": [0.1, -0.2], "domain": Ball(1.5)}


@statement("sco2.alg1")
def localisation_lines(ledger):
    """User-level DP-SCO runs S = ceil(log(n/B)) phases. Phase s takes n_s = n/2^s unused users and
    runs Algorithm 2 with learning rate eta_s = eta/log^s m from x_(s-1); x_s is its output plus
    N(0, sigma_s^2 I_d) with sigma_s = O(eta_s G sqrt(log(1/delta) log(nmd))/(B sqrt(m) epsilon)).
    It returns x_S.

    From the same random numbers, each run of the implementation gives the iterates of the printed
    lines. The printed lines do not specify four points. The constant of sigma_s is not given, and
    every constant is too small (sco2.thm8.priv). At m = 1, log m = 0 makes eta_s = eta / 0. The
    base of the logarithm in S is not given. Only the natural logarithm leaves B users in each
    phase. The point x_s, the start of phase s + 1, may lie outside of X. The S phases use n_s = n /
    2^s users each, so n / 2^S users are never used.
    """

    @ledger.falsify("x_1 and x_2", again=0, mutant={"again": 1}, **SMALL)
    def phases(seed, n_steps, cutoff, again):
        plan, data = small_plan(n_steps, cutoff), users_of(seed)
        rng, x, used, found = np.random.default_rng(seed), RUN["start"], 0, []
        for phase in plan.phases:
            own = data[used : used + phase.n_users]
            used += 0 if again else phase.n_users
            average = sgd_of_the_paper(own, phase, plan, RUN["loss"], x, rng)
            x = RUN["domain"].project(average[None] + rng.normal(scale=phase.sigma, size=(1, 2)))[0]
            found.append(x)
        ran = euclidean.user_level_sco(
            data, 1, plan=plan, transcript=True, **RUN, rng=np.random.default_rng(seed)
        )
        return np.abs(np.array(found) - ran[0]).max(), 1e-9

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

    From the same random numbers, each run of the implementation gives the average iterates of the
    printed lines. The lines do not say what is returned on halt. The returned value must be x_0,
    because every other value depends on the data without noise. The cutoff chat may be negative,
    but the algorithm takes the square root of chat. The scale sigma is computed from chat. So two
    runs with different chat have different noise on all scores. No proof accounts for this
    difference in the noise. Two lines compute the gradient q_t(Z). The first line computes q_t(Z)
    for all users, and the second line computes q_t(Z) for each user.
    """
    changes = {"late": 0.0, "mean_of": None, "first": 0}

    @ledger.falsify("the cutoff", mutant={"late": 3.0}, **changes, **SMALL)
    @ledger.falsify("the filter", mutant={"mean_of": "all"}, **changes, **SMALL)
    @ledger.falsify("the average", mutant={"first": 1}, **changes, **SMALL)
    def averages(seed, n_steps, cutoff, late, mean_of, first):
        plan, data = small_plan(n_steps, cutoff), users_of(seed)
        lines = sgd_of_the_paper(
            data, plan.phases[0], plan, RUN["loss"], RUN["start"], np.random.default_rng(seed),
            late=late, mean_of=mean_of, first=first,
        )  # fmt: skip
        ran = euclidean.filtered_sgd(data, 1, plan=plan, **RUN, rng=np.random.default_rng(seed))
        return np.abs(lines - ran[0]).max(), 1e-9

    @ledger.sweep(
        "chat, whose root is taken, is negative in at most delta / 24 of the runs",
        log=[16.0, 30.0, 100.0], epsilon=[0.1, 1.0], constant=10.0, mutant={"constant": 3.0},
    )  # fmt: skip
    def negative(log, epsilon, constant):
        c = constant * log / epsilon
        return math.exp(-c * epsilon / 4) / 2, math.exp(-log) / 24  # delta >= e^-log


# --- the parameters of Section 3 ---

COSTS = {"n": Interval(1e7, 1e20, log=True), "m": Interval(1.0, 1e12, log=True)}
COSTS |= {"d": Interval(1.0, 1e9, log=True), "epsilon": Interval(0.01, 1.0, log=True)}
COSTS |= {"extremal": [{"n": 1e7, "m": 1.0, "d": 1.0, "epsilon": 1.0}]}


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
    """

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


@statement("sco2.sec3.params")
def hypotheses_and_parameters(ledger):
    """Section 3 assumes epsilon in (0, 1), n >= 300 log^3(mn/delta)/epsilon^(3/2), m <= n^{O(log
    log n)} and beta <= Otilde((G/D) sqrt(epsilon/m) (epsilon sqrt(n) + sqrt(d))). It sets the batch
    size B := 300 log^2(mn/delta)/epsilon^(3/2) and the starting learning rate eta := (D/G) B
    sqrt(m) min{1/sqrt(n), epsilon/sqrt(d log(1/delta) log(nmd))}.

    The number n occurs on both sides of the condition. A smallest n exists and is large. If the
    bound on beta has the constant 1, the bound allows beta eta up to 600 log^2(mn/delta). So Otilde
    must hide the factor 600 log^2(mn/delta). Otilde must also hide the factor 432 of Lemmas 10 and
    11. By the hypothesis, the number n / B of batches is at least log(mn/delta). So S may be about
    log log(mn/delta). Section 3.3.2 treats S as a multiple of log n (sco2.util.sum). The batch size
    B is at least 480 c, so the event E_1 restricts nothing.
    """
    least = {
        epsilon: [f"{printed.euclidean_least_users(m, epsilon, 1e-6):.3g}" for m in (1, 2, 10, 100)]
        for epsilon in (1.0, 0.1)
    }
    ledger.note(
        "Smallest n at delta = 1e-6, for m = 1, 2, 10 and 100: " + ", ".join(least[1.0]) + " at "
        "epsilon = 1, and " + ", ".join(least[0.1]) + " at epsilon = 0.1."
    )  # fmt: skip
    domain = {"m": Integer(1, 10**6), "delta": Interval(1e-12, 0.5, log=True)}
    domain |= {"epsilon": Interval(0.01, 1.0, log=True), "examples": 100}

    @ledger.falsify("n / B >= log(mn/delta) from the smallest n on", less=1, mutant={"less": 2},
                    times=Choice((1, 3, 100)), extremal=[
                        {"m": 1, "delta": 0.5, "epsilon": 1.0, "times": 1}], **domain)  # fmt: skip
    def batches(m, delta, epsilon, times, less):
        n = times * printed.euclidean_least_users(m, epsilon, delta) / less
        log = math.log(m * n / delta)
        return log, n / (300 * log**2 / epsilon**1.5) * (1 + 1e-9)

    sizes = {"n": Interval(1e7, 1e20, log=True), "d": Interval(1.0, 1e20, log=True)}
    sizes |= {"epsilon": Interval(0.01, 1.0), "logs": Interval(1.0, 1e3), "most": 1.0}
    sizes |= {"extremal": [{"n": 1e10, "d": 1e10, "epsilon": 1.0, "logs": 1.0}]}

    @ledger.falsify("beta eta is at most 600 log^2(mn/delta), constant 1",
                    mutant={"most": 0.9}, **sizes)  # fmt: skip
    def product(n, d, epsilon, logs, most):
        """Return beta eta / (300 log^2) and its bound.

        The value beta eta / (300 log^2) is sqrt(epsilon) (epsilon sqrt(n) + sqrt(d)) min(...) /
        epsilon^1.5.
        """
        rate = min(1 / math.sqrt(n), epsilon / math.sqrt(d * logs))
        beta = math.sqrt(epsilon) * (epsilon * math.sqrt(n) + math.sqrt(d))
        return beta * rate / epsilon**1.5, 2 * most * (1 + 1e-9)


@statement("sco2.sec3.tau")
def temperature(ledger):
    """The temperature of the concentration test is tau := sqrt(m)/(20 G log(nmd)).

    Honest users are within G log(nmd) / sqrt(m) of their mean. So the scores of honest users are at
    least B e^(-1/10), as Lemma 14 needs. But all gradients are within 2G of one another. For m <
    (10 log(4/3) log(nmd))^2, all scores exceed F for all data. At log(nmd) = 27, the condition is m
    < 6000 items. For such m, the filter removes users only because of its noise. For such m, 1 /
    tau is more than 2G / log(4/3) = 7G. So a bound eta / (B tau) on the shift is weaker than the
    bound 2 eta G / B, which is true without a filter. The constant 20 could be reduced to 20 / 2.8,
    because the score B e^(-1/10) would then fall only to F.
    """
    near = {"places": np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]), "k": 4}
    domain = {"places": Array(UNIT, ("k", 2)), "k": Choice((2, 4, 9)), "extremal": [near]}

    @ledger.falsify("honest users", sharp=20.0, mutant={"sharp": 5.0}, **domain)
    def honest(places, k, sharp):
        inside = places / np.maximum(1, np.linalg.norm(places, axis=1))[:, None]
        return 0.904, concentration_scores(inside, temperature=1 / sharp).min() / k

    @ledger.falsify("no user fails for m < (10 log(4/3) log(nmd))^2, with G = 1", part=1.0,
                    mutant={"part": 2.0}, **domain)  # fmt: skip
    def nobody(places, k, part):
        inside = places / np.maximum(1, np.linalg.norm(places, axis=1))[:, None]
        tau = part * math.log(4 / 3) / 2
        return 0.75, concentration_scores(inside, temperature=tau).min() / k


@statement("sco2.sec4.1", expected="ambiguous")
def privatizing_every_iterate(ledger):
    """Privatizing every iterate overwhelms utility: the authors conjecture an error of about
    O(1/sqrt(n)) or worse. Skipping privacy per step leaves the stability of the trajectory
    undefined.

    Consider one pass over the users in batches of B. Noise of size G / (B sqrt(m) epsilon) in every
    step gives GD / sqrt(nm) + GD sqrt(d) / (sqrt(nBm) epsilon) for non-smooth losses. This error is
    worse than the optimal rate by the factor sqrt(n/B). The error is worse than 1 / sqrt(n) only
    for d > B m epsilon^2. With more passes, all earlier optimal algorithms add noise in every step
    (Table 1).
    """
    ledger.conclude(
        "ambiguous", "It is a conjecture that names no algorithm, parameters or number of passes."
    )
    domain = {"n": Interval(1e6, 1e12, log=True), "share": Interval(0.0, 0.9)}
    domain |= {"m": Interval(1.0, 1e6, log=True), "d": Interval(1.0, 1e6, log=True), "power": 0.5}
    domain |= {"epsilon": Interval(0.01, 1.0, log=True), "mutant": {"power": 0.4}}
    domain |= {"extremal": [{"n": 1e12, "share": 0.0, "m": 1.0, "d": 1e6, "epsilon": 0.01}]}

    @ledger.sharper("one pass costs at most sqrt(n / B)").falsify("the two rates", **domain)
    def passes(n, share, m, d, epsilon, power):
        batch = n**share
        noisy = 1 / math.sqrt(n * m) + math.sqrt(d / (n * batch * m)) / epsilon
        best = 1 / math.sqrt(n * m) + math.sqrt(d / m) / n / epsilon
        return noisy, best * (n / batch) ** power * (1 + 1e-9)


# --- the fact at the end of Section 3.3.2 ---


SMALL_M = (
    "For m <= 5 items (including item-level DP), the noise of the last phase is too large by a "
    "power of n. Step sizes that shrink by log m per phase hardly shrink."
)


FACT = {"log_n": Interval(math.exp(math.e), 1e4, log=True), "at": SHARE, "floor": math.e**2}
FACT |= {"extremal": [{"log_n": 15.16, "at": 1.0}, {"log_n": 50.0, "at": 0.0}]}
FACT |= {"mutant": {"floor": 2.0}}


def with_a_floor(log_n, at, floor):
    """Return the logarithms of nm and of (max(floor, log m))^(log n), for m = n^(at log log n)."""
    log_m = at * log_n * math.log(log_n)
    return log_n + log_m, log_n * math.log(max(floor, log_m)) * (1 + 1e-12)


@statement("sco2.util.fact", expected="refuted")
def last_term(ledger):
    """1/(log m)^{O(log n)} <= 1/(nm) when m <= n^{O(log log n)}.

    The claim fails for every constant that O() can hide. For m = 1 and m = 2, the left side is at
    least 1, because log m <= 1. For m <= 15, the claim needs a constant in O(log n) that is larger
    than S / log n. The ratio S / log n is at most 1. See sco1.B9.fact.
    """

    @ledger.sweep("m = 2, where log 2 is 1 or .69", constant=[1.0, 10.0, 1e3], n=10**9,
                  lhs="1 / (log m)^(K log n), log m at least 1", rhs="1 / (nm)")  # fmt: skip
    def small(constant, n):
        return max(1.0, math.log(2)) ** (-constant * math.log(n)), 1 / (2 * n)

    ledger.repair("with max(e^2, log m) for log m, constants 1, and n >= e^(e^e) = 3.8e6").falsify(
        "logarithms", **FACT
    )(with_a_floor)
    ledger.consequence(SMALL_M, harm="accuracy")


@statement("sco1.B9.fact", expected="refuted")
def last_term_of_the_first_version(ledger):
    """1/(log m)^(log n) <= 1/nm when m <= n^(log log n).

    The claim is equivalent to log log m >= 1 + log m / log n. The claim is false for m <= 15, and
    for m slightly above 15. For m = n^(log log n), the claim is true if n >= e^(e^e) = 3.8e6. The
    hypotheses do not require a smallest m.
    """

    @ledger.sweep("m items", m=[2, 5, 10, 15], n=10**9, lhs="1 / (log m)^(log n)", rhs="1 / (nm)")
    def small(m, n):
        return max(1.0, math.log(m)) ** -math.log(n), 1 / (n * m)

    ledger.repair("with max(e^2, log m) for log m, and n >= e^(e^e) = 3.8e6").falsify(
        "logarithms", **FACT
    )(with_a_floor)
    ledger.consequence(SMALL_M, harm="accuracy")
