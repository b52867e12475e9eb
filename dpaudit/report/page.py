"""Shared parts of report pages: templates, styles, script and content security policy.

A page loads nothing from the network, and its content security policy forbids such loads.
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

from dpaudit.results import words
from dpaudit.store import KeptRecord, StoredRun

ASSETS = Path(__file__).parent / "assets"


def fill(template: str, *styles: str, assets: Path = ASSETS, **values: Any) -> str:
    """Return a page, or a part of a page, as text.

    Parameters
    ----------
    template : str
        Name of a file in the assets.
    *styles : str
        Names of the style sheets in the assets that are put into the page.
    assets : Path
        Directory of the templates and style sheets, in addition to those of this package.
    **values
        Values that the template shows. The template escapes all values.
    """
    environment = _environment(assets)
    assert environment.loader is not None
    script, *sheets = (
        environment.loader.get_source(environment, name)[0] for name in ("report.js", *styles)
    )
    return environment.get_template(template).render(
        # These files belong to the project, not to a user, and they are the only text that is not
        # escaped.
        style=Markup("\n".join(sheets)),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **values,
    )


@functools.cache
def _environment(assets: Path) -> Environment:
    """Return the compiled templates.

    The templates are cached, because compiling takes longer than filling.
    """
    environment = Environment(
        loader=FileSystemLoader([assets, ASSETS]),
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
        # The script ``report.js`` unpacks this format.
        packed=lambda text: base64.b64encode(zlib.compress(text.encode("utf-8"), 9)).decode(),
    )
    return environment


def kept(run: StoredRun, kind: str) -> Mapping[str, KeptRecord]:
    """Return older records of one kind, by id, which a run of a selection kept."""
    return {older.id: older for older in run.kept if older.kind == kind}


def typed(path: Path) -> Path:
    """Return a path as a user would type it in the working directory."""
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return path.relative_to(Path.cwd())
    return path


def _breakable(text: str) -> Markup:
    """Insert possible line breaks after the joints of a long name."""
    parts = re.split(r"(?<=[_,:/(\[-])(?=[^\s_:])", str(text))
    return Markup("<wbr>").join(escape(part) for part in parts)
