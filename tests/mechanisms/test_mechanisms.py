"""Tests of the contract of a mechanism.

The tests check what the sampler refuses, and what the sampler must never refuse.
"""

from __future__ import annotations

import functools
import inspect
import json
import signal
from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit import MechanismError, NeighborPair, PureDP, audit, neighbors
from dpaudit.mechanisms.protocols import (
    ExactMechanism,
    generator,
    is_seeded,
    mechanism_name,
    unseeded,
)
from dpaudit.mechanisms.sampler import CALLS, PROBE_SIZE, Sampler

Array = NDArray[Any]
Generator = np.random.Generator

DATA = np.array([[0.0], [1.0]])
DATA.setflags(write=False)


def _sampler(mechanism: Any) -> Sampler:
    return Sampler(mechanism, seed=7, labels=("audit_id", "mechanism"))


def _begin(mechanism: Any) -> Sampler:
    sampler = _sampler(mechanism)
    sampler.begin(DATA, DATA)
    return sampler


# --- refused by the first probe ---------------------------------------------------------------


def wrong_length(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.normal(size=size + 1)


def scalar(data: Array, size: int, *, rng: Generator) -> Any:
    return rng.normal()


def size_last(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.normal(size=(3, size))


def ragged(data: Array, size: int, *, rng: Generator) -> Any:
    return [["yes"] * (1 + i % 2) for i in range(size)]


def complex_numbers(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.normal(size=size) + 0j


def dates(data: Array, size: int, *, rng: Generator) -> Array:
    return np.zeros(size, "datetime64[s]")


def nested_records(data: Array, size: int, *, rng: Generator) -> Array:
    return np.zeros(size, [("a", [("b", float)])])


def infinite(data: Array, size: int, *, rng: Generator) -> Array:
    return np.where(np.arange(size) < 3, np.inf, rng.normal(size=size))


def infinite_field(data: Array, size: int, *, rng: Generator) -> Array:
    return np.full(size, -np.inf, [("a", float)])


def empty_draws(data: Array, size: int, *, rng: Generator) -> Array:
    return np.zeros((size, 0))


def nothing(data: Array, size: int, *, rng: Generator) -> Any:
    return None


async def awaited(data: Array, size: int, *, rng: Generator) -> Any:
    return rng.normal(size=size)


def yielded(data: Array, size: int, *, rng: Generator) -> Any:
    yield from rng.normal(size=size)


def writes_input(data: Array, size: int, *, rng: Generator) -> Array:
    data[0] = 5.0
    return rng.normal(size=size)


def unlocks_input(data: Array, size: int, *, rng: Generator) -> Array:
    data.setflags(write=True)
    data += 1.0
    data.setflags(write=False)
    return rng.normal(size=size)


def global_generator(data: Array, size: int, *, rng: Generator) -> Array:
    return np.random.random(size)  # noqa: NPY002


def own_seed(data: Array, size: int, *, rng: Generator) -> Array:
    return np.random.default_rng(0).normal(size=size)


def shared_noise(data: Array, size: int, *, rng: Generator) -> Array:
    return np.full(size, rng.normal())


def shared_vector(data: Array, size: int, *, rng: Generator) -> Array:
    return np.tile(rng.normal(size=3), (size, 1))


def raises(data: Array, size: int, *, rng: Generator) -> Array:
    raise RuntimeError("out of budget")


def positional_generator(data: Array, size: int) -> Array:
    return np.zeros(size)


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (
        wrong_length,
        r"size=64, got shape \(65,\)\. If this is one draw, .* \(64, 65\)",
    ),
    (scalar, r"first axis has length size=64, got one value, .*\. Draw noise of shape \[size"),
    (awaited, "got a coroutine. Use an ordinary function"),
    (yielded, "got a generator. Return np.array"),
    (
        size_last,
        r"size=64, got shape \(3, 64\)\. Put the draws on axis 0: .*1, 0\)",
    ),
    (ragged, "got a ragged sequence"),
    (complex_numbers, "got dtype complex128"),
    (dates, "got dtype datetime64"),
    (nested_records, "got dtype"),
    (infinite, "returned inf in 3 of 64 draws. Return finite numbers, and NaN"),
    (infinite_field, "returned inf in 64 of 64 draws"),
    (empty_draws, r"draws that are not empty, got shape \(64, 0\)"),
    (nothing, "got None. Add the missing return"),
    (writes_input, "must not change its input, which is read-only .*. Work on a copy"),
    (unlocks_input, "must not change its input, which is read-only"),
    (global_generator, "ignores rng: two calls with equal generators gave different draws"),
    (own_seed, "ignores rng: four calls with different generators gave the same 64 draws"),
    (shared_noise, "shares its noise: all 64 draws of one call are equal"),
    (shared_vector, "shares its noise"),
    (raises, r"out of budget \(at test_mechanisms.py:\d+, size=64, seed=7, stream audit_id/mech"),
    (positional_generator, "raised TypeError: .*rng"),
]


@pytest.mark.parametrize(
    ("mechanism", "words"), REFUSED, ids=[mechanism.__name__ for mechanism, _ in REFUSED]
)
def test_breaking_the_contract_is_refused_with_name_and_reason(
    mechanism: Callable[..., Any], words: str
) -> None:
    pair = NeighborPair(DATA, DATA)  # a separate copy, which the mechanism may change
    sampler = _sampler(mechanism)
    state = np.random.get_state()  # noqa: NPY002
    with pytest.raises(MechanismError, match=f"^{mechanism.__name__} .*{words}"):
        sampler.begin(pair.left, pair.right)
    np.random.set_state(state)  # noqa: NPY002


def _fails_in_numpy(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.laplace(scale=-1.0, size=size)  # compiled code


def _fails_in_installed(data: Array, size: int, *, rng: Generator) -> Array:
    return np.linalg.inv(np.zeros((2, 2)))


def _fails_in_python(data: Array, size: int, *, rng: Generator) -> Array:
    return json.loads("{")  # type: ignore[no-any-return]


def _fails_in_dpaudit(data: Array, size: int, *, rng: Generator) -> Array:
    return neighbors.far_user(n_users=-1).left


@pytest.mark.parametrize(
    "mechanism", [_fails_in_numpy, _fails_in_installed, _fails_in_python, _fails_in_dpaudit]
)
def test_a_failure_is_placed_in_the_users_code(mechanism: Callable[..., Array]) -> None:
    line = inspect.getsourcelines(mechanism)[1] + 1
    for made in (mechanism, unseeded(mechanism)):
        with pytest.raises(MechanismError, match=rf"\(at test_mechanisms.py:{line}, size=64, "):
            _begin(made)


def test_a_failure_outside_the_users_code_has_the_place_of_the_installed_mechanism() -> None:
    names: dict[str, Any] = {}
    source = "import json\ndef installed(data, size, *, rng):\n    return json.loads('{')"
    exec(compile(source, "/somewhere/site-packages/tool.py", "exec"), names)
    with pytest.raises(MechanismError, match=r"\(at tool.py:3, size=64"):
        _begin(names["installed"])
    with pytest.raises(MechanismError, match=r"raised TypeError: .*rng' \(size=64, "):
        _begin(lambda data, size: data)


@pytest.mark.parametrize("centers", [lambda data: data.sum(), lambda data, axis=0: data, np.mean])
def test_a_function_of_the_data_alone_is_told_of_additive_noise(centers: Any) -> None:
    words = r'before the noise is added, use AdditiveNoise\(f, "gaussian", scale=\.\.\.\)$'
    with pytest.raises(MechanismError, match=words):
        _begin(centers)


@pytest.mark.parametrize("mechanism", [lambda data, size: data, lambda data, rng: data, raises])
def test_other_faults_are_not_told_of_additive_noise(mechanism: Any) -> None:
    with pytest.raises(MechanismError, match="raised ((?!AdditiveNoise).)*$"):
        _begin(mechanism)


@pytest.mark.parametrize(
    ("outputs", "reals"),
    [
        (lambda rng, size: rng.integers(3, size=size), False),
        (lambda rng, size: rng.random(size) < 0.5, False),
        (lambda rng, size: rng.choice(["a", "b"], size=size), False),
        (lambda rng, size: np.rint(rng.normal(size=(size, 2))), False),
        (lambda rng, size: np.where(rng.random(size) < 0.5, np.nan, 1.0), False),
        (lambda rng, size: rng.normal(size=size), True),
        (lambda rng, size: np.rec.fromarrays([rng.integers(3, size=size), rng.random(size)]), True),
    ],
)
def test_a_sampler_knows_whether_it_saw_reals(outputs: Any, reals: bool) -> None:
    def mechanism(data: Array, size: int, *, rng: Generator) -> Array:
        return np.asarray(outputs(rng, size))

    assert _begin(mechanism).saw_reals is reals


@pytest.mark.parametrize("mechanism", [None, 3, "laplace", [1]])
def test_what_cannot_be_called_is_refused(mechanism: Any) -> None:
    with pytest.raises(TypeError, match="mechanism must be a function"):
        _sampler(mechanism)


def test_an_interrupt_from_outside_passes_through() -> None:
    def interrupted(data: Array, size: int, *, rng: Generator) -> Array:
        signal.raise_signal(signal.SIGINT)
        return rng.normal(size=size)

    with pytest.raises(KeyboardInterrupt):
        _begin(interrupted)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, CancelledError])
def test_an_interrupt_of_the_mechanism_is_its_fault(error: type[BaseException]) -> None:
    def raises(data: Array, size: int, *, rng: Generator) -> Array:
        raise error

    with pytest.raises(MechanismError, match=f"raises raised {error.__name__}"):
        _begin(raises)


# --- refused while drawing --------------------------------------------------------------------


class Later:
    """A mechanism that behaves well for the first `good` calls, and then like `bad`."""

    def __init__(self, bad: Callable[..., Any], good: int) -> None:
        self.bad, self.good, self.calls = bad, good, 0
        self.__name__ = "later"

    def __call__(self, data: Array, size: int, *, rng: Generator) -> Any:
        self.calls += 1
        if self.calls <= self.good:
            return rng.normal(size=size)
        return self.bad(data, size, rng=rng)


def _vectors(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.normal(size=(size, 2))


def _strings(data: Array, size: int, *, rng: Generator) -> Array:
    return rng.choice(["a", "b"], size=size)


BAD_LATER: list[tuple[Callable[..., Any], str]] = [
    (raises, "raised RuntimeError: out of budget"),
    (infinite, "returned inf in 3 of "),
    (_vectors, r"got arrays of numbers of shape \(2,\) on the .* dataset after one number each"),
    (_strings, "got one text each on the .* dataset after one number each"),
    (wrong_length, "first axis has length size="),
    (writes_input, "must not change its input"),
    (unlocks_input, "must not change its input"),
]


@pytest.mark.parametrize(("bad", "words"), BAD_LATER, ids=lambda x: getattr(x, "__name__", ""))
def test_breaking_the_contract_on_the_third_certifying_chunk_is_refused(
    bad: Callable[..., Any], words: str
) -> None:
    draws = 300_000  # per side, 90,000 explore in 2 chunks and 210,000 certify in 4
    mechanism = Later(bad, good=10 + 4 + 2)
    with pytest.raises(MechanismError, match=f"^later .*{words}"):
        audit(mechanism, PureDP(1.0), NeighborPair(DATA, DATA), draws=draws, seed=1, mutants=None)
    assert mechanism.calls >= 17


def test_input_changed_by_large_calls_only_is_refused() -> None:
    """Check that input that only large calls change is refused.

    The change is idempotent, so comparing the input before and after certification shows nothing.
    """

    def clips_in_place(data: Array, size: int, *, rng: Generator) -> Array:
        if size > PROBE_SIZE:
            data.base.setflags(write=True)
            data.base[:] = 0.5
            data.base.setflags(write=False)
        return data.sum() + rng.laplace(size=size)

    with pytest.raises(MechanismError, match="^clips_in_place must not change its input"):
        audit(
            clips_in_place,
            PureDP(1.0),
            NeighborPair(DATA, DATA),
            draws=20_000,
            seed=1,
            mutants=None,
        )


@pytest.mark.parametrize(
    "second",
    [
        [("b", float), ("a", float)],
        [("a", float)],
        [("a", float), ("b", "U2")],
        [("a", float, (2,)), ("b", float)],
    ],
    ids=["other order", "fewer fields", "other kind", "other shape"],
)
def test_records_whose_fields_change_between_calls_are_refused(second: Any) -> None:
    first = np.dtype([("a", float), ("b", float)])

    class Changes:
        calls = 0

        def __call__(self, data: Array, size: int, *, rng: Generator) -> Array:
            self.calls += 1
            out = np.zeros(size, first if self.calls <= 12 else np.dtype(second))
            out["a"] = rng.normal(size=out["a"].shape)
            return out

    with pytest.raises(MechanismError, match="one shape and kind"):
        audit(Changes(), PureDP(1.0), NeighborPair(DATA, DATA), draws=20_000, seed=1, mutants=None)


def test_noise_shared_by_the_draws_of_a_call_is_refused_where_other_noise_hides_it() -> None:
    """Check that noise shared by the draws of a call is refused behind other noise.

    Without this refusal, a threshold drawn once per call would refute a mechanism that ignores its
    data.
    """

    def shared_threshold(data: Array, size: int, *, rng: Generator) -> Array:
        return rng.laplace(size=size) > rng.laplace()

    pair = NeighborPair(DATA, DATA)
    for seed in range(5):
        with pytest.raises(MechanismError, match="independent|shares"):
            audit(shared_threshold, PureDP(0.1), pair, draws=5000, seed=seed, mutants=None)


# --- never refused ----------------------------------------------------------------------------


def _bernoulli(p: float) -> Callable[..., Array]:
    return lambda data, size, *, rng: rng.random(size) < p


HONEST: dict[str, Callable[..., Any]] = {
    "rare": _bernoulli(0.001),
    "common": _bernoulli(0.999),
    "half": _bernoulli(0.5),
    "never": _bernoulli(0.0),
    "constant": lambda data, size, *, rng: np.zeros(size),
    "constant vector": lambda data, size, *, rng: np.tile([1.0, 2.0], (size, 1)),
    "constant string": lambda data, size, *, rng: np.full(size, "a"),
    "all missing": lambda data, size, *, rng: np.full(size, np.nan),
    "list": lambda data, size, *, rng: rng.normal(size=size).tolist(),
    "list of strings": lambda data, size, *, rng: rng.choice(["a", "b"], size=size).tolist(),
    "bytes": lambda data, size, *, rng: rng.choice(np.array([b"x", b"yy"]), size=size),
    "large integers": lambda data, size, *, rng: rng.integers(2**62, size=size),
    "unsigned": lambda data, size, *, rng: rng.integers(2**64, size=size, dtype=np.uint64),
    "half precision": lambda data, size, *, rng: rng.normal(size=size).astype(np.float16),
    "images": lambda data, size, *, rng: rng.normal(size=(size, 2, 3)),
    "records": lambda data, size, *, rng: np.array(
        [(x, "a") for x in rng.normal(size=size)], [("x", float), ("y", "U3")]
    ),
}


@pytest.mark.parametrize("mechanism", HONEST.values(), ids=HONEST.keys())
def test_honest_mechanisms_are_never_refused(mechanism: Callable[..., Any]) -> None:
    for seed in range(20):
        sampler = Sampler(mechanism, seed=seed, labels=("a", "mechanism"))
        sampler.begin(DATA, DATA)
        assert sampler.draw(DATA, 70, "explore", "left").shape[0] == 70
    audit(mechanism, PureDP(1.0), NeighborPair(DATA, DATA), draws=200, seed=1, mutants=None)


def test_integers_among_floats_are_still_numbers() -> None:
    def sometimes_missing(data: Array, size: int, *, rng: Generator) -> Array:
        draws = rng.integers(3, size=size)
        return np.where(rng.random() < 0.5, draws, draws * 1.0) if size == 64 else draws

    _begin(sometimes_missing)


def test_scalar_datasets_are_data() -> None:
    data = np.array(3.0)
    sampler = _sampler(lambda data, size, *, rng: data + rng.normal(size=size))
    sampler.begin(data, data)
    assert sampler.draw(data, 5, "explore", "left").shape == (5,)


# --- unseeded ---------------------------------------------------------------------------------


def test_unseeded_mechanisms_may_draw_from_their_own_source() -> None:
    entropy = np.random.default_rng()

    @unseeded
    def coin(data: Array, size: int, *, rng: Generator) -> Array:
        return entropy.random(size)

    assert not is_seeded(coin)
    assert not is_seeded(functools.partial(coin))
    assert is_seeded(own_seed)
    assert mechanism_name(coin) == "coin"
    _begin(coin)


def test_unseeded_mechanisms_must_still_draw_afresh_and_independently() -> None:
    entropy = np.random.default_rng(0)
    with pytest.raises(MechanismError, match="shares its noise"):
        _begin(unseeded(lambda data, size, *, rng: np.full(size, entropy.random())))
    with pytest.raises(MechanismError, match="ignores rng"):
        _begin(unseeded(own_seed))


def test_unseeded_keeps_the_name_of_a_partial() -> None:
    bound = functools.partial(own_seed)
    assert mechanism_name(unseeded(bound)) == mechanism_name(bound)


# --- streams ----------------------------------------------------------------------------------


def _stream(*labels: str | int, seed: int = 1) -> list[int]:
    return generator(seed, *labels).integers(2**62, size=4).tolist()  # type: ignore[no-any-return]


def test_generators_repeat_and_differ_with_every_label() -> None:
    assert _stream("id", "certify", "left", 0) == _stream("id", "certify", "left", 0)
    others = [
        _stream("id", "certify", "left", 0, seed=2),
        _stream("id2", "certify", "left", 0),
        _stream("id", "explore", "left", 0),
        _stream("id", "certify", "right", 0),
        _stream("id", "certify", "left", 1),
        _stream("id", "certify", "left"),
        _stream("idcertify", "left", 0),
    ]
    assert len({tuple(x) for x in [_stream("id", "certify", "left", 0), *others]}) == 8


def test_generators_of_different_labels_are_uncorrelated() -> None:
    draws = np.array([generator(0, "id", i).normal(size=2000) for i in range(20)])
    correlation = np.corrcoef(draws) - np.eye(20)
    assert np.abs(correlation).max() < 6 / np.sqrt(2000)


def test_chunks_depend_on_role_and_side_and_cover_all_draws() -> None:
    sampler = _begin(lambda data, size, *, rng: rng.normal(size=size))
    chunks = list(sampler.chunks(DATA, 150_000, "certify", "left"))
    assert [len(c) for c in chunks] == [2344] * (CALLS - 1) + [2328]
    drawn = {
        (role, side): sampler.draw(DATA, 10, role, side).tolist()
        for role in ("explore", "certify")
        for side in ("left", "right")
    }
    assert len({tuple(v) for v in drawn.values()}) == 4
    assert drawn["certify", "left"] == sampler.draw(DATA, 10, "certify", "left").tolist()
    assert sampler.seconds > 0


@pytest.mark.parametrize("width", [1, 100, 5000, 100_000])
def test_chunks_of_wide_outputs_are_bounded(width: int) -> None:
    sizes = []

    def wide(data: Array, size: int, *, rng: Generator) -> Array:
        sizes.append(size)
        return np.broadcast_to(np.arange(size)[:, None] * 1.0, (size, width))

    sampler = _sampler(wide)
    sampler.call(DATA, 2, "probe")
    assert sampler.kinds.width == width
    for _ in sampler.chunks(DATA, 400, "certify", "left"):
        pass
    assert max(sizes) * width <= max(2**20, 256 * width)
    assert sum(sizes) == 402


def test_names_of_mechanisms() -> None:
    class Laplace:
        def __call__(self, data: Array, size: int, *, rng: Generator) -> Array:
            return rng.laplace(size=size)

    inner = functools.partial(own_seed, epsilon=1.0, values=np.arange(3))
    assert mechanism_name(own_seed) == "own_seed"
    assert mechanism_name(Laplace()) == "Laplace"
    assert mechanism_name(inner) == "own_seed(epsilon=1, values=[0 1 2])"
    assert mechanism_name(functools.partial(inner, epsilon=2.0)).startswith("own_seed(epsilon=2")
    assert len(mechanism_name(functools.partial(own_seed, x="a" * 999))) < 90


def test_a_method_pmf_makes_a_mechanism_exact() -> None:
    class Exact:
        def pmf(self, data: Array) -> Array:
            return np.ones(1)

    assert isinstance(Exact(), ExactMechanism)
    assert not isinstance(own_seed, ExactMechanism)
