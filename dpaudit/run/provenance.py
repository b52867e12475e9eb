"""Code and versions that determine the numbers of a record, and checks for changes."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from dpaudit import engine
from dpaudit._files import inside, read_regular
from dpaudit.errors import StoreError
from dpaudit.run.imports import needed
from dpaudit.run.settings import RunSettings
from dpaudit.store import Record

_PACKAGE = Path(__file__).resolve().parents[1]
_SELF = "dpaudit"
_LARGEST = 2**26  # largest size of a file that is compared, in bytes


def versions() -> dict[str, str]:
    """Return the versions of all software that determines the numbers of audits and checks."""
    try:
        return {**engine.versions(), "hypothesis": metadata.version("hypothesis")}
    except metadata.PackageNotFoundError:  # hypothesis is an extra, which audits do not need
        return engine.versions()


def provenance(files: Iterable[Path], root: Path) -> dict[str, dict[str, str]]:
    """Return what a result depends on, for its origin: "versions" and "sources".

    The sources are short hashes of all files of the project that `files` depend on (see
    :func:`imports.needed`), keyed by their path from the working directory. dpaudit is hashed as a
    whole, because workers load only a part of it. The versions include those of the installed
    packages that these files import.
    """
    own, packages = needed(files, root)
    hashes = {Path(os.path.relpath(file)).as_posix(): _hash(file) for file in sorted(own)}
    sources = {_SELF: _hash_of_package(), **{k: v for k, v in hashes.items() if v is not None}}
    imported = {name: _version(name) for name in sorted(packages)}
    return {"versions": imported | versions(), "sources": sources}


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
        if digest != (_hash_of_package() if name == _SELF else _hash_inside(root, name))
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
    return hashlib.sha256(read_regular(file, _LARGEST)).hexdigest()[:12]


@functools.cache
def _hash_of_package() -> str:
    """Return a short hash of all of dpaudit, which does not change during a process."""
    digest = hashlib.sha256()
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]
