"""Code and versions that determine the numbers of a record, and checks for changes."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from dpaudit import engine
from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.run.settings import RunSettings
from dpaudit.store import Record

_PACKAGE = Path(__file__).resolve().parents[1]
_STDLIB = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED = ("site-packages", "dist-packages")
_SELF = "dpaudit"
_LARGEST = 2**26  # largest size of a source file, in bytes


def versions() -> dict[str, str]:
    """Return the versions of all software that determines the numbers of audits and checks."""
    try:
        return {**engine.versions(), "hypothesis": metadata.version("hypothesis")}
    except metadata.PackageNotFoundError:  # hypothesis is an extra, which audits do not need
        return engine.versions()


def sources(root: Path, programs: Iterable[str] = ()) -> dict[str, str]:
    """Return a short hash of every file that a result of this process may depend on.

    These files are the loaded modules of the project and the given programs inside the project,
    keyed by their path from the working directory. dpaudit is hashed as a whole, because workers
    load only a part of it.
    """
    root = root.resolve()
    names = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    loaded = {_real(os.path.abspath(name)) for name in names if name}
    own = {file for file in loaded if is_own(file, root)}
    own |= {file for file in map(_real, programs) if file.is_relative_to(root)}
    project = sorted(own)
    found = {Path(os.path.relpath(file)).as_posix(): _hash(file) for file in project}
    return {_SELF: _hash_of_package(), **{k: v for k, v in found.items() if v is not None}}


@functools.cache
def _real(name: str) -> Path:
    """Links are resolved once for each of about a thousand modules, and not in every session."""
    return Path(name).resolve()


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


def changed_sources(origin: Mapping[str, Any], root: Path | None = None) -> list[str]:
    """Return the names of files that have changed since a record was made.

    A file outside of `root` is never read and counts as changed. The default `root` is the working
    directory.
    """
    root = Path.cwd() if root is None else root
    stored = origin.get("sources")
    if not isinstance(stored, Mapping):
        return []
    return sorted(
        name
        for name, digest in stored.items()
        if digest != (_hash_of_package() if name == _SELF else _hash_inside(root, name))
    )


def changed_versions(origin: Mapping[str, Any]) -> list[str]:
    """Return a description of the versions that have changed since a record was made."""
    stored = origin.get("versions")
    if not isinstance(stored, Mapping):
        return []
    now = versions()
    return [
        f"{name} {stored.get(name, 'none')} then, {now.get(name, 'none')} now"
        for name in sorted({*stored, *now})
        if stored.get(name) != now.get(name)
    ]


def is_current(record: Record, settings: RunSettings, root: Path | None = None) -> bool:
    """Return whether a run with these settings would give an equal record.

    `root` is the directory of the project. The default is the working directory.
    """
    origin = record.origin
    asked = record.seed == settings.seed and all(
        origin.get(name) == value for name, value in settings.origin().items()
    )
    known = "sources" in origin and "versions" in origin
    return asked and known and not changed_versions(origin) and not changed_sources(origin, root)


def _hash_inside(root: Path, name: str) -> str | None:
    """Return the hash of a file, given by its path in a record, inside `root`."""
    try:
        return _hash(inside(root, *Path(os.path.relpath(name, root)).parts))
    except (StoreError, ValueError):  # the name contains a NUL
        return None


def _hash(file: Path) -> str | None:
    """Return a short hash of the content of a file, or None if the file is gone."""
    try:
        stat = file.stat()
        return _hash_of(file, stat.st_mtime_ns, stat.st_size)
    except (OSError, StoreError):
        return None


@functools.cache
def _hash_of(file: Path, mtime: int, size: int) -> str:
    return hashlib.sha256(read_regular(file, _LARGEST)).hexdigest()[:12]


@functools.cache
def _hash_of_package() -> str:
    """Return a short hash of all of dpaudit, which does not change during a process."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
