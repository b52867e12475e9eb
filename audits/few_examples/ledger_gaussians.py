"""Few examples per user: learning Gaussian distributions, Appendix E.3.3."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.stats import norm

from algorithms.few_examples.covers import bounded_gaussian_cover, gaussian_cover
from algorithms.few_examples.hypotheses import GaussianComparison
from algorithms.few_examples.packings import covariance_packing, gaussian_packing, greedy_code
from audits.few_examples.best_tests import least_users
from audits.few_examples.conventions import SHARE
from audits.few_examples.hard_instances import best_success
from audits.few_examples.transcribed import ball_cover, covariance_cover, in_w, mass_of_w
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Method

ROUNDING = 1e-9
ALPHA = Interval(1e-6, 0.1, log=True)


def in_order(rows):
    """Return rows in lexicographic order, up to rounding."""
    return np.array(sorted(np.round(rows, 9).tolist()))


def matrices_in_order(matrices):
    """Return matrices as rows in lexicographic order, up to rounding."""
    rows = np.round(np.reshape(matrices, (len(matrices), -1)), 6) + 0.0
    return np.array(sorted(rows.tolist()))


def gaussians_apart(distance):
    return 2 * norm.cdf(distance / 2) - 1


@statement("few.thm45")
def known_covariance(ledger):
    """Let Gauss(R, d; alpha) be the task of learning a Gaussian N(mu, Sigma) on R^d with norm(mu)
    <= R and Sigma = I to TV accuracy alpha. For any sufficiently small alpha, epsilon > 0 and for
    all m in N, n_m^(Gauss(R, d; alpha))(epsilon, delta = 0) = Thetatilde(d/epsilon + d/(alpha
    epsilon sqrt(m)) + d/(alpha^2 m)).

    The theorem holds for R >= 1. The distance d_tv is exactly 2 Phi(distance/2) - 1. The cover is a
    cubic grid, whose log size is at most 2 d ln(30 d R/alpha). The packing consists of corners of a
    cube that have the norm 12 alpha. A code of distance d/8 selects the corners. The packing has
    d_tv >= 3 alpha and divergence at most 288 alpha^2, for alpha <= 1/12. In the cited packing, the
    norms of the means are up to O(sqrt(log(1/alpha))). For small alpha, this bound exceeds every
    fixed R. The divergence of the cited packing is O(alpha^2), so any two means in the packing are
    at most O(alpha) apart. So the packing can be moved into the ball. For R < alpha, a single
    Gaussian is a correct answer for all means (convention).
    """

    @ledger.falsify("the cover, any mean in the plane", bound=Interval(1.0, 3.0), x=SHARE,
                    angle=SHARE, radius=0.2, finer=0.2, mutant={"finer": 0.5}, end_to_end=True,
                    extremal=[{"bound": 3.0, "x": 1.0, "angle": 0.125}], examples=150)  # fmt: skip
    def covered(bound, x, angle, radius, finer):
        mean = bound * x * np.array([math.cos(6.2832 * angle), math.sin(6.2832 * angle)])
        far = np.linalg.norm(gaussian_cover(bound, 2, finer) - mean, axis=1).min()
        return gaussians_apart(far), radius + ROUNDING

    @ledger.falsify("its size", d=Integer(1, 10**6), R=Interval(1.0, 1e6, log=True), alpha=ALPHA,
                    most=2.0, mutant={"most": 0.4}, extremal=[{"d": 1, "R": 1e6, "alpha": 0.1}],
                    )  # fmt: skip
    def size(d, R, alpha, most):
        """Use a grid with the step 2 reach/sqrt(d), where reach >= .25 alpha."""
        reach = 2 * norm.ppf((1 + 0.1 * alpha) / 2)
        return d * math.log(2 * math.ceil(R * math.sqrt(d) / (2 * reach)) + 1), most * d * math.log(
            30 * d * R / alpha
        )

    @ledger.identity("our cover is this cubic grid", bound=[0.0, 0.3, 1.0, 2.2], d=[1, 2, 3],
                     radius=[0.2, 0.45], larger=1.0, mutant={"larger": 1.1})  # fmt: skip
    def grid(bound, d, radius, larger):
        """Compare the centers in lexicographic order."""
        found, meant = gaussian_cover(bound, d, radius), ball_cover(bound, d, larger * radius)
        if len(found) != len(meant):
            return len(found), len(meant)
        return in_order(found), in_order(meant)

    @ledger.identity("our packing: the corners of a cube, of a given norm", scale=[0.0, 0.5, 2.0],
                     corner=1.0, mutant={"corner": 0.9})  # fmt: skip
    def corners(scale, corner):
        code = [(0, 1, 1), (1, 0, 1), (0, 0, 0)]
        meant = [[corner * (scale if bit else -scale) / math.sqrt(3) for bit in u] for u in code]
        return gaussian_packing(code, scale), np.array(meant)

    @ledger.identity("our comparison of Gaussians with covariance I", d=[1, 3], m=[1, 4], grow=1.0,
                     mutant={"grow": 1.1}, end_to_end=True)  # fmt: skip
    def compared(d, m, grow):
        """Use equal means, and means at several distances."""
        rng = np.random.default_rng(d)
        means, data = rng.normal(size=(4, d)), rng.normal(size=(5, m, d))
        means[3] = means[0]
        comparison = GaussianComparison(means)
        found = comparison.of_users(comparison.users_of(data))
        meant = np.array([[[sum(
            (0.0 if math.dist(means[h], means[g]) == 0 else
             norm.cdf(grow * math.dist(means[h], means[g]) / 2))
            - in_w(z, means, [np.eye(d)] * 4, h, g) for z in user)
            for g in range(4)] for h in range(4)] for user in data])  # fmt: skip
        return [comparison.n_candidates, *found.ravel()], [4, *meant.ravel()]

    domain = {"d": [1, 2, 8, 12], "alpha": [1 / 12, 1e-2, 1e-4]}

    @ledger.sweep("the packing on greedy codes: d_tv", scale=12.0, mutant={"scale": 6.0},
                  end_to_end=True, **domain)  # fmt: skip
    def apart(d, alpha, scale):
        means = gaussian_packing(greedy_code(d, math.ceil(d / 8))[:24], scale * alpha)
        near = min(np.linalg.norm(p - q) for p, q in itertools.combinations(means, 2))
        return 3 * alpha, gaussians_apart(near)

    @ledger.sweep("the packing: divergence, and it is in the ball of norm 1", most=288.0,
                  mutant={"most": 100.0}, **domain)  # fmt: skip
    def diameter(d, alpha, most):
        means = gaussian_packing(greedy_code(d, math.ceil(d / 8))[:24], 12 * alpha)
        far = max(np.linalg.norm(p - q) for p, q in itertools.combinations(means, 2))
        inside = np.linalg.norm(means, axis=1).max() <= 1 + 1e-9
        return far**2 / 2, most * alpha**2 * (1 + ROUNDING) if inside else 0.0

    @ledger.edge("R >= 1").sweep(
        "R = alpha: no two are 3 alpha apart", alpha=0.01, lhs="3 alpha", rhs="largest d_tv"
    )  # fmt: skip
    def small(alpha):
        return 3 * alpha, gaussians_apart(2 * alpha)


@statement("few.thm45.remark", expected="ambiguous")
def approximate(ledger):
    """The problem of Theorem 45 has already been (implicitly) studied under user-level
    approximate-DP by Narayanan et al., who showed that n_m^(Gauss(R, d; alpha))(epsilon, delta > 0)
    <= Otilde(d/(alpha epsilon sqrt(m)) + d/(alpha^2 m)).

    The paper cites the bound without a range of m. As m grows, the display tends to 0. As m grows,
    the items of one user distinguish two means at the distance 2 with certainty. If delta is much
    smaller than epsilon, two such means need about 2 ln(3/2)/epsilon users for every m. At epsilon
    = 1/1000 and delta = 10^-9, 811 users are needed. As in few.disp-DD, the display lacks a term
    1/epsilon. The missing term matters for m >= (d/alpha)^2. If the notation hides any dependence
    on delta, the display is true. In this case, one of about 1/delta users may be published. If the
    notation hides only logarithms of 1/delta, the display is false. The paper compares the display
    with a bound for pure DP, which has an extra term d/epsilon. With the missing term, this extra
    term would have to be compared with 1/epsilon. We did not execute the algorithm of the cited
    bound.
    """
    ledger.reading("any dependence on delta is hidden, and users are rounded up").sweep(
        "two means, m large: least n, against 1/(3 delta) + 1 for every epsilon and m",
        epsilon=[1e-9, 1e-6, 1e-3, 0.1, 1.0], delta=[1e-5, 1e-3, 0.05], third=1 / 3,
        mutant={"third": 0.3},
    )(bounded_by_delta)  # fmt: skip

    @ledger.reading("logarithms of 1/delta are hidden", fails=True).sweep(
        "two means, d = 1, m large: least n, against (the display + 1) log(everything)^10",
        epsilon=1e-80, delta=1e-200, alpha=0.1, m=1e300, method=Method.NUMERIC,
        lhs="users that group privacy requires", rhs="users that the display allows",
    )  # fmt: skip
    def large_m(epsilon, delta, alpha, m):
        """Use the inequality of group privacy, 2/3 <= e^(n epsilon)/3 + n e^(n epsilon) delta."""
        least = 0.99 * math.log(2) / epsilon
        display = 1 / (epsilon * alpha * math.sqrt(m)) + 1 / (alpha**2 * m)
        logarithms = math.log(m) - math.log(epsilon) - math.log(delta) - math.log(alpha)
        return least, (1 + display) * logarithms**10

    ledger.consequence(
        "A reader who uses the display for m above (d/alpha)^2 plans with too few users.",
        harm="the wording",
    )


def bounded_by_delta(epsilon, delta, third):
    return least_users(epsilon, delta), math.ceil(third / delta) + 1


def swapped(ratio):
    """Return the exact d_tv of N(0, diag(a, b)) and N(0, diag(b, a)), where a/b = ratio >= 1."""
    return 4 / math.pi * math.atan(math.sqrt(ratio)) - 1


@statement("few.thm46")
def bounded_covariance(ledger):
    """Let kappa > 1 be a constant, and Gauss(R, d, kappa; alpha) the task of learning a Gaussian
    N(mu, Sigma) on R^d with norm(mu) <= R and I <= Sigma <= kappa I to TV accuracy alpha. For any
    sufficiently small alpha, epsilon > 0 and for all m in N, n_m^(Gauss(R, d, kappa;
    alpha))(epsilon, delta = 0) = Thetatilde_kappa(d^2/epsilon + d^2/(alpha epsilon sqrt(m)) +
    d^2/(alpha^2 m)).

    The theorem holds for R >= 1 and constant kappa > 1, with alpha <= (kappa - 1)/80. An explicit
    packing consists of the matrices Sigma = (1 + r) I + (r/d) U. In these matrices, r is 40 alpha.
    The matrix U is symmetric, and a code gives the signs of U off the diagonal. Diagonal dominance
    of the rows gives I <= Sigma <= (1 + 2 r) I, so kappa >= 1 + 80 alpha is enough. The divergence
    is at most r^2 = 1600 alpha^2, and d_tv is at least 3 alpha. For d = 2, the divergence and the
    distance d_tv were computed exactly. For d = 6, words of the code differ in 2 of 15 places. At
    alpha = .01, the best test errs with probability .476, and at most .485 is allowed. For d = 1, a
    scale factor replaces U. The cover is computed for d =
    1. A grid of the entries of the matrices has the cited size, up to the constant 2.
    """

    @ledger.sweep("d = 2: one sign, exactly", alpha=[1e-5, 1e-3, 0.01], scale=40.0,
                  mutant={"scale": 4.0}, end_to_end=True)  # fmt: skip
    def plane(alpha, scale):
        r = scale * alpha
        return 3 * alpha, swapped((1 + r + r / 2) / (1 + r - r / 2))

    domain = {"d": [2, 4, 8], "alpha": [1e-4, 0.01]}

    @ledger.sweep("the divergence of any two, and the bounds", most=1600.0, mutant={"most": 5.0},
                  **domain)  # fmt: skip
    def diameter(d, alpha, most):
        """Use words in which all signs differ, or the signs alternate, or all signs are equal."""
        r = 40 * alpha
        one, other = signs(d, r, np.ones((d, d))), signs(d, r, -np.ones((d, d)))
        inside = all(1 - 1e-9 <= x <= 1 + 2 * r + 1e-9
                     for s in (one, other) for x in np.linalg.eigvalsh(s))  # fmt: skip
        share = np.linalg.solve(other, one)
        kl = (np.trace(share) - d - np.linalg.slogdet(share)[1]) / 2
        return kl, most * alpha**2 if inside else 0.0

    @ledger.identity("our packing: the matrices", d=[2, 3, 5], spread=[0.0, 0.4], sign=1.0,
                     mutant={"sign": -1.0})  # fmt: skip
    def matrices(d, spread, sign):
        code = np.random.default_rng(d).integers(2, size=(4, d * (d - 1) // 2))
        meant = []
        for word in code:
            bits, one = iter(word), np.zeros((d, d))
            for i in range(d):
                one[i, i] = 1 + spread
                for j in range(i + 1, d):
                    one[i, j] = one[j, i] = sign * spread / d * (1 if next(bits) else -1)
            meant.append(one)
        return covariance_packing(code, spread), np.array(meant)

    @ledger.sweep("d = 2, our packing: exactly", alpha=[1e-5, 1e-3, 0.01], scale=40.0,
                  mutant={"scale": 4.0}, end_to_end=True)  # fmt: skip
    def packed_plane(alpha, scale):
        """In the plane, the two matrices have the same eigenvectors, with swapped eigenvalues."""
        low, high = np.linalg.eigvalsh(covariance_packing([[0], [1]], scale * alpha)[1])
        return 3 * alpha, swapped(high / low)

    @ledger.monte_carlo("d = 6, words that differ in two of 15 places: errors of the best test",
                        allowed=(1 - 3 * 0.01) / 2, draws=200_000, d=6, alpha=0.01, scale=40.0,
                        mutant={"scale": 2.0})  # fmt: skip
    def error(size, *, rng, d, alpha, scale):
        word = np.ones((d, d))
        other = word.copy()
        for i, j in ((0, 1), (2, 3)):
            other[i, j] = other[j, i] = -1
        pair = [signs(d, scale * alpha, u) for u in (word, other)]
        which = rng.integers(2, size=size)
        z = rng.standard_normal((size, d))
        roots = np.array([np.linalg.cholesky(s) for s in pair])
        x = np.einsum("nij,nj->ni", roots[which], z)
        loss = [np.einsum("ni,ij,nj->n", x, np.linalg.inv(s), x) + np.linalg.slogdet(s)[1]
                for s in pair]  # fmt: skip
        return (loss[1] < loss[0]).astype(int) != which

    @ledger.falsify("the cover on a line, any mean and variance", R=1.0, kappa=Interval(1.1, 2.0),
                    x=Interval(-1.0, 1.0), s=SHARE, radius=0.3, finer=0.3, mutant={"finer": 0.5},
                    end_to_end=True, examples=60,
                    extremal=[{"kappa": 2.0, "x": 0.32, "s": 0.12}])  # fmt: skip
    def line(R, kappa, x, s, radius, finer):
        means, covariances = bounded_gaussian_cover(R, 1, kappa, finer)
        variance = 1 + s * (kappa - 1)
        found = bound_on_tv(x - means[:, 0], variance, covariances[:, 0, 0])
        return found.min(), radius + ROUNDING

    @ledger.falsify("our cover in the plane: a covariance within the radius, for each mean",
                    angle=SHARE, low=SHARE, high=SHARE, kappa=Interval(1.1, 3.0), radius=0.45,
                    finer=0.45, mutant={"finer": 0.5}, examples=40, end_to_end=True, extremal=[
                        {"angle": 0.25, "low": 0.25, "high": 0.5, "kappa": 3.0},
                        {"angle": 0.5, "low": 0.5, "high": 0.5, "kappa": 1.0}])  # fmt: skip
    def plane_cover(angle, low, high, kappa, radius, finer):
        """Return the distance of a matrix to the nearest covariance of the cover.

        The distance is set to 9 if a covariance is not between I and kappa I. The distance is also
        set to 9 if the cover does not hold all pairs of the means and the covariances once.
        """
        means, covariances = bounded_gaussian_cover(1.0, 2, kappa, finer)
        turn = np.array([[math.cos(math.pi * angle), -math.sin(math.pi * angle)],
                         [math.sin(math.pi * angle), math.cos(math.pi * angle)]])  # fmt: skip
        matrix = turn @ np.diag([1 + low * (kappa - 1), 1 + high * (kappa - 1)]) @ turn.T
        values = np.linalg.eigvalsh(covariances)
        inside = values.min() > 1 - 1e-9 and values.max() < kappa + 1e-9
        pairs = {(*m, *c) for m, c in zip(np.round(means, 9).tolist(),
                 np.round(covariances, 9).reshape(-1, 4).tolist(), strict=True)}  # fmt: skip
        centers = {tuple(m) for m in np.round(ball_cover(1.0, 2, finer / 2), 9).tolist()}
        whole = {p[:2] for p in pairs} == centers and len(pairs) == len(means) == (
            len(centers) * len({p[2:] for p in pairs}))  # fmt: skip
        far = np.linalg.norm(covariances - matrix, axis=(1, 2)).min()
        return far if inside and whole else 9.0, radius + ROUNDING

    @ledger.identity("our covariances are projections of this grid", cases=[
        {"d": 1, "kappa": 1.5}, {"d": 2, "kappa": 2.6}, {"d": 2, "kappa": 2.2},
        {"d": 2, "kappa": 1.0}, {"d": 3, "kappa": 1.5}], finer=1.0,
                     mutant={"finer": 0.5})  # fmt: skip
    def projected(d, kappa, finer):
        """Compare all covariances in lexicographic order."""
        _, found = bounded_gaussian_cover(0.0, d, kappa, 0.45)
        meant = covariance_cover(d, kappa, finer * 0.45)
        if len(found) != len(meant):
            return len(found), len(meant)
        return matrices_in_order(found), matrices_in_order(meant)

    @ledger.sweep("our comparison of Gaussians on a line: P(W)", means=[(0.0, 0.7), (1.0, -0.5)],
                  variances=[(1.0, 2.0), (3.0, 1.5), (2.0, 2.0)], scale=1.0,
                  mutant={"scale": 1.1}, method=Method.NUMERIC)  # fmt: skip
    def masses(means, variances, scale):
        """Each end of an interval is off by at most one half of 4096 points."""
        comparison = GaussianComparison(np.array(means)[:, None], np.reshape(variances, (2, 1, 1)))
        item = np.array([[[0.2]]])
        found = comparison.of_users(comparison.users_of(item))[0]
        meant = [
            [
                0.0
                if h == g
                else mass_of_w(scale * np.array(means), variances, h, g)
                - in_w(item[0, 0], means, variances, h, g)
                for g in (0, 1)
            ]
            for h in (0, 1)
        ]
        ends = 1 if variances[0] == variances[1] else 2
        return np.abs(found - meant).max(), ends / 8192 + ROUNDING

    @ledger.sweep("our comparison of Gaussians with one covariance: P(W) ends between two points",
                  place=[500, 1200, 2040], shift=0.01, mutant={"shift": 1.0},
                  method=Method.NUMERIC)  # fmt: skip
    def between(place, shift):
        """The end is a hundredth of a cell below a multiple of 1/4096, or a whole cell."""
        gap = 2 * norm.ppf((4096 - place - 0.01) / 4096)
        comparison = GaussianComparison([[0.0], [gap]], np.ones((2, 1, 1)))
        found = comparison.of_users(comparison.users_of([[[-9.0]]]))[0, 0, 1]
        return abs(found + 1 - (4096 - place - shift) / 4096), 1 / 8192

    @ledger.sweep("our comparison of Gaussians in the plane, with one covariance", m=[1, 3],
                  covariance=[((2.0, 0.8), (0.8, 1.5)), ((1.0, -0.9), (-0.9, 3.0))], grow=1.0,
                  mutant={"grow": 1.1}, method=Method.NUMERIC)  # fmt: skip
    def common(m, covariance, grow):
        """P(W) is Phi of half of the distance of the means, in the norm of the covariance."""
        rng = np.random.default_rng(m)
        means, data = rng.normal(size=(3, 2)), rng.normal(size=(4, m, 2))
        comparison = GaussianComparison(means, [covariance] * 3)
        found = comparison.of_users(comparison.users_of(data))
        inverse, worst = np.linalg.inv(covariance), 0.0
        for i, h, g in itertools.product(range(4), range(3), range(3)):
            gap = means[h] - means[g]
            mass = norm.cdf(grow * math.sqrt(gap @ inverse @ gap) / 2) if h != g else 0.0
            psi = sum(mass - in_w(z, means, [covariance] * 3, h, g) for z in data[i])
            worst = max(worst, abs(found[i, h, g] - psi))
        return worst, 0.004 * m

    @ledger.identity("our comparison of Gaussians: the determinants count", m=[1, 3], d=[1, 2],
                     wide=3.0, mutant={"wide": 0.5})  # fmt: skip
    def determinants(m, d, wide):
        """Compare how many items are in W; the number does not depend on P(W)."""
        data = np.random.default_rng(m).normal(size=(6, m, d)) * 2
        means, wider = np.zeros((2, d)), [np.eye(d), 3.0 * np.eye(d)]
        comparison = GaussianComparison(means, wider)
        found = comparison.of_users(comparison.users_of(data))
        none = comparison.of_users(comparison.users_of(np.full((1, m, d), 1e3)))[0]
        meant = [sum(in_w(z, means, [np.eye(d), wide * np.eye(d)], 0, 1) for z in user)
                 for user in data]  # fmt: skip
        return none[0, 1] - found[:, 0, 1], np.array(meant)

    @ledger.falsify("the size of a grid of means and covariances", d=Integer(1, 10**4),
                    R=Interval(1.0, 1e6, log=True), kappa=Interval(1.1, 100.0, log=True),
                    alpha=ALPHA, most=2.0, mutant={"most": 0.3},
                    extremal=[{"d": 1, "R": 1.0, "kappa": 1.1, "alpha": 0.1}])  # fmt: skip
    def size(d, R, kappa, alpha, most):
        """Use half of .1 alpha for the means and half for the covariances, as in `covers`."""
        reach = 2 * norm.ppf((1 + 0.05 * alpha) / 2)
        means = d * math.log(2 * math.ceil(R * math.sqrt(d) / (2 * reach)) + 1)
        steps = math.ceil((kappa - 1) * d / (2 * 0.1 * alpha))
        entries = d * math.log(steps + 1) + d * (d - 1) / 2 * math.log(steps + 3)
        cited = d * d * math.log(d * kappa / alpha) + d * math.log(d * R / alpha)
        return means + entries, most * cited

    @ledger.sweep("d = 1: two variances, exactly", alpha=[1e-4, 0.01], scale=40.0,
                  mutant={"scale": 4.0})  # fmt: skip
    def scales(alpha, scale):
        return 3 * alpha, variances_apart(1 + scale * alpha)


def signs(d, r, word):
    """Return (1 + r) I + (r/d) U."""
    u = np.triu(word, 1)
    return (1 + r) * np.eye(d) + r / d * (u + u.T)


def bound_on_tv(shift, variance, others):
    """Return the sum of two upper bounds for d_tv, for the means and for the covariances."""
    means = 2 * norm.cdf(abs(shift) / 2) - 1
    ratio = np.maximum(variance, others) / np.minimum(variance, others)
    return means + variances_apart(ratio)


def variances_apart(ratio):
    """Return the exact d_tv of N(0, 1) and N(0, ratio)."""
    ratio = np.maximum(ratio, 1 + 1e-12)
    cut = np.sqrt(ratio * np.log(ratio) / (ratio - 1))
    return 2 * (norm.cdf(cut) - norm.cdf(cut / np.sqrt(ratio)))


@statement("few.thm46.remark")
def unbounded(ledger):
    """It is simple to see that Gaussian with unbounded mean or unbounded covariance cannot be
    learned with pure (even user-level) DP using a finite number of examples.

    Take W sources such that one item distinguishes these sources with certainty. Linear programs
    over all algorithms show that the success probability is at most 1/(1 + (W - 1) e^(-epsilon n)).
    At n = 1, an algorithm attains this bound. For every m, the success probability is below 2/3 if
    W > 1 + e^(epsilon n)/2. Two Gaussians whose means have the distance a have d_tv = 2 Phi(a/2) -
    1. Two variances with a large ratio also have a large d_tv. For every alpha < 1/2, such
    distances exceed 2 alpha, so no answer is correct for two sources. The lower bound holds if the
    mean or the covariance is unbounded.
    """

    @ledger.sweep("the best algorithm for W far sources, by linear programs", W=[2, 3, 4],
                  n=[1, 2], epsilon=[0.5, 2.0], tolerance=1e-6, part=1.0, mutant={"part": 0.5},
                  end_to_end=True)  # fmt: skip
    def best(W, n, epsilon, part):
        found = best_success(np.eye(W), n, epsilon)
        return found, 1 / (1 + (W - 1) * math.exp(-part * epsilon * n))

    @ledger.falsify("so no n is enough", n=Integer(1, 100), epsilon=Interval(1e-3, 5.0, log=True),
                    more=1.0, mutant={"more": 0.5})  # fmt: skip
    def never(n, epsilon, more):
        W = 2 + more * math.exp(epsilon * n) / 2
        return 1 / (1 + (W - 1) * math.exp(-epsilon * n)), 2 / 3

    @ledger.falsify("means and variances can be arbitrarily far apart", alpha=Interval(
        0.001, 0.499), half=0.5, mutant={"half": 0.3}, kind=Choice(("mean", "variance")),
        extremal=[{"alpha": 0.499, "kind": "mean"}, {"alpha": 0.499, "kind": "variance"}],
    )  # fmt: skip
    def far(alpha, half, kind):
        """Use a sufficient distance or a sufficient ratio, which grow as alpha approaches 1/2."""
        if kind == "mean":
            return 2 * alpha, gaussians_apart(2 * norm.ppf(0.5 + half * 2 * alpha) + 1e-9)
        return 2 * alpha, variances_apart(16 / (1 - 4 * half * alpha) ** 3)
