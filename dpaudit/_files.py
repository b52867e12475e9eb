"""Read and write files: whole files only, inside one directory, and of limited size.

Result files may come from untrusted people. Therefore :func:`inside` checks each path in such a
file, and :func:`read_regular` and :func:`read_arrays` check the content.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import stat
import tempfile
import zipfile
from pathlib import Path, PurePath
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dpaudit.errors import StoreError

LARGEST_ARRAYS = 2**29
"""Largest size in bytes of all arrays of one stored file, as its headers declare them."""


def write_atomic(path: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Write a complete file, or leave the old file unchanged.

    Parameters
    ----------
    path : Path
        The file to write. Missing directories are created.
    content : str or bytes
        Text is written in UTF-8.
    durable : bool
        Whether to wait until the disk holds the content. If False, the content survives the death
        of the process, but a power failure may truncate the file.

    Raises
    ------
    StoreError
        If the file cannot be written. The message gives the path and the reason.
    """
    temporary: str | None = None
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if durable:
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


def file_stem(words: str, key: str | None = None, *, plain: bool = True) -> str:
    """Return one safe part of a path; different keys give different parts.

    Parameters
    ----------
    words : str
        Text that the part should resemble. The part equals `words` if `words` are safe and `plain`
        is True.
    key : str, optional
        Text that is hashed if `words` are not used unchanged. The default is `words`.
    plain : bool
        Whether the words identify the key without a hash.

    Examples
    --------
    >>> file_stem("audit_basics.audit_laplace"), file_stem("../x")
    ('audit_basics.audit_laplace', 'x-d6b96a97')
    """
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", words).strip("-.")[:120]
    if clean and clean == words and plain:
        return clean
    hashed = (words if key is None else key).encode("utf-8", "surrogatepass")
    return f"{clean}-{hashlib.sha256(hashed).hexdigest()[:8]}".lstrip("-")


def inside(root: Path, *parts: str) -> Path:
    """Return the path of a file below a directory.

    The file need not exist. This function resolves every path that a stored file contains.

    Raises
    ------
    StoreError
        If the path leaves the directory (a symbolic link may do that), or is not a regular file.
    """
    path = root.joinpath(*parts)
    named = "/".join(parts)
    refused = f"{named!r} must name a regular file inside {root}"
    if any(part in ("", ".", "..") for part in named.split("/")):
        raise StoreError(f"{refused}.")
    try:
        real = path.resolve()
        outside = not real.is_relative_to(root.resolve())
        mode = None if outside or not os.path.lexists(real) else real.lstat().st_mode
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL in the name
        raise StoreError(f"{refused}: {error}.") from None
    if outside:
        raise StoreError(f"{refused}, got a path to {real}.")
    if mode is not None and not stat.S_ISREG(mode):
        raise StoreError(f"{refused}, got another kind of file.")
    return path


def read_regular(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes.

    Raises
    ------
    OSError
        If the file cannot be read.
    StoreError
        If the path is a pipe, a device or a directory, or if the file is too large. Nothing is read
        in these cases.
    """
    with _open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise StoreError(f"{path} must hold at most {limit:,} bytes, got {size:,}.")
        return file.read(size)


def _open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading, and never wait for the writer of a pipe."""
    flag = getattr(os, "O_NONBLOCK", 0)
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | flag))  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise StoreError(f"{path} must be a regular file.")
    return file


def read_arrays(content: bytes, limit: int = LARGEST_ARRAYS) -> dict[str, NDArray[Any]]:
    """Return the arrays of a ``.npz`` file; check their declared sizes before reading.

    Raises
    ------
    ValueError
        If the file declares more than `limit` bytes, or an array declares more than the file holds.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        declared = sum(member.file_size for member in members)
        if declared > limit:
            raise ValueError(
                f"the file must declare arrays of at most {limit:,} bytes in total, got "
                f"{declared:,}"
            )
        arrays = {}
        for member in members:
            with archive.open(member) as file:
                arrays[member.filename.removesuffix(".npy")] = _array(file, member.file_size)
        return arrays


def read_array(path: Path) -> NDArray[Any]:
    """Return the array of a ``.npy`` file; raise ``ValueError`` for an invalid header."""
    with _open_regular(path) as file:
        return _array(file, os.fstat(file.fileno()).st_size)


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read one array of a file of `size` bytes; refuse an array that is larger than the file."""
    major, _ = npy.read_magic(file)
    # Version 3 differs from version 2 only in the encoding of names.
    header = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = header(file)
    if min(shape, default=0) < 0 or math.prod(shape) * max(dtype.itemsize, 1) > size - file.tell():
        raise ValueError(
            f"the header must declare an array that fits into the file, got shape {shape}"
        )
    file.seek(0)
    return np.asarray(npy.read_array(file, allow_pickle=False))


def code_name(file: str) -> str:
    """Return the name of a source file without its directories; a cell of a notebook has no name.

    Examples
    --------
    >>> code_name("src/mine.py"), code_name("/tmp/ipykernel_7/1007738687.py")
    ('mine.py', 'a notebook cell')
    """
    path = PurePath(file)
    is_cell = path.parent.name.startswith("ipykernel_") or path.name.startswith("<ipython-input")
    return "a notebook cell" if is_cell else path.name
