"""Mistakes planted in the statistics."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

JOINT = ("tests/stats/test_joint.py",)
RATES = ("tests/stats/test_divergence.py", "tests/stats/test_curves.py")
PAIRED = ("tests/stats/test_betting.py",)
COMPOSITION = ("tests/stats/test_composition.py",)

MUTANTS = (
    Mutant(
        "stats/joint.py",
        "each interval of the nuisance parameter gets the whole failure probability",
        "tail_prob = alpha * NUISANCE_SHARE / 4",
        "tail_prob = alpha",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "critical counts are one too large",
        "np.ceil(n * x - 1e-9 * n - 1e-7), n + 1.0)",
        "np.ceil(n * x - 1e-9 * n - 1e-7) + 1, n + 1.0)",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the region is cut at its outer corners instead of the inner ones",
        "likely, rare = [p[:-1][~chord]], [q[1:][~chord]]",
        "likely, rare = [p[1:][~chord]], [q[:-1][~chord]]",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the gap of convexity is not subtracted from the level",
        "solved = tail.solve(nodes, guesses, level - gap, grid_p)",
        "solved = tail.solve(nodes, guesses, level, grid_p)",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the last block of counts is omitted",
        "mass[:, -1] = np.where(upper[:, -1], outside[:, -1], 1 - outside[:, -1])",
        "mass[:, -1] = 0.0",
        JOINT,
    ),
    Mutant(
        "stats/joint.py",
        "the complement leaves one side unchanged",
        "self.draws_right - self.hits_right,",
        "self.hits_right,",
        ("tests/stats/test_proportions.py",),
    ),
    Mutant(
        "stats/joint.py",
        "an upper bound one success too low",
        "a = np.asarray(successes, dtype=float) + 1.0",
        "a = np.asarray(successes, dtype=float)",
        ("tests/stats/test_proportions.py",),
    ),
    Mutant(
        "stats/rates.py",
        "the likelier side is swapped",
        'ordered = counts if likelier == "left" else counts.swapped()',
        'ordered = counts if likelier == "right" else counts.swapped()',
        RATES,
    ),
    Mutant(
        "stats/rates.py",
        "epsilon is the largest over the corners instead of the smallest",
        "return float(max(direct.min(), mirrored.min(), 0.0))\n",
        "return float(max(direct.max(), mirrored.max(), 0.0))\n",
        RATES,
    ),
    Mutant(
        "stats/rates.py",
        "delta is omitted for the complement",
        "((p - delta, q), (1 - q - delta, 1 - p))",
        "((p - delta, q), (1 - q, 1 - p))",
        RATES,
    ),
    Mutant(
        "stats/divergence.py",
        "the excess includes deficits",
        "return float(np.maximum(p - scaled_q, 0.0).sum())",
        "return float(np.abs(p - scaled_q).sum())",
        RATES,
    ),
    Mutant(
        "stats/divergence.py",
        "delta is omitted in the inverse",
        "root = math.log((p_sum - delta) / q_sum)",
        "root = math.log(p_sum / q_sum)",
        RATES,
    ),
    Mutant(
        "stats/divergence.py",
        "a divergence of order alpha is divided by alpha, not alpha - 1",
        "return float(np.logaddexp.reduce(log_terms) / (alpha - 1))",
        "return float(np.logaddexp.reduce(log_terms) / alpha)",
        RATES,
    ),
    Mutant(
        "stats/paired.py",
        "bets that could lose more than the whole wealth are kept",
        "admissible = (bets == 0) | (bets * worst <= 1.0)",
        "admissible = (bets == 0) | (bets * worst <= 2.0)",
        PAIRED,
    ),
    Mutant(
        "stats/paired.py",
        "the weights of the mixture are omitted",
        "return log_sum(wealth + np.log(weights[admissible]))",
        "return log_sum(wealth)",
        PAIRED,
    ),
    Mutant(
        "stats/betting.py",
        "the search returns a point that it found too high",
        "            high, at_high = middle, value\n    return low",
        "            high, at_high = middle, value\n    return high",
        PAIRED,
    ),
    Mutant(
        "stats/wagers.py",
        "bets have no price",
        "price = 2 * np.log(np.maximum(bound / 2, 1.0))",
        "price = 0 * np.log(np.maximum(bound / 2, 1.0))",
        ("tests/stats/test_wagers.py",),
    ),
    Mutant(
        "stats/wagers.py",
        "the bound of a bet omits e^epsilon",
        "((a, (-k, theta * m, none)), (b, (theta * k, -m, none)))",
        "((a, (-k, m, none)), (b, (k, -m, none)))",
        ("tests/stats/test_wagers.py",),
    ),
    Mutant(
        "stats/rates.py",
        "all of failure_prob is spent twice",
        "lower_rates(counts.correct, counts.guesses, alpha * (1 - SHARE_OF_GUESSING))",
        "lower_rates(counts.correct, counts.guesses, 2 * alpha)",
        ("tests/stats/test_guesses.py",),
    ),
    Mutant(
        "stats/ranked.py",
        "draws that reveal the secret (delta) are omitted",
        "revealed = scipy.stats.binom.pmf(np.arange(most + 1), draws, delta)",
        "told = np.ones(1)",
        ("tests/stats/test_ranked.py",),
    ),
    Mutant(
        "stats/ranked.py",
        "the random walk continues after it crossed the boundary",
        "mass, before = mass[:height], k",
        "before = k",
        ("tests/stats/test_ranked.py",),
    ),
    Mutant(
        "stats/composition.py",
        "losses are rounded up",
        "index = np.floor((loss - offset)",
        "index = np.ceil((loss - offset)",
        COMPOSITION,
    ),
    Mutant(
        "stats/composition.py",
        "infinite losses of one step count once",
        "sum(one.times * math.log1p(",
        "sum(math.log1p(",
        COMPOSITION,
    ),
    Mutant(
        "stats/composition.py",
        "the mass outside the window moves into it",
        "np.abs(mass)) + self.outside",
        "np.abs(mass))",
        COMPOSITION,
    ),
    Mutant(
        "stats/composition.py",
        "the error of the transform is neglected",
        "error += _norm(weights) * self.error",
        "error += 0",
        COMPOSITION,
    ),
    Mutant(
        "stats/composition.py",
        "only one direction is bounded",
        "_Direction(self.steps, True, bins)",
        "_Direction(self.steps, False, bins)",
        COMPOSITION,
    ),
)
