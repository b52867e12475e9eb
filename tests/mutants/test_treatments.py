"""The exact effect of the mutants of a noise on each method of the generator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.mutants import TREATMENTS
from dpaudit.mutants.recorder import Plan, Recorder, run
from dpaudit.mutants.treatments import HALVED, HIGH_END, LOW_END, REMOVED, SCALED

Call = tuple[str, tuple[Any, ...], dict[str, Any]]

NOISE: list[tuple[Call, Any]] = [
    (("normal", (1.5, 2.0), {}), stats.norm(1.5, 2).mean()),
    (("laplace", (), {"loc": 1.5, "scale": 2.0}), stats.laplace(1.5, 2).mean()),
    (("logistic", (1.5,), {"scale": 2.0}), stats.logistic(1.5, 2).mean()),
    (("gumbel", (1.5, 2.0), {}), stats.gumbel_r(1.5, 2).mean()),
    (("vonmises", (0.5, 2.0), {}), 0.5),
    (("vonmises", (0.5 + 2 * np.pi, 2.0), {}), 0.5),
    (("standard_normal", (), {}), 0.0),
    (("standard_cauchy", (), {}), stats.cauchy().median()),
    (("standard_t", (3.0,), {}), stats.t(3).mean()),
    (("triangular", (0.0, 1.0, 5.0), {}), stats.triang(0.2, 0, 5).mean()),
    (("exponential", (2.0,), {}), stats.expon(scale=2).mean()),
    (("standard_exponential", (), {"method": "inv"}), stats.expon().mean()),
    (("gamma", (3.0, 2.0), {}), stats.gamma(3, scale=2).mean()),
    (("standard_gamma", (3.0,), {}), stats.gamma(3).mean()),
    (("chisquare", (3.0,), {}), stats.chi2(3).mean()),
    (("noncentral_chisquare", (3.0, 2.0), {}), stats.ncx2(3, 2).mean()),
    (("f", (3.0, 5.0), {}), stats.f(3, 5).median()),
    (("f", (3.0, 1.5), {}), stats.f(3, 1.5).median()),
    (("noncentral_f", (3.0, 5.0, 2.0), {}), stats.ncf(3, 5, 2).median()),
    (("lognormal", (0.5, 0.7), {}), stats.lognorm(0.7, scale=np.exp(0.5)).mean()),
    (("rayleigh", (2.0,), {}), stats.rayleigh(scale=2).mean()),
    (("wald", (3.0, 2.0), {}), stats.invgauss(1.5, scale=2).mean()),
    (("weibull", (2.5,), {}), stats.weibull_min(2.5).mean()),
    (("pareto", (3.0,), {}), stats.lomax(3).median()),
    (("pareto", (0.8,), {}), stats.lomax(0.8).median()),
    (("power", (3.0,), {}), stats.powerlaw(3).mean()),
    (("beta", (2.0, 3.0), {}), stats.beta(2, 3).mean()),
    (("random", (), {}), stats.uniform().mean()),
    (("uniform", (1.0, 5.0), {}), stats.uniform(1, 4).mean()),
]
INTEGER_NOISE: list[tuple[Call, Any]] = [
    (("geometric", (0.3,), {}), stats.geom(0.3).mean()),
    (("poisson", (7.3,), {}), stats.poisson(7.3).mean()),
    (("negative_binomial", (5, 0.3), {}), stats.nbinom(5, 0.3).mean()),
    (("logseries", (0.7,), {}), stats.logser(0.7).mean()),
    (("logseries", (0.0,), {}), 1.0),
    (("zipf", (3.0,), {}), stats.zipf(3).median()),
    (("zipf", (1.5,), {}), stats.zipf(1.5).median()),
]
VECTORS: list[tuple[Call, Any]] = [
    (("multivariate_normal", ([1.0, 2.0], np.eye(2)), {}), [1.0, 2.0]),
    (("dirichlet", ([1.0, 3.0],), {}), [0.25, 0.75]),
]
SELECTION: list[tuple[Call, Any, Any]] = [
    (("random", (5,), {}), 2.0**-53, np.nextafter(1.0, 0.0)),
    (("random", (2,), {"dtype": np.float32}), 2.0**-53, np.nextafter(np.float32(1), np.float32(0))),
    (("uniform", (1.0, 5.0, 3), {}), 1.0, np.nextafter(5.0, 1.0)),
    (("integers", (6,), {}), 0, 5),
    (("integers", (2, 6), {"size": 4}), 2, 5),
    (("integers", (2, 6), {"endpoint": True}), 2, 6),
    (("binomial", (7, 0.3, 4), {}), 0, 7),
    (("choice", (9,), {}), 0, 8),
    (("choice", (9,), {"size": 4}), [0] * 4, [8] * 4),
    (("choice", (9,), {"size": 4, "replace": False}), [0, 1, 2, 3], [5, 6, 7, 8]),
    (("choice", (4,), {"size": 2, "p": [0, 0.5, 0.5, 0]}), [1, 1], [2, 2]),
    (("choice", (["a", "b", "ccc"],), {"size": 2}), ["a", "a"], ["ccc", "ccc"]),
    (("choice", (10**12,), {"size": 2, "replace": False}), [0, 1], [10**12 - 2, 10**12 - 1]),
    (("choice", (np.arange(6).reshape(3, 2),), {"size": 2, "replace": False}),
     [[0, 1], [2, 3]], [[2, 3], [4, 5]]),
    (("choice", (np.arange(6).reshape(2, 3),), {"axis": 1}), [0, 3], [2, 5]),
    (("permutation", (4,), {}), [0, 1, 2, 3], [3, 2, 1, 0]),
    (("permutation", ([5, 6, 7],), {}), [5, 6, 7], [7, 6, 5]),
    (("permuted", ([[1, 2], [3, 4]],), {"axis": 1}), [[1, 2], [3, 4]], [[2, 1], [4, 3]]),
    (("permuted", ([[1, 2], [3, 4]],), {}), [[1, 2], [3, 4]], [[4, 3], [2, 1]]),
    (("multinomial", (5, [0.2, 0.3, 0.5]), {}), [5, 0, 0], [0, 0, 5]),
    (("multinomial", (5, [0.0, 0.5, 0.5], 2), {}), [[0, 5, 0]] * 2, [[0, 0, 5]] * 2),
    (("hypergeometric", (5, 3, 4), {}), 1, 4),
    (("multivariate_hypergeometric", ([2, 3, 4], 4), {}), [2, 2, 0], [0, 0, 4]),
    (("bytes", (3,), {}), b"\x00\x00\x00", b"\xff\xff\xff"),
]  # fmt: skip


def drawn(call: Call, change: str = "", seed: int = 1) -> Any:
    """Draw once, with a change at this call."""
    method, args, kwargs = call

    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return getattr(rng, method)(*args, **kwargs)

    plain, log = run(mechanism, None, 1, np.random.default_rng(seed))
    (key,) = log.seen
    if not change:
        return plain
    return run(mechanism, None, 1, np.random.default_rng(seed), Plan(key, change))[0]


def sized(call: Call, size: int) -> Call:
    method, args, kwargs = call
    return method, args, {**kwargs, "size": size}


def words(case: tuple[Any, ...]) -> str:
    return str(case[0][0])


def test_every_method_of_the_generator_is_treated() -> None:
    """Check that every method of the generator has a treatment.

    If a later numpy adds a method, this test fails.
    """
    public = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert public == set(TREATMENTS) | {"spawn", "bit_generator"}


def test_more_noise_between_equal_ends_is_none() -> None:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
        return rng.uniform(2.0, [2.0, 3.0], (3, 2))

    _, log = run(mechanism, None, 1, np.random.default_rng(1))
    (key,) = log.seen
    more, _ = run(mechanism, None, 1, np.random.default_rng(1), Plan(key, SCALED, factor=2.0))
    assert more[:, 0].tolist() == [2.0] * 3
    assert ((more[:, 1] > 2) & (more[:, 1] < 3)).all()


@pytest.mark.parametrize("case", NOISE + INTEGER_NOISE + VECTORS, ids=words)
def test_removed_is_the_mean_or_the_median(case: tuple[Call, Any]) -> None:
    call, centre = case
    gone = drawn(sized(call, 4), REMOVED)
    whole = np.issubdtype(gone.dtype, np.integer)
    assert gone.shape == drawn(sized(call, 4)).shape
    expected = np.broadcast_to(np.rint(centre) if whole else centre, gone.shape)
    np.testing.assert_allclose(gone, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", NOISE + VECTORS, ids=words)
def test_halved_halves_the_deviation(case: tuple[Call, Any]) -> None:
    call, centre = case
    plain, half = drawn(sized(call, 50)), drawn(sized(call, 50), HALVED)
    np.testing.assert_allclose(half - centre, (plain - centre) / 2, rtol=1e-9, atol=1e-12)
    assert half.dtype == plain.dtype


@pytest.mark.parametrize("case", INTEGER_NOISE, ids=words)
def test_integers_stay_integers_and_come_closer(case: tuple[Call, Any]) -> None:
    call, centre = case
    plain, half = drawn(sized(call, 50)), drawn(sized(call, 50), HALVED)
    middle = round(float(centre))
    assert half.dtype == plain.dtype
    assert (np.abs(half - middle) == np.abs(plain - middle) // 2).all()
    assert (np.sign(half - middle) * np.sign(plain - middle) >= 0).all()


@pytest.mark.parametrize("case", SELECTION, ids=words)
def test_selection_is_made_certain_at_either_end(case: tuple[Call, Any, Any]) -> None:
    call, low, high = case
    plain = drawn(call)
    for change, end in ((LOW_END, low), (HIGH_END, high)):
        made = drawn(call, change)
        assert np.shape(made) == np.shape(plain)
        assert type(made) is type(plain)
        assert np.asarray(made).dtype == np.asarray(plain).dtype
        np.testing.assert_array_equal(made, np.broadcast_to(end, np.shape(plain)))


@pytest.mark.parametrize("make", [np.array, list])
@pytest.mark.parametrize(("change", "order"), [(LOW_END, [3, 1, 2]), (HIGH_END, [2, 1, 3])])
def test_shuffle_works_in_place(make: Any, change: str, order: list[int]) -> None:
    x = make([3, 1, 2])
    assert drawn(("shuffle", (x,), {})) is None
    x[:] = [3, 1, 2]

    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> None:
        rng.shuffle(data)

    (key,) = run(mechanism, make([3, 1, 2]), 1, np.random.default_rng(1))[1].seen
    run(mechanism, x, 1, np.random.default_rng(1), Plan(key, change))
    assert list(x) == order


@pytest.mark.parametrize("case", NOISE + INTEGER_NOISE + VECTORS, ids=words)
def test_without_a_plan_nothing_changes(case: tuple[Call, Any]) -> None:
    method, args, kwargs = sized(case[0], 3)
    recorder, rng = Recorder(np.random.default_rng(7)), np.random.default_rng(7)
    assert isinstance(recorder, np.random.Generator)
    for _ in range(2):
        expected = getattr(rng, method)(*args, **kwargs)
        np.testing.assert_array_equal(getattr(recorder, method)(*args, **kwargs), expected)
    assert recorder.random() == rng.random()


@pytest.mark.parametrize("case", SELECTION, ids=words)
def test_nor_of_a_selection(case: tuple[Call, Any, Any]) -> None:
    method, args, kwargs = case[0]
    recorder, rng = Recorder(np.random.default_rng(7)), np.random.default_rng(7)
    expected = getattr(rng, method)(*args, **kwargs)
    np.testing.assert_array_equal(getattr(recorder, method)(*args, **kwargs), expected)
    assert recorder.random() == rng.random()


@pytest.mark.parametrize("change", [REMOVED, HALVED])
def test_a_mutant_uses_up_as_much_randomness(change: str) -> None:
    def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> float:
        rng.normal(size=5)
        return float(rng.random())

    plain, log = run(mechanism, None, 1, np.random.default_rng(7))
    plan = Plan(next(iter(log.seen)), change)
    assert run(mechanism, None, 1, np.random.default_rng(7), plan)[0] == plain
