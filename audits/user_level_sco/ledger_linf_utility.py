"""User-level DP-SCO: accuracy in l_inf, Lemmas 37 and 38 and Theorem C.2 (Theorem 3.1 of v1)."""

from __future__ import annotations

import itertools
import math

import numpy as np

from algorithms.user_level_sco.coordinatewise import concentration_profile
from algorithms.user_level_sco.domains import Box
from algorithms.user_level_sco.losses import Quadratic
from algorithms.user_level_sco.plans import Phase, Plan, Test
from audits.user_level_sco.conventions import DELTA, EPSILON, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12


# --- one phase ---


def swings(steps, b, m, constant, ratio):
    u, total = 0.005, 0.0
    for _ in range(steps):
        u -= min(max(ratio * u, -0.5), 1.0)
        total += u
    x = total / steps
    excess = ratio * x * x / 2 if x > -0.5 / ratio else -x / 2 - 1 / (8 * ratio)
    bound = (ratio + 1) * 0.005**2 / steps + 1 / (b * m) + 1e-9
    return 0.99 * excess, constant * bound


def average_error(eta, start, target, chance, beta, noise):
    """Return E F(average) - F(target) of Algorithm 6 over all data, and the repaired bound.

    There are two steps of two users each. The loss is beta (x - z)^2 / 2 with z = 1 or -1. All
    tests pass, and no step is clipped.
    """
    rule = Test(1.0, 1e-300, 1e300, 2.0, 1e9)
    plan = Plan(2, (Phase(4, 2, eta, 1.0),), rule, 1e9, 9.0, 1.0, 0.1)
    options = {"loss": Quadratic(beta), "domain": Box(9.0), "plan": plan, "start": [start]}
    mean, found = 2 * chance - 1, 0.0
    for signs in itertools.product((1.0, -1.0), repeat=4):
        data = np.array(signs)[:, None, None]
        weight = math.prod(chance if sign > 0 else 1 - chance for sign in signs)
        x = concentration_profile(data, **options, unsafe=True)[1].mean()
        found += weight * beta / 2 * ((x - mean) ** 2 - (target - mean) ** 2)
    spread = beta**2 * (1 - mean**2) / 2  # variance of the mean gradient of a batch
    rest = noise * eta * spread / (2 * (1 - beta * eta))
    return found, (start - target) ** 2 / (4 * eta) + rest + ROUNDING


def attack_phase(ledger):
    """Attack the bound with diverging steps, for several constants.

    Test the repair on all data.
    """
    words = {"lhs": "E F(xbar) - F(x), in units of eta G^2", "rhs": "a constant times the bound"}
    for constant, b, m in ((1.0, 2000, 10**4), (1e4, 10**4, 10**8)):
        ledger.sweep(
            f"all users have f' = clip(beta x, -G/2, G), beta eta = 10, constant {constant:g}",
            steps=10**4, b=b, m=m, constant=constant, ratio=10.0, **words,
        )(swings)  # fmt: skip
    repair = ledger.repair(
        "For beta eta < 1 and tau = sqrt(m)/(40 G log(nmd/omega)), up to GDd omega, E[F(xbar) - "
        "F(x)] <= E[norm(x_0 - x)^2]/(2 eta T) + eta G^2 d/(2Bm (1 - beta eta))"
    )
    repair.falsify(
        "runs of Algorithm 6 on all data", eta=Interval(0.01, 0.9), beta=Interval(0.05, 1.0),
        start=UNIT, target=UNIT, chance=Interval(0.0, 1.0), noise=1.0, mutant={"noise": 0.0},
        examples=ledger.examples // 6, end_to_end=True,
        extremal=[{"eta": 0.5, "beta": 1.0, "start": 0.0, "target": 0.0, "chance": 0.5}],
    )(average_error)  # fmt: skip

    @ledger.step(
        "gradients within 1/tau of their mean pass all the tests",
        fix="gradients within 1/(40 tau) of their mean pass",
    ).sweep(
        "half of the users at 1/tau, half at -1/tau", epsilon=1.0, delta=1e-6, steps=1000,
        lhs="v", rhs="s_t",
    )  # fmt: skip
    def passing(epsilon, delta, steps):
        b = 100 * math.log(steps / delta) / epsilon
        return 0.9 * b + 2 * math.log(steps / delta) / epsilon, b * (1 + math.exp(-2)) / 2

    ledger.consequence(
        "At the largest beta of Theorem C.2, the rate is not proved for the first phases.",
        harm="accuracy",
    )


@statement("sco2.lemma37", expected="refuted")
def error_of_a_phase(ledger):
    """Let x in X, and let the dataset of users, of size larger than 100 log(T/delta)/epsilon, be
    drawn i.i.d. from P. Setting tau = G log(nmd/omega)/sqrt(m), the output of Algorithm 6 satisfies
    E[F(xbar) - F(x)] <~ (beta + 1/eta) E[norm(x_0 - x)^2]/T + eta G^2 d/(Bm) + GDd omega.

    Like Lemma 13, the lemma has no condition that keeps beta eta small. Theorem C.2 allows beta eta
    = 10 if m <= 20000. If beta eta is 10, full steps jump over a minimiser between the slopes -G/2
    and G. Even without noise, the average has an error of .035 eta G^2. In this example, Bm is
    arbitrarily large. For beta eta < 1, the lemma is true. In this lemma, the paper prints tau as a
    distance. For this tau, "passes all the tests" needs a distance that is 40 times smaller.
    Gradients within 1/tau of their mean may have a score of .57 B, but v > .9B. The printed tau is
    enough, because gradients are typically closer to their mean than tau by a factor of
    log(nmd/omega). The text does not give this reason. "<= 1 - omega/nm" should be "<=
    omega/(nmd)", and "GDd omega" should be "2 GDd omega".
    """
    attack_phase(ledger)


@statement("sco1.lem3.util", expected="refuted")
def error_of_a_phase_first_version(ledger):
    """Let x in X, and let the dataset of users, of size larger than 100 log(T/delta)/epsilon, be
    drawn i.i.d. from P. Setting tau = G log(nmd/omega)/sqrt(m), the output of Algorithm 1 satisfies
    E[F(xbar) - F(x)] <~ (beta + 1/eta) E[norm(x_0 - x)^2]/T + eta G^2 d/(Bm) + GDd omega.

    The lemma fails for the same reason as sco2.lemma37. In the display of the proof, a factor 1/B
    is missing. The correct value of E sum_i q_t(Z_(i,t)) is B grad F(x_(t-1)).
    """
    attack_phase(ledger)

    @ledger.step("E sum_i q_t(Z_(i,t)) = grad F(x_(t-1))", fix="1/B in front of the sum").sweep(
        "B = 2", b=2, lhs="norm(E sum_i q_t(Z_(i,t)))", rhs="norm(grad F)"
    )
    def display(b):
        return abs(np.full(b, -1.0).sum()), abs(-1.0)


@statement("sco1.display3", expected="refuted")
def cost_of_the_noise(ledger):
    """A naive bound on the excess loss due to the privatization of xbar_1 as x_1 = xbar_1 + zeta_1
    is E[F(x_1) - F(xbar_1)] <= G norm(zeta_1), in the Euclidean norm.

    The function F is G-Lipschitz with respect to the l_1-norm, so the bound is G norm_1(zeta_1).
    The norm norm_1(zeta_1) is up to sqrt(d) times norm_2(zeta_1). For Gaussian noise,
    norm_1(zeta_1) is .8 sqrt(d) times norm_2(zeta_1). At d = 100, the loss is 78.8 G sigma. The
    display claims at most 10 G sigma. The text concludes only that this loss is too large. The
    expectation E is over the noise on the left side. The expectation is missing on the right side.
    """

    @ledger.sweep(
        "F = G sum_j (sqrt(x_j^2 + c^2) - c) at its minimum, c = sigma/100", d=100, c=0.01,
        lhs="E F(x_1) - F(xbar_1), at least, in units of G sigma", rhs="E norm(zeta_1), at most",
    )  # fmt: skip
    def gaussian(d, c):
        return d * (math.sqrt(2 / math.pi) - c), math.sqrt(d)

    repair = ledger.repair("F(x_1) - F(xbar_1) <= G norm_1(zeta_1) <= sqrt(d) G norm_2(zeta_1)")

    @repair.falsify(
        "sums of smoothed distances", x=Array(UNIT, ("d",)), move=Array(UNIT, ("d",)),
        slope=Array(UNIT, ("d",)), d=Choice((1, 2, 5)), part=1.0, mutant={"part": 0.9},
        extremal=[{"x": np.zeros(5), "move": np.ones(5), "slope": np.ones(5)}],
    )  # fmt: skip
    def corrected(x, move, slope, part):
        ends = [slope @ np.sqrt(at * at + 1e-6) for at in (x + move, x)]
        return ends[0] - ends[1], part * math.sqrt(len(x)) * np.linalg.norm(move) + ROUNDING

    ledger.consequence(
        "None. The claim is a remark, and Lemma 38 has the correct power of d.", harm="the wording"
    )


# --- all phases ---


def stalls(n, m, constant, power):
    log, logs, own = math.log(n * m / 1e-6), math.log(n * m), math.log(1e6)
    eta = 1 / n
    if eta > min(100 * log * math.sqrt(m / n), math.sqrt(m / (own * logs))):
        return None
    rate = 1 / math.sqrt(n * m) + 1 / (n * math.sqrt(m))
    return 1 - n * eta / (100 * log), constant * log**power * rate


def noisy(n, m, constant, power, noise, second):
    d, own, shrink = math.sqrt(n), math.log(1e6), max(1, math.log(m))
    logs, log = math.log(n * m * d), math.log(n * m * d * 1e6)
    beta = math.sqrt(n / m) / log + second * math.sqrt(d * own * logs / m)
    eta = min(100 * log * math.sqrt(m / n), math.sqrt(m / (d * own * logs)))
    phases = math.ceil(math.log(n / (100 * log)))
    sigma = noise * eta / shrink**phases * math.sqrt(d * (1 + own) * logs / m)
    excess = d * (math.sqrt(2 / math.pi) * sigma - 1 / (2 * beta))
    return excess, constant * log**power * (d / math.sqrt(n * m) + d**1.5 / (n * math.sqrt(m)))


def summed(n, m, d, epsilon, delta, least, constant):
    """Return the sum over the phases by the repaired Lemma 37, and the rate.

    The repaired lemma is used at beta eta <= 1/2. The parameters are G = D = 1 and S =
    floor(log_2(n/B)). Steps and noise shrink by max(least, log m). The constants of sigma_s are 1.
    """
    log, own = max(1.0, math.log(m * n * d / delta)), max(1.0, math.log(1 / delta))
    logs, b = max(1.0, math.log(n * m * d)), 100 * log / epsilon
    most = math.log(n) * max(1.0, math.log(math.log(n)))
    if n < b * b or math.log(m) > most:
        return None
    shrink = max(least, math.log(m))
    eta = min(b * math.sqrt(m / n), math.sqrt(m) * epsilon / math.sqrt(d * own * logs))
    total, square = 0.0, 4.0 * d
    for s in range(1, math.floor(math.log2(n / b)) + 1):
        step, steps = eta / shrink**s, math.floor(n / 2**s / b)
        sigma = step * math.sqrt(d * (epsilon + own) * logs / m) / epsilon
        total += square / (2 * step * steps) + step * d / (b * m)
        square = d * sigma**2
    total += d * math.sqrt(2 / math.pi) * sigma
    rate = d / math.sqrt(n * m) + d**1.5 / (n * epsilon**2 * math.sqrt(m))
    return total, constant * log**3 * rate


RATE = {"lhs": "E F(x_S) - F(x_star), at least, G = D = 1"}
RATE |= {"rhs": "constant log(nmd/delta)^power times the rate"}
CORRECTED = (
    "With eta equal to its bound, beta eta <= 1/2, max(4, log m) for log m, n >= B^2 and S = "
    "floor(log_2(n/B)), the sum over the phases is at most 200 log(mnd/delta)^3 GD (d/sqrt(mn) + "
    "d^(3/2)/(n epsilon^2 sqrt(m)))"
)


def refute_small_steps(ledger):
    for n, constant, power in ((1e6, 1.0, 0), (1e60, 1e3, 6)):
        ledger.sweep(
            f"eta = D/(G n), f = -G x, power {power}, constant {constant:g}", n=n, m=100.0,
            constant=constant, power=power, **RATE,
        )(stalls)  # fmt: skip


def refute_few_items(ledger, second=1):
    for n, constant, power, noise in ((1e12, 1.0, 3, 1.0), (1e100, 1e3, 6, 1e-3)):
        ledger.sweep(
            f"m = 2, d = sqrt(n), power {power}, constant {constant:g}, C = {noise:g}", n=n, m=2,
            constant=constant, power=power, noise=noise, second=second, **RATE,
        )(noisy)  # fmt: skip


def attack_repair(ledger):
    ledger.repair(CORRECTED).falsify(
        "the sum", n=Interval(1e4, 1e40, log=True), m=Interval(1.0, 1e60, log=True), least=4.0,
        d=Interval(1.0, 1e8, log=True), epsilon=EPSILON, delta=DELTA, constant=200.0,
        mutant={"least": 1.0}, extremal=[
            {"n": 1e30, "m": 2.0, "d": 1e6, "epsilon": 1.0, "delta": 1e-6},
            {"n": 1e8, "m": 1e20, "d": 1.0, "epsilon": 1.0, "delta": 1e-6},
        ],
    )(summed)  # fmt: skip


@statement("sco2.lemma38", expected="refuted")
def localised(ledger):
    """Under Assumptions 21 and 22, suppose beta <= (G/D) (sqrt(n) epsilon/(sqrt(m)
    log(nmd/delta))), n >= log^2(nd/delta)/epsilon, epsilon <= O(1) and m <= n^{O(log log n)}. Set
    eta <= (D/G) min{B sqrt(m)/sqrt(n), sqrt(m) epsilon/sqrt(d log(1/delta) log(nmd))}, B = 100
    log(mnd/delta)/epsilon, tau = O(G log(nmd)/sqrt(m)) and v = 0.9B + 2 log(T/delta)/epsilon. If
    the dataset is drawn i.i.d. from P, the output x_S of Algorithm 5 satisfies E[F(x_S) -
    F(x_star)] <= Otilde(GD (d/sqrt(mn) + d^(3/2)/(n epsilon^2 sqrt(m)))).

    "Set eta <=" allows steps that are too small to learn anything, for example eta = D/(G n) for f
    = -G x. If eta equals its bound, the lemma fails for constant m. Theorem C.2 fails too. The
    theorem's bound on beta has two summands. The lemma has only the first summand. The proof has
    five flaws. First, E norm(zeta_s)^2 <= D^2 d log^(-2s) m holds only up to a constant. The bound
    needs sqrt(d ...) in eta, but the proof has d ... in eta. The bound also needs G^2 instead of G.
    Second, the sum of (log m/2)^(-(s-2)) converges only for m > e^2. Third, (log m)^(log n) uses S
    = log n instead of S = log(n/B). If n is near 2B, log(n/B) is far smaller than log n. Fourth,
    F(xbar_s - xbar_(s-1)) should be F(xbar_s) - F(xbar_(s-1)). Fifth, the norm in G norm(zeta_S) is
    the l_1-norm. The condition on beta lacks the second summand of Theorem C.2. The condition beta
    eta <= 1 of Lemma 13 follows from neither of the two conditions.
    """
    refute_few_items(ledger, second=0)
    refute_small_steps(ledger)
    attack_repair(ledger)

    @ledger.step("the noise of phase s, up to a factor of 2").falsify(
        "d sigma_s^2 <= 2 D^2 d log^(-s) m", m=Interval(3.0, 1e9, log=True),
        d=Interval(1.0, 1e6, log=True), n=Interval(1e3, 1e12, log=True), epsilon=EPSILON,
        delta=DELTA, s=Choice((1, 2, 5)), part=2.0, mutant={"part": 1.0},
        extremal=[{"m": 3.0, "d": 1.0, "n": 1e12, "epsilon": 1.0, "delta": 0.36, "s": 1}],
    )  # fmt: skip
    def noise(m, d, n, epsilon, delta, s, part):
        own, logs = max(1.0, math.log(1 / delta)), math.log(n * m * d)
        eta = math.sqrt(m / (d * own * logs)) * epsilon
        sigma = eta / math.log(m) ** s * math.sqrt(d * (epsilon + own) * logs / m) / epsilon
        return d * sigma**2, part * d / math.log(m) ** s

    ledger.consequence(
        "The lemma says nothing about how small eta may be, or about small m.", harm="accuracy"
    )


@statement("sco2.thmC2.util", expected="refuted")
def error_of_the_algorithm(ledger):
    """Under the hypotheses of Theorem C.2 and with its parameters, when the nm functions in D are
    i.i.d. drawn from P, Algorithm 5 takes mn gradient computations and outputs x_S with E[F(x_S) -
    F(x_star)] <= Otilde(d/sqrt(nm) + d^(3/2)/(n epsilon^2 sqrt(m))).

    The rate fails for constant m. If m <= e, steps and noise do not shrink. We read log m as at
    least 1. The printed log^(-s) m makes steps and noise grow at m = 2 and divides by zero at m =
    1. The last noise has sigma_S = sigma_1. Let F = G sum_j h(x_j), where h is the Huber function
    of curvature beta. For any earlier steps, the error is at least G d E h(sigma_1 N(0, 1)). As n
    -> infinity, this error is of the order of GD d^(3/2)/(sqrt(n) epsilon^2). This order exceeds
    the rate by the factor sqrt(d). At d = sqrt(n), no power of a logarithm compensates n^(1/4). At
    m = 3, the steps shrink only by a factor of 1.1, and the rate fails too. If max(4, log m)
    replaces log m and beta eta <= 1/2, the sum of the proof gives the rate.
    """
    refute_few_items(ledger)
    attack_repair(ledger)
    ledger.consequence(
        "With one or two items per user, the last noise is as large as the first noise.",
        harm="accuracy",
    )


@statement("sco1.thm3.1.util", expected="refuted")
def error_of_the_first_version(ledger):
    """Under the hypotheses of Theorem 3.1, with any eta <= (D/G) min{B sqrt(m)/sqrt(n), sqrt(m)
    epsilon/sqrt(d log(1/delta) log(nmd))}, when the nm functions in D are i.i.d. drawn from P,
    Algorithm 5 takes mn gradient computations and outputs x_S with E[F(x_S) - F(x_star)] <=
    Otilde(d/sqrt(nm) + d^(3/2)/(n epsilon^2 sqrt(m))).

    As in sco2.lemma38, "any eta" below the bound includes steps that learn nothing. As in
    sco2.thmC2.util, the rate fails for constant m for every eta that is close to the bound.
    """
    refute_small_steps(ledger)
    refute_few_items(ledger)
    attack_repair(ledger)
    ledger.consequence("No rate holds for all step sizes below a bound.", harm="accuracy")


@statement("sco1.sec1.2.upper", expected="refuted")
def announced_rate(ledger):
    """The algorithm achieves a utility rate of Otilde(d/sqrt(nm) + d^(3/2)/(n sqrt(m) epsilon^2))
    for smooth functions over an l_inf-ball with gradients bounded in the l_1-norm and diagonally
    dominant Hessians; a lower bound Omegatilde(d/sqrt(nm) + d^(3/2)/(n sqrt(m) epsilon)) shows that
    it is nearly optimal except for the dependence on epsilon.

    As in sco2.thmC2.util, the algorithm as printed does not achieve the rate for constant m. The
    algorithm achieves the rate for other step sizes. The gradients are bounded in the l_inf-norm,
    so the losses are Lipschitz in the l_1-norm. The lower bound needs a minimum with d, which
    Theorem 23 of v2 contains. For n sqrt(m) epsilon < sqrt(d), the bound exceeds 2GDd, the largest
    possible error. As epsilon decreases, the bound exceeds 2GDd by an arbitrarily large factor. If
    both bounds hold, the two bounds differ by a factor 1/epsilon.
    """
    refute_few_items(ledger)
    attack_repair(ledger)

    @ledger.sweep(
        "the lower bound at n = 10, d = 10^6, m = 1, epsilon = 10^-12, in units of GD", n=10,
        d=1e6, m=1, epsilon=1e-12, log=50.0, lhs="the lower bound over log(...)^6", rhs="2d",
    )  # fmt: skip
    def lower(n, d, m, epsilon, log):
        return (d / math.sqrt(n * m) + d**1.5 / (n * math.sqrt(m) * epsilon)) / log**6, 2 * d

    ledger.consequence("The announcement claims more than the algorithm achieves.", harm="accuracy")


@statement("sco2.D1")
def limitations(ledger):
    """The privacy term of the extension depends on epsilon as epsilon^(-2), worse than the
    epsilon^(-1) of Theorem 8, because of limitations in how robust statistics benefit from larger
    batch sizes; the diagonal dominance requirement is more restrictive than standard smoothness,
    and the techniques are tailored to the l_inf setting.

    The claim is true. The power of epsilon comes from D^2/(eta T) in the first phase. In the first
    phase, T is n/(2B), B is of order 1/epsilon, and eta is of order epsilon. In Theorem 8, eta is
    of the order of B epsilon, because the noise of Theorem 8 decreases with B. Diagonal dominance
    excludes all generalised linear models with three or more features. The reason is that the
    diagonal of `a a^T` dominates at most the largest row of `a a^T`.
    """

    @ledger.identity(
        "power of epsilon of d B/(eta n), large d", epsilon=[0.5, 0.1], d=[1e8, 1e12],
        with_b=[0, 1], power=1, mutant={"power": 2},
    )  # fmt: skip
    def exponent(epsilon, d, with_b, power):
        """Return the power of epsilon in d B/eta, and the claimed power.

        The value eta sqrt(m)/(D sqrt(d)) is min(...), with or without the factor B of Theorem 8.
        """
        found = []
        for x in (epsilon, epsilon / 2):
            b = 1 / x
            eta = b**with_b * min(b ** (1 - with_b) / 1e2, x / math.sqrt(d))
            found.append(b / eta)
        return math.log2(found[1] / found[0]), 2.0 - power * with_b

    @ledger.falsify(
        "a row of a a^T that its diagonal does not dominate", a=Array(Interval(0.1, 1.0), (3,)),
        use=3, mutant={"use": 1}, extremal=[{"a": np.ones(3)}],
    )  # fmt: skip
    def dominated(a, use):
        """Use the row of the smallest entry."""
        return 2 * a[:use].min(), a[:use].sum() - ROUNDING
