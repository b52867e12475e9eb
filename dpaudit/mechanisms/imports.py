"""Files and packages that an audit depends on, found without running code.

The audits of a project usually import only a part of it. A run that repeats only what changed
therefore asks for each audit file which files it imports, directly or through other files of the
project. The answer may contain too much, which costs a repetition. If a file imports something that
cannot be followed, the answer says so, and its audits are always repeated.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

PACKAGE = Path(__file__).resolve().parents[1]
"""Directory of dpaudit, which is compared as a whole."""

SELF = "dpaudit"

_STDLIB = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")
_BY_NAME = ("import_module", "__import__", "importorskip", "find_spec")
"""Functions that import or look for a module whose name is their first argument."""
_UNSEEN = ("run_module", "run_path", "spec_from_file_location", "SourceFileLoader", "exec")
"""Functions that run code of which nothing is known here."""
_LAZY = ("__getattr__", "attach", "attach_stub")
"""Names in a package that imports its modules when they are first used."""
_LONGEST = 200
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[\w.]+)?")


def is_own(file: Path, root: Path) -> bool:
    """Return whether a resolved path belongs to a project: inside it, and not installed there.

    A project directory may be so large that it contains the Python installation.
    """
    is_inside = file.is_relative_to(root) and not file.is_relative_to(PACKAGE)
    return is_inside and not is_installed(file) and file.is_file()


def is_installed(file: Path) -> bool:
    """Return whether a resolved path belongs to Python or to an installed package."""
    installed = any(part in _INSTALLED for part in file.parts)
    return installed or any(file.is_relative_to(place) for place in _STDLIB)


@dataclass
class Dependencies:
    """What some files of a project depend on.

    Attributes
    ----------
    files : set of Path
        The files themselves, the files of the project that they import, directly or indirectly, and
        the files that they name in a text, such as ``"data/users.npy"`` or ``"module:function"``.
    packages : set of str
        Names of the installed distributions that these files import, and of those that these need.
    unseen : str
        Reason why there may be more. Empty if there is none.
    """

    files: set[Path] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    unseen: str = ""


def dependencies(files: Iterable[Path], root: Path, *, texts: bool = True) -> Dependencies:
    """Return what files depend on, in a project whose directory is `root`.

    Files outside of `root` are not read. Without `texts`, files that are only named in a text do
    not count, such as data.
    """
    root = root.resolve()
    modules, found, tops = _Modules(root, texts), Dependencies(), set[str]()
    given = {file.resolve() for file in files}
    open_ = [file for file in given if is_own(file, root)]
    while open_:
        file = open_.pop()
        if file in found.files:
            continue
        found.files.add(file)
        if file.suffix == ".py":
            open_ += modules.of(file, found, tops)
    found.packages = distributions(tops)
    return found


def distributions(tops: Iterable[str]) -> set[str]:
    """Return the installed distributions of top-level modules, and those that they require."""
    known = _distributions()
    return {*_with_requirements(frozenset(one for top in tops for one in known.get(top, ())))}


@functools.cache
def _distributions() -> dict[str, list[str]]:
    return dict(metadata.packages_distributions())


@functools.cache
def _with_requirements(names: frozenset[str]) -> frozenset[str]:
    """Return installed distributions, and all installed distributions that they require."""
    found, open_ = dict[str, str](), list(names)
    while open_:
        try:
            distribution = metadata.distribution(open_.pop())
        except (metadata.PackageNotFoundError, ValueError):
            continue
        name = distribution.metadata["Name"]
        if name.lower() in found:
            continue
        found[name.lower()] = name
        for words in distribution.requires or ():
            try:
                one = Requirement(words)
            except InvalidRequirement:
                continue
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                open_.append(one.name)
    return frozenset(found.values())


@dataclass(frozen=True)
class _Facts:
    """Names in one file.

    `names` are absolute, `relative` are the number of dots and the name behind them, and `texts`
    are short texts. `stars` are the packages of which everything is imported, as names and as
    numbers of dots with names. A file is `unseen` if it imports what cannot be followed, and `lazy`
    if it imports modules when somebody first uses them.
    """

    names: frozenset[str]
    relative: frozenset[tuple[int, str]]
    stars: frozenset[tuple[int, str]]
    texts: frozenset[str]
    unseen: bool
    lazy: bool


class _Modules:
    """Files of a project by the names of their modules."""

    def __init__(self, root: Path, texts: bool) -> None:
        self.root, self.texts = root, texts
        named = [(name, getattr(one, "__file__", None)) for name, one in [*sys.modules.items()]]
        self.loaded = {name: _resolved(file) for name, file in named if file}
        places = dict.fromkeys([Path(entry or ".").resolve() for entry in sys.path])
        self.places = [place for place in (*places, root) if place.is_relative_to(root)]
        self._known: dict[str, list[Path]] = {}

    def of(self, file: Path, found: Dependencies, tops: set[str]) -> Iterator[Path]:
        """Yield the files that one file needs; note its packages, and what cannot be followed."""
        yield from _packages_around(file)
        facts = _facts(file)
        if facts is None or facts.unseen:
            reason = "imports what cannot be followed" if facts else "cannot be read"
            found.unseen = found.unseen or f"{file.name} {reason}"
        if facts is None:
            return
        if facts.lazy and file.name == "__init__.py":
            yield from self._all_of(file.parent)
        for name in facts.names:
            own = [one for part in _prefixes(name) for one in self._files_of(part)]
            yield from own
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top != SELF:
                tops.add(top)
                if not own and (place := self._elsewhere(top)):
                    found.unseen = found.unseen or f"{file.name} imports {place}"
        for dots, name in facts.relative:
            base = file.parent.joinpath(*[".."] * (dots - 1)).resolve()
            yield from (one for one in [base / "__init__.py"] if is_own(one, self.root))
            yield from (one for part in _prefixes(name) for one in self._at(base, part))
        for dots, name in facts.stars:
            base = file.parent.joinpath(*[".."] * (dots - 1)).resolve()
            for one in self._at(base, name) if dots else self._files_of(name):
                if one.name == "__init__.py":  # `__all__` may name its modules
                    yield from self._all_of(one.parent)
        if self.texts:
            yield from self._named(file, facts.texts)

    def _all_of(self, folder: Path) -> list[Path]:
        return [file for file in folder.rglob("*.py") if is_own(file, self.root)]

    def _elsewhere(self, top: str) -> str:
        """Return the name of a loaded module that is neither installed nor in the project."""
        file = self.loaded.get(top)
        if file is None or is_installed(file) or file.is_relative_to(self.root):
            return ""
        return f"{top}, which is outside of the project"

    def _named(self, file: Path, texts: Iterable[str]) -> Iterator[Path]:
        """Yield the files that texts name, as a path or as a module."""
        for text in texts:
            if _MODULE.fullmatch(text):
                for part in _prefixes(text.partition(":")[0]):
                    yield from self._files_of(part)
            for words in {text, text.rpartition(":")[0], text.partition("=")[2]} - {""}:
                for base in (file.parent, self.root, Path.cwd()):
                    try:
                        path = (base / words).resolve()
                        if is_own(path, self.root):
                            yield path
                    except (OSError, ValueError):  # too long, or a NUL
                        continue

    def _files_of(self, name: str) -> list[Path]:
        """Return the file of a module of the project, loaded or not; [] for other modules."""
        if name in self.loaded and is_own(self.loaded[name], self.root):
            return [self.loaded[name]]
        if name not in self._known:
            found = (self._at(place, name) for place in self.places)
            self._known[name] = next((one for one in found if one), [])
        return self._known[name]

    def _at(self, base: Path, name: str) -> list[Path]:
        path = base.joinpath(*name.split("."))
        endings = (".py", *EXTENSION_SUFFIXES)
        files = [path / "__init__.py", *(path.with_name(path.name + ending) for ending in endings)]
        return [file for file in files if is_own(file, self.root)]


def _packages_around(file: Path) -> Iterator[Path]:
    """Yield the ``__init__.py`` of all packages that hold a file, which Python runs before it."""
    folder = file.parent
    while (init := folder / "__init__.py").is_file():
        yield init
        folder = folder.parent


@functools.cache
def _resolved(name: str) -> Path:
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
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.cache
def _facts_of(file: Path, mtime: int, size: int) -> _Facts:
    names, texts = set[str](), set[str]()
    relative, stars = set[tuple[int, str]](), set[tuple[int, str]]()
    unseen = lazy = False
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            made = {f"{module}.{one.name}".lstrip(".") for one in node.names if one.name != "*"}
            stars |= {(node.level, module) for one in node.names if one.name == "*"}
            made |= {module} - {""}
            if node.level:
                relative |= {(node.level, name) for name in made} or {(node.level, "__init__")}
            else:
                names |= made
            unseen |= any(one.name in (*_BY_NAME, *_UNSEEN) and one.asname for one in node.names)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            first = node.args[0] if node.args else None
            if called in _BY_NAME and isinstance(first, ast.Constant):
                names |= {first.value} if isinstance(first.value, str) else set()
            unseen |= called in _BY_NAME and not isinstance(first, ast.Constant)
            unseen |= called in _UNSEEN
            lazy |= called in _LAZY
            texts.add("/".join(_constants(node.args)))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            texts.add("/".join(_constants(_factors(node))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.add(node.value)
        elif isinstance(node, ast.FunctionDef):
            lazy |= node.name in _LAZY
    kept = frozenset(one for one in texts if 0 < len(one) <= _LONGEST and "\n" not in one)
    sets = frozenset(names), frozenset(relative), frozenset(stars), kept
    return _Facts(*sets, unseen, lazy)


def _constants(nodes: Iterable[ast.expr]) -> Iterator[str]:
    """Yield the texts among some parts of an expression, such as those of ``HERE / "a" / "b"``."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _factors(node.left)
        yield node.right
    else:
        yield node
