"""Few examples per user: divergences, codes and concentration, Appendix B."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import rel_entr
from scipy.stats import binom

from audits.few_examples.conventions import SHARE
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-12
PAIR = {"weights": Array(SHARE, (2, 4))}
EVENTS = np.array(list(itertools.product([0, 1], repeat=4)))


def distributions(weights):
    """Return the normalised rows of weights, or None if a row has no weight."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / total if (total > 0).all() else None


# --- divergences ---


def chi_square(p, q):
    """Return the sum over all points.

    The sum is infinite if q is 0 at a point where p is not 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nansum(np.where((p > 0) | (q > 0), (p - q) ** 2 / q, 0.0))


@statement("few.div-defs", expected="refuted")
def divergences(ledger):
    """For two distributions A, B, d_tv(A, B) := (1/2) sum_(x in supp(A) union supp(B)) abs(A(x) -
    B(x)) denotes their total variation distance, d_KL(A || B) := sum_(x in supp(A)) A(x)
    log(A(x)/B(x)) their Kullback-Leibler divergence, and d_chi2(A || B) := sum_(x in supp(A)) (A(x)
    - B(x))^2/B(x) the chi^2-divergence.

    The first two definitions are the usual definitions. The divergence d_KL is infinite if A has
    mass where B has no mass. The third definition is unusual, because the sum over supp(A) omits
    B(x) for every x with A(x) = 0. For A = (1, 0) and B = (1/2, 1/2), the printed sum is 1/2, but
    the chi^2-divergence is 1 and d_KL is ln 2. So Lemma 23 (iii) fails with the printed sum. The
    printed sum is used only in Theorems 40 and 43, where both supports are all points.
    """

    @ledger.part("d_tv").identity(
        "d_tv is the largest P(S) - P'(S)", half=0.5, mutant={"half": 1.0}, **PAIR
    )
    def variation(weights, half):
        if (pair := distributions(weights)) is None:
            return None
        p, q = pair
        return 1 + (EVENTS @ (p - q)).max(), 1 + half * np.abs(p - q).sum()

    @ledger.part("d_KL").identity(
        "d_KL is the mean of the logarithm of A/B", tolerance=1e-9, base=1.0,
        mutant={"base": math.log(2)}, **PAIR,
    )  # fmt: skip
    def relative_entropy(weights, base):
        p, q = distributions(weights + 1e-3)
        return 1 + rel_entr(p, q).sum(), 1 + (p * np.log(p / q)).sum() / base

    @ledger.sweep(
        "the chi^2-divergence of (1, 0) from (b, 1 - b), against the printed sum", b=[0.5, 0.1],
        lhs="chi^2-divergence, sum of A^2/B, - 1", rhs="sum over supp(A)",
    )  # fmt: skip
    def printed(b):
        p, q = [1.0, 0.0], [b, 1 - b]
        usual = sum(s**2 / t for s, t in zip(p, q)) - 1  # noqa: B905
        return usual, sum((s - t) ** 2 / t for s, t in zip(p, q) if s > 0)  # noqa: B905

    repair = ledger.repair("d_chi2(A || B) sums over supp(A) union supp(B)")

    @repair.identity("it is the mean of A^2/B, - 1", whole=True, mutant={"whole": False},
                     tolerance=1e-9, **PAIR)  # fmt: skip
    def meant(weights, whole):
        if (pair := distributions(np.maximum(weights - 0.3, 0))) is None or (pair[1] == 0).any():
            return None
        p, q = pair
        found = chi_square(p, q) if whole else ((p - q) ** 2 / q)[p > 0].sum()
        return 1 + found, (p**2 / q).sum()

    ledger.consequence(
        "With the printed sum, Lemma 23 (iii) is false. Nothing else changes.", harm="the wording"
    )


def binary(p, q):
    return np.array([p, 1 - p]), np.array([q, 1 - q])


@statement("few.lemma23i")
def pinsker(ledger):
    """For any two distributions A and B, d_tv(A, B) <= sqrt((1/2) d_KL(A || B)).

    Two outcomes are enough. Merging the outcomes into {A > B} and the rest keeps d_tv, and does not
    increase d_KL. Coins attain the bound in the limit. For coins with the probabilities 1/2 + s and
    1/2, the ratio of both sides is 1 - O(s^2). For large d_KL, the right side exceeds 1 and gives
    no information.
    """
    ledger.falsify("two outcomes", p=SHARE, q=SHARE, half=0.5, mutant={"half": 0.45},
                   extremal=[{"p": 0.51, "q": 0.5}, {"p": 1.0, "q": 0.5}],
                   )(pinsker_sides)  # fmt: skip

    @ledger.falsify("four outcomes", half=0.5, mutant={"half": 0.3}, extremal=[
        {"weights": np.array([[1, 1, 1.02, 1.02], [1, 1, 1, 1.0]])}], **PAIR)  # fmt: skip
    def four(weights, half):
        if (pair := distributions(weights)) is None:
            return None
        p, q = pair
        return np.abs(p - q).sum() / 2, math.sqrt(half * max(rel_entr(p, q).sum(), 0)) + ROUNDING


def pinsker_sides(p, q, half):
    a, b = binary(p, q)
    return abs(p - q), math.sqrt(half * max(rel_entr(a, b).sum(), 0.0)) + 1e-9


@statement("few.lemma23ii")
def additive(ledger):
    """For any two distributions A and B, d_KL(A^k || B^k) = k d_KL(A || B) for k in N, where A^k is
    the distribution of k independent samples drawn from A.

    The equality was computed exactly, over all |Z|^k words, even where d_KL is infinite. The
    equality fails for other divergences, such as chi^2.
    """

    @ledger.identity("all words of three letters", weights=Array(SHARE, (2, 3)),
                     zeros=Choice((0, 1)), k=Integer(1, 6), power=1.0, mutant={"power": 1.1},
                     tolerance=1e-9,
                     extremal=[{"weights": np.array([[1.0, 1, 1], [0, 1, 1]]), "zeros": 1, "k": 3}],
                     )  # fmt: skip
    def words(weights, zeros, k, power):
        if (pair := distributions(np.maximum(weights - 0.2 * zeros, 0))) is None:
            return None
        p, q = pair
        powers = [np.array([math.prod(w) for w in itertools.product(law, repeat=k)])
                  for law in (p, q)]  # fmt: skip
        return 1 + rel_entr(*powers).sum(), 1 + k**power * rel_entr(p, q).sum()


@statement("few.lemma23iii")
def kl_below_chi_square(ledger):
    """For any two distributions A and B, d_KL(A || B) <= d_chi2(A || B).

    The bound holds for the chi^2-divergence. The stronger bound d_KL <= ln(1 + d_chi2) also holds.
    A = (1, 0) and B = (b, 1 - b) attain the stronger bound in the limit b -> 1. For close
    distributions, d_KL is half of d_chi2. With the sum over supp(A) that Appendix B prints, the
    bound fails (see few.div-defs). The bound needs natural logarithms.
    """
    near = [{"p": 1.0, "q": 0.999}, {"p": 1.0, "q": 0.5}, {"p": 0.0, "q": 0.001}]
    domain = {"p": SHARE, "q": SHARE, "extremal": near}

    @ledger.falsify("two outcomes", factor=1.0, mutant={"factor": 0.99}, end_to_end=True, **domain)
    def two(p, q, factor):
        a, b = binary(p, q)
        return rel_entr(a, b).sum(), factor * chi_square(a, b) + ROUNDING

    @ledger.falsify("four outcomes, some of mass 0", factor=1.0, mutant={"factor": 0.4},
                    end_to_end=True, **PAIR)  # fmt: skip
    def four(weights, factor):
        if (pair := distributions(np.maximum(weights - 0.2, 0))) is None:
            return None
        return rel_entr(*pair).sum(), factor * chi_square(*pair) + ROUNDING

    @ledger.sharper("ln(1 + d_chi2)").falsify(
        "two outcomes", one=1.0, mutant={"one": 0.9}, **domain
    )
    def logarithm(p, q, one):
        a, b = binary(p, q)
        return rel_entr(a, b).sum(), max(math.log(one + chi_square(a, b)), 0.0) + ROUNDING

    @ledger.edge("logarithms are natural").sweep(
        "to base 2", p=1.0, q=0.99, lhs="d_KL in bits", rhs="d_chi2"
    )
    def bits(p, q):
        return -p * math.log2(q / p), (p - q) ** 2 / q + (1 - q)


# --- codes ---


def volume(d, radius):
    """Return the number of words of {0,1}^d within a distance."""
    return sum(math.comb(d, i) for i in range(radius + 1))


def lexicode(d, distance):
    """Return the size of the greedy code.

    The code takes each word that is far enough from all earlier words of the code.
    """
    free, size = np.ones(2**d, dtype=bool), 0
    words = np.arange(2**d)
    for word in range(2**d):
        if free[word]:
            size += 1
            free &= np.bitwise_count(words ^ word) >= distance
    return size


def entropy(p):
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


@statement("few.thm24")
def codes(ledger):
    """For d in N there are u_1, ..., u_W in {0,1}^d for W = 2^Omega(d) such that norm(u_i - u_j)_0
    >= Omega(d) for all distinct i, j in [W].

    The theorem holds with explicit constants for every d >= 1, by Gilbert and Varshamov. The
    distance is at least d/8 and W >= 2^(.456 d), where the exponent is 1 - H(1/8). In general, the
    distance is s d and W >= 2^((1 - H(s)) d) for every s < 1/2. The size of the greedy code is at
    least 2^d divided by the number of words within a distance below s d. For s = 1/2, the theorem
    fails. By Plotkin's bound, at most 2 d words have this distance. Greedy codes confirm this
    bound. W >= 2 holds for all d. For d = 1, the words are 0 and 1.
    """
    rate = 1 - entropy(1 / 8)

    @ledger.sweep(
        "greedy codes are as large as 2^((1 - H(s)) d)", d=range(1, 15),
        share=[1 / 8, 1 / 4, 1 / 3], strict=False, mutant={"strict": True},
    )  # fmt: skip
    def greedy(d, share, strict):
        """Use greedy codes.

        The mutant requires a distance of d/2.
        """
        distance = math.ceil((0.5 if strict else share) * d)
        return 2 ** ((1 - entropy(share)) * d), lexicode(d, distance)

    @ledger.sweep(
        "for d up to 3000: 2^d over the words within a distance below d/8",
        d=[*range(1, 200), *range(200, 3001, 100)], rate=rate, method=Method.NUMERIC,
        mutant={"rate": 0.48},
    )  # fmt: skip
    def volumes(d, rate):
        return rate * d, d - math.log2(volume(d, math.ceil(d / 8) - 1))

    @ledger.sweep("the entropy bounds these words: all terms of (1/8 + 7/8)^d", d=range(1, 400),
                  share=1 / 8, mutant={"share": 0.05})  # fmt: skip
    def entropic(d, share):
        """Bound the number of words.

        The entropy of the mutant is too small.
        """
        return math.log2(volume(d, math.ceil(d / 8) - 1)), entropy(share) * d + ROUNDING


# --- concentration ---


@statement("few.lemma25")
def chernoff(ledger):
    """Let X_1, ..., X_n denote i.i.d. Bernoulli random variables with success probability p. Then,
    for all delta > 0, Pr[X_1 + ... + X_n <= (1 - delta) p n] <= exp(-delta^2 p n/2) and Pr[X_1 +
    ... + X_n >= (1 + delta) p n] <= exp(-delta^2 p n/(2 + delta)).

    Exact binomials were tested at the worst delta of each count, which is at the step of the
    distribution. Both bounds are attained in the limit at n = 1. The lower bound is attained as p
    -> 0, and the upper bound is attained as p -> 1. Large n with small p and small delta show that
    the factor 1/2 of the lower bound cannot be larger. For delta > 1, the count in the lower bound
    is negative. At p = 0, both bounds are equalities.
    """
    ends = [{"n": 1, "p": 1e-6, "share": 0.0}, {"n": 10**6, "p": 1e-4, "share": 0.4}]
    domain = {"n": Integer(1, 10**6), "p": Interval(1e-9, 1.0, log=True), "share": SHARE}

    @ledger.falsify("lower tail", half=0.5, mutant={"half": 0.7}, extremal=ends, **domain)
    def lower(n, p, share, half):
        """Test counts from 0 up to the mean."""
        k = math.floor(share * p * n)
        if k >= p * n:
            return None
        return binom.cdf(k, n, p), math.exp(-half * (1 - k / (p * n)) ** 2 * p * n)

    tops = [{"n": 1, "p": 0.999, "share": 1.0}, {"n": 10**6, "p": 1e-4, "share": 1.0}]

    @ledger.falsify("upper tail", two=2.0, mutant={"two": 1.0}, extremal=tops, **domain)
    def upper(n, p, share, two):
        """Test counts from the mean up to 10 times the mean, or up to n.

        The smallest floats are near exp(-700).
        """
        most = min(n, 10 * p * n + 5)
        k = math.ceil(p * n + share * (most - p * n))
        delta = k / (p * n) - 1
        if k > n or delta <= 0:
            return None
        return binom.sf(k - 1, n, p), math.exp(-min(delta**2 * p * n / (two + delta), 700))


@statement("few.lemma26")
def mcdiarmid(ledger):
    """Let g: Z^n -> R be any c-bounded difference function: abs(g(x) - g(x')) <= c for all x, x' in
    Z^n that differ on a single coordinate. Then, for all t > 0, Pr[abs(g(x) - mu_(D^n)(g)) > t] <=
    2 exp(-2 t^2/(n c^2)), where mu_(D^n)(g) = E_(x ~ D^n)[g(x)].

    All functions of up to three bits were tested exactly, for every t. The tightest ratio is .824,
    for one fair coin. The factor 2 in the exponent cannot be larger. Sums of a million coins at 20
    standard deviations refute the factor 2.2. For a one-sided bound, the factor 2 is not needed.
    """
    fair = {"values": np.array([0.0, 1, 0, 1, 0, 1, 0, 1]), "p": 0.5, "share": 1 - 1e-9}

    @ledger.falsify("any function of three coins", values=Array(SHARE, (8,)), p=SHARE, share=SHARE,
                    exponent=2.0, mutant={"exponent": 10.0}, extremal=[fair])  # fmt: skip
    def small(values, p, share, exponent):
        """Use a t that is a share of the largest deviation."""
        g = values.reshape(2, 2, 2)
        law = np.array([math.prod(w) for w in itertools.product([1 - p, p], repeat=3)])
        c = max(np.abs(np.diff(g, axis=axis)).max() for axis in range(3))
        away = np.abs(values - law @ values)
        t = share * away.max()
        if c == 0:
            return None
        return law[away > t].sum(), 2 * math.exp(-exponent * t**2 / (3 * c**2))

    @ledger.sweep(
        "sums of coins", cases=[{"n": 1, "t": 0.5 - 1e-9}, {"n": 10**6, "t": 1e4},
                                {"n": 100, "t": 20}, {"n": 10**4, "t": 700}],
        p=[0.5, 0.3, 0.01], exponent=2.0, mutant={"exponent": 2.2},
    )  # fmt: skip
    def sums(n, t, p, exponent):
        upper = binom.sf(math.floor(n * p + t), n, p)
        lower = binom.cdf(math.ceil(n * p - t) - 1, n, p)
        return upper + lower, 2 * math.exp(-exponent * t**2 / n)


def adversary(n, gamma, G, step=4):
    """Return the largest probability that a sequence leaves the interval, for alpha = 1.

    The maximum is over adaptive sequences. The sequences lie on a lattice. Given the past, the
    values of C_i are in {-1, -1 + 1/step, ..., 1}, and the mean of C_i is in [gamma, 0]. The best
    distribution of C_i has two values.
    """
    at = np.arange(-n * step, n * step + 1) / step
    reach = math.sqrt(n * G)
    value = ((at > reach + 1e-12) | (at < n * gamma - reach - 1e-12)).astype(float)
    jumps = np.arange(-step, step + 1)
    means = [round(gamma * step), *range(math.ceil(gamma * step), 1)]
    for left in range(n, 0, -1):
        inside = np.arange((left - 1) * step, value.size - (left - 1) * step)
        moved = [value[np.clip(inside + j, 0, value.size - 1)] for j in jumps]
        best = np.zeros(inside.size)
        for a, b in itertools.combinations_with_replacement(range(jumps.size), 2):
            for mean in means:
                if jumps[a] <= mean <= jumps[b]:
                    w = 1.0 if a == b else (mean - jumps[a]) / (jumps[b] - jumps[a])
                    best = np.maximum(best, (1 - w) * moved[a] + w * moved[b])
        new = np.zeros(value.size)
        new[inside] = best
        value = new
    return value[n * step]


@statement("few.lemma27")
def azuma(ledger):
    """Let C_1, ..., C_n be a sequence of random variables. Suppose that abs(C_i) <= alpha almost
    surely and that gamma <= E[C_i | C_1 = c_1, ..., C_(i-1) = c_(i-1)] <= 0 for any c_1, ...,
    c_(i-1). Then, for every G > 0, Pr[n gamma - alpha sqrt(n G) <= sum_(i in [n]) C_i <= alpha
    sqrt(n G)] >= 1 - 2 exp(-G/2).

    The bound was tested against every adaptive sequence on a lattice, by dynamic programming. The
    largest probability to leave the interval is at most .82 times 2 exp(-G/2). This maximum occurs
    for one fair +-1 step. Azuma's inequality for abs(C_i - E C_i) <= 2 alpha would give exp(-G/8).
    As in Hoeffding's lemma, the bound needs the condition that C_i lies in an interval of length 2
    alpha. The value gamma affects only the lower endpoint.
    """
    cases = [{"n": n, "gamma": gamma, "G": G} for n in (1, 2, 3, 6, 10)
             for gamma in (0.0, -0.25, -1.0)
             for G in (1e-6, 0.5, 0.999, 2.0, 4.0) if n > 1 or G < 2]  # fmt: skip

    @ledger.sweep("the best adversary on a lattice", cases=cases, half=0.5, method=Method.NUMERIC,
                  mutant={"half": 0.75})  # fmt: skip
    def walks(n, gamma, G, half):
        return adversary(n, gamma, G), 2 * math.exp(-half * G)

    @ledger.sweep("fair +-1 walks, exactly", n=[1, 10, 100, 10**4, 10**6],
                  G=[0.5, 0.999, 4.0, 50.0, 200.0], half=0.5, mutant={"half": 0.6})  # fmt: skip
    def fair(n, G, half):
        """Count the steps that go up.

        The sum exceeds sqrt(n G) if and only if more than (n + sqrt(n G))/2 steps go up.
        """
        tail = binom.sf(math.floor((n + math.sqrt(n * G)) / 2), n, 0.5)
        return 2 * tail, 2 * math.exp(-half * G)
