"""The experiments of geometric_median, Section 5, repeated by one command.

    python -m audits.geometric_median.experiments [--quick|--full] [--out reports/experiments]

The command writes the figures, `experiments.json` and `experiments.html`. The page begins with the
verdict on each claim in Section 5. For choices that the paper does not specify, `RULES` states the
choices made in this module. `CHOICES` states the other choices that are tried.

Times are measured within this process, and only ratios of these times are judged. The page shows
seconds only for information.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

import pandas as pd

from audits.common.page import options
from audits.geometric_median.experiments import setup
from audits.geometric_median.experiments.claims import CLAIMS, Results
from audits.geometric_median.experiments.descent import (
    ablation,
    all_descents,
    chosen,
    wall_clock,
)
from audits.geometric_median.experiments.figures import write
from audits.geometric_median.experiments.radius import radius_ratios, seconds


def measure(size: setup.Size, *, seed: int, say: Callable[[str], None]) -> Results:
    """Run all experiments."""
    found = Results(size=size, seed=seed, took={})
    figure_1 = [(family, s) for family, scales in setup.FIGURE_1.items() for s in scales]
    trend = [(family, s) for family, scales in size.trend_scales.items() for s in scales]

    def part(name: str, words: str, rows: Iterable[object]) -> None:
        began = time.perf_counter()
        made = list(rows)
        frames = isinstance(made[0], pd.DataFrame)
        table = pd.concat(made, ignore_index=True) if frames else pd.DataFrame(made)
        setattr(found, name, table)
        found.took[words] = time.perf_counter() - began
        say(f"{words}: {found.took[words]:.0f} s")

    part("ratios", "Figure 1", (
        radius_ratios(family, s, 1000, 10, trials=size.ratio_trials, seed=seed)
        for family, s in figure_1
    ))  # fmt: skip
    part("trend", "the same for other n and d", (
        radius_ratios(family, s, n, d, trials=size.trend_trials, seed=seed)
        for family, s in trend for n in (500, 1000, 2000) for d in (5, 10, 20)
    ))  # fmt: skip
    part("betas", "and other beta of RadiusFinder", (
        radius_ratios(setup.CLUSTER, 4.0, n, 10, trials=size.ratio_trials, seed=seed, beta=beta)
        for beta in setup.BETAS for n in (500, 1000)
    ))  # fmt: skip
    part("table", "Table 1", (
        row for family, s in (figure_1 if size is setup.FULL else figure_1[::3])
        for row in seconds(family, s, 1000, 10, repeats=3, seed=seed)
    ))  # fmt: skip
    part("times", "and time against n", (
        row for n in size.timed
        for row in seconds(setup.CLUSTER, 4.0, n, 10, repeats=3 if n <= 2000 else 1, seed=seed)
    ))  # fmt: skip
    part("errors", "Figures 2 to 5", (all_descents(n, size, seed=seed) for n in size.longest))
    part("ablation", "step size of DPGD", (
        ablation(family, scale, n, trials=trials, seed=seed)
        for n, trials in size.ablation.items() for family in setup.SCALES
        for scale in (setup.SCALES[family] if n == 1000 else (setup.MIDDLE[family],))
    ))  # fmt: skip
    part("walls", "time at equal error", (
        wall_clock(chosen(found.errors, family, n), seed=seed)
        for n in size.longest for family in setup.MIDDLE
    ))  # fmt: skip
    return found


def record(found: Results, claims: Sequence[object]) -> dict[str, object]:
    """Return plain data for JSON, with tables by column."""
    tables = {k: v for k, v in vars(found).items() if isinstance(v, pd.DataFrame)}
    plain = {k: json.loads(v.to_json(orient="split", index=False)) for k, v in tables.items()}
    plain |= {"size": asdict(found.size), "seed": found.seed, "took": found.took}
    return {"claims": [claim._asdict() for claim in claims], "rules": setup.RULES, "results": plain}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all experiments and write the page."""
    asked = options(
        arguments, __doc__, full="the sizes of the paper: 25 minutes", out="reports/experiments"
    )

    def say(words: str) -> None:
        sys.stdout.write(words + "\n")
        sys.stdout.flush()

    found = measure(setup.FULL if asked.full else setup.QUICK, seed=asked.seed, say=say)
    claims = [judge(found) for judge in CLAIMS.values()]
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "experiments.json").write_text(json.dumps(record(found, claims)))
    page = write(found, claims, asked.out)
    for claim in claims:
        say(f"\n{claim.id}: {claim.verdict} ({claim.choice or '-'})\n{claim.numbers}")
    say(f"wrote {page}")


if __name__ == "__main__":
    main()
