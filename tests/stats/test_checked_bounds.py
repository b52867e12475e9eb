"""Bounds checked in interval arithmetic against the probabilities that they promise.

Every probability here is a ball of python-flint, which holds the exact number whatever the
rounding. A check passes only if the whole ball satisfies it, except for 1e-15 in the gain of a bet.
The bounds under test are called as users call them. So a pass means that rounding in
`dpaudit.stats` is harmless on the grid, inside the formulas and in the comparison at the end.
Certified epsilons are checked where they are most easily wrong: the true epsilon is the largest
number below a value that can be certified. Two rates are then left, of which a grid is tried.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from dpaudit.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.stats import Counts, GuessCounts, RateBounds, Target, guess_bounds, one_run, wager
from dpaudit.stats.joint import lower_rates, upper_rates
from dpaudit.stats.one_run import Allowance, guess_p_value, sum_bound, tail_bound
from dpaudit.stats.planned_guesses import GuessPlanner
from dpaudit.stats.ranked import ranked_epsilon, ranked_p_value
from dpaudit.stats.walks import Stages

ctx.prec = 160
ZERO, ONE = arb(0), arb(1)


def choose(n: int, k: int) -> arb:
    return arb(math.comb(n, k))


def power(x: arb, k: int) -> arb:
    """Return x^k by multiplication, which needs no logarithm of a ball around 0."""
    result = ONE
    while k:
        result, x, k = result * x if k % 2 else result, x * x, k // 2
    return result


def masses(n: int, p: arb) -> list[arb]:
    """Return the probabilities of 0 .. n successes."""
    return [choose(n, k) * power(p, k) * power(ONE - p, n - k) for k in range(n + 1)]


def below(value: float) -> float:
    return math.nextafter(value, -math.inf)


def exp(x: float) -> arb:
    return arb(x).exp()


# --- one proportion -----------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("trials", [1, 7, 60, 700])
def test_a_proportion_at_its_bound_is_as_unlikely_as_promised(trials: int, alpha: float) -> None:
    """The tail increases with the proportion, so the bound itself is the worst case."""
    for hits in sorted({0, 1, 2, trials // 3, trials - 1, trials}):
        low, high = lower_rates(hits, trials, alpha), upper_rates(hits, trials, alpha)
        if hits > 0:
            assert sum(masses(trials, arb(float(low)))[hits:], ZERO) <= arb(alpha)
        if hits < trials:
            assert sum(masses(trials, arb(float(high)))[: hits + 1], ZERO) <= arb(alpha)


# --- two counts of an event, and guesses ---------------------------------------------------------


def worst_share(
    certified: dict[float, list[tuple[int, int]]], value: float, left: list[arb], right: list[arb]
) -> arb:
    """Return the probability of the outcomes that certify at least a value."""
    return sum(
        (left[a] * right[b] for v, where in certified.items() if v >= value for a, b in where), ZERO
    )


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("delta", [0.0, 0.03])
@pytest.mark.parametrize(("n", "m"), [(12, 12), (17, 8)])
def test_two_counts_rarely_certify_more_than_the_truth(
    n: int, m: int, delta: float, alpha: float
) -> None:
    certified: dict[float, list[tuple[int, int]]] = defaultdict(list)
    for a, b in itertools.product(range(n + 1), range(m + 1)):
        bounds = RateBounds.from_counts(Counts(a, n, b, m), "left", alpha, Target(delta=delta))
        if (found := bounds.lower_epsilon(delta)) > 0:
            certified[found].append((a, b))
    assert len(certified) > 5
    for value, share in itertools.product(certified, np.linspace(0.0, 1.0, 17).tolist()):
        factor, spread = exp(below(value)), arb(delta)
        # Either the event or its complement is as unlikely as the claim allows on its rarer side.
        q = arb(share) * (ONE - spread) / (factor + 1)
        for rates in ((factor * q + spread, q), (ONE - q, ONE - factor * q - spread)):
            left, right = masses(n, rates[0]), masses(m, rates[1])
            assert worst_share(certified, value, left, right) <= arb(alpha)


@pytest.mark.parametrize("alpha", [0.05, 1e-3])
@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_guesses_rarely_certify_more_than_the_truth(delta: float, alpha: float) -> None:
    n = 16
    certified: dict[float, list[tuple[int, int]]] = defaultdict(list)
    for correct in range(n + 1):
        for wrong in range(n + 1 - correct):
            bounds = guess_bounds(GuessCounts(correct, wrong, n), alpha)
            if (found := bounds.lower_epsilon(delta)) > 0:
                certified[found].append((correct, wrong))
    assert len(certified) > 3
    for value, share in itertools.product(certified, np.linspace(0.0, 1.0, 17).tolist()):
        factor, spread = exp(below(value)), arb(delta)
        w = arb(share) * (ONE - spread) / (factor + 1)
        c = factor * w + spread
        wrongly = ZERO
        for found, where in certified.items():
            for a, b in where if found >= value else ():
                ways = choose(n, a) * choose(n - a, b)
                wrongly += ways * power(c, a) * power(w, b) * power(ONE - c - w, n - a - b)
        assert wrongly <= arb(alpha)


# --- guesses by rank, and of one run -------------------------------------------------------------

STAGES = Stages((5, 7, 11), (1.0, 1.0, 1.0))
DRAWS = 12


def laws(epsilon: float, delta: float) -> dict[tuple[int, ...], arb]:
    """Return the worst distribution of the counts at the tests: revealed draws come first."""
    pi = exp(epsilon) / (1 + exp(epsilon))
    found: dict[tuple[int, ...], arb] = defaultdict(lambda: ZERO)
    for revealed, weight in enumerate(masses(DRAWS, arb(delta))):
        if revealed and not delta:
            break
        sure = [min(k, revealed) for k in STAGES.guesses]
        steps = np.diff([k - s for k, s in zip(STAGES.guesses, sure, strict=True)], prepend=0)
        for added in itertools.product(*(range(step + 1) for step in steps.tolist())):
            counts = np.cumsum(added) + sure
            mass = weight
            for step, good in zip(steps.tolist(), added, strict=True):
                mass *= masses(step, pi)[good]
            found[tuple(counts.tolist())] += mass
    return found


def outcomes() -> Iterator[tuple[int, ...]]:
    yield from laws(0.0, 0.0)


@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
def test_a_p_value_by_rank_is_as_rare_as_it_says(epsilon: float, delta: float) -> None:
    law = laws(epsilon, delta)
    values = {
        counts: ranked_p_value(counts, STAGES, DRAWS, epsilon=epsilon, delta=delta)
        for counts in law
    }
    for level in set(values.values()) - {1.0}:
        rare = sum((law[counts] for counts, found in values.items() if found <= level), ZERO)
        assert rare <= arb(level)


@pytest.mark.parametrize("alpha", [0.05, 0.01])
@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_ranks_rarely_certify_more_than_the_truth(delta: float, alpha: float) -> None:
    certified = {
        counts: ranked_epsilon(counts, STAGES, DRAWS, delta=delta, failure_prob=alpha)
        for counts in outcomes()
    }
    values = sorted({found for found in certified.values() if found > 0})
    assert values
    for value in values[:: max(len(values) // 12, 1)]:
        law = laws(below(value), delta)
        wrongly = sum((law[counts] for counts, found in certified.items() if found >= value), ZERO)
        assert wrongly <= arb(alpha)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5])
def test_a_p_value_of_one_run_is_as_rare_as_it_says(epsilon: float) -> None:
    planner, law = GuessPlanner(CANARIES, 0.05), paths(epsilon)
    values = {path: planner.p_value(np.array(path), PureDP(epsilon)) for path in law}
    for level in set(values.values()) - {1.0}:
        rare = sum((law[path] for path, found in values.items() if found <= level), ZERO)
        assert rare <= arb(level)


@pytest.mark.slow
def test_one_run_rarely_certifies_more_than_the_truth() -> None:
    alpha = 0.2
    planner = GuessPlanner(CANARIES, alpha)
    certified = {path: planner.epsilon(np.array(path), 0.0) for path in paths(0.0)}
    values = sorted({found for found in certified.values() if found > 0})
    assert len(values) > 3
    for value in values:
        law = paths(below(value))
        wrongly = sum((law[path] for path, found in certified.items() if found >= value), ZERO)
        assert wrongly <= arb(alpha)


CANARIES = 9


def paths(epsilon: float) -> dict[tuple[int, ...], arb]:
    """Return the probabilities of all paths of correct guesses under randomised response."""
    rate = exp(epsilon) / (1 + exp(epsilon))
    return {
        (0, *np.cumsum(right).tolist()): power(rate, sum(right))
        * power(1 - rate, CANARIES - sum(right))
        for right in itertools.product((0, 1), repeat=CANARIES)
    }


@pytest.mark.parametrize(("epsilon", "budget"), [(0.5, 0.0), (1.0, 0.3), (3.0, 1e-6)])
@pytest.mark.parametrize(("numbers", "wrong"), [((5, 7, 11), 4), ((20, 60), 9), ((3, 3, 90), 2)])
def test_a_sum_of_one_run_is_as_rare_as_it_says(
    epsilon: float, budget: float, numbers: tuple[int, ...], wrong: int
) -> None:
    rate = exp(epsilon) / (1 + exp(epsilon))
    alive = [ONE] + [ZERO] * wrong  # probabilities of the sums so far
    for guess in range(1, numbers[-1] + 1):
        weight = sum(number >= guess for number in numbers)
        alive = [
            rate * mass + ((1 - rate) * alive[s - weight] if s >= weight else ZERO)
            for s, mass in enumerate(alive)
        ]
    bound = sum_bound(wrong, numbers, Allowance(np.exp([epsilon]), np.array([budget])))
    assert sum(alive, ZERO) + (1 - rate) * budget <= arb(bound)


@pytest.mark.sampled
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
@pytest.mark.parametrize(("canaries", "guesses"), [(30, 12), (300, 40), (4000, 600)])
def test_a_curve_of_one_run_is_no_larger_than_its_bound(
    mu: float, canaries: int, guesses: int
) -> None:
    """Some prices prove the bound of a curve, or its best point proves it."""
    allowance = Allowance.of_claim(GaussianDP(mu), canaries)
    checked = 0
    for share in (0.7, 0.8, 0.93, 0.98, 1.0):
        correct = round(share * guesses)
        bound = tail_bound(correct, guesses, allowance)
        if not 1e-6 < bound < 1.0:
            continue
        checked += 1
        proved = least_proved(correct, guesses, allowance)
        assert proved <= arb(bound)
        assert not proved <= arb(bound * 0.97)
    assert checked


def least_proved(correct: int, guesses: int, allowance: Allowance) -> arb:
    """Return the least bound that the candidates of the code prove, in interval arithmetic.

    The candidates are the stretched prices of the tails, and the best point. For each candidate,
    the least theta is found by bisection, and every condition of the theorem is checked. Some
    conditions are equalities, so prices are 2e-10 larger than in the code, which its rounding
    allows.
    """
    tail = one_run._probability_of_tails(correct, guesses, allowance)
    prices = one_run._prices_of_tails(correct, guesses, allowance, tail)
    used = np.flatnonzero(prices).tolist()
    slopes = [arb(float(allowance.slopes[t])) for t in used]
    cost = sum((arb(float(prices[t])) * float(allowance.budgets[t]) for t in used), ZERO)
    proved, larger = [], 1 + arb(2) / 10**10
    for stretch in one_run._STRETCHES.tolist():
        lengths = [arb(float(prices[t])) * stretch * larger for t in used]
        low, high = 0.0, tail * (1 + 1e-12)
        if not kept(correct, guesses, arb(high), lengths, slopes):
            continue
        for _ in range(22):
            middle = (low + high) / 2
            if kept(correct, guesses, arb(middle), lengths, slopes):
                high = middle
            else:
                low = middle
        proved.append(arb(high) + cost * stretch * larger)
    point = one_run.best_point(correct, guesses, allowance)
    slope, budget = float(point.slopes[0]), float(point.budgets[0])
    proved += [
        theta + arb(budget) * largest_price(correct, guesses, arb(slope), theta)
        for theta in thetas(correct, guesses, float(np.log(slope)), budget)
    ]
    least: arb = min(proved, key=lambda one: float(one.mid()))
    return least


def kept(v: int, n: int, theta: arb, lengths: list[arb], slopes: list[arb]) -> bool:
    """Return whether prices U <= L satisfy every condition of the theorem for theta."""
    gain, starts = ZERO, [(ZERO, ZERO)]  # sums of prices, and of prices times slopes
    for length, slope in zip(lengths, slopes, strict=True):
        starts.append((starts[-1][0] + length, starts[-1][1] + slope * length))
    for c in range(n, 0, -1):
        needed = ((arb(int(c >= v)) - theta + (n - c) * gain) / c).max(ZERO)
        if not needed <= starts[-1][0]:
            return False
        gain = ZERO  # the largest of the lines of a convex function
        for (price, start), slope in zip(starts[:-1], slopes, strict=True):
            gain = gain.max(start + slope * (needed - price))
    return bool(n * gain <= theta)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize(("canaries", "guesses"), [(20, 12), (200, 40)])
def test_a_tail_of_one_run_is_no_larger_than_its_bound(
    epsilon: float, canaries: int, guesses: int
) -> None:
    """If delta is 0, the bound is a tail. Otherwise, dual prices of the theorem prove it."""
    factor = exp(epsilon)
    law = masses(guesses, factor / (1 + factor))
    for correct in range(guesses // 2, guesses + 1, 3):
        pure = guess_p_value(correct, guesses, canaries, ApproxDP(epsilon, 1e-300))
        assert sum(law[correct:], ZERO) <= arb(pure)
        for delta in (1e-6, 1e-3):
            bound = guess_p_value(correct, guesses, canaries, ApproxDP(epsilon, delta))
            proved = (
                theta + arb(canaries) * delta * largest_price(correct, guesses, factor, theta)
                for theta in thetas(correct, guesses, epsilon, canaries * delta)
            )
            assert bound == 1.0 or any(one <= arb(bound) for one in proved)


def largest_price(v: int, n: int, factor: arb, theta: arb) -> arb:
    """Return the smallest L that satisfies the conditions of the theorem for theta."""
    u, largest = ZERO, ZERO
    for c in range(n, 0, -1):
        u = ((arb(int(c >= v)) - theta + factor * (n - c) * u) / c).max(ZERO)
        largest = largest.max(u)
    # The condition at c = 0 has no price of its own.
    return largest if factor * n * u <= theta else arb(10) ** 9


def thetas(v: int, n: int, epsilon: float, budget: float) -> list[arb]:
    """Return candidates of theta around the minimum of the convex bound."""
    least = sum(masses(n, exp(epsilon) / (1 + exp(epsilon)))[v:], ZERO)
    low = float(least.mid()) * (1 + 1e-13)
    high = min(low + budget, 1.0)

    def value(theta: float) -> float:
        price = largest_price(v, n, exp(epsilon), arb(theta))
        return theta + budget * float(price.mid())

    for _ in range(60):
        third = (high - low) / 3
        if value(low + third) <= value(high - third):
            high -= third
        else:
            low += third
    start = float(least.mid()) * (1 + 1e-13)
    return [arb(low), arb(high), arb(start)]


# --- bets ---------------------------------------------------------------------------------------


def corners(epsilon: float, delta: float) -> Iterator[list[arb]]:
    """Yield all corners of the pairs of rates that a claim allows, and some points next to them.

    A corner makes four independent ones of eight constraints equalities. A point is left out only
    if it certainly violates another constraint.
    """
    t, tiny = exp(epsilon), arb(10) ** -25
    # Coordinates: p_L, p_R, q_L, q_R; each constraint is row . x <= bound.
    rows = [[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 0], [0, 0, 0, -1]]
    rows += [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, -t, 0], [0, -t, 0, 1]]
    bounds = [0, 0, 0, 0, 1, 1, delta, delta]
    for active in itertools.combinations(range(8), 4):
        matrix = arb_mat([[arb(x) for x in rows[i]] for i in active])
        try:
            solved = matrix.solve(arb_mat([[arb(bounds[i])] for i in active]))
        except ZeroDivisionError:
            continue
        x = [solved[i, 0] for i in range(4)]
        sums = [sum((arb(r) * y for r, y in zip(row, x, strict=True)), ZERO) for row in rows]
        if all(not one > arb(bound) + tiny for one, bound in zip(sums, bounds, strict=True)):
            yield x


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_no_allowed_pair_of_rates_gains_by_a_bet(epsilon: float, delta: float) -> None:
    """The gain F + G is linear, so its maximum is at a corner; (F + G)^2 / 4 bounds F G."""
    vertices = list(corners(epsilon, delta))
    assert len(vertices) >= 8
    rng = np.random.default_rng(1)
    sides = [rng.dirichlet([1, 1, 1], size=2) for _ in range(12)]
    sides += [np.array([[0.97, 0.01, 0.02], [0.0, 0.9, 0.1]])]
    sides += [np.array([[0.9, 0.1, 0.0], [0.05, 0.95, 0.0]])]
    tried = 0
    for (left, right), size in itertools.product(sides, (0.3, 1.0)):
        bet = wager(left, right, np.array([epsilon]), delta, size)
        if bet.growth[0] == 0:
            continue
        tried += 1
        a, b = ([arb(float(x)).exp() for x in logs[0]] for logs in (bet.log_left, bet.log_right))
        price = arb(float(bet.log_price[0]))
        can_abstain = left[2] + right[2] > 0
        for p_left, p_right, q_left, q_right in vertices:
            rest = [ONE - p_left - p_right, ONE - q_left - q_right]
            if not can_abstain and any(one > arb(10) ** -20 for one in rest):
                continue
            gain = a[0] * p_left + a[1] * p_right + b[0] * q_left + b[1] * q_right
            gain += a[2] * rest[0] + b[2] * rest[1] if can_abstain else ZERO
            assert gain <= 2 * (price / 2).exp() + arb(10) ** -15
    assert tried >= 2


# --- the checks themselves ----------------------------------------------------------------------


def test_a_bound_that_is_too_good_by_a_little_fails() -> None:
    """A proportion and a p-value are sharp. The bounds of two counts leave a few percent."""
    low = float(lower_rates(30, 60, 0.05)) * (1 + 1e-6)
    assert not sum(masses(60, arb(low))[30:], ZERO) <= arb(0.05)
    law = laws(1.0, 0.0)
    top = max(law)
    value = ranked_p_value(top, STAGES, DRAWS, epsilon=1.0, delta=0.0)
    assert not law[top] <= arb(value * (1 - 1e-6))
