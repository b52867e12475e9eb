"""A refutation as a program that needs only numpy and the mechanism."""

from __future__ import annotations

import ast
import copy
import functools
import io
import itertools
import math
import os
import re
import textwrap
import tokenize
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.engine.certificate import Certificate
from dpaudit.engine.concluding import versions
from dpaudit.engine.task import Task
from dpaudit.events import Event, Guess, best_event_with_code, event_code
from dpaudit.mechanisms import (
    OneDraw,
    Outcomes,
    Scored,
    global_generators_kept,
    is_computed,
    is_seeded,
    mechanism_name,
)
from dpaudit.mutants import NotAlone, Program
from dpaudit.results import Reproducer, short
from dpaudit.stats import Counts, lower_proportion

MOST_LINES = 60
"""Largest number of lines of the program, without the copied source of the mechanism."""

_WIDTH = 96
_CELLS = 60  # Numbers of a dataset that are written one by one.
_ROWS = 8  # Rows that may differ from the others in a larger dataset.
_DOUBT = 1e-4  # Failure probability of the rates from which the number of draws is chosen.
_EXPLORED = 20_000  # Largest number of draws per dataset for an event that has code.
_SOURCE = 40  # Largest number of lines that are copied from the source of the mechanism.
_REASON = 200  # Characters of an unexpected error that are kept.
_FEWEST, _MOST = 250, 1_000_000  # Numbers of draws of the program.
_LETTERS = 12_000  # Largest number of characters of the program.
_ALIKE, _CHECKED = 32, 200  # Draws that are compared, one by one and by their number.
_OTHER_SEED = 3  # The seeds 1 and 2 make the draws that certify.
_FAR = 60  # Numbers of 200 draws that differ by more do not differ by chance.
_CONSTANTS = ("LEFT", "RIGHT", "DRAWS", "FAILURE_PROB")
_NAMES = (*_CONSTANTS, "in_event", "many_outputs", "count_event", "lower_bound")

_TEMPLATE = '''"""{title}

{meaning}
{certificate}
{made}
"""
{imports}

{definitions}{datasets}
DRAWS, FAILURE_PROB = {draws}, {failure_prob!r}


def in_event(x):
    """{event}"""
    return {code}


def many_outputs(data, rng):
    """Return the outputs of DRAWS runs."""
    outputs = {call}
    return {outputs}


def count_event(data, seed):
    """Return the number of outputs in the event."""
{setup}    return int(np.sum(in_event(many_outputs(data, np.random.default_rng(seed)))))


def lower_bound(hits):
    """Return the Clopper-Pearson bound, which fails with probability FAILURE_PROB / 2."""
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, DRAWS + 1))))
    k = np.arange(hits, DRAWS + 1)
    low, high = 0.0, hits / DRAWS
    for _ in range(60 if hits else 0):
        p = (low + high) / 2
        terms = k * math.log(p) + (DRAWS - k) * math.log1p(-p) - logs[k] - logs[DRAWS - k]
        too_small = np.exp(logs[DRAWS] + terms).sum() < FAILURE_PROB / 2
        low, high = (p, high) if too_small else (low, p)
    return low


if __name__ == "__main__":
    likely, rare = count_event({likely}, 1), count_event({rare}, 2)
    low, high = lower_bound(likely), 1 - lower_bound(DRAWS - rare)
    epsilon = math.floor(math.log(max({low}, high) / high) * 1000) / 1000
    print(f"event in {{likely}} of {{DRAWS}} outputs on {likely}, in {{rare}} on {rare}")
    print(f"bounds of its probability: {{low:.6f}} on {likely}, {{high:.6f}} on {rare}")
    print(f"epsilon at least {{epsilon}}{at} except with probability {{FAILURE_PROB:g}}")
    print("claimed: {point}")
    print("certified by the audit: {certified}")
'''


def reproducer_of(task: Task, mechanism: Any, found: Certificate) -> Reproducer:
    """Return the program that shows a refutation, or the reason why there is none.

    Parameters
    ----------
    task : Task
        The task of the audit.
    mechanism : callable, AdditiveNoise or ExactMechanism
        The mechanism.
    found : Certificate
        A certificate that refutes the claim, on the pair that the program contains.
    """
    try:
        return Reproducer(_program(task, mechanism, found))
    except NotAlone as reason:
        return Reproducer("", str(reason))
    except Exception as error:  # a program must not cost the user a certified refutation
        return Reproducer("", f"{type(error).__name__}: {short(str(error), _REASON)}")


def _program(task: Task, mechanism: Any, found: Certificate) -> str:
    if is_computed(mechanism):
        raise NotAlone("the audit computed the probabilities, and drew no outputs")
    event, counts = _chosen(found) or _explored(task, mechanism, found)
    code = event_code(event)
    epsilon, delta = _point(task, found, counts, event.likelier)
    draws = _draws(counts, event.likelier, epsilon, delta, task.failure_prob)
    program = Program(("dpaudit",), imports_modules=True, reserved=_NAMES)
    program.module("math")
    program.module("numpy", "np")
    setup, call = _call(program, mechanism)
    used = [name for name in _fields(event) if repr(name) in code]
    outputs = _outputs(event, used, mechanism, found)
    datasets = _datasets(program, found.pair.left, found.pair.right)
    definitions = _joined(program.definitions)
    likely, rare = ("LEFT", "RIGHT") if event.likelier == "left" else ("RIGHT", "LEFT")
    point = f"epsilon = {epsilon:g}" + f", delta = {delta:g}" * (delta > 0)
    lower = f"epsilon >= {math.floor(found.epsilon.lower * 1000) / 1000:g}"
    if found.point[1] > 0:
        lower += f" at delta = {found.point[1]:.3g}"
    seen = found.witness.sentence().replace("on the left", "on LEFT")
    text = _TEMPLATE.format(
        title=_filled(f"{mechanism_name(mechanism)} does not satisfy {task.claim}."),
        meaning=_filled(
            f"LEFT and RIGHT are neighbours ({found.pair.relation}). The claim implies that "
            f"P(event on {likely}) <= exp({epsilon:g}) P(event on {rare})"
            + (f" + {delta:g}." if delta > 0 else ".")
        ),
        certificate=_filled(
            f"An audit with random seed {task.seed} certified {lower} on these datasets, except "
            f"with probability {found.epsilon.failure_prob:g}: "
            + seen.replace("on the right", "on RIGHT")
            + "."
        ),
        made=_filled(
            f"Made by dpaudit {versions()['dpaudit']}. The draws below are new."
            + " Run the program in the directory of the audit." * bool(program.folders)
        ),
        imports="\n".join(_imports(program)),
        definitions=definitions + "\n\n\n" * bool(definitions),
        datasets=datasets,
        draws=draws,
        failure_prob=task.failure_prob,
        event=_filled(f"Return where {event.description}, in full precision.", "    ").strip(),
        code=_wrapped(code, "    return "),
        call=_wrapped(call, "    outputs = "),
        outputs=_wrapped(outputs, "    return "),
        setup="".join(f"    {line}\n" for line in setup),
        likely=likely,
        rare=rare,
        low=f"low - {delta!r}" if delta > 0 else "low",
        at=f" at delta = {delta:g}" if delta > 0 else "",
        point=point,
        certified=lower,
    )
    copied = sum(part.count("\n") + 1 for part in program.definitions)
    lines = text.count("\n") - copied - 2 * len(program.definitions)
    if copied > _SOURCE or lines > MOST_LINES:
        raise NotAlone(
            f"the mechanism has {copied} lines, of which at most {_SOURCE} are copied, and the "
            f"rest of the program has {lines}, of which at most {MOST_LINES} are allowed"
        )
    if len(text) > _LETTERS:
        raise NotAlone(f"the program would have more than {_LETTERS:,} characters")
    _check(text, event, mechanism, found)
    return text


def _check(text: str, event: Event, mechanism: Any, found: Certificate) -> None:
    """Run a program on few draws, and refuse it unless it does what the mechanism does."""
    names: dict[str, Any] = {"__name__": "program"}
    form, words = found.pair.form, "the program would not do what the mechanism does"
    try:
        with global_generators_kept():
            exec(compile(text, "program", "exec"), names)
            for name, data in (("LEFT", found.pair.left), ("RIGHT", found.pair.right)):
                if form.digest(names[name]) != form.digest(data):
                    raise NotAlone(f"the program would change the dataset {name}")
                names["DRAWS"] = size = _ALIKE if _draws_alike(mechanism) else _CHECKED
                made = mechanism(copy.deepcopy(data), size, rng=np.random.default_rng(_OTHER_SEED))
                expected = event(np.asarray(made))
                if size == _ALIKE:
                    again = names["many_outputs"](names[name], np.random.default_rng(_OTHER_SEED))
                    is_same = np.array_equal(names["in_event"](again), expected)
                    is_same &= _are_equal(again, made)
                else:
                    is_same = (
                        abs(names["count_event"](names[name], _OTHER_SEED) - int(expected.sum()))
                        <= _FAR
                    )
                if not is_same:
                    raise NotAlone(words)
    except NotAlone:
        raise
    except Exception as error:
        failed = f"{type(error).__name__}: {short(str(error), _REASON)}"
        raise NotAlone(f"{words}, but raises {failed}") from error


def _are_equal(again: Any, made: Any) -> bool:
    """Return whether a program made the outputs of the mechanism; True for rows of any length."""
    if isinstance(again, dict):
        return all(_are_equal(values, made[name]) for name, values in again.items())
    if any(getattr(each, "dtype", np.dtype(object)).kind == "O" for each in (again, made)):
        return True
    again, made = np.asarray(again), np.asarray(made)
    if made.dtype.kind in "biuf":
        made = made.astype(float)
    return np.array_equal(again, made, equal_nan=made.dtype.kind == "f")


def _draws_alike(mechanism: Any) -> bool:
    """Return whether a mechanism and its program draw the same from the same generator."""
    while isinstance(mechanism, Scored | Outcomes | functools.partial):
        if isinstance(mechanism, functools.partial):
            mechanism = mechanism.func
        else:
            mechanism = mechanism.mechanism
    if isinstance(mechanism, OneDraw):
        return mechanism.randomness == "rng"
    return is_seeded(mechanism) and getattr(mechanism, "called", None) is None


def _chosen(found: Certificate) -> tuple[Event, Counts] | None:
    """Return the event of the witness with the strongest evidence that has code, if any has."""
    chosen, witness = found.event, found.witness
    events: list[tuple[Event, Counts]] = []
    if witness.counts is not None and isinstance(chosen, Event):
        events = [(chosen, witness.counts)]
    elif witness.counts is not None and witness.right is not None and isinstance(chosen, Guess):
        events = [(chosen.left, witness.counts), (chosen.right, witness.right)]
    delta = found.point[1]
    events.sort(key=lambda each: -_rates(each[1], each[0].likelier, delta, 0.05)[2])
    return next((each for each in events if event_code(each[0])), None)


def _explored(task: Task, mechanism: Any, found: Certificate) -> tuple[Event, Counts]:
    """Return an event with code, learnt on new draws, because the witness has no code."""
    sampler = task.sampler(mechanism, "reproducer")
    pair, draws = found.pair, min(found.draws["certify"] + found.draws["explore"], _EXPLORED)
    sampler.certifies = False
    sampler.begin(pair.left, pair.right)
    left, right = (
        sampler.draw(data, draws, "explore", side)
        for side, data in (("left", pair.left), ("right", pair.right))
    )
    event = best_event_with_code(left, right, found.point[1])
    if event is None:
        raise NotAlone(f"the event is learnt or long ({found.witness.event})")
    return event


def _point(task: Task, found: Certificate, counts: Counts, likelier: str) -> tuple[float, float]:
    """Return the epsilon and delta of the claim that the event exceeds most."""
    if task.claim.point is not None:
        return task.claim.point
    points = [found.point, *zip(task.grid.tolist(), task.claimed.tolist(), strict=True)]
    best = max(points, key=lambda at: _rates(counts, likelier, at[1], _DOUBT)[2] - at[0])
    return _rounded_up(best[0]), _rounded_up(best[1])  # the claim implies larger numbers


def _rounded_up(value: float) -> float:
    """Return a number with four digits that is at least as large."""
    near = float(f"{value:.4g}")
    return near if near >= value else float(f"{value * (1 + 5e-4):.4g}")


def _rates(
    counts: Counts, likelier: str, delta: float, failure_prob: float
) -> tuple[float, float, float]:
    """Return a lower bound, an upper bound, and the epsilon that both need."""
    c = counts if likelier == "left" else counts.swapped()
    low = lower_proportion(c.hits_left, c.draws_left, failure_prob)
    high = 1 - lower_proportion(c.draws_right - c.hits_right, c.draws_right, failure_prob)
    return low, high, math.log(max(low - delta, 1e-300) / high)


def _draws(counts: Counts, likelier: str, epsilon: float, delta: float, failure_prob: float) -> int:
    """Return how many draws should certify more than the claim again."""
    low, high, most = _rates(counts, likelier, delta, _DOUBT)
    enough, draws = epsilon + (most - epsilon) / 4, _FEWEST
    while enough > epsilon and draws <= _MOST:
        hits = max(low * draws - 3 * math.sqrt(low * draws), 0.0)
        misses = min(high * draws + 3 * math.sqrt(high * draws), draws)
        again = Counts(int(hits), draws, math.ceil(misses), draws)
        if _rates(again, "left", delta, failure_prob / 2)[2] > enough:
            return draws
        draws *= 2
    raise NotAlone(
        f"the draws do not show whether {_MOST:,} draws certify the event again; audit with more "
        "draws"
    )


# --- the mechanism ---


def _call(program: Program, mechanism: Any) -> tuple[list[str], str]:
    """Return lines that come before the call, and the call that makes all draws."""
    if isinstance(mechanism, Scored):
        setup, call = _call(program, mechanism.mechanism)
        name, bound = program.function(mechanism.score)
        return setup, f"{name}({call}{_keywords(program, bound)})"
    if isinstance(mechanism, Outcomes):
        if mechanism.errors != "raise":
            raise NotAlone("exceptions count as outputs")
        setup, call = _call(program, mechanism.mechanism)
        if mechanism.then is not None:
            name, bound = program.function(mechanism.then)
            call = f"[{name}(draw{_keywords(program, bound)}) for draw in {call}]"
        return setup, call
    outer: dict[str, Any] = {}
    while isinstance(mechanism, functools.partial) and not mechanism.args:
        outer, mechanism = {**mechanism.keywords, **outer}, mechanism.func
    if isinstance(mechanism, OneDraw):
        return _one_draw(program, mechanism, outer)
    if getattr(mechanism, "called", None) is not None:  # a release of diffprivlib
        name, bound = program.function(mechanism.called)
        given = _keywords(program, {**bound, **outer})
        state = "random_state=np.random.RandomState(int(rng.integers(2**32)))"
        return [], f"[{name}(np.ravel(data){given}, {state}) for _ in range(DRAWS)]"
    if hasattr(mechanism, "dpaudit_unseeded") and hasattr(mechanism, "__wrapped__"):
        mechanism = mechanism.__wrapped__
    name, bound = program.function(mechanism)
    return [], f"{name}(data, DRAWS{_keywords(program, {**bound, **outer})}, rng=rng)"


def _one_draw(program: Program, mechanism: OneDraw, outer: dict[str, Any]) -> tuple[list[str], str]:
    name, bound = program.function(mechanism.function)
    given = _keywords(program, {**bound, **outer})
    handed = {"rng": ", rng=rng", "integer": ", seed=int(rng.integers(2**32))"}
    setup: list[str] = []
    if mechanism.randomness == "legacy":
        program.module("random")
        setup = ["random.seed(seed), np.random.seed(seed)"]
    elif mechanism.randomness is not None and mechanism.randomness not in handed:
        raise NotAlone(f"the mechanism draws from a generator of {mechanism.randomness}")
    how = handed.get(mechanism.randomness or "", "")
    program.module("copy")
    return setup, f"[{name}(copy.deepcopy(data){given}{how}) for _ in range(DRAWS)]"


def _keywords(program: Program, bound: dict[str, Any]) -> str:
    def source(value: Any) -> str:
        if isinstance(value, FunctionType):
            name, more = program.function(value)
            if not more:
                return name
        return program.source(value)

    return "".join(f", {name}={source(value)}" for name, value in bound.items())


def _imports(program: Program) -> list[str]:
    """Return the imports; modules that are not installed come after their folders."""
    lines = program.imports()
    if not program.folders:
        return lines
    folders = [f"sys.path.insert(0, {_near(folder)!r})" for folder in program.folders]
    first = [line for line in lines if line.split()[1] in ("__future__", "math", "numpy")]
    at = len(first) - ("import numpy as np" in first)
    rest = [line for line in lines if line not in first]
    return [*first[:at], "import sys", *first[at:], *folders, *rest]


def _joined(definitions: list[str]) -> str:
    """Return functions and constants, with two empty lines around each function."""
    text = ""
    for before, part in zip(["", *definitions], definitions, strict=False):
        is_near = not (before.startswith("def ") or part.startswith("def "))
        text += ("\n" if is_near else "\n\n\n") * bool(text) + part
    return text


def _near(folder: str) -> str:
    """Return a folder below the working directory as a relative path."""
    here = os.getcwd()
    return os.path.relpath(folder, here) if Path(folder).is_relative_to(here) else folder


# --- outputs ---


def _fields(event: Event) -> list[str]:
    """Return the fields of records, in order."""
    names = []
    for column in event.encoder.columns:
        if column.code.startswith("x["):
            for node in ast.walk(ast.parse(column.code)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.append(node.value)
    return list(dict.fromkeys(names))


def _outputs(event: Event, used: list[str], mechanism: Any, found: Certificate) -> str:
    """Return the expression that makes the argument of the event from the outputs."""
    columns = event.encoder.columns
    if any(column.code.startswith("np.array([") for column in columns):
        return "outputs"  # rows of different lengths
    if not used:
        is_text = any(column.labels is not None for column in columns)
        return "np.asarray(outputs)" if is_text else "np.asarray(outputs, dtype=float)"
    inner = mechanism.mechanism if isinstance(mechanism, Scored | Outcomes) else mechanism
    keys = _keys_of(inner, found)
    if keys is None:
        return "outputs"
    keys.update({str(key): key for key in getattr(mechanism, "keys", None) or ()})
    parts = []
    for name in used:
        key = name.removeprefix("has ")
        if name not in keys and name.startswith("has ") and key in keys:
            parts.append(f"{name!r}: np.array([{keys[key]!r} in draw for draw in outputs])")
        elif name in keys:
            read = f"draw.get({keys[name]!r}, np.nan)"
            parts.append(f"{name!r}: np.array([{read} for draw in outputs], dtype=float)")
        else:
            raise NotAlone(f"the event reads {name!r}, which is no key of the outputs")
    if any(c.labels is not None for c in columns if any(repr(name) in c.code for name in used)):
        raise NotAlone("the event reads a text in a dict")
    return "{" + ", ".join(parts) + "}"


def _keys_of(mechanism: Callable[..., Any], found: Certificate) -> dict[str, Any] | None:
    """Return the keys of dicts that a mechanism returns; None if it returns arrays."""
    rng = np.random.default_rng(0)
    bound: dict[str, Any] = {}
    while isinstance(mechanism, functools.partial):
        bound, mechanism = {**mechanism.keywords, **bound}, mechanism.func
    draw = mechanism.draws_one_by_one if isinstance(mechanism, OneDraw) else mechanism
    try:
        draws = draw(found.pair.left, 2, rng=rng, **bound)
    except Exception as error:
        raise NotAlone("the keys of its outputs are unknown") from error
    if isinstance(draws, list | tuple) and all(isinstance(draw, dict) for draw in draws):
        return {str(key): key for draw in draws for key in draw}
    if isinstance(draws, np.ndarray | dict):
        return None
    raise NotAlone(f"its outputs are of type {type(draws).__name__}")


# --- datasets ---


def _datasets(program: Program, left: Any, right: Any) -> str:
    """Return the lines that define both datasets, the second by its differences if possible."""
    if not isinstance(left, np.ndarray):
        return "\n".join(
            _wrapped(_literal(program, side), f"{name} = ", first=True)
            for name, side in (("LEFT", left), ("RIGHT", right))
        )
    lines = _array(program, "LEFT", left)
    if left.shape == right.shape and left.dtype == right.dtype and left.ndim:
        differ = [at for at in range(len(left)) if not _same(left[at], right[at])]
        if left.size > 4 and len(differ) <= _ROWS:
            lines.append("RIGHT = LEFT.copy()")
            lines += [_row(program, "RIGHT", at, right[at]) for at in differ]
            return "\n".join(lines)
    return "\n".join(lines + _array(program, "RIGHT", right))


def _array(program: Program, name: str, value: NDArray[Any]) -> list[str]:
    if value.size <= _CELLS or not value.ndim:
        return [_wrapped(program.source(value), f"{name} = ", first=True)]
    rows, counts = np.unique(value, axis=0, return_counts=True)
    common = rows[counts.argmax()]
    others = [at for at in range(len(value)) if not _same(value[at], common)]
    if common.size > _CELLS or len(others) > _ROWS:
        raise NotAlone(f"a dataset of {value.size:,} different numbers is too long")
    is_constant = value.dtype.kind in "biuf" and _same(common, np.full_like(common, common.flat[0]))
    start = f"np.repeat({program.source(common[None])}, {len(value)}, axis=0)"
    if is_constant:
        dtype = "" if value.dtype == float else f", dtype={value.dtype.name!r}"
        start = f"np.full({value.shape}, {program.source(common.flat[0])}{dtype})"
    lines = [_wrapped(start, f"{name} = ", first=True)]
    return lines + [_row(program, name, at, value[at]) for at in others]


def _row(program: Program, name: str, at: int, row: Any) -> str:
    values = row.tolist()
    return _wrapped(program.source(values), f"{name}[{at}] = ", first=True)


def _same(a: Any, b: Any) -> bool:
    return np.asarray(a).tobytes() == np.asarray(b).tobytes()  # -0.0 is not 0.0


def _literal(program: Program, value: Any) -> str:
    """Return the source of a dataset that is no array."""
    package = type(value).__module__.partition(".")[0]
    if type(value).__name__ != "DataFrame" or package not in _SHORT:
        return program.source(value)
    short = _SHORT[package]
    program.module(package, short)
    if package == "polars":
        columns = {name: value[name].to_list() for name in value.columns}
        made = f"{short}.DataFrame({program.source(columns)})"
    else:
        columns = {name: value[name].tolist() for name in value.columns}
        index = value.index.tolist()
        plain = index == list(range(len(index)))
        given = "" if plain else f", index={program.source(index)}"
        made = f"{short}.DataFrame({program.source(columns)}{given})"
    again = type(value)(columns) if package == "polars" else type(value)(columns, value.index)
    if not again.equals(value):
        raise NotAlone("the columns of the frame have types that plain data do not give")
    return made


_SHORT = {"pandas": "pd", "polars": "pl"}


# --- text ---


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text.replace('"', "'").replace("\\", "/"), _WIDTH, subsequent_indent=indent
    )


def _wrapped(code: str, before: str, *, first: bool = False) -> str:
    """Wrap code inside its brackets, below the assignment or return that comes before it.

    The result begins with `before` only if `first`.
    """
    indent = " " * (len(before) - len(before.lstrip()) + 4)
    parts = [code]
    if len(before + code) > _WIDTH:
        parts = _parts(code)
        if len(parts) == 1 or re.search(r"\) [|&] \(", code):
            parts = _parts(f"({code})")
    lines = [before]
    for part in parts:
        if len(lines[-1]) + len(part.rstrip()) > _WIDTH and lines[-1].strip():
            lines.append(indent)
        lines[-1] += part
    text = "\n".join(line.rstrip() for line in lines)
    return text if first else text[len(before) :]


def _parts(code: str) -> list[str]:
    """Return pieces of code that may stand on different lines, because a bracket encloses them."""
    cuts, depth = [0], 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.OP:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if depth and token.string == ",":
            cuts.append(token.end[1] + 1)
        elif depth and token.string in "|&":
            cuts.append(token.start[1])
    return [code[a:b] for a, b in itertools.pairwise([*cuts, len(code)])]
