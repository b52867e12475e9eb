"""Tests of packages of the field as mechanisms.

The tests cover seeds, parameters, and the composition of each draw.
"""

from __future__ import annotations

import pickle
import random
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit import (
    DPSGD,
    ArgumentError,
    MechanismError,
    NeighborPair,
    PureDP,
    Relation,
    adapters,
    audit,
    mutants,
)
from dpaudit.adapters.drawing import apart, legacy
from dpaudit.mechanisms import in_child, is_seeded, mechanism_name, needed
from tests.statistical import assert_distribution

RNG = np.random.default_rng
USERS = np.linspace(0.0, 1.0, 6).reshape(3, 2)


# --- shared by all ---


def echo(**options: Any) -> Any:
    return lambda given, rng: (given, options)


def drawn(data: Any, **settings: Any) -> Any:
    return adapters.Drawn("echo", echo, seeded=True, **settings)(data, 2, rng=RNG(0), scale=2.0)


def test_each_draw_is_a_release_of_the_data_with_the_options() -> None:
    first, second = drawn({"x": [1, 2]})
    assert first == second == ({"x": [1, 2]}, {"scale": 2.0})
    assert first[0] is not second[0]


def test_given_is_a_function_a_column_or_a_key() -> None:
    frame = pd.DataFrame({"user": [1, 2], "age": [30.0, 40.0]})
    assert drawn(frame, given="age")[0][0].tolist() == [30.0, 40.0]
    assert drawn({"x": [1, 2]}, given="x")[0][0].tolist() == [1, 2]
    assert drawn(USERS, given=np.size, then=lambda release: release[0]) == [6, 6]
    with pytest.raises(MechanismError, match="given='age' must be a column"):
        drawn(USERS, given="age")


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(TypeError, match="then must be a function"):
        drawn(USERS, then=3)
    with pytest.raises(ArgumentError, match="options must not contain rng"):
        adapters.pydp(dict, rng=RNG(0))


def test_what_is_not_installed_is_said_with_the_command() -> None:
    with pytest.raises(MechanismError, match="pip install no-such"):
        needed("no_such_module_of_dpaudit", package="no-such")


def test_the_older_generator_follows_ours() -> None:
    assert legacy(RNG(1)).random() == legacy(RNG(1)).random() != legacy(RNG(2)).random()


def test_global_generators_are_seeded_by_ours_and_left_as_they_were() -> None:
    def release(given: Any, rng: np.random.Generator) -> tuple[float, float]:
        return np.random.random(), random.random()  # noqa: NPY002

    mechanism = adapters.Drawn("global", lambda: release, seeded=True)
    before = random.getstate()
    first, second = mechanism(USERS, 2, rng=RNG(1))
    assert first != second
    assert mechanism(USERS, 2, rng=RNG(1)) == [first, second]
    rng = RNG(1)
    assert mechanism(USERS, 1, rng=rng) != mechanism(USERS, 1, rng=rng)
    assert random.getstate() == before


# --- PyDP, replaced by an algorithm of the same form ---


class Noisy:
    def __init__(self, scale: float) -> None:
        self.scale, self.spent = scale, False

    def quick_result(self, values: list[float]) -> float:
        assert not self.spent
        self.spent = True
        return sum(values) * self.scale


def test_pydp_makes_an_algorithm_for_each_draw_of_all_items() -> None:
    mechanism = adapters.pydp(Noisy, scale=2.0)
    assert mechanism(USERS, 2, rng=RNG(0)) == [6.0, 6.0]
    assert mechanism([[1.0], [2.0, 3.0]], 1, rng=RNG(0)) == [12.0]
    assert mutants.scaled(scale=0.5).apply(mechanism)(USERS, 1, rng=RNG(0)) == [3.0]
    assert mechanism_name(mechanism) == "pydp Noisy(scale=2)"
    assert not is_seeded(mechanism)
    counted = adapters.pydp(Noisy, release=lambda made, values: len(values), scale=1.0)
    assert counted(USERS, 1, rng=RNG(0)) == [6]


def test_pydp_for_real() -> None:
    laplacian = pytest.importorskip("pydp.algorithms.laplacian")
    mean = partial(laplacian.BoundedMean, lower_bound=0.0, upper_bound=1.0, dtype="float")
    (draw,) = adapters.pydp(mean, epsilon=1e6)(USERS, 1, rng=RNG(0))
    assert draw == pytest.approx(0.5, abs=1e-3)


# --- OpenDP ---


def bounded_sum(scale: float) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return dp.t.make_clamp(*space, (0.0, 1.0)) >> dp.t.then_sum() >> dp.m.then_laplace(scale=scale)


def noise_on(kind: type, scale: float, vector: bool = True) -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    atom = dp.atom_domain(T=float, nan=False) if kind is float else dp.atom_domain(T=int)
    if not vector:
        return dp.m.make_laplace(atom, dp.absolute_distance(T=kind), scale=scale)
    return dp.m.make_laplace(dp.vector_domain(atom), dp.l1_distance(T=kind), scale=scale)


@pytest.fixture
def _opendp() -> None:
    pytest.importorskip("opendp")


@pytest.mark.usefixtures("_opendp")
def test_opendp_is_handed_the_kind_that_it_takes() -> None:
    whole = adapters.opendp(partial(noise_on, int), scale=0.0)
    assert whole(np.array([3.0, 4.0]), 2, rng=RNG(0)) == [[3, 4], [3, 4]]
    one = adapters.opendp(noise_on(float, 0.0, vector=False))
    assert one(np.array([3]), 1, rng=RNG(0)) == [3.0]
    with pytest.raises(MechanismError, match="takes one f64, got data with 6"):
        one(USERS, 1, rng=RNG(0))
    listed = adapters.opendp(bounded_sum, scale=1e-9, then=round)
    assert listed([[0.5], [0.25, 0.25]], 1, rng=RNG(0)) == [1]
    frame = pd.DataFrame({"user": [1, 2], "v": [1.0, 1.0]})
    named = adapters.opendp(bounded_sum, scale=1e-9, then=round, given="v")
    assert named(frame, 1, rng=RNG(0)) == [2]


@pytest.mark.usefixtures("_opendp")
def test_opendp_draws_all_at_once_what_it_draws_one_by_one() -> None:
    mechanism = adapters.opendp(partial(noise_on, float), at_once=True, scale=1.0)
    draws = mechanism(np.array([2.0]), 20_000, rng=RNG(0))
    # The test is not seeded. The test gives a false alarm once in a million runs.
    assert_distribution(draws, lambda x: 0.5 * (1 + np.sign(x - 2) * -np.expm1(-abs(x - 2))))
    with pytest.raises(MechanismError, match="at_once requires a measurement of vectors"):
        mechanism(np.array([1.0, 2.0]), 2, rng=RNG(0))


@pytest.mark.usefixtures("_opendp")
def test_functions_that_make_measurements_travel_and_measurements_take_no_parameters() -> None:
    mechanism = adapters.opendp(bounded_sum, scale=1.0)
    mechanism(USERS, 1, rng=RNG(0))
    again = pickle.loads(pickle.dumps(mechanism))
    assert len(again(USERS, 3, rng=RNG(0))) == 3
    assert mechanism_name(mechanism) == "opendp bounded_sum(scale=1)"
    assert not is_seeded(mechanism)
    with pytest.raises(TypeError, match="got scale. Pass a function"):
        adapters.opendp(bounded_sum(1.0), scale=2.0)
    with pytest.raises(TypeError, match="measurement must be"):
        adapters.opendp(3)


@pytest.mark.slow
@pytest.mark.usefixtures("_opendp")
@pytest.mark.statistical
def test_an_audit_kills_the_mutant_of_a_measurement() -> None:
    pair = NeighborPair([[0.0]] * 3, [[0.0]] * 2, relation=Relation.ADD_REMOVE_USER)
    far = NeighborPair([[0.0]] * 2 + [[9.0]], [[0.0]] * 2, relation=Relation.ADD_REMOVE_USER)
    result = audit(
        adapters.opendp(bounded_sum, scale=1.0),
        PureDP(1.0, Relation.ADD_REMOVE_USER),
        [pair, far],
        draws=3000,
        mutants=[mutants.scaled(scale=0.2)],
        seed=1,
    )
    assert result.verdict == "not_refuted"


@pytest.mark.filterwarnings("ignore:The default value is currently signed")
def test_opendp_query_of_a_frame() -> None:
    dp = pytest.importorskip("opendp.prelude")
    polars = pytest.importorskip("polars")
    dp.enable_features("contrib")
    frame = polars.DataFrame({"user": [1, 1, 2], "v": [1.0, 2.0, 3.0]})
    mechanism = adapters.opendp_query(
        lambda context: context.query().select(dp.len()), contributions=2, epsilon=1e6
    )
    try:
        assert mechanism(frame, 2, rng=RNG(0)) == [3, 3]
    except dp.OpenDPException as error:
        pytest.skip(f"needs another polars: {str(error)[:80]}")
    assert mechanism(frame.to_pandas(), 1, rng=RNG(0)) == [3]


# --- diffprivlib ---


@pytest.fixture
def diffprivlib() -> Any:
    return pytest.importorskip("diffprivlib", exc_type=ImportError)


def test_diffprivlib_tool_is_the_tool_on_all_items(diffprivlib: Any) -> None:
    tools = diffprivlib.tools
    mean = adapters.diffprivlib_tool(tools.mean, epsilon=1.0, bounds=(0, 1))
    rng = RNG(5)
    with apart(rng):
        expected = [
            tools.mean(USERS.ravel(), 1.0, bounds=(0, 1), random_state=legacy(rng)) for _ in "ab"
        ]
    assert mean(USERS, 2, rng=RNG(5)) == expected
    assert is_seeded(mean)
    assert mechanism_name(mean) == "diffprivlib mean(epsilon=1, bounds=(0, 1))"
    assert len(pickle.loads(pickle.dumps(mean))(USERS, 2, rng=RNG(5))) == 2


def test_diffprivlib_tool_keeps_axes_and_the_counts_of_histograms(diffprivlib: Any) -> None:
    tools = diffprivlib.tools
    columns = adapters.diffprivlib_tool(tools.mean, epsilon=9e9, bounds=(0, 1), axis=0)
    assert np.allclose(columns(USERS, 1, rng=RNG(0))[0], USERS.mean(0))
    counts = adapters.diffprivlib_tool(tools.histogram, epsilon=9e9, range=(0, 1), bins=2)
    assert counts(USERS, 1, rng=RNG(0))[0].tolist() == [3, 3]


def test_diffprivlib_mechanism_randomises_a_value_or_chooses_by_utilities(diffprivlib: Any) -> None:
    kinds = diffprivlib.mechanisms
    noise = adapters.diffprivlib_mechanism(kinds.Geometric, epsilon=9e9, sensitivity=1)
    assert noise(np.array([7]), 2, rng=RNG(0)) == [7, 7]
    chosen = adapters.diffprivlib_mechanism(
        kinds.Exponential, utility=True, epsilon=900.0, sensitivity=1.0
    )
    assert chosen(np.array([0.0, 5.0, 1.0]), 2, rng=RNG(0)) == [1, 1]
    laplace = adapters.diffprivlib_mechanism(kinds.Laplace, epsilon=1.0, sensitivity=1)
    draws = laplace(np.array([0.0]), 3, rng=RNG(0))
    assert len(set(draws)) == 3
    assert laplace(np.array([0.0]), 3, rng=RNG(0)) == draws


def test_budgets_and_seeds_belong_to_the_adapter(diffprivlib: Any) -> None:
    with pytest.raises(ArgumentError, match="random_state must not be given"):
        adapters.diffprivlib_tool(diffprivlib.tools.mean, random_state=1)


def test_missing_bounds_are_still_said(diffprivlib: Any) -> None:
    mean = adapters.diffprivlib_tool(diffprivlib.tools.mean, epsilon=1.0)
    with pytest.warns(diffprivlib.utils.PrivacyLeakWarning):
        mean(USERS, 1, rng=RNG(0))


def test_diffprivlib_model_is_fitted_for_each_draw(diffprivlib: Any) -> None:
    model = partial(diffprivlib.models.GaussianNB, bounds=(0, 1))
    data = {"X": np.array([[0.0], [0.1], [0.9], [1.0]]), "y": np.array([0, 0, 1, 1])}
    labels = adapters.diffprivlib_model(model, probe=[[0.0], [1.0]], epsilon=1e6)
    assert [one.tolist() for one in labels(data, 2, rng=RNG(0))] == [[0, 1], [0, 1]]
    means = adapters.diffprivlib_model(model, parameters="theta_", epsilon=1e6)
    assert np.allclose(means(data, 1, rng=RNG(0)), [[0.05, 0.95]], atol=1e-3)
    both = adapters.diffprivlib_model(model, parameters=("theta_", "class_count_"), epsilon=1.0)
    assert np.array_equal(both(data, 3, rng=RNG(1)), both(data, 3, rng=RNG(1)))
    chances = adapters.diffprivlib_model(model, probe=[[0.0]], method="predict_proba", epsilon=1.0)
    assert np.shape(chances(data, 3, rng=RNG(1))) == (3, 1, 2)


def test_diffprivlib_model_takes_features_alone_or_what_given_makes(diffprivlib: Any) -> None:
    model = partial(diffprivlib.models.StandardScaler, bounds=(0, 1))
    scaler = adapters.diffprivlib_model(model, parameters="mean_", epsilon=1e6)
    assert np.allclose(scaler(USERS, 1, rng=RNG(0)), [USERS.mean(0)], atol=1e-3)
    one = adapters.diffprivlib_model(
        model, parameters="mean_", epsilon=1e6, given=lambda data: (data[:, :1],)
    )
    assert np.shape(one(USERS, 2, rng=RNG(0))) == (2, 1)


def test_one_thing_is_kept_of_a_model(diffprivlib: Any) -> None:
    for kept in ({}, {"probe": [[0.0]], "parameters": "theta_"}):
        with pytest.raises(ArgumentError, match="exactly one of probe"):
            adapters.diffprivlib_model(diffprivlib.models.GaussianNB, **kept)


# --- tables ---


def test_pipeline_dp_counts_and_sums() -> None:
    library = pytest.importorskip("pipeline_dp")
    metrics = library.Metrics
    params = partial(
        library.AggregateParams,
        noise_kind=library.NoiseKind.LAPLACE,
        max_partitions_contributed=1,
        max_contributions_per_partition=2,
        min_value=0.0,
        max_value=1.0,
    )
    count = adapters.pipeline_dp(partial(params, metrics=[metrics.COUNT]), epsilon=1e6)
    assert np.allclose(count(np.ones((5, 4)), 2, rng=RNG(0)), 10, atol=1e-3)
    assert not is_seeded(count)
    visits = pd.DataFrame({"user": [1, 1, 2], "city": ["a", "a", "b"], "paid": [0.5, 9.0, 0.25]})
    asked = params(metrics=[metrics.SUM, metrics.COUNT])
    both = adapters.pipeline_dp(asked, epsilon=1e6, value="paid")
    assert np.allclose(both(visits, 1, rng=RNG(0)), [[3, 1.75]], atol=1e-3) or np.allclose(
        both(visits, 1, rng=RNG(0)), [[1.75, 3]], atol=1e-3
    )
    cities = adapters.pipeline_dp(
        asked, epsilon=1e6, partitions=["a", "b", "c"], partition="city", value="paid"
    )
    (draw,) = cities(visits, 1, rng=RNG(0))
    assert draw[("a", "sum")] == pytest.approx(1.5, abs=1e-3)
    assert draw[("c", "count")] == pytest.approx(0, abs=1e-3)


METADATA = {
    "": {
        "s": {
            "t": {
                "max_ids": 1,
                "rows": 30,
                "user": {"type": "int", "private_id": True},
                "age": {"type": "float", "lower": 0.0, "upper": 100.0},
            }
        }
    }
}


def test_smartnoise_sql_answers_a_query() -> None:
    pytest.importorskip("snsql")
    mechanism = adapters.smartnoise_sql(
        "SELECT SUM(age) AS total FROM s.t", METADATA, epsilon=1e5, delta=0.01
    )
    people = pd.DataFrame({"user": range(30), "age": [10.0] * 30})
    assert np.allclose(mechanism(people, 1, rng=RNG(0)), 300, atol=1)
    with pytest.raises(MechanismError, match="takes frames of pandas, got a ndarray"):
        mechanism(USERS, 1, rng=RNG(0))


# --- training ---


@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated")
def test_jax_privacy_adds_noise_to_clipped_gradients() -> None:
    with apart(RNG(0)):  # the module draws when it is imported
        library = pytest.importorskip("jax_privacy")
        jnp = pytest.importorskip("jax.numpy")
    gradient = library.clipped_grad(
        lambda params, x: 0.5 * jnp.sum((x - params) ** 2), l2_clip_norm=1.0, keep_batch_dim=False
    )
    mechanism = adapters.jax_privacy(gradient, jnp.zeros(1), stddev=0.5)
    data = np.full((4, 3, 1), -7.0)  # each user's gradient is clipped to 1
    draws = mechanism(data, 5000, rng=RNG(3))
    from scipy.stats import norm

    assert_distribution(draws[:, 0], norm(4, 0.5).cdf)
    assert np.array_equal(mechanism(data, 7, rng=RNG(3)), mechanism(data, 7, rng=RNG(3)))
    two = adapters.jax_privacy(gradient, jnp.zeros(1), stddev=0.5, steps=2, learning_rate=0.1)
    assert two(data, 3, rng=RNG(0)).shape == (3, 2)
    last = adapters.jax_privacy(
        gradient, jnp.zeros(1), stddev=1e-9, learning_rate=0.1, then=lambda noisy, params: params
    )
    assert np.allclose(last(data, 1, rng=RNG(0)), -0.4)


def test_opacus_trains_a_model_for_each_draw() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")

    def zero() -> Any:
        module = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.zeros_(module.weight)
        return module

    train = partial(adapters.opacus, zero, torch.nn.MSELoss(), poisson_sampling=False)
    data = {"X": np.ones((4, 1)), "y": np.full((4, 1), 5.0)}
    quiet = train(noise_multiplier=1e-6)
    assert np.allclose(quiet(data, 1, rng=RNG(0)), 1.0, atol=1e-3)  # four clipped to 1, averaged
    noisy = train(noise_multiplier=1.0)
    assert np.array_equal(noisy(data, 3, rng=RNG(1)), noisy(data, 3, rng=RNG(1)))
    assert is_seeded(noisy)
    ghost = train(noise_multiplier=1e-6, grad_sample_mode="ghost")
    assert np.shape(ghost(data, 1, rng=RNG(0))) == (1, 1)
    with pytest.raises(MechanismError, match="array of numbers, or a dict"):
        noisy([["a"]], 1, rng=RNG(0))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_opacus_releases_the_noisy_sums_that_move_the_model(reduction: str) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")

    def zero() -> Any:
        module = torch.nn.Linear(2, 1)
        for one in module.parameters():
            torch.nn.init.zeros_(one)
        return module

    loss = partial(torch.nn.functional.mse_loss, reduction=reduction)
    options = {"poisson_sampling": False, "loss_reduction": reduction, "noise_multiplier": 0.5}
    train = partial(adapters.opacus, zero, loss, epochs=3, learning_rate=0.1, **options)
    data = {"X": np.ones((4, 2)), "y": np.full((4, 1), 5.0)}
    sums = np.asarray(train(release="sums")(data, 2, rng=RNG(0)))
    last = np.asarray(train()(data, 2, rng=RNG(0)))
    assert sums.shape == (2, 3, 3)
    divisor = 4 if reduction == "mean" else 1
    assert np.allclose(last, -0.1 * sums.sum(axis=1) / divisor, atol=1e-5)
    noiseless = np.asarray(train(release="sums", noise_multiplier=0.0)(data, 1, rng=RNG(0)))
    assert np.allclose(np.linalg.norm(noiseless[0, 0]), 4.0, atol=1e-4)  # four clipped to 1
    with pytest.raises(ArgumentError, match='^then must be None if release="sums"'):
        train(release="sums", then=len)


def test_opacus_models_train_in_a_forked_process() -> None:
    """Check that a copy of this process does not wait for threads that it lacks."""
    torch = pytest.importorskip("torch")
    model, x = torch.nn.Linear(300, 300), torch.ones(512, 300)

    def step() -> float:
        model(x).square().sum().backward()
        return float(model.weight.grad.abs().sum())

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        step()
        assert in_child(step, limit=60) > 0
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


# --- gradients of models ---

WEIGHTS = np.random.default_rng(7).normal(size=(2, 3))
BATCH = {
    "X": np.random.default_rng(8).normal(size=(4, 5, 3)),
    "y": np.random.default_rng(9).normal(size=(4, 5)),
}


def of_torch(per: str) -> Any:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 1, bias=False)

    def loss(outputs: Any, y: Any) -> Any:
        return 0.5 * ((outputs[..., 0] - y) ** 2).sum()

    return adapters.torch_gradient(model, loss, per=per), model.weight.detach().numpy()[0]


def of_jax(per: str) -> Any:
    with apart(RNG(0)):
        jnp = pytest.importorskip("jax.numpy")

    def loss(params: Any, X: Any, y: Any) -> Any:
        return 0.5 * jnp.sum((X @ params["w"] - y) ** 2)

    start = np.array([0.5, -1.0, 2.0])
    return adapters.jax_gradient(loss, {"w": jnp.asarray(start)}, per=per), start


def check_gradients(made: Any, per: str) -> None:
    """Compare with the gradient of least squares, whose closed form is known."""
    gradient, start = made
    assert np.allclose(gradient.start, start)
    away = np.einsum("sd,nmd->snm", WEIGHTS, BATCH["X"]) - BATCH["y"]
    expected = away[..., None] * BATCH["X"]
    losses = 0.5 * (away**2).sum(axis=2)
    if per == "user":
        expected = expected.sum(axis=2)
    assert np.allclose(gradient(WEIGHTS, BATCH), expected, atol=1e-4)
    assert np.allclose(gradient.losses(WEIGHTS, BATCH), losses, atol=1e-4)
    assert gradient(WEIGHTS[:0], BATCH).shape == (0, *expected.shape[1:])
    run = DPSGD(gradient, start=gradient.start, clip_norm=1.0, sigma=1.0, steps=2, q=0.5)
    sums = run(BATCH, 3, rng=RNG(0))
    without = {name: values[:3] for name, values in BATCH.items()}
    pair = NeighborPair(BATCH, without, relation=Relation.ADD_REMOVE_USER)
    for score in (run.likelihood_ratio(pair), run.gradient_product(pair), run.loss_drop(pair)):
        assert score(sums).shape == (3,)
    with pytest.raises(MechanismError, match='must have the keys "X" and "y"'):
        gradient(WEIGHTS, {"X": BATCH["X"]})
    with pytest.raises(MechanismError, match="^data must be an array of numbers"):
        gradient(WEIGHTS, [["a"]])


@pytest.mark.parametrize("per", ["user", "example"])
def test_opacus_models_have_gradients_of_users_and_examples(per: str) -> None:
    check_gradients(of_torch(per), per)


@pytest.mark.parametrize("per", ["user", "example"])
def test_jax_losses_have_gradients_of_users_and_examples(per: str) -> None:
    check_gradients(of_jax(per), per)


def test_opacus_gradients_keep_frozen_parameters_and_whole_numbers() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Embedding(4, 2), torch.nn.Linear(2, 2))
    model[0].weight.requires_grad_(False)
    gradient = adapters.torch_gradient(model, torch.nn.functional.cross_entropy)
    assert gradient.start.size == 6
    data = {"X": np.array([[0, 1], [2, 3]]), "y": np.array([[0, 1], [1, 1]])}
    before = gradient(gradient.start[None], data)
    with torch.no_grad():
        for one in model.parameters():
            one.mul_(3.0)  # a training that changes the model in place changes no gradient
    assert np.array_equal(gradient(gradient.start[None], data), before)
    model[1].requires_grad_(False)
    with pytest.raises(MechanismError, match="^model must have parameters that are trained"):
        adapters.torch_gradient(model, torch.nn.functional.cross_entropy)


def test_gradients_refuse_what_is_no_model() -> None:
    with pytest.raises(TypeError, match="^model must be a torch.nn.Module, got 3"):
        adapters.torch_gradient(3, len)
    for make in (adapters.torch_gradient, adapters.jax_gradient):
        with pytest.raises(ArgumentError, match="^per must be"):
            make(len, len, per="batch")
        with pytest.raises(TypeError, match="must be a function"):
            make(*((3, 3) if make is adapters.jax_gradient else (len, 3)))
