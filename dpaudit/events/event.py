"""What certifying draws are looked at for: events, guesses, and the goal that they are chosen for.

Both are fixed before the draws that certify them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.events.encoding import Encoder
from dpaudit.events.scores import Score
from dpaudit.stats import Target

Floats = NDArray[np.float64]

LEARN_SHARE = 0.5
"""Part of the exploration draws on which scores are learnt, unless the goal says otherwise;
thresholds are chosen on the rest."""


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs, fixed before the draws that certify it.

    Call it with outputs of the mechanism: ``event(outputs) -> bool [size]``.

    Parameters
    ----------
    score : Score
        Number of each output.
    threshold : float
        Where the score is cut.
    above : bool
        Whether the event fires at and above the threshold, or below it.
    likelier : {"left", "right"}
        The side on which it is declared to be likelier.
    encoder : Encoder
        Turns outputs into the matrix that the score reads.
    target : Target
        What it was chosen for, where the bound on its counts will be sharpest.
    example : str
        A typical output inside, where the score says nothing to a person.
    learnt_share : float
        Part of the draws, from the first, on which the score was learnt; 0 for a plain feature.
        The event's rates are told better by the others, which only chose its threshold.
    """

    score: Score = field(repr=False)
    threshold: float
    above: bool
    likelier: str
    encoder: Encoder = field(repr=False)
    target: Target
    example: str = ""
    learnt_share: float = 0.0

    @property
    def description(self) -> str:
        """The event in words; for learnt scores, with an output that lies in it."""
        words = self.score.words(self.threshold, self.above)
        return f"{words}, such as {self.example}" if self.example else words

    @property
    def definition(self) -> str:
        """The event with all its parts, and thresholds to their last digit."""
        return self.score.words(self.threshold, self.above, exact=True)

    def fires(self, scores: Floats) -> NDArray[np.bool_]:
        """Return whether the event fires, from scores already computed."""
        above = scores >= self.threshold
        return above if self.above else ~above

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each output lies in the event, shape ``[size]``."""
        return self.fires(self.score(self.encoder(np.asarray(outputs))))


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess at the side of each output, in both tails of one score: left, right, or none.

    Call it with outputs of the mechanism: ``guess(outputs) -> int8 [size]``, 1 for left, -1 for
    right and 0 where it abstains.

    Parameters
    ----------
    left, right : Event
        Where left is guessed, and where right is: two cuts of one score that never fire together.
    """

    left: Event
    right: Event

    @classmethod
    def of(cls, chosen: Event | Guess) -> Guess:
        """Return a guess, or that of an event: its likelier side where it fires, else the other."""
        if isinstance(chosen, Guess):
            return chosen
        other = "right" if chosen.likelier == "left" else "left"
        complement = replace(chosen, above=not chosen.above, likelier=other)
        return cls(chosen, complement) if other == "right" else cls(complement, chosen)

    @property
    def is_complete(self) -> bool:
        """Whether it never abstains."""
        return self.left.threshold == self.right.threshold and self.left.above != self.right.above

    @property
    def description(self) -> str:
        """The guess in words."""
        return f"left where {self.left.description}; right where {self.right.description}"

    @property
    def definition(self) -> str:
        """The guess with all parts of its events, and thresholds to their last digit."""
        return f"left where {self.left.definition}; right where {self.right.definition}"

    @property
    def score(self) -> Score:
        """The score that is cut."""
        return self.left.score

    @property
    def encoder(self) -> Encoder:
        """Turns outputs into the matrix that the score reads."""
        return self.left.encoder

    @property
    def learnt_share(self) -> float:
        """Part of the draws on which the score was learnt."""
        return self.left.learnt_share

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.int8]:
        """Return the guess at each output, shape ``[size]``."""
        scores = self.score(self.encoder(np.asarray(outputs)))
        return self.left.fires(scores).astype(np.int8) - self.right.fires(scores).astype(np.int8)


@dataclass(frozen=True)
class Goal:
    """What the events are chosen for.

    Parameters
    ----------
    delta : float or None
        Claimed delta at which epsilon is to be certified; None when the claim is a curve.
    epsilons : ndarray, shape (e,)
        Grid over which the profile is certified; one event at most for each.
    claimed_deltas : ndarray, shape (e,)
        The claim on that grid.
    draws : int
        Certifying draws per dataset.
    primary_failure_prob, profile_failure_prob : float
        Given to the primary event, and to each event of the profile.
    learn_share : float
        Part of the exploration draws on which scores are learnt.
    wants_profile : bool
        Whether events are chosen for the profile too, or the primary one alone.
    """

    delta: float | None
    epsilons: Floats
    claimed_deltas: Floats
    draws: int
    primary_failure_prob: float
    profile_failure_prob: float
    learn_share: float = LEARN_SHARE
    wants_profile: bool = True


@dataclass(frozen=True)
class Selection:
    """The frozen events: the primary first, then those of the profile.

    Parameters
    ----------
    primary : Event or Guess
        On which most is staked.
    profile : tuple of Event
        One for each epsilon of the grid, where it is another one.
    objective : (float, float)
        For comparing pairs: the epsilon (of a curve, the excess over the claim as a ratio) that the
        primary is expected to certify, and the separation of the two sides, its difference of
        rates, which orders pairs of equal expectation.
    point : (float, float)
        Point of the claimed curve that the primary event challenges best.
    """

    primary: Event | Guess
    profile: tuple[Event, ...]
    objective: tuple[float, float]
    point: tuple[float, float]


def trivial_event(encoder: Encoder) -> Event:
    """Return the sure event, for outputs that never vary: it certifies nothing, soundly."""
    return Event(_SureScore(), 0.0, True, "left", encoder, Target(delta=0.0))


@dataclass(frozen=True, eq=False)
class _SureScore:
    name: str = "any output"
    axis: None = None

    def __call__(self, encoded: Floats) -> Floats:
        return np.zeros(encoded.shape[0])

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        return "any value"
