"""What a report says of the search that chose a pair: its landscape, its best trials, its cost."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.results.verdicts import Shown
from dpaudit.results.words import count, number, plain_value
from dpaudit.search import SearchRecord, Trial, ranking

MAX_PANELS = 4
MAX_TRIALS = 10
_LOG_SPAN = 100.0
_FEW = 6
_CURVES = ("gaussian_dp", "renyi_dp", "zcdp")


@dataclass(frozen=True)
class PanelInfo:
    """One parameter of a search.

    Parameters
    ----------
    parameter : str
        Its name.
    x : tuple of float
        Its value in each trial, or the place of the value among `words`.
    words : tuple of str or None
        Values that are no numbers, or few whole numbers; None for other numbers.
    log : bool
        Whether the values span so much that a log scale is needed.
    """

    parameter: str
    x: tuple[float, ...]
    words: tuple[str, ...] | None
    log: bool


@dataclass(frozen=True)
class LandscapeInfo:
    """What :func:`dpaudit.results.charts.landscape` shows.

    Parameters
    ----------
    panels : tuple of PanelInfo
        At most four parameters.
    left_out : tuple of str
        Names of the others.
    expected : tuple of float
        What each trial that was drawn is expected to certify.
    stage : tuple of str
        The last stage of each.
    winner : int or None
        Which trial the audit went on with.
    claim : float
        The expectation that would just refute the claim.
    ylabel : str
        What is expected.
    """

    panels: tuple[PanelInfo, ...]
    left_out: tuple[str, ...]
    expected: tuple[float, ...]
    stage: tuple[str, ...]
    winner: int | None
    claim: float
    ylabel: str


def landscape_info(result: Shown) -> LandscapeInfo:
    """Return expectations against parameters; ``ValueError`` for an audit without a search."""
    record = result.search
    if record is None:
        raise ValueError(f"{result.id} did not search for its pair: there is nothing to draw")
    drawn = [trial for trial in record.trials if trial.draws > 0]
    best = ranking(record, 1)
    curve = result.claim["notion"] in _CURVES
    return LandscapeInfo(
        panels=tuple(_panel(name, drawn) for name in record.parameters[:MAX_PANELS]),
        left_out=record.parameters[MAX_PANELS:],
        expected=tuple(trial.expected_epsilon for trial in drawn),
        stage=tuple(trial.stage for trial in drawn),
        winner=next((i for i, trial in enumerate(drawn) if best and trial is best[0]), None),
        claim=1.0 if curve else result.claimed_epsilon,
        ylabel="expected, of the claim" if curve else "expected epsilon",
    )


def _panel(name: str, trials: Sequence[Trial]) -> PanelInfo:
    values = [trial.parameters[name] for trial in trials]
    kinds = {type(value) for value in values}
    if kinds <= {int, float} and not (kinds == {int} and len(set(values)) <= _FEW):
        x = tuple(float(value) for value in values)
        return PanelInfo(name, x, None, bool(x) and min(x) > 0 and max(x) >= _LOG_SPAN * min(x))
    choices = sorted(set(values)) if kinds == {int} else sorted(set(values), key=plain_value)
    words = tuple(plain_value(value) for value in choices)
    return PanelInfo(name, tuple(float(choices.index(v)) for v in values), words, False)


@dataclass(frozen=True)
class TrialRow:
    """One line of the ranking, in words."""

    rank: int
    parameters: tuple[str, ...]
    expected: str
    draws: str
    stage: str
    note: str


@dataclass(frozen=True)
class SearchWords:
    """What the page says of a search: what it cost, its best trials, what was no pair."""

    space: str
    parameters: tuple[str, ...]
    cost: str
    draws: str
    rows: tuple[TrialRow, ...]
    notes: tuple[str, ...]


def search_words(record: SearchRecord) -> SearchWords:
    """Return the account of a search, honest about what it tried."""
    failed = [trial for trial in record.trials if trial.draws == 0]
    tried = f"{len(record.trials)} trial" + "s" * (len(record.trials) != 1)
    cost = f"{tried}, {count(record.draws_spent)} draws per dataset"
    if failed:
        cost += f"; {len(failed)} gave no valid pair"
    reasons = collections.Counter(trial.note or "no reason given" for trial in failed)
    return SearchWords(
        space=record.space,
        parameters=record.parameters,
        cost=cost,
        draws=count(record.draws_spent),
        rows=tuple(
            TrialRow(
                rank,
                tuple(plain_value(trial.parameters.get(name, "")) for name in record.parameters),
                number(trial.expected_epsilon),
                count(trial.draws),
                trial.stage,
                trial.note,
            )
            for rank, trial in enumerate(ranking(record, MAX_TRIALS), 1)
        ),
        notes=tuple(f"{times}\u202f× {reason}" for reason, times in reasons.most_common(3)),
    )
