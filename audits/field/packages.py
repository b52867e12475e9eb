"""Skip audits of packages that are not installed, and state how to install these packages."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def needs(module, package):
    """Skip an audit if a module is not installed.

    The check does not import the module. If `DPAUDIT_NO_SKIPS` is set, the audit fails instead.
    """
    no_skips = bool(os.environ.get("DPAUDIT_NO_SKIPS"))
    reason = f"{module} is not installed: pip install {package}"
    return pytest.mark.skipif(not no_skips and find_spec(module) is None, reason=reason)
