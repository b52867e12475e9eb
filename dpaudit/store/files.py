"""Files that are whole or not there, and sealed: what was changed by hand is not trusted.

Files are written beside their target and moved into place, so that a reader sees the old file or
the new one and never half of either. A sealed file is a JSON object that holds the SHA-256 of its
own canonical form; this tells of accidents and of edited words, it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit.errors import StoreError

CHECKSUM = "checksum"


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a whole file or nothing; raise :class:`StoreError` with the reason."""
    temporary: str | None = None
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def write_sealed(path: Path, document: Mapping[str, Any]) -> None:
    """Write plain data as JSON, with a checksum of what it says."""
    sealed = {**document, CHECKSUM: checksum_of(document)}
    write_atomic(path, json.dumps(sealed, indent=1, allow_nan=False) + "\n")


def read_sealed(path: Path, *, schema: int) -> dict[str, Any]:
    """Read what :func:`write_sealed` wrote, without its checksum.

    Raises
    ------
    StoreError
        With the path, when the file is missing, damaged, of another version, or was changed.
    """
    document = read_json(path)
    if document.get("schema") != schema:
        raise StoreError(
            f"{path} has schema {document.get('schema')!r}, this version of dpaudit reads "
            f"{schema}: run `dpaudit run` again"
        )
    said = document.pop(CHECKSUM, None)
    if said != checksum_of(document):
        raise StoreError(
            f"{path} does not agree with its checksum: it was changed after it was written"
            if said is not None
            else f"{path} lacks its checksum: it was changed after it was written"
        )
    return document


def checksum_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of plain data."""
    words = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raise :class:`StoreError` naming the file and what is wrong."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # of the decoder, of the encoding, or ours
        raise StoreError(f"{path} is damaged or cut off: {error}") from error
    except RecursionError:
        raise StoreError(f"{path} is damaged: it is nested too deeply to be a result") from None
    if not isinstance(data, dict):
        raise StoreError(f"{path} must hold a JSON object, got {type(data).__name__}")
    return data


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number")


def set_aside(path: Path, error: StoreError) -> str:
    """Move a file that cannot be trusted out of the way; return the sentence to tell."""
    aside = path.with_suffix(".corrupt")
    try:
        os.replace(path, aside)
    except OSError:
        return str(error)
    return f"{error}; set aside as {aside.name}"
