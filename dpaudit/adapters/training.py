"""Adapters of JAX Privacy and Opacus.

Private gradients and private training become mechanisms.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit import _validate
from dpaudit.adapters.drawing import Drawn, Release, with_options
from dpaudit.adapters.gradients import tensors_of
from dpaudit.errors import ArgumentError
from dpaudit.mechanisms import mechanism_name, needed, one_draw, seed_of

Then = Callable[[Any], Any]

RELEASES = "parameters", "sums"

_EXPECTED = "Secure RNG turned off|Full backward hook is firing|Using a non-full backward"
"""Warnings of Opacus that are expected, because it is seeded here, without secure numbers."""


# --- JAX Privacy ---


def jax_privacy(
    gradient: Callable[..., Any],
    params: Any,
    *,
    stddev: float,
    steps: int = 1,
    learning_rate: float = 0.0,
    privatizer: Callable[..., Any] | None = None,
    then: Callable[[Any, Any], Any] | None = None,
) -> Callable[..., Any]:
    """Return a mechanism that runs gradient descent on clipped gradients of JAX Privacy.

    Parameters
    ----------
    gradient : callable
        ``gradient(params, data)``, such as ``clipped_grad(loss, l2_clip_norm=1.0)``. With
        ``keep_batch_dim=False`` and an array ``[n_users, m, ...]``, the function clips by user.
    params : pytree of arrays
        Initial parameters.
    stddev : float
        Standard deviation > 0 of the noise, for ``gaussian_privatizer``.
    steps : int, optional
        Number of steps with full batches, at least 1.
    learning_rate : float, optional
        Factor by which parameters move along noisy gradients.
    privatizer : callable, optional
        ``privatizer(stddev=, prng_key=)``; by default ``noise_addition.gaussian_privatizer``.
    then : callable, optional
        ``then(noisy, params)`` takes the noisy gradients ``[steps, ...]`` and the last parameters.
        JAX traces this function. The value of ``then`` is the draw. By default, the draw consists
        of all noisy gradients, one after the other.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``, seeded by `rng`. One compiled function makes the
        draws of a call.

    Raises
    ------
    MechanismError
        If JAX Privacy is not installed when the mechanism is called.
    """
    _validate.function("a function gradient(params, data)", gradient=gradient)
    for name, function in {"privatizer": privatizer, "then": then}.items():
        if function is not None:
            _validate.function(**{name: function})
    steps = _validate.integer(1, steps=steps)
    learning_rate = _validate.nonnegative(learning_rate=learning_rate)

    def descent(data: Any, *, key: Any, stddev: float, learning_rate: float) -> Any:
        jax = needed("jax", package="jax-privacy")
        noise = needed("jax_privacy.noise_addition", package="jax-privacy")
        make = noise.gaussian_privatizer if privatizer is None else privatizer
        private = make(stddev=stddev, prng_key=key)
        at, seen = params, []
        state = private.init(at)
        for _ in range(steps):
            noisy, state = private.update(gradient(at, data), state)
            at = jax.tree.map(lambda here, by: here - learning_rate * by, at, noisy)
            seen.append(noisy)
        stacked = jax.tree.map(lambda *each: jax.numpy.stack(each), *seen)
        if then is not None:
            return then(stacked, at)
        return jax.numpy.concatenate([leaf.ravel() for leaf in jax.tree.leaves(stacked)])

    mechanism = one_draw(descent, randomness="jax", vmap=True)
    mechanism.__name__ = "jax_privacy"
    stddev = _validate.positive(stddev=stddev)
    return functools.partial(mechanism, stddev=stddev, learning_rate=learning_rate)


# --- Opacus ---


def opacus(
    model: Callable[[], Any],
    loss: Callable[..., Any],
    *,
    noise_multiplier: float,
    max_grad_norm: float = 1.0,
    batch_size: int | None = None,
    epochs: int = 1,
    learning_rate: float = 1.0,
    poisson_sampling: bool = True,
    release: str = "parameters",
    then: Then | None = None,
    **options: Any,
) -> Callable[..., Any]:
    """Return a mechanism that trains a model with Opacus for each draw.

    Parameters
    ----------
    model : callable
        ``model()`` makes an untrained module. The module's parameters are drawn from torch's
        generator.
    loss : callable
        ``loss(outputs, y)``, such as ``torch.nn.functional.cross_entropy``; ``loss(outputs)`` if
        the data have no labels.
    noise_multiplier, max_grad_norm, poisson_sampling
        Arguments of ``PrivacyEngine.make_private``.
    batch_size : int, optional
        Expected size of a batch. The default is all users, so that each step uses all data.
    epochs : int, optional
        Number of passes over the data, at least 1.
    learning_rate : float, optional
        Learning rate of plain gradient descent.
    release : {"parameters", "sums"}, optional
        The draw. "parameters" are all parameters of the trained module, one after the other.
        "sums" are the noisy sums of clipped gradients of every step, ``[steps, d]``, as
        :meth:`dpaudit.DPSGD.likelihood_ratio` scores them. With ``loss_reduction="mean"``, the
        default of Opacus, the model moves by `learning_rate` times a sum divided by the expected
        size of a batch. Divide the learning rate of the :class:`dpaudit.DPSGD` by this size too.
    then : callable, optional
        Function of a trained module. The value of this function is the draw instead. `release` must
        then be "parameters".
    **options
        Further arguments of ``make_private``, such as ``grad_sample_mode``.

    Returns
    -------
    callable
        A mechanism ``f(data, size, *, rng)``, for data ``{"X": [n_users, d], "y": [n_users]}`` or
        an array ``[n_users, ...]``. Opacus clips the gradient of ``X[i]``, so an array of all
        examples of a user is clipped per user. The mechanism is seeded by `rng` through torch's
        global generator, whose state is restored afterwards. One draw takes milliseconds.

    Raises
    ------
    ArgumentError
        If `then` is given, and `release` is "sums".
    MechanismError
        If Opacus is not installed when the mechanism is called.
    """
    if _validate.choice(RELEASES, release=release) == "sums" and then is not None:
        raise ArgumentError(f'then must be None if release="sums", got {then!r}')
    prepare = functools.partial(
        _prepared_training,
        _validate.function("a function model()", model=model),
        _validate.function("a function loss(outputs, y)", loss=loss),
        None if batch_size is None else _validate.integer(1, batch_size=batch_size),
        _validate.integer(1, epochs=epochs),
        _validate.positive(learning_rate=learning_rate),
        release == "sums",
    )
    mechanism = _Torch(
        f"opacus {mechanism_name(model)}",
        prepare,
        then=_parameters if then is None and release == "parameters" else then,
        seeded=True,
        quiet=_EXPECTED,
    )
    return with_options(
        mechanism,
        {
            "noise_multiplier": _validate.nonnegative(noise_multiplier=noise_multiplier),
            "max_grad_norm": _validate.positive(max_grad_norm=max_grad_norm),
            "poisson_sampling": _validate.flag(poisson_sampling=poisson_sampling),
            **options,
        },
    )


class _Torch(Drawn):
    """A mechanism that restores the state of torch's generator."""

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator, **options: Any) -> Any:
        torch = needed("torch", package="opacus")
        before = torch.random.get_rng_state()
        try:
            return super().__call__(data, size, rng=rng, **options)
        finally:
            torch.random.set_rng_state(before)


def _prepared_training(
    model: Callable[[], Any],
    loss: Callable[..., Any],
    batch_size: int | None,
    epochs: int,
    learning_rate: float,
    sums: bool,
    **options: Any,
) -> Release:
    torch = needed("torch", package="opacus")
    library = needed("opacus", package="opacus")

    def release(given: Any, rng: np.random.Generator) -> Any:
        torch.manual_seed(seed_of(rng) * 2**32 + seed_of(rng))
        module = model()
        tensors = tensors_of(torch, given, module)
        made = library.PrivacyEngine().make_private(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=learning_rate),
            data_loader=torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(*tensors),
                batch_size=batch_size or len(tensors[0]),
            ),
            criterion=loss,
            **options,
        )
        module, optimizer, *criterion, loader = made  # ghost modes return their own criterion
        measure = criterion[0] if criterion else loss
        seen: list[Any] = []
        for _ in range(epochs):
            for features, *labels in loader:
                optimizer.zero_grad()
                measure(module(features), *labels).backward()
                optimizer.step()
                if sums:
                    seen.append(_noisy_sum(torch, optimizer))
        return np.stack(seen) if sums else module

    return release


def _noisy_sum(torch: Any, optimizer: Any) -> Any:
    """Return the noisy sum of clipped gradients that an optimiser used in its last step."""
    whole = torch.cat([one.grad.ravel() for one in optimizer.params]).numpy().astype(float)
    averaged = optimizer.loss_reduction == "mean"
    divisor = optimizer.expected_batch_size * optimizer.accumulated_iterations
    return whole * divisor if averaged else whole


def _parameters(module: Any) -> Any:
    return np.concatenate(
        [np.ravel(one.detach().numpy()) for one in module.parameters()], dtype=np.float64
    )
