"""Private geometric median: Section 4.2, utility of StableDPSGD."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom, chi2

from algorithms.geometric_median import schedule
from audits.geometric_median import transcribed
from audits.geometric_median.conventions import ANY_DELTA, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

DIMENSIONS = Choice((1, 2, 3, 10, 50, 1000))
RUNS = {"phases": Integer(2, 40), "delta": ANY_DELTA, "rho": Interval(1e-6, 1e14, log=True)}
NOISES = {"d": DIMENSIONS, "phases": Integer(1, 20), "parts": 4, "delta": ANY_DELTA}


@statement("gm.eq15")
def one_step(ledger):
    """One step of phase k with a stochastic gradient g of norm at most 1 satisfies, for any u in
    K^(k), eta^(k) g^T (z_t - u) <= norm(z_t - u)^2 / 2 - norm(z_(t+1) - u)^2 / 2 + (eta^(k))^2 / 2.

    The bound is sharp if the projection changes nothing. The point u has to lie in the ball.
    """

    def shortened(vector, longest=1.0):
        return np.asarray(vector) / max(float(np.linalg.norm(vector)) / longest, 1.0)

    some = {name: Array(UNIT, ("d",)) for name in ("z", "u", "g")} | {"d": Choice((1, 2, 4))}
    some["extremal"] = [{"z": [0.0], "u": [0.0], "g": [1.0], "eta": 0.5}]
    some |= {"eta": Interval(1e-2, 3.0, log=True), "tolerance": 1e-6}

    @ledger.falsify("in the unit ball", longest=1.0, mutant={"longest": 1.1}, **some)
    def sides(z, u, g, eta, longest):
        z, u, g = shortened(z), shortened(u), longest * shortened(g)
        moved = shortened(z - eta * g)
        drop = float((z - u) @ (z - u) - (moved - u) @ (moved - u))
        return eta * float(g @ (z - u)) - drop / 2, eta**2 / 2


def too_long(d, phases, parts, delta, c):
    """Bound the probability that a noise is longer than c sigma sqrt(d log(parts K / delta))."""
    level = math.log(parts * phases / delta)
    return phases * chi2.sf(c**2 * d * level, d), delta / parts


@statement("gm.lemma13.cont", expected="refuted")
def the_last_output_lies_in_the_ball(ledger):
    """With probability at least 1 - delta/4, norm(xi^(k)) <= 2 sigma^(k) sqrt(d log(4K/delta)) for
    all k in [K]; thus xbar^(k-1) lies in K^(k) for all 2 <= k <= K, and x_star in K^(1).

    The noises are as short as stated. But the second half of the claim does not follow. The center
    of the ball of phase k is xbar^(k-1) + xi^(k-1). The noise xi^(k-1) has three times the
    sigma^(k) that the radius of the ball uses. For d = 1, each xbar^(k-1) is outside its ball with
    a probability of about (delta / 4K)^(2/9).
    """

    @ledger.sweep(
        "xbar^(k-1) in K^(k) for all 2 <= k <= K", d=1, phases=20, delta=0.01, end_to_end=True,
        lhs="probability that some xbar^(k-1) is not in K^(k)", rhs="delta / 4",
    )  # fmt: skip
    def outside(d, phases, delta):
        radius = 2 / 3 * math.sqrt(d * math.log(4 * phases / delta))  # in units of sigma^(k-1)
        return 1 - chi2.cdf(radius**2, d) ** (phases - 1), delta / 4

    short = ledger.part("the noises")
    short.falsify("all K noises are short", c=2.0, mutant={"c": 1.3}, **NOISES)(too_long)
    ledger.sharper("sqrt 2 for 2").falsify(c=math.sqrt(2), mutant={"c": 1.3}, **NOISES)(too_long)
    repair = ledger.repair("K^(k) has radius 2 sigma^(k-1) sqrt(d log(4K/delta)) for 2 <= k <= K")
    repair.falsify("all balls", c=2.0, mutant={"c": 2 / 3}, **NOISES)(too_long)
    ledger.consequence("Later phases may be unable to correct the noise.", harm="accuracy")


def settings(phases, delta, rho):
    """Return T, log(4K/delta) and all sigma^(k), for n = T, d = eta = 1."""
    sigmas = (7 + 6 * math.log(8 / delta)) * 3.0 ** -np.arange(1, phases + 1) / math.sqrt(rho)
    return 2**phases - 1, math.log(4 * phases / delta), sigmas


@statement("gm.lemma13", expected="refuted")
def error_of_each_phase(ledger):
    """Let x_star minimise f over B(xbar, r_hat), L = log(4K/delta). With probability at least 1 -
    delta/2, f(xbar^(1)) - f(x_star) <= r_hat^2 / (2 eta^(1) T^(1)) + eta^(1)/2 + 4 r_hat sqrt(2L /
    T^(1)) and, for 2 <= k <= K, f(xbar^(k)) - f(xbar^(k-1)) <= 2 (sigma^(k))^2 d L / (eta^(k)
    T^(k)) + eta^(k)/2 + 8 sigma^(k) L sqrt(2d / T^(k)).

    The proof takes u = xbar^(k-1), which need not lie in K^(k). In the proof, norm(z_0 - u) is the
    noise of phase k - 1, but the proof inserts the noise of phase k. If all data are at xbar, phase
    1 stays at xbar. If the noise of phase 1 leads out of the ball of phase 2, phase 2 cannot return
    to the data. The bound for phase 1 is correct. The bound for phase 1 is sharp if all data lie in
    one point that the steps just reach.
    """
    seen = {"phases": 20, "delta": 1e-6, "rho": 0.5}

    @ledger.sweep(
        "phase 2, n = T, d = eta = 1, all data at xbar; sigma^(2) in ball and bound",
        ball=2, bound=2, end_to_end=True,
        lhs="lower bound on the probability that phase 2 violates its bound", rhs="delta / 2",
        **seen,
    )  # fmt: skip
    @ledger.repair(
        "K^(k) has radius 2 sigma^(k-1) sqrt(d log(4K/delta)), and the bound contains sigma^(k-1) "
        "for sigma^(k), for 2 <= k <= K"
    ).falsify(ball=1, bound=1, mutant={"ball": 2, "bound": 2}, extremal=[seen], **RUNS)
    def second_phase(phases, delta, rho, ball, bound):
        """Bound how much nearer phase 2 gets to xbar.

        All steps and the radius limit this move.
        """
        steps, level, sigmas = settings(phases, delta, rho)
        eta, length, s = 1 / 16, (steps + 1) // 4, sigmas[bound - 1]
        most = 2 * s**2 * level / (eta * length) + eta / 2 + 8 * s * level * math.sqrt(2 / length)
        most += min(2 * sigmas[ball - 1] * math.sqrt(level), eta * (length - 1))
        return math.erfc(most / sigmas[0] / math.sqrt(2)), delta / 2

    @ledger.part("phase 1").falsify(
        "all data in one point at distance r_hat", phases=Integer(1, 30),
        delta=ANY_DELTA, way=Interval(1e-6, 1.0, log=True), half=2.0, mutant={"half": 2.2},
        extremal=[{"phases": 30, "delta": 0.9, "way": 1.0}],
    )  # fmt: skip
    def first_phase(phases, delta, way, half):
        """Compare both sides for steps that together cover a share of r_hat."""
        length, level = 2 ** (phases - 1), math.log(4 * phases / delta)
        allowed = 1 / (half * way) + way / length / 2 + 4 * math.sqrt(2 * level / length)
        return 1 - way * (length - 1) / length / 2, allowed

    ledger.consequence(
        "Bounds are up to 9 times too small. Balls are up to 3 times too small.",
        harm="accuracy",
    )


@statement("gm.lemma13.azuma")
def martingale_terms(ledger):
    """Let g_t^(k) be the mean of the stochastic gradient h_t^(k), u in K^(k) and L = log(4K/delta).
    With probability at least 1 - delta/4, the average over t of (g_t^(k) - h_t^(k))^T (z_t^(k) - u)
    is at most 4 r_hat sqrt(2L / T^(1)) for k = 1, and 8 sigma^(k) L sqrt(2d / T^(k)) for all 2 <= k
    <= K.

    The claim holds for a u that is fixed before the phase, such as x_star and xbar^(k-1). When the
    phase begins, the past already determines whether u is in K^(k). So no step of the phase is
    conditioned on whether u is in K^(k). Given the past, a term has a range of twice the diameter,
    not of four times the diameter. So both bounds could be halved.
    """
    some = {"steps": Integer(1, 4000), "phases": Integer(1, 12), "delta": ANY_DELTA, "log": True}
    some["extremal"] = [{"steps": 4000, "phases": 12, "delta": 1e-12}]

    @ledger.falsify("a stopped walk", factor=1.0, mutant={"log": False}, **some)
    @ledger.sharper("half of it").falsify(factor=0.5, mutant={"factor": 0.45}, **some)
    def stopped_walk(steps, delta, phases, factor, log):
        """Bound the probability that a fair walk stops outside, by the reflection principle.

        The steps are as long as the diameter.
        """
        level = math.log(4 * phases / delta) if log else 1.0
        printed, diameter = 8 * level * math.sqrt(2 / steps), 4 * math.sqrt(level)  # of sigma^(k)
        beyond = math.floor(factor * printed * steps / diameter + 1e-9) + 1
        above = binom.sf([(steps + beyond + 1) // 2 - 1, (steps + beyond) // 2], steps, 0.5)
        return phases * float(above.sum()), delta / 4


def total(steps, level, rho, eta, repaired, passes=1.0, d=1, power=4):
    """Return the bound of Lemma 14, for r_hat = 1."""
    most = 64**repaired / (16 * eta * (steps + repaired)) + 19 * eta + 8 * math.sqrt(level / steps)
    return most + 1314 * eta * d * (level + math.log(2)) ** power * passes**2 / (rho * steps)


@statement("gm.lemma14", expected="refuted")
def total_error(ledger):
    """Let x_star minimise f over B(xbar, r_hat). With probability at least 1 - delta, Algorithm 4
    outputs x_hat^(K) with f(x_hat^(K)) - f(x_star) <= r_hat^2 / (16 eta T) + 19 eta + 8 r_hat
    sqrt(log(4K/delta) / T) + 1314 T eta d log^4(8K/delta) / (rho n^2).

    The lemma contains two errors. First, r_hat^2 / (2 eta^(1) T^(1)) is 4 r_hat^2 / (eta (T + 1)).
    The correct first term is up to 64 times the printed first term. At eta = 3.5 r_hat / T, all
    steps together cover half of the distance to data at distance r_hat. So the error is .5 r_hat,
    not .05 r_hat. Second, take data at xbar. With a probability of about (delta / 4K)^(4/9), the
    noise is longer than the later balls together can correct. The probability (delta / 4K)^(4/9)
    exceeds a small delta. If both errors are repaired, the constants 19 and 1314 are three times as
    large as needed.
    """
    repair = ledger.repair(
        "r_hat^2 / (16 eta T) reads 4 r_hat^2 / (eta (T + 1)), and K^(k) has radius 2 sigma^(k-1) "
        "sqrt(d log(4K/delta)) for 2 <= k <= K"
    )
    near = {"phases": 20, "delta": 1e-6, "rho": 0.5, "way": 3.5}
    far = {"phases": 30, "delta": 1e-12, "rho": 0.01}
    twice = {"repaired": True, "mutant": {"repaired": False}, **RUNS}

    @ledger.sweep(
        "n = T, d = 1, all data in one point at distance r_hat = 1 of xbar, eta = way / T",
        repaired=False, end_to_end=True, rhs="the bound", lhs="r_hat minus all steps and 10 sigma "
        "of every noise: smaller errors have a probability below 1e-20", **near,
    )  # fmt: skip
    @repair.falsify("steps", extremal=[near], **{**twice, "way": Interval(0.01, 100.0, log=True)})
    def too_short(phases, delta, rho, way, repaired):
        steps, level, sigmas = settings(phases, delta, rho)
        left = 1 - way / steps * ((steps + 1) * (1 - 8.0**-phases) / 7 + 10 * sum(sigmas))
        return left, total(steps, level, rho, way / steps, repaired)

    @ledger.sweep(
        "n = T, d = 1, all data at xbar, r_hat = eta = 1", repaired=False, end_to_end=True,
        lhs="lower bound on the probability that the error exceeds the bound", rhs="delta", **far,
    )  # fmt: skip
    @repair.falsify("balls", extremal=[far], **twice)
    def out_of_reach(phases, delta, rho, repaired):
        """Bound the error from below, because a phase moves by at most the radius of its ball."""
        steps, level, sigmas = settings(phases, delta, rho)
        least = 2 * math.sqrt(level) * sum(sigmas[:-1] if repaired else sigmas[1:])
        least += total(steps, level, rho, 1.0, repaired)
        return math.erfc(least / math.sqrt(2 * sum(sigmas**2))), delta

    some = {**RUNS, "phases": Integer(1, 39), "step": Interval(1e-12, 1e3, log=True)}
    some |= {"d": DIMENSIONS, "share": Interval(1e-9, 1.0, log=True)}

    @repair.falsify("sum of the repaired bounds", power=4, mutant={"power": 2}, **some)
    def whole(phases, share, d, rho, delta, step, power):
        steps, level, _ = settings(phases, delta, rho)
        n = max(1, round(share * steps))
        given = {"rho": rho, "delta": delta, "step": step, "n_steps": steps, "ball": "repaired"}
        plan = schedule.stable_dpsgd_schedule(n, d, radius=1.0, **given)
        return plan.error_bound, total(steps, level, rho, step, True, steps / n, d, power)

    some = {**RUNS, "n": Integer(1, 10_000), "d": DIMENSIONS}
    some |= {"r_hat": Interval(1e-3, 1e3, log=True)}
    some |= {"phases": Integer(1, 20), "step": Interval(1e-6, 1e3, log=True), "before": 1}
    some |= {"rho": Interval(1e-4, 1e4, log=True), "mutant": {"before": 0}, "examples": 60}

    @repair.identity("the bound and the best step of the implementation", **some)
    def best_step(n, phases, d, r_hat, rho, delta, step, before):
        """Return the bound, the best step, and a multiple of this step, also in another unit."""
        options = {"radius": r_hat, "rho": rho, "delta": delta, "step": step, "ball": "repaired"}
        run = schedule.stable_dpsgd_schedule(n, d, n_steps=2**phases - 1, **options)
        steps = schedule.bound_step(run), schedule.tuned_step(run, multiplier=3.0)
        m = transcribed.accesses(n, phases, delta)
        plan = transcribed.phases(m, phases, d, r_hat, rho, delta, step, repaired=True)
        inverse, linear, constant = transcribed.lemma_14(plan, d, r_hat, delta, before)
        best = step * math.sqrt(inverse / linear)
        unit = run.scaled(2.5)
        found = [run.error_bound, *steps, unit.error_bound, schedule.bound_step(unit), *unit.radii]
        printed = [inverse + linear + constant, best, 3 * best]
        printed += [2.5 * printed[0], 2.5 * best, *(2.5 * reach for *_, reach in plan)]
        return found, printed

    words = "A user who chooses eta by it, as in the proof of Theorem 4, stops far from the median."
    words += " With the printed balls Theorem 4 fails too often, for small alpha, delta and n."
    ledger.consequence(words, harm="accuracy")


@statement("gm.lemma14.chain", expected="refuted")
def steps_of_the_chain(ledger):
    """With L = log(4K/delta), M = log(8K/delta): the bounds of Lemma 13 and norm(xi^(K)) sum to A =
    r_hat^2 / (16 eta T) + 8 r_hat sqrt(L/T), eta/2, 144 m^2 eta d L / (rho T) and 12 sqrt(d) m eta
    L / sqrt(rho T) at most; the last two are at most 1296 T eta d M^3 / (rho n^2) and 36 sqrt(d T)
    eta M^2 / (sqrt(rho) n), and all but A at most 19 eta + 1314 T eta d M^4 / (rho n^2).

    The value of r_hat^2 / (2 eta^(1) T^(1)) is 4 r_hat^2 / (eta (T + 1)), not r_hat^2 / (16 eta T).
    The difference is visible at eta = 10^-6 r_hat. The other sums are correct, but these sums use
    sigma^(k) from Lemma 13. With sigma^(k-1), the first sum is 3.91 times as large as 144 allows.
    The second sum is 2.51 times as large as the bound with the constant 12. The constants 19 and
    1314 are large enough for these sums (Lemma 14).
    """
    sides = {"lhs": "the first term of the first line, alone", "rhs": "the last line"}

    @ledger.sweep("n = T, d = rho = r_hat = 1", phases=10, delta=0.01, eta=1e-6, **sides)
    def ends(phases, delta, eta):
        steps, level, _ = settings(phases, delta, 1.0)
        return 4 / (eta * (steps + 1)), total(steps, level, 1.0, eta, False)

    repair = ledger.repair(
        "The first term is 4 r_hat^2 / (eta (T + 1)); with sigma^(k-1) for sigma^(k), 576 and 31 "
        "replace 144 and 12"
    )
    domain = {"passes": Interval(1.0, 1e4, log=True), "delta": ANY_DELTA}
    every = {**domain, "phases": Integer(1, 39)}
    every["extremal"] = [{"phases": 39, "passes": 1.0, "delta": 0.999}]
    own = {"before": 0, "mutant": {"before": 1}, **every}

    fourth = ledger.part("the second to fourth term")

    @fourth.falsify("144 m^2 eta d L / (rho T)", power=2, constant=144, **own)
    @fourth.falsify("12 sqrt(d) m eta L / sqrt(rho T)", power=1, constant=12, **own)
    @repair.falsify("576", power=2, constant=576, before=1, mutant={"constant": 540}, **every)
    @repair.falsify("31", power=1, constant=31, before=1, mutant={"constant": 29}, **every)
    def fourth_line(phases, passes, delta, power, constant, before):
        """Sum all terms except the first terms, for d = rho = eta = 1."""
        steps, level, _ = settings(phases, delta, 1.0)
        m, k = 3 * (passes + math.log(8 / delta)), np.arange(2, phases + 1)
        sigma, length = 3.0 ** (before - k) * (2 * m + 1), 2.0 ** (phases - k)
        squares = (2 * sigma**2 * level / (4.0**-k * length)).sum()
        last = 2 * 3.0**-phases * (2 * m + 1) * math.sqrt(math.log(2 / delta))
        found = {2: squares, 1: (8 * sigma * level * np.sqrt(2 / length)).sum() + last}
        return float(found[power]), constant * m**power * level / steps ** (power / 2)

    some = {**domain, "phases": Integer(2, 39), "larger": 8, "mutant": {"larger": 4}}
    some["extremal"] = [{"phases": 2, "passes": 1.0, "delta": 1e-12}]
    one = {"phases": 1, "passes": 1.0, "delta": 0.1, "lhs": "m^2 L", "rhs": "9 M^3 for it"}

    @fourth.falsify("144 m^2 to 1296 and M^3", power=2, **some)
    @fourth.falsify("12 m to 36 and M^2", power=1, **some)
    @ledger.edge("n >= 2").sweep(
        "m^2 L <= 9 (T / n)^2 log^3(8 K / delta) at K = T = n = 1", power=2, larger=8, **one
    )
    def fifth_line(phases, passes, delta, power, larger):
        m, level = 3 * (passes + math.log(8 / delta)), math.log(4 * phases / delta)
        allowed = (3 * passes) ** power * math.log(larger * phases / delta) ** (power + 1)
        return m**power * level, allowed

    split, x = {"middle": 1314, "extremal": [{"x": 1.0}]}, Interval(1e-6, 1e6, log=True)

    @fourth.falsify("the last line", x=x, mutant={"middle": 1296}, **split)
    def closing(x, middle):
        """Compare both sides for x = sqrt(d T) M^2 / (sqrt(rho) n)."""
        return 0.5 + 1296 * x**2 + 36 * x, 19 + middle * x**2

    ledger.consequence(
        "The first term of Lemma 14 is wrong. All results that use this term are wrong too.",
        harm="accuracy",
    )


@statement("gm.lemma14.xiK")
def last_noise(ledger):
    """The last noise satisfies norm(xi^(K)) <= 2 sigma^(K) sqrt(d log(2/delta)) with probability at
    least 1 - delta/2, so that this and Lemma 13 both hold with probability at least 1 - delta.

    The constant 2 can be replaced by sqrt 2.
    """
    some = {**NOISES, "phases": 1, "parts": 2, "mutant": {"c": 1.3}}
    ledger.falsify("the exact tail", c=2.0, **some)(too_long)
    ledger.sharper("sqrt 2 for 2").falsify(c=math.sqrt(2), **some)(too_long)
