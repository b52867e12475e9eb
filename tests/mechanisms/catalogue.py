"""Mechanisms for every kind of output and input that an audit accepts, all fast to audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dpaudit import AdditiveNoise, NeighborPair, Outcomes, one_draw, unseeded

NUMBERS = NeighborPair([[0.0], [2.0]], [[1.0], [2.0]])
LISTS = NeighborPair([[1, 2], [3]], [[], [3]])
TEXTS = NeighborPair([["a", "b"], ["c"]], [["b", "b"], ["c"]])
DICTS = NeighborPair([{"age": 3.0}, {"age": 1.0}], [{"age": 2.0}, {"age": 1.0}])
FRAME = NeighborPair.from_frame(
    pd.DataFrame({"user": [1, 1, 2], "paid": [3.0, 4.0, 5.0]}), user="user", drop=1
)


@dataclass(frozen=True)
class Case:
    """One kind of output, with a mechanism, a pair and options of the audit."""

    mechanism: Any
    pair: NeighborPair | None = NUMBERS
    options: dict[str, Any] = field(default_factory=dict)


def scalar(data, size, *, rng):
    return data.sum() + rng.laplace(size=size)


def integer(data, size, *, rng):
    return np.rint(data.sum() + rng.laplace(size=size)).astype(int)


def boolean(data, size, *, rng):
    return data.sum() + rng.laplace(size=size) > 2


def text(data, size, *, rng):
    return np.where(boolean(data, size, rng=rng), "more", "less")


def answer_or_none(data, size, *, rng):
    noisy = scalar(data, size, rng=rng)
    return [value if value > 1 else None for value in noisy]


@one_draw
def number_or_text(data, *, rng):
    value = data.sum() + rng.laplace()
    return value if value > 2 else "low"


@one_draw
def texts(data, *, rng):
    return ["x"] * (1 + int(data.sum() + rng.laplace() > 2))


def ragged(data, size, *, rng):
    return [[1.0] * int(abs(value)) for value in scalar(data, size, rng=rng)]


def record(data, size, *, rng):
    kinds = [("count", float), ("name", "U4")]
    columns = scalar(data, size, rng=rng), text(data, size, rng=rng)
    return np.array(list(zip(*columns, strict=True)), dtype=kinds)


def matrix(data, size, *, rng):
    return data.sum() + rng.laplace(size=(size, 2, 2))


def permuted(data, size, *, rng):
    noisy = rng.laplace(size=(size, 5))
    noisy[np.arange(size), rng.integers(5, size=size)] += 20 * data.sum()
    return noisy


def rarely_ragged(data, size, *, rng):
    return [[value] * (1 + (abs(value) > 6)) for value in scalar(data, size, rng=rng).tolist()]


def stream(data, size, *, rng):
    return data.sum() + rng.laplace(size=(size, 4)) > 2


def gaps(data, size, *, rng):
    noisy = data.sum() + rng.laplace(size=(size, 3))
    return np.where(noisy > 1, noisy, np.nan)


class Vector:
    """A mechanism that returns vectors and is an object with its own state."""

    def __init__(self, dim: int) -> None:
        self.dim, self.__name__ = dim, f"vector_{dim}"

    def __call__(self, data, size, *, rng):
        return data.sum() + rng.normal(size=(size, self.dim))


@one_draw
def dictionary(data, *, rng):
    return {"sum": data.sum() + rng.laplace(), "count": 2 + rng.laplace()}


@one_draw
def open_dictionary(data, *, rng):
    return {"a": 1.0} if data.sum() + rng.laplace() > 2 else {"a": 1.0, "b": 2.0}


@one_draw
def frame(data, *, rng):
    return pd.DataFrame({"shop": ["x", "y"], "paid": data.sum() + rng.laplace(size=2)})


@one_draw
def series(data, *, rng):
    return pd.Series({"sum": data.sum() + rng.laplace()})


@one_draw
def of_lists(users, *, rng):
    return sum(map(len, users)) + rng.laplace()


@one_draw
def of_texts(users, *, rng):
    return users[0][0] if rng.random() < 0.6 else "c"


@one_draw
def of_dicts(users, *, rng):
    return sum(user["age"] for user in users) + rng.laplace()


@one_draw
def of_frame(visits, *, rng):
    return visits["paid"].clip(0, 1).sum() + rng.laplace()


def _seeded_release(data, seed):
    return data.sum() + np.random.default_rng(seed).laplace()


def failing(data, size, *, rng):
    if (rng.random(size) < 0.2).any():
        raise KeyError("no answer")
    return data.sum() + rng.laplace(size=size)


@unseeded
def constant(data, size, *, rng):
    return np.full(size, data.sum())


class RandomisedResponse:
    """A mechanism with a known pmf."""

    def pmf(self, data):
        return np.array([0.7, 0.3] if data.sum() > 2 else [0.3, 0.7])


def mean(data, size, *, rng):
    return data.mean() + rng.laplace(scale=1 / len(data), size=size)


def centre(data):
    return data.sum(axis=0)


def halves(outputs):
    return np.asarray(outputs)[:, 0]


KINDS: dict[str, Case] = {
    "scalar": Case(scalar),
    "integer": Case(integer),
    "boolean": Case(boolean),
    "text": Case(text),
    "answer or None": Case(answer_or_none),
    "number or text": Case(number_or_text),
    "list of texts": Case(texts),
    "ragged": Case(ragged),
    "record": Case(record),
    "matrix": Case(matrix),
    "vector in random order": Case(permuted),
    "rarely ragged": Case(rarely_ragged),
    "stream": Case(stream),
    "vector with gaps": Case(gaps),
    **{f"vector of {dim}": Case(Vector(dim)) for dim in (1, 2, 3, 8, 11, 50)},
    "dict": Case(dictionary),
    "dict with keys": Case(Outcomes(open_dictionary, keys=["a", "b"])),
    "dict with other keys": Case(Outcomes(open_dictionary, keys=["a"])),
    "frame": Case(frame),
    "series": Case(series),
    "of lists": Case(of_lists, LISTS),
    "of texts": Case(of_texts, TEXTS),
    "of dicts": Case(of_dicts, DICTS),
    "of a frame": Case(of_frame, FRAME),
    "integer seed": Case(one_draw(_seeded_release, randomness="integer")),
    "errors": Case(Outcomes(failing, errors="outcome")),
    "constant": Case(constant),
    "exact": Case(RandomisedResponse()),
    "additive noise": Case(AdditiveNoise(centre, noise="laplace", scale=1.0)),
    "score": Case(Vector(2), options={"score": halves}),
    "low bits": Case(scalar, options={"float_attack": True}),
    "searched": Case(mean, None, {"draws": 1400}),
    "sequential": Case(Vector(3), options={"method": "sequential"}),
}
"""Cases by the kind of output, input or audit."""
