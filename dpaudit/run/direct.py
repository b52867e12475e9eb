"""The audit of one function by its name: made by `dpaudit audit`, made again by `replay`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpaudit.run.invoke import import_from_here

if TYPE_CHECKING:
    from dpaudit.neighbors import NeighborPair, PairFamily
    from dpaudit.results import AuditResult
    from dpaudit.search import SearchSpace


def audit_function(origin: dict[str, Any], seed: int) -> AuditResult:
    """Make the audit that an ``origin`` of kind "function" describes."""
    from dpaudit.claims import ApproxDP, PureDP
    from dpaudit.engine import audit
    from dpaudit.mechanisms import generator
    from dpaudit.neighbors import from_recipe
    from dpaudit.results import Expectation
    from dpaudit.run.auditor import seeded
    from dpaudit.run.provenance import sources, versions
    from dpaudit.search import space_from_words

    mechanism = load_target(origin["target"])
    mutant = None if origin["mutant"] is None else load_target(origin["mutant"])
    pairs: NeighborPair | PairFamily | SearchSpace
    if ".." in origin["pair"] or "|" in origin["pair"]:
        pairs = space_from_words(origin["pair"])
    else:
        pairs = from_recipe(origin["pair"], rng=generator(seed, origin["target"], "pair"))
    claim: PureDP | ApproxDP = PureDP(origin["epsilon"])
    if origin["delta"] != 0:
        claim = ApproxDP(origin["epsilon"], origin["delta"])
    result = audit(
        mechanism,
        claim,
        pairs,
        draws=origin["draws"],
        failure_prob=origin["failure_prob"],
        seed=seed,
        mutants=() if mutant is None else [mutant],
        sequential=origin["sequential"],
        float_attack=origin["float_attack"],
        id=origin["target"],
    )
    now = {
        "replays": seeded(mechanism, () if mutant is None else [mutant]),
        "versions": versions(),
        "sources": sources(Path.cwd()),
    }
    return result.with_origin({**origin, **now}, Expectation.NOT_REFUTED)


def load_target(target: str) -> Any:
    """Import MODULE:FUNCTION; MODULE is dotted or a path to a .py file."""
    module_name, function = split_target(target)
    import_from_here()
    try:
        if module_name.endswith(".py"):
            path = Path(module_name)
            if not path.is_file():
                raise click.UsageError(f"there is no file {module_name}")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # where dataclasses and pickle look
            sys.path.insert(0, str(path.parent.resolve()))
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(module_name)
    except click.UsageError:
        raise
    except Exception as error:
        raise click.UsageError(
            f"cannot import {module_name}: {type(error).__name__}: {error}"
        ) from error
    found: Any = module
    for part in function.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise click.UsageError(f"module {module_name} has no function {function!r}")
    return found


def split_target(target: str) -> tuple[str, str]:
    """Return module and function of MODULE:FUNCTION."""
    module_name, colon, function = target.rpartition(":")
    if not colon or not module_name or not function:
        raise click.UsageError(f"the target must read MODULE:FUNCTION, got {target!r}")
    return module_name, function


def file_of(target: str) -> Path | None:
    """Return where the module of a target lies, without running any of its code; None if nowhere.

    Of a module in a package, where the package lies; of one without a file, where Python does.
    """
    module_name, _ = split_target(target)
    if module_name.endswith(".py"):
        return Path(os.path.realpath(module_name))
    import_from_here()
    try:
        spec = importlib.util.find_spec(module_name.partition(".")[0])
    except (ImportError, ValueError):  # such as __main__, which can be imported all the same
        return Path(sys.base_prefix)
    if spec is None:
        return None
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [])
    return Path(os.path.realpath(places[0] or sys.base_prefix if places else sys.base_prefix))
