"""User-level DP-SCO: Theorem 8 (utility), Lemma 14 and the localisation of Section 3.3.2."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from audits.user_level_sco.conventions import SHARE, UNIT
from audits.user_level_sco.ledger_euclidean_lemmas import LEAST, SIZES, allowed, beyond
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

HARM = (
    "For m <= 5 items (including item-level DP), the noise of the last phase is too large by a "
    "power of n. Step sizes that shrink by log m per phase hardly shrink."
)


# --- Lemma 14 ---


@statement("sco2.lemma14.E1", expected="holds_proof_broken")
def gradients_close_to_their_mean(ledger):
    """For each t in [T] and i in [B], Pr[norm(q_t(Z_(t,i)) - grad F(x_(t-1))) >= 1/(20 tau) = G
    log(ndm/omega)/sqrt(m)] <= omega/(nm), omega = 1/(nm)^3; so E_1, that all these norms are at
    most 1/(20 tau), has probability at least 1 - omega.

    The statement follows from McDiarmid's inequality. Let x = log(nmd), which is at least 16. For x
    >= 10, exp(-(x - 1)^2 / 2) is below (nm)^-4. However, 1 / (20 tau) is G log(nmd) / sqrt(m), not
    G log(ndm/omega) / sqrt(m). The value G log(ndm/omega) / sqrt(m) is up to four times as large.
    Theorem 20 hides a constant. In addition, the norm of a centred gradient is up to 2G. The power
    of the logarithm has to absorb both effects. The point x_(t-1) does not depend on batch t.
    """
    domain = {"log": Interval(16.0, 300.0), "power": 4.0, "extremal": [{"log": 16.0}]}

    @ledger.falsify("McDiarmid, in any dimension, d = 1 in omega", mutant={"power": 9.0}, **domain)
    def tail(log, power):
        return -((log - 1) ** 2) / 2 + power * log + 1.0, 1.0

    @ledger.falsify(
        "m signs, exactly", m=Integer(1, 3000), up=Interval(0.001, 0.999), log=16.0, power=4.0,
        mutant={"log": 5.0}, extremal=[{"m": 256, "up": 0.4}, {"m": 1000, "up": 0.5}],
    )  # fmt: skip
    def signs(m, up, log, power):
        reach = log * math.sqrt(m) / 2  # in numbers of +1
        found = binom.sf(math.ceil(m * up + reach) - 1, m, up)
        return found + binom.cdf(math.floor(m * up - reach), m, up), math.exp(-16.0 * power)

    fix = "omega is not needed in the logarithm"

    @ledger.step("1/(20 tau) = G log(ndm/omega)/sqrt(m)", fix=fix).sweep(
        "d = 1", log=20.0, lhs="log(ndm/omega)", rhs="log(nmd)"
    )
    def logarithms(log):
        return 4 * log, log


def some_noise(log_nm, log_delta, log_n, epsilon=0.99):
    """Return P[some of n noises exceeds 20 log^1.5(mn/delta) / epsilon^1.5], and 1 / (nm)^3."""
    log, z = log_nm + log_delta, np.linspace(-60, 60, 20001)
    weights = np.exp(-np.abs(z)) / np.exp(-np.abs(z)).sum()
    cutoff = np.maximum(10 * log + 4 * z, 1e-300) / epsilon
    two_sigma = 8 * np.sqrt(32 * cutoff * max(1, log_delta)) / epsilon
    one = weights @ np.exp(-20 * log**1.5 / epsilon**1.5 / two_sigma)
    return -math.expm1(math.exp(log_n) / 2 * math.log1p(-one)), math.exp(-3 * log_nm)


@statement("sco2.lemma14.E2", expected="refuted")
def noise_of_all_steps(ledger):
    """The event E_2, that abs(nu_(t,i)) <= 20 log^(3/2)(mn/delta)/epsilon^(3/2) for all t in [T]
    and i in [B], nu ~ Lap(2 sigma), has probability at least 1 - omega, omega = 1/(nm)^3.

    The bound 20 log^1.5 is .14 log(mn/delta) / sqrt(log(1/delta)) times the scale of the noise. At
    delta = 1e-6 and the smallest n, the bound 20 log^1.5 is 1.1 times the scale of the noise. The
    noise of a third of all users exceeds this bound. A bound of 20 log^2, as in Lemma 10, would not
    be enough either. The proof uses only that the noises against a user are at most B / 7, which is
    43 log^2. Even for this weaker bound, omega is too small. At delta = 1e-6 and the smallest n, an
    honest user is filtered with probability 1e-4. The probability 1e-4 is harmless, because up to c
    honest users may be filtered.
    """
    words = {"lhs": "P[some noise is larger]", "rhs": "omega = 1 / (nm)^3"}
    for log_n, log_nm, delta in ((16.0, 16.0, 1e-6), (17.0, 34.0, 0.5), (60.0, 120.0, 1e-10)):
        ledger.sweep(f"n = e^{log_n:g}, nm = e^{log_nm:g}, delta = {delta:g}", log_nm=log_nm,
                     log_n=log_n, log_delta=-math.log(delta), **words)(some_noise)  # fmt: skip
    repair = ledger.repair("P[abs(nu_(t,i)) <= 2 sigma log(n/omega) for all t and i] >= 1 - omega")

    @repair.falsify("n noises", log_n=Interval(16.0, 100.0), more=SHARE, part=1.0,
                    mutant={"part": 0.9})  # fmt: skip
    def corrected(log_n, more, part):
        """Return the logarithms of the union bound and of omega, minus the logarithms at 0."""
        log_nm = log_n * (1 + more)
        return log_n - part * (log_n + 3 * log_nm) + 4 * log_nm, log_nm * (1 + 1e-12)

    ledger.consequence(
        "Lemma 14 has another proof, in which the filter may remove some honest users.",
        harm="a constant",
    )


@statement("sco2.lemma14.f", expected="refuted")
def honest_users_pass(ledger):
    """Let f_(t,i) be the number of Z in D_t with norm(q_t(Z_(t,i)) - q_t(Z)) <= 1/(20 tau). Given
    E_1 and E_2, f_(t,i) >= 0.9B, each user passes the concentration tests, and g_(t-1) is the mean
    of all q_t(Z_(t,i)).

    On E_1, every gradient is within 1 / (20 tau) of the mean. So any two gradients are within 1 /
    (10 tau) of one another. But f counts only the gradients within 1 / (20 tau), which is half of
    this distance. If half of a batch is on each side of the mean, f = B / 2. But all users pass,
    because scores are at least B e^(-1/10) = .904 B. All these claims hold on the event E_1. Except
    with a small probability, the gradients are much closer together than E_1 requires.
    """

    @ledger.sweep("half of a batch at -1 / (20 tau), half at 1 / (20 tau)", b=100, lhs="0.9 B",
                  rhs="f")  # fmt: skip
    def close(b):
        place = np.repeat([-1 / 20, 1 / 20], b // 2)  # times 1 / tau, the mean is 0
        f = (abs(place - place[0]) <= 1 / 20).sum()
        return 0.9 * b, f

    repair = ledger.repair("f = B, with 1 / (10 tau) for 1 / (20 tau); all users pass")
    far = {"places": np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]), "k": 4}
    domain = {"places": Array(UNIT, ("k", 2)), "k": Choice((2, 4, 9)), "extremal": [far]}

    @repair.falsify("within 1 / 20 of 0", reach=0.1, mutant={"reach": 0.05}, **domain)
    def within(places, k, reach):
        inside = places / np.maximum(1, np.linalg.norm(places, axis=1))[:, None] / 20
        return np.linalg.norm(inside[:, None] - inside, axis=2).max(), reach * (1 + 1e-12)

    @repair.falsify("scores, less the noise that E_2 allows, above F", noise=0.15,
                    mutant={"noise": 0.2}, **domain)  # fmt: skip
    def passing(places, k, noise):
        inside = places / np.maximum(1, np.linalg.norm(places, axis=1))[:, None] / 20
        scores = np.exp(-np.linalg.norm(inside[:, None] - inside, axis=2)).mean(axis=1)
        return 0.75, scores.min() - noise

    ledger.consequence(
        "None. The distance 1 / (10 tau) is enough for the proof.", harm="the wording"
    )


@statement("sco2.lemma14", expected="holds_proof_broken")
def filtered_descent_converges(ledger):
    """For D drawn i.i.d. from P and any x in X, the final output xbar of Algorithm 2 satisfies
    E[F(xbar) - F(x)] <~ (beta + 1/eta) E[norm(x_0 - x)^2]/T + eta G^2/(Bm) + GD/(nm)^3.

    On the line, the lemma holds for beta eta <= 1. The condition beta eta <= 1 is inherited from
    Lemma 13. The total variation distance is not (nm)^-3, because the event E_2 fails. Every run
    halts if chat <= 0. The event chat <= 0 alone has probability (delta/nm)^2.5 / 2. But filtering
    an honest user hardly moves the mean of all other users. A halt adds only G norm(x_0 - x) to the
    error. By the inequality of arithmetic and geometric means, the first two terms are at least 2 G
    norm(x_0
    - x) / sqrt(nm). So a halt with probability 1 / (nm) is harmless. The value of c guarantees this
    probability of a halt.
    """
    case = {"eta": 1.0, "steps": 1, "start": 0.0, "noise": 1.0}
    domain = {"eta": Interval(0.001, 1.0, log=True), "steps": Integer(1, 200), "factor": 1.0}
    domain |= {"start": UNIT, "noise": Interval(0.0, 3.0)}

    @ledger.falsify("x^2 / 2, exactly, beta = 1", extremal=[case], mutant={"factor": 0.8}, **domain)
    def parabola(eta, steps, start, noise, factor):
        shrink = 1 - eta
        t = np.arange(1, steps + 1)
        mean = start * (shrink**t).mean()
        weights = (1 - shrink ** (steps - t + 1)) / steps  # eta sum of shrink^k
        found = (mean**2 + noise**2 * np.square(weights).sum()) / 2
        bound = (1 + 1 / eta) * start**2 / steps + eta * noise**2 / 2
        return found, factor * bound + 1e-12

    @ledger.falsify("P[chat <= c / 2], so that a halt takes c / 2 honest users", c=10.0,
                    log=Interval(16.0, 400.0), mutant={"c": 4.0})  # fmt: skip
    def early(log, c):
        return -c * log / 8, -log

    @ledger.falsify(
        "c / 2 honest users of score .948 B are filtered, by a union bound", part=0.198,
        mutant={"part": 0.01}, extremal=[LEAST], examples=100, **SIZES,
    )  # fmt: skip
    def halts(log_nm, log_delta, epsilon, part):
        if not allowed(log_nm, log_delta, epsilon):
            return None
        one = beyond(log_nm, log_delta, epsilon, 300 * part)
        half = 5 * (log_nm + log_delta) / epsilon
        return half * min(0.0, log_nm + math.log(max(one, 1e-300)) - math.log(half / 3)), -log_nm

    step = ledger.step("total variation omega, by E_2", fix="honest users may be filtered")

    @step.sweep("users of score .904 B", **LEAST, lhs="P[an honest user is filtered]",
                rhs="omega")  # fmt: skip
    def filtered(log_nm, log_delta, epsilon):
        one = beyond(log_nm, log_delta, epsilon, 300 * 0.154)
        return -math.expm1(math.exp(log_nm) / 2 * math.log1p(-one)), math.exp(-3 * log_nm)


# --- Theorem 8, utility ---


def last_noise(log_n, m, constant, power):
    """Return a lower bound for E F(x_S), and the claimed rate times log(nmd/delta)^power.

    Both values are divided by GD. The function F(x) is G norm(x), smoothed. The parameters are d =
    n, epsilon = 1/2 and delta = 1e-6. The rate is 1/sqrt(nm) + sqrt(d)/(n epsilon sqrt(m)).
    """
    log, epsilon = 2 * log_n + math.log(m) + math.log(1e6), 0.5
    if log_n < math.log(300 / epsilon**1.5) + 3 * math.log(log):
        return None
    phases = math.ceil(log_n - math.log(300 * log**2 / epsilon**1.5))
    noise = constant * max(1, math.log(m)) ** -phases  # G sqrt(d) sigma_S
    width = 1e6 * log**2 * math.exp(-log_n / 2)  # width of the smooth part, G / beta
    claimed = math.exp(-log_n / 2) * (1 + 1 / epsilon) / math.sqrt(m)
    return 0.79 * noise - width, claimed * log**power


RATE = {"lhs": "E F(x_S) - F(x*) at least, over GD", "rhs": "the rate times log(nmd/delta)^power"}


def rate_fails(ledger):
    for m, log_n, constant, power in (
        (4, 160.0, 1.0, 0.0), (2, 90.0, 1.0, 1.0), (1, 200.0, 0.01, 5.0), (4, 600.0, 0.01, 10.0),
    ):  # fmt: skip
        ledger.sweep(
            f"m = {m}, n = e^{log_n:g}, {constant:g} in sigma_s, log^{power:g}", m=m, log_n=log_n,
            constant=constant, power=power, **RATE,
        )(last_noise)  # fmt: skip


REPAIR = (
    "with eta_s = eta / max(4, log m)^s and beta eta <= 1: for m <= n and n >= B^2; or, for all m "
    "and n of Section 3, with beta E norm(zeta_S)^2 / 2 for G E norm(zeta_S), as zeta_S is "
    "centred. The sum is then at most (log(mn/delta) + log(nmd))^2 times the rate, up to a "
    "constant"
)


def series(log_n, more, dimension, at, log_delta, root, curved, base, power):
    """Return the sum with the last noise, divided by the rate, and a power of a logarithm.

    The parameters are G = D = 1, and the constant in sigma_s is 1. If `at` is 1, B is the smaller
    of n^(1 / root) and n / log(mn/delta). If `at` is 0, epsilon is 1.
    """
    log_m, log_d = more * log_n, dimension * log_n
    log = log_n + log_m + log_delta
    low, most = math.log(300 * log**2), min(log_n / root, log_n - math.log(log))
    if low > most:
        return None
    batch = low + at * (most - low)  # from here on, all quantities are logarithms
    epsilon, size = (low - batch) / 1.5, log_n + log_m + log_d
    noise = (log_d - log_n + math.log(max(1.0, log_delta) * size)) / 2 - epsilon
    eta = batch + (log_m - log_n) / 2 - max(0.0, noise)
    shrink, least = math.log(max(base, log_m)), min(0.0, noise)
    s = np.arange(1, math.ceil(log_n - batch) + 1)
    start = np.where(s == 1, math.log(4), 2 * (least - shrink * (s - 1)))  # E norm^2
    first = start + s * (shrink + math.log(2)) - log_n + batch - eta
    second = eta - shrink * s - log_m - batch - math.log(2)
    last = least - shrink * s[-1]  # G E norm(zeta_S), or beta E norm^2 / 2
    last = 2 * last - eta - math.log(2) if curved else last
    rate = np.logaddexp(0, (log_d - log_n) / 2 - epsilon) - (log_n + log_m) / 2
    total = np.logaddexp.reduce([*first, *second, last])
    return math.exp(total - rate), (log + size) ** power


SERIES = {"log_n": Interval(16.2, 600.0, log=True), "dimension": Interval(0.0, 2.0), "at": SHARE}
SERIES |= {"log_delta": Interval(0.7, 100.0), "power": 2.0}
CORNER = {"log_n": 600.0, "more": 0.0, "dimension": 0.0, "at": 1.0, "log_delta": 0.7}


def attack_repair(ledger, **more):
    """Test the repair at n = B^2 and at n = 300 log^3(mn/delta) / epsilon^1.5."""
    few, many = {"more": SHARE, **more}, {"more": Interval(0.0, 6.0), **more}
    ledger.repair(REPAIR).falsify(
        "the sum of Section 3.3.2 and the last noise, n >= B^2", root=2.0, curved=False, base=4.0,
        mutant={"root": 1.2}, extremal=[CORNER, {**CORNER, "dimension": 1.0}], **few, **SERIES,
    )(series)  # fmt: skip
    ledger.repair(REPAIR).falsify(
        "the sum, and the last noise by smoothness, n / B >= log(mn/delta)", root=1.0, curved=True,
        base=4.0, mutant={"base": 1.5}, extremal=[CORNER, {**CORNER, "at": 0.0}], **many, **SERIES,
    )(series)  # fmt: skip


@statement("sco2.thm8.util", expected="refuted")
def utility_of_the_euclidean_algorithm(ledger):
    """With the assumptions and parameters of Section 3, when the nm functions of D are sampled
    i.i.d. from P, Algorithm 1 performs nm gradient computations and outputs x_S with E[F(x_S) -
    F(x_star)] <= Otilde(1/sqrt(nm) + sqrt(d)/(n epsilon sqrt(m))).

    For every factor that Otilde may hide, the bound fails if m <= 5. Take F = G norm(x), smoothed,
    with d = n. Up to a constant, the noise of the last phase has length at least D (log m)^-S. If
    log log m < 1/2, (log m)^-S = (n/B)^(-log log m) is more than n^(-1/2). If m <= 2, the steps do
    not shrink at all, so the error is the error of x_0. For m = 3, 4, 5, the bound fails under
    every convention on log m. In the proof, the sum converges only for log m > 2. The last term of
    the sum needs log log m > 1.

    Feldman, Koren and Talwar (2020) use 4 instead of log m. If 4 replaces log m, the search found
    no counterexample to the sum for m <= n and n >= B^2. Section 3 assumes only n / B >=
    log(mn/delta), not n >= B^2. So for small epsilon, S is about log log(mn/delta). For small
    epsilon and every m, G E norm(zeta_S) is at least 10^8 times the allowed value (sco2.util.sum).
    But zeta_S is centred and F is smooth, so zeta_S adds only beta E norm(zeta_S)^2 / 2 to the
    error. With beta <= 1 / eta and the term beta E norm(zeta_S)^2 / 2, the search found no
    counterexample to the sum for any m and n of Section 3. The number of gradients is at most nm.
    In the printed lines 6 and 8 of Algorithm 2, each of n
    - n / 2^S users computes the gradients twice.
    """
    rate_fails(ledger)
    attack_repair(ledger)
    ledger.consequence(HARM, harm="accuracy")


@statement("sco2.sec1.3.const-m", expected="refuted")
def constant_number_of_items(ledger):
    """The algorithm uses only mn gradient computations and achieves excess risk Otilde(1/sqrt(nm) +
    sqrt(d)/(n epsilon sqrt(m))) for convex functions of smoothness beta <= Otilde(sqrt((n + d)/m)).
    When m is constant, this recovers the smoothness requirement of Feldman et al. (2020), beta <=
    sqrt(n) + sqrt(d)/epsilon.

    For m <= 5, the rate fails (sco2.thm8.util). So the algorithm does not achieve the item-level
    rate if m is a small constant. The smoothness is epsilon^1.5 times the smoothness of Feldman et
    al. The reason is that sqrt(epsilon) (epsilon sqrt(n) + sqrt(d)) replaces sqrt(n) + sqrt(d) /
    epsilon. (A factor of 1 / 300 and logarithms have to be hidden.) The printed Otilde(sqrt((n +
    d)/m)) omits G/D and epsilon.
    """
    rate_fails(ledger)

    any_epsilon = "epsilon is not constant: the smoothness is that of Feldman et al."

    @ledger.reading(any_epsilon, fails=True).sweep(
        "m = 1, n = d", n=10**9, epsilon=1e-4, hidden=1e4, lhs="sqrt(n) + sqrt(d)/epsilon",
        rhs="that of Section 3, times 10^4",
    )  # fmt: skip
    def smoothness(n, epsilon, hidden):
        root = math.sqrt(n)
        return root + root / epsilon, hidden * math.sqrt(epsilon) * (epsilon * root + root)

    attack_repair(ledger, more=Interval(0.0, 0.005))  # m = 1 to 20
    ledger.consequence(HARM, harm="accuracy")


@statement("sco2.util.noise", expected="holds_proof_broken")
def noise_of_the_phases(ledger):
    """For the eta of Section 3, with xbar_0 = x_star and zeta_0 = x_0 - x_star, for all s >= 0,
    E[norm(zeta_s)^2] = d sigma_s^2 = eta_s^2 d G^2 log(1/delta) log(nmd)/(B^2 m epsilon^2) <= D^2
    log^(-s) m.

    For s >= 1, the bound holds. The bound holds even with log^(-2s) m, which the next display
    needs. For s = 0, x_0 - x* is not Gaussian. If X lies in a ball of radius D, the norm of x_0 -
    x* is at most 2D, not D. We use the constant 1 in sigma_s. For m <= 2, the steps and the noise
    do not shrink.
    """
    domain = {"n": Interval(1e7, 1e20, log=True), "d": Interval(1.0, 1e20, log=True)}
    domain |= {"m": Interval(1.0, 1e20, log=True), "logs": Interval(1.0, 1e4), "s": Integer(1, 40)}
    domain |= {"epsilon": Interval(0.001, 1.0), "extra": 0.0, "mutant": {"extra": 0.3}}
    worst = {"n": 1e7, "d": 1e12, "m": 1e9, "logs": 10.0, "s": 2, "epsilon": 0.1}

    @ledger.sharper("log^(-2s) m").falsify("over D^2", power=2, extremal=[worst], **domain)
    @ledger.falsify("over D^2", power=1, extremal=[{**worst, "m": 2.0}], **domain)
    def noise(n, d, m, logs, s, epsilon, power, extra):
        shrink = max(1.0, math.log(m))
        root = math.sqrt(d * logs) / epsilon
        sigma = min(1 / math.sqrt(n), 1 / root) * shrink**-s * root
        return sigma**2, shrink ** (-power * s) * (1 + 1e-9) / (1 + extra)

    @ledger.step("norm(zeta_0) <= D, for X of radius D", fix="2D, which costs a constant").sweep(
        "x_0 and x* at the ends", d=1.0, lhs="norm(x_0 - x*)", rhs="D"
    )
    def ends(d):
        return abs(d - (-d)), d


def third_line(log_n, m, epsilon, power):
    """Return the sum over s divided by GD times the rate, and log^power, for d = 1, delta = 1/e."""
    log = log_n + math.log(m) + 1
    log_batch = math.log(300 * log**2 / epsilon**1.5)
    if log_n < log_batch + math.log(log):
        return None
    s = np.arange(1, math.ceil(log_n - log_batch) + 1)
    terms = (max(1, math.log(m)) / 2) ** -(s - 2.0)
    return 0.74 * terms.sum(), log**power  # eta = (D/G) B sqrt(m/n); rate 2.01 / sqrt(nm)


def last_term(log_n, power):
    """Return logarithms of the last term and of the rate times log^power, divided by GD.

    The parameters are m = sqrt(n), d = 1, delta = 1e-6 and n = 300 log^3(mn/delta) / epsilon^1.5.
    """
    log = 1.5 * log_n - math.log(1e-6)
    log_epsilon = (math.log(300) + 3 * math.log(log) - log_n) / 1.5
    noise = math.log(-math.log(1e-6) * 1.5 * log_n) / 2 - log_n / 2 - log_epsilon
    found = math.log(0.79) + min(0, noise) - math.ceil(math.log(log)) * math.log(log_n / 2)
    rate = np.logaddexp(0, -log_n / 2 - log_epsilon) - 0.75 * log_n
    return found, rate + power * math.log(log)


def few_phases(log_n, constant):
    """Return logarithms of the last noise for d = n, and of a power of log m.

    The last noise satisfies E norm(zeta_S) >= .79 D / (log m)^S.
    """
    phases, shrink = math.ceil(math.log(1.5 * log_n - math.log(1e-6))), math.log(log_n / 2)
    return math.log(0.79) - phases * shrink, -constant * log_n * shrink


@statement("sco2.util.sum", expected="refuted")
def the_sum_over_phases(ledger):
    """With the assumptions and parameters of Section 3 and T_s steps in phase s, E[F(x_S)] -
    F(x_star) <= sum_s (E norm(zeta_(s-1))^2/(eta_s T_s) + eta_s G^2/(2Bm)) + G E norm(zeta_S) <=
    sum_s (log(m)/2)^(-(s-2)) (D^2/(eta n/B) + eta G^2/(2Bm)) + GD/(log m)^{O(log n)} <= Otilde(GD
    (1/sqrt(nm) + sqrt(d)/(n sqrt(m) epsilon))).

    The last inequality fails for m <= 7. For these m, log(m)/2 is below 1, so the sum is a power of
    n/B. At m = 7, this power is only (n/B)^.027. The second inequality needs log^(-2(s-1)) m for E
    norm(zeta_(s-1))^2. The paper states only log^(-(s-1)) m. The second inequality also loses a
    factor of 4. In addition, the second inequality prints (log(m)/2)^(-(s-2)) instead of log^2(m)
    (2/log m)^s. The proof also treats S as a multiple of log n. Section 3 assumes only n/B >=
    log(mn/delta). At the smallest n of Section 3, epsilon is small, and S is about log
    log(mn/delta). At the smallest n, G E norm(zeta_S) is GD / (log m)^S, or a little less. For
    every m, G E norm(zeta_S) exceeds the rate by a power of n at d = 1. The first inequality uses
    Lemma 14 with all constants equal to 1. The first inequality omits (beta + 1/eta) <= 2/eta and
    GD/(nm)^3.
    """
    words = {"lhs": "the sum over s, over GD times the rate", "rhs": "log(mn/delta)^power"}
    for m, log_n, power in ((3, 60.0, 0.0), (7, 5e3, 15.0), (2, 400.0, 10.0)):
        ledger.sweep(f"m = {m}, n = e^{log_n:g}, log^{power:g}", m=m, log_n=log_n, power=power,
                     epsilon=0.99, **words)(third_line)  # fmt: skip
    words = {"lhs": "log of G E norm(zeta_S) / GD", "rhs": "log of the rate times log^power"}
    for log_n, power in ((69.0, 2.0), (600.0, 20.0)):
        ledger.sweep(f"least n, e^{log_n:g}, m = sqrt(n), d = 1, log^{power:g}", log_n=log_n,
                     power=power, **words)(last_term)  # fmt: skip

    last = ledger.step("E norm(zeta_S) <= D/(log m)^{O(log n)}", fix="n >= B^2, or smoothness")
    last.sweep(
        "least n, m = sqrt(n), d = n", log_n=[1e4, 1e6], constant=[1.0, 0.01],
        lhs="log of E norm(zeta_S) / D, at least", rhs="log of 1/(log m)^(constant log n)",
    )(few_phases)  # fmt: skip

    @ledger.step("the second inequality", fix="4 for 1").sweep(
        "the first terms, any m, over D^2 B / (eta n)", m=1e6, s=3,
        lhs="E norm(zeta_(s-1))^2 / (eta_s T_s), with log^(-2(s-1)) m", rhs="(log(m)/2)^(-(s-2))",
    )  # fmt: skip
    def first_terms(m, s):
        return math.log(m) ** (2 - s) * 2.0**s, (math.log(m) / 2) ** (2 - s)

    attack_repair(ledger)
    ledger.consequence(HARM, harm="accuracy")
