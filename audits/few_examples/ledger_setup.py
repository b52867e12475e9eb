"""Few examples per user: neighbours, privacy, tasks, clipping, covers and packings."""

from __future__ import annotations

import itertools
import math

import numpy as np

from algorithms.few_examples.items import (
    AlternatingMajority,
    HeavyItems,
    NoisyArgmax,
    noisy_majority,
)
from algorithms.few_examples.learning import clipped_errors
from audits.few_examples.best_tests import best_test, least_users
from audits.few_examples.conventions import EPSILON, SHARE
from audits.few_examples.transcribed import (
    alternating_majority,
    exponential_mechanism,
    heavy_items,
    pac_score,
    permute_and_flip,
)
from dpaudit import NeighborPair, Relation
from dpaudit.errors import PairError
from dpaudit.ledger import statement
from dpaudit.neighbors import Interval
from dpaudit.properties import Array, Method
from dpaudit.stats import hockey_stick

ROUNDING = 1e-12
PAIR = {"weights": Array(SHARE, (2, 4))}
EVENTS = np.array(list(itertools.product([0, 1], repeat=4)))


# --- neighbours, privacy, tasks ---


@statement("few.def1")
def neighbors(ledger):
    """Two inputs x, x' in Z^(nm), of n users with m examples each, are user-level neighbors iff
    x_(-i) = x'_(-i) for some i in [n], where x_(-i) is the input with the data x_i = (x_(i,1), ...,
    x_(i,m)) of user i removed.

    The statement is a definition. Over all pairs of three users with two bits each, our pairs agree
    with this definition. At n = 1, all inputs are neighbours. Every input is its own neighbour. The
    count n and the index i are the same in both inputs, so swapping two differing users changes two
    users.
    """
    bits = ["".join(items) for items in itertools.product("01", repeat=6)]
    pairs = [{"left": a, "right": b} for a in bits for b in bits]

    @ledger.identity("pairs that our audits accept", cases=pairs, m=2, mutant={"m": 1})
    def admitted(left, right, m):
        """Return whether the audits accept the pair.

        The mutant counts the items that differ, not the users.
        """
        parts = [[d[i : i + m] for i in range(0, 6, m)] for d in (left, right)]
        differ = sum(x != y for x, y in zip(*parts, strict=True))
        data = [[[float(c) for c in d[i : i + 2]] for i in (0, 2, 4)] for d in (left, right)]
        try:
            NeighborPair(*data, relation=Relation.REPLACE_USER)
        except PairError:
            return 0, differ <= 1
        return 1, differ <= 1


@statement("few.def2")
def privacy(ledger):
    """For epsilon, delta > 0 a randomized algorithm A: Z^(nm) -> O with a finite output space O is
    (epsilon, delta)-user-level DP iff for any user-level neighbors x, x' and any S subset of O we
    have Pr[A(x) in S] <= e^epsilon Pr[A(x') in S] + delta. When m = 1, A is (epsilon,
    delta)-item-level DP. The case delta = 0 is referred to as pure-DP.

    The statement is a definition. The divergence that other rows use is the supremum over all S.
    Randomized response to one bit of every user is exactly (epsilon, 0)-DP. At item level, n counts
    items. So n users with m = 1 item each are the same as n items.
    """
    ledger.misprint("A: Z -> O", "A: Z^(nm) -> O")

    @ledger.identity("the largest P(S) - exp(epsilon) P'(S) over all S", epsilon=EPSILON,
                     base=math.e, mutant={"base": 2.0}, tolerance=1e-11, **PAIR)  # fmt: skip
    def largest(weights, epsilon, base):
        p, q = (weights + 1e-9) / (weights + 1e-9).sum(axis=1, keepdims=True)
        return 1 + (EVENTS @ (p - base**epsilon * q)).max(), 1 + hockey_stick(p, q, epsilon)

    @ledger.identity("randomized response is exactly (epsilon, 0)-DP", epsilon=EPSILON, floor=1.0,
                     share=1.0, mutant={"share": 0.9})  # fmt: skip
    def response(epsilon, share):
        p = np.array([math.exp(epsilon), 1]) / (1 + math.exp(epsilon))
        return hockey_stick(p, p[::-1], share * epsilon), 0.0

    @ledger.sweep("our item-level algorithms, on all datasets of four items", epsilon=[0.3, 2.0],
                  name=list(ITEM_LEVEL), share=1.0, mutant={"share": 0.7},
                  end_to_end=True)  # fmt: skip
    def item_level(name, epsilon, share):
        """Return the largest privacy loss over all pairs in which one item is replaced."""
        learner = ITEM_LEVEL[name][0](epsilon)
        every = itertools.product(range(5), repeat=learner.universe)
        counts = np.array([c for c in every if sum(c) == 4])
        logs = np.log(learner.pmf_of_counts(counts))
        close = np.abs(counts[:, None] - counts[None]).sum(axis=2) == 2
        return np.abs(logs[:, None] - logs[None])[close].max(), share * epsilon + ROUNDING

    @ledger.identity("our item-level algorithms, one by one", epsilon=[0.3, 2.0],
                     name=list(ITEM_LEVEL), extra=0, mutant={"extra": 1})  # fmt: skip
    def counted(name, epsilon, extra):
        """Compute a table of datasets at once; the mutant adds an item."""
        make, slowly = ITEM_LEVEL[name]
        learner, rng = make(epsilon), np.random.default_rng(0)
        counts = rng.integers(0, 6, (2, 8, learner.universe))
        found = learner.pmf_of_counts(counts)
        counts = counts + extra * np.eye(learner.universe, dtype=int)[0]
        return found, np.array([[slowly(c, epsilon) for c in row] for row in counts.tolist()])

    @ledger.identity("our heavy items, at and near the threshold", total=[0, 5, 10, 25],
                     shares=[(2, 5), (1, 2), (7, 25), (9, 10)], epsilon=1.0, extra=0,
                     mutant={"extra": 1})  # fmt: skip
    def heavy(total, shares, epsilon, extra):
        share, of = shares
        counts = [[k, total - k] for k in range(total + 1)]
        found = HeavyItems(2, epsilon, share / of).pmf_of_counts(counts)
        return found, np.array([heavy_items(c, epsilon, share + extra, of) for c in counts])

    @ledger.identity("our argmax of one to five items", universe=[1, 2, 3, 4, 5], epsilon=1.5,
                     less=0.0, mutant={"less": 0.1})  # fmt: skip
    def argmax(universe, epsilon, less):
        counts = [3, 5, 4, 5, 1][:universe]
        found = NoisyArgmax(universe, epsilon).pmf_of_counts(counts)
        return found, permute_and_flip(counts, epsilon - less)

    @ledger.identity("our alternating majority, all sequences of up to five bits",
                     size=[0, 1, 2, 5], epsilon=0.7, swap=False, mutant={"swap": True})  # fmt: skip
    def alternating(size, epsilon, swap):
        words = list(itertools.product((0, 1), repeat=size))
        learner = AlternatingMajority(epsilon)
        found = [learner.pmf(np.array(word, dtype=int)) for word in words]
        meant = [alternating_majority(word, -epsilon if swap else epsilon) for word in words]
        return np.array(found), np.array(meant)


ITEM_LEVEL = {
    "argmax": (lambda e: NoisyArgmax(3, e), permute_and_flip),
    "heavy": (lambda e: HeavyItems(3, e, 0.4), lambda c, e: heavy_items(c, e, 2, 5)),
    "majority": (noisy_majority, lambda c, e: exponential_mechanism([-c[0], -c[1]], 1, e)),
}
"""Item-level algorithms that depend on the counts of items, and slow versions of them."""


@statement("few.def-useful")
def usefulness(ledger):
    """A task T is defined by the set Psi_T(D) of correct answers for each valid unknown
    distribution D, from which the nm samples are drawn i.i.d. An algorithm A is gamma-useful for T
    if Pr_(x ~ D^(nm))[A(x) in Psi_T(D)] >= gamma for all valid D. Its user complexity is n, and
    n_m^T(epsilon, delta; gamma) denotes the smallest user complexity of any (epsilon,
    delta)-user-level DP algorithm that is gamma-useful for T. When gamma is not stated, it is
    assumed to be 2/3.

    The statement is a definition. The definition was tested exactly, over all algorithms that
    distinguish two coins. Because n + 1 users can do everything that n users can do, "smallest" is
    a threshold. The best algorithm may ignore the order of users and items, because averaging over
    all orders keeps both privacy and usefulness. For two constant sources, the best failure
    probability at delta = 0 is e^(-n epsilon/2)/2 for even n, whatever m is. So n_m is about 2
    ln(3/2)/epsilon. The number n_m is 0 if one answer is correct for all D, and infinite if no n is
    enough. The level gamma may not exceed the attainable value.
    """
    coins = {"bias": [0.7, 0.95], "epsilon": [0.2, 1.5], "delta": [0.0, 0.01]}

    @ledger.identity(
        "two constant sources, by linear programs over all algorithms", n=[2, 3, 4], m=[1, 2],
        epsilon=[0.1, 0.7, 2.0], group=1.0, mutant={"group": 0.9}, tolerance=1e-7,
    )  # fmt: skip
    def constant(n, m, epsilon, group):
        """Use the fact that, from the middle on, each user changes a probability by e^epsilon."""
        middle = 0.5 if n % 2 == 0 else 1 / (1 + math.exp(epsilon))
        found = best_test(n, m, 1.0, epsilon, 0.0)
        return found, 1 - middle * math.exp(-(n // 2) * group * epsilon)

    @ledger.sweep(
        "n + 1 users are worth at least n users",
        n=[1, 2, 3], m=[1, 2], more=1, mutant={"more": -1},
        tolerance=1e-7, **coins,
    )  # fmt: skip
    def monotone(n, m, more, bias, epsilon, delta):
        with_more = best_test(n + more, m, bias, epsilon, delta) if n + more else 0.5
        return best_test(n, m, bias, epsilon, delta), with_more

    @ledger.identity(
        "algorithms that ignore the order are as good as all algorithms", cases=[
            {"n": 1, "m": 2}, {"n": 2, "m": 1}, {"n": 2, "m": 2}, {"n": 3, "m": 1}],
        tolerance=1e-7, **coins,
    )  # fmt: skip
    def unordered(n, m, bias, epsilon, delta):
        case = (n, m, bias, epsilon, delta)
        return best_test(*case), best_test(*case, symmetric=False)


@statement("few.disp-DD", expected="ambiguous")
def discrete_distributions(ledger):
    """For the task DDk(alpha) of discrete distribution learning on domain [k] up to total variation
    distance of alpha > 0, the user complexity for the user-level DP is n_m^(DDk(alpha))(epsilon,
    delta) = Thetatilde_delta(k/(epsilon alpha sqrt(m)) + k/(alpha^2 m)).

    The paper cites the bound without a range of m. As m grows, the display tends to 0. But the case
    k = 2 includes the two constant sources. If delta is much smaller than epsilon, an (epsilon,
    delta)-DP algorithm needs about 2 ln(3/2)/epsilon users for these sources, whatever m is. At
    epsilon = 1/1000 and delta = 10^-9, the algorithm needs 811 users. Table 2 has a term 1/epsilon
    for the same bound. The term is needed if m is at least about (k/alpha)^2. Within the regime of
    few examples, m can be so large only if k/alpha is bounded. If the subscript hides any
    dependence on delta, publishing one of about 1/delta users makes the display true. If the
    subscript hides only logarithms of 1/delta, as Table 2 says, the display is false. The bounds
    themselves are cited, and were not run.
    """
    ledger.reading("any dependence on delta is hidden, and users are rounded up").sweep(
        "two constant sources: least n, against 1/(3 delta) + 1 for every epsilon and m",
        epsilon=[1e-9, 1e-6, 1e-3, 0.1, 1.0], delta=[1e-5, 1e-3, 0.05], third=1 / 3,
        mutant={"third": 0.3},
    )(bounded_by_delta)  # fmt: skip

    @ledger.reading("logarithms of 1/delta are hidden", fails=True).sweep(
        "two constant sources, k = 2: least n, against (the display + 1) log(everything)^10",
        epsilon=1e-80, delta=1e-200, alpha=0.1, m=1e300, method=Method.NUMERIC,
        lhs="users that group privacy requires", rhs="users that the display allows",
    )  # fmt: skip
    def large_m(epsilon, delta, alpha, m):
        """Use the inequality of group privacy, 2/3 <= e^(n epsilon)/3 + n e^(n epsilon) delta."""
        least = 0.99 * math.log(2) / epsilon
        display = 2 / (epsilon * alpha * math.sqrt(m)) + 2 / (alpha**2 * m)
        logarithms = math.log(m) - math.log(epsilon) - math.log(delta) - math.log(alpha)
        return least, (1 + display) * logarithms**10

    ledger.consequence(
        "A reader who uses the display for m above (k/alpha)^2 plans with too few users. Table 2 "
        "has the missing term.",
        harm="the wording",
    )


def bounded_by_delta(epsilon, delta, third):
    return least_users(epsilon, delta), math.ceil(third / delta) + 1


# --- clipping ---


@statement("few.clip")
def clipping(ledger):
    """For a, b in R such that a <= b, let clip_(a,b): R -> R denote the function with clip_(a,b)(x)
    = a if x < a, b if x > b, and x otherwise.

    The definition takes the middle value of `a`, x and `b`. If `a` equals `b`, clipping is
    constant. Clipping increases no distance between two points, which bounds the sensitivities of
    clipped scores.
    """
    values = [-math.inf, -2.0, -1.0, 0.0, 0.5, 1.0, 3.0, math.inf]

    @ledger.identity("the middle of three", x=values, a=values[1:-1], b=values[1:-1], low=1,
                     mutant={"low": 0})  # fmt: skip
    def middle(x, a, b, low):
        if a > b:
            return None
        found = a if x < a else b if x > b else x
        return found, sorted((a, x, b))[low]

    @ledger.falsify("it is a contraction", ends=Array(Interval(-2.0, 2.0), (2,)),
                    x=Interval(-5.0, 5.0), y=Interval(-5.0, 5.0), factor=1.0,
                    mutant={"factor": 0.9})  # fmt: skip
    def contraction(ends, x, y, factor):
        a, b = sorted(ends)
        return abs(np.clip(x, a, b) - np.clip(y, a, b)), factor * abs(x - y) + ROUNDING


@statement("few.clip-form")
def clipped_form(ledger):
    """The scoring function scr_h(z) = sum_(i in [n]) 1[z_i is not realizable by h] can be written
    in the form scr_h(z) = sum_(i in [n]) clip_(0,1)(card {(x, y) in z_i : h(x) != y}).

    The claim was computed exactly, over all h on three points and all users of up to three
    examples. Whether z_i is a set or a list makes no difference, because the count is clipped at 1.
    """
    examples = list(itertools.product(range(3), (0, 1)))
    every = np.array(list(itertools.product((0, 1), repeat=3)))

    @ledger.identity(
        "two users, one of them with all possible examples: our clipped errors against the number "
        "of users that are not realizable, for all h", m=[1, 2, 3], second=[0, -1], last=2,
        mutant={"last": 1}, end_to_end=True,
    )  # fmt: skip
    def forms(m, second, last):
        users = list(itertools.product(examples, repeat=m))
        data = [(first, users[second]) for first in users]
        found = [clipped_errors(z, every.tolist()) for z in data]
        return np.ravel(found), np.array([pac_score(h, z[:last]) for z in data for h in every])

    @ledger.identity("all errors count if the cap is m", m=3, mutant={"m": 2})
    def capped(m):
        users = list(itertools.product(examples, repeat=3))[::7]
        data = [(first, users[-1]) for first in users]
        found = [clipped_errors(z, every, cap=m) for z in data]
        meant = [sum(h[x] != y for user in z for x, y in user) for z in data for h in every]
        return np.ravel(found), np.array(meant)


# --- covers and packings ---


@statement("few.packcover")
def covers(ledger):
    """A family Q of distributions is an alpha-cover of a family P of distributions under distance
    measure d iff, for all P in it, there exists Q in Q such that d(Q, P) <= alpha. It is an
    alpha-packing of the family iff Q is a subset of it and for all distinct Q, Q' in Q we have d(Q,
    Q') >= alpha. The size of the cover or packing is size(Q) := log(card Q); the diameter of Q
    under distance d is max_(Q, Q' in Q) d(Q, Q').

    The statements are definitions. For points on a line, least covers and largest packings were
    computed exactly. A largest alpha-packing is an alpha-cover, so least covers are no larger than
    largest packings. No alpha-cover is smaller than a packing with distances above 2 alpha. At
    distances of exactly 2 alpha, one center can cover two points. The distance 3 alpha in Theorem
    42 avoids this case. A cover need not lie in the family. The KL-divergence is not symmetric, so
    the KL-diameter is over both orders. The letter d denotes distances, dimensions and PRDim.
    """
    lines = {"points": Array(SHARE, (6,)), "alpha": Interval(0.02, 0.5)}

    @ledger.falsify("least cover from the family, against largest packing", scale=1.0,
                    mutant={"scale": 2.0}, **lines)  # fmt: skip
    def maximal(points, alpha, scale):
        return smallest_cover(points, points, alpha), largest_packing(points, scale * alpha)

    @ledger.falsify("packings with distances above 2 alpha, against least cover", scale=2.0001,
                    mutant={"scale": 1.0}, **lines)  # fmt: skip
    def disjoint(points, alpha, scale):
        centers = np.concatenate([points - alpha, points + alpha, points])
        return largest_packing(points, scale * alpha), smallest_cover(points, centers, alpha)


def largest_packing(points, distance):
    """Return the size of a largest packing on a line.

    Starting at the left, the function takes each point that is far enough from the last taken
    point.
    """
    size, last = 0, -math.inf
    for x in np.sort(points):
        if x - last >= distance:
            size, last = size + 1, x
    return size


def smallest_cover(points, centers, alpha):
    """Return the size of a smallest cover on a line.

    Each step covers the leftmost open point with the rightmost center.
    """
    size, reached = 0, -math.inf
    for x in np.sort(points):
        if x > reached + ROUNDING:
            center = max(c for c in centers if c <= x + alpha + ROUNDING)
            size, reached = size + 1, center + alpha
    return size
