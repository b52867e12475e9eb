"""Audits of the low bits of an output, with ``float_attack=True``.

In exact arithmetic, all mechanisms in this module satisfy their claims. In doubles, noise that is
added to a value leaves traces of the value. To avoid such traces, OpenDP rounds to a lattice first.
"""

from __future__ import annotations

from functools import partial

import pytest

from algorithms.common import noise
from audits.third_party.audit_third_party import diffprivlib_noise, installed, opendp_noise
from dpaudit import PureDP
from dpaudit import neighbors as nb

EPSILON = 1.0
ONE_VALUE = nb.value_pattern("one_above", 1)
NAIVE = partial(noise.laplace_mechanism, sensitivity=1.0)


@pytest.mark.known_violation("adds a float noise sample to a float, as in exact arithmetic")
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def audit_reference_laplace(auditor, epsilon):
    auditor.check(
        partial(NAIVE, epsilon=epsilon),
        PureDP(epsilon, source="Dwork and Roth 2014, Theorem 3.6, for real numbers"),
        ONE_VALUE,
        float_attack=True,
    )


@installed("opendp")
def audit_opendp_laplace_bits(auditor):
    auditor.check(
        opendp_noise(make="make_laplace", kind=float, distance="l1_distance", scale=1 / EPSILON),
        PureDP(EPSILON, source="OpenDP make_laplace"),
        ONE_VALUE,
        mutants=[partial(NAIVE, epsilon=EPSILON)],
        draws_factor=0.4,
        float_attack=True,
    )


@pytest.mark.nightly
@installed("diffprivlib")
@pytest.mark.known_violation("the sampler hides the noise, but its sum with the value is rounded")
def audit_diffprivlib_laplace_bits(auditor):
    auditor.check(
        diffprivlib_noise("Laplace", epsilon=EPSILON, sensitivity=1),
        PureDP(EPSILON, source="diffprivlib Laplace"),
        ONE_VALUE,
        draws_factor=0.5,
        float_attack=True,
    )
