"""Packages of synthetic data: smartnoise-synth (MWEM, MST, AIM) and mbi (Private-PGM).

The target `test-adapters-hunt-synthetic` of the Makefile installs both packages. The audits are
skipped if a package is not installed. dpmm needs other versions: `audit_old_packages.py` audits it.

Each row is a user. The canary is a row whose category, or combination of categories, nobody else
has. Claims name no relation. The noise is made for adding or removing a row, so most audits use
this relation. Fits have fewer iterations than by default, because they use only noisy numbers.
"""

from __future__ import annotations

import importlib
from functools import cache, partial

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import (
    NeighborPair,
    PureDP,
    Relation,
    Released,
    Settings,
    ZeroConcentratedDP,
    mutants,
    one_draw,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore:Flattened dimensionality"
)
EPSILON, DELTA, RHO = 1.0, 1e-5, 0.125
ADD, REPLACE = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER
QUICK = Settings(shrink=False)
SMARTNOISE = needs("snsynth", "--no-deps smartnoise-synth==1.0.8")
MBI = needs("mbi", "'mbi<2'")
RELEASED = 10
"""Number of released rows, unless the package chooses this number."""


def added(rows, canary):
    """Return a pair: the rows with the canary, and without."""
    return NeighborPair(np.array([*rows, canary]), np.array(rows), relation=ADD)


def replaced(rows, canary, other):
    """Return a pair: the rows with the canary, and with another row in its place."""
    return NeighborPair(np.array([*rows, canary]), np.array([*rows, other]), relation=REPLACE)


# --- smartnoise-synth: whole syntheses ---


def table(rows):
    """Return a frame of categories, which are texts."""
    pandas = importlib.import_module("pandas")
    return pandas.DataFrame(np.asarray(rows).astype(int).astype(str)).add_prefix("column ")


def public_domain(categories):
    """Return a transformer that was fitted to public categories, one sequence per column."""
    transforms = importlib.import_module("snsynth.transform")
    labels = [transforms.LabelTransformer(nullable=False) for _ in categories]
    longest = max(map(len, categories))
    rows = [[column[i % len(column)] for column in categories] for i in range(longest)]
    transformer = transforms.TableTransformer(labels)
    transformer.fit(table(rows))
    return transformer


def fitted(rows, name, *, epsilon, categories=None, **options):
    """Return a fitted synthesizer, with public categories if `categories` has any."""
    made = importlib.import_module("snsynth").Synthesizer.create(name, epsilon=epsilon, **options)
    frame = table(rows)
    domain = {"categorical_columns": list(frame.columns)}
    if categories is not None:
        domain = {"transformer": public_domain(categories)}
    made.fit(frame, **domain)
    return made


@one_draw(randomness=None)
def synthesis(rows, *, released=RELEASED, **options):
    """Return released rows, whose categories are numbers as in the data."""
    made = fitted(rows, "mwem", epsilon=EPSILON, **options)
    return made.sample(len(rows) if released is None else released).astype(int)


@one_draw(randomness=None)
def density(rows, *, canary, epsilon=EPSILON, **options):
    """Return the logarithm of the density that the histogram of MWEM has at a cell."""
    histogram = fitted(rows, "mwem", epsilon=epsilon, **options).synthetic_histograms[0][0]
    return float(np.log(max(histogram[canary], 1e-9) / histogram.sum()))


PAIRED = [[0, 0], [1, 1]] * 10
"""Twenty rows of two equal columns."""
SINGLE = [[0], [1]] * 10
DOMAIN = [(0, 1), (0, 1)]
FEW = {"iterations": 3, "mult_weights_iterations": 2}


@SMARTNOISE
@pytest.mark.known_violation("categories are read from the rows, without budget")
def audit_smartnoise_inferred_domain(auditor):
    """Audit "a differentially private reversible data transform", for a category of one row.

    MST and AIM use the same transform. They take a second for a draw, so only the program in
    `findings` runs them.
    """
    auditor.check(
        Released(partial(synthesis, **FEW)),
        PureDP(EPSILON, REPLACE, "smartnoise-synth TableTransformer"),
        replaced(PAIRED, [2, 2], [0, 0]),
        mutants=[],
        draws=800,
        settings=QUICK,
    )


@SMARTNOISE
@pytest.mark.known_violation("MWEM reads the range of each column from the rows")
def audit_smartnoise_mwem_range(auditor):
    """Audit MWEM with public categories, of which only one row has the last."""
    auditor.check(
        Released(partial(synthesis, categories=[(0, 1, 2)] * 2, **FEW)),
        PureDP(EPSILON, REPLACE, "smartnoise-synth MWEM"),
        replaced(PAIRED, [2, 2], [0, 0]),
        mutants=[],
        draws=800,
        settings=QUICK,
    )


@SMARTNOISE
@pytest.mark.known_violation("the model knows the exact number of rows")
def audit_smartnoise_number_of_rows(auditor):
    """Audit `fit_sample`, which returns as many rows as it gets."""
    auditor.check(
        Released(partial(synthesis, released=None, **FEW)),
        PureDP(EPSILON, ADD, "smartnoise-synth fit_sample"),
        added(PAIRED, [0, 0]),
        mutants=[],
        draws=600,
        settings=QUICK,
    )


ONE_QUERY = {"iterations": 1, "measure_only": True, "categories": [(0, 1)]}


@SMARTNOISE
@pytest.mark.parametrize(
    "relation",
    [
        "add or remove",
        pytest.param(
            "replace",
            marks=pytest.mark.known_violation("the noise is made for a row that is added"),
        ),
    ],
)
def audit_smartnoise_mwem_measurement(auditor, relation):
    """Audit MWEM with the whole epsilon for one marginal."""
    pair = added(SINGLE, [1]) if relation != "replace" else replaced(SINGLE, [1], [0])
    auditor.check(
        partial(density, canary=(1,), epsilon=EPSILON, **ONE_QUERY),
        PureDP(EPSILON, pair.relation, "smartnoise-synth MWEM"),
        pair,
        mutants=[mutants.scaled(epsilon=3)],
        draws=5000,
        settings=QUICK,
    )


@SMARTNOISE
def audit_smartnoise_mwem(auditor):
    """Audit MWEM with public categories, for a combination that one row has."""
    auditor.check(
        partial(density, canary=(0, 1), epsilon=EPSILON, categories=DOMAIN, **FEW),
        PureDP(EPSILON, ADD, "smartnoise-synth MWEM"),
        added(PAIRED, [0, 1]),
        mutants=[mutants.scaled(epsilon=16)],
        draws=2000,
        settings=QUICK,
    )


# --- smartnoise-synth: parts of MST ---


def dataset(rows):
    mbi = importlib.import_module("mbi")
    rows = np.asarray(rows).astype(int)
    names = [f"column {i}" for i in range(rows.shape[1])]
    return mbi.Dataset(rows, mbi.Domain(names, [2] * len(names)))


@one_draw(randomness=None)
def mst_measure(rows, *, cliques, rho):
    """Return all noisy counts of marginals, with a third of the budget."""
    mst = importlib.import_module("snsynth.mst").MSTSynthesizer(EPSILON, DELTA)
    data = dataset(rows)
    cliques = [tuple(data.domain.attrs[i] for i in clique) for clique in cliques]
    measured = mst.measure(data, cliques, np.sqrt(1 / (2 * rho)))
    return np.concatenate([np.asarray(one.noisy_measurement) for one in measured])


class Uniform:
    """The estimate that MST makes of equal one-way counts."""

    def __init__(self, total):
        self.total = total

    def project(self, pair):
        """Return the estimate, which is equal for all pairs of columns."""
        return self

    def datavector(self):
        """Return the counts."""
        return np.full(25, self.total / 25)


class Counts(np.ndarray):
    """Counts of a marginal, with the method of mbi."""

    def __new__(cls, counts):
        """Return the counts as an array."""
        return np.asarray(counts).view(cls)

    def datavector(self):
        """Return the counts."""
        return np.asarray(self)


class Remembered:
    """Rows that compute each marginal once."""

    def __init__(self, rows):
        self.rows, self.marginals = np.asarray(rows).astype(int), {}
        self.domain = importlib.import_module("mbi").Domain([0, 1, 2], [5, 5, 5])

    def project(self, pair):
        """Return the counts of a marginal."""
        if tuple(pair) not in self.marginals:
            counts = np.zeros((5, 5))
            np.add.at(counts, tuple(self.rows[:, list(pair)].T), 1)
            self.marginals[tuple(pair)] = Counts(counts.ravel())
        return self.marginals[tuple(pair)]


def mst_select(rows, size, *, rng, rho, total=None):
    """Return which pair of columns MST does not select, given equal noisy one-way counts.

    `total` replaces the exact number of rows, which MST uses.
    """
    estimation = importlib.import_module("mbi.estimation")
    mst = importlib.import_module("snsynth.mst").MSTSynthesizer(EPSILON, DELTA)
    mst.exponential_mechanism = partial(mst.exponential_mechanism, prng=rng)
    data = Remembered(rows)

    def closed_form(domain, measured, *, known_total, **options):
        return Uniform(known_total)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimation, "mirror_descent", closed_form)
        trees = [mst.select(data, rho, [], total or len(rows)) for _ in range(size)]
    return np.array([sum(map(sum, tree)) for tree in trees])


def crossed_columns():
    """Return 125 rows with equal one-way counts, on whose pairs one row has the most influence.

    With equal columns 0 and 1, or 1 and 2, a row is more frequent than independence suggests. With
    equal columns 0 and 2, a row is absent.
    """
    generator, rows = np.random.default_rng(0), []
    for i in range(5):
        second = [j for j in range(5) for _ in range(9 if j == i else 4)]
        third = [j for j in range(5) if j != i for _ in range(6)]
        third.append((i + 1 + len(third)) % 5 if (i + 1 + len(third)) % 5 != i else (i + 1) % 5)
        rows += zip([i] * 25, second, generator.permutation(third), strict=True)
    return nearly_as_dependent(np.array(rows), generator)


def nearly_as_dependent(rows, generator):
    """Exchange entries of column 2 until columns 1 and 2 are as dependent as columns 0 and 1."""

    def distance(table):
        counts = np.zeros((5, 5))
        np.add.at(counts, (table[:, 1], table[:, 2]), 1)
        over = (counts > 5).sum()
        return abs(np.abs(counts - 5).sum() - 40) + 0.3 * over + 10 * (counts[0, 0] <= 5)

    best = distance(rows)
    for _ in range(4000):
        group = np.flatnonzero(rows[:, 0] == generator.integers(5))
        pair = generator.choice(group, 2, replace=False)
        rows[pair, 2] = rows[pair[::-1], 2]
        now = distance(rows)
        if now > best:
            rows[pair, 2] = rows[pair[::-1], 2]
        best = min(now, best)
    return rows


CROSSED = [[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]] * 5


@SMARTNOISE
@pytest.mark.parametrize("cliques", [((0,), (1,), (2,)), ((0, 1), (1, 2))], ids=["one", "two"])
def audit_smartnoise_mst_measure(auditor, cliques):
    """Audit the marginals that MST measures, each with a third of rho."""
    auditor.check(
        partial(mst_measure, cliques=cliques, rho=RHO),
        ZeroConcentratedDP(RHO, ADD, "smartnoise-synth MST.measure"),
        added(CROSSED, [1, 1, 0]),
        mutants=[mutants.scaled(rho=4)],
        draws=2500,
        settings=QUICK,
    )


@SMARTNOISE
@pytest.mark.parametrize(
    "total",
    [
        pytest.param(
            None, marks=pytest.mark.known_violation("scores depend on the exact number of rows")
        ),
        125,
    ],
    ids=["exact", "fixed"],
)
def audit_smartnoise_mst_select(auditor, total):
    """Audit the pairs of columns that MST selects, by two exponential mechanisms.

    rho makes epsilon 1/2 for each of them. The number of rows is exact, as in MST, or fixed.
    """
    rows = crossed_columns()
    auditor.check(
        partial(mst_select, rho=1 / 16, total=total),
        PureDP(1.0, ADD, "smartnoise-synth MST.select"),
        added(rows, [0, 0, 0]),
        mutants=[partial(mst_select, rho=1 / 16)] if total else [],
        draws=70_000,
        settings=QUICK,
    )


# --- mbi ---


@cache
def graphical_model(total):
    """Return a function of noisy counts that fits a model and returns log densities at all cells.

    `mirror_descent` runs for many draws at once. The step size is fixed for this reason.
    """
    jax = importlib.import_module("jax")
    mbi = importlib.import_module("mbi")
    loss_of = importlib.import_module("mbi.marginal_loss").from_linear_measurements
    domain = mbi.Domain(["a", "b", "c"], [2, 2, 2])

    def fit(first, second):
        pairs = [(first, ("a", "b")), (second, ("b", "c"))]
        loss = loss_of([mbi.LinearMeasurement(y, clique, 1.0) for y, clique in pairs])
        model = mbi.estimation.mirror_descent(
            domain, mbi.MarginalLossFn(loss.cliques, loss.loss_fn), known_total=total, iters=20
        )
        return jax.numpy.log(model.project(("a", "b", "c")).datavector() + 1e-6)

    return jax.jit(jax.vmap(fit))


def mbi_density(rows, size, *, rng, rho):
    """Return log densities at two cells of models of two noisy marginals."""
    data = dataset(rows)
    names = data.domain.attrs
    exact = [np.asarray(data.project(names[i : i + 2]).datavector()) for i in range(2)]
    scale = np.sqrt(2 / (2 * rho))  # each marginal has half of rho
    noisy = [counts + rng.normal(scale=scale, size=(size, 4)) for counts in exact]
    padded = -size % 1024
    noisy = [np.pad(y, ((0, padded), (0, 0))).reshape(-1, 1024, 4) for y in noisy]
    fits = graphical_model(20.0)
    logs = np.concatenate([np.asarray(fits(*chunk)) for chunk in zip(*noisy, strict=True)])[:size]
    return logs[:, [6, 0]].astype(float)


@MBI
def audit_mbi_graphical_model(auditor):
    """Audit a model of two marginals, by its density at a row that nobody else has."""
    auditor.check(
        partial(mbi_density, rho=RHO),
        ZeroConcentratedDP(RHO, ADD, "mbi mirror_descent"),
        added(CROSSED, [1, 1, 0]),
        mutants=[mutants.scaled(rho=4)],
        draws=10_000,
        settings=QUICK,
    )
