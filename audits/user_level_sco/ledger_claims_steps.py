"""User-level DP-SCO: claims about neighbours, phases, single steps and steps of proofs."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.special import gammaln, ndtr
from scipy.stats import norm

from audits.user_level_sco import transcribed
from audits.user_level_sco.conventions import UNIT
from audits.user_level_sco.small_runs import RARE, SIZES, printed_plan
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-12


# --- Section 1 ---


def difference(left, right):
    """Return the number of positions in which two lists differ."""
    return sum(a != b for a, b in zip(left, right, strict=True))


@statement("sco2.intro.m1")
def one_item(ledger):
    """When m = 1, user-level DP becomes equivalent to item-level DP, which guarantees that the
    replacement of any single training example has a negligible impact.

    The equivalence holds if user-level DP replaces one user, as in Definition 15 and in all proofs.
    The sentence before says that user-level DP protects against adding or removing one user. Then
    the two notions differ. Publishing the number of users is 0-DP under replacement, and not
    private under removal. A histogram with Laplace noise of scale 1/epsilon is epsilon-DP under
    removal, and exactly 2 epsilon under replacement.
    """

    @ledger.identity(
        "all datasets of 3 users: one user differs if and only if one item differs", m=1,
        mutant={"m": 2}, left=list(itertools.product((0, 1), repeat=3)),
        right=list(itertools.product((0, 1), repeat=3)),
    )  # fmt: skip
    def same(m, left, right):
        """Compare how many items differ with how many users differ.

        The mutant gives each user two items, of which the second is the complement of the first.
        """
        pairs = [[(z, 1 - z)[:m] for z in data] for data in (left, right)]
        items = [[item for user in data for item in user] for data in pairs]
        return difference(*items), difference(*pairs)

    @ledger.edge("neighbours replace one user").sweep(
        "M(D) = |D|, 2 users and 1 user, epsilon = 1", users=2, epsilon=1.0,
        lhs="P[M(D) = 2]", rhs="e^epsilon P[M(D') = 2] + 1/2",
    )  # fmt: skip
    def count(users, epsilon):
        return float(users == 2), math.exp(epsilon) * float(users - 1 == 2) + 0.5


@statement("sco2.sec1.1.pairs")
def distances_of_users(ledger):
    """With most of the points q_t(Z_1), ..., q_t(Z_B) in the unit ball likely to be within a
    distance of Otilde(1/sqrt(m)) from each other, under the i.i.d. assumption.

    The sentence prints 1/sqrt(m). Two sentences before, the text has Otilde(1/sqrt(m)). The root of
    the mean squared distance is sqrt(2/m) for centred gradients of norm 1. So at least half of the
    pairs are within 2/sqrt(m). For gradients +-e_1, ..., +-e_d and m = 400, the share of pairs
    within 1/sqrt(m) is .54 at d = 1, .26 at d = 4 and 0 at d = 100.
    """
    domain = {"points": Array(UNIT, ("k", 2)), "weights": Array(Interval(0.01, 1.0), ("k",))}
    domain |= {"k": Choice((2, 3)), "m": Choice((1, 2, 4))}
    signs = {"points": np.array([[1.0, 0.0], [-1.0, 0.0]]), "weights": np.ones(2)}

    @ledger.falsify(
        "P[two users are more than 2/sqrt(m) apart] < 1/2, all data of two users", reach=2.0,
        extremal=[{**signs, "m": m} for m in (1, 2, 4)], mutant={"reach": 0.5}, examples=100,
        **domain,
    )  # fmt: skip
    def close(points, weights, m, reach):
        points, weights = (
            points / max(1, np.linalg.norm(points, axis=1).max()),
            weights / weights.sum(),
        )
        users = list(itertools.product(range(len(points)), repeat=m))
        means = points[users].mean(axis=1)
        chances = weights[users].prod(axis=1)
        apart = np.linalg.norm(means[:, None] - means, axis=2) > reach / math.sqrt(m) + ROUNDING
        return chances @ apart @ chances, 0.5

    @ledger.misprint("within a distance of 1/sqrt(m)", "Otilde(1/sqrt(m))").sweep(
        "gradients +-e_1, ..., +-e_100, m = 400", m=400, d=100, pairs=1000, seed=0,
        lhs="1/2", rhs="share of pairs within 1/sqrt(m)",
    )  # fmt: skip
    def far(m, d, pairs, seed):
        counts = np.random.default_rng(seed).multinomial(m, np.ones(2 * d) / (2 * d), (2, pairs))
        means = (counts[..., :d] - counts[..., d:]) / m
        apart = np.sqrt(((means[0] - means[1]) ** 2).sum(axis=1))
        return 0.5, (apart <= 1 / math.sqrt(m)).mean()


# --- Section 3.1 ---


@statement("sco2.sec3.1.naive")
def naive_bound(ledger):
    """A naive bound on the excess loss due to the privatization is given by E[F(x_1) - F(xbar_1)]
    <= G norm_2(zeta_1). The magnitude of the noise is typically too large to achieve a good utility
    guarantee outright.

    The right side needs an expectation, E norm_2(zeta_1). It is attained by F = G norm(x - xbar_1).
    Take n = 1e10, m = 1e6, epsilon = 1 and delta = 1e-6. The bound is then 1.3e3 times the rate of
    Theorem 8 at d = 1, and 1.8e5 times at d = 1e4. For beta-smooth F, beta d sigma_1^2/2 is a
    second bound, because the noise is centred.
    """
    domain = {"center": Array(Interval(-2.0, 2.0), (2,)), "sigma": Interval(0.1, 2.0), "part": 1.0}

    @ledger.falsify("F = norm(x - center), 2-dimensional noise, by quadrature", tolerance=1e-6,
                    extremal=[{"center": np.zeros(2), "sigma": 1.0}], mutant={"part": 0.9},
                    **domain)  # fmt: skip
    def excess(center, sigma, part):
        radius, w = np.polynomial.legendre.leggauss(60)
        radius, w = 4 * (radius + 1), 4 * w * np.exp(-((4 * (radius + 1)) ** 2) / 2)
        w = w * radius / (w @ radius)  # density of the norm of a standard normal vector
        turn = np.exp(2j * math.pi * np.arange(64) / 64)
        at = sigma * radius[:, None] * turn - complex(*center)
        mean = w @ np.abs(at).mean(axis=1) - np.linalg.norm(center)
        return mean, part * sigma * math.sqrt(math.pi / 2) + 1e-6

    @ledger.sweep("the bound against the rate", n=[10**10, 10**12], m=10**6, d=[1, 10**4],
                  epsilon=0.999, delta=1e-6, times=1000.0, mutant={"times": 1e6},
                  method=Method.NUMERIC)  # fmt: skip
    def large(n, m, d, epsilon, delta, times):
        sigma = transcribed.euclidean_phases(n, m, d, epsilon, delta, 1.0, 1.0)[0][2]
        length = math.sqrt(2) * sigma * math.exp(gammaln((d + 1) / 2) - gammaln(d / 2))
        return times * (1 / math.sqrt(n * m) + math.sqrt(d) / (n * epsilon * math.sqrt(m))), length


@statement("sco2.sec3.1.refine", expected="ambiguous")
def refined_by_phases(ledger):
    """A smaller dataset and a smaller step size are sufficient to find the next good solution, with
    smaller noise norm(zeta_2). Each subsequent solution xbar_s is progressively refined, and the
    noise norm(zeta_s) becomes negligible.

    The overview is right for many items. Step sizes and noise shrink by the factor log m in each
    phase. So they shrink for m >= 3, and they are negligible after log n phases if log m is at
    least e, which is m >= 16. For m <= 2, they do not shrink, if log m is read as at least 1. As
    printed, they grow by the factor 1.44 in each phase for m = 2, and eta_s divides by 0 for m = 1.
    For m = 1 and d log(1/delta) log(nmd)/epsilon^2 >= n, the noise of every phase has E norm^2 =
    D^2. Then x_1 is not better than x_0. See sco2.util.fact and sco2.thm8.util.
    """

    @ledger.reading("for every m, such as item-level data", fails=True).sweep(
        "m = 1 and m = 2 after log n phases", n=10**9, m=[1, 2],
        lhs="norm of the last noise over D", rhs="1/sqrt(n)",
    )  # fmt: skip
    def constant(n, m):
        shrink = max(1.0, math.log(m))
        return shrink ** -math.ceil(math.log(n)), 1 / math.sqrt(n)

    @ledger.reading("for m >= 16").falsify(
        "noise and steps of a printed plan, from phase to phase", extremal=[{**RARE, "m": 16}],
        part=1.0, mutant={"part": 0.99}, examples=60, **{**SIZES, "m": Integer(16, 10**5)},
    )  # fmt: skip
    def shrinks(n, m, d, epsilon, delta, lipschitz, radius, part):
        if (plan := printed_plan(n, m, d, epsilon, delta, lipschitz, radius)) is None:
            return None
        phases = [(phase.step, phase.sigma) for phase in plan.phases]
        ratios = [
            b / a for old, new in itertools.pairwise(phases) for a, b in zip(old, new, strict=True)
        ]
        return max(ratios, default=0.0), part / math.log(m) * (1 + ROUNDING)


@statement("sco2.sec3.1.phases")
def number_of_phases(ledger):
    """The algorithm runs in logarithmically many phases, where the size of the dataset decreases
    geometrically in each phase. This process is repeated over O(log n) phases.

    The number S of phases is at most log n. It may be as small as log log(mn/delta), and Section
    3.3.2 uses S as a multiple of log n (sco2.util.sum). The phases use n (1 - 2^-S) users.
    """

    @ledger.falsify("S and the sizes of a printed plan", extremal=[RARE], examples=60, base=2,
                    mutant={"base": 3}, **SIZES)  # fmt: skip
    def phases(n, m, d, epsilon, delta, lipschitz, radius, base):
        """Compare S/log n and the largest n_s base^s/n with 1.

        The mutant lets the sizes decrease by a factor of 3.
        """
        if (plan := printed_plan(n, m, d, epsilon, delta, lipschitz, radius)) is None:
            return None
        sizes = [phase.n_users * base**s / n for s, phase in enumerate(plan.phases, 1)]
        return max(len(plan.phases) / math.log(n), *sizes), 1.0


# --- steps of proofs ---


@statement("sco2.eq4.identity")
def mean_without_one(ledger):
    """For N kept users, the mean of all gradients less the mean of the users i >= 2 is
    qtilde_1(Z_(1,1))/N - (1/(N (N - 1))) sum_(i >= 2) q_1(Z_(1,i)), whose norm is at most the
    largest norm(qtilde_1(Z_(1,1)) - q_1(Z_(1,i))) over N.

    The bound is attained if all other users agree. The display writes Dhat_t for Dhat_1. It divides
    by zero for N = 1, which the event E_1 excludes.
    """
    domain = {"q": Array(UNIT, ("n", 2)), "n": Choice((2, 3, 6))}
    domain["extremal"] = [{"q": np.array([[1.0, 0.5], [-1.0, 0.0], [-1.0, 0.0]])}]

    @ledger.identity("the identity", less=1, mutant={"less": 0}, floor=1e-6, **domain)
    def identity(q, less):
        n = len(q)
        return q.mean(axis=0) - q[1:].mean(axis=0), q[0] / n - q[1:].sum(axis=0) / (n * (n - less))

    @ledger.falsify("the bound", mutant=0.9, **domain)
    def bound(q):
        move = np.linalg.norm(q.mean(axis=0) - q[1:].mean(axis=0))
        return move, np.linalg.norm(q[0] - q[1:], axis=1).max() / len(q) + ROUNDING


@statement("sco2.lemma14.variance")
def variance_of_a_batch(ledger):
    """When all functions are drawn i.i.d. from the distribution, E norm((1/B) sum_i q_t(Z_(t,i)) -
    grad F(x_(t-1)))^2 <= G^2/(Bm), and <= G^2 d/(Bm) for gradients bounded by G in l_inf (Lemma
    37).

    The bounds are attained by gradients with mean 0 and norm G. They need a point x_(t-1) that does
    not depend on batch t, which holds because each step takes new users. The proof uses them
    without the condition that the events E_1 and E_2 happen.
    """
    domain = {"points": Array(UNIT, ("k", 2)), "weights": Array(Interval(0.01, 1.0), ("k",))}
    domain |= {"k": Choice((2, 3)), "items": Choice((1, 2, 4))}
    ends = {"points": np.array([[1.0, 1.0], [-1.0, -1.0]]), "weights": np.ones(2)}

    @ledger.falsify("all draws of Bm gradients, G = 1, d = 2", linf=Choice((False, True)),
                    extremal=[{**ends, "items": 4, "linf": linf} for linf in (False, True)],
                    power=1.0, mutant={"power": 2.0}, examples=100, **domain)  # fmt: skip
    def spread(points, weights, items, linf, power):
        if not linf:
            points = points / np.maximum(1, np.linalg.norm(points, axis=1))[:, None]
        weights = weights / weights.sum()
        draws = list(itertools.product(range(len(points)), repeat=items))
        errors = points[draws].mean(axis=1) - weights @ points
        square = weights[draws].prod(axis=1) @ (errors**2).sum(axis=1)
        return square, (2 if linf else 1) / items**power + ROUNDING


@statement("sco2.lemma41.zero")
def independent_scores(ledger):
    """Due to the independence between M(D_~i) and Zbar_i, E[Atilde_i] = 0. By the property of DP,
    Pr[A_(i,+) >= t] <= exp(epsilon) Pr[Atilde_(i,+) >= t] + delta for every t >= 0.

    The independence holds given mu. Without this condition, the two are dependent. Given mu and
    Zbar_i, the event A_i >= t is an event of the output, and the two datasets are neighbours. The
    row uses one user in one dimension, whose noisy sign is published: sign(Zbar_1), flipped with
    probability 1/(1 + e^epsilon).
    """
    nodes = np.linspace(-6, 6, 2401)

    def answers(mu, epsilon):
        """Return weights of Zbar_1, the scores for both answers, and P[answer +1] of A, Atilde."""
        weights = norm.pdf(nodes - mu)
        weights = weights / weights.sum()
        scores = (1 - mu**2) * (np.array([[1.0], [-1.0]]) - mu) * (nodes - weights @ nodes)
        up = math.exp(epsilon) / (1 + math.exp(epsilon))
        own = np.where(nodes > 0, up, 1 - up)
        return weights, scores, own, up * ndtr(mu) + (1 - up) * ndtr(-mu)

    @ledger.falsify("E[Atilde_1] given mu", mu=UNIT, epsilon=Interval(0.01, 1.0), own=False,
                    extremal=[{"mu": 0.0, "epsilon": 1.0}], mutant={"own": True})  # fmt: skip
    def centred(mu, epsilon, own):
        """Compare the mean with 0.

        The mutant uses the answer of the dataset that holds Zbar_1.
        """
        weights, scores, answer, fresh = answers(mu, epsilon)
        chance = answer if own else fresh
        return abs(weights @ (scores[0] * chance + scores[1] * (1 - chance))), 1e-9

    @ledger.falsify("the tails", mu=UNIT, epsilon=Interval(0.01, 1.0), t=Interval(0.001, 2.0),
                    growth=1.0, extremal=[{"mu": 0.0, "epsilon": 1.0, "t": 0.001}],
                    mutant={"growth": 0.1})  # fmt: skip
    def tails(mu, epsilon, t, growth):
        weights, scores, answer, fresh = answers(mu, epsilon)
        above = scores >= t
        left, right = (
            weights @ (above[0] * chance + above[1] * (1 - chance)) for chance in (answer, fresh)
        )
        return left, math.exp(growth * epsilon) * right + ROUNDING


@statement("sco2.lemma39.harder")
def clipping_is_harmless(ledger):
    """The weighted sign error with respect to mu' = E[z | mu] is at least that with respect to mu,
    less d norm_inf(mu - mu').

    In each coordinate, abs(mu') 1(sign(mu') != s) >= abs(mu) 1(sign(mu) != s) - abs(mu - mu') for
    every sign s. Step (i) holds too, because clipping each item maps a user-level DP algorithm for
    clipped items to one for Gaussian items. The last term is O(1/n^2) for the P_2 that clips
    (sco2.eq20). It is not if P_2 includes the mixture with the Dirac at 0 (sco2.lemma39.chain).
    Then mu' is (n_star/n) mu, and d norm_inf(mu - mu') may be .9 d at n = 10 n_star.
    """
    pair = {"mu": Array(UNIT, ("d",)), "near": Array(UNIT, ("d",)), "d": Choice((1, 2, 4))}
    ends = {"mu": np.array([1.0, -1.0]), "near": np.array([-1.0, 1.0])}

    @ledger.falsify("all numbers and signs", seed=Integer(0, 15), price=1.0, mutant={"price": 0.4},
                    extremal=[{**ends, "seed": 1}], **pair)  # fmt: skip
    def error(mu, near, seed, price):
        answer = np.array([1.0 if seed >> i & 1 else -1.0 for i in range(len(mu))])
        least = np.abs(mu) @ (np.sign(mu) != answer) - price * len(mu) * np.abs(mu - near).max()
        return least, np.abs(near) @ (np.sign(near) != answer) + ROUNDING
