"""Local mechanisms of small packages, as `make test-adapters-hunt` installs them.

Each claim is quoted in the audit or in `source`. The audits are skipped if a package is not
installed. If a package releases an array of reports, the audit gives it several users.
One of these users is replaced.
"""

from __future__ import annotations

import functools
import importlib
import math
from functools import partial

import numpy as np
import pytest

from audits.field.packages import needs
from dpaudit import (
    ApproxDP,
    LocalDP,
    MetricDP,
    NeighborPair,
    Outcomes,
    PureDP,
    Relation,
    mutants,
    one_draw,
)

EPSILON = 1.0
VALUES = [0, 1, 2, 3]
DRAWS, FEW, FEWEST = 0.1, 0.05, 0.01
"""Shares of the profile's draws, for releases of about 0.01 ms, 0.1 ms and 1 ms."""


def local(source, epsilon=EPSILON, values=VALUES):
    """Return the claim for one client with one of the values."""
    return LocalDP(epsilon, domain=values, source=source)


def replaced(left, right):
    """Return a pair of arrays, one value for each user."""
    return NeighborPair(np.array(left), np.array(right), relation=Relation.REPLACE_USER)


# --- pure-ldp ---

PURE_LDP = needs("pure_ldp", "pure-ldp==1.2.0")


def of_pure_ldp(path, name):
    return getattr(importlib.import_module("pure_ldp." + path), name)


@functools.cache
def client(kind, epsilon):
    """Return a client of pure-ldp, whose values begin at 1."""
    d = len(VALUES)
    oracle = partial(of_pure_ldp, "frequency_oracles." + kind.partition(" ")[0])
    hashes = of_pure_ldp("core", "generate_hash_funcs")(4, 8)
    match kind:
        case "direct_encoding":
            return oracle("DEClient")(epsilon, d)
        case "unary_encoding" | "unary_encoding oue":
            return oracle("UEClient")(epsilon, d, use_oue=kind.endswith("oue"))
        case "histogram_encoding":
            return oracle("HEClient")(epsilon, d)
        case "local_hashing":
            return oracle("LHClient")(epsilon, d, use_olh=True)
        case "local_hashing fast":
            return oracle("FastLHClient")(epsilon, d, k=10, use_olh=True)
        case "hadamard_response":
            return oracle("HadamardResponseClient")(epsilon, d, None)
        case "hadamard_mechanism":
            return oracle("HadamardMechClient")(epsilon, d, 2)
        case "apple_cms" | "apple_cms hadamard":
            return oracle("CMSClient")(epsilon, hashes, 8, is_hadamard=kind.endswith("hadamard"))
    raise ValueError(kind)


def flat(report):
    """Return all numbers of a report as one array."""
    if isinstance(report, zip):
        report = list(report)
    parts = report if isinstance(report, list | tuple) else [report]
    return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in parts])


@one_draw(randomness="legacy")
def report_of_pure_ldp(value, *, kind, epsilon):
    report = client(kind, epsilon).privatise(int(value) + 1)
    if kind.startswith("local_hashing"):
        return hashed(report, client(kind, epsilon).g)
    return flat(report)


def hashed(report, g):
    """Return whether the reported hash is that of each value, which is all that a seed says."""
    bucket, seed = report
    xxh32 = importlib.import_module("xxhash").xxh32
    return [float(xxh32(str(v), seed=seed).intdigest() % g == bucket) for v in VALUES]


@PURE_LDP
@pytest.mark.filterwarnings("ignore:non-integer arguments to randrange")
@pytest.mark.parametrize(
    "kind",
    [
        "direct_encoding",
        "unary_encoding",
        "unary_encoding oue",
        "histogram_encoding",
        "local_hashing",
        "local_hashing fast",
        "hadamard_response",
        "hadamard_mechanism",
        "apple_cms",
        "apple_cms hadamard",
    ],
)
def audit_pure_ldp_client(auditor, kind):
    """Audit "epsilon (float): Privacy budget"."""
    epsilon = 0.4 if kind == "hadamard_response" else EPSILON  # another mechanism above 1
    auditor.check(
        partial(report_of_pure_ldp, kind=kind, epsilon=epsilon),
        local(f"pure-ldp {kind}", epsilon),
        mutants=[mutants.scaled(epsilon=2.5)],
        draws_factor=DRAWS,
    )


@PURE_LDP
@pytest.mark.known_violation("a bit of the filter that is 1 is never set to 0")
def audit_pure_ldp_rappor(auditor):
    """Audit the epsilon that the server computes from f and the number of hash functions."""
    server = of_pure_ldp("frequency_oracles.rappor", "RAPPORServer")(
        f=0.5, m=8, k=1, d=4, num_of_cohorts=1
    )
    user = of_pure_ldp("frequency_oracles.rappor", "RAPPORClient")(
        f=0.5, m=8, hash_funcs=server.get_hash_funcs(), num_of_cohorts=1
    )

    @one_draw(randomness="legacy")
    def release(value):
        return user.privatise(int(value) + 1)[0]

    auditor.check(
        release,
        local("pure-ldp RAPPORServer.epsilon", server.epsilon),
        draws_factor=DRAWS,
    )


# --- multi-freq-ldpy and ldp-toolbox ---

MULTI_FREQ = needs("multi_freq_ldpy", "multi-freq-ldpy==0.2.5")
TOOLBOX = needs("ldp_toolbox", "ldp-toolbox==0.1.3")
MANY = 8
"""Size of the domain, so that subset selection reports two values."""


def of_multi_freq(path, name):
    return getattr(importlib.import_module(f"multi_freq_ldpy.{path}"), name)


@one_draw(randomness=None)
def report_of_multi_freq(value, *, name, epsilon):
    function = of_multi_freq(f"pure_frequency_oracles.{name[:-7]}", name)
    return np.asarray(function(int(value), MANY, epsilon), dtype=float)


@MULTI_FREQ
@pytest.mark.parametrize(
    "name",
    [
        "GRR_Client",
        "UE_Client",
        "HE_Client",
        pytest.param(
            "SS_Client",
            marks=pytest.mark.known_violation("the true value is the first of the subset"),
        ),
    ],
)
def audit_multi_freq_client(auditor, name):
    """Audit "epsilon: privacy guarantee". SS returns the "set of sub_k sanitized values"."""
    auditor.check(
        partial(report_of_multi_freq, name=name, epsilon=EPSILON),
        local(f"multi-freq-ldpy {name}", values=range(MANY)),
        mutants=[mutants.scaled(epsilon=2.5)],
        draws_factor=DRAWS,
    )


@one_draw(randomness=None)
def longitudinal_report(value, *, name, epsilon):
    function = of_multi_freq("long_freq_est." + name.removesuffix("_Client"), name)
    return np.asarray(function(int(value), len(VALUES), 2 * epsilon, epsilon), dtype=float)


@MULTI_FREQ
@pytest.mark.parametrize(
    "name", ["L_GRR_Client", "L_SUE_Client", "L_OUE_Client", "L_OSUE_Client", "L_SOUE_Client"]
)
def audit_multi_freq_longitudinal_client(auditor, name):
    """Audit one report: "eps_1: lower bound of privacy guarantee (a single report)"."""
    auditor.check(
        partial(longitudinal_report, name=name, epsilon=0.5),
        local(f"multi-freq-ldpy {name}", 0.5),
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=DRAWS,
    )


@MULTI_FREQ
def audit_multi_freq_d_bit_flip(auditor):
    """Audit "eps_perm: upper bound of privacy guarantee"."""

    @one_draw(randomness=None)
    def release(value, *, epsilon):
        return of_multi_freq("long_freq_est.dBitFlipPM", "dBitFlipPM_Client")(
            int(value), 4, 4, 2, epsilon
        )

    auditor.check(
        partial(release, epsilon=EPSILON),
        local("multi-freq-ldpy dBitFlipPM_Client"),
        mutants=[mutants.scaled(epsilon=2.5)],
        draws_factor=DRAWS,
    )


@functools.cache
def protocol(name, epsilon):
    path = {"SubsetSelection": "ss", "UnaryEncoding": "ue", "HistogramEncoding": "he"}
    module = importlib.import_module("ldp_toolbox.protocols.frequency." + path.get(name, "grr"))
    return getattr(module, name)(MANY, epsilon)


@TOOLBOX
@pytest.mark.parametrize(
    "name",
    ["GeneralizedRandomizedResponse", "UnaryEncoding", "HistogramEncoding", "SubsetSelection"],
)
def audit_ldp_toolbox_protocol(auditor, name):
    """Audit "epsilon: The privacy budget". The subset of `SubsetSelection` is shuffled."""

    @one_draw(randomness=None)
    def release(value, *, epsilon):
        report = np.asarray(protocol(name, epsilon).obfuscate(int(value)))
        if name == "HistogramEncoding":  # indices above a threshold, of any number
            return np.isin(np.arange(MANY), report).astype(float)
        return report.astype(float)

    auditor.check(
        partial(release, epsilon=EPSILON),
        local(f"ldp-toolbox {name}", values=range(MANY)),
        mutants=[mutants.scaled(epsilon=2.5)],
        draws_factor=DRAWS,
    )


# --- trasgodp ---

TRASGODP = needs("trasgodp", "--no-deps trasgodp==2.1.0")
LETTERS = np.array(["a", "b", "c"])
"""Categories of three users, because texts are sent as numbers."""


@TRASGODP
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def audit_trasgodp_number(auditor, name):
    """Audit "privacy budget" and "probability of exceeding the privacy budget" of an array."""
    delta = 0.01 if name == "gaussian" else 0.0

    @one_draw(randomness="legacy")
    def release(data):
        numerical = importlib.import_module("trasgodp.numerical")
        function = getattr(numerical, f"dp_clip_{name}_array")
        return function(data, EPSILON, 0.0, 1.0, **({"delta": delta} if delta else {}))

    auditor.check(
        release,
        ApproxDP(EPSILON, delta, Relation.REPLACE_USER, f"trasgoDP dp_clip_{name}_array"),
        replaced([0.5, 9.0], [0.5, -9.0]),
        draws_factor=DRAWS,
    )


CATEGORIES = "the categories are those of the data"


@TRASGODP
@pytest.mark.parametrize("name", ["dp_exponential_array", "dp_randomized_response_kary_array"])
@pytest.mark.parametrize(
    "last",
    [0, pytest.param(3, marks=pytest.mark.known_violation(CATEGORIES))],
    ids=["known category", "new category"],
)
def audit_trasgodp_category(auditor, name, last):
    """Audit "under a local approach, adding noise directly to the raw data".

    If other users have all categories, no violation is found. Otherwise the report of a user names
    a category that only this user has.
    """

    @one_draw(randomness="legacy")
    def release(data, *, epsilon):
        function = getattr(importlib.import_module("trasgodp.categorical"), name)
        texts = np.array(["a", "b", "c", "d"])[data]
        return [float(ord(text) - ord("a")) for text in function(texts, epsilon)]

    auditor.check(
        partial(release, epsilon=EPSILON),
        PureDP(EPSILON, Relation.REPLACE_USER, f"trasgoDP {name}"),
        replaced([0, 1, 2, 1], [0, 1, 2, last]),
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=FEW,
    )


def metres(a, b):
    """Return the distance of two places at the equator, in metres."""
    return 6_371_000 * math.radians(math.dist(a, b))


@TRASGODP
@pytest.mark.parametrize(
    "released",
    [
        "place",
        pytest.param(
            "place and radius",
            marks=pytest.mark.known_violation("the distance to the true place is released"),
        ),
        pytest.param(
            "default seed", marks=pytest.mark.known_violation("the noise has the seed 42")
        ),
    ],
)
def audit_trasgodp_place(auditor, released):
    """Audit "metric-privacy (location-based data)", with epsilon = 0.01 per metre."""
    places = [(0.0, 0.0), (0.0, 0.001)]

    @one_draw(randomness="integer")
    def release(place, *, seed, epsilon):
        frame = importlib.import_module("pandas").DataFrame([place], columns=["lat", "lon"])
        function = importlib.import_module("trasgodp.geoindis").metric_privacy
        options = {} if released == "default seed" else {"seed": seed}
        row = function(frame, "lat", "lon", epsilon, **options).iloc[0]
        if released == "place":
            return [row["lat"], row["lon"]]
        reported = math.radians(math.dist([row["lat"], row["lon"]], places[0])) * 6_371_000
        return [row["lat"], row["lon"], abs(row["radius_m"] - reported) < 1e-3]

    auditor.check(
        partial(release, epsilon=0.01),
        MetricDP(0.01, metres, domain=places, source="trasgoDP metric_privacy"),
        mutants=[mutants.scaled(epsilon=4)],
        draws_factor=FEWEST,
    )


# --- GeoPrivacy ---

GEOPRIVACY = needs("GeoPrivacy", "GeoPrivacy==0.0.4")
PLACES = [(0.0, 0.0), (0.0, 1.0), (1.0, 2.0), (2.0, 0.5)]


@GEOPRIVACY
def audit_geoprivacy_planar_laplace(auditor):
    """Audit "Privacy level: eps" of `random_laplace_noise`."""

    @one_draw(randomness="legacy")
    def release(place, *, epsilon):
        noise = importlib.import_module("GeoPrivacy.mechanism").random_laplace_noise(epsilon)
        return np.array(place) + noise

    auditor.check(
        partial(release, epsilon=EPSILON),
        MetricDP(EPSILON, math.dist, domain=PLACES, source="GeoPrivacy random_laplace_noise"),
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=FEW,
    )


class Transitions:
    """A mechanism of GeoPrivacy that is a matrix of transitions between places."""

    def __init__(self, stretch):
        self.stretch = stretch

    @functools.cached_property
    def matrix(self):
        """The probability of each reported place, for each true place."""
        geo = importlib.import_module("GeoPrivacy.mechanism")
        weights = [1, 1, 1, 1]
        if self.stretch == 1:
            return geo.optql(PLACES, weights, math.dist, EPSILON)[0]
        spanner = geo.generate_spanner(PLACES, math.dist, self.stretch)
        return geo.optql_graph_spanner(PLACES, weights, spanner, math.dist, EPSILON, self.stretch)[
            0
        ]

    def pmf(self, place):
        """Return the probability of each reported place."""
        row = np.maximum(self.matrix[PLACES.index(tuple(place))], 0)
        return row / row.sum()


@GEOPRIVACY
@pytest.mark.parametrize(
    ("stretch", "claimed"),
    [
        (1, EPSILON),
        (2, EPSILON),
        pytest.param(
            2,
            EPSILON / 2,
            marks=pytest.mark.known_violation("epsilon / delta holds only along the spanner"),
        ),
    ],
)
def audit_geoprivacy_optimal(auditor, stretch, claimed):
    """Audit "The final privacy level would be epsilon/delta" (with a spanner), and epsilon."""
    auditor.check(
        Transitions(stretch),
        MetricDP(1.0001 * claimed, math.dist, domain=PLACES, source="GeoPrivacy optql"),
        mutants=[],
    )


# --- others ---


@functools.cache
def sketch(kind, epsilon):
    """Return a client of privadjust."""
    pandas = importlib.import_module("pandas")
    hadamard = kind == "hcms"
    path = "hadamard_count_mean" if hadamard else "count_mean"
    module = importlib.import_module(f"privadjust.{path}.private_{kind}_client")
    make = getattr(module, f"private{kind.upper()}Client")
    return make(epsilon, 4, 8, pandas.DataFrame({"value": VALUES}))


@needs("privadjust", "privadjust==1.0.13")
@pytest.mark.parametrize("kind", ["cms", "hcms"])
def audit_privadjust_client(auditor, kind):
    """Audit "epsilon (float): The privacy parameter for differential privacy"."""

    @one_draw(randomness=None)  # the client draws its hash functions when it is made
    def release(value, *, epsilon):
        return flat(sketch(kind, epsilon).client(int(value)))

    auditor.check(
        partial(release, epsilon=EPSILON),
        local(f"privadjust private{kind.upper()}Client"),
        mutants=[mutants.scaled(epsilon=2.5)],
        draws_factor=DRAWS,
    )


@needs("hll_py", "hll-py==0.1.13")
@pytest.mark.known_violation("the segments of a word are keys of the sketch")
def audit_hll_py(auditor):
    """Audit "local differentially private counting". Each user has one segment of a word."""

    @one_draw(randomness="legacy")
    def release(data):
        hll = importlib.import_module("hll_py")
        sketches = hll.HyperLogLogLDP(hll.SketchConfig(epsilon=EPSILON))
        for number in data:
            sketches.insert_segments([f"word_seg{number}"])
        return dict.fromkeys(sketches.sketch_map, 1.0)

    auditor.check(
        Outcomes(release, keys=[f"word_seg{v}" for v in VALUES]),
        PureDP(EPSILON, Relation.REPLACE_USER, "hll-py HyperLogLogLDP"),
        replaced([0, 1], [0, 2]),
        draws_factor=FEW,
    )


@needs("insurance_fairness_ldp", "insurance-fairness-ldp==0.1.1")
def audit_insurance_fairness_response(auditor):
    """Audit "satisfying epsilon-Local Differential Privacy"."""

    @one_draw(randomness="rng")
    def release(value, *, rng, epsilon):
        package = importlib.import_module("insurance_fairness_ldp")
        response = package.KaryRandomisedResponse(epsilon=epsilon, categories=VALUES)
        return response.privatise(np.array([int(value)]), random_state=rng)[0]

    auditor.check(
        partial(release, epsilon=2.0),
        local("insurance-fairness-ldp KaryRandomisedResponse", 2.0),
        mutants=[mutants.scaled(epsilon=2)],
        draws_factor=FEW,
    )
