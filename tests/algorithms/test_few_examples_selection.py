"""PAC learning, ClippedPairwiseEM, hypothesis selection, representations, covers and packings."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import multivariate_normal, norm

from algorithms.common.subsampling import amplified_epsilon, on_subsample, population_for
from algorithms.few_examples import covers, learning, packings, pairwise
from algorithms.few_examples.hypotheses import (
    GaussianComparison,
    flat_items,
    scheffe_comparison,
    total_variation,
)
from algorithms.few_examples.items import AlternatingMajority
from algorithms.few_examples.representations import (
    Representation,
    hashed_points,
    is_representation,
    point_functions,
    thresholds,
)
from tests.statistical import assert_frequencies

CLASS = thresholds(3)
RANDOM = Representation((CLASS[:2], CLASS[1:]), (0.25, 0.75))
EXAMPLES = list(itertools.product(range(3), range(2)))


def datasets(n, m):
    """Return all datasets of n users with m labelled points each."""
    users = list(itertools.product(EXAMPLES, repeat=m))
    return [np.array(data) for data in itertools.product(users, repeat=n)]


def losses_between_neighbours(pmf, n, m):
    """Return the largest log ratio over all pairs that differ in the first user."""
    users = [np.array(user) for user in itertools.product(EXAMPLES, repeat=m)]
    worst = 0.0
    for rest in datasets(n - 1, m)[::3]:
        logs = np.array([np.log(pmf(np.concatenate([user[None], rest]))) for user in users])
        worst = max(worst, np.ptp(logs, axis=0).max())
    return worst


def test_pac_learning_is_private_and_attains_it_nearly():
    def pmf(data):
        return learning.pac_pmf(data, representation=RANDOM, epsilon=0.8)

    assert 0.3 < losses_between_neighbours(pmf, 2, 2) <= 0.8 * (1 + 1e-12)


def test_not_clipped_it_is_not_private():
    """A counterexample: a cap of m with noise for a sensitivity of 1 is not private.

    Noise for a group of m examples is private.
    """
    one = np.array([[[0, 0]] * 3, [[0, 1]] * 3])
    other = np.array([[[0, 1]] * 3, [[0, 1]] * 3])
    errors = [learning.clipped_errors(x, CLASS, cap=3.0) for x in (one, other)]
    assert abs(errors[0] - errors[1]).max() == 3
    paid = [learning.pac_pmf(x, representation=RANDOM, epsilon=0.8, cap=3.0) for x in (one, other)]
    assert abs(np.log(paid[0] / paid[1])).max() <= 0.8


def test_agnostic_learning_is_private():
    def pmf(data):
        return learning.agnostic_pmf(data, representation=RANDOM, threshold=1.0, epsilon=0.8)

    assert 0.3 < losses_between_neighbours(pmf, 2, 2) <= 0.8 * (1 + 1e-12)


def test_clipped_errors_are_users_that_contradict():
    data = np.array([[[0, 0], [1, 1], [2, 1]], [[0, 1], [1, 1], [2, 1]], [[0, 0], [1, 0], [2, 0]]])
    unrealizable = [
        sum(any(h[x] != y for x, y in user) for user in data.tolist()) for h in CLASS
    ]  # fmt: skip
    assert learning.clipped_errors(data, CLASS).tolist() == unrealizable
    total = [sum(h[x] != y for user in data.tolist() for x, y in user) for h in CLASS]
    assert learning.clipped_errors(data, CLASS, cap=3).tolist() == total


def test_draws_follow_the_distributions():
    rng = np.random.default_rng(5)
    data = np.array([[[0, 0], [1, 1]], [[2, 1], [1, 1]], [[0, 1], [2, 0]]])
    asked = {"representation": RANDOM, "epsilon": 1.5}
    pmf = learning.pac_pmf(data, **asked)
    drawn = learning.pac_learner(data, 40_000, **asked, rng=rng)
    assert_frequencies(np.bincount(drawn, minlength=pmf.size), pmf)
    asked |= {"threshold": 1.5}
    pmf = learning.agnostic_pmf(data, **asked)
    drawn = learning.agnostic_learner(data, 40_000, **asked, rng=rng)
    assert_frequencies(np.bincount(drawn, minlength=pmf.size), pmf)


def test_the_sign_of_the_comparison():
    """A counterexample: the printed sign chooses the hypothesis with the most errors."""
    data = np.array([[[x, int(x >= 1)] for x in (0, 1, 2)]] * 40)
    right = learning.agnostic_pmf(
        data, representation=Representation((CLASS,)), threshold=3.0, epsilon=2.0
    )
    assert right.argmax() == 1
    psi = np.zeros((4, 4, 6))
    for (c, h), (d, g), (x, y) in itertools.product(enumerate(CLASS), enumerate(CLASS), EXAMPLES):
        psi[c, d, 2 * x + y] = float(h[x] == y) - float(g[x] == y)
    flat = data @ [2, 1]
    printed = pairwise.clipped_pairwise_pmf(
        flat, comparison=pairwise.TableComparison(psi), threshold=3.0, epsilon=2.0
    )
    mended = pairwise.clipped_pairwise_pmf(
        flat, comparison=pairwise.TableComparison(-psi), threshold=3.0, epsilon=2.0
    )
    np.testing.assert_allclose(mended, right, atol=1e-12)
    errors = [(h[data[0, :, 0]] != data[0, :, 1]).mean() for h in CLASS]
    assert printed.argmax() == np.argmax(errors)


# --- ClippedPairwiseEM ---


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_scores_move_by_twice_the_threshold(data):
    """Compare the clipped scores with a written-out version, and check their sensitivity.

    The comparison psi is arbitrary. There are three candidates and three kinds of items.
    """
    entries = st.floats(-1, 1)
    psi = np.array(data.draw(st.lists(entries, min_size=27, max_size=27))).reshape(3, 3, 3)
    items = np.array(data.draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))).reshape(4, 2)
    tau = data.draw(st.floats(0.01, 3.0))
    comparison = pairwise.TableComparison(psi)

    def scores(x):
        return pairwise.clipped_scores(x, comparison=comparison, threshold=tau)

    expected = [
        max(
            sum(min(max(sum(psi[h, g, z] for z in user), -tau), tau) for user in items)
            for g in range(3)
            if g != h
        )
        for h in range(3)
    ]
    np.testing.assert_allclose(scores(items), expected, atol=1e-12)
    other = items.copy()
    other[1] = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    assert abs(scores(items) - scores(other)).max() <= 2 * tau + 1e-12


def test_twice_the_threshold_is_attained():
    comparison = scheffe_comparison(np.array([[1.0, 0.0], [0.0, 1.0]]))
    one, other = np.zeros((1, 4), dtype=int), np.ones((1, 4), dtype=int)
    moved = [
        pairwise.clipped_scores(x, comparison=comparison, threshold=0.75) for x in (one, other)
    ]
    assert (moved[1] - moved[0])[0] == 0.75  # psi is in [0, 1] or [-1, 0] here
    psi = np.zeros((2, 2, 2))
    psi[0, 1], psi[1, 0] = [-1, 1], [1, -1]
    table = pairwise.TableComparison(psi)
    moved = [pairwise.clipped_scores(x, comparison=table, threshold=0.75) for x in (one, other)]
    assert (moved[1] - moved[0]).tolist() == [1.5, -1.5]


def test_a_single_candidate_is_chosen():
    comparison = scheffe_comparison(np.array([[0.5, 0.5]]))
    pmf = pairwise.clipped_pairwise_pmf(
        [[0], [1]], comparison=comparison, threshold=1.0, epsilon=1.0
    )
    assert pmf.tolist() == [1.0]


def test_thresholds_and_users_of_theorem_37():
    for alpha, m in itertools.product([0.5, 0.1, 0.01], [1, 30, 10**3, 10**5]):
        tau = pairwise.pairwise_threshold(alpha, m)
        gap = tau - 0.5 * alpha * m
        assert tau == m or 2 * math.exp(-0.5 * gap**2 / m) <= 1e-4 * alpha**2  # equation (12)
    gap = pairwise.pairwise_threshold(0.5, 10**9, constant=5.70) - 0.25e9
    assert gap > 0
    least = 5.70 * math.sqrt(math.log(2))  # in units of sqrt(m), without the term alpha m
    assert 2 * math.exp(-0.5 * least**2) > 1e-4 * 0.25
    asked = {"alpha": 0.1, "beta": 0.05, "epsilon": 1.0}
    users = [
        pairwise.pairwise_users(10, m=m, threshold=pairwise.pairwise_threshold(0.1, m), **asked)
        for m in (1, 4, 16, 10**4)
    ]
    assert users == sorted(users, reverse=True)


def test_pac_users():
    """Check how the number of users depends on the number of examples per user.

    Up to 1/alpha examples, users times examples is constant. Beyond 1/alpha examples, the number of
    users is constant.
    """
    asked = {"alpha": 0.1, "epsilon": 0.5}
    users = [learning.pac_users(3.0, m=m, **asked) for m in (1, 2, 5, 10, 11, 1000)]
    needed = max(37.5 * (3 + math.log(100)), 80 * (3 + math.log(10))) / 0.1
    assert users[:4] == [math.ceil(needed / m) for m in (1, 2, 5, 10)]
    assert users[3:] == [users[3]] * 3


def test_constants_by_hand():
    asked = {"alpha": 0.25, "beta": 0.1, "epsilon": 2.0, "m": 100}
    private = 40 * 7.0 * math.log(3 * 50 / 0.1) / (2.0 * 0.25 * 100)
    sampled = 800 * math.log(6 * 50**2 / 0.1) / (0.25**2 * 100)
    assert sampled > private
    assert pairwise.pairwise_users(50, threshold=7.0, **asked) == math.ceil(sampled)
    asked["epsilon"] = 0.02
    assert pairwise.pairwise_users(50, threshold=7.0, **asked) == math.ceil(100 * private)
    assert covers.printed_parts(3, 0.25) == 120
    assert covers.sufficient_parts(3, 0.025) == 30
    assert pairwise.pairwise_threshold(0.01, 10**4) == pytest.approx(
        5.71 * (100 + 100 * math.sqrt(math.log(100)))
    )


def test_more_examples_than_are_used():
    """A counterexample: with 20,000 examples, each user contradicts even a good hypothesis."""
    classes = np.array([np.zeros(1000, dtype=int), np.arange(1000) >= 500]).astype(int)
    m, alpha = 20_000, 0.1
    n = learning.pac_users(math.log(2), alpha=alpha, epsilon=1.0, m=m)
    x = np.random.default_rng(0).integers(0, 1000, (n, m))
    data = np.stack([x, x == 0], axis=-1).astype(int)
    used = learning.used_examples(m, alpha)
    assert used == 10
    asked = {"representation": Representation((classes,)), "epsilon": 1.0}
    assert learning.pac_pmf(data, **asked)[0] < 0.6
    assert learning.pac_pmf(data[:, :used], **asked)[0] > 0.99


def test_in_chunks(monkeypatch):
    comparison = scheffe_comparison(covers.simplex_grid(3, 3))
    items = np.random.default_rng(2).integers(0, 3, (30, 4))
    found = []
    for cells in (2**22, 700, 1):
        monkeypatch.setattr("algorithms.few_examples.pairwise._CELLS", cells)
        found.append(pairwise.clipped_scores(items, comparison=comparison, threshold=0.7))
    np.testing.assert_allclose(found[1:], found[:1] * 2, atol=1e-12)


def test_one_point():
    representation = Representation((thresholds(1),))
    pmf = learning.pac_pmf([[[0, 1]]], representation=representation, epsilon=2.0)
    assert pmf.argmax() == 0


# --- hypotheses ---


def test_scheffe_by_its_definition():
    rows = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.0, 1.0, 0.0]])
    psi = np.asarray(scheffe_comparison(rows).psi)
    for (i, p), (j, q), z in itertools.product(enumerate(rows), enumerate(rows), range(3)):
        inside = p > q
        assert psi[i, j, z] == pytest.approx(p[inside].sum() - inside[z])
        assert psi[i, j] @ p == pytest.approx(0, abs=1e-15)
        assert psi[i, j] @ q == pytest.approx(total_variation(p, q))


@pytest.mark.slow
def test_gaussian_comparison_against_scipy():
    means = np.array([[0.0, 0.0], [1.0, 0.5], [-0.5, 0.25]])
    items = np.random.default_rng(2).normal(size=(7, 3, 2))
    known = GaussianComparison(means)
    spread = np.array([np.eye(2), [[2.0, 0.5], [0.5, 1.5]], [[1.5, -0.25], [-0.25, 1.0]]])
    unknown = GaussianComparison(means, spread)
    for comparison, covariances in [(known, [np.eye(2)] * 3), (unknown, spread)]:
        found = comparison.of_users(comparison.users_of(items))
        laws = [multivariate_normal(a, b) for a, b in zip(means, covariances, strict=True)]
        for i, j in itertools.permutations(range(3), 2):
            grid = np.stack(np.meshgrid(*[np.linspace(-8, 8, 801)] * 2), axis=-1)
            mass = (laws[i].pdf(grid) * (laws[i].pdf(grid) > laws[j].pdf(grid))).sum() * 0.02**2
            inside = laws[i].logpdf(items) > laws[j].logpdf(items)
            np.testing.assert_allclose(found[:, i, j], 3 * mass - inside.sum(axis=1), atol=6e-3)
    gap = np.linalg.norm(means[0] - means[1])
    one = known.of_users(known.users_of(means[None, :1]))
    assert one[0, 0, 1] == pytest.approx(norm.cdf(gap / 2) - 1)


def test_selection_finds_the_right_one():
    grid = covers.simplex_grid(3, 6)
    truth = 17
    items = np.random.default_rng(1).choice(3, size=(400, 20), p=grid[truth])
    pmf = pairwise.clipped_pairwise_pmf(
        items, comparison=scheffe_comparison(grid), threshold=10.0, epsilon=2.0
    )
    assert pmf[truth] > 0.99


# --- representations ---


@pytest.mark.parametrize("alpha", [0.1, 0.3, 0.6])
def test_the_worst_distribution_of_one_class_by_a_game(alpha):
    """Compare the worst distribution with the value of a game.

    With one class, the failure probability is 0 or 1. In the game, the distribution D plays against
    the hypotheses.
    """
    for concept in thresholds(4):
        wrong = (concept != CLASS_OF_FOUR).astype(float)
        game = linprog(
            [0, 0, 0, 0, -1], A_ub=np.c_[-wrong, np.ones(len(wrong))], b_ub=np.zeros(len(wrong)),
            A_eq=[[1, 1, 1, 1, 0]], b_eq=[1], bounds=(0, 1),
        )  # fmt: skip
        failure, points = Representation((CLASS_OF_FOUR,)).failure(concept, alpha)
        assert failure == float(-game.fun > alpha)
        if failure:
            assert points.sum() == pytest.approx(1)
            assert (wrong @ points).min() > alpha


CLASS_OF_FOUR = np.array([[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 0, 1]])


def test_the_worst_distribution_over_all_sets_of_classes():
    rng = np.random.default_rng(0)
    classes = tuple(rng.integers(0, 2, (2, 4)) for _ in range(4))
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    representation = Representation(classes, weights)
    for concept in thresholds(4)[1:3]:
        best = 0.0
        for chosen in itertools.product([0, 1], repeat=4):
            rows = [c != concept for c, z in zip(classes, chosen, strict=True) if z]
            if rows:
                wrong = np.concatenate(rows).astype(float)
                game = linprog(
                    [0, 0, 0, 0, -1], A_ub=np.c_[-wrong, np.ones(len(wrong))],
                    b_ub=np.zeros(len(wrong)), A_eq=[[1, 1, 1, 1, 0]], b_eq=[1], bounds=(0, 1),
                )  # fmt: skip
                if -game.fun > 0.25 + 1e-6:
                    best = max(best, weights @ chosen)
        assert representation.failure(concept, 0.25)[0] == pytest.approx(best)


def test_representations():
    assert is_representation(Representation((thresholds(5),)), thresholds(5), 0.0, 0.0)
    assert not is_representation(Representation((thresholds(5)[1:],)), thresholds(5), 0.3, 0.9)
    for size in (4, 8):
        hashed = hashed_points(7, size)
        assert hashed.size == pytest.approx(math.log(size))
        assert hashed.hypotheses.shape == (42 * size, 7)
    assert is_representation(hashed_points(7, 8), point_functions(7), 0.25, 0.0)


# --- covers and packings ---


@given(st.integers(1, 6), st.integers(1, 30), st.data())
def test_rounding_to_the_grid(k, parts, data):
    masses = np.array(data.draw(st.lists(st.floats(0.001, 1), min_size=k, max_size=k)))
    masses /= masses.sum()
    near = covers.nearest_in_grid(masses, parts)
    assert near.sum() == pytest.approx(1)
    assert (near >= 0).all()
    np.testing.assert_allclose(near * parts, np.round(near * parts), atol=1e-9)
    assert total_variation(masses, near) <= k / (4 * parts) + 1e-12


def test_the_simplex_grid():
    grid = covers.simplex_grid(3, 4)
    assert len(grid) == math.comb(6, 2) == len(np.unique(grid, axis=0))
    np.testing.assert_array_equal(grid.sum(axis=1), 1)
    half = covers.sufficient_parts(2, 0.25)
    assert half == 2
    assert total_variation([0.75, 0.25], covers.nearest_in_grid([0.75, 0.25], 2)) == 0.25


def test_products_cover():
    cover = covers.product_cover(2, 2, covers.sufficient_parts(2, 0.1))
    np.testing.assert_allclose(cover.sum(axis=1), 1)
    for p, q in itertools.product(np.linspace(0, 1, 12), repeat=2):
        product = np.outer([1 - p, p], [1 - q, q]).reshape(-1)
        assert total_variation(cover, product).min() <= 0.2
    items = np.array([[[0, 1], [1, 0]]])
    assert flat_items(items, 2).tolist() == [[1, 2]]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussians_cover(d):
    means = covers.gaussian_cover(1.3, d, 0.25)
    rng = np.random.default_rng(d)
    points = rng.normal(size=(3000, d))
    points *= 1.3 * rng.random((3000, 1)) ** 0.2 / np.linalg.norm(points, axis=1, keepdims=True)
    gaps = np.linalg.norm(points[:, None] - means, axis=2).min(axis=1)
    assert (2 * norm.cdf(gaps / 2) - 1).max() <= 0.25 + 1e-12
    assert covers.gaussian_cover(0.0, d, 0.1).tolist() == [[0.0] * d]


def gaussian_distance(one, other):
    """Compute the total variation of Gaussians on a line by quadrature."""
    x = np.linspace(-25, 25, 20001)
    densities = [norm.pdf(x, mean, math.sqrt(variance)) for mean, variance in (one, other)]
    return np.abs(densities[0] - densities[1]).sum() * (x[1] - x[0]) / 2


def test_gaussians_of_bounded_covariance_cover():
    means, covariances = covers.bounded_gaussian_cover(0.5, 1, 2.5, 0.3)
    for mean, variance in itertools.product([-0.5, 0.1, 0.33], [1.0, 1.31, 2.5]):
        near = min(
            gaussian_distance((mean, variance), (m[0], c[0, 0]))
            for m, c in zip(means, covariances, strict=True)
        )
        assert near <= 0.3
    _, matrices = covers.bounded_gaussian_cover(0.0, 2, 2.0, 0.4)
    rng = np.random.default_rng(4)
    for _ in range(200):
        basis = np.linalg.qr(rng.normal(size=(2, 2)))[0]
        target = basis * rng.choice([1.0, 1.3, 2.0], 2) @ basis.T
        assert np.linalg.norm(matrices - target, axis=(1, 2)).min() <= 0.4 + 1e-12
    values = np.linalg.eigvalsh(matrices)
    assert values.min() >= 1 - 1e-9
    assert values.max() <= 2 + 1e-9


@pytest.mark.parametrize(("length", "distance"), [(1, 1), (4, 2), (7, 3), (8, 4), (10, 5)])
def test_codes(length, distance):
    code = packings.greedy_code(length, distance)
    gaps = (code[:, None] != code[None]).sum(axis=2)
    assert gaps[~np.eye(len(code), dtype=bool)].min(initial=length) >= distance
    volume = sum(math.comb(length, i) for i in range(distance))
    assert len(code) * volume >= 2**length


def test_packings_are_distributions():
    code = packings.greedy_code(6, 3)
    labelled, discrete = packings.labelled_packing(code, 0.4), packings.discrete_packing(code, 0.4)
    np.testing.assert_allclose(labelled.sum(axis=(1, 2)), 1)
    np.testing.assert_allclose(discrete.sum(axis=1), 1)
    for i, j in itertools.combinations(range(len(code)), 2):
        apart = (code[i] != code[j]).sum()
        assert total_variation(discrete[i], discrete[j]) == pytest.approx(apart * 0.4 / 12)
        flat = labelled.reshape(len(code), -1)
        assert total_variation(flat[i], flat[j]) == pytest.approx(apart * 0.4 / 6)
    assert labelled[1, 0, code[1, 0]] == pytest.approx(1.4 / 12)
    word = code[1]
    assert discrete[1, 0] == pytest.approx((1 + 0.4 * (word[0] == 0)) / 12)
    assert discrete[1, 1] == pytest.approx((1 - 0.4 * (word[0] == 0)) / 12)
    means = packings.gaussian_packing(code, 0.2)
    np.testing.assert_allclose(np.linalg.norm(means, axis=1), 0.2)


# --- subsamples ---


def test_amplification():
    assert amplified_epsilon(1.0, 10, 10) == pytest.approx(1.0)
    assert amplified_epsilon(800.0, 10, 5) == pytest.approx(800 - math.log(2))
    for epsilon, target, sample in [(1.0, 0.1, 7), (2.0, 1.9, 100), (0.5, 0.5, 3)]:
        n = population_for(epsilon, target, sample)
        assert amplified_epsilon(epsilon, n, sample) <= target * (1 + 1e-12)
        assert n == sample or amplified_epsilon(epsilon, n - 1, sample) > target


def test_a_subsample_in_random_order():
    """Compare the draws with the mean pmf over all ordered pairs of distinct items."""
    algorithm, items = AlternatingMajority(1.0), np.array([0, 1, 1])
    pmfs = [algorithm.pmf(items[list(pair)]) for pair in itertools.permutations(range(3), 2)]
    drawn = on_subsample(items, 40_000, pmf=algorithm.pmf, sample=2, rng=np.random.default_rng(6))
    assert_frequencies(np.bincount(drawn, minlength=2), np.mean(pmfs, axis=0))


# --- refusals ---

GOOD = {"comparison": scheffe_comparison(np.eye(2)), "threshold": 1.0, "epsilon": 1.0}


@pytest.mark.parametrize(("call", "said"), [
    (lambda: Representation(()), "classes must hold at least one"),
    (lambda: Representation((np.zeros((0, 3), int),)), "classes must not be empty"),
    (lambda: Representation(([[0, 2]],)), "classes must hold only values from 0 to 1"),
    (lambda: Representation(([[0, 1]], [[0]])), "classes must all have the same number of points"),
    (lambda: Representation(([[0, 1]],), (0.5,)), "probabilities must be 1 numbers"),
    (lambda: RANDOM.failure([0, 1], 0.1), "concept must have one label for each of the 3 points"),
    (lambda: RANDOM.failure([0, 1, 1], 1.0), "alpha must be below 1"),
    (lambda: hashed_points(6, 2), "n_points must be prime"),
    (lambda: pairwise.TableComparison(np.full((2, 2, 1), 1.5)), "psi must lie between -1 and 1"),
    (lambda: pairwise.TableComparison(np.zeros((2, 1, 1))), r"psi must have shape \[H, H, univ"),
    (lambda: pairwise.TableComparison(np.full((2, 2, 1), np.nan)), "psi must hold only finite"),
    (lambda: pairwise.clipped_pairwise_pmf([[0], [0, 1]], **GOOD), "rows have equal length"),
    (lambda: pairwise.clipped_pairwise_pmf([[2]], **GOOD), "data must hold only values from 0"),
    (lambda: pairwise.clipped_pairwise_pmf([[0]], **GOOD | {"threshold": 0.0}), "threshold must"),
    (lambda: pairwise.pairwise_threshold(0.6, 3), "alpha must be at most 1/2"),
    (lambda: learning.pac_pmf([[[0, 2]]], representation=RANDOM, epsilon=1.0), "labels in data"),
    (lambda: learning.pac_pmf([[[3, 0]]], representation=RANDOM, epsilon=1.0), "from 0 to 2"),
    (lambda: learning.clipped_errors([[[0, 0]]], [[0, 2]]), "hypotheses must hold only values"),
    (lambda: learning.used_examples(3, 1e-16), "alpha must be at least 1e-15"),
    (lambda: GaussianComparison([[0.0, 0.0]], [[[1.0, 5.0], [0.0, 1.0]]]), "must be symmetric"),
    (lambda: flat_items(np.ones((1, 1, 70), int), 2), "at most 2"),
    (lambda: covers.gaussian_cover(1.0, 1, 1e-17), "radius must be at least 1e-9"),
    (lambda: on_subsample([0, 1], 2, pmf=lambda x: [0.5, 0.4], sample=1,
                          rng=np.random.default_rng(0)), "must return a probability distribution"),
    (lambda: learning.pac_pmf([[[0]]], representation=RANDOM, epsilon=1.0), r"shape \[n, m, 2\]"),
    (lambda: scheffe_comparison([[0.5, 0.4]]), "hypotheses must sum to one"),
    (lambda: scheffe_comparison(np.zeros((0, 2))), "hypotheses must not be empty"),
    (lambda: scheffe_comparison([[1.5, -0.5]]), "hypotheses must hold only values"),
    (lambda: GaussianComparison([[0.0]], [[[0.0]]]), "covariances must be positive definite"),
    (lambda: GaussianComparison([[0.0]], [[0.0]]), "covariances must have 3 dimensions"),
    (lambda: GaussianComparison([[0.0]]).users_of([[[0.0, 1.0]]]), r"shape \[n, m, 1\]"),
    (lambda: covers.simplex_grid(6, 100), "the cover must have at most"),
    (lambda: covers.bounded_gaussian_cover(1.0, 1, 0.5, 0.1), "condition must be at least 1"),
    (lambda: covers.bounded_gaussian_cover(1.0, 1, 2.0, 0.7), "radius must be at most 1/2"),
    (lambda: packings.greedy_code(17, 2), "length must be at most 16"),
    (lambda: packings.greedy_code(4, 5), "distance must be at most length"),
    (lambda: packings.discrete_packing([[0, 1]], 1.0), "bias must be below 1"),
    (lambda: amplified_epsilon(1.0, 3, 4), "sample must be at most population = 3"),
    (lambda: population_for(800.0, 0.1, 4), "epsilon must be at most 700"),
])  # fmt: skip
def test_what_is_refused(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
