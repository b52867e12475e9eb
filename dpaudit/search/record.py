"""What a search looked at: plain data, for results, reports and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import _validate

FINAL = "final"
"""Stage of the trials that were judged once more, on fresh draws."""


@dataclass(frozen=True)
class Trial:
    """One pair that a search looked at.

    Parameters
    ----------
    parameters : dict
        Plain values by name.
    expected_epsilon : float
        What its best event is expected to certify: epsilon at the claimed delta, or for a curve
        the ratio to the claim; 0 when nothing. An estimate from few draws, never a certificate.
    draws : int
        Draws per dataset that it was given; 0 when the parameters give no valid pair.
    stage : str
        The last stage that it reached: "design", "local", or "final" (judged on fresh draws).
    note : str
        Why there is no pair, else empty.
    separation : float
        Distance of the two sides beyond luck, which orders trials of equal expectation.
    """

    parameters: dict[str, Any]
    expected_epsilon: float
    draws: int
    stage: str
    note: str = ""
    separation: float = 0.0


@dataclass(frozen=True)
class SearchRecord:
    """All trials of one search, in the order in which they were made.

    Parameters
    ----------
    space : str
        Name of the search space.
    parameters : tuple of str
        Names of its parameters.
    trials : tuple of Trial
        Failed ones included.
    draws_spent : int
        Draws per dataset of all trials together.
    """

    space: str
    parameters: tuple[str, ...]
    trials: tuple[Trial, ...]
    draws_spent: int


def ranking(record: SearchRecord, k: int = 10) -> tuple[Trial, ...]:
    """Return the best `k` trials: finalists first, since only they were judged on fresh draws.

    The first one is the pair that the audit went on with.
    """
    _validate.integer(1, k=k)
    drawn = [trial for trial in record.trials if trial.draws > 0]
    return tuple(
        sorted(
            drawn, key=lambda t: (t.stage == FINAL, t.expected_epsilon, t.separation), reverse=True
        )[:k]
    )


def landscape(record: SearchRecord, parameter: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return one parameter of all trials with draws, sorted, and what each should certify.

    Examples
    --------
    >>> trials = (Trial({"size": 2.0}, 0.5, 32, "design"), Trial({"size": 1.0}, 0.1, 32, "design"))
    >>> x, expected = landscape(SearchRecord("outlier", ("size",), trials, 64), "size")
    >>> x.tolist(), expected.tolist()
    ([1.0, 2.0], [0.1, 0.5])
    """
    _validate.choice(record.parameters, parameter=parameter)
    drawn = [trial for trial in record.trials if trial.draws > 0]
    x = np.array([trial.parameters[parameter] for trial in drawn])
    order = np.argsort(x, kind="stable")
    return x[order], np.array([trial.expected_epsilon for trial in drawn], dtype=float)[order]
