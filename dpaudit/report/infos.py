"""What the plots of an audit show, as plain data: the place for tests and for other libraries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpaudit.results import AuditResult, Verdict

MAX_CATEGORIES = 20
_SMALLEST_DELTA = 1e-12
_RARE_EVENT = 0.01


@dataclass(frozen=True)
class ProfileInfo:
    """What :func:`plot_profile` shows.

    Parameters
    ----------
    epsilon, claimed, certified : tuple of float
        The claimed and the certified delta over a grid of epsilons.
    estimated : tuple of float or None
        Delta without any guarantee; None when everything was computed exactly.
    violated : tuple of bool
        Where more is certified than the claim allows.
    point : (float, float)
        Epsilon and delta of the claim at which the audit compared.
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
    estimated: tuple[float, ...] | None
    violated: tuple[bool, ...]
    point: tuple[float, float]
    log: bool
    floor: float
    certified_label: str


def profile_info(result: AuditResult) -> ProfileInfo:
    """Return the curves of an audit and the scale on which they can be read."""
    profile = result.profile
    exact = result.failure_prob == 0
    shown = [*profile.claimed_delta, *profile.certified_delta, result.claimed_delta]
    visible = [value for value in shown if value >= _SMALLEST_DELTA]
    least, most = min(visible, default=1.0), max(visible, default=1.0)
    both = zip(profile.certified_delta, profile.claimed_delta, strict=True)
    return ProfileInfo(
        epsilon=profile.epsilon,
        claimed=profile.claimed_delta,
        certified=profile.certified_delta,
        estimated=None if exact else profile.estimated_delta,
        violated=tuple(found > claimed * (1 + 1e-9) + 1e-12 for found, claimed in both),
        point=(result.claimed_epsilon, result.claimed_delta),
        log=least < 0.01 * most,
        floor=10.0 ** (math.ceil(math.log10(least)) - 2),
        certified_label="computed exactly" if exact else "certified lower bound",
    )


@dataclass(frozen=True)
class HistogramInfo:
    """What :func:`plot_histogram` shows.

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
        Whether the event fires in the bin.
    log : bool
        Whether the event is so rare that only a log scale shows it.
    """

    xlabel: str
    ylabel: str
    edges: tuple[float, ...] | None
    bins: tuple[str, ...]
    left: tuple[float, ...]
    right: tuple[float, ...]
    inside: tuple[bool, ...]
    log: bool


def histogram_info(result: AuditResult) -> HistogramInfo:
    """Return where the outputs of both sides fell, as shares of the draws."""
    histogram, sampled = result.histogram, result.witness.counts is not None
    left, right = _shares(histogram.left), _shares(histogram.right)
    rows: list[_Row] = list(zip(histogram.bins, left, right, histogram.inside, strict=True))
    if histogram.edges is None and len(rows) > MAX_CATEGORIES:
        rows = _commonest(rows)
    event = [row for row in rows if row[3]]
    rare = max(sum(row[1] for row in event), sum(row[2] for row in event)) < _RARE_EVENT
    return HistogramInfo(
        xlabel=histogram.label if sampled else histogram.label.partition(" (expected")[0],
        ylabel="share of draws" if sampled else "probability",
        edges=histogram.edges,
        bins=tuple(row[0] for row in rows),
        left=tuple(row[1] for row in rows),
        right=tuple(row[2] for row in rows),
        inside=tuple(row[3] for row in rows),
        log=rare and histogram.edges is not None,
    )


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]


_Row = tuple[str, float, float, bool]


def _commonest(rows: list[_Row]) -> list[_Row]:
    """Keep the commonest categories in their order; the rest become one inside, one outside."""
    order = sorted(range(len(rows)), key=lambda i: -max(rows[i][1], rows[i][2]))
    kept = [rows[i] for i in sorted(order[: MAX_CATEGORIES - 2])]
    for fires, where in ((True, " in the event"), (False, "")):
        rest = [rows[i] for i in order[MAX_CATEGORIES - 2 :] if rows[i][3] is fires]
        if rest:
            left, right = sum(row[1] for row in rest), sum(row[2] for row in rest)
            kept.append((f"{len(rest)} others{where}", left, right, fires))
    return kept


@dataclass(frozen=True)
class PowerBar:
    """One bar of :func:`plot_power`.

    Parameters
    ----------
    label, words : str
        Whose bar it is, and its number in words.
    certified_epsilon : float or None
        May be ``inf``; None when there is no twin.
    length : float
        Where the bar ends on the axis; finite.
    above : bool
        Whether the claim was refuted.
    """

    label: str
    words: str
    certified_epsilon: float | None
    length: float
    above: bool


@dataclass(frozen=True)
class PowerInfo:
    """What :func:`plot_power` shows: bars, the claimed epsilon, and the end of the axis."""

    bars: tuple[PowerBar, ...]
    claimed_epsilon: float
    limit: float


def power_info(result: AuditResult) -> PowerInfo:
    """Return the certified epsilon of the mechanism and of its twin beside the claim."""
    claimed, twin = result.claimed_epsilon, result.twin
    found = [(result.certified_epsilon, result.verdict)]
    if twin is not None:
        found.append((twin.certified_epsilon, twin.verdict))
    limit = 1.15 * max([claimed, *(value for value, _ in found if math.isfinite(value))])
    if any(value == math.inf for value, _ in found):
        limit = max(limit, 2 * claimed)
    limit = limit or 1.0
    bars = [
        PowerBar(label, f"≥ {number(value)}", value, min(value, limit), verdict is Verdict.REFUTED)
        for label, (value, verdict) in zip(("mechanism", "broken twin"), found, strict=False)
    ]
    if twin is None:
        bars.append(PowerBar("broken twin", "none given", None, 0.0, False))
    return PowerInfo(tuple(bars), claimed, limit)


def number(value: float) -> str:
    """Return a number with four digits, as people write it."""
    if value == math.inf:
        return "∞"
    if 0 < abs(value) < 1e-3:
        mantissa, _, exponent = f"{value:.3e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:.4g}".replace("e+0", "e")
