"""What the plot of an audit in one run shows, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol


class ShownRun(Protocol):
    """What is shown of an audit in one run; :class:`dpaudit.results.OneRunResult` is one."""

    @property
    def claim(self) -> dict[str, Any]:
        """As stored."""

    @property
    def looks(self) -> tuple[int, ...]:
        """After how many guesses was looked."""

    @property
    def correct(self) -> tuple[int, ...]:
        """Right guesses by then."""

    @property
    def guesses(self) -> int:
        """At the look that shows most."""

    @property
    def failure_prob(self) -> float:
        """Of the certified epsilon."""

    @property
    def delta(self) -> float:
        """At which it is certified."""

    @property
    def certified_epsilon(self) -> float:
        """Lower bound of the epsilon that the mechanism needs."""


@dataclass(frozen=True)
class OneRunInfo:
    """What :func:`dpaudit.results.figures.plot_one_run` shows.

    Parameters
    ----------
    guesses : tuple of int
        After how many guesses was looked, the most confident ones first.
    estimated : tuple of float
        Epsilon by the share of right ones among them, half a guess away from none and all; without
        guarantee, and of no delta.
    telling : int
        Index of the look that shows most.
    certified : float
        Certified epsilon, of all looks together.
    claimed : float or None
        Claimed epsilon at the same delta; None where it is infinite.
    delta : float
        At which both hold.
    failure_prob : float
        Of the certified epsilon.
    """

    guesses: tuple[int, ...]
    estimated: tuple[float, ...]
    telling: int
    certified: float
    claimed: float | None
    delta: float
    failure_prob: float


def one_run_info(result: ShownRun) -> OneRunInfo:
    """Return estimated epsilons by the number of guesses, beside what is certified and claimed."""
    claimed = float(result.claim["epsilon"])
    return OneRunInfo(
        guesses=result.looks,
        estimated=tuple(
            math.log((right + 0.5) / (guesses - right + 0.5))
            for guesses, right in zip(result.looks, result.correct, strict=True)
        ),
        telling=result.looks.index(result.guesses),
        certified=result.certified_epsilon,
        claimed=claimed if math.isfinite(claimed) else None,
        delta=result.delta,
        failure_prob=result.failure_prob,
    )
