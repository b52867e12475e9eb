"""The figures and the page of `audits.geometric_median.experiments`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from audits.common.intervals import growth, power
from audits.common.page import STYLE, figures_html, page_html, table_html, ticks
from audits.geometric_median.experiments import setup
from audits.geometric_median.experiments.claims import (
    DECIDED_BY,
    NO,
    UNDECIDED,
    WITH,
    YES,
    Claim,
    Results,
)
from audits.geometric_median.experiments.descent import AS_TAKEN, chosen
from audits.geometric_median.experiments.radius import SAMPLES
from dpaudit.results.charts import COLOURS

LOOK = {
    setup.DPGD: {"color": COLOURS["muted"], "marker": "s"},
    setup.STABLE: {"color": COLOURS["right"], "marker": "^"},
    setup.FIXED: {"color": COLOURS["left"], "marker": "o"},
    setup.FAST: {"color": COLOURS["left"], "marker": "o"},
    setup.FINDER: {"color": COLOURS["right"], "marker": "^"},
}


def _legend(figure: Figure, ncols: int) -> None:
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper left", ncols=ncols)


def _bars(ax, x: Sequence[float], values, **style) -> None:
    """Draw averages with their standard deviations. The argument `values` is grouped."""
    ax.errorbar(x, values.mean(), yerr=values.std(ddof=0), elinewidth=0.9, **style)


# --- the figures ---


def radius_figure(ratios: pd.DataFrame, by: Sequence[str]) -> Figure:
    """Draw Figure 1 for all scales, or the same figure for other n and d."""
    figure = Figure(figsize=(8.8, 3.2))
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (family, of_family) in zip(axes, ratios.groupby("family"), strict=True):
        ax.axhspan(*setup.BOUNDS, color=COLOURS["event"], lw=0, label="claimed: roughly 1.2 to 3")
        for shift, (method, runs) in zip((0.07, -0.07), of_family.groupby("method"), strict=True):
            for number, (_, found) in enumerate(runs.groupby("scale" if len(by) > 1 else "method")):
                values = found.groupby(list(by)).ratio
                x = [i + shift * (1 + 2 * number) for i in range(len(values))]
                line = {} if len(by) == 1 else {"lw": 0}
                _bars(ax, x, values, label=method if number == 0 else None, **LOOK[method], **line)
        cells = list(values.mean().index.to_frame().itertuples(index=False))
        ax.set_xticks(range(len(cells)), ["\n".join(f"{x:g}" for x in cell) for cell in cells])
        scales = ", ".join(f"{scale:g}" for scale in of_family.scale.unique())
        words = f", {setup.NAME[family]} = {scales}" if len(by) > 1 else ""
        ax.set(title=family + words, xlabel=", ".join(by) if len(by) > 1 else setup.NAME[family])
        ticks(ax.yaxis, (0.5, 1, 1.2, 2, 3, 5, 10, 20, 50))
    axes[0].set_ylabel("estimated / true radius")
    _legend(figure, 3)
    return figure


def descent_figure(settings: dict[str, pd.DataFrame]) -> Figure:
    """Draw one of Figures 2 to 5, with one panel for each title."""
    figure = Figure(figsize=(9.6, 3.4))
    axes = figure.subplots(1, len(settings), sharey=True)
    for ax, (title, errors) in zip(axes, settings.items(), strict=True):
        for method in (setup.DPGD, setup.STABLE, setup.FIXED):
            own = errors[errors.method == method]
            tuned = own[own.eta == setup.TUNED].groupby("passes").error
            _bars(ax, tuned.mean().index, tuned, label=method, **LOOK[method])
            bound = own[own.eta == setup.OF_BOUND].groupby("passes").error.mean()
            if len(bound):
                style = {"color": LOOK[method]["color"], "ls": "--", "lw": 1.1}
                bound.plot(ax=ax, label=f"{method}, eta of the error bound", **style)
        ax.set(title=title, xlabel="passes over the data")
        ticks(ax.xaxis, [4.0**k for k in range(6) if 4.0**k <= 1.2 * errors.passes.max()])
        ticks(ax.yaxis, (0.0001, 0.001, 0.01, 0.1, 1))
    low = min(e.groupby(["method", "eta", "passes"]).error.mean().min() for e in settings.values())
    axes[0].set(ylabel="excess error / r_hat", ylim=(low / 2, 1.6))
    _legend(figure, 5)
    return figure


def all_figures(found: Results) -> dict[str, tuple[Figure, str]]:
    """Return all figures and their captions, by file name.

    The captions do not state the claims, because the table of claims states the claims.
    """
    luck = (
        "DPGD's dip at 4 passes is luck. From .75 r_hat, steps of r_hat / 2 end at .25, -.25, "
        ".25 and -.25 r_hat from the median, and DPGD returns the average of these points."
    )
    sizes = (
        "The same for other n and d. RadiusFinder requires .75 n + 18 log(2T / .05) / epsilon "
        "neighbours. At n = 500 this is more than the inliers of GaussianCluster."
    )
    figures = {
        "figure_1": (radius_figure(found.ratios, ["scale"]), "Figure 1. n = 1000, d = 10."),
        "figure_1_sizes": (radius_figure(found.trend, ["n", "d"]), sizes),
    }
    for number, (family, scales) in enumerate(setup.SCALES.items(), 2):
        by_n = {f"n = {n}": chosen(found.errors, family, n) for n in sorted(found.size.longest)}
        by_scale = {
            f"{setup.NAME[family]} = {s:g}": chosen(found.errors, family, 1000, s) for s in scales
        }
        words = f"Figure {number}. {family}, the middle scale. {luck if number == 3 else ''}"
        figures[f"figure_{number}"] = descent_figure(by_n), words
        words = f"Figure {number + 2}. {family}, n = 1000."
        figures[f"figure_{number + 2}"] = descent_figure(by_scale), words
    return dict(sorted(figures.items()))


# --- the page ---


def claims_table(claims: Sequence[Claim]) -> pd.DataFrame:
    """Return the table of claims.

    A claim that is undecided says which trials decide the claim at the default seed.
    """

    def verdict(claim: Claim) -> str:
        if claim.verdict == UNDECIDED:
            return f"{UNDECIDED}. At seed 0, {DECIDED_BY[claim.id]} decide it"
        return f"{claim.verdict}: {claim.choice}" if claim.choice else claim.verdict

    rows = [(c.id, c.words, verdict(c), c.numbers) for c in claims]
    return pd.DataFrame(rows, columns=["", "the paper", "here", "numbers"])


def times_table(table: pd.DataFrame, times: pd.DataFrame) -> pd.DataFrame:
    """Return seconds at n = 1000, ratios to FastRadius' seconds, and the growth with n."""
    means = table.groupby(["way", "family"]).seconds.mean().unstack()
    told = (1e3 * means).map("{:.1f} ms".format) + (means / means.loc[SAMPLES]).map(
        " ({:.1f})".format
    )
    own = times.groupby("way")
    grows = own.apply(lambda found: power(growth(found.n, found.seconds)))
    return told.assign(grows=grows).reset_index().rename_axis(columns=None)


def choices_table(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the errors on GaussianCluster, R = 50, for every choice.

    The errors belong to the largest number of passes.
    """
    own = errors[(errors.family == setup.CLUSTER) & (errors.scale == setup.MIDDLE[setup.CLUSTER])]
    most = own.n.map(own[own.method == setup.FIXED].groupby("n").passes.max())
    own = own[own.passes == most.where(own.method != setup.DPGD, most // 1)]
    table = own[(own.choice == AS_TAKEN) | (own.eta == setup.TUNED)]
    table = table.pivot_table("error", ["choice", "eta"], ["n", "method"], sort=False)
    table.columns = [f"n = {n}, {method.removesuffix('DPSGD')}" for n, method in table.columns]
    return table.map(lambda x: "" if pd.isna(x) else f"{x:.2g}").reset_index()


def ablation_table(ablation: pd.DataFrame) -> pd.DataFrame:
    """Return DPGD's errors at the middle scales, by multiplier, and mark the smallest errors."""
    own = ablation[ablation.scale == ablation.family.map(setup.MIDDLE)]
    table = own.pivot_table("error", ["family", "n", "steps", "base"], "multiplier")
    shown = table.map("{:.2g}".format)
    shown = shown.where(table.ne(table.min(axis=1), axis=0), shown + " *")
    shown.columns = [f"{multiplier:g}" for multiplier in table.columns]
    return shown.reset_index().rename(columns={"steps": "T"})


def write(found: Results, claims: Sequence[Claim], folder: Path) -> Path:
    """Write the figures as SVG, and return the path of a page that contains the figures."""
    with mpl.rc_context(STYLE):
        shown = figures_html(all_figures(found), folder)
    size, verdicts = found.size, [claim.verdict for claim in claims]
    counts = "; ".join(f"{v}: {verdicts.count(v)}" for v in (YES, WITH, UNDECIDED, NO))
    trials = "; ".join(
        f"{family} {', '.join(f'{size.trials_of(family, n)} at n = {n}' for n in size.longest)}"
        for family in setup.SCALES
    )
    rules = pd.DataFrame(
        setup.RULES, columns=["parameter", "the paper says", "taken", "also tried"]
    )
    ablated = "Trials: " + ", ".join(f"{k} at n = {n}" for n, k in sorted(size.ablation.items()))
    body = f"""<p class="quiet">{len(claims)} claims of Section 5. {counts}. Size {size.name}:
{size.ratio_trials} trials for Figure 1; for Figures 2 to 5, {trials}; seed {found.seed};
{sum(found.took.values()) / 60:.1f} minutes. Made by <code>python -m
audits.geometric_median.experiments --{size.name}</code>; all numbers are in
<code>experiments.json</code>.</p>
<h2>Claims</h2>
{table_html(claims_table(claims))}
<p class="quiet">"Roughly" and "similar" allow a factor {setup.ROUGHLY:g}. "A significant
margin" is a factor {setup.SIGNIFICANT:g} at every number of passes, and "unchanged" is a change
below it. Brackets contain 95 % intervals: t intervals for logarithms, paired by trial, all of one
list right at once. A claim is decided if its whole interval agrees.</p>
<h2>Figures</h2>
<p class="quiet">Bars are standard deviations. In Figures 2 to 5 solid lines have eta tuned on
separate data. Each point is a separate run that spends all of rho.</p>
{shown}
<h2>Table 1: time at n = 1000, in brackets as multiples of FastRadius, and its growth</h2>
{table_html(times_table(found.table, found.times))}
<p class="quiet">The times are from this machine, for information. The paper has 1.192 and 0.0411 s,
and 1.204 and 0.0413 s: 29 and 29 times.</p>
<h2>Step size of DPGD: errors at R = 50 and nu = 5, for each multiplier of the paper</h2>
{table_html(ablation_table(found.ablation))}
<p class="quiet">The star marks the smallest error of a row. {ablated}; all step sizes of one trial
use the same data and noise. The paper chose r_hat / sqrt(T) and the multiplier 1.</p>
<h2>Other choices: errors on GaussianCluster, R = 50, at the most passes</h2>
{table_html(choices_table(found.errors))}
<h2>Rules</h2>
{table_html(rules)}"""
    path = folder / "experiments.html"
    title = "Private Geometric Median: the experiments, repeated"
    path.write_text(page_html(title, body), encoding="utf-8")
    return path
