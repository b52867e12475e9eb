"""The figures and the page of `audits.geometric_median.experiments`."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from audits.geometric_median.experiments.claims import NO, WITH, YES, Claim
from audits.geometric_median.experiments.descent import Curves, curves_of
from audits.geometric_median.experiments.measured import Results
from audits.geometric_median.experiments.radius import SAMPLES, WAYS, Ratios, growth
from audits.geometric_median.experiments.setup import (
    AS_TAKEN,
    BOUNDS,
    CLUSTER,
    DPGD,
    FAST,
    FINDER,
    FIXED,
    HEAVY,
    MIDDLE,
    ROUGHLY,
    SCALES,
    SIGNIFICANT,
    STABLE,
    TUNED,
    Rule,
)
from dpaudit.results.figures import COLOURS

LOOK = {
    DPGD: (COLOURS["muted"], "s"),
    STABLE: (COLOURS["right"], "^"),
    FIXED: (COLOURS["left"], "o"),
    FAST: (COLOURS["left"], "o"),
    FINDER: (COLOURS["right"], "^"),
}
SYMBOL = {CLUSTER: "R", HEAVY: "ν"}
NUMBERS = {100: "o", 1000: "s", 10_000: "D"}
OF_BOUND = "eta of the error bound"
CLAIMED = {"color": COLOURS["event"], "lw": 0, "zorder": 0}


def _panels(count: int, width: float = 3.1, height: float = 2.9, **options) -> tuple[Figure, list]:
    figure = Figure(figsize=(width * count, height), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False, **options)[0])


def _clean(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=9, loc="left", color=COLOURS["ink"])
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(COLOURS["rule"])
    ax.tick_params(which="both", colors=COLOURS["muted"], labelcolor=COLOURS["ink"], labelsize=8)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set(color=COLOURS["ink"], fontsize=8.5)


def _ticks(axis, values: Sequence[float]) -> None:
    """Label a logarithmic axis with plain numbers at the given places."""
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _bars(ax: Axes, x, values: Sequence[np.ndarray], method: str, **style) -> None:
    """Draw averages with their standard deviations."""
    colour, marker = LOOK[method]
    ax.errorbar(
        x,
        [v.mean() for v in values],
        yerr=[v.std() for v in values],
        **({"label": method, "color": colour, "marker": marker, "ms": 4.5, "lw": 1.4} | style),
        elinewidth=0.9,
        capsize=2.5,
    )


def _legend(figure: Figure, ax: Axes, **options) -> None:
    both = zip(*ax.get_legend_handles_labels(), strict=True)
    handles, labels = zip(*sorted(both, key=lambda pair: OF_BOUND in pair[1]), strict=True)
    style = {"fontsize": 8, "frameon": False, "labelcolor": COLOURS["ink"]}
    place = {"loc": "outside upper left", "ncols": 6} | options
    figure.legend(handles, labels, **style, **place)


# --- the figures ---


def radius_figure(found: Results) -> Figure:
    """Figure 1."""
    figure, axes = _panels(2, 4.4, 3.0, sharey=True)
    for ax, family in zip(axes, (CLUSTER, HEAVY), strict=True):
        ax.axhspan(*BOUNDS, label="claimed: roughly 1.2 to 3", **CLAIMED)
        scales = sorted({r.scale for r in found.ratios if r.family == family})
        for shift, method in ((-0.07, FINDER), (0.07, FAST)):
            chosen = [r for r in found.ratios if (r.family, r.method) == (family, method)]
            x = [scales.index(r.scale) + shift for r in chosen]
            _bars(ax, x, [r.values for r in chosen], method)
        ax.set_xticks(range(len(scales)), [f"{scale:g}" for scale in scales])
        ax.set_xlabel("R" if family == CLUSTER else "degrees of freedom ν")
        _clean(ax, f"({'a' if family == CLUSTER else 'b'}) {family}")
    axes[0].set_ylabel("estimated / true radius")
    axes[0].set_ylim(bottom=0)
    _legend(figure, axes[0])
    return figure


def trend_figure(found: Results) -> Figure:
    """Other n and d."""
    figure, axes = _panels(2, 4.4, 3.0, sharey=True)
    cells = [(n, d) for n in (500, 1000, 2000) for d in (5, 10, 20)]
    for ax, family in zip(axes, (CLUSTER, HEAVY), strict=True):
        ax.axhspan(*BOUNDS, label="claimed: roughly 1.2 to 3", **CLAIMED)
        for shift, method in ((-0.1, FINDER), (0.1, FAST)):
            for number, scale in enumerate(found.size.trend_scales[family]):
                values = [_of(found.trend, family, scale, n, d, method) for n, d in cells]
                x = np.arange(len(cells)) + shift * (1 + number)
                label = method if number == 0 else None
                _bars(ax, x, values, method, lw=0, label=label)
        ax.set_yscale("log")
        ax.set_xticks(range(len(cells)), [f"{d}" for _, d in cells])
        for i, n in enumerate((500, 1000, 2000)):
            place = {"xy": ((i + 0.5) / 3, 0.94), "xycoords": "axes fraction", "ha": "center"}
            ax.annotate(f"n = {n}", **place, fontsize=8, color=COLOURS["muted"])
        ax.axvline(2.5, color=COLOURS["rule"], lw=0.7)
        ax.axvline(5.5, color=COLOURS["rule"], lw=0.7)
        ax.set_xlim(-0.5, 8.5)
        ax.set_xlabel("d")
        scales = ", ".join(f"{scale:g}" for scale in found.size.trend_scales[family])
        _clean(ax, f"{family}, {SYMBOL[family]} = {scales}")
        _ticks(ax.yaxis, (0.5, 1, 2, 3, 5, 10, 20, 50))
    axes[0].set_ylabel("estimated / true radius")
    axes[0].set_ylim(0.9, 120)
    _legend(figure, axes[0])
    return figure


def _of(ratios: Sequence[Ratios], family, scale, n, d, method) -> np.ndarray:
    key = (family, scale, n, d, method)
    return next(r.values for r in ratios if (r.family, r.scale, r.n, r.d, r.method) == key)


def time_figure(found: Results) -> Figure:
    """Time against n."""
    figure, axes = _panels(2, 4.4, 3.1)
    sizes = sorted(found.times)
    colours = (COLOURS["violation"], COLOURS["right"], COLOURS["estimated"])
    for way, colour in zip((*WAYS, SAMPLES), (*colours, COLOURS["left"]), strict=True):
        took = [found.times[n][way] for n in sizes]
        name = way if way == SAMPLES else f"RadiusFinder, {way}"
        label = f"{name}: {growth(sizes, took)}"
        style = {"color": colour, "marker": "o", "ms": 4, "lw": 1.4}
        axes[0].plot(sizes, took, label=label, **style)
        if way != SAMPLES:
            base = [found.times[n][SAMPLES] for n in sizes]
            axes[1].plot(sizes, np.divide(took, base), **style)
    for ax in axes:
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("n")
        _clean(ax, "seconds of one run" if ax is axes[0] else "RadiusFinder / FastRadius")
        _ticks(ax.xaxis, sizes)
    axes[1].axhline(29, color=COLOURS["muted"], lw=0.9, ls=(0, (4, 2)))
    axes[1].annotate(
        "29, Table 1", (sizes[0], 29), (0, 3), textcoords="offset points", ha="left",
        fontsize=8, color=COLOURS["muted"],
    )  # fmt: skip
    _ticks(axes[1].yaxis, (1, 2, 5, 10, 29, 100, 300, 1000))
    _legend(figure, axes[0], ncols=2)
    return figure


def descent_figure(curves: Sequence[Curves], titles: Sequence[str]) -> Figure:
    """One of Figures 2 to 5."""
    figure, axes = _panels(len(curves), 3.2, 3.2, sharey=True)
    for ax, curve, title in zip(axes, curves, titles, strict=True):
        _bars(ax, list(curve.dpgd), list(curve.dpgd.values()), DPGD)
        for method in (STABLE, FIXED):
            points = {passes: curve.sgd[method][passes] for passes in curve.passes}
            _bars(ax, list(points), [p[TUNED] for p in points.values()], method)
            bound = [p[1.0].mean() for p in points.values()]
            style = {"color": LOOK[method][0], "lw": 1.1, "ls": (0, (4, 2))}
            ax.plot(list(points), bound, label=f"{method}, {OF_BOUND}", **style)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("passes over the data")
        _clean(ax, title)
        top = max(*curve.dpgd, *curve.passes)
        _ticks(ax.xaxis, [4.0**k for k in range(6) if 4.0**k <= 1.2 * top])
    axes[0].set_ylabel("excess error / r_hat")
    low = min(v.mean() for curve in curves for v in _drawn(curve))
    axes[0].set_ylim(low / 2, 1.6)
    _ticks(axes[0].yaxis, (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1))
    axes[0].set_ylim(low / 2, 1.6)
    _legend(figure, axes[0], ncols=3)
    return figure


def _drawn(curve: Curves):
    yield from curve.dpgd.values()
    for method in (STABLE, FIXED):
        yield from (point[TUNED] for point in curve.sgd[method].values())


def choices_figure(found: Results) -> Figure:
    """What every other choice does to the comparison with DPGD."""
    base = {row.n: row for row in found.what_if if row.choice == AS_TAKEN}
    moved = [
        row.choice
        for row in found.what_if
        if row is base[row.n] or (row.dpgd, row.fixed) != (base[row.n].dpgd, base[row.n].fixed)
    ]
    choices = [row.choice for row in found.what_if if row.n == min(base) and row.choice in moved]
    figure = Figure(figsize=(8.8, 0.6 + 0.27 * len(choices)), layout="constrained")
    ax = figure.subplots()
    ax.axvline(1, color=COLOURS["rule"], lw=1.2, zorder=0)
    colours = (COLOURS["muted"], COLOURS["right"], COLOURS["left"])
    for (n, marker), colour in zip(NUMBERS.items(), colours, strict=True):
        rows = [row for row in found.what_if if row.n == n and row.choice in choices]
        label = f"n = {n}, {rows[0].passes:.3g} passes"
        x, y = [r.dpgd / r.fixed for r in rows], [choices.index(r.choice) for r in rows]
        ax.plot(x, y, marker, color=colour, ms=5.5, label=label)
    ax.set_xscale("log")
    ax.set_yticks(range(len(choices)), choices)
    ax.invert_yaxis()
    ax.grid(axis="y", color=COLOURS["event"], lw=0.7)
    ax.set_axisbelow(True)
    ax.set_xlabel("DPGD's error / FixedOrderDPSGD's; right of 1 FixedOrderDPSGD is better")
    _clean(ax, "")
    _ticks(ax.xaxis, (0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300))
    _legend(figure, ax)
    return figure


def all_figures(found: Results) -> dict[str, tuple[Figure, str]]:
    """Return file name to figure and caption."""
    sizes = sorted(found.size.longest)
    middle = {
        family: [curves_of(found.curves, family, MIDDLE[family], n) for n in sizes]
        for family in SCALES
    }
    scaled = {
        family: [curves_of(found.curves, family, s, 1000) for s in SCALES[family]]
        for family in SCALES
    }
    by_n = [f"n = {n}" for n in sizes]
    by_scale = {f: [f"{SYMBOL[f]} = {scale:g}" for scale in SCALES[f]] for f in SCALES}
    spread = "Bars are standard deviations."
    descent = (
        f"{spread} Solid: eta tuned on data of their own. Each point is a run of its own that "
        "spends all of rho."
    )
    resonance = (
        "DPGD's dip at 4 passes is luck: from .75 r_hat, steps of r_hat / 2 end at .25, -.25, .25 "
        "and -.25 r_hat from the median, and it returns their average."
    )
    return {
        "figure_1": (
            radius_figure(found),
            f"Figure 1. Claim: both methods stay between roughly 1.2 and 3 times the true radius. "
            f"n = 1000, d = 10. {spread}",
        ),
        "figure_1_sizes": (
            trend_figure(found),
            f"The same for other n and d. Claim: similar trends. {spread} RadiusFinder asks for "
            ".75 n + 18 log(2T / .05) / epsilon neighbours; at n = 500 that is more than there are "
            "inliers in GaussianCluster.",
        ),
        "table_1": (
            time_figure(found),
            "Table 1. Claim: at n = 1000 FastRadius takes 1/29 of the time. GaussianCluster, "
            "R = 4, d = 10; the least of several runs. RadiusFinder depends on how its neighbours "
            "are counted.",
        ),
        "figure_2": (
            descent_figure(middle[CLUSTER], by_n),
            "Figure 2, GaussianCluster, R = 50. Claim: FixedOrderDPSGD consistently beats "
            "StableDPSGD, and DPGD by a significant margin once n is large enough. " + descent,
        ),
        "figure_3": (
            descent_figure(middle[HEAVY], by_n),
            "Figure 3, HeavyTailed, ν = 5. Claim: FixedOrderDPSGD is similar to or better than "
            f"DPGD for larger n. {descent} {resonance}",
        ),
        "figure_4": (
            descent_figure(scaled[CLUSTER], by_scale[CLUSTER]),
            "Figure 4, GaussianCluster, n = 1000. Claim: relative performance is unchanged. "
            + descent,
        ),
        "figure_5": (
            descent_figure(scaled[HEAVY], by_scale[HEAVY]),
            "Figure 5, HeavyTailed, n = 1000. Claim: relative performance is unchanged. " + descent,
        ),
        "choices": (
            choices_figure(found),
            "What every other choice does to the comparison of Figure 2, at the most passes that "
            "were run for each n; one choice is changed at a time.",
        ),
    }


# --- the page ---

STYLE = """
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  color: #1c2733; background: #f4f6f8; margin: 0; }
main { max-width: 1060px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: .2rem 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
p, figcaption { max-width: 60rem; } .quiet, figcaption { color: #5c6979; }
.scroll { overflow-x: auto; background: #fff; border: 1px solid #e1e6ec; border-radius: 10px; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; }
th { color: #5c6979; font-weight: 600; } tr + tr td { border-top: 1px solid #e1e6ec; }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th.number { text-align: right; }
.verdict { font-weight: 650; } .yes { color: #0b6b4f; } .with { color: #8a5300; }
.no { color: #b3261e; }
figure { margin: 0 0 1.2rem; background: #fff; border: 1px solid #e1e6ec; border-radius: 10px;
  padding: .8rem 1rem; } figure img { width: 100%; height: auto; }
figcaption { font-size: .87rem; margin-top: .3rem; }
"""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """Return a table; the last `numbers` columns are aligned as numbers, cells are HTML."""
    first = len(heads) - numbers

    def line(cells: Sequence[str], tag: str) -> str:
        marks = ["" if i < first else ' class="number"' for i in range(len(cells))]
        inside = "".join(f"<{tag}{m}>{c}</{tag}>" for c, m in zip(cells, marks, strict=True))
        return f"<tr>{inside}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return f'<div class="scroll"><table>{line(heads, "th")}\n{body}</table></div>'


def claims_table(claims: Sequence[Claim]) -> str:
    """Return the table of claims."""
    tones = {YES: "yes", WITH: "with", NO: "no"}
    rows = []
    for claim in claims:
        verdict = f'<span class="verdict {tones[claim.verdict]}">{claim.verdict}</span>'
        if claim.choice:
            verdict += f": {html.escape(claim.choice)}"
        words = [html.escape(text) for text in (claim.words, claim.numbers)]
        rows.append([f"<code>{claim.id}</code>", words[0], verdict, words[1]])
    return _table(["", "the paper", "here", "numbers"], rows)


def rules_table(rules: Sequence[Rule]) -> str:
    """Return the table of rules."""
    heads = ["parameter", "the paper says", "taken", "tried as well"]
    rows = [[html.escape(x) for x in (r.parameter, r.paper, r.taken, r.also)] for r in rules]
    return _table(heads, rows)


def times_table(found: Results) -> str:
    """Return seconds at n = 1000, and as multiples of FastRadius."""
    heads = ["n = 1000, d = 10", *(f"{family}" for family in found.table)]
    ways = next(iter(found.table.values()))
    rows = [
        [
            way if way.startswith(FAST) else f"RadiusFinder, {way}",
            *(f"{1e3 * t[way]:.1f} ms ({t[way] / t[SAMPLES]:.1f})" for t in found.table.values()),
        ]
        for way in ways
    ]
    return _table(heads, rows, numbers=2)


def choices_table(found: Results) -> str:
    """Return the errors under every other choice."""
    sizes = sorted(found.size.longest)
    heads = ["error / r_hat: DPGD, StableDPSGD, FixedOrderDPSGD"]
    heads += [
        f"n = {n}, {next(w.passes for w in found.what_if if w.n == n):.3g} passes" for n in sizes
    ]
    rows = []
    for choice in dict.fromkeys(row.choice for row in found.what_if):
        by_n = {row.n: row for row in found.what_if if row.choice == choice}
        cells = [
            f"{by_n[n].dpgd:.2g}, {by_n[n].stable:.2g}, {by_n[n].fixed:.2g}" if n in by_n else ""
            for n in sizes
        ]
        rows.append([choice, *cells])
    return _table(heads, rows, numbers=len(sizes))


def write(
    found: Results, claims: Sequence[Claim], rules: Sequence[Rule], folder: Path
) -> Path:  # fmt: skip
    """Write all figures as SVG and PNG, and the page that shows them; return its path."""
    parts = []
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "dpaudit"}):
        for name, (figure, caption) in all_figures(found).items():
            text = io.BytesIO()
            figure.savefig(text, format="svg", metadata={"Date": None})
            (folder / f"{name}.svg").write_bytes(text.getvalue())
            figure.savefig(folder / f"{name}.png", dpi=160)
            source = base64.b64encode(text.getvalue()).decode()
            words = html.escape(caption)
            parts.append(
                f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{source}">'
                f"<figcaption>{words}</figcaption></figure>"
            )
    page = _page(found, claims, rules, parts)
    path = folder / "experiments.html"
    path.write_text(page, encoding="utf-8")
    return path


def _page(
    found: Results, claims: Sequence[Claim], rules: Sequence[Rule], figures: Sequence[str]
) -> str:
    size, took = found.size, sum(found.took.values())
    count: Callable[[str], int] = [claim.verdict for claim in claims].count
    lead = (
        f"{len(claims)} claims of Section 5. Reproduced: {count(YES)}; with a choice "
        f"that the paper does not state: {count(WITH)}; not: {count(NO)}. Size "
        f"{size.name}: {size.ratio_trials} trials for Figure 1, {size.trials} for Figures 2 to 5; "
        f"seed {found.seed}; {took / 60:.1f} minutes."
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Private Geometric Median: the experiments, once more</title>
<style>{STYLE}</style></head><body><main>
<h1>Private Geometric Median: the experiments, once more</h1>
<p class="quiet">{lead} Made by <code>python -m audits.geometric_median.experiments
--{size.name}</code>; all numbers are in <code>experiments.json</code>.</p>
<h2>Claims</h2>
{claims_table(claims)}
<p class="quiet">"Roughly" and "similar" allow a factor {ROUGHLY:g}; "a significant
margin" is a factor {SIGNIFICANT:g} at every number of passes, and "unchanged" a change
below it.</p>
<h2>Figures</h2>
{"".join(figures)}
<h2>Table 1: time, and in brackets as multiples of FastRadius</h2>
{times_table(found)}
<p class="quiet">Seconds of this machine, for information; the paper has 1.192 and 0.0411 s, and
1.204 and 0.0413 s: 29 and 29 times.</p>
<h2>Other choices</h2>
{choices_table(found)}
<h2>Rules</h2>
{rules_table(rules)}
</main></body></html>
"""
