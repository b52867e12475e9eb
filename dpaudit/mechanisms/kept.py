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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit._files import inside, read_arrays, read_regular, write_atomic
from dpaudit._json import decode, loads
from dpaudit.data import digest, object_array
from dpaudit.errors import StoreError
from dpaudit.mechanisms.protocols import mechanism_name

Array = NDArray[Any]

_MANIFEST = "mechanism.json"
_LARGEST = 2**16  # bytes of the manifest


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

        Each role, such as a mutant, has its own folder.

        Raises
        ------
        StoreError
            If the folder holds calls of another mechanism, or cannot be written.
        """
        if Path(folder).exists() and not Path(folder).is_dir():
            raise StoreError(
                f"cache_dir must be the path of a directory, got the file {str(folder)!r}"
            )
        told = {"mechanism": mechanism_name(mechanism), "code": code_digest(mechanism)}
        # A changed mutant gets another folder, but a changed mechanism is an error.
        which = (
            "" if role == "mechanism" else hashlib.sha256(repr((role, told)).encode()).hexdigest()
        )
        here = Path(folder) / (f"mutant {which[:12]}" if which else "mechanism")
        manifest = here / _MANIFEST
        try:
            here.mkdir(parents=True, exist_ok=True)
            if not manifest.exists() or not any(here.glob("*.npz")):  # the first call may fail
                write_atomic(manifest, json.dumps(told))
            known = decode(dict[str, str], loads(read_regular(inside(here, _MANIFEST), _LARGEST)))
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot store calls of a mechanism in {folder}: {error}") from error
        if known != told:
            same = known.get("mechanism") == told["mechanism"]
            reason = "its code has changed since" if same else f"this one is {told['mechanism']}"
            raise StoreError(
                f"{here} holds calls of {known.get('mechanism')}; {reason}. Pass another folder, "
                "or delete this one"
            )
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


def code_digest(mechanism: Any) -> str:
    """Return a digest of a mechanism's code and of the values bound in the code.

    The digest covers the complete file of each function of the mechanism, the values in its
    closures, the arguments bound by ``partial`` and the attributes of an object. The digest does
    not cover the modules that these files import.
    """
    told = hashlib.sha256()
    seen: set[int] = set()
    waiting = [mechanism]
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, functools.partial):
            waiting += [one.func, *one.args, *(v for _, v in sorted(one.keywords.items()))]
        elif isinstance(one, list | tuple | dict) and _is_opened(one):
            waiting += one.values() if isinstance(one, dict) else one
            told.update(repr(list(one)).encode() if isinstance(one, dict) else b"")
        elif isinstance(one, set | frozenset):  # the order of words differs between processes
            told.update(b"".join(sorted(map(digest, one))))
        elif inspect.isclass(one):
            told.update(source_bytes(one))
        elif inspect.isroutine(one):
            told.update(source_bytes(one))
            cells = getattr(one, "__closure__", None) or ()
            waiting += [cell.cell_contents for cell in cells if not _is_empty(cell)]
            waiting += [*(getattr(one, "__defaults__", None) or ())]
            waiting += [getattr(one, "__self__", None), getattr(one, "__wrapped__", None)]
        elif callable(one) or hasattr(one, "pmf"):
            told.update(source_bytes(type(one)))
            held = {k: v for k, v in getattr(one, "__dict__", {}).items() if k[:1] != "_"}
            waiting += [value for _, value in sorted(held.items())]
        else:
            told.update(type(one).__name__.encode() + digest(one))
    return told.hexdigest()


def source_bytes(function: Any) -> bytes:
    """Return the file that defines an object.

    If there is no file, return the object's source, as in a notebook, or else only its name.
    """
    try:
        file = inspect.getsourcefile(function)
        if file is not None and Path(file).is_file():
            return Path(file).read_bytes()
        return inspect.getsource(function).encode()
    except (OSError, TypeError):
        return str(getattr(function, "__qualname__", "")).encode()


def _is_empty(cell: Any) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:  # a function that refers to itself before its definition
        return True
