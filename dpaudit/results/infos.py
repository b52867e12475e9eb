"""What the plots of an audit show, as plain data: the place for tests and for other libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpaudit.results.estimates import SlackPoint
from dpaudit.results.verdicts import Shown, Verdict
from dpaudit.stats import ERRORS, tradeoff_of_profile

MAX_CATEGORIES = 20
_SMALLEST_DELTA = 1e-12
_LONG_FLOOR = 1e-10  # estimated profiles end a little below 1e-9
_RARE_EVENT = 0.01
_ROOM = 0.03  # beyond a point, of an axis
_SMALL_ERROR = 0.02


# --- curves ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProfileInfo:
    """What :func:`dpaudit.results.charts.profile` shows.

    Parameters
    ----------
    epsilon, claimed, certified : tuple of float
        The claimed and the certified delta over a grid of epsilons.
    estimated_epsilon, estimated : tuple of float
        Delta without any guarantee, over epsilons that may go on where the others end; empty when
        everything was computed exactly.
    standard_error : tuple of float
        Of the estimated deltas; empty where none is known.
    beyond : (tuple of float, tuple of float)
        Epsilons and deltas where an exact curve goes on after its grid; mostly empty.
    violated : tuple of bool
        Where more is certified than the claim allows.
    point : (float, float)
        Epsilon and delta of the claim at which the audit compared.
    certified_point : (float, float) or None
        Certified epsilon and the claimed delta, where the curves end before it; None elsewhere.
    limits : (float, float)
        Where the axis of epsilon begins and ends: around the curves and both points.
    log : bool
        Whether deltas span so much that a log scale is needed.
    floor : float
        Where a log scale draws zeros, and whatever is too small to show.
    certified_label : str
        Name of the certified curve.
    """

    epsilon: tuple[float, ...]
    claimed: tuple[float, ...]
    certified: tuple[float, ...]
    estimated_epsilon: tuple[float, ...]
    estimated: tuple[float, ...]
    standard_error: tuple[float, ...]
    beyond: tuple[tuple[float, ...], tuple[float, ...]]
    violated: tuple[bool, ...]
    point: tuple[float, float]
    certified_point: tuple[float, float] | None
    limits: tuple[float, float]
    log: bool
    floor: float
    certified_label: str


def profile_info(result: Shown) -> ProfileInfo:
    """Return the curves of an audit and the scale on which they can be read."""
    profile, long = result.profile, result.long_profile
    exact = result.failure_prob == 0
    shown = [*profile.claimed_delta, *profile.certified_delta, result.claimed_delta]
    visible = [value for value in shown if value >= _SMALLEST_DELTA]
    least, most = min(visible, default=1.0), max(visible, default=1.0)
    floor = 10.0 ** (math.ceil(math.log10(least)) - 2)
    estimated: tuple[tuple[float, ...], ...] = (profile.epsilon, profile.estimated_delta, ())
    beyond: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    if long is not None:
        estimated = (long.epsilon, long.estimated_delta, long.standard_error)
        end = len(profile.epsilon) - 1
        if exact and len(long.epsilon) > len(profile.epsilon):
            beyond = (long.epsilon[end:], long.estimated_delta[end:])
    far = long is not None and (bool(beyond[0]) or not exact)
    both = zip(profile.certified_delta, profile.claimed_delta, strict=True)
    every = (*profile.epsilon, *(() if exact else estimated[0]), *beyond[0], result.claimed_epsilon)
    drawn = [epsilon for epsilon in every if math.isfinite(epsilon)]
    low, high = min(drawn, default=0.0), max(drawn, default=1.0)
    certified_point = None
    if high < result.certified_epsilon < math.inf:
        certified_point = (result.certified_epsilon, result.claimed_delta)
        high = result.certified_epsilon + _ROOM * (result.certified_epsilon - low)
    return ProfileInfo(
        epsilon=profile.epsilon,
        claimed=profile.claimed_delta,
        certified=profile.certified_delta,
        estimated_epsilon=() if exact else estimated[0],
        estimated=() if exact else estimated[1],
        standard_error=() if exact else estimated[2],
        beyond=beyond,
        violated=tuple(found > claimed * (1 + 1e-9) + 1e-12 for found, claimed in both),
        point=(result.claimed_epsilon, result.claimed_delta),
        certified_point=certified_point,
        limits=(low, high if high > low else low + 1.0),
        log=least < 0.01 * most or far,
        floor=min(floor, _LONG_FLOOR) if far else floor,
        certified_label="computed exactly" if exact else "certified lower bound",
    )


@dataclass(frozen=True)
class TradeoffInfo:
    """What :func:`dpaudit.results.charts.tradeoff` shows.

    Parameters
    ----------
    alpha : tuple of float
        Type I errors, from 0 to 1.
    band, claimed : tuple of float
        Type II errors: the true curve lies nowhere above `band`, and the claim promises that it
        lies nowhere below `claimed`. Perfect privacy is ``1 - alpha``.
    violated : tuple of bool
        Where the band lies below the claimed curve.
    informative : bool
        Whether the band says more than perfect privacy would.
    log : bool
        Whether the claim is decided at type I errors so small, and type II errors so close to 1,
        that only a log scale shows it.
    band_label : str
        Name of the band.
    """

    alpha: tuple[float, ...]
    band: tuple[float, ...]
    claimed: tuple[float, ...]
    violated: tuple[bool, ...]
    informative: bool
    log: bool
    band_label: str


def tradeoff_info(result: Shown) -> TradeoffInfo:
    """Return the trade-off curves of an audit; where nothing is certified, the band is no news."""
    curves, profile = result.curves, result.profile
    if curves is None:
        claimed = tradeoff_of_profile(profile.epsilon, profile.claimed_delta, ERRORS)
        alpha, promised = tuple(ERRORS.tolist()), tuple(claimed.tolist())
        band = tuple((1 - ERRORS).tolist())
    else:
        alpha, band, promised = curves.alpha, curves.certified_beta, curves.claimed_beta
    both = list(zip(band, promised, strict=True))
    violated = tuple(b < c * (1 - 1e-9) - 1e-12 for b, c in both)
    kink = next(a for a, c in zip(alpha, promised, strict=True) if c <= a)
    _, worst = max((c - b, -a) for a, (b, c) in zip(alpha, both, strict=True))
    return TradeoffInfo(
        alpha=alpha,
        band=band,
        claimed=promised,
        violated=violated,
        informative=any(b < 1 - a - 1e-9 for a, b in zip(alpha, band, strict=True)),
        log=min(kink, -worst if any(violated) else 1.0) < _SMALL_ERROR,
        band_label=f"{'certified' if result.failure_prob > 0 else 'computed'} upper band",
    )


@dataclass(frozen=True)
class WealthInfo:
    """What :func:`dpaudit.results.charts.wealth` shows.

    Parameters
    ----------
    draws : tuple of int
        Draws per dataset at each look.
    log_wealth : tuple of float
        Logarithm of the wealth of a bet against the claim.
    refuted_at : float
        Logarithm of the wealth at which the claim falls.
    budget : int
        Draws per dataset that might have been taken.
    stopped : str
        Why no more were.
    refuted : bool
        Whether the wealth came to `refuted_at`.
    """

    draws: tuple[int, ...]
    log_wealth: tuple[float, ...]
    refuted_at: float
    budget: int
    stopped: str
    refuted: bool


def wealth_info(result: Shown) -> WealthInfo:
    """Return how the wealth of a sequential audit grew; ``ValueError`` for any other audit."""
    path = result.sequential
    if path is None:
        raise ValueError(f"{result.id} was not audited sequentially: there is no path to draw")
    return WealthInfo(
        draws=path.draws,
        log_wealth=path.log_wealth,
        refuted_at=path.refuted_at,
        budget=path.budget,
        stopped=path.stopped,
        refuted=max(path.log_wealth, default=0.0) >= path.refuted_at,
    )


# --- slack ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SlackInfo:
    """What :func:`dpaudit.results.charts.slack` shows.

    Parameters
    ----------
    multipliers, certified : tuple of float
        By rising multiplier of the noise; certified epsilon, cut at `limit`.
    refuted : tuple of bool
        Whether the claim falls there.
    claimed : float
        Claimed epsilon.
    limit : float
        Largest epsilon shown.
    refuted_from : float or None
        Largest multiplier at which the claim is refuted.
    """

    multipliers: tuple[float, ...]
    certified: tuple[float, ...]
    refuted: tuple[bool, ...]
    claimed: float
    limit: float
    refuted_from: float | None


def slack_info(result: Shown) -> SlackInfo:
    """Return the slack frontier of an audit; ``ValueError`` for one that asked for none.

    The audited mechanism itself is the point at multiplier 1.
    """
    if result.slack is None:
        raise ValueError(f"{result.id} was audited without slack: there is no frontier to draw")
    itself = SlackPoint(1.0, result.certified_epsilon, result.verdict is Verdict.REFUTED)
    others = [point for point in result.slack.points if point.multiplier != 1.0]
    points = sorted([*others, itself], key=lambda point: point.multiplier)
    limit = max(3.0 * result.claimed_epsilon, 1e-3)
    return SlackInfo(
        tuple(point.multiplier for point in points),
        tuple(min(point.certified_epsilon, limit) for point in points),
        tuple(point.refuted for point in points),
        result.claimed_epsilon,
        limit,
        result.slack.refuted_from,
    )


# --- the witness -------------------------------------------------------------------------------


@dataclass(frozen=True)
class HistogramInfo:
    """What :func:`dpaudit.results.charts.histogram` shows.

    Parameters
    ----------
    xlabel, ylabel : str
        What the outputs are, and what their share is a share of.
    edges : tuple of float or None
        k + 1 edges of k numeric bins; None when all bins are categories.
    bins : tuple of str
        Words of the bins; one more than k when a bin stands beside the numeric axis, which is
        mostly "no answer".
    left, right : tuple of float
        Share of the draws of each side in each bin.
    inside : tuple of bool
        Whether the event fires in the bin; of a guess, whether left is guessed there.
    inside_right : tuple of bool
        Of a guess, whether right is guessed in the bin; empty for an event.
    log : bool
        Whether the event, or either guess, is so rare that only a log scale shows it.
    event_label : str
        What the shade stands for.
    right_label : str
        What the hatching stands for, which is where right is guessed; empty for an event.
    """

    xlabel: str
    ylabel: str
    edges: tuple[float, ...] | None
    bins: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    inside: tuple[bool, ...]
    inside_right: tuple[bool, ...]
    log: bool
    event_label: str
    right_label: str


def histogram_info(result: Shown) -> HistogramInfo:
    """Return where the outputs of both sides fell, as shares of the draws."""
    histogram, sampled = result.histogram, result.failure_prob > 0
    centres = sampled and result.long_profile is not None
    left, right = _shares(histogram.left), _shares(histogram.right)
    guessed = len(histogram.inside_right) > 0
    of_right = histogram.inside_right if guessed else (False,) * len(left)
    rows = list(map(_Row, histogram.bins, left, right, histogram.inside, of_right))
    if histogram.edges is None and len(rows) > MAX_CATEGORIES:
        rows = _commonest(rows, guessed=guessed)
    regions = [[row for row in rows if row.inside]]
    regions += [[row for row in rows if row.inside_right]] * guessed
    rare = any(
        max(sum(row.left for row in region), sum(row.right for row in region)) < _RARE_EVENT
        for region in regions
    )
    labels = ["left is guessed", "right is guessed"] if guessed else ["event fires", ""]
    if centres:
        labels[0] = "centre in the event" if regions[0] else "event: beyond the centres"
    else:
        for at, region in enumerate(regions):
            if not region:
                labels[at] = f"{labels[at] if guessed else 'event'}: less than a bin"
    return HistogramInfo(
        xlabel=histogram.label if sampled else histogram.label.partition(" (expected")[0],
        ylabel=("share of centres" if centres else "share of draws") if sampled else "probability",
        edges=histogram.edges,
        bins=tuple(row.words for row in rows),
        left=tuple(row.left for row in rows),
        right=tuple(row.right for row in rows),
        inside=tuple(row.inside for row in rows),
        inside_right=tuple(row.inside_right for row in rows) if guessed else (),
        log=rare and histogram.edges is not None and not centres,
        event_label=labels[0],
        right_label=labels[1],
    )


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


class _Row(NamedTuple):
    words: str
    left: float
    right: float
    inside: bool
    inside_right: bool


def _commonest(rows: list[_Row], *, guessed: bool) -> list[_Row]:
    """Keep the commonest categories in their order; the others become one for each shade."""
    where = {(True, False): " in the event", (False, False): ""}
    if guessed:
        where = {
            (True, False): " where left is guessed",
            (False, True): " where right is guessed",
            (False, False): "",
        }
    few = MAX_CATEGORIES - len(where)
    order = sorted(range(len(rows)), key=lambda i: -max(rows[i].left, rows[i].right))
    kept = [rows[i] for i in sorted(order[:few])]
    for shades, words in where.items():
        rest = [rows[i] for i in order[few:] if (rows[i].inside, rows[i].inside_right) == shades]
        if rest:
            left, right = sum(row.left for row in rest), sum(row.right for row in rest)
            kept.append(_Row(f"{len(rest)} others{words}", left, right, *shades))
    return kept
