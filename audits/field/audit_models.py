"""Models of diffprivlib: GaussianNB and KMeans.

The package comes with ``pip install '.[third-party]'``. Each row is a user, whose label may change.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from audits.third_party.audit_third_party import installed
from dpaudit import NeighborPair, PureDP, Relation, Settings, adapters, mutants

REPLACE, EPSILON = Relation.REPLACE_USER, 1.0
QUICK = Settings(shrink=False)


def labelled(left, right):
    """Return a pair of features and labels that differ in the last row."""
    sides = [{"X": np.array(x, float)[:, None], "y": np.array(y)} for x, y in (left, right)]
    return NeighborPair(*sides, relation=REPLACE)


def class_statistics(model):
    """Return the noisy counts and means of all classes."""
    return np.concatenate([model.class_count_, np.ravel(model.theta_)])


@installed("diffprivlib")
def audit_diffprivlib_gaussian_nb(auditor):
    """Audit "adds noise to satisfy differential privacy", for a feature whose label stays."""
    models = importlib.import_module("diffprivlib.models")
    features, labels = [0.0] * 8, [0, 1] * 4
    auditor.check(
        adapters.diffprivlib_model(
            models.GaussianNB, then=class_statistics, epsilon=EPSILON, bounds=(0, 1)
        ),
        PureDP(EPSILON, REPLACE, "diffprivlib GaussianNB"),
        labelled((features, labels), ([*features[:-1], 1.0], labels)),
        mutants=[mutants.scaled(epsilon=8)],
        draws=2000,
        settings=QUICK,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("an empty cluster gets no noise")
def audit_diffprivlib_k_means(auditor):
    """Audit the centres of two clusters, one of which is empty."""
    models = importlib.import_module("diffprivlib.models")
    rows = np.zeros((20, 1))
    other = rows.copy()
    other[-1] = 1.0
    auditor.check(
        adapters.diffprivlib_model(
            models.KMeans,
            then=lambda model: np.sort(model.cluster_centers_.ravel()),
            epsilon=EPSILON,
            bounds=(0, 1),
            n_clusters=2,
        ),
        PureDP(EPSILON, REPLACE, "diffprivlib KMeans"),
        NeighborPair(rows, other, relation=REPLACE),
        mutants=[],
        draws=800,
        settings=QUICK,
    )
