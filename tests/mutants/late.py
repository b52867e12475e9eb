"""A module that knows a helper by another name.

The module is imported only while the helper is replaced.
"""

from __future__ import annotations

from tests.mutants.helpers import clip as shortened

__all__ = ["shortened"]
