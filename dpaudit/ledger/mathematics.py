"""Statements in mathematics: LaTeX as MathML, which browsers draw without a script or a font."""

from __future__ import annotations

import functools
from xml.etree import ElementTree

from markupsafe import Markup, escape

_MATHML = "http://www.w3.org/1998/Math/MathML"
_ATTRIBUTES = {
    "accent", "columnalign", "columnlines", "columnspacing", "depth", "display", "displaystyle",
    "fence", "form", "height", "linebreak", "linethickness", "lspace", "mathsize", "mathvariant",
    "maxsize", "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rspace",
    "scriptlevel", "separator", "stretchy", "voffset", "width",
}  # fmt: skip
"""Attributes that a formula keeps: none of them links, styles or runs anything."""


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

        # The converter makes elements of angle brackets in the text of a formula.
        found = convert(latex.replace("<", r"\lt ").replace(">", r"\gt "), display="block")
        return Markup(_plain(found))
    except Exception:  # the converter is an extra, and raises what it happens to run into
        return Markup("<code>") + escape(latex) + Markup("</code>")


def _plain(found: str) -> str:
    """Return MathML without the attributes that commands such as href and style bring along."""
    root = ElementTree.fromstring(found)
    for element in root.iter():
        if not element.tag.startswith(f"{{{_MATHML}}}m"):
            raise ValueError(f"{element.tag} is no element of MathML")
        element.tag = element.tag.removeprefix(f"{{{_MATHML}}}")
        for name in set(element.attrib) - _ATTRIBUTES:
            del element.attrib[name]
    root.set("xmlns", _MATHML)
    return ElementTree.tostring(root, encoding="unicode")
