"""Statements in mathematics: LaTeX as MathML, which browsers draw without a script or a font."""

from __future__ import annotations

import functools

from markupsafe import Markup, escape


@functools.lru_cache(maxsize=1024)
def mathml(latex: str) -> Markup:
    """Return a formula as a display in MathML; as it was written, where it cannot be read.

    Parameters
    ----------
    latex : str
        Without dollar signs.
    """
    try:
        from latex2mathml.converter import convert

        # Of a text in a formula the converter makes elements as it stands.
        found = convert(latex.replace("<", r"\lt ").replace(">", r"\gt "), display="block")
    except Exception:  # the converter is an extra, and raises what it happens to run into
        return Markup("<code>") + escape(latex) + Markup("</code>")
    return Markup(found)
