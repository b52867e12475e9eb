"""User-level DP-SCO: the fingerprinting lemmas behind the lower bound, Lemmas 42 to 45 and (19)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import ndtr
from scipy.stats import norm

from audits.user_level_sco.conventions import SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

WAVES = {"waves": Array(Interval(-2.0, 2.0), ("n",)), "phase": Interval(0.0, 6.0)}
HALF_THE_SIDE = "the left side is 2 E[sum_k M(D)[k] mu[k]]"


def normal_grid(n, nodes):
    """Return quadrature nodes and weights for n standard normal variables."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[x] * n, indexing="ij"), axis=-1).reshape(-1, n)
    weights = np.stack(np.meshgrid(*[w] * n, indexing="ij"), axis=-1).reshape(-1, n)
    return grid, (weights / math.sqrt(2 * math.pi)).prod(axis=1)


def uniform_grid(nodes):
    """Return nodes and weights for a uniform variable on [-1, 1].

    The integrand may have a kink at 0.
    """
    p, w = np.polynomial.legendre.leggauss(nodes // 2)
    return np.concatenate([(p - 1) / 2, (p + 1) / 2]), np.concatenate([w, w]) / 4


@statement("sco2.lemma42")
def fingerprints_of_a_mean(ledger):
    """For every fixed number p and every f: R^n -> [-1, 1], let g(p) := E f(X) for X_1, ..., X_n ~
    N(p, 1). Then E[(1 - p^2)(f(X) - p) sum_i (X_i - p)] = (1 - p^2) g'(p).

    The lemma is Stein's identity, so the lemma holds. The function f need not be bounded, but it
    must have a finite mean. The number p is arbitrary, because any constant can be subtracted from
    f(X).
    """
    domain = {**WAVES, "n": Choice((1, 2, 3)), "p": UNIT, "floor": 1e-3, "tolerance": 1e-7}

    @ledger.identity(
        "f = cos(a X + b), whose mixtures are all functions f, by quadrature", centre=1.0,
        extremal=[{"waves": np.array([2.0]), "phase": 0.5, "p": p} for p in (-1.0, 0.0, 1.0)],
        mutant={"centre": 0.0}, **domain,
    )  # fmt: skip
    def wave(waves, phase, p, centre):
        """Compute both sides.

        The mutant sums X_i instead of X_i - p.
        """
        grid, weights = normal_grid(len(waves), 24)
        scores = (grid + p * (1 - centre)).sum(axis=1)
        f = np.cos((grid + p) @ waves + phase)
        # g(p) = exp(-a^2 / 2) cos(p sum(a) + b)
        decay = math.exp(-(waves**2).sum() / 2)
        slope = -waves.sum() * decay * math.sin(p * waves.sum() + phase)
        return (1 - p**2) * (weights * (f - p) * scores).sum(), (1 - p**2) * slope

    @ledger.identity(
        "f = sign(X_1 + ... + X_n - t)", n=Integer(1, 50), p=UNIT, t=Interval(-3.0, 3.0),
        power=0.5, mutant={"power": 0.6}, floor=1e-3, tolerance=1e-5,
    )  # fmt: skip
    def threshold(n, p, t, power):
        spread = n**power
        jump = min(max((t - n * p) / math.sqrt(n), -9.0), 9.0)  # of the standardised sum
        nodes, w = np.polynomial.legendre.leggauss(60)
        left = 0.0
        for sign, low, high in ((-1, -9.0, jump), (1, jump, 9.0)):
            x = low + (high - low) * (nodes + 1) / 2
            left += (high - low) / 2 * w @ ((sign - p) * math.sqrt(n) * x * norm.pdf(x))
        return left, 2 * n / spread * norm.pdf((t - n * p) / spread)


def monomial(power):
    """Return both sides of Lemma 43 for g(p) = p^power: E[(1 - p^2) g'(p)] and E[p g(p)]."""
    even = 1 - power % 2  # odd moments vanish
    left = power * (Fraction(1, power) - Fraction(1, power + 2)) if power and not even else 0
    return Fraction(left), Fraction(0 if even else 1) / (power + 2)


@statement("sco2.lemma43", expected="refuted")
def integration_by_parts(ledger):
    """For p uniform on [-1, 1], E[(1 - p^2) g'(p)] = E[g(p) p].

    The lemma loses a factor of 2. The density on [-1, 1] is 1/2, so the integral of g(p) p is 2
    E[g(p) p]. So the left side is twice the right side, for every g. For f = sign(X_1), the left
    side is 2 phi(1) = .484, and the right side is .242. The mistake weakens the authors' result. If
    the proof keeps the factor 2, display (19) holds with d - 4 alpha. With this display, the same
    proof gives the constant 3/32 in Lemma 41.
    """

    @ledger.sweep(
        "f = sign(X_1), so g(p) = P[X > 0] - P[X < 0]", nodes=40,
        lhs="E[(1 - p^2) g'(p)]", rhs="E[g(p) p]",
    )  # fmt: skip
    def sides(nodes):
        p, w = np.polynomial.legendre.leggauss(nodes)  # w sums to 2
        g, slope = 2 * ndtr(p) - 1, 2 * norm.pdf(p)
        return (w / 2 * (1 - p**2) * slope).sum(), (w / 2 * g * p).sum()

    repair = ledger.repair("E[(1 - p^2) g'(p)] = 2 E[g(p) p] for p uniform on [-1, 1]")

    @repair.identity("g(p) = p^k, in fractions", power=range(60), times=2, mutant={"times": 1})
    def powers(power, times):
        left, right = monomial(power)
        return left, times * right

    @repair.identity(
        "f = cos(a X + b)", **WAVES, n=Integer(1, 5), times=2, mutant={"times": 1}, floor=1e-3,
        tolerance=1e-7,
    )  # fmt: skip
    def waves(waves, phase, times):
        p, w = uniform_grid(60)
        total, decay = waves.sum(), math.exp(-(waves**2).sum() / 2)
        g, slope = np.cos(p * total + phase), -total * np.sin(p * total + phase)
        return decay * w @ ((1 - p**2) * slope), times * decay * w @ (p * g)

    ledger.consequence(
        "The paper loses half of the lower bound. Lemma 44 and (19) hold with twice their right "
        "sides, and the printed proof gives Lemma 41 with 3 sqrt(d)/(32 epsilon).",
        harm="a constant",
    )


@statement("sco2.lemma44", expected="refuted")
def fingerprints_of_a_mechanism(ledger):
    """For mu[k] uniform on [-1, 1] and Zbar_i ~ N(mu, I_d), E sum_(i,k) (1 - mu[k]^2)(M(D)[k] -
    mu[k])(Zbar_i[k] - mu[k]) = E sum_k M(D)[k] mu[k].

    The left side is twice the right side, because Lemma 43 lost a factor of 2. The lemma contains
    no other mistake. The mechanism M may be random, and each coordinate of M may depend on all
    other coordinates. In the factor (M(D)[k] - mu[k]), the term mu[k] adds nothing. For n = 1 and M
    = sign, the left side is .484 d and the right side is .242 d.
    """

    @ledger.sweep(
        "M = sign of the sum of n values, d = 1", cases=[{"n": 1}, {"n": 9}],
        lhs="E[sum_i (1 - mu^2)(M(D) - mu)(Zbar_i - mu)]", rhs="E[M(D) mu]",
    )  # fmt: skip
    def sides(n):
        p, w = np.polynomial.legendre.leggauss(60)  # w sums to 2
        score = 2 * np.sqrt(n) * norm.pdf(np.sqrt(n) * p)  # E[sign(S) (S - n p)], S the sum
        answer = 2 * ndtr(np.sqrt(n) * p) - 1
        return (w / 2 * (1 - p**2) * score).sum(), (w / 2 * answer * p).sum()

    repair = ledger.repair("the left side is 2 E[sum_k M(D)[k] mu[k]]")

    @repair.identity(
        "M(D)[k] = cos(a_k D + b_k), which mixes all coordinates of one user, d = 2, by quadrature",
        seed=range(8), method=Method.NUMERIC, times=2, mutant={"times": 1}, floor=1e-3,
        tolerance=1e-6,
    )  # fmt: skip
    def coupled(seed, times):
        rng = np.random.default_rng(seed)
        waves, phases = rng.uniform(-1.5, 1.5, (2, 2)), rng.uniform(0, 6, 2)
        noise, weights = normal_grid(2, 16)
        p, w = uniform_grid(16)
        mu = np.stack(np.meshgrid(p, p, indexing="ij"), axis=-1).reshape(-1, 1, 2)
        of_mu = np.outer(w, w).ravel()
        answers = np.cos((mu + noise) @ waves.T + phases)  # [mu, noise, coordinate]
        left = ((1 - mu**2) * (answers - mu) * noise).sum(axis=2)
        right = (answers * mu).sum(axis=2)
        return of_mu @ left @ weights, times * of_mu @ right @ weights

    @repair.identity(
        "two users", waves=Array(Interval(-1.5, 1.5), (2,)), phase=Interval(0.0, 6.0), times=2,
        mutant={"times": 1}, floor=1e-3, tolerance=1e-6,
    )  # fmt: skip
    def two(waves, phase, times):
        noise, weights = normal_grid(2, 16)
        p, w = uniform_grid(16)
        answers = np.cos((p[:, None, None] + noise) @ waves + phase)
        left = (1 - p[:, None] ** 2) * (answers - p[:, None]) * noise.sum(axis=1)
        return w @ left @ weights, times * w @ (p[:, None] * answers) @ weights

    ledger.consequence("As for sco2.lemma43, the true statement is stronger.", harm="a constant")


@statement("sco2.lemma45", expected="refuted")
def signs_and_correlation(ledger):
    """Let M: R^(n x d) -> [-1, 1]^d. Suppose mu[k] are i.i.d. from [-1, 1] and E sum_k abs(mu[k])
    1(sign(mu[k]) != sign(M(D)[k])) <= alpha; then E sum_k M(D)[k] mu[k] >= d/2 - 2 alpha.

    The proof replaces M(D)[k] mu[k] by abs(mu[k]) times +-1. This replacement requires M(D)[k] in
    {-1, 1}, as in Lemma 41. If M(D)[k] is a tenth of a sign, the error is the same as for the sign.
    But the correlation is only a tenth of the correlation for the sign. For M in {-1, 1}^d, the
    lemma is an equality if alpha equals the error.
    """
    words = {"lhs": "d/2 - 2 alpha, for alpha the weighted sign error", "rhs": "E[M(D) mu]"}

    @ledger.sweep("n = 1, d = 1, M(D) = sign(Zbar_1) / 10", scale=0.1, **words)
    def shrunk(scale):
        x, w = np.polynomial.legendre.leggauss(40)
        p, w = (x + 1) / 2, w / 2  # abs(mu), uniform on [0, 1]
        right = ndtr(p)  # probability that sign(Zbar_1) is sign(mu)
        return 1 / 2 - 2 * (w * p * (1 - right)).sum(), scale * (w * p * (2 * right - 1)).sum()

    repair = ledger.repair(
        "the same for M: R^(n x d) -> {-1, 1}^d; for outputs in [-1, 1]^d, of sign(M(D))"
    )

    @repair.falsify(
        "outputs +1 with any probabilities, by the interval in which Zbar_1 lies",
        up=Array(SHARE, (6,)), slack=Interval(0.0, 0.5), scale=1.0, mutant={"scale": 0.5},
        extremal=[{"up": np.array([0.0, 0, 0, 1, 1, 1]), "slack": 0.0}], **words,
    )  # fmt: skip
    def rounded(up, slack, scale):
        p, w = uniform_grid(40)
        edges = np.array([-np.inf, -1, -0.3, 0, 0.3, 1, np.inf])
        chance = np.diff(ndtr(edges[:, None] - p), axis=0)  # [interval, mu]
        positive = up @ chance
        wrong = np.where(p > 0, 1 - positive, positive)
        alpha = w @ (np.abs(p) * wrong) + slack
        return 0.5 - 2 * alpha, scale * w @ (p * (2 * positive - 1)) + 1e-12

    ledger.consequence(
        "None for Lemma 41, whose outputs are signs. (14) has outputs in [-1, 1]^d, and their "
        "signs have to be taken first.",
        harm="the wording",
    )


def flipped_signs(n, flips):
    """Return the error and the correlation of a randomly flipped sign, for d = 1.

    The flipped sign is the sign of a sum of n values.
    """
    p, w = uniform_grid(80)
    right = ndtr(math.sqrt(n) * np.abs(p))
    right = right * (1 - flips) + (1 - right) * flips
    return w @ (np.abs(p) * (1 - right)), w @ (np.abs(p) * (2 * right - 1))


@statement("sco2.eq19", expected="holds_proof_broken")
def fingerprints_of_small_error(ledger):
    """Where the weighted sign error of M is at most alpha, E sum_(i,k) (1 - mu[k]^2)(M(D)[k] -
    mu[k])(Zbar_i[k] - mu[k]) >= d/2 - 2 alpha.

    We read the statement as in Lemma 41, because the proof of Lemma 41 contains the statement. So
    M(D) is in {-1, 1}^d and alpha <= d/8. Under these two conditions, the statement holds. The
    statement even holds with d - 4 alpha, which is twice d/2 - 2 alpha. The reason is that the two
    sides of Lemma 44 differ by a factor of 2. Without alpha <= d/4, the statement fails. For
    example, let M = -sign(Zbar_1) and n = d = 1. For this M, the left side is -.484 and the right
    side is -.242. The statement also fails for M in [-1, 1]^d, as in Lemma 45.
    """
    domain = {"n": Integer(1, 10**3), "flips": Interval(0.0, 0.3), "scale": 1.0}
    domain["extremal"] = [{"n": 2, "flips": 0.0}, {"n": 10**3, "flips": 0.24}]

    @ledger.sharper("d - 4 alpha for d/2 - 2 alpha").falsify(times=2.0, **domain)
    @ledger.falsify(times=1.0, mutant={"scale": 0.4}, **domain)
    def correlated(n, flips, times, scale):
        p, w = uniform_grid(80)
        alpha, _ = flipped_signs(n, flips)
        if alpha > 1 / 8:
            return None
        score = 2 * math.sqrt(n) * norm.pdf(math.sqrt(n) * p)  # E[sign(S) (S - n p)]
        left = scale * (1 - 2 * flips) * w @ ((1 - p**2) * score)
        return times * (0.5 - 2 * alpha), left + 1e-10

    @ledger.step("Lemma 45, of signs").identity(
        "an equality for the error itself", n=Integer(1, 10**3), flips=SHARE, floor=1e-6
    )
    def equality(n, flips):
        error, correlation = flipped_signs(n, flips)
        return 0.5 - 2 * error, correlation

    step = ledger.step(
        "Lemma 44",
        fix=f"{HALF_THE_SIDE}, so that (19) holds with d - 4 alpha, which is not less than "
        "d/2 - 2 alpha where alpha <= d/4",
    )

    @step.sweep(
        "M = sign(Zbar_1), n = d = 1", nodes=40,
        lhs="E[(1 - mu^2)(M(D) - mu)(Zbar_1 - mu)]", rhs="E[M(D) mu]",
    )  # fmt: skip
    def apart(nodes):
        p, w = np.polynomial.legendre.leggauss(nodes)
        left = (1 - p**2) * 2 * norm.pdf(p)
        return (w / 2 * left).sum(), (w / 2 * p * (2 * ndtr(p) - 1)).sum()

    ledger.consequence("None. The statement is weaker than the corrected lemma.", harm="a constant")
