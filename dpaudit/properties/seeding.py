"""A backend of hypothesis whose cases depend on the seed alone.

hypothesis draws, now and then, a literal that it found in the source of a loaded project module:
what is found would depend on what else was imported, and a replay would not find it again. Its
documented way to other choices is a backend of one's own.
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
        """Leave them."""


_NONE = Constants()
AVAILABLE_PROVIDERS[SEEDED] = f"{__name__}.SeededProvider"
