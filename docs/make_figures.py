"""Create the figures of the gallery from real audits. `python docs/make_figures.py`.

Each figure is the result of the code that the gallery shows. This script runs that code. The
figures are committed, because the site is built without running audits.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from snippets import Page  # noqa: E402


def main() -> None:
    """Run the gallery in the folder of its figures, and make the files small and reproducible."""
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "dpaudit", "svg.fonttype": "none", "figure.dpi": 72})
    folder = HERE / "figures"
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        for _ in Page(HERE / "gallery.md").run():
            pass
    for file in sorted(folder.glob("*.svg")):
        text = file.read_text(encoding="utf-8")
        text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
        text = re.sub(r"(\d+\.\d{2})\d+", r"\1", text)  # a hundredth of a point is enough
        text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
        file.write_text(text, encoding="utf-8")
        print(f"{file.relative_to(HERE.parent)}: {len(text):,} bytes")


if __name__ == "__main__":
    main()
