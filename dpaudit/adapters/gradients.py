"""Gradients of models of PyTorch and JAX, as :class:`dpaudit.DPSGD` takes them.

One vectorised call computes the gradients of all users, for all runs (PyTorch) or 64 runs (JAX).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit.errors import MechanismError
from dpaudit.mechanisms import mechanism_name, needed

Floats = NDArray[np.float64]

PER = "user", "example"
BLOCK = 64
"""Runs whose gradients JAX computes in one call."""


class Gradient:
    """Gradients of a model for every run and user.

    Parameters
    ----------
    name : str
        Name in reports.
    start : ndarray
        All parameters of the model, one after the other, shape (d,).
    gradients, losses : callable
        Functions ``(params, data) -> array`` of every run and user, and of every example if `per`
        is "example".
    per : {"user", "example"}
        Whether one gradient is computed for each user or for each example.
    """

    def __init__(
        self,
        name: str,
        start: Floats,
        gradients: Callable[[Floats, Any], Floats],
        losses: Callable[[Floats, Any], Floats],
        per: str,
    ) -> None:
        self.__name__, self.start, self.per = name, start, per
        self._gradients, self._losses = gradients, losses

    def __repr__(self) -> str:
        return f"gradient({self.__name__}, {self.start.size} parameters, per {self.per})"

    def __call__(self, params: Floats, data: Any) -> Floats:
        """Return gradients ``[size, n_users, d]``, or ``[size, n_users, m, d]`` per example."""
        return self._gradients(params, data)

    def losses(self, params: Floats, data: Any) -> Floats:
        """Return the loss of each user ``[size, n_users]``; per example, the sum of the losses."""
        found = self._losses(params, data)
        return np.asarray(found.sum(axis=2) if self.per == "example" else found)


def torch_gradient(model: Any, loss: Callable[..., Any], *, per: str = "user") -> Gradient:
    """Return the gradient of a PyTorch model, for :class:`dpaudit.DPSGD`.

    Parameters
    ----------
    model : torch.nn.Module
        The model, before ``make_private``. Its parameters in the order of ``model.parameters()``
        are the start. The gradients are those of a copy in evaluation mode, so dropout is off, and
        running means stay as they are. Frozen parameters are no part of the gradient.
    loss : callable
        ``loss(outputs, y)``, such as ``torch.nn.functional.cross_entropy``; ``loss(outputs)`` if
        the data have no labels.
    per : {"user", "example"}, optional
        With "user", the loss of a user is ``loss(model(X), y)`` for all data of this user, as if a
        user were one example of Opacus. With "example", each user has an array of examples. The
        loss of an example is ``loss(model(x[None]), y[None])``. The user's gradient is then the
        sum over the examples, before or after clipping (``DPSGD(clip=...)``).

    Returns
    -------
    Gradient
        A function ``gradient(params, data)`` of data ``{"X": [n_users, ...], "y": [n_users, ...]}``
        or of an array ``[n_users, ...]``. Features are converted to single precision, unless the
        model has an embedding, and whole labels to classes. The attribute ``start`` has shape (d,),
        and the method ``losses(params, data)`` is the default of
        :meth:`dpaudit.DPSGD.loss_drop`.

    Raises
    ------
    MechanismError
        If PyTorch is not installed, or if the model has no parameters that are trained.
    TypeError
        If `model` is not a module, or `loss` is not a function.
    """
    by_example = _validate.choice(PER, per=per) == "example"
    _validate.function("a function loss(outputs, y)", loss=loss)
    if not callable(getattr(model, "named_parameters", None)):
        raise TypeError(f"model must be a torch.nn.Module, got {_validate.describe(model)}")
    torch = needed("torch")
    if hasattr(model, "_module"):
        raise MechanismError(
            f"model must be the module before make_private, got {type(model).__name__}"
        )
    model = copy.deepcopy(model).eval()
    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    if not trained:
        raise MechanismError(f"model must have parameters that are trained, got {model!r}")
    sizes = [one.numel() for one in trained.values()]
    shapes = {name: one.shape for name, one in trained.items()}
    first = next(iter(trained.values()))

    def of_one(params: Any, *user: Any) -> Any:
        parts = zip(shapes.items(), params.split(sizes), strict=True)
        named = {name: part.reshape(shape) for (name, shape), part in parts}
        x, *labels = (value[None] for value in user) if by_example else user
        return loss(torch.func.functional_call(model, named, (x,)), *labels)

    def mapped(function: Callable[..., Any]) -> Callable[[Floats, Any], Floats]:
        def computed(params: Floats, data: Any) -> Floats:
            values = tensors_of(torch, data, model)
            at = torch.tensor(np.asarray(params), dtype=first.dtype)
            return _plain(_mapped(torch.func.vmap, function, len(values), by_example)(at, *values))

        return computed

    flat = torch.cat([one.detach().ravel() for one in trained.values()])
    gradients = mapped(torch.func.grad(of_one))
    name = mechanism_name(type(model))
    return Gradient(name, _plain(flat), gradients, mapped(of_one), per)


def jax_gradient(loss: Callable[..., Any], params: Any, *, per: str = "user") -> Gradient:
    """Return the gradient of a loss that is written in JAX, for :class:`dpaudit.DPSGD`.

    Parameters
    ----------
    loss : callable
        ``loss(params, x)`` for data that are an array, or ``loss(params, x, y)`` for data that are
        a dict of "X" and "y". With `per` "user", `x` and `y` are all data of one user. With
        "example", they are one example.
    params : pytree of arrays
        Parameters before the first step. All parameters, one after the other in the order of
        ``jax.flatten_util.ravel_pytree``, are the start.
    per : {"user", "example"}, optional
        Whether one gradient is computed for each user or for each example of a user, as in
        :func:`torch_gradient`.

    Returns
    -------
    Gradient
        A function ``gradient(params, data)`` with the attribute ``start`` and the method
        ``losses``, as for :func:`torch_gradient`.

    Raises
    ------
    MechanismError
        If JAX is not installed.
    TypeError
        If `loss` is not a function.
    """
    by_example = _validate.choice(PER, per=per) == "example"
    _validate.function("a function loss(params, x, y)", loss=loss)
    jax = needed("jax")
    needed("jax.flatten_util")
    flat, unravel = jax.flatten_util.ravel_pytree(params)

    def of_one(at: Any, *user: Any) -> Any:
        return loss(unravel(at), *user)

    def mapped(function: Callable[..., Any]) -> Callable[[Floats, Any], Floats]:
        compiled: dict[int, Any] = {}

        def computed(params: Floats, data: Any) -> Floats:
            values = _columns(data)
            if len(values) not in compiled:
                many = _mapped(jax.vmap, function, len(values), by_example)
                compiled[len(values)] = jax.jit(many)
            # All calls have one size. Another size would be compiled anew, and round otherwise.
            blocks = max(-(-len(params) // BLOCK), 1)
            at = np.zeros((blocks, BLOCK, flat.size), flat.dtype)
            at.reshape(-1, flat.size)[: len(params)] = params
            parts = [_plain(compiled[len(values)](block, *values)) for block in at]
            return np.concatenate(parts)[: len(params)]

        return computed

    name, gradients = mechanism_name(loss), mapped(jax.grad(of_one))
    return Gradient(name, np.asarray(flat, dtype=float), gradients, mapped(of_one), per)


def _mapped(
    vmap: Callable[..., Any], function: Callable[..., Any], columns: int, by_example: bool
) -> Callable[..., Any]:
    """Return a function of all runs, users and examples, from one of a single run and user."""
    per_user, per_run = (None, *[0] * columns), (0, *[None] * columns)
    examples = vmap(function, per_user) if by_example else function
    mapped: Callable[..., Any] = vmap(vmap(examples, per_user), per_run)
    return mapped


def _plain(found: Any) -> Floats:
    """Return a tensor of PyTorch or an array of JAX as an array of numpy."""
    return np.asarray(found.detach().double() if hasattr(found, "detach") else found, dtype=float)


def _columns(data: Any) -> list[Any]:
    """Return features and labels of a dict, or the array itself."""
    if isinstance(data, dict):
        if set(data) != {"X", "y"}:
            raise MechanismError(
                f'data in a dict must have the keys "X" and "y", got {sorted(map(str, data))}'
            )
        columns = [np.array(data["X"]), np.array(data["y"])]
        if len({len(column) for column in columns}) != 1:
            raise MechanismError(
                f"X and y must have one length, got {len(columns[0])} and {len(columns[1])}"
            )
        return columns
    array = np.array(data)
    if array.dtype.kind not in "biuf":
        raise MechanismError(
            'data must be an array of numbers, or a dict of "X" and "y", '
            f"got data of type {type(data).__name__}"
        )
    return [array]


def tensors_of(torch: Any, data: Any, model: Any) -> list[Any]:
    """Return features and labels as tensors for a model of PyTorch.

    Features are converted to single precision, unless the model has an embedding. Whole labels are
    converted to classes.
    """
    embeddings = torch.nn.Embedding, torch.nn.EmbeddingBag
    keeps_whole = any(isinstance(module, embeddings) for module in model.modules()), True
    return [
        torch.tensor(column, dtype=torch.int64)
        if keeps and column.dtype.kind in "iub"
        else torch.tensor(column, dtype=torch.float32)
        for column, keeps in zip(_columns(data), keeps_whole, strict=False)
    ]
