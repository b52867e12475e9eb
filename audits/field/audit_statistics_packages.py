"""Sums, counts, means and quantiles of small packages, as `make test-adapters-hunt` installs them.

Each claim is quoted in the audit or in `source`. If a claim does not name its neighbours, the audit
uses the relation under which the package needs the least noise. The audits are skipped if a package
is not installed. Most packages draw from the global generators, so dpaudit can change their noise.
The other audits multiply epsilon.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import tempfile
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import (
    AdditiveNoise,
    ApproxDP,
    LocalDP,
    NeighborPair,
    PureDP,
    Relation,
    mutants,
    one_draw,
    unseeded,
)

EPSILON = 1.0
ADD_REMOVE, REPLACE = Relation.ADD_REMOVE_USER, Relation.REPLACE_USER
DRAWS = 0.1
"""Share of the profile's draws, because most releases take 10 to 100 microseconds."""
FEW, FEWEST = 0.03, 0.01
"""Shares of the draws for releases of about 0.1 ms and 1 ms."""


def pair(left, right, relation=REPLACE):
    """Return a pair of datasets, one row for each user."""
    return NeighborPair(np.array(left), np.array(right), relation=relation)


COUNT = pair([1, 1, 1], [1, 1, 0])
UNIT = pair([0.0, 0.0, 1.0], [0.0, 0.0, 0.0])
"""Three users, of whom the last moves from one bound to the other."""
REMOVED = pair([0.0, 0.0, 1.0], [0.0, 0.0], ADD_REMOVE)


# --- diffpriv-pure ---

DIFFPRIV_PURE = needs("diffpriv_pure", "diffpriv-pure==0.1.0")


def diffpriv_pure(name):
    return getattr(importlib.import_module("diffpriv_pure"), name)


@one_draw(randomness="legacy")
def geometric_count(data, *, epsilon=EPSILON):
    return diffpriv_pure("private_count")(int(data.sum()), epsilon)


@DIFFPRIV_PURE
@pytest.mark.known_violation("the noise of a count is never negative")
def audit_diffpriv_pure_count(auditor):
    """Audit "Shifted geometric for pure ε-DP integer counts"."""
    auditor.check(
        geometric_count,
        PureDP(EPSILON, REPLACE, "diffpriv-pure private_count"),
        COUNT,
        draws_factor=DRAWS,
    )


@DIFFPRIV_PURE
@pytest.mark.parametrize("name", ["private_sum", "private_mean"])
def audit_diffpriv_pure_laplace(auditor, name):
    """Audit "Pure ε-DP: Laplace noise for a sum query". The number of users is public."""

    @one_draw(randomness="legacy")
    def release(data, *, epsilon=EPSILON):
        return diffpriv_pure(name)(data.tolist(), (0.0, 1.0), epsilon)

    auditor.check(
        partial(release, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, f"diffpriv-pure {name}"),
        UNIT,
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=DRAWS,
    )


@DIFFPRIV_PURE
@pytest.mark.parametrize(
    "epsilon",
    [
        1.0,
        pytest.param(
            10.0,
            marks=pytest.mark.known_violation("the classical formula needs epsilon below 1"),
        ),
    ],
)
def audit_diffpriv_pure_gaussian(auditor, epsilon):
    """Audit the scale of `gaussian_sigma`: "Analytic Gaussian σ per Balle & Wang 2018"."""
    auditor.check(
        AdditiveNoise(np.sum, "gaussian", scale=diffpriv_pure("gaussian_sigma")(1, epsilon, 0.01)),
        ApproxDP(epsilon, 0.01, REPLACE, "diffpriv-pure gaussian_sigma"),
        UNIT,
    )


class Responses:
    """The number of true answers among `n` randomised responses of one client."""

    def __init__(self, n, epsilon):
        self.n, self.true = n, 1 / (1 + math.exp(-epsilon))

    def pmf(self, value):
        """Return the probability of each number of true answers, from 0 to `n`."""
        from scipy.stats import binom

        return binom.pmf(np.arange(self.n + 1), self.n, self.true if value else 1 - self.true)


@DIFFPRIV_PURE
@pytest.mark.known_violation("advanced composition omits the term n epsilon (e^epsilon - 1)")
def audit_diffpriv_pure_advanced_composition(auditor):
    """Audit `advanced_composition`, "exposed for manual use", on randomised responses."""
    budget = diffpriv_pure("PrivacyBudget")(1000.0, 0.5)
    epsilon, delta = budget.advanced_composition(100, 1.0, 0.001)
    auditor.check(
        Responses(100, 1.0),
        LocalDP(epsilon, delta, domain=[0, 1], source="diffpriv-pure advanced_composition"),
    )


# --- eeprivacy ---

EEPRIVACY = needs("eeprivacy", "eeprivacy==0.0.5")
VECTORS = pair([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
AROUND_MEDIAN = [*np.linspace(0.3, 0.5, 15), 0.8]
"""Options of a quantile: fifteen below the values at 0.6, and one above these values."""


def eeprivacy(name, **settings):
    return getattr(importlib.import_module("eeprivacy.operations"), name)(**settings)


@EEPRIVACY
def audit_eeprivacy_sum(auditor):
    """Audit "Compute a sum, bounding sensitivity with clamping. Employs the Laplace Mechanism"."""

    @one_draw(randomness="legacy")
    def release(data):
        operation = eeprivacy("PrivateClampedSum", lower_bound=0.0, upper_bound=1.0)
        return operation.execute(values=data, epsilon=EPSILON)

    auditor.check(
        release,
        PureDP(EPSILON, REPLACE, "eeprivacy PrivateClampedSum"),
        pair([0.0, 0.0, 9.0], [0.0, 0.0, -9.0]),
        draws_factor=DRAWS,
    )


@one_draw(randomness="legacy")
def clamped_mean(data):
    operation = eeprivacy("PrivateClampedMean", lower_bound=0.0, upper_bound=1.0)
    return operation.execute(values=data, epsilon=EPSILON)


@EEPRIVACY
@pytest.mark.parametrize(
    "far",
    [
        1.0,
        pytest.param(
            100.0, marks=pytest.mark.known_violation("the clamped mean does not clamp its values")
        ),
    ],
)
def audit_eeprivacy_mean(auditor, far):
    """Audit "Compute a mean, bounding sensitivity with clamping". A user has a value up to `far`.

    If all values lie between the bounds, no violation is found.
    """
    auditor.check(
        clamped_mean,
        PureDP(EPSILON, REPLACE, "eeprivacy PrivateClampedMean"),
        pair([0.0] * 10, [0.0] * 9 + [far]),
        draws_factor=DRAWS,
    )


@EEPRIVACY
@pytest.mark.known_violation("all coordinates of the mean get the same noise")
def audit_eeprivacy_vector_mean(auditor):
    """Audit "Computes the mean of `vectors` privately using a clamped sum"."""

    @one_draw(randomness="legacy")
    def release(data):
        operation = eeprivacy(
            "PrivateVectorClampedMeanLaplace", lower_bound=0.0, upper_bound=1.0, k=2, N=len(data)
        )
        return operation.execute(vectors=data, epsilon=EPSILON, delta=0.0)

    auditor.check(
        release,
        PureDP(EPSILON, REPLACE, "eeprivacy PrivateVectorClampedMeanLaplace"),
        VECTORS,
        draws_factor=DRAWS,
    )


@EEPRIVACY
def audit_eeprivacy_histogram(auditor):
    """Audit "Compute a private histogram", where a user is added or removed."""

    @one_draw(randomness="legacy")
    def release(data):
        operation = eeprivacy("PrivateHistogram", bins=[0.0, 0.5, 1.0])
        return operation.execute(values=data, epsilon=EPSILON)

    auditor.check(
        release,
        PureDP(EPSILON, ADD_REMOVE, "eeprivacy PrivateHistogram"),
        REMOVED,
        draws_factor=DRAWS,
    )


@EEPRIVACY
@pytest.mark.parametrize(
    "data",
    [
        pair([0.0] * 4 + [0.6] * 2 + [1.0] * 4, [0.0] * 4 + [0.6] * 2 + [1.0] * 3, ADD_REMOVE),
        pytest.param(
            pair([0.0] * 4 + [0.6] * 2 + [1.0] * 4, [1.0] + [0.0] * 3 + [0.6] * 2 + [1.0] * 4),
            marks=pytest.mark.known_violation("scores of a quantile rise and fall with one user"),
        ),
    ],
    ids=["removed", "replaced"],
)
def audit_eeprivacy_median(auditor, data):
    """Audit "Implemented using Report Noisy Max (Claim 3.9)", whose proof needs monotone scores."""

    @one_draw(randomness="legacy")
    def release(data):
        operation = eeprivacy("PrivateQuantile", options=AROUND_MEDIAN)
        return operation.execute(values=data, epsilon=EPSILON, quantile=0.5)

    auditor.check(
        release,
        PureDP(EPSILON, data.relation, "eeprivacy PrivateQuantile"),
        data,
        draws_factor=2 * DRAWS,
    )


# --- syndp ---

SYNDP = needs("syndp", "syndp==0.5.2")


@SYNDP
@pytest.mark.parametrize(
    "seed",
    [
        "none",
        pytest.param(
            "default", marks=pytest.mark.known_violation("each call seeds the generator with 0")
        ),
    ],
)
def audit_syndp_laplace(auditor, seed):
    """Audit "data synthesis package that leverages local differential privacy"."""
    options = {"seed": None} if seed == "none" else {}

    @one_draw(randomness=None)
    def release(value, *, epsilon=EPSILON):
        mechanism = importlib.import_module("syndp.laplace_mechanism").laplace_mechanism
        return mechanism(value, sensitivity=1.0, epsilon=epsilon, **options)

    auditor.check(
        partial(release, epsilon=EPSILON),
        LocalDP(EPSILON, domain=[0.0, 1.0], source="syndp laplace_mechanism"),
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=DRAWS,
    )


@SYNDP
def audit_syndp_bounded_laplace(auditor):
    """Audit the "Fixed Point" noise of `boundedlaplacemechanism` with `seed=None`."""

    @one_draw(randomness=None)
    def release(value, *, epsilon=EPSILON):
        module = importlib.import_module("syndp.bounded_laplace_mechanism")
        return module.boundedlaplacemechanism(value, (0.0, 1.0), 0.01, epsilon, 0.0, seed=None)

    auditor.check(
        partial(release, epsilon=EPSILON),
        LocalDP(EPSILON, domain=[0.0, 0.5, 1.0], source="syndp boundedlaplacemechanism"),
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=FEW,
    )


# --- DiffPriv ---

DIFFPRIV = needs("DiffPriv", "DiffPriv==1.0.3")


def of_diffpriv(name):
    """Return a function of DiffPriv, whose import asks the network for the newest version."""
    newest = io.BytesIO(json.dumps({"info": {"version": "1.0.3"}}).encode())
    with mock.patch("urllib.request.urlopen", return_value=newest):
        return getattr(importlib.import_module("DiffPriv.diff"), name)


@DIFFPRIV
@pytest.mark.filterwarnings(
    "ignore:unclosed file", "ignore::pytest.PytestUnraisableExceptionWarning"
)
@pytest.mark.known_violation("the noise is made for the mean, and is added to each row")
def audit_diffpriv_laplace(auditor):
    """Audit "delta_f is the sensitivity of f", where f is the mean of twenty ages."""
    path = Path(tempfile.mkdtemp(), "private.csv")

    @one_draw(randomness="legacy")
    def release(data):
        text = io.StringIO("".join(f"{age}\n" for age in data))
        of_diffpriv("lapmech")(text, str(path), EPSILON, np.mean).close()
        return float(path.read_text().split(",")[0])

    auditor.check(
        release,
        PureDP(EPSILON, REPLACE, "DiffPriv lapmech"),
        pair([60.0] + [40.0] * 19, [20.0] + [40.0] * 19),
        draws_factor=FEWEST,
    )


@DIFFPRIV
@pytest.mark.known_violation("only the first two answers are randomised")
def audit_diffpriv_randomised_response(auditor):
    """Audit "Random Response is a simple differential privacy algorithm".

    The package names no epsilon. The claim is that of two fair coins, whose epsilon is log 3.
    """

    @one_draw(randomness="legacy")
    def release(data):
        answers = data.tolist()
        of_diffpriv("randresponse")(answers)
        return answers

    auditor.check(
        release,
        PureDP(math.log(3), REPLACE, "DiffPriv randresponse"),
        pair([0, 1, 1], [0, 1, 0]),
        draws_factor=FEW,
    )


# --- dwork ---

DWORK = needs("dwork", "dwork==0.0.13")


def table(data):
    """Return a dataset of dwork with the whole number `age` and the float `share` of each user."""
    pandas = importlib.import_module("pandas")
    types = importlib.import_module("dwork.language.types")
    schema = importlib.import_module("dwork.dataschema").DataSchema
    columns = {
        "age": types.Integer(min=0, max=200),
        "share": types.Float(min=0.0, max=1.0),
        "other": types.Float(min=0.0, max=1.0),
    }
    people = type("People", (schema,), columns)
    frame = pandas.DataFrame(
        {"age": data.astype(int), "share": data.clip(0, 1), "other": data.clip(0, 1)}
    )
    return importlib.import_module("dwork.dataset.pandas").PandasDataset(people, frame)


QUERIES = {
    "len": lambda t: t.len(),
    "sum of floats": lambda t: t["share"].sum(),
    "sum of integers": lambda t: t["age"].sum(),
    "sum of two sums": lambda t: t["share"].sum() + t["other"].sum(),
    "mean": lambda t: t["age"].sum() / t.len(),
}
LATTICE = "noise on integers is a multiple of the sensitivity"


@DWORK
@pytest.mark.parametrize(
    "query",
    [
        "len",
        "sum of floats",
        pytest.param("sum of integers", marks=pytest.mark.known_violation(LATTICE)),
        pytest.param("mean", marks=pytest.mark.known_violation(LATTICE)),
        pytest.param(
            "sum of two sums",
            marks=pytest.mark.known_violation("the sensitivity of a sum is that of one summand"),
        ),
    ],
)
def audit_dwork(auditor, query):
    """Audit "the required amount of noise that needs to be added [...] to achieve 0.5-DP"."""

    @one_draw(randomness=None)
    def release(data, *, epsilon=0.5):
        return QUERIES[query](table(data)).dp(epsilon)

    removed = query == "len"
    auditor.check(
        partial(release, epsilon=0.5),
        PureDP(0.5, ADD_REMOVE if removed else REPLACE, f"dwork {query}"),
        REMOVED if removed else UNIT,
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=DRAWS if query == "sum of two sums" else FEW,
    )


# --- diff-priv-laplace-python ---

DIFFPRIV_LAPLACE = needs("diffpriv_laplace", "diff-priv-laplace-python==1.0.5")
RANGE = "the sensitivity uses the smallest and the largest value of the data"


@DIFFPRIV_LAPLACE
@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("count", [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]),
        ("proportion", [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]),
        *(
            pytest.param(name, [5.0] * 3, [5.0, 5.0, 6.0], marks=pytest.mark.known_violation(RANGE))
            for name in ("mean", "variance")
        ),
        pytest.param("sum", [0.0] * 3, [0, 0, 1.0], marks=pytest.mark.known_violation(RANGE)),
        *(
            pytest.param(
                name,
                [0.0, 100.0, 0.0] if name == "max" else [0.0, 100.0, 100.0],
                [0.0, 0.0, 0.0] if name == "max" else [0.0, 0.0, 100.0],
                marks=pytest.mark.known_violation("the sensitivity is 1 for data of any range"),
            )
            for name in ("median", "max")
        ),
    ],
)
def audit_diffpriv_laplace_statistic(auditor, name, left, right):
    """Audit "anonymizes the value(s) using the provided privacy budget"."""

    @one_draw(randomness="legacy")
    def release(data):
        statistics = importlib.import_module("diffpriv_laplace.statistics").DiffPrivStatistics
        return getattr(statistics, name)(data, EPSILON)

    auditor.check(
        release,
        PureDP(EPSILON, REPLACE, f"diffpriv_laplace DiffPrivStatistics.{name}"),
        pair(left, right),
        draws_factor=DRAWS,
    )


# --- inf-tda ---

INF_TDA = needs("InfTDA", "inf-tda==0.1")
TUPLES = 25
"""Number of equal tuples of a user."""


def hierarchy(data, tuples):
    """Return a series of counts. Each user has a number from 0 to 3, and equal tuples there."""
    pandas = importlib.import_module("pandas")
    places = pandas.MultiIndex.from_tuples([("A", "a"), ("A", "b"), ("B", "a"), ("B", "b")])
    return pandas.Series(tuples * np.bincount(data, minlength=4), index=places)


@INF_TDA
@pytest.mark.parametrize(
    ("tuples", "distinct"),
    [
        (1, True),
        pytest.param(
            TUPLES,
            False,
            marks=pytest.mark.known_violation("sensitivities of distinct and equal tuples swapped"),
        ),
    ],
)
def audit_inf_tda(auditor, tuples, distinct):
    """Audit "Bounded Privacy": one user is replaced, and moves all tuples from A to B.

    The table of the package gives the sensitivity sqrt(2) m for m tuples.
    """

    @one_draw(randomness=None)
    def release(data, *, epsilon=EPSILON):
        function = importlib.import_module("InfTDA").inf_tda
        counts = hierarchy(data, tuples)
        released = function(counts, (epsilon, 0.01), contribution=tuples, distinct_tuples=distinct)
        return [int(released.get(place, 0)) for place in counts.index]

    auditor.check(
        partial(release, epsilon=EPSILON),
        ApproxDP(EPSILON, 0.01, REPLACE, "InfTDA inf_tda"),
        pair([0, 1, 2, 3, 0, 1, 2, 3, 0], [0, 1, 2, 3, 0, 1, 2, 3, 2]),
        mutants=[mutants.scaled(epsilon=8.0)],
        draws_factor=2 * FEWEST,
    )


# --- packages in which no violation was found ---


@needs("aion", "aion-clinical==2.0.7")
@pytest.mark.parametrize("query", ["cohort_count", "mean_value"])
def audit_aion_query(auditor, query):
    """Audit the noise of `DPQueryEngine`."""

    @one_draw(randomness="legacy")
    def release(data, *, epsilon=EPSILON):
        privacy = importlib.import_module("aion.privacy.dp")
        engine = privacy.DPQueryEngine(privacy.PrivacyBudget(100.0))
        if query == "cohort_count":
            result = engine.cohort_count(int(data.sum()), epsilon=epsilon)
        else:
            result = engine.mean_value(data.mean(), len(data), 0.0, 1.0, epsilon=epsilon)
        return result.noisy_value

    auditor.check(
        partial(release, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, f"aion-clinical DPQueryEngine.{query}"),
        UNIT,
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=DRAWS,
    )


@needs("dp_group_stats", "dp-group-stats==0.1.2")
def audit_dp_group_stats_laplace(auditor):
    """Audit "Sample from a Laplace distribution calibrated to (epsilon, sensitivity)"."""

    @one_draw(randomness=None)
    def release(data, *, epsilon=EPSILON):
        noise = importlib.import_module("dp_group_stats.mechanisms").laplace_noise
        return data.sum() + noise(epsilon, 1.0)

    auditor.check(
        partial(release, epsilon=EPSILON),
        PureDP(EPSILON, REPLACE, "dp-group-stats laplace_noise"),
        UNIT,
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=DRAWS,
    )


@needs("cloakdb", "cloakdb==1.0.0")
@pytest.mark.parametrize("deterministic", [True, False])
def audit_cloakdb_value(auditor, deterministic):
    """Audit "mathematically provable (epsilon, delta) Differential Privacy noise" of one value.

    With `deterministic=True`, noise is a hash of a salt and the value. Each draw has its own salt.
    """

    @one_draw(randomness="rng")
    def release(value, *, rng, epsilon=EPSILON):
        context = importlib.import_module("cloakdb.core.context").TransformationContext
        module = importlib.import_module("cloakdb.strategies.differential_privacy")
        return module.DifferentialPrivacyStrategy().transform(
            value,
            context("people", "income", 0, salt=rng.bytes(16).hex()),
            epsilon=epsilon,
            clip_min=0.0,
            clip_max=1.0,
            deterministic=deterministic,
        )

    auditor.check(
        partial(release if deterministic else unseeded(release), epsilon=EPSILON),
        LocalDP(EPSILON, domain=[0.0, 1.0], source="cloakdb DifferentialPrivacyStrategy"),
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=DRAWS,
    )
