"""Packages that need numpy 1: nprr and dpmm.

The target `test-adapters-hunt-old` of the Makefile makes the environment `.venv-hunt-old`, in which
these packages run. `DPAUDIT_HUNT_PYTHON` names another interpreter. Without such an interpreter,
the audits are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dpaudit import (
    ApproxDP,
    LocalDP,
    NeighborPair,
    PureDP,
    Relation,
    Settings,
    Subprocess,
    ZeroConcentratedDP,
)
from dpaudit.mechanisms import unseeded

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("DPAUDIT_HUNT_PYTHON", ROOT / ".venv-hunt-old/bin/python"))
OLD = pytest.mark.skipif(
    not PYTHON.exists(), reason=f"{PYTHON.name}: run make test-adapters-hunt-old"
)
EPSILON = 1.0
DRAWS = 0.2
"""Share of the profile's draws for nprr."""


def elsewhere(function):
    return Subprocess(PYTHON, f"{ROOT / 'audits/field/old_packages.py'}:{function}")


def by_the_system(function):
    """Return a mechanism of the other interpreter whose noise cannot be seeded."""
    return unseeded(elsewhere(function))


def users(left, right):
    """Return a pair of arrays, one row for each user, of whom one is replaced."""
    return NeighborPair(np.array(left), np.array(right), relation=Relation.REPLACE_USER)


@OLD
@pytest.mark.parametrize(
    "bins",
    [
        "one",
        pytest.param(
            "twenty",
            marks=pytest.mark.known_violation("rounding gives the two ends half the probability"),
        ),
    ],
)
def audit_nprr(auditor, bins):
    """Audit "r value in NPRR to achieve a given epsilon given G"."""
    values = [0.0, 1.0] if bins == "one" else [0.0, 0.5, 1.0]
    auditor.check(
        elsewhere(f"nprr_of_{bins}_bin{'s' * (bins != 'one')}"),
        LocalDP(EPSILON, domain=values, source="nprr r_from_G_eps"),
        mutants=[elsewhere("nprr_of_one_bin_mutant")] if bins == "one" else [],
        draws_factor=DRAWS if bins == "one" else 5 * DRAWS,
    )


@OLD
@pytest.mark.known_violation("scores have another sensitivity than their noise is made for")
def audit_dpmm_privbayes_cliques(auditor):
    """Audit "end-to-end Differential Privacy guarantees" of the selected cliques.

    The selection gets half of epsilon. The claim is the whole epsilon, at delta = 0. One of 1,000
    rows is replaced.
    """
    rows = np.zeros((1000, 3), dtype=int)
    changed = rows.copy()
    changed[-1] = 1, 1, 0
    auditor.check(
        elsewhere("privbayes_cliques"),
        PureDP(EPSILON, Relation.REPLACE_USER, "dpmm PrivBayes.select"),
        users(rows, changed),
        mutants=[],
        draws=1500,
        settings=Settings(shrink=False),
    )


@OLD
@pytest.mark.parametrize(
    "cause",
    [
        pytest.param(
            "constant_column",
            marks=pytest.mark.known_violation("a column with one value is released without noise"),
        ),
        pytest.param(
            "missing_value",
            marks=pytest.mark.known_violation("a missing value adds a column without budget"),
        ),
    ],
)
def audit_dpmm_pipeline(auditor, cause):
    """Audit "end-to-end DP pipelines including data preprocessing", with all categories declared.

    One of 20 rows is replaced. Its second value is unique, or missing. The claim is the sum of both
    budgets.
    """
    rows = np.array([[0, 0], [1, 0]] * 10) if cause == "constant_column" else CROSSED[:, :2]
    changed = rows.copy()
    changed[-1, 1] = 1 if cause == "constant_column" else 2
    auditor.check(
        by_the_system(f"dpmm_{cause}"),
        ApproxDP(EPSILON + 0.1, 1e-5, Relation.REPLACE_USER, "dpmm PrivBayesPipeline"),
        users(rows, changed),
        mutants=[],
        draws=60,
        settings=Settings(shrink=False),
    )


CROSSED = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]] * 5)


@OLD
def audit_dpmm_marginals(auditor):
    """Audit the marginals that MST of dpmm measures, for a combination that one row has."""
    canary = np.array([[1, 1, 0]])
    auditor.check(
        by_the_system("dpmm_counts"),
        ZeroConcentratedDP(1 / 8, Relation.ADD_REMOVE_USER, "dpmm MST.measure"),
        NeighborPair(np.vstack([CROSSED, canary]), CROSSED, relation=Relation.ADD_REMOVE_USER),
        mutants=[by_the_system("dpmm_counts_mutant")],
        draws=2500,
        settings=Settings(shrink=False),
    )
