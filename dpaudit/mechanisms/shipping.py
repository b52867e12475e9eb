"""How objects travel to workers: by value, or by a name whose source file is compared.

A worker may be unable to import the file of an audit, or hold another version of it. So functions
and classes of the user's own files travel with their code. What can only travel by name is refused
where the worker's file has other content.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from dpaudit.errors import MechanismError

_PACKAGE = "dpaudit"
_INSTALLED = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    *(sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")),
)
_ORIGINAL = functools.lru_cache(lambda: None)


def packed(what: Any) -> bytes:
    """Return an object as bytes, with the hashes of the source files that it may refer to.

    Raises
    ------
    Exception
        Of any type, when the object cannot be pickled.
    """
    own = _own_modules()
    mine = [module for module in own.values() if not _is_dpaudit(module.__name__)]
    try:
        content = _dumps(what, mine)
    except Exception:  # something in these files cannot travel; workers may be able to import it
        content = _dumps(what, [m for m in mine if m.__name__ == _module_of(what)], or_none=True)
    hashes = {name: known for name, module in own.items() if (known := _hash_of(module))}
    return bytes(cloudpickle.dumps((hashes, content)))


def unpacked(content: bytes) -> Any:
    """Return what was packed.

    Raises
    ------
    MechanismError
        When this process cannot import a module, or has another version of its file.
    """
    hashes, inner = cloudpickle.loads(content)
    _refuse_other_versions(hashes)
    try:
        what = cloudpickle.loads(inner)
    except ImportError as error:
        raise MechanismError(
            f"a worker cannot import what the mechanism refers to ({error}); install it there, or "
            "define it in the file of the mechanism"
        ) from error
    _refuse_other_versions(hashes)
    return what


def _refuse_other_versions(hashes: dict[str, str]) -> None:
    for name, known in hashes.items():
        module = sys.modules.get(name)
        if module is not None and _hash_of(module) not in (None, known):
            raise MechanismError(
                f"a worker holds another version of {name} ({module.__file__}); restart the "
                "workers with the files of this process"
            )


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """A pickler that also sends cached functions by value."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, type(_ORIGINAL)) and obj.__module__ in _by_value():
            return _cached, (obj.__wrapped__, obj.cache_parameters())
        return super().reducer_override(obj)


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


def travels_by_value(module: str) -> bool:
    """Whether functions of a module are being pickled with their code."""
    return module in _by_value()


def _by_value() -> set[str]:
    return set(cloudpickle.list_registry_pickle_by_value())


def _dumps(what: Any, modules: list[ModuleType], *, or_none: bool = False) -> bytes:
    file = io.BytesIO()
    try:
        with _registered(modules):
            _Pickler(file).dump(what)
        return file.getvalue()
    except Exception:
        if or_none and modules:
            return _dumps(what, [])
        raise


@contextmanager
def _registered(modules: list[ModuleType]) -> Iterator[None]:
    before = _by_value()
    added = [module for module in modules if module.__name__ not in before]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def _module_of(what: Any) -> str | None:
    while isinstance(what, functools.partial):
        what = what.func
    return getattr(what, "__module__", None)


def _own_modules() -> dict[str, ModuleType]:
    """Return the loaded modules of this project and of dpaudit, by name."""
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name != "__main__"
        and getattr(module, "__name__", None) == name
        and isinstance(file := getattr(module, "__file__", None), str)
        and file.endswith(".py")
        and (_is_dpaudit(name) or not any(part in file for part in _INSTALLED))
    }


def _is_dpaudit(name: str) -> bool:
    return name.partition(".")[0] == _PACKAGE


def _hash_of(module: ModuleType) -> str | None:
    return _known_hash(module.__file__) if getattr(module, "__file__", None) else None


def file_hash(file: str) -> str | None:
    """Return the hash of a Python file; None for what is no such file."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file.endswith(".py") else None
    except OSError:
        return None


_known_hash = functools.cache(file_hash)  # a file that changes later is not what was imported
