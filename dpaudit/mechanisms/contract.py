"""The contract of a mechanism, checked on a few small calls before the first draw that counts."""

from __future__ import annotations

import math
import warnings
from typing import Any, Protocol

from numpy.typing import NDArray

from dpaudit.data import digest, handed
from dpaudit.errors import MechanismError, MechanismTimeout, SlowAuditWarning
from dpaudit.mechanisms.hints import slow_words
from dpaudit.mechanisms.independence import is_constant, same_draws
from dpaudit.mechanisms.outcomes import LateFailure
from dpaudit.mechanisms.protocols import is_seeded
from dpaudit.mechanisms.watch import LONG, Watch

Array = NDArray[Any]

PROBE_SIZE = 64
"""Draws of each call that checks the contract."""

CALLS = 64
"""Calls, at least, that the draws of one side are spread over, so that one call's luck is not
taken for the mechanism's distribution."""

SLOW = 0.5
"""Seconds for one draw from which a mechanism is probed by two draws a side, and no more."""

_PROBES = 10  # calls of PROBE_SIZE draws on both sides
_PROBE_SHARE = 0.1  # of max_seconds, if they are known, that those may take

_UNSTEADY = (
    "ignores rng: two calls with equal generators gave different draws. Draw from rng only, or "
    "mark the function with dpaudit.mechanisms.unseeded"
)


class Caller(Protocol):
    """What calls a mechanism and counts the seconds: a sampler."""

    mechanism: Any
    name: str
    watch: Watch
    seconds: float
    fastest: float
    """Seconds of the fastest call so far."""
    saw_reals: bool
    has_warned: bool

    def call(
        self,
        data: Any,
        size: int,
        *labels: str | int,
        side: str = "left",
        is_copy: bool = False,
        again: bool = False,
    ) -> Array:
        """Return the draws of one call."""


def check_contract(sampler: Caller, data: Any, side: str) -> None:
    """Check the contract on a few small calls; raise :class:`MechanismError` if it is broken.

    Refused: draws that do not follow the generator (replay would be impossible), draws that
    repeat whatever the generator (chunks would be copies), and noise that is shared by the
    draws of one call (they would not be independent).
    """
    given = handed(data)
    before = digest(given)
    if sampler.watch.total > 0:
        alone = _first_draw(sampler, given, side)
        if alone is not None and _is_dear(sampler) and digest(given) == before:
            _check_slow(sampler, data, alone, side)
            return
        sampler.fastest = math.inf
    calls = [sampler.call(given, PROBE_SIZE, "probe", 0, side=side, is_copy=True)]
    if digest(given) != before:
        raise MechanismError(
            f"{sampler.name} changes its input: the data are not the same after the call; "
            "a mechanism must leave them alone, and draw from a copy"
        )
    calls += [sampler.call(data, PROBE_SIZE, "probe", seed, side=side) for seed in (0, 1, 2, 3)]
    _warn_of_slowness(sampler, data, side)
    first, again, *others = calls
    if not is_seeded(sampler.mechanism):
        others = [again, *others]
    elif not same_draws(first, again):
        raise MechanismError(f"{sampler.name} {_UNSTEADY}")
    if all(same_draws(first, other) for other in others):
        if not is_constant(first):
            raise MechanismError(
                f"{sampler.name} ignores rng: four calls with different generators gave the same "
                f"{PROBE_SIZE} draws; draw from rng only"
            )
    elif all(is_constant(call) for call in calls):
        raise MechanismError(
            f"{sampler.name} shares its noise: all {PROBE_SIZE} draws of one call are equal, but "
            "calls differ. Draw noise of shape [size, ...], so that draws are independent"
        )


def _first_draw(sampler: Caller, given: Any, side: str) -> Array | None:
    """Return one draw, which shows what draws cost before many are made; None where that fails.

    What is wrong shows again in the call of many draws, and is told of that.
    """
    try:
        return sampler.call(given, 1, "probe", "alone", side=side, is_copy=True)
    except (MechanismTimeout, LateFailure):
        raise
    except MechanismError:
        return None


def _is_dear(sampler: Caller) -> bool:
    """Whether the only draw so far says that the whole probe would take too long."""
    whole = sampler.fastest * _PROBES * PROBE_SIZE
    bound = sampler.watch.max_seconds
    return sampler.fastest >= SLOW or (bound is not None and whole > _PROBE_SHARE * bound)


def _check_slow(sampler: Caller, data: Any, alone: Array, side: str) -> None:
    """Check of a mechanism that takes seconds for a draw only that its draws follow `rng`.

    That no noise is shared, and nothing repeats, is left to the check of independence.
    """
    again = sampler.call(data, 1, "probe", "alone", side=side, again=True)
    _warn_of_slowness(sampler, data, side, size=1)
    if is_seeded(sampler.mechanism) and not same_draws(alone, again):
        raise MechanismError(f"{sampler.name} {_UNSTEADY}")


def _warn_of_slowness(sampler: Caller, data: Any, side: str, size: int = PROBE_SIZE) -> None:
    """Say so at once where the draws that are planned would take more than three minutes.

    The calls of the probe were timed. Where they alone look slow, one larger call tells how
    much of the time each draw takes, and how much each call; where one draw does, that is all.
    """
    if sampler.has_warned or sampler.watch.total == 0 or sampler.watch.is_warned:
        return
    if sampler.watch.max_seconds is not None:  # whoever bounds the time knows
        return
    each = sampler.fastest  # the first call may have had to set something up
    if each / size * sampler.watch.total < LONG:
        return
    sampler.has_warned = sampler.watch.is_warned = True  # of the mechanism, not of its mutants
    per_draw, per_call = each, 0.0
    if size > 1:
        spent = sampler.seconds
        saw_reals = sampler.saw_reals  # nothing of a result may depend on the clock
        sampler.call(data, 4 * size, "timing", side=side)
        sampler.saw_reals = saw_reals
        per_draw = max((sampler.seconds - spent - each) / (3 * size), 0.0)
        per_call = max(each - per_draw * size, 0.0)
    seconds = per_draw * sampler.watch.total + per_call * 2 * CALLS
    if seconds > LONG:
        words = slow_words(sampler.name, each, size, sampler.watch.total, seconds)
        warnings.warn(words, SlowAuditWarning, stacklevel=2)
