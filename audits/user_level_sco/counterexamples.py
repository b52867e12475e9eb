"""Counterexamples of `erratum.md`: python counterexamples.py prints both sides of each.

The program needs only numpy. Each function returns a description, the side that the paper says is
smaller, and the side that it says is larger. Logarithms are natural, and G = D = 1.
"""

import math

import numpy as np


def normal_tail(x):
    """Return P[N(0, 1) > x] for each x."""
    return 0.5 * np.vectorize(math.erfc)(np.asarray(x) / math.sqrt(2))


def two_laplace_tail(x):
    """Return P[Lap(8) + Lap(4) > x], x > 0, the noise of AboveThreshold at epsilon = 1/2."""
    return (4 * math.exp(-x / 8) - math.exp(-x / 4)) / 6


def binomial(count, chance):
    """Return the probabilities of 0, ..., count successes."""
    k = np.arange(count + 1)
    ways = np.array([math.comb(count, int(i)) for i in k], dtype=float)
    return ways * chance**k * (1 - chance) ** (count - k)


def theorem_8_noise(constant=10.0):
    """Bound the delta of Algorithm 1 from below by half-lines, for one gradient of .2875 / tau.

    Its user has a score of F and is kept with probability 1/2. The noise of later phases is added.
    """
    epsilon, delta, log_n = 0.99, 1e-6, 18.0
    log_m = 2 * math.log(11.5 * log_n)  # .2875 / tau is at most G
    mu = 11.5 * epsilon / constant * math.sqrt((log_n + log_m) / math.log(1 / delta))
    mu *= math.sqrt(1 - log_m**-2)
    at = np.linspace(0, mu + 6 * epsilon / mu, 6001)
    p, q = (normal_tail(at - x) + normal_tail(at) for x in (mu / 2, -mu / 2))
    found = np.max(p - math.exp(epsilon) * q) / 2
    return f"delta of Algorithm 1 for C = {constant:g} in sigma_s, at least", float(found), delta


def theorem_c_2_noise():
    """Bound the delta of Algorithm 5 from below for beta = 0 and the constants 1.

    All gradients are 0, except for one user of batch 1 at G or -G. So the clipped mean moves by
    2/tau, and the first score is about B - 2. The later noise is included.
    """
    log_n, log_m, delta = 7 * math.log(10), 11 * math.log(10), 1e-6
    size, own = log_n + log_m, math.log(1 / delta)
    batch = 100 * (size + own)
    mu = 2 * math.sqrt(size / (1 + own)) * math.sqrt(1 - log_m**-2)
    steps = math.exp(log_n) / (2 * batch)
    gap = 0.1 * batch - 2 - 2 * math.log(steps / delta)
    passed = 1 - two_laplace_tail(gap) - steps * math.exp(-batch / 100)
    p, q = (float(normal_tail(1 / mu - x)) for x in (mu / 2, -mu / 2))
    return "delta of Algorithm 5 for beta = 0, at least", passed * p - math.e * q, delta


def theorem_c_2_test():
    """Compute the scores of the test of Algorithm 5 at the largest beta, for one user at G or -G.

    All other gradients of batch 1 are 0. Half of batch 2 has curvature beta at x_1, and all other
    gradients are -G. If all tests pass, the iterates go to the end of X.
    """
    n, m, delta = 1e7, 1e11, 1e-6
    size, own, log = math.log(n * m), math.log(1 / delta), math.log(n * m / delta)
    batch, steps = 100 * log, n / (200 * log)
    eta = min(batch * math.sqrt(m / n), math.sqrt(m / (own * size))) / math.log(m)
    beta, tau = math.sqrt(n / m) / log + math.sqrt(own * size / m), math.sqrt(m) / size
    apart = 2 * eta * min(1 / batch, 1 / tau)  # distance of the two iterates
    level = 0.9 * batch + 2 * math.log(steps / delta)
    low = batch / 2 * (1 + math.exp(-tau * min(beta * apart, 2)))
    sigma = eta * math.sqrt((1 + own) * size / m)
    far = float(normal_tail((1 - 2 * (2 + (1 + apart) / eta) / steps) / 2 / sigma))
    on_one = 1 - steps * two_laplace_tail(batch - 2 - level) - far
    on_other = two_laplace_tail(level - low) + far
    return "delta of Algorithm 5 at epsilon = 1, at least", on_one - math.e * on_other, delta


def theorem_c_2_tau():
    """Compute the delta of Algorithm 5 with the printed tau, for which no test fails.

    All gradients are 0, but one user is at G or -G, and beta = 0.
    """
    n, m, delta = 1e7, 1e11, 1e-6
    size, own = math.log(n * m), math.log(1 / delta)
    mu = 2 * math.sqrt(m) / (100 * (size + own) * math.sqrt((1 + own) * size))
    p, q = (float(normal_tail(1 / mu - x)) for x in (mu / 2, -mu / 2))
    return "delta of Algorithm 5 with the printed tau", p - math.e * q, delta


def lemma_33_second_step():
    """Take the second step from two close points, where all users have curvature beta."""
    n, m, delta = 1e9, 8, 1e-6
    size, own, log = math.log(n * m), math.log(1 / delta), math.log(n * m / delta)
    beta = math.sqrt(n / m) / log + math.sqrt(own * size / m)
    eta = min(100 * log * math.sqrt(m / n), math.sqrt(m / (own * size))) / math.log(m)
    x, y = 1e-9, 0.0
    moved = abs((x - eta * beta * x) - (y - eta * beta * y))
    return "norm(x_2 - y_2) over norm(x_1 - y_1)", moved / abs(x - y), 1.0


def lemma_36_first_score():
    """Move one of 1,000 users far away from the others, which all agree."""
    scores = [
        np.exp(-abs(q[:, None] - q)).sum() / 1000
        for q in (np.zeros(1000), np.r_[1e3, np.zeros(999)])
    ]
    return "change of s_1 against the sensitivity of the proof", float(scores[0] - scores[1]), 1.0


def theorem_8_few_items():
    """Bound the error by the noise of the last phase, for F = G norm(x), m = 2 and d = n."""
    log_n, m, epsilon = math.log(1e22), 2, 0.5
    log = 2 * log_n + math.log(m) + math.log(1e6)
    phases = math.ceil(log_n - math.log(300 * log**2 / epsilon**1.5))
    noise = max(1.0, math.log(m)) ** -phases  # G sqrt(d) sigma_S
    width = 1e6 * log**2 * math.exp(-log_n / 2)  # in which F is smoothed
    rate = (1 + 1 / epsilon) * math.exp(-log_n / 2) / math.sqrt(m)
    found = math.sqrt(2 / math.pi) * noise - width
    return "error of Algorithm 1 at m = 2, against the rate times log^3", found, rate * log**3


def last_noise_few_phases():
    """Compute G E norm(zeta_S) at the least n of Section 3, for m = sqrt(n) and d = 1."""
    log_n, own = 69.0, math.log(1e6)
    log = 1.5 * log_n + own
    log_epsilon = (math.log(300) + 3 * math.log(log) - log_n) / 1.5
    noise = math.log(own * 1.5 * log_n) / 2 - log_n / 2 - log_epsilon
    found = min(0.0, noise) - math.ceil(math.log(log)) * math.log(log_n / 2)
    rate = np.logaddexp(0, -log_n / 2 - log_epsilon) - 0.75 * log_n
    words = "G E norm(zeta_S) against the rate times log^2"
    return words, math.sqrt(2 / math.pi) * math.exp(found), math.exp(rate) * log**2


def lemma_13_one_step():
    """Take one step of size 2 from the minimum of x^2/2, with a unit variance."""
    noise = np.array([-1.0, 1.0])
    after = 0 - 2 * noise
    return "E f(x_1) for eta = 2/beta, against the bound", float(np.mean(after**2 / 2)), 1.0


def lemma_37_full_steps():
    """Run gradient descent on f' = clip(beta x, -G/2, G) for beta eta = 10, without noise."""
    steps, ratio = 10**4, 10.0
    u, total = 0.005, 0.0  # x in units of eta G
    for _ in range(steps):
        u -= min(max(ratio * u, -0.5), 1.0)
        total += u
    x = total / steps
    excess = ratio * x**2 / 2 if x > -0.5 / ratio else -x / 2 - 1 / (8 * ratio)
    bound = (ratio + 1) * 0.005**2 / steps + 1e-12  # Bm = 10^12
    return "error over eta G^2 at beta eta = 10, against 1000 bounds", excess, 1000 * bound


def lemma_37_test_noise():
    """Let all gradients be -G, x_0 = -D and epsilon = 1, for 10^6 tests and delta = .01."""
    steps, delta, m = 10**6, 0.01, 1e6
    batch = 100 * math.log(steps / delta)
    gap = 0.1 * batch - 2 * math.log(steps / delta)  # all scores are B
    z = np.linspace(-400, 400, 800_001)  # noise of the threshold, of scale 4
    below = 0.5 * np.exp(-np.maximum(gap + z, 0) / 8)
    below[gap + z < 0] = 1 - 0.5 * np.exp((gap + z[gap + z < 0]) / 8)
    fails = 1 - np.exp(steps * np.log1p(-np.minimum(below, 1 - 1e-12)))
    chance = float((fails * np.exp(-abs(z) / 4) / 8).sum() * (z[1] - z[0]))
    bound = 4 / math.sqrt(steps * batch * m) + 1e-9  # at the best eta
    return "error of Algorithm 6 against 1000 bounds", 2 * chance, 1000 * bound


def lemma_38_small_steps():
    """Let Algorithm 5 move from x_0 = 0 by full steps of eta = D/(G n) on f = -G x."""
    n, m = 1e6, 100.0
    batch = 100 * math.log(n * m / 1e-6)
    rate = 1 / math.sqrt(n * m) + 1 / (n * math.sqrt(m))
    return "error at eta = D/(G n), against 1000 rates", 1 - n / batch / n, 1000 * rate


def lemma_39_minimum():
    """Evaluate the bound for n = 2, epsilon = .1 and d = 10^6; the sum is at most d."""
    d = 1e6
    return "d^(3/2)/(n epsilon) against 1000 times the largest sum", d**1.5 / 0.2, 1000 * d


def lemma_39_chain():
    """Bound the error of noisy signs for P_1, with d = 10^6, n = d^2, m = 1 and epsilon = .1."""
    d, epsilon = 1e6, 0.1
    n = d**2
    variance = 8 * d * math.log(1.25 * d * n) / (n * epsilon) ** 2 + 1 / n
    slope = 1 - 2 * float(normal_tail(1.0))  # 2 Phi(x) - 1 is at least slope x on [0, 1]
    words = "d^(3/2)/(epsilon n) against 1000 times the error of noisy signs"
    return words, d**1.5 / (epsilon * n), 1000 * d * variance / slope**2


def sign_of_one_user():
    """Return E[(1 - p^2) g'(p)] and E[p g(p)] for f = sign(X_1), p uniform on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    slope = 2 * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi)
    value = 1 - 2 * normal_tail(nodes)
    return float(weights @ ((1 - nodes**2) * slope)) / 2, float(weights @ (nodes * value)) / 2


def lemma_43_factor():
    """Compare both sides for f = sign(X_1)."""
    left, right = sign_of_one_user()
    return "E[(1 - p^2) g'(p)] against E[p g(p)]", left, right


def lemma_45_outputs():
    """Let M be a tenth of the sign of one user's value, for n = d = 1."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    error = float(weights @ (abs(nodes) * normal_tail(abs(nodes)))) / 2
    return "d/2 - 2 alpha against E[M mu]", 0.5 - 2 * error, 0.1 * sign_of_one_user()[1]


def lemma_3_reverse():
    """Let mu be at 0, mu' and nu have the masses zeta and e zeta at 100, for b = epsilon = 1."""
    delta, zeta, gap = 1e-6, 0.25, 100.0
    sigma = math.sqrt(2 * math.log(1.25 / delta))
    near, far = (float(normal_tail(x / sigma)) for x in (gap / 2, -gap / 2))
    nu = near + math.e * zeta * (far - near)
    words = "(nu * rho)(S) - e^2 (mu * rho)(S) against the delta of Lemma 3"
    return words, nu - math.e**2 * near, (1 + math.e) * delta + zeta


def lemma_18_large_cutoff():
    """Ask equal queries at the threshold until the c-th top, for the constants 10 and 1/10."""
    constant, epsilon, delta = 10.0, 1.0, 0.5
    c = math.ceil(12 * constant**2 * math.log(1 / delta) / epsilon**2)
    loss = constant * math.sqrt(c * math.log(1 / delta)) * epsilon
    k = np.arange(1, 6 * c)  # number of bottoms
    ways = np.r_[0.0, np.cumsum(np.log((c + k - 1) / k))]
    k = np.r_[0, k]
    top = (1 / 2, 1 - math.exp(-epsilon) / 2)
    p, q = (ways + c * math.log(x) + k * math.log1p(-x) for x in top)
    found = -np.exp(p) @ np.expm1(np.minimum(loss + q - p, 0))
    return "exact delta against 2^(-c/10) + delta", float(found), 2 ** (-c / constant) + delta


def remark_29_trimmed_mean():
    """Trim 10% of six points at 1 and five points at 10, at either end."""
    points = np.r_[np.ones(6), np.full(5, 10.0)]
    return "10% trimmed mean against the place of the majority", float(points[1:-1].mean()), 1.0


def section_4_epsilon():
    """Compare the rates of Theorems C.2 and 23 at n = 10^10, m = 10^4, d = 10^6, epsilon = .01."""
    n, m, d, epsilon = 1e10, 1e4, 1e6, 0.01
    first, second = d / math.sqrt(n * m), d**1.5 / (n * math.sqrt(m))
    upper, lower = (min(d, first + second / epsilon**power) for power in (2, 1))
    return "the rate of Theorem C.2 against 10 times that of Theorem 23", upper, 10 * lower


def lemma_10_halt():
    """Compute how often batch 1 does not halt, for c filtered users and 8 users near F.

    On D, user 1 passes. On D', user 1 is far away and lowers the 8 scores by 3/4.
    """
    log_n, log_m, delta, epsilon, users = 17.3, 15.3, 1e-6, 0.99, 8
    c, width = 10 * (log_n + log_m - math.log(delta)) / epsilon, np.linspace(0, 400, 8001)
    filtered = math.ceil(c) + np.arange(users + 1)  # on D
    stay = float(binomial(users, 0.5) @ np.exp((c - filtered) * epsilon / 4)) / 2
    total = 0.0
    for j, last in enumerate(filtered):
        scale = 8 * np.sqrt(32 * (last + 1 + width) * math.log(1 / delta)) / epsilon
        chance = 1 - np.exp(-0.74 / scale) / 2
        pmf = math.comb(users, j) * chance**j * (1 - chance) ** (users - j)
        density = epsilon / 8 * np.exp((c - last - 1 - width) * epsilon / 4)
        values = pmf * density
        total += float(((values[1:] + values[:-1]) / 2 * np.diff(width)).sum())
    return "excess of P[no halt] over e^(epsilon/4)", stay - math.exp(epsilon / 4) * total, delta


def lemma_12_composition():
    """Chain three distributions on two outcomes, each two of them (1/4, .01)-close."""
    delta, e = 0.01, math.exp(0.25)
    r, q = np.array([0.0, 1.0]), np.array([delta, 1 - delta])
    p = np.array([(1 + e) * delta, 1 - (1 + e) * delta])
    worst = max(np.maximum(a - e * b, 0).sum() for a, b in ((p, q), (q, p), (q, r), (r, q)))
    found = np.maximum(p - e**2 * r, 0).sum()
    return "delta at epsilon = 1/2 against twice the delta", float(found), 2 * float(worst)


def event_e_2():
    """Compute how often a noise of a batch exceeds 20 log^2(mn/delta)/epsilon^1.5."""
    own, epsilon = math.log(1e6), 0.99
    log = 16 + own
    z = np.linspace(-60, 60, 20001)  # noise of the cutoff, in units of 4/epsilon
    weights = np.exp(-abs(z)) / np.exp(-abs(z)).sum()
    cutoff = np.maximum(10 * log + 4 * z, 1e-300) / epsilon
    scale = 8 * np.sqrt(32 * cutoff * own) / epsilon
    one = float(weights @ np.exp(-20 * log**2 / epsilon**1.5 / scale))
    found = -math.expm1(300 * log**2 / epsilon**1.5 * math.log1p(-one))
    return "probability that E_2 fails, against delta/24", found, 1e-6 / 24


def lemma_34_noise():
    """Compare the alpha of Lemma 17 for one query at epsilon/2 = 1/2 with the gap of the proof."""
    log = math.log(1000 / 1e-6)
    gap = (0.9 - 2 / 3 - 1 / (3 * math.e)) * 100 * log + 2 * log
    return "alpha against v - 2B/3 - B/(3e)", 16 * (math.log(2) + 1 + log), gap


def lemma_27_mean_value():
    """Search z on the segment from 0 to (1, 1) with grad f(1, 1) = Hessian(z) (1, 1).

    The function is x_1^3/6 + x_2^4/12.
    """
    s = np.linspace(0, 1, 100_001)
    miss = np.maximum(abs(1 / 2 - s), abs(1 / 3 - s**2))
    return "least distance of both sides over z, against 0", float(miss.min()), 0.0


def outliers_kept():
    """Compute how often a user at -G among users at G is kept, for m = 100 and n = 2e8."""
    n, m, own = 2e8, 100, math.log(1e6)
    log = math.log(m * n) + own
    batch, cutoff, tau = 300 * log**2, 10 * log, math.sqrt(m) / (20 * math.log(n * m))
    gap = 1 + (batch - 1) * math.exp(-2 * tau) - 0.75 * batch
    kept = 1 - math.exp(-gap / (8 * math.sqrt(32 * cutoff * own))) / 2
    return "probability that the farthest user is kept, against 1/2", kept, 0.5


def adversaries():
    """Let 600 users of each phase send G, where all others send -G/2, for n = 2e8 and m = 10^6."""
    n, m, own, k = 2e8, 1e6, math.log(1e6), 600
    log = math.log(m * n) + own
    batch, cutoff, tau = 300 * log**2, 10 * log, math.sqrt(m) / (20 * math.log(n * m))
    scale = 8 * math.sqrt(32 * k * own)
    passes = k * math.exp((k + batch * math.exp(-1.5 * tau) - 0.75 * batch) / scale) / 2
    phases = math.ceil(math.log(n / batch))
    error = 1 - phases * (math.exp(-(k - cutoff) / 4) / 2 + passes)
    return "error, against 1000 times the share of the users", error, 1000 * phases * k / n


def first_version_display():
    """Compute the error of F = sum_j (sqrt(x_j^2 + c^2) - c) around 0, d = 100 and sigma = 1."""
    rng, d, c = np.random.default_rng(0), 100, 0.01
    noise = rng.standard_normal((20_000, d))
    error = (np.sqrt(noise**2 + c**2) - c).sum(axis=1).mean()
    return (
        "error against E norm_2(zeta_1)",
        float(error),
        float(np.linalg.norm(noise, axis=1).mean()),
    )


COUNTEREXAMPLES = [
    theorem_8_noise, theorem_c_2_noise, theorem_c_2_test, theorem_c_2_tau, lemma_33_second_step,
    lemma_36_first_score, theorem_8_few_items, last_noise_few_phases, lemma_13_one_step,
    lemma_37_full_steps, lemma_37_test_noise, lemma_38_small_steps, lemma_39_minimum,
    lemma_39_chain, lemma_43_factor, lemma_45_outputs, lemma_3_reverse, lemma_18_large_cutoff,
    remark_29_trimmed_mean, section_4_epsilon, lemma_10_halt, lemma_12_composition, event_e_2,
    lemma_34_noise, lemma_27_mean_value, outliers_kept, adversaries, first_version_display,
]  # fmt: skip


if __name__ == "__main__":
    for program in COUNTEREXAMPLES:
        words, smaller, larger = program()
        print(f"{program.__name__}: {words}")
        print(f"  {smaller:.3g} should be at most {larger:.3g}\n")
