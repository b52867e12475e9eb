"""Link the names in docstrings to the pages that document them, and keep plain words as words.

A docstring names an object by its path or by its bare name. The reference documents an object under
the path from which users import it. Objects of dpaudit that the reference does not list are parts
of the engine (ARCHITECTURE.md). These objects are shown as code, without a link. A name that
matches nothing remains a warning, so the build fails.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode

PACKAGE = Path(__file__).resolve().parents[1] / "dpaudit"


def resolve(app: Any, env: Any, node: nodes.Element, contnode: nodes.Element) -> Any:
    """Find the documented object with the same last name, or an internal object."""
    if node.get("refdomain") != "py":
        return None
    last = str(node["reftarget"]).rpartition(".")[2]
    objects = env.get_domain("py").objects
    own = {
        (entry.docname, entry.node_id): name
        for name, entry in objects.items()
        if name.rpartition(".")[2] == last
    }
    if len(own) == 1:
        ((docname, node_id), name) = own.popitem()
        return make_refnode(app.builder, node["refdoc"], docname, node_id, contnode, name)
    return contnode if last in _inside() else None


@functools.cache
def _inside() -> set[str]:
    """Names of the modules, classes and functions of dpaudit."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        found.add(path.parent.name if path.stem == "__init__" else path.stem)
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(part, ast.ClassDef | ast.FunctionDef):
                found.add(part.name)
    return found


def plain_types(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Undo napoleon's treatment of types, because types in docstrings are words and not names."""
    kinds = {}
    for line in lines:
        if found := re.match(r":vartype ([^:]+): (.*)", line):
            kinds[found[1]] = found[2].replace("*", r"\*")
    told: list[str] = []
    for line in lines:
        if line.startswith(":vartype"):
            continue
        if found := re.match(r":ivar ([^:]+):", line):
            *others, last = found[1].split(", ")
            told += [f":ivar {other}: as `{last}`" for other in others]
            kind = f" ({kinds[found[1]]})" if found[1] in kinds else ""
            line = f":ivar {last}:{kind}{line[found.end() :]}"
        # Numbered references of many docstrings are on one page.
        told.append(re.sub(r"^\.\. \[\d+\] ", "#. ", line))
    lines[:] = told
    # "The usual case: ..." of an attribute is a sentence, not a type with its meaning.
    if what in ("attribute", "property", "data") and lines:
        for at, line in enumerate(lines):
            if found := re.match(r":type: (.*)", line):
                del lines[at]
                first = next((i for i, text in enumerate(lines) if text.strip()), None)
                if first is not None:
                    lines[first] = f"{found[1]}: {lines[first]}"
                break
