"""Where random numbers come from: one root seed, and a stream of its own for every purpose."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of one role in one audit: a pure function of root seed and labels.

    Examples
    --------
    >>> a = generator(1, "audit_laplace", "certify", "left", 0).integers(100, size=3)
    >>> b = generator(1, "audit_laplace", "certify", "left", 0).integers(100, size=3)
    >>> bool((a == b).all())
    True
    """
    digest = hashlib.sha256("\x1f".join(map(str, labels)).encode()).digest()
    words = np.frombuffer(digest, dtype=np.uint32).tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def seed_of(rng: np.random.Generator, below: int = 2**32) -> int:
    """Draw a seed, by default below 2**32, for a generator of another kind.

    One that begins a whole call, of many draws, must be of more bits: two calls with one seed would
    be the same.

    Unseen by what records the noise of a mechanism: a seed is no noise.
    """
    bits = np.random.Generator.bit_generator.__get__(rng)
    return int(np.random.Generator(bits).integers(below))


class Watched(np.random.Generator):
    """The generator of one call, which counts how often it is taken for a seed.

    ``default_rng(seed)`` returns a generator as it is. So code that builds two generators from one
    seed draws the same noise twice from a number, and fresh noise from a generator: to hand it a
    generator would hide the mistake. Only variables named like a seed count: code that takes `rng`
    may pass it on as often as it likes.
    """

    def __init__(self, bits: np.random.BitGenerator) -> None:
        super().__init__(bits)
        self.seeded = 0

    @property
    def capsule(self) -> Any:
        """Raise AttributeError, as any generator does; ``default_rng`` asks for it first."""
        caller = sys._getframe(1)
        names = [name for name, value in caller.f_locals.items() if value is self]
        if any("seed" in name or "random_state" in name for name in names):
            self.seeded += 1
        raise AttributeError("capsule")


@contextmanager
def recorded_generators(rng: np.random.Generator) -> Iterator[None]:
    """Let ``numpy.random.default_rng`` make generators that record what they draw, for mutants.

    The bits are those of the seed. A function imported by its name is not reached.
    """
    made, beside = np.random.default_rng, getattr(rng, "beside", None)

    def recorded(seed: Any = None) -> np.random.Generator:
        built = made(seed)
        return built if beside is None or built is seed else beside(built)

    with patch.object(np.random, "default_rng", recorded):
        yield


@contextmanager
def global_generators_kept() -> Iterator[None]:
    """Leave numpy's global generator and that of ``random`` as they were found.

    For code that draws from them and is not ours; whoever uses this must seed them inside.
    """
    ours, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(ours)  # noqa: NPY002
        random.setstate(python)
