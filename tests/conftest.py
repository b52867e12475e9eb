"""Rules that hold for every test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

# Derandomised: a property that fails, fails for everybody.
settings.register_profile("dpaudit", derandomize=True, deadline=None, database=None)
settings.load_profile("dpaudit")

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _global_generator_stays_untouched():
    """Fail a test that draws from numpy's global generator."""
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    yield
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert before["pos"] == after["pos"]
    assert np.array_equal(before["key"], after["key"])
