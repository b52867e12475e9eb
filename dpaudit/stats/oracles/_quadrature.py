"""Gauss-Legendre panels for integrands that are made of exponentials between kinks."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.polynomial import legendre

from dpaudit.stats.oracles._core import Floats

ORDER = 32
NODES, WEIGHTS = (np.asarray(a, dtype=np.float64) for a in legendre.leggauss(ORDER))

STEEPNESS = 28.0
"""Largest panel width times rate at which 32 nodes integrate exp to full double precision."""


def on_panels(edges: Floats) -> tuple[Floats, Floats]:
    """Return nodes and weights of the composite rule on the panels between sorted `edges`."""
    half = np.diff(edges)[:, None] / 2.0
    nodes = edges[:-1, None] + half * (1.0 + NODES)
    return nodes.ravel(), (half * WEIGHTS).ravel()


def graded_edges(
    kinks: Floats, low: float, high: float, *, fine: float, near: float, coarse: float
) -> Floats:
    """Return edges from `low` to `high` that contain every kink and are denser near kinks.

    A panel that starts within `near` of a kink has at most the width `fine`. Farther away from
    kinks, the width grows with the distance, up to `coarse`. The panels are symmetric around the
    middle of two neighbouring kinks, so both ends of the gap are resolved.
    """
    inside = np.unique(np.clip(np.append(kinks, (low, high)), low, high))
    edges: list[Floats] = [inside[:1]]
    for a, b in itertools.pairwise(inside):
        half = (b - a) / 2.0
        offsets = [0.0]
        while (at := offsets[-1]) < half:
            width = fine if at < near else max(fine, min(at / 2.0, coarse))
            offsets.append(min(at + width, half))
        steps = np.array(offsets[1:])
        edges += [a + steps, (b - steps[:-1])[::-1], np.array([b])]
    return np.unique(np.concatenate(edges))
