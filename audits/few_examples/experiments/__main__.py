"""Experiments on user-level privacy with few examples per user.

One command performs all experiments.

    python -m audits.few_examples.experiments [--quick|--full] [--out reports/few_examples]

The command writes the figures, `experiments.json` and `experiments.html`. The figures show how many
users with m examples each are needed, at equal error and equal epsilon. There are three tasks. Each
task is solved with clipping and by the two baselines. The figures also show the exact share of the
budget that DelStab uses. For each theorem, the figures show the least m at which the theorem is
informative.
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
from matplotlib.figure import Figure

from audits.common.intervals import growth, short
from audits.common.page import STYLE, figures_html, options, page_html, table_html, ticks
from audits.few_examples.experiments import measure
from dpaudit.results.charts import COLOURS

LOOK = {
    measure.CLIPPED: {"color": COLOURS["left"], "marker": "o"},
    measure.GROUP: {"color": COLOURS["right"], "marker": "^"},
    measure.ONE: {"color": COLOURS["muted"], "marker": ".", "ls": "--"},
}
BUDGETS = ((256, 1.0, 1e-6, 0.01), (256, 1.0, 1e-6, 0.05), (256, 1.0, 1e-6, 0.5),
           (256, 2.0, 1e-6, 0.05), (60, 4.0, 1e-3, 0.5), (21, 9.0, 0.4, 4.0))  # fmt: skip
"""Users, epsilon, delta, and the epsilon of the majority that DelStab runs."""


def users_figure(found: pd.DataFrame) -> Figure:
    """Plot users against m, with a panel for each task and the slope of the theory."""
    figure = Figure(figsize=(9.6, 3.4))
    for ax, task in zip(figure.subplots(1, 3), measure.tasks(), strict=True):
        own = found[found.task == task.name]
        examples = sorted(own.m.unique())
        for method, points in own.groupby("method", sort=False):
            if method == measure.ONE:
                ax.axhline(points.users.iloc[0], label=method, color=LOOK[method]["color"], ls="--")
                continue
            room = [points.users - points.low, points.high - points.users]
            ax.errorbar(points.m, points.users, np.maximum(room, 0), label=method, **LOOK[method])
        start = own[(own.method == measure.CLIPPED) & (own.m == 1)].users.iloc[0]
        m = np.array([x for x in examples if x <= task.until], dtype=float)
        words = {-1.0: "1/m", -0.5: "1/sqrt(m)"}[task.theory]
        ax.plot(m, start * m**task.theory, color=COLOURS["muted"], lw=0.8, ls=":", label=words)
        ticks(ax.xaxis, examples)
        ax.set(yscale="log", xlabel="m, examples of each user", title=task.name)
        ax.legend(fontsize=7)
    figure.axes[0].set_ylabel("users")
    return figure


def slopes(found: pd.DataFrame) -> pd.DataFrame:
    """Return the power of m with which the number of users changes, by method and task."""
    rows = []
    for task in measure.tasks():
        own = found[(found.task == task.name) & (found.m <= task.until)]
        row = {"task": task.name, "alpha": f"{task.alpha:g}"}
        for method in (measure.CLIPPED, measure.GROUP):
            points = own[own.method == method].sort_values("m")
            power = growth(points.m, points.users)
            row[method] = f"m^{power.value:.2f} [{power.low:.2f}, {power.high:.2f}]"
        row["theory, privacy term"] = f"m^{task.theory:g}"
        rows.append(row)
    return pd.DataFrame(rows)


def shown(found: pd.DataFrame) -> pd.DataFrame:
    """Return all numbers of users, each with its interval and its best clipping threshold."""
    rows = [
        {
            "task": row.task, "method": row.method, "m": row.m,
            "users": f"{short(row.users)} [{short(row.low)}, {short(row.high)}]",
            "clipped at": short(row.cap),
        }
        for row in found.itertuples()
    ]  # fmt: skip
    return pd.DataFrame(rows)


def write(
    tables: dict[str, pd.DataFrame], size: measure.Size, folder: Path, seconds: float
) -> Path:
    """Write the page, and return its path."""
    with mpl.rc_context(STYLE):
        figures = figures_html(
            {
                "users": (
                    users_figure(tables["users"]),
                    f"Users for a success probability of 2/3 at epsilon = {measure.EPSILON:g}"
                    "; 95 % intervals by the bootstrap over data sets.",
                )
            },
            folder,
        )
    body = f"""<p class="quiet">Success within alpha, over data sets by simulation and over the
mechanism's own randomness exactly. Size {size.name}: {size.trials} data sets for each point;
{seconds / 60:.1f} minutes. Made by
<code>python -m audits.few_examples.experiments --{size.name}</code>.</p>
<h2>Users that m examples each require</h2>
{figures}
{table_html(slopes(tables["users"]))}
<p class="quiet">Least squares on logarithms over the m of the theory, with robust 95 % intervals.
The number of users is a sum of three terms. One decreases as in the theory, one decreases like 1/m
(sampling, for selection), and log(candidates)/epsilon is constant.</p>
<h2>The share of its budget that DelStab uses</h2>
{table_html(tables["budget"])}
<p class="quiet">Computed over all pairs of users with one bit each. A majority uses epsilon-bar =
epsilon / 3 where the test may fail, and almost nothing elsewhere. With this epsilon-bar R_1 hides
how many users must be deleted. The most that was found is 0.62 of epsilon, with three kinds of
users, where the first and the last conflict (statement few.lemma18).</p>
<h2>The m from which on the theorems are informative</h2>
{table_html(tables["frontier"])}
<p class="quiet">With all constants explicit. Theorems 4 and 37 are compared with themselves at m =
1; Theorem 11, at constant 1 in Lemma 19, with an exponential mechanism on one example of each
user.</p>
<h2>All numbers</h2>
{table_html(shown(tables["users"]))}"""
    path = folder / "experiments.html"
    path.write_text(
        page_html("User-level privacy with few examples per user", body), encoding="utf-8"
    )
    return path


def points(size: measure.Size) -> list[tuple[int, str, int]]:
    """Return the points to measure.

    Each point has a task, a method and a value of m. For one example per user, m is 1.
    """
    return [
        (task, method, m)
        for task in range(3)
        for method in measure.METHODS
        for m in (size.examples if method != measure.ONE else (1,))
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all experiments and write the page."""
    asked = options(
        arguments, __doc__, full="more data sets, larger m", out="reports/few_examples", jobs=True
    )
    size = measure.FULL if asked.full else measure.QUICK
    began = time.perf_counter()
    parallel = Parallel(n_jobs=asked.jobs)
    tables = {
        "users": pd.DataFrame(parallel(
            delayed(measure.users_needed)(*point, size, asked.seed) for point in points(size)
        )),
        "budget": pd.DataFrame(parallel(delayed(measure.used)(*given) for given in BUDGETS)),
        "frontier": pd.DataFrame(measure.frontier()),
    }  # fmt: skip
    asked.out.mkdir(parents=True, exist_ok=True)
    plain = {name: json.loads(table.to_json(orient="split")) for name, table in tables.items()}
    (asked.out / "experiments.json").write_text(json.dumps(plain))
    page = write(tables, size, asked.out, time.perf_counter() - began)
    for table in (slopes(tables["users"]), tables["budget"], tables["frontier"]):
        sys.stdout.write(table.to_string(index=False) + "\n\n")
    sys.stdout.write(f"wrote {page}\n")


if __name__ == "__main__":
    main()
