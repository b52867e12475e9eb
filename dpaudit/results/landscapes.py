"""What a report says of the search that chose a pair: its landscape, its best trials, its cost."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpaudit.results.verdicts import Shown
from dpaudit.results.words import count, number, plain_value
from dpaudit.search import SearchRecord, Trial, ranking

MAX_PANELS = 4
MAX_TRIALS = 10
_LOG_SPAN = 100.0
_FEW = 6
_ARM, _GIVEN = "space", "given pairs"
_CURVES = ("gaussian_dp", "renyi_dp", "zcdp", "approx_zcdp", "accounted")


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
    shown : tuple of int
        Which of the trials have it; in a portfolio only those of some of its spaces.
    """

    parameter: str
    x: tuple[float, ...]
    words: tuple[str, ...] | None
    log: bool
    shown: tuple[int, ...]


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
    """Return expectations against parameters; ``ValueError`` for an audit without a search.

    Of a portfolio: against where each pair came from.
    """
    record = result.search
    if record is None:
        raise ValueError(f"{result.id} did not search for its pair: there is nothing to draw")
    drawn = [trial for trial in record.trials if trial.valid]
    best = ranking(record, 1)
    curve = result.claim["notion"] in _CURVES
    winner = next((i for i, trial in enumerate(drawn) if best and trial is best[0]), None)
    if record.is_portfolio:
        arms = [trial.arm.partition("(")[0] if trial.parameters else _GIVEN for trial in drawn]
        panels: tuple[PanelInfo, ...] = (_panel_of(_ARM, arms, tuple(range(len(drawn)))),)
        left_out = record.parameters
    else:
        panels = tuple(_panel(name, drawn) for name in record.parameters[:MAX_PANELS])
        left_out = record.parameters[MAX_PANELS:]
    return LandscapeInfo(
        panels=panels,
        left_out=left_out,
        expected=tuple(trial.expected_epsilon for trial in drawn),
        stage=tuple(trial.stage for trial in drawn),
        winner=winner,
        claim=1.0 if curve else result.claimed_epsilon,
        ylabel="expected, of the claim" if curve else "expected epsilon",
    )


def _panel(name: str, trials: Sequence[Trial]) -> PanelInfo:
    shown = tuple(i for i, trial in enumerate(trials) if name in trial.parameters)
    return _panel_of(name, [trials[i].parameters[name] for i in shown], shown)


def _panel_of(name: str, values: Sequence[Any], shown: tuple[int, ...]) -> PanelInfo:
    kinds = {type(value) for value in values}
    if kinds <= {int, float} and not (kinds == {int} and len(set(values)) <= _FEW):
        x = tuple(float(value) for value in values)
        log = bool(x) and min(x) > 0 and max(x) >= _LOG_SPAN * min(x)
        return PanelInfo(name, x, None, log, shown)
    choices = sorted(set(values)) if kinds == {int} else sorted(set(values), key=plain_value)
    words = tuple(plain_value(value) for value in choices)
    return PanelInfo(name, tuple(float(choices.index(v)) for v in values), words, False, shown)


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

    kind: str
    space: str
    parameters: tuple[str, ...]
    cost: str
    draws: str
    rows: tuple[TrialRow, ...]
    notes: tuple[str, ...]


def search_words(record: SearchRecord) -> SearchWords:
    """Return the account of a search, honest about what it tried."""
    failed = [trial for trial in record.trials if not trial.valid]
    tried = f"{len(record.trials)} trial" + "s" * (len(record.trials) != 1)
    spent = count(record.draws_spent)
    cost = f"{tried}, {spent} draws per dataset" if record.draws_spent else f"{tried}, computed"
    if failed:
        cost += f"; {len(failed)} gave no valid pair"
    reasons = collections.Counter(trial.note or "no reason given" for trial in failed)
    names = ("pair",) if record.is_portfolio else record.parameters
    return SearchWords(
        kind="portfolio" if record.is_portfolio else "space",
        space=record.space,
        parameters=names,
        cost=cost,
        draws=spent,
        rows=tuple(
            TrialRow(
                rank,
                (_pair_words(trial),)
                if record.is_portfolio
                else tuple(plain_value(trial.parameters.get(name, "")) for name in names),
                number(trial.expected_epsilon),
                count(trial.draws),
                trial.stage,
                trial.note,
            )
            for rank, trial in enumerate(ranking(record, MAX_TRIALS), 1)
        ),
        notes=tuple(f"{times}\u202f× {reason}" for reason, times in reasons.most_common(3)),
    )


def _pair_words(trial: Trial) -> str:
    own = ", ".join(f"{name}={plain_value(value)}" for name, value in trial.parameters.items())
    return f"{trial.arm}: {own}" if own else trial.arm
