"""Models of diffprivlib: Bayes, k-means, two regressions, PCA and trees.

The package comes with ``pip install '.[third-party]'``. Each row is a user, whose label may change.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from audits.third_party.audit_third_party import installed
from dpaudit import NeighborPair, PureDP, Relation, Settings, adapters, mutants

ADD, REPLACE, EPSILON = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER, 1.0
QUICK = Settings(shrink=False)
# diffprivlib passes a deprecated option to scipy. A loss without a minimum does not converge.
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings(
        "ignore:scipy.optimize:DeprecationWarning", "ignore:lbfgs failed to converge"
    ),
]


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


# --- LogisticRegression ---


@installed("diffprivlib")
def audit_diffprivlib_logistic_regression(auditor):
    """Audit "achieved relative to the maximum norm of the data", without an intercept."""
    models = importlib.import_module("diffprivlib.models")
    auditor.check(
        adapters.diffprivlib_model(
            models.LogisticRegression,
            parameters="coef_",
            epsilon=EPSILON,
            data_norm=1.0,
            C=0.1,
            fit_intercept=False,
        ),
        PureDP(EPSILON, REPLACE, "diffprivlib LogisticRegression"),
        labelled(([0.0, 0.0, 1.0], [0, 1, 1]), ([0.0, 0.0, -1.0], [0, 1, 1])),
        mutants=[mutants.scaled(epsilon=8)],
        draws=1500,
        settings=QUICK,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("classes are read from the labels, without budget")
def audit_diffprivlib_logistic_regression_classes(auditor):
    """Audit the number of classes, for a row with a class of its own."""
    models = importlib.import_module("diffprivlib.models")
    features = [0.0] * 4
    auditor.check(
        adapters.diffprivlib_model(
            models.LogisticRegression,
            then=lambda model: len(model.coef_),
            epsilon=EPSILON,
            data_norm=1.0,
        ),
        PureDP(EPSILON, REPLACE, "diffprivlib LogisticRegression"),
        labelled((features, [0, 1, 1, 2]), (features, [0, 1, 1, 0])),
        mutants=[],
        draws=200,
        settings=QUICK,
    )


# --- LinearRegression ---


LINEAR = "diffprivlib LinearRegression"


def linear_regression(**options):
    """Return a mechanism that releases the coefficient and the intercept."""
    models = importlib.import_module("diffprivlib.models")
    return adapters.diffprivlib_model(
        models.LinearRegression,
        parameters=("coef_", "intercept_"),
        epsilon=EPSILON,
        **options,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("diffprivlib #105: a sensitivity that uses the lower bound only")
def audit_diffprivlib_linear_regression(auditor):
    """Audit "guaranteed with respect to the training sample", with a feature in [0.01, 1]."""
    auditor.check(
        linear_regression(bounds_X=(0.01, 1), bounds_y=(-1, 1), fit_intercept=False),
        PureDP(EPSILON, REPLACE, LINEAR),
        labelled(([0.01, 0.01], [0.0, 0.0]), ([0.01, 1.0], [0.0, 0.0])),
        mutants=[],
        draws=600,
        settings=QUICK,
    )


@installed("diffprivlib")
def audit_diffprivlib_linear_regression_symmetric(auditor):
    """Audit centred data without an intercept, where both bounds have the same size."""
    auditor.check(
        linear_regression(bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False),
        PureDP(EPSILON, REPLACE, LINEAR),
        labelled(([0.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [0.0, -1.0])),
        mutants=[mutants.scaled(epsilon=8)],
        draws=2000,
        settings=QUICK,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("rows are clipped to the bounds only if an intercept is fitted")
def audit_diffprivlib_linear_regression_clipping(auditor):
    """Audit a label that is outside of its bounds, without an intercept."""
    auditor.check(
        linear_regression(bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False),
        PureDP(EPSILON, REPLACE, LINEAR),
        labelled(([0.0, 1.0], [0.0, 0.0]), ([0.0, 1.0], [0.0, 1000.0])),
        mutants=[],
        draws=400,
        settings=QUICK,
    )


# --- PCA ---


@installed("diffprivlib")
def audit_diffprivlib_pca(auditor):
    """Audit centred data: the first of two components and its variance, for a row that turns it."""
    models = importlib.import_module("diffprivlib.models")
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    other = rows.copy()
    other[-1] = [0.0, 1.0]
    auditor.check(
        adapters.diffprivlib_model(
            models.PCA,
            parameters=("components_", "explained_variance_"),
            epsilon=EPSILON,
            n_components=1,
            data_norm=1.0,
            bounds=(0, 1),
            centered=True,
        ),
        PureDP(EPSILON, REPLACE, "diffprivlib PCA"),
        NeighborPair(rows, other, relation=REPLACE),
        mutants=[mutants.scaled(epsilon=16)],
        draws=4000,
        settings=QUICK,
    )


# --- trees ---


def votes(model):
    """Return the label that each tree gives to a row at 0."""
    return [float(tree.predict([[0.0]])[0]) for tree in getattr(model, "estimators_", [model])]


def trees(name, **options):
    """Return a mechanism that releases the labels of all trees at 0."""
    forest = importlib.import_module("diffprivlib.models.forest")
    return adapters.diffprivlib_model(
        getattr(forest, name),
        then=votes,
        epsilon=EPSILON,
        bounds=(0, 1),
        classes=[0, 1],
        max_depth=1,
        **options,
    )


def with_labels(left, right, relation):
    """Return a pair of rows at 0 with these labels."""
    sides = [{"X": np.zeros((len(labels), 1)), "y": np.array(labels)} for labels in (left, right)]
    return NeighborPair(*sides, relation=relation)


@installed("diffprivlib")
@pytest.mark.parametrize(
    "relation",
    [
        "add or remove",
        pytest.param(
            "replace",
            marks=pytest.mark.known_violation("one label changes two counts"),
        ),
    ],
)
def audit_diffprivlib_decision_tree(auditor, relation):
    """Audit the labels of a tree, which are drawn by permute-and-flip."""
    added = relation != "replace"
    pair = with_labels([0, 1, 0], [0, 1], ADD) if added else with_labels([0, 1], [0, 0], REPLACE)
    auditor.check(
        trees("DecisionTreeClassifier"),
        PureDP(EPSILON, pair.relation, "diffprivlib DecisionTreeClassifier"),
        pair,
        mutants=[mutants.scaled(epsilon=2)] if added else [],
        draws=6000,
        settings=QUICK,
    )


@installed("diffprivlib")
@pytest.mark.known_violation("one more row moves other rows to other trees")
def audit_diffprivlib_random_forest(auditor):
    """Audit the labels of five trees, if one row is added."""
    rows = [0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 1]
    auditor.check(
        trees("RandomForestClassifier", n_estimators=5),
        PureDP(EPSILON, ADD, "diffprivlib RandomForestClassifier"),
        with_labels(rows[:-1], rows, ADD),
        mutants=[],
        draws=1000,
        settings=QUICK,
    )
