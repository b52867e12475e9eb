"""User-level DP-SCO: claims about Hessians, projections and robust statistics."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import gamma

from algorithms.user_level_sco.coordinatewise import robust_gradient, robust_statistic
from algorithms.user_level_sco.domains import Box
from audits.user_level_sco.conventions import SHARE, UNIT
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

ROUNDING = 1e-12


def row_excess(hessian):
    """Return the sum of the worst row beside the diagonal, and its entry on the diagonal.

    The diagonal is not negative, as the losses are convex.
    """
    own = np.diag(hessian)
    off = np.abs(hessian).sum(axis=1) - own
    worst = (off - own).argmax()
    return off[worst], own[worst]


ROWS = {"lhs": "sum of a row beside the diagonal", "rhs": "its diagonal entry"}


# --- diagonal dominance ---


@statement("sco2.C1.block", expected="ambiguous")
def block_diagonal(ledger):
    """The diagonal dominance assumption appears in various contexts, including heavy-tailed
    optimization and neural network analysis, where Hessians are often diagonal or block-diagonal.

    A diagonal Hessian is diagonally dominant. A block-diagonal Hessian need not be. The block [[1,
    2], [2, 4]] is convex, and its first row has 1 < 2. It is the direction of the block of a neuron
    with the input (1, 2). A block c x x^T is dominant only if x has at most two nonzero entries,
    which have equal size. The losses of the paper are also convex, and losses of neural networks
    are not. We have not read the cited papers.
    """

    @ledger.reading("a block-diagonal Hessian satisfies Assumption 22", fails=True).sweep(
        "the block x x^T of a neuron with input (1, 2)", first=1.0, second=2.0, **ROWS
    )
    def block(first, second):
        x = np.array([first, second])
        hessian = np.outer(x, x)
        return abs(hessian[0, 1]), hessian[0, 0]

    @ledger.reading("a diagonal Hessian satisfies Assumption 22").falsify(
        "convex functions of single coordinates", diagonal=Array(SHARE, ("d",)), mixed=0.0,
        d=Choice((1, 2, 5)), mutant={"mixed": 1.0}, extremal=[{"diagonal": np.zeros(2)}],
    )  # fmt: skip
    def single(diagonal, mixed):
        """Compare both sides.

        The mutant adds the same entry to all places beside the diagonal.
        """
        off, own = row_excess(np.diag(diagonal) + mixed * (1 - np.eye(len(diagonal))))
        return off, own + ROUNDING


@statement("sco1.sec2.nn", expected="ambiguous")
def one_hidden_layer(ledger):
    """In the case of 1-hidden layer neural networks (a common focus of the NTK line of work), the
    Hessian is diagonal.

    The Hessian of the output of the network is diagonal, if the input is a number and the outer
    weights are fixed. The Hessian of the squared loss is not diagonal, and not diagonally dominant.
    Assumption 2.5 is about losses. At a perfect fit, the Hessian of the squared loss is the outer
    product of the gradient with itself. With three neurons at w = (.1, .2, .3), its second row has
    .308 on the diagonal, and .610 next to it. If the input has two entries, each neuron has a block
    of 2 x 2.
    """

    @ledger.reading("of the squared loss", fails=True).sweep(
        "tanh neurons with w = (.1, .2, .3), input 1, at a perfect fit", step=0.1, neurons=3, row=1,
        **ROWS,
    )  # fmt: skip
    def loss(step, neurons, row):
        w = step * np.arange(1, neurons + 1)
        slope = (1 - np.tanh(w) ** 2) / np.sqrt(neurons)
        hessian = np.outer(slope, slope)
        return abs(hessian[row]).sum() - hessian[row, row], hessian[row, row]

    @ledger.reading("of the output, for a scalar input and fixed outer weights").falsify(
        "against differences of gradients", w=Array(Interval(-2.0, 2.0), ("p",)),
        p=Choice((2, 3, 5)), inputs=1, mutant={"inputs": 2},
        extremal=[{"w": np.array([0.5, -0.5, 1.0])}],
    )  # fmt: skip
    def output(w, inputs):
        """Compare the entries beside the diagonal with 0.

        The mutant gives the weights in pairs to neurons with the input (1, 2).
        """
        x = np.resize([1.0, 2.0], len(w)) if inputs == 2 else np.ones(len(w))
        groups = np.arange(len(w)) // inputs

        def gradient(w):
            total = np.bincount(groups, w * x)[groups]
            return (1 - np.tanh(total) ** 2) * x / math.sqrt(len(w))

        step = 1e-5 * np.eye(len(w))
        hessian = np.array([(gradient(w + e) - gradient(w - e)) / 2e-5 for e in step])
        return row_excess(hessian - np.diag(np.diag(hessian)))[0], 1e-8


@statement("sco2.appD.dd-necessary")
def dominance_is_needed(ledger):
    """The contractivity of gradient descent plays a crucial role, for which we need the Hessians to
    be diagonally dominant: for f(x) = x^T H x/2 with H positive semidefinite, norm_inf(I - eta H)
    <= 1 for some eta > 0 only if H is diagonally dominant.

    The converse is Lemma 27. So the assumption cannot be weakened for quadratics. If row j is not
    dominant, this row of I - eta H has the norm 1 + eta (sum of the row beside the diagonal -
    H_jj), for small eta. For H = [[1, 2], [2, 4]], the norms are 1.01, 1.10 and 1.33 at eta = .01,
    .1 and 1/3.
    """

    @ledger.falsify(
        "the norm of the worst row", factor=Array(UNIT, (3, 3)), eta=Interval(1e-3, 3.0, log=True),
        times=1.0, mutant={"times": 1.5}, extremal=[
            {"factor": np.array([[1.0, 2.0, 0.0], [0, 0, 0], [0, 0, 0]]) / 2, "eta": 0.1}],
    )  # fmt: skip
    def expands(factor, eta, times):
        hessian = factor.T @ factor
        off, own = row_excess(hessian)
        if off <= own:
            return None
        return 1 + times * eta * (off - own), np.abs(np.eye(3) - eta * hessian).sum(
            axis=1
        ).max() + ROUNDING


@statement("sco2.lemma33.projection")
def projection_on_a_box(ledger):
    """The projection operator to the same convex set is contractive in l_2- and l_inf-norm in our
    case, in which the set is the box X = B_inf(0, D).

    The projection on a box clips each coordinate. For other convex sets, the Euclidean projection
    may expand distances in l_inf. On the line through (2, 1), the point (1, 1) goes to (1.2, .6).
    """
    pair = {"x": Array(Interval(-3.0, 3.0), (2,)), "y": Array(Interval(-3.0, 3.0), (2,))}
    ends = {"x": np.ones(2) / 2, "y": np.zeros(2)}

    @ledger.falsify("D = 1, both norms", order=Choice((2.0, math.inf)), box=True,
                    extremal=[{**ends, "order": order} for order in (2.0, math.inf)],
                    mutant={"box": False}, **pair)  # fmt: skip
    def contractive(x, y, order, box):
        """Compare distances after and before the projection.

        The mutant projects on the line through (2, 1).
        """
        line = np.array([2.0, 1.0]) / math.sqrt(5)
        left, right = (
            Box(1.0).project(np.array([z]))[0] if box else (z @ line) * line for z in (x, y)
        )
        return np.linalg.norm(left - right, order), np.linalg.norm(x - y, order) + ROUNDING


# --- robust statistics ---


@statement("sco2.C1.bias")
def bias_of_the_median(ledger):
    """While robust statistics control sensitivity effectively, they can introduce bias even in
    well-behaved datasets.

    The median of i.i.d. users' means of m exponential variables with mean 1 is too small by about
    1/(3m). The bias is .307, .161, .033 and .0033 at m = 1, 2, 10 and 100. The statistical error
    1/sqrt(nm) is smaller if m < n/9. The first version says that the bias "can dominate", which is
    true for such m. Exponential variables are not bounded. For bounded gradients that are 1 with
    probability .1 and else 0, the median of the means of m = 9 items is 1/9, and the mean is .1.
    """

    @ledger.falsify("mean less median of m exponential variables, many users", m=Integer(1, 5000),
                    least=0.3, mutant={"least": 0.4}, extremal=[{"m": 1}, {"m": 1000}])  # fmt: skip
    def skewed(m, least):
        return least / m, 1 - gamma.median(m) / m


@statement("sco2.C1.debias")
def clipped_mean(ledger):
    """If the empirical mean and the robust statistic are sufficiently close in a given coordinate,
    we use the mean directly; otherwise, we project the mean onto a ball centered at the robust
    statistic. This preserves both the 1-Lipschitz property and unbiasedness when the dataset is
    well-concentrated.

    The result is 1-Lipschitz for all data, by Lemma 31. It is exactly unbiased only if the mean and
    the statistic are almost surely close. Otherwise the bias is at most 2G times the probability
    that they are not.
    """
    domain = {"data": Array(Interval(-3.0, 3.0), ("b", 1)), "b": Choice((3, 4, 7))}
    far = {"data": np.array([[3.0], [-3.0], [-3.0]]), "move": np.ones((3, 1))}

    @ledger.falsify("moves by at most 1 in each user", move=Array(UNIT, ("b", 1)), part=1.0,
                    clip=Interval(0.0, 2.0), extremal=[{**far, "clip": 0.5}],
                    mutant={"part": 0.9}, **domain)  # fmt: skip
    def lipschitz(data, move, clip, part):
        ends = [robust_gradient(x, clip=clip)[0] for x in (data, data + move)]
        return abs(ends[0] - ends[1]), part * np.abs(move).max() + ROUNDING

    @ledger.identity("the mean, if it is within the clipping distance of the median", more=1.0,
                     mutant={"more": 0.5}, extremal=[{"data": far["data"]}], **domain)  # fmt: skip
    def mean(data, more):
        apart = abs(data.mean() - np.median(data))
        return robust_gradient(data, clip=more * apart + ROUNDING)[0], data.mean()


@statement("sco1.sec1.2.one-dim")
def stability_in_one_dimension(ledger):
    """The robust statistic computed from {q_t(Z_i)} moves by at most beta abs(x_t - x'_t) from the
    1-Lipschitz property. As a result, the desired stability is naturally established in the
    one-dimensional setting: abs(x_t - x'_t) does not increase.

    The stability holds for the median, convex losses and eta <= 2/beta. The two facts that the
    overview names are not enough. They give only a growth by the factor 1 + eta beta in each step.
    The statistic -median is also 1-Lipschitz. For f = x^2/2 and eta = .5, it turns a distance of 1
    into 1.5. Lemma 33 uses that the statistic commutes with q -> x - eta q, and that the step of
    each user is contractive.
    """
    domain = {"bends": Array(SHARE, ("b",)), "centers": Array(Interval(-3.0, 3.0), ("b",))}
    domain |= {"x": UNIT, "y": UNIT, "b": Choice((1, 3, 4, 7)), "share": SHARE}

    @ledger.falsify(
        "quadratics of users, beta = 1, eta <= 2", sign=1.0, mutant={"sign": -1.0},
        extremal=[{"bends": np.ones(3), "centers": np.zeros(3), "x": 1.0, "y": 0.0, "share": 0.5}],
        **domain,
    )  # fmt: skip
    def stable(bends, centers, x, y, share, sign):
        """Compare the distance after and before a step of length 2 share."""
        ends = [
            at - 2 * share * sign * robust_statistic((bends * (at - centers))[:, None])[0]
            for at in (x, y)
        ]
        return abs(ends[0] - ends[1]), abs(x - y) + ROUNDING
