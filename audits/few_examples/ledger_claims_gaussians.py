"""Few examples per user: claims about learning Gaussians, Appendix E.3.3 and Table 1."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm

from audits.few_examples.conventions import SHARE
from audits.few_examples.hard_instances import best_success
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-9
ALPHA = Interval(1e-6, 0.1, log=True)
EPSILON = Interval(1e-3, 1.0, log=True)


def log_means(bound, sigma, alpha):
    """Return ln(2 (W - 1)), where W means in [-bound, bound] are more than 2 alpha apart in d_tv.

    At level epsilon, pure DP needs at least this many users over epsilon, whatever m is.
    """
    apart = 2 * norm.ppf(0.5 + alpha) * (1 + 1e-9)  # in units of the standard deviation
    return math.log(2 * max(math.floor(2 * bound / (sigma * apart)), 1))


def hidden(d, bound, alpha):
    """Return d log(30 d R/alpha), the size of the cover of Theorem 45 up to a constant."""
    return d * math.log(30 * d * bound / alpha)


# --- a known covariance ---


@statement("few.thm45-known", expected="refuted")
def known_covariance(ledger):
    """We consider Gaussian distributions N(mu, Sigma) under the assumption that norm(mu) <= R and
    Sigma = I. Or equivalently that Sigma is known; since such an assumption is sufficient to rotate
    the example to isotropic positions.

    The two assumptions are not equivalent. The map x -> Sigma^(-1/2) x makes the covariance I, but
    it turns norm(mu) <= R into norm(Sigma^(1/2) mu') <= R. So norm(mu') can be R over the root of
    the least eigenvalue. Theorem 45 hides logarithms of R, but not of this eigenvalue. Take d = 1,
    R = 1, Sigma = sigma^2 and alpha = .1. Means that are .507 sigma apart have d_tv > 2 alpha, so
    no output is correct for two of W = floor(2/(.507 sigma)) + 1 means. By group privacy over n
    users, the success 2/3 gives e^(-epsilon n) (W - 1) 2/3 <= 1/3 for every m. So n is at least
    ln(2 (W - 1))/epsilon. At epsilon = 1, this number is 25 for sigma = 10^-10, 232 for sigma =
    10^-100, and 693 for sigma = 10^-300. The right side of Theorem 45 does not change with sigma.
    So no constant and no logarithm of the other parameters is enough. A rotation alone does not
    change the eigenvalues of Sigma, so "whiten" is meant.
    """

    @ledger.sweep(
        "d = 1, R = 1, m = 10^6: users that group privacy requires, and the right side of Theorem "
        "45", digits=5000, alpha=0.1, epsilon=1.0, m=10**6, end_to_end=True,
        lhs="users that are needed for sigma = 10^-5000",
        rhs="1000 (d/epsilon + d/(alpha epsilon sqrt(m)) + d/(alpha^2 m))",
    )  # fmt: skip
    def tiny_variance(digits, alpha, epsilon, m):
        apart = 2 * norm.ppf(0.5 + alpha) * (1 + 1e-9)  # in units of sigma: d_tv > 2 alpha
        log_means = math.log(2 / apart) + digits * math.log(10)  # W - 1 = 2/(sigma apart)
        order = 1 / epsilon + 1 / (alpha * epsilon * math.sqrt(m)) + 1 / (alpha**2 * m)
        return (math.log(2) + log_means) / epsilon, 1000 * order

    group = ledger.part("the lower bound: success at most 1/(1 + (W - 1) e^(-epsilon n))")

    @group.sweep("W sources that one item distinguishes: the best algorithm, by linear programs",
                 W=[3, 5], n=[1, 2], epsilon=[0.5, 1.0], tolerance=1e-6, part=1.0,
                 mutant={"part": 0.5})  # fmt: skip
    def best(W, n, epsilon, part):
        found = best_success(np.eye(W), n, epsilon)
        return found, 1 / (1 + (W - 1) * math.exp(-part * epsilon * n))

    repair = ledger.repair(
        "Or equivalently that Sigma is known and norm(Sigma^(-1/2) mu) <= R; since such an "
        "assumption is sufficient to whiten the examples."
    )

    @repair.sweep("in the plane: d_tv by numerical integration, against d_tv after whitening",
                  sigma=[((1.0, 0.0), (0.0, 0.04)), ((1.0, -0.5), (-0.5, 0.5))],
                  shift=[(0.3, 0.0), (0.2, 0.3)], white=True, mutant={"white": False},
                  method=Method.NUMERIC)  # fmt: skip
    def whitened(sigma, shift, white):
        """The mutant takes the distance of the means without whitening."""
        sigma, shift = np.array(sigma), np.array(shift)
        inverse, axis = np.linalg.inv(sigma), np.linspace(-7, 7, 301)
        z = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
        density = [np.exp(-np.einsum("...i,ij,...j", z - m, inverse, z - m) / 2)
                   for m in (shift / 2, -shift / 2)]  # fmt: skip
        found = np.abs(density[0] - density[1]).sum() / density[0].sum() / 2
        length = math.sqrt(shift @ inverse @ shift if white else shift @ shift)
        return abs(found - (2 * norm.cdf(length / 2) - 1)), 1e-3

    @repair.falsify("d = 1: users that this argument requires, against the cover of Theorem 45",
                    R=Interval(1.0, 1e12, log=True), sigma=Interval(1e-6, 1e6, log=True),
                    alpha=ALPHA, most=1.0, mutant={"most": 0.7}, extremal=[
                        {"R": 1e12, "sigma": s, "alpha": 0.1} for s in (1e-6, 1.0)])  # fmt: skip
    def enough(R, sigma, alpha, most):
        """R bounds abs(mu)/sigma."""
        return log_means(R * sigma, sigma, alpha), most * hidden(1, R, alpha)

    ledger.consequence(
        "For a known covariance, the number of users also depends on the logarithm of R over the "
        "least standard deviation.",
        harm="the wording",
    )


@statement("few.table1-gauss")
def table_of_gaussians(ledger):
    """Table 1, Learning Gaussian (Known Covariance), user-level DP: Thetatilde(d/epsilon +
    d/(epsilon alpha sqrt(m)) + d/(alpha^2 m)), and Learning Gaussian (Bounded Cov.):
    Thetatilde(d^2/epsilon + d^2/(epsilon alpha sqrt(m)) + d^2/(alpha^2 m)).

    The rows refer to Theorems 45 and 46, which assume norm(mu) <= R and hide logarithms of R. The
    table and its caption have neither. Without a bound on the mean, no number of users is enough,
    as the paper says after Theorem 46 (few.thm46.remark). For R = 10^10 and alpha = .1, pure DP
    needs at least 25/epsilon users, whatever m is. Logarithms of R are enough for this argument.
    The same holds for the item-level column. The words "known covariance" need the condition of
    few.thm45-known.
    """

    @ledger.falsify("d = 1: users that group privacy requires, against log(30 R/alpha)/epsilon",
                    R=Interval(1.0, 1e100, log=True), alpha=ALPHA, epsilon=EPSILON, most=1.0,
                    mutant={"most": 0.7}, extremal=[
                        {"R": 1e100, "alpha": 0.1, "epsilon": 1.0}])  # fmt: skip
    def bounded(R, alpha, epsilon, most):
        return log_means(R, 1.0, alpha) / epsilon, most * hidden(1, R, alpha) / epsilon

    @ledger.edge("R >= 1").sweep(
        "R = 10^300 without logarithms of R: users that are needed, and ten times the cell, with "
        "(1 + log(1/alpha))^3", R=1e300, alpha=0.1, epsilon=1.0, m=10**6,
        lhs="users that are needed", rhs="10 (d/epsilon + ...) (1 + log(1/alpha))^3",
    )  # fmt: skip
    def without_bound(R, alpha, epsilon, m):
        apart = 2 * norm.ppf(0.5 + alpha) * (1 + 1e-9)
        cell = 1 / epsilon + 1 / (alpha * epsilon * math.sqrt(m)) + 1 / (alpha**2 * m)
        needed = math.log(2 * math.floor(2 * R / apart)) / epsilon
        return needed, 10 * cell * (1 + math.log(1 / alpha)) ** 3


# --- remarks and footnotes ---


@statement("few.fn15")
def from_means(ledger):
    """Actually, Narayanan et al. studied the mean estimation problem, but it is not hard to see
    that an algorithm for mean estimation also provides an algorithm for learning Gaussian
    distributions.

    The remark holds. For two Gaussians with covariance I, d_tv is at most norm(mu - mu')/sqrt(2
    pi). So an estimate of the mean with l_2-error 2.5 alpha gives a Gaussian within total variation
    alpha. The constant is attained for small distances. A mean of bounded vectors is another
    problem, because Gaussian vectors are unbounded. So the examples have to be truncated first. The
    cited algorithm was not run.
    """

    @ledger.falsify("d_tv of N(0, 1) and N(t, 1) by numerical integration, against t/sqrt(2 pi)",
                    t=Interval(1e-3, 8.0, log=True), root=2 * math.pi, mutant={"root": 6.4},
                    extremal=[{"t": 1e-3}])  # fmt: skip
    def integrated(t, root):
        """In d dimensions, the distance depends only on the line through both means."""
        x = np.linspace(-8.0, t + 8.0, 20_001)
        gap = np.abs(np.exp(-(x**2) / 2) - np.exp(-((x - t) ** 2) / 2))
        found = gap.sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi) / 2
        return found, t / math.sqrt(root) * (1 + 1e-6)

    @ledger.falsify("an estimate with l_2-error 2.5 alpha is within alpha", alpha=ALPHA, error=2.5,
                    shift=Array(SHARE, (3,)), mutant={"error": 2.6}, extremal=[
                        {"shift": np.array([1.0, 0, 0]), "alpha": 1e-3}])  # fmt: skip
    def learned(shift, alpha, error):
        if not shift.any():
            return None
        moved = shift / np.linalg.norm(shift) * error * alpha
        return 2 * norm.cdf(np.linalg.norm(moved) / 2) - 1, alpha


@statement("few.thm45-surprise")
def nearly_matches(ledger):
    """Again, it is perhaps surprising that our pure-DP bound (of Theorem 45) nearly matches this
    result, except that we have the extra first term (i.e., d/epsilon).

    The comparison of the two formulas holds. For m <= 1/alpha^2, the extra term is at most the
    second term, so the sums differ by a factor of at most 2. For larger m, the extra term decides.
    At m = 10^4/alpha^2 and epsilon = alpha = .1, the pure-DP bound is 101 times the other. The
    cited formula itself has no term 1/epsilon (few.thm45.remark).
    """

    @ledger.falsify("m <= 1/alpha^2: the sums differ by a factor of at most 2", reach=1.0,
                    d=Integer(1, 10**6), alpha=ALPHA, epsilon=EPSILON, share=SHARE,
                    mutant={"reach": 10.0}, extremal=[
                        {"d": 1, "alpha": 1e-3, "epsilon": 1e-3, "share": 1.0}])  # fmt: skip
    def sums(d, alpha, epsilon, share, reach):
        m = (reach / alpha) ** (2 * share)
        other = d / (alpha * epsilon * math.sqrt(m)) + d / (alpha**2 * m)
        return d / epsilon + other, 2 * other * (1 + ROUNDING)

    @ledger.sharper("the extra term decides for larger m").sweep(
        "m = 10^4/alpha^2, epsilon = alpha = .1: 100 times the other bound", d=[1, 100], many=1e4,
        mutant={"many": 1e2},
    )  # fmt: skip
    def extra(d, many):
        alpha = epsilon = 0.1
        m = many / alpha**2
        other = d / (alpha * epsilon * math.sqrt(m)) + d / (alpha**2 * m)
        return 90 * other, d / epsilon + other


@statement("few.fn16")
def free_entries(ledger):
    """Their notation "m" denotes the number of non-zero (non-diagonal) entries of the covariance
    matrix which can be set to Omega(d^2) for our purpose.

    There are d (d - 1)/2 entries above the diagonal, which is at least d^2/4 for d >= 2. For d = 1
    there is no such entry. In this case, the packing has to use the variances, as in few.thm46.
    """

    @ledger.sweep("entries above the diagonal, counted, against d^2/4", d=[2, 3, 4, 10, 100],
                  part=0.25, mutant={"part": 0.3})  # fmt: skip
    def counted(d, part):
        return part * d**2, len({(i, j) for i in range(d) for j in range(d) if i < j})


def variances_apart(ratio):
    """Return d_tv of N(0, 1) and N(0, ratio), by numerical integration."""
    x = np.linspace(-40.0, 40.0, 40_001)
    p, q = np.exp(-(x**2) / 2), np.exp(-(x**2) / (2 * ratio)) / math.sqrt(ratio)
    return np.abs(p - q).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi) / 2


@statement("few.sec3-small")
def absolute_constants(ledger):
    """Throughout the paper we say that a parameter is "sufficiently small" if it is at most an
    implicit absolute constant.

    In Theorem 46, the constant for alpha depends on kappa. The packing that the proof cites needs
    kappa >= 1 + O(alpha). At kappa = 1.001, alpha = .05 and d = 1, all covariances have d_tv at
    most 2.5 10^-4, so no two covariances are 3 alpha apart. For alpha <= (kappa - 1)/40, two
    variances are 3 alpha apart. The theorem is not affected, because Thetatilde_kappa may hide a
    function of kappa (convention). The other theorems need no such constant.
    """

    @ledger.falsify("d = 1, alpha = (kappa - 1)/40: two variances are 3 alpha apart", parts=40.0,
                    kappa=Interval(1.001, 1.5), mutant={"parts": 10.0}, examples=100, extremal=[
                        {"kappa": 1.5}, {"kappa": 1.001}])  # fmt: skip
    def packed(kappa, parts):
        return 3 * (kappa - 1) / parts, variances_apart(kappa)

    @ledger.edge("R >= 1").sweep(
        "kappa = 1.001 and alpha = .05: 3 alpha, and the largest d_tv of two variances",
        kappa=1.001, alpha=0.05, lhs="3 alpha", rhs="largest d_tv",
    )  # fmt: skip
    def narrow(kappa, alpha):
        x = np.linspace(-40.0, 40.0, 40_001)
        p, q = np.exp(-(x**2) / 2), np.exp(-(x**2) / (2 * kappa)) / math.sqrt(kappa)
        return 3 * alpha, np.abs(p - q).sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi) / 2
