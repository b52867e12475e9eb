"""Where random numbers come from: one root seed, and a stream of its own for every purpose."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

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
