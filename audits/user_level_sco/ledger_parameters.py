"""User-level DP-SCO: the parameters of Section 3, Section 4.1, the last term of the utility."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np

from algorithms.user_level_sco import printed
from algorithms.user_level_sco.plans import Filter, Phase, Plan
from algorithms.user_level_sco.scores import concentration_scores
from audits.user_level_sco import transcribed
from audits.user_level_sco.conventions import SHARE, UNIT
from audits.user_level_sco.small_runs import RARE, SIZES, printed_plan
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

# --- the parameters of Section 3 ---


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

    @ledger.identity("the smallest n", less=0, mutant={"less": 1}, **domain)
    def smallest(m, epsilon, delta, less):
        found = printed.euclidean_least_users(m, epsilon, delta)
        return found, transcribed.fewest_users(m, epsilon, delta) - less

    @ledger.identity("B and eta", root=0.5, mutant={"root": 0.6}, examples=100,
                     extremal=[RARE, {**RARE, "n": 10**12, "d": 1}], **SIZES)  # fmt: skip
    def parameters(n, m, d, epsilon, delta, lipschitz, radius, root):
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        if (plan := printed_plan(*sizes)) is None:
            return None
        B, eta, *_ = transcribed.euclidean(*sizes)
        first = eta * m ** (root - 0.5) / transcribed.log(m)
        facts = [plan.lipschitz, plan.epsilon, plan.delta, plan.dimension, plan.smoothness]
        given = [lipschitz, epsilon, delta, d, 0.0]
        return [plan.batch_size, plan.phases[0].step, *facts], [B, first, *given]

    @ledger.identity("refused if beta eta > 2, but returned if unsafe", most=2.0, examples=60,
                     mutant={"most": 1.0}, times=Choice((0.01, 0.5, 0.7, 0.99, 1.01, 1.5, 9.0)),
                     **SIZES)  # fmt: skip
    def stable(n, m, d, epsilon, delta, lipschitz, radius, times, most):
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        if (plan := printed_plan(*sizes)) is None:
            return None
        beta = 2 * times / max(phase.step for phase in plan.phases)
        found = printed_plan(*sizes, smoothness=beta, unsafe=True).smoothness / beta
        try:
            printed_plan(*sizes, smoothness=beta)
        except ValueError:
            return found, 1.0 if 2 * times > most else 2.0
        return found + 1, 2.0 if 2 * times <= most else 1.0

    @ledger.identity("beta eta = 2 is allowed", beta=[3.0, 4.0, 5.0], mutant={"most": 1.9},
                     most=2.0)  # fmt: skip
    def edge(beta, most):
        phases = (Phase(6, 1, 0.25, 1.0), Phase(6, 1, 0.5, 1.0), Phase(6, 1, 0.125, 1.0))
        plan = Plan(6, phases, Filter(1.0, 4.0, 1.0, 1.0, 1.0), 1.0, beta, 1.0, 0.1)
        return plan.steps_are_stable, 0.5 * beta <= most

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

    @ledger.identity("tau", power=0.5, mutant={"power": 0.6}, examples=100, extremal=[RARE],
                     **SIZES)  # fmt: skip
    def tau(n, m, d, epsilon, delta, lipschitz, radius, power):
        sizes = (n, m, d, epsilon, delta, lipschitz, radius)
        if (plan := printed_plan(*sizes)) is None:
            return None
        return plan.rule.temperature, transcribed.euclidean(*sizes).tau * m ** (power - 0.5)

    idle = {**SIZES, "m": Interval(2.0, 1e6, log=True), "examples": 60}

    @ledger.identity(
        "the warning that no score can fall below F, and its numbers", part=1.0,
        mutant={"part": 1.05}, extremal=[{**RARE, "m": m} for m in (2e1, 1e4, 1e6)], **idle,
    )  # fmt: skip
    def warned(n, m, d, epsilon, delta, lipschitz, radius, part):
        """Compute the least score as the score of a user at G, with all others at -G.

        The first numbers are the least score and F, each also divided by B. The other numbers are
        the chance that noise filters a user, 2 G tau, and the value that 2 G tau must exceed.
        """
        sizes = (n, round(m), d, epsilon, delta, lipschitz, radius)
        if (plan := printed_plan(*sizes)) is None:
            return None
        B, _, tau, _, c, _, F = transcribed.euclidean(*sizes)
        spread = part * tau * 2 * lipschitz
        least = 1 + (B - 1) * math.exp(-spread)
        batch = np.r_[lipschitz, np.full(6, -lipschitz)][:, None]
        small = replace(plan, batch_size=7, phases=(Phase(7, 1, 1.0, 1.0),))
        found = [small.least_score, len(plan.warnings)]
        lines = [transcribed.concentration(part * tau, batch, 0), float(least >= F)]
        if least >= F:
            words = plan.warnings[0].replace(". ", " ").rstrip(".")
            found += [float(x) for x in re.findall(r"(?<![A-Za-z])\d[\d.e+-]*", words)]
            noise = 2 * transcribed.sigma_of_scores(c, epsilon, delta)
            chance = math.exp((F - least) / noise) / 2
            lines += [float(f"{least / B:.3g}"), float(f"{least:.6g}"), 0.75, float(f"{F:.6g}")]
            lines += [float(f"{chance:.2g}"), 2.0, float(f"{spread:.3g}"), 0.288]
        return np.array(found), np.array(lines)

    @ledger.identity("the warning, if the least score is F", over=[0.0, -1e-9], more=0.0,
                     mutant={"more": 1e-6})  # fmt: skip
    def least(over, more):
        rule = Filter(1.0, 1.0, 1.0, 1.0, 1.0)
        plan = Plan(7, (Phase(7, 1, 1.0, 1.0),), rule, 1.0, 0.0, 1.0, 0.1)
        rule = replace(rule, threshold=plan.least_score + over + more)
        return printed._idle_filter(replace(plan, rule=rule)) is None, False

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
