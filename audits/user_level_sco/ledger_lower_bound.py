"""User-level DP-SCO: the lower bound in the l_inf geometry, Theorem 23 and Lemmas 39 and 40."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, norm

from audits.user_level_sco.conventions import SHARE, UNIT
from audits.user_level_sco.ledger_sample_complexity import ERROR, SIZES, private_error
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method
from dpaudit.stats import hockey_stick

# --- Theorem 23 ---


def learned(n, epsilon, constant, power):
    m, d, delta = n, n**3, 2 / n
    rate = min(1, 1 / np.sqrt(m * n) + np.sqrt(d) / (n * epsilon * np.sqrt(m)))
    logs = np.log(m * n * d / delta) ** power
    return rate / (constant * logs), 1 / np.sqrt(delta * n * m)


@statement("sco2.thm23", expected="holds_proof_broken")
def lower_bound(ledger):
    """There exist a distribution P and a loss function f satisfying Assumptions 21 and 22 such that
    for any (epsilon, delta)-user-level DP algorithm M, given an i.i.d. dataset D drawn from P,
    E[F(M(D)) - F(x_star)] >= GD Omegatilde(min{d, d/sqrt(mn) + d^(3/2)/(n epsilon sqrt(m))}).

    The theorem prints no condition on delta. Lemma 39, from which it follows, has delta <= 1/(dnm).
    Under this condition, the theorem holds by another proof, with the constant 1/160 and the root
    of a logarithm. The other proof draws mu from [-R, R]^d with R = min{sqrt(m), sqrt(d)/(3 n
    epsilon)}. It needs epsilon <= 1 and delta <= 1/(4 n R), for which 1/(dnm) is enough if d
    sqrt(m) >= 4. Lemma 39 has R = 1, which gives no bound for sqrt(d/m) < n epsilon < sqrt(d).
    Beyond this range, Lemma 39 uses a mixture, which does not give i.i.d. items. A condition on
    delta is needed. Publishing 2 random users is (0, 2/n)-DP. For every P and f, one pass of SGD
    over the 2 m items of two users has an error of at most GD d/sqrt(2 m). At m = n and d = n^3,
    the theorem claims an error of GD d, up to a constant and logarithms. The claimed error is
    sqrt(2 n) times as large as the error of SGD.

    One imprecise wording is not counted as a mistake. "There exists P such that for any M" should
    be "for any M there exists P", as in Lemma 39. Alternatively, P must be drawn at random. As
    printed, the constant mechanism x_star(P) has error 0. The term d/sqrt(mn) is cited, not proved.
    Biased coins give this term.
    """
    words = {"lhs": "claimed, in units of GD d", "rhs": "error of SGD on 2 m items, at most"}
    words |= {"epsilon": 0.1, "end_to_end": True}
    edge = ledger.edge("delta <= 1/(dnm) and d >= 4 in the lower bound")
    edge.sweep(
        "2 random users are published, m = n, d = n^3", n=1e6, constant=1.0, power=0, **words
    )(learned)
    edge.sweep("the claim over 1000 log(mnd/delta)^3", n=1e30, constant=1e3, power=3, **words)(
        learned
    )

    @ledger.sweep(
        "f(x; z) = -<x, z>, the worse of two instances: clipped Gaussian items with mu in [-R, "
        "R]^d, against noisy signs, and coins of bias 1/(2 sqrt(mn)), against the best guess",
        cases=SIZES, m=[1, 100, 10**4], method=Method.NUMERIC, noise=1.0, mutant={"noise": 0.0},
        lhs="the bound over 160 sqrt(log(mnd)), in units of GD d", rhs="error of the mechanism",
    )  # fmt: skip
    def repaired(n, m, d, epsilon, noise):
        root = math.sqrt(max(1.0, math.log(m * n * d)))
        rate = 1 / math.sqrt(m * n) + math.sqrt(d) / (n * epsilon * math.sqrt(m))
        width = min(math.sqrt(m), math.sqrt(d) / (3 * n * epsilon))
        first = 0.95 * private_error(n, d, epsilon, width, noise) / (3 * math.sqrt(m) * root)
        bias = 1 / (2 * math.sqrt(m * n))  # of coins with sides -G and G, in units of G
        heads = (1 + bias) / 2
        ties = binom.pmf(m * n / 2, m * n, heads) if m * n % 2 == 0 else 0.0
        second = bias * (binom.cdf((m * n - 1) // 2, m * n, heads) + ties / 2)
        return min(1.0, rate) / (160 * root), 2 * max(first, second)

    few = ledger.step(
        "Lemma 39 for n epsilon < sqrt(d)",
        fix="draw mu from [-R, R]^d with R up to sqrt(m): the same proof then gives d R/8",
    )

    @few.sweep(
        "m = d = 10^6, n epsilon = 10", d=10**6, n_epsilon=10.0,
        lhs="d^(3/2)/(n epsilon), that Lemma 39 gives", rhs="sum_k abs(mu[k]) at most, R = 1",
    )  # fmt: skip
    def beyond(d, n_epsilon):
        return d**1.5 / n_epsilon, d

    ledger.consequence(
        "None under the condition on delta of Lemma 39. For sqrt(d/m) < n epsilon < sqrt(d), the "
        "printed proof gives no bound.",
        harm="the wording",
    )


@statement("sco2.eq14")
def linear_instance(ledger):
    """For X = [-1, 1]^d, f(x; z) = -<x, z> and z in [-sqrt(m), sqrt(m)]^d with mean mu, f satisfies
    Assumptions 21 and 22 with G = sqrt(m), D = 1 and beta = 0, and F(M(D)) - F(x_star) = sum_i
    (sign(mu[i]) - M(D)[i]) mu[i] >= sum_i abs(mu[i]) 1(sign(mu[i]) != sign(M(D)[i])).

    The function f is linear, so beta = 0, and its Hessian 0 is diagonally dominant. If M(D)[i] = 0,
    the sign of M(D)[i] counts as wrong, and the inequality is an equality. The inequality needs
    M(D) in [-1, 1]^d. In Lemma 39, z lies in [-G, G]^d with G = Theta(sqrt(m log(mnd))). So G =
    sqrt(m) loses a square root of a logarithm, which Omegatilde hides.
    """
    domain = {"mu": Array(UNIT, ("d",)), "answer": Array(UNIT, ("d",)), "d": Choice((1, 2, 4))}
    domain["extremal"] = [
        {"mu": np.array(mu), "answer": np.array(answer)}
        for mu, answer in (([1.0, -0.5], [0.0, 0.0]), ([0.0, 0.3], [1.0, -0.0]), ([0.2], [0.0]))
    ]

    @ledger.falsify("the inequality", stretch=1.0, mutant={"stretch": 3.0}, **domain)
    def weighted(mu, answer, stretch):
        """Compare both sides.

        The mutant allows points outside of X.
        """
        gap = (np.sign(mu) - stretch * answer) @ mu
        return np.abs(mu) @ (np.sign(mu) != np.sign(answer)), gap + 1e-12

    @ledger.identity("the gap, over the corners", least=1.0, mutant={"least": 0.5}, **domain)
    def gap(mu, answer, least):
        corners = np.array(list(itertools.product([-1.0, 1.0], repeat=len(mu))))
        best = least * (-corners @ mu).min()
        return 1 - answer @ mu - best, 1 + (np.sign(mu) - answer) @ mu

    @ledger.falsify(
        "f is sqrt(m)-Lipschitz in l_1", z=Array(UNIT, (3,)), x=Array(UNIT, (3,)), m=Integer(1, 99),
        extremal=[{"z": np.ones(3), "x": np.array([1.0, 0.5, 0]), "m": 4}],
    )  # fmt: skip
    def lipschitz(z, x, m):
        """Compare with the value at 0, because f is linear."""
        return abs(math.sqrt(m) * z @ x), math.sqrt(m) * np.abs(x).sum() + 1e-12


# --- Lemma 39 ---


def trivial(n, d, epsilon, constant, power):
    m = 1
    logs = np.log(d * n * m / epsilon) ** power
    return d**1.5 / (n * epsilon) / (constant * logs), d


@statement("sco2.lemma39", expected="refuted")
def error_of_signs(ledger):
    """Let epsilon <= 0.1 and delta <= 1/(dnm). For any (epsilon, delta)-user-level DP algorithm M
    there exists a distribution P_2 such that norm_inf(E z) <= 1 and norm_inf(z) <= Otilde(sqrt(m))
    almost surely, and, given D i.i.d. drawn from P_2, E_(D,M,mu) sum_i abs(mu[i]) 1(sign(mu[i]) !=
    sign(M(D)[i])) >= Omegatilde(d^(3/2)/(n epsilon)).

    Theorem 23 has a minimum with d, but this lemma does not have the minimum. Because norm_inf(E z)
    <= 1, the sum is at most d. If n epsilon is far below sqrt(d), then d is smaller than d^(3/2)/(n
    epsilon) by a power of d. The proof assumes that n is far above sqrt(d)/epsilon, but the paper
    does not print this condition. With the minimum with d, the lemma holds for epsilon <= 1 and
    delta <= 1/(4n). The logarithms are not needed. Take the P_2 that clips N(mu, m I) for mu
    uniform on [-R, R]^d, R = min{1, sqrt(d)/(3 n epsilon)}. The phrases "there exists P_2" and
    "E_mu" both refer to a mean mu that is drawn first.
    """
    words = {"lhs": "claimed", "rhs": "sum_i abs(mu[i]) at most", "n": 2, "epsilon": 0.1}
    ledger.sweep("n = 2, m = 1, epsilon = .1, delta = 0", d=1e6, constant=1.0, power=0, **words)(
        trivial
    )
    ledger.sweep("the claim over 1000 log(dnm/epsilon)^3", d=1e40, constant=1e3, power=3, **words)(
        trivial
    )

    repair = ledger.repair(
        "the same with min{d, d^(3/2)/(n epsilon)}/30, for epsilon <= 1 and delta <= 1/(4n)"
    )

    @repair.sweep(
        "noisy signs against the prior on [-R, R]^d", cases=SIZES, method=Method.NUMERIC,
        noise=1.0, mutant={"noise": 0.0}, **ERROR,
    )  # fmt: skip
    def repaired(n, d, epsilon, noise):
        width = min(1.0, math.sqrt(d) / (3 * n * epsilon))
        error = 0.95 * private_error(n, d, epsilon, width, noise)  # sco2.eq20: abs(mu') >= .95
        return min(1.0, math.sqrt(d) / (n * epsilon)) / 30, error

    gap = ledger.step(
        "Lemma 41 is used at sqrt(d)/(32 epsilon) users under delta <= 1/(dnm), but its proof "
        "has delta <= 1/dk^2 for k users",
        fix="delta <= 1/(4n) is enough for Lemma 41",
    )

    @gap.sweep("d = 10^4, epsilon = .01, n = 1000, m = 1", d=10**4, epsilon=0.01, n=1000,
               lhs="1/(dnm)", rhs="1/dk^2 for k = sqrt(d)/(32 epsilon)")  # fmt: skip
    def enough(d, epsilon, n):
        return 1 / (d * n), 1 / (d * (math.sqrt(d) / (32 * epsilon)) ** 2)

    ledger.consequence(
        "Theorem 23 also uses this claim for sqrt(d/m) < n epsilon < sqrt(d), where it fails.",
        harm="accuracy",
    )


def noisy_signs(d, epsilon, constant, power):
    n, m = d**2, 1
    delta = 1 / (d * n * m)
    variance = 8 * d * np.log(1.25 / delta) / (n * epsilon) ** 2 + 1 / n
    claimed = d**1.5 / (n * epsilon) / (constant * np.log(1 / delta) ** power)
    return claimed, d * variance / (2 * ndtr(1) - 1) ** 2


@statement("sco2.lemma39.chain", expected="refuted")
def chain(ledger):
    """Let P_1 draw mu[k] uniformly from [-1, 1] and z[k] ~ N(mu[k], m), let Pbar_1 be that of the
    users' means, and let Pbar_2 = (n_star/n) Pbar_1 + (1 - n_star/n) P_3, P_3 the Dirac
    distribution at 0 and n_star = Otilde(sqrt(d)/epsilon). Then inf over user-level M of Error[P_1,
    M, nm] >= inf over item-level M of Error[Pbar_2, M, n] >= (n_star/n) inf Error[Pbar_1, M,
    sqrt(d)/32 epsilon] >= Omegatilde(d^(3/2)/(epsilon n)).

    The first and the last term of the chain contradict each other. For P_1, abs(mu[k]) is not
    scaled by n_star/n. Average the signs of the users' means, and add Gaussian noise for their
    sensitivity 2 sqrt(d)/n. The error is at most 2.2 d v, where v = 1/n + 8 d log(1.25/delta)/(n
    epsilon)^2. For n = d^2, the error bound is d^(3/2)/(n epsilon) times a constant times
    epsilon/sqrt(d). The bound follows from P[wrong] <= exp(-a^2/(2 v)), where a = 2 Phi(abs(mu)) -
    1 >= .68 abs(mu). Replacing P_1 by P_2 does not repair the chain. The reason is that the mean of
    a user's i.i.d. items from a mixture is not distributed as Pbar_2. A narrow prior without a
    mixture repairs both terms. The second and the third inequality hold. By Markov's inequality,
    these two inequalities hold even without a logarithm.
    """
    words = {"lhs": "d^(3/2)/(epsilon n)", "epsilon": 0.1}
    words |= {"rhs": "Error[P_1, M, nm] of Gaussian noise on users' signs, at most"}
    ledger.sweep(
        "n = d^2, m = 1, epsilon = .1, delta = 1/(dnm)", d=1e6, constant=1.0, power=0, **words
    )(noisy_signs)
    ledger.sweep("the claim over 1000 log(1/delta)^3", d=1e40, constant=1e3, power=3, **words)(
        noisy_signs
    )

    repair = ledger.repair(
        "For mu uniform on [-R, R]^d, R = sqrt(d)/(3 n epsilon), epsilon <= 1 and delta <= "
        "1/(4 n R): inf over user-level M of Error[P_1, M, nm] >= d R/8 = d^(3/2)/(24 n epsilon)"
    )

    @repair.sweep("noisy signs", cases=SIZES, method=Method.NUMERIC, noise=1.0,
                  mutant={"noise": 0.0}, **ERROR)  # fmt: skip
    def narrow(n, d, epsilon, noise):
        width = math.sqrt(d) / (3 * n * epsilon)
        return width / 8, private_error(n, d, epsilon, width, noise)

    @ledger.step("the Chernoff bound").falsify(
        "more than 4 n_star log(nd) of n users come from Pbar_1",
        users=Interval(1.0, 1e6, log=True), more=Interval(1.0, 1e6, log=True),
        d=Integer(1, 10**6), times=4.0, mutant={"times": 1.0},
        extremal=[{"users": 1.0, "more": more, "d": 1} for more in (2.0, 4.0, 1e3)],
    )  # fmt: skip
    def many(users, more, d, times):
        n = math.ceil(users * more)
        top = times * users * max(1.0, math.log(n * d))
        return binom.sf(math.floor(top), n, users / n), 1 / max(n * d, 2)

    item = ledger.step(
        "users' means are distributed as Pbar_2 if D is i.i.d. from a mixture P_2, as in Lemma 39",
        fix="take no mixture: mu uniform on [-R, R]^d with R of the order of sqrt(d)/(n epsilon)",
    )

    @item.sweep(
        "m = 2, mu = 0, n_star/n = 1/10", m=2, share=0.1,
        lhs="E Zbar^4 under Pbar_2", rhs="E Zbar^4 of m items from the mixture",
    )  # fmt: skip
    def fourth(m, share):
        of_items = 3 * (share**2 + share * (1 - share) / m)  # 3 E[(j/m)^2], j ~ Bin(m, share)
        return 3 * share, of_items

    ledger.consequence(
        "The printed proof of Lemma 39 and Theorem 23 is wrong, but the rate is correct.",
        harm="accuracy",
    )


@statement("sco2.lemma40")
def users_to_items(ledger):
    """Suppose each user i in [n] observes z_(i,1), ..., z_(i,m) i.i.d. from N(mu, sigma^2 I_d) with
    sigma known. For any (epsilon, delta)-user-level DP algorithm there is an (epsilon,
    delta)-item-level DP algorithm that takes the users' means Zbar_1, ..., Zbar_n as inputs and has
    the same performance.

    Given the sample mean, the distribution of a user's Gaussian sample does not depend on mu. So
    the sample can be drawn anew and given to the user-level algorithm. We read "the same
    performance" as the same distribution of the output, for every mu simultaneously. The scale
    sigma has to be known.
    """

    @ledger.identity("covariance of items drawn anew", m=range(1, 9), sigma=[0.5, 3.0], centred=1.0,
                     mutant={"centred": 0.0}, floor=1e-3)  # fmt: skip
    def drawn_anew(m, sigma, centred):
        """Compute the covariance of z = mean 1 + (I - centred J/m) g."""
        mean = np.ones((m, m)) / m
        spread = np.eye(m) - centred * mean
        return sigma**2 * (mean + spread @ spread.T), sigma**2 * np.eye(m)

    @ledger.falsify(
        "privacy of mixtures over what is drawn anew", draws=Array(Interval(0.01, 1.0), (2, 3)),
        outputs=Array(Interval(1e-3, 1.0), (6, 4)), epsilon=Interval(0.0, 1.0), tolerance=1e-7,
        extremal=[{"draws": np.ones((2, 3)), "outputs": np.array([[4.0, 1, 1, 1]] * 3
                   + [[1.0, 1, 1, 4]] * 3), "epsilon": 0.5}],
    )  # fmt: skip
    def mixtures(draws, outputs, epsilon):
        """Use three samples for each dataset, and an output distribution for each sample."""
        draws = draws / draws.sum(axis=1, keepdims=True)
        outputs = outputs / outputs.sum(axis=1, keepdims=True)
        left, right = outputs[:3], outputs[3:]
        worst = max(hockey_stick(p, q, epsilon) for p in left for q in right)
        return hockey_stick(draws[0] @ left, draws[1] @ right, epsilon), worst + 1e-12


# --- (20) ---


@statement("sco2.eq20")
def clipped_mean(ledger):
    """Let P_2 clip each coordinate of z ~ N(mu, m I_d) to [-G, G] with G = Theta(sqrt(m log(mnd))).
    Then, for fixed mu in [-1, 1]^d, norm_inf(E z - mu) <= O(1/dn^2) for z ~ P_2.

    The bound holds with G = 3 sqrt(m log(mnd)) and the constant 1 for the O(). The display is the
    formula for a truncated normal. But P_2 is a clipped normal distribution, whose bias is smaller
    than the bias of a truncated normal distribution. The difference phi(alpha) - phi(beta) is
    negative for mu > 0, so the paper means its absolute value. The factor n_star/n belongs to the
    mixture, because the mean of the mixture is (n_star/n) mu. In the mixture, mu has to be scaled
    as well. Clipping keeps the sign of mu. The bound abs(mu') >= .95 abs(mu) is more useful in the
    proof of Lemma 39.
    """
    domain = {"m": Integer(1, 10**9), "n": Integer(2, 10**9), "d": Integer(1, 10**6), "mu": SHARE}
    domain["extremal"] = [
        {"m": m, "n": n, "d": d, "mu": 1.0}
        for m, n, d in ((1, 2, 1), (1, 10**9, 1), (10**9, 2, 1), (10**9, 10**9, 10**6))
    ]

    def clipping(m, n, d, mu, c):
        """Return the interval's ends in standard deviations, and the bias of the clipped mean."""
        g = c * math.sqrt(m * max(1.0, math.log(m * n * d)))
        near, far = (g - mu) / math.sqrt(m), (g + mu) / math.sqrt(m)
        beyond = [norm.pdf(t) - t * ndtr(-t) for t in (near, far)]
        return near, far, math.sqrt(m) * (beyond[0] - beyond[1])

    @ledger.falsify(c=3.0, mutant={"c": 1.0}, **domain)
    def bias(m, n, d, mu, c):
        return clipping(m, n, d, mu, c)[2], 1 / (d * n**2)

    @ledger.step("the display, of a truncated normal").falsify(
        sign=1, mutant={"sign": -1}, **domain
    )
    def display(m, n, d, mu, sign):
        """Compare both sides.

        The mutant is the printed display without an absolute value.
        """
        near, far, found = clipping(m, n, d, mu, 3.0)
        inside = 1 - ndtr(-near) - ndtr(-far)
        printed = sign * math.sqrt(m) * (norm.pdf(near) - norm.pdf(far)) / inside
        return found, printed + 1e-12 * found

    @ledger.sharper("abs(mu') >= .95 abs(mu), so that signs and weights are kept").falsify(
        c=3.0, mutant={"c": 1.0}, **domain
    )
    def kept(m, n, d, mu, c):
        return 0.95 * mu, mu - clipping(m, n, d, mu, c)[2] + 1e-12
