"""Calls of a mechanism that are stored on disk, so that no call is made twice.

This module is for mechanisms that take seconds or minutes for a draw. Each call is written
completely as soon as it is made. An interrupted audit resumes where it stopped. An audit of another
claim about the same mechanism starts with the stored draws.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._files import inside, read_arrays, read_regular, write_atomic
from dpaudit._json import loads
from dpaudit.data import digest, object_array
from dpaudit.errors import StoreError
from dpaudit.mechanisms.imports import SELF, dependencies, distributions
from dpaudit.mechanisms.protocols import mechanism_name

Array = NDArray[Any]


@dataclass(frozen=True)
class Kept:
    """The calls of one mechanism in one folder.

    Parameters
    ----------
    folder : Path
        Folder that :meth:`of` returned.
    """

    folder: Path

    @classmethod
    def of(cls, folder: str | os.PathLike[str], mechanism: Any, role: str) -> Kept:
        """Return the stored calls of a mechanism.

        Each role, such as a mutant, has its own folder. So has each version of the mechanism's
        code, of the values bound in it, and of the packages that it imports.

        Raises
        ------
        StoreError
            If the folder cannot be written.
        """
        if Path(folder).exists() and not Path(folder).is_dir():
            raise StoreError(
                f"cache_dir must be the path of a directory, got the file {str(folder)!r}"
            )
        try:
            told = (role, mechanism_name(mechanism), code_digest(mechanism, with_packages=True))
            which = hashlib.sha256(repr(told).encode()).hexdigest()[:12]
            here = Path(folder) / f"{'mechanism' if role == 'mechanism' else 'mutant'} {which}"
            here.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot store calls of a mechanism in {folder}: {error}") from error
        return cls(here)

    def get(self, key: tuple[Any, ...]) -> tuple[Any, float] | None:
        """Return the outputs of a call and its seconds, or None if the call was not made."""
        path = self._path(key)
        try:
            content = read_regular(inside(self.folder, path.name), sys.maxsize)
            file = read_arrays(content, len(content))  # the arrays are not compressed
            seconds = float(file["seconds"])
            if "shapes" not in file:
                return file["outputs"], seconds
            shapes = [tuple(shape) for shape in loads(str(file["shapes"]))]
            sizes = [int(np.prod(shape, dtype=int)) for shape in shapes]
            parts = np.split(file["outputs"], np.cumsum(sizes)[:-1])
            rows = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
            return object_array(rows), seconds
        except FileNotFoundError:
            return None
        except Exception as error:  # reading a damaged archive may raise anything
            raise StoreError(
                f"{path} does not hold a complete call of a mechanism: {error}. Delete the file"
            ) from error

    def put(self, key: tuple[Any, ...], outputs: Array, seconds: float) -> None:
        """Store the outputs of a call, completely or not at all."""
        arrays = {"outputs": outputs, "seconds": np.array(seconds)}
        if outputs.dtype == object:
            shapes = np.array(json.dumps([row.shape for row in outputs]))
            whole = np.concatenate([np.zeros(0), *(row.ravel() for row in outputs)])
            arrays = {"outputs": whole, "shapes": shapes, "seconds": np.array(seconds)}
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **arrays)
        write_atomic(self._path(key), file.getvalue(), durable=False)

    def _path(self, key: tuple[Any, ...]) -> Path:
        return self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.npz"


def _is_opened(held: Any) -> bool:
    """Return whether a collection holds functions or sets, at any depth.

    A digest of values lacks the code of functions, and the order of a set differs between
    processes.
    """
    if isinstance(held, list | tuple | dict):
        return any(map(_is_opened, held.values() if isinstance(held, dict) else held))
    return callable(held) or isinstance(held, set | frozenset)


def code_digest(mechanism: Any, *, with_packages: bool = False) -> str:
    """Return a digest of a mechanism's code and of the values bound in the code.

    The digest covers the complete file of each function of the mechanism, and the modules of the
    project that these files import, directly or indirectly. It also covers the values in closures
    and defaults, the arguments bound by ``partial`` and the attributes of an object. With
    `with_packages`, it covers the versions of the packages that hold or import all this. It does
    not cover modules whose names are computed, and data that are read from files.
    """
    told = hashlib.sha256()
    files: set[Path] = set()
    tops: set[str] = set()
    seen: dict[int, tuple[int, Any]] = {}  # the objects stay alive, so that no id is used twice
    waiting = [mechanism]
    while waiting:
        one = waiting.pop()
        told.update(type(one).__name__.encode())
        held = _held(one)
        if held is None:
            told.update(digest(one))
            continue
        if id(one) in seen:
            told.update(str(seen[id(one)][0]).encode())
            continue
        seen[id(one)] = len(seen), one
        waiting += held
        defined = one if inspect.isclass(one) or inspect.isroutine(one) else type(one)
        tops.add(str(getattr(defined, "__module__", "")).partition(".")[0])
        if (file := source_file(defined)) is None:
            told.update(source_bytes(defined))
        else:
            files.add(file)
    packages = distributions(tops)
    for file in [*files]:
        found = dependencies([file], _root_of(file), texts=False)
        files |= found.files
        packages |= found.packages
    for content in sorted({hashlib.sha256(file.read_bytes()).digest() for file in files}):
        told.update(content)
    if with_packages:
        told.update(repr([(name, metadata.version(name)) for name in sorted(packages)]).encode())
    return told.hexdigest()


def _held(one: Any) -> list[Any] | None:
    """Return the names and values that code or a collection holds; None for a plain value."""
    if isinstance(one, functools.partial):
        return [one.func, *one.args, *_flat(one.keywords)]
    if isinstance(one, list | tuple | dict):
        if not _is_opened(one):
            return None
        return [*_flat(one)] if isinstance(one, dict) else [*one]
    if isinstance(one, set | frozenset):  # the order of words differs between processes
        return [b"".join(sorted(map(digest, one)))]
    if inspect.isclass(one):
        return [one.__qualname__]
    if inspect.isroutine(one):
        cells = [c for c in getattr(one, "__closure__", None) or () if not _is_empty(c)]
        more = getattr(one, "__kwdefaults__", None) or {}
        whose = getattr(one, "__self__", None)
        return [
            one.__qualname__,
            _place_of(getattr(one, "__code__", None)),
            *(cell.cell_contents for cell in cells),
            *(getattr(one, "__defaults__", None) or ()),
            *_flat(more),
            None if inspect.ismodule(whose) else whose,
            getattr(one, "__wrapped__", None),
        ]
    if callable(one) or hasattr(one, "pmf"):
        is_ours = type(one).__module__.partition(".")[0] == SELF
        slots = [getattr(kind, "__slots__", ()) for kind in type(one).__mro__]
        named = [name for own in slots for name in ([own] if isinstance(own, str) else own)]
        state = {name: getattr(one, name) for name in named if hasattr(one, name)}
        state |= getattr(one, "__dict__", {})
        # A wrapper of dpaudit remembers in its private attributes what it has seen.
        told = {name: one for name, one in state.items() if not (is_ours and name[:1] == "_")}
        return [str(getattr(one, "__name__", "")), *_flat(told)]
    return None


def _flat(held: Mapping[Any, Any]) -> Iterator[Any]:
    """Yield each name and its value, in the order of the names."""
    for name in sorted(held, key=str):
        yield from (name, held[name])


def _place_of(code: CodeType | None) -> str:
    """Return where code is in its file, which tells two lambdas of one line apart."""
    if code is None:
        return ""
    known = [place for place in code.co_positions() if None not in place]
    return repr((min(known), max(known))) if known else str(code.co_firstlineno)


@functools.cache
def _root_of(file: Path) -> Path:
    """Return the directory of the project that holds a file."""
    marks = "pyproject.toml", "setup.py", "setup.cfg", ".git"
    for folder in file.parents:
        if any((folder / mark).exists() for mark in marks):
            return folder
    return Path.cwd() if file.is_relative_to(Path.cwd()) else file.parent


def source_bytes(function: Any) -> bytes:
    """Return the file that defines an object.

    If there is no file, return the object's source, as in a notebook, or else only its name.
    """
    try:
        file = source_file(function)
        return inspect.getsource(function).encode() if file is None else file.read_bytes()
    except (OSError, TypeError):
        return str(getattr(function, "__qualname__", "")).encode()


def source_file(function: Any) -> Path | None:
    """Return the file that defines an object; None for code that is in no file."""
    try:
        file = inspect.getsourcefile(function)
    except (OSError, TypeError):  # code of a prompt, or code that is not Python
        return None
    return Path(file).resolve() if file is not None and Path(file).is_file() else None


def _is_empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:  # a function that refers to itself before its definition
        return True
