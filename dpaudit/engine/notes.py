"""Notes on a result, which a reader needs in addition to the numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import Relation
from dpaudit.data import is_frame
from dpaudit.engine.certificate import Certificate
from dpaudit.engine.explore import MIN_PILOT, Draws
from dpaudit.engine.task import Task
from dpaudit.mechanisms import Observed, Sampler, Scored, is_constant
from dpaudit.neighbors import NeighborPair, Portfolio
from dpaudit.results import at_least
from dpaudit.search import NO_ANSWER, SearchRecord, Trial, ranking

_NO_FLOATS = (
    "The floating-point attack tested nothing, since all outputs were whole numbers, booleans or "
    "labels."
)
_NAMED = 3  # number of pairs in a sentence
NO_ANSWERS = "Every output on both datasets is NaN. Can the mechanism answer on these data?"
_OTHER_KEYS = "Some draws hold keys that keys= does not list. Only the number of these is audited."


def notes_on_draws(task: Task, sampler: Sampler) -> tuple[str, ...]:
    """Return notes on exceptions that count as outcomes and on outputs that were not tested."""
    raised = [
        f"{name} on the {side}, in {count:,} draws"
        for side, names in sorted(sampler.raised.items())
        for name, count in sorted(names.items())
    ]
    chosen = {
        f"Exceptions count as outcomes: {'; '.join(raised)}.": bool(raised),
        _OTHER_KEYS: sampler.has_other_keys,
        _NO_FLOATS: bool(task.float_attack) and not sampler.saw_reals,
    }
    if isinstance(sampler.mechanism, Observed):
        chosen[sampler.mechanism.machine_words()] = True
    return tuple(words for words, applies in chosen.items() if applies)


def not_covered(task: Task, sampler: Sampler, search: SearchRecord | None) -> tuple[str, ...]:
    """Return what the audit did not test: options that are off, and pairs without draws."""
    found: tuple[str, ...] = ()
    if isinstance(sampler.mechanism, Observed):
        found += ("the outputs themselves (audit the mechanism without Observed)",)
    elif sampler.saw_reals and not task.float_attack and task.stored is None:
        found += ("low bits of the outputs (set float_attack=True)",)
    if isinstance(sampler.mechanism, Scored):
        found += ("outputs beyond their score (audit once without score=)",)
    space = task.space
    if space is None and task.stored is None:
        found += ("other pairs", *_users_with_more_items(task.pairs.pairs))
    if isinstance(space, Portfolio) and space.is_ready_made and not _has_gaps(space):
        found += ("data with missing items (pass neighbors.portfolio(missing=True))",)
    if isinstance(space, Portfolio) and space.beyond:
        found += (space.beyond,)
    if search is not None and search.untried:
        named = list(dict.fromkeys(search.untried))[:_NAMED]
        names = ", ".join(map(repr, named))
        more = sum(name not in named for name in search.untried)
        found += (
            f"pairs for which draws were too few: {names}" + f", and {more} more" * (more > 0),
        )
    if search is not None and search.unanswered:
        found += (f"very few users ({NO_ANSWER} on {', '.join(search.unanswered[:_NAMED])})",)
    return found


def _users_with_more_items(pairs: Sequence[NeighborPair]) -> tuple[str, ...]:
    """Return in words that the differing users have fewer items than another user."""
    own = most = 0
    for pair in pairs:
        for side in (pair.left, pair.right):
            items = pair.form.labels(side, "items")
            counts = Counter(user for user, *_ in items if user is not None)
            own = max([own, *(counts[user] for user in pair.users)])
            most = max([most, *counts.values()])
    if own >= most:
        return ()
    return ("a differing user with as many items as the largest user",)


def _has_gaps(space: Portfolio) -> bool:
    """Whether some pair has missing items, or the data cannot have missing items."""
    for pair in space.pairs:
        sides = pair.left, pair.right
        if not all(isinstance(side, np.ndarray) and side.dtype.kind == "f" for side in sides):
            return True
        if not pair.relation.is_of_users or any(bool(np.isnan(side).any()) for side in sides):
            return True
    return False


def suspiciously_constant(sampler: Sampler, outputs: NDArray[Any]) -> str:
    """Return "outputs" or "scores" if these are all equal, and "" otherwise.

    Time and memory may be constant, which is what is wanted.
    """
    if isinstance(sampler.mechanism, Observed) or not is_constant(outputs):
        return ""
    return "scores" if isinstance(sampler.mechanism, Scored) else "outputs"


def notes_on_outputs(sampler: Sampler, draws: Draws) -> tuple[str, ...]:
    """Return notes on outputs that are all NaN or all equal."""
    if any(len(side) < MIN_PILOT for side in draws):
        return ()
    if all(side.dtype.kind == "f" and np.isnan(side).all() for side in draws):
        return (NO_ANSWERS,)
    equal = {suspiciously_constant(sampler, side) for side in draws}
    if equal == {"scores"}:
        return (
            f"All {len(draws[0]):,} scores of each dataset were equal. Either the score does not "
            "depend on the noise, or the mechanism adds none here, or it fixes a seed.",
        )
    if equal == {"outputs"}:
        return (
            f"All {len(draws[0]):,} outputs of each dataset were equal. Either the mechanism adds "
            "no noise here, or noise rarely changes its output, or it fixes a seed.",
        )
    return ()


def notes_on(found: Certificate, unseen: str) -> tuple[str, ...]:
    """Return notes on a certificate.

    `unseen` says which randomness gave no mutants.
    """
    chosen: tuple[str, ...] = ()
    if found.pair.is_null:
        chosen += (
            "The two datasets of the pair are equal, so no mechanism can violate a claim on them.",
        )
    if unseen:
        chosen += (f"Some of the randomness gave no mutants: {unseen}.",)
    return chosen + found.notes


def notes_on_task(task: Task, found: Certificate) -> tuple[str, ...]:
    """Return notes that relate the task to its result."""
    shifts = (_SHIFTS,) if found.refuted and found.pair.shifts_others else ()
    return (
        *shifts,
        *_on_other_pairs(found),
        *_on_relations(task, found),
        *_on_frames(task, found),
        *_on_the_search(task, found),
    )


_OTHERS = 5  # number of further pairs in a note


def _on_other_pairs(found: Certificate) -> tuple[str, ...]:
    """Note other pairs of the search that look like violations, perhaps because of another leak.

    The epsilons of these pairs are estimated from exploration draws.
    """
    # Expectations of pairs of values may belong to other claims, and are divided by them.
    if not found.refuted or found.search is None or found.pair.relation == Relation.LOCAL:
        return ()
    winner, *others = ranking(found.search, len(found.search.trials) or 1)
    worst: dict[str, Trial] = {}
    for trial in others:
        # Each recipe occurs once, by its name without values.
        kind = re.split(r"[(=,:]", trial.arm)[0].strip()
        if trial.arm != winner.arm and trial.expected_epsilon > found.point[0]:
            worst.setdefault(kind, trial)
    worst.pop(re.split(r"[(=,:]", winner.arm)[0].strip(), None)
    if not worst:
        return ()
    leaks = sorted(worst.values(), key=lambda trial: -trial.expected_epsilon)[:_OTHERS]
    names = "; ".join(f"{t.arm} (epsilon about {t.expected_epsilon:.3g})" for t in leaks)
    return (
        f"Other pairs look like violations too, by estimates from few draws: {names}. Pass one of "
        "them to certify its epsilon.",
    )


_SHIFTS = (
    "In this pair, users who do not differ have other positions on the two sides. A mechanism that "
    "depends on the order of its data may differ for this reason alone. Put the removed user last, "
    "as NeighborPair.from_frame(drop=...) does."
)


def other_relations(task: Task, found: Certificate) -> tuple[Relation, ...]:
    """Return the relations of pairs that were tried, other than the relation of the worst pair."""
    space = task.space
    pairs = space.pairs if isinstance(space, Portfolio) else task.pairs.pairs
    relations = dict.fromkeys(pair.relation for pair in pairs)
    return tuple(relation for relation in relations if relation != found.pair.relation)


def _on_relations(task: Task, found: Certificate) -> tuple[str, ...]:
    """Note the relation of the pair, if pairs of several relations were tried."""
    others = other_relations(task, found)
    if found.refuted or not others:  # the advice on a violation names the relations
        return ()
    return (
        f"The pair has relation {found.pair.relation}. Pairs under "
        f"{' and '.join(map(str, others))} were tried too, because the claim names no relation. "
        "Pass relation= to the claim to choose one.",
    )


def _on_frames(task: Task, found: Certificate) -> tuple[str, ...]:
    """Note that no worse pair was searched for, if the given pair of a frame shows no violation."""
    if found.refuted or task.space is not None or not is_frame(found.pair.left):
        return ()
    return (
        "Only the named pairs were tested, and in real data few users expose a bug. "
        f"neighbors.portfolio(frame, schema=neighbors.Schema(user={found.pair.by!r})) searches for "
        "worse pairs.",
    )


_CLOSE = 0.9  # of the claim; a search may find no more for a mechanism that uses all its budget


def _on_the_search(task: Task, found: Certificate) -> tuple[str, ...]:
    """Note that a worse pair may exist, if the worst known pair is far below the claim."""
    claimed = found.point[0]
    if found.refuted or not isinstance(task.space, Portfolio) or claimed <= 0 or found.point[1]:
        return ()  # if delta > 0, few draws certify little on any pair
    if found.epsilon.lower >= _CLOSE * claimed or is_frame(found.pair.left):
        return ()
    closer = "Pass a pair of your own or more draws to search further"
    if found.pair.relation.is_of_users and task.space.is_ready_made:
        closer = (
            "Pass neighbors.portfolio(low=, high=) with limits slightly beyond the bounds in your "
            "code, or a pair of your own, to search further"
        )
    return (
        f"The worst pair found certifies epsilon = {at_least(found.epsilon.lower)}, and "
        f"{claimed:g} is claimed. More draws may certify more, the mechanism may add more noise "
        f"than it needs, or the search missed a worse pair. {closer}.",
    )
