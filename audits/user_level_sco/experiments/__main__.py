"""Experiments on user-level DP-SCO.

The papers on user-level DP-SCO contain no experiments. One command performs all experiments of this
package.

    python -m audits.user_level_sco.experiments [--quick|--full] [--out reports/user_level_sco]

The command writes the figures, `experiments.json` and `experiments.html`. The figures show excess
risk against n, m, d and epsilon. At the constants that `scaled` derives, the figures compare the
algorithms of both versions with baselines and with previous algorithms. The page also shows the
number of gradients, the time, users with different distributions, and the cost and the benefit of
the filter. It also shows the printed constants, if these constants are defined.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from audits.common.intervals import growth, short
from audits.common.page import STYLE, figures_html, options, page_html, table_html, ticks
from audits.user_level_sco.experiments import measure
from dpaudit.results.charts import COLOURS

LOOK = {
    measure.FILTER: {"color": COLOURS["left"], "marker": "o"},
    measure.ROBUST: {"color": COLOURS["right"], "marker": "^"},
    measure.DPSGD: {"color": COLOURS["muted"], "marker": "s"},
    measure.WINSOR: {"color": COLOURS["muted"], "marker": "v", "ls": "-."},
    measure.WEIGHTED: {"color": COLOURS["muted"], "marker": "D", "ls": (0, (1, 1))},
    measure.OUTPUT: {"color": COLOURS["muted"], "marker": "x", "ls": ":"},
    measure.PUBLIC: {"color": COLOURS["muted"], "marker": ".", "ls": "--"},
}
MU = "mu(epsilon)"
THEORY = {
    measure.SAMPLING: {"n": "-1/2", "m": "-1/2", "d": "0", "epsilon": "0", MU: "0"},
    measure.PRIVACY: {"n": "-1", "m": "-1/2", "d": "1/2", "epsilon": "-1", MU: "-1"},
}
THEORY[measure.MANY] = THEORY[measure.PRIVACY]
"""Exponents of 1 / sqrt(n m), and of sqrt(d) / (n epsilon sqrt(m))."""


def worst(found: pd.DataFrame, what: str) -> pd.Series:
    """Return the average excess for each value of a parameter, at the hardest signal."""
    means = found.groupby([what, "signal"]).excess.mean()
    return means.groupby(level=0).max()


def slopes(found: pd.DataFrame, term: str) -> pd.DataFrame:
    """Return the exponent of the average excess for each parameter, with 95 % intervals.

    Gaussian noise for epsilon is proportional to 1 / mu(epsilon). Its exponents have their own
    column, because mu does not grow like epsilon.
    """
    rows = []
    found = found[found.term == term]
    for method in measure.METHODS:
        row = {"": method}
        for what, own in found[found.method == method].groupby("what", sort=False):
            means = worst(own, what)
            enough = len(means) >= 3 and (means > 0).all()
            row[what] = str(growth(means.index, means)) if enough else "too few points"
            if what == "epsilon":
                shifts = [measure.shift_of(epsilon) for epsilon in means.index]
                row[MU] = str(growth(shifts, means)) if enough else row[what]
        if len(row) > 1:
            rows.append(row)
    rows.append({"": f"the theorem of v2, {term}", **THEORY[term]})
    return pd.DataFrame(rows)


def risk_figure(found: pd.DataFrame, term: str) -> Figure:
    """Plot excess risk, with one panel for each parameter."""
    found = found[found.term == term]
    figure = Figure(figsize=(9.6, 3.2))
    axes = figure.subplots(1, 4, sharey=True)
    for ax, (what, own) in zip(axes, found.groupby("what", sort=False), strict=True):
        for method, runs in own.groupby("method", sort=False):
            means = worst(runs, what)
            ax.plot(means.index, means, label=method, **LOOK[method])
        ax.set(xlabel=what)
        ticks(ax.xaxis, sorted(own[what].unique()))
        ticks(ax.yaxis, (0.00001, 0.0001, 0.001, 0.01, 0.1, 1))
    axes[0].set_ylabel("excess risk")
    figure.legend(*axes[-1].get_legend_handles_labels(), loc="outside upper left", ncols=4)
    return figure


def outlier_table(found: pd.DataFrame) -> pd.DataFrame:
    """Return the averages over all trials for each share of outliers."""
    means = found.groupby("fraction").agg(
        {"filtered": "mean", "halted": "mean", "excess": "mean", "excess without": "mean"}
    )
    told = means.map(short).reset_index()
    told["fraction"] = told["fraction"].map("{:.2%}".format)
    return told.rename(columns={"fraction": "users that are outliers", "halted": "phase 1 halts"})


def mixed_table(found: pd.DataFrame) -> pd.DataFrame:
    """Return the averages over all trials for each heterogeneity of the users."""
    means = found.drop(columns="trial").groupby("heterogeneity").mean()
    return means.map(short).reset_index()


def cost_table(found: pd.DataFrame) -> pd.DataFrame:
    """Return the gradients, distances and seconds of each run."""
    told = found.assign(
        gradients=found.gradients.map("{:,}".format),
        distances=found.distances.map("{:.2e}".format),
        seconds=found.seconds.map(short),
    )
    return told.assign(**{"of n m": found["of n m"].map("{:.3f}".format)})


def cost_growth(found: pd.DataFrame) -> pd.DataFrame:
    """Return the exponents of distances and seconds in n, and of distances in epsilon."""
    rows = []
    for method, own in found.groupby("method", sort=False):
        users = own[own.epsilon == measure.EPSILON]
        budgets = own[own.n == measure.Setting().n]
        rows.append({
            "": method, "distances in n": str(growth(users.n, users.distances)),
            "seconds in n": str(growth(users.n, users.seconds)),
            "distances in epsilon": str(growth(budgets.epsilon, budgets.distances)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def write(
    tables: dict[str, pd.DataFrame], size: measure.Size, folder: Path, seconds: float
) -> Path:
    """Write the page and return its path."""
    with mpl.rc_context(STYLE):
        figure = figures_html(
            {
                f"risk-{grid.around.term}": (
                    risk_figure(tables["risk"], grid.around.term),
                    f"Average excess risk at the hardest of four gradients, where the "
                    f"{grid.around.term} term dominates. Around n = {grid.around.n:,}, m = "
                    f"{grid.around.m}, d = {grid.around.d}, epsilon = {grid.around.epsilon:g}, "
                    f"delta = {measure.DELTA:g}; {grid.trials} trials.",
                )
                for grid in size.grids
            },
            folder,
        )
    cutoff = short(float(tables["outliers"].cutoff.iloc[0]))
    body = f"""<p class="quiet">Linear losses with G = D = 1, on which the papers' rates are not
helped by curvature. Size {size.name}: {size.trials} trials; {seconds / 60:.1f} minutes. Made by
<code>python -m audits.user_level_sco.experiments --{size.name}</code>.</p>
<h2>Excess risk</h2>
{figure}
<p class="quiet">v1 minimises over a box, whose diameter grows like sqrt(d); the others over the
ball that it contains.</p>
<h2>Exponents of the average excess, with 95 % intervals</h2>
<p>Where the sampling term dominates:</p>
{table_html(slopes(tables["risk"], measure.SAMPLING))}
<p>Where the privacy term dominates:</p>
{table_html(slopes(tables["risk"], measure.PRIVACY))}
<p>Where the privacy term dominates, and users have at least 4,096 items:</p>
{table_html(slopes(tables["risk"], measure.MANY))}
<p class="quiet">"No privacy" is the minimiser of the average loss. The rate of v1 is another
one, with d in both terms. Where privacy dominates, v1 does not run, because its norm of the items
would be sqrt(d). mu(epsilon) is the shift of the Gaussian mechanism that is (epsilon, delta)-DP. In
these ranges, it grows more slowly than epsilon. With fewer than about 4,000 items, the filter of v2
bounds the distance of two users by 2 G or more, which is no bound.</p>
<h2>Means of previous algorithms</h2>
<p class="quiet">These runs are SGD as in DP-SGD, with the winsorized means of Levy et al. (2021),
or with weighted means in place of the outlier removal of Asi and Liu (2024) and Lowy et al. (2024).
Their outer loops are not run. The two means take 8 batches, and DP-SGD takes 32. DP-SGD clips to 2
G / sqrt(m). If users have similar gradients, clipping does little harm on linear losses.</p>
<h2>Gradients, distances and time</h2>
{table_html(cost_table(tables["cost"]))}
{table_html(cost_growth(tables["cost"]))}
<p class="quiet">Each item of each user of a phase is used once. The number is at most n m,
less the users that do not fill a batch. Footnote 3 of v2 says that the scores take time
O(n m d / epsilon^3), up to logarithms. The filter of v2 computes B^2 distances at each step.</p>
<h2>Users with different distributions</h2>
{table_html(mixed_table(tables["mixed"]))}
<p class="quiet">n = 32,000, m = 64, d = 4. The distribution of a user is drawn from the Dirichlet
distribution around P with concentration 1 / heterogeneity. The papers assume 0. The last five
columns are excess risks. Privacy does not depend on what the users hold.</p>
<h2>The cost and the benefit of the filter</h2>
{table_html(outlier_table(tables["outliers"]))}
<p class="quiet">n = 32,000, m = 64, d = 1; the cutoff is {cutoff} users, for a phase of 16,000.
Without the filter, and with the noise that the filter allows, nothing is private. On data as the
papers assume, no user is filtered. A few outliers are filtered, but they hardly matter. With a few
times as many outliers as the cutoff, the first phase of every run halts and returns its start.
Later phases may still come closer to the minimiser.</p>
<h2>The printed constants</h2>
{table_html(tables["least"])}
{table_html(tables["printed"])}
<p class="quiet">At delta = 1e-6. The filter can act only if scores below 3 B / 4 are possible,
2 G tau > log(4/3). This holds from the m in the last column on. The second table shows one run at
the printed constants, in one dimension and with m = 4. The filter of this run keeps every user,
because the least score exceeds 3 B / 4.</p>"""
    path = folder / "experiments.html"
    title = "User-level DP-SCO: excess risk, gradients, and the price of the filter"
    path.write_text(page_html(title, body), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all experiments and write the page."""
    asked = options(
        arguments,
        __doc__,
        full="more trials and sizes; 12 million users",
        out="reports/user_level_sco",
    )
    size = measure.FULL if asked.full else measure.QUICK
    began = time.perf_counter()
    tables = {
        "risk": pd.DataFrame(measure.all_excesses(size, asked.seed)),
        "outliers": pd.DataFrame(measure.filtered(size, asked.seed)),
        "mixed": pd.DataFrame(measure.mixed(size, asked.seed)),
        "cost": pd.DataFrame(measure.counted(size, asked.seed)),
        "least": pd.DataFrame(measure.least_users()),
        "printed": pd.DataFrame([measure.at_printed_constants(asked.seed)]),
    }
    asked.out.mkdir(parents=True, exist_ok=True)
    plain = {name: json.loads(table.to_json(orient="split")) for name, table in tables.items()}
    (asked.out / "experiments.json").write_text(json.dumps(plain))
    page = write(tables, size, asked.out, time.perf_counter() - began)
    for term in (measure.SAMPLING, measure.PRIVACY, measure.MANY):
        sys.stdout.write(slopes(tables["risk"], term).to_string(index=False) + "\n")
    for told in (mixed_table(tables["mixed"]), cost_growth(tables["cost"])):
        sys.stdout.write(told.to_string(index=False) + "\n")
    sys.stdout.write(outlier_table(tables["outliers"]).to_string(index=False) + "\n")
    sys.stdout.write(tables["printed"].to_string(index=False) + f"\nwrote {page}\n")


if __name__ == "__main__":
    main()
