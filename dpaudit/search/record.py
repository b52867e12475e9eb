"""The trials of a search as plain data, for results, reports and figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate
from dpaudit._json import LATER, Count

FINAL = "final"
"""Stage of the trials that were judged last, on fresh draws."""

SEMIFINAL = "semifinal"
"""Stage of the trials that were also judged on fresh draws, but on fewer."""

NO_ANSWER = "the mechanism gives no answer"
"""Beginning of the note of a trial on which a mechanism may fail, and did fail."""


@dataclass(frozen=True)
class Trial:
    """One pair that a search tried.

    Parameters
    ----------
    parameters : dict
        Plain values of the parameters, by name.
    expected_epsilon : float
        Expected value that the pair's best event certifies. The value is epsilon at the claimed
        delta. For a curve, the value is the ratio to the claim. The value is 0 if nothing is
        certified. The value is an estimate from a small number of draws, never a certificate.
    draws : int
        Number of draws per dataset. The number is 0 if the parameters give no valid pair, or if
        everything is computed.
    stage : str
        Last stage of the trial: "design", "local", "semifinal" or "final". The stages "semifinal"
        and "final" are judged on fresh draws.
    note : str
        Reason why there is no pair; empty if there is a pair.
    separation : float
        Distance of the two sides beyond chance. This distance orders trials whose expectations are
        equal.
    arm : str
        Pair or space of a portfolio to which the trial belongs. The text is empty if only one space
        is searched.
    """

    parameters: dict[str, Any]
    expected_epsilon: float
    draws: Count
    stage: str
    note: str = ""
    separation: float = 0.0
    arm: str = ""

    @property
    def valid(self) -> bool:
        """Whether there was a valid pair."""
        return not self.note


@dataclass(frozen=True)
class SearchRecord:
    """All trials of one search, in the order in which they were made.

    Parameters
    ----------
    space : str
        Name of the search space or the portfolio.
    parameters : tuple of str
        Names of the parameters of all spaces.
    trials : tuple of Trial
        All trials, including failed ones.
    draws_spent : int
        Total number of draws per dataset in all trials. The number is 0 if everything is computed.
    pairs, spaces : int
        Numbers of given pairs and of spaces.
    untried : tuple of str
        Names of the pairs that were not tried because there were too few draws.
    """

    space: str
    parameters: tuple[str, ...]
    trials: tuple[Trial, ...]
    draws_spent: Count
    pairs: Count = 0
    spaces: Count = 1
    untried: tuple[str, ...] = field(default=(), metadata=LATER)

    @property
    def unanswered(self) -> tuple[str, ...]:
        """Pairs of very few users on which the mechanism gave no answer."""
        return tuple(trial.arm for trial in self.trials if trial.note.startswith(NO_ANSWER))

    @property
    def is_portfolio(self) -> bool:
        """Whether there was more than one space to search."""
        return self.pairs > 0 or self.spaces != 1

    def words(self) -> str:
        """Return one line: what was searched, and the numbers of pairs tried and of draws.

        Examples
        --------
        >>> trials = (Trial({"size": 2.0}, 0.5, 32, "design"),)
        >>> SearchRecord("outlier", ("size",), trials, 32).words()
        'outlier: 1 pair tried with 32 draws'
        """
        held = [_counted(self.pairs, "pair")] * (self.pairs > 0)
        held += [_counted(self.spaces, "space")] * (self.spaces > 0)
        where = f"{' and '.join(held)}, " if self.is_portfolio else ""
        tried = f"{_counted(sum(trial.valid for trial in self.trials), 'pair')} tried"
        cost = f"with {self.draws_spent:,} draws" if self.draws_spent else "by computation"
        left = f", {len(self.untried):,} of the {self.pairs:,} not covered" * bool(self.untried)
        return f"{self.space}: {where}{tried} {cost}{left}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


def ranking(record: SearchRecord, k: int = 10) -> tuple[Trial, ...]:
    """Return the best `k` trials.

    Trials on fresh draws, and trials with most draws, come first. The first trial is the pair with
    which the audit continued.
    """
    _validate.integer(1, k=k)
    drawn, late = [trial for trial in record.trials if trial.valid], {FINAL: 2, SEMIFINAL: 1}
    return tuple(
        sorted(
            drawn,
            key=lambda t: (late.get(t.stage, 0), t.expected_epsilon, t.separation),
            reverse=True,
        )[:k]
    )


def landscape(record: SearchRecord, parameter: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the sorted values of a parameter in all trials, with each trial's expected value.

    Examples
    --------
    >>> trials = (Trial({"size": 2.0}, 0.5, 32, "design"), Trial({"size": 1.0}, 0.1, 32, "design"))
    >>> x, expected = landscape(SearchRecord("outlier", ("size",), trials, 64), "size")
    >>> x.tolist(), expected.tolist()
    ([1.0, 2.0], [0.1, 0.5])
    """
    _validate.choice(record.parameters, parameter=parameter)
    drawn = [trial for trial in record.trials if trial.valid and parameter in trial.parameters]
    x = np.array([trial.parameters[parameter] for trial in drawn])
    order = np.argsort(x, kind="stable")
    return x[order], np.array([trial.expected_epsilon for trial in drawn], dtype=float)[order]
