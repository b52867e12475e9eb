"""Files and packages that a module depends on, found without running code.

The audits of a project usually import only a part of it. A run that repeats only what changed
therefore asks for each audit file which files it imports, directly or through other files of the
project. The answer may contain too much. It misses only what code computes at run time, such as the
name of a data file that is put together from several parts.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_STDLIB = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")
_SELF = "dpaudit"
_BY_NAME = ("import_module", "__import__", "run_module", "run_path", "spec_from_file_location")
"""Functions that import a module whose name is an argument."""
_LAZY = ("__getattr__", "attach", "attach_stub")
"""Names in a package that imports its modules when they are first used."""
_LONGEST = 200
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:\w+)?")


def is_own(file: Path, root: Path) -> bool:
    """Return whether a resolved path belongs to a project: inside it, and not installed there.

    A project directory may be so large that it contains the Python installation.
    """
    if file.suffix != ".py" or not file.is_relative_to(root) or not file.is_file():
        return False
    return not is_installed(file) and not file.is_relative_to(_PACKAGE)


def is_installed(file: Path) -> bool:
    """Return whether a resolved path belongs to Python or to an installed package."""
    installed = any(part in _INSTALLED for part in file.parts)
    return installed or any(file.is_relative_to(place) for place in _STDLIB)


def needed(files: Iterable[Path], root: Path) -> tuple[set[Path], set[str]]:
    """Return the files of a project that some of its files depend on, and their packages.

    Parameters
    ----------
    files : iterable of Path
        Files of the project with which the search starts.
    root : Path
        Directory of the project. Files outside of it are not read.

    Returns
    -------
    found : set of Path
        The given files, the files of the project that they import, directly or indirectly, and the
        files that they name in a text, such as ``"data/users.npy"`` or ``"module:function"``. If
        one of them imports a module by a computed name, all loaded modules of the project belong
        to the set.
    packages : set of str
        Names of the installed distributions that these files import.
    """
    root = root.resolve()
    modules = _Modules(root)
    open_ = [file for one in files if _in_project(file := one.resolve(), root)]
    found = set(open_)
    tops: set[str] = set()
    while open_:
        file = open_.pop()
        if file.suffix != ".py":
            continue
        more, names = modules.of(file)
        tops |= names
        open_ += more - found
        found |= more
    by_name = _distributions()
    return found, {one for top in tops for one in by_name.get(top, ())}


def _in_project(file: Path, root: Path) -> bool:
    """Return whether a file of any kind belongs to a project, as :func:`is_own` does for code."""
    if file.suffix == ".py":
        return is_own(file, root)
    return file.is_relative_to(root) and file.is_file() and not is_installed(file)


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


@dataclass(frozen=True)
class _Facts:
    """Names in one file.

    `names` are absolute, `relative` are the number of dots and the name behind them, and `texts`
    are short texts. A file is `computed` if it imports by a computed name, and `lazy` if it imports
    modules when somebody first uses them.
    """

    names: frozenset[str]
    relative: frozenset[tuple[int, str]]
    texts: frozenset[str]
    computed: bool
    lazy: bool


class _Modules:
    """Files of a project by the names of their modules."""

    def __init__(self, root: Path) -> None:
        self.root = root
        named = [(name, getattr(one, "__file__", None)) for name, one in [*sys.modules.items()]]
        paths = {name: resolved(file) for name, file in named if file}
        self.loaded = {name: file for name, file in paths.items() if is_own(file, root)}
        places = dict.fromkeys([Path(entry or ".").resolve() for entry in sys.path])
        self.places = [place for place in (*places, root) if place.is_relative_to(root)]
        self._known: dict[str, Path | None] = {}

    def of(self, file: Path) -> tuple[set[Path], set[str]]:
        """Return the files that one file names, and the packages that it imports."""
        facts = _facts(file)
        if facts is None:
            return set(), set()
        found = set(self.loaded.values()) if facts.computed else set()
        if facts.lazy and file.name == "__init__.py":
            found |= {one for one in file.parent.rglob("*.py") if is_own(one, self.root)}
        tops: set[str] = set()
        for name in facts.names:
            own = [one for part in _prefixes(name) if (one := self._file_of(part)) is not None]
            found |= {*own}
            top = name.partition(".")[0]
            if not own and top not in sys.stdlib_module_names and top != _SELF:
                tops.add(top)
        for dots, name in facts.relative:
            base = file.parent.joinpath(*[".."] * (dots - 1)).resolve()
            found |= {one for part in _prefixes(name) if (one := self._at(base, part)) is not None}
            found |= {one for one in [base / "__init__.py"] if is_own(one, self.root)}
        return found | set(self._named(file, facts.texts)), tops

    def _named(self, file: Path, texts: Iterable[str]) -> Iterator[Path]:
        """Yield the files that texts name, as a path or as a module."""
        for text in texts:
            if _MODULE.fullmatch(text):
                own = map(self._file_of, _prefixes(text.partition(":")[0]))
                yield from (module for module in own if module is not None)
            for base in (file.parent, self.root, Path.cwd()):
                try:
                    path = (base / text).resolve()
                    if _in_project(path, self.root):
                        yield path
                except (OSError, ValueError):  # too long, or a NUL
                    continue

    def _file_of(self, name: str) -> Path | None:
        """Return the file of a module of the project, loaded or not; None for other modules."""
        if name in self.loaded:
            return self.loaded[name]
        if name not in self._known:
            found = (self._at(place, name) for place in self.places)
            self._known[name] = next((one for one in found if one is not None), None)
        return self._known[name]

    def _at(self, base: Path, name: str) -> Path | None:
        path = base.joinpath(*name.split("."))
        for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
            if is_own(file, self.root):
                return file
        return None


@functools.cache
def resolved(name: str) -> Path:
    """Links are resolved once for each of about a thousand modules, and not in every session."""
    return Path(name).resolve()


def _prefixes(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _facts(file: Path) -> _Facts | None:
    """Return the names in a file; None if the file cannot be read or is no Python."""
    try:
        stat = file.stat()
        return _facts_of(file, stat.st_mtime_ns, stat.st_size)
    except (OSError, SyntaxError, ValueError):
        return None


@functools.cache
def _facts_of(file: Path, mtime: int, size: int) -> _Facts:
    names, relative, texts = set[str](), set[tuple[int, str]](), set[str]()
    computed = lazy = False
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            made = {start + alias.name.replace("*", "") for alias in node.names}
            made = {name.removesuffix(".") for name in made}
            if node.level:
                relative |= {(node.level, name) for name in made if name}
            else:
                names |= made
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if 0 < len(node.value) <= _LONGEST and "\n" not in node.value:
                texts.add(node.value)
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            plain = bool(node.args) and isinstance(node.args[0], ast.Constant)
            computed |= name in _BY_NAME and not plain
            lazy |= name in _LAZY
        elif isinstance(node, ast.FunctionDef):
            lazy |= node.name in _LAZY
    return _Facts(frozenset(names), frozenset(relative), frozenset(texts), computed, lazy)
