"""A backend of hypothesis whose cases depend only on the seed.

hypothesis sometimes draws a literal that it found in the source of a loaded project module. These
literals depend on other imports, so a replay could not draw the same cases. The documented way to
prevent this is a custom backend.
"""

from __future__ import annotations

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.internal.constants_ast import Constants

SEEDED = "dpaudit-seeded"
"""Name of the backend, for ``hypothesis.settings(backend=...)``."""


class SeededProvider(HypothesisProvider):
    """The provider of hypothesis, without the literals of project modules."""

    @property
    def _local_constants(self) -> Constants:
        return _NONE

    @_local_constants.setter
    def _local_constants(self, found: object) -> None:
        """Ignore the literals."""


_NONE = Constants()
AVAILABLE_PROVIDERS[SEEDED] = f"{__name__}.SeededProvider"
