"""User-level DP-SCO: losses, concentration, Table 1."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit
from scipy.stats import binom, chi2, norm

from algorithms.user_level_sco.domains import Ball, Box
from audits.user_level_sco import transcribed
from audits.user_level_sco.baseline_checks import (
    attack_concentrated_means,
    attack_group_privacy,
)
from audits.user_level_sco.conventions import UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12


@statement("sco2.ass7")
def euclidean_assumption(ledger):
    """Each function f(.; z) on X is convex, G-Lipschitz and beta-smooth, where X is a convex
    compact domain of radius D in l_2-norm.

    Losses log(1 + exp(<x, z>)) with norm(z) <= G satisfy the assumption with beta = G^2 / 4. These
    losses attain G and beta. The linear losses of the lower bound also satisfy the assumption.
    "Radius D" is not defined. Section 3.3.2 infers norm(x_0 - x_star) <= D from "radius D", so D is
    a diameter in Section 3.3.2. If D is a radius, the bound is 2 D.
    """

    @ledger.falsify(
        "logistic losses", x=Array(Interval(-3.0, 3.0), (2,)), z=Array(UNIT, (2,)),
        which=Choice((0, 1, 2)), fourth=0.25, mutant={"fourth": 0.2},
        extremal=[{"x": np.zeros(2), "z": np.array([0.6, 0.8]), "which": 1}],
    )  # fmt: skip
    def logistic(x, z, which, fourth):
        """Return the least curvature, the largest curvature or the slope, and the bound."""
        likely, size = expit(x @ z), np.linalg.norm(z)
        hessian = likely * (1 - likely) * np.outer(z, z)
        if which == 2:
            return likely * size, size
        values = np.linalg.eigvalsh(hessian)
        found = -values[0] if which == 0 else values[-1]
        return found, fourth * size**2 * (which == 1) + ROUNDING

    @ledger.identity(
        "the domains: nearest points, and the largest distance to a point of the domain",
        x=Array(Interval(-3.0, 3.0), (2,)), radius=Interval(0.1, 4.0), norm=Choice(("l2", "linf")),
        square=Choice((True, False)), part=1.0, mutant={"part": 0.9}, examples=100, floor=1e-9,
    )  # fmt: skip
    def domains(x, radius, norm, square, part):
        """Enumerate the points at which a convex function on the domain is largest."""
        domain = Box(radius) if square else Ball(radius)
        axes = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
        opposite = -x / max(1e-300, math.hypot(*x))
        ends = corners if square else np.vstack([axes, opposite])
        size = np.linalg.norm(x - part * radius * ends, axis=1, ord=2 if norm == "l2" else np.inf)
        onto = transcribed.onto_box if square else transcribed.onto_ball
        pair = np.array([x, 2 * x])
        found = [*domain.farthest(x[None], norm), *domain.project(pair).ravel()]
        return found, [size.max(), *onto(radius)(x), *onto(radius)(2 * x)]


# --- concentration ---


@statement("sco2.intro.hp")
def average_gradients_concentrate(ledger):
    """If each user's m inputs are drawn i.i.d. from P, then with high probability the average
    q_t(Z_i) of the m gradients of user i at x_t satisfies norm(q_t(Z_i) - grad F(x_t)) <=
    Otilde(1/sqrt(m)).

    By McDiarmid's inequality, the probability of exceeding (1 + sqrt(2 log(1 / gamma))) G / sqrt(m)
    is at most gamma in every dimension. The inequality needs an x_t that is independent of the
    batch. Fresh users ensure this independence. Algorithm 2 takes the gradients at x_(t-1), but the
    introduction takes the gradients at x_t.
    """
    domain = {"m": Integer(1, 300), "p": Interval(0.01, 0.99), "sigmas": Interval(0.0, 6.0)}
    domain |= {"extremal": [{"m": 300, "p": 0.5, "sigmas": 1.5}, {"m": 1, "p": 0.5, "sigmas": 0.0}]}

    @ledger.falsify("gradients +-G", plane=False, power=0.5, mutant={"power": 0.75}, **domain)
    @ledger.falsify("in the plane, G (+-1, +-1) / sqrt(2)", plane=True, power=0.5,
                    mutant={"power": 0.75}, **domain)  # fmt: skip
    def exceeds(m, p, sigmas, plane, power):
        """Return the tail of fair or biased signs, and the bound gamma = exp(-sigmas^2 / 2)."""
        successes = np.arange(m + 1)
        chances = binom.pmf(successes, m, p)
        square = (2 * (successes / m - p)) ** 2
        if plane:
            square, chances = np.add.outer(square, square) / 2, np.outer(chances, chances)
        far = np.sqrt(square) >= (1 + sigmas) / m**power + ROUNDING
        return float(chances[far].sum()), math.exp(-(sigmas**2) / 2) + ROUNDING


@statement("sco2.def19")
def subgaussian(ledger):
    """Let zeta > 0. A random vector X is subGaussian, SG(zeta), if E exp(<v, X - EX>) <=
    exp(norm(v)^2 zeta^2/2) for any v in R^d, and norm-subGaussian, nSG(zeta), if P[norm(X - EX) >=
    t] <= 2 exp(-t^2/(2 zeta^2)) for all t > 0.

    These statements are definitions. A vector with norm(X - E X) <= M is nSG(M / sqrt(2 log 2)),
    and this parameter is the smallest possible. The paper needs exactly this fact. The distribution
    N(0, s^2 I_d) is SG(s) and nSG(s sqrt(d)).
    """

    @ledger.falsify(
        "bounded vectors: the tail is 1 up to M", m=Interval(0.1, 10.0), t=Interval(0.0, 12.0),
        half=2.0, mutant={"half": 2.2}, extremal=[{"m": 1.0, "t": 1.0}],
    )  # fmt: skip
    def bounded(m, t, half):
        zeta = m / math.sqrt(half * math.log(2))
        return float(t <= m), 2 * math.exp(-(t**2) / (2 * zeta**2))

    @ledger.falsify(
        "a normal vector", d=Integer(1, 400), t=Interval(0.0, 60.0), part=1.0, mutant={"part": 0.6},
        extremal=[{"d": 400, "t": 19.0}, {"d": 1, "t": 5.0}],
    )  # fmt: skip
    def normal(d, t, part):
        return float(chi2.sf(t * t, d)), 2 * math.exp(-(t**2) / (2 * d * part))

    @ledger.identity("N(0, 1) is SG(1)", v=[0.1, 1.0, 2.0], size=1.0, tolerance=1e-9,
                     mutant={"size": 1.1})  # fmt: skip
    def moment(v, size):
        x = np.linspace(-15, 15, 30_001)
        return (norm.pdf(x) * np.exp(v * x)).sum() * 1e-3, math.exp((v * size) ** 2 / 2)


def tail_of_sum(k, t):
    """Return a bound for P[sum >= t sqrt(k)] of k coordinates.

    Each coordinate has the worst tail, min(1, 2 exp(-t^2 / 2)). A single coordinate attains this
    tail. The sum of many coordinates is nearly normal, with variance 2 + 2 log 2.
    """
    if k == 1:
        return min(1.0, 2 * math.exp(-(t**2) / 2))
    return 2 * float(norm.sf(t / math.sqrt(2 + 2 * math.log(2))))


@statement("sco2.thm20")
def hoeffding_for_vectors(ledger):
    """Let X_1, ..., X_k be random vectors in R^d such that X_i given F_(i-1) is zero-mean
    nSG(zeta_i) for each i in [k]. Then there is an absolute constant c > 0 such that for any gamma
    > 0, P[norm(sum_i X_i) >= c sqrt(log(d/gamma) sum_i zeta_i^2)] <= gamma.

    The absolute constant c comes from Jin et al. (2019), who write log(2 d / gamma). One summand
    needs c >= 1.84, and many summands need c >= 2.6. For c = 3, the search found no counterexample
    among the hardest single vectors, sums of many such vectors, and signs in several coordinates.
    The phrase "any gamma > 0" allows too many values. For the printed log(d / gamma), no c is
    enough at d = 1 and gamma near 1. For gamma > d, the bound is not defined. If logarithms are at
    least 1, both problems are solved.
    """
    domain = {"gamma": Interval(1e-12, 0.999, log=True), "c": 3.0}

    @ledger.falsify(
        "one, or many, in one dimension", k=Choice((1, 10**9)), mutant={"c": 1.8},
        extremal=[{"gamma": math.exp(-1), "k": 1}, {"gamma": 1e-12, "k": 10**9}], **domain,
    )  # fmt: skip
    def on_a_line(gamma, k, c):
        return tail_of_sum(k, c * math.sqrt(max(1.0, math.log(1 / gamma)))), gamma

    @ledger.falsify(
        "k signs along each of d axes, of length 1, so nSG(1 / sqrt(2 log 2))",
        k=Integer(1, 400), d=Choice((1, 2, 3)), mutant={"c": 0.9},
        extremal=[{"gamma": math.exp(-1), "k": 400, "d": 1}, {"gamma": 0.02, "k": 400, "d": 2}],
        **domain,
    )  # fmt: skip
    def signs(gamma, k, d, c):
        """Use k signs for each axis.

        Summand i is +-1 along axis i mod d. A convolution gives the exact result.
        """
        level = c * math.sqrt(max(1.0, math.log(d / gamma)) * d * k / (2 * math.log(2)))
        steps = (2 * np.arange(k + 1) - k) ** 2
        squares, chances = np.unique(steps, return_inverse=True)
        chances = np.bincount(chances, binom.pmf(np.arange(k + 1), k, 0.5))
        total, weights = squares, chances
        for _ in range(d - 1):
            if len(total) > 1000:
                return None
            total, weights = (
                np.add.outer(total, squares).ravel(),
                np.outer(weights, chances).ravel(),
            )
        return float(weights[np.sqrt(total) >= level].sum()), gamma

    @ledger.edge("logarithms are natural and at least 1").sweep(
        "one sign, d = 1, and any c: gamma = exp(-1 / c^2)", c=[1.0, 10.0, 100.0],
        lhs="P[abs(X_1) >= c sqrt(log(d / gamma)) zeta]", rhs="gamma",
    )  # fmt: skip
    def near_one(c):
        gamma, zeta = math.exp(-1 / c**2), 1 / math.sqrt(2 * math.log(2))  # abs(X_1) = 1
        return 1.0 * (c * math.sqrt(math.log(1 / gamma)) * zeta <= 1), gamma


# --- Table 1 ---


@statement("sco2.table1")
def earlier_rates(ledger):
    """Error rates and gradient evaluations of user-level DP-SCO: group privacy 1/(nm) + sqrt(d)/(n
    eps) with nm; Levy et al. 1/sqrt(nm) + d/(n sqrt(m) eps) with n^3 m/d; Bassily and Sun and, with
    eps^2.5, Ghazi et al. 1/sqrt(nm) + sqrt(d)/(n sqrt(m) eps) with n^2 m/sqrt(d) and
    super-polynomially many; Asi and Liu the same rate with beta (nm)^1.5 or (nm)^3; Lowy et al. the
    same with max{beta^(1/4) (nm)^(9/8), beta^(1/2) n^(1/4) m^(5/4)} or n^(11/8) m^(5/4), or
    sqrt(d)/(sqrt(nm) eps) with nm; this work the same rate, up to logarithms, with nm.

    These rates are theorems of other papers. Only the arithmetic of these rates is checked. The
    first rate of group privacy is printed as 1 / (nm). This rate would be below the lower bound 1 /
    sqrt(nm) of estimation, so 1 / sqrt(nm) must be intended. Take the item-level rate 1 / sqrt(N) +
    sqrt(d) / (N epsilon) for N = nm items and the privacy parameter epsilon / m. The result is 1 /
    sqrt(nm) + sqrt(d) / (n epsilon). The rate of this work is the smallest in the table up to
    logarithms. The linear-time rate is larger than the rate of this work by a factor of sqrt(n).
    The baseline for group privacy, output perturbation, runs as it is described.
    """
    ledger.misprint("1/(nm) + sqrt(d)/(n epsilon)", "1/sqrt(nm) + sqrt(d)/(n epsilon)")
    attack_group_privacy(ledger)
    attack_concentrated_means(ledger)
    sizes = {"n": Integer(1, 10**9), "m": Integer(1, 10**9), "d": Integer(1, 10**9)}
    sizes["epsilon"] = Interval(1e-6, 1.0, log=True)

    @ledger.identity("group privacy of m items", groups=1, mutant={"groups": 2}, **sizes)
    def group(n, m, d, epsilon, groups):
        item = math.sqrt(d) / (n * m * epsilon / m**groups)
        return item, math.sqrt(d) / (n * epsilon)

    @ledger.falsify("no rate in the table is below that of this work", which=Choice((0, 1, 2, 3)),
                    factor=1.0, mutant={"factor": 0.9}, **sizes)  # fmt: skip
    def least(n, m, d, epsilon, which, factor):
        private = math.sqrt(d) / (n * math.sqrt(m))
        first = 1 / math.sqrt(n * m)
        group = first + math.sqrt(d) / (n * epsilon)
        levy = first + math.sqrt(d) * private / epsilon
        older = first + private / epsilon**2.5
        linear = 2 * math.sqrt(d) / (math.sqrt(n * m) * epsilon)
        rates = group, levy, older, linear
        return first + private / epsilon, factor * rates[which] * (1 + ROUNDING)
