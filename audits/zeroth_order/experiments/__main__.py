"""Experiments on private zeroth-order optimisation.

One command performs all experiments.

    python -m audits.zeroth_order.experiments [--quick|--full] [--out reports/zeroth_order]

The command writes the figures, `experiments.json` and `experiments.html`. The figures compare two
oracles: the variance-reduced oracle with its tree, and the naive oracle with its best batch. Both
oracles have equal exact privacy and equal M, on three objectives. Two methods run without noise:
the variance-reduced oracle, and the gradient-free method of Chen et al. (2023). The figures also
show the least M for which the bounds with all constants are below L.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.common.tree import tree_gdp
from audits.common.intervals import ratio, short
from audits.common.page import STYLE, figures_html, options, page_html, table_html, ticks
from audits.zeroth_order.experiments import measure
from dpaudit.results.charts import COLOURS

LOOK = {
    measure.TREE: {"color": COLOURS["left"], "marker": "o"},
    measure.NAIVE: {"color": COLOURS["right"], "marker": "^"},
    measure.PUBLIC: {"color": COLOURS["muted"], "marker": ".", "ls": "--"},
    measure.GFM: {"color": COLOURS["muted"], "marker": "x", "ls": ":"},
}
MEASURES = ("objective", "stationarity")


def draw(ax: Axes, own: pd.DataFrame, against: str, what: str) -> None:
    """Draw averages over trials with their 95 % intervals, one line for each method."""
    for method, runs in own.groupby("method", sort=False):
        places, found = [], []
        for place, trials in runs.groupby(against):
            places.append(place)
            found.append(ratio(trials[what] + 1e-12))
        low = [x.value - x.low for x in found]
        high = [x.high - x.value for x in found]
        ax.errorbar(places, [x.value for x in found], [low, high], label=method, **LOOK[method])
    ticks(ax.xaxis, sorted(own[against].unique()))
    ax.set_ylim(0, 1.15 * own.groupby(["method", against])[what].mean().max())


def size_figure(found: pd.DataFrame) -> Figure:
    """Draw objective and stationarity against M at d = 10 and rho = 1, by objective."""
    figure = Figure(figsize=(9.6, 5.2))
    axes = figure.subplots(2, 3, sharex=True)
    own = found[(found.d == 10) & (found.rho == 1.0)]
    for column, (name, runs) in zip(axes.T, own.groupby("objective_name", sort=False), strict=True):
        column[0].set_title(name)
        for ax, what in zip(column, MEASURES, strict=True):
            draw(ax, runs, "n_points", what)
        column[1].set_xlabel("M")
    for ax, what in zip(axes[:, 0], ("objective", "stationarity, at most"), strict=True):
        ax.set_ylabel(what)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure


def parameter_figure(found: pd.DataFrame) -> Figure:
    """Draw the objective against d and rho at the largest M."""
    figure = Figure(figsize=(9.6, 5.2))
    axes = figure.subplots(2, 3)
    own = found[found.n_points == found.n_points.max()]
    for column, (name, runs) in zip(axes.T, own.groupby("objective_name", sort=False), strict=True):
        column[0].set_title(name)
        draw(column[0], runs[runs.rho == 1.0], "d", "objective")
        draw(column[1], runs[runs.d == 10], "rho", "objective")
        column[0].set_xlabel("d, at rho = 1")
        column[1].set_xlabel("rho, at d = 10")
    for ax in axes[:, 0]:
        ax.set_ylabel("objective")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure


def tree_figure() -> Figure:
    """Draw the exact and the printed parameter of all running sums, and of the used sums."""
    figure = Figure(figsize=(9.6, 2.9))
    ax = figure.subplots()
    n = np.arange(1, 257)
    exact = np.array([tree_gdp(np.ones(k), 1.0) for k in n])
    bound = np.sqrt(2 * np.log(n))
    ax.step(n, exact, where="mid", label="all T noisy gradients, exactly", color=COLOURS["left"])
    ax.step(n[1:], exact[:-1], where="mid", label="the T - 1 that are used, exactly", ls=":",
            color=COLOURS["left"])  # fmt: skip
    ax.plot(n, bound, label="printed: sqrt(2 ln T)", color=COLOURS["right"])
    short_of = exact > bound
    ax.plot(n[short_of], exact[short_of], "o", color=COLOURS["left"],
            label="printed is too small: T = " + ", ".join(map(str, n[short_of])))  # fmt: skip
    ticks(ax.xaxis, (1, 2, 4, 8, 16, 32, 64, 128, 256))
    ax.set(xlabel="T", ylabel="mu, over s / sigma", ylim=(0, None))
    ax.legend()
    return figure


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Return averages and the chosen plans of all settings."""
    keys = ["objective_name", "d", "rho", "n_points"]
    rows = []
    for values, runs in found.groupby(keys, sort=False):
        row = dict(zip(("problem", "d", "rho", "M"), values, strict=True))
        for method, own in runs.groupby("method", sort=False):
            row[f"{method}: objective"] = short(own.objective.mean())
            row["stationarity" + " " * len(row)] = short(own.stationarity.mean())
            row["T, K, B" + " " * len(row)] = "{:.0f}, {:.0f}, {:.0f}".format(
                *own[["T", "K", "batch"]].iloc[0]
            )
        rows.append(row)
    return pd.DataFrame(rows)


def write(
    tables: dict[str, pd.DataFrame], size: measure.Size, folder: Path, seconds: float
) -> Path:
    """Write the page, and return its path."""
    found = tables["compared"]
    with mpl.rc_context(STYLE):
        figures = figures_html(
            {
                "tree": (
                    tree_figure(),
                    "The tree mechanism, all sensitivities s and all noises sigma equal.",
                ),
                "size": (
                    size_figure(found),
                    "Averages and 95 % intervals of the results with M items, d = 10, rho = 1. "
                    "Stationarity is an upper estimate within 2 delta = "
                    f"{2 * measure.RADIUS:g}, for the mean loss of 1,000 fresh items.",
                ),
                "parameters": (
                    parameter_figure(found),
                    f"The objective with M = {found.n_points.max():,} items.",
                ),
            },
            folder,
        )
    body = f"""<p class="quiet">Both oracles have equal exact privacy, rho-Gaussian DP of the
output, and equal M. T, K, batch and step size are those with the best objective on other data.
This choice is not private. The method of Chen et al. (2023) has 24 plans with free step sizes, and
the other methods have multiples of the step size of their bound. For this method, T is the period
and B is the small batch. Size {size.name}: {size.trials} data sets
of two runs for each point; {seconds / 60:.1f} minutes. Made by
<code>python -m audits.zeroth_order.experiments --{size.name}</code>.</p>
<h2>The tree, and the results with it</h2>
{figures}
<h2>What the bounds guarantee</h2>
{table_html(tables["promised"])}
<p class="quiet">Corollary 4.7 with all constants, at delta = L = F* = 1. Below the first M the
bound is not below L, which every point satisfies. The paper compares the privacy terms of both
bounds, which differ by 1 / epsilon. But the sums differ by a constant factor, at most
1 + sqrt(d) / rho up to constants, because d / (delta epsilon^3) is in both.</p>
<h2>All settings</h2>
{table_html(summary(found))}"""
    path = folder / "experiments.html"
    title = "Private zeroth-order optimisation: tree against fresh noise"
    path.write_text(page_html(title, body), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all experiments and write the page."""
    asked = options(
        arguments,
        __doc__,
        full="all d and rho together, more M",
        out="reports/zeroth_order",
        jobs=True,
    )
    size = measure.FULL if asked.full else measure.QUICK
    began = time.perf_counter()
    runs = Parallel(n_jobs=asked.jobs)(
        delayed(measure.compared)(setting, size, asked.seed)
        for setting in measure.settings_of(size)
    )
    bounds = Parallel(n_jobs=asked.jobs)(
        delayed(measure.promised)(d, rho) for d in size.d for rho in size.rho
    )
    tables = {
        "compared": pd.DataFrame([row for rows in runs for row in rows]),
        "promised": pd.DataFrame(bounds),
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    plain = {name: json.loads(table.to_json(orient="split")) for name, table in tables.items()}
    (asked.out / "experiments.json").write_text(json.dumps(plain))
    page = write(tables, size, asked.out, time.perf_counter() - began)
    sys.stdout.write(tables["promised"].to_string(index=False) + "\n")
    sys.stdout.write(summary(tables["compared"]).to_string(index=False) + f"\nwrote {page}\n")


if __name__ == "__main__":
    main()
