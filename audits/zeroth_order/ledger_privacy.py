"""Zeroth-order: the privacy of Corollary 4.4 and of Theorem 4.9."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from algorithms.zeroth_order import accounts, printed, scaled
from algorithms.zeroth_order.plans import Naive, Plan, VarianceReduced
from audits.zeroth_order import transcribed
from audits.zeroth_order.audit_algorithms import RHO, path, plan, run, transcript
from audits.zeroth_order.conventions import LIPSCHITZ, ROUNDS, UNIT
from audits.zeroth_order.worst_cases import flipped
from dpaudit import GaussianDP, Relation
from dpaudit.ledger import statement
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array

REPLACE = Relation.REPLACE_USER
MANY = range(2, 513)


def nodes_times(rounds, first, later):
    """Return max_q s_q sqrt(number of nodes in use up to `rounds` that contain q).

    The function walks up from q.
    """
    most = 0.0
    for q in range(1, rounds + 1):
        count, b = 0, q
        while b <= rounds:
            count, b = count + 1, b + (b & -b)
        most = max(most, (first if q == 1 else later) * math.sqrt(count))
    return most


def settings(T, B_1, B_2, d=3, L=2.0, rho=0.7):
    """Return s_1, the bound on s_t, the printed sigma, and rho."""
    sigma = math.sqrt(2 * math.log(T)) * 4 * d * L / (B_2 * T * rho)
    return 2 * d * L / B_1, 4 * d * L / (B_2 * T), sigma, rho


def any_learner(T, oracle):
    """Return a plan for learners that need not begin with Delta_1 = 0."""
    return Plan(T, 1, 5.0, 5.0 / T, 1.0, oracle, first_step_is_zero=False)


@statement("zoo.cor4.4", expected="holds_proof_broken")
def private_oracle(ledger):
    """Suppose f(x, z) is differentiable and L-Lipschitz in x, the domain of A is bounded by D =
    delta/T, and B_1 >= T B_2/2. Then for any alpha > 1, rho > 0 Algorithm 3 is (alpha, alpha
    rho^2/2)-RDP if the noises in the tree mechanism are set to sigma_t = sigma := sqrt(2 ln T) 4 d
    L/(B_2 T rho).

    The claim is true for the output and for all x, w and Delta. The learner A is restarted after
    each epoch. So nothing depends on g~_T if eta does not depend on g~_T. Among T - 1 noisy
    gradients, at most floor(log2(T - 1)) + 1 <= 2 ln T noisy nodes contain an item. The bound is
    tightest at T = 5, where the exact parameter is .965 rho. For large T, the exact parameter is
    .85 rho. The proof releases all T gradients. If all T gradients are released, the exact
    parameter is 1.2011 rho at T = 2 and 1.0402 rho at T = 4. These values hold for d = 1, B_1 = T
    B_2/2 and a slope that changes its sign. For all other T, the proof is correct. At T = 1, sigma
    is 0, so g~_1 is released without noise. In this case, the output is x_1 for all data if Delta_1
    does not depend on the data. For d >= 2, the sensitivities are attained only with probability 0,
    because the directions are hidden. The printed noise is not "the minimal noise" (Section 4.2).
    For all learners and B_1 = T B_2/2, the factor sqrt(floor(log2(T - 1)) + 1) is exactly enough in
    place of sqrt(2 ln T). If Delta_1 = 0 and B_1 = T + 1, smaller noise is enough. At T = 2, a
    third of this noise is enough. At T = 3, .375 of this noise is enough.
    """

    @ledger.sweep("all sensitivities attained, all learners", T=MANY, B_2=[1, 4], factor=1.0,
                  mutant={"factor": 0.96}, end_to_end=True)  # fmt: skip
    def output(T, B_2, factor):
        first, later, sigma, rho = settings(T, T * B_2 / 2, B_2)
        return nodes_times(T - 1, first, later) / sigma, factor * rho

    @ledger.identity("by `accounts`", T=MANY, tolerance=1e-9, rounds=1, mutant={"rounds": 0})
    def accounted(T, rounds):
        first, later, sigma, _ = settings(T, math.ceil(T / 2), 1)
        made = any_learner(T, VarianceReduced(math.ceil(T / 2), 1, sigma))
        found = accounts.output_gdp(made, 3, 2.0)
        return found, nodes_times(T - rounds, first, later) / sigma

    domain = {"way": Array(UNIT, ("T", 2)), "T": Integer(2, 9), "sigma": Interval(0.1, 3.0)}
    domain |= {"L": Interval(0.1, 3.0), "radius": Interval(0.5, 3.0), "tolerance": 1e-9}

    @ledger.identity("along any path, by `accounts`", two=2, mutant={"two": 3}, **domain)
    def along(way, T, sigma, L, radius, two):
        moves = [math.dist(way[t], way[t - 1]) for t in range(1, T)]
        s = transcribed.sensitivity(T, 2, L, 3, two, radius, moves)
        oracle = VarianceReduced(3, 2, sigma)
        found = accounts.path_gdp(oracle, points=way, radius=radius, lipschitz=L)
        return found, transcribed.tree_parameter(s, sigma, T)

    @ledger.identity("all gradients, or all but the last", T=range(1, 12), first=[True, False],
                     last=0, mutant={"last": 1}, tolerance=1e-9)  # fmt: skip
    def runs(T, first, last):
        """With Delta_1 = 0, the first move is at most D; all others are at most 2 D."""
        made = Plan(T, 2, 5.0, 0.4, 1.0, VarianceReduced(9, 2, 0.7), first_step_is_zero=first)
        moves = [0.4 if first and t == 0 else 0.8 for t in range(T - 1)]
        s = transcribed.sensitivity(T, 3, 2.0, 9, 2, 5.0, moves)
        lines = [transcribed.tree_parameter(s, 0.7, n) if n else 0.0 for n in (T, T - 1 - last)]
        found = [accounts.transcript_gdp(made, 3, 2.0), accounts.output_gdp(made, 3, 2.0)]
        return found, lines

    @ledger.identity("the least noise for rho, by `scaled.calibrated`", T=range(2, 12),
                     covers=["output", "transcript"], rho=0.7, mutant={"rho": 0.8})  # fmt: skip
    def calibrated(T, covers, rho):
        made = Plan(T, 2, 5.0, 0.4, 1.0, VarianceReduced(9, 2, 0.0), first_step_is_zero=False)
        made = scaled.calibrated(made, 3, rho=0.7, lipschitz=2.0, covers=covers)
        s = transcribed.sensitivity(T, 3, 2.0, 9, 2, 5.0, [0.8] * (T - 1))
        last = T if covers == "transcript" else T - 1
        return transcribed.tree_parameter(s, made.oracle.sigma, last), rho

    @ledger.sweep("without noise, nothing is promised", oracle=[
        VarianceReduced(9, 2, 0.0), Naive(2, 0.0)], least=1e300, mutant=quiet)  # fmt: skip
    def without(oracle, least):
        made = Plan(3, 2, 5.0, 0.4, 1.0, oracle)
        one = accounts.path_gdp(oracle, points=np.eye(3), radius=1.0, lipschitz=1.0)
        return least, min(one, accounts.transcript_gdp(made, 3, 2.0))

    less = ledger.sharper("with Delta_1 = 0 and B_1 = T + 1: .376 of that at T = 2 and 3")

    @less.sweep("by `accounts`", T=[2, 3], factor=0.376, mutant={"factor": 0.374})
    def fewer(T, factor):
        _, later, sigma, _ = settings(T, T + 1, 1)
        made = Plan(T, 1, 5.0, 5.0 / T, 1.0, VarianceReduced(T + 1, 1, sigma))
        enough = later / sigma * math.sqrt((T - 1).bit_length())
        return accounts.output_gdp(made, 3, 2.0), factor * enough

    ledger.step(
        "it suffices that (g~_1, ..., g~_T) is (alpha, alpha rho^2/2)-RDP",
        fix="The output depends on g~_1, ..., g~_(T-1) only; floor(log2(T - 1)) + 1 <= 2 ln T.",
    ).sweep(
        "T = 2, 4: exact parameter in d = 1", T=[2, 4], B_2=1, rho=1.0,
        lhs="exact parameter of (g~_1, ..., g~_T)", rhs="rho",
    )(released)  # fmt: skip
    ledger.step("the same for other T").sweep(
        "T = 3 and from 5 on", T=[3, *range(5, 513)], B_2=1, rho=1.0, mutant=0.85
    )(released)
    ledger.edge("T, n and t are at least 2").sweep(
        "T = 1: no noise", T=[1], lhs="the sigma^2 that g~_1 needs, over (4 d L/(B_2 rho))^2",
        rhs="the printed 2 ln T",
    )(no_noise)  # fmt: skip

    sigma = printed.corollary_4_4_sigma(2, 1, 1, rho=RHO, lipschitz=1.0)
    two = plan(2, sigma=sigma)
    ledger.audit(
        run(two), GaussianDP(RHO, REPLACE, "zeroth_order Corollary 4.4"), flipped(2, 0),
        draws=4_000,
        survivors="The output depends only on the noise of g~_1. In d = 1, s_t and the directions "
        "protect no user. 3,000 draws detect .5 of the noise, and 30,000 detect .7.",
    )  # fmt: skip
    many = plan(8, sigma=printed.corollary_4_4_sigma(8, 1, 1, rho=RHO, lipschitz=1.0)).oracle
    ledger.audit(
        transcript(many, 8), GaussianDP(RHO, REPLACE, "zeroth_order Corollary 4.4"),
        [flipped(many.first_batch + 7, q) for q in (0, many.first_batch + 1)],
        draws=1_000, mutants=[transcript(many, 8, noise=0.85)],
        survivors="Directions protect no user in d = 1.",
    )  # fmt: skip
    ledger.consequence(
        "The mistake affects users who release all noisy gradients of an epoch with T = 2 or 4 "
        "rounds.",
        harm="privacy",
    )


def quiet(oracle, least):
    """Give the mutant of `without` some noise."""
    return least, accounts.path_gdp(
        replace(oracle, sigma=1.0), points=np.eye(3), radius=1.0, lipschitz=1.0
    )


def no_noise(T):
    return 1.0, 2 * np.log(T)


def released(T, B_2, rho):
    """Change the sign of one slope along a given path, for d = L = 1 and B_1 = T B_2 / 2."""
    sigma = np.sqrt(2 * np.log(T)) * 4 / (B_2 * T * rho)
    moved = 2 / (T * B_2 / 2)  # of g_1, so of all g_t
    B = np.zeros((T, T))
    for t in range(1, T + 1):
        b = t
        while b:
            B[t - 1, b - 1], b = 1, b & (b - 1)
    return np.linalg.norm(solve_triangular(B * sigma, np.full(T, moved), lower=True)), rho


@statement("zoo.cor4.4.s")
def sensitivities(ledger):
    """The sensitivity of M^(1) is bounded by s_1 = 2 d L/B_1, that of M^(i) by s_i = (2 d L/(B_2
    delta)) norm(w_i^k - w_(i-1)^k) <= 4 d L/(B_2 T) for all i >= 2. Since B_1 >= T B_2/2, it holds
    that s_1 <= s_t for all t >= 2.

    The claim holds if the symbol s_t denotes the bound on the sensitivity s_t. At B_1 = T B_2/2,
    the claim is an equality. If two successive points are equal, s_t is 0, which is below s_1. If
    Delta_1 = 0, s_2 is half as large. The last line of the proof has i <= n instead of i <= b, and
    n instead of T.
    """

    @ledger.falsify("s_1 against 4 d L/(B_2 T)", T=ROUNDS, B_2=Integer(1, 1000), more=Integer(0, 9),
                    L=LIPSCHITZ, d=Choice((1, 2, 10)), half=2, mutant={"half": 2.1},
                    extremal=[{"T": 2, "B_2": 1, "more": 0, "L": 1.0, "d": 1}])  # fmt: skip
    def first(T, B_2, more, L, d, half):
        B_1 = -(-T * B_2 // 2) + more
        return half * d * L / B_1, 4 * d * L / (B_2 * T)

    @ledger.identity("s_1, ..., s_T by `accounts`", T=range(2, 20), moves=2.0, tolerance=1e-12,
                     mutant={"moves": 1.0})  # fmt: skip
    def all_of_them(T, moves):
        made = any_learner(T, VarianceReduced(T, 3, 1.0))
        found = accounts.epoch_sensitivities(made, 4, 2.0)
        return found, np.r_[2 * 4 * 2.0 / T, np.full(T - 1, moves * 2 * 4 * 2.0 / (3 * T))]


@statement("zoo.thm4.9.priv")
def privacy_of_the_theorem(ledger):
    """With the settings of Theorem 4.9, B_1 = T + 1, B_2 = 1, D = delta/T and sigma_t as defined in
    Corollary 4.4, the output of Algorithm 3 is (alpha, alpha rho^2/2)-RDP, for any alpha > 1 and
    rho > 0.

    The claim is true, and is even true for all noisy gradients together. The reason is that B_1 = T
    + 1 is twice the B_1 that Corollary 4.4 requires. An item of the first batch moves g_1 by half
    as much as sigma allows. The bound is tightest at every power of 2, where the exact parameter is
    rho/sqrt(2 ln 2) = .849 rho. Exact parameters are computed for T = 2 to 512. For T = 1, see
    Corollary 4.4.
    """

    @ledger.sweep("all noisy gradients, all learners", T=MANY, factor=1.0, mutant={"factor": 0.84},
                  end_to_end=True)  # fmt: skip
    def transcripts(T, factor):
        first, later, sigma, rho = settings(T, T + 1, 1)
        return nodes_times(T, first, later) / sigma, factor * rho

    sigma = printed.corollary_4_4_sigma(2, 1, 1, rho=RHO, lipschitz=1.0)
    made = plan(2, first_batch=3, sigma=sigma)
    ledger.audit(
        run(made), GaussianDP(RHO, REPLACE, "zeroth_order Theorem 4.9"),
        flipped(made.n_points, 0), draws=8_000,
        survivors="Half of the noise is enough for the first batch, and for Delta_1 = 0.",
    )  # fmt: skip
    ledger.sharper("the printed path, at the exact parameter").audit(
        transcript(plan(4, first_batch=5).oracle, 4),
        GaussianDP(
            accounts.path_gdp(plan(4, first_batch=5).oracle, points=path(4), radius=1.0,
                              lipschitz=1.0),
            REPLACE, "zeroth_order Theorem 4.9, exact",
        ),
        [flipped(8, 0), flipped(8, 6)], draws=1_000,
        survivors="Directions protect no user in d = 1.",
    )  # fmt: skip
