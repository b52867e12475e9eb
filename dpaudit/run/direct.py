"""The audit of one function by its name, for `dpaudit audit` and `dpaudit replay`."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import os
import re
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dpaudit import _json
from dpaudit._files import read_array
from dpaudit.errors import StoreError
from dpaudit.mechanisms import is_installed
from dpaudit.run.invoke import command_of, import_from_here
from dpaudit.run.provenance import provenance

if TYPE_CHECKING:
    from dpaudit.claims import Claim
    from dpaudit.engine import Settings
    from dpaudit.neighbors import NeighborPair, PairFamily, Portfolio, SearchSpace
    from dpaudit.results import AuditResult


def audit_function(
    origin: dict[str, Any], seed: int, *, root: Path | None = None, settings: Settings | None = None
) -> AuditResult:
    """Run the audit that is described by an ``origin`` of kind "function".

    If `root` is given, functions that are defined in code outside of that directory are refused.
    The origin does not contain `settings`. The result records whether `max_seconds` ended the
    audit.
    """
    from dpaudit.engine import audit
    from dpaudit.mechanisms import Command, Outcomes
    from dpaudit.results import Expectation
    from dpaudit.run.auditor import replays

    claim = claim_of(origin)
    pairs = None if origin.get("local") is not None else pairs_of(origin, seed)
    mechanism = _loaded(origin, origin["target"], root)
    named = origin["mutants"]
    mutants = None if named is None else [_loaded(origin, m, root) for m in named]
    programs = [one for one in (mechanism, *(mutants or ())) if isinstance(one, Command)]
    files = [Path(file) for one in programs for file in one.files]
    if origin.get("errors", "raise") != "raise":
        mechanism = Outcomes(mechanism, errors=origin["errors"])
    score = origin.get("score")
    result = audit(
        mechanism,
        claim,
        pairs,
        draws=origin["draws"],
        failure_prob=origin["failure_prob"],
        seed=seed,
        mutants=mutants,
        method=origin["method"],
        float_attack=origin["float_attack"],
        score=None if score is None else load_target(score, root),
        id=origin["target"],
        settings=settings,
    )
    if origin.get("command") is None:
        files += [file for one in (origin["target"], *(named or ())) for file in _files_of(one)]
    files += [] if score is None else _files_of(score)
    now = {"replays": replays(result, mechanism, mutants), **provenance(files, Path.cwd())}
    return result.with_origin({**origin, **now}, Expectation.NOT_REFUTED)


def _files_of(target: str) -> list[Path]:
    """Return the file of the module of a loaded MODULE:FUNCTION, if it has one."""
    module, _ = split_target(target)
    file = module if module.endswith(".py") else getattr(sys.modules[module], "__file__", None)
    return [] if file is None else [Path(file)]


# --- the claim and the pairs ------------------------------------------------------------------


def claim_of(origin: dict[str, Any]) -> Claim:
    """Return the claim of ``--epsilon`` or ``--rho`` (``--delta`` is optional), or of ``--mu``."""
    from dpaudit.claims import (
        ApproxDP,
        ApproxZCDP,
        GaussianDP,
        LocalDP,
        PureDP,
        Relation,
        ZeroConcentratedDP,
    )

    names = [name for name in ("epsilon", "mu", "rho") if origin[name] is not None]
    if len(names) != 1:
        given = " and ".join(f"--{name}" for name in names) or "none of them"
        raise click.UsageError(f"one of --epsilon, --mu and --rho must be given, got {given}")
    if origin["delta"] is not None and names == ["mu"]:
        raise click.UsageError("--delta must not be given with --mu")
    if (local := origin.get("local")) is not None:
        others = [name for name in (*_DESCRIBED, "pair", "relation") if origin[name] is not None]
        if others or names != ["epsilon"]:
            word = others[0] if others else names[0]
            raise click.UsageError(f"--{word} must not be given with --local")
        return LocalDP(origin["epsilon"], origin["delta"] or 0.0, domain=_values(local))
    relation = origin["relation"]
    relation = None if relation is None else Relation(relation)
    if names == ["mu"]:
        return GaussianDP(origin["mu"], relation)
    delta = origin["delta"] or 0.0
    if names == ["rho"] and delta:
        return ApproxZCDP(origin["rho"], delta, relation)
    if names == ["rho"]:
        return ZeroConcentratedDP(origin["rho"], relation)
    if delta == 0.0:
        return PureDP(origin["epsilon"], relation)
    return ApproxDP(origin["epsilon"], delta, relation)


def _values(text: str) -> list[Any]:
    """Return the values that ``--local`` lists."""
    text = text.strip()
    if text.startswith("["):
        try:
            values = _json.loads(text)
        except ValueError as error:
            raise click.UsageError(f"--local must be a list in JSON: {error}") from None
        return [tuple(one) if isinstance(one, list) else one for one in values]
    low, dots, high = text.partition("..")
    if dots and _is_whole(low) and _is_whole(high):
        if int(high) - int(low) >= _MOST_VALUES:
            raise click.UsageError(f"--local must list at most {_MOST_VALUES:,} values, got {text}")
        return list(range(int(low), int(high) + 1))
    words = [word.strip() for word in text.split(",")]
    if all(map(_is_whole, words)):
        return [int(word) for word in words]
    try:
        return [float(word) for word in words]
    except ValueError:
        return words


def _is_whole(word: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+", word.strip()) is not None


_MOST_VALUES = 10_000


def pairs_of(
    origin: dict[str, Any], seed: int
) -> NeighborPair | PairFamily | SearchSpace | Portfolio:
    """Return the pairs that ``--pair`` describes, or the portfolio of the described data."""
    from dpaudit.claims import Relation
    from dpaudit.mechanisms import generator
    from dpaudit.neighbors import pairs_from_words, portfolio

    described = [name for name in _DESCRIBED if origin[name] is not None]
    if origin["pair"] is not None:
        if described:
            raise click.UsageError(
                f"--pair and --{described[0]} must not both be given. Omit --pair to search the "
                "portfolio of the described data"
            )
        rng = generator(seed, origin["target"], "pair")
        return pairs_from_words(origin["pair"], rng=rng)  # type: ignore[no-any-return]
    shape = [name for name in ("users", "m", "dim") if origin[name] is not None]
    if origin["like"] is not None and shape:
        raise click.UsageError(
            f"--{shape[0]} must not be given with --like, because the shape is that of "
            "the data of --like"
        )
    data = None
    if (like := origin["like"]) is not None:
        try:
            data = read_array(Path(like))
        except (OSError, ValueError, EOFError, StoreError) as error:
            raise click.UsageError(f"--like: cannot read {like} as .npy: {error}") from None
    low, high = origin["range"] or (None, None)
    sizes = {"n_users": origin["users"], "m": origin["m"], "dim": origin["dim"]}
    made = portfolio(data, low=low, high=high, **sizes)
    return made if origin["relation"] is None else made.under(Relation(origin["relation"]))


_DESCRIBED = ("like", "users", "m", "dim", "range")


# --- targets ----------------------------------------------------------------------------------


def _loaded(origin: dict[str, Any], target: str, root: Path | None) -> Any:
    """Return the function or the program with a given name."""
    options = origin.get("command")
    return load_target(target, root) if options is None else command_of(target, options)


def load_target(target: str, root: Path | None = None) -> Any:
    """Import MODULE:FUNCTION; MODULE is a dotted name or the path of a .py file.

    If `root` is given, a function that is defined outside of that directory is refused. The reason
    is that a module inside the directory may have imported such a function.
    """
    module_name, function = split_target(target)
    import_from_here()
    try:
        if module_name.endswith(".py"):
            path = Path(module_name)
            if not path.is_file():
                raise click.UsageError(f"MODULE must be an existing file, got {module_name}")
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module  # dataclasses and pickle look up modules here
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
        if root is not None and not _is_defined_inside(found, root):
            raise click.UsageError(
                f"{target} is code outside of this directory, which a replay would run. Pass "
                "--trust if you trust the authors of the result and of that code"
            )
    if found is None:
        raise click.UsageError(f"module {module_name} has no function {function!r}")
    return found


def _is_defined_inside(found: Any, root: Path) -> bool:
    """Return whether code inside a directory defines a function or class, or created an object."""
    if isinstance(found, types.ModuleType):
        return False
    if isinstance(found, functools.partial):  # a routine since Python 3.14
        return True
    if not (isinstance(found, type | np.ufunc) or inspect.isroutine(found)):
        return True
    module = sys.modules.get(getattr(found, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    place = None if file is None else Path(file).resolve()
    return place is not None and place.is_relative_to(root.resolve()) and not is_installed(place)


def split_target(target: str) -> tuple[str, str]:
    """Return the module and the function of MODULE:FUNCTION."""
    module_name, colon, function = target.rpartition(":")
    if not colon or not module_name or not function:
        raise click.UsageError(f"target must be MODULE:FUNCTION, got {target!r}")
    return module_name, function


def file_of(target: str) -> Path | None:
    """Return the location of a target's module without running its code, or None.

    For a module in a package, return the location of the package. For a module without a file,
    return the location of Python.
    """
    module_name, _ = split_target(target)
    if module_name.endswith(".py"):
        return Path(os.path.realpath(module_name))
    import_from_here()
    try:
        spec = importlib.util.find_spec(module_name.partition(".")[0])
    except (ImportError, ValueError):  # a module such as __main__, which can be imported anyway
        return Path(sys.base_prefix)
    if spec is None:
        return None
    places = [spec.origin] if spec.has_location else list(spec.submodule_search_locations or [])
    return Path(os.path.realpath(places[0] or sys.base_prefix if places else sys.base_prefix))
