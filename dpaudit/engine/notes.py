"""Sentences that a reader should have beside the numbers."""

from __future__ import annotations

import re

import numpy as np

from dpaudit.data import is_frame
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.explore import MIN_PILOT, Draws
from dpaudit.engine.task import Task
from dpaudit.events import explanation
from dpaudit.mechanisms import Sampler, is_constant
from dpaudit.neighbors import Portfolio
from dpaudit.results import at_least
from dpaudit.search import NO_ANSWER, SearchRecord, Trial, ranking

_NO_FLOATS = (
    "The floating-point attack did nothing: all outputs were whole numbers, booleans or labels, "
    "and no floating-point output was found whose bits could be read."
)
_NAMED = 3  # pairs, in a sentence
_OTHER_KEYS = "draws hold keys that keys= does not name: only their number is audited"


def notes_on_draws(task: Task, sampler: Sampler) -> tuple[str, ...]:
    """Say which exceptions were outcomes, and what was not looked at."""
    raised = [
        f"{name} on the {side}, in {count:,} draws"
        for side, names in sorted(sampler.raised.items())
        for name, count in sorted(names.items())
    ]
    said = {
        f"exceptions are outcomes: {'; '.join(raised)}": bool(raised),
        _OTHER_KEYS: sampler.has_other_keys,
        _NO_FLOATS: bool(task.float_attack) and not sampler.saw_reals,
    }
    return tuple(words for words, applies in said.items() if applies)


def left_out(task: Task, sampler: Sampler, search: SearchRecord | None) -> tuple[str, ...]:
    """Say what nobody asked to look at, and for what draws were too few."""
    found: tuple[str, ...] = ()
    if sampler.saw_reals and not task.float_attack and task.stored is None:
        found += ("the low bits of its outputs (float_attack=True)",)
    space = task.space
    if isinstance(space, Portfolio) and space.is_ready_made and not _has_gaps(space):
        found += ("data with missing items (missing=True)",)
    if search is not None and search.untried:
        names = ", ".join(search.untried[:_NAMED])
        more = len(search.untried) - _NAMED
        found += (f"pairs, for want of draws: {names}" + f", and {more} more" * (more > 0),)
    if search is not None and search.unanswered:
        found += (f"very few users ({NO_ANSWER} on {', '.join(search.unanswered[:_NAMED])})",)
    return found


def _has_gaps(space: Portfolio) -> bool:
    """Whether items are missing in some pair, or could not be."""
    for pair in space.pairs:
        sides = pair.left, pair.right
        if not all(isinstance(side, np.ndarray) and side.dtype.kind == "f" for side in sides):
            return True
        if not pair.relation.is_of_users or any(bool(np.isnan(side).any()) for side in sides):
            return True
    return False


def notes_on_outputs(draws: Draws) -> tuple[str, ...]:
    """Say what about the outputs looks like an oversight: no answer at all, or no noise."""
    if any(len(side) < MIN_PILOT for side in draws):
        return ()
    if all(side.dtype.kind == "f" and np.isnan(side).all() for side in draws):
        return ("every output on both datasets is NaN, no answer: can it answer on these data?",)
    if all(is_constant(side) for side in draws):
        return (
            f"all outputs of either dataset were equal in {len(draws[0]):,} draws: no noise is "
            "drawn here, or it hardly ever shows, or a seed is fixed inside the mechanism",
        )
    return ()


def notes_on(found: Certificate, unseen: str) -> tuple[str, ...]:
    """Say what a reader of the certificate should know; `unseen` is what gave no mutants."""
    said: tuple[str, ...] = ()
    if found.pair.is_null:
        said += ("The two datasets of the pair are equal: no mechanism shows anything on them.",)
    if unseen:
        said += (f"not all of its randomness gave mutants: {unseen}",)
    return said + found.notes


def notes_on_task(task: Task, found: Certificate) -> tuple[str, ...]:
    """Say what of what was asked bears on what was found."""
    shifts = (_SHIFTS,) if found.refuted and found.pair.shifts_others else ()
    bits = ""
    if found.refuted and task.float_attack:
        bits = explanation(found.witness.event)
    return (
        ((bits,) if bits else ())
        + shifts
        + (
            _on_other_pairs(found)
            + _on_relations(task, found)
            + _on_frames(task, found)
            + _on_the_search(task, found)
        )
    )


_OTHERS = 5  # pairs beside the one that was certified, in a note


def _on_other_pairs(found: Certificate) -> tuple[str, ...]:
    """Name the other pairs of a search that look like violations: another leak, maybe.

    What they are expected to certify is estimated from exploration draws.
    """
    if not found.refuted or found.search is None:
        return ()
    winner, *others = ranking(found.search, len(found.search.trials) or 1)
    worst: dict[str, Trial] = {}
    for trial in others:
        # One for each kind of pair: its name without the values in it.
        kind = re.split(r"[(=,:]", trial.arm)[0].strip()
        if trial.arm != winner.arm and trial.expected_epsilon > found.point[0]:
            worst.setdefault(kind, trial)
    worst.pop(re.split(r"[(=,:]", winner.arm)[0].strip(), None)
    if not worst:
        return ()
    leaks = sorted(worst.values(), key=lambda trial: -trial.expected_epsilon)[:_OTHERS]
    names = "; ".join(f"{t.arm} (epsilon about {t.expected_epsilon:.3g})" for t in leaks)
    return (
        f"other pairs look like violations too, estimated from few draws: {names}. Name one of "
        "them to certify it",
    )


_SHIFTS = (
    "other users stand at other places on the two sides of this pair, so that a mechanism that "
    "depends on the order of its data can differ by that alone. Put the user who leaves last, as "
    "NeighborPair.from_frame(drop=...) does"
)


def _on_relations(task: Task, found: Certificate) -> tuple[str, ...]:
    """Say of which relation the pair is, where pairs of several were looked at."""
    space = task.space
    pairs = space.pairs if isinstance(space, Portfolio) else task.pairs.pairs
    relations = dict.fromkeys(pair.relation for pair in pairs)
    if len(relations) < 2:
        return ()
    here = found.pair.relation
    others = " and ".join(str(relation) for relation in relations if relation != here)
    said = f"the claim fails under {here}" if found.refuted else f"the pair is of {here}"
    return (
        f"{said}; pairs of {others} were looked at too, because the claim names no relation: "
        "relation= of the claim says which is meant",
    )


def _on_frames(task: Task, found: Certificate) -> tuple[str, ...]:
    """Say that nobody looked for a worse pair, where one of a given frame shows nothing."""
    if found.refuted or task.space is not None or not is_frame(found.pair.left):
        return ()
    return (
        "only pairs that were named were looked at, and few users of given data show what the "
        f"worst would: neighbors.portfolio(frame, schema=Schema(user={found.pair.by!r})) looks for "
        "pairs that show more",
    )


_CLOSE = 0.9  # of the claim: so much is all that a search of a mechanism without slack may show


def _on_the_search(task: Task, found: Certificate) -> tuple[str, ...]:
    """Say that a worse pair may be left, where the worst that was found is far below the claim."""
    claimed = found.point[0]
    if found.refuted or not isinstance(task.space, Portfolio) or claimed <= 0 or found.point[1]:
        return ()  # with a delta, few draws show little of any pair
    if found.epsilon.lower >= _CLOSE * claimed or is_frame(found.pair.left):
        return ()
    closer = "a pair of your own, or more draws, look closer"
    if found.pair.relation.is_of_users and task.space.is_ready_made:
        closer = (
            "neighbors.portfolio(low=, high=) a little beyond the bounds in your code, or a pair "
            "of your own, looks closer"
        )
    return (
        f"the worst pair that the search found shows {at_least(found.epsilon.lower)} of "
        f"{claimed:.4g}: the mechanism has slack, or a worse pair was not reached; {closer}",
    )
