"""Events and guesses that are counted on certifying draws, and the goal for choosing them.

Events and guesses are fixed before the draws that certify them are made.
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
"""Share of the exploration draws on which scores are learnt, unless the goal has another value.
Thresholds are chosen on the rest."""


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs that is fixed before the certifying draws are made.

    Call the event with outputs of the mechanism: ``event(outputs) -> bool [size]``.

    Parameters
    ----------
    score : Score
        Function that maps each output to a number.
    threshold : float
        Threshold of the score.
    above : bool
        Whether the event holds the outputs at and above the threshold (True) or below it (False).
    likelier : {"left", "right"}
        The side on which the event is declared to be likelier.
    encoder : Encoder
        Converts outputs to the matrix from which the score is computed.
    target : Target
        The goal for which the event was chosen. For this goal, the bound on its counts is sharpest.
    example : str
        A typical output in the event, given if a person cannot interpret the score.
    learnt_share : float
        Share of the first draws from which the score was learnt; 0 for a plain feature. The other
        draws only chose the threshold, so they estimate the rates of the event better than the
        first draws.
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
        """Description of the event, with an example output if the score was learnt."""
        words = self.score.words(self.threshold, self.above)
        return f"{words}, such as {self.example}" if self.example else words

    @property
    def definition(self) -> str:
        """Description of the event with all its parts and all digits of its thresholds."""
        return self.score.words(self.threshold, self.above, exact=True)

    def fires(self, scores: Floats) -> NDArray[np.bool_]:
        """Return whether each output lies in the event, given the score of each output."""
        above = scores >= self.threshold
        return above if self.above else ~above

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.bool_]:
        """Return whether each output lies in the event, shape ``[size]``."""
        return self.fires(self.score(self.encoder(np.asarray(outputs))))


@dataclass(frozen=True, eq=False)
class Guess:
    """A guess of each output's side, from both tails of one score.

    A guess may abstain. Call the guess with outputs of the mechanism: ``guess(outputs) -> int8
    [size]``. The value is 1 for left, -1 for right and 0 for no guess.

    Parameters
    ----------
    left, right : Event
        The event in which left is guessed, and the event in which right is guessed. The two events
        are disjoint cuts of one score.
    """

    left: Event
    right: Event

    @classmethod
    def of(cls, chosen: Event | Guess) -> Guess:
        """Return a guess.

        An event guesses its likelier side, and its complement guesses the other side.
        """
        if isinstance(chosen, Guess):
            return chosen
        other = "right" if chosen.likelier == "left" else "left"
        complement = replace(chosen, above=not chosen.above, likelier=other)
        return cls(chosen, complement) if other == "right" else cls(complement, chosen)

    @property
    def is_complete(self) -> bool:
        """Whether the guess never abstains."""
        return self.left.threshold == self.right.threshold and self.left.above != self.right.above

    @property
    def description(self) -> str:
        """Description of the guess."""
        return f"left where {self.left.description}; right where {self.right.description}"

    @property
    def definition(self) -> str:
        """Description of the guess, with all parts of its events and all digits of thresholds."""
        return f"left where {self.left.definition}; right where {self.right.definition}"

    @property
    def score(self) -> Score:
        """The score that both events cut."""
        return self.left.score

    @property
    def encoder(self) -> Encoder:
        """Encoder that converts outputs to the matrix from which the score is computed."""
        return self.left.encoder

    @property
    def learnt_share(self) -> float:
        """Share of the draws from which the score was learnt."""
        return self.left.learnt_share

    def __call__(self, outputs: NDArray[Any]) -> NDArray[np.int8]:
        """Return the guess for each output, shape ``[size]``."""
        scores = self.score(self.encoder(np.asarray(outputs)))
        return self.left.fires(scores).astype(np.int8) - self.right.fires(scores).astype(np.int8)


@dataclass(frozen=True)
class Goal:
    """The goal for which events are chosen.

    Parameters
    ----------
    delta : float or None
        Claimed delta at which epsilon is to be certified; None if the claim is a curve.
    epsilons : ndarray, shape (e,)
        Grid of epsilons over which the profile is certified. There is at most one event for each
        epsilon.
    claimed_deltas : ndarray, shape (e,)
        Claimed delta at each epsilon of the grid.
    draws : int
        Certifying draws per dataset.
    primary_failure_prob, profile_failure_prob : float
        Failure probability of the primary event, and of each event of the profile.
    learn_share : float
        Share of the exploration draws from which scores are learnt.
    wants_profile : bool
        Whether events are chosen for the profile in addition to the primary event.
    enough : float or None
        Value that suffices: an epsilon, or a ratio for a curve. Among the events that reach this
        value, the best event of the simplest kind is chosen. None if the best event is wanted.
    estimator : object, optional
        Classifier of scikit-learn, copies of which are fitted to give one more score.
    careful : bool
        Whether a search compares pairs by this goal. Then rare events must show more, because the
        best of many rare events looks better than it is.
    """

    delta: float | None
    epsilons: Floats
    claimed_deltas: Floats
    draws: int
    primary_failure_prob: float
    profile_failure_prob: float
    learn_share: float = LEARN_SHARE
    wants_profile: bool = True
    enough: float | None = None
    estimator: Any = None
    careful: bool = False


@dataclass(frozen=True)
class Selection:
    """The frozen events: first the primary event, then the events of the profile.

    Parameters
    ----------
    primary : Event or Guess
        The event that gets most of the failure probability.
    profile : tuple of Event
        One event for each epsilon of the grid at which the best event differs from the other
        events.
    objective : (float, float)
        Two numbers by which pairs of datasets are compared. The first number is the epsilon that
        the primary event is expected to certify. If the claim is a curve, the first number is the
        ratio by which the curve is exceeded. The second number is the separation of the two sides,
        which is the difference of the rates. The separation orders pairs whose expectations are
        equal.
    point : (float, float)
        Point of the claimed curve at which the primary event is strongest.
    """

    primary: Event | Guess
    profile: tuple[Event, ...]
    objective: tuple[float, float]
    point: tuple[float, float]


def trivial_event(encoder: Encoder) -> Event:
    """Return the event of all outputs, which certifies nothing.

    Use this event for outputs that never vary.
    """
    return Event(_SureScore(), 0.0, True, "left", encoder, Target(delta=0.0))


@dataclass(frozen=True, eq=False)
class _SureScore:
    name: str = "any output"
    axis: None = None

    def __call__(self, encoded: Floats) -> Floats:
        return np.zeros(encoded.shape[0])

    def words(self, threshold: float, above: bool, *, exact: bool = False) -> str:
        return "any value"
