"""Small results, rows and runs that are made by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpaudit.ledger.paper import Statement
from dpaudit.ledger.rows import LedgerVerdict, StatementResult
from dpaudit.neighbors import NeighborPair
from dpaudit.results import (
    AuditResult,
    Diagnostics,
    Estimate,
    Expectation,
    Histogram,
    MutantResult,
    MutantStatus,
    Profile,
    Verdict,
    Witness,
)
from dpaudit.stats import Counts
from dpaudit.store import StoredRun
from tests.records import DIAGNOSTICS

PAIR = NeighborPair([[1.0]], [[0.0]])
OTHER_PAIR = NeighborPair([[2.0]], [[0.0]])
GRID = Profile((0.0, 1.0), (0.5, 0.1), (0.6, 0.2), (0.4, 0.0))
INF = math.inf

EDGES = tuple(np.linspace(-5.0, 6.0, 45).tolist())


def estimate(lower: float, upper: float = INF, **changes: Any) -> Estimate:
    """Return an epsilon from draws, or a computed epsilon if both bounds are equal."""
    exact = lower == upper
    facts = {
        "value": lower,
        "lower": lower,
        "upper": upper,
        "failure_prob": 0.0 if exact else 1e-6,
        "method": "computed from the pmf" if exact else "exact joint bound of two binomials",
        "counts": None if exact else Counts(90, 100, 10, 100),
        "certified": True,
    }
    return Estimate(**{**facts, **changes})


def claim(epsilon: float = 1.0, delta: float = 0.0) -> dict[str, Any]:
    """Return a claim in its stored form."""
    return {
        "notion": "approx_dp",
        "epsilon": epsilon,
        "delta": delta,
        "relation": "replace_user",
        "source": "",
        "words": f"({epsilon:g}, {delta:g})-DP",
        "parameters": {"epsilon": epsilon, "delta": delta},
    }


def laplace(scale: float, draws: int, seed: int, cut: float = 0.96) -> Histogram:
    """Return a histogram of Laplace noise around 1 and 0.

    The event is the ray above the edge near `cut`.
    """
    rng = np.random.default_rng(seed)
    left, right = (
        np.histogram(np.clip(rng.laplace(at, scale, draws), -4.9, 5.9), EDGES)[0].tolist()
        for at in (1.0, 0.0)
    )
    inside = tuple(edge >= cut for edge in EDGES[:-1])
    bins = tuple(f"up to {edge:.4g}" for edge in EDGES[1:])
    return Histogram("output", bins, EDGES, tuple(left), tuple(right), inside)


def result(**changes: Any) -> AuditResult:
    """Return the result of an audit of 100,000 draws without a refutation."""
    verdict = changes.get("verdict", Verdict.NOT_REFUTED)
    epsilon = changes.get("epsilon", estimate(0.9))
    facts: dict[str, Any] = {
        "id": "audit_x::audit_one",
        "mechanism": "one",
        "claim": claim(),
        "pair_words": "custom",
        "verdict": verdict,
        "reason": f"the verdict is {verdict.words}",
        "epsilon": epsilon,
        "delta": Estimate(0.1, 0.05, 1.0, epsilon.failure_prob, epsilon.method, None, True),
        "profile": GRID,
        "witness": Witness("output > 1", "left", epsilon.counts, 0.5, 0.2),
        "histogram": laplace(1.0, 20_000, 1),
        "failure_prob": epsilon.failure_prob,
        "p_value": 1.0,
        "draws": {"explore": 30_000, "certify": 70_000},
        "mutants": (mutant("halved", MutantStatus.KILLED), mutant("removed", MutantStatus.KILLED)),
        "expected": Expectation.NOT_REFUTED,
        "seed": 0,
        "seconds": 1.0,
        "mechanism_seconds": 0.5,
        "versions": {},
        "origin": {"path": "audits/audit_x.py", "item": "audit_one"},
        "pair": PAIR,
    }
    facts |= changes
    inner = {name: facts.pop(name) for name in DIAGNOSTICS & facts.keys()}
    return AuditResult(**facts, diagnostics=Diagnostics(**inner))


def mutant(name: str, status: MutantStatus, *, given: bool = False) -> MutantResult:
    """Return a mutant of the noise, or a given mutant if `given` is set."""
    return MutantResult(name, status, 1.0, 1e-6, 1000, noise="" if given else "line 1 of x.py")


def row(
    verdict: LedgerVerdict = LedgerVerdict.HOLDS, id: str = "p.one", **changes: Any
) -> StatementResult:
    """Return a statement that was checked and has the declared verdict."""
    facts: dict[str, Any] = {
        "stated": Statement(id, "p", "lemma", "Squares are at least 0."),
        "verdict": verdict,
        "expected": verdict,
        "origin": {"path": "audits/ledger_p.py", "item": "one", "profile": "quick"},
    }
    return StatementResult(**{**facts, **changes})


def run(**changes: Any) -> StoredRun:
    """Return a run that finished."""
    facts: dict[str, Any] = {
        "profile": "quick",
        "seed": 0,
        "failure_prob": 1e-6,
        "command": "dpaudit run",
        "versions": {"dpaudit": "0.1.0"},
        "family_wise_error": 2e-6,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.5,
        "complete": True,
    }
    return StoredRun(**{**facts, **changes})
