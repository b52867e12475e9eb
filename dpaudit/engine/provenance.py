"""What the numbers of an audit depend on besides its arguments."""

from __future__ import annotations

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
    return found
