"""Tests of the output distribution and the privacy of DelStab.

The distribution is computed by counting, by enumeration and from the printed algorithm.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.common.truncated_laplace import truncated_laplace, truncated_laplace_pmf, truncation
from algorithms.few_examples.deletion import (
    Budget,
    Deletions,
    deletions_of,
    delstab,
    delstab_pmf,
    is_locally_private,
)
from algorithms.few_examples.items import (
    AlternatingMajority,
    ExponentialLearner,
    FunctionAlgorithm,
    HeavyItems,
    NoisyArgmax,
    Subsampled,
    Symmetric,
    TruncatedMajority,
    known_pmf,
    noisy_majority,
)
from algorithms.few_examples.pipeline import (
    Pipeline,
    pipeline,
    pipeline_pmf,
    run_pipeline,
    stable_epsilon,
    theorem_10_epsilon,
)
from algorithms.few_examples.populations import compositions, log_ways, user_kinds
from algorithms.few_examples.reductions import AllExamples, OneExample, SuperUsers
from dpaudit.stats import hockey_stick
from tests.statistical import assert_frequencies

SMALL = {"epsilon": 9.0, "delta": 0.9}  # kappa = 5, the smallest value
ROUNDING = 1e-9


def users(ones, n, m=1):
    data = np.zeros((n, m), dtype=int)
    data[:ones] = 1
    return data


def test_the_least_budget():
    assert Budget(**SMALL).kappa == 5
    assert Budget(**SMALL, sharp=True).kappa == 4
    assert Budget(1.0, 1e-6).kappa == 49
    for epsilon, delta in itertools.product([0.1, 1, 5, 30, 200], [1e-9, 0.1, 0.99]):
        assert Budget(epsilon, delta).kappa >= 5
        assert Budget(epsilon, delta, sharp=True).kappa >= 4


@pytest.mark.parametrize("sharp", [False, True])
def test_the_budget_adds_up(sharp):
    for epsilon, delta in itertools.product([0.1, 1.0, 5.0], [1e-9, 0.5]):
        budget = Budget(epsilon, delta, sharp)
        e, d = budget.part_epsilon, budget.part_delta
        spent = (math.exp(2 * e) + math.exp(e) + 2) * d
        assert spent <= delta * (1 + 1e-12)
        assert (spent == pytest.approx(delta, rel=1e-12)) == sharp
        noise = budget.noise
        assert noise[0] == noise[-1] <= d
        assert (abs(np.diff(np.log(noise))) <= e * (1 + 1e-9)).all()


def test_truncated_laplace_is_what_it_says():
    assert truncation(0.5, math.exp(-3)) == 7
    pmf = truncated_laplace_pmf(0.5, math.exp(-3))
    weights = np.exp(-0.5 * abs(np.arange(15) - 7.0))
    np.testing.assert_allclose(pmf, weights / weights.sum(), rtol=1e-14)
    drawn = truncated_laplace(10**5, epsilon=0.5, delta=math.exp(-3), rng=np.random.default_rng(1))
    assert_drawn_from(drawn, pmf)


def assert_drawn_from(drawn, pmf):
    assert_frequencies(np.bincount(drawn, minlength=len(pmf)), pmf)


def written_out(items, algorithm, epsilon, delta, sharp):
    """Return the distribution of Algorithm 1 as printed, by enumerating all sets of users."""
    budget, n = Budget(epsilon, delta, sharp), len(items)
    keep, everybody = n - budget.deleted, range(len(items))

    def of(rest):
        return algorithm.pmf(items[list(rest)].reshape(-1))

    def alike(p, q):
        return max(hockey_stick(p, q, budget.part_epsilon),
                   hockey_stick(q, p, budget.part_epsilon)) <= budget.part_delta  # fmt: skip

    rests = {rest: of(rest) for rest in itertools.combinations(everybody, keep)}
    far = {
        frozenset(one) | frozenset(other)
        for one, other in itertools.combinations(rests, 2)
        if not alike(rests[one], rests[other])
    }
    found = np.zeros(algorithm.n_outcomes + 1)
    for r, chance in enumerate(budget.noise):
        answers = []
        for removed in itertools.combinations(everybody, r):
            left = sorted(set(everybody) - set(removed))
            if not any(pair <= set(left) for pair in far):
                within = [rests[rest] for rest in itertools.combinations(left, keep)]
                answers.append(np.mean(within, axis=0))
        if answers:
            found[:-1] += chance * np.mean(answers, axis=0)
        else:
            found[-1] += chance
    return found


@pytest.mark.sampled
@pytest.mark.parametrize(("ones", "n"), [(0, 17), (2, 17), (6, 17), (3, 18)])
def test_written_out(ones, n):
    """Compare the printed algorithm with both implementations if one or two users are kept."""
    items, learner = users(ones, n), noisy_majority(6.0)
    expected = written_out(items, learner, **SMALL, sharp=True)
    function = FunctionAlgorithm(learner.pmf, 2, 2)
    for algorithm in (learner, function):
        found = delstab_pmf(items, algorithm=algorithm, **SMALL, sharp=True)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.sampled
@pytest.mark.parametrize("epsilon", [1.0, 9.0])
@pytest.mark.parametrize("ones", [0, 1, 9])
def test_counted_as_enumerated(ones, epsilon):
    """Check that counting and enumerating agree for two and for three kinds of users.

    Two of 22 users are kept.
    """
    learner = noisy_majority(epsilon)
    function = FunctionAlgorithm(learner.pmf, 2, 2)
    for items in (users(ones, 22), np.sort(np.r_[users(ones, 20, 2), [[0, 1], [1, 0]]], axis=1)):
        counted = delstab_pmf(items, algorithm=learner, **SMALL)
        np.testing.assert_allclose(
            delstab_pmf(items, algorithm=function, **SMALL), counted, atol=1e-12
        )


class Table(Symmetric):
    """An algorithm with an arbitrary output distribution for each number of ones."""

    universe, n_outcomes = 2, 3

    def __init__(self, pmfs):
        self.pmfs = np.asarray(pmfs)

    def pmf_of_counts(self, counts):
        return self.pmfs[np.asarray(counts)[..., 1]]


@st.composite
def tables(draw, most):
    rows = st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda r: sum(r) > 0.1)
    pmfs = np.array([draw(rows) for _ in range(most + 1)])
    near = draw(st.floats(0.0, 1.0))
    pmfs = near * pmfs[:1] + (1 - near) * pmfs
    return pmfs / pmfs.sum(axis=1, keepdims=True)


def excess(one, other, epsilon):
    return max(hockey_stick(one, other, epsilon), hockey_stick(other, one, epsilon))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(pmfs=tables(3), extra=st.integers(1, 3))
def test_private_whatever_the_algorithm_is(pmfs, extra):
    """Check privacy for an arbitrary algorithm and all neighbours with one bit per user.

    The parameter kappa is 5.
    """
    n = 20 + extra
    table = Table(pmfs)
    found = [delstab_pmf(users(k, n), algorithm=table, **SMALL) for k in range(n + 1)]
    for one, other in itertools.pairwise(found):
        assert excess(one, other, 9.0) <= 0.9 + ROUNDING


@pytest.mark.nightly
@pytest.mark.parametrize("item_epsilon", [0.05, 1.0])
def test_256_users(item_epsilon):
    """Check the privacy of 256 users with one bit each, for all neighbours.

    The claim holds at epsilon = 1 and fails at epsilon = 1/3 - 0.01.
    """
    learner = noisy_majority(item_epsilon)
    found = [
        delstab_pmf(users(k, 256), algorithm=learner, epsilon=1.0, delta=1e-6) for k in range(257)
    ]
    pairs = list(itertools.pairwise(found))
    assert max(excess(one, other, 1.0) for one, other in pairs) <= 1e-6
    assert max(excess(one, other, 1 / 3 - 0.01) for one, other in pairs) > 1e-6


@pytest.mark.slow
def test_truncating_the_noise_costs_nothing_and_gains_nothing():
    """Check that discrete Laplace noise stays private if outliers move to 0 or to 4 kappa.

    Values below 0 move to 0, and values above 4 kappa move to 4 kappa.
    """
    budget = Budget(**SMALL)
    decay, last = math.exp(-budget.part_epsilon), budget.deleted
    noise = decay ** abs(np.arange(last + 1) - budget.kappa) * (1 - decay) / (1 + decay)
    noise[[0, -1]] /= 1 - decay
    assert noise.sum() == pytest.approx(1)
    for learner in (noisy_majority(6.0), noisy_majority(200.0)):
        found = [
            noise @ [Deletions.of(users(k, 23), learner, budget).output(r) for r in range(last + 1)]
            for k in range(24)
        ]
        assert max(excess(a, b, 9.0) for a, b in itertools.pairwise(found)) <= 0.9
        assert max(excess(a, b, 3.1) for a, b in itertools.pairwise(found)) <= budget.part_delta


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(pmfs=tables(21), ones=st.integers(0, 20), place=st.integers(0, 20))
def test_private_whatever_order_it_sees(pmfs, ones, place):
    """Check privacy for an algorithm that depends on the place of a bit.

    There are 22 users, and the place is counted among the remaining items.
    """

    def ordered(items):
        return pmfs[(np.flatnonzero(items)[:1].sum() * 5 + items.sum()) % len(pmfs)]

    one = users(ones, 22)
    other = one.copy()
    other[place] = 1 - other[place]
    algorithm = FunctionAlgorithm(ordered, 2, 3)
    found = [delstab_pmf(x, algorithm=algorithm, **SMALL) for x in (one, other)]
    assert excess(*found, 9.0) <= 0.9 + ROUNDING


def test_without_its_test_it_is_not_private():
    """Check that DelStab without its stability test is not private.

    The algorithm A is the majority without noise. One of n users is kept, and A reveals the bit of
    that user.
    """
    budget = Budget(1.0, 1e-3)
    n, learner = budget.deleted + 1, noisy_majority(200.0)
    pmfs, tested = [], []
    for ones in (0, 1):
        deletions = Deletions.of(users(ones, n), learner, budget)
        tested.append(budget.noise @ [deletions.output(r) for r in range(budget.noise.size)])
        deletions.far[:] = False
        pmfs.append(budget.noise @ [deletions.output(r) for r in range(budget.noise.size)])
    assert excess(*tested, 1.0) <= 1e-3
    assert excess(*pmfs, 1.0) == pytest.approx(1 / n)
    assert 1 / n > 1e-3


class Ladder(Symmetric):
    """An algorithm whose answers are close only for neighbouring datasets.

    Each further kind of item contributes 15 times less than the previous kind to the probability of
    answer 0.
    """

    universe, n_outcomes = 3, 2

    def pmf_of_counts(self, counts):
        counts = np.asarray(counts, dtype=float)
        one = counts @ (0.5 / 15.0 ** np.arange(3)) / np.maximum(counts.sum(axis=-1), 1)
        return np.stack([one, 1 - one], axis=-1)


@pytest.mark.parametrize("numbers", [(4, 11, 6), (2, 12, 8)])
def test_which_stable_set_is_drawn_matters(numbers):
    """Check that the choice among stable sets follows the algorithm.

    In line 8, each set without users of the first kind is as likely as each set without users of
    the last kind.
    """
    items = np.repeat(np.arange(3), numbers)[:, None]
    ladder = Ladder()
    pmf = delstab_pmf(items, algorithm=ladder, **SMALL)
    shares = [Deletions.of(items, ladder, Budget(**SMALL)).output(r)[:2] for r in range(11)]
    assert min(share.sum() for share in shares) == 0
    assert max(share.sum() for share in shares) == pytest.approx(1)
    rng = np.random.default_rng(11)
    for algorithm in (ladder, FunctionAlgorithm(ladder.pmf, 3, 2)):
        found = delstab_pmf(items, algorithm=algorithm, **SMALL)
        np.testing.assert_allclose(found, pmf, atol=1e-12)
        drawn = delstab(items, 200_000, algorithm=algorithm, **SMALL, rng=rng)
        assert_drawn_from(drawn, pmf)


def test_two_datasets_agree_on_what_is_alike():
    """Check that two datasets agree on which outputs are alike.

    The distance of the pair lies at the edge of delta-bar. A product over all rows rounded this
    distance in two different ways.
    """
    p, q = 0.00035946130927881625, 1.2917817943879916e-05

    class Edge(Symmetric):
        universe, n_outcomes = 3, 2

        def pmf_of_counts(self, counts):
            c = np.asarray(counts)
            middle = (p + q) / 2
            one = np.select([c[..., 2] > 0, c[..., 1] == 0, c[..., 1] <= 5], [middle, p, q], middle)
            return np.stack([one, 1 - one], axis=-1)

    budget = {"epsilon": 9.0, "delta": 0.2320287670529936}
    found = [
        delstab_pmf(np.repeat([0, 1, 2], numbers)[:, None], algorithm=Subsampled(Edge(), 9),
                    **budget)
        for numbers in ((27, 12, 1), (28, 12, 0))
    ]  # fmt: skip
    assert excess(*found, budget["epsilon"]) <= budget["delta"]


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_distributions_of_counts_are_functions_of_them(data):
    """Check that a row has the same digits alone and among the other rows of a deletion."""
    learner = ExponentialLearner(np.random.default_rng(0).normal(size=(4, 3)), 2.0)
    algorithm = data.draw(st.sampled_from([learner, Subsampled(learner, 4), Ladder()]))
    numbers = data.draw(st.lists(st.integers(2, 8), min_size=3, max_size=3))
    items = np.repeat(np.arange(3), numbers)[:, None]
    keep = min(sum(numbers), 5)
    found, (kinds, _) = deletions_of(items, algorithm, keep, 1.0, 0.1), user_kinds(items, 3)
    for counts, pmf in zip(found.rests @ kinds, found.pmfs, strict=True):
        np.testing.assert_array_equal(pmf, known_pmf(algorithm, algorithm.pmf_of_counts(counts)))


def test_draws_follow_the_distribution():
    rng = np.random.default_rng(7)
    cases = [
        (users(4, 22), noisy_majority(6.0)),
        (np.r_[users(3, 18, 2), np.tile([[0, 1]], (6, 1))], noisy_majority(2.0)),
        (users(4, 22), AlternatingMajority(2.0)),
        (np.arange(24)[:, None] % 3, NoisyArgmax(3, 1.5)),
    ]
    for items, algorithm in cases:
        pmf = delstab_pmf(items, algorithm=algorithm, **SMALL)
        drawn = delstab(items, 40_000, algorithm=algorithm, **SMALL, rng=rng)
        assert_drawn_from(drawn, pmf)


def test_a_lonely_user_and_nobody():
    """Check the output if the algorithm runs on no items, which happens for n = 4 kappa.

    With no items, the data do not matter.
    """
    learner = ExponentialLearner(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]), 3.0)
    for ones in (0, 7, 20):
        found = delstab_pmf(users(ones, 20), algorithm=learner, **SMALL)
        np.testing.assert_allclose(found, [1 / 3, 1 / 3, 1 / 3, 0], atol=1e-12)


def test_local_deletion():
    """Check the exact epsilon at which deleting one user is private.

    Deleting users with different items leaves different sums.
    """
    learner, some = noisy_majority(1.0), users(1, 5)
    cost = abs(np.log(learner.pmf(users(1, 4)[:, 0]) / learner.pmf(users(0, 4)[:, 0]))).max()
    for epsilon, private in [(cost * (1 + 1e-9), True), (0.999 * cost, False)]:
        asked = {"algorithm": learner, "removed": 1, "delta": 0.0}
        assert is_locally_private(some, epsilon=epsilon, **asked) == private
        assert is_locally_private(users(0, 5), epsilon=epsilon, **asked)
    assert is_locally_private(some, algorithm=learner, removed=0, epsilon=0.0, delta=0.0)
    assert is_locally_private(some, algorithm=learner, removed=5, epsilon=0.0, delta=0.0)


def test_deletion_moves_all_later_users():
    """A counterexample: if the order matters, deleting a user moves all later users.

    Users with alternating bits are close for a majority, but not for an algorithm that depends on
    the order.
    """
    alternating = np.arange(10)[:, None] % 2
    asked = {"removed": 1, "epsilon": 1.0, "delta": 0.1}
    assert is_locally_private(alternating, algorithm=noisy_majority(0.5), **asked)
    assert not is_locally_private(alternating, algorithm=AlternatingMajority(0.5), **asked)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", [
    noisy_majority(1.0), NoisyArgmax(2, 1.0), NoisyArgmax(3, 0.7), HeavyItems(2, 1.0, 0.4),
    HeavyItems(3, 2.0, 0.3), TruncatedMajority(1.0, 0.05), AlternatingMajority(1.0),
    ExponentialLearner(np.array([[0.0, 1.0, 3.0], [1.0, 1.0, 0.0]]), 1.5),
    Subsampled(noisy_majority(2.0), 3), Subsampled(NoisyArgmax(3, 2.0), 2),
], ids=str)  # fmt: skip
def test_item_level_privacy(algorithm):
    """Check item-level privacy on all datasets of three and of five items, for all neighbours."""
    delta = getattr(algorithm, "delta", 0.0)
    epsilon = getattr(algorithm, "epsilon", None)
    for n in (3, 5):
        claimed, allowed = epsilon, delta
        if isinstance(algorithm, Subsampled):
            claimed = math.log1p(algorithm.sample / n * math.expm1(algorithm.base.epsilon))
        worst = 0.0
        for items in itertools.product(range(algorithm.universe), repeat=n):
            here = algorithm.pmf(np.array(items))
            assert here.sum() == pytest.approx(1, abs=1e-12)
            for place, other in itertools.product(range(n), range(algorithm.universe)):
                moved = list(items)
                moved[place] = other
                worst = max(worst, hockey_stick(here, algorithm.pmf(np.array(moved)), claimed))
        assert worst <= allowed + 1e-12


def test_permute_and_flip_by_its_definition():
    counts, epsilon = np.array([3, 2, 0, 2]), 1.3
    coins = np.exp(epsilon / 2 * (counts - 3.0))
    expected = np.zeros(4)
    for order in itertools.permutations(range(4)):
        left = 1 / 24
        for item in order:
            expected[item] += left * coins[item]
            left *= 1 - coins[item]
    np.testing.assert_allclose(NoisyArgmax(4, epsilon).pmf_of_counts(counts), expected, atol=1e-13)


def test_heavy_items_by_simulation():
    algorithm = HeavyItems(2, 1.0, 0.5)
    rng = np.random.default_rng(3)
    counts, success = np.array([4, 2]), -math.expm1(-0.5)
    noise = rng.geometric(success, (10**5, 2)) - rng.geometric(success, (10**5, 2))
    sets = ((counts + noise >= 3) * [1, 2]).sum(axis=1)
    assert_drawn_from(sets, algorithm.pmf_of_counts(counts))


def test_a_majority_in_truncated_noise_by_simulation():
    algorithm, rng = TruncatedMajority(0.7, 0.05), np.random.default_rng(8)
    noise = truncated_laplace(10**5, epsilon=0.7, delta=0.05, rng=rng)
    for zeros, ones in [(3, 3), (4, 3), (3, 4), (9, 2)]:
        noisy = ones + noise - truncation(0.7, 0.05)
        drawn = (noisy > (zeros + ones) / 2).astype(int)
        assert_drawn_from(drawn, algorithm.pmf_of_counts([zeros, ones]))


def test_an_alternating_majority():
    one = AlternatingMajority(0.5).pmf(np.array([1, 0, 1, 0, 1]))[1]
    assert one == pytest.approx(1 / (1 + math.exp(-1.5)))


def test_a_share_that_is_rounded_up_is_reached():
    """Check that 7 of 100 items reach a share of 0.07.

    In floating point, 0.07 * 100 is above 7.
    """
    over = HeavyItems(2, 50.0, 0.07).pmf_of_counts([7, 93])
    assert over[3] > 0.99


def test_in_chunks(monkeypatch):
    """Check that processing sets of users in groups or one by one gives the same pmf."""
    items, whole = users(5, 24), []
    for cells in (2**22, 60, 1):
        monkeypatch.setattr("algorithms.few_examples.deletion._CELLS", cells)
        whole.append(delstab_pmf(items, algorithm=noisy_majority(4.0), **SMALL))
    np.testing.assert_allclose(whole[1:], whole[:1] * 2, atol=1e-12)


def test_a_subsample_by_enumeration():
    base, items = NoisyArgmax(3, 2.0), np.array([0, 0, 1, 2, 2, 2])
    every = [base.pmf(items[list(s)]) for s in itertools.combinations(range(6), 3)]
    np.testing.assert_allclose(Subsampled(base, 3).pmf(items), np.mean(every, axis=0), atol=1e-12)


def test_compositions_and_ways():
    caps = [2, 0, 3]
    found = compositions(3, caps)
    expected = [v for v in itertools.product(*[range(c + 1) for c in caps]) if sum(v) == 3]
    assert sorted(map(tuple, found.tolist())) == expected
    assert len(compositions(6, caps)) == 0
    assert compositions(0, caps).tolist() == [[0, 0, 0]]
    np.testing.assert_allclose(log_ways([4, 2], [[1, 2], [3, 0]]), np.log([4, 4]), atol=1e-12)
    assert log_ways([4, 2], [1, 3]) == -math.inf
    with pytest.raises(ValueError, match="ways to choose"):
        compositions(600, [300] * 6)


# --- Theorems 10 and 11 ---


def test_the_parameters_of_the_theorems():
    """Compare kappa and the derived epsilons with values computed by hand.

    For example, at epsilon = 1/2 and delta = exp(-4), kappa is 1 + ceil(6 (4 + ln(...))).
    """
    budget = Budget(0.5, math.exp(-4))
    share = math.exp(1 / 3) + math.exp(0.5) + 2
    assert budget.kappa == 1 + math.ceil(6 * (4 + math.log(share)))
    expected = 2 * 0.5 / (budget.kappa * math.sqrt(9 * (math.log(900) + 4)))
    assert stable_epsilon(budget, 100, 9, constant=2.0) == pytest.approx(expected)
    expected = 0.25 / (4 * math.sqrt(9 * (math.log(9) + 4)))
    assert theorem_10_epsilon(budget, 9) == pytest.approx(expected)


@pytest.mark.parametrize("m", [1, 4, 25])
def test_the_fewest_users(m):
    budget = Budget(1.0, 1e-5)
    for base in (theorem_10_epsilon(budget, m), 1.0):
        plan = pipeline(budget, m, sample=300, base_epsilon=base)
        target = stable_epsilon(budget, plan.n_users, m)
        assert plan.item_epsilon <= target * (1 + 1e-12)
        assert plan.n_items % m == 0
        fewer = plan.n_items - m
        if fewer >= 300:
            short = Pipeline(budget, m, 300, base, fewer, 1.0)
            assert short.item_epsilon > stable_epsilon(budget, short.n_users, m)


def test_the_pipeline_is_delstab_on_a_subsample():
    plan = pipeline(Budget(**SMALL), 2, sample=3, base_epsilon=2.0, constant=5.0)
    data = np.random.default_rng(0).integers(0, 2, (plan.n_users, 2))
    base = noisy_majority(2.0)
    pmf = pipeline_pmf(data, base=base, plan=plan)
    expected = delstab_pmf(data, algorithm=Subsampled(base, 3), **SMALL)
    np.testing.assert_array_equal(pmf, expected)
    drawn = run_pipeline(data, 40_000, base=base, plan=plan, rng=np.random.default_rng(1))
    assert_drawn_from(drawn, pmf)


def test_reductions():
    learner, data = noisy_majority(1.0), np.array([[0, 1], [1, 1], [1, 0]])
    np.testing.assert_array_equal(OneExample(learner).pmf(data), learner.pmf(data[:, 0]))
    np.testing.assert_array_equal(AllExamples(learner).pmf(data), learner.pmf(data.reshape(-1)))
    grouped = SuperUsers(AllExamples(learner), 2)
    np.testing.assert_array_equal(grouped.pmf(data.reshape(-1)), learner.pmf(data.reshape(-1)))
    with pytest.raises(ValueError, match="multiple of m = 4"):
        SuperUsers(OneExample(learner), 4).pmf(data.reshape(-1))


# --- refusals ---


@pytest.mark.parametrize(("call", "said"), [
    (lambda: Budget(0.0, 0.1), "epsilon must be positive"),
    (lambda: Budget(math.inf, 0.1), "epsilon must be finite"),
    (lambda: Budget(301.0, 0.1), "epsilon must be at most 300"),
    (lambda: Budget(1.0, 1e-200), "delta must be at least 1e-100, .* and delta = 1e-200"),
    (lambda: Budget(1.0, 0.1, sharp="no"), "sharp must be True or False"),
    (lambda: delstab_pmf(np.zeros((256, 1), int), algorithm=NoisyArgmax(4, 1.0), epsilon=1.0,
                         delta=1e-6), "at most 4000 counts"),
    (lambda: delstab_pmf(np.zeros((197, 1), int), algorithm=NoisyArgmax(12, 1.0), epsilon=1.0,
                         delta=1e-6), "kinds of deleted sets"),
    (lambda: delstab_pmf(users(0, 23), algorithm=AlternatingMajority(1.0), **SMALL, sharp=True),
     "at most 2000 sets of 7 users, because the algorithm is not symmetric"),
    (lambda: SuperUsers(OneExample(noisy_majority(1.0)), 0), "m must be at least 1"),
    (lambda: pipeline(Budget(1.0, 1e-6), 10, sample=10**6, base_epsilon=700.0),
     "the population must be at most 2"),
    (lambda: Budget(1.0, 1.0), "delta must be strictly between 0 and 1"),
    (lambda: Budget(1.0, math.nan), "delta must be finite"),
    (lambda: truncation(1.0, 2.0), "delta must be strictly between 0 and 1"),
    (lambda: truncation(1e-9, 1e-9), "must be at most"),
    (lambda: delstab_pmf(users(0, 19), algorithm=noisy_majority(1.0), **SMALL),
     "at least 4 kappa = 20 users .* got 19"),
    (lambda: delstab_pmf([[0], [0, 1]], algorithm=noisy_majority(1.0), **SMALL),
     "data must be an array whose rows have equal length"),
    (lambda: delstab_pmf(users(0, 21) + 2, algorithm=noisy_majority(1.0), **SMALL),
     "data must hold only values from 0 to 1, got 2"),
    (lambda: delstab_pmf(users(0, 24), algorithm=AlternatingMajority(1.0), **SMALL),
     "at most 23 users, because the algorithm is not symmetric, got 24"),
    (lambda: delstab_pmf(users(0, 21), algorithm=FunctionAlgorithm(lambda x: [0.5, 0.4], 2, 2),
                         **SMALL), "must sum to one, got .*0.9"),
    (lambda: delstab_pmf(users(0, 21), algorithm=FunctionAlgorithm(lambda x: [1.5, -0.5], 2, 2),
                         **SMALL), "must be finite and at least 0"),
    (lambda: delstab_pmf(users(0, 21), algorithm=FunctionAlgorithm(lambda x: [1.0], 2, 2),
                         **SMALL), "must have 2 entries"),
    (lambda: known_pmf(noisy_majority(1.0), [math.nan, 1.0]), "must be finite"),
    (lambda: ExponentialLearner([[0.0, math.nan]], 1.0), "scores must hold only finite"),
    (lambda: noisy_majority(-1.0), "epsilon must be positive"),
    (lambda: HeavyItems(17, 1.0, 0.5), "universe must be at most 16"),
    (lambda: HeavyItems(2, 1.0, 1.0), "share must be strictly between 0 and 1"),
    (lambda: Subsampled(noisy_majority(1.0), 4).pmf(np.array([0, 1])), "sample must be at most"),
    (lambda: Subsampled(AlternatingMajority(1.0), 4), "base must be a symmetric algorithm"),
    (lambda: pipeline(Budget(**SMALL), 0, sample=3, base_epsilon=1.0), "m must be at least 1"),
    (lambda: is_locally_private(users(0, 3), algorithm=noisy_majority(1.0), removed=4,
                                epsilon=1.0, delta=0.1), "removed must be at most n = 3"),
])  # fmt: skip
def test_what_is_refused(call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()
