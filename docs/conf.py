"""Configuration of the site, which `make docs` builds."""

from __future__ import annotations

import shutil
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

import make_papers  # noqa: E402  # beside this file
import resolving  # noqa: E402

project = "dpaudit"
author = "the authors of dpaudit"
copyright = author
release = version = version_of("dpaudit")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "findings/*"]
suppress_warnings: list[str] = []

nb_execution_mode = "off"  # `make docs` runs the notebooks and compares their outputs
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# Docstrings describe types in words, and signatures show names and defaults.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autoclass_content = "class"
napoleon_google_docstring = False
# Types of parameters are words such as "sequence of NeighborPair", not names.
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
nitpick_ignore_regex = [
    # Built-in exceptions, numpy and similar packages have their own pages elsewhere. The build does
    # not ask other hosts for an inventory of names.
    (r"py:.*", r"(builtins\.)?(ValueError|TypeError|AssertionError|KeyError|AttributeError)"),
    (r"py:.*", r"(numpy|np|matplotlib|concurrent|hypothesis|collections|typing|enum)\..*"),
    # Bases and annotations that autodoc prints without their modules.
    (r"py:class", r"(float|int|str|tuple|dict|enum\.\w+|Enum|Exception|UserWarning)"),
]

# Prompts and output are not copied.
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "pydata_sphinx_theme"
html_title = "dpaudit"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_extra_path = ["../dpaudit/store/results.schema.json"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
# A page without subpages needs no list of subpages.
html_sidebars = {
    page: []
    for page in (
        *("index", "quickstart", "tutorial", "choose", "errors", "ci", "gallery"),
        *("findings", "measured", "genindex", "search", "py-modindex"),
    )
}
html_theme_options: dict[str, Any] = {
    "logo": {"text": "dpaudit", "alt_text": "dpaudit: first page"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_nav_level": 1,
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": False,
}


def copy_reference_run(app: Any, exception: Exception | None) -> None:
    """Copy the pages of the reference run next to the pages of the site, unchanged."""
    if exception is None and app.builder.format == "html":
        shutil.copytree(
            make_papers.stored_run(ROOT),
            Path(app.outdir) / "reference-run",
            dirs_exist_ok=True,
            # Only linked pages are copied, because the datasets of pairs are only needed for
            # replays.
            ignore=shutil.ignore_patterns("*.npz", ".lock*", "reference"),
        )


def setup(app: Any) -> None:
    """Create the pages of papers before the build, and copy the reference run after it."""
    app.connect("builder-inited", lambda app: make_papers.write(ROOT, HERE / "papers"))
    app.connect("missing-reference", resolving.resolve)
    app.connect("autodoc-process-docstring", resolving.plain_types, priority=600)  # after napoleon
    app.connect("build-finished", copy_reference_run)
