"""Few examples per user: claims between the statements of Section 3 and Appendix C."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog
from scipy.stats import binom

from algorithms.few_examples.couplings import adjusted_variable
from algorithms.few_examples.deletion import Budget
from audits.few_examples.bounded_ratios import (
    ROUNDING,
    SHARE,
    VALUE,
    WEIGHT,
    excess,
)
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

EPSILON = Interval(1e-3, 1.0, log=True)
DELTA = Interval(1e-9, 0.3, log=True)
HALF = np.array([0.5, 0.5])


# --- Lemma 33 and the function g ---


def least_cost(law, z, epsilon, target):
    """Return the least E[abs(Z - Z')] over all Z' with mean `target` and Z' ~_epsilon `target`.

    First Z is clipped to the range of Z', then the mean is corrected.
    """
    mean, up = law @ z, math.exp(epsilon)
    low, high = law @ np.maximum(target / up - z, 0), law @ np.maximum(z - up * target, 0)
    if target <= mean:
        return mean - target + 2 * max(low, high - (mean - target))
    return target - mean + 2 * max(high, low - (target - mean))


@statement("few.lemma33.weaker")
def weaker(ledger):
    """Even if the former condition (z ~_epsilon z~ for any two values of Z) fails sometimes, we can
    still "move" the random variable a little bit so that the second condition (Z ~_epsilon mu)
    holds (albeit with weaker 2 epsilon bound).

    The sentence holds, but the weaker bound is not needed. Let X = E[Z - e^epsilon Z~]_+. There is
    a Z' ~_epsilon mu* with E[Z'] = mu* and E[abs(Z - Z')] <= abs(mu - mu*) + 2 X. The proof of
    Lemma 33 clips Z to the range around mu. To prove the sharper bound, clip Z to the range around
    mu*, and then correct the mean. Let D_1 = E[Z - e^epsilon mu*]_+ and D_2 = E[e^-epsilon mu* -
    Z]_+. For mu* <= mu, the least cost is mu - mu* + 2 max(D_2, D_1 - (mu - mu*)). The term D_2
    increases in mu*, and it is at most e^-epsilon X at mu* = mu. The other term is mu* - E min(Z,
    e^epsilon mu*). It is convex in mu*, it is 0 at 0, and it is at most X at mu. For mu* > mu, the
    least cost is mu* - mu + 2 max(D_1, D_2 - (mu* - mu)), where both terms decrease. Linear
    programs over all Z' agree with these formulas. The factor 2 is attained in the limit. The range
    cannot be smaller than epsilon (few.c3-range).

    So the values Y_(i-1) and Y_i in the proof of Lemma 32 are within e^epsilon of each other. The
    constant of epsilon' in Lemmas 14 and 32, and of the first term of epsilon' in Theorem 13, is
    then half as large.
    """
    domain = {"weights": Array(WEIGHT, (4,)), "z": Array(VALUE, (4,)),
              "shift": Interval(-3.0, 3.0), "epsilon": EPSILON}  # fmt: skip
    rare = [{"weights": np.array([1.0, 1e-5, 0, 0]), "z": np.array([0.0, 1, 0, 0]), "shift": s,
             "epsilon": 0.1} for s in (0.0, -1e-6)]  # fmt: skip

    def cost(weights, z, shift, epsilon, wide, most):
        law = weights / weights.sum()
        target = law @ z * math.exp(shift)
        found = least_cost(law, z, wide * epsilon, target)
        bound = abs(law @ z - target) + most * excess(law, z, epsilon)
        return found, bound * (1 + ROUNDING) + 1e-12 * (z.max() + target)

    ledger.falsify("the range 2 epsilon, and the bound of Lemma 33", wide=2.0, most=2.0,
                   mutant={"most": 1.0}, extremal=rare, **domain)(cost)  # fmt: skip

    sharper = ledger.sharper("the range epsilon for 2 epsilon, and 2 for 2 (1 + e^-epsilon)")
    sharper.falsify("least cost, any Z of four values", wide=1.0, most=2.0, mutant={"most": 1.9},
                    extremal=rare, **domain)(cost)  # fmt: skip

    @sharper.identity("the least cost, by linear programs over all Z'", examples=25, tolerance=1e-6,
                      z=Array(Interval(0.0, 3.0), (4,)), weights=Array(SHARE, (4,)), twice=1.0,
                      shift=Interval(-1.0, 1.0), epsilon=EPSILON, mutant={"twice": 2.0},
                      floor=1e-3)  # fmt: skip
    def program(z, weights, shift, epsilon, twice):
        """A random Z' is no better than its conditional mean, as the cost is convex."""
        if weights.sum() < 0.1 or z.max() < 0.1:
            return None
        law = weights / weights.sum()
        target = law @ z * math.exp(shift)
        low, high = target * math.exp(-epsilon), target * math.exp(epsilon)
        eye, zero = np.eye(4), np.zeros(4)
        made = linprog(np.r_[zero, law], A_ub=np.block([[eye, -eye], [-eye, -eye]]),
                       b_ub=np.r_[z, -z], A_eq=[np.r_[law, zero]], b_eq=[target],
                       bounds=[(low, high)] * 4 + [(0, None)] * 4)  # fmt: skip
        return made.fun, least_cost(law, z, twice * epsilon, target)


@statement("few.c3-range")
def mean_in_range(ledger):
    """Suppose Z is a R_(>= 0) random variable such that any two values z, z~ in supp(Z) satisfy z
    ~_epsilon z~. Then, we also immediately have that their mean mu is in this range and thus Z
    ~_epsilon mu.

    The claim holds, because min Z <= mu <= max Z <= e^epsilon min Z. The range is attained in the
    limit. Let Z be 1 or e^epsilon, and let Pr[Z = e^epsilon] tend to 0. Then mu tends to 1, and the
    largest value is e^epsilon mu. So no range smaller than epsilon is possible in Lemma 33.
    """

    @ledger.falsify("any four values within e^epsilon: abs(ln(Z/mu)) is at most epsilon", part=1.0,
                    weights=Array(WEIGHT, (4,)), places=Array(SHARE, (4,)),
                    epsilon=Interval(1e-3, 3.0, log=True), mutant={"part": 0.9}, extremal=[
                        {"weights": np.array([1.0, 1e-6, 0, 0]),
                         "places": np.array([0.0, 1.0, 0, 0]), "epsilon": 0.3}])  # fmt: skip
    def within(weights, places, epsilon, part):
        law, z = weights / weights.sum(), np.exp(epsilon * places)
        return np.abs(np.log(z / (law @ z))).max(), part * epsilon * (1 + ROUNDING)


@statement("few.sec3.1.1-lipschitz", expected="refuted")
def almost_lipschitz(ledger):
    """The inequality (Lemma 32) is shown by arguing that we may change the function "slightly" to
    make it multiplicative-Lipschitz, which then allows us to apply standard techniques.

    The proof of Lemma 32 does not make g multiplicative-Lipschitz. It bounds only the ratios of
    consecutive prefix means of g. Let x_1, ..., x_n be fair signs, and f(x) = prod_(i = 2..n) (1 +
    t x_1 x_i) with t = 1 - e^-epsilon. All ratios of consecutive prefix means of f are in
    [e^-epsilon, e^epsilon], so the construction leaves f as it is. Flipping x_1 changes ln f by up
    to (n - 1) ln((1 + t)/(1 - t)), which is about 2 (n - 1) epsilon. The change grows with n, so no
    constant is enough. At epsilon = .05 and n = 10, the change is 17.6 epsilon. The last coordinate
    changes ln g by at most 4 epsilon. The proof uses only the prefix means (Lemma 35), so Lemma 32
    is not affected.
    """

    @ledger.sweep("a product of n - 1 factors with x_1: the change of ln g if x_1 is flipped",
                  n=[10, 6], epsilon=0.05, lhs="change of ln g", rhs="n epsilon")  # fmt: skip
    def flipped(n, epsilon):
        x = np.array(list(itertools.product((-1, 1), repeat=n)))
        f = np.prod(1 + (1 - math.exp(-epsilon)) * x[:, :1] * x[:, 1:], axis=1)
        means = f
        for _ in range(n):  # the proof leaves f as it is if all these ratios are in the range
            pairs = means.reshape(-1, 2)
            means = pairs.mean(axis=1)
            if np.abs(np.log(pairs / means[:, None])).max() > epsilon + 1e-12:
                return None
        return np.abs(np.log(np.divide(*f.reshape(2, -1)))).max(), n * epsilon

    @ledger.part("the construction leaves this f as it is").sweep(
        "by Lemma 33 for each prefix: the largest abs(g - f)", n=[2, 4, 6], epsilon=0.05, part=1.0,
        mutant={"part": 0.2},
    )  # fmt: skip
    def unchanged(n, epsilon, part):
        x = np.array(list(itertools.product((-1, 1), repeat=n)))
        f = np.prod(1 + (1 - math.exp(-epsilon)) * x[:, :1] * x[:, 1:], axis=1)
        return np.abs(built(f, part * epsilon)[-1] - f).max(), 1e-9

    repair = ledger.repair(
        'We may change the function "slightly" so that the ratios of its consecutive prefix means '
        "are in [e^(-2 epsilon), e^(2 epsilon)]."
    )

    @repair.falsify("any function of three bits", values=Array(VALUE, (8,)), epsilon=EPSILON,
                    two=2.0, mutant={"two": 1.0}, extremal=[
                        {"values": np.array([2.76, 123, 0.37, 0.46, 0.4, 28.3, 0.19, 22.2]),
                         "epsilon": 0.5}])  # fmt: skip
    def bounded(values, epsilon, two):
        levels = built(values, epsilon)
        ratios = [np.log(b / np.repeat(a, 2)) for a, b in itertools.pairwise(levels)]
        return max(np.abs(r).max() for r in ratios), two * epsilon * (1 + 1e-9)

    ledger.consequence(
        "None for Lemma 32, because its proof uses only the prefix means.", harm="the wording"
    )


def built(f, epsilon):
    """Return the prefix means of g, from the empty prefix to g itself, by Lemma 33."""
    means = [f]
    while len(means[-1]) > 1:
        means.append(means[-1].reshape(-1, 2).mean(axis=1))
    levels = [means[-1]]
    for level in means[-2::-1]:
        pairs = zip(level.reshape(-1, 2), levels[-1], strict=True)
        levels.append(
            np.concatenate([adjusted_variable(z, HALF, epsilon=epsilon, mean=g) for z, g in pairs])
        )
    return levels


# --- pure DP, and small failure probabilities ---


@statement("few.sec3.1.1-log")
def logarithms(ledger):
    """For every output o in O, they consider the function g^o(x) := ln(Pr[A(x) = o]). The
    observation here is that, in the pure-DP case, this function is epsilon-Lipschitz (i.e.,
    changing a single coordinate changes its value by at most epsilon).

    For finite outputs, the observation is equivalent to epsilon-DP. For two distributions, the
    largest change of ln Pr over outputs equals the largest change over events. The observation
    needs outputs of positive probability. If an output has probability 0 for one input, it has
    probability 0 for all inputs. For approximate DP, probabilities may be 0 and delta on
    neighbours, so the change may be infinite. The words "variance of O(sqrt(n) epsilon)" mean the
    standard deviation (convention).
    """
    events = np.array(list(itertools.product((0, 1), repeat=4)))[1:-1]

    @ledger.identity("two distributions on four outputs: outputs against events", largest=True,
                     weights=Array(Interval(0.01, 1.0), (2, 4)),
                     mutant={"largest": False})  # fmt: skip
    def changes(weights, largest):
        """The mutant uses the average output, not the worst output."""
        p, q = weights / weights.sum(axis=1, keepdims=True)
        each = np.abs(np.log(p / q))
        worst = np.abs(np.log((events @ p) / (events @ q))).max()
        return 1 + (each.max() if largest else p @ each), 1 + worst


@statement("few.sec3.1.2-beta")
def small_beta(ledger):
    """However, we require very small beta in a subsequent step of the proofs (in particular Theorem
    17).

    The proof of Theorem 17 uses beta' = beta/binom(n, r)^2, and the proof of Lemma 19 uses r = 4
    kappa and beta = 0.1/(n m). At epsilon = 1 and delta = 10^-6, r is 196. For n = 1000, beta' is
    below e^-983. Markov's inequality handles only failure probabilities above delta'
    (few.thm13.remark), and beta' is much smaller. The comparison was made for n >= 5 kappa.
    """

    @ledger.falsify("n >= 5 kappa: ln(1/delta') against ln(1/beta')", epsilon=EPSILON,
                    delta=Interval(1e-12, 0.1, log=True), more=Interval(5.0, 1e4, log=True),
                    m=Interval(1.0, 1e6, log=True), sets=2, mutant={"sets": 0}, extremal=[
                        {"epsilon": 1.0, "delta": 0.1, "more": 5.0, "m": 1.0}])  # fmt: skip
    def needed(epsilon, delta, more, m, sets):
        budget = Budget(epsilon, delta)
        n, r = math.ceil(more * budget.kappa), budget.deleted
        log_sets = math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1)
        log_delta = math.log(m * math.log(1 / delta) / (epsilon * delta))
        return log_delta, math.log(10 * n * m) + sets * log_sets


@statement("few.thm13-onesided")
def one_sided(ledger):
    """Furthermore, since d_epsilon''(A(x~) || A(x~')) <= 4 delta'', we may apply Lemma 5 to
    conclude that d_epsilon'(A(x) || A(x')) <= delta' where epsilon' = epsilon'' + 2 t epsilon and
    delta' = O(delta'' + t delta).

    Lemma 5 is stated for both directions at once. The proof uses its one-sided form, which holds:
    d_(epsilon_1 + epsilon_2)(A || C) <= d_epsilon_1(A || B) + e^epsilon_1 d_epsilon_2(B || C). The
    term d_epsilon_1(A || B) needs no factor. In the chain from x to x', the factors are at most
    e^(epsilon'' + t epsilon), which O hides for small epsilon'.
    """

    @ledger.falsify("three distributions on four outputs", weights=Array(SHARE, (3, 4)), kept=1.0,
                    one=SHARE, two=SHARE, mutant={"kept": 0.0}, extremal=[
                        {"weights": np.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 1, 0, 0]]),
                         "one": 0.69, "two": 0.1}])  # fmt: skip
    def triangle(weights, one, two, kept):
        if (weights.sum(axis=1) == 0).any():
            return None
        a, b, c = weights / weights.sum(axis=1, keepdims=True)
        first, second = stick(a, b, one), stick(b, c, two)
        return stick(a, c, one + two), first + math.exp(kept * one) * second + 1e-12


def stick(p, q, epsilon):
    """Return the hockey stick divergence of P from Q."""
    return np.maximum(p - math.exp(epsilon) * q, 0).sum()


# --- perfect generalization, and local deletion ---


def is_close(v, s, epsilon, delta):
    """Return whether coins with the probabilities v and s of 1 are close, in both directions."""
    found = True
    for a, b in ((v, s), (s, v), (1 - v, 1 - s), (1 - s, 1 - v)):
        found = found & (a - math.exp(epsilon) * b <= delta + 1e-12)
    return found


def far_from_best(law, v, epsilon, delta):
    """Return the failure probability for the best SIM_D.

    The coins that are close to v form an interval. An optimal SIM_D is the left end of one of these
    intervals.
    """
    e = math.exp(epsilon)
    ends = np.clip(np.maximum((v - delta) / e, 1 - delta - e * (1 - v)), 0, 1)
    return 1 - (is_close(v[None], ends[:, None], epsilon, delta) @ law).max()


@statement("few.c1-equivalent")
def equivalent(ledger):
    """It is known that perfect generalization and sample perfect generalization (Definition 12) are
    equivalent.

    The notions are equivalent up to constants of beta, epsilon and delta, but not with the
    constants of Lemma 30. A (beta, epsilon, delta)-perfectly generalizing algorithm is (2 beta -
    beta^2, 2 epsilon, (1 + e^epsilon) delta)-sample perfectly generalizing. Conversely, a (beta,
    epsilon, delta)-sample perfectly generalizing algorithm is (beta, epsilon, delta)-perfectly
    generalizing with SIM_D = A(x*) for some x*. The second half of Lemma 30 adds sqrt(beta) to
    delta. With this loss, going from one notion to the other and back would turn beta into
    sqrt(beta), and the notions would not be equivalent. The failure of the first half of Lemma 30
    is few.lemma30.1.
    """
    domain = {"answers": Array(SHARE, (4,)), "p": SHARE, "epsilon": Interval(0.0, 1.0),
              "delta": Interval(0.0, 0.5), "examples": 200}  # fmt: skip
    hard = [
        {"answers": np.array([0.0, 0.0, 0.0, 1.0]), "p": 0.5, "epsilon": 0.1, "delta": 0.1},
        {"answers": np.array([0.0, 0.2, 0.2, 0.5]), "p": 0.3, "epsilon": 0.0, "delta": 0.1},
    ]

    def inputs(answers, p):
        return np.array([(1 - p) ** 2, p * (1 - p), p * (1 - p), p**2]), answers

    @ledger.falsify("two bits, one bit of output: perfect gives sample perfect", twice=2.0,
                    mutant={"twice": 1.0}, extremal=hard, **domain)  # fmt: skip
    def forward(answers, p, epsilon, delta, twice):
        law, v = inputs(answers, p)
        beta = far_from_best(law, v, epsilon, delta)
        larger = (1 + math.exp(epsilon)) * delta
        far = 1 - law @ is_close(v[:, None], v[None], 2 * epsilon, larger) @ law
        return far, twice * beta - beta**2 + 1e-9

    @ledger.falsify("two bits, one bit of output: sample perfect gives perfect", part=1.0,
                    mutant={"part": 0.5}, extremal=hard, **domain)  # fmt: skip
    def backward(answers, p, epsilon, delta, part):
        law, v = inputs(answers, p)
        beta = 1 - law @ is_close(v[:, None], v[None], epsilon, delta) @ law
        return far_from_best(law, v, epsilon, delta), part * beta + 1e-9


def least_loss(n, small, delta):
    """Return the least eps' with E[f(x) - e^eps' f(x')]_+ <= n delta E f, for the steepest f.

    The function f is e^(epsilon k), where k is the sum of n fair bits and epsilon sqrt(n) = small.
    """
    k = np.arange(n + 1)
    law, f = binom.pmf(k, n, 0.5), np.exp(small / math.sqrt(n) * (k - n / 2))
    f = f / (law @ f)
    low, high = 0.0, 20 * small * math.sqrt(math.log(1 / delta))
    for _ in range(40):
        mid = (low + high) / 2
        gap = law @ np.maximum(f[:, None] - math.exp(mid) * f, 0) @ law
        low, high = (mid, high) if gap > n * delta else (low, mid)
    return high


@statement("few.thm31-otilde")
def hidden_logarithm(ledger):
    """Theorem 31 shows that any (epsilon, delta)-DP algorithm is (beta, Otilde(epsilon sqrt(n)),
    O(n delta))-perfectly generalizing.

    The claim holds if Otilde also hides logarithms of 1/delta and 1/beta, as elsewhere in the paper
    (convention). Section 2 defines Otilde(f) as O(f log^c f). For f = epsilon sqrt(n) <= 1, this
    hides nothing. Then the claim is false. Let f be e^(epsilon k), where k is the sum of 400 fair
    bits and epsilon sqrt(n) = .05. The least epsilon' is 1.35 epsilon sqrt(n) at delta = 10^-6,
    6.33 epsilon sqrt(n) at 10^-24, and 13.7 epsilon sqrt(n) at 10^-96. It is at most .92 epsilon
    sqrt(n log(1/delta)) in these cases. Theorem 31 itself prints the logarithm.
    """

    @ledger.sweep("the steepest function of 400 bits: least epsilon', and epsilon sqrt(n "
                  "log(1/delta))", delta=[1e-6, 1e-12, 1e-24, 1e-48], small=0.05,
                  power=0.5, mutant={"power": 0.2}, method=Method.NUMERIC)  # fmt: skip
    def printed(delta, small, power):
        return least_loss(400, small, delta), small * math.log(1 / delta) ** power

    @ledger.edge("Otilde hides logarithms of all parameters").sweep(
        "delta = 10^-96, epsilon' = 10 epsilon sqrt(n), the same function", n=400, small=0.05,
        delta=1e-96, lhs="E[f(x) - e^epsilon' f(x')]_+", rhs="n delta E f",
    )  # fmt: skip
    def strict(n, small, delta):
        k = np.arange(n + 1)
        law, f = binom.pmf(k, n, 0.5), np.exp(small / math.sqrt(n) * (k - n / 2))
        gaps = np.maximum(f[:, None] - math.exp(10 * small) * f, 0)
        return law @ gaps @ law, n * delta * (law @ f)


@statement("few.sec3.2.1-group")
def against_groups(ledger):
    """Below we show that, with high probability (over the input x), any item-level DP algorithm
    satisfies LDDP with the privacy loss increased by roughly r sqrt(m).

    We read the sentence for algorithms that do not depend on the order of the items, as few.thm17
    requires. For these algorithms, the datasets x_(-S) and x_(-S') differ in at most r m items. So
    group privacy (Lemma 6) gives the loss r m epsilon' for every input. Theorem 17 gives the loss r
    epsilon' sqrt(m log(n/(beta delta'))) with high probability. The word "roughly" hides this
    logarithm. If m is below the logarithm, group privacy is better, and Theorem 17 gains nothing.
    For n = 1000, beta = .1/(n m) and delta' = 10^-6, the root is 5.5 for m = 1 and 18 for m = 10.
    So the gain begins at m = 30 to 40 or later. The loss is at most r epsilon' min{m, sqrt(2 m ln(2
    n/beta))} for the logistic majority of fair bits, which was computed exactly.
    """

    @ledger.falsify("fair bits: r times the spread of the users' sums, with probability 1 - beta",
                    n=Integer(2, 10**6), m=Integer(1, 2000), beta=Interval(1e-9, 0.1, log=True),
                    r=Integer(1, 50), power=0.5, mutant={"power": 0.0}, extremal=[
                        {"n": 10**6, "m": m, "beta": 1e-3, "r": 1} for m in (1, 10, 1000)],
                    )  # fmt: skip
    def spread(n, m, beta, r, power):
        """In units of epsilon', the loss is at most r times the largest minus the least sum."""
        tail = beta / (2 * n)
        low, high = binom.ppf(tail, m, 0.5), binom.isf(tail, m, 0.5)
        root = math.sqrt(2 * m) * math.log(2 * n / beta) ** power
        return r * (high - low), r * min(m, root)
