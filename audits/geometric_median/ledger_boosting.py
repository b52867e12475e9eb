"""Private geometric median: Section 4.1, stable SGD and its privacy."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.stats import binom

from algorithms.geometric_median import _sgd, boosting, schedule
from audits.geometric_median import transcribed
from audits.geometric_median.conventions import ANY_DELTA, EPSILON, NOISE, UNIT, noise_option
from dpaudit import ApproxDP, NeighborPair
from dpaudit.ledger import statement
from dpaudit.mutants import Change
from dpaudit.neighbors import Choice, Integer, Interval
from dpaudit.properties import Array
from dpaudit.stats import oracles
from mutants import geometric_median as mutants

FAR = 1e6  # a point at this distance pulls all iterates in the same direction
RUN = {"radius": 1.0, "rho": 0.5, "delta": 0.5, "step": 1.0}
ONE_MENDS = "No user is affected: one added sentence fixes the proof."


class Phases(np.random.Generator):
    """Generator that tracks phases, so that tests can set or scale the draws of each phase."""

    def __init__(self, rng, rows=None, noise=(), factors=None):
        super().__init__(rng.bit_generator)
        self.rows, self.noise, self.factors = rows, noise, factors or {}
        self.scales, self.taken = [], 0

    def integers(self, high, size):
        """Draw the rows of a phase."""
        if self.rows is None:
            return super().integers(high, size=size)
        self.taken += size[0]
        return np.broadcast_to(self.rows[self.taken - size[0] : self.taken, None], size)

    def normal(self, scale, size):
        """Draw the noise of a phase."""
        phase = len(self.scales) + 1
        self.scales.append(scale * self.factors.get(phase, 1.0))
        if phase <= len(self.noise):
            return np.broadcast_to(self.noise[phase - 1], size)
        return super().normal(scale=self.scales[-1], size=size)


def quiet(phase):
    """Remove the noise of one phase."""

    def apply(mechanism):
        return lambda data, size, *, rng: mechanism(data, size, rng=Phases(rng, factors={phase: 0}))

    return Change(f"no noise in phase {phase}", apply)


def increments(mechanism, **options):
    """Return a mechanism whose outputs are the differences between successive phases."""

    def outputs(data, size, *, rng):
        found = mechanism(data, size, transcript=True, center=[0.0], **options, rng=rng)
        return np.diff(found[:, :, 0], axis=1, prepend=0.0)

    outputs.__name__ = mechanism.__name__
    return outputs


def moves(centers, points, other, row, outputs, rows=None, factors=None, **options):
    """Return how far one row moves the average of each phase, and the noise scale of each phase.

    The outputs of earlier phases are given.
    """
    replaced = points.copy()
    replaced[row] = other
    options |= {"n_steps": 2 ** len(outputs) - 1, "center": np.zeros(points.shape[1])}
    found = []
    for data in (points, replaced):
        noise, averages = [], []
        for phase, output in enumerate(outputs, 1):
            rng = Phases(np.random.default_rng(0), rows, noise, factors)
            averages.append(centers(data, 1, phase=phase, rng=rng, **options)[0])
            noise.append(output - averages[-1])
        found.append(np.array(averages))
    return np.linalg.norm(found[0] - found[1], axis=1), np.array(rng.scales)


def crowd(n, phases, row):
    """Return points that lie far on the left, except point `row`.

    The point `row` lies far on the right, and a point far on the left replaces the point `row`.
    """
    points = np.full((n, 1), -FAR)
    points[row] = FAR
    return {"points": points, "other": np.array([-FAR]), "outputs": np.zeros((phases, 1))}


def at_worst(n, phases, phase, **options):
    """Return the moves, the noise scales, and the number of draws of row n - 1.

    Row n - 1 is drawn as often as m allows. The draws start at the first step of `phase`.
    """
    rows = np.zeros(2**phases - 1, dtype=int)
    begin = len(rows) + 1 - 2 ** (phases - phase + 1)
    m = math.floor(3 * (len(rows) / n + math.log(8 / RUN["delta"])))
    rows[begin : begin + m] = n - 1
    run = {**RUN, "project": "none", **options, **crowd(n, phases, -1), "rows": rows, "row": -1}
    moved, scales = moves(boosting.stable_dpsgd_centers, **run)
    return moved, scales, int((rows == n - 1).sum())


WORST = [{"n": 127, "phases": 7, "phase": phase} for phase in (1, 2)]
WORST += [{"n": 2, "phases": 5, "phase": 1}]


# --- the gradient and the algorithm ---


@statement("gm.eq12")
def subgradient(ledger):
    """For a uniformly random i in [n], (z - x_i) / norm(z - x_i), taken as 0 where z = x_i, is
    unbiased for a subgradient of f at z.

    The check uses the steps of the implementation. Some steps start at a data point or very close
    to a data point.
    """
    extremal = [
        {"points": np.zeros((2, 1)), "z": np.zeros(1), "y": np.ones(1)},
        # The square of this distance loses most of its digits.
        {"points": np.zeros((1, 1)), "z": np.array([2.7e-162]), "y": np.ones(1)},
    ]
    vectors = {name: Array(UNIT, ("d",)) for name in "zy"} | {"n": Choice((1, 2, 4))}
    domain = {"points": Array(UNIT, ("n", "d")), "d": Choice((1, 2)), **vectors}

    @ledger.falsify(
        "the mean over i", squared=False, extremal=extremal, mutant={"squared": True}, **domain
    )
    def inequality(points, z, y, squared):
        steps = [boosting.sgd_trajectory([x], z, [0], step=1.0)[1] for x in points]
        mean = (z - (points if squared else np.array(steps))).mean(axis=0)
        f_z, f_y = (np.linalg.norm(points - at, axis=1).mean() for at in (z, y))
        return f_z + mean @ (y - z), f_y + 1e-12


@statement("gm.alg4")
def as_printed(ledger):
    """StableDPSGD, T = 2^K - 1 >= n and m = 3 (T/n + log(8/delta)): phase k takes 2^-k (T + 1) SGD
    steps of size 4^-k eta on random points, from the centre of a ball K^(k) and projected on it,
    and outputs x_hat^(k), their average plus N(0, sigma_k^2 I), sigma_k = 3^-k (2m + 1) eta /
    sqrt(rho). K^(1) = B(xbar, r_hat), K^(k) = B(x_hat^(k-1), 2 sigma_k sqrt(d log(4K/delta))).

    The implementation follows the printed lines. With the same random numbers, a transcription of
    the printed lines gives the same output in every phase. The number m is not an integer. Line 9
    centers the ball at the noisy output of phase k - 1. But the radius of the ball comes from the
    smaller noise of phase k (see gm.lemma13.cont). Phase K is a single step, and the average of
    phase K contains only the start of this step. So phase K only adds noise to the output of phase
    K - 1.
    """
    domain = {
        "points": Array(UNIT, ("n", "d")), "center": Array(UNIT, ("d",)), "n": Choice((2, 3)),
        "d": Choice((2, 3)), "phases": Integer(2, 4), "seed": Integer(0, 1000), "delta": ANY_DELTA,
        "radius": Interval(0.01, 3.0, log=True), "rho": Interval(1.0, 1e6, log=True),
        "step": Interval(0.1, 10.0, log=True), "end_to_end": True, "examples": 40,
    }  # fmt: skip
    still = {"center": np.zeros(2), "phases": 3, "seed": 1, "delta": 0.1, "rho": 1e4, "step": 1.0}
    domain["extremal"] = [  # a start at a data point, and a domain of one point
        {**still, "points": np.array([[0.0, 0.0], [0.3, 0.4]]), "radius": r} for r in (0.0, 0.7)
    ]

    @ledger.identity("m", mutant={"least": 2.0}, **domain)
    @ledger.identity("the noise", mutant={"decay": 2.0}, **domain)
    @ledger.identity("the balls", mutant={"repaired": True}, **domain)
    @ledger.identity("the steps", mutant={"shrink": 2.0}, **domain)
    @ledger.identity("the average", mutant={"averaged": 1}, **domain)
    def outputs(
        points, center, phases, seed, radius, rho, delta, step,
        least=3.0, decay=3.0, shrink=4.0, repaired=False, averaged=0,
    ):  # fmt: skip
        """Return the outputs of all phases and the final value, for two runs."""
        n, d = points.shape
        options = {"center": center, "radius": radius, "rho": rho, "delta": delta, "step": step}
        run = partial(boosting.stable_dpsgd, points, 2, n_steps=2**phases - 1, **options)
        found = [run(transcript=t, rng=np.random.default_rng(seed)) for t in (True, False)]
        m = transcribed.accesses(n, phases, delta, constant=least)
        plan = transcribed.phases(m, phases, d, radius, rho, delta, step, repaired=repaired,
                                  decay=decay, shrink=shrink)  # fmt: skip
        rng = np.random.default_rng(seed)
        _, lines = transcribed.stable_dpsgd(
            points, np.tile(center, (2, 1)), plan, transcribed.random_rows(n, rng), rng,
            averaged=averaged,
        )  # fmt: skip
        both = [np.moveaxis(found[0], 1, 0).ravel(), found[1].ravel()]
        return np.concatenate(both), np.concatenate([lines.ravel(), lines[-1].ravel()])

    varied = {key: value for key, value in domain.items() if key != "extremal"}
    varied |= {"noise": NOISE, "project": Choice(("all", "first", "none"))}
    varied |= {"ball": Choice(("printed", "repaired")), "share": Interval(0.0, 1.0)}

    @ledger.identity("the averages before the noise, with the options of the implementation",
                     radii=1.0, mutant={"radii": 0.5}, **varied)  # fmt: skip
    def averages(
        points, center, phases, seed, radius, rho, delta, step, noise, project, ball, share, radii
    ):
        (n, d), phase = points.shape, 1 + min(int(share * phases), phases - 1)
        options = {"center": center, "radius": radius, "rho": rho, "delta": delta, "step": step}
        found = boosting.stable_dpsgd_centers(
            points, 3, phase=phase, n_steps=2**phases - 1, project=project, ball=ball,
            **noise_option(noise), **options, rng=np.random.default_rng(seed),
        )  # fmt: skip
        m = transcribed.accesses(n, phases, delta)
        plan = transcribed.phases(m, phases, d, radii * radius, rho, delta, step,
                                  repaired=ball == "repaired")  # fmt: skip
        rng = np.random.default_rng(seed)
        means, _ = transcribed.stable_dpsgd(
            points, np.tile(center, (3, 1)), plan, transcribed.random_rows(n, rng), rng,
            project=project, noise=noise or 1.0,
        )  # fmt: skip
        return found, means[phase - 1]

    close = {  # one run starts so close to a data point that the squares underflow
        "points": np.array([[0.0, 0.0], [5.0, 4.0]]), "starts": np.array([SMALL, [0.3, 0.4]]),
        "center": np.zeros(2), "where": np.array([[0.0, 0.9, 0.9, 0.9, 0.9]] * 2), "step": 0.5,
        "radius": 1.4, "same": "",
    }  # fmt: skip

    @ledger.identity(
        "lines 11 to 14 for given indices, two runs in a ball", points=Array(UNIT, ("n", "d")),
        starts=Array(UNIT, (2, "d")), center=Array(UNIT, ("d",)), d=Choice((1, 2)),
        n=Choice((1, 3)), where=Array(Interval(0.0, 1.0), (2, 5)), step=Interval(0.05, 2.0),
        radius=Interval(0.0, 1.5), same=Choice(("", "start", "indices")), longer=1.0,
        extremal=[close], mutant={"longer": 1.01},
    )  # fmt: skip
    def iterates(points, starts, center, where, step, radius, same, longer):
        rows = np.minimum((where * len(points)).astype(int), len(points) - 1)
        given = starts[0] if same == "start" else starts, rows[0] if same == "indices" else rows
        found = boosting.sgd_trajectory(points, *given, step=step, radius=radius, center=center)
        lines = []
        for run in range(2):
            path = [starts[0 if same == "start" else run]]
            for i in rows[0 if same == "indices" else run]:
                x = points[i]
                path.append(transcribed.descend(path[-1], x, longer * step, center, radius))
            lines.append(path)
        return found, np.array(lines)

    @ledger.identity("a phase with more indices than are drawn at once", order=["random", "fixed"],
                     runs=[2**17 + 1], length=8, mutant={"length": 7}, end_to_end=True)  # fmt: skip
    def long_phase(order, runs, length):
        """Return the average of phase 1 for data so far away that each step has length 1 / 4."""
        far = np.array([[FAR], [-FAR], [FAR]])
        options = {**RUN, "center": [0.0], "n_steps": 15, "phase": 1, "radius": 1e3}
        random = order == "random"
        centers = boosting.stable_dpsgd_centers if random else boosting.fixed_order_dpsgd_centers
        found = centers(far, runs, **options, rng=np.random.default_rng(0))
        if random:
            chosen = np.random.default_rng(0).integers(3, size=(8, runs))
        else:
            chosen = np.tile(np.arange(8)[:, None] % 3, runs)
        moves = np.cumsum(np.where(chosen == 1, -0.25, 0.25), axis=0)
        total = sum(moves[t - 1] for t in range(1, length))  # z_0 = 0
        return found[:, 0], total / length


@statement("gm.rem1")
def fixed_order(ledger):
    """Algorithm 4 stays as private without the projections on K^(k), k >= 2, and with passes in a
    fixed order in place of random sampling. Then no element is accessed more than m = ceil(T/n)
    times, and this m may replace 3 (T/n + log(8/delta)) in the noise.

    The passes must continue from phase to phase. The order may depend only on public positions. In
    phase k, at most ceil(T^(k) / n) accesses matter, and this number is less than m. So passes that
    start again in each phase are also private, although such passes access some first rows more
    than ceil(T/n) times. The privacy loss is largest for T = n and for the row of the first access.
    The largest privacy loss is at most rho / 8.
    """

    @ledger.sweep("at most ceil(T / n) accesses", n=range(1, 40), phases=range(1, 11), down=False,
        mutant={"down": True})  # fmt: skip
    def most_accesses(n, phases, down):
        steps = 2**phases - 1
        visits = _sgd.fixed_rows(n, None)(0, steps, 1)[:, 0]
        return int(np.bincount(visits).max()), steps // n if down else -(-steps // n)

    @ledger.identity(
        "all lines of the fixed order", points=Array(UNIT, ("n", "d")), n=Choice((2, 3, 5)),
        d=Choice((1, 2)), center=Array(UNIT, ("d",)), phases=Integer(1, 4), seed=Integer(0, 1000),
        delta=ANY_DELTA, radius=Interval(0.01, 3.0, log=True), rho=Interval(1.0, 1e6, log=True),
        step=Interval(0.1, 10.0, log=True), noise=NOISE,
        project=Choice(("all", "first", "none")), ball=Choice(("printed", "repaired")),
        accesses=Choice(("total", "phase")), shuffled=Choice((False, True)),
        share=Interval(0.0, 1.0), skipped=0, mutant={"skipped": 1}, end_to_end=True, examples=80,
    )  # fmt: skip
    def lines_of_the_fixed_order(
        points, center, phases, seed, delta, radius, rho, step, noise, project, ball, accesses,
        shuffled, share, skipped,
    ):  # fmt: skip
        """Return the outputs of all phases, the final value, and an average, for two runs."""
        (n, d), phase = points.shape, 1 + min(int(share * phases), phases - 1)
        order = list(np.random.default_rng(seed).permutation(n)) if shuffled else list(range(n))
        options = {"center": center, "radius": radius, "rho": rho, "delta": delta, "step": step}
        options |= {"n_steps": 2**phases - 1, "project": project, "ball": ball}
        options |= {"accesses": accesses, **noise_option(noise)}
        options |= {"order": order if shuffled else None}
        run = partial(boosting.fixed_order_dpsgd, points, 2, **options)
        found = [run(transcript=t, rng=np.random.default_rng(seed)) for t in (True, False)]
        average = boosting.fixed_order_dpsgd_centers(
            points, 2, phase=phase, **options, rng=np.random.default_rng(seed)
        )
        m = transcribed.accesses(n, phases, delta, order="fixed", each_phase=accesses == "phase")
        plan = transcribed.phases(m, phases, d, radius, rho, delta, step,
                                  repaired=ball == "repaired")  # fmt: skip
        rows = transcribed.fixed_rows(order[skipped:] + order[:skipped])
        means, lines = transcribed.stable_dpsgd(
            points, np.tile(center, (2, 1)), plan, rows, np.random.default_rng(seed),
            project=project, noise=noise or 1.0,
        )  # fmt: skip
        both = np.concatenate([np.moveaxis(found[0], 1, 0), [found[1], average]])
        return both, np.concatenate([lines, [lines[-1], means[phase - 1]]])

    domain = {
        "points": Array(UNIT, ("n", "d")), "other": Array(UNIT, ("d",)), "row": Integer(0, 1),
        "outputs": Array(UNIT, (3, "d")), "n": Choice((2, 3)), "d": 2, "noise_multiplier": 1.0,
        "project": Choice(("all", "first", "none")), "examples": 30, "bound": 1.0,
    }  # fmt: skip
    first = {**crowd(31, 5, 0), "row": 0, "project": "none"}

    @ledger.falsify("all phases together: rho-CDP", extremal=[first], end_to_end=True,
        mutant={"noise_multiplier": 0.33}, **domain)  # fmt: skip
    @ledger.sharper().sweep("rho / 8 for rho", cases=[first], bound=1 / 8, noise_multiplier=1.0,
        mutant={"noise_multiplier": 0.9})  # fmt: skip
    def spent(points, other, row, outputs, project, noise_multiplier, bound):
        run = {**RUN, "project": project, "noise_multiplier": noise_multiplier}
        found, scales = moves(
            boosting.fixed_order_dpsgd_centers, points, other, row, outputs, **run
        )
        return float(((found / scales) ** 2).sum() / 2), bound * RUN["rho"]

    private = {"rho": schedule.stable_dpsgd_rho(1.0, 0.01), "delta": 0.01}
    run = increments(
        boosting.fixed_order_dpsgd, radius=100.0, step=1.0, n_steps=15, project="first", **private
    )
    for phase, row in ((1, 0), (2, 8), (3, 12)):
        points = crowd(15, 4, row)["points"]
        ledger.audit(
            run,
            ApproxDP(1.0, 0.01),
            NeighborPair(points, np.full((15, 1), -FAR), recipe=f"a row visited in phase {phase}"),
            draws=1_500,
            mutants=[quiet(phase)],
            survivors="Privacy does not need the noise of phase 4, which averages nothing, nor the "
            "noise of a phase that does not visit the row. Halved noise may stay undetected: a row "
            "costs rho / 8 at most. Noise times .35 is too little, which is shown exactly.",
        )


@statement("gm.lemma10")
def accesses(ledger):
    """With probability at least 1 - delta/8, the indices I that Algorithm 4 samples in all phases
    contain at most m = 3 (T/n + log(8/delta)) copies of the index n, where T >= n.

    The bound is loose. For T = n and delta = 1e-6, the bound allows 50 accesses, but 10 would be
    enough. By the same Chernoff bound, the constant 1.53 is enough instead of 3. The constant 1.53
    halves the noise of Algorithm 4. The condition T >= n is not needed.
    """
    most = [{"n": n, "phases": k, "delta": 0.999} for n, k in ((1023, 10), (2, 2))]
    domain = {"n": Integer(2, 4000), "phases": Integer(1, 20), "delta": ANY_DELTA, "term": True}

    @ledger.falsify("exact binomial tail", constant=3.0, extremal=most, end_to_end=True,
        mutant={"term": False}, **domain)  # fmt: skip
    @ledger.sharper().falsify("1.53 for 3 in m", constant=1.53, mutant={"constant": 1.0}, **domain)
    def tail(n, phases, delta, constant, term):
        t = 2**phases - 1
        m = constant * (t / n + term * math.log(8 / delta))
        return (binom.sf(math.floor(m), t, 1 / n), delta / 8) if t >= n else None

    means = {"mean": Interval(1e-9, 1e9, log=True), "delta": ANY_DELTA, "mutant": {"constant": 1.5}}

    @ledger.step("Fact 1 with this m").falsify("also for T < n", constant=3.0, **means)
    @ledger.sharper().falsify("1.53 for 3 in m, by Fact 1", constant=1.53, **means)
    def chernoff(mean, delta, constant):
        """Return -log of both sides of the inequality."""
        above = constant * (1 + math.log(8 / delta) / mean) - 1
        return math.log(8 / delta), above**2 * mean / (2 + above)


@statement("gm.fact5")
def projections(ledger):
    """Let K in R^d be compact and convex, and P the Euclidean projection on it. Then norm(P(x) -
    P(y)) <= norm(x - y) for any x, y in R^d.

    The check covers cubes and the implemented balls of Algorithm 4.
    """
    domain = {
        "x": Array(Interval(-3, 3), ("d",)), "y": Array(Interval(-3, 3), ("d",)), "stretched": 1.0,
        "d": Choice((1, 2, 5)), "radius": Interval(0.1, 2), "mutant": {"stretched": 1.2},
    }  # fmt: skip

    @ledger.falsify("balls, as line 13 projects", ball=True, **domain)
    @ledger.falsify("cubes", ball=False, **domain)
    def inequality(x, y, radius, ball, stretched):
        def onto(z):
            if not ball:
                return np.clip(z, -radius, radius)
            # At a data point, the step only projects.
            options = {"step": 1.0, "radius": radius, "center": np.zeros(len(z))}
            return boosting.sgd_trajectory([z], z, [0], **options)[1]

        return float(np.linalg.norm(onto(x) - stretched * onto(y))), float(np.linalg.norm(x - y))


# --- one step ---

LENGTH, SHORT = Interval(1e-6, 4.0), Interval(1e-6, 1.5)
PLANE = {"a": LENGTH, "b": LENGTH, "angle": Interval(0.0, math.pi), "eta": Interval(1e-3, 3.0)}
NEAR = {**PLANE, "a": SHORT, "b": SHORT, "eta": Interval(1.0, 3.0)}
ANTIPODAL = {"a": 1e-6, "b": 1e-6, "angle": math.pi, "eta": 1.0}


def distances(a, b, angle, eta):
    """Return the distance before and after the step along two unit vectors at an angle."""
    u, v = np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])
    before, after = a * u - b * v, (a - eta) * u - (b - eta) * v
    return float(np.linalg.norm(before)), float(np.linalg.norm(after))


def contracts(a, b, angle, eta, least=1.0):
    """Return the distances after and before the step if a + b is at least eta."""
    return distances(a, b, angle, eta)[::-1] if a + b >= least * eta else None


def backward(a, b, angle, eta):
    before, after = distances(a, b, angle, eta)
    return (eta, a + b) if after <= before else None


STILL = {"lhs": "eta", "rhs": "a + b, in a case where the distance does not grow (u = v)"}


@statement("gm.eq13")
def when_a_step_contracts(ledger):
    """For unit vectors u, v, a, b > 0, x = a u, y = b v, x' = (a - eta) u and y' = (b - eta) v:
    norm(x' - y') <= norm(x - y) if and only if a + b >= eta, because norm(x - y)^2 - norm(x' -
    y')^2 = 2 eta (a + b - eta) (1 - u^T v).

    The equivalence holds for u != v. If u = v, the step never changes the distance, for any a + b.
    Lemma 11 needs only that a + b >= eta implies contraction. The last line of the proof needs u^T
    v <= 1, which always holds. In the last line, the paper prints u^T v >= 0 instead of u^T v <=
    1.
    """
    ledger.misprint("u^T v >= 0, in the last line of the proof", "u^T v <= 1")
    apart = {**PLANE, "angle": Interval(0.1, math.pi)}
    ledger.falsify("a + b >= eta contracts", mutant={"least": 0.25}, **PLANE)(contracts)
    ledger.falsify("contraction implies a + b >= eta", tolerance=1e-6, **apart)(backward)
    ledger.edge("the directions in (13) differ").falsify(
        "u = v: contraction implies a + b >= eta", **STILL, **{**PLANE, "angle": 0.0}
    )(backward)

    @ledger.identity("the identity", **PLANE)
    def square(a, b, angle, eta):
        before, after = distances(a, b, angle, eta)
        return 9 + before**2, 9 + after**2 + 2 * eta * (a + b - eta) * (1 - math.cos(angle))


@statement("gm.lemma11", expected="holds_proof_broken")
def a_step_moves_apart_by_little(ledger):
    """For any unit vectors u, v and a, b > 0, let x = a u and y = b v. Then x' = (a - eta) u and y'
    = (b - eta) v satisfy norm(x' - y') <= max(norm(x - y), 3 eta).

    The sharp constant is 2. With the constant 2, Corollary 1 gives 2 m eta instead of (2 m + 1)
    eta. For a + b <= eta, the new distance is at most (eta - a) + (eta - b) <= 2 eta. Instead, the
    proof bounds the new distance by the old distance plus 2 eta, so the proof obtains the constant
    3. The proof uses (13), which is not an equivalence. The last line of the proof shows (13) only
    for u^T v >= 0 (gm.eq13).
    """
    near = {**NEAR, "extremal": [ANTIPODAL], "end_to_end": True}
    back = {**PLANE, "angle": math.pi, "eta": -1.0, "constant": 3.0}
    sides = {"lhs": "norm(x' - y')", "rhs": "max(norm(x - y), 3 eta)"}

    @ledger.falsify("if the distance grows", constant=3.0, mutant={"constant": 1.9}, **near)
    @ledger.sharper().falsify("2 eta for 3 eta", constant=2.0, mutant={"constant": 1.9}, **near)
    @ledger.edge("step sizes are positive").falsify("u = -v, eta = -1", **back, **sides)
    def grown(a, b, angle, eta, constant):
        before, after = distances(a, b, angle, eta)
        return (after, max(before, constant * eta)) if after > before * (1 + 1e-12) else None

    ledger.step("a + b >= eta contracts").falsify(mutant={"least": 0.25}, **PLANE)(contracts)

    ledger.step(
        "'(13) holds', for u^T v >= 0",
        fix="only one direction is needed, that a + b >= eta contracts. The identity proves this "
        "direction for all u and v, as u^T v <= 1",
    ).sweep("contraction implies a + b >= eta", a=0.5, b=0.25, angle=0.0, eta=1.0, **STILL)(
        backward
    )
    ledger.consequence(
        "No user is affected, because the part of (13) that the lemma needs is true.",
        harm="the wording",
    )

    @ledger.step("a + b <= eta: norm(x' - y') <= norm(x - y) + 2 eta").falsify(**NEAR)
    def added(a, b, angle, eta):
        before, after = distances(a, b, angle, eta)
        return (after, before + 2 * eta) if a + b <= eta else None


# --- sensitivity ---

TRAJECTORIES = {
    "points": Array(UNIT, ("n", "d")), "other": Array(UNIT, ("d",)), "n": Choice((2, 4)),
    "d": Choice((1, 2)), "where": Array(Interval(0.0, 1.0), ("length",)), "length": Choice((4, 15)),
    "step": Interval(0.01, 1.0, log=True), "radius": Choice((None, 0.5, 1.0)),
}  # fmt: skip
TURNING = {
    "points": np.array([[0.0], [1.0]]), "other": np.array([-1.0]), "where": np.full(4, 0.9),
    "step": 0.1, "radius": None,
}  # fmt: skip
SMALL = np.array([2.7e-162, 1.57e-162])  # so close to the start that the squares underflow
UNDERFLOW = {**TURNING, "points": np.array([[1.0, 0.0], SMALL]), "other": -SMALL}
UNDERFLOW["where"] = np.array([0.9])


def two_runs(points, other, where, step, radius):
    """Return how far the last row moves each iterate, and how often the last row is drawn."""
    last, start = len(points) - 1, np.zeros(points.shape[1])
    rows = np.minimum((where * len(points)).astype(int), last)
    run = partial(boosting.sgd_trajectory, start=start, indices=rows, step=step, radius=radius)
    return run(points) - run(np.concatenate([points[:-1], [other]])), int((rows == last).sum())


@statement("gm.cor1", expected="holds_proof_broken")
def sensitivity_of_iterates(ledger):
    """In phase k of Algorithm 4, given z_0^(k) and samples I with at most m copies of n, the
    sensitivity of every iterate z_t^(k), 0 <= t < T^(k), is at most (2m + 1) eta^(k).

    The bound 2 m eta is sufficient and sharp. The move 2 m eta is attained if the replacement point
    is on the opposite side at every access. By induction, the proof shows display (14), that is,
    Phi_t <= max(2 m_t + 1, 3) eta. For m_t = 0, (14) allows Phi_t = 3 eta. The first access may
    then add 2 eta, but the sum 5 eta is more than (14) allows for m_t = 1. The branch without an
    access uses Lemma 11 also for z_t = x_i, where Lemma 11 does not apply. For z_t = x_i, the step
    is 0 by footnote 5, and the same bound holds.
    """
    runs = {**TRAJECTORIES, "extremal": [TURNING, UNDERFLOW]}

    @ledger.falsify("(2 m + 1) eta", extra=1, each=2, end_to_end=True, mutant={"each": 1}, **runs)
    @ledger.sharper().falsify(
        "2 m eta for (2 m + 1) eta", extra=0, each=2, mutant={"each": 1.9}, **runs
    )
    def inequality(points, other, where, step, radius, extra, each):
        moved, m = two_runs(points, other, where, step, radius)
        return float(np.linalg.norm(moved, axis=-1).max()), (each * m + extra) * step

    induction = ledger.step(
        "the induction (14) if n is drawn",
        fix="before the first access both runs are the same, so that Phi_t = 0; after it "
        "Phi_t <= 2 eta, and from there on (14) follows, as 2 m_t + 1 >= 3",
    )
    sides = {"lhs": "Phi_(t+1)", "rhs": "max(2 m_(t+1) + 1, 3) eta"}

    @induction.sweep("m_t = 0 and Phi_t = 3 eta", before=0, apart=3.0, eta=1.0, **sides)
    @induction.sweep("m_t >= 1", before=range(1, 20), apart=None, eta=1.0, mutant=0.9)
    def drawn(before, apart, eta):
        """Take two iterates as far apart as (14) allows.

        Put both versions of x_n beyond the iterates.
        """
        apart = (2 * before + 1) * eta if apart is None else apart
        z, other, x, x_other = 0.0, apart, -10.0 * eta, apart + 10.0 * eta
        z -= eta * (z - x) / abs(z - x)
        other -= eta * (other - x_other) / abs(other - x_other)
        return abs(z - other), max(2 * (before + 1) + 1, 3) * eta

    iterates = {name: Array(UNIT, ("d",)) for name in ("z", "other")} | {"d": Choice((1, 2))}
    known = {"step": Interval(0.1, 3.0), "at_point": Choice((False, True)), "constant": 3.0}

    @ledger.step("Phi_(t+1) <= max(Phi_t, 3 eta) if n is not drawn").falsify(
        "also at the data point", mutant={"constant": 1.0}, **iterates, **known
    )
    def common(z, other, step, at_point, constant):
        point = z if at_point else np.zeros(len(z))
        a, b = (boosting.sgd_trajectory([point], x, [0], step=step)[1] for x in (z, other))
        before = float(np.linalg.norm(z - other))
        return float(np.linalg.norm(a - b)), max(before, constant * step) + 1e-12

    ledger.consequence(ONE_MENDS, harm="the wording")


@statement("gm.cor1.avg")
def sensitivity_of_the_average(ledger):
    """In phase k of Algorithm 4, given z_0^(k) and samples I with at most m copies of n, the
    average iterate xbar^(k) has sensitivity at most (2m + 1) eta^(k), too.

    The average omits the last iterate, so an access in the last step has no effect. The worst case
    is close to the bound if all accesses are the first accesses of a long phase.
    """

    @ledger.falsify(
        "one phase", extremal=[TURNING], each=2, extra=1, mutant={"extra": -1}, **TRAJECTORIES
    )
    def average(points, other, where, step, radius, each, extra):
        moved, m = two_runs(points, other, where, step, radius)
        return float(np.linalg.norm(moved[:-1].mean(axis=0))), (each * m + extra * (m > 0)) * step

    @ledger.sweep(
        "whole runs, given the outputs before", cases=WORST, each=2, end_to_end=True,
        mutant={"each": 1.6},
    )  # fmt: skip
    def in_a_run(n, phases, phase, each):
        moved, _, m = at_worst(n, phases, phase)
        return float(moved[phase - 1]), (each * m + 1) * 4.0**-phase * RUN["step"]


# --- privacy ---


@statement("gm.lemma12", expected="holds_proof_broken")
def privacy_of_stable_dpsgd(ledger):
    """Let epsilon in [0, 1]. If 1/rho >= 4 log(2/delta) / epsilon^2 + 2/epsilon, then Algorithm 4
    is (epsilon, delta)-DP.

    The bound is loose. The privacy loss of all phases together is at most 9 rho / 14. In fact, the
    privacy loss is at most 9 rho / 32. The proof does not reach this bound, because the proof
    counts the m accesses of a row again in each phase. In addition, m is about twice as large as
    needed. The condition that all phases together have few accesses makes the phases dependent. If
    an output reveals many earlier accesses, fewer accesses remain for the later phases. What the
    outputs reveal depends on the data. But the proof composes the phases as if the indices of the
    phases had the same distribution in both runs. The condition epsilon <= log 3 is enough.
    """
    delta, phases = 1e-3, 7
    rho = schedule.stable_dpsgd_rho(1.0, delta)
    options = {"rho": rho, "delta": delta, "step": 1.0, "n_steps": 2**phases - 1, "radius": 1e3}
    ledger.audit(
        increments(boosting.stable_dpsgd, **options),
        ApproxDP(1.0, delta),
        NeighborPair([[-FAR], [FAR]], [[-FAR], [-FAR]], recipe="one against one, or both left"),
        draws=2_000,
        mutants=[
            *(quiet(phase) for phase in range(1, phases - 1)),
            increments(mutants.stable_dpsgd_forgetting_m, **options),
        ],
        survivors="Privacy does not need the noise of the last phase, which averages nothing. "
        "Halved noise may stay undetected: the noise is made for m accesses, all of them first in "
        "a phase, but one of two users has a sixth of m in phase 1, spread over it. The noise of a "
        "single access, .007 of what is needed, is detected.",
    )

    @ledger.identity("rho of the implementation is the largest", epsilon=EPSILON, delta=ANY_DELTA,
                     weight=4.0, mutant={"weight": 5.0})  # fmt: skip
    def largest_rho(epsilon, delta, weight):
        bound = weight * math.log(2 / delta) / epsilon**2 + 2 / epsilon
        return 1 / schedule.stable_dpsgd_rho(epsilon, delta), bound

    @ledger.sharper().sweep("9 rho / 32 for rho, with fixed indices", cases=WORST, noise=1.0,
        mutant={"noise": 0.8})  # fmt: skip
    def together(n, phases, phase, noise):
        moved, scales, _ = at_worst(n, phases, phase, noise_multiplier=noise)
        return float(((moved / scales) ** 2).sum() / 2), 9 / 32 * RUN["rho"]

    tied = ledger.step(
        "the phases of a run conditioned on few accesses, each with the same indices in both runs",
        fix="condition on all indices at once, whose distribution does not depend on the data. "
        "Compose the phases for fixed indices, and mix at the end: CDP is quasi-convex",
    )

    @tied.sweep(
        "n = T = 63, delta = 1/2: x_n pulls to the right and all others to the left, or all pull "
        "to the left; sigma = sigma^(1) for eta = epsilon = 1",
        n=63, m=11, output=1e4, sigma=21.65,
        lhs="total variation distance between the numbers of copies of n in phase 2 of both runs, "
        "given that x_hat^(1) is `output`",
        rhs="the distance that a common realization of the indices needs",
    )  # fmt: skip
    def copies(n, m, output, sigma):
        joint = np.outer(np.arange(m + 1) == 0, np.arange(500) == 0).astype(float)
        for later in range(32):
            joint = joint * (1 - 1 / n) + np.pad(joint, ((1, 0), (later, 0)))[: m + 1, :500] / n
        shift, found = np.arange(500) / 64, []
        tilt = np.exp((output * shift - shift**2 / 2) / sigma**2)
        for first in (joint @ tilt, joint.sum(axis=1)):
            few = [binom.cdf(m - j - np.arange(m + 1), 15, 1 / n) @ first for j in range(m + 1)]
            second = np.array(few) * binom.pmf(range(m + 1), 16, 1 / n)
            found.append(second / second.sum())
        return float(abs(found[0] - found[1]).sum()) / 2, 0.0

    private = {"epsilon": EPSILON, "delta": ANY_DELTA, "factor": 1.0}
    beyond = {**private, "epsilon": Interval(1.0, math.log(3))}

    @ledger.step("Fact 4, part 2, at the order of the proof").falsify(
        mutant={"factor": 1.1}, **private
    )
    def conversion(epsilon, delta, factor):
        rho = factor / (4 * math.log(2 / delta) / epsilon**2 + 2 / epsilon)
        alpha = 2 * math.log(2 / delta) / epsilon + 1
        return alpha * rho + math.log(2 / delta) / (alpha - 1), epsilon

    budget = ledger.step("delta / 2, and Lemma 1 with the delta / 8 of Lemma 10")

    @budget.falsify("exact delta of rho-CDP noise", mutant={"factor": 4.0}, **private)
    @ledger.sharper().falsify("epsilon up to log 3, not 1", mutant={"factor": 4.0}, **beyond)
    def spent(epsilon, delta, factor):
        rho = factor / (4 * math.log(2 / delta) / epsilon**2 + 2 / epsilon)
        conditioned = float(oracles.gaussian(math.sqrt(2 * rho), 1.0).delta(epsilon))
        return conditioned + (1 + math.exp(epsilon)) * delta / 8, delta

    ledger.consequence(ONE_MENDS, harm="the wording")


@statement("gm.lemma12.sum")
def sum_over_phases(ledger):
    """Phase k costs ((2m + 1) eta^(k))^2 / (2 (sigma^(k))^2) <= (16/9)^-k rho/2, and all phases
    together, sum_k (16/9)^-k rho/2, at most rho.

    The privacy losses of all phases are computed from the moves and the noise of the
    implementation. The sum of all these privacy losses is 9 rho / 14. So the noise could be reduced
    by a fifth.
    """

    @ledger.sweep("each phase with all m accesses first in it", cases=WORST, noise=1.0,
        end_to_end=True, mutant={"noise": 0.8})  # fmt: skip
    def each_phase(n, phases, phase, noise):
        moved, scales, _ = at_worst(n, phases, phase, factors={phase: noise})
        return float((moved / scales)[phase - 1] ** 2) / 2, (9 / 16) ** phase * RUN["rho"] / 2

    @ledger.sweep("partial sums", phases=range(1, 80), decay=3, mutant={"decay": 4})
    def partial_sums(phases, decay):
        return sum(Fraction(decay**2, 16) ** k for k in range(1, phases + 1)) / 2, Fraction(1)

    @ledger.identity(
        "the sum that the implementation reports", n=Integer(1, 1000), phases=Integer(1, 20),
        rho=Interval(1e-4, 1e4, log=True), delta=ANY_DELTA, step=Interval(1e-3, 1e3, log=True),
        accesses=Choice(("random", "total", "phase")), decay=3.0, mutant={"decay": 2.9},
        examples=60,
    )  # fmt: skip
    def reported(n, phases, rho, delta, step, accesses, decay):
        options = {"radius": 1.0, "rho": rho, "delta": delta, "step": step}
        options |= {"n_steps": 2**phases - 1}
        if accesses == "random":
            found = schedule.stable_dpsgd_schedule(n, 2, **options)
        else:
            found = schedule.fixed_order_schedule(n, 2, accesses=accesses, **options)
        m = transcribed.accesses(n, phases, delta, each_phase=accesses == "phase",
                                 order="random" if accesses == "random" else "fixed")  # fmt: skip
        plan = transcribed.phases(m, phases, 2, 1.0, rho, delta, step, decay=decay)
        return found.total_rho, transcribed.budget(plan, m)
