"""Skip audits of packages that are not installed, and state how to install these packages."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(module, package):
    """Skip an audit if a module is not installed.

    The check does not import the module.
    """
    reason = f"{module} is not installed: pip install {package}"
    return pytest.mark.skipif(find_spec(module) is None, reason=reason)
