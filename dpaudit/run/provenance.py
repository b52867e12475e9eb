"""Code and versions that determine the numbers of a record, and checks for changes."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit import engine
from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.mechanisms import PACKAGE, SELF, Dependencies, dependencies
from dpaudit.run.settings import RunSettings
from dpaudit.store import Record

if TYPE_CHECKING:
    import pytest

_LARGEST = 2**26  # largest size of a file whose content is compared, in bytes


def versions() -> dict[str, str]:
    """Return the versions of all software that determines the numbers of audits and checks."""
    try:
        return {**engine.versions(), "hypothesis": metadata.version("hypothesis")}
    except metadata.PackageNotFoundError:  # hypothesis is an extra, which audits do not need
        return engine.versions()


def root_of(config: pytest.Config) -> Path:
    """Return the directory of the project: the directory of pytest, or one above it."""
    here, root = Path.cwd(), config.rootpath
    return here if root.is_relative_to(here) else root


def provenance(files: Iterable[Path], root: Path) -> dict[str, Any]:
    """Return what a result depends on, for its origin.

    "sources" are short hashes of all files of the project that `files` depend on (see
    :func:`mechanisms.dependencies`), keyed by their path from the working directory. dpaudit is
    hashed as a whole, because workers load only a part of it. "versions" include those of the
    installed packages that these files import. "unseen" is a reason why there may be more; it is
    missing if there is none.
    """
    return _as_origin(dependencies(files, root))


def _as_origin(found: Dependencies) -> dict[str, Any]:
    hashes = {Path(os.path.relpath(file)).as_posix(): _hash(file) for file in sorted(found.files)}
    gone = next((name for name, digest in hashes.items() if digest is None), None)
    reason = found.unseen or (f"{gone} cannot be read" if gone else "")
    imported = {name: _version(name) for name in sorted(found.packages)}
    origin = {
        "versions": imported | versions(),
        "sources": {SELF: _hash_of_package(), **{k: v for k, v in hashes.items() if v is not None}},
    }
    return origin | ({"unseen": reason} if reason else {})


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):  # the name in a stored record may be empty
        return "none"


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
        if digest != (_hash_of_package() if name == SELF else _hash_inside(root, name))
    )


def changed_versions(origin: Mapping[str, Any]) -> list[str]:
    """Return a description of the versions that have changed since a record was made."""
    stored = origin.get("versions")
    if not isinstance(stored, Mapping):
        return []
    now = {name: _version(name) for name in map(str, stored)} | versions()
    return [
        f"{name} {stored.get(name, 'none')} then, {now[name]} now"
        for name in sorted(now)
        if stored.get(name, "none") != now[name]
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
    if size > _LARGEST:
        return f"{size}-{mtime}"
    return hashlib.sha256(read_regular(file, _LARGEST)).hexdigest()[:12]


@functools.cache
def _hash_of_package() -> str:
    """Return a short hash of all of dpaudit, which does not change during a process."""
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
