"""What the numbers of an audit depend on besides its arguments."""

from __future__ import annotations

import functools
import platform
from importlib import metadata


def versions() -> dict[str, str]:
    """Versions of everything that the numbers of an audit depend on."""
    packages = ("dpaudit", "numpy", "scipy", "scikit-learn")
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found | {"blas": _blas()}


@functools.cache
def _blas() -> str:
    """Name the library, version and kernels by which numpy multiplies matrices.

    Kernels are chosen by the processor, and sum in different orders.
    """
    from threadpoolctl import threadpool_info

    found = [one for one in threadpool_info() if one["user_api"] == "blas"]
    found.sort(key=lambda one: "numpy" not in str(one["filepath"]))  # scipy may bring its own
    names = ("internal_api", "version", "architecture")
    return " ".join(str(found[0].get(name) or "unknown") for name in names) if found else "unknown"
