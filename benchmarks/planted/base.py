"""Mistakes planted in the modules that every package uses: files and JSON."""

from __future__ import annotations

from benchmarks.planted.mutant import Mutant

STORE = ("tests/store",)

MUTANTS = (
    Mutant(
        "_files.py",
        "a file is written directly, not atomically",
        'handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")\n',
        "handle, temporary = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), str(path)\n",
        STORE,
    ),
    Mutant(
        "_json.py",
        "NaN is allowed in files that are read",
        "constant, number = (_no_constant, _finite) if finite",
        "constant, number = (float, _finite) if finite",
        STORE,
    ),
    Mutant(
        "_files.py",
        "two ids share a file",
        'return f"{clean}-{hashlib.sha256(hashed).hexdigest()[:8]}".lstrip("-")',
        "return clean",
        STORE,
    ),
)
