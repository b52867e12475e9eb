"""What the pages of a report share: templates, styles, script, and their content security policy.

A page asks nothing of the network, and says so to the browser.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from dpaudit.report import statements
from dpaudit.results import words
from dpaudit.store import Kept, Run

ASSETS = Path(__file__).parent / "assets"


def fill(template: str, *styles: str, **values: Any) -> str:
    """Return a page as text.

    Parameters
    ----------
    template : str
        Name of a file in the assets, which extends ``base.html.j2``.
    *styles : str
        Names of the style sheets in the assets, put into the page.
    **values
        What the template shows. All of it is escaped.
    """
    script = _asset("report.js")
    return (
        _environment()
        .get_template(template)
        .render(
            # Files of the project, not of a user: the only text that is not escaped.
            style=Markup("\n".join(map(_asset, styles))),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            **values,
        )
    )


@functools.cache
def _environment() -> Environment:
    """Templates are compiled once: that takes longer than to fill a page."""
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=words.number,
        least=words.least,
        most=words.most,
        words=words.count,
        duration=words.duration,
        share=words.share,
        moment=words.moment,
        breakable=_breakable,
        ratio=statements.ratio_words,
        exact=statements.exact,
        parts=statements.parts_of,
        python=statements.as_python,
        packed=_packed,
    )
    return environment


def kept(run: Run, kind: str) -> Mapping[str, Kept]:
    """Return what a run of a selection kept of older ones, by id: of "audit" or "statement"."""
    return {older.id: older for older in run.kept if older.kind == kind}


def typed(path: Path) -> Path:
    """Return a path as it is typed from the working directory."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    return path


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _packed(html: str) -> str:
    """Return HTML compressed and in base64, as ``report.js`` unpacks it."""
    return base64.b64encode(zlib.compress(html.encode("utf-8"), 9)).decode()


def _breakable(text: str) -> Markup:
    """Allow a line break after the joints of a long name."""
    parts = re.split(r"(?<=[_,:/(\[-])(?=[^\s_:])", str(text))
    return Markup("<wbr>").join(escape(part) for part in parts)
