"""Tests that every public callable refuses bad arguments by name.

Only bad arguments that the table lists may be accepted. A callable is public if ``from dpaudit
import ...`` provides it and the reference documents it. The table has a valid call for each public
callable. Each bad value replaces each argument of the call in turn.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import inspect
import itertools
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import dpaudit
import dpaudit.ledger
import dpaudit.properties
import dpaudit.run.auditor
import dpaudit.stats.oracles
from dpaudit import Relation, adapters, mutants, neighbors
from dpaudit.claims import PureDP
from dpaudit.errors import ArgumentError, MechanismError, StoreError
from dpaudit.properties import strategies

ROOT = Path(dpaudit.__file__).parents[1]
HUGE = 10**400

BAD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "5": lambda: 5,
    "-1": lambda: -1,
    "0": lambda: 0,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "huge": lambda: HUGE,
    "1e300": lambda: 1e300,
    "''": lambda: "",
    "'x'": lambda: "x",
    "surrogate": lambda: "\ud800",
    "[]": list,
    "{}": dict,
    "object": object,
    "array": lambda: np.array([]),
    "generator": lambda: (i for i in range(3)),
    "True": lambda: True,
    "b'x'": lambda: b"x",
    "lambda": lambda: lambda *a, **k: 0,
}
"""Values that are created anew for each call."""

NUMBERS = {"5", "1e300"}
POSITIVE = {"5"}
COUNT = NUMBERS | {"0"}
ANY = set(BAD)
OPTIONAL = {"None"}
FLAG = {"True"}
FUNCTION = {"lambda"}
TEXT = {"''", "'x'"}
KEY = {"None", "5", "-1", "0", "''", "'x'", "lambda"}


@dataclass(frozen=True)
class Call:
    """A valid call, and the bad values that each argument accepts."""

    arguments: Callable[[], dict[str, Any]]
    accepts: dict[str, set[str]] = field(default_factory=dict)
    call: Callable[..., Any] | None = None


def mechanism(data: Any, size: int, *, rng: np.random.Generator) -> Any:
    return np.sum(data) + rng.laplace(size=size)


def rounded(data: Any, rng: Any) -> float:
    return float(np.sum(data))


def center(data: Any) -> float:
    return float(np.sum(data))


def pull(params: Any, data: Any) -> Any:
    return -np.asarray(data)[None]


def first_of(strategy: Any) -> Any:
    """Draw one example of a strategy.

    Strategies read their arguments only when an example is drawn.
    """
    settings = hypothesis.settings(
        max_examples=1, database=None, deadline=None, phases=[hypothesis.Phase.generate]
    )
    return hypothesis.find(strategy, lambda _: True, settings=settings)


def drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **arguments: first_of(function(**arguments))


PAIR = dpaudit.NeighborPair([[0.0], [1.0]], [[0.0], [5.0]])
RNG = functools.partial(np.random.default_rng, 1)
RELATION: dict[str, set[str]] = {}
SIZES = {"n_users": {"5"}, "m": {"5"}, "dim": {"5", "None"}}
DRAWN = {"n_users": {"5"}, "m": {"5"}, "d": {"5", "None"}}
DOMAIN = {**SIZES, "low": {"-1", "0"}, "high": {"5", "1e300"}}


def table() -> dict[str, Call]:
    claims = {"relation": OPTIONAL, "source": TEXT}
    keys = OPTIONAL | {"generator"}
    adapter = {"given": KEY, "then": OPTIONAL | FUNCTION}
    return {
        # --- claims ---
        "PureDP": Call(lambda: {"epsilon": 1.0}, {"epsilon": {"5", "0"}, **claims}),
        "ApproxDP": Call(
            lambda: {"epsilon": 1.0, "delta": 1e-6},
            {"epsilon": {"5", "0"}, "delta": {"0"}, **claims},
        ),
        "ZeroConcentratedDP": Call(lambda: {"rho": 1.0}, {"rho": NUMBERS, **claims}),
        "ApproxZCDP": Call(
            lambda: {"rho": 1.0, "delta": 1e-6}, {"rho": NUMBERS, "delta": {"0"}, **claims}
        ),
        "GaussianDP": Call(lambda: {"mu": 1.0}, {"mu": NUMBERS, **claims}),
        "RenyiDP": Call(
            lambda: {"alpha": 2.0, "epsilon": 1.0},
            {"alpha": NUMBERS, "epsilon": NUMBERS, **claims},
        ),
        "LocalDP": Call(
            lambda: {"epsilon": 1.0, "domain": [0, 1]},
            {"epsilon": {"5", "0"}, "delta": {"0"}, "domain": keys, "source": TEXT},
        ),
        "MetricDP": Call(
            lambda: {"epsilon": 1.0, "metric": lambda x, y: 1.0, "domain": [0, 1]},
            {
                "epsilon": {"5", "0"},
                "metric": FUNCTION,
                "delta": {"0"},
                "domain": keys,
                "source": TEXT,
            },
        ),
        "LongitudinalDP": Call(
            lambda: {"each": 1.0, "total": 2.0, "reports": 3, "domain": [0, 1]},
            {
                "each": {"0"},
                "total": {"5"},
                "reports": {"5"},
                "domain": {"generator"},
                "delta": {"0"},
                "source": TEXT,
            },
        ),
        "Accounted": Call(
            lambda: {"accounted": _pld(), "relation": Relation.REPLACE_USER},
            {"accounted": FUNCTION, "source": TEXT},
        ),
        "from_opendp": Call(
            lambda: {"measurement": _measurement(), "d_in": 1.0},
            {**claims, "d_in": {"5"}, "delta": OPTIONAL},
        ),
        # --- relations and pairs ---
        "Relation": Call(
            lambda: {"name": "replace_user"},
            {
                "norm": OPTIONAL,
                "radius": OPTIONAL,
                "users": {"5"},
                "label": OPTIONAL,
                "words": {"''"},
                "check": OPTIONAL,
            },
        ),
        "replace_label": Call(lambda: {"label": "income"}, {"label": {"5", "0", "'x'", "-1"}}),
        "within_sensitivity": Call(lambda: {"radius": 1.0, "norm": "l1"}, {"radius": NUMBERS}),
        "custom_relation": Call(
            lambda: {"words": "one edge", "check": lambda a, b: True},
            {"words": {"'x'"}, "check": FUNCTION},
        ),
        "NeighborPair": Call(
            lambda: {"left": [[0.0], [1.0]], "right": [[0.0], [5.0]]},
            {"recipe": {"'x'"}, "by": OPTIONAL, "differ": OPTIONAL},
        ),
        "PairFamily": Call(lambda: {"name": "few", "pairs": (PAIR,)}, {"name": {"'x'"}}),
        **{
            f"neighbors.{name}": Call(lambda: {"n_users": 3}, {**DOMAIN, "low": low, "high": high})
            for name, low, high in (
                ("far_user", {"-1", "0", "5"}, {"5", "1e300"}),
                ("clip_boundary_user", {"-1", "0"}, {"0", "5", "1e300"}),
                ("two_clusters", {"-1", "0"}, {"5", "1e300"}),
            )
        },
        "neighbors.majority_flip": Call(
            lambda: {"n_users": 3}, {**SIZES, "low": {"-1", "0"}, "high": {"5"}}
        ),
        "neighbors.constant_against_random": Call(
            lambda: {"n_users": 3, "m": 1, "rng": RNG()}, {**DOMAIN, "high": {"0", "5", "1e300"}}
        ),
        "neighbors.threshold_decider": Call(
            lambda: {"n_users": 9, "threshold": 3},
            {**SIZES, "threshold": {"5"}, "low": {"-1", "0"}, "high": {"5"}},
        ),
        "neighbors.value_pattern": Call(
            lambda: {"pattern": "one_above", "dim": 3}, {"dim": {"5"}, "center": {"5", "0", "-1"}}
        ),
        "neighbors.value_patterns": Call(
            lambda: {"dim": 3}, {"dim": {"5"}, "center": {"5", "0", "-1"}}
        ),
        "neighbors.streams": Call(
            lambda: {"steps": 8},
            {
                "steps": {"5"},
                "window": {"5"},
                "dim": {"5", "None"},
                "low": {"0", "-1"},
                "high": {"5", "1e300"},
            },
        ),
        "neighbors.AllPairs": Call(lambda: {"values": [0, 1]}, {"values": {"generator"}}),
        "neighbors.family": Call(lambda: {"pairs": PAIR}),
        "neighbors.portfolio": Call(
            lambda: {"n_users": 4, "m": 2},
            {
                **SIZES,
                "like": OPTIONAL,
                "n_users": {"5", "None"},
                "m": {"5", "None"},
                "dim": {"5", "None"},
                "low": OPTIONAL,
                "high": OPTIONAL,
                "schema": OPTIONAL,
                "missing": FLAG,
            },
        ),
        "Shuffled": Call(
            lambda: {"randomizer": mechanism},
            {"randomizer": FUNCTION, "outcomes": OPTIONAL | {"generator"}},
        ),
        "Summed": Call(lambda: {"randomizer": mechanism}, {"randomizer": FUNCTION}),
        "Longitudinal": Call(lambda: {"mechanism": mechanism}, {"mechanism": FUNCTION}),
        "SQL": Call(
            lambda: {"query": "SELECT 1"},
            {
                "query": {"'x'"},
                "engine": FUNCTION,
                "table": {"'x'"},
                "user": {"'x'"},
                "setup": {"'x'", "[]"},
                "key": {"'x'"} | OPTIONAL,
            },
        ),
        "Interactive": Call(
            lambda: {"start": _start, "queries": ["sum"], "spent": len},
            {
                "start": FUNCTION,
                "queries": {"generator"},
                "ask": FUNCTION | OPTIONAL,
                "spent": FUNCTION | OPTIONAL,
                "strategies": {"[]"},
                "limit": COUNT | OPTIONAL,
                "rounds": {"5"},
                "width": {"5"},
                "other": ANY,
                "randomness": OPTIONAL,
            },
        ),
        "Observed": Call(
            lambda: {"mechanism": _mechanism, "observe": "time"},
            {"mechanism": FUNCTION, "observe": {"'time'"}},
        ),
        "Released": Call(lambda: {"mechanism": _mechanism}, {"mechanism": FUNCTION}),
        "Strategy": Call(
            lambda: {"name": "mine", "choose": len},
            {"choose": FUNCTION, "name": {"'x'"}, "interleaves": FLAG},
        ),
        # --- search ---
        "neighbors.shrink": Call(
            lambda: {"pair": PAIR, "holds": lambda pair: True},
            {"holds": FUNCTION, "domain": {"None"}},
        ),
        "neighbors.item_steps": Call(lambda: {"pair": PAIR}, {}),
        "neighbors.removal_steps": Call(lambda: {"pair": PAIR}, {}),
        "neighbors.SearchSpace": Call(
            lambda: {"build": _build, "parameters": {"distance": neighbors.Interval(1.0, 2.0)}},
            {"build": FUNCTION, "name": TEXT},
        ),
        "neighbors.Interval": Call(
            lambda: {"low": 1, "high": 2}, {"low": {"0", "-1"}, "high": NUMBERS, "log": FLAG}
        ),
        "neighbors.Integer": Call(
            lambda: {"low": 1, "high": 2}, {"low": {"0", "-1"}, "high": {"5"}}
        ),
        "neighbors.Choice": Call(lambda: {"values": (1, 2)}, {"values": {"generator"}}),
        "neighbors.Magnitude": Call(lambda: {"least": 1.0, "most": 2.0}, {"most": NUMBERS}),
        **{
            f"neighbors.{name}": Call(lambda: {"n_users": 6}, DOMAIN)
            for name in ("outlier", "edge", "which_user", "some_items")
        },
        "neighbors.clusters": Call(lambda: {"n_users": 6, "most": 3}, {**DOMAIN, "most": {"5"}}),
        "neighbors.which_batch": Call(
            lambda: {"n_users": 10, "batch_size": 2}, {**DOMAIN, "batch_size": {"5"}}
        ),
        "neighbors.query_values": Call(
            lambda: {"dim": 3}, {"dim": {"5"}, "low": {"5", "-1", "0"}, "high": COUNT | {"-1"}}
        ),
        "neighbors.Schema": Call(
            lambda: {"columns": {"value": neighbors.Interval(0.0, 1.0)}},
            {
                "columns": OPTIONAL,
                "special": {"[]", "generator", "array"},
                "user": {"'x'"},
            },
        ),
        # --- mechanisms ---
        "one_draw": Call(
            lambda: {"function": rounded},
            {
                "function": FUNCTION | OPTIONAL,
                "randomness": OPTIONAL,
                "vmap": set(),
            },
        ),
        "unseeded": Call(lambda: {"mechanism": mechanism}, {"mechanism": FUNCTION}),
        "Outcomes": Call(
            lambda: {"mechanism": mechanism},
            {"mechanism": FUNCTION, "keys": keys, "then": OPTIONAL | FUNCTION, "apart": FLAG},
        ),
        "Command": Call(
            lambda: {"arguments": ["./release"]}, {"timeout": NUMBERS, "seeded": OPTIONAL}
        ),
        "Subprocess": Call(
            lambda: {"python": "python3", "target": "m.py:f"},
            {"python": {"'x'"}, "by": OPTIONAL | {"'x'"}},
        ),
        "AdditiveNoise": Call(
            lambda: {"centers": center, "noise": "laplace", "scale": 1.0},
            {"centers": FUNCTION, "scale": POSITIVE, "ball": OPTIONAL | FUNCTION},
        ),
        "Composition": Call(
            lambda: {
                "step": dpaudit.AdditiveNoise(center, "laplace", 1.0),
                "times": 2,
                "q": 0.5,
                "sampling": "poisson",
            },
            {"times": {"5"}, "q": OPTIONAL, "batch_size": OPTIONAL},
        ),
        "DPSGD": Call(
            lambda: {
                "gradient": pull,
                "start": [0.0],
                "clip_norm": 1.0,
                "sigma": 1.0,
                "steps": 2,
                "q": 0.5,
            },
            {
                "gradient": FUNCTION,
                "clip_norm": NUMBERS,
                "sigma": NUMBERS,
                "steps": {"5"},
                "learning_rate": NUMBERS,
                "loss": OPTIONAL,
                "batch_size": OPTIONAL,
            },
        ),
        "mechanisms.Processes": Call(
            lambda: {"count": 1},
            {"count": {"5"}},
            lambda **a: dpaudit.mechanisms.Processes(**a).close(),
        ),
        "mechanisms.Watch": Call(
            dict,
            {
                "progress": OPTIONAL | FUNCTION,
                "time_limit": OPTIONAL | NUMBERS,
                "call_limit": OPTIONAL | NUMBERS,
                "max_seconds": OPTIONAL | NUMBERS,
                "total": {"5", "0"},
                "done": {"5", "0"},
                "is_warned": FLAG,
                "begun": NUMBERS | {"0", "-1"},
                "may_show": {"5", "0"},
                "interrupted": FLAG,
            },
        ),
        # --- mutants ---
        "mutants.of_noise": Call(
            lambda: {"mechanism": mechanism, "datasets": [PAIR.left], "seed": 1},
            {
                "mechanism": FUNCTION,
                "datasets": {"generator"},
                "seed": {"5", "0"},
                "watch": OPTIONAL,
            },
        ),
        "mutants.of_code": Call(
            lambda: {"mechanism": mechanism, "pairs": [PAIR], "seed": 1},
            {
                "mechanism": FUNCTION,
                "seed": {"5", "0"},
                "size": {"5"},
                "most": OPTIONAL | {"5"},
                "limit": {"5", "1e300"},
                "watch": OPTIONAL,
            },
        ),
        "mutants.without": Call(lambda: {"name": "statistics.fmean"}),
        "mutants.patch": Call(
            lambda: {"name": "statistics.fmean", "replacement": center}, {"replacement": FUNCTION}
        ),
        "mutants.quieter": Call(lambda: {"name": "statistics.fmean"}, {"factor": {"0"}}),
        "mutants.scaled": Call(
            lambda: {"scale": 0.5},
            {"of": OPTIONAL, "scale": NUMBERS | {"0", "-1"}},
            lambda of=None, **factors: mutants.scaled(of, **factors),
        ),
        "mutants.Change": Call(
            lambda: {"name": "worse", "apply": lambda f: f}, {"name": {"'x'"}, "apply": FUNCTION}
        ),
        # --- audits ---
        "audit": Call(
            lambda: {
                "mechanism": mechanism,
                "claim": PureDP(1.0),
                "pairs": PAIR,
                "draws": 40,
                "seed": 1,
                "mutants": None,
            },
            {
                "mechanism": FUNCTION,
                "seed": {"5", "0"},
                "mutants": OPTIONAL | {"[]", "array"},
                "float_attack": FLAG,
                "score": OPTIONAL | FUNCTION,
                "id": OPTIONAL | {"'x'"},
                "settings": OPTIONAL,
            },
        ),
        "Settings": Call(
            dict,
            {
                "workers": OPTIONAL | {"5"},
                "executor": OPTIONAL,
                "time_limit": OPTIONAL | NUMBERS,
                "call_limit": OPTIONAL | NUMBERS,
                "max_seconds": OPTIONAL | NUMBERS,
                "cache_dir": OPTIONAL | {"'x'"},
                "progress": OPTIONAL | FUNCTION,
                "shrink": FLAG,
            },
        ),
        "noise_margin": Call(
            lambda: {
                "result": _audited(),
                "claim": PureDP(1.0),
                "variants": {0.5: mechanism},
                "draws": 40,
            },
            {
                "pair": OPTIONAL,
                "draws": OPTIONAL,
                "score": OPTIONAL | FUNCTION,
                "settings": OPTIONAL,
            },
        ),
        "audit_outputs": Call(
            lambda: {
                "left": np.arange(40.0),
                "right": np.arange(40.0),
                "claim": PureDP(1.0),
                "seed": 1,
            },
            {"seed": {"5", "0"}, "mutants": OPTIONAL | {"{}"}, "id": {"'x'"}},
        ),
        "audit_one_run": Call(
            lambda: {
                "scores": np.arange(20.0),
                "included": np.arange(20) % 2 == 0,
                "claim": PureDP(1.0),
            },
            {
                "guesses": OPTIONAL | {"5"},
                "id": OPTIONAL | {"'x'"},
                "coins": OPTIONAL,
            },
        ),
        "plan": Call(
            lambda: {"claim": PureDP(1.0), "true_epsilon": 3.0},
            {
                "true_epsilon": POSITIVE,
                "oracle": OPTIONAL,
                "rates": OPTIONAL,
            },
        ),
        "plan_one_run": Call(
            lambda: {"claim": PureDP(1.0), "mu": 2.0, "canaries": (100,), "failure_prob": 0.05},
            {
                "mu": POSITIVE,
                "true_epsilon": OPTIONAL,
            },
        ),
        "FloatAttack": Call(
            lambda: {"references": (1.0,), "scales": (1.0,)},
            {"references": {"[]", "array", "generator"}, "scales": {"[]", "array"}},
        ),
        # --- stored results ---
        "store.load_result": Call(lambda: {"path": "nowhere"}, {"path": {"'x'"}}),
        "store.read_history": Call(lambda: {"path": "nowhere"}, {"path": {"'x'"}}),
        "store.load_run": Call(lambda: {"out": "nowhere"}, {"out": {"'x'"}}),
        "store.load_frame": Call(lambda: {"out": "nowhere", "library": "pandas"}, {"out": {"'x'"}}),
        # --- ledger ---
        "statement": Call(lambda: {"id": "paper.lemma1"}, {"kind": TEXT, "replays": FLAG}),
        "check_sensitivity": Call(
            lambda: {"function": center, "bound": 10.0, "pairs": [PAIR], "examples": 5},
            {
                "function": FUNCTION,
                "bound": NUMBERS | {"0"},
                "examples": {"5"},
                "seed": {"5", "0"},
                "pairs": OPTIONAL,
            },
        ),
        "check_lipschitz": Call(
            lambda: {"function": center, "bound": 10.0, "examples": 5},
            {
                "function": FUNCTION,
                "bound": NUMBERS | {"0"},
                "examples": {"5"},
                "seed": {"5", "0"},
                "points": OPTIONAL,
                "d": {"5"},
            },
        ),
        "check_contraction": Call(
            lambda: {"function": np.asarray, "examples": 5},
            {
                "function": FUNCTION,
                "factor": NUMBERS | {"0"},
                "slack": NUMBERS | {"0"},
                "examples": {"5"},
                "seed": {"5", "0"},
                "points": OPTIONAL,
                "d": {"5"},
            },
        ),
        "properties.Array": Call(
            lambda: {"entries": neighbors.Interval(0.0, 1.0), "shape": ("n",)}
        ),
        "properties.Domain": Call(
            lambda: {"x": neighbors.Interval(0.0, 1.0), "constant": 1}, {"constant": ANY}
        ),
        # --- strategies ---
        **{
            f"properties.strategies.{name}": Call(dict, accepts, drawn(getattr(strategies, name)))
            for name, accepts in {
                "user_data": {**DRAWN, "bound": NUMBERS, "special": FLAG, "missing": FLAG},
                "neighbor_pairs": {**DRAWN, "bound": NUMBERS, "special": FLAG, "missing": FLAG},
                "vectors": {"d": {"5"}, "bound": NUMBERS},
            }.items()
        },
        # --- oracles ---
        "oracles.gaussian": Call(
            lambda: {"shift": 1.0, "sigma": 1.0}, {"shift": {"5", "0"}, "sigma": POSITIVE}
        ),
        "oracles.laplace": Call(
            lambda: {"shift": 1.0, "scale": 1.0}, {"shift": {"5", "0"}, "scale": POSITIVE}
        ),
        "oracles.discrete_laplace": Call(
            lambda: {"shift": 1, "scale": 1.0}, {"shift": {"5", "0"}, "scale": NUMBERS}
        ),
        "oracles.laplace_vector": Call(
            lambda: {"shifts": [1.0, 2.0], "scale": 1.0}, {"scale": NUMBERS}
        ),
        "oracles.randomized_response": Call(lambda: {"epsilon": 1.0}, {"epsilon": COUNT}),
        **{
            f"oracles.{name}": Call(
                lambda: {
                    "left_scores": [0.0, 1.0],
                    "right_scores": [1.0, 1.0],
                    "sensitivity": 1.0,
                    "epsilon": 1.0,
                },
                {"sensitivity": NUMBERS, "epsilon": NUMBERS},
            )
            for name in ("exponential_mechanism", "report_noisy_max")
        },
        "oracles.sparse_vector_patterns": Call(
            lambda: {
                "queries": [1.0, 2.0],
                "thresholds": [1.0, 1.0],
                "threshold_scale": 1.0,
                "query_scale": 1.0,
            },
            {
                "thresholds": COUNT | {"-1"},
                "threshold_scale": COUNT,
                "query_scale": COUNT,
                "cutoff": OPTIONAL | {"5"},
            },
        ),
        "oracles.above_threshold": Call(
            lambda: {
                "queries_left": [1.0],
                "queries_right": [2.0],
                "threshold": 1.0,
                "epsilon": 1.0,
            },
            {"threshold": COUNT | {"-1"}, "epsilon": NUMBERS, "sensitivity": NUMBERS},
        ),
        "oracles.fixed_threshold_sparse_vector": Call(
            lambda: {
                "queries_left": [1.0],
                "queries_right": [2.0],
                "thresholds": [1.0],
                "cutoff": 1,
                "epsilon": 1.0,
            },
            {"thresholds": COUNT | {"-1"}, "cutoff": {"5"}, "epsilon": NUMBERS},
        ),
        "oracles.discrete": Call(
            lambda: {"pmf_left": [0.5, 0.5], "pmf_right": [0.2, 0.8]}, {"outcomes": OPTIONAL}
        ),
        "oracles.nearest_private_pair": Call(
            lambda: {"oracle": dpaudit.oracles.randomized_response(2.0), "epsilon": 1.0},
            {"epsilon": {"0"}, "delta": {"0"}},
        ),
        "oracles.reachable_epsilon": Call(
            lambda: {
                "oracle": dpaudit.oracles.randomized_response(2.0),
                "delta": 0.0,
                "draws": 5,
                "power": 0.5,
                "failure_prob": 0.05,
            },
            {"delta": {"0"}, "draws": {"5"}},
        ),
        # --- adapters ---
        "adapters.opendp": Call(
            lambda: {"measurement": center},
            {**adapter, "measurement": FUNCTION, "at_once": FLAG},
        ),
        "adapters.opendp_query": Call(
            lambda: {"query": center, "contributions": 1, "epsilon": 1.0},
            {**adapter, "query": FUNCTION, "contributions": {"5"}, "epsilon": COUNT},
        ),
        "adapters.diffprivlib_tool": Call(
            lambda: {"function": center}, {**adapter, "function": FUNCTION}
        ),
        "adapters.diffprivlib_model": Call(
            lambda: {"model": center, "parameters": "coef_"},
            {
                "model": FUNCTION,
                "given": OPTIONAL | FUNCTION,
                "probe": OPTIONAL,
                "method": {"'x'"},
                "parameters": {"'x'"},
                "then": OPTIONAL,
            },
        ),
        "adapters.diffprivlib_mechanism": Call(
            lambda: {"mechanism": center}, {**adapter, "mechanism": FUNCTION, "utility": FLAG}
        ),
        "adapters.pydp": Call(
            lambda: {"algorithm": center},
            {**adapter, "algorithm": FUNCTION, "release": OPTIONAL | FUNCTION},
        ),
        "adapters.pipeline_dp": Call(
            lambda: {"params": center, "epsilon": 1.0},
            {
                **adapter,
                "params": FUNCTION,
                "epsilon": NUMBERS,
                "delta": {"0"},
                "partitions": OPTIONAL | {"generator"},
                "user": {"'x'"},
                "partition": OPTIONAL | {"'x'"},
                "value": OPTIONAL | {"'x'"},
            },
        ),
        "adapters.smartnoise_sql": Call(
            lambda: {"query": "SELECT 1", "metadata": {"a": 1}, "epsilon": 1.0, "delta": 1e-6},
            {**adapter, "query": {"'x'"}, "metadata": {"'x'"}, "epsilon": NUMBERS, "delta": {"0"}},
        ),
        "adapters.jax_privacy": Call(
            lambda: {"gradient": center, "params": [0.0], "stddev": 1.0},
            {
                "gradient": FUNCTION,
                "params": ANY,
                "stddev": NUMBERS,
                "steps": {"5"},
                "learning_rate": COUNT,
                "privatizer": OPTIONAL | FUNCTION,
                "then": OPTIONAL | FUNCTION,
            },
        ),
        "adapters.opacus": Call(
            lambda: {"model": center, "loss": center, "noise_multiplier": 1.0},
            {
                "model": FUNCTION,
                "loss": FUNCTION,
                "noise_multiplier": COUNT,
                "max_grad_norm": NUMBERS,
                "batch_size": OPTIONAL | {"5"},
                "epochs": {"5"},
                "learning_rate": NUMBERS,
                "poisson_sampling": FLAG,
                "release": set(),
                "then": OPTIONAL | FUNCTION,
            },
        ),
        "adapters.Drawn": Call(
            lambda: {"name": "mine", "prepare": center, "seeded": True},
            {
                **adapter,
                "name": {"'x'"},
                "prepare": FUNCTION,
                "seeded": FLAG,
                "quiet": OPTIONAL | {"'x'"},
                "called": OPTIONAL | FUNCTION,
            },
        ),
    }


@functools.cache
def _audited() -> dpaudit.AuditResult:
    return dpaudit.audit(mechanism, PureDP(1.0), PAIR, draws=200, mutants=None)


def _mechanism(data: Any, size: int, *, rng: Any) -> Any:
    return rng.random(size)


def _start(data: Any, *, rng: Any) -> Any:
    return len


def _build(distance: float) -> dpaudit.NeighborPair:
    return neighbors.far_user(n_users=2, high=distance)


def _pld() -> Any:
    from dp_accounting.pld import privacy_loss_distribution

    return privacy_loss_distribution.from_gaussian_mechanism(1.0, value_discretization_interval=0.1)


def _measurement() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=1.0
    )


READ_ONLY = set(
    """AuditResult Verdict engine.Plan engine.OneRunPlan engine.Frozen engine.Instrument engine.Run
    engine.Certificate engine.Bound events.Event events.Guess claims.Claim
    ledger.LedgerVerdict ledger.StatementResult properties.FunctionCheck properties.Method
    ledger.Ledger
    mutants.NoiseMutants mutants.CodeMutants mutants.Mutant mutants.Treatment
    mechanisms.SampledMechanism mechanisms.ExactMechanism mechanisms.Cluster neighbors.Portfolio
    oracles.Oracle oracles.DiscreteOracle oracles.GaussianOracle oracles.LaplaceOracle
    oracles.LaplaceVectorOracle oracles.NearestPrivatePair oracles.PatternDistribution
    results.CanaryGuesses results.Accumulated store.History store.HistoryLine
    results.Estimate results.Witness results.Profile results.MutantResult results.MutantStatus
    results.SmallestPair results.Cause results.CodeLine
    results.NoiseMargin results.MarginPoint results.SequentialPath results.Expectation
    results.Diagnostics store.StoredRun search.SearchRecord search.Trial search.ranking
    search.landscape run.auditor.Auditor adapters.Gradient""".split()  # noqa: SIM905
)
"""Types that dpaudit returns. Users read these types and do not create them."""


ELSEWHERE = {"adapters.torch_gradient", "adapters.jax_gradient"}
"""Functions that need PyTorch or JAX at once. `tests/adapters` tests their arguments."""


def public() -> dict[str, Any]:
    """Return the public callables by name."""
    named = {f"dpaudit.{name}" for name in {*dpaudit.__all__, *dpaudit._OF_EXTRAS}}
    for page in (ROOT / "docs/reference").glob("*.md"):
        named |= set(re.findall(r"\.\. auto(?:function|class):: (\S+)", page.read_text()))
    found = {
        name.removeprefix("dpaudit."): functools.reduce(getattr, name.split(".")[1:], dpaudit)
        for name in named
    }
    return {
        name: what
        for name, what in found.items()
        if callable(what) and not (isinstance(what, type) and issubclass(what, BaseException))
    }


def test_the_table_holds_every_public_callable() -> None:
    assert set(public()) - READ_ONLY - ELSEWHERE == set(table())
    assert set(public()) >= READ_ONLY | ELSEWHERE


def wrong(name: str, call: Call, function: Callable[..., Any]) -> Iterator[str]:
    """Yield the faults in the refusals of one callable."""
    run = call.call or function
    parameters = inspect.signature(function).parameters.values()
    named = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    names = re.compile(rf"\b({'|'.join({*named, *call.arguments()})})\b")
    for parameter, (words, make) in itertools.product(
        dict.fromkeys([*named, *call.arguments()]), BAD.items()
    ):
        accepted = words in call.accepts.get(parameter, set())
        where = f"{name}({parameter}={words})"
        try:
            run(**{**call.arguments(), parameter: make()})
        except (ArgumentError, TypeError) as error:
            last = traceback.extract_tb(error.__traceback__)[-1].filename
            if not last.startswith(str(ROOT / "dpaudit")):
                yield f"{where}: raw {error!r} of {last}"
            elif not names.search(str(error)) or len(str(error)) > 500:
                yield f"{where}: names no argument, or is long: {str(error)[:200]}"
            elif accepted:
                yield f"{where}: refused: {error}"
        except (MechanismError, StoreError) as error:  # the function ran, or the file was read
            if not accepted:
                yield f"{where}: {error!r}"
        except Exception as error:
            yield f"{where}: raw {error!r}"
        else:
            if not accepted:
                yield f"{where}: accepted"


@pytest.mark.slow
def test_bad_arguments_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    functions, calls = public(), table()
    if importlib.util.find_spec("opendp") is None:
        del calls["from_opendp"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in calls.items():
            with contextlib.suppress(StoreError):
                (call.call or functions[name])(**call.arguments())
        found = [
            line for name, call in calls.items() for line in wrong(name, call, functions[name])
        ]
    assert not found, f"{len(found)} of them:\n" + "\n".join(found)


def test_a_surrogate_is_named() -> None:
    with pytest.raises(ArgumentError, match="^id must be a text .* without surrogate characters"):
        dpaudit.audit(mechanism, PureDP(1.0), PAIR, draws=100, seed=1, id="\ud800")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: adapters.smartnoise_sql(5, None, epsilon=-1, delta=2), "metadata must be"),
        (lambda: adapters.pipeline_dp(pull, epsilon=-1), "epsilon must be"),
        (lambda: adapters.opacus(pull, pull, noise_multiplier=-1), "noise_multiplier must be"),
        (lambda: dpaudit.NeighborPair([[0.0]], [[1.0]], by="x"), "by must not be given"),
        (lambda: dpaudit.NeighborPair([[0.0]], [[1.0]], recipe=5), "recipe must be a text"),
        (lambda: dpaudit.PureDP(1.0, None, 5), "source must be a text"),
        (lambda: mutants.of_noise(mechanism, None, seed=1), "datasets must be a list"),
        (lambda: mutants.of_noise(mechanism, [], seed=1), "datasets must be a list"),
        (lambda: dpaudit.plan_one_run(PureDP(1.0), mu=1.0, canaries=()), "canaries must be"),
    ],
)
def test_the_calls_of_the_campaign_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=message):
        make()
