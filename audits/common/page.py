"""What all experiments share: the command line, and a page with claims or tables and figures."""

from __future__ import annotations

import argparse
import base64
import html
import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
import pandas as pd
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

STYLE = {
    "svg.fonttype": "path", "svg.hashsalt": "dpaudit", "figure.constrained_layout.use": True,
    "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left",
    "axes.titlesize": 9, "axes.labelsize": 8.5, "font.size": 8, "legend.frameon": False,
    "lines.markersize": 4.5, "lines.linewidth": 1.4, "errorbar.capsize": 2.5,
}  # fmt: skip

PAGE_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1c2733; background: #f4f6f8; margin: 0; }
main { max-width: 1060px; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .6rem; }
.quiet, figcaption { color: #5c6979; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; background: #fff; }
th, td { text-align: left; vertical-align: top; padding: .45rem .7rem; }
th { color: #5c6979; } tr + tr td { border-top: 1px solid #e1e6ec; }
figure { margin: 0 0 1.2rem; background: #fff; padding: .8rem 1rem; }
figure img { width: 100%; height: auto; } figcaption { font-size: .87rem; }
"""


def options(
    arguments: Sequence[str] | None, doc: str | None, *, full: str, out: str, jobs: bool = False
) -> argparse.Namespace:
    """Return the options of a command that runs experiments.

    Parameters
    ----------
    arguments : sequence of str or None
        The arguments; None for those of the process.
    doc : str or None
        Help text of the command.
    full : str
        Help text of ``--full``.
    out : str
        Default of ``--out``, the directory of the page.
    jobs : bool, optional
        Whether there is an option ``--jobs``. The default is False.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true", help="a few minutes (the default)")
    group.add_argument("--full", action="store_true", help=full)
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--seed", type=int, default=0)
    if jobs:
        parser.add_argument("--jobs", type=int, default=-1, help="processes; results do not change")
    asked = parser.parse_args(arguments)
    if importlib.util.find_spec("statsmodels") is None:
        parser.error("statsmodels must be installed. Run pip install '.[papers]'")
    return asked


def ticks(axis: Axis, values: Sequence[float]) -> None:
    """Make an axis logarithmic and label the given values, with k for thousands from 10,000 on."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_locator(NullLocator())


def _plain(value: float, _: int) -> str:
    return f"{value / 1000:g}k" if value >= 10_000 else f"{value:g}"


def table_html(table: pd.DataFrame) -> str:
    """Return a table as HTML without shortening the text of the table."""
    with pd.option_context("display.max_colwidth", None):
        return table.to_html(index=False, border=0)


def figures_html(figures: Mapping[str, tuple[Figure, str]], folder: Path) -> str:
    """Write figures as SVG into a folder and return HTML that contains the figures and captions."""
    parts = []
    with mpl.rc_context(STYLE):
        for name, (figure, caption) in figures.items():
            drawn = io.BytesIO()
            figure.savefig(drawn, format="svg", metadata={"Date": None})
            (folder / f"{name}.svg").write_bytes(drawn.getvalue())
            source, words = base64.b64encode(drawn.getvalue()).decode(), html.escape(caption)
            parts.append(
                f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{source}">'
                f"<figcaption>{words}</figcaption></figure>"
            )
    return "".join(parts)


def page_html(title: str, body: str) -> str:
    """Return a whole HTML page."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{PAGE_STYLE}</style></head><body><main>
<h1>{title}</h1>
{body}
</main></body></html>
"""
