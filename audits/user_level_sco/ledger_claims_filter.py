"""User-level DP-SCO: claims about the filter, its scores and its noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.integrate import quad
from scipy.stats import binom

from algorithms.user_level_sco.coordinatewise import robust_statistic
from algorithms.user_level_sco.scores import concentration_scores
from audits.user_level_sco import derived, transcribed
from audits.user_level_sco.conventions import SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array, Method

ROUNDING = 1e-12


def within(places):
    """Return the points, moved into the unit ball."""
    return places / np.maximum(1, np.linalg.norm(places, axis=1))[:, None]


def pass_chance(gap, scale):
    """Return P[gap + Lap(scale) > 0]."""
    return math.exp(gap / scale) / 2 if gap < 0 else 1 - math.exp(-gap / scale) / 2


# --- Section 1.3: robust, outliers, unbiased ---


def adversaries(n, m, k, epsilon, delta):
    """Return a lower bound for the excess risk over GD, and 1000 times the share of adversaries.

    All honest gradients are -G/2, x_0 = -D and x_star = D. In each phase, k users send +G. A phase
    returns x_0 if the cutoff is at most k and all k users are filtered.
    """
    log, own = math.log(m * n / delta), math.log(1 / delta)
    B, c = 300 * log**2 / epsilon**1.5, 10 * log / epsilon
    tau = math.sqrt(m) / (20 * math.log(n * m))  # G = D = d = 1
    score = k + B * math.exp(-1.5 * tau)
    scale = 8 * math.sqrt(32 * k * own) / epsilon  # 2 sigma for a cutoff of k
    goes_on = math.exp(-(k - c) * epsilon / 4) / 2 + k * math.exp((score - 0.75 * B) / scale) / 2
    phases = math.ceil(math.log(n / B))
    return 1 - phases * goes_on, 1000 * phases * k / n


@statement("sco2.sec1.3.robust", expected="ambiguous")
def robust_against_adversaries(ledger):
    """The adaptive nature of the method allows to achieve both robustness against adversarial users
    and optimality for well-behaved data.

    The sentence does not say what is robust. The gradient estimate of a step is robust: two users
    with scores above 3B/4 are within 2 log(2)/tau of each other. The output is not robust.
    Algorithm 2 halts after about c = 10 log(nm/delta)/epsilon filtered users, counted over a whole
    phase. Take n = 2e8, m = 1e6, d = 1, epsilon = 1 and delta = 1e-6, so that c is 467. If 600
    users of each phase send the gradient G, and all other users send -G/2, each phase returns its
    initial point. These users are 2e-5 of all users, and the error stays GD. Without a filter, 600
    users move the mean gradient of the first phase by 9e-6 G. So the output is robust against fewer
    than about c users in each phase.
    """
    ledger.reading("the error of the output grows with the share of adversaries", fails=True).sweep(
        "600 to 1200 users in each phase", cases=[{"n": 2e8, "k": 600}, {"n": 1e12, "k": 1200}],
        m=1e6, epsilon=1.0, delta=1e-6, lhs="excess risk over GD, at least",
        rhs="1000 times the share of adversarial users",
    )(adversaries)  # fmt: skip

    @ledger.reading("the gradient estimate of a step").falsify(
        "two users with scores above F, tau = 1", places=Array(Interval(-3.0, 3.0), ("b", 1)),
        b=Choice((4, 6, 12)), times=2.0, mutant={"times": 0.9},
        extremal=[{"places": np.repeat([[0.0], [0.68]], 3, axis=0)}],
    )  # fmt: skip
    def together(places, times):
        kept = places[concentration_scores(places, temperature=1.0) > 3 * len(places) / 4]
        return None if not len(kept) else (np.ptp(kept), times * math.log(2) + ROUNDING)


def outlier(n, m, epsilon, delta):
    """Return P[a user at -G among users at +G is kept], and 1/2, for d = G = 1."""
    log, own = math.log(m * n / delta), math.log(1 / delta)
    B, c = 300 * log**2 / epsilon**1.5, 10 * log / epsilon
    tau = math.sqrt(m) / (20 * math.log(n * m))
    gap = 1 + (B - 1) * math.exp(-2 * tau) - 0.75 * B
    scale = 8 * math.sqrt(32 * c * own) / epsilon
    return 1 - math.exp(-gap / scale) / 2 if gap > 0 else math.exp(gap / scale) / 2, 0.5


@statement("sco2.sec1.3.outliers", expected="ambiguous")
def outliers_are_removed(ledger):
    """Users with low concentration scores (outliers) are filtered out using a noisy threshold
    mechanism via the sparse vector technique.

    If outliers are users with a score far below F, they are filtered. Users at least log(4)/tau
    away from all but a tenth of the batch have a score of at most .33 B. If outliers are users
    whose gradients are far from all others, they are not filtered for m up to about 6000 items. Two
    gradients are at most 2G apart. So every score is at least B exp(-2 tau G). At n = 2e8, d = 1,
    epsilon = 1 and delta = 1e-6, this value is .959 B for m = 100. The threshold is .75 B. A user
    at -G among users at +G is then filtered with probability 9e-13. See sco2.sec3.tau. Section 3.1
    says that the threshold itself is fixed and not noisy. The noise is in the scores.
    """
    ledger.reading("users whose gradients are far from all others", fails=True).sweep(
        "one user at -G, all others at +G", n=2e8, m=[10.0, 100.0, 1000.0], epsilon=1.0,
        delta=1e-6, lhs="P[the user is kept]", rhs="1/2",
    )(outlier)  # fmt: skip

    @ledger.reading("users far from all but a tenth of the batch, in units of 1/tau").sweep(
        "log(4)/tau away, a cutoff of 2c", n=[2 * 10**8, 10**12], m=[10, 10**6], epsilon=0.999,
        delta=[1e-6, 1e-12], apart=math.log(4), mutant={"apart": math.log(1.2)},
        method=Method.NUMERIC,
    )  # fmt: skip
    def far(n, m, epsilon, delta, apart):
        B, _, _, _, c, _, F = transcribed.euclidean(n, m, 1, epsilon, delta, 1.0, 1.0)
        score = B / 10 + 0.9 * B * math.exp(-apart)
        scale = 2 * transcribed.sigma_of_scores(2 * c, epsilon, delta)
        return pass_chance(score - F, scale), 1 / n


@statement("sco2.sec1.3.unbiased")
def unbiased_if_concentrated(ledger):
    """The gradient estimate is unbiased when gradients are well-concentrated, up to the probability
    that the filter acts: norm(E g_(t-1) - grad F(x_(t-1))) is at most 2G times the probability that
    a user of the batch is filtered.

    The paper says "preserves the unbiasedness in well-concentrated regimes". The estimate is never
    exactly unbiased, because Laplace noise filters every user with a positive probability. For
    three users whose gradients are 1 with probability .3 and else 0, tau = 2, F = 1.5 and no noise,
    the mean of the estimate is .216. With the parameters of Section 3, the bound is below .001 G.
    """

    @ledger.falsify(
        "all data and all decisions of three users, gradients 0 or G = 1", chance=SHARE,
        tau=Interval(0.1, 5.0), F=Interval(0.5, 3.0), scale=Interval(0.01, 2.0), times=2.0,
        extremal=[{"chance": 0.3, "tau": 2.0, "F": 1.5, "scale": 0.01}], mutant={"times": 0.0},
    )  # fmt: skip
    def bias(chance, tau, F, scale, times):
        mean = acts = 0.0
        for ones in itertools.product((0.0, 1.0), repeat=3):
            q = np.array(ones)[:, None]
            weight = math.prod(chance if one else 1 - chance for one in ones)
            passes = [
                pass_chance(s - F, scale) for s in concentration_scores(q, temperature=tau).tolist()
            ]
            acts += weight * (1 - math.prod(passes))
            for kept in itertools.product((False, True), repeat=3):
                own = math.prod(p if keep else 1 - p for p, keep in zip(passes, kept, strict=True))
                mean += weight * own * (q[list(kept), 0].mean() if any(kept) else 0.0)
        return abs(mean - chance), times * acts + 1e-9


@statement("sco2.sec3.3.1.none-filtered")
def nobody_is_filtered(ledger):
    """Given that the dataset is i.i.d., no user is filtered out with high probability.

    The row computes the expected number of filtered users for m coins with sides -G and G, which
    have the largest variance. At delta = 1e-6, it is 6.5e-4 at the smallest n = 7.87e6 and m = 1,
    and 4.3e-5 at n = 1e7 and m = 10. If the noise on the cutoff makes chat larger by a fifth, the
    numbers are 4.6e-3 and 3.9e-4. The probability is not as small as (nm)^-3, which the proof of
    Lemma 14 uses (sco2.lemma14.E2). Users that are only as close as the event E_1 allows have
    scores of .905 B. Then the expected number is .018 at n = 1.56e7 and m = 1000, and below .05 up
    to n = 1e12.
    """

    @ledger.sweep("coins, a batch with expected counts, epsilon = 1", m=[1, 10, 100, 500],
                  times=[1, 100], delta=[1e-2, 1e-6, 1e-12], part=0.75, mutant={"part": 0.95},
                  method=Method.NUMERIC)  # fmt: skip
    def filtered(m, times, delta, part):
        n = times * transcribed.fewest_users(m, 0.999, delta)
        B, _, tau, _, c, _, _ = transcribed.euclidean(n, m, 1, 0.999, delta, 1.0, 1.0)
        heads = np.arange(m + 1)
        weights, places = binom.pmf(heads, m, 0.5), 2 * heads / m - 1
        gap = np.exp(-tau * np.abs(places[:, None] - places)) @ weights - part
        scale = 2 * transcribed.sigma_of_scores(1.2 * c, 0.999, delta)
        return n * weights @ np.exp(-np.maximum(gap, 0) * B / scale) / 2, 0.02


# --- privacy words ---


@statement("sco2.sec4.1.final-only", expected="ambiguous")
def only_the_final_output(ledger):
    """The analysis establishes stability for all iterates while privatizing only the final output,
    the final averaged iterate.

    In each phase, one Gaussian vector is added, to the average of the iterates. Algorithm 1
    releases the averages of all S = ceil(log(n/B)) phases, because each phase starts from the noisy
    average of the phase before. At n = 1e8, m = 10, epsilon = 1 and delta = 1e-6, S is 6. Algorithm
    2 also adds Laplace noise to each score and to the cutoff. Without the noise on the scores, (5)
    gives no privacy.
    """

    @ledger.reading("of Algorithm 1", fails=True).sweep(
        "n = 1e8, m = 10, epsilon = 1", n=1e8, m=10, epsilon=1.0, delta=1e-6,
        lhs="noisy averages that Algorithm 1 makes", rhs="1",
    )  # fmt: skip
    def releases(n, m, epsilon, delta):
        B = 300 * math.log(m * n / delta) ** 2 / epsilon**1.5
        return math.ceil(math.log(n / B)), 1

    @ledger.reading("of each phase").sweep(
        "Gaussian vectors in a run of Algorithm 1", phases=[1, 2, 4], steps=[1, 3], each=1,
        mutant={"each": 0},
    )  # fmt: skip
    def vectors(phases, steps, each):
        drawn = []

        def normal(sigma, d):
            drawn.append(sigma)
            return np.zeros(d)

        sizes = [(2.0 * steps, 0.1, 1.0 + s) for s in range(phases)]
        users = np.zeros((2 * steps * phases, 1, 1))
        transcribed.localised(
            users, [0.0], sizes, 2, lambda own, *_: own[0, 0], normal, lambda x: x
        )
        return len(drawn), each * phases


@statement("sco2.fn3.subsample", expected="open")
def subsampled_scores(ledger):
    """With standard (and tedious) subsampling tricks (Kumar et al., 2025), the total running time
    can be reduced to Otilde(nmd).

    The paper describes no trick and gives no proof. On one reading, each score is estimated from
    its own random subset of k users, which is not released. The row checks the loss of one decision
    in the batch of the user that differs. One user moves a score by B/k with probability k/B. For k
    = B/(2 sigma), the loss is at most 1.72 times that of the full score. At delta = 1e-6, B/(2
    sigma) is 114, 138 and 176 at (n, epsilon) = (1e8, 1), (1e10, .1) and (1e13, .01) for m = 10. So
    k need not grow with 1/epsilon. A subset that is used again or released loses B/(2 k sigma) at
    once. The cited paper subsamples sums and not decisions of a sparse vector technique.
    """
    ledger.conclude("open", "The footnote names no subsampling rule, and the paper has no proof.")

    @ledger.falsify(
        "one decision, scale 2 sigma, all thresholds", scale=Interval(5.0, 1e4, log=True),
        users=Interval(20.0, 1e4, log=True), part=1.0, mutant={"part": 0.3},
        extremal=[{"scale": 1e4, "users": 1e4}],
    )  # fmt: skip
    def loss(scale, users, part):
        """Compare a score that moves by B/k with probability k/B, for k = part B/(2 sigma).

        The thresholds are between 5 scales below and 5 scales above the score.
        """
        B = users * scale
        k = part * B / scale
        at = np.linspace(-5, 5, 41)
        below, moved = (
            np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)
            for x in (at, at - B / k / scale)
        )
        mixed = (1 - k / B) * below + k / B * moved
        loss = np.abs([np.log(below / mixed), np.log((1 - mixed) / (1 - below))]).max()
        return loss, (math.e - 1) / scale * (1 + 1e-9)


@statement("sco2.sec3.1.svt-threshold")
def noise_on_the_threshold(ledger):
    """In the standard SVT framework, privacy requires obfuscating the threshold in addition to
    noising the queries.

    We read privacy as (epsilon, 0)-DP. Without noise on the threshold, T equal queries at the
    threshold, which move by 1 between neighbours, have a loss of .49 T for the answers that are not
    counted. The noise is Lap(1). So the loss has no bound for c = 1. With noise on the threshold,
    the loss is at most epsilon, for every T. For (epsilon, delta)-DP, a fixed threshold is enough
    up to c epsilon^2 <= log(1/delta) (sco2.lemma18). Algorithm 2 uses this.
    """

    @ledger.sweep(
        "the loss of T free answers, queries at and above the threshold", T=[1, 10, 100],
        noisy=False, mutant={"noisy": True}, method=Method.NUMERIC,
    )  # fmt: skip
    def free(T, noisy):
        """Compute log of the ratio of P[no answer is counted] for queries 1 and 0 above."""

        def chance(at):
            def given(r):
                high = pass_chance(at + r, 1.0)
                return high**T * (math.exp(-abs(r)) / 2 if noisy else 1.0)

            return quad(given, -60, 60, limit=400, points=[-1, 0, 1])[0] if noisy else given(0.0)

        return 0.48 * T, math.log(chance(1.0) / chance(0.0))


# --- scores ---


@statement("sco2.lemma10.kappa11")
def own_score(ledger):
    """We have control over the sensitivity of queries {kappa_(1,i)}_(i>=2) but not for
    kappa_(1,1): if Z_(1,1) changes, kappa_(1,1) may change by (B - 1)(1 - exp(-2 tau G)).

    The bound is attained if all other users are at one end of a diameter. For tau G -> infinity,
    the change is B - 1. Section 3.1 calls the score a low-sensitivity score, which is true for the
    scores of the other users only (sco2.lemma10.kappa).
    """
    ends = {"others": np.array([[1.0, 0.0]] * 5), "pair": np.array([[1.0, 0.0], [-1.0, 0.0]])}

    @ledger.falsify("G = 1", others=Array(UNIT, ("b", 2)), pair=Array(UNIT, (2, 2)),
                    b=Choice((1, 2, 5)), tau=Interval(0.01, 20.0, log=True), full=True,
                    extremal=[{**ends, "tau": tau} for tau in (0.1, 1.0, 20.0)],
                    mutant={"full": False})  # fmt: skip
    def moved(others, pair, tau, full):
        """Compare both sides.

        The mutant bounds the change by 1, as for the other users.
        """
        others, pair = within(others), within(pair)
        scores = [concentration_scores(np.vstack([z, others]), temperature=tau)[0] for z in pair]
        most = len(others) * -math.expm1(-2 * tau) if full else 1.0
        return abs(scores[0] - scores[1]), most + ROUNDING


@statement("sco2.lemma37.size")
def all_tests_pass(ledger):
    """Suppose the number of users is larger than 100 log(T/delta)/epsilon: by our setting of
    parameters, we pass all the concentration tests with a_t = top.

    The number has to be that of a batch, B >= 100 log(T/delta)/epsilon, as Lemmas 34 and 36 print.
    If all users of a batch agree, the tests are then passed with probability at least 1 - delta. If
    only the dataset is that large, B may be 1. Take B = m = d = 1, f = -Gx on [-D, D], x_0 = -D,
    beta = 0, epsilon = 1, delta = 1e-6 and T = 1e4. The score is at most B = 1, and v is 46.9. The
    first test is passed with probability .0021. So Algorithm 6 returns x_0, and its error is 1.996
    GD. At eta = 2D/(G sqrt(T)), the bound of Lemma 37 is .04 GD. At T = 1e6, the numbers are 1.9987
    and .004.
    """

    @ledger.sweep("equal gradients, B = 100 log(T/delta)/epsilon", steps=[1, 100, 10**4],
                  epsilon=[0.1, 1.0], delta=[0.1, 1e-6], size=100, mutant={"size": 70},
                  method=Method.NUMERIC)  # fmt: skip
    def passed(steps, epsilon, delta, size):
        log = math.log(steps / delta)
        B = size * log / epsilon
        gap = B - (0.9 * B + 2 * log / epsilon)  # the score B against v
        return steps * derived.two_laplace_tail(gap, 8 / epsilon, 4 / epsilon), delta

    @ledger.misprint("whose size |D| is larger than 100 log(T/delta)/epsilon", "B for |D|").sweep(
        "B = 1, |D| = T = 10^4 users", steps=10**4, epsilon=1.0, delta=1e-6,
        lhs="P[the first test fails]", rhs="delta",
    )  # fmt: skip
    def alone(steps, epsilon, delta):
        gap = 0.9 + 2 * math.log(steps / delta) / epsilon - 1
        a, b = 8 / epsilon, 4 / epsilon  # scales of the noises of score and threshold
        high = (a * a * math.exp(-gap / a) - b * b * math.exp(-gap / b)) / (a * a - b * b)
        return 1 - high / 2, delta


@statement("sco2.appD.breakpoint")
def break_point(ledger):
    """The first property of Assumption 28 ensures that when the number of "bad" users in each step
    does not exceed B/3, the robust statistic lies in the ball B_inf(X', rho) that holds all other
    gradients.

    The text prints 2B/3 for this break point. The definition of rho-aligned, three lines below,
    allows B/3 bad users. With 2B/3, the statement fails: if 200 of 300 users are at 10 and 100 are
    at 0, the median is 10. The text also says "in each phase (B in total)" for a step.
    """
    domain = {"places": Array(Interval(-9.0, 9.0), ("b",)), "b": Integer(1, 9)}
    near = np.array([-9.0, -9, -9, 0, 0, 0.5, 0.5, 1, 1])

    @ledger.falsify("the median, one coordinate", share=1 / 3, mutant={"share": 2 / 3},
                    extremal=[{"places": near, "b": 9}], **domain)  # fmt: skip
    def held(places, b, share):
        """Use the shortest interval that holds all but a share of the users."""
        ordered = np.sort(places)
        bad = math.floor(share * b + 1e-9)
        widths = ordered[b - bad - 1 :] - ordered[: bad + 1]
        low = ordered[: bad + 1][widths.argmin()]
        middle = robust_statistic(places[:, None])[0]
        return abs(middle - low - widths.min() / 2), widths.min() / 2 + ROUNDING

    @ledger.misprint("the break point 2B/3", "B/3").sweep(
        "200 of 300 users at 10, the others at 0", bad=200, good=100,
        lhs="distance of the median from the good users", rhs="rho = 0",
    )  # fmt: skip
    def outside(bad, good):
        return np.median([10.0] * bad + [0.0] * good), 0.0
