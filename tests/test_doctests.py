"""Tests that every example in a public docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import algorithms
import dpaudit


def modules():
    for package in (dpaudit, algorithms):
        yield package.__name__
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield module.name


@pytest.mark.parametrize("name", sorted(modules()))
def test_doctests(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
