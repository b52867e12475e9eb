"""Which packages are installed here; audits of others are skipped, with what installs them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def needs(module, package):
    """Skip an audit where a module is not there; it is not imported yet."""
    reason = f"{module} is not installed: pip install {package}"
    return pytest.mark.skipif(find_spec(module) is None, reason=reason)
