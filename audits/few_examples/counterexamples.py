"""Counterexamples of `erratum.md`: python counterexamples.py prints both sides of each.

The program needs only numpy. Each function returns a description, the side that the paper says is
smaller, and the side that it says is larger.
"""

import itertools
import math

import numpy as np


def logistic(t):
    """Return 1/(1 + e^-t)."""
    return 1 / (1 + np.exp(-t))


def within(reach, bits):
    """Bound the probability that a sum of fair bits is less than `reach` away from its mean.

    The largest of the 2 reach - 1 probabilities is the middle one, for an even number of bits.
    """
    return (2 * reach - 1) * math.sqrt(2 / (math.pi * bits))


def budget(epsilon, delta):
    """Return epsilon-bar, delta-bar and kappa of Algorithm 1."""
    part = epsilon / 3
    share = delta / (math.exp(2 * part) + math.exp(epsilon) + 2)
    return part, share, 1 + math.ceil(math.log(1 / share) / part)


def theorem_17_in_order():
    """Bound Pr[not LDDP] for A(y) = 1 with probability logistic(e (y_1 - y_2 + ...)), m = r = 1.

    On x_-1 the alternating sum is w + x_n, and on x_-n it is x_1 - w, for w = x_2 - x_3 + ...
    """
    constant, beta, delta = 1000.0, 0.01, 1e-9
    n = 2 * round(1000 * constant**2)
    root = constant * math.sqrt(math.log(n / (beta * delta)))
    epsilon, small = 0.001, 0.001 / root  # epsilon = C epsilon' sqrt(log(n/(beta delta')))
    w = np.arange(1, math.ceil(40 * root))
    loss = logistic(small * w) - math.exp(epsilon) * logistic(small * (1 - w))
    first = int(w[(loss > constant * delta).argmax()])  # not LDDP if abs(w) >= first
    return "Pr[not LDDP] for C = 1000, n = 2 10^9, against beta", 1 - within(first, n - 2), beta


def lemma_19_in_order():
    """Bound Pr[DelStab answers] for the same A, at epsilon = 1, delta = 10^-6 and c = 1."""
    epsilon, delta = 1.0, 1e-6
    part, share, kappa = budget(epsilon, delta)
    n = 2 * round(42_000 * kappa**2)
    small = epsilon / (kappa * math.sqrt(math.log(n / delta)))
    far = math.log((share + math.exp(part)) / (1 - share)) / small
    first = math.floor(far) + 1 + 2 * kappa  # no stable set of less than 2 kappa users beyond it
    words = "promised Pr[correct answer], against Pr[answer]"
    return words, 1 - 0.1 / n, within(first, n) + share


def theorem_7_in_order():
    """Compare (0, 1, 0) and (1, 1, 0): two of three items in order, A = 1 with p e^(e (x_2 - x_1)).

    The factor p cancels.
    """
    epsilon = 0.5
    one, other = (
        sum(math.exp(epsilon * (b - a)) for a, b in itertools.combinations(x, 2))
        for x in ((0, 1, 0), (1, 1, 0))
    )
    words = "privacy loss of the subsample in order, against epsilon'"
    return words, math.log(one / other), math.log(1 + 2 / 3 * math.expm1(epsilon))


def sign_of_14():
    """Run ClippedPairwiseEM with (14) on a hypothesis without errors and one with only errors."""
    n, epsilon, tau = 40, 1.0, 1
    correct = np.array([1.0, 0.0])  # 1[c(x) = y] on every example
    psi = correct[:, None] - correct[None]  # as printed
    scores = n * np.clip([psi[0, 1], psi[1, 0]], -tau, tau)
    weights = np.exp(-epsilon * (scores - scores.min()) / (2 * 2 * tau))
    return "Pr[the worse hypothesis], against 1/3", weights[1] / weights.sum(), 1 / 3


def dimension_of_thresholds(b):
    """Bound PRDim of 2^b thresholds from below: each h is good for at most 2^(H(1/4) b) of them."""
    entropy = -(math.log2(1 / 4) / 4 + math.log2(3 / 4) * 3 / 4)
    return math.log(3 / 4) + (1 - entropy) * math.log(2) * b


def thresholds_in_remark():
    """Compare Theorem 4 with the remark on Theorem 40, for 2^b thresholds and m = 1."""
    b, alpha, epsilon = 1e60, 1e-30, 0.1
    # 2/3 e^(-6 epsilon alpha n) <= (probability to fit a random threshold without data)
    needed = (dimension_of_thresholds(b) + math.log(4 / 3 * 2 / 3)) / (6 * epsilon * alpha)
    promised = b / epsilon + 1 / (alpha * epsilon) + 1 / alpha**2
    logarithms = math.log(promised * b / alpha) ** 10
    return "users that are needed, against log^10 times the promise", needed, promised * logarithms


def thresholds_in_table_1():
    """Compare the item-level agnostic cell with the exponential mechanism, for 2^b thresholds."""
    b, alpha, epsilon = 1e60, 1e-30, 0.1
    cell = dimension_of_thresholds(b) * (1 / alpha**2 + 1 / (epsilon * alpha))
    uniform = 128 * math.log(40) / alpha**2  # empirical errors within alpha/4, by Massart's bound
    enough = uniform + 4 * (b * math.log(2) + math.log(10)) / (epsilon * alpha)
    words = "the cell over its log^10, against a number that is enough"
    return words, cell / math.log(cell) ** 10, enough


def exponent_of_10():
    """Compute Pr[deviation > 0.05 alpha n] for n signs of mean alpha/2, alpha = 1/2, m = 1."""
    n, alpha = 1600, 0.5
    ones = np.arange(n + 1)
    p = (1 + alpha / 2) / 2
    logs = np.r_[0, np.cumsum(np.log(np.arange(1, n + 1)))]  # ln k!
    law = np.exp(logs[n] - logs - logs[::-1] + ones * math.log(p) + ones[::-1] * math.log(1 - p))
    tail = law[np.abs(2 * ones - n - alpha / 2 * n) > 0.05 * alpha * n + 1e-9].sum()
    return "Pr[deviation], against the bound", float(tail), 2 * math.exp(-0.025 * alpha**2 * n)


def lemma_30_first_sentence():
    """Compute Pr[A(x), A(x') not close] for A(x) = 1[x = (0, 1)] on two fair bits."""
    p = np.linspace(0, 1, 1001)
    beta = float((p * (1 - p)).max())  # with SIM = 0, for every epsilon and delta
    output = [float(x == (0, 1)) for x in itertools.product((0, 1), repeat=2)]
    differ = np.mean([a != b for a in output for b in output])
    return "Pr[not close], against beta", float(differ), beta


def chi_square_on_support():
    """Compare d_KL with the printed sum for A = (1, 0) and B = (1/2, 1/2)."""
    A, B = (1.0, 0.0), (0.5, 0.5)
    support = [i for i in range(2) if A[i] > 0]
    kl = sum(A[i] * math.log(A[i] / B[i]) for i in support)
    return "d_KL, against the printed d_chi2", kl, sum((A[i] - B[i]) ** 2 / B[i] for i in support)


def masses_of_theorem_43():
    """Add the printed masses of one D_i, for k = 10 and 8 alpha/kappa = 0.4."""
    k, b = 10, 0.4
    word = [0, 1, 1, 0, 1]
    masses = [(1 + sign * b * (u == 0)) / (2 * k) for u in word for sign in (1, -1)]
    return "1, against the sum of the masses", 1.0, sum(masses)


def known_covariance():
    """Count the users for d = R = 1, sigma = 10^-100, alpha = 0.1, epsilon = 1, m = 10^6."""
    digits, alpha, epsilon, m = 100, 0.1, 1.0, 10**6
    low, high = 0.0, 10.0  # means that are more than 2 Phi^-1(1/2 + alpha) sigma apart
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erf(middle / math.sqrt(8)) < 2 * alpha else (low, middle)
    needed = (math.log(2 * 2 / high) + digits * math.log(10)) / epsilon
    right = 1 / epsilon + 1 / (alpha * epsilon * math.sqrt(m)) + 1 / (alpha**2 * m)
    return "users that are needed, against 100 times Theorem 45", needed, 100 * right


def users_for_two_points():
    """Count the users that (epsilon, delta)-DP needs to tell two constant sources apart, k = 2."""
    epsilon, delta, alpha, m, k = 1e-3, 1e-9, 0.1, 1e20, 2
    p, n = 1 / 3, 0  # the largest probability of the answer 1 if n users have the second symbol
    while p < 2 / 3:
        p = min(math.exp(epsilon) * p + delta, 1 - math.exp(-epsilon) * (1 - p - delta))
        n += 1
    display = k / (epsilon * alpha * math.sqrt(m)) + k / (alpha**2 * m)
    return "users that are needed, against 10^6 times the display", n, 1e6 * display


def savings_at_small_m():
    """Compare the second term of Theorem 11, without constants and log m, with n_1, at m = 10."""
    n_1, m, epsilon, delta = 1e6, 10, 1.0, 1e-6
    bound = math.log(1 / delta) ** 1.5 * n_1 / (epsilon * math.sqrt(m))
    return "the bound, against one example from each user", bound, n_1


def success_of_theorem_4():
    """Multiply the success probabilities of the representation, Lemma 22 and Theorem 9."""
    return "2/3, against the product", 2 / 3, 3 / 4 * 0.9 * 2 / 3


def step_of_lemma_22():
    """Compute Pr[scr_h <= 0.2 alpha n m] at p_h = 0.2 alpha m, alpha m = 1/2 and n = 10^4."""
    n, p = 10**4, 0.1
    logs = np.r_[0, np.cumsum(np.log(np.arange(1, n + 1)))]
    k = np.arange(n // 10 + 1)
    law = np.exp(logs[n] - logs[k] - logs[n - k] + k * math.log(p) + (n - k) * math.log(1 - p))
    return "the probability, against exp(-0.01 alpha n m)", law.sum(), math.exp(-0.01 * n / 2)


def distance_in_theorem_41():
    """Compute d_tv(P, D) for score 0.5 alpha and d_tv(P*, D) = 0.1 alpha, at alpha = 0.1."""
    alpha, tiny = 0.1, 1e-9
    best = np.array([0.25, 0.25, 0.25, 0.25])
    P = best + np.array([0.6 * alpha, tiny, 0, -0.6 * alpha - tiny])
    D = best + np.array([0, 0.1 * alpha, -0.1 * alpha, 0])
    W = best < P
    allowed = max((P[W] - D[W]).sum() / 0.5, np.abs(best - D).sum() / 2 / 0.1)  # least alpha
    return "d_tv(P, D), against 0.6 alpha", np.abs(P - D).sum() / 2, 0.6 * allowed + 1e-6


def flipping_the_first_item():
    """Flip x_1 in f = prod (1 + t x_1 x_i), whose prefix means have ratios within e^epsilon."""
    n, epsilon = 10, 0.05
    x = np.array(list(itertools.product((-1, 1), repeat=n)))
    f = np.prod(1 - math.expm1(-epsilon) * x[:, :1] * x[:, 1:], axis=1)
    means = f
    for _ in range(n):  # Lemma 33 changes nothing, so g = f
        pairs = means.reshape(-1, 2)
        means = pairs.mean(axis=1)
        assert np.abs(np.log(pairs / means[:, None])).max() <= epsilon + 1e-12
    change = np.abs(np.log(f[: len(f) // 2] / f[len(f) // 2 :])).max()
    return "change of ln g, against n epsilon", float(change), n * epsilon


def answer_at_a_bad_input():
    """Compute Pr[answer] of DelStab: majority of 236 bits at epsilon = 1, of which 6 are 1."""
    n, ones, epsilon, delta = 236, 6, 1.0, 1e-6
    part, share, kappa = budget(epsilon, delta)
    noise = np.exp(-part * np.abs(np.arange(2 * kappa + 1) - kappa))
    for s in range(ones + 1):  # after s deletions, n - 4 kappa bits hold 0 to ones - s ones
        p, q = logistic(np.array([ones - s, 0]) - (n - 4 * kappa) / 2)
        if max(p - math.exp(part) * q, 1 - q - math.exp(part) * (1 - p)) <= share:
            break
    return "Pr[answer] at a bad input, against 1/2", noise[s:].sum() / noise.sum() * (s > 0), 0.5


def delta_of_one_user():
    """Compute the divergence if each item is released with probability delta, for m = 10."""
    m, delta = 10, 1e-3
    released = 1 - (1 - delta) ** m  # an item of the first user, which the second does not have
    return "divergence of two users at every epsilon, against delta", released, delta


COUNTEREXAMPLES = [
    theorem_17_in_order, lemma_19_in_order, theorem_7_in_order, sign_of_14, thresholds_in_remark,
    thresholds_in_table_1, exponent_of_10, lemma_30_first_sentence, chi_square_on_support,
    masses_of_theorem_43, known_covariance, users_for_two_points, savings_at_small_m,
    step_of_lemma_22, success_of_theorem_4, distance_in_theorem_41, flipping_the_first_item,
    answer_at_a_bad_input, delta_of_one_user,
]  # fmt: skip


if __name__ == "__main__":
    for program in COUNTEREXAMPLES:
        words, smaller, larger = program()
        print(f"{program.__name__}: {words}")
        print(f"  {smaller:.3g} should be at most {larger:.3g}\n")
