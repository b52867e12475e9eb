"""Tests of DP-SGD.

The tests cover exact clipping and batches, the distribution of the noise, and the outputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit import DPSGD, ArgumentError, MechanismError
from dpaudit.mechanisms import Sampling
from tests.statistical import assert_distribution, assert_frequencies

OPTIONS: dict[str, Any] = {"start": [0.0, 0.0], "clip_norm": 1.0, "sigma": 2.0, "steps": 3}
KINDS = {
    "poisson": {"q": 0.25},
    "fixed": {"batch_size": 2},
    "shuffle": {"batch_size": 2},
    "balls_in_bins": {"q": 0.25},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def itself(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Return the data as gradients, at all iterates."""
    return data[None]


def towards(params: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Return gradients of half the squared distance to each user, ``[size, n, d]``."""
    return params[:, None] - data


def of(kind: str, n_users: int, size: int, *, steps: int = 8, seed: int = 0) -> np.ndarray:
    sampling = Sampling(kind, steps, **KINDS[kind])
    rng = np.random.default_rng(seed)
    return np.stack(list(sampling.batches(n_users, size, rng=rng)), axis=1)


# --- clipping ---------------------------------------------------------------------------------


def test_a_users_sum_is_clipped_or_each_example_is() -> None:
    items = np.array([[[3.0, 4.0], [0.0, 0.0]], [[0.3, 0.0], [0.3, 0.0]]])[None]
    by_user = DPSGD(itself, q=1.0, **OPTIONS).clipped(items)
    np.testing.assert_allclose(by_user, [[[0.6, 0.8], [0.6, 0.0]]])
    repeated = np.tile([[[3.0, 4.0]]], (1, 1, 5, 1))
    by_example = DPSGD(itself, q=1.0, clip="example", **OPTIONS).clipped(repeated)
    np.testing.assert_allclose(by_example, [[[3.0, 4.0]]])  # the sum of five gradients of norm 1
    np.testing.assert_allclose(DPSGD(itself, q=1.0, **OPTIONS).clipped(repeated), [[[0.6, 0.8]]])
    without_items = np.array([[[3.0, 4.0], [0.0, 0.0]]])
    for clip in ("user", "example"):
        clipped = DPSGD(itself, q=1.0, clip=clip, **OPTIONS).clipped(without_items)
        np.testing.assert_allclose(clipped, [[[0.6, 0.8], [0.0, 0.0]]])


def test_sums_are_over_those_who_take_part() -> None:
    run, chosen = DPSGD(itself, q=1.0, **OPTIONS), np.array([[True, False], [True, True]])
    for clipped in (np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.ones((2, 2, 2))):
        expected = [(chosen[i][:, None] * clipped[i % len(clipped)]).sum(axis=0) for i in (0, 1)]
        np.testing.assert_allclose(run.total(clipped, chosen), expected)


# --- batches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["shuffle", "balls_in_bins"])
def test_a_user_takes_part_once_in_an_epoch(kind: str) -> None:
    batches = of(kind, 8, 50)
    np.testing.assert_array_equal(batches[:, :4].sum(axis=1), 1)
    np.testing.assert_array_equal(batches[:, 4:].sum(axis=1), 1)
    assert (batches[:, :4] != batches[:, 4:]).any()


@pytest.mark.parametrize("kind", ["fixed", "shuffle"])
def test_batches_have_their_size(kind: str) -> None:
    np.testing.assert_array_equal(of(kind, 8, 50).sum(axis=2), 2)
    if kind == "shuffle":  # with seven users, the last batch has one user
        sizes = of(kind, 7, 50).sum(axis=2)
        np.testing.assert_array_equal(sizes, np.tile([2, 2, 2, 1], (50, 2)))


@pytest.mark.statistical
@every_kind
def test_a_user_takes_part_as_often_as_is_said(kind: str) -> None:
    """Check how often a user takes part in seven steps.

    The last epoch ends early.
    """
    n_users, steps = 8, 7
    counts = of(kind, n_users, 20_000, steps=steps, seed=1)[:, :, 3].sum(axis=1)
    expected = Sampling(kind, steps, **KINDS[kind]).participation(n_users).counts(steps)
    assert_frequencies(np.bincount(counts, minlength=steps + 1), expected)
    with pytest.raises(AssertionError, match="rejected"):
        assert_frequencies(np.bincount(counts, minlength=steps + 1), np.roll(expected, 1))


def test_participation_is_exact() -> None:
    two_epochs = Sampling("shuffle", 5, batch_size=2).participation(5)  # each epoch has 3 steps
    assert two_epochs.slots == (0.4, 0.4, 0.2)
    np.testing.assert_allclose(two_epochs.counts(5), [0, 0.2, 0.8, 0, 0, 0], atol=1e-15)
    poisson = Sampling("poisson", 4, q=0.3).participation(9)
    np.testing.assert_allclose(poisson.counts(4), stats.binom.pmf(range(5), 4, 0.3))
    assert Sampling("fixed", 4, batch_size=2).participation(8).rate == 0.25


# --- outputs --------------------------------------------------------------------------------------


@pytest.mark.statistical
def test_noise_has_its_scale() -> None:
    run = DPSGD(itself, q=0.5, start=[0.0, 0.0], clip_norm=1.5, sigma=2.0, steps=3)
    drawn = run(np.zeros((4, 2)), 2000, rng=np.random.default_rng(0))
    assert drawn.shape == (2000, 3, 2)
    assert_distribution(drawn.ravel(), stats.norm(scale=3.0).cdf)
    with pytest.raises(AssertionError, match="rejected"):
        assert_distribution(drawn.ravel(), stats.norm(scale=2.0).cdf)


def test_iterates_follow_from_the_noisy_sums() -> None:
    data = np.array([[1.0, 0.0], [0.0, 3.0], [-1.0, -1.0]])
    options = {**OPTIONS, "start": [0.5, -0.5], "learning_rate": 0.3, "q": 0.7}
    sums = DPSGD(towards, **options)(data, 6, rng=np.random.default_rng(3))
    last = DPSGD(towards, release="last", **options)(data, 6, rng=np.random.default_rng(3))
    np.testing.assert_allclose(last, np.array([0.5, -0.5]) - 0.3 * sums.sum(axis=1))
    black_box = DPSGD(towards, release="loss", loss=lambda params: params @ [1.0, 2.0], **options)
    np.testing.assert_allclose(
        black_box(data, 6, rng=np.random.default_rng(3)), last @ np.array([1.0, 2.0])
    )


def test_sums_are_those_of_the_gradients_at_each_iterate() -> None:
    """Check that each sum is the sum of the gradients at its iterate.

    The run is gradient descent on all users with almost no noise.
    """
    data = np.array([[0.3, 0.0], [0.0, 0.4]])
    run = DPSGD(towards, start=[0.1, 0.1], clip_norm=5.0, sigma=1e-12, steps=3, q=1.0)
    params, expected = np.array([0.1, 0.1]), []
    for _ in range(3):
        expected.append((params - data).sum(axis=0))
        params = params - 0.1 * expected[-1]
    drawn = run(data, 2, rng=np.random.default_rng(0))
    np.testing.assert_allclose(drawn, np.tile(expected, (2, 1, 1)), atol=1e-9)


@every_kind
@pytest.mark.parametrize("release", ["white_box", "last"])
def test_runs_keep_the_contract_of_a_mechanism(kind: str, release: str) -> None:
    run = DPSGD(itself, sampling=kind, release=release, **OPTIONS, **KINDS[kind])
    data = np.arange(16.0).reshape(8, 2)
    data.flags.writeable = False
    for size in (0, 1, 5):
        again = [run(data, size, rng=np.random.default_rng(7)) for _ in range(2)]
        assert again[0].shape == (size, *((3, 2) if release == "white_box" else (2,)))
        np.testing.assert_array_equal(*again)
    if kind != "fixed":  # the dataset is empty
        assert run(data[:0], 4, rng=np.random.default_rng(0)).shape[0] == 4


def test_equal_seeds_differ_for_other_draws_of_a_call() -> None:
    drawn = DPSGD(itself, q=0.5, **OPTIONS)(np.zeros((2, 2)), 50, rng=np.random.default_rng(0))
    assert len(np.unique(drawn)) == drawn.size


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [[0.0]]}, "^start must be a nonempty one-dim"),
        ({"start": [np.nan]}, "^start must be .* finite numbers"),
        ({"clip_norm": 0.0}, "^clip_norm must be"),
        ({"sigma": -1.0}, "^sigma must be"),
        ({"steps": 0}, "^steps must be"),
        ({"learning_rate": 0.0}, "^learning_rate must be"),
        ({"clip": "batch"}, "^clip must be one of user, example"),
        ({"release": "all"}, "^release must be one of white_box, last, loss"),
        ({"release": "loss"}, '^loss must be given if and only if release="loss"'),
        ({"loss": np.sum}, '^loss must be given if and only if release="loss"'),
        ({"sampling": "random"}, "^sampling must be one of poisson, fixed"),
        ({"q": None}, "^q must be given for poisson sampling"),
        ({"batch_size": 2}, "^q must be given for poisson sampling, and batch_size must not"),
        ({"sampling": "fixed"}, "^batch_size must be given for fixed sampling"),
        ({"q": 1.5}, r"^q must be in \(0, 1\], got 1.5"),
        ({"q": 0.3, "sampling": "balls_in_bins"}, "^q must be one in a whole number, got 0.3"),
        ({"q": None, "batch_size": 0, "sampling": "shuffle"}, "^batch_size must be an integer"),
    ],
)
def test_arguments_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        DPSGD(itself, **{**OPTIONS, "q": 0.5, **options})


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="^gradient must be a function"):
        DPSGD(None, q=0.5, **OPTIONS)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="^loss must be a function"):
        DPSGD(itself, q=0.5, release="loss", loss=3, **OPTIONS)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(5, 2), (1, 4, 2), (3, 5, 2), (1, 5, 3), (1, 5, 1, 1, 2)])
def test_gradients_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    run = DPSGD(lambda params, data: np.zeros(shape), q=0.5, **OPTIONS)
    with pytest.raises(MechanismError, match=r"must return gradients \[size, n_users, d\]"):
        run(np.zeros((5, 2)), 2, rng=np.random.default_rng(0))


def test_a_batch_larger_than_the_data_is_refused() -> None:
    run = DPSGD(itself, sampling="fixed", batch_size=3, **OPTIONS)
    with pytest.raises(MechanismError, match="^batch_size must be at most 2, the number of users"):
        run(np.zeros((2, 2)), 2, rng=np.random.default_rng(0))


def test_a_run_says_what_it_is() -> None:
    run = DPSGD(itself, sampling="shuffle", batch_size=2, release="last", **OPTIONS)
    assert repr(run) == run.__name__
    words = "3 steps, sigma=2, clip_norm=1 per user, shuffle batch_size=2, last"
    assert str(run) == f"DPSGD(itself, {words})"
