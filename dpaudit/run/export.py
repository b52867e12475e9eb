"""Write a refuted claim as a separate test, which fails until the bug is fixed."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dpaudit.errors import StoreError
from dpaudit.results import AuditResult, Verdict
from dpaudit.run.settings import RunSettings
from dpaudit.store import load_record, pair_bytes, place_of, write_atomic

if TYPE_CHECKING:
    from dpaudit.neighbors import NeighborPair

_LARGEST = 200
"""Numbers of a dataset that are written into the test; larger ones go into a separate file."""

_FUNCTION = '''"""A refuted claim as a test, which fails until the bug is fixed.

Made by `dpaudit replay --export-test`.
"""

{title}

from pathlib import Path

import numpy as np
from numpy import inf, nan  # noqa: F401

from dpaudit import (  # noqa: F401
    ApproxDP,
    ApproxZCDP,
    Command,
    GaussianDP,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    ZeroConcentratedDP,
    audit,
)
from dpaudit.run import load_target  # noqa: F401

ROOT = Path(__file__).resolve().parents[{depth}]
PAIR = {pair}


def test_{name}(monkeypatch):
    monkeypatch.chdir(ROOT)  # where the audit was run
    result = audit(
        {mechanism},
        {claim},
        PAIR,
        draws={draws!r},
        failure_prob={failure_prob!r},
        seed={seed!r},
        method={method!r},
        float_attack={float_attack!r},
        score={score},
        mutants=None,
        id={id!r},
    )
    result.assert_not_refuted(power=False)
'''

_ITEM = '''"""A refuted claim as a test, which fails until the bug is fixed.

Made by `dpaudit replay --export-test`. The audit is run again as its file has it now; `result.pair`
holds the two datasets.
"""

{title}

import subprocess
import sys
from pathlib import Path

from dpaudit.store import load_result

ROOT = Path(__file__).resolve().parents[{depth}]


def test_{name}(tmp_path):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts="]
    command += ["--import-mode=importlib", "--dpaudit", f"--dpaudit-out={{tmp_path}}"]
    command += {options!r}
    command += [str(ROOT / {path!r}) + {item!r}]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    stored = tmp_path / {place!r}
    assert stored.exists(), ran.stdout + ran.stderr
    result = load_result(stored)
    result.assert_not_refuted(power=False)
'''


def export_test(stored: Path, file: Path) -> None:
    """Write a pytest file that runs a refuted audit again.

    Parameters
    ----------
    stored : Path
        The stored result.
    file : Path
        Path of the new test, below the working directory. The file must not exist.
    """
    record, problems = load_record(stored)
    if not isinstance(record, AuditResult):
        raise click.UsageError(f"{stored} must hold the result of an audit")
    if record.pair is None:
        raise StoreError(problems[0] if problems else f"{stored} was stored without its pair")
    result = record
    if result.verdict is not Verdict.REFUTED:
        raise click.UsageError(
            f"{result.id} must be REFUTED to make a failing test, got {result.verdict.words}"
        )
    _checked_new(file, "--export-test")
    here = Path.cwd().resolve()
    if not file.resolve().is_relative_to(here):
        raise click.UsageError(
            f"--export-test must lie below this directory, where the audit was run, got {file}"
        )
    depth = len(file.resolve().parent.relative_to(here).parts)
    kind = result.origin.get("kind")
    if kind not in ("function", "file"):
        raise click.UsageError(
            f"{result.id} was made by a direct call of dpaudit.audit, so no file can repeat it. "
            "Call assert_not_refuted() on the result of the call"
        )
    write = _function_test if kind == "function" else _item_test
    try:
        text = write(result, file, depth)
    except KeyError as error:
        raise StoreError(f"{stored} does not say how it was made: origin lacks {error}") from None
    write_atomic(file, text)


def _common(result: AuditResult, depth: int) -> dict[str, Any]:
    """Return the fields of both templates.

    Stored text enters code only as a comment or by ``repr``.
    """
    assert result.pair is not None
    words = (
        f"{result.claim['words']} is violated by {result.mechanism}, on {result.pair.describe()}."
    )
    return {
        # The comment is below the docstring, because a comment in the first two lines may declare
        # an encoding.
        "title": "\n".join(f"# {line}" for line in words.replace("\0", "").splitlines()),
        "name": re.sub(r"[^a-z0-9]+", "_", result.id.lower()).strip("_") or "audit",
        "depth": depth,
    }


def _function_test(result: AuditResult, file: Path, depth: int) -> str:
    """Return a test that imports the mechanism and audits it on the stored pair."""
    origin, pair = result.origin, result.pair
    assert pair is not None
    return _FUNCTION.format(
        **_common(result, depth),
        mechanism=_mechanism_code(origin),
        claim=_claim_code(origin),
        score=None if (score := origin.get("score")) is None else f"load_target({score!r})",
        pair=_pair_code(pair, file),
        seed=result.seed,
        id=result.id,
        **{name: origin[name] for name in ("draws", "failure_prob", "method", "float_attack")},
    )


def _mechanism_code(origin: dict[str, Any]) -> str:
    """Return the expression of a function or of a program, whose errors may be outcomes."""
    target = origin["target"]
    if (options := origin.get("command")) is None:
        code = f"load_target({target!r})"
    else:
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        code = f"Command({shlex.split(target)!r}, {words})"
    errors = origin.get("errors", "raise")
    return code if errors == "raise" else f"Outcomes({code}, errors={errors!r})"


def _claim_code(origin: dict[str, Any]) -> str:
    """Return the expression of a claim. The pair names the relation."""
    if origin["mu"] is not None:
        return f"GaussianDP({origin['mu']!r})"
    if origin["rho"] is not None and origin["delta"]:
        return f"ApproxZCDP({origin['rho']!r}, {origin['delta']!r})"
    if origin["rho"] is not None:
        return f"ZeroConcentratedDP({origin['rho']!r})"
    if origin["delta"]:
        return f"ApproxDP({origin['epsilon']!r}, {origin['delta']!r})"
    return f"PureDP({origin['epsilon']!r})"


def _item_test(result: AuditResult, file: Path, depth: int) -> str:
    """Return a test that runs the audit file again, by its name and with its settings."""
    origin = result.origin
    settings = RunSettings(
        origin["profile"], result.seed, origin["failure_prob"], origin["sequential"]
    )
    return _ITEM.format(
        **_common(result, depth),
        path=origin["path"],
        options=settings.pytest_options(),
        item=f"::{origin['item']}",
        place=place_of(result),
    )


def _pair_code(pair: NeighborPair, file: Path) -> str:
    """Return the expression of a pair.

    Large datasets are written into a separate file.
    """
    sides = [pair.left, pair.right]
    if pair.relation.name == "replace_value" and all(_is_literal(side) for side in sides):
        return (
            f"NeighborPair({pair.left!r}, {pair.right!r}, relation=Relation.LOCAL, "
            f"recipe={pair.recipe!r})"
        )
    if not all(isinstance(side, np.ndarray) for side in sides):
        raise click.UsageError(
            "pair must consist of two arrays, because other data cannot be written into a test"
        )
    plain = all(a.dtype.kind in "biuf" and a.dtype.itemsize <= 8 for a in sides)
    if plain and all(side.size <= _LARGEST for side in sides):
        words = [f"np.array({side.tolist()!r}, dtype={side.dtype.str!r})" for side in sides]
    else:
        beside = file.with_suffix(".npz")
        write_atomic(beside, pair_bytes(pair))
        load = f"np.load(Path(__file__).with_name({beside.name!r}))"
        words = [f"{load}[{name!r}]" for name in ("left", "right")]
    relation = repr(pair.relation)
    return (
        "NeighborPair(\n"
        + "".join(f"    {word},\n" for word in words)
        + f"    relation={relation},\n    recipe={pair.recipe!r},\n)"
    )


def _is_literal(value: Any) -> bool:
    """Return whether ``repr`` of a value is an expression of an equal value."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError):
        return False


def export_reproducer(stored: Path, file: Path | None, *, markdown: bool) -> str:
    """Return the program or the issue of a refuted audit, and write it to a new file if given.

    Parameters
    ----------
    stored : Path
        The stored result.
    file : Path or None
        Path of the new file.
    markdown : bool
        Whether to return the text of an issue.
    """
    record, _ = load_record(stored)
    if not isinstance(record, AuditResult):
        raise click.UsageError(f"{stored} must hold the result of an audit")
    text = record.reproducer(markdown=markdown)
    if file is not None:
        _checked_new(file, "--out")
        write_atomic(file, text)
    return text


def _checked_new(file: Path, option: str) -> None:
    if file.exists():
        raise click.UsageError(f"{option} must be a new file, got {file}, which exists")
