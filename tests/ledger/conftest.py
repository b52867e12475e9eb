"""Projects with their own files, as in the tests of runs."""

from tests.run.conftest import home

__all__ = ["home"]
