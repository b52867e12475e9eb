"""Projects of their own, as the tests of runs have them."""

from tests.run.conftest import home

__all__ = ["home"]
