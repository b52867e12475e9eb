"""Chunks of a sampler, drawn by workers."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpaudit.errors import MechanismError
from dpaudit.mechanisms.kept import Kept
from dpaudit.mechanisms.kinds import Kinds
from dpaudit.mechanisms.protocols import counts_changes
from dpaudit.mechanisms.workers import Workers

Array = NDArray[Any]


def can_travel(sampler: Any, workers: Workers) -> bool:
    """Whether workers can have the mechanism; a mutant that they cannot have is drawn here."""
    try:
        workers.ship(sampler.mechanism, sampler.name)
    except MechanismError:
        if sampler._labels[-1:] == ("mechanism",):
            raise
        return False
    return True


def draw_elsewhere(
    sampler: Any,
    workers: Workers,
    data: Any,
    draws: int,
    labels: tuple[str, str],
    starts: range,
    function: Callable[[Array, int], Any],
    draw: Callable[..., Chunk],
) -> Iterator[Any]:
    """Have workers draw the chunks; what a chunk holds does not depend on who draws it.

    Parameters
    ----------
    sampler : Sampler
        Whose chunks.
    workers : Workers
        Who draws.
    data : object
        A dataset of a pair.
    draws : int
        In all.
    labels : (str, str)
        Role and side.
    starts : range
        Where each chunk begins.
    function : callable
        Applied to each chunk and the place of its first draw.
    draw : callable
        What draws a chunk on a worker.
    """
    shipped = (
        workers.ship(sampler.mechanism, sampler.name),
        workers.ship(data, f"the data of {sampler.name}"),
        workers.ship(function, "what is counted"),
    )
    known = Known(
        sampler._seed,
        sampler._labels,
        sampler._finite,
        copy.deepcopy(sampler._kinds),
        sampler.watch.call_limit,
        sampler.kept,
    )
    tasks = (
        (known, min(starts.step, draws - start), (*labels, index), start)
        for index, start in enumerate(starts)
    )
    limits = {"deadline": sampler.watch.deadline, "call_limit": sampler.watch.call_limit}
    for chunk in workers.map(draw, shipped, tasks, **limits):
        sampler.seconds += chunk.seconds
        sampler.saw_reals |= chunk.saw_reals
        sampler.has_other_keys |= chunk.has_other_keys
        sampler._kinds.note(chunk.kinds)
        for side, names in chunk.raised.items():
            sampler.raised.setdefault(side, Counter()).update(names)
        if chunk.changes:
            counts_changes(sampler.mechanism).changed += chunk.changes
        sampler.watch.note(chunk.size)
        yield chunk.value


class Known(NamedTuple):
    """What a worker must know of a sampler to draw one of its chunks."""

    seed: int
    labels: tuple[str, ...]
    finite: bool
    kinds: Kinds
    call_limit: float | None
    kept: Kept | None


class Chunk(NamedTuple):
    """What a worker made of a chunk, and what its sampler noted about the draws.

    The controlling process needs all that a sampler keeps from call to call: a result must not
    depend on who drew.
    """

    value: Any
    size: int
    seconds: float
    saw_reals: bool
    has_other_keys: bool
    kinds: Kinds
    raised: dict[str, Counter[str]]
    changes: int
