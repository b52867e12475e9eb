"""Private geometric median: Section 4.1, stable SGD and its privacy."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
from scipy.stats import binom

from algorithms.geometric_median import boosting, schedule
from algorithms.geometric_median.reference import objective
from dpaudit import AdditiveNoise, ApproxDP, NeighborPair
from dpaudit.ledger import Array, Domain, LedgerVerdict, Method, statement
from dpaudit.search import Choice, Integer, Interval
from dpaudit.stats import oracles

DELTAS = Interval(1e-12, 0.999, log=True)
UNIT = Interval(-1.0, 1.0)
ALGORITHM = {"radius": 1.0, "rho": 0.5, "delta": 0.1, "step": 0.1}


def unit(angle):
    return np.array([math.cos(angle), math.sin(angle)])


# --- the gradient and the step ---


@statement("gm.eq12")
def subgradient(ledger):
    def mean_gradient(points, z):
        """The average over i of line 12, as one step of length 1 of the algorithm shows it."""
        steps = [boosting.sgd_trajectory([x], z, [0], step=1.0)[1] for x in points]
        return np.mean(z - np.array(steps), axis=0)

    def inequality(points, z, y, slope=mean_gradient):
        lhs = float(objective(points, z) + slope(points, z) @ (y - z))
        return lhs, float(objective(points, y)) + 1e-12

    domains = [
        Domain(points=Array(UNIT, (n, d)), z=Array(UNIT, (d,)), y=Array(UNIT, (d,)))
        for n in (1, 2, 4)
        for d in (1, 2)
    ]
    ledger.falsify(
        domains,
        inequality,
        claim="its mean over i is a subgradient of f, also at a data point",
        extremal=[
            {"points": np.zeros((2, 1)), "z": np.zeros(1), "y": np.ones(1)},
            # the square of this distance loses most of its digits
            {"points": np.zeros((1, 1)), "z": np.array([2.7e-162]), "y": np.ones(1)},
        ],
        # of the squared distances, halved
        mutant=lambda points, z, y: inequality(points, z, y, lambda x, z: (z - x).mean(axis=0)),
    )


@statement("gm.alg4")
def schedule_of_the_phases(ledger):
    def printed(phases, delta, step):
        n_steps = 2**phases - 1
        plan = schedule.stable_dpsgd_parameters(
            5, 3, radius=1.0, rho=0.5, delta=delta, step=step, n_steps=max(n_steps, 7)
        )
        k = np.arange(1, plan.n_phases + 1)
        m = 3 * (plan.n_steps / 5 + math.log(8 / delta))
        sigma = 3.0**-k * (2 * m + 1) * step / math.sqrt(0.5)
        wanted = np.concatenate(
            [
                2.0**-k * (plan.n_steps + 1),
                4.0**-k * step,
                sigma,
                [1.0],
                2 * sigma[1:] * math.sqrt(3 * math.log(4 * plan.n_phases / delta)),
                [plan.n_steps],
            ]
        )
        found = [*plan.lengths, *plan.steps, *plan.sigmas, *plan.radii, sum(plan.lengths)]
        return np.log(found), np.log(wanted)

    ledger.identity(
        Domain(phases=Integer(3, 12), delta=DELTAS, step=Interval(1e-3, 10.0, log=True)),
        printed,
        claim="lengths, step sizes, noise and balls of the phases; the lengths sum to T",
    )
    ledger.note(
        "m is no integer. Line 9 centers the ball at the noisy output of phase k - 1 but takes its "
        "radius from the smaller noise of phase k: see gm.lemma13.cont."
    )


@statement("gm.rem1")
def fixed_order(ledger):
    """Passes in a fixed order, continued from phase to phase."""

    def most_accesses(n, phases):
        visits = np.arange(2**phases - 1) % n
        return int(np.bincount(visits, minlength=n).max()), math.ceil((2**phases - 1) / n)

    ledger.sweep(
        [{"n": n, "phases": k} for n in range(1, 40) for k in range(1, 11)],
        most_accesses,
        claim="no element is accessed more than ceil(T / n) times",
        mutant=lambda n, phases: (most_accesses(n, phases)[0], (2**phases - 1) // n),
    )

    def moved(points, other, row, phases, project):
        """The outputs of all phases on neighbours, with the same noise."""
        replaced = points.copy()
        replaced[row % len(points)] = other
        run = {
            **ALGORITHM,
            "center": np.zeros(points.shape[1]),
            "n_steps": 2**phases - 1,
            "project": project,
            "phase": 1,
        }
        a, b = (
            boosting.fixed_order_dpsgd_centers(data, 1, **run, rng=np.random.default_rng(1))
            for data in (points, replaced)
        )
        m = math.ceil((2**phases - 1) / len(points))
        return float(np.linalg.norm(a - b)), (2 * m + 1) * ALGORITHM["step"] / 4

    domains = [
        Domain(
            points=Array(UNIT, (n, 2)),
            other=Array(UNIT, (2,)),
            row=Integer(0, n - 1),
            phases=Integer(1, 6),
            project=Choice(("all", "first", "none")),
        )
        for n in (2, 3, 6)
    ]
    # One access each, the first of them replaced: all iterates but one move by 2 eta / 4.
    once = {
        "points": np.array([[1.0, 0.0], [-1.0, 0.0]] * 31 + [[1.0, 0.0]]),
        "other": np.array([-1.0, 0.0]),
        "row": 0,
        "phases": 6,
        "project": "all",
    }
    ledger.falsify(
        domains,
        moved,
        claim="the first phase moves by at most (2 m + 1) eta / 4, with or without projections",
        extremal=[once],
    )
    ledger.note(
        "In phase k at most ceil(T^(k) / n) accesses matter, which is less; and the order may "
        "depend on nothing but public positions."
    )


@statement("gm.lemma10")
def accesses(ledger):
    def inequality(n, phases, delta, forgotten=False):
        t = 2**phases - 1
        if t < n:
            return None
        m = 3 * (t / n + (0 if forgotten else math.log(8 / delta)))
        return binom.sf(math.floor(m), t, 1 / n), delta / 8

    ledger.falsify(
        Domain(n=Integer(1, 4000), phases=Integer(1, 20), delta=DELTAS),
        inequality,
        claim="exact binomial tail",
        extremal=[{"n": 1, "phases": 1, "delta": 0.9}, {"n": 1023, "phases": 10, "delta": 0.999}],
        mutant=lambda **case: inequality(**case, forgotten=True),  # m = 3 T / n
    )
    ledger.note("Loose: for T = n and delta = 1e-6 it allows 50 accesses, where 10 would do.")


@statement("gm.fact5")
def projections(ledger):
    def onto(x, radius):
        return x * min(1.0, radius / max(float(np.linalg.norm(x)), 1e-300))

    def inequality(x, y, radius, scale=1.0):
        a, b = onto(x, radius), scale * onto(y, radius)
        return float(np.linalg.norm(a - b)), float(np.linalg.norm(x - y))

    def box_sides(x, y, radius):
        return (
            float(np.linalg.norm(np.clip(x, -radius, radius) - np.clip(y, -radius, radius))),
            float(np.linalg.norm(x - y)),
        )

    domains = [
        Domain(
            x=Array(Interval(-3, 3), (d,)), y=Array(Interval(-3, 3), (d,)), radius=Interval(0.1, 2)
        )
        for d in (1, 2, 5)
    ]
    ledger.falsify(
        domains,
        inequality,
        claim="balls",
        mutant=lambda x, y, radius: inequality(x, y, radius, 1.5),
    )
    ledger.falsify(domains, box_sides, claim="cubes")


PLANE = Domain(
    a=Interval(1e-6, 4.0),
    b=Interval(1e-6, 4.0),
    angle=Interval(0.0, math.pi),
    eta=Interval(1e-3, 3.0, log=True),
)


def distances(a, b, angle, eta):
    """Before and after the step along two unit vectors at an angle."""
    u, v = unit(0.0), unit(angle)
    before = float(np.linalg.norm(a * u - b * v))
    return before, float(np.linalg.norm((a - eta) * u - (b - eta) * v))


@statement("gm.eq13", expected=LedgerVerdict.REFUTED)
def when_a_step_contracts(ledger):
    def square(a, b, angle, eta):
        before, after = distances(a, b, angle, eta)
        gain = 2 * eta * (a + b - eta) * (1 - math.cos(angle))
        scale = (a + b + eta) ** 2
        return 1 + (before**2 - after**2) / scale, 1 + gain / scale

    ledger.identity(PLANE, square, claim="the identity behind it", tolerance=1e-12)

    def forward(a, b, angle, eta):
        before, after = distances(a, b, angle, eta)
        return (after, before) if a + b >= eta else None

    ledger.falsify(
        PLANE,
        forward,
        claim="a + b >= eta implies contraction",
        mutant=lambda a, b, angle, eta: (
            distances(a, b, angle, eta)[::-1] if a + b >= eta / 4 else None
        ),
    )

    def backward(a, b, angle, eta):
        before, after = distances(a, b, angle, eta)
        return (eta, a + b) if after <= before else None

    parallel = Domain(**{**PLANE.parts, "angle": 0.0})
    ledger.falsify(parallel, backward, claim="contraction implies a + b >= eta")
    with ledger.repair("for eta > 0 and u != v: contraction if and only if a + b >= eta"):
        apart = Domain(**{**PLANE.parts, "angle": Interval(0.1, math.pi)})
        ledger.falsify(apart, forward)
        ledger.falsify(apart, backward, tolerance=1e-6)
    ledger.note(
        "For u = v the distance never changes. The proof's last line needs <u, v> <= 1, where the "
        "paper prints <u, v> >= 0."
    )


@statement("gm.lemma11")
def a_step_moves_apart_by_little(ledger):
    def grown(constant):
        def inequality(a, b, angle, eta):
            before, after = distances(a, b, angle, eta)
            return (after, constant * eta) if after > before * (1 + 1e-12) else None

        return inequality

    antipodal = {"a": 1e-6, "b": 1e-6, "angle": math.pi, "eta": 1.0}
    close, steps = Interval(1e-6, 1.5), Interval(1.0, 3.0)  # it grows for a + b < eta only
    near = Domain(**{**PLANE.parts, "a": close, "b": close, "eta": steps})
    ledger.falsify(
        near,
        grown(3.0),
        claim="where the distance grows, it stays below 3 eta",
        extremal=[antipodal],
        mutant=grown(1.0),  # as if one of the points stood still
    )
    with ledger.repair("norm(x' - y') <= max(norm(x - y), 2 eta): 2 is the sharp constant"):
        ledger.falsify(near, grown(2.0), extremal=[antipodal], mutant=0.9)
    ledger.note("With 2 for 3, Corollary 1 gives 2 m eta for (2 m + 1) eta.")


# --- sensitivity of trajectories ---


def trajectories(n, dimension, length):
    return Domain(
        points=Array(UNIT, (n, dimension)),
        other=Array(UNIT, (dimension,)),
        where=Array(Interval(0.0, 1.0), (length,)),
        step=Interval(0.01, 1.0, log=True),
        radius=Choice((None, 0.5, 1.0)),
    )


TRAJECTORIES = [trajectories(n, d, t) for n, d, t in ((2, 1, 4), (3, 2, 8), (4, 2, 15), (2, 2, 15))]


def two_runs(points, other, where, step, radius):
    """Return both trajectories, and how often the replaced row was drawn."""
    indices = np.minimum((where * len(points)).astype(int), len(points) - 1)
    last = len(points) - 1
    replaced = points.copy()
    replaced[last] = other
    runs = [
        boosting.sgd_trajectory(data, np.zeros(points.shape[1]), indices, step=step, radius=radius)
        for data in (points, replaced)
    ]
    return *runs, int((indices == last).sum())


TURNING = {
    "points": np.array([[0.0], [1.0]]),
    "other": np.array([-1.0]),
    "where": np.full(4, 0.9),
    "step": 0.1,
    "radius": None,
}


# Two rows at +v and -v, so close to the start that the squares of the distances underflow.
SMALL = np.array([2.7e-162, 1.57e-162])
UNDERFLOW = {
    "points": np.array([[1.0, 0.0], SMALL]),
    "other": -SMALL,
    "where": np.array([0.9]),
    "step": 0.1,
    "radius": None,
}


@statement("gm.cor1")
def sensitivity_of_iterates(ledger):
    def inequality(points, other, where, step, radius, extra=1):
        a, b, m = two_runs(points, other, where, step, radius)
        return float(np.linalg.norm(a - b, axis=-1).max()), (2 * m + extra) * step

    ledger.falsify(
        TRAJECTORIES,
        inequality,
        claim="(2 m + 1) eta",
        extremal=[TURNING, UNDERFLOW],
        # as if each access moved an iterate by eta, and not by 2 eta
        mutant=lambda **case: (inequality(**case)[0], inequality(**case, extra=0)[1] / 2),
    )
    ledger.falsify(
        TRAJECTORIES,
        lambda **case: inequality(**case, extra=0),
        claim="2 m eta is enough",
        extremal=[TURNING, UNDERFLOW],
        tolerance=1e-9,
    )
    ledger.note("Sharp is 2 m eta: a point is replaced by one on the other side, at every access.")


@statement("gm.cor1.avg")
def sensitivity_of_the_average(ledger):
    def inequality(points, other, where, step, radius):
        a, b, m = two_runs(points, other, where, step, radius)
        return float(np.linalg.norm((a - b)[:-1].mean(axis=0))), (2 * m + 1) * step

    def half(**case):
        lhs, rhs = inequality(**case)
        return lhs, rhs / 4

    ledger.falsify(TRAJECTORIES, inequality, extremal=[TURNING], mutant=half)

    def by_position(position, length):
        """One access: only the iterates after it move, by 2 eta at most."""
        case = {**TURNING, "where": np.where(np.arange(length) == position, 0.9, 0.1)}
        a, b, _ = two_runs(**case)
        found = float(np.linalg.norm((a - b)[:-1].mean(axis=0)))
        return found, 2 * 0.1 * (length - 1 - position) / length

    ledger.sweep(
        [{"position": p, "length": t} for t in (2, 4, 8) for p in range(t)],
        by_position,
        claim="one access at position p of T moves the average by at most 2 eta (T - 1 - p) / T",
        method=Method.NUMERIC,
    )
    ledger.note("A last access never shows: the average leaves out the last iterate.")


# --- privacy ---


@statement("gm.lemma12")
def privacy_of_stable_dpsgd(ledger):
    """All K phases conditioned on few accesses are one Gaussian mechanism of 9 rho / 14 zCDP."""

    def exact(epsilon, delta, phases, rho=schedule.stable_dpsgd_rho):
        spent = sum((9 / 16) ** k * rho(epsilon, delta) / 2 for k in range(1, phases + 1))
        conditioned = float(oracles.gaussian(math.sqrt(2 * spent), 1.0).delta(epsilon))
        return conditioned + (1 + math.exp(epsilon)) * delta / 8, delta

    ledger.falsify(
        Domain(epsilon=Interval(1e-3, 1.0, log=True), delta=DELTAS, phases=Integer(1, 30)),
        exact,
        claim="worst case of the proof",
        # the conversion from epsilon-DP to zCDP, the other way round
        mutant=lambda **case: exact(**case, rho=lambda epsilon, delta: epsilon**2 / 2),
    )

    def conversion(epsilon, delta):
        rho = schedule.stable_dpsgd_rho(epsilon, delta)
        alpha = 2 * math.log(2 / delta) / epsilon + 1
        return alpha * rho + math.log(2 / delta) / (alpha - 1), epsilon

    ledger.falsify(
        Domain(epsilon=Interval(1e-3, 1.0, log=True), delta=DELTAS),
        conversion,
        claim="the conversion at the proof's order",
    )

    # The first phase costs 9/16 of all that is spent; its noise is integrated out.
    users, delta = 5, 1e-3
    rho = schedule.stable_dpsgd_rho(1.0, delta)
    options = {"radius": 10.0, "rho": rho, "step": 1.0, "n_steps": 255, "delta": delta}
    plan = schedule.stable_dpsgd_schedule(users, 1, **options)
    centers = functools.partial(boosting.stable_dpsgd_centers, phase=1, center=[0.0], **options)
    ledger.audit(
        AdditiveNoise(centers, "gaussian", plan.sigmas[0]),
        ApproxDP(1.0, delta),
        NeighborPair(
            1e6 * np.array([[-1.0], [-1], [1], [1], [1]]),
            1e6 * np.array([[-1.0], [-1], [1], [1], [-1]]),
        ),
        # noise for one access of each row
        mutants=[
            AdditiveNoise(centers, "gaussian", plan.sigmas[0] * 3 / (2 * plan.accesses[0] + 1))
        ],
        draws=20_000,
    )
    ledger.note("Loose: the printed noise costs 9 rho / 14, and m is about twice what is needed.")


@statement("gm.lemma12.sum")
def sum_over_phases(ledger):
    def partial(phases):
        total = sum(Fraction(9, 16) ** k for k in range(1, phases + 1)) / 2
        return total, Fraction(1)

    ledger.sweep(
        [{"phases": k} for k in range(1, 80)],
        partial,
        claim="partial sums, in units of rho",
        exact=partial,
    )
    ledger.note("The sum is 9 rho / 14: the noise could be a fifth smaller.")


FORMER = True
