"""Sealed files: JSON objects that hold the SHA-256 of their own canonical form.

The checksum detects accidents and manual edits, but it is not a signature.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpaudit import _json
from dpaudit._files import read_regular, write_atomic
from dpaudit.errors import StoreError

CHECKSUM = "checksum"


LARGEST_JSON = 2**26
"""Largest size of a sealed file in bytes."""


def write_sealed(path: Path, document: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write plain data as JSON, with a checksum of the content."""
    sealed = {**document, CHECKSUM: checksum_of(document)}
    # Each field has one line. Indentation would need the encoder in pure Python, which is ten times
    # slower than the encoder in C.
    fields = (f"{json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in sealed.items())
    text = "{\n" + ",\n".join(fields) + "\n}\n"
    if len(text) > LARGEST_JSON:
        raise StoreError(f"cannot write {path}: it would have more than {LARGEST_JSON:,} bytes")
    write_atomic(path, text, durable=durable)


def unsealed(path: Path, document: dict[str, Any], *, schema: int) -> dict[str, Any]:
    """Return the content of a sealed object without the checksum.

    Raises
    ------
    StoreError
        If the file has another version or was changed. The message contains the path of the file.
    """
    if document.get("schema") != schema:
        raise StoreError(
            f"{path} has schema {document.get('schema')!r}, but this version of dpaudit "
            f"reads schema {schema}. Run `dpaudit run` again"
        )
    stored = document.pop(CHECKSUM, None)
    if stored != checksum_of(document):
        raise StoreError(
            f"{path} does not match its checksum, because it was changed after it was written"
        )
    return document


def checksum_of(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of plain data."""
    words = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; raise :class:`StoreError` with the name of the file and its fault."""
    try:
        data = _json.loads(read_regular(path, LARGEST_JSON))
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # from the decoder, the encoding, or `loads`
        raise StoreError(f"{path} is damaged or cut off: {error}") from error
    if not isinstance(data, dict):
        raise StoreError(f"{path} must hold a JSON object, got {type(data).__name__}")
    return data


def set_aside(path: Path, error: StoreError) -> str:
    """Move an untrusted file out of the way, and return a sentence that reports this."""
    aside = path.with_suffix(".corrupt")
    try:
        os.replace(path, aside)
    except OSError:
        return str(error)
    return f"{error}. The file was set aside as {aside.name}"
