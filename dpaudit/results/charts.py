"""Descriptions of the charts of a result, which two back ends can draw.

Each function describes one chart of a result as plain data: :func:`profile`, :func:`histogram`,
:func:`tradeoff`, :func:`wealth`, :func:`noise_margin`, :func:`landscape` and :func:`guesses`.

:mod:`dpaudit.results.svg` draws a chart for pages. :mod:`dpaudit.results.figures` draws a chart
with matplotlib.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.results.datasets import datasets, differing_values
from dpaudit.results.estimates import MarginPoint
from dpaudit.results.words import count, least, number, plain_value, power_of_ten, short
from dpaudit.search import ranking
from dpaudit.stats import TYPE_I_ERRORS, Curves, tradeoff_of_profile

if TYPE_CHECKING:
    from dpaudit.results import AuditResult

COLOURS = MappingProxyType(
    {
        "ink": "#1c2733",
        "muted": "#5c6979",
        "rule": "#c3ccd6",
        "event": "#e4e9ef",
        "claimed": "#1c2734",
        "certified": "#00757d",
        "estimated": "#8a6d9b",
        "violation": "#c4302b",
        "mutant": "#8b99a9",
        "left": "#0072b2",
        "right": "#de8f05",
    }
)
"""Roles and their colours; colour-blind readers can distinguish left from right."""

COLUMNS = 2
"""Largest number of panels side by side."""

MAX_CATEGORIES = 20
MAX_PANELS = 4
CERTIFIED_POINT = "certified epsilon, at the claimed delta"
"""Start of the label of the certified epsilon if it lies beyond the curves."""

_SMALLEST_DELTA, _LONG_FLOOR = 1e-12, 1e-10  # estimated profiles end a little below 1e-9
_SMALLEST_POWER = 1e-9  # least power of tests drawn on a log scale; it lies outside the chart
_RARE_EVENT = 0.01
_SMALL_ERROR = 0.02
_LOG_SPAN = 100.0  # If the ratio of two values is larger than this, a log scale is used.
_VALUES, _PLACES = 64, 16  # Largest numbers of values and of ticks for one user.
_FEW = 6  # Up to this number of values, whole numbers are shown as categories.
_MOST_CLAIMS = 3.0  # multiple of the claim at which the axis of a profile ends, after its curves
_DASH, _DOTS = (5.0, 3.0), (1.5, 3.0)
_SHADE = 0.25
_RATIOS = (
    "gaussian_dp",
    "renyi_dp",
    "zcdp",
    "approx_zcdp",
    "accounted",
    "metric_dp",
    "longitudinal_dp",
)
_SIDES = ("left", "right")
_STAGES = {"design": "mutant", "local": "estimated", "semifinal": "right", "final": "certified"}

Kind = Literal["line", "dots", "rings", "band", "bars"]
_SHADES = (("event", 1.0), ("muted", 0.3))  # shade of a guess "left", shade of a guess "right"
Point = tuple[float, float]
_Floats = NDArray[np.float64]
_Flags = NDArray[np.bool_]


# --- the description ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """One axis of a panel.

    Parameters
    ----------
    low, high : float
        Values at the two ends of the axis, which are left and right, or bottom and top. `low` may
        exceed `high`.
    label : str
        Name of the axis.
    ticks : sequence of (float, str), optional
        Values of the ticks, with their words. By default, there are ticks at round numbers.
    log : bool
        Whether the scale is logarithmic.
    bare : bool
        Whether the ticks have words but no marks, as for categories.
    """

    low: float
    high: float
    label: str = ""
    ticks: Sequence[tuple[float, str]] | None = None
    log: bool = False
    bare: bool = False

    def place(self, value: float) -> float:
        """Return the relative position of a value, from 0 to 1.

        A value beyond an end gets the position of that end.
        """
        low, high = self.low, self.high
        if self.log:
            low, high = math.log(low), math.log(high)
            value = math.log(value) if value > 0 else min(low, high)
        if value == high or low == high:
            return 1.0
        return min(max((value - low) / (high - low), 0.0), 1.0)

    def marks(self, most: int = 5) -> list[tuple[float, str]]:
        """Return the ticks of the axis, or at most `most` round numbers with their words."""
        if self.ticks is not None:
            return list(self.ticks)
        values = round_numbers(self.low, self.high, most, log=self.log)
        if self.log and all(math.log10(value).is_integer() for value in values):
            return [(value, power_of_ten(value)) for value in values]
        return [(value, f"{value:.6g}".replace("-", "−")) for value in values]


@dataclass(frozen=True)
class Series:
    """Marks of one kind. Surfaces lie below lines and dots.

    Parameters
    ----------
    kind : {"line", "dots", "rings", "band", "bars"}
        A band fills the space between two curves. Bars fill rectangles.
    role : str
        Key of the colour of the marks in :data:`COLOURS`.
    points : sequence of (float, float)
        Points of the series. For bars, one corner of each; for a band, one of its two curves.
    label : str
        Text in the legend. A series with an empty label is not in the legend. A series may exist
        only to appear in the legend.
    ends : sequence of (float, float)
        For bars, the opposite corners; for a band, its other curve.
    size : float
        Width of a line, or radius of a dot.
    dash : tuple of float
        Lengths of dashes and gaps. Empty for a solid line.
    opacity : float
        Opacity of a filled area.
    """

    kind: Kind
    role: str
    points: Sequence[Point] = ()
    label: str = ""
    ends: Sequence[Point] = ()
    size: float = 2.2
    dash: tuple[float, ...] = ()
    opacity: float = 1.0

    @property
    def is_surface(self) -> bool:
        """Whether the series fills areas."""
        return self.kind in ("band", "bars")


@dataclass(frozen=True)
class Panel:
    """Two axes and the series between them, in drawing order."""

    x: Axis
    y: Axis
    series: Sequence[Series]


@dataclass(frozen=True)
class Chart:
    """The description of a chart.

    Parameters
    ----------
    title : str
        Name of the chart, also for screen readers.
    panels : sequence of Panel
        One panel, or several panels in rows of two. All panels share one legend.
    caption : str
        One or two sentences that explain the chart.
    width, height : float
        Size in pixels, including legend and labels. If there are several rows of panels, each row
        has a fixed height.
    """

    title: str
    panels: Sequence[Panel]
    caption: str = ""
    width: float = 400.0
    height: float = 280.0

    @property
    def legend(self) -> list[Series]:
        """The first series of each label, in order."""
        named = [one for panel in self.panels for one in panel.series if one.label]
        return list({one.label: one for one in reversed(named)}.values())[::-1]


def round_numbers(low: float, high: float, most: int = 5, *, log: bool = False) -> list[float]:
    """Return at most `most` round numbers between two limits, in either order.

    Examples
    --------
    >>> round_numbers(0.0, 1.0), round_numbers(-4.2, 5.7)
    ([0.0, 0.25, 0.5, 0.75, 1.0], [-4.0, -2.0, 0.0, 2.0, 4.0])
    >>> round_numbers(0.3, 2000.0, log=True), round_numbers(90.0, 400.0, log=True)
    ([1.0, 10.0, 100.0, 1000.0], [100.0, 200.0])
    """
    low, high = min(low, high), max(low, high)
    if not high > low or not math.isfinite(high - low):
        return [low]
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        near = low * (1 - 1e-9), high * (1 + 1e-9)
        for factors in ((1,), (1, 3), (1, 2, 5)):
            values = [float(f"{f}e{k}") for k in decades for f in factors]
            values = [value for value in values if near[0] <= value <= near[1]]
            if len(values) >= 3:
                break
        thinned = values[:: -(math.ceil(len(values) / most) or 1)]
        return thinned[::-1] or [low, high]
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    for factor in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0, 25.0, 50.0):
        step = factor * unit
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            digits = 12 - math.floor(math.log10(step))
            return [round(index * step, digits) for index in range(first, last + 1)]
    return [low, high]


def between(
    low: Sequence[Point], high: Sequence[Point], *, log_x: bool = False, log_y: bool = False
) -> tuple[list[Point], list[Point]]:
    """Return `low` and the maximum of `low` and `high`, with added points at crossings."""
    (grid, first), (_, second) = np.transpose(low), np.transpose(high)
    grid = np.log(grid) if log_x else grid
    first, second = (np.log(curve) if log_y else curve for curve in (first, second))
    gap = second - first
    flips = np.flatnonzero(gap[:-1] * gap[1:] < 0)
    crossings = grid[flips] + np.diff(grid)[flips] * gap[flips] / (gap[flips] - gap[flips + 1])
    fine = np.union1d(grid, crossings)
    first, second = np.interp(fine, grid, first), np.interp(fine, grid, second)
    curves = np.array([first, np.maximum(first, second)])
    x, curves = np.exp(fine) if log_x else fine, np.exp(curves) if log_y else curves
    return _joined(x, curves[0]), _joined(x, curves[1])


def level(role: str, axis: Axis, y: float, label: str) -> Series:
    """Return a dashed line across a panel at one value of y."""
    ends = [(axis.low, y), (axis.high, y)]
    return Series("line", role, ends, label, size=1.5, dash=_DASH)


def _joined(x: ArrayLike, y: ArrayLike) -> list[Point]:
    return [(a, b) for a, b in np.column_stack([x, y]).tolist()]


def charts_of(result: AuditResult) -> list[Chart]:
    """Return the charts that are informative for this audit."""
    optional = [
        (tradeoff, _is_informative(result.diagnostics.curves)),
        (wealth, result.diagnostics.sequential),
        (noise_margin, result.diagnostics.noise_margin),
        (landscape, result.diagnostics.search),
    ]
    return [
        *pair_charts(result),
        profile(result),
        *([] if result.smallest is None else [histogram(result)]),
        *(describe(result) for describe, part in optional if part),
    ]


def pair_charts(result: AuditResult) -> list[Chart]:
    """Return what the differing user holds, if it can be drawn, and where the outputs fall.

    Both charts show the smallest pair, or the audited pair if there is no smallest pair.
    """
    values = differing_user(result)
    outputs = histogram(result) if result.smallest is None else smallest_histogram(result)
    return [outputs] if values is None else [values, outputs]


# --- curves -------------------------------------------------------------------------------------


def profile(result: AuditResult) -> Chart:
    """Describe claimed, certified and estimated delta as functions of epsilon."""
    own, long, exact = result.profile, result.diagnostics.long_profile, result.failure_prob == 0
    deltas = (*own.claimed_delta, *own.certified_delta, result.claimed_delta)
    visible = [value for value in deltas if value >= _SMALLEST_DELTA] or [1.0]
    certified, certified_delta = own.epsilon, own.certified_delta
    error: tuple[float, ...] = ()
    epsilon, delta = own.epsilon, own.estimated_delta
    far = long is not None and (not exact or len(long.epsilon) > len(epsilon))
    if long is not None:
        epsilon, delta, error = long.epsilon, long.estimated_delta, long.standard_error
    if exact:
        if far:  # the exact curve continues after the grid of the audit
            certified, certified_delta = epsilon, (*certified_delta, *delta[len(certified) :])
        epsilon, delta, error = (), (), ()
    log = min(visible) < 0.01 * max(visible) or (
        far and max(*deltas, *certified_delta, *delta) > 0.0
    )
    floor = 10.0 ** (math.ceil(math.log10(min(visible))) - 2)
    floor = min(floor, _LONG_FLOOR) if far else floor

    def curve(x: ArrayLike, y: ArrayLike) -> list[Point]:
        return _joined(x, np.maximum(y, floor) if log else y)

    finite = [e for e in (*certified, *epsilon, result.claimed_epsilon) if math.isfinite(e)]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    beyond = high < result.certified_epsilon < math.inf
    words = CERTIFIED_POINT
    if beyond:
        end = max(high, _MOST_CLAIMS * result.claimed_epsilon)
        high = min(result.certified_epsilon + 0.03 * (result.certified_epsilon - low), end)
    if high < result.certified_epsilon < math.inf:
        words += f": {least(result.certified_epsilon)}, right of the axis"
    name = "computed exactly" if exact else "certified lower bound"
    claimed, lower = curve(own.epsilon, own.claimed_delta), curve(own.epsilon, own.certified_delta)
    series = [
        Series("line", "claimed", claimed, "claimed"),
        Series("line", "certified", curve(certified, certified_delta), name),
    ]
    if error:
        around = [curve(epsilon, np.add(delta, k * np.array(error))) for k in (-2, 2)]
        series.append(Series("band", "estimated", around[0], ends=around[1], opacity=_SHADE))
    if delta:
        estimated, label = curve(epsilon, delta), "estimated, no guarantee"
        series.append(Series("line", "estimated", estimated, label, size=1.4, dash=_DASH))
    most = np.array(own.claimed_delta) * (1 + 1e-9) + 1e-12
    if (np.array(own.certified_delta) > most).any():
        below, above = between(claimed, lower, log_y=log)
        label = "certified above claim"
        series.append(Series("band", "violation", below, label, above, opacity=_SHADE))
    at = curve([result.claimed_epsilon], [result.claimed_delta])
    series.append(Series("rings", "claimed", at, "point of comparison", size=4.5))
    if beyond:
        at = curve([min(result.certified_epsilon, high)], [result.claimed_delta])
        series.append(Series("dots", "certified", at, words, size=4.0))
    x = Axis(low, high if high > low else low + 1.0, "epsilon")
    shown = [*own.claimed_delta, *certified_delta, *delta, result.claimed_delta]
    y = Axis(0.0, 1.05 * max(shown) or 1.0, "delta")
    if log:
        zero = "0" if all(value == 0 or value > floor for value in shown) else "≈ 0"
        top = 10.0 ** math.ceil(math.log10(max(shown)))
        ticks = [(floor, zero), *Axis(10 * floor, top, log=True).marks()]
        y = Axis(0.6 * floor, 1.6 * top, "delta", ticks, log=True)
    caption = (
        "Delta that the mechanism needs at each epsilon, and what the claim allows."
        if exact
        else "The mechanism's true curve lies nowhere below the certified one, except with "
        f"probability at most {number(result.failure_prob)}. Where the certified curve rises "
        "above the claimed one, the claim is violated."
    )
    if error:
        caption += " The band of the estimate is two standard errors and guarantees nothing."
    return Chart("Privacy profile", [Panel(x, y, series)], caption)


def _is_informative(curves: Curves | None) -> bool:
    """Return whether the certified trade-off band says anything about the mechanism."""
    return curves is not None and any(
        beta < 1 - alpha - 1e-9
        for alpha, beta in zip(curves.alpha, curves.certified_beta, strict=True)
    )


def tradeoff(result: AuditResult) -> Chart:
    """Describe the certified band of the trade-off curve, and the claimed curve.

    Both curves show the type II error against the type I error of tests that distinguish the two
    inputs. The curve of the mechanism lies on or below the band. The claim is violated where the
    claimed curve lies above the band. If the decision depends on small type I errors, both axes are
    logarithmic and stretch the corner (0, 1).
    """
    curves, own = result.diagnostics.curves, result.profile
    if curves is None:
        claimed = tradeoff_of_profile(own.epsilon, own.claimed_delta, TYPE_I_ERRORS)
        alpha, beta = TYPE_I_ERRORS, 1 - TYPE_I_ERRORS
    else:
        stored = curves.alpha, curves.certified_beta, curves.claimed_beta
        alpha, beta, claimed = map(np.array, stored)
    violated = bool((beta < claimed * (1 - 1e-9) - 1e-12).any())
    kink = alpha[np.argmax(claimed <= alpha)]
    worst = alpha[np.argmax(claimed - beta)] if violated else 1.0
    log = bool(min(kink, worst) < _SMALL_ERROR)
    names = "type I error", "type II error"
    x, y = Axis(0.0, 1.0, names[0]), Axis(0.0, 1.0, names[1])
    drawn = [1 - alpha, claimed, beta]
    if log:  # The power of a test is drawn, and the tick shows its type II error.
        x = Axis(float(alpha[1]), 1.0, names[0], log=True)
        y = Axis(1.0, x.low, names[1], [(tick, _error(tick)) for tick, _ in x.marks()], log=True)
        drawn = [np.maximum(1 - errors[1:], _SMALLEST_POWER) for errors in drawn]
    perfect, promised, band = (_joined(alpha[int(log) :], errors) for errors in drawn)
    name = f"{'certified' if result.failure_prob > 0 else 'computed'} upper band"
    series = [
        Series("line", "muted", perfect, "perfect privacy", size=1.2, dash=_DOTS),
        Series("band", "event", band, "excluded", perfect),
        Series("line", "claimed", promised, "claimed"),
        Series("line", "certified", band, name),
    ]
    if not _is_informative(curves):
        series = series[::2]
    if violated:
        below, above = between(
            *((promised, band) if log else (band, promised)), log_x=log, log_y=log
        )
        series.append(Series("band", "violation", below, "band below claim", above, opacity=_SHADE))
    unless = f", except with probability at most {number(result.failure_prob)}"
    caption = (
        "Errors of the best test between left and right. The mechanism's true curve lies on or "
        f"below the band{unless * (result.failure_prob > 0)}; the claim promises a curve on or "
        f"above its own.{' Log scales stretch the corner of small type I errors.' * log}"
    )
    return Chart("Trade-off curve", [Panel(x, y, series)], caption)


def _error(power: float) -> str:
    """Return a type II error.

    The error is near 1 if the power of the test is small.
    """
    return number(1 - power) if power > 0.009 else f"1 − {power_of_ten(power)}"


# --- the witness --------------------------------------------------------------------------------


def histogram(result: AuditResult) -> Chart:
    """Describe the distribution of the outputs of both sides, with the event shaded.

    The heights are shares of the draws. For a guess, the region of the guess "right" is shaded
    darker than the region of the guess "left". Rare categories are summed.
    """
    own, sampled = result.diagnostics.histogram, result.failure_prob > 0
    centres, is_guess = (
        sampled and result.diagnostics.long_profile is not None,
        bool(own.inside_right),
    )
    counts = np.array([own.left, own.right], float)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    shades, bins = np.array([own.inside, own.inside_right][: 1 + is_guess], bool), list(own.bins)
    if own.edges is None and len(bins) > MAX_CATEGORIES:
        bins, shares, shades = _commonest(bins, shares, shades)
    labels = ["left is guessed", "right is guessed"] if is_guess else ["event fires"]
    for at, shade in enumerate(shades):
        if not shade.any():
            labels[at] = f"{labels[at] if is_guess else 'event'}: less than a bin"
    if centres:
        labels[0] = "centre in the event" if shades[0].any() else "event: beyond the centres"
    unit = ("share of centres" if centres else "share of draws") if sampled else "probability"
    label = own.label if sampled else own.label.partition(" (expected")[0]
    sides = [Series("bars", side, (), f"{side} dataset", opacity=0.75) for side in _SIDES]
    keys = [
        Series("bars", role, (), words, opacity=opacity)
        for (role, opacity), words in zip(_SHADES, labels, strict=False)
    ]
    if own.edges is None:
        panel = _categories(bins, shares, shades, f"{unit}, by {short(label, 40)}")
    else:
        seen, rare = shares[shares > 0], [shares[:, s].sum(axis=1).max() for s in shades]
        low, high = (float(seen.min()), float(seen.max())) if len(seen) else (1.0, 1.0)
        y = Axis(0.0, 1.05 * high, unit)
        if min(rare) < _RARE_EVENT and not centres:
            y = Axis(0.6 * low, 1.3 * high, unit, log=True)
        panel = _bins(np.array(own.edges), bins, shares, shades, short(label, 60), y)
    panel = Panel(panel.x, panel.y, [*sides, *keys, *panel.series])
    height = 280.0 if own.edges else max(280.0, 90.0 + 23.0 * len(bins))
    caption = _histogram_caption(result, centres=centres)
    return Chart("Where the outputs fall", [panel], caption, height=height)


def smallest_histogram(result: AuditResult) -> Chart:
    """Describe the outputs on the smallest pair; raise ``ValueError`` if there is no such pair."""
    smallest = result.smallest
    if smallest is None:
        raise ValueError(f"{result.id} must have a smallest pair")
    diagnostics = replace(result.diagnostics, histogram=smallest.histogram, long_profile=None)
    shown = histogram(replace(result, diagnostics=diagnostics, witness=smallest.witness))
    return replace(shown, title="Outputs on the smallest pair")


def differing_user(result: AuditResult) -> Chart | None:
    """Describe the values of the differing user in the smallest pair, or else in the audited pair.

    None if the datasets are not stored, or if the user does not hold a few numbers.
    """
    smallest = result.smallest
    pair = result.pair if smallest is None else smallest.pair
    if pair is None:
        return None
    sides = differing_values(pair)
    held = [side for side in sides if side is not None]
    if not 0 < max((side.size for side in held), default=0) <= _VALUES:
        return None
    known = np.concatenate([side[np.isfinite(side)] for side in held])
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    room = 0.15 * (high - low) or 1.0
    x = Axis(-0.5, max(side.size for side in held) - 0.5, "place of the value")
    places = range(max(side.size for side in held))
    if len(places) <= _PLACES:
        x = replace(x, ticks=[(float(at), str(at)) for at in places])
    marks: tuple[tuple[str, Kind, float], ...] = (("left", "dots", 4.0), ("right", "rings", 7.0))
    series = [
        Series(kind, name, _joined(np.flatnonzero(seen), side[seen]), f"{name} dataset", size=size)
        for (name, kind, size), side in zip(marks, sides, strict=True)
        if side is not None
        for seen in [np.isfinite(side)]
    ]
    absent = [name for name, side in zip(_SIDES, sides, strict=True) if side is None]
    title, caption = "The user who differs", datasets(pair).others
    if smallest is not None:
        title += " in the smallest pair"
        caption = f"{smallest.words[:1].upper()}{smallest.words[1:]}."
    if absent:
        caption += f" The user is absent on the {absent[0]}."
    panel = Panel(x, Axis(low - room, high + room, "value"), series)
    return Chart(title, [panel], caption, height=200.0)


def _commonest(
    bins: list[str], shares: _Floats, shades: _Flags
) -> tuple[list[str], _Floats, _Flags]:
    """Keep the most common categories in their order; sum the other categories for each shade."""
    kinds: dict[tuple[bool, ...], str] = {(True,): " in the event", (False,): ""}
    if len(shades) > 1:
        kinds = {(True, False): " where left is guessed", (False, True): " where right is guessed"}
        kinds[False, False] = ""
    order = np.argsort(-shares.max(axis=0), kind="stable")
    kept, rest = np.split(order, [MAX_CATEGORIES - len(kinds)])
    groups = [(bins[i], np.array([i])) for i in np.sort(kept)]
    for kind, words in kinds.items():
        others = rest[np.equal(shades[:, rest].T, kind).all(axis=1)]
        if len(others):
            groups.append((f"{len(others)} others{words}", others))
    summed = np.stack([shares[:, group].sum(axis=1) for _, group in groups], axis=1)
    return [name for name, _ in groups], summed, shades[:, [group[0] for _, group in groups]]


def _bins(
    edges: _Floats, bins: list[str], shares: _Floats, shades: _Flags, label: str, y: Axis
) -> Panel:
    """Return outlines of both sides over numeric bins, with other bins at the right end."""
    # The outermost bins contain all outputs beyond them. An infinite edge is drawn at the end of
    # its bin.
    finite = edges[np.isfinite(edges)].tolist() or [0.0, 1.0]
    low, high = min(finite), max(finite)
    high = high if high > low else low + 1.0
    edges, k, width = np.clip(edges, low, high), len(edges) - 1, 0.05 * (high - low)
    x, start = Axis(low, high, label), high + 2 * width  # x of the bars next to the axis
    if beside := len(bins) > k:
        ticks = [tick for tick in x.marks() if tick[0] < high - 2 * width]
        x = Axis(low, start + 3 * width, label, [*ticks, (start + width, short(bins[k], 16))])
    series = []
    for (role, opacity), shade in zip(_SHADES, shades, strict=False):
        spans = [(edges[first], edges[last]) for first, last in _runs(shade[:k])]
        spans += [(start - width, start + 3 * width)] * bool(beside and shade[k])
        series.append(_boxes(role, [(a, y.low, b, y.high) for a, b in spans], opacity))
    for side, values in zip(_SIDES, shares, strict=True):
        corners, floor = np.repeat(edges, 2)[1:-1], np.full(2 * k, y.low)
        outline = _joined(corners, np.repeat(values[:k], 2))
        series.append(Series("band", side, _joined(corners, floor), "", outline, opacity=0.35))
        series.append(Series("line", side, outline, size=1.6))
        if beside:
            series.append(_boxes(side, [(start, y.low, start + width, values[k])], 0.75))
            start += width
    return Panel(x, y, series)


def _categories(bins: list[str], shares: _Floats, shades: _Flags, label: str) -> Panel:
    """Return two bars for each category, one bar below the other."""
    x = Axis(0.0, 1.05 * (float(shares.max(initial=0.0)) or 1.0), label)
    names = [(float(place), short(name, 24)) for place, name in enumerate(bins)]
    series = []
    for (role, opacity), shade in zip(_SHADES, shades, strict=False):
        spans = [(0.0, first - 0.5, x.high, last - 0.5) for first, last in _runs(shade)]
        series.append(_boxes(role, spans, opacity))
    for shift, side, values in zip((-0.38, 0.0), _SIDES, shares, strict=True):
        bars = [(0.0, at + shift, v, at + shift + 0.38) for at, v in enumerate(values) if v > 0]
        series.append(_boxes(side, bars, 0.75))
    return Panel(x, Axis(len(bins) - 0.5, -0.5, "", names, bare=True), series)


def _boxes(role: str, boxes: Sequence[Sequence[float]], opacity: float) -> Series:
    """Return rectangles from rows (x, y, x2, y2)."""
    corners = np.array(boxes, float).reshape(-1, 4).T
    return Series("bars", role, _joined(*corners[:2]), "", _joined(*corners[2:]), opacity=opacity)


def _runs(where: _Flags) -> list[tuple[int, int]]:
    """Return the start of each run of true values, and the index after its end."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], where, [0]])))
    return [(first, last) for first, last in ends.reshape(-1, 2).tolist()]


def _histogram_caption(result: AuditResult, *, centres: bool) -> str:
    words = "The event behind the certified numbers is shaded."
    if centres:
        words = (
            "Centres before the noise is added. The noise also carries outputs into the event from "
            "other centres. The probability of the event is computed from each centre."
        )
    elif result.witness.right is not None:
        darker = ", the region of right darker" * bool(result.diagnostics.histogram.inside_right)
        words = f"The region where left is guessed is shaded{darker}."
    beyond = " The outermost bins hold all outputs beyond them."
    return words + beyond * (result.diagnostics.histogram.edges is not None)


# --- sequential audits, noise margins, one run --------------------------------------------------


def wealth(result: AuditResult) -> Chart:
    """Describe the wealth of a sequential audit; raise ``ValueError`` for other audits."""
    path = result.diagnostics.sequential
    if path is None:
        raise ValueError(f"{result.id} must be the result of a sequential audit")
    refuted = max(path.log_wealth, default=0.0) >= path.refuted_at
    colour = "violation" if refuted else "certified"
    draws, grown = [*path.draws, path.budget], [*path.log_wealth, 0.0]
    low, high = min(grown), max(*grown, path.refuted_at)
    ends = float(max(min(draws), 1)), 1.15 * max(draws)
    ticks = [(value, count(round(value))) for value in round_numbers(*ends, log=True)]
    x = Axis(*ends, "draws per dataset", ticks, log=True)
    y = Axis(low - 0.06 * (high - low), high + 0.08 * (high - low), "log of the wealth")
    points, budget = list(zip(path.draws, path.log_wealth, strict=True)), path.budget
    label = f"budget: {count(budget)} draws"
    series = [
        level("claimed", x, path.refuted_at, f"claim refuted at {number(path.refuted_at)}"),
        Series("line", "muted", [(budget, y.low), (budget, y.high)], label, size=1.2, dash=_DOTS),
        Series("line", colour, points, size=2.0),
        Series("dots", colour, points[-1:], f"stopped: {short(path.stopped, 50)}", size=4.0),
    ]
    caption = (
        "Wealth of a bet against the claim, made before each draw. If the claim holds, the wealth "
        "ever reaches the dashed line with probability at most "
        f"{number(result.failure_prob)}, however often it is checked."
    )
    return Chart("Wealth of the bet", [Panel(x, y, series)], caption)


def noise_margin(result: AuditResult) -> Chart:
    """Describe the certified epsilon as a function of the multiplier of the noise.

    The audited mechanism is the point at multiplier 1. Raise ``ValueError`` for a result that has
    no noise margin.
    """
    own, claimed = result.diagnostics.noise_margin, result.claimed_epsilon
    if own is None:
        raise ValueError(f"{result.id} has no noise margin to draw")
    limit = max(3.0 * claimed, 1e-3)
    by_role: dict[str, list[Point]] = {"certified": [], "violation": []}
    itself = MarginPoint(1.0, result.certified_epsilon, result.verdict == "refuted")
    for point in [itself, *(point for point in own.points if point.multiplier != 1.0)]:
        at = point.multiplier, min(point.certified_epsilon, limit)
        by_role["violation" if point.refuted else "certified"].append(at)
    points = sorted(point for points in by_role.values() for point in points)
    first, last = points[0][0], points[-1][0]
    ticks: list[tuple[float, str]] = []
    for multiplier, _ in reversed(points):  # the labels of ticks must not overlap
        gap = math.log(ticks[-1][0] / multiplier) if ticks else math.inf
        if gap > 0.1 * (math.log(last / first) or 1.0):
            ticks.append((multiplier, number(multiplier)))
    x = Axis(first / 1.05, last * 1.05, "noise, as a multiple of the algorithm's", ticks, log=True)
    series = [
        level("claimed", x, claimed, f"claimed: {number(claimed)}"),
        Series("line", "muted", points, size=1.3),
    ]
    for (role, dots), label in zip(by_role.items(), ("stands", "refuted"), strict=True):
        series += [Series("dots", role, dots, label, size=4.0)] * bool(dots)
    words = (
        "The claim stood at every multiple of the noise that was tried"
        if own.refuted_from is None
        else f"With {number(own.refuted_from)} times the noise the claim is refuted"
    )
    caption = f"{words}, on the pair {own.pair}. More noise than needed is slack of the analysis."
    y = Axis(0.0, 1.08 * limit, "certified epsilon")
    return Chart("Noise margin", [Panel(x, y, series)], caption)


def guesses(result: AuditResult) -> Chart:
    """Describe epsilon as a function of the number of guesses of an audit in one run.

    The estimates use the share of correct guesses and carry no guarantee. The chart also shows the
    claimed epsilon and the certified epsilon. The certified epsilon holds for all numbers of
    guesses together. Raise ``ValueError`` for other audits.
    """
    own, claimed, certified = (
        result.diagnostics.canaries,
        result.claimed_epsilon,
        result.certified_epsilon,
    )
    if own is None:
        raise ValueError(f"{result.id} must be the result of an audit in one run")
    points = [
        (n, math.log((right + 0.5) / (n - right + 0.5)))
        for n, right in zip(own.stages, own.correct, strict=True)
    ]
    shown = [y for _, y in points] + [certified] + [claimed] * math.isfinite(claimed)
    low, high = min(0.0, *shown), max(1.0, *shown)
    ticks = [(float(n), f"{n:,}") for n, _ in points[:: math.ceil(len(points) / 6) or 1]]
    ends = points[0][0] / 1.15, points[-1][0] * 1.15
    x = Axis(*ends, "guesses, the most confident first", ticks, log=True)
    y = Axis(low - 0.04 * (high - low), high + 0.04 * (high - low), "epsilon")
    most = [point for point in points if point[0] == own.guesses]
    words = f"certified: {least(certified)} at delta = {number(result.claimed_delta)}"
    series = [
        Series("dots", "estimated", points, "estimated, no guarantee", size=3.0),
        Series("rings", "estimated", most, "strongest evidence", size=6.0),
        Series("line", "certified", [(x.low, certified), (x.high, certified)], words),
    ]
    if math.isfinite(claimed):
        series.append(level("claimed", x, claimed, f"claimed: {number(claimed)}"))
    return Chart("Epsilon by the number of guesses", [Panel(x, y, series)])


# --- searches -----------------------------------------------------------------------------------


def landscape(result: AuditResult) -> Chart:
    """Describe the expected certified value of each trial of a search, against each parameter.

    Trials of a portfolio are grouped by their search space. Raise ``ValueError`` for an audit
    without a search.
    """
    record = result.diagnostics.search
    if record is None:
        raise ValueError(f"{result.id} must be the result of an audit with a search")
    trials, names = [t for t in record.trials if t.valid], record.parameters[:MAX_PANELS]
    values = {n: [(t, t.parameters[n]) for t in trials if n in t.parameters] for n in names}
    left_out = record.parameters[MAX_PANELS:]
    if record.is_portfolio:
        arms = [t.arm.partition("(")[0] if t.parameters else "given pairs" for t in trials]
        values, left_out = {"space": list(zip(trials, arms, strict=True))}, record.parameters
    is_ratio = result.claim["notion"] in _RATIOS
    claim = 1.0 if is_ratio else result.claimed_epsilon
    top = 1.15 * max((*(trial.expected_epsilon for trial in trials), claim)) or 1.0
    label = "expected, of the claim" if is_ratio else "expected epsilon"
    best = next(iter(ranking(record, 1)), None)
    panels = []
    for at, (name, own) in enumerate(values.items()):
        x, places = _parameter_axis(short(name, 30), [value for _, value in own])
        points: dict[str, list[Point]] = {stage: [] for stage in _STAGES}
        winner = []
        for place, (trial, _) in zip(places, own, strict=True):
            points.setdefault(trial.stage, []).append((place, trial.expected_epsilon))
            if trial is best:
                winner.append((place, trial.expected_epsilon))
        series = [
            Series("dots", _STAGES.get(stage, "muted"), dots, stage, size=2.6)
            for stage, dots in points.items()
            if dots
        ]
        series += [Series("rings", "claimed", winner, "winner", size=5.5)] * bool(winner)
        series.append(level("claimed", x, claim, "claim"))
        panels.append(Panel(x, Axis(0.0, top, "" if at % COLUMNS else label), series))
    caption = "Each dot is a pair that was tried. Its expected epsilon is an estimate "
    caption += "from few draws." + f" Not drawn: {', '.join(left_out)}." * bool(left_out)
    return Chart("The search", panels, caption)


def _parameter_axis(name: str, values: Sequence[Any]) -> tuple[Axis, list[float]]:
    """Return the axis of a parameter, and the position of each of its values.

    Texts, and a small number of different whole numbers, are shown as categories.
    """
    kinds = {type(value) for value in values}
    if kinds <= {int, float} and not (kinds == {int} and len(set(values)) <= _FEW):
        places = [float(value) for value in values]
        finite = [place for place in places if math.isfinite(place)] or [0.0]
        low, high = min(finite), max(finite)
        if low > 0 and max(places) >= _LOG_SPAN * low:
            return Axis(low / 1.3, high * 1.3, name, log=True), places
        margin = 0.05 * (high - low) or 0.5
        return Axis(low - margin, high + margin, name), places
    ordered = sorted(values) if kinds == {int} else values
    choices = list(dict.fromkeys(map(plain_value, ordered)))
    if kinds != {int}:
        choices.sort()
    words = [(float(at), short(choice, 12)) for at, choice in enumerate(choices)]
    ticks = words[:: math.ceil(len(words) / 4) or 1]
    places = [float(choices.index(plain_value(value))) for value in values]
    return Axis(-0.5, len(words) - 0.5, name, ticks), places
