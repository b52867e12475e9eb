"""Few examples per user: the tools of differential privacy of Section 2."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import linprog
from scipy.special import softmax

from algorithms.common.subsampling import amplified_epsilon
from algorithms.common.truncated_laplace import truncated_laplace_pmf, truncation
from algorithms.few_examples.items import (
    ExponentialLearner,
    Subsampled,
    TruncatedMajority,
    noisy_majority,
)
from algorithms.few_examples.reductions import AllExamples
from audits.few_examples.best_tests import move
from audits.few_examples.conventions import DELTA, EPSILON, FAILURE, SHARE
from audits.few_examples.deletion_laws import ordered
from audits.few_examples.transcribed import exponential_mechanism as exponential_mechanism_of
from audits.few_examples.transcribed import noisy_majority as noisy_majority_of
from audits.few_examples.transcribed import subsample
from dpaudit.ledger import statement
from dpaudit.neighbors import Integer, Interval
from dpaudit.properties import Array
from dpaudit.stats import hockey_stick

ROUNDING = 1e-9


# --- closeness ---


@statement("few.lemma5")
def triangle(ledger):
    """If A ~_(epsilon', delta') B and B ~_(epsilon, delta) C, then A ~_(epsilon + epsilon',
    e^epsilon delta' + e^epsilon' delta) C. Here d_epsilon(A || B) = sum_(x in supp(A)) [A(x) -
    e^epsilon B(x)]_+ is the hockey stick divergence, and A ~_(epsilon, delta) B denotes d_epsilon(A
    || B) <= delta and d_epsilon(B || A) <= delta.

    The check covers all triples exactly. If the outcomes are merged into an event and the rest,
    both hypotheses still hold. So two outcomes are enough, and for two outcomes the extreme B and A
    are known. The bound is attained in three cases: epsilon = 0, epsilon' = 0, and one delta equal
    to 0. In other cases, max(delta' + e^epsilon' delta, delta + e^epsilon delta') is enough. This
    maximum has one term for each direction. This maximum is attained at C = (0, 1).
    """
    apart = {"first": Interval(0.0, 3.0), "second": Interval(0.0, 3.0)}
    small = Interval(0.0, 0.5)
    ends = [{"first": 1.0, "second": 0.0, "d1": 0.01, "d2": 0.02, "c": 0.0},
            {"first": 1.0, "second": 1.0, "d1": 0.01, "d2": 0.02, "c": 0.0}]  # fmt: skip
    domain = {**apart, "d1": small, "d2": small, "c": SHARE, "extremal": ends}

    ledger.falsify("two outcomes: the largest A for each C", sum_=True, whole=1.0,
                   mutant={"whole": 0.99}, end_to_end=True, **domain)(extreme)  # fmt: skip
    ledger.sharper("max(delta' + e^epsilon' delta, delta + e^epsilon delta')").falsify(
        "two outcomes", sum_=False, whole=1.0, mutant={"whole": 0.99}, **domain
    )(extreme)

    @ledger.falsify("four outcomes", weights=Array(SHARE, (3, 4)), factor=1.0,
                    mutant={"factor": 0.5}, end_to_end=True, extremal=[
                        {"weights": np.array([[3, 1, 1, 1.0], [2, 1, 1, 1], [1, 1, 1, 1]]),
                         "first": 0.1, "second": 0.1},
                    ], **apart)  # fmt: skip
    def four(weights, first, second, factor):
        """Use the deltas of the three distributions."""
        if not (weights.sum(axis=1) > 0).all():
            return None
        a, b, c = weights / weights.sum(axis=1, keepdims=True)
        d1, d2 = both(a, b, first), both(b, c, second)
        claimed = math.exp(second) * d1 + math.exp(first) * d2
        return both(a, c, first + second), factor * claimed + ROUNDING


def extreme(first, second, d1, d2, c, sum_, whole):
    """Return both sides in the worse direction, for a C that gives the event the probability c.

    The distributions satisfy A ~_(first, d1) B ~_(second, d2) C.
    """
    one = move(move(c, second, d2), first, d1) - math.exp(first + second) * c
    other = move(move(c, first, d1), second, d2) - math.exp(first + second) * c
    each = (d1 + math.exp(first) * d2, d2 + math.exp(second) * d1)
    claimed = math.exp(second) * d1 + math.exp(first) * d2 if sum_ else max(each)
    return max(one, other), whole * claimed + 1e-12


def both(p, q, epsilon):
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


@statement("few.lemma6")
def group_privacy(ledger):
    """Let A be any (epsilon, delta)-item-level DP algorithm and x, x' be k-neighbors: there exist x
    = x_0, x_1, ..., x_k = x' such that x_(i-1), x_i are item-level neighbors for all i in [k]. Then
    A(x) ~_(epsilon', delta') A(x') where epsilon' = k epsilon, delta' = ((e^(k epsilon) -
    1)/(e^epsilon - 1)) delta <= k e^(k epsilon) delta.

    The lemma is exact. An algorithm that counts attains the bound of the lemma. Starting from (0,
    1), each step multiplies by e^epsilon and adds delta, until the sum exceeds 1. By linear
    programs over all algorithms on two and three bits, no algorithm exceeds the bound. The last
    inequality is loose. The bound k e^((k - 1) epsilon) is enough, and is attained as epsilon -> 0.
    The number k may exceed the number of items that differ. At epsilon = 0, the quotient is 0/0,
    which must be read as k.
    """
    steps = {"k": [1, 2, 5, 20], "epsilon": [1e-3, 0.1, 1.0], "delta": [1e-9, 1e-4, 0.05]}

    @ledger.sweep("chains of distributions, the extreme ones", less=0, mutant={"less": 1},
                  end_to_end=True, start=[0.0, 1e-6, 0.1, 0.5], **steps)  # fmt: skip
    def chain(k, epsilon, delta, start, less):
        x = start
        for _ in range(k):
            x = move(x, epsilon, delta)
        share = math.expm1((k - less) * epsilon) / math.expm1(epsilon) * delta
        return x - math.exp(k * epsilon) * start, share + 1e-14

    @ledger.identity(
        "the worst algorithm on k bits, by linear programs", k=[1, 2, 3], epsilon=[0.1, 1.0],
        delta=[1e-3, 0.02], growth=1.0, mutant={"growth": 0.99}, tolerance=1e-6,
    )  # fmt: skip
    def worst(k, epsilon, delta, growth):
        words = list(itertools.product((0, 1), repeat=k))
        rows, most = private_events(words, 2, epsilon, delta)
        target = np.zeros(2**k)
        target[-1], target[0] = -1.0, math.exp(k * epsilon)
        found = linprog(target, A_ub=rows, b_ub=most, bounds=(0, 1))
        grown = delta * math.expm1(k * growth * epsilon) / math.expm1(epsilon)
        return -found.fun, grown if growth < 1 else min(1.0, grown)

    @ledger.identity("our group privacy: A on all items of all users, in their order", n=[1, 2, 3],
                     m=[1, 2, 3], by_user=True, mutant={"by_user": False})  # fmt: skip
    def all_items(n, m, by_user):
        """Use an A whose distribution depends on the order of the items."""
        data = np.random.default_rng(n).integers(0, 3, (n, m))
        learner, slowly = ordered(np.eye(7) / 2 + 1 / 14, [3, 0, 6, 2, 5, 1, 4])
        x = data if by_user else data.T
        meant = slowly(tuple(item for user in x.tolist() for item in user))
        return AllExamples(learner).pmf(data), np.array(meant)

    wide = {"k": Integer(1, 200), "epsilon": EPSILON, "extremal": [{"k": 5, "epsilon": 1e-3}]}

    @ledger.falsify("the quotient is at most k e^(k epsilon)", factor=1.0, mutant={"factor": 0.9},
                    **wide)  # fmt: skip
    def loose(k, epsilon, factor):
        return math.expm1(k * epsilon) / math.expm1(epsilon), factor * k * math.exp(k * epsilon)

    @ledger.sharper("k e^((k - 1) epsilon)").falsify("the quotient", less=1.0,
                                                     mutant={"less": 2.0}, **wide)  # fmt: skip
    def tighter(k, epsilon, less):
        return math.expm1(k * epsilon) / math.expm1(epsilon), k * math.exp((k - less) * epsilon)


def private_events(words, letters, epsilon, delta):
    """Return the privacy constraints `rows @ a <= most` on the event probabilities of all words."""
    place = {word: i for i, word in enumerate(words)}
    rows, most = [], []
    for word in words:
        for i, letter in itertools.product(range(len(word)), range(letters)):
            if letter != word[i]:
                other = place[(*word[:i], letter, *word[i + 1 :])]
                for sign, bound in ((1.0, delta), (-1.0, delta + math.exp(epsilon) - 1)):
                    row = np.zeros(len(words))
                    row[place[word]], row[other] = sign, -sign * math.exp(epsilon)
                    rows.append(row)
                    most.append(bound)
    return np.array(rows), np.array(most)


# --- subsampling ---


def neighboring(population, letters, kept):
    """Yield neighbouring inputs.

    If the order of a subsample is not kept, all yielded inputs are sorted.
    """
    letters = range(letters)
    if not kept:
        for rest in itertools.combinations_with_replacement(letters, population - 1):
            for a, b in itertools.permutations(letters, 2):
                yield (a, *rest), (b, *rest)
        return
    for x in itertools.product(letters, repeat=population):
        for i, b in itertools.product(range(population), letters):
            if b != x[i]:
                yield x, (*x[:i], b, *x[i + 1 :])


def mixture(data, words, kept):
    """Return the probability of each word as the subsample."""
    place, size = {word: i for i, word in enumerate(words)}, len(words[0])
    ways = list((itertools.combinations if kept else itertools.permutations)(data, size))
    law = np.zeros(len(words))
    for way in ways:
        law[place[way]] += 1 / len(ways)
    return law


def worst_delta(sample, population, letters, epsilon, delta, rate):
    """Return the largest delta at epsilon' in random order, over all algorithms, by LPs."""
    words = list(itertools.product(range(letters), repeat=sample))
    rows, most = private_events(words, letters, epsilon, delta)
    growth = 1 + rate * math.expm1(epsilon)
    return max(
        -linprog(growth * mixture(y, words, False) - mixture(x, words, False), A_ub=rows,
                 b_ub=most, bounds=(0, 1)).fun for x, y in neighboring(population, letters, False)
    )  # fmt: skip


def worst_ratio(sample, population, letters, epsilon, kept=False):
    """Return the largest ratio of event probabilities over (epsilon, 0)-DP algorithms, by LPs."""
    words = list(itertools.product(range(letters), repeat=sample))
    rows, _ = private_events(words, letters, epsilon, 0.0)
    return max(
        -linprog(-mixture(x, words, kept), A_ub=rows[::2], b_ub=np.zeros(len(rows) // 2),
                 A_eq=[mixture(y, words, kept)], b_eq=[1.0]).fun
        for x, y in neighboring(population, letters, kept)
    )  # fmt: skip


@statement("few.thm7", expected="ambiguous")
def subsampling(ledger):
    """Let n, n' in N be such that n' >= n. For any (epsilon, delta)-item-level DP algorithm A with
    sample complexity n, let A' denote the algorithm with sample complexity n' that randomly chooses
    n out of the n' input samples and then runs A on the subsample. Then A' is (epsilon', delta')-DP
    where epsilon' = ln(1 + eta (e^epsilon - 1)), delta' = eta delta for eta = n/n'.

    The result depends on the order in which A reads the subsample. In random order, or for an
    algorithm A that does not depend on the order, the theorem holds. For these cases, the result
    was computed exactly, by linear programs over all algorithms on up to three of four items. An
    algorithm A that counts attains the bound for every n, n', epsilon and delta. In the order of
    the input, the theorem fails. On two of three items, let A(x_1, x_2) = 1 with probability p
    e^(epsilon (x_2 - x_1)), where p is small. The algorithm A is (epsilon, 0)-DP. On (0, 1, 0) and
    (1, 1, 0), the ratio is (e^(2 epsilon) + e^epsilon + 1)/(e^epsilon + 2). This ratio is above 1 +
    (2/3)(e^epsilon - 1) for every epsilon > 0. At epsilon = 1/2, epsilon' is .386, but .359 is
    claimed. On three of five items, epsilon' is .361, but .329 is claimed. If x_1 is removed, the
    other items move to other places, and A may depend on the places. The cited theorem is about
    sets and multisets. Theorem 10 may use a random order, which also makes A symmetric, as Theorem
    17 requires.
    """
    sizes = [{"sample": s, "population": p, "letters": q} for s, p, q in
             [(1, 2, 2), (2, 3, 2), (3, 4, 2), (2, 3, 3)]]  # fmt: skip
    order = ledger.reading("in random order, or A does not depend on the order")

    @order.sweep(
        "the worst algorithm, by linear programs: delta at epsilon'", cases=sizes,
        epsilon=[0.1, 1.0], delta=[1e-3, 0.1], share=1.0, mutant={"share": 0.95}, end_to_end=True,
        tolerance=1e-6,
    )  # fmt: skip
    def delta_of(sample, population, letters, epsilon, delta, share):
        rate = sample / population
        found = worst_delta(sample, population, letters, epsilon, delta, share * rate)
        return found, rate * delta

    @order.sweep(
        "the worst algorithm at delta = 0: the largest ratio", cases=sizes, epsilon=[0.1, 1.0, 3.0],
        share=1.0, mutant={"share": 0.95}, end_to_end=True, tolerance=1e-6,
    )  # fmt: skip
    def ratio_of(sample, population, letters, epsilon, share):
        found = worst_ratio(sample, population, letters, epsilon)
        return found, 1 + share * sample / population * math.expm1(epsilon)

    @order.falsify(
        "a majority with truncated noise, on a subsample, exactly", sample=Integer(1, 6),
        more=Integer(0, 6), epsilon=Interval(0.05, 2.0), delta=Interval(1e-4, 0.2, log=True),
        ones=Integer(0, 11), factor=1.0, mutant={"factor": 0.5}, end_to_end=True, examples=150,
    )  # fmt: skip
    def majority(sample, more, epsilon, delta, ones, factor):
        population = sample + more
        ones = min(ones, population - 1)
        learner = Subsampled(TruncatedMajority(epsilon, delta), sample)
        counts = [[population - k, k] for k in (ones, ones + 1)]
        smaller = amplified_epsilon(epsilon, population, sample)
        claimed = factor * sample / population * delta
        return both(*learner.pmf_of_counts(counts), factor * smaller), claimed + ROUNDING

    @order.identity("our subsample of up to five items, by all orders of all subsamples",
                    sample=[0, 1, 2, 3], counts=[(3, 0), (1, 2), (2, 3)], more=0,
                    mutant={"more": 1})  # fmt: skip
    def mixed(sample, counts, more):
        """Compute two tables of counts at once."""
        learner = Subsampled(TruncatedMajority(1.0, 0.3), sample)
        found = learner.pmf_of_counts([[counts, counts[::-1]]])
        meant = [
            subsample(
                lambda z: noisy_majority_of(z, 1.0, 0.3),
                (0,) * a + (1,) * b,
                min(sample + more, a + b),
            )
            for a, b in (counts, counts[::-1])
        ]
        return found, np.array([meant])

    kept = ledger.reading("in the order of the input", fails=True)

    @kept.sweep(
        "two of three items, A(x_1, x_2) with e^(epsilon (x_2 - x_1))", epsilon=[0.5, 0.1, 3.0],
        lhs="privacy loss of A'", rhs="epsilon'",
    )  # fmt: skip
    def in_order(epsilon):
        """Use the fact that the common factor p of the probabilities of the answer 1 cancels."""
        x, y, pairs = (0, 1, 0), (1, 1, 0), ((0, 1), (0, 2), (1, 2))
        one, other = (sum(math.exp(epsilon * (z[j] - z[i])) for i, j in pairs) for z in (x, y))
        return math.log(one / other), math.log(1 + 2 / 3 * (math.exp(epsilon) - 1))

    @ledger.sharper("three of five items in order: 3.3 percent more, not 5").sweep(
        "the worst algorithm, by linear programs", epsilon=0.5, most=1.05, mutant={"most": 1.03},
    )  # fmt: skip
    def five(epsilon, most):
        claimed = 1 + 3 / 5 * math.expm1(epsilon)
        return worst_ratio(3, 5, 2, epsilon, kept=True), most * claimed

    ledger.consequence(
        "An implementation that keeps the order, with an algorithm that depends on the order, "
        "loses more privacy than claimed. On two of three items, the loss is 7 percent larger at "
        "epsilon = 1/2, and 13 percent larger at epsilon = 3.",
        harm="privacy",
    )


# --- noise and selection ---


@statement("few.def8")
def truncated_noise(ledger):
    """For any epsilon, delta > 0 let kappa = kappa(epsilon, delta) := 1 + ceil(ln(1/delta)/epsilon)
    and let TDLap(epsilon, delta) be the distribution supported on {0, ..., 2 kappa} with
    probability mass function at x being proportional to exp(-epsilon abs(x - kappa)).

    The statement is a definition. The properties that the proof of Lemma 18 needs hold. Masses of
    neighbouring values differ by exactly e^epsilon. The masses of 0 and 2 kappa are at most
    delta/5. The value delta/5 is attained at epsilon = ln 2 and delta = 1/2. For small delta, both
    masses are (3 - 2 sqrt(2)) delta = .172 delta. The summand 1 in kappa is not needed, because
    ceil(ln(1/delta)/epsilon) gives masses of at most delta. A count that moves by 1 is (epsilon,
    delta/5)-DP with this noise. For delta = 1, the support is {0, 1, 2}. For delta >= e^epsilon,
    the support is first {0}, and is empty for larger delta.
    """
    exact = [{"epsilon": math.log(2), "delta": 2.0**-k} for k in (1, 2, 9)]  # nothing is rounded up
    domain = {"epsilon": Interval(0.01, 5.0, log=True), "delta": DELTA, "extremal": exact}

    @ledger.falsify("the mass at 0", less=0, mutant={"less": 2}, **domain)
    @ledger.sharper("kappa one smaller").falsify("the mass at 0", less=1, mutant={"less": 2},
                                                 **domain)  # fmt: skip
    def mass(epsilon, delta, less):
        kappa = truncation(epsilon, delta) - less
        total = 1 + 2 * np.exp(-epsilon * np.arange(1, kappa + 1)).sum()
        return math.exp(-epsilon * kappa) / total, delta

    @ledger.sharper("delta/5").falsify("the masses at both ends of our noise", share=0.2,
                                       mutant={"share": 0.19}, **domain)  # fmt: skip
    def ends(epsilon, delta, share):
        pmf = truncated_laplace_pmf(epsilon, delta)
        return max(pmf[0], pmf[-1]), share * delta

    @ledger.identity("our noise is this noise: ratios of neighbouring masses, and their sum",
        shape=1.0,
                     mutant={"shape": 0.99}, **domain)  # fmt: skip
    def ours(epsilon, delta, shape):
        pmf = truncated_laplace_pmf(epsilon, delta)
        kappa = 1 + math.ceil(math.log(1 / delta) / epsilon)
        meant = np.exp(-shape * epsilon * np.abs(np.arange(2 * kappa + 1) - kappa))
        return pmf, meant / meant.sum()

    @ledger.identity("our majority with this noise, which is at least 0", delta=[1e-4, 0.05, 0.4],
                     epsilon=[0.3, 0.7, 2.0], total=[0, 1, 4, 9, 20], grow=1.0,
                     mutant={"grow": 1.5}, floor=1e-6)  # fmt: skip
    def majority(epsilon, delta, total, grow):
        """Compute all counts at once."""
        words = [(0,) * (total - k) + (1,) * k for k in range(total + 1)]
        found = TruncatedMajority(epsilon, delta).pmf_of_counts(
            [[total - k, k] for k in range(total + 1)]
        )
        meant = np.array([noisy_majority_of(word, grow * epsilon, delta) for word in words])
        return np.append(found, found.min() >= 0), np.append(meant, 1.0)

    @ledger.sharper("delta/5").falsify("a count that moves by 1, with this noise", factor=1.0,
                    mutant={"factor": 0.5}, end_to_end=True, **domain)  # fmt: skip
    def shifted(epsilon, delta, factor):
        pmf = truncated_laplace_pmf(epsilon, delta)
        one, other = np.append(pmf, 0.0), np.append(0.0, pmf)
        return both(one, other, factor * epsilon), 0.2 * delta + 1e-14

    @ledger.edge("delta <= 1/2").sweep("delta = e^(2 epsilon)", epsilon=1.0, lhs="1 value",
                                       rhs="size of the support")  # fmt: skip
    def empty(epsilon):
        kappa = 1 + math.ceil(math.log(1 / math.exp(2 * epsilon)) / epsilon)
        return 1, 2 * kappa + 1


def mechanism(scores, epsilon, sensitivity, two=2.0):
    return softmax(-epsilon * np.asarray(scores) / (two * sensitivity), axis=-1)


@statement("few.thm9")
def exponential_mechanism(ledger):
    """There is an epsilon-DP (O(Delta log(card H/beta)/epsilon), beta)-accurate algorithm for
    SELECT: given candidates H and scoring functions scr_h with sensitivities at most Delta, Pr_(h ~
    A(x))[scr_h(x) <= min_(h' in H) scr_(h')(x) + a] >= 1 - beta for a = O(Delta log(card
    H/beta)/epsilon). The algorithm, the exponential mechanism, outputs h with probability
    proportional to exp(-epsilon scr_h(x)/(2 Delta)).

    The theorem holds with a = 2 Delta ln(card H/beta)/epsilon, exactly. The failure probability is
    largest if there is one best candidate, and all other candidates are just above `a`. In this
    case, the failure probability is below beta (1 - 1/card H). The factor 2 cannot be smaller for
    all card H. The loss epsilon is attained in the limit, for a candidate that moves against many
    others. If there is one candidate, the algorithm never fails. The data are arbitrary, and scores
    may be negative. If beta >= 1, the theorem requires nothing.
    """
    private = {"epsilon": EPSILON, "sensitivity": Interval(0.01, 100.0, log=True)}

    @ledger.falsify(
        "the worst scores: one best candidate, the others at the threshold", two=2.0,
        size=Integer(1, 10**12), beta=FAILURE, mutant={"two": 1.9},
        extremal=[{"size": 10**12, "beta": 0.5}, {"size": 1, "beta": 0.5}],
    )  # fmt: skip
    def failure(size, beta, two):
        """Use exp(-epsilon a/(2 Delta)) = (beta/card H)^(two/2), whatever epsilon and Delta are."""
        others = (size - 1) * (beta / size) ** (two / 2)
        return others / (1 + others), beta

    @ledger.falsify("any scores", scores=Array(Interval(0.0, 20.0), (5,)), beta=FAILURE, two=2.0,
                    factor=2.0, mutant={"two": 4.0}, end_to_end=True, extremal=[
                        {"scores": np.array([0, 10, 10, 10, 10.0]), "beta": 0.025, "epsilon": 1.0,
                         "sensitivity": 1.0},
                    ], **private)  # fmt: skip
    def accurate(scores, beta, epsilon, sensitivity, two, factor):
        """Use scores in units of Delta/epsilon."""
        scores = scores * sensitivity / epsilon
        bound = factor * sensitivity * math.log(5 / beta) / epsilon
        bad = scores > scores.min() + bound
        return mechanism(scores, epsilon, sensitivity, two)[bad].sum(), beta

    @ledger.falsify(
        "privacy: all scores move by up to Delta", scores=Array(Interval(-5.0, 5.0), (6,)),
        moves=Array(Interval(-1.0, 1.0), (6,)), two=2.0, mutant={"two": 1.5}, end_to_end=True,
        extremal=[{"scores": np.array([5.0, 0, 0, 0, 0, 0]) * 4, "epsilon": 3.0, "sensitivity": 1.0,
                   "moves": np.array([1.0, -1, -1, -1, -1, -1])}], **private,
    )  # fmt: skip
    def loss(scores, moves, epsilon, sensitivity, two):
        one = mechanism(sensitivity * scores, epsilon, sensitivity, two)
        other = mechanism(sensitivity * (scores + moves), epsilon, sensitivity, two)
        return np.abs(np.log(one / other)).max(), epsilon + 1e-12

    @ledger.identity("our mechanism, whose scores are sums over the items", epsilon=EPSILON,
                     scores=Array(Interval(-3.0, 3.0), (3, 4)), counts=Array(SHARE, (2, 4)),
                     two=2.0, mutant={"two": 1.0}, extremal=[
                         {"scores": np.ones((3, 4)), "counts": np.ones((2, 4)), "epsilon": 1.0}],
                     )  # fmt: skip
    def summed(scores, counts, epsilon, two):
        """Compute two datasets at once; the sensitivity of equal scores is 0."""
        counts = np.floor(6 * counts).astype(int)
        found = ExponentialLearner(scores, epsilon).pmf_of_counts(counts)
        widest = max(max(row) - min(row) for row in scores.tolist())
        losses = [[-sum(c * s for c, s in zip(x, row, strict=True)) for row in scores.tolist()]
                  for x in counts.tolist()]  # fmt: skip
        meant = [exponential_mechanism_of(x, two / 2 * (widest or 1.0), epsilon) for x in losses]
        return found, np.array(meant)

    @ledger.identity("our majority of bits is logistic in the lead", epsilon=[0.2, 1.0, 3.0],
                     bits=[(), (0,), (1, 1, 0), (1, 1, 1, 1, 0)], half=0.5,
                     mutant={"half": 0.4})  # fmt: skip
    def majority(epsilon, bits, half):
        found = noisy_majority(epsilon).pmf(np.array(bits, dtype=int))
        return found[1], 1 / (1 + math.exp(-half * epsilon * (2 * sum(bits) - len(bits))))

    data = [[c, d, 4 - c - d] for c in range(5) for d in range(5 - c)]
    close = [{"left": x, "right": y} for x in data for y in data
             if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 2]  # fmt: skip

    @ledger.sweep("our mechanism, on all datasets of four items of three kinds", cases=close,
                  epsilon=[0.1, 1.0, 3.0], scale=1.0, mutant={"scale": 2.0},
                  end_to_end=True)  # fmt: skip
    def ours(left, right, epsilon, scale):
        learner = ExponentialLearner(np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 1]]), scale * epsilon)
        one, other = learner.pmf_of_counts([left, right])
        return np.abs(np.log(one / other)).max(), epsilon
